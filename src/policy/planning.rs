//! What becomes of a proposed plan: the plan contract, to the letter and always in the same order
//! (docs/ENGINE.md §6). The engine owns the plan; whatever the model writes ends here as a valid one or as an error
//! that changes nothing.

use serde_json::Value;
use unicode_normalization::UnicodeNormalization;

use crate::domain::limits;
use crate::domain::plan::Plan;
use crate::domain::plan::PlanSource;
use crate::domain::plan::Todo;
use crate::domain::plan::TodoId;
use crate::domain::plan::TodoStatus;
use crate::domain::text::head;

/// A plan that was accepted, and what had to be corrected to accept it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// The plan as it will stand.
    pub plan: Plan,
    /// Corrections and warnings, for the model.
    pub corrections: Vec<String>,
}

impl Accepted {
    /// What the model is told.
    pub fn answer(&self) -> String {
        let corrections: String = self.corrections.iter().map(|line| format!("\n- {line}")).collect();
        let heading = if corrections.is_empty() { String::new() } else { format!("\nCorrected:{corrections}") };
        format!("The plan, revision {}:\n{}{heading}", self.plan.revision, self.plan.listing())
    }
}

/// One item of a proposal, flattened.
struct Item {
    id: Option<String>,
    title: String,
    status: TodoStatus,
    acceptance: String,
    note: String,
    parent: Option<Parent>,
    depends_on: Vec<String>,
}

enum Parent {
    /// The item at this place of the proposal.
    Place(usize),
    /// Whatever has this id.
    Named(String),
}

/// Reads the arguments of `update_plan` against the plan as it stands. The error is for the model; nothing changed.
pub fn accept(plan: &Plan, arguments: &str) -> Result<Accepted, String> {
    let value: Value =
        serde_json::from_str(arguments).map_err(|error| format!("the plan is not valid JSON: {error}"))?;
    let is_patch = match value.get("mode").and_then(Value::as_str) {
        None | Some("replace") => false,
        Some("patch") => true,
        Some(other) => {
            return Err(format!("mode {:?} is not one of replace, patch; the plan is unchanged", head(other, 40)));
        }
    };
    let listed = value.get("todos").and_then(Value::as_array).ok_or("todos must be a list; the plan is unchanged")?;
    let mut corrections = Vec::new();
    let mut items = Vec::new();
    for one in listed {
        flatten(one, None, 1, &mut items, &mut corrections)?;
    }
    if items.is_empty() {
        let code = if plan.source == PlanSource::Seed { "plan_empty" } else { "plan_would_erase" };
        return Err(format!("{code}: the list of todos is empty; the plan is unchanged"));
    }
    if items.len() > limits::TODOS_MAX {
        return Err(too_many(items.len()));
    }
    let base = match plan.source {
        PlanSource::Seed => Plan { todos: Vec::new(), next_number: 1, ..plan.clone() },
        PlanSource::Tool | PlanSource::Fallback => plan.clone(),
    };
    let mut next = Plan { revision: plan.revision + 1, source: PlanSource::Tool, ..base.clone() };
    let items = merge_titles(items, &mut corrections);
    let ids = name(&items, &base, &mut next, &mut corrections)?;
    let todos = build(&items, &ids, &base, &mut corrections)?;
    next.todos = if is_patch { patched(&base, todos) } else { replaced(&base, todos) };
    if next.todos.iter().filter(|todo| todo.status != TodoStatus::Dropped).count() > limits::TODOS_MAX {
        return Err(too_many(next.todos.len()));
    }
    forget_oldest_dropped(&mut next);
    mend_links(&mut next, &mut corrections);
    mend_depth(&mut next, &mut corrections);
    one_in_progress(&mut next, &mut corrections);
    warn_of_open_dependencies(&next, &mut corrections);
    Ok(Accepted { plan: next, corrections })
}

fn too_many(got: usize) -> String {
    format!("plan_too_many: {got} todos, at most {}; the plan is unchanged", limits::TODOS_MAX)
}

