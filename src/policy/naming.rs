//! What the words of a command name, where a standing rule that allows would cover it: places outside, sensitive names
//! and what other programs run are asked about each time (docs/SAFETY.md §6.1). A word that the rule says itself may
//! lead outside where it is written so: the operator wrote that very place. It judges facts and looks nothing up.

use crate::domain::line::Line;
use crate::domain::line::Named;
use crate::domain::line::Touch;
use crate::domain::rule::Any;
use crate::domain::rule::Token;
use crate::domain::tool::Facts;

/// Programs that show a folder down to its last file.
const DEEP: [&str; 12] = ["ack", "ag", "cpio", "diff", "egrep", "fgrep", "grep", "rg", "rsync", "scp", "tar", "zip"];

/// One command of a line, and what its words name.
pub struct Words<'a> {
    touches: Vec<&'a Touch>,
    workspace: &'a str,
    /// Whether the line goes to another folder first: then a word leads elsewhere than where it stands in a rule.
    goes: bool,
}

impl<'a> Words<'a> {
    /// Those of the command with this number.
    pub fn of(facts: &'a Facts, line: &Line, command: usize, workspace: &'a str) -> Words<'a> {
        let touches = facts.touches.iter().filter(|touch| touch.command == command).collect();
        let goes = line.plain.as_ref().is_ok_and(|plain| plain.folder().is_some());
        Words { touches, workspace, goes }
    }

    /// Why a rule with these tokens, which are those of the command, does not cover what its words name, if it does not.
    pub fn fault(&self, tokens: &[Token], argv: &[String]) -> Option<String> {
        let said = tokens.iter().position(|token| *token == Token::REST).unwrap_or(tokens.len());
        let is_open = |place: usize| match tokens.get(place.min(said)) {
            Some(Token::Any { any: Any::One | Any::Rest }) => true,
            Some(Token::Word(_)) | None => false,
        };
        if let Some(why) = self.git(tokens, argv) {
            return Some(why);
        }
        let words = argv.iter().enumerate().skip(1);
        let is_deep = argv.first().is_some_and(|name| DEEP.contains(&name.rsplit('/').next().unwrap_or_default()));
        words.filter(|(_, word)| !word.is_empty()).find_map(|(place, word)| match is_open(place) {
            true => self.open(word).or_else(|| if is_deep { self.holds(word) } else { None }),
            false => self.said(word),
        })
    }

    /// Why a rule of git with an open word does not cover this: what git may show was looked up in the repository around the
    /// workspace, and in no other.
    fn git(&self, tokens: &[Token], argv: &[String]) -> Option<String> {
        let is_git = argv.first().is_some_and(|name| name == "git" || name.ends_with("/git"));
        let is_open = tokens.iter().any(|token| matches!(token, Token::Any { .. }));
        if !is_git || !is_open {
            return None;
        }
        let leads = ["-C", "--git-dir", "--work-tree", "--namespace"];
        let is_led = argv.iter().skip(1).any(|word| leads.iter().any(|lead| word.starts_with(lead)));
        let mut touches = self.touches.iter();
        let is_known = touches.any(|touch| matches!(touch.named, Named::Repository | Named::Tracked(_)));
        match (is_led, is_known) {
            (true, _) => Some("git is led to another repository".to_string()),
            (false, false) => Some("git would find no ordinary repository in the workspace".to_string()),
            (false, true) => None,
        }
    }

    /// Why a rule with open words does not cover a command beside another that may change what they name.
    pub fn moved(tokens: &[Token], argv: &[String]) -> Option<String> {
        let said = tokens.iter().position(|token| *token == Token::REST).unwrap_or(tokens.len());
        let is_open = |place: usize| matches!(tokens.get(place.min(said)), Some(Token::Any { .. }));
        let word = argv.iter().enumerate().skip(1).find(|(place, word)| is_open(*place) && !word.starts_with('-'))?.1;
        Some(format!("{word} is a word that it leaves open, and another command of the line may change what it names"))
    }

    /// As `fault`, of a word that the rule leaves open. All that was found in it counts.
    fn open(&self, word: &str) -> Option<String> {
        if !self.touches.iter().any(|touch| touch.word == word) {
            return Some(format!("{word} was not looked up"));
        }
        self.touches.iter().find_map(|touch| {
            // It is found out about git, not about one of its words.
            if let Named::Tracked(why) = &touch.named {
                return Some(format!("{word} may show contents of the repository, and {why}"));
            }
            let why =
                special(&touch.named).or(touch.runs_later.then_some("names what other programs run by themselves"));
            why.filter(|_| word.contains(&touch.word)).map(|why| format!("{word} {why}"))
        })
    }

    /// As `open`, for programs that show a folder down to its last file.
    fn holds(&self, word: &str) -> Option<String> {
        let is_such = |touch: &&&Touch| touch.word == word && matches!(touch.named, Named::Folder { secret: Some(_) });
        self.touches.iter().find(is_such).map(|_| format!("{word} is a folder with a sensitive name in it"))
    }

    /// As `fault`, of a word that the rule says. What leads outside only by a link was not written so.
    fn said(&self, word: &str) -> Option<String> {
        let value = word.split_once('=').map(|(_, value)| value);
        self.touches.iter().find_map(|touch| {
            let is_it = touch.word == word || Some(touch.word.as_str()) == value;
            let why = special(&touch.named).filter(|_| is_it && !self.is_meant(&touch.word))?;
            Some(format!("{word} {why}, by a link or a folder that the rule does not say"))
        })
    }

    /// Whether a word is written as a place outside.
    fn is_meant(&self, word: &str) -> bool {
        match word.strip_prefix('/') {
            Some(_) => !word.starts_with(self.workspace),
            None => word.starts_with("..") && !self.goes,
        }
    }
}

/// Why no rule covers a place of this kind.
fn special(named: &Named) -> Option<&'static str> {
    match named {
        Named::Missing | Named::File | Named::Folder { .. } | Named::Repository => None,
        Named::Outside => Some("leads outside the workspace"),
        Named::Sensitive(_) => Some("has a sensitive name"),
        Named::Refused => Some("is refused to every tool, or can't be told"),
        Named::Tracked(_) => Some("may show contents of the repository"),
    }
}
