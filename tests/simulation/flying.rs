//! What is under way in the world of a life.

use tiller::domain::id::CallId;
use tiller::domain::id::ModelCallId;
use tiller::domain::model::FailureClass;
use tiller::domain::model::ModelFailure;
use tiller::domain::model::Received;
use tiller::domain::tool::OutcomeKind;
use tiller::domain::tool::ToolOutcome;
use tiller::machine::Outcome;
use tiller::machine::effect::Effect;

/// Something under way: what was asked for, and, once the world has changed, what comes of it.
pub enum Flying {
    Asked(Effect),
    Happened(Box<Outcome>),
}

/// What a journal can name as being under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Work {
    Model(ModelCallId),
    Tool(CallId),
    Check(usize),
}

impl Flying {
    /// What the journal names it, if it does: finding out and reading back are simply asked for again.
    pub fn work(&self) -> Option<Work> {
        match self {
            Flying::Asked(Effect::CallModel(request)) => Some(Work::Model(request.call)),
            Flying::Asked(Effect::RunTool(permit)) => Some(Work::Tool(permit.call().id)),
            Flying::Asked(Effect::RunCheck { index, .. }) => Some(Work::Check(*index)),
            Flying::Asked(
                Effect::Prepare(_) | Effect::Probe { .. } | Effect::ReadBack { .. } | Effect::EndWork { .. },
            ) => None,
            Flying::Happened(outcome) => match outcome.as_ref() {
                Outcome::Model { call, .. } => Some(Work::Model(*call)),
                Outcome::Tool { call, .. } | Outcome::Drifted { call, .. } => Some(Work::Tool(*call)),
                Outcome::Check { index, .. } | Outcome::CheckEnded { index } => Some(Work::Check(*index)),
                Outcome::Prepared(_) | Outcome::Probed { .. } | Outcome::ReadBack { .. } => None,
            },
        }
    }
}

/// What is under way is told to end: what has not happened yet does not happen.
pub fn ended(flying: Flying) -> Flying {
    let effect = match flying {
        Flying::Happened(outcome) => return Flying::Happened(outcome),
        Flying::Asked(effect) => effect,
    };
    let outcome = match effect {
        Effect::CallModel(request) => {
            let message = "cancelled".to_string();
            let failure = ModelFailure {
                class: FailureClass::Cancelled,
                message,
                retry_after: None,
                received: Received::default(),
            };
            Outcome::Model { call: request.call, result: Err(Box::new(failure)) }
        }
        Effect::RunTool(permit) => {
            let outcome = ToolOutcome::not_run(OutcomeKind::Cancelled, "cancelled by operator while running");
            Outcome::Tool { call: permit.call().id, outcome }
        }
        Effect::RunCheck { index, .. } => Outcome::CheckEnded { index },
        other @ (Effect::Prepare(_) | Effect::Probe { .. } | Effect::ReadBack { .. } | Effect::EndWork { .. }) => {
            return Flying::Asked(other);
        }
    };
    Flying::Happened(Box::new(outcome))
}
