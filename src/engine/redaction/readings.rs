//! The ways in which a text can be read when a known value is looked for: as it is, with its escapes undone (those of
//! JSON, URLs, HTML and languages, also one within the other), and without its blanks, as digits that are broken over
//! lines. One way back leads from every reading to the text.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memchr3;
use memchr::memmem;

/// Escapes within escapes that are undone: JSON in a string of JSON has two.
const DEPTH: usize = 3;
/// Longest escape, in bytes: two halves of a letter, `\ud83d\ude00`.
const ESCAPE_MAX_BYTES: usize = 12;
/// How a note begins that something was left out.
const CUT: &str = "[…";
/// The longest that one is, in bytes.
const CUT_MAX_BYTES: usize = 80;
/// Longest number of a line.
const NUMBER_MAX_BYTES: usize = 7;
/// What HTML writes by name.
const NAMED: [(&[u8], u8); 5] =
    [(b"&quot;", b'"'), (b"&amp;", b'&'), (b"&lt;", b'<'), (b"&gt;", b'>'), (b"&apos;", b'\'')];

/// All readings of a text. The first is the text itself.
pub struct Readings<'a>(Vec<Reading<'a>>);

/// One reading.
#[derive(Default)]
struct Reading<'a> {
    bytes: Cow<'a, [u8]>,
    /// The reading that it was made from.
    parent: Option<usize>,
    pieces: Vec<Piece>,
    is_squeezed: bool,
    /// Where something was left out of it.
    cuts: Vec<Range<usize>>,
}

/// A piece of a reading: where it begins, and what of the parent it was made from. One that is as long here as there was
/// copied.
struct Piece {
    at: usize,
    from: usize,
    to: usize,
}

impl<'a> Readings<'a> {
    /// Reads a text in all ways.
    pub fn of(text: &'a str) -> Readings<'a> {
        let mut all = vec![Reading { bytes: Cow::Borrowed(text.as_bytes()), ..Reading::default() }];
        for parent in 0..DEPTH {
            let Some(reading) = all.get(parent).and_then(|reading| reading.unescaped(parent)) else { break };
            all.push(reading);
        }
        all.iter_mut().for_each(|reading| reading.cuts = cuts(&reading.bytes));
        let last = all.len() - 1;
        let squeezed = [0, last].into_iter().take(all.len().min(2));
        let squeezed: Vec<Reading<'_>> =
            squeezed.filter_map(|parent| Some(all.get(parent)?.squeezed(parent))).collect();
        all.extend(squeezed);
        Readings(all)
    }

    /// What `look` finds in each reading that has its blanks, and where that stands in the text. It is told the bytes, and
    /// where something was left out.
    pub fn plain<T>(&self, look: impl Fn(&[u8], &[Range<usize>]) -> Vec<(Range<usize>, T)>) -> Vec<(Range<usize>, T)> {
        let places = |reading: &Reading<'_>| {
            let found = look(&reading.bytes, &reading.cuts).into_iter();
            let places = found.filter_map(|(range, what)| Some((self.original(reading, range)?, what)));
            places.collect::<Vec<_>>()
        };
        self.0.iter().filter(|reading| !reading.is_squeezed).flat_map(places).collect()
    }

    /// As `plain`, in the readings without blanks: digits, broken over lines or not. `widened` may take in what stands
    /// beside them.
    pub fn digits<T>(
        &self,
        look: impl Fn(&[u8]) -> Vec<(Range<usize>, T)>,
        widened: impl Fn(&T, &[u8], Range<usize>) -> Range<usize>,
    ) -> Vec<(Range<usize>, T)> {
        let place = |reading: &Reading<'_>, range, what: &T| {
            let parent = self.0.get(reading.parent?)?;
            self.original(parent, widened(what, &parent.bytes, reading.within(range)?))
        };
        let places = |reading: &Reading<'_>| {
            let found = look(&reading.bytes).into_iter();
            found.filter_map(|(range, what)| Some((place(reading, range, &what)?, what))).collect::<Vec<_>>()
        };
        self.0.iter().filter(|reading| reading.is_squeezed).flat_map(places).collect()
    }

    /// Where something begins that goes on behind the end of the text. `look` says how many bytes at the end of a reading
    /// belong to it, and is told whether the reading is without blanks.
    pub fn begun_at_end(&self, look: impl Fn(&[u8], bool) -> Option<usize>) -> Option<usize> {
        let begun = |reading: &Reading<'_>| {
            let length = look(&reading.bytes, reading.is_squeezed)?;
            let end = reading.bytes.len();
            self.original(reading, end.checked_sub(length)?..end).map(|range| range.start)
        };
        self.0.iter().filter_map(begun).min()
    }

    /// A range of a reading, in the text.
    fn original(&self, reading: &Reading<'_>, range: Range<usize>) -> Option<Range<usize>> {
        match reading.parent.and_then(|parent| self.0.get(parent)) {
            Some(parent) => self.original(parent, reading.within(range)?),
            None => Some(range),
        }
    }
}

