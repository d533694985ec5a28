//! A rehearsal from the first key to its verified end.

use crate::program::terminal::CTRL_G;
use crate::program::terminal::ENTER;
use crate::program::terminal::decide;
use crate::program::terminal::go_to;
use crate::program::terminal::leave;
use crate::program::terminal::pty::Pty;
use crate::program::terminal::send;
use crate::real::Stage;

/// Plays to the question: one allowed for the run, one denied with words, one denied, two allowed.
fn play_to_the_question(pty: &Pty) {
    pty.wait_for("the run waits");
    pty.type_in(CTRL_G);
    decide(pty, "shell  sh check.sh", "a");
    go_to(pty, "edit_file  lib/height.sh");
    pty.type_in("d");
    pty.wait_for("Enter send  Esc back");
    send(pty, "proof first");
    for (call, key) in
        [("shell  rm -rf attic", "n"), ("edit_file  lib/clock.sh", "y"), ("write_file  cases/midnight.txt", "y")]
    {
        go_to(pty, call);
        decide(pty, call, key);
    }
    pty.wait_for("in metres, as on the board, or in feet");
}

#[test]
fn a_whole_rehearsal() {
    let stage = Stage::new();
    let mut pty = Pty::tiller(&stage, (120, 36), &["rehearse", "--script", &stage.fast_rehearsal()]);
    play_to_the_question(&pty);
    assert_eq!(leave(&mut pty), 14);
    let id = stage.ids()[0].clone();
    let short = &id[..6];
    let text = pty.text();
    assert!(text.contains(&format!("run {short} is parked (question)")), "{text}");
    let question = stage.show()["waiting"][0]["call"].as_str().unwrap().to_string();
    assert!(text.contains(&format!("  tiller answer {short} {question} \"the answer\"")), "{text}");
    assert!(text.contains(&format!("  tiller resume {short}")), "{text}");

    let mut pty = Pty::tiller(&stage, (120, 36), &["resume", short]);
    pty.wait_for("in metres, as on the board, or in feet");
    pty.type_in("in feet");
    pty.wait_for("in feet");
    pty.type_in(ENTER);
    pty.wait_for("write_file  NOTICE.txt");
    pty.type_in(CTRL_G);
    decide(&pty, "write_file  NOTICE.txt", "y");
    pty.wait_for("completed: verified");
    let work = stage.run_dir(&id).join("workspace");
    assert!(std::fs::read_to_string(work.join("NOTICE.txt")).unwrap().contains("8 ft"));
    assert!(work.join("attic/soundings.txt").exists(), "what was denied was not done");
    assert_eq!(leave(&mut pty), 0);
    assert!(pty.text().contains(&format!("run {short} is completed (verified)")), "{}", pty.text());
}

#[test]
fn the_first_approval_on_a_small_screen() {
    let stage = Stage::new();
    let mut pty = Pty::tiller(&stage, (80, 24), &["rehearse", "--script", &stage.fast_rehearsal()]);
    pty.wait_for("the run waits");
    pty.type_in(CTRL_G);
    decide(&pty, "sh check.sh", "y");
    pty.wait("the next call waits", |screen| screen.contains("waiting for approval") && screen.contains("edit_file"));
    assert_eq!(leave(&mut pty), 10);
    let shown = stage.show();
    assert_eq!(shown["waiting"][0]["tool"], "edit_file", "{}", shown["waiting"]);
}
