//! Where a run stands: statuses, phases, reasons with their remedies (docs/ENGINE.md §3).

use serde::Deserialize;
use serde::Serialize;

use crate::domain::budget::Axis;
use crate::domain::money::MicroUsd;
use crate::domain::time::Timestamp;
use crate::domain::tool::ErrorClass;

/// What an iteration is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Make the first plan.
    Decompose,
    /// Work on it.
    Pursue,
    /// Change it, because nothing moved.
    Replan,
    /// Say where the work stands, before the run parks at a limit.
    WrapUp,
}

impl Phase {
    /// The phase as one word.
    pub fn word(self) -> &'static str {
        match self {
            Phase::Decompose => "decompose",
            Phase::Pursue => "pursue",
            Phase::Replan => "replan",
            Phase::WrapUp => "wrap up",
        }
    }
}

/// The state of a run. The last three are the end of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Created, not begun.
    Queued,
    /// The loop turns.
    Running,
    /// Stopped durably, for a reason that can be cleared.
    Parked(ParkReason),
    /// The goal is reached, as far as this says.
    Completed(Finish),
    /// It can't go on.
    Failed(Failure),
    /// The operator cancelled it.
    Cancelled,
}

impl Status {
    /// Whether the run has ended.
    pub fn is_end(&self) -> bool {
        match self {
            Status::Completed(_) | Status::Failed(_) | Status::Cancelled => true,
            Status::Queued | Status::Running | Status::Parked(_) => false,
        }
    }

    /// What can be done with a run that has ended, in one line.
    pub fn way_on(&self) -> Option<&'static str> {
        match self {
            Status::Completed(_) => {
                Some("it is never opened again; `tiller fork RUN --goal TEXT` goes on from its end")
            }
            Status::Failed(_) | Status::Cancelled => Some(
                "`tiller retry RUN` takes it up again, `tiller rewind RUN N` goes back, `tiller fork RUN` branches off",
            ),
            Status::Queued | Status::Running | Status::Parked(_) => None,
        }
    }

    /// The status as it is: a run that no process holds does not run, whatever its journal says.
    pub fn as_held(&self, is_held: bool) -> Status {
        match self {
            Status::Running if !is_held => Status::Parked(ParkReason::Interrupted),
            Status::Queued
            | Status::Running
            | Status::Parked(_)
            | Status::Completed(_)
            | Status::Failed(_)
            | Status::Cancelled => self.clone(),
        }
    }

    /// The status as one word.
    pub fn word(&self) -> &'static str {
        match self {
            Status::Queued => "queued",
            Status::Running => "running",
            Status::Parked(_) => "parked",
            Status::Completed(_) => "completed",
            Status::Failed(_) => "failed",
            Status::Cancelled => "cancelled",
        }
    }

    /// The status with its reason, as it stands when so many things wait for the operator.
    pub fn phrase_now(&self, waiting: usize) -> String {
        match self {
            Status::Parked(reason) => format!("parked: {}", reason.phrase_now(waiting)),
            Status::Queued | Status::Running | Status::Cancelled | Status::Completed(_) | Status::Failed(_) => {
                self.phrase()
            }
        }
    }

    /// The status with its reason: `parked: budget (cost)`.
    pub fn phrase(&self) -> String {
        match self {
            Status::Queued | Status::Running | Status::Cancelled => self.word().to_string(),
            Status::Parked(reason) => format!("parked: {}", reason.phrase()),
            Status::Completed(finish) => format!("completed: {}", finish.phrase()),
            Status::Failed(failure) => format!("failed: {}", failure.phrase()),
        }
    }
}

/// Why a run is parked. Each has a remedy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ParkReason {
    /// A call waits for the operator.
    Approval,
    /// A call may or may not have happened.
    OutcomeUnknown,
    /// The model asked something.
    Question,
    /// The same error of the system came again and again: only the operator can help.
    Escalated(ErrorClass),
    /// A check asks the operator whether the claim is right.
    Confirm,
    /// The operator denied several calls in a row.
    DenyBreaker,
    /// The operator was asked about many calls in a short time.
    AskBreaker,
    /// A limit is reached.
    Budget(Axis),
    /// All runs together may spend no more for now.
    DailyBudget {
        /// What is left of the last 24 hours' limit.
        left: MicroUsd,
        /// When more is free again, if nothing else is spent.
        until: Timestamp,
    },
    /// Nothing moves, and replanning did not help.
    Stalled(Detector),
    /// Claims of being finished were rejected too often.
    Verification,
    /// The conversation no longer fits the model.
    ContextExhausted,
    /// The model's output could not be used, several times.
    ModelOutput,
    /// The model, or its provider's filter, refused.
    Refused,
    /// No key, or not a valid one.
    Credentials,
    /// The provider wants money.
    Billing,
    /// The provider does not allow it.
    Permission,
    /// The model or a parameter is unknown to the provider.
    ModelConfig,
    /// Nobody knows what the model costs.
    PriceUnknown,
    /// The provider asked to wait.
    RateLimited {
        /// Until then.
        until: Timestamp,
    },
    /// The provider does not answer.
    ProviderWait {
        /// It is tried again then.
        until: Timestamp,
    },
    /// The model call failed twice in a way that nobody knows.
    Unexplained,
    /// Something that a run needs on this machine is missing.
    NotReady,
    /// The store could not be written.
    Storage,
    /// The process that ran it is gone.
    Interrupted,
    /// The operator paused it.
    Paused,
    /// The operator left.
    Shutdown,
    /// It was recovered several times without getting further.
    EnginePanic,
}

