//! A workspace with tools that act in it and a gate that judges them, and what the tests of this program ask of a stage
//! besides what all do.

use std::fs;
use std::path::Path;
use std::path::PathBuf;

use serde_json::Value;
use serde_json::json;
use tempfile::TempDir;
use tiller::domain::approval::By;
use tiller::domain::id::CallId;
use tiller::domain::id::ClientId;
use tiller::domain::id::RUN_ID_LENGTH;
use tiller::domain::id::RunId;
use tiller::domain::run::Run;
use tiller::domain::terms::Terms;
use tiller::domain::time::Now;
use tiller::domain::time::Timestamp;
use tiller::domain::tool::CallState;
use tiller::domain::tool::EffectClass;
use tiller::domain::tool::Permit;
use tiller::domain::tool::ToolCall;
use tiller::machine;
use tiller::policy::permission;
use tiller::policy::permission::Judgement;
use tiller::tools::Executed;
use tiller::tools::Reins;
use tiller::tools::Scene;
use tiller::tools::Toolbox;
use tiller::tools::sandbox::Sandbox;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use crate::real::Said;
use crate::real::Stage;

/// A workspace `ws`, a home `home/op` with tiller's own folders, and tools for both.
pub(crate) struct World {
    dir: TempDir,
    pub(crate) toolbox: Toolbox,
    run: Run,
}

impl World {
    pub(crate) fn new() -> World {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let own = [root.join("home/op/.local/state/tiller"), root.join("home/op/.config/tiller")];
        for folder in own.iter().chain(&[root.join("ws/src"), root.join("ws/bin"), root.join("ws-evil")]) {
            fs::create_dir_all(folder).unwrap();
        }
        fs::write(root.join("ws/src/a.rs"), "fn a() {}\n").unwrap();
        fs::write(root.join("ws/src/b.txt"), "b\n").unwrap();
        fs::write(root.join("ws/be.sh"), "touch MARK\n").unwrap();
        let scene = Scene {
            workspace: root.join("ws"),
            off_limits: own.to_vec(),
            pre_images: None,
            program: PathBuf::from(env!("CARGO_BIN_EXE_tiller")),
            passed_variables: Vec::new(),
            sandbox: Sandbox::default(),
            git: tiller::tools::gits::own::Own::default(),
        };
        let terms: Terms = serde_json::from_value(json!({
            "goal": "look", "workspace": root.join("ws"), "limits": tiller::domain::budget::Limits::default(),
            "checks": [], "tools": [], "instructions": "",
            "model": { "name": "local/m", "dialect": "openai", "address": "http://127.0.0.1:1/v1", "model": "m",
                "key_variable": null, "window": 1000, "max_output": 100, "most_output": null, "price": null },
        }))
        .unwrap();
        let first = machine::create(terms, Now::default());
        let run = Run::begin(RunId::from_entropy([1; RUN_ID_LENGTH]), &first).unwrap();
        World { dir, toolbox: Toolbox::new(scene), run }
    }

    /// A place in it: `/ws/…` and `/home/op/…` are those of the case, all else is below its root.
    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(path.trim_start_matches('/'))
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        fs::write(self.at(path), text).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.at(path)).unwrap()
    }

    /// A call as it stands when it was prepared just now.
    pub(crate) async fn call(&self, tool: &str, arguments: &Value) -> ToolCall {
        let specs = self.toolbox.specs();
        let effect = specs.iter().find(|spec| spec.name == tool).map_or(EffectClass::External, |spec| spec.effect);
        let mut call = ToolCall {
            state: CallState::Running,
            allowed: Some(By::Operator(ClientId("test".to_string()))),
            attempts: 1,
            ..ToolCall::proposed(CallId(1), "", tool, &arguments.to_string(), effect, Timestamp(0))
        };
        call.facts = Some(self.toolbox.prepare(&call).await);
        call
    }

    /// What the gate says of a call: `allow`, `ask` or `refuse`; and what it is shown as reaching, or why it is not run.
    pub(crate) fn judged(&self, call: &ToolCall) -> (&'static str, String) {
        let facts = call.facts.as_ref().unwrap();
        let root = self.at("").display().to_string();
        let neutral = |text: &str| text.replace(&root, "ROOT/");
        match permission::judge(&self.run, call, facts, 0) {
            Judgement::Allow(_) | Judgement::AllowByRule(_) | Judgement::AllowEdited(_) => {
                ("allow", neutral(&facts.reach))
            }
            Judgement::Ask(_) => ("ask", neutral(&facts.reach)),
            Judgement::Deny { text, .. } => ("refuse", text),
            Judgement::NotRun(problem) => ("refuse", neutral(&problem.text)),
        }
    }

    pub(crate) async fn execute(&self, call: &ToolCall) -> Executed {
        let reins = Reins { deltas: broadcast::Sender::new(16), cancel: CancellationToken::new() };
        self.toolbox.execute(Permit::of(call).unwrap(), reins).await
    }
}

/// A script of calls, one step each, and then a claim of being finished.
pub(crate) fn script(calls: &[(&str, Value)]) -> String {
    let step = |(number, (tool, arguments)): (usize, &(&str, Value))| {
        let raw = toml::Value::String(arguments.to_string());
        format!("[[step]]\nname = \"s{number}\"\ntext = \"Step.\"\ncalls = [ {{ tool = \"{tool}\", raw = {raw} }} ]\n")
    };
    let plan = json!({ "todos": [ { "id": "a", "title": "work", "status": "in_progress" } ] });
    let done = json!({ "mode": "patch", "todos": [ { "id": "a", "title": "work", "status": "done" } ] });
    let end = [("update_plan", done), ("finish", json!({ "summary": "done" }))];
    let all = [("update_plan", plan)].into_iter().chain(calls.iter().cloned()).chain(end);
    all.collect::<Vec<_>>().iter().enumerate().map(step).collect()
}

impl Stage {
    /// The words that start a run of this script.
    pub(crate) fn words(&self, script: &str) -> Vec<String> {
        let model = format!("scripted/{}", self.write("script.toml", script).display());
        ["run", "do it", "--plain", "--model", &model].map(String::from).to_vec()
    }

    /// Starts a run of this script with further words, and prints lines.
    pub(crate) fn start(&self, script: &str, further: &[&str]) -> Said {
        let words = self.words(script);
        let words: Vec<&str> = words.iter().map(String::as_str).chain(further.iter().copied()).collect();
        self.ask(&words)
    }
}

/// Every file below a folder with its bytes.
pub(crate) fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            found.extend(files(&entry.path()));
        } else if entry.file_type().unwrap().is_file() {
            found.push((entry.path(), fs::read(entry.path()).unwrap()));
        }
    }
    found
}

/// Whether a text holds some bytes.
pub(crate) fn holds(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}
