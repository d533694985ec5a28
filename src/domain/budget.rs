//! Budgets: limits, the pool that amounts are booked in, and reservations of the worst case.

use std::fmt;

use rpds::RedBlackTreeMapSync;
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

/// What became of a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Settled {
    charge: Charge,
    /// When it had been made.
    made: Timestamp,
}

/// What an account knows of a reservation of a name and a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// It is held.
    Held,
    /// So much counts as spent for it.
    Counted(MicroUsd),
    /// It was made after a moment to which the journal was put back, or never recorded.
    Unknown,
}

/// The account of a run. Private, because `spent + reserved ≤ limit` must hold when something is reserved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pool {
    limits: Limits,
    reserved: Option<Reservation>,
    /// When that was made.
    made: Timestamp,
    spent: MicroUsd,
    usage: Usage,
    unverified: MicroUsd,
    estimated: MicroUsd,
    #[serde(with = "crate::domain::stored::listed")]
    charges: RedBlackTreeMapSync<ReservationId, Settled>,
    #[serde(with = "crate::domain::stored::listed")]
    corrected: RedBlackTreeMapSync<ReservationId, MicroUsd>,
    loops: u64,
    model_calls: u64,
    tool_calls: u64,
    active: Span,
    latest: Timestamp,
}

impl Pool {
    /// An empty account with these limits.
    pub fn new(limits: Limits) -> Self {
        Pool {
            limits,
            reserved: None,
            made: Timestamp(0),
            spent: MicroUsd(0),
            usage: Usage::default(),
            unverified: MicroUsd(0),
            estimated: MicroUsd(0),
            charges: RedBlackTreeMapSync::new_sync(),
            corrected: RedBlackTreeMapSync::new_sync(),
            loops: 0,
            model_calls: 0,
            tool_calls: 0,
            active: Span(0),
            latest: Timestamp(0),
        }
    }

    /// The limits in force.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// What is held for the call in flight.
    pub fn reserved(&self) -> Option<&Reservation> {
        self.reserved.as_ref()
    }

    /// What was charged in all.
    pub fn spent(&self) -> MicroUsd {
        self.spent
    }

    /// The tokens of all charges.
    pub fn usage(&self) -> &Usage {
        &self.usage
    }

    /// The part of `spent` that nobody could verify.
    pub fn unverified(&self) -> MicroUsd {
        self.unverified
    }

    /// The part of `spent` that rests on an estimate.
    pub fn estimated(&self) -> MicroUsd {
        self.estimated
    }

    /// What a reservation was charged, before any correction; nothing while it is not settled.
    pub fn charge(&self, id: ReservationId) -> Option<&Charge> {
        self.charges.get(&id).map(|settled| &settled.charge)
    }

    /// When the reservation of a name was made.
    pub fn made(&self, id: ReservationId) -> Option<Timestamp> {
        let held = self.reserved.filter(|held| held.id == id).map(|_| self.made);
        held.or(self.charges.get(&id).map(|settled| settled.made))
    }

    /// What is known of the reservation of this name that was made then. A name alone says too little: a journal that
    /// is put back to an earlier state gives its names once more.
    pub fn known(&self, id: ReservationId, made: Timestamp) -> Known {
        match self.made(id) {
            Some(own) if own == made => self.counted(id).map_or(Known::Held, Known::Counted),
            Some(_) | None => Known::Unknown,
        }
    }

    /// What counts as spent for a reservation: its charge, or what the operator put in its place.
    pub fn counted(&self, id: ReservationId) -> Option<MicroUsd> {
        self.corrected.get(&id).copied().or(self.charge(id).map(|charge| charge.amount))
    }

    /// The charges that nobody could verify and nobody has corrected, in their order (docs/ENGINE.md §8.3).
    pub fn doubtful(&self) -> impl Iterator<Item = (ReservationId, MicroUsd)> {
        self.charges
            .iter()
            .map(|(id, settled)| (*id, settled.charge))
            .filter(|(id, charge)| charge.basis == Basis::Unverified && !self.corrected.contains_key(id))
            .map(|(id, charge)| (id, charge.amount))
    }

