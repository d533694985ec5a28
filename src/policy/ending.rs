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
use crate::domain::status::Status;
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

/// The verdict on a wrap-up: the limit it was for, first; what else was true before it is still named. Where the
/// operator raised the limit meanwhile, that decides, or the run goes on.
pub fn wrapped_up(run: &Run) -> Verdict {
    let before = run.verdict.iter().filter(|verdict| matches!(verdict.action, Course::WrapUp(_)));
    let others = before.flat_map(|verdict| &verdict.fired).filter(|fired| !matches!(fired, Fired::Budget(_))).cloned();
    let fired: Vec<Fired> = wrapping::still_exhausted(run).into_iter().map(Fired::Budget).chain(others).collect();
    let action = fired.first().map_or(Course::Continue, |first| action(run, &run.progress, first));
    Verdict { action, fired }
}

/// All that was true when the run stopped, its reason first: what the verdict lists; where the run parked before a
/// model call or an iteration, every limit that bears none now, and a stall that no replan has answered.
pub fn causes(run: &Run) -> Vec<Fired> {
    let verdict = run.verdict.as_ref();
    let reason = match &run.status {
        Status::Parked(reason) => reason,
        Status::Completed(_) => return verdict.map(|verdict| verdict.fired.clone()).unwrap_or_default(),
        Status::Queued | Status::Running | Status::Failed(_) | Status::Cancelled => return Vec::new(),
    };
    if let Some(verdict) = verdict.filter(|verdict| verdict.action == Course::Park(reason.clone())) {
        return verdict.fired.clone();
    }
    let first = if let ParkReason::Budget(axis) = reason {
        Fired::Budget(*axis)
    } else if let ParkReason::Stalled(detector) = reason {
        Fired::Stalled(*detector)
    } else {
        return Vec::new();
    };
    let exhausted = spending::exhausted(run, &spending::worst_case(run, &spending::due(run)));
    let stalled = run.stall.as_ref().map(|stall| stall.detector);
    let others = exhausted.into_iter().map(Fired::Budget).chain(stalled.map(Fired::Stalled));
    let others: Vec<Fired> = others.filter(|other| *other != first).collect();
    [first].into_iter().chain(others).collect()
}

/// The same in words, where there is more than the reason.
pub fn together(run: &Run) -> Option<String> {
    let all: Vec<String> = causes(run).iter().map(Fired::phrase).collect();
    (all.len() > 1).then(|| all.join(", "))
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

/// Whether a replan is left: a cap for the run. A replan that stalls by itself changed nothing, again; after a wrap-up
/// a stall that stands is one that no replan has answered.
fn may_replan(run: &Run, after: &Progress) -> bool {
    let is_due = match run.iteration.phase {
        Phase::Decompose | Phase::Pursue => true,
        Phase::WrapUp => run.stall.is_some(),
        Phase::Replan => false,
    };
    is_due && after.replans < limits::REPLANS
}
