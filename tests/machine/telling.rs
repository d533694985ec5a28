//! The language of the answers: a short line for every record and every effect. Amounts that rest on the length of
//! the prompts are left out.

use tiller::domain::approval::By;
use tiller::domain::approval::Decision;
use tiller::domain::budget::Axis;
use tiller::domain::budget::Basis;
use tiller::domain::budget::Charge;
use tiller::domain::budget::Limit;
use tiller::domain::command::Control;
use tiller::domain::event::Event;
use tiller::domain::message::Message;
use tiller::domain::model::Purpose;
use tiller::domain::progress::Observation;
use tiller::domain::run::Run;
use tiller::domain::status::Course;
use tiller::domain::status::Fired;
use tiller::domain::status::Verdict;
use tiller::domain::text::head;
use tiller::domain::text::one_line;
use tiller::domain::text::tail;
use tiller::domain::tool::ToolOutcome;
use tiller::machine::Turn;
use tiller::machine::effect::Effect;

pub fn turn(turned: &Turn) -> Vec<String> {
    let records = turned.records.iter().map(|record| event(&record.event));
    let effects = turned.effects.iter().map(effect);
    records.chain(effects).collect()
}

fn event(event: &Event) -> String {
    match event {
        Event::RunCreated { .. } => "created".to_string(),
        Event::OwnerAcquired { owner } => format!("owner {:?}", owner.mode).to_lowercase(),
        Event::StatusChanged { status, by } => {
            let by = by.as_ref().map(|client| format!(" by {client}")).unwrap_or_default();
            format!("status {}{by}", status.phrase())
        }
        Event::Rewound { to, to_seq, by } => format!("rewound by {by} to iteration {to}, record {to_seq}"),
        Event::RestoreStarted { call, write, by } => format!("putting {} back before {call} by {by}", write.path),
        Event::RestoreFinished { call, path, failure: None } => format!("{path} is as before {call}"),
        Event::RestoreFinished { call, path, failure: Some(why) } => format!("{path} stays as {call} wrote it: {why}"),
        Event::Forked { parent, iteration, .. } => format!("forked from {parent} after iteration {iteration}"),
        Event::Imported { by, here: _ } => format!("imported by {by}"),
        Event::ControlRequested { control: asked, by } => format!("asked by {by} to {}", control(*asked)),
        Event::Recovered { findings } => format!("recovered {findings:?}"),
        Event::PreflightFailed { lacks } => format!("missing {}", lacks.join("; ")),
        Event::IterationStarted { n, phase } => format!("iteration {n} {}", phase.word()),
        Event::InterjectionQueued { id, text, policy, .. } => {
            let policy = if policy.is_next() { String::new() } else { format!(" ({policy:?})") };
            format!("queued {id}{policy} {text}")
        }
        Event::InterjectionDelivered { id } => format!("delivered {id}"),
        Event::InterjectionWithdrawn { id, .. } => format!("withdrawn {id}"),
        Event::BudgetReserved { reservation } => format!("reserved {}.{}", reservation.id.call, reservation.id.attempt),
        Event::BudgetSettled { id, charge } => format!("settled {}.{} {}", id.call, id.attempt, charged(charge)),
        Event::BudgetRaised { axis, limit, .. } => match limit {
            Limit::At(most) => format!("raised {} to {most}", axis.word()),
            Limit::Unlimited => format!("raised {} to unlimited", axis.word()),
        },
        Event::ModelCallStarted { call, attempt, max_output, purpose, .. } => match purpose {
            Purpose::Summary => format!("asked {call}.{attempt} for {max_output} (Summary)"),
            Purpose::Turn => format!("asked {call}.{attempt} for {max_output}"),
            Purpose::Judge(index) => format!("asked {call}.{attempt} to judge check {index}"),
        },
        Event::PriceChosen { price, by } => {
            format!("price {:?} by {by}", price.map(|price| (price.input, price.output)))
        }
        Event::BudgetCorrected { id, amount, by } => format!("corrected {id} to {} µ$ by {by}", amount.0),
        Event::ModelCallFinished { call, reply, discarded } => match discarded {
            Some(why) => format!("replied {call}, not used: {why}"),
            None => {
                let opaque = if reply.opaque.is_empty() { "" } else { ", and what is not known" };
                format!("replied {call} {:?}, {} calls{opaque}", one_line(&reply.text, 40), reply.calls.len())
            }
        },
        Event::ModelCallFailed { call, failure } => format!("failed {call} {:?}", failure.class),
        Event::ContextPruned { refs } => {
            let calls: Vec<String> = refs.iter().map(|one| one.call.to_string()).collect();
            format!("pruned {}", calls.join(" "))
        }
        Event::ContextCompacted { from, to, summary, author, .. } => {
            format!("compacted {from} to {to} by {author:?}: {}", one_line(summary, 90))
        }
        Event::RetryScheduled { at, .. } => format!("retry at {}", at.0),
        Event::ToolCallProposed { call, wire_id, tool, effect, .. } => {
            format!("proposed {call} as {wire_id}: {tool} ({effect:?})")
        }
        Event::ToolCallPrepared { call, facts } => format!("prepared {call} {}", facts.title),
        Event::ApprovalRequested { call, why, .. } => format!("requested {call}: {why}"),
        Event::ApprovalDecided { call, decision, by, .. } => format!("decided {call} {}", decided(decision, by)),
        Event::ApprovalInvalidated { call, why } => format!("invalidated {call}: {why}"),
        Event::TrustChanged { trust, by } => match by {
            By::Operator(client) => format!("trust {trust} by {client}"),
            By::Rule(rule) => format!("trust {trust} by rule: {rule}"),
        },
        Event::ToolCallStarted { call, attempt } => format!("started {call}.{attempt}"),
        Event::ToolCallFinished { call, outcome } => format!("finished {call} {}", ended(outcome)),
        Event::ToolCallProbed { call, probe } => format!("probed {call} {probe:?}"),
        Event::ToolOutcomeResolved { call, resolution, .. } => format!("resolved {call} {resolution:?}"),
        Event::QuestionAnswered { call, text, .. } => format!("answered {call} {text}"),
        Event::PlanUpdated { plan, by, told } => {
            let (done, all) = plan.score();
            let by = by.as_ref().map(|client| format!(" by {client}")).unwrap_or_default();
            let told = if told.is_empty() { String::new() } else { format!(": {}", one_line(told, 100)) };
            format!("plan {} {:?} {done}/{all}{by}{told}", plan.revision, plan.source)
        }
        Event::DoneClaimed { call, summary } => {
            let call = call.map_or("in text".to_string(), |call| call.to_string());
            format!("claimed {call}: {}", one_line(summary, 40))
        }
        Event::CheckStarted { index } => format!("check {index} started"),
        Event::AcceptanceChecked { index, passed, .. } => format!("check {index} passed: {passed}"),
        Event::ConfirmationRequested { index } => format!("check {index} asks the operator"),
        Event::ConfirmationGiven { index, confirmed, text, by } => {
            format!("check {index} confirmed: {confirmed} by {by} {text}")
        }
        Event::ReplansGranted { by } => format!("replans granted by {by}"),
        Event::CheckInterrupted { index } => format!("check {index} interrupted"),
        Event::ClaimJudged { verdict, text } => format!("claim {verdict:?}: {}", one_line(text, 90)),
        Event::ProgressObserved { observation } => format!("observed {}", observed(observation)),
        Event::Warned { what, text } => format!("warned {what:?}: {}", one_line(text, 70)),
        Event::StallDetected { detector, diagnosis } => format!("stall {detector:?}: {}", one_line(diagnosis, 70)),
        Event::IterationClosed { n, verdict } => format!("closed {n}: {}", judged(verdict)),
    }
}

