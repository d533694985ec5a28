//! The driver under paused time: append, adopt, publish, start, and nothing in another order.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::result_large_err, clippy::indexing_slicing)]

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use tiller::domain::approval::Decision;
use tiller::domain::budget::Axis;
use tiller::domain::budget::Limit;
use tiller::domain::budget::Limits;
use tiller::domain::budget::ReservationId;
use tiller::domain::command::Cancel;
use tiller::domain::command::Command;
use tiller::domain::command::Pause;
use tiller::domain::command::Policy;
use tiller::domain::command::Refusal;
use tiller::domain::daily::What;
use tiller::domain::event::Event;
use tiller::domain::event::Owner;
use tiller::domain::event::OwnerMode;
use tiller::domain::event::Record;
use tiller::domain::id::CallId;
use tiller::domain::id::ClientId;
use tiller::domain::id::ModelCallId;
use tiller::domain::id::RunId;
use tiller::domain::id::Seq;
use tiller::domain::message::Message;
use tiller::domain::model::AskedCall;
use tiller::domain::model::Delta;
use tiller::domain::model::DeltaSource;
use tiller::domain::model::Dialect;
use tiller::domain::model::FailureClass;
use tiller::domain::model::ModelFailure;
use tiller::domain::model::ModelReply;
use tiller::domain::model::ModelRequest;
use tiller::domain::model::ModelSpec;
use tiller::domain::model::Received;
use tiller::domain::model::StopReason;
use tiller::domain::money::MicroUsd;
use tiller::domain::money::Price;
use tiller::domain::money::Usage;
use tiller::domain::run::Run;
use tiller::domain::status::Lack;
use tiller::domain::status::ParkReason;
use tiller::domain::status::Status;
use tiller::domain::summary::Summary;
use tiller::domain::terms::Goal;
use tiller::domain::terms::Terms;
use tiller::domain::time::Now;
use tiller::domain::time::Span;
use tiller::domain::time::Timestamp;
use tiller::domain::tool::EffectClass;
use tiller::domain::tool::Facts;
use tiller::domain::tool::Noise;
use tiller::domain::tool::OutcomeKind;
use tiller::domain::tool::Problem;
use tiller::domain::tool::ToolSpec;
use tiller::domain::trust::Trust;
use tiller::engine::clock::Clock;
use tiller::engine::driver;
use tiller::engine::driver::Driven;
use tiller::engine::driver::World;
use tiller::engine::redaction::Redactor;
use tiller::machine::create;
use tiller::model::Model;
use tiller::protocol::client::Client;
use tiller::protocol::client::Update;
use tiller::store::ledger::Ledger;
use tiller::store::memory::MemoryJournal;
use tiller::tools::Action;
use tiller::tools::Executed;
use tiller::tools::Prepared;
use tiller::tools::Reins;
use tiller::tools::Scene;
use tiller::tools::Tool;
use tiller::tools::Toolbox;
use tokio::sync::broadcast;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// A clock that moves with the paused time of the test.
struct TestClock(Instant);

#[async_trait]
impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp(1_000_000 + self.mono().0)
    }

    fn mono(&self) -> Span {
        Span(u64::try_from(self.0.elapsed().as_millis()).unwrap())
    }

    async fn sleep_until(&self, at: Timestamp) {
        tokio::time::sleep(Duration::from_millis(at.since(self.now()).0)).await;
    }
}

/// A model that says what it was told to say, in order, and nothing after that until it is cancelled.
struct Lines {
    lines: Mutex<VecDeque<Result<ModelReply, ModelFailure>>>,
    /// How long each of them takes, in milliseconds.
    takes_ms: u64,
}

#[async_trait]
impl Model for Lines {
    async fn call(
        &self,
        _request: ModelRequest,
        _deltas: broadcast::Sender<Delta>,
        cancel: CancellationToken,
    ) -> Result<ModelReply, ModelFailure> {
        tokio::time::sleep(Duration::from_millis(self.takes_ms)).await;
        let line = self.lines.lock().unwrap().pop_front();
        match line {
            Some(line) => line,
            None => {
                cancel.cancelled().await;
                let text = "half a thought".to_string();
                let received = Received { accepted: true, bytes: 2_100, text, ..Received::default() };
                Err(ModelFailure { received, ..failure(FailureClass::Cancelled, None) })
            }
        }
    }
}

