//! Reads a shell line once, without running anything: the commands in it, as far as they can be seen, and, if the line
//! is plain, exactly what there is to run (docs/SAFETY.md §6). The reader of plain lines knows a tiny language and
//! takes in every byte; whatever it does not know makes the line one for a shell, which is asked about. What it reads is
//! run from its words, so that a difference to the language of a shell can mislead nobody.

use crate::domain::limits;
use crate::domain::line::Joint;
use crate::domain::line::Line;
use crate::domain::line::Plain;
use crate::domain::line::Redirect;
use crate::domain::line::Segment;
use crate::tools::commands;

/// What a bare word may be made of, besides letters and digits.
const BARE: &str = "_./:=,+@%^-";
/// What means itself inside of a bare word, but not where it begins.
const BARE_WITHIN: &str = "~#!";
/// Bare words that a shell takes for a part of its language where a command begins.
const RESERVED: [&str; 22] = [
    "!", "[[", "]]", "{", "}", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if",
    "in", "select", "then", "time", "until", "while",
];
/// The redirections, as they are written and what they mean; none is the start of a later one.
const REDIRECTS: [(&str, &[Redirect]); 4] = [
    ("2>&1", &[Redirect::ErrorsToOutput]),
    ("&>", &[Redirect::OutputToNull, Redirect::ErrorsToOutput]),
    ("2>", &[Redirect::ErrorsToNull]),
    (">", &[Redirect::OutputToNull]),
];
/// The one file that output may go to.
const NULL: &str = "/dev/null";

/// Reads a line.
pub fn read(text: &str) -> Line {
    let plain = plain(text);
    let commands = match &plain {
        Ok(plain) => commands::with_inner(plain.segments.iter().map(|segment| segment.argv.clone()).collect()),
        Err(_) => commands::find(text),
    };
    Line { commands, plain }
}

fn plain(text: &str) -> Result<Plain, String> {
    if text.len() > limits::PLAIN_MAX_BYTES {
        return Err(format!("it is longer than {} KiB", limits::PLAIN_MAX_BYTES / 1024));
    }
    if let Some(odd) = text.chars().find(|letter| !matches!(letter, ' '..='~')) {
        return Err(match odd {
            '\n' => "it has more than one line".to_string(),
            _ => format!("it has a character that is no printable ASCII: U+{:04X}", u32::from(odd)),
        });
    }
    Reader { rest: text }.line()
}

/// What is left of a line, all of it printable ASCII.
struct Reader<'text> {
    rest: &'text str,
}

/// What a word is, besides its text.
struct Word {
    text: String,
    /// The part before its first quote: only that can mean something else than itself.
    bare: String,
    is_quoted: bool,
}

