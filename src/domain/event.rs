//! All that can happen in a run. Past tense, for ever: a variant is never changed, only added (docs/JOURNAL.md).

use serde::Deserialize;
use serde::Serialize;

use crate::domain::approval::By;
use crate::domain::approval::Decision;
use crate::domain::approval::Resolution;
use crate::domain::budget::Axis;
use crate::domain::budget::Charge;
use crate::domain::budget::Limit;
use crate::domain::budget::Reservation;
use crate::domain::budget::ReservationId;
use crate::domain::command::Control;
use crate::domain::command::Policy;
use crate::domain::context::Author;
use crate::domain::context::Elided;
use crate::domain::id::CallId;
use crate::domain::id::ClientId;
use crate::domain::id::InterjectionId;
use crate::domain::id::ModelCallId;
use crate::domain::id::RunId;
use crate::domain::id::Seq;
use crate::domain::lineage::Here;
use crate::domain::model::ModelFailure;
use crate::domain::model::ModelReply;
use crate::domain::model::Purpose;
use crate::domain::money::MicroUsd;
use crate::domain::money::Price;
use crate::domain::plan::Plan;
use crate::domain::progress::Observation;
use crate::domain::status::Detector;
use crate::domain::status::Phase;
use crate::domain::status::Status;
use crate::domain::status::Verdict;
use crate::domain::status::Warning;
use crate::domain::terms::Terms;
use crate::domain::time::Span;
use crate::domain::time::Timestamp;
use crate::domain::tool::Digest;
use crate::domain::tool::EffectClass;
use crate::domain::tool::Facts;
use crate::domain::tool::FileWrite;
use crate::domain::tool::Probe;
use crate::domain::tool::ToolOutcome;
use crate::domain::trust::Trust;

/// The format of records that this version writes.
pub const FORMAT_VERSION: u32 = 1;

/// An event with its place and time, as stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Its position, dense from 1.
    pub seq: Seq,
    /// Wall-clock time, for people.
    pub at: Timestamp,
    /// Active time of the run up to here.
    pub active: Span,
    /// What happened.
    #[serde(with = "crate::domain::tagged")]
    pub event: Event,
}

