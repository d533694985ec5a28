//! What an operator's edit makes of the plan, or why it does not fit (docs/ENGINE.md §6.3). The operator's word wins:
//! of two todos in progress the one they marked stays. Only what is dropped or blocked needs a reason, as from the model.

use crate::domain::command::PlanEdit;
use crate::domain::limits;
use crate::domain::plan::Plan;
use crate::domain::plan::PlanSource;
use crate::domain::plan::Todo;
use crate::domain::plan::TodoId;
use crate::domain::plan::TodoStatus;
use crate::domain::text::one_line;
use crate::policy::plan_items::bare;
use crate::policy::plan_items::clean;

/// The plan after an edit, and the sentence that tells the model of it. Errors with why it does not fit.
pub fn edited(plan: &Plan, edit: &PlanEdit) -> Result<(Plan, String), String> {
    if plan.source == PlanSource::Seed {
        return Err("there is no plan yet; tell the agent what you want instead".to_string());
    }
    let mut next = Plan { revision: plan.revision + 1, ..plan.clone() };
    let what = match edit {
        PlanEdit::Add { title } => add(&mut next, title)?,
        PlanEdit::Retitle { id, title } => {
            let title = words(title)?;
            let todo = find(&mut next, id)?;
            todo.title = title;
            format!("{} reads now: {}", id.0, todo.title)
        }
        PlanEdit::Mark { id, status, note } => mark(&mut next, id, *status, note)?,
        PlanEdit::Move { id, position } => moved(&mut next, id, *position)?,
    };
    if next.todos == plan.todos {
        return Err("the plan is so already".to_string());
    }
    Ok((next, format!("The operator changed the plan: {what}.")))
}

/// An edit as it is typed: `add TEXT`, `drop ID NOTE`, `done ID`, `edit ID TEXT`, `move ID POSITION`, and every other
/// status word with an id. Errors with what can be typed.
pub fn read(line: &str) -> Result<PlanEdit, String> {
    let (word, rest) = split(line);
    if word == "add" {
        return Ok(PlanEdit::Add { title: rest.to_string() });
    }
    let (id, rest) = split(rest);
    let mark = |id, status| PlanEdit::Mark { id, status, note: rest.to_string() };
    let how =
        "type: add TEXT | edit ID TEXT | done ID | now ID | open ID | block ID WHY | drop ID WHY | move ID POSITION";
    if id.is_empty() {
        return Err(how.to_string());
    }
    let id = TodoId(id.to_string());
    match word {
        "edit" => Ok(PlanEdit::Retitle { id, title: rest.to_string() }),
        "done" => Ok(mark(id, TodoStatus::Done)),
        "now" => Ok(mark(id, TodoStatus::InProgress)),
        "open" => Ok(mark(id, TodoStatus::Pending)),
        // The agent acts on the reason; without one it could only guess.
        "block" | "drop" if rest.is_empty() => {
            Err(format!("say why, the agent is told: {word} {} WHY", one_line(&id.0, 40)))
        }
        "block" => Ok(mark(id, TodoStatus::Blocked)),
        "drop" => Ok(mark(id, TodoStatus::Dropped)),
        "move" => {
            let position =
                rest.parse().map_err(|_| format!("a position is a number from 1, not {:?}", one_line(rest, 40)))?;
            Ok(PlanEdit::Move { id, position })
        }
        _ => Err(how.to_string()),
    }
}

/// The first word of a line, and the rest.
fn split(line: &str) -> (&str, &str) {
    let line = line.trim();
    line.split_once(char::is_whitespace).map_or((line, ""), |(word, rest)| (word, rest.trim_start()))
}

fn find<'a>(plan: &'a mut Plan, id: &TodoId) -> Result<&'a mut Todo, String> {
    let name = one_line(&id.0, 40);
    plan.todos.iter_mut().find(|todo| todo.id == *id).ok_or_else(|| format!("there is no todo {name}"))
}

/// A title as it is kept. The operator's words are refused rather than cut: they would not know what is missing.
fn words(title: &str) -> Result<String, String> {
    let title = bare(&clean(title)).to_string();
    match (title.chars().count(), limits::TODO_TITLE_MAX_CHARS) {
        (0, _) => Err("a todo needs words".to_string()),
        (length, most) if length > most => Err(format!(
            "a todo has at most {most} characters, and this one has {length}; shorten it, and say the rest to the agent"
        )),
        (_, _) => Ok(title),
    }
}

