//! Floor 3: providers of models. Each adapter encodes a request, decodes a stream, and classifies what goes wrong;
//! it never decides what follows.

use async_trait::async_trait;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use crate::domain::model::Delta;
use crate::domain::model::ModelFailure;
use crate::domain::model::ModelReply;
use crate::domain::model::ModelRequest;

pub mod incoming;
pub mod script;
pub mod scripted;

/// What goes wrong before a model can be asked anything.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The script can't be used.
    #[error("the script {path} can't be used, nothing was started: {problem}")]
    Script {
        /// Path of the script.
        path: String,
        /// Which step, and what is wrong with it.
        problem: String,
    },
}

/// Something that answers requests.
#[async_trait]
pub trait Model: Send + Sync {
    /// One request, one attempt. Streamed text goes to `deltas`, where it may be lost; the reply has it all.
    /// When `cancel` fires, the call ends within a second with `FailureClass::Cancelled` and what had come.
    async fn call(
        &self,
        request: ModelRequest,
        deltas: broadcast::Sender<Delta>,
        cancel: CancellationToken,
    ) -> Result<ModelReply, ModelFailure>;
}
