//! The real program on the real store, killed with SIGKILL after every batch and resumed by commands to a verified end.
//!
//! The operator of this test looks at the world before saying what became of a call, so every effect must have
//! happened exactly once in the end, wherever the program was killed.

use std::fs;
use std::io::BufRead;
use std::io::BufReader;
use std::path::Path;
use std::process::Child;

use serde_json::Value;
use tiller::domain::event::Event;
use tiller::domain::event::Record;
use tiller::domain::run::Run;
use tiller::domain::status::Finish;
use tiller::domain::status::Status;

use crate::kills::life::records;
use crate::kills::life::run_id;
use crate::real::Stage;

/// A run that is not at its end after so many processes does not move.
const PROCESSES_MAX: usize = 400;

/// A run of the fixed script, or of the rehearsal, in a world of its own.
struct Killed {
    stage: Stage,
}

impl Killed {
    fn new() -> Self {
        Killed { stage: Stage::new() }
    }

    /// Runs the program until it has printed so many records, then kills it. Gives the records it printed.
    fn until(&self, words: &[&str], records: usize) -> usize {
        let mut child = self.stage.tiller(words).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let printed = lines.map_while(Result::ok).take(records).count();
        kill(&mut child);
        printed
    }

    fn start_words(&self) -> Vec<String> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/scripts/crash.toml");
        let model = format!("scripted/{}", script.display());
        let work = self.stage.path("work").display().to_string();
        let check = "test \"$(cat traces.txt | wc -l)\" -eq 3 && grep -q second first.txt";
        [
            "run",
            "leave three traces",
            "--json",
            "--model",
            &model,
            "--workspace",
            &work,
            "--check",
            check,
            "--budget",
            "20",
        ]
        .map(String::from)
        .to_vec()
    }

    fn start(&self, records: usize) -> usize {
        let words = self.start_words();
        self.until(&words.iter().map(String::as_str).collect::<Vec<_>>(), records)
    }

    /// Starts the rehearsal of the README, with a script that does not wait.
    fn rehearse(&self, records: usize) -> usize {
        self.until(&["rehearse", "--json", "--script", &self.stage.fast_rehearsal()], records)
    }

    fn id(&self) -> String {
        self.stage.ids().remove(0)
    }

    /// Does what an operator does about whatever waits: looks at the world, then decides by command.
    fn tend(&self, shown: &Value) {
        let id = self.id();
        for one in shown["waiting"].as_array().unwrap() {
            let call = one["call"].as_str().unwrap();
            let words: Vec<&str> = match one["waits_for"].as_str().unwrap() {
                "decision" => vec!["approve", &id, call, one["digest"].as_str().unwrap()],
                "answer" => vec!["answer", &id, "yes"],
                _ if self.has_happened(one["title"].as_str().unwrap()) => vec!["resolve", &id, call, "happened"],
                _ => vec!["resolve", &id, call, "again"],
            };
            self.stage.ask(&words).check(0, &[]);
        }
        if shown["reason"].as_str().is_some_and(|reason| reason.contains("budget")) {
            for axis in ["cost", "tokens", "iterations", "model-calls"] {
                self.stage.ask(&["raise", &id, axis, "unlimited"]);
            }
        }
    }

    /// Whether the trace of a shell call is there. Of a read that was lost twice there is none to find.
    fn has_happened(&self, title: &str) -> bool {
        title.strip_prefix("echo ").is_some_and(|rest| self.traces().iter().any(|line| rest.starts_with(line.as_str())))
    }

    fn traces(&self) -> Vec<String> {
        let text = fs::read_to_string(self.stage.path("work/traces.txt")).unwrap_or_default();
        text.lines().map(String::from).collect()
    }

    /// Goes on to the end, killing each process after `records(n)` records.
    fn finish(&self, records: impl Fn(usize) -> usize) {
        self.go_on(records);
        self.verify();
    }

    fn go_on(&self, records: impl Fn(usize) -> usize) {
        for process in 0..PROCESSES_MAX {
            let shown = self.stage.show();
            if shown["summary"]["status"]["completed"] == "verified" {
                return;
            }
            self.tend(&shown);
            let id = self.id();
            self.until(&["resume", &id, "--json"], records(process));
        }
        panic!("no end: {}", self.stage.show()["summary"]["status"]);
    }

    /// The end: each effect exactly once, and a journal that says so.
    fn verify(&self) {
        assert_eq!(self.traces(), ["one", "two", "three"]);
        assert_eq!(fs::read_to_string(self.stage.path("work/first.txt")).unwrap(), "second\n");
        self.verify_journal();
    }

    fn verify_journal(&self) {
        let records = self.records();
        let run = Run::fold(&run_id(&self.id()), &records).unwrap();
        assert_eq!(run.status, Status::Completed(Finish::Verified));
        let calls = records.iter().filter(|record| matches!(record.event, Event::ModelCallStarted { .. })).count();
        let settled = records.iter().filter(|record| matches!(record.event, Event::BudgetSettled { .. })).count();
        assert_eq!(calls, settled, "every model call that was started is charged once");
    }

    fn records(&self) -> Vec<Record> {
        records(&self.stage.path("state"), &self.id()).unwrap()
    }
}

fn kill(child: &mut Child) {
    // The child may have ended by itself; it is reaped either way.
    let _ = child.kill();
    let _ = child.wait();
}

#[test]
fn an_uninterrupted_run_is_verified() {
    let stage = Killed::new();
    stage.start(usize::MAX);
    stage.finish(|_| usize::MAX);
}

#[test]
fn one_life_killed_after_every_few_records() {
    let stage = Killed::new();
    stage.start(1);
    // Each process gets a little further than the one before it could.
    stage.finish(|process| 1 + process % 9);
}

#[test]
fn a_kill_after_any_record_of_the_first_process_loses_nothing() {
    let whole = Killed::new();
    let records = whole.start(usize::MAX);
    assert!(records > 10);
    let kill_at = |at: usize| {
        let stage = Killed::new();
        assert_eq!(stage.start(at), at);
        stage.finish(|_| usize::MAX);
    };
    std::thread::scope(|scope| {
        for half in 0..2 {
            scope.spawn(move || (1 + half..=records).step_by(2).for_each(kill_at));
        }
    });
}

#[test]
fn a_rehearsal_killed_after_every_few_records_ends_verified() {
    let stage = Killed::new();
    stage.rehearse(1);
    stage.go_on(|process| 1 + process % 9);
    stage.verify_journal();
}
