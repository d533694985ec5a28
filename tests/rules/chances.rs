//! Rules and lines by chance: what must hold of all of them.

use tiller::domain::rule::Token;

use crate::chance::Chance;
use crate::rules::stage::Stage;

const WORDS: [&str; 5] = ["frob", "crunch", "-r", "a", "b c"];

fn words(chance: &mut Chance) -> Vec<&'static str> {
    (0..=chance.below(2)).map(|_| chance.pick(&WORDS)).collect()
}

fn rule(chance: &mut Chance, effect: &str) -> String {
    let mut tokens: Vec<String> = words(chance).into_iter().map(|word| format!("{word:?}")).collect();
    for token in tokens.iter_mut().skip(1) {
        if chance.percent(20) {
            *token = "{ any = \"one\" }".to_string();
        }
    }
    if chance.percent(30) {
        tokens.push("{ any = \"rest\" }".to_string());
    }
    format!(
        "[[rule]]\nid = \"r{}\"\neffect = \"{effect}\"\nargv = [{}]\n",
        chance.below(1_000_000_000),
        tokens.join(", ")
    )
}

fn line(chance: &mut Chance) -> String {
    let command = |chance: &mut Chance| {
        let quoted: Vec<String> = words(chance).iter().map(|word| format!("'{word}'")).collect();
        quoted.join(" ")
    };
    let count = 1 + chance.below(2);
    (0..count).map(|_| command(chance)).collect::<Vec<_>>().join(" ; ")
}

#[test]
fn a_rule_that_denies_or_asks_never_makes_anything_allowed() {
    let mut chance = Chance::new(1);
    let (mut allowed, mut tightened) = (0, 0);
    for _ in 0..400 {
        let allows: Vec<String> = (0..4).map(|_| rule(&mut chance, "allow")).collect();
        let effect = if chance.percent(50) { "deny" } else { "ask" };
        let more = rule(&mut chance, effect);
        let before = Stage::new(&allows.join("\n"));
        let after = Stage::new(&format!("{more}\n{}", allows.join("\n")));
        let lines: Vec<String> = (0..10).map(|_| line(&mut chance)).collect();
        for line in lines {
            let (was, is) = (before.says(&line), after.says(&line));
            assert!(is != "allow" || was == "allow", "{line}\n{more}\n{allows:?}");
            allowed += u32::from(was == "allow");
            tightened += u32::from(was == "allow" && is != "allow");
        }
    }
    assert!(allowed > 20 && tightened > 0, "chance was too tame: {allowed} allowed, {tightened} tightened");
}

/// With one sign put anywhere in a line that is allowed, it is the same words or it is not allowed.
#[test]
fn one_more_sign_never_allows_other_words() {
    let stage = Stage::new("[[rule]]\neffect = \"allow\"\nargv = [\"cargo\", \"test\"]\n");
    let line = "cargo test";
    assert_eq!(stage.says(line), "allow");
    let mut refused = 0;
    for place in 0..=line.len() {
        for sign in "ab01 ;|&<>$`(){}*?~\\'\"\t\n#!=-_./:,+@%^[]".chars() {
            let other = format!("{}{sign}{}", &line[..place], &line[place..]);
            let argvs = crate::rules::line::read(&other).commands;
            let is_same = !argvs.is_empty() && argvs.iter().all(|argv| argv.join(" ") == line);
            assert!(stage.says(&other) != "allow" || is_same, "{other:?}");
            refused += u32::from(stage.says(&other) != "allow");
        }
    }
    assert!(refused > 300, "{refused}");
}

#[test]
fn what_is_written_is_read_again() {
    let mut chance = Chance::new(2);
    let stage = Stage::new("");
    for _ in 0..60 {
        // A program has no space in its name.
        let said = std::iter::once("rm").chain(words(&mut chance));
        let tokens: Vec<Token> = said.map(|word| Token::Word(word.to_string())).collect();
        let draft = tiller::domain::rule::RuleDraft {
            effect: tiller::domain::rule::RuleEffect::Deny,
            what: tiller::domain::rule::What::Argv(tokens),
            workspace: chance.percent(50).then(|| "/a \"b\"\n\u{1b}\\".to_string()),
            network: false,
            profile: tiller::domain::rule::Profile::Rw,
        };
        let rule = stage.book.made(draft, crate::rules::stage::NOW, "\"\"\" ' \u{7f}\n[[rule]]\n".to_string());
        stage.book.add(&rule).unwrap();
        assert!(stage.book.now().unwrap().rules.contains(&rule), "{}", stage.text());
    }
}
