//! A file of rules in a folder of its own, a call, and what the gate says of it: by the functions that a run asks.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::Value;
use serde_json::json;
use tempfile::TempDir;
use tiller::domain::approval::Origin;
use tiller::domain::budget::Limits;
use tiller::domain::id::CallId;
use tiller::domain::id::RunId;
use tiller::domain::model::Dialect;
use tiller::domain::model::ModelSpec;
use tiller::domain::run::Run;
use tiller::domain::sandbox::Level;
use tiller::domain::terms::Goal;
use tiller::domain::terms::Terms;
use tiller::domain::time::Now;
use tiller::domain::time::Timestamp;
use tiller::domain::tool::CallState;
use tiller::domain::tool::EffectClass;
use tiller::domain::tool::Facts;
use tiller::domain::tool::ToolCall;
use tiller::domain::trust::Trust;
use tiller::engine::rulebook::Rulebook;
use tiller::machine::create;
use tiller::policy::permission;
use tiller::policy::permission::Judgement;

use crate::rules::line;

/// The folder of all calls here.
pub(crate) const WORKSPACE: &str = "/ws";
/// Long after any moment that a rule of these tests names.
pub(crate) const NOW: Timestamp = Timestamp(1_800_000_000_000);

pub(crate) struct Stage {
    pub(crate) dir: TempDir,
    pub(crate) book: Rulebook,
}

impl Stage {
    /// With this file of rules; none where the text is empty.
    pub(crate) fn new(text: &str) -> Stage {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config/rules.toml");
        let stage = Stage { dir, book: Rulebook::new(path, "op".to_string()) };
        if !text.is_empty() {
            stage.write(text);
        }
        stage
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().join("config/rules.toml")
    }

    pub(crate) fn write(&self, text: &str) {
        fs::create_dir_all(self.path().parent().unwrap()).unwrap();
        fs::write(self.path(), text).unwrap();
        fs::set_permissions(self.path(), fs::Permissions::from_mode(0o600)).unwrap();
    }

    pub(crate) fn text(&self) -> String {
        fs::read_to_string(self.path()).unwrap_or_default()
    }

    /// What the gate says of a line, where the box is whole: the words of the cases.
    pub(crate) fn says(&self, command: &str) -> &'static str {
        decision(&self.judged(shell(command), boxed(command)))
    }

    pub(crate) fn judged(&self, call: ToolCall, facts: Facts) -> Judgement {
        // A line runs in a full box, unless it is said.
        let level = facts.level.or(facts.line.as_ref().map(|_| Level::Full));
        let facts = Facts { level, ..facts };
        let facts = self.book.about(&call, facts, WORKSPACE, NOW);
        permission::judge(&run(), &call, &facts, 0)
    }
}

/// What is found out about a line where the box is whole.
pub(crate) fn boxed(command: &str) -> Facts {
    Facts { level: Some(Level::Full), unconfined: false, grave: Vec::new(), ..line::facts(command) }
}

/// As `boxed`, where there is no box.
pub(crate) fn bare(command: &str) -> Facts {
    Facts { level: Some(Level::None), unconfined: true, ..line::facts(command) }
}

pub(crate) fn decision(judgement: &Judgement) -> &'static str {
    match judgement {
        Judgement::Allow(_) | Judgement::AllowByRule(_) | Judgement::AllowEdited(_) => "allow",
        Judgement::Ask(_) => "ask",
        Judgement::Deny { .. } | Judgement::NotRun(_) => "refuse",
    }
}

pub(crate) fn shell(command: &str) -> ToolCall {
    call("shell", json!({ "command": command }), EffectClass::External)
}

pub(crate) fn call(tool: &str, arguments: Value, effect: EffectClass) -> ToolCall {
    ToolCall {
        id: CallId(1),
        wire_id: "c1".to_string(),
        tool: tool.to_string(),
        arguments: arguments.to_string(),
        effect,
        state: CallState::Prepared,
        facts: None,
        allowed: None,
        edited: None,
        origin: Origin::Here,
        is_unboxed: false,
        error: None,
        attempts: 0,
        since: NOW,
    }
}

/// A write to a file below the workspace.
pub(crate) fn write(path: &str) -> (ToolCall, Facts) {
    let whole = format!("{WORKSPACE}/{path}");
    let facts = Facts { inside: true, binding: vec![format!("path={whole}")], ..Facts::default() };
    (call("write_file", json!({ "path": path, "content": "x" }), EffectClass::WriteFile), facts)
}

pub(crate) fn run() -> Run {
    let model = ModelSpec {
        name: "scripted/x".to_string(),
        dialect: Dialect::Scripted,
        address: String::new(),
        model: "x".to_string(),
        key_variable: None,
        window: 1_000,
        max_output: 100,
        most_output: None,
        price: None,
    };
    let terms = Terms {
        goal: Goal::try_from("work".to_string()).unwrap(),
        workspace: WORKSPACE.to_string(),
        limits: Limits::default(),
        checks: Vec::new(),
        wrap_up: false,
        guide: None,
        model,
        tools: Vec::new(),
        instructions: String::new(),
        rehearsal: false,
        trust: Trust::Ask,
        keep_full_trust: false,
    };
    let first = create(terms, Now { at: NOW, ..Now::default() });
    Run::begin(RunId::from_entropy([7; 12]), &first).unwrap()
}
