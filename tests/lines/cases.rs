//! Hostile and tricky lines with their right answers, one by one; what may run unasked is run, and changes nothing.

use serde_json::Value;
use tiller::policy::catastrophe::catastrophe;
use tiller::policy::grave::grave;

use crate::lines::stage::Stage;

const CASES: &str = include_str!("../fixtures/lines/cases.jsonl");

/// Bytes as they are escaped in a case.
fn bytes(escaped: &str) -> Vec<u8> {
    let mut found = Vec::new();
    let mut rest = escaped;
    while let Some((before, behind)) = rest.split_once("\\x") {
        found.extend(before.bytes());
        found.push(u8::from_str_radix(&behind[..2], 16).unwrap());
        rest = &behind[2..];
    }
    found.extend(rest.bytes());
    found
}

#[test]
fn every_case_gets_its_answer() {
    let stage = Stage::new();
    let mut seen = 0;
    for case in CASES.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let (id, input) = (case["id"].as_str().unwrap(), &case["input"]);
        let line = match (input["command"].as_str(), input["command_bytes"].as_str()) {
            (Some(line), _) => Ok(line.to_string()),
            (None, Some(escaped)) => String::from_utf8(bytes(escaped)),
            (None, None) => panic!("{id} has no line"),
        };
        let answer = match line {
            // It can't even stand in the arguments of a call.
            Err(_) => "refuse",
            Ok(line) => {
                let facts = stage.facts(&line);
                assert!(facts.unconfined, "{id}: nothing confines lines yet");
                // Where nothing confines it, even what only reads is asked about.
                let is_confined = input["sandbox"].as_str() != Some("none");
                match stage.judged(&line) {
                    _ if facts.problem.is_some() => "refuse",
                    Ok(()) if is_confined => "allow",
                    Ok(()) | Err(_) => "ask",
                }
            }
        };
        assert_eq!(answer, case["expected"].as_str().unwrap(), "{id}: {input}");
        seen += 1;
    }
    assert!(seen >= 70, "{seen}");
}

#[test]
fn what_may_run_unasked_changes_nothing() {
    let stage = Stage::new();
    let before = stage.tree();
    let mut ran = 0;
    for case in CASES.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let Some(line) = case["input"]["command"].as_str().filter(|_| case["expected"] == "allow") else { continue };
        stage.run(line);
        assert!(stage.tree() == before, "{line} changed something");
        ran += 1;
    }
    assert!(ran >= 10, "{ran}");
    // The control: a case that is asked about does change something.
    stage.bash("ls && touch MARK");
    assert!(stage.tree() != before);
}

#[test]
fn words_are_judged_by_where_they_lead() {
    let stage = Stage::new();
    stage.write("sub/.env", "KEY=1");
    stage.write("../outside.txt", "x");
    std::os::unix::fs::symlink("../../outside.txt", stage.workspace.join("src/out")).unwrap();
    std::os::unix::fs::symlink("/", stage.workspace.join("root")).unwrap();
    stage.write("bare/HEAD", "ref: refs/heads/main\n");
    stage.write("bare/objects/x", "");
    stage.write("other/.git", "gitdir: /elsewhere\n");
    for (line, expected) in [
        ("cat src/a.rs", "ok"),
        ("cat src/new", "ok"),
        ("cat src/out", "src/out lies outside the workspace"),
        ("cat ../outside.txt", "../outside.txt lies outside the workspace"),
        ("cat root/etc/passwd", "root/etc/passwd lies outside the workspace"),
        ("cat sub/.env", "sub/.env has a sensitive name (environment files hold keys)"),
        ("cat sub/.ENV", "sub/.ENV has a sensitive name (environment files hold keys)"),
        ("cat /proc/self/environ", "/proc/self/environ is refused to every tool, or can't be told"),
        ("ls root", "root lies outside the workspace"),
        ("cat src", "src is a folder"),
        ("grep -rn a src", "ok"),
        ("grep -rn a", ". is read as a whole, and sub/.env lies below it"),
        ("grep -rn a .", ". is read as a whole, and sub/.env lies below it"),
        ("grep -n a sub/x", "ok"),
        ("rg a", ". is read as a whole, and sub/.env lies below it"),
        ("rg a src", "ok"),
        ("cd src && cat ../be.sh", "ok"),
        ("cd src && cat ../../outside.txt", "../../outside.txt lies outside the workspace"),
        ("cd .. && ls", ".. lies outside the workspace"),
        ("cd src && cat out", "out lies outside the workspace"),
        ("cd sub && cat .env", ".env has a sensitive name (environment files hold keys)"),
        ("cd src; ls", "cd stands elsewhere than at the start of the line, before &&"),
        ("ls && cd src && ls", "cd stands elsewhere than at the start of the line, before &&"),
        ("cd src && cd .. && ls", "cd stands elsewhere than at the start of the line, before &&"),
        ("git status", "ok"),
        ("cd src && git status", "ok"),
        ("git show HEAD:.env", "HEAD:.env has a sensitive name (environment files hold keys)"),
        ("git diff /etc/passwd be.sh", "/etc/passwd lies outside the workspace"),
        ("git diff -U /etc/passwd be.sh", "/etc/passwd lies outside the workspace"),
        ("git log --format /etc/passwd", "/etc/passwd lies outside the workspace"),
        ("git log ':(icase)sub/.ENV'", ":(icase)sub/.ENV is a pattern of git's own"),
        ("git log '--format=%G?'", "git runs another program to check signatures"),
        ("cd bare && git status", "git would find no ordinary repository in the workspace"),
        ("cd other && git status", "git would find no ordinary repository in the workspace"),
    ] {
        let told = stage.judged(line).err().unwrap_or_else(|| "ok".to_string());
        assert_eq!(told, expected, "{line}");
    }
    for config in ["[core]\n\tworktree = /\n", "[include]\n\tpath = /x\n"] {
        stage.write(".git/config", config);
        assert!(stage.judged("git status").is_err(), "{config}");
    }
}

