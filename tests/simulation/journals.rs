//! Golden journals: what any version wrote must fold to the same run for ever.
//!
//! `tests/fixtures/journals/<format>-<name>.jsonl` are exports as `tiller export` writes them; beside each, a text says
//! what it folds to. Neither is ever changed: a difference means that old runs are not understood any more. A new
//! format gets new files: `TILLER_GOLDEN=<name> cargo test --test simulation write_them -- --ignored` makes those of
//! today under another name.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use tiller::domain::budget::Axis;
use tiller::domain::budget::Limit;
use tiller::domain::event::Event;
use tiller::domain::event::Record;
use tiller::domain::id::CallId;
use tiller::domain::id::RunId;
use tiller::domain::message::Message;
use tiller::domain::run::Run;
use tiller::domain::text::sha256_hex;
use tiller::store::StoreError;
use tiller::store::transfer;

use crate::simulation::golden::folder;
use crate::simulation::golden::golden;
use crate::simulation::golden::home;
use crate::simulation::golden::names;
use crate::simulation::golden::read;
use crate::simulation::life::Crash;
use crate::simulation::life::Length;
use crate::simulation::life::Life;
use crate::simulation::life::Sabotage;

/// What must stay the same of a folded run, in words.
fn tell(run: &Run, records: &[Record]) -> String {
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
    names().iter().for_each(|name| check(name));
}

#[test]
fn golden_journals_come_back_byte_for_byte() {
    for name in names() {
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

/// Writes a golden journal of records, and what it folds to.
async fn keep(name: &str, number: u8, records: &[Record]) {
    let id = RunId::from_entropy([number; 12]);
    let dir = tempfile::tempdir().unwrap();
    let home = home(dir.path());
    let made = home.create(&id, records).await.unwrap();
    made.close().await;
    let lines = home.survey(&id).unwrap().lines;
    std::fs::create_dir_all(folder()).unwrap();
    std::fs::write(folder().join(format!("{name}.jsonl")), transfer::write(&id, &lines).unwrap()).unwrap();
    let run = Run::fold(&id, records).unwrap();
    std::fs::write(folder().join(format!("{name}.txt")), tell(&run, records)).unwrap();
    println!("{name}: {} records, {} bytes", records.len(), lines.iter().map(String::len).sum::<usize>());
}

/// A rehearsal played by the real program until it stops in this way, without the name of this machine.
fn rehearsed(until: impl Fn(&serde_json::Value) -> bool) -> Vec<Record> {
    let stage = crate::real::Stage::new();
    stage.ask(&["rehearse", "--plain", "--script", &stage.fast_rehearsal()]);
    for _ in 0..40 {
        let shown = stage.show();
        if until(&shown) {
            break;
        }
        match shown.pointer("/waiting/0/digest").and_then(|digest| digest.as_str()) {
            Some(digest) => {
                let call = shown["waiting"][0]["call"].as_str().unwrap();
                stage.ask(&["approve", &stage.ids()[0], call, digest]).check(0, &["recorded"]);
            }
            None => drop(stage.ask(&["answer", &stage.ids()[0], "as you think best"])),
        }
        stage.ask(&["resume", "--last", "--plain"]);
    }
    let exported = stage.ask(&["export", &stage.ids()[0]]);
    exported.check(0, &[]);
    let host = nix::unistd::gethostname().unwrap().into_string().unwrap();
    let records = transfer::read(&exported.out).unwrap().records;
    let neutral = |record: &Record| {
        let text = serde_json::to_string(record).unwrap();
        serde_json::from_str(&text.replace(&host, "box")).unwrap()
    };
    records.iter().map(neutral).collect()
}

fn events(records: &[Record]) -> BTreeSet<&'static str> {
    records.iter().map(|record| record.event.name()).collect()
}

#[tokio::test]
#[ignore = "writes golden journals of today's format"]
async fn write_them() {
    let name = std::env::var("TILLER_GOLDEN").unwrap();
    keep(&format!("1-{name}-parked"), 1, &rehearsed(|shown| shown.pointer("/waiting/0").is_some())).await;
    keep(&format!("1-{name}-rehearsal"), 2, &rehearsed(|shown| shown.pointer("/summary/status/completed").is_some()))
        .await;
    // Lives in which most goes wrong, until every event was met that they can lead to.
    let mut met = BTreeSet::new();
    let mut number = 3;
    for seed in 0..200 {
        let records = Life::new(seed, Length::Full, Crash::Often, Sabotage::None).chronicle().unwrap();
        let new: Vec<&str> = events(&records).difference(&met).copied().collect();
        let enough = if number == 3 { new.len() > 26 } else { !new.is_empty() };
        if enough && records.len() < 900 {
            met.extend(events(&records));
            keep(&format!("1-{name}-life-{seed}"), number, &records).await;
            number += 1;
        }
    }
    println!("{} events: {met:?}", met.len());
}
