//! A model that reads its lines from a file: for demonstrations, tests and first steps without a key.
//! A reply depends on the request and the script alone, so a run may be killed and resumed at any time: which step is
//! due is found by walking through the conversation again. Nothing is remembered between two calls, no clock is read.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use crate::domain::message::Entry;
use crate::domain::message::Message;
use crate::domain::message::ToolUse;
use crate::domain::model::Delta;
use crate::domain::model::FailureClass;
use crate::domain::model::ModelFailure;
use crate::domain::model::ModelReply;
use crate::domain::model::ModelRequest;
use crate::domain::model::Received;
use crate::domain::model::StopReason;
use crate::domain::money::Usage;
use crate::domain::money::tokens_of_bytes;
use crate::domain::status::Phase;
use crate::domain::text::head;
use crate::domain::tool::OutcomeKind;
use crate::model::Model;
use crate::model::ModelError;
use crate::model::incoming::Incoming;
use crate::model::incoming::TooLong;
use crate::model::script::Branch;
use crate::model::script::Script;
use crate::model::script::Step;
use crate::model::script::StepError;
use crate::model::script::StepUsage;
use crate::model::script::When;

/// What the model says when its script is over.
pub const THE_END: &str = "the script ends here";
/// The control tool whose results are answers of the operator.
const ASK_OPERATOR: &str = "ask_operator";

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
        let Some(step) = due(&self.script, &request) else {
            return the_end(&request, deltas);
        };
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
            (Err(Interrupted::TooLong), _) => {
                let message = "the reply is longer than a reply may be; what fits was kept".to_string();
                Err(playing.incoming.failed(FailureClass::Endless, message, None))
            }
            (Ok(()) | Err(Interrupted::Enough), Some(error)) => Err(failure(error, &playing.incoming)),
            (Ok(()) | Err(Interrupted::Enough), None) => {
                let usage = usage(step, &request, playing.incoming.bytes());
                Ok(playing.incoming.into_reply(step.stop.clone(), usage))
            }
        }
    }
}

fn the_end(request: &ModelRequest, deltas: broadcast::Sender<Delta>) -> Result<ModelReply, ModelFailure> {
    let mut incoming = Incoming::new(request.call, deltas);
    match incoming.text(THE_END) {
        Ok(()) => {
            let usage = estimate(request, incoming.bytes());
            Ok(incoming.into_reply(StopReason::End, Some(usage)))
        }
        Err(TooLong) => Err(incoming.failed(FailureClass::Endless, "the reply is too long".to_string(), None)),
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
        | FailureClass::Cancelled
        | FailureClass::Unknown => true,
        FailureClass::MissingCredentials
        | FailureClass::Auth
        | FailureClass::Billing
        | FailureClass::Permission
        | FailureClass::ModelConfig
        | FailureClass::ContextLength
        | FailureClass::BadRequest
        | FailureClass::RateLimited
        | FailureClass::Overloaded
        | FailureClass::Network => incoming.bytes() > 0,
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
    TooLong,
    /// The attempt fails here.
    Enough,
}

impl From<TooLong> for Interrupted {
    fn from(_: TooLong) -> Self {
        Interrupted::TooLong
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

/// Where a script stands while the conversation is walked through.
#[derive(Clone, Copy)]
struct Place {
    /// The step to be played; nothing after the last.
    step: Option<usize>,
    /// Set during a detour: where the script goes after it.
    after_detour: Option<Option<usize>>,
}

/// The step that answers the request; nothing when the script is over.
fn due<'a>(script: &'a Script, request: &ModelRequest) -> Option<&'a Step> {
    let mut place = Place { step: Some(script.start()), after_detour: None };
    // What was said before the first reply belongs to the goal, not to what followed a step.
    let is_reply = |entry: &Arc<Entry>| matches!(entry.message, Message::Assistant { .. });
    let mut replies = request.entries.iter().enumerate().filter(|(_, entry)| is_reply(entry)).peekable();
    while let Some((position, entry)) = replies.next() {
        let uses = match &entry.message {
            Message::Assistant { uses, .. } => uses.as_slice(),
            Message::Operator { .. } | Message::Engine { .. } | Message::ToolResult { .. } => &[],
        };
        let (end, phase) = match replies.peek() {
            Some((next, entry)) => (*next, phase_of(entry).unwrap_or(request.phase)),
            None => (request.entries.len(), request.phase),
        };
        let entries = request.entries.get(position + 1..end).unwrap_or_default();
        place = after(script, place, &Followed { uses, entries, phase });
    }
    place.step.and_then(|position| script.steps().get(position))
}

fn phase_of(entry: &Entry) -> Option<Phase> {
    match &entry.message {
        Message::Assistant { phase, .. } => Some(*phase),
        Message::Operator { .. } | Message::Engine { .. } | Message::ToolResult { .. } => None,
    }
}

fn after(script: &Script, place: Place, followed: &Followed<'_>) -> Place {
    let own = own_next(script, place, followed);
    let Some(branch) = first_holding(script.anywhere(), followed) else {
        return own;
    };
    let is_detour = script.steps().get(branch.go).is_some_and(|step| step.back);
    Place { step: Some(branch.go), after_detour: is_detour.then_some(own.step) }
}

/// Where the script goes when nothing interrupts it.
fn own_next(script: &Script, place: Place, followed: &Followed<'_>) -> Place {
    let Some((position, step)) = place.step.and_then(|at| script.steps().get(at).map(|step| (at, step))) else {
        return place;
    };
    let next = match (first_holding(&step.next, followed), place.after_detour) {
        (Some(branch), _) => Some(branch.go),
        (None, Some(back_to)) => back_to,
        (None, None) => script.following(position),
    };
    Place { step: next, after_detour: None }
}

fn first_holding<'a>(branches: &'a [Branch], followed: &Followed<'_>) -> Option<&'a Branch> {
    branches.iter().find(|branch| followed.meets(&branch.when))
}

/// What followed a step, up to the next.
struct Followed<'a> {
    uses: &'a [ToolUse],
    entries: &'a [Arc<Entry>],
    phase: Phase,
}