fn flatten(
    value: &Value,
    parent: Option<usize>,
    depth: usize,
    items: &mut Vec<Item>,
    corrections: &mut Vec<String>,
) -> Result<(), String> {
    if items.len() > limits::TODOS_MAX || depth > limits::TODOS_MAX {
        return Err(too_many(items.len()));
    }
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
    let title = clean_title(value.as_str().unwrap_or_else(|| text("title")));
    if title.is_empty() {
        return Err("a todo has no title; the plan is unchanged".to_string());
    }
    let status = match value.get("status").and_then(Value::as_str) {
        Some(word) => status_of(word).ok_or_else(|| {
            format!("status {:?} of {title:?} is not one of pending, in_progress, done, blocked, dropped; the plan is unchanged", head(word, 40))
        })?,
        None => {
            corrections.push(format!("{title:?} had no status; it is pending"));
            TodoStatus::Pending
        }
    };
    let place = items.len();
    items.push(Item {
        id: value.get("id").and_then(Value::as_str).map(str::to_string),
        title,
        status,
        acceptance: clip(text("acceptance"), 300),
        note: clip(text("note"), limits::TODO_NOTE_MAX_CHARS),
        parent: parent
            .map(Parent::Place)
            .or(value.get("parent").and_then(Value::as_str).map(|id| Parent::Named(id.to_string()))),
        depends_on: strings(value.get("depends_on")),
    });
    for child in value.get("children").and_then(Value::as_array).into_iter().flatten() {
        flatten(child, Some(place), depth + 1, items, corrections)?;
    }
    Ok(())
}

fn strings(value: Option<&Value>) -> Vec<String> {
    let listed = value.and_then(Value::as_array).into_iter().flatten();
    listed.filter_map(Value::as_str).take(limits::TODO_DEPENDENCIES_MAX).map(str::to_string).collect()
}

/// NFC, no control characters, whitespace collapsed, no list marker or number in front.
fn clean_title(raw: &str) -> String {
    let joined = clip(head(raw, 16 * 1024), usize::MAX);
    let mut rest = joined.as_str();
    for marker in ["- ", "* ", "+ ", "• ", "[ ] ", "[x] ", "[X] "] {
        rest = rest.strip_prefix(marker).unwrap_or(rest).trim_start();
    }
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    if (1..=3).contains(&digits) {
        let after = &rest[digits..];
        rest = after.strip_prefix(". ").or(after.strip_prefix(") ")).unwrap_or(rest);
    }
    clip(rest, limits::TODO_TITLE_MAX_CHARS)
}

fn clip(raw: &str, max_chars: usize) -> String {
    let plain: String = raw.nfc().map(|one| if one.is_control() { ' ' } else { one }).collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(max_chars).collect()
}

fn status_of(word: &str) -> Option<TodoStatus> {
    match word.trim().to_lowercase().replace([' ', '-'], "_").as_str() {
        "pending" | "todo" | "open" | "not_started" => Some(TodoStatus::Pending),
        "in_progress" | "doing" | "active" | "wip" | "started" => Some(TodoStatus::InProgress),
        "done" | "completed" | "complete" | "finished" | "x" => Some(TodoStatus::Done),
        "blocked" | "stuck" | "waiting" => Some(TodoStatus::Blocked),
        "dropped" | "skipped" | "cancelled" | "canceled" | "wontfix" => Some(TodoStatus::Dropped),
        _ => None,
    }
}

/// Two items of one title are one: the first wins. What pointed at the second points at the first.
fn merge_titles(items: Vec<Item>, corrections: &mut Vec<String>) -> Vec<Item> {
    let mut kept: Vec<Item> = Vec::new();
    let mut moved = Vec::new();
    for mut item in items {
        if let Some(Parent::Place(place)) = item.parent {
            item.parent = moved.get(place).copied().map(Parent::Place);
        }
        let twin = kept.iter().position(|one| {
            fold_case(&one.title) == fold_case(&item.title) && one.id == item.id.clone().or(one.id.clone())
        });
        match twin {
            Some(place) => {
                corrections.push(format!("{:?} was listed twice; the first one counts", item.title));
                moved.push(place);
            }
            None => {
                moved.push(kept.len());
                kept.push(item);
            }
        }
    }
    kept
}

fn fold_case(text: &str) -> String {
    text.to_lowercase()
}

/// Gives every item its id: its own, that of the todo of the same title, or a new one.
fn name(items: &[Item], base: &Plan, next: &mut Plan, corrections: &mut Vec<String>) -> Result<Vec<TodoId>, String> {
    let mut ids: Vec<TodoId> = Vec::new();
    let mut given: Vec<&str> = Vec::new();
    for item in items {
        let own = item.id.as_deref().filter(|id| is_id(id));
        if let (Some(bad), None) = (item.id.as_deref(), own) {
            corrections.push(format!("{:?} is not an id of a todo; {:?} got another", head(bad, 40), item.title));
        }
        if let Some(id) = own {
            if given.contains(&id) {
                return Err(format!("plan_duplicate_id: {id} is there twice; the plan is unchanged"));
            }
            given.push(id);
        }
        let known = |id: &TodoId| ids.contains(id) || items.iter().any(|one| one.id.as_deref() == Some(id.0.as_str()));
        let same_title =
            base.todos.iter().find(|todo| fold_case(&todo.title) == fold_case(&item.title) && !known(&todo.id));
        let id = match (own, same_title) {
            (Some(id), _) => TodoId(id.to_string()),
            (None, Some(todo)) => todo.id.clone(),
            (None, None) => fresh_id(next, &known),
        };
        ids.push(id);
    }
    Ok(ids)
}

