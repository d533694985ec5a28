//! What an input means, as facts. It records what is so and decides nothing about what comes next.

use crate::domain::approval::Resolution;
use crate::domain::budget::Axis;
use crate::domain::budget::Limit;
use crate::domain::budget::ReservationId;
use crate::domain::command::Command;
use crate::domain::command::Control;
use crate::domain::command::PlanEdit;
use crate::domain::command::Policy;
use crate::domain::command::Refusal;
use crate::domain::control;
use crate::domain::event::Event;
use crate::domain::event::Finding;
use crate::domain::event::Owner;
use crate::domain::event::OwnerMode;
use crate::domain::id::CallId;
use crate::domain::id::ClientId;
use crate::domain::id::InterjectionId;
use crate::domain::limits;
use crate::domain::money::MicroUsd;
use crate::domain::money::Price;
use crate::domain::pricing::Pricing;
use crate::domain::run::Run;
use crate::domain::run::Waits;
use crate::domain::status::Failure;
use crate::domain::status::Finish;
use crate::domain::status::Lack;
use crate::domain::status::ParkReason;
use crate::domain::status::Status;
use crate::domain::time::Now;
use crate::domain::tool::OutcomeKind;
use crate::domain::tool::ToolOutcome;
use crate::machine::Input;
use crate::machine::deciding;
use crate::machine::events::status;
use crate::machine::fold_in;
use crate::machine::outcome;
use crate::machine::steer;
use crate::machine::trusting;
use crate::machine::word;
use crate::policy::charge;
use crate::policy::compaction;
use crate::policy::deadline;
use crate::policy::plan_edit;
use crate::policy::spending;

/// The events that an input means. A refusal means that it does not fit; nothing changed.
pub fn respond(run: &Run, input: &Input, now: Now) -> Result<Vec<Event>, Refusal> {
    match input {
        Input::Recovered { owner, lacks } => Ok(recovered(run, owner, lacks, now)),
        Input::Command(command, client) => match deadline::refusal(run, command, now.at) {
            Some(refusal) => Err(refusal),
            None => obey(run, command, None, client),
        },
        Input::Outcome(outcome) => outcome::record(run, outcome),
        Input::Unready { lacks, by } => unready(run, lacks, by.as_ref()),
        Input::Tick => Ok(tick(run, now)),
    }
}

/// A new owner; the one before is gone, and what became of its work is unknown (docs/ENGINE.md §10.7).
fn recovered(run: &Run, owner: &Owner, lacks: &[Lack], now: Now) -> Vec<Event> {
    let mut group = vec![Event::OwnerAcquired { owner: owner.clone() }];
    if owner.mode == OwnerMode::Drives && !run.is_ended() {
        group.extend(trusting::after_restart(run));
    }
    match &run.status {
        Status::Queued => match (owner.mode, lacks.first()) {
            (OwnerMode::Records, _) => {}
            (OwnerMode::Drives, Some(_)) => group.extend(parked_for(lacks)),
            (OwnerMode::Drives, None) => group.push(status(Status::Running, None)),
        },
        Status::Running => group.extend(interrupted(run, lacks, now)),
        Status::Parked(_) | Status::Completed(_) | Status::Failed(_) | Status::Cancelled => {}
    }
    group
}

/// What the death of a driving process means.
fn interrupted(run: &Run, lacks: &[Lack], now: Now) -> Vec<Event> {
    let model = run.model_call.map(|call| Finding::ModelCallLost(call.id.call));
    let tools = run.running_calls().map(|call| Finding::ToolCallLost(call.id));
    let check = run.running_check().map(Finding::CheckLost);
    let findings = model.into_iter().chain(tools).chain(check).collect();
    let mut group = vec![Event::Recovered { findings }];
    if let Some(held) = run.pool.reserved() {
        group.push(Event::BudgetSettled { id: held.id, charge: charge::of_crash(held) });
    }
    // A cancel that was recorded is completed, not undone.
    if !matches!(run.control, Some(Control::Cancel(_))) {
        let mut after = run.clone();
        let fits = group.iter().all(|event| fold_in(&mut after, event.clone(), now).is_ok());
        let head = after.head().filter(|_| fits).and_then(|call| after.waits(call));
        let reason = match head {
            Some(waits) => waits.reason(),
            None if after.progress.recoveries > limits::RECOVERIES || broke_down(lacks) => ParkReason::EnginePanic,
            None => ParkReason::Interrupted,
        };
        group.push(status(Status::Parked(reason), None));
    }
    group
}

