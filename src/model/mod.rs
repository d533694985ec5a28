//! Floor 3: providers of models. Each adapter encodes a request, decodes a stream, and classifies what goes wrong;
//! it never decides what follows.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use crate::domain::model::Delta;
use crate::domain::model::Dialect;
use crate::domain::model::ModelFailure;
use crate::domain::model::ModelReply;
use crate::domain::model::ModelRequest;
use crate::domain::model::ModelSpec;
use crate::model::http::credential;
use crate::model::openai::OpenAi;
use crate::model::scripted::Scripted;

pub mod http;
pub mod incoming;
pub mod openai;
pub mod prices;
pub mod repetition;
pub mod replay;
#[cfg(test)]
mod sample;
pub mod script;
pub mod scripted;
pub mod sse;

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
    /// The key is not in the environment.
    #[error("{model} needs a key: the variable {variable} is not set. Nothing was sent. Do: export {variable}=…")]
    NoKey {
        /// The variable that should hold it.
        variable: String,
        /// The model.
        model: String,
    },
    /// What is in the environment can't be a key.
    #[error("{model} can't use the key in {variable}: it has characters that no key has. Nothing was sent")]
    BadKey {
        /// The variable that holds it.
        variable: String,
        /// The model.
        model: String,
    },
    /// The address of the provider can't be used. It is not repeated: it may hold a password.
    #[error("the address of {model} can't be used: {problem}. Nothing was sent")]
    Address {
        /// The model.
        model: String,
        /// What is wrong with it.
        problem: String,
    },
    /// There is no way to make encrypted connections.
    #[error(
        "encrypted connections can't be made: {0}. Nothing was sent; where certificates are missing, install the \
         package ca-certificates"
    )]
    Tls(String),
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

/// The model that a spec describes, ready to be asked.
///
/// # Errors
/// What is wrong with its script, its address or its key, before anything is sent.
pub fn open(spec: &ModelSpec) -> Result<Arc<dyn Model>, ModelError> {
    match spec.dialect {
        Dialect::Openai => Ok(Arc::new(OpenAi::new(spec, credential(spec)?)?)),
        Dialect::Scripted => Ok(Arc::new(Scripted::load(&spec.address)?)),
    }
}
