//! The real program with rules: made, listed, explained, removed; made of a decision; obeyed by a run.

use std::io::Write;
use std::process::Stdio;

use serde_json::Value;

use crate::real::Said;
use crate::real::Stage;
use crate::real::said;

const PLAN: &str = r#"
[[step]]
name = "plan"
text = "A plan."
calls = [ { tool = "update_plan", args = { todos = [ { id = "a", title = "write", status = "in_progress" } ] } } ]
"#;
const END: &str = r#"
[[step]]
name = "end"
text = "Done."
calls = [
  { tool = "update_plan", args = { mode = "patch", todos = [ { id = "a", title = "write", status = "done" } ] } },
  { tool = "finish", args = { summary = "written" } },
]
"#;

/// A run that writes this file.
fn run(stage: &Stage, path: &str) -> Said {
    let call = format!(r#"{{ tool = "write_file", args = {{ path = "{path}", content = "text\n" }} }}"#);
    let script = format!("{PLAN}\n[[step]]\nname = \"work\"\ntext = \"Now.\"\ncalls = [ {call} ]\n{END}");
    stage.run(&script)
}

#[test]
fn a_rule_counts_from_the_next_call_on_and_until_it_is_removed() {
    let stage = Stage::new();
    stage
        .ask(&["rules", "list"])
        .check(0, &["there is no standing rule; `tiller rules add allow -- WORD …` makes one"]);
    stage.ask(&["rules", "add", "allow", "--path", "docs/**"]).check(0, &["allow the files docs/**, in "]);
    run(&stage, "docs/a.md").check(0, &["allowed by your rule r", "completed"]);
    run(&stage, "b.md").check(10, &["waiting for approval"]);
    stage.ask(&["rules", "add", "deny", "--everywhere", "--path", "docs/*.md"]).check(0, &["everywhere"]);
    run(&stage, "docs/c.md").check(0, &["denied by your rule r", "completed"]);
    assert!(!stage.path("work/docs/c.md").exists());
    let listed = stage.ask(&["rules", "list", "--json"]).out;
    let listed: Vec<Value> = listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(listed.len(), 2);
    let denies = listed.iter().find(|rule| rule["effect"] == "deny").unwrap();
    stage.ask(&["rules", "remove", denies["id"].as_str().unwrap()]).check(0, &["removed rule r"]);
    stage.ask(&["rules", "remove", "r0"]).check(2, &["there is no rule r0; nothing was removed"]);
    run(&stage, "docs/d.md").check(0, &["completed"]);
    assert!(stage.path("work/docs/d.md").exists());
}

/// As with runs: as much of the name as tells it from the others.
#[test]
fn a_rule_is_removed_by_the_beginning_of_its_id() {
    let stage = Stage::new();
    let made: Vec<String> = ["a", "b", "c"]
        .map(|path| {
            let told = stage.ask(&["rules", "add", "deny", "--path", path]);
            told.out.split([' ', ':']).nth(1).unwrap().to_string()
        })
        .to_vec();
    let is_own = |length: usize| made.iter().filter(|id| id.starts_with(&made[0][..length])).count() == 1;
    let least = (1..=made[0].len()).find(|length| is_own(*length)).unwrap();
    let several = stage.ask(&["rules", "remove", "r"]);
    several.check(2, &["several rules begin like r: ", "nothing was removed; write more of its id"]);
    assert!(made.iter().all(|id| several.err.contains(id.as_str())), "{several}");
    let none = stage.ask(&["rules", "remove", "x"]);
    none.check(2, &["there is no rule x; nothing was removed; there are: ", "(deny the files b, in "]);
    stage.ask(&["rules", "remove", ""]).check(2, &["nothing was removed"]);
    let gone = stage.ask(&["rules", "remove", &made[0][..least].to_uppercase()]);
    gone.check(0, &[&format!("removed rule {}: deny the files a, in ", made[0])]);
    assert_eq!(stage.ask(&["rules", "list"]).out.matches("deny the files").count(), 2);
    for id in &made[1..] {
        stage.ask(&["rules", "remove", id]).check(0, &["removed rule"]);
    }
    stage.ask(&["rules", "remove", "r"]).check(2, &["there is no rule r; nothing was removed; there is none at all"]);
}

#[test]
fn a_rule_with_an_id_of_the_operators_can_be_removed() {
    let stage = Stage::new();
    stage.ask(&["rules", "add", "deny", "--path", "docs/x"]).check(0, &["rule r"]);
    let block = |id: &str| format!("[[rule]]\nid = \"{id}\"\neffect = \"deny\"\npath = \"{id}\"\n");
    let path = stage.path("config/tiller/rules.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text + &["Mine", "build", "build-all"].map(block).concat()).unwrap();
    stage.ask(&["rules", "remove", "b"]).check(2, &["several rules begin like b: "]);
    stage.ask(&["rules", "remove", "build"]).check(0, &["removed rule build: deny the files build, everywhere"]);
    stage.ask(&["rules", "remove", "mi"]).check(0, &["removed rule Mine: "]);
    stage.ask(&["rules", "remove", "BUILD"]).check(0, &["removed rule build-all: "]);
}

/// A program by its path, from the folder where the line is; and words that only a shell can run.
#[test]
fn a_rule_may_name_a_program_by_its_path() {
    use std::os::unix::fs::PermissionsExt;
    let stage = Stage::new();
    let file = stage.path("work/x.sh");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "#!/bin/sh\necho it-ran-by-its-path\n").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    stage.ask(&["rules", "add", "allow", "--unboxed", "--", "./x.sh"]);
    let call = r#"{ tool = "shell", args = { command = "./x.sh" } }"#;
    let script = format!("{PLAN}\n[[step]]\nname = \"work\"\ntext = \"Now.\"\ncalls = [ {call} ]\n{END}");
    stage.run(&script).check(0, &["allowed by your rule r", "it-ran-by-its-path", "completed"]);
    for word in ["command", "type", "source", ".", "alias", "export"] {
        let told = stage.ask(&["rules", "add", "allow", "--", word, "x"]);
        told.check(3, &[&format!("{word} is a word of the shell and no program"), "no rule was made"]);
        stage.ask(&["rules", "add", "deny", "--", word, "x"]).check(0, &["rule r"]);
    }
}

#[test]
fn a_decision_makes_a_rule_and_the_next_run_is_not_asked() {
    let stage = Stage::new();
    let waits = run(&stage, "a.md");
    waits.check(10, &["waiting for approval"]);
    let line = waits.out.lines().map(str::trim).find(|line| line.starts_with("tiller approve")).unwrap();
    let mut words: Vec<&str> = line.split_whitespace().skip(1).collect();
    // One that can't be kept decides nothing.
    stage.write("config/tiller/rules.toml", "oops\n");
    words.push("--rule");
    stage.ask(&words).check(3, &["no rule was made: ", "nothing was decided"]);
    std::fs::remove_file(stage.path("config/tiller/rules.toml")).unwrap();
    let made = stage.ask(&words);
    made.check(
        0,
        &["made rule r", "allow the files a.md, in ", "is allowed, and so is every call like it from now on"],
    );
    let id =
        made.out.split("to take it back: tiller rules remove ").nth(1).unwrap().split('\n').next().unwrap().to_string();
    stage.ask(&["rules", "list"]).check(0, &[&id]);
    stage.ask(&["resume", "--last", "--plain"]).check(0, &["completed"]);
    let listed = stage.ask(&["rules", "list"]);
    listed.check(0, &["allow the files a.md, in ", "made of c2 of run "]);
    stage.ask(&["audit", &stage.ids()[0], "--payloads"]).check(0, &["allow by a new rule"]);
    std::fs::remove_file(stage.path("work/a.md")).unwrap();
    run(&stage, "a.md").check(0, &["allowed by your rule r", "completed"]);
}

/// Leave that was given, and not used yet, does not outlast a rule that denies.
#[test]
fn a_rule_that_denies_makes_leave_void_that_was_given_before() {
    for denies in [false, true] {
        let stage = Stage::new();
        let waits = run(&stage, "a.md");
        let line = waits.out.lines().map(str::trim).find(|line| line.starts_with("tiller approve")).unwrap();
        let words: Vec<&str> = line.split_whitespace().skip(1).collect();
        stage.ask(&words).check(0, &["recorded"]);
        if denies {
            stage.ask(&["rules", "add", "deny", "--path", "*.md"]).check(0, &["deny the files *.md"]);
        }
        let resumed = stage.ask(&["resume", "--last", "--plain"]);
        resumed.check(0, &["completed"]);
        assert_eq!(stage.path("work/a.md").exists(), !denies, "{resumed}");
        assert_eq!(resumed.out.contains("a standing rule says deny now: the files *.md"), denies, "{resumed}");
        assert_eq!(resumed.out.contains("denied by your rule r"), denies, "{resumed}");
    }
}

/// What the agent runs or writes can't make a rule: the file is refused to every tool.
#[test]
fn the_agent_can_not_reach_the_rules() {
    let stage = Stage::new();
    let rules = stage.path("config/tiller/rules.toml");
    for path in [rules.display().to_string(), "../config/tiller/rules.toml".to_string()] {
        let said = run(&stage, &path);
        said.check(0, &["completed"]);
        assert!(!rules.exists(), "{said}");
    }
    stage.ask(&["rules", "list"]).check(0, &["there is no standing rule"]);
}

#[test]
fn rules_that_can_not_be_read_are_told_and_everything_is_asked_about() {
    let stage = Stage::new();
    let path = stage.write("config/tiller/rules.toml", "[[rule]]\neffect = \"allow\"\npath = \"**\"\n");
    // It is open to others: that alone is enough.
    let told = run(&stage, "a.md");
    told.check(
        10,
        &["no standing rule is used, and nothing happens unasked, until the rules can be read: ", "chmod 600 "],
    );
    stage.ask(&["rules", "list"]).check(14, &["chmod 600 "]);
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    run(&stage, "b.md").check(0, &["completed"]);
}

#[test]
fn why_says_what_the_gate_says() {
    let stage = Stage::new();
    let why = |line: &str| {
        let told = stage.ask(&["rules", "why", line, "--json"]);
        told.check(0, &[]);
        serde_json::from_str::<Value>(&told.out).unwrap()
    };
    let asked = why("cargo test");
    assert_eq!((&asked["decision"], &asked["rule"]), (&"ask".into(), &Value::Null), "{asked}");
    assert!(asked["level"].is_string() && asked["segments"].is_array() && asked["reason"].is_string(), "{asked}");
    assert_eq!(why("")["decision"], "refuse");
    stage.ask(&["rules", "add", "allow", "--unboxed", "--", "frob"]).check(0, &["allow frob, also without a box, in "]);
    let allowed = why("'frob'");
    assert_eq!(allowed["decision"], "allow", "{allowed}");
    assert!(allowed["rule"].as_str().unwrap().starts_with("standing rule r"), "{allowed}");
    assert_eq!(allowed["segments"], serde_json::json!([["frob"]]));
    for other in ["frob a", "frob > a", "frob; rm -rf /", "frobs", "./frob"] {
        assert_eq!(why(other)["decision"], "ask", "{other}");
    }
    // Byte for byte: what is no text, and what holds a NUL, is refused.
    for bytes in [&b"ls \xff"[..], b"ls\0"] {
        let mut child = stage.tiller(&["rules", "why", "--json"]).stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(bytes).unwrap();
        let told = said(child);
        told.check(0, &["\"decision\":\"refuse\""]);
    }
}

#[test]
fn words_that_make_no_rule_are_refused() {
    let stage = Stage::new();
    let check = |words: &[&str], code: i32, sentence: &str| {
        let all: Vec<&str> = ["rules", "add"].iter().chain(words).copied().collect();
        stage.ask(&all).check(code, &[sentence]);
    };
    check(&["allow"], 2, "no command was said; no rule was made; put its words after --");
    check(&["allow", "--any-rest", "--", "npm"], 3, "npm is a package manager, which runs what it fetches");
    check(&["allow", "--", "bash", "{any:one}"], 3, "bash is an interpreter");
    check(&["deny", "--path", "/etc/**"], 3, "a path is below the workspace, as src/**");
    check(&["maybe", "--", "a"], 2, "a rule says allow, ask or deny");
    assert!(!stage.path("config/tiller/rules.toml").exists());
    check(&["deny", "--", "npm", "{any:rest}"], 0, "deny npm {any:rest}, in ");
    check(&["deny", "--literal", "--", "echo", "{any:rest}"], 0, "deny echo '{any:rest}', in ");
    check(&["allow", "--any-one", "--expires", "2h", "--", "ls"], 0, "allow ls {any:one}, in the box, in ");
}

/// What is said of a rule when it is made, and the words of `why`.
#[test]
fn what_was_meant_is_told_where_a_rule_says_something_else() {
    let stage = Stage::new();
    let open = stage.ask(&["rules", "add", "allow", "--", "frob", "--any-rest"]);
    open.check(2, &["--any-rest behind -- would be a word", "tiller rules add allow -- frob '{any:rest}'"]);
    stage.ask(&["rules", "add", "allow", "--literal", "--", "frob", "--any-rest"]).check(0, &["allow frob --any-rest"]);
    for (path, is_told) in [(".git/**", true), (".github/**", true), (".envrc", true), ("docs/**", false)] {
        let made = stage.ask(&["rules", "add", "allow", "--path", path]);
        made.check(0, &["allow the files "]);
        assert_eq!(made.out.contains("is asked about each time all the same: "), is_told, "{path}: {made}");
    }
    stage
        .ask(&["rules", "add", "allow", "--", "cat", ".env"])
        .check(0, &["note: what is named like .env is asked about"]);
    stage.ask(&["rules", "add", "deny", "--path", ".git/**"]).check(0, &["deny the files"]);
    stage.ask(&["rules", "add", "deny", "--", "rm", "x"]).check(0, &["deny rm x"]);
    stage.ask(&["rules", "why", "rm x"]).check(0, &["deny, by standing rule r"]);
    // A line that is given word for word is that of these words.
    for words in [["rm", "x y"], ["rm", "x; ls"]] {
        let in_quotes = format!("rm '{}'", words[1]);
        let told = stage.ask(&["rules", "why", &in_quotes]);
        assert_eq!(stage.ask(&[&["rules", "why", "--"], &words[..]].concat()).out, told.out);
    }
    let json = stage.ask(&["rules", "why", "rm x", "--json"]);
    assert!(json.out.contains("\"decision\":\"refuse\""), "{json}");
    let level = |line: &str| {
        let said = stage.ask(&["rules", "why", line]);
        said.out.lines().find_map(|line| line.trim().strip_prefix("level of the box: ").map(str::to_string))
    };
    assert_eq!(level(""), level("ls"));
    assert!(level("").is_some());
    stage.ask(&["rules", "why", ""]).check(0, &["refuse: The command is empty."]);
}

/// A rule without an open end is about its words and no more: that is said where it is made, and where it is missed.
#[test]
fn a_rule_that_denies_less_than_it_seems_says_so() {
    let stage = Stage::new();
    stage.ask(&["rules"]).check(0, &["there is no standing rule; `tiller rules add allow -- WORD …` makes one"]);
    let more = "with nothing after it; to deny all that begins so: tiller rules add deny";
    let note = format!("note: it denies only `git push`, {more} -- git push '{{any:rest}}'\n");
    let made = stage.ask(&["rules", "add", "deny", "--", "git", "push"]);
    made.check(0, &[&note]);
    let id = made.out.split_whitespace().nth(1).unwrap().trim_end_matches(':').to_string();
    let everywhere = format!("it denies only `rm x`, {more} --everywhere -- rm x '{{any:rest}}'\n");
    stage.ask(&["rules", "add", "deny", "--everywhere", "--", "rm", "x"]).check(0, &[&everywhere]);
    for words in [&["deny", "--any-rest", "--", "rm"][..], &["allow", "--", "frob"], &["deny", "--path", "a"]] {
        let made = stage.ask(&[&["rules", "add"], words].concat());
        made.check(0, &["rule r"]);
        assert!(!made.out.contains("note: it"), "{made}");
    }
    let missed = format!("no rule covers this; rule {id} comes closest: it denies only `git push`, {more}");
    for line in ["git push origin main", "sudo git push -f", "ls; git push origin"] {
        stage.ask(&["rules", "why", line]).check(0, &["ask: ", &missed]);
    }
    stage.ask(&["rules", "why", "frob x"]).check(0, &["comes closest: it allows only `frob`, with nothing after it\n"]);
    let json = stage.ask(&["rules", "why", "git push origin", "--json"]);
    let told: Value = serde_json::from_str(&json.out).unwrap();
    assert!(told["nearest"].as_str().unwrap().contains("comes closest"), "{json}");
    for line in ["git push", "rm x y", "git pushed origin", "echo git push", "frob"] {
        let told = stage.ask(&["rules", "why", line]);
        told.check(0, &[]);
        assert!(!told.out.contains("comes closest"), "{line}: {told}");
    }
    // The words of the list are explained below it, those that are in it.
    for words in [&["rules"][..], &["rules", "list"]] {
        let listed = stage.ask(words);
        listed.check(
            0,
            &[
                "deny git push, in ",
                "\n{any:rest}: all words to the end, or none\n",
                "\nin FOLDER: in all runs in that folder",
                "\neverywhere: in all runs in every folder\n",
                "\nin the box: only where a full box holds the command; elsewhere you are asked\n",
            ],
        );
        assert!(!listed.out.contains("{any:one}") && !listed.out.contains("also without a box"), "{listed}");
    }
}

/// A rule of another folder is named where its words would be covered, because it is looked for here in vain.
#[test]
fn a_rule_for_another_folder_is_named() {
    let stage = Stage::new();
    let other = stage.path("other");
    std::fs::create_dir(&other).unwrap();
    let there = other.to_str().unwrap();
    let mut adding = stage.tiller(&["rules", "add", "deny", "--", "frob", "{any:rest}"]);
    let made = said(adding.current_dir(&other).spawn().unwrap());
    let id = made.out.split_whitespace().nth(1).unwrap().trim_end_matches(':').to_string();
    let named =
        format!("no rule for this folder covers this; rule {id} would deny it in {there}; to have it here, too: ");
    stage.ask(&["rules", "why", "frob x"]).check(0, &["ask: ", &named]);
    stage.ask(&["rules", "why", "--workspace", there, "frob x"]).check(0, &["deny, by standing rule"]);
    let told = stage.ask(&["rules", "why", "frobs x"]);
    assert!(!told.out.contains("would deny"), "{told}");
}

/// A rehearsal works in a folder of tiller's own, where nobody else may: what its gate says is said there.
#[test]
fn why_in_the_folder_of_a_rehearsal_says_what_its_gate_says() {
    let stage = Stage::new();
    stage.ask(&["rehearse", "--plain", "--script", &stage.fast_rehearsal()]).check(10, &["[parked]"]);
    let home = stage.path(&format!("state/tiller/runs/{}/workspace", stage.ids()[0]));
    let why = |folder: &std::path::Path, line: &str| {
        let told = stage.ask(&["rules", "why", "--workspace", folder.to_str().unwrap(), line]);
        told.check(0, &[]);
        told.out
    };
    stage.ask(&["rules", "add", "allow", "--everywhere", "--unboxed", "--", "frob", "check.sh"]).check(0, &[]);
    assert!(why(&home, "frob check.sh").starts_with("allow"), "{}", why(&home, "frob check.sh"));
    // What lies beside it is not its own.
    let beside = home.parent().unwrap();
    std::fs::write(beside.join("check.sh"), "").unwrap();
    assert!(why(beside, "frob check.sh").starts_with("ask"), "{}", why(beside, "frob check.sh"));
}

/// The key and the machine ask the same function: what is offered is taken, what is not is refused with the reason.
#[test]
fn a_rule_of_a_line_is_taken_exactly_where_it_is_offered() {
    for (arguments, expected) in [
        (r#"{ command = "sh check.sh" }"#, Ok("allow sh check.sh, ")),
        (r#"{ command = "frob x", network = true }"#, Ok("allow frob x, also with the network, ")),
        (r#"{ command = "cat .env" }"#, Err("no rule allows what names .env, a sensitive name")),
        (r#"{ command = "cat .ssh/id_rsa" }"#, Err("such a line is asked about each time: it reaches key material")),
        (r#"{ command = "a; b" }"#, Err("a rule covers one command, and these are several")),
    ] {
        let stage = Stage::new();
        let call = format!(r#"{{ tool = "shell", args = {arguments} }}"#);
        let script = format!("{PLAN}\n[[step]]\nname = \"work\"\ntext = \"Now.\"\ncalls = [ {call} ]\n{END}");
        let waits = stage.run(&script);
        waits.check(10, &["waiting for approval"]);
        let line = waits.out.lines().map(str::trim).find(|line| line.starts_with("tiller approve")).unwrap();
        let mut words: Vec<&str> = line.split_whitespace().skip(1).collect();
        // The code of a grave call is no part of this.
        words.retain(|word| !word.starts_with("--code") && word.len() != 4);
        words.push("--rule");
        let said = stage.ask(&words);
        match expected {
            Ok(_) => said.check(0, &["is allowed, and so is every call like it from now on"]),
            Err(why) => said.check(3, &[why, "nothing was decided"]),
        }
        stage.ask(&["rules", "list"]).check(0, &[expected.unwrap_or("there is no standing rule")]);
    }
}