/// Whether the loop itself is what stands against going on.
fn broke_down(lacks: &[Lack]) -> bool {
    lacks.iter().any(|lack| lack.reason == ParkReason::EnginePanic)
}

/// A time was reached: a run that waited for its provider goes on.
fn tick(run: &Run, now: Now) -> Vec<Event> {
    let waited = matches!(run.status, Status::Parked(_)) && run.is_driven();
    let reached = run.wakes_at().is_some_and(|at| at <= now.at);
    if waited && reached { vec![status(Status::Running, None)] } else { Vec::new() }
}

fn obey_after_end(run: &Run, command: &Command, client: &ClientId) -> Result<Vec<Event>, Refusal> {
    if *command == Command::Leave {
        return Ok(Vec::new());
    }
    if *command == Command::Retry {
        return retry(run, client);
    }
    // What a charge really was may be known only long after the end.
    if let Command::Correct { id, amount } = command {
        return correct(run, *id, *amount, client);
    }
    let refusal = if matches!(command, Command::Interject { .. }) { Refusal::EndedUnsaid } else { Refusal::Ended };
    Err(refusal(run.status.clone()))
}

fn obey(run: &Run, command: &Command, code: Option<&str>, client: &ClientId) -> Result<Vec<Event>, Refusal> {
    if run.is_ended() {
        return obey_after_end(run, command, client);
    }
    match command {
        Command::Decide { call, digest, decision } => deciding::decide(run, *call, digest, decision, (code, client)),
        Command::Resolve { call, resolution } => resolve(run, *call, resolution, (code, client)),
        Command::Coded { code, leave } => obey(run, leave, Some(code), client),
        Command::AllowAll { calls } => deciding::allow_all(run, calls, client),
        Command::SetTrust(trust) => Ok(trusting::set(run, *trust, client)),
        Command::Answer { call, text } => answer(run, *call, text, client),
        Command::Interject { text, policy } => interject(run, text, *policy, client),
        Command::Withdraw(id) => withdraw(run, *id, client),
        Command::Pause(_) if !run.is_running() => Err(Refusal::NotRunning(run.status.clone())),
        Command::Pause(pause) => Ok(request(run, Control::Pause(*pause), client)),
        Command::Resume => resume(run, Some(client)),
        Command::GrantReplans => word::grant(run, client),
        Command::Confirm { claim, confirmed, text } => word::confirm(run, claim, (*confirmed, text), client),
        Command::Accept => word::end(run, Status::Completed(Finish::AcceptedByOperator), client),
        Command::Close => word::end(run, Status::Failed(Failure::ClosedByOperator), client),
        Command::Retry => Err(Refusal::NotEnded(run.status.clone())),
        Command::Cancel(cancel) => Ok(request(run, Control::Cancel(*cancel), client)),
        Command::Raise { axis, limit } => raise(run, *axis, *limit, client),
        Command::EditPlan(edit) => edit_plan(run, edit, client),
        Command::Price { price } => choose_price(run, *price, client),
        Command::Correct { id, amount } => correct(run, *id, *amount, client),
        Command::Leave if !run.is_running() => Ok(Vec::new()),
        Command::Leave => Ok(request(run, Control::Leave, client)),
    }
}

