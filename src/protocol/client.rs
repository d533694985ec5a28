//! A room's hold on a run in this process: commands in, updates out.
//!
//! Records are pulled from the journal by sequence number, so none can be lost; deltas are pushed and may be.

use std::sync::Arc;

use tokio::sync::broadcast;
use tokio::sync::watch;

use crate::domain::command::Command;
use crate::domain::command::Refusal;
use crate::domain::daily::Today;
use crate::domain::event::Record;
use crate::domain::id::ClientId;
use crate::domain::id::Seq;
use crate::domain::limits;
use crate::domain::message::Entry;
use crate::domain::model::Delta;
use crate::domain::model::DeltaSource;
use crate::domain::outline::Outline;
use crate::engine::handle::Handle;
use crate::store::Reader;
use crate::store::StoreError;
use crate::store::recall;

/// What a room receives.
#[derive(Debug)]
pub enum Update {
    /// Records that follow those received before.
    Records(Vec<Record>),
    /// A scrap of streamed text.
    Delta(Delta),
    /// What all runs together spent.
    Today(Today),
    /// So many deltas were lost; their text comes with its record.
    Lost(u64),
    /// The engine of the run has stopped; nothing more comes. The text says why, if it was not by request.
    Closed(Option<String>),
}

/// A room's hold on a run.
pub struct Client {
    id: ClientId,
    handle: Handle,
    seen: Seq,
    head: watch::Receiver<Seq>,
    today: watch::Receiver<Option<Today>>,
    deltas: broadcast::Receiver<Delta>,
    reader: Arc<dyn Reader>,
}

impl Client {
    /// Holds a run from the record after `seen` on.
    pub fn new(id: ClientId, handle: Handle, seen: Seq) -> Client {
        Client {
            id,
            seen,
            head: handle.head(),
            today: handle.today(),
            deltas: handle.deltas(),
            reader: handle.reader(),
            handle,
        }
    }

    /// The same hold, from the record after `seen` on.
    pub fn from(self, seen: Seq) -> Client {
        Client { seen, ..self }
    }

    /// Sends a command. The answer comes after it is durable; a refusal changes nothing.
    pub async fn submit(&self, command: Command) -> Result<Seq, Refusal> {
        self.handle.submit(command, self.id.clone()).await
    }

    /// A sender that can be moved into a task of its own, so that a screen never waits for an answer.
    pub fn sender(&self) -> Sender {
        Sender { id: self.id.clone(), handle: self.handle.clone() }
    }

    /// Whether there are records that this client was not given yet.
    pub fn is_behind(&self) -> bool {
        self.seen < *self.head.borrow()
    }

    /// The next update. Records come before deltas. May be dropped and called again.
    pub async fn next(&mut self) -> Update {
        loop {
            if self.seen < *self.head.borrow_and_update() {
                return self.pull().await.unwrap_or_else(|error| Update::Closed(Some(error.to_string())));
            }
            tokio::select! {
                biased;
                changed = self.head.changed() => {
                    if changed.is_err() && self.seen >= *self.head.borrow() {
                        return Update::Closed(self.handle.halted());
                    }
                }
                Ok(()) = self.today.changed() => {
                    if let Some(today) = *self.today.borrow_and_update() {
                        return Update::Today(today);
                    }
                }
                delta = self.deltas.recv() => match delta {
                    Ok(Delta { source: DeltaSource::Lost(lost), .. }) => return Update::Lost(lost),
                    Ok(delta) => return Update::Delta(delta),
                    Err(broadcast::error::RecvError::Lagged(lost)) => return Update::Lost(lost),
                    Err(broadcast::error::RecvError::Closed) => {
                        // The engine drops both ends together; the head says when all records are out.
                        if self.head.changed().await.is_err() && self.seen >= *self.head.borrow() {
                            return Update::Closed(self.handle.halted());
                        }
                    }
                },
            }
        }
    }

    async fn pull(&mut self) -> Result<Update, StoreError> {
        let records = self.reader.read(self.seen.next(), limits::RECORDS_PER_UPDATE).await?;
        if let Some(last) = records.last() {
            self.seen = last.seq;
        }
        Ok(Update::Records(records))
    }
}

/// Sends commands of one client.
#[derive(Clone)]
pub struct Sender {
    id: ClientId,
    handle: Handle,
}

impl Sender {
    /// Sends a command. The answer comes after it is durable; a refusal changes nothing.
    pub async fn submit(&self, command: Command) -> Result<Seq, Refusal> {
        self.handle.submit(command, self.id.clone()).await
    }

    /// Entries that were put away, with all their texts. Errors, as the end of a sentence, when one can't be read.
    pub async fn recall(&self, outlines: &[Outline]) -> Result<Vec<Arc<Entry>>, String> {
        recall::whole(self.handle.reader().as_ref(), outlines).await
    }
}
