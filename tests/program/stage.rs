//! What the tests of this program ask of a stage besides what all do, and of what lies and runs around it.

use std::fs;
use std::path::Path;
use std::path::PathBuf;

use crate::real::Said;
use crate::real::Stage;

impl Stage {
    pub(crate) fn run_dir(&self, id: &str) -> PathBuf {
        self.path("state/tiller/runs").join(id)
    }

    /// The name of the model that speaks this script.
    pub(crate) fn model(&self, script: &str) -> String {
        format!("scripted/{}", self.write("script.toml", script).display())
    }

    /// Starts a run of this script, and prints lines.
    pub(crate) fn run(&self, script: &str) -> Said {
        self.ask(&["run", "do it", "--plain", "--model", &self.model(script)])
    }

    /// Allows all that waits in the only run, as it is shown.
    pub(crate) fn allow(&self) {
        let shown = self.show();
        for one in shown["waiting"].as_array().unwrap() {
            let id = shown.pointer("/summary/id").unwrap().as_str().unwrap();
            let allowed = self.ask(&["approve", id, one["call"].as_str().unwrap(), one["digest"].as_str().unwrap()]);
            allowed.check(0, &["recorded"]);
        }
    }
}

/// Every file below a folder with its bytes.
pub(crate) fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            found.extend(files(&entry.path()));
        } else if entry.file_type().unwrap().is_file() {
            found.push((entry.path(), fs::read(entry.path()).unwrap()));
        }
    }
    found
}

/// Whether a process runs whose command line holds this.
pub(crate) fn is_alive(words: &str) -> bool {
    fs::read_dir("/proc").unwrap().filter_map(Result::ok).any(|entry| {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let state = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let is_zombie = state.rsplit(')').next().is_some_and(|rest| rest.trim().starts_with('Z'));
        !is_zombie && String::from_utf8_lossy(&line).replace('\0', " ").contains(words)
    })
}
