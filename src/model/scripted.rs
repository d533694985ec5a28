//! A model that reads its lines from a file: for demonstrations, tests and first steps without a key.
//! A reply depends on the request and the script alone (`replay.rs` finds the step that is due), so a run may be
//! killed and resumed at any time. Nothing is remembered between two calls, no clock is read.

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use crate::domain::model::Delta;
use crate::domain::model::FailureClass;
use crate::domain::model::ModelFailure;
use crate::domain::model::ModelReply;
use crate::domain::model::ModelRequest;
use crate::domain::model::Received;
use crate::domain::model::StopReason;
use crate::domain::money::Usage;
use crate::domain::money::tokens_of_bytes;
use crate::domain::text::head;
use crate::model::Model;
use crate::model::ModelError;
use crate::model::incoming::Incoming;
use crate::model::incoming::Unfit;
use crate::model::replay::due;
use crate::model::script::Script;
use crate::model::script::Step;
use crate::model::script::StepError;
use crate::model::script::StepUsage;

/// What the model says when its script is over.
pub const THE_END: &str = "the script ends here";

/// The model.
#[derive(Debug)]
pub struct Scripted {
    script: Script,
}

impl Scripted {
    /// The model that plays the script at `path`.
    ///
    /// # Errors
    /// `ModelError::Script` when the script can't be used.
    pub fn load(path: impl AsRef<Path>) -> Result<Scripted, ModelError> {
        Script::load(path).map(|script| Scripted { script })
    }
}

#[async_trait]
impl Model for Scripted {
    async fn call(
        &self,
        request: ModelRequest,
        deltas: broadcast::Sender<Delta>,
        cancel: CancellationToken,
    ) -> Result<ModelReply, ModelFailure> {
        let the_end = the_end();
        let step = due(&self.script, &request).unwrap_or(&the_end);
        let attempt = usize::try_from(request.attempt.saturating_sub(1)).unwrap_or(usize::MAX);
        let error = step.errors.get(attempt);
        let mut playing = Playing {
            step,
            incoming: Incoming::new(request.call, deltas),
            cancel,
            most: error.map_or(usize::MAX, |error| error.after_bytes),
        };
        match (playing.play(&request).await, error) {
            (Err(Interrupted::Cancelled), _) => {
                Err(playing.incoming.failed(FailureClass::Cancelled, "cancelled".to_string(), None))
            }
            (Err(Interrupted::Unfit(unfit)), _) => Err(playing.incoming.failed(unfit.class(), unfit.message(), None)),
            (Ok(()) | Err(Interrupted::Enough), Some(error)) => Err(failure(error, &playing.incoming)),
            (Ok(()) | Err(Interrupted::Enough), None) => {
                let usage = usage(step, &request, playing.incoming.bytes());
                Ok(playing.incoming.into_reply(step.stop.clone(), usage))
            }
        }
    }
}

/// The step after the last.
fn the_end() -> Step {
    Step {
        name: String::new(),
        text: THE_END.to_string(),
        reasoning: String::new(),
        calls: Vec::new(),
        stop: StopReason::End,
        usage: StepUsage::Estimated,
        first: Duration::ZERO,
        chunk: Duration::ZERO,
        errors: Vec::new(),
        repeat_text: 0,
        back: false,
        next: Vec::new(),
    }
}

fn usage(step: &Step, request: &ModelRequest, bytes: usize) -> Option<Usage> {
    match step.usage {
        StepUsage::Estimated => Some(estimate(request, bytes)),
        StepUsage::Given(usage) => Some(usage),
        StepUsage::Silent => None,
    }
}

fn estimate(request: &ModelRequest, bytes: usize) -> Usage {
    let output = tokens_of_bytes(bytes as u64);
    Usage { input: tokens_of_bytes(request.bytes()), output, ..Usage::default() }
}

/// The failure of an attempt. Where nothing had come, its class says whether the provider took the request.
fn failure(error: &StepError, incoming: &Incoming) -> ModelFailure {
    let accepted = match error.class {
        FailureClass::StreamStalled
        | FailureClass::StreamBroken
        | FailureClass::Endless
        | FailureClass::Degenerate
        | FailureClass::Cancelled
        | FailureClass::Unknown => true,
        FailureClass::MissingCredentials
        | FailureClass::Auth
        | FailureClass::Billing
        | FailureClass::Permission
        | FailureClass::ModelConfig
        | FailureClass::ContextLength
        | FailureClass::TooLarge
        | FailureClass::BadRequest
        | FailureClass::RateLimited
        | FailureClass::Overloaded
        | FailureClass::Network
        | FailureClass::NoServer => incoming.bytes() > 0,
    };
    let received = if accepted { incoming.received(None) } else { Received::default() };
    ModelFailure { class: error.class, message: error.text.clone(), retry_after: error.retry_after, received }
}

