//! The real program, killed at one labelled point each time, for the rows of docs/TESTING.md that name the point: what
//! waits, what was decided, what ran, and what nobody can know.

use std::fs;

use crate::kills::script::model;
use crate::real::Said;
use crate::real::Stage;
use crate::real::said;
use serde_json::Value;

/// A script that plans, makes these calls in one reply, and is done.
fn script(calls: &[(&str, Value)]) -> String {
    let plan = "{ tool = \"update_plan\", args = { todos = [ { id = \"a\", title = \"A\", status = \"done\" } ] } }";
    let text = |value: &Value| toml::Value::String(value.to_string()).to_string();
    let calls: Vec<String> =
        calls.iter().map(|(tool, args)| format!("{{ tool = \"{tool}\", raw = {} }}", text(args))).collect();
    format!(
        "[[step]]\nname = \"plan\"\ncalls = [ {plan} ]\n[[step]]\nname = \"act\"\ncalls = [ {} ]\n[[step]]\nname = \
         \"claim\"\ncalls = [ {{ tool = \"finish\", args = {{ summary = \"done\" }} }} ]\n",
        calls.join(", ")
    )
}

/// Leaves a mark each time it runs, says a word, and lasts a moment.
fn shell(mark: &str) -> (&'static str, Value) {
    ("shell", serde_json::json!({ "command": format!("echo {mark} >> trace.txt; echo left; sleep 0.2") }))
}

/// A run of the real program, and the world that counts.
struct Life {
    stage: Stage,
    id: String,
}

impl Life {
    /// Starts a run that is killed at this point, or goes on until it waits.
    fn begin(calls: &[(&str, Value)], fault: Option<&str>) -> Life {
        let stage = Stage::new();
        fs::write(stage.path("work/notes.txt"), "first\n").unwrap();
        let model = model(&stage, &script(calls));
        let mut command = stage.tiller(&["run", "do it", "--plain", "--model", &model]);
        if let Some(fault) = fault {
            command.env("TILLER_FAULT", fault);
        }
        let told = said(command.spawn().unwrap());
        assert!(fault.is_none() || told.code == -9, "{told}");
        let id = stage.ids()[0].clone();
        Life { stage, id }
    }

    fn ask(&self, words: &[&str]) -> Said {
        self.stage.ask(words)
    }

    fn resume(&self) -> Said {
        self.ask(&["resume", &self.id, "--plain"])
    }

    /// Runs a command that is killed at this point.
    fn killed(&self, words: &[&str], fault: &str) {
        let told = said(self.stage.tiller(words).env("TILLER_FAULT", fault).spawn().unwrap());
        assert_eq!(told.code, -9, "{fault} never struck: {told}");
    }

    fn resume_killed(&self, fault: &str) {
        self.killed(&["resume", &self.id, "--plain"], fault);
    }

    /// What waits: the call, and its digest where it waits for a decision.
    fn waiting(&self) -> Vec<(String, Value)> {
        let shown = self.stage.show();
        let one = |one: &Value| (one["call"].as_str().unwrap().to_string(), one["digest"].clone());
        shown["waiting"].as_array().unwrap().iter().map(one).collect()
    }

    fn allow(&self, call: usize) {
        let (call, digest) = self.waiting()[call].clone();
        self.ask(&["approve", &self.id, &call, digest.as_str().unwrap()]).check(0, &["recorded"]);
    }

    fn traces(&self) -> Vec<String> {
        let text = fs::read_to_string(self.stage.path("work/trace.txt")).unwrap_or_default();
        text.lines().map(String::from).collect()
    }

    /// Records of this kind, in their order.
    fn records(&self, kind: &str) -> Vec<Value> {
        let export = self.ask(&["export", &self.id]);
        export.check(0, &[]);
        let lines = export.out.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.filter(|line| line.to_string().contains(&format!("\"type\":\"{kind}\""))).collect()
    }

    /// The results of a call. None of them may say that it was aborted.
    fn results(&self, call: &str) -> Vec<Value> {
        let all = self.records("tool_call_finished");
        assert!(all.iter().all(|record| !record.to_string().contains("abort")), "{all:?}");
        let of_call = format!("\"call\":{}", call.trim_start_matches('c'));
        all.into_iter().filter(|record| record.to_string().contains(&of_call)).collect()
    }
}

