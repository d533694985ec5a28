//! The state of a run: what its journal folds to. `fold.rs` says what each record changes.
//!
//! Cloning is cheap: the conversation and what the detectors have seen are shared, and the calls of a closed
//! iteration live on in the conversation only.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;

use rpds::VectorSync;
use serde::Deserialize;
use serde::Serialize;

use crate::domain::budget::Limit;
use crate::domain::budget::ReservationId;
use crate::domain::command::Control;
use crate::domain::command::Policy;
use crate::domain::context::Context;
use crate::domain::control;
use crate::domain::event::ClaimVerdict;
use crate::domain::event::Owner;
use crate::domain::event::OwnerMode;
use crate::domain::id::CallId;
use crate::domain::id::InterjectionId;
use crate::domain::id::ModelCallId;
use crate::domain::id::RunId;
use crate::domain::id::Seq;
use crate::domain::limits;
use crate::domain::lineage::Lineage;
use crate::domain::message::Transcript;
use crate::domain::model::Dialect;
use crate::domain::model::FailureClass;
use crate::domain::model::Offer;
use crate::domain::model::Purpose;
use crate::domain::money::MicroUsd;
use crate::domain::money::Price;
use crate::domain::plan::Plan;
use crate::domain::pool::Pool;
use crate::domain::pricing::Pricing;
use crate::domain::progress::Observation;
use crate::domain::progress::Progress;
use crate::domain::sandbox::Manner;
use crate::domain::status::Detector;
use crate::domain::status::ParkReason;
use crate::domain::status::Phase;
use crate::domain::status::Status;
use crate::domain::status::Verdict;
use crate::domain::status::Warning;
use crate::domain::terms::Check;
use crate::domain::terms::Terms;
use crate::domain::time::Span;
use crate::domain::time::Timestamp;
use crate::domain::tool::CallState;
use crate::domain::tool::Digest;
use crate::domain::tool::EffectClass;
use crate::domain::tool::ToolCall;
use crate::domain::trust::Trust;

/// One supervised attempt at a goal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Its name.
    pub id: RunId,
    /// The last record folded in.
    pub seq: Seq,
    /// When that was.
    pub at: Timestamp,
    /// When the run was created.
    pub created: Timestamp,
    /// What it was started with.
    #[serde(with = "crate::domain::stored::shared")]
    pub terms: Arc<Terms>,
    /// The tools of the terms and the control tools, as the model is offered them.
    #[serde(skip)]
    pub offer: Arc<Offer>,
    /// Where it stands.
    pub status: Status,
    /// Since when.
    pub status_since: Timestamp,
    /// The process that holds it, or held it last.
    pub owner: Option<Owner>,
    /// How often it was begun: 1, and one more for each retry after an end.
    pub attempt: u32,
    /// Where it branched off from another run, if it did.
    pub lineage: Option<Lineage>,
    /// The record since which it is driven here, where its journal, or that of a run that it branched off from, was
    /// brought: what stands before it was written elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub brought: Option<Seq>,
    /// The plan.
    pub plan: Plan,
    /// The conversation.
    #[serde(skip)]
    pub transcript: Transcript,
    /// What of it is sent.
    pub context: Context,
    /// The iteration that is open, or was open last.
    pub iteration: Iteration,
    /// Attempts at a first plan so far.
    pub decomposes: u32,
    /// One line for each closed iteration.
    #[serde(with = "crate::domain::stored::listed")]
    pub history: VectorSync<Closed>,
    /// The account.
    pub pool: Pool,
    /// The model call in flight.
    pub model_call: Option<ModelCall>,
    /// The calls of the open iteration.
    pub calls: BTreeMap<CallId, ToolCall>,
    /// How much it does unasked.
    pub trust: Trust,
    /// Whether a process has driven the run since its trust was set.
    pub trust_was_driven: bool,
    /// Tools that the operator allowed until the run ends.
    pub granted_tools: BTreeSet<String>,
    /// Detector windows and counters.
    pub progress: Progress,
    /// A failed model call is tried again then.
    pub retry_at: Option<Timestamp>,
    /// What the last failed model call met, until one succeeds.
    pub trouble: Option<Trouble>,
    /// Times in a row that the run parked because its provider did not answer.
    pub provider_waits: u32,
    /// What is known of the model's price.
    pub pricing: Pricing,
    /// What was missing when the run was to go on, until it goes on.
    pub lacks: Vec<String>,
    /// A request to stop that is not honoured yet.
    pub control: Option<Control>,
    /// What the operator said and the model was not told yet.
    pub interjections: Vec<Interjection>,
    /// The judgement on the last closed iteration.
    pub verdict: Option<Verdict>,
    /// The last stall, until a replan has answered it.
    pub stall: Option<Stall>,
    /// Changes of the plan that the model is told of at the start of the next iteration.
    pub plan_news: Vec<String>,
    /// Warnings that stand, each with its sentence; one about a stall until the next iteration is closed.
    #[serde(with = "crate::domain::stored::listed")]
    pub warnings: BTreeMap<Warning, String>,
    /// What the last reported input says about the size of tokens.
    pub estimate: Estimate,
    /// The next ids.
    pub next: NextIds,
}

