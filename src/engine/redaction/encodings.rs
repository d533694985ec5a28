//! The ways in which a known value may be written, and finding them.

use std::ops::Range;

use secrecy::ExposeSecret;
use secrecy::SecretString;

use crate::domain::text::CUT_BEGINS;
use crate::domain::text::CUT_ENDS;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// One way to write a value.
pub struct Needle {
    text: SecretString,
    form: Form,
}

/// How a way of writing is looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// As it is.
    Plain,
    /// Digits of an encoding, which may be broken over lines.
    Digits,
    /// The middle of base64: what stands beside it holds bits of the value, too.
    Middle,
}

/// A text without its whitespace, and where each byte of it came from.
pub struct Squeezed {
    text: String,
    from: Vec<usize>,
}

impl Squeezed {
    /// Squeezes a text.
    pub fn of(text: &str) -> Squeezed {
        let mut squeezed = Squeezed { text: String::with_capacity(text.len()), from: Vec::with_capacity(text.len()) };
        for (place, one) in text.char_indices().filter(|(_, one)| !one.is_whitespace()) {
            squeezed.text.push(one);
            squeezed.from.extend((0..one.len_utf8()).map(|offset| place + offset));
        }
        squeezed
    }

    fn original(&self, range: Range<usize>) -> Option<Range<usize>> {
        let last = range.end.checked_sub(1)?;
        Some(*self.from.get(range.start)?..*self.from.get(last)? + 1)
    }
}

impl Needle {
    /// Where it stands in a text.
    pub fn find(&self, text: &str, squeezed: &Squeezed) -> Vec<Range<usize>> {
        let needle = self.text.expose_secret();
        let places = |text: &str| -> Vec<Range<usize>> {
            text.match_indices(needle).map(|(start, _)| start..start + needle.len()).collect()
        };
        match self.form {
            Form::Plain => places(text),
            Form::Digits => places(&squeezed.text).into_iter().filter_map(|range| squeezed.original(range)).collect(),
            Form::Middle => {
                let original = |range: Range<usize>| squeezed.original(range).map(|range| widened(text, range));
                places(&squeezed.text).into_iter().filter_map(original).collect()
            }
        }
    }

    /// Parts of it, `least` bytes or more, that stand where a text was cut.
    pub fn parts_at_cuts(&self, text: &str, least: usize) -> Vec<Range<usize>> {
        let needle = self.text.expose_secret();
        let mut parts = Vec::new();
        for (place, _) in text.match_indices(CUT_BEGINS) {
            let head = text.get(..place).unwrap_or_default();
            let longest = starts(needle).filter(|part| part.len() >= least && head.ends_with(part)).last();
            parts.extend(longest.map(|part| place - part.len()..place));
        }
        for (place, _) in text.match_indices(CUT_ENDS) {
            let place = place + CUT_ENDS.len();
            let tail = text.get(place..).unwrap_or_default();
            let ends = starts(needle).filter_map(|part| needle.get(part.len()..));
            let longest =
                ends.filter(|part| part.len() >= least && tail.starts_with(part)).max_by_key(|part| part.len());
            parts.extend(longest.map(|part| place..place + part.len()));
        }
        parts
    }

    /// Where a text begins to be the start of it, up to the text's end.
    pub fn begun_at_end(&self, text: &str) -> Option<usize> {
        let needle = self.text.expose_secret();
        starts(needle).filter(|part| text.ends_with(part)).last().map(|part| text.len() - part.len())
    }
}

/// Every start of a text that is not all of it, shortest first.
fn starts(text: &str) -> impl Iterator<Item = &str> {
    text.char_indices().skip(1).filter_map(|(end, _)| text.get(..end))
}

