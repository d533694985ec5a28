//! The only async loop: one task per run, one input at a time. Append, adopt, publish, start; in that order.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::OnceLock;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::broadcast;
use tokio::sync::mpsc;
use tokio::sync::oneshot;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::domain::approval::Decision;
use crate::domain::budget::Axis;
use crate::domain::budget::Limit;
use crate::domain::command::Command;
use crate::domain::command::Refusal;
use crate::domain::daily::Today;
use crate::domain::event::Event;
use crate::domain::event::Owner;
use crate::domain::id::ClientId;
use crate::domain::id::Seq;
use crate::domain::limits;
use crate::domain::run::Run;
use crate::domain::status::Lack;
use crate::domain::status::ParkReason;
use crate::domain::status::Status;
use crate::domain::summary::Summary;
use crate::domain::time::Now;
use crate::domain::time::Span;
use crate::domain::time::Timestamp;
use crate::engine::clock::Clock;
use crate::engine::durable;
use crate::engine::handle::Asked;
use crate::engine::handle::Handle;
use crate::engine::purse::Purse;
use crate::engine::redaction::Redactor;
use crate::engine::rulebook::Consulted;
use crate::engine::rulebook::Rulebook;
use crate::engine::tasks::Tasks;
use crate::machine::Above;
use crate::machine::Input;
use crate::machine::Turn;
use crate::machine::effect::Effect;
use crate::machine::turn_below;
use crate::model::Model;
use crate::policy::editing;
use crate::store::Journal;
use crate::store::ledger::Ledger;
use crate::tools::Toolbox;

/// What stands against starting or going on with a run, first things first.
pub type Preflight = Box<dyn FnMut(&Run) -> Vec<Lack> + Send>;

/// What a run is driven with.
pub struct World {
    /// The model.
    pub model: Arc<dyn Model>,
    /// The tools.
    pub tools: Toolbox,
    /// What takes secrets out of all that comes in.
    pub redactor: Arc<Redactor>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// What stands against starting or going on, first things first. Asked at the start and at every resume.
    pub preflight: Preflight,
    /// The standing rules of the operator; nothing where none are kept.
    pub rules: Option<Arc<Rulebook>>,
    /// The ledger of all runs. A run that spends nothing real does not ask it.
    pub ledger: Option<Ledger>,
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
    let (shown, seen) = watch::channel(run.clone());
    let (today_sender, today) = watch::channel(None);
    let (deltas, _) = broadcast::channel(limits::DELTAS);
    let halted = Arc::new(OnceLock::new());
    let reader = journal.reader();
    let handle = Handle { inbox, head, run: seen, today, deltas: deltas.clone(), reader, halted: halted.clone() };
    let lacks = (world.preflight)(&run);
    let rules = Consulted::new(world.rules, &run.terms.workspace, world.clock.clone());
    let driver = Driver {
        active: ActiveTime { base: Span(run.pool.used(Axis::Active)), since: None },
        tasks: Tasks::new(world.model, world.tools, deltas, &world.redactor, journal.reader(), rules.clone()),
        rules,
        redactor: world.redactor,
        run,
        journal,
        clock: world.clock,
        purse: Purse::new(world.ledger),
        preflight: world.preflight,
        on_change: world.on_change,
        head: head_sender,
        shown,
        today: today_sender,
    };
    let task = tokio::spawn(async move { driver.live(asked, owner, lacks, &halted).await });
    Driven { handle, task }
}

struct Driver<J> {
    run: Run,
    journal: J,
    tasks: Tasks,
    rules: Consulted,
    redactor: Arc<Redactor>,
    clock: Arc<dyn Clock>,
    purse: Purse,
    preflight: Preflight,
    on_change: Box<dyn FnMut(&Summary) + Send>,
    head: watch::Sender<Seq>,
    /// The run for whoever begins to look at it.
    shown: watch::Sender<Run>,
    today: watch::Sender<Option<Today>>,
    active: ActiveTime,
}

/// The name of the engine as a client of its own run.
const OWN_CLIENT: &str = "tiller";

/// Whether a run that was cut off goes on.
#[derive(Clone, Copy, PartialEq)]
enum GoesOn {
    WhenTold,
    ByItself,
}

/// Whether an input has led as far as it leads.
#[derive(PartialEq)]
enum Rest {
    Done,
    /// The loop goes on from what is durable now.
    Further,
}

type Answer = oneshot::Sender<Result<Seq, Refusal>>;

