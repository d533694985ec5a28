//! For the tests of this folder: a small engine over the real machine, with a model that has its replies ready, and
//! paper to print on. Nothing here does input or output.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::VecDeque;
use std::io::Write;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::OnceLock;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use tokio::sync::broadcast;
use tokio::sync::mpsc;
use tokio::sync::watch;

use crate::domain::budget::Limits;
use crate::domain::command::Command;
use crate::domain::event::Owner;
use crate::domain::event::OwnerMode;
use crate::domain::event::Record;
use crate::domain::id::CallId;
use crate::domain::id::ClientId;
use crate::domain::id::RUN_ID_LENGTH;
use crate::domain::id::RunId;
use crate::domain::id::Seq;
use crate::domain::limits;
use crate::domain::model::AskedCall;
use crate::domain::model::Dialect;
use crate::domain::model::FailureClass;
use crate::domain::model::ModelFailure;
use crate::domain::model::ModelReply;
use crate::domain::model::ModelSpec;
use crate::domain::model::Received;
use crate::domain::model::StopReason;
use crate::domain::money::Price;
use crate::domain::money::Usage;
use crate::domain::run::Run;
use crate::domain::terms::Goal;
use crate::domain::terms::Terms;
use crate::domain::time::Now;
use crate::domain::time::Span;
use crate::domain::time::Timestamp;
use crate::domain::tool::EffectClass;
use crate::domain::tool::Facts;
use crate::domain::tool::Noise;
use crate::domain::tool::OutcomeKind;
use crate::domain::tool::Probe;
use crate::domain::tool::ToolCall;
use crate::domain::tool::ToolOutcome;
use crate::domain::tool::ToolSpec;
use crate::domain::trust::Trust;
use crate::engine::handle::Asked;
use crate::engine::handle::Handle;
use crate::machine::Input;
use crate::machine::Outcome;
use crate::machine::create;
use crate::machine::effect::Effect;
use crate::machine::turn;
use crate::protocol::client::Client;
use crate::store::Reader;
use crate::store::StoreError;

/// When everything in these tests happens: 2023-11-14 22:13:20 UTC.
pub(crate) const NOW: Now = Now { at: Timestamp(1_700_000_000_000), active: Span(0) };

/// What the model does when it is asked.
pub(crate) type Reply = Result<Box<ModelReply>, Box<ModelFailure>>;

fn reply(text: &str, tool: &str, arguments: String) -> Reply {
    let call = AskedCall { id: String::new(), name: tool.to_string(), arguments };
    let usage = Usage { input: 100, output: 10, ..Usage::default() };
    let (text, reasoning) = (text.to_string(), String::new());
    let (calls, stop, usage) = (vec![call], StopReason::Calls, Some(usage));
    Ok(Box::new(ModelReply { text, reasoning, calls, opaque: Vec::new(), stop, usage, received_bytes: 40 }))
}

/// The model makes a plan of one todo, which is done at once.
pub(crate) fn plans() -> Reply {
    let todos = json!({"todos": [{"title": "make it", "status": "done"}]});
    reply("A plan.", "update_plan", todos.to_string())
}

/// The model asks for a command, or another tool with one argument.
pub(crate) fn asks_for(tool: &str, command: &str) -> Reply {
    reply("", tool, json!({ "command": command }).to_string())
}

/// The model asks the operator.
pub(crate) fn asks_operator(question: &str) -> Reply {
    reply("", "ask_operator", json!({ "question": question }).to_string())
}

/// The model claims to be finished.
pub(crate) fn finishes() -> Reply {
    reply("", "finish", json!({"summary": "made it"}).to_string())
}

/// The model can't be reached.
pub(crate) fn fails(class: FailureClass, retry_after: Option<Span>) -> Reply {
    let message = "no luck".to_string();
    Err(Box::new(ModelFailure { class, message, retry_after, received: Received::default() }))
}

