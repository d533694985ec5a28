//! `list_dir`: the names in a folder, and below it where asked. It follows no link and opens no file.

use std::path::Path;

use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::domain::limits;
use crate::domain::text::counted;
use crate::domain::tool::EffectClass;
use crate::domain::tool::Facts;
use crate::domain::tool::Noise;
use crate::domain::tool::OutcomeKind;
use crate::domain::tool::Problem;
use crate::domain::tool::ProblemKind;
use crate::domain::tool::ToolSpec;
use crate::tools::Executed;
use crate::tools::FileWork;
use crate::tools::OnCancel;
use crate::tools::Prepared;
use crate::tools::Scene;
use crate::tools::Tool;
use crate::tools::arguments;
use crate::tools::names;
use crate::tools::place;
use crate::tools::place::Kind;
use crate::tools::place::Place;
use crate::tools::walk::Entry;
use crate::tools::walk::Ignored;
use crate::tools::walk::Walk;
use crate::tools::walk::What;
use crate::tools::withheld;

/// The tool.
pub(crate) struct ListDir;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    #[serde(default)]
    path: Option<String>,
    #[serde(default)]
    depth: Option<usize>,
}

impl Tool for ListDir {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "list_dir".to_string(),
            description: format!(
                "Lists a folder: folders end with /, files have their size, links show where they point and are not \
                 followed. With a depth over 1, what .gitignore names and the inside of .git is left out. At most {} \
                 entries.",
                limits::ENTRIES_MAX
            ),
            schema: json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "Folder, relative to the workspace. Default: the workspace."},
                    "depth": {
                        "type": "integer", "minimum": 1, "maximum": limits::LIST_DEPTH_MAX,
                        "description": "Levels to list. Default 1.",
                    },
                },
                "additionalProperties": false,
            }),
            effect: EffectClass::Read,
            noise: Noise::default(),
        }
    }

    fn prepare(&self, scene: &Scene, arguments: &str) -> Result<Prepared, Problem> {
        let asked: Arguments = arguments::read(arguments)?;
        let depth = asked.depth.unwrap_or(1);
        if !(1..=limits::LIST_DEPTH_MAX).contains(&depth) {
            let text = format!("depth is 1 to {}. Nothing was done.", limits::LIST_DEPTH_MAX);
            return Err(arguments::problem(ProblemKind::InvalidArguments, text));
        }
        let place = Place::find(scene, asked.path.as_deref().unwrap_or("."))?;
        withheld::until_allowed(&place, prepared(scene, &place, depth))
    }
}

fn prepared(scene: &Scene, place: &Place, depth: usize) -> Result<Prepared, Problem> {
    match place.kind()? {
        Kind::Folder => {}
        Kind::File(_) => return Err(place::impossible(&place.shown, "is a file; use read_file")),
        Kind::Missing => return Err(place::not_there(&place.shown, "no such folder")),
    }
    let levels = if depth > 1 { format!(" {depth} levels") } else { String::new() };
    let facts = Facts {
        title: format!("{}{levels}", place.shown),
        preview: format!("list {}{levels}", place.text()),
        ..place.facts("lists")
    };
    let (scene, place) = (scene.clone(), place.clone());
    let work = move |cancel: &CancellationToken| list(&scene, &place, depth, cancel);
    Ok(Prepared { facts, action: FileWork::action(OnCancel::Leave, work) })
}

fn list(scene: &Scene, place: &Place, depth: usize, cancel: &CancellationToken) -> Executed {
    let folder = match place::open_folder(&place.path) {
        Ok(folder) => folder,
        Err(error) => {
            return Executed::Drifted(format!("{} is no longer the folder it was: {}.", place.shown, error.desc()));
        }
    };
    if let Err(error) = place::to_list(&folder) {
        let text = format!("{} can't be listed: {}.", place.shown, error.desc().to_lowercase());
        return Executed::failed(text, place::class(error));
    }
    let ignored = if depth > 1 { Ignored::LeftOut } else { Ignored::Listed };
    let mut lines = Vec::new();
    let mut unreadable = 0_u64;
    let mut more = false;
    let mut walk = Walk::new(scene, &place.path, What::Folder, ignored, depth);
    for entry in walk.by_ref().skip(1) {
        if cancel.is_cancelled() {
            return Executed::ended(OutcomeKind::Cancelled, "Cancelled while it looked. Nothing was changed.");
        }
        if lines.len() >= limits::ENTRIES_MAX {
            more = true;
            break;
        }
        match entry {
            Ok(entry) => lines.push(line(&place.path, &entry)),
            Err(_) => unreadable += 1,
        }
    }
    if lines.is_empty() && unreadable == 0 {
        lines.push("[empty]".to_string());
    }
    if more {
        lines.push(format!("[only the first {} entries; list a folder below, or search]", limits::ENTRIES_MAX));
    }
    if unreadable > 0 {
        lines.push(format!("[{} can't be read]", counted(unreadable, "entry")));
    }
    lines.extend(walk.told());
    Executed::ended(OutcomeKind::Done, lines.join("\n") + "\n")
}

