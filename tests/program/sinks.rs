//! What happens in a run is told to the operator's command, at least once each, in order (docs/ENGINE.md §11.2).

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::program::scripts::SHORT;
use crate::real::Stage;
use serde_json::Value;
use tiller::domain::id::Seq;
use tiller::domain::limits;
use tiller::domain::run::Run;
use tiller::domain::time::Span;
use tiller::engine::redaction::Redactor;
use tiller::policy::notice;
use tiller::sinks;
use tiller::sinks::Patience;
use tiller::sinks::Sink;
use tiller::store::transfer;
use tiller::tools::Scene;
use tiller::tools::hook::Hook;

/// A script that plans, runs a shell line, and is done.
const SCRIPT: &str = r#"
[[step]]
name = "plan"
text = "a plan"
calls = [ { tool = "update_plan", args = { todos = [ { id = "a", title = "A", status = "done" } ] } } ]
[[step]]
name = "act"
calls = [ { tool = "shell", args = { command = "touch done" } } ]
[[step]]
name = "claim"
text = "done"
calls = [ { tool = "finish", args = { summary = "it is done" } } ]
"#;

/// The records that must be told, by their types.
const TOLD: [&str; 11] = [
    "run_created",
    "forked",
    "status_changed",
    "recovered",
    "preflight_failed",
    "approval_requested",
    "confirmation_requested",
    "approval_decided",
    "approval_invalidated",
    "stall_detected",
    "claim_judged",
];

/// The kinds that are told or not, by what is in them.
const TOLD_AT_TIMES: [&str; 2] = ["tool_call_finished", "warned"];

/// A world in which a shell line is told what happens.
fn stage(line: &str) -> Stage {
    let stage = Stage::new();
    let words = toml::Value::Array(["/bin/sh", "-c", line].map(|word| toml::Value::String(word.to_string())).to_vec());
    stage.write("config/tiller/tiller.toml", &format!("[notify]\ncommand = {words}\n"));
    stage
}

/// A line that keeps what it is told, unless there is a file `block`.
fn keeping(stage: &Stage) {
    let (block, told) = (stage.path("block"), stage.path("told"));
    let line = format!("test ! -e {} && cat >> {}", block.display(), told.display());
    let words = toml::Value::Array(["/bin/sh", "-c", &line].map(|word| toml::Value::String(word.to_string())).to_vec());
    stage.write("config/tiller/tiller.toml", &format!("[notify]\ncommand = {words}\n"));
}

