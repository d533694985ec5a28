//! Records as lines for people and screen readers: each begins with a mark in words, untrusted text stands behind a
//! gutter. Pure: a record and the run that it led to in, text out.

use jiff::tz::TimeZone;

use crate::domain::approval::By;
use crate::domain::approval::Decision;
use crate::domain::approval::Resolution;
use crate::domain::budget::Axis;
use crate::domain::budget::Basis;
use crate::domain::budget::Limit;
use crate::domain::command::Cancel;
use crate::domain::command::Control;
use crate::domain::command::Pause;
use crate::domain::context::Author;
use crate::domain::deadline::NONE;
use crate::domain::deadline::moment;
use crate::domain::event::ClaimVerdict;
use crate::domain::event::Event;
use crate::domain::event::Finding;
use crate::domain::event::Record;
use crate::domain::id::CallId;
use crate::domain::limits;
use crate::domain::model::Purpose;
use crate::domain::money::MicroUsd;
use crate::domain::plan::Plan;
use crate::domain::plan::TodoStatus;
use crate::domain::run::Run;
use crate::domain::status::Course;
use crate::domain::status::ParkReason;
use crate::domain::status::Status;
use crate::domain::status::Verdict;
use crate::domain::terms::Terms;
use crate::domain::text::counted;
use crate::domain::text::excerpt;
use crate::domain::time::Timestamp;
use crate::domain::time::human;
use crate::domain::tool::Facts;
use crate::domain::tool::OutcomeKind;
use crate::domain::tool::Probe;
use crate::domain::tool::ToolOutcome;
use crate::domain::trust::Trust;
use crate::headless::text::block;
use crate::headless::text::clock;
use crate::headless::text::title;
use crate::headless::text::whole;
use crate::headless::text::words;
use crate::policy::decider::whom;
use crate::policy::ending;
use crate::policy::spending;

