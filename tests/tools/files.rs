//! File tools against somebody who exchanges folders for links as fast as the system can: nothing outside the
//! workspace is read or written without having been shown as outside.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;

use crate::tools::running::call;
use nix::fcntl::AT_FDCWD;
use nix::fcntl::RenameFlags;
use nix::fcntl::renameat2;
use tiller::domain::tool::EffectClass;
use tiller::domain::tool::OutcomeKind;
use tiller::domain::tool::Permit;
use tiller::domain::tool::ToolCall;
use tiller::tools::Executed;
use tiller::tools::Reins;
use tiller::tools::Scene;
use tiller::tools::Toolbox;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

/// Rounds of the race; each prepares and executes one call of each kind.
const ROUNDS: usize = 400;

/// How often each thing happened.
#[derive(Default)]
struct Tally {
    done: usize,
    drifted: usize,
    asked: usize,
}

/// Prepares and executes one call, unless it would be asked as one that leaves the workspace.
async fn round(toolbox: &Toolbox, mut call: ToolCall, tally: &mut Tally) -> String {
    let facts = toolbox.prepare(&call).await;
    if !facts.inside {
        tally.asked += 1;
        return String::new();
    }
    call.facts = Some(facts);
    let reins = Reins { deltas: broadcast::Sender::new(1), cancel: CancellationToken::new() };
    match toolbox.execute(Permit::of(&call).unwrap(), reins).await {
        Executed::Ended(outcome) => {
            tally.done += usize::from(outcome.kind == OutcomeKind::Done);
            outcome.text
        }
        Executed::Drifted(text) => {
            tally.drifted += 1;
            text
        }
    }
}

#[tokio::test]
async fn a_race_for_the_folder_gains_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let workspace = root.join("ws");
    fs::create_dir_all(workspace.join("dir")).unwrap();
    fs::create_dir(root.join("outside")).unwrap();
    fs::write(workspace.join("dir/file"), "harmless").unwrap();
    fs::write(root.join("outside/file"), "secret").unwrap();
    symlink(root.join("outside"), workspace.join("link")).unwrap();
    let toolbox = Toolbox::new(Scene {
        workspace: workspace.clone(),
        off_limits: Vec::new(),
        pre_images: None,
        program: PathBuf::from("/no/such/program"),
        passed_variables: Vec::new(),
        sandbox: tiller::tools::sandbox::Sandbox::default(),
    });
    let stop = Arc::new(AtomicBool::new(false));
    let swapper = std::thread::spawn({
        let (stop, one, other) = (Arc::clone(&stop), workspace.join("dir"), workspace.join("link"));
        move || {
            while !stop.load(Ordering::Relaxed) {
                renameat2(AT_FDCWD, &one, AT_FDCWD, &other, RenameFlags::RENAME_EXCHANGE).unwrap();
                std::thread::yield_now();
            }
        }
    });
    let (mut reads, mut searches, mut writes) = (Tally::default(), Tally::default(), Tally::default());
    for number in 0..ROUNDS {
        let read = call("read_file", &serde_json::json!({"path": "dir/file"}), EffectClass::Read);
        assert!(!round(&toolbox, read, &mut reads).await.contains("secret"));
        let search = call("search_files", &serde_json::json!({"pattern": "secret"}), EffectClass::Read);
        assert!(!round(&toolbox, search, &mut searches).await.contains(":secret"));
        let content = serde_json::json!({"path": "dir/file", "content": format!("harmless {number}")});
        round(&toolbox, call("write_file", &content, EffectClass::WriteFile), &mut writes).await;
        let fresh = serde_json::json!({"path": format!("dir/new/{number}"), "content": "x"});
        round(&toolbox, call("write_file", &fresh, EffectClass::WriteFile), &mut writes).await;
    }
    stop.store(true, Ordering::Relaxed);
    swapper.join().unwrap();
    assert_eq!(fs::read_to_string(root.join("outside/file")).unwrap(), "secret");
    assert_eq!(fs::read_dir(root.join("outside")).unwrap().count(), 1);
    for (name, tally) in [("reads", &reads), ("writes", &writes)] {
        assert!(tally.done > 0 && tally.drifted > 0 && tally.asked > 0, "{name}: the race was not one");
    }
}
