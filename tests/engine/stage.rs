//! A run on a real driver: a clock that follows paused time, a model that says what it was told, a tool that counts.

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
use tiller::domain::budget::Limits;
use tiller::domain::command::Command;
use tiller::domain::command::Refusal;
use tiller::domain::event::Owner;
use tiller::domain::event::OwnerMode;
use tiller::domain::event::Record;
use tiller::domain::id::CallId;
use tiller::domain::id::ClientId;
use tiller::domain::id::RunId;
use tiller::domain::id::Seq;
use tiller::domain::model::AskedCall;
use tiller::domain::model::Delta;
use tiller::domain::model::Dialect;
use tiller::domain::model::FailureClass;
use tiller::domain::model::ModelFailure;
use tiller::domain::model::ModelReply;
use tiller::domain::model::ModelRequest;
use tiller::domain::model::ModelSpec;
use tiller::domain::model::Received;
use tiller::domain::model::StopReason;
use tiller::domain::money::Price;
use tiller::domain::money::Usage;
use tiller::domain::rule::RuleEffect;
use tiller::domain::rule::RuleHit;
use tiller::domain::run::Run;
use tiller::domain::status::ParkReason;
use tiller::domain::status::Status;
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
use tiller::domain::tool::ProblemKind;
use tiller::domain::tool::ToolSpec;
use tiller::domain::trust::Trust;
use tiller::engine::clock::Clock;
use tiller::engine::driver;
use tiller::engine::driver::Driven;
use tiller::engine::driver::World;
use tiller::engine::redaction::Redactor;
use tiller::machine::create;
use tiller::model::Model;
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
pub struct TestClock(pub Instant);

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
pub struct Lines {
    pub lines: Mutex<VecDeque<Result<ModelReply, ModelFailure>>>,
    /// How long each of them takes, in milliseconds.
    pub takes_ms: u64,
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

pub fn failure(class: FailureClass, retry_after: Option<Span>) -> ModelFailure {
    ModelFailure { class, message: format!("{class:?}"), retry_after, received: Received::default() }
}

pub fn says(text: &str, calls: &[(&str, serde_json::Value)]) -> Result<ModelReply, ModelFailure> {
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
pub struct Work {
    pub executions: Arc<AtomicU32>,
    manner: Manner,
}

#[derive(Clone, Copy, PartialEq)]
pub enum Manner {
    Ends,
    Lasts,
    Panics,
    /// It takes so long.
    Takes(Duration),
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

    /// A rule denies `{"n":113}`, and `{"n":114}` can't be done.
    fn prepare(&self, _scene: &Scene, arguments: &str) -> Result<Prepared, Problem> {
        if arguments == r#"{"n":114}"# {
            return Err(Problem::new(ProblemKind::Impossible, "There is no 114. Nothing was done.".to_string()));
        }
        let words = "work 113".to_string();
        let denied = RuleHit { id: "r113".to_string(), effect: RuleEffect::Deny, words, is_lost: false };
        let rule = Some(denied).filter(|_| arguments == r#"{"n":113}"#);
        let action = Box::new(Working { executions: self.executions.clone(), manner: self.manner });
        Ok(Prepared { facts: Facts { title: "work".to_string(), rule, ..Facts::default() }, action })
    }
}

pub struct Working {
    pub executions: Arc<AtomicU32>,
    manner: Manner,
}

#[async_trait]
impl Action for Working {
    async fn run(self: Box<Self>, _call: CallId, reins: Reins) -> Executed {
        self.executions.fetch_add(1, Ordering::SeqCst);
        match self.manner {
            Manner::Ends => Executed::ended(OutcomeKind::Done, "worked"),
            Manner::Panics => panic!("a tool breaks"),
            Manner::Takes(time) => {
                tokio::time::sleep(time).await;
                Executed::ended(OutcomeKind::Done, "worked for long")
            }
            Manner::Lasts => {
                reins.cancel.cancelled().await;
                Executed::ended(OutcomeKind::Cancelled, "ended in the middle")
            }
        }
    }
}

pub struct Stage {
    pub id: RunId,
    pub driven: Driven<MemoryJournal>,
    pub executions: Arc<AtomicU32>,
}

pub fn stage(
    lines: Vec<Result<ModelReply, ModelFailure>>,
    manner: Manner,
    prepare: impl FnOnce(&mut MemoryJournal),
) -> Stage {
    stage_in(lines, manner, prepare, |_| {}, |world| world)
}

pub fn stage_in(
    lines: Vec<Result<ModelReply, ModelFailure>>,
    manner: Manner,
    prepare: impl FnOnce(&mut MemoryJournal),
    agree: impl FnOnce(&mut Terms),
    furnish: impl FnOnce(World) -> World,
) -> Stage {
    staged(Lines { lines: Mutex::new(lines.into()), takes_ms: 0 }, manner, prepare, agree, furnish)
}

pub fn staged(
    model: Lines,
    manner: Manner,
    prepare: impl FnOnce(&mut MemoryJournal),
    agree: impl FnOnce(&mut Terms),
    furnish: impl FnOnce(World) -> World,
) -> Stage {
    let (world, executions) = world(model, manner);
    let mut terms = terms(world.tools.specs());
    agree(&mut terms);
    let first = create(terms, Now::default());
    let run = Run::begin(RunId::from_entropy([1; 12]), &first).unwrap();
    let mut journal = MemoryJournal::new(&[first]).unwrap();
    prepare(&mut journal);
    open(run, journal, furnish(world), executions)
}

/// What surrounds a run.
pub fn world(model: Lines, manner: Manner) -> (World, Arc<AtomicU32>) {
    let executions = Arc::new(AtomicU32::new(0));
    let nowhere = PathBuf::from("/nonexistent");
    let scene = Scene {
        workspace: nowhere.clone(),
        off_limits: vec![],
        program: nowhere,
        passed_variables: vec![],
        sandbox: tiller::tools::sandbox::Sandbox::default(),
        git: tiller::tools::gits::own::Own::default(),
        pre_images: None,
    };
    let mut tools = Toolbox::new(scene);
    tools.add(Arc::new(Work { executions: executions.clone(), manner }));
    let world = World {
        model: Arc::new(model),
        tools,
        redactor: Arc::new(Redactor::new("key".to_string().into(), [])),
        clock: Arc::new(TestClock(Instant::now())),
        preflight: Box::new(|_| Vec::new()),
        rules: None,
        ledger: None,
        on_change: Box::new(|_| {}),
    };
    (world, executions)
}

/// A process takes a run.
pub fn open(run: Run, journal: MemoryJournal, world: World, executions: Arc<AtomicU32>) -> Stage {
    let owner = Owner { pid: 1, host: "test".to_string(), version: "0".to_string(), mode: OwnerMode::Drives };
    let id = run.id.clone();
    Stage { id, driven: driver::start(run, journal, world, owner), executions }
}

pub fn terms(tools: Vec<ToolSpec>) -> Terms {
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
        guide: None,
        rehearsal: false,
        trust: Trust::Ask,
        keep_full_trust: false,
    }
}

impl Stage {
    pub async fn records(&self) -> Vec<Record> {
        self.driven.handle.reader().read(Seq(1), 10_000).await.unwrap()
    }

