//! Damaged, locked and shortened files of runs: what can be made anew is, the rest is told, and other runs are open.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::program::scripts::SHORT;
use crate::program::scripts::shell;
use crate::program::stage::files;
use crate::program::stage::is_alive;
use crate::real::Said;
use crate::real::Stage;
use crate::real::ends;
use crate::real::until;

/// Two runs that ended, the one to be spoiled first.
fn two_runs() -> (Stage, String, String) {
    let stage = Stage::new();
    stage.run(SHORT).check(0, &["[completed]"]);
    let first = stage.ids()[0].clone();
    stage.run(SHORT).check(0, &["[completed]"]);
    let second = stage.ids().into_iter().find(|id| *id != first).unwrap();
    (stage, first, second)
}

fn damaged(stage: &Stage) -> Vec<Value> {
    stage.runs().into_iter().filter(|run| run.get("damaged").is_some()).collect()
}

#[test]
fn a_summary_is_made_anew() {
    let (stage, spoiled, _) = two_runs();
    let path = stage.run_dir(&spoiled).join("summary.json");
    let whole = fs::read_to_string(&path).unwrap();
    for text in ["", "{", "\0\0\0\0", "{\"id\":\"another\"}", &"[".repeat(400_000)] {
        fs::write(&path, text).unwrap();
        assert_eq!(stage.ids().len(), 2, "{}", &text[..text.len().min(9)]);
        assert_eq!(fs::read_to_string(&path).unwrap(), whole);
    }
    fs::remove_file(&path).unwrap();
    assert_eq!(stage.ids().len(), 2);
    assert_eq!(fs::read_to_string(&path).unwrap(), whole);
}

#[test]
fn a_pipe_in_the_place_of_a_file_is_not_waited_for() {
    let (stage, spoiled, sound) = two_runs();
    let dir = stage.run_dir(&spoiled);
    fs::remove_file(dir.join("summary.json")).unwrap();
    for name in ["summary.json", "anchor", "draft.json"] {
        let path = dir.join(name);
        let _ = fs::remove_file(&path);
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        stage.ask(&["runs"]);
        stage.ask(&["show", &spoiled]);
        stage.ask(&["show", &sound]).check(0, &[]);
    }
}

/// A list opens no run, and tells what shows without that, though its summary says that all is well.
#[test]
fn damage_that_shows_from_outside_is_listed_before_anybody_opens_the_run() {
    type Spoil = fn(&Path);
    let anchor = "its anchor is missing or can't be read";
    let cases: [(Spoil, &str); 5] = [
        (|dir| fs::remove_dir_all(dir.join("store")).unwrap(), "the file of its database is missing"),
        (|dir| fs::remove_file(dir.join("store/db")).unwrap(), "the file of its database is missing"),
        (|dir| fs::remove_file(dir.join("anchor")).unwrap(), anchor),
        (|dir| fs::write(dir.join("anchor"), [7; 128]).unwrap(), anchor),
        (|dir| fs::create_dir(dir.join("store/snap.FFFF")).unwrap(), "`snap.FFFF` in its store is not a file"),
    ];
    let (stage, spoiled, sound) = two_runs();
    let dir = stage.run_dir(&spoiled);
    let kept = stage.path("kept");
    for (spoil, why) in cases {
        let copied = std::process::Command::new("cp").arg("-a").arg(&dir).arg(&kept).status().unwrap();
        assert!(copied.success());
        spoil(&dir);
        let told = damaged(&stage);
        assert!(told.len() == 1 && told[0]["damaged"] == spoiled.as_str(), "{why}: {told:?}");
        assert!(told[0]["why"].as_str().unwrap().contains(why), "{why}: {told:?}");
        assert!(!dir.join("store.damaged").exists(), "{why}: it was opened");
        assert_eq!(stage.ids(), std::slice::from_ref(&sound));
        fs::remove_dir_all(&dir).unwrap();
        fs::rename(&kept, &dir).unwrap();
    }
    assert_eq!(stage.ids().len(), 2);
}

