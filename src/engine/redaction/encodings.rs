//! The ways in which a known value may be written.

use std::ops::Range;

use crate::domain::text::hex;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// One way to write a value. What it holds is secret, and nothing prints it.
pub struct Written {
    /// The value, so written.
    pub bytes: Vec<u8>,
    /// How it is looked for.
    pub form: Form,
    /// The number of the known value.
    pub value: usize,
}

/// How a way of writing is looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As it is, or with escapes.
    Plain,
    /// Digits of an encoding, which may be broken over lines.
    Digits,
    /// The middle of base64: what stands beside it holds bits of the value, too.
    Middle,
}

impl Form {
    /// A match with all that stands beside it and belongs to it.
    pub fn widened(self, bytes: &[u8], range: Range<usize>) -> Range<usize> {
        match self {
            Form::Plain | Form::Digits => range,
            Form::Middle => widened(bytes, range),
        }
    }
}

/// A match in base64 with one digit more at each side, and its padding.
fn widened(bytes: &[u8], range: Range<usize>) -> Range<usize> {
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

/// All ways to write the value of this number that are looked for. Escapes are none of them: they are undone in the text.
pub fn of(number: usize, value: &str) -> Vec<Written> {
    let mut forms = vec![(value.to_string(), Form::Plain)];
    // Of escapes in a URL this one has no sign of its own.
    forms.push((value.replace(' ', "+"), Form::Plain));
    // UTF-16 of either order, in a text that was read byte by byte.
    forms.push((value.chars().map(String::from).collect::<Vec<_>>().join("\0"), Form::Plain));
    let digits = hex(value.as_bytes());
    forms.push((digits.to_uppercase(), Form::Digits));
    forms.push((digits, Form::Digits));
    for before in 0..3 {
        let standard = middle(value.as_bytes(), before);
        forms.push((standard.replace('+', "-").replace('/', "_"), Form::Middle));
        forms.push((standard, Form::Middle));
    }
    let mut all: Vec<Written> = Vec::new();
    for (text, form) in forms {
        let is_new = all.iter().all(|known| known.bytes != text.as_bytes() || known.form != form);
        if is_new {
            all.push(Written { bytes: text.into_bytes(), form, value: number });
        }
    }
    all
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