#[test]
fn s_24_an_outcome_that_nobody_knows_is_asked_about_and_never_repeated_by_itself() {
    // K12 twice, K13, K14: what the world has by then.
    let points = [("after:C6:1", 0), ("tool:before:1", 0), ("tool:during:1", 1), ("tool:after:1", 1)];
    for (fault, before) in points {
        for (choice, more) in [("happened", 0), ("not", 0), ("again", 1), ("skip", 0)] {
            let life = Life::begin(&[shell("one")], None);
            life.allow(0);
            life.resume_killed(fault);
            assert_eq!(life.traces().len(), before, "{fault}");
            let told = life.resume();
            told.check(14, &["outcome unknown", "tiller resolve"]);
            assert_eq!(life.traces().len(), before, "{fault}: a resume runs nothing");
            let (call, _) = life.waiting()[0].clone();
            let help = life.ask(&["resolve", "--help"]);
            assert!(["happened", "not", "again", "skip"].iter().all(|word| help.out.contains(word)), "{help}");
            life.ask(&["resolve", &life.id, &call, choice]).check(0, &["recorded"]);
            life.resume().check(0, &["[completed]"]);
            assert_eq!(life.traces().len(), before + more, "{fault}, {choice}");
            assert_eq!(life.results(&call).len(), 1, "{fault}, {choice}");
        }
    }
}

/// What ran when the process was killed is named before anybody resumes, and so is what a resume does about it.
#[test]
fn what_was_running_at_a_kill_is_shown() {
    let read = || ("read_file", serde_json::json!({ "path": "notes.txt" }));
    let write = || ("write_file", serde_json::json!({ "path": "notes.txt", "content": "second\n" }));
    let cases = [
        (
            shell("one"),
            "tool:during:1",
            "shell echo one >> trace.txt; echo left; sleep 0.2",
            "resume asks you what became of it",
        ),
        (write(), "tool:before:1", "write_file notes.txt", "resume looks at the file"),
        (read(), "tool:before:1", "read_file notes.txt", "resume runs it once more"),
    ];
    for (call, fault, about, resume) in cases {
        let is_read = call.0 == "read_file";
        let life = Life::begin(&[call], is_read.then_some(fault));
        let who = if is_read { "" } else { ", allowed by you (command line)" };
        if !is_read {
            life.allow(0);
            life.resume_killed(fault);
        }
        let shown = life.ask(&["show", &life.id]);
        shown.check(0, &["[under way] begun or decided about, and not over\n", about, &format!("    {resume}")]);
        let row = shown.out.lines().find(|line| line.starts_with("  c2 ")).unwrap();
        assert!(row.contains(": was running when its process ended, since 20") && row.ends_with(who), "{shown}");
        let json = &life.stage.show()["under_way"][0];
        assert_eq!(json["name"], "c2", "{json}");
        assert!(json["resume"].as_str().unwrap().starts_with(&resume["resume ".len()..]), "{json}");
        assert!(json["since"].as_u64().is_some() && json["arguments"].is_string(), "{json}");
        let resumed = life.resume();
        let asks = resume.contains("asks you");
        assert_eq!(resumed.code, if asks { 14 } else { 0 }, "{resumed}");
        assert_eq!(
            life.stage.show()["under_way"],
            serde_json::json!([]),
            "what waits is asked about, and not told twice"
        );
    }
    // A model call that was lost is told, too.
    let life = Life::begin(&[read()], Some("after:C3:1"));
    life.ask(&["show", &life.id]).check(
        0,
        &[
            "  m1 the model: was being asked when its process ended, since 20",
            "    resume counts its worst case as spent",
        ],
    );
}

#[test]
fn s_26_what_waits_for_a_decision_waits_on_after_a_kill() {
    let life = Life::begin(&[shell("one"), shell("two"), shell("three")], Some("after:C4b:1"));
    let waiting = life.waiting();
    assert_eq!(waiting.len(), 3, "{waiting:?}");
    let asked = life.records("model_call_started").len();
    let prepared = life.records("approval_requested");
    life.resume().check(10, &["waiting for approval"]);
    assert_eq!(life.waiting(), waiting, "the same calls under the same digests");
    assert_eq!(life.records("approval_requested"), prepared, "nothing was asked for anew");
    assert_eq!((life.records("model_call_started").len(), life.traces().len()), (asked, 0));
}

