//! The documents against the code: they mention only files that are there, the tree of docs/ARCHITECTURE.md is the real
//! one, and docs/JOURNAL.md tells of every event.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::path::PathBuf;

use tiller::domain::control;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The documents of the repository that are there.
fn documents() -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join("docs")).into_iter().flatten();
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| entry.unwrap().path()).chain([root().join("README.md")]).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "md") && path.exists());
    paths.sort();
    paths
}

#[test]
fn the_documents_mention_what_is_there() {
    let mut missing = Vec::new();
    for path in documents() {
        let text = fs::read_to_string(&path).unwrap();
        for (line, mention) in mentions(&text) {
            let from = if mention.is_link { path.parent().unwrap() } else { root() };
            if !from.join(&mention.target).exists() {
                let name = path.strip_prefix(root()).unwrap().display();
                missing.push(format!("{name}:{line}: {} is not there", mention.target));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

/// A file that a document mentions.
#[derive(Debug, PartialEq, Eq)]
struct Mention {
    target: String,
    /// A link is relative to the document, other mentions to the root.
    is_link: bool,
}

/// Files that a document links to, and paths of the repository that it names in backticks, each with its line. A name
/// in backticks counts when it begins with a folder of ours and has neither a wildcard nor a placeholder.
fn mentions(text: &str) -> Vec<(usize, Mention)> {
    let mut found = Vec::new();
    let mut is_fenced = false;
    for (at, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
        }
        if is_fenced {
            continue;
        }
        let links = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        let links = links.map(|link| link.split('#').next().unwrap()).filter(|link| !link.is_empty());
        for link in links.filter(|link| !link.contains("://") && !link.starts_with("mailto:")) {
            found.push((at + 1, Mention { target: link.to_string(), is_link: true }));
        }
        let quoted = line.split('`').skip(1).step_by(2).map(|quoted| quoted.split([' ', '#']).next().unwrap());
        let is_ours = |name: &&str| ["src/", "docs/", "tests/", "assets/"].iter().any(|ours| name.starts_with(ours));
        for name in quoted.filter(is_ours).filter(|name| !name.contains(['*', '<', '…', '{', '$'])) {
            found.push((at + 1, Mention { target: name.to_string(), is_link: false }));
        }
    }
    found
}

#[test]
fn mentions_of_files_are_found() {
    let text = "See [a](A.md#part), [b](https://x.org), [c](#here) and `src/main.rs`, `docs/B.md §3`, `src/*.rs`.\n```\n\
                `src/not.rs`\n```\n`cargo test` in [d](../README.md)\n";
    let found: Vec<String> = mentions(text)
        .into_iter()
        .map(|(line, mention)| format!("{line} {} {}", mention.target, if mention.is_link { "link" } else { "name" }))
        .collect();
    assert_eq!(found, ["1 A.md link", "1 src/main.rs name", "1 docs/B.md name", "5 ../README.md link"]);
}

fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap()
}

/// What stands between a heading and the next one.
fn section<'a>(text: &'a str, heading: &str) -> &'a str {
    let start = text.find(heading).unwrap_or_else(|| panic!("there is no heading {heading:?}"));
    let rest = &text[start + heading.len()..];
    rest.find("\n## ").map_or(rest, |end| &rest[..end])
}

/// The files that a tree lists: a line without indent is a folder, in others the first word is a file below it.
fn listed(tree: &str) -> Vec<String> {
    let mut folder = "";
    let mut found = Vec::new();
    for line in tree.lines() {
        match (line.starts_with(' '), line.split_whitespace().next()) {
            (false, Some(word)) => folder = word,
            (true, Some(word)) => found.push(format!("{folder}{word}")),
            (_, None) => {}
        }
    }
    found
}

/// The Rust sources below a folder.
fn sources(folder: &str, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(root().join(folder)).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            sources(&name, found);
        } else if name.ends_with(".rs") {
            found.insert(name);
        }
    }
}

#[test]
fn the_tree_is_the_real_one() {
    let text = read("docs/ARCHITECTURE.md");
    let tree = section(&text, "## 3. The tree").split("```").nth(1).unwrap();
    let told = listed(tree);
    let mut there = BTreeSet::new();
    sources("src", &mut there);
    sources("tests", &mut there);
    let unique: BTreeSet<String> = told.iter().cloned().collect();
    let missing: Vec<&String> = there.difference(&unique).collect();
    let gone: Vec<&String> = unique.difference(&there).collect();
    assert!(
        missing.is_empty() && gone.is_empty() && unique.len() == told.len(),
        "the tree in docs/ARCHITECTURE.md\nlacks {missing:#?}\nhas {gone:#?}, which are not there\nor lists a file twice"
    );
}

