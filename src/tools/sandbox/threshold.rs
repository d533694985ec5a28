//! The first bytes that come out of a box: the word of its last stage that it is closed. Until it has come, whatever is
//! heard is said by what makes the box, and says why there is none.

use crate::domain::text::one_line;
use crate::tools::process::Ending;
use crate::tools::sandbox::Room;

/// What the last stage writes right before the command begins.
pub(crate) const OPEN: &[u8] = b"tiller: the box is closed\n";
/// Longest reason that is repeated, in characters.
const WHY_CHARS: usize = 300;

/// The word, as far as it has come.
pub(crate) struct Threshold {
    heard: Vec<u8>,
    is_open: bool,
}

impl Threshold {
    /// That of a box; where there is none, it is open.
    pub(crate) fn of(room: Option<&Room>) -> Threshold {
        Threshold { heard: Vec::new(), is_open: room.is_none() }
    }

    /// What of these bytes is output of the command.
    pub(crate) fn pass<'bytes>(&mut self, bytes: &'bytes [u8]) -> &'bytes [u8] {
        if self.is_open {
            return bytes;
        }
        let missing = OPEN.len().saturating_sub(self.heard.len());
        let (word, rest) = bytes.split_at(missing.min(bytes.len()));
        self.heard.extend_from_slice(word);
        self.is_open = self.heard == OPEN;
        // Enough to say why; it is no output.
        if !self.is_open {
            self.heard.extend_from_slice(rest);
            self.heard.truncate(WHY_CHARS * 4);
        }
        if self.is_open { rest } else { &[] }
    }

    /// How a command ended that may never have begun.
    pub(crate) fn judge(&self, ending: Ending) -> Ending {
        match ending {
            Ending::Exited(_) if !self.is_open => {
                let heard = one_line(&String::from_utf8_lossy(&self.heard), WHY_CHARS);
                let why = if heard.is_empty() { "nothing was said of why".to_string() } else { heard };
                Ending::NotStarted(format!("its box could not be made: {why}"))
            }
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pieces: &[&str], wanted: &str, ending: &Ending) {
        let mut threshold = Threshold { heard: Vec::new(), is_open: false };
        let passed: Vec<u8> = pieces.iter().flat_map(|piece| threshold.pass(piece.as_bytes()).to_vec()).collect();
        assert_eq!(String::from_utf8_lossy(&passed), wanted);
        assert_eq!(&threshold.judge(Ending::Exited(1)), ending);
    }

    #[test]
    fn only_what_comes_after_the_word_is_output() {
        let (done, word) = (Ending::Exited(1), "tiller: the box is closed\n");
        check(&[word, "a", word], &format!("a{word}"), &done);
        check(&["tiller: the b", "ox is closed\nhello"], "hello", &done);
        check(&[word], "", &done);
        let failed = |why: &str| Ending::NotStarted(format!("its box could not be made: {why}"));
        check(&["bwrap: no\n"], "", &failed("bwrap: no"));
        check(&[], "", &failed("nothing was said of why"));
        check(
            &["bwrap: a long sentence about what does not work", &format!(" here {word}")],
            "",
            &failed("bwrap: a long sentence about what does not work here tiller: the box is closed"),
        );
    }
}
