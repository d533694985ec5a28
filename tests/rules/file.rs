//! The file of rules: read strictly or not at all, changed without losing what people wrote, read again when it changed.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use tiller::domain::rule::Profile;
use tiller::domain::rule::RuleDraft;
use tiller::domain::rule::RuleEffect;
use tiller::domain::rule::Token;
use tiller::domain::rule::What;
use tiller::domain::tool::Facts;
use tiller::policy::permission::Judgement;

use crate::rules::line;
use crate::rules::stage::NOW;
use crate::rules::stage::Stage;
use crate::rules::stage::shell;

const FIRST: &str = "[[rule]]\nid = \"one\"\neffect = \"allow\"\nargv = [\"frob\"]\n";

fn draft(word: &str) -> RuleDraft {
    RuleDraft {
        effect: RuleEffect::Allow,
        what: What::Argv(vec![Token::Word(word.to_string())]),
        workspace: None,
        network: false,
        profile: Profile::Rw,
    }
}

fn add(stage: &Stage, word: &str) -> Result<bool, String> {
    stage.book.add(&stage.book.made(draft(word), NOW, String::new())).map(|before| before.is_none())
}

#[test]
fn a_file_that_can_not_be_read_whole_is_not_used_at_all_and_everything_is_asked_about() {
    let fine = Stage::new(FIRST);
    assert_eq!(fine.says("frob"), "allow", "the control");
    let second = "[[rule]]\neffect = \"allow\"\nargv = [\"a\"]\n";
    for (more, expected) in [
        ("[[rule]]\neffect = \"never\"\nargv = [\"a\"]\n", "unknown variant"),
        ("[[rule]]\neffect = \"deny\"\nargv = [\"a\"]\nworkspce = \"/a\"\n", "unknown field"),
        ("[[rule]]\neffect = \"deny\"\nargv = [\"a\", { any = \"one\", more = 1 }]\n", "line 7"),
        ("[[rule]]\neffect = \"deny\"\n", "rule 2: it must have exactly one of argv, path and host"),
        ("[[rule]]\neffect = \"deny\"\nargv = [\"a\"]\npath = \"a\"\n", "exactly one of argv, path and host"),
        ("[[rule]]\nid = \"one\"\neffect = \"deny\"\nargv = [\"a\"]\n", "there is one with the id one before it"),
        ("[[rule]]\neffect = \"deny\"\nargv = [\"a\"]\nexpires = \"soon\"\n", "expires is a moment as"),
        ("[[rule]]\neffect = \"deny\"\nargv = [\"a\"]\nworkspace = \"a\"\n", "workspace is a whole path"),
        ("[[rule]]\neffect = \"deny\"\npath = \"../a\"\n", "a path has no empty part, no . and no .."),
        ("[[rule]]\neffect = \"deny\"\nhost = \"*.rs\"\n", "a host is a whole name"),
        ("more = 1\n", "unknown field"),
        ("[[rule]\n", "line 5"),
        ("\u{0}", "line 5"),
    ] {
        let text = if more.starts_with("more") { format!("{more}{FIRST}") } else { format!("{FIRST}{more}") };
        let stage = Stage::new(&text);
        let Err(why) = stage.book.now() else { panic!("{more} was read") };
        assert!(why.contains(expected), "{more}: {why}");
        assert!(why.starts_with("no standing rule is used, and nothing happens unasked"), "{why}");
        assert_eq!(stage.says("frob"), "ask", "{more}");
        let facts = Facts { line: Some(line::read("frob")), ..Facts::default() };
        let Judgement::Ask(said) = stage.judged(shell("frob"), facts) else { panic!("not asked") };
        assert_eq!(said, why);
        // Nothing is added beside rules that nobody can read.
        assert!(add(&stage, "b").is_err());
        assert_eq!(stage.text(), text);
        // Mended, it counts at once.
        stage.write(&format!("{FIRST}{second}"));
        assert_eq!(stage.says("frob"), "allow");
    }
}

