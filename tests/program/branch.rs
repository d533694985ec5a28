//! The real program: taking up again, going back, branching off.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::program::stage::files;
use crate::real::Stage;

/// A rehearsal that stands at its first decision, some iterations on.
fn parked() -> (Stage, String) {
    let stage = Stage::new();
    stage.ask(&["rehearse", "--plain", "--script", &stage.fast_rehearsal()]).check(10, &["[parked]"]);
    let id = stage.ids()[0].clone();
    (stage, id)
}

/// Goes on with a run, allowing what waits, until it completes.
fn complete(stage: &Stage, id: &str) {
    for _ in 0..40 {
        let told = stage.ask(&["show", id, "--json"]);
        let shown: serde_json::Value = serde_json::from_str(&told.out).unwrap();
        if shown.pointer("/summary/status/completed").is_some() {
            return;
        }
        for one in shown["waiting"].as_array().unwrap() {
            match one["digest"].as_str() {
                Some(digest) => {
                    stage.ask(&["approve", id, one["call"].as_str().unwrap(), digest]).check(0, &["recorded"]);
                }
                None => stage.ask(&["answer", id, "as you think best"]).check(0, &["recorded"]),
            }
        }
        stage.ask(&["resume", id, "--plain"]);
    }
    panic!("{id} does not complete: {}", stage.ask(&["show", id]));
}

fn contents(dir: PathBuf) -> BTreeMap<PathBuf, Vec<u8>> {
    files(&dir).into_iter().collect()
}

#[test]
fn a_cancelled_run_is_taken_up_again_and_completes() {
    let (stage, id) = parked();
    stage.ask(&["retry", &id]).check(3, &["the run has not ended: it is parked", "there is nothing to retry"]);
    stage.ask(&["cancel", &id]).check(0, &["is cancelled"]);
    stage
        .ask(&["say", &id, "go on"])
        .check(3, &["the run has ended (cancelled)", &format!("`tiller retry {}`", &id[..6])]);
    stage.ask(&["retry", &id]).check(0, &["attempt 2", "is parked (paused)", "tiller resume"]);
    complete(&stage, &id);
    stage
        .ask(&["retry", &id])
        .check(3, &["it is never opened again", &format!("tiller fork {} --goal TEXT", &id[..6])]);
}

#[test]
fn a_run_goes_back_and_goes_on_from_there() {
    let (stage, id) = parked();
    stage.ask(&["rewind", &id, "abc"]).check(2, &["iterations are numbered 1, 2"]);
    stage.ask(&["rewind", &id, "99"]).check(3, &["iteration 99 is not a closed one of this run; nothing changed"]);
    let told = stage.ask(&["rewind", &id, "1"]);
    told.check(0, &["is back at the end of iteration 1", "hidden, not removed", "is parked (paused)"]);
    assert!(!told.out.contains("approve"), "{told}");
    stage.ask(&["show", &id]).check(0, &["parked", "iteration 1"]);
    stage.ask(&["audit", &id]).check(0, &["rewound", "approval_invalidated"]);
    complete(&stage, &id);
    stage.ask(&["audit", &id, "--verify"]).check(0, &["each follows the one before it"]);
    stage.ask(&["rewind", &id, "1"]).check(3, &["it is never opened again"]);
}

#[test]
fn what_happened_after_the_place_is_listed() {
    let (stage, id) = parked();
    complete(&stage, &id);
    let export = stage.ask(&["export", &id]).out;
    assert!(export.contains("\"type\":\"tool_call_started\""));
    // The same run, cut off before its end, as a crash would have left it.
    let mut lines: Vec<&str> = export.lines().collect();
    lines.truncate(lines.len() - 4);
    let survey = tiller::store::transfer::write(
        &tiller::domain::id::RunId::try_from(id.clone()).unwrap(),
        &lines[1..].iter().map(|line| line.to_string()).collect::<Vec<_>>(),
    );
    let file = stage.write("cut.jsonl", &survey.unwrap()).display().to_string();
    let told = stage.ask(&["import", &file, "--as-new"]);
    told.check(0, &["imported", "is parked (interrupted) · "]);
    let other = stage.ids().into_iter().find(|one| *one != id).unwrap();
    // Nobody drives it, and nothing says that it runs.
    let shown = stage.ask(&["show", &other]);
    shown.check(0, &["[parked] interrupted\n", "\n  no process drives it; its last record is of "]);
    stage.ask(&["runs"]).check(0, &["parked: interrupted (imported rehearsal, can't go on)"]);
    stage.ask(&["show", &other, "--json"]).check(0, &["\"further\":[]", "\"reason\":\"interrupted\",\"remedy\":null"]);
    assert!(!shown.out.contains("running"), "{shown}");
    let told = stage.ask(&["rewind", &other, "2"]);
    told.check(0, &["[not undone] these happened after it", "write_file", "NOTICE.txt"]);
    // What was hidden is still shown, once, and as what it is.
    stage.ask(&["rewind", &other, "1"]).check(0, &["is back at the end of iteration 1"]);
    let shown = stage.ask(&["show", &other]).out;
    let place =
        shown.find("[deeds] before it went back to the end of iteration 2, which undid none of them\n").unwrap();
    let deeds = &shown[place..];
    assert!(deeds.contains(" write_file ") && deeds.matches("NOTICE.txt").count() == 1, "{shown}");
    assert!(!shown.contains("[deeds] calls that could change something"), "{shown}");
}

