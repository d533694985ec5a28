//! A rehearsal without a terminal, finished by a person who types what the program prints and nothing else.

use std::fs;

use crate::real::Said;
use crate::real::Stage;
use serde_json::Value;

/// A rehearsal that has more stops than this goes round in circles.
const STOPS_MAX: usize = 30;

/// The lines that the program says to type.
fn printed(told: &Said) -> Vec<String> {
    let lines = told.out.lines().skip_while(|line| !line.starts_with("to go on, ")).skip(1);
    lines.filter_map(|line| line.strip_prefix("  tiller ")).map(String::from).collect()
}

/// Types a line as it was printed.
fn type_in(stage: &Stage, line: &str) -> Said {
    let words = shlex::split(line).unwrap();
    stage.ask(&words.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Goes on by printed lines to the end. Of several lines that decide the same, `choose` gives the one that is typed.
fn finish(stage: &Stage, first: Said, choose: impl Fn(&[String]) -> String) -> Said {
    let mut told = first;
    for _ in 0..STOPS_MAX {
        let lines = printed(&told);
        if lines.is_empty() {
            return told;
        }
        let (resume, deciding) = lines.split_last().unwrap();
        assert!(resume.starts_with("resume "), "{told}");
        if !deciding.is_empty() {
            let decided = type_in(stage, &choose(deciding));
            decided.check(0, &["recorded"]);
            assert_eq!(printed(&decided).last(), Some(resume), "{decided}");
        }
        told = type_in(stage, resume);
    }
    panic!("no end: {told}");
}

fn workspace(stage: &Stage) -> std::path::PathBuf {
    stage.run_dir(&stage.ids()[0]).join("workspace")
}

#[test]
fn parked_at_the_first_decision() {
    let stage = Stage::new();
    let told = stage.ask(&["rehearse"]);
    let id = stage.ids()[0].clone();
    let short = &id[..6];
    told.check(10, &["[parked] waiting for approval", "what to do: allow or deny the call that waits"]);
    let lines = printed(&told);
    assert_eq!(lines.len(), 3, "{told}");
    assert!(lines[0].starts_with(&format!("approve {short} c12 ")), "{told}");
    assert!(lines[1].starts_with(&format!("deny {short} c12 ")), "{told}");
    assert_eq!(lines[2], format!("resume {short}"));
    // Resumed without a decision, it says the same again and does nothing.
    let again = stage.ask(&["resume", "--plain"]);
    assert_eq!(again.code, 10, "{again}");
    assert_eq!(printed(&again), lines);
    // `show` prints the same lines, and the call in full.
    let shown = stage.ask(&["show", short]);
    assert_eq!(printed(&shown), lines);
    shown.check(0, &["[decision needed] c12 shell: sh check.sh", "runs a program with your rights"]);
    // A digest that is not the one that was shown decides nothing.
    let other = stage.ask(&["approve", short, "c12", "00000000"]);
    other.check(3, &["call c12 is not what 00000000 stands for; nothing was decided"]);
    assert_eq!(printed(&stage.ask(&["show", short])), lines);
}

#[test]
fn printed_lines_lead_to_a_verified_end() {
    let stage = Stage::new();
    let first = stage.ask(&["rehearse"]);
    let told = finish(&stage, first, |lines| lines[0].clone());
    told.check(0, &["[completed] verified", "is completed (verified)"]);
    assert!(workspace(&stage).join("NOTICE.txt").exists());
    assert!(!workspace(&stage).join("attic").exists(), "what was allowed was done");
    stage.ask(&["runs"]).check(0, &["completed: verified (rehearsal)"]);
    stage.ask(&["resume", "--last"]).check(0, &["is completed (verified)"]);
}

#[test]
fn a_denied_call_is_not_run_and_the_end_is_verified() {
    let stage = Stage::new();
    let first = stage.ask(&["rehearse", "--script", &stage.fast_rehearsal()]);
    let told = finish(&stage, first, |lines| {
        let shown = stage.show();
        let titles = shown["waiting"].as_array().unwrap().iter().map(|one| one["title"].as_str().unwrap());
        let is_attic = titles.into_iter().any(|title| title.contains("rm -rf attic"));
        let wanted = if is_attic { "deny " } else { "a" };
        lines.iter().find(|line| line.starts_with(wanted)).unwrap().clone()
    });
    told.check(0, &["[completed] verified"]);
    let soundings = fs::read_to_string(workspace(&stage).join("attic/soundings.txt")).unwrap();
    assert!(!soundings.is_empty());
}

/// A run that reads more than its small window holds: it reads nine files, and `more` before it is finished.
fn long_script(more: &str) -> String {
    let mut script = String::from(
        "[[step]]\nname = \"plan\"\ntext = \"A plan.\"\n\
         calls = [ { tool = \"update_plan\", args = { todos = [ { id = \"z\", title = \"read all\", status = \"in_progress\" } ] } } ]\n",
    );
    for n in 1..=9 {
        script += &format!(
            "[[step]]\nname = \"read{n}\"\ntext = \"I read file {n}.\"\n\
             calls = [ {{ tool = \"read_file\", args = {{ path = \"f{n}.txt\" }} }}, \
             {{ tool = \"update_plan\", args = {{ mode = \"patch\", todos = [ {{ id = \"t{n}\", title = \"file {n}\", status = \"pending\" }} ] }} }} ]\n"
        );
    }
    let dropped: Vec<String> =
        (1..=9).map(|n| format!("{{ id = \"t{n}\", title = \"file {n}\", status = \"done\" }}")).collect();
    script += more;
    script += &format!(
        "[[step]]\nname = \"end\"\ntext = \"Done.\"\ncalls = [ {{ tool = \"update_plan\", args = {{ mode = \"patch\", todos = \
         [ {{ id = \"z\", title = \"read all\", status = \"done\" }}, {} ] }} }}, {{ tool = \"finish\", args = {{ summary = \"read all\" }} }} ]\n",
        dropped.join(", ")
    );
    script
        + "[summary]\ntext = \"\"\"\n## Facts found\nThe files are numbered.\n## Decisions and reasons\nnone\n## Files touched\nnone\n\
              ## Failed approaches\nnone\n## Next step\nRead on.\n\"\"\"\n"
}

fn read_with_a_small_window(more: &str) -> (Stage, Said) {
    let stage = Stage::new();
    for n in 1..=9 {
        let lines: String = (0..120).map(|line| format!("file {n} line {line} says nothing of weight\n")).collect();
        stage.write(&format!("work/f{n}.txt"), &lines);
    }
    let model = stage.model(&long_script(more));
    stage.write("config/tiller/tiller.toml", &format!("[models.\"{model}\"]\nwindow = 12000\nmax_output = 1000\n"));
    let told = stage.ask(&["run", "read all", "--json", "--model", &model]);
    (stage, told)
}

fn events<'a>(told: &'a Said, name: &'a str) -> impl Iterator<Item = Value> + 'a {
    told.out
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter_map(|line| line.get("event").cloned())
        .filter(move |event| event["type"] == name)
}

#[test]
fn a_run_that_outgrows_its_window_prunes_summarises_reads_again_and_finishes() {
    let (_stage, told) = read_with_a_small_window("");
    told.check(0, &[]);
    let refs: Vec<Value> =
        events(&told, "context_pruned").flat_map(|event| event["refs"].as_array().cloned().unwrap()).collect();
    assert!(refs.len() >= 3, "{refs:?}");
    let compacted: Vec<Value> = events(&told, "context_compacted").collect();
    assert!(!compacted.is_empty(), "{told}");
    for one in &compacted {
        assert_eq!(one["author"], "model", "{one}");
        assert!(one["after"].as_u64() < one["before"].as_u64(), "{one}");
    }
    let asked = events(&told, "model_call_started").filter(|event| event["purpose"] == "summary").count();
    assert_eq!(asked, compacted.len(), "each summary is a call of its own");

    // The same again, and before its end the first file is read from the conversation.
    let hash = refs[0]["result"].as_str().unwrap();
    let again = format!(
        "[[step]]\nname = \"again\"\ntext = \"What did the first say?\"\ncalls = [ {{ tool = \"read_ref\", args = {{ ref = \"{hash}\" }} }} ]\n"
    );
    let (_stage, told) = read_with_a_small_window(&again);
    told.check(0, &[]);
    let given = events(&told, "tool_call_finished").any(|event| {
        event["outcome"]["text"].as_str().is_some_and(|text| text.contains("file 1 line 119 says nothing of weight"))
            && event["call"] != refs[0]["call"]
    });
    assert!(given, "read_ref gave the first file back\n{told}");
}
