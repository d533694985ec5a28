//! Lines that are just what is typed to decide, and so are not said to the agent when nothing is asked: who types one
//! means a call.

use crate::domain::code::CODE_LENGTH;

/// What has such a line said all the same, before it.
pub const SAY: &str = "say";

/// Whether a line is exactly what decides somewhere: a letter, yes or no, a letter with a code, how far a rule reaches.
pub fn is_for_a_call(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_letter = |word: &str| word.chars().count() == 1;
    let is_code = |word: &str| word.len() == CODE_LENGTH && word.bytes().all(|one| one.is_ascii_alphabetic());
    match words.as_slice() {
        [word] => is_letter(word) || ["yes", "no"].iter().any(|one| word.eq_ignore_ascii_case(one)),
        ["y" | "r", code] if is_code(code) => true,
        ["r", "everywhere"] | ["r", "open", "everywhere"] => true,
        _ => false,
    }
}

/// A line as it is said: what decides elsewhere is said with a word before it, which is no part of it.
pub fn said(line: &str) -> &str {
    let rest = line.trim().split_once(char::is_whitespace).filter(|(word, _)| *word == SAY);
    rest.map(|(_, rest)| rest.trim()).filter(|rest| is_for_a_call(rest)).unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_decides_elsewhere_is_known() {
        for line in ["y", " n ", "a", "A", "7", "ü", "yes", "No", "y jewd", "r JEWD", "r open", "r everywhere"] {
            assert!(is_for_a_call(line), "{line}");
        }
        for line in ["", "go on", "yes please", "y please", "n because", "d use the other", "what", "r open it"] {
            assert!(!is_for_a_call(line), "{line}");
        }
    }

    #[test]
    fn it_is_said_all_the_same_behind_a_word() {
        let check = |line: &str, expected: &str| assert_eq!(said(line), expected);
        check("say y", "y");
        check("say  yes ", "yes");
        check("say hello to them", "say hello to them");
        check("say", "say");
        check("go on", "go on");
    }
}
