//! Making room before the model is asked: the steps of `policy/compaction.rs` as events.

use crate::domain::context::Author;
use crate::domain::event::Event;
use crate::domain::run::Run;
use crate::domain::status::ParkReason;
use crate::domain::time::Now;
use crate::machine::events;
use crate::policy::compaction;
use crate::policy::compaction::Step;

/// The next group, if room must be made first.
pub fn step(run: &Run, now: Now) -> Option<Vec<Event>> {
    Some(match compaction::step(run)? {
        Step::Prune(refs) => vec![Event::ContextPruned { refs }],
        Step::Ask(from, to) => ask(run).unwrap_or_else(|reason| {
            if reason == ParkReason::ContextExhausted { vec![listed(run, from, to)] } else { events::parked(reason) }
        }),
        Step::List(from, to) => vec![listed(run, from, to)],
        Step::Again => vec![Event::RetryScheduled { at: now.at, why: "older results are left out now".to_string() }],
        Step::Park => events::parked(ParkReason::ContextExhausted),
    })
}

/// Asks for a summary. The error is why that can't be.
fn ask(run: &Run) -> Result<Vec<Event>, ParkReason> {
    let request = compaction::request(run).ok_or(ParkReason::ContextExhausted)?;
    events::asked(run, &request).map_err(|refused| refused.reason)
}

fn listed(run: &Run, from: u32, to: u32) -> Event {
    compacted(run, (from, to), compaction::listed(run, from, to), Author::Engine)
}

/// The event that moves the base.
pub fn compacted(run: &Run, (from, to): (u32, u32), summary: String, author: Author) -> Event {
    let (cut, rest) = compaction::sizes(run, to);
    let after = rest.saturating_add(summary.len() as u64);
    Event::ContextCompacted { from, to, summary, author, before: cut.saturating_add(rest), after }
}
