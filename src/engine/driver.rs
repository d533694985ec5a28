//! The only async loop: one task per run, one input at a time. Append, adopt, publish, start; in that order.

use std::sync::Arc;
use std::sync::OnceLock;
use std::time::Duration;

use tokio::sync::broadcast;
use tokio::sync::mpsc;
use tokio::sync::oneshot;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::domain::budget::Axis;
use crate::domain::command::Command;
use crate::domain::command::Refusal;
use crate::domain::event::Owner;
use crate::domain::event::Record;
use crate::domain::id::ClientId;
use crate::domain::id::Seq;
use crate::domain::limits;
use crate::domain::run::Run;
use crate::domain::status::Lack;
use crate::domain::status::Status;
use crate::domain::summary::Summary;
use crate::domain::time::Now;
use crate::domain::time::Span;
use crate::domain::time::Timestamp;
use crate::engine::clock::Clock;
use crate::engine::fault;
use crate::engine::fault::Side;
use crate::engine::handle::Asked;
use crate::engine::handle::Handle;
use crate::engine::tasks::Tasks;
use crate::machine::Input;
use crate::machine::turn;
use crate::model::Model;
use crate::store::Journal;
use crate::store::StoreError;
use crate::tools::Toolbox;

/// What a run is driven with.
pub struct World {
    /// The model.
    pub model: Arc<dyn Model>,
    /// The tools.
    pub tools: Toolbox,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// What stands against starting or going on, first things first. Asked at the start and at every resume.
    pub preflight: Box<dyn FnMut(&Run) -> Vec<Lack> + Send>,
    /// Told of every change of the run worth a line in a list. Must not block for long.
    pub on_change: Box<dyn FnMut(&Summary) + Send>,
}

/// A run that is being driven.
pub struct Driven<J> {
    /// A hold on it. When the last one is dropped, the driver stops.
    pub handle: Handle,
    /// The driver. Ends when the last hold is dropped and what was under way has ended; gives back the journal.
    pub task: JoinHandle<J>,
}

/// Takes a run and starts to drive it.
pub fn start<J: Journal>(run: Run, journal: J, mut world: World, owner: Owner) -> Driven<J> {
    let (inbox, asked) = mpsc::channel(limits::INBOX);
    let (head_sender, head) = watch::channel(run.seq);
    let (deltas, _) = broadcast::channel(limits::DELTAS);
    let halted = Arc::new(OnceLock::new());
    let handle = Handle { inbox, head, deltas: deltas.clone(), reader: journal.reader(), halted: halted.clone() };
    let problems = (world.preflight)(&run);
    let driver = Driver {
        active: ActiveTime { base: Span(run.pool.used(Axis::Active)), since: None },
        tasks: Tasks::new(world.model, world.tools, deltas),
        run,
        journal,
        clock: world.clock,
        preflight: world.preflight,
        on_change: world.on_change,
        head: head_sender,
    };
    let task = tokio::spawn(async move {
        let (journal, result) = driver.drive(asked, Input::Recovered { owner, problems }).await;
        if let Err(why) = result {
            tracing::error!(%why, "the engine stopped");
            let _ = halted.set(why);
        }
        journal
    });
    Driven { handle, task }
}

struct Driver<J> {
    run: Run,
    journal: J,
    tasks: Tasks,
    clock: Arc<dyn Clock>,
    preflight: Box<dyn FnMut(&Run) -> Vec<Lack> + Send>,
    on_change: Box<dyn FnMut(&Summary) + Send>,
    head: watch::Sender<Seq>,
    active: ActiveTime,
}

type Answer = oneshot::Sender<Result<Seq, Refusal>>;

impl<J: Journal> Driver<J> {
    /// Turns until the last hold is dropped. The error says why it stopped before.
    async fn drive(mut self, mut inbox: mpsc::Receiver<Asked>, first: Input) -> (J, Result<(), String>) {
        let mut result = self.take(first, None).await;
        while result.is_ok() {
            let (input, answer) = tokio::select! {
                biased;
                asked = inbox.recv() => match asked {
                    Some(Asked { command, client, answer }) => (Input::Command(command, client), Some(answer)),
                    None => {
                        result = self.part().await;
                        break;
                    }
                },
                outcome = self.tasks.next() => (Input::Outcome(outcome), None),
                () = wait_until(&self.clock, self.run.deadline()) => (Input::Tick, None),
            };
            result = self.take(input, answer).await;
        }
        self.tasks.stop(limits::LEAVE_PATIENCE).await;
        (self.journal, result)
    }

