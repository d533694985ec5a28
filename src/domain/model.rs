//! Models: what one is, what it is asked, what it answers, how it fails.

use std::sync::Arc;

use serde::Deserialize;
use serde::Serialize;

use crate::domain::context::Excess;
use crate::domain::id::CallId;
use crate::domain::id::ModelCallId;
use crate::domain::message::Transcript;
use crate::domain::money::Price;
use crate::domain::money::Usage;
use crate::domain::status::Phase;
use crate::domain::time::Span;
use crate::domain::tool::ToolSpec;

/// A model as a run knows it. It can hold no secret: the key stays in the environment, named here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelSpec {
    /// `provider/model`, as the operator writes it.
    pub name: String,
    /// How to talk to it.
    pub dialect: Dialect,
    /// Base URL of the provider (`https://api.openai.com/v1`), or the path of the script.
    pub address: String,
    /// The model's own name on the wire.
    pub model: String,
    /// The environment variable that holds the key, where one is needed.
    pub key_variable: Option<String>,
    /// Context window in tokens.
    pub window: u64,
    /// Output asked for at most, in tokens.
    pub max_output: u64,
    /// Output that the model itself gives at most, in tokens; nothing when nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_output: Option<u64>,
    /// Micro-dollars per million tokens; nothing when nobody knows. Such a model is refused at start.
    pub price: Option<Price>,
}

/// How a model is talked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// OpenAI's chat completions, spoken by most.
    Openai,
    /// Replies read from a file.
    Scripted,
}

/// One request to a model.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelRequest {
    /// Which call of the run.
    pub call: ModelCallId,
    /// Which attempt at it, from 1.
    pub attempt: u32,
    /// Number of the iteration that makes it.
    pub iteration: u32,
    /// What that iteration is for.
    pub phase: Phase,
    /// What the call itself is for.
    pub purpose: Purpose,
    /// The system text.
    pub system: String,
    /// The conversation as far as it is sent, shared with the run.
    pub entries: Transcript,
    /// The whole of it, never sent: a scripted model finds its place in it. Nothing for any other model.
    pub talk: Transcript,
    /// The engine's last word: the plan as it stands and what this phase is for.
    pub closing: String,
    /// The tools that may be used, shared with the run.
    pub offer: Arc<Offer>,
    /// Output asked for at most, in tokens.
    pub max_output: u64,
    /// Temperature, in hundredths; nothing leaves it to the provider.
    pub temperature_percent: Option<u32>,
}

impl ModelRequest {
    /// Size of everything that is sent, in bytes: what the estimate of its tokens rests on.
    pub fn bytes(&self) -> u64 {
        (self.system.len() + self.closing.len() + self.entries.bytes() + self.offer.bytes) as u64
    }
}

/// The tools that a run offers its model. They stay the same for the life of the run, so they are put together and
/// measured once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Offer {
    tools: Vec<ToolSpec>,
    bytes: usize,
}

impl Offer {
    /// The offer of these tools.
    pub fn new(tools: Vec<ToolSpec>) -> Self {
        let bytes = tools.iter().map(|tool| tool.description.len() + tool.schema.to_string().len() + 32).sum();
        Offer { tools, bytes }
    }

    /// The tools, control tools first.
    pub fn tools(&self) -> &[ToolSpec] {
        &self.tools
    }

    /// The tool of this name.
    pub fn find(&self, name: &str) -> Option<&ToolSpec> {
        self.tools.iter().find(|tool| tool.name == name)
    }
}

/// A whole reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelReply {
    /// Its text, possibly empty.
    #[serde(default)]
    pub text: String,
    /// Its reasoning, where the provider shows it. Not sent back; for the operator.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reasoning: String,
    /// The calls it asks for.
    #[serde(default)]
    pub calls: Vec<AskedCall>,
    /// Content of kinds that this version does not know, as it came; shown, never sent back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub opaque: Vec<String>,
    /// Why it ended.
    pub stop: StopReason,
    /// Tokens as reported; nothing when the provider was silent.
    pub usage: Option<Usage>,
    /// Bytes of text, reasoning and arguments received, for an estimate when usage is missing.
    #[serde(default)]
    pub received_bytes: u64,
}

impl ModelReply {
    /// Whether its provider broke it off to go on with, and it holds something to go on from and no call.
    pub fn is_gone_on_with(&self) -> bool {
        self.stop == StopReason::Paused && self.calls.is_empty() && !self.text.trim().is_empty()
    }
}

