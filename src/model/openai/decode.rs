//! A reply in the chat-completions dialect: bytes in any pieces to text, reasoning, calls and usage. Pure but for the
//! deltas that it shows on the way. Every byte is untrusted: whatever comes, it ends in a reply or in a fault.
//!
//! Servers take liberties, and all those that are known are taken here: a whole JSON body where a stream was asked
//! for, content that is null or a list of parts, a name that is repeated, calls without index or id, one index for
//! two calls, usage in an event of its own or in each one, an error in place of the end, no end mark at all.

use serde::Deserialize;
use serde_json::Value;

use crate::domain::limits::REPLY_BODY_MAX_BYTES;
use crate::domain::limits::STREAM_EVENT_MAX_BYTES;
use crate::domain::model::FailureClass;
use crate::domain::model::ModelReply;
use crate::domain::model::Received;
use crate::domain::model::StopReason;
use crate::domain::money::Usage;
use crate::domain::text::one_line;
use crate::model::http::Quote;
use crate::model::incoming::Incoming;
use crate::model::incoming::Unfit;
use crate::model::openai::classify;
use crate::model::openai::classify::ToldError;
use crate::model::sse::EventReader;
use crate::model::sse::SseError;

/// Longest word of a provider for why a reply ended, in characters.
const STOP_WORD_MAX_CHARS: usize = 40;

/// Why a reply will not come whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Its class.
    pub class: FailureClass,
    /// One sentence for the operator.
    pub message: String,
}

impl Fault {
    fn new(class: FailureClass, message: &str) -> Fault {
        Fault { class, message: message.to_string() }
    }
}

impl From<Unfit> for Fault {
    fn from(unfit: Unfit) -> Fault {
        Fault { class: unfit.class(), message: unfit.message() }
    }
}

impl From<SseError> for Fault {
    fn from(error: SseError) -> Fault {
        match error {
            SseError::TooLong => Fault::new(FailureClass::Endless, "one event of the stream is longer than it may be"),
            SseError::NotUtf8 => Fault::new(FailureClass::StreamBroken, "the stream is not valid UTF-8"),
        }
    }
}

/// A reply that is being read.
#[derive(Debug)]
pub struct Decoder {
    incoming: Incoming,
    quote: Quote,
    shape: Shape,
    /// Bytes of the body, of any kind.
    length: usize,
    /// For each call so far, what the next piece of it can be known by.
    marks: Vec<Mark>,
    finish: Option<String>,
    refused: bool,
    usage: Option<Usage>,
    done: bool,
}

/// What the body turns out to be, by its first character.
#[derive(Debug)]
enum Shape {
    Unknown,
    Events(EventReader),
    Whole(Vec<u8>),
}

#[derive(Debug)]
struct Mark {
    index: Option<u64>,
    id: String,
}

impl Decoder {
    /// Reads into `incoming`; a provider's own words are repeated through `quote`.
    pub fn new(incoming: Incoming, quote: Quote) -> Self {
        Decoder {
            incoming,
            quote,
            shape: Shape::Unknown,
            length: 0,
            marks: Vec::new(),
            finish: None,
            refused: false,
            usage: None,
            done: false,
        }
    }

    /// Whether not a single byte has come.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Whether the end mark has come: nothing follows it.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// Whether all of the reply is there, though possibly not its usage.
    pub fn is_whole(&self) -> bool {
        self.finish.is_some()
    }

    /// What had come so far.
    pub fn received(&self) -> Received {
        self.incoming.received(self.usage)
    }