#[test]
fn s_27_what_was_decided_before_a_kill_is_looked_at_again_before_it_runs() {
    let write = ("write_file", serde_json::json!({ "path": "notes.txt", "content": "second\n" }));
    let life = Life::begin(&[write], None);
    let (call, digest) = life.waiting()[0].clone();
    life.killed(&["approve", &life.id, &call, digest.as_str().unwrap()], "after:C5:1");
    fs::write(life.stage.path("work/notes.txt"), "somebody else's\n").unwrap();
    life.resume().check(10, &["waiting for approval"]);
    assert_eq!(fs::read_to_string(life.stage.path("work/notes.txt")).unwrap(), "somebody else's\n");
    assert_eq!(life.records("approval_invalidated").len(), 1);
    let (again, other) = life.waiting()[0].clone();
    assert!(again == call && other != digest, "another preview has another digest");
    life.ask(&["approve", &life.id, &call, digest.as_str().unwrap()])
        .check(3, &["nothing was decided", "shows what it is now"]);
    life.allow(0);
    life.resume().check(0, &["[completed]"]);
    assert_eq!(fs::read_to_string(life.stage.path("work/notes.txt")).unwrap(), "second\n");
}

#[test]
fn s_28_what_was_done_before_a_kill_is_not_done_again() {
    let life = Life::begin(&[shell("one"), shell("two"), shell("three")], None);
    (0..3).for_each(|_| life.allow(0));
    life.resume_killed("before:C7:3");
    assert_eq!(life.traces(), ["one", "two", "three"]);
    let other = Life::begin(&[shell("one"), shell("two"), shell("three")], None);
    (0..3).for_each(|_| other.allow(0));
    let asked = other.records("model_call_started").len();
    // The end of the second and the start of the third are one batch: the third had its start, and did not run.
    other.resume_killed("after:C7:2");
    assert_eq!(other.traces(), ["one", "two"]);
    other.resume().check(14, &["outcome unknown"]);
    assert_eq!(other.traces(), ["one", "two"]);
    assert_eq!(other.records("model_call_started").len(), asked, "no model is asked before the third is settled");
    let (call, _) = other.waiting()[0].clone();
    other.ask(&["resolve", &other.id, &call, "again"]).check(0, &["recorded"]);
    other.resume().check(0, &["[completed]"]);
    assert_eq!(other.traces(), ["one", "two", "three"]);
    assert_eq!(other.records("model_call_started").len(), asked + 1);
}

#[test]
fn s_29_a_read_is_run_again_once_and_then_asked_about() {
    // K12 twice and K14; a read says nothing on its way, so K13 is between the last two.
    for fault in ["after:C6:1", "tool:before:1", "tool:after:1"] {
        let read = ("read_file", serde_json::json!({ "path": "notes.txt" }));
        let life = Life::begin(&[read], Some(fault));
        life.resume_killed(fault);
        let started = life.records("tool_call_started");
        assert_eq!(started.len(), 2, "{fault}: {started:?}");
        let name = |record: &Value| record.pointer("/event/call").or(record.pointer("/call")).cloned();
        assert!(name(&started[0]).is_some());
        assert_eq!(name(&started[0]), name(&started[1]), "the same call under the same name");
        let attempt = |record: &Value| record.pointer("/event/attempt").or(record.pointer("/attempt")).cloned();
        assert_eq!((attempt(&started[0]), attempt(&started[1])), (Some(1.into()), Some(2.into())));
        life.resume().check(14, &["outcome unknown"]);
        assert_eq!(life.records("tool_call_started").len(), 2, "not a third time by itself");
        let (call, _) = life.waiting()[0].clone();
        life.ask(&["resolve", &life.id, &call, "again"]).check(0, &["recorded"]);
        life.resume().check(0, &["[completed]"]);
        assert_eq!((life.records("tool_call_started").len(), life.results(&call).len()), (3, 1));
    }
}

#[test]
fn s_32_a_cancel_that_was_killed_is_completed_and_tells_what_is_unknown() {
    let life = Life::begin(&[shell("one"), shell("two")], None);
    life.allow(0);
    life.resume_killed("tool:during:1");
    let asked = life.records("model_call_started").len();
    life.killed(&["cancel", &life.id], "after:C9:1");
    let shown = life.ask(&["show", &life.id]);
    shown.check(0, &["[cancelled]", "[deeds] calls that could change something"]);
    let deed = |call: &str| shown.out.lines().find(|line| line.trim_start().starts_with(call)).unwrap().to_string();
    assert!(
        deed("c2 shell").ends_with(": unknown, allowed by you (command line), ran without a box, with all your rights")
            && deed("c3 shell").ends_with(": cancelled"),
        "{shown}"
    );
    life.resume();
    assert_eq!(life.records("model_call_started").len(), asked, "no model is asked any more");
    assert_eq!(life.traces(), ["one"]);
    let first = life.records("tool_call_started")[0].clone();
    let call = first.pointer("/event/call").or(first.pointer("/call")).unwrap().to_string();
    let results = life.results(&call);
    assert!(results.len() == 1 && results[0].to_string().contains("unknown"), "{results:?}");
}
