//! Trust: how much a run does unasked, and the words for it (docs/ENGINE.md §9.6).

use std::fmt;

use serde::Deserialize;
use serde::Serialize;

/// How much a run does unasked, least first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// It only reads; everything else is denied.
    Plan,
    /// It reads inside the workspace; everything else is asked about.
    #[default]
    Ask,
    /// It also changes files of the workspace.
    AutoEdit,
    /// It does all but what is always asked about.
    FullTrust,
}

impl Trust {
    /// All modes, least first.
    pub const ALL: [Trust; 4] = [Trust::Plan, Trust::Ask, Trust::AutoEdit, Trust::FullTrust];

    /// Whether it is the usual one, which terms do not mention.
    pub fn is_ask(&self) -> bool {
        *self == Trust::Ask
    }

    /// The mode as one word, as it is typed.
    pub fn word(self) -> &'static str {
        match self {
            Trust::Plan => "plan",
            Trust::Ask => "ask",
            Trust::AutoEdit => "auto_edit",
            Trust::FullTrust => "full_trust",
        }
    }

    /// The mode by its word. Errors with a sentence that names them all.
    pub fn parse(text: &str) -> Result<Trust, String> {
        let wanted = text.trim().replace('-', "_").to_ascii_lowercase();
        Trust::ALL
            .into_iter()
            .find(|one| one.word() == wanted)
            .ok_or_else(|| "it is none of plan, ask, auto_edit, full_trust".to_string())
    }

    /// What the mode means, in a sentence.
    pub fn meaning(self) -> &'static str {
        match self {
            Trust::Plan => "it reads inside the workspace; what would change anything is denied",
            Trust::Ask => "it reads inside the workspace; you are asked about everything else",
            Trust::AutoEdit => {
                "it also changes files of the workspace, those of builds too; you are asked about commands, sensitive \
                 names, files that other programs run by themselves (hooks, CI), and places outside the workspace"
            }
            Trust::FullTrust => {
                "you are asked only about sensitive names, files that other programs run by themselves, places outside \
                 the workspace, and shell lines, where no full sandbox holds them"
            }
        }
    }
}

impl fmt::Display for Trust {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_known_by_their_words() {
        for mode in Trust::ALL {
            assert_eq!(Trust::parse(mode.word()), Ok(mode));
        }
        assert_eq!(Trust::parse(" Full-Trust "), Ok(Trust::FullTrust));
        assert!(Trust::parse("yolo").is_err());
        assert!(Trust::Plan < Trust::Ask && Trust::Ask < Trust::AutoEdit && Trust::AutoEdit < Trust::FullTrust);
    }
}