/// One pass of the loop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Iteration {
    /// Its number, from 1; 0 before the first.
    pub n: u32,
    /// What it is for.
    pub phase: Phase,
    /// Whether it is still open.
    pub is_open: bool,
    /// When it began.
    pub started: Timestamp,
    /// The plan when it began.
    pub plan_before: Plan,
    /// The model call of this iteration and its attempts so far.
    pub model_call: Option<ReservationId>,
    /// Model calls that failed in a row.
    pub failures: u32,
    /// Replies that were not used because they were empty or cut off.
    pub discards: u32,
    /// Output to ask for, where the default was too little, in tokens.
    pub max_output: Option<u64>,
    /// Model calls whose text went in circles.
    pub degenerate: u32,
    /// Replies that the provider broke off to go on with, and that were gone on with.
    pub pauses: u32,
    /// Its plan was read from the text of the reply.
    pub planned_in_text: bool,
    /// The accepted reply.
    pub reply: Option<Reply>,
    /// Its calls in the model's order.
    pub calls: Vec<CallId>,
    /// The claim of being finished.
    pub claim: Option<Claim>,
    /// Checks that passed in this iteration.
    pub passed: Vec<usize>,
    /// The operator's words were delivered at its start.
    pub interjected: bool,
    /// What it showed, once observed.
    pub observation: Option<Observation>,
    /// What it cost so far.
    pub spent: MicroUsd,
    /// Tokens it used so far.
    pub tokens: u64,
}

/// What matters of an accepted reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    /// Its text.
    pub text: String,
    /// Whether the model, or its provider's filter, refused.
    pub is_refusal: bool,
    /// Whether it was cut off at the output limit.
    pub is_cut: bool,
}

/// A claim of being finished.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The call of `finish`; nothing for a text-only claim.
    pub call: Option<CallId>,
    /// Its summary.
    pub summary: String,
    /// How far it was looked into.
    pub stage: ClaimStage,
}

/// How far a claim was looked into.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClaimStage {
    /// So many checks passed; the next is due.
    Passed(usize),
    /// This check runs.
    Checking(usize),
    /// This check waits for the operator's word.
    Asking(usize),
    /// This check failed.
    CheckFailed {
        /// Its number.
        index: usize,
        /// What it said.
        detail: String,
    },
    /// It was judged.
    Judged(ClaimVerdict),
}

/// A model call in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelCall {
    /// Which, and which attempt.
    pub id: ReservationId,
    /// When it was started.
    pub started: Timestamp,
    /// Output asked for at most, in tokens.
    pub max_output: u64,
    /// What it is for.
    pub purpose: Purpose,
}

/// What a failed model call met.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trouble {
    /// Its class.
    pub class: FailureClass,
    /// The sentence for the operator.
    pub message: String,
    /// How long the provider asked to wait.
    pub retry_after: Option<Span>,
}

/// A stall that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stall {
    /// By what.
    pub detector: Detector,
    /// The diagnosis, for the model and for the operator.
    pub diagnosis: String,
}

/// Something that the operator said and the model was not told yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interjection {
    /// Its id.
    pub id: InterjectionId,
    /// What was said.
    pub text: String,
    /// When.
    pub at: Timestamp,
    /// When the model is told.
    pub policy: Policy,
}

/// A closed iteration in one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Closed {
    /// Its number.
    pub n: u32,
    /// What it was for.
    pub phase: Phase,
    /// When it was closed.
    pub at: Timestamp,
    /// What it cost.
    pub spent: MicroUsd,
    /// Tokens it used.
    pub tokens: u64,
    /// Calls it made.
    pub calls: u32,
    /// Whether it counted as progress.
    pub progress: bool,
}

/// What the provider's last report says about the size of our text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Estimate {
    /// Input tokens it reported.
    pub input: u64,
    /// Bytes of that request; 0 before the first report.
    pub bytes: u64,
    /// Safety factor on an estimate, in percent; learns from bills above their reservation.
    pub factor_percent: u64,
}

