//! The run's way to the ledger of all runs: it is asked before a reservation becomes a record, and told after a charge
//! has become one (docs/ENGINE.md §8.5). It keeps nothing itself; a crash in between is settled at the next start.

use crate::domain::budget::Limit;
use crate::domain::budget::Reservation;
use crate::domain::budget::ReservationId;
use crate::domain::daily::Refused;
use crate::domain::daily::Today;
use crate::domain::daily::What;
use crate::domain::event::Event;
use crate::domain::event::Record;
use crate::domain::money::MicroUsd;
use crate::domain::run::Run;
use crate::domain::status::Lack;
use crate::domain::status::ParkReason;
use crate::domain::time::Timestamp;
use crate::policy::spending;
use crate::store::StoreError;
use crate::store::ledger::Ledger;

/// The ledger, for a run whose model costs real money.
pub struct Purse(Option<Ledger>);

impl Purse {
    /// The way to this ledger; nothing for a run that spends nothing real.
    pub fn new(ledger: Option<Ledger>) -> Self {
        Purse(ledger)
    }

    /// Sets aside in the ledger what these records reserve. Gives what stands against it.
    pub async fn reserve(&self, run: &Run, records: &[Record], now: Timestamp) -> Option<Lack> {
        let held: Option<Reservation> = records.iter().find_map(|record| match &record.event {
            Event::BudgetReserved { reservation } => Some(*reservation),
            _ => None,
        });
        let held = held.filter(|_| !run.is_free())?;
        let run = run.id.clone();
        let answer = self.ask(move |ledger| ledger.reserve(&run, held.id, held.amount, now)).await?;
        self.lack(answer, held.amount)
    }

    /// What stands against the next model call of a run. Sets nothing aside.
    pub async fn look(&self, run: &Run, now: Timestamp) -> Option<Lack> {
        if run.is_free() {
            return None;
        }
        let worst = spending::worst_case(run, &spending::due(run));
        let answer = self.ask(move |ledger| ledger.admits(worst.amount, now)).await?;
        self.lack(answer, worst.amount)
    }

    /// Tells the ledger what these records, which are durable, settle.
    pub async fn settle(&self, run: &Run, records: &[Record], now: Timestamp) {
        let ends: Vec<(ReservationId, What)> = records
            .iter()
            .filter_map(|record| match &record.event {
                Event::BudgetSettled { id, charge } => Some((*id, What::Charged(charge.amount))),
                Event::BudgetCorrected { id, amount, .. } => Some((*id, What::Corrected(*amount))),
                _ => None,
            })
            .collect();
        if ends.is_empty() || run.is_free() {
            return;
        }
        let run = run.id.clone();
        // What could not be told counts at its worst case until the run is taken again.
        if let Some(Err(error)) = self.ask(move |ledger| ledger.settle(&run, &ends, now)).await {
            tracing::warn!(%error, "a charge could not be told to the ledger; its reservation counts until the run is resumed");
        }
    }

    /// What all runs together spent; nothing for a run that spends nothing real, or where the ledger can't be read.
    pub async fn today(&self, run: &Run, now: Timestamp) -> Option<Today> {
        if run.is_free() {
            return None;
        }
        let answer = self.ask(move |ledger| Ok(Today { spent: ledger.spent(now)?, limit: ledger.limit() })).await?;
        answer.inspect_err(|error| tracing::warn!(%error, "what all runs spent can't be told")).ok()
    }

    /// Settles what a process that died left open in the ledger: as the journal has it, or as never made. Gives why it
    /// could not, as a sentence without its end: until it can, that counts as it did.
    pub async fn settle_lost(&self, run: &Run, now: Timestamp) -> Option<String> {
        if run.is_free() {
            return None;
        }
        let run = run.clone();
        let settled = self.ask(move |ledger| {
            let fate = |id: ReservationId| match (run.pool.counted(id), run.pool.reserved()) {
                (Some(amount), _) => Some(What::Charged(amount)),
                (None, Some(held)) if held.id == id => None,
                (None, _) => Some(What::Released(MicroUsd(0))),
            };
            ledger.settle_lost(&run.id, fate, now)
        });
        let error = settled.await?.err()?;
        tracing::warn!(%error, "what was left open in the ledger could not be settled");
        Some(format!("the ledger of all runs does not know yet what this run cost: {error}"))
    }

    /// Asks the ledger where waiting for its lock holds up nobody.
    async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Ledger) -> Result<T, StoreError> + Send + 'static,
    ) -> Option<Result<T, StoreError>> {
        let ledger = self.0.clone()?;
        let answer = tokio::task::spawn_blocking(move || question(&ledger)).await;
        let broke = |_| StoreError::Disk { doing: "asking the ledger".to_string(), why: "it broke down".to_string() };
        Some(answer.unwrap_or_else(|error| Err(broke(error))))
    }

    fn lack(&self, answer: Result<Result<(), Refused>, StoreError>, amount: MicroUsd) -> Option<Lack> {
        match answer {
            Ok(Ok(())) => None,
            Ok(Err(Refused { left, until })) => {
                let limit = match self.0.as_ref().map(Ledger::limit) {
                    Some(Limit::At(most)) => MicroUsd(most).to_string(),
                    Some(Limit::Unlimited) | None => "no limit".to_string(),
                };
                let sentence = format!(
                    "all runs together have {left} left of {limit} in 24 hours, and the next model call may cost \
                     {amount}; wait, or raise budget.daily in tiller.toml"
                );
                Some(Lack { reason: ParkReason::DailyBudget { left, until }, sentence })
            }
            // Money that can't be counted is not spent.
            Err(error) => Some(Lack { reason: ParkReason::Storage, sentence: error.to_string() }),
        }
    }
}
