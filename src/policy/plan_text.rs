//! A plan written as mere text by a model that calls no tool (docs/ENGINE.md §6.5). The first form that is found
//! counts. What is found is a proposal like one of the tool, and goes through the same corrections; nothing is judged
//! here. Only the model's own words are read, never the output of a tool.

use serde_json::Map;
use serde_json::Value;
use serde_json::json;

use crate::domain::limits;
use crate::domain::text::head;
use crate::policy::plan_items::bare;
use crate::policy::plan_items::marker;

/// Names under which models put a list of todos.
const LISTS: [&str; 4] = ["todos", "plan", "steps", "tasks"];
/// Names under which they put the words of one.
const TITLES: [&str; 7] = ["title", "content", "step", "task", "name", "text", "description"];
/// Words of a line after which a list is a plan.
const WORDS: [&str; 5] = ["plan", "todo", "todos", "steps", "tasks"];
/// Places at which JSON is tried to be read: prose has brackets too.
const JSON_STARTS: usize = 64;
/// Deepest nesting of a list; what lies deeper is taken to lie there.
const DEPTH: usize = 8;
/// Columns that a part must be further in than what it is a part of.
const INDENT: usize = 2;

/// Whether a text says by itself that it holds a plan.
pub fn is_announced(text: &str) -> bool {
    head(text, limits::PLAN_TEXT_MAX_BYTES).lines().any(|line| line.trim_start().starts_with("PLAN:"))
}

/// The proposal that a text holds, in the form of `update_plan`; nothing when it holds none.
pub fn read(text: &str) -> Option<Value> {
    let text = head(text, limits::PLAN_TEXT_MAX_BYTES);
    let todos = from_json(text).or_else(|| from_block(text)).or_else(|| from_lines(text))?;
    Some(json!({ "mode": "replace", "todos": todos }))
}

/// A balanced object or array that can be read as a list of todos.
fn from_json(text: &str) -> Option<Value> {
    let starts = text.bytes().enumerate().filter(|(_, byte)| matches!(byte, b'{' | b'[')).map(|(place, _)| place);
    starts.take(JSON_STARTS).find_map(|start| {
        let rest = text.get(start..)?;
        let value: Value = serde_json::from_str(rest.get(..balanced(rest)?)?).ok()?;
        listed(&value)
    })
}

