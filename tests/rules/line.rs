//! Lines as the program reads them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::path::PathBuf;
use std::sync::OnceLock;

use tempfile::TempDir;
use tiller::domain::line::Line;
use tiller::domain::tool::Facts;
use tiller::tools::Scene;
use tiller::tools::Toolbox;
use tiller::tools::sandbox::Sandbox;

use crate::rules::stage::shell;

/// Reads a line. Nothing of it is run.
pub(crate) fn read(text: &str) -> Line {
    let facts = facts(text);
    facts.line.unwrap_or_else(|| panic!("{text:?}: {:?}", facts.problem))
}

/// The folder that lines are looked up in: `evil`, `docs/`, `.env`, a repository, and links that lead out of it. In `clean/`
/// and by `hidden` links lead to `.env`.
fn workspace() -> &'static Path {
    static FOLDER: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let (_, workspace) = FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let workspace = folder.path().canonicalize().unwrap().join("ws");
        for path in ["docs", "clean", ".git/hooks", ".git/objects", ".git/refs"] {
            fs::create_dir_all(workspace.join(path)).unwrap();
        }
        for (path, text) in
            [("evil", "x\n"), (".env", "A=b\n"), (".git/HEAD", "ref: refs/heads/main\n"), (".git/config", "[core]\n")]
        {
            fs::write(workspace.join(path), text).unwrap();
        }
        fs::write(folder.path().join("outside"), "x\n").unwrap();
        symlink("../outside", workspace.join("link")).unwrap();
        symlink("..", workspace.join("up")).unwrap();
        symlink(".env", workspace.join("hidden")).unwrap();
        symlink("../.env", workspace.join("clean/notes")).unwrap();
        (folder, workspace)
    });
    workspace
}

/// What is found out about a line.
pub(crate) fn facts(text: &str) -> Facts {
    let scene = Scene {
        workspace: workspace().to_path_buf(),
        off_limits: Vec::new(),
        pre_images: None,
        program: PathBuf::new(),
        passed_variables: Vec::new(),
        sandbox: Sandbox::default(),
        git: tiller::tools::gits::own::Own::default(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(Toolbox::new(scene).prepare(&shell(text)))
}
