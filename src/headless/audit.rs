//! The audit of a run: one line for each decision, effect, spend and change of status (docs/ENGINE.md §11.3). Pure.
//!
//! Texts are told as their length and the beginning of their hash unless they are asked for. A kind of record that this
//! file has no words for is told by its name, so that nothing goes by in silence.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use serde_json::json;

use crate::domain::approval::By;
use crate::domain::approval::Decision;
use crate::domain::approval::Origin;
use crate::domain::approval::Resolution;
use crate::domain::budget::Basis;
use crate::domain::budget::ReservationId;
use crate::domain::event::ClaimVerdict;
use crate::domain::event::Event;
use crate::domain::event::Finding;
use crate::domain::event::OwnerMode;
use crate::domain::event::Record;
use crate::domain::id::CallId;
use crate::domain::id::ClientId;
use crate::domain::lineage;
use crate::domain::money::MicroUsd;
use crate::domain::sandbox::Level;
use crate::domain::text::counted;
use crate::domain::text::sha256_hex;
use crate::domain::text::short_hash;
use crate::domain::time::Timestamp;
use crate::domain::tool::Facts;
use crate::headless::lines::control_phrase;
use crate::headless::lines::limit_phrase;
use crate::headless::text::block;
use crate::headless::text::title;
use crate::headless::text::words;
use crate::policy::decider::who;
use crate::policy::decider::whom;
use crate::policy::grave;

/// Whether texts are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payloads {
    /// As they are.
    Shown,
    /// As their length and the beginning of their hash.
    Hashed,
}

/// Records whose lines tell it: what was decided about, and what was started.
const TELLING: [&str; 2] = ["approval_decided", "tool_call_started"];

/// Records that neither decide, nor do, nor cost anything, nor change the status: parts of what another line tells.
const QUIET: [&str; 12] = [
    "iteration_started",
    "interjection_delivered",
    "budget_reserved",
    "model_call_finished",
    "retry_scheduled",
    "tool_call_proposed",
    "tool_call_prepared",
    "plan_updated",
    "done_claimed",
    "progress_observed",
    "warned",
    "iteration_closed",
];

/// One line of an audit. What does not apply is nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Line {
    time: String,
    seq: u64,
    actor: String,
    action: &'static str,
    call: Option<String>,
    tool: Option<String>,
    words: Option<String>,
    args_sha256: Option<String>,
    decision: Option<String>,
    rule: Option<String>,
    /// In words; programs have `actor` and `rule`.
    #[serde(skip)]
    by: Option<String>,
    outcome: Option<String>,
    cost_micros: Option<u64>,
    text: Option<Value>,
}

/// What is known of a call when a record speaks of it.
#[derive(Default)]
struct Known {
    tool: String,
    /// As they are executed.
    arguments: String,
    facts: Option<Facts>,
    is_unboxed: bool,
}

impl Known {
    /// Where it runs, for what starts a program: behind a comma.
    fn place(&self) -> String {
        let Some((facts, level)) = self.facts.as_ref().and_then(|facts| Some((facts, facts.level?))) else {
            return String::new();
        };
        let network = if facts.network { ", the network open" } else { "" };
        match level {
            _ if self.is_unboxed => ", outside of the box".to_string(),
            Level::None => ", without a box".to_string(),
            Level::Full | Level::Partial => format!(", box {}{network}", level.word()),
        }
    }

    /// That leave for it is typed, where it is: behind a comma.
    fn code(&self, decision: &Decision) -> &'static str {
        let is_grave = self.facts.as_ref().is_some_and(|facts| grave::grave(facts).is_some());
        if is_grave || *decision == Decision::AllowUnboxed { ", by its code" } else { "" }
    }
}