    /// What was used on an axis; of the deadline, the time of the last record.
    pub fn used(&self, axis: Axis) -> u64 {
        match axis {
            Axis::Active => self.active.0,
            Axis::Deadline => self.latest.0,
            Axis::Loops => self.loops,
            Axis::ModelCalls => self.model_calls,
            Axis::ToolCalls => self.tool_calls,
            Axis::Tokens => self.usage.total(),
            Axis::Cost => self.spent.0,
        }
    }

    /// Whether nothing is left on an axis.
    pub fn is_exhausted(&self, axis: Axis) -> bool {
        self.limits.on(axis).left(self.used(axis)) == Some(0)
    }

    /// The axes that do not bear a reservation of this size, first things first.
    pub fn refuses(&self, amount: MicroUsd, tokens: u64) -> impl Iterator<Item = Axis> {
        let tokens_fit = self.limits.tokens.bears(self.usage.total().saturating_add(tokens));
        let cost_fits = self.limits.cost.bears(self.spent.plus(amount).0);
        [(Axis::Tokens, tokens_fit), (Axis::Cost, cost_fits)]
            .into_iter()
            .filter(|(_, fits)| !fits)
            .map(|(axis, _)| axis)
    }

    /// Holds a reservation that is made at this moment. Errors, in words for the log, when one is held or a limit does not bear it.
    pub fn reserve(&mut self, reservation: Reservation, made: Timestamp) -> Result<(), String> {
        if let Some(held) = &self.reserved {
            return Err(format!("a reservation for {} while one for {} is held", reservation.id, held.id));
        }
        if let Some(axis) = self.refuses(reservation.amount, reservation.tokens).next() {
            return Err(format!("a reservation for {} is over the limit of {}", reservation.id, axis.word()));
        }
        self.reserved = Some(reservation);
        self.made = made;
        Ok(())
    }

    /// Replaces the reservation by its charge, and gives what it is charged. One that was settled before stays as it
    /// is, and its charge is given. Errors when it is neither settled nor the one held.
    pub fn settle(&mut self, id: ReservationId, charge: &Charge) -> Result<Charge, String> {
        if let Some(recorded) = self.charge(id) {
            return Ok(*recorded);
        }
        match &self.reserved {
            Some(held) if held.id == id => {}
            Some(_) | None => return Err(format!("a charge for {id}, for which nothing is reserved")),
        }
        self.reserved = None;
        self.spent = self.spent.plus(charge.amount);
        self.usage = self.usage.plus(&charge.usage);
        match charge.basis {
            Basis::Unverified => self.unverified = self.unverified.plus(charge.amount),
            Basis::Estimated | Basis::Partial => self.estimated = self.estimated.plus(charge.amount),
            Basis::Reported | Basis::NotAccepted => {}
        }
        self.charges.insert_mut(id, Settled { charge: *charge, made: self.made });
        Ok(*charge)
    }

    /// Puts an actual figure in the place of a charge that nobody could verify, once. Errors, in words for a person,
    /// when there is no such charge or it was corrected before.
    pub fn correct(&mut self, id: ReservationId, amount: MicroUsd) -> Result<(), String> {
        if let Some(said) = self.corrected.get(&id) {
            return Err(format!("the charge of {id} was corrected to {said} already"));
        }
        let charge = match self.charge(id) {
            Some(charge) if charge.basis == Basis::Unverified => *charge,
            Some(_) => return Err(format!("the charge of {id} is not in doubt")),
            None => return Err(format!("there is no charge of {id}")),
        };
        self.spent = self.spent.minus(charge.amount).plus(amount);
        self.unverified = self.unverified.minus(charge.amount);
        self.corrected.insert_mut(id, amount);
        Ok(())
    }

    /// Sets a new limit on an axis.
    pub fn raise(&mut self, axis: Axis, limit: Limit) {
        self.limits.set(axis, limit);
    }

    /// Counts an iteration of phase pursue or replan.
    pub fn count_loop(&mut self) {
        self.loops += 1;
    }

    /// Counts an attempt at a model call.
    pub fn count_model_call(&mut self) {
        self.model_calls += 1;
    }

    /// Counts a start of a work call.
    pub fn count_tool_call(&mut self) {
        self.tool_calls += 1;
    }

