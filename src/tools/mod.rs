//! Floor 3: hands. A tool says what a call would touch without changing anything, and does it when it is permitted.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use crate::domain::model::Delta;
use crate::domain::terms::Check;
use crate::domain::tool::Facts;
use crate::domain::tool::Permit;
use crate::domain::tool::Probe;
use crate::domain::tool::ToolCall;
use crate::domain::tool::ToolOutcome;
use crate::domain::tool::ToolSpec;

/// Where calls act. Fixed for the life of the run; nothing the model sends can move it.
#[derive(Clone, Debug)]
pub struct Scene {
    /// The folder of the run: absolute and canonical.
    pub workspace: PathBuf,
    /// Folders no tool may touch: tiller's own state and configuration.
    pub off_limits: Vec<PathBuf>,
    /// Our own program, started again as the guard of a child.
    pub program: PathBuf,
    /// Names of environment variables that the operator lets through to children.
    pub passed_variables: Vec<String>,
}

/// What a running call may use: a way to show output as it comes, and the sign to end.
#[derive(Clone)]
pub struct Reins {
    /// Output as it comes; may be lost.
    pub deltas: broadcast::Sender<Delta>,
    /// Fires when the call must end: TERM, `limits::KILL_GRACE`, KILL.
    pub cancel: CancellationToken,
}

/// One tool.
#[async_trait]
pub trait Tool: Send + Sync {
    /// What it is.
    fn spec(&self) -> ToolSpec;
    /// What a call with these arguments would touch. Changes nothing.
    async fn prepare(&self, scene: &Scene, arguments: &str) -> Facts;
    /// Does it. The facts are those that the permit is bound to, found again just now.
    async fn execute(&self, scene: &Scene, call: &ToolCall, facts: &Facts, reins: Reins) -> ToolOutcome;
}

/// What became of an attempt to run a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Executed {
    /// It ran and ended.
    Ended(ToolOutcome),
    /// What it would touch is no longer what was decided about; nothing was done. The sentence says what changed.
    Drifted(String),
}

/// The tools of a run.
#[derive(Clone)]
pub struct Toolbox {
    tools: BTreeMap<String, Arc<dyn Tool>>,
    scene: Scene,
}
