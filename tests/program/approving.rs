//! Decisions with the real program, the real store and the real tools: changed arguments, lists, trust
//! (docs/ENGINE.md §9).

use serde_json::Value;

use crate::real::Said;
use crate::real::Stage;
use tiller::domain::text::sha256_hex;

const PLAN: &str = r#"
[[step]]
name = "plan"
text = "A plan."
calls = [ { tool = "update_plan", args = { todos = [ { id = "a", title = "write", status = "in_progress" } ] } } ]
"#;
const END: &str = r#"
[[step]]
name = "end"
text = "Done."
calls = [
  { tool = "update_plan", args = { mode = "patch", todos = [ { id = "a", title = "write", status = "done" } ] } },
  { tool = "finish", args = { summary = "written" } },
]
"#;

/// Runs a reply with these calls to where it waits.
fn waits(stage: &Stage, calls: &str) -> Said {
    let script = format!("{PLAN}\n[[step]]\nname = \"work\"\ntext = \"Now.\"\ncalls = [ {calls} ]\n{END}");
    let said = stage.run(&script);
    said.check(10, &["waiting for approval"]);
    said
}

/// The words of the first line to type that begins so.
fn words(said: &Said, start: &str) -> Vec<String> {
    let line = said.out.lines().map(str::trim).find(|line| line.starts_with(start)).expect("a line to type");
    line.split_whitespace().skip(1).map(ToString::to_string).collect()
}

