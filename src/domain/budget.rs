//! Budgets: limits, reservations of the worst case, and charges.

use std::fmt;

use serde::Deserialize;
use serde::Serialize;

use crate::domain::deadline::Deadline;
use crate::domain::deadline::moment;
use crate::domain::id::ModelCallId;
use crate::domain::limits;
use crate::domain::money::MicroUsd;
use crate::domain::money::Usage;
use crate::domain::time::Span;
use crate::domain::time::Timestamp;
use crate::domain::time::parse;

/// The word for having no limit on an axis.
pub const UNLIMITED: &str = "unlimited";

/// A limit on one axis. Zero is not a limit; having none must be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// At most this much.
    At(u64),
    /// As much as it takes.
    Unlimited,
}

impl Limit {
    /// Whether `amount` is within the limit.
    pub fn bears(self, amount: u64) -> bool {
        match self {
            Limit::At(most) => amount <= most,
            Limit::Unlimited => true,
        }
    }

    /// What is left after `used`; nothing when there is no limit.
    pub fn left(self, used: u64) -> Option<u64> {
        match self {
            Limit::At(most) => Some(most.saturating_sub(used)),
            Limit::Unlimited => None,
        }
    }
}

/// The axes that a run is limited on (docs/ENGINE.md §8.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Axis {
    /// Milliseconds while running.
    Active,
    /// A moment, in milliseconds since 1970.
    Deadline,
    /// Iterations of phase pursue and replan.
    Loops,
    /// Model calls, all phases and attempts.
    ModelCalls,
    /// Work calls started.
    ToolCalls,
    /// Tokens, in and out.
    Tokens,
    /// Micro-dollars.
    Cost,
}

impl Axis {
    /// All axes, in the order in which they are checked before a call: cheap and certain first.
    pub const ALL: [Axis; 7] =
        [Axis::Active, Axis::Deadline, Axis::Loops, Axis::ModelCalls, Axis::ToolCalls, Axis::Tokens, Axis::Cost];

    /// The axis as one word, as commands take it.
    pub fn word(self) -> &'static str {
        match self {
            Axis::Active => "time",
            Axis::Deadline => "deadline",
            Axis::Loops => "iterations",
            Axis::ModelCalls => "model-calls",
            Axis::ToolCalls => "tool-calls",
            Axis::Tokens => "tokens",
            Axis::Cost => "cost",
        }
    }

    /// The axis of a word.
    pub fn parse(word: &str) -> Option<Axis> {
        Axis::ALL.into_iter().find(|axis| axis.word() == word)
    }

    /// Reads a limit as a person writes it: dollars, a length of time, a count, or `unlimited`. Errors, in a
    /// sentence without its end, when it is none of these or zero.
    pub fn parse_limit(self, text: &str) -> Result<Limit, String> {
        let text = text.trim();
        if text == UNLIMITED {
            return Ok(Limit::Unlimited);
        }
        let (amount, form) = match self {
            Axis::Active => (parse(text).map(|span| span.0), "a time such as 30m, 2h or 1h30m"),
            Axis::Deadline => match Deadline::parse(text)? {
                Deadline::At(at) => (Some(at.0), ""),
                Deadline::After(_) => (None, "a moment such as 2030-01-31T18:00:00Z"),
                Deadline::None => return Ok(Limit::Unlimited),
            },
            Axis::Cost => (MicroUsd::parse_dollars(text).map(|amount| amount.0), "dollars such as 5 or 0.50"),
            Axis::Loops | Axis::ModelCalls | Axis::ToolCalls | Axis::Tokens => {
                (text.parse().ok(), "a whole number such as 50")
            }
        };
        match amount {
            None => Err(format!("the limit of {} must be {form}, or {UNLIMITED}", self.word())),
            Some(0) => Err(format!(
                "a limit of zero on {} would stop the run at once; write {UNLIMITED} to have none",
                self.word()
            )),
            Some(most) => Ok(Limit::At(most)),
        }
    }

    /// Reads a limit where the present is known, so that a deadline may also be a length of time from now. Errors as
    /// `parse_limit` does, and when a deadline is past.
    pub fn parse_limit_at(self, text: &str, now: Timestamp) -> Result<Limit, String> {
        match self {
            Axis::Deadline => Deadline::parse(text)?.limit(now),
            Axis::Active | Axis::Loops | Axis::ModelCalls | Axis::ToolCalls | Axis::Tokens | Axis::Cost => {
                self.parse_limit(text)
            }
        }
    }

    /// Whether a run has no limit on this axis unless one is asked for, so that having none is nothing to warn of.
    pub fn is_optional(self) -> bool {
        self == Axis::Deadline
    }

    /// An amount on this axis, for people.
    pub fn show(self, amount: u64) -> String {
        match self {
            Axis::Deadline => moment(Timestamp(amount)),
            Axis::Active => crate::domain::time::human(Span(amount)),
            Axis::Cost => MicroUsd(amount).to_string(),
            Axis::Loops | Axis::ModelCalls | Axis::ToolCalls | Axis::Tokens => amount.to_string(),
        }
    }
}

