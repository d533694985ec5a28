//! A bench for hostile commands: a workspace, a folder outside, and the shell as the engine calls it, in any box.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use tempfile::TempDir;
use tiller::domain::approval::By;
use tiller::domain::id::CallId;
use tiller::domain::id::ClientId;
use tiller::domain::limits;
use tiller::domain::sandbox::Level;
use tiller::domain::sandbox::READING_RULE;
use tiller::domain::terms::Check;
use tiller::domain::time::Timestamp;
use tiller::domain::tool::CallState;
use tiller::domain::tool::EffectClass;
use tiller::domain::tool::Permit;
use tiller::domain::tool::ToolCall;
use tiller::domain::tool::ToolOutcome;
use tiller::tools::Executed;
use tiller::tools::Reins;
use tiller::tools::Scene;
use tiller::tools::Toolbox;
use tiller::tools::sandbox::Maker;
use tiller::tools::sandbox::Sandbox;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

pub(crate) struct Bench {
    pub(crate) scene: Scene,
    pub(crate) outside: PathBuf,
    pub(crate) reins: Reins,
    _folder: TempDir,
}

/// Why there is no full box on this machine, if there is none. Asked without our own code, which could be wrong.
pub(crate) fn no_full_box() -> Option<&'static str> {
    static WHY: OnceLock<Option<String>> = OnceLock::new();
    let ask = || {
        let Some(maker) = Maker::find() else { return Some("bubblewrap is not installed".to_string()) };
        let words = ["--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "true"];
        let output = Command::new(maker.bwrap).args(words).output().unwrap();
        (!output.status.success()).then(|| String::from_utf8_lossy(&output.stderr).trim().to_string())
    };
    WHY.get_or_init(ask).as_deref()
}

/// The levels that this machine can have. What can't be played is told, by the name of the test.
pub(crate) fn levels(test: &str) -> Vec<Level> {
    match no_full_box() {
        None => vec![Level::Full, Level::Partial],
        Some(why) => {
            crate::skip::skip(&format!("{test}, full box: {why}"));
            vec![Level::Partial]
        }
    }
}

impl Bench {
    pub(crate) fn new(level: Level) -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (workspace, outside) = (root.join("ws"), root.join("outside"));
        fs::create_dir(&workspace).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("secret"), "GOT").unwrap();
        let scene = Scene {
            workspace,
            off_limits: Vec::new(),
            pre_images: None,
            program: PathBuf::from(env!("CARGO_BIN_EXE_tiller")),
            passed_variables: Vec::new(),
            sandbox: Sandbox { level, maker: Maker::find(), ..Sandbox::default() },
            git: tiller::tools::gits::own::Own::default(),
        };
        let reins = Reins { deltas: broadcast::Sender::new(limits::DELTAS), cancel: CancellationToken::new() };
        Bench { scene, outside, reins, _folder: folder }
    }

    /// Writes a file below the workspace, with its folders.
    pub(crate) fn write(&self, path: &str, content: &str) {
        let path = self.scene.workspace.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.scene.workspace.join(name).exists()
    }

    pub(crate) fn call(&self, arguments: &serde_json::Value) -> ToolCall {
        ToolCall {
            state: CallState::Running,
            allowed: Some(By::Operator(ClientId("test".to_string()))),
            attempts: 1,
            ..ToolCall::proposed(CallId(1), "", "shell", &arguments.to_string(), EffectClass::External, Timestamp(0))
        }
    }

    pub(crate) async fn execute(&self, arguments: &serde_json::Value, change: impl Fn(&mut ToolCall)) -> ToolOutcome {
        match self.executed(&self.decided(arguments, change).await).await {
            Executed::Ended(outcome) => outcome,
            Executed::Drifted(text) => panic!("drifted: {text}"),
        }
    }

    /// A call that is looked at and allowed, and not run yet.
    pub(crate) async fn decided(&self, arguments: &serde_json::Value, change: impl Fn(&mut ToolCall)) -> ToolCall {
        let mut call = self.call(arguments);
        call.facts = Some(Toolbox::new(self.scene.clone()).prepare(&call).await);
        change(&mut call);
        call
    }

    pub(crate) async fn executed(&self, call: &ToolCall) -> Executed {
        Toolbox::new(self.scene.clone()).execute(Permit::of(call).unwrap(), self.reins.clone()).await
    }

    /// Runs a line as a check.
    pub(crate) async fn check(&self, line: &str) -> (bool, String) {
        Toolbox::new(self.scene.clone()).check(&Check::Command(line.to_string()), self.reins.clone()).await
    }

    /// Runs a line as the operator allowed it.
    pub(crate) async fn run(&self, command: &str) -> ToolOutcome {
        self.execute(&serde_json::json!({ "command": command }), |_| {}).await
    }

    /// Runs a line as the read-only table allowed it.
    pub(crate) async fn read(&self, command: &str) -> ToolOutcome {
        let by_table = |call: &mut ToolCall| call.allowed = Some(By::Rule(READING_RULE.to_string()));
        self.execute(&serde_json::json!({ "command": command }), by_table).await
    }

    /// Runs a line outside of the box, as the operator wrote of this one call.
    pub(crate) async fn run_unboxed(&self, command: &str) -> ToolOutcome {
        self.execute(&serde_json::json!({ "command": command }), |call| call.is_unboxed = true).await
    }
}
