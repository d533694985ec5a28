//! The chat-completions dialect over HTTP, for OpenAI and all who speak it. This file does the sending and waiting;
//! `encode.rs` writes the request, `decode.rs` reads the reply, `classify.rs` says what a refusal means. One call is
//! one attempt: nothing is repeated here, and no redirect is followed.

use std::time::Duration;

use async_trait::async_trait;
use reqwest::Client;
use reqwest::RequestBuilder;
use reqwest::Response;
use reqwest::Url;
use secrecy::ExposeSecret;
use secrecy::SecretString;
use tokio::sync::broadcast;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::domain::limits::ERROR_BODY_MAX_BYTES;
use crate::domain::model::Delta;
use crate::domain::model::FailureClass;
use crate::domain::model::ModelFailure;
use crate::domain::model::ModelReply;
use crate::domain::model::ModelRequest;
use crate::domain::model::ModelSpec;
use crate::domain::model::Received;
use crate::domain::time::Span;
use crate::model::Model;
use crate::model::ModelError;
use crate::model::http::Quote;
use crate::model::http::Timeouts;
use crate::model::http::address;
use crate::model::http::cause;
use crate::model::http::client;
use crate::model::http::is_loopback;
use crate::model::http::is_refused;
use crate::model::http::retry_after;
use crate::model::incoming::Incoming;
use crate::model::openai::classify::ToldError;
use crate::model::openai::decode::Decoder;
use crate::model::openai::decode::Fault;
use crate::model::openai::encode::OutputField;

pub mod classify;
pub mod decode;
pub mod encode;

/// The host whose models demand the newer name for the output limit.
const OPENAI_HOST: &str = "api.openai.com";

/// A model that is reached over HTTP.
#[derive(Debug)]
pub struct OpenAi {
    client: Client,
    host: String,
    /// Whether it is an address within this machine.
    is_here: bool,
    /// The base URL, as it is configured; it holds no password.
    address: String,
    model: String,
    field: OutputField,
    key: Option<SecretString>,
    quote: Quote,
    timeouts: Timeouts,
}

impl OpenAi {
    /// The model that `spec` describes, with the key it needs, where it needs one.
    ///
    /// # Errors
    /// `ModelError` when its address can't be used, or no connections can be made. Nothing is sent yet.
    pub fn new(spec: &ModelSpec, key: Option<SecretString>) -> Result<OpenAi, ModelError> {
        OpenAi::with_timeouts(spec, key, Timeouts::default())
    }

    /// The same, with other waits than those of `limits`.
    ///
    /// # Errors
    /// As for `new`.
    pub fn with_timeouts(
        spec: &ModelSpec,
        key: Option<SecretString>,
        timeouts: Timeouts,
    ) -> Result<OpenAi, ModelError> {
        let address: Url = address(spec)?;
        let host = address.host_str().unwrap_or_default().to_string();
        let field = if host == OPENAI_HOST { OutputField::MaxCompletionTokens } else { OutputField::MaxTokens };
        Ok(OpenAi {
            client: client(&address, &timeouts)?,
            address: address.as_str().trim_end_matches('/').to_string(),
            host,
            is_here: is_loopback(&address),
            model: spec.model.clone(),
            field,
            quote: Quote::without(key.clone()),
            key,
            timeouts,
        })
    }
}

#[async_trait]
impl Model for OpenAi {
    async fn call(
        &self,
        request: ModelRequest,
        deltas: broadcast::Sender<Delta>,
        cancel: CancellationToken,
    ) -> Result<ModelReply, ModelFailure> {
        let mut decoder = Decoder::new(Incoming::new(request.call, deltas), self.quote.clone());
        match self.exchange(&request, &mut decoder, &cancel).await {
            Ok(()) => Ok(decoder.into_reply()),
            Err(trouble) => Err(trouble.failure(&decoder)),
        }
    }
}

/// Why a call gave no reply.
struct Trouble {
    class: FailureClass,
    message: String,
    retry_after: Option<Span>,
    sent: Sent,
}

/// Whether the provider took the request: what it took may cost something.
enum Sent {
    NotAccepted,
    Accepted,
}

impl Trouble {
    fn new(class: FailureClass, sent: Sent, message: impl Into<String>) -> Trouble {
        Trouble { class, message: message.into(), retry_after: None, sent }
    }

    fn failure(self, decoder: &Decoder) -> ModelFailure {
        let received = match self.sent {
            Sent::NotAccepted => Received::default(),
            Sent::Accepted => decoder.received(),
        };
        ModelFailure { class: self.class, message: self.message, retry_after: self.retry_after, received }
    }
}

impl From<Fault> for Trouble {
    fn from(fault: Fault) -> Trouble {
        Trouble::new(fault.class, Sent::Accepted, fault.message)
    }
}

/// What ended a wait before it gave anything.
enum Ended {
    Cancelled,
    TimedOut,
    Broken(reqwest::Error),
}

/// Waits for `work`, but not beyond `until` and not after a cancel.
async fn wait<T>(
    work: impl Future<Output = Result<T, reqwest::Error>>,
    until: Instant,
    cancel: &CancellationToken,
) -> Result<T, Ended> {
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(Ended::Cancelled),
        outcome = tokio::time::timeout_at(until, work) => match outcome {
            Ok(outcome) => outcome.map_err(Ended::Broken),
            Err(_) => Err(Ended::TimedOut),
        },
    }
}

