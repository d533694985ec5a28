//! Whether arguments fit the schema of their tool. Only the words that the schemas of this program use are known; a
//! word that is not known is not checked here, since each tool reads its own arguments strictly once more.

use serde_json::Map;
use serde_json::Value;

use crate::domain::text::counted;
use crate::domain::text::one_line;

/// What does not fit, as a JSON pointer and a sentence; nothing when all of it does.
pub fn misfit(schema: &Value, value: &Value) -> Option<String> {
    let (pointer, what) = at("", schema, value)?;
    let place = if pointer.is_empty() { "as a whole".to_string() } else { one_line(&pointer, 120) };
    Some(format!("{place}: {what}"))
}

type Misfit = (String, String);

fn at(pointer: &str, schema: &Value, value: &Value) -> Option<Misfit> {
    let here = |what: String| Some((pointer.to_string(), what));
    let number = |word: &str| schema.get(word).and_then(Value::as_u64);
    if let Some(kind) = schema.get("type").and_then(Value::as_str).filter(|kind| !is(kind, value)) {
        return here(format!("it must be {}, not {}", with_article(kind), kind_of(value)));
    }
    if let Some(allowed) = schema.get("enum").and_then(Value::as_array).filter(|allowed| !allowed.contains(value)) {
        let words: Vec<String> = allowed.iter().map(Value::to_string).collect();
        return here(format!("{} is not one of {}", one_line(&value.to_string(), 60), words.join(", ")));
    }
    match value {
        Value::Object(object) => members(pointer, schema, object),
        Value::Array(items) => {
            if let Some(most) = number("maxItems").filter(|most| items.len() as u64 > *most) {
                return here(format!("it has {} and may have {most}", counted(items.len(), "item")));
            }
            let inner = schema.get("items")?;
            items.iter().enumerate().find_map(|(place, item)| at(&format!("{pointer}/{place}"), inner, item))
        }
        Value::String(text) => {
            let length = text.chars().count() as u64;
            if let Some(most) = number("maxLength").filter(|most| length > *most) {
                return here(format!("it has {} and may have {most}", counted(length, "character")));
            }
            number("minLength").filter(|least| length < *least).and_then(|_| here("it must not be empty".to_string()))
        }
        Value::Number(given) => {
            // All schemas ask for whole numbers; `is` has refused the others.
            let given = given.as_i64()?;
            let bound = |word: &str| schema.get(word).and_then(Value::as_i64);
            let below = bound("minimum").filter(|least| given < *least);
            let above = bound("maximum").filter(|most| given > *most);
            below
                .map(|least| format!("it must be at least {least}"))
                .or(above.map(|most| format!("it must be at most {most}")))
                .and_then(here)
        }
        Value::Null | Value::Bool(_) => None,
    }
}

fn members(pointer: &str, schema: &Value, object: &Map<String, Value>) -> Option<Misfit> {
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    if let Some(missing) = required.iter().find(|name| !object.contains_key(**name)) {
        return Some((format!("{pointer}/{missing}"), "it is missing".to_string()));
    }
    let known = schema.get("properties").and_then(Value::as_object);
    for (name, value) in object {
        let place = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
        match known.and_then(|known| known.get(name)) {
            // Many models write null where they mean to leave something out.
            Some(_) if value.is_null() && !required.contains(&name.as_str()) => {}
            Some(inner) => {
                if let Some(misfit) = at(&place, inner, value) {
                    return Some(misfit);
                }
            }
            None if schema.get("additionalProperties") == Some(&Value::Bool(false)) => {
                let names: Vec<&str> = known.into_iter().flat_map(Map::keys).map(String::as_str).collect();
                return Some((place, format!("there is no such field; there are {}", names.join(", "))));
            }
            None => {}
        }
    }
    None
}

fn is(kind: &str, value: &Value) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        _ => true,
    }
}

fn with_article(kind: &str) -> String {
    let article = if kind.starts_with(['a', 'i', 'o']) { "an" } else { "a" };
    format!("{article} {kind}")
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(value: Value, expected: &str) {
        let schema = json!({
            "type": "object", "additionalProperties": false, "required": ["path"],
            "properties": {
                "path": {"type": "string", "minLength": 1, "maxLength": 5},
                "depth": {"type": "integer", "minimum": 1, "maximum": 3},
                "all": {"type": "boolean"},
                "mode": {"enum": ["a", "b"]},
                "list": {"type": "array", "maxItems": 2, "items": {
                    "type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}
                }}
            }
        });
        assert_eq!(misfit(&schema, &value).unwrap_or_default(), expected, "{value}");
    }

    #[test]
    fn what_does_not_fit_is_named_by_its_pointer() {
        check(json!({"path": "a", "depth": 3, "all": true, "mode": "b", "list": [{"id": "x", "more": 1}]}), "");
        check(json!({"path": "a", "depth": null, "list": null}), "");
        check(json!([]), "as a whole: it must be an object, not an array");
        check(json!({}), "/path: it is missing");
        check(json!({"path": null}), "/path: it must be a string, not null");
        check(json!({"path": ""}), "/path: it must not be empty");
        check(json!({"path": "éééééé"}), "/path: it has 6 characters and may have 5");
        check(json!({"path": "a", "depth": "1"}), "/depth: it must be an integer, not a string");
        check(
            serde_json::from_str(r#"{"path": "a", "depth": 1.5}"#).unwrap_or_default(),
            "/depth: it must be an integer, not a number",
        );
        check(json!({"path": "a", "depth": 0}), "/depth: it must be at least 1");
        check(json!({"path": "a", "depth": 4}), "/depth: it must be at most 3");
        check(json!({"path": "a", "mode": "c"}), "/mode: \"c\" is not one of \"a\", \"b\"");
        check(json!({"path": "a", "list": [{"id": "x"}, {}]}), "/list/1/id: it is missing");
        check(json!({"path": "a", "list": [1]}), "/list/0: it must be an object, not a number");
        check(
            json!({"path": "a", "list": [{"id": "x"}, {"id": "x"}, {"id": "x"}]}),
            "/list: it has 3 items and may have 2",
        );
        check(
            json!({"path": "a", "p/a~th": 1}),
            "/p~1a~0th: there is no such field; there are path, depth, all, mode, list",
        );
    }
}