/// Counters of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextIds {
    /// For the next tool call.
    pub call: CallId,
    /// For the next model call.
    pub model_call: ModelCallId,
    /// For the next interjection.
    pub interjection: InterjectionId,
}

/// Something that the run can't go on without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// A call needs a decision.
    Decision,
    /// A call's outcome must be told.
    Outcome,
    /// A question must be answered.
    Answer,
}

impl Waits {
    /// The park reason that says so.
    pub fn reason(self) -> ParkReason {
        match self {
            Waits::Decision => ParkReason::Approval,
            Waits::Outcome => ParkReason::OutcomeUnknown,
            Waits::Answer => ParkReason::Question,
        }
    }
}

/// What can be done about a run that is stalled and has used up its replans.
pub const NEEDS_GRANT: &str =
    "say what to try, then resume and grant new replans (--grant-replans); or accept the work, or close the run";

impl Run {
    /// Whether the loop turns.
    pub fn is_running(&self) -> bool {
        self.status == Status::Running
    }

    /// Whether its model costs nothing, or its money is pretended: the ledger of all runs does not hear of it.
    pub fn is_free(&self) -> bool {
        self.terms.rehearsal || self.terms.model.dialect == Dialect::Scripted || self.pricing.price() == Price::FREE
    }

    /// Whether the run has ended.
    pub fn is_ended(&self) -> bool {
        self.status.is_end()
    }

    /// What can be done about the reason for which the run is parked, in one line.
    pub fn remedy(&self) -> Option<String> {
        let Status::Parked(reason) = &self.status else { return None };
        let is_settled = reason.is_settled(self.waiting_count());
        Some(if is_settled { "resume goes on".to_string() } else { self.remedy_of(reason) })
    }

    /// What can be done about a reason to park this run, in one line.
    pub fn remedy_of(&self, reason: &ParkReason) -> String {
        match (reason, &self.terms.model.key_variable) {
            (ParkReason::Stalled(_), _) if self.needs_grant() => NEEDS_GRANT.to_string(),
            (ParkReason::NotReady, _) if self.lacks_server() => "start the model's server, then resume".to_string(),
            (ParkReason::Verification, _) if self.plan.open().next().is_some() => {
                "todos are open: see to them, or say what is missing; then resume".to_string()
            }
            (ParkReason::Credentials, Some(variable)) => format!("set {variable} to a valid key, then resume"),
            (ParkReason::RateLimited { .. } | ParkReason::ProviderWait { .. }, _) if !self.waits_by_itself() => {
                "it has waited often enough; see whether the provider answers, then resume".to_string()
            }
            _ => reason.remedy().to_string(),
        }
    }

    /// Whether the last model call found no server on this machine.
    fn lacks_server(&self) -> bool {
        self.trouble.as_ref().is_some_and(|trouble| trouble.class == FailureClass::NoServer)
    }

    /// Whether a wait for the provider ends by itself once more.
    fn waits_by_itself(&self) -> bool {
        self.provider_waits <= limits::PROVIDER_WAITS
    }

    /// Whether its owner turns the loop, and not only records.
    pub fn is_driven(&self) -> bool {
        self.owner.as_ref().is_some_and(|owner| owner.mode == OwnerMode::Drives)
    }

