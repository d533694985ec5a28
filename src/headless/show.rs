//! Runs as text: one in full, all of them as a list, and both as JSON for programs. Pure.

use jiff::tz::TimeZone;
use serde_json::Value;
use serde_json::json;

use crate::domain::budget::Axis;
use crate::domain::daily::Today;
use crate::domain::event::ClaimVerdict;
use crate::domain::event::Event;
use crate::domain::event::Record;
use crate::domain::limits;
use crate::domain::lineage::Here;
use crate::domain::lineage::Lineage;
use crate::domain::money::MicroUsd;
use crate::domain::run::Run;
use crate::domain::run::Waits;
use crate::domain::status::ParkReason;
use crate::domain::status::Status;
use crate::domain::summary::Listed;
use crate::domain::summary::Summary;
use crate::domain::text::counted;
use crate::domain::time::Timestamp;
use crate::domain::tool::ToolCall;
use crate::headless::changed;
use crate::headless::deeds;
use crate::headless::lines::created;
use crate::headless::lines::lacking;
use crate::headless::lines::limit_phrase;
use crate::headless::lines::plan_lines;
use crate::headless::lines::spend;
use crate::headless::lines::status_line;
use crate::headless::lines::status_with;
use crate::headless::orders::deciding;
use crate::headless::orders::further;
use crate::headless::orders::question;
use crate::headless::prompt::head;
use crate::headless::prompt::whole;
use crate::headless::remembered;
use crate::headless::text::block;
use crate::headless::text::clock;
use crate::headless::text::title;
use crate::headless::under_way;
use crate::policy::grave;
use crate::policy::spending;

/// Of the time of a run whose process died (docs/ENGINE.md §8.1).
const UNCOUNTED: &str =
    "[time] counts up to the last record; nobody knows for how long its process ran on after that\n";

/// What stands against going on with a run here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// Nothing.
    Free,
    /// This, and what to do; the end of a sentence.
    Hindered(String),
    /// This process holds it: it is shown from a copy of the moment.
    Held(String),
}

impl Way {
    /// What it is, for programs; nothing where nothing is.
    fn hindrance(&self) -> Option<String> {
        match self {
            Way::Free => None,
            Way::Hindered(why) => Some(why.clone()),
            Way::Held(holder) => Some(format!("it is held by {holder}")),
        }
    }
}

/// A run in full: what it is for, where it stands and why, what waits, and the lines to type. Where something stands
/// against going on here, that is said in the place of those lines. `records` is its journal.
pub fn run(run: &Run, records: &[Record], today: Option<Today>, way: &Way, zone: &TimeZone) -> String {
    let mut text = String::new();
    if let Way::Held(holder) = way {
        text += &format!("held by {holder}; this is a copy of this moment, record {}; go on there\n", run.seq);
    }
    text += &opening(run, way, zone);
    // A rehearsal that was imported has no folder in which anything could go on.
    if let Some(way_on) = run.status.way_on().filter(|_| !(run.brought.is_some() && run.terms.rehearsal)) {
        let first = if let Way::Hindered(why) = way { format!("{why}; then: ") } else { String::new() };
        text += &format!("  {first}{}\n", way_on.replace("RUN", run.id.short()));
    }
    if let Some(guide) = &run.terms.guide {
        text += &format!("[guide] {}: told as text of the repository, each line behind a bar\n", title(&guide.title()));
        text += &block(&guide.text);
    }
    text += &under_way::lines(run, matches!(way, Way::Held(_)), zone);
    text += &facts(run, records, today, zone);
    if is_cut_off(run, matches!(way, Way::Held(_))) {
        text += UNCOUNTED;
    }
    text += &remembered::lines(&remembered::of(run, records));
    text += &deeds::hidden(run, records);
    let doubtful: String = run
        .pool
        .doubtful()
        .map(|(id, amount)| format!("  {id} {amount}: tiller correct {} {id} DOLLARS\n", run.id.short()))
        .collect();
    if !doubtful.is_empty() {
        text += &format!("[in doubt] what these calls cost can't be verified; if you know better, say so\n{doubtful}");
    }
    for (call, waits) in run.waiting() {
        text += &head(run, call, waits);
        text += &whole(call, waits);
    }
    text + &match way {
        Way::Free => {
            let waiting = run.waiting().into_iter();
            to_type(run) + &waiting.map(|(call, waits)| unboxed(run, call, waits)).collect::<String>()
        }
        Way::Hindered(_) if run.is_ended() => String::new(),
        Way::Hindered(why) => hindered(why),
        Way::Held(_) => String::new(),
    }
}