impl OpenAi {
    /// Sends the request and reads the reply into `decoder`, until it is whole.
    async fn exchange(
        &self,
        request: &ModelRequest,
        decoder: &mut Decoder,
        cancel: &CancellationToken,
    ) -> Result<(), Trouble> {
        let body = encode::body(&self.model, self.field, request).map_err(|problem| {
            let message = format!("the conversation is out of order, nothing was sent: {problem}");
            Trouble::new(FailureClass::BadRequest, Sent::NotAccepted, message)
        })?;
        if cancel.is_cancelled() {
            return Err(Trouble::new(FailureClass::Cancelled, Sent::NotAccepted, "cancelled before it was sent"));
        }
        let first_byte = Instant::now() + self.timeouts.first_byte;
        let sending = self.request().json(&body).send();
        let response = wait(sending, first_byte, cancel).await.map_err(|ended| self.no_answer(ended))?;
        if response.status().as_u16() != 200 {
            return Err(self.refusal(response, cancel).await);
        }
        self.read(response, first_byte, decoder, cancel).await
    }

    fn request(&self) -> RequestBuilder {
        let request = self.client.post(format!("{}/chat/completions", self.address));
        match &self.key {
            Some(key) => request.bearer_auth(key.expose_secret()),
            None => request,
        }
    }

    async fn read(
        &self,
        mut response: Response,
        first_byte: Instant,
        decoder: &mut Decoder,
        cancel: &CancellationToken,
    ) -> Result<(), Trouble> {
        while !decoder.is_done() {
            let until = if decoder.is_empty() { first_byte } else { Instant::now() + self.timeouts.between };
            match wait(response.chunk(), until, cancel).await {
                Ok(Some(bytes)) => decoder.push(&bytes)?,
                Ok(None) => break,
                Err(Ended::Cancelled) => return Err(cancelled()),
                // Only the goodbye is missing: to ask again would be to pay twice.
                Err(Ended::TimedOut | Ended::Broken(_)) if decoder.is_whole() => break,
                Err(Ended::TimedOut) => return Err(self.silence(decoder)),
                Err(Ended::Broken(error)) => {
                    let class = if decoder.is_empty() { FailureClass::Network } else { FailureClass::StreamBroken };
                    let reason = self.quote.of(&cause(&error.without_url()));
                    let message = format!("the connection to {} broke in the middle of the reply: {reason}", self.host);
                    return Err(Trouble::new(class, Sent::Accepted, message));
                }
            }
        }
        Ok(decoder.end()?)
    }

    fn silence(&self, decoder: &Decoder) -> Trouble {
        let waited = if decoder.is_empty() { self.timeouts.first_byte } else { self.timeouts.between };
        let message = format!("{} was silent for {}", self.host, seconds(waited));
        Trouble::new(FailureClass::StreamStalled, Sent::Accepted, message)
    }

    /// The request ended without an answer.
    fn no_answer(&self, ended: Ended) -> Trouble {
        match ended {
            Ended::Cancelled => cancelled(),
            Ended::TimedOut => {
                let message = format!("{} did not answer for {}", self.address, seconds(self.timeouts.first_byte));
                Trouble::new(FailureClass::StreamStalled, Sent::Accepted, message)
            }
            Ended::Broken(error) => {
                let is_connecting = error.is_connect() || error.is_builder();
                let is_refused = self.is_here && is_refused(&error);
                let reason = self.quote.of(&cause(&error.without_url()));
                if is_refused {
                    let message = format!("no server runs at {}: {reason}", self.address);
                    return Trouble::new(FailureClass::NoServer, Sent::NotAccepted, message);
                }
                if is_connecting {
                    let message = format!("there is no connection to {}: {reason}", self.address);
                    return Trouble::new(FailureClass::Network, Sent::NotAccepted, message);
                }
                let message = format!("the connection to {} broke before an answer came: {reason}", self.address);
                Trouble::new(FailureClass::Network, Sent::Accepted, message)
            }
        }
    }

    /// The provider answered, but with something other than a reply.
    async fn refusal(&self, mut response: Response, cancel: &CancellationToken) -> Trouble {
        let status = response.status().as_u16();
        let retry_after = retry_after(response.headers());
        let until = Instant::now() + self.timeouts.between;
        let mut body = Vec::new();
        // An error that does not come whole is still an error: what came of it is used.
        while body.len() < ERROR_BODY_MAX_BYTES {
            match wait(response.chunk(), until, cancel).await {
                Ok(Some(bytes)) => body.extend_from_slice(&bytes),
                Ok(None) | Err(Ended::TimedOut | Ended::Broken(_)) => break,
                Err(Ended::Cancelled) => return cancelled(),
            }
        }
        body.truncate(ERROR_BODY_MAX_BYTES);
        let told = ToldError::of_body(&body);
        let sentence = match (status, self.quote.of(&told.sentence)) {
            (300..=399, _) => "a redirect, which is not followed; put the final address into the configuration".into(),
            (_, sentence) if sentence.is_empty() => "nothing more".to_string(),
            (_, sentence) => sentence,
        };
        let sent = if classify::is_accepted(status, &body) { Sent::Accepted } else { Sent::NotAccepted };
        let message = format!("{} answered {status}: {sentence}", self.host);
        Trouble { class: classify::of_status(status, &told), message, retry_after, sent }
    }
}

fn cancelled() -> Trouble {
    Trouble::new(FailureClass::Cancelled, Sent::Accepted, "cancelled")
}

fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs_f32())
}
