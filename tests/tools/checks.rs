//! Checks that are no shell line: a file that is there, a file that matches, a call that ends well.

use std::fs;
use std::path::PathBuf;

use tiller::domain::limits;
use tiller::domain::terms::Check;
use tiller::tools::Reins;
use tiller::tools::Scene;
use tiller::tools::Toolbox;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

fn exists(path: &str) -> Check {
    Check::FileExists(path.to_string())
}

fn matches(path: &str, pattern: &str) -> Check {
    Check::FileMatches { path: path.to_string(), pattern: pattern.to_string() }
}

fn tool(name: &str, arguments: &str) -> Check {
    Check::Tool { name: name.to_string(), arguments: arguments.to_string() }
}

#[tokio::test]
async fn each_kind_holds_or_says_why_not() {
    let folder = tempfile::tempdir().unwrap();
    let workspace = folder.path().canonicalize().unwrap().join("work");
    for name in ["lib", "own"] {
        fs::create_dir_all(workspace.join(name)).unwrap();
        fs::write(workspace.join(name).join("state"), "first\n").unwrap();
    }
    fs::write(workspace.join("notes.txt"), "first\nthe second line\n").unwrap();
    fs::write(folder.path().join("outside.txt"), "first\n").unwrap();
    std::os::unix::fs::symlink("../outside.txt", workspace.join("link")).unwrap();
    let toolbox = Toolbox::new(Scene {
        off_limits: vec![workspace.join("own")],
        workspace,
        pre_images: None,
        program: PathBuf::from(env!("CARGO_BIN_EXE_tiller")),
        passed_variables: Vec::new(),
        sandbox: tiller::tools::sandbox::Sandbox::default(),
        git: tiller::tools::gits::own::Own::default(),
    });
    let rows = [
        (exists("notes.txt"), true, "notes.txt is a file of 22 bytes"),
        (exists("lib"), true, "lib is a folder"),
        (exists("none.txt"), false, "none.txt is not there"),
        (exists("notes.txt/none"), false, "notes.txt/none: not a directory"),
        // Whoever wrote the check may mean any file; the model can't write one.
        (exists("../outside.txt"), true, "../outside.txt is a file of 6 bytes"),
        (exists("link"), true, "link is a file of 6 bytes"),
        (matches("notes.txt", "^the second"), true, "notes.txt matches"),
        (matches("notes.txt", "^second"), false, "notes.txt does not match ^second"),
        (matches("none.txt", "."), false, "none.txt can't be read: no such file"),
        (matches("lib", "."), false, "lib can't be read"),
        (matches("../outside.txt", "first"), true, "../outside.txt matches"),
        (exists("own/state"), false, "This path belongs to tiller itself"),
        (matches("own/state", "."), false, "This path belongs to tiller itself"),
        (matches("notes.txt", "("), false, "a check has a pattern that can't be used"),
        (tool("read_file", r#"{"path":"notes.txt"}"#), true, "the second line"),
        (tool("read_file", r#"{"path":"none.txt"}"#), false, "none.txt: no such file"),
        (tool("read_file", "{"), false, "The arguments are not valid JSON"),
        (tool("shell", r#"{"command":"echo seen; exit 3"}"#), false, "seen"),
        (tool("no_such_tool", "{}"), false, "There is no tool \"no_such_tool\""),
    ];
    for (check, holds, words) in rows {
        let reins = Reins { deltas: broadcast::Sender::new(limits::DELTAS), cancel: CancellationToken::new() };
        let (held, seen) = toolbox.check(&check, reins).await;
        assert!(held == holds && seen.contains(words), "{check:?}: {held}, {seen}");
    }
}
