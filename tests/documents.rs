//! The documents mention only files that are there.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::path::PathBuf;

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
