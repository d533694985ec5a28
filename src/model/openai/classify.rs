//! What a provider's refusal means: status, code and words to a class of failure (docs/ENGINE.md §14.1). Pure.
//! Providers agree on little here, so the words count too. It decides nothing beyond the class.

use serde::Deserialize;
use serde_json::Value;

use crate::domain::model::FailureClass;

/// An error as a provider tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToldError {
    /// The sentence for people; possibly empty.
    pub sentence: String,
    /// A status that stands in the error itself, as in the middle of a stream.
    pub status: Option<u16>,
    /// Codes, types and the sentence together, in lower case.
    words: String,
}

impl ToldError {
    /// Reads the body of a refusal, whatever it is: JSON of several shapes, a page, nothing.
    pub fn of_body(body: &[u8]) -> ToldError {
        match serde_json::from_slice::<Value>(body) {
            Ok(Value::Array(items)) => items.first().map(ToldError::of_value).unwrap_or_default(),
            Ok(value) => ToldError::of_value(&value),
            Err(_) => {
                let text = String::from_utf8_lossy(body);
                let is_page = text.trim_start().starts_with('<');
                let sentence = if is_page { "(a web page)" } else { text.trim() };
                ToldError { sentence: sentence.to_string(), status: None, words: text.to_lowercase() }
            }
        }
    }

    /// Reads a JSON value that is an error or has one in it.
    pub fn of_value(value: &Value) -> ToldError {
        let inner = value.get("error").filter(|error| !error.is_null()).unwrap_or(value);
        if let Value::String(text) = inner {
            return ToldError { sentence: text.clone(), status: None, words: text.to_lowercase() };
        }
        let fields = Fields::deserialize(inner).unwrap_or_default();
        let text = |value: &Option<Value>| match value {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) | None => String::new(),
            Some(other) => other.to_string(),
        };
        let (message, detail) = (text(&fields.message), text(&fields.detail));
        let sentence = if message.is_empty() { detail } else { message };
        let words = [text(&fields.code), text(&fields.kind), text(&fields.status), sentence.clone()].join(" ");
        let status = fields.code.as_ref().and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
        ToldError { sentence, status, words: words.to_lowercase() }
    }

    fn says(&self, any: &[&str]) -> bool {
        any.iter().any(|words| self.words.contains(words))
    }
}

#[derive(Default, Deserialize)]
struct Fields {
    message: Option<Value>,
    detail: Option<Value>,
    code: Option<Value>,
    #[serde(rename = "type")]
    kind: Option<Value>,
    status: Option<Value>,
}

const CONTEXT: [&str; 10] = [
    "context_length_exceeded",
    "exceed_context_size",
    "context length",
    "context window",
    "context size",
    "maximum context",
    "prompt is too long",
    "input is too long",
    "prompt too long",
    "reduce the length",
];
const BILLING: [&str; 10] = [
    "quota",
    "billing",
    "insufficient balance",
    "insufficient_balance",
    "insufficient credit",
    "insufficient fund",
    "credit balance",
    "account balance",
    "spend limit",
    "usage limit",
];
const SPENDING: [&str; 3] = ["spending limit", "spend_limit", "usage_limit"];
const MODEL: [&str; 11] = [
    "model_not_found",
    "model not found",
    "model_not_exist",
    "unknown model",
    "no such model",
    "invalid model",
    "not a valid model",
    "does not exist",
    "does not support",
    "not supported",
    "unsupported",
];
const AUTH: [&str; 4] = ["invalid_api_key", "api_key_invalid", "api key not valid", "incorrect api key"];
const RATE: [&str; 3] = ["rate_limit", "rate limit", "too many requests"];
const OVERLOADED: [&str; 3] = ["overloaded", "server_busy", "service unavailable"];

/// The class of a refusal: an answer with a status other than success.
pub fn of_status(status: u16, told: &ToldError) -> FailureClass {
    let is_billing = told.says(&BILLING) || told.says(&SPENDING);
    match status {
        401 => FailureClass::Auth,
        402 => FailureClass::Billing,
        400 | 403 | 422 | 429 if is_billing => FailureClass::Billing,
        403 => FailureClass::Permission,
        429 => FailureClass::RateLimited,
        408 | 409 => FailureClass::Overloaded,
        // Some local servers refuse a long request with a status of their own fault.
        400 | 413 | 422 | 500..=599 if told.says(&CONTEXT) => FailureClass::ContextLength,
        500..=599 => FailureClass::Overloaded,
        400 | 422 if told.says(&AUTH) => FailureClass::Auth,
        400 | 422 if told.says(&MODEL) => FailureClass::ModelConfig,
        413 => FailureClass::TooLarge,
        400 | 422 => FailureClass::BadRequest,
        300..=499 => FailureClass::ModelConfig,
        _ => FailureClass::Unknown,
    }
}

/// Whether the provider took the request before it answered with this status; if not, it costs nothing
/// (docs/ENGINE.md §8.3).
pub fn is_accepted(status: u16, body: &[u8]) -> bool {
    match status {
        408 | 409 | 500..=599 => !body.is_empty(),
        300..=499 => false,
        _ => true,
    }
}

