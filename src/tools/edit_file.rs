//! `edit_file`: an exact text of one file replaced by another. How a change is shown and made is in `change.rs`.

use serde::Deserialize;
use serde_json::json;

use crate::domain::limits;
use crate::domain::text::counted;
use crate::domain::text::head;
use crate::domain::tool::EffectClass;
use crate::domain::tool::Noise;
use crate::domain::tool::Problem;
use crate::domain::tool::ProblemKind;
use crate::domain::tool::ToolSpec;
use crate::tools::Prepared;
use crate::tools::Scene;
use crate::tools::Tool;
use crate::tools::arguments;
use crate::tools::change;
use crate::tools::place;
use crate::tools::place::Place;
use crate::tools::read_file::text_of;
use crate::tools::withheld;

/// Lines that are compared when the nearest one is looked for.
const HINT_LINES: usize = 20_000;
/// How much of a line is compared, in bytes.
const HINT_LINE_BYTES: usize = 160;
/// How alike a line must be to be worth naming, from 0 to 1.
const HINT_LIKENESS: f64 = 0.6;

/// The tool.
pub(crate) struct EditFile;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
    old_text: String,
    new_text: String,
    #[serde(default)]
    replace_all: bool,
}

impl Tool for EditFile {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "edit_file".to_string(),
            description: format!(
                "Replaces old_text by new_text in a UTF-8 text file of at most {} KiB. old_text must be in the file \
                 exactly once, with the same white space and line breaks and without the line numbers of read_file; \
                 add lines around it to make it unique, or set replace_all.",
                limits::FILE_MAX_BYTES / 1024
            ),
            schema: json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "File, relative to the workspace."},
                    "old_text": {"type": "string", "minLength": 1, "description": "The text to replace, exactly."},
                    "new_text": {"type": "string", "description": "The text to put there, possibly empty."},
                    "replace_all": {"type": "boolean", "description": "Replace every occurrence. Default false."},
                },
                "required": ["path", "old_text", "new_text"],
                "additionalProperties": false,
            }),
            effect: EffectClass::WriteFile,
            noise: Noise::default(),
        }
    }

    fn prepare(&self, scene: &Scene, arguments: &str) -> Result<Prepared, Problem> {
        let asked: Arguments = arguments::read(arguments)?;
        if asked.old_text.is_empty() || asked.old_text == asked.new_text {
            let text = "old_text must not be empty, and new_text must differ from it. Nothing was done.";
            return Err(arguments::problem(ProblemKind::InvalidArguments, text));
        }
        let place = Place::find(scene, &asked.path)?;
        withheld::until_allowed(&place, edit(scene, &place, &asked))
    }
}

fn edit(scene: &Scene, place: &Place, asked: &Arguments) -> Result<Prepared, Problem> {
    let Some(before) = change::current(place)? else {
        return Err(place::not_there(&place.shown, "no such file; use write_file to make it"));
    };
    let Some(text) = text_of(&before.bytes) else {
        return Err(place::impossible(&place.shown, "is a binary file"));
    };
    let matches = text.matches(&asked.old_text).count();
    if matches == 0 || (matches > 1 && !asked.replace_all) {
        return Err(mismatch(place, asked, text, matches));
    }
    let after = replaced(place, text, asked, matches)?;
    let done = format!(
        "Edited {}: replaced {matches} of {matches}; it has {} now.",
        place.shown,
        counted(after.lines().count(), "line")
    );
    change::prepare(scene, place, Some(before), after, done)
}

fn replaced(place: &Place, text: &str, asked: &Arguments, matches: usize) -> Result<String, Problem> {
    // Counted first: many small matches and a long new text would fill the memory.
    let added = asked.new_text.len().saturating_mul(matches);
    let size = (text.len() - asked.old_text.len() * matches).saturating_add(added);
    if size as u64 > limits::FILE_MAX_BYTES {
        let why = format!("it would have {size} bytes, and at most {} are written", limits::FILE_MAX_BYTES);
        return Err(place::impossible(&place.shown, &why));
    }
    Ok(text.replace(&asked.old_text, &asked.new_text))
}

