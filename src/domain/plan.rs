//! The plan: an ordered list of todos with a revision number. The engine owns it; the model proposes.

use serde::Deserialize;
use serde::Serialize;

use crate::domain::text::one_line;

/// Name of a todo in its plan: `t1`, or what the model called it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TodoId(pub String);

impl TodoId {
    /// The form of a name that the model may give, as a regular expression.
    pub const FORM: &str = "^[a-z0-9][a-z0-9_-]{0,31}$";

    /// Whether a name has that form.
    pub fn is_valid(text: &str) -> bool {
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let first = text.bytes().next().is_some_and(is_plain);
        first && text.len() <= 32 && text.bytes().all(|byte| is_plain(byte) || byte == b'_' || byte == b'-')
    }
}

/// Where a todo stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    /// Not begun.
    Pending,
    /// Being worked on; at most one is.
    InProgress,
    /// Done.
    Done,
    /// Can't go on; its note says why.
    Blocked,
    /// Not needed any more; its note says why.
    Dropped,
}

impl TodoStatus {
    /// All of them, in the order in which the plan contract names them.
    pub const ALL: [TodoStatus; 5] =
        [TodoStatus::Pending, TodoStatus::InProgress, TodoStatus::Done, TodoStatus::Blocked, TodoStatus::Dropped];

    /// Whether nothing is left to do.
    pub fn is_settled(self) -> bool {
        match self {
            TodoStatus::Done | TodoStatus::Dropped => true,
            TodoStatus::Pending | TodoStatus::InProgress | TodoStatus::Blocked => false,
        }
    }

    /// How far along it is; a higher number is forward movement.
    pub fn rank(self) -> u8 {
        match self {
            TodoStatus::Pending | TodoStatus::Blocked | TodoStatus::Dropped => 0,
            TodoStatus::InProgress => 1,
            TodoStatus::Done => 2,
        }
    }

    /// The word of the plan contract.
    pub fn word(self) -> &'static str {
        match self {
            TodoStatus::Pending => "pending",
            TodoStatus::InProgress => "in_progress",
            TodoStatus::Done => "done",
            TodoStatus::Blocked => "blocked",
            TodoStatus::Dropped => "dropped",
        }
    }
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Todo {
    /// Its name in the plan.
    pub id: TodoId,
    /// What it is, in a line.
    pub title: String,
    /// Where it stands.
    pub status: TodoStatus,
    /// When it counts as done, in the model's words; possibly empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub acceptance: String,
    /// Why it stands there; possibly empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// The todo it is a part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<TodoId>,
    /// The todos it needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<TodoId>,
}

impl Todo {
    /// A todo that was not begun, and of which nothing else is known.
    pub fn new(id: TodoId, title: String) -> Todo {
        Todo {
            id,
            title,
            status: TodoStatus::Pending,
            acceptance: String::new(),
            note: String::new(),
            parent: None,
            depends_on: Vec::new(),
        }
    }
}

/// Where a plan came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanSource {
    /// The goal itself, until there is a plan.
    Seed,
    /// The model's `update_plan`.
    Tool,
    /// The model's text, read because it called no tool.
    Text,
    /// The goal itself, because no plan could be had.
    Fallback,
}

/// The plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Grows by one with each change.
    pub revision: u32,
    /// Where it came from.
    pub source: PlanSource,
    /// The todos in order, parts after what they are a part of.
    pub todos: Vec<Todo>,
    /// The number that the next named todo gets; never used twice.
    pub next_number: u32,
}

impl Plan {
    /// The plan before there is one: the goal as its only todo.
    pub fn seed(goal: &str) -> Plan {
        let todo = Todo::new(TodoId("t1".to_string()), one_line(goal, crate::domain::limits::TODO_TITLE_MAX_CHARS));
        Plan { revision: 0, source: PlanSource::Seed, todos: vec![todo], next_number: 2 }
    }

