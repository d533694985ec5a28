//! A proposed plan as it is read: its items in order, flattened, their words cleaned (docs/ENGINE.md §6.2, rules 1, 2
//! and 5). What they become beside the plan that stands is for `planning.rs`.

use serde_json::Value;
use unicode_normalization::UnicodeNormalization;

use crate::domain::limits;
use crate::domain::plan::TodoStatus;
use crate::domain::text::head;

/// A proposal, read.
pub struct Proposal {
    /// Whether it changes some todos by id instead of replacing the list.
    pub is_patch: bool,
    /// Its items, parts after what they are a part of.
    pub items: Vec<Item>,
}

/// One item of a proposal. What it leaves out may stand in the plan already.
pub struct Item {
    /// Its id as written, valid or not.
    pub id: Option<String>,
    /// Its title, clean; only a patch of a known todo may leave it out.
    pub title: Option<String>,
    /// Its status.
    pub status: Option<TodoStatus>,
    /// When it counts as done; possibly empty.
    pub acceptance: String,
    /// Why it stands there; possibly empty.
    pub note: String,
    /// What it is a part of, if it says so.
    pub parent: Option<Parent>,
    /// What it needs, if it says so.
    pub depends_on: Option<Vec<String>>,
}

/// What an item is a part of.
pub enum Parent {
    /// Of nothing.
    Nothing,
    /// Of the item at this place of the proposal.
    Place(usize),
    /// Of whatever has this id.
    Named(String),
}

/// Reads a proposal. Errors with a sentence that begins with the JSON pointer of what is wrong.
pub fn read(value: &Value, corrections: &mut Vec<String>) -> Result<Proposal, String> {
    let is_patch = match value.get("mode") {
        None | Some(Value::Null) => false,
        Some(Value::String(mode)) if mode == "replace" => false,
        Some(Value::String(mode)) if mode == "patch" => true,
        Some(other) => return Err(unchanged(&format!("/mode: {} is not one of replace, patch", shown(other)))),
    };
    let listed = value.get("todos").and_then(Value::as_array).ok_or(unchanged("/todos: it must be a list"))?;
    let got = count(listed);
    if got > limits::TODOS_MAX {
        return Err(too_many(got));
    }
    let mut reader = Reader { is_patch, items: Vec::new(), corrections };
    reader.list(listed, "/todos", None)?;
    Ok(Proposal { is_patch, items: reader.items })
}

/// The error of a plan that is longer than a plan may be.
pub fn too_many(got: usize) -> String {
    unchanged(&format!("plan_too_many: {got} todos, at most {}", limits::TODOS_MAX))
}

/// An error of a proposal; nothing of it is taken.
pub fn unchanged(what: &str) -> String {
    format!("{what}; the plan is unchanged")
}

fn shown(value: &Value) -> String {
    head(&value.to_string(), 40).to_string()
}

fn count(listed: &[Value]) -> usize {
    let one = |value: &Value| match value {
        Value::Array(inner) => count(inner),
        Value::Object(object) => 1 + object.get("children").and_then(Value::as_array).map_or(0, |inner| count(inner)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    };
    listed.iter().map(one).sum()
}

struct Reader<'a> {
    is_patch: bool,
    items: Vec<Item>,
    corrections: &'a mut Vec<String>,
}

