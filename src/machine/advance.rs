//! What the loop does next, judged from where the run stands; empty means: wait for an input. It reads top to bottom
//! like the loop one would write by hand, but holds no program counter: it is asked again after every group.

use crate::domain::approval::By;
use crate::domain::approval::Decision;
use crate::domain::approval::Origin;
use crate::domain::budget::Axis;
use crate::domain::command::Control;
use crate::domain::command::Pause;
use crate::domain::control;
use crate::domain::event::ClaimVerdict;
use crate::domain::event::Event;
use crate::domain::limits;
use crate::domain::plan::PlanSource;
use crate::domain::run::ClaimStage;
use crate::domain::run::Run;
use crate::domain::status::Course;
use crate::domain::status::Failure;
use crate::domain::status::Fired;
use crate::domain::status::ParkReason;
use crate::domain::status::Phase;
use crate::domain::status::Status;
use crate::domain::status::Verdict;
use crate::domain::status::Warning;
use crate::domain::time::Now;
use crate::domain::tool::CallState;
use crate::domain::tool::EffectClass;
use crate::domain::tool::OutcomeKind;
use crate::domain::tool::Problem;
use crate::domain::tool::ProblemKind;
use crate::domain::tool::ToolCall;
use crate::domain::tool::ToolOutcome;
use crate::machine::acceptance;
use crate::machine::compaction;
use crate::machine::events;
use crate::machine::events::Unasked;
use crate::machine::events::parked;
use crate::machine::events::status;
use crate::machine::steer;
use crate::policy::claim;
use crate::policy::context;
use crate::policy::deadline;
use crate::policy::ending;
use crate::policy::ending::Noticed;
use crate::policy::permission;
use crate::policy::permission::Judgement;
use crate::policy::planning;
use crate::policy::progress;
use crate::policy::pruning;
use crate::policy::pruning::Found;
use crate::policy::reply;
use crate::policy::retry;
use crate::policy::spending;
use crate::policy::stall;
use crate::policy::wrapping;

/// The next group of events.
pub fn advance(run: &Run, now: Now) -> Vec<Event> {
    if run.is_ended() {
        return Vec::new();
    }
    // 1. What the operator asked for comes first. What is in flight ends before the status changes.
    match run.control.map(|control| honour(run, control)) {
        Some(Honoured::Do(group)) => return group,
        Some(Honoured::Wait) => return Vec::new(),
        Some(Honoured::NotYet) | None => {}
    }
    if !run.is_running() || !run.is_driven() {
        return Vec::new();
    }
    if let Some(group) = steer::step(run) {
        return group;
    }
    // 2. All calls of a reply are prepared together, then judged together, before any of them runs.
    if run.unprepared().next().is_some() {
        return Vec::new();
    }
    if let Some(group) = judge_all(run) {
        return group;
    }
    // 3. In the model's order: what needs no execution is answered, reads start side by side, anything else alone.
    if let Some(group) = answer_without_running(run) {
        return group;
    }
    let is_over = deadline::is_over(run, now.at);
    if let Some(group) = startable(run).and_then(|call| warn(run, call)) {
        return group;
    }
    if let Some(call) = startable(run).filter(|_| !is_over) {
        return vec![Event::ToolCallStarted { call: call.id, attempt: call.attempts + 1 }];
    }
    if run.is_busy() {
        return Vec::new();
    }
    if is_over && startable(run).is_some() {
        return parked(ParkReason::Budget(Axis::Deadline));
    }
    if steer::is_interrupted(run) {
        return close(run);
    }
    if run.retry_at.is_some_and(|at| now.at < at) && !is_over {
        return Vec::new();
    }
    // 4. What only a person can clear parks the run; the iteration stays open.
    if let Some(waits) = run.head().map(|call| run.waits(call)) {
        return waits.map(|waits| parked(waits.reason())).unwrap_or_default();
    }
    // 5. A text may hold the plan that no call gave; a claim of being finished is looked into.
    if let Some(accepted) = reply::planned(run) {
        let told = format!("No call of your turn gave a plan, so its text was read as one. {}", accepted.answer());
        return vec![Event::PlanUpdated { plan: accepted.plan, by: None, told }];
    }
    if let Some(group) = acceptance::step(run) {
        return group;
    }
    // 6. The iteration is answered: observe, judge, close.
    if run.iteration.is_open && run.iteration.reply.is_some() {
        return close(run);
    }
    // 7. Past its deadline nothing new is begun. What is nearly used up is said, before more of it is.
    if is_over {
        return parked(ParkReason::Budget(Axis::Deadline));
    }
    if let Some(warned) = spending::warning(run) {
        return vec![warned];
    }
    // Nobody reads what they are asked that often.
    if run.progress.asks_too_often(now.at) {
        return parked(ParkReason::AskBreaker);
    }
    // 8. The next iteration, or the model call of this one.
    if !run.iteration.is_open {
        return open(run);
    }
    ask_model(run, now)
}

