//! Text with a longest length: its head and its tail are kept, and what was left out is counted.

use std::fmt::Display;

use sha2::Digest;
use sha2::Sha256;

/// How the line begins that says how much of a text is missing.
pub const CUT_BEGINS: &str = "\n[… ";
/// How it ends.
pub const CUT_ENDS: &str = " …]\n";

/// SHA-256 of bytes, in lower-case hexadecimal.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// The first 16 digits of it, where equal things are told from others and nobody would make two look equal.
pub fn short_hash(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes)[..8])
}

/// Bytes in lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.filter_map(|digit| char::from_digit(u32::from(digit), 16)).collect()
}

/// The longest start of `text` that is at most `max` bytes and ends between characters.
pub fn head(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

/// The longest end of `text` that is at most `max` bytes and starts between characters.
pub fn tail(text: &str, max: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(max))..]
}

/// `text`, or its head and tail with a line between them that says how much is missing.
pub fn excerpt(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_string();
    }
    let (first, last) = (head(text, max / 2), tail(text, max / 2));
    let missing = text.len() - first.len() - last.len();
    around(first, missing, last)
}

/// A head and a tail, with the line between them that says how many bytes are missing.
pub fn around(first: &str, missing: usize, last: &str) -> String {
    format!("{first}{CUT_BEGINS}{} left out{CUT_ENDS}{last}", counted(missing, "byte"))
}

/// One line of at most `max` characters, for titles; whitespace collapsed, an ellipsis where it was cut.
pub fn one_line(text: &str, max: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= max {
        return line;
    }
    line.chars().take(max.saturating_sub(1)).chain(['…']).collect()
}

/// So many things of a kind: `1 line`, `2 lines`, `2 entries`. Every count of a text goes through here, or through
/// `of_kind` where the number is written in another way.
pub fn counted<N: Copy + Display + PartialEq + From<u8>>(count: N, one: &str) -> String {
    format!("{count} {}", of_kind(count == N::from(1), one))
}

/// The name of a kind of things, of which there is one or not: with an `s`, or `ies` in the place of a
/// `y` behind a consonant.
pub fn of_kind(is_one: bool, one: &str) -> String {
    match one.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'o', 'u'])) {
        _ if is_one => one.to_string(),
        Some(stem) => format!("{stem}ies"),
        None => format!("{one}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_not_several() {
        let told = |count: usize| ["line", "entry", "day"].map(|one| counted(count, one));
        assert_eq!(told(0), ["0 lines", "0 entries", "0 days"]);
        assert_eq!(told(1), ["1 line", "1 entry", "1 day"]);
        assert_eq!(told(2), ["2 lines", "2 entries", "2 days"]);
        assert_eq!((counted(1_u64, "byte"), counted(1_u32, "day")), ("1 byte".to_string(), "1 day".to_string()));
        assert_eq!(around("a", 1, "b"), "a\n[… 1 byte left out …]\nb");
    }

    #[test]
    fn cuts_fall_between_characters() {
        assert_eq!(head("aéb", 2), "a");
        assert_eq!(tail("aéb", 2), "b");
        assert_eq!(head("abc", 9), "abc");
        assert_eq!(tail("abc", 9), "abc");
    }

    #[test]
    fn excerpts_say_what_is_missing() {
        assert_eq!(excerpt("0123456789", 10), "0123456789");
        assert_eq!(excerpt("0123456789", 4), "01\n[… 6 bytes left out …]\n89");
    }

    #[test]
    fn titles_are_one_line() {
        assert_eq!(one_line(" a\n b\tc ", 9), "a b c");
        assert_eq!(one_line("abcdef", 4), "abc…");
    }
}
