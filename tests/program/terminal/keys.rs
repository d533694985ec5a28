//! What keys do, and what no key may do.

use std::time::Duration;

use crate::program::scripts::shell;
use crate::program::stage::is_alive;
use crate::program::terminal::CTRL_C;
use crate::program::terminal::CTRL_G;
use crate::program::terminal::CTRL_Z;
use crate::program::terminal::ENTER;
use crate::program::terminal::ESC;
use crate::program::terminal::armed;
use crate::program::terminal::decide;
use crate::program::terminal::go_to;
use crate::program::terminal::is_armed;
use crate::program::terminal::leave;
use crate::program::terminal::pty::Pty;
use crate::program::terminal::send;
use crate::program::terminal::write;
use crate::real::Stage;
use crate::real::until;

/// Longer than a letter is held to belong to what was typed before it.
const PAUSE: Duration = Duration::from_millis(700);

fn start(stage: &Stage, script: &str) -> Pty {
    Pty::tiller(stage, (120, 36), &["do it", "--model", &stage.model(script)])
}

/// Keys that were typed before the call was there, or before it could be read, decide nothing.
#[test]
fn keys_typed_ahead_decide_nothing() {
    let stage = Stage::new();
    let mut pty = start(&stage, &shell("echo done >> trace.txt"));
    pty.type_in("\x1b3yyy");
    pty.wait_for("shell  echo done");
    pty.type_in(ESC);
    // An escape and a key that follows at once are another key.
    pty.wait_for("^G goes here");
    // Straight into the pane, without waiting for it.
    pty.type_in("\x07y");
    pty.wait_for("shell  echo done");
    armed(&pty, "shell  echo done");
    assert!(!stage.path("work/trace.txt").exists());
    // Letters were typed in other places right before: the first one asks.
    decide(&pty, "shell  echo done", "y");
    assert!(!stage.path("work/trace.txt").exists());
    decide(&pty, "shell  echo done", "y");
    pty.wait_for("completed: claimed");
    assert_eq!(std::fs::read_to_string(stage.path("work/trace.txt")).unwrap(), "done\n");
    assert_eq!(leave(&mut pty), 0);
}

/// What a terminal sends in one piece, and does not mark as pasted, is words: its first letter is no decision, and neither
/// is any other. The same key alone is one.
#[test]
fn letters_that_come_together_decide_nothing() {
    let stage = Stage::new();
    let mut pty = start(&stage, &shell("echo done >> trace.txt"));
    pty.wait_for("the run waits");
    pty.type_in(CTRL_G);
    for words in ["yes please", "no, not that\r", "don't do that\r"] {
        armed(&pty, "shell  echo done");
        pty.type_in(words);
        let first = words.chars().next().unwrap();
        pty.wait(&format!("{words:?} is taken for words"), |screen| {
            screen.contains(&format!("{first} did nothing: other keys came right behind it")) && !is_armed(screen)
        });
    }
    armed(&pty, "shell  echo done");
    assert!(!stage.path("work/trace.txt").exists());
    assert_eq!(stage.show()["waiting"][0]["waits_for"], "decision");
    // After letters that were no keys the first one asks.
    decide(&pty, "shell  echo done", "y");
    decide(&pty, "shell  echo done", "y");
    pty.wait_for("completed: claimed");
    assert_eq!(leave(&mut pty), 0);
}

#[test]
fn the_operator_is_called_while_the_window_is_not_in_front() {
    let stage = Stage::new();
    stage.write("config/tiller/tiller.toml", "[notify]\nbell = true\ndesktop = true\n");
    let mut pty = start(&stage, &shell("echo done >> trace.txt"));
    pty.wait_for("the run waits");
    // The first bell ends the window title, which changes at the same time.
    let called = || pty.has_written("\x07\x07\x1b]9;tiller: c2 (shell echo done >> trace.txt) waits for a decision");
    until("the operator is called", || called().then_some(()));
    pty.type_in("\x1b[I\x07");
    decide(&pty, "shell  echo done", "y");
    pty.wait_for("completed: claimed");
    assert!(!pty.has_written("\x1b]9;tiller: the run is completed"), "the window is in front");
    assert_eq!(leave(&mut pty), 0);
}

#[test]
fn nobody_is_called_unasked() {
    let stage = Stage::new();
    let mut pty = start(&stage, &shell("echo done >> trace.txt"));
    pty.wait_for("the run waits");
    assert_eq!(leave(&mut pty), 10);
    assert!(!pty.has_written("\x1b]9;") && !pty.has_written("\x07\x07"));
}

