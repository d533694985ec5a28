//! The one place where secrets are taken out of what comes in: of every input before it can become a record, of what
//! tools find out and give, of scraps on their way to a screen, of the log (docs/ENGINE.md §11.4).
//!
//! Known values are found plainly and in their usual encodings, then what looks like a secret. It reads no variable and
//! no file: the roof hands in the values. What it finds is never said in any message.

use std::borrow::Cow;
use std::ops::Range;

use secrecy::ExposeSecret;
use secrecy::SecretString;
use serde_json::Value;

use crate::domain::approval::Decision;
use crate::domain::approval::Resolution;
use crate::domain::command::Command;
use crate::domain::command::PlanEdit;
use crate::domain::limits;
use crate::domain::line::Line;
use crate::domain::mark::HASH_CHARS;
use crate::domain::mark::mark;
use crate::domain::model::ModelReply;
use crate::domain::model::StopReason;
use crate::domain::text::sha256_hex;
use crate::domain::tool::Facts;
use crate::engine::redaction::encodings::Form;
use crate::engine::redaction::encodings::Written;
use crate::engine::redaction::readings::Readings;
use crate::engine::redaction::search::HEAD_BYTES;
use crate::engine::redaction::search::Search;
use crate::machine::Input;
use crate::machine::Outcome;
use crate::tools::Veil;

pub mod encodings;
mod lines;
pub mod patterns;
mod readings;
mod search;
pub mod stream;

/// A word that ends a line may be broken there, if it is so long.
const BROKEN_BYTES: usize = 16;

/// What knows the secrets.
pub struct Redactor {
    /// The key of the hashes in marks, in hexadecimal.
    key: SecretString,
    /// The marks of the known values, by their numbers.
    marks: Vec<String>,
    /// The known values as they are, or with escapes.
    plain: Search,
    /// The known values as digits of an encoding.
    digits: Search,
}

/// A piece of a text that is taken out.
struct Found {
    range: Range<usize>,
    mark: String,
}

impl Redactor {
    /// Knows these values, each by the name of what holds it. `key` is secret, and the same for every process.
    pub fn new(key: SecretString, values: impl IntoIterator<Item = (String, SecretString)>) -> Redactor {
        let none = || Search::of(Vec::new());
        let mut redactor = Redactor { key, marks: Vec::new(), plain: none(), digits: none() };
        let mut all: Vec<Written> = Vec::new();
        for (name, value) in values {
            let value = value.expose_secret();
            let parts = [value].into_iter().chain(lines::own(value));
            for part in parts.filter(|_| value.len() >= limits::SECRET_MIN_BYTES) {
                all.extend(encodings::of(redactor.marks.len(), part));
                redactor.marks.push(mark(&name, &redactor.hash(part)));
            }
        }
        let (plain, digits) = all.into_iter().partition(|one| one.form == Form::Plain);
        Redactor { plain: Search::of(plain), digits: Search::of(digits), ..redactor }
    }

