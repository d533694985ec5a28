//! A rehearsal without a terminal, finished by a person who types what the program prints and nothing else.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod real;

use std::fs;

use real::Said;
use real::Stage;

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
    other.check(2, &["call c12 is not what 00000000 stands for; nothing was decided"]);
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
