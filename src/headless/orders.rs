//! Orders given by hand to a run: from what a person typed to a command that fits the run, and the other way round,
//! the lines to type that decide what waits.

use serde_json::Value;

use crate::domain::approval::Decision;
use crate::domain::approval::Resolution;
use crate::domain::command::Command;
use crate::domain::id::CallId;
use crate::domain::run::Run;
use crate::domain::run::Waits;
use crate::domain::status::ParkReason;
use crate::domain::status::Status;
use crate::domain::tool::ToolCall;

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

/// What became of a call, if that is not known. Errors with a sentence.
pub fn resolve(run: &Run, call: CallId, resolution: Resolution) -> Result<Command, String> {
    waiting(run, call, Waits::Outcome)?;
    Ok(Command::Resolve { call, resolution })
}

/// An answer to the question that waits. Errors with a sentence when there is none.
pub fn answer(run: &Run, text: String) -> Result<Command, String> {
    let asked = run.waiting().into_iter().find(|(_, waits)| *waits == Waits::Answer);
    match asked {
        Some((call, _)) => Ok(Command::Answer { call: call.id, text }),
        None => Err(format!(
            "run {id} has asked nothing; nothing was sent; to tell it something, use `tiller say {id} TEXT`",
            id = run.id.short()
        )),
    }
}

fn waiting(run: &Run, call: CallId, wanted: Waits) -> Result<&ToolCall, String> {
    let found = run.waiting().into_iter().find(|(one, waits)| one.id == call && *waits == wanted);
    found.map(|(one, _)| one).ok_or_else(|| {
        let what = match wanted {
            Waits::Decision => "a decision",
            Waits::Outcome => "word of its outcome",
            Waits::Answer => "an answer",
        };
        let id = run.id.short();
        format!(
            "call {call} of run {id} does not wait for {what}; nothing changed; `tiller show {id}` shows what waits"
        )
    })
}

/// The question of a call of `ask_operator`; its raw arguments where they hold none.
pub fn question(call: &ToolCall) -> String {
    let arguments = serde_json::from_str::<Value>(&call.arguments).ok();
    let question = arguments.as_ref().and_then(|arguments| arguments.get("question")).and_then(Value::as_str);
    question.unwrap_or(&call.arguments).to_string()
}

/// The lines to type that decide a call.
pub fn deciding(run: &Run, call: &ToolCall, waits: Waits) -> Vec<String> {
    let (id, name) = (run.id.short(), call.id);
    match waits {
        Waits::Decision => {
            let digest = call.digest();
            let digest = digest.as_ref().map_or("DIGEST", |digest| digest.short());
            vec![format!("tiller approve {id} {name} {digest}"), format!("tiller deny {id} {name} {digest} \"why\"")]
        }
        Waits::Outcome => vec![format!("tiller resolve {id} {name} happened|not|again|skip")],
        Waits::Answer => vec![format!("tiller answer {id} \"the answer\"")],
    }
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
    match reason {
        Some(ParkReason::Budget(axis)) => lines.push(format!("tiller raise {id} {} LIMIT", axis.word())),
        Some(ParkReason::Stalled(_) | ParkReason::Verification | ParkReason::DenyBreaker | ParkReason::Refused) => {
            lines.push(format!("tiller say {id} \"what to do\""))
        }
        Some(
            ParkReason::Approval
            | ParkReason::OutcomeUnknown
            | ParkReason::Question
            | ParkReason::ContextExhausted
            | ParkReason::ModelOutput
            | ParkReason::Credentials
            | ParkReason::Billing
            | ParkReason::Permission
            | ParkReason::ModelConfig
            | ParkReason::PriceUnknown
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
    lines.push(format!("tiller resume {id}"));
    lines
}