    /// The calls of the open iteration in the model's order.
    pub fn ordered_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.iteration.calls.iter().filter_map(|id| self.calls.get(id))
    }

    /// Calls that run, as the journal says.
    pub fn running_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.calls.values().filter(|call| call.state == CallState::Running)
    }

    /// The check that runs, as the journal says.
    pub fn running_check(&self) -> Option<usize> {
        match self.iteration.claim.as_ref().map(|claim| &claim.stage) {
            Some(ClaimStage::Checking(index)) => Some(*index),
            Some(
                ClaimStage::Passed(_) | ClaimStage::Asking(_) | ClaimStage::CheckFailed { .. } | ClaimStage::Judged(_),
            )
            | None => None,
        }
    }

    /// The check that waits for the operator's word on the claim.
    pub fn confirming(&self) -> Option<usize> {
        match self.iteration.claim.as_ref().filter(|_| !self.is_ended()).map(|claim| &claim.stage) {
            Some(ClaimStage::Asking(index)) => Some(*index),
            Some(
                ClaimStage::Passed(_)
                | ClaimStage::Checking(_)
                | ClaimStage::CheckFailed { .. }
                | ClaimStage::Judged(_),
            )
            | None => None,
        }
    }

    /// What the operator's word on the claim is bound to: the question that waits, and the claim with the model call that
    /// made it, which no other claim of the run shares.
    pub fn claim_digest(&self) -> Option<Digest> {
        let index = self.confirming()?;
        let claim = self.iteration.claim.as_ref()?;
        let call = self.iteration.model_call.map(|id| id.call.to_string()).unwrap_or_default();
        let question = self.terms.checks.get(index).map(Check::question).unwrap_or_default();
        let parts = [call.as_str(), &index.to_string(), question, &claim.summary];
        Some(Digest::of_parts("tiller-claim-v1", parts.into_iter()))
    }

    /// Whether the operator must grant new replans before a stalled run can go on.
    pub fn needs_grant(&self) -> bool {
        matches!(self.status, Status::Parked(ParkReason::Stalled(_))) && self.progress.replans >= limits::REPLANS
    }

    /// Work calls whose reach is being found out.
    pub fn unprepared(&self) -> impl Iterator<Item = &ToolCall> {
        self.ordered_calls().filter(|call| call.state == CallState::Proposed && call.effect != EffectClass::Control)
    }

    /// The first open call in the model's order. A `finish` is answered last, so it is never the head.
    pub fn head(&self) -> Option<&ToolCall> {
        self.ordered_calls().find(|call| !call.is_closed() && call.tool != control::FINISH)
    }

    /// The `finish` call that counts: the last one.
    pub fn open_finish(&self) -> Option<&ToolCall> {
        self.ordered_calls().filter(|call| !call.is_closed() && call.tool == control::FINISH).last()
    }

    /// A `finish` call that is followed by another one.
    pub fn superseded_finish(&self) -> Option<&ToolCall> {
        let last = self.open_finish()?.id;
        self.ordered_calls().find(|call| !call.is_closed() && call.tool == control::FINISH && call.id != last)
    }

    /// Whether anything is in flight, as the journal says.
    pub fn is_busy(&self) -> bool {
        self.model_call.is_some() || self.running_calls().next().is_some() || self.running_check().is_some()
    }

    /// What the operator is waited for, in the model's order. The first of them holds up the run.
    pub fn waiting(&self) -> Vec<(&ToolCall, Waits)> {
        self.ordered_calls().filter_map(|call| self.waits(call).map(|waits| (call, waits))).collect()
    }

    /// How many things the operator is waited for: calls, and a claim that a check asks about.
    pub fn waiting_count(&self) -> usize {
        self.waiting().len() + usize::from(self.confirming().is_some())
    }

    /// What this call waits for from the operator.
    pub fn waits(&self, call: &ToolCall) -> Option<Waits> {
        match &call.state {
            CallState::Awaiting { .. } => Some(Waits::Decision),
            CallState::OutcomeUnknown { .. } if !self.settles_itself(call) => Some(Waits::Outcome),
            CallState::Proposed if call.tool == control::ASK_OPERATOR => Some(Waits::Answer),
            CallState::OutcomeUnknown { .. }
            | CallState::Proposed
            | CallState::Prepared
            | CallState::Approved
            | CallState::Denied { .. }
            | CallState::Running
            | CallState::Closed(_) => None,
        }
    }

    /// Whether an unknown outcome settles without the operator: a read, and a shell line that ran as one, is run again
    /// once; a file write is told by the file's content (docs/ENGINE.md §10.8).
    pub fn settles_itself(&self, call: &ToolCall) -> bool {
        match (&call.state, call.effect) {
            (CallState::OutcomeUnknown { .. }, EffectClass::Read | EffectClass::Idempotent) => call.attempts < 2,
            (CallState::OutcomeUnknown { .. }, _) if Manner::of(call) == Manner::Reading => call.attempts < 2,
            (CallState::OutcomeUnknown { probed }, EffectClass::WriteFile) => !probed,
            _ => false,
        }
    }

    /// Whether the operator said something that the rest of the reply's calls are not started for.
    pub fn is_steered(&self) -> bool {
        self.interjections.iter().any(|one| one.policy.steers())
    }

    /// Whether the operator said something that the model must be told before the run may end.
    pub fn must_hear(&self) -> bool {
        self.interjections.iter().any(|one| one.policy != Policy::AfterDone)
    }

    /// When the driver must look at the run again without an input.
    pub fn wakes_at(&self) -> Option<Timestamp> {
        match &self.status {
            // A deadline ends a wait; where something is under way, that ends first.
            Status::Running => self.retry_at.map(|at| match self.pool.limits().deadline {
                Limit::At(deadline) => at.min(Timestamp(deadline)),
                Limit::Unlimited => at,
            }),
            Status::Parked(ParkReason::RateLimited { until } | ParkReason::ProviderWait { until }) => {
                self.waits_by_itself().then_some(*until)
            }
            Status::Queued | Status::Parked(_) | Status::Completed(_) | Status::Failed(_) | Status::Cancelled => None,
        }
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