/// The audit of a journal, or of the beginning of one.
pub fn audit(records: &[Record], payloads: Payloads) -> Vec<Line> {
    let brought = lineage::brought(records);
    let mut calls: BTreeMap<CallId, Known> = BTreeMap::new();
    let mut lines = Vec::new();
    for record in records {
        if let Event::ToolCallProposed { call, tool, arguments, .. } = &record.event {
            let known = Known { tool: tool.clone(), arguments: arguments.clone(), ..Known::default() };
            calls.insert(*call, known);
        }
        if let Event::ToolCallPrepared { call, facts } = &record.event
            && let Some(known) = calls.get_mut(call)
        {
            known.facts = Some((**facts).clone());
        }
        // A plan that the operator changed is their decision; one that the model changed is its work.
        let is_theirs = matches!(record.event, Event::PlanUpdated { by: Some(_), .. });
        if is_theirs || !QUIET.contains(&record.event.name()) {
            lines.push(line(record, &calls, payloads, lineage::origin(brought, record.seq)));
        }
        // From here on the call is what the operator made of it: that is what is started.
        if let Event::ApprovalDecided { call, decision, .. } = &record.event
            && let Some(known) = calls.get_mut(call)
        {
            known.is_unboxed = *decision == Decision::AllowUnboxed;
            if let Decision::Edit(changed) = decision {
                known.arguments.clone_from(changed);
            }
        }
    }
    lines
}

/// What the charges of a journal come to, as a line below its audit: the sum of its figures. Nothing where none was made.
pub fn total(records: &[Record]) -> String {
    let (mut charged, mut counted) = (MicroUsd(0), BTreeMap::new());
    let (mut parts, mut money) = (Vec::new(), "");
    for record in records {
        match &record.event {
            Event::RunCreated { terms } if terms.is_pretend() => money = " (pretend money)",
            Event::BudgetSettled { id, charge } => {
                charged = charged.plus(charge.amount);
                counted.insert(*id, charge.amount);
            }
            Event::BudgetCorrected { id, amount, .. } => {
                counted.insert(*id, *amount);
            }
            // What was charged before was charged to the run that it branched off from.
            Event::Forked { .. } => {
                parts.push(sum(charged, &counted, "before it branched off"));
                (charged, counted) = (MicroUsd(0), BTreeMap::new());
            }
            _ => {}
        }
    }
    parts.push(sum(charged, &counted, "charged in all"));
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let counts = counted.values().fold(MicroUsd(0), |sum, amount| sum.plus(*amount));
    let rounded = counts.to_string();
    let elsewhere =
        if rounded == counts.exact() { String::new() } else { format!(", elsewhere rounded up to {rounded}") };
    if parts.is_empty() { String::new() } else { format!("{}{elsewhere}{money}\n", parts.join("; ")) }
}

fn sum(charged: MicroUsd, counted: &BTreeMap<ReservationId, MicroUsd>, what: &str) -> Option<String> {
    let counts = counted.values().fold(MicroUsd(0), |sum, amount| sum.plus(*amount));
    let corrected = if counts == charged { String::new() } else { format!(", corrected to {}", counts.exact()) };
    (!counted.is_empty()).then(|| format!("{what} {}{corrected}", charged.exact()))
}

/// The audit as text.
pub fn text(lines: &[Line]) -> String {
    let one = |line: &Line| {
        let call = line.call.as_deref().zip(line.tool.as_deref()).map(|(call, tool)| format!("{call} {}", title(tool)));
        let words = line.words.as_deref().map(|words| format!("`{}`", title(words)));
        let hash = line.args_sha256.as_deref().map(|hash| format!("arguments {}", head(hash)));
        let by = line.by.as_deref().map(|by| format!("by {}", title(by)));
        let outcome = line.outcome.as_deref().map(title);
        let cost = line.cost_micros.map(|cost| MicroUsd(cost).exact());
        let size = line.text.as_ref().filter(|text| !text.is_string()).map(|text| {
            let size = counted(text["bytes"].as_u64().unwrap_or_default(), "byte");
            format!("{size} {}", text["sha256"].as_str().unwrap_or_default())
        });
        // A payload stands whole below its line.
        let whole = line.text.as_ref().and_then(Value::as_str).map(block).unwrap_or_default();
        let parts = [call, words, hash, line.decision.clone(), by, outcome, cost, size];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        let (time, seq, actor) = (&line.time, line.seq, title(&line.actor));
        format!("{time} {seq:>6} {actor:<24} {:<22} {}", line.action, parts.join(" · ")).trim_end().to_string()
            + "\n"
            + &whole
    };
    lines.iter().map(one).collect()
}

