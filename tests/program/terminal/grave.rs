//! Leave that is typed, end to end: for a grave call and for leaving the box, on the screen, at the line printer and with
//! `tiller approve` (docs/SAFETY.md §5 and §9, R19).

use std::time::Duration;

use tiller::domain::id::RunId;
use tiller::domain::sandbox::Manner;
use tiller::domain::tool::Digest;
use tiller::tools::sandbox::Maker;

use crate::program::scripts::SHORT;
use crate::program::scripts::shell;
use crate::program::terminal::CTRL_G;
use crate::program::terminal::ENTER;
use crate::program::terminal::ESC;
use crate::program::terminal::armed;
use crate::program::terminal::decide;
use crate::program::terminal::go_to;
use crate::program::terminal::leave;
use crate::program::terminal::pty::Pty;
use crate::program::terminal::send;
use crate::real::Stage;

/// A line that reaches key material.
const GRAVE: &str = "cat id_rsa > copy";
/// A line whose effect is outside of every box.
const OUTSIDE: &str = "echo out > ../outside";

/// Longer than a line that is typed at once counts as typed too early.
const PAUSE: Duration = Duration::from_millis(1_200);

fn stage() -> Stage {
    let stage = Stage::new();
    stage.write("work/id_rsa", "not a key\n");
    stage
}

/// A stage with the boxes of this machine, if it has any.
fn boxed(test: &str) -> Option<Stage> {
    if Maker::find().is_none() {
        crate::skip::skip(&format!("{test}: there is no box"));
        return None;
    }
    let mut stage = Stage::new();
    stage.boxes = "auto";
    Some(stage)
}

/// The call that waits in the only run: the run, the call, its digest, and the code for this manner.
fn waiting(stage: &Stage, manner: Manner) -> [String; 4] {
    let shown = stage.show();
    let text = |pointer: &str| shown.pointer(pointer).unwrap().as_str().unwrap().to_string();
    let digest = text("/waiting/0/digest");
    let run = text("/summary/id");
    let code = Digest(digest.clone()).code(&RunId::try_from(run.clone()).unwrap(), manner);
    [run, text("/waiting/0/call"), digest, code]
}

/// A code that is not this one, as it is typed.
fn another(code: &str) -> String {
    code.chars().rev().chain(['q']).take(4).collect::<String>().replace(code, "qqqq")
}

/// Runs the line to where it waits, and goes through all ways to give leave with `words` that are not typed right.
fn check_approve(stage: &Stage, line: &str, more: &[&str], made: &str) {
    let first = stage.run(&shell(line));
    first.check(10, &["waiting for approval"]);
    let [inside, outside] = [Manner::Usual, Manner::Unboxed].map(|manner| waiting(stage, manner));
    let ([run, call, digest, code], [.., other]) = if more.is_empty() { (inside, outside) } else { (outside, inside) };
    let approve = |further: &[&str]| {
        let words = [&["approve", run.as_str(), call.as_str(), digest.as_str()], more, further].concat();
        stage.ask(&words)
    };
    let wrong = another(&code);
    // Whoever has no terminal finds the code where the refusal says.
    approve(&[]).check(3, &["code", &format!("`tiller show {}` names the code", &run[..6])]);
    stage.ask(&["show", &run]).check(0, &[&code]);
    let told = format!("this is not the code of {call}, which waits for you;");
    for wrong in [&wrong, &other] {
        approve(&["--code", wrong]).check(3, &[&told, "nothing was decided", &format!("`tiller show {}`", &run[..6])]);
    }
    // On a terminal it is asked for.
    let asked = |typed: &str| {
        let words = [&["approve", run.as_str(), call.as_str(), digest.as_str()], more].concat();
        let mut pty = Pty::tiller(stage, (120, 36), &words);
        pty.wait_for(&format!("Type {code} to allow it; anything else decides nothing:"));
        pty.type_in(typed);
        pty.end()
    };
    for typed in ["\r", "y\r", &format!("{wrong}\r"), &format!("{other}\r")] {
        assert_eq!(asked(typed), 3, "{typed:?}");
    }
    assert_eq!(stage.show()["waiting"][0]["waits_for"], "decision");
    assert!(!stage.path(made).exists());
    assert_eq!(asked(&format!("{code}\r")), 0);
    stage.ask(&["resume", &run, "--plain"]).check(0, &["completed"]);
    assert!(stage.path(made).exists());
    let place = if more.is_empty() { "attempt 1, without a box" } else { "attempt 1, outside of the box" };
    stage.ask(&["audit", &run]).check(0, &[", by its code", place]);
    let ran = if more.is_empty() { "without a box, with all your rights" } else { "outside of the box, by its code" };
    let place = if ran.starts_with("outside") { ", outside of the box" } else { "" };
    stage.ask(&["show", &run]).check(0, &[&format!("done, allowed by you (command line){place}, ran {ran}\n")]);
}

