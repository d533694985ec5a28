//! What a change of trust means: the mode, and leave that becomes void with it (docs/ENGINE.md §9.6).

use crate::domain::approval::By;
use crate::domain::event::Event;
use crate::domain::id::ClientId;
use crate::domain::run::Run;
use crate::domain::status::ParkReason;
use crate::domain::status::Status;
use crate::domain::tool::CallState;
use crate::domain::tool::ToolCall;
use crate::domain::trust::Trust;
use crate::machine::events::status;
use crate::policy::permission;
use crate::policy::permission::Judgement;

/// The rule that takes full trust back when another process goes on with the run.
pub const RESTARTED: &str = "full trust is asked for again after a restart";

/// The operator sets the mode. What waits goes on waiting when it is loosened; leave that was not used yet is void when
/// it is tightened, and what waits is judged anew if it would not be asked about any more.
pub fn set(run: &Run, trust: Trust, client: &ClientId) -> Vec<Event> {
    if trust == run.trust {
        return Vec::new();
    }
    let mut group = vec![Event::TrustChanged { trust, by: By::Operator(client.clone()) }];
    group.extend(void(run, trust));
    let parked = run.status == Status::Parked(ParkReason::Approval) && run.is_driven();
    let is_head_void = run.head().is_some_and(|head| {
        group.iter().any(|event| matches!(event, Event::ApprovalInvalidated { call, .. } if *call == head.id))
    });
    if parked && is_head_void {
        group.push(status(Status::Running, Some(client)));
    }
    group
}

/// A process goes on with a run that another one drove under full trust.
pub fn after_restart(run: &Run) -> Vec<Event> {
    if run.trust != Trust::FullTrust || !run.trust_was_driven || run.terms.keep_full_trust {
        return Vec::new();
    }
    let mut group = vec![Event::TrustChanged { trust: Trust::Ask, by: By::Rule(RESTARTED.to_string()) }];
    group.extend(void(run, Trust::Ask));
    group
}

/// Leave that does not hold under a tighter mode.
fn void(run: &Run, trust: Trust) -> Vec<Event> {
    if trust > run.trust {
        return Vec::new();
    }
    let tighter = Run { trust, ..run.clone() };
    run.ordered_calls()
        .filter(|call| is_void(&tighter, call))
        .map(|call| Event::ApprovalInvalidated { call: call.id, why: format!("trust was set to {trust}") })
        .collect()
}

fn is_void(tighter: &Run, call: &ToolCall) -> bool {
    match &call.state {
        CallState::Approved => true,
        CallState::Awaiting { .. } => {
            let judged = call.facts.as_ref().map(|facts| permission::judge(tighter, call, facts, 0));
            !matches!(judged, Some(Judgement::Ask(_)))
        }
        CallState::Proposed
        | CallState::Prepared
        | CallState::Denied { .. }
        | CallState::Running
        | CallState::OutcomeUnknown { .. }
        | CallState::Closed(_) => false,
    }
}