/// What can't be undone is shown first, and only a typed word has it done.
#[test]
fn going_back_and_branching_off() {
    let stage = Stage::new();
    let mut pty = start(&stage, &shell("echo done >> trace.txt"));
    pty.wait_for("the run waits");
    pty.type_in(CTRL_G);
    decide(&pty, "shell  echo done", "y");
    pty.wait_for("completed: claimed");
    pty.type_in("\tB");
    pty.wait_for("a completed run is never opened again; branch off from it");
    // What is typed on at once was meant for the dialog that did not open.
    std::thread::sleep(PAUSE);
    pty.type_in("F");
    pty.wait_for("After which iteration?");
    send(&pty, "9");
    pty.wait_for("give the number of a closed iteration, 3 at most");
    pty.type_in("\x15");
    send(&pty, "01");
    pty.wait_for("Branch off · iteration 1");
    pty.wait_for("[not undone] these happened after it");
    pty.wait_for("c2 shell echo done");
    send(&pty, "y");
    pty.wait_for("type yes to have it done");
    assert_eq!(stage.ids().len(), 1);
    send(&pty, "es");
    pty.wait_for("branched off from run");
    until("the new run is there", || (stage.ids().len() == 2).then_some(()));
    pty.wait_for("the run waits");
    pty.type_in("\tB");
    pty.wait_for("To the end of which iteration?");
    pty.type_in("\r");
    pty.wait_for("Nothing that came after it changed anything.");
    send(&pty, "yes");
    // The keys are in the composer then: the way to the key that resumes is said.
    pty.wait_for("is back at the end of iteration 1");
    pty.wait_for("in a pane (Tab) R resumes");
    pty.wait_for("parked: paused");
    assert_eq!(leave(&mut pty), 14);
    assert_eq!(std::fs::read_to_string(stage.path("work/trace.txt")).unwrap(), "done\n");
    let fork = stage.runs().into_iter().find(|run| run["summary"]["iterations"] == 1).unwrap();
    let id = fork["summary"]["id"].as_str().unwrap().to_string();
    stage.ask(&["audit", &id, "--verify"]).check(0, &[]);
}

/// A change of the plan that is refused: the dialog has the words and the reason, and the keys go there and nowhere else.
#[test]
fn a_refused_change_of_the_plan_stays_in_its_dialog() {
    let stage = Stage::new();
    let mut pty = start(&stage, &shell("echo done >> trace.txt"));
    pty.wait_for("the run waits");
    pty.type_in("\x1b1e");
    pty.wait_for("Change the plan");
    write(&pty, "done zz");
    pty.type_in("\rX");
    pty.wait_for("there is no todo zz; the plan was not changed");
    pty.wait("the words are there, and what was typed after them", |screen| screen.contains("› done zzX"));
    pty.type_in("\x15");
    write(&pty, "add Look at it twice");
    pty.type_in("\rXR");
    pty.wait("it is closed", |screen| screen.contains("Look at it twice") && !screen.contains("Change the plan"));
    std::thread::sleep(PAUSE);
    assert!(!pty.text().contains("End the run?"), "{}", pty.text());
    assert_eq!(leave(&mut pty), 10);
    assert_eq!(stage.show()["waiting"][0]["waits_for"], "decision");
}

/// After a dialog over it the pane of decisions has the keys again, and a letter that was meant for the dialog decides
/// nothing: only when it is pressed twice.
#[test]
fn a_letter_after_a_dialog_is_asked_about_once() {
    let stage = Stage::new();
    let mut pty = start(&stage, &shell("echo done >> trace.txt"));
    pty.wait_for("the run waits");
    pty.type_in(CTRL_G);
    decide(&pty, "shell  echo done", "d");
    pty.wait_for("The call is not run");
    pty.type_in(ESC);
    decide(&pty, "shell  echo done", "a");
    pty.wait_for("press a again, and it decides");
    assert!(!stage.path("work/trace.txt").exists());
    decide(&pty, "shell  echo done", "a");
    pty.wait_for("completed: claimed");
    assert_eq!(leave(&mut pty), 0);
}

#[test]
fn a_cancelled_run_is_taken_up_again() {
    let stage = Stage::new();
    stage.ask(&["run", "do it", "--plain", "--model", &stage.model(&shell("echo done >> trace.txt"))]).check(10, &[]);
    let id = stage.ids()[0].clone();
    stage.ask(&["cancel", &id]).check(0, &[]);
    let mut pty = Pty::tiller(&stage, (120, 36), &["resume", &id]);
    pty.wait_for("in a pane (Tab): R takes it up again");
    pty.type_in("\tR");
    pty.wait("it goes on", |screen| !screen.contains("takes it up again"));
    pty.wait_for("completed: claimed");
    assert_eq!(leave(&mut pty), 0);
    stage.ask(&["show", &id]).check(0, &["[retry] this is attempt 2"]);
}

