//! What git shows because of what a repository says by itself: its own configuration, links among the files of git, its
//! submodules. With a real git, and a secret beside the repository that no line names.

use std::fs;
use std::process::Command;

use crate::lines::stage::Stage;

const SECRET: &str = "hunter2";
/// A filter of the submodule shows what lies beside it. It is asked only where the size is the same.
const FILTER: &str = "echo '*.txt filter=y' > s/.gitattributes; git -C s config filter.y.clean 'cat ../.env >&2; cat'; \
                      echo t > s/s.txt; touch -d 2020-01-01 s/s.txt";
/// Lines that an agent writes all day.
const LINES: [&str; 9] = [
    "git status",
    "git status -v",
    "git diff",
    "git diff --stat",
    "git log -p",
    "git log --oneline",
    "git show",
    "git blame a.txt",
    "git branch -vv",
];

/// A repository with two commits and a change, and a secret that is not tracked.
fn repository() -> Stage {
    let stage = Stage::new();
    fs::remove_dir_all(stage.workspace.join(".git")).unwrap();
    stage.write(".gitattributes", "*.txt diff=x filter=y\n");
    sh(&stage, "git init -q .; echo one > a.txt; git add a.txt .gitattributes");
    sh(&stage, "git commit -qm one; echo two >> a.txt; git commit -qam two; echo end >> a.txt");
    stage.write(".env", &format!("X {SECRET}@x\nPASS={SECRET}\n"));
    stage
}

/// Runs lines by bash, as somebody whose name git knows, and who fetches from folders.
fn sh(stage: &Stage, text: &str) {
    let config = "export GIT_CONFIG_COUNT=4 \
        GIT_CONFIG_KEY_0=user.name GIT_CONFIG_VALUE_0=a GIT_CONFIG_KEY_1=user.email GIT_CONFIG_VALUE_1=a@b \
        GIT_CONFIG_KEY_2=init.defaultBranch GIT_CONFIG_VALUE_2=main \
        GIT_CONFIG_KEY_3=protocol.file.allow GIT_CONFIG_VALUE_3=always";
    let output = stage.bash(&format!("{config}; set -e; {text}"));
    assert!(output.status.success(), "{text}: {output:?}");
}

/// Whether a line, run as if it were allowed unasked, shows the secret.
fn leaks(stage: &Stage, line: &str) -> bool {
    let output = stage.run(line);
    [output.stdout, output.stderr].iter().any(|bytes| String::from_utf8_lossy(bytes).contains(SECRET))
}

/// All lines are asked about, with this reason; and this one would have shown the secret.
fn asked(stage: &Stage, reason: &str, shows: &str) {
    for line in LINES.iter().chain([&shows]) {
        let told = stage.judged(line).expect_err(&format!("{reason}: {line}"));
        assert!(told.contains(reason), "{line}: {told}, not {reason}");
    }
    assert!(leaks(stage, shows), "the control: {shows}: {:?}", stage.run(shows));
}

/// All lines happen, and show no secret.
fn unasked(stage: &Stage, name: &str) {
    for line in LINES {
        assert_eq!(stage.judged(line), Ok(()), "{name}: {line}");
    }
    let line = LINES[..8].join("; ");
    assert!(!leaks(stage, &line), "{name}: {:?}", stage.run(&line));
}