/// The class of an error in the middle of a stream that began well. What can't be told apart is a broken stream: it
/// may be tried again, but not often.
pub fn of_stream(told: &ToldError) -> FailureClass {
    if told.says(&CONTEXT) {
        return FailureClass::ContextLength;
    }
    if told.says(&BILLING) || told.says(&SPENDING) {
        return FailureClass::Billing;
    }
    match told.status {
        Some(status @ (401 | 402 | 403 | 404 | 429 | 502 | 503 | 529)) => of_status(status, told),
        Some(_) | None if told.says(&RATE) => FailureClass::RateLimited,
        Some(_) | None if told.says(&OVERLOADED) => FailureClass::Overloaded,
        Some(_) | None => FailureClass::StreamBroken,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(status: u16, body: &str, expected: FailureClass) {
        assert_eq!(of_status(status, &ToldError::of_body(body.as_bytes())), expected, "{status} {body}");
    }

    #[test]
    fn refusals_have_their_classes() {
        use FailureClass::*;
        check(401, "", Auth);
        check(402, "{}", Billing);
        check(403, r#"{"error":{"message":"country not supported"}}"#, Permission);
        check(403, r#"{"error":"your team has insufficient credits"}"#, Billing);
        check(404, r#"{"error":{"message":"model \"x\" not found, try pulling it first"}}"#, ModelConfig);
        check(400, r#"{"error":{"message":"The model `x` does not exist","code":"model_not_found"}}"#, ModelConfig);
        check(400, r#"{"error":{"message":"Unsupported parameter: 'max_tokens'"}}"#, ModelConfig);
        check(400, r#"{"error":{"message":"tiny does not support tools"}}"#, ModelConfig);
        check(400, r#"{"error":{"code":"context_length_exceeded","message":"too long"}}"#, ContextLength);
        check(400, r#"{"error":{"code":400,"type":"exceed_context_size_error","message":"n"}}"#, ContextLength);
        check(400, r#"{"object":"error","message":"This model's maximum context length is 4096"}"#, ContextLength);
        check(500, r#"{"error":{"message":"the request exceeds the available context size"}}"#, ContextLength);
        check(413, "", TooLarge);
        check(400, r#"{"error":{"message":"unbalanced brackets"}}"#, BadRequest);
        check(400, r#"[{"error":{"code":400,"message":"API key not valid","status":"INVALID_ARGUMENT"}}]"#, Auth);
        check(400, r#"{"error":{"message":"You have reached your specified API usage limits"}}"#, Billing);
        check(422, r#"{"detail":[{"loc":["body"],"msg":"field required"}]}"#, BadRequest);
        check(429, r#"{"error":{"type":"insufficient_quota","message":"You exceeded"}}"#, Billing);
        check(429, r#"{"error":{"code":"rate_limit_exceeded","message":"slow down"}}"#, RateLimited);
        check(429, "", RateLimited);
        check(408, "", Overloaded);
        check(409, "", Overloaded);
        check(500, "<html>", Overloaded);
        check(503, "", Overloaded);
        check(529, r#"{"error":{"type":"overloaded_error"}}"#, Overloaded);
        check(302, "", ModelConfig);
        check(405, "", ModelConfig);
        check(204, "", Unknown);
    }

    #[test]
    fn errors_in_a_stream_have_their_classes() {
        use FailureClass::*;
        let check = |text: &str, expected: FailureClass| {
            assert_eq!(of_stream(&ToldError::of_body(text.as_bytes())), expected, "{text}");
        };
        check(r#"{"error":{"code":500,"message":"does not match the expected format"}}"#, StreamBroken);
        check(r#"{"error":{"code":429,"message":"slow down"}}"#, RateLimited);
        check(r#"{"error":{"code":"rate_limit_exceeded","message":"slow down"}}"#, RateLimited);
        check(r#"{"error":{"code":429,"message":"out of quota"}}"#, Billing);
        check(r#"{"error":{"code":503,"message":"?"}}"#, Overloaded);
        check(r#"{"error":{"type":"overloaded_error","message":"?"}}"#, Overloaded);
        check(r#"{"error":{"code":"context_length_exceeded"}}"#, ContextLength);
        check(r#"{"error":"broken"}"#, StreamBroken);
        check(r#"{"error":{"message":{"deep":[1]}}}"#, StreamBroken);
    }

    #[test]
    fn sentences_are_found() {
        let check = |body: &str, expected: &str| assert_eq!(ToldError::of_body(body.as_bytes()).sentence, expected);
        check(r#"{"error":{"message":"a"}}"#, "a");
        check(r#"{"error":"b"}"#, "b");
        check(r#"{"message":"c"}"#, "c");
        check(r#"{"detail":"d"}"#, "d");
        check(r#"[{"error":{"message":"e"}}]"#, "e");
        check(" plain ", "plain");
        check("<!doctype html><p>x", "(a web page)");
        check("", "");
        check("[]", "");
        check("null", "");
    }

    #[test]
    fn what_was_not_accepted_costs_nothing() {
        for status in [302, 400, 401, 402, 403, 404, 413, 422, 429] {
            assert!(!is_accepted(status, b"x"), "{status}");
        }
        assert!(!is_accepted(503, b"") && is_accepted(503, b"x") && is_accepted(204, b""));
    }
}
