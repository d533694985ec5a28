//! By whom something was decided or changed, in the words that every room says it in: screen, lines, lists, audit,
//! notices. What stands in a record from elsewhere is never said to be the operator's.

use crate::domain::approval::By;
use crate::domain::approval::Decision;
use crate::domain::approval::Origin;
use crate::domain::approval::Resolution;
use crate::domain::changes::differences;
use crate::domain::event::Event;
use crate::domain::id::CallId;
use crate::domain::rule::is_standing;
use crate::domain::rule::standing_id;
use crate::domain::tool::CallState;
use crate::domain::tool::Edited;
use crate::domain::tool::OutcomeKind;
use crate::domain::tool::ToolCall;
use crate::policy::permission;

/// The client that every room of a driven run is; it is not named.
const ROOM: &str = "operator";

/// Somebody of whom a journal from elsewhere says that they were the operator. It is all that is said of them: a name
/// from there could read like anything.
const SOMEBODY: &str = "somebody elsewhere";

/// The operator, as who did something.
pub fn who(origin: Origin) -> &'static str {
    match origin {
        Origin::Here => "you",
        Origin::Elsewhere => SOMEBODY,
    }
}

/// Who decided, to stand behind "allowed by", "denied by" and the like.
pub fn whom(by: &By, origin: Origin) -> String {
    let rule = match by {
        By::Operator(_) if origin == Origin::Elsewhere => return SOMEBODY.to_string(),
        By::Rule(_) if origin == Origin::Elsewhere => return "a rule elsewhere".to_string(),
        By::Operator(client) if client.0 == ROOM => return "you".to_string(),
        By::Operator(client) => return format!("you ({client})"),
        By::Rule(rule) => rule.as_str(),
    };
    match rule {
        _ if is_standing(rule) => format!("your rule {}", standing_id(rule)),
        permission::READS_LINE => "the read-only table".to_string(),
        permission::GRANTED => "you, for this run".to_string(),
        permission::GRANTED_TOOL => "you, with its tool, for this run".to_string(),
        permission::DENIED => "you, before in this run".to_string(),
        permission::DENIED_ELSEWHERE => format!("{SOMEBODY}, before in this run"),
        permission::FULL_TRUST => "full trust".to_string(),
        permission::AUTO_EDIT | permission::PLAN_MODE => rule.to_string(),
        _ => format!("the rule {rule}"),
    }
}

/// Who changed the arguments of a call.
pub fn changer(edited: &Edited) -> String {
    whom(&By::Operator(edited.by.clone()), edited.origin)
}

/// What was changed of a call and by whom, each argument as it was and as it is, shortened.
pub fn changed(original: &str, now: &str, by: &str) -> String {
    let what = differences(original, now).unwrap_or_else(|| "all of its arguments".to_string());
    format!("changed by {by}: {what}")
}

/// What a record, written there, says of who decided about a call; nothing where it says nothing of that. The words are
/// missing where what was decided before holds no longer.
#[allow(
    clippy::wildcard_enum_match_arm,
    reason = "it looks for a few events; others, and those to come, decide about no call"
)]
pub fn of_event(event: &Event, origin: Origin) -> Option<(CallId, Option<String>)> {
    match event {
        Event::ApprovalInvalidated { call, .. } => Some((*call, None)),
        // It is judged anew, and that says who let it happen.
        Event::ApprovalDecided { call, decision: Decision::Edit(_), .. } => Some((*call, None)),
        Event::ApprovalDecided { call, decision, by, .. } => {
            let words = match decision {
                Decision::Deny(_) => Some(denied(by, origin)),
                Decision::AllowUnboxed => allowed(by, true, origin),
                Decision::AllowOnce
                | Decision::AllowRun
                | Decision::AllowTool
                | Decision::AllowRule(_)
                | Decision::Edit(_) => allowed(by, false, origin),
            };
            Some((*call, words))
        }
        Event::ToolOutcomeResolved { call, resolution: Resolution::RunAgain, by } => {
            Some((*call, allowed(&By::Operator(by.clone()), false, origin)))
        }
        _ => None,
    }
}

/// Who decided about a call of the open iteration; nothing where nobody did.
pub fn of_call(call: &ToolCall) -> Option<String> {
    match (&call.state, &call.allowed) {
        (CallState::Denied { by, .. }, _) => Some(denied(by, call.origin)),
        (_, Some(by)) => allowed(by, call.is_unboxed, call.origin),
        (_, None) => None,
    }
}

/// The parts of a row about a call that has ended: how, for which `word` stands, and who had decided about it.
pub fn ended<'a>(kind: OutcomeKind, word: &'a str, who: Option<&'a str>) -> Vec<&'a str> {
    match (kind, who) {
        (OutcomeKind::Denied, Some(who)) => vec![who],
        (_, who) => [word].into_iter().chain(who).collect(),
    }
}

