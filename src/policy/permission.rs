//! The gate: may this call run, must the operator be asked, or is it refused (docs/ENGINE.md §9.2).
//!
//! Pure, and the only place that decides; what is shown beforehand and what is enforced come from the same function.
//! A mistake of the model, and whatever a file or a tool says, can only lead here.

use crate::domain::approval::Origin;
use crate::domain::budget::Axis;
use crate::domain::id::ClientId;
use crate::domain::limits;
use crate::domain::line::Line;
use crate::domain::line::Named;
use crate::domain::rule::RuleEffect;
use crate::domain::rule::RuleHit;
use crate::domain::run::Run;
use crate::domain::sandbox::Level;
use crate::domain::sandbox::READING_RULE;
use crate::domain::text::one_line;
use crate::domain::tool::CallState;
use crate::domain::tool::EffectClass;
use crate::domain::tool::Facts;
use crate::domain::tool::Problem;
use crate::domain::tool::ProblemKind;
use crate::domain::tool::ToolCall;
use crate::domain::trust::Trust;
use crate::policy::decider;
use crate::policy::grave;
use crate::policy::table;
use crate::policy::undoing;

/// What the gate says of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// It may run, by this rule.
    Allow(&'static str),
    /// It may run, by this standing rule of the operator.
    AllowByRule(String),
    /// It may run: the operator, through this client, wrote it so themselves.
    AllowEdited(ClientId),
    /// The operator decides; why they are asked.
    Ask(String),
    /// It may not, by this rule; the words for the model.
    Deny {
        /// The rule.
        rule: String,
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
/// The rule that lets lines happen that only read.
pub const READS_LINE: &str = READING_RULE;
/// The rule that remembers what the operator allowed for the run.
pub const GRANTED: &str = "allowed for this run";
/// The rule that remembers which tools the operator allowed for the run.
pub const GRANTED_TOOL: &str = "tool allowed for this run";
/// The rule that remembers what the operator denied.
pub const DENIED: &str = "denied before in this run";
/// The same, where that was before the run was brought here.
pub const DENIED_ELSEWHERE: &str = "denied before, elsewhere";
/// The rule of the mode that only reads.
pub const PLAN_MODE: &str = "trust mode plan";
/// The rule of the mode that lets files be changed.
pub const AUTO_EDIT: &str = "trust mode auto_edit";
/// The rule of the mode that trusts.
pub const FULL_TRUST: &str = "trust mode full_trust";

/// Longest word on why a line is asked about, in characters.
const REASON_CHARS: usize = 160;

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
/// read and fit, and that no refused place is reached, was found out before and is the first step.
const STEPS: [Step; 14] = [
    can_not_run,
    reads_only,
    over_budget,
    rule_denies,
    edited,
    denied_before,
    always_asked,
    restless,
    rules_lost,
    granted,
    rule_asks,
    reads_line,
    rule_allows,
    trusted,
];

/// Judges one prepared call. `taken` work calls of the same reply were let through before it.
pub fn judge(run: &Run, call: &ToolCall, facts: &Facts, taken: u64) -> Judgement {
    let case = Case { run, call, facts, taken };
    STEPS.iter().find_map(|step| step(&case)).unwrap_or_else(|| Judgement::Ask(reason(&case)))
}

fn can_not_run(case: &Case<'_>) -> Option<Judgement> {
    case.facts.problem.clone().map(Judgement::NotRun)
}

fn reads_only(case: &Case<'_>) -> Option<Judgement> {
    let changes = case.call.effect != EffectClass::Read && reads_line(case).is_none();
    (case.run.trust == Trust::Plan && changes).then(|| Judgement::Deny {
        rule: PLAN_MODE.to_string(),
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
/// that, they have not typed its code yet; where it takes away what nothing brings back, or only the shell can name what it
/// runs, they have not seen that said; and their leave covers nothing that they were not shown when they gave it: another
/// place, or what is there by now.
fn edited(case: &Case<'_>) -> Option<Judgement> {
    let edited = case.call.edited.as_ref().filter(|edited| edited.is_leave)?;
    let allowed = Judgement::AllowEdited(edited.by.clone());
    let told = |of: fn(&Line) -> Option<String>| case.facts.line.as_ref().and_then(of).map(|what| format!("it {what}"));
    let lost = || told(undoing::lost).or_else(|| told(undoing::unnamed));
    let unseen = || {
        let names = edited.unseen(case.facts);
        let is_told = !names.is_empty() && !is_plain_read(case);
        is_told.then(|| format!("it reaches what you were not shown: {}", one_line(&names.join(", "), REASON_CHARS)))
    };
    let told: Vec<String> = [grave::grave(case.facts), lost()].into_iter().flatten().collect();
    let why = if told.is_empty() { unseen() } else { Some(told.join("; ")) };
    Some(why.map_or(allowed, |why| Judgement::Ask(format!("as you changed it, {why}"))))
}

/// What is read without a question anywhere in the workspace.
fn is_plain_read(case: &Case<'_>) -> bool {
    case.call.effect == EffectClass::Read && case.facts.inside
}

fn denied_before(case: &Case<'_>) -> Option<Judgement> {
    let signature = case.call.signature();
    let words = case.run.progress.denied.get(&signature)?;
    let again = match case.run.progress.refused.get(&signature) {
        None => String::new(),
        Some(count) => format!(" (asked for again {} times)", count.saturating_add(1)),
    };
    let (rule, who) = match case.run.progress.denied_elsewhere.contains(&signature) {
        true => (DENIED_ELSEWHERE, decider::who(Origin::Elsewhere)),
        false => (DENIED, "the operator"),
    };
    let text = format!("denied: {who} denied this very call before{again}{}", with_words(words));
    Some(Judgement::Deny { rule: rule.to_string(), text })
}

/// What the standing rules say of it, if that is this.
fn said<'a>(case: &Case<'a>, effect: RuleEffect) -> Option<&'a RuleHit> {
    case.facts.rule.as_ref().filter(|hit| hit.effect == effect)
}

fn rule_denies(case: &Case<'_>) -> Option<Judgement> {
    let hit = said(case, RuleEffect::Deny)?;
    let text =
        format!("denied: the operator denies this by a standing rule: {}; do not try it in other words", hit.words);
    Some(Judgement::Deny { rule: hit.name(), text })
}

/// Where the rules can't be read, nobody knows what they would deny: nothing happens unasked.
fn rules_lost(case: &Case<'_>) -> Option<Judgement> {
    said(case, RuleEffect::Ask).filter(|hit| hit.is_lost).map(|hit| Judgement::Ask(hit.words.clone()))
}

fn rule_asks(case: &Case<'_>) -> Option<Judgement> {
    said(case, RuleEffect::Ask).map(|hit| Judgement::Ask(format!("the {} asks: {}", hit.name(), hit.words)))
}

/// What a rule allows, but what nobody means to lose is asked about.
fn rule_allows(case: &Case<'_>) -> Option<Judgement> {
    said(case, RuleEffect::Allow)
        .filter(|_| grave::grave(case.facts).is_none() && !names_secret(case.facts))
        .map(|hit| Judgement::AllowByRule(hit.name()))
}

/// Whether a line has a word that is a sensitive name.
fn names_secret(facts: &Facts) -> bool {
    facts.touches.iter().any(|touch| matches!(touch.named, Named::Sensitive(_)))
}

/// Places outside, sensitive names, what other programs run, and whatever else is grave: no grant and no mode covers
/// them.
fn always_asked(case: &Case<'_>) -> Option<Judgement> {
    if let Some(text) = warning(case.run, case.call) {
        return Some(Judgement::Ask(text));
    }
    let text = match (case.call.effect, case.facts.inside) {
        (EffectClass::Read, false) => format!("a read like this is asked about each time: {}", case.facts.reach),
        (EffectClass::WriteFile, false) => format!("it changes a file: {}", case.facts.reach),
        (EffectClass::Read | EffectClass::WriteFile, true)
        | (EffectClass::Idempotent | EffectClass::External | EffectClass::Control, _) => grave::grave(case.facts)?,
    };
    Some(Judgement::Ask(text))
}

/// Why a call is asked about each time, whatever a rule would say of it; nothing where a rule may cover it.
pub fn asked_each_time(run: &Run, call: &ToolCall) -> Option<String> {
    let facts = call.facts.as_ref()?;
    match always_asked(&Case { run, call, facts, taken: 0 })? {
        Judgement::Ask(why) => Some(why),
        Judgement::Allow(_)
        | Judgement::AllowByRule(_)
        | Judgement::AllowEdited(_)
        | Judgement::Deny { .. }
        | Judgement::NotRun(_) => None,
    }
}

/// What the operator must know before anything that does more than read: files that other programs run by themselves,
/// and that a command changed.
pub fn warning(run: &Run, call: &ToolCall) -> Option<String> {
    let changed = &run.progress.watched;
    let is_told = call.effect == EffectClass::Read || changed.is_empty();
    (!is_told).then(|| format!("a command changed what other programs run by themselves: {}", changed.join(", ")))
}

/// Whether the operator can let a call run outside of the box; errors with why not.
pub fn can_leave_box(call: &ToolCall) -> Result<(), &'static str> {
    match call.facts.as_ref().and_then(|facts| facts.level) {
        Some(Level::Full | Level::Partial) => Ok(()),
        Some(Level::None) => Err("there is no box that it could run outside of"),
        None => Err("it starts no program, so there is no box around it"),
    }
}

/// What changes again each time it is about to run is not prepared and started for ever.
fn restless(case: &Case<'_>) -> Option<Judgement> {
    let is_restless = case.call.attempts >= limits::STARTS_UNASKED && case.call.effect != EffectClass::Read;
    is_restless.then(|| Judgement::Ask("what it would touch has changed each time it was about to run".to_string()))
}

fn granted(case: &Case<'_>) -> Option<Judgement> {
    if case.facts.network {
        return None;
    }
    if case.run.progress.granted.contains(&case.call.grant()) {
        return Some(Judgement::Allow(GRANTED));
    }
    let is_each_its_own = case.facts.line.is_some() || case.facts.unconfined || case.facts.host.is_some();
    let is_covered = case.run.granted_tools.contains(&case.call.tool) && !is_each_its_own;
    is_covered.then_some(Judgement::Allow(GRANTED_TOOL))
}

/// A line that only reads happens where it is confined, whatever the trust: it is a read.
fn reads_line(case: &Case<'_>) -> Option<Judgement> {
    let line = case.facts.line.as_ref().filter(|_| !case.facts.unconfined)?;
    table::reads(line, &case.facts.touches).is_ok().then_some(Judgement::Allow(READS_LINE))
}

/// What the trust mode lets happen.
fn trusted(case: &Case<'_>) -> Option<Judgement> {
    let rule = match (case.call.effect, case.run.trust) {
        (EffectClass::Read, _) => READS,
        (EffectClass::WriteFile, Trust::AutoEdit) => AUTO_EDIT,
        // Each request is its own, as with a grant: it may say anything to anybody.
        (_, Trust::FullTrust) if !case.facts.unconfined && case.facts.host.is_none() => FULL_TRUST,
        (
            EffectClass::WriteFile | EffectClass::Idempotent | EffectClass::External | EffectClass::Control,
            Trust::Plan | Trust::Ask | Trust::AutoEdit | Trust::FullTrust,
        ) => return None,
    };
    Some(Judgement::Allow(rule))
}

/// Why it is asked about. What can't be undone comes first.
fn reason(case: &Case<'_>) -> String {
    let why = plain_reason(case);
    match case.facts.line.as_ref().and_then(undoing::lost) {
        Some(lost) => format!("it {lost}; {why}"),
        None => why,
    }
}

fn plain_reason(case: &Case<'_>) -> String {
    let line = case.facts.line.as_ref();
    if case.facts.network {
        return "it would have the network: it could send whatever it can read".to_string();
    }
    match (case.call.effect, line.map(|line| table::reads(line, &case.facts.touches))) {
        (EffectClass::WriteFile, _) => "it changes a file of the workspace".to_string(),
        (EffectClass::External, _) if case.facts.host.is_some() => "it sends a request to a host".to_string(),
        (_, Some(Ok(()))) => "it seems to only read, but no full box confines it".to_string(),
        (_, Some(Err(why))) => {
            // Where a rule covers a part, it is the other that is asked about.
            let why = one_line(case.facts.uncovered.as_ref().unwrap_or(&why), REASON_CHARS);
            match case.facts.unconfined {
                false => format!("it may do more than read: {why}"),
                true => format!("it can change anything that you can: {why}"),
            }
        }
        (_, None) => "it can change anything that you can".to_string(),
    }
}

/// Whether a rule of this name is a grant of the run: the operator answered just that, so no rule that asks outranks it.
pub fn is_grant(rule: &str) -> bool {
    matches!(rule, GRANTED | GRANTED_TOOL)
}

/// Whether a call that waits goes with leave for the tool of another one.
pub fn goes_with_tool(run: &Run, call: &ToolCall, other: &ToolCall) -> bool {
    let is_other = other.id != call.id && other.tool == call.tool;
    is_other && matches!(other.state, CallState::Awaiting { .. }) && widest(run, other).0 == Scope::Tool
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
    if facts.network {
        return (Scope::Once, "a line with the network is asked about each time");
    }
    if facts.line.is_some() || facts.unconfined {
        return (Scope::Exact, "a line for the shell is allowed exactly as it is, by a standing rule, or not at all");
    }
    if facts.host.is_some() {
        return (
            Scope::Exact,
            "a request can carry anything to its host, so each is allowed exactly as it is or not at all",
        );
    }
    (Scope::Tool, "")
}

/// What the model is told of a denial that was made there.
pub fn denial(words: &str, origin: Origin) -> String {
    let who = if origin.is_here() { "operator" } else { decider::who(origin) };
    format!("denied by {who}{}", with_words(words))
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
