//! The exit status: what a script learns from how a run was left (docs/ENGINE.md §16.3).

use std::io::ErrorKind;

use crate::domain::command::Refusal;
use crate::domain::status::ParkReason;
use crate::domain::status::Status;
use crate::headless::HeadlessError;

/// The command line can't be meant, or names what is not there.
pub const USAGE: u8 = 2;
/// The order does not fit the run as it stands; nothing changed.
pub const REFUSED: u8 = 3;
/// The configuration can't be used: as a run that is parked for its model or its key.
pub const CONFIGURATION: u8 = 13;
/// The run stands still, or what was asked for was not done in full, for a reason that none of the other codes names;
/// the disk is one, and a program that broke down.
pub const STOPPED: u8 = 14;
/// The run can't go on: it failed, or its files are damaged or newer than this program.
pub const FAILED: u8 = 20;
/// Another process holds the run.
pub const LOCKED: u8 = 30;

/// What stands in the way where the command line is not at fault. Each sentence says what was not done.
#[derive(Debug, thiserror::Error)]
pub enum Obstacle {
    /// The order does not fit the run as it stands; nothing changed.
    #[error("{0}")]
    Refused(String),
    /// The run is whole and can't go on for now.
    #[error("{0}")]
    Stopped(String),
    /// The run can't go on: its files are damaged, or newer than this program.
    #[error("{0}")]
    Lost(String),
}

/// The exit status for what stands in the way.
pub fn obstacle_code(obstacle: &Obstacle) -> u8 {
    match obstacle {
        Obstacle::Refused(_) => REFUSED,
        Obstacle::Stopped(_) => STOPPED,
        Obstacle::Lost(_) => FAILED,
    }
}

/// The exit status for what the system said of a file that the command line names.
#[allow(clippy::wildcard_enum_match_arm, reason = "the kinds are the system's, and more may come")]
pub fn file_code(error: &std::io::Error) -> u8 {
    match error.kind() {
        ErrorKind::AlreadyExists => REFUSED,
        ErrorKind::NotFound
        | ErrorKind::PermissionDenied
        | ErrorKind::IsADirectory
        | ErrorKind::NotADirectory
        | ErrorKind::InvalidInput
        | ErrorKind::InvalidFilename
        | ErrorKind::InvalidData => USAGE,
        _ => STOPPED,
    }
}

/// The exit status for a run that can't be shown any further.
pub fn shown_code(error: &HeadlessError) -> u8 {
    match error {
        HeadlessError::Broken(_) => FAILED,
        HeadlessError::Stopped(_)
        | HeadlessError::Signals(_)
        | HeadlessError::Unprintable(_)
        | HeadlessError::Empty => STOPPED,
    }
}

/// The exit status for a command that a run refused.
#[allow(clippy::wildcard_enum_match_arm, reason = "all but these say that the command does not fit the run")]
pub fn refusal_code(refusal: &Refusal) -> u8 {
    match refusal {
        Refusal::Storage(_) | Refusal::Stopped(_) | Refusal::Unanswered => STOPPED,
        Refusal::Broken(_) => FAILED,
        _ => REFUSED,
    }
}

/// The exit status for a run that was left like this.
pub fn exit_code(status: &Status) -> u8 {
    match status {
        Status::Completed(_) => 0,
        Status::Failed(_) => FAILED,
        Status::Cancelled => 21,
        Status::Parked(reason) => parked(reason),
        // The engine stopped before it could park the run; it is recovered when it is opened again.
        Status::Queued | Status::Running => STOPPED,
    }
}

fn parked(reason: &ParkReason) -> u8 {
    match reason {
        ParkReason::Approval | ParkReason::Confirm => 10,
        ParkReason::Budget(_) | ParkReason::DailyBudget { .. } => 11,
        ParkReason::Stalled(_) | ParkReason::Verification => 12,
        ParkReason::Credentials
        | ParkReason::Billing
        | ParkReason::Permission
        | ParkReason::ModelConfig
        | ParkReason::PriceUnknown => CONFIGURATION,
        ParkReason::OutcomeUnknown
        | ParkReason::Question
        | ParkReason::Escalated(_)
        | ParkReason::DenyBreaker
        | ParkReason::AskBreaker
        | ParkReason::ContextExhausted
        | ParkReason::ModelOutput
        | ParkReason::Refused
        | ParkReason::RateLimited { .. }
        | ParkReason::ProviderWait { .. }
        | ParkReason::Unexplained
        | ParkReason::NotReady
        | ParkReason::Storage
        | ParkReason::Interrupted
        | ParkReason::Paused
        | ParkReason::Shutdown
        | ParkReason::EnginePanic => STOPPED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::budget::Axis;
    use crate::domain::money::MicroUsd;
    use crate::domain::status::Detector;
    use crate::domain::status::Failure;
    use crate::domain::status::Finish;
    use crate::domain::time::Timestamp;
    use crate::domain::tool::ErrorClass;

    #[test]
    fn every_way_to_leave_has_its_code() {
        let until = Timestamp(0);
        let parked = |reasons: &[ParkReason]| {
            let mut codes: Vec<u8> = reasons.iter().map(|reason| exit_code(&Status::Parked(reason.clone()))).collect();
            codes.dedup();
            codes
        };
        assert_eq!(parked(&[ParkReason::Approval, ParkReason::Confirm]), [10]);
        assert_eq!(parked(&Axis::ALL.map(ParkReason::Budget)), [11]);
        assert_eq!(parked(&[ParkReason::DailyBudget { left: MicroUsd(1), until }]), [11]);
        let stalled =
            [Detector::NoProgress, Detector::Repeat, Detector::Polling, Detector::Cycle].map(ParkReason::Stalled);
        assert_eq!(parked(&[&stalled[..], &[ParkReason::Verification]].concat()), [12]);
        assert_eq!(
            parked(&[
                ParkReason::Credentials,
                ParkReason::Billing,
                ParkReason::Permission,
                ParkReason::ModelConfig,
                ParkReason::PriceUnknown,
            ]),
            [13]
        );
        assert_eq!(
            parked(&[
                ParkReason::OutcomeUnknown,
                ParkReason::Question,
                ParkReason::Escalated(ErrorClass::Permission),
                ParkReason::DenyBreaker,
                ParkReason::ContextExhausted,
                ParkReason::ModelOutput,
                ParkReason::Refused,
                ParkReason::RateLimited { until },
                ParkReason::ProviderWait { until },
                ParkReason::Unexplained,
                ParkReason::NotReady,
                ParkReason::Storage,
                ParkReason::Interrupted,
                ParkReason::Paused,
                ParkReason::Shutdown,
                ParkReason::EnginePanic,
            ]),
            [14]
        );
        let ends = [
            Status::Completed(Finish::Verified),
            Status::Completed(Finish::AcceptedUnverified),
            Status::Completed(Finish::AcceptedByOperator),
            Status::Failed(Failure::Protocol),
            Status::Failed(Failure::OutOfOrder("a call has no result".to_string())),
            Status::Failed(Failure::ClosedByOperator),
            Status::Cancelled,
            Status::Running,
            Status::Queued,
        ];
        assert_eq!(ends.map(|status| exit_code(&status)), [0, 0, 0, 20, 20, 20, 21, 14, 14]);
    }
}
