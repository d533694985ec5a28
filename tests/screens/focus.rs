//! Where the keys are: they go back to the composer when nothing waits any more, words that are typed in a pane do
//! nothing there, and whoever presses a key in vain can read why until they press another.

use crossterm::event::KeyCode;
use crossterm::event::KeyModifiers;
use tiller::domain::approval::By;
use tiller::domain::approval::Decision;
use tiller::domain::command::Command;
use tiller::domain::command::Refusal;
use tiller::domain::event::Event;
use tiller::domain::id::CallId;
use tiller::domain::id::ClientId;
use tiller::domain::id::Seq;
use tiller::domain::status::ParkReason;
use tiller::domain::status::Status;
use tiller::domain::tool::Grave;
use tiller::tui::app::Focus;
use tiller::tui::app::Msg;
use tiller::tui::app::Ticket;

use crate::screens::story::Show;
use crate::screens::story::Story;
use crate::screens::story::commands;
use crate::screens::story::flat;
use crate::screens::story::pursuing;
use crate::screens::story::rest;

const SIZE: (u16, u16) = (80, 24);

fn by_operator() -> By {
    By::Operator(ClientId("screen".to_string()))
}

/// A screen with its keys on the first of these calls, at rest.
fn on_calls(wait: &[fn(&mut Story) -> CallId]) -> (Show, Vec<CallId>) {
    let mut story = pursuing();
    let calls = wait.iter().map(|wait| wait(&mut story)).collect();
    story.park(ParkReason::Approval);
    let mut show = Show::of(story, SIZE, 0);
    show.frame_at(0);
    show.chord(KeyCode::Char('g'), KeyModifiers::CONTROL);
    rest(&mut show);
    (show, calls)
}

/// Allows the call that has the keys, and lets the record of it come.
fn allow(show: &mut Show, call: CallId, is_last: bool) {
    show.letters("y");
    show.next(|story| {
        story.decide(call, Decision::AllowOnce, by_operator());
        if is_last {
            story.event(Event::StatusChanged { status: Status::Running, by: None });
        }
    });
}

fn shell(story: &mut Story) -> CallId {
    story.command_waits("cargo test")
}

#[test]
fn when_nothing_waits_any_more_the_keys_are_in_the_composer_again() {
    let (mut show, calls) = on_calls(&[Story::diff_waits, shell]);
    allow(&mut show, calls[0], false);
    assert_eq!(show.app.focus, Focus::Waiting, "another waits still");
    rest(&mut show);
    allow(&mut show, calls[1], true);
    assert_eq!(show.app.focus, Focus::Composer);
    let frame = show.frame();
    assert!(frame.contains("the keys are in the composer again"), "{frame}");
    assert!(frame.contains("say something to the agent"), "{frame}");
    // The next call takes nothing: what is typed is said to the agent.
    rest(&mut show);
    show.next(|story| {
        story.diff_waits();
        story.park(ParkReason::Approval);
    });
    rest(&mut show);
    for one in "try divide".chars() {
        show.letters(&one.to_string());
        rest(&mut show);
    }
    assert_eq!((show.app.draft().as_str(), commands(&show).len()), ("try divide", 2));
}

/// The record of the decision and the next call can come in one piece; that must not change who has the keys.
#[test]
fn the_keys_go_back_between_two_calls_that_come_together() {
    let (mut show, calls) = on_calls(&[shell]);
    show.letters("y");
    show.next(|story| {
        story.decide(calls[0], Decision::AllowOnce, by_operator());
        story.event(Event::StatusChanged { status: Status::Running, by: None });
        story.diff_waits();
        story.park(ParkReason::Approval);
    });
    assert_eq!((show.app.focus, show.app.waiting.len()), (Focus::Composer, 1));
    says_that_something_waits(&mut show);
}

fn says_that_something_waits(show: &mut Show) {
    let frame = flat(&show.frame());
    assert!(frame.contains("the keys are in the composer again"), "{frame}");
    assert!(!frame.contains("nothing waits"), "{frame}");
}

/// A call that is not any more what was shown is looked at anew and waits again, all in one piece or one by one.
#[test]
fn a_call_that_is_asked_about_anew_is_not_said_to_wait_no_more() {
    let anew = |story: &mut Story, call: CallId| {
        story.prepare(call, "cargo test", "runs a program", "cargo test");
        story.request(call, "it runs a program and no rule allows that");
    };
    let void = |story: &mut Story, call: CallId| {
        story.event(Event::ApprovalInvalidated { call, why: "its program changed".to_string() });
    };
    let (mut show, calls) = on_calls(&[shell]);
    show.next(|story| {
        void(story, calls[0]);
        anew(story, calls[0]);
    });
    assert_eq!((show.app.focus, show.app.waiting.len()), (Focus::Composer, 1));
    says_that_something_waits(&mut show);
    let (mut show, calls) = on_calls(&[shell]);
    show.next(|story| void(story, calls[0]));
    assert!(flat(&show.frame()).contains("nothing waits for you any more"), "{}", show.frame());
    show.next(|story| anew(story, calls[0]));
    assert_eq!((show.app.focus, show.app.waiting.len()), (Focus::Composer, 1));
    assert!(!flat(&show.frame()).contains("nothing waits"), "{}", show.frame());
}

