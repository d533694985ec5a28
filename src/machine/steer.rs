//! What the operator said, and what that does to the loop: which text is told when, what is not started for it, and
//! when a run goes on that would have ended (docs/ENGINE.md §12).

use crate::domain::command::Policy;
use crate::domain::control;
use crate::domain::event::Event;
use crate::domain::run::Interjection;
use crate::domain::run::Run;
use crate::domain::status::Course;
use crate::domain::status::Fired;
use crate::domain::status::ParkReason;
use crate::domain::status::Verdict;
use crate::domain::tool::CallState;
use crate::domain::tool::OutcomeKind;
use crate::domain::tool::ToolCall;
use crate::domain::tool::ToolOutcome;

/// The result of a call that was not started because the operator spoke.
const NOT_RUN: &str = "not run: operator steered";

/// Answers all calls that a word of the operator keeps from being started.
pub fn step(run: &Run) -> Option<Vec<Event>> {
    let kept = run.ordered_calls().filter(|call| is_kept_from_running(run, call));
    let group: Vec<Event> = kept
        .map(|call| {
            let outcome = ToolOutcome::not_run(OutcomeKind::Cancelled, NOT_RUN);
            Event::ToolCallFinished { call: call.id, outcome }
        })
        .collect();
    (!group.is_empty()).then_some(group)
}

/// Whether a word of the operator keeps this call from being started. What runs, what may have run, and what the
/// operator denied is answered in its own way; so is a claim that is being looked into.
pub fn is_kept_from_running(run: &Run, call: &ToolCall) -> bool {
    let is_claimed = call.tool == control::FINISH && run.iteration.claim.is_some();
    let is_open = match call.state {
        CallState::Proposed | CallState::Prepared | CallState::Awaiting { .. } | CallState::Approved => true,
        CallState::Denied { .. } | CallState::Running | CallState::OutcomeUnknown { .. } | CallState::Closed(_) => {
            false
        }
    };
    run.is_steered() && is_open && !is_claimed
}

/// Whether the open iteration ends without a reply, because the operator interrupted it. Asked when nothing runs.
pub fn is_interrupted(run: &Run) -> bool {
    let is_unanswered = run.iteration.is_open && run.iteration.reply.is_none();
    is_unanswered && run.interjections.iter().any(|one| one.policy == Policy::Interrupt)
}

/// What is told at the start of the iteration that is opened now.
pub fn due(run: &Run) -> impl Iterator<Item = &Interjection> {
    let is_prolonged = run.verdict.as_ref().is_some_and(|verdict| {
        let has_come_to_its_end =
            verdict.fired.iter().any(|fired| matches!(fired, Fired::Finish(_) | Fired::Verification));
        verdict.action == Course::Continue && has_come_to_its_end
    });
    run.interjections.iter().filter(move |one| is_prolonged || one.policy != Policy::AfterDone)
}

/// The verdict, unless the operator has something to say at the end: then the run goes on.
pub fn prolonged(run: &Run, verdict: Verdict) -> Verdict {
    let is_end = match &verdict.action {
        Course::Complete(_) | Course::Park(ParkReason::Verification) => true,
        Course::Park(_) | Course::Continue | Course::Replan | Course::WrapUp(_) => false,
    };
    let has_more = run.interjections.iter().any(|one| one.policy == Policy::AfterDone);
    if is_end && has_more { Verdict { action: Course::Continue, ..verdict } } else { verdict }
}
