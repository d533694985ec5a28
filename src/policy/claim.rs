//! Claims of being finished, and the arguments of the small control tools (docs/ENGINE.md §7.6).

use serde::Deserialize;

use crate::domain::limits;
use crate::domain::plan::Plan;
use crate::domain::plan::TodoId;
use crate::domain::plan::TodoStatus;
use crate::domain::run::Run;
use crate::domain::text::one_line;

/// The arguments of `finish`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FinishArguments {
    /// What was done.
    pub summary: String,
    /// What shows it.
    #[serde(default)]
    pub evidence: Vec<String>,
    /// Open todos that are not needed after all.
    #[serde(default)]
    pub not_needed: Vec<NotNeeded>,
}

/// An open todo that is not needed after all.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NotNeeded {
    /// Its name.
    pub id: String,
    /// Why.
    pub reason: String,
}

/// The arguments of `ask_operator`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// The question.
    pub question: String,
}

/// The arguments of `note`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Note {
    /// The note.
    pub text: String,
}

/// Reads the arguments of a control tool. The error names the place, for the model.
pub fn read<'a, T: Deserialize<'a>>(arguments: &'a str) -> Result<T, String> {
    serde_json::from_str(arguments).map_err(|error| format!("the arguments do not fit: {error}; nothing was done"))
}

/// The question of an `ask_operator` call, as the operator is shown it.
pub fn question(arguments: &str) -> Result<String, String> {
    let asked: Question = read(arguments)?;
    if asked.question.trim().is_empty() { Err("the question is empty".to_string()) } else { Ok(asked.question) }
}

/// The plan after a claim has called some open todos not needed: they are dropped with the reason given.
pub fn without_not_needed(plan: &Plan, claim: &FinishArguments) -> Option<Plan> {
    let mut next = plan.clone();
    for todo in next.todos.iter_mut().filter(|todo| !todo.status.is_settled()) {
        let named =
            claim.not_needed.iter().find(|one| TodoId(one.id.clone()) == todo.id && !one.reason.trim().is_empty());
        if let Some(one) = named {
            todo.status = TodoStatus::Dropped;
            todo.note = one_line(&one.reason, limits::TODO_NOTE_MAX_CHARS);
        }
    }
    if next == *plan {
        return None;
    }
    next.revision += 1;
    Some(next)
}

/// What stands against a claim before any check is run.
pub fn objection(run: &Run) -> Option<String> {
    let open: Vec<String> = run.plan.open().map(|todo| format!("{} ({})", todo.id.0, todo.title)).collect();
    if !open.is_empty() {
        return Some(format!(
            "not finished: these todos are open: {}. Do them, or mark them done, or drop them with a reason, or name them in \
             not_needed.",
            open.join("; ")
        ));
    }
    let (done, _) = run.plan.score();
    (done == 0).then(|| "not finished: no todo of the plan is done; all were dropped.".to_string())
}
