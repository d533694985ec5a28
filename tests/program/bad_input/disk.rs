//! A disk that is full: before a run, between two commands, and in the middle of a call. What was recorded stays, the
//! sentence says what to do, and after it was done the run goes on.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::program::scripts::SHORT;
use crate::program::scripts::shell;
use crate::program::stage::files;
use crate::real::Stage;
use crate::skip::skip;

/// A small file system of its own.
struct Disk {
    dir: tempfile::TempDir,
}

impl Disk {
    fn mount() -> Option<Disk> {
        let dir = tempfile::tempdir().unwrap();
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=24m,mode=700", "tmpfs"]).arg(dir.path()).output();
        let why = match mounted {
            Ok(output) if output.status.success() => return Some(Disk { dir }),
            Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
            Err(error) => error.to_string(),
        };
        skip(&format!("a small disk can't be mounted (it takes root): {why}"));
        None
    }

    fn stage(&self) -> Stage {
        Stage::in_dir(tempfile::tempdir_in(self.dir.path()).unwrap())
    }

    /// Fills the disk but for so many bytes.
    fn fill(&self, but: u64) {
        let facts = nix::sys::statvfs::statvfs(self.dir.path()).unwrap();
        let free = facts.blocks_available() * facts.fragment_size();
        fs::write(self.filler(), vec![7; usize::try_from(free - but).unwrap()]).unwrap();
    }

    fn free(&self) {
        fs::remove_file(self.filler()).unwrap();
    }

    fn remount(&self, how: &str) {
        let done = Command::new("mount").args(["-o", &format!("remount,{how}")]).arg(self.dir.path()).status();
        assert!(done.unwrap().success());
    }

    fn filler(&self) -> std::path::PathBuf {
        self.dir.path().join("filler")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        unmount(self.dir.path());
    }
}

fn unmount(path: &Path) {
    // Lazily, since a failed test may still hold a file.
    let _ = Command::new("umount").arg("-l").arg(path).output();
}

#[test]
fn too_little_space_to_start() {
    let Some(disk) = Disk::mount() else { return };
    let stage = disk.stage();
    let model = stage.model(SHORT);
    disk.fill(1 << 20);
    let told = stage.ask(&["run", "g", "--plain", "--model", &model]);
    told.check(14, &["MiB are free on the disk and 16 are needed", "nothing was recorded", "free space"]);
    disk.free();
    stage.ask(&["run", "g", "--plain", "--model", &model]).check(0, &["[completed]"]);
    assert_eq!(stage.ids().len(), 1, "a run that was not started is listed");
}

#[test]
fn full_between_two_commands() {
    let Some(disk) = Disk::mount() else { return };
    let stage = disk.stage();
    stage.run(&shell("echo here >> trace.txt")).check(10, &[]);
    let id = stage.ids()[0].clone();
    let shown = stage.show();
    let (call, digest) = (&shown["waiting"][0]["call"], &shown["waiting"][0]["digest"]);
    disk.fill(0);
    let told = stage.ask(&["approve", &id, call.as_str().unwrap(), digest.as_str().unwrap()]);
    let full = [
        "MiB are free on the disk",
        "nothing was recorded; see to that (free space, where there is none), then try again",
    ];
    told.check(14, &full);
    stage.ask(&["resume", &id, "--plain"]).check(14, &full);
    stage.ask(&["runs"]).check(0, &["waiting for approval"]);
    disk.free();
    stage.allow();
    let told = stage.ask(&["resume", &id, "--plain"]);
    assert_eq!(told.code, 0, "{told}");
    assert_eq!(fs::read_to_string(stage.path("work/trace.txt")).unwrap(), "here\n");
}

/// A script that fills the disk by a call, and then says more than fits into what the store has reserved.
fn filling(filler: &str) -> String {
    let script = shell(&format!("echo here >> trace.txt; cat /dev/zero > {filler}"));
    let (before, claim) = script.split_at(script.rfind("[[step]]").unwrap());
    let mut state = 1_u64;
    let mut noise = || -> String {
        (0..40_000)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                char::from(b'a' + (state >> 59) as u8 % 26)
            })
            .collect()
    };
    let mut talk = |step: usize| {
        let todo = format!("{{ id = \"t{step}\", title = \"T{step}\", status = \"done\" }}");
        let plan = format!("{{ tool = \"update_plan\", args = {{ mode = \"patch\", todos = [ {todo} ] }} }}");
        format!("[[step]]\nname = \"t{step}\"\ntext = \"{}\"\ncalls = [ {plan} ]\n", noise())
    };
    let talk: String = (0..20).map(&mut talk).collect();
    format!("{before}{talk}{claim}")
}

