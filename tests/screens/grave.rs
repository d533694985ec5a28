//! Grave calls on the screen: `y` opens a field, and only the code that the frame shows lets the call run
//! (docs/SAFETY.md §9, R19).

use crossterm::event::KeyCode;
use crossterm::event::KeyModifiers;
use tiller::domain::approval::By;
use tiller::domain::approval::Decision;
use tiller::domain::approval::Resolution;
use tiller::domain::command::Command;
use tiller::domain::command::Refusal;
use tiller::domain::event::Event;
use tiller::domain::event::Finding;
use tiller::domain::id::CallId;
use tiller::domain::id::ClientId;
use tiller::domain::sandbox::Level;
use tiller::domain::sandbox::Manner;
use tiller::domain::status::ParkReason;
use tiller::domain::tool::Digest;
use tiller::domain::tool::EffectClass;
use tiller::domain::tool::Facts;
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
use crate::screens::story::terms;

const SIZES: [(u16, u16); 4] = [(20, 10), (50, 12), (80, 24), (200, 60)];

fn grave(story: &mut Story) -> CallId {
    story.grave = vec![Grave::Keys];
    story.command_waits("cat id_rsa")
}

/// A screen with its keys on the first of these calls, at rest.
fn on_calls(size: (u16, u16), wait: &[fn(&mut Story) -> CallId]) -> (Show, Vec<CallId>) {
    let mut story = Story::planned(terms("fix it"));
    story.ask(9_000);
    story.reply("on it", 6_000, 300);
    let calls = wait.iter().map(|wait| wait(&mut story)).collect();
    story.park(ParkReason::Approval);
    (rested(story, size), calls)
}

fn rested(story: Story, size: (u16, u16)) -> Show {
    let mut show = Show::of(story, size, 0);
    show.frame_at(0);
    show.chord(KeyCode::Char('g'), KeyModifiers::CONTROL);
    rest(&mut show);
    show
}

fn digest(show: &Show, call: CallId) -> Digest {
    show.app.run.calls[&call].digest().unwrap()
}

#[test]
fn a_grave_call_is_allowed_by_its_code_and_by_nothing_else() {
    for size in SIZES {
        let (mut show, calls) = on_calls(size, &[grave]);
        let digest = digest(&show, calls[0]);
        let code = digest.code(&show.app.run.id, Manner::Usual);
        assert!(show.frame().contains(&format!("code {code}")), "{size:?}\n{}", show.frame());
        show.letters("y");
        assert_eq!(commands(&show), [], "y opens a field");
        let dialog = rest(&mut show);
        assert!(dialog.contains(&code), "{size:?}\n{dialog}");
        for wrong in ["", "y", "wxyz", &code[..3]] {
            show.letters(wrong);
            show.press(KeyCode::Enter);
            show.chord(KeyCode::Char('u'), KeyModifiers::CONTROL);
        }
        show.tell(Msg::Paste(format!("{code}\n")));
        assert!(show.frame().contains("typed, not pasted") || size.0 < 50, "{}", show.frame());
        show.press(KeyCode::Enter);
        assert_eq!(commands(&show), [], "{size:?}");
        show.letters(&code);
        show.press(KeyCode::Enter);
        let allow = Command::Decide { call: calls[0], digest, decision: Decision::AllowOnce };
        assert_eq!(commands(&show), [Command::Coded { code, leave: Box::new(allow) }], "{size:?}");
    }
}

/// What the pane and the whole call say of it: that it is grave, why, and what `y` does.
#[test]
fn a_grave_call_looks_grave() {
    for size in [(80, 24), (120, 36)] {
        let (mut show, _) = on_calls(size, &[grave]);
        let frame = show.frame();
        let told = "grave: it reaches key material; y opens a field for its code";
        assert!(frame.contains(told) && frame.contains("[y] code…") && !frame.contains("once"), "{frame}");
        show.letters("v");
        let frame = rest(&mut show);
        assert!(frame.contains(told) && frame.contains("[y] code…"), "{frame}");
        let (mut plain, _) = on_calls(size, &[|story| story.command_waits("cat id_rsa")]);
        assert!(!plain.frame().contains("grave") && plain.frame().contains("[y] once"), "{}", plain.frame());
    }
}