/// The lines of a record, each with its line break; nothing for a record that tells a person nothing. `run` is the
/// run with the record taken in.
pub fn lines(record: &Record, run: &Run, zone: &TimeZone) -> String {
    match &record.event {
        Event::RunCreated { terms } => created(run, terms),
        Event::StatusChanged { .. } => status_line(run, zone),
        Event::ControlRequested { control, by: _ } => format!("[asked] {}\n", control_phrase(*control)),
        Event::Rewound { to, .. } => {
            format!("[back] to the end of iteration {to}; what came after it is hidden\n{}", status_line(run, zone))
        }
        Event::RestoreStarted { call, write, by: _ } => {
            format!("[files] {} is being put back as it was before {call}\n", title(&write.path))
        }
        Event::RestoreFinished { call, path, failure } => match failure {
            None => format!("[files] {} is as it was before {call}\n", title(path)),
            Some(why) => format!("[files] {} stays as {call} wrote it: {}\n", title(path), title(why)),
        },
        Event::Forked { parent, iteration, .. } => {
            format!("[fork] branched off from run {parent} after its iteration {iteration}\n")
        }
        Event::Imported { by: _, here } => {
            let has_checks = here.as_ref().is_none_or(|here| here.with_checks);
            let checks = if has_checks { "" } else { ", and no check from there runs here" };
            format!("[import] brought from elsewhere; nothing is allowed in advance{checks}\n")
        }
        Event::Recovered { findings } => recovered(findings),
        Event::PreflightFailed { lacks } => lacking(lacks),
        Event::IterationStarted { n, phase } => format!("[iteration {n}] {}\n", phase.word()),
        Event::InterjectionQueued { id, text, by: _, policy } => {
            format!("[you] {id}, {}\n{}", policy.phrase(), block(text))
        }
        Event::InterjectionDelivered { id } => format!("[you] {id} was told\n"),
        Event::InterjectionWithdrawn { id, by: _ } => format!("[you] {id} was taken back\n"),
        Event::BudgetSettled { id, charge } => match charge.basis {
            Basis::Unverified => format!("[spend] {} of {} can't be verified and counts\n", charge.amount, id.call),
            Basis::Reported | Basis::NotAccepted | Basis::Partial | Basis::Estimated => String::new(),
        },
        Event::BudgetRaised { axis, limit, by: _ } => {
            format!("[limit] {} is now {}\n", axis.word(), limit_phrase(*axis, *limit))
        }
        Event::ModelCallStarted { call, purpose: Purpose::Summary, .. } => {
            format!("[model] {call} asked to summarise the conversation\n")
        }
        Event::ContextPruned { refs } => {
            format!("[context] old texts of {} are not sent any more\n", counted(refs.len(), "call"))
        }
        Event::ContextCompacted { from, to, summary, author, before, after } => {
            let sizes = format!("{before} bytes were sent before, {after} are now");
            match author {
                Author::Model => format!("[context] a summary stands for iterations {from} to {to}: {sizes}\n"),
                Author::Engine => {
                    format!(
                        "[context] no summary was had, a list stands for iterations {from} to {to}: {sizes}\n{}",
                        block(summary)
                    )
                }
            }
        }
        Event::PriceChosen { price, by: _ } => match price {
            Some(price) => {
                format!("[price] {} a million tokens in, {} out\n", MicroUsd(price.input), MicroUsd(price.output))
            }
            None => "[price] unknown; money is NOT COUNTED, tokens are\n".to_string(),
        },
        Event::BudgetCorrected { id, amount, by: _ } => format!("[spend] you say that {id} cost {amount}\n"),
        Event::TrustChanged { trust, by } => trusted(*trust, &whom(by, run.origin(record.seq))),
        Event::ModelCallStarted { call, attempt, .. } => match attempt {
            1 => format!("[model] {call} asked\n"),
            _ => format!("[model] {call} asked again, attempt {attempt}\n"),
        },
        Event::ModelCallFinished { reply, discarded: Some(why), .. } => {
            format!("[model] the reply is not used: {}\n{}", title(why), block(&reply.text))
        }
        Event::ModelCallFinished { reply, discarded: None, .. } => {
            let says = match reply.text.trim() {
                "" => String::new(),
                text => format!("[model] says\n{}", block(text)),
            };
            let unknown = |content: &String| format!("[model] gave what is not known here: {}\n", title(content));
            format!("{says}{}", reply.opaque.iter().map(unknown).collect::<String>())
        }
        Event::ModelCallFailed { failure, .. } => format!("[model] failed: {}\n", title(&failure.message)),
        Event::RetryScheduled { at, why } => format!("[model] tried again at {}: {}\n", clock(*at, zone), title(why)),
        Event::ToolCallProposed { call, tool, arguments, .. } => {
            format!("[call {call}] asked for: {} {}\n", title(tool), title(arguments))
        }
        Event::ToolCallPrepared { call, facts } => prepared(*call, facts),
        Event::ApprovalRequested { call, why, digest } => {
            format!("[call {call}] waits for your decision: {} · digest {}\n", title(why), digest.short())
        }
        Event::ApprovalDecided { call, decision, by, .. } => {
            let is_rule = matches!(by, By::Rule(_));
            decided(*call, decision, is_rule, &whom(by, run.origin(record.seq)))
        }
        Event::ApprovalInvalidated { call, why } => {
            format!("[call {call}] is looked at anew, earlier decisions do not hold: {}\n", title(why))
        }
        Event::ToolCallStarted { call, attempt } => match attempt {
            1 => format!("[call {call}] runs: {}\n", call_title(run, *call)),
            _ => format!("[call {call}] runs again, attempt {attempt}: {}\n", call_title(run, *call)),
        },
        Event::ToolCallFinished { call, outcome } => finished(*call, outcome, run),
        Event::ToolCallProbed { call, probe } => format!("[call {call}] its traces say: {}\n", probe_phrase(*probe)),
        Event::ToolOutcomeResolved { call, resolution, by: _ } => {
            format!("[call {call}] you say: {}\n", resolution_phrase(resolution))
        }
        Event::QuestionAnswered { call, text, by: _ } => format!("[call {call}] you answered\n{}", block(text)),
        Event::PlanUpdated { plan, by, told } => plan_change(plan, by.is_some(), told),
        Event::DoneClaimed { summary, .. } => {
            format!("[claim] the goal is reached, says the model\n{}", block(summary))
        }
        Event::CheckStarted { index } => format!("[check {}] runs: {}\n", index + 1, check_title(run, *index)),
        Event::AcceptanceChecked { index, passed: true, .. } => format!("[check {}] passed\n", index + 1),
        Event::AcceptanceChecked { index, passed: false, detail } => {
            format!("[check {}] failed\n{}", index + 1, block(&excerpt(detail, limits::LINES_EXCERPT_BYTES)))
        }
        Event::ConfirmationRequested { index } => {
            let question = run.terms.checks.get(*index).map(|check| title(check.question())).unwrap_or_default();
            format!("[check {}] asks you: {question}\n", index + 1)
        }
        Event::ConfirmationGiven { index, confirmed, text, by: _ } => {
            format!("[check {}] you said {}\n{}", index + 1, if *confirmed { "yes" } else { "no" }, block(text))
        }
        Event::ReplansGranted { by: _ } => "[stall] you granted new replans\n".to_string(),
        Event::CheckInterrupted { index } => format!("[check {}] was ended; it is run again\n", index + 1),
        Event::ClaimJudged { verdict, text } => format!("[claim] {}\n{}", claim_phrase(*verdict), block(text)),
        Event::StallDetected { detector, diagnosis } => format!("[stall] {}\n{}", detector.phrase(), block(diagnosis)),
        Event::Warned { what, text } => format!("[warned] {}\n{}", what.phrase(), block(text)),
        Event::IterationClosed { n, verdict } => closed(*n, verdict, run),
        Event::OwnerAcquired { .. } | Event::BudgetReserved { .. } | Event::ProgressObserved { .. } => String::new(),
    }
}

