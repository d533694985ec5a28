//! Plain lines are run from their words as bash would run them, with the programs of the system only, and git does not
//! run what a repository names.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::process::Stdio;

use tiller::tools::line;
use tiller::tools::pipeline;
use tiller::tools::pipeline::Search;

use crate::lines::stage::Stage;

#[test]
fn a_line_does_what_bash_would_do() {
    let stage = Stage::new();
    for line in [
        "echo a 'b  c' \"d|e\"",
        "echo a | tr a b",
        "sort src/b.txt | uniq -c | sort -rn",
        "false || echo x",
        "true && echo y",
        "false && echo n; echo z",
        "false && echo n || echo m",
        "true || echo n && echo m",
        "false | true",
        "true | false",
        "false",
        "cat missing 2>/dev/null || echo none",
        "ls missing 2>&1 | wc -l",
        "ls src missing 2>/dev/null",
        "ls src >/dev/null",
        "ls missing >/dev/null 2>&1; echo done",
        "ls missing 2>&1 >/dev/null | wc -l",
        "ls missing &>/dev/null",
        "yes | head -2",
        "cat | wc -c",
        "cd src && ls",
        "cd src && pwd && ls | wc -l",
        "grep -q nothing src/b.txt; echo after",
        "no-such-program 2>/dev/null",
        "no-such-program 2>/dev/null | echo a",
        "sed -n '2,$p' src/a.rs",
    ] {
        let (ours, theirs) = (stage.run(line), stage.bash(line));
        let told = |output: &std::process::Output| {
            (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
        };
        assert_eq!(told(&ours), told(&theirs), "{line}: {}", String::from_utf8_lossy(&ours.stderr));
    }
}

/// What stands behind `cd` was judged as what it names in that folder: where the line can't go there, nothing of it runs.
#[test]
fn a_line_ends_where_its_folder_is_not_there() {
    let stage = Stage::new();
    for line in [
        "cd nosuch && true; echo here",
        "cd nosuch && true || echo here",
        "cd src/a.rs && true; cat src/b.txt",
        "cd nosuch && true; grep -r KEY .",
    ] {
        let why = stage.judged(line).unwrap_err();
        assert!(why.ends_with("is no folder"), "{line}: {why}");
        let ours = stage.run(line);
        assert_eq!((ours.status.code(), ours.stdout), (Some(1), Vec::new()), "{line}");
    }
    assert_eq!(String::from_utf8_lossy(&stage.bash("cd nosuch && true; echo here").stdout), "here\n");
}

#[test]
fn no_folder_of_the_workspace_is_searched_for_programs() {
    let stage = Stage::new();
    let mark = stage.workspace.join("MARK");
    stage.write("bin/ls", "#!/bin/sh\ntouch MARK\n");
    fs::set_permissions(stage.workspace.join("bin/ls"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:.:/usr/bin:/bin", stage.workspace.join("bin").display());
    let run = |program: &str, words: Vec<std::ffi::OsString>| {
        let mut command = Command::new(program);
        command.args(words).env("PATH", &path).current_dir(&stage.workspace).stdin(Stdio::null()).output().unwrap();
    };
    run(env!("CARGO_BIN_EXE_tiller"), pipeline::words(&line::read("ls").plain.unwrap(), Search::System, None));
    assert!(!mark.exists());
    run(env!("CARGO_BIN_EXE_tiller"), pipeline::words(&line::read("ls").plain.unwrap(), Search::Own, None));
    assert!(!mark.exists(), "nor by the operator's own search path");
    assert_eq!(stage.run("bin/ls").status.code(), Some(127));
    assert!(!mark.exists());
    run("/bin/bash", vec!["-c".into(), "ls".into()]);
    assert!(mark.exists(), "the control: a shell with this search path runs it");
}

#[test]
fn a_line_does_not_leave_the_workspace() {
    let stage = Stage::new();
    std::os::unix::fs::symlink("/", stage.workspace.join("root")).unwrap();
    for line in ["cd root && ls", "cd .. && ls", "cd / && ls"] {
        let output = stage.run(line);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{line}");
    }
    assert!(!stage.bash("cd root && ls").stdout.is_empty(), "the control");
}

#[test]
fn what_can_not_be_read_is_not_run() {
    for words in [&["--line"][..], &["--line", "{}"], &["--line", "echo a"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_tiller")).arg("guard").args(words).output().unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(125), 0), "{words:?}");
    }
}

#[test]
fn git_runs_nothing_that_a_repository_names() {
    let stage = Stage::new();
    let is_here = Command::new("git").arg("--version").output().is_ok();
    if !is_here {
        return;
    }
    let git = |words: &[&str]| {
        let settings = ["-c", "user.name=a", "-c", "user.email=a@example.invalid"];
        let mut git = Command::new("git");
        git.args(settings).args(words).current_dir(&stage.workspace).stdin(Stdio::null());
        git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").output().unwrap()
    };
    git(&["init", "-q"]);
    git(&["add", "src"]);
    git(&["commit", "-qm", "x"]);
    stage.write("src/b.txt", "other\n");
    let (mark, tool) = (stage.workspace.join("MARK"), stage.workspace.join("tool.sh"));
    stage.write("tool.sh", &format!("#!/bin/sh\ntouch '{}'\n", mark.display()));
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
    let tool = tool.to_str().unwrap();
    for (key, value, line) in [
        ("core.fsmonitor", tool, "git status"),
        ("core.pager", tool, "git -p log"),
        ("core.hooksPath", stage.workspace.to_str().unwrap(), "git status"),
        ("core.sshCommand", tool, "git status"),
    ] {
        git(&["config", key, value]);
        if key == "core.fsmonitor" {
            git(&["status"]);
            assert!(mark.exists(), "the control: {key}");
            fs::remove_file(&mark).unwrap();
        }
        let output = stage.run(line);
        assert_eq!(output.status.code(), Some(0), "{key}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(!mark.exists(), "{key}");
        git(&["config", "--unset", key]);
    }
    let diff = stage.run("git diff");
    assert!(String::from_utf8_lossy(&diff.stdout).contains("+other"), "it still shows what differs");
}
