//! The safety cases in one place: each is in a file of fixtures, and each of those files is played. What is shown by a
//! test that was there anyway is named here; what waits for a part that does not exist yet is named in
//! docs/TESTING.md, and nowhere left out in silence.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;
use tiller::domain::limits;
use tiller::domain::visible;

/// How many cases there are.
const COUNT: usize = 185;
/// The files that hold them, with the test that plays each.
const FILES: [(&str, &str); 8] = [
    ("tests/fixtures/lines/cases.jsonl", "tests/lines/cases.rs"),
    ("tests/fixtures/rules/cases.jsonl", "tests/rules/cases.rs"),
    ("tests/fixtures/boxes.jsonl", "tests/boxes/cases.rs"),
    ("tests/fixtures/safety/seeing.jsonl", "tests/screens/reading.rs"),
    ("tests/fixtures/safety/trust.jsonl", "tests/trust/cases.rs"),
    ("tests/fixtures/safety/fetch.jsonl", "tests/fetch/cases.rs"),
    ("tests/fixtures/safety/elsewhere.jsonl", "tests/safety.rs"),
    (WAITING, "docs/TESTING.md"),
];
const WAITING: &str = "tests/fixtures/safety/waiting.jsonl";
/// Cases that are shown by the test of this name in this file.
const ELSEWHERE: [(&str, &str, &str); 11] = [
    ("exfiltration-12", "tests/safety.rs", "links_and_pictures_of_a_model_are_text"),
    ("denial-of-service-02", "tests/safety.rs", "one_endless_line_is_cut_with_a_count"),
    ("denial-of-service-04", "src/tools/read_file.rs", "what_is_no_text_file_is_said"),
    ("denial-of-service-08", "src/tools/search_files.rs", "results_and_patterns_are_bounded"),
    ("denial-of-service-10", "tests/boxes/processes.rs", "a_flood_of_processes_ends_at_its_bound"),
    ("denial-of-service-11", "tests/tools/shell.rs", "too_much_output_ends_the_line"),
    ("denial-of-service-13", "src/tools/list_dir.rs", "long_lists_and_hidden_folders_are_bounded"),
    ("fatigue-and-self-approval-01", "tests/machine/stories.rs", "approvals"),
    ("fatigue-and-self-approval-03", "tests/machine/stories.rs", "approvals"),
    ("fatigue-and-self-approval-04", "tests/boxes/files.rs", "no_decision_comes_from_a_box"),
    (
        "fatigue-and-self-approval-06",
        "tests/rules/cases.rs",
        "a_rule_is_offered_only_where_it_would_have_allowed_this_very_call",
    ),
];

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn ids(file: &str) -> Vec<String> {
    let cases = read(file);
    let cases = cases.lines().filter(|line| !line.is_empty()).map(|line| serde_json::from_str::<Value>(line).unwrap());
    cases.map(|case| case["id"].as_str().unwrap().to_string()).collect()
}

#[test]
fn no_case_is_missing_and_every_file_is_played() {
    let mut places: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (file, player) in FILES {
        let name = Path::new(file).file_name().unwrap().to_str().unwrap();
        assert!(read(player).contains(name), "{player} does not mention {name}");
        for id in ids(file) {
            places.entry(id).or_default().push(file);
        }
    }
    let waits_and_does_not: Vec<_> =
        places.iter().filter(|(_, files)| files.len() > 1 && files.contains(&WAITING)).collect();
    assert!(waits_and_does_not.is_empty(), "{waits_and_does_not:?}");
    assert_eq!(places.len(), COUNT);
}

#[test]
fn what_is_shown_elsewhere_is_there_and_what_waits_is_told() {
    let named: Vec<&str> = ELSEWHERE.iter().map(|(id, _, _)| *id).collect();
    assert_eq!(ids("tests/fixtures/safety/elsewhere.jsonl").len(), named.len());
    for (id, file, function) in ELSEWHERE {
        assert!(ids("tests/fixtures/safety/elsewhere.jsonl").iter().any(|there| there == id), "{id} is no such case");
        assert!(read(file).contains(&format!("fn {function}(")), "{id}: there is no {function} in {file}");
    }
    let told = read("docs/TESTING.md");
    let missing: Vec<String> = ids(WAITING).into_iter().filter(|id| !told.contains(&format!("`{id}`"))).collect();
    assert!(missing.is_empty(), "docs/TESTING.md does not say that these wait: {missing:?}");
}

#[test]
fn links_and_pictures_of_a_model_are_text() {
    let text = "![x](https://example.invalid/?d=c2VjcmV0) [y](https://example.invalid/)";
    assert_eq!(visible::transcript(text), text);
}

#[test]
fn one_endless_line_is_cut_with_a_count() {
    let shown = visible::transcript(&"a".repeat(5_000_000));
    assert!(shown.ends_with(&format!("⟦+{} bytes⟧", 5_000_000 - limits::LINE_MAX_CELLS)), "{}", shown.len());
    assert!(shown.len() < limits::LINE_MAX_CELLS + 100);
    let short = "a".repeat(limits::LINE_MAX_CELLS);
    assert_eq!(visible::transcript(&short), short);
}
