//! Watches a text while it streams for a model that goes in circles (docs/ENGINE.md §7.3, S): the same piece of 50
//! characters ten times within 5,000. Code, tables and lists repeat themselves for good reasons and are not watched.

use std::collections::HashMap;
use std::collections::VecDeque;

use crate::domain::limits::REPEAT_CHARS;
use crate::domain::limits::REPEAT_TIMES;
use crate::domain::limits::REPEAT_WITHIN_CHARS;

/// Base of the rolling hash: any large odd number does.
const BASE: u64 = 0x9E37_79B9_7F4A_7C15;
/// Characters at the start of a line that are enough to tell what the line is.
const TELLING_CHARS: usize = 6;
/// Places that are kept before those that lie too far back are forgotten.
const PLACES_KEPT: usize = 4 * REPEAT_WITHIN_CHARS;

/// The watcher of one text.
#[derive(Debug, Default)]
pub struct Watcher {
    /// The start of a line of which it is not clear yet what it is.
    start: String,
    line: Line,
    /// The fence of the code block that is open: its character and its length.
    fence: Option<(char, usize)>,
    /// The last characters that were watched.
    window: VecDeque<char>,
    hash: u64,
    /// Characters watched so far.
    place: usize,
    /// By the hash of a piece, where it ended; places that overlap count once.
    seen: HashMap<u64, VecDeque<usize>>,
}

/// What the line that comes in is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Line {
    /// Not clear yet.
    #[default]
    Begins,
    /// Text, which is watched.
    Text,
    /// A line of code, of a table, of a list.
    Other,
}

impl Watcher {
    /// Takes the next piece of the text. Gives what is being repeated, once it is.
    pub fn push(&mut self, text: &str) -> Option<String> {
        text.chars().find_map(|one| self.take(one))
    }

    fn take(&mut self, one: char) -> Option<String> {
        let found = match self.line {
            Line::Begins if one == '\n' => self.tell().or_else(|| self.watch_if_text('\n')),
            Line::Begins => {
                if !self.start.is_empty() || !one.is_whitespace() {
                    self.start.push(one);
                }
                if self.start.chars().count() >= TELLING_CHARS { self.tell() } else { None }
            }
            Line::Text => self.watch(one),
            Line::Other => None,
        };
        if one == '\n' {
            self.line = Line::Begins;
            self.start.clear();
        }
        found
    }

    /// Decides what the line is by its start, and watches the start if it is text.
    fn tell(&mut self) -> Option<String> {
        let start = std::mem::take(&mut self.start);
        let fence = fence(&start);
        self.line = match (self.fence, fence) {
            (None, Some(opens)) => {
                self.fence = Some(opens);
                Line::Other
            }
            (Some((with, least)), Some((closes, length))) if with == closes && length >= least => {
                self.fence = None;
                Line::Other
            }
            (Some(_), _) => Line::Other,
            (None, None) if is_listed(&start) => Line::Other,
            (None, None) => Line::Text,
        };
        if self.line == Line::Other {
            // A piece does not go on beyond what is not watched.
            self.window.clear();
            self.hash = 0;
            return None;
        }
        start.chars().find_map(|one| self.watch(one))
    }

    fn watch_if_text(&mut self, one: char) -> Option<String> {
        if self.line == Line::Text { self.watch(one) } else { None }
    }

    fn watch(&mut self, one: char) -> Option<String> {
        self.place += 1;
        self.hash = self.hash.wrapping_mul(BASE).wrapping_add(u64::from(u32::from(one)) + 1);
        self.window.push_back(one);
        if self.window.len() > REPEAT_CHARS
            && let Some(gone) = self.window.pop_front()
        {
            let weight = BASE.wrapping_pow(REPEAT_CHARS as u32);
            self.hash = self.hash.wrapping_sub(weight.wrapping_mul(u64::from(u32::from(gone)) + 1));
        }
        if self.window.len() < REPEAT_CHARS || self.window.iter().all(|one| one.is_whitespace()) {
            return None;
        }
        let (place, oldest) = (self.place, self.place.saturating_sub(REPEAT_WITHIN_CHARS));
        if self.seen.len() > PLACES_KEPT {
            self.seen.retain(|_, places| places.back().is_some_and(|last| *last > oldest));
        }
        let places = self.seen.entry(self.hash).or_default();
        if places.back().is_none_or(|last| place - last >= REPEAT_CHARS) {
            places.push_back(place);
        }
        while places.front().is_some_and(|first| *first <= oldest) {
            places.pop_front();
        }
        (places.len() >= REPEAT_TIMES).then(|| self.window.iter().collect())
    }
}