    /// A text without secrets.
    pub fn cleaned<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut found = self.find_known(text);
        found.extend(patterns::find(text).into_iter().map(|(kind, range)| {
            let secret = text.get(range.clone()).unwrap_or_default();
            Found { mark: mark(kind, &self.hash(secret)), range }
        }));
        replace(text, found)
    }

    /// A text without known values; what only looks like a secret stays.
    pub fn exact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        replace(text, self.find_known(text))
    }

    /// Arguments of a call. They stay as they are, byte for byte, unless they hold a known value; then the mark in them
    /// keeps the call from running.
    pub fn arguments(&self, arguments: &str) -> String {
        let exact = self.exact(arguments);
        if let Ok(value) = serde_json::from_str::<Value>(&exact)
            && let Some(mark) = self.mark_within(&value)
        {
            // It is written with escapes, which hide it in the raw text.
            return serde_json::json!({ "secret": mark }).to_string();
        }
        exact.into_owned()
    }

    /// What a call would touch, as it may be shown and stored. What is bound are hashes and places, and stays.
    fn clean_facts(&self, mut facts: Facts) -> Facts {
        for text in [&mut facts.title, &mut facts.reach, &mut facts.preview] {
            self.clean(text);
        }
        if let Some(problem) = &mut facts.problem {
            self.clean(&mut problem.text);
        }
        facts.uncovered.iter_mut().for_each(|text| self.clean(text));
        let words = facts.line.iter_mut().flat_map(Line::texts_mut);
        for text in words.chain(facts.touches.iter_mut().map(|touch| &mut touch.word)) {
            self.clean(text);
        }
        facts
    }

    /// An input as the machine may see it.
    pub fn input(&self, input: Input) -> Input {
        match input {
            Input::Command(command, client) => Input::Command(self.command(command), client),
            Input::Outcome(outcome) => Input::Outcome(self.outcome(outcome)),
            Input::Recovered { .. } | Input::Unready { .. } | Input::Tick => input,
        }
    }

    fn command(&self, mut command: Command) -> Command {
        match &mut command {
            Command::Decide { decision: Decision::Deny(text), .. }
            | Command::Resolve { resolution: Resolution::Happened(text), .. }
            | Command::Answer { text, .. }
            | Command::Confirm { text, .. }
            | Command::Interject { text, .. }
            | Command::EditPlan(
                PlanEdit::Add { title: text }
                | PlanEdit::Retitle { title: text, .. }
                | PlanEdit::Mark { note: text, .. },
            ) => self.clean(text),
            Command::Coded { leave, .. } => **leave = self.command((**leave).clone()),
            Command::Decide { decision: Decision::Edit(arguments), .. } => *arguments = self.arguments(arguments),
            // The words of a rule are those of the call, which was cleaned before.
            Command::Decide {
                decision:
                    Decision::AllowOnce
                    | Decision::AllowRun
                    | Decision::AllowTool
                    | Decision::AllowRule(_)
                    | Decision::AllowUnboxed,
                ..
            }
            | Command::Resolve {
                resolution: Resolution::NotHappened | Resolution::RunAgain | Resolution::Skip, ..
            }
            | Command::AllowAll { .. }
            | Command::SetTrust(_)
            | Command::Withdraw(_)
            | Command::Pause(_)
            | Command::Resume
            | Command::GrantReplans
            | Command::Accept
            | Command::Close
            | Command::Retry
            | Command::Cancel(_)
            | Command::Raise { .. }
            | Command::EditPlan(PlanEdit::Move { .. })
            | Command::Correct { .. }
            | Command::Price { .. }
            | Command::Leave => {}
        }
        command
    }

    fn outcome(&self, mut outcome: Outcome) -> Outcome {
        match &mut outcome {
            Outcome::Model { result: Ok(reply), .. } => self.reply(reply),
            Outcome::Model { result: Err(failure), .. } => {
                self.clean(&mut failure.message);
                self.clean(&mut failure.received.text);
            }
            Outcome::Prepared(calls) => {
                for (_, facts) in calls {
                    *facts = self.clean_facts(std::mem::take(facts));
                }
            }
            Outcome::Tool { outcome, .. } => self.clean(&mut outcome.text),
            Outcome::Drifted { why, .. } => self.clean(why),
            Outcome::Check { detail, .. } => self.clean(detail),
            // What is read back was cleaned before it was recorded.
            Outcome::CheckEnded { .. } | Outcome::Probed { .. } | Outcome::ReadBack { .. } => {}
        }
        outcome
    }

    fn reply(&self, reply: &mut ModelReply) {
        self.clean(&mut reply.text);
        self.clean(&mut reply.reasoning);
        reply.opaque.iter_mut().for_each(|unknown| self.clean(unknown));
        if let StopReason::Other(reason) = &mut reply.stop {
            self.clean(reason);
        }
        for call in &mut reply.calls {
            call.arguments = self.arguments(&call.arguments);
            self.clean(&mut call.name);
            self.clean(&mut call.id);
        }
    }

    fn clean(&self, text: &mut String) {
        if let Cow::Owned(clean) = self.cleaned(text) {
            *text = clean;
        }
    }

    /// Whether a text ends in what may be the beginning of a known value, and where that begins.
    pub(crate) fn begins_known(&self, text: &str) -> Option<usize> {
        // The number of the next line may have come already.
        let end = text.trim_end_matches(|one: char| one.is_ascii_digit() || one == ' ');
        let least = if broken_word(text) >= BROKEN_BYTES { 1 } else { HEAD_BYTES };
        let look = |bytes: &[u8], is_squeezed: bool| match is_squeezed {
            true => self.digits.begun(bytes, least),
            false => self.plain.begun(bytes, 1).max(self.digits.begun(bytes, 1)),
        };
        let begun = |text: &str| Readings::of(text).begun_at_end(look);
        let before_number = if end.ends_with('\n') && end.len() < text.len() { begun(end) } else { None };
        [begun(text), before_number].into_iter().flatten().min()
    }

    /// A place in a text, moved to the front of the known value that it cuts.
    pub(crate) fn outside_known(&self, text: &str, place: usize) -> usize {
        let cut = |found: &Found| found.range.start < place && place < found.range.end;
        self.find_known(text).into_iter().filter(cut).map(|found| found.range.start).min().unwrap_or(place)
    }

    fn find_known(&self, text: &str) -> Vec<Found> {
        if self.marks.is_empty() {
            return Vec::new();
        }
        let readings = Readings::of(text);
        let mut found = readings.plain(|bytes, cuts| {
            let mut found = self.plain.whole(bytes);
            if !cuts.is_empty() {
                found.extend(self.plain.at_cuts(bytes, cuts));
                found.extend(self.digits.at_cuts(bytes, cuts));
            }
            found
        });
        found.extend(
            readings
                .digits(|bytes| self.digits.whole(bytes), |written, bytes, range| written.form.widened(bytes, range)),
        );
        let marked = |(range, written): (Range<usize>, &Written)| {
            Some(Found { range, mark: self.marks.get(written.value)?.clone() })
        };
        found.into_iter().filter_map(marked).collect()
    }

    /// The mark of the first known value in any text inside a value.
    fn mark_within(&self, value: &Value) -> Option<String> {
        match value {
            Value::String(text) => self.find_known(text).into_iter().next().map(|found| found.mark),
            Value::Array(items) => items.iter().find_map(|item| self.mark_within(item)),
            Value::Object(fields) => fields.iter().find_map(|(name, field)| {
                let named = self.find_known(name).into_iter().next().map(|found| found.mark);
                named.or_else(|| self.mark_within(field))
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) => None,
        }
    }

    fn hash(&self, secret: &str) -> String {
        let keyed = format!("{}\0{secret}", self.key.expose_secret());
        sha256_hex(keyed.as_bytes()).chars().take(HASH_CHARS).collect()
    }
}

