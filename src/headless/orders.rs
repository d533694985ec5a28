//! Orders given by hand to a run: from what a person typed to a command that fits the run, and the other way round,
//! the lines to type that decide what waits.

use crate::domain::approval::Decision;
use crate::domain::approval::Resolution;
use crate::domain::command::Command;
use crate::domain::command::Refusal;
use crate::domain::id::CallId;
use crate::domain::message::Message;
use crate::domain::rule::RuleDraft;
use crate::domain::run::Run;
use crate::domain::run::Waits;
use crate::domain::status::ParkReason;
use crate::domain::status::Status;
use crate::domain::tool::CallState;
use crate::domain::tool::OutcomeKind;
use crate::domain::tool::ToolCall;
use crate::headless::text::title;
use crate::policy::claim;
use crate::policy::grave;
use crate::policy::offering;
use crate::policy::spending;

/// A decision about a call, if it waits for one and the digest is the one it has. Errors with a sentence.
pub fn decide(run: &Run, call: CallId, digest: &str, decision: Decision) -> Result<Command, String> {
    let one = waiting(run, call, Waits::Decision)?;
    match one.digest() {
        Some(whole) if whole.is_written(digest) => Ok(Command::Decide { call, digest: whole, decision }),
        Some(_) | None => Err(format!(
            "call {call} is not what {digest} stands for; nothing was decided; `tiller show {}` shows what it is now",
            run.id.short()
        )),
    }
}

/// Leave for a call with a standing rule of its words, as `decide`. Errors, too, when no such rule can be made.
pub fn rule(run: &Run, call: CallId, digest: &str, open: bool, everywhere: bool) -> Result<Command, String> {
    let one = waiting(run, call, Waits::Decision)?;
    let draft = offering::offer(run, one, open).map_err(|why| Refusal::BadRule(why).to_string())?;
    let workspace = draft.workspace.clone().filter(|_| !everywhere);
    decide(run, call, digest, Decision::AllowRule(RuleDraft { workspace, ..draft }))
}

/// Leave for a list of calls, if each waits and has the digest that is named with it. Errors with a sentence.
pub fn allow_all(run: &Run, calls: &[(CallId, String)]) -> Result<Command, String> {
    let mut seen = Vec::new();
    for (call, digest) in calls {
        if let Command::Decide { call, digest, .. } = decide(run, *call, digest, Decision::AllowOnce)? {
            seen.push((call, digest));
        }
    }
    Ok(Command::AllowAll { calls: seen })
}

/// What became of a call, if that is not known. Errors with a sentence.
pub fn resolve(run: &Run, call: CallId, resolution: Resolution) -> Result<Command, String> {
    waiting(run, call, Waits::Outcome)?;
    Ok(Command::Resolve { call, resolution })
}

/// An answer to the question of this call; without one, to the only question that waits. No other question of a run ever
/// has the name of that call. Errors with a sentence when there is none, or more than one.
pub fn answer(run: &Run, call: Option<CallId>, text: String) -> Result<Command, String> {
    let id = run.id.short();
    let asked: Vec<CallId> = asked(run).map(|call| call.id).collect();
    if let Some(one) = asked.iter().find(|one| call.is_none() && one.to_string() == text) {
        return Err(format!(
            "{one} is the name of the question, and no answer to it; nothing was sent; type `tiller answer {id} {one} \
             TEXT`"
        ));
    }
    match (call, asked.as_slice()) {
        (None, []) => Err(format!(
            "run {id} has asked nothing; nothing was sent; to tell it something, use `tiller say {id} TEXT`"
        )),
        (None, [call]) => Ok(Command::Answer { call: *call, text }),
        (None, [call, ..]) => Err(format!(
            "{} questions of run {id} wait, and which one is meant is not known; nothing was sent; name its call, as in \
             `tiller answer {id} {call} TEXT`; `tiller show {id}` lists them",
            asked.len()
        )),
        (Some(call), _) => {
            waiting(run, call, Waits::Answer)?;
            Ok(Command::Answer { call, text })
        }
    }
}