#[test]
fn pasted_keys_decide_nothing() {
    let stage = Stage::new();
    let mut pty = start(&stage, &shell("echo done >> trace.txt"));
    pty.wait_for("the run waits");
    pty.type_in(CTRL_G);
    armed(&pty, "shell  echo done");
    pty.type_in("\x1b[200~y\n\x1b[201~");
    pty.wait("the paste disarms", |screen| !is_armed(screen));
    armed(&pty, "shell  echo done");
    assert!(!stage.path("work/trace.txt").exists());
    assert_eq!(leave(&mut pty), 10);
    assert_eq!(stage.show()["waiting"][0]["waits_for"], "decision");
}

/// After the last decision the keys are in the composer: what is typed is said to the agent, whatever comes to wait.
#[test]
fn words_typed_after_a_decision_decide_nothing() {
    let stage = Stage::new();
    let mut pty = Pty::tiller(&stage, (120, 36), &["rehearse", "--script", &stage.fast_rehearsal()]);
    pty.wait_for("the run waits");
    pty.type_in(CTRL_G);
    decide(&pty, "shell  sh check.sh", "y");
    pty.wait("the next call waits", |screen| {
        screen.contains("edit_file  lib/height.sh") && screen.contains("^G goes here")
    });
    std::thread::sleep(PAUSE);
    for letter in ["t", "r", "y", " ", "d"] {
        pty.type_in(letter);
        std::thread::sleep(PAUSE);
    }
    pty.wait_for("› try d");
    pty.type_in(ENTER);
    pty.wait_for("queued i1: next");
    assert_eq!(leave(&mut pty), 10);
    assert_eq!(stage.show()["waiting"][0]["tool"], "edit_file");
}

#[test]
fn words_wait_for_the_next_iteration() {
    let stage = Stage::new();
    let mut pty = start(&stage, &shell("true"));
    pty.wait_for("the run waits");
    pty.type_in("mind the gap");
    pty.wait_for("mind the gap");
    pty.type_in(ENTER);
    pty.wait_for("queued i1: next");
    pty.type_in(CTRL_G);
    decide(&pty, "shell  true", "y");
    pty.wait_for("completed: claimed");
    pty.wait("the words were told", |screen| screen.contains("mind the gap") && !screen.contains("queued i1:"));
    assert_eq!(leave(&mut pty), 0);
}

/// Clears, pauses, stops, leaves.
#[test]
fn the_ladder_of_control_c() {
    let stage = Stage::new();
    let marker = format!("sleep 300.5{}", std::process::id());
    let mut pty = start(&stage, &shell(&marker));
    pty.wait_for("the run waits");
    pty.type_in("half a sentence");
    pty.wait_for("half a sentence");
    pty.type_in(CTRL_C);
    pty.wait_for("draft cleared");
    pty.type_in(CTRL_G);
    decide(&pty, &marker, "y");
    until("the call runs", || is_alive(&marker).then_some(()));
    pty.wait_for("running");
    pty.type_in(CTRL_C);
    pty.wait_for("pausing after the running call");
    assert!(is_alive(&marker), "the first stop ends nothing");
    pty.type_in(CTRL_C);
    pty.wait_for("parked");
    until("the call is ended", || (!is_alive(&marker)).then_some(()));
    pty.type_in(CTRL_C);
    pty.type_in(CTRL_C);
    assert_eq!(pty.end(), 14);
    pty.check_restored();
    assert!(pty.text().contains("tiller resume"), "{}", pty.text());
}

/// The shell gets the terminal as it was, and `fg` brings all back.
#[test]
fn suspended_and_brought_back() {
    let stage = Stage::new();
    let line = format!(
        "set -m; stty -a > before; $TILLER 'do it' --model {}; stty -a > while; echo STOPPED; read -r _; fg; echo LEFT $?",
        stage.model(&shell("true"))
    );
    let mut pty = Pty::shell(&stage, (120, 36), &line);
    pty.wait_for("the run waits");
    pty.type_in("half a sentence");
    pty.wait_for("half a sentence");
    pty.type_in(CTRL_Z);
    pty.wait_for("STOPPED");
    let read = |name: &str| std::fs::read_to_string(stage.path("work").join(name)).unwrap();
    assert_eq!(read("before"), read("while"));
    pty.type_in("\n");
    pty.wait("all is back", |screen| screen.contains("the run waits") && screen.contains("half a sentence"));
    pty.type_in(CTRL_C);
    pty.wait_for("draft cleared");
    pty.type_in(CTRL_G);
    decide(&pty, "shell  true", "y");
    pty.wait_for("completed: claimed");
    assert_eq!(leave(&mut pty), 0);
    assert!(pty.text().contains("LEFT 0"), "{}", pty.text());
}

