//! What rules cover: the cases of `tests/fixtures/rules/cases.jsonl`, and others in a line each.

use serde_json::Value;
use serde_json::json;
use tiller::domain::approval::By;
use tiller::domain::rule::RuleEffect;
use tiller::domain::rule::RuleHit;
use tiller::domain::rule::What;
use tiller::domain::sandbox::Level;
use tiller::domain::tool::EffectClass;
use tiller::domain::tool::Facts;
use tiller::domain::tool::ToolCall;
use tiller::policy::offering;
use tiller::policy::permission;
use tiller::policy::permission::Judgement;
use tiller::policy::rules;

use crate::rules::line;
use crate::rules::stage::Stage;
use crate::rules::stage::WORKSPACE;
use crate::rules::stage::bare;
use crate::rules::stage::boxed;
use crate::rules::stage::call;
use crate::rules::stage::decision;
use crate::rules::stage::shell;
use crate::rules::stage::write;

/// A rule of a case as the file has it.
fn block(rule: &Value) -> String {
    let word = |one: &Value| match one.pointer("/any") {
        Some(any) => format!("{{ any = {any} }}"),
        None => one.to_string(),
    };
    let argv: Vec<String> = rule["argv"].as_array().unwrap().iter().map(word).collect();
    let more = ["workspace", "expires"].into_iter().filter_map(|name| Some(format!("{name} = {}\n", rule.get(name)?)));
    format!("[[rule]]\neffect = {}\nargv = [{}]\n{}", rule["effect"], argv.join(", "), more.collect::<String>())
}

/// The same line in other clothes: the same words for a shell.
fn clothes(command: &str) -> Vec<String> {
    let Some((first, rest)) = command.split_once(' ') else { return vec![command.to_string()] };
    let first = first.trim_matches('"');
    vec![
        command.to_string(),
        format!("'{first}' {rest}"),
        format!("\"{first}\" {rest}"),
        format!("{}''{} {rest}", &first[..1], &first[1..]),
        format!("  {command}  "),
    ]
}

#[test]
fn every_case_is_judged_as_it_must_be_in_any_clothes() {
    let cases = include_str!("../fixtures/rules/cases.jsonl");
    let mut played = 0;
    for case in cases.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let all = case["input"]["rules"].as_array().unwrap();
        let stage = Stage::new(&all.iter().map(block).collect::<Vec<_>>().join("\n"));
        for command in clothes(case["input"]["command"].as_str().unwrap()) {
            assert_eq!(stage.says(&command), case["expected"].as_str().unwrap(), "{}: {command}", case["id"]);
            played += 1;
        }
    }
    assert!(played >= 9 * 4, "{played} lines");
}

const RULES: &str = r#"
[[rule]]
effect = "allow"
argv = ["cargo", "test"]
[[rule]]
effect = "allow"
argv = ["frob", { any = "one" }]
[[rule]]
effect = "allow"
argv = ["crunch", { any = "rest" }]
[[rule]]
effect = "allow"
argv = ["curl", "https://docs.rs"]
network = true
[[rule]]
effect = "ask"
argv = ["crunch", "-f2", { any = "rest" }]
[[rule]]
effect = "deny"
argv = ["rm", { any = "rest" }]
[[rule]]
effect = "allow"
argv = ["rm", "a"]
[[rule]]
effect = "allow"
argv = ["python3", { any = "rest" }]
[[rule]]
effect = "allow"
path = "docs/**"
[[rule]]
effect = "deny"
path = "docs/keep/*"
[[rule]]
effect = "allow"
host = "docs.rs"
"#;