impl ParkReason {
    /// The reason in a few words.
    pub fn phrase(&self) -> String {
        let fixed = match self {
            ParkReason::Approval => "waiting for approval",
            ParkReason::OutcomeUnknown => "outcome unknown",
            ParkReason::Question => "question",
            ParkReason::Escalated(class) => return format!("blocked ({})", class.phrase()),
            ParkReason::Confirm => "waiting for your word on the claim",
            ParkReason::DenyBreaker => "denied several times",
            ParkReason::AskBreaker => "asked too often",
            ParkReason::Budget(axis) => return format!("budget ({})", axis.word()),
            ParkReason::DailyBudget { left, .. } => return format!("daily budget ({} left)", left.exact()),
            ParkReason::Stalled(detector) => return format!("stalled ({})", detector.phrase()),
            ParkReason::Verification => "claims rejected",
            ParkReason::ContextExhausted => "context exhausted",
            ParkReason::ModelOutput => "model output unusable",
            ParkReason::Refused => "model refused",
            ParkReason::Credentials => "credentials",
            ParkReason::Billing => "billing",
            ParkReason::Permission => "permission",
            ParkReason::ModelConfig => "model configuration",
            ParkReason::PriceUnknown => "price unknown",
            ParkReason::RateLimited { .. } => "rate limited",
            ParkReason::ProviderWait { .. } => "provider does not answer",
            ParkReason::Unexplained => "unknown error",
            ParkReason::NotReady => "not ready",
            ParkReason::Storage => "storage",
            ParkReason::Interrupted => "interrupted",
            ParkReason::Paused => "paused",
            ParkReason::Shutdown => "left",
            ParkReason::EnginePanic => "recovered too often",
        };
        fixed.to_string()
    }

    /// Whether it was a wait for the operator alone and nothing waits any more, since so many things do. That is so after
    /// an order to a run that nobody drives, and after an import.
    pub fn is_settled(&self, waiting: usize) -> bool {
        let asks = matches!(
            self,
            ParkReason::Approval | ParkReason::OutcomeUnknown | ParkReason::Question | ParkReason::Confirm
        );
        asks && waiting == 0
    }

    /// The reason in a few words, as it stands when so many things wait for the operator.
    pub fn phrase_now(&self, waiting: usize) -> String {
        if self.is_settled(waiting) { "nothing waits for you".to_string() } else { self.phrase() }
    }

    /// What the operator can do about it, in one line.
    pub fn remedy(&self) -> &'static str {
        match self {
            ParkReason::Approval => "allow or deny the call that waits",
            ParkReason::OutcomeUnknown => "say what became of the call: it happened, it did not, run it again, skip it",
            ParkReason::Question => "answer the question",
            ParkReason::Escalated(_) => "see to what the last calls lack, or say what to do instead, then resume",
            ParkReason::Confirm => "say whether the claim is right: yes, or no and why",
            ParkReason::DenyBreaker => "say what to do instead, then resume",
            ParkReason::AskBreaker => {
                "say what to do instead, or allow by a rule or for the run what is harmless; then resume"
            }
            ParkReason::Budget(Axis::Deadline) => "set a later deadline, then resume; nothing is redone",
            ParkReason::Budget(_) => "raise the limit, then resume; nothing is redone",
            ParkReason::DailyBudget { .. } => {
                "wait until the last 24 hours have cost less, or raise budget.daily in tiller.toml; then resume"
            }
            ParkReason::Stalled(_) => "say what to try, then resume",
            ParkReason::Verification => "look at why it was rejected; say what is missing, or resume",
            ParkReason::ContextExhausted => {
                "start a new run with a narrower goal or a larger window; where older work can still be left out, resume \
                 does that"
            }
            ParkReason::ModelOutput => "resume to try again, or start with another model",
            ParkReason::Refused => "say it differently, then resume",
            ParkReason::Credentials => "set the key of the provider, then resume",
            ParkReason::Billing => "see to the account at the provider, then resume",
            ParkReason::Permission => "see to the rights of the key at the provider, then resume",
            ParkReason::ModelConfig => "correct the model in tiller.toml and start anew, or resume to try again",
            ParkReason::PriceUnknown => "say what the model costs, or to go on without counting money; then resume",
            ParkReason::RateLimited { .. } | ParkReason::ProviderWait { .. } => {
                "it goes on by itself then; resume tries at once"
            }
            ParkReason::Unexplained => "see what it said, then resume to try again",
            ParkReason::NotReady => "see to what is missing, then resume",
            ParkReason::Storage => "see to what the disk says (free space, where there is none), then resume",
            ParkReason::Interrupted | ParkReason::Paused | ParkReason::Shutdown => "resume",
            ParkReason::EnginePanic => "look at the log file, then resume",
        }
    }
}