#[test]
fn a_storm_of_sizes_while_text_streams() {
    let stage = Stage::new();
    // Numbered, or it would be broken off as going round in circles.
    let text: String = (0..250).map(|number| format!("all at sea {number} ")).collect();
    // Slow rather than long: each frame lays out the whole text anew, which an unoptimised build takes long for.
    let talk = format!("[[step]]\nname = \"talk\"\ntext = \"{text}\"\nchunk_ms = 8\n");
    let script = shell("true");
    let (plan, rest) = script.split_at(script.match_indices("[[step]]").nth(1).unwrap().0);
    let script = format!("{plan}{talk}{rest}");
    let mut pty = start(&stage, &script);
    pty.wait_for("all at sea");
    for _ in 0..3 {
        for (columns, rows) in [(200, 50), (20, 5), (1, 1), (7, 40), (300, 3), (120, 36)] {
            let written = pty.written();
            pty.resize(columns, rows);
            if columns > 1 {
                until("a frame for the new size", || (pty.written() > written).then_some(()));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    pty.wait_for("the run waits");
    pty.wait("the whole screen is there", |screen| screen.contains("3 Waiting for you") && screen.contains("^D leave"));
    pty.type_in(CTRL_G);
    decide(&pty, "shell  true", "y");
    pty.wait_for("completed: claimed");
    assert_eq!(leave(&mut pty), 0);
}

/// A held key that decided about one call does not decide about the next, and writes nothing to the agent.
#[test]
fn a_held_key_decides_once() {
    let stage = Stage::new();
    let mut pty = Pty::tiller(&stage, (120, 36), &["rehearse", "--script", &stage.fast_rehearsal()]);
    pty.wait_for("the run waits");
    pty.type_in(CTRL_G);
    armed(&pty, "shell  sh check.sh");
    pty.type_in("y");
    // A keyboard repeats a key only after it was held for a while.
    std::thread::sleep(Duration::from_millis(250));
    for _ in 0..40 {
        pty.type_in("y");
        std::thread::sleep(Duration::from_millis(30));
    }
    pty.wait("nothing is written", |screen| screen.contains("› say something to the agent"));
    go_to(&pty, "edit_file  lib/height.sh");
    assert_eq!(leave(&mut pty), 10);
    assert_eq!(stage.show()["waiting"][0]["tool"], "edit_file");
}

/// From the keys to the disk and back: each key that counts is one record, the early one is none, and the screen that
/// is built from the journal again shows what the one before showed.
#[test]
fn s_59_every_key_that_counts_is_a_record_and_the_screen_comes_back() {
    let stage = Stage::new();
    let mut pty = start(&stage, &shell("echo done >> trace.txt"));
    pty.wait_for("the run waits");
    // Straight into the pane, without waiting for it: swallowed.
    pty.type_in("\x07y");
    armed(&pty, "shell  echo done");
    pty.type_in("+");
    pty.wait_for("new limit › 10.00");
    pty.type_in("\x1b[B\x1b[B\x1b[B");
    pty.wait_for("new limit › 64");
    pty.type_in(ENTER);
    pty.wait_for("iterations counted 1/64");
    pty.type_in(ESC);
    pty.wait("the composer has the keys", |screen| screen.contains("Enter send") && screen.contains("Tab panes"));
    pty.type_in("mind the gap");
    pty.wait_for("mind the gap");
    pty.type_in(ENTER);
    pty.wait_for("queued i1: next");
    let shown =
        ["shell  echo done", "mind the gap", "queued i1: next", "iterations counted 1/64", "waiting for approval"];
    let before: Vec<bool> = shown.map(|part| pty.text().contains(part)).into();
    assert_eq!(leave(&mut pty), 10);
    let id = stage.ids()[0].clone();
    let by_operator = || {
        let export = stage.ask(&["export", &id]).out;
        let count = |kind: &str| export.matches(&format!("\"type\":\"{kind}\"")).count();
        let decided = export.lines().filter(|line| line.contains("approval_decided") && line.contains("operator"));
        [count("budget_raised"), count("interjection_queued"), decided.count(), count("tool_call_started")]
    };
    assert_eq!(by_operator(), [1, 1, 0, 0], "the early key is no record");
    let mut pty = Pty::tiller(&stage, (120, 36), &["resume", &id[..6]]);
    pty.wait_for("queued i1: next");
    pty.wait("the screen is as it was", |screen| {
        shown.iter().zip(&before).all(|(part, was)| screen.contains(part) == *was)
    });
    pty.type_in(CTRL_G);
    decide(&pty, "shell  echo done", "y");
    pty.wait_for("completed: claimed");
    assert_eq!(leave(&mut pty), 0);
    assert_eq!(by_operator(), [1, 1, 1, 1]);
    assert_eq!(std::fs::read_to_string(stage.path("work/trace.txt")).unwrap(), "done\n");
}