/// Snapshots are passed over whatever stands in their place, at once: neither waited for nor read as far as they say.
#[test]
fn what_stands_in_the_place_of_snapshots_is_passed_over() {
    let (stage, spoiled, _) = two_runs();
    let dir = stage.run_dir(&spoiled);
    let whole = stage.ask(&["show", &spoiled, "--json"]);
    whole.check(0, &[]);
    for number in 1_000..1_040 {
        fs::File::create(dir.join(format!("snapshot.{number}"))).unwrap().set_len(100_000_000_000).unwrap();
    }
    nix::unistd::mkfifo(&dir.join("snapshot.2000"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    fs::create_dir(dir.join("snapshot.2002")).unwrap();
    let start = std::time::Instant::now();
    let told = stage.ask(&["show", &spoiled, "--json"]);
    told.check(0, &[]);
    assert_eq!(told.out, whole.out);
    // Read, they take minutes in this build.
    assert!(start.elapsed() < crate::real::PATIENCE / 4, "{:?}", start.elapsed());
}

/// Asserts that a spoiled run is told, is opened by no command, and keeps its files, and that the other one opens.
fn check_spoiled(spoil: impl FnOnce(&Path), why: &str) {
    let (stage, spoiled, sound) = two_runs();
    let dir = stage.run_dir(&spoiled);
    spoil(&dir);
    fs::remove_file(dir.join("summary.json")).unwrap();
    let before = files(&dir.join("store"));
    let told = damaged(&stage);
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0]["damaged"], Value::String(spoiled.clone()));
    assert!(told[0]["why"].as_str().unwrap().contains(why), "{told:?}");
    let refused = |told: Said| {
        told.check(20, &[&spoiled, "is damaged", why, "it was not opened and its files are kept as they are in"]);
        assert!(told.err.lines().all(|line| line.starts_with("tiller: ")), "{told}");
        assert!(!told.err.contains("backtrace"), "{told}");
    };
    refused(stage.ask(&["show", &spoiled]));
    refused(stage.ask(&["resume", &spoiled, "--plain"]));
    refused(stage.ask(&["cancel", &spoiled]));
    let kept: Vec<Vec<u8>> = files(&dir).into_iter().map(|(_, bytes)| bytes).collect();
    assert!(before.iter().all(|(_, bytes)| kept.contains(bytes)), "the damaged files were not kept");
    stage.ask(&["show", &sound]).check(0, &["[completed]"]);
    stage.ask(&["runs"]).check(0, &["damaged", why]);
    stage.run(SHORT).check(0, &["[completed]"]);
}

#[test]
fn a_damaged_store_is_told() {
    let spoil = |dir: &Path| {
        let path = dir.join("store/db");
        let mut bytes = fs::read(&path).unwrap();
        bytes.iter_mut().skip(100).take(6_000).for_each(|byte| *byte ^= 0x5a);
        fs::write(&path, bytes).unwrap();
    };
    check_spoiled(spoil, "its database can't be read");
}

#[test]
fn a_store_that_is_no_store_is_told() {
    check_spoiled(|dir| fs::write(dir.join("store/db"), "cut").unwrap(), "its database can't be read");
}

#[test]
fn a_store_that_was_cut_is_told() {
    let spoil = |dir: &Path| {
        let path = dir.join("store/db");
        let bytes = fs::read(&path).unwrap();
        let written = bytes.iter().rposition(|byte| *byte != 0).unwrap();
        fs::write(&path, &bytes[..written / 2]).unwrap();
    };
    check_spoiled(spoil, "but record");
}

#[test]
fn something_else_in_the_place_of_a_file_is_damage() {
    let folder = "the file of its database is a folder";
    check_spoiled(
        |dir| {
            fs::remove_file(dir.join("store/db")).unwrap();
            fs::create_dir(dir.join("store/db")).unwrap();
        },
        folder,
    );
    let anchor = |dir: &Path| {
        fs::remove_file(dir.join("anchor")).unwrap();
        fs::create_dir(dir.join("anchor")).unwrap();
    };
    check_spoiled(anchor, "its anchor is missing or can't be read");
    let (stage, spoiled, _) = two_runs();
    let store = stage.run_dir(&spoiled).join("store");
    fs::remove_dir_all(&store).unwrap();
    fs::write(&store, "").unwrap();
    for words in [&["show", &spoiled][..], &["export", &spoiled], &["remove", &spoiled, "--yes"], &["repair", &spoiled]]
    {
        stage.ask(words).check(20, &["its store is a file, not a folder"]);
    }
}