#[test]
fn settings_that_show_a_secret_are_asked_about_by_their_names() {
    for (config, key, shows) in [
        ("[diff \"x\"]\n\ttextconv = cat .env", "diff.*.textconv", "git diff"),
        ("[diff \"x\"]\n\ttextconv = cat .env", "diff.*.textconv", "git blame a.txt"),
        ("[diff \"x\"]\n\ttextconv = cat .env", "diff.*.textconv", "git log -p"),
        ("[diff \"x\"]\n\tcommand = \"sh -c 'cat .env'\"", "diff.*.command", "git diff"),
        ("[diff]\n\texternal = \"sh -c 'cat .env'\"", "diff.external", "git diff"),
        ("[diff] EXTERNAL=cat .env", "diff.external", "git diff"),
        ("[user] name = a \\\n\n[diff]\nexternal = \"sh -c \\\"cat .env\\\"\"", "diff.external", "git diff"),
        ("[filter \"y\"]\n\tclean = \"cat .env >&2; cat\"", "filter.*.clean", "git status"),
        ("[filter.y]\n\tclean = \"cat .env >&2; cat\"", "filter.*.clean", "git diff"),
        ("[filter \"y\"]\n\tprocess = \"cat .env >&2\"", "filter.*.process", "git status"),
        ("[blame]\n\tignoreRevsFile = .env", "blame.ignorerevsfile", "git blame a.txt"),
        ("[blame]\n\tignoreRevsFile = ./.env", "blame.ignorerevsfile", "git blame a.txt"),
        ("[core]\n\tattributesFile = .env", "core.attributesfile", "git diff"),
        ("[include]\n\tpath = ../inc", "include.path", "git diff"),
        ("[includeIf \"gitdir:/\"]\n\tpath = ../inc", "includeif.*.path", "git diff"),
    ] {
        let stage = repository();
        stage.write("inc", "[diff]\n\texternal = \"sh -c 'cat .env'\"\n");
        // The change must not show by the size alone, or the filter is not asked.
        sh(&stage, "git commit -qam three; sed -i s/end/END/ a.txt; touch -d 2020-01-01 .git/index");
        sh(&stage, &format!("cat >> .git/config <<'END'\n{config}\nEND"));
        asked(&stage, &format!("the repository's own configuration says {key}, which may"), shows);
    }
}

/// What git was not seen to show anything by is asked about as well: only what is known to be harmless is not.
#[test]
fn other_settings_are_asked_about() {
    let stage = repository();
    let whole = fs::read_to_string(stage.workspace.join(".git/config")).unwrap();
    for (config, reason) in [
        ("[pager]\n\tlog = cat .env", "says pager.log,"),
        ("[mailmap]\n\tfile = .env", "says mailmap.file,"),
        ("[mailmap]\n\tblob = HEAD:x", "says mailmap.blob,"),
        ("[core]\n\texcludesFile = .env", "says core.excludesfile,"),
        ("[core]\n\tworktree = /etc", "says core.worktree, which may lead to more"),
        ("[core]\n\tnotesRef = x", "says core.notesref,"),
        ("[core]\n\taskPass = ./x", "says core.askpass,"),
        ("[core]\n\tgitProxy = ./x", "says core.gitproxy,"),
        ("[core]\n\talternateRefsCommand = ./x", "says core.alternaterefscommand,"),
        ("[diff]\n\torderFile = .env", "says diff.orderfile,"),
        ("[log]\n\tdiffMerges = remerge", "says log.diffmerges,"),
        ("[merge \"x\"]\n\tdriver = ./x", "says merge.*.driver,"),
        ("[format]\n\tpretty = %G?", "says format.pretty,"),
        ("[pretty]\n\tshort = %G?", "says pretty.short,"),
        ("[gpg \"openpgp\"]\n\tprogram = ./x", "says gpg.*.program,"),
        ("[trace2]\n\tnormalTarget = /tmp/x", "says trace2.normaltarget,"),
        ("[safe]\n\tdirectory = *", "says safe.directory,"),
        ("[attr]\n\ttree = x", "says attr.tree,"),
        ("[remote \"o\"]\n\tvcs = x", "says remote.*.vcs,"),
        ("[remote \"o\"]\n\tuploadpack = ./x", "says remote.*.uploadpack,"),
        ("[credential]\n\thelper = ./x", "says credential.helper,"),
        ("[submodule \"s\"]\n\tignore = none", "says submodule.*.ignore,"),
        ("[submodule \"s\"]\n\tignore = \"di\"rty", "says submodule.*.ignore,"),
        ("[extensions]\n\tobjectFormat = sha256", "says extensions.objectformat, which may lead to more"),
        ("[extensions]\n\trefStorage = reftable", "says extensions.refstorage,"),
        ("[no-such-thing \"\u{1b}[31m secret \"]\n\tname-of-it = 1", "says no-such-thing.*.name-of-it,"),
        ("[blame]\n\tignoreRevsFile = ../x", "says blame.ignorerevsfile,"),
        ("[blame]\n\tignoreRevsFile = /etc/passwd", "says blame.ignorerevsfile,"),
        ("[blame]\n\tignoreRevsFile = ~/x", "says blame.ignorerevsfile,"),
        ("[blame]\n\tignoreRevsFile = link", "says blame.ignorerevsfile,"),
        ("[blame]\n\tignoreRevsFile", "says blame.ignorerevsfile,"),
        ("[core", "configuration, .git/config, can't be read whole"),
        ("[core]\n\teditor = \"vi", "configuration, .git/config, can't be read whole"),
        ("[core]\n\tbare = false\r\0", "configuration, .git/config, can't be read whole"),
    ] {
        sh(&stage, "ln -sf .env link");
        stage.write(".git/config", &format!("{whole}{config}\n"));
        for line in LINES {
            let told = stage.judged(line).expect_err(config);
            assert!(told.contains(reason) && !told.contains('\u{1b}'), "{config}: {line}: {told}");
        }
    }
    // Neither a name that is too long to be said, nor a file that is too long to be read.
    stage.write(".git/config", &format!("{whole}[{}]\na = b\n", "x".repeat(9_000)));
    assert!(stage.judged("git status").is_err_and(|why| why.contains("says xxx") && why.len() < 300));
    stage.write(".git/config", &format!("{whole}{}", "# long\n".repeat(1_000_000)));
    assert!(stage.judged("git status").is_err_and(|why| why.contains("can't be read whole")));
    // That of one folder of work counts, too.
    stage.write(".git/config", &format!("{whole}[extensions]\n\tworktreeConfig = true\n"));
    unasked(&stage, "worktreeConfig");
    stage.write(".git/config.worktree", "[diff]\n\texternal = \"sh -c 'cat .env'\"\n");
    asked(&stage, "says diff.external,", "git diff");
}

