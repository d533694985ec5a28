//! What a run waits for when it is opened on the screen, and what goes on by itself.

use nix::sys::signal::Signal;
use nix::sys::signal::kill;
use nix::unistd::Pid;

use crate::program::scripts::SHORT;
use crate::program::scripts::shell;
use crate::program::terminal::CTRL_C;
use crate::program::terminal::CTRL_G;
use crate::program::terminal::ENTER;
use crate::program::terminal::ESC;
use crate::program::terminal::F6;
use crate::program::terminal::decide;
use crate::program::terminal::leave;
use crate::program::terminal::pty::Pty;
use crate::real::Stage;
use crate::real::said;
use crate::real::until;

/// A stage whose runs go on by themselves when they were cut off.
fn by_itself() -> Stage {
    let stage = Stage::new();
    stage.write("config/tiller/tiller.toml", "[run]\nresume = \"auto\"\n");
    stage
}

/// Opens the only run from the list of runs.
fn open_again(stage: &Stage) -> Pty {
    let pty = Pty::tiller(stage, (120, 36), &[]);
    pty.wait_for("1 run");
    pty.type_in(ENTER);
    pty
}

/// No model is needed to look at runs: that one is missing is said as a fact, and where a run is to be started.
#[test]
fn the_list_opens_without_a_model() {
    let stage = Stage::new();
    let pty = Pty::tiller(&stage, (120, 36), &[]);
    pty.wait_for("no model is chosen yet; a new run needs one, `tiller rehearse` does not");
    assert!(!pty.text().contains("the configuration"), "{}", pty.text());
    pty.type_in("make it work");
    pty.type_in(ENTER);
    pty.wait_for("no model is named; write model");
    pty.wait_for("make it work");
    pty.close().wait().unwrap();
    assert!(stage.ids().is_empty());
}

/// What is trusted is shown, and only a word that says so has it done.
#[test]
fn a_folder_is_trusted_by_a_typed_word() {
    let stage = Stage::new();
    stage.write("work/AGENTS.md", "Run make first.\n");
    let answer = |typed: &str| {
        let mut pty = Pty::tiller(&stage, (120, 36), &["trust"]);
        pty.wait_for("trust this folder, so that new runs there are told that? yes or no:");
        assert!(pty.text().contains("| Run make first."), "{}", pty.text());
        pty.type_in(typed);
        assert_eq!(pty.end(), 0);
        stage.ask(&["trust", "--list"]).out.contains("not told yet")
    };
    assert_eq!(["\r", "no\r", "yess\r", "y\r"].map(answer), [false, false, false, true]);
}

/// Where there is nothing to look at, the question is about what may come.
#[test]
fn a_folder_without_a_guide_is_trusted_for_one_that_may_come() {
    let stage = Stage::new();
    let mut pty = Pty::tiller(&stage, (120, 36), &["trust"]);
    pty.wait_for("trust this folder, so that new runs there are told such a file once it has one? yes or no:");
    pty.type_in("no\r");
    assert_eq!(pty.end(), 0);
}

/// A goal that is half written in the list is there again after a run was looked at.
#[test]
fn a_goal_that_is_half_written_outlives_a_look_at_a_run() {
    let stage = Stage::new();
    let model = stage.model(SHORT);
    for goal in ["the first", "the second"] {
        stage.ask(&["run", goal, "--plain", "--model", &model]).check(0, &[]);
    }
    let mut pty = Pty::tiller(&stage, (120, 36), &[]);
    pty.wait_for("2 runs");
    pty.type_in("n");
    pty.wait_for("what is to be reached");
    pty.type_in("mend half a sentence");
    pty.wait_for("new goal › mend half a sentence");
    pty.type_in(ESC);
    for _ in 0..2 {
        pty.wait_for("Enter open");
        pty.type_in("j");
        pty.type_in(ENTER);
        pty.wait_for("1 Plan");
        pty.type_in(F6);
        pty.wait_for("new goal › mend half a sentence");
    }
    pty.type_in(CTRL_C);
    pty.wait("it is cleared", |screen| !screen.contains("mend half"));
    pty.type_in("q");
    assert_eq!(pty.end(), 0);
}

#[test]
fn a_run_that_was_cut_off_goes_on_by_itself_where_that_is_wished() {
    let stage = by_itself();
    let model = stage.model(SHORT);
    let mut command = stage.tiller(&["run", "do it", "--plain", "--model", &model]);
    assert_eq!(said(command.env("TILLER_FAULT", "after:C3:1").spawn().unwrap()).code, -9);
    let mut pty = open_again(&stage);
    pty.wait_for("completed: claimed");
    assert_eq!(leave(&mut pty), 0);
    let export = stage.ask(&["export", &stage.ids()[0]]).out;
    assert_eq!(export.matches("\"type\":\"recovered\"").count(), 1, "{export}");
}

