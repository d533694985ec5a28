//! Standing rules of the operator: what they say, of which calls, and what one said of a call. Nouns only; what a rule
//! covers is judged in `policy/rules.rs`, and where rules are kept is `store/rules.rs`.

use std::fmt;

use serde::Deserialize;
use serde::Serialize;

use crate::domain::text::short_hash;
use crate::domain::time::Timestamp;

/// How a standing rule is named where it decided: the word, then its id.
const STANDING: &str = "standing rule ";
/// Letters of the hash in an id: few enough to type, enough to tell the rules of one person apart.
const ID_LETTERS: usize = 8;

const ONE_MEANS: &str = "{any:one}: any one word, which in a rule that allows is no option";
const REST_MEANS: &str = "{any:rest}: all words to the end, or none";
const FOLDER_MEANS: &str = "in FOLDER: in all runs in that folder, as `here` makes it";
const EVERYWHERE_MEANS: &str = "everywhere: in all runs in every folder";

/// A standing rule of the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its name.
    pub id: String,
    /// What it says.
    pub draft: RuleDraft,
    /// When it was made, where that was written down.
    pub made_at: Option<Timestamp>,
    /// Who made it; possibly empty.
    pub author: String,
    /// From when on it holds no more.
    pub expires_at: Option<Timestamp>,
    /// The operator's own words about it; possibly empty.
    pub note: String,
}

/// What a rule says, before it is made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleDraft {
    /// What becomes of the calls that it covers.
    pub effect: RuleEffect,
    /// Which calls.
    pub what: What,
    /// The only workspace in which it holds, as its canonical path; nothing for everywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Whether it covers a line that asks for the network, too. Only of a rule that allows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub network: bool,
    /// The box that a line which it allows must run in.
    #[serde(default)]
    pub profile: Profile,
}

impl RuleDraft {
    /// How far what it allows reaches, in a few words: its box, and the network.
    pub fn bounds(&self) -> String {
        let network = if self.network { ", with the network" } else { "" };
        match self.what {
            What::Argv(_) => format!("{}{network}", self.profile.phrase()),
            What::Path(_) | What::Host(_) => "in tiller itself".to_string(),
        }
    }

    /// What the words mean with which it is told, a sentence each: only of those that are in it.
    pub fn meanings(&self) -> Vec<&'static str> {
        let mut all = Vec::new();
        if let What::Argv(tokens) = &self.what {
            let opens = [(Token::ONE, ONE_MEANS), (Token::REST, REST_MEANS)];
            all.extend(opens.into_iter().filter(|(token, _)| tokens.contains(token)).map(|(_, meaning)| meaning));
            all.extend((self.effect == RuleEffect::Allow).then(|| self.profile.meaning()));
        }
        all.push(if self.workspace.is_some() { FOLDER_MEANS } else { EVERYWHERE_MEANS });
        all
    }

    /// The id of the rule that says this. Two rules that say the same have the same one.
    pub fn id(&self) -> String {
        let said = format!("{:?}\0{:?}\0{}\0{:?}", self.effect, self.what, self.network, self.profile);
        let hash = short_hash(format!("{said}\0{}", self.workspace.as_deref().unwrap_or_default()).as_bytes());
        format!("r{}", hash.get(..ID_LETTERS).unwrap_or(&hash))
    }
}

impl fmt::Display for RuleDraft {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.effect.word(), self.what)?;
        if self.network {
            out.write_str(", also with the network")?;
        }
        if self.effect == RuleEffect::Allow && matches!(self.what, What::Argv(_)) {
            write!(out, ", {}", self.profile.phrase())?;
        }
        match &self.workspace {
            Some(workspace) => write!(out, ", in {workspace}"),
            None => out.write_str(", everywhere"),
        }
    }
}

/// What becomes of a call that a rule covers; the later one outranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleEffect {
    /// It happens unasked.
    Allow,
    /// The operator is asked.
    Ask,
    /// It is denied.
    Deny,
}

impl RuleEffect {
    /// After "it".
    pub fn verb(self) -> &'static str {
        match self {
            RuleEffect::Allow => "allows",
            RuleEffect::Ask => "asks about",
            RuleEffect::Deny => "denies",
        }
    }

    /// As one word.
    pub fn word(self) -> &'static str {
        match self {
            RuleEffect::Allow => "allow",
            RuleEffect::Ask => "ask",
            RuleEffect::Deny => "deny",
        }
    }
}