#[test]
fn what_nobody_means_to_lose_is_found_wherever_it_stands() {
    let stage = Stage::new();
    let workspace = stage.workspace.display().to_string();
    let ruined = |line: &str| {
        let facts = stage.facts(&line.replace("WS", &workspace));
        catastrophe(facts.line.as_ref().unwrap(), &facts.touches).is_some()
    };
    for line in [
        "rm -rf /",
        "rm -rf /*",
        "rm -rf ~",
        "rm -rf ~/*",
        "rm -rf \"$HOME\"",
        "rm -rf ${HOME}/",
        "rm -fr .",
        "rm -rf *",
        "rm -rf ./*",
        "rm -r ..",
        "rm -rf WS",
        "rm -rf src/..",
        "rm -rf -- /",
        "sudo rm -rf /",
        "bash -c 'rm -rf ~'",
        "bash -c \"sh -c 'rm -rf /'\"",
        "echo $(rm -rf /)",
        "find . | xargs rm -rf /",
        "if true; then rm -rf /; fi",
        "chmod -R 777 /",
        "chown --recursive x ~",
        "mkfs.ext4 /dev/sda1",
        "dd if=/dev/zero of=/dev/sda",
    ] {
        assert!(ruined(line), "{line}");
    }
    for line in
        ["rm -rf target", "rm -rf src", "rm -rf ./target/*", "rm x", "echo 'rm -rf /'", "chmod +x be.sh", "ls -R /"]
    {
        assert!(!ruined(line), "{line}");
    }
}

/// Nothing confines lines here: what would write where other programs look by themselves needs its code.
#[test]
fn what_other_programs_run_is_grave_to_name_where_no_full_box_keeps_it() {
    let stage = Stage::new();
    stage.write(".github/workflows/ci.yml", "x");
    std::os::unix::fs::symlink(".git/hooks", stage.workspace.join("link")).unwrap();
    std::fs::create_dir_all(stage.workspace.join(".git/hooks")).unwrap();
    for line in [
        "cp be.sh .git/hooks/pre-commit",
        "echo x > .git/hooks/pre-commit",
        "echo x >>.envrc",
        "cp be.sh link/pre-commit",
        "cp be.sh \".git/ho\"oks/x",
        "cat .github/workflows/ci.yml > x",
        "git add .github/workflows/ci.yml",
        "sed -i s/a/b/ .vscode/tasks.json",
        "printf x | tee ~/.bashrc",
        "rm -r .husky",
    ] {
        let told = grave(&stage.facts(line)).unwrap_or_default();
        assert_eq!(told, "it names, and may write, files that other programs run by themselves", "{line}");
    }
    for line in [
        "cat .github/workflows/ci.yml",
        "ls -la .git/hooks link",
        "grep -n x .gitattributes",
        "cp be.sh src/x",
        "make",
        "echo x > Makefile",
    ] {
        assert_eq!(grave(&stage.facts(line)), None, "{line}");
    }
}

/// Outside of the repository git compares whole folders as they lie on the disk, and so would show names that no word has.
#[test]
fn git_compares_nothing_outside_of_the_repository_that_a_line_goes_to() {
    let stage = Stage::new();
    for (path, text) in [("app/.env", "DB=plain-words-only\n"), ("app/x.py", "1\n"), ("empty/x", ""), ("lib/f", "x\n")]
    {
        stage.write(path, text);
    }
    for (path, text) in [("HEAD", "ref: refs/heads/main\n"), ("config", "[core]\n"), ("objects/x", ""), ("refs/x", "")]
    {
        stage.write(&format!("lib/.git/{path}"), text);
    }
    let asked = |line: &str| stage.judged(line).unwrap_err();
    for line in ["cd lib && git diff ../empty ../app", "cd lib && git diff --no-index ../empty ../app"] {
        let why = asked(line);
        assert!(why.contains("../empty") || why.contains("--no-index"), "{line}: {why}");
    }
    for line in ["git -C lib diff ../empty ../app", "git -C lib diff --no-index ../empty ../app"] {
        assert!(asked(line).contains("git -C is not listed"), "{line}: {}", asked(line));
    }
    // The control: it does show it, and inside of the repository the same line only reads.
    let shown = stage.bash("cd lib && git diff --no-index ../empty ../app");
    assert!(String::from_utf8_lossy(&shown.stdout).contains("plain-words-only"), "{shown:?}");
    assert_eq!(stage.judged("cd lib && git diff --stat f"), Ok(()));
}
