//! How the upper floors hold a run: submit a command, watch the head, read records, hear deltas.

use std::sync::Arc;

use tokio::sync::broadcast;
use tokio::sync::mpsc;
use tokio::sync::oneshot;
use tokio::sync::watch;

use crate::domain::command::Command;
use crate::domain::command::Refusal;
use crate::domain::daily::Today;
use crate::domain::id::ClientId;
use crate::domain::id::Seq;
use crate::domain::model::Delta;
use crate::domain::run::Run;
use crate::store::Reader;

/// A command on its way to the driver, and where its answer goes.
pub struct Asked {
    /// The command.
    pub command: Command,
    /// Who sent it.
    pub client: ClientId,
    /// Where the answer goes.
    pub answer: oneshot::Sender<Result<Seq, Refusal>>,
}

/// A hold on a run in this process. Any number may exist.
#[derive(Clone)]
pub struct Handle {
    pub(crate) inbox: mpsc::Sender<Asked>,
    pub(crate) head: watch::Receiver<Seq>,
    pub(crate) run: watch::Receiver<Run>,
    pub(crate) today: watch::Receiver<Option<Today>>,
    pub(crate) deltas: broadcast::Sender<Delta>,
    pub(crate) reader: Arc<dyn Reader>,
    pub(crate) halted: Arc<std::sync::OnceLock<String>>,
}

impl Handle {
    /// Sends a command and waits until it is durable, or refused: by the run, or because its engine has stopped.
    pub async fn submit(&self, command: Command, client: ClientId) -> Result<Seq, Refusal> {
        let (answer, wait) = oneshot::channel();
        let gone = || self.halted().map_or(Refusal::Unanswered, Refusal::Stopped);
        self.inbox.send(Asked { command, client, answer }).await.map_err(|_| gone())?;
        wait.await.map_err(|_| gone())?
    }

    /// The newest durable record, as it moves.
    pub fn head(&self) -> watch::Receiver<Seq> {
        self.head.clone()
    }

    /// The run as its newest durable record left it, as it moves.
    pub fn run(&self) -> watch::Receiver<Run> {
        self.run.clone()
    }

    /// What all runs together spent, as far as this run has asked.
    pub fn today(&self) -> watch::Receiver<Option<Today>> {
        self.today.clone()
    }

    /// Streamed text from now on.
    pub fn deltas(&self) -> broadcast::Receiver<Delta> {
        self.deltas.subscribe()
    }

    /// A reader of the journal.
    pub fn reader(&self) -> Arc<dyn Reader> {
        self.reader.clone()
    }

    /// Why the engine stopped, if it was not by request.
    pub fn halted(&self) -> Option<String> {
        self.halted.get().cloned()
    }
}
