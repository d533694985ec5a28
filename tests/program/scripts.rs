//! Scripts for a model that speaks one.

/// The shortest script that reaches its goal: it plans and is done.
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
