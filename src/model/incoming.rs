//! A reply while it comes in: its text, its reasoning, its calls, and how much of it there is. Every adapter collects
//! into one of these, so that all replies have the same longest length. It knows no wire format.

use tokio::sync::broadcast;

use crate::domain::id::ModelCallId;
use crate::domain::limits::CALLS_READ_MAX;
use crate::domain::limits::LIVE_TEXT_MAX_BYTES;
use crate::domain::limits::OPAQUE_MAX;
use crate::domain::limits::OPAQUE_MAX_BYTES;
use crate::domain::limits::REPLY_MAX_BYTES;
use crate::domain::model::AskedCall;
use crate::domain::model::Delta;
use crate::domain::model::DeltaSource;
use crate::domain::model::FailureClass;
use crate::domain::model::ModelFailure;
use crate::domain::model::ModelReply;
use crate::domain::model::Received;
use crate::domain::model::StopReason;
use crate::domain::money::Usage;
use crate::domain::text::head;
use crate::domain::text::one_line;
use crate::model::repetition::Watcher;

/// Why no more of a reply is taken. What had come is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// It is longer than a reply may be.
    TooLong,
    /// It goes in circles, with this piece.
    Repeats(String),
}

impl Unfit {
    /// Its class.
    pub fn class(&self) -> FailureClass {
        match self {
            Unfit::TooLong => FailureClass::Endless,
            Unfit::Repeats(_) => FailureClass::Degenerate,
        }
    }

    /// One sentence for the operator.
    pub fn message(&self) -> String {
        match self {
            Unfit::TooLong => "the reply is longer than a reply may be; what fits was kept".to_string(),
            Unfit::Repeats(piece) => {
                format!("the reply went in circles and was broken off; it kept saying {:?}", one_line(piece, 60))
            }
        }
    }
}

/// What had come so far of one reply.
#[derive(Debug)]
pub struct Incoming {
    call: ModelCallId,
    deltas: broadcast::Sender<Delta>,
    text: String,
    reasoning: String,
    calls: Vec<AskedCall>,
    opaque: Vec<String>,
    bytes: usize,
    /// One for the text, one for the reasoning.
    watchers: [Watcher; 2],
}

impl Incoming {
    /// Nothing yet, of the reply to the model call `call`; what comes is shown to `deltas` too.
    pub fn new(call: ModelCallId, deltas: broadcast::Sender<Delta>) -> Self {
        Incoming {
            call,
            deltas,
            text: String::new(),
            reasoning: String::new(),
            calls: Vec::new(),
            opaque: Vec::new(),
            bytes: 0,
            watchers: Default::default(),
        }
    }

    /// Bytes of text, reasoning and arguments so far.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The calls so far.
    pub fn calls(&self) -> &[AskedCall] {
        &self.calls
    }

    /// Adds text.
    pub fn text(&mut self, text: &str) -> Result<(), Unfit> {
        let (fitting, end) = self.fitting(text);
        self.text.push_str(fitting);
        self.show(DeltaSource::Text(self.call), fitting);
        let [watcher, _] = &mut self.watchers;
        watched(watcher, fitting).and(end)
    }

    /// Adds reasoning.
    pub fn reasoning(&mut self, text: &str) -> Result<(), Unfit> {
        let (fitting, end) = self.fitting(text);
        self.reasoning.push_str(fitting);
        self.show(DeltaSource::Reasoning(self.call), fitting);
        let [_, watcher] = &mut self.watchers;
        watched(watcher, fitting).and(end)
    }

    /// Keeps content of a kind that this version does not know, as it came.
    pub fn opaque(&mut self, content: &str) -> Result<(), Unfit> {
        let (fitting, end) = self.fitting(content);
        if self.opaque.len() < OPAQUE_MAX {
            self.opaque.push(head(fitting, OPAQUE_MAX_BYTES).to_string());
        }
        end
    }

    /// Begins a call and gives its position.
    pub fn begin_call(&mut self) -> Result<usize, Unfit> {
        if self.calls.len() >= CALLS_READ_MAX {
            return Err(Unfit::TooLong);
        }
        self.calls.push(AskedCall { id: String::new(), name: String::new(), arguments: String::new() });
        Ok(self.calls.len() - 1)
    }

