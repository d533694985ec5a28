//! A scene for the tests of this folder: a temporary folder with a workspace and a folder that is off limits.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::Path;
use std::path::PathBuf;

use tempfile::TempDir;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use crate::domain::approval::By;
use crate::domain::id::CallId;
use crate::domain::id::ClientId;
use crate::domain::time::Timestamp;
use crate::domain::tool::CallState;
use crate::domain::tool::EffectClass;
use crate::domain::tool::Permit;
use crate::domain::tool::ToolCall;
use crate::tools::Executed;
use crate::tools::Reins;
use crate::tools::Scene;
use crate::tools::Toolbox;
use crate::tools::sandbox::Sandbox;

pub(crate) struct Stage {
    pub(crate) scene: Scene,
    root: PathBuf,
    _folder: TempDir,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let workspace = root.join("ws");
        fs::create_dir(&workspace).unwrap();
        let scene = Scene {
            workspace,
            off_limits: vec![root.join("state"), root.join("pre-images")],
            pre_images: Some(root.join("pre-images")),
            program: PathBuf::from("/no/such/program"),
            passed_variables: Vec::new(),
            sandbox: Sandbox::default(),
            git: crate::tools::gits::own::Own::default(),
        };
        Stage { scene, root, _folder: folder }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Writes a file below the workspace, with its folders.
    pub(crate) fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.scene.workspace.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.scene.workspace.join(path)).unwrap()
    }

    /// A text in which the temporary folder is called `ROOT`.
    pub(crate) fn neutral(&self, text: &str) -> String {
        text.replace(self.root.to_str().unwrap(), "ROOT")
    }

    pub(crate) fn toolbox(&self) -> Toolbox {
        Toolbox::new(self.scene.clone())
    }

    /// A call as it stands when it was prepared just now.
    pub(crate) async fn call(&self, tool: &str, arguments: &str) -> ToolCall {
        let effect = self.toolbox().specs().iter().find(|spec| spec.name == tool).map(|spec| spec.effect);
        let mut call = ToolCall {
            state: CallState::Running,
            allowed: Some(By::Operator(ClientId("test".to_string()))),
            attempts: 1,
            ..ToolCall::proposed(CallId(1), "", tool, arguments, effect.unwrap_or(EffectClass::External), Timestamp(0))
        };
        call.facts = Some(self.toolbox().prepare(&call).await);
        call
    }

    /// Executes a prepared call.
    pub(crate) async fn execute(&self, call: &ToolCall) -> Executed {
        self.toolbox().execute(Permit::of(call).unwrap(), reins()).await
    }

    /// Prepares and executes a call: its kind and its text.
    pub(crate) async fn run(&self, tool: &str, arguments: &str) -> String {
        let call = self.call(tool, arguments).await;
        if let Some(problem) = call.facts.as_ref().and_then(|facts| facts.problem.as_ref()) {
            return self.neutral(&format!("{:?}: {}", problem.kind, problem.text));
        }
        match self.execute(&call).await {
            Executed::Ended(outcome) => self.neutral(&format!("{:?}: {}", outcome.kind, outcome.text)),
            Executed::Drifted(text) => self.neutral(&format!("Drifted: {text}")),
        }
    }
}

pub(crate) fn reins() -> Reins {
    Reins { deltas: broadcast::Sender::new(16), cancel: CancellationToken::new() }
}
