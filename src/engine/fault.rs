//! Points at which a test may have the process end itself, as if the machine had lost it (docs/TESTING.md, "Faults").
//!
//! `TILLER_FAULT=<point>:<nth>` names one point and how often it is passed before it takes effect; then the process is
//! ended with SIGKILL, so that nothing is tidied up. Without the variable each point is one look at a value that was
//! read once. This file can end the process and do nothing else: it must not change, delay or skip anything.

use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use nix::sys::signal::Signal;
use nix::sys::signal::kill;
use nix::unistd::getpid;
use tokio::sync::broadcast;

use crate::domain::approval::By;
use crate::domain::event::Event;
use crate::domain::event::Record;
use crate::domain::model::Delta;
use crate::domain::model::DeltaSource;

/// The variable.
const VARIABLE: &str = "TILLER_FAULT";

/// The side of something that becomes durable or has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Not yet.
    Before,
    /// Just now.
    After,
}

/// The point that the variable names, and how often it was passed.
#[derive(Debug)]
struct Fault {
    point: String,
    nth: u64,
    passed: AtomicU64,
}

impl Fault {
    /// Nothing when the text names no point: the process then goes on as without the variable.
    fn parse(text: &str) -> Option<Fault> {
        let (point, nth) = text.rsplit_once(':')?;
        let nth = nth.parse().ok().filter(|nth| *nth > 0)?;
        Some(Fault { point: point.to_string(), nth, passed: AtomicU64::new(0) })
    }

    /// Whether passing this point is the time at which the fault takes effect.
    fn strikes(&self, side: &str, label: &str) -> bool {
        self.point.strip_prefix(side).and_then(|rest| rest.strip_prefix(':')) == Some(label)
            && self.passed.fetch_add(1, Ordering::Relaxed) + 1 == self.nth
    }
}

fn armed() -> Option<&'static Fault> {
    static FAULT: OnceLock<Option<Fault>> = OnceLock::new();
    FAULT.get_or_init(|| std::env::var(VARIABLE).ok().and_then(|text| Fault::parse(&text))).as_ref()
}

/// A batch is about to be appended, or is durable. Its points are the groups in it, `before:C1` to `after:C9`.
pub fn batch(side: Side, records: &[Record]) {
    let Some(fault) = armed() else { return };
    let side = match side {
        Side::Before => "before",
        Side::After => "after",
    };
    if groups(records).into_iter().any(|group| fault.strikes(side, group)) {
        die();
    }
}

/// A tool is about to act, or has acted and nobody knows yet: `tool:before` and `tool:after`.
pub fn tool(side: Side) {
    let Some(fault) = armed() else { return };
    let label = match side {
        Side::Before => "before",
        Side::After => "after",
    };
    if fault.strikes("tool", label) {
        die();
    }
}

/// A tool acts: `tool:during` is passed when a running call says its first words.
pub fn during_tool(deltas: &broadcast::Sender<Delta>) {
    let Some(fault) = armed().filter(|fault| fault.point == "tool:during") else { return };
    let mut heard = deltas.subscribe();
    tokio::spawn(async move {
        while let Ok(delta) = heard.recv().await {
            if matches!(delta.source, DeltaSource::Tool(_)) {
                if fault.strikes("tool", "during") {
                    die();
                }
                return;
            }
        }
    });
}

/// The groups of records that a batch holds (docs/JOURNAL.md), each once, in the order in which they come.
fn groups(records: &[Record]) -> Vec<&'static str> {
    // What becomes void with a change of trust, or by a rewind, is part of their group.
    let voids = |record: &Record| matches!(record.event, Event::TrustChanged { .. } | Event::Rewound { .. });
    let is_void_by_another = records.iter().any(voids);
    let mut found = Vec::new();
    for event in records.iter().map(|record| &record.event) {
        if is_void_by_another && matches!(event, Event::ApprovalInvalidated { .. }) {
            continue;
        }
        if let Some(group) = group(event).filter(|group| !found.contains(group)) {
            found.push(group);
        }
    }
    found
}

