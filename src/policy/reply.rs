//! Whether a whole reply can be used, and what is asked of a call that can't be one (docs/ENGINE.md §14.1).

use serde::de::IgnoredAny;

use crate::domain::model::AskedCall;
use crate::domain::model::ModelReply;
use crate::domain::model::StopReason;
use crate::domain::plan::PlanSource;
use crate::domain::run::Run;
use crate::domain::status::Phase;
use crate::domain::text::excerpt;
use crate::domain::text::one_line;
use crate::domain::tool::CallState;
use crate::domain::tool::EffectClass;
use crate::domain::tool::OutcomeKind;
use crate::domain::tool::Problem;
use crate::domain::tool::ProblemKind;
use crate::domain::tool::ToolCall;
use crate::policy::plan_text;
use crate::policy::planning;
use crate::policy::planning::Accepted;

/// Why a reply is not used: it is asked for again.
pub fn discarded(run: &Run, reply: &ModelReply) -> Option<String> {
    let says_nothing = reply.text.trim().is_empty();
    let is_first = run.iteration.max_output.is_none();
    let why = match (&reply.stop, reply.calls.is_empty()) {
        (StopReason::Length, true) if says_nothing => "cut off before any text",
        (StopReason::Length, false) if says_nothing || is_first => "cut off in a call",
        (StopReason::End | StopReason::Calls | StopReason::Other(_), true) if says_nothing => "empty",
        (StopReason::End | StopReason::Calls | StopReason::Length | StopReason::Refused | StopReason::Other(_), _) => {
            return None;
        }
    };
    Some(why.to_string())
}

/// The calls of a reply that count: none of one that was cut off, because the last is not whole.
pub fn calls(reply: &ModelReply) -> &[AskedCall] {
    let whole = reply.stop != StopReason::Length;
    let most = crate::domain::limits::CALLS_PER_REPLY.min(reply.calls.len());
    if whole { &reply.calls[..most] } else { &[] }
}

/// The plan that the text of the reply holds, where one is looked for: in `decompose` and `replan`, and where the text
/// announces it. A valid call in the same reply wins; what was cut off or refused is no plan (docs/ENGINE.md §6.5).
pub fn planned(run: &Run) -> Option<Accepted> {
    let reply = run.iteration.reply.as_ref().filter(|reply| !reply.is_cut && !reply.is_refusal)?;
    let is_asked = match run.iteration.phase {
        Phase::Decompose | Phase::Replan => true,
        Phase::Pursue => plan_text::is_announced(&reply.text),
    };
    let is_due = is_asked && run.iteration.is_open && !run.iteration.planned_in_text;
    if !is_due || run.ordered_calls().any(|call| !could_not_be_made(call)) {
        return None;
    }
    planning::propose(&run.plan, &plan_text::read(&reply.text)?, PlanSource::Text).ok()
}

fn could_not_be_made(call: &ToolCall) -> bool {
    match call.state {
        CallState::Closed(OutcomeKind::NotRun(kind)) => {
            matches!(kind, ProblemKind::Malformed | ProblemKind::UnknownTool | ProblemKind::InvalidArguments)
        }
        _ => false,
    }
}

/// The arguments of a call. Some providers write nothing where a tool needs none.
pub fn arguments(asked: &AskedCall) -> &str {
    if asked.arguments.trim().is_empty() { "{}" } else { &asked.arguments }
}

/// The effect class of the tool of this name; nothing when there is no such tool.
pub fn effect(run: &Run, name: &str) -> Option<EffectClass> {
    run.offer.find(name).map(|tool| tool.effect)
}

/// Why a call can't be made, as far as its name and its arguments' form tell.
pub fn problem(run: &Run, name: &str, arguments: &str) -> Option<Problem> {
    if effect(run, name).is_none() {
        let text = format!(
            "there is no tool {:?}; the nearest are {}; nothing was run",
            one_line(name, 64),
            nearest(run, name)
        );
        return Some(Problem::new(ProblemKind::UnknownTool, text));
    }
    if run.progress.is_disabled(name) {
        let text = format!("the tool {name} broke too often and is not used any more in this run; nothing was run");
        return Some(Problem::new(ProblemKind::Impossible, text));
    }
    let error = serde_json::from_str::<IgnoredAny>(arguments).err()?;
    let around = excerpt(arguments, 400);
    let text = format!("the arguments are not valid JSON ({error}); nothing was run; you wrote: {around}");
    Some(Problem::new(ProblemKind::Malformed, text))
}

/// The three names nearest to a wrong one.
fn nearest(run: &Run, name: &str) -> String {
    let known = run.offer.tools().iter().map(|tool| tool.name.as_str());
    let wrong: String = name.chars().take(64).collect();
    let mut ranked: Vec<(usize, &str)> = known.map(|one| (strsim::levenshtein(one, &wrong), one)).collect();
    ranked.sort_unstable();
    ranked.into_iter().take(3).map(|(_, one)| one).collect::<Vec<_>>().join(", ")
}