/// What honouring a request to stop comes to.
enum Honoured {
    /// These events.
    Do(Vec<Event>),
    /// Something in flight must end first.
    Wait,
    /// Something outranks it.
    NotYet,
}

fn honour(run: &Run, control: Control) -> Honoured {
    // The iteration goes on to its end, unless it can't without the operator.
    let waits = run.head().is_some_and(|call| run.waits(call).is_some());
    if control == Control::Pause(Pause::AfterIteration) && run.iteration.is_open && !waits {
        return Honoured::NotYet;
    }
    if run.is_busy() {
        return Honoured::Wait;
    }
    match control {
        Control::Cancel(_) => {
            let closing = run.ordered_calls().filter(|call| !call.is_closed()).map(cancelled);
            let ended = status(Status::Cancelled, None);
            Honoured::Do(closing.chain([ended]).collect())
        }
        // A claim whose checks have all passed outranks a pause: nothing would be left to pause.
        Control::Pause(_) | Control::Leave if has_passed_all(run) => Honoured::NotYet,
        Control::Pause(_) => Honoured::Do(parked(ParkReason::Paused)),
        // What waits for the operator anyway keeps saying what it waits for.
        Control::Leave => {
            let waits = run.head().and_then(|call| run.waits(call));
            Honoured::Do(parked(waits.map_or(ParkReason::Shutdown, |waits| waits.reason())))
        }
    }
}

fn has_passed_all(run: &Run) -> bool {
    let all = run.terms.checks.len();
    if !run.iteration.is_open {
        return false;
    }
    match run.iteration.claim.as_ref().map(|claim| &claim.stage) {
        Some(ClaimStage::Passed(passed)) => *passed == all && all > 0,
        Some(ClaimStage::Judged(ClaimVerdict::Verified | ClaimVerdict::Unverified)) => true,
        Some(
            ClaimStage::Judged(ClaimVerdict::Rejected | ClaimVerdict::Postponed)
            | ClaimStage::Asking(_)
            | ClaimStage::Checking(_)
            | ClaimStage::CheckFailed { .. },
        )
        | None => false,
    }
}

/// How an open call ends when the run is cancelled (docs/ENGINE.md §10.4).
fn cancelled(call: &ToolCall) -> Event {
    unfinished(call, "outcome unknown; the run was cancelled", "cancelled by operator before start")
}

/// How an open call ends with its run: what is told where nobody knows its outcome, and where it did not run.
pub(crate) fn unfinished(call: &ToolCall, unknown: &str, not_run: &str) -> Event {
    let (kind, text) = match call.state {
        CallState::OutcomeUnknown { .. } => (OutcomeKind::Unknown, unknown),
        CallState::Proposed
        | CallState::Prepared
        | CallState::Awaiting { .. }
        | CallState::Approved
        | CallState::Denied { .. }
        | CallState::Running
        | CallState::Closed(_) => (OutcomeKind::Cancelled, not_run),
    };
    Event::ToolCallFinished { call: call.id, outcome: ToolOutcome::not_run(kind, text) }
}

/// A call that was allowed before a command changed what other programs run by themselves is asked about again: the
/// operator is told of that before anything else runs.
fn warn(run: &Run, call: &ToolCall) -> Option<Vec<Event>> {
    let is_void = call.state == CallState::Approved && permission::warning(run, call).is_some();
    let why = "a command changed what other programs run by themselves".to_string();
    is_void.then(|| vec![Event::ApprovalInvalidated { call: call.id, why }])
}

