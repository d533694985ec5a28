//! Going back and branching off, as records: what must be so for it, and what is written. The journal that it rests on
//! is handed in; a fork's first records are copies of it (docs/ENGINE.md §15).

use crate::domain::budget::Axis;
use crate::domain::command::Refusal;
use crate::domain::event::Event;
use crate::domain::event::Record;
use crate::domain::id::ClientId;
use crate::domain::lineage;
use crate::domain::lineage::Behind;
use crate::domain::lineage::Here;
use crate::domain::run::Run;
use crate::domain::status::Status;
use crate::domain::terms::Terms;
use crate::domain::time::Now;
use crate::domain::time::Span;
use crate::domain::tool::CallState;
use crate::domain::trust::Trust;
use crate::machine::fold_in;

/// What going back led to.
#[derive(Clone, Debug, PartialEq)]
pub struct Rewound {
    /// The run as it stands now.
    pub run: Run,
    /// What is to be written.
    pub records: Vec<Record>,
    /// What is not undone.
    pub behind: Behind,
}

/// Goes back to the end of an iteration. `records` is the whole journal that `run` was folded from. Refused when the
/// iteration is not a closed one of the visible history, or the run is not parked, failed or cancelled.
pub fn rewind(run: &Run, records: &[Record], to: u32, client: &ClientId, now: Now) -> Result<Rewound, Refusal> {
    match &run.status {
        Status::Parked(_) | Status::Failed(_) | Status::Cancelled => {}
        Status::Completed(_) => return Err(Refusal::Ended(run.status.clone())),
        Status::Queued | Status::Running => return Err(Refusal::NotParked(run.status.clone())),
    }
    let to_seq = lineage::boundary(records, to).map_err(Refusal::NotABoundary)?;
    let upto: Vec<Record> = records.iter().take_while(|record| record.seq <= to_seq).cloned().collect();
    let past = Run::fold(&run.id, &upto)?;
    let mut after = run.clone();
    let mut written = Vec::new();
    // Decisions that were asked for or made, and not carried out, do not outlive what they were about.
    for call in run.ordered_calls() {
        if matches!(call.state, CallState::Awaiting { .. } | CallState::Approved) && !run.is_ended() {
            let why = format!("the run went back to the end of iteration {to}");
            written.push(fold_in(&mut after, Event::ApprovalInvalidated { call: call.id, why }, now)?);
        }
    }
    let event = Event::Rewound { to, to_seq, by: client.clone() };
    let record = Record { seq: after.seq.next(), at: now.at, active: now.active, event };
    after.rewind(Some(&past), &record)?;
    after.check()?;
    written.push(record);
    Ok(Rewound { run: after, records: written, behind: lineage::behind(records, to_seq) })
}

/// The part of a journal that a fork begins with, and the iteration that it ends with: the one that is asked for, or
/// the last closed one.
pub fn beginning(records: &[Record], asked: Option<u32>) -> Result<(&[Record], u32), Refusal> {
    let closed = lineage::boundaries(records);
    let last = closed.last().map_or(0, |(n, _)| *n);
    let iteration = asked.unwrap_or(last);
    let seq = lineage::boundary(records, iteration).map_err(Refusal::NotABoundary)?;
    let count = records.iter().take_while(|record| record.seq <= seq).count();
    Ok((records.get(..count).unwrap_or(records), iteration))
}

/// The record with which a run that was brought from elsewhere goes on, also one that has ended: what stands before it
/// was done, and paid, there. `here` is what holds in the place of what its journal says. Gives the run after it.
pub fn import(mut run: Run, here: Here, client: &ClientId, now: Now) -> Result<(Run, Record), Refusal> {
    let still = Now { at: now.at, active: Span(run.pool.used(Axis::Active)) };
    let record = fold_in(&mut run, Event::Imported { by: client.clone(), here: Some(here) }, still)?;
    run.check()?;
    Ok((run, record))
}

/// The record that makes a run of its own of a copy of another run's beginning; and that run. `run` is what the copy
/// folds to under its new name, `parent` the other run as it stands now: the fork does no more unasked than it does,
/// and at most what is usual, whatever it was started with.
pub fn fork(
    mut run: Run,
    parent: &Run,
    iteration: u32,
    mut terms: Terms,
    client: &ClientId,
    now: Now,
) -> Result<(Run, Record), Refusal> {
    terms.trust = terms.trust.min(parent.trust).min(Trust::Ask);
    terms.keep_full_trust &= parent.terms.keep_full_trust;
    if parent.brought.is_some() {
        // Also where the branch begins before it was brought here.
        terms.checks = parent.terms.checks.clone();
        terms.model.price = parent.terms.model.price;
    }
    // Where the copy has that record, it says by itself what of it is from elsewhere.
    let brought = parent.brought != run.brought;
    let event =
        Event::Forked { parent: parent.id.clone(), iteration, terms: Box::new(terms), brought, by: client.clone() };
    let record = fold_in(&mut run, event, Now { at: now.at, active: Span(0) })?;
    run.check()?;
    Ok((run, record))
}
