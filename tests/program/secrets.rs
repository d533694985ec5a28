//! No byte of a secret in the state directory: the real program, the real store, and tools that print a secret in
//! every way there is (docs/ENGINE.md §11.4). Only what a file of the operator's held before a call is kept exactly, since
//! it must be put back exactly.

use std::os::unix::fs::PermissionsExt;

use crate::program::stage::files;
use crate::real::Stage;
use crate::real::said;
use tiller::domain::event::Event;
use tiller::domain::event::Owner;
use tiller::domain::event::OwnerMode;
use tiller::domain::event::Record;
use tiller::domain::id::RunId;
use tiller::domain::tool::OutcomeKind;
use tiller::domain::tool::ProblemKind;
use tiller::store::place::Home;

const SECRET: &str = "hunter2/Blue+Whale=77";
/// The secret as base64, hexadecimal and URLs write it.
const WRITTEN: [&str; 4] = [
    SECRET,
    "aHVudGVyMi9CbHVlK1doYWxlPTc3",
    "68756e746572322f426c75652b5768616c653d3737",
    "hunter2%2FBlue%2BWhale%3D77",
];

fn tell(stage: &Stage, words: &[&str]) -> crate::real::Said {
    said(stage.tiller(words).env("DB_PASSWORD", SECRET).env("TILLER_LOG", "trace").spawn().unwrap())
}

/// Runs a script to where it waits, allows all of what waits at once, and goes on.
fn play(stage: &Stage, script: &str) -> String {
    let parked = tell(stage, &["run", "do it", "--plain", "--model", &stage.model(script)]);
    parked.check(10, &["waiting for approval"]);
    let line = parked.out.lines().find(|line| line.trim().starts_with("tiller approve") && line.contains(':'));
    let words: Vec<&str> = line.expect("a line that allows all").split_whitespace().skip(1).collect();
    tell(stage, &words).check(0, &["recorded"]);
    let resumed = tell(stage, &["resume", "--last", "--plain"]);
    parked.out + &resumed.out + &parked.err + &resumed.err
}

fn records(stage: &Stage) -> Vec<Record> {
    let state = stage.path("state/tiller");
    let owner = Owner { pid: 1, host: "test".to_string(), version: "0".to_string(), mode: OwnerMode::Records };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let home = Home::new(state, owner).unwrap();
        let id = RunId::try_from(stage.ids()[0].clone()).unwrap();
        let opened = home.open(&id).await.unwrap();
        opened.journal.close().await;
        opened.records
    })
}

#[test]
fn no_byte_of_a_secret_in_the_state_directory() {
    let stage = Stage::new();
    stage.write("work/notes.txt", &format!("password: {SECRET}\n"));
    stage.write("work/encoded.txt", &format!("{}\n{}\n{}\n", WRITTEN[1], WRITTEN[2], WRITTEN[3]));
    let script = format!(
        r#"
[[step]]
name = "plan"
text = "A plan; the password is {SECRET}."
calls = [ {{ tool = "update_plan", args = {{ todos = [ {{ id = "a", title = "print {SECRET}", status = "in_progress" }} ] }} }} ]

[[step]]
name = "look"
text = "Look."
calls = [
  {{ tool = "read_file", args = {{ path = "notes.txt" }} }},
  {{ tool = "read_file", args = {{ path = "encoded.txt" }} }},
  {{ tool = "search_files", args = {{ pattern = "password" }} }},
  {{ tool = "shell", args = {{ command = "cut -d' ' -f2 notes.txt | tee plain.txt; base64 plain.txt; od -An -tx1 plain.txt" }} }},
  {{ tool = "shell", args = {{ command = "printf hunter2/Blue; sleep 0.4; printf '+Whale=77\\n'" }} }},
  {{ tool = "edit_file", args = {{ path = "notes.txt", old_text = "password: ", new_text = "the password: " }} }},
  {{ tool = "shell", args = {{ command = "echo {SECRET}" }} }},
  {{ tool = "write_file", args = {{ path = "copy.txt", content = "[redacted:DB_PASSWORD:0123abcd]" }} }},
]

[[step]]
name = "done"
text = "Done."
calls = [ {{ tool = "finish", args = {{ summary = "printed {SECRET}", not_needed = [ {{ id = "a", reason = "over" }} ] }} }} ]
"#
    );
    let said = play(&stage, &script);
    let whole = records(&stage);

    let journal: String = whole.iter().map(|record| serde_json::to_string(record).unwrap() + "\n").collect();
    for written in WRITTEN {
        assert!(!journal.contains(written), "the journal holds {written}");
        assert!(!said.contains(written), "{written} was printed");
        let kept = |file: &std::path::Path| file.components().any(|part| part.as_os_str() == "pre-images");
        for (file, bytes) in files(&stage.path("state")).into_iter().filter(|(file, _)| !kept(file)) {
            let holds = bytes.windows(written.len()).any(|part| part == written.as_bytes());
            assert!(!holds, "{} holds {written}", file.display());
        }
    }
    let marks = journal.matches("[redacted:DB_PASSWORD:").count();
    assert!(marks >= 9, "{marks} marks in\n{journal}");
    let results: Vec<(&OutcomeKind, &str)> = whole
        .iter()
        .filter_map(|record| match &record.event {
            Event::ToolCallFinished { outcome, .. } => Some((&outcome.kind, outcome.text.as_str())),
            _ => None,
        })
        .collect();
    let refused = results.iter().filter(|(kind, _)| **kind == OutcomeKind::NotRun(ProblemKind::SecretInArguments));
    assert_eq!(refused.count(), 2, "{results:?}");
    assert!(!stage.path("work/copy.txt").exists(), "a mark is never written into the world");
    let notes = std::fs::read_to_string(stage.path("work/notes.txt")).unwrap();
    assert_eq!(notes, format!("the password: {SECRET}\n"), "files are changed exactly, and bound as they are");
    let kept: Vec<_> =
        files(&stage.path("state")).into_iter().filter(|(_, bytes)| bytes.starts_with(b"password: ")).collect();
    assert_eq!(kept.len(), 1);
    assert_eq!(std::fs::metadata(&kept[0].0).unwrap().permissions().mode() & 0o777, 0o600);
    let key = stage.path("state/tiller/redaction.key");
    assert_eq!(std::fs::metadata(key).unwrap().permissions().mode() & 0o777, 0o600);
}