pub fn effect(effect: &Effect) -> String {
    match effect {
        Effect::Prepare(calls) => {
            let ids: Vec<String> = calls.iter().map(|call| call.id.to_string()).collect();
            format!("! prepare {}", ids.join(" "))
        }
        Effect::CallModel(request) => format!("! model {}.{}", request.call, request.attempt),
        Effect::RunTool(permit) => format!("! run {}", permit.call().id),
        Effect::RunCheck { index, check } => format!("! check {index} `{}`", check.title()),
        Effect::Probe { call, .. } => format!("! probe {call}"),
        Effect::ReadBack { call, place } => format!("! read back record {} for {call}", place.record()),
        Effect::EndWork { grace } => format!("! end work in {} ms", grace.0),
    }
}

fn control(asked: Control) -> String {
    match asked {
        Control::Pause(pause) => format!("pause {pause:?}"),
        Control::Leave => "leave".to_string(),
        Control::Cancel(cancel) => format!("cancel {cancel:?}"),
    }
}

fn charged(charge: &Charge) -> String {
    match charge.basis {
        Basis::Reported | Basis::Partial => format!("{} µ$ {:?}", charge.amount.0, charge.basis),
        Basis::NotAccepted => "nothing".to_string(),
        Basis::Estimated | Basis::Unverified => format!("{:?}", charge.basis),
    }
}

