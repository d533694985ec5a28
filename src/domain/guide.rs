//! The guide of a repository: what its own file for agents says. It is the repository's text and never an order of the
//! operator: it is told to the model as data, and only of a folder that the operator trusts (docs/SAFETY.md §4).

use serde::Deserialize;
use serde::Serialize;

use crate::domain::text::counted;
use crate::domain::text::sha256_hex;

/// Files that hold a guide, seen from the folder. The first that is a regular file there is the guide; no other is read,
/// because repositories that have several say the same in them.
pub const NAMES: [&str; 5] = ["AGENTS.md", "CLAUDE.md", "GEMINI.md", ".cursorrules", ".github/copilot-instructions.md"];

/// What looks like a configuration of tiller and is never read from a folder that is worked in.
pub const NEVER_READ: [&str; 2] = [".tiller", "tiller.toml"];

/// The guide as a run was started with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guide {
    /// The file, seen from the folder.
    pub name: String,
    /// How many bytes the file had.
    pub bytes: u64,
    /// SHA-256 of the file as it was read.
    pub hash: String,
    /// Its text, without secrets; the middle of a longer one is left out.
    pub text: String,
}

impl Guide {
    /// The guide in a file of this name that holds these bytes; `text` is what is told of them.
    pub fn new(name: &str, bytes: &[u8], text: String) -> Guide {
        let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        Guide { name: name.to_string(), bytes: size, hash: sha256_hex(bytes), text }
    }

    /// Which file it is: name, size, and the beginning of its hash.
    pub fn title(&self) -> String {
        format!("{} ({}, SHA-256 {})", self.name, counted(self.bytes, "byte"), self.short_hash())
    }

    /// The beginning of its hash.
    pub fn short_hash(&self) -> &str {
        self.hash.get(..8).unwrap_or(&self.hash)
    }
}