fn line(root: &Path, entry: &Entry) -> String {
    let name = names::shown(entry.path.strip_prefix(root).unwrap_or(&entry.path).as_os_str());
    match &entry.what {
        What::Folder => format!("{name}/"),
        What::File(size) => format!("{name} ({})", counted(*size, "byte")),
        What::Link(Some(target)) => format!("{name} -> {}", names::shown(target)),
        What::Link(None) => format!("{name} -> ?"),
        What::Other => format!("{name} (not a regular file)"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::tools::stage::Stage;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;

    fn furnished() -> Stage {
        let stage = Stage::new();
        stage.write("b.txt", "12345");
        stage.write("src/deep/x.rs", "");
        stage.write("target/big", "");
        stage.write(".gitignore", "target\n");
        stage.write(".git/config", "");
        symlink("/etc", stage.scene.workspace.join("out")).unwrap();
        nix::unistd::mkfifo(&stage.scene.workspace.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        std::fs::write(stage.scene.workspace.join(OsStr::from_bytes(b"caf\xe9")), "").unwrap();
        std::fs::write(stage.scene.workspace.join("line\nbreak"), "").unwrap();
        stage
    }

    #[tokio::test]
    async fn folders_are_listed() {
        let stage = furnished();
        let wanted = "Done: .git/\n.gitignore (7 bytes)\nb.txt (5 bytes)\n\"caf\\xE9\" (0 bytes)\n\
                      \"line\\nbreak\" (0 bytes)\nout -> /etc\npipe (not a regular file)\nsrc/\ntarget/\n";
        assert_eq!(stage.run("list_dir", "{}").await, wanted);
        assert_eq!(stage.run("list_dir", "").await, wanted);
        let deep = stage.run("list_dir", r#"{"depth":3}"#).await;
        assert!(deep.contains("\nsrc/deep/\nsrc/deep/x.rs (0 bytes)\n"), "{deep}");
        assert!(!deep.contains("target") && !deep.contains(".git/c"), "{deep}");
        assert_eq!(stage.run("list_dir", r#"{"path":"src/deep"}"#).await, "Done: x.rs (0 bytes)\n");
    }

    #[tokio::test]
    async fn folders_that_are_none_are_said() {
        let stage = furnished();
        for (arguments, wanted) in [
            (r#"{"path":"b.txt"}"#, "Impossible: b.txt: is a file; use read_file. Nothing was done."),
            (r#"{"path":"none"}"#, "Impossible: none: no such folder. Nothing was done."),
            (r#"{"depth":0}"#, "InvalidArguments: depth is 1 to 8. Nothing was done."),
            (r#"{"depth":99}"#, "InvalidArguments: depth is 1 to 8. Nothing was done."),
        ] {
            assert_eq!(stage.run("list_dir", arguments).await, wanted);
        }
        let facts = stage.call("list_dir", r#"{"path":"out"}"#).await.facts.unwrap();
        assert_eq!((facts.inside, facts.reach.as_str()), (false, "lists outside the workspace: /etc"));
    }

    #[tokio::test]
    async fn long_lists_and_hidden_folders_are_bounded() {
        let stage = Stage::new();
        for number in 0..limits::ENTRIES_MAX + 5 {
            stage.write(&format!("{number:04}"), "");
        }
        let text = stage.run("list_dir", "{}").await;
        assert!(text.contains("0499 (0 bytes)\n[only the first 500 entries") && !text.contains("0500"), "{text}");
        let stage = Stage::new();
        stage.write("../state/secret", "");
        let mut scene = stage.scene.clone();
        scene.workspace = stage.root().to_path_buf();
        let place = Place::find(&scene, ".").unwrap();
        let Executed::Ended(outcome) = list(&scene, &place, 4, &CancellationToken::new()) else { panic!("drifted") };
        assert_eq!(outcome.text, "ws/\n");
    }
}