#[test]
fn a_line_is_covered_word_by_word_and_command_by_command() {
    let stage = Stage::new(RULES);
    let check = |command: &str, expected: &str| assert_eq!(stage.says(command), expected, "{command}");
    check("cargo test", "allow");
    check("cargo test; cargo test", "allow");
    check("cargo test && frob src", "ask");
    check("cargo test && frob", "ask");
    check("cargo test && pwd", "allow");
    check("cargo test $(pwd)", "ask");
    check("frob src", "allow");
    check("frob 'a b'", "allow");
    check("frob -la", "ask");
    check("frob src docs", "ask");
    check("crunch", "allow");
    check("crunch -f1 a", "allow");
    check("crunch -f2 a", "ask");
    check("rm a", "refuse");
    check("cargo test; rm a", "refuse");
    check("/bin/rm a", "refuse");
    check("sudo rm a", "refuse");
    check("env A=b rm -r x", "refuse");
    check("rm a > b", "refuse");
    check("echo rm a", "allow");
    check("python3 x.py", "ask");
}

#[test]
fn network_and_the_box_are_parts_of_what_a_rule_says() {
    let stage = Stage::new(RULES);
    let said = |command: &str, network: bool, unconfined: bool| {
        let level = Some(if unconfined { Level::None } else { Level::Full });
        let facts = Facts { unconfined: unconfined || network, level, network, ..line::facts(command) };
        decision(&stage.judged(shell(command), facts))
    };
    assert_eq!(said("cargo test", false, false), "allow");
    assert_eq!(said("cargo test", true, false), "ask");
    assert_eq!(said("cargo test", false, true), "ask", "made for the box, and there is none");
    assert_eq!(said("curl https://docs.rs", true, false), "allow");
    assert_eq!(said("rm a", true, true), "refuse");
    let open = Stage::new("[[rule]]\neffect = \"allow\"\nargv = [\"frob\"]\nprofile = \"none\"\n");
    assert_eq!(decision(&open.judged(shell("frob"), bare("frob"))), "allow");
}

#[test]
fn files_and_hosts_are_covered_by_their_names() {
    let stage = Stage::new(RULES);
    let file = |path: &str, inside: bool| {
        let (call, facts) = write(path);
        decision(&stage.judged(call, Facts { inside, ..facts }))
    };
    assert_eq!(file("docs/a/b.md", true), "allow");
    assert_eq!(file("docs/keep/b.md", true), "refuse");
    assert_eq!(file("src/a.rs", true), "ask");
    assert_eq!(file("docs/.git/hooks/x", false), "ask", "what other programs run is asked about each time");
    let outside = Facts { inside: true, binding: vec!["path=/ws2/docs/a".to_string()], ..Facts::default() };
    assert_eq!(decision(&stage.judged(write("docs/a").0, outside)), "ask");
    let fetch = |host: &str, bytes: u64| {
        let facts = Facts { host: Some(host.to_string()), query_bytes: Some(bytes), ..Facts::default() };
        let url = json!({ "url": format!("https://{host}/") });
        decision(&stage.judged(call("web_fetch", url, EffectClass::External), facts))
    };
    assert_eq!(fetch("docs.rs", 256), "allow");
    assert_eq!(fetch("docs.rs", 257), "ask");
    assert_eq!(fetch("docs.rs.evil.example", 0), "ask");
    assert_eq!(fetch("docs.rs:8080", 0), "ask", "another port, or without https");
}

