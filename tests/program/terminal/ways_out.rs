//! Signals while a call runs on the screen: the terminal is given back, the call's processes are gone, and the run is
//! parked or can be recovered.

use std::time::Duration;
use std::time::Instant;

use nix::sys::signal::Signal;
use nix::sys::signal::kill;
use nix::unistd::Pid;

use crate::program::scripts::shell;
use crate::program::stage::is_alive;
use crate::program::terminal::CTRL_D;
use crate::program::terminal::CTRL_G;
use crate::program::terminal::ENTER;
use crate::program::terminal::F6;
use crate::program::terminal::decide;
use crate::program::terminal::leave;
use crate::program::terminal::pty::Pty;
use crate::real::Stage;
use crate::real::until;

/// A run whose call is running, on the screen.
fn running(stage: &Stage, number: u32) -> (Pty, String) {
    let marker = format!("sleep 300.{number}{}", std::process::id());
    let model = stage.model(&shell(&format!("{marker} & {marker}; wait")));
    let pty = Pty::tiller(stage, (120, 36), &["do it", "--model", &model]);
    pty.wait_for("the run waits");
    pty.type_in(CTRL_G);
    decide(&pty, &marker, "y");
    until("the call runs", || is_alive(&marker).then_some(()));
    (pty, marker)
}

fn check_signal(signal: Signal, number: u32) {
    let stage = Stage::new();
    let (mut pty, marker) = running(&stage, number);
    kill(Pid::from_raw(pty.id()), signal).unwrap();
    assert_eq!(pty.end(), 14, "{}", pty.text());
    pty.check_restored();
    assert!(!is_alive(&marker), "children are left");
    let id = stage.ids()[0].clone();
    let text = pty.text();
    assert!(text.contains(&format!("tiller resume {}", &id[..6])), "{text}");
    let status = stage.show()["summary"]["status"].clone();
    assert!(status["parked"].is_string(), "{status}");
}

#[test]
fn terminated() {
    check_signal(Signal::SIGTERM, 61);
}

#[test]
fn hung_up() {
    check_signal(Signal::SIGHUP, 62);
}

#[test]
fn interrupted_from_outside() {
    check_signal(Signal::SIGINT, 63);
}

/// Nothing can be said after a kill; the run is found in the list of runs, and goes on from there.
#[test]
fn killed_and_opened_again_from_the_list() {
    let stage = Stage::new();
    let (mut pty, marker) = running(&stage, 64);
    kill(Pid::from_raw(pty.id()), Signal::SIGKILL).unwrap();
    pty.end();
    until("its children are gone", || (!is_alive(&marker)).then_some(()));

    let mut pty = Pty::tiller(&stage, (120, 36), &[]);
    pty.wait_for("1 run");
    pty.type_in(ENTER);
    pty.wait_for("outcome unknown");
    pty.type_in(CTRL_G);
    pty.wait_for("[u]");
    pty.type_in("u");
    pty.wait("the run goes on, or can", |screen| {
        screen.contains("completed: claimed") || screen.contains("interrupted")
    });
    if !pty.text().contains("completed: claimed") {
        // The keys are in the composer again.
        pty.type_in("\tR");
    }
    pty.wait_for("completed: claimed");
    // To the list and back.
    pty.type_in(F6);
    pty.wait_for("tiller  runs");
    pty.type_in(ENTER);
    pty.wait_for("1 Plan");
    assert_eq!(leave(&mut pty), 0);
}

/// A process that was killed leaves its screen behind: the next one starts on a clean one.
#[test]
fn nothing_shows_through_from_a_screen_that_was_left() {
    let stage = Stage::new();
    let mut pty = Pty::tiller(&stage, (80, 24), &[]);
    pty.wait_for("Enter start");
    let text = pty.text_over("LEFT-BEHIND ");
    assert!(text.contains("Enter start") && !text.contains("LEFT"), "{text}");
    pty.type_in("\x04");
    assert_eq!(pty.end(), 0);
}

/// A terminal that is gone: the program parks the run and ends.
#[test]
fn the_terminal_goes_away() {
    let stage = Stage::new();
    let (pty, marker) = running(&stage, 65);
    let mut child = pty.close();
    let status = until("the program ends", || child.try_wait().unwrap());
    assert_eq!((status.exit_code(), status.signal()), (14, None));
    assert!(!is_alive(&marker), "children are left");
    let status = stage.show()["summary"]["status"].clone();
    assert!(status["parked"].is_string(), "{status}");
}

/// Left with a key while a call of half a minute runs: parked within five seconds, the call has its outcome, and the
/// run goes on when it is opened again.
#[test]
fn s_41_left_while_a_call_runs_and_opened_again() {
    let stage = Stage::new();
    let marker = format!("sleep 30.{}", std::process::id());
    let model = stage.model(&shell(&marker));
    let mut pty = Pty::tiller(&stage, (120, 36), &["do it", "--model", &model]);
    pty.wait_for("the run waits");
    pty.type_in(CTRL_G);
    decide(&pty, &marker, "y");
    until("the call runs", || is_alive(&marker).then_some(()));
    pty.wait("the composer has the keys", |screen| screen.contains("Enter send") && screen.contains("Tab panes"));
    let begun = Instant::now();
    pty.type_in(CTRL_D);
    assert_eq!(pty.end(), 14, "{}", pty.text());
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert!(!is_alive(&marker), "children are left");
    assert_eq!(stage.show()["summary"]["status"]["parked"], "shutdown");
    let id = stage.ids()[0].clone();
    let export = stage.ask(&["export", &id]).out;
    let ends = export.lines().filter(|line| line.contains("tool_call_finished") && line.contains("while running"));
    assert_eq!(ends.count(), 1, "the call has its outcome: {export}");
    let mut pty = Pty::tiller(&stage, (120, 36), &["resume", &id[..6]]);
    pty.wait_for("completed: claimed");
    assert_eq!(leave(&mut pty), 0);
}
