//! A workspace for shell lines, what the tools find out about a line in it, and what the table says of that.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::process::Output;
use std::process::Stdio;

use tempfile::TempDir;
use tiller::domain::approval::By;
use tiller::domain::id::CallId;
use tiller::domain::id::ClientId;
use tiller::domain::line::Line;
use tiller::domain::line::Named;
use tiller::domain::line::Touch;
use tiller::domain::time::Timestamp;
use tiller::domain::tool::CallState;
use tiller::domain::tool::EffectClass;
use tiller::domain::tool::Facts;
use tiller::domain::tool::ToolCall;
use tiller::policy::table;
use tiller::tools::Scene;
use tiller::tools::Toolbox;
use tiller::tools::line;
use tiller::tools::pipeline;
use tiller::tools::pipeline::Search;
use tiller::tools::sandbox::Sandbox;

/// What makes git take every repository for one that belongs to another user.
pub const OTHER_OWNER: &str = "GIT_TEST_ASSUME_DIFFERENT_OWNER";

pub struct Stage {
    pub workspace: PathBuf,
    toolbox: Toolbox,
    runtime: tokio::runtime::Runtime,
    _folder: TempDir,
}

impl Stage {
    /// `src/a.rs`, `src/b.txt`, `bin/`, `be.sh`, and an ordinary repository without a commit.
    pub fn new() -> Stage {
        let folder = tempfile::tempdir().unwrap();
        let workspace = folder.path().canonicalize().unwrap().join("ws");
        for path in ["src", "bin", "docs", "tests", ".git/objects", ".git/refs/heads"] {
            fs::create_dir_all(workspace.join(path)).unwrap();
        }
        for (path, text) in [
            ("src/a.rs", "fn main() {\n    println!(\"a\");\n}\n"),
            ("src/b.txt", "b\na\nb\n"),
            ("be.sh", "touch MARK\n"),
            (".git/HEAD", "ref: refs/heads/main\n"),
            (".git/config", "[core]\n\trepositoryformatversion = 0\n\tbare = false\n"),
        ] {
            fs::write(workspace.join(path), text).unwrap();
        }
        let scene = Scene {
            workspace: workspace.clone(),
            off_limits: vec![folder.path().join("state")],
            pre_images: None,
            program: PathBuf::from(env!("CARGO_BIN_EXE_tiller")),
            passed_variables: Vec::new(),
            sandbox: Sandbox::default(),
            git: tiller::tools::gits::own::Own::default(),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Stage { workspace, toolbox: Toolbox::new(scene), runtime, _folder: folder }
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.workspace.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn facts(&self, text: &str) -> Facts {
        let call = ToolCall {
            state: CallState::Running,
            allowed: Some(By::Operator(ClientId("test".to_string()))),
            attempts: 1,
            ..ToolCall::proposed(
                CallId(1),
                "",
                "shell",
                &serde_json::json!({ "command": text }).to_string(),
                EffectClass::External,
                Timestamp(0),
            )
        };
        self.runtime.block_on(self.toolbox.prepare(&call))
    }

    /// Whether a line runs unasked where it is confined.
    pub fn judged(&self, text: &str) -> Result<(), String> {
        let facts = self.facts(text);
        match (&facts.problem, &facts.line) {
            (None, Some(line)) => table::reads(line, &facts.touches),
            (problem, _) => Err(format!("{problem:?}")),
        }
    }

    /// Runs a plain line as it is run when it is allowed unasked, git in the repository of the nearest `.git`.
    pub fn run(&self, text: &str) -> Output {
        let plain = line::read(text).plain.unwrap();
        let folder = self.workspace.join(plain.folder().unwrap_or("."));
        let folder = folder.canonicalize().unwrap_or_default();
        let repository = folder.ancestors().find(|folder| folder.join(".git").symlink_metadata().is_ok());
        Command::new(env!("CARGO_BIN_EXE_tiller"))
            .args(pipeline::words(&plain, Search::System, repository))
            .current_dir(&self.workspace)
            .env("LC_ALL", "C")
            .env(OTHER_OWNER, "1")
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// Runs a line by bash.
    pub fn bash(&self, text: &str) -> Output {
        let mut bash = Command::new("/bin/bash");
        bash.args(["--noprofile", "--norc", "-c", text]).current_dir(&self.workspace).env("LC_ALL", "C");
        bash.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        bash.stdin(Stdio::null()).output().unwrap()
    }

    /// Every file with its content, and every folder, but what is in `.git`.
    pub fn tree(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut found = Vec::new();
        let mut folders = vec![self.workspace.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                found.push((path.clone(), fs::read(&path).unwrap_or_default()));
                if path.is_dir() {
                    folders.push(path);
                }
            }
        }
        found.sort();
        found
    }
}

/// What the table says of a line of which every word names a file that may be read: the words decide alone.
pub fn judged_by_words(line: &Line) -> Result<(), String> {
    let mut touches = Vec::new();
    for (command, argv) in line.commands.iter().enumerate() {
        let mut touch = |word: &str, named: Named| {
            touches.push(Touch { command, word: word.to_string(), named, is_foundation: false, runs_later: false });
        };
        touch("git", Named::Repository);
        for word in argv {
            touch(word, Named::File);
            word.split_once(':').into_iter().for_each(|(_, path)| touch(path, Named::File));
        }
        touch(".", Named::Folder { secret: None });
    }
    table::reads(line, &touches)
}