/// A small engine. It stops with an error when the model is out of replies.
pub(crate) struct Desk {
    pub(crate) run: Run,
    pub(crate) records: Arc<Mutex<Vec<Record>>>,
    replies: VecDeque<Reply>,
}

impl Desk {
    /// An engine with a new run.
    pub(crate) fn new(replies: Vec<Reply>) -> Desk {
        Desk::with(replies, |_| {})
    }

    /// One whose terms are changed before it begins.
    pub(crate) fn with(replies: Vec<Reply>, change: impl FnOnce(&mut Terms)) -> Desk {
        let id = RunId::from_entropy([7; RUN_ID_LENGTH]);
        let mut terms = terms();
        change(&mut terms);
        let record = create(terms, NOW);
        let run = Run::begin(id, &record).unwrap();
        Desk { run, records: Arc::new(Mutex::new(vec![record])), replies: replies.into() }
    }

    /// A process takes the run; whatever the one before had under way is lost.
    pub(crate) fn recover(&mut self) {
        self.take(recovered()).unwrap();
    }

    /// The operator gives an order, which is carried out.
    pub(crate) fn order(&mut self, command: Command) {
        self.take(Input::Command(command, client())).unwrap();
    }

    /// The operator gives an order, and the process dies before what it leads to has ended.
    pub(crate) fn order_and_die(&mut self, command: Command) {
        let turned = turn(&self.run, &Input::Command(command, client()), NOW).unwrap();
        self.run = turned.run;
        self.records.lock().unwrap().extend(turned.records);
    }

    /// Serves the run from its first record on.
    pub(crate) fn serve(mut self) -> (Client, RunId, Option<Run>) {
        let (inbox, mut asked) = mpsc::channel::<Asked>(4);
        let (head_sender, head) = watch::channel(self.run.seq);
        let (run_sender, run) = watch::channel(self.run.clone());
        let (deltas, _) = broadcast::channel(4);
        let halted = Arc::new(OnceLock::new());
        let reader = Arc::new(Shelf(self.records.clone()));
        let (_, today) = watch::channel(None);
        let handle = Handle { inbox, head, run, today, deltas, reader, halted: halted.clone() };
        let id = self.run.id.clone();
        tokio::spawn(async move {
            let mut result = self.take(recovered());
            run_sender.send_replace(self.run.clone());
            head_sender.send_replace(self.run.seq);
            while result.is_ok() {
                let Some(Asked { command, client, answer }) = asked.recv().await else { return };
                result = match turn(&self.run, &Input::Command(command.clone(), client.clone()), NOW) {
                    Err(refusal) => {
                        let _ = answer.send(Err(refusal));
                        continue;
                    }
                    Ok(_) => self.take(Input::Command(command, client)),
                };
                run_sender.send_replace(self.run.clone());
                head_sender.send_replace(self.run.seq);
                let _ = answer.send(Ok(self.run.seq));
            }
            let _ = halted.set(result.err().unwrap());
        });
        (Client::new(client(), handle, Seq(0)), id, None)
    }

    /// One input, and all that follows from it.
    fn take(&mut self, input: Input) -> Result<(), String> {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            let turned = turn(&self.run, &input, NOW).map_err(|refusal| refusal.to_string())?;
            self.run = turned.run;
            self.records.lock().unwrap().extend(turned.records);
            for effect in turned.effects {
                inputs.extend(self.work(effect)?.map(Input::Outcome));
            }
        }
        Ok(())
    }

    fn work(&mut self, effect: Effect) -> Result<Option<Outcome>, String> {
        Ok(match effect {
            Effect::Prepare(calls) => Some(Outcome::Prepared(calls.iter().map(facts).collect())),
            Effect::CallModel(request) => {
                let result = self.replies.pop_front().ok_or("out of replies")?;
                Some(Outcome::Model { call: request.call, result })
            }
            Effect::RunTool(permit) => {
                let text = "made\n".to_string();
                let outcome = ToolOutcome {
                    kind: OutcomeKind::Done,
                    bytes: 5,
                    text,
                    took: Span(1_500),
                    class: None,
                    watched: Vec::new(),
                };
                Some(Outcome::Tool { call: permit.call().id, outcome })
            }
            Effect::RunCheck { index, .. } => Some(Outcome::Check { index, passed: true, detail: String::new() }),
            Effect::Probe { call, .. } => Some(Outcome::Probed { call, probe: Probe::Unknown }),
            Effect::ReadBack { call, .. } => {
                Some(Outcome::ReadBack { call, text: Err("nothing is read here".to_string()) })
            }
            Effect::EndWork { .. } => None,
        })
    }
}