/// The line that lets a call that waits run outside of its box, with the code for it.
fn unboxed(run: &Run, call: &ToolCall, waits: Waits) -> String {
    let Some((code, digest)) = unboxed_code(run, call, waits).zip(call.digest()) else { return String::new() };
    format!(
        "  to let it run outside of its box, with your full rights, once: tiller approve {} {} {} --unboxed --code {code}\n",
        run.id.short(),
        call.id,
        digest.short()
    )
}

fn unboxed_code(run: &Run, call: &ToolCall, waits: Waits) -> Option<String> {
    grave::code_unboxed(run, call).filter(|_| waits == Waits::Decision)
}

/// That a run can't go on here, and why.
pub fn hindered(why: &str) -> String {
    format!("it can't go on here: {why}\n")
}

/// What can be read of a run that can't be opened: how it stood, and nothing that could only be done if it could.
pub fn rest(run: &Run, records: &[Record], zone: &TimeZone) -> String {
    let head = created(run, &run.terms);
    format!(
        "{head}[stood] {}, iteration {}\n{}{}{}",
        run.status.phrase(),
        run.iteration.n,
        plan_lines(&run.plan),
        facts(run, records, None, zone),
        deeds::hidden(run, records)
    )
}

/// What is known of a run besides its head, its status and its plan.
fn facts(run: &Run, records: &[Record], today: Option<Today>, zone: &TimeZone) -> String {
    let mut text = String::new();
    if let Some(line) = &run.lineage {
        let Lineage { parent, iteration, cost, .. } = line;
        text += &format!("[fork] of run {parent} after its iteration {iteration}, which had cost {cost} by then\n");
    }
    for record in records.iter().filter(|record| Some(record.seq) == run.brought) {
        if let Event::Imported { here, .. } = &record.event {
            text += &imported(records, record.at, here.as_ref(), zone);
        }
    }
    if run.attempt > 1 {
        text += &format!("[retry] this is attempt {}\n", run.attempt);
    }
    text += &format!("[spend] {}\n", spend(run));
    let (count, begun) = (run.pool.used(Axis::Loops), u64::from(run.iteration.n));
    if count < begun {
        text += &format!(
            "  of {} {count} {} for the limit: planning and wrapping up do not\n",
            counted(begun, "iteration"),
            if count == 1 { "counts" } else { "count" }
        );
    }
    if let Some(Today { spent, limit }) = today {
        text += &format!("  all runs together: {spent} of {} in 24 hours\n", limit_phrase(Axis::Cost, limit));
    }
    if run.pool.estimated() > MicroUsd(0) {
        text += &format!(
            "  {} of it is estimated: calls that were ended early, or of which the provider did not report\n",
            run.pool.estimated()
        );
    }
    if run.pool.unverified() > MicroUsd(0) {
        text += &format!(
            "  {} of it can't be verified: calls that were cut off count at their worst case\n",
            run.pool.unverified()
        );
    }
    text += &lacking(&run.lacks);
    if let Some(trouble) = &run.trouble {
        text += &format!("[model] failed last: {}\n", title(&trouble.message));
    }
    let is_rejected = run.status == Status::Parked(ParkReason::Verification);
    if let Some(why) = records.iter().rev().find_map(|record| rejected(&record.event)).filter(|_| is_rejected) {
        text += &format!("[claim] the last one was rejected\n{}", block(why));
    }
    if let Some(stall) = &run.stall {
        let is_why = matches!(run.status, Status::Parked(ParkReason::Stalled(_)));
        let also = if is_why { "" } else { "also true: " };
        text += &format!("[stall] {also}nothing moved\n{}", block(&stall.diagnosis));
    }
    for said in &run.interjections {
        text += &format!("[you] {}, not told yet: {}\n{}", said.id, said.policy.phrase(), block(&said.text));
    }
    for tool in run.progress.disabled() {
        text += &format!(
            "[tool] {} broke {} times and is not used any more in this run\n",
            title(tool),
            limits::TOOL_FAULTS
        );
    }
    text + &deeds::deeds(run, records)
}

/// When a run came from elsewhere, and what became of the checks that it had there.
fn imported(records: &[Record], at: Timestamp, here: Option<&Here>, zone: &TimeZone) -> String {
    let first = records.first().map(|record| &record.event);
    let had = if let Some(Event::RunCreated { terms }) = first { terms.checks.len() } else { 0 };
    let checks = match (had, here.is_none_or(|here| here.with_checks)) {
        (0, _) => String::new(),
        (_, true) => format!("; {} from there were taken over", counted(had, "check")),
        (_, false) => format!("; {} from there were left out", counted(had, "check")),
    };
    format!("[import] brought from elsewhere on {}{checks}\n", clock(at, zone))
}

