//! The ways in which a text can be read when a known value is looked for: as it is, with its escapes undone (those of
//! JSON, URLs, HTML and languages, also one within the other), without what a screen drops, and without its blanks, as
//! digits that are broken over lines or shown byte by byte. One way back leads from every reading to the text.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memchr2;
use memchr::memchr3;
use memchr::memmem;

/// Escapes within escapes that are undone: JSON in a string of JSON has two.
const DEPTH: usize = 3;
/// Longest escape, in bytes: two halves of a letter, `\ud83d\ude00`.
const ESCAPE_MAX_BYTES: usize = 12;
/// How a sequence for a terminal begins.
const ESCAPE: u8 = 0x1b;
/// Digits that the place of a byte has at least, where one stands before bytes.
const PLACE_MIN_BYTES: usize = 6;
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
    kind: Kind,
    /// Where something was left out of it.
    cuts: Vec<Range<usize>>,
}

/// How a reading was made of its parent.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub enum Kind {
    /// Not at all, or with escapes undone.
    #[default]
    Undone,
    /// Without what a screen drops.
    Seen,
    /// Without blanks.
    Squeezed,
    /// Of bytes that are shown one by one.
    Dumped,
}

impl Kind {
    fn has_blanks(self) -> bool {
        matches!(self, Kind::Undone | Kind::Seen)
    }
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
        let seen = |all: &mut Vec<Reading<'a>>| {
            let parent = all.len() - 1;
            all.extend(all.get(parent).and_then(|reading| reading.seen(parent)));
        };
        seen(&mut all);
        for _ in 0..DEPTH {
            let parent = all.len() - 1;
            let Some(reading) = all.get(parent).and_then(|reading| reading.unescaped(parent)) else { break };
            all.push(reading);
            seen(&mut all);
        }
        all.iter_mut().for_each(|reading| reading.cuts = cuts(&reading.bytes));
        let last = all.len() - 1;
        let parents = [0, last].into_iter().take(all.len().min(2));
        let squeezed =
            |parent: usize| all.get(parent).map(|reading| [reading.squeezed(parent), reading.dumped(parent)]);
        let squeezed: Vec<Reading<'_>> = parents.filter_map(squeezed).flatten().collect();
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
        self.0.iter().filter(|reading| reading.kind.has_blanks()).flat_map(places).collect()
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
        self.0.iter().filter(|reading| !reading.kind.has_blanks()).flat_map(places).collect()
    }

    /// What `look` finds in the text as a screen shows it, where that differs, with what was found and where that stands.
    pub fn seen<T>(&self, look: impl Fn(&str) -> Vec<(T, Range<usize>)>) -> Vec<(T, String, Range<usize>)> {
        let Some(reading) = self.0.get(1).filter(|reading| reading.kind == Kind::Seen) else { return Vec::new() };
        let text = String::from_utf8_lossy(&reading.bytes);
        let place = |(what, range): (T, Range<usize>)| {
            let found = text.get(range.clone())?.to_string();
            Some((what, found, self.original(reading, range)?))
        };
        look(&text).into_iter().filter_map(place).collect()
    }

    /// Where something begins that goes on behind the end of the text. `look` says how many bytes at the end of a reading
    /// belong to it, and is told of its kind.
    pub fn begun_at_end(&self, look: impl Fn(&[u8], Kind) -> Option<usize>) -> Option<usize> {
        let begun = |reading: &Reading<'_>| {
            let length = look(&reading.bytes, reading.kind)?;
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

    /// The reading without what a screen drops (`domain/visible.rs`), and other sequences for a terminal, if it has any.
    /// One that is not whole at the end is left out.
    fn seen(&self, parent: usize) -> Option<Reading<'static>> {
        let mut made = Making::default();
        let (mut done, mut place) = (0, 0);
        while let Some(next) = self.bytes.get(place..).and_then(|rest| memchr2(ESCAPE, b'\r', rest)) {
            let start = place + next;
            let length = dropped(self.bytes.get(start..).unwrap_or_default());
            if length > 0 {
                made.copy(&self.bytes, done..start);
                done = start + length;
            }
            place = start + length.max(1);
        }
        if done == 0 {
            return None;
        }
        made.copy(&self.bytes, done..self.bytes.len());
        let bytes = Cow::Owned(made.bytes);
        Some(Reading { bytes, parent: Some(parent), pieces: made.pieces, kind: Kind::Seen, ..Reading::default() })
    }

    /// The bytes that the reading shows in hexadecimal, without places, letters and signs that stand beside them: as
    /// `xxd`, `hexdump -C` and `od -tx1` print them, as `0x5a, 0x5b` and as `5a:5b`.
    fn dumped(&self, parent: usize) -> Reading<'static> {
        let mut made = Making::default();
        let mut start = 0;
        for line in self.bytes.split_inclusive(|byte| *byte == b'\n') {
            let (from, to) = dump(line);
            let mut place = start + from;
            for word in line.get(from..to).unwrap_or_default().split(is_beside) {
                let prefix = if matches!(word, [b'0', b'x' | b'X', ..]) { 2 } else { 0 };
                let digits = word.get(prefix..).unwrap_or_default();
                let is_open = place + word.len() == self.bytes.len();
                if (is_open || digits.len().is_multiple_of(2)) && digits.iter().all(u8::is_ascii_hexdigit) {
                    made.copy(&self.bytes, place + prefix..place + word.len());
                } else {
                    // Digits of words far from one another are no bytes in a row.
                    made.put(b".", place..place + word.len());
                }
                place += word.len() + 1;
            }
            start += line.len();
        }
        let bytes = Cow::Owned(made.bytes);
        Reading { bytes, parent: Some(parent), pieces: made.pieces, kind: Kind::Dumped, ..Reading::default() }
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
            kind: Kind::Squeezed,
            ..Reading::default()
        }
    }
}

