//! The cases of `tests/fixtures/safety/trust.jsonl`: each is played here, or is the matter of a test that is named.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::Value;
use serde_json::json;
use tiller::tools::Executed;

use crate::real::Stage;
use crate::trust::world::World;
use crate::trust::world::script;

/// Cases that are played by a test of their own, by the name of a function in a file.
const ELSEWHERE: &[(&str, &str, &str)] = &[
    ("toctou-file-01", "tests/trust/cases.rs", "what_changed_since_it_was_decided_is_not_done"),
    ("toctou-file-02", "tests/trust/cases.rs", "what_changed_since_it_was_decided_is_not_done"),
    ("toctou-file-03", "tests/trust/cases.rs", "what_changed_since_it_was_decided_is_not_done"),
    ("toctou-exec-01", "tests/trust/cases.rs", "what_changed_since_it_was_decided_is_not_done"),
    ("toctou-exec-04", "tests/trust/cases.rs", "what_changed_since_it_was_decided_is_not_done"),
    ("toctou-exec-06", "tests/trust/cases.rs", "a_decision_is_about_one_digest_and_holds_once"),
    ("toctou-exec-07", "tests/trust/cases.rs", "a_decision_is_about_one_digest_and_holds_once"),
    ("permissions-03", "tests/trust/permissions.rs", "what_others_could_have_written_configures_nothing"),
    ("permissions-05", "tests/trust/permissions.rs", "what_lies_in_a_shared_folder_is_not_touched"),
    // There is no `--allow-root`: the doctor says what does not hold for root.
    ("permissions-06", "tests/trust/permissions.rs", "the_doctor_tells_root"),
    ("permissions-08", "tests/trust/secrets.rs", "no_copy_of_a_secret_is_kept_or_shown"),
    ("repo-config-02", "tests/trust/repository.rs", "settings_are_the_same_whatever_the_repository_holds"),
    ("repo-config-03", "tests/trust/start.rs", "a_start_in_a_hostile_folder_runs_nothing_of_it"),
    ("repo-config-07", "tests/trust/repository.rs", "a_guide_is_text_and_approves_nothing"),
    ("repo-config-09", "tests/trust/start.rs", "a_start_in_a_hostile_folder_runs_nothing_of_it"),
    ("secrets-01", "tests/trust/secrets.rs", "what_looks_secret_is_passed_only_when_it_is_named"),
    ("secrets-03", "tests/trust/secrets.rs", "no_copy_of_a_secret_is_kept_or_shown"),
    ("secrets-07", "tests/trust/secrets.rs", "what_looks_secret_is_passed_only_when_it_is_named"),
    ("secrets-08", "tests/trust/secrets.rs", "no_copy_of_a_secret_is_kept_or_shown"),
    ("journal-resume-01", "tests/kills/every_record.rs", "a_kill_after_any_record_of_the_first_process_loses_nothing"),
    ("journal-resume-02", "tests/kills/every_record.rs", "one_life_killed_after_every_few_records"),
    ("journal-resume-04", "tests/store/damage.rs", "an_edited_record_breaks_the_chain"),
    ("journal-resume-06", "tests/trust/start.rs", "what_runs_is_what_the_journal_says"),
];

/// What is stricter here than a case asks: it is refused, since nothing is there that could be asked about.
const STRICTER: &[&str] = &["path-traversal-12"];

fn cases() -> Vec<Value> {
    let text = include_str!("../fixtures/safety/trust.jsonl");
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A call of a case, with its paths in the world.
fn call_of(world: &World, input: &Value) -> Option<(String, Value)> {
    let inner = input.get("call").unwrap_or(input);
    let command = inner
        .get("command")
        .or_else(|| input.get("event").filter(|one| one.as_str().is_some_and(|event| event.starts_with("shell:"))));
    if let Some(command) = command.and_then(Value::as_str) {
        return Some(("shell".to_string(), json!({ "command": command.trim_start_matches("shell: ") })));
    }
    let tool = match inner.get("tool")?.as_str()? {
        "grep" => "search_files".to_string(),
        tool => tool.to_string(),
    };
    let mut arguments = inner.get("args").cloned().unwrap_or_else(|| json!({ "path": inner["path"] }));
    let path = arguments["path"].as_str()?.to_string();
    let is_ours = path.starts_with("/ws") || path.starts_with("/home/op");
    if is_ours {
        arguments["path"] = json!(format!("{}{}", world.at("").display(), path.trim_start_matches('/')));
    }
    if tool == "write_file" && arguments.get("content").is_none() {
        arguments["content"] = json!("x");
    }
    Some((tool, arguments))
}

/// Makes what a case says is there.
fn lay_out(world: &World, input: &Value) {
    for (path, what) in input.get("layout").and_then(Value::as_object).into_iter().flatten() {
        let (path, what) = match path.starts_with("step") {
            true => match what.as_str().and_then(|step| step.split_once("creates ")) {
                Some((_, link)) => link.split_once(' ').unwrap(),
                None => continue,
            },
            false => (path.as_str(), what.as_str().unwrap()),
        };
        if let Some(target) = what.strip_prefix("-> ") {
            let target = if target.starts_with('/') { world.at(target) } else { target.into() };
            symlink(target, world.at(path)).unwrap();
        } else if what.starts_with("hard link") {
            world.write("/tmp/other-user-file", "theirs\n");
            fs::hard_link(world.at("/tmp/other-user-file"), world.at(path)).unwrap();
        } else if path.starts_with('/') {
            world.write(path, what);
        }
    }
}

#[tokio::test]
async fn calls_are_judged_as_the_cases_say() {
    let mut played = 0;
    for case in cases() {
        let (id, input) = (case["id"].as_str().unwrap(), &case["input"]);
        let is_elsewhere = ELSEWHERE.iter().any(|(name, _, _)| *name == id);
        if is_elsewhere {
            continue;
        }
        let world = World::new();
        world.write("/ws/.env", "KEY=1\n");
        world.write("/ws/.ENV", "KEY=1\n");
        world.write("/etc/passwd", "root\n");
        lay_out(&world, input);
        let (tool, arguments) = call_of(&world, input).unwrap_or_else(|| panic!("{id} is played nowhere"));
        let call = world.call(&tool, &arguments).await;
        let (said, why) = world.judged(&call);
        let wanted = if STRICTER.contains(&id) { "refuse" } else { case["expected"].as_str().unwrap() };
        assert_eq!(said, wanted, "{id}: {why}");
        if id == "symlink-09" {
            assert!(why.contains("has 2 names"), "{why}");
        }
        played += 1;
    }
    assert!(played >= 18, "{played} were played");
}

#[test]
fn every_case_has_its_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (id, file, function) in ELSEWHERE {
        assert!(cases().iter().any(|case| case["id"] == *id), "{id} is no case");
        let text = fs::read_to_string(root.join(file)).unwrap();
        assert!(text.contains(&format!("fn {function}(")), "{id}: no {function} in {file}");
    }
}