/// A step on its way out, word by word.
struct Playing<'a> {
    step: &'a Step,
    incoming: Incoming,
    cancel: CancellationToken,
    /// Bytes after which the attempt fails.
    most: usize,
}

/// Why a step did not come to its end.
enum Interrupted {
    Cancelled,
    Unfit(Unfit),
    /// The attempt fails here.
    Enough,
}

impl From<Unfit> for Interrupted {
    fn from(unfit: Unfit) -> Self {
        Interrupted::Unfit(unfit)
    }
}

impl Playing<'_> {
    async fn play(&mut self, request: &ModelRequest) -> Result<(), Interrupted> {
        let step = self.step;
        self.wait(step.first).await?;
        for word in words(&step.reasoning) {
            let word = self.next_word(word).await?;
            self.incoming.reasoning(word)?;
        }
        let mut length = 0;
        // A text without an end of its own is ended by the longest length of a reply.
        while length < step.repeat_text.max(1) && !step.text.is_empty() {
            for word in words(&step.text) {
                let word = self.next_word(word).await?;
                self.incoming.text(word)?;
            }
            length += step.text.len();
        }
        for (number, call) in step.calls.iter().enumerate() {
            let position = self.incoming.begin_call()?;
            self.incoming.call_id(position, &format!("{}-{}", request.call, number + 1))?;
            self.incoming.call_name(position, &call.tool)?;
            for word in words(&call.arguments) {
                let word = self.next_word(word).await?;
                self.incoming.call_arguments(position, word)?;
            }
        }
        Ok(())
    }

    /// Waits for the next word, and cuts it where the attempt fails.
    async fn next_word<'w>(&mut self, word: &'w str) -> Result<&'w str, Interrupted> {
        let word = head(word, self.most.saturating_sub(self.incoming.bytes()));
        if word.is_empty() {
            return Err(Interrupted::Enough);
        }
        self.wait(if self.incoming.bytes() == 0 { Duration::ZERO } else { self.step.chunk }).await?;
        Ok(word)
    }

    async fn wait(&mut self, time: Duration) -> Result<(), Interrupted> {
        if self.cancel.is_cancelled() {
            return Err(Interrupted::Cancelled);
        }
        if time.is_zero() {
            return Ok(());
        }
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(Interrupted::Cancelled),
            () = tokio::time::sleep(time) => Ok(()),
        }
    }
}

