//! Whose files are whose (docs/SAFETY.md, R34): all of ours is private under any umask, and what others could have written
//! configures nothing. Those who are others are played by a second user, which only root can do.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::fs::chown;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::process::Stdio;

use serde_json::json;

use crate::real::Stage;
use crate::real::said;
use crate::real::until;
use crate::skip::skip;
use crate::trust::world::holds;
use crate::trust::world::script;

/// Nobody, who owns nothing.
const OTHER: u32 = 65534;

fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn look() -> String {
    script(&[("list_dir", json!({ "path": "." }))])
}

/// Everything below a folder that others may enter, read or write.
fn open_to_others(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let facts = entry.path().symlink_metadata().unwrap();
        let wanted = if facts.is_dir() { 0o700 } else { 0o600 };
        if facts.mode() & 0o777 != wanted {
            found.push(format!("{} {:o}", entry.path().display(), facts.mode() & 0o777));
        }
        if facts.is_dir() {
            found.extend(open_to_others(&entry.path()));
        }
    }
    found
}

#[test]
fn all_that_is_written_is_private_under_any_umask() {
    let stage = Stage::new();
    stage.write("work/AGENTS.md", "Run make.\n");
    stage.write("work/notes", "1\n");
    let asks = script(&[("write_file", json!({ "path": "notes", "content": "x" }))]);
    let words = stage.words(&asks);
    let run = |umask: &str, words: &[&str]| {
        let plain = stage.tiller(words);
        let mut under = Command::new("/bin/sh");
        under.args(["-c", &format!("umask {umask}; exec \"$0\" \"$@\"")]).arg(plain.get_program()).args(words);
        under.env_clear().envs(stage.environment()).env("TILLER_LOG", "trace").current_dir(stage.path("work"));
        said(under.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    };
    for umask in ["000", "022"] {
        run(umask, &["trust", "--yes"]).check(0, &[]);
        run(umask, &words.iter().map(String::as_str).collect::<Vec<_>>()).check(10, &[]);
        let id = stage.runs()[0].pointer("/summary/id").unwrap().as_str().unwrap().to_string();
        let waits = stage.ask(&["show", &id, "--json"]).out;
        let waits: serde_json::Value = serde_json::from_str(&waits).unwrap();
        let one = &waits["waiting"][0];
        run(umask, &["approve", &id, one["call"].as_str().unwrap(), one["digest"].as_str().unwrap()]).check(0, &[]);
        run(umask, &["resume", &id, "--plain"]).check(0, &[]);
        let out = stage.path(&format!("out-{umask}")).display().to_string();
        run(umask, &["export", &id, "--out", &out]).check(0, &[]);
        assert_eq!(open_to_others(&stage.path("state")), Vec::<String>::new(), "under {umask}");
        let given = fs::metadata(&out).unwrap().mode() & 0o777;
        assert_eq!(given & 0o177, 0, "{given:o}");
        fs::write(stage.path("work/notes"), "1\n").unwrap();
    }
    // The umask does what it is there for: a plain file is open to all.
    let plain = Command::new("/bin/sh").args(["-c", "umask 000; : > plain"]).current_dir(stage.path("work")).status();
    assert!(plain.unwrap().success());
    assert_eq!(open_to_others(&stage.path("work")).iter().filter(|one| one.ends_with("plain 666")).count(), 1);
}

#[test]
fn what_others_could_have_written_configures_nothing() {
    let stage = Stage::new();
    let config = stage.write("config/tiller/tiller.toml", "[run]\ntrust = \"auto_edit\"\n");
    let folder = config.parent().unwrap().to_path_buf();
    let works = |stage: &Stage| stage.start(&look(), &[]).check(0, &["trust at start: auto_edit"]);
    let refused = |words: &[&str]| {
        let said = stage.start(&look(), &[]);
        assert_eq!(said.code, 13, "{said}");
        said.check(13, words);
        stage.ask(&["doctor"]).check(13, words);
        // To look at runs no configuration is needed.
        stage.ask(&["runs"]).check(0, &[]);
    };
    works(&stage);
    for (place, open, shut) in [(&config, 0o620, 0o600), (&config, 0o602, 0o644), (&folder, 0o770, 0o755)] {
        mode(place, open);
        refused(&["other users can write", "nothing was started", &format!("run `chmod go-w {}`", place.display())]);
        mode(place, shut);
        works(&stage);
    }
    // Behind a link, the file and its folder count as well.
    let dots = stage.write("dots/tiller.toml", "[run]\ntrust = \"auto_edit\"\n");
    fs::remove_file(&config).unwrap();
    symlink(&dots, &config).unwrap();
    works(&stage);
    mode(dots.parent().unwrap(), 0o777);
    refused(&["other users can write", "dots"]);
    mode(dots.parent().unwrap(), 0o755);
    let state = stage.path("state/tiller");
    mode(&state, 0o750);
    stage.start(&look(), &[]).check(14, &["chmod 700"]);
    mode(&state, 0o700);
    mode(&state.join("redaction.key"), 0o644);
    assert_ne!(stage.start(&look(), &[]).code, 0);
    stage.start(&look(), &[]).check(14, &["chmod 600"]);
    mode(&state.join("redaction.key"), 0o600);
    works(&stage);
    if !is_root() {
        return skip("only root can give files to another user");
    }
    for place in [&dots, &folder] {
        chown(place, Some(OTHER), None).unwrap();
        refused(&["belongs to user 65534 and not to you", "run `chown 0 "]);
        chown(place, Some(0), None).unwrap();
    }
    chown(&state, Some(OTHER), None).unwrap();
    stage.start(&look(), &[]).check(14, &["belongs to user 65534 and not to you", "chown"]);
    chown(&state, Some(0), None).unwrap();
    works(&stage);
}

/// Names, owners and times of a folder and all below it.
fn inventory(folder: &Path) -> Vec<(String, u32, u32, i64, u64)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let facts = entry.path().symlink_metadata().unwrap();
        all.push((entry.path().display().to_string(), facts.uid(), facts.mode(), facts.mtime_nsec(), facts.len()));
        if facts.is_dir() {
            all.extend(inventory(&entry.path()));
        }
    }
    all.sort();
    all
}