/// The judgement on every prepared call, as one group.
fn judge_all(run: &Run) -> Option<Vec<Event>> {
    let mut taken = permission::already_taken(run);
    let mut group = Vec::new();
    for call in run.ordered_calls().filter(|call| call.state == CallState::Prepared) {
        let (Some(facts), Some(digest)) = (&call.facts, call.digest()) else { continue };
        let by_rule = |rule: &str, decision| Event::ApprovalDecided {
            call: call.id,
            digest: digest.clone(),
            decision,
            by: By::Rule(rule.to_string()),
        };
        let judgement = permission::judge(run, call, facts, taken);
        let is_taken = matches!(
            judgement,
            Judgement::Allow(_) | Judgement::AllowByRule(_) | Judgement::AllowEdited(_) | Judgement::Ask(_)
        );
        taken += u64::from(is_taken);
        group.push(match judgement {
            Judgement::Allow(rule) => by_rule(rule, Decision::AllowOnce),
            Judgement::AllowByRule(rule) => by_rule(&rule, Decision::AllowOnce),
            Judgement::AllowEdited(client) => Event::ApprovalDecided {
                call: call.id,
                digest,
                decision: Decision::AllowOnce,
                by: By::Operator(client),
            },
            Judgement::Deny { rule, text } => by_rule(&rule, Decision::Deny(text)),
            Judgement::Ask(why) => Event::ApprovalRequested { call: call.id, why, digest },
            Judgement::NotRun(problem) => not_run(call, problem),
        });
    }
    (!group.is_empty()).then_some(group)
}

fn not_run(call: &ToolCall, problem: Problem) -> Event {
    let outcome = ToolOutcome::not_run(OutcomeKind::NotRun(problem.kind), problem.text).of_class(problem.class);
    Event::ToolCallFinished { call: call.id, outcome }
}

/// Answers the head call, if that needs no execution.
fn answer_without_running(run: &Run) -> Option<Vec<Event>> {
    if let Some(superseded) = run.superseded_finish() {
        return Some(vec![done(superseded, "superseded by a later finish in the same turn".to_string())]);
    }
    let call = run.head()?;
    match (&call.state, call.tool.as_str()) {
        (CallState::Denied { by, text }, _) => {
            let told = match (by, call.origin) {
                (By::Rule(_), Origin::Here) => text.clone(),
                (By::Operator(_), Origin::Here) | (_, Origin::Elsewhere) => permission::denial(text, call.origin),
            };
            let outcome = ToolOutcome::not_run(OutcomeKind::Denied, told);
            Some(vec![Event::ToolCallFinished { call: call.id, outcome }])
        }
        (CallState::Proposed, control::UPDATE_PLAN) => Some(match planning::accept(&run.plan, &call.arguments) {
            Ok(accepted) => {
                let answer = accepted.answer();
                vec![Event::planned(accepted.plan), done(call, answer)]
            }
            Err(error) => vec![invalid(call, error)],
        }),
        (CallState::Proposed, control::NOTE) => Some(match claim::read::<claim::Note>(&call.arguments) {
            Ok(_) => vec![done(call, "noted".to_string())],
            Err(error) => vec![invalid(call, error)],
        }),
        (CallState::Proposed, control::READ_REF) => {
            let found = claim::read::<pruning::ReadRef>(&call.arguments).and_then(|asked| pruning::read(run, &asked));
            match found {
                Ok(Found::Page(text)) => Some(vec![done(call, text)]),
                Ok(Found::PutAway(_)) => None,
                Err(error) => Some(vec![invalid(call, error)]),
            }
        }
        (CallState::Proposed, control::ASK_OPERATOR) => {
            claim::question(&call.arguments).err().map(|error| vec![invalid(call, error)])
        }
        _ => None,
    }
}

/// The result of a control call that worked.
pub fn done(call: &ToolCall, text: String) -> Event {
    Event::ToolCallFinished { call: call.id, outcome: ToolOutcome::not_run(OutcomeKind::Done, text) }
}

