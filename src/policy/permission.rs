//! The gate: may this call run, must the operator be asked, or is it refused (docs/ENGINE.md §9.2).
//!
//! Pure, and the only place that decides; what is shown beforehand and what is enforced come from the same function.
//! A mistake of the model, and whatever a file or a tool says, can only lead here.

use crate::domain::budget::Axis;
use crate::domain::id::ClientId;
use crate::domain::limits;
use crate::domain::run::Run;
use crate::domain::tool::CallState;
use crate::domain::tool::EffectClass;
use crate::domain::tool::Facts;
use crate::domain::tool::Problem;
use crate::domain::tool::ProblemKind;
use crate::domain::tool::ToolCall;
use crate::domain::trust::Trust;
use crate::policy::grave;

/// What the gate says of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// It may run, by this rule.
    Allow(&'static str),
    /// It may run: the operator, through this client, wrote it so themselves.
    AllowEdited(ClientId),
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

/// How wide a decision about a call may be, narrowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// This call only.
    Once,
    /// Every call with the same exact arguments and the same binding.
    Exact,
    /// Every call of the same tool.
    Tool,
}

/// The rule that lets reads happen.
pub const READS: &str = "reads inside the workspace";
/// The rule that remembers what the operator allowed for the run.
pub const GRANTED: &str = "allowed for this run";
/// The rule that remembers which tools the operator allowed for the run.
pub const GRANTED_TOOL: &str = "tool allowed for this run";
/// The rule that remembers what the operator denied.
pub const DENIED: &str = "denied before in this run";
/// The rule of the mode that only reads.
pub const PLAN_MODE: &str = "trust mode plan";
/// The rule of the mode that lets files be changed.
pub const AUTO_EDIT: &str = "trust mode auto_edit";
/// The rule of the mode that trusts.
pub const FULL_TRUST: &str = "trust mode full_trust";

/// One call before the gate.
struct Case<'a> {
    run: &'a Run,
    call: &'a ToolCall,
    facts: &'a Facts,
    /// Work calls of the same reply that were let through before it.
    taken: u64,
}

