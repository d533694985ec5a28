//! Makes golden journals: `TILLER_GOLDEN=<folder> cargo test --test simulation write_them -- --ignored` writes journals of
//! today's format into this folder of `tests/fixtures/journals`, until together with those that are there already they
//! have every event. The first ones of a format are rehearsals of the real program, then lives in which most goes wrong.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use tiller::domain::budget::Axis;
use tiller::domain::command::Command;
use tiller::domain::event::Event;
use tiller::domain::event::Record;
use tiller::domain::id::ClientId;
use tiller::domain::id::RunId;
use tiller::domain::lineage;
use tiller::domain::money::MicroUsd;
use tiller::domain::restoring::Restore;
use tiller::domain::restoring::Way;
use tiller::domain::run::Run;
use tiller::domain::terms::Terms;
use tiller::domain::time::Now;
use tiller::domain::time::Span;
use tiller::domain::time::Timestamp;
use tiller::machine;
use tiller::machine::Input;
use tiller::machine::restoring;
use tiller::store::transfer;

use crate::real;
use crate::simulation::golden::all;
use crate::simulation::golden::folder;
use crate::simulation::golden::golden;
use crate::simulation::golden::home;
use crate::simulation::journals::events;
use crate::simulation::journals::every_event;
use crate::simulation::journals::tell;
use crate::simulation::life::Crash;
use crate::simulation::life::Length;
use crate::simulation::life::Life;
use crate::simulation::sabotage::Sabotage;

/// Records that a golden journal may have.
const RECORDS_MAX: usize = 700;
/// The iteration after which a fork branches off.
const BRANCH: u32 = 4;

/// Writes a golden journal of records, and what it folds to.
async fn keep(name: &str, id: &RunId, records: &[Record]) {
    let dir = tempfile::tempdir().unwrap();
    let home = home(dir.path());
    let made = home.create(id, records).await.unwrap();
    made.close().await;
    let lines = home.survey(id).unwrap().lines;
    std::fs::create_dir_all(folder().join(name).parent().unwrap()).unwrap();
    std::fs::write(folder().join(format!("{name}.jsonl")), transfer::write(id, &lines).unwrap()).unwrap();
    let run = Run::fold(id, records).unwrap();
    std::fs::write(folder().join(format!("{name}.txt")), tell(&run, records)).unwrap();
    println!("{name}: {} records, {} bytes", records.len(), lines.iter().map(String::len).sum::<usize>());
}