/// Why a claim was rejected, if that is what happened.
fn rejected(event: &Event) -> Option<&str> {
    if let Event::ClaimJudged { verdict: ClaimVerdict::Rejected, text } = event { Some(text) } else { None }
}

/// A run as it is found: its head, its status and its plan.
pub fn opening(run: &Run, way: &Way, zone: &TimeZone) -> String {
    let is_held = matches!(way, Way::Held(_));
    let stands = standing(run, is_held);
    let status = match way {
        Way::Hindered(_) => status_with(&stands, "it can't go on here; why is said below", zone),
        Way::Free | Way::Held(_) => status_line(&stands, zone),
    };
    let since = match is_cut_off(run, is_held) {
        true => format!("no process drives it; its last record is of {}", clock(run.at, zone)),
        false => format!("since {}", clock(run.status_since, zone)),
    };
    let since = format!("  {since}, iteration {}\n", run.iteration.n);
    let trust = format!("[trust] {}: {}\n", run.trust, run.trust.meaning());
    format!("{}{status}{since}{trust}{}", created(run, &run.terms), plan_lines(&run.plan))
}

/// A run that its journal calls running although no process drives it, as it stands: the next owner records so much first
/// (docs/ENGINE.md §10.7). Any other as it is.
fn standing(run: &Run, is_held: bool) -> Run {
    Run { status: run.status.as_held(is_held), ..run.clone() }
}

/// Whether the process that drove a run is gone, and nobody recorded it yet.
fn is_cut_off(run: &Run, is_held: bool) -> bool {
    run.status == Status::Running && !is_held
}

/// The last words about a run that is left: how it stands, and what gets it further.
pub fn parting(run: &Run) -> String {
    left(run) + &to_type(run)
}

/// How a run stands that is left, so that no process drives it, in a line.
pub fn left(run: &Run) -> String {
    let phrase = match &run.status.as_held(false) {
        Status::Parked(reason) => format!("parked ({})", reason.phrase_now(run.waiting_count())),
        Status::Completed(finish) => format!("completed ({})", finish.phrase()),
        Status::Failed(failure) => format!("failed ({})", failure.phrase()),
        Status::Queued | Status::Running | Status::Cancelled => run.status.word().to_string(),
    };
    let money = if run.terms.is_pretend() { " of pretend money" } else { "" };
    format!("run {} is {phrase} · {}{money} spent{}\n", run.id.short(), run.pool.spent(), unsure(run))
}

/// The parts of what was spent that nobody reported, behind the sum; nothing where all of it was.
fn unsure(run: &Run) -> String {
    let part = |amount: MicroUsd, what: &str| (amount > MicroUsd(0)).then(|| format!("{amount} {what}"));
    let parts = [part(run.pool.estimated(), "estimated"), part(run.pool.unverified(), "not verified")];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { String::new() } else { format!(" (of that {})", parts.join(", ")) }
}

fn to_type(run: &Run) -> String {
    let further = further(run);
    if further.is_empty() {
        return String::new();
    }
    let lines: String = further.iter().map(|line| format!("  {line}\n")).collect();
    match run.waiting().is_empty() {
        true => format!("to go on, type:\n{lines}"),
        false => format!("to go on, settle each call with one line, then resume:\n{lines}"),
    }
}

/// A run in full, as one JSON object. `records` is its journal.
pub fn run_json(run: &Run, records: &[Record], today: Option<Today>, way: &Way) -> String {
    let is_held = matches!(way, Way::Held(_));
    let mut all = whole_json(&standing(run, is_held), today);
    // What the journal says, as in the list of runs.
    all["summary"] = json!(Summary::of(run));
    all["under_way"] = under_way::json(run, is_held);
    all["remembered"] = json!(remembered::of(run, records));
    all["hindrance"] = json!(way.hindrance());
    if matches!(way, Way::Hindered(_)) && !run.is_ended() {
        all["remedy"] = Value::Null;
        all["further"] = json!([]);
    }
    if let Some(guide) = &run.terms.guide {
        all["guide"] = json!(guide);
    }
    format!("{all}\n")
}

