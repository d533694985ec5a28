//! What no rule that allows covers, however open it is: places outside, sensitive names, what other programs run. And
//! which lines of several commands one covers.

use tiller::domain::line::Named;
use tiller::domain::tool::Facts;
use tiller::policy::permission::Judgement;

use crate::rules::stage::Stage;
use crate::rules::stage::bare;
use crate::rules::stage::boxed;
use crate::rules::stage::decision;
use crate::rules::stage::shell;

const RULES: &str = r#"
[[rule]]
effect = "allow"
argv = ["cp", { any = "rest" }]
profile = "none"
[[rule]]
effect = "allow"
argv = ["frob", "-o", { any = "one" }]
profile = "none"
[[rule]]
effect = "allow"
argv = ["cat", "/etc/hosts"]
profile = "none"
[[rule]]
effect = "allow"
argv = ["cat", "link"]
profile = "none"
[[rule]]
effect = "allow"
argv = ["cat", ".env"]
profile = "none"
[[rule]]
effect = "allow"
argv = ["git", "show", { any = "one" }]
profile = "none"
[[rule]]
effect = "allow"
argv = ["cd", { any = "one" }]
profile = "none"
[[rule]]
effect = "allow"
argv = ["frob", "../outside"]
profile = "none"
[[rule]]
effect = "allow"
argv = ["make", "test"]
[[rule]]
effect = "allow"
argv = ["make", "check", { any = "one" }]
"#;

/// What is said of a line, first in a full box, then without one.
fn said(stage: &Stage, line: &str) -> [&'static str; 2] {
    [boxed(line), bare(line)].map(|facts| decision(&stage.judged(shell(line), facts)))
}

#[test]
fn what_an_open_word_stands_for_lies_inside_and_is_nothing_special() {
    let stage = Stage::new(RULES);
    let check = |line: &str, expected: &str| assert_eq!(said(&stage, line), [expected; 2], "{line}");
    // The control: the rules do allow.
    check("cp evil docs", "allow");
    check("cp -r evil docs/new", "allow");
    check("frob -o docs/x", "allow");
    for words in [
        "evil ../outside",
        "../outside back",
        "evil ../outside3",
        "evil /tmp/x",
        "evil link",
        "evil up/x",
        "evil .git/hooks/post-commit",
        "evil .envrc",
        ".env back",
        "--target-directory=../x evil",
        "--target-directory=up evil",
        "-t../x evil",
        "-at../x evil",
        "-t/tmp evil",
        "-tup evil",
        "-atlink evil",
        "-t.git/hooks evil",
        "@/etc/hosts docs",
        "a:../x docs",
        "a,link,b docs",
    ] {
        check(&format!("cp {words}"), "ask");
    }
    check("frob -o ../x", "ask");
    check("frob -o .vscode/tasks.json", "ask");
    check("cd docs && cp ../evil x", "allow");
    check("cd docs && cp ../../outside x", "ask");
    check("cd .. && cp outside x", "ask");
}

#[test]
fn a_word_that_the_rule_says_is_the_very_place_that_the_operator_wrote() {
    let stage = Stage::new(RULES);
    let check = |line: &str, expected: &str| assert_eq!(said(&stage, line), [expected; 2], "{line}");
    check("cat /etc/hosts", "allow");
    check("frob ../outside", "allow");
    // There it is another place.
    check("cd docs && frob ../outside", "allow");
    check("cd up && frob ../outside", "ask");
    // Somebody else made the link.
    check("cat link", "ask");
    for back in
        ["../ws/hidden", "/./ws/hidden", "/x/../ws/hidden", "docs/../../ws/hidden", "/ws/./link", "../ws/./link"]
    {
        let stage =
            Stage::new(&format!("[[rule]]\neffect = \"allow\"\nargv = [\"cat\", \"{back}\"]\nprofile = \"none\"\n"));
        let line = format!("cat {back}");
        let mut facts = bare(&line);
        // Facts of a folder that is called /ws.
        let named = Named::Sensitive("secrets".to_string());
        facts.touches.iter_mut().filter(|touch| touch.word == back).for_each(|touch| touch.named = named.clone());
        assert_eq!(decision(&stage.judged(shell(&line), facts)), "ask", "{line}");
    }
    // Beside the workspace, and not in it.
    let stage = Stage::new("[[rule]]\neffect = \"allow\"\nargv = [\"cat\", \"/ws2/x\"]\nprofile = \"none\"\n");
    assert_eq!(decision(&stage.judged(shell("cat /ws2/x"), bare("cat /ws2/x"))), "allow");
    check("cat .env", "ask");
}

