//! A claim of being finished, looked into one step at a time; it fails closed (docs/ENGINE.md §7.6).

use crate::domain::event::ClaimVerdict;
use crate::domain::event::Event;
use crate::domain::limits;
use crate::domain::run::Claim;
use crate::domain::run::ClaimStage;
use crate::domain::run::Run;
use crate::domain::status::ParkReason;
use crate::domain::status::Phase;
use crate::domain::terms::Check;
use crate::domain::text::excerpt;
use crate::domain::tool::ToolCall;
use crate::machine::advance;
use crate::machine::events;
use crate::machine::events::Unasked;
use crate::policy::claim;
use crate::policy::judge;
use crate::policy::progress;
use crate::policy::reply;

/// The next step, if there is a claim that is not judged. All other calls of the reply have ended before.
pub fn step(run: &Run) -> Option<Vec<Event>> {
    if !run.iteration.is_open {
        return None;
    }
    let Some(made) = &run.iteration.claim else { return begin(run) };
    match &made.stage {
        ClaimStage::Judged(_) => None,
        ClaimStage::Checking(_) | ClaimStage::Asking(_) => None,
        // Words that came while it ran are heard first: then this is no claim to be rejected.
        ClaimStage::CheckFailed { .. } if run.must_hear() => Some(postponed(run, made)),
        ClaimStage::CheckFailed { index, detail } => Some(check_failed(run, made, *index, detail)),
        ClaimStage::Passed(passed) => Some(go_on(run, made, *passed)),
    }
}

/// Makes a claim out of the `finish` call, or of one text-only turn too many.
fn begin(run: &Run) -> Option<Vec<Event>> {
    if let Some(call) = run.open_finish() {
        let given = serde_json::from_str(&call.arguments).unwrap_or_default();
        if let Some(misfit) = reply::misfit(run, &call.tool, &given) {
            return Some(vec![advance::invalid(call, misfit)]);
        }
        return Some(match claim::read::<claim::FinishArguments>(&call.arguments) {
            Ok(finish) => {
                let evidence: String = finish.evidence.iter().map(|line| format!("\n- {line}")).collect();
                let claimed =
                    Event::DoneClaimed { call: Some(call.id), summary: format!("{}{evidence}", finish.summary) };
                // A claim that will be postponed changes nothing.
                let is_judged = !run.must_hear();
                let dropped = claim::without_not_needed(&run.plan, &finish).filter(|_| is_judged);
                [claimed].into_iter().chain(dropped.map(Event::planned)).collect()
            }
            Err(error) => vec![advance::invalid(call, error)],
        });
    }
    match run.iteration.phase {
        Phase::Decompose | Phase::Pursue => {}
        Phase::Replan | Phase::WrapUp => return None,
    }
    let reply = run.iteration.reply.as_ref()?;
    let one_too_many = progress::is_text_only(run) && run.progress.text_only >= limits::NUDGES && !reply.is_refusal;
    one_too_many.then(|| vec![Event::DoneClaimed { call: None, summary: reply.text.clone() }])
}

fn go_on(run: &Run, made: &Claim, passed: usize) -> Vec<Event> {
    if run.must_hear() {
        return postponed(run, made);
    }
    if let Some(objection) = claim::objection(run).filter(|_| passed == 0) {
        return judged(run, made, ClaimVerdict::Rejected, objection);
    }
    match run.terms.checks.get(passed) {
        Some(Check::Command(_) | Check::FileExists(_) | Check::FileMatches { .. } | Check::Tool { .. }) => {
            return vec![Event::CheckStarted { index: passed }];
        }
        Some(Check::ModelJudge(_)) => return ask_judge(run, passed),
        Some(Check::OperatorConfirm(_)) => {
            let asked = Event::ConfirmationRequested { index: passed };
            return [asked].into_iter().chain(events::parked(ParkReason::Confirm)).collect();
        }
        None => {}
    }
    match passed {
        0 => judged(run, made, ClaimVerdict::Unverified, "accepted; there were no checks.".to_string()),
        _ => judged(run, made, ClaimVerdict::Verified, format!("verified: all checks passed ({passed}).")),
    }
}

/// Asks the model that judges. Where that can't be paid, the run parks and keeps the claim.
fn ask_judge(run: &Run, index: usize) -> Vec<Event> {
    let request = judge::request(run, index, run.next.model_call);
    let started = Event::CheckStarted { index };
    match events::asked(run, &request) {
        Ok(asked) => [started].into_iter().chain(asked).collect(),
        Err(Unasked { reason: ParkReason::ContextExhausted, worst: _ }) => {
            let detail = "what the judge must see does not fit the model".to_string();
            vec![started, Event::AcceptanceChecked { index, passed: false, detail }]
        }
        Err(refused) => events::parked(refused.reason),
    }
}

fn postponed(run: &Run, made: &Claim) -> Vec<Event> {
    let text = "not judged: the operator has spoken; their words come next.";
    judged(run, made, ClaimVerdict::Postponed, text.to_string())
}

fn check_failed(run: &Run, made: &Claim, index: usize, detail: &str) -> Vec<Event> {
    let name = run.terms.checks.get(index).map_or(String::new(), Check::title);
    let text = format!("not finished: the check `{name}` failed:\n{}", excerpt(detail, limits::RESULT_MAX_BYTES / 2));
    judged(run, made, ClaimVerdict::Rejected, text)
}

/// The verdict, and the answer to `finish` where there is one.
fn judged(run: &Run, made: &Claim, verdict: ClaimVerdict, text: String) -> Vec<Event> {
    let call: Option<&ToolCall> = made.call.and_then(|id| run.calls.get(&id)).filter(|call| !call.is_closed());
    let answer = call.map(|call| advance::done(call, text.clone()));
    [Event::ClaimJudged { verdict, text }].into_iter().chain(answer).collect()
}
