//! The words about standing rules. It parses and does nothing; `src/rules.rs` acts.

use std::path::PathBuf;

use clap::Args;
use clap::Subcommand;

use crate::cli::Form;
use crate::cli::options::FormWords;
use crate::domain::rule::Profile;
use crate::domain::rule::RuleEffect;
use crate::domain::rule::Token;
use crate::domain::rule::What;
use crate::domain::time;
use crate::domain::time::Span;

/// What is asked about standing rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RulesAsk {
    /// List them.
    List(Form),
    /// Say what the gate says of a line, and by which rule.
    Why {
        /// The line; nothing reads it from standard input, byte for byte.
        line: Option<String>,
        /// The folder that it would run in; nothing for the current one.
        workspace: Option<PathBuf>,
        /// In which form.
        form: Form,
    },
    /// Make one.
    Add(Box<NewRule>),
    /// Take one away.
    Remove(String),
}

/// Why words can't be written as a line.
const NO_WORD: &str = "a word of a line has no NUL; nothing was judged";

/// A rule as it is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRule {
    /// What it says.
    pub effect: RuleEffect,
    /// Of which calls.
    pub what: What,
    /// Whether it holds everywhere, not only in this folder.
    pub everywhere: bool,
    /// Whether it covers lines with the network.
    pub network: bool,
    /// The box of what it allows.
    pub profile: Profile,
    /// How long it holds; nothing for always.
    pub lasts: Option<Span>,
    /// The operator's words about it.
    pub note: String,
}

/// What is said of `rules` below its words.
pub(crate) const RULES_HELP: &str = "\
Examples:
  tiller rules add allow -- cargo test
  tiller rules add allow --any-one -- rustfmt --check
  tiller rules add deny --everywhere -- rm {any:rest}
  tiller rules add allow --path 'docs/**'
  tiller rules why 'cargo test && rm x'
A rule is compared with a command word by word: quoting is no part of a word, and * is only itself. \
{any:one} stands for any one word, which in a rule that allows is no option, {any:rest} for all words to the end, or \
none. Without {any:rest} nothing may follow: `deny -- git push` leaves `git push origin` alone. Deny outranks ask, and \
ask outranks allow. A line of several commands is allowed where each is covered by a rule, or only reads. \
No rule allows redirections, variables or anything else that needs a shell.";

/// Options of ours that are taken for words of the command where they stand behind --, and what is meant.
const OURS: [(&str, Token); 2] = [("--any-one", Token::ONE), ("--any-rest", Token::REST)];

#[derive(Args)]
pub(crate) struct RulesWords {
    #[command(subcommand)]
    word: Option<RulesWord>,
}

#[derive(Subcommand)]
enum RulesWord {
    /// List all rules
    List {
        #[command(flatten)]
        form: FormWords,
    },
    /// Say whether a line for the shell would be allowed, asked about or denied here, and by what
    Why {
        /// The line, in quotes or word for word; without it, standard input, byte for byte
        line: Vec<String>,
        /// The folder that it would run in; this one without it
        #[arg(long, value_name = "DIR")]
        workspace: Option<PathBuf>,
        #[command(flatten)]
        form: FormWords,
    },
    /// Make a rule
    Add(AddWords),
    /// Take a rule away
    Remove {
        /// The beginning of its id, as `tiller rules list` shows it
        id: String,
    },
}

