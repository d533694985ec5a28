//! What the tests of the real program share: a world of its own in a temporary directory, and what the program said.
#![allow(dead_code, missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

use serde_json::Value;
use tempfile::TempDir;

/// The longest that anything here may take: the machine may be busy, and a test that hangs must fail.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A script that plans and is done.
pub(crate) const SHORT: &str = r#"
[[step]]
name = "plan"
text = "a plan"
calls = [ { tool = "update_plan", args = { todos = [ { id = "a", title = "A", status = "done" } ] } } ]
[[step]]
name = "claim"
text = "done"
calls = [ { tool = "finish", args = { summary = "it is done" } } ]
"#;

/// A script that plans, runs a shell line, and is done.
pub(crate) fn shell(line: &str) -> String {
    let (plan, claim) = SHORT.split_at(SHORT.rfind("[[step]]").unwrap());
    let line = toml::Value::String(line.to_string());
    format!(
        "{plan}[[step]]\nname = \"act\"\ncalls = [ {{ tool = \"shell\", args = {{ command = {line} }} }} ]\n{claim}"
    )
}

/// A home, a configuration, a state directory and a workspace that nobody else uses.
pub(crate) struct Stage {
    dir: TempDir,
}

/// What the program said, and how it ended.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    /// Asserts how it ended, and that both texts together hold each of these.
    pub(crate) fn check(&self, code: i32, sentences: &[&str]) {
        assert_eq!(self.code, code, "{self}");
        for sentence in sentences {
            assert!(self.out.contains(sentence) || self.err.contains(sentence), "no `{sentence}` in\n{self}");
        }
        assert!(!self.err.contains("panicked"), "{self}");
    }
}

impl std::fmt::Display for Said {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "exit {}\n--- out\n{}\n--- err\n{}", self.code, self.out, self.err)
    }
}

impl Stage {
    pub(crate) fn new() -> Self {
        Stage::in_dir(tempfile::tempdir().unwrap())
    }

    pub(crate) fn in_dir(dir: TempDir) -> Self {
        fs::create_dir(dir.path().join("work")).unwrap();
        Stage { dir }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// The name of the model that speaks this script.
    pub(crate) fn model(&self, script: &str) -> String {
        format!("scripted/{}", self.write("script.toml", script).display())
    }

    /// The rehearsal's own script without its pauses; its path.
    pub(crate) fn fast_rehearsal(&self) -> String {
        let script = include_str!("../../assets/demo/script.toml");
        let lines: Vec<&str> = script.lines().filter(|line| !line.starts_with("first_ms = ")).collect();
        let script =
            lines.join("\n").replace("chunk_ms = 22", "").replace("retry_after_ms = 400", "retry_after_ms = 1");
        self.write("fast.toml", &script).display().to_string()
    }

    pub(crate) fn environment(&self) -> Vec<(&'static str, String)> {
        vec![
            ("PATH", "/usr/bin:/bin".to_string()),
            ("HOME", self.dir.path().display().to_string()),
            ("XDG_STATE_HOME", self.path("state").display().to_string()),
            ("XDG_CONFIG_HOME", self.path("config").display().to_string()),
            ("TZ", "UTC".to_string()),
        ]
    }

    pub(crate) fn tiller(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tiller"));
        command
            .args(words)
            .env_clear()
            .envs(self.environment())
            .current_dir(self.path("work"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn ask(&self, words: &[&str]) -> Said {
        said(self.tiller(words).spawn().unwrap())
    }

    /// Starts a run of this script, and prints lines.
    pub(crate) fn run(&self, script: &str) -> Said {
        self.ask(&["run", "do it", "--plain", "--model", &self.model(script)])
    }

    /// All runs as the list tells them.
    pub(crate) fn runs(&self) -> Vec<Value> {
        let listed = self.ask(&["runs", "--json"]);
        listed.check(0, &[]);
        listed.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The names of all runs that can be opened.
    pub(crate) fn ids(&self) -> Vec<String> {
        self.runs().iter().filter_map(|run| Some(run.pointer("/summary/id")?.as_str()?.to_string())).collect()
    }

    /// The only run, in full.
    pub(crate) fn show(&self) -> Value {
        let ids = self.ids();
        assert_eq!(ids.len(), 1, "{ids:?}");
        let shown = self.ask(&["show", &ids[0], "--json"]);
        shown.check(0, &[]);
        serde_json::from_str(&shown.out).unwrap()
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

    pub(crate) fn run_dir(&self, id: &str) -> PathBuf {
        self.path("state/tiller/runs").join(id)
    }
}

/// What a process says until its end, which must come.
pub(crate) fn said(mut child: Child) -> Said {
    let out = child.stdout.take().map(collect);
    let err = child.stderr.take().map(collect);
    let code = ends(&mut child);
    let text =
        |thread: Option<std::thread::JoinHandle<String>>| thread.map_or(String::new(), |one| one.join().unwrap());
    Said { code, out: text(out), err: text(err) }
}

fn collect(mut from: impl std::io::Read + Send + 'static) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// The exit status of a process that must end; minus the signal that ended it.
pub(crate) fn ends(child: &mut Child) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    let status = until("the process ends", || child.try_wait().unwrap());
    status.code().unwrap_or_else(|| -status.signal().unwrap())
}

/// Waits until there is something, and gives it.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
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
