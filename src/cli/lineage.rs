//! The part of the command line that goes back in a run, branches off from one, or takes one up again. It parses and
//! does nothing.

use clap::Subcommand;

use crate::cli::values::iteration;
use crate::cli::values::run_prefix;
use crate::domain::terms::Goal;

/// Going back, branching off, taking up again.
#[derive(Clone, Debug, PartialEq, Subcommand)]
pub enum Branch {
    /// Take up a run that failed or was cancelled, where it ended; `tiller resume` then goes on
    #[command(after_help = "Example: tiller retry k7f && tiller resume k7f")]
    Retry {
        /// The beginning of its name
        #[arg(value_parser = run_prefix)]
        run: String,
    },
    /// Go back to the end of an iteration; what came after it is hidden, not removed
    #[command(
        after_help = "Example: tiller rewind k7f 4 && tiller say k7f \"try the other way\" && tiller resume k7f\n\
                            Money and counts stay, and so does what the calls after it did: they are listed.\n\
                            Files that they wrote, and that nobody changed since, can be put back with --restore;\n\
                            if that breaks off, the same line does the rest."
    )]
    Rewind {
        /// The beginning of its name
        #[arg(value_parser = run_prefix)]
        run: String,
        /// The iteration
        #[arg(value_parser = iteration)]
        iteration: u32,
        /// Put back the files that calls after it wrote, where they are as those calls left them
        #[arg(long)]
        restore: bool,
    },
    /// Start a new run from the end of an iteration of this one, which stays as it is
    #[command(after_help = "Example: tiller fork k7f --goal \"now the tests\"")]
    Fork {
        /// The beginning of its name
        #[arg(value_parser = run_prefix)]
        run: String,
        /// The iteration; the last closed one if left out
        #[arg(value_parser = iteration)]
        iteration: Option<u32>,
        /// What the new run is to reach, if it is something else
        #[arg(long, value_name = "TEXT", value_parser = goal)]
        goal: Option<Goal>,
    },
}

fn goal(text: &str) -> Result<Goal, String> {
    Goal::try_from(text.to_string())
}
