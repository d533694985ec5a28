//! Is the deadline of a run over, and what that means for a command (docs/ENGINE.md §8.1). Pure: the present is handed
//! in. It is judged where nothing is under way, and ends nothing.

use crate::domain::budget::Axis;
use crate::domain::budget::Limit;
use crate::domain::command::Command;
use crate::domain::command::Refusal;
use crate::domain::deadline::moment;
use crate::domain::run::Run;
use crate::domain::status::ParkReason;
use crate::domain::status::Status;
use crate::domain::time::Timestamp;
use crate::policy::spending;

/// Whether the run may do nothing new any more.
pub fn is_over(run: &Run, now: Timestamp) -> bool {
    run.pool.limits().deadline.left(now.0) == Some(0)
}

/// Why a command does not fit the deadline, if it does not.
pub fn refusal(run: &Run, command: &Command, now: Timestamp) -> Option<Refusal> {
    match command {
        Command::Resume | Command::GrantReplans if matches!(run.status, Status::Parked(_)) && is_over(run, now) => {
            let remedy =
                format!("set a later one: {}; then resume; nothing is redone", spending::raising(run, Axis::Deadline));
            Some(Refusal::ReasonNotCleared { reason: ParkReason::Budget(Axis::Deadline), remedy })
        }
        Command::Raise { axis: Axis::Deadline, limit: Limit::At(at) } if *at <= now.0 => {
            Some(Refusal::BadLimit(format!("the deadline {} is past", moment(Timestamp(*at)))))
        }
        _ => None,
    }
}
