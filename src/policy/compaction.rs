//! Making room in the model's window: when, by which step, and what stands for iterations that are not sent any more
//! (docs/ENGINE.md §13). Pruning costs nothing and comes first; a summary is a model call of its own.

use std::sync::Arc;

use crate::domain::context::Elided;
use crate::domain::context::Excess;
use crate::domain::limits;
use crate::domain::message::Message;
use crate::domain::message::Transcript;
use crate::domain::message::entry_bytes;
use crate::domain::model::ModelReply;
use crate::domain::model::ModelRequest;
use crate::domain::model::Offer;
use crate::domain::model::Purpose;
use crate::domain::model::StopReason;
use crate::domain::run::Run;
use crate::domain::status::ParkReason;
use crate::domain::status::Phase;
use crate::domain::text::excerpt;
use crate::domain::text::one_line;
use crate::policy::context;
use crate::policy::pruning;
use crate::policy::spending;

const PROMPT: &str = include_str!("../../assets/prompts/summary.md");

/// What a summary must have.
const SECTIONS: [&str; 5] = ["facts found", "decisions and reasons", "files touched", "failed approaches", "next step"];

/// The next step towards a request that fits.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Leave this out.
    Prune(Vec<Elided>),
    /// Have the model summarise these iterations, the first and the last of them.
    Ask(u32, u32),
    /// No summary could be had: list what was done in them.
    List(u32, u32),
    /// Room was made; ask again.
    Again,
    /// No room can be made.
    Park,
}

/// The next step, if there is one before the model can be asked.
pub fn step(run: &Run) -> Option<Step> {
    if let Some(demand) = run.context.demand {
        return Some(answer(run, demand.of, demand.pruned));
    }
    if spending::estimate_input(run, context::assemble(run).bytes()) <= threshold(run) {
        return None;
    }
    if let Some(refs) = prunable(run) {
        return Some(Step::Prune(refs));
    }
    if run.context.poor >= limits::SUMMARIES_POOR {
        return Some(Step::Park);
    }
    let is_too_soon =
        run.context.compacted_at.is_some_and(|at| run.iteration.n.saturating_sub(at) < limits::SUMMARY_DISTANCE);
    summarise(run).filter(|_| !is_too_soon)
}

/// What is done about a request that the provider refused for its size. How soon after the last summary does not count
/// here: nothing smaller would be taken, and `ROOM_ROUNDS` bounds how often (docs/ENGINE.md §13).
fn answer(run: &Run, excess: Excess, pruned: bool) -> Step {
    let n = run.iteration.n;
    let rounds = run.context.rounds.iter().filter(|round| round.saturating_add(limits::ROOM_WINDOW) > n).count();
    let is_over = match excess {
        Excess::Tokens => rounds >= limits::ROOM_ROUNDS,
        Excess::Bytes => run.context.shrunk_at == Some(n),
    };
    if is_over {
        return Step::Park;
    }
    if let Some(refs) = prunable(run) {
        return Step::Prune(refs);
    }
    let may_summarise = excess == Excess::Tokens && run.context.poor < limits::SUMMARIES_POOR;
    let summary = summarise(run).filter(|_| may_summarise);
    summary.unwrap_or(if pruned { Step::Again } else { Step::Park })
}

/// What can be left out: what is old first, and of the rest only then.
fn prunable(run: &Run) -> Option<Vec<Elided>> {
    let kept = [limits::PRUNE_AFTER, limits::ITERATIONS_KEPT];
    kept.into_iter()
        .map(|kept| pruning::candidates(&run.context, &run.offer, run.iteration.n, kept))
        .find(|refs| !refs.is_empty())
}

fn summarise(run: &Run) -> Option<Step> {
    // A last look at the work, when the budget ends, is worth no call of its own before it.
    let (from, to) = cut(run).filter(|_| run.iteration.phase != Phase::WrapUp)?;
    let has_failed = run.context.rejected >= limits::SUMMARY_TRIES || rendered(run, from, to).is_none();
    Some(if has_failed { Step::List(from, to) } else { Step::Ask(from, to) })
}

/// The iterations that a summary would stand for: all since the base but the last ones before the open one.
pub fn cut(run: &Run) -> Option<(u32, u32)> {
    let from = run.context.compacted.as_ref().map_or(1, |before| before.to + 1);
    let to = run.iteration.n.checked_sub(limits::ITERATIONS_KEPT + 1)?;
    (from <= to).then_some((from, to))
}

/// Whether resuming can't help: nothing can be left out any more, and the request does not fit.
pub fn is_hopeless(run: &Run) -> bool {
    let mut granted = run.clone();
    granted.context.grant();
    match step(&granted) {
        Some(step) => step == Step::Park,
        None => {
            let request = context::assemble(run);
            let worst = spending::worst_case(run, &request);
            spending::refusal(run, &worst, request.max_output) == Some(ParkReason::ContextExhausted)
        }
    }
}

/// Input tokens above which room is made.
fn threshold(run: &Run) -> u64 {
    let model = &run.terms.model;
    model.window.saturating_sub(model.max_output).saturating_mul(limits::CONTEXT_PERCENT) / 100
}

/// The request for a summary, as it is made now.
pub fn request(run: &Run) -> Option<ModelRequest> {
    let (from, to) = cut(run)?;
    let (call, attempt) = match run.context.asked {
        Some(last) => (last.call, last.attempt + 1),
        None => (run.next.model_call, 1),
    };
    Some(ModelRequest {
        call,
        attempt,
        iteration: run.iteration.n,
        phase: run.iteration.phase,
        purpose: Purpose::Summary,
        system: format!("{}\nThe goal of the agent:\n{}\n", PROMPT.trim(), run.terms.goal.as_str()),
        entries: Transcript::default(),
        talk: context::talk(run),
        closing: rendered(run, from, to)?,
        offer: Arc::new(Offer::default()),
        max_output: limits::SUMMARY_TOKENS.min(run.terms.model.max_output),
        temperature_percent: None,
    })
}