impl<J: Journal> Driver<J> {
    /// Drives until the last hold is dropped. A panic of the loop, which is a bug, starts it anew from the journal;
    /// the first time it goes on by itself, then the run is parked (docs/ENGINE.md §14.1). `halted` is told why it
    /// stopped before. Gives back the journal.
    async fn live(
        mut self,
        mut inbox: mpsc::Receiver<Asked>,
        owner: Owner,
        lacks: Vec<Lack>,
        halted: &OnceLock<String>,
    ) -> J {
        self.purse.settle_lost(&self.run, self.clock.now()).await;
        let mut first = Input::Recovered { owner: owner.clone(), lacks };
        let mut goes_on = GoesOn::WhenTold;
        let mut panics = 0;
        let result = loop {
            match AssertUnwindSafe(self.drive(&mut inbox, first, goes_on)).catch_unwind().await {
                Ok(result) => break result,
                Err(_) if panics >= limits::ENGINE_PANICS => {
                    break Err("the engine broke down again and again; this is a bug of tiller; the journal is whole"
                        .to_string());
                }
                Err(_) => {}
            }
            panics += 1;
            tracing::error!(panics, "the loop of the run broke down; it starts anew from the journal");
            self.tasks.clear(limits::LEAVE_PATIENCE).await;
            if let Err(why) = self.read_again().await {
                break Err(why);
            }
            self.purse.settle_lost(&self.run, self.clock.now()).await;
            goes_on = if panics == 1 { GoesOn::ByItself } else { GoesOn::WhenTold };
            let reason = ParkReason::EnginePanic;
            let again =
                Lack { reason, sentence: "the loop of the run broke down twice; this is a bug of tiller".to_string() };
            let lacks = if goes_on == GoesOn::ByItself { Vec::new() } else { vec![again] };
            first = Input::Recovered { owner: owner.clone(), lacks };
        };
        self.tasks.clear(limits::LEAVE_PATIENCE).await;
        // From here on nothing follows.
        (self.on_change)(&Summary::of(&self.run));
        if let Err(why) = result {
            tracing::error!(%why, "the engine stopped");
            // Said before the ends of its channels are dropped: whoever notices that asks why.
            let _ = halted.set(why);
        }
        self.journal
    }

    /// The state as the journal has it; nothing in memory counts after a panic.
    async fn read_again(&mut self) -> Result<(), String> {
        let reader = self.journal.reader();
        let mut records = Vec::new();
        loop {
            let from = Seq(records.len() as u64).next();
            let some = reader.read(from, limits::RECORDS_PER_UPDATE).await.map_err(|error| error.to_string())?;
            if some.is_empty() {
                break;
            }
            records.extend(some);
        }
        self.run = Run::fold(&self.run.id, &records).map_err(|broken| broken.to_string())?;
        self.active = ActiveTime { base: Span(self.run.pool.used(Axis::Active)), since: None };
        self.shown.send_replace(self.run.clone());
        self.head.send_replace(self.run.seq);
        Ok(())
    }

    /// Turns until the last hold is dropped; the error says why it stopped before. `goes_on` says whether a run that a
    /// panic cut off waits for a resume.
    async fn drive(&mut self, inbox: &mut mpsc::Receiver<Asked>, first: Input, goes_on: GoesOn) -> Result<(), String> {
        self.take(first, None).await?;
        if goes_on == GoesOn::ByItself && self.run.status == Status::Parked(ParkReason::Interrupted) {
            self.take(Input::Command(Command::Resume, ClientId(OWN_CLIENT.to_string())), None).await?;
        }
        loop {
            let (input, answer) = tokio::select! {
                biased;
                asked = inbox.recv() => match asked {
                    Some(Asked { command, client, answer }) => (Input::Command(command, client), Some(answer)),
                    None => return self.part().await,
                },
                outcome = self.tasks.next() => (Input::Outcome(outcome), None),
                () = wait_until(&self.clock, self.run.wakes_at()) => (Input::Tick, None),
            };
            self.take(input, answer).await?;
        }
    }

