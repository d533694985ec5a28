//! The box that commands run in: how much it holds back, and in which manner a call uses it (docs/SAFETY.md §7).

use std::fmt;

use serde::Deserialize;
use serde::Serialize;

use crate::domain::approval::By;
use crate::domain::rule::is_standing;
use crate::domain::tool::Facts;
use crate::domain::tool::ToolCall;

/// The rule by which a call that only reads is allowed. What it allows runs in a box in which nothing can be written.
pub const READING_RULE: &str = "read-only line";

/// How much the box of this machine holds back, most first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Files, processes, the network and calls to the system: all are cut off.
    Full,
    /// Anything less.
    Partial,
    /// There is no box.
    #[default]
    None,
}

impl Level {
    /// The level as one word.
    pub fn word(self) -> &'static str {
        match self {
            Level::Full => "full",
            Level::Partial => "partial",
            Level::None => "none",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.word())
    }
}

/// How a call uses the box. It follows from the record of who allowed it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Manner {
    /// Nothing can be written but what is thrown away. The words that were read are run, without a shell.
    Reading,
    /// As usual, but the words that were read are run, without a shell: a standing rule allowed them.
    Ruled,
    /// The workspace can be written, but for what other programs run by themselves.
    #[default]
    Usual,
    /// Outside of the box: the operator wrote so of this one call.
    Unboxed,
}

impl Manner {
    /// The manner of a call that is about to run.
    pub fn of(call: &ToolCall) -> Manner {
        Manner::by(call.allowed.as_ref(), call.is_unboxed)
    }

    /// The manner of a call that was allowed so.
    pub fn by(allowed: Option<&By>, is_unboxed: bool) -> Manner {
        match allowed {
            Some(By::Rule(rule)) if rule == READING_RULE => Manner::Reading,
            Some(By::Rule(rule)) if is_standing(rule) => Manner::Ruled,
            Some(By::Operator(_)) if is_unboxed => Manner::Unboxed,
            Some(By::Rule(_) | By::Operator(_)) | None => Manner::Usual,
        }
    }
}

/// Where a call that starts a program runs, in words; nothing for one that starts none.
pub fn place(facts: &Facts, manner: Manner) -> Option<String> {
    let network = if facts.network { "network open" } else { "no network" };
    let boxed = |level: Level| match manner {
        Manner::Unboxed => "outside of the box, by its code".to_string(),
        Manner::Reading => format!("in the {level} box, nothing writable, {network}"),
        Manner::Ruled | Manner::Usual => format!("in the {level} box, {network}"),
    };
    Some(match facts.level? {
        Level::None => "without a box, with all your rights".to_string(),
        level @ (Level::Full | Level::Partial) => boxed(level),
    })
}

/// The same, of a call that is about to run.
pub fn place_of(call: &ToolCall) -> Option<String> {
    place(call.facts.as_ref()?, Manner::of(call))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_call_runs_is_said_of_what_starts_a_program() {
        let check = |level, network, manner, expected: Option<&str>| {
            let facts = Facts { level, network, ..Facts::default() };
            assert_eq!(place(&facts, manner).as_deref(), expected);
        };
        check(None, false, Manner::Usual, None);
        check(Some(Level::Full), false, Manner::Usual, Some("in the full box, no network"));
        check(Some(Level::Full), true, Manner::Usual, Some("in the full box, network open"));
        check(Some(Level::Full), false, Manner::Reading, Some("in the full box, nothing writable, no network"));
        check(Some(Level::Partial), false, Manner::Ruled, Some("in the partial box, no network"));
        check(Some(Level::Full), true, Manner::Unboxed, Some("outside of the box, by its code"));
        check(Some(Level::None), false, Manner::Usual, Some("without a box, with all your rights"));
    }
}
