//! What becomes of a proposed plan: the plan contract, to the letter and always in the same order
//! (docs/ENGINE.md §6). The engine owns the plan; whatever the model writes ends here as a valid one or as an error
//! that changes nothing.

use serde_json::Value;

use crate::domain::limits;
use crate::domain::plan::Plan;
use crate::domain::plan::PlanSource;
use crate::domain::plan::Todo;
use crate::domain::plan::TodoId;
use crate::domain::plan::TodoStatus;
use crate::domain::text::head;
use crate::policy::plan_items;
use crate::policy::plan_items::Item;
use crate::policy::plan_items::Parent;
use crate::policy::plan_items::too_many;
use crate::policy::plan_items::unchanged;

/// Corrections that the model is told of; the plan shows the rest.
const CORRECTIONS_TOLD: usize = 40;
/// The highest number of an id like `t7` that is counted as given away.
const NUMBER_MAX: u32 = 99_999;

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
        let told = self.corrections.iter().take(CORRECTIONS_TOLD);
        let mut corrections: String = told.map(|line| format!("\n- {line}")).collect();
        if let Some(more) = self.corrections.len().checked_sub(CORRECTIONS_TOLD).filter(|more| *more > 0) {
            corrections.push_str(&format!("\n- and {more} more"));
        }
        let heading = if corrections.is_empty() { String::new() } else { format!("\nCorrected:{corrections}") };
        format!("The plan, revision {}:\n{}{heading}", self.plan.revision, self.plan.listing())
    }
}

/// Reads the arguments of `update_plan` against the plan as it stands. The error is for the model; nothing changed.
pub fn accept(plan: &Plan, arguments: &str) -> Result<Accepted, String> {
    let value: Value =
        serde_json::from_str(arguments).map_err(|error| unchanged(&format!("the plan is not valid JSON: {error}")))?;
    propose(plan, &value, PlanSource::Tool)
}

/// Reads a proposal that came from `source` against the plan as it stands. The error is for the model; nothing
/// changed.
pub fn propose(plan: &Plan, value: &Value, source: PlanSource) -> Result<Accepted, String> {
    let mut corrections = Vec::new();
    let proposal = plan_items::read(value, &mut corrections)?;
    if proposal.items.is_empty() {
        let erases = plan.source != PlanSource::Seed && !proposal.is_patch;
        let code = if erases { "plan_would_erase" } else { "plan_empty" };
        return Err(unchanged(&format!("{code}: the list of todos is empty")));
    }
    let base = match plan.source {
        PlanSource::Seed => Plan { todos: Vec::new(), next_number: 1, ..plan.clone() },
        PlanSource::Tool | PlanSource::Text | PlanSource::Fallback => plan.clone(),
    };
    let mut next = Plan { revision: plan.revision + 1, source, ..base.clone() };
    let is_patch = proposal.is_patch;
    no_id_twice(&proposal.items)?;
    let items = merge_titles(proposal.items, &mut corrections);
    let ids = name(&items, &base, &mut next, &mut corrections);
    let todos = build(&items, &ids, &base, is_patch, &mut corrections)?;
    next.todos = if is_patch { patched(&base, todos) } else { replaced(&base, todos) };
    let kept = next.todos.iter().filter(|todo| todo.status != TodoStatus::Dropped).count();
    if kept > limits::TODOS_MAX {
        return Err(too_many(kept));
    }
    forget_oldest_dropped(&mut next);
    mend_links(&mut next, &mut corrections);
    mend_depth(&mut next, &mut corrections);
    one_in_progress(&mut next, &mut corrections);
    warn_of_open_dependencies(&next, &mut corrections);
    Ok(Accepted { plan: next, corrections })
}

fn no_id_twice(items: &[Item]) -> Result<(), String> {
    let mut given: Vec<&str> = Vec::new();
    for id in items.iter().filter_map(|item| item.id.as_deref()) {
        if given.contains(&id) {
            return Err(unchanged(&format!("plan_duplicate_id: {} is there twice", head(id, 40))));
        }
        given.push(id);
    }
    Ok(())
}

