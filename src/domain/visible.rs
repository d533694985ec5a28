//! Untrusted text made visible: the one sanitiser (docs/SAFETY.md §8).
//!
//! Every string that is not compiled in goes through here before it meets a cell of the screen, the window title
//! or a printed line. What a person would not see is written out as a marker in `⟦ ⟧`; those brackets themselves
//! are marked too, so no text can forge a marker. Nothing here may depend on a terminal, a theme or a width.

use unicode_properties::GeneralCategoryGroup;
use unicode_properties::UnicodeEmoji;
use unicode_properties::UnicodeGeneralCategory;
use unicode_width::UnicodeWidthChar;

use crate::domain::limits;
use crate::domain::text::counted;
use crate::domain::text::one_line;

/// What opens a marker.
pub const MARK_OPEN: char = '⟦';
/// What closes a marker.
pub const MARK_CLOSE: char = '⟧';
/// What stands in the first cell that a row leaves free where its line goes on in the row below: without it, no one
/// could tell such a cell from a blank of the text. No text can hold it: there it is marked.
pub const MARK_ON: char = '⟫';
/// What stands at the end of every line of an approval view but the last, before its line break.
pub const MARK_LF: &str = "⟦LF⟧";
/// What stands at the end of a diff that does not end in a line break, where such an end is taken for granted.
pub const MARK_NO_LF: &str = "⟦no LF⟧";

/// Spaces in a row that an approval view shows as they are; longer runs could push text out of sight.
const SPACES_SHOWN: usize = 8;
/// Spaces that it shows as they are at the start of a line, the mark of a diff aside: code is indented, and what is
/// not pushed away from other text hides nothing. It reads back to the same bytes, as every count of spaces does.
const INDENT_SHOWN: usize = 40;
/// Combining marks on one base that a transcript shows; more are only ever a prank.
const MARKS_SHOWN: u8 = 2;
/// What joins emoji to one.
const JOINER: char = '\u{200d}';
/// What makes a picture of a sign.
const EMOJI_SELECTOR: char = '\u{fe0f}';
/// Cells between two tab stops.
const TAB_CELLS: usize = 8;

/// Control characters by their mnemonics.
const MNEMONICS: [&str; 32] = [
    "NUL", "SOH", "STX", "ETX", "EOT", "ENQ", "ACK", "BEL", "BS", "TAB", "LF", "VT", "FF", "CR", "SO", "SI", "DLE",
    "DC1", "DC2", "DC3", "DC4", "NAK", "SYN", "ETB", "CAN", "EM", "SUB", "ESC", "FS", "GS", "RS", "US",
];

/// Text for a person who decides about it: nothing is removed, and no two texts look the same.
pub fn approval(text: &str) -> String {
    approval_bytes(text.as_bytes())
}

/// As `approval`, in one line: the mark of a line break stands for it.
pub fn approval_line(text: &str) -> String {
    approval(text).replace('\n', " ")
}

/// As `approval`, for bytes that need not be text; a byte that is not UTF-8 is shown as `⟦x9B⟧`.
pub fn approval_bytes(bytes: &[u8]) -> String {
    let mut sheet = Sheet { out: String::with_capacity(bytes.len() + 16), line_start: 0, spaces: 0 };
    for chunk in bytes.utf8_chunks() {
        for one in chunk.valid().chars() {
            sheet.put(one);
        }
        for byte in chunk.invalid() {
            sheet.put_spaces(Spaces::Inner);
            sheet.out.push_str(&format!("⟦x{byte:02X}⟧"));
        }
    }
    sheet.put_spaces(Spaces::Trailing);
    sheet.out
}

/// Text of a conversation, a file or a program, as lines to be read: colours are dropped, tabs become spaces, a
/// line is cut at `limits::LINE_MAX_CELLS`; what else would not be seen is marked.
pub fn transcript(text: &str) -> String {
    let mut page = Page { out: String::with_capacity(text.len() + 16), column: 0, marks_left: 0, cut_bytes: 0 };
    let mut rest = text.chars();
    let mut before = None;
    while let Some(one) = rest.next() {
        let after = rest.clone().next();
        match one {
            '\n' => page.end_line(),
            '\r' if after == Some('\n') => {}
            '\r' => {
                page.mark('\r');
                page.end_line();
            }
            '\t' => page.tab(),
            '\u{1b}' => match colour_length(rest.as_str()) {
                Some(length) => {
                    rest = rest.as_str().get(length..).unwrap_or_default().chars();
                    continue;
                }
                None => page.mark(one),
            },
            _ if joins(before, one, after) => page.join(one),
            _ if is_combining(one) => page.combine(one),
            _ if is_plain(one) => page.put(one),
            _ => page.mark(one),
        }
        before = Some(one);
    }
    page.end_text();
    page.out
}

