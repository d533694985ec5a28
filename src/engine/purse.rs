//! The run's way to the ledger of all runs: it is asked before a reservation becomes a record, and told after a charge
//! has become one (docs/ENGINE.md §8.5). It keeps nothing itself; a crash in between is settled at the next start.

use crate::domain::budget::Limit;
use crate::domain::daily::Hold;
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
    pub async fn reserve(&self, run: &Run, records: &[Record]) -> Option<Lack> {
        let (hold, amount) = held(records).filter(|_| !run.is_free())?;
        let run = run.id.clone();
        let answer = self.ask(move |ledger| ledger.hold(&run, hold, amount)).await?;
        self.lack(answer, amount)
    }

    /// Tells the ledger, before the call is made, that what these records reserve is durable: from here on it may cost,
    /// even if the journal is put back to a moment before it. Gives why it can't, as a sentence without its end: then the
    /// call must not be made, because what it costs could count nowhere.
    pub async fn begin(&self, run: &Run, records: &[Record], now: Timestamp) -> Option<String> {
        let (hold, _) = held(records).filter(|_| !run.is_free())?;
        let run = run.id.clone();
        match self.ask(move |ledger| ledger.begin(&run, hold, now)).await? {
            Ok(true) => None,
            Ok(false) => Some("the ledger of all runs does not know its reservation any more".to_string()),
            Err(error) => Some(error.to_string()),
        }
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
        let end = |record: &Record| {
            let (id, what) = match &record.event {
                Event::BudgetSettled { id, charge } => (*id, What::Charged(charge.amount)),
                Event::BudgetCorrected { id, amount, .. } => (*id, What::Corrected(*amount)),
                _ => return None,
            };
            Some((Hold { id, at: run.pool.made(id)? }, what))
        };
        self.note(run, records.iter().filter_map(end).collect(), now).await;
    }

    async fn note(&self, run: &Run, ends: Vec<(Hold, What)>, now: Timestamp) {
        if ends.is_empty() || run.is_free() {
            return;
        }
        let run = run.id.clone();
        // What could not be told counts at its worst case until the run is taken again.
        if let Some(Err(error)) = self.ask(move |ledger| ledger.note(&run, &ends, now)).await {
            tracing::warn!(%error, "the ledger could not be told; what is reserved counts until the run is resumed");
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

    /// Settles what a process that died left open in the ledger: as the journal has it; at its worst if the journal does
    /// not know of a call that had begun; and as never made otherwise. Gives why it could not, as a sentence without its
    /// end: until it can, that counts as it did.
    pub async fn settle_lost(&self, run: &Run, now: Timestamp) -> Option<String> {
        if run.is_free() {
            return None;
        }
        let run = run.clone();
        let settled = self.ask(move |ledger| ledger.settle_lost(&run.id, |hold| run.pool.known(hold.id, hold.at), now));
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
                    "all runs together have {} left of {limit} in 24 hours, and the next model call may cost up to {}; \
                     wait, or raise budget.daily in tiller.toml",
                    left.exact(),
                    amount.exact()
                );
                Some(Lack { reason: ParkReason::DailyBudget { left, until }, sentence })
            }
            // Money that can't be counted is not spent.
            Err(error) => Some(Lack { reason: ParkReason::Storage, sentence: error.to_string() }),
        }
    }
}

/// What these records set aside.
fn held(records: &[Record]) -> Option<(Hold, MicroUsd)> {
    records.iter().find_map(|record| match &record.event {
        Event::BudgetReserved { reservation } => Some((Hold { id: reservation.id, at: record.at }, reservation.amount)),
        _ => None,
    })
}
