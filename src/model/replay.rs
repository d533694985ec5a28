//! Which step of a script is due, found by walking through the conversation from its start. Pure: the same
//! conversation gives the same step in every process, which is what makes a scripted run fit to be resumed.

use std::sync::Arc;

use crate::domain::control::ASK_OPERATOR;
use crate::domain::message::Entry;
use crate::domain::message::Message;
use crate::domain::message::ToolUse;
use crate::domain::model::ModelRequest;
use crate::domain::model::Purpose;
use crate::domain::status::Phase;
use crate::domain::tool::OutcomeKind;
use crate::model::script::Branch;
use crate::model::script::Script;
use crate::model::script::Step;
use crate::model::script::When;

/// The step that answers the request; nothing when the script is over.
pub fn due<'a>(script: &'a Script, request: &ModelRequest) -> Option<&'a Step> {
    if request.purpose == Purpose::Summary {
        return Some(script.summary());
    }
    if let Some(name) = reserved(request) {
        return script.steps().iter().find(|step| step.name == name);
    }
    let mut place = Place { step: Some(script.start()), after_detour: None };
    // What was said before the first reply belongs to the goal, not to what followed a step.
    // What was said of the work at a limit is no step either.
    let is_reply = |entry: &Arc<Entry>| phase_of(entry).is_some_and(|phase| phase != Phase::WrapUp);
    // What is left out of the request does not matter: the place is found in the whole talk.
    let talk: Vec<Arc<Entry>> = request.talk.entries().cloned().collect();
    let mut replies = talk.iter().enumerate().filter(|(_, entry)| is_reply(entry)).peekable();
    while let Some((position, entry)) = replies.next() {
        let uses = match &entry.message {
            Message::Assistant { uses, .. } => uses.as_slice(),
            Message::Operator { .. } | Message::Engine { .. } | Message::ToolResult { .. } => &[],
        };
        let (end, phase) = match replies.peek() {
            Some((next, entry)) => (*next, phase_of(entry).unwrap_or(request.phase)),
            None => (talk.len(), request.phase),
        };
        let entries = talk.get(position + 1..end).unwrap_or_default();
        place = after(script, place, &Followed { uses, entries, phase });
    }
    place.step.and_then(|position| script.steps().get(position))
}

/// The step of this name answers requests that are not a turn of the script.
fn reserved(request: &ModelRequest) -> Option<&'static str> {
    match (request.purpose, request.phase) {
        (Purpose::Judge(_), _) => Some("judge"),
        (Purpose::Turn, Phase::WrapUp) => Some("wrap_up"),
        (Purpose::Summary, _) | (Purpose::Turn, Phase::Decompose | Phase::Pursue | Phase::Replan) => None,
    }
}

/// Where a script stands while the conversation is walked through.
#[derive(Clone, Copy)]
struct Place {
    /// The step to be played; nothing after the last.
    step: Option<usize>,
    /// Set during a detour: where the script goes after it.
    after_detour: Option<Option<usize>>,
}

fn phase_of(entry: &Entry) -> Option<Phase> {
    match &entry.message {
        Message::Assistant { phase, .. } => Some(*phase),
        Message::Operator { .. } | Message::Engine { .. } | Message::ToolResult { .. } => None,
    }
}

fn after(script: &Script, place: Place, followed: &Followed<'_>) -> Place {
    let own = own_next(script, place, followed);
    let Some(branch) = first_holding(script.anywhere(), followed) else {
        return own;
    };
    let is_detour = script.steps().get(branch.go).is_some_and(|step| step.back);
    Place { step: Some(branch.go), after_detour: is_detour.then_some(own.step) }
}

/// Where the script goes when nothing interrupts it.
fn own_next(script: &Script, place: Place, followed: &Followed<'_>) -> Place {
    let Some((position, step)) = place.step.and_then(|at| script.steps().get(at).map(|step| (at, step))) else {
        return place;
    };
    let next = match (first_holding(&step.next, followed), place.after_detour) {
        (Some(branch), _) => Some(branch.go),
        (None, Some(back_to)) => back_to,
        (None, None) => script.following(position),
    };
    Place { step: next, after_detour: None }
}

