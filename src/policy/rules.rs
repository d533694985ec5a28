//! Standing rules of the operator: which of them can be meant, and what they say of a call (docs/ENGINE.md §9.5).
//!
//! A command is compared word by word as it was read, never as text: quoting is no part of a word, a longer line is
//! another line, and no sign in a word stands for others. Whatever makes a line more than its words is not covered by
//! a rule that allows; a rule that asks or denies is looked for in every command that can be seen.

use std::path::Component;
use std::path::Path;
use std::path::PathBuf;

use serde_json::Value;

use crate::domain::approval::By;
use crate::domain::line::CD;
use crate::domain::line::Line;
use crate::domain::line::Plain;
use crate::domain::rule::Any;
use crate::domain::rule::Profile;
use crate::domain::rule::Rule;
use crate::domain::rule::RuleDraft;
use crate::domain::rule::RuleEffect;
use crate::domain::rule::RuleHit;
use crate::domain::rule::Token;
use crate::domain::rule::What;
use crate::domain::rule::is_standing;
use crate::domain::sandbox::Level;
use crate::domain::time::Timestamp;
use crate::domain::tool::EffectClass;
use crate::domain::tool::Facts;
use crate::domain::tool::ToolCall;
use crate::policy::naming::Words;
use crate::policy::permission;
use crate::policy::runners;
use crate::policy::table;

/// Longest query of an address that a rule for a host allows, in bytes: more could carry away what was read.
const QUERY_MAX_BYTES: u64 = 256;

/// The argument of every file tool that names its file.
const PATH: &str = "path";
/// What a call asks for, as far as rules are about it.
pub struct Asked<'a> {
    facts: &'a Facts,
    line: Option<&'a Line>,
    /// Every command that is seen in it, with those that a command is given to run: the program, and its words.
    runs: Vec<(&'a String, &'a [String])>,
    workspace: &'a str,
    /// Its file, below the workspace: where it leads, links followed.
    path: Option<String>,
    /// The same by the name that the call has for it.
    written: Option<String>,
    /// The host that it sends a request to.
    host: Option<&'a str>,
    /// Whether that request is too short to carry away what was read.
    says_little: bool,
    network: bool,
    /// Whether it runs in a full box.
    is_boxed: bool,
}

/// The rules that allow a line or another call.
#[derive(Default)]
struct Found<'r> {
    rules: Vec<&'r Rule>,
    /// Whether commands of it only read, for which no rule is needed.
    has_reads: bool,
}

/// What the rules say of a call in a workspace, first of all those that deny, then those that ask. Of several it is the
/// one that says most exactly what it is about. Nothing where none covers it.
///
/// With it, why those that allow do not cover the call, where one covers a part of it, or nearly does.
pub fn said(
    rules: &[Rule],
    call: &ToolCall,
    facts: &Facts,
    workspace: &str,
    now: Timestamp,
) -> (Option<RuleHit>, Option<String>) {
    let asked = Asked::of(call, facts, workspace);
    let mut in_force: Vec<&Rule> = rules.iter().filter(|rule| rule.holds(workspace, now)).collect();
    in_force.sort_by_key(|rule| std::cmp::Reverse(exactness(&rule.draft)));
    let against = |effect: RuleEffect| in_force.iter().find(|rule| rule.draft.effect == effect && asked.is_met(rule));
    let told = |found: &[&Rule], more: &str| {
        let ids: Vec<&str> = found.iter().map(|rule| rule.id.as_str()).collect();
        let words: Vec<String> = found.iter().map(|rule| rule.draft.what.to_string()).collect();
        let effect = found.first()?.draft.effect;
        Some(RuleHit { id: ids.join(", "), effect, words: format!("{}{more}", words.join("; ")), is_lost: false })
    };
    if let Some(rule) = against(RuleEffect::Deny).or_else(|| against(RuleEffect::Ask)) {
        return (told(&[*rule], ""), None);
    }
    match asked.allowed_by(&in_force) {
        Ok(found) => (told(&found.rules, if found.has_reads { ", and what only reads" } else { "" }), None),
        Err(why) => (None, why),
    }
}