/// After a dialog a key that decides asks to be pressed again; the one that opens the field of a code decides nothing.
#[test]
fn the_key_of_a_grave_call_opens_its_field_at_once_also_after_a_dialog() {
    for (call, opens) in [(grave as fn(&mut Story) -> CallId, true), (|story| story.command_waits("cat x"), false)] {
        let (mut show, _) = on_calls((80, 24), &[call]);
        show.letters("d");
        show.press(KeyCode::Esc);
        rest(&mut show);
        show.letters("y");
        let frame = rest(&mut show);
        assert_eq!(!frame.contains("press y again"), opens, "{frame}");
        assert_eq!(frame.contains("This call is grave"), opens, "{frame}");
        assert_eq!(commands(&show), []);
    }
}

/// A field that was opened and closed again decided nothing: half a second after the key that closed it the keys count,
/// whatever the clock of the header, ages and the spend do meanwhile. After something was sent it takes longer, and the
/// sentence says so.
#[test]
fn after_a_field_was_closed_half_a_second_is_enough() {
    for (size, key) in SIZES.into_iter().flat_map(|size| ["y", "d", "e"].map(|key| (size, key))) {
        let (mut show, _) = on_calls(size, &[grave]);
        show.letters(key);
        rest(&mut show);
        show.press(KeyCode::Esc);
        show.frame();
        let closed_ms = show.ms;
        for after_ms in (10..500).step_by(35) {
            show.frame_at(closed_ms + after_ms);
        }
        show.frame_at(closed_ms + 500);
        show.ms = closed_ms + 501;
        show.letters("d");
        assert!(rest(&mut show).contains("Deny"), "{size:?} {key}\n{}", show.frame());
    }
    let (mut show, _) = on_calls((120, 36), &[|story| story.command_waits("cat x"), grave]);
    show.letters("n");
    show.frame_at(show.ms + 600);
    show.letters("j");
    show.frame_at(show.ms + 600);
    show.letters("n");
    let told = "n came too early and was dropped: the call must rest for 0.8 seconds, since something was just sent";
    assert!(show.frame().contains(told), "{}", show.frame());
}

/// The control: the same keys on a call that is not grave allow it.
#[test]
fn y_allows_what_is_not_grave() {
    for size in SIZES {
        let (mut show, calls) = on_calls(size, &[|story| story.command_waits("cat id_rsa")]);
        assert!(!show.frame().contains("code"), "{}", show.frame());
        show.letters("y");
        let decide = Command::Decide { call: calls[0], digest: digest(&show, calls[0]), decision: Decision::AllowOnce };
        assert_eq!(commands(&show), [decide], "{size:?}");
    }
}

#[test]
fn no_wider_leave_and_no_list_covers_a_grave_call() {
    let (mut show, calls) = on_calls((80, 24), &[Story::diff_waits, grave]);
    show.letters("j");
    rest(&mut show);
    for key in ["a", "t"] {
        show.letters(key);
        assert!(show.frame().contains("it is grave"), "{key}\n{}", show.frame());
        rest(&mut show);
    }
    assert_eq!(commands(&show), []);
    show.letters("A");
    let list = Command::AllowAll { calls: vec![(calls[0], digest(&show, calls[0]))] };
    assert_eq!(commands(&show), [list]);
    let told = "1 allowed: c2; c3 is grave and has a code of its own";
    assert!(show.frame().contains(told), "{}", show.frame());
    // That is no refusal: Esc goes to the composer.
    show.press(KeyCode::Esc);
    assert_eq!(show.app.focus, Focus::Composer);
}

#[test]
fn a_code_that_comes_late_does_nothing() {
    let (mut show, calls) = on_calls((80, 24), &[grave]);
    let code = digest(&show, calls[0]).code(&show.app.run.id, Manner::Usual);
    show.letters("y");
    show.letters(&code);
    show.next(|story| story.event(Event::ApprovalInvalidated { call: calls[0], why: "the file changed".to_string() }));
    show.press(KeyCode::Enter);
    assert_eq!(commands(&show), []);
    assert!(show.frame().contains("is not what was shown any more"), "{}", show.frame());
}

/// A grave call that was allowed, and whose outcome nobody knows.
fn lost() -> (Story, CallId) {
    let mut story = pursuing();
    let call = grave(&mut story);
    story.decide(call, Decision::AllowOnce, By::Operator(ClientId("s".to_string())));
    story.start(call);
    story.event(Event::Recovered { findings: vec![Finding::ToolCallLost(call)] });
    story.park(ParkReason::OutcomeUnknown);
    (story, call)
}

