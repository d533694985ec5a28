//! The menu (Ctrl-P): what can be asked for is found by its words, done as its key would do it, and never decides.

use crossterm::event::KeyCode;
use crossterm::event::KeyModifiers;
use tiller::domain::approval::Decision;
use tiller::domain::command::Command;
use tiller::domain::command::Pause;
use tiller::domain::status::ParkReason;
use tiller::tui::app::Focus;
use tiller::tui::app::Msg;
use tiller::tui::app::Out;

use crate::screens::story::Show;
use crate::screens::story::Story;
use crate::screens::story::at_rest;
use crate::screens::story::commands;
use crate::screens::story::flat;
use crate::screens::story::pursuing;
use crate::screens::story::rest;

const SIZE: (u16, u16) = (80, 24);

fn open(show: &mut Show) {
    show.chord(KeyCode::Char('p'), KeyModifiers::CONTROL);
}

/// A screen with the menu open and this typed.
fn typed(story: Story, size: (u16, u16), text: &str) -> Show {
    let mut show = Show::of(story, size, 0);
    show.frame();
    open(&mut show);
    show.letters(text);
    show
}

fn waiting() -> Story {
    let mut story = pursuing();
    story.diff_waits();
    story.park(ParkReason::Approval);
    story
}

#[test]
fn the_menu_at_every_size() {
    for (name, text) in
        [("menu", ""), ("menu_words", "pau"), ("menu_not_now", "resume the run"), ("menu_none", "zebra")]
    {
        for size in [(120, 36), (80, 24), (50, 12)] {
            let text = typed(pursuing(), size, text).frame();
            insta::assert_snapshot!(format!("{name}_{}x{}", size.0, size.1), text);
        }
    }
    for size in [(120, 36), (80, 24), (50, 12)] {
        let mut show = at_rest(waiting(), size, '3');
        open(&mut show);
        show.letters("allow this call, once");
        insta::assert_snapshot!(format!("menu_decision_{}x{}", size.0, size.1), show.frame());
    }
}

#[test]
fn what_is_chosen_is_done_as_by_its_key() {
    let mut show = typed(pursuing(), SIZE, "pause run after call");
    show.press(KeyCode::Enter);
    assert_eq!(commands(&show), [Command::Pause(Pause::AfterTool)]);
    assert!(show.app.popups.is_empty());
    let mut show = typed(pursuing(), SIZE, "list of runs");
    show.press(KeyCode::Enter);
    assert_eq!(show.outs, [Out::OpenRuns]);
    let mut show = typed(pursuing(), SIZE, "raise limit");
    show.press(KeyCode::Enter);
    assert!(flat(&show.frame()).contains("Set a limit"), "{}", show.frame());
}

#[test]
fn arrows_choose_and_stay_within_the_list() {
    let mut show = typed(pursuing(), SIZE, "Alt-");
    for _ in 0..99 {
        show.press(KeyCode::Down);
    }
    assert!(show.frame().contains("› Alt-"), "{}", show.frame());
    for _ in 0..99 {
        show.press(KeyCode::Up);
    }
    show.press(KeyCode::Down);
    show.press(KeyCode::Enter);
    assert_eq!(show.app.focus, Focus::Activity);
}

#[test]
fn every_row_is_reached_and_none_decides() {
    let mut show = at_rest(waiting(), SIZE, '3');
    open(&mut show);
    let mut refused = 0;
    for _ in 0..60 {
        let frame = show.frame();
        if flat(&frame).contains("this is decided by its own key") {
            refused += 1;
            rest(&mut show);
            show.press(KeyCode::Enter);
            assert!(flat(&show.frame()).contains("nothing was done: this is decided"), "{}", show.frame());
        }
        show.press(KeyCode::Down);
    }
    assert_eq!(commands(&show), []);
    // Nine keys decide about a call; that to leave the box is in vain here for a reason of its own.
    assert_eq!(refused, 8);
    assert_eq!(show.app.popups.len(), 1);
}

#[test]
fn a_deciding_key_after_the_menu_asks_first() {
    let story = waiting();
    let mut show = at_rest(story, SIZE, '3');
    let call = show.app.item().unwrap().call;
    open(&mut show);
    show.letters("y");
    show.press(KeyCode::Esc);
    rest(&mut show);
    show.letters("y");
    assert_eq!(commands(&show), []);
    assert!(flat(&show.frame()).contains("press y again"), "{}", show.frame());
    rest(&mut show);
    show.letters("y");
    let digest = show.story.run.calls[&call].digest().unwrap();
    assert_eq!(commands(&show), [Command::Decide { call, digest, decision: Decision::AllowOnce }]);
}

