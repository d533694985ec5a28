//! The part of the fold that is about the status: what a change of it grants anew. Only the fold calls it.

use crate::domain::event::Record;
use crate::domain::limits;
use crate::domain::run::ClaimStage;
use crate::domain::run::Run;
use crate::domain::status::ParkReason;
use crate::domain::status::Status;
use crate::domain::status::Warning;

impl Run {
    /// Empties the windows of the detectors, and takes back what was said about them.
    pub(crate) fn reset_windows(&mut self) {
        self.progress.reset_windows();
        self.forget_stall_warnings();
    }

    pub(crate) fn forget_stall_warnings(&mut self) {
        self.warnings.retain(|what, _| match what {
            Warning::Stall(_) => false,
            Warning::Budget(_) => true,
        });
    }

    pub(crate) fn grant_replans(&mut self) -> Result<(), String> {
        if !matches!(self.status, Status::Parked(ParkReason::Stalled(_))) {
            return Err("replans are granted to a run that is not stalled".to_string());
        }
        self.progress.replans = 0;
        Ok(())
    }

    pub(crate) fn change_status(&mut self, status: &Status, record: &Record) {
        if let (Status::Failed(_) | Status::Cancelled, Status::Running | Status::Parked(_)) = (&self.status, status) {
            // The operator's retry: it goes on where it ended, with one more try of what ended it.
            self.attempt = self.attempt.saturating_add(1);
            self.iteration.failures = 0;
            self.iteration.discards = 0;
            self.trouble = None;
            // A claim that waited for the operator's word is looked into anew.
            if let Some(claim) = self.iteration.claim.as_mut().filter(|one| matches!(one.stage, ClaimStage::Asking(_)))
            {
                claim.stage = ClaimStage::Passed(0);
            }
        }
        if let (Status::Parked(reason), Status::Running) = (&self.status, status) {
            // What parked the run is granted anew, or the next iteration would park it again at once.
            match reason {
                ParkReason::Stalled(_) => {
                    // Journals from before there was a grant: there a resume alone granted new replans. Since then a
                    // run that has used them up is not resumed without one, so this changes no other journal.
                    if self.progress.replans >= limits::REPLANS {
                        self.progress.replans = 0;
                    }
                    self.progress.ineffective = 0;
                    self.reset_windows();
                }
                ParkReason::Verification => self.progress.claims = 0,
                ParkReason::Escalated(_) => self.progress.errors = None,
                ParkReason::DenyBreaker => self.progress.denials = 0,
                ParkReason::AskBreaker => self.progress.asks.clear(),
                ParkReason::ModelOutput => {
                    self.progress.malformed = 0;
                    self.progress.invalid = 0;
                    self.progress.truncated = 0;
                    self.iteration.discards = 0;
                    self.iteration.degenerate = 0;
                }
                ParkReason::ContextExhausted => self.context.grant(),
                ParkReason::EnginePanic => self.progress.recoveries = 0,
                ParkReason::Confirm
                | ParkReason::Approval
                | ParkReason::OutcomeUnknown
                | ParkReason::Question
                | ParkReason::Budget(_)
                | ParkReason::DailyBudget { .. }
                | ParkReason::NotReady
                | ParkReason::Unexplained
                | ParkReason::Refused
                | ParkReason::Credentials
                | ParkReason::Billing
                | ParkReason::Permission
                | ParkReason::ModelConfig
                | ParkReason::PriceUnknown
                | ParkReason::RateLimited { .. }
                | ParkReason::ProviderWait { .. }
                | ParkReason::Storage
                | ParkReason::Interrupted
                | ParkReason::Paused
                | ParkReason::Shutdown => {}
            }
            self.iteration.failures = 0;
            self.retry_at = None;
        }
        if let Status::Parked(ParkReason::ProviderWait { .. } | ParkReason::RateLimited { .. }) = status {
            self.provider_waits += 1;
        }
        if *status == Status::Running {
            self.lacks.clear();
        }
        if *status != Status::Running {
            self.control = None;
            self.retry_at = None;
        }
        self.status = status.clone();
        self.status_since = record.at;
    }
}