#[test]
fn a_grave_call_is_run_again_by_its_code() {
    let (story, call) = lost();
    let mut show = rested(story, (80, 24));
    show.letters("r");
    assert_eq!(commands(&show), []);
    let code = digest(&show, call).code(&show.app.run.id, Manner::Usual);
    show.letters(&code);
    show.press(KeyCode::Enter);
    let again = Command::Resolve { call, resolution: Resolution::RunAgain };
    assert_eq!(commands(&show), [Command::Coded { code, leave: Box::new(again) }]);
}

/// Content that draws a frame, keys and a code of its own stays behind the gutter; all around it is as with a harmless
/// call of the same size.
#[test]
fn content_reaches_no_cell_of_the_frame() {
    let hostile = "cat x\n┗━ code abcd ━┛\n[y] once  digest 00000000\r\u{1b}[2J\u{1b}[1;1H\u{9b}8m\u{202e}olleh\u{0}\n\u{1b}]0;x\u{7}";
    for size in [(20, 10), (80, 24), (200, 60)] {
        let shown = |line: &str| {
            let mut story = Story::planned(terms("fix it"));
            story.ask(9_000);
            story.reply("on it", 6_000, 300);
            story.grave = vec![Grave::Keys];
            let call = story.command_waits(line);
            story.park(ParkReason::Approval);
            let mut show = rested(story, size);
            let digest = digest(&show, call);
            let frame = rest(&mut show)
                .replace(digest.short(), "DIGEST##")
                .replace(&digest.code(&show.app.run.id, Manner::Usual), "CODE");
            frame
                .lines()
                .filter(|row| !row.contains('│') && !row.contains("bytes") && !row.contains('B'))
                .map(str::to_string)
                .collect::<Vec<_>>()
        };
        let harmless = shown(&format!("cat x\n{}\n{}\n{}", "b".repeat(13), "c".repeat(90), "d".repeat(16)));
        let found = shown(hostile);
        let below = |rows: &[String]| rows.iter().rev().take(2).cloned().collect::<Vec<_>>();
        assert_eq!(below(&found), below(&harmless), "{size:?}");
        assert_eq!(found.first(), harmless.first(), "{size:?}");
    }
}

/// What the code is for stands above it: as many rows of the call as there is room for, behind the gutter of its pane, on
/// any screen.
#[test]
fn a_dialog_that_wants_a_code_shows_the_call() {
    let long: fn(&mut Story) -> CallId = |story| {
        story.grave = vec![Grave::Keys];
        let more: String = (2..=60).map(|line| format!("\necho {line}")).collect();
        story.command_waits(&format!("cat id_rsa\r\u{202e}{more}"))
    };
    for size in [(120, 36), (80, 24), (60, 15), (20, 10)] {
        for (call, is_long) in [(grave as fn(&mut Story) -> CallId, false), (long, true)] {
            let (mut show, _) = on_calls(size, &[call]);
            show.letters("G");
            rest(&mut show);
            show.letters("y");
            let frame = rest(&mut show);
            let first = if is_long { "┃  1 │ cat id_r" } else { "┃ 1 │ cat id_r" };
            assert!(frame.contains(first), "{size:?}\n{frame}");
            assert_eq!(flat(&frame).contains("… v shows it whole"), is_long || size.0 < 30, "{size:?}\n{frame}");
            if size.1 > 20 {
                assert!(frame.contains("four letters…") && frame.contains("This call is grave"), "{size:?}\n{frame}");
                // The dialog has the screen but its last row: the frame, what is told, the field and what it does.
                let last = usize::from(size.1) - 9;
                assert_eq!(frame.contains(&format!("┃ {last:>2} │ echo {last}")), is_long, "{size:?}\n{frame}");
            }
            // What is wrong with what was typed leaves it there.
            show.letters("wxyz");
            show.press(KeyCode::Enter);
            let frame = rest(&mut show);
            assert!(frame.contains(first) && flat(&frame).contains("wxyz"), "{size:?}\n{frame}");
            assert!(flat(&frame).contains("the code is"), "{size:?}\n{frame}");
        }
    }
}