fn add(plan: &mut Plan, title: &str) -> Result<String, String> {
    let title = words(title)?;
    let standing = |todo: &&Todo| todo.status != TodoStatus::Dropped;
    if plan.todos.iter().filter(standing).count() >= limits::TODOS_MAX {
        return Err(format!("a plan has at most {} todos", limits::TODOS_MAX));
    }
    let folded = title.to_lowercase();
    if let Some(twin) = plan.todos.iter().filter(standing).find(|todo| todo.title.to_lowercase() == folded) {
        return Err(format!("{} says that already", twin.id.0));
    }
    let id = plan.fresh_id(|_| false);
    let told = format!("{} is new: {title}", id.0);
    // What is dropped stays at the end.
    let place = plan.todos.iter().rposition(|todo| todo.status != TodoStatus::Dropped).map_or(0, |last| last + 1);
    plan.todos.insert(place, Todo::new(id, title));
    Ok(told)
}

fn mark(plan: &mut Plan, id: &TodoId, status: TodoStatus, note: &str) -> Result<String, String> {
    let (given, most) = (clean(note), limits::TODO_NOTE_MAX_CHARS);
    let length = given.chars().count();
    if length > most {
        return Err(format!("a note has at most {most} characters, and this one has {length}; shorten it"));
    }
    let todo = find(plan, id)?;
    let stays = todo.status == status;
    let needs_note = matches!(status, TodoStatus::Dropped | TodoStatus::Blocked) || todo.status == TodoStatus::Done;
    todo.note = match given.is_empty() {
        false => given,
        true if stays => todo.note.clone(),
        true if needs_note => "by the operator".to_string(),
        true => String::new(),
    };
    todo.status = status;
    let why = if todo.note.is_empty() { String::new() } else { format!(" ({})", todo.note) };
    let told = format!("{} ({}) is {}{why}", id.0, todo.title, status.word());
    if status == TodoStatus::InProgress {
        let others = plan.todos.iter_mut().filter(|todo| todo.status == TodoStatus::InProgress && todo.id != *id);
        others.for_each(|todo| todo.status = TodoStatus::Pending);
    }
    Ok(told)
}

/// A todo moves among those of its own level, and takes its parts with it.
fn moved(plan: &mut Plan, id: &TodoId, position: usize) -> Result<String, String> {
    let parent = find(plan, id)?.parent.clone();
    let level = |todo: &&Todo| todo.parent == parent;
    let last = plan.todos.iter().filter(level).count();
    if position == 0 || position > last {
        return Err(format!("{} can stand at 1 to {last} of its level, not at {position}", id.0));
    }
    let (block, mut rest): (Vec<Todo>, Vec<Todo>) = std::mem::take(&mut plan.todos)
        .into_iter()
        .partition(|todo| todo.id == *id || todo.parent.as_ref() == Some(id));
    let follower = rest.iter().enumerate().filter(|(_, todo)| todo.parent == parent).nth(position - 1);
    let place = match follower {
        Some((place, _)) => place,
        // After the last of its level and that one's parts.
        None => {
            rest.iter().rposition(|todo| parent.is_none() || todo.parent == parent).map_or(rest.len(), |last| last + 1)
        }
    };
    rest.splice(place..place, block);
    plan.todos = rest;
    Ok(format!("{} stands at {position} now", id.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What becomes of an edit of a plan with one todo, `t1`.
    fn check(line: &str, wanted: &str) {
        let todo = Todo::new(TodoId("t1".to_string()), "one".to_string());
        let plan = Plan { source: PlanSource::Tool, todos: vec![todo], ..Plan::seed("goal") };
        let said = read(line).and_then(|edit| edited(&plan, &edit)).map_or_else(|why| why, |(_, told)| told);
        assert!(said.contains(wanted), "{line:.80}: {said}");
    }

    #[test]
    fn what_is_not_done_after_all_needs_a_reason() {
        check("drop t1", "say why, the agent is told: drop t1 WHY");
        check("block t1 ", "say why, the agent is told: block t1 WHY");
        check("drop t1 no time", "t1 (one) is dropped (no time)");
        check("done t1", "t1 (one) is done");
    }

    #[test]
    fn words_of_the_operator_are_refused_rather_than_cut() {
        let (fits, long) = ("é".repeat(limits::TODO_TITLE_MAX_CHARS), "é".repeat(limits::TODO_TITLE_MAX_CHARS + 1));
        for word in ["add", "edit t1"] {
            check(&format!("{word} - {fits}"), &fits);
            check(&format!("{word} {long}"), "a todo has at most 200 characters, and this one has 201");
        }
        let (fits, long) = ("é".repeat(limits::TODO_NOTE_MAX_CHARS), "é".repeat(limits::TODO_NOTE_MAX_CHARS + 1));
        for word in ["done", "now", "block", "drop"] {
            check(&format!("{word} t1 {fits}"), &fits);
            check(&format!("{word} t1 {long}"), "a note has at most 500 characters, and this one has 501");
        }
        check(&format!("add {}", "x".repeat(100_000)), "and this one has 100000");
    }
}
