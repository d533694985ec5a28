//! The scenarios of docs/TESTING.md against the tests: none is missing, and what a row names as its proof is there.
//!
//! A row's proof is a test function (`tests/file.rs` `function`), or the stories of a file of tests/machine that carry
//! the scenario's number in their title (`tests/machine/file.txt`). A test called `s_12_…` and a story titled `S-12 …`
//! must be in the row of S-12; `UPDATE_DOCS=1 cargo test --test scenarios` adds those, to be read, not to be believed:
//! whether they show the whole *Then* is for a person, who empties the last column.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// How many scenarios there are.
const COUNT: u32 = 68;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A test function or a file of stories that proves something.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Proof {
    file: String,
    /// Nothing for the stories of the file.
    function: Option<String>,
}

#[derive(Debug)]
struct Row {
    number: u32,
    name: String,
    proofs: BTreeSet<Proof>,
    open: String,
}

/// The rows of the table of scenarios.
fn rows(page: &str) -> Vec<Row> {
    let lines = page.lines().filter(|line| line.starts_with("| S-"));
    lines.map(|line| row(line).unwrap_or_else(|| panic!("a row that can't be read: {line}"))).collect()
}

fn row(line: &str) -> Option<Row> {
    let cells: Vec<&str> = line.trim().trim_matches('|').split('|').map(str::trim).collect();
    let [id, name, proofs, open] = cells[..] else { return None };
    let number = id.strip_prefix("S-")?.parse().ok()?;
    Some(Row { number, name: name.to_string(), proofs: read_proofs(proofs), open: open.to_string() })
}

fn read_proofs(cell: &str) -> BTreeSet<Proof> {
    let mut proofs = BTreeSet::new();
    let mut file = String::new();
    for word in cell.split('`').skip(1).step_by(2) {
        if word.ends_with(".txt") {
            proofs.insert(Proof { file: word.to_string(), function: None });
        } else if word.ends_with(".rs") {
            file = word.to_string();
        } else {
            proofs.insert(Proof { file: file.clone(), function: Some(word.to_string()) });
        }
    }
    proofs
}

fn write_proofs(proofs: &BTreeSet<Proof>) -> String {
    let mut by_file: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for proof in proofs {
        let functions = by_file.entry(&proof.file).or_default();
        functions.extend(proof.function.iter().map(|function| format!("`{function}`")));
    }
    let files =
        by_file.iter().map(|(file, functions)| format!("`{file}` {}", functions.join(", ")).trim_end().to_string());
    files.collect::<Vec<_>>().join("; ")
}

fn write_row(row: &Row) -> String {
    let cells = [format!("S-{:02}", row.number), row.name.clone(), write_proofs(&row.proofs), row.open.clone()];
    let cells: Vec<String> = cells.iter().map(|cell| format!(" {cell} ").replace("  ", " ")).collect();
    format!("|{}|", cells.join("|"))
}

/// Every file below a folder that ends like this, by its path from the root.
fn files(folder: &str, ending: &str, found: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(root().join(folder)).unwrap().map(Result::unwrap) {
        let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            files(&name, ending, found);
        } else if name.ends_with(ending) {
            found.insert(name, fs::read_to_string(entry.path()).unwrap());
        }
    }
}

/// The names of the test functions of a source.
fn functions(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_test = false;
    for line in source.lines().map(str::trim) {
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            is_test = true;
        } else if !line.starts_with("#[") && !line.starts_with("//") {
            let name = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ");
            found.extend(name.filter(|_| is_test).and_then(|rest| rest.split('(').next()).map(str::to_string));
            is_test = false;
        }
    }
    found
}

/// The scenarios that the titles of a file's stories name.
fn titled(stories: &str) -> BTreeSet<u32> {
    let titles = stories.lines().filter_map(|line| line.strip_prefix("== "));
    titles.flat_map(|title| title.split("S-").skip(1)).filter_map(|rest| rest.get(..2)?.parse().ok()).collect()
}

/// The scenario that a test's name names.
fn named(function: &str) -> Option<u32> {
    let digits = function.strip_prefix("s_")?.split('_').next()?;
    (digits.len() == 2).then(|| digits.parse().ok())?
}