    /// The plan when no plan could be had: the goal itself, marked so (docs/ENGINE.md §6.4).
    pub fn fallback(&self) -> Plan {
        Plan { revision: self.revision + 1, source: PlanSource::Fallback, ..self.clone() }
    }

    /// The next name that was never given and is not taken elsewhere.
    pub fn fresh_id(&mut self, is_taken: impl Fn(&TodoId) -> bool) -> TodoId {
        loop {
            let id = TodoId(format!("t{}", self.next_number));
            self.next_number += 1;
            if !is_taken(&id) && self.find(&id).is_none() {
                return id;
            }
        }
    }

    /// The todo of this name.
    pub fn find(&self, id: &TodoId) -> Option<&Todo> {
        self.todos.iter().find(|todo| todo.id == *id)
    }

    /// The todo being worked on.
    pub fn current(&self) -> Option<&Todo> {
        self.todos.iter().find(|todo| todo.status == TodoStatus::InProgress)
    }

    /// Todos that are neither done nor dropped.
    pub fn open(&self) -> impl Iterator<Item = &Todo> {
        self.todos.iter().filter(|todo| !todo.status.is_settled())
    }

    /// Done todos, and all that were not dropped.
    pub fn score(&self) -> (usize, usize) {
        let done = self.todos.iter().filter(|todo| todo.status == TodoStatus::Done).count();
        let dropped = self.todos.iter().filter(|todo| todo.status == TodoStatus::Dropped).count();
        (done, self.todos.len() - dropped)
    }

    /// The plan as lines for the model, ids included.
    pub fn listing(&self) -> String {
        self.todos.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    /// Takes over what somebody changed from `before` to `after`.
    pub fn follow(&mut self, before: &Plan, after: &Plan) {
        for todo in after.todos.iter().filter(|todo| before.find(&todo.id) != Some(todo)) {
            match self.todos.iter_mut().find(|one| one.id == todo.id) {
                Some(one) => *one = todo.clone(),
                None => self.todos.push(todo.clone()),
            }
        }
    }

    /// What changed from `before` to this plan.
    pub fn movement_since(&self, before: &Plan) -> Movement {
        let mut movement = Movement::default();
        for todo in &self.todos {
            match before.find(&todo.id) {
                None => movement.added += 1,
                Some(old) => movement.compare(old, todo),
            }
        }
        movement
    }
}

fn line(todo: &Todo) -> String {
    let indent = if todo.parent.is_some() { "  " } else { "" };
    let note = if todo.note.is_empty() { String::new() } else { format!(" ({})", todo.note) };
    let acceptance =
        if todo.acceptance.is_empty() { String::new() } else { format!(" [done when: {}]", todo.acceptance) };
    format!("{indent}- [{}] {}: {}{acceptance}{note}", todo.status.word(), todo.id.0, todo.title)
}

/// How a plan moved, in todos.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Movement {
    /// Came closer to done.
    pub forward: u32,
    /// Went back.
    pub backward: u32,
    /// New.
    pub added: u32,
    /// Newly dropped.
    pub dropped: u32,
    /// Worded anew.
    pub reworded: u32,
}

impl Movement {
    /// Whether the plan itself changed, not only the standing of its todos (docs/ENGINE.md §7.5).
    pub fn is_structural(&self) -> bool {
        self.added + self.dropped + self.reworded + self.backward > 0
    }

    fn compare(&mut self, old: &Todo, new: &Todo) {
        let dropped_now = new.status == TodoStatus::Dropped && old.status != TodoStatus::Dropped;
        let reopened = old.status == TodoStatus::Done && new.status != TodoStatus::Done;
        let revived = old.status == TodoStatus::Dropped && !new.status.is_settled();
        if dropped_now {
            self.dropped += 1;
        } else if new.status.rank() > old.status.rank() {
            self.forward += 1;
        }
        if reopened || revived {
            self.backward += 1;
        }
        if old.title != new.title {
            self.reworded += 1;
        }
    }
}
