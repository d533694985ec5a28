//! Each command of the table against what it says of itself: an option that is not listed is asked about, and so is
//! every beginning of a long one, which programs would take for the whole.

use std::collections::BTreeSet;
use std::process::Command;

use tiller::tools::line;

use crate::lines::stage::judged_by_words;

/// Commands of the table, with words that make a line out of an option which is taken, and what asks for help.
const COMMANDS: [(&str, &str, &str); 39] = [
    ("ls", "", "--help"),
    ("cat", "", "--help"),
    ("head", "", "--help"),
    ("tail", "", "--help"),
    ("wc", "", "--help"),
    ("nl", "", "--help"),
    ("cut", "", "--help"),
    ("tr", "a b", "--help"),
    ("sort", "", "--help"),
    ("uniq", "", "--help"),
    ("grep", "a", "--help"),
    ("rg", "a", "--help"),
    ("stat", "", "--help"),
    ("file", "", "--help"),
    ("basename", "a", "--help"),
    ("dirname", "a", "--help"),
    ("realpath", "", "--help"),
    ("readlink", "", "--help"),
    ("pwd", "", "--help"),
    ("echo", "a", "--help"),
    ("true", "", "--help"),
    ("whoami", "", "--help"),
    ("id", "", "--help"),
    ("uname", "", "--help"),
    ("date", "", "--help"),
    ("diff", "a b", "--help"),
    ("cmp", "a b", "--help"),
    ("sha256sum", "", "--help"),
    ("md5sum", "", "--help"),
    ("du", "", "--help"),
    ("find", "", "--help"),
    ("sed", "-n 1p", "--help"),
    ("git status", "", "-h"),
    ("git log", "", "-h"),
    ("git diff", "", "-h"),
    ("git show", "", "-h"),
    ("git branch", "", "-h"),
    ("git ls-files", "", "-h"),
    ("git blame", "", "-h"),
];

/// Options that write, run, follow, read lists from files, or never end: none of them may ever be listed.
const NEVER: [(&str, &str); 58] = [
    ("sort", "-o x"),
    ("sort", "-ro x"),
    ("sort", "-ox"),
    ("sort", "--output=x"),
    ("sort", "--outp=x"),
    ("sort", "--compress-program=x"),
    ("sort", "--compress-prog x"),
    ("sort", "-T x"),
    ("sort", "--files0-from=x"),
    ("sort", "--random-source=x"),
    ("tail", "-f x"),
    ("tail", "-5f x"),
    ("tail", "-F x"),
    ("tail", "-cf x"),
    ("tail", "-qcf x"),
    ("tail", "-cf -- x"),
    ("tail", "-nf x"),
    ("tail", "-5cf x"),
    ("tail", "-lf x"),
    ("tail", "-vnF x"),
    ("tail", "-n -f x"),
    ("tail", "+5f x"),
    ("head", "-5v x"),
    ("sort", "-1o x"),
    ("sort", "+1 -o x"),
    ("uniq", "-1 x y"),
    ("diff", "-5r a b"),
    ("grep", "-5f x y"),
    ("tail", "--follow x"),
    ("grep", "-R a ."),
    ("grep", "-nR a ."),
    ("grep", "-f x y"),
    ("grep", "--file=x y"),
    ("grep", "-d recurse a ."),
    ("grep", "--directories=recurse a ."),
    ("rg", "--pre x a"),
    ("rg", "--pre=x a"),
    ("rg", "-z a"),
    ("rg", "-nz a"),
    ("rg", "-L a"),
    ("rg", "--hostname-bin=x a"),
    ("diff", "-r a b"),
    ("diff", "-ur a b"),
    ("date", "-s x"),
    ("date", "-us x"),
    ("date", "12011200"),
    ("date", "-f x"),
    ("find", ". -delete"),
    ("find", ". -fls x"),
    ("find", "-L ."),
    ("file", "-C -m x"),
    ("du", "--files0-from=x"),
    ("wc", "--files0-from=x"),
    ("git log", "--output=x"),
    ("git diff", "--ext-diff"),
    ("git diff", "-O x"),
    ("git branch", "x"),
    ("git blame", "--contents x y"),
];

