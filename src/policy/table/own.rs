//! Commands of the read-only table that have a language of their own: echo, date, sed, find.

use crate::policy::table::Words;

type Judge = fn(&Words<'_>) -> Result<(), String>;

/// Tests and actions of find that stand alone.
const ALONE: [&str; 24] = [
    "-print",
    "-print0",
    "-ls",
    "-empty",
    "-true",
    "-false",
    "-not",
    "-a",
    "-and",
    "-o",
    "-or",
    "!",
    "(",
    ")",
    ",",
    "-prune",
    "-depth",
    "-mount",
    "-xdev",
    "-daystart",
    "-quit",
    "-executable",
    "-readable",
    "-writable",
];
/// Tests and actions of find with a value, which is no path that is opened.
const WITH_A_VALUE: [&str; 21] = [
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-wholename",
    "-regex",
    "-iregex",
    "-regextype",
    "-type",
    "-maxdepth",
    "-mindepth",
    "-size",
    "-mtime",
    "-mmin",
    "-ctime",
    "-cmin",
    "-atime",
    "-amin",
    "-perm",
    "-links",
    "-printf",
];

pub(super) fn find(name: &str) -> Option<Judge> {
    match name {
        "echo" => Some(echo),
        "date" => Some(date),
        "sed" => Some(sed),
        "find" => Some(walk),
        _ => None,
    }
}

/// It prints its words, whatever they are; those that the program itself takes for options are listed.
fn echo(words: &Words<'_>) -> Result<(), String> {
    let is_text = |word: &str| !word.starts_with('-') || word.contains(' ') || word.chars().all(|letter| letter == '-');
    let odd = words.arguments.iter().find(|word| !is_text(word) && !["-n", "-e", "-E"].contains(&word.as_str()));
    odd.map_or(Ok(()), |word| Err(format!("echo {word} is not listed")))
}

/// It shows the time; with most words it would set the clock or read a file.
fn date(words: &Words<'_>) -> Result<(), String> {
    let is_listed = |word: &str| ["-u", "--utc", "--universal"].contains(&word) || word.starts_with('+');
    let odd = words.arguments.iter().find(|word| !is_listed(word));
    odd.map_or(Ok(()), |word| Err(format!("date {word} is not listed")))
}

/// Only `sed -n 'N,Mp' FILE…`: its language can write and run.
fn sed(words: &Words<'_>) -> Result<(), String> {
    let Some(([option, script], files)) = words.arguments.split_first_chunk() else {
        return Err("sed does more than print lines".to_string());
    };
    if option != "-n" || !script.split(';').all(is_range) {
        return Err("sed does more than print lines by their numbers".to_string());
    }
    if let Some(odd) = files.iter().find(|word| word.starts_with('-')) {
        return Err(format!("sed {odd} is not listed"));
    }
    files.iter().try_for_each(|word| words.file(word))
}

/// `Np`, `N,Mp` or `N,$p`.
fn is_range(script: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.chars().all(|letter| letter.is_ascii_digit());
    let Some(range) = script.strip_suffix('p') else { return false };
    match range.split_once(',') {
        Some((from, to)) => is_number(from) && (is_number(to) || to == "$"),
        None => is_number(range) || range == "$",
    }
}

/// Folders, then tests and actions that are listed.
fn walk(words: &Words<'_>) -> Result<(), String> {
    let is_place = |word: &&String| !word.starts_with('-') && !["(", ")", ",", "!"].contains(&word.as_str());
    let places = words.arguments.iter().take_while(is_place).count();
    let (places, tests) = words.arguments.split_at_checked(places).unwrap_or_default();
    places.iter().try_for_each(|word| words.place(word))?;
    let mut tests = tests.iter().map(String::as_str);
    while let Some(test) = tests.next() {
        let is_listed = ALONE.contains(&test) || (WITH_A_VALUE.contains(&test) && tests.next().is_some());
        if !is_listed {
            return Err(format!("find {test} is not listed"));
        }
    }
    Ok(())
}