fn client() -> ClientId {
    ClientId("test".to_string())
}

fn recovered() -> Input {
    let (host, version) = ("here".to_string(), "0".to_string());
    Input::Recovered { owner: Owner { pid: 7, host, version, mode: OwnerMode::Drives }, lacks: Vec::new() }
}

/// A call touches what its command says: `make all` is previewed as `$ make all`.
fn facts(call: &ToolCall) -> (CallId, Facts) {
    let arguments: serde_json::Value = serde_json::from_str(&call.arguments).unwrap();
    let command = arguments.get("command").and_then(serde_json::Value::as_str).unwrap_or_default().to_string();
    let (title, preview) = (command.lines().next().unwrap_or_default().to_string(), format!("$ {command}"));
    let binding = vec!["folder=/srv/work".to_string()];
    let reach = "runs a program".to_string();
    (call.id, Facts { title, reach, preview, binding, ..Facts::default() })
}

fn terms() -> Terms {
    let tool = ToolSpec {
        name: "run_command".to_string(),
        description: "Runs a command.".to_string(),
        schema: json!({"type": "object"}),
        effect: EffectClass::External,
        noise: Noise::default(),
    };
    Terms {
        goal: Goal::try_from("make it".to_string()).unwrap(),
        workspace: "/srv/work".to_string(),
        limits: Limits::default(),
        checks: Vec::new(),
        wrap_up: false,
        model: ModelSpec {
            name: "scripted/x".to_string(),
            dialect: Dialect::Scripted,
            address: "x".to_string(),
            model: "scripted".to_string(),
            key_variable: None,
            window: limits::WINDOW_TOKENS,
            max_output: limits::OUTPUT_TOKENS,
            most_output: None,
            price: Some(Price::FREE),
        },
        tools: vec![tool],
        instructions: String::new(),
        guide: None,
        rehearsal: false,
        trust: Trust::Ask,
        keep_full_trust: false,
    }
}

struct Shelf(Arc<Mutex<Vec<Record>>>);

#[async_trait]
impl Reader for Shelf {
    async fn read(&self, from: Seq, most: usize) -> Result<Vec<Record>, StoreError> {
        let records = self.0.lock().unwrap();
        Ok(records.iter().filter(|record| record.seq >= from).take(most).cloned().collect())
    }
}

/// Paper to print on. It may tear: then it takes no more.
#[derive(Clone, Default)]
pub(crate) struct Paper {
    bytes: Arc<Mutex<Vec<u8>>>,
    room: Option<usize>,
}

impl Paper {
    /// Paper that takes so many bytes and then tears.
    pub(crate) fn torn_after(bytes: usize) -> Paper {
        Paper { room: Some(bytes), ..Paper::default() }
    }

    /// What stands on it.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().unwrap()).into_owned()
    }

    /// Waits until it says this.
    pub(crate) async fn has(&self, text: &str) {
        for _ in 0..10_000 {
            if self.text().contains(text) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        panic!("{text:?} was never printed, but\n{}", self.text());
    }
}

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut paper = self.bytes.lock().unwrap();
        let room = self.room.map_or(bytes.len(), |room| room.saturating_sub(paper.len()).min(bytes.len()));
        if room == 0 && !bytes.is_empty() {
            return Err(std::io::ErrorKind::BrokenPipe.into());
        }
        paper.extend_from_slice(&bytes[..room]);
        Ok(room)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
