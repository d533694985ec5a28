//! What the machine does with one input after another, as texts that a person can read.
//!
//! `tests/machine/*.txt` hold the stories: inputs (`>`), and below each one every record and every effect that it led
//! to, a line each. Data in, text out; nothing is started and no time passes but the one that a story names. After a
//! change that is meant, `TILLER_BLESS=1 cargo test --test machine` writes the stories anew; read the difference.
//! `tests/machine/reading.rs` has the language of the inputs, `tests/machine/telling.rs` that of the answers.

use std::path::PathBuf;

use crate::machine::stage::Stage;

/// Plays all stories of a file and compares.
fn check(name: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/machine").join(format!("{name}.txt"));
    let written = std::fs::read_to_string(&path).unwrap();
    let played = play(&written);
    if std::env::var_os("TILLER_BLESS").is_some() {
        std::fs::write(&path, played).unwrap();
        return;
    }
    let mut story = "";
    for (place, (expected, got)) in written.lines().zip(played.lines()).enumerate() {
        story = if expected.starts_with("== ") { expected } else { story };
        let near: Vec<&str> = played.lines().skip(place.saturating_sub(6)).take(18).collect();
        assert_eq!(expected, got, "{name}.txt:{}, in `{story}`; played:\n{}\n", place + 1, near.join("\n"));
    }
    assert_eq!(written, played, "{name}.txt has an end of its own");
}

/// The stories with the answers that the machine gives now. What is neither input nor answer is kept.
fn play(written: &str) -> String {
    let mut played = String::new();
    let mut stage = Stage::new("");
    for line in written.lines().filter(|line| !line.starts_with("    ")) {
        played.push_str(line);
        played.push('\n');
        let answer = match line.split_once(' ').unwrap_or((line, "")) {
            ("==", _) => {
                stage = Stage::new("");
                Vec::new()
            }
            ("terms", terms) => {
                stage = Stage::new(terms);
                Vec::new()
            }
            (">", input) => stage.take(input),
            // On the way to what the story is about. What does not fit is told, and must not be.
            (".", input) => {
                let inputs = if input.starts_with("times ") { vec![input] } else { input.split(" / ").collect() };
                let answers = inputs.into_iter().flat_map(|one| stage.take(one));
                answers.filter(|line| line.starts_with("refused")).collect()
            }
            ("?", question) => stage.show(question),
            ("", _) | ("#", _) => Vec::new(),
            (other, _) => panic!("a line that begins with {other:?}"),
        };
        for one in answer.iter().flat_map(|text| text.lines()).filter(|line| !line.is_empty()) {
            played.push_str(&format!("    {}\n", one.trim_end()));
        }
    }
    played
}

#[test]
fn planning() {
    check("planning");
}

#[test]
fn progress() {
    check("progress");
}

#[test]
fn claims() {
    check("claims");
}

#[test]
fn wrap_up() {
    check("wrap_up");
}

#[test]
fn checks() {
    check("checks");
}

#[test]
fn budgets() {
    check("budgets");
}

#[test]
fn deadline() {
    check("deadline");
}

#[test]
fn approvals() {
    check("approvals");
}

#[test]
fn grave() {
    check("grave");
}

#[test]
fn crashes() {
    check("crashes");
}

#[test]
fn stopping() {
    check("stopping");
}

#[test]
fn trouble() {
    check("trouble");
}

#[test]
fn lineage() {
    check("lineage");
}

#[test]
fn outputs() {
    check("outputs");
}

#[test]
fn commands() {
    check("commands");
}

#[test]
fn interjections() {
    check("interjections");
}

#[test]
fn context() {
    check("context");
}