fn failure(class: FailureClass, retry_after: Option<Span>) -> ModelFailure {
    ModelFailure { class, message: format!("{class:?}"), retry_after, received: Received::default() }
}

fn says(text: &str, calls: &[(&str, serde_json::Value)]) -> Result<ModelReply, ModelFailure> {
    let calls: Vec<AskedCall> = calls
        .iter()
        .map(|(name, arguments)| AskedCall {
            id: String::new(),
            name: (*name).to_string(),
            arguments: arguments.to_string(),
        })
        .collect();
    let stop = if calls.is_empty() { StopReason::End } else { StopReason::Calls };
    let usage = Some(Usage { input: 100, output: 10, ..Usage::default() });
    Ok(ModelReply {
        text: text.to_string(),
        reasoning: String::new(),
        calls,
        opaque: Vec::new(),
        stop,
        usage,
        received_bytes: 30,
    })
}

/// A tool that counts its real executions and lasts until it is told to end, or panics.
struct Work {
    executions: Arc<AtomicU32>,
    manner: Manner,
}

#[derive(Clone, Copy, PartialEq)]
enum Manner {
    Ends,
    Lasts,
    Panics,
}

impl Tool for Work {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "work".to_string(),
            description: String::new(),
            schema: json!({}),
            effect: EffectClass::External,
            noise: Noise::default(),
        }
    }

    fn prepare(&self, _scene: &Scene, _arguments: &str) -> Result<Prepared, Problem> {
        let action = Box::new(Working { executions: self.executions.clone(), manner: self.manner });
        Ok(Prepared { facts: Facts { title: "work".to_string(), ..Facts::default() }, action })
    }
}

struct Working {
    executions: Arc<AtomicU32>,
    manner: Manner,
}

#[async_trait]
impl Action for Working {
    async fn run(self: Box<Self>, _call: CallId, reins: Reins) -> Executed {
        self.executions.fetch_add(1, Ordering::SeqCst);
        match self.manner {
            Manner::Ends => Executed::ended(OutcomeKind::Done, "worked"),
            Manner::Panics => panic!("a tool breaks"),
            Manner::Lasts => {
                reins.cancel.cancelled().await;
                Executed::ended(OutcomeKind::Cancelled, "ended in the middle")
            }
        }
    }
}

struct Stage {
    driven: Driven<MemoryJournal>,
    executions: Arc<AtomicU32>,
}

fn stage(
    lines: Vec<Result<ModelReply, ModelFailure>>,
    manner: Manner,
    prepare: impl FnOnce(&mut MemoryJournal),
) -> Stage {
    stage_in(lines, manner, prepare, |_| {}, |world| world)
}

fn stage_in(
    lines: Vec<Result<ModelReply, ModelFailure>>,
    manner: Manner,
    prepare: impl FnOnce(&mut MemoryJournal),
    agree: impl FnOnce(&mut Terms),
    furnish: impl FnOnce(World) -> World,
) -> Stage {
    staged(Lines { lines: Mutex::new(lines.into()), takes_ms: 0 }, manner, prepare, agree, furnish)
}

fn staged(
    model: Lines,
    manner: Manner,
    prepare: impl FnOnce(&mut MemoryJournal),
    agree: impl FnOnce(&mut Terms),
    furnish: impl FnOnce(World) -> World,
) -> Stage {
    let executions = Arc::new(AtomicU32::new(0));
    let nowhere = PathBuf::from("/nonexistent");
    let scene = Scene {
        workspace: nowhere.clone(),
        off_limits: vec![],
        pre_images: None,
        program: nowhere,
        passed_variables: vec![],
    };
    let mut tools = Toolbox::new(scene);
    tools.add(Arc::new(Work { executions: executions.clone(), manner }));
    let mut terms = terms(tools.specs());
    agree(&mut terms);
    let first = create(terms, Now::default());
    let run = Run::begin(RunId::from_entropy([1; 12]), &first).unwrap();
    let mut journal = MemoryJournal::new(&[first]).unwrap();
    prepare(&mut journal);
    let world = World {
        model: Arc::new(model),
        tools,
        redactor: Arc::new(Redactor::new("key".to_string().into(), [])),
        clock: Arc::new(TestClock(Instant::now())),
        preflight: Box::new(|_| Vec::new()),
        ledger: None,
        on_change: Box::new(|_| {}),
    };
    let world = furnish(world);
    let owner = Owner { pid: 1, host: "test".to_string(), version: "0".to_string(), mode: OwnerMode::Drives };
    Stage { driven: driver::start(run, journal, world, owner), executions }
}