fn no_limit() -> Limit {
    Limit::Unlimited
}

fn is_no_limit(limit: &Limit) -> bool {
    *limit == Limit::Unlimited
}

/// The limits of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Milliseconds of active time.
    pub active: Limit,
    /// The moment until which it may work, in milliseconds since 1970.
    #[serde(default = "no_limit", skip_serializing_if = "is_no_limit")]
    pub deadline: Limit,
    /// Iterations.
    pub loops: Limit,
    /// Model calls.
    pub model_calls: Limit,
    /// Work calls.
    pub tool_calls: Limit,
    /// Tokens.
    pub tokens: Limit,
    /// Micro-dollars.
    pub cost: Limit,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            active: Limit::At(limits::ACTIVE.0),
            deadline: Limit::Unlimited,
            loops: Limit::At(limits::LOOPS),
            model_calls: Limit::At(limits::MODEL_CALLS),
            tool_calls: Limit::At(limits::TOOL_CALLS),
            tokens: Limit::At(limits::TOKENS),
            cost: Limit::At(limits::COST.0),
        }
    }
}

impl Limits {
    /// The limit on an axis.
    pub fn on(&self, axis: Axis) -> Limit {
        match axis {
            Axis::Active => self.active,
            Axis::Deadline => self.deadline,
            Axis::Loops => self.loops,
            Axis::ModelCalls => self.model_calls,
            Axis::ToolCalls => self.tool_calls,
            Axis::Tokens => self.tokens,
            Axis::Cost => self.cost,
        }
    }

    /// Sets the limit on an axis.
    pub fn set(&mut self, axis: Axis, limit: Limit) {
        match axis {
            Axis::Active => self.active = limit,
            Axis::Deadline => self.deadline = limit,
            Axis::Loops => self.loops = limit,
            Axis::ModelCalls => self.model_calls = limit,
            Axis::ToolCalls => self.tool_calls = limit,
            Axis::Tokens => self.tokens = limit,
            Axis::Cost => self.cost = limit,
        }
    }
}

/// The name of a reservation: one attempt at one model call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ReservationId {
    /// The model call.
    pub call: ModelCallId,
    /// The attempt, from 1.
    pub attempt: u32,
}

impl ReservationId {
    /// Reads an id as it is shown, `m3.1`; `m3` is its first attempt.
    pub fn parse(text: &str) -> Option<Self> {
        let (call, attempt) = text.split_once('.').unwrap_or((text, "1"));
        let attempt = attempt.parse().ok().filter(|attempt| *attempt > 0)?;
        Some(ReservationId { call: ModelCallId(call.strip_prefix('m')?.parse().ok()?), attempt })
    }
}

impl fmt::Display for ReservationId {
    /// As people and commands write it: `m3.1`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}", self.call, self.attempt)
    }
}

/// The worst case, held while a model call is in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    /// What it is for.
    pub id: ReservationId,
    /// The most the call can cost.
    pub amount: MicroUsd,
    /// The most tokens it can use.
    pub tokens: u64,
    /// The estimated tokens of its input, before the safety factor.
    pub input: u64,
    /// Bytes of the request, from which the estimate was made.
    pub bytes: u64,
}

/// What a model call was charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Charge {
    /// The amount.
    pub amount: MicroUsd,
    /// The tokens it rests on.
    pub usage: Usage,
    /// What the figure rests on.
    pub basis: Basis,
}

/// What a charge rests on (docs/ENGINE.md §8.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// The provider reported the tokens.
    Reported,
    /// The provider did not take the request.
    NotAccepted,
    /// The stream broke; input as reported, output counted.
    Partial,
    /// Nothing was reported; all is estimated.
    Estimated,
    /// Nobody knows; the whole reservation counts.
    Unverified,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_by_axis() {
        assert_eq!(Axis::parse("time").map(|axis| axis.parse_limit("1h30m")), Some(Ok(Limit::At(5_400_000))));
        assert_eq!(Axis::parse("cost").map(|axis| axis.parse_limit("$0.50")), Some(Ok(Limit::At(500_000))));
        assert_eq!(Axis::parse("tool-calls").map(|axis| axis.parse_limit("7")), Some(Ok(Limit::At(7))));
        assert_eq!(Axis::Tokens.parse_limit("unlimited"), Ok(Limit::Unlimited));
        assert_eq!(Axis::parse("dollars"), None);
        let refused = |axis: Axis, text: &str| axis.parse_limit(text).err().unwrap_or_default();
        assert_eq!(
            refused(Axis::Loops, "0"),
            "a limit of zero on iterations would stop the run at once; write unlimited to have none"
        );
        assert_eq!(refused(Axis::Cost, "-1"), "the limit of cost must be dollars such as 5 or 0.50, or unlimited");
        assert_eq!(
            refused(Axis::Active, "5"),
            "the limit of time must be a time such as 30m, 2h or 1h30m, or unlimited"
        );
        assert_eq!(refused(Axis::Tokens, "1e9"), "the limit of tokens must be a whole number such as 50, or unlimited");
    }
}