/// Names with their bytes and their modes, in a folder and below it, links not followed.
async fn drift(world: &World, tool: &str, arguments: Value, meddle: impl FnOnce(), wanted: &str) {
    let call = world.call(tool, &arguments).await;
    assert_eq!(world.judged(&call).0, "ask", "{arguments}");
    meddle();
    match world.execute(&call).await {
        Executed::Drifted(text) => assert!(text.contains(wanted), "{text}"),
        Executed::Ended(outcome) => panic!("{arguments} was done: {outcome:?}"),
    }
}

#[tokio::test]
async fn what_changed_since_it_was_decided_is_not_done() {
    let edit = json!({ "path": "src/a.rs", "old_text": "fn a", "new_text": "fn b" });
    let world = World::new();
    drift(&world, "edit_file", edit.clone(), || world.write("ws/src/a.rs", "fn a() { 1 }\n"), "content before").await;
    assert_eq!(world.read("ws/src/a.rs"), "fn a() { 1 }\n");

    let new = json!({ "path": "new.txt", "content": "ours" });
    drift(&world, "write_file", new.clone(), || world.write("ws/new.txt", "theirs"), "content before").await;
    assert_eq!(world.read("ws/new.txt"), "theirs");

    let astray = || {
        fs::rename(world.at("ws/src"), world.at("ws/old")).unwrap();
        fs::create_dir(world.at("elsewhere")).unwrap();
        fs::write(world.at("elsewhere/a.rs"), "fn a() { 1 }\n").unwrap();
        symlink(world.at("elsewhere"), world.at("ws/src")).unwrap();
    };
    drift(&world, "edit_file", edit, astray, "").await;
    assert_eq!(world.read("elsewhere/a.rs"), "fn a() { 1 }\n");

    let world = World::new();
    world.write("ws/build.sh", "touch GOOD\n");
    let line = json!({ "command": "sh ./build.sh" });
    drift(&world, "shell", line.clone(), || world.write("ws/build.sh", "touch MARK\n"), "").await;
    assert!(!world.at("ws/MARK").exists());
    let moved = || {
        fs::rename(world.at("ws"), world.at("old")).unwrap();
        fs::create_dir(world.at("other")).unwrap();
        symlink(world.at("other"), world.at("ws")).unwrap();
    };
    drift(&world, "shell", json!({ "command": "touch MARK" }), moved, "").await;
    assert!(!world.at("other/MARK").exists() && !world.at("old/MARK").exists());

    // Where nothing changed, the same calls are done.
    let world = World::new();
    world.write("ws/build.sh", "touch GOOD\n");
    for (tool, arguments) in [("write_file", new), ("shell", line)] {
        let call = world.call(tool, &arguments).await;
        assert!(matches!(world.execute(&call).await, Executed::Ended(_)), "{arguments}");
    }
    assert!(world.at("ws/GOOD").exists() && world.read("ws/new.txt") == "ours");
}

#[test]
fn a_decision_is_about_one_digest_and_holds_once() {
    let stage = Stage::new();
    let call = ("shell", json!({ "command": "echo x >> traces" }));
    stage.start(&script(&[call]), &[]).check(10, &["waiting for approval"]);
    let shown = stage.show();
    let (id, one) = (stage.ids().remove(0), shown["waiting"][0].clone());
    let (name, digest) = (one["call"].as_str().unwrap(), one["digest"].as_str().unwrap());
    let other: String = digest.chars().map(|digit| if digit == '0' { '1' } else { '0' }).collect();
    assert_ne!(stage.ask(&["approve", &id, name, &other]).code, 0, "another digest decided");
    assert_eq!(stage.show()["waiting"].as_array().unwrap().len(), 1);
    stage.ask(&["approve", &id, name, digest]).check(0, &["recorded"]);
    assert_ne!(stage.ask(&["approve", &id, name, digest]).code, 0, "it was decided twice");
    stage.ask(&["resume", "--last", "--plain"]).check(0, &[]);
    assert_ne!(stage.ask(&["approve", &id, name, digest]).code, 0, "a decision was used again");
    assert_eq!(fs::read_to_string(stage.path("work/traces")).unwrap(), "x\n");
}