/// Untrusted text as a title: one line of at most `max` characters, as in a transcript.
pub fn title(text: &str, max: usize) -> String {
    transcript(&one_line(text, max))
}

/// Text that is about to be drawn and was sanitised where it came in. Where that was forgotten, it is a transcript:
/// nothing that a terminal obeys, and nothing unseen, is drawn whatever else goes wrong.
pub fn drawn(text: String) -> String {
    let is_known = |one: char| {
        let is_ours = matches!(one, MARK_OPEN | MARK_CLOSE | MARK_ON | JOINER | EMOJI_SELECTOR);
        matches!(one, ' '..='~') || is_ours || is_plain(one) || is_combining(one)
    };
    if text.chars().all(is_known) { text } else { transcript(&text) }
}

/// Whether it is a letter outside ASCII, which can look like another.
pub fn is_foreign(one: char) -> bool {
    !one.is_ascii() && one.general_category_group() == GeneralCategoryGroup::Letter
}

/// Letters outside ASCII: the letter, its line and its column in characters, both
/// from 1. At most `most` are given.
pub fn foreign_letters(text: &str, most: usize) -> Vec<(char, usize, usize)> {
    let places = text
        .lines()
        .enumerate()
        .flat_map(|(line, content)| content.chars().enumerate().map(move |(column, one)| (one, line + 1, column + 1)));
    places.filter(|(one, _, _)| is_foreign(*one)).take(most).collect()
}

/// An approval view being written.
struct Sheet {
    out: String,
    line_start: usize,
    spaces: usize,
}

/// Where a run of spaces stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spaces {
    Inner,
    Trailing,
}

impl Sheet {
    fn put(&mut self, one: char) {
        if one == ' ' {
            self.spaces += 1;
            return;
        }
        self.put_spaces(if one == '\n' || one == '\r' { Spaces::Trailing } else { Spaces::Inner });
        match one {
            '\n' => {
                self.out.push_str(MARK_LF);
                self.out.push('\n');
                self.line_start = self.out.len();
            }
            _ if is_plain(one) => self.out.push(one),
            _ => self.out.push_str(&mark(one)),
        }
    }

    fn put_spaces(&mut self, place: Spaces) {
        let count = std::mem::take(&mut self.spaces);
        let line = self.out.get(self.line_start..).unwrap_or_default();
        let most = if matches!(line, "" | "+" | "-") { INDENT_SHOWN } else { SPACES_SHOWN };
        if count > most || (place == Spaces::Trailing && count > 0) {
            self.out.push_str(&format!("⟦SP×{count}⟧"));
        } else {
            self.out.extend(std::iter::repeat_n(' ', count));
        }
    }
}

fn mark(one: char) -> String {
    let code = u32::from(one);
    let mnemonic = usize::try_from(code).ok().and_then(|place| MNEMONICS.get(place));
    match (mnemonic, one) {
        (Some(word), _) => format!("⟦{word}⟧"),
        (None, '\u{7f}') => "⟦DEL⟧".to_string(),
        (None, _) => format!("⟦U+{code:04X}⟧"),
    }
}

/// Whether a character is shown as itself: assigned, with ink, in cells of its own, not one of our signs. What the
/// tables of this build do not know yet is unassigned, and so marked.
fn is_plain(one: char) -> bool {
    match one.general_category_group() {
        GeneralCategoryGroup::Letter
        | GeneralCategoryGroup::Number
        | GeneralCategoryGroup::Punctuation
        | GeneralCategoryGroup::Symbol => {
            !is_blank(one) && one.width() != Some(0) && !matches!(one, MARK_OPEN | MARK_CLOSE | MARK_ON)
        }
        GeneralCategoryGroup::Separator => one == ' ',
        GeneralCategoryGroup::Mark | GeneralCategoryGroup::Other => false,
    }
}

/// Letters and symbols without ink: Hangul fillers, the blank Braille pattern, the null notehead, blank
/// hieroglyphs.
fn is_blank(one: char) -> bool {
    matches!(
        one,
        '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' | '\u{2800}' | '\u{1d159}' | '\u{13441}' | '\u{13442}'
    )
}

