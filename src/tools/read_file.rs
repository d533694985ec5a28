//! `read_file`: the lines of one text file, numbered. It reads regular files only, and changes nothing.

use std::path::Path;

use nix::errno::Errno;
use serde::Deserialize;
use serde_json::json;

use crate::domain::limits;
use crate::domain::text::counted;
use crate::domain::text::head;
use crate::domain::tool::EffectClass;
use crate::domain::tool::Facts;
use crate::domain::tool::Noise;
use crate::domain::tool::OutcomeKind;
use crate::domain::tool::Problem;
use crate::domain::tool::ToolSpec;
use crate::tools::Executed;
use crate::tools::FileWork;
use crate::tools::OnCancel;
use crate::tools::Prepared;
use crate::tools::Scene;
use crate::tools::Tool;
use crate::tools::arguments;
use crate::tools::place;
use crate::tools::place::Kind;
use crate::tools::place::Place;
use crate::tools::withheld;

/// Room in a result for the sentence on what is left out, in bytes.
const CLOSING_BYTES: usize = 400;

/// The tool.
pub(crate) struct ReadFile;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
    #[serde(default)]
    start_line: Option<u64>,
    #[serde(default)]
    line_count: Option<u64>,
}

/// Which lines, from 1.
#[derive(Clone, Copy)]
struct Range {
    start: u64,
    count: u64,
}

impl Tool for ReadFile {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "read_file".to_string(),
            description: format!(
                "Reads a UTF-8 text file of at most {} KiB. Each line comes as its number, a tab and its text; number \
                 and tab are not part of the file. A result holds at most {} KiB: it ends with the line to go on from. \
                 Lines over {} bytes are cut.",
                limits::FILE_MAX_BYTES / 1024,
                limits::RESULT_MAX_BYTES / 1024,
                limits::READ_LINE_MAX_BYTES
            ),
            schema: json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "File, relative to the workspace."},
                    "start_line": {"type": "integer", "minimum": 1, "description": "First line, from 1. Default 1."},
                    "line_count": {"type": "integer", "minimum": 1, "description": "Lines at most. Default: all that fit."},
                },
                "required": ["path"],
                "additionalProperties": false,
            }),
            effect: EffectClass::Read,
            noise: Noise::default(),
        }
    }

    fn prepare(&self, scene: &Scene, arguments: &str) -> Result<Prepared, Problem> {
        let asked: Arguments = arguments::read(arguments)?;
        let place = Place::find(scene, &asked.path)?;
        withheld::until_allowed(&place, prepared(&place, &asked))
    }
}

fn prepared(place: &Place, asked: &Arguments) -> Result<Prepared, Problem> {
    match place.kind()? {
        Kind::File(size) if size > limits::FILE_MAX_BYTES => return Err(too_large(&place.shown, size)),
        Kind::File(_) => {}
        Kind::Missing => return Err(place::not_there(&place.shown, "no such file")),
        Kind::Folder => return Err(place::impossible(&place.shown, "is a folder; use list_dir")),
    }
    let range = Range { start: asked.start_line.unwrap_or(1).max(1), count: asked.line_count.unwrap_or(u64::MAX) };
    let lines = match (asked.start_line, asked.line_count) {
        (None, None) => String::new(),
        (Some(start), None) => format!(" from line {start}"),
        (None | Some(_), Some(count)) => {
            format!(" lines {}–{}", range.start, range.start.saturating_add(count.saturating_sub(1)))
        }
    };
    let facts = Facts {
        title: format!("{}{lines}", place.shown),
        preview: format!("read {}{lines}", place.text()),
        ..place.facts("reads")
    };
    let place = place.clone();
    let work = move |_: &_| read(&place.path, &place.shown, range);
    Ok(Prepared { facts, action: FileWork::action(OnCancel::Leave, work) })
}

/// A sentence about a file that is larger than a tool reads.
pub(crate) fn too_large(shown: &str, size: u64) -> Problem {
    let why = format!(
        "has {size} bytes, and at most {} are read; use the shell to look at parts of it",
        limits::FILE_MAX_BYTES
    );
    place::impossible(shown, &why)
}

fn read(path: &Path, shown: &str, range: Range) -> Executed {
    let bytes = match place::read_file(path) {
        Ok((bytes, _)) => bytes,
        Err(Errno::EFBIG) => return Executed::Drifted(format!("{shown} grew over the limit. It was not read.")),
        Err(Errno::ELOOP | Errno::ENOTDIR | Errno::ENOENT | Errno::EINVAL) => {
            return Executed::Drifted(format!("{shown} is no longer the file it was. It was not read."));
        }
        Err(error) => {
            let text = format!("{shown} can't be read: {}.", error.desc().to_lowercase());
            return Executed::failed(text, place::class(error));
        }
    };
    match text_of(&bytes) {
        Some(text) => Executed::ended(OutcomeKind::Done, numbered(text, shown, range)),
        None => Executed::ended(
            OutcomeKind::Done,
            format!("{shown} is a binary file of {}; nothing of it is shown.", counted(bytes.len(), "byte")),
        ),
    }
}

