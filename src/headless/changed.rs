//! What was changed of a call before it ran, and by whom: a line of its own below the row of the call, and for programs.
//! Pure.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::json;

use crate::domain::approval::Decision;
use crate::domain::approval::Origin;
use crate::domain::event::Event;
use crate::domain::event::Record;
use crate::domain::id::CallId;
use crate::domain::run::Run;
use crate::domain::tool::ToolCall;
use crate::headless::text::sentence;
use crate::policy::decider::changed;
use crate::policy::decider::changer;
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
            lines.insert(*call, told(run, original, now, &whom(by, run.origin(record.seq))));
        }
    }
    lines
}

/// The line of a call that is not over; nothing where nobody changed it.
pub fn line(run: &Run, call: &ToolCall) -> String {
    call.edited.as_ref().map_or(String::new(), |one| told(run, &one.original, &call.arguments, &changer(one)))
}

/// What a call that is not over was before, and who changed it, for programs; null where nobody did. `by` is the client
/// of the operator's, or words where it was changed elsewhere.
pub fn json(call: &ToolCall) -> Value {
    call.edited.as_ref().map_or(Value::Null, |one| {
        let by = if one.origin == Origin::Here { one.by.to_string() } else { changer(one) };
        json!({"original": one.original, "by": by, "is_leave": one.is_leave})
    })
}

/// Long values are shortened, so the place is named where they are whole.
fn told(run: &Run, original: &str, now: &str, by: &str) -> String {
    let (what, id) = (changed(original, now, by), run.id.short());
    format!("    {}\n", sentence(&format!("{what} · whole: tiller audit {id} --payloads --json")))
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