    /// Nobody holds the run any more: it is left, and what is under way is ended and recorded, but not for ever.
    async fn part(&mut self) -> Result<(), String> {
        self.take(Input::Command(Command::Leave, ClientId(OWN_CLIENT.to_string())), None).await?;
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
    async fn looked_at(&mut self, input: Input) -> Input {
        let by = match &input {
            Input::Command(Command::Resume | Command::GrantReplans, client) => Some(client.clone()),
            Input::Tick => None,
            Input::Command(..) | Input::Recovered { .. } | Input::Unready { .. } | Input::Outcome(_) => return input,
        };
        if !matches!(self.run.status, Status::Parked(_)) {
            return input;
        }
        let mut lacks = (self.preflight)(&self.run);
        lacks.extend(self.purse.look(&self.run, self.clock.now()).await);
        if lacks.is_empty() { input } else { Input::Unready { lacks, by } }
    }

    /// One input, and what it leads to. The error stops the run in memory; on disk it stays as it was.
    async fn take(&mut self, input: Input, answer: Option<Answer>) -> Result<(), String> {
        let looked = self.looked_at(input).await;
        let input = self.redactor.input(looked);
        let mut rest = self.step(&input, answer).await?;
        while rest == Rest::Further {
            rest = self.step(&Input::Tick, None).await?;
        }
        Ok(())
    }

    /// One turn, as far as the ledger of all runs lets it go.
    async fn step(&mut self, input: &Input, answer: Option<Answer>) -> Result<Rest, String> {
        let now = Now { at: self.clock.now(), active: self.active.at(self.clock.mono()) };
        let mut rest = Rest::Done;
        let mut turned = turn_below(&self.run, input, now, Above::Bears);
        if let Ok(counts) = &turned
            && let Err(refusal) = self.before_it_counts(input, &counts.run).await
        {
            reply(answer, Err(refusal));
            return Ok(Rest::Done);
        }
        if let Ok(played) = &turned
            && let Some(lack) = self.purse.reserve(&played.run, &played.records).await
        {
            // What this turn settles may make room: it is made durable first, and then asked again.
            let settles = played.records.iter().any(|record| matches!(record.event, Event::BudgetSettled { .. }));
            rest = if settles { Rest::Further } else { Rest::Done };
            let above = if settles { Above::Later } else { Above::Refuses(&lack) };
            turned = turn_below(&self.run, input, now, above);
        }
        let turned = match turned {
            Ok(turned) => turned,
            Err(refusal) => {
                let halts = matches!(refusal, Refusal::Broken(_)).then(|| refusal.to_string());
                reply(answer, Err(refusal));
                return halts.map_or(Ok(Rest::Done), Err);
            }
        };
        if let Err(error) = durable::append(&mut self.journal, &turned.records).await {
            let why = error.to_string();
            reply(answer, Err(Refusal::Storage(why.clone())));
            return Err(why);
        }
        self.adopt(turned, now, answer).await;
        Ok(rest)
    }

    /// What must be so before a decision counts; else it decides nothing. A rule that it makes is kept. A call that the
    /// operator changed is tried: one that would be denied waits on, with what was typed, and can be changed further.
    async fn before_it_counts(&mut self, input: &Input, after: &Run) -> Result<(), Refusal> {
        self.rules.keep(&self.run, input).await?;
        let Input::Command(Command::Decide { call, decision: Decision::Edit(_), .. }, _) = input else { return Ok(()) };
        let Some(call) = after.calls.get(call) else { return Ok(()) };
        let facts = self.tasks.look(call, limits::EDIT_TRIED).await;
        let why = facts.and_then(|facts| editing::refused(after, call, &facts));
        why.map_or(Ok(()), |why| Err(Refusal::EditRefused(why)))
    }

    /// Whether time counts as active: not while parked, and not through a long wait for the provider.
    fn is_active(&self, now: Timestamp) -> bool {
        let waits_long = self.run.retry_at.is_some_and(|at| at.since(now) >= limits::LONG_WAIT);
        self.run.is_running() && !waits_long
    }

    /// Takes over a turn that is durable: adopt, publish, start.
    async fn adopt(&mut self, turned: Turn, now: Now, answer: Option<Answer>) {
        for record in &turned.records {
            // Only what kind of thing happened: texts and arguments are in the journal, not in the log.
            tracing::debug!(run = %turned.run.id, seq = record.seq.0, event = record.event.name(), "recorded");
        }
        if turned.run.status != self.run.status {
            tracing::info!(run = %turned.run.id, status = turned.run.status.phrase(), "the status changed");
        }
        let changed = listed(&turned.run) != listed(&self.run);
        self.run = turned.run;
        self.active.turn(now.active, self.clock.mono(), self.is_active(now.at));
        self.shown.send_replace(self.run.clone());
        self.head.send_replace(self.run.seq);
        reply(answer, Ok(self.run.seq));
        let unbooked = self.purse.begin(&self.run, &turned.records, now.at).await;
        for effect in turned.effects {
            match (&unbooked, effect) {
                (Some(why), Effect::CallModel(request)) => self.tasks.leave_unsent(request.call, why),
                (_, effect) => self.tasks.start(effect),
            }
        }
        self.purse.settle(&self.run, &turned.records, now.at).await;
        if self.journal.is_snapshot_due() {
            self.journal.keep(self.run.clone()).await;
        }
        let is_news = turned.records.iter().any(|record| matters_today(&record.event));
        if is_news && let Some(today) = self.purse.today(&self.run, now.at).await {
            self.today.send_replace(Some(today));
        }
        if changed {
            (self.on_change)(&Summary::of(&self.run));
        }
    }
}

/// What a list of runs shows of a run, and must not show as it was: where it stands, how many things wait, what it may
/// cost. What it cost follows with the next of them.
fn listed(run: &Run) -> (&Status, u32, usize, Limit) {
    (&run.status, run.iteration.n, run.waiting_count(), run.pool.limits().on(Axis::Cost))
}

/// Whether a record may change what all runs together spent, or is the first in this process to show it.
fn matters_today(event: &Event) -> bool {
    matches!(event, Event::OwnerAcquired { .. } | Event::BudgetSettled { .. } | Event::BudgetCorrected { .. })
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
