//! What the words of a command name, where a standing rule that allows would cover it: places outside, sensitive names
//! and what other programs run are asked about each time (docs/SAFETY.md §6.1). A word that the rule says itself may
//! lead outside where it is written so: the operator wrote that very place. It judges facts and looks nothing up.

use std::path::Component;
use std::path::Path;

use crate::domain::deep;
use crate::domain::line::Line;
use crate::domain::line::Named;
use crate::domain::line::Touch;
use crate::domain::rule::Any;
use crate::domain::rule::Token;
use crate::domain::tool::Facts;

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
        // Each command has it; what comes behind the last word that was looked up has not.
        if !self.is_known(".") {
            return Some("what its words name was not looked up, there are too many".to_string());
        }
        let is_deep = argv.first().is_some_and(|name| deep::is_deep(name));
        let words = argv.iter().enumerate().skip(1);
        let fault = words.filter(|(_, word)| !word.is_empty()).find_map(|(place, word)| match is_open(place) {
            true => self.open(word).or_else(|| if is_deep { self.holds(word) } else { None }),
            false => self.said(word),
        });
        let has_open = tokens.iter().any(|token| matches!(token, Token::Any { .. }));
        fault.or_else(|| {
            let is_here = has_open && deep::searches_here(argv) && !self.goes_elsewhere(argv, &is_open);
            if is_here { self.holds(".") } else { None }
        })
    }

    /// Whether a word of a program that searches the folder where it runs names another place for sure: one that the rule
    /// says, or the last one where no option is left open. Neither is the first that is no option: that is what is searched
    /// for, and may be called like a file. Nor is it the only open one behind an option, which may have the other as a value.
    fn goes_elsewhere(&self, argv: &[String], is_open: &dyn Fn(usize) -> bool) -> bool {
        let is_there = |word: &String| {
            let mut found = self.touches.iter().filter(|touch| touch.word == *word && *word != ".");
            found.any(|touch| touch.named != Named::Missing)
        };
        let (options, operands): (Vec<_>, Vec<_>) =
            argv.iter().enumerate().skip(1).partition(|(_, word)| word.starts_with('-'));
        let places = operands.get(1..).unwrap_or_default();
        let has_open_option = options.iter().any(|(place, _)| is_open(*place));
        let is_first_sure = operands.first().is_some_and(|(place, _)| *place == 1 || is_open(*place));
        let is_last_sure = is_first_sure && !has_open_option;
        places.iter().any(|(place, word)| !is_open(*place) && is_there(word))
            || (is_last_sure && places.last().is_some_and(|(_, word)| is_there(word)))
    }

    /// Whether a word was looked up.
    fn is_known(&self, word: &str) -> bool {
        self.touches.iter().any(|touch| touch.word == word)
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
        if is_led {
            return Some("git is led to another repository".to_string());
        }
        let mut why = "git would find no ordinary repository in the workspace";
        for touch in &self.touches {
            match &touch.named {
                Named::Repository | Named::Tracked(_) => return None,
                // Alone, it may lead elsewhere.
                Named::Obeys(obeyed) => why = obeyed,
                Named::Missing | Named::File | Named::Folder { .. } => {}
                Named::Outside | Named::Sensitive(_) | Named::Refused => {}
            }
        }
        Some(why.to_string())
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
        if !self.is_known(word) {
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
        let found = self.touches.iter().filter(|touch| touch.word == word);
        let mut secret = found.filter_map(|touch| match &touch.named {
            Named::Folder { secret } => secret.as_ref(),
            Named::Missing | Named::File | Named::Repository | Named::Tracked(_) | Named::Obeys(_) => None,
            Named::Outside | Named::Sensitive(_) | Named::Refused => None,
        });
        let shown = if word == "." { "the folder where it runs" } else { word };
        secret.next().map(|why| format!("{shown} is read as a whole, and {why}"))
    }

    /// As `fault`, of a word that the rule says. What leads outside only by a link was not written so.
    fn said(&self, word: &str) -> Option<String> {
        if !self.is_known(word) {
            return Some(format!("{word} was not looked up"));
        }
        let value = word.split_once('=').map(|(_, value)| value);
        self.touches.iter().find_map(|touch| {
            let is_it = touch.word == word || Some(touch.word.as_str()) == value;
            let why = special(&touch.named).filter(|_| is_it && !self.is_meant(&touch.word))?;
            Some(format!("{word} {why}, by a link or a folder that the rule does not say"))
        })
    }

    /// Whether a word is written as a place outside, and leads there with no link on the way back.
    fn is_meant(&self, word: &str) -> bool {
        if self.goes && !word.starts_with('/') {
            return false;
        }
        let mut path = Path::new(self.workspace).to_path_buf();
        let mut has_name = false;
        for part in Path::new(word).components() {
            match part {
                // Behind a name that may be a link it leads nobody knows where.
                Component::ParentDir if has_name => return false,
                Component::ParentDir => _ = path.pop(),
                Component::Normal(name) => {
                    has_name = true;
                    path.push(name);
                }
                Component::RootDir => path = Path::new("/").to_path_buf(),
                Component::CurDir | Component::Prefix(_) => {}
            }
        }
        !path.starts_with(self.workspace)
    }
}

/// Why no rule covers a place of this kind.
fn special(named: &Named) -> Option<&'static str> {
    match named {
        Named::Missing | Named::File | Named::Folder { .. } | Named::Repository => None,
        // It is found out about git, and not about one of its words: what git obeys, whoever makes the rule takes with it.
        Named::Obeys(_) => None,
        Named::Outside => Some("leads outside the workspace"),
        Named::Sensitive(_) => Some("has a sensitive name"),
        Named::Refused => Some("is refused to every tool, or can't be told"),
        Named::Tracked(_) => Some("may show contents of the repository"),
    }
}