fn told(stage: &Stage) -> Vec<Value> {
    let text = fs::read_to_string(stage.path("told")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The ids of what must be told of a run.
fn due(stage: &Stage, id: &str) -> BTreeSet<String> {
    let export = stage.ask(&["export", id]);
    export.check(0, &[]);
    let lines = export.out.lines().skip(1).map(|line| serde_json::from_str::<Value>(line).unwrap());
    let due = lines.filter(|line| TOLD.contains(&line["event"]["type"].as_str().unwrap()));
    due.map(|line| format!("{id}:{}", line["seq"])).collect()
}

/// Asserts that each record of the only run that must be told was told.
fn check_all(stage: &Stage) {
    let id = stage.ids()[0].clone();
    check_told(stage, &due(stage, &id));
}

fn check_told(stage: &Stage, due: &BTreeSet<String>) {
    let told: Vec<String> = told(stage).iter().map(|line| line["id"].as_str().unwrap().to_string()).collect();
    let all: BTreeSet<String> = told.iter().cloned().collect();
    assert_eq!(due.difference(&all).collect::<Vec<_>>(), Vec::<&String>::new(), "not told, of {told:?}");
}

#[test]
fn a_whole_run_is_told_in_order() {
    let stage = Stage::new();
    keeping(&stage);
    stage.run(SCRIPT).check(10, &["tiller approve"]);
    stage.allow();
    stage.ask(&["resume", &stage.ids()[0], "--plain"]).check(0, &["[completed]"]);
    check_all(&stage);
    let told = told(&stage);
    let events: Vec<&str> = told.iter().map(|line| line["event"].as_str().unwrap()).collect();
    assert_eq!(
        events,
        [
            "run_started",
            "status_changed",
            "approval_requested",
            "status_changed",
            "approval_decided",
            "status_changed",
            "verification",
            "run_ended"
        ]
    );
    let seqs: Vec<u64> = told.iter().map(|line| line["seq"].as_u64().unwrap()).collect();
    assert!(seqs.is_sorted_by(|one, other| one < other), "{seqs:?}");
    assert_eq!(
        told[2]["sentence"],
        "c2 (shell touch done) waits for a decision: it can change anything that you can: touch is not in the read-only table"
    );
    assert_eq!(
        (&told[2]["goal"], &told[2]["calls"], &told[0]["calls"]),
        (&"do it".into(), &true.into(), &false.into())
    );
    let kept = stage.run_dir(told[0]["run"].as_str().unwrap()).join("sinks.json");
    assert_eq!(fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_to_string(&kept).unwrap(), format!("{{\"command\":{}}}", seqs.last().unwrap()));
}

#[test]
fn what_was_recorded_and_not_told_is_told_after_a_kill() {
    for point in ["after:C1:1", "after:C4b:1", "after:C8:1"] {
        let stage = Stage::new();
        keeping(&stage);
        let mut command = stage.tiller(&["run", "do it", "--plain", "--model", &stage.model(SCRIPT)]);
        let killed = crate::real::said(command.env("TILLER_FAULT", point).spawn().unwrap());
        assert_eq!(killed.code, -9, "{point}: {killed}");
        let id = stage.ids()[0].clone();
        stage.ask(&["resume", &id, "--plain"]).check(10, &["tiller approve"]);
        check_all(&stage);
        stage.allow();
        stage.ask(&["resume", &id, "--plain"]).check(0, &["[completed]"]);
        check_all(&stage);
        if point == "after:C1:1" {
            assert!(told(&stage).iter().any(|line| line["event"] == "recovered"));
        }
    }
}

#[test]
fn a_command_that_fails_holds_up_nothing_and_is_told_later() {
    let stage = Stage::new();
    keeping(&stage);
    let block = stage.write("block", "");
    let said = stage.run(SCRIPT);
    said.check(10, &["tiller approve", "the command of notify.command was not told all that happened"]);
    assert_eq!(told(&stage), Vec::<Value>::new());
    fs::remove_file(block).unwrap();
    stage.allow();
    stage.ask(&["resume", &stage.ids()[0], "--plain"]).check(0, &["[completed]"]);
    check_all(&stage);
    let ids: Vec<Value> = told(&stage).iter().map(|line| line["id"].clone()).collect();
    assert_eq!(
        ids.iter().map(Value::to_string).collect::<BTreeSet<_>>().len(),
        ids.len(),
        "told once where nothing died"
    );
}

#[test]
fn a_run_from_before_the_command_is_told_of_from_there_on() {
    let stage = Stage::new();
    stage.run(SCRIPT).check(10, &[]);
    keeping(&stage);
    stage.allow();
    stage.ask(&["resume", &stage.ids()[0], "--plain"]).check(0, &[]);
    let events: Vec<Value> = told(&stage).iter().map(|line| line["event"].clone()).collect();
    assert_eq!(events, ["status_changed", "verification", "run_ended"]);
    // A fork is no echo of its parent.
    fs::remove_file(stage.path("told")).unwrap();
    stage.ask(&["fork", &stage.ids()[0], "--goal", "now this"]).check(0, &[]);
    let fork = stage.runs().iter().find(|run| run["summary"]["goal"] == "now this").unwrap()["summary"]["id"].clone();
    // What is only recorded in it does not make its start old news.
    stage.ask(&["say", fork.as_str().unwrap(), "be quick"]).check(0, &[]);
    stage.ask(&["resume", fork.as_str().unwrap(), "--plain"]);
    let first = &told(&stage)[0];
    assert_eq!((&first["event"], &first["run"]), (&"run_started".into(), &fork));
    assert!(first["sentence"].as_str().unwrap().starts_with("the run branched off from run "), "{first}");
}

#[test]
fn where_nobody_can_tell_what_was_told_all_is_told_again() {
    let stage = Stage::new();
    keeping(&stage);
    stage.run(SCRIPT).check(10, &[]);
    let id = stage.ids()[0].clone();
    let path = stage.run_dir(&id).join("sinks.json");
    for damage in ["", "{\"comm", "[]", "{\"command\":\"x\"}", "{\"command\":99999}"] {
        fs::remove_file(stage.path("told")).unwrap();
        fs::write(&path, damage).unwrap();
        let said = stage.ask(&["resume", &id, "--plain"]);
        let sentence = format!("what the command of notify.command was told of run {id} can't be read");
        said.check(10, &[&sentence, "it is told all of it again, so some of it twice"]);
        check_all(&stage);
    }
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    stage.ask(&["resume", &id, "--plain"]).check(10, &["it is not a file"]);
}

#[test]
fn what_an_import_brings_is_old_news() {
    let stage = Stage::new();
    stage.run(SCRIPT).check(10, &[]);
    let export = stage.path("export").display().to_string();
    stage.ask(&["export", &stage.ids()[0], "--out", &export]).check(0, &[]);
    keeping(&stage);
    let before = stage.ids();
    stage.ask(&["import", &export, "--as-new"]).check(0, &[]);
    let copy = stage.ids().into_iter().find(|id| !before.contains(id)).unwrap();
    let brought = fs::read_to_string(stage.run_dir(&copy).join("sinks.json")).unwrap();
    stage.ask(&["resume", &copy, "--plain"]).check(10, &[]);
    let told = told(&stage);
    let last = stage.ask(&["export", &copy]).out.matches("\"seq\":").count();
    let place: Value = serde_json::from_str(&brought).unwrap();
    assert!(!told.is_empty() && told.iter().all(|line| line["seq"].as_u64() > place["command"].as_u64()), "{told:?}");
    assert!(place["command"].as_u64().unwrap() < last as u64, "the resume was recorded after it");
}

#[test]
fn a_run_that_goes_is_told_of_first() {
    for is_due in [false, true] {
        let stage = Stage::new();
        keeping(&stage);
        let block = stage.write("block", "");
        stage.run(SHORT).check(0, &["was not told all that happened: it ended with exit status 1"]);
        let id = stage.ids()[0].clone();
        let due = due(&stage, &id);
        assert_eq!(told(&stage), Vec::<Value>::new());
        let go = |code: i32, sentences: &[&str]| match is_due {
            false => stage.ask(&["remove", &id, "--yes"]).check(code, sentences),
            true => {
                let config = fs::read_to_string(stage.path("config/tiller/tiller.toml")).unwrap();
                stage.write("config/tiller/tiller.toml", &format!("[keep]\nruns = 1\n{config}"));
                // The newer one is kept, and the start after it finds that the older one is due.
                stage.run(SHORT);
                stage.run(SHORT);
                stage.write("config/tiller/tiller.toml", &config);
            }
        };
        if is_due {
            go(0, &[]);
            assert!(stage.run_dir(&id).exists(), "it went, and nobody was told of its end");
        }
        fs::remove_file(block).unwrap();
        go(0, &[]);
        assert!(!stage.run_dir(&id).exists(), "{is_due}");
        check_told(&stage, &due);
    }
}

#[test]
fn what_can_not_be_told_of_a_run_that_must_go_is_said() {
    let stage = Stage::new();
    keeping(&stage);
    stage.write("block", "");
    stage.run(SHORT).check(0, &[]);
    let id = stage.ids()[0].clone();
    let sentence = "the command of notify.command was not told all that happened in it: it ended with exit status 1";
    stage.ask(&["remove", &id, "--yes"]).check(0, &["is removed", sentence]);
    assert!(!stage.run_dir(&id).exists());
}

#[test]
fn a_program_that_is_not_there_is_called_that() {
    let stage = Stage::new();
    stage.write("config/tiller/tiller.toml", "[notify]\ncommand = ['/no/such/program']\n");
    let sentence = "was not told all that happened: /no/such/program can't be started (No such file or directory)";
    stage.run(SHORT).check(0, &[sentence]);
}

#[tokio::test]
async fn a_command_is_tried_again_and_given_up() {
    let carried = transfer::read(&fs::read_to_string("tests/fixtures/journals/1-first-parked.jsonl").unwrap()).unwrap();
    let run = Run::fold(&carried.run, &carried.records).unwrap();
    let all = carried.records.iter().filter(|record| notice::of(record, &run).is_some()).count();
    assert!(all > 1);
    let given_up = |status: u32| Err(format!("it ended with exit status {status}"));
    let first_fails = "test $(wc -l < COUNT) != 1";
    for (line, result, ran) in [
        ("true", Ok(()), all),
        (first_fails, Ok(()), all + 1),
        ("exit 5", given_up(5), 4),
        ("exit 127", given_up(127), 4),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let count = dir.path().join("count").display().to_string();
        let words = ["/bin/sh", "-c", &format!("echo >> {count}; {}", line.replace("COUNT", &count))];
        let scene = Scene {
            workspace: PathBuf::from("/nowhere"),
            off_limits: Vec::new(),
            pre_images: None,
            program: PathBuf::from(env!("CARGO_BIN_EXE_tiller")),
            passed_variables: Vec::new(),
            sandbox: tiller::tools::sandbox::Sandbox::default(),
            git: tiller::tools::gits::own::Own::default(),
        };
        let sink = Sink {
            hook: Hook::new(words.map(ToString::to_string).to_vec(), scene, limits::SINK_TIMEOUT),
            patience: Patience { first: Span(1), most: Span(2), failures: 4 },
            redactor: Arc::new(Redactor::new("key".to_string().into(), [])),
            told: Seq(0),
            keep: Arc::new(|_| {}),
        };
        assert_eq!(sinks::tell(&sink, &carried.records, &run).await, result, "{line}");
        assert_eq!(fs::read_to_string(&count).unwrap().lines().count(), ran, "{line}");
    }
}

#[test]
fn the_command_is_the_operators_own() {
    let stage = stage("touch told");
    stage.write("work/tiller.toml", "[notify]\ncommand = ['/bin/sh', '-c', 'touch stolen']\n");
    stage.write("work/.tiller/tiller.toml", "[notify]\ncommand = ['/bin/sh', '-c', 'touch stolen']\n");
    stage.run(SCRIPT).check(10, &[]);
    assert!(!stage.path("work/stolen").exists() && !stage.path("work/told").exists());
    stage.write("config/tiller/tiller.toml", "[notify]\ncommand = ['./tell']\n");
    stage.run(SCRIPT).check(13, &["notify.command", "the program is named by its whole path"]);
}

#[test]
fn every_kind_is_told_and_no_other() {
    let mut events = BTreeSet::new();
    for entry in fs::read_dir("tests/fixtures/journals").unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|end| end != "jsonl") {
            continue;
        }
        let carried = transfer::read(&fs::read_to_string(path).unwrap()).unwrap();
        let mut run = None;
        for record in &carried.records {
            let at = match run.take() {
                None => Run::begin(carried.run.clone(), record).unwrap(),
                Some(before) => {
                    let mut at: Run = before;
                    at.apply(record).unwrap();
                    at
                }
            };
            let told = notice::of(record, &at);
            let name = record.event.name();
            let is_right = told.is_some() == TOLD.contains(&name) || TOLD_AT_TIMES.contains(&name);
            assert!(is_right, "{name}: {told:?}");
            events.extend(told.map(|notice| notice.event));
            run = Some(at);
        }
    }
    // The golden journals came near to no limit, so of all twelve kinds `budget_warning` is not in them.
    let expected = [
        "approval_decided",
        "approval_invalidated",
        "approval_requested",
        "budget_exhausted",
        "outcome_unknown",
        "recovered",
        "run_ended",
        "run_started",
        "stall",
        "status_changed",
        "verification",
    ];
    assert_eq!(Vec::from_iter(events), expected);
}
