//! What an iteration showed, and the windows of the detectors. All of it is folded, so a restart resets nothing.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use rpds::HashTrieSetSync;
use serde::Deserialize;
use serde::Serialize;

use crate::domain::limits;
use crate::domain::plan::Movement;

/// What an iteration showed (docs/ENGINE.md §7.1).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observation {
    /// Each work call in model order, with what it gave.
    pub outcomes: Vec<CallResult>,
    /// The reply had text and no call.
    pub text_only: bool,
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
    /// Whether the iteration counts as progress (docs/ENGINE.md §7.2).
    pub progress: bool,
}

/// A work call and its result, as the detectors see them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallResult {
    /// Signature of the call: tool and exact arguments.
    pub call: String,
    /// Hash of its result.
    pub result: String,
    /// What the call is about, for the diagnosis.
    pub title: String,
}

/// The same call with the same result, in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repeat {
    /// The call and its result.
    pub what: CallResult,
    /// How often in a row.
    pub count: u32,
}

/// The detector windows and counters of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Iterations in a row without progress.
    pub idle: u32,
    /// The call that is being repeated.
    pub repeat: Option<Repeat>,
    /// Iterations in a row whose only progress was novelty.
    pub novelty: u32,
    /// Pairs of call and result that were seen.
    pub seen: HashTrieSetSync<String>,
    /// File contents that were written, as `path@hash`.
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
    /// Calls allowed until the run ends, each with what its decision was bound to.
    pub granted: BTreeSet<String>,
    /// Malformed or unknown calls in a row.
    pub malformed: u32,
    /// Calls with wrong arguments in a row.
    pub invalid: u32,
    /// Replies in a row that reached the output limit.
    pub truncated: u32,
    /// Recoveries since the last progress.
    pub recoveries: u32,
}

impl Progress {
    /// Takes an observation into the windows.
    pub fn take(&mut self, seen: &Observation) {
        for outcome in &seen.outcomes {
            self.repeat = Some(match self.repeat.take() {
                Some(before) if before.what.call == outcome.call && before.what.result == outcome.result => {
                    Repeat { count: before.count.saturating_add(1), ..before }
                }
                Some(_) | None => Repeat { what: outcome.clone(), count: 1 },
            });
            self.seen.insert_mut(pair(outcome));
        }
        for effect in &seen.effects {
            self.written.insert_mut(effect.clone());
        }
        self.passed.extend(&seen.checks_newly_passing);
        self.text_only = if seen.text_only { self.text_only.saturating_add(1) } else { 0 };
        let strong = seen.movement.forward > 0 || !seen.effects.is_empty() || !seen.checks_newly_passing.is_empty();
        self.novelty = if seen.novel && !strong { self.novelty.saturating_add(1) } else { 0 };
        if seen.progress {
            self.idle = 0;
            self.recoveries = 0;
        } else if seen.interjected {
            self.idle = 0;
        } else {
            self.idle = self.idle.saturating_add(1);
        }
    }

    /// Whether this call and result were seen before.
    pub fn has_seen(&self, outcome: &CallResult) -> bool {
        self.seen.contains(&pair(outcome))
    }

    /// Whether novelty alone still counts.
    pub fn novelty_counts(&self) -> bool {
        self.novelty < limits::NOVELTY_ALLOWANCE
    }

    /// Empties the windows that a replan, an interjection or the operator's resume empties.
    pub fn reset_windows(&mut self) {
        self.idle = 0;
        self.repeat = None;
        self.text_only = 0;
    }
}

fn pair(outcome: &CallResult) -> String {
    format!("{}:{}", outcome.call, outcome.result)
}
