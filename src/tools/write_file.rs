//! `write_file`: the whole content of one file. How a change is shown and made is in `change.rs`.

use serde::Deserialize;
use serde_json::json;

use crate::domain::limits;
use crate::domain::text::counted;
use crate::domain::tool::EffectClass;
use crate::domain::tool::Noise;
use crate::domain::tool::Problem;
use crate::domain::tool::ToolSpec;
use crate::tools::Prepared;
use crate::tools::Scene;
use crate::tools::Tool;
use crate::tools::arguments;
use crate::tools::change;
use crate::tools::place::Place;
use crate::tools::withheld;

/// The tool.
pub(crate) struct WriteFile;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
    content: String,
}

impl Tool for WriteFile {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "write_file".to_string(),
            description: format!(
                "Makes a file, or replaces its whole content, with the folders it needs. At most {} KiB. To change a \
                 part of a file, use edit_file.",
                limits::FILE_MAX_BYTES / 1024
            ),
            schema: json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "File, relative to the workspace."},
                    "content": {"type": "string", "description": "The whole new content, exactly."},
                },
                "required": ["path", "content"],
                "additionalProperties": false,
            }),
            effect: EffectClass::WriteFile,
            noise: Noise::default(),
        }
    }

    fn prepare(&self, scene: &Scene, arguments: &str) -> Result<Prepared, Problem> {
        let Arguments { path, content } = arguments::read(arguments)?;
        let place = Place::find(scene, &path)?;
        withheld::until_allowed(&place, write(scene, &place, content))
    }
}

