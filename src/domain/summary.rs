//! A run in a few words, for lists. A projection: written beside the store, never read to decide anything.

use serde::Deserialize;
use serde::Serialize;

use crate::domain::budget::Axis;
use crate::domain::budget::Limit;
use crate::domain::id::RunId;
use crate::domain::id::Seq;
use crate::domain::limits;
use crate::domain::money::MicroUsd;
use crate::domain::run::Run;
use crate::domain::status::Status;
use crate::domain::text::one_line;
use crate::domain::time::Timestamp;

/// A run in a few words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// Its name.
    pub id: RunId,
    /// The record this was drawn from.
    pub seq: Seq,
    /// The head of its goal, in one line.
    pub goal: String,
    /// The folder it works in.
    pub workspace: String,
    /// Where it stands.
    pub status: Status,
    /// When it was created.
    pub created: Timestamp,
    /// When the last record was written.
    pub updated: Timestamp,
    /// What it cost so far.
    pub spent: MicroUsd,
    /// What it may cost.
    pub cost_limit: Limit,
    /// Iterations so far.
    pub iterations: u32,
    /// How many things wait for the operator.
    pub waiting: u32,
    /// Whether it is a rehearsal.
    pub rehearsal: bool,
    /// Whether what it cost is pretended.
    #[serde(default)]
    pub pretend: bool,
    /// Whether its journal was brought from elsewhere.
    #[serde(default)]
    pub brought: bool,
}

impl Summary {
    /// The summary of a run.
    pub fn of(run: &Run) -> Summary {
        Summary {
            id: run.id.clone(),
            seq: run.seq,
            goal: one_line(run.terms.goal.as_str(), limits::TODO_TITLE_MAX_CHARS),
            workspace: run.terms.workspace.clone(),
            status: run.status.clone(),
            created: run.created,
            updated: run.at,
            spent: run.pool.spent(),
            cost_limit: run.pool.limits().on(Axis::Cost),
            iterations: run.iteration.n,
            waiting: u32::try_from(run.waiting_count()).unwrap_or(u32::MAX),
            rehearsal: run.terms.rehearsal,
            pretend: run.terms.is_pretend(),
            brought: run.brought.is_some(),
        }
    }

    /// Whether the run can still go on somewhere: a rehearsal that was imported has no folder to go on in.
    pub fn is_open(&self) -> bool {
        !(self.status.is_end() || self.rehearsal && self.brought)
    }

    /// How many things wait for the operator.
    pub fn things(&self) -> usize {
        usize::try_from(self.waiting).unwrap_or(usize::MAX)
    }
}

/// A run as a list shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listed {
    /// A run that could be read.
    Run {
        /// What is known of it.
        summary: Box<Summary>,
        /// The process that holds it, if one does.
        held_by: Option<u32>,
    },
    /// A run that can't be read; its files are kept as they are.
    Damaged {
        /// Its name.
        id: RunId,
        /// What is wrong, in a sentence.
        why: String,
    },
}