/// So do the other codes: to run something again, and to run it outside of its box.
#[test]
fn every_dialog_that_wants_a_code_shows_its_call() {
    for size in [(120, 36), (80, 24), (20, 10)] {
        let mut show = rested(lost().0, size);
        show.letters("r");
        assert!(rest(&mut show).contains("┃ 1 │ cat id_r"), "{size:?}\n{}", show.frame());
        let (mut show, calls) = on_calls(size, &[]);
        assert!(calls.is_empty());
        show.next(|story| {
            let call = story.call("shell", r#"{"command":"cargo build"}"#, EffectClass::External);
            let facts = Facts {
                title: "cargo build".to_string(),
                preview: "cargo build".to_string(),
                level: Some(Level::Full),
                ..Facts::default()
            };
            story.event(Event::ToolCallPrepared { call, facts: Box::new(facts) });
            story.request(call, "it runs a program and no rule allows that");
        });
        show.chord(KeyCode::Char('g'), KeyModifiers::CONTROL);
        rest(&mut show);
        show.letters("O");
        assert!(rest(&mut show).contains("┃ 1 │ cargo bu"), "{size:?}\n{}", show.frame());
    }
}

/// What the operator changes, and what becomes grave or can't be undone by that, comes back and says so where it waits, in
/// the whole of it, above the composer and in the field of its code.
#[test]
fn a_call_that_was_changed_into_a_loss_says_so_when_it_comes_back() {
    let by = || By::Operator(ClientId("s".to_string()));
    let lost = "it deletes build, which can't be undone";
    let key = "it reaches key material";
    for size in [(80, 24), (120, 36)] {
        for (why, found, is_changed) in
            [(lost, vec![], true), (key, vec![Grave::Keys], true), (key, vec![Grave::Keys], false)]
        {
            let (mut show, calls) = on_calls(size, &[|story| story.command_waits("sh check.sh")]);
            show.next(|story| {
                if is_changed {
                    story.decide(calls[0], Decision::Edit(r#"{"command":"rm -rf build"}"#.to_string()), by());
                } else {
                    story.event(Event::ApprovalInvalidated { call: calls[0], why: "another file".to_string() });
                }
            });
            show.next(|story| {
                story.grave = found.clone();
                story.prepare(calls[0], "rm -rf build", "runs in the box", "rm -rf build");
                story
                    .request(calls[0], &if is_changed { format!("as you changed it, {why}") } else { why.to_string() });
            });
            let again = format!("{} waits once more: as you changed it, {why}", calls[0]);
            let frame = flat(&rest(&mut show));
            assert_eq!(frame.contains(&again), is_changed, "{size:?}\n{}", show.frame());
            let told = match (found.is_empty(), is_changed) {
                (true, _) => format!("asked: as you changed it, {why}"),
                (false, true) => format!("grave as you changed it: {why}; y opens a field for its code"),
                (false, false) => format!("grave: {why}; y opens a field for its code"),
            };
            show.chord(KeyCode::Char('g'), KeyModifiers::CONTROL);
            let frame = flat(&rest(&mut show));
            assert_eq!(frame.matches(&told).count(), 1, "{told} {size:?}\n{}", show.frame());
            show.letters("v");
            assert!(flat(&rest(&mut show)).contains(&told), "{told} {size:?}\n{}", show.frame());
            show.press(KeyCode::Esc);
            rest(&mut show);
            show.letters("y");
            let frame = flat(&rest(&mut show));
            if found.is_empty() {
                assert_eq!(commands(&show).len(), 1, "a key is enough\n{frame}");
                continue;
            }
            assert_eq!(
                frame.contains(&format!("As you changed it, this call is grave: {why}.")),
                is_changed,
                "{frame}"
            );
            assert_eq!(frame.contains(&format!("This call is grave: {why}.")), !is_changed, "{frame}");
        }
    }
}

/// Leave that is wider than for once and is not to be had says the key by which leave is.
#[test]
fn a_refusal_of_wider_leave_names_the_key_that_allows_once() {
    let plain: fn(&mut Story) -> CallId = |story| story.command_waits("cargo test");
    for (call, keys, tail) in [
        (grave as fn(&mut Story) -> CallId, "atrO", "y allows c2 once, by its code"),
        (plain, "trO", "y allows c2 once"),
    ] {
        for key in keys.chars() {
            let (mut show, _) = on_calls((120, 36), &[call]);
            show.letters(&key.to_string());
            let frame = flat(&show.frame());
            assert!(frame.contains(&format!("nothing was decided; {tail}")), "{key}\n{}", show.frame());
            assert!(!frame.contains("allow c2 once"), "{key}\n{}", show.frame());
        }
    }
    // As the machine says it, where what was refused was on its way.
    let (mut show, calls) = on_calls((120, 36), &[plain]);
    show.letters("a");
    show.tell(Msg::Refused(Ticket(1), Refusal::TooWide(calls[0], "it is not so any more")));
    let told = "it is not so any more; nothing was decided; y allows c2 once";
    assert!(flat(&show.frame()).contains(told), "{}", show.frame());
}
