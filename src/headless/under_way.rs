//! What of a run is neither over nor waits for the operator: calls that were decided about, and what was under way when
//! the process that drove the run died, with what a resume will do about it. Pure.

use jiff::tz::TimeZone;
use serde_json::Value;
use serde_json::json;

use crate::domain::command::Control;
use crate::domain::run::Run;
use crate::domain::run::Waits;
use crate::domain::status::Status;
use crate::domain::time::Timestamp;
use crate::domain::tool::CallState;
use crate::domain::tool::EffectClass;
use crate::domain::tool::ToolCall;
use crate::headless::changed;
use crate::headless::prompt::whole;
use crate::headless::text::clock;
use crate::headless::text::title;
use crate::policy::decider;

/// One thing that is under way.
struct Thing<'a> {
    name: String,
    about: String,
    /// Set where it is a call: that, and who let it happen.
    call: Option<&'a ToolCall>,
    who: Option<String>,
    /// When it began, where it did.
    since: Option<Timestamp>,
    /// Where it stands.
    stands: &'static str,
    /// What a resume does about it, where its process is gone.
    resume: Option<&'static str>,
}

/// What is under way, as lines. `is_held` says whether a process drives the run.
pub fn lines(run: &Run, is_held: bool, zone: &TimeZone) -> String {
    let all = things(run, is_held);
    let text: String = all.iter().map(|thing| told(run, thing, zone)).collect();
    if text.is_empty() { text } else { format!("[under way] begun or decided about, and not over\n{text}") }
}

/// The same for programs: a list of objects.
pub fn json(run: &Run, is_held: bool) -> Value {
    let one = |thing: &Thing<'_>| {
        json!({
            "name": thing.name,
            "about": thing.about,
            "tool": thing.call.map(|call| call.tool.as_str()),
            "arguments": thing.call.map(|call| call.arguments.as_str()),
            "decided": thing.who,
            "edited": thing.call.map(changed::json),
            "since": thing.since,
            "stands": thing.stands,
            "resume": thing.resume,
        })
    };
    things(run, is_held).iter().map(one).collect()
}

fn told(run: &Run, thing: &Thing<'_>, zone: &TimeZone) -> String {
    let since = thing.since.map(|at| format!("since {}", clock(at, zone)));
    let parts = [Some(thing.stands.to_string()), since, thing.who.as_deref().map(title)];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let mut text = format!("  {} {}: {}\n", thing.name, title(&thing.about), parts.join(", "));
    text.extend(thing.call.map(|call| changed::line(run, call)));
    if let Some(resume) = thing.resume {
        // Whoever is asked what became of it wants to know all of it.
        text.extend(thing.call.map(|call| whole(call, Waits::Outcome)));
        text += &format!("    resume {resume}\n");
    }
    text
}

fn things(run: &Run, is_held: bool) -> Vec<Thing<'_>> {
    let mut all: Vec<Thing<'_>> = run.ordered_calls().filter_map(|call| thing(run, call, is_held)).collect();
    if is_held || run.status != Status::Running {
        return all;
    }
    if let Some(asked) = &run.model_call {
        all.push(Thing {
            name: asked.id.call.to_string(),
            about: "the model".to_string(),
            call: None,
            who: None,
            since: Some(asked.started),
            stands: "was being asked when its process ended",
            resume: Some(after(run, "counts its worst case as spent and asks again")),
        });
    }
    if let Some(index) = run.running_check() {
        all.push(Thing {
            name: format!("check {}", index + 1),
            about: run.terms.checks.get(index).map(|check| check.title()).unwrap_or_default(),
            call: None,
            who: None,
            since: Some(run.at),
            stands: "was running when its process ended",
            resume: Some(after(run, "runs the checks again from the first")),
        });
    }
    all
}

fn thing<'a>(run: &Run, call: &'a ToolCall, is_held: bool) -> Option<Thing<'a>> {
    let (stands, has_begun, resume) = match &call.state {
        CallState::Approved => ("not started yet", false, None),
        CallState::Denied { .. } => ("the model is told when what stands before it is over", false, None),
        CallState::Running if is_held => ("runs", true, None),
        CallState::Running => ("was running when its process ended", true, Some(after(run, found(run, call)))),
        CallState::OutcomeUnknown { .. } if !is_held && run.waits(call).is_none() => {
            ("was running when its process ended", true, Some(after(run, found(run, call))))
        }
        CallState::OutcomeUnknown { .. }
        | CallState::Proposed
        | CallState::Prepared
        | CallState::Awaiting { .. }
        | CallState::Closed(_) => return None,
    };
    Some(Thing {
        name: call.id.to_string(),
        about: format!("{} {}", call.tool, call.title()),
        call: Some(call),
        who: decider::of_call(call),
        since: has_begun.then_some(call.since),
        stands,
        resume,
    })
}

/// What a resume does, unless it only ends the run.
fn after(run: &Run, otherwise: &'static str) -> &'static str {
    if matches!(run.control, Some(Control::Cancel(_))) { "ends the run, as you had asked for" } else { otherwise }
}

/// What a resume does about a call whose process is gone (docs/ENGINE.md §10.8).
fn found(run: &Run, call: &ToolCall) -> &'static str {
    let lost = match call.state {
        CallState::OutcomeUnknown { .. } => call.clone(),
        _ => ToolCall { state: CallState::OutcomeUnknown { probed: false }, ..call.clone() },
    };
    match (run.settles_itself(&lost), call.effect) {
        (true, EffectClass::WriteFile) => {
            "looks at the file: new, it is done; as before, it is written now; anything else, and you are asked"
        }
        (true, EffectClass::Read | EffectClass::Idempotent | EffectClass::External | EffectClass::Control) => {
            "runs it once more: it only reads, or twice is as good as once"
        }
        (false, _) => "asks you what became of it: it happened, it did not, run it again, or go on without knowing",
    }
}
