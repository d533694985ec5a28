//! What of a run is told to somebody who does not look at it (docs/ENGINE.md §11.2): which records, by which name, in
//! which sentence.

use crate::domain::approval::By;
use crate::domain::approval::Decision;
use crate::domain::event::ClaimVerdict;
use crate::domain::event::Event;
use crate::domain::event::Record;
use crate::domain::id::CallId;
use crate::domain::run::Run;
use crate::domain::status::ParkReason;
use crate::domain::status::Status;
use crate::domain::status::Warning;
use crate::domain::text::counted;
use crate::domain::tool::OutcomeKind;
use crate::policy::decider;

/// What is told of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The name of what happened.
    pub event: &'static str,
    /// What happened, in a sentence without its end. It may hold what a model or a tool said.
    pub sentence: String,
    /// Whether the operator is called: the run waits for them, or has ended.
    pub calls: bool,
}

/// What is told of a record; nothing of most. `run` is the run at that record or after it.
pub fn of(record: &Record, run: &Run) -> Option<Notice> {
    let told = |event, sentence: String| Some(Notice { event, sentence, calls: false });
    let calling = |event, sentence: String| Some(Notice { event, sentence, calls: true });
    match &record.event {
        Event::RunCreated { .. } => told("run_started", "the run was started".to_string()),
        Event::Forked { parent, iteration, .. } => {
            told("run_started", format!("the run branched off from run {parent} after its iteration {iteration}"))
        }
        Event::StatusChanged { status, .. } => of_status(status),
        Event::PreflightFailed { lacks } => calling("status_changed", lacks.join("; ")),
        Event::Recovered { findings } => told("recovered", was_recovered(findings.len())),
        Event::ApprovalRequested { call, why, .. } => {
            calling("approval_requested", format!("{} waits for a decision: {why}", named(run, *call)))
        }
        Event::ApprovalDecided { call, decision, by, .. } => {
            let told_of = format!(
                "{} was {} by {}",
                named(run, *call),
                word(decision, by),
                decider::whom(by, run.origin(record.seq))
            );
            told("approval_decided", told_of)
        }
        Event::ApprovalInvalidated { call, why } => {
            told("approval_invalidated", format!("what was decided about {} holds no longer: {why}", named(run, *call)))
        }
        Event::ToolCallFinished { call, outcome } if outcome.kind == OutcomeKind::Unknown => {
            told("outcome_unknown", format!("nobody knows what became of {}", named(run, *call)))
        }
        Event::Warned { what: Warning::Budget(_), text } => told("budget_warning", text.clone()),
        Event::StallDetected { diagnosis, .. } => told("stall", diagnosis.clone()),
        Event::ClaimJudged { verdict, text } => {
            let word = match verdict {
                ClaimVerdict::Verified => "verified",
                ClaimVerdict::Unverified => "taken without a check",
                ClaimVerdict::Rejected => "rejected",
                ClaimVerdict::Postponed => "put off",
            };
            told("verification", format!("the claim of being finished was {word}: {text}"))
        }
        Event::ConfirmationRequested { .. } => {
            calling("approval_requested", "a check asks whether the goal is reached".to_string())
        }
        Event::OwnerAcquired { .. }
        | Event::Imported { .. }
        | Event::Rewound { .. }
        | Event::RestoreStarted { .. }
        | Event::RestoreFinished { .. }
        | Event::ControlRequested { .. }
        | Event::IterationStarted { .. }
        | Event::InterjectionQueued { .. }
        | Event::InterjectionDelivered { .. }
        | Event::InterjectionWithdrawn { .. }
        | Event::BudgetReserved { .. }
        | Event::BudgetSettled { .. }
        | Event::BudgetRaised { .. }
        | Event::BudgetCorrected { .. }
        | Event::PriceChosen { .. }
        | Event::ModelCallStarted { .. }
        | Event::ModelCallFinished { .. }
        | Event::ModelCallFailed { .. }
        | Event::ContextPruned { .. }
        | Event::ContextCompacted { .. }
        | Event::RetryScheduled { .. }
        | Event::ToolCallProposed { .. }
        | Event::ToolCallPrepared { .. }
        | Event::TrustChanged { .. }
        | Event::ToolCallStarted { .. }
        | Event::ToolCallFinished { .. }
        | Event::ToolCallProbed { .. }
        | Event::ToolOutcomeResolved { .. }
        | Event::QuestionAnswered { .. }
        | Event::PlanUpdated { .. }
        | Event::DoneClaimed { .. }
        | Event::CheckStarted { .. }
        | Event::AcceptanceChecked { .. }
        | Event::CheckInterrupted { .. }
        | Event::ConfirmationGiven { .. }
        | Event::ReplansGranted { .. }
        | Event::ProgressObserved { .. }
        | Event::Warned { what: Warning::Stall(_), .. }
        | Event::IterationClosed { .. } => None,
    }
}

fn was_recovered(findings: usize) -> String {
    let were = if findings == 1 { "was" } else { "were" };
    format!("the process that ran it had died; {} {were} under way then", counted(findings, "thing"))
}

fn of_status(status: &Status) -> Option<Notice> {
    let (event, calls) = match status {
        Status::Completed(_) | Status::Failed(_) | Status::Cancelled => ("run_ended", true),
        Status::Parked(ParkReason::Budget(_) | ParkReason::DailyBudget { .. }) => ("budget_exhausted", true),
        Status::Parked(ParkReason::OutcomeUnknown) => ("outcome_unknown", true),
        // The operator did this, or it ends by itself.
        Status::Parked(
            ParkReason::Paused
            | ParkReason::Shutdown
            | ParkReason::RateLimited { .. }
            | ParkReason::ProviderWait { .. },
        ) => ("status_changed", false),
        Status::Parked(_) => ("status_changed", true),
        Status::Queued | Status::Running => ("status_changed", false),
    };
    Some(Notice { event, sentence: format!("the run is {}", status.phrase()), calls })
}

fn word(decision: &Decision, by: &By) -> &'static str {
    match decision {
        Decision::AllowOnce if matches!(by, By::Rule(_)) => "allowed",
        Decision::AllowOnce => "allowed once",
        Decision::AllowRun => "allowed for the run",
        Decision::AllowTool => "allowed for the run, with every call of its tool,",
        Decision::AllowRule(_) => "allowed, with a rule from now on,",
        Decision::AllowUnboxed => "allowed once, outside of the box,",
        Decision::Edit(_) => "changed and allowed",
        Decision::Deny(_) => "denied",
    }
}

/// A call in words: as it is known while its iteration is open, else its number.
fn named(run: &Run, call: CallId) -> String {
    match run.calls.get(&call) {
        Some(known) => format!("{call} ({} {})", known.tool, known.title()),
        None => format!("{call}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_one_thing() {
        let said = [0, 1, 2].map(was_recovered);
        let ends = ["0 things were under way then", "1 thing was under way then", "2 things were under way then"];
        assert!(said.iter().zip(ends).all(|(said, end)| said.ends_with(end)), "{said:?}");
    }
}
