//! A run that goes on and on, an iteration like the one before: each writes a file of 2 KiB that nobody has seen, the
//! operator allows it, and more than a kilobyte comes back. The window of its model fills up, so it is pruned and summarised as it goes. For counting
//! and measuring what an iteration, a fold, a clone and an open run cost.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::Value;
use serde_json::json;
use tiller::domain::approval::Decision;
use tiller::domain::command::Command;
use tiller::domain::event::Owner;
use tiller::domain::event::OwnerMode;
use tiller::domain::event::Record;
use tiller::domain::id::ClientId;
use tiller::domain::id::RunId;
use tiller::domain::model::ModelReply;
use tiller::domain::model::ModelRequest;
use tiller::domain::model::Purpose;
use tiller::domain::run::Run;
use tiller::domain::terms::Terms;
use tiller::domain::text::sha256_hex;
use tiller::domain::time::Now;
use tiller::domain::time::Span;
use tiller::domain::time::Timestamp;
use tiller::domain::tool::Facts;
use tiller::domain::tool::FileWrite;
use tiller::domain::tool::OutcomeKind;
use tiller::domain::tool::ToolOutcome;
use tiller::machine::Input;
use tiller::machine::Outcome;
use tiller::machine::create;
use tiller::machine::effect::Effect;
use tiller::machine::turn;

/// Bytes that each iteration writes.
const CONTENT_BYTES: usize = 2 * 1024;
/// Lines of the result, of 60 bytes each.
const RESULT_LINES: u64 = 20;

pub struct Steady {
    pub run: Run,
    /// What each commit writes, from the first on.
    pub batches: Vec<Vec<Record>>,
    asked: Option<Box<ModelRequest>>,
    at: u64,
}

/// The window of a usual model, in tokens.
pub const WINDOW: u64 = 200_000;

pub fn id() -> RunId {
    RunId::from_entropy([3; 12])
}

impl Steady {
    /// A run that was just created and has a plan.
    pub fn new() -> Steady {
        Steady::with_window(WINDOW)
    }

    /// The same, with a model whose window has so many tokens.
    pub fn with_window(window: u64) -> Steady {
        let first = create(terms(window), Now::default());
        let run = Run::begin(id(), &first).unwrap();
        let mut steady = Steady { run, batches: vec![vec![first]], asked: None, at: 1 };
        let owner = Owner { pid: 1, host: "h".to_string(), version: "0".to_string(), mode: OwnerMode::Drives };
        steady.take(Input::Recovered { owner, lacks: Vec::new() });
        steady.reply("update_plan", &json!({ "todos": [{ "title": "go on" }] }));
        steady
    }

    /// Goes on to the start of the next iteration's model call.
    pub fn iterate(&mut self) {
        let content = noise(u64::from(self.run.iteration.n), CONTENT_BYTES);
        let effects = self.reply("write_file", &json!({ "path": "notes.txt", "content": content }));
        let [Effect::Prepare(calls)] = &effects[..] else { panic!("{effects:?}") };
        let call = calls[0].id;
        self.take(Input::Outcome(Outcome::Prepared(vec![(call, facts(&content))])));
        let digest = self.run.waiting()[0].0.digest().unwrap();
        let decide = Command::Decide { call, digest, decision: Decision::AllowOnce };
        let effects = self.take(Input::Command(decide, ClientId("operator".to_string())));
        assert!(matches!(effects[..], [Effect::RunTool(_)]), "{effects:?}");
        let lines: Vec<String> =
            (0..RESULT_LINES).map(|line| noise(u64::from(self.run.iteration.n) + line, 60)).collect();
        let text = format!("Wrote notes.txt, {CONTENT_BYTES} bytes.\n{}", lines.join("\n"));
        let outcome = ToolOutcome {
            kind: OutcomeKind::Done,
            bytes: text.len() as u64,
            text,
            took: Span(3),
            class: None,
            watched: Vec::new(),
        };
        self.take(Input::Outcome(Outcome::Tool { call, outcome }));
        while self.asked.as_ref().is_some_and(|request| request.purpose == Purpose::Summary) {
            self.answer(SUMMARY, json!([]), "end");
        }
    }

    fn reply(&mut self, tool: &str, arguments: &Value) -> Vec<Effect> {
        let text = format!("On we go with {}.", noise(u64::from(self.run.iteration.n), 120));
        self.answer(&text, json!([{ "id": "w", "name": tool, "arguments": arguments.to_string() }]), "calls")
    }

    fn answer(&mut self, text: &str, calls: Value, stop: &str) -> Vec<Effect> {
        let request = self.asked.take().unwrap();
        // About as many bytes as a token has in code.
        let input = request.bytes() / 4;
        let usage = json!({ "input": input, "cache_read": 0, "cache_write": 0, "output": 700, "reasoning": 0 });
        let reply = json!({ "text": text, "calls": calls, "stop": stop, "usage": usage });
        let reply: ModelReply = serde_json::from_value(reply).unwrap();
        self.take(Input::Outcome(Outcome::Model { call: request.call, result: Ok(Box::new(reply)) }))
    }

    fn take(&mut self, input: Input) -> Vec<Effect> {
        self.at += 7;
        let now = Now { at: Timestamp(1_700_000_000_000 + self.at * 1_000), active: Span(self.at) };
        let turned = turn(&self.run, &input, now).unwrap();
        self.run = turned.run;
        if !turned.records.is_empty() {
            self.batches.push(turned.records);
        }
        for effect in &turned.effects {
            if let Effect::CallModel(request) = effect {
                self.asked = Some(request.clone());
            }
        }
        turned.effects
    }
}

/// Text that does not repeat itself, so that no compression makes it cheap.
pub fn noise(seed: u64, bytes: usize) -> String {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut letter = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'a' + (state >> 59) as u8 % 26)
    };
    (0..bytes).map(|_| letter()).collect()
}

fn facts(content: &str) -> Facts {
    let after = sha256_hex(content.as_bytes());
    let before = Some(sha256_hex(b"before"));
    let binding = vec!["path=/w/notes.txt".to_string(), format!("after={after}")];
    let write = Some(FileWrite { path: "/w/notes.txt".to_string(), before, after });
    let (title, reach) = ("notes.txt +1 -1".to_string(), "writes in the workspace".to_string());
    Facts { title, reach, inside: true, preview: content.to_string(), binding, write, ..Facts::default() }
}

/// A summary as the model is asked to write it.
const SUMMARY: &str = "## Facts found\nnotes.txt is written again and again\n## Decisions and reasons\nnone\n\
                       ## Files touched\nnotes.txt\n## Failed approaches\nnone\n## Next step\ngo on";

fn terms(window: u64) -> Terms {
    let no_limit = "unlimited";
    let limits = json!({ "active": no_limit, "loops": no_limit, "model_calls": no_limit, "tool_calls": no_limit,
                         "tokens": no_limit, "cost": no_limit });
    let price = json!({ "input": 1_000_000, "cache_read": 100_000, "cache_write": 1_000_000, "output": 5_000_000 });
    let model = json!({ "name": "s/s", "dialect": "openai", "address": "", "model": "s", "key_variable": null,
                        "window": window, "max_output": 4_000, "price": price });
    let tool = json!({ "name": "write_file", "description": "writes", "schema": {}, "effect": "write_file" });
    let terms = json!({ "goal": "go on and on", "workspace": "/w", "limits": limits, "checks": [], "model": model,
                        "tools": [tool], "instructions": "" });
    serde_json::from_value(terms).unwrap()
}
