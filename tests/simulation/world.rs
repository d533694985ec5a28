//! The world outside: files, a shell that counts its real executions, and the provider's bill.

use std::collections::BTreeMap;

use serde_json::Value;
use tiller::domain::id::CallId;
use tiller::domain::text::sha256_hex;
use tiller::domain::time::Span;
use tiller::domain::tool::Digest;
use tiller::domain::tool::EffectClass;
use tiller::domain::tool::ErrorClass;
use tiller::domain::tool::Facts;
use tiller::domain::tool::FileWrite;
use tiller::domain::tool::OutcomeKind;
use tiller::domain::tool::Permit;
use tiller::domain::tool::Probe;
use tiller::domain::tool::Problem;
use tiller::domain::tool::ProblemKind;
use tiller::domain::tool::ToolCall;
use tiller::domain::tool::ToolOutcome;
use tiller::machine::Outcome;

#[derive(Default)]
pub struct World {
    pub files: BTreeMap<String, String>,
    /// How often each call that changes the world really ran.
    pub executions: BTreeMap<CallId, u32>,
    /// What each execution was about, as it was found to be when it ran.
    pub executed: Vec<(CallId, Digest)>,
    /// The arguments of each execution.
    pub arguments: Vec<(CallId, String)>,
    /// How often a result says the same over again: how long it is.
    pub words: usize,
    /// Sabotage: runs a call as the model asked for it, whatever the operator changed.
    pub ignores_edits: bool,
    /// Sabotage: runs a call whatever it would touch by now.
    pub honours_stale: bool,
    /// What the provider knows it is owed, in micro-dollars.
    pub bill: u64,
}

impl World {
    pub fn prepare(&self, call: &ToolCall) -> Facts {
        let value: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
        let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_string);
        let facts = match call.tool.as_str() {
            "read_file" => text("path").map(|path| self.read_facts(&path)),
            "write_file" => text("path").zip(text("content")).map(|(path, content)| self.write_facts(&path, &content)),
            _ => text("command").map(|command| Facts {
                title: command,
                reach: "a program".to_string(),
                ..Facts::default()
            }),
        };
        facts.unwrap_or_else(|| {
            let problem = Problem::new(ProblemKind::InvalidArguments, "a field is missing".to_string());
            Facts { problem: Some(problem), ..Facts::default() }
        })
    }

    fn read_facts(&self, path: &str) -> Facts {
        Facts {
            title: path.to_string(),
            inside: !path.starts_with('/'),
            binding: vec![format!("path={path}")],
            ..Facts::default()
        }
    }

    fn write_facts(&self, path: &str, content: &str) -> Facts {
        let before = self.files.get(path).map(|old| sha256_hex(old.as_bytes()));
        let after = sha256_hex(content.as_bytes());
        let binding =
            vec![format!("path={path}"), format!("content before={before:?}"), format!("content after={after}")];
        let write = Some(FileWrite { path: path.to_string(), before, after });
        Facts { title: path.to_string(), inside: true, binding, write, ..Facts::default() }
    }

    /// Runs a call for real, as the tools do: what it would touch is found out once more, and must be the same.
    pub fn execute(&mut self, permit: &Permit) -> Outcome {
        let call = permit.call();
        let facts = self.prepare(call);
        let digest = Digest::of(call, &facts);
        if digest != *permit.digest() && !self.honours_stale {
            return Outcome::Drifted { call: call.id, why: "the file changed".to_string() };
        }
        if call.effect != EffectClass::Read {
            *self.executions.entry(call.id).or_default() += 1;
        }
        self.executed.push((call.id, digest));
        let original = call.edited.as_ref().map(|edited| &edited.original).filter(|_| self.ignores_edits);
        let arguments = original.unwrap_or(&call.arguments);
        self.arguments.push((call.id, arguments.clone()));
        let value: Value = serde_json::from_str(arguments).unwrap_or_default();
        let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_string();
        let (kind, text) = match call.tool.as_str() {
            "read_file" => match self.files.get(&text("path")) {
                Some(content) => (OutcomeKind::Done, content.clone()),
                None => (OutcomeKind::Failed, "no such file".to_string()),
            },
            "write_file" => {
                self.files.insert(text("path"), text("content"));
                (OutcomeKind::Done, "written".to_string())
            }
            _ if text("command").starts_with("hang") => (OutcomeKind::TimedOut, "it was ended after 120 s".to_string()),
            _ if text("command").contains("fail") => (OutcomeKind::Failed, "exit status 1".to_string()),
            _ => (OutcomeKind::Done, format!("ran {}", text("command"))),
        };
        let text =
            if self.words > 0 { format!("{text} {}", format!("word {} ", call.id).repeat(self.words)) } else { text };
        // Some of what fails is not allowed by the system.
        let is_forbidden = kind == OutcomeKind::Failed && text.len().is_multiple_of(3);
        let class = is_forbidden.then_some(ErrorClass::Permission);
        Outcome::Tool {
            call: call.id,
            outcome: ToolOutcome { kind, bytes: text.len() as u64, text, took: Span(5), class, watched: Vec::new() },
        }
    }

    pub fn probe(&self, facts: &Facts) -> Probe {
        let Some(write) = &facts.write else { return Probe::Unknown };
        let now = self.files.get(&write.path).map(|content| sha256_hex(content.as_bytes()));
        match now {
            Some(hash) if hash == write.after => Probe::Done,
            hash if hash == write.before => Probe::NotDone,
            _ => Probe::Unknown,
        }
    }

    /// The check passes once some file has the right content.
    pub fn is_right(&self) -> bool {
        self.files.values().any(|content| content.contains("right"))
    }
}