#[test]
fn what_lies_in_a_shared_folder_is_not_touched() {
    let stage = Stage::new();
    let shared = stage.path("shared");
    fs::create_dir(&shared).unwrap();
    mode(&shared, 0o1777);
    fs::create_dir(shared.join("tiller")).unwrap();
    for name in ["tiller.log", "export.jsonl", "tiller.lock"] {
        symlink(stage.path("work/victim"), shared.join(name)).unwrap();
        fs::write(shared.join("tiller").join(name), "theirs").unwrap();
    }
    if is_root() {
        chown(shared.join("tiller"), Some(OTHER), None).unwrap();
    }
    let before = inventory(&shared);
    let run = |words: &[&str]| said(stage.tiller(words).env("TMPDIR", &shared).spawn().unwrap());
    let words = stage.words(&look());
    run(&words.iter().map(String::as_str).collect::<Vec<_>>()).check(0, &[]);
    let id = stage.ids().remove(0);
    for words in [vec!["show", &id], vec!["export", &id], vec!["audit", &id], vec!["doctor"]] {
        run(&words);
    }
    assert_eq!(inventory(&shared), before);
    assert!(!stage.path("work/victim").exists());
    let out = shared.join("export.jsonl").display().to_string();
    assert_ne!(run(&["export", &id, "--out", &out]).code, 0, "it was exported through a link");
    assert!(!stage.path("work/victim").exists());
    let copied = fs::copy(stage.write("plain", "x"), shared.join("export.jsonl"));
    assert!(copied.is_ok() && stage.path("work/victim").exists(), "a plain write goes through the link");
}

#[test]
fn the_doctor_tells_root() {
    let stage = Stage::new();
    let said = stage.ask(&["doctor"]);
    let wanted = if is_root() { "PARTIAL  user           root: " } else { "OK       user           not root" };
    assert!(said.out.contains(wanted), "{said}");
}

/// A command as the other user, in a folder that is theirs.
fn as_other(stage: &Stage, program: &Path, words: &[&str]) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--"]).arg(program).args(words);
    command.env_clear().envs(stage.environment()).env("OPENAI_API_KEY", KEY).current_dir(stage.path("work"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

const KEY: &str = "sk-test-0123456789abcdef";

/// What the other user can read of a process's environment.
fn environment_of(stage: &Stage, process: u32) -> Vec<u8> {
    let file = format!("/proc/{process}/environ");
    let cat = as_other(stage, Path::new("/bin/cat"), &[&file]).env_remove("OPENAI_API_KEY").output().unwrap();
    cat.stdout
}

#[test]
fn no_other_program_of_the_user_reads_the_keys() {
    if !is_root() {
        return skip("only root can play another user");
    }
    if Command::new("setpriv").arg("--version").output().is_err() {
        return skip("setpriv is missing");
    }
    let stage = Stage::new();
    let program = stage.path("tiller");
    fs::copy(env!("CARGO_BIN_EXE_tiller"), &program).unwrap();
    let slow = look().replacen("text = \"Step.\"", "text = \"Step.\"\nfirst_ms = 60000", 1);
    let words = stage.words(&slow);
    for place in [stage.path(""), stage.path("work"), stage.path("script.toml")] {
        chown(place, Some(OTHER), Some(OTHER)).unwrap();
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    // The key is there to be read, where nothing keeps others out.
    let mut open = as_other(&stage, Path::new("/bin/sleep"), &["60"]).spawn().unwrap();
    until("a process with a key", || holds(&environment_of(&stage, open.id()), KEY.as_bytes()).then_some(()));
    let mut shut = as_other(&stage, &program, &words).spawn().unwrap();
    until("the run is there", || {
        let runs = stage.path("state/tiller/runs");
        fs::read_dir(runs).ok()?.next().is_some().then_some(())
    });
    let limits = fs::read_to_string(format!("/proc/{}/limits", shut.id())).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    let own = fs::read(format!("/proc/{}/environ", shut.id())).unwrap();
    let read = environment_of(&stage, shut.id());
    for child in [&mut open, &mut shut] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert_eq!(core.split_whitespace().skip(4).take(2).collect::<Vec<_>>(), ["0", "0"], "{core}");
    assert!(holds(&own, KEY.as_bytes()), "it had the key");
    assert!(read.is_empty(), "{} bytes of its environment were read", read.len());
}