/// What a rule about a command is about and no more, where nothing may follow its words; and of a rule that asks or
/// denies the line that makes one about all that begins so.
pub fn only(draft: &RuleDraft) -> Option<String> {
    let What::Argv(tokens) = &draft.what else { return None };
    if tokens.last() == Some(&Token::REST) {
        return None;
    }
    let (what, word) = (&draft.what, draft.effect.word());
    let only = format!("it {} only `{what}`, with nothing after it", draft.effect.verb());
    let place = if draft.workspace.is_none() { " --everywhere" } else { "" };
    Some(match draft.effect {
        RuleEffect::Allow => only,
        RuleEffect::Ask | RuleEffect::Deny => {
            format!("{only}; to {word} all that begins so: tiller rules add {word}{place} -- {what} '{}'", Token::REST)
        }
    })
}

/// The rule that would be about a call if words might follow its own, and is not: of several one that denies, then one
/// that asks, then the one that says most.
pub fn nearest<'r>(
    rules: &'r [Rule],
    call: &ToolCall,
    facts: &Facts,
    workspace: &str,
    now: Timestamp,
) -> Option<&'r Rule> {
    let asked = Asked::of(call, facts, workspace);
    let is_near = |rule: &&Rule| {
        let What::Argv(tokens) = &rule.draft.what else { return false };
        let longer = What::Argv(tokens.iter().cloned().chain([Token::REST]).collect());
        let longer = Rule { draft: RuleDraft { what: longer, ..rule.draft.clone() }, ..(*rule).clone() };
        rule.holds(workspace, now) && !asked.is_met(rule) && asked.is_met(&longer)
    };
    rules.iter().filter(is_near).max_by_key(|rule| (rule.draft.effect, exactness(&rule.draft)))
}

/// Why leave that was given does not hold by the rules of now, if it does not: a rule that denies outranks everybody, a
/// rule that asks outranks other rules and modes, and what a rule allowed needs that rule.
pub fn overruled(call: &ToolCall, now: Option<&RuleHit>) -> Option<String> {
    let against = |hit: &RuleHit| format!("a standing rule says {} now: {} ({})", hit.effect.word(), hit.words, hit.id);
    let denied = now.filter(|hit| hit.effect == RuleEffect::Deny);
    let asks = now.filter(|hit| hit.effect == RuleEffect::Ask);
    match &call.allowed {
        Some(By::Operator(_)) | None => denied.map(against),
        Some(By::Rule(name)) if is_standing(name) => {
            let holds = now.is_some_and(|hit| hit.effect == RuleEffect::Allow && hit.name() == *name);
            (!holds).then(|| denied.or(asks).map_or_else(|| format!("{name}, which allowed it, is gone"), against))
        }
        Some(By::Rule(name)) if permission::is_grant(name) => denied.or(asks.filter(|hit| hit.is_lost)).map(against),
        Some(By::Rule(_)) => denied.or(asks).map(against),
    }
}

/// Why what a rule says can't be meant, if it can't. A file that has such a rule is not used at all.
pub fn malformed(draft: &RuleDraft) -> Option<String> {
    if draft.workspace.as_deref().is_some_and(is_no_plain_path) {
        return Some("a workspace is a whole path from / on, without a / at its end and without . and ..".to_string());
    }
    let fault = match &draft.what {
        What::Argv(tokens) => malformed_argv(tokens)?,
        What::Path(glob) if glob.is_empty() || glob.starts_with('/') => "a path is below the workspace, as src/**",
        What::Path(glob) if glob.split('/').any(|part| matches!(part, "" | "." | "..")) => {
            "a path has no empty part, no . and no .."
        }
        What::Host(host) if !is_host(host) => {
            "a host is a whole name in small letters, as docs.rs; a rule covers short https addresses without a port"
        }
        What::Path(_) | What::Host(_) => return network_without_line(draft),
    };
    Some(fault.to_string())
}

