//! A folded run as it is stored beside its journal: a shortcut for the fold, never a source (docs/ENGINE.md §10.5).
//!
//! It holds no long text of the conversation: each stands in a record, and the snapshot says in which. It must not
//! read records itself, and must not be believed without the record that it was made at.

use std::sync::Arc;

use rpds::VectorSync;
use serde::Deserialize;
use serde::Serialize;

use crate::domain::event::Event;
use crate::domain::fold;
use crate::domain::id::RunId;
use crate::domain::id::Seq;
use crate::domain::message::Entry;
use crate::domain::message::Transcript;
use crate::domain::outline::Outline;
use crate::domain::run::Run;

/// The version of the fold. Raised whenever a record comes to mean something else, or a field of `Run` changes its
/// meaning or its name: a snapshot of another version is not read.
pub const FOLD_VERSION: u32 = 9;

/// A folded run without the long texts of its conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    run: Run,
    /// What was put away, as it is.
    #[serde(with = "crate::domain::stored::listed")]
    put_away: VectorSync<Outline>,
    /// What was said since the base of what is sent.
    since: Vec<Outline>,
    /// What is sent otherwise than it was said, each with its place in that.
    otherwise: Vec<(usize, Outline)>,
}

impl Snapshot {
    /// The snapshot of a run.
    pub fn of(run: &Run) -> Snapshot {
        let said = || run.transcript.entries();
        let mut otherwise = Vec::new();
        for (place, (said, sent)) in said().zip(run.context.entries()).enumerate() {
            if !Arc::ptr_eq(said, sent) && said != sent {
                otherwise.push((place, Outline::of_sent(sent, Some(said))));
            }
        }
        let since = said().map(|entry| Outline::of_sent(entry, Some(entry))).collect();
        Snapshot { run: run.clone(), put_away: run.transcript.outlines().clone(), since, otherwise }
    }

    /// The record that it was made at.
    pub fn seq(&self) -> Seq {
        self.run.seq
    }

    /// The run, with the texts of its conversation since the base as the records have them: `event` gives what
    /// happened at a position. Errors when it is another run, or the journal does not have the texts.
    pub fn restore(self, id: &RunId, mut event: impl FnMut(Seq) -> Option<Event>) -> Result<Run, String> {
        let Snapshot { mut run, put_away, since, otherwise } = self;
        if run.id != *id {
            return Err(format!("it is of run {}", run.id));
        }
        let since: Vec<Arc<Entry>> =
            since.into_iter().map(|outline| outline.whole(&mut event)).collect::<Result<_, String>>()?;
        let mut sent = since.clone();
        for (place, outline) in otherwise {
            let whole = outline.whole(&mut event)?;
            match sent.get_mut(place) {
                Some(one) => *one = whole,
                None => return Err(format!("entry {place} is not part of what is sent")),
            }
        }
        run.transcript = Transcript::of(put_away, since);
        run.context.put_back(sent.into_iter(), run.created);
        run.offer = fold::offer(&run.terms);
        Ok(run)
    }
}