#[test]
fn on_the_command_line_a_grave_call_needs_its_code() {
    check_approve(&stage(), GRAVE, &[], "work/copy");
}

#[test]
fn on_the_command_line_leaving_the_box_needs_its_code() {
    let Some(stage) = boxed("leaving the box by a word") else { return };
    check_approve(&stage, OUTSIDE, &["--unboxed"], "outside");
}

#[test]
fn the_code_can_be_given_as_a_word() {
    let stage = stage();
    stage.run(&shell(GRAVE)).check(10, &["waiting for approval"]);
    let [run, call, digest, code] = waiting(&stage, Manner::Usual);
    stage.ask(&["approve", &run, &call, &digest, "--code", &code]).check(0, &["recorded"]);
    stage.ask(&["resume", &run, "--plain"]).check(0, &["completed"]);
    assert_eq!(std::fs::read_to_string(stage.path("work/copy")).unwrap(), "not a key\n");
}

/// The control: with a plain yes it runs in its box, and what it is about does not come out of it.
#[test]
fn in_its_box_the_line_does_nothing_outside() {
    let Some(stage) = boxed("the control of leaving the box") else { return };
    stage.run(&shell(OUTSIDE)).check(10, &["waiting for approval"]);
    let [run, call, digest, _] = waiting(&stage, Manner::Usual);
    stage.ask(&["approve", &run, &call, &digest]).check(0, &["recorded"]);
    stage.ask(&["resume", &run, "--plain"]).check(0, &["completed"]);
    assert!(!stage.path("outside").exists());
}

/// Opens the field with a key, types what is wrong, and then the code.
fn check_screen(stage: &Stage, line: &str, key: &str, made: &str) {
    let mut pty = Pty::tiller(stage, (120, 36), &["do it", "--model", &stage.model(&shell(line))]);
    pty.wait_for("the run waits");
    pty.type_in(CTRL_G);
    decide(&pty, "shell", key);
    pty.wait_for("This call is grave");
    let text = pty.text();
    let code: String = text.split_once("Type its code, ").unwrap().1.chars().take(4).collect();
    send(&pty, &another(&code));
    pty.wait_for(&format!("nothing was decided: the code is {code}"));
    pty.type_in("\x15");
    pty.type_in(&format!("\x1b[200~{code}\x1b[201~"));
    pty.type_in(ENTER);
    assert!(!stage.path(made).exists());
    pty.wait_for("This call is grave");
    pty.type_in("\x15");
    send(&pty, &code);
    pty.wait_for("completed: claimed");
    assert!(stage.path(made).exists());
    assert_eq!(leave(&mut pty), 0);
}

#[test]
fn on_the_screen_a_grave_call_needs_its_code() {
    check_screen(&stage(), GRAVE, "y", "work/copy");
}

#[test]
fn on_the_screen_leaving_the_box_needs_its_code() {
    let Some(stage) = boxed("leaving the box by a key") else { return };
    check_screen(&stage, OUTSIDE, "O", "outside");
}

