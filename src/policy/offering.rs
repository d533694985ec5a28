//! Standing rules that are made of a call that waits: whether one can be, and what it would say. The same function is
//! asked to show a key, to make the rule, and by the machine when it is made.

use crate::domain::line::Named;
use crate::domain::line::Plain;
use crate::domain::message::Message;
use crate::domain::rule::Profile;
use crate::domain::rule::Rule;
use crate::domain::rule::RuleDraft;
use crate::domain::rule::RuleEffect;
use crate::domain::rule::Token;
use crate::domain::rule::What;
use crate::domain::run::Run;
use crate::domain::sandbox::Level;
use crate::domain::time::Timestamp;
use crate::domain::tool::Facts;
use crate::domain::tool::ToolCall;
use crate::policy::grave;
use crate::policy::permission;
use crate::policy::rules;
use crate::policy::rules::Asked;
use crate::policy::runners;
use crate::policy::table;

/// The rule that would allow this very call and no other: its exact words, in this workspace. With `open`, the last word
/// may be another. Errors with why there is none.
pub fn offer(run: &Run, call: &ToolCall, open: bool) -> Result<RuleDraft, String> {
    let facts = call.facts.as_ref().ok_or("it is not known yet what the call would touch")?;
    let draft = draft(call, facts, &run.terms.workspace, open)?;
    may_be_made(run, call, &draft)?;
    Ok(draft)
}

/// How far a rule reaches that is made of a decision, by the words that say it.
pub const REACH: &str = "here: in this and all later runs in this folder; everywhere: in all runs in every folder";
/// What an open rule is.
pub const OPEN: &str = "open: its last word may be any other that is no option";

/// The words by which one of these rules can be asked for, where it can be made: the exact one, and the open one.
pub fn words(rules: [Result<RuleDraft, String>; 2]) -> &'static str {
    match rules {
        [Ok(_), Ok(_)] => "here, everywhere, open here or open everywhere",
        [Err(_), Ok(_)] => "open here or open everywhere",
        [_, Err(_)] => "here or everywhere",
    }
}

/// Whether a rule that says this may be made of a call. Errors with why not.
pub fn may_be_made(run: &Run, call: &ToolCall, draft: &RuleDraft) -> Result<(), String> {
    let facts = call.facts.as_ref().ok_or("it is not known yet what the call would touch")?;
    if let Some(why) = permission::asked_each_time(run, call) {
        return Err(format!("such a call is asked about each time: {why}"));
    }
    fits(draft, call, facts, &run.terms.workspace)
}

/// As `offer`, by what was found out about the call alone.
pub fn draft(call: &ToolCall, facts: &Facts, workspace: &str, open: bool) -> Result<RuleDraft, String> {
    let asked = Asked::of(call, facts, workspace);
    let what = match (&facts.line, asked.path(), facts.host.as_deref()) {
        (Some(line), ..) => {
            let plain = line.plain.as_ref().map_err(|why| format!("no rule covers such a line: {why}"))?;
            let argv = the_one(plain, facts).ok_or("a rule covers one command, and these are several")?;
            let mut tokens: Vec<Token> = argv.iter().cloned().map(Token::Word).collect();
            if open {
                tokens.pop();
                tokens.push(Token::ONE);
            }
            What::Argv(tokens)
        }
        (None, Some(path), _) if !open && !path.contains('*') => What::Path(path.to_string()),
        (None, Some(_), _) => return Err("a rule for this file can only name it exactly".to_string()),
        (None, None, Some(host)) if asked.says_little() && rules::is_host(host) => What::Host(host.to_string()),
        (None, None, Some(_)) => {
            return Err("a rule for a host covers short https addresses without a port".to_string());
        }
        (None, None, None) => return Err("no rule can cover such a call".to_string()),
    };
    let profile = if facts.level == Some(Level::Full) { Profile::Rw } else { Profile::None };
    let workspace_of = Some(workspace.to_string());
    let network = facts.network;
    let draft = RuleDraft { effect: RuleEffect::Allow, what, workspace: workspace_of, network, profile };
    fits(&draft, call, facts, workspace)?;
    Ok(draft)
}

