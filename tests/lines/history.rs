//! What git shows without naming it: contents of tracked files with sensitive names. With a real git and its own index.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::process::Output;

use crate::lines::stage::OTHER_OWNER;
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
const SHOW: [&str; 35] = [
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
    "git show HEAD:src/a.rs --all",
    "git show --branches HEAD:src/a.rs",
    "git show HEAD:src/a.rs --tags",
    "git show HEAD:src/a.rs --remotes",
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

fn shows(output: &Output) -> bool {
    holds(output, SECRET)
}

fn holds(output: &Output, text: &str) -> bool {
    String::from_utf8_lossy(&output.stdout).contains(text)
}

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
    // Without it git might look into submodules that nobody knows of.
    stage.write(".gitmodules", "");
    assert!(!asked(&stage));
    git(&stage, "update-index --index-version 4");
    assert!(!asked(&stage), "version 4");
    git(&stage, "update-index --index-version 2");
    assert!(!asked(&stage));
    git(&stage, "update-index --split-index");
    assert!(asked(&stage), "split");
    fs::remove_file(stage.workspace.join(".gitmodules")).unwrap();
    for line in ["git status", "git diff --stat"] {
        assert!(stage.judged(line).is_err_and(|why| why.contains("it may have submodules")), "{line}");
    }
    stage.write(".gitmodules", "");
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
    symlink("../index", &index).unwrap();
    assert!(stage.judged("git diff").is_err_and(|why| why.contains("its index is a link")));
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
    assert!(shows(&stage.bash(line)), "the control");
    assert!(stage.judged(line).is_err());
    assert_eq!(stage.judged("cd sub && git diff x"), Ok(()));
    // A word that is called like the program is no repository.
    fs::rename(stage.workspace.join("sub/.git"), stage.workspace.join("elsewhere")).unwrap();
    stage.write("sub/.git", "gitdir: ../elsewhere\n");
    assert!(stage.judged("cd sub && git status git").is_err());
}

/// Makes a repository one that git does not use.
type Spoil = fn(&Path);

