//! The log: what reaches the file, and who may read it. A program of its own with one test, because a process has one log,
//! and what other tests say must not come into it.
#![allow(clippy::unwrap_used)]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use tiller::engine::redaction::Redactor;

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn redactor() -> Arc<Redactor> {
    Arc::new(Redactor::new(
        "key".to_string().into(),
        [("DB_PASSWORD".to_string(), "hunter2 hunter2".to_string().into())],
    ))
}

#[test]
fn lines_go_to_a_private_file() {
    let state = tempfile::tempdir().unwrap();
    let folder = state.path().join("log");
    let refused = tiller::logging::start(state.path(), Some("loud"), redactor()).err().unwrap();
    assert_eq!(
        refused,
        "TILLER_LOG is none of off, error, warn, info, debug, trace; nothing is logged; set one of them"
    );

    std::fs::create_dir(&folder).unwrap();
    for day in 10..22 {
        std::fs::write(folder.join(format!("tiller.2020-01-{day}.log")), "old").unwrap();
    }
    let log = tiller::logging::start(state.path(), Some(""), redactor()).unwrap();
    tracing::info!(target: "tiller::engine", "kept {}", 1);
    tracing::debug!(target: "tiller::engine", "too fine");
    tracing::info!(target: "hyper::client", "authorization: secret");
    tracing::warn!(target: "hyper::client", "trouble");
    tracing::warn!(target: "tiller::engine", "it is hunter2 hunter2");
    let again = tiller::logging::start(state.path(), None, redactor()).err().unwrap();
    assert!(again.ends_with("(a log was started before); nothing is logged"), "{again}");
    drop(log);

    let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() <= 7, "{files:?}");
    assert_eq!(mode(&folder), 0o700);
    assert!(files.iter().all(|file| mode(file) == 0o600));
    let text = std::fs::read_to_string(files.last().unwrap()).unwrap();
    assert!(text.contains("kept 1") && text.contains("trouble"), "{text}");
    assert!(text.contains("it is [redacted:DB_PASSWORD:"), "{text}");
    assert!(!text.contains("too fine") && !text.contains("secret"), "{text}");

    let blocked = state.path().join("file");
    std::fs::write(&blocked, "").unwrap();
    let sentence = tiller::logging::start(&blocked, None, redactor()).err().unwrap();
    assert!(sentence.starts_with("the log in ") && sentence.ends_with("; nothing is logged"), "{sentence}");
}
