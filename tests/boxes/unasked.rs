//! What happens unasked, with the real program: lines of the read-only table and lines of a standing rule run from their
//! words, in a box, without a shell, by programs of the system. What a repository names for its filters, git runs; in the
//! box that leaves no mark.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::process::Stdio;

use tiller::domain::sandbox::Level;

use crate::boxes::stage::levels;
use crate::real::Said;
use crate::real::Stage;
use crate::real::said;
use crate::skip::skip;

/// A repository in which everything that a name could lead to leaves a mark when it is run. What of its configuration makes
/// git's lines be asked about is in `lines/configured.rs`.
fn planted() -> Stage {
    let stage = Stage::new();
    let mark = stage.path("work/MARK");
    for name in ["ls", "head", "git", "cat", "wc", "sort"] {
        let path = stage.write(&format!("work/bin/{name}"), &format!("#!/bin/sh\ntouch {}\n", mark.display()));
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    stage.write("work/src/a.rs", "fn a() {}\nfn b() {}\n");
    let git = |words: &[&str]| {
        let done = Command::new("git").args(words).current_dir(stage.path("work")).env("HOME", "/nowhere").output();
        done.is_ok_and(|output| output.status.success())
    };
    let author = ["-c", "user.name=a", "-c", "user.email=a@b.invalid"];
    assert!(git(&["init", "-q"]) && git(&["add", "src"]), "git is there");
    assert!(git(&[&author[..], &["commit", "-qm", "one"]].concat()));
    let config = fs::read_to_string(stage.path("work/.git/config")).unwrap();
    stage.write("work/.git/config", &format!("{config}\tfsmonitor = bin/git\n\thooksPath = bin\n"));
    stage.write("work/src/a.rs", "fn a() {}\nfn c() {}\n");
    stage
}

/// Every file below a folder with its content.
fn tree(folder: &Path, into: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => tree(&path, into),
            false => drop(into.insert(path.display().to_string(), fs::read(&path).unwrap())),
        }
    }
}

/// Runs the lines one after the other, unattended, in the boxes of this machine; what was said, and the programs that
/// were started meanwhile.
fn watched(stage: &Stage, lines: &[&str]) -> Result<(Said, Vec<String>), String> {
    let mut script =
        "[[step]]\nname = \"plan\"\ntext = \"a plan\"\ncalls = [ { tool = \"update_plan\", args = { todos = [ { id = \
         \"a\", title = \"A\", status = \"done\" } ] } } ]\n"
            .to_string();
    for (number, line) in lines.iter().enumerate() {
        let line = serde_json::to_string(line).unwrap();
        script += &format!(
            "[[step]]\nname = \"s{number}\"\ncalls = [ {{ tool = \"shell\", args = {{ command = {line} }} }} ]\n"
        );
    }
    script += "[[step]]\nname = \"claim\"\ncalls = [ { tool = \"finish\", args = { summary = \"done\" } } ]\n";
    let model = format!("scripted/{}", stage.write("script.toml", &script).display());
    let words = ["run", "look", "--plain", "--model", &model];
    let trace = stage.path("trace");
    let plain = stage.tiller(&words);
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-e", "trace=execve,execveat", "-o"]).arg(&trace).arg("--");
    command.arg(plain.get_program()).args(words).env_clear().envs(stage.environment());
    command.env("TILLER_SANDBOX", "auto").env("PATH", format!("{}:/usr/bin:/bin", stage.path("work/bin").display()));
    command.current_dir(stage.path("work")).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let said = said(command.spawn().map_err(|error| format!("strace can't be run: {error}"))?);
    let trace = fs::read_to_string(&trace).unwrap_or_default();
    // The trial of the boxes has a process of its own to be kept from.
    let is_told = |line: &&str| line.contains("execve") && line.ends_with(" = 0") && !line.contains("\"victim-");
    let started = trace.lines().filter(is_told);
    let programs: Vec<String> = started.filter_map(|line| line.split('"').nth(1)).map(str::to_string).collect();
    if programs.is_empty() {
        return Err(format!("strace can't watch here: {}", said.err));
    }
    Ok((said, programs))
}

