//! An operator who puts a run's directory back as it was some time ago, between processes that are killed: the journal
//! forgets what it did since, and gives its numbers once more. The provider sends its bills all the same, so the ledger of
//! all runs must not count less than these.

use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Stdio;

use serde_json::Value;
use tiller::domain::run::Run;

use crate::chance::Chance;
use crate::kills::checker;
use crate::kills::life::records;
use crate::kills::life::run_id;
use crate::kills::provider::Provider;
use crate::kills::script;
use crate::real::Stage;
use crate::real::until;

/// Processes of one life.
const PROCESSES: usize = 14;
/// Copies of one life.
const KEPT_MAX: usize = 5;

fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    fs::set_permissions(to, from.metadata().unwrap().permissions()).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy_dir(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

/// Runs a process until its end, or until the provider has sent it so many bills: then it is killed, mostly before it
/// knows of the last one.
fn run(mut command: Command, provider: &Provider, bills: u64) {
    let before = provider.served();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("the process is at its end", || {
        if provider.served() - before >= bills {
            child.kill().unwrap();
        }
        child.try_wait().unwrap()
    });
}

/// Plays a life. Gives how often a journal was put back that did not know of all bills.
fn play(seed: u64) -> u64 {
    let mut chance = Chance::new(seed);
    let stage = Stage::new();
    stage.write(&format!("work/{}", script::EDITED), "marks:\n");
    let provider = Provider::start(script::steps(&mut chance));
    stage.write("config/tiller/tiller.toml", &provider.configuration());
    let state = stage.path("state");
    let mut kept: Vec<PathBuf> = Vec::new();
    let (mut forgot, mut told) = (0, Vec::new());
    for number in 0..PROCESSES {
        let id = stage.ids().first().cloned();
        let words = id.as_deref().map_or(["run", "leave marks", "--json"], |id| ["resume", id, "--json"]);
        // The last one ends by itself, so that nothing is left open that could hide what is missing.
        let bills = if number + 1 == PROCESSES { u64::MAX } else { 1 + chance.below(2) };
        told.push(format!("{words:?} for {bills} bills"));
        run(stage.tiller(&words), &provider, bills);
        let (counted, owed) = (checker::ledger(&state), provider.owed());
        assert!(counted >= owed, "seed {seed}: {owed} are owed and {counted} counted\n{}", told.join("\n"));
        let Some(id) = stage.ids().first().cloned() else { continue };
        let dir = state.join("tiller/runs").join(&id);
        match chance.below(3) {
            0 if kept.len() < KEPT_MAX => {
                let copy = stage.path(&format!("kept-{number}"));
                copy_dir(&dir, &copy);
                kept.push(copy);
                told.push(format!("kept as {number}"));
            }
            1 if !kept.is_empty() => {
                let copy = &kept[usize::try_from(chance.below(kept.len() as u64)).unwrap()];
                fs::remove_dir_all(&dir).unwrap();
                copy_dir(copy, &dir);
                let run = Run::fold(&run_id(&id), &records(&state, &id).unwrap()).unwrap();
                forgot += u64::from(run.pool.spent().0 < owed);
                told.push(format!("put back {}", copy.display()));
            }
            _ => {}
        }
        allow(&stage, &id);
    }
    forgot
}

/// Allows whatever waits. A call that was cut off is made once more: effects are not what is looked at here.
fn allow(stage: &Stage, id: &str) {
    let shown = stage.ask(&["show", id, "--json"]);
    let shown: Value = serde_json::from_str(&shown.out).unwrap();
    for one in shown["waiting"].as_array().unwrap() {
        let (call, digest) = (one["call"].as_str().unwrap(), one["digest"].as_str());
        let said = match one["waits_for"].as_str().unwrap() {
            "decision" => stage.ask(&["approve", id, call, digest.unwrap()]),
            "answer" => stage.ask(&["answer", id, "yes"]),
            _ => stage.ask(&["resolve", id, call, "again"]),
        };
        assert_eq!(said.code, 0, "{said}");
    }
}

#[test]
fn a_journal_that_is_put_back_hides_no_bill_from_the_ledger() {
    let lives = if std::env::var_os("TILLER_SLOW").is_some() { 60 } else { 5 };
    let first: u64 = std::env::var("TILLER_FIRST_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let forgot: u64 = (first..first + lives).map(play).sum();
    println!("{forgot} journals that did not know of all bills");
    assert!(forgot > 0, "no journal was put back that did not know of all bills");
}