#[derive(Args)]
pub(crate) struct AddWords {
    /// allow, ask or deny
    #[arg(value_parser = effect)]
    effect: RuleEffect,
    /// The command, word by word, after --
    #[arg(last = true, value_name = "WORD")]
    argv: Vec<String>,
    /// One more word, whichever it is, but no option
    #[arg(long, conflicts_with = "any_rest")]
    any_one: bool,
    /// Any more words, or none
    #[arg(long)]
    any_rest: bool,
    /// Take {any:one} and {any:rest} as words like others
    #[arg(long)]
    literal: bool,
    /// Instead of a command: files of the workspace, as docs/**
    #[arg(long, value_name = "GLOB", conflicts_with_all = ["argv", "host"])]
    path: Option<String>,
    /// Instead of a command: a host that pages may be fetched from
    #[arg(long, value_name = "HOST", conflicts_with = "argv")]
    host: Option<String>,
    /// In all runs in this folder; so it is without more
    #[arg(long, conflicts_with = "everywhere")]
    here: bool,
    /// In all runs in every folder
    #[arg(long)]
    everywhere: bool,
    /// Allow it also where it asks for the network
    #[arg(long)]
    network: bool,
    /// Allow it also where there is no box: it has all your rights then
    #[arg(long)]
    unboxed: bool,
    /// How long it holds: 2h, 30m
    #[arg(long, value_name = "TIME", value_parser = span)]
    expires: Option<Span>,
    /// Words of yours about it
    #[arg(long, default_value = "", hide_default_value = true)]
    note: String,
}

impl RulesWords {
    /// Without a word they are listed.
    pub(crate) fn ask(self) -> Result<RulesAsk, String> {
        self.word.map_or(Ok(RulesAsk::List(Form::Text)), RulesWord::ask)
    }
}

impl RulesWord {
    fn ask(self) -> Result<RulesAsk, String> {
        Ok(match self {
            RulesWord::List { form } => RulesAsk::List(form.read()),
            RulesWord::Why { line, workspace, form } => {
                let line = match line.as_slice() {
                    [] => None,
                    [one] if one == "-" => None,
                    [one] => Some(one.clone()),
                    words => Some(shlex::try_join(words.iter().map(String::as_str)).map_err(|_| NO_WORD.to_string())?),
                };
                RulesAsk::Why { line, workspace, form: form.read() }
            }
            RulesWord::Add(words) => RulesAsk::Add(Box::new(words.rule()?)),
            RulesWord::Remove { id } => RulesAsk::Remove(id),
        })
    }
}

impl AddWords {
    fn rule(self) -> Result<NewRule, String> {
        let token = |word: String| match word.as_str() {
            "{any:one}" if !self.literal => Token::ONE,
            "{any:rest}" if !self.literal => Token::REST,
            _ => Token::Word(word),
        };
        let more = [(self.any_one, Token::ONE), (self.any_rest, Token::REST)];
        let what = match (self.path, self.host) {
            (Some(path), _) => What::Path(path),
            (None, Some(host)) => What::Host(host),
            (None, None) if self.argv.is_empty() => {
                return Err("no command was said; no rule was made; put its words after --".to_string());
            }
            (None, None) => {
                let ours = self.argv.iter().find_map(|word| OURS.iter().find(|(option, _)| option == word));
                if let Some((option, token)) = ours.filter(|_| !self.literal) {
                    let rest = self.argv.iter().filter(|word| word != option).cloned().map(Token::Word);
                    let meant = What::Argv(rest.collect());
                    return Err(format!(
                        "{option} behind -- would be a word of the command; no rule was made; write it before --, or \
                         `{token}` in its place: tiller rules add {} -- {meant} '{token}'; with --literal it is a word",
                        self.effect.word()
                    ));
                }
                let open = more.into_iter().filter(|(is_said, _)| *is_said).map(|(_, token)| token);
                What::Argv(self.argv.into_iter().map(token).chain(open).collect())
            }
        };
        Ok(NewRule {
            effect: self.effect,
            what,
            everywhere: self.everywhere && !self.here,
            network: self.network,
            profile: if self.unboxed { Profile::None } else { Profile::Rw },
            lasts: self.expires,
            note: self.note,
        })
    }
}

fn effect(text: &str) -> Result<RuleEffect, String> {
    match text {
        "allow" => Ok(RuleEffect::Allow),
        "ask" => Ok(RuleEffect::Ask),
        "deny" => Ok(RuleEffect::Deny),
        _ => Err("a rule says allow, ask or deny".to_string()),
    }
}

fn span(text: &str) -> Result<Span, String> {
    time::parse(text).filter(|span| *span > Span(0)).ok_or_else(|| "a time is written as 2h, 30m or 1h30m".to_string())
}
