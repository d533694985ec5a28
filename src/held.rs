//! The roof: a run that this process takes only to record something in it. What goes wrong after a record is durable is
//! told apart and made up for when the run is next taken; it must not be told as if nothing was recorded.

use crate::domain::event::Record;
use crate::domain::id::ClientId;
use crate::domain::run::Run;
use crate::engine::durable;
use crate::engine::purse::Purse;
use crate::headless::output;
use crate::launch::Ground;
use crate::store::Journal;
use crate::store::ledger::Ledger;
use crate::store::sled::SledJournal;

/// The command line, as the one who asks.
pub fn client() -> ClientId {
    ClientId("command line".to_string())
}

/// A run that nobody drives, and its journal.
pub struct Held<'a> {
    ground: &'a Ground,
    run: Run,
    journal: SledJournal,
}

impl<'a> Held<'a> {
    /// Takes a run that was opened.
    pub fn new(ground: &'a Ground, run: Run, journal: SledJournal) -> Held<'a> {
        Held { ground, run, journal }
    }

    /// The run as its records say.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// Makes records durable, which lead to `run`. Errors as `durable::append`.
    pub async fn record(&mut self, run: Run, records: Vec<Record>) -> anyhow::Result<()> {
        durable::append(&mut self.journal, &records).await?;
        self.run = run;
        if self.journal.is_snapshot_due() {
            self.journal.keep(self.run.clone()).await;
        }
        Ok(())
    }

    /// Lets the run go: the ledger learns what it does not know yet, the list shows the run as it is now.
    pub async fn let_go(self) -> Run {
        let Held { ground, run, journal } = self;
        let purse = Purse::new(Some(Ledger::new(ground.places.state.clone(), ground.settings.daily())));
        if let Some(why) = purse.settle_lost(&run, ground.clock.now()).await {
            output::put_aside(&format!("tiller: {why}; the same command again makes up for it\n"));
        }
        ground.home.keep_summary(&run);
        journal.close().await;
        run
    }
}
