//! What the end of some work means: of a model call, a tool call, a check, a preparation, a probe.

use crate::domain::budget::Charge;
use crate::domain::command::Control;
use crate::domain::command::Refusal;
use crate::domain::context::Author;
use crate::domain::event::Event;
use crate::domain::id::CallId;
use crate::domain::id::ModelCallId;
use crate::domain::model::FailureClass;
use crate::domain::model::ModelFailure;
use crate::domain::model::ModelReply;
use crate::domain::model::Purpose;
use crate::domain::run::Run;
use crate::domain::status::Phase;
use crate::domain::tool::CallState;
use crate::domain::tool::EffectClass;
use crate::domain::tool::Facts;
use crate::domain::tool::OutcomeKind;
use crate::domain::tool::Probe;
use crate::domain::tool::ToolOutcome;
use crate::machine::Outcome;
use crate::machine::advance;
use crate::machine::compaction::compacted;
use crate::policy::charge;
use crate::policy::claim;
use crate::policy::compaction;
use crate::policy::judge;
use crate::policy::pruning;
use crate::policy::reply;

/// The events that an outcome means. `Stale` when it is of something that is not in flight any more.
pub fn record(run: &Run, outcome: &Outcome) -> Result<Vec<Event>, Refusal> {
    match outcome {
        Outcome::Model { call, result } => model(run, *call, result),
        Outcome::Prepared(facts) => Ok(prepared(run, facts)),
        Outcome::Tool { call, outcome } => {
            running(run, *call)?;
            Ok(vec![Event::ToolCallFinished { call: *call, outcome: ended(run, outcome) }])
        }
        Outcome::Drifted { call, why } => {
            running(run, *call)?;
            Ok(vec![Event::ApprovalInvalidated { call: *call, why: why.clone() }])
        }
        Outcome::Check { index, passed, detail } => {
            checking(run, *index)?;
            Ok(vec![Event::AcceptanceChecked { index: *index, passed: *passed, detail: detail.clone() }])
        }
        Outcome::CheckEnded { index } => {
            checking(run, *index)?;
            Ok(vec![Event::CheckInterrupted { index: *index }])
        }
        Outcome::Probed { call, probe } => probed(run, *call, *probe),
        Outcome::ReadBack { call, text } => read_back(run, *call, text.as_deref()),
    }
}

/// A call that was ended while it ran says by whom (docs/ENGINE.md §10.4).
fn ended(run: &Run, outcome: &ToolOutcome) -> ToolOutcome {
    let who = match (outcome.kind, run.control) {
        (OutcomeKind::Cancelled, Some(Control::Cancel(_))) => "cancelled by operator while running",
        (OutcomeKind::Cancelled, Some(Control::Pause(_))) => "ended by the operator's pause while running",
        (OutcomeKind::Cancelled, Some(Control::Leave)) => "ended while running, because the operator left",
        _ => return outcome.clone(),
    };
    let text = match outcome.text.trim() {
        "" => who.to_string(),
        partial => format!("{who}, partial output follows\n{partial}"),
    };
    ToolOutcome { text, ..outcome.clone() }
}

fn running(run: &Run, call: CallId) -> Result<(), Refusal> {
    let runs = run.calls.get(&call).is_some_and(|call| call.state == CallState::Running);
    if runs { Ok(()) } else { Err(Refusal::Stale) }
}

fn checking(run: &Run, index: usize) -> Result<(), Refusal> {
    if run.running_check() == Some(index) { Ok(()) } else { Err(Refusal::Stale) }
}

fn model(
    run: &Run,
    call: ModelCallId,
    result: &Result<Box<ModelReply>, Box<ModelFailure>>,
) -> Result<Vec<Event>, Refusal> {
    let flying = run.model_call.filter(|flying| flying.id.call == call).ok_or(Refusal::Stale)?;
    let held = run.pool.reserved().ok_or(Refusal::Stale)?;
    let price = run.pricing.price();
    let settled = |charge: Charge| Event::BudgetSettled { id: flying.id, charge };
    let verdict = match flying.purpose {
        Purpose::Judge(index) => Some(judged(index, result)),
        Purpose::Turn | Purpose::Summary => None,
    };
    match result {
        Err(failure) => {
            let failed = Event::ModelCallFailed { call, failure: failure.clone() };
            let settled = settled(charge::of_failure(failure, held, &price));
            Ok([failed, settled].into_iter().chain(verdict).collect())
        }
        Ok(got) if verdict.is_some() => {
            let finished = Event::ModelCallFinished { call, reply: got.clone(), discarded: None };
            Ok([finished, settled(charge::of_reply(got, held, &price))].into_iter().chain(verdict).collect())
        }
        Ok(got) if flying.purpose == Purpose::Summary => {
            let judged = compaction::judge(run, got);
            let finished =
                Event::ModelCallFinished { call, reply: got.clone(), discarded: judged.as_ref().err().cloned() };
            let made = judged.ok().zip(compaction::cut(run));
            let made = made.map(|(summary, iterations)| compacted(run, iterations, summary, Author::Model));
            let settled = settled(charge::of_reply(got, held, &price));
            Ok([finished, settled].into_iter().chain(made).collect())
        }
        Ok(got) => {
            let discarded = reply::discarded(run, got);
            let is_used = discarded.is_none() && run.iteration.phase != Phase::WrapUp;
            let mut group = vec![
                Event::ModelCallFinished { call, reply: got.clone(), discarded },
                settled(charge::of_reply(got, held, &price)),
            ];
            if is_used {
                group.extend(proposed(run, got));
            }
            Ok(group)
        }
    }
}