/// Two items of one title and one place are one: the first wins. What pointed at the second points at the first.
fn merge_titles(items: Vec<Item>, corrections: &mut Vec<String>) -> Vec<Item> {
    let mut kept: Vec<Item> = Vec::new();
    let mut moved: Vec<usize> = Vec::new();
    let mut renamed: Vec<(String, usize)> = Vec::new();
    for mut item in items {
        if let Some(Parent::Place(place)) = item.parent {
            item.parent = moved.get(place).copied().map(Parent::Place);
        }
        match kept.iter().position(|one| are_twins(one, &item)) {
            Some(place) => {
                let title = item.title.unwrap_or_default();
                corrections.push(format!("{title:?} was listed twice; the first one counts"));
                moved.push(place);
                renamed.extend(item.id.map(|id| (id, place)));
            }
            None => {
                moved.push(kept.len());
                kept.push(item);
            }
        }
    }
    for (id, place) in renamed {
        follow(&mut kept, &id, place);
    }
    kept
}

/// Lets what named the second of two twins name the first. A first without an id takes that of the second.
fn follow(items: &mut [Item], second: &str, place: usize) {
    let Some(first) = items.get_mut(place) else { return };
    let first = first.id.get_or_insert_with(|| second.to_string()).clone();
    for item in items {
        for needed in item.depends_on.iter_mut().flatten().filter(|needed| *needed == second) {
            *needed = first.clone();
        }
        if let Some(Parent::Named(parent)) = item.parent.as_mut().filter(|_| first != second)
            && parent == second
        {
            *parent = first.clone();
        }
    }
}

/// Whether two items are one todo: the same title as a part of the same thing.
fn are_twins(one: &Item, other: &Item) -> bool {
    let same_place = match (&one.parent, &other.parent) {
        (Some(Parent::Place(one)), Some(Parent::Place(other))) => one == other,
        (Some(Parent::Named(one)), Some(Parent::Named(other))) => one == other,
        (None | Some(Parent::Nothing), None | Some(Parent::Nothing)) => true,
        (Some(Parent::Place(_) | Parent::Named(_) | Parent::Nothing) | None, _) => false,
    };
    let folded = |item: &Item| item.title.as_deref().map(fold_case);
    same_place && one.title.is_some() && folded(one) == folded(other)
}

fn fold_case(text: &str) -> String {
    text.to_lowercase()
}

/// Gives every item its id: its own, that of the todo of the same title, or a new one.
fn name(items: &[Item], base: &Plan, next: &mut Plan, corrections: &mut Vec<String>) -> Vec<TodoId> {
    for number in items.iter().filter_map(|item| number_of(item.id.as_deref()?)) {
        next.next_number = next.next_number.max(number + 1);
    }
    let mut ids: Vec<TodoId> = Vec::new();
    for item in items {
        let own = item.id.as_deref().filter(|id| TodoId::is_valid(id));
        let title = item.title.as_deref().unwrap_or_default();
        if let (Some(bad), None) = (item.id.as_deref(), own) {
            corrections.push(format!("{:?} is not an id of a todo; {title:?} got another", head(bad, 40)));
        }
        let known = |id: &TodoId| ids.contains(id) || items.iter().any(|one| one.id.as_deref() == Some(id.0.as_str()));
        let same_title = base.todos.iter().find(|todo| fold_case(&todo.title) == fold_case(title) && !known(&todo.id));
        let id = match (own, same_title) {
            (Some(id), _) => TodoId(id.to_string()),
            (None, Some(todo)) => todo.id.clone(),
            (None, None) => next.fresh_id(known),
        };
        ids.push(id);
    }
    ids
}

/// The number of an id of the form in which the engine gives them: it will not be given again.
fn number_of(id: &str) -> Option<u32> {
    id.strip_prefix('t')?.parse().ok().filter(|number| *number <= NUMBER_MAX)
}

fn build(
    items: &[Item],
    ids: &[TodoId],
    base: &Plan,
    is_patch: bool,
    corrections: &mut Vec<String>,
) -> Result<Vec<Todo>, String> {
    let mut todos = Vec::new();
    for (item, id) in items.iter().zip(ids) {
        let before = base.find(id);
        let kept = before.filter(|_| is_patch);
        let Some(title) = item.title.clone().or(before.map(|todo| todo.title.clone())) else {
            return Err(unchanged(&format!("there is no todo {}, and a new one needs a title", id.0)));
        };
        let status = item.status.or(kept.map(|todo| todo.status)).unwrap_or(TodoStatus::Pending);
        let note = note(item, id, status, before, corrections)?;
        let acceptance = match (item.acceptance.is_empty(), before) {
            (true, Some(todo)) => todo.acceptance.clone(),
            (true, None) | (false, _) => item.acceptance.clone(),
        };
        let parent = match &item.parent {
            Some(Parent::Place(place)) => ids.get(*place).cloned(),
            Some(Parent::Named(name)) => Some(TodoId(name.clone())),
            Some(Parent::Nothing) => None,
            None => kept.and_then(|todo| todo.parent.clone()),
        };
        let depends_on = match &item.depends_on {
            Some(needed) => needed.iter().cloned().map(TodoId).collect(),
            None => kept.map(|todo| todo.depends_on.clone()).unwrap_or_default(),
        };
        todos.push(Todo { id: id.clone(), title, status, acceptance, note, parent, depends_on });
    }
    Ok(todos)
}

