//! Goals, folders, configurations and models that can't be meant: nothing is started, and the sentence says so.

use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use crate::program::scripts::SHORT;
use crate::real::Said;
use crate::real::Stage;
use crate::real::said;

/// Asserts that a line is refused with these sentences, and that no run came of it.
fn refused(stage: &Stage, line: &[&str], code: i32, sentences: &[&str]) {
    let told = stage.ask(line);
    told.check(code, sentences);
    assert_eq!(told.out, "", "{line:?}");
    assert_eq!(told.err.lines().count(), 1, "one sentence: {told}");
    let runs = stage.path("state/tiller/runs");
    let count = fs::read_dir(runs).map_or(0, Iterator::count);
    assert_eq!(count, 0, "{line:?} left a run");
}

fn typed(stage: &Stage, goal: &[u8]) -> Said {
    let model = stage.model(SHORT);
    let mut child = stage.tiller(&["run", "-", "--plain", "--model", &model]).stdin(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let goal = goal.to_vec();
    // The program may stop reading early, which is an error here and none of interest.
    let writer = std::thread::spawn(move || drop(input.write_all(&goal)));
    let said = said(child);
    writer.join().unwrap();
    said
}

#[test]
fn goals_on_the_command_line() {
    let stage = Stage::new();
    let model = stage.model(SHORT);
    let empty = ["the goal is empty; nothing was started; say in a sentence what is to be reached"];
    for goal in ["", "  ", "\n\t"] {
        refused(&stage, &["run", goal, "--plain", "--model", &model], 2, &empty);
    }
    refused(&stage, &[""], 2, &empty);
    let long = ["the goal has 8001 characters and may have 8000; nothing was started; put the text in a file"];
    refused(&stage, &["run", &"é".repeat(8_001), "--plain", "--model", &model], 2, &long);
    stage.ask(&["run", &"é".repeat(8_000), "--plain", "--model", &model]).check(0, &["[completed]"]);
}

#[test]
fn goals_on_standard_input() {
    let stage = Stage::new();
    typed(&stage, b"").check(2, &["the goal is empty; nothing was started"]);
    typed(&stage, b" \n").check(2, &["the goal is empty; nothing was started"]);
    typed(&stage, "é".repeat(8_001).as_bytes()).check(2, &["the goal has 8001 characters and may have 8000"]);
    typed(&stage, b"caf\xe9").check(2, &["nothing was started; it must be text in UTF-8"]);
    // Longer than what is read: cut in the middle of a character, it is still too long and not ill-formed.
    typed(&stage, "€".repeat(500_000).as_bytes()).check(2, &["and may have 8000; nothing was started"]);
    typed(&stage, &[b'x'; 3_000_000]).check(2, &["and may have 8000; nothing was started"]);
    assert_eq!(stage.runs().len(), 0);
    typed(&stage, b"reach it\n").check(0, &["  | reach it\n", "[completed]"]);
}

#[test]
fn folders() {
    let stage = Stage::new();
    let model = stage.model(SHORT);
    let at = |folder: &str| stage.path(folder).display().to_string();
    let line = |folder: &str| ["run", "g", "--plain", "--model", &model, "--workspace", folder].map(String::from);
    let refused = |folder: &str, sentences: &[&str]| {
        refused(&stage, &line(folder).each_ref().map(String::as_str), 2, sentences);
    };
    refused(&at("nowhere"), &["the workspace", "nowhere can't be used; nothing was started", "No such file"]);
    stage.write("file", "");
    refused(&at("file"), &["file is not a folder; nothing was started; name a folder"]);
    fs::create_dir_all(stage.path("state/tiller/runs")).unwrap();
    for dir in ["state/tiller", "state/tiller/runs"] {
        fs::set_permissions(stage.path(dir), fs::Permissions::from_mode(0o700)).unwrap();
        refused(&at(dir), &["lies where tiller keeps its own files; nothing was started; name another folder"]);
    }
    std::os::unix::fs::symlink(stage.path("state/tiller"), stage.path("link")).unwrap();
    refused(&at("link"), &["lies where tiller keeps its own files"]);
    if nix::unistd::geteuid().is_root() {
        println!("skipped: root may write everywhere, so no folder is refused for its rights");
    } else {
        fs::create_dir(stage.path("shut")).unwrap();
        fs::set_permissions(stage.path("shut"), fs::Permissions::from_mode(0o500)).unwrap();
        refused(&at("shut"), &["can't be written; nothing was started; change its rights or name another"]);
    }
}

#[test]
fn configurations() {
    let stage = Stage::new();
    let path = stage.write("config/tiller/tiller.toml", "modle = \"openai/gpt-5\"");
    let shown = path.display().to_string();
    let goal = ["run", "g", "--plain"];
    let check = |text: &[u8], problem: &str| {
        fs::write(&path, text).unwrap();
        refused(&stage, &goal, 13, &[&shown, problem, "nothing was started"]);
    };
    check(b"modle = \"openai/gpt-5\"", "line 1: unknown key modle; did you mean \"model\"?");
    check(b"\n[budget]\ncots = \"5\"", "line 3: unknown key budget.cots; did you mean \"cost\"?");
    check(b"[budget\n", "line 1: it is not TOML");
    check(b"model = \"\xff\"", "it must be a text file in UTF-8");
    check(b"[budget]\ncost = 0", "line 2: budget.cost");
    check(&vec![b'#'; 300_000], "it is longer than 262144 bytes; shorten it");
    check(b"model = \"nobody/x\"", "there is no provider \"nobody\"; known are llamacpp");
    check(b"model = \"openai/strange\"", "set models.\"openai/strange\".price in tiller.toml");
    check(b"model = \"gpt-5\"", "a model is named by its provider and its own name");
    fs::remove_file(&path).unwrap();
    refused(&stage, &goal, 13, &["no model is named", "give --model; nothing was started"]);
    refused(&stage, &["run", "g", "--plain", "--model", "opnai/gpt-5"], 2, &["there is no provider \"opnai\""]);
}

#[test]
fn scripts() {
    let stage = Stage::new();
    let line = |model: &str| ["run", "g", "--plain", "--model", model].map(String::from);
    let check = |model: &str, sentences: &[&str]| {
        let told = stage.ask(&line(model).each_ref().map(String::as_str));
        told.check(2, sentences);
        assert_eq!(stage.runs().len(), 0);
    };
    check("scripted/nowhere.toml", &["nowhere.toml can't be used", "nothing was started", "No such file"]);
    check(&stage.model("[[step]]\nname = \"x\"\ntxet = \"x\"\n"), &["can't be used", "nothing was started", "txet"]);
    check(&stage.model(""), &["can't be used", "nothing was started", "step"]);
    let rehearsal = stage.ask(&["rehearse", "--script", "nowhere.toml"]);
    rehearsal.check(2, &["the script nowhere.toml can't be read; nothing was started"]);
}

/// A run without a word about its limits has all of them, and its journal says so; a limit of zero starts nothing.
#[test]
fn s_07_a_run_is_bounded_by_default_and_zero_is_no_limit() {
    let stage = Stage::new();
    let model = stage.model(SHORT);
    stage.ask(&["run", "g", "--plain", "--model", &model, "--budget", "0"]).check(2, &["a limit of zero on cost"]);
    stage.ask(&["run", "g", "--plain", "--model", &model, "--max-iterations", "0"]).check(2, &["zero"]);
    for key in ["cost", "tokens", "iterations", "model_calls", "tool_calls", "time"] {
        let zero = if key == "time" { "\"0m\"" } else { "0" };
        stage.write("config/tiller/tiller.toml", &format!("[budget]\n{key} = {zero}\n"));
        stage.ask(&["run", "g", "--plain", "--model", &model]).check(13, &[&format!("budget.{key}")]);
    }
    std::fs::remove_file(stage.path("config/tiller/tiller.toml")).unwrap();
    assert!(stage.ids().is_empty(), "nothing was started");
    stage.run(SHORT).check(0, &["[completed]"]);
    let export = stage.ask(&["export", &stage.ids()[0]]).out;
    let first = export.lines().find(|line| line.contains("\"type\":\"run_created\"")).unwrap();
    let first: serde_json::Value = serde_json::from_str(first).unwrap();
    let limits = first.pointer("/event/terms/limits").or(first.pointer("/terms/limits")).unwrap().to_string();
    for (axis, least) in [
        ("loops", "32"),
        ("model_calls", "96"),
        ("tool_calls", "300"),
        ("tokens", "2000000"),
        ("cost", "5000000"),
        ("active", "7200000"),
    ] {
        assert!(limits.contains(&format!("\"{axis}\":{{\"at\":{least}}}")), "{axis}: {limits}");
    }
}

/// A check that can't be run, or could never hold, is no check: the run is not started, and doctor names it.
#[test]
fn s_57_a_check_that_is_not_there_starts_nothing_and_is_missing() {
    let stage = Stage::new();
    let model = stage.model(SHORT);
    for (check, why) in [
        (r#"{ tool = "lint" }"#, "a check names the tool \"lint\", which there is not"),
        (r#"{ file = "a.txt", matches = "(" }"#, "a check has a pattern that can't be used: regex parse error"),
        (r#"{ file = "/proc/1/cwd" }"#, "`there is /proc/1/cwd` can never hold: /proc belongs to the system"),
        (r#"{ file = "../state/tiller/x", matches = "x" }"#, "can never hold: This path belongs to tiller itself"),
        (r#"{ tool = "read_file", arguments = { pth = "a" } }"#, "can never hold: The arguments do not fit the tool"),
        (r#"{ tool = "shell", arguments = { command = " " } }"#, "can never hold: The command is empty"),
        (r#""if true""#, "the check `if true` can never hold: "),
        (r#""echo 'it""#, "the check `echo 'it` can never hold: "),
        (r#""true", "test -f a)""#, "the check `test -f a)` can never hold: "),
    ] {
        stage.write("config/tiller/tiller.toml", &format!("[run]\nchecks = [ {check} ]\n"));
        refused(&stage, &["run", "g", "--plain", "--model", &model], 13, &["tiller.toml, line 2: ", why]);
        stage.ask(&["doctor"]).check(13, &["MISSING  checks", why]);
    }
    fs::remove_file(stage.path("config/tiller/tiller.toml")).unwrap();
    let line = ["run", "g", "--plain", "--model", &model, "--check", "touch made; ("];
    refused(&stage, &["run", "g", "--plain", "--model", &model, "--check", ""], 2, &["--check: a check is empty"]);
    refused(&stage, &line, 2, &["--check: the check `touch made; (` can never hold: "]);
    assert!(!stage.path("work/made").exists(), "a line that is only read does nothing");
}

/// What may still become right is nothing against a check: it is made when the agent says that it has finished.
#[test]
fn a_check_that_does_not_hold_yet_starts_a_run() {
    let stage = Stage::new();
    let checks = [
        r#"{ file = "dist/app" }"#,
        r#"{ file = "../beside" }"#,
        r#"{ tool = "read_file", arguments = { path = "later" } }"#,
        "\"exit 3\"",
        r#""shopt -s extglob\nls !(a)""#,
        r#"{ confirm = " " }"#,
    ];
    stage.write("config/tiller/tiller.toml", &format!("[run]\nchecks = [ {} ]\n", checks.join(", ")));
    stage.run(SHORT).check(12, &["[parked]", "dist/app is not there", "asked of the operator: Is the goal reached?"]);
    stage.ask(&["doctor"]).check(13, &["OK       checks"]);
}

/// Words that become an argument, a path, a header or a request.
#[test]
fn words_that_no_program_can_be_given() {
    let stage = Stage::new();
    let path = stage.path("config/tiller/tiller.toml");
    let long = "x".repeat(5_000);
    for (text, why) in [
        ("keep.days = 0", "expected a whole number from 1, or \"unlimited\"; with zero, each run would be removed"),
        ("keep.runs = -1", "expected a whole number from 1, or \"unlimited\""),
        (r#"notify.command = ["a\u0000b"]"#, "a word of it holds a NUL, which no program can be given"),
        (&format!("notify.command = ['{long}']"), "a word of it is longer than 4096 bytes"),
        (r#"run.checks = ["a\u0000b"]"#, "a check holds a NUL"),
        (r#"run.checks = [{ judge = "a\u0000b" }]"#, "a check holds a NUL"),
        (&format!("run.checks = [{}]", "'true', ".repeat(101)), "there are 101 checks and may be 100"),
        (r#"run.instructions = "a\u0000b""#, "it holds a NUL, which providers refuse"),
        (r#"model = "openai/a\nb""#, "the name of a model has at most 4096 bytes and no control characters"),
        (&format!("model = 'openai/{long}'"), "the name of a model has at most 4096 bytes"),
        (r#"providers.x.base_url = "https://a\n.example/v1""#, "a base URL has at most 4096 bytes, no spaces"),
        (r#"providers.x.base_url = "https://a.example/v 1""#, "a base URL has at most 4096 bytes, no spaces"),
        (&format!("{long} = 1"), "x…; known here: "),
    ] {
        stage.write("config/tiller/tiller.toml", text);
        refused(&stage, &["run", "g", "--plain"], 13, &[&path.display().to_string(), why]);
    }
    fs::remove_file(path).unwrap();
    let model = stage.model(SHORT);
    let mut command = stage.tiller(&["run", "g", "--plain", "--model", &model]);
    let no_text = std::ffi::OsStr::from_bytes(b"\xff");
    said(command.env("TILLER_BUDGET", no_text).spawn().unwrap()).check(13, &["TILLER_BUDGET: ", "must be dollars"]);
}

/// A store that can't be written is no store: nothing is started, and doctor names it. (`disk.rs` has the same of a disk
/// that can only be read, where one can be mounted.)
#[test]
fn s_57_a_store_that_is_not_there_starts_nothing_and_is_missing() {
    let stage = Stage::new();
    let model = stage.model(SHORT);
    stage.write("state", "where the state directory should be\n");
    let told = stage.ask(&["run", "g", "--plain", "--model", &model]);
    told.check(14, &["state/tiller can't be looked at", "nothing was opened; choose another state directory"]);
    stage.ask(&["doctor"]).check(13, &["MISSING  store", "state/tiller can't be looked at"]);
    std::fs::remove_file(stage.path("state")).unwrap();
    assert!(stage.ids().is_empty());
    stage.ask(&["doctor"]).check(13, &["OK       store", "MISSING  model"]);
}
