//! Groups of records that more than one step of the loop writes. It must not judge when one is due.

use crate::domain::budget::Reservation;
use crate::domain::event::Event;
use crate::domain::id::ClientId;
use crate::domain::model::ModelRequest;
use crate::domain::run::Run;
use crate::domain::status::ParkReason;
use crate::domain::status::Status;
use crate::policy::context;
use crate::policy::spending;

/// A new status; `by` whom, unless the engine decided.
pub(crate) fn status(status: Status, by: Option<&ClientId>) -> Event {
    Event::StatusChanged { status, by: by.cloned() }
}

/// The engine lets the run wait.
pub(crate) fn parked(reason: ParkReason) -> Vec<Event> {
    vec![status(Status::Parked(reason), None)]
}

/// A request that is not sent: it can't be paid, or does not fit.
pub(crate) struct Unasked {
    /// What the run waits for then.
    pub(crate) reason: ParkReason,
    /// What the request would have cost at worst.
    pub(crate) worst: Reservation,
}

/// Reserves the worst case of a request, and asks the model (docs/ENGINE.md §8.2).
pub(crate) fn asked(run: &Run, request: &ModelRequest) -> Result<Vec<Event>, Unasked> {
    let reservation = spending::worst_case(run, request);
    if let Some(reason) = spending::refusal(run, &reservation, request.max_output) {
        return Err(Unasked { reason, worst: reservation });
    }
    let started = Event::ModelCallStarted {
        call: request.call,
        attempt: request.attempt,
        digest: context::digest(run, request),
        max_output: request.max_output,
        purpose: request.purpose,
    };
    Ok(vec![Event::BudgetReserved { reservation }, started])
}
