//! When the agent is told what is said on the command line: the words, and what they mean.

use clap::Args;

use crate::domain::command::Policy;

/// When the agent is told; at the next iteration without any of these.
#[derive(Args)]
#[group(multiple = false)]
pub struct WhenTold {
    /// Tell it now: the rest of the calls that it asked for is not run
    #[arg(long)]
    now: bool,
    /// Tell it at once: what runs is ended, too
    #[arg(long)]
    interrupt: bool,
    /// Tell it when the run would end; the run goes on instead
    #[arg(long)]
    after: bool,
}

impl WhenTold {
    /// What the words mean.
    pub fn policy(&self) -> Policy {
        match (self.now, self.interrupt, self.after) {
            (true, _, _) => Policy::SteerNow,
            (_, true, _) => Policy::Interrupt,
            (_, _, true) => Policy::AfterDone,
            (false, false, false) => Policy::Next,
        }
    }
}