/// The questions that wait for an answer.
fn asked(run: &Run) -> impl Iterator<Item = &ToolCall> {
    run.waiting().into_iter().filter(|(_, waits)| *waits == Waits::Answer).map(|(call, _)| call)
}

/// A word on the claim, if what is asked has this digest still. Errors with a sentence.
pub fn confirm(run: &Run, digest: &str, confirmed: bool, text: String) -> Result<Command, String> {
    match run.claim_digest() {
        Some(claim) if claim.is_written(digest) => Ok(Command::Confirm { claim, confirmed, text }),
        Some(_) => Err(format!(
            "what is asked about the claim is not what {} stands for; nothing was recorded; `tiller show {}` shows what it is \
             now",
            title(digest),
            run.id.short()
        )),
        None => Err(Refusal::NothingToConfirm.to_string()),
    }
}

fn waiting(run: &Run, call: CallId, wanted: Waits) -> Result<&ToolCall, String> {
    let found = run.waiting().into_iter().find(|(one, waits)| one.id == call && *waits == wanted);
    found.map(|(one, _)| one).ok_or_else(|| {
        let id = run.id.short();
        if let Some(word) = settled(run, call).filter(|_| wanted == Waits::Decision) {
            return format!("call {call} of run {id} was {word} already; nothing changed");
        }
        let what = match wanted {
            Waits::Decision => "a decision",
            Waits::Outcome => "word of its outcome",
            Waits::Answer => "an answer",
        };
        format!(
            "call {call} of run {id} does not wait for {what}; nothing changed; `tiller show {id}` shows what waits"
        )
    })
}

/// What was decided about a call, as far as that still shows: nothing where it was not.
fn settled(run: &Run, call: CallId) -> Option<&'static str> {
    let ended = || {
        let mut told = run.transcript.all().filter_map(|entry| match &entry.message {
            Message::ToolResult { call: of, kind, .. } if *of == call => Some(*kind),
            Message::ToolResult { .. }
            | Message::Assistant { .. }
            | Message::Operator { .. }
            | Message::Engine { .. } => None,
        });
        told.next().filter(|kind| *kind == OutcomeKind::Denied).map(|_| "denied")
    };
    let Some(one) = run.calls.get(&call) else { return ended() };
    match &one.state {
        CallState::Denied { .. } | CallState::Closed(OutcomeKind::Denied) => Some("denied"),
        CallState::Approved | CallState::Running => Some("allowed"),
        CallState::Proposed | CallState::Prepared => {
            one.edited.as_ref().filter(|edited| edited.is_leave).map(|_| "allowed as changed")
        }
        CallState::Awaiting { .. } | CallState::OutcomeUnknown { .. } | CallState::Closed(_) => None,
    }
}

/// The question of a call of `ask_operator`; its raw arguments where they hold none.
pub fn question(call: &ToolCall) -> String {
    claim::question(&call.arguments).unwrap_or_else(|_| call.arguments.clone())
}

/// The lines to type that decide a call.
pub fn deciding(run: &Run, call: &ToolCall, waits: Waits) -> Vec<String> {
    let (id, name) = (run.id.short(), call.id);
    match waits {
        Waits::Decision => {
            let digest = call.digest();
            let digest = digest.as_ref().map_or("DIGEST", |digest| digest.short());
            let code = if grave::of(call).is_some() { " --code CODE" } else { "" };
            vec![
                format!("tiller approve {id} {name} {digest}{code}"),
                format!("tiller deny {id} {name} {digest} \"why\""),
            ]
        }
        Waits::Outcome => vec![format!("tiller resolve {id} {name} happened|not|again|skip")],
        Waits::Answer => vec![format!("tiller answer {id} {} \"the answer\"", call.id)],
    }
}

/// Leave with the code that was typed for it.
pub fn coded(leave: Command, code: String) -> Command {
    Command::Coded { code, leave: Box::new(leave) }
}