/// Something that a run needs and has not, found before a start or a resume (docs/ENGINE.md §14.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lack {
    /// The reason to park for.
    pub reason: ParkReason,
    /// What is missing and what to do, in a sentence without its end.
    pub sentence: String,
}

/// How a run was completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// All checks passed.
    Verified,
    /// There were no checks.
    AcceptedUnverified,
    /// The operator took the work as it is.
    AcceptedByOperator,
}

impl Finish {
    /// In a few words.
    pub fn phrase(self) -> &'static str {
        match self {
            Finish::Verified => "verified",
            Finish::AcceptedUnverified => "claimed, not verified",
            Finish::AcceptedByOperator => "accepted by operator",
        }
    }
}

/// Why a run failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// The provider rejects the conversation itself. In journals of before, also that it was out of order.
    Protocol,
    /// The conversation was out of order and was not sent (docs/ENGINE.md §14.3); what is wrong, in a sentence.
    OutOfOrder(String),
    /// The operator closed it as failed.
    ClosedByOperator,
}

impl Failure {
    /// In a few words.
    pub fn phrase(&self) -> String {
        match self {
            Failure::Protocol => "the provider rejects the conversation".to_string(),
            Failure::OutOfOrder(what) => {
                format!("the conversation is out of order, and was not sent; this is a bug of tiller: {what}")
            }
            Failure::ClosedByOperator => "closed by operator".to_string(),
        }
    }
}

/// What noticed that nothing moves (docs/ENGINE.md §7.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Detector {
    /// N: iterations without progress.
    NoProgress,
    /// R: the same call with the same result.
    Repeat,
    /// P: the same call again and again, with changing results.
    Polling,
    /// C: the same few iterations in a circle.
    Cycle,
    /// M: the same text again.
    SameText,
    /// W: no todo moved and nothing new was written, for long.
    Unmoved,
}

impl Detector {
    /// In a few words.
    pub fn phrase(self) -> &'static str {
        match self {
            Detector::NoProgress => "no progress",
            Detector::Repeat => "the same call, the same result",
            Detector::Polling => "the same call again and again",
            Detector::Cycle => "going in a circle",
            Detector::SameText => "the same text again",
            Detector::Unmoved => "no todo moved",
        }
    }
}

/// What is near its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Warning {
    /// A detector is one short of firing.
    Stall(Detector),
    /// Four fifths of a limit are used.
    Budget(Axis),
}

impl Warning {
    /// In a few words.
    pub fn phrase(self) -> String {
        match self {
            Warning::Budget(axis) => format!("limit of {}", axis.word()),
            Warning::Stall(detector) => format!("one short of a stall: {}", detector.phrase()),
        }
    }
}

/// An axis of the verdict that was true (docs/ENGINE.md §5.4).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fired {
    /// The goal.
    Finish(Finish),
    /// A pause that was asked for meanwhile.
    Paused,
    /// The operator left meanwhile.
    Shutdown,
    /// The same error, again and again.
    Escalated(ErrorClass),
    /// The operator denied too often.
    DenyBreaker,
    /// Claims were rejected too often.
    Verification,
    /// A budget.
    Budget(Axis),
    /// Malformed output.
    ModelOutput,
    /// A refusal of the model.
    Refused,
    /// A stall.
    Stalled(Detector),
}

impl Fired {
    /// In a few words.
    pub fn phrase(&self) -> String {
        match self {
            Fired::Finish(finish) => finish.phrase().to_string(),
            Fired::Paused => ParkReason::Paused.phrase(),
            Fired::Shutdown => ParkReason::Shutdown.phrase(),
            Fired::Escalated(class) => ParkReason::Escalated(*class).phrase(),
            Fired::DenyBreaker => ParkReason::DenyBreaker.phrase(),
            Fired::Verification => ParkReason::Verification.phrase(),
            Fired::Budget(axis) => ParkReason::Budget(*axis).phrase(),
            Fired::ModelOutput => ParkReason::ModelOutput.phrase(),
            Fired::Refused => ParkReason::Refused.phrase(),
            Fired::Stalled(detector) => ParkReason::Stalled(*detector).phrase(),
        }
    }
}

/// What follows from an iteration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Course {
    /// The next iteration.
    Continue,
    /// The next iteration, to change the plan.
    Replan,
    /// One more iteration, to say where the work stands; then the run parks for this limit.
    WrapUp(Axis),
    /// Stop, with a reason.
    Park(ParkReason),
    /// The end.
    Complete(Finish),
}

/// The judgement on an iteration: what follows, and every axis that was true, first by precedence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// What follows; records call it `action`.
    pub action: Course,
    /// Every axis that was true.
    pub fired: Vec<Fired>,
}
