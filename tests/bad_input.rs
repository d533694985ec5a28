//! The real program and everything that can be wrong with what it is given: words, folders, configuration, keys, files,
//! models, tools, disks, signals. Each time it says what happened, what was not done and what to do, and loses nothing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod real;
mod wire;

#[path = "bad_input/credentials.rs"]
mod credentials;
#[path = "bad_input/disk.rs"]
mod disk;
#[path = "bad_input/endings.rs"]
mod endings;
#[path = "bad_input/outputs.rs"]
mod outputs;
#[path = "bad_input/store.rs"]
mod store;
#[path = "bad_input/words.rs"]
mod words;

/// A script that plans and is done.
const SHORT: &str = r#"
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
fn shell(line: &str) -> String {
    let (plan, claim) = SHORT.split_at(SHORT.rfind("[[step]]").unwrap());
    let line = toml::Value::String(line.to_string());
    format!(
        "{plan}[[step]]\nname = \"act\"\ncalls = [ {{ tool = \"shell\", args = {{ command = {line} }} }} ]\n{claim}"
    )
}
