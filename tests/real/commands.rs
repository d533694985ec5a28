//! Scripts of a model that runs a shell line or none, and whether what it started still runs.
#![allow(clippy::unwrap_used)]

use std::fs;

/// A script that plans and is done.
pub(crate) const SHORT: &str = r#"
[[step]]
name = "plan"
text = "a plan"
calls = [ { tool = "update_plan", args = { todos = [ { id = "a", title = "A", status = "done" } ] } } ]
[[step]]
name = "claim"
text = "done"
calls = [ { tool = "finish", args = { summary = "it is done" } } ]
"#;

/// A script that plans, runs a shell line, and is done.
pub(crate) fn shell(line: &str) -> String {
    let (plan, claim) = SHORT.split_at(SHORT.rfind("[[step]]").unwrap());
    let line = toml::Value::String(line.to_string());
    format!(
        "{plan}[[step]]\nname = \"act\"\ncalls = [ {{ tool = \"shell\", args = {{ command = {line} }} }} ]\n{claim}"
    )
}

/// Whether a process runs whose command line holds this.
pub(crate) fn is_alive(words: &str) -> bool {
    fs::read_dir("/proc").unwrap().filter_map(Result::ok).any(|entry| {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let state = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let is_zombie = state.rsplit(')').next().is_some_and(|rest| rest.trim().starts_with('Z'));
        !is_zombie && String::from_utf8_lossy(&line).replace('\0', " ").contains(words)
    })
}
