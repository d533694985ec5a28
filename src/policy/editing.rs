//! Whether arguments that the operator changed fit the tool, as far as its schema tells without looking at the world.

use serde_json::Value;

use crate::domain::limits;
use crate::domain::run::Run;
use crate::domain::tool::ToolCall;
use crate::policy::reply;

/// Errors with a sentence for the operator when the arguments can't be those of the call's tool.
pub fn fit(run: &Run, call: &ToolCall, arguments: &str) -> Result<(), String> {
    if arguments.len() > limits::ARGUMENTS_MAX_BYTES {
        return Err(format!("they are longer than {} KiB", limits::ARGUMENTS_MAX_BYTES / 1024));
    }
    if arguments == call.arguments {
        return Err("they are those of the call already; allow it as it is".to_string());
    }
    if let Err(error) = serde_json::from_str::<Value>(arguments) {
        return Err(format!("they are not JSON ({error})"));
    }
    if let Some(problem) = reply::problem(run, &call.tool, arguments) {
        return Err(problem.text);
    }
    let schema = run.offer.find(&call.tool).map(|tool| &tool.schema);
    let value: Value = serde_json::from_str(arguments).unwrap_or_default();
    match (schema, value) {
        (None, _) => Ok(()),
        (Some(schema), Value::Object(fields)) => {
            let declared = schema.get("properties").and_then(Value::as_object);
            let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
            if let Some(name) = required.filter_map(Value::as_str).find(|name| !fields.contains_key(*name)) {
                return Err(format!("{name} is missing"));
            }
            for (name, field) in &fields {
                match declared.and_then(|declared| declared.get(name)) {
                    Some(property) if !has_type(field, property) => {
                        return Err(format!("{name} must be of type {}", property.get("type").unwrap_or(&Value::Null)));
                    }
                    None if schema.get("additionalProperties") == Some(&Value::Bool(false)) => {
                        return Err(format!("the tool has no argument {name}"));
                    }
                    Some(_) | None => {}
                }
            }
            Ok(())
        }
        (Some(_), _) => Err("they are no JSON object".to_string()),
    }
}

fn has_type(field: &Value, property: &Value) -> bool {
    match property.get("type").and_then(Value::as_str) {
        Some("string") => field.is_string(),
        Some("boolean") => field.is_boolean(),
        Some("integer") => field.is_u64() || field.is_i64(),
        Some("number") => field.is_number(),
        Some("array") => field.is_array(),
        Some("object") => field.is_object(),
        Some(_) | None => true,
    }
}
