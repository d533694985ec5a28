//! Did the iteration move anything, and is the run stalled (docs/ENGINE.md §7).

use crate::domain::control;
use crate::domain::limits;
use crate::domain::message::Message;
use crate::domain::progress::CallResult;
use crate::domain::progress::Observation;
use crate::domain::progress::Progress;
use crate::domain::run::Run;
use crate::domain::status::Detector;
use crate::domain::status::Phase;
use crate::domain::text::sha256_hex;
use crate::domain::tool::CallState;
use crate::domain::tool::EffectClass;
use crate::domain::tool::OutcomeKind;
use crate::domain::tool::ToolCall;

/// What the open iteration showed.
pub fn observe(run: &Run) -> Observation {
    let work: Vec<&ToolCall> = run.ordered_calls().filter(|call| is_work(call)).collect();
    let results: Vec<(CallResult, bool)> = work.iter().filter_map(|call| result_of(run, call)).collect();
    let movement = run.plan.movement_since(&run.iteration.plan_before);
    let effects = effects(run, &work);
    let checks_newly_passing: Vec<usize> =
        run.iteration.passed.iter().copied().filter(|index| !run.progress.passed.contains(index)).collect();
    let novel = results.iter().any(|(result, ran)| *ran && !run.progress.has_seen(result));
    let planned = run.iteration.phase != Phase::Pursue && movement.is_structural();
    let moved = movement.forward > 0 || planned || !effects.is_empty() || !checks_newly_passing.is_empty();
    Observation {
        text_only: is_text_only(run),
        interjected: run.iteration.interjected,
        progress: moved || (novel && run.progress.novelty_counts()),
        outcomes: results.into_iter().map(|(result, _)| result).collect(),
        movement,
        effects,
        checks_newly_passing,
        novel,
    }
}

/// Whether a call is looked at: all but the control calls, and what was read again.
fn is_work(call: &ToolCall) -> bool {
    call.effect != EffectClass::Control || call.tool == control::READ_REF
}

/// Whether the reply had text and no call, and was not cut off.
pub fn is_text_only(run: &Run) -> bool {
    run.iteration.calls.is_empty() && run.iteration.reply.as_ref().is_some_and(|reply| !reply.is_cut)
}

/// Whether the run is stalled, given the windows after the open iteration, and why in a sentence.
pub fn stall(run: &Run, seen: &Observation, after: &Progress) -> Option<(Detector, String)> {
    if run.iteration.phase == Phase::Replan {
        // Its record empties the windows, so only the replan itself is judged.
        let in_vain = !seen.movement.is_structural() && after.ineffective + 1 >= limits::REPLANS_INEFFECTIVE;
        return in_vain.then(|| (Detector::NoProgress, "replans in a row left the plan as it was".to_string()));
    }
    if let Some(repeat) = after.repeat.as_ref().filter(|repeat| repeat.count >= limits::STALL_REPEATS) {
        let text = format!("the same call gave the same result {} times in a row: {}", repeat.count, repeat.what.title);
        return Some((Detector::Repeat, text));
    }
    (after.idle >= limits::STALL_WINDOW).then(|| {
        let idle = after.idle;
        let text = format!("{idle} iterations in a row moved no todo forward, wrote nothing new and found nothing new");
        (Detector::NoProgress, text)
    })
}

/// The detector that is one short of firing, and the sentence that tells the model (docs/ENGINE.md §7.4). `after` are
/// the windows with the iteration taken in.
pub fn warning(after: &Progress) -> Option<(Detector, String)> {
    if let Some(repeat) = after.repeat.as_ref().filter(|repeat| repeat.count + 1 >= limits::STALL_REPEATS) {
        let text = format!(
            "You made the same call with the same result {} times in a row: {}. Do something else.",
            repeat.count, repeat.what.title
        );
        return Some((Detector::Repeat, text));
    }
    (after.idle + 1 == limits::STALL_WINDOW)
        .then(|| (Detector::NoProgress, format!("The last {} iterations moved nothing forward.", after.idle)))
}

/// A call and the hash of its result, and whether it really ran.
fn result_of(run: &Run, call: &ToolCall) -> Option<(CallResult, bool)> {
    let CallState::Closed(kind) = &call.state else { return None };
    let ran = matches!(kind, OutcomeKind::Done | OutcomeKind::Failed | OutcomeKind::TimedOut);
    let text = run.transcript.entries().rev().find_map(|entry| match &entry.message {
        Message::ToolResult { call: id, text, .. } if *id == call.id => Some(text),
        Message::ToolResult { .. } | Message::Assistant { .. } | Message::Operator { .. } | Message::Engine { .. } => {
            None
        }
    })?;
    let result = sha256_hex(format!("{}\0{text}", kind.word()).as_bytes())[..16].to_string();
    let title = format!("{} {}", call.tool, call.title());
    Some((CallResult { call: call.signature(), result, title }, ran))
}

/// Contents that were written and that this run never wrote before.
fn effects(run: &Run, work: &[&ToolCall]) -> Vec<String> {
    work.iter()
        .filter(|call| call.state == CallState::Closed(OutcomeKind::Done))
        .filter_map(|call| call.facts.as_ref()?.write.as_ref())
        .map(|write| format!("{}@{}", write.path, write.after))
        .filter(|effect| !run.progress.written.contains(effect))
        .collect()
}