    pub async fn run(&self) -> Run {
        Run::fold(&self.id, &self.records().await).unwrap()
    }

    /// Waits until the durable run is as wanted.
    pub async fn until(&self, wanted: impl Fn(&Run) -> bool) -> Run {
        self.until_within(Duration::from_secs(10_000), wanted).await
    }

    /// Waits so long at most.
    pub async fn until_within(&self, most: Duration, wanted: impl Fn(&Run) -> bool) -> Run {
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
        tokio::time::timeout(most, wait).await.expect("the run never came to this")
    }

    pub async fn submit(&self, command: Command) -> Result<Seq, Refusal> {
        self.driven.handle.submit(command, ClientId("test".to_string())).await
    }

    pub async fn allow(&self, run: &Run) {
        let (call, _) = *run.waiting().first().unwrap();
        let digest = call.digest().unwrap();
        self.submit(Command::Decide { call: call.id, digest, decision: Decision::AllowOnce }).await.unwrap();
    }

    pub fn executions(&self) -> u32 {
        self.executions.load(Ordering::SeqCst)
    }
}

pub fn is_parked(run: &Run, reason: &ParkReason) -> bool {
    run.status == Status::Parked(reason.clone())
}

pub fn plan() -> (&'static str, serde_json::Value) {
    ("update_plan", json!({"todos": [{"id": "a", "title": "work", "status": "in_progress"}]}))
}

pub fn finish() -> (&'static str, serde_json::Value) {
    ("finish", json!({"summary": "worked", "not_needed": []}))
}

pub fn done() -> (&'static str, serde_json::Value) {
    ("update_plan", json!({"mode": "patch", "todos": [{"id": "a", "title": "work", "status": "done"}]}))
}

/// Every event of a journal by its name.
pub fn names(records: &[Record]) -> Vec<&'static str> {
    records.iter().map(|record| record.event.name()).collect()
}