fn malformed_argv(tokens: &[Token]) -> Option<&'static str> {
    let rests = tokens.iter().position(|token| *token == Token::REST);
    match (tokens.first(), rests) {
        (None, _) => Some("a command has at least one word"),
        (Some(Token::Any { .. }), _) => Some("the first word, the program, is always said"),
        (Some(Token::Word(program)), _) if program.is_empty() => Some("the first word, the program, is not empty"),
        (Some(Token::Word(program)), _) if program.contains(char::is_whitespace) => Some(
            "no program has a name with spaces: write each word of the command on its own, without quotes around all",
        ),
        (Some(Token::Word(_)), Some(place)) if place + 1 != tokens.len() => {
            Some("{any:rest} is all to the end, so nothing can follow it")
        }
        (Some(Token::Word(_)), _) => None,
    }
}

fn network_without_line(draft: &RuleDraft) -> Option<String> {
    draft.network.then(|| "network is about commands only".to_string())
}

/// Why a rule that allows is none that can count, if it is so: it is too open, or there is no program to run. Nothing else
/// decides it: it is asked when such a rule is offered, when one is made in any way, and when one is read, which is then
/// passed over with a notice.
pub fn void(draft: &RuleDraft) -> Option<String> {
    no_program(draft).or_else(|| too_open(draft))
}

/// Why a rule that allows could never be obeyed, if so: what one allows is run without a shell.
fn no_program(draft: &RuleDraft) -> Option<String> {
    let What::Argv(tokens) = &draft.what else { return None };
    let (Some(Token::Word(name)), RuleEffect::Allow) = (tokens.first(), draft.effect) else { return None };
    let is_word = runners::is_of_shell(name);
    is_word.then(|| format!("{name} is a word of the shell and no program: what a rule allows is run without a shell"))
}

/// Why a rule that allows is too open, if it is: it would allow whatever somebody has such a program run (R6).
fn too_open(draft: &RuleDraft) -> Option<String> {
    let What::Argv(tokens) = &draft.what else { return None };
    let (Some(Token::Word(program)), RuleEffect::Allow) = (tokens.first(), draft.effect) else { return None };
    let kind = runners::kind(program)?;
    let open = tokens.iter().position(|token| matches!(token, Token::Any { .. }))?;
    // Before what a program is to do may stand options, `make -C sub`, `cargo +nightly`: then what it does is open.
    let is_said = matches!(tokens.get(1), Some(Token::Word(word)) if !word.starts_with(['-', '+']));
    let what = match open {
        _ if kind.takes_programs() => "with any word open",
        1 => "with its first word open",
        _ if tokens.last() == Some(&Token::REST) => "with {any:rest}",
        _ if !is_said => "with a word open behind an option",
        _ => return None,
    };
    Some(format!("{program} is {}, so a rule that allows it {what} allows any program: say each word", kind.phrase()))
}

/// Whether a command of these words is what the rule is about.
pub fn covers(effect: RuleEffect, tokens: &[Token], argv: &[String]) -> bool {
    argv.split_first().is_some_and(|(program, words)| covers_words(effect, tokens, program, words))
}

fn covers_words(effect: RuleEffect, tokens: &[Token], program: &String, words: &[String]) -> bool {
    let mut words = std::iter::once(program).chain(words);
    for (place, token) in tokens.iter().enumerate() {
        let is_same = match (token, words.next()) {
            (Token::Any { any: Any::Rest }, _) => return true,
            (Token::Word(said), Some(word)) => said == word || (place == 0 && is_program(effect, said, word)),
            (Token::Any { any: Any::One }, Some(word)) => effect != RuleEffect::Allow || is_operand(tokens, word),
            (Token::Word(_) | Token::Any { any: Any::One }, None) => false,
        };
        if !is_same {
            return false;
        }
    }
    words.next().is_none()
}

/// A command, and those that it is given to run. What git is to do is seen behind the options of git itself, too.
fn runs(argv: &[String]) -> impl Iterator<Item = (&String, &[String])> {
    runners::runs(argv).filter_map(|place| argv.get(place..)?.split_first()).flat_map(|(program, words)| {
        let is_led = is_git(program) && words.first().is_some_and(|word| word.starts_with('-'));
        let behind = runners::git_command(words).filter(|_| is_led).map(|words| (program, words));
        std::iter::once((program, words)).chain(behind)
    })
}