    /// Sets the id of the call at `position`, where one was given. Ids and names count, so that they are bounded too.
    pub fn call_id(&mut self, position: usize, id: &str) -> Result<(), Unfit> {
        let (fitting, end) = self.fitting(id);
        if let Some(call) = self.calls.get_mut(position) {
            call.id = fitting.to_string();
        }
        end
    }

    /// Adds to the name of the call at `position`.
    pub fn call_name(&mut self, position: usize, name: &str) -> Result<(), Unfit> {
        let (fitting, end) = self.fitting(name);
        if let Some(call) = self.calls.get_mut(position) {
            call.name.push_str(fitting);
        }
        end
    }

    /// Adds to the arguments of the call at `position`.
    pub fn call_arguments(&mut self, position: usize, text: &str) -> Result<(), Unfit> {
        let (fitting, end) = self.fitting(text);
        if let Some(call) = self.calls.get_mut(position) {
            call.arguments.push_str(fitting);
        }
        self.show(DeltaSource::Arguments(self.call), fitting);
        end
    }

    /// What had come, for the failure of a request that the provider took.
    pub fn received(&self, usage: Option<Usage>) -> Received {
        let text = head(&self.text, LIVE_TEXT_MAX_BYTES).to_string();
        Received { accepted: true, usage, bytes: self.bytes as u64, text }
    }

    /// A failure of a request that the provider took, with what had come.
    pub fn failed(&self, class: FailureClass, message: String, usage: Option<Usage>) -> ModelFailure {
        ModelFailure { class, message, retry_after: None, received: self.received(usage) }
    }

    /// The whole reply. Calls that stayed wholly empty are left out.
    pub fn into_reply(self, stop: StopReason, usage: Option<Usage>) -> ModelReply {
        let is_something =
            |call: &AskedCall| !(call.id.is_empty() && call.name.is_empty() && call.arguments.is_empty());
        ModelReply {
            text: self.text,
            reasoning: self.reasoning,
            calls: self.calls.into_iter().filter(is_something).collect(),
            opaque: self.opaque,
            stop,
            usage,
            received_bytes: self.bytes as u64,
        }
    }

    /// The part of `text` that still fits, counted; and whether that is all of it.
    fn fitting<'a>(&mut self, text: &'a str) -> (&'a str, Result<(), Unfit>) {
        let fitting = head(text, REPLY_MAX_BYTES.saturating_sub(self.bytes));
        self.bytes += fitting.len();
        (fitting, if fitting.len() == text.len() { Ok(()) } else { Err(Unfit::TooLong) })
    }

    /// A delta is for whoever watches; that nobody does is no failure.
    fn show(&self, source: DeltaSource, text: &str) {
        if !text.is_empty() {
            let _ = self.deltas.send(Delta { source, text: text.to_string() });
        }
    }
}

fn watched(watcher: &mut Watcher, text: &str) -> Result<(), Unfit> {
    watcher.push(text).map_or(Ok(()), |piece| Err(Unfit::Repeats(piece)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_reply_has_a_longest_length_over_all_its_parts() {
        let (deltas, _) = broadcast::channel(4);
        let mut incoming = Incoming::new(ModelCallId(1), deltas);
        incoming.text(&format!("- {}", "x".repeat(REPLY_MAX_BYTES - 6))).unwrap();
        incoming.reasoning("ab").unwrap();
        let call = incoming.begin_call().unwrap();
        assert_eq!(incoming.call_arguments(call, "éé"), Err(Unfit::TooLong));
        assert_eq!(incoming.bytes(), REPLY_MAX_BYTES);
        assert_eq!(incoming.calls()[0].arguments, "é");
        assert_eq!(incoming.received(None).text.len(), LIVE_TEXT_MAX_BYTES);
    }

    #[test]
    fn a_reply_has_a_longest_list_of_calls() {
        let (deltas, _) = broadcast::channel(4);
        let mut incoming = Incoming::new(ModelCallId(1), deltas);
        for position in 0..CALLS_READ_MAX {
            assert_eq!(incoming.begin_call(), Ok(position));
        }
        assert_eq!(incoming.begin_call(), Err(Unfit::TooLong));
    }
}