/// The group that an event tells. Those that travel with others, or are alone in a group without a name, tell none.
fn group(event: &Event) -> Option<&'static str> {
    match event {
        Event::OwnerAcquired { .. } | Event::TrustChanged { by: By::Rule(_), .. } => Some("C1"),
        Event::IterationStarted { .. } => Some("C2"),
        Event::ModelCallStarted { .. } => Some("C3"),
        Event::ModelCallFinished { .. } | Event::ModelCallFailed { .. } => Some("C4"),
        Event::ToolCallPrepared { .. }
        | Event::ApprovalRequested { .. }
        | Event::ApprovalDecided { by: By::Rule(_), .. } => Some("C4b"),
        Event::ApprovalDecided { by: By::Operator(_), .. } => Some("C5"),
        Event::ToolCallStarted { .. } | Event::CheckStarted { .. } | Event::ConfirmationRequested { .. } => Some("C6"),
        Event::ToolCallFinished { .. }
        | Event::ApprovalInvalidated { .. }
        | Event::ToolCallProbed { .. }
        | Event::AcceptanceChecked { .. }
        | Event::CheckInterrupted { .. } => Some("C7"),
        Event::DoneClaimed { .. } | Event::ClaimJudged { .. } => Some("C7b"),
        Event::IterationClosed { .. } => Some("C8"),
        Event::ControlRequested { .. }
        | Event::InterjectionQueued { .. }
        | Event::InterjectionWithdrawn { .. }
        | Event::BudgetRaised { .. }
        | Event::BudgetCorrected { .. }
        | Event::PriceChosen { .. }
        | Event::TrustChanged { by: By::Operator(_), .. }
        | Event::ToolOutcomeResolved { .. }
        | Event::QuestionAnswered { .. }
        | Event::PlanUpdated { by: Some(_), .. }
        | Event::ConfirmationGiven { .. }
        | Event::ReplansGranted { .. }
        | Event::Rewound { .. }
        | Event::Forked { .. }
        | Event::Imported { .. }
        | Event::RestoreStarted { .. }
        | Event::RestoreFinished { .. } => Some("C9"),
        Event::RunCreated { .. }
        | Event::StatusChanged { .. }
        | Event::Recovered { .. }
        | Event::PreflightFailed { .. }
        | Event::InterjectionDelivered { .. }
        | Event::BudgetReserved { .. }
        | Event::BudgetSettled { .. }
        | Event::ContextPruned { .. }
        | Event::ContextCompacted { .. }
        | Event::RetryScheduled { .. }
        | Event::ToolCallProposed { .. }
        | Event::PlanUpdated { by: None, .. }
        | Event::ProgressObserved { .. }
        | Event::StallDetected { .. }
        | Event::Warned { .. } => None,
    }
}

/// Ends the process at once. Nothing below it runs: the signal can't be caught, and is there before the call returns.
fn die() {
    let _ = kill(getpid(), Signal::SIGKILL);
    std::process::abort();
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::domain::approval::Decision;
    use crate::domain::id::CallId;
    use crate::domain::id::ClientId;
    use crate::domain::id::Seq;
    use crate::domain::time::Span;
    use crate::domain::time::Timestamp;
    use crate::domain::tool::Digest;
    use crate::domain::trust::Trust;

    #[test]
    fn the_nth_passing_of_the_named_point_strikes() {
        let fault = Fault::parse("after:C4b:2").unwrap();
        let passed = [("after", "C4b"), ("before", "C4b"), ("after", "C4"), ("after", "C4b"), ("after", "C4b")];
        let struck: Vec<bool> = passed.iter().map(|(side, label)| fault.strikes(side, label)).collect();
        assert_eq!(struck, [false, false, false, true, false]);
    }

    #[test]
    fn what_names_no_point_does_nothing() {
        for text in ["", "after", "after:C4", "after:C4:0", "after:C4:x", ":", "1"] {
            let fault = Fault::parse(text);
            assert!(fault.is_none_or(|fault| !fault.strikes("after", "C4")), "{text}");
        }
    }

    #[test]
    fn a_batch_has_the_points_of_all_its_groups() {
        let decided = |by| Event::ApprovalDecided {
            call: CallId(1),
            digest: Digest(String::new()),
            decision: Decision::AllowOnce,
            by,
        };
        let events = [
            decided(By::Rule("reads".to_string())),
            Event::ToolCallStarted { call: CallId(1), attempt: 1 },
            Event::IterationStarted { n: 1, phase: crate::domain::status::Phase::Pursue },
            Event::ToolCallStarted { call: CallId(2), attempt: 1 },
            Event::Recovered { findings: Vec::new() },
            decided(By::Operator(ClientId("c".to_string()))),
        ];
        let record = |event| Record { seq: Seq(1), at: Timestamp(0), active: Span(0), event };
        assert_eq!(groups(&events.map(record)), ["C4b", "C6", "C2", "C5"]);
        let void = || Event::ApprovalInvalidated { call: CallId(1), why: String::new() };
        assert_eq!(groups(&[void()].map(record)), ["C7"]);
        let set = Event::TrustChanged { trust: Trust::Ask, by: By::Operator(ClientId("c".to_string())) };
        assert_eq!(groups(&[set, void()].map(record)), ["C9"]);
    }
}