/// Repositories as they are: none of what they say is asked about.
#[test]
fn ordinary_repositories_are_not_asked_about() {
    for (name, made) in [
        ("as it was made", "true"),
        ("a clone", "mv .env ..; git commit -qam m; git clone -q . ../c; rm -rf .git; mv ../c/.git .git; mv ../.env ."),
        ("a shallow clone", "git clone -q --depth 1 file://$PWD ../c; rm -rf .git; mv ../c/.git .git"),
        (
            "branches",
            "git branch b; git remote add o ../x; git config branch.b.remote o; \
            git config branch.b.merge refs/heads/b; git config branch.b.vscode-merge-base o/main; git pack-refs --all",
        ),
        (
            "a branch with an odd name",
            "git branch worktree-commondir; git config branch.worktree-x.rebase true; \
            git branch commondir; git branch a/commondir; git config 'branch.[include.remote' .",
        ),
        (
            "a user",
            "git config user.name a; git config user.email a@b; git config user.signingKey x; \
            git config commit.gpgSign true; git config gpg.format ssh; git config commit.template .env",
        ),
        (
            "what lfs leaves",
            "git config lfs.repositoryformatversion 0; git config lfs.https://x/y.access basic; \
            mkdir -p .git/lfs/objects .git/hooks; ln -s ../../a.txt .git/hooks/pre-push",
        ),
        ("hooks and a monitor, which do not run", "git config core.hooksPath .husky; git config core.fsmonitor ./x"),
        ("a folder of work", "git worktree add -q ../w; git branch c; git worktree list"),
        ("few files", "git sparse-checkout set --no-cone a.txt .gitattributes; touch .git/config.worktree"),
        ("an index of version 4", "git config feature.manyFiles true; git update-index --index-version 4"),
        (
            "commits that blame passes over",
            "git rev-parse HEAD~1 > .git-blame-ignore-revs; \
            git config blame.ignoreRevsFile .git-blame-ignore-revs",
        ),
        ("packed", "git gc -q; git commit-graph write --reachable --split; git multi-pack-index write"),
        (
            "other programs",
            "git config gui.wmstate normal; git config alias.st status; git config pull.rebase true; \
            git config alias.log '!cat .env'; git config remote.o.gh-resolved base; git config color.ui always",
        ),
        (
            "a rebase that stands still",
            "git commit -qam m; GIT_SEQUENCE_EDITOR='sed -i s/pick/edit/' git rebase -qi HEAD~1",
        ),
    ] {
        let stage = repository();
        sh(&stage, made);
        unasked(&stage, name);
    }
}