/// Records a request to stop, unless one at least as strong is recorded already.
fn request(run: &Run, control: Control, client: &ClientId) -> Vec<Event> {
    if run.control >= Some(control) {
        return Vec::new();
    }
    vec![Event::ControlRequested { control, by: client.clone() }]
}

fn resolve(
    run: &Run,
    id: CallId,
    resolution: &Resolution,
    (code, client): (Option<&str>, &ClientId),
) -> Result<Vec<Event>, Refusal> {
    let call =
        run.calls.get(&id).filter(|call| run.waits(call) == Some(Waits::Outcome)).ok_or(Refusal::NoSuchCall(id))?;
    if *resolution == Resolution::RunAgain {
        deciding::coded(run, id, code)?;
    }
    let mut group = vec![Event::ToolOutcomeResolved { call: id, resolution: resolution.clone(), by: client.clone() }];
    let result = match resolution {
        Resolution::Happened(text) => {
            let words = said(text, Empty::Fits)?;
            let told = if words.is_empty() {
                "the operator says that it happened; its output is lost".to_string()
            } else {
                words
            };
            Some((OutcomeKind::Done, told))
        }
        Resolution::NotHappened => Some((OutcomeKind::Failed, "the operator says that it did not happen".to_string())),
        Resolution::Skip => Some((OutcomeKind::Unknown, "outcome unknown, skipped by operator".to_string())),
        Resolution::RunAgain => None,
    };
    group.extend(
        result.map(|(kind, text)| Event::ToolCallFinished { call: id, outcome: ToolOutcome::not_run(kind, text) }),
    );
    let others = run.waiting().iter().any(|(other, waits)| *waits == Waits::Outcome && other.id != call.id);
    if run.status == Status::Parked(ParkReason::OutcomeUnknown) && run.is_driven() && !others {
        group.push(status(Status::Running, Some(client)));
    }
    Ok(group)
}

fn answer(run: &Run, id: CallId, text: &str, client: &ClientId) -> Result<Vec<Event>, Refusal> {
    let call = run.calls.get(&id).filter(|call| call.tool == control::ASK_OPERATOR && !call.is_closed());
    call.ok_or(Refusal::NoSuchCall(id))?;
    let text = said(text, Empty::Refused)?;
    let outcome = ToolOutcome::not_run(OutcomeKind::Done, text.clone());
    let mut group = vec![
        Event::QuestionAnswered { call: id, text, by: client.clone() },
        Event::ToolCallFinished { call: id, outcome },
    ];
    if run.status == Status::Parked(ParkReason::Question) && run.is_driven() {
        group.push(status(Status::Running, Some(client)));
    }
    Ok(group)
}

fn edit_plan(run: &Run, edit: &PlanEdit, client: &ClientId) -> Result<Vec<Event>, Refusal> {
    let (plan, told) = plan_edit::edited(&run.plan, edit).map_err(Refusal::BadPlan)?;
    Ok(vec![Event::PlanUpdated { plan, by: Some(client.clone()), told }])
}

fn interject(run: &Run, text: &str, policy: Policy, client: &ClientId) -> Result<Vec<Event>, Refusal> {
    if run.interjections.len() >= limits::INTERJECTIONS_MAX {
        return Err(Refusal::TooMany);
    }
    let text = said(text, Empty::Refused)?;
    Ok(vec![Event::InterjectionQueued { id: run.next.interjection, text, by: client.clone(), policy }])
}

/// Takes back what was said, unless the model was told. Taken back twice is taken back.
fn withdraw(run: &Run, id: InterjectionId, client: &ClientId) -> Result<Vec<Event>, Refusal> {
    if run.interjections.iter().any(|one| one.id == id) {
        return Ok(vec![Event::InterjectionWithdrawn { id, by: client.clone() }]);
    }
    if id >= run.next.interjection || id < InterjectionId(1) {
        return Err(Refusal::NeverSaid(id));
    }
    if run.transcript.has_operator(id) { Err(Refusal::AlreadyDelivered(id)) } else { Ok(Vec::new()) }
}