impl Reading<'_> {
    /// A range of it, in its parent.
    fn within(&self, range: Range<usize>) -> Option<Range<usize>> {
        let last = range.end.checked_sub(1)?;
        Some(self.byte(range.start)?.start..self.byte(last)?.end)
    }

    /// What of the parent a byte was made from.
    fn byte(&self, place: usize) -> Option<Range<usize>> {
        let index = self.pieces.partition_point(|piece| piece.at <= place).checked_sub(1)?;
        let piece = self.pieces.get(index)?;
        let end = self.pieces.get(index + 1).map_or(self.bytes.len(), |next| next.at);
        let is_copied = piece.to - piece.from == end - piece.at;
        let copied = piece.from + place - piece.at;
        Some(if is_copied { copied..copied + 1 } else { piece.from..piece.to })
    }

    /// The reading with its escapes undone, if it has any. One that is not whole at the end is left out.
    fn unescaped(&self, parent: usize) -> Option<Reading<'static>> {
        let mut made = Making::default();
        let (mut done, mut place) = (0, 0);
        while let Some(next) = self.bytes.get(place..).and_then(|rest| memchr3(b'\\', b'%', b'&', rest)) {
            let start = place + next;
            match escape(self.bytes.get(start..).unwrap_or_default()) {
                Escape::Whole(length, bytes) => {
                    made.copy(&self.bytes, done..start);
                    made.put(&bytes, start..start + length);
                    (done, place) = (start + length, start + length);
                }
                Escape::Open => {
                    made.copy(&self.bytes, done..start);
                    (done, place) = (self.bytes.len(), self.bytes.len());
                }
                Escape::None => place = start + 1,
            }
        }
        if done == 0 {
            return None;
        }
        made.copy(&self.bytes, done..self.bytes.len());
        Some(Reading { bytes: Cow::Owned(made.bytes), parent: Some(parent), pieces: made.pieces, ..Reading::default() })
    }

    /// The reading without its blanks, and without what tools write in front of lines.
    fn squeezed(&self, parent: usize) -> Reading<'static> {
        let mut made = Making::default();
        let mut start = 0;
        for line in self.bytes.split_inclusive(|byte| *byte == b'\n') {
            let mut place = start + front(line);
            start += line.len();
            for word in self.bytes.get(place..start).unwrap_or_default().split(u8::is_ascii_whitespace) {
                made.copy(&self.bytes, place..place + word.len());
                place += word.len() + 1;
            }
        }
        Reading {
            bytes: Cow::Owned(made.bytes),
            parent: Some(parent),
            pieces: made.pieces,
            is_squeezed: true,
            cuts: Vec::new(),
        }
    }
}

/// Where a text says that something was left out of it: the blank before the sign belongs to the sign, and so does a line
/// break behind it.
fn cuts(bytes: &[u8]) -> Vec<Range<usize>> {
    let cut = |place: usize| {
        let before = place.checked_sub(1).and_then(|before| bytes.get(before));
        let start = if matches!(before, Some(b' ' | b'\n')) { place - 1 } else { place };
        // Ours are short; what others wrote may have no end.
        let rest = bytes.get(place..).unwrap_or_default();
        let rest = rest.get(..CUT_MAX_BYTES).unwrap_or(rest);
        let end = place + rest.iter().position(|byte| *byte == b']').map_or(CUT.len(), |end| end + 1);
        start..if bytes.get(end) == Some(&b'\n') { end + 1 } else { end }
    };
    memmem::find_iter(bytes, CUT.as_bytes()).map(cut).collect()
}

#[derive(Default)]
struct Making {
    bytes: Vec<u8>,
    pieces: Vec<Piece>,
}

impl Making {
    fn copy(&mut self, bytes: &[u8], range: Range<usize>) {
        self.put(bytes.get(range.clone()).unwrap_or_default(), range);
    }

    fn put(&mut self, bytes: &[u8], range: Range<usize>) {
        if !bytes.is_empty() {
            self.pieces.push(Piece { at: self.bytes.len(), from: range.start, to: range.end });
            self.bytes.extend_from_slice(bytes);
        }
    }
}

/// What a text begins with that may be an escape.
enum Escape {
    /// So many bytes stand for these.
    Whole(usize, Vec<u8>),
    /// The text ends within it.
    Open,
    None,
}