fn denied(by: &By, origin: Origin) -> String {
    format!("denied by {}", whom(by, origin))
}

/// Nothing is said of a read inside the workspace: nobody was asked about it, and no rule of anybody's was needed.
fn allowed(by: &By, is_unboxed: bool, origin: Origin) -> Option<String> {
    let is_plain_read = matches!(by, By::Rule(rule) if rule == permission::READS);
    let place = if is_unboxed { ", outside of the box" } else { "" };
    (!is_plain_read).then(|| format!("allowed by {}{place}", whom(by, origin)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::domain::id::ClientId;
    use crate::domain::tool::Digest;

    fn rule(name: &str) -> By {
        By::Rule(name.to_string())
    }

    fn decided(decision: Decision, by: By) -> Option<String> {
        let digest = Digest(String::new());
        of_event(&Event::ApprovalDecided { call: CallId(1), digest, decision, by }, Origin::Here).unwrap().1
    }

    #[test]
    fn each_who_has_words_of_their_own() {
        let operator = |client: &str| By::Operator(ClientId(client.to_string()));
        for (by, words) in [
            (operator("operator"), "allowed by you"),
            (operator("command line"), "allowed by you (command line)"),
            (rule("standing rule r12ab,r34cd"), "allowed by your rule r12ab,r34cd"),
            (rule("read-only line"), "allowed by the read-only table"),
            (rule("allowed for this run"), "allowed by you, for this run"),
            (rule("tool allowed for this run"), "allowed by you, with its tool, for this run"),
            (rule("trust mode full_trust"), "allowed by full trust"),
            (rule("trust mode auto_edit"), "allowed by trust mode auto_edit"),
            (rule("a rule to come"), "allowed by the rule a rule to come"),
        ] {
            assert_eq!(decided(Decision::AllowOnce, by.clone()).as_deref(), Some(words));
            let denied = decided(Decision::Deny(String::new()), by).unwrap();
            assert_eq!(denied, words.replace("allowed by", "denied by"));
        }
        assert_eq!(decided(Decision::AllowOnce, rule("reads inside the workspace")), None);
        let before = decided(Decision::Deny(String::new()), rule("denied before in this run"));
        assert_eq!(before.as_deref(), Some("denied by you, before in this run"));
        let unboxed = decided(Decision::AllowUnboxed, operator("operator"));
        assert_eq!(unboxed.as_deref(), Some("allowed by you, outside of the box"));
    }

    #[test]
    fn nobody_elsewhere_is_you() {
        let operator = |client: &str| By::Operator(ClientId(client.to_string()));
        for (by, words) in [
            (operator("operator"), "somebody elsewhere"),
            (operator("command line"), "somebody elsewhere"),
            (operator("x), allowed by you (command line"), "somebody elsewhere"),
            (rule("you"), "a rule elsewhere"),
            (rule("standing rule r12ab"), "a rule elsewhere"),
            (rule("allowed for this run"), "a rule elsewhere"),
            (rule("trust mode full_trust"), "a rule elsewhere"),
            (rule("read-only line"), "a rule elsewhere"),
        ] {
            assert_eq!(whom(&by, Origin::Elsewhere), words);
            let (call, digest, decision) = (CallId(1), Digest(String::new()), Decision::AllowOnce);
            let event = Event::ApprovalDecided { call, digest, decision, by };
            assert_eq!(of_event(&event, Origin::Elsewhere), Some((call, Some(format!("allowed by {words}")))));
        }
        assert_eq!(whom(&rule(permission::DENIED_ELSEWHERE), Origin::Here), "somebody elsewhere, before in this run");
        let (call, by) = (CallId(1), ClientId("operator".to_string()));
        let again = Event::ToolOutcomeResolved { call, resolution: Resolution::RunAgain, by };
        let words = of_event(&again, Origin::Elsewhere).unwrap().1;
        assert_eq!(words.as_deref(), Some("allowed by somebody elsewhere"));
    }

    #[test]
    fn what_holds_no_longer_was_decided_by_nobody() {
        let (call, why) = (CallId(1), "it changed".to_string());
        assert_eq!(of_event(&Event::ApprovalInvalidated { call, why }, Origin::Here), Some((call, None)));
        let edited = decided(Decision::Edit("{}".to_string()), By::Operator(ClientId("operator".to_string())));
        assert_eq!(edited, None);
        let by = ClientId("operator".to_string());
        let again = Event::ToolOutcomeResolved { call, resolution: Resolution::RunAgain, by: by.clone() };
        assert_eq!(of_event(&again, Origin::Here), Some((call, Some("allowed by you".to_string()))));
        let skipped = Event::ToolOutcomeResolved { call, resolution: Resolution::Skip, by };
        assert_eq!(of_event(&skipped, Origin::Here), None);
    }
}