/// Whether a text may be empty.
#[derive(PartialEq)]
pub(crate) enum Empty {
    Fits,
    Refused,
}

pub(crate) fn said(text: &str, empty: Empty) -> Result<String, Refusal> {
    let text = text.trim();
    if text.is_empty() && empty == Empty::Refused {
        return Err(Refusal::Empty);
    }
    if text.len() > limits::SAY_MAX_BYTES {
        return Err(Refusal::TooLong);
    }
    Ok(text.to_string())
}

/// Goes on, if what the run is parked for is cleared (docs/ENGINE.md §3.2, T7).
fn resume(run: &Run, client: Option<&ClientId>) -> Result<Vec<Event>, Refusal> {
    let Status::Parked(reason) = &run.status else { return Err(Refusal::NotParked(run.status.clone())) };
    if run.needs_grant() {
        return Err(Refusal::NeedsGrant);
    }
    let not_cleared = match reason {
        ParkReason::Confirm => run.confirming().is_some(),
        ParkReason::Approval | ParkReason::OutcomeUnknown | ParkReason::Question => {
            // What waits by now may be something else; then the loop parks the run for that. What a word of the
            // operator keeps from being run needs no decision any more.
            let head = run.head().filter(|call| !steer::is_kept_from_running(run, call));
            head.and_then(|call| run.waits(call)).is_some_and(|waits| waits.reason() == *reason)
        }
        // The clock alone says whether a deadline is past (`policy::deadline`).
        ParkReason::Budget(Axis::Deadline) => false,
        ParkReason::Budget(axis) => run.pool.is_exhausted(*axis) || !bears_next(run, *axis),
        ParkReason::ContextExhausted => compaction::is_hopeless(run),
        ParkReason::PriceUnknown => run.pricing == Pricing::Unknown,
        ParkReason::DenyBreaker
        | ParkReason::AskBreaker
        | ParkReason::DailyBudget { .. }
        | ParkReason::NotReady
        | ParkReason::Unexplained
        | ParkReason::Escalated(_)
        | ParkReason::Stalled(_)
        | ParkReason::Verification
        | ParkReason::ModelOutput
        | ParkReason::Refused
        | ParkReason::Credentials
        | ParkReason::Billing
        | ParkReason::Permission
        | ParkReason::ModelConfig
        | ParkReason::RateLimited { .. }
        | ParkReason::ProviderWait { .. }
        | ParkReason::Storage
        | ParkReason::Interrupted
        | ParkReason::Paused
        | ParkReason::Shutdown
        | ParkReason::EnginePanic => false,
    };
    if not_cleared {
        return Err(not_cleared_yet(run, reason));
    }
    Ok(vec![status(Status::Running, client)])
}

/// The run is to go on, and is parked for what it lacks: nothing is asked of anybody. What it was parked for before
/// must be cleared first, and counts as cleared then.
fn unready(run: &Run, lacks: &[Lack], client: Option<&ClientId>) -> Result<Vec<Event>, Refusal> {
    let mut group = resume(run, client)?;
    match lacks.first() {
        Some(Lack { reason, sentence }) if is_parked_for(run, reason) => {
            let remedy = format!("{sentence}; then resume");
            return Err(Refusal::ReasonNotCleared { reason: reason.clone(), remedy });
        }
        Some(_) | None => group.extend(parked_for(lacks)),
    }
    Ok(group)
}

/// Whether the run is parked for this already; numbers may have moved.
fn is_parked_for(run: &Run, reason: &ParkReason) -> bool {
    match &run.status {
        Status::Parked(now) => std::mem::discriminant(now) == std::mem::discriminant(reason),
        Status::Queued | Status::Running | Status::Completed(_) | Status::Failed(_) | Status::Cancelled => false,
    }
}