fn shells(programs: &[String]) -> Vec<&String> {
    programs.iter().filter(|one| ["sh", "bash", "dash"].contains(&one.rsplit('/').next().unwrap())).collect()
}

#[test]
fn lines_that_only_read_run_from_their_words_and_leave_all_as_it_was() {
    if !levels("what happens unasked").contains(&Level::Full) {
        return skip("what happens unasked: no full box");
    }
    let stage = planted();
    let lines = [
        "ls -la src | head -3",
        "git status --short && git diff && git log --oneline",
        "cat src/a.rs 2>/dev/null | wc -l; grep -rn fn src || echo none",
        "cd src && ls | sort",
    ];
    let mut before = BTreeMap::new();
    tree(&stage.path("work"), &mut before);
    let (told, programs) = match watched(&stage, &lines) {
        Ok(seen) => seen,
        Err(why) => return skip(&why),
    };
    told.check(0, &["[completed]"]);
    assert_eq!(shells(&programs), Vec::<&String>::new());
    let planted = stage.path("work/bin");
    let own: Vec<&String> = programs.iter().filter(|program| Path::new(program).starts_with(&planted)).collect();
    assert!(
        own.is_empty() && programs.iter().any(|program| program.starts_with("/usr") && program.ends_with("/git")),
        "{programs:?}"
    );
    let mut after = BTreeMap::new();
    tree(&stage.path("work"), &mut after);
    assert!(before == after, "the workspace is another");
    let journal = stage.ask(&["export", &stage.ids()[0]]).out;
    assert!(journal.contains(" M src/a.rs") && journal.contains("read-only line"), "{journal}");
    // What only reads is no deed; the audit has it.
    let id = &stage.ids()[0];
    assert!(!stage.ask(&["show", id]).out.contains("[deeds]"));
    stage.ask(&["audit", id]).check(0, &[" · allow · by the read-only table"]);
}

/// The same, by a rule of the operator's; the control is the operator's own leave, which a shell runs.
#[test]
fn what_a_standing_rule_allows_runs_from_its_words_and_stays_in_the_box() {
    if !levels("a standing rule").contains(&Level::Full) {
        return skip("a standing rule: no full box");
    }
    let stage = planted();
    stage.ask(&["rules", "add", "allow", "--", "touch", "made", "../made"]).check(0, &[]);
    let (told, programs) = match watched(&stage, &["touch made ../made"]) {
        Ok(seen) => seen,
        Err(why) => return skip(&why),
    };
    told.check(0, &["[completed]"]);
    assert_eq!(shells(&programs), Vec::<&String>::new());
    assert!(stage.path("work/made").exists() && !stage.path("made").exists());

    let (told, _) = watched(&stage, &["touch more; true $X"]).unwrap();
    told.check(10, &["[parked]"]);
    let id = stage.ids().into_iter().find(|id| stage.ask(&["show", id, "--json"]).out.contains("touch more")).unwrap();
    let shown: serde_json::Value = serde_json::from_str(&stage.ask(&["show", &id, "--json"]).out).unwrap();
    let waits = &shown["waiting"][0];
    let (call, digest) = (waits["call"].as_str().unwrap(), waits["digest"].as_str().unwrap());
    stage.ask(&["approve", &id, call, digest]).check(0, &[]);
    let mut resumed = Command::new("strace");
    let (trace, plain) = (stage.path("trace"), stage.tiller(&["resume", &id, "--plain"]));
    resumed.args(["-f", "-qq", "-e", "trace=execve,execveat", "-o"]).arg(&trace).arg("--").arg(plain.get_program());
    resumed.args(["resume", &id, "--plain"]).env_clear().envs(stage.environment()).env("TILLER_SANDBOX", "auto");
    resumed.current_dir(stage.path("work")).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    said(resumed.spawn().unwrap()).check(0, &["[completed]"]);
    assert!(stage.path("work/more").exists());
    assert!(fs::read_to_string(&trace).unwrap().contains("/bash\""), "a shell ran what the operator allowed");
}
