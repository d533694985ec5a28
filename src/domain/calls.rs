//! The part of the fold that is about tool calls: what their records change. Only the fold calls it.

use crate::domain::approval::By;
use crate::domain::approval::Decision;
use crate::domain::control;
use crate::domain::event::Record;
use crate::domain::id::CallId;
use crate::domain::limits;
use crate::domain::message::Message;
use crate::domain::message::ToolUse;
use crate::domain::run::Run;
use crate::domain::tool::CallState;
use crate::domain::tool::EffectClass;
use crate::domain::tool::ErrorClass;
use crate::domain::tool::OutcomeKind;
use crate::domain::tool::ProblemKind;
use crate::domain::tool::ToolCall;
use crate::domain::tool::ToolOutcome;
use crate::domain::tool::named;

impl Run {
    pub(crate) fn propose(
        &mut self,
        id: CallId,
        wire: &str,
        tool: &str,
        arguments: &str,
        effect: EffectClass,
        record: &Record,
    ) -> Result<(), String> {
        // What a call may do unasked hangs on it, so it is no word of the journal's own.
        let known = self.offer.find(tool).map_or(EffectClass::External, |spec| spec.effect);
        if effect != known {
            return Err(format!("{id} is of another effect class than its tool"));
        }
        self.next.call = id.next();
        self.iteration.calls.push(id);
        let (wire_id, named, seq) = (wire.to_string(), tool.to_string(), record.seq);
        let one = ToolUse { id, wire_id, tool: named, arguments: arguments.to_string(), seq };
        if let Some(reply) = self.transcript.add_use(one) {
            self.context.grow_reply(reply);
        }
        self.calls.insert(id, ToolCall::proposed(id, wire, tool, arguments, effect, record.at));
        Ok(())
    }

    pub(crate) fn decide(&mut self, call: CallId, decision: &Decision, by: &By) -> Result<(), String> {
        let one = self.call_mut(call)?;
        match decision {
            Decision::AllowOnce | Decision::AllowRun | Decision::AllowTool | Decision::AllowRule(_) => one.allow(by),
            Decision::AllowUnboxed => {
                one.allow(by);
                one.is_unboxed = true;
            }
            Decision::Edit(arguments) => one.edit(arguments, by)?,
            Decision::Deny(text) => one.state = CallState::Denied { by: by.clone(), text: text.clone() },
        }
        let (signature, grant, tool) = (one.signature(), one.grant(), one.tool.clone());
        let By::Operator(_) = by else {
            if matches!(decision, Decision::Deny(_)) && self.progress.denied.contains_key(&signature) {
                *self.progress.refused.entry(signature).or_default() += 1;
            }
            return Ok(());
        };
        // Whoever decides has been told of them: they are why it was asked.
        self.progress.watched.clear();
        match decision {
            Decision::AllowOnce | Decision::AllowRule(_) | Decision::AllowUnboxed | Decision::Edit(_) => {
                self.progress.denials = 0
            }
            Decision::AllowTool => {
                self.progress.denials = 0;
                self.granted_tools.insert(tool);
            }
            Decision::AllowRun => {
                self.progress.denials = 0;
                self.progress.granted.insert(grant);
            }
            Decision::Deny(text) => {
                self.progress.denials += 1;
                self.progress.denied_elsewhere.remove(&signature);
                self.progress.granted.remove(&grant);
                self.progress.denied.insert(signature, text.clone());
            }
        }
        Ok(())
    }

