//! The part of the fold that is about claims of being finished. Only the fold calls it.

use crate::domain::event::ClaimVerdict;
use crate::domain::event::Record;
use crate::domain::message::Message;
use crate::domain::run::Claim;
use crate::domain::run::ClaimStage;
use crate::domain::run::Run;

impl Run {
    pub(crate) fn start_check(&mut self, index: usize) -> Result<(), String> {
        let claim = self.claim()?;
        if claim.stage != ClaimStage::Passed(index) {
            return Err(format!("check {index} is not due"));
        }
        claim.stage = ClaimStage::Checking(index);
        Ok(())
    }

    /// A check ended and told nothing: all are run again.
    pub(crate) fn lose_check(&mut self, index: usize) -> Result<(), String> {
        let claim = self.claim()?;
        if claim.stage != ClaimStage::Checking(index) {
            return Err(format!("check {index} does not run"));
        }
        claim.stage = ClaimStage::Passed(0);
        Ok(())
    }

    pub(crate) fn end_check(&mut self, index: usize, passed: bool, detail: &str) -> Result<(), String> {
        let claim = self.claim()?;
        if claim.stage != ClaimStage::Checking(index) {
            return Err(format!("check {index} does not run"));
        }
        if passed {
            claim.stage = ClaimStage::Passed(index + 1);
            self.iteration.passed.push(index);
        } else {
            claim.stage = ClaimStage::CheckFailed { index, detail: detail.to_string() };
        }
        Ok(())
    }

    pub(crate) fn ask_to_confirm(&mut self, index: usize) -> Result<(), String> {
        let claim = self.claim()?;
        if claim.stage != ClaimStage::Passed(index) {
            return Err(format!("check {index} is not due"));
        }
        claim.stage = ClaimStage::Asking(index);
        Ok(())
    }

    pub(crate) fn confirm(&mut self, index: usize, confirmed: bool, text: &str) -> Result<(), String> {
        let claim = self.claim()?;
        if claim.stage != ClaimStage::Asking(index) {
            return Err(format!("check {index} does not wait"));
        }
        if confirmed {
            claim.stage = ClaimStage::Passed(index + 1);
            self.iteration.passed.push(index);
        } else {
            let words = if text.is_empty() { "" } else { ": " };
            let detail = format!("the operator says no{words}{text}");
            claim.stage = ClaimStage::CheckFailed { index, detail };
        }
        Ok(())
    }

    pub(crate) fn judge_claim(&mut self, verdict: ClaimVerdict, text: &str, record: &Record) -> Result<(), String> {
        let claim = self.claim()?;
        claim.stage = ClaimStage::Judged(verdict);
        let is_text_only = claim.call.is_none();
        match verdict {
            ClaimVerdict::Rejected => self.progress.claims += 1,
            ClaimVerdict::Verified | ClaimVerdict::Unverified | ClaimVerdict::Postponed => {}
        }
        if is_text_only {
            self.say(Message::Engine { text: text.to_string() }, record);
        }
        Ok(())
    }

    pub(crate) fn claim(&mut self) -> Result<&mut Claim, String> {
        self.iteration.claim.as_mut().ok_or_else(|| "there is no claim".to_string())
    }
}
