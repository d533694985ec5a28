//! What a decision of the operator about calls that wait means: one call, a list of calls, or a changed call.

use crate::domain::approval::By;
use crate::domain::approval::Decision;
use crate::domain::command::Refusal;
use crate::domain::event::Event;
use crate::domain::id::CallId;
use crate::domain::id::ClientId;
use crate::domain::run::Run;
use crate::domain::sandbox::Manner;
use crate::domain::status::ParkReason;
use crate::domain::status::Status;
use crate::domain::tool::CallState;
use crate::domain::tool::Digest;
use crate::domain::tool::ToolCall;
use crate::machine::events::status;
use crate::machine::respond;
use crate::machine::respond::Empty;
use crate::policy::editing;
use crate::policy::grave;
use crate::policy::offering;
use crate::policy::permission;
use crate::policy::permission::Scope;

/// Whether this is the code of a call, where it needs one. Leave for a grave call passes here whoever sends it, so that no
/// room can forget to ask.
pub fn coded(run: &Run, id: CallId, code: Option<&str>) -> Result<(), Refusal> {
    let call = run.calls.get(&id).ok_or(Refusal::NoSuchCall(id))?;
    grave::of(call).map_or(Ok(()), |why| typed(run, call, (code, Manner::Usual), why))
}

fn typed(run: &Run, call: &ToolCall, (code, manner): (Option<&str>, Manner), why: String) -> Result<(), Refusal> {
    let Some(code) = code else { return Err(Refusal::NeedsCode(call.id, why)) };
    let has_it = |one: &ToolCall, manner| one.digest().is_some_and(|digest| digest.is_code(&run.id, manner, code));
    if has_it(call, manner) {
        return Ok(());
    }
    let has_any = |one: &ToolCall| [Manner::Usual, Manner::Unboxed].into_iter().any(|manner| has_it(one, manner));
    let other = run.waiting().into_iter().find(|(one, _)| one.id != call.id && has_any(one));
    Err(Refusal::WrongCode(call.id, other.map(|(one, _)| one.id)))
}

/// A decision about one call. Refused when the call does not wait, is not what was seen, or the decision does not fit.
pub fn decide(
    run: &Run,
    id: CallId,
    digest: &Digest,
    decision: &Decision,
    (code, client): (Option<&str>, &ClientId),
) -> Result<Vec<Event>, Refusal> {
    let call = awaiting(run, id, digest)?;
    let (scope, why) = permission::widest(run, call);
    let told = match decision {
        Decision::Deny(words) => Decision::Deny(respond::said(words, Empty::Fits)?),
        Decision::AllowRun if scope < Scope::Exact => return Err(Refusal::TooWide(id, why)),
        Decision::AllowTool if scope < Scope::Tool => return Err(Refusal::TooWide(id, why)),
        Decision::AllowRule(draft) => {
            offering::may_be_made(run, call, draft).map_err(Refusal::BadRule)?;
            decision.clone()
        }
        Decision::AllowUnboxed => {
            permission::can_leave_box(call).map_err(|why| Refusal::TooWide(id, why))?;
            Decision::AllowUnboxed
        }
        Decision::Edit(arguments) => {
            editing::fit(run, call, arguments).map_err(Refusal::BadEdit)?;
            decision.clone()
        }
        Decision::AllowOnce | Decision::AllowRun | Decision::AllowTool => decision.clone(),
    };
    match decision {
        Decision::AllowOnce | Decision::AllowRun | Decision::AllowTool | Decision::AllowRule(_) => {
            coded(run, id, code)?;
        }
        Decision::AllowUnboxed => typed(run, call, (code, Manner::Unboxed), grave::UNBOXED.to_string())?,
        // What was changed is judged anew, and its code is asked for then.
        Decision::Edit(_) | Decision::Deny(_) => {}
    }
    let mut group = vec![decided(id, digest, told, client)];
    group.extend(covered(run, call, decision));
    Ok(and_go_on(run, group, client))
}

/// Leave for each call of a list, once. All of them are decided or none; a call that is not on the list waits on.
pub fn allow_all(run: &Run, calls: &[(CallId, Digest)], client: &ClientId) -> Result<Vec<Event>, Refusal> {
    let mut group: Vec<Event> = Vec::new();
    for (place, (id, digest)) in calls.iter().enumerate() {
        awaiting(run, *id, digest)?;
        coded(run, *id, None)?;
        if calls.iter().take(place).all(|(before, _)| before != id) {
            group.push(decided(*id, digest, Decision::AllowOnce, client));
        }
    }
    Ok(and_go_on(run, group, client))
}

fn decided(call: CallId, digest: &Digest, decision: Decision, client: &ClientId) -> Event {
    Event::ApprovalDecided { call, digest: digest.clone(), decision, by: By::Operator(client.clone()) }
}

/// The call, if it waits for a decision and is what the operator saw.
fn awaiting<'a>(run: &'a Run, id: CallId, digest: &Digest) -> Result<&'a ToolCall, Refusal> {
    // A call that was there and is gone has its result, and so was decided about, by somebody or by its end.
    let gone = if id < run.next.call { Refusal::AlreadyDecided(id) } else { Refusal::NoSuchCall(id) };
    let call = run.calls.get(&id).ok_or(gone)?;
    let is_edited = call.edited.as_ref().is_some_and(|edited| edited.is_leave);
    match &call.state {
        CallState::Awaiting { .. } => {}
        CallState::Proposed | CallState::Prepared if !is_edited => return Err(Refusal::NoSuchCall(id)),
        CallState::Proposed
        | CallState::Prepared
        | CallState::Approved
        | CallState::Denied { .. }
        | CallState::Running
        | CallState::OutcomeUnknown { .. }
        | CallState::Closed(_) => return Err(Refusal::AlreadyDecided(id)),
    }
    if call.digest().as_ref() != Some(digest) {
        return Err(Refusal::BindingChanged(id));
    }
    Ok(call)
}

/// Other waiting calls that a grant covers as well.
fn covered(run: &Run, call: &ToolCall, decision: &Decision) -> Vec<Event> {
    let (rule, is_covered): (&str, &dyn Fn(&ToolCall) -> bool) = match decision {
        Decision::AllowRun => (permission::GRANTED, &|other| other.grant() == call.grant()),
        Decision::AllowTool => (permission::GRANTED_TOOL, &|other| permission::goes_with_tool(run, call, other)),
        Decision::AllowOnce
        | Decision::AllowRule(_)
        | Decision::AllowUnboxed
        | Decision::Edit(_)
        | Decision::Deny(_) => return Vec::new(),
    };
    run.ordered_calls()
        .filter(|other| other.id != call.id && matches!(other.state, CallState::Awaiting { .. }) && is_covered(other))
        .filter_map(|other| {
            let by = By::Rule(rule.to_string());
            Some(Event::ApprovalDecided { call: other.id, digest: other.digest()?, decision: Decision::AllowOnce, by })
        })
        .collect()
}

/// A run that was parked for decisions goes on when none holds it up any more.
fn and_go_on(run: &Run, mut group: Vec<Event>, client: &ClientId) -> Vec<Event> {
    let is_decided = |head: &ToolCall| {
        group.iter().any(|event| matches!(event, Event::ApprovalDecided { call, .. } if *call == head.id))
    };
    // The head may have been decided before, under an owner that only recorded.
    let holds_up = run.head().is_some_and(|head| run.waits(head).is_some() && !is_decided(head));
    if run.status == Status::Parked(ParkReason::Approval) && run.is_driven() && !holds_up {
        group.push(status(Status::Running, Some(client)));
    }
    group
}