fn escape(text: &[u8]) -> Escape {
    let text = text.get(..ESCAPE_MAX_BYTES).unwrap_or(text);
    let byte = |length: usize, value: Option<u32>| match value.and_then(|value| u8::try_from(value).ok()) {
        Some(value) => Escape::Whole(length, vec![value]),
        None => Escape::None,
    };
    let after = text.get(1..).unwrap_or_default();
    match text {
        [b'\\', b'u', b'{', rest @ ..] => numbered(rest, 3, b'}', 16),
        [b'\\', b'u', rest @ ..] => match number(rest, 4, 16) {
            Some(value) => utf16(value, text),
            None => open_if(rest, 4, u8::is_ascii_hexdigit),
        },
        [b'\\', b'x', rest @ ..] => match number(rest, 2, 16) {
            value @ Some(_) => byte(4, value),
            None => open_if(rest, 2, u8::is_ascii_hexdigit),
        },
        [b'%', rest @ ..] => match number(rest, 2, 16) {
            value @ Some(_) => byte(3, value),
            None => open_if(rest, 2, u8::is_ascii_hexdigit),
        },
        [b'\\', b'0'..=b'3', ..] => match number(after, 3, 8) {
            value @ Some(_) => byte(4, value),
            None => open_if(after, 3, |byte| (b'0'..=b'7').contains(byte)),
        },
        [b'\\', letter, ..] => match letter {
            b'n' => Escape::Whole(2, vec![b'\n']),
            b'r' => Escape::Whole(2, vec![b'\r']),
            b't' => Escape::Whole(2, vec![b'\t']),
            b'b' => Escape::Whole(2, vec![8]),
            b'f' => Escape::Whole(2, vec![12]),
            letter if letter.is_ascii_punctuation() => Escape::Whole(2, vec![*letter]),
            _ => Escape::None,
        },
        [b'&', b'#', b'x' | b'X', rest @ ..] => numbered(rest, 3, b';', 16),
        [b'&', b'#', rest @ ..] => numbered(rest, 2, b';', 10),
        [b'&', ..] => {
            let found = NAMED.iter().find(|(name, _)| text.starts_with(name));
            let is_open = || NAMED.iter().any(|(name, _)| name.starts_with(text));
            match found {
                Some((name, byte)) => Escape::Whole(name.len(), vec![*byte]),
                None if is_open() => Escape::Open,
                None => Escape::None,
            }
        }
        [b'\\'] => Escape::Open,
        _ => Escape::None,
    }
}

/// Digits up to a sign, after so many bytes: `\u{e9}`, `&#233;`, `&#xe9;`.
fn numbered(rest: &[u8], before: usize, sign: u8, radix: u32) -> Escape {
    let length = rest.iter().take_while(|byte| char::from(**byte).is_digit(radix)).count();
    match rest.get(length) {
        None => Escape::Open,
        Some(after) if *after == sign => match number(rest, length, radix).and_then(char::from_u32) {
            Some(letter) => Escape::Whole(before + length + 1, utf8(letter)),
            None => Escape::None,
        },
        Some(_) => Escape::None,
    }
}

/// One half of a letter may need the other.
fn utf16(value: u32, text: &[u8]) -> Escape {
    if let Some(letter) = char::from_u32(value) {
        return Escape::Whole(6, utf8(letter));
    }
    let second = text.get(6..).unwrap_or_default();
    let low = second.strip_prefix(b"\\u").and_then(|rest| number(rest, 4, 16)).and_then(|low| u16::try_from(low).ok());
    let (Ok(high), Some(low)) = (u16::try_from(value), low) else {
        return if text.len() < ESCAPE_MAX_BYTES { Escape::Open } else { Escape::None };
    };
    match char::decode_utf16([high, low]).next() {
        Some(Ok(letter)) => Escape::Whole(12, utf8(letter)),
        _ => Escape::None,
    }
}

fn utf8(letter: char) -> Vec<u8> {
    letter.to_string().into_bytes()
}

fn number(text: &[u8], length: usize, radix: u32) -> Option<u32> {
    let digits = text.get(..length).and_then(|digits| std::str::from_utf8(digits).ok())?;
    // A sign before them is none of them.
    digits.chars().all(|digit| digit.is_digit(radix)).then_some(())?;
    u32::from_str_radix(digits, radix).ok()
}

fn open_if(rest: &[u8], length: usize, fits: fn(&u8) -> bool) -> Escape {
    if rest.len() < length && rest.iter().all(fits) { Escape::Open } else { Escape::None }
}

/// How many bytes of a line were written in front of it by what shows lines: its number and a tab or a colon, the name of
/// a file besides, or signs of quoting. None of these signs is a digit of an encoding.
fn front(line: &[u8]) -> usize {
    let blanks = line.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let rest = line.get(blanks..).unwrap_or_default();
    let quoting = rest.iter().take_while(|byte| matches!(byte, b'>' | b'|' | b' ')).count();
    let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let after_number = |text: &[u8], signs: &[u8]| {
        let length = digits(text);
        let is_number = (1..=NUMBER_MAX_BYTES).contains(&length);
        (is_number && text.get(length).is_some_and(|byte| signs.contains(byte))).then_some(length + 1)
    };
    if let Some(length) = after_number(rest, b"\t:") {
        return blanks + length;
    }
    let name = rest.iter().take_while(|byte| !byte.is_ascii_whitespace() && **byte != b':').count();
    let numbered = rest.get(name + 1..).and_then(|rest| after_number(rest, b":"));
    match numbered.filter(|_| name > 0 && rest.get(name) == Some(&b':')) {
        Some(length) => blanks + name + 1 + length,
        None => blanks + quoting,
    }
}