#[test]
fn at_the_line_printer_a_grave_call_needs_its_code() {
    let stage = stage();
    let mut pty = Pty::tiller(&stage, (120, 36), &["run", "do it", "--plain", "--model", &stage.model(&shell(GRAVE))]);
    pty.wait_for("allow this grave call (it reaches key material)? type y and its code");
    let code: String = pty.text().split_once("allowed by typing its code: ").unwrap().1.chars().take(4).collect();
    let said = |pty: &Pty| pty.text().matches("that is not its code; nothing was decided").count();
    for (place, wrong) in ["y".to_string(), format!("y {}", another(&code))].iter().enumerate() {
        std::thread::sleep(PAUSE);
        pty.type_in(&format!("{wrong}\r"));
        pty.wait("it is asked again", |_| said(&pty) == place + 1);
    }
    assert!(!stage.path("work/copy").exists());
    std::thread::sleep(PAUSE);
    pty.type_in(&format!("y {code}\r"));
    assert_eq!(pty.end(), 0, "{}", pty.text());
    assert!(stage.path("work/copy").exists());
}

/// What lines offer of a rule is what they take, with the words that the screen has.
#[test]
fn at_the_line_printer_a_rule_is_offered_as_far_as_it_can_be_made() {
    let stage = Stage::new();
    stage.write("work/check.sh", "true\n");
    let words = ["run", "do it", "--plain", "--model", &stage.model(&shell("sh check.sh"))];
    let mut pty = Pty::tiller(&stage, (160, 36), &words);
    pty.wait_for("allow this call?");
    let text = pty.text();
    assert!(text.contains("r [here|everywhere]: a standing rule for sh check.sh ("), "{text}");
    assert!(text.contains("here: in this and all later runs in this folder"), "{text}");
    assert!(!text.contains("r open"), "{text}");
    std::thread::sleep(PAUSE);
    pty.type_in("r here\r");
    assert_eq!(pty.end(), 0, "{}", pty.text());
    stage.ask(&["rules"]).check(0, &["allow sh check.sh, ", "in FOLDER: in all runs in that folder"]);
}

/// All that was read is allowed at once, but for what is grave: that waits on, for a code of its own.
#[test]
fn the_list_leaves_grave_calls_out() {
    let stage = stage();
    let (plan, claim) = SHORT.split_at(SHORT.rfind("[[step]]").unwrap());
    let call = |line: &str| format!("{{ tool = \"shell\", args = {{ command = \"{line}\" }} }}");
    let calls = ["echo one > one", "echo two > two", GRAVE].map(call).join(", ");
    let model = stage.model(&format!("{plan}[[step]]\nname = \"act\"\ncalls = [ {calls} ]\n{claim}"));
    let mut pty = Pty::tiller(&stage, (120, 36), &["do it", "--model", &model]);
    pty.wait_for("the run waits");
    pty.type_in(CTRL_G);
    // Each of them is looked at before the list can be allowed.
    for (key, line) in [("", "▸ shell  echo one"), ("j", "▸ shell  echo two"), ("j", "▸ shell  cat id_rsa")] {
        pty.type_in(key);
        armed(&pty, line);
    }
    pty.type_in("A");
    pty.wait_for("2 allowed: c2, c3; c4 is grave and has a code of its own");
    pty.wait("the others are done", |_| stage.path("work/two").exists());
    assert!(stage.path("work/one").exists() && !stage.path("work/copy").exists());
    pty.type_in(ESC);
    assert_eq!(leave(&mut pty), 10);
    assert_eq!(stage.show()["waiting"][0]["title"], GRAVE);
}

/// A change that makes a call one that can't be undone does not run at once: it comes back and says so.
#[test]
fn a_call_that_was_changed_into_a_loss_waits_once_more() {
    let stage = Stage::new();
    stage.write("work/build/kept.txt", "kept");
    let mut pty = Pty::tiller(&stage, (80, 24), &["do it", "--model", &stage.model(&shell("echo done"))]);
    go_to(&pty, "shell  echo done");
    pty.type_in("e");
    pty.wait_for("and allow it");
    pty.wait_for("is asked about once more");
    pty.type_in("\x15");
    send(&pty, "{\"command\":\"rm -rf build\"}");
    pty.wait_for("waits once more: as you changed it, it deletes build, which can't be undone");
    assert!(stage.path("work/build/kept.txt").exists());
    // The keys stayed where they were, and the first one asks.
    decide(&pty, "shell  rm -rf build", "y");
    pty.wait_for("press y again");
    decide(&pty, "shell  rm -rf build", "y");
    pty.wait_for("completed: claimed");
    assert!(!stage.path("work/build/kept.txt").exists());
    assert_eq!(leave(&mut pty), 0);
}
