//! The words about trust: of a folder, and how much a run does unasked.

use std::path::PathBuf;

use clap::Args;

use crate::cli::Ask;
use crate::cli::Order;
use crate::cli::deciding;
use crate::cli::values;

/// What is said of folders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Folders {
    /// List those that are trusted.
    List,
    /// Trust one, once the operator has seen what new runs there are told and said yes.
    Trust(PathBuf),
    /// Trust one without being asked.
    TrustUnasked(PathBuf),
    /// Trust one no more.
    Remove(PathBuf),
}

#[derive(Args)]
pub(crate) struct TrustWords {
    /// A folder whose AGENTS.md new runs are told, the current one unless named; or a run and its mode: plan, ask,
    /// auto_edit or full_trust
    #[arg(value_name = "DIR | RUN MODE", num_args = 0..=2)]
    words: Vec<PathBuf>,
    /// List the folders that are trusted
    #[arg(long, conflicts_with_all = ["words", "remove"])]
    list: bool,
    /// Trust the folder no more
    #[arg(long)]
    remove: bool,
    /// Trust the folder without being asked
    #[arg(long, conflicts_with_all = ["list", "remove"])]
    yes: bool,
}

impl TrustWords {
    /// Errors with a sentence when the words name neither a folder nor a run and a mode.
    pub(crate) fn ask(self) -> Result<Ask, String> {
        let folders = |one: Option<PathBuf>| {
            let folder = one.unwrap_or_else(|| PathBuf::from("."));
            Ask::Folders(match (self.remove, self.yes) {
                (true, _) => Folders::Remove(folder),
                (false, true) => Folders::TrustUnasked(folder),
                (false, false) => Folders::Trust(folder),
            })
        };
        let mut words = self.words.into_iter();
        match (words.next(), words.next()) {
            _ if self.list => Ok(Ask::Folders(Folders::List)),
            (one, None) => Ok(folders(one)),
            (Some(_), Some(_)) if self.remove => {
                Err("--remove takes one folder; nothing was changed; name one at a time".to_string())
            }
            (Some(_), Some(_)) if self.yes => {
                Err("--yes is about a folder; nothing was changed; a run's mode is set without it".to_string())
            }
            (run, Some(mode)) => {
                let unchanged = |why: String| format!("{why}; nothing was changed");
                let run = values::run_prefix(&run.unwrap_or_default().to_string_lossy()).map_err(unchanged)?;
                let mode = deciding::trust(&mode.to_string_lossy()).map_err(unchanged)?;
                Ok(Ask::Order { run, order: Order::Trust(mode) })
            }
        }
    }
}