fn is_id(text: &str) -> bool {
    let first = text.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let rest =
        text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_' || byte == b'-');
    first && rest && text.len() <= 32
}

fn fresh_id(next: &mut Plan, known: &dyn Fn(&TodoId) -> bool) -> TodoId {
    loop {
        let id = TodoId(format!("t{}", next.next_number));
        next.next_number += 1;
        if !known(&id) && next.find(&id).is_none() {
            return id;
        }
    }
}

fn build(items: &[Item], ids: &[TodoId], base: &Plan, corrections: &mut Vec<String>) -> Result<Vec<Todo>, String> {
    let mut todos = Vec::new();
    for (item, id) in items.iter().zip(ids) {
        let before = base.find(id);
        let note = if item.note.is_empty() {
            before.map(|todo| todo.note.clone()).unwrap_or_default()
        } else {
            item.note.clone()
        };
        let was = before.map(|todo| todo.status);
        let reopened = was == Some(TodoStatus::Done) && item.status != TodoStatus::Done;
        let needs_note = matches!(item.status, TodoStatus::Dropped | TodoStatus::Blocked) && note.is_empty();
        if needs_note || (reopened && item.note.is_empty()) {
            let what = if reopened { "reopened" } else { item.status.word() };
            return Err(format!(
                "plan_note_missing: {} is {what} without a note that says why; the plan is unchanged",
                id.0
            ));
        }
        if reopened {
            corrections.push(format!("{} was done and is open again", id.0));
        }
        let acceptance = match (item.acceptance.is_empty(), before) {
            (true, Some(todo)) => todo.acceptance.clone(),
            (true, None) | (false, _) => item.acceptance.clone(),
        };
        let parent = match &item.parent {
            Some(Parent::Place(place)) => ids.get(*place).cloned(),
            Some(Parent::Named(name)) => Some(TodoId(name.clone())),
            None => None,
        };
        let depends_on = item.depends_on.iter().cloned().map(TodoId).collect();
        todos.push(Todo {
            id: id.clone(),
            title: item.title.clone(),
            status: item.status,
            acceptance,
            note,
            parent,
            depends_on,
        });
    }
    Ok(todos)
}

/// The new list in its own order; open todos that it leaves out are dropped, settled ones are kept.
fn replaced(base: &Plan, todos: Vec<Todo>) -> Vec<Todo> {
    let missing = base.todos.iter().filter(|old| !todos.iter().any(|new| new.id == old.id));
    let (mut kept, mut dropped) = (Vec::new(), Vec::new());
    for old in missing {
        match old.status {
            TodoStatus::Done => kept.push(old.clone()),
            TodoStatus::Dropped => dropped.push(old.clone()),
            TodoStatus::Pending | TodoStatus::InProgress | TodoStatus::Blocked => {
                dropped.push(Todo {
                    status: TodoStatus::Dropped,
                    note: "removed by replace".to_string(),
                    ..old.clone()
                });
            }
        }
    }
    kept.into_iter().chain(todos).chain(dropped).collect()
}

fn patched(base: &Plan, todos: Vec<Todo>) -> Vec<Todo> {
    let mut next = base.todos.clone();
    for todo in todos {
        match next.iter().position(|old| old.id == todo.id) {
            Some(place) => next[place] = todo,
            None => next.push(todo),
        }
    }
    next
}

/// Dropped todos are a memory, not a history: only the newest are kept.
fn forget_oldest_dropped(plan: &mut Plan) {
    while plan.todos.len() > 2 * limits::TODOS_MAX {
        let Some(place) = plan.todos.iter().position(|todo| todo.status == TodoStatus::Dropped) else { return };
        plan.todos.remove(place);
    }
}

