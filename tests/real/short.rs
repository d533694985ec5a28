//! The shortest script that reaches its goal.

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