#[test]
fn what_can_not_be_meant_or_is_too_open_is_said_why() {
    let said = |argv: &str| {
        let stage = Stage::new(&format!("[[rule]]\neffect = \"allow\"\nargv = [{argv}]\n"));
        match stage.book.now() {
            Err(why) => why.split_once("can't be meant: ").map_or(why.clone(), |(_, why)| why.to_string()),
            Ok(book) => book.passed_over.first().map_or("fine".to_string(), |(_, why)| why.clone()),
        }
    };
    let check = |argv: &str, expected: &str| assert!(said(argv).contains(expected), "{argv}: {}", said(argv));
    for program in
        ["npm", "bash", "env", "xargs", "sudo", "nohup", "time", "timeout", "watch", "cargo", "make", "git", "ssh"]
    {
        check(&format!("\"{program}\", {{ any = \"rest\" }}"), "allows any program");
    }
    check("\"find\", \".\", { any = \"rest\" }", "find is a program with options that run commands");
    check("\"./x.sh\", { any = \"rest\" }", "./x.sh is named by a path, where the agent may put another");
    check("\"/usr/bin/python3.11\", { any = \"one\" }", "an interpreter, which runs what its words say");
    check("\"git\", { any = \"one\" }", "with its first word open");
    check("\"git\", \"log\", { any = \"rest\" }", "git is a program with options that run commands");
    check("\"git\", \"log\", { any = \"one\" }", "fine");
    let runners = "run-parts start-stop-daemon capsh proot chronic sem hyperfine cpulimit byobu zellij c++ ninja-build
        cargo-clippy cargo-nextest latexmk gnuplot ssh-keygen protoc ctags eslint prettier tsc jest vitest pytest tox nox
        phpunit rspec ant sbt lein mix stack cabal dotnet msbuild xcodebuild swift zig bazel buck please meson scons waf
        ninja cmake ctest mypy nano nix-instantiate run0 mpirun srun torchrun xterm kitty es pdb rvim debuild rpmbuild ldd
        systemd-cat sg apt-cache samply bats";
    for program in runners.split_whitespace() {
        check(&format!("\"{program}\", {{ any = \"rest\" }}"), "allows any program");
        check(&format!("\"{program}\", {{ any = \"one\" }}"), "allows any program");
    }
    // What takes a program to run, here or elsewhere, or gets one: no word of it is left open.
    for program in ["ssh", "mosh", "docker", "podman", "kubectl", "socat", "npm", "pip", "uv", "apt", "ip", "devbox"] {
        check(&format!("\"{program}\", \"x\", {{ any = \"one\" }}"), "with any word open allows any program");
    }
    // Of the others not what they are to do, also where options stand before it.
    for argv in ["\"make\", \"-C\", \"sub\"", "\"cargo\", \"+nightly\"", "\"cargo\", \"-q\"", "\"git\", \"-P\""] {
        check(&format!("{argv}, {{ any = \"one\" }}"), "with a word open behind an option allows any program");
    }
    check("\"make\", \"check\", { any = \"one\" }", "fine");
    check("\"ssh\", \"host\", \"uptime\"", "fine");
    check("\"cargo\", \"test\", { any = \"one\" }", "fine");
    check("\"cargo\", \"test\"", "fine");
    check("\"bash\", \"-c\", \"make\"", "fine");
    check("\"ls\", { any = \"rest\" }", "fine");
    check("", "a command has at least one word");
    check("{ any = \"one\" }, \"a\"", "the first word, the program, is always said");
    check("\"ls\", { any = \"rest\" }, \"a\"", "nothing can follow it");
    check("\"ls\", { any = \"some\" }", "rules.toml: line 3");
}

