//! What an iteration showed, and the windows of the detectors. All of it is folded, so a restart resets nothing.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use rpds::HashTrieSetSync;
use serde::Deserialize;
use serde::Serialize;

use crate::domain::limits;
use crate::domain::plan::Movement;
use crate::domain::time::Timestamp;
use crate::domain::tool::ErrorClass;
use crate::domain::windows;
use crate::domain::windows::Errors;
use crate::domain::windows::Poll;
use crate::domain::windows::Repeat;
use crate::domain::windows::SameText;
use crate::domain::windows::Step;

/// What an iteration showed (docs/ENGINE.md §7.1).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observation {
    /// Each work call in model order, with what it gave.
    pub outcomes: Vec<CallResult>,
    /// The reply had text and no call.
    pub text_only: bool,
    /// Hash of that text, whitespace collapsed; empty for any other reply.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text_hash: String,
    /// How the plan moved within the iteration.
    pub movement: Movement,
    /// `path@hash` of files written with a content that this run never wrote before.
    pub effects: Vec<String>,
    /// Checks that passed for the first time, by their number.
    pub checks_newly_passing: Vec<usize>,
    /// The operator spoke.
    pub interjected: bool,
    /// Some call and result were never seen before.
    pub novel: bool,
    /// All that was done was the same call again, and it gave something new: how long that may go on is for P to say,
    /// not for N.
    #[serde(default, skip_serializing_if = "is_false")]
    pub polling: bool,
    /// Whether the iteration counts as progress (docs/ENGINE.md §7.2).
    pub progress: bool,
}

/// A work call and its result, as the detectors see them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallResult {
    /// Signature of the call: tool and arguments, without what is presentational.
    pub call: String,
    /// Hash of its result, without what means nothing.
    pub result: String,
    /// What the call is about, for the diagnosis.
    pub title: String,
    /// The class of its error, where the system named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<ErrorClass>,
}

impl CallResult {
    /// What two calls that did the same with the same result share.
    pub fn pair(&self) -> String {
        format!("{}:{}", self.call, self.result)
    }
}

/// The detector windows and counters of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Iterations in a row without progress.
    pub idle: u32,
    /// Iterations in a row without a todo that moved and without a new content.
    pub unmoved: u32,
    /// The call that is being repeated.
    pub repeat: Option<Repeat>,
    /// The call that is made again and again, whatever it gives.
    pub poll: Option<Poll>,
    /// Errors of one class in a row.
    pub errors: Option<Errors>,
    /// The last iterations with work calls.
    pub steps: Vec<Step>,
    /// The text that is being repeated.
    pub same_text: Option<SameText>,
    /// Iterations in a row whose only progress was novelty.
    pub novelty: u32,
    /// Pairs of call and result that were seen.
    #[serde(with = "crate::domain::stored::listed")]
    pub seen: HashTrieSetSync<String>,
    /// File contents that were written, as `path@hash`.
    #[serde(with = "crate::domain::stored::listed")]
    pub written: HashTrieSetSync<String>,
    /// Checks that have passed once, by their number.
    pub passed: BTreeSet<usize>,
    /// Text-only turns in a row.
    pub text_only: u32,
    /// Replans of this run since they were last granted.
    pub replans: u32,
    /// Replans in a row that changed nothing.
    pub ineffective: u32,
    /// Rejected claims.
    pub claims: u32,
    /// Denials by the operator in a row.
    pub denials: u32,
    /// Denied calls by signature, with the operator's words.
    pub denied: BTreeMap<String, String>,
    /// Those of them that were denied elsewhere, before the run was brought here.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub denied_elsewhere: BTreeSet<String>,
    /// How often each of them was refused unasked since.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub refused: BTreeMap<String, u32>,
    /// When the operator was asked about calls within the last `limits::ASKS_SPAN`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asks: Vec<Timestamp>,
    /// Calls allowed until the run ends, each with what its decision was bound to.
    pub granted: BTreeSet<String>,
    /// Files that other programs run by themselves, and that a command changed since the operator last decided.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub watched: Vec<String>,
    /// Malformed or unknown calls in a row.
    pub malformed: u32,
    /// Calls with wrong arguments in a row.
    pub invalid: u32,
    /// Replies in a row that reached the output limit.
    pub truncated: u32,
    /// How often each tool broke.
    pub faults: BTreeMap<String, u32>,
    /// Recoveries since the last progress.
    pub recoveries: u32,
}

impl Progress {
    /// The operator is asked about a call.
    pub fn ask(&mut self, at: Timestamp) {
        self.asks.retain(|asked| at.since(*asked) < limits::ASKS_SPAN);
        self.asks.push(at);
    }

    /// Whether the operator was asked so often lately that nobody reads what they are asked.
    pub fn asks_too_often(&self, now: Timestamp) -> bool {
        self.asks.iter().filter(|asked| now.since(**asked) < limits::ASKS_SPAN).count() > limits::ASKS
    }

    /// Takes an observation into the windows.
    pub fn take(&mut self, seen: &Observation) {
        for outcome in &seen.outcomes {
            self.repeat = Some(windows::repeat(self.repeat.take(), outcome));
            self.poll = Some(windows::poll(self.poll.take(), outcome));
            self.errors = windows::errors(self.errors, outcome);
            self.seen.insert_mut(outcome.pair());
        }
        for effect in &seen.effects {
            self.written.insert_mut(effect.clone());
        }
        self.passed.extend(&seen.checks_newly_passing);
        windows::step(&mut self.steps, &seen.outcomes);
        self.same_text = seen.text_only.then(|| windows::same_text(self.same_text.take(), &seen.text_hash));
        self.text_only = if seen.text_only { self.text_only.saturating_add(1) } else { 0 };
        let strong = seen.movement.forward > 0 || !seen.effects.is_empty() || !seen.checks_newly_passing.is_empty();
        self.novelty = if seen.novel && !strong { self.novelty.saturating_add(1) } else { 0 };
        let moves = seen.movement.is_structural() || seen.movement.forward > 0 || !seen.effects.is_empty();
        self.unmoved = if moves || seen.interjected { 0 } else { self.unmoved.saturating_add(1) };
        if seen.progress {
            self.idle = 0;
            self.recoveries = 0;
        } else if seen.interjected {
            self.idle = 0;
        } else if !seen.polling {
            self.idle = self.idle.saturating_add(1);
        }
    }

    /// Whether this call and result were seen before.
    pub fn has_seen(&self, outcome: &CallResult) -> bool {
        self.seen.contains(&outcome.pair())
    }

    /// Whether novelty alone still counts.
    pub fn novelty_counts(&self) -> bool {
        self.novelty < limits::NOVELTY_ALLOWANCE
    }

    /// Whether a tool broke so often that it is not used any more.
    pub fn is_disabled(&self, tool: &str) -> bool {
        self.faults.get(tool).is_some_and(|count| *count >= limits::TOOL_FAULTS)
    }

    /// The tools that are not used any more.
    pub fn disabled(&self) -> impl Iterator<Item = &str> {
        self.faults.keys().map(String::as_str).filter(|tool| self.is_disabled(tool))
    }

    /// Empties the windows that a replan, an interjection or the operator's resume of a stall empties: N, W and C. The
    /// others go on, and end when the model does something else.
    pub fn reset_windows(&mut self) {
        self.idle = 0;
        self.unmoved = 0;
        self.steps.clear();
    }
}

/// Whether a switch is off, which its record does not mention.
fn is_false(switch: &bool) -> bool {
    !switch
}
