//! The real program and real files: what a killed file write leaves, what a rewind puts back, and what it can't.

use std::fmt::Write;
use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::program::stage::files;
use crate::real::Said;
use crate::real::Stage;
use crate::real::said;
use tiller::domain::event::Event;
use tiller::domain::event::Record;
use tiller::domain::id::CallId;
use tiller::domain::id::ClientId;
use tiller::domain::id::RunId;
use tiller::domain::lineage;
use tiller::domain::restoring::Restore;
use tiller::domain::restoring::Way;
use tiller::domain::run::Run;
use tiller::domain::status::Status;
use tiller::domain::text::sha256_hex;
use tiller::domain::time::Now;
use tiller::domain::tool::FileWrite;
use tiller::domain::tool::OutcomeKind;
use tiller::machine::restoring;
use tiller::store::transfer;

/// A script of so many iterations of `talk` words. Each ticks a todo off; `calls` says what else one asks for, as lines of TOML.
fn script(iterations: u32, talk: u32, calls: impl Fn(u32) -> String) -> String {
    let todo = |n: u32, status: &str| format!("{{ id = \"t{n}\", title = \"todo {n}\", status = \"{status}\" }}");
    let mut text = "[price]\ninput = 1000000\noutput = 1000000\n".to_string();
    for n in 1..=iterations {
        let (mode, todos) = match n {
            1 => ("replace", (1..=iterations).map(|n| todo(n, "pending")).collect::<Vec<_>>().join(", ")),
            _ => ("patch", todo(n - 1, "done")),
        };
        // Never the same words twice: a model that repeats itself is broken off.
        let words: Vec<String> = (0..talk).map(|word| format!("{}", n * 7_919 + word * 104_729)).collect();
        write!(text, "\n[[step]]\nname = \"step {n}\"\ntext = \"{}\"\n", words.join(" ")).unwrap();
        // The provider counts more than it was sent, so that there is no room left after iteration 19.
        let input = if n == 19 { 25_000 } else { 900 };
        writeln!(text, "usage = {{ input = {input}, output = 100 }}\ncalls = [").unwrap();
        writeln!(text, "  {{ tool = \"update_plan\", args = {{ mode = \"{mode}\", todos = [{todos}] }} }},").unwrap();
        writeln!(text, "{}]", calls(n)).unwrap();
    }
    text
}

fn write_file(path: &str, content: &str) -> String {
    format!("  {{ tool = \"write_file\", args = {{ path = \"{path}\", content = \"{content}\" }} }},\n")
}

fn edit_file(path: &str, old: &str, new: &str) -> String {
    let args = format!("path = \"{path}\", old_text = \"{old}\", new_text = \"{new}\"");
    format!("  {{ tool = \"edit_file\", args = {{ {args} }} }},\n")
}

fn shell(command: &str) -> String {
    format!("  {{ tool = \"shell\", args = {{ command = \"{command}\" }} }},\n")
}

/// Starts a run in which file writes in the workspace need no question; `fault` ends its process.
fn start(stage: &Stage, script: &str, fault: &str) -> Said {
    let model = stage.model(script);
    let mut command =
        stage.tiller(&["run", "do it", "--plain", "--trust", "auto_edit", "--max-iterations", "60", "--model", &model]);
    said(command.env("TILLER_FAULT", fault).spawn().unwrap())
}

fn id(stage: &Stage) -> String {
    stage.ids()[0].clone()
}

fn records(stage: &Stage) -> Vec<Record> {
    transfer::read(&stage.ask(&["export", &id(stage)]).out).unwrap().records
}

fn folded(stage: &Stage) -> Run {
    Run::fold(&RunId::try_from(id(stage)).unwrap(), &records(stage)).unwrap()
}

fn read(stage: &Stage, name: &str) -> String {
    fs::read_to_string(stage.path("work").join(name)).unwrap()
}

/// How often calls that write files were started.
fn starts(stage: &Stage) -> usize {
    records(stage).iter().filter(|record| matches!(record.event, Event::ToolCallStarted { .. })).count()
}

/// A run that is killed around its only file write; the file as it is found; and what going on with it leads to.
fn killed_write(fault: &str, found: Option<&str>) -> (Stage, Said) {
    let stage = Stage::new();
    stage.write("work/f", "old\n");
    let script = script(3, 20, |n| match n {
        2 => write_file("f", "new\\n"),
        3 => shell("true"),
        _ => String::new(),
    });
    assert_eq!(start(&stage, &script, fault).code, -9);
    if let Some(found) = found {
        stage.write("work/f", found);
    }
    let went_on = stage.ask(&["resume", &id(&stage), "--plain"]);
    (stage, went_on)
}