fn ask(stage: &Stage, words: &[String]) -> Said {
    stage.ask(&words.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn s_34_edit_and_allow_runs_the_changed_call_once_and_a_refused_place_stays_refused() {
    let stage = Stage::new();
    let first = waits(&stage, r#"{ tool = "write_file", args = { path = "a.txt", content = "text\n" } }"#);
    let mut edit = words(&first, "tiller approve");
    edit.extend(["--edit".to_string(), r#"{"path":"b.txt","content":"text\n","mode":1}"#.to_string()]);
    ask(&stage, &edit).check(
        3,
        &["the changed arguments do not fit: the arguments do not fit write_file: /mode: there is no such field"],
    );
    *edit.last_mut().unwrap() = stage.write("new.json", r#"{"path":"b.txt","content":"mine\n"}"#).display().to_string();
    ask(&stage, &edit).check(0, &["recorded · run ", "is parked (nothing waits for you)"]);
    // Nothing says any more that it waits for approval, since it does not.
    stage.ask(&["runs"]).check(0, &["parked: nothing waits for you"]);
    let id = &stage.ids()[0];
    ask(&stage, &edit).check(3, &["was allowed as changed already; nothing changed"]);
    let shown = stage.ask(&["show", id]);
    shown.check(
        0,
        &["[parked] nothing waits for you\n  what to do: resume goes on\n", "to go on, type:\n  tiller resume"],
    );
    assert!(!shown.out.contains("waiting for approval"), "{shown}");
    stage
        .ask(&["show", id, "--json"])
        .check(0, &["\"reason\":\"nothing waits for you\"", "\"remedy\":\"resume goes on\""]);
    stage.ask(&["resume", "--last", "--plain"]).check(0, &["completed"]);
    // What ran is not what the model wrote: its row says by whom, and both.
    let changed = format!(
        "write_file b.txt (new) +1 −0: done, allowed by you (command line)\n    changed by you (command line): content from \"text\\n\" to \"mine\\n\"; path from \
         \"a.txt\" to \"b.txt\" · whole: tiller audit {} --payloads --json\n",
        &id[..6]
    );
    stage.ask(&["show", id]).check(0, &[&changed]);
    // What was decided and what ran is told of the operator's arguments, and what they stand in the place of.
    let mine = r#"{"path":"b.txt","content":"mine\n"}"#;
    let lines = stage.ask(&["audit", id, "--payloads", "--json"]).out;
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for action in ["approval_decided", "tool_call_started"] {
        let line = lines.iter().find(|line| line["action"] == action && line["tool"] == "write_file").unwrap();
        assert_eq!(
            (&line["args_sha256"], &line["text"]),
            (&sha256_hex(mine.as_bytes()).into(), &mine.into()),
            "{line}"
        );
    }
    let asked = lines.iter().find(|line| line["action"] == "approval_requested").unwrap();
    let before = asked["args_sha256"].as_str().unwrap();
    let (before, after) = (&before[..12], &sha256_hex(mine.as_bytes())[..12]);
    let decided =
        format!("arguments {after} · allow as changed · by you (command line) · in the place of arguments {before} · ");
    stage.ask(&["audit", id]).check(0, &[&decided, &format!("write_file · `b.txt` · arguments {after} · attempt 1")]);
    assert_eq!(std::fs::read_to_string(stage.path("work/b.txt")).unwrap(), "mine\n");
    assert!(!stage.path("work/a.txt").exists());

    let second = waits(&stage, r#"{ tool = "write_file", args = { path = "c.txt", content = "text\n" } }"#);
    let mut edit = words(&second, "tiller approve");
    let refused = stage.path("state/tiller/x").display().to_string();
    edit.extend(["--edit".to_string(), format!(r#"{{"path":"{refused}","content":"text\n"}}"#)]);
    ask(&stage, &edit).check(0, &["recorded"]);
    stage.ask(&["resume", "--last", "--plain"]).check(0, &[&format!("] not run: write_file {refused}\n")]);
    assert!(!stage.path("state/tiller/x").exists() && !stage.path("work/c.txt").exists());
}

/// Leave for changed arguments is for what was shown: not for what became of it until they are acted on.
#[test]
fn an_edit_covers_nothing_that_was_not_shown() {
    type Change = fn(&Stage);
    let write = r#"{ tool = "write_file", args = { path = "p", content = "text\n" } }"#;
    let shell = r#"{ tool = "shell", args = { command = "sh x.sh" } }"#;
    let (content, line) = (r#"{"path":"p","content":"mine\n"}"#, r#"{"command":"sh x.sh; true"}"#);
    let link = |stage: &Stage| {
        std::fs::remove_file(stage.path("work/p")).unwrap();
        std::os::unix::fs::symlink("../out", stage.path("work/p")).unwrap();
    };
    let exchange = |stage: &Stage| {
        std::fs::rename(stage.path("work"), stage.path("before")).unwrap();
        std::fs::create_dir(stage.path("work")).unwrap();
        ["p", "x.sh"]
            .iter()
            .for_each(|name| drop(std::fs::copy(stage.path("before").join(name), stage.path("work").join(name))));
    };
    let cases: [(&str, &str, Change, &str); 6] = [
        (write, content, |_| (), ""),
        (write, content, |stage| drop(stage.write("work/p", "new\n")), "content before"),
        (write, content, link, "path"),
        (write, content, exchange, "folder"),
        (shell, line, |stage| drop(stage.write("work/x.sh", "echo evil > evil")), "script "),
        (shell, line, exchange, "workspace"),
    ];
    for (call, changed, change, name) in cases {
        let stage = Stage::new();
        stage.write("work/p", "old\n");
        stage.write("work/x.sh", "true");
        stage.write("out", "outside\n");
        let mut edit = words(&waits(&stage, call), "tiller approve");
        edit.extend(["--edit".to_string(), changed.to_string()]);
        ask(&stage, &edit).check(0, &["recorded · run "]);
        change(&stage);
        let resumed = stage.ask(&["resume", "--last", "--plain"]);
        let why = format!("as you changed it, it reaches what you were not shown: {name}");
        match name {
            "" => resumed.check(0, &["completed"]),
            _ => resumed.check(10, &[&why]),
        };
        assert_eq!(std::fs::read_to_string(stage.path("out")).unwrap(), "outside\n");
        assert!(!stage.path("work/evil").exists(), "{name}");
        let is_written = std::fs::read_to_string(stage.path("work/p")).unwrap() == "mine\n";
        assert_eq!(is_written, name.is_empty(), "{name}");
    }
}

#[test]
fn a_call_that_did_not_run_is_told_by_what_it_was_about_and_why() {
    let stage = Stage::new();
    // What comes before the path is longer than any title.
    let text = "long ".repeat(60);
    let lost =
        format!(r#"{{ tool = "edit_file", args = {{ path = "no.txt", old_text = "a", new_text = "{text}" }} }}"#);
    let first =
        waits(&stage, &format!(r#"{lost}, {{ tool = "write_file", args = {{ path = "a.txt", content = "a" }} }}"#));
    let why = "no.txt: no such file; use write_file to make it. Nothing was done.";
    first.check(10, &[&format!("[call c2] not run: edit_file no.txt\n  | {why}\n")]);
    stage.ask(&["show", &stage.ids()[0]]).check(0, &[&format!("  c2 edit_file no.txt: not run: {why}\n")]);
}

#[test]
fn s_54_a_stale_preview_is_void_and_the_new_difference_is_asked_about() {
    let stage = Stage::new();
    stage.write("work/f.txt", "one two\n");
    let edit = |old: &str, new: &str| {
        format!(r#"{{ tool = "edit_file", args = {{ path = "f.txt", old_text = "{old}", new_text = "{new}" }} }}"#)
    };
    let said = waits(&stage, &format!("{}, {}", edit("one", "1"), edit("two", "2")));
    let all = said.out.lines().map(str::trim).find(|line| line.starts_with("tiller approve") && line.contains(':'));
    let all: Vec<String> = all.unwrap().split_whitespace().skip(1).map(ToString::to_string).collect();
    ask(&stage, &all).check(0, &["recorded"]);
    let resumed = stage.ask(&["resume", "--last", "--plain"]);
    resumed.check(10, &["content before", "waiting for approval"]);
    assert_eq!(std::fs::read_to_string(stage.path("work/f.txt")).unwrap(), "1 two\n", "only the first was done");
    let again = words(&resumed, "tiller approve");
    assert!(!all.iter().any(|word| word.ends_with(again.last().unwrap())), "the digest is another one");
    ask(&stage, &again).check(0, &["recorded"]);
    stage.ask(&["resume", "--last", "--plain"]).check(0, &["completed"]);
    assert_eq!(std::fs::read_to_string(stage.path("work/f.txt")).unwrap(), "1 2\n");
}

#[test]
fn trust_lets_files_be_changed_unasked_and_plan_denies_them() {
    let stage = Stage::new();
    let calls = r#"{ tool = "write_file", args = { path = "a.txt", content = "text\n" } }"#;
    let script = format!("{PLAN}\n[[step]]\nname = \"work\"\ntext = \"Now.\"\ncalls = [ {calls} ]\n{END}");
    let model = stage.model(&script);
    let run = |trust: &str| stage.ask(&["run", "do it", "--plain", "--model", &model, "--trust", trust]);
    run("plan").check(0, &["trust mode plan", "denied"]);
    assert!(!stage.path("work/a.txt").exists());
    run("auto-edit").check(0, &["trust mode auto_edit"]);
    assert_eq!(std::fs::read_to_string(stage.path("work/a.txt")).unwrap(), "text\n");
}

#[test]
fn what_was_recorded_is_not_said_to_be_lost_because_the_list_could_not_be_told() {
    let stage = Stage::new();
    let first = waits(&stage, r#"{ tool = "write_file", args = { path = "a.txt", content = "text\n" } }"#);
    let id = stage.ids()[0].clone();
    let summary = stage.run_dir(&id).join("summary.json");
    std::fs::remove_file(&summary).unwrap();
    std::fs::create_dir_all(summary.join("in the way")).unwrap();
    ask(&stage, &words(&first, "tiller approve")).check(0, &["recorded"]);
    stage.ask(&["audit", &id]).check(0, &["approval_decided"]);
    stage.ask(&["rewind", &id, "1"]).check(0, &["is back at the end of iteration 1", "is parked"]);
    stage.ask(&["fork", &id]).check(0, &["is queued"]);
}

#[test]
fn what_holds_for_the_run_is_shown_and_who_decides_twice_hears_it() {
    let stage = Stage::new();
    let call = |path: &str| format!(r#"{{ tool = "write_file", args = {{ path = "{path}", content = "1" }} }}"#);
    let said = waits(&stage, &format!("{}, {}", call("a"), call("b")));
    let id = &stage.ids()[0];
    let lines: Vec<Vec<String>> = said
        .out
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with("tiller "))
        .map(|line| shlex::split(line).unwrap().split_off(1))
        .collect();
    let of = |word: &str, call: &str| lines.iter().find(|line| line[0] == word && line[2] == call).unwrap().clone();
    let deny = of("deny", "c3");
    ask(&stage, &deny)
        .check(0, &["recorded: c3 is denied, and every call like it byte for byte, until the run ends · "]);
    ask(&stage, &deny).check(3, &["call c3 of run ", "was denied already; nothing changed"]);
    let mut allow = of("approve", "c2");
    allow.push("--tool".to_string());
    ask(&stage, &allow)
        .check(0, &["recorded: c2 is allowed, and every call of write_file that need not be asked about"]);
    ask(&stage, &allow).check(3, &["was allowed already; nothing changed"]);
    stage.ask(&["show", id]).check(
        0,
        &[
            "[allowed for this run] write_file: all calls, but what is always asked about\n",
            "[denied for this run] write_file b",
            ": identical calls are denied as well; you said \"why\"\n",
        ],
    );
    let shown = stage.show();
    assert_eq!(shown.pointer("/remembered/tools/0"), Some(&"write_file".into()));
    assert_eq!(shown.pointer("/remembered/denied/0/tool"), Some(&"write_file".into()));
    stage.ask(&["resume", id, "--plain"]).check(0, &["completed"]);
    ask(&stage, &deny).check(3, &["was denied already; nothing changed"]);
}