/// A status with what can be done about it.
pub fn status_line(run: &Run, zone: &TimeZone) -> String {
    status_with(run, &spending::remedy(run).unwrap_or_default(), zone)
}

/// A status with this remedy, where it is one that can be cleared.
pub fn status_with(run: &Run, remedy: &str, zone: &TimeZone) -> String {
    let together = ending::together(run).map(|all| format!("  true at the same time: {all}\n")).unwrap_or_default();
    match &run.status {
        Status::Parked(reason) => {
            let until = match reason {
                ParkReason::RateLimited { until }
                | ParkReason::ProviderWait { until }
                | ParkReason::DailyBudget { until, .. } => {
                    format!(" until {}", clock(*until, zone))
                }
                _ => String::new(),
            };
            format!("[parked] {}{until}\n{together}  what to do: {remedy}\n", reason.phrase_now(run.waiting_count()))
        }
        Status::Completed(finish) => format!("[completed] {}\n{together}", finish.phrase()),
        Status::Failed(failure) => format!("[failed] {}\n", failure.phrase()),
        Status::Queued | Status::Running | Status::Cancelled => format!("[{}]\n", run.status.word()),
    }
}

/// The head of a run: what it was started with.
pub fn created(run: &Run, terms: &Terms) -> String {
    let mut text = format!("[run {}]{}\n{}", run.id, rehearsal(terms), block(terms.goal.as_str()));
    text += &format!("  folder: {}\n", title(&terms.workspace));
    text += &format!("  model: {}\n", title(&terms.model.name));
    let limits: Vec<String> = Axis::ALL
        .iter()
        .filter(|axis| !axis.is_optional() || terms.limits.on(**axis) != Limit::Unlimited)
        .map(|axis| format!("{} {}", axis.word(), limit_phrase(*axis, terms.limits.on(*axis))))
        .collect();
    text += &format!("  limits at start: {}\n", limits.join(", "));
    if !terms.trust.is_ask() {
        text += &format!("  trust at start: {}, {}\n", terms.trust, terms.trust.meaning());
    }
    if let Some(guide) = &terms.guide {
        text += &format!("  told as text of the repository: {}\n", title(&guide.title()));
    }
    for (index, check) in terms.checks.iter().enumerate() {
        text += &format!("  check {}:{}", index + 1, whole(&check.title()));
    }
    text
}

fn rehearsal(terms: &Terms) -> &'static str {
    if terms.rehearsal { " a rehearsal: scripted model, pretended money" } else { "" }
}

/// The plan, and who changed it where that was not a tool call.
fn plan_change(plan: &Plan, by_operator: bool, told: &str) -> String {
    let who = match (by_operator, told.is_empty()) {
        (true, _) => format!("[plan {}] {}\n", plan.revision, title(told)),
        (false, false) => format!("[plan {}] read from the text of the reply\n", plan.revision),
        (false, true) => String::new(),
    };
    format!("{who}{}", plan_lines(plan))
}