/// By each setting that is not asked about git shows nothing, whatever its value names: all that git knows are tried.
#[test]
fn no_setting_that_is_not_asked_about_shows_a_secret() {
    let stage = repository();
    // As a program it shows the secret, and as a file it is one.
    stage.write("leak", &format!("#!/bin/sh\n: {SECRET} {SECRET}@x\ncat .env >&2\ncat\n"));
    sh(&stage, "chmod +x leak; git branch other; git commit -qam three; sed -i s/end/END/ a.txt");
    let whole = fs::read_to_string(stage.workspace.join(".git/config")).unwrap();
    let known = Command::new("git").args(["help", "--config"]).output().unwrap();
    let known = String::from_utf8(known.stdout).unwrap();
    let line = "git status -v; git diff; git log -p -2; git blame a.txt; git branch -vv";
    let (mut asked, mut tried, mut leaked) = (0, 0, Vec::new());
    let others =
        ["advice", "color", "fsck", "gitcvs", "gitweb", "gui", "http", "imap", "include", "receive", "sendemail"];
    for key in known.lines().filter(|key| !key.contains([' ', '*']) && !key.contains("fsck.")) {
        let Some((section, name)) = key.rsplit_once('.') else { continue };
        let first = section.split('.').next().unwrap_or(section);
        if others.contains(&first) {
            continue;
        }
        // What is there of its kind.
        let part = match first {
            "filter" => "y",
            "branch" => "main",
            "gpg" => "ssh",
            _ => "x",
        };
        let part = if section == first { "" } else { part };
        let header = if part.is_empty() { format!("[{first}]") } else { format!("[{first} \"{part}\"]") };
        stage.write(".git/config", &format!("{whole}{header}\n\t{name} = ./leak\n"));
        let is_asked = stage.judged(line).is_err();
        asked += usize::from(is_asked);
        let is_control = ["diff.<driver>.textconv", "diff.external", "diff.<driver>.command"];
        if is_asked && !is_control.contains(&key) {
            continue;
        }
        tried += 1;
        leaked.extend(leaks(&stage, line).then_some((key, is_asked)));
    }
    // An ordinary file of the workspace may be read unasked, also by git.
    let missed = leaked.iter().filter(|(key, is_asked)| !is_asked && *key != "blame.ignoreRevsFile");
    let missed: Vec<_> = missed.collect();
    assert!(missed.is_empty(), "{missed:?}");
    assert!(leaked.len() == 4 && asked > 100 && tried > 100, "the control: {leaked:?}, {asked}, {tried}");
}

/// Git opens its own files whatever they are, and shows what it does not understand.
#[test]
fn links_among_the_files_of_git_are_asked_about() {
    for (made, reason, shows) in [
        ("ln -s ../../.env .git/info/grafts", "its info/grafts is a link", "git log"),
        ("ln .env .git/info/grafts", "its info/grafts has another name, too", "git log"),
        ("ln -s ../.env .git/shallow", "its shallow is a link", "git status"),
        ("ln -s ../.env .git/packed-refs", "its packed-refs is a link", "git branch"),
        ("ln -s ../../.env .git/info/attributes", "its info/attributes is a link", "git diff"),
        (
            "mkdir .git/rebase-merge; touch .git/rebase-merge/interactive; \
             ln -s ../../.env .git/rebase-merge/git-rebase-todo; echo x > .git/rebase-merge/done",
            "its rebase-merge/git-rebase-todo is a link",
            "git status",
        ),
        ("touch .git/BISECT_LOG; ln -s ../.env .git/BISECT_START", "its BISECT_START is a link", "git status"),
        (
            "git config branch.main.remote e; git config branch.main.merge refs/heads/main; mkdir .git/remotes; \
             (echo URL: x; echo Pull: hunter2:::) > .env; ln -s ../../.env .git/remotes/e",
            "its remotes/e is a link",
            "git status",
        ),
        (
            "mkdir .git/objects/info/commit-graphs; printf 'hunter2-%060d\\n' 1 > .env; \
             ln -s ../../../../.env .git/objects/info/commit-graphs/commit-graph-chain",
            "its objects/info/commit-graphs/commit-graph-chain is a link",
            "git log",
        ),
        (
            "git branch o; git worktree add -q ../w o; rm .git/worktrees/w/gitdir; \
             ln -s ../../../.env .git/worktrees/w/gitdir",
            "its worktrees/w/gitdir is a link",
            "git branch -vv",
        ),
        // The same by a file that names a folder in which the link lies.
        (
            "git branch o; git worktree add -q ../w o; mkdir -p e/refs e/objects; ln -s ../.env e/packed-refs; \
             echo ../../../e > .git/worktrees/w/commondir",
            "its worktrees/w/commondir leads elsewhere",
            "git branch -a",
        ),
    ] {
        let stage = repository();
        sh(&stage, made);
        asked(&stage, &format!("may make git show more than the line names: {reason}"), shows);
    }
    let stage = repository();
    sh(&stage, "ln -s a 'b\u{1b}[31m'; mv b* .git");
    assert!(stage.judged("git log").is_err_and(|why| why.contains("\\u{1b}[31m") && !why.contains('\u{1b}')));
}

