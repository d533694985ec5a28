//! What is left of a call and of a result when everything is taken out that differs by itself and means nothing
//! (docs/ENGINE.md §7.1). Only for comparing: what is shown and what runs are the exact bytes.

use serde_json::Value;

use crate::domain::tool::Noise;

/// Words before a number that name a process.
const PROCESS_WORDS: [&str; 3] = ["pid", "ppid", "process"];
/// Units of time that may follow a number.
const UNITS: [&str; 17] = [
    "ns", "µs", "us", "ms", "s", "sec", "secs", "second", "seconds", "m", "min", "mins", "minute", "minutes", "h",
    "hour", "hours",
];
/// Where temporary files are.
const TEMPORARY: [&str; 3] = ["/tmp/", "/var/tmp/", "/var/folders/"];

/// The arguments without those that the tool calls presentational, names in order; as they are where they are no
/// object.
pub fn arguments(noise: &Noise, arguments: &str) -> String {
    let Ok(Value::Object(fields)) = serde_json::from_str::<Value>(arguments) else { return arguments.to_string() };
    let kept = fields.into_iter().filter(|(name, _)| !noise.presentational.contains(name)).collect();
    sorted(Value::Object(kept)).to_string()
}

fn sorted(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<(String, Value)> = fields.into_iter().collect();
            fields.sort_by(|(one, _), (other, _)| one.cmp(other));
            Value::Object(fields.into_iter().map(|(name, value)| (name, sorted(value))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => other,
    }
}

/// A result without colours, times, lengths of time, process numbers and temporary paths, where the tool's results
/// hold such things.
pub fn result(noise: &Noise, text: &str) -> String {
    if !noise.is_output {
        return text.to_string();
    }
    let mut words = Words { last: String::new(), out: String::with_capacity(text.len()) };
    let plain = without_colours(text);
    let mut rest = plain.as_str();
    while let Some(first) = rest.chars().next() {
        let temporary = TEMPORARY.iter().any(|folder| rest.starts_with(folder));
        let length = if temporary {
            rest.find(|sign: char| sign.is_whitespace() || "'\"`:;,()[]<>".contains(sign)).unwrap_or(rest.len())
        } else if first.is_ascii_digit() {
            number_length(rest)
        } else if first.is_alphabetic() || first == '_' {
            rest.find(|sign: char| !sign.is_alphanumeric() && sign != '_').unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        let (piece, after) = rest.split_at(length.max(first.len_utf8()));
        rest = words.take(piece, after, temporary);
    }
    words.out
}

/// What was put out so far, and the last word, which may say what a number is.
struct Words {
    last: String,
    out: String,
}

impl Words {
    /// Puts out a piece, or what stands for it; gives what is left to read.
    fn take<'text>(&mut self, piece: &str, after: &'text str, is_temporary: bool) -> &'text str {
        let is_number = piece.starts_with(|sign: char| sign.is_ascii_digit());
        let is_word = piece.starts_with(|sign: char| sign.is_alphabetic());
        if is_temporary {
            self.out.push_str("<path>");
        } else if is_number && is_time(piece) {
            self.out.push_str("<time>");
        } else if is_number && PROCESS_WORDS.contains(&self.last.as_str()) {
            self.out.push_str("<process>");
        } else if let Some(length) = unit_length(after).filter(|_| is_number) {
            self.out.push_str("<span>");
            self.last.clear();
            return after.get(length..).unwrap_or_default();
        } else {
            self.out.push_str(piece);
        }
        if is_word {
            self.last = piece.to_lowercase();
        } else if is_number {
            self.last.clear();
        }
        after
    }
}