/// What there is: every test function, and for each scenario what carries its number.
fn there() -> (BTreeSet<Proof>, BTreeMap<u32, BTreeSet<Proof>>) {
    let (mut sources, mut stories) = (BTreeMap::new(), BTreeMap::new());
    files("tests", ".rs", &mut sources);
    files("src", ".rs", &mut sources);
    files("tests/machine", ".txt", &mut stories);
    let mut all = BTreeSet::new();
    let mut numbered: BTreeMap<u32, BTreeSet<Proof>> = BTreeMap::new();
    for (file, source) in &sources {
        for function in functions(source) {
            let proof = Proof { file: file.clone(), function: Some(function.clone()) };
            if let Some(number) = named(&function) {
                numbered.entry(number).or_default().insert(proof.clone());
            }
            all.insert(proof);
        }
    }
    for (file, text) in &stories {
        for number in titled(text) {
            numbered.entry(number).or_default().insert(Proof { file: file.clone(), function: None });
        }
    }
    (all, numbered)
}

#[test]
fn every_scenario_has_a_row_and_every_proof_is_there() {
    let path = root().join("docs/TESTING.md");
    let page = fs::read_to_string(&path).unwrap();
    let mut rows = rows(&page);
    let (all, numbered) = there();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let mut text = page.clone();
        for row in &mut rows {
            let before = write_row(row);
            let carry = numbered.get(&row.number);
            row.proofs.retain(|proof| all.contains(proof) || carry.is_some_and(|carry| carry.contains(proof)));
            row.proofs.extend(numbered.get(&row.number).into_iter().flatten().cloned());
            let old = page.lines().find(|line| line.starts_with(&format!("| S-{:02} ", row.number))).unwrap();
            if before != write_row(row) {
                text = text.replace(old, &write_row(row));
            }
        }
        fs::write(&path, text).unwrap();
    }
    let mut wrong = Vec::new();
    let numbers: Vec<u32> = rows.iter().map(|row| row.number).collect();
    if numbers != (1..=COUNT).collect::<Vec<u32>>() {
        wrong.push(format!("the table has not each of S-01 to S-{COUNT} once and in order: {numbers:?}"));
    }
    for row in &rows {
        let empty = BTreeSet::new();
        let carry = numbered.get(&row.number).unwrap_or(&empty);
        let missing = row.proofs.iter().filter(|proof| match proof.function {
            Some(_) => !all.contains(proof),
            None => !carry.contains(proof),
        });
        wrong.extend(missing.map(|proof| format!("S-{:02}: {proof:?} is not there", row.number)));
        let unlisted = carry.difference(&row.proofs);
        wrong.extend(unlisted.map(|proof| format!("S-{:02}: its row does not name {proof:?}", row.number)));
        if row.name.is_empty() || (row.proofs.is_empty() && row.open.is_empty()) {
            wrong.push(format!("S-{:02}: the row says neither what shows it nor what is open", row.number));
        }
    }
    let beyond = numbered.keys().filter(|number| !(1..=COUNT).contains(*number));
    wrong.extend(beyond.map(|number| format!("there is no scenario S-{number:02}")));
    assert!(wrong.is_empty(), "{}\n`UPDATE_DOCS=1 cargo test --test scenarios` adds what is there", wrong.join("\n"));
    let shown = rows.iter().filter(|row| row.open.is_empty()).count();
    println!("{shown} of {COUNT} scenarios are shown in full");
}

#[test]
fn rows_and_tests_are_read() {
    let line = "| S-03 | two | `tests/a.rs` `s_03_x`, `y`; `tests/machine/p.txt` | a part |";
    let row = row(line).unwrap();
    assert_eq!((row.number, row.name.as_str(), row.open.as_str()), (3, "two", "a part"));
    assert_eq!(write_proofs(&row.proofs), "`tests/a.rs` `s_03_x`, `y`; `tests/machine/p.txt`");
    assert_eq!(write_row(&row), line);
    assert_eq!(
        functions("#[test]\nfn a() {}\nfn b() {}\n#[tokio::test]\n#[x]\nasync fn s_04_c() {}\n"),
        ["a", "s_04_c"]
    );
    assert_eq!(titled("== K1, S-19 a\n> S-20\n== S-21 b, S-22\n").into_iter().collect::<Vec<_>>(), [19, 21, 22]);
    assert_eq!([named("s_30_x"), named("s_3_x"), named("spend_30")], [Some(30), None, None]);
}
