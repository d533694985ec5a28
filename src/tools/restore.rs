//! Puts a file back as it was before a call wrote it, with the care of the tools: inside the workspace, through no link,
//! in one step or not at all, and only if it is still as the call left it (docs/ENGINE.md §15). It is no tool: the model
//! can't ask for it. Blocks on files.

use crate::domain::mark::holds_mark;
use crate::domain::restoring::There;
use crate::domain::text::sha256_hex;
use crate::domain::tool::FileWrite;
use crate::tools::Executed;
use crate::tools::Scene;
use crate::tools::change;
use crate::tools::place::Place;
use crate::tools::preimage;

/// What is at a path that a call wrote. Changes nothing.
pub fn there(scene: &Scene, path: &str) -> There {
    let place = match place(scene, path) {
        Ok(place) => place,
        Err(why) => return There::Other(why),
    };
    match change::current(&place) {
        Ok(None) => There::Nothing,
        Ok(Some(before)) => There::Content(sha256_hex(&before.bytes)),
        Err(problem) => There::Other(problem.text),
    }
}

/// Whether the content with this SHA-256 is kept and whole.
pub fn is_kept(scene: &Scene, hash: &str) -> bool {
    scene.pre_images.as_ref().is_some_and(|folder| preimage::take(folder, hash).is_some())
}

/// Puts the file back as it was before the call, or removes it where there was none. Errors with why nothing was done.
pub fn put_back(scene: &Scene, write: &FileWrite) -> Result<(), String> {
    let place = place(scene, &write.path)?;
    let found = change::current(&place).map_err(|problem| problem.text)?;
    let now = found.filter(|found| sha256_hex(&found.bytes) == write.after);
    let now = now.ok_or("it is not as the call left it")?;
    let kept = |hash: &String| {
        let bytes = scene.pre_images.as_ref().and_then(|folder| preimage::take(folder, hash));
        bytes.ok_or("what it held before was not kept")
    };
    let before = write.before.as_ref().map(kept).transpose()?;
    match change::put_back(scene, &place, now, before) {
        Executed::Ended(outcome) if outcome.kind.is_error() => Err(outcome.text),
        Executed::Ended(_) => Ok(()),
        Executed::Drifted(why) => Err(why),
    }
}

/// The place of a file that a call wrote, if it still lies where it lay, in the workspace.
fn place(scene: &Scene, path: &str) -> Result<Place, String> {
    if holds_mark(path) {
        return Err("its path holds a secret, which is not recorded".to_string());
    }
    let place = Place::find(scene, path).map_err(|problem| problem.text)?;
    if place.text() != path {
        return Err("its path leads elsewhere now".to_string());
    }
    if !place.within {
        return Err("it lies outside the workspace".to_string());
    }
    Ok(place)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::tools::stage::Stage;
    use std::fs;
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::fs::symlink;

    /// Has a tool write a file, and gives what its record knows.
    async fn written(stage: &Stage, tool: &str, arguments: serde_json::Value) -> FileWrite {
        let call = stage.call(tool, &arguments.to_string()).await;
        let executed = stage.execute(&call).await;
        assert!(matches!(&executed, Executed::Ended(outcome) if !outcome.kind.is_error()), "{executed:?}");
        call.facts.unwrap().write.unwrap()
    }

    fn names(stage: &Stage, folder: &str) -> Vec<String> {
        let found = fs::read_dir(stage.root().join(folder)).unwrap();
        let mut names: Vec<String> =
            found.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[tokio::test]
    async fn a_file_is_put_back_byte_for_byte_and_keeps_its_mode() {
        let stage = Stage::new();
        stage.write("data", b"\xff\0old\r\n");
        let path = stage.scene.workspace.join("data");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
        let first = written(&stage, "write_file", serde_json::json!({"path": "data", "content": "one\n"})).await;
        let edit = serde_json::json!({"path": "data", "old_text": "one", "new_text": "two"});
        let second = written(&stage, "edit_file", edit).await;
        assert!(is_kept(&stage.scene, first.before.as_ref().unwrap()));
        assert_eq!(put_back(&stage.scene, &first).unwrap_err(), "it is not as the call left it");
        put_back(&stage.scene, &second).unwrap();
        assert_eq!(stage.read("data"), "one\n");
        put_back(&stage.scene, &first).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"\xff\0old\r\n");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o750);
        // What a restore replaces is kept as well, and nothing is left beside the file.
        assert_eq!(names(&stage, "pre-images").len(), 3);
        assert_eq!(names(&stage, "ws"), ["data"]);
    }

    #[tokio::test]
    async fn a_file_that_was_not_there_is_removed() {
        let stage = Stage::new();
        let made = written(&stage, "write_file", serde_json::json!({"path": "a/new", "content": "x"})).await;
        assert_eq!(made.before, None);
        put_back(&stage.scene, &made).unwrap();
        assert_eq!(there(&stage.scene, &made.path), There::Nothing);
        assert_eq!(put_back(&stage.scene, &made).unwrap_err(), "it is not as the call left it");
    }

    #[tokio::test]
    async fn what_lies_elsewhere_is_left_alone() {
        let stage = Stage::new();
        stage.write("dir/f", "old");
        stage.write("../outside/f", "new");
        let write = written(&stage, "write_file", serde_json::json!({"path": "dir/f", "content": "new"})).await;
        let outside = FileWrite { path: stage.root().join("outside/f").display().to_string(), ..write.clone() };
        assert_eq!(put_back(&stage.scene, &outside).unwrap_err(), "it lies outside the workspace");
        let kept = stage.scene.pre_images.clone().unwrap().join(write.before.clone().unwrap());
        let own = FileWrite { path: kept.display().to_string(), ..write.clone() };
        assert!(put_back(&stage.scene, &own).unwrap_err().contains("belongs to tiller itself"));
        let marked = FileWrite { path: write.path.replace("/f", "/[redacted:A_KEY:0123abcd]"), ..write.clone() };
        assert_eq!(put_back(&stage.scene, &marked).unwrap_err(), "its path holds a secret, which is not recorded");
        assert!(matches!(there(&stage.scene, &marked.path), There::Other(_)));
        fs::rename(stage.scene.workspace.join("dir"), stage.root().join("moved")).unwrap();
        symlink(stage.root().join("outside"), stage.scene.workspace.join("dir")).unwrap();
        assert_eq!(put_back(&stage.scene, &write).unwrap_err(), "its path leads elsewhere now");
        assert_eq!(there(&stage.scene, &write.path), There::Other("its path leads elsewhere now".to_string()));
        assert_eq!(stage.read("../outside/f"), "new");
        fs::remove_file(stage.scene.workspace.join("dir")).unwrap();
        fs::rename(stage.root().join("moved"), stage.scene.workspace.join("dir")).unwrap();
        fs::write(kept, "spoiled").unwrap();
        assert_eq!(put_back(&stage.scene, &write).unwrap_err(), "what it held before was not kept");
        assert_eq!(stage.read("dir/f"), "new");
    }

    /// Without a place for it, what the file holds can't be kept: then it is not changed either.
    #[tokio::test]
    async fn what_can_not_be_kept_is_not_changed() {
        let stage = Stage::new();
        stage.write("f", "old");
        fs::write(stage.root().join("pre-images"), "in the way").unwrap();
        let text = stage.run("write_file", r#"{"path":"f","content":"new"}"#).await;
        assert_eq!(text, "Failed: f: keeping what it held before failed: not a directory. The file was not changed.");
        assert_eq!(stage.read("f"), "old");
    }
}
