//! Arguments as the model wrote them: read strictly, or refused with a sentence. It judges shape only, never meaning.

use std::fmt;

use serde::de::DeserializeOwned;
use serde::de::DeserializeSeed;
use serde::de::Deserializer;
use serde::de::Error;
use serde::de::MapAccess;
use serde::de::SeqAccess;
use serde::de::Visitor;
use serde_json::Map;
use serde_json::Value;

use crate::domain::limits;
use crate::domain::text::one_line;
use crate::domain::tool::Problem;
use crate::domain::tool::ProblemKind;

/// The longest part of a parser's own words that is passed on, in characters.
const REASON_MAX_CHARS: usize = 300;

/// A reason why a call can't be run.
pub(crate) fn problem(kind: ProblemKind, text: impl Into<String>) -> Problem {
    Problem::new(kind, text)
}

/// The arguments of a call in the shape that its tool declares.
///
/// Too long, not JSON, nested deeper than `limits::ARGUMENTS_MAX_DEPTH` or with a name twice in one object is
/// `Malformed` (two readers could understand it differently); another shape is `InvalidArguments`. No text at all
/// counts as `{}`, which some providers mean by it.
pub(crate) fn read<Shape: DeserializeOwned>(arguments: &str) -> Result<Shape, Problem> {
    let value = parse(arguments)?;
    if !value.is_object() {
        return Err(problem(ProblemKind::InvalidArguments, "The arguments must be a JSON object. Nothing was done."));
    }
    serde_json::from_value(value).map_err(|error| {
        let reason = one_line(&error.to_string(), REASON_MAX_CHARS);
        problem(
            ProblemKind::InvalidArguments,
            format!("The arguments do not fit the tool: {reason}. Nothing was done."),
        )
    })
}

/// Reads JSON as strictly as a decision needs it.
pub(crate) fn parse(arguments: &str) -> Result<Value, Problem> {
    if arguments.len() > limits::ARGUMENTS_MAX_BYTES {
        let text = format!(
            "The arguments have {} bytes and may have {}. Nothing was done; use smaller calls.",
            arguments.len(),
            limits::ARGUMENTS_MAX_BYTES
        );
        return Err(problem(ProblemKind::Malformed, text));
    }
    if arguments.trim().is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    let mut reader = serde_json::Deserializer::from_str(arguments);
    let value = Strict { depth: 0 }.deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
    value.map_err(|error| {
        let reason = one_line(&error.to_string(), REASON_MAX_CHARS);
        problem(ProblemKind::Malformed, format!("The arguments are not valid JSON: {reason}. Nothing was done."))
    })
}

/// Builds a value and refuses what could be read in two ways.
#[derive(Clone, Copy)]
struct Strict {
    depth: usize,
}

impl Strict {
    fn deeper<E: Error>(self) -> Result<Strict, E> {
        if self.depth >= limits::ARGUMENTS_MAX_DEPTH {
            return Err(E::custom(format!("nested deeper than {}", limits::ARGUMENTS_MAX_DEPTH)));
        }
        Ok(Strict { depth: self.depth + 1 })
    }
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut values = Vec::new();
        while let Some(value) = parts.next_element_seed(inner)? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut parts: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut values = Map::new();
        while let Some(name) = parts.next_key::<String>()? {
            let value = parts.next_value_seed(inner)?;
            if values.contains_key(&name) {
                return Err(A::Error::custom(format!("the name {:?} stands twice in one object", one_line(&name, 40))));
            }
            values.insert(name, value);
        }
        Ok(Value::Object(values))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Shape {
        path: String,
        #[serde(default)]
        lines: Option<u32>,
    }

    fn check(arguments: &str) -> String {
        match read::<Shape>(arguments) {
            Ok(shape) => format!("{} {:?}", shape.path, shape.lines),
            Err(problem) => format!("{:?}: {}", problem.kind, problem.text),
        }
    }

    #[test]
    fn arguments_that_fit_are_read() {
        assert_eq!(check(r#"{"path":"a","lines":3}"#), "a Some(3)");
        assert_eq!(check(r#" {"lines":null,"path":"a"} "#), "a None");
    }

    #[test]
    fn arguments_that_do_not_fit_are_refused() {
        for (arguments, wanted) in [
            ("", "InvalidArguments: The arguments do not fit the tool: missing field `path`"),
            ("[]", "InvalidArguments: The arguments must be a JSON object"),
            (r#"{"path":1}"#, "InvalidArguments: The arguments do not fit"),
            (
                r#"{"path":"a","pathh":"b"}"#,
                "InvalidArguments: The arguments do not fit the tool: unknown field `pathh`",
            ),
            (r#"{"path":"a""#, "Malformed: The arguments are not valid JSON"),
            (r#"{"path":"a"} x"#, "Malformed: The arguments are not valid JSON: trailing"),
            (r#"{"path":"\ud800"}"#, "Malformed: "),
            (
                r#"{"path":"a","path":"b"}"#,
                "Malformed: The arguments are not valid JSON: the name \"path\" stands twice",
            ),
            (r#"{"path":"a","x":{"b":1,"b":1}}"#, "Malformed: The arguments are not valid JSON: the name \"b\""),
        ] {
            let found = check(arguments);
            assert!(found.starts_with(wanted), "{arguments}: {found}");
        }
    }

    #[test]
    fn deep_and_long_arguments_are_harmless() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(parse(&nested(limits::ARGUMENTS_MAX_DEPTH)).is_ok());
        assert!(parse(&nested(limits::ARGUMENTS_MAX_DEPTH + 1)).unwrap_err().text.contains("nested deeper"));
        assert_eq!(parse(&nested(400_000)).unwrap_err().kind, ProblemKind::Malformed);
        let long = format!("\"{}\"", "x".repeat(limits::ARGUMENTS_MAX_BYTES));
        assert!(parse(&long).unwrap_err().text.contains("may have"));
    }
}