/// The fence that a line begins with.
fn fence(start: &str) -> Option<(char, usize)> {
    let with = start.chars().next().filter(|one| matches!(one, '`' | '~'))?;
    let length = start.chars().take_while(|one| *one == with).count();
    (length >= 3).then_some((with, length))
}

/// Whether a line is one of a table or of a list.
fn is_listed(start: &str) -> bool {
    let digits = start.bytes().take_while(u8::is_ascii_digit).count();
    let numbered = digits > 0 && start.get(digits..).is_some_and(|rest| rest.starts_with(['.', ')']));
    let marked = ["- ", "* ", "+ ", "• "].iter().any(|marker| start.starts_with(marker));
    start.starts_with('|') || numbered || marked
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where the text is found to go in circles, in characters, fed in pieces of one length after another.
    fn check(text: &str, expected: Option<usize>) {
        let mut whole = Watcher::default();
        let chars: Vec<char> = text.chars().collect();
        let found = chars.iter().position(|one| whole.push(&one.to_string()).is_some()).map(|place| place + 1);
        assert_eq!(found, expected, "{}", text.chars().take(120).collect::<String>());
        for length in [2, 7, 50, 51, 4_000] {
            let mut pieces = Watcher::default();
            let in_pieces = chars.chunks(length).any(|piece| pieces.push(&piece.iter().collect::<String>()).is_some());
            assert_eq!(in_pieces, expected.is_some(), "in pieces of {length}");
        }
    }

    /// A sentence of exactly 50 characters that is unlike any other of another number.
    fn sentence(number: usize) -> String {
        format!("{:<49}\n", format!("{number} is how often I have said this by now"))
    }

    #[test]
    fn ten_times_is_a_circle_and_nine_times_is_not() {
        let once = "I will look at the file again and then look at it ";
        assert_eq!(once.chars().count(), 50);
        check(&once.repeat(10), Some(500));
        check(&once.repeat(9), None);
        check(&"à".repeat(499), None);
        check(&"à".repeat(500), Some(500));
    }

    #[test]
    fn what_lies_far_apart_does_not_count() {
        let apart = |between: usize| -> String {
            let other = |round: usize| (0..between).map(|n| sentence(1_000 * round + n)).collect::<String>();
            (0..12)
                .map(|round| format!("{}{}", "the same again and again and again, word for word\n", other(round)))
                .collect()
        };
        check(&apart(20), None);
        // Every 500 characters: the tenth ends 4,500 after the first.
        check(&apart(9), Some(9 * 500 + 50));
    }

    #[test]
    fn code_tables_and_lists_are_not_watched() {
        let line = "the same again and again and again, word for word\n";
        check(&format!("```rust\n{}```\n", line.repeat(50)), None);
        check(&format!("~~~~\n{}~~~\n{}~~~~\n", line.repeat(20), line.repeat(20)), None);
        check(&format!("- {line}").repeat(50), None);
        check(&format!("  12. {line}").repeat(50), None);
        check(&format!("| {line}").repeat(50), None);
        check(&format!("```\ncode\n```\n{}", line.repeat(12)), Some(13 + 500));
        check(&format!("{line}- an item between\n").repeat(12), Some(10 * 50 + 9 * 18));
        check(&" \n".repeat(1_000), None);
        // A rule between two parts.
        check(&format!("{}\n", "=".repeat(80)).repeat(5), None);
    }

    #[test]
    fn ordinary_text_of_any_length_is_no_circle() {
        let text: String = (0..20_000).map(sentence).collect();
        let mut watcher = Watcher::default();
        assert_eq!(watcher.push(&text), None);
        assert!(watcher.seen.len() <= PLACES_KEPT + 1);
    }
}
