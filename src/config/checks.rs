//! The checks of `tiller.toml`: a shell line as a text, anything else as a table that says what it looks at.

use toml::Spanned;
use toml::de::DeArray;
use toml::de::DeTable;
use toml::de::DeValue;

use crate::config::value::Value;
use crate::config::value::kind;
use crate::domain::limits;
use crate::domain::terms::Check;

/// What a table of a check may be.
const FORMS: &str = "{ file = PATH }, { file = PATH, matches = PATTERN }, { tool = NAME, arguments = { … } }, \
                     { judge = QUESTION } or { confirm = QUESTION }";

/// Reads a list of checks. Errors with what is expected.
pub(crate) fn from_toml(items: &DeArray<'_>) -> Result<Value, String> {
    of(items.iter().map(|item| check(item.get_ref())).collect::<Result<_, _>>()?)
}

/// The checks as a value. Errors when one says nothing, or when there are too many.
pub(crate) fn of(checks: Vec<Check>) -> Result<Value, String> {
    let is_empty = |check: &Check| match check {
        Check::Command(text) | Check::FileExists(text) | Check::ModelJudge(text) => text.trim().is_empty(),
        Check::FileMatches { path, pattern } => path.trim().is_empty() || pattern.is_empty(),
        Check::Tool { name, .. } => name.trim().is_empty(),
        Check::OperatorConfirm(_) => false,
    };
    if checks.len() > limits::CHECKS_MAX {
        let most = limits::CHECKS_MAX;
        return Err(format!("there are {} checks and may be {most}; put some of them into a script", checks.len()));
    }
    if checks.iter().any(|check| check.title().contains('\0')) {
        return Err("a check holds a NUL, which no shell, path or provider takes; take it out".to_string());
    }
    match checks.iter().any(is_empty) {
        true => Err("a check is empty, and an empty line always succeeds; write a command or leave it out".to_string()),
        false => Ok(Value::Checks(checks)),
    }
}

fn check(value: &DeValue<'_>) -> Result<Check, String> {
    match value {
        DeValue::String(line) => Ok(Check::Command(line.to_string())),
        DeValue::Table(table) => of_table(table),
        other => Err(format!("a check is a shell line in quotes, or {FORMS}; found {}", kind(other))),
    }
}

fn of_table(table: &DeTable<'_>) -> Result<Check, String> {
    let names: Vec<&str> = table.iter().map(|(name, _)| name.get_ref().as_ref()).collect();
    let find = |name: &str| table.iter().find(|(known, _)| known.get_ref() == name).map(|(_, value)| value);
    let text = |name: &str| match find(name).map(Spanned::get_ref) {
        Some(DeValue::String(text)) if text.len() <= limits::SAY_MAX_BYTES => Ok(text.to_string()),
        Some(_) | None => Err(format!("{name} of a check must be a text in quotes")),
    };
    let is = |wanted: &[&str]| names.len() == wanted.len() && wanted.iter().all(|name| names.contains(name));
    if is(&["file"]) {
        return text("file").map(Check::FileExists);
    }
    if is(&["file", "matches"]) {
        return Ok(Check::FileMatches { path: text("file")?, pattern: text("matches")? });
    }
    if is(&["judge"]) {
        return text("judge").map(Check::ModelJudge);
    }
    if is(&["confirm"]) {
        return text("confirm").map(|question| Check::OperatorConfirm(question.trim().to_string()));
    }
    if is(&["tool", "arguments"]) || is(&["tool"]) {
        let arguments = find("arguments").map_or(Ok("{}".to_string()), |value| json(value.get_ref()))?;
        return Ok(Check::Tool { name: text("tool")?, arguments });
    }
    Err(format!("a check is a shell line in quotes, or {FORMS}"))
}

/// A value of TOML as JSON.
fn json(value: &DeValue<'_>) -> Result<String, String> {
    Ok(match value {
        DeValue::String(text) => serde_json::Value::from(text.as_ref()).to_string(),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => number.to_string(),
            Err(_) => return Err("a number of a check is too large".to_string()),
        },
        DeValue::Boolean(on) => on.to_string(),
        DeValue::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| json(item.get_ref())).collect::<Result<_, _>>()?;
            format!("[{}]", items.join(","))
        }
        DeValue::Table(table) => {
            let field = |name: &str, value: &DeValue<'_>| {
                json(value).map(|value| format!("{}:{value}", serde_json::Value::from(name)))
            };
            let fields: Vec<String> =
                table.iter().map(|(name, value)| field(name.get_ref(), value.get_ref())).collect::<Result<_, _>>()?;
            format!("{{{}}}", fields.join(","))
        }
        other @ (DeValue::Float(_) | DeValue::Datetime(_)) => {
            return Err(format!("arguments of a check can't hold {}", kind(other)));
        }
    })
}