    /// Takes the next bytes of the body.
    ///
    /// # Errors
    /// The reply will not come whole; what came before is kept.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.length = self.length.saturating_add(bytes.len());
        if self.length > REPLY_BODY_MAX_BYTES {
            return Err(Fault::new(FailureClass::Endless, "the reply has more bytes than a reply may have"));
        }
        // What stands before the first sign means nothing, however it is cut.
        let bytes = if matches!(self.shape, Shape::Unknown) { bytes.trim_ascii_start() } else { bytes };
        if matches!(self.shape, Shape::Unknown) {
            self.shape = match bytes.first() {
                Some(b'{') => Shape::Whole(Vec::new()),
                Some(_) => Shape::Events(EventReader::default()),
                None => return Ok(()),
            };
        }
        match &mut self.shape {
            Shape::Unknown => Ok(()),
            Shape::Whole(body) if body.len() + bytes.len() > STREAM_EVENT_MAX_BYTES => Err(SseError::TooLong.into()),
            Shape::Whole(body) => {
                body.extend_from_slice(bytes);
                Ok(())
            }
            Shape::Events(reader) => {
                let mut events = Vec::new();
                let end = reader.push(bytes, &mut events);
                for event in events {
                    self.event(&event)?;
                }
                Ok(end?)
            }
        }
    }

    /// The body has ended.
    ///
    /// # Errors
    /// It ended too early.
    pub fn end(&mut self) -> Result<(), Fault> {
        match std::mem::replace(&mut self.shape, Shape::Unknown) {
            Shape::Unknown => {}
            Shape::Whole(body) => match serde_json::from_slice::<Chunk>(&body) {
                Ok(chunk) => self.chunk(chunk)?,
                Err(_) => return Err(Fault::new(FailureClass::StreamBroken, "the reply is no whole JSON document")),
            },
            Shape::Events(mut reader) => {
                let mut events = Vec::new();
                // What the cut-off rest says counts only if it can be read.
                let _ = reader.end(&mut events);
                for chunk in events.iter().filter_map(|event| serde_json::from_str::<Chunk>(event).ok()) {
                    self.chunk(chunk)?;
                }
            }
        }
        if self.is_whole() {
            return Ok(());
        }
        Err(Fault::new(FailureClass::StreamBroken, "the connection was closed before the reply was whole"))
    }

    /// The reply, once `end` found it whole.
    pub fn into_reply(self) -> ModelReply {
        let has_calls = !self.incoming.calls().is_empty();
        let stop = match self.finish.as_deref().unwrap_or_default() {
            _ if self.refused => StopReason::Refused,
            // Some servers say `stop` although they ask for calls, or the other way round.
            "stop" | "tool_calls" | "function_call" if has_calls => StopReason::Calls,
            "stop" | "tool_calls" | "function_call" => StopReason::End,
            "length" => StopReason::Length,
            "content_filter" => StopReason::Refused,
            // Gateways pass this on from models that pause a long turn of their own.
            "pause_turn" | "pause" => StopReason::Paused,
            other => StopReason::Other(one_line(other, STOP_WORD_MAX_CHARS)),
        };
        self.incoming.into_reply(stop, self.usage)
    }

    fn event(&mut self, data: &str) -> Result<(), Fault> {
        if self.done {
            return Ok(());
        }
        if data.trim() == "[DONE]" {
            self.done = true;
            return Ok(());
        }
        match serde_json::from_str::<Chunk>(data) {
            Ok(chunk) => self.chunk(chunk),
            Err(_) => Err(Fault::new(FailureClass::StreamBroken, "an event of the stream can't be read")),
        }
    }

    fn chunk(&mut self, chunk: Chunk) -> Result<(), Fault> {
        if let Some(usage) = chunk.usage.as_ref().and_then(usage) {
            self.usage = Some(usage);
        }
        if let Some(error) = chunk.told_error() {
            let sentence = self.quote.of(&error.sentence);
            let message = format!("the provider broke the reply off with an error: {sentence}");
            return Err(Fault { class: classify::of_stream(&error), message });
        }
        // One choice is asked for; a server that gives more gives alternatives, not parts.
        let mut choices = chunk.choices.unwrap_or_default().into_iter();
        let Some(choice) = choices.find(|choice| choice.index.unwrap_or(0) == 0) else {
            return Ok(());
        };
        if let Some(part) = choice.delta.or(choice.message) {
            self.part(part)?;
        }
        if let Some(finish) = choice.finish_reason.filter(|finish| !finish.is_empty()) {
            self.finish = Some(finish);
        }
        Ok(())
    }

    fn part(&mut self, part: Part) -> Result<(), Fault> {
        let reasoning = text(part.reasoning_content.as_ref());
        // Some servers send the same reasoning under both names.
        let reasoning = if reasoning.is_empty() { text(part.reasoning.as_ref()) } else { reasoning };
        self.incoming.reasoning(&reasoning)?;
        self.incoming.text(&text(part.content.as_ref()))?;
        for content in unknown(part.content.as_ref()) {
            self.incoming.opaque(&content)?;
        }
        if let Some(refusal) = part.refusal.filter(|refusal| !refusal.is_empty()) {
            self.refused = true;
            self.incoming.text(&refusal)?;
        }
        for call in part.tool_calls.unwrap_or_default() {
            self.call_part(call)?;
        }
        Ok(())
    }

    fn call_part(&mut self, part: CallPart) -> Result<(), Fault> {
        let id = part.id.unwrap_or_default();
        let function = part.function.unwrap_or_default();
        let name = function.name.unwrap_or_default();
        let known = self.known_call(part.index, &id, &name);
        let position = match known {
            Some(position) => position,
            None => {
                self.marks.push(Mark { index: part.index, id: String::new() });
                self.incoming.begin_call()?
            }
        };
        if let Some(mark) = self.marks.get_mut(position).filter(|mark| mark.id.is_empty() && !id.is_empty()) {
            self.incoming.call_id(position, &id)?;
            mark.id = id;
        }
        // Some servers repeat the name with every piece of the arguments.
        if self.incoming.calls().get(position).is_some_and(|call| call.name != name) {
            self.incoming.call_name(position, &name)?;
        }
        match function.arguments {
            Some(Value::String(arguments)) => self.incoming.call_arguments(position, &arguments)?,
            Some(Value::Null) | None => {}
            Some(other) => self.incoming.call_arguments(position, &other.to_string())?,
        }
        Ok(())
    }

    /// The call that a piece belongs to; nothing when it begins a new one.
    fn known_call(&self, index: Option<u64>, id: &str, name: &str) -> Option<usize> {
        let last_where = |test: &dyn Fn(&Mark) -> bool| self.marks.iter().rposition(test);
        if index.is_some() {
            let place = last_where(&|mark| mark.index == index)?;
            // Some servers give every call the index 0; another id with a name is another call.
            let is_other = self.marks.get(place).is_some_and(|mark| !mark.id.is_empty() && mark.id != id);
            return if is_other && !id.is_empty() && !name.is_empty() { None } else { Some(place) };
        }
        if !id.is_empty() {
            return last_where(&|mark| mark.id == id);
        }
        if name.is_empty() { self.marks.len().checked_sub(1) } else { None }
    }
}

