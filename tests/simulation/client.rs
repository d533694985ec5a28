//! A client of a life: it is shown what is durable, goes away and comes back, and must see the run that lives.

use tiller::domain::event::Record;
use tiller::domain::run::Run;

use crate::chance::Chance;

pub struct Client {
    /// The run as it sees it.
    replica: Run,
    is_attached: bool,
    /// Its own, so that a life is the same whether somebody looks or not.
    chance: Chance,
    /// Sabotage: it is not told what it missed.
    misses: bool,
}

impl Client {
    pub fn new(replica: Run, seed: u64, misses: bool) -> Client {
        Client { replica, is_attached: true, chance: Chance::new(seed ^ 0xC11E47), misses }
    }

    /// Is shown records, if it is there.
    pub fn hear(&mut self, records: &[Record]) -> Result<(), String> {
        let heard: &[Record] = if self.is_attached { records } else { &[] };
        for record in heard {
            self.replica.apply(record).map_err(|broken| format!("a client can't go on: {broken}"))?;
        }
        Ok(())
    }

    /// Goes away, or comes back and reads on from where it was; by chance.
    pub fn come_or_go(&mut self, journal: &[Record]) -> Result<(), String> {
        if !self.chance.percent(15) {
            return Ok(());
        }
        self.is_attached = !self.is_attached;
        let missed = journal.get(self.seen()..).unwrap_or_default();
        if self.misses { Ok(()) } else { self.hear(missed) }
    }

    /// The process that it was attached to is gone. What it saw stays seen.
    pub fn lose(&mut self) {
        self.is_attached = false;
    }

    /// Forgets what it saw.
    pub fn begin_anew(&mut self, run: &Run) {
        self.replica = run.clone();
    }

    /// What it was shown is in the journal; while it is attached it sees all of it, and the same run.
    pub fn compare(&self, journal: &[Record], run: &Run) -> Result<(), String> {
        if self.seen() > journal.len() {
            return Err(format!("a client was shown record {}, and the journal has {}", self.seen(), journal.len()));
        }
        if self.is_attached && self.replica != *run {
            return Err(format!("a client sees another run than the one that lives, at {}", run.seq));
        }
        Ok(())
    }

    fn seen(&self) -> usize {
        usize::try_from(self.replica.seq.0).unwrap()
    }
}