fn terms(tools: Vec<ToolSpec>) -> Terms {
    Terms {
        goal: Goal::try_from("work".to_string()).unwrap(),
        workspace: "/nonexistent".to_string(),
        limits: Limits::default(),
        checks: Vec::new(),
        wrap_up: false,
        model: ModelSpec {
            name: "test/test".to_string(),
            dialect: Dialect::Scripted,
            address: String::new(),
            model: "test".to_string(),
            key_variable: None,
            window: 100_000,
            max_output: 1_000,
            most_output: None,
            price: Some(Price { input: 1_000_000, cache_read: 1_000_000, cache_write: 1_000_000, output: 1_000_000 }),
        },
        tools,
        instructions: String::new(),
        rehearsal: false,
        trust: Trust::Ask,
        keep_full_trust: false,
    }
}

impl Stage {
    async fn records(&self) -> Vec<Record> {
        self.driven.handle.reader().read(Seq(1), 10_000).await.unwrap()
    }

    async fn run(&self) -> Run {
        Run::fold(&RunId::from_entropy([1; 12]), &self.records().await).unwrap()
    }

    /// Waits until the durable run is as wanted.
    async fn until(&self, wanted: impl Fn(&Run) -> bool) -> Run {
        let mut head = self.driven.handle.head();
        let wait = async {
            loop {
                let run = self.run().await;
                if wanted(&run) {
                    return run;
                }
                head.changed().await.expect("the engine stopped");
            }
        };
        tokio::time::timeout(Duration::from_secs(10_000), wait).await.expect("the run never came to this")
    }

    async fn submit(&self, command: Command) -> Result<Seq, Refusal> {
        self.driven.handle.submit(command, ClientId("test".to_string())).await
    }

    async fn allow(&self, run: &Run) {
        let (call, _) = *run.waiting().first().unwrap();
        let digest = call.digest().unwrap();
        self.submit(Command::Decide { call: call.id, digest, decision: Decision::AllowOnce }).await.unwrap();
    }

    fn executions(&self) -> u32 {
        self.executions.load(Ordering::SeqCst)
    }
}

fn is_parked(run: &Run, reason: &ParkReason) -> bool {
    run.status == Status::Parked(reason.clone())
}

fn plan() -> (&'static str, serde_json::Value) {
    ("update_plan", json!({"todos": [{"id": "a", "title": "work", "status": "in_progress"}]}))
}

fn finish() -> (&'static str, serde_json::Value) {
    ("finish", json!({"summary": "worked", "not_needed": []}))
}

fn done() -> (&'static str, serde_json::Value) {
    ("update_plan", json!({"mode": "patch", "todos": [{"id": "a", "title": "work", "status": "done"}]}))
}

#[tokio::test(start_paused = true)]
async fn a_run_goes_to_its_end() {
    let lines = vec![says("plan", &[plan()]), says("", &[("work", json!({}))]), says("", &[done(), finish()])];
    let stage = stage(lines, Manner::Ends, |_| {});
    let run = stage.until(|run| is_parked(run, &ParkReason::Approval)).await;
    assert_eq!(stage.executions(), 0, "nothing runs before it is allowed");
    stage.allow(&run).await;
    let run = stage.until(Run::is_ended).await;
    assert_eq!((run.status.word(), stage.executions()), ("completed", 1));
    assert_eq!(run.pool.spent().0, 3 * 110);
}