fn is_git(program: &str) -> bool {
    program.rsplit('/').next() == Some("git")
}

/// Whether a word that a rule allows is no option, and no setting (`SHELL=./x`) of a program that may run what it says.
fn is_operand(tokens: &[Token], word: &str) -> bool {
    let is_runner = match tokens.first() {
        Some(Token::Word(program)) => runners::kind(program).is_some(),
        Some(Token::Any { .. }) | None => false,
    };
    let is_setting = is_runner && word.contains('=');
    !word.starts_with('-') && !is_setting
}

/// A rule against a program is also against it by its path.
fn is_program(effect: RuleEffect, said: &str, word: &str) -> bool {
    effect != RuleEffect::Allow && !said.contains('/') && word.rsplit('/').next() == Some(said)
}

/// How exactly a rule says what it is about: words that are said, no open end, one workspace.
fn exactness(draft: &RuleDraft) -> (usize, bool, usize, bool) {
    let (said, closed, length) = match &draft.what {
        What::Argv(tokens) => {
            let said = tokens.iter().filter(|token| matches!(token, Token::Word(_))).count();
            (said, tokens.last() != Some(&Token::REST), tokens.len())
        }
        What::Path(glob) => {
            (glob.split('/').filter(|part| !part.contains('*')).count(), !glob.contains("**"), glob.len())
        }
        What::Host(host) => (1, true, host.len()),
    };
    (said, closed, length, draft.workspace.is_some())
}

impl Rule {
    /// Whether it holds in this workspace at this moment.
    fn holds(&self, workspace: &str, now: Timestamp) -> bool {
        let is_here = self.draft.workspace.as_deref().is_none_or(|only| only == workspace);
        is_here && self.expires_at.is_none_or(|end| now < end)
    }
}

