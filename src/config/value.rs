//! Values of the configuration: from TOML or from text to what is meant, or to the sentence that says what is expected.
//! A value that may be a key is never repeated.

use toml::Spanned;
use toml::de::DeValue;

use crate::config::Resume;
use crate::config::checks;
use crate::config::keys::Holds;
use crate::config::keys::split_model;
use crate::domain::budget::Axis;
use crate::domain::budget::Limit;
use crate::domain::deadline::Deadline;
use crate::domain::limits;
use crate::domain::money::MicroUsd;
use crate::domain::terms::Check;
use crate::domain::trust::Trust;
use crate::model::http;
use crate::tools::web_fetch::address::opened;

/// A value as it is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// A text.
    Text(String),
    /// A list of texts.
    List(Vec<String>),
    /// Yes or no.
    Switch(bool),
    /// What must hold before a claim is believed.
    Checks(Vec<Check>),
    /// A limit on an axis.
    Axis(Axis, Limit),
    /// Any other limit.
    Limit(Limit),
    /// Until when a run may work.
    Deadline(Deadline),
    /// Whether a run that was cut off goes on by itself.
    Resume(Resume),
    /// How much a run does unasked.
    Trust(Trust),
    /// Tokens, or micro-dollars per million tokens.
    Number(u64),
}

/// Reads a value of the file. Errors with what is expected.
pub(crate) fn from_toml(holds: Holds, value: &Spanned<DeValue<'_>>) -> Result<Value, String> {
    let expected = |found: &str| Err(format!("expected {}, found {found}", holds.form()));
    match (holds, value.get_ref()) {
        (Holds::Checks, DeValue::Array(items)) => checks::from_toml(items),
        (Holds::Variables, DeValue::Array(items)) => {
            let texts: Option<Vec<String>> =
                items.iter().map(|item| item.get_ref().as_str().map(ToString::to_string)).collect();
            texts.map_or_else(|| expected("a list with something else in it"), variables)
        }
        (Holds::Words, DeValue::Array(items)) => {
            let texts: Option<Vec<String>> =
                items.iter().map(|item| item.get_ref().as_str().map(ToString::to_string)).collect();
            texts.map_or_else(|| expected("a list with something else in it"), words)
        }
        (Holds::Ports, DeValue::Array(items)) => {
            let texts: Option<Vec<&str>> = items.iter().map(|item| item.get_ref().as_str()).collect();
            texts.map_or_else(|| expected("a list with something else in it"), |texts| ports(&texts))
        }
        (Holds::Folders, DeValue::Array(items)) => {
            let texts: Option<Vec<String>> =
                items.iter().map(|item| item.get_ref().as_str().map(ToString::to_string)).collect();
            texts.map_or_else(|| expected("a list with something else in it"), folders)
        }
        (Holds::Checks | Holds::Variables | Holds::Ports | Holds::Words | Holds::Folders, other) => {
            expected(kind(other))
        }
        (Holds::Switch, DeValue::Boolean(on)) => Ok(Value::Switch(*on)),
        (Holds::Switch, other) => expected(kind(other)),
        (_, DeValue::String(text)) => from_text(holds, text),
        (Holds::Limit(Axis::Cost) | Holds::Daily | Holds::Dollars, DeValue::Float(number)) => {
            Err(format!("money is written in quotes, so that it is exact; write \"{}\"", number.as_str()))
        }
        (Holds::Deadline | Holds::Limit(Axis::Active), other) => expected(kind(other)),
        (Holds::Limit(_) | Holds::Daily | Holds::Count | Holds::Tokens | Holds::Dollars, DeValue::Integer(number)) => {
            match i64::from_str_radix(number.as_str(), number.radix()) {
                Ok(number) => from_text(holds, &number.to_string()),
                Err(_) => expected("a number that is too large"),
            }
        }
        (_, other) => expected(kind(other)),
    }
}

