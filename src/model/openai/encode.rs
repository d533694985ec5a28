//! A request as the chat-completions dialect writes it. Pure. It never sends a conversation that is out of order:
//! each call has exactly one result right after it, or nothing is sent (docs/ENGINE.md §14.3).

use serde_json::Map;
use serde_json::Value;
use serde_json::json;

use crate::domain::message::Entry;
use crate::domain::message::Message;
use crate::domain::message::ToolUse;
use crate::domain::model::ModelRequest;
use crate::domain::text::head;
use crate::domain::tool::OutcomeKind;
use crate::domain::tool::ToolSpec;

/// Stands where a user must have spoken and nobody has: many chat templates insist that user and model take turns.
const GO_ON: &str = "[engine]\nGo on.";
/// Longest name of a function that providers take.
const NAME_MAX_BYTES: usize = 64;

/// The name of the field that limits the output. OpenAI's newer models refuse the older name; most other servers
/// know only that one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputField {
    /// What everyone but OpenAI understands.
    MaxTokens,
    /// What OpenAI demands.
    MaxCompletionTokens,
}

/// The body of the request to `model`.
///
/// # Errors
/// A sentence that says what is out of order in the conversation: a bug of the engine, and nothing may be sent.
pub fn body(model: &str, field: OutputField, request: &ModelRequest) -> Result<Value, String> {
    let mut messages = Messages::default();
    if !request.system.is_empty() {
        messages.list.push(json!({ "role": "system", "content": request.system }));
    }
    request.entries.order().check_whole()?;
    let mut uses: &[ToolUse] = &[];
    for entry in request.entries.entries() {
        if let Message::Assistant { uses: asked, .. } = &entry.message {
            uses = asked;
        }
        messages.add(entry, uses);
    }
    messages.user(&request.closing);
    let mut body = Map::new();
    body.insert("model".to_string(), json!(model));
    body.insert("messages".to_string(), Value::Array(messages.list));
    let tools = request.offer.tools();
    if !tools.is_empty() {
        body.insert("tools".to_string(), tools.iter().map(tool).collect());
    }
    let field = match field {
        OutputField::MaxTokens => "max_tokens",
        OutputField::MaxCompletionTokens => "max_completion_tokens",
    };
    body.insert(field.to_string(), json!(request.max_output));
    if let Some(percent) = request.temperature_percent {
        body.insert("temperature".to_string(), json!(f64::from(percent) / 100.0));
    }
    body.insert("stream".to_string(), json!(true));
    body.insert("stream_options".to_string(), json!({ "include_usage": true }));
    Ok(Value::Object(body))
}

fn tool(spec: &ToolSpec) -> Value {
    let function = json!({ "name": spec.name, "description": spec.description, "parameters": spec.schema });
    json!({ "type": "function", "function": function })
}

/// The messages so far.
#[derive(Default)]
struct Messages {
    list: Vec<Value>,
}

impl Messages {
    /// Adds an entry; `asked` are the calls of the last reply.
    fn add(&mut self, entry: &Entry, asked: &[ToolUse]) {
        match &entry.message {
            Message::Operator { text, .. } => self.user(&format!("[operator]\n{text}")),
            Message::Engine { text } => self.user(&format!("[engine]\n{text}")),
            Message::Assistant { text, uses, .. } => self.assistant(text, uses),
            Message::ToolResult { call, kind, text, .. } => {
                let content = result(*kind, text);
                let wire_id = asked.iter().find(|one| one.id == *call).map_or("", |one| &one.wire_id);
                self.list.push(json!({ "role": "tool", "tool_call_id": wire_id, "content": content }));
            }
        }
    }

    fn last_role(&self) -> &str {
        self.list.last().and_then(|message| message.get("role")).and_then(Value::as_str).unwrap_or_default()
    }

    /// Adds to what the user says. Messages in a row become one, since some templates demand that roles alternate.
    fn user(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let said = match self.list.last_mut().and_then(Value::as_object_mut) {
            Some(last) if last.get("role").is_some_and(|role| role == "user") => last.get_mut("content"),
            Some(_) | None => None,
        };
        match said {
            Some(Value::String(said)) => {
                said.push_str("\n\n");
                said.push_str(text);
            }
            Some(_) | None => self.list.push(json!({ "role": "user", "content": text })),
        }
    }

    fn assistant(&mut self, text: &str, uses: &[ToolUse]) {
        if text.is_empty() && uses.is_empty() {
            return;
        }
        if matches!(self.last_role(), "" | "system" | "assistant") {
            self.user(GO_ON);
        }
        let content = if text.is_empty() { Value::Null } else { json!(text) };
        let mut message = Map::new();
        message.insert("role".to_string(), json!("assistant"));
        message.insert("content".to_string(), content);
        if !uses.is_empty() {
            message.insert("tool_calls".to_string(), uses.iter().map(call).collect());
        }
        self.list.push(Value::Object(message));
    }
}

fn call(one: &ToolUse) -> Value {
    let function = json!({ "name": name(&one.tool), "arguments": arguments(&one.arguments) });
    json!({ "id": one.wire_id, "type": "function", "function": function })
}

/// A name that providers take: they refuse a whole conversation for one bad name that a model once made up.
fn name(tool: &str) -> String {
    let allowed = |char: char| if char.is_ascii_alphanumeric() || char == '_' || char == '-' { char } else { '_' };
    let name: String = head(tool, NAME_MAX_BYTES).chars().map(allowed).collect();
    if name.is_empty() { "_".to_string() } else { name }
}

