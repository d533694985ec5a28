//! What was changed of a call, in words: for the model, which is told it with the result, and for the rooms.

use serde_json::Map;
use serde_json::Value;

use crate::domain::approval::Origin;
use crate::domain::text::one_line;

/// Longest value of an argument in the line that tells the model what was changed, in characters.
const VALUE_CHARS: usize = 120;
/// Changed arguments that are named one by one.
const NAMED: usize = 8;

/// How the sentence about changed arguments begins.
const CHANGED: &str = "the operator changed the arguments of this call";

/// How it begins where anybody may have done that.
const CHANGED_ELSEWHERE: &str = "somebody elsewhere changed the arguments of this call";

/// Whether a result may begin with the sentence that says what was changed.
pub(crate) fn tells_changes(told: &str) -> bool {
    told.starts_with(CHANGED) || told.starts_with(CHANGED_ELSEWHERE)
}

/// A result that says what the operator changed, where that was done elsewhere; nothing of any other.
pub(crate) fn changes_disowned(told: &str) -> Option<String> {
    told.strip_prefix(CHANGED).map(|rest| format!("{CHANGED_ELSEWHERE}{rest}"))
}

/// One line: which arguments are others than the model wrote.
pub fn changes(original: &str, arguments: &str, origin: Origin) -> String {
    let changed = match origin {
        Origin::Here => CHANGED,
        Origin::Elsewhere => CHANGED_ELSEWHERE,
    };
    match differences(original, arguments) {
        Some(named) => format!("{changed}: {named}"),
        None => format!("{changed} to: {}", one_line(arguments, VALUE_CHARS)),
    }
}

/// Which arguments are others than the model wrote, each as it was and as it is, shortened; nothing where either text is
/// no object.
pub fn differences(original: &str, arguments: &str) -> Option<String> {
    let (before, after) = (object(original)?, object(arguments)?);
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
    Some(named.join("; "))
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
        let line = changes(original, arguments, Origin::Here);
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

    #[test]
    fn what_was_changed_elsewhere_is_not_said_to_be_the_operators() {
        let [here, elsewhere] = [Origin::Here, Origin::Elsewhere].map(|origin| changes("x", "y", origin));
        let told = "somebody elsewhere changed the arguments of this call to: y";
        assert_eq!(elsewhere, told);
        assert!(tells_changes(&here) && tells_changes(&elsewhere));
        assert_eq!(changes_disowned(&format!("{here}\ndone")), Some(format!("{elsewhere}\ndone")));
        assert_eq!((changes_disowned(&elsewhere), changes_disowned("done")), (None, None));
    }
}