#[test]
fn s_25_a_killed_write_that_was_done_is_found_done() {
    let (stage, went_on) = killed_write("tool:after:1", None);
    went_on.check(10, &[]);
    let found = records(&stage).into_iter().any(|record| {
        matches!(record.event, Event::ToolCallFinished { outcome, .. }
            if outcome.kind == OutcomeKind::Done && outcome.text.contains("the file was found as it was to become"))
    });
    assert!(found);
    assert_eq!((read(&stage, "f").as_str(), starts(&stage)), ("new\n", 1));
}

#[test]
fn s_25_a_killed_write_that_was_not_done_is_done_once() {
    let (stage, went_on) = killed_write("tool:before:1", None);
    went_on.check(10, &["Replaced the content of f"]);
    assert_eq!((read(&stage, "f").as_str(), starts(&stage)), ("new\n", 2));
    let written: Vec<_> = files(&stage.path("work")).into_iter().map(|(path, _)| path).collect();
    assert_eq!(written, [stage.path("work").join("f")]);
}

#[test]
fn s_25_a_killed_write_that_left_something_else_is_asked_about() {
    let (stage, went_on) = killed_write("tool:after:1", Some("third\n"));
    went_on.check(14, &["parked (outcome unknown)"]);
    assert_eq!((read(&stage, "f").as_str(), starts(&stage)), ("third\n", 1));
    let call = stage.show()["waiting"][0]["call"].as_str().unwrap().to_string();
    stage.ask(&["resolve", &id(&stage), &call, "skip"]).check(0, &["recorded"]);
    stage.ask(&["resume", &id(&stage), "--plain"]).check(10, &[]);
    assert_eq!((read(&stage, "f").as_str(), starts(&stage)), ("third\n", 1));
}

/// Effects at 18, 22 and 25, a summary at 20, a question at 26.
fn long_run() -> Stage {
    let stage = Stage::new();
    stage.write("work/a", "old a\n");
    stage.write("work/c", "old c\n");
    let script = script(27, 200, |n| match n {
        18 => write_file("a", "new a\\n"),
        22 => write_file("dir/b", "new b\\n"),
        25 => edit_file("c", "old", "new"),
        26 => shell("true"),
        _ => String::new(),
    });
    start(&stage, &script, "").check(10, &["asked to summarise the conversation", "waiting for approval"]);
    stage
}

#[test]
fn s_55_going_back_over_a_summary() {
    let stage = long_run();
    let before = folded(&stage);
    assert_eq!((before.iteration.n, before.context.compacted_at), (26, Some(20)));
    assert_eq!(before.waiting().len(), 1);
    // What the call at 22 left is not there any more: the operator went on with that file.
    stage.write("work/dir/b", "mine\n");
    let told = stage.ask(&["rewind", &id(&stage), "17"]);
    told.check(0, &["[not undone] these happened after it", "is parked (paused)"]);
    let after = folded(&stage);
    // The base is where it was: nothing stands for the beginning of the conversation.
    let upto = lineage::boundary(&records(&stage), 17).unwrap();
    let past: Vec<Record> = records(&stage).into_iter().take_while(|record| record.seq <= upto).collect();
    let past = Run::fold(&after.id, &past).unwrap();
    assert_eq!(after.context, past.context);
    assert!(after.context.compacted.is_none() && after.iteration.n == 17);
    // Nothing waits any more.
    assert!(after.waiting().is_empty());
    stage.ask(&["audit", &id(&stage)]).check(0, &["approval_invalidated", "rewound"]);
    // Three effects, each with what can be done about its file.
    let effects = told.out.lines().filter(|line| line.starts_with("  c") && line.ends_with(": done")).count();
    assert_eq!(effects, 3, "{told}");
    told.check(
        0,
        &[
            "[files] these can be put back as they were; type: tiller rewind",
            " 17 --restore",
            "  c: would be as it was before c",
            "  a: would be as it was before c",
            "[stays] dir/b, written by c",
            "it is not as the call left it",
        ],
    );
    assert_eq!((read(&stage, "a").as_str(), read(&stage, "c").as_str()), ("new a\n", "new c\n"));
    // Money stays as it was.
    assert!(before.pool.spent().0 > 0);
    assert_eq!(after.pool.spent(), before.pool.spent());
    // And what was offered is done.
    let told = stage.ask(&["rewind", &id(&stage), "17", "--restore"]);
    told.check(14, &["[put back] c is as it was before c", "[put back] a is as it was before c", "[stays] dir/b"]);
    // Each of them is named once, and none as not undone that was put back.
    assert!(!told.out.contains("[not undone]") && !told.out.contains("write_file"), "{told}");
    assert_eq!((read(&stage, "a").as_str(), read(&stage, "c").as_str()), ("old a\n", "old c\n"));
    assert_eq!(read(&stage, "dir/b"), "mine\n");
    assert_eq!(folded(&stage).pool.spent(), before.pool.spent());
    // What is shown afterwards does not say of a file that was put back that nothing was undone.
    let shown = stage.ask(&["show", &id(&stage)]);
    shown.check(0, &["which undid nothing but the files that were put back\n", "    its file was put back\n"]);
    assert!(!shown.out.contains("undid none of them"), "{shown}");
    stage.ask(&["audit", &id(&stage)]).check(0, &["restore_started", "restore_finished", "c as before"]);
    stage.ask(&["audit", &id(&stage), "--verify"]).check(0, &["each follows the one before it"]);
    stage.ask(&["resume", &id(&stage), "--plain"]).check(10, &["[iteration 18]"]);
}

