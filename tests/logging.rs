//! The log: what reaches the file, and who may read it. A program of its own with one test, because a process has one log,
//! and what other tests say must not come into it.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use tiller::domain::time::Span;
use tiller::domain::time::Timestamp;
use tiller::engine::clock::Clock;
use tiller::engine::redaction::Redactor;

/// 2026-11-29, 16:00 UTC, in milliseconds.
const TODAY: u64 = 1_795_968_000_000;
const DAY: u64 = 24 * 3_600 * 1_000;

/// A clock that is set.
struct Set(AtomicU64);

#[async_trait]
impl Clock for Set {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }

    fn mono(&self) -> Span {
        Span(0)
    }

    async fn sleep_until(&self, _: Timestamp) {}
}

fn at_today() -> Arc<Set> {
    Arc::new(Set(AtomicU64::new(TODAY)))
}

/// Names, rights and lengths of what is in a folder, and its own rights.
fn inventory(folder: &Path) -> Vec<(PathBuf, u32, u64)> {
    let entry = |path: PathBuf| (path.clone(), mode(&path), path.symlink_metadata().unwrap().len());
    let inside = fs::read_dir(folder).unwrap().map(|one| entry(one.unwrap().path()));
    let mut all: Vec<_> = inside.chain([entry(folder.to_path_buf())]).collect();
    all.sort();
    all
}

/// What stands in the place of the folder, or of today's file, and is not ours is neither followed, waited for nor changed.
fn no_log_is_kept_elsewhere() {
    let state = tempfile::tempdir().unwrap();
    let (folder, theirs) = (state.path().join("log"), state.path().join("theirs"));
    fs::create_dir(&theirs).unwrap();
    for day in 1..25 {
        fs::write(theirs.join(format!("tiller.2020-01-{day:02}.log")), "not yours").unwrap();
    }
    for (path, mode) in [(&theirs, 0o755), (&theirs.join("tiller.2020-01-24.log"), 0o644)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let before = inventory(&theirs);
    let said = |why: &str| {
        let sentence = tiller::logging::start(state.path(), None, redactor(), at_today()).err().unwrap();
        let wanted = format!("the log in {} can't be written ({why}); nothing is logged", folder.display());
        assert_eq!(sentence, wanted);
        assert_eq!(inventory(&theirs), before);
    };
    std::os::unix::fs::symlink(&theirs, &folder).unwrap();
    said("it is not a folder");
    fs::remove_file(&folder).unwrap();
    fs::write(&folder, "").unwrap();
    said("it is not a folder");
    fs::remove_file(&folder).unwrap();
    fs::create_dir(&folder).unwrap();
    let today = folder.join("tiller.2026-11-29.log");
    nix::unistd::mkfifo(&today, nix::sys::stat::Mode::S_IRWXU).unwrap();
    said("tiller.2026-11-29.log in it is not a file");
    fs::remove_file(&today).unwrap();
    std::os::unix::fs::symlink(theirs.join("tiller.2020-01-24.log"), &today).unwrap();
    said("tiller.2026-11-29.log in it is not a file");
    fs::remove_file(&today).unwrap();
    fs::create_dir(&today).unwrap();
    said("tiller.2026-11-29.log in it is not a file");
    fs::remove_dir(&today).unwrap();
    fs::hard_link(theirs.join("tiller.2020-01-24.log"), &today).unwrap();
    said("tiller.2026-11-29.log in it has another name elsewhere");
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn redactor() -> Arc<Redactor> {
    Arc::new(Redactor::new(
        "key".to_string().into(),
        [("DB_PASSWORD".to_string(), "hunter2 hunter2".to_string().into())],
    ))
}

/// Waits until a line is in a log file: it gets there on a thread of its own.
fn written(folder: &Path, name: &str, text: &str) {
    let start = std::time::Instant::now();
    while !fs::read_to_string(folder.join(name)).is_ok_and(|all| all.contains(text)) {
        assert!(start.elapsed() < std::time::Duration::from_secs(60), "`{text}` is not in {name}");
        std::thread::yield_now();
    }
}

#[test]
fn lines_go_to_a_private_file() {
    no_log_is_kept_elsewhere();
    let state = tempfile::tempdir().unwrap();
    let folder = state.path().join("log");
    let refused = tiller::logging::start(state.path(), Some("loud"), redactor(), at_today()).err().unwrap();
    assert_eq!(
        refused,
        "TILLER_LOG is none of off, error, warn, info, debug, trace; nothing is logged; set one of them"
    );

    fs::create_dir(&folder).unwrap();
    for day in 10..22 {
        fs::write(folder.join(format!("tiller.2020-01-{day}.log")), "old").unwrap();
    }
    let elsewhere = state.path().join("elsewhere");
    fs::write(&elsewhere, "theirs").unwrap();
    fs::set_permissions(&elsewhere, fs::Permissions::from_mode(0o644)).unwrap();
    fs::hard_link(&elsewhere, folder.join("tiller.2020-01-30.log")).unwrap();
    // Tomorrow's file is a pipe: what is logged then goes where the log is.
    nix::unistd::mkfifo(&folder.join("tiller.2026-11-30.log"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let clock = at_today();
    let log = tiller::logging::start(state.path(), Some(""), redactor(), clock.clone()).unwrap();
    tracing::info!(target: "tiller::engine", "kept {}", 1);
    tracing::debug!(target: "tiller::engine", "too fine");
    tracing::info!(target: "hyper::client", "authorization: secret");
    tracing::warn!(target: "hyper::client", "trouble");
    tracing::warn!(target: "tiller::engine", "it is hunter2 hunter2");
    let again = tiller::logging::start(state.path(), None, redactor(), at_today()).err().unwrap();
    assert!(again.ends_with("(a log was started before); nothing is logged"), "{again}");
    written(&folder, "tiller.2026-11-29.log", "it is [redacted");
    for (days, name) in [(1, "tiller.2026-11-29.log"), (2, "tiller.2026-12-01.log")] {
        clock.0.store(TODAY + days * DAY, Ordering::SeqCst);
        tracing::info!(target: "tiller::engine", "{days} later");
        written(&folder, name, &format!("{days} later"));
    }
    drop(log);

    assert_eq!((mode(&elsewhere), fs::read_to_string(&elsewhere).unwrap().as_str()), (0o644, "theirs"));
    let is_plain = |path: &PathBuf| path.symlink_metadata().is_ok_and(|one| one.is_file());
    let mut files: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| is_plain(path) && !path.ends_with("tiller.2020-01-30.log"));
    files.sort();
    assert!(files.len() <= 7, "{files:?}");
    assert_eq!(mode(&folder), 0o700);
    assert!(files.iter().all(|file| mode(file) == 0o600));
    let text = fs::read_to_string(folder.join("tiller.2026-11-29.log")).unwrap();
    assert!(text.contains("kept 1") && text.contains("trouble"), "{text}");
    assert!(text.contains("it is [redacted:DB_PASSWORD:"), "{text}");
    assert!(!text.contains("too fine") && !text.contains("secret"), "{text}");

    let blocked = state.path().join("file");
    fs::write(&blocked, "").unwrap();
    let sentence = tiller::logging::start(&blocked, None, redactor(), at_today()).err().unwrap();
    assert!(sentence.starts_with("the log in ") && sentence.ends_with("; nothing is logged"), "{sentence}");
}