impl Reader<'_> {
    fn line(mut self) -> Result<Plain, String> {
        let mut segments = Vec::new();
        let mut joint = Joint::First;
        loop {
            let segment = self.segment(joint)?;
            segments.push(segment);
            if segments.len() > limits::PLAIN_SEGMENTS {
                return Err(format!("it has more than {} commands", limits::PLAIN_SEGMENTS));
            }
            match self.joint()? {
                None => return Ok(Plain { segments }),
                Some(next) => joint = next,
            }
        }
    }

    /// One command, up to what ends it.
    fn segment(&mut self, joint: Joint) -> Result<Segment, String> {
        let mut segment = Segment { joint, argv: Vec::new(), redirects: Vec::new() };
        loop {
            self.skip_blanks();
            if let Some(redirects) = self.redirect()? {
                segment.redirects.extend_from_slice(redirects);
                continue;
            }
            if self.rest.is_empty() || self.rest.starts_with([';', '|', '&']) {
                break;
            }
            let word = self.word()?;
            if segment.argv.is_empty() {
                first_word(&word)?;
            }
            segment.argv.push(word.text);
        }
        match segment.argv.is_empty() {
            true => Err("a command is missing".to_string()),
            false => Ok(segment),
        }
    }

    /// What comes between two commands; nothing at the end of the line.
    fn joint(&mut self) -> Result<Option<Joint>, String> {
        for (sign, joint) in [("&&", Joint::And), ("||", Joint::Or), ("|", Joint::Pipe), (";", Joint::Then)] {
            if self.take(sign) {
                self.skip_blanks();
                let is_end = self.rest.is_empty() && joint == Joint::Then;
                return Ok((!is_end).then_some(joint));
            }
        }
        match self.rest.is_empty() {
            true => Ok(None),
            false => Err("it leaves a command in the background (&)".to_string()),
        }
    }

    /// One of the redirections, if one is next.
    fn redirect(&mut self) -> Result<Option<&'static [Redirect]>, String> {
        for (sign, meaning) in REDIRECTS {
            if !self.take(sign) {
                continue;
            }
            if sign != "2>&1" {
                self.skip_blanks();
                if !self.take(NULL) {
                    return Err("it sends output elsewhere than to /dev/null".to_string());
                }
            }
            return match self.rest.is_empty() || self.rest.starts_with([' ', ';', '|', '&']) {
                true => Ok(Some(meaning)),
                false => Err("it redirects to what is not known".to_string()),
            };
        }
        Ok(None)
    }

    fn word(&mut self) -> Result<Word, String> {
        let mut word = Word { text: String::new(), bare: String::new(), is_quoted: false };
        while let Some(letter) = self.rest.chars().next() {
            match letter {
                ' ' | ';' | '|' | '&' => break,
                '>' | '<' if !is_number(&word) => break,
                '>' | '<' => return Err("it redirects what is not known".to_string()),
                '\'' => self.raw(&mut word)?,
                '"' => self.quoted(&mut word)?,
                _ if is_bare(letter, &word) => {
                    self.rest = self.rest.get(1..).unwrap_or_default();
                    word.text.push(letter);
                    if !word.is_quoted {
                        word.bare.push(letter);
                    }
                }
                _ => return Err(format!("a shell would read more in it than what is written: {letter}")),
            }
        }
        match word.text.is_empty() && !word.is_quoted {
            true => Err("it reads from a file by <".to_string()),
            false => Ok(word),
        }
    }

    /// A part of a word in single quotes: all in it means itself.
    fn raw(&mut self, word: &mut Word) -> Result<(), String> {
        let inner = self.rest.get(1..).and_then(|rest| rest.split_once('\''));
        let (text, rest) = inner.ok_or("a quote is not closed")?;
        word.text.push_str(text);
        word.is_quoted = true;
        self.rest = rest;
        Ok(())
    }

    /// A part of a word in double quotes: what a shell would read in it is not plain.
    fn quoted(&mut self, word: &mut Word) -> Result<(), String> {
        let inner = self.rest.get(1..).unwrap_or_default();
        let mut letters = inner.char_indices().peekable();
        word.is_quoted = true;
        while let Some((at, letter)) = letters.next() {
            let next = letters.peek().map(|(_, next)| *next);
            match letter {
                '"' => {
                    self.rest = inner.get(at + 1..).unwrap_or_default();
                    return Ok(());
                }
                // Before what ends a pattern it means itself to every shell.
                '$' if matches!(next, Some('"' | ' ' | '|' | ')')) => word.text.push(letter),
                '$' | '`' => return Err(format!("a shell would read more in it than what is written: {letter}")),
                // Before any other sign it means itself.
                '\\' if matches!(next, None | Some('$' | '`' | '"' | '\\' | '!')) => {
                    return Err("it has a backslash before a sign that means something".to_string());
                }
                _ => word.text.push(letter),
            }
        }
        Err("a quote is not closed".to_string())
    }

    fn take(&mut self, sign: &str) -> bool {
        match self.rest.strip_prefix(sign) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start_matches(' ');
    }
}

/// Whether a word before a redirection says what is redirected.
fn is_number(word: &Word) -> bool {
    !word.is_quoted && !word.text.is_empty() && word.text.chars().all(|letter| letter.is_ascii_digit())
}

/// Whether a letter means itself where it stands, outside of quotes.
fn is_bare(letter: char, word: &Word) -> bool {
    let is_within = !word.text.is_empty() && !word.text.ends_with(['=', ':']);
    letter.is_ascii_alphanumeric() || BARE.contains(letter) || (BARE_WITHIN.contains(letter) && is_within)
}