/// A run whose anchor is gone is told, is mended by the command that is offered, and goes on.
#[test]
fn a_run_without_its_anchor_is_mended() {
    let stage = Stage::new();
    stage.run(&shell("echo once >> traces.txt")).check(10, &[]);
    let id = stage.ids()[0].clone();
    fs::remove_file(stage.run_dir(&id).join("anchor")).unwrap();
    stage.ask(&["resume", &id, "--plain"]).check(20, &["its anchor is missing", "`tiller repair"]);
    let told = stage.ask(&["show", &id]);
    told.check(20, &["its anchor is missing", "only to look at", &format!("tiller repair {}", &id[..6])]);
    stage.ask(&["audit", &id, "--verify"]).check(20, &["its anchor is missing"]);
    let mended = stage.ask(&["repair", &id]);
    mended.check(0, &["has a new anchor", "each follows the one before it", "nobody can tell any more", "is kept in"]);
    stage.ask(&["audit", &id, "--verify"]).check(0, &[]);
    stage.allow();
    stage.ask(&["resume", &id, "--plain"]).check(0, &["[completed]"]);
    assert_eq!(fs::read_to_string(stage.path("work/traces.txt")).unwrap(), "once\n");
    // The list may know that there were more.
    let summary = stage.run_dir(&id).join("summary.json");
    let text = fs::read_to_string(&summary).unwrap();
    let at = text.find("\"seq\":").unwrap() + 6;
    fs::write(&summary, format!("{}9{}", &text[..at], &text[at..])).unwrap();
    fs::remove_file(stage.run_dir(&id).join("anchor")).unwrap();
    stage.ask(&["repair", &id]).check(0, &["there were more: the list knew of record 9"]);
}

/// sled's own snapshots hold nothing that is not in its log; whatever they say, no record may be missing.
#[test]
fn damaged_snapshots_of_the_database_lose_no_record() {
    let (stage, spoiled, _) = two_runs();
    let dir = stage.run_dir(&spoiled);
    let whole = stage.ask(&["show", &spoiled, "--json"]);
    whole.check(0, &[]);
    let sound = files(&dir.join("store"));
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    let (path, bytes) = sound.iter().find(|(path, _)| name(path).starts_with("snap.")).unwrap();
    let mut told = Vec::new();
    for place in (0..bytes.len()).step_by(5) {
        let flipped = || bytes.iter().enumerate().map(|(at, byte)| if at == place { byte ^ 0x55 } else { *byte });
        for spoiled_bytes in [flipped().collect(), bytes[..place].to_vec()] {
            for (path, _) in files(&dir.join("store")) {
                fs::remove_file(path).unwrap();
            }
            sound.iter().for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
            fs::write(path, &spoiled_bytes).unwrap();
            let said = stage.ask(&["show", &spoiled, "--json"]);
            if said.code == 0 {
                assert_eq!(said.out, whole.out, "a snapshot with another byte {place} changes the run");
            } else {
                said.check(20, &["is damaged", "its files are kept as they are in"]);
                let kept = files(&dir);
                assert!(kept.iter().any(|(_, bytes)| *bytes == spoiled_bytes), "the damaged snapshot was not kept");
            }
            told.push(said.code);
            let _ = fs::remove_dir_all(dir.join("store.damaged"));
        }
    }
    println!("{told:?}");
    assert!(told.contains(&20), "no damage was ever noticed");
}

/// A whole store of earlier days beside an anchor of today.
#[test]
fn a_store_that_is_shorter_than_its_anchor_is_told() {
    let stage = Stage::new();
    stage.run(&shell("true")).check(10, &["[parked]"]);
    let id = stage.ids()[0].clone();
    let old = files(&stage.run_dir(&id).join("store"));
    stage.allow();
    stage.ask(&["resume", &id, "--plain"]).check(0, &["[completed]"]);
    let store = stage.run_dir(&id).join("store");
    for (path, _) in files(&store) {
        fs::remove_file(path).unwrap();
    }
    for (path, bytes) in old {
        fs::write(path, bytes).unwrap();
    }
    let why = "is damaged";
    stage.ask(&["show", &id]).check(20, &[why, "it was not opened", "it ends with record"]);
    stage.ask(&["resume", &id, "--plain"]).check(20, &[why]);
    stage.run(SHORT).check(0, &["[completed]"]);
}

