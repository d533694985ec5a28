//! Ways to be ended without a screen: signals, readers that go away. The run is parked, its children are gone, and it
//! goes on from there.

use std::io::BufRead;
use std::io::BufReader;

use nix::sys::signal::Signal;
use nix::sys::signal::kill;
use nix::unistd::Pid;

use crate::program::scripts::shell;
use crate::program::stage::is_alive;
use crate::real::Stage;
use crate::real::ends;
use crate::real::said;
use crate::real::until;

/// Ends a process with a signal while a call runs.
fn check_signal(signal: Signal, number: u32) {
    let stage = Stage::new();
    let marker = format!("sleep 300.{number}{}", std::process::id());
    stage.run(&shell(&format!("{marker} & {marker}; wait"))).check(10, &[]);
    let id = stage.ids()[0].clone();
    stage.allow();
    let child = stage.tiller(&["resume", &id, "--plain"]).spawn().unwrap();
    until("the call runs", || is_alive(&marker).then_some(()));
    kill(Pid::from_raw(child.id() as i32), signal).unwrap();
    let told = said(child);
    told.check(14, &["[parked]", "to go on, type:", &format!("tiller resume {}", &id[..6])]);
    assert!(!is_alive(&marker), "children are left");
    let shown = stage.show();
    let status = &shown["summary"]["status"];
    assert!(status["parked"].is_string(), "{status}");
    assert_eq!(shown["reserved"], serde_json::Value::Null);
}

#[test]
fn terminated() {
    check_signal(Signal::SIGTERM, 1);
}

#[test]
fn interrupted() {
    check_signal(Signal::SIGINT, 2);
}

#[test]
fn hung_up() {
    check_signal(Signal::SIGHUP, 3);
}

/// A kill can't be answered: children end with the program, and the run says that the outcome is unknown.
#[test]
fn killed() {
    let stage = Stage::new();
    let marker = format!("sleep 300.4{}", std::process::id());
    stage.run(&shell(&format!("{marker} & {marker}; wait"))).check(10, &[]);
    let id = stage.ids()[0].clone();
    stage.allow();
    let mut child = stage.tiller(&["resume", &id, "--plain"]).spawn().unwrap();
    until("the call runs", || is_alive(&marker).then_some(()));
    child.kill().unwrap();
    assert_eq!(ends(&mut child), -9);
    until("its children are gone", || (!is_alive(&marker)).then_some(()));
    let told = stage.ask(&["resume", &id, "--plain"]);
    told.check(14, &["[parked] outcome unknown", "tiller resolve"]);
    let call = stage.show()["waiting"][0]["call"].as_str().unwrap().to_string();
    stage.ask(&["resolve", &id, &call, "not"]).check(0, &["recorded"]);
    stage.ask(&["resume", &id, "--plain"]).check(0, &["[completed]"]);
}