/// Links to nothing, to itself, or that close a circle are dropped.
fn mend_links(plan: &mut Plan, corrections: &mut Vec<String>) {
    let ids: Vec<TodoId> = plan.todos.iter().map(|todo| todo.id.clone()).collect();
    for place in 0..plan.todos.len() {
        let id = plan.todos[place].id.clone();
        if let Some(parent) = plan.todos[place].parent.clone()
            && (!ids.contains(&parent) || reaches(plan, &parent, &id, &|todo| todo.parent.iter().collect()))
        {
            corrections.push(format!("{} can't be a part of {}; it stands alone", id.0, head(&parent.0, 40)));
            plan.todos[place].parent = None;
        }
        for needed in std::mem::take(&mut plan.todos[place].depends_on) {
            if !ids.contains(&needed) || reaches(plan, &needed, &id, &|todo| todo.depends_on.iter().collect()) {
                corrections.push(format!("{} can't depend on {}; that link was dropped", id.0, head(&needed.0, 40)));
            } else {
                plan.todos[place].depends_on.push(needed);
            }
        }
    }
}

/// Whether `goal` is met when links are followed from `start`.
fn reaches<'a>(plan: &'a Plan, start: &'a TodoId, goal: &TodoId, links: &dyn Fn(&'a Todo) -> Vec<&'a TodoId>) -> bool {
    let mut seen: Vec<&TodoId> = Vec::new();
    let mut next = vec![start];
    while let Some(id) = next.pop() {
        if id == goal {
            return true;
        }
        if !seen.contains(&id) {
            seen.push(id);
            next.extend(plan.find(id).map(links).into_iter().flatten());
        }
    }
    false
}

/// A part of a part becomes a part of the whole; its title keeps the path.
fn mend_depth(plan: &mut Plan, corrections: &mut Vec<String>) {
    for place in 0..plan.todos.len() {
        let mut path = Vec::new();
        let mut top = plan.todos[place].parent.clone();
        while let Some(above) = top.as_ref().and_then(|id| plan.find(id)) {
            let Some(higher) = above.parent.clone() else { break };
            path.insert(0, above.title.clone());
            top = Some(higher);
        }
        if !path.is_empty() {
            path.push(plan.todos[place].title.clone());
            corrections.push(format!(
                "{} lay too deep; it is a part of {} now",
                plan.todos[place].id.0,
                top.as_ref().map_or("", |id| &id.0)
            ));
            plan.todos[place].title = clip(&path.join(" › "), limits::TODO_TITLE_MAX_CHARS);
            plan.todos[place].parent = top;
        }
    }
}

fn one_in_progress(plan: &mut Plan, corrections: &mut Vec<String>) {
    let mut seen = false;
    for todo in plan.todos.iter_mut().filter(|todo| todo.status == TodoStatus::InProgress) {
        if seen {
            todo.status = TodoStatus::Pending;
            corrections.push(format!("{} is pending: only one todo can be in progress", todo.id.0));
        }
        seen = true;
    }
}