/// As `repository`, with a submodule that is there, in a folder of its own or where git keeps it.
fn with_submodule(is_kept_inside: bool) -> Stage {
    let stage = repository();
    let made = match is_kept_inside {
        true => "git submodule -q add file://$PWD/../s s",
        false => "git clone -q ../s s; git submodule -q add ./s s",
    };
    sh(&stage, "git init -q ../s; cd ../s; echo s > s.txt; git add .; git commit -qm s");
    sh(&stage, &format!("{made}; git commit -qm 'with a submodule'; git submodule -q status"));
    stage
}

#[test]
fn ordinary_submodules_are_not_asked_about() {
    for is_kept_inside in [true, false] {
        let stage = with_submodule(is_kept_inside);
        assert_eq!(stage.workspace.join("s/.git").is_dir(), !is_kept_inside);
        unasked(&stage, "a submodule");
        sh(&stage, "echo t > s/s.txt; git -C s config diff.external ./x");
        unasked(&stage, "a changed one");
        // What git is told otherwise, whatever the repository says.
        let looks = "git config diff.ignoreSubmodules none; git config diff.submodule log; \
                     git config status.submoduleSummary true";
        sh(&stage, &format!("{looks}; {FILTER}"));
        unasked(&stage, "one that it wants to look into");
        sh(&stage, "git config -f .gitmodules submodule.s.ignore dirty; git config submodule.s.ignore all");
        unasked(&stage, "one that is not looked into");
        sh(&stage, "rm -rf s; mkdir s");
        unasked(&stage, "one that was not fetched");
    }
}

#[test]
fn what_git_does_in_a_submodule_is_asked_about() {
    for (made, reason) in [
        ("git config submodule.s.ignore none", "own configuration says submodule.*.ignore,"),
        ("git config submodule.s.ignore untracked", "own configuration says submodule.*.ignore,"),
        (
            "git config -f .gitmodules submodule.s.ignore none",
            ".gitmodules says submodule.*.ignore, by which it looks into submodules",
        ),
        (
            "git config -f .gitmodules submodule.s.ignore untracked; git add .gitmodules; rm .gitmodules",
            "it may have submodules, and there is no .gitmodules",
        ),
        (
            "git config -f .gitmodules submodule.s.ignore untracked; git commit -qam x; git rm -q --cached .gitmodules; \
             rm .gitmodules; git update-index --split-index",
            "it may have submodules, and there is no .gitmodules",
        ),
        ("git config -f .gitmodules submodule.s.ignore none; mv .gitmodules g; ln -s g .gitmodules", "can't be read"),
    ] {
        for is_kept_inside in [true, false] {
            let stage = with_submodule(is_kept_inside);
            sh(&stage, &format!("{made}; {FILTER}"));
            asked(&stage, reason, "git status");
        }
    }
    let refs =
        "rm -f s/.git/packed-refs; git -C s checkout -q -B b; rm $(git -C s rev-parse --absolute-git-dir)/refs/heads/b";
    for (made, reason) in [
        ("ln -s ../../.env s/.git/packed-refs", "of the submodule s, its packed-refs is a link"),
        (
            "mkdir -p e/refs e/objects; ln -s ../.env e/packed-refs; echo ../../e > s/.git/commondir",
            "of the submodule s, its commondir leads elsewhere",
        ),
        ("mv s/.git g; ln -s ../.env g/packed-refs; echo gitdir: ../g > s/.git", "the submodule s leads elsewhere"),
        ("mv s/.git g; ln -s ../.env g/packed-refs; ln -s ../g s/.git", "the submodule s leads elsewhere"),
    ] {
        let stage = with_submodule(false);
        sh(&stage, &format!("{refs}; {made}"));
        asked(&stage, reason, "git status");
    }
}

/// What a file holds can be said to be what another one holds.
#[test]
fn objects_that_are_replaced_are_shown_as_they_are() {
    let stage = repository();
    sh(&stage, "git replace -f $(git rev-parse HEAD:a.txt) $(git hash-object -w .env)");
    // The control: git by itself shows it.
    let shown = stage.bash("git show HEAD:a.txt");
    assert!(String::from_utf8_lossy(&shown.stdout).contains(SECRET));
    unasked(&stage, "a replaced object");
    assert!(!leaks(&stage, "git show HEAD:a.txt"));
}