impl<'a> Asked<'a> {
    /// What this call asks for.
    pub fn of(call: &ToolCall, facts: &'a Facts, workspace: &'a str) -> Asked<'a> {
        Asked {
            facts,
            workspace,
            line: facts.line.as_ref(),
            runs: facts.line.iter().flat_map(|line| &line.commands).flat_map(|argv| runs(argv)).collect(),
            path: file(call, facts, workspace),
            written: written(call, workspace),
            host: facts.host.as_deref(),
            says_little: facts.query_bytes.is_some_and(|bytes| bytes <= QUERY_MAX_BYTES),
            network: facts.network,
            is_boxed: facts.level == Some(Level::Full),
        }
    }

    /// Whether a rule that asks or denies is about the call: any command of a line, also of one that was read only in
    /// part, and what a command that runs others is given to run.
    fn is_met(&self, rule: &Rule) -> bool {
        match &rule.draft.what {
            What::Argv(tokens) => {
                self.runs.iter().any(|(program, words)| covers_words(rule.draft.effect, tokens, program, words))
            }
            // Also without https, or at another port.
            What::Host(host) => self.host.is_some_and(|asked| asked.split(':').next() == Some(host)),
            What::Path(glob) => [&self.path, &self.written].into_iter().flatten().any(|path| matches_path(glob, path)),
        }
    }

    /// Its file below the workspace.
    pub fn path(&self) -> Option<&str> {
        self.path.as_deref()
    }

    /// Whether its request is too short to carry away what was read.
    pub fn says_little(&self) -> bool {
        self.says_little
    }

    /// The rules that allow it: for a line one for each of its commands that does more than read. Errors with why there
    /// are none, where one covers a part of it, or nearly does.
    fn allowed_by<'r>(&self, rules: &[&'r Rule]) -> Result<Found<'r>, Option<String>> {
        let allows: Vec<&'r Rule> =
            rules.iter().copied().filter(|rule| rule.draft.effect == RuleEffect::Allow).collect();
        let Some(line) = self.line else {
            let may = |rule: &&Rule| (self.host.is_none() || self.says_little) && self.is_named(&rule.draft.what);
            let rule = allows.into_iter().find(may).ok_or(None)?;
            return Ok(Found { rules: vec![rule], has_reads: false });
        };
        let plain = line.plain.as_ref().map_err(|_| None)?;
        let mut found = Found::default();
        let mut missed = None;
        for (command, segment) in plain.segments.iter().enumerate() {
            match self.rule_for(&allows, line, command, &segment.argv) {
                Ok(rule) if found.rules.iter().all(|before| before.id != rule.id) => found.rules.push(rule),
                Ok(_) => {}
                Err(_) if self.only_reads(plain, command) => found.has_reads = true,
                Err(Some(why)) => return Err(Some(why)),
                Err(None) => missed = missed.or(Some(&segment.argv)),
            }
        }
        match (found.rules.first(), missed) {
            (Some(_), None) => Ok(found),
            (Some(rule), Some(argv)) => {
                Err(Some(format!("a standing rule covers {}; nothing covers {}", rule.draft.what, argv.join(" "))))
            }
            (None, _) => Err(None),
        }
    }

    /// The rule that allows a command of a line. Errors with why the one of its words does not, if there is one.
    fn rule_for<'r>(
        &self,
        allows: &[&'r Rule],
        line: &Line,
        command: usize,
        argv: &[String],
    ) -> Result<&'r Rule, Option<String>> {
        let mut why = None;
        for rule in allows {
            let What::Argv(tokens) = &rule.draft.what else { continue };
            if void(&rule.draft).is_some() || !covers(RuleEffect::Allow, tokens, argv) {
                continue;
            }
            let fault = if !self.is_boxed && rule.draft.profile != Profile::None {
                Some("it is for a full box, and there is none".to_string())
            } else if self.network && !rule.draft.network {
                Some("it does not cover the network".to_string())
            } else {
                let is_alone = line.plain.as_ref().is_ok_and(|plain| self.is_alone(plain, command));
                let words = Words::of(self.facts, line, command, self.workspace);
                words.fault(tokens, argv).or_else(|| if is_alone { None } else { Words::moved(tokens, argv) })
            };
            match fault {
                None => return Ok(rule),
                Some(fault) => {
                    why = why.or(Some(format!("the standing rule for {} does not cover it: {fault}", rule.draft.what)));
                }
            }
        }
        Err(why)
    }

    /// Whether all other commands of a line only read, or go to the folder where it runs: `cd` comes first and changes
    /// nothing.
    fn is_alone(&self, plain: &Plain, command: usize) -> bool {
        let goes = |one: usize| {
            plain.segments.get(one).and_then(|one| one.argv.first()).is_some_and(|name| one == 0 && name == CD)
        };
        let mut others = (0..plain.segments.len()).filter(|other| *other != command);
        goes(command) || others.all(|other| goes(other) || self.only_reads(plain, other))
    }

    /// Whether a command only reads, beside others that rules allow. That counts in a full box only.
    fn only_reads(&self, plain: &Plain, command: usize) -> bool {
        !self.facts.unconfined && self.is_boxed && table::reads_beside(plain, command, &self.facts.touches).is_ok()
    }

    /// Whether a rule that allows names its file, by both its names, or its host.
    fn is_named(&self, what: &What) -> bool {
        match what {
            What::Argv(_) => false,
            What::Path(glob) => {
                let (Some(path), Some(written)) = (&self.path, &self.written) else { return false };
                matches_path(glob, path) && matches_path(glob, written)
            }
            What::Host(host) => self.host == Some(host),
        }
    }
}

/// Whether a call is about a file that it names.
fn has_file(call: &ToolCall) -> bool {
    match call.effect {
        EffectClass::Read | EffectClass::WriteFile => true,
        EffectClass::Control | EffectClass::Idempotent | EffectClass::External => false,
    }
}