fn decided(decision: &Decision, by: &By) -> String {
    let by = match by {
        By::Operator(client) => format!("by {client}"),
        By::Rule(rule) => format!("by rule: {rule}"),
    };
    match decision {
        Decision::AllowOnce => format!("allow once {by}"),
        Decision::AllowRun => format!("allow for the run {by}"),
        Decision::AllowTool => format!("allow the tool {by}"),
        Decision::AllowRule(draft) => format!("allow by a new rule, {draft}, {by}"),
        Decision::AllowUnboxed => format!("allow unboxed {by}"),
        Decision::Edit(arguments) => format!("edit to {arguments} {by}"),
        Decision::Deny(words) => format!("deny {words:?} {by}"),
    }
}

fn ended(outcome: &ToolOutcome) -> String {
    format!("{}: {}", outcome.kind.word(), one_line(&outcome.text, 100))
}

fn observed(seen: &Observation) -> String {
    let mut words = vec![if seen.progress { "progress" } else { "idle" }];
    words.extend(seen.novel.then_some("novel"));
    words.extend(seen.polling.then_some("polling"));
    words.extend(seen.text_only.then_some("text only"));
    words.extend(seen.interjected.then_some("interjected"));
    words.extend((!seen.effects.is_empty()).then_some("effects"));
    words.extend(seen.movement.is_structural().then_some("plan changed"));
    words.extend((seen.movement.forward > 0).then_some("todo forward"));
    words.join(", ")
}

pub fn judged(verdict: &Verdict) -> String {
    let action = match &verdict.action {
        Course::Continue => "continue".to_string(),
        Course::Replan => "replan".to_string(),
        Course::WrapUp(axis) => format!("wrap up, {}", axis.word()),
        Course::Park(reason) => format!("park, {}", reason.phrase()),
        Course::Complete(finish) => format!("complete, {}", finish.phrase()),
    };
    let fired: Vec<String> = verdict.fired.iter().map(Fired::phrase).collect();
    if fired.is_empty() { action } else { format!("{action} [{}]", fired.join("; ")) }
}

pub fn money(run: &Run) -> String {
    let pool = &run.pool;
    let held = pool.reserved().map_or("nothing", |_| "something");
    let used = |axis: Axis| format!("{} {}", axis.word(), pool.used(axis));
    let counted: Vec<String> = [Axis::Loops, Axis::ModelCalls, Axis::ToolCalls].into_iter().map(used).collect();
    let unverified = if pool.unverified().0 > 0 { "some" } else { "nothing" };
    let spent = match (pool.unverified().0, pool.estimated().0) {
        (0, 0) => format!("{} µ$", pool.spent().0),
        _ => "a guess".to_string(),
    };
    format!("spent {spent}, holds {held}; {}; unverified {unverified}", counted.join(", "))
}

pub fn uses(run: &Run) -> String {
    let (mut asked, mut answered) = (0, 0);
    for entry in run.transcript.entries() {
        match &entry.message {
            Message::Assistant { uses, .. } => (asked, answered) = (uses.len(), 0),
            Message::ToolResult { .. } => answered += 1,
            Message::Operator { .. } | Message::Engine { .. } => {}
        }
    }
    format!("{asked} calls of the last reply, {answered} results")
}

pub fn windows(run: &Run) -> String {
    let seen = &run.progress;
    let repeat = seen.repeat.as_ref().map_or(0, |repeat| repeat.count);
    let others = [
        ("polls", seen.poll.as_ref().map_or(0, |poll| poll.count)),
        ("errors", seen.errors.map_or(0, |errors| errors.count)),
        ("unmoved", if seen.unmoved > seen.idle { seen.unmoved } else { 0 }),
        ("same text", seen.same_text.as_ref().map_or(0, |same| same.count)),
    ];
    // What stands at one or less is left out.
    let others: String =
        others.iter().filter(|(_, count)| *count > 1).map(|(name, count)| format!(", {name} {count}")).collect();
    format!(
        "idle {}, repeat {repeat}, text only {}, replans {} ({} in vain), claims {}, denials {}, malformed {}, invalid {}, \
         recoveries {}{others}",
        seen.idle,
        seen.text_only,
        seen.replans,
        seen.ineffective,
        seen.claims,
        seen.denials,
        seen.malformed,
        seen.invalid,
        seen.recoveries
    )
}

pub fn message(message: &Message) -> String {
    match message {
        Message::Operator { id, text } if text.len() > 400 => {
            format!("operator {id}: {} … {}", head(text, 40), tail(text, 90))
        }
        Message::Operator { id, text } => format!("operator {id}: {text}"),
        Message::Engine { text } => format!("engine: {}", one_line(text, 100)),
        Message::Assistant { call, text, uses, .. } => {
            let ids: Vec<String> = uses.iter().map(|one| one.id.to_string()).collect();
            format!("assistant {call}: {:?} [{}]", one_line(text, 40), ids.join(" "))
        }
        Message::ToolResult { call, kind, text, .. } => {
            format!("result {call} {}: {}", kind.word(), one_line(text, 100))
        }
    }
}