    pub(crate) fn finish_call(&mut self, call: CallId, outcome: &ToolOutcome, record: &Record) -> Result<(), String> {
        let one = self.call_mut(call)?;
        if one.is_closed() {
            return Err(format!("{call} ended before"));
        }
        let ran = one.state == CallState::Running || matches!(one.state, CallState::OutcomeUnknown { .. });
        let claims_to_have_run =
            matches!(outcome.kind, OutcomeKind::Done | OutcomeKind::Failed | OutcomeKind::TimedOut);
        if claims_to_have_run && !ran && one.effect != EffectClass::Control {
            return Err(format!("{call} has a result but never ran"));
        }
        one.state = CallState::Closed(outcome.kind);
        one.error = outcome.class;
        one.since = record.at;
        let is_plan = one.tool == control::UPDATE_PLAN;
        let message = Message::ToolResult {
            call,
            title: one.title(),
            kind: outcome.kind,
            text: one.told(&outcome.text),
            bytes: outcome.bytes,
            took: outcome.took,
        };
        self.progress.watched.extend(named(&outcome.watched));
        let one = self.call_mut(call)?;
        let broke = (outcome.class == Some(ErrorClass::Fault)).then(|| one.tool.clone());
        if let Some(tool) = broke {
            *self.progress.faults.entry(tool).or_default() += 1;
        }
        self.answer(message, record);
        match outcome.kind {
            OutcomeKind::NotRun(ProblemKind::Malformed | ProblemKind::UnknownTool) => self.progress.malformed += 1,
            // A plan that can't be taken counts, but never parks the run by itself (docs/ENGINE.md §6.4).
            OutcomeKind::NotRun(ProblemKind::InvalidArguments) if is_plan => {
                let most = limits::MALFORMED.saturating_sub(1);
                self.progress.malformed = self.progress.malformed.max(most.min(self.progress.malformed + 1));
            }
            OutcomeKind::NotRun(ProblemKind::InvalidArguments) => self.progress.invalid += 1,
            OutcomeKind::NotRun(
                ProblemKind::Refused
                | ProblemKind::SecretInArguments
                | ProblemKind::Impossible
                | ProblemKind::OverBudget,
            )
            | OutcomeKind::Done
            | OutcomeKind::Failed
            | OutcomeKind::TimedOut
            | OutcomeKind::Cancelled
            | OutcomeKind::Denied
            | OutcomeKind::Unknown => {
                self.progress.malformed = 0;
                self.progress.invalid = 0;
            }
        }
        Ok(())
    }

    pub(crate) fn call_mut(&mut self, call: CallId) -> Result<&mut ToolCall, String> {
        self.calls.get_mut(&call).ok_or_else(|| format!("there is no call {call}"))
    }

    pub(crate) fn call_in(&mut self, call: CallId, record: &Record, stages: &[Stage]) -> Result<&mut ToolCall, String> {
        let one = self.call_mut(call)?;
        let stage = Stage::of(&one.state);
        if !stages.contains(&stage) {
            let fitting: Vec<&str> = stages.iter().map(|stage| stage.word()).collect();
            return Err(format!("{call} is {}, and must be {}", stage.word(), fitting.join(" or ")));
        }
        one.since = record.at;
        Ok(one)
    }
}

/// A call's state without what it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Proposed,
    Prepared,
    Awaiting,
    Approved,
    Denied,
    Running,
    Unknown,
    Closed,
}

impl Stage {
    fn word(self) -> &'static str {
        match self {
            Stage::Proposed => "proposed",
            Stage::Prepared => "prepared",
            Stage::Awaiting => "waiting for a decision",
            Stage::Approved => "allowed",
            Stage::Denied => "denied",
            Stage::Running => "running",
            Stage::Unknown => "of unknown outcome",
            Stage::Closed => "closed",
        }
    }

    fn of(state: &CallState) -> Stage {
        match state {
            CallState::Proposed => Stage::Proposed,
            CallState::Prepared => Stage::Prepared,
            CallState::Awaiting { .. } => Stage::Awaiting,
            CallState::Approved => Stage::Approved,
            CallState::Denied { .. } => Stage::Denied,
            CallState::Running => Stage::Running,
            CallState::OutcomeUnknown { .. } => Stage::Unknown,
            CallState::Closed(_) => Stage::Closed,
        }
    }
}