/// What is said when the text is not there just once.
fn mismatch(place: &Place, asked: &Arguments, text: &str, matches: usize) -> Problem {
    let why = match matches {
        0 => format!("old_text is not in the file{}", hint(text, &asked.old_text)),
        count => format!("old_text is in the file {count} times; make it longer to be unique, or set replace_all"),
    };
    place::impossible(&place.shown, &why)
}

/// What may have gone wrong with a text that is not in the file.
fn hint(text: &str, old: &str) -> String {
    if text.contains("\r\n") && old.contains('\n') && text.replace("\r\n", "\n").contains(old) {
        return "; its lines end with \\r\\n, and those of old_text with \\n".to_string();
    }
    let bare: Vec<&str> = old.lines().map(without_number).collect();
    if text.contains(&bare.join("\n")) {
        return "; it would be without the line numbers".to_string();
    }
    let Some(wanted) = old.lines().map(str::trim).find(|line| !line.is_empty()) else { return String::new() };
    let wanted = head(wanted, HINT_LINE_BYTES);
    let mut nearest = (HINT_LIKENESS, None);
    for (index, line) in text.lines().take(HINT_LINES).enumerate() {
        let trimmed = line.trim();
        if trimmed == wanted {
            return format!("; line {} begins like it: compare white space and the lines after it", index + 1);
        }
        let likeness = strsim::sorensen_dice(wanted, head(trimmed, HINT_LINE_BYTES));
        if likeness > nearest.0 {
            nearest = (likeness, Some((index, trimmed)));
        }
    }
    match nearest.1 {
        Some((index, line)) => format!("; nearest is line {}: {}", index + 1, head(line, HINT_LINE_BYTES)),
        None => String::new(),
    }
}