pub(crate) fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a point",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// Reads a value of the environment, the command line, or a text of the file. Errors with what is expected.
pub(crate) fn from_text(holds: Holds, text: &str) -> Result<Value, String> {
    let expected = || format!("expected {}", holds.form());
    match holds {
        Holds::Model => split_model(text).map(|_| Value::Text(text.to_string())),
        Holds::Text if text.len() > limits::SAY_MAX_BYTES => {
            Err(format!("it is longer than {} bytes; put it in a file and name the file", limits::SAY_MAX_BYTES))
        }
        Holds::Text if text.contains('\0') => Err("it holds a NUL, which providers refuse; take it out".to_string()),
        Holds::Text => Ok(Value::Text(text.to_string())),
        Holds::Checks => checks::of(vec![Check::Command(text.to_string())]),
        Holds::Variables => variables(vec![text.to_string()]),
        Holds::Ports => ports(&[text]),
        Holds::Words => words(vec![text.to_string()]),
        Holds::Variable if is_variable(text) => Ok(Value::Text(text.to_string())),
        // What stands here may be the key itself: it is never repeated.
        Holds::Variable => Err(format!(
            "expected {}; what is written is not shown, because it may be the key itself; if it is, take it out of the \
             file and put it in the environment",
            holds.form()
        )),
        Holds::Address => address(text).map(Value::Text),
        Holds::Resume => match text {
            "ask" => Ok(Value::Resume(Resume::Ask)),
            "auto" => Ok(Value::Resume(Resume::Auto)),
            _ => Err(expected()),
        },
        Holds::Trust => Trust::parse(text).map(Value::Trust).map_err(|_| expected()),
        Holds::Sandbox => match text {
            "auto" => Ok(Value::Switch(true)),
            "none" => Ok(Value::Switch(false)),
            _ => Err(expected()),
        },
        Holds::Folders => folders(vec![text.to_string()]),
        Holds::Switch => text.parse().map(Value::Switch).map_err(|_| expected()),
        Holds::Limit(axis) => axis.parse_limit(text).map(|limit| Value::Axis(axis, limit)),
        Holds::Deadline => match Deadline::parse(text)? {
            deadline @ (Deadline::After(_) | Deadline::None) => Ok(Value::Deadline(deadline)),
            Deadline::At(_) => Err(format!("{}; a moment is for one run: --deadline", expected())),
        },
        Holds::Count => Axis::Loops
            .parse_limit(text)
            .map(Value::Limit)
            .map_err(|_| format!("{}; with zero, each run would be removed as soon as it has ended", expected())),
        Holds::Daily => Axis::Cost.parse_limit(text).map(Value::Limit),
        Holds::Tokens => match text.parse() {
            Ok(tokens) if tokens > 0 => Ok(Value::Number(tokens)),
            Ok(_) | Err(_) => Err(expected()),
        },
        Holds::Dollars => MicroUsd::parse_dollars(text).map(|price| Value::Number(price.0)).ok_or_else(expected),
    }
}

/// A program is found by its whole path or on the search path: never beside where tiller happens to be started.
fn words(words: Vec<String>) -> Result<Value, String> {
    let is_found =
        words.first().is_none_or(|program| program.starts_with('/') || (!program.is_empty() && !program.contains('/')));
    if !is_found {
        return Err("the program is named by its whole path, from / on, or by a name alone".to_string());
    }
    if words.iter().any(|word| word.contains('\0')) {
        return Err("a word of it holds a NUL, which no program can be given; take it out".to_string());
    }
    match words.iter().all(|word| word.len() <= limits::PATH_MAX_BYTES) {
        true => Ok(Value::List(words)),
        false => Err(format!("a word of it is longer than {} bytes; shorten it", limits::PATH_MAX_BYTES)),
    }
}

fn ports(texts: &[&str]) -> Result<Value, String> {
    texts.iter().map(|text| opened(text)).collect::<Result<_, _>>().map(Value::List)
}

/// What each of them would open is judged where the box is made.
fn folders(folders: Vec<String>) -> Result<Value, String> {
    let fits = |folder: &String| {
        (folder.starts_with('/') || folder.starts_with("~/"))
            && folder.len() <= limits::PATH_MAX_BYTES
            && !folder.contains('\0')
    };
    match folders.iter().all(fits) {
        true => Ok(Value::List(folders)),
        false => Err(format!("expected {}", Holds::Folders.form())),
    }
}

fn variables(names: Vec<String>) -> Result<Value, String> {
    match names.iter().all(|name| is_variable(name)) {
        true => Ok(Value::List(names)),
        false => Err(format!("expected {}; only the names, never NAME=value", Holds::Variables.form())),
    }
}

/// Whether a text is the name of an environment variable, and can't be taken for a key. Keys have small letters,
/// other signs, or a long row of letters and digits.
fn is_variable(text: &str) -> bool {
    let starts = text.bytes().next().is_some_and(|byte| byte.is_ascii_uppercase() || byte == b'_');
    let named = text.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
    starts && named && text.len() <= 64 && text.split('_').all(|word| word.len() <= 20)
}

fn address(text: &str) -> Result<String, String> {
    // A URL is read without the tabs and line ends in it, so what is shown would not be what is called.
    if text.len() > limits::PATH_MAX_BYTES || text.contains(|one: char| one.is_control() || one.is_whitespace()) {
        let most = limits::PATH_MAX_BYTES;
        return Err(format!("a base URL has at most {most} bytes, no spaces and no control characters"));
    }
    http::judged(text).map(|_| text.trim_end_matches('/').to_string())
}