fn warn_of_open_dependencies(plan: &Plan, corrections: &mut Vec<String>) {
    for todo in plan.todos.iter().filter(|todo| todo.status == TodoStatus::Done) {
        let open = |id: &&TodoId| plan.find(id).is_some_and(|needed| !needed.status.is_settled());
        for needed in todo.depends_on.iter().filter(open) {
            corrections.push(format!("{} is done although {} is open", todo.id.0, needed.0));
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Applies one proposal after another to the seed; gives the listing and corrections, or the error, of the last.
    fn check(proposals: &[&str], expected: &str) {
        let mut plan = Plan::seed("the goal");
        let mut said = String::new();
        for proposal in proposals {
            said = match accept(&plan, proposal) {
                Ok(accepted) => {
                    plan = accepted.plan.clone();
                    let corrections: String = accepted.corrections.iter().map(|line| format!("\n! {line}")).collect();
                    format!("{}{corrections}", accepted.plan.listing())
                }
                Err(error) => format!("error: {error}\n{}", plan.listing()),
            };
        }
        assert_eq!(said, expected);
    }

    const FIRST: &str = r#"{"todos":[{"title":"look","status":"completed"},{"id":"fix","title":"2. fix  it","status":"wip"},{"title":"- test","status":"todo"}]}"#;

    #[test]
    fn a_first_plan_gets_ids_and_known_words() {
        check(&[FIRST], "- [done] t1: look\n- [in_progress] fix: fix it\n- [pending] t2: test");
    }

    #[test]
    fn wrong_status_changes_nothing() {
        let wrong = r#"{"todos":[{"title":"a","status":"maybe"}]}"#;
        check(
            &[wrong],
            "error: status \"maybe\" of \"a\" is not one of pending, in_progress, done, blocked, dropped; the plan is unchanged\n- [pending] t1: the goal",
        );
    }

    #[test]
    fn an_id_twice_is_an_error_a_title_twice_is_merged() {
        let ids = r#"{"mode":"patch","todos":[{"id":"t2","title":"x","status":"done"},{"id":"t2","title":"y","status":"done"}]}"#;
        check(
            &[FIRST, ids],
            "error: plan_duplicate_id: t2 is there twice; the plan is unchanged\n- [done] t1: look\n- [in_progress] fix: fix it\n- [pending] t2: test",
        );
        let titles = r#"{"mode":"patch","todos":[{"title":"more","status":"todo"},{"title":"MORE","status":"done"}]}"#;
        check(
            &[FIRST, titles],
            "- [done] t1: look\n- [in_progress] fix: fix it\n- [pending] t2: test\n- [pending] t3: more\n! \"MORE\" was listed twice; the first one counts",
        );
    }

    #[test]
    fn too_many_and_none_change_nothing() {
        let many: Vec<String> = (0..41).map(|n| format!(r#"{{"title":"a{n}","status":"todo"}}"#)).collect();
        let many = format!(r#"{{"todos":[{}]}}"#, many.join(","));
        check(&[&many], "error: plan_too_many: 41 todos, at most 40; the plan is unchanged\n- [pending] t1: the goal");
        check(
            &[r#"{"todos":[]}"#],
            "error: plan_empty: the list of todos is empty; the plan is unchanged\n- [pending] t1: the goal",
        );
        check(
            &[FIRST, r#"{"mode":"replace","todos":[]}"#],
            "error: plan_would_erase: the list of todos is empty; the plan is unchanged\n- [done] t1: look\n- [in_progress] fix: fix it\n- [pending] t2: test",
        );
    }

    #[test]
    fn replace_drops_the_open_and_keeps_the_done() {
        check(
            &[FIRST, r#"{"todos":[{"title":"other","status":"in_progress"}]}"#],
            "- [done] t1: look\n- [in_progress] t3: other\n- [dropped] fix: fix it (removed by replace)\n- [dropped] t2: test (removed by replace)",
        );
    }

    #[test]
    fn deep_nesting_is_flattened_the_same_way_every_time() {
        let deep = r#"{"todos":[{"title":"a","status":"todo","children":[{"title":"b","status":"doing","children":[{"title":"c","status":"doing","children":[{"title":"d","status":"todo"}]}]}]}]}"#;
        let expected = "- [pending] t1: a\n  - [in_progress] t2: b\n  - [pending] t3: b › c\n  - [pending] t4: b › c › d\n! t3 lay too deep; it is a part of t1 now\n! t4 lay too deep; it is a part of t1 now\n! t3 is pending: only one todo can be in progress";
        check(&[deep], expected);
        check(&[deep], expected);
    }

    #[test]
    fn circles_lose_their_closing_link() {
        let circle = r#"{"todos":[{"id":"a","title":"a","status":"todo","depends_on":["b"]},{"id":"b","title":"b","status":"done","depends_on":["a","zz"]}]}"#;
        check(
            &[circle],
            "- [pending] a: a\n- [done] b: b\n! a can't depend on b; that link was dropped\n! b can't depend on zz; that link was dropped\n! b is done although a is open",
        );
    }

    #[test]
    fn leaving_a_todo_needs_a_reason() {
        check(
            &[FIRST, r#"{"mode":"patch","todos":[{"id":"t1","title":"look","status":"todo"}]}"#],
            "error: plan_note_missing: t1 is reopened without a note that says why; the plan is unchanged\n- [done] t1: look\n- [in_progress] fix: fix it\n- [pending] t2: test",
        );
        check(
            &[FIRST, r#"{"mode":"patch","todos":[{"id":"t2","title":"test","status":"dropped"}]}"#],
            "error: plan_note_missing: t2 is dropped without a note that says why; the plan is unchanged\n- [done] t1: look\n- [in_progress] fix: fix it\n- [pending] t2: test",
        );
    }

    #[test]
    fn hostile_shapes_are_errors_not_panics() {
        for shape in
            ["", "[]", "{}", r#"{"todos":3}"#, r#"{"todos":[3]}"#, r#"{"todos":[{"title":" \u0007","status":"x"}]}"#]
        {
            assert!(accept(&Plan::seed("g"), shape).is_err(), "{shape}");
        }
        let nested =
            format!(r#"{{"todos":[{}{}]}}"#, r#"{"title":"a","status":"x","children":["#.repeat(60), "]}".repeat(60));
        assert!(accept(&Plan::seed("g"), &nested).is_err());
    }
}