#[tokio::test(start_paused = true)]
async fn a_rate_limit_is_waited_for_in_its_own_time() {
    let lines = vec![Err(failure(FailureClass::RateLimited, Some(Span::seconds(20)))), says("plan", &[plan()])];
    let stage = stage(lines, Manner::Ends, |_| {});
    let begun = Instant::now();
    let run = stage.until(|run| !run.transcript.is_empty()).await;
    assert!(begun.elapsed() >= Duration::from_secs(20), "{:?}", begun.elapsed());
    assert_eq!(run.pool.spent().0, 110, "the refused attempt costs nothing");
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_is_down_parks_the_run_and_it_goes_on_by_itself() {
    let mut lines: Vec<_> = (0..7).map(|_| Err(failure(FailureClass::Overloaded, None))).collect();
    lines.push(says("plan", &[plan()]));
    let stage = stage(lines, Manner::Ends, |_| {});
    let waits = |run: &Run| matches!(run.status, Status::Parked(ParkReason::ProviderWait { .. }));
    stage.until(waits).await;
    let begun = Instant::now();
    stage.until(|run| !run.transcript.is_empty()).await;
    assert!(begun.elapsed() >= Duration::from_secs(500), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn what_can_not_be_written_is_not_done() {
    let lines = vec![says("plan", &[plan()]), says("", &[("work", json!({}))])];
    // The appends before it: the start, the first reply, the second, what the call would touch.
    let failing = |journal: &mut MemoryJournal| (5..=7).for_each(|n| journal.fail_append(n));
    let stage = stage(lines, Manner::Ends, failing);
    let run = stage.until(|run| is_parked(run, &ParkReason::Approval)).await;
    let (call, _) = *run.waiting().first().unwrap();
    let decide = Command::Decide { call: call.id, digest: call.digest().unwrap(), decision: Decision::AllowOnce };
    let answer = stage.submit(decide).await;
    assert!(matches!(answer, Err(Refusal::Storage(_))), "{answer:?}");
    assert_eq!(stage.executions(), 0, "an allowance that is not durable runs nothing");
    assert_eq!(stage.run().await, run, "on disk it is as it was");
    assert!(matches!(stage.submit(Command::Resume).await, Err(Refusal::Storage(_))), "the engine has stopped");
    assert!(stage.driven.handle.halted().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_recovers_within_moments_is_not_noticed() {
    let lines = vec![says("plan", &[plan()]), says("", &[("work", json!({}))]), says("", &[done(), finish()])];
    let stage = stage(lines, Manner::Ends, |journal| (5..=6).for_each(|n| journal.fail_append(n)));
    let run = stage.until(|run| is_parked(run, &ParkReason::Approval)).await;
    stage.allow(&run).await;
    stage.until(Run::is_ended).await;
    assert_eq!(stage.executions(), 1);
}

#[tokio::test(start_paused = true)]
async fn pausing_now_ends_the_tool_and_the_run_goes_on_later() {
    let lines = vec![says("plan", &[plan()]), says("", &[("work", json!({}))]), says("", &[done(), finish()])];
    let stage = stage(lines, Manner::Lasts, |_| {});
    let run = stage.until(|run| is_parked(run, &ParkReason::Approval)).await;
    stage.allow(&run).await;
    stage.until(|run| run.running_calls().next().is_some()).await;
    stage.submit(Command::Pause(Pause::Now)).await.unwrap();
    let run = stage.until(|run| is_parked(run, &ParkReason::Paused)).await;
    assert!(!run.is_busy());
    stage.submit(Command::Resume).await.unwrap();
    let run = stage.until(Run::is_ended).await;
    assert_eq!((run.status.word(), stage.executions()), ("completed", 1));
}

#[tokio::test(start_paused = true)]
async fn letting_go_ends_what_runs_and_records_it() {
    let lines = vec![says("plan", &[plan()]), says("", &[("work", json!({}))])];
    let stage = stage(lines, Manner::Lasts, |_| {});
    let run = stage.until(|run| is_parked(run, &ParkReason::Approval)).await;
    stage.allow(&run).await;
    stage.until(|run| run.running_calls().next().is_some()).await;
    let reader = stage.driven.handle.reader();
    drop(stage.driven.handle);
    stage.driven.task.await.unwrap();
    let records = reader.read(Seq(1), 10_000).await.unwrap();
    let run = Run::fold(&RunId::from_entropy([1; 12]), &records).unwrap();
    assert_eq!(run.status, Status::Parked(ParkReason::Shutdown));
    let ended = records.iter().any(|record| {
        matches!(&record.event, Event::ToolCallFinished { outcome, .. } if outcome.kind == OutcomeKind::Cancelled)
    });
    assert!(ended, "the call has its outcome");
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_panics_is_a_call_that_failed() {
    let lines = vec![says("plan", &[plan()]), says("", &[("work", json!({}))]), says("", &[done(), finish()])];
    let stage = stage(lines, Manner::Panics, |_| {});
    let run = stage.until(|run| is_parked(run, &ParkReason::Approval)).await;
    stage.allow(&run).await;
    let run = stage.until(Run::is_ended).await;
    assert_eq!(run.status.word(), "completed");
}

/// Every event of a journal by its name.
fn names(records: &[Record]) -> Vec<&'static str> {
    records.iter().map(|record| record.event.name()).collect()
}

#[tokio::test(start_paused = true)]
async fn s_39_a_word_around_the_close_of_an_iteration_starts_one_next_iteration_and_is_told_once() {
    for turn in 0..1_000_u64 {
        let lines = vec![
            says("plan", &[plan()]),
            says("", &[("note", json!({"text": "on the way"}))]),
            says("", &[done(), finish()]),
            says("", &[finish()]),
        ];
        let model = Lines { lines: Mutex::new(lines.into()), takes_ms: 10 };
        let stage = staged(model, Manner::Ends, |_| {}, |_| {}, |world| world);
        // A millisecond before the reply that closes the first iteration, in the same one, and after it; and in each
        // of them at another point of the driver's turn.
        tokio::time::sleep(Duration::from_millis(9 + turn % 3)).await;
        for _ in 0..turn / 3 % 12 {
            tokio::task::yield_now().await;
        }
        let word = Command::Interject { text: "mind the gap".to_string(), policy: Policy::Next };
        stage.submit(word).await.unwrap();
        let run = stage.until(Run::is_ended).await;
        let records = stage.records().await;
        let names = names(&records);
        let count = |name: &str| names.iter().filter(|one| **one == name).count();
        assert_eq!(count("interjection_delivered"), 1);
        assert_eq!(count("iteration_started"), count("iteration_closed"));
        assert_eq!(count("iteration_started"), count("model_call_started"), "each iteration asks once: {names:?}");
        let place = names.iter().position(|name| *name == "interjection_delivered").unwrap();
        assert_eq!(names[place - 1], "iteration_started", "it comes with the start of an iteration");
        assert_eq!(run.transcript.entries().filter(|entry| is_word(&entry.message)).count(), 1);
    }
}

fn is_word(message: &Message) -> bool {
    matches!(message, Message::Operator { text, .. } if text == "mind the gap")
}

#[tokio::test(start_paused = true)]
async fn s_40_an_interrupt_ends_the_tool_that_runs_and_the_words_follow() {
    let batch = [("work", json!({"n": 1})), ("work", json!({"n": 2})), ("note", json!({"text": "three"}))];
    let lines = vec![says("plan", &[plan()]), says("", &batch), says("", &[done(), finish()])];
    let stage = stage(lines, Manner::Lasts, |_| {});
    let run = stage.until(|run| is_parked(run, &ParkReason::Approval)).await;
    stage.allow(&run).await;
    let run = stage.until(|run| run.running_calls().next().is_some()).await;
    assert!(run.waiting().iter().any(|(call, _)| call.id == CallId(3)), "the second waits for a decision");
    let word = Command::Interject { text: "mind the gap".to_string(), policy: Policy::Interrupt };
    stage.submit(word).await.unwrap();
    let run = stage.until(Run::is_ended).await;
    assert_eq!((run.status.word(), stage.executions()), ("completed", 1), "the second never ran");
    let talk: Vec<String> = run.transcript.entries().map(|entry| format!("{:?}", entry.message)).collect();
    let place = |part: &str| talk.iter().position(|line| line.contains(part)).unwrap_or_else(|| panic!("{talk:#?}"));
    assert!(place("ended in the middle") < place("mind the gap"));
    assert!(place("not run: operator steered") < place("mind the gap"));
}

/// Real money, a dollar for a hundred thousand tokens: a call costs some cents at worst.
fn costs(terms: &mut Terms) {
    terms.model.dialect = Dialect::Openai;
    terms.model.price =
        Some(Price { input: 10_000_000, cache_read: 10_000_000, cache_write: 10_000_000, output: 10_000_000 });
}

const DAILY: Limit = Limit::At(20_000_000);

fn other_run() -> (RunId, ReservationId) {
    (RunId::from_entropy([2; 12]), ReservationId { call: ModelCallId(1), attempt: 1 })
}

#[tokio::test(start_paused = true)]
async fn s_22_the_daily_ceiling_parks_and_the_run_goes_on_when_the_window_rolls() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::new(dir.path().to_path_buf(), DAILY);
    let (other, id) = other_run();
    let spent = [(id, What::Charged(MicroUsd(19_990_000)))];
    ledger.settle(&other, &spent, Timestamp(1_000_000)).unwrap();
    let lines = vec![says("plan", &[plan()])];
    let with = ledger.clone();
    let stage = stage_in(lines, Manner::Ends, |_| {}, costs, |world| World { ledger: Some(with), ..world });
    let run = stage.until(|run| matches!(run.status, Status::Parked(ParkReason::DailyBudget { .. }))).await;
    assert_eq!((run.pool.reserved(), run.pool.used(Axis::ModelCalls)), (None, 0), "nothing was asked");
    assert!(!run.pool.is_exhausted(Axis::Cost), "the run's own pool is open");
    assert!(run.lacks[0].starts_with("all runs together have $0.01 left of $20.00 in 24 hours"), "{:?}", run.lacks);
    let refused = stage.submit(Command::Resume).await;
    assert!(matches!(refused, Err(Refusal::ReasonNotCleared { .. })), "{refused:?}");
    tokio::time::advance(Duration::from_secs(24 * 60 * 60)).await;
    stage.submit(Command::Resume).await.unwrap();
    stage.until(|run| !run.transcript.is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn what_a_turn_settles_makes_room_for_its_next_call() {
    let dir = tempfile::tempdir().unwrap();
    let lines = vec![says("plan", &[plan()]), says("", &[("work", json!({}))]), says("", &[done(), finish()])];
    // Room for one worst case and a half: the second fits only once the first is settled.
    let probe = stage_in(Vec::new(), Manner::Ends, |_| {}, costs, |world| world);
    let worst = probe.until(|run| run.pool.reserved().is_some()).await.pool.reserved().unwrap().amount.0;
    let ledger = Ledger::new(dir.path().to_path_buf(), Limit::At(worst + worst / 2));
    let with = ledger.clone();
    let stage = stage_in(lines, Manner::Ends, |_| {}, costs, |world| World { ledger: Some(with), ..world });
    let run = stage.until(|run| is_parked(run, &ParkReason::Approval)).await;
    stage.allow(&run).await;
    let run = stage.until(Run::is_ended).await;
    assert_eq!(run.status.word(), "completed");
    drop(stage.driven.handle);
    stage.driven.task.await.unwrap();
    assert_eq!(ledger.spent(Timestamp(1_000_000)).unwrap(), run.pool.spent(), "the ledger knows what the run spent");
}

#[tokio::test(start_paused = true)]
async fn a_reservation_that_the_journal_never_heard_of_is_released() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::new(dir.path().to_path_buf(), DAILY);
    let own = RunId::from_entropy([1; 12]);
    let lost = ReservationId { call: ModelCallId(1), attempt: 1 };
    ledger.reserve(&own, lost, MicroUsd(20_000_000), Timestamp(1_000_000)).unwrap().unwrap();
    let with = ledger.clone();
    let lines = vec![says("plan", &[plan()])];
    let stage = stage_in(lines, Manner::Ends, |_| {}, costs, |world| World { ledger: Some(with), ..world });
    stage.until(|run| !run.transcript.is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn pretended_money_does_not_touch_the_ledger() {
    let dir = tempfile::tempdir().unwrap();
    let with = Ledger::new(dir.path().to_path_buf(), Limit::At(1));
    let lines = vec![says("plan", &[plan()])];
    let stage = stage_in(lines, Manner::Ends, |_| {}, |_| {}, |world| World { ledger: Some(with), ..world });
    stage.until(|run| !run.transcript.is_empty()).await;
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[tokio::test(start_paused = true)]
async fn s_50_a_resume_without_what_it_needs_asks_nobody() {
    let lacks = || vec![Lack { reason: ParkReason::Credentials, sentence: "set TEST_KEY".to_string() }];
    let preflight = Box::new(move |_: &Run| lacks());
    let stage = stage_in(vec![], Manner::Ends, |_| {}, |_| {}, |world| World { preflight, ..world });
    let run = stage.until(|run| is_parked(run, &ParkReason::Credentials)).await;
    assert_eq!((run.pool.used(Axis::ModelCalls), run.pool.used(Axis::Loops), run.pool.spent().0), (0, 0, 0));
    let refused = stage.submit(Command::Resume).await.unwrap_err().to_string();
    assert_eq!(refused, "the run can't go on yet: credentials; set TEST_KEY; then resume");
    assert_eq!(stage.run().await, run);
}

/// Breaks the loop down whenever it begins to run, so many times.
fn breaks_down(times: u32) -> impl FnOnce(World) -> World {
    let left = AtomicU32::new(times);
    let on_change = Box::new(move |now: &Summary| {
        let breaks = now.status == Status::Running
            && left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
        assert!(!breaks, "the loop breaks down");
    });
    |world| World { on_change, ..world }
}

#[tokio::test(start_paused = true)]
async fn s_56_a_loop_that_breaks_down_once_starts_anew_from_the_journal() {
    let lines = vec![says("lost", &[]), says("plan", &[plan()]), says("", &[done(), finish()])];
    let stage = stage_in(lines, Manner::Ends, |_| {}, |_| {}, breaks_down(1));
    let run = stage.until(Run::is_ended).await;
    assert_eq!((run.status.word(), run.progress.recoveries), ("completed", 0));
    assert!(run.pool.unverified() > MicroUsd(0), "the call that was lost is charged in full");
}

#[tokio::test(start_paused = true)]
async fn s_56_a_loop_that_breaks_down_twice_is_parked_and_waits_for_the_operator() {
    let lines = vec![says("lost", &[]), says("lost", &[]), says("lost", &[]), says("plan", &[plan()])];
    let stage = stage_in(lines, Manner::Ends, |_| {}, |_| {}, breaks_down(3));
    stage.until(|run| is_parked(run, &ParkReason::EnginePanic)).await;
    assert_eq!(stage.driven.handle.halted(), None);
    // The one who asks learns nothing, since the loop breaks down over it; the journal says what became of it.
    let _ = stage.submit(Command::Resume).await;
    stage.until(|run| is_parked(run, &ParkReason::EnginePanic) && run.pool.used(Axis::ModelCalls) == 3).await;
    stage.submit(Command::Resume).await.unwrap();
    stage.until(|run| !run.transcript.is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn s_44_what_a_leftover_task_comes_to_is_no_record() {
    let lines = vec![says("plan", &[plan()]), says("", &[("work", json!({}))])];
    let breaks = Arc::new(AtomicU32::new(0));
    let clock = Arc::new(Fragile { clock: TestClock(Instant::now()), breaks: breaks.clone() });
    let stage = stage_in(lines, Manner::Lasts, |_| {}, |_| {}, |world| World { clock, ..world });
    let run = stage.until(|run| is_parked(run, &ParkReason::Approval)).await;
    let (call, _) = *run.waiting().first().unwrap();
    stage.allow(&run).await;
    while stage.executions() == 0 {
        tokio::task::yield_now().await;
    }
    breaks.store(1, Ordering::SeqCst);
    // The loop breaks down over it, before it is a record.
    assert!(stage.submit(Command::Interject { text: "hello".to_string(), policy: Policy::Next }).await.is_err());
    stage.until(|run| is_parked(run, &ParkReason::OutcomeUnknown)).await;
    let ends = stage.records().await.iter().filter(|record| is_end_of(record, call.id)).count();
    assert_eq!((ends, stage.executions()), (0, 1), "it ran, nobody knows how far, and it is not said to have ended");
}

/// A clock that breaks down so many times.
struct Fragile {
    clock: TestClock,
    breaks: Arc<AtomicU32>,
}

#[async_trait]
impl Clock for Fragile {
    fn now(&self) -> Timestamp {
        let breaks = self.breaks.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
        assert!(!breaks, "the loop breaks down");
        self.clock.now()
    }

    fn mono(&self) -> Span {
        self.clock.mono()
    }

    async fn sleep_until(&self, at: Timestamp) {
        self.clock.sleep_until(at).await;
    }
}

fn is_end_of(record: &Record, id: CallId) -> bool {
    matches!(&record.event, Event::ToolCallFinished { call, .. } if *call == id)
}

#[tokio::test(start_paused = true)]
async fn a_long_wait_for_the_provider_is_not_active_time() {
    let waits = |seconds| Err(failure(FailureClass::RateLimited, Some(Span::seconds(seconds))));
    let lines = vec![waits(600), waits(50), says("plan", &[plan()])];
    let stage = stage(lines, Manner::Ends, |_| {});
    let run = stage.until(|run| !run.transcript.is_empty()).await;
    let active = run.pool.used(Axis::Active);
    assert!((50_000..60_000).contains(&active), "{active} ms");
}

#[tokio::test(start_paused = true)]
async fn s_52_a_cancel_during_a_wait_is_immediate() {
    let stage = stage(vec![Err(failure(FailureClass::RateLimited, Some(Span::seconds(600))))], Manner::Ends, |_| {});
    stage.until(|run| run.retry_at.is_some()).await;
    let begun = Instant::now();
    stage.submit(Command::Cancel(Cancel::Now)).await.unwrap();
    stage.until(|run| run.status == Status::Cancelled).await;
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
}

/// A model whose reply comes in very many scraps, and all at once.
struct Torrent {
    scraps: usize,
}

#[async_trait]
impl Model for Torrent {
    async fn call(
        &self,
        request: ModelRequest,
        deltas: broadcast::Sender<Delta>,
        _cancel: CancellationToken,
    ) -> Result<ModelReply, ModelFailure> {
        let scraps: Vec<String> = (0..self.scraps).map(|number| format!("w{number} ")).collect();
        for text in &scraps {
            let _ = deltas.send(Delta { source: DeltaSource::Text(request.call), text: text.clone() });
        }
        says(&scraps.concat(), &[plan(), ("ask_operator", json!({"question": "and now?"}))])
    }
}

/// S-61: a room that sleeps through 50,000 scraps loses scraps, is told how many, and loses no record and no text.
#[tokio::test(start_paused = true)]
async fn s_61_a_room_that_lags_loses_no_record() {
    let furnish = |world: World| World { model: Arc::new(Torrent { scraps: 50_000 }), ..world };
    let stage = stage_in(Vec::new(), Manner::Ends, |_| {}, |_| {}, furnish);
    let mut room = Client::new(ClientId("room".to_string()), stage.driven.handle.clone(), Seq(0));
    let run = stage.until(|run| is_parked(run, &ParkReason::Question)).await;
    let (mut records, mut lost, mut heard) = (Vec::new(), 0, 0);
    while room.is_behind() || lost == 0 {
        match tokio::time::timeout(Duration::from_secs(60), room.next()).await.expect("nothing more came") {
            Update::Records(some) => records.extend(some),
            Update::Lost(count) => lost += count,
            Update::Today(_) => {}
            Update::Delta(_) => heard += 1,
            Update::Closed(why) => panic!("closed: {why:?}"),
        }
    }
    assert_eq!(records, stage.records().await, "every record, in order, once");
    assert!(lost > 40_000 && lost + heard <= 50_000, "{lost} lost, {heard} heard");
    let said = run.transcript.entries().find_map(|entry| match &entry.message {
        Message::Assistant { text, .. } => Some(text.clone()),
        _ => None,
    });
    let said = said.unwrap();
    assert!(said.starts_with("w0 w1 ") && said.trim_end().ends_with("w49999"), "{} bytes", said.len());
    assert_eq!(said.split_whitespace().count(), 50_000);
}

#[tokio::test(start_paused = true)]
async fn s_45_cancel_while_streaming() {
    let stage = stage(vec![says("plan", &[plan()])], Manner::Ends, |_| {});
    stage.until(|run| run.iteration.n == 2 && run.model_call.is_some()).await;
    let begun = Instant::now();
    stage.submit(Command::Cancel(Cancel::Graceful)).await.unwrap();
    let run = stage.until(Run::is_ended).await;
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    assert_eq!((run.status.word(), run.pool.reserved()), ("cancelled", None));
    assert!(run.pool.spent().0 > 110, "what came is charged: {}", run.pool.spent());
    let told = run.transcript.entries().any(|entry| format!("{entry:?}").contains("half a thought"));
    assert!(!told, "it is no part of the conversation");
    let kept = stage.records().await.iter().any(|record| {
        matches!(&record.event, Event::ModelCallFailed { failure, .. } if failure.received.text == "half a thought")
    });
    assert!(kept, "it is kept as a note");
}