/// The plan, a todo a line, each with its mark in words.
pub fn plan_lines(plan: &Plan) -> String {
    let (done, all) = plan.score();
    let mut text = format!("[plan {}] {done} of {all} done\n", plan.revision);
    for todo in &plan.todos {
        let indent = if todo.parent.is_some() { "    " } else { "  " };
        let mark = match todo.status {
            TodoStatus::Pending => "to do",
            TodoStatus::InProgress => "now",
            TodoStatus::Done => "done",
            TodoStatus::Blocked => "blocked",
            TodoStatus::Dropped => "dropped",
        };
        let note = if todo.note.is_empty() { String::new() } else { format!(" ({})", title(&todo.note)) };
        text += &format!("{indent}({mark}) {}: {}{note}\n", title(&todo.id.0), title(&todo.title));
    }
    text
}

/// What was spent, against its limits, in one line without its end.
pub fn spend(run: &Run) -> String {
    let part = |axis: Axis| {
        let limit = limit_phrase(axis, run.pool.limits().on(axis));
        format!("{} {} of {limit}", axis.word(), axis.show(run.pool.used(axis)))
    };
    let axes = [Axis::Cost, Axis::Tokens, Axis::Loops, Axis::ModelCalls, Axis::ToolCalls, Axis::Active];
    let mut text = axes.map(part).join(", ");
    if run.terms.is_pretend() {
        text = text.replacen(", ", " (pretend money), ", 1);
    }
    if let Limit::At(deadline) = run.pool.limits().deadline {
        text += &format!(", deadline {}", moment(Timestamp(deadline)));
    }
    if let Some(held) = run.pool.reserved() {
        text += &format!("; {} held for {}", held.amount, held.id.call);
    }
    text
}

/// A limit for people.
pub fn limit_phrase(axis: Axis, limit: Limit) -> String {
    match limit {
        Limit::At(most) => axis.show(most),
        Limit::Unlimited if axis.is_optional() => NONE.to_string(),
        Limit::Unlimited => "UNLIMITED".to_string(),
    }
}

pub(crate) fn control_phrase(control: Control) -> &'static str {
    match control {
        Control::Pause(Pause::AfterIteration) => "pause at the end of this iteration",
        Control::Pause(Pause::AfterTool) => "pause when what runs has ended",
        Control::Pause(Pause::Now) => "pause now",
        Control::Leave => "leave",
        Control::Cancel(Cancel::Graceful) => "cancel",
        Control::Cancel(Cancel::Now) => "cancel now",
    }
}

/// What a run lacks, a line each.
pub fn lacking(lacks: &[String]) -> String {
    lacks.iter().map(|lack| format!("[missing] {}\n", title(lack))).collect()
}

fn recovered(findings: &[Finding]) -> String {
    let mut text = "[recovered] the process before this one ended while the run was running\n".to_string();
    for finding in findings {
        text += &match finding {
            Finding::ModelCallLost(call) => format!("  model call {call} is lost; its worst case counts as spent\n"),
            Finding::ToolCallLost(call) => format!("  call {call} may or may not have happened\n"),
            Finding::CheckLost(index) => format!("  check {} is run again\n", index + 1),
        };
    }
    text
}

fn prepared(call: CallId, facts: &Facts) -> String {
    match &facts.problem {
        Some(problem) => format!("[call {call}] can't be run: {}\n", title(&problem.text)),
        None => format!("[call {call}] looked at: {}: {}\n", title(&facts.reach), title(&facts.title)),
    }
}

fn trusted(trust: Trust, by: &str) -> String {
    format!("[trust] {trust}, set by {}: {}\n", title(by), trust.meaning())
}

fn decided(call: CallId, decision: &Decision, is_rule: bool, by: &str) -> String {
    let by = title(by);
    match decision {
        Decision::AllowOnce if is_rule => format!("[call {call}] allowed by {by}\n"),
        Decision::AllowOnce => format!("[call {call}] allowed once by {by}\n"),
        Decision::AllowRun => format!("[call {call}] allowed until the run ends by {by}\n"),
        Decision::AllowTool => format!("[call {call}] its tool is allowed until the run ends by {by}\n"),
        Decision::AllowRule(draft) => {
            let rule = title(&draft.to_string());
            format!("[call {call}] allowed by {by}, who made rule {}: {rule}\n", draft.id())
        }
        Decision::AllowUnboxed => format!("[call {call}] allowed once, outside of the box, by {by}\n"),
        Decision::Edit(arguments) => format!("[call {call}] changed and allowed by {by}\n{}", block(arguments)),
        Decision::Deny(text) => format!("[call {call}] denied by {by}\n{}", block(text)),
    }
}

