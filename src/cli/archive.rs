//! The part of the command line that is about journals as they lie on the disk. It parses and does nothing.

use std::path::PathBuf;

use clap::Subcommand;

use crate::cli::values::run_prefix;

/// What can be done with journals as they lie on the disk.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum Archive {
    /// Write the whole journal of a run as JSON lines; texts are not shortened
    #[command(after_help = "Example: tiller export k7f --out k7f.jsonl && tiller import k7f.jsonl --as-new")]
    Export {
        /// The beginning of its name
        #[arg(value_parser = run_prefix)]
        run: String,
        /// A new file, instead of standard output
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Make a run of an exported journal, after proving that it is whole
    Import {
        /// What `tiller export` wrote; `-` reads it from standard input
        file: PathBuf,
        /// Give the run a new name; without this it keeps its own, which must be free
        #[arg(long)]
        as_new: bool,
        /// Take its checks over without being asked; they run unasked whenever the model says that it is done
        #[arg(long)]
        with_checks: bool,
    },
    /// Say who decided what, what ran, what it cost and how it ended: a line for each
    #[command(after_help = "Example: tiller audit k7f --json | jq 'select(.decision)'\n\
                            --verify proves the hash chain and how far the journal went; it notices accidents and naive \
                            edits, not somebody who owns your account.")]
    Audit {
        /// The beginning of its name
        #[arg(value_parser = run_prefix)]
        run: String,
        /// Print JSON, an object a line
        #[arg(long)]
        json: bool,
        /// Print texts and arguments too, instead of their length and hash
        #[arg(long)]
        payloads: bool,
        /// Prove the journal instead, and say what is wrong with it
        #[arg(long, conflicts_with_all = ["json", "payloads"])]
        verify: bool,
    },
    /// Remove a run that has ended, or is damaged, for good: its journal and all that is kept with it
    #[command(after_help = "Example: tiller export k7f --out k7f.jsonl && tiller remove k7f\n\
                            A line about it stays in removed.jsonl, in the state folder. The folder it worked in stays as \
                            it is; only that of a rehearsal is its own and goes with it. You are asked first, or say \
                            --yes.")]
    Remove {
        /// The beginning of its name
        #[arg(value_parser = run_prefix)]
        run: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
        /// Remove a run that is damaged, whether it has ended or not; what can't be read of it is lost
        #[arg(long)]
        damaged: bool,
    },
    /// Mend the store of a run that does not open; what was found is kept
    Repair {
        /// The beginning of its name
        #[arg(value_parser = run_prefix)]
        run: String,
    },
}