/// As much as was found out counts: what was not looked up is not covered.
#[test]
fn a_word_that_was_not_looked_up_is_not_covered() {
    let stage = Stage::new(RULES);
    let line = "cp evil docs";
    let mut facts = boxed(line);
    facts.touches.retain(|touch| touch.word != "docs");
    assert_eq!(decision(&stage.judged(shell(line), facts)), "ask");
    let many = |count: usize| format!("cp {}", (0..count).map(|one| format!("d{one}")).collect::<Vec<_>>().join(" "));
    assert_eq!(said(&stage, &many(200)), ["allow"; 2]);
    assert_eq!(said(&stage, &many(300)), ["ask"; 2]);
}

/// What shows all below a folder searches the one where it runs, if no word names another.
#[test]
fn what_lies_below_a_folder_is_looked_at_for_what_shows_all_of_it() {
    let words = |argv: &str| {
        let word = |word: &str| match word {
            "ONE" => "{ any = \"one\" }".to_string(),
            "REST" => "{ any = \"rest\" }".to_string(),
            word => format!("\"{word}\""),
        };
        let argv: Vec<String> = argv.split(' ').map(word).collect();
        format!("[[rule]]\neffect = \"allow\"\nargv = [{}]\nprofile = \"none\"\n", argv.join(", "))
    };
    // Without a box no table of what only reads lets it happen.
    let check = |rule: &str, line: &str, expected: &str| {
        let stage = Stage::new(&words(rule));
        assert_eq!(decision(&stage.judged(shell(line), bare(line))), expected, "{rule}: {line}");
    };
    check("grep -rn ONE", "grep -rn KEY", "ask");
    check("grep -rn ONE", "grep -rn evil", "ask");
    check("grep -rn ONE docs", "grep -rn KEY docs", "allow");
    check("grep ONE", "grep KEY", "allow");
    check("grep REST", "grep KEY evil", "allow");
    check("grep REST", "grep -n KEY evil", "allow");
    check("grep REST", "grep -n KEY", "allow");
    check("grep REST", "grep -rn KEY", "ask");
    check("grep REST", "grep -r KEY docs", "ask");
    check("grep REST", "grep -r KEY .", "ask");
    check("grep -rn REST", "grep -rn KEY docs", "allow");
    check("grep -rn REST", "grep -rn KEY clean", "allow");
    check("grep -Rn REST", "grep -Rn KEY docs", "allow");
    check("grep -Rn REST", "grep -Rn KEY clean", "ask");
    check("grep REST", "grep -R KEY clean", "ask");
    check("/usr/bin/grep -rn REST", "/usr/bin/grep -rn KEY .", "ask");
    check("rgrep REST", "rgrep KEY .", "ask");
    check("rgrep REST", "rgrep KEY", "ask");
    check("rgrep REST", "rgrep KEY docs", "allow");
    check("rgrep REST", "rgrep KEY clean", "ask");
    check("rg docs ONE", "rg docs nothing", "ask");
    check("rg -g ONE docs", "rg -g KEY docs", "ask");
    check("rg -g KEY ONE", "rg -g KEY docs", "ask");
    for program in ["egrep -r", "zgrep", "xzgrep", "colordiff", "pax", "codespell"] {
        check(&format!("{program} REST"), &format!("{program} KEY ."), "ask");
        check(&format!("{program} REST"), &format!("{program} KEY docs"), "allow");
    }
    // Nothing else is too open for a word behind what they are to do.
    for program in ["rg -n", "pcre2grep", "gtar", "7za", "ug", "sdiff"] {
        check(&format!("{program} KEY ONE"), &format!("{program} KEY ."), "ask");
    }
    check("rg KEY ONE", "rg KEY clean", "allow");
    check("gtar KEY ONE", "gtar KEY docs", "allow");
    check("gtar KEY ONE", "gtar KEY clean", "ask");
}