/// Combining marks with ink, and letters that are drawn into the one before them, as those of Hangul.
fn is_combining(one: char) -> bool {
    let is_invisible = matches!(one,
        '\u{34f}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{fe00}'..='\u{fe0f}' | '\u{16fe4}'
        | '\u{e0000}'..='\u{e0fff}');
    match one.general_category_group() {
        GeneralCategoryGroup::Mark => !is_invisible,
        GeneralCategoryGroup::Letter => one.width() == Some(0) && !is_blank(one),
        GeneralCategoryGroup::Number
        | GeneralCategoryGroup::Punctuation
        | GeneralCategoryGroup::Symbol
        | GeneralCategoryGroup::Separator
        | GeneralCategoryGroup::Other => false,
    }
}

/// Whether a joiner or an emoji selector stands where emoji need it.
fn joins(before: Option<char>, one: char, after: Option<char>) -> bool {
    let is_picture = |other: Option<char>| other.is_some_and(|other| !other.is_ascii() && other.is_emoji_char());
    match one {
        JOINER => (is_picture(before) || before == Some(EMOJI_SELECTOR)) && is_picture(after),
        EMOJI_SELECTOR => is_picture(before),
        _ => false,
    }
}

/// The length of the rest of a well-formed colour sequence, after its ESC.
fn colour_length(rest: &str) -> Option<usize> {
    let parameters = rest.strip_prefix('[')?;
    let end = parameters.find(|one: char| !one.is_ascii_digit() && one != ';' && one != ':')?;
    parameters[end..].starts_with('m').then_some(end + 2)
}

/// A transcript being written.
struct Page {
    out: String,
    column: usize,
    marks_left: u8,
    cut_bytes: usize,
}

impl Page {
    /// Writes something of a width, or counts it as cut off.
    fn write(&mut self, text: &str, cells: usize) {
        if self.cut_bytes > 0 || self.column + cells > limits::LINE_MAX_CELLS {
            self.cut_bytes += text.len();
        } else {
            self.out.push_str(text);
            self.column += cells;
        }
    }

    fn put(&mut self, one: char) {
        let cells = one.width().unwrap_or(0);
        self.write(one.encode_utf8(&mut [0; 4]), cells);
        self.marks_left = if one == ' ' { 0 } else { MARKS_SHOWN };
    }

    fn join(&mut self, one: char) {
        self.write(one.encode_utf8(&mut [0; 4]), 0);
    }

    fn combine(&mut self, one: char) {
        if self.marks_left == 0 {
            return self.mark(one);
        }
        self.marks_left -= 1;
        self.write(one.encode_utf8(&mut [0; 4]), one.width().unwrap_or(0));
    }

    fn mark(&mut self, one: char) {
        let text = mark(one);
        let cells = text.chars().count();
        self.write(&text, cells);
        self.marks_left = 0;
    }

    fn tab(&mut self) {
        let cells = TAB_CELLS - self.column % TAB_CELLS;
        self.write(&" ".repeat(cells), cells);
        self.marks_left = 0;
    }

    fn end_line(&mut self) {
        self.end_text();
        self.out.push('\n');
        self.column = 0;
    }