/// The note of a todo. One that is newly dropped, blocked or opened again needs one of its own; a note about a status
/// that no longer holds goes.
fn note(
    item: &Item,
    id: &TodoId,
    status: TodoStatus,
    before: Option<&Todo>,
    corrections: &mut Vec<String>,
) -> Result<String, String> {
    let was = before.map(|todo| todo.status);
    let old = before.filter(|_| was == Some(status)).map(|todo| todo.note.clone()).unwrap_or_default();
    let note = if item.note.is_empty() { old } else { item.note.clone() };
    let reopened = was == Some(TodoStatus::Done) && status != TodoStatus::Done;
    let needs_one = reopened || matches!(status, TodoStatus::Dropped | TodoStatus::Blocked);
    if needs_one && note.is_empty() {
        let what = if reopened { "reopened" } else { status.word() };
        return Err(unchanged(&format!("plan_note_missing: {} is {what} without a note that says why", id.0)));
    }
    if reopened {
        corrections.push(format!("{} was done and is {} again", id.0, status.word()));
    }
    Ok(note)
}

/// The new list in its own order; open todos that it leaves out are dropped, settled ones are kept.
fn replaced(base: &Plan, todos: Vec<Todo>) -> Vec<Todo> {
    let missing = base.todos.iter().filter(|old| !todos.iter().any(|new| new.id == old.id));
    // The oldest of the dropped come first: they are forgotten first.
    let (mut kept, mut dropped, mut newly_dropped) = (Vec::new(), Vec::new(), Vec::new());
    for old in missing {
        match old.status {
            TodoStatus::Done => kept.push(old.clone()),
            TodoStatus::Dropped => dropped.push(old.clone()),
            TodoStatus::Pending | TodoStatus::InProgress | TodoStatus::Blocked => {
                newly_dropped.push(Todo {
                    status: TodoStatus::Dropped,
                    note: "removed by replace".to_string(),
                    ..old.clone()
                });
            }
        }
    }
    kept.into_iter().chain(todos).chain(dropped).chain(newly_dropped).collect()
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

/// Links to nothing are dropped, and so is the one that closes a circle: they are made one after another, in order.
fn mend_links(plan: &mut Plan, corrections: &mut Vec<String>) {
    let take = |todo: &mut Todo| (todo.parent.take(), std::mem::take(&mut todo.depends_on));
    let wanted: Vec<(Option<TodoId>, Vec<TodoId>)> = plan.todos.iter_mut().map(take).collect();
    for (place, (parent, needs)) in wanted.into_iter().enumerate() {
        let id = plan.todos[place].id.clone();
        if let Some(parent) = parent {
            match against(plan, &parent, &id, &|todo| todo.parent.iter().collect()) {
                Some(why) => corrections.push(format!("{} stands alone, not in {}: {why}", id.0, head(&parent.0, 40))),
                None => plan.todos[place].parent = Some(parent),
            }
        }
        for needed in needs {
            match against(plan, &needed, &id, &|todo| todo.depends_on.iter().collect()) {
                Some(why) => corrections.push(format!("{} does not depend on {}: {why}", id.0, head(&needed.0, 40))),
                None if plan.todos[place].depends_on.contains(&needed) => {}
                None => plan.todos[place].depends_on.push(needed),
            }
        }
    }
}

/// What speaks against a link from `id` to `other`.
fn against<'a>(
    plan: &'a Plan,
    other: &'a TodoId,
    id: &TodoId,
    links: &dyn Fn(&'a Todo) -> Vec<&'a TodoId>,
) -> Option<&'static str> {
    if plan.find(other).is_none() {
        return Some("there is no such todo");
    }
    reaches(plan, other, id, links).then_some("that would be a circle")
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
            plan.todos[place].title = clipped(&path.join(" › "));
            plan.todos[place].parent = top;
        }
    }
}

fn clipped(title: &str) -> String {
    title.chars().take(limits::TODO_TITLE_MAX_CHARS).collect::<String>().trim_end().to_string()
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
