//! What the open iteration showed, and whether it moved anything (docs/ENGINE.md §7.1, §7.2).

use crate::domain::control;
use crate::domain::message::Message;
use crate::domain::progress::CallResult;
use crate::domain::progress::Observation;
use crate::domain::run::Run;
use crate::domain::status::Phase;
use crate::domain::text::short_hash;
use crate::domain::tool;
use crate::domain::tool::CallState;
use crate::domain::tool::EffectClass;
use crate::domain::tool::Noise;
use crate::domain::tool::OutcomeKind;
use crate::domain::tool::ToolCall;
use crate::policy::noise;

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
    let polled = run.progress.poll.as_ref();
    let repeats_poll = results.iter().all(|(result, _)| polled.is_some_and(|poll| poll.call == result.call));
    Observation {
        text_only: is_text_only(run),
        text_hash: text_hash(run),
        polling: !moved && novel && repeats_poll,
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

/// Whether the reply had text and no call, was not cut off, and gave no plan.
pub fn is_text_only(run: &Run) -> bool {
    let is_whole = run.iteration.reply.as_ref().is_some_and(|reply| !reply.is_cut);
    run.iteration.calls.is_empty() && is_whole && !run.iteration.planned_in_text
}

/// Hash of the text of a text-only reply, whitespace collapsed.
fn text_hash(run: &Run) -> String {
    let text = run.iteration.reply.as_ref().filter(|_| is_text_only(run)).map(|reply| reply.text.as_str());
    let words = text.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
    words.map(|words| short_hash(words.as_bytes())).unwrap_or_default()
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
    let none = Noise::default();
    let noise = run.offer.find(&call.tool).map_or(&none, |tool| &tool.noise);
    let told = noise::result(noise, text);
    let result = short_hash(format!("{}\0{told}", kind.word()).as_bytes());
    let title = format!("{} {}", call.tool, call.title());
    let signature = tool::signature(&call.tool, &noise::arguments(noise, &call.arguments));
    Some((CallResult { call: signature, result, title, class: call.error }, ran))
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
