//! Golden journals: what any version wrote must fold to the same run for ever.
//!
//! `tests/fixtures/journals/<format>-<name>.jsonl`, and those in the folder `second`, are exports as `tiller export` writes
//! them; beside each, a text says what it folds to. Neither is ever changed: a difference means that old runs are not
//! understood any more. `making.rs` makes those that are missing.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use tiller::domain::budget::Axis;
use tiller::domain::budget::Limit;
use tiller::domain::event::Event;
use tiller::domain::event::Record;
use tiller::domain::id::CallId;
use tiller::domain::message::Message;
use tiller::domain::run::Run;
use tiller::domain::text::sha256_hex;
use tiller::store::StoreError;
use tiller::store::transfer;

use crate::simulation::golden::all;
use crate::simulation::golden::golden;
use crate::simulation::golden::home;
use crate::simulation::golden::names;
use crate::simulation::golden::read;

/// What must stay the same of a folded run, in words.
pub fn tell(run: &Run, records: &[Record]) -> String {
    let mut text = String::new();
    let mut line = |words: String| writeln!(text, "{words}").unwrap();
    line(format!("{} at record {}, created {}", run.status.phrase(), run.seq, run.created.0));
    line(format!("goal {:?}", run.terms.goal.as_str()));
    line(format!("iteration {} ({}), open {}", run.iteration.n, run.iteration.phase.word(), run.iteration.is_open));
    // What no journal of then could have is told where there is one.
    let has = |axis: &Axis| !axis.is_optional() || run.pool.limits().on(*axis) != Limit::Unlimited;
    for axis in Axis::ALL.into_iter().filter(has) {
        line(format!("{}: {} of {:?}", axis.word(), run.pool.used(axis), run.pool.limits().on(axis)));
    }
    line(format!("unverified {}, estimated {}", run.pool.unverified().0, run.pool.estimated().0));
    let progress = &run.progress;
    line(format!(
        "idle {}, novelty {}, text only {}, replans {} ({} without effect), claims {}, recoveries {}",
        progress.idle,
        progress.novelty,
        progress.text_only,
        progress.replans,
        progress.ineffective,
        progress.claims,
        progress.recoveries
    ));
    line(format!(
        "denials {}, denied {:?}, granted {:?}",
        progress.denials,
        progress.denied.keys().collect::<Vec<_>>(),
        progress.granted
    ));
    line(format!("next {}, {}, {}", run.next.call, run.next.model_call, run.next.interjection));
    line(format!("waiting {:?}", run.waiting().iter().map(|(call, waits)| (call.id, waits)).collect::<Vec<_>>()));
    line(format!("not told yet {:?}", run.interjections.iter().map(|one| &one.text).collect::<Vec<_>>()));
    line(format!("verdict {:?}", run.verdict.as_ref().map(|verdict| &verdict.action)));
    line(format!("{} iterations closed", run.history.len()));
    // The results of one reply are told in the order in which they came; the talk has them in that of the calls.
    let came = |wanted: CallId| {
        records
            .iter()
            .position(|record| matches!(&record.event, Event::ToolCallFinished { call, .. } if *call == wanted))
    };
    let mut talk: Vec<(Option<usize>, String)> = Vec::new();
    for entry in run.transcript.all() {
        let came = if let Message::ToolResult { call, .. } = &entry.message { came(*call) } else { None };
        let before = talk.iter().rposition(|(other, _)| came.is_none() || *other <= came);
        let line = format!("{} {}\n", entry.iteration, message(&entry.message));
        talk.insert(before.map_or(0, |place| place + 1), (came, line));
    }
    let talk: String = talk.into_iter().map(|(_, line)| line).collect();
    line(format!("{} messages, {}", run.transcript.len(), sha256_hex(talk.as_bytes())));
    line(format!("plan revision {}, {:?}", run.plan.revision, run.plan.source));
    text + &run.plan.listing() + "\n"
}