    /// Nobody holds the run any more: it is left, and what is under way is ended and recorded, but not for ever.
    async fn part(&mut self) -> Result<(), String> {
        self.take(Input::Command(Command::Leave, ClientId("tiller".to_string())), None).await?;
        let patience = Duration::from_millis(limits::LEAVE_PATIENCE.0);
        let ended = async {
            while self.run.is_busy() {
                let outcome = self.tasks.next().await;
                self.take(Input::Outcome(outcome), None).await?;
            }
            Ok(())
        };
        // What did not end in time has an unknown outcome, as after a crash.
        tokio::time::timeout(patience, ended).await.unwrap_or(Ok(()))
    }

    /// What an input comes to here: a run that is to go on without what it needs does not (docs/ENGINE.md §14.2).
    fn looked_at(&mut self, input: Input) -> Input {
        let by = match &input {
            Input::Command(Command::Resume, client) => Some(client.clone()),
            Input::Tick => None,
            Input::Command(..) | Input::Recovered { .. } | Input::Unready { .. } | Input::Outcome(_) => return input,
        };
        if !matches!(self.run.status, Status::Parked(_)) {
            return input;
        }
        let lacks = (self.preflight)(&self.run);
        if lacks.is_empty() { input } else { Input::Unready { lacks, by } }
    }

    /// One input. The error stops the run in memory; on disk it stays as it was.
    async fn take(&mut self, input: Input, answer: Option<Answer>) -> Result<(), String> {
        let input = self.looked_at(input);
        let now = Now { at: self.clock.now(), active: self.active.at(self.clock.mono()) };
        let turned = match turn(&self.run, &input, now) {
            Ok(turned) => turned,
            Err(refusal) => {
                let halts = matches!(refusal, Refusal::Broken(_)).then(|| refusal.to_string());
                reply(answer, Err(refusal));
                return halts.map_or(Ok(()), Err);
            }
        };
        if let Err(error) = self.append(&turned.records).await {
            let why = error.to_string();
            reply(answer, Err(Refusal::Storage(why.clone())));
            return Err(why);
        }
        for record in &turned.records {
            // Only what kind of thing happened: texts and arguments are in the journal, not in the log.
            tracing::debug!(run = %turned.run.id, seq = record.seq.0, event = record.event.name(), "recorded");
        }
        if turned.run.status != self.run.status {
            tracing::info!(run = %turned.run.id, status = turned.run.status.phrase(), "the status changed");
        }
        let changed = turned.run.status != self.run.status || turned.run.iteration.n != self.run.iteration.n;
        self.run = turned.run;
        self.active.turn(now.active, self.clock.mono(), self.run.is_running());
        self.head.send_replace(self.run.seq);
        reply(answer, Ok(self.run.seq));
        for effect in turned.effects {
            self.tasks.start(effect);
        }
        if changed {
            (self.on_change)(&Summary::of(&self.run));
        }
        Ok(())
    }

    /// Makes the records durable. A failing disk is tried again for a moment.
    async fn append(&mut self, records: &[Record]) -> Result<(), StoreError> {
        if records.is_empty() {
            return Ok(());
        }
        let mut failures = 0;
        loop {
            fault::batch(Side::Before, records);
            match self.journal.append(records.to_vec()).await {
                Ok(()) => {
                    fault::batch(Side::After, records);
                    return Ok(());
                }
                Err(error) => {
                    failures += 1;
                    tracing::warn!(%error, failures, "the journal could not be written");
                    if failures >= limits::STORE_RETRIES {
                        return Err(error);
                    }
                    tokio::time::sleep(Duration::from_millis(limits::STORE_RETRY_WAIT.0)).await;
                }
            }
        }
    }
}

fn reply(answer: Option<Answer>, with: Result<Seq, Refusal>) {
    if let Some(answer) = answer {
        // The asker may have gone; the journal knows the answer.
        let _ = answer.send(with);
    }
}

async fn wait_until(clock: &Arc<dyn Clock>, deadline: Option<Timestamp>) {
    match deadline {
        Some(at) => clock.sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// How long the run has been running in all, by the monotonic clock of this process.
struct ActiveTime {
    base: Span,
    since: Option<Span>,
}

impl ActiveTime {
    fn at(&self, mono: Span) -> Span {
        self.since.map_or(self.base, |since| self.base.plus(Span(mono.0.saturating_sub(since.0))))
    }

    fn turn(&mut self, active: Span, mono: Span, is_running: bool) {
        self.base = active;
        self.since = is_running.then_some(mono);
    }
}