impl Veil for Redactor {
    fn facts(&self, facts: Facts) -> Facts {
        self.clean_facts(facts)
    }

    fn text(&self, mut text: String) -> String {
        self.clean(&mut text);
        text
    }
}

/// How long the last word of a text is, with the text's end or a line break behind it.
fn broken_word(text: &str) -> usize {
    let text = text.trim_end_matches(|one: char| one.is_ascii_digit() || one.is_whitespace());
    text.len() - text.rfind(char::is_whitespace).unwrap_or(0)
}

/// The text with marks in the place of what was found. Pieces that touch become one.
fn replace(text: &str, mut found: Vec<Found>) -> Cow<'_, str> {
    if found.is_empty() {
        return Cow::Borrowed(text);
    }
    found.sort_by_key(|one| (one.range.start, std::cmp::Reverse(one.range.end)));
    let mut clean = String::with_capacity(text.len());
    let mut done = 0;
    let mut last_end = 0;
    for one in found {
        if one.range.start >= last_end {
            clean.push_str(text.get(done..one.range.start).unwrap_or_default());
            clean.push_str(&one.mark);
        }
        last_end = last_end.max(one.range.end);
        done = last_end;
    }
    clean.push_str(text.get(done..).unwrap_or_default());
    Cow::Owned(clean)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    const SECRET: &str = "hunter2/Hunter2+é\"x";

    fn redactor() -> Redactor {
        Redactor::new("key".to_string().into(), [("DB_PASSWORD".to_string(), SECRET.to_string().into())])
    }

    fn check(text: &str, expected: &str) {
        let clean = redactor().cleaned(text).into_owned();
        let mark = mark("DB_PASSWORD", &redactor().hash(SECRET));
        assert_eq!(clean.replace(&mark, "§"), expected, "{text}");
        assert_eq!(redactor().cleaned(&clean), clean, "once is enough");
    }

    #[test]
    fn known_values_are_found_in_their_encodings() {
        check(&format!("a {SECRET} b"), "a § b");
        check(&format!("{SECRET}{SECRET}"), "§§");
        check("a 68756e746572322f48756e746572322bc3a92278 b", "a § b");
        check("a 68756E746572322F48756E746572322BC3A92278 b", "a § b");
        check("a aHVudGVyMi9IdW50ZXIyK8OpIng= b", "a § b");
        check("wrapped aHVudGVyMi9IdW50\nZXIyK8OpIng=", "wrapped §");
        check("hunter2%2FHunter2%2B%C3%A9%22x", "§");
        check("hunter2%2fHunter2%2b%c3%a9%22x", "§");
        check(r#"{"a":"hunter2/Hunter2+é\"x"}"#, r#"{"a":"§"}"#);
        check("nothing here", "nothing here");
    }

    #[test]
    fn a_known_value_with_escapes_is_found() {
        let all = |write: fn(u32) -> String| SECRET.chars().map(|one| write(u32::from(one))).collect::<String>();
        let some = |write: fn(u32) -> String| -> String {
            let each =
                |(place, one): (usize, char)| if place % 3 == 1 { write(u32::from(one)) } else { one.to_string() };
            SECRET.chars().enumerate().map(each).collect()
        };
        let writes: [fn(u32) -> String; 6] = [
            |one| format!("\\u{one:04x}"),
            |one| format!("\\u{one:04X}"),
            |one| format!("\\u{{{one:x}}}"),
            |one| format!("&#{one};"),
            |one| format!("&#x{one:X};"),
            |one| format!("\\\\u{one:04x}"),
        ];
        for write in writes {
            check(&format!("a {} b", all(write)), "a § b");
            check(&format!("a {} b", some(write)), "a § b");
        }
        let bytes = |write: fn(u8) -> String| SECRET.bytes().map(write).collect::<String>();
        check(&format!("a {} b", bytes(|one| format!("\\x{one:02X}"))), "a § b");
        check(&format!("a {} b", bytes(|one| format!("%{one:02x}"))), "a § b");
        check(&format!("a {} b", bytes(|one| format!("\\{one:03o}"))), "a § b");
        check("hunter2/Hunter2+é&quot;x &amp; more", "§ &amp; more");
        // A string of JSON in a string of JSON, and one that ends within an escape.
        check(r#""{\"a\":\"hunter2\\/Hunter2+é\\\"x\"}" 100% \u00"#, r#""{\"a\":\"§\"}" 100% \u00"#);
        check(r"\n aHVudGVyMi9IdW50\nZXIyK8OpIng= \ud83d\ude00", r"\n § \ud83d\ude00");
        check("1\taHVudGVyMi9IdW50\n  12\tZXIyK8OpIng=\n", "1\t§\n");
        check("a.txt:7:aHVudGVyMi9IdW50\na.txt:8:ZXIyK8OpIng=\n", "a.txt:7:§\n");
        check("> aHVudGVyMi9IdW50\n> ZXIyK8OpIng=\n", "> §\n");
    }

    /// A key as a variable has it. It is made up.
    const KEY: &str = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIKe1/+4Rr0gOdVZ0OVpqWmT2\nb25lIG1vcmUgbGluZQ+9xY\nAwEHoUQDQ==\n-----END EC PRIVATE KEY-----\n";
    const LINES: [&str; 3] = ["MHcCAQEEIKe1/+4Rr0gOdVZ0OVpqWmT2", "b25lIG1vcmUgbGluZQ+9xY", "AwEHoUQDQ=="];

    #[test]
    fn lines_of_a_known_value_are_found_apart() {
        for value in [KEY.to_string(), KEY.replace('\n', "\\n"), KEY.replace('\n', "\r\n")] {
            let redactor = Redactor::new("key".to_string().into(), [("SIGNING_KEY".to_string(), value.clone().into())]);
            let shown: [fn(&str) -> String; 9] = [
                |line| format!("12\t{line}\n"),
                |line| format!("key.txt:12:{line}\n"),
                |line| format!("+{line}\n"),
                |line| format!("> {line}\r\n"),
                |line| format!("    {line}$\n"),
                |line| format!("{}\n", encodings::base64(line.as_bytes())),
                |line| format!("{}\n", crate::domain::text::hex(line.as_bytes())),
                |line| line.chars().map(|one| format!("\\u{:04x}", u32::from(one))).collect(),
                |line| line.bytes().map(|one| format!("%{one:02X}")).collect(),
            ];
            for show in shown {
                // In any order, without what stands around it.
                let text: String = LINES.iter().rev().map(|line| show(line)).collect();
                let clean = redactor.cleaned(&text);
                assert_eq!(clean.matches("[redacted:SIGNING_KEY:").count(), 3, "{clean}");
                for line in LINES {
                    assert!(!clean.contains(&line[..8]) && !clean.contains(&show(line)), "{clean}");
                }
            }
            let other = "-----BEGIN EC PRIVATE KEY----- and -----END EC PRIVATE KEY-----";
            assert_eq!(redactor.exact(other), other);
            assert!(redactor.cleaned(KEY).starts_with("[redacted:"));
        }
    }

    #[test]
    fn a_line_is_taken_out_whatever_its_signs_and_headings_stay() {
        let check = |value: &str, text: &str, expected: &str| {
            let redactor = Redactor::new("key".to_string().into(), [("MY_KEY".to_string(), value.to_string().into())]);
            let clean = redactor.cleaned(text).into_owned();
            let marks: Vec<&str> = clean.split("[redacted:MY_KEY:").skip(1).filter_map(|rest| rest.get(..9)).collect();
            let shown =
                marks.iter().fold(clean.clone(), |text, rest| text.replace(&format!("[redacted:MY_KEY:{rest}"), "§"));
            assert_eq!(shown, expected, "{value}");
        };
        check("staple [horse\n[battery]{\n", "12: staple [horse\n13: [battery]{\n", "12: §\n13: §\n");
        let ini = "[default]\nregion = here\naws_secret_access_key = wJalrXUtnFEMI/K7MDENG";
        check(ini, "see [default] and region = here", "see [default] and region = here");
        check(ini, "+aws_secret_access_key = wJalrXUtnFEMI/K7MDENG", "+§");
        let kube = "users:\n- name: me\n  user:\n    client-key-data: LS0tLS1CRUdJTg==\n";
        check(kube, "users:\n- name: me\nclient-key-data: LS0tLS1CRUdJTg==", "users:\n- name: me\n§");
    }

    #[test]
    fn a_value_within_other_base64_is_found() {
        for before in ["", "u", "us", "use"] {
            let text = encodings::base64(format!("{before}{SECRET}:more").as_bytes());
            let clean = redactor().cleaned(&text).into_owned();
            assert!(clean.contains("[redacted:DB_PASSWORD:"), "{before}: {clean}");
        }
    }

    #[test]
    fn a_part_beside_a_cut_is_taken_out() {
        check(&format!("a {}\n[… 9 bytes left out …]\nb", &SECRET[..10]), "a §\n[… 9 bytes left out …]\nb");
        check(&format!("a\n[… 9 bytes left out …]\n{} b", &SECRET[9..]), "a\n[… 9 bytes left out …]\n§ b");
    }

    #[test]
    fn arguments_stay_exact_unless_they_hold_a_known_value() {
        let redactor = redactor();
        let fixture = r#"{"content":"sk-abcdefghijklmnopqrstuvwxyz0123"}"#;
        assert_eq!(redactor.arguments(fixture), fixture);
        assert!(redactor.cleaned(fixture).contains("[redacted:provider-key:"));
        for holds in [r#"{"a":"hunter2/Hunter2+é\"x"}"#, r#"{"a":["hunter2\/Hunter2+\u00e9\"x"]}"#] {
            let clean = redactor.arguments(holds);
            assert!(crate::domain::mark::holds_mark(&clean) && !clean.contains("unter2"), "{clean}");
        }
    }

    #[test]
    fn short_values_are_no_secrets() {
        let redactor = Redactor::new("key".to_string().into(), [("A_KEY".to_string(), "true".to_string().into())]);
        assert_eq!(redactor.cleaned("it is true"), "it is true");
    }
}