impl Followed<'_> {
    fn meets(&self, when: &When) -> bool {
        when.phase.is_none_or(|phase| phase == self.phase)
            && when.said.as_deref().is_none_or(|words| self.was_said(words))
            && self.shows(when)
    }

    fn was_said(&self, words: &str) -> bool {
        let words = words.to_lowercase();
        let fits = |text: &str| words == "*" || text.to_lowercase().contains(&words);
        self.entries.iter().any(|entry| match &entry.message {
            Message::Operator { text, .. } => fits(text),
            Message::ToolResult { call, kind: OutcomeKind::Done, text, .. } => {
                self.uses.iter().any(|one| one.id == *call && one.tool == ASK_OPERATOR) && fits(text)
            }
            Message::ToolResult { .. } | Message::Engine { .. } | Message::Assistant { .. } => false,
        })
    }

    /// Whether one entry meets all conditions on results, where there are any.
    fn shows(&self, when: &When) -> bool {
        let about_results = when.tool.is_some() || when.failed.is_some() || when.denied.is_some();
        if !about_results && when.contains.is_none() {
            return true;
        }
        let contains = |text: &str| when.contains.as_deref().is_none_or(|part| text.contains(part));
        self.entries.iter().any(|entry| match &entry.message {
            Message::ToolResult { call, kind, text, .. } => {
                let denied = *kind == OutcomeKind::Denied;
                let failed = kind.is_error() && !denied;
                let of_tool = |tool: &str| self.uses.iter().any(|one| one.id == *call && one.tool == tool);
                when.tool.as_deref().is_none_or(of_tool)
                    && when.failed.is_none_or(|wanted| wanted == failed)
                    && when.denied.is_none_or(|wanted| wanted == denied)
                    && contains(text)
            }
            Message::Engine { text } => !about_results && contains(text),
            Message::Operator { .. } | Message::Assistant { .. } => false,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::io::Write;

    use tokio::time::Instant;

    use super::*;
    use crate::domain::id::CallId;
    use crate::domain::id::InterjectionId;
    use crate::domain::id::ModelCallId;
    use crate::domain::limits::REPLY_MAX_BYTES;
    use crate::domain::model::AskedCall;
    use crate::domain::model::DeltaSource;
    use crate::domain::time::Span;
    use crate::domain::time::Timestamp;
    use crate::domain::tool::ProblemKind;

    const STEPS: &str = r#"
        [[step]]
        name = "first"
        text = "1"
        calls = [ { tool = "shell" }, { tool = "read_file" }, { tool = "ask_operator" } ]
        next = [
            { when = { tool = "shell", failed = true, contains = "FAIL" }, go = "fix" },
            { when = { tool = "shell", denied = true }, go = "denied" },
            { when = { phase = "replan" }, go = "replan" },
            { when = { contains = "claim rejected" }, go = "again" },
            { when = { said = "Tests" }, go = "tests" },
        ]
        [[step]]
        name = "heard"
        back = true
        text = "1"
        [[step]]
        name = "second"
        text = "2"
        next = [ { when = { contains = "never" }, go = "first" } ]
        [[step]]
        name = "third"
        text = "3"
        next = [ { go = "second" } ]
        [[step]]
        name = "fix"
        text = "f"
        [[step]]
        name = "denied"
        text = "d"
        [[step]]
        name = "replan"
        text = "r"
        [[step]]
        name = "again"
        text = "a"
        [[step]]
        name = "tests"
        text = "t"
        [[anywhere]]
        when = { said = "hello" }
        go = "heard"
        [[anywhere]]
        when = { said = "enough" }
        go = "tests"
    "#;

    fn load(text: &str) -> Scripted {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        Scripted::load(file.path()).unwrap()
    }

    fn entry(message: Message) -> Arc<Entry> {
        Arc::new(Entry { iteration: 1, at: Timestamp(0), message })
    }

    fn reply(phase: Phase) -> Arc<Entry> {
        let tools = ["shell", "read_file", "ask_operator"];
        let uses = (1..).zip(tools).map(|(number, tool)| ToolUse {
            id: CallId(number),
            wire_id: number.to_string(),
            tool: tool.to_string(),
            arguments: "{}".to_string(),
        });
        entry(Message::Assistant { call: ModelCallId(1), phase, text: String::new(), uses: uses.collect() })
    }

    fn result(call: u32, kind: OutcomeKind, text: &str) -> Arc<Entry> {
        let (text, bytes) = (text.to_string(), text.len() as u64);
        entry(Message::ToolResult { call: CallId(call), kind, text, bytes, took: Span(1) })
    }

    fn said(text: &str) -> Arc<Entry> {
        entry(Message::Operator { id: InterjectionId(1), text: text.to_string() })
    }

    fn engine(text: &str) -> Arc<Entry> {
        entry(Message::Engine { text: text.to_string() })
    }

    fn request(entries: Vec<Arc<Entry>>) -> ModelRequest {
        ModelRequest {
            call: ModelCallId(7),
            attempt: 1,
            iteration: 1,
            phase: Phase::Pursue,
            system: "be good".to_string(),
            entries,
            closing: String::new(),
            tools: Vec::new(),
            max_output: 100,
        }
    }

    fn due_name(request: &ModelRequest) -> String {
        due(&load(STEPS).script, request).map_or("(end)", |step| &step.name).to_string()
    }

    fn check(entries: Vec<Arc<Entry>>, expected: &str) {
        assert_eq!(due_name(&request(entries)), expected);
    }

    #[test]
    fn branches_look_at_what_followed() {
        let first = || reply(Phase::Pursue);
        check(vec![], "first");
        check(vec![said("hello"), engine("claim rejected")], "first");
        check(vec![first()], "second");
        check(vec![first(), result(1, OutcomeKind::Failed, "1 FAILED")], "fix");
        check(vec![first(), result(1, OutcomeKind::NotRun(ProblemKind::Malformed), "FAIL")], "fix");
        check(vec![first(), result(1, OutcomeKind::Done, "FAIL")], "second");
        check(vec![first(), result(1, OutcomeKind::Failed, "other"), result(2, OutcomeKind::Failed, "FAIL")], "second");
        check(vec![first(), result(1, OutcomeKind::Denied, "FAIL")], "denied");
        check(vec![first(), engine("claim rejected: no")], "again");
        check(vec![first(), said("run the tests")], "tests");
        check(vec![first(), result(3, OutcomeKind::Done, "The TESTS, please")], "tests");
        check(vec![first(), result(3, OutcomeKind::Cancelled, "tests")], "second");
        check(vec![first(), result(1, OutcomeKind::Done, "tests")], "second");
        check(vec![first(), first(), result(1, OutcomeKind::Failed, "FAIL")], "third");
    }

    #[test]
    fn the_phase_is_that_of_the_answer() {
        let replan = ModelRequest { phase: Phase::Replan, ..request(vec![reply(Phase::Decompose)]) };
        assert_eq!(due_name(&replan), "replan");
        check(vec![reply(Phase::Decompose), reply(Phase::Replan)], "again");
        check(vec![reply(Phase::Replan), reply(Phase::Pursue)], "third");
    }

    #[test]
    fn a_detour_comes_back() {
        let first = || reply(Phase::Pursue);
        check(vec![first(), said("hello")], "heard");
        check(vec![first(), said("hello"), first()], "second");
        check(vec![first(), said("hello tests"), first()], "tests");
        check(vec![first(), said("hello"), first(), said("hello"), first()], "second");
        check(vec![first(), said("hello"), first(), said("enough"), first()], "(end)");
        let to_the_end = vec![first(), said("enough"), first()];
        check(to_the_end.clone(), "(end)");
        check([to_the_end.clone(), vec![first()]].concat(), "(end)");
        check([to_the_end.clone(), vec![said("hello")]].concat(), "heard");
        check([to_the_end, vec![said("hello"), first()]].concat(), "(end)");
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
        let step = "[[step]]\nname = \"a\"\ntext = \"again and \"\nrepeat_text = ";
        let whole = play(&format!("{step}95"), 1).await.0.unwrap();
        assert_eq!(whole.text.len(), 100);
        let failure = play(&format!("{step}{}", REPLY_MAX_BYTES + 1), 1).await.0.unwrap_err();
        assert_eq!((failure.class, failure.received.bytes), (FailureClass::Endless, REPLY_MAX_BYTES as u64));
    }

    #[tokio::test]
    async fn after_the_last_step_it_says_so() {
        let request = request(vec![reply(Phase::Pursue), said("enough"), reply(Phase::Pursue)]);
        let reply = load(STEPS).call(request, broadcast::channel(8).0, CancellationToken::new()).await.unwrap();
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