/// The content as text, if it is text.
pub(crate) fn text_of(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

fn numbered(text: &str, shown: &str, range: Range) -> String {
    let total = text.lines().count() as u64;
    if total == 0 {
        return format!("[{shown} is empty]");
    }
    if range.start > total {
        return format!("[{shown} has {}; line {} is past its end]", counted(total, "line"), range.start);
    }
    let skipped = usize::try_from(range.start - 1).unwrap_or(usize::MAX);
    let mut result = String::new();
    let mut next = range.start;
    for line in text.lines().skip(skipped).take(usize::try_from(range.count).unwrap_or(usize::MAX)) {
        let kept = head(line, limits::READ_LINE_MAX_BYTES);
        let cut = match line.len() - kept.len() {
            0 => String::new(),
            missing => format!(" [… {} of this line left out]", counted(missing, "byte")),
        };
        let shown_line = format!("{next}\t{kept}{cut}\n");
        if result.len() + shown_line.len() > limits::RESULT_MAX_BYTES - CLOSING_BYTES {
            break;
        }
        result.push_str(&shown_line);
        next += 1;
    }
    if range.start > 1 || next <= total {
        result.push_str(&format!("[lines {}–{} of {total}", range.start, next - 1));
        if next <= total {
            result.push_str(&format!("; go on with start_line {next}"));
        }
        result.push_str("]\n");
    }
    if text.contains("\r\n") {
        result.push_str("[lines end with \\r\\n]\n");
    }
    if !text.ends_with('\n') && next > total {
        result.push_str("[no line break at the end of the file]\n");
    }
    result
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::tools::stage::Stage;
    use std::os::unix::fs::symlink;

    async fn check(stage: &Stage, arguments: &str, wanted: &str) {
        assert_eq!(stage.run("read_file", arguments).await, wanted, "{arguments}");
    }

    #[tokio::test]
    async fn lines_are_numbered() {
        let stage = Stage::new();
        stage.write("a", "one\ntwo\nthree\n");
        stage.write("crlf", "one\r\ntwo");
        stage.write("empty", "");
        check(&stage, r#"{"path":"a"}"#, "Done: 1\tone\n2\ttwo\n3\tthree\n").await;
        let part = "Done: 2\ttwo\n[lines 2–2 of 3; go on with start_line 3]\n";
        check(&stage, r#"{"path":"a","start_line":2,"line_count":1}"#, part).await;
        check(&stage, r#"{"path":"a","start_line":3}"#, "Done: 3\tthree\n[lines 3–3 of 3]\n").await;
        check(&stage, r#"{"path":"a","start_line":9}"#, "Done: [a has 3 lines; line 9 is past its end]").await;
        let crlf = "Done: 1\tone\n2\ttwo\n[lines end with \\r\\n]\n[no line break at the end of the file]\n";
        check(&stage, r#"{"path":"crlf"}"#, crlf).await;
        check(&stage, r#"{"path":"empty"}"#, "Done: [empty is empty]").await;
        let huge = format!(r#"{{"path":"a","start_line":{0},"line_count":{0}}}"#, u64::MAX);
        assert!(stage.run("read_file", &huge).await.contains("past its end"));
    }

    #[tokio::test]
    async fn long_files_come_in_pieces_that_fit_together() {
        let stage = Stage::new();
        let lines: Vec<String> = (1..=9_000).map(|line| format!("line number {line} é")).collect();
        stage.write("long", lines.join("\n"));
        stage.write("wide", "é".repeat(500_000));
        let (mut next, mut found) = (1, Vec::new());
        while next <= 9_000 {
            let text = stage.run("read_file", &format!(r#"{{"path":"long","start_line":{next}}}"#)).await;
            assert!(text.len() <= limits::RESULT_MAX_BYTES);
            let piece = text.strip_prefix("Done: ").unwrap().lines().filter_map(|line| line.split_once('\t'));
            found.extend(piece.map(|(_, line)| line.to_string()));
            next = found.len() + 1;
        }
        assert_eq!(found, lines);
        let wide = stage.run("read_file", r#"{"path":"wide"}"#).await;
        assert!(wide.contains("[… 998000 bytes of this line left out]") && wide.len() < 3_000, "{}", wide.len());
    }

    #[tokio::test]
    async fn what_is_no_text_file_is_said() {
        let stage = Stage::new();
        stage.write("nul", b"secret\0bytes");
        stage.write("latin", b"caf\xe9");
        stage.write("dir/x", "");
        let large = std::fs::File::create(stage.scene.workspace.join("large")).unwrap();
        large.set_len(100 * 1024 * 1024).unwrap();
        check(&stage, r#"{"path":"nul"}"#, "Done: nul is a binary file of 12 bytes; nothing of it is shown.").await;
        check(&stage, r#"{"path":"latin"}"#, "Done: latin is a binary file of 4 bytes; nothing of it is shown.").await;
        check(&stage, r#"{"path":"dir"}"#, "Impossible: dir: is a folder; use list_dir. Nothing was done.").await;
        check(&stage, r#"{"path":"none"}"#, "Impossible: none: no such file. Nothing was done.").await;
        let text = stage.run("read_file", r#"{"path":"large"}"#).await;
        assert!(text.starts_with("Impossible: large: has 104857600 bytes, and at most 1048576 are read"), "{text}");
    }

    #[tokio::test]
    async fn what_may_not_be_read_is_said() {
        use std::os::unix::fs::PermissionsExt;
        let stage = Stage::new();
        stage.write("locked", "x");
        stage.write("closed/x", "x");
        for name in ["locked", "closed"] {
            let none = std::fs::Permissions::from_mode(0o000);
            std::fs::set_permissions(stage.scene.workspace.join(name), none).unwrap();
        }
        // Root may read everything: there it is only sure that nothing breaks.
        let may = nix::unistd::geteuid().is_root();
        let (read, found) = (stage.run("read_file", r#"{"path":"locked"}"#).await, stage.run("list_dir", "{}").await);
        assert_eq!(
            read,
            if may {
                "Done: 1\tx\n[no line break at the end of the file]\n"
            } else {
                "Failed: locked can't be read: permission denied."
            }
        );
        assert_eq!(found, "Done: closed/\nlocked (1 byte)\n");
        let inner = stage.run("read_file", r#"{"path":"closed/x"}"#).await;
        assert!(may || inner.starts_with("Impossible: ROOT/ws/closed/x: permission denied"), "{inner}");
        let listed = stage.run("list_dir", r#"{"path":"closed"}"#).await;
        assert!(may || listed == "Failed: closed can't be listed: permission denied.", "{listed}");
        let searched = stage.run("search_files", r#"{"pattern":"x"}"#).await;
        assert!(may || searched == "Done: [nothing found in 1 file]\n[files left out: 2 unreadable]\n", "{searched}");
        let open = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(stage.scene.workspace.join("closed"), open).unwrap();
    }

    #[tokio::test]
    async fn facts_tell_where_it_leads() {
        let stage = Stage::new();
        stage.write("a", "1");
        stage.write("../outside/b", "secret");
        symlink(stage.root().join("outside/b"), stage.scene.workspace.join("link")).unwrap();
        let facts = stage.call("read_file", r#"{"path":"a","start_line":5,"line_count":3}"#).await.facts.unwrap();
        assert_eq!(
            (facts.title.as_str(), facts.inside, facts.reach.as_str()),
            ("a lines 5–7", true, "reads in the workspace")
        );
        let facts = stage.call("read_file", r#"{"path":"link"}"#).await.facts.unwrap();
        assert!(!facts.inside);
        assert_eq!(stage.neutral(&facts.title), "ROOT/outside/b");
        assert_eq!(stage.neutral(&facts.reach), "reads outside the workspace: ROOT/outside/b");
        assert_eq!(stage.neutral(&facts.preview), "read ROOT/outside/b");
    }

    #[tokio::test]
    async fn a_link_put_in_place_of_a_file_is_drift() {
        let stage = Stage::new();
        stage.write("a", "1");
        stage.write("../outside/b", "secret");
        let call = stage.call("read_file", r#"{"path":"a"}"#).await;
        let path = stage.scene.workspace.join("a");
        std::fs::remove_file(&path).unwrap();
        symlink(stage.root().join("outside/b"), &path).unwrap();
        let Executed::Drifted(text) = stage.execute(&call).await else { panic!("it read through the link") };
        assert!(text.starts_with("Changed since it was decided: path"), "{text}");
        // Even when the swap falls between the last look and the opening, no link is followed.
        let executed = read(&path, "a", Range { start: 1, count: 1 });
        assert!(matches!(executed, Executed::Drifted(_)), "{executed:?}");
    }

    #[tokio::test]
    async fn what_lies_outside_is_told_after_it_was_allowed_only() {
        let stage = Stage::new();
        stage.write("../outside/dir/x", "x");
        std::fs::File::create(stage.root().join("outside/large")).unwrap().set_len(100 << 20).unwrap();
        for (tool, path, wanted) in [
            ("read_file", "../outside/dir", "Failed: ROOT/outside/dir: is a folder; use list_dir. Nothing was done."),
            ("read_file", "../outside/large", "Failed: ROOT/outside/large: has 104857600 bytes, and at most"),
            ("list_dir", "../outside/large", "Failed: ROOT/outside/large: is a file; use read_file."),
        ] {
            let arguments = format!(r#"{{"path":"{path}"}}"#);
            let facts = stage.call(tool, &arguments).await.facts.unwrap();
            assert!(facts.problem.is_none() && !facts.inside, "{path}: {:?}", facts.problem);
            let said = stage.run(tool, &arguments).await;
            assert!(said.starts_with(wanted), "{path}: {said}");
        }
        let none = stage.run("read_file", r#"{"path":"../outside/none"}"#).await;
        assert_eq!(none, "Impossible: ROOT/outside/none: no such file. Nothing was done.");
    }
}
