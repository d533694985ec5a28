//! The same faults in other clothes. Whatever is done to a line that may run unasked: either it is asked about, or bash
//! itself reads the same words in it. And any text at all is read without harm, with every byte accounted for.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use std::process::Stdio;

use serde_json::Value;
use tiller::domain::line::Joint;
use tiller::domain::line::Plain;
use tiller::domain::line::Redirect;
use tiller::tools::line;

use crate::chance::Chance;
use crate::lines::stage::judged_by_words;

const SIGNS: [&str; 40] = [
    ";",
    "&",
    "|",
    "&&",
    "||",
    "<",
    ">",
    "(",
    ")",
    "$",
    "`",
    "\\",
    "\"",
    "'",
    "*",
    "?",
    "[",
    "]",
    "{",
    "}",
    "~",
    "!",
    "#",
    "=",
    "%",
    "^",
    "\n",
    "\r",
    "\t",
    "\u{a0}",
    "\u{2028}",
    "\u{200b}",
    "\u{441}",
    "\0",
    " ",
    "2>&1",
    ">/dev/null",
    "<<<",
    "$(touch MARK)",
    "`touch MARK`",
];
/// What is put before, behind or around a line.
const CLOTHES: [(&str, &str); 24] = [
    ("env ", ""),
    ("sudo ", ""),
    ("command ", ""),
    ("exec ", ""),
    ("builtin ", ""),
    ("nice ", ""),
    ("time ", ""),
    ("! ", ""),
    ("xargs ", ""),
    ("timeout 5 ", ""),
    ("A=1 ", ""),
    ("PATH=. ", ""),
    ("{ ", "; }"),
    ("(", ")"),
    ("$(", ")"),
    ("", " > MARK"),
    ("", " 2> MARK"),
    ("", " >> MARK"),
    ("", " < src/a.rs"),
    ("", " & touch MARK"),
    ("", "; touch MARK"),
    ("", " && touch MARK"),
    ("", " | tee MARK"),
    ("", "\ntouch MARK"),
];

/// Lines that may run unasked, of all that the tests know.
fn unasked() -> Vec<String> {
    let cases = include_str!("../fixtures/lines/cases.jsonl").lines();
    let agent = include_str!("../fixtures/lines/agent.jsonl").lines();
    let texts = cases.chain(agent).map(|line| serde_json::from_str::<Value>(line).unwrap());
    let texts =
        texts.filter_map(|value| value["line"].as_str().or(value["input"]["command"].as_str()).map(String::from));
    texts.filter(|text| judged_by_words(&line::read(text)).is_ok()).collect()
}

fn words(plain: &Plain) -> Vec<Vec<String>> {
    plain.segments.iter().map(|segment| segment.argv.clone()).collect()
}

/// What bash would run for each of these lines, with every command ending well and with every one failing. Nothing is
/// run: there are no programs, and no commands of its own but those that this needs.
fn read_by_bash(lines: &BTreeSet<String>) -> BTreeMap<String, BTreeSet<Vec<String>>> {
    const SCRIPT: &str = r#"
        command_not_found_handle() { printf '%s\0' "$@" $'\x01' >&9; return $status; }
        enable -n $(compgen -b | grep -vxE 'eval|read|printf|return|enable|exit')
        enable -n enable
        for_each() { while IFS= read -r -d '' text <&8; do printf '%s\0' $'\x02' >&9; eval -- "$text"; done; }
        for_each 2>/dev/null
    "#;
    let folder = tempfile::tempdir().unwrap();
    let mut found: BTreeMap<String, BTreeSet<Vec<String>>> = BTreeMap::new();
    let list: Vec<u8> = lines.iter().flat_map(|line| line.bytes().chain([0])).collect();
    fs::write(folder.path().join("lines"), list).unwrap();
    fs::create_dir(folder.path().join("empty")).unwrap();
    for status in ["0", "1"] {
        let script = format!(
            "status={status}; exec 8<lines 9>told; cd empty; {}",
            SCRIPT.replace("for_each 2>", "PATH=/nonexistent; for_each 2>")
        );
        let mut bash = Command::new("/bin/bash");
        bash.args(["--noprofile", "--norc", "-c", &script]).current_dir(folder.path()).stdin(Stdio::null());
        bash.stdout(Stdio::null()).status().unwrap();
        let told = fs::read(folder.path().join("told")).unwrap();
        let told = String::from_utf8(told).unwrap();
        let blocks: Vec<&str> = told.split("\u{2}\0").skip(1).collect();
        assert_eq!(blocks.len(), lines.len(), "bash did not come to the end");
        for (line, block) in lines.iter().zip(blocks) {
            let commands = block.split("\u{1}\0").filter(|command| !command.is_empty());
            let commands = commands.map(|argv| argv.trim_end_matches('\0').split('\0').map(String::from).collect());
            found.entry(line.clone()).or_default().extend(commands);
        }
    }
    assert_eq!(fs::read_dir(folder.path().join("empty")).unwrap().count(), 0, "something was written");
    found
}