/// What a shell would not take for the name of a program.
fn first_word(word: &Word) -> Result<(), String> {
    let is_name = |text: &str| {
        text.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_')
            && text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    };
    let assigned = word.bare.split_once('=').map(|(name, _)| name.trim_end_matches('+'));
    if assigned.is_some_and(is_name) {
        return Err("it sets a variable".to_string());
    }
    if word.text.is_empty() {
        return Err("a command has no name".to_string());
    }
    match !word.is_quoted && RESERVED.contains(&word.text.as_str()) {
        true => Err(format!("{} is a part of the shell's own language", word.text)),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn check(text: &str, expected: &str) {
        let told = match read(text).plain {
            Err(why) => format!("? {why}"),
            Ok(plain) => plain
                .segments
                .iter()
                .map(|segment| {
                    let joint = match segment.joint {
                        Joint::First => "",
                        Joint::Pipe => "| ",
                        Joint::And => "&& ",
                        Joint::Or => "|| ",
                        Joint::Then => "; ",
                    };
                    let redirects = segment.redirects.iter().map(|one| match one {
                        Redirect::OutputToNull => " >0",
                        Redirect::ErrorsToNull => " 2>0",
                        Redirect::ErrorsToOutput => " 2>1",
                    });
                    format!("{joint}[{}]{}", segment.argv.join("] ["), redirects.collect::<String>())
                })
                .collect::<Vec<_>>()
                .join(" "),
        };
        assert_eq!(told, expected, "{text}");
    }

    #[test]
    fn plain_lines_are_read_to_their_words() {
        for (text, expected) in [
            ("ls -la src", "[ls] [-la] [src]"),
            ("  ls  ", "[ls]"),
            ("ls;", "[ls]"),
            ("ls ; pwd", "[ls] ; [pwd]"),
            ("a&&b||c|d;e", "[a] && [b] || [c] | [d] ; [e]"),
            ("grep -rn 'fn main' \"src dir\"", "[grep] [-rn] [fn main] [src dir]"),
            ("echo a\"b c\"'d|e'f \"\" ''", "[echo] [ab cd|ef] [] []"),
            ("git show HEAD~1:a.rs HEAD^ a#b", "[git] [show] [HEAD~1:a.rs] [HEAD^] [a#b]"),
            ("ls 2>/dev/null | head -5", "[ls] 2>0 | [head] [-5]"),
            ("ls > /dev/null 2>&1", "[ls] >0 2>1"),
            ("ls 2>&1 >/dev/null", "[ls] 2>1 >0"),
            ("ls &>/dev/null; pwd", "[ls] >0 2>1 ; [pwd]"),
            ("2>/dev/null ls src", "[ls] [src] 2>0"),
            ("ls 2>/dev/null src", "[ls] [src] 2>0"),
            ("echo a2>/dev/null", "[echo] [a2] >0"),
            ("grep \"a\\|b\\.c$\" x", "[grep] [a\\|b\\.c$] [x]"),
            ("\"if\" x", "[if] [x]"),
            ("echo if", "[echo] [if]"),
        ] {
            check(text, expected);
        }
    }

    #[test]
    fn whatever_else_is_for_a_shell() {
        let more = |sign: char| format!("? a shell would read more in it than what is written: {sign}");
        for (text, expected) in [
            ("", "? a command is missing"),
            ("   ", "? a command is missing"),
            ("# just a comment", &more('#')),
            ("ls;;", "? a command is missing"),
            ("ls; ;pwd", "? a command is missing"),
            ("ls | | wc", "? a command is missing"),
            ("ls ||", "? a command is missing"),
            ("&& ls", "? a command is missing"),
            (">/dev/null", "? a command is missing"),
            ("ls & pwd", "? it leaves a command in the background (&)"),
            ("ls |& cat", "? a command is missing"),
            ("ls &", "? it leaves a command in the background (&)"),
            ("ls > out", "? it sends output elsewhere than to /dev/null"),
            ("ls >> /dev/null", "? it sends output elsewhere than to /dev/null"),
            ("ls >| /dev/null", "? it sends output elsewhere than to /dev/null"),
            ("ls >/dev/nullx", "? it redirects to what is not known"),
            ("ls >/dev/null/../x", "? it redirects to what is not known"),
            ("ls >/dev/null>out", "? it redirects to what is not known"),
            ("ls 2>&1x", "? it redirects to what is not known"),
            ("ls 2>&12", "? it redirects to what is not known"),
            ("ls 3>/dev/null", "? it redirects what is not known"),
            ("ls 1>out", "? it redirects what is not known"),
            ("ls 1<>out", "? it redirects what is not known"),
            ("cat <a", "? it reads from a file by <"),
            ("cat a<b", "? it reads from a file by <"),
            ("cat <<< a", "? it reads from a file by <"),
            ("echo $x", &more('$')),
            ("echo \"$x\"", &more('$')),
            ("echo \"`x`\"", &more('`')),
            ("echo `x`", &more('`')),
            ("echo \"\\$x\"", "? it has a backslash before a sign that means something"),
            ("l\\s", &more('\\')),
            ("ls *.rs", &more('*')),
            ("ls a?", &more('?')),
            ("ls [a]", &more('[')),
            ("echo {a,b}", &more('{')),
            ("cat ~/notes", &more('~')),
            ("x --to=~/notes", &more('~')),
            ("(ls)", &more('(')),
            ("((x=1))", &more('(')),
            ("! ls", &more('!')),
            ("LD_PRELOAD=./x.so ls", "? it sets a variable"),
            ("A+=x ls", "? it sets a variable"),
            ("A='x y' ls", "? it sets a variable"),
            ("time ls", "? time is a part of the shell's own language"),
            ("if true", "? if is a part of the shell's own language"),
            ("'' x", "? a command has no name"),
            ("echo 'a", "? a quote is not closed"),
            ("echo \"a", "? a quote is not closed"),
            ("ls\npwd", "? it has more than one line"),
            ("ls\tx", "? it has a character that is no printable ASCII: U+0009"),
            ("ls\rx", "? it has a character that is no printable ASCII: U+000D"),
            ("ls\u{a0}x", "? it has a character that is no printable ASCII: U+00A0"),
            ("a;b;c;d;e;f;g;h;i", "? it has more than 8 commands"),
        ] {
            check(text, expected);
        }
        check(&"a".repeat(limits::PLAIN_MAX_BYTES + 1), "? it is longer than 16 KiB");
    }
}
