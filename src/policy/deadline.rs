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
    let goes_on = matches!(command, Command::Resume | Command::GrantReplans);
    if goes_on && matches!(run.status, Status::Parked(_)) && is_over(run, now) {
        let raising = spending::raising(run, Axis::Deadline);
        let remedy = format!("set a later one: {raising}; then resume; nothing is redone");
        return Some(Refusal::ReasonNotCleared { reason: ParkReason::Budget(Axis::Deadline), remedy });
    }
    if let Command::Raise { axis: Axis::Deadline, limit: Limit::At(at) } = command
        && *at <= now.0
    {
        return Some(Refusal::BadLimit(format!("the deadline {} is past", moment(Timestamp(*at)))));
    }
    None
}