/// What can be read of a run that can't be opened, as one JSON object, with the lines that help.
pub fn rest_json(run: &Run, further: &[String]) -> String {
    let mut all = whole_json(run, None);
    all["remedy"] = Value::Null;
    all["waiting"] = json!([]);
    all["further"] = json!(further);
    format!("{all}\n")
}

fn whole_json(run: &Run, today: Option<Today>) -> Value {
    let axes: serde_json::Map<String, Value> = Axis::ALL
        .iter()
        .map(|axis| {
            let used = (*axis != Axis::Deadline).then(|| run.pool.used(*axis));
            (axis.word().to_string(), json!({"used": used, "limit": run.pool.limits().on(*axis)}))
        })
        .collect();
    let reason = match &run.status {
        Status::Parked(reason) => Some(reason.phrase_now(run.waiting_count())),
        Status::Queued | Status::Running | Status::Completed(_) | Status::Failed(_) | Status::Cancelled => None,
    };
    let waiting: Vec<Value> = run.waiting().into_iter().map(|(call, waits)| waiting_json(run, call, waits)).collect();
    json!({
        "summary": Summary::of(run),
        "goal": run.terms.goal.as_str(),
        "reason": reason,
        "remedy": spending::remedy(run),
        "trust": run.trust,
        "plan": run.plan,
        "axes": axes,
        "reserved": run.pool.reserved(),
        "estimated": run.pool.estimated(),
        "unverified": run.pool.unverified(),
        "doubtful": run.pool.doubtful().map(|(id, amount)| json!({"call": id.to_string(), "amount": amount})).collect::<Vec<_>>(),
        "today": today.map(|Today { spent, limit }| json!({"spent": spent, "limit": limit})),
        "waiting": waiting,
        "disabled": run.progress.disabled().collect::<Vec<_>>(),
        "further": further(run),
    })
}

fn waiting_json(run: &Run, call: &ToolCall, waits: Waits) -> Value {
    let waits_for = match waits {
        Waits::Decision => "decision",
        Waits::Outcome => "outcome",
        Waits::Answer => "answer",
    };
    json!({
        "call": call.id.to_string(),
        "waits_for": waits_for,
        "tool": call.tool,
        "arguments": call.arguments,
        "title": call.title(),
        "question": (waits == Waits::Answer).then(|| question(call)),
        "digest": call.digest(),
        "facts": call.facts,
        "edited": changed::json(call),
        "grave": grave::of(call),
        "code": grave::code(run, call),
        "code_unboxed": unboxed_code(run, call, waits),
        "commands": deciding(run, call, waits),
    })
}

