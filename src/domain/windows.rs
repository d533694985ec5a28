//! The windows of the detectors (docs/ENGINE.md §7.3): what is compared from one call, or one iteration, to the next.
//! They are data that grows by one step at a time; what they mean is judged in `policy/stall.rs`.

use serde::Deserialize;
use serde::Serialize;

use crate::domain::limits;
use crate::domain::progress::CallResult;
use crate::domain::text::one_line;
use crate::domain::text::short_hash;
use crate::domain::tool::ErrorClass;

/// Longest name of an iteration in a cycle, in characters.
const STEP_MAX_CHARS: usize = 80;

/// R: the same call with the same result, in a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repeat {
    /// The call and its result.
    pub what: CallResult,
    /// How often in a row.
    pub count: u32,
}

/// R, with one call more.
pub fn repeat(before: Option<Repeat>, next: &CallResult) -> Repeat {
    match before {
        Some(before) if before.what.call == next.call && before.what.result == next.result => {
            Repeat { count: before.count.saturating_add(1), ..before }
        }
        Some(_) | None => Repeat { what: next.clone(), count: 1 },
    }
}

/// P: the same call in a row, whatever it gave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Poll {
    /// Signature of the call.
    pub call: String,
    /// What it is about.
    pub title: String,
    /// How often in a row.
    pub count: u32,
}

/// P, with one call more.
pub fn poll(before: Option<Poll>, next: &CallResult) -> Poll {
    match before {
        Some(before) if before.call == next.call => Poll { count: before.count.saturating_add(1), ..before },
        Some(_) | None => Poll { call: next.call.clone(), title: next.title.clone(), count: 1 },
    }
}

/// B: errors of one class in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Errors {
    /// The class.
    pub class: ErrorClass,
    /// How many in a row.
    pub count: u32,
}

/// B, with one call more. A call without such an error ends the row.
pub fn errors(before: Option<Errors>, next: &CallResult) -> Option<Errors> {
    let class = next.class.filter(|class| class.blocks())?;
    let count = before.filter(|before| before.class == class).map_or(0, |before| before.count);
    Some(Errors { class, count: count.saturating_add(1) })
}

/// M: text-only turns with the same text, in a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SameText {
    /// Hash of the text.
    pub text: String,
    /// How many in a row.
    pub count: u32,
}

/// M, with one text-only turn more.
pub fn same_text(before: Option<SameText>, text: &str) -> SameText {
    let count = before.filter(|before| before.text == text).map_or(0, |before| before.count);
    SameText { text: text.to_string(), count: count.saturating_add(1) }
}

/// C: an iteration, as the search for cycles sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Hash of all its work calls and their results.
    pub signature: String,
    /// What they were about.
    pub title: String,
}

/// C, with one iteration more; one without work calls neither goes on with a cycle nor ends it.
pub fn step(steps: &mut Vec<Step>, outcomes: &[CallResult]) {
    if outcomes.is_empty() {
        return;
    }
    let pairs: Vec<String> = outcomes.iter().map(CallResult::pair).collect();
    let titles: Vec<&str> = outcomes.iter().map(|one| one.title.as_str()).collect();
    let signature = short_hash(pairs.join("\0").as_bytes());
    steps.push(Step { signature, title: one_line(&titles.join(" + "), STEP_MAX_CHARS) });
    let most = limits::CYCLE_PERIODS * limits::CYCLE_PERIOD_MAX;
    if steps.len() > most {
        steps.drain(..steps.len() - most);
    }
}
