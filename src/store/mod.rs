//! Floor 3: the journal on disk. Nothing above this folder knows the word sled.
//!
//! `place.rs` is the way in: the state directory and the runs in it. `sled.rs` is a journal on disk, `memory.rs` one
//! in memory with the same contract (docs/JOURNAL.md, "On disk"). This file must not do input or output.

pub mod key;
pub mod ledger;
pub mod look;
pub mod memory;
pub mod place;
pub mod recall;
mod recount;
pub mod remove;
pub mod repair;
pub mod rules;
pub mod sled;
pub mod transfer;
pub mod trusted;

mod ahead;
mod anchor;
mod before;
mod cadence;
mod codec;
mod database;
pub(crate) mod files;
mod own;
mod owner;
mod snaps;
mod sums;
mod trees;
mod upcast;
mod values;

use std::fmt;
use std::path::PathBuf;

use async_trait::async_trait;

use crate::domain::event::Record;
use crate::domain::id::RunId;
use crate::domain::id::Seq;
use crate::domain::run::Run;

/// What tells that a newer version wrote a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Newer {
    /// It says so: its format is this one.
    Format(u32),
    /// This record is of this version's format and names what this version has no word for: an event, or something in
    /// one. An edit by hand looks the same.
    Word(Seq),
}

impl Newer {
    /// Whether no damage, and no edit by hand, looks the same.
    pub fn is_certain(self) -> bool {
        match self {
            Newer::Format(_) => true,
            Newer::Word(_) => false,
        }
    }
}

impl fmt::Display for Newer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Newer::Format(found) => write!(out, "was written by a newer version of tiller (format {found})"),
            Newer::Word(seq) => write!(
                out,
                "names in record {seq} what this version does not know: either a newer version of tiller wrote it, or \
                 it was altered"
            ),
        }
    }
}

/// What goes wrong with a store. Each message says what happened, what was not done, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process holds the run.
    #[error(
        "run {run} is held by {holder}; it was not opened; do it there, or leave there (Ctrl-D on a \
         screen, Ctrl-C where lines are printed) and try again"
    )]
    Locked {
        /// The run.
        run: RunId,
        /// The process, in words: its id and since when, as far as is known.
        holder: String,
    },
    /// The journal can't be what was written.
    #[error(
        "run {run} is damaged: {why}; it was not opened and its files are kept as they are in {path}; `tiller repair \
         {run}` tries to mend it"
    )]
    Damaged {
        /// The run.
        run: RunId,
        /// What is wrong.
        why: String,
        /// Where its files are.
        path: PathBuf,
    },
    /// The disk is full, or the file system refuses.
    #[error(
        "{doing} failed: {why}; nothing was recorded; see to that (free space, where there is none), then try again"
    )]
    Disk {
        /// What was tried.
        doing: String,
        /// What the system said.
        why: String,
    },
    /// A write failed after it was begun, and could not be taken back.
    #[error(
        "{doing} failed: {why}; it may be recorded all the same, and counts then: see to that (free space, where there is \
         none), and look at the run before you try again"
    )]
    Doubtful {
        /// What was tried.
        doing: String,
        /// What the system said.
        why: String,
    },
    /// There is no such run.
    #[error("there is no run {0}; `tiller runs` lists them")]
    NotFound(String),
    /// Several runs begin like this.
    #[error("{prefix} fits {count} runs; write more of the name; `tiller runs` lists them")]
    Ambiguous {
        /// What was written.
        prefix: String,
        /// How many runs it fits.
        count: usize,
    },
    /// Written by a newer version, as far as can be told.
    #[error("run {run} {found}; it was not opened or changed; update tiller")]
    TooNew {
        /// The run.
        run: RunId,
        /// What tells so.
        found: Newer,
    },
    /// Its records are what was written, and do not fit each other.
    #[error(
        "run {run} can't be read by this version of tiller; it was not opened: {why}; its records are whole; `tiller \
         export {run}` saves them"
    )]
    Unreadable {
        /// The run.
        run: RunId,
        /// What does not fit.
        why: String,
    },
    /// A file that is no journal in lines, or not the whole of one.
    #[error("the file can't be imported: {why}; nothing was imported; export the run again")]
    Foreign {
        /// What is wrong with it.
        why: String,
    },
    /// A file with a journal that is newer than this version, as far as can be told.
    #[error("the file can't be imported: it {found}; nothing was imported; update tiller, or export the run again")]
    ForeignTooNew {
        /// What tells so.
        found: Newer,
    },
    /// There is a run of this name.
    #[error("there is a run {0} already; nothing was imported; say --as-new to give it a new name")]
    Taken(RunId),
    /// Records that do not follow what is stored: a bug, so nothing was written.
    #[error("record {found} does not follow record {stored}; nothing was written; this is a bug of tiller")]
    NotDense {
        /// The first record that was to be written.
        found: Seq,
        /// The last stored one.
        stored: Seq,
    },
    /// A record longer than `limits::RECORD_MAX_BYTES`: whatever made it should have cut it, so nothing was written.
    #[error("record {seq} has {bytes} bytes, which is too long; nothing was written; this is a bug of tiller")]
    TooLong {
        /// The record.
        seq: Seq,
        /// Its length as JSON.
        bytes: usize,
    },
    /// The journal was let go by its owner in this process.
    #[error("the journal of run {0} is closed; nothing was read or written; open the run again")]
    Closed(RunId),
    /// Others could read or change what is in the state directory.
    #[error("{path} {why}; nothing was opened; {fix}")]
    Exposed {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
        /// What to do.
        fix: String,
    },
}

/// The journal of one run, held by its owner. Whoever has it is the only writer; it can't be cloned.
#[async_trait]
pub trait Journal: Send + 'static {
    /// Appends a batch. When it returns, all of it is durable; when it fails, none of it is.
    async fn append(&mut self, records: Vec<Record>) -> Result<(), StoreError>;

    /// Whether a snapshot of the run is due, after what was appended last.
    fn is_snapshot_due(&self) -> bool {
        false
    }

    /// Keeps a snapshot of the run as its last record left it. It is a shortcut and nothing more, so it may be lost,
    /// and nobody waits for it. A journal that keeps none drops it.
    async fn keep(&mut self, run: Run) {
        drop(run);
    }

    /// A way to read the same journal, for any number of readers.
    fn reader(&self) -> std::sync::Arc<dyn Reader>;
}

/// Reads records of a journal that is open in this process.
#[async_trait]
pub trait Reader: Send + Sync {
    /// Up to `most` durable records from a position on, in order; fewer at the end.
    async fn read(&self, from: Seq, most: usize) -> Result<Vec<Record>, StoreError>;
}
