//! What must be so whenever a run is opened again: what was acknowledged is there, no effect came more often than the
//! operator allowed, no bill is missing in the run or in the ledger of all runs, and each call has one result at most.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;
use tiller::domain::approval::By;
use tiller::domain::approval::Decision;
use tiller::domain::approval::Resolution;
use tiller::domain::daily::Daily;
use tiller::domain::daily::Line;
use tiller::domain::event::Event;
use tiller::domain::event::Record;
use tiller::domain::id::CallId;
use tiller::domain::message::Message;
use tiller::domain::run::Run;
use tiller::domain::time::Timestamp;
use tiller::domain::tool::OutcomeKind;
use tiller::domain::tool::Probe;

/// What the outside world knows of a life.
#[derive(Clone)]
pub struct World {
    /// Records that were printed, by number.
    pub acknowledged: BTreeMap<u64, Value>,
    /// Commands of the operator that were answered, and those that were tried.
    pub orders: (u64, u64),
    /// How often each mark was left.
    pub marks: BTreeMap<String, u64>,
    /// What the provider is owed.
    pub owed: u64,
    /// What the ledger of all runs counts, where the run spends real money.
    pub ledger: Option<Counted>,
}

/// What the ledger of all runs counts, and how that compares with the only run there is.
#[derive(Clone, Copy, Debug)]
pub enum Counted {
    /// As much as the run knows of, or more: what its last process could not tell counts at its worst case.
    AtLeast(u64),
    /// Just as much: its last process ended by itself.
    Exactly(u64),
}

/// What the journal has about one call.
#[derive(Default)]
struct Told {
    mark: String,
    allowed: u64,
    started: u64,
    results: u64,
    resolved: bool,
    is_done: bool,
}

/// Compares a journal that was just read with the world. The error says what does not hold.
pub fn check(records: &[Record], run: &Run, world: &World) -> Result<(), String> {
    for (seq, line) in &world.acknowledged {
        let there = records.get(usize::try_from(*seq - 1).unwrap());
        let there = there.map(|record| serde_json::to_value(record).unwrap());
        if there.as_ref() != Some(line) {
            return Err(format!("record {seq} was acknowledged as {line} and is {there:?}"));
        }
    }
    let recorded = records.iter().filter(|record| is_order(&record.event)).count() as u64;
    if recorded < world.orders.0 || recorded > world.orders.1 {
        let (answered, tried) = world.orders;
        return Err(format!("{answered} of {tried} commands were answered and {recorded} are recorded"));
    }
    let known = run.pool.spent().0 + run.pool.reserved().map_or(0, |held| held.amount.0);
    if world.owed > known {
        return Err(format!("the provider is owed {} and the run knows of {known}", world.owed));
    }
    let fits = match world.ledger {
        Some(Counted::AtLeast(counted)) => counted >= known,
        Some(Counted::Exactly(counted)) => counted == known,
        None => true,
    };
    if !fits {
        return Err(format!("the ledger of all runs counts {:?} and the run knows of {known}", world.ledger));
    }
    let calls = calls(records);
    effects(&calls, &world.marks)?;
    results(&calls, run)
}

fn effects(calls: &BTreeMap<CallId, Told>, marks: &BTreeMap<String, u64>) -> Result<(), String> {
    for (mark, left) in marks {
        let Some((call, told)) = calls.iter().find(|(_, told)| told.mark == *mark) else {
            return Err(format!("{mark} was left by a call that the journal does not have"));
        };
        if told.started == 0 {
            return Err(format!("{call} left {mark} and was never started"));
        }
        if *left > told.allowed {
            return Err(format!("{call} left {mark} {left} times and was allowed {} times", told.allowed));
        }
    }
    for (call, told) in calls.iter().filter(|(_, told)| told.is_done && !told.resolved && told.started > 0) {
        if !told.mark.is_empty() && !marks.contains_key(&told.mark) {
            return Err(format!("{call} is done and left no {}", told.mark));
        }
    }
    Ok(())
}

fn results(calls: &BTreeMap<CallId, Told>, run: &Run) -> Result<(), String> {
    for (call, told) in calls {
        if told.results > 1 || (run.is_ended() && told.results != 1) {
            return Err(format!("{call} has {} results", told.results));
        }
    }
    let mut words = BTreeSet::new();
    for entry in run.transcript.all() {
        if let Message::Operator { id, .. } = &entry.message
            && !words.insert(*id)
        {
            return Err(format!("{id} was delivered twice"));
        }
    }
    Ok(())
}

fn calls(records: &[Record]) -> BTreeMap<CallId, Told> {
    let mut calls: BTreeMap<CallId, Told> = BTreeMap::new();
    for record in records {
        match &record.event {
            Event::ToolCallProposed { call, tool, arguments, .. } => {
                let leaves = matches!(tool.as_str(), "shell" | "write_file" | "edit_file");
                calls.entry(*call).or_default().mark = if leaves { mark(arguments) } else { String::new() };
            }
            Event::ApprovalDecided { call, decision: Decision::AllowOnce, by: By::Operator(_), .. }
            | Event::ToolCallProbed { call, probe: Probe::NotDone } => calls.entry(*call).or_default().allowed += 1,
            Event::ToolOutcomeResolved { call, resolution, .. } => {
                let told = calls.entry(*call).or_default();
                told.resolved = true;
                told.allowed += u64::from(*resolution == Resolution::RunAgain);
            }
            Event::ToolCallStarted { call, .. } => calls.entry(*call).or_default().started += 1,
            Event::ToolCallFinished { call, outcome } => {
                let told = calls.entry(*call).or_default();
                told.results += 1;
                told.is_done = outcome.kind == OutcomeKind::Done;
            }
            _ => {}
        }
    }
    calls
}

/// What the ledger in this state directory counts: every whole line of it as it lies there, mended by nobody.
pub fn ledger(state: &Path) -> u64 {
    let bytes = fs::read(state.join("tiller/ledger.jsonl")).unwrap_or_default();
    let lines = bytes.split_inclusive(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
    let (mut daily, mut latest) = (Daily::default(), Timestamp(0));
    for line in lines {
        let line: Line = line;
        latest = latest.max(line.at);
        daily.take(&line);
    }
    daily.spent(latest).0
}

/// The mark in a text: `m1-2m`.
pub fn mark(text: &str) -> String {
    let is_mark = |word: &&str| {
        let digits = word.strip_prefix('m').and_then(|rest| rest.strip_suffix('m')).unwrap_or_default();
        digits
            .split_once('-')
            .is_some_and(|(step, number)| step.parse::<u32>().is_ok() && number.parse::<u32>().is_ok())
    };
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-');
    words.into_iter().find(is_mark).unwrap_or_default().to_string()
}

/// Whether the operator of these tests said so by a command.
fn is_order(event: &Event) -> bool {
    matches!(
        event,
        Event::ApprovalDecided { by: By::Operator(_), .. }
            | Event::ToolOutcomeResolved { .. }
            | Event::QuestionAnswered { .. }
            | Event::InterjectionQueued { .. }
    )
}