/// Of what runs other programs only the exact words are offered, and so of what removes or moves.
#[test]
fn a_rule_is_offered_only_where_it_would_have_allowed_this_very_call() {
    let drafted = |command: &str, open: bool| {
        let facts = boxed(command);
        offering::draft(&shell(command), &facts, WORKSPACE, open).map(|draft| draft.to_string())
    };
    let check = |command: &str, open: bool, expected: Result<&str, &str>| match (drafted(command, open), expected) {
        (Ok(draft), Ok(wanted)) => assert_eq!(draft, format!("{wanted}, in the box, in /ws"), "{command}"),
        (Err(why), Err(wanted)) => assert!(why.contains(wanted), "{command}: {why}"),
        (got, wanted) => panic!("{command}: {got:?}, not {wanted:?}"),
    };
    check("\"cargo\" test", false, Ok("allow cargo test"));
    check("cargo test '*'", false, Ok("allow cargo test '*'"));
    check("cargo test *", false, Err("no rule covers such a line"));
    check("rm -rf /", false, Err("such a line is asked about each time"));
    check("cargo test one", true, Ok("allow cargo test {any:one}"));
    check("cargo test a=b", true, Err("would not allow this very call"));
    check("cargo test", true, Err("with its first word open"));
    check("ls -la", true, Err("would not allow this very call"));
    check("make", true, Err("the first word, the program, is always said"));
    check("sh check.sh", false, Ok("allow sh check.sh"));
    check("sh check.sh", true, Err("with any word open"));
    check("env make", false, Ok("allow env make"));
    check("env make", true, Err("with any word open"));
    check("ssh host uptime", false, Ok("allow ssh host uptime"));
    check("ssh host uptime", true, Err("with any word open"));
    check("npm run lint", true, Err("with any word open"));
    check("make -C sub", true, Err("with a word open behind an option"));
    for line in ["rm a", "mv a b", "rmdir a", "shred a", "truncate -s0 a", "chmod 755 a", "git push origin"] {
        check(line, false, Ok(&format!("allow {line}")));
        check(line, true, Err("removes, moves or replaces: only its exact words can be allowed"));
    }
    check("frob a | tail -5", false, Ok("allow frob a"));
    check("pwd && frob a", true, Ok("allow frob {any:one}"));
    check("cat .env", false, Err("no rule allows what names .env"));
    check("frob ../outside", false, Ok("allow frob ../outside"));
    check("frob ../outside", true, Err("../outside leads outside the workspace"));
    check("frob link", false, Err("link leads outside the workspace, by a link"));
    check("cp evil .git/hooks/x", true, Err("only its exact words"));
    check("frob .git/hooks/x", true, Err("names what other programs run by themselves"));
    let network = |open: bool| {
        let facts = Facts { network: true, unconfined: true, ..boxed("frob a") };
        offering::draft(&shell("frob a"), &facts, WORKSPACE, open).map(|draft| draft.to_string())
    };
    assert_eq!(network(false).unwrap(), "allow frob a, also with the network, in the box, in /ws");
    assert_eq!(network(true).unwrap_err(), "with the network only its exact words can be allowed");
    check("a; b", false, Err("a rule covers one command"));
    check("a > b", false, Err("no rule covers such a line"));
    let (call, facts) = write("docs/a.md");
    let draft = offering::draft(&call, &facts, WORKSPACE, false).unwrap();
    assert_eq!(draft.what, What::Path("docs/a.md".to_string()));
}

#[test]
fn leave_is_looked_at_again_by_the_rules_of_now() {
    let hit = |effect: RuleEffect, id: &str| {
        Some(RuleHit { id: id.to_string(), effect, words: "rm".to_string(), is_lost: false })
    };
    let rule = |name: &str| By::Rule(name.to_string());
    let over = |by: By, now: Option<RuleHit>| {
        let call = ToolCall { allowed: Some(by), ..shell("rm") };
        rules::overruled(&call, now.as_ref()).is_some()
    };
    let me = || By::Operator(tiller::domain::id::ClientId("op".to_string()));
    let own = hit(RuleEffect::Allow, "r1").unwrap().name();
    let lost = || Some(RuleHit::lost("broken"));
    for (by, none, allows, other, asks, denies, lost_now) in [
        (me(), false, false, false, false, true, false),
        (rule(&own), true, false, true, true, true, true),
        (rule(permission::GRANTED), false, false, false, false, true, true),
        (rule(permission::FULL_TRUST), false, false, false, true, true, true),
    ] {
        let all = [None, hit(RuleEffect::Allow, "r1"), hit(RuleEffect::Allow, "r2"), hit(RuleEffect::Ask, "r3")];
        let all = all.into_iter().chain([hit(RuleEffect::Deny, "r4"), lost()]);
        let got: Vec<bool> = all.map(|now| over(by.clone(), now)).collect();
        assert_eq!(got, [none, allows, other, asks, denies, lost_now], "{by:?}");
    }
}

#[test]
fn a_rule_is_told_by_its_name_and_a_denial_says_so() {
    let stage = Stage::new("[[rule]]\nid = \"mine\"\neffect = \"deny\"\nargv = [\"rm\", { any = \"rest\" }]\n");
    let facts = Facts { line: Some(line::read("rm a")), ..Facts::default() };
    let Judgement::Deny { rule, text } = stage.judged(shell("rm a"), facts) else { panic!("not denied") };
    assert_eq!(rule, "standing rule mine");
    assert!(text.contains("rm {any:rest}"), "{text}");
}