fn first_holding<'a>(branches: &'a [Branch], followed: &Followed<'_>) -> Option<&'a Branch> {
    branches.iter().find(|branch| followed.meets(&branch.when))
}

/// What followed a step, up to the next.
struct Followed<'a> {
    uses: &'a [ToolUse],
    entries: &'a [Arc<Entry>],
    phase: Phase,
}

impl Followed<'_> {
    fn meets(&self, when: &When) -> bool {
        when.phase.is_none_or(|phase| phase == self.phase)
            && when.said.as_deref().is_none_or(|words| self.was_said(words))
            && self.shows(when)
    }

    fn was_said(&self, words: &str) -> bool {
        let words = words.to_lowercase();
        let fits = |text: &str| words == "*" || text.to_lowercase().contains(&words);
        self.entries.iter().any(|entry| match &entry.message {
            Message::Operator { text, .. } => fits(text),
            Message::ToolResult { call, kind: OutcomeKind::Done, text, .. } => {
                self.uses.iter().any(|one| one.id == *call && one.tool == ASK_OPERATOR) && fits(text)
            }
            Message::ToolResult { .. } | Message::Engine { .. } | Message::Assistant { .. } => false,
        })
    }

    /// Whether one entry meets all conditions on results, where there are any.
    fn shows(&self, when: &When) -> bool {
        let about_results = when.tool.is_some() || when.failed.is_some() || when.denied.is_some();
        if !about_results && when.contains.is_none() {
            return true;
        }
        let contains = |text: &str| when.contains.as_deref().is_none_or(|part| text.contains(part));
        self.entries.iter().any(|entry| match &entry.message {
            Message::ToolResult { call, kind, text, .. } => {
                let denied = *kind == OutcomeKind::Denied;
                let failed = kind.is_error() && !denied;
                let of_tool = |tool: &str| self.uses.iter().any(|one| one.id == *call && one.tool == tool);
                when.tool.as_deref().is_none_or(of_tool)
                    && when.failed.is_none_or(|wanted| wanted == failed)
                    && when.denied.is_none_or(|wanted| wanted == denied)
                    && contains(text)
            }
            Message::Engine { text } => !about_results && contains(text),
            Message::Operator { .. } | Message::Assistant { .. } => false,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::io::Write;

    use super::*;
    use crate::domain::id::CallId;
    use crate::domain::id::InterjectionId;
    use crate::domain::id::ModelCallId;
    use crate::domain::id::Seq;
    use crate::domain::time::Span;
    use crate::domain::tool::ProblemKind;
    use crate::model::sample::entry;
    use crate::model::sample::request;

    const STEPS: &str = r#"
        [[step]]
        name = "first"
        text = "1"
        calls = [ { tool = "shell" }, { tool = "read_file" }, { tool = "ask_operator" } ]
        next = [
            { when = { tool = "shell", failed = true, contains = "FAIL" }, go = "fix" },
            { when = { tool = "shell", denied = true }, go = "denied" },
            { when = { phase = "replan" }, go = "replan" },
            { when = { contains = "claim rejected" }, go = "again" },
            { when = { said = "Tests" }, go = "tests" },
        ]
        [[step]]
        name = "heard"
        back = true
        text = "1"
        [[step]]
        name = "second"
        text = "2"
        next = [ { when = { contains = "never" }, go = "first" } ]
        [[step]]
        name = "third"
        text = "3"
        next = [ { go = "second" } ]
        [[step]]
        name = "fix"
        text = "f"
        [[step]]
        name = "denied"
        text = "d"
        [[step]]
        name = "replan"
        text = "r"
        [[step]]
        name = "again"
        text = "a"
        [[step]]
        name = "tests"
        text = "t"
        [[anywhere]]
        when = { said = "hello" }
        go = "heard"
        [[anywhere]]
        when = { said = "enough" }
        go = "tests"
    "#;

    fn load(text: &str) -> Script {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        Script::load(file.path()).unwrap()
    }

    fn reply(phase: Phase) -> Arc<Entry> {
        let tools = ["shell", "read_file", "ask_operator"];
        let uses = (1..).zip(tools).map(|(number, tool)| ToolUse {
            id: CallId(number),
            wire_id: number.to_string(),
            tool: tool.to_string(),
            arguments: "{}".to_string(),
            seq: Seq(0),
        });
        entry(Message::Assistant { call: ModelCallId(1), phase, text: String::new(), uses: uses.collect() })
    }

    fn result(call: u32, kind: OutcomeKind, text: &str) -> Arc<Entry> {
        let (text, bytes) = (text.to_string(), text.len() as u64);
        entry(Message::ToolResult { call: CallId(call), kind, text, bytes, title: String::new(), took: Span(1) })
    }

    fn said(text: &str) -> Arc<Entry> {
        entry(Message::Operator { id: InterjectionId(1), text: text.to_string() })
    }

    fn engine(text: &str) -> Arc<Entry> {
        entry(Message::Engine { text: text.to_string() })
    }

    fn due_name(request: &ModelRequest) -> String {
        due(&load(STEPS), request).map_or("(end)", |step| &step.name).to_string()
    }

    fn check(entries: Vec<Arc<Entry>>, expected: &str) {
        assert_eq!(due_name(&request(entries)), expected);
    }

    #[test]
    fn branches_look_at_what_followed() {
        let first = || reply(Phase::Pursue);
        check(vec![], "first");
        check(vec![said("hello"), engine("claim rejected")], "first");
        check(vec![first()], "second");
        check(vec![first(), result(1, OutcomeKind::Failed, "1 FAILED")], "fix");
        check(vec![first(), result(1, OutcomeKind::NotRun(ProblemKind::Malformed), "FAIL")], "fix");
        check(vec![first(), result(1, OutcomeKind::Done, "FAIL")], "second");
        check(vec![first(), result(1, OutcomeKind::Failed, "other"), result(2, OutcomeKind::Failed, "FAIL")], "second");
        check(vec![first(), result(1, OutcomeKind::Denied, "FAIL")], "denied");
        check(vec![first(), engine("claim rejected: no")], "again");
        check(vec![first(), said("run the tests")], "tests");
        check(vec![first(), result(3, OutcomeKind::Done, "The TESTS, please")], "tests");
        check(vec![first(), result(3, OutcomeKind::Cancelled, "tests")], "second");
        check(vec![first(), result(1, OutcomeKind::Done, "tests")], "second");
        check(vec![first(), first(), result(1, OutcomeKind::Failed, "FAIL")], "third");
    }

    #[test]
    fn the_phase_is_that_of_the_answer() {
        let replan = ModelRequest { phase: Phase::Replan, ..request(vec![reply(Phase::Decompose)]) };
        assert_eq!(due_name(&replan), "replan");
        check(vec![reply(Phase::Decompose), reply(Phase::Replan)], "again");
        check(vec![reply(Phase::Replan), reply(Phase::Pursue)], "third");
    }

    #[test]
    fn a_detour_comes_back() {
        let first = || reply(Phase::Pursue);
        check(vec![first(), said("hello")], "heard");
        check(vec![first(), said("hello"), first()], "second");
        check(vec![first(), said("hello tests"), first()], "tests");
        check(vec![first(), said("hello"), first(), said("hello"), first()], "second");
        check(vec![first(), said("hello"), first(), said("enough"), first()], "(end)");
        let to_the_end = vec![first(), said("enough"), first()];
        check(to_the_end.clone(), "(end)");
        check([to_the_end.clone(), vec![first()]].concat(), "(end)");
        check([to_the_end.clone(), vec![said("hello")]].concat(), "heard");
        check([to_the_end, vec![said("hello"), first()]].concat(), "(end)");
    }
}