#[test]
fn letters_typed_on_for_the_menu_do_nothing_in_the_pane_below() {
    let mut show = at_rest(waiting(), SIZE, '3');
    open(&mut show);
    show.letters("draw everything");
    show.press(KeyCode::Enter);
    assert_eq!(show.outs, [Out::Redraw]);
    show.letters("yaX");
    rest(&mut show);
    assert_eq!(commands(&show), []);
    assert!(show.app.popups.is_empty());
}

#[test]
fn text_that_comes_at_once_chooses_nothing() {
    let mut show = typed(pursuing(), SIZE, "");
    show.burst("pause");
    show.chord(KeyCode::Enter, KeyModifiers::NONE);
    assert_eq!(commands(&show), []);
    assert!(flat(&show.frame()).contains("Enter was dropped"), "{}", show.frame());
    show.hold(KeyCode::Enter);
    assert_eq!(commands(&show), []);
}

#[test]
fn it_opens_by_a_key_and_closes_without_leaving_and_the_draft_stays() {
    let mut show = Show::of(pursuing(), SIZE, 0);
    show.frame();
    show.letters("half a word");
    for close in [KeyCode::Esc, KeyCode::Char('p'), KeyCode::Char('c')] {
        open(&mut show);
        show.letters("panes");
        let is_letter = matches!(close, KeyCode::Char(_));
        show.chord(close, if is_letter { KeyModifiers::CONTROL } else { KeyModifiers::NONE });
        assert!(show.app.popups.is_empty());
        assert_eq!(show.app.draft(), "half a word");
    }
    open(&mut show);
    show.letters("leave, while the composer");
    show.press(KeyCode::Enter);
    assert_eq!(show.outs, [], "its key would not leave either");
    assert!(flat(&show.frame()).contains("clears it, then"), "{}", show.frame());
}

/// A row must not become another under the hand, nor be done when it can't be any more.
#[test]
fn a_run_that_changes_leaves_the_rows_where_they_are() {
    let mut show = typed(pursuing(), SIZE, "pause run after call");
    let before = show.frame();
    show.next(|story| story.park(ParkReason::Paused));
    let after = show.frame();
    let chosen =
        |frame: &str| frame.lines().find(|line| line.contains('›') && line.contains("pause")).map(str::to_string);
    assert_eq!(chosen(&before).map(|row| row[..40].to_string()), chosen(&after).map(|row| row[..40].to_string()));
    assert!(flat(&after).contains("not now"), "{after}");
    show.press(KeyCode::Enter);
    assert_eq!(commands(&show), []);
    assert!(flat(&show.frame()).contains("nothing was done"), "{}", show.frame());
}

#[test]
fn a_call_that_comes_takes_no_key_from_the_menu() {
    let mut show = typed(pursuing(), SIZE, "pla");
    show.next(|story| {
        story.diff_waits();
        story.park(ParkReason::Approval);
    });
    show.letters("n");
    assert!(show.frame().contains("› plan"), "{}", show.frame());
    assert_eq!(commands(&show), []);
}

#[test]
fn a_hostile_text_stays_in_the_field() {
    let hostile = "\u{1b}[2J\u{1b}]0;x\u{7}\u{202e}\u{200b}漢字\t\r\n⟦";
    for size in [(120, 36), (80, 24), (50, 12), (40, 10)] {
        let clean = typed(pursuing(), size, "zebra").frame();
        let mut show = typed(pursuing(), size, "");
        show.tell(Msg::Paste(hostile.repeat(40)));
        let frame = show.frame();
        assert!(!frame.contains(['\u{1b}', '\u{202e}', '\u{200b}', '\u{7}', '\t']), "{frame}");
        let others = |frame: &str| {
            let rows: Vec<String> = frame.lines().map(str::to_string).collect();
            let field = rows.iter().position(|row| row.contains("┏ Menu")).unwrap() + 1;
            [&rows[..field], &rows[field + 1..]].concat()
        };
        assert_eq!(others(&frame), others(&clean), "{frame}");
    }
}

#[test]
fn a_screen_of_any_size_holds_the_menu() {
    for (width, height) in [(1, 1), (20, 10), (30, 8), (39, 10), (60, 15), (200, 60)] {
        let mut show = Show::of(waiting(), (width, height), 0);
        show.frame();
        open(&mut show);
        show.letters("pau");
        show.press(KeyCode::Enter);
        show.frame();
    }
}
