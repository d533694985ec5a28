//! The gate: may this call run, must the operator be asked, or is it refused (docs/ENGINE.md §9.2).
//!
//! Pure, and the only place that decides. A mistake of the model, and whatever a file or a tool says, can only
//! lead here.

use crate::domain::budget::Axis;
use crate::domain::run::Run;
use crate::domain::tool::CallState;
use crate::domain::tool::EffectClass;
use crate::domain::tool::Facts;
use crate::domain::tool::Problem;
use crate::domain::tool::ProblemKind;
use crate::domain::tool::ToolCall;

/// What the gate says of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// It may run, by this rule.
    Allow(&'static str),
    /// The operator decides; why they are asked.
    Ask(String),
    /// It may not, by this rule; the words for the model.
    Deny {
        /// The rule.
        rule: &'static str,
        /// The words.
        text: String,
    },
    /// It can't run at all.
    NotRun(Problem),
}

/// The rule that lets reads happen.
pub const READS: &str = "reads inside the workspace";
/// The rule that remembers what the operator allowed for the run.
pub const GRANTED: &str = "allowed for this run";
/// The rule that remembers what the operator denied.
pub const DENIED: &str = "denied before in this run";

/// Judges one prepared call. `taken` work calls of the same reply were let through before it.
pub fn judge(run: &Run, call: &ToolCall, facts: &Facts, taken: u64) -> Judgement {
    if let Some(problem) = &facts.problem {
        return Judgement::NotRun(problem.clone());
    }
    // A call that was started before was counted then.
    let left = run.pool.limits().tool_calls.left(run.pool.used(Axis::ToolCalls));
    if call.attempts == 0 && left.is_some_and(|left| left <= taken) {
        let text = "over the run's limit of tool calls; this call was not run".to_string();
        return Judgement::NotRun(Problem::new(ProblemKind::OverBudget, text));
    }
    let signature = call.signature();
    if let Some(words) = run.progress.denied.get(&signature) {
        let text = format!("denied: the operator denied this very call before{}", with_words(words));
        return Judgement::Deny { rule: DENIED, text };
    }
    if run.progress.granted.contains(&call.grant()) {
        return Judgement::Allow(GRANTED);
    }
    match (call.effect, facts.inside) {
        (EffectClass::Read, true) => Judgement::Allow(READS),
        (EffectClass::Read, false) => {
            Judgement::Ask(format!("it reads what is not plainly yours to show: {}", facts.reach))
        }
        (EffectClass::WriteFile, true) => Judgement::Ask("it changes a file of the workspace".to_string()),
        (EffectClass::WriteFile, false) => Judgement::Ask(format!("it changes a file: {}", facts.reach)),
        (EffectClass::Idempotent | EffectClass::External | EffectClass::Control, _) => {
            Judgement::Ask("it can change anything that you can".to_string())
        }
    }
}

/// What the model is told of a denial.
pub fn denial(words: &str) -> String {
    format!("denied by operator{}", with_words(words))
}

/// Work calls of the open iteration that were let through or asked about and have not started yet.
pub fn already_taken(run: &Run) -> u64 {
    run.calls
        .values()
        .filter(|call| call.attempts == 0 && matches!(call.state, CallState::Approved | CallState::Awaiting { .. }))
        .count() as u64
}

fn with_words(words: &str) -> String {
    if words.is_empty() { String::new() } else { format!(": {words}") }
}