/// How many bytes at the beginning of a text no screen shows: a sequence for a terminal, such as a colour, or the return
/// before a line break. All of it, where it ends within one.
fn dropped(text: &[u8]) -> usize {
    match text {
        [b'\r'] | [b'\r', b'\n', ..] => 1,
        [ESCAPE] => 1,
        [ESCAPE, b'[', rest @ ..] => {
            let inner = rest.iter().take_while(|byte| (b' '..=b'?').contains(byte)).count();
            match rest.get(inner) {
                None => text.len(),
                Some(b'@'..=b'~') => 2 + inner + 1,
                Some(_) => 0,
            }
        }
        _ => 0,
    }
}

/// What stands beside the digits of bytes that are shown one by one.
fn is_beside(byte: &u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, b',' | b':' | b';' | b'{' | b'}' | b'[' | b']' | b'(' | b')' | b'"')
}

/// From where to where a line may show bytes: behind the number of the first one, before the letters that they stand for.
fn dump(line: &[u8]) -> (usize, usize) {
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let (from, is_numbered) = match line.get(digits) {
        _ if digits < PLACE_MIN_BYTES => (0, false),
        Some(b':') => (digits + 1, true),
        Some(b' ' | b'\n') | None => (digits, false),
        Some(_) => (0, false),
    };
    let rest = line.get(from..).unwrap_or_default();
    let from = from + rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let rest = line.get(from..).unwrap_or_default();
    // `xxd` has two blanks before the letters only, others in the middle of the bytes as well.
    let is_end = |at: &usize| {
        let next = rest.get(at + 2..).unwrap_or_default();
        let word = next.split(|byte| !byte.is_ascii_alphanumeric()).next().unwrap_or_default();
        let is_byte = word.len() == 2 && word.iter().all(u8::is_ascii_hexdigit);
        is_numbered || (!is_byte && !next.is_empty())
    };
    let letters = memmem::find_iter(rest, b"  ").find(is_end);
    (from, letters.map_or(line.len(), |at| from + at))
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
        [b'\\', b'U', rest @ ..] => match number(rest, 8, 16) {
            value @ Some(_) => lettered(10, value),
            None => open_if(rest, 8, u8::is_ascii_hexdigit),
        },
        [b'\\', b'x', b'{', rest @ ..] => numbered(rest, 3, b'}', 16),
        [b'\\', b'x', rest @ ..] => match number(rest, 2, 16) {
            value @ Some(_) => byte(4, value),
            None => open_if(rest, 2, u8::is_ascii_hexdigit),
        },
        [b'%', rest @ ..] => match number(rest, 2, 16) {
            value @ Some(_) => byte(3, value),
            None => open_if(rest, 2, u8::is_ascii_hexdigit),
        },
        [b'\\', b'0'..=b'7', ..] => {
            let most = if matches!(after, [b'0'..=b'3', ..]) { 3 } else { 2 };
            let length = after.iter().take(most).take_while(|byte| (b'0'..=b'7').contains(byte)).count();
            match open_if(after, most, |byte| (b'0'..=b'7').contains(byte)) {
                Escape::None => byte(1 + length, number(after, length, 8)),
                open => open,
            }
        }
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
        Some(after) if *after == sign => lettered(before + length + 1, number(rest, length, radix)),
        Some(_) => Escape::None,
    }
}

/// So many bytes that stand for the letter of this number.
fn lettered(length: usize, number: Option<u32>) -> Escape {
    match number.and_then(char::from_u32) {
        Some(letter) => Escape::Whole(length, utf8(letter)),
        None => Escape::None,
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