/// Length of a number with all that may belong to a date or a time of day: digits, and points, colons, dashes, `T`,
/// `Z` and `+` between digits.
fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut end = 0;
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    while digit(end) {
        while digit(end) {
            end += 1;
        }
        let joins = bytes.get(end).is_some_and(|sign| b".:-T+,".contains(sign));
        // `2026-03-01 12:00:00`: a day and a time of day are one.
        let day_and_time =
            bytes.get(end) == Some(&b' ') && is_day(&text[..end]) && text[end + 1..].get(2..3) == Some(":");
        if (joins || day_and_time) && digit(end + 1) {
            end += 1;
        }
    }
    if bytes.get(end) == Some(&b'Z') { end + 1 } else { end }
}

/// `2026-03-01` and whatever follows, or `12:00:00`.
fn is_time(number: &str) -> bool {
    is_day(number.get(..10).unwrap_or_default()) || {
        let parts: Vec<&str> = number.split(':').collect();
        parts.len() == 3 && parts.first().is_some_and(|hour| hour.len() == 2)
    }
}

fn is_day(text: &str) -> bool {
    text.len() == 10
        && text
            .bytes()
            .enumerate()
            .all(|(at, byte)| if at == 4 || at == 7 { byte == b'-' } else { byte.is_ascii_digit() })
}

/// Length of a unit of time right after a number, with a space before it or not.
fn unit_length(after: &str) -> Option<usize> {
    let spaced = after.strip_prefix(' ').unwrap_or(after);
    let word = spaced.find(|sign: char| !sign.is_alphanumeric()).unwrap_or(spaced.len());
    let unit = spaced.get(..word)?;
    // A single letter after a space is a word of its own.
    let counts = UNITS.contains(&unit) && (spaced.len() == after.len() || unit.len() > 1);
    counts.then_some(after.len() - spaced.len() + word)
}

/// The text without the sequences that a terminal takes as commands.
fn without_colours(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut signs = text.chars().peekable();
    while let Some(sign) = signs.next() {
        if sign != '\u{1b}' {
            out.push(sign);
            continue;
        }
        match signs.next() {
            Some('[') => while signs.next().is_some_and(|sign| !('@'..='~').contains(&sign)) {},
            Some(']') => while signs.next().is_some_and(|sign| sign != '\u{7}' && sign != '\\') {},
            Some(_) | None => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_by_itself_is_taken_out_of_output() {
        let noise = Noise { presentational: Vec::new(), is_output: true };
        for (text, left) in [
            ("exit status 1\n3 of 17 tests failed", "exit status 1\n3 of 17 tests failed"),
            ("\u{1b}[31mred\u{1b}[0m \u{1b}]0;title\u{7}x", "red x"),
            ("finished in 1.23s", "finished in <span>"),
            ("took 12 ms, or 3 seconds; 5 m", "took <span>, or <span>; 5 m"),
            ("at 2026-03-01T12:00:01.5Z", "at <time>"),
            ("at 2026-03-01 12:00:01+01:00 ok", "at <time> ok"),
            ("[12:00:01] up", "[<time>] up"),
            ("pid 4711, PID=12 process: 9", "pid <process>, PID=<process> process: <process>"),
            ("see /tmp/tmp.Ab12/x.log:3", "see <path>:3"),
            ("version 1.2.3 of é-7", "version 1.2.3 of é-7"),
            ("10:30 and 4s5", "10:30 and 4s5"),
        ] {
            assert_eq!(result(&noise, text), left, "{text}");
        }
        assert_eq!(result(&Noise::default(), "took 1s"), "took 1s");
    }

    #[test]
    fn arguments_are_compared_by_what_they_mean() {
        let noise = Noise { presentational: vec!["context".to_string()], is_output: false };
        for (written, left) in [
            (r#"{"b": 1, "a": {"y": [1, 2], "x": 0}}"#, r#"{"a":{"x":0,"y":[1,2]},"b":1}"#),
            (r#"{"a":1,"context":3}"#, r#"{"a":1}"#),
            ("not json", "not json"),
            ("[1]", "[1]"),
        ] {
            assert_eq!(arguments(&noise, written), left);
        }
    }
}