/// The events of the enum in `source`, as they are named in a record, in their order.
fn events(source: &str) -> Vec<String> {
    let body = source.split("pub enum Event {\n").nth(1).unwrap().split("\n}\n").next().unwrap();
    let variants = body.lines().filter_map(|line| line.strip_prefix("    "));
    let names = variants.filter(|line| line.starts_with(|letter: char| letter.is_ascii_uppercase()));
    names.map(|line| snake(line.split([' ', ',', '(']).next().unwrap())).collect()
}

fn snake(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

/// The rows of the tables in a text, as cells.
fn rows(text: &str) -> Vec<Vec<&str>> {
    let lines = text.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| ---"));
    lines.map(|line| line.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

#[test]
fn the_journal_page_tells_of_every_event() {
    let events = events(&read("src/domain/event.rs"));
    assert!(events.len() > 30, "only {} events were found in the source", events.len());
    let page = read("docs/JOURNAL.md");
    let told = rows(section(&page, "## What can happen"));
    let names: Vec<&str> = told.iter().skip(1).map(|row| row[0].trim_matches('`')).collect();
    assert_eq!(names, events, "the table of docs/JOURNAL.md and the enum in src/domain/event.rs");
    let groups = section(&page, "## Which records stand or fall together");
    let ungrouped: Vec<&String> = events.iter().filter(|name| !groups.contains(&format!("`{name}`"))).collect();
    assert!(ungrouped.is_empty(), "no group of docs/JOURNAL.md names {ungrouped:?}");

    let house = read("docs/ARCHITECTURE.md");
    let invariants: Vec<&str> = rows(section(&house, "## 6. Invariants")).iter().map(|row| row[0]).collect();
    let cited = told.iter().skip(1).flat_map(|row| row[3].split(", "));
    let unknown: Vec<&str> = cited.filter(|one| !invariants.contains(one)).collect();
    assert!(unknown.is_empty(), "docs/ARCHITECTURE.md has no invariant {unknown:?}");
}

#[test]
fn trees_events_and_rows_are_read() {
    assert_eq!(
        listed("src/\n  a.rs  what\n\n  b/c.rs  it is\ntests/\n  d.rs\n"),
        ["src/a.rs", "src/b/c.rs", "tests/d.rs"]
    );
    let source = "pub enum Event {\n    /// A.\n    RunCreated {\n        /// B.\n        terms: Terms,\n    },\n    Left,\n}\n\npub enum Other {\n    Not,\n}\n";
    assert_eq!(events(source), ["run_created", "left"]);
    assert_eq!(rows("| a | b |\n| --- | --- |\n| `c` | d e |\ntext | no\n"), [["a", "b"], ["`c`", "d e"]]);
    assert_eq!(section("## A\none\n## B\ntwo\n", "## A"), "\none");
}

#[test]
fn the_page_of_scripts_has_every_tool_with_its_arguments() {
    let page = fs::read_to_string(root().join("docs/SCRIPT.md")).unwrap();
    let rows: Vec<&str> = page.lines().skip_while(|line| *line != "## The tools").collect();
    let rows = rows.iter().take_while(|line| **line != "## Where a script goes").filter(|line| line.starts_with("| `"));
    let written: BTreeSet<String> = rows.map(|row| row.split(" | ").take(2).collect::<Vec<_>>().join(" | ")).collect();
    let specs = tiller::launch::hands::tools_anywhere().specs().into_iter().chain(control::specs().iter().cloned());
    let told = specs.map(|spec| {
        let required: Vec<&str> =
            spec.schema["required"].as_array().into_iter().flatten().filter_map(|name| name.as_str()).collect();
        let mark = |name: &String| format!("`{name}`{}", if required.contains(&name.as_str()) { "" } else { "?" });
        let names: Vec<String> = spec.schema["properties"].as_object().unwrap().keys().map(mark).collect();
        format!("| `{}` | {}", spec.name, names.join(", "))
    });
    assert_eq!(written, told.collect());
}

#[test]
fn the_glossary_has_each_word_once_and_in_order() {
    let page = read("docs/GLOSSARY.md");
    let words: Vec<String> = page
        .lines()
        .filter_map(|line| line.strip_prefix("- **")?.split_once("**: "))
        .map(|(word, _)| word.to_lowercase())
        .collect();
    assert!(words.len() > 60, "only {} words were found", words.len());
    let mut sorted = words.clone();
    sorted.sort();
    sorted.dedup();
    assert_eq!(words, sorted);
}