/// A match in base64 with one digit more at each side, and its padding.
fn widened(text: &str, range: Range<usize>) -> Range<usize> {
    let bytes = text.as_bytes();
    let is_digit = |place: usize| {
        bytes.get(place).is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_'))
    };
    let start = range.start.checked_sub(1).filter(|place| is_digit(*place)).unwrap_or(range.start);
    let mut end = if is_digit(range.end) { range.end + 1 } else { range.end };
    while bytes.get(end) == Some(&b'=') {
        end += 1;
    }
    start..end
}

/// All ways to write a value that are looked for.
pub fn of(value: &str) -> Vec<Needle> {
    let mut forms: Vec<(String, Form)> = vec![(value.to_string(), Form::Plain)];
    let quoted = serde_json::Value::String(value.to_string()).to_string();
    forms.push((quoted.trim_start_matches('"').strip_suffix('"').unwrap_or_default().to_string(), Form::Plain));
    for (before, form) in [("", Form::Digits), ("%", Form::Plain)] {
        forms.extend([Case::Lower, Case::Upper].map(|case| (hex(value, before, case), form)));
    }
    forms.push((hex(value, "\\x", Case::Lower), Form::Plain));
    for case in [Case::Lower, Case::Upper] {
        let escaped = percent(value, case);
        forms.push((escaped.replace("%20", "+"), Form::Plain));
        forms.push((escaped, Form::Plain));
    }
    // UTF-16 of either order, in a text that was read byte by byte.
    forms.push((value.chars().map(String::from).collect::<Vec<_>>().join("\0"), Form::Plain));
    for before in 0..3 {
        let standard = middle(value.as_bytes(), before);
        forms.push((standard.replace('+', "-").replace('/', "_"), Form::Middle));
        forms.push((standard, Form::Middle));
    }
    let mut needles: Vec<Needle> = Vec::new();
    for (text, form) in forms {
        let is_new = needles.iter().all(|known| known.text.expose_secret() != text || known.form != form);
        if is_new && !text.is_empty() {
            needles.push(Needle { text: text.into(), form });
        }
    }
    needles
}

/// How the digits above nine are written.
#[derive(Clone, Copy)]
enum Case {
    Lower,
    Upper,
}

impl Case {
    fn digits(self, byte: u8) -> String {
        match self {
            Case::Lower => format!("{byte:02x}"),
            Case::Upper => format!("{byte:02X}"),
        }
    }
}

fn hex(value: &str, before: &str, case: Case) -> String {
    value.bytes().flat_map(|byte| [before.to_string(), case.digits(byte)]).collect()
}

/// As URLs write it: all but letters, digits and `-_.~` as `%` and two digits.
fn percent(value: &str, case: Case) -> String {
    value.bytes().fold(String::new(), |mut all, byte| {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            all.push(char::from(byte));
        } else {
            all.push('%');
            all.push_str(&case.digits(byte));
        }
        all
    })
}

/// The digits of base64 that a value alone determines when `before` bytes stand before it in its group of three.
fn middle(value: &[u8], before: usize) -> String {
    let mut whole = vec![0; before];
    whole.extend_from_slice(value);
    let digits = base64(&whole);
    let first = (before * 8).div_ceil(6);
    let end = whole.len() * 8 / 6;
    digits.get(first..end).unwrap_or_default().to_string()
}

/// Bytes as base64, with padding.
pub fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |place: usize| u32::from(group.get(place).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let value = (bits >> (18 - 6 * digit)) & 63;
            let is_padding = digit > group.len();
            let letter = usize::try_from(value).ok().and_then(|value| ALPHABET.get(value)).copied().unwrap_or(b'=');
            text.push(if is_padding { '=' } else { char::from(letter) });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_as_everywhere() {
        for (bytes, expected) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")] {
            assert_eq!(base64(bytes.as_bytes()), expected);
        }
        assert_eq!(middle(b"foo", 0), "Zm9v");
        assert!(base64(b"ufoo").contains(&middle(b"foo", 1)));
        assert!(base64(b"uufoox").contains(&middle(b"foo", 2)));
    }
}