/// Which calls a rule is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// A command of a shell line, word by word.
    Argv(Vec<Token>),
    /// Files of the workspace, for the tools that read and change files: a path below it, in which `*` stands for any
    /// part of a name and `**` for any folders.
    Path(String),
    /// A host, exactly, for calls that fetch pages.
    Host(String),
}

impl fmt::Display for What {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            What::Argv(tokens) => {
                let words: Vec<String> = tokens.iter().map(Token::to_string).collect();
                out.write_str(&words.join(" "))
            }
            What::Path(glob) => write!(out, "the files {glob}"),
            What::Host(host) => write!(out, "the host {host}"),
        }
    }
}

/// One word of a command in a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum Token {
    /// This word, exactly: no sign in it means anything else.
    Word(String),
    /// Any.
    Any {
        /// How many.
        any: Any,
    },
}

impl Token {
    /// Any one word.
    pub const ONE: Token = Token::Any { any: Any::One };
    /// All words from here on.
    pub const REST: Token = Token::Any { any: Any::Rest };
}

impl fmt::Display for Token {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Any { any: Any::One } => out.write_str("{any:one}"),
            Token::Any { any: Any::Rest } => out.write_str("{any:rest}"),
            Token::Word(word) => out.write_str(&shell_word(word)),
        }
    }
}

/// How many words a token stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Any {
    /// One. In a rule that allows never one that begins with a hyphen: an option is not an operand.
    One,
    /// None or more, to the end.
    Rest,
}

/// The box of a line that a rule allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// The whole box, in which it can write to the workspace; where there is none, the operator is asked.
    #[default]
    Rw,
    /// None: it may run with all rights of the operator.
    None,
}

impl Profile {
    /// In a few words.
    pub fn phrase(self) -> &'static str {
        match self {
            Profile::Rw => "in the box",
            Profile::None => "also without a box",
        }
    }

    /// What its phrase means, in a sentence.
    pub fn meaning(self) -> &'static str {
        match self {
            Profile::Rw => "in the box: only where a full box holds the command; elsewhere you are asked",
            Profile::None => "also without a box: where no full box holds it, too, with all your rights",
        }
    }
}

/// What the rules of a moment said of a call. It is found out with the facts and is no part of the binding: a rule that
/// came or went changes what is judged, not what would be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleHit {
    /// The rule; where a line of several commands is allowed, one for each of them, with commas between.
    pub id: String,
    /// What it says.
    pub effect: RuleEffect,
    /// What it covers, in words.
    pub words: String,
    /// Set where no rule could be read: nobody knows then what would have been denied.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_lost: bool,
}

impl RuleHit {
    /// The rules can't be read, for this reason.
    pub fn lost(why: &str) -> RuleHit {
        RuleHit { id: String::new(), effect: RuleEffect::Ask, words: why.to_string(), is_lost: true }
    }

    /// How the rule is named in records.
    pub fn name(&self) -> String {
        format!("{STANDING}{}", self.id)
    }
}

/// Whether a rule of this name is a standing rule of the operator, and not one that is built in. What one allows runs
/// from the words that were read, without a shell.
pub fn is_standing(name: &str) -> bool {
    name.starts_with(STANDING)
}

/// The id in the name of a standing rule.
pub fn standing_id(name: &str) -> &str {
    name.strip_prefix(STANDING).unwrap_or(name)
}

/// A word as a shell would have to be told it.
fn shell_word(word: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "_./:=,+@%^-".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_string();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_told_so_that_a_literal_sign_is_no_pattern() {
        let word = |text: &str| Token::Word(text.to_string());
        let check = |tokens: Vec<Token>, expected: &str| assert_eq!(What::Argv(tokens).to_string(), expected);
        check(vec![word("cargo"), word("test"), word("*")], "cargo test '*'");
        check(vec![word("rm"), Token::ONE, Token::REST], "rm {any:one} {any:rest}");
        check(vec![word("echo"), word("{any:one}"), word("it's"), word("")], r"echo '{any:one}' 'it'\''s' ''");
    }
}