/// A step of the gate: its word, or nothing when the next one has to say.
type Step = fn(&Case<'_>) -> Option<Judgement>;

/// The order of the gate; the first step that says something decides. That the tool exists, that its arguments can be
/// read and fit, and that no refused place is reached, was found out before and is the first step. Standing rules of
/// the operator stand in this order: those that deny after what was denied before, those that ask and those that
/// allow after the grants of the run.
const STEPS: [Step; 9] =
    [can_not_run, reads_only, over_budget, edited, denied_before, always_asked, restless, granted, trusted];

/// Judges one prepared call. `taken` work calls of the same reply were let through before it.
pub fn judge(run: &Run, call: &ToolCall, facts: &Facts, taken: u64) -> Judgement {
    let case = Case { run, call, facts, taken };
    STEPS.iter().find_map(|step| step(&case)).unwrap_or_else(|| Judgement::Ask(reason(&case).to_string()))
}

fn can_not_run(case: &Case<'_>) -> Option<Judgement> {
    case.facts.problem.clone().map(Judgement::NotRun)
}

fn reads_only(case: &Case<'_>) -> Option<Judgement> {
    let changes = case.call.effect != EffectClass::Read;
    (case.run.trust == Trust::Plan && changes).then(|| Judgement::Deny {
        rule: PLAN_MODE,
        text:
            "denied: the operator lets this run only read (trust mode plan); say what you would do instead of doing it"
                .to_string(),
    })
}

fn over_budget(case: &Case<'_>) -> Option<Judgement> {
    // A call that was started before was counted then.
    let left = case.run.pool.limits().tool_calls.left(case.run.pool.used(Axis::ToolCalls));
    let is_over = case.call.attempts == 0 && left.is_some_and(|left| left <= case.taken);
    is_over.then(|| {
        let text = "over the run's limit of tool calls; this call was not run".to_string();
        Judgement::NotRun(Problem::new(ProblemKind::OverBudget, text))
    })
}

/// What the operator wrote themselves is not asked about, and outranks what they denied before. Where it became grave by
/// that, they have not typed its code yet.
fn edited(case: &Case<'_>) -> Option<Judgement> {
    let edited = case.call.edited.as_ref().filter(|edited| edited.is_leave)?;
    let allowed = Judgement::AllowEdited(edited.by.clone());
    Some(grave::grave(case.facts).map_or(allowed, |why| Judgement::Ask(format!("as you changed it, {why}"))))
}

fn denied_before(case: &Case<'_>) -> Option<Judgement> {
    let words = case.run.progress.denied.get(&case.call.signature())?;
    let text = format!("denied: the operator denied this very call before{}", with_words(words));
    Some(Judgement::Deny { rule: DENIED, text })
}

/// Places outside, sensitive names, what other programs run, and whatever else is grave: no grant and no mode covers
/// them.
fn always_asked(case: &Case<'_>) -> Option<Judgement> {
    let text = match (case.call.effect, case.facts.inside) {
        (EffectClass::Read, false) => format!("it reads what is not plainly yours to show: {}", case.facts.reach),
        (EffectClass::WriteFile, false) => format!("it changes a file: {}", case.facts.reach),
        (EffectClass::Read | EffectClass::WriteFile, true)
        | (EffectClass::Idempotent | EffectClass::External | EffectClass::Control, _) => grave::grave(case.facts)?,
    };
    Some(Judgement::Ask(text))
}

/// What changes again each time it is about to run is not prepared and started for ever.
fn restless(case: &Case<'_>) -> Option<Judgement> {
    let is_restless = case.call.attempts >= limits::STARTS_UNASKED && case.call.effect != EffectClass::Read;
    is_restless.then(|| Judgement::Ask("what it would touch has changed each time it was about to run".to_string()))
}

fn granted(case: &Case<'_>) -> Option<Judgement> {
    if case.run.progress.granted.contains(&case.call.grant()) {
        return Some(Judgement::Allow(GRANTED));
    }
    let is_covered = case.run.granted_tools.contains(&case.call.tool) && !case.facts.unconfined;
    is_covered.then_some(Judgement::Allow(GRANTED_TOOL))
}

/// What the trust mode lets happen.
fn trusted(case: &Case<'_>) -> Option<Judgement> {
    let rule = match (case.call.effect, case.run.trust) {
        (EffectClass::Read, _) => READS,
        (EffectClass::WriteFile, Trust::AutoEdit) => AUTO_EDIT,
        (_, Trust::FullTrust) if !case.facts.unconfined => FULL_TRUST,
        (
            EffectClass::WriteFile | EffectClass::Idempotent | EffectClass::External | EffectClass::Control,
            Trust::Plan | Trust::Ask | Trust::AutoEdit | Trust::FullTrust,
        ) => return None,
    };
    Some(Judgement::Allow(rule))
}

fn reason(case: &Case<'_>) -> &'static str {
    match case.call.effect {
        EffectClass::WriteFile => "it changes a file of the workspace",
        EffectClass::Read | EffectClass::Idempotent | EffectClass::External | EffectClass::Control => {
            "it can change anything that you can"
        }
    }
}

/// The widest decision that is offered about a call, and why none is wider.
pub fn widest(run: &Run, call: &ToolCall) -> (Scope, &'static str) {
    let Some(facts) = &call.facts else { return (Scope::Once, "it is not known yet what the call would touch") };
    if grave::grave(facts).is_some() {
        return (Scope::Once, "it is grave, and what is grave is asked about each time");
    }
    if always_asked(&Case { run, call, facts, taken: 0 }).is_some() {
        return (Scope::Once, "places outside, sensitive names and what other programs run are asked about each time");
    }
    if facts.unconfined {
        return (
            Scope::Exact,
            "there is no sandbox, so lines for the shell are allowed exactly as they are or not at all",
        );
    }
    (Scope::Tool, "")
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