fn finished(call: CallId, outcome: &ToolOutcome, run: &Run) -> String {
    let after = match outcome.kind {
        OutcomeKind::Done | OutcomeKind::Failed | OutcomeKind::TimedOut => {
            format!(" after {}, {}", human(outcome.took), counted(outcome.bytes, "byte"))
        }
        // Nothing was said of it since it was asked for, among others.
        OutcomeKind::NotRun(_) => format!(": {}", asked_for(run, call)),
        OutcomeKind::Cancelled | OutcomeKind::Denied | OutcomeKind::Unknown => String::new(),
    };
    let text = block(&excerpt(&outcome.text, limits::LINES_EXCERPT_BYTES));
    format!("[call {call}] {}{after}\n{text}", outcome.kind.word())
}

fn probe_phrase(probe: Probe) -> &'static str {
    match probe {
        Probe::Done => "it happened",
        Probe::NotDone => "it did not happen",
        Probe::Unknown => "it can't be told",
    }
}

fn resolution_phrase(resolution: &Resolution) -> String {
    match resolution {
        Resolution::Happened(text) if text.is_empty() => "it happened".to_string(),
        Resolution::Happened(text) => format!("it happened: {}", title(text)),
        Resolution::NotHappened => "it did not happen".to_string(),
        Resolution::RunAgain => "run it again".to_string(),
        Resolution::Skip => "go on without knowing".to_string(),
    }
}

fn claim_phrase(verdict: ClaimVerdict) -> &'static str {
    match verdict {
        ClaimVerdict::Verified => "verified: all checks passed",
        ClaimVerdict::Unverified => "taken at its word: there are no checks",
        ClaimVerdict::Rejected => "rejected",
        ClaimVerdict::Postponed => "not judged, because you have spoken",
    }
}

fn closed(n: u32, verdict: &Verdict, run: &Run) -> String {
    let action = match &verdict.action {
        Course::Continue => "goes on".to_string(),
        Course::Replan => "a new plan is due".to_string(),
        Course::WrapUp(axis) => format!("at its limit ({}); the model says where the work stands", axis.word()),
        Course::Park(reason) => format!("parks: {}", reason.phrase()),
        Course::Complete(finish) => format!("ends: {}", finish.phrase()),
    };
    format!("[iteration {n}] closed, {action}\n[spend] {} in this iteration; {}\n", run.iteration.spent, spend(run))
}

fn call_title(run: &Run, call: CallId) -> String {
    run.calls.get(&call).map(|call| format!("{} {}", title(&call.tool), title(&call.title()))).unwrap_or_default()
}

/// A call by its tool and what its arguments say that it is about.
fn asked_for(run: &Run, call: CallId) -> String {
    let Some(call) = run.calls.get(&call) else { return String::new() };
    format!("{} {}", title(&call.tool), title(&words(&call.arguments).unwrap_or_else(|| call.title())))
}

fn check_title(run: &Run, index: usize) -> String {
    run.terms.checks.get(index).map(|check| title(&check.title())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]

    use super::*;
    use crate::domain::approval::Decision;
    use crate::domain::command::Command;
    use crate::domain::command::Policy;
    use crate::domain::id::CallId;
    use crate::headless::fixture::Desk;
    use crate::headless::fixture::asks_for;
    use crate::headless::fixture::finishes;
    use crate::headless::fixture::plans;

    /// All lines of a journal.
    fn told(desk: &Desk) -> String {
        let records = desk.records.lock().unwrap();
        let mut run = Run::begin(desk.run.id.clone(), &records[0]).unwrap();
        let mut text = lines(&records[0], &run, &TimeZone::UTC);
        for record in &records[1..] {
            run.apply(record).unwrap();
            text += &lines(record, &run, &TimeZone::UTC);
        }
        text
    }

    #[test]
    fn a_run_reads_like_this() {
        let mut desk = Desk::new(vec![plans(), asks_for("run_command", "make \u{1b}[2J\n[completed] ha"), finishes()]);
        desk.recover();
        let digest = desk.run.calls[&CallId(2)].digest().unwrap();
        let decision = Decision::AllowOnce;
        desk.order(Command::Interject { text: "mind\nthe gap".to_string(), policy: Policy::Next });
        desk.order(Command::Decide { call: CallId(2), digest: digest.clone(), decision });
        let expected = include_str!("../../tests/fixtures/plain.txt").replace("DIGEST", digest.short());
        assert_eq!(told(&desk), expected);
    }
}