/// The audit as JSON, an object a line.
pub fn json(lines: &[Line]) -> String {
    lines.iter().filter_map(|line| Some(serde_json::to_string(line).ok()? + "\n")).collect()
}

fn line(record: &Record, calls: &BTreeMap<CallId, Known>, payloads: Payloads, origin: Origin) -> Line {
    let told = |text: &str| match payloads {
        _ if text.is_empty() => None,
        Payloads::Shown => Some(json!(text)),
        Payloads::Hashed => Some(json!({"bytes": text.len(), "sha256": short_hash(text.as_bytes())})),
    };
    let start = Line {
        time: time(record.at),
        seq: record.seq.0,
        actor: "engine".to_string(),
        action: record.event.name(),
        ..Line::default()
    };
    let by = |client: &ClientId| {
        let actor = match origin {
            Origin::Here if client.0 == "operator" => "operator".to_string(),
            Origin::Here => format!("operator ({client})"),
            Origin::Elsewhere => who(origin).to_string(),
        };
        Line { actor, ..start.clone() }
    };
    let decided = |decider: &By| {
        let line = match (decider, origin) {
            (By::Operator(client), _) => by(client),
            (By::Rule(rule), Origin::Here) => {
                Line { actor: "rule".to_string(), rule: Some(rule.clone()), ..start.clone() }
            }
            (By::Rule(_), Origin::Elsewhere) => Line { actor: whom(decider, origin), ..start.clone() },
        };
        Line { by: Some(whom(decider, origin)), ..line }
    };
    let on = |call: CallId, line: Line| {
        let known = calls.get(&call);
        let arguments = known.map(|known| known.arguments.as_str());
        Line {
            call: Some(call.to_string()),
            tool: known.map(|known| known.tool.clone()),
            words: arguments.filter(|_| TELLING.contains(&line.action)).and_then(words),
            args_sha256: arguments.map(|arguments| sha256_hex(arguments.as_bytes())),
            text: line.text.clone().or(arguments.filter(|_| payloads == Payloads::Shown).map(|text| json!(text))),
            ..line
        }
    };
    match &record.event {
        Event::RunCreated { terms } => {
            Line { text: told(terms.goal.as_str()), ..by(&ClientId("operator".to_string())) }
        }
        Event::OwnerAcquired { owner } => {
            let mode = match owner.mode {
                OwnerMode::Drives => "drives it",
                OwnerMode::Records => "only records",
            };
            let actor = format!("process {} on {}", owner.pid, owner.host);
            Line { actor, outcome: Some(format!("{mode}, version {}", owner.version)), ..start.clone() }
        }
        Event::StatusChanged { status, by: client } => {
            let line = client.as_ref().map_or(start.clone(), &by);
            Line { outcome: Some(status.phrase()), ..line }
        }
        Event::ControlRequested { control, by: client } => {
            Line { outcome: Some(control_phrase(*control).to_string()), ..by(client) }
        }
        Event::Recovered { findings } => {
            let lost: Vec<String> = findings.iter().map(lost).collect();
            Line {
                outcome: Some(if lost.is_empty() { "nothing was under way".into() } else { lost.join(", ") }),
                ..start
            }
        }
        Event::InterjectionQueued { id, text, by: client, policy: _ } => {
            Line { outcome: Some(id.to_string()), text: told(text), ..by(client) }
        }
        Event::BudgetSettled { id, charge } => Line {
            outcome: Some(format!("{} attempt {}, {}", id.call, id.attempt, basis(charge.basis))),
            cost_micros: Some(charge.amount.0),
            ..start
        },
        Event::BudgetCorrected { id, amount, by: client } => {
            let outcome = format!("{} attempt {}, to {}", id.call, id.attempt, amount.exact());
            Line { outcome: Some(outcome), ..by(client) }
        }
        Event::BudgetRaised { axis, limit, by: client } => {
            Line { outcome: Some(format!("{} to {}", axis.word(), limit_phrase(*axis, *limit))), ..by(client) }
        }
        Event::ModelCallStarted { call, attempt, .. } => {
            Line { outcome: Some(format!("{call} attempt {attempt}")), ..start }
        }
        Event::ModelCallFailed { call, failure } => {
            Line { outcome: Some(format!("{call} failed")), text: told(&failure.message), ..start }
        }
        Event::ApprovalRequested { call, why, .. } => on(*call, Line { outcome: Some(why.clone()), ..start }),
        Event::ApprovalDecided { call, decision, by: decider, .. } => {
            let (word, text) = match decision {
                Decision::AllowOnce if matches!(decider, By::Rule(_)) => ("allow", None),
                Decision::AllowOnce => ("allow once", None),
                Decision::AllowRun => ("allow for the run", None),
                Decision::AllowTool => ("allow the tool for the run", None),
                Decision::AllowRule(draft) => ("allow by a new rule", told(&format!("{}: {draft}", draft.id()))),
                Decision::AllowUnboxed => ("allow once outside of the box", None),
                Decision::Edit(arguments) => ("allow as changed", told(arguments)),
                Decision::Deny(text) => ("deny", told(text)),
            };
            let line = decided(decider);
            // A denial is never typed.
            let is_leave = !matches!(decision, Decision::Deny(_) | Decision::Edit(_));
            let code = calls.get(call).filter(|_| is_leave).map(|known| known.code(decision)).unwrap_or_default();
            let line = on(*call, Line { decision: Some(format!("{word}{code}")), text, ..line });
            match decision {
                Decision::Edit(arguments) => Line {
                    outcome: line.args_sha256.map(|hash| format!("in the place of arguments {}", head(&hash))),
                    args_sha256: Some(sha256_hex(arguments.as_bytes())),
                    words: words(arguments),
                    ..line
                },
                Decision::AllowOnce
                | Decision::AllowRun
                | Decision::AllowTool
                | Decision::AllowRule(_)
                | Decision::AllowUnboxed
                | Decision::Deny(_) => line,
            }
        }
        Event::ApprovalInvalidated { call, why } => on(*call, Line { outcome: Some(why.clone()), ..start }),
        Event::ToolCallStarted { call, attempt } => {
            let place = calls.get(call).map(Known::place).unwrap_or_default();
            on(*call, Line { outcome: Some(format!("attempt {attempt}{place}")), ..start })
        }
        Event::ToolCallFinished { call, outcome } => {
            let word = outcome.kind.word().to_string();
            on(*call, Line { outcome: Some(word), text: told(&outcome.text), ..start })
        }
        Event::RestoreStarted { call, write, by: client } => {
            on(*call, Line { outcome: Some(format!("putting back {}", write.path)), ..by(client) })
        }
        Event::RestoreFinished { call, path, failure } => {
            let word = failure.as_ref().map_or("as before".to_string(), |why| format!("not put back: {why}"));
            on(*call, Line { outcome: Some(format!("{path} {word}")), ..start })
        }
        Event::ToolOutcomeResolved { call, resolution, by: client } => {
            let (word, text) = match resolution {
                Resolution::Happened(text) => ("it happened", told(text)),
                Resolution::NotHappened => ("it did not happen", None),
                Resolution::RunAgain => ("run it again", None),
                Resolution::Skip => ("skip it", None),
            };
            on(*call, Line { decision: Some(word.to_string()), text, ..by(client) })
        }
        Event::QuestionAnswered { call, text, by: client } => on(*call, Line { text: told(text), ..by(client) }),
        Event::CheckStarted { index } | Event::CheckInterrupted { index } => {
            Line { outcome: Some(format!("check {}", index + 1)), ..start }
        }
        Event::AcceptanceChecked { index, passed, detail } => {
            let word = if *passed { "passed" } else { "failed" };
            Line { outcome: Some(format!("check {} {word}", index + 1)), text: told(detail), ..start }
        }
        Event::ClaimJudged { verdict, text } => {
            let word = match verdict {
                ClaimVerdict::Verified => "verified",
                ClaimVerdict::Unverified => "accepted, there are no checks",
                ClaimVerdict::Rejected => "rejected",
                ClaimVerdict::Postponed => "not judged, you had spoken",
            };
            Line { outcome: Some(word.to_string()), text: told(text), ..start }
        }
        Event::StallDetected { diagnosis: text, .. } => Line { text: told(text), ..start },
        Event::TrustChanged { trust, by: decider } => {
            Line { outcome: Some(trust.word().to_string()), ..decided(decider) }
        }
        Event::InterjectionWithdrawn { id, by: client } => Line { outcome: Some(id.to_string()), ..by(client) },
        Event::Rewound { to, by: client, .. } => {
            Line { outcome: Some(format!("to the end of iteration {to}")), ..by(client) }
        }
        Event::Forked { parent, iteration, by: client, .. } => {
            Line { outcome: Some(format!("from run {parent}, after iteration {iteration}")), ..by(client) }
        }
        Event::PriceChosen { price, by: client } => {
            let outcome = price.as_ref().map_or("without counting money", |_| "the price of the model");
            Line { outcome: Some(outcome.to_string()), ..by(client) }
        }
        Event::ConfirmationGiven { index, confirmed, text, by: client } => {
            let word = if *confirmed { "it is right" } else { "it is not right" };
            let outcome = Some(format!("check {}", index + 1));
            Line { decision: Some(word.to_string()), outcome, text: told(text), ..by(client) }
        }
        Event::PlanUpdated { by: Some(client), told: change, .. } => Line { text: told(change), ..by(client) },
        Event::Imported { by: client, here } => {
            let takes =
                |with: bool| if with { "what checks it has are taken over" } else { "what checks it had are left out" };
            Line { outcome: here.as_ref().map(|here| takes(here.with_checks).to_string()), ..by(client) }
        }
        Event::ReplansGranted { by: client } => by(client),
        // These have no more to say here than what they are called.
        Event::PreflightFailed { .. }
        | Event::IterationStarted { .. }
        | Event::InterjectionDelivered { .. }
        | Event::BudgetReserved { .. }
        | Event::ModelCallFinished { .. }
        | Event::ContextPruned { .. }
        | Event::ContextCompacted { .. }
        | Event::RetryScheduled { .. }
        | Event::ToolCallProposed { .. }
        | Event::ToolCallPrepared { .. }
        | Event::ToolCallProbed { .. }
        | Event::PlanUpdated { by: None, .. }
        | Event::DoneClaimed { .. }
        | Event::ConfirmationRequested { .. }
        | Event::ProgressObserved { .. }
        | Event::Warned { .. }
        | Event::IterationClosed { .. } => start,
    }
}