/// Every option that a program names in its help.
fn named(command: &str, help: &str) -> Option<BTreeSet<String>> {
    let mut words = command.split(' ');
    let output = Command::new(words.next()?).args(words).arg(help).env("LC_ALL", "C").output().ok()?;
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    let pieces = text.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '-'));
    let is_option = |piece: &&str| {
        let long = piece.strip_prefix("--").is_some_and(|rest| rest.len() > 1 && !rest.starts_with('-'));
        long || (piece.len() == 2 && piece.starts_with('-') && *piece != "--")
    };
    Some(pieces.filter(is_option).map(String::from).collect())
}

/// The letters that the sources list for a command, the first a flag.
fn letters(command: &str, sources: &str) -> String {
    let own = [("echo", "neE"), ("date", "u"), ("sed", "n"), ("find", "ao")];
    if let Some((_, letters)) = own.iter().find(|(name, _)| *name == command) {
        return letters.to_string();
    }
    let name = command.strip_prefix("git ").unwrap_or(command);
    let start = match name {
        "log" | "diff" | "show" if command != name => "const SHOWN: Entry".to_string(),
        _ => format!("name: \"{name}\""),
    };
    let entry = sources.split_once(&start).unwrap().1;
    let entry = entry.split("name: \"").next().unwrap();
    let value =
        |key: &str| entry.split_once(&format!("{key}: \"")).map_or("", |(_, rest)| rest.split('"').next().unwrap());
    format!("{}{}", value(" flags"), value(" valued"))
}

#[test]
fn an_option_that_is_not_listed_is_asked_about() {
    let sources = concat!(
        include_str!("../../src/policy/table/entries.rs"),
        include_str!("../../src/policy/table/git.rs"),
        include_str!("../../src/policy/table/own.rs")
    );
    let takes = |line: &str| judged_by_words(&line::read(line)).is_ok();
    let mut looked_at = 0;
    for (command, operands, help) in COMMANDS {
        let Some(options) = named(command, help) else { continue };
        for option in &options {
            looked_at += 1;
            if !option.starts_with("--") {
                let letter = option.trim_start_matches('-');
                let listed = letters(command, sources);
                let bundle = listed.chars().next().map_or(String::new(), |first| format!("{first}{letter}"));
                for word in [letter, &format!("{letter}x"), &format!("{letter} x"), bundle.as_str()] {
                    let line = format!("{command} -{word} {operands}");
                    assert!(word.is_empty() || listed.contains(letter) || !takes(&line), "{line}");
                }
                continue;
            }
            // Long options stand in the sources word by word; what is taken is there.
            for value in ["", "=x", " x"] {
                let line = format!("{command} {option}{value} {operands}");
                let is_listed = sources.contains(&format!("\"{option}\""));
                assert!(is_listed || !takes(&line), "{line}");
            }
            for end in 3..option.len() {
                let (short, line) = (&option[..end], format!("{command} {} {operands}", &option[..end]));
                assert!(
                    options.contains(short) || sources.contains(&format!("\"{short}\"")) || !takes(&line),
                    "{line}"
                );
            }
        }
    }
    assert!(looked_at > 500, "{looked_at}");
}

#[test]
fn what_writes_runs_or_follows_is_never_listed() {
    for (command, words) in NEVER {
        let line = format!("{command} {words}");
        assert!(judged_by_words(&line::read(&line)).is_err(), "{line}");
    }
    // The control: the same commands without it.
    for line in [
        "sort x",
        "tail x",
        "tail -5 x",
        "tail -n 5 f",
        "tail -qc5 x",
        "tail --lines=5 x",
        "head -5 x",
        "grep -n a x",
        "rg a",
        "diff a b",
        "date",
        "find .",
        "file x",
        "du",
        "git log",
        "git branch",
    ] {
        assert_eq!(judged_by_words(&line::read(line)), Ok(()), "{line}");
    }
}
