//! The part of the fold that is about leave: who allowed a call, what the operator changed of it, and how much a run
//! does unasked. `fold.rs` and `calls.rs` call it; nothing else may.

use serde_json::Map;
use serde_json::Value;

use crate::domain::approval::By;
use crate::domain::run::Run;
use crate::domain::text::one_line;
use crate::domain::tool::CallState;
use crate::domain::tool::Edited;
use crate::domain::tool::ToolCall;
use crate::domain::trust::Trust;

/// Longest value of an argument in the line that tells the model what was changed, in characters.
const VALUE_CHARS: usize = 120;
/// Changed arguments that are named one by one.
const NAMED: usize = 8;

impl Run {
    pub(crate) fn change_trust(&mut self, trust: Trust) {
        if trust < self.trust {
            let edited = self.calls.values_mut().filter_map(|call| call.edited.as_mut());
            edited.for_each(|edited| edited.is_leave = false);
        }
        self.trust = trust;
        self.trust_was_driven = self.is_driven();
    }
}

impl ToolCall {
    pub(crate) fn allow(&mut self, by: &By) {
        self.state = CallState::Approved;
        self.allowed = Some(by.clone());
        self.use_up_edit();
    }

    /// Takes other arguments in the place of its own. What it would touch has to be found out anew.
    pub(crate) fn edit(&mut self, arguments: &str, by: &By) -> Result<(), String> {
        let By::Operator(client) = by else { return Err(format!("a rule changed the arguments of {}", self.id)) };
        let original = match self.edited.take() {
            Some(before) => before.original,
            None => self.arguments.clone(),
        };
        self.arguments = arguments.to_string();
        self.unprepare();
        self.edited = Some(Edited { original, by: client.clone(), is_leave: true });
        Ok(())
    }

    /// Nothing that was found out or decided about it holds any more.
    pub(crate) fn unprepare(&mut self) {
        self.state = CallState::Proposed;
        self.facts = None;
        self.allowed = None;
        self.use_up_edit();
    }

    fn use_up_edit(&mut self) {
        if let Some(edited) = &mut self.edited {
            edited.is_leave = false;
        }
    }

    /// A result as the model is told it: what the operator changed comes first (docs/ENGINE.md §9.3).
    pub(crate) fn told(&self, result: &str) -> String {
        match &self.edited {
            None => result.to_string(),
            Some(edited) => format!("{}\n{result}", changes(&edited.original, &self.arguments)),
        }
    }
}

/// How the sentence about changed arguments begins.
const CHANGED: &str = "the operator changed the arguments of this call";

/// Whether a result may begin with the sentence that says what the operator changed.
pub(crate) fn tells_changes(told: &str) -> bool {
    told.starts_with(CHANGED)
}

/// One line: which arguments are others than the model wrote.
pub fn changes(original: &str, arguments: &str) -> String {
    let (Some(before), Some(after)) = (object(original), object(arguments)) else {
        return format!("{CHANGED} to: {}", one_line(arguments, VALUE_CHARS));
    };
    let shown = |value: Option<&Value>| match value {
        None => "nothing".to_string(),
        Some(value) => one_line(&value.to_string(), VALUE_CHARS),
    };
    let names = before.keys().chain(after.keys().filter(|name| !before.contains_key(*name)));
    let changed: Vec<&String> = names.filter(|name| before.get(*name) != after.get(*name)).collect();
    let mut named: Vec<String> = changed
        .iter()
        .take(NAMED)
        .map(|name| {
            format!("{} from {} to {}", one_line(name, VALUE_CHARS), shown(before.get(*name)), shown(after.get(*name)))
        })
        .collect();
    if changed.len() > NAMED {
        named.push(format!("{} more", changed.len() - NAMED));
    }
    if named.is_empty() {
        named.push("only how they are written".to_string());
    }
    format!("{CHANGED}: {}", named.join("; "))
}

fn object(text: &str) -> Option<Map<String, Value>> {
    match serde_json::from_str(text) {
        Ok(Value::Object(map)) => Some(map),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(original: &str, arguments: &str, expected: &str) {
        let line = changes(original, arguments);
        assert_eq!(line.strip_prefix("the operator changed the arguments of this call"), Some(expected), "{line}");
        assert!(!line.contains('\n'));
    }

    #[test]
    fn the_model_is_told_what_was_changed() {
        check(r#"{"path":"a","n":1}"#, r#"{"path":"b","n":1}"#, r#": path from "a" to "b""#);
        check(r#"{"path":"a"}"#, r#"{"path":"a","all":true}"#, ": all from nothing to true");
        check(r#"{"path":"a","all":true}"#, r#"{"path":"a"}"#, ": all from true to nothing");
        check(r#"{"a":1}"#, r#"{ "a": 1 }"#, ": only how they are written");
        check("oops", r#"{"a":1}"#, r#" to: {"a":1}"#);
    }
}