#[test]
fn nothing_goes_on_by_itself_where_nobody_knows_what_became_of_a_call() {
    let stage = by_itself();
    let model = stage.model(&shell("echo here >> trace.txt; sleep 300"));
    let mut pty = Pty::tiller(&stage, (120, 36), &["do it", "--model", &model]);
    pty.wait_for("the run waits");
    pty.type_in(CTRL_G);
    decide(&pty, "shell  echo here", "y");
    until("the call runs", || stage.path("work/trace.txt").exists().then_some(()));
    kill(Pid::from_raw(pty.id()), Signal::SIGKILL).unwrap();
    pty.end();
    let mut pty = open_again(&stage);
    pty.wait_for("outcome unknown");
    assert_eq!(leave(&mut pty), 14);
    assert_eq!(stage.show()["summary"]["status"]["parked"], "outcome_unknown");
    assert_eq!(std::fs::read_to_string(stage.path("work/trace.txt")).unwrap(), "here\n", "it ran once");
}

/// A process that is killed right after a message was recorded leaves no draft of it, which would be sent once more.
#[test]
fn what_was_sent_is_no_draft_after_a_kill() {
    let stage = Stage::new();
    let mut pty = Pty::tiller(&stage, (120, 36), &["do it", "--model", &stage.model(&shell("true"))]);
    pty.wait_for("the run waits");
    pty.type_in("mind the gap");
    let draft = stage.run_dir(&stage.ids()[0]).join("draft.json");
    let is_kept = || std::fs::read_to_string(&draft).is_ok_and(|text| text.contains("mind the gap"));
    until("the draft is kept", || is_kept().then_some(()));
    pty.type_in(ENTER);
    pty.wait_for("queued i1: next");
    kill(Pid::from_raw(pty.id()), Signal::SIGKILL).unwrap();
    pty.end();
    assert!(!is_kept(), "it is a draft still");
    // As if the kill had come before the draft was cleared.
    std::fs::write(&draft, "\"mind the gap\"").unwrap();
    let mut pty = Pty::tiller(&stage, (120, 36), &["resume", &stage.ids()[0]]);
    pty.wait_for("what stood here was sent already");
    pty.wait_for("› say something to the agent");
    assert_eq!(leave(&mut pty), 10);
}

/// Nobody knows the price of this model, and nobody can be asked without a screen.
#[test]
fn a_run_without_a_price_waits_for_one() {
    let stage = Stage::new();
    let config = "model = \"far/m\"\n[providers.far]\nbase_url = \"https://192.0.2.1/v1\"\n";
    stage.write("config/tiller/tiller.toml", config);
    let mut pty = Pty::tiller(&stage, (120, 36), &["do it"]);
    pty.wait_for("price unknown");
    assert_eq!(leave(&mut pty), 13);
    let id = stage.ids()[0].clone();
    stage.ask(&["price", &id, "0.25"]).check(2, &["Usage"]);
    stage.ask(&["price", &id, "0.25", "2.00"]).check(0, &["recorded"]);
    stage.ask(&["price", &id, "--unpriced"]).check(0, &["recorded"]);
    let export = stage.ask(&["export", &id]).out;
    let chosen: Vec<&str> = export.lines().filter(|line| line.contains("\"type\":\"price_chosen\"")).collect();
    assert_eq!(chosen.len(), 2, "{export}");
    assert!(chosen[0].contains("250000") && chosen[0].contains("2000000"), "{}", chosen[0]);
    let raised = stage.ask(&["raise", &id, "tokens", "unlimited"]);
    raised.check(3, &["its tokens must be bounded; the limit was not changed"]);
}

/// What can't be opened stays selected, so that Enter pressed once more opens no other run.
#[test]
fn a_refused_opening_leaves_the_selection_where_it_was() {
    let stage = Stage::new();
    stage.ask(&["rehearse", "--plain", "--script", &stage.fast_rehearsal()]).check(10, &[]);
    let file = stage.path("out.jsonl").display().to_string();
    stage.ask(&["export", &stage.ids()[0], "--out", &file]).check(0, &[]);
    stage.ask(&["import", &file, "--as-new"]).check(0, &[]);
    let mut pty = Pty::tiller(&stage, (120, 36), &[]);
    pty.wait_for("2 runs, 1 unfinished");
    let is_selected =
        |screen: &str| screen.lines().any(|row| row.contains('▸') && row.contains("imported rehearsal, can't go on"));
    assert!(!is_selected(&pty.text()), "{}", pty.text());
    pty.type_in("j");
    pty.wait("the imported one is selected", is_selected);
    for _ in 0..2 {
        pty.type_in(ENTER);
        pty.wait("it is refused, and selected still", |screen| {
            screen.contains("was not opened") && is_selected(screen)
        });
    }
    pty.type_in("q");
    assert_eq!(pty.end(), 0);
}

/// What is told of a run as its room opens is not told again whenever somebody comes back from the list.
#[test]
fn what_was_told_of_a_run_is_not_told_again() {
    let stage = Stage::new();
    stage.write("work/tiller.toml", "");
    let mut pty = Pty::tiller(&stage, (120, 36), &["do it", "--model", &stage.model(&shell("echo done"))]);
    pty.wait_for("is not read");
    pty.wait_for("the run waits");
    pty.type_in(F6);
    pty.wait_for("tiller  runs");
    pty.type_in(ENTER);
    pty.wait_for("the run waits");
    assert!(!pty.text().contains("is not read"), "{}", pty.text());
    assert_eq!(leave(&mut pty), 10);
}