/// A rehearsal played by the real program until it stops in this way, without the name of this machine.
fn rehearsed(until: impl Fn(&serde_json::Value) -> bool) -> Vec<Record> {
    let stage = real::Stage::new();
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

fn client() -> ClientId {
    ClientId("box".to_string())
}

fn later(run: &Run) -> Now {
    Now { at: Timestamp(run.at.0 + 1_000), active: Span(run.pool.used(Axis::Active)) }
}

/// A life that is gone back in: its last file is put back, and a charge in doubt corrected. Nothing, where it has none.
fn gone_back(id: &RunId, life: &[Record]) -> Option<Vec<Record>> {
    (1..=life.len()).rev().find_map(|place| {
        let run = Run::fold(id, &life[..place]).ok()?;
        let (to, _) = lineage::boundaries(&life[..place]).into_iter().rev().nth(1)?;
        if run.is_busy() {
            return None;
        }
        let back = machine::lineage::rewind(&run, &life[..place], to, &client(), later(&run)).ok()?;
        let deed = back.behind.deeds.iter().rev().find(|deed| deed.write.is_some())?;
        let (mut run, mut journal) = (back.run, life[..place].to_vec());
        journal.extend(back.records);
        let restore = Restore { call: deed.call, write: deed.write.clone()?, way: Way::PutBack };
        let now = later(&run);
        journal.push(restoring::start(&mut run, &restore, &client(), now).ok()?);
        journal.push(restoring::finish(&mut run, &restore, None, now).ok()?);
        let settled = life[..place].iter().filter_map(|record| match &record.event {
            Event::BudgetSettled { id, .. } => Some(*id),
            _ => None,
        });
        let corrected = settled.into_iter().find_map(|id| {
            let correct = Command::Correct { id, amount: MicroUsd(1_234) };
            machine::turn(&run, &Input::Command(correct, client()), now).ok()
        })?;
        journal.extend(corrected.records);
        Some(journal)
    })
}

/// A fork of a life, brought to another machine before it was begun.
fn branched_off(parent: &RunId, child: &RunId, life: &[Record]) -> Vec<Record> {
    let (beginning, n) = machine::lineage::beginning(life, Some(BRANCH)).unwrap();
    let past = Run::fold(child, beginning).unwrap();
    let stands = Run::fold(parent, life).unwrap();
    let (terms, now) = (Terms::clone(&past.terms), later(&stands));
    let (run, forked) = machine::lineage::fork(past, &stands, n, terms, &client(), now).unwrap();
    let now = later(&run);
    let (_, imported) = machine::lineage::import(run, lineage::Here::default(), &client(), now).unwrap();
    beginning.iter().cloned().chain([forked, imported]).collect()
}

#[tokio::test]
#[ignore = "writes golden journals of today's format"]
async fn write_them() {
    let set = std::env::var("TILLER_GOLDEN").unwrap();
    let mut met: BTreeSet<&str> = all().iter().flat_map(|name| events(&golden(name).1)).collect();
    let id = |number: u8| RunId::from_entropy([number; 12]);
    if met.is_empty() {
        let parked = rehearsed(|shown| shown.pointer("/waiting/0").is_some());
        keep(&format!("{set}/1-parked"), &id(1), &parked).await;
        let whole = rehearsed(|shown| shown.pointer("/summary/status/completed").is_some());
        keep(&format!("{set}/1-rehearsal"), &id(2), &whole).await;
    }
    let lives: Vec<(u64, Vec<Record>)> = (0..300).map(|seed| (seed, life(seed))).collect();
    let mut number = 10;
    // Each time the one that has most of what is missing, up to where it has it.
    loop {
        let cut = lives.iter().map(|(seed, life)| (seed, beginning(life, &met)));
        let fits = cut.filter(|(_, life)| life.len() <= RECORDS_MAX);
        let new = |life: &[Record]| events(life).difference(&met).count();
        let best = fits.max_by_key(|(_, life)| (new(life), Reverse(life.len()))).filter(|(_, life)| new(life) > 0);
        let Some((seed, life)) = best else { break };
        keep(&format!("{set}/1-life-{seed}"), &id(number), life).await;
        met.extend(events(life));
        number += 1;
    }
    let (seed, back) = lives.iter().find_map(|(seed, life)| Some((seed, gone_back(&id(30), life)?))).unwrap();
    keep(&format!("{set}/1-gone-back-{seed}"), &id(30), &back).await;
    let (seed, life) =
        lives.iter().find(|(_, life)| lineage::boundaries(life).iter().any(|(n, _)| *n == BRANCH)).unwrap();
    keep(&format!("{set}/1-branch-{seed}"), &id(31), &branched_off(&id(32), &id(31), life)).await;
    met.extend(events(&back));
    met.extend(["forked", "imported"]);
    println!("missing: {:?}", every_event().difference(&met).collect::<Vec<_>>());
}

fn life(seed: u64) -> Vec<Record> {
    Life::new(seed, Length::Full, Crash::Often, Sabotage::None).chronicle().unwrap()
}

/// A life up to the rest after the last record that has something new; nothing of one that has nothing.
fn beginning<'a>(life: &'a [Record], met: &BTreeSet<&str>) -> &'a [Record] {
    let mut new: BTreeSet<&str> = events(life).into_iter().filter(|name| !met.contains(name)).collect();
    let mut end = 0;
    let id = RunId::from_entropy([7; 12]);
    Run::fold_each(&id, life, |record, run, _| {
        let is_open = !new.is_empty() || end == 0;
        new.remove(record.event.name());
        if new.is_empty() && is_open && !run.is_running() && run.check().is_ok() {
            end = usize::try_from(record.seq.0).unwrap();
        }
    })
    .unwrap();
    &life[..end]
}