#[test]
fn a_reader_that_goes_away() {
    let stage = Stage::new();
    let model = stage.model(&crate::program::scripts::SHORT.replacen(
        "text = \"a plan\"",
        "text = \"- a plan\\n\"\nrepeat_text = 40000",
        1,
    ));
    for form in ["--plain", "--json"] {
        let mut child = stage.tiller(&["run", "g", form, "--model", &model]).spawn().unwrap();
        let mut line = String::new();
        BufReader::with_capacity(16, child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(!line.is_empty());
        let told = said(child);
        assert!([0, 14].contains(&told.code), "{told}");
        assert!(!told.err.contains("panicked"), "{told}");
    }
    for id in stage.ids() {
        let told = stage.ask(&["resume", &id, "--plain"]);
        assert!(told.code == 0 || told.out.contains("[refused]"), "{told}");
        stage.ask(&["show", &id]).check(0, &["[completed]"]);
    }
}

/// Lists and texts that nobody reads are no error either.
#[test]
fn nobody_reads_a_list() {
    let stage = Stage::new();
    stage.run(crate::program::scripts::SHORT).check(0, &[]);
    for words in [&["runs"][..], &["runs", "--json"], &["--help"], &["show", &stage.ids()[0]]] {
        let mut child = stage.tiller(words).spawn().unwrap();
        drop(child.stdout.take());
        said(child).check(0, &[]);
    }
}

/// A level that is none is told, and keeps nothing from being done.
#[test]
fn a_level_of_the_log_that_is_none() {
    let stage = Stage::new();
    let level = std::os::unix::ffi::OsStrExt::from_bytes(b"\xff".as_slice());
    for level in [std::ffi::OsStr::new("bogus"), level] {
        let model = stage.model(crate::program::scripts::SHORT);
        let mut command = stage.tiller(&["run", "g", "--plain", "--model", &model]);
        let told = said(command.env("TILLER_LOG", level).spawn().unwrap());
        told.check(0, &["TILLER_LOG is none of off, error", "nothing is logged; set one of them", "[completed]"]);
        assert!(!told.err.contains("nothing was started"), "{told}");
    }
}

/// How a run came to its last stop, as the audit tells it: what was asked for, what failed, and each change of status.
fn check_chain(stage: &Stage, code: i32, told: &crate::real::Said, chain: &[&str]) {
    told.check(code, &[]);
    let id = stage.ids()[0].clone();
    let audit = stage.ask(&["audit", &id, "--json"]);
    audit.check(0, &[]);
    let line = |line: &str| -> Option<String> {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let text = |key: &str| line[key].as_str().unwrap_or_default().to_string();
        let is_one = ["control_requested", "model_call_failed", "status_changed"].contains(&text("action").as_str());
        is_one.then(|| format!("{}: {}", text("actor").split(' ').next().unwrap(), text("outcome")))
    };
    let lines: Vec<String> = audit.out.lines().filter_map(line).collect();
    assert_eq!(lines, chain, "{audit}");
    for words in [&["show", &id][..], &["runs"], &["audit", &id]] {
        let shown = stage.ask(words);
        assert!(!shown.out.contains("closed") && !shown.out.contains("client"), "nobody closed anything: {shown}");
    }
}

/// S-60: what the records, the list and the exit status say of an end is who made it, and nobody else.
#[test]
fn s_60_the_end_is_told_by_whoever_made_it() {
    let broken = "{ class = \"stream_broken\", text = \"gone\" }, ".repeat(3);
    let script = crate::program::scripts::SHORT.replacen(
        "name = \"plan\"",
        &format!("name = \"plan\"\nerrors = [ {broken} ]"),
        1,
    );
    let stage = Stage::new();
    let child = stage.tiller(&["run", "g", "--plain", "--model", &stage.model(&script)]).spawn().unwrap();
    // It stays to try again later; so it is ended, which is not why the run is parked.
    until("it is parked", || stage.runs().iter().any(|run| run.to_string().contains("provider_wait")).then_some(()));
    kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).unwrap();
    let failed = ["engine: m1 failed"; 3];
    let chain = [&["engine: running"], &failed[..], &["engine: parked: provider does not answer"]].concat();
    check_chain(&stage, 14, &said(child), &chain);

    let stage = Stage::new();
    let told = stage.ask(&["run", "g", "--plain", "--max-iterations", "1", "--model", &stage.model(&shell("true"))]);
    told.check(10, &[]);
    stage.allow();
    let told = stage.ask(&["resume", &stage.ids()[0], "--plain"]);
    let chain = [
        "engine: running",
        "engine: parked: waiting for approval",
        "operator: running",
        "engine: parked: budget (iterations)",
    ];
    check_chain(&stage, 11, &told, &chain);

    let stage = Stage::new();
    stage.run(&shell("true")).check(10, &[]);
    let id = stage.ids()[0].clone();
    stage.ask(&["cancel", &id]).check(0, &["is cancelled"]);
    let told = stage.ask(&["resume", &id, "--plain"]);
    let chain =
        ["engine: running", "engine: parked: waiting for approval", "operator: cancel now", "engine: cancelled"];
    check_chain(&stage, 21, &told, &chain);
}