/// The line to type that allows all that waits for a decision and is not grave, where that is more than one call.
pub fn all_at_once(run: &Run) -> Option<String> {
    let waits = run.waiting().into_iter();
    let waits = waits.filter(|(call, waits)| *waits == Waits::Decision && grave::of(call).is_none());
    let pair = |call: &ToolCall| Some(format!("{}:{}", call.id, call.digest()?.short()));
    let pairs: Vec<String> = waits.filter_map(|(call, _)| pair(call)).collect();
    (pairs.len() > 1).then(|| format!("tiller approve {} {}", run.id.short(), pairs.join(" ")))
}

/// The lines to type, in order, that get a run further; none when it has ended.
pub fn further(run: &Run) -> Vec<String> {
    let id = run.id.short();
    let reason = match &run.status {
        Status::Parked(reason) => Some(reason),
        Status::Queued | Status::Running => None,
        Status::Completed(_) | Status::Failed(_) | Status::Cancelled => return Vec::new(),
    };
    let mut lines: Vec<String> =
        run.waiting().into_iter().flat_map(|(call, waits)| deciding(run, call, waits)).collect();
    if let Some((index, claim)) = run.confirming().zip(run.claim_digest()) {
        let question = run.terms.checks.get(index).map(|check| title(check.question())).unwrap_or_default();
        let digest = claim.short();
        lines.push(format!("tiller confirm {id} {digest} yes|no [\"why\"]   # {question}"));
    }
    lines.extend(all_at_once(run));
    match reason {
        Some(ParkReason::Budget(axis)) => {
            lines.extend((!spending::bears_more(run, *axis)).then(|| spending::raising(run, *axis)));
        }
        Some(ParkReason::PriceUnknown) => {
            lines.push(format!("tiller price {id} INPUT OUTPUT"));
            lines.push(format!("tiller price {id} --unpriced"));
        }
        Some(
            ParkReason::Stalled(_)
            | ParkReason::Verification
            | ParkReason::Escalated(_)
            | ParkReason::DenyBreaker
            | ParkReason::AskBreaker
            | ParkReason::Refused,
        ) => {
            if reason == Some(&ParkReason::Verification) && run.plan.open().next().is_some() {
                lines.push(format!("tiller plan {id} done|drop ID …   # for each open todo"));
            }
            lines.push(format!("tiller say {id} \"what to do\""));
        }
        Some(
            ParkReason::Confirm
            | ParkReason::Approval
            | ParkReason::OutcomeUnknown
            | ParkReason::Question
            | ParkReason::ContextExhausted
            | ParkReason::ModelOutput
            | ParkReason::Credentials
            | ParkReason::Billing
            | ParkReason::Permission
            | ParkReason::ModelConfig
            | ParkReason::DailyBudget { .. }
            | ParkReason::Unexplained
            | ParkReason::NotReady
            | ParkReason::RateLimited { .. }
            | ParkReason::ProviderWait { .. }
            | ParkReason::Storage
            | ParkReason::Interrupted
            | ParkReason::Paused
            | ParkReason::Shutdown
            | ParkReason::EnginePanic,
        )
        | None => {}
    }
    let grant = if run.needs_grant() { " --grant-replans" } else { "" };
    lines.push(format!("tiller resume {id}{grant}"));
    if let Some(ParkReason::Stalled(_) | ParkReason::Verification | ParkReason::Escalated(_)) = reason {
        lines.push(format!("tiller accept {id}   # take the work as it is"));
        lines.push(format!("tiller close {id}    # close the run as failed"));
    }
    lines
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::domain::budget::Axis;
    use crate::domain::budget::Limit;
    use crate::domain::money::MicroUsd;
    use crate::domain::status::Detector;
    use crate::domain::time::Timestamp;
    use crate::domain::tool::ErrorClass;
    use crate::headless::fixture::Desk;
    use crate::headless::fixture::asks_for;
    use crate::headless::fixture::asks_operator;
    use crate::headless::fixture::plans;

    fn desk(reply: crate::headless::fixture::Reply) -> Desk {
        let mut desk = Desk::new(vec![plans(), reply]);
        desk.recover();
        desk
    }

    #[test]
    fn a_decision_needs_the_call_and_its_digest() {
        let run = desk(asks_for("run_command", "make")).run;
        let digest = run.calls[&CallId(2)].digest().unwrap();
        let allow = |call: u32, text: &str| decide(&run, CallId(call), text, Decision::AllowOnce);
        let whole = Command::Decide { call: CallId(2), digest: digest.clone(), decision: Decision::AllowOnce };
        assert_eq!(allow(2, digest.short()), Ok(whole));
        assert_eq!(
            allow(2, "00000000"),
            Err("call c2 is not what 00000000 stands for; nothing was decided; `tiller show 777777` shows what it is now"
                .to_string())
        );
        assert_eq!(
            allow(1, digest.short()),
            Err(
                "call c1 of run 777777 does not wait for a decision; nothing changed; `tiller show 777777` shows what \
                 waits"
                    .to_string()
            )
        );
        assert!(resolve(&run, CallId(2), Resolution::Skip).unwrap_err().contains("word of its outcome"));
        assert_eq!(
            answer(&run, None, "blue".to_string()),
            Err("run 777777 has asked nothing; nothing was sent; to tell it something, use `tiller say 777777 TEXT`"
                .to_string())
        );
    }

    #[test]
    fn who_decides_twice_hears_what_was_decided() {
        let mut desk = desk(asks_for("run_command", "make"));
        let digest = desk.run.calls[&CallId(2)].digest().unwrap();
        let again = |run: &Run| decide(run, CallId(2), digest.short(), Decision::AllowOnce).unwrap_err();
        let deny = Command::Decide { call: CallId(2), digest: digest.clone(), decision: Decision::Deny(String::new()) };
        desk.order_and_die(deny);
        assert_eq!(again(&desk.run), "call c2 of run 777777 was denied already; nothing changed");
    }

    #[test]
    fn an_answer_finds_its_question() {
        let run = desk(asks_operator("red or blue?")).run;
        let red = || "red".to_string();
        for call in [None, Some(CallId(2))] {
            assert_eq!(answer(&run, call, red()), Ok(Command::Answer { call: CallId(2), text: red() }));
        }
        assert_eq!(further(&run), ["tiller answer 777777 c2 \"the answer\"", "tiller resume 777777"]);
        let other = answer(&run, Some(CallId(1)), red()).unwrap_err();
        assert!(other.starts_with("call c1 of run 777777 does not wait for an answer; nothing changed"), "{other}");
        let name = answer(&run, None, "c2".to_string()).unwrap_err();
        assert!(name.contains("nothing was sent; type `tiller answer 777777 c2 TEXT`"), "{name}");
        let whole = Command::Answer { call: CallId(2), text: "c2".to_string() };
        assert_eq!(answer(&run, Some(CallId(2)), "c2".to_string()), Ok(whole));
    }

    #[test]
    fn of_two_questions_one_is_named() {
        let mut run = desk(asks_operator("red or blue?")).run;
        let mut second = run.calls[&CallId(2)].clone();
        second.id = CallId(3);
        run.iteration.calls.push(second.id);
        run.calls.insert(second.id, second);
        let said = answer(&run, None, "red".to_string()).unwrap_err();
        assert!(said.contains("2 questions") && said.contains("`tiller answer 777777 c2 TEXT`"), "{said}");
        let third = Command::Answer { call: CallId(3), text: "red".to_string() };
        assert_eq!(answer(&run, Some(CallId(3)), "red".to_string()), Ok(third));
    }

    #[test]
    fn each_reason_has_its_lines() {
        let mut run = desk(asks_for("run_command", "make")).run;
        let digest = run.calls[&CallId(2)].digest().unwrap();
        let approve = format!("tiller approve 777777 c2 {}", digest.short());
        let deny = format!("tiller deny 777777 c2 {} \"why\"", digest.short());
        assert_eq!(further(&run), [&approve, &deny, "tiller resume 777777"]);
        run.calls.clear();
        run.status = Status::Parked(ParkReason::Budget(Axis::Cost));
        assert_eq!(further(&run), ["tiller resume 777777"], "its limit was raised");
        run.pool.raise(Axis::Cost, Limit::At(0));
        assert_eq!(further(&run), ["tiller raise 777777 cost 0.000001", "tiller resume 777777"]);
        run.status = Status::Parked(ParkReason::Verification);
        assert_eq!(
            further(&run),
            [
                "tiller say 777777 \"what to do\"",
                "tiller resume 777777",
                "tiller accept 777777   # take the work as it is",
                "tiller close 777777    # close the run as failed",
            ]
        );
        run.status = Status::Cancelled;
        assert!(further(&run).is_empty());
    }

    #[test]
    fn every_reason_has_a_remedy_and_exact_lines() {
        let mut run = desk(asks_for("run_command", "make")).run;
        run.calls.clear();
        let say = "tiller say 777777 \"what to do\"";
        let resume = "tiller resume 777777";
        let end =
            ["tiller accept 777777   # take the work as it is", "tiller close 777777    # close the run as failed"];
        let until = Timestamp(5);
        let reasons: [(ParkReason, &[&str]); 25] = [
            (ParkReason::Budget(Axis::Deadline), &["tiller raise 777777 deadline 1h"]),
            (ParkReason::Budget(Axis::ToolCalls), &["tiller raise 777777 tool-calls 1"]),
            (ParkReason::Budget(Axis::Active), &["tiller raise 777777 time 1m00s"]),
            (ParkReason::PriceUnknown, &["tiller price 777777 INPUT OUTPUT", "tiller price 777777 --unpriced"]),
            (ParkReason::DailyBudget { left: MicroUsd(1), until }, &[]),
            (ParkReason::DenyBreaker, &[say]),
            (ParkReason::AskBreaker, &[say]),
            (ParkReason::Refused, &[say]),
            (ParkReason::Escalated(ErrorClass::Auth), &[say]),
            (ParkReason::Stalled(Detector::Repeat), &[say]),
            (ParkReason::ContextExhausted, &[]),
            (ParkReason::ModelOutput, &[]),
            (ParkReason::Credentials, &[]),
            (ParkReason::Billing, &[]),
            (ParkReason::Permission, &[]),
            (ParkReason::ModelConfig, &[]),
            (ParkReason::RateLimited { until }, &[]),
            (ParkReason::ProviderWait { until }, &[]),
            (ParkReason::Unexplained, &[]),
            (ParkReason::NotReady, &[]),
            (ParkReason::Storage, &[]),
            (ParkReason::Interrupted, &[]),
            (ParkReason::Paused, &[]),
            (ParkReason::Shutdown, &[]),
            (ParkReason::EnginePanic, &[]),
        ];
        for (reason, before) in reasons {
            run.status = Status::Parked(reason.clone());
            if let ParkReason::Budget(axis) = reason {
                run.pool.raise(axis, Limit::At(0));
            }
            assert!(run.remedy().is_some_and(|remedy| !remedy.is_empty()), "{reason:?}");
            let ends = matches!(reason, ParkReason::Stalled(_) | ParkReason::Escalated(_));
            let after: &[&str] = if ends { &end } else { &[] };
            assert_eq!(further(&run), [before, &[resume], after].concat(), "{reason:?}");
        }
        run.status = Status::Parked(ParkReason::Stalled(Detector::Repeat));
        run.progress.replans = crate::domain::limits::REPLANS;
        assert_eq!(further(&run), [say, "tiller resume 777777 --grant-replans", end[0], end[1]]);
    }
}
