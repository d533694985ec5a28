//! What the operator says of a run as a whole: that a claim is right, that a stalled run may plan anew, that the work is
//! taken as it is, that the run is closed.

use crate::domain::command::Refusal;
use crate::domain::event::Event;
use crate::domain::id::ClientId;
use crate::domain::run::Run;
use crate::domain::status::ParkReason;
use crate::domain::status::Status;
use crate::domain::tool::Digest;
use crate::machine::advance;
use crate::machine::events::status;
use crate::machine::respond::Empty;
use crate::machine::respond::said;

/// Goes on with a stalled run, with all its replans again (docs/ENGINE.md §7.5).
pub(crate) fn grant(run: &Run, client: &ClientId) -> Result<Vec<Event>, Refusal> {
    if let Status::Parked(ParkReason::Stalled(_)) = &run.status {
        return Ok(vec![Event::ReplansGranted { by: client.clone() }, status(Status::Running, Some(client))]);
    }
    Err(Refusal::NotStalled(run.status.clone()))
}

/// The operator's word on the claim, where a check asks for it, as they saw it.
pub(crate) fn confirm(
    run: &Run,
    claim: &Digest,
    (confirmed, text): (bool, &str),
    client: &ClientId,
) -> Result<Vec<Event>, Refusal> {
    let index = run.confirming().ok_or(Refusal::NothingToConfirm)?;
    if run.claim_digest().as_ref() != Some(claim) {
        return Err(Refusal::ClaimChanged);
    }
    let text = said(text, Empty::Fits)?;
    let mut group = vec![Event::ConfirmationGiven { index, confirmed, text, by: client.clone() }];
    if run.status == Status::Parked(ParkReason::Confirm) && run.is_driven() {
        group.push(status(Status::Running, Some(client)));
    }
    Ok(group)
}

/// The operator ends a parked run: takes the work as it is, or closes it as failed (docs/ENGINE.md §3.2, T11, T12).
pub(crate) fn end(run: &Run, ended: Status, client: &ClientId) -> Result<Vec<Event>, Refusal> {
    if !matches!(run.status, Status::Parked(_)) {
        return Err(Refusal::NotParked(run.status.clone()));
    }
    let open = run.ordered_calls().filter(|call| !call.is_closed());
    let closing = open.map(|call| {
        advance::unfinished(call, "outcome unknown; the operator ended the run", "not run: the operator ended the run")
    });
    Ok(closing.chain([status(ended, Some(client))]).collect())
}