fn message(message: &Message) -> String {
    match message {
        Message::Operator { id, text, .. } => format!("operator {id} {text}"),
        Message::Engine { text, .. } => format!("engine {text}"),
        Message::Assistant { call, phase, text, uses, .. } => {
            let uses: Vec<String> =
                uses.iter().map(|one| format!("{} {} {}", one.id, one.tool, one.arguments)).collect();
            format!("assistant {call} {} {text} {uses:?}", phase.word())
        }
        Message::ToolResult { call, kind, text, .. } => format!("result {call} {} {text}", kind.word()),
    }
}

/// Folds a golden journal and compares.
fn check(name: &str) {
    let (id, records) = golden(name);
    let run = Run::fold(&id, &records).unwrap();
    assert_eq!(tell(&run, &records), read(&format!("{name}.txt")), "{name}");
}

#[test]
fn s_63_every_golden_journal_folds_to_the_same_run() {
    all().iter().for_each(|name| check(name));
}

#[test]
fn golden_journals_come_back_byte_for_byte() {
    for name in all() {
        let text = read(&format!("{name}.jsonl"));
        let carried = transfer::read(&text).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let home = home(dir.path());
        home.import(&carried.run, &carried).unwrap();
        let survey = home.survey(&carried.run).unwrap();
        assert!(survey.is_whole(), "{:?}", survey.flaws);
        assert_eq!(transfer::write(&carried.run, &survey.lines).unwrap(), text, "{name}");
        assert!(matches!(home.import(&carried.run, &carried).unwrap_err(), StoreError::Taken(_)));
    }
}

/// The names of all events, as the source has them.
pub fn every_event() -> BTreeSet<&'static str> {
    let source = include_str!("../../src/domain/event.rs");
    let named = source.lines().filter_map(|line| line.trim().strip_prefix("Event::")?.split_once(" => \""));
    let names: BTreeSet<&str> = named.filter_map(|(_, name)| name.strip_suffix("\",")).collect();
    assert!(names.len() >= 50, "{names:?}");
    names
}

pub fn events(records: &[Record]) -> BTreeSet<&'static str> {
    records.iter().map(|record| record.event.name()).collect()
}

#[test]
fn every_event_is_in_a_golden_journal() {
    let met: BTreeSet<&str> = all().iter().flat_map(|name| events(&golden(name).1)).collect();
    let missing: Vec<&str> = every_event().difference(&met).copied().collect();
    assert!(missing.is_empty(), "no golden journal has {missing:?}; see tests/simulation/making.rs");
}

/// What reading the first golden journal says after one change of its text.
fn refused(from: &str, to: &str) -> String {
    let text = read(&format!("{}.jsonl", names()[0]));
    assert!(text.contains(from), "{from}");
    transfer::read(&text.replacen(from, to, 1)).unwrap_err().to_string()
}

#[test]
fn lines_that_were_changed_are_not_imported() {
    assert!(refused("\"journal\":\"tiller\"", "\"journal\":\"other\"").contains("its first line is not that"));
    assert!(refused("\"seq\":3,\"at\":1", "\"seq\":3,\"at\":2").contains("record 4 does not follow"));
    assert!(refused("{\"v\":1,\"seq\":3", "{\"v\":1,\"seq\":4").contains("in the place of record 3"));
    assert!(refused("\"records\":", "\"records\":1").contains("records and has"));
    assert!(refused("\"head\":\"", "\"head\":\"0").contains("its last record is not the one"));
    assert!(refused("\"format\":1", "\"format\":9").contains("newer version of tiller (format 9)"));
    assert!(refused("{\"v\":1,\"seq\":3", "{\"v\":2,\"seq\":3").contains("newer version of tiller (format 2)"));
    let event = refused("\"type\":\"owner_acquired\"", "\"type\":\"not_known_yet\"");
    let seen = "names in record 2 what this version does not know: either a newer version of tiller wrote it, or it was \
                altered; nothing was imported; update tiller, or export the run again";
    assert!(event.contains(seen), "{event}");
}
