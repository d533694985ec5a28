//! Which record asks for which work. An effect is a `…Started` event that has just become durable; preparing, probing
//! and reading back change nothing and are simply asked again after a crash.

use crate::domain::approval::Decision;
use crate::domain::command::Cancel;
use crate::domain::command::Control;
use crate::domain::command::Policy;
use crate::domain::event::Event;
use crate::domain::event::OwnerMode;
use crate::domain::event::Record;
use crate::domain::id::CallId;
use crate::domain::limits;
use crate::domain::model::ModelRequest;
use crate::domain::outline::TextPlace;
use crate::domain::run::Run;
use crate::domain::terms::Check;
use crate::domain::time::Span;
use crate::domain::tool::CallState;
use crate::domain::tool::EffectClass;
use crate::domain::tool::Facts;
use crate::domain::tool::Permit;
use crate::domain::tool::ToolCall;
use crate::policy::context;
use crate::policy::pruning;

/// Work for the driver.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Find out what these calls would touch.
    Prepare(Vec<ToolCall>),
    /// Ask the model.
    CallModel(Box<ModelRequest>),
    /// Run a call.
    RunTool(Box<Permit>),
    /// Run a check.
    RunCheck {
        /// Its number.
        index: usize,
        /// The check.
        check: Check,
    },
    /// Look at the traces of a call whose outcome is unknown.
    Probe {
        /// The call.
        call: CallId,
        /// What it was to touch.
        facts: Box<Facts>,
    },
    /// Read a text of the conversation that was put away, for the call that asks for it.
    ReadBack {
        /// The call.
        call: CallId,
        /// Where the text stands.
        place: Box<TextPlace>,
    },
    /// End all that is under way. Calls with outside effects get so long to finish by themselves.
    EndWork {
        /// So long.
        grace: Span,
    },
}

/// The work that a record asks for, given the state at the end of its turn.
pub fn of(run: &Run, record: &Record) -> Vec<Effect> {
    match &record.event {
        Event::ModelCallStarted { .. } => {
            context::in_flight(run).map(|request| Effect::CallModel(Box::new(request))).into_iter().collect()
        }
        Event::ModelCallFinished { .. } => prepare(run).into_iter().chain(reads_back(run)).collect(),
        Event::ApprovalInvalidated { .. } | Event::ApprovalDecided { decision: Decision::Edit(_), .. } => prepare(run),
        Event::ToolCallStarted { call, .. } => {
            let permit = run.calls.get(call).and_then(Permit::of);
            permit.map(|permit| Effect::RunTool(Box::new(permit))).into_iter().collect()
        }
        Event::CheckStarted { index } => {
            let check = run.terms.checks.get(*index).filter(|check| is_run(check)).cloned();
            check.map(|check| Effect::RunCheck { index: *index, check }).into_iter().collect()
        }
        Event::ControlRequested { control, .. } => end_work(*control).into_iter().collect(),
        Event::InterjectionQueued { policy: Policy::Interrupt, .. } => vec![Effect::EndWork { grace: Span(0) }],
        Event::OwnerAcquired { owner } => match owner.mode {
            OwnerMode::Drives => prepare(run).into_iter().chain(probes(run)).chain(reads_back(run)).collect(),
            OwnerMode::Records => Vec::new(),
        },
        Event::RunCreated { .. }
        | Event::StatusChanged { .. }
        | Event::Rewound { .. }
        | Event::RestoreStarted { .. }
        | Event::RestoreFinished { .. }
        | Event::Forked { .. }
        | Event::Imported { .. }
        | Event::Recovered { .. }
        | Event::PreflightFailed { .. }
        | Event::IterationStarted { .. }
        | Event::InterjectionQueued { .. }
        | Event::InterjectionDelivered { .. }
        | Event::InterjectionWithdrawn { .. }
        | Event::BudgetReserved { .. }
        | Event::BudgetSettled { .. }
        | Event::BudgetRaised { .. }
        | Event::BudgetCorrected { .. }
        | Event::PriceChosen { .. }
        | Event::ModelCallFailed { .. }
        | Event::ContextPruned { .. }
        | Event::ContextCompacted { .. }
        | Event::RetryScheduled { .. }
        | Event::ToolCallProposed { .. }
        | Event::ToolCallPrepared { .. }
        | Event::ApprovalRequested { .. }
        | Event::ApprovalDecided { .. }
        | Event::TrustChanged { .. }
        | Event::ToolCallFinished { .. }
        | Event::ToolCallProbed { .. }
        | Event::ToolOutcomeResolved { .. }
        | Event::QuestionAnswered { .. }
        | Event::PlanUpdated { .. }
        | Event::DoneClaimed { .. }
        | Event::AcceptanceChecked { .. }
        | Event::CheckInterrupted { .. }
        | Event::ClaimJudged { .. }
        | Event::ConfirmationRequested { .. }
        | Event::ConfirmationGiven { .. }
        | Event::ReplansGranted { .. }
        | Event::ProgressObserved { .. }
        | Event::StallDetected { .. }
        | Event::Warned { .. }
        | Event::IterationClosed { .. } => Vec::new(),
    }
}

/// Whether a check is work of its own: a judge is a model call, and the operator is asked.
fn is_run(check: &Check) -> bool {
    match check {
        Check::Command(_) | Check::FileExists(_) | Check::FileMatches { .. } | Check::Tool { .. } => true,
        Check::ModelJudge(_) | Check::OperatorConfirm(_) => false,
    }
}

/// All work calls whose reach is not known yet, as one piece of work.
fn prepare(run: &Run) -> Vec<Effect> {
    let calls: Vec<ToolCall> = run.unprepared().cloned().collect();
    if calls.is_empty() { Vec::new() } else { vec![Effect::Prepare(calls)] }
}

fn reads_back(run: &Run) -> impl Iterator<Item = Effect> {
    pruning::to_read(run).map(|(call, place)| Effect::ReadBack { call, place: Box::new(place) })
}

fn probes(run: &Run) -> impl Iterator<Item = Effect> {
    run.ordered_calls()
        .filter(|call| {
            call.effect == EffectClass::WriteFile && call.state == CallState::OutcomeUnknown { probed: false }
        })
        .filter_map(|call| Some(Effect::Probe { call: call.id, facts: Box::new(call.facts.clone()?) }))
}

fn end_work(control: Control) -> Option<Effect> {
    let grace = match control {
        Control::Cancel(Cancel::Graceful) => limits::CANCEL_GRACE,
        Control::Cancel(Cancel::Now) | Control::Pause(_) | Control::Leave => Span(0),
    };
    control.ends_work().then_some(Effect::EndWork { grace })
}