fn write(scene: &Scene, place: &Place, content: String) -> Result<Prepared, Problem> {
    let before = change::current(place)?;
    let verb = if before.is_some() { "Replaced the content of" } else { "Made" };
    let done = format!(
        "{verb} {}: {}, {}.",
        place.shown,
        counted(content.lines().count(), "line"),
        counted(content.len(), "byte")
    );
    change::prepare(scene, place, before, content, done)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::domain::tool::Facts;
    use crate::domain::tool::OutcomeKind;
    use crate::domain::tool::Permit;
    use crate::domain::tool::Probe;
    use crate::tools::Executed;
    use crate::tools::stage::Stage;
    use crate::tools::stage::reins;
    use std::fs;
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::fs::symlink;

    fn write(path: &str, content: &str) -> String {
        serde_json::json!({ "path": path, "content": content }).to_string()
    }

    async fn facts(stage: &Stage, path: &str, content: &str) -> Facts {
        stage.call("write_file", &write(path, content)).await.facts.unwrap()
    }

    /// Names in the workspace, at any depth: nothing may be left beside the file.
    fn names(stage: &Stage) -> String {
        let mut names: Vec<String> = ignore::WalkBuilder::new(&stage.scene.workspace)
            .standard_filters(false)
            .build()
            .skip(1)
            .map(|entry| entry.unwrap().path().strip_prefix(&stage.scene.workspace).unwrap().display().to_string())
            .collect();
        names.sort();
        names.join(" ")
    }

    #[tokio::test]
    async fn files_are_made_with_their_folders() {
        let stage = Stage::new();
        let facts = facts(&stage, "a/b/c.txt", "one\ntwo\n").await;
        assert_eq!(facts.title, "a/b/c.txt (new) +2 −0");
        let wanted = "makes folder ROOT/ws/a\nmakes folder ROOT/ws/a/b\n\
                      --- /dev/null\n+++ a/b/c.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n";
        assert_eq!(stage.neutral(&facts.preview), wanted);
        assert!(facts.inside && facts.write.as_ref().unwrap().before.is_none());
        assert_eq!(names(&stage), "");
        let text = stage.run("write_file", &write("a/b/c.txt", "one\ntwo\n")).await;
        assert_eq!(text, "Done: Made a/b/c.txt: 2 lines, 8 bytes.");
        assert_eq!((stage.read("a/b/c.txt").as_str(), names(&stage).as_str()), ("one\ntwo\n", "a a/b a/b/c.txt"));
        assert_eq!(stage.toolbox().probe(&facts).await, Probe::Done);
    }

    #[tokio::test]
    async fn files_are_replaced_and_keep_their_mode() {
        let stage = Stage::new();
        stage.write("run", "one\ntwo\n");
        let path = stage.scene.workspace.join("run");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
        let facts = facts(&stage, "run", "one\nthree").await;
        assert_eq!(facts.title, "run +1 −1");
        let wanted = "--- run\n+++ run\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n\\ No newline at end of file\n";
        assert_eq!(facts.preview, wanted);
        assert_eq!(stage.toolbox().probe(&facts).await, Probe::NotDone);
        assert!(stage.run("write_file", &write("run", "one\nthree")).await.starts_with("Done: Replaced"));
        assert_eq!((stage.read("run").as_str(), names(&stage).as_str()), ("one\nthree", "run"));
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o750);
        assert_eq!(stage.toolbox().probe(&facts).await, Probe::Done);
        stage.write("run", "other");
        assert_eq!(stage.toolbox().probe(&facts).await, Probe::Unknown);
        fs::remove_file(&path).unwrap();
        assert_eq!(stage.toolbox().probe(&facts).await, Probe::Unknown);
        symlink("elsewhere", &path).unwrap();
        assert_eq!(stage.toolbox().probe(&facts).await, Probe::Unknown);
        assert_eq!(stage.toolbox().probe(&Facts::default()).await, Probe::Unknown);
    }

    #[tokio::test]
    async fn what_a_killed_attempt_left_is_removed() {
        let stage = Stage::new();
        let part = format!(".tiller-{}.part", &crate::domain::text::sha256_hex(b"new")[..16]);
        stage.write(&part, "half");
        assert!(stage.run("write_file", &write("a", "new")).await.starts_with("Done"));
        assert_eq!(names(&stage), "a");
    }

    #[tokio::test]
    async fn files_that_can_not_be_written_are_said() {
        let stage = Stage::new();
        stage.write("same", "same");
        stage.write("locked", "x");
        stage.write("dir/x", "x");
        stage.write("../state/x", "x");
        fs::set_permissions(stage.scene.workspace.join("locked"), fs::Permissions::from_mode(0o444)).unwrap();
        symlink("nowhere", stage.scene.workspace.join("dangling")).unwrap();
        fs::File::create(stage.scene.workspace.join("large")).unwrap().set_len(100 << 20).unwrap();
        nix::unistd::mkfifo(&stage.scene.workspace.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let mut own = Stage::new();
        own.write("tiller", "binary");
        own.scene.program = own.scene.workspace.join("tiller");
        assert!(own.run("write_file", &write("tiller", "x")).await.starts_with("Refused: This is tiller's own"));
        for (path, content, wanted) in [
            ("same", "same", "Impossible: same: it has exactly this content already"),
            ("locked", "y", "Impossible: locked: is write-protected"),
            ("dir", "y", "Impossible: dir: is a folder"),
            ("dir/x/y", "y", "Impossible: ROOT/ws/dir/x/y: not a directory"),
            ("dangling", "y", "Impossible: ROOT/ws/dangling: the link leads to nothing"),
            ("large", "y", "Impossible: large: has 104857600 bytes"),
            ("pipe", "y", "Refused: pipe is a pipe"),
            ("/dev/null", "y", "Refused: "),
            ("/proc/self/comm", "y", "Refused: "),
            ("../state/x", "y", "Refused: "),
            ("../state/new/y", "y", "Refused: "),
            ("a\0b", "y", "InvalidArguments: "),
            ("new", &"x".repeat(limits::FILE_MAX_BYTES as usize), "Malformed: "),
        ] {
            let text = stage.run("write_file", &write(path, content)).await;
            assert!(text.starts_with(wanted), "{path}: {text:.200}");
        }
        assert_eq!(names(&stage), "dangling dir dir/x large locked pipe same");
    }

    #[tokio::test]
    async fn facts_name_what_deserves_a_second_look() {
        let stage = Stage::new();
        stage.write("../outside/x", "1");
        stage.write("one", "1");
        symlink(stage.root().join("outside"), stage.scene.workspace.join("out")).unwrap();
        fs::hard_link(stage.scene.workspace.join("one"), stage.scene.workspace.join("other")).unwrap();
        for (path, inside, wanted) in [
            ("src/a", true, "writes in the workspace"),
            ("out/x", false, "writes outside the workspace: ROOT/outside/x"),
            ("out/new/x", false, "writes outside the workspace: ROOT/outside/new/x"),
            (".env", false, "writes in the workspace; sensitive name (environment files hold keys): .env"),
            (".git/hooks/pre-commit", false, "writes in the workspace; runs later: git runs its hooks"),
            (".github/workflows/ci.yml", false, "writes in the workspace; runs later: GitHub runs it"),
            ("sub/Makefile", true, "writes in the workspace; runs later: the next build runs it"),
            ("one", true, "writes in the workspace; the file has 2 names, and only this one gets the new content"),
        ] {
            let facts = facts(&stage, path, "new").await;
            assert_eq!((facts.inside, stage.neutral(&facts.reach).as_str()), (inside, wanted), "{path}");
        }
        let outside = facts(&stage, "out/x", "new").await;
        assert!(stage.neutral(&outside.preview).starts_with("file ROOT/outside/x\n--- "), "{}", outside.preview);
        stage.write("data", b"\xff\0\xff");
        let binary = facts(&stage, "data", "new\n").await;
        assert!(binary.preview.starts_with("replaces 3 bytes that are not text (SHA-256 "), "{}", binary.preview);
        let emptied = facts(&stage, "data", "").await;
        assert!(emptied.preview.ends_with("): data\n"), "{}", emptied.preview);
        // The title has room for a part of a long path only.
        for name in ["a", "b"] {
            let path = format!("{}/{name}", "long".repeat(50));
            let preview = facts(&stage, &path, "").await.preview;
            assert!(preview.starts_with(&format!("makes an empty file: {path}\n")), "{preview}");
        }
    }

    /// Prepares a write, lets `meanwhile` change the world, and wants it refused with everything outside untouched.
    async fn check_drift(path: &str, meanwhile: impl Fn(&Stage), wanted: &str) {
        let stage = Stage::new();
        stage.write("a.txt", "old");
        stage.write("dir/b.txt", "old");
        stage.write("../outside/b.txt", "old");
        let call = stage.call("write_file", &write(path, "new")).await;
        meanwhile(&stage);
        let Executed::Drifted(text) = stage.execute(&call).await else { panic!("{path}: it was written") };
        assert!(text.contains(wanted), "{path}: {text}");
        assert_eq!(stage.read("../outside/b.txt"), "old");
        assert_eq!(fs::read_dir(stage.root().join("outside")).unwrap().count(), 1);
        assert!(!names(&stage).contains(".part"));
    }

    #[tokio::test]
    async fn what_changed_since_the_decision_is_drift() {
        let swap = |stage: &Stage| {
            fs::rename(stage.scene.workspace.join("dir"), stage.scene.workspace.join("moved")).unwrap();
            symlink(stage.root().join("outside"), stage.scene.workspace.join("dir")).unwrap();
        };
        check_drift("a.txt", |stage| stage.write("a.txt", "newer"), "content before").await;
        check_drift("new.txt", |stage| stage.write("new.txt", "newer"), "content before").await;
        check_drift("dir/b.txt", swap, "path").await;
        check_drift("dir/new.txt", swap, "path").await;
        check_drift("fresh/new.txt", |stage| stage.write("fresh/x", ""), "folder").await;
        check_drift("a.txt", |stage| fs::remove_file(stage.scene.workspace.join("a.txt")).unwrap(), "content before")
            .await;
        check_drift("dir/b.txt", |stage| fs::remove_dir_all(stage.scene.workspace.join("dir")).unwrap(), "content")
            .await;
        let exposed = |stage: &Stage| {
            let path = stage.scene.workspace.join("a.txt");
            fs::set_permissions(path, fs::Permissions::from_mode(0o666)).unwrap();
        };
        check_drift("a.txt", exposed, "mode").await;
        let again = |stage: &Stage| {
            // Not removed, or the new one could get its number.
            fs::rename(stage.scene.workspace.join("dir"), stage.scene.workspace.join("former")).unwrap();
            stage.write("dir/b.txt", "old");
        };
        check_drift("dir/b.txt", again, "folder").await;
    }

    /// A swap that falls between the last look and the opening: the action itself must notice.
    #[tokio::test]
    async fn a_swap_at_the_last_moment_redirects_nothing() {
        let stage = Stage::new();
        stage.write("dir/b.txt", "old");
        stage.write("../outside/b.txt", "old");
        for (path, swap) in [("dir/b.txt", "dir"), ("dir/new.txt", "dir"), ("dir/b.txt", "dir/b.txt")] {
            let prepared = WriteFile.prepare(&stage.scene, &write(path, "new")).unwrap_or_else(|_| panic!("refused"));
            let (real, target) = (stage.scene.workspace.join(swap), stage.root().join("outside"));
            fs::rename(&real, stage.root().join("aside")).unwrap();
            symlink(if swap == "dir" { target } else { target.join("b.txt") }, &real).unwrap();
            let executed = prepared.action.run(crate::domain::id::CallId(1), reins()).await;
            assert!(matches!(executed, Executed::Drifted(_)), "{path}: {executed:?}");
            assert_eq!(stage.read("../outside/b.txt"), "old");
            assert_eq!(fs::read_dir(stage.root().join("outside")).unwrap().count(), 1);
            fs::remove_file(&real).unwrap();
            fs::rename(stage.root().join("aside"), &real).unwrap();
        }
        assert_eq!(names(&stage), "dir dir/b.txt");
    }

    #[tokio::test]
    async fn content_is_written_exactly() {
        let stage = Stage::new();
        let line = "x".repeat(900_000);
        for content in ["\u{feff}a\r\nb\r\u{2028}\u{1b}[31m\0é", "", &line] {
            let call = stage.call("write_file", &write("odd", content)).await;
            let executed = stage.toolbox().execute(Permit::of(&call).unwrap(), reins()).await;
            assert!(matches!(executed, Executed::Ended(outcome) if outcome.kind == OutcomeKind::Done));
            assert_eq!(stage.read("odd"), content);
        }
    }

    /// Two files without a line in common are the worst that a diff can meet.
    #[tokio::test]
    async fn the_worst_diff_takes_bounded_time() {
        let stage = Stage::new();
        let lines = |salt: u64| -> String {
            (0..100_000_u64).map(|line| format!("{}\n", (line * 2_654_435_761 + salt) % 99_991)).collect()
        };
        stage.write("many", lines(1));
        let begun = std::time::Instant::now();
        let facts = facts(&stage, "many", &lines(77_777)).await;
        assert!(facts.problem.is_none(), "{:?}", facts.problem);
        assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
    }

    /// That the content is right, that it is protected, that it is none: nothing of it is told unasked.
    #[tokio::test]
    async fn nothing_is_told_of_a_file_that_needs_a_question_before_it_is_allowed() {
        let stage = Stage::new();
        stage.write(".env", "KEY=1\n");
        stage.write("../outside/same", "KEY=1\n");
        stage.write("../outside/locked", "KEY=2\n");
        stage.write("../outside/dir/x", "");
        fs::File::create(stage.root().join("outside/large")).unwrap().set_len(100 << 20).unwrap();
        fs::set_permissions(stage.root().join("outside/locked"), fs::Permissions::from_mode(0o444)).unwrap();
        for (path, wanted) in [
            (".env", "Failed: .env: it has exactly this content already"),
            ("../outside/same", "Failed: ROOT/outside/same: it has exactly this content already"),
            ("../outside/locked", "Failed: ROOT/outside/locked: is write-protected"),
            ("../outside/dir", "Failed: ROOT/outside/dir: is a folder"),
            ("../outside/large", "Failed: ROOT/outside/large: has 104857600 bytes"),
        ] {
            let facts = facts(&stage, path, "KEY=1\n").await;
            assert!(facts.problem.is_none() && !facts.inside && facts.write.is_none(), "{path}: {:?}", facts.problem);
            let said = stage.run("write_file", &write(path, "KEY=1\n")).await;
            assert!(said.starts_with(wanted), "{path}: {said}");
        }
        let said = stage.run("write_file", &write("../state/x", "")).await;
        assert!(said.starts_with("Refused: "), "{said}");
    }
}