/// What the operator changed may be asked about once more, and is the next thing to be decided about then. Until that is
/// known nothing moves; it goes as ever once the call runs, or is not run.
#[test]
fn the_keys_stay_while_a_changed_call_is_looked_at_again() {
    let changed = |show: &mut Show, call: CallId| {
        show.next(|story| {
            story.decide(call, Decision::Edit(r#"{"command":"rm -rf build"}"#.to_string()), by_operator());
            story.event(Event::StatusChanged { status: Status::Running, by: None });
        });
        assert_eq!((show.app.focus, show.app.waiting.len()), (Focus::Waiting, 0));
        let frame = flat(&rest(show));
        assert!(frame.contains("c2 is looked at again, as you changed it"), "{frame}");
        show.letters("y");
        show.next(|story| story.prepare(call, "rm -rf build", "runs a program", "rm -rf build"));
        assert_eq!((show.app.focus, show.app.draft().as_str()), (Focus::Waiting, ""));
    };
    let (mut show, calls) = on_calls(&[shell]);
    changed(&mut show, calls[0]);
    show.next(|story| {
        story.request(calls[0], "as you changed it, it deletes build, which can't be undone");
        story.park(ParkReason::Approval);
    });
    assert_eq!(show.app.focus, Focus::Waiting);
    show.frame();
    show.letters("y");
    assert_eq!(commands(&show), [], "it must rest as any other");
    assert!(!flat(&rest(&mut show)).contains("the keys are in the composer again"), "{}", show.frame());
    // It came to a pane that was empty, so the first key asks.
    show.letters("y");
    assert!(flat(&rest(&mut show)).contains("press y again"), "{}", show.frame());
    show.letters("y");
    let digest = show.app.run.calls[&calls[0]].digest().unwrap();
    assert_eq!(commands(&show), [Command::Decide { call: calls[0], digest, decision: Decision::AllowOnce }]);
    let rule = By::Rule("edited".to_string());
    for decision in [Decision::AllowOnce, Decision::Deny(String::new())] {
        let (mut show, calls) = on_calls(&[shell]);
        changed(&mut show, calls[0]);
        show.next(|story| story.decide(calls[0], decision, rule.clone()));
        assert_eq!(show.app.focus, Focus::Composer);
        assert!(flat(&show.frame()).contains("the keys are in the composer again"), "{}", show.frame());
    }
}

#[test]
fn a_key_that_decided_and_is_held_down_writes_nothing() {
    let (mut show, calls) = on_calls(&[shell]);
    allow(&mut show, calls[0], true);
    for _ in 0..20 {
        show.ms += 100;
        show.letters("y");
    }
    assert_eq!((show.app.draft().as_str(), commands(&show).len()), ("", 1));
    rest(&mut show);
    show.letters("yes");
    assert_eq!(show.app.draft(), "yes");
}

/// Somebody who looks at the empty pane types on: the call that comes meanwhile is not decided by a letter of that.
#[test]
fn a_call_that_comes_to_where_the_keys_are_is_asked_about_once() {
    let mut show = Show::of(pursuing(), SIZE, 0);
    show.chord(KeyCode::Char('3'), KeyModifiers::ALT);
    rest(&mut show);
    show.next(|story| {
        story.diff_waits();
        story.park(ParkReason::Approval);
    });
    rest(&mut show);
    show.letters("t");
    assert_eq!(commands(&show), []);
    assert!(flat(&show.frame()).contains("press t again, and it decides"), "{}", show.frame());
}

#[test]
fn the_row_of_the_composer_says_where_the_keys_are() {
    let panes =
        [('1', "pane 1, Plan"), ('2', "pane 2, Activity"), ('3', "pane 3, Waiting for you"), ('4', "pane 4, Spend")];
    for (key, pane) in panes {
        let mut show = Show::of(pursuing(), SIZE, 0);
        assert!(show.frame().contains("say something to the agent"), "{}", show.frame());
        show.chord(KeyCode::Char(key), KeyModifiers::ALT);
        let frame = show.frame();
        assert!(frame.contains(&format!("Esc comes here; the keys are in {pane}")), "{frame}");
        assert!(!frame.contains("say something"), "{frame}");
        show.letters("X");
        assert!(!show.frame().contains("say something"), "{}", show.frame());
        show.press(KeyCode::Esc);
        show.press(KeyCode::Esc);
        assert!(show.frame().contains("say something to the agent"), "{}", show.frame());
    }
    let mut show = Show::of(pursuing(), SIZE, 0);
    show.letters("half a sen");
    show.press(KeyCode::Tab);
    assert!(show.frame().contains(" Esc › half a sen"), "{}", show.frame());
}

#[test]
fn words_typed_in_a_pane_do_nothing_there_and_that_is_said() {
    for pane in ['1', '2', '3', '4'] {
        for words in ["stop that", "please keep The old name", "have a look at Rust"] {
            let (mut show, _) = on_calls(&[shell]);
            show.chord(KeyCode::Char(pane), KeyModifiers::ALT);
            rest(&mut show);
            for one in words.chars() {
                show.ms += 120;
                show.letters(&one.to_string());
                let frame = flat(&show.frame());
                assert!(frame.contains("Esc goes to the composer"), "{words}: {one}: {frame}");
            }
            assert_eq!((commands(&show), show.app.popups.len(), show.app.draft().len()), (Vec::new(), 0, 0), "{words}");
            // It stands as long as nothing is pressed.
            show.frame_at(show.ms + 600_000);
            let frame = flat(&show.frame());
            let told = ["does nothing: the keys are in pane", "right after letters that do nothing in pane"];
            assert!(told.iter().any(|told| frame.contains(told)), "{frame}");
            show.press(KeyCode::Esc);
            assert!(!told.iter().any(|told| flat(&show.frame()).contains(told)), "{}", show.frame());
        }
    }
    let mut show = Show::of(pursuing(), SIZE, 0);
    show.chord(KeyCode::Char('2'), KeyModifiers::ALT);
    show.press(KeyCode::Enter);
    assert!(flat(&show.frame()).contains("Enter does nothing: the keys are in pane 2, Activity"), "{}", show.frame());
}

#[test]
fn what_explains_a_key_that_did_nothing_stays_until_the_next_key() {
    let (mut show, _) = on_calls(&[Story::diff_waits]);
    show.letters("T");
    show.press(KeyCode::Esc);
    rest(&mut show);
    show.letters("n");
    let why = "n may not have been meant for this call: press n again";
    assert!(flat(&show.frame()).contains(why), "{}", show.frame());
    show.frame_at(show.ms + 60_000);
    show.next(|story| story.event(Event::StatusChanged { status: Status::Running, by: None }));
    assert!(flat(&show.frame()).contains(why), "{}", show.frame());
    assert!(show.app.wakes_in() > 10, "what stays wakes nobody");
    show.letters("j");
    assert!(!flat(&show.frame()).contains(why), "{}", show.frame());
}

/// Whoever believes a field to be open that is not presses Esc and types on; none of that is said to the agent.
#[test]
fn esc_after_a_refusal_takes_the_refusal_away_and_nothing_else() {
    // What is grave is asked about each time, so no rule can be made of it; the whole of it is open or is not.
    let grave = |story: &mut Story| {
        story.grave = vec![Grave::Keys];
        story.command_waits("cat id_rsa")
    };
    for (opens, open) in [("", 0), ("v", 1)] {
        let (mut show, _) = on_calls(&[grave]);
        show.letters(opens);
        rest(&mut show);
        show.letters("r");
        let told = "no rule can be made of this call";
        assert!(flat(&show.frame()).contains(told), "{}", show.frame());
        show.press(KeyCode::Esc);
        assert_eq!((show.app.focus, show.app.popups.len()), (Focus::Waiting, open));
        assert!(!flat(&show.frame()).contains(told), "{}", show.frame());
        show.letters("here");
        assert_eq!((show.app.draft().as_str(), commands(&show).len()), ("", 0));
        rest(&mut show);
        for _ in 0..=open {
            show.press(KeyCode::Esc);
        }
        // What the letters were told says itself that Esc goes on.
        show.press(KeyCode::Esc);
        assert_eq!((show.app.focus, show.app.popups.len()), (Focus::Composer, 0));
    }
    // What the machine refuses is taken away as well.
    let (mut show, _) = on_calls(&[shell]);
    show.letters("y");
    show.tell(Msg::Refused(Ticket(1), Refusal::TooMany));
    assert!(flat(&show.frame()).contains("nothing was sent"), "{}", show.frame());
    show.press(KeyCode::Esc);
    assert_eq!(show.app.focus, Focus::Waiting);
    assert!(!flat(&show.frame()).contains("nothing was sent"), "{}", show.frame());
}

#[test]
fn a_letter_after_a_dialog_that_did_its_work_is_not_said_to_belong_to_one_that_is_not_open() {
    let mut show = Show::of(pursuing(), SIZE, 0);
    show.chord(KeyCode::Char('1'), KeyModifiers::ALT);
    rest(&mut show);
    show.letters("edone t1");
    show.press(KeyCode::Enter);
    show.tell(Msg::Accepted(Ticket(1), Seq(9_999)));
    show.letters("e");
    let frame = flat(&show.frame());
    assert!(frame.contains("e was dropped: it came right after a dialog had closed"), "{frame}");
}
