//! What git runs or obeys by the operator's own configuration and that of the repository: the real git runs each file that
//! is planted here, and the command that planted it is found out.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::boxes::stage::Bench;
use crate::boxes::stage::levels;
use crate::real::Stage;
use crate::real::said;
use tiller::domain::sandbox::Level;
use tiller::tools::gits::own::Own;

/// A repository whose operator has their home in the folder around it, with this configuration.
fn bench(level: Level, config: &str) -> (Bench, PathBuf) {
    let mut bench = Bench::new(level);
    let home = bench.scene.workspace.parent().unwrap().to_path_buf();
    // Names that are no text are written with this sign in the place of their byte.
    let config: Vec<u8> =
        config.chars().flat_map(|one| if one == 'ÿ' { vec![0xff] } else { vec![one as u8] }).collect();
    fs::write(home.join(".gitconfig"), config).unwrap();
    fs::write(home.join("more.inc"), "[core]\nhooksPath = .included\n").unwrap();
    bench.scene.git = Own { files: vec![home.join(".gitconfig")], home: Some(home.clone()), prefixes: Vec::new() };
    git(&bench, &["init", "-q"]);
    (bench, home)
}

/// Runs git as the operator does. Whether it succeeds is its own affair.
fn git(bench: &Bench, words: &[&str]) {
    let home = bench.scene.workspace.parent().unwrap();
    let mut command = Command::new("git");
    command.args(["-c", "user.name=a", "-c", "user.email=a@b.invalid"]).args(words);
    command.current_dir(&bench.scene.workspace).env_remove("XDG_CONFIG_HOME").env_remove("GIT_EDITOR");
    command.env("HOME", home).env("GIT_CONFIG_NOSYSTEM", "1").env_remove("GIT_CONFIG_GLOBAL");
    command.output().unwrap();
}

const COMMIT: &[&str] = &["commit", "-q", "--allow-empty", "-m", "one"];
const CASES: [(&str, &str, &[&str]); 19] = [
    ("[core]\nhooksPath = .githooks", ".githooks/pre-commit", COMMIT),
    ("[core]\nhooksPath = ~/ws/h", "h/pre-commit", COMMIT),
    ("[core]\nhooksPath = \".my \\\"hooks\"", ".my \"hooks/pre-commit", COMMIT),
    ("[core]\nhooksPath = ~/ws", "./pre-commit", COMMIT),
    ("[core]\nhooksPath = .gÿ", ".gÿ/pre-commit", COMMIT),
    ("\u{ef}\u{bb}\u{bf}[core] hooksPath = .githooks ; not = this", ".githooks/pre-commit", COMMIT),
    ("# a = b \\\n[core]\nhooksPath = .git\\\nhooks", ".githooks/pre-commit", COMMIT),
    ("[core]\nhooksPath = ~/led", "h/pre-commit", COMMIT),
    ("[core]\nhooksPath = ~/single", "./check.sh", COMMIT),
    ("[include]\npath = more.inc", ".included/pre-commit", COMMIT),
    ("[includeIf \"gitdir:~/\"]\npath = ~/more.inc", ".included/pre-commit", COMMIT),
    ("[core]\neditor = sh tools/edit.sh", "tools/edit.sh", &["commit", "--allow-empty"]),
    ("[core]\nfsmonitor = ./watch", "./watch", &["status"]),
    ("[alias]\ngo = -c core.fsmonitor=./watch status", "./watch", &["go"]),
    ("[alias]\ngo = !$HOME/ws/bin/go", "bin/go", &["go"]),
    ("[alias]\ngo = !\"\\\"$HOME\\\"/ws/'bin'/go\"", "bin/go", &["go"]),
    ("[alias]\ngo = \"!$(git rev-parse --show-toplevel)/bin/go\"", "bin/go", &["go"]),
    ("[alias]\ngo = \"!sh -c \\\"'./my bin/go' x\\\"\"", "my bin/go", &["go"]),
    ("[init]\ntemplateDir = ~/ws/tpl", "tpl/hooks/post-checkout", &["clone", "-q", ".", "../fresh"]),
];

