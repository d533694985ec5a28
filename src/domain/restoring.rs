//! Putting files back after a rewind, as nouns: what is at a path now, and what can be done about it
//! (docs/ENGINE.md §15).

use crate::domain::id::CallId;
use crate::domain::run::Run;
use crate::domain::status::Status;
use crate::domain::tool::FileWrite;

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum There {
    /// Nothing.
    Nothing,
    /// A file whose content has this SHA-256.
    Content(String),
    /// Something that is left alone; why, in words.
    Other(String),
}

impl There {
    /// What is there when a call found, or left, this content, or no file.
    pub fn of(hash: Option<&str>) -> There {
        hash.map_or(There::Nothing, |hash| There::Content(hash.to_string()))
    }
}

/// What can be done about one call that wrote a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// The file gets the content that it had before the call.
    PutBack,
    /// The file is removed: there was none before the call.
    Remove,
    /// It is as it was before the call already.
    AsBefore,
    /// It is left alone; why, in words.
    Not(String),
}

/// One call that wrote a file, and what can be done about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restore {
    /// The call.
    pub call: CallId,
    /// The file, before and after the call.
    pub write: FileWrite,
    /// What can be done.
    pub way: Way,
}

impl Run {
    /// Whether a file may be put back now: only while nothing else can change it.
    pub(crate) fn may_restore(&self) -> Result<(), String> {
        match &self.status {
            Status::Parked(_) if !self.is_busy() => Ok(()),
            Status::Parked(_)
            | Status::Queued
            | Status::Running
            | Status::Completed(_)
            | Status::Failed(_)
            | Status::Cancelled => Err("files are put back only while the run is parked".to_string()),
        }
    }
}