/// All runs, one JSON object a line.
pub fn runs_json(all: &[Listed]) -> String {
    all.iter()
        .map(|listed| match listed {
            Listed::Run { summary, held_by } => format!("{}\n", json!({"summary": summary, "held_by": held_by})),
            Listed::Damaged { id, why } => format!("{}\n", json!({"damaged": id, "why": why})),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::domain::approval::Decision;
    use crate::domain::budget::Basis;
    use crate::domain::budget::Charge;
    use crate::domain::budget::Limit;
    use crate::domain::budget::Reservation;
    use crate::domain::budget::ReservationId;
    use crate::domain::command::Command;
    use crate::domain::command::Policy;
    use crate::domain::id::CallId;
    use crate::domain::id::ModelCallId;
    use crate::domain::id::RUN_ID_LENGTH;
    use crate::domain::id::RunId;
    use crate::domain::money::Usage;
    use crate::headless::fixture::Desk;
    use crate::headless::fixture::asks_for;
    use crate::headless::fixture::plans;

    fn waiting() -> Run {
        let mut desk = Desk::new(vec![plans(), asks_for("run_command", "make \u{202e}\n[completed] ha")]);
        desk.recover();
        desk.order(Command::Interject { text: "mind the gap".to_string(), policy: Policy::Next });
        desk.run
    }

    #[test]
    fn a_run_is_shown_in_full() {
        let shown = waiting();
        let digest = shown.calls[&CallId(2)].digest().unwrap();
        let expected = include_str!("../../tests/fixtures/show.txt").replace("DIGEST", digest.short());
        assert_eq!(run(&shown, &[], None, &Way::Free, &TimeZone::UTC), expected);
        let today = Today { spent: MicroUsd(3_000_000), limit: Limit::At(20_000_000) };
        let line = "  all runs together: $3.00 of $20.00 in 24 hours\n";
        assert_eq!(run(&shown, &[], Some(today), &Way::Free, &TimeZone::UTC).replace(line, ""), expected);
    }

    #[test]
    fn a_run_that_nobody_drives_does_not_run_whatever_its_journal_says() {
        let mut desk = Desk::new(vec![plans(), asks_for("run_command", "make")]);
        desk.recover();
        let digest = desk.run.calls[&CallId(2)].digest().unwrap();
        desk.order_and_die(Command::Decide { call: CallId(2), digest, decision: Decision::AllowOnce });
        let shown = |way: &Way| run(&desk.run, &[], None, way, &TimeZone::UTC);
        let (free, held) = (shown(&Way::Free), shown(&Way::Held("process 7".to_string())));
        let interrupted = "[parked] interrupted\n  what to do: resume\n  no process drives it; its last record is of 2023-11-14 \
                           22:13:20, iteration 2\n";
        assert!(free.contains(interrupted) && free.contains(UNCOUNTED) && !free.contains("[running]"), "{free}");
        assert!(held.contains("[running]\n  since 2023-11-14 22:13:20, iteration 2\n"), "{held}");
        assert!(!held.contains(UNCOUNTED) && !held.contains("interrupted"), "{held}");
        assert_eq!(left(&desk.run), "run 777777 is parked (interrupted) · $0.00 spent\n");
        let json: Value = serde_json::from_str(&run_json(&desk.run, &[], None, &Way::Free)).unwrap();
        assert_eq!((&json["reason"], &json["summary"]["status"]), (&json!("interrupted"), &json!("running")));
    }

    #[test]
    fn a_tool_that_is_not_used_any_more_is_named() {
        let mut shown = waiting();
        shown.progress.faults.insert("list_dir".to_string(), limits::TOOL_FAULTS);
        shown.progress.faults.insert("shell".to_string(), 1);
        let text = run(&shown, &[], None, &Way::Free, &TimeZone::UTC);
        assert!(text.contains("[tool] list_dir broke 3 times and is not used any more in this run\n"), "{text}");
        assert!(!text.contains("[tool] shell"), "{text}");
        let json: Value = serde_json::from_str(&run_json(&shown, &[], None, &Way::Free)).unwrap();
        assert_eq!(json.pointer("/disabled"), Some(&json!(["list_dir"])));
    }

    #[test]
    fn what_was_estimated_is_told_beside_the_sum() {
        let mut shown = waiting();
        let id = ReservationId { call: ModelCallId(9), attempt: 1 };
        let held = Reservation { id, amount: MicroUsd(100_000), tokens: 0, input: 0, bytes: 0 };
        shown.pool.reserve(held, shown.at).unwrap();
        let charge = Charge { amount: MicroUsd(60_600), usage: Usage::default(), basis: Basis::Estimated };
        shown.pool.settle(id, &charge).unwrap();
        assert_eq!(
            left(&shown),
            "run 777777 is parked (waiting for approval) · $0.0606 spent (of that $0.0606 estimated)\n"
        );
        let text = run(&shown, &[], None, &Way::Free, &TimeZone::UTC);
        assert!(text.contains("  $0.0606 of it is estimated: calls that were ended early, or of which"), "{text}");
    }

    #[test]
    fn json_has_the_same() {
        let shown = waiting();
        let json: Value = serde_json::from_str(&run_json(&shown, &[], None, &Way::Free)).unwrap();
        let digest = shown.calls[&CallId(2)].digest().unwrap();
        assert_eq!(json.pointer("/waiting/0/digest"), Some(&json!(digest.0)));
        assert_eq!(json.pointer("/waiting/0/waits_for"), Some(&json!("decision")));
        assert_eq!(json.pointer("/waiting/0/facts/preview"), Some(&json!("$ make \u{202e}\n[completed] ha")));
        assert_eq!(json.pointer("/reason"), Some(&json!("waiting for approval")));
        assert_eq!(json.pointer("/axes/cost/limit/at"), Some(&json!(5_000_000)));
        assert_eq!(json.pointer("/further/2"), Some(&json!("tiller resume 777777")));
    }

    #[test]
    fn runs_are_lines_for_programs() {
        let summary = Box::new(Summary::of(&waiting()));
        let damaged = RunId::from_entropy([9; RUN_ID_LENGTH]);
        let all = [
            Listed::Run { summary, held_by: Some(4711) },
            Listed::Damaged { id: damaged, why: "record 3\nis gone".to_string() },
        ];
        let lines = runs_json(&all);
        let json: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(json[0].pointer("/held_by"), Some(&json!(4711)));
        assert_eq!(json[1].pointer("/damaged"), Some(&json!("999999999999")));
    }
}