#[tokio::test]
async fn what_the_operators_own_configuration_runs_is_told() {
    for level in [Level::None].into_iter().chain(levels("what the operator's own configuration runs")) {
        for (config, planted, action) in CASES {
            let (bench, home) = bench(level, config);
            std::os::unix::fs::symlink("ws/h", home.join("led")).unwrap();
            fs::create_dir(home.join("single")).unwrap();
            std::os::unix::fs::symlink("../ws/check.sh", home.join("single/pre-commit")).unwrap();
            let mark = bench.outside.join("ran");
            let file = planted.replace('ÿ', "\\xff");
            let script = format!("#!/bin/sh\\ntouch {}\\n", mark.display());
            let line = format!(
                "file=$'{file}'; mkdir -p \"${{file%/*}}\"; printf '{script}' > \"$file\" && chmod 755 \"$file\""
            );
            let outcome = bench.run(&line).await;
            let told = outcome.watched.join(", ");
            let shown = planted.trim_start_matches("./").replace('ÿ', "\\xFF");
            assert!(told.contains(&shown), "{level}: {config:?}: {}, {told:?}", outcome.text);
            if level == Level::None {
                if action[0] == "clone" {
                    git(&bench, COMMIT);
                }
                assert!(!mark.exists());
                git(&bench, action);
                assert!(mark.exists(), "{config:?}: git does not run {planted}, so this shows nothing");
            }
        }
    }
}

#[tokio::test]
async fn what_is_there_already_and_is_changed_is_told() {
    for level in [Level::None].into_iter().chain(levels("what is there already")) {
        let (bench, _) = bench(level, "[core]\nhooksPath = .githooks\neditor = vim\n[alias]\nx = !git log");
        bench.write(".githooks/pre-commit", "1");
        bench.write("deep/er/.git/HEAD", "1");
        bench.write("bare/HEAD", "1");
        bench.write("bare/config", "[core]\nfsmonitor = ../watch.sh\n");
        for (line, wanted) in [
            ("echo 2 >> .githooks/pre-commit", ".githooks/pre-commit (changed)"),
            ("echo 2 > .githooks/_helper", ".githooks/_helper (new)"),
            ("mkdir -p deep/er/.githooks && echo 2 > deep/er/.githooks/x", "deep/er/.githooks/x (new)"),
            ("echo 2 > watch.sh", "watch.sh (new)"),
            ("rm .githooks/pre-commit", ".githooks/pre-commit (gone)"),
        ] {
            assert_eq!(bench.run(line).await.watched, [wanted], "{level}: {line}");
        }
        let line = "mkdir git log vim deep/vim && touch git/a log/a vim/a deep/vim/a deep/.githooksx";
        assert_eq!(bench.run(line).await.watched, Vec::<String>::new(), "{level}");
    }
}

/// A configuration that comes to say more than is read hides nothing in silence.
#[tokio::test]
async fn a_configuration_that_grows_without_bound_is_told() {
    for level in [Level::None].into_iter().chain(levels("a configuration that grows")) {
        let (bench, _) = bench(level, "[include]\npath = ws/team.inc");
        bench.write("team.inc", "");
        for line in [
            "mkdir i && for n in {1..10000}; do echo \"[include] path = i/$n\"; : > i/$n; done > team.inc",
            "head -c 3000000 /dev/zero | tr '\\0' '#' > team.inc",
        ] {
            let watched = bench.run(line).await.watched;
            assert_eq!(watched[0], "more configuration of git than is read", "{level}: {line}: {watched:?}");
            assert!(watched.len() > 1, "{level}: {line}: {watched:?}");
            bench.write("team.inc", "");
        }
        let watched = bench.run("rm team.inc && mkfifo team.inc").await.watched;
        assert_eq!(watched, ["team.inc (gone)"], "{level}");
    }
}

/// The real program finds the operator's own configuration wherever git does.
#[test]
fn a_file_that_the_operators_git_would_run_is_asked_about() {
    let config = "[core]\nhooksPath = .githooks\n";
    for (place, is_asked) in [(".gitconfig", true), ("config/git/config", true), ("elsewhere", true), ("none", false)] {
        let stage = Stage::new();
        stage.write(place, config);
        let script = "[[step]]\nname = \"plan\"\ntext = \"a plan\"\ncalls = [ { tool = \"update_plan\", args = { todos = [ { id = \
             \"a\", title = \"A\", status = \"done\" } ] } } ]\n[[step]]\nname = \"write\"\ncalls = [ { tool = \
             \"write_file\", args = { path = \".githooks/pre-commit\", content = \"1\" } } ]\n[[step]]\nname = \"claim\"\n\
             calls = [ { tool = \"finish\", args = { summary = \"done\" } } ]\n";
        let model = format!("scripted/{}", stage.write("script.toml", script).display());
        let mut command = stage.tiller(&["run", "x", "--plain", "--trust", "auto_edit", "--model", &model]);
        command.env("GIT_CONFIG_GLOBAL", stage.path("elsewhere"));
        let said = said(command.spawn().unwrap());
        let written = stage.path("work/.githooks/pre-commit").exists();
        match is_asked {
            true => said.check(10, &["runs later: the configuration of git names it"]),
            false => said.check(0, &[]),
        }
        assert_eq!(written, !is_asked, "{place}: {said}");
    }
}