fn without_number(line: &str) -> &str {
    match line.split_once('\t') {
        Some((number, rest))
            if !number.trim().is_empty() && number.trim().bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            rest
        }
        Some(_) | None => line,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use crate::domain::tool::OutcomeKind;
    use crate::tools::Executed;
    use crate::tools::stage::Stage;
    use std::os::unix::fs::symlink;

    fn edit(path: &str, old: &str, new: &str) -> String {
        serde_json::json!({ "path": path, "old_text": old, "new_text": new }).to_string()
    }

    fn edit_all(path: &str, old: &str, new: &str) -> String {
        serde_json::json!({ "path": path, "old_text": old, "new_text": new, "replace_all": true }).to_string()
    }

    async fn check(stage: &Stage, arguments: &str, wanted: &str) {
        let text = stage.run("edit_file", arguments).await;
        assert!(text.starts_with(wanted), "{arguments:.200}: {text:.400}");
    }

    #[tokio::test]
    async fn text_is_replaced_once_or_everywhere() {
        let stage = Stage::new();
        stage.write("a.rs", "fn one() {}\nfn two() {}\n");
        let facts = stage.call("edit_file", &edit("a.rs", "two() {}", "three() {\n}")).await.facts.unwrap();
        assert_eq!((facts.title.as_str(), facts.inside), ("a.rs +2 −1", true));
        let wanted = "--- a.rs\n+++ a.rs\n@@ -1,2 +1,3 @@\n fn one() {}\n-fn two() {}\n+fn three() {\n+}\n";
        assert_eq!(facts.preview, wanted);
        let done = "Done: Edited a.rs: replaced 1 of 1; it has 3 lines now.";
        check(&stage, &edit("a.rs", "two() {}", "three() {\n}"), done).await;
        check(&stage, &edit_all("a.rs", "fn", "pub fn"), "Done: Edited a.rs: replaced 2 of 2").await;
        check(&stage, &edit("a.rs", "\n}\n", ""), "Done").await;
        assert_eq!(stage.read("a.rs"), "pub fn one() {}\npub fn three() {");
    }

    #[tokio::test]
    async fn edits_that_do_not_fit_say_why() {
        let stage = Stage::new();
        stage.write("a", "let x = 1;\n    let total = price * count;\nlet x = 2;\n");
        stage.write("crlf", "one\r\ntwo\r\n");
        stage.write("binary", b"\0one");
        for (arguments, wanted) in [
            (edit("a", "let x", "y"), "Impossible: a: old_text is in the file 2 times; make it longer"),
            (
                edit("a", "let total = prize * count;", "y"),
                "Impossible: a: old_text is not in the file; nearest is line 2: let total = price * count;. Nothing",
            ),
            (
                edit("a", "let total = price * count;\nlet y", "y"),
                "Impossible: a: old_text is not in the file; line 2 begins like it",
            ),
            (
                edit("a", "1\tlet x = 1;\n2\t    let total", "y"),
                "Impossible: a: old_text is not in the file; it would be without",
            ),
            (edit("a", "zzzz qqqq", "y"), "Impossible: a: old_text is not in the file. Nothing"),
            (edit("crlf", "one\ntwo", "y"), "Impossible: crlf: old_text is not in the file; its lines end with \\r\\n"),
            (edit("none", "x", "y"), "Impossible: none: no such file; use write_file"),
            (edit("binary", "one", "y"), "Impossible: binary: is a binary file"),
            (edit("a", "", "y"), "InvalidArguments: old_text must not be empty"),
            (edit("a", "x", "x"), "InvalidArguments: old_text must not be empty"),
        ] {
            check(&stage, &arguments, wanted).await;
        }
        assert!(stage.read("a").starts_with("let x = 1;\n    let total = price * count;"));
    }

    #[tokio::test]
    async fn hostile_sizes_are_harmless() {
        let stage = Stage::new();
        stage.write("a", "a".repeat(1_000_000));
        let bomb = edit_all("a", "a", &"b".repeat(500_000));
        check(&stage, &bomb, "Impossible: a: it would have 500000000000 bytes").await;
        check(&stage, &edit("a", &"ab".repeat(100_000), "x"), "Impossible: a: old_text is not in the file").await;
        stage.write("a", "ab\n".repeat(300_000));
        check(&stage, &edit("a", "completely different", "x"), "Impossible: a: old_text is not in the file").await;
    }

    /// Whether a text is in a file that needs a question is an answer that needs one too.
    #[tokio::test]
    async fn nothing_is_told_of_a_file_outside_before_it_is_allowed() {
        let stage = Stage::new();
        stage.write("../outside/key", "top secret line\n");
        stage.write(".env", "KEY=top secret line\n");
        symlink(stage.root().join("outside/key"), stage.scene.workspace.join("link")).unwrap();
        for path in ["link", ".env"] {
            for old in ["top secret lime", "e"] {
                let call = stage.call("edit_file", &edit(path, old, "x")).await;
                let facts = call.facts.clone().unwrap();
                assert!(facts.problem.is_none() && !facts.inside && facts.write.is_none(), "{facts:?}");
                assert!(!format!("{facts:?}").contains("top secret line"), "{facts:?}");
                let Executed::Ended(outcome) = stage.execute(&call).await else { panic!("drifted") };
                assert_eq!(outcome.kind, OutcomeKind::Failed);
            }
        }
    }

    /// Whatever depends on the content waits for the question, however it would be told: as a size, as too much to show.
    #[tokio::test]
    async fn a_guess_at_a_file_that_needs_a_question_is_answered_after_it_only() {
        let mut stage = Stage::new();
        stage.write(".env", "KEY=a\nb\nc\n");
        stage.write("../outside/key", "KEY=a\nb\nc\n");
        stage.write("latin.pem", b"caf\xe9");
        stage.scene.pre_images = None;
        let long = "x".repeat(1_000_000);
        let lines = "\n".repeat(400_000);
        for path in [".env", "../outside/key"] {
            for guess in ["KEY=a", "KEY=b", "\n"] {
                for arguments in [edit_all(path, guess, &long), edit_all(path, guess, &lines)] {
                    let facts = stage.call("edit_file", &arguments).await.facts.unwrap();
                    assert!(facts.problem.is_none() && !facts.inside, "{path} {guess:?}: {:?}", facts.problem);
                }
            }
        }
        let facts = stage.call("edit_file", &edit("latin.pem", "a", "b")).await.facts.unwrap();
        assert!(facts.problem.is_none() && !facts.inside, "{:?}", facts.problem);
        let said = stage.run("edit_file", &edit_all(".env", "\n", &long)).await;
        assert!(said.starts_with("Failed: .env: it would have 3000007 bytes"), "{said:.200}");
        let said = stage.run("edit_file", &edit_all(".env", "\n", &"\n".repeat(349_523))).await;
        assert!(said.starts_with("Failed: .env: the change is too long for a person to read"), "{said:.200}");
    }
}