/// Length of the balanced JSON at the beginning of a text. Brackets inside strings do not count.
fn balanced(text: &str) -> Option<usize> {
    let (mut depth, mut in_string, mut escaped) = (0usize, false, false);
    for (place, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return Some(place + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// The todos in a value: a list of texts or objects, or an object that has one under a known name.
fn listed(value: &Value) -> Option<Value> {
    let list = match value {
        Value::Array(_) => value,
        Value::Object(object) => LISTS.iter().find_map(|name| object.get(*name).filter(|list| list.is_array()))?,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
    };
    let todos: Option<Vec<Value>> = list.as_array()?.iter().map(todo).collect();
    todos.filter(|todos| !todos.is_empty()).map(Value::Array)
}

/// An item of a list as `update_plan` has it; nothing when it is neither a text nor an object with words.
fn todo(value: &Value) -> Option<Value> {
    let mut todo = match value {
        Value::String(title) => return Some(json!({ "title": title, "status": "pending" })),
        Value::Object(object) => object.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => return None,
    };
    let title = TITLES.iter().find_map(|name| todo.get(*name).and_then(Value::as_str))?.to_string();
    todo.insert("title".to_string(), Value::String(title));
    todo.entry("status").or_insert_with(|| json!("pending"));
    let children = LISTS.iter().chain(&["children"]).find_map(|name| todo.get(*name).filter(|list| list.is_array()));
    if let Some(children) = children.cloned() {
        let children: Option<Vec<Value>> = children.as_array()?.iter().map(self::todo).collect();
        todo.insert("children".to_string(), Value::Array(children?));
    }
    // An id that is a number is the place in the list.
    todo.retain(|name, value| name != "id" || value.is_string());
    Some(Value::Object(todo))
}

/// The lines between `<plan>` and `</plan>`.
fn from_block(text: &str) -> Option<Value> {
    let lower = text.to_ascii_lowercase();
    let start = lower.find("<plan>")? + "<plan>".len();
    let end = start + lower.get(start..)?.find("</plan>")?;
    let block = text.get(start..end)?;
    let lines: Vec<&str> = block.lines().collect();
    from_lines(block).or_else(|| nested(&lines.iter().filter_map(|line| Line::item(line)).collect::<Vec<_>>()))
}

/// A checklist; else a list under a line that names it; else a text that is mostly a list.
fn from_lines(text: &str) -> Option<Value> {
    let lines: Vec<&str> = text.lines().collect();
    let boxes: Vec<Line<'_>> = lines.iter().filter_map(|line| Line::checkbox(line)).collect();
    if !boxes.is_empty() {
        return nested(&boxes);
    }
    under_a_heading(&lines).or_else(|| {
        let items: Vec<Line<'_>> = lines.iter().filter_map(|line| Line::item(line)).collect();
        let filled = lines.iter().filter(|line| !line.trim().is_empty()).count();
        if items.len() >= 2 && 2 * items.len() >= filled { nested(&items) } else { None }
    })
}

/// The items that follow a line which names a plan, up to the first line that belongs to none of them.
fn under_a_heading(lines: &[&str]) -> Option<Value> {
    let mut items: Vec<Line<'_>> = Vec::new();
    let mut is_named = false;
    for line in lines {
        match Line::item(line) {
            Some(item) if is_named => items.push(item),
            Some(_) => {}
            None if line.trim().is_empty() => {}
            None if !items.is_empty() && line.starts_with(char::is_whitespace) => {}
            None if !items.is_empty() => break,
            None => is_named = names_a_plan(line),
        }
    }
    nested(&items)
}

fn names_a_plan(line: &str) -> bool {
    let mut words = line.split(|one: char| !one.is_alphanumeric()).map(str::to_lowercase);
    words.any(|word| WORDS.contains(&word.as_str()))
}

/// A line of a list.
struct Line<'a> {
    indent: usize,
    title: &'a str,
    is_done: bool,
}

impl<'a> Line<'a> {
    /// A line that begins with a marker and a box: `- [ ]`, `* [x]`.
    fn checkbox(line: &'a str) -> Option<Line<'a>> {
        let item = Line::item(line)?;
        let has_box =
            ["[ ]", "[x]", "[X]"].iter().any(|mark| after_marker(line).is_some_and(|rest| rest.starts_with(mark)));
        has_box.then_some(item)
    }

    /// A line that begins with a marker or a number.
    fn item(line: &'a str) -> Option<Line<'a>> {
        let rest = after_marker(line)?;
        let title = bare(rest);
        let is_done = rest.starts_with("[x]") || rest.starts_with("[X]");
        (!title.is_empty()).then_some(Line { indent: indent(line), title, is_done })
    }
}

/// What follows the marker of a line of a list. A number of several parts, like `1.2.`, may head a section.
fn after_marker(line: &str) -> Option<&str> {
    let (mark, rest) = marker(line)?;
    (!mark.trim_end_matches('.').contains('.')).then_some(rest)
}

/// Columns in front of a line; a tab counts as four.
fn indent(line: &str) -> usize {
    let width = |one: char| if one == '\t' { 4 } else { 1 };
    line.chars().take_while(|one| one.is_whitespace()).map(width).sum()
}

/// Lines as todos; one that lies further in is a part of the one above it.
fn nested(lines: &[Line<'_>]) -> Option<Value> {
    // The lists that are open, the innermost last, each with the indent of its items.
    let mut open: Vec<(usize, Vec<Value>)> = vec![(lines.first()?.indent, Vec::new())];
    for line in lines {
        while open.len() > 1 && open.last().is_some_and(|(indent, _)| line.indent < *indent) {
            close(&mut open);
        }
        let here = open.last().map_or(0, |(indent, list)| if list.is_empty() { usize::MAX } else { *indent });
        if line.indent >= here.saturating_add(INDENT) && open.len() < DEPTH {
            open.push((line.indent, Vec::new()));
        }
        let status = if line.is_done { "done" } else { "pending" };
        if let Some((_, list)) = open.last_mut() {
            list.push(json!({ "title": line.title, "status": status }));
        }
    }
    while open.len() > 1 {
        close(&mut open);
    }
    open.pop().map(|(_, list)| Value::Array(list))
}

/// Puts the innermost list into the last item of the one around it.
fn close(open: &mut Vec<(usize, Vec<Value>)>) {
    let Some((_, list)) = open.pop() else { return };
    let around = open.last_mut().and_then(|(_, outer)| outer.last_mut()).and_then(Value::as_object_mut);
    if let Some(item) = around {
        add_children(item, list);
    }
}

fn add_children(item: &mut Map<String, Value>, list: Vec<Value>) {
    match item.get_mut("children").and_then(Value::as_array_mut) {
        Some(children) => children.extend(list),
        None => {
            item.insert("children".to_string(), Value::Array(list));
        }
    }
}
