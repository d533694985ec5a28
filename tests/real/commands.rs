//! A script whose model runs a shell line.
#![allow(clippy::unwrap_used)]

use crate::short::SHORT;

/// A script that plans, runs a shell line, and is done.
pub(crate) fn shell(line: &str) -> String {
    let (plan, claim) = SHORT.split_at(SHORT.rfind("[[step]]").unwrap());
    let line = toml::Value::String(line.to_string());
    format!(
        "{plan}[[step]]\nname = \"act\"\ncalls = [ {{ tool = \"shell\", args = {{ command = {line} }} }} ]\n{claim}"
    )
}