/// One file changed twice, one made; then a question.
fn short_run() -> Stage {
    let stage = Stage::new();
    fs::write(stage.write("work/f", ""), b"\xff\0first, in no record").unwrap();
    let script = script(6, 20, |n| match n {
        2 => write_file("f", "second\\n"),
        3 => edit_file("f", "second", "third"),
        4 => write_file("dir/made", "x"),
        5 => shell("true"),
        _ => String::new(),
    });
    start(&stage, &script, "").check(10, &[]);
    stage
}

fn is_first(stage: &Stage) -> bool {
    let made = stage.path("work/dir/made").exists();
    fs::read(stage.path("work/f")).unwrap() == b"\xff\0first, in no record" && !made
}

#[test]
fn whatever_point_a_restore_is_killed_at_the_same_line_finishes_it() {
    // Every restore passes twice: before it is tried, and when it has ended.
    for fault in 1..=7 {
        for side in ["before", "after"] {
            let stage = short_run();
            let mut command = stage.tiller(&["rewind", &id(&stage), "1", "--restore"]);
            let killed = said(command.env("TILLER_FAULT", format!("{side}:C9:{fault}")).spawn().unwrap());
            assert_eq!(killed.code, -9, "{side} {fault}: {killed}");
            stage.ask(&["rewind", &id(&stage), "1", "--restore"]).check(0, &["made", "f is as it was before c"]);
            assert!(is_first(&stage), "{side} {fault}");
            let mut open = Vec::new();
            let mut failures = 0;
            for record in records(&stage) {
                match record.event {
                    Event::RestoreStarted { call, .. } if !open.contains(&call) => open.push(call),
                    Event::RestoreFinished { call, failure, .. } => {
                        open.retain(|one| *one != call);
                        failures += usize::from(failure.is_some());
                    }
                    _ => {}
                }
            }
            assert_eq!((open.len(), failures), (0, 0), "{side} {fault}");
        }
    }
}

#[test]
fn what_was_before_is_in_the_run_s_directory_and_nowhere_else() {
    let stage = short_run();
    let kept = stage.run_dir(&id(&stage)).join("pre-images");
    let hash = sha256_hex(b"\xff\0first, in no record");
    let names: Vec<_> = fs::read_dir(&kept).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert_eq!(fs::read(kept.join(&hash)).unwrap(), b"\xff\0first, in no record");
    assert_eq!(fs::metadata(kept.join(&hash)).unwrap().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(&kept).unwrap().mode() & 0o777, 0o700);
    stage.ask(&["rewind", &id(&stage), "1"]).check(0, &["dir/made: would be removed: it was not there before c"]);
    // In no export, in no audit, in nothing that is shown, and in no other file: also not in a log.
    for words in [["export"].as_slice(), &["audit", "--payloads"], &["show"], &["show", "--json"]] {
        let mut line = vec![words[0]];
        let name = id(&stage);
        line.push(&name);
        line.extend(&words[1..]);
        let told = stage.ask(&line);
        told.check(0, &[]);
        assert!(!told.out.contains("in no record") && !told.err.contains("in no record"), "{line:?}");
    }
    let holds = |bytes: &[u8]| bytes.windows(12).any(|part| part == b"in no record");
    let found: Vec<_> = files(&stage.path("state")).into_iter().filter(|(_, bytes)| holds(bytes)).collect();
    assert_eq!(found.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>(), [kept.join(&hash)]);
    // They go with the run, and nothing else goes with them.
    fs::remove_dir_all(stage.run_dir(&id(&stage))).unwrap();
    assert!(files(&stage.path("state")).iter().all(|(_, bytes)| !holds(bytes)));
    assert!(stage.path("work/f").exists() && stage.ids().is_empty());
}