/// What is lost of a damaged run is not what it never had.
#[test]
fn a_run_of_which_nothing_can_be_read_is_no_young_one() {
    let (stage, id) = parked();
    std::fs::remove_file(stage.run_dir(&id).join("store/db")).unwrap();
    let forked = stage.ask(&["fork", &id]);
    forked.check(20, &["is damaged: no record of it can be read", "nothing was branched off", "`tiller repair"]);
    assert!(!forked.err.contains("no iteration of this run is closed"), "{forked}");
}

/// A completed run is not gone back in, but branched off from; what it did since the place is told.
fn a_fork_goes_back_to_its_beginning_only(stage: &Stage, child: &str, parent: &str) {
    let told = stage.ask(&["fork", child, "2"]);
    told.check(0, &["[not undone] these happened after it", "NOTICE.txt"]);
    let grandchild = told.out.split_whitespace().nth(1).unwrap().to_string();
    let why = "iteration 1 belongs to run";
    stage.ask(&["fork", &grandchild, "1"]).check(3, &[why, "branched off after iteration 2", "nothing changed"]);
    stage.ask(&["cancel", &grandchild]).check(0, &["recorded"]);
    let told = stage.ask(&["rewind", &grandchild, "1"]);
    told.check(3, &[why, &format!("go back in run {}", &child[..5]), "or branch off from it"]);
    assert!(!told.err.contains(&parent[..6]), "{told}");
    std::fs::remove_dir_all(stage.run_dir(&grandchild)).unwrap();
}

#[test]
fn s_66_a_fork_and_its_parent_go_on_apart() {
    let (stage, parent) = parked();
    let before = contents(stage.run_dir(&parent));
    let told = stage.ask(&["fork", &parent, "1"]);
    told.check(
        0,
        &[
            "branches off from run",
            "after its iteration 1",
            "is queued",
            "(trust is ask)",
            "It begins with a copy of what came up to the end of that iteration.",
            "nothing is allowed in advance",
            "Nothing that came after it changed anything.",
        ],
    );
    assert_eq!(contents(stage.run_dir(&parent)), before, "the parent was touched");
    let child = stage.ids().into_iter().find(|id| *id != parent).unwrap();
    let shown = stage.ask(&["show", &child]);
    shown.check(0, &["[fork]", &parent]);
    // A fresh fork runs by itself, and so nothing of its resume is refused.
    let resumed = stage.ask(&["resume", &child, "--plain"]);
    resumed.check(10, &["[running]"]);
    assert!(!resumed.out.contains("[refused]"), "{resumed}");
    complete(&stage, &child);
    assert_eq!(contents(stage.run_dir(&parent)), before, "the parent was touched");
    a_fork_goes_back_to_its_beginning_only(&stage, &child, &parent);
    complete(&stage, &parent);
    // Each has a folder of its own, and its own money.
    assert!(stage.run_dir(&child).join("workspace/NOTICE.txt").exists());
    assert!(stage.run_dir(&parent).join("workspace/NOTICE.txt").exists());
    let spent = |id: &str| -> u64 {
        let lines = stage.ask(&["audit", id, "--json"]).out;
        let after = lines.lines().skip_while(|line| *id == *child && !line.contains("\"action\":\"forked\""));
        after.filter_map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["cost_micros"].as_u64()).sum()
    };
    for run in stage.runs() {
        let id = run.pointer("/summary/id").unwrap().as_str().unwrap();
        assert_eq!(run.pointer("/summary/spent").unwrap().as_u64(), Some(spent(id)), "{id}");
    }
    // The child does not need its parent.
    std::fs::remove_dir_all(stage.run_dir(&parent)).unwrap();
    stage.ask(&["show", &child]).check(0, &["completed"]);
    stage.ask(&["fork", &child, "--goal", "now the tests"]).check(0, &["is queued"]);
    let goals: Vec<String> = stage.runs().iter().map(|run| run.pointer("/summary/goal").unwrap().to_string()).collect();
    assert!(goals.contains(&"\"now the tests\"".to_string()), "{goals:?}");
}