/// Where git does not take a repository for its own, it compares what lies on the disk, tracked or not. That of another
/// user it would refuse, too; all lines here run as if it were one.
#[test]
fn what_git_does_not_track_is_not_compared_unasked() {
    let spoil: [(&str, Spoil); 6] = [
        ("nothing", |_| {}),
        ("version", |git| set(git, "[core]\n\trepositoryformatversion = 99\n")),
        ("extension", |git| set(git, "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tzzz = 1\n")),
        ("bare", |git| set(git, "[core]\n\tbare = true\n")),
        ("configuration", |git| set(git, "[\n")),
        ("HEAD", |git| fs::write(git.join("HEAD"), "garbage\n").unwrap()),
    ];
    let lines =
        ["git diff empty .", "git diff a b", "git diff --no-color a b", "git diff a/x b", "cd a && git diff . ../b"];
    for (name, spoil) in spoil {
        let stage = repository("plain");
        stage.write("a/.env", "UNTRACKED");
        stage.write("a/x", "1");
        stage.write("b/y", "1");
        stage.write("empty/e", "");
        spoil(&stage.workspace.join(".git"));
        let is_used = matches!(name, "nothing" | "bare");
        for line in lines {
            let control = stage.bash(&format!("export {OTHER_OWNER}=1; {line}"));
            let is_shown = holds(&control, "UNTRACKED") || line.contains("a/x") || name == "configuration";
            assert!(is_shown, "the control: {name}: {line}: {control:?}");
            // What the configuration says was asked about before anything is run.
            let is_asked = matches!(name, "extension" | "configuration");
            assert_eq!(stage.judged(line).is_err(), is_asked, "{name}: {line}");
            let output = stage.run(line);
            assert!(!holds(&output, "UNTRACKED") && output.status.success() == is_used, "{name}: {line}: {output:?}");
        }
        let output = stage.run("git status --short plain");
        assert_eq!(output.status.success(), is_used, "{name}: {output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), if is_used { " M plain\n" } else { "" }, "{name}");
    }
}

fn set(git: &Path, config: &str) {
    fs::write(git.join("config"), config).unwrap();
}

/// Git goes up from `link/..` to the folder of the link, and the system to that where the link leads.
#[test]
fn a_name_that_leaves_the_repository_for_git_only_is_asked_about() {
    let stage = repository("plain");
    stage.write("deep/er/x", "");
    stage.write("a/.env", SECRET);
    symlink("deep/er", stage.workspace.join("link")).unwrap();
    for line in ["git diff link/../../a b.txt", "git diff link/../../a link/../../src"] {
        stage.write("b.txt", "");
        assert!(stage.judged(line).is_err(), "{line}");
    }
    assert!(shows(&stage.bash("git diff link/../../a link/../../src")), "the control");
    assert_eq!(stage.judged("git diff link/x src/../plain"), Ok(()));
    symlink("deep/er", stage.workspace.join("in")).unwrap();
    assert_eq!(stage.judged("cd in && git diff ../../plain"), Ok(()));
}

/// What is judged is what git uses, also where it would pass it by and go on to the repository around it.
#[test]
fn a_broken_repository_does_not_hide_the_one_around_it() {
    let breaks = [
        "true",
        "echo garbage > .git/HEAD",
        ": > .git/HEAD",
        "echo 'ref: foo/bar' > .git/HEAD",
        "printf 'ref:refs/heads/x' > .git/HEAD",
        "printf 'ref:\\t\\trefs/heads/x\\n' > .git/HEAD",
        "echo 'ref: refsX' > .git/HEAD",
        "printf %039d 1 > .git/HEAD",
        "printf %040dzz 1 > .git/HEAD",
        "printf %064d 1 > .git/HEAD",
        "echo ABCDEFABCDEFABCDEFABCDEFABCDEFABCDEFABCD > .git/HEAD",
        "(printf 'ref: refs/heads/'; head -c 5000 /dev/zero | tr '\\0' a) > .git/HEAD",
        "(printf ref:; head -c 300 /dev/zero | tr '\\0' ' '; echo refs/heads/x) > .git/HEAD",
        "printf 'ref: \\0refs/heads/x\\n' > .git/HEAD",
        "printf 'ref: refs/\\0\\n' > .git/HEAD",
        "printf ' ref: refs/heads/x\\n' > .git/HEAD",
        "rm -rf .git/objects",
        "rm -rf .git/objects; touch .git/objects; chmod +x .git/objects",
        "rm -rf .git/objects; touch .git/objects",
        "rm -rf .git/refs",
        "rm -rf .git/refs; touch .git/refs; chmod +x .git/refs",
        "chmod 000 .git/refs",
        "rm .git/HEAD",
        "rm .git/HEAD; mkdir .git/HEAD",
        "rm .git/HEAD; ln -s refs/heads/nowhere .git/HEAD",
        "rm .git/HEAD; ln -s description .git/HEAD",
        "rm .git/config",
        "git config core.repositoryformatversion 99",
        "git config core.repositoryformatversion 1; git config extensions.zzz 1",
        "echo '[' >> .git/config",
        "git config core.bare true",
        "rm -rf .git; mkdir .git",
        "cp .git/index ../keep; rm -rf .git; mkdir .git; mv ../keep .git/index",
    ];
    let stage = repository("conf/.env");
    let (mut unasked, mut leaks) = (0, 0);
    for broken in breaks {
        let made = "rm -rf sub/.git; mkdir -p sub; cd sub; echo a > a.txt; git init -q .; git add a.txt; \
                    git -c user.name=a -c user.email=a commit -qm s; echo b >> a.txt";
        let output = stage.bash(&format!("{made}; {broken}"));
        assert!(output.status.success(), "{broken}: {output:?}");
        for line in ["cd sub && git diff", "cd sub && git diff HEAD", "cd sub && git log -p", "cd sub && git show"] {
            leaks += usize::from(shows(&stage.bash(line)) && stage.judged(line).is_ok());
            if stage.judged(line).is_ok() {
                unasked += 1;
                let output = stage.run(line);
                assert!(!shows(&output), "{broken}: {line}: {output:?}");
            }
        }
    }
    assert!(unasked > 60 && leaks > 10, "the control: {unasked}, {leaks}");
}

/// The system takes no longer paths at once, but whoever goes there step by step can read them.
#[test]
fn what_lies_too_deep_to_be_looked_at_counts_as_secret() {
    let stage = Stage::new();
    let steps = (0..25).map(|_| "d".repeat(200)).collect::<Vec<_>>();
    let deep =
        format!("mkdir deep; cd deep; for each in {}; do mkdir $each; cd $each; done; echo KEY > x", steps.join(" "));
    assert_eq!(stage.judged("grep -r KEY ."), Ok(()));
    assert!(stage.bash(&deep).status.success());
    let control = stage.run("grep -r KEY deep");
    assert!(String::from_utf8_lossy(&control.stdout).contains("KEY"), "the control");
    for line in ["grep -r KEY .", "rg KEY deep"] {
        let why = stage.judged(line).unwrap_err();
        assert!(why.contains("can't be looked at") && why.len() < 300, "{why}");
    }
    assert_eq!(stage.judged("grep -r KEY src"), Ok(()));
}