#[derive(Deserialize)]
struct Chunk {
    choices: Option<Vec<Choice>>,
    usage: Option<Value>,
    error: Option<Value>,
    object: Option<Value>,
    message: Option<Value>,
    code: Option<Value>,
    #[serde(rename = "type")]
    kind: Option<Value>,
}

impl Chunk {
    /// An error in the usual place, or a whole event that is one.
    fn told_error(&self) -> Option<ToldError> {
        if let Some(error) = self.error.as_ref().filter(|error| !error.is_null()) {
            return Some(ToldError::of_value(error));
        }
        let is_error = self.object.as_ref().and_then(Value::as_str) == Some("error");
        let whole = || serde_json::json!({ "message": self.message, "code": self.code, "type": self.kind });
        is_error.then(|| ToldError::of_value(&whole()))
    }
}

#[derive(Deserialize)]
struct Choice {
    index: Option<u64>,
    delta: Option<Part>,
    message: Option<Part>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Part {
    content: Option<Value>,
    refusal: Option<String>,
    reasoning_content: Option<Value>,
    reasoning: Option<Value>,
    tool_calls: Option<Vec<CallPart>>,
}

#[derive(Deserialize)]
struct CallPart {
    index: Option<u64>,
    id: Option<String>,
    function: Option<FunctionPart>,
}

#[derive(Default, Deserialize)]
struct FunctionPart {
    name: Option<String>,
    arguments: Option<Value>,
}

/// Text that is a string or a list of parts with text in them.
fn text(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str)).collect(),
        Some(_) | None => String::new(),
    }
}

/// Parts of a content that hold no text: images, sounds, what is not invented yet.
fn unknown(value: Option<&Value>) -> Vec<String> {
    let parts = value.and_then(Value::as_array).into_iter().flatten();
    parts.filter(|part| part.get("text").and_then(Value::as_str).is_none()).map(Value::to_string).collect()
}

/// Tokens as reported; nothing from a server that counts no prompt, since it does not count. The prompt count includes what was read from a cache. Most servers count reasoning as output;
/// where the total shows that one does not, it is added, since it is paid.
fn usage(value: &Value) -> Option<Usage> {
    let number = |path: &str| value.pointer(path).and_then(Value::as_u64);
    let prompt = number("/prompt_tokens").filter(|prompt| *prompt > 0)?;
    let completion = number("/completion_tokens").unwrap_or(0);
    let reasoning = number("/completion_tokens_details/reasoning_tokens").unwrap_or(0);
    let cached = number("/prompt_tokens_details/cached_tokens").or_else(|| number("/prompt_cache_hit_tokens"));
    let cache_read = cached.unwrap_or(0).min(prompt);
    let with_reasoning = completion.saturating_add(reasoning);
    let is_apart = number("/total_tokens").is_some_and(|total| total == prompt.saturating_add(with_reasoning));
    let output = if is_apart { with_reasoning } else { completion };
    Some(Usage { input: prompt - cache_read, cache_read, cache_write: 0, output, reasoning })
}
