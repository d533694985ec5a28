//! A journal in memory, with the contract of the one on disk. For tests and rehearsals of what is above the store.
//!
//! It encodes every record as the disk would, so a record that the disk would refuse is refused here too. It must not
//! do input or output.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

use async_trait::async_trait;

use crate::domain::event::Record;
use crate::domain::id::Seq;
use crate::store::Journal;
use crate::store::Reader;
use crate::store::StoreError;
use crate::store::codec;
use crate::store::codec::Mark;

/// A journal in memory.
#[derive(Debug)]
pub struct MemoryJournal {
    shelf: Arc<Shelf>,
    head: Mark,
    appends: u64,
    failing: Vec<u64>,
}

/// What a journal in memory shares with its readers.
#[derive(Debug, Default)]
struct Shelf {
    records: Mutex<Vec<Record>>,
}

impl Shelf {
    fn records(&self) -> MutexGuard<'_, Vec<Record>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MemoryJournal {
    /// A journal that holds these records. Errors when they are not dense from 1.
    pub fn new(records: &[Record]) -> Result<MemoryJournal, StoreError> {
        let mut journal = MemoryJournal { shelf: Arc::default(), head: Mark::START, appends: 0, failing: Vec::new() };
        journal.take(records)?;
        Ok(journal)
    }

    /// Lets the n-th append from now on fail, as a full disk would; the first is 1. May be called several times.
    pub fn fail_append(&mut self, n: u64) {
        self.failing.push(self.appends.saturating_add(n));
    }

    fn take(&mut self, records: &[Record]) -> Result<(), StoreError> {
        let batch = codec::encode_batch(records, self.head)?;
        if let Some(last) = batch.last() {
            self.head = last.mark;
            self.shelf.records().extend_from_slice(records);
        }
        Ok(())
    }
}

#[async_trait]
impl Journal for MemoryJournal {
    async fn append(&mut self, records: Vec<Record>) -> Result<(), StoreError> {
        self.appends = self.appends.saturating_add(1);
        if self.failing.contains(&self.appends) {
            let (doing, why) = ("writing to the journal in memory".to_string(), "it was told to fail".to_string());
            return Err(StoreError::Disk { doing, why });
        }
        self.take(&records)
    }

    fn reader(&self) -> Arc<dyn Reader> {
        self.shelf.clone()
    }
}

#[async_trait]
impl Reader for Shelf {
    async fn read(&self, from: Seq, most: usize) -> Result<Vec<Record>, StoreError> {
        let skipped = usize::try_from(from.0.saturating_sub(1)).unwrap_or(usize::MAX);
        Ok(self.records().iter().skip(skipped).take(most).cloned().collect())
    }
}