/// No number of words before a command hides what its own words name.
#[test]
fn what_was_not_looked_up_is_no_word_of_the_operators() {
    let stage = Stage::new(&format!(
        "{RULES}[[rule]]\neffect = \"allow\"\nargv = [\"cat\", \"hidden\"]\n[[rule]]\neffect = \"allow\"\nargv = [\"frob\"]\n"
    ));
    let check =
        |line: &str, expected: &str| assert_eq!(decision(&stage.judged(shell(line), boxed(line))), expected, "{line}");
    let many = |count: usize| (0..count).map(|one| format!("a{one}")).collect::<Vec<_>>().join(" ");
    check("echo a; cat hidden", "ask");
    check(&format!("echo {}; cat hidden", many(260)), "ask");
    check(&format!("echo {}; cat hidden", many(254)), "ask");
    check(&format!("echo {}; frob", many(200)), "allow");
    check(&format!("echo {}; frob", many(260)), "ask");
}

#[test]
fn a_line_is_covered_where_each_command_is_or_only_reads() {
    let stage = Stage::new(RULES);
    let check = |line: &str, boxed: &str, bare: &str| assert_eq!(said(&stage, line), [boxed, bare], "{line}");
    check("make test", "allow", "ask");
    check("make test && ls", "allow", "ask");
    check("make test 2>&1 | tail -20", "allow", "ask");
    check("make test | grep -v ok | wc -l", "allow", "ask");
    check("ls docs && cat evil && make test", "allow", "ask");
    check("cp evil docs; ls", "allow", "ask");
    check("make test && frob", "ask", "ask");
    check("make test && cat .env", "ask", "ask");
    // What the others leave behind was not looked up.
    check("make test && cat evil", "ask", "ask");
    check("cat evil | make test", "ask", "ask");
    check("make test && grep -r x", "ask", "ask");
    // It obeys the repository, in a box that can write; and another folder has another `make test`.
    check("git status && make test", "ask", "ask");
    check("make test && git status", "ask", "ask");
    check("make check a", "allow", "ask");
    check("make check SHELL=./x", "ask", "ask");
    check("make check -f", "ask", "ask");
    let elsewhere = Stage::new(&RULES.replace("\"cd\"", "\"cdx\""));
    assert_eq!(said(&elsewhere, "cd docs && make test"), ["ask"; 2]);
}

/// What a repository makes git do by itself is no matter of the words: a rule is the operator's own word. Where git may
/// work elsewhere than was looked, an open word is not covered.
#[test]
fn what_a_repository_says_by_itself_does_not_undo_a_rule() {
    let rule = "[[rule]]\neffect = \"allow\"\nargv = [\"git\", \"diff\"]\nprofile = \"none\"\n";
    let stage = Stage::new(&format!("{RULES}{rule}"));
    let says = |line: &str, is_elsewhere: bool| {
        let mut facts = boxed(line);
        let git = facts.touches.iter().position(|touch| touch.named == Named::Repository).unwrap();
        let mut obeys = facts.touches[git].clone();
        obeys.named = Named::Obeys("it says so".to_string());
        if is_elsewhere {
            facts.touches[git] = obeys;
        } else {
            facts.touches.insert(git, obeys);
        }
        decision(&stage.judged(shell(line), facts))
    };
    for (line, more, elsewhere) in [
        ("git status", "ask", "ask"),
        ("git diff", "allow", "allow"),
        ("git show HEAD", "allow", "ask"),
        ("git show HEAD:.env", "ask", "ask"),
    ] {
        assert_eq!([says(line, false), says(line, true)], [more, elsewhere], "{line}");
    }
}

#[test]
fn what_no_rule_covers_is_named() {
    let stage = Stage::new(RULES);
    let why = |line: &str, facts: Facts| match stage.judged(shell(line), facts) {
        Judgement::Ask(why) => why,
        other => panic!("{line}: {other:?}"),
    };
    let check = |line: &str, expected: &str| {
        let why = why(line, boxed(line));
        assert_eq!(why, format!("it may do more than read: {expected}"), "{line}");
    };
    check("make test && frob a", "a standing rule covers make test; nothing covers frob a");
    check("frob a; make test", "a standing rule covers make test; nothing covers frob a");
    check(
        "cp evil ../outside",
        "the standing rule for cp {any:rest} does not cover it: ../outside leads outside the workspace",
    );
    check("frob a", "frob is not in the read-only table");
    let line = "make test";
    assert_eq!(
        why(line, bare(line)),
        "it can change anything that you can: the standing rule for make test does not cover it: it is for a full box, \
         and there is none"
    );
    let network = Facts { network: true, ..boxed(line) };
    assert_eq!(why(line, network), "it would have the network: it could send whatever it can read");
}
