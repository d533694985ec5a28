//! Whether something still runs.
#![allow(clippy::unwrap_used)]

use std::fs;

/// Whether a process runs whose command line holds this.
pub(crate) fn is_alive(words: &str) -> bool {
    fs::read_dir("/proc").unwrap().filter_map(Result::ok).any(|entry| {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let state = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let is_zombie = state.rsplit(')').next().is_some_and(|rest| rest.trim().starts_with('Z'));
        !is_zombie && String::from_utf8_lossy(&line).replace('\0', " ").contains(words)
    })
}