/// What is missing, and the change of status for the first of it; nothing when nothing is.
pub(crate) fn parked_for(lacks: &[Lack]) -> Vec<Event> {
    let Some(first) = lacks.first() else { return Vec::new() };
    let sentences = lacks.iter().map(|lack| lack.sentence.clone()).collect();
    vec![Event::PreflightFailed { lacks: sentences }, status(Status::Parked(first.reason.clone()), None)]
}

fn not_cleared_yet(run: &Run, reason: &ParkReason) -> Refusal {
    let remedy = if let ParkReason::Budget(axis) = reason {
        let raising = spending::raising(run, *axis);
        format!("raise the limit at least so far: {raising}; then resume; nothing is redone")
    } else {
        run.remedy_of(reason)
    };
    Refusal::ReasonNotCleared { reason: reason.clone(), remedy }
}

/// Takes up a run that failed or was cancelled (docs/ENGINE.md §3.2, T13). Under an owner that only records it waits
/// for its resume. A completed run is never opened again.
fn retry(run: &Run, client: &ClientId) -> Result<Vec<Event>, Refusal> {
    match &run.status {
        Status::Failed(_) | Status::Cancelled if run.is_driven() => Ok(vec![status(Status::Running, Some(client))]),
        Status::Failed(_) | Status::Cancelled => Ok(vec![status(Status::Parked(ParkReason::Paused), Some(client))]),
        Status::Completed(_) => Err(Refusal::Ended(run.status.clone())),
        Status::Queued | Status::Running | Status::Parked(_) => Err(Refusal::NotEnded(run.status.clone())),
    }
}

/// Whether the axis bears the worst case of the next request.
fn bears_next(run: &Run, axis: Axis) -> bool {
    let worst = spending::worst_case(run, &spending::due(run));
    !run.pool.refuses(worst.amount, worst.tokens).any(|refused| refused == axis)
}

/// Takes the operator's word on what the model costs (docs/ENGINE.md §8.4).
fn choose_price(run: &Run, price: Option<Price>, client: &ClientId) -> Result<Vec<Event>, Refusal> {
    if run.terms.model.price.is_some() {
        return Err(Refusal::BadPrice("what the model costs was known when the run was started".to_string()));
    }
    if run.model_call.is_some() {
        // What is under way was reserved at the price of then, and is charged at it.
        return Err(Refusal::BadPrice("a model call is under way; pause the run first".to_string()));
    }
    if price.is_none() && run.pool.limits().on(Axis::Tokens) == Limit::Unlimited {
        let id = run.id.short();
        return Err(Refusal::BadPrice(format!(
            "without a price something must bound the run: first `tiller raise {id} tokens N`"
        )));
    }
    Ok(vec![Event::PriceChosen { price, by: client.clone() }])
}

/// Takes an actual figure for a charge in doubt (docs/ENGINE.md §8.3).
fn correct(run: &Run, id: ReservationId, amount: MicroUsd, client: &ClientId) -> Result<Vec<Event>, Refusal> {
    let mut after = run.pool.clone();
    after.correct(id, amount).map_err(Refusal::BadCorrection)?;
    Ok(vec![Event::BudgetCorrected { id, amount, by: client.clone() }])
}

fn raise(run: &Run, axis: Axis, limit: Limit, client: &ClientId) -> Result<Vec<Event>, Refusal> {
    if limit == Limit::At(0) {
        return Err(Refusal::BadLimit(format!("a limit of {} can't be zero; write unlimited for none", axis.word())));
    }
    if axis == Axis::Tokens && limit == Limit::Unlimited && run.pricing == Pricing::Off {
        return Err(Refusal::BadLimit("money is not counted in this run, so its tokens must be bounded".to_string()));
    }
    let used = run.pool.used(axis);
    if axis != Axis::Deadline && !limit.bears(used) {
        let text = format!("{} is used already on {}", axis.show(used), axis.word());
        return Err(Refusal::BadLimit(text));
    }
    Ok(vec![Event::BudgetRaised { axis, limit, by: client.clone() }])
}