/// What happened. Written and read as `domain/tagged.rs` says, with its name under `type`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// The run was created. Always the first record.
    RunCreated {
        /// What it was started with.
        terms: Box<Terms>,
    },
    /// A process took the run.
    OwnerAcquired {
        /// Which.
        owner: Owner,
    },
    /// The status changed.
    StatusChanged {
        /// To this.
        status: Status,
        /// By whom, where a person asked for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<ClientId>,
    },
    /// The operator went back to the end of an iteration: what came after it is hidden, not removed. The run is parked,
    /// paused (docs/ENGINE.md §15).
    Rewound {
        /// That iteration.
        to: u32,
        /// The record that closed it.
        to_seq: Seq,
        /// Through this client.
        by: ClientId,
    },
    /// A file is about to be put back as it was before a call that was gone back behind.
    RestoreStarted {
        /// The call that wrote it.
        call: CallId,
        /// The file, before and after that call.
        write: Box<FileWrite>,
        /// Through this client.
        by: ClientId,
    },
    /// It was put back, or not.
    RestoreFinished {
        /// The call that wrote it.
        call: CallId,
        /// The file.
        path: String,
        /// Why it is not as it was before the call, if it is not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<String>,
    },
    /// The run is a fork from here on: what stands before is a copy of another run's beginning.
    Forked {
        /// The run that it branched off from.
        parent: RunId,
        /// The iteration that the record before this one closed.
        iteration: u32,
        /// What this run is to reach, and how far it may go.
        terms: Box<Terms>,
        /// All that was copied was written elsewhere: the parent's journal was brought, and what says so stands behind it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        brought: bool,
        /// Through this client.
        by: ClientId,
    },
    /// The journal up to here was brought from elsewhere: what was allowed there is not allowed here.
    Imported {
        /// Through this client.
        by: ClientId,
        /// What holds here in the place of what it says. Earlier versions believed it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        here: Option<Here>,
    },
    /// The operator asked the run to stop.
    ControlRequested {
        /// How.
        control: Control,
        /// Through this client.
        by: ClientId,
    },
    /// The process before this one died while the run was running.
    Recovered {
        /// What was under way and is lost.
        findings: Vec<Finding>,
    },
    /// Before a start or a resume something was found to be missing; the run is parked for the first of it.
    PreflightFailed {
        /// Each in a sentence, first things first.
        lacks: Vec<String>,
    },
    /// An iteration began.
    IterationStarted {
        /// Its number, dense from 1.
        n: u32,
        /// What it is for.
        phase: Phase,
    },
    /// The operator said something.
    InterjectionQueued {
        /// Its id.
        id: InterjectionId,
        /// What was said.
        text: String,
        /// Through this client.
        by: ClientId,
        /// When the agent is told.
        #[serde(default, skip_serializing_if = "Policy::is_next")]
        policy: Policy,
    },
    /// It became part of the conversation.
    InterjectionDelivered {
        /// Its id.
        id: InterjectionId,
    },
    /// The operator took it back before that.
    InterjectionWithdrawn {
        /// Its id.
        id: InterjectionId,
        /// Through this client.
        by: ClientId,
    },
    /// The worst case of a model call was set aside.
    BudgetReserved {
        /// How much, for what.
        reservation: Reservation,
    },
    /// A reservation was replaced by its charge.
    BudgetSettled {
        /// Which reservation.
        id: ReservationId,
        /// The charge.
        charge: Charge,
    },
    /// The operator set a new limit.
    BudgetRaised {
        /// On this axis.
        axis: Axis,
        /// The new limit.
        limit: Limit,
        /// Through this client.
        by: ClientId,
    },
    /// The operator put an actual figure in the place of a charge that nobody could verify.
    BudgetCorrected {
        /// Of which reservation.
        id: ReservationId,
        /// What it cost.
        amount: MicroUsd,
        /// Through this client.
        by: ClientId,
    },
    /// The operator said what the model costs, or to go on without knowing.
    PriceChosen {
        /// The price; nothing means that money is not counted.
        price: Option<Price>,
        /// Through this client.
        by: ClientId,
    },
    /// A request goes to the model.
    ModelCallStarted {
        /// Which call.
        call: ModelCallId,
        /// Which attempt, from 1.
        attempt: u32,
        /// SHA-256 of what is asked, shortened.
        digest: String,
        /// Output asked for at most, in tokens.
        max_output: u64,
        /// What it is for.
        #[serde(default, skip_serializing_if = "Purpose::is_turn")]
        purpose: Purpose,
    },
    /// A whole reply came.
    ModelCallFinished {
        /// Which call.
        call: ModelCallId,
        /// The reply.
        reply: Box<ModelReply>,
        /// Why it is not used, if it is not: empty, or cut off.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        discarded: Option<String>,
    },
    /// No whole reply came.
    ModelCallFailed {
        /// Which call.
        call: ModelCallId,
        /// What went wrong.
        failure: Box<ModelFailure>,
    },
    /// Texts of old calls are left out of the requests from now on.
    ContextPruned {
        /// Which, and what they are found by.
        refs: Vec<Elided>,
    },
    /// A summary stands for older iterations in the requests from now on.
    ContextCompacted {
        /// The first iteration that it is about, besides those of the summary before.
        from: u32,
        /// The last one.
        to: u32,
        /// The summary.
        summary: String,
        /// Who wrote it.
        author: Author,
        /// Bytes of the conversation as it was sent before.
        before: u64,
        /// And after.
        after: u64,
    },
    /// The model call will be tried again.
    RetryScheduled {
        /// Not before then.
        at: Timestamp,
        /// Why.
        why: String,
    },
    /// The model asked for a tool.
    ToolCallProposed {
        /// The engine's id.
        call: CallId,
        /// The provider's id, or the engine's where there was none.
        wire_id: String,
        /// The tool.
        tool: String,
        /// The arguments, raw: they never change.
        arguments: String,
        /// What the tool may change.
        effect: EffectClass,
    },
    /// What a call would touch was found out.
    ToolCallPrepared {
        /// Which call.
        call: CallId,
        /// What it would touch.
        facts: Box<Facts>,
    },
    /// A call waits for the operator.
    ApprovalRequested {
        /// Which call.
        call: CallId,
        /// Why it is asked.
        why: String,
        /// What a decision is bound to.
        digest: Digest,
    },
    /// A call was decided about.
    ApprovalDecided {
        /// Which call.
        call: CallId,
        /// The bytes that were decided about.
        digest: Digest,
        /// What was decided.
        decision: Decision,
        /// By whom.
        by: By,
    },
    /// A decision, or a request for one, no longer holds.
    ApprovalInvalidated {
        /// Which call.
        call: CallId,
        /// Why.
        why: String,
    },
    /// The run does more, or less, unasked from here on.
    TrustChanged {
        /// How much.
        trust: Trust,
        /// By whom: the operator, or a rule.
        by: By,
    },
    /// A call runs.
    ToolCallStarted {
        /// Which call.
        call: CallId,
        /// Which attempt, from 1.
        attempt: u32,
    },
    /// A call ended.
    ToolCallFinished {
        /// Which call.
        call: CallId,
        /// How.
        outcome: ToolOutcome,
    },
    /// The traces of a call whose outcome is unknown were looked at.
    ToolCallProbed {
        /// Which call.
        call: CallId,
        /// What they tell.
        probe: Probe,
    },
    /// The operator said what became of it.
    ToolOutcomeResolved {
        /// Which call.
        call: CallId,
        /// What they know.
        resolution: Resolution,
        /// Through this client.
        by: ClientId,
    },
    /// The operator answered a question.
    QuestionAnswered {
        /// The call of `ask_operator`.
        call: CallId,
        /// The answer.
        text: String,
        /// Through this client.
        by: ClientId,
    },
    /// The plan changed.
    PlanUpdated {
        /// The plan as it stands now.
        plan: Plan,
        /// The operator who changed it; nothing when it was the model or the engine.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<ClientId>,
        /// What the model is told of it at the start of the next iteration; empty when it knows already.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        told: String,
    },
    /// The model claims that the goal is reached.
    DoneClaimed {
        /// The call of `finish`; nothing for a text-only claim.
        call: Option<CallId>,
        /// Its summary.
        summary: String,
    },
    /// A check runs.
    CheckStarted {
        /// Its number in the terms, from 0.
        index: usize,
    },
    /// A check ended.
    AcceptanceChecked {
        /// Its number.
        index: usize,
        /// Whether it passed.
        passed: bool,
        /// What it said.
        detail: String,
    },
    /// A check was ended before it could tell; the checks are run again from the first.
    CheckInterrupted {
        /// Its number.
        index: usize,
    },
    /// A claim was judged.
    ClaimJudged {
        /// How.
        verdict: ClaimVerdict,
        /// The sentence for the model.
        text: String,
    },
    /// The operator is asked whether the claim is right.
    ConfirmationRequested {
        /// The number of the check that asks.
        index: usize,
    },
    /// The operator said whether it is.
    ConfirmationGiven {
        /// The number of the check.
        index: usize,
        /// Whether it is.
        confirmed: bool,
        /// Their words, possibly empty.
        text: String,
        /// Through this client.
        by: ClientId,
    },
    /// The operator granted new replans to a stalled run.
    ReplansGranted {
        /// Through this client.
        by: ClientId,
    },
    /// What the iteration showed.
    ProgressObserved {
        /// The observation.
        observation: Box<Observation>,
    },
    /// Nothing moves.
    StallDetected {
        /// Which detector says so.
        detector: Detector,
        /// The diagnosis, for the model and for the operator.
        diagnosis: String,
    },
    /// Something is near its end; it resets nothing (docs/ENGINE.md §7.4, §8.1).
    Warned {
        /// What.
        what: Warning,
        /// The sentence.
        text: String,
    },
    /// An iteration ended.
    IterationClosed {
        /// Its number.
        n: u32,
        /// What follows.
        verdict: Verdict,
    },
}