/// A call as a reply asks for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedCall {
    /// The provider's id; empty when it gave none.
    #[serde(default)]
    pub id: String,
    /// Name of the tool.
    pub name: String,
    /// Arguments, raw, possibly not JSON.
    pub arguments: String,
}

/// What a model call is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// The reply of an iteration.
    #[default]
    Turn,
    /// Whether a check holds that the model judges: the number of the check.
    Judge(usize),
    /// A summary of older iterations.
    Summary,
}

impl FailureClass {
    /// What of the request was too much, where the provider refused it for that.
    pub fn excess(self) -> Option<Excess> {
        match self {
            FailureClass::ContextLength => Some(Excess::Tokens),
            FailureClass::TooLarge => Some(Excess::Bytes),
            FailureClass::MissingCredentials
            | FailureClass::Auth
            | FailureClass::Billing
            | FailureClass::Permission
            | FailureClass::ModelConfig
            | FailureClass::BadRequest
            | FailureClass::RateLimited
            | FailureClass::Overloaded
            | FailureClass::Network
            | FailureClass::NoServer
            | FailureClass::StreamStalled
            | FailureClass::StreamBroken
            | FailureClass::Endless
            | FailureClass::Cancelled
            | FailureClass::Degenerate
            | FailureClass::Unknown => None,
        }
    }
}

impl Purpose {
    /// Whether it is the usual one, which its record does not mention.
    pub fn is_turn(&self) -> bool {
        *self == Purpose::Turn
    }
}

/// Why a reply ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model was done.
    End,
    /// It wants its calls run.
    Calls,
    /// It reached the output limit.
    Length,
    /// The provider's filter, or the model, refused.
    Refused,
    /// The provider broke a long turn off and goes on when asked.
    Paused,
    /// Anything else, in the provider's word.
    Other(String),
}

/// A model call that gave no whole reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelFailure {
    /// Its class: what follows depends on nothing else.
    pub class: FailureClass,
    /// What happened, for the operator: one sentence without secrets.
    pub message: String,
    /// How long the provider asks to wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Span>,
    /// What had come when it failed.
    #[serde(default)]
    pub received: Received,
}

/// What had come of a reply that did not come whole: the basis of its charge (docs/ENGINE.md §8.3).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Received {
    /// Whether the provider took the request; if not, it costs nothing.
    pub accepted: bool,
    /// Tokens as reported so far.
    pub usage: Option<Usage>,
    /// Bytes of text, reasoning and arguments received.
    pub bytes: u64,
    /// The text received, kept as a note for the operator; at most `limits::LIVE_TEXT_MAX_BYTES`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
}

/// Classes of failure (docs/ENGINE.md §14.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// No key for the provider.
    MissingCredentials,
    /// 401.
    Auth,
    /// 402, or a quota or balance in the text.
    Billing,
    /// 403.
    Permission,
    /// 404, an unknown model, a parameter that is not supported.
    ModelConfig,
    /// The request is longer than the model's context.
    ContextLength,
    /// 413: the request has more bytes than the provider takes.
    TooLarge,
    /// Another 400 or 422.
    BadRequest,
    /// 429.
    RateLimited,
    /// 5xx, 529, 408, 409.
    Overloaded,
    /// No connection, no name, TLS, reset before the first byte.
    Network,
    /// A connection within this machine was refused: no server runs there.
    NoServer,
    /// Silence for too long.
    StreamStalled,
    /// Closed before its end, broken frames, an error inside the stream.
    StreamBroken,
    /// More text than a reply may have.
    Endless,
    /// The text went in circles and was broken off.
    Degenerate,
    /// Cancelled by us.
    Cancelled,
    /// Anything else.
    Unknown,
}

/// A scrap of streamed text on its way to a screen. Never stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delta {
    /// What it belongs to.
    pub source: DeltaSource,
    /// The text.
    pub text: String,
}

/// What a delta belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeltaSource {
    /// Text of the model's reply.
    Text(ModelCallId),
    /// Reasoning of the model.
    Reasoning(ModelCallId),
    /// Arguments of a call being written.
    Arguments(ModelCallId),
    /// Output of a running tool.
    Tool(CallId),
    /// Nothing: so many scraps were lost on the way, before any room could get them.
    Lost(u64),
}