/// The command of a line that a rule is made of: the only one, or the only one that does more than read.
fn the_one<'a>(plain: &'a Plain, facts: &Facts) -> Option<&'a [String]> {
    if let [one] = plain.segments.as_slice() {
        return Some(&one.argv);
    }
    let is_more = |at: &usize| table::reads_beside(plain, *at, &facts.touches).is_err();
    let mut more = (0..plain.segments.len()).filter(is_more);
    match (more.next(), more.next()) {
        (Some(at), None) => plain.segments.get(at).map(|one| one.argv.as_slice()),
        _ => None,
    }
}

/// Whether the rule that a draft becomes would let this very call happen, and may be offered for it. Errors with why not.
pub fn fits(draft: &RuleDraft, call: &ToolCall, facts: &Facts, workspace: &str) -> Result<(), String> {
    if let Some(why) = rules::malformed(draft).or_else(|| rules::void(draft)) {
        return Err(why);
    }
    if let Some(why) = grave::grave(facts) {
        return Err(format!("such a line is asked about each time: {why}"));
    }
    if let Some(touch) = facts.touches.iter().find(|touch| matches!(touch.named, Named::Sensitive(_))) {
        return Err(format!("no rule allows what names {}, a sensitive name", touch.word));
    }
    if draft.effect != RuleEffect::Allow {
        return Err(
            "only a rule that allows can be made of a decision; `tiller rules add` makes the others".to_string()
        );
    }
    if let What::Argv(tokens) = &draft.what
        && let Some(Token::Word(program)) = tokens.first()
        && tokens.iter().any(|token| matches!(token, Token::Any { .. }))
    {
        if draft.network {
            return Err("with the network only its exact words can be allowed".to_string());
        }
        if runners::ruins(program) {
            return Err(format!("{program} removes, moves or replaces: only its exact words can be allowed"));
        }
    }
    let rule = Rule {
        id: draft.id(),
        draft: draft.clone(),
        made_at: None,
        author: String::new(),
        expires_at: None,
        note: String::new(),
    };
    let (hit, uncovered) = rules::said(std::slice::from_ref(&rule), call, facts, workspace, Timestamp(0));
    match (hit, uncovered) {
        (Some(_), _) => Ok(()),
        (None, Some(why)) => Err(why),
        (None, None) => Err("a rule of these words would not allow this very call".to_string()),
    }
}

/// How many of the calls of this run so far were such commands, by what their results are titled: what is offered is
/// shown with what it would have done.
pub fn met_before(run: &Run, what: &What) -> usize {
    let titles = run.transcript.all().filter_map(|entry| match &entry.message {
        Message::ToolResult { title, .. } => Some(title),
        Message::Assistant { .. } | Message::Operator { .. } | Message::Engine { .. } => None,
    });
    titles.filter(|title| is_titled(title, what)).count()
}

/// Whether a result with this title is of a call that a rule of this kind is about.
fn is_titled(title: &str, what: &What) -> bool {
    match what {
        What::Argv(tokens) => shlex::split(title).is_some_and(|argv| rules::covers(RuleEffect::Allow, tokens, &argv)),
        What::Path(path) => {
            title.strip_prefix(path.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        }
        What::Host(host) => {
            let address = title.strip_prefix("GET https://");
            address.is_some_and(|rest| rest.split(['/', '?', '#']).next() == Some(host))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_what_their_results_are_titled() {
        let host = What::Host("docs.rs".to_string());
        let check = |title: &str, expected: bool| assert_eq!(is_titled(title, &host), expected, "{title}");
        check("GET https://docs.rs/", true);
        check("GET https://docs.rs/a?b=c", true);
        check("GET https://docs.rs?b", true);
        check("GET https://docs.rs:444/", false);
        check("GET http://docs.rs/", false);
        check("GET https://docs.rs.example/", false);
        check("docs.rs", false);
        assert!(is_titled("docs/a +1", &What::Path("docs/a".to_string())));
    }
}
