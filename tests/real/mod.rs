//! The real program in a world of its own, in a temporary directory, and what it said: what every test of it needs. What only
//! those of one program need stands with them.

use std::fs;
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

/// A home, a configuration, a state directory and a workspace that nobody else uses.
pub(crate) struct Stage {
    dir: TempDir,
    /// Which boxes are used. What the tests compare must be the same on machines with boxes and without.
    pub(crate) boxes: &'static str,
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
        Stage { dir, boxes: "none" }
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

    pub(crate) fn environment(&self) -> Vec<(&'static str, String)> {
        vec![
            ("PATH", "/usr/bin:/bin".to_string()),
            ("HOME", self.dir.path().display().to_string()),
            ("XDG_STATE_HOME", self.path("state").display().to_string()),
            ("XDG_CONFIG_HOME", self.path("config").display().to_string()),
            ("TZ", "UTC".to_string()),
            ("TILLER_SANDBOX", self.boxes.to_string()),
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

    /// All runs as the list tells them.
    pub(crate) fn runs(&self) -> Vec<Value> {
        let listed = self.ask(&["runs", "--json"]);
        listed.check(0, &[]);
        listed.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The rehearsal's own script without its pauses; its path.
    pub(crate) fn fast_rehearsal(&self) -> String {
        let script = include_str!("../../assets/demo/script.toml");
        let lines: Vec<&str> = script.lines().filter(|line| !line.starts_with("first_ms = ")).collect();
        let script =
            lines.join("\n").replace("chunk_ms = 22", "").replace("retry_after_ms = 400", "retry_after_ms = 1");
        self.write("fast.toml", &script).display().to_string()
    }

    /// The only run, in full.
    pub(crate) fn show(&self) -> Value {
        let ids = self.ids();
        assert_eq!(ids.len(), 1, "{ids:?}");
        let shown = self.ask(&["show", &ids[0], "--json"]);
        shown.check(0, &[]);
        serde_json::from_str(&shown.out).unwrap()
    }

    /// The names of all runs that can be opened.
    pub(crate) fn ids(&self) -> Vec<String> {
        self.runs().iter().filter_map(|run| Some(run.pointer("/summary/id")?.as_str()?.to_string())).collect()
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
