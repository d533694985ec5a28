//! The check that a model judges: what it is asked, and what its answer means. It fails closed (docs/ENGINE.md §7.6).

use std::sync::Arc;

use serde::Deserialize;

use crate::domain::id::ModelCallId;
use crate::domain::limits;
use crate::domain::message::Message;
use crate::domain::message::Transcript;
use crate::domain::model::ModelFailure;
use crate::domain::model::ModelReply;
use crate::domain::model::ModelRequest;
use crate::domain::model::Purpose;
use crate::domain::run::ClaimStage;
use crate::domain::run::Run;
use crate::domain::terms::Check;
use crate::domain::text::excerpt;
use crate::domain::text::one_line;
use crate::domain::text::tail;
use crate::policy::context;

const SYSTEM: &str = include_str!("../../assets/prompts/judge.md");
/// What is repeated of an answer that can't be read, in characters.
const ANSWER_MAX_CHARS: usize = 200;
/// What is shown of one result, in bytes.
const RESULT_BYTES: usize = 2 * 1024;

/// What a judge answers.
#[derive(Deserialize)]
struct Answer {
    holds: bool,
    #[serde(default)]
    why: String,
}

/// The request of the judge that is due, where a claim waits for one.
pub fn due(run: &Run) -> Option<ModelRequest> {
    let claim = run.iteration.claim.as_ref().filter(|_| run.iteration.is_open)?;
    let ClaimStage::Passed(index) = claim.stage else { return None };
    question(run, index).map(|_| request(run, index, run.next.model_call))
}

/// The question of a check, if a model judges it.
fn question(run: &Run, index: usize) -> Option<&str> {
    match run.terms.checks.get(index)? {
        Check::ModelJudge(question) => Some(question),
        Check::Command(_)
        | Check::FileExists(_)
        | Check::FileMatches { .. }
        | Check::Tool { .. }
        | Check::OperatorConfirm(_) => None,
    }
}

/// What the judge of this check is asked: no tools, no conversation, one message.
pub fn request(run: &Run, index: usize, call: ModelCallId) -> ModelRequest {
    let claimed = run.iteration.claim.as_ref().map(|claim| claim.summary.as_str()).unwrap_or_default();
    let closing = format!(
        "The goal:\n{}\n\nThe plan as it stands:\n{}\n\nThe end of the talk:\n{}\n\nThe claim:\n{claimed}\n\nThe \
         condition:\n{}",
        run.terms.goal.as_str(),
        run.plan.listing(),
        talk(run),
        question(run, index).unwrap_or_default()
    );
    ModelRequest {
        call,
        attempt: 1,
        iteration: run.iteration.n,
        phase: run.iteration.phase,
        purpose: Purpose::Judge(index),
        system: SYSTEM.to_string(),
        entries: Transcript::default(),
        talk: context::talk(run),
        closing,
        offer: Arc::default(),
        max_output: run.terms.model.max_output.min(limits::JUDGE_TOKENS),
        temperature_percent: None,
    }
}

/// The end of the talk as text: as it was said since the last summary, and before it, if that is short, the summary.
fn talk(run: &Run) -> String {
    let line = |message: &Message| match message {
        Message::Operator { text, .. } => format!("[operator] {text}"),
        Message::Engine { text } => format!("[engine] {text}"),
        Message::Assistant { text, uses, .. } => {
            let calls: String =
                uses.iter().map(|one| format!("\n[call {}] {} {}", one.id, one.tool, one.arguments)).collect();
            format!("[agent] {text}{}", excerpt(&calls, RESULT_BYTES))
        }
        Message::ToolResult { call, kind, text, .. } => {
            format!("[result {call}] {}: {}", kind.word(), excerpt(text, RESULT_BYTES))
        }
    };
    let (mut lines, mut bytes) = (Vec::new(), 0);
    for entry in run.transcript.entries().rev() {
        let text = line(&entry.message);
        bytes += text.len();
        lines.push(text);
        if bytes > limits::JUDGE_TALK_BYTES {
            break;
        }
    }
    if bytes <= limits::JUDGE_TALK_BYTES
        && let Some(before) = &run.context.compacted
    {
        lines.push(format!("[iterations 1 to {}, summarised] {}", before.to, before.text));
    }
    lines.reverse();
    tail(&lines.join("\n"), limits::JUDGE_TALK_BYTES).to_string()
}

/// Whether the condition holds, as the answer says, and why. What can't be read is a no.
pub fn read(reply: &ModelReply) -> (bool, String) {
    let text = reply.text.trim();
    let bare = text.trim_start_matches("```json").trim_start_matches("```").trim_end_matches("```").trim();
    match serde_json::from_str::<Answer>(bare) {
        Ok(answer) => {
            (answer.holds, if answer.why.is_empty() { "the judge gave no reason".to_string() } else { answer.why })
        }
        Err(_) => (false, format!("the judge's answer can't be read: {:?}", one_line(text, ANSWER_MAX_CHARS))),
    }
}

/// What a judge that could not be asked means: a no.
pub fn failed(failure: &ModelFailure) -> String {
    format!("the judge could not be asked: {}", failure.message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::model::StopReason;

    #[test]
    fn only_a_clear_yes_is_one() {
        for (text, holds) in [
            (r#"{"holds": true, "why": "seen"}"#, true),
            ("```json\n{\"holds\": true}\n```", true),
            (r#"{"holds": false, "why": "no"}"#, false),
            (r#"Yes. {"holds": true}"#, false),
            (r#"{"holds": "true"}"#, false),
            ("yes", false),
            ("", false),
        ] {
            let reply = ModelReply {
                text: text.to_string(),
                reasoning: String::new(),
                calls: Vec::new(),
                opaque: Vec::new(),
                stop: StopReason::End,
                usage: None,
                received_bytes: 0,
            };
            assert_eq!(read(&reply).0, holds, "{text}");
        }
    }
}
