//! The part of the fold that is about model calls: their start, their end, and what a reply teaches. `fold.rs` calls
//! it; nothing else may.

use crate::domain::budget::ReservationId;
use crate::domain::event::Record;
use crate::domain::id::ModelCallId;
use crate::domain::limits;
use crate::domain::message::Message;
use crate::domain::model::ModelReply;
use crate::domain::model::Purpose;
use crate::domain::model::StopReason;
use crate::domain::run::Estimate;
use crate::domain::run::ModelCall;
use crate::domain::run::Reply;
use crate::domain::run::Run;

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
        }
        self.next.model_call = id.call.next();
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

    pub(crate) fn accept(&mut self, call: ModelCallId, reply: &ModelReply, record: &Record) {
        self.iteration.failures = 0;
        let phase = self.iteration.phase;
        self.say(Message::Assistant { call, phase, text: reply.text.clone(), uses: Vec::new() }, record);
        if reply.is_gone_on_with() && self.iteration.pauses < limits::PAUSES {
            self.iteration.pauses += 1;
            return;
        }
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

    /// The output to ask for after a reply was cut off, once in an iteration: twice as much, as far as the model and
    /// its window bear it. Nothing when there is no more to be had.
    pub fn more_output(&self) -> Option<u64> {
        let model = &self.terms.model;
        let input = self.pool.reserved().map_or(0, |held| held.input);
        let twice = model.max_output.saturating_mul(2);
        let most = twice.min(model.most_output.unwrap_or(u64::MAX)).min(model.window.saturating_sub(input));
        (self.iteration.max_output.is_none() && most > model.max_output).then_some(most)
    }
}