/// Whether bash reads no other words in these lines than we do.
fn compare(lines: &BTreeSet<String>) {
    for (text, theirs) in read_by_bash(lines) {
        let ours: BTreeSet<Vec<String>> = words(&line::read(&text).plain.unwrap()).into_iter().collect();
        // Without a word at its end, a trailing NUL is part of the last one.
        let strip = |argv: &Vec<String>| argv.join("\0").trim_end_matches('\0').to_string();
        let (ours, theirs): (BTreeSet<_>, BTreeSet<_>) =
            (ours.iter().map(strip).collect(), theirs.iter().map(strip).collect());
        // What is named by its place is looked for nowhere, and told to nobody.
        let is_told = !ours.iter().any(|argv| argv.split('\0').next().is_some_and(|name| name.contains('/')));
        assert!(
            theirs.is_subset(&ours) && (!theirs.is_empty() || !is_told),
            "{text}: bash reads {theirs:?}, we read {ours:?}"
        );
    }
}

#[test]
fn a_mutation_is_asked_about_or_means_the_same_to_bash() {
    let lines = unasked();
    assert!(lines.len() >= 200, "{}", lines.len());
    let mut chance = Chance::new(7);
    let (mut allowed, mut asked) = (BTreeSet::new(), 0);
    for text in &lines {
        let places: Vec<usize> = (0..=text.len()).filter(|at| text.is_char_boundary(*at)).collect();
        let mut mutated: Vec<String> =
            CLOTHES.iter().map(|(before, behind)| format!("{before}{text}{behind}")).collect();
        for dressed in &mutated {
            assert!(judged_by_words(&line::read(dressed)).is_err(), "{dressed}");
        }
        for _ in 0..20 {
            let (at, sign) = (chance.pick(&places), chance.pick(&SIGNS));
            mutated.push(format!("{}{sign}{}", &text[..at], &text[at..]));
        }
        // Two letters exchanged, one doubled, one left out.
        for _ in 0..5 {
            let at = chance.pick(&places);
            let next = at + usize::from(at < text.len());
            mutated.push(format!("{}{}", &text[..at], &text[next..]));
            mutated.push(format!("{}{}", &text[..next], &text[at..]));
        }
        for mutation in mutated {
            match judged_by_words(&line::read(&mutation)) {
                Ok(()) => _ = allowed.insert(mutation),
                Err(_) => asked += 1,
            }
        }
    }
    assert!(allowed.len() > 500 && asked > 500, "{} {asked}", allowed.len());
    compare(&allowed);
}

/// How often: 100,000 times, or as the variable TILLER_FUZZ says.
fn rounds() -> u64 {
    std::env::var("TILLER_FUZZ").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(100_000)
}

/// The letters of a line that are no blank and no quote, in order of the alphabet.
fn letters(texts: impl Iterator<Item = String>) -> Vec<char> {
    let mut letters: Vec<char> = texts.collect::<String>().chars().filter(|one| !" '\"".contains(*one)).collect();
    letters.sort_unstable();
    letters
}

/// What a plain line must have been written as.
fn written(plain: &Plain) -> impl Iterator<Item = String> {
    plain.segments.iter().flat_map(|segment| {
        let joint = match segment.joint {
            Joint::First => "",
            Joint::Pipe => "|",
            Joint::And => "&&",
            Joint::Or => "||",
            Joint::Then => ";",
        };
        let redirects = segment.redirects.iter().map(|redirect| match redirect {
            Redirect::OutputToNull => ">/dev/null",
            Redirect::ErrorsToNull => "2>/dev/null",
            Redirect::ErrorsToOutput => "2>&1",
        });
        std::iter::once(joint.to_string()).chain(segment.argv.iter().cloned()).chain(redirects.map(String::from))
    })
}

#[test]
fn any_text_is_read_and_no_byte_is_passed_over() {
    const PIECES: [&str; 34] = [
        "ls",
        "echo",
        "a",
        "-n",
        "x.rs",
        "src/",
        "fn main",
        "'",
        "\"",
        " ",
        " ",
        " ",
        ";",
        "|",
        "&",
        "&&",
        "||",
        ">",
        "2>",
        "2>&1",
        "/dev/null",
        ">/dev/null",
        "<",
        "$",
        "`",
        "(",
        ")",
        "\\",
        "*",
        "~",
        "=",
        "#",
        "\n",
        "é",
    ];
    let mut chance = Chance::new(11);
    let mut plain_lines = BTreeSet::new();
    for _ in 0..rounds() {
        let length = chance.below(12) + 1;
        let text: String = (0..length).map(|_| if chance.percent(20) { " " } else { chance.pick(&PIECES) }).collect();
        let read = line::read(&text);
        let judged = judged_by_words(&read);
        let Ok(plain) = &read.plain else {
            assert!(judged.is_err(), "{text:?}");
            continue;
        };
        assert!(
            !plain.segments.is_empty() && plain.segments.iter().all(|segment| !segment.argv.is_empty()),
            "{text:?}"
        );
        // `&>` is two redirections in one, and the last `;` says nothing.
        let is_short = text.contains("&>") || text.trim_end().ends_with(';');
        if !is_short {
            assert_eq!(letters(written(plain)), letters(std::iter::once(text.clone())), "{text:?}");
        }
        if plain_lines.len() < 2_000 {
            plain_lines.insert(text);
        }
    }
    assert!(plain_lines.len() >= 1_000, "{}", plain_lines.len());
    compare(&plain_lines);
}