/// What happened in these iterations, as text: with as much of every result as the window has room for.
fn rendered(run: &Run, from: u32, to: u32) -> Option<String> {
    let tokens = run.terms.model.window.saturating_sub(limits::SUMMARY_TOKENS) * limits::CONTEXT_PERCENT / 100;
    let room = usize::try_from(tokens.saturating_mul(3)).unwrap_or(usize::MAX).checked_sub(PROMPT.len())?;
    let before = run.context.compacted.as_ref().map(|before| {
        format!("The summary of iterations 1 to {}, which yours replaces as well:\n{}\n\n", before.to, before.text)
    });
    let before = before.unwrap_or_default();
    let most = [8 * 1024, 2 * 1024, 512, 128];
    most.into_iter().map(|most| format!("{before}{}", told(run, from, to, most))).find(|text| text.len() <= room)
}

fn told(run: &Run, from: u32, to: u32, most: usize) -> String {
    let mut text = String::new();
    let mut iteration = 0;
    for entry in run.transcript.entries().filter(|entry| (from..=to).contains(&entry.iteration)) {
        if entry.iteration != iteration {
            iteration = entry.iteration;
            text.push_str(&format!("Iteration {iteration}\n"));
        }
        match &entry.message {
            Message::Operator { text: said, .. } => text.push_str(&format!("operator: {}\n", excerpt(said, most))),
            Message::Engine { text: said } => text.push_str(&format!("engine: {}\n", excerpt(said, most))),
            Message::Assistant { text: said, uses, .. } => {
                if !said.trim().is_empty() {
                    text.push_str(&format!("agent: {}\n", excerpt(said, most)));
                }
                for one in uses {
                    let arguments = excerpt(&one.arguments, most.min(2 * 1024));
                    text.push_str(&format!("call {}: {} {arguments}\n", one.id, one.tool));
                }
            }
            Message::ToolResult { call, kind, text: gave, .. } => {
                text.push_str(&format!("result of {call}, {}: {}\n", kind.word(), excerpt(gave, most)));
            }
        }
    }
    text
}

/// The summary of a reply, or why it is none.
pub fn judge(run: &Run, reply: &ModelReply) -> Result<String, String> {
    let text = reply.text.trim();
    if text.is_empty() {
        return Err("the summary is empty".to_string());
    }
    if reply.stop == StopReason::Length {
        return Err("the summary is cut off".to_string());
    }
    let headings: Vec<String> = text.lines().map(heading).collect();
    if let Some(missing) = SECTIONS.iter().find(|section| !headings.iter().any(|line| line.starts_with(*section))) {
        return Err(format!("the summary has no section {missing:?}"));
    }
    let replaced = cut(run).map_or(0, |(_, to)| sizes(run, to).0);
    if text.len() as u64 > replaced / 2 {
        return Err(format!("the summary is longer than half of the {replaced} bytes that it stands for"));
    }
    Ok(text.to_string())
}

/// A line without what makes it a heading.
fn heading(line: &str) -> String {
    line.trim_start_matches(|one: char| !one.is_alphabetic()).to_lowercase()
}

/// What stands for these iterations when the model gave no summary: the one before, and a line for each of them.
pub fn listed(run: &Run, from: u32, to: u32) -> String {
    let mut lines: Vec<String> = Vec::new();
    if let Some(before) = &run.context.compacted {
        lines.push(excerpt(&before.text, limits::LIST_MAX_BYTES / 2));
    }
    for n in from..=to {
        lines.push(line(run, n));
    }
    excerpt(&lines.join("\n"), limits::LIST_MAX_BYTES)
}

/// One iteration in a line: its calls, what they were about, how they ended.
fn line(run: &Run, n: u32) -> String {
    let entries = || run.transcript.entries().filter(move |entry| entry.iteration == n);
    let uses = entries().filter_map(|entry| match &entry.message {
        Message::Assistant { uses, .. } => Some(uses),
        Message::Operator { .. } | Message::Engine { .. } | Message::ToolResult { .. } => None,
    });
    let result = |wanted| {
        entries().find_map(|entry| match &entry.message {
            Message::ToolResult { call, title, kind, .. } if *call == wanted => Some((title.as_str(), *kind)),
            Message::ToolResult { .. }
            | Message::Assistant { .. }
            | Message::Operator { .. }
            | Message::Engine { .. } => None,
        })
    };
    let calls: Vec<String> = uses
        .flatten()
        .map(|one| match result(one.id) {
            Some((title, kind)) => format!("{} {}: {}", one.tool, one_line(title, 80), kind.word()),
            None => one.tool.clone(),
        })
        .collect();
    let calls = if calls.is_empty() { "no calls".to_string() } else { calls.join("; ") };
    format!("Iteration {n}: {calls}")
}

/// Bytes of what is sent of the iterations up to `to`, and of what is sent after them.
pub fn sizes(run: &Run, to: u32) -> (u64, u64) {
    let before = run.context.compacted.as_ref().map_or(0, |before| before.text.len());
    let of = |is_cut: bool| -> usize {
        run.context.entries().filter(|entry| (entry.iteration <= to) == is_cut).map(|entry| entry_bytes(entry)).sum()
    };
    ((before + of(true)) as u64, of(false) as u64)
}