    /// Takes over the active time, which never goes back, and the time of a record, which may.
    pub fn observe_time(&mut self, at: Timestamp, active: Span) {
        self.active = self.active.max(active);
        self.latest = at;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reservation(call: u32, amount: u64) -> Reservation {
        let id = ReservationId { call: ModelCallId(call), attempt: 1 };
        Reservation { id, amount: MicroUsd(amount), tokens: 0, input: 0, bytes: 0 }
    }

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

    #[test]
    fn s_17_sixty_small_calls_fit_under_a_large_reservation() {
        let limits = Limits { cost: Limit::At(1_000_000), ..Limits::default() };
        let mut pool = Pool::new(limits);
        for call in 1..=60 {
            let held = reservation(call, 200_000);
            assert_eq!(pool.reserve(held, Timestamp(0)), Ok(()));
            let charge = Charge { amount: MicroUsd(10_000), usage: Usage::default(), basis: Basis::Reported };
            assert_eq!(pool.settle(held.id, &charge), Ok(charge));
        }
        assert_eq!((pool.spent(), pool.reserved()), (MicroUsd(600_000), None));
    }

    #[test]
    fn a_reservation_over_the_limit_is_refused() {
        let mut pool = Pool::new(Limits { cost: Limit::At(100), ..Limits::default() });
        assert!(pool.reserve(reservation(1, 101), Timestamp(0)).is_err());
        assert!(pool.reserve(reservation(1, 100), Timestamp(0)).is_ok());
        assert!(pool.reserve(reservation(2, 1), Timestamp(0)).is_err());
        let charge = Charge { amount: MicroUsd(130), usage: Usage::default(), basis: Basis::Unverified };
        assert!(pool.settle(reservation(2, 1).id, &charge).is_err());
        assert!(pool.settle(reservation(1, 1).id, &charge).is_ok());
        assert_eq!((pool.spent(), pool.unverified()), (MicroUsd(130), MicroUsd(130)));
    }

    #[test]
    fn s_21_settled_twice_is_charged_once_and_the_recorded_charge_is_given() {
        let mut pool = Pool::new(Limits::default());
        let id = reservation(1, 500).id;
        assert_eq!(pool.reserve(reservation(1, 500), Timestamp(0)), Ok(()));
        let of = |amount, basis| Charge { amount: MicroUsd(amount), usage: Usage::default(), basis };
        let recovered = of(500, Basis::Unverified);
        assert_eq!(pool.settle(id, &recovered), Ok(recovered));
        assert_eq!(pool.settle(id, &of(70, Basis::Reported)), Ok(recovered), "the second returns the recorded one");
        assert_eq!((pool.spent(), pool.reserved()), (MicroUsd(500), None));
    }

    #[test]
    fn a_doubtful_charge_is_corrected_once() {
        let mut pool = Pool::new(Limits { cost: Limit::At(1_000), ..Limits::default() });
        let of = |amount, basis| Charge { amount: MicroUsd(amount), usage: Usage::default(), basis };
        for (call, basis) in [(1, Basis::Unverified), (2, Basis::Reported), (3, Basis::Unverified)] {
            assert_eq!(pool.reserve(reservation(call, 100), Timestamp(0)), Ok(()));
            assert!(pool.settle(reservation(call, 100).id, &of(100, basis)).is_ok());
        }
        let id = |call| reservation(call, 0).id;
        assert_eq!(pool.doubtful().collect::<Vec<_>>(), [(id(1), MicroUsd(100)), (id(3), MicroUsd(100))]);
        assert_eq!(pool.correct(id(1), MicroUsd(30)), Ok(()));
        assert_eq!(
            (pool.spent(), pool.unverified(), pool.counted(id(1))),
            (MicroUsd(230), MicroUsd(100), Some(MicroUsd(30)))
        );
        assert_eq!(
            pool.correct(id(1), MicroUsd(10)),
            Err("the charge of m1.1 was corrected to $0.01 already".to_string())
        );
        assert_eq!(pool.correct(id(2), MicroUsd(10)), Err("the charge of m2.1 is not in doubt".to_string()));
        assert_eq!(pool.correct(id(9), MicroUsd(10)), Err("there is no charge of m9.1".to_string()));
        assert_eq!(pool.correct(id(3), MicroUsd(300)), Ok(()), "a correction may also be upward");
        assert_eq!((pool.spent(), pool.doubtful().count()), (MicroUsd(430), 0));
    }
}