fn lost(finding: &Finding) -> String {
    match finding {
        Finding::ModelCallLost(call) => format!("{call} was lost"),
        Finding::ToolCallLost(call) => format!("the outcome of {call} is unknown"),
        Finding::CheckLost(index) => format!("check {} was lost", index + 1),
    }
}

/// The beginning of a hash, as a line for people has it.
fn head(hash: &str) -> &str {
    hash.get(..12).unwrap_or(hash)
}

fn basis(basis: Basis) -> &'static str {
    match basis {
        Basis::Reported => "as reported",
        Basis::NotAccepted => "not accepted",
        Basis::Partial => "partial",
        Basis::Estimated => "estimated",
        Basis::Unverified => "unverified",
    }
}

fn time(at: Timestamp) -> String {
    let millis = i64::try_from(at.0).unwrap_or(i64::MAX);
    jiff::Timestamp::from_millisecond(millis)
        .map(|time| time.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: &str) {
        assert_eq!(words(&json!({ "command": line }).to_string()).as_deref(), Some(expected));
    }

    #[test]
    fn what_a_call_is_about_is_told_by_its_beginning() {
        check("sh check.sh", "sh check.sh");
        check("make\n", "make");
        check("make\nrm -rf build\n", "make … 13 more bytes");
        check(&"é".repeat(82), &format!("{} … 4 more bytes", "é".repeat(80)));
        assert_eq!(words(r#"{"content":"y","path":"a/x"}"#).as_deref(), Some("a/x"));
        assert_eq!(words(r#"{"url":"https://a.invalid/"}"#).as_deref(), Some("https://a.invalid/"));
        assert_eq!(words(r#"{"todos":[]}"#), None);
    }
}