#[test]
fn a_run_that_another_process_holds() {
    let stage = Stage::new();
    let marker = format!("sleep 300.1{}", std::process::id());
    stage.run(&shell(&marker)).check(10, &[]);
    let id = stage.ids()[0].clone();
    stage.allow();
    let mut holder = stage.tiller(&["resume", &id, "--json"]).spawn().unwrap();
    until("the call runs", || is_alive(&marker).then_some(()));
    let held = format!("is held by process {}", holder.id());
    for line in [
        &["resume", &id, "--plain"][..],
        &["resume", &id, "--json"],
        &["cancel", &id],
        &["say", &id, "hello"],
        &["raise", &id, "cost", "9"],
        &["approve", &id, "c2", "00000000"],
        &["deny", &id, "c2", "00000000"],
    ] {
        let way = "it was not opened; do it there, or leave there (Ctrl-D on a screen, Ctrl-C where lines are printed)";
        stage.ask(line).check(30, &[&held, way]);
    }
    // To look at it needs nothing of the process that holds it.
    let moment = format!("held by process {}", holder.id());
    let shown = stage.ask(&["show", &id]);
    shown.check(0, &[&moment, "this is a copy of this moment, record", "[running]\n  since"]);
    assert!(!shown.out.contains("no process drives it") && !shown.out.contains("to type"), "{shown}");
    stage.ask(&["show", &id, "--json"]).check(0, &["\"goal\":\"do it\"", "\"hindrance\":\"it is held by process"]);
    for line in [&["audit", &id][..], &["audit", &id, "--json"], &["export", &id]] {
        stage.ask(line).check(0, &["tool_call_started", &moment, "this is a copy of this moment, up to record"]);
    }
    stage.ask(&["audit", &id, "--verify"]).check(0, &["each follows the one before it", &moment]);
    stage.ask(&["runs"]).check(0, &[&format!("held by process {}", holder.id())]);
    // Another run is started beside it.
    stage.ask(&["run", "g", "--plain", "--model", &stage.model(SHORT)]).check(0, &["[completed]"]);
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(holder.id() as i32), nix::sys::signal::Signal::SIGTERM).unwrap();
    assert_eq!(ends(&mut holder), 14);
    assert!(!is_alive(&marker));
    stage.ask(&["cancel", &id]).check(0, &["recorded", "cancelled"]);
}

#[test]
fn two_processes_that_resume_the_same_run() {
    let stage = Stage::new();
    stage.run(&shell("echo once >> traces.txt; sleep 1")).check(10, &[]);
    let id = stage.ids()[0].clone();
    stage.allow();
    let both = [0, 1].map(|_| stage.tiller(&["resume", &id, "--plain"]).spawn().unwrap());
    let mut codes = both.map(|child| crate::real::said(child).code);
    codes.sort_unstable();
    // The later one may come so late that it finds the run completed.
    assert!(codes == [0, 30] || codes == [0, 0], "{codes:?}");
    assert_eq!(fs::read_to_string(stage.path("work/traces.txt")).unwrap(), "once\n");
    assert_eq!(stage.show()["summary"]["status"]["completed"], "accepted_unverified");
}

/// A folder or a pipe in the place of a file that lies beside the journals hangs nothing, and is told by its name where
/// it stands in the way. What is replaced by rename takes the place of a pipe, not that of a folder.
#[test]
fn what_is_no_file_is_told_or_passed_over() {
    let waits = (0, "waiting for approval");
    let no_file = (13, "ledger.jsonl: it is not a file; nothing was recorded; see to that");
    let no_lock = (13, "ledger.lock: it is not a file; nothing was recorded; see to that");
    let no_lines = (14, "removed.jsonl: it is not a file; nothing was recorded; see to that");
    let lost = (20, "its anchor is missing or can't be read");
    for (name, command, folder, pipe) in [
        ("ledger.jsonl", "doctor", no_file, no_file),
        ("ledger.lock", "doctor", no_lock, no_lock),
        ("removed.jsonl", "remove", no_lines, no_lines),
        ("owner.json", "cancel", (14, "owner.json: Is a directory; nothing was recorded"), (0, "is cancelled")),
        ("anchor", "show", lost, lost),
        ("summary.json", "show", waits, waits),
        ("summary.json", "runs", waits, waits),
        ("sinks.json", "show", waits, waits),
        ("draft.json", "show", waits, waits),
    ] {
        for (is_folder, (status, said)) in [(true, folder), (false, pipe)] {
            let stage = Stage::new();
            stage.run(&shell("true")).check(10, &[]);
            let id = stage.ids()[0].clone();
            let is_of_all = name.starts_with("ledger.") || name == "removed.jsonl";
            let dir = if is_of_all { stage.path("state/tiller") } else { stage.run_dir(&id) };
            let path = dir.join(name);
            let _ = fs::remove_file(&path);
            match is_folder {
                true => fs::create_dir(&path).unwrap(),
                false => nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap(),
            }
            let words = match command {
                "doctor" | "runs" => vec![command],
                "remove" => {
                    stage.ask(&["cancel", &id]).check(0, &[]);
                    vec![command, &id, "--yes"]
                }
                _ => vec![command, &id],
            };
            stage.ask(&words).check(status, &[said]);
        }
    }
}
