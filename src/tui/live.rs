//! Streamed text, until its record lands. Never the truth: a record replaces it, a lost scrap is only missed.

use std::collections::BTreeMap;

use crate::domain::event::Event;
use crate::domain::event::Record;
use crate::domain::id::CallId;
use crate::domain::id::ModelCallId;
use crate::domain::limits;
use crate::domain::model::Delta;
use crate::domain::model::DeltaSource;
use crate::domain::run::Run;
use crate::domain::text::tail;

/// What streams at the moment.
#[derive(Clone, Debug, Default)]
pub struct Live {
    call: Option<ModelCallId>,
    /// Text of the reply so far: its end, where it is long.
    pub text: String,
    /// Reasoning so far: its end.
    pub reasoning: String,
    /// Bytes of arguments written so far.
    pub arguments_bytes: usize,
    tools: BTreeMap<CallId, String>,
    /// Scraps that were lost on the way since the last record.
    pub lost: u64,
}

impl Live {
    /// Takes a scrap that belongs to what is in flight; anything else came too late and is dropped.
    pub fn take(&mut self, delta: &Delta, run: &Run) {
        match delta.source {
            DeltaSource::Text(call) if self.begins(call, run) => append(&mut self.text, &delta.text),
            DeltaSource::Reasoning(call) if self.begins(call, run) => append(&mut self.reasoning, &delta.text),
            DeltaSource::Arguments(call) if self.begins(call, run) => {
                self.arguments_bytes = self.arguments_bytes.saturating_add(delta.text.len());
            }
            DeltaSource::Tool(call) if run.running_calls().any(|one| one.id == call) => {
                append(self.tools.entry(call).or_default(), &delta.text);
            }
            DeltaSource::Text(_)
            | DeltaSource::Reasoning(_)
            | DeltaSource::Arguments(_)
            | DeltaSource::Tool(_)
            | DeltaSource::Lost(_) => {}
        }
    }

    /// Drops what a record replaces.
    pub fn settle(&mut self, record: &Record) {
        let event = &record.event;
        if let Event::ModelCallStarted { .. } | Event::ModelCallFinished { .. } | Event::ModelCallFailed { .. } = event
        {
            *self = Live { tools: std::mem::take(&mut self.tools), ..Live::default() };
        }
        if let Event::ToolCallFinished { call, .. } = event {
            self.tools.remove(call);
        }
        if let Event::Recovered { .. } | Event::IterationClosed { .. } = event {
            *self = Live::default();
        }
    }

    /// Output of a running tool so far: its end.
    pub fn tool(&self, call: CallId) -> Option<&str> {
        self.tools.get(&call).map(String::as_str)
    }

    /// Counts lost scraps.
    pub fn lose(&mut self, count: u64) {
        self.lost = self.lost.saturating_add(count);
    }

    fn begins(&mut self, call: ModelCallId, run: &Run) -> bool {
        let is_current = run.model_call.is_some_and(|flying| flying.id.call == call);
        if is_current && self.call != Some(call) {
            // Scraps may have been lost before the first one that came.
            *self =
                Live { call: Some(call), tools: std::mem::take(&mut self.tools), lost: self.lost, ..Live::default() };
        }
        is_current
    }
}

fn append(text: &mut String, more: &str) {
    text.push_str(more);
    if text.len() > limits::LIVE_TEXT_MAX_BYTES {
        *text = tail(text, limits::LIVE_TEXT_MAX_BYTES / 4 * 3).to_string();
    }
}