#[test]
fn full_in_the_middle() {
    let Some(disk) = Disk::mount() else { return };
    let stage = disk.stage();
    let model = stage.model(&filling(&disk.filler().display().to_string()));
    stage.write(
        "config/tiller/tiller.toml",
        &format!("[models.\"{model}\"]\nwindow = 9000000\n[budget]\ncost = \"unlimited\"\ntokens = \"unlimited\"\n"),
    );
    stage.ask(&["run", "g", "--plain", "--model", &model]).check(10, &["tiller approve"]);
    let id = stage.ids()[0].clone();
    stage.allow();
    let told = stage.ask(&["resume", &id, "--plain"]);
    told.check(14, &["the engine stopped", "free space", "resume"]);
    assert!(!told.err.contains("code: 28"), "{told}");
    stage.ask(&["resume", &id, "--plain"]).check(14, &["MiB are free on the disk", "nothing was recorded"]);
    disk.free();
    // So much talk stalls now and then.
    let goes_on = |how: &[&str]| stage.ask(&[&["resume", &id, "--plain"], how].concat());
    let mut told = goes_on(&[]);
    for _ in 0..9 {
        told = if told.code == 12 { goes_on(&["--grant-replans"]) } else { told };
    }
    told.check(0, &["[completed]"]);
    assert_eq!(fs::read_to_string(stage.path("work/trace.txt")).unwrap(), "here\n", "the call ran once");
}

#[test]
fn a_disk_that_can_only_be_read() {
    let Some(disk) = Disk::mount() else { return };
    let stage = disk.stage();
    stage.run(&shell("echo here >> trace.txt")).check(10, &[]);
    let id = stage.ids()[0].clone();
    let shown = stage.show();
    let (call, digest) = (&shown["waiting"][0]["call"], &shown["waiting"][0]["digest"]);
    let before = files(&stage.run_dir(&id).join("store"));
    let elsewhere = tempfile::tempdir().unwrap();
    let model = format!("scripted/{}", stage.path("script.toml").display());
    disk.remount("ro");
    for words in [
        &["approve", &id, call.as_str().unwrap(), digest.as_str().unwrap()][..],
        &["resume", &id, "--plain"],
        &["cancel", &id],
    ] {
        let told = stage.ask(words);
        told.check(
            14,
            &[
                "Read-only file system",
                "nothing was recorded; see to that (free space, where there is none), then try again",
            ],
        );
    }
    let words = ["run", "g", "--plain", "--model", &model, "--workspace", elsewhere.path().to_str().unwrap()];
    stage.ask(&words).check(14, &["creating run", "Read-only file system", "nothing was recorded"]);
    // To look at it, no place is needed where it lies.
    let copied = ["is shown from a copy", "Read-only file system", "nothing can be recorded in it", "tiller approve"];
    stage.ask(&["show", &id]).check(0, &copied);
    assert_eq!(stage.show()["waiting"], shown["waiting"]);
    stage.ask(&["audit", &id, "--verify"]).check(0, &["each follows the one before it"]);
    let out = elsewhere.path().join("out.jsonl").display().to_string();
    stage.ask(&["export", &id, "--out", &out]).check(0, &["records of run"]);
    assert_eq!(fs::read_to_string(&out).unwrap(), stage.ask(&["export", &id]).out);
    let here = stage.path("work/out.jsonl").display().to_string();
    stage.ask(&["export", &id, "--out", &here]).check(14, &["nothing was exported", "Read-only file system"]);
    stage.ask(&["doctor"]).check(13, &["MISSING  store", "OK       runs"]);
    stage.ask(&["runs"]).check(0, &["waiting for approval"]);
    disk.remount("rw");
    fs::remove_file(stage.run_dir(&id).join("summary.json")).unwrap();
    disk.remount("ro");
    stage.ask(&["runs"]).check(0, &["waiting for approval"]);
    disk.remount("rw");
    assert_eq!(files(&stage.run_dir(&id).join("store")), before);
    stage.allow();
    stage.ask(&["resume", &id, "--plain"]).check(0, &["[completed]"]);
    assert_eq!(fs::read_to_string(stage.path("work/trace.txt")).unwrap(), "here\n");
}