/// A fork is there whole or not at all, and has no pre-images of its own.
#[test]
fn a_fork_that_is_killed_is_there_whole_or_not_at_all() {
    for (fault, runs) in [("before:C9:1", 1), ("after:C9:1", 2)] {
        let stage = short_run();
        let parent = id(&stage);
        let mut command = stage.tiller(&["fork", &parent, "4"]);
        assert_eq!(said(command.env("TILLER_FAULT", fault).spawn().unwrap()).code, -9, "{fault}");
        assert_eq!(stage.ids().len(), runs, "{fault}");
        let Some(child) = stage.ids().into_iter().find(|one| *one != parent) else { continue };
        stage.ask(&["resume", &child, "--plain"]).check(10, &[]);
        // What came before it is its parent's, and is gone back to there.
        stage
            .ask(&["rewind", &child, "1", "--restore"])
            .check(3, &["after iteration 4; it goes back no further than that; nothing changed"]);
        assert_eq!(read(&stage, "f"), "third\n");
        stage.ask(&["rewind", &parent, "1", "--restore"]).check(0, &["[put back] dir/made is removed", "[put back] f"]);
        assert!(is_first(&stage));
    }
}

/// The fold itself refuses a file put back while the run is not parked, whoever wrote the record.
#[test]
fn a_file_is_put_back_only_while_the_run_is_parked() {
    let stage = short_run();
    let all = records(&stage);
    let write = FileWrite { path: "/f".to_string(), before: None, after: String::new() };
    let one = Restore { call: CallId(1), write, way: Way::Remove };
    let id = RunId::try_from(id(&stage)).unwrap();
    let (mut parked, mut refused) = (0, 0);
    for length in 1..=all.len() {
        let mut run = Run::fold(&id, &all[..length]).unwrap();
        let is_parked = matches!(run.status, Status::Parked(_));
        let now = Now { at: run.at, ..Now::default() };
        match restoring::start(&mut run, &one, &ClientId("test".to_string()), now) {
            Ok(_) => parked += usize::from(is_parked),
            Err(_) => refused += usize::from(!is_parked),
        }
    }
    assert!(parked > 0 && parked + refused == all.len(), "{parked} {refused} {}", all.len());
}

#[test]
fn what_was_not_kept_and_what_was_changed_since_is_said() {
    let stage = short_run();
    fs::remove_dir_all(stage.run_dir(&id(&stage)).join("pre-images")).unwrap();
    stage.write("work/dir/made", "changed");
    let told = stage.ask(&["rewind", &id(&stage), "1", "--restore"]);
    told.check(
        14,
        &[
            "[stays] dir/made, written by c7: it is not as the call left it",
            "[stays] f, written by c5: what it held before was not kept",
        ],
    );
    assert_eq!(read(&stage, "f"), "third\n");
    assert!(!records(&stage).iter().any(|record| matches!(record.event, Event::RestoreStarted { .. })));
}

#[test]
fn a_run_that_went_on_another_way_is_put_back_whole() {
    let stage = short_run();
    let name = id(&stage);
    stage.ask(&["rewind", &name, "3"]).check(0, &["dir/made: would be removed"]);
    stage.ask(&["say", &name, "do it the other way"]).check(0, &[]);
    stage.ask(&["resume", &name, "--plain"]).check(10, &["[you]"]);
    let told = stage.ask(&["rewind", &name, "1", "--restore"]);
    told.check(0, &["[not told again] what you had said after it", "i1 do it the other way"]);
    assert!(is_first(&stage), "{told}");
}