/// The file that a call names below its workspace, as it is written: no link is followed.
fn written(call: &ToolCall, workspace: &str) -> Option<String> {
    let arguments = serde_json::from_str::<Value>(&call.arguments).ok().filter(|_| has_file(call))?;
    let whole = Path::new(workspace).join(arguments.get(PATH)?.as_str()?);
    let mut names = Vec::new();
    for part in whole.components() {
        match part {
            Component::ParentDir => _ = names.pop(),
            Component::Normal(name) => names.push(name),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    below(&Path::new("/").join(names.iter().collect::<PathBuf>()), workspace)
}

fn below(whole: &Path, workspace: &str) -> Option<String> {
    let below = whole.strip_prefix(workspace).ok()?;
    below.to_str().filter(|path| !path.is_empty()).map(str::to_string)
}

/// The file of a call below its workspace.
fn file(call: &ToolCall, facts: &Facts, workspace: &str) -> Option<String> {
    let bound = facts.binding.iter().filter(|_| has_file(call));
    below(Path::new(bound.filter_map(|bound| bound.strip_prefix("path=")).next()?), workspace)
}

/// Whether a folder is written in a way that no folder of a run is: then the rule would never hold.
fn is_no_plain_path(text: &str) -> bool {
    let Some(below) = text.strip_prefix('/') else { return true };
    !below.is_empty() && below.split('/').any(|part| matches!(part, "" | "." | ".."))
}

/// Whether a text is the name of a host that a rule can have.
pub fn is_host(text: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty() && part.bytes().all(|one| one.is_ascii_lowercase() || one.is_ascii_digit() || one == b'-')
    };
    let is_number = |part: &str| part.bytes().all(|one| one.is_ascii_digit());
    text.split('.').all(is_part) && !text.rsplit('.').next().is_some_and(is_number)
}

/// Whether a path is one of those that a pattern names.
fn matches_path(glob: &str, path: &str) -> bool {
    let parts: Vec<&str> = glob.split('/').collect();
    let names: Vec<&str> = path.split('/').collect();
    // Which beginnings of the path the parts up to here can stand for.
    let mut reached = vec![false; names.len() + 1];
    if let Some(start) = reached.first_mut() {
        *start = true;
    }
    for part in parts {
        let mut next = vec![false; reached.len()];
        for place in 0..reached.len() {
            let here = reached.get(place).copied().unwrap_or(false);
            let before = place.checked_sub(1);
            let was_next = part == "**" && before.and_then(|before| next.get(before)).copied().unwrap_or(false);
            let steps = part != "**"
                && before.is_some_and(|before| {
                    reached.get(before) == Some(&true) && names.get(before).is_some_and(|name| matches_name(part, name))
                });
            if let Some(slot) = next.get_mut(place) {
                *slot = (part == "**" && here) || was_next || steps;
            }
        }
        reached = next;
    }
    reached.last().copied().unwrap_or(false)
}

/// Whether a name is one of those that a part of a pattern stands for: `*` for any signs, also none.
fn matches_name(part: &str, name: &str) -> bool {
    let Some((head, rest)) = part.split_once('*') else { return part == name };
    let Some(mut left) = name.strip_prefix(head) else { return false };
    let mut pieces: Vec<&str> = rest.split('*').collect();
    let tail = pieces.pop().unwrap_or_default();
    for piece in pieces {
        match left.find(piece) {
            Some(place) => left = left.get(place + piece.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    left.len() >= tail.len() && left.ends_with(tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_compared_name_by_name() {
        let check =
            |glob: &str, path: &str, expected: bool| assert_eq!(matches_path(glob, path), expected, "{glob} {path}");
        check("src/a.rs", "src/a.rs", true);
        check("src/a.rs", "src/a.rs.bak", false);
        check("src/*.rs", "src/a.rs", true);
        check("src/*.rs", "src/b/a.rs", false);
        check("src/**", "src/b/a.rs", true);
        check("src/**", "srcs/a.rs", false);
        check("**/a.rs", "a.rs", true);
        check("**/t/*_x*.rs", "a/b/t/1_x2.rs", true);
        check("**/t/*_x*.rs", "a/b/t/c/1_x2.rs", false);
        check("a*a", "a", false);
        check("a*a", "aba", true);
    }
}