/// What a judge's answer means for its check. A judge that was ended is asked again, with all other checks.
fn judged(index: usize, result: &Result<Box<ModelReply>, Box<ModelFailure>>) -> Event {
    match result {
        Ok(reply) => {
            let (passed, detail) = judge::read(reply);
            Event::AcceptanceChecked { index, passed, detail }
        }
        Err(failure) if failure.class == FailureClass::Cancelled => Event::CheckInterrupted { index },
        Err(failure) => Event::AcceptanceChecked { index, passed: false, detail: judge::failed(failure) },
    }
}

/// The calls of a reply, with ids of ours; those that can't be made are answered at once.
fn proposed(run: &Run, got: &ModelReply) -> Vec<Event> {
    let mut group = Vec::new();
    // All calls first: the conversation has the whole reply before the first of its results.
    let mut answers = Vec::new();
    let mut id = run.next.call;
    let mut wire_ids: Vec<String> = Vec::new();
    for asked in reply::calls(got) {
        let wire_id = wire_id(run, &wire_ids, &asked.id, id);
        let arguments = reply::arguments(asked).to_string();
        let effect = reply::effect(run, &asked.name).unwrap_or(EffectClass::External);
        let problem = reply::problem(run, &asked.name, &arguments);
        wire_ids.push(wire_id.clone());
        group.push(Event::ToolCallProposed { call: id, wire_id, tool: asked.name.clone(), arguments, effect });
        if let Some(problem) = problem {
            let outcome = ToolOutcome::not_run(OutcomeKind::NotRun(problem.kind), problem.text);
            answers.push(Event::ToolCallFinished { call: id, outcome });
        }
        id = id.next();
    }
    group.extend(answers);
    group
}

/// The provider's id of a call; the engine's where it gave none, or one that the conversation has already. Some
/// servers count from zero in every reply (docs/ENGINE.md §14.3).
fn wire_id(run: &Run, taken: &[String], asked: &str, own: CallId) -> String {
    let is_free = |id: &String| !id.is_empty() && !taken.contains(id) && !run.transcript.order().has_wire_id(id);
    let others = (1..u32::MAX).map(|n| format!("{own}-{n}"));
    [asked.to_string(), own.to_string()].into_iter().chain(others).find(is_free).unwrap_or_default()
}

fn prepared(run: &Run, facts: &[(CallId, Facts)]) -> Vec<Event> {
    facts
        .iter()
        .filter(|(call, _)| run.calls.get(call).is_some_and(|call| call.state == CallState::Proposed))
        .map(|(call, facts)| Event::ToolCallPrepared { call: *call, facts: Box::new(facts.clone()) })
        .collect()
}

fn probed(run: &Run, id: CallId, probe: Probe) -> Result<Vec<Event>, Refusal> {
    let waits = run.calls.get(&id).is_some_and(|call| call.state == CallState::OutcomeUnknown { probed: false });
    if !waits {
        return Err(Refusal::Stale);
    }
    let mut group = vec![Event::ToolCallProbed { call: id, probe }];
    if probe == Probe::Done {
        let text = "done; the process was interrupted, and the file was found as it was to become";
        group.push(Event::ToolCallFinished { call: id, outcome: ToolOutcome::not_run(OutcomeKind::Done, text) });
    }
    Ok(group)
}

/// Answers a call that asked for what was put away.
fn read_back(run: &Run, id: CallId, text: Result<&str, &String>) -> Result<Vec<Event>, Refusal> {
    let call = run.calls.get(&id).filter(|call| call.state == CallState::Proposed).ok_or(Refusal::Stale)?;
    let outcome = match text {
        Ok(text) => {
            let page = claim::read(&call.arguments).and_then(|asked| pruning::page(text, &asked));
            return Ok(vec![page.map_or_else(|error| advance::invalid(call, error), |page| advance::done(call, page))]);
        }
        Err(why) => ToolOutcome::not_run(OutcomeKind::Failed, format!("the text could not be read: {why}")),
    };
    Ok(vec![Event::ToolCallFinished { call: id, outcome }])
}