/// The words of a text, each with the space after it.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::io::Write;

    use tokio::time::Instant;

    use super::*;
    use crate::domain::id::ModelCallId;
    use crate::domain::limits::REPLY_MAX_BYTES;
    use crate::domain::message::Message;
    use crate::domain::model::AskedCall;
    use crate::domain::model::DeltaSource;
    use crate::domain::status::Phase;
    use crate::domain::time::Span;
    use crate::model::sample::entry;
    use crate::model::sample::request;

    fn load(text: &str) -> Scripted {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        Scripted::load(file.path()).unwrap()
    }

    async fn play(text: &str, attempt: u32) -> (Result<ModelReply, ModelFailure>, Vec<Delta>) {
        let (deltas, mut shown) = broadcast::channel(64);
        let request = ModelRequest { attempt, ..request(vec![]) };
        let outcome = load(text).call(request, deltas, CancellationToken::new()).await;
        let mut seen = Vec::new();
        while let Ok(delta) = shown.try_recv() {
            seen.push(delta);
        }
        (outcome, seen)
    }

    #[tokio::test]
    async fn a_step_is_a_reply_and_streams_word_by_word() {
        let step = r#"
            [[step]]
            name = "a"
            reasoning = "hm"
            text = "two words"
            calls = [ { tool = "shell", args = { command = "ls" } }, { tool = "x", raw = "{" } ]
        "#;
        let (reply, seen) = play(step, 1).await;
        let reply = reply.unwrap();
        assert_eq!((reply.text.as_str(), reply.reasoning.as_str()), ("two words", "hm"));
        let call = |id: &str, name: &str, arguments: &str| AskedCall {
            id: id.to_string(),
            name: name.to_string(),
            arguments: arguments.to_string(),
        };
        assert_eq!(reply.calls, [call("m7-1", "shell", r#"{"command":"ls"}"#), call("m7-2", "x", "{")]);
        assert_eq!(reply.stop, StopReason::Calls);
        let usage = reply.usage.unwrap();
        assert_eq!((usage.input, usage.output), (3, reply.received_bytes.div_ceil(3)));
        let sources: Vec<(DeltaSource, &str)> = seen.iter().map(|delta| (delta.source, delta.text.as_str())).collect();
        let id = ModelCallId(7);
        assert_eq!(
            sources,
            [
                (DeltaSource::Reasoning(id), "hm"),
                (DeltaSource::Text(id), "two "),
                (DeltaSource::Text(id), "words"),
                (DeltaSource::Arguments(id), r#"{"command":"ls"}"#),
                (DeltaSource::Arguments(id), "{"),
            ]
        );
    }

    #[tokio::test]
    async fn attempts_fail_as_written_and_then_succeed() {
        let step = r#"
            [[step]]
            name = "a"
            text = "two words"
            no_usage = true
            errors = [
                { class = "rate_limited", text = "slowly", retry_after_ms = 50 },
                { class = "overloaded", after_bytes = 5 },
                { class = "stream_broken" },
            ]
        "#;
        let first = play(step, 1).await.0.unwrap_err();
        assert_eq!((first.class, first.message.as_str()), (FailureClass::RateLimited, "slowly"));
        assert_eq!((first.retry_after, first.received), (Some(Span(50)), Received::default()));
        let second = play(step, 2).await.0.unwrap_err();
        assert_eq!(second.class, FailureClass::Overloaded);
        assert_eq!(second.received, Received { accepted: true, usage: None, bytes: 5, text: "two w".to_string() });
        let third = play(step, 3).await.0.unwrap_err();
        assert_eq!((third.class, third.received.accepted, third.received.bytes), (FailureClass::StreamBroken, true, 0));
        let fourth = play(step, 4).await.0.unwrap();
        assert_eq!((fourth.text.as_str(), fourth.usage, fourth.stop), ("two words", None, StopReason::End));
    }

    #[tokio::test]
    async fn an_endless_text_is_ended() {
        let step = "[[step]]\nname = \"a\"\ntext = \"- again and\\n\"\nrepeat_text = ";
        let whole = play(&format!("{step}95"), 1).await.0.unwrap();
        assert_eq!(whole.text.len(), 96);
        let failure = play(&format!("{step}{}", REPLY_MAX_BYTES + 1), 1).await.0.unwrap_err();
        assert_eq!((failure.class, failure.received.bytes), (FailureClass::Endless, REPLY_MAX_BYTES as u64));
        let circle = "[[step]]\nname = \"a\"\ntext = \"again and \"\nrepeat_text = 5000";
        let failure = play(circle, 1).await.0.unwrap_err();
        assert_eq!((failure.class, failure.received.bytes), (FailureClass::Degenerate, 500));
        assert!(failure.message.contains("it kept saying \"again and"), "{}", failure.message);
    }

    #[tokio::test]
    async fn after_the_last_step_it_says_so() {
        let first =
            Message::Assistant { call: ModelCallId(1), phase: Phase::Pursue, text: String::new(), uses: Vec::new() };
        let request = request(vec![entry(first)]);
        let model = load("[[step]]\nname = \"a\"");
        let reply = model.call(request, broadcast::channel(8).0, CancellationToken::new()).await.unwrap();
        assert_eq!((reply.text.as_str(), reply.stop), (THE_END, StopReason::End));
    }

    #[tokio::test(start_paused = true)]
    async fn words_take_their_time_and_cancel_ends_it() {
        let step = "[[step]]\nname = \"a\"\ntext = \"one two three\"\nfirst_ms = 300\nchunk_ms = 20";
        let began = Instant::now();
        assert!(play(step, 1).await.0.is_ok());
        assert_eq!(began.elapsed().as_millis(), 340);

        let cancel = CancellationToken::new();
        let token = cancel.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(310)).await;
            token.cancel();
        });
        let failure = load(step).call(request(vec![]), broadcast::channel(8).0, cancel).await.unwrap_err();
        assert_eq!((failure.class, failure.received.text.as_str()), (FailureClass::Cancelled, "one "));
    }
}