/// A full disk is when runs are removed: it needs no room, neither for a copy nor for the line about it.
#[test]
fn a_full_disk_is_made_room_on() {
    let Some(disk) = Disk::mount() else { return };
    let stage = disk.stage();
    stage.run(SHORT).check(0, &[]);
    stage.run(SHORT).check(0, &[]);
    stage.run(&shell("true")).check(10, &[]);
    let ended = |stage: &Stage| -> Vec<String> {
        let all = stage.runs().into_iter().filter(|run| run.to_string().contains("\"completed\""));
        all.map(|run| run.pointer("/summary/id").unwrap().as_str().unwrap().to_string()).collect()
    };
    let (both, all) = (ended(&stage), stage.ids());
    let parked = all.iter().find(|id| !both.contains(id)).unwrap();
    let lines = || fs::read_to_string(stage.path("state/tiller/removed.jsonl")).unwrap_or_default();
    disk.fill(0);
    stage.ask(&["show", &both[0]]).check(0, &["[completed]"]);
    let out = stage.path("work/out.jsonl");
    let told = stage.ask(&["export", &both[0], "--out", out.to_str().unwrap()]);
    told.check(14, &["can't be written; nothing was exported"]);
    assert!(!out.exists(), "half a journal was left");
    let elsewhere = tempfile::tempdir().unwrap();
    let out = elsewhere.path().join("out.jsonl").display().to_string();
    stage.ask(&["export", &both[0], "--out", &out]).check(0, &[]);
    for words in [&["import", &out, "--as-new"][..], &["fork", &both[0], "--goal", "and now"]] {
        stage.ask(words).check(14, &["creating run", "nothing was recorded; see to that (free space"]);
    }
    let count = fs::read_dir(stage.path("state/tiller/runs")).unwrap().count();
    assert_eq!(count, 3, "a run that was not made was left");
    stage.ask(&["remove", parked, "--yes"]).check(3, &["nothing was removed; end it first"]);
    // The folder for temporary files lies on the full disk as well.
    let mut command = stage.tiller(&["remove", &both[0], "--yes"]);
    crate::real::said(command.env("TMPDIR", stage.path("work")).spawn().unwrap()).check(0, &["is removed"]);
    assert_eq!(lines().matches(&both[0]).count(), 1, "{}", lines());
    // Below what a run needs, and not quite full; another disk has room for a copy.
    let mut command = stage.tiller(&["remove", &both[1], "--yes"]);
    crate::real::said(command.env("TMPDIR", elsewhere.path()).spawn().unwrap()).check(0, &["is removed"]);
    assert_eq!(lines().lines().count(), 2, "{}", lines());
    assert_eq!(stage.ids(), std::slice::from_ref(parked));
    for entry in fs::read_dir("/dev/shm").unwrap().chain(fs::read_dir(elsewhere.path()).unwrap()).map(Result::unwrap) {
        let name = entry.file_name();
        assert!(!name.to_string_lossy().starts_with("store.before."), "a copy was left");
    }
    disk.free();
    stage.allow();
    stage.ask(&["resume", parked, "--plain"]).check(0, &["[completed]"]);
}

/// A folder of a state that may not be written: for whoever is not root, who may write everywhere.
#[test]
fn a_folder_that_can_only_be_read() {
    if nix::unistd::geteuid().is_root() {
        println!("skipped: root may write everywhere; `a_disk_that_can_only_be_read` is the same for root");
        return;
    }
    let stage = Stage::new();
    stage.run(SHORT).check(0, &[]);
    let id = stage.ids()[0].clone();
    let whole = stage.ask(&["export", &id]).out;
    let dirs = [stage.run_dir(&id).join("store"), stage.run_dir(&id), stage.path("state/tiller")];
    let set = |mode: u32| {
        for dir in &dirs {
            fs::set_permissions(dir, fs::Permissions::from_mode(mode)).unwrap();
        }
    };
    set(0o500);
    let told = [stage.ask(&["show", &id]), stage.ask(&["export", &id])];
    set(0o700);
    told[0].check(0, &["is shown from a copy", "[completed]"]);
    told[1].check(0, &[]);
    assert_eq!(told[1].out, whole);
}

/// What is written to a device without room is not all, whatever became of the run.
#[test]
fn output_that_does_not_fit_is_told_by_the_exit_status() {
    let stage = Stage::new();
    let full = || fs::File::options().write(true).open("/dev/full").unwrap();
    let model = stage.model(&shell("true"));
    let told = |words: &[&str]| crate::real::said(stage.tiller(words).stdout(full()).spawn().unwrap());
    let short = ["the output can't be written", "what was printed is not all", "what was recorded is kept"];
    told(&["run", "g", "--json", "--model", &model]).check(14, &short);
    let id = stage.ids()[0].clone();
    for words in [&["export", &id][..], &["audit", &id], &["show", &id], &["runs"]] {
        told(words).check(14, &short);
    }
    stage.ask(&["export", &id, "--out", "/dev/full"]).check(3, &["nothing was exported"]);
}