/// The result of a control call whose arguments do not fit.
pub fn invalid(call: &ToolCall, text: String) -> Event {
    not_run(call, Problem::new(ProblemKind::InvalidArguments, text))
}

/// The next call that may start: the first open one, or a read that follows only running reads. A `finish` holds up
/// nothing: it is answered last.
fn startable(run: &Run) -> Option<&ToolCall> {
    let mut running_reads = 0;
    for call in run.ordered_calls().filter(|call| !call.is_closed() && call.tool != control::FINISH) {
        let may_start = call.state == CallState::Approved
            || (matches!(call.state, CallState::OutcomeUnknown { .. })
                && call.effect != EffectClass::WriteFile
                && run.settles_itself(call));
        match (call.effect, may_start) {
            (EffectClass::Read, true) if running_reads < limits::CONCURRENT_READS => return Some(call),
            (_, true) if running_reads == 0 => return Some(call),
            (EffectClass::Read, false) if call.state == CallState::Running => running_reads += 1,
            _ => return None,
        }
    }
    None
}

/// Observes, judges and closes the iteration.
fn close(run: &Run) -> Vec<Event> {
    if run.iteration.phase == Phase::WrapUp {
        return closed(run, ending::wrapped_up(run));
    }
    let mut seen = progress::observe(run);
    // Steered, the iteration shows nothing about the agent.
    seen.interjected |= run.is_steered();
    let mut after = run.progress.clone();
    after.take(&seen);
    let mut stalled = stall::stalls(run, &seen, &after);
    if run.is_steered() {
        stalled.clear();
    }
    let noticed = Noticed {
        blocked: stall::blocked(run, &seen),
        stalled: stalled.iter().map(|(detector, _)| *detector).collect(),
    };
    let verdict = steer::prolonged(run, ending::verdict(run, &after, &noticed));
    let warnings = stall::warnings(run, &seen, &after);
    let mut group = Vec::new();
    if run.iteration.phase == Phase::Decompose
        && run.iteration.reply.is_some()
        && run.plan.source == PlanSource::Seed
        && run.decomposes >= limits::DECOMPOSE_ATTEMPTS
    {
        group.push(Event::planned(run.plan.fallback()));
    }
    group.push(Event::ProgressObserved { observation: Box::new(seen) });
    if verdict.action == Course::Continue {
        group.extend(
            warnings.into_iter().map(|(detector, text)| Event::Warned { what: Warning::Stall(detector), text }),
        );
    }
    // The first says most; the others are named in the verdict.
    group.extend(stalled.into_iter().next().map(|(detector, diagnosis)| Event::StallDetected { detector, diagnosis }));
    group.extend(closed(run, verdict));
    group
}

/// The end of the iteration, and what its verdict means for the run.
fn closed(run: &Run, verdict: Verdict) -> Vec<Event> {
    let next = status_after(&verdict).map(|next| status(next, None));
    [Event::IterationClosed { n: run.iteration.n, verdict }].into_iter().chain(next).collect()
}

fn status_after(verdict: &Verdict) -> Option<Status> {
    match &verdict.action {
        Course::Continue | Course::Replan | Course::WrapUp(_) => None,
        Course::Park(reason) => Some(Status::Parked(reason.clone())),
        Course::Complete(finish) => Some(Status::Completed(*finish)),
    }
}

/// Opens the next iteration and takes in what the operator said, if the budget bears one.
fn open(run: &Run) -> Vec<Event> {
    let mut phase = next_phase(run);
    // Something else may have parked the run in which a stall was found: the cap of replans holds all the same.
    let unanswered = run.stall.as_ref().filter(|_| phase == Phase::Replan);
    if let Some(stall) = unanswered.filter(|_| run.progress.replans >= limits::REPLANS) {
        return parked(ParkReason::Stalled(stall.detector));
    }
    let spent = Axis::ALL.into_iter().find(|axis| run.pool.is_exhausted(*axis));
    if spent.is_some_and(|axis| !bears(phase, axis) && wrapping::is_possible(run, axis)) {
        phase = Phase::WrapUp;
    }
    if let Some(axis) = spent.filter(|axis| !bears(phase, *axis)) {
        return parked(ParkReason::Budget(axis));
    }
    let started = Event::IterationStarted { n: run.iteration.n + 1, phase };
    // What the operator said is for the work that goes on, not for its summary.
    if phase == Phase::WrapUp {
        return vec![started];
    }
    let delivered = steer::due(run).map(|one| Event::InterjectionDelivered { id: one.id });
    [started].into_iter().chain(delivered).collect()
}

