//! What git shows without naming it: contents of tracked files with sensitive names. With a real git and its own index.

use std::fs;
use std::process::Command;

use crate::lines::stage::Stage;

const SECRET: &str = "KEY=hunter2";

/// The same of files that are named: a name can stand for more in what was than on the disk.
const NAMED: &[&str] = &[
    "git log -p -- src/a.rs",
    "git show -- '[!:]*'",
    "git show --all -- '[!:]*'",
    "git show 'conf/[!:]env'",
    "git diff -- conf",
    "git log -p -- conf",
    "git diff HEAD~1 -- src/a.rs",
    "git diff -U5 HEAD~1 -- src/a.rs src/b.txt",
    "cd src && git diff HEAD~1 -- a.rs",
];

/// Lines that show contents of files which they do not name.
const SHOW: [&str; 31] = [
    "git diff",
    "git diff HEAD",
    "git diff --cached",
    "git diff HEAD~1",
    "git diff HEAD~1 HEAD",
    "git diff --stat -p",
    "git diff --stat -U3",
    "git diff --stat --unified=1",
    "git diff --check",
    "git diff -SKEY --stat",
    "git diff -G KEY --name-only",
    "git diff HEAD~1 -- conf",
    "git diff HEAD~1 -- '*'",
    "git diff HEAD~1 -- src/a.rs .",
    "git diff HEAD~1 src/a.rs conf",
    "git show",
    "git show HEAD",
    "git show --stat HEAD",
    "git show HEAD:src/a.rs HEAD",
    "git show HEAD:src/a.rs..HEAD",
    "git show 'HEAD^{/one:two}'",
    "git log -p",
    "git log -u",
    "git log -U1",
    "git log --patch --stat",
    "git log --cc",
    "git log -c",
    "git log -m",
    "git log --oneline -S KEY",
    "git log --oneline -GKEY",
    "git status -v",
];
/// Lines that do not.
const HIDE: [&str; 19] = [
    "git status",
    "git status -sb",
    "git ls-files",
    "git ls-files -s",
    "git log",
    "git log --oneline -5",
    "git log --stat",
    "git log --name-status",
    "git branch -a",
    "git branch -vv",
    "git rev-parse HEAD",
    "git diff --stat",
    "git diff --name-only HEAD~1",
    "git diff --quiet",
    "git diff -s",
    "git diff --numstat HEAD~1 HEAD",
    "git show HEAD:src/a.rs",
    "git show HEAD:src",
    "git blame src/a.rs",
];

fn git(stage: &Stage, words: &str) {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]).args(words.split(' '));
    git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").env_remove("GIT_DIR");
    let output = git.current_dir(&stage.workspace).output().unwrap();
    assert!(output.status.success(), "git {words}: {output:?}");
}

/// A repository in which a file of this name was changed and committed, and changed once more.
fn repository(name: &str) -> Stage {
    let stage = Stage::new();
    fs::remove_dir_all(stage.workspace.join(".git")).unwrap();
    git(&stage, "init -q");
    for text in ["KEY=old\n", &format!("{SECRET}\n"), &format!("{SECRET}\nMORE=1 \n")] {
        stage.write(name, text);
        stage.write("src/a.rs", text.to_lowercase().as_str());
        if !text.contains("MORE") {
            git(&stage, "add .");
            git(&stage, "commit -q -m one:two");
        }
    }
    stage
}

#[test]
fn what_git_may_show_of_a_secret_is_asked_about() {
    let stage = repository("conf/.env");
    let reason = "may show contents of the repository, and it tracks conf/.env, a sensitive name (environment files hold \
                  keys)";
    for line in SHOW.iter().chain(NAMED) {
        let told = stage.judged(line).err().unwrap_or_default();
        assert!(told.ends_with(reason), "{line}: {told}");
    }
    for line in HIDE {
        assert_eq!(stage.judged(line), Ok(()), "{line}");
        let output = stage.run(line);
        assert!(!String::from_utf8_lossy(&output.stdout).contains(SECRET), "{line}: {output:?}");
    }
    // By its own name it was asked about before, however the revision is written.
    for line in [
        "git show HEAD:conf/.env",
        "git show 'HEAD^{/one:two}:conf/.env'",
        "git show 'HEAD@{12:00}:conf/.env'",
        "git blame conf/.env",
        "git diff -- conf/.env",
        "cd conf && git show HEAD:./.env",
    ] {
        assert!(stage.judged(line).is_err_and(|why| why.contains("has a sensitive name")), "{line}");
    }
}

#[test]
fn without_a_secret_the_same_lines_happen_and_would_have_shown_it() {
    let stage = repository("conf/plain");
    let mut shown = 0;
    for line in SHOW {
        assert_eq!(stage.judged(line), Ok(()), "{line}");
        shown += usize::from(String::from_utf8_lossy(&stage.run(line).stdout).contains("KEY="));
    }
    assert!(shown >= 18, "{shown}");
}

#[test]
fn an_index_that_is_not_understood_counts_as_one_with_a_secret() {
    let stage = repository("conf/plain");
    let asked = |stage: &Stage| {
        assert_eq!(stage.judged("git diff --stat"), Ok(()));
        stage.judged("git diff").is_err_and(|why| why.contains("what it tracks can't be told"))
    };
    assert!(!asked(&stage));
    git(&stage, "update-index --index-version 4");
    assert!(asked(&stage), "version 4");
    git(&stage, "update-index --index-version 2");
    assert!(!asked(&stage));
    git(&stage, "update-index --split-index");
    assert!(asked(&stage), "split");
    git(&stage, "update-index --no-split-index");
    assert!(!asked(&stage));
    // A flag that makes it one of version 3.
    stage.write("later", "x");
    git(&stage, "add -N later");
    let index = stage.workspace.join(".git/index");
    assert_eq!(fs::read(&index).unwrap()[7], 3);
    assert!(!asked(&stage));
    let whole = fs::read(&index).unwrap();
    fs::write(&index, &whole[..whole.len() / 2]).unwrap();
    assert!(asked(&stage), "cut off");
    fs::rename(&index, stage.workspace.join("index")).unwrap();
    std::os::unix::fs::symlink("../index", &index).unwrap();
    assert!(asked(&stage), "a link");
}

/// Outside of its repository git compares what lies on the disk, folders down to the last file.
#[test]
fn what_lies_beside_a_repository_is_not_compared_unasked() {
    let stage = Stage::new();
    stage.write("a/.env", SECRET);
    stage.write("b/.env", "");
    stage.write("sub/x", "");
    fs::rename(stage.workspace.join(".git"), stage.workspace.join("sub/.git")).unwrap();
    let line = "cd sub && git diff ../a ../b";
    assert!(String::from_utf8_lossy(&stage.run(line).stdout).contains(SECRET), "the control");
    assert!(stage.judged(line).is_err());
    assert_eq!(stage.judged("cd sub && git diff x"), Ok(()));
    // A word that is called like the program is no repository.
    fs::rename(stage.workspace.join("sub/.git"), stage.workspace.join("elsewhere")).unwrap();
    stage.write("sub/.git", "gitdir: ../elsewhere\n");
    assert!(stage.judged("cd sub && git status git").is_err());
}
