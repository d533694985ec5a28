//! The golden journals of tests/fixtures/journals, by name, and a home for journals that a test writes.

use std::path::Path;
use std::path::PathBuf;

use tiller::domain::event::Owner;
use tiller::domain::event::OwnerMode;
use tiller::domain::event::Record;
use tiller::domain::id::RunId;
use tiller::store::place::Home;
use tiller::store::transfer;

pub fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/journals")
}

/// The names of the first set, `<format>-<name>`: long lives, none of which goes back.
pub fn names() -> Vec<String> {
    within("")
}

/// The names of all of them: besides the first set, what it lacks.
pub fn all() -> Vec<String> {
    let second = within("second").into_iter().map(|name| format!("second/{name}"));
    names().into_iter().chain(second).collect()
}

fn within(set: &str) -> Vec<String> {
    let entries = std::fs::read_dir(folder().join(set)).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> =
        entries.filter_map(|name| Some(name.to_str()?.strip_suffix(".jsonl")?.to_string())).collect();
    names.sort();

    names
}

pub fn read(file: &str) -> String {
    std::fs::read_to_string(folder().join(file)).unwrap()
}

pub fn golden(name: &str) -> (RunId, Vec<Record>) {
    let carried = transfer::read(&read(&format!("{name}.jsonl"))).unwrap();
    (carried.run, carried.records)
}

/// A process that only looks.
pub fn home(dir: &Path) -> Home {
    let owner = Owner { pid: 1, host: "box".to_string(), version: "0".to_string(), mode: OwnerMode::Records };
    Home::new(dir.join("state"), owner).unwrap()
}