#[test]
fn a_file_that_others_can_open_is_refused_with_the_line_that_mends_it() {
    let stage = Stage::new(FIRST);
    for mode in [0o644, 0o660, 0o602] {
        fs::set_permissions(stage.path(), fs::Permissions::from_mode(mode)).unwrap();
        let why = stage.book.now().unwrap_err();
        assert!(why.contains(&format!("chmod 600 {}", stage.path().display())), "{why}");
    }
    fs::set_permissions(stage.path(), fs::Permissions::from_mode(0o600)).unwrap();
    assert!(stage.book.now().is_ok(), "the control");
    fs::rename(stage.path(), stage.dir.path().join("elsewhere")).unwrap();
    std::os::unix::fs::symlink(stage.dir.path().join("elsewhere"), stage.path()).unwrap();
    assert!(stage.book.now().unwrap_err().contains("it is not a file"), "a link");
    fs::remove_file(stage.path()).unwrap();
    assert!(stage.book.now().unwrap().rules.is_empty());
    if nix::unistd::geteuid().is_root() {
        stage.write(FIRST);
        std::os::unix::fs::chown(stage.path(), Some(1234), None).unwrap();
        assert!(stage.book.now().unwrap_err().contains("belongs to another user"));
    }
}

#[test]
fn what_people_wrote_stays_when_rules_come_and_go() {
    let before = "# mine\n\n[[rule]] # odd header\neffect = \"deny\"\nargv = [\"a\"]\n";
    let odd = Stage::new(before);
    add(&odd, "b").unwrap();
    assert!(odd.text().starts_with(before), "{}", odd.text());
    let id = draft("b").id();
    let why = odd.book.remove(&id).unwrap_err();
    assert!(why.contains("change it in an editor") || why.contains("can't be changed from here"), "{why}");

    let before = format!(
        "# mine\n\n{FIRST}# about the next\n\n[[rule]]\nid = \"two\"\neffect = \"deny\"\nargv = [\n  \"b\", # why\n]\n# the end\n"
    );
    let stage = Stage::new(&before);
    assert_eq!(add(&stage, "c"), Ok(true));
    assert_eq!(add(&stage, "c"), Ok(false), "the same again");
    assert!(stage.text().starts_with(&before));
    assert_eq!(stage.book.remove("none"), Ok(None));
    assert!(stage.book.remove("one").unwrap().is_some());
    assert!(stage.text().starts_with("# mine\n\n# about the next\n\n[[rule]]\nid = \"two\""), "{}", stage.text());
    assert!(stage.text().contains("\n# the end\n"));
    assert!(stage.book.remove("two").unwrap().is_some());
    assert_eq!(stage.says("c"), "allow");
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&stage.path()), 0o600);
    let new = Stage::new("");
    add(&new, "c").unwrap();
    assert_eq!((mode(&new.path()), mode(new.path().parent().unwrap())), (0o600, 0o700));
}

/// What it says makes a rule the same, and not the id that somebody wrote.
#[test]
fn a_rule_is_there_already_if_it_says_the_same() {
    let block = |id: &str, word: &str| format!("[[rule]]\nid = \"{id}\"\neffect = \"allow\"\nargv = [\"{word}\"]\n");
    let stage = Stage::new(&block("mine", "c"));
    let rule = stage.book.made(draft("c"), NOW, String::new());
    assert_eq!(stage.book.add(&rule).unwrap().map(|before| before.id).as_deref(), Some("mine"));
    assert_eq!(add(&stage, "d"), Ok(true));
    let text = block(&draft("c").id(), "other");
    let stage = Stage::new(&text);
    let why = add(&stage, "c").unwrap_err();
    assert!(why.contains("is that of another rule (allow other, in the box"), "{why}");
    assert_eq!((stage.text(), stage.says("c")), (text, "ask"));
}

#[test]
fn a_rule_that_is_over_is_made_anew() {
    let stage = Stage::new("");
    let over = stage.book.made(draft("a"), NOW, String::new());
    let over = tiller::domain::rule::Rule { expires_at: Some(tiller::domain::time::Timestamp(5_000)), ..over };
    stage.book.add(&over).unwrap();
    assert_eq!(stage.says("a"), "ask");
    assert_eq!(add(&stage, "a"), Ok(true));
    assert_eq!(stage.says("a"), "allow");
}

#[test]
fn who_add_at_the_same_time_lose_nothing() {
    let stage = Stage::new("");
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let stage = &stage;
            scope.spawn(move || {
                for one in 0..8 {
                    assert_eq!(add(stage, &format!("w{writer}-{one}")), Ok(true));
                }
            });
        }
    });
    assert_eq!(stage.book.now().unwrap().rules.len(), 32);
}
