//! What a replan is told: what was noticed, what went wrong last, what is open, what changed (docs/ENGINE.md §7.5).

use crate::domain::limits;
use crate::domain::message::Message;
use crate::domain::run::Run;
use crate::domain::text::counted;
use crate::domain::text::one_line;

/// Longest line about one error, in characters.
const ERROR_MAX_CHARS: usize = 240;
/// Files that are named as changed.
const CHANGED_MAX: usize = 20;

/// The diagnosis with all that a new plan should rest on, drawn from the run.
pub fn brief(run: &Run, diagnosis: &str) -> String {
    let mut lines = vec![format!("What was noticed: {diagnosis}")];
    let errors = last_errors(run);
    if !errors.is_empty() {
        lines.push(format!("The last errors:\n{}", errors.join("\n")));
    }
    let open: Vec<String> = run.plan.open().map(|todo| format!("{} ({})", todo.id.0, todo.title)).collect();
    lines.push(match open.is_empty() {
        true => "No todo is open.".to_string(),
        false => format!("Open todos: {}", open.join("; ")),
    });
    let (done, all) = run.plan.score();
    let all = counted(all, "todo");
    let changed = changed(run);
    lines.push(match changed.is_empty() {
        true => format!("Since the start: {done} of {all} done, no file written."),
        false => format!("Since the start: {done} of {all} done; files written: {}.", changed.join(", ")),
    });
    lines.join("\n")
}

fn last_errors(run: &Run) -> Vec<String> {
    let mut found: Vec<String> = run
        .transcript
        .entries()
        .rev()
        .filter_map(|entry| match &entry.message {
            Message::ToolResult { title, kind, text, .. } if kind.is_error() => {
                Some(format!("- {title}: {}: {}", kind.word(), one_line(text, ERROR_MAX_CHARS)))
            }
            Message::ToolResult { .. }
            | Message::Operator { .. }
            | Message::Engine { .. }
            | Message::Assistant { .. } => None,
        })
        .take(limits::DIAGNOSIS_ERRORS)
        .collect();
    found.reverse();
    found
}

/// Paths that were written, each once, in order.
fn changed(run: &Run) -> Vec<String> {
    let mut paths: Vec<String> = run
        .progress
        .written
        .iter()
        .filter_map(|effect| effect.rsplit_once('@'))
        .map(|(path, _)| path.to_string())
        .collect();
    paths.sort_unstable();
    paths.dedup();
    let more = paths.len().saturating_sub(CHANGED_MAX);
    paths.truncate(CHANGED_MAX);
    if more > 0 {
        paths.push(format!("and {more} more"));
    }
    paths
}
