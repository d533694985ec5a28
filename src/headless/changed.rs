//! What the operator changed of a call before it ran, as a line of its own below the row of the call. Pure.

use std::collections::BTreeMap;

use crate::domain::approval::By;
use crate::domain::approval::Decision;
use crate::domain::event::Event;
use crate::domain::event::Record;
use crate::domain::id::CallId;
use crate::domain::run::Run;
use crate::domain::tool::ToolCall;
use crate::domain::tool::differences;
use crate::headless::text::sentence;
use crate::policy::decider::whom;

/// The line of each call of a journal that was changed. A call of the open iteration knows it itself: see `line`.
pub fn lines(run: &Run, records: &[Record]) -> BTreeMap<CallId, String> {
    let mut proposed: BTreeMap<CallId, &str> = BTreeMap::new();
    let mut lines = BTreeMap::new();
    for record in records {
        if let Event::ToolCallProposed { call, arguments, .. } = &record.event {
            proposed.insert(*call, arguments);
        } else if let Event::ApprovalDecided { call, decision: Decision::Edit(now), by, .. } = &record.event
            && let Some(original) = proposed.get(call)
        {
            lines.insert(*call, told(run, original, now, by));
        }
    }
    lines
}

/// The line of a call that is not over; nothing where nobody changed it.
pub fn line(run: &Run, call: &ToolCall) -> String {
    let edited = call.edited.as_ref();
    edited.map_or(String::new(), |one| told(run, &one.original, &call.arguments, &By::Operator(one.by.clone())))
}

/// Long values are shortened, so the place is named where they are whole.
fn told(run: &Run, original: &str, now: &str, by: &By) -> String {
    let what = differences(original, now).unwrap_or_else(|| "all of its arguments".to_string());
    let (by, id) = (whom(by), run.id.short());
    format!("    changed by {}\n", sentence(&format!("{by}: {what} · whole: tiller audit {id} --payloads --json")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::domain::command::Command;
    use crate::headless::fixture::Desk;
    use crate::headless::fixture::asks_for;
    use crate::headless::fixture::plans;

    #[test]
    fn what_was_changed_is_told_of_a_call_that_is_not_over_and_of_one_that_is() {
        let mut desk = Desk::new(vec![plans(), asks_for("run_command", "make\u{202e} all")]);
        desk.recover();
        assert_eq!((line(&desk.run, &desk.run.calls[&CallId(2)]).as_str(), desk.run.waiting_count()), ("", 1));
        let digest = desk.run.calls[&CallId(2)].digest().unwrap();
        let decision = Decision::Edit(r#"{"command":"make none"}"#.to_string());
        desk.order_and_die(Command::Decide { call: CallId(2), digest, decision });
        let expected = "    changed by you (test): command from \"make⟦U+202E⟧ all\" to \"make none\" · whole: tiller \
                        audit 777777 --payloads --json\n";
        assert_eq!(line(&desk.run, &desk.run.calls[&CallId(2)]), expected);
        let records = desk.records.lock().unwrap();
        assert_eq!(lines(&desk.run, &records), BTreeMap::from([(CallId(2), expected.to_string())]));
    }
}