    fn end_text(&mut self) {
        if self.cut_bytes > 0 {
            self.out.push_str(&format!("… ⟦+{}⟧", counted(self.cut_bytes, "byte")));
        }
        self.cut_bytes = 0;
        self.marks_left = 0;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    /// Reads an approval view back.
    fn decode(shown: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut rest = shown;
        while let Some(one) = rest.chars().next() {
            rest = &rest[one.len_utf8()..];
            if one != MARK_OPEN {
                bytes.extend_from_slice(one.to_string().as_bytes());
                continue;
            }
            let (word, after) = rest.split_once(MARK_CLOSE).unwrap();
            rest = after;
            if word == "LF" {
                rest = rest.strip_prefix('\n').unwrap();
            }
            if let Some(hex) = word.strip_prefix("U+") {
                let one = char::from_u32(u32::from_str_radix(hex, 16).unwrap()).unwrap();
                bytes.extend_from_slice(one.to_string().as_bytes());
            } else if let Some(hex) = word.strip_prefix('x') {
                bytes.push(u8::from_str_radix(hex, 16).unwrap());
            } else if let Some(count) = word.strip_prefix("SP×") {
                bytes.extend(std::iter::repeat_n(b' ', count.parse().unwrap()));
            } else if word == "DEL" {
                bytes.push(0x7f);
            } else {
                bytes.push(u8::try_from(MNEMONICS.iter().position(|known| *known == word).unwrap()).unwrap());
            }
        }
        bytes
    }

    fn check_approval(input: &[u8], expected: &str) {
        assert_eq!(approval_bytes(input), expected);
        assert_eq!(decode(expected), input);
    }

    fn check_transcript(input: &str, expected: &str) {
        assert_eq!(transcript(input), expected, "{input:?}");
    }

    #[test]
    fn approvals_remove_nothing() {
        check_approval(b"ls \x1b[8mtouch MARK\x1b[0m", "ls ⟦ESC⟧[8mtouch MARK⟦ESC⟧[0m");
        check_approval(b"echo a\x08\x08\x08\x08ls", "echo a⟦BS⟧⟦BS⟧⟦BS⟧⟦BS⟧ls");
        check_approval(b"ls\t\ttouch", "ls⟦TAB⟧⟦TAB⟧touch");
        check_approval(b"ls \x9b2Ktouch", "ls ⟦x9B⟧2Ktouch");
        check_approval("日 ⟫".as_bytes(), "日 ⟦U+27EB⟧");
        check_approval("ls ⟦ESC⟧ x".as_bytes(), "ls ⟦U+27E6⟧ESC⟦U+27E7⟧ x");
        check_approval(b"[a] approve  [d] deny\n> APPROVED", "[a] approve  [d] deny⟦LF⟧\n> APPROVED");
        check_approval("echo \u{202e}KRAM hcuot\u{202c}".as_bytes(), "echo ⟦U+202E⟧KRAM hcuot⟦U+202C⟧");
        check_approval("ca\u{200b}t a".as_bytes(), "ca⟦U+200B⟧t a");
        check_approval("ls \u{2800}x".as_bytes(), "ls ⟦U+2800⟧x");
        check_approval("ls a\u{fe0f}b\u{e0100}".as_bytes(), "ls a⟦U+FE0F⟧b⟦U+E0100⟧");
        check_approval("ls e\u{301}".as_bytes(), "ls e⟦U+0301⟧");
        check_approval(b"a         b  \nc ", "a⟦SP×9⟧b⟦SP×2⟧⟦LF⟧\nc⟦SP×1⟧");
        check_approval(b"          a\n+          b", "          a⟦LF⟧\n+          b");
        check_approval(format!("-{}b", " ".repeat(41)).as_bytes(), "-⟦SP×41⟧b");
        check_approval(b"a\r\nb\x7f", "a⟦CR⟧⟦LF⟧\nb⟦DEL⟧");
        check_approval("日本語 → ok".as_bytes(), "日本語 → ok");
        check_approval("\u{1100}\u{1161} 가".as_bytes(), "\u{1100}⟦U+1161⟧ 가");
        check_approval("a\u{a0}\u{2028}b\u{e000}\u{378}".as_bytes(), "a⟦U+00A0⟧⟦U+2028⟧b⟦U+E000⟧⟦U+0378⟧");
        check_approval(b"\xed\xa0\x80\xc0\xaf", "⟦xED⟧⟦xA0⟧⟦x80⟧⟦xC0⟧⟦xAF⟧");
    }

    /// Two texts that differ look different, whatever stands beside what differs.
    #[test]
    fn pairs_of_characters_read_back_from_an_approval() {
        let mut next = chance();
        let mut one = move || loop {
            // Half of them from where most that misleads is.
            let most = if next().is_multiple_of(2) { 0x3000 } else { 0x11_0000 };
            if let Some(one) = char::from_u32(u32::try_from(next() % most).unwrap()) {
                return one;
            }
        };
        for _ in 0..100_000 {
            let pair: String = [one(), one()].iter().collect();
            let shown = approval(&pair);
            assert_eq!(decode(&shown), pair.as_bytes(), "{shown:?}");
        }
    }

    #[test]
    fn every_character_reads_back_from_an_approval() {
        let all: Vec<char> = ('\0'..=char::MAX).collect();
        for block in all.chunks(512) {
            let text: String = block.iter().flat_map(|one| ['a', *one, ' ', *one]).collect();
            assert_eq!(decode(&approval(&text)), text.as_bytes(), "from {:?}", block[0]);
        }
    }

    fn chance() -> impl FnMut() -> u64 {
        let mut chance: u64 = 0x9e37_79b9_7f4a_7c15;
        move || {
            chance ^= chance << 13;
            chance ^= chance >> 7;
            chance ^= chance << 17;
            chance
        }
    }

    #[test]
    fn random_bytes_read_back_from_an_approval() {
        let alphabet = b"a1+-  \t\n\r\x1b[m\x9b\xe2\x9f\xa6\xa7\x80\xae\xcc\x81\x00\x7f\xf0\xffx";
        let mut next = chance();
        for _ in 0..20_000 {
            let length = usize::try_from(next() % 24).unwrap();
            let bytes: Vec<u8> =
                (0..length).map(|_| alphabet[usize::try_from(next()).unwrap() % alphabet.len()]).collect();
            let shown = approval_bytes(&bytes);
            assert_eq!(decode(&shown), bytes, "{shown:?}");
        }
    }

    #[test]
    fn transcripts_can_be_read() {
        check_transcript("\u{1b}]52;c;dG91Y2ggTUFSSw==\u{7}done", "⟦ESC⟧]52;c;dG91Y2ggTUFSSw==⟦BEL⟧done");
        check_transcript("\u{1b}[6n\u{1b}[c\u{1b}[21t", "⟦ESC⟧[6n⟦ESC⟧[c⟦ESC⟧[21t");
        check_transcript("\u{1b}[?1049h\u{1b}[?2004l\u{1b}[>4;2m", "⟦ESC⟧[?1049h⟦ESC⟧[?2004l⟦ESC⟧[>4;2m");
        check_transcript("\u{1b}[", "⟦ESC⟧[");
        check_transcript("a\u{e}\u{f}b\u{5}", "a⟦SO⟧⟦SI⟧b⟦ENQ⟧");
        check_transcript("col1\tcol2", "col1    col2");
        check_transcript("日本\tx", "日本    x");
        check_transcript("\u{1b}[1;31mred\u{1b}[0m \u{1b}[m", "red ");
        check_transcript("a\r\nb\rc\n", "a\nb⟦CR⟧\nc\n");
        check_transcript("if access \u{202e}}\u{2066} {", "if access ⟦U+202E⟧}⟦U+2066⟧ {");
        check_transcript(
            "\u{1b}]8;;file:///etc/passwd\u{1b}\\click\u{1b}]8;;\u{1b}\\",
            "⟦ESC⟧]8;;file:///etc/passwd⟦ESC⟧\\click⟦ESC⟧]8;;⟦ESC⟧\\",
        );
        check_transcript("e\u{301}\u{302}\u{303}", "e\u{301}\u{302}⟦U+0303⟧");
        check_transcript("\u{1100}\u{1161}\u{11a8}\u{11a8}", "\u{1100}\u{1161}\u{11a8}⟦U+11A8⟧");
        check_transcript("\u{301}x", "⟦U+0301⟧x");
        check_transcript("👩\u{200d}🚀 ❤\u{fe0f} a\u{200d}b 1\u{fe0f}", "👩\u{200d}🚀 ❤\u{fe0f} a⟦U+200D⟧b 1⟦U+FE0F⟧");
    }

    #[test]
    fn long_lines_are_cut_with_a_count() {
        let shown = transcript(&format!("{}\nb", "a".repeat(limits::LINE_MAX_CELLS + 904)));
        assert_eq!(shown, format!("{}… ⟦+904 bytes⟧\nb", "a".repeat(limits::LINE_MAX_CELLS)));
    }

    #[test]
    fn titles_are_one_line_without_escapes() {
        assert_eq!(title("a\u{1b}]0;x\u{7}.rs\nb", 40), "a⟦ESC⟧]0;x⟦BEL⟧.rs b");
    }

    #[test]
    fn what_was_forgotten_is_sanitised_before_it_is_drawn() {
        for text in ["a\u{1b}[2Jb", "a\u{202e}b", "a\tb", "a\u{9b}2J", "⟦ESC⟧\u{7}"] {
            assert_eq!(drawn(text.to_string()), transcript(text));
        }
        for text in ["a ⟦ESC⟧[2Jb", "日⟫", "👨\u{200d}👩 ❤\u{fe0f} e\u{301}", "┏━┓ ▸ ×"] {
            assert_eq!(drawn(text.to_string()), text);
        }
    }

    #[test]
    fn nothing_unseen_reaches_a_transcript() {
        let is_seen = |other: char| other == '\n' || is_plain(other) || other == MARK_OPEN || other == MARK_CLOSE;
        let all: Vec<char> = ('\0'..=char::MAX).collect();
        for block in all.chunks(512) {
            let shown = transcript(&block.iter().flat_map(|one| ['x', ' ', *one]).collect::<String>());
            let unseen = shown.chars().find(|one| !is_seen(*one));
            assert_eq!(unseen, None, "from {:?}", block[0]);
        }
    }

    #[test]
    fn letters_that_look_like_others_are_found() {
        assert_eq!(foreign_letters("ok\nc\u{430}t 日", 9), [('\u{430}', 2, 2), ('日', 2, 5)]);
        assert_eq!(foreign_letters("\u{430}\u{430}", 1).len(), 1);
    }
}
