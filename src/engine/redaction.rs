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

use crate::domain::limits;
use crate::domain::line::Line;
use crate::domain::line::Touch;
use crate::domain::mark::HASH_CHARS;
use crate::domain::mark::mark;
use crate::domain::text::sha256_hex;
use crate::domain::tool::Facts;
use crate::engine::redaction::encodings::Form;
use crate::engine::redaction::encodings::Written;
use crate::engine::redaction::readings::Kind;
use crate::engine::redaction::readings::Readings;
use crate::engine::redaction::search::HEAD_BYTES;
use crate::engine::redaction::search::Search;
use crate::tools::Veil;

pub mod encodings;
mod inputs;
mod lines;
pub mod patterns;
mod readings;
mod search;
pub mod stream;

/// A word that ends a line may be broken there, if it is so long.
const BROKEN_BYTES: usize = 16;

/// Digits of a byte in hexadecimal: so little is held where bytes are shown one by one.
const BYTE_DIGITS: usize = 2;
/// The kind of a secret of which only the beginning came.
const CUT_OFF: &str = "cut-off";
/// What a binding with marks in it has besides: a keyed hash of what it was without them.
const UNMARKED: &str = "unmarked";

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
        let readings = Readings::of(text);
        let mut found = self.known_in(&readings);
        found.extend(patterns::find(text).into_iter().map(|(kind, range)| {
            let secret = text.get(range.clone()).unwrap_or_default();
            Found { mark: mark(kind, &self.hash(secret)), range }
        }));
        let seen = readings.seen(patterns::find).into_iter();
        found.extend(seen.map(|(kind, secret, range)| Found { mark: mark(kind, &self.hash(&secret)), range }));
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

    /// What a call would touch, as it may be shown, stored and bound: it is so wherever its digest is made. Rules go by
    /// the places that are bound, and files are put back by them, so of these only known values are taken out.
    fn clean_facts(&self, mut facts: Facts) -> Facts {
        for text in [&mut facts.title, &mut facts.reach, &mut facts.preview] {
            self.clean(text);
        }
        if let Some(problem) = &mut facts.problem {
            self.clean(&mut problem.text);
        }
        let bound = facts.binding.join("\n");
        facts.binding.iter_mut().chain(facts.write.iter_mut().map(|write| &mut write.path)).for_each(|text| {
            *text = self.exact(text).into_owned();
        });
        if facts.binding.join("\n") != bound {
            // One mark may stand for what differs: secrets that touch, or digits beside one.
            facts.binding.push(format!("{UNMARKED}={}", self.keyed(&bound)));
        }
        facts.uncovered.iter_mut().for_each(|text| self.clean(text));
        let words = facts.line.iter_mut().flat_map(Line::texts_mut);
        for text in words.chain(facts.touches.iter_mut().flat_map(Touch::texts_mut)) {
            self.clean(text);
        }
        facts
    }

    fn clean(&self, text: &mut String) {
        if let Cow::Owned(clean) = self.cleaned(text) {
            *text = clean;
        }
    }

    /// As `clean`, of a text that was cut off.
    fn clean_cut(&self, text: &mut String) {
        self.clean(text);
        self.take_begun(text);
    }

    /// Takes out a long beginning of a known value at the end of a text.
    fn take_begun(&self, text: &mut String) {
        let look = |bytes: &[u8], kind| self.begun(bytes, kind, [HEAD_BYTES; 3]);
        if let Some(start) = Readings::of(text).begun_at_end(look) {
            let mark = mark(CUT_OFF, &self.hash(text.get(start..).unwrap_or_default()));
            text.replace_range(start.., &mark);
        }
    }

    /// Whether a text ends in what may be the beginning of a known value, and where that begins.
    pub(crate) fn begins_known(&self, text: &str) -> Option<usize> {
        // The number of the next line may have come already.
        let end = text.trim_end_matches(|one: char| one.is_ascii_digit() || one == ' ');
        let least = if broken_word(text) >= BROKEN_BYTES { 1 } else { HEAD_BYTES };
        let look = |bytes: &[u8], kind| self.begun(bytes, kind, [1, least, BYTE_DIGITS]);
        let begun = |text: &str| Readings::of(text).begun_at_end(look);
        let before_number = if end.ends_with('\n') && end.len() < text.len() { begun(end) } else { None };
        [begun(text), before_number].into_iter().flatten().min()
    }

    /// How much of a known value stands at the end of a reading: at least so much in one with blanks, without blanks, and
    /// of bytes that are shown one by one.
    fn begun(&self, bytes: &[u8], kind: Kind, [plain, squeezed, dumped]: [usize; 3]) -> Option<usize> {
        match kind {
            Kind::Undone | Kind::Seen => self.plain.begun(bytes, plain).max(self.digits.begun(bytes, plain)),
            Kind::Squeezed => self.digits.begun(bytes, squeezed),
            Kind::Dumped => self.digits.begun(bytes, dumped),
        }
    }

    /// A place in a text, moved to the front of the known value that it cuts.
    pub(crate) fn outside_known(&self, text: &str, place: usize) -> usize {
        let cut = |found: &Found| found.range.start < place && place < found.range.end;
        self.find_known(text).into_iter().filter(cut).map(|found| found.range.start).min().unwrap_or(place)
    }

    fn find_known(&self, text: &str) -> Vec<Found> {
        self.known_in(&Readings::of(text))
    }

    fn known_in(&self, readings: &Readings<'_>) -> Vec<Found> {
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
        self.keyed(secret).chars().take(HASH_CHARS).collect()
    }

    fn keyed(&self, secret: &str) -> String {
        sha256_hex(format!("{}\0{secret}", self.key.expose_secret()).as_bytes())
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
    use crate::domain::line::Named;
    use crate::domain::tool::FileWrite;

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
        let writes: [fn(u32) -> String; 8] = [
            |one| format!("\\u{one:04x}"),
            |one| format!("\\u{one:04X}"),
            |one| format!("\\u{{{one:x}}}"),
            |one| format!("&#{one};"),
            |one| format!("&#x{one:X};"),
            |one| format!("\\\\u{one:04x}"),
            |one| format!("\\U{one:08X}"),
            |one| format!("\\x{{{one:x}}}"),
        ];
        for write in writes {
            check(&format!("a {} b", all(write)), "a § b");
            check(&format!("a {} b", some(write)), "a § b");
        }
        let bytes = |write: fn(u8) -> String| SECRET.bytes().map(write).collect::<String>();
        check(&format!("a {} b", bytes(|one| format!("\\x{one:02X}"))), "a § b");
        check(&format!("a {} b", bytes(|one| format!("%{one:02x}"))), "a § b");
        check(&format!("a {} b", bytes(|one| format!("\\{one:03o}"))), "a § b");
        check(r"hunt\145r2\57Hunt\145r2\53é\42x \7", r"§ \7");
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

    /// What a screen drops between letters does not hide them, nor what a terminal would obey.
    #[test]
    fn a_known_value_with_colours_in_it_is_found() {
        let long = format!("\u{1b}[{}m", "1;".repeat(2_000));
        for code in ["\u{1b}[m", "\u{1b}[38:5:1m", "\u{1b}[0m\u{1b}[1;31m", "\u{1b}[K", "\u{1b}[?4m", &long] {
            let all: String = SECRET.chars().flat_map(|one| [one.to_string(), code.to_string()]).collect();
            check(&format!("a {code}{} b", all.trim_end_matches(code)), &format!("a {code}§ b"));
            check(&format!("a {}{code}{} b", &SECRET[..9], &SECRET[9..]), "a § b");
            check(&format!("a aHVudGVyMi9I{code}dW50\n{code}ZXIyK8OpIng= b"), "a § b");
            let json = serde_json::json!(format!("{}{code}{}", &SECRET[..9], &SECRET[9..])).to_string();
            check(&json, "\"§\"");
            check(&json.replace("\\u001b", "\\033"), "\"§\"");
            assert_eq!(redactor().arguments(&json).matches("[redacted:").count(), 1);
            let key = format!("sk-abcdefghijkl{code}mnopqrstuvwxyz0123");
            let clean = redactor().cleaned(&key).into_owned();
            assert!(clean.starts_with("[redacted:provider-key:") && !clean.contains("mnop"), "{clean}");
        }
        check("hunter2\u{1b}[/Hunter2+é\"x \u{1b}[", "hunter2\u{1b}[/Hunter2+é\"x \u{1b}[");
        let lines = Redactor::new("key".to_string().into(), [("A".to_string(), "abcd\nefgh".to_string().into())]);
        assert!(lines.cleaned("abcd\r\nefgh").starts_with("[redacted:A:"));
    }

    #[test]
    fn a_known_value_shown_byte_by_byte_is_found() {
        let bytes = SECRET.bytes().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>();
        check(&format!("a {} b", bytes.join(":")), "a § b");
        check(&format!("{{ 0x{} }}", bytes.join(", 0x")), "{ 0x§ }");
        check(&format!("    0X{} }}", bytes.join(",\n    0X")), "    0X§ }");
        // As `xxd`, `hexdump -C` and `od -tx1` print `key ` and the value.
        let xxd = "00000000: 6b65 7920 6875 6e74 6572 322f 4875 6e74  key hunter2/Hunt\n\
                   00000010: 6572 322b c3a9 2278 0a                   er2+..\"x.\n";
        check(xxd, "00000000: 6b65 7920 § 0a                   er2+..\"x.\n");
        let canonical = "00000000  6b 65 79 20 68 75 6e 74  65 72 32 2f 48 75 6e 74  |key hunter2/Hunt|\n\
                         00000010  65 72 32 2b c3 a9 22 78  0a                       |er2+..\"x.|\n";
        check(canonical, "00000000  6b 65 79 20 §  0a                       |er2+..\"x.|\n");
        let od =
            "0000000 6b 65 79 20 68 75 6e 74 65 72 32 2f 48 75 6e 74\n0000020 65 72 32 2b c3 a9 22 78 0a\n0000031\n";
        check(od, "0000000 6b 65 79 20 § 0a\n0000031\n");
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
    fn a_beginning_that_was_cut_off_is_taken_out() {
        let cut = |text: &str| {
            let mut text = text.to_string();
            redactor().clean_cut(&mut text);
            text
        };
        for length in 8..SECRET.len() {
            let Some(part) = SECRET.get(..length) else { continue };
            let digits = crate::domain::text::hex(part.as_bytes());
            for text in [format!("a {part}"), format!("a {digits}"), format!("a {}\u{1b}[0m{}", &part[..4], &part[4..])]
            {
                let clean = cut(&text);
                assert!(clean.starts_with("a [redacted:cut-off:") && !clean.contains("unter2"), "{clean}");
            }
        }
        assert_eq!(["a hunter2", "hunter2/Hunter2 is known"].map(cut), ["a hunter2", "hunter2/Hunter2 is known"]);
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
    fn what_is_bound_holds_no_known_value_and_stays_what_it_was() {
        let redactor = redactor();
        let facts = |name: &str| {
            let path = format!("/ws/{name}");
            let write = Some(FileWrite { path: path.clone(), before: None, after: "0".to_string() });
            redactor.clean_facts(Facts { binding: vec![format!("path={path}")], write, ..Facts::default() })
        };
        let plain = facts("sk-abcdefghijklmnopqrstuvwxyz0123");
        assert_eq!(plain.binding, ["path=/ws/sk-abcdefghijklmnopqrstuvwxyz0123"]);
        // Digits beside the middle of base64 belong to the mark.
        let digits = ["aHVudGVyMi9IdW50ZXIyK8OpIna", "aHVudGVyMi9IdW50ZXIyK8OpInb"].map(facts);
        let named = facts(SECRET);
        assert!(named.binding[0].starts_with("path=/ws/[redacted:") && !format!("{named:?}").contains("unter2"));
        assert!(crate::domain::mark::holds_mark(&named.write.as_ref().unwrap().path));
        assert_eq!(digits[0].binding[0], digits[1].binding[0], "the control");
        assert_ne!(digits[0].binding, digits[1].binding);
        assert_eq!(redactor.clean_facts(named.clone()), named, "once is enough");
    }

    #[test]
    fn what_is_said_of_names_holds_no_known_value() {
        let said = || format!("{SECRET} lies in it");
        let ways = [
            Named::Folder { secret: Some(said()) },
            Named::Tracked(said()),
            Named::Obeys(said()),
            Named::Sensitive(said()),
            Named::Outside,
        ];
        let touch =
            |named| Touch { command: 0, word: SECRET.to_string(), named, is_foundation: false, runs_later: false };
        let facts = Facts { touches: ways.map(touch).to_vec(), ..Facts::default() };
        let told = format!("{:?}", redactor().clean_facts(facts));
        assert!(!told.contains("unter2") && told.matches("[redacted:").count() == 9, "{told}");
    }

    #[test]
    fn short_values_are_no_secrets() {
        let redactor = Redactor::new("key".to_string().into(), [("A_KEY".to_string(), "true".to_string().into())]);
        assert_eq!(redactor.cleaned("it is true"), "it is true");
    }
}