impl Event {
    /// The plan changed by the model itself, or by the engine.
    pub fn planned(plan: Plan) -> Event {
        Event::PlanUpdated { plan, by: None, told: String::new() }
    }

    /// The event's name, as its record has it.
    pub fn name(&self) -> &'static str {
        match self {
            Event::RunCreated { .. } => "run_created",
            Event::OwnerAcquired { .. } => "owner_acquired",
            Event::StatusChanged { .. } => "status_changed",
            Event::Rewound { .. } => "rewound",
            Event::RestoreStarted { .. } => "restore_started",
            Event::RestoreFinished { .. } => "restore_finished",
            Event::Forked { .. } => "forked",
            Event::Imported { .. } => "imported",
            Event::ControlRequested { .. } => "control_requested",
            Event::Recovered { .. } => "recovered",
            Event::PreflightFailed { .. } => "preflight_failed",
            Event::IterationStarted { .. } => "iteration_started",
            Event::InterjectionQueued { .. } => "interjection_queued",
            Event::InterjectionDelivered { .. } => "interjection_delivered",
            Event::InterjectionWithdrawn { .. } => "interjection_withdrawn",
            Event::BudgetReserved { .. } => "budget_reserved",
            Event::BudgetSettled { .. } => "budget_settled",
            Event::BudgetRaised { .. } => "budget_raised",
            Event::BudgetCorrected { .. } => "budget_corrected",
            Event::PriceChosen { .. } => "price_chosen",
            Event::ModelCallStarted { .. } => "model_call_started",
            Event::ModelCallFinished { .. } => "model_call_finished",
            Event::ModelCallFailed { .. } => "model_call_failed",
            Event::ContextPruned { .. } => "context_pruned",
            Event::ContextCompacted { .. } => "context_compacted",
            Event::RetryScheduled { .. } => "retry_scheduled",
            Event::ToolCallProposed { .. } => "tool_call_proposed",
            Event::ToolCallPrepared { .. } => "tool_call_prepared",
            Event::ApprovalRequested { .. } => "approval_requested",
            Event::ApprovalDecided { .. } => "approval_decided",
            Event::ApprovalInvalidated { .. } => "approval_invalidated",
            Event::TrustChanged { .. } => "trust_changed",
            Event::ToolCallStarted { .. } => "tool_call_started",
            Event::ToolCallFinished { .. } => "tool_call_finished",
            Event::ToolCallProbed { .. } => "tool_call_probed",
            Event::ToolOutcomeResolved { .. } => "tool_outcome_resolved",
            Event::QuestionAnswered { .. } => "question_answered",
            Event::PlanUpdated { .. } => "plan_updated",
            Event::DoneClaimed { .. } => "done_claimed",
            Event::CheckStarted { .. } => "check_started",
            Event::AcceptanceChecked { .. } => "acceptance_checked",
            Event::CheckInterrupted { .. } => "check_interrupted",
            Event::ClaimJudged { .. } => "claim_judged",
            Event::ConfirmationRequested { .. } => "confirmation_requested",
            Event::ConfirmationGiven { .. } => "confirmation_given",
            Event::ReplansGranted { .. } => "replans_granted",
            Event::ProgressObserved { .. } => "progress_observed",
            Event::StallDetected { .. } => "stall_detected",
            Event::Warned { .. } => "warned",
            Event::IterationClosed { .. } => "iteration_closed",
        }
    }
}

