//! The account of a run: what was charged, what is held, and how much of each axis was used (docs/ENGINE.md §8).

use rpds::RedBlackTreeMapSync;
use serde::Deserialize;
use serde::Serialize;

use crate::domain::budget::Axis;
use crate::domain::budget::Basis;
use crate::domain::budget::Charge;
use crate::domain::budget::Limit;
use crate::domain::budget::Limits;
use crate::domain::budget::Reservation;
use crate::domain::budget::ReservationId;
use crate::domain::money::MicroUsd;
use crate::domain::money::Usage;
use crate::domain::time::Span;
use crate::domain::time::Timestamp;

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
            return Err(format!("the charge of {id} was corrected to {} already", said.exact()));
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
    use crate::domain::id::ModelCallId;

    fn reservation(call: u32, amount: u64) -> Reservation {
        let id = ReservationId { call: ModelCallId(call), attempt: 1 };
        Reservation { id, amount: MicroUsd(amount), tokens: 0, input: 0, bytes: 0 }
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
            Err("the charge of m1.1 was corrected to $0.00003 already".to_string())
        );
        assert_eq!(pool.correct(id(2), MicroUsd(10)), Err("the charge of m2.1 is not in doubt".to_string()));
        assert_eq!(pool.correct(id(9), MicroUsd(10)), Err("there is no charge of m9.1".to_string()));
        assert_eq!(pool.correct(id(3), MicroUsd(300)), Ok(()), "a correction may also be upward");
        assert_eq!((pool.spent(), pool.doubtful().count()), (MicroUsd(430), 0));
    }
}