/// Whether an iteration of this phase may begin although the axis is used up.
fn bears(phase: Phase, axis: Axis) -> bool {
    match (phase, axis) {
        (Phase::Decompose, Axis::Loops) => true,
        (Phase::WrapUp, Axis::Loops | Axis::ToolCalls | Axis::Tokens | Axis::Cost) => true,
        (Phase::WrapUp, Axis::Active | Axis::Deadline | Axis::ModelCalls) => false,
        (
            Phase::Decompose | Phase::Pursue | Phase::Replan,
            Axis::Active
            | Axis::Deadline
            | Axis::Loops
            | Axis::ModelCalls
            | Axis::ToolCalls
            | Axis::Tokens
            | Axis::Cost,
        ) => false,
    }
}

/// What the next iteration is for (docs/ENGINE.md §4.1).
fn next_phase(run: &Run) -> Phase {
    if wrapping::due(run).is_some() {
        return Phase::WrapUp;
    }
    if run.plan.source == PlanSource::Seed && run.decomposes < limits::DECOMPOSE_ATTEMPTS {
        return Phase::Decompose;
    }
    // A stall stands until a replan has answered it, also across a park.
    if run.stall.is_some() { Phase::Replan } else { Phase::Pursue }
}

/// Reserves the worst case and asks the model, or says why not.
fn ask_model(run: &Run, now: Now) -> Vec<Event> {
    // A wrap-up that fails is not tried again: the run parks for its limit all the same.
    let failed = run.iteration.failures > 0 || run.iteration.discards > 0;
    if run.iteration.phase == Phase::WrapUp && failed {
        return closed(run, ending::wrapped_up(run));
    }
    if run.iteration.discards > limits::EMPTY_RESAMPLES || run.progress.truncated >= limits::TRUNCATED {
        return parked(ParkReason::ModelOutput);
    }
    let unanswered = run.trouble.as_ref().filter(|_| run.iteration.failures > 0 && run.retry_at.is_none());
    // Where a request was too long, room is made before the next.
    let unanswered = unanswered.filter(|trouble| run.context.demand.is_none() || trouble.class.excess().is_none());
    if let Some(trouble) = unanswered {
        return match retry::after(run, trouble, now) {
            retry::Next::Retry(at) => vec![Event::RetryScheduled { at, why: trouble.message.clone() }],
            retry::Next::Park(reason) => parked(reason),
            retry::Next::Fail(failure) => vec![status(Status::Failed(failure), None)],
        };
    }
    if let Some(group) = compaction::step(run, now) {
        return group;
    }
    let request = context::assemble(run);
    // A conversation out of order is a bug of the engine: it fails closed, and nothing is sent.
    if let Err(what) = request.entries.order().check_whole() {
        return vec![status(Status::Failed(Failure::OutOfOrder(what)), None)];
    }
    events::asked(run, &request).unwrap_or_else(|refused| cannot_ask(run, refused))
}

/// The request of the open iteration can't be made. At a limit the work is wrapped up, where that is possible.
fn cannot_ask(run: &Run, Unasked { reason, worst }: Unasked) -> Vec<Event> {
    if run.iteration.phase == Phase::WrapUp {
        return closed(run, ending::wrapped_up(run));
    }
    let untouched = run.iteration.phase == Phase::Pursue && run.iteration.model_call.is_none();
    if let ParkReason::Budget(axis) = reason
        && untouched
        && wrapping::is_possible(run, axis)
    {
        let others = spending::exhausted(run, &worst).into_iter().filter(|other| *other != axis);
        let fired = [axis].into_iter().chain(others).map(Fired::Budget).collect();
        return closed(run, Verdict { action: Course::WrapUp(axis), fired });
    }
    parked(reason)
}