impl Reader<'_> {
    /// A list inside a list holds the parts of the item before it.
    fn list(&mut self, listed: &[Value], place: &str, parent: Option<usize>) -> Result<(), String> {
        let mut last = parent;
        for (index, one) in listed.iter().enumerate() {
            let place = format!("{place}/{index}");
            match one {
                Value::Array(inner) => self.list(inner, &place, last)?,
                Value::String(_) | Value::Object(_) => {
                    last = Some(self.items.len());
                    self.item(one, &place, parent)?;
                }
                Value::Null | Value::Bool(_) | Value::Number(_) => {
                    return Err(unchanged(&format!("{place}: {} is no todo", shown(one))));
                }
            }
        }
        Ok(())
    }

    fn item(&mut self, value: &Value, place: &str, parent: Option<usize>) -> Result<(), String> {
        let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
        let id = value.get("id").and_then(Value::as_str).map(str::to_string);
        let raw = value.as_str().or(value.get("title").and_then(Value::as_str)).unwrap_or_default();
        let title = Some(self.title(raw)).filter(|title| !title.is_empty());
        if title.is_none() && !(self.is_patch && id.is_some()) {
            return Err(unchanged(&format!("{place}/title: a todo needs a title")));
        }
        let name = title.clone().or(id.clone()).unwrap_or_default();
        let status = self.status(value.get("status"), &name, place)?;
        let own = self.items.len();
        let item = Item {
            acceptance: self.clipped(text("acceptance"), limits::TODO_ACCEPTANCE_MAX_CHARS, "acceptance", &name),
            note: self.clipped(text("note"), limits::TODO_NOTE_MAX_CHARS, "note", &name),
            parent: parent.map(Parent::Place).or_else(|| named(value.get("parent"))),
            depends_on: self.needs(value.get("depends_on"), &name),
            id,
            title,
            status,
        };
        self.items.push(item);
        match value.get("children").and_then(Value::as_array) {
            Some(children) => self.list(children, &format!("{place}/children"), Some(own)),
            None => Ok(()),
        }
    }

    fn title(&mut self, raw: &str) -> String {
        let plain = clean(head(raw, limits::TODO_RAW_MAX_BYTES));
        let bare = bare(&plain);
        if bare != plain && !bare.is_empty() {
            self.corrections.push(format!("{:?} is called {:?}", head(&plain, 60), head(bare, 60)));
        }
        self.clipped(bare, limits::TODO_TITLE_MAX_CHARS, "title", head(bare, 60))
    }

    fn clipped(&mut self, raw: &str, max_chars: usize, what: &str, of: &str) -> String {
        let whole = clean(head(raw, limits::TODO_RAW_MAX_BYTES));
        if whole.chars().count() <= max_chars {
            return whole;
        }
        self.corrections.push(format!("the {what} of {of:?} was cut to {max_chars} characters"));
        whole.chars().take(max_chars).collect::<String>().trim_end().to_string()
    }

    fn status(&mut self, value: Option<&Value>, name: &str, place: &str) -> Result<Option<TodoStatus>, String> {
        let word = match value {
            None | Some(Value::Null) => {
                if !self.is_patch {
                    self.corrections.push(format!("{name:?} had no status; it is pending"));
                }
                return Ok(None);
            }
            Some(Value::String(word)) => word.trim(),
            Some(_) => "",
        };
        let status = status_of(word).ok_or_else(|| {
            let wrong = value.map(shown).unwrap_or_default();
            let known = TodoStatus::ALL.map(TodoStatus::word).join(", ");
            unchanged(&format!("{place}/status: {wrong} is not one of {known}"))
        })?;
        if status.word() != word {
            self.corrections.push(format!("{:?} of {name:?} means {}", head(word, 40), status.word()));
        }
        Ok(Some(status))
    }

    fn needs(&mut self, value: Option<&Value>, name: &str) -> Option<Vec<String>> {
        let listed: Vec<&str> = value?.as_array()?.iter().filter_map(Value::as_str).collect();
        if listed.len() > limits::TODO_DEPENDENCIES_MAX {
            let most = limits::TODO_DEPENDENCIES_MAX;
            self.corrections.push(format!("{name:?} depends on the first {most} of what it named"));
        }
        Some(listed.into_iter().take(limits::TODO_DEPENDENCIES_MAX).map(str::to_string).collect())
    }
}

fn named(value: Option<&Value>) -> Option<Parent> {
    match value? {
        Value::String(id) if id.trim().is_empty() => Some(Parent::Nothing),
        Value::String(id) => Some(Parent::Named(id.clone())),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => Some(Parent::Nothing),
    }
}

/// NFC, without control characters, whitespace collapsed.
pub fn clean(raw: &str) -> String {
    let kept = raw.chars().filter(|one| one.is_whitespace() || !one.is_control());
    let plain: String = kept.nfc().collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A line without the list markers and numbers in front of it.
pub fn bare(line: &str) -> &str {
    let mut rest = line.trim();
    loop {
        let after = without_marker(rest);
        if after.len() == rest.len() {
            return rest;
        }
        rest = after;
    }
}

/// What follows one list marker or one box; the line itself without one.
fn without_marker(line: &str) -> &str {
    if let Some((_, rest)) = marker(line) {
        return rest;
    }
    let word = line.split_whitespace().next().unwrap_or_default();
    let ticked = if matches!(word, "[x]" | "[X]" | "[]") { word } else { "[ ]" };
    line.strip_prefix(ticked).map_or(line, str::trim_start)
}

/// The marker with which a line of a list begins, and what follows: a bullet, or a number like `3.`, `3)` and `1.2.`.
pub fn marker(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start();
    let word = line.split_whitespace().next()?;
    let is_marker = matches!(word, "-" | "*" | "+" | "•") || is_number(word);
    is_marker.then(|| (word, line.get(word.len()..).unwrap_or_default().trim_start()))
}

/// Whether a word numbers a list. Longer numbers are years and quantities.
fn is_number(word: &str) -> bool {
    let Some(number) = word.strip_suffix(['.', ')']) else { return false };
    let is_part = |part: &str| (1..=3).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
    number.split('.').all(is_part)
}

fn status_of(word: &str) -> Option<TodoStatus> {
    match word.to_lowercase().replace([' ', '-'], "_").as_str() {
        "pending" | "todo" | "open" | "not_started" => Some(TodoStatus::Pending),
        "in_progress" | "doing" | "active" | "wip" | "started" => Some(TodoStatus::InProgress),
        "done" | "completed" | "complete" | "finished" | "x" => Some(TodoStatus::Done),
        "blocked" | "stuck" | "waiting" => Some(TodoStatus::Blocked),
        "dropped" | "skipped" | "cancelled" | "canceled" | "wontfix" => Some(TodoStatus::Dropped),
        _ => None,
    }
}
