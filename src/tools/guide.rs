//! The guide of a folder, and what in it looks like a configuration of tiller: looked for by name, and read as every file
//! is, never through a link. It judges no trust: who calls `read` has found that the folder is trusted.

use std::path::Path;

use crate::domain::guide::NAMES;
use crate::domain::guide::NEVER_READ;
use crate::tools::place;

/// The file of the guide: the first of its names that is a regular file. What is in it is not read.
pub fn find(workspace: &Path) -> Option<&'static str> {
    let is_file = |name: &&&str| workspace.join(name).symlink_metadata().is_ok_and(|found| found.is_file());
    NAMES.iter().find(is_file).copied()
}

/// The file of the guide and its bytes. Nothing where there is none; errors, with the file's name and a reason, when it
/// can't be read.
pub fn read(workspace: &Path) -> Result<Option<(&'static str, Vec<u8>)>, String> {
    let Some(name) = find(workspace) else { return Ok(None) };
    match place::read_file(&workspace.join(name)) {
        Ok((bytes, _)) => Ok(Some((name, bytes))),
        Err(error) => Err(format!("{name} can't be read ({})", error.desc().to_lowercase())),
    }
}

/// What else is there that could be a guide, or a configuration of tiller, and is not read.
pub fn others(workspace: &Path) -> Vec<&'static str> {
    let read = find(workspace);
    let is_there = |name: &&str| Some(*name) != read && workspace.join(name).symlink_metadata().is_ok();
    NAMES.into_iter().filter(is_there).chain(ignored(workspace)).collect()
}

/// What is there under a name of tiller's configuration, and is not read.
pub fn ignored(workspace: &Path) -> Vec<&'static str> {
    NEVER_READ.iter().filter(|name| workspace.join(name).symlink_metadata().is_ok()).copied().collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::tools::stage::Stage;
    use std::os::unix::fs::symlink;

    fn check(stage: &Stage, wanted: &str) {
        let found = match read(&stage.scene.workspace) {
            Ok(None) => "none".to_string(),
            Ok(Some((name, bytes))) => format!("{name}: {}", String::from_utf8_lossy(&bytes)),
            Err(why) => why,
        };
        assert_eq!(found, wanted);
    }

    #[test]
    fn the_first_regular_file_counts_and_no_link_is_followed() {
        let stage = Stage::new();
        let workspace = &stage.scene.workspace;
        check(&stage, "none");
        stage.write("../outside/secret", "secret");
        stage.write("../outside/copilot-instructions.md", "secret");
        symlink(stage.root().join("outside"), workspace.join(".github")).unwrap();
        symlink(stage.root().join("outside/secret"), workspace.join("CLAUDE.md")).unwrap();
        std::fs::create_dir(workspace.join("AGENTS.md")).unwrap();
        nix::unistd::mkfifo(&workspace.join("GEMINI.md"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        check(&stage, ".github/copilot-instructions.md can't be read (not a directory)");
        stage.write(".cursorrules", "be short");
        check(&stage, ".cursorrules: be short");
        std::fs::remove_dir(workspace.join("AGENTS.md")).unwrap();
        stage.write("AGENTS.md", "run make");
        check(&stage, "AGENTS.md: run make");
        stage.write("sub/AGENTS.md", "deeper");
        check(&stage, "AGENTS.md: run make");
    }

    #[test]
    fn configuration_is_seen_and_not_read() {
        let stage = Stage::new();
        assert!(ignored(&stage.scene.workspace).is_empty());
        stage.write(".tiller/rules.toml", "allow all");
        symlink("nowhere", stage.scene.workspace.join("tiller.toml")).unwrap();
        assert_eq!(ignored(&stage.scene.workspace), [".tiller", "tiller.toml"]);
    }
}
