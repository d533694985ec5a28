//! The journal on disk: a thread of its own for each open run, and the handles that reach it.
//!
//! sled blocks, so nothing here calls it on a thread of the async runtime. Requests go in over a bounded channel, each
//! answer comes back over a channel of its own. The thread ends, and the run's lock with it, when the `SledJournal` is
//! dropped; readers that live longer are told that the journal is closed. It must not know trees or files.

use std::sync::Arc;
use std::thread;

use async_trait::async_trait;
use tokio::sync::mpsc;
use tokio::sync::oneshot;

use crate::domain::event::Record;
use crate::domain::id::RunId;
use crate::domain::id::Seq;
use crate::domain::limits;
use crate::domain::run::Run;
use crate::store::Journal;
use crate::store::Reader;
use crate::store::StoreError;
use crate::store::trees::Site;
use crate::store::trees::Trees;

/// The name of the threads on which stores are opened, read and written. A panic on a thread of this name, or on one of
/// sled's own, comes from damaged files and is caught.
pub const THREAD: &str = "tiller-store";

/// The journal of one run on disk. Dropping it lets the run go within moments.
#[derive(Debug)]
pub struct SledJournal {
    run: RunId,
    requests: mpsc::Sender<Request>,
    is_snapshot_due: bool,
    ended: oneshot::Receiver<()>,
}

/// Reads a journal as long as its owner keeps it open.
struct SledReader {
    run: RunId,
    requests: mpsc::WeakSender<Request>,
}

enum Request {
    /// The answer says whether a snapshot is due.
    Append {
        records: Vec<Record>,
        answer: oneshot::Sender<Result<bool, StoreError>>,
    },
    Keep {
        run: Box<Run>,
    },
    Read {
        from: Seq,
        most: usize,
        answer: oneshot::Sender<Result<Vec<Record>, StoreError>>,
    },
    Syncs {
        answer: oneshot::Sender<u64>,
    },
}

impl SledJournal {
    /// Makes a run with its first records, and opens it.
    pub(crate) async fn create(site: Site, records: Vec<Record>) -> Result<SledJournal, StoreError> {
        let open = move |site: Site| {
            Trees::create(&site, &records)?;
            Trees::open(site, limits::LOCK_PATIENCE)
        };
        Ok(start(site, open).await?.0)
    }

    /// Opens a run, and reads its whole journal.
    pub(crate) async fn open(site: Site) -> Result<(SledJournal, Vec<Record>), StoreError> {
        start(site, |site| Trees::open(site, limits::LOCK_PATIENCE)).await
    }

    /// Opens a run and folds it, from its newest good snapshot on where there is one.
    pub(crate) async fn resume(site: Site) -> Result<(SledJournal, Run), StoreError> {
        start(site, |site| Trees::resume(site, limits::LOCK_PATIENCE)).await
    }

    /// Lets the run go, and returns when its lock is free: for handing it to another process.
    pub async fn close(self) {
        let SledJournal { run: _, requests, is_snapshot_due: _, ended } = self;
        drop(requests);
        // The sender is dropped without a word when the thread ends.
        let _ = ended.await;
    }

    /// How often the store's file was synced since it was opened: at least once for each append that returned.
    pub async fn syncs(&self) -> Result<u64, StoreError> {
        let (answer, wait) = oneshot::channel();
        ask(&self.run, &self.requests, Request::Syncs { answer }, wait).await
    }
}

#[async_trait]
impl Journal for SledJournal {
    async fn append(&mut self, records: Vec<Record>) -> Result<(), StoreError> {
        let (answer, wait) = oneshot::channel();
        self.is_snapshot_due = ask(&self.run, &self.requests, Request::Append { records, answer }, wait).await??;
        Ok(())
    }

    fn is_snapshot_due(&self) -> bool {
        self.is_snapshot_due
    }

    async fn keep(&mut self, run: Run) {
        self.is_snapshot_due = false;
        // A store that is gone says so when something is appended.
        let _ = self.requests.send(Request::Keep { run: Box::new(run) }).await;
    }

    fn reader(&self) -> Arc<dyn Reader> {
        Arc::new(SledReader { run: self.run.clone(), requests: self.requests.downgrade() })
    }
}

#[async_trait]
impl Reader for SledReader {
    async fn read(&self, from: Seq, most: usize) -> Result<Vec<Record>, StoreError> {
        let Some(requests) = self.requests.upgrade() else { return Err(StoreError::Closed(self.run.clone())) };
        let (answer, wait) = oneshot::channel();
        ask(&self.run, &requests, Request::Read { from, most, answer }, wait).await?
    }
}

/// Runs blocking work of the store on a thread of its own, and waits for it: for a caller that may block.
pub(crate) fn on_store_thread<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    thread::scope(|scope| {
        let builder = thread::Builder::new().name(THREAD.to_string());
        builder.spawn_scoped(scope, work).ok()?.join().ok()
    })
}

async fn start<T: Send + 'static>(
    site: Site,
    open: impl FnOnce(Site) -> Result<(Trees, T), StoreError> + Send + 'static,
) -> Result<(SledJournal, T), StoreError> {
    let run = site.run.clone();
    let (requests, inbox) = mpsc::channel(limits::STORE_REQUESTS);
    let (ready, opened) = oneshot::channel();
    let (end, ended) = oneshot::channel::<()>();
    let work = move || {
        // Dropped last, when the database is closed.
        let _end = end;
        match open(site) {
            Ok((trees, found)) => {
                if ready.send(Ok(found)).is_ok() {
                    serve(trees, inbox);
                }
            }
            Err(error) => {
                // Nobody waits any more: then nobody needs to know.
                let _ = ready.send(Err(error));
            }
        }
    };
    let spawned = thread::Builder::new().name(THREAD.to_string()).spawn(work);
    if let Err(error) = spawned {
        return Err(StoreError::Disk { doing: format!("starting the thread of run {run}"), why: error.to_string() });
    }
    let found = opened.await.map_err(|_| StoreError::Closed(run.clone()))??;
    Ok((SledJournal { run, requests, is_snapshot_due: false, ended }, found))
}

fn serve(mut trees: Trees, mut inbox: mpsc::Receiver<Request>) {
    while let Some(request) = inbox.blocking_recv() {
        // An answer that nobody waits for any more is dropped; the work was done all the same.
        match request {
            Request::Append { records, answer } => {
                let appended = trees.append(&records).map(|()| trees.is_snapshot_due());
                drop(answer.send(appended));
                trees.make_room();
            }
            Request::Keep { run } => trees.keep(&run),
            Request::Read { from, most, answer } => drop(answer.send(trees.read(from, most))),
            Request::Syncs { answer } => drop(answer.send(trees.syncs())),
        }
    }
}

async fn ask<T>(
    run: &RunId,
    requests: &mpsc::Sender<Request>,
    request: Request,
    wait: oneshot::Receiver<T>,
) -> Result<T, StoreError> {
    let closed = || StoreError::Closed(run.clone());
    requests.send(request).await.map_err(|_| closed())?;
    wait.await.map_err(|_| closed())
}