/// Arguments as servers can read them: many refuse a whole conversation for one call whose arguments are no object.
/// What the model wrote stays readable for it.
fn arguments(written: &str) -> String {
    if written.trim().is_empty() {
        return "{}".to_string();
    }
    match serde_json::from_str::<Map<String, Value>>(written) {
        Ok(_) => written.to_string(),
        Err(_) => json!({ "not_an_object": written }).to_string(),
    }
}

/// The dialect has no mark for results that are errors, so their text says it.
fn result(kind: OutcomeKind, text: &str) -> String {
    if kind.is_error() { format!("[{}]\n{text}", kind.word()) } else { text.to_string() }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::Arc;

    use super::*;
    use crate::domain::id::CallId;
    use crate::domain::id::InterjectionId;
    use crate::domain::id::ModelCallId;
    use crate::domain::id::Seq;
    use crate::domain::model::Offer;
    use crate::domain::status::Phase;
    use crate::domain::time::Span;
    use crate::domain::tool::EffectClass;
    use crate::domain::tool::Noise;
    use crate::model::sample;

    fn request(messages: Vec<Message>) -> ModelRequest {
        let entries = messages.into_iter().map(sample::entry).collect();
        ModelRequest { closing: "the plan".to_string(), ..sample::request(entries) }
    }

    fn reply(text: &str, calls: &[(u32, &str)]) -> Message {
        let uses = calls.iter().map(|(id, arguments)| ToolUse {
            id: CallId(*id),
            wire_id: format!("call_{id}"),
            tool: "read file".to_string(),
            arguments: (*arguments).to_string(),
            seq: Seq(0),
        });
        Message::Assistant { call: ModelCallId(1), phase: Phase::Pursue, text: text.to_string(), uses: uses.collect() }
    }

    fn result_of(call: u32, kind: OutcomeKind) -> Message {
        Message::ToolResult {
            call: CallId(call),
            kind,
            text: "text".to_string(),
            bytes: 4,
            title: String::new(),
            took: Span(1),
        }
    }

    fn operator(text: &str) -> Message {
        Message::Operator { id: InterjectionId(1), text: text.to_string() }
    }

    fn engine(text: &str) -> Message {
        Message::Engine { text: text.to_string() }
    }

    fn check(messages: Vec<Message>, expected: &Value) {
        let body = body("tiny", OutputField::MaxTokens, &request(messages)).unwrap();
        assert_eq!(&body["messages"], expected);
    }

    #[test]
    fn a_conversation_is_encoded() {
        check(
            vec![
                operator("hello"),
                engine("note"),
                reply("I look", &[(1, r#"{"path": "a"}"#), (2, "{broken")]),
                result_of(2, OutcomeKind::Denied),
                result_of(1, OutcomeKind::Done),
                engine("go"),
            ],
            &json!([
                { "role": "system", "content": "be good" },
                { "role": "user", "content": "[operator]\nhello\n\n[engine]\nnote" },
                { "role": "assistant", "content": "I look", "tool_calls": [
                    { "id": "call_1", "type": "function",
                      "function": { "name": "read_file", "arguments": "{\"path\": \"a\"}" } },
                    { "id": "call_2", "type": "function",
                      "function": { "name": "read_file", "arguments": "{\"not_an_object\":\"{broken\"}" } },
                ] },
                { "role": "tool", "tool_call_id": "call_2", "content": "[denied]\ntext" },
                { "role": "tool", "tool_call_id": "call_1", "content": "text" },
                { "role": "user", "content": "[engine]\ngo\n\nthe plan" },
            ]),
        );
    }

    #[test]
    fn user_and_model_take_turns() {
        check(
            vec![reply("one", &[]), reply("", &[]), reply("two", &[])],
            &json!([
                { "role": "system", "content": "be good" },
                { "role": "user", "content": "[engine]\nGo on." },
                { "role": "assistant", "content": "one" },
                { "role": "user", "content": "[engine]\nGo on." },
                { "role": "assistant", "content": "two" },
                { "role": "user", "content": "the plan" },
            ]),
        );
    }

    #[test]
    fn the_rest_of_the_body_is_encoded() {
        let tools = vec![ToolSpec {
            name: "shell".to_string(),
            description: "runs".to_string(),
            schema: json!({ "type": "object" }),
            effect: EffectClass::External,
            noise: Noise::default(),
        }];
        let request = ModelRequest { offer: Arc::new(Offer::new(tools)), system: String::new(), ..request(vec![]) };
        let body = body("tiny", OutputField::MaxCompletionTokens, &request).unwrap();
        assert_eq!(
            body,
            json!({
                "model": "tiny",
                "messages": [{ "role": "user", "content": "the plan" }],
                "tools": [{ "type": "function", "function":
                    { "name": "shell", "description": "runs", "parameters": { "type": "object" } } }],
                "max_completion_tokens": 100,
                "stream": true,
                "stream_options": { "include_usage": true },
            })
        );
    }

    #[test]
    fn a_conversation_out_of_order_is_not_sent() {
        let wrong = |messages: Vec<Message>| body("tiny", OutputField::MaxTokens, &request(messages)).unwrap_err();
        let done = OutcomeKind::Done;
        assert!(wrong(vec![reply("", &[(1, "")])]).contains("c1 has no result"));
        assert!(wrong(vec![reply("", &[(1, "")]), operator("x"), result_of(1, done)]).contains("c1 has no result"));
        assert!(wrong(vec![reply("", &[(1, "")]), reply("x", &[])]).contains("c1 has no result"));
        assert!(wrong(vec![result_of(1, done)]).contains("c1 has no call"));
        assert!(wrong(vec![reply("", &[(1, "")]), result_of(1, done), result_of(1, done)]).contains("twice"));
        assert!(
            wrong(vec![reply("", &[(1, "")]), result_of(1, done), reply("", &[(1, "")])]).contains("own on the wire")
        );
    }
}