/// A process that holds a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Its process id.
    pub pid: u32,
    /// Name of the machine.
    pub host: String,
    /// Version of tiller.
    pub version: String,
    /// What it does with the run.
    pub mode: OwnerMode,
}

/// What an owner does with a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OwnerMode {
    /// Turns the loop.
    Drives,
    /// Records one command and leaves.
    Records,
}

/// Something that was under way when a process died.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// A model call; its reservation is charged in full.
    ModelCallLost(ModelCallId),
    /// A tool call; nobody knows whether it happened.
    ToolCallLost(CallId),
    /// A check; it is run again.
    CheckLost(usize),
}

/// How a claim was judged (docs/ENGINE.md §7.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimVerdict {
    /// All checks passed.
    Verified,
    /// There are no checks.
    Unverified,
    /// Something is missing. Counts towards `limits::CLAIMS`.
    Rejected,
    /// Not judged, because the operator has spoken.
    Postponed,
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::domain::tagged;

    #[test]
    fn the_name_is_the_tag_of_the_record() {
        let id = InterjectionId(1);
        let by = ClientId("c".to_string());
        let events = [
            Event::Recovered { findings: Vec::new() },
            Event::InterjectionQueued { id, text: String::new(), by, policy: Policy::Next },
            Event::CheckStarted { index: 0 },
        ];
        for event in events {
            let written = tagged::serialize(&event, serde_json::value::Serializer).unwrap();
            assert_eq!(written["type"], event.name());
        }
    }
}
