//! Records of older formats, made into records of this one in memory. What is stored is never rewritten.
//!
//! A chain of pure functions, one for each step from a version to the next; version 1 is the first, so there is none
//! yet. `tests/fixtures/journals` holds journals of every version, and a test folds them all (docs/JOURNAL.md).

use serde_json::Value;

use crate::domain::event::FORMAT_VERSION;

/// From the JSON of a whole record of one version to that of the next.
pub(crate) type Step = fn(Value) -> Value;

/// The steps, oldest first: the first one makes a record of version 2 of one of version 1.
pub(crate) const STEPS: [Step; FORMAT_VERSION as usize - 1] = [];

/// A record of version `from` as this version writes it: all steps from there on, in order. Nothing for a version that
/// never was.
pub(crate) fn raise(record: Value, from: u32, steps: &[Step]) -> Option<Value> {
    let done = usize::try_from(from.checked_sub(1)?).ok()?;
    let due = steps.get(done..)?;
    Some(due.iter().fold(record, |record, step| step(record)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn renamed(mut record: Value) -> Value {
        record["event"]["type"] = json!("new_name");
        record
    }

    fn numbered(mut record: Value) -> Value {
        record["event"]["number"] = json!(7);
        record
    }

    /// What a record of this version becomes when there are two steps.
    fn check(from: u32) -> Option<Value> {
        let steps: [Step; 2] = [renamed, numbered];
        raise(json!({"event": {"type": "old_name"}}), from, &steps).map(|record| record["event"].clone())
    }

    #[test]
    fn a_record_takes_every_step_that_it_lacks() {
        assert_eq!(check(1), Some(json!({"type": "new_name", "number": 7})));
        assert_eq!(check(2), Some(json!({"type": "old_name", "number": 7})));
        assert_eq!(check(3), Some(json!({"type": "old_name"})));
        assert_eq!(check(0), None);
        assert_eq!(check(4), None);
    }
}
