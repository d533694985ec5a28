//! The part of the fold that is about model calls: their start, their end, and what a reply teaches. Only the
//! fold calls it.

use crate::domain::budget::ReservationId;
use crate::domain::context::Demand;
use crate::domain::event::Record;
use crate::domain::id::ModelCallId;
use crate::domain::limits;
use crate::domain::message::Message;
use crate::domain::model::FailureClass;
use crate::domain::model::ModelFailure;
use crate::domain::model::ModelReply;
use crate::domain::model::Purpose;
use crate::domain::model::StopReason;
use crate::domain::run::Estimate;
use crate::domain::run::ModelCall;
use crate::domain::run::Reply;
use crate::domain::run::Run;
use crate::domain::run::Trouble;
use crate::domain::time::Timestamp;

impl Run {
    pub(crate) fn start_model_call(
        &mut self,
        id: ReservationId,
        max_output: u64,
        purpose: Purpose,
        record: &Record,
    ) -> Result<(), String> {
        if self.model_call.is_some() || self.pool.reserved().map(|held| held.id) != Some(id) {
            return Err(format!("{} started without its reservation", id.call));
        }
        self.model_call = Some(ModelCall { id, started: record.at, max_output, purpose });
        match purpose {
            Purpose::Turn => self.iteration.model_call = Some(id),
            Purpose::Judge(_) => {}
            Purpose::Summary => self.context.asked = Some(id),
        }
        self.next.model_call = self.next.model_call.max(id.call.next());
        self.pool.count_model_call();
        self.retry_at = None;
        Ok(())
    }

    /// Takes the call out of flight; gives what it was for.
    pub(crate) fn end_model_call(&mut self, call: ModelCallId) -> Result<Purpose, String> {
        match self.model_call.take() {
            Some(flying) if flying.id.call == call => Ok(flying.purpose),
            Some(_) | None => Err(format!("{call} is not in flight")),
        }
    }

    pub(crate) fn learn(&mut self, reply: &ModelReply) {
        let (Some(usage), Some(held)) = (&reply.usage, self.pool.reserved()) else { return };
        let seen_percent = usage.prompt().saturating_mul(100).checked_div(held.input).unwrap_or(0);
        let factor = self.estimate.factor_percent.max(seen_percent).min(limits::INPUT_FACTOR_MAX_PERCENT);
        self.estimate = Estimate { input: usage.prompt(), bytes: held.bytes, factor_percent: factor };
    }

    /// Takes in that a model call gave no whole reply. Our own doing is no trouble of the provider; a summary that can't
    /// be had is replaced, not waited for.
    pub(crate) fn meet(&mut self, purpose: Purpose, failure: &ModelFailure) {
        let class = failure.class;
        match (purpose, class) {
            // A judge that fails makes its check fail, and is not asked again.
            (_, FailureClass::Cancelled) | (Purpose::Judge(_), _) => return,
            (Purpose::Summary, FailureClass::ContextLength | FailureClass::TooLarge)
            | (Purpose::Summary, FailureClass::BadRequest | FailureClass::Endless | FailureClass::Degenerate) => {
                self.context.rejected = limits::SUMMARY_TRIES;
                self.iteration.failures = 0;
                self.trouble = None;
                return;
            }
            (Purpose::Turn, _) => {
                self.iteration.degenerate += u32::from(class == FailureClass::Degenerate);
                let demand = class.excess().map(|of| Demand { of, pruned: false });
                self.context.demand = demand.or(self.context.demand);
            }
            (Purpose::Summary, _) => {}
        }
        self.iteration.failures += 1;
        self.trouble = Some(Trouble { class, message: failure.message.clone(), retry_after: failure.retry_after });
    }

    pub(crate) fn wait_for_retry(&mut self, at: Timestamp) {
        let is_other = self.trouble.as_ref().is_some_and(|trouble| trouble.class.excess().is_none());
        let waits_for_provider = self.iteration.failures > 0 && is_other && self.retry_at.is_none();
        self.retry_at = Some(at);
        // Else room was made, whatever became of other calls since it was demanded: this is the answer to that.
        if !waits_for_provider {
            self.context.answer_demand(self.iteration.n);
        }
    }

    pub(crate) fn end_summary(&mut self, is_used: bool) {
        self.iteration.failures = 0;
        if !is_used {
            self.context.rejected += 1;
        }
    }

    /// A summary stands for the iterations up to `to`. Never while a call of the reply waits for its result.
    pub(crate) fn compact(&mut self, to: u32, summary: &str, before: u64, after: u64) -> Result<(), String> {
        if to >= self.iteration.n || !self.calls.is_empty() {
            return Err(format!("iterations up to {to} can't be summarised in iteration {}", self.iteration.n));
        }
        self.context.compact(&self.transcript, summary, to, self.created);
        self.transcript.put_away(to);
        let freed = before.saturating_sub(after).saturating_mul(100);
        let is_poor = freed < before.saturating_mul(limits::SUMMARY_FREES_PERCENT);
        self.context.poor = if is_poor { self.context.poor + 1 } else { 0 };
        self.context.compacted_at = Some(self.iteration.n);
        if self.context.demand.is_some() {
            self.context.answer_demand(self.iteration.n);
            self.iteration.failures = 0;
        }
        Ok(())
    }

    pub(crate) fn accept(&mut self, call: ModelCallId, reply: &ModelReply, record: &Record) {
        self.iteration.failures = 0;
        let phase = self.iteration.phase;
        self.say(Message::Assistant { call, phase, text: reply.text.clone(), uses: Vec::new() }, record);
        if reply.is_gone_on_with() && self.iteration.pauses < limits::PAUSES {
            self.iteration.pauses += 1;
            return;
        }
        self.context.demand = None;
        self.iteration.reply = Some(Reply {
            text: reply.text.clone(),
            is_refusal: reply.stop == StopReason::Refused,
            is_cut: reply.stop == StopReason::Length,
        });
    }

    pub(crate) fn discard(&mut self, reply: &ModelReply) {
        self.iteration.discards += 1;
        if reply.stop == StopReason::Length {
            self.iteration.max_output = self.more_output().or(self.iteration.max_output);
        }
    }

    pub(crate) fn count_truncated(&mut self, reply: &ModelReply) {
        let is_cut = reply.stop == StopReason::Length;
        self.progress.truncated = if is_cut { self.progress.truncated.saturating_add(1) } else { 0 };
    }
}
