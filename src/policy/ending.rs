//! Is the run over, and why: the verdict on an iteration, with every axis that was true (docs/ENGINE.md §5).

use crate::domain::command::Control;
use crate::domain::event::ClaimVerdict;
use crate::domain::limits;
use crate::domain::progress::Progress;
use crate::domain::run::ClaimStage;
use crate::domain::run::Run;
use crate::domain::status::Course;
use crate::domain::status::Detector;
use crate::domain::status::Finish;
use crate::domain::status::Fired;
use crate::domain::status::ParkReason;
use crate::domain::status::Phase;
use crate::domain::status::Verdict;
use crate::domain::tool::ErrorClass;
use crate::policy::context;
use crate::policy::spending;
use crate::policy::wrapping;

/// What the detectors say of the open iteration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Noticed {
    /// An error that came too often in a row.
    pub blocked: Option<ErrorClass>,
    /// Every detector that fires, the most telling first.
    pub stalled: Vec<Detector>,
}

/// The verdict on the open iteration. `after` are the detector windows with the iteration taken in, `noticed` what
/// they say. Cancel and what waits for a person outrank it and are honoured before.
pub fn verdict(run: &Run, after: &Progress, noticed: &Noticed) -> Verdict {
    // In the order of precedence: the first one that is true decides.
    let mut fired = Vec::new();
    fired.extend(finish(run).map(Fired::Finish));
    fired.extend(run.control.and_then(stop));
    fired.extend(noticed.blocked.map(Fired::Escalated));
    // Who has said what to do instead is heard before the run parks for what was denied.
    fired.extend((after.denials >= limits::DENIALS && !run.must_hear()).then_some(Fired::DenyBreaker));
    fired.extend((after.claims >= limits::CLAIMS).then_some(Fired::Verification));
    let worst = spending::worst_case(run, &context::next_turn(run));
    fired.extend(spending::exhausted(run, &worst).into_iter().map(Fired::Budget));
    let unusable = after.malformed >= limits::MALFORMED
        || after.invalid >= limits::INVALID_ARGUMENTS
        || after.truncated >= limits::TRUNCATED;
    fired.extend(unusable.then_some(Fired::ModelOutput));
    fired.extend(run.iteration.reply.as_ref().is_some_and(|reply| reply.is_refusal).then_some(Fired::Refused));
    fired.extend(noticed.stalled.iter().copied().map(Fired::Stalled));
    let action = fired.first().map_or(Course::Continue, |first| action(run, after, first));
    Verdict { action, fired }
}

/// How the claim of this iteration completes the run, if it does.
fn finish(run: &Run) -> Option<Finish> {
    match run.iteration.claim.as_ref().map(|claim| &claim.stage) {
        Some(ClaimStage::Judged(ClaimVerdict::Verified)) => Some(Finish::Verified),
        Some(ClaimStage::Judged(ClaimVerdict::Unverified)) => Some(Finish::AcceptedUnverified),
        Some(
            ClaimStage::Judged(ClaimVerdict::Rejected | ClaimVerdict::Postponed)
            | ClaimStage::Passed(_)
            | ClaimStage::Asking(_)
            | ClaimStage::Checking(_)
            | ClaimStage::CheckFailed { .. },
        )
        | None => None,
    }
}

/// A pause or a leave that is recorded while a claim is being accepted; a cancel is honoured before there is a verdict.
fn stop(control: Control) -> Option<Fired> {
    match control {
        Control::Pause(_) => Some(Fired::Paused),
        Control::Leave => Some(Fired::Shutdown),
        Control::Cancel(_) => None,
    }
}

fn action(run: &Run, after: &Progress, first: &Fired) -> Course {
    match first {
        Fired::Finish(finish) => Course::Complete(*finish),
        Fired::Paused => Course::Park(ParkReason::Paused),
        Fired::Shutdown => Course::Park(ParkReason::Shutdown),
        Fired::Escalated(class) => Course::Park(ParkReason::Escalated(*class)),
        Fired::DenyBreaker => Course::Park(ParkReason::DenyBreaker),
        Fired::Verification => Course::Park(ParkReason::Verification),
        Fired::Budget(axis) if wrapping::is_possible(run, *axis) => Course::WrapUp(*axis),
        Fired::Budget(axis) => Course::Park(ParkReason::Budget(*axis)),
        Fired::ModelOutput => Course::Park(ParkReason::ModelOutput),
        Fired::Refused => Course::Park(ParkReason::Refused),
        Fired::Stalled(detector) => {
            if may_replan(run, after) {
                Course::Replan
            } else {
                Course::Park(ParkReason::Stalled(*detector))
            }
        }
    }
}

/// Whether a replan is left: a cap for the run. A replan that stalls by itself changed nothing, again.
fn may_replan(run: &Run, after: &Progress) -> bool {
    run.iteration.phase != Phase::Replan && after.replans < limits::REPLANS
}
