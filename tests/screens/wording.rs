//! What tiller says on the screen: words are never cut in two, a notice goes with what it was about, and the smallest
//! screen has all that a decision is about.

use crossterm::event::KeyCode;
use crossterm::event::KeyModifiers;
use tiller::domain::approval::By;
use tiller::domain::approval::Decision;
use tiller::domain::command::Command;
use tiller::domain::event::Event;
use tiller::domain::event::Finding;
use tiller::domain::id::CallId;
use tiller::domain::id::ClientId;
use tiller::domain::status::ParkReason;
use tiller::domain::status::Status;
use tiller::domain::tool::EffectClass;
use tiller::domain::tool::Grave;
use tiller::tui::app::Focus;
use tiller::tui::notice::Lasts;
use tiller::tui::notice::Notice;
use tiller::tui::theme::Role;

use crate::screens::story::Story;
use crate::screens::story::at_rest;
use crate::screens::story::commands;
use crate::screens::story::flat;
use crate::screens::story::pursuing;
use crate::screens::story::rest;

const SIZE: (u16, u16) = (80, 24);

fn parked(reason: ParkReason) -> Story {
    let mut story = pursuing();
    story.park(reason);
    story
}

fn waits(call: fn(&mut Story) -> CallId) -> Story {
    let mut story = pursuing();
    call(&mut story);
    story.park(ParkReason::Approval);
    story
}

fn grave(story: &mut Story) -> CallId {
    story.grave = vec![Grave::Keys, Grave::RunsLater];
    story.command_waits("cat id_rsa")
}

fn shell(story: &mut Story) -> CallId {
    story.command_waits("cargo test")
}

fn lost() -> Story {
    let mut story = pursuing();
    let call = shell(&mut story);
    story.decide(call, Decision::AllowOnce, by_operator());
    story.start(call);
    story.event(Event::Recovered { findings: vec![Finding::ToolCallLost(call)] });
    story.park(ParkReason::OutcomeUnknown);
    story
}

fn by_operator() -> By {
    By::Operator(ClientId("screen".to_string()))
}

/// The words inside the box that is open.
fn boxed(frame: &str) -> Vec<String> {
    let inside = |line: &'_ str| Some(line[line.find('┃')? + '┃'.len_utf8()..line.rfind('┃')?].to_string());
    let is_in = |line: &&str| line.find('┃') != line.rfind('┃');
    let text = frame.lines().filter(is_in).filter_map(inside).collect::<Vec<_>>().join(" ");
    text.split_whitespace().map(str::to_string).collect()
}

/// Everything that opens above the panes: the story, the pane, and the keys that open it and have it say what is wrong.
/// But the field for changed arguments: what stands there stands there byte for byte.
type Opened = (&'static str, fn() -> Story, char, &'static str);

const OPENED: [Opened; 18] = [
    ("help", pursuing, '1', "?"),
    ("help of a call", || waits(shell), '3', "?"),
    ("plan", pursuing, '1', "e"),
    ("plan, wrong", pursuing, '1', "emark t2\r"),
    ("trust", pursuing, '2', "T"),
    ("trust, wrong", pursuing, '2', "Tall\r"),
    ("limit", pursuing, '2', "+"),
    ("limit, wrong", pursuing, '2', "+lots\r"),
    ("price, wrong", || parked(ParkReason::PriceUnknown), '2', "+cheap\r"),
    ("cancel", || parked(ParkReason::Paused), '2', "X"),
    ("deny", || waits(Story::diff_waits), '3', "d"),
    ("rule", || waits(Story::diff_waits), '3', "r"),
    ("help of a field", pursuing, '1', "e\u{1}"),
    ("rule, wrong", || waits(Story::diff_waits), '3', "rthere\r"),
    ("code", || waits(grave), '3', "y"),
    ("code, wrong", || waits(grave), '3', "ywxyz\r"),
    ("happened", lost, '3', "h"),
    ("back, wrong", || parked(ParkReason::Paused), '2', "B7\r"),
];

#[test]
fn no_word_of_what_opens_is_cut_in_two_on_any_usual_screen() {
    for (name, story, pane, keys) in OPENED {
        let words = |width: u16| {
            let mut show = at_rest(story(), (width, 100), pane);
            for key in keys.chars() {
                match key {
                    '\r' => show.press(KeyCode::Enter),
                    '\u{1}' => show.press(KeyCode::F(1)),
                    letter => show.letters(&letter.to_string()),
                }
            }
            let frame = rest(&mut show);
            assert!(!show.app.popups.is_empty(), "{name}\n{frame}");
            (boxed(&frame), frame)
        };
        let (whole, _) = words(200);
        for width in [60, 72, 80, 81, 100] {
            let (found, frame) = words(width);
            assert_eq!(found, whole, "{name} at {width}\n{frame}");
        }
    }
}

/// What is said of a key before a dialog opens is not said in it, and what is said in it not after it.
#[test]
fn a_notice_goes_with_what_it_was_about() {
    for (name, keys) in [("deny", "d"), ("edit", "e"), ("rule", "r"), ("help", "?"), ("whole", "v")] {
        let mut show = at_rest(waits(Story::diff_waits), SIZE, '3');
        show.letters("qY");
        assert!(flat(&show.frame()).contains("does nothing"), "{}", show.frame());
        rest(&mut show);
        show.letters(keys);
        assert!(!show.app.popups.is_empty(), "{name}");
        assert!(show.app.notice.is_none(), "{name}: {:?}", show.app.notice);
    }
    for (name, keys) in [("trust", "Tall\r"), ("plan", "emark\r"), ("limit", "+lots\r")] {
        let mut show = at_rest(pursuing(), SIZE, '1');
        for key in keys.chars() {
            if key == '\r' { show.press(KeyCode::Enter) } else { show.letters(&key.to_string()) }
        }
        assert!(show.app.notice.is_some() && !show.app.popups.is_empty(), "{name}");
        show.press(KeyCode::Esc);
        assert!(show.app.notice.is_none() && show.app.popups.is_empty(), "{name}: {:?}", show.app.notice);
    }
}

#[test]
fn what_was_said_of_a_call_goes_when_somebody_else_decides_about_it() {
    let mut story = pursuing();
    let first = story.diff_waits();
    story.command_waits("cargo test");
    story.park(ParkReason::Approval);
    let mut show = at_rest(story, SIZE, '3');
    show.press(KeyCode::PageDown);
    show.letters("y");
    assert!(flat(&show.frame()).contains("y came too early"), "{}", show.frame());
    show.next(|story| story.decide(first, Decision::AllowOnce, by_operator()));
    assert!(show.app.notice.is_none(), "{:?}", show.app.notice);
}

/// What was said of a key goes with the next one that does something: the same key in time, or the way to the end.
#[test]
fn what_was_said_of_a_key_goes_with_the_next_one() {
    let long = |story: &mut Story| story.command_waits(&"make\n".repeat(60));
    type Case = (fn(&mut Story) -> CallId, &'static str, &'static str);
    let cases: [Case; 3] = [
        (Story::diff_waits, "y came too early", "y"),
        (Story::diff_waits, "y came too early", "v"),
        (long, "the end of the call was not on the screen yet", "G"),
    ];
    for (waiting, said, next) in cases {
        let mut show = at_rest(waits(waiting), SIZE, '3');
        if said.contains("early") {
            show.press(KeyCode::PageDown);
        }
        show.letters("y");
        assert!(flat(&show.frame()).contains(said), "{}", show.frame());
        show.frame_at(show.ms + 501);
        show.frame();
        show.letters(next);
        assert!(show.app.notice.is_none(), "{said}, then {next}: {:?}", show.app.notice);
    }
}

/// The reason comes first and is never cut, however long what the call reaches is; where it is too long for the pane, what
/// it reaches is read in the whole of the call.
#[test]
fn the_reason_of_a_call_is_said_in_full() {
    let why = "it deletes build, which can't be undone; it can change anything that you can: rm is not in the read-only table";
    let reach = format!("runs a program in a box: {}", "the workspace to read and write, ".repeat(5));
    for size in [(80, 24), (120, 36), (60, 15), (60, 16)] {
        for count in [1, 6] {
            let mut story = pursuing();
            for _ in 0..count {
                let arguments = serde_json::json!({ "command": "rm -rf build" }).to_string();
                let call = story.call("shell", &arguments, EffectClass::External);
                story.prepare(call, "rm -rf build", &reach, "rm -rf build\nmake\nmake\nmake");
                story.request(call, why);
            }
            story.park(ParkReason::Approval);
            let mut show = at_rest(story, size, '3');
            let pane = boxed(&show.frame()).join(" ");
            assert!(pane.contains(&format!("asked: {why}")), "{size:?} {count}\n{}", show.frame());
        }
    }
}

/// The one call is decided and the keys go back by themselves: who presses the key once more meant to decide.
#[test]
fn a_second_press_of_a_key_that_decides_writes_nothing() {
    for (second, is_dropped) in [("y", true), ("n", false), ("A", false)] {
        let mut show = at_rest(waits(shell), SIZE, '3');
        let call = show.app.waiting[0].call;
        show.letters("y");
        // The record takes its time: the key is not taken for one that is held down any more.
        show.ms += 900;
        show.next(|story| {
            story.decide(call, Decision::AllowOnce, by_operator());
            story.event(Event::StatusChanged { status: Status::Running, by: None });
        });
        assert_eq!(show.app.focus, Focus::Composer);
        show.ms += 500;
        show.letters(second);
        let written = if is_dropped { "" } else { second };
        assert_eq!((show.app.draft().as_str(), commands(&show).len()), (written, 1), "{second}");
        let dropped = format!("{second} was dropped: nothing waits any more");
        assert_eq!(flat(&show.frame()).contains(&dropped), is_dropped, "{}", show.frame());
        // Words lose no letter.
        show.letters("any day");
        assert_eq!(show.app.draft(), format!("{written}any day"));
    }
}

/// An end that only flew by was not seen: it must rest on the screen, for a list as for one call.
#[test]
fn a_call_that_was_on_the_screen_for_a_moment_only_is_not_allowed_with_the_list() {
    let listed = |look_ms: u64| {
        let mut story = pursuing();
        let calls = [story.diff_waits(), story.command_waits("cargo test"), story.command_waits("cargo doc")];
        story.park(ParkReason::Approval);
        let mut show = at_rest(story, SIZE, '3');
        show.letters("j");
        show.frame();
        let left = show.ms + look_ms;
        show.frame_at(left);
        show.letters("j");
        rest(&mut show);
        show.letters("A");
        let Some(Command::AllowAll { calls: allowed }) = commands(&show).pop() else { panic!("nothing was allowed") };
        (calls.map(|call| allowed.iter().any(|(one, _)| *one == call)), flat(&show.frame()))
    };
    let (allowed, frame) = listed(50);
    assert_eq!(allowed, [true, false, true]);
    assert!(frame.contains("2 allowed: c2, c4; c3 has not been read to its end"), "{frame}");
    assert_eq!(listed(600).0, [true; 3]);
}

#[test]
fn the_smallest_screen_has_the_tool_the_digest_and_the_keys() {
    let stories: [fn() -> Story; 3] = [|| waits(shell), || waits(grave), || waits(Story::diff_waits)];
    for story in stories {
        let show = |size| at_rest(story(), size, '3');
        let mut small = show((20, 10));
        let (frame, item) = (small.frame(), &small.app.waiting[0]);
        let digest = item.digest.as_ref().unwrap().short();
        let once = if item.grave.is_some() { "[y] code" } else { "once" };
        for wanted in [item.tool.as_str(), digest, once, "[n] deny", "1 │"] {
            assert!(frame.contains(wanted), "{wanted}\n{frame}");
        }
        // Below that nothing is decided, also not in what was opened before.
        for size in [(19, 10), (20, 9)] {
            let mut below = show(size);
            below.letters("y");
            rest(&mut below);
            below.letters("n");
            assert_eq!(commands(&below), [], "{size:?}");
            let mut opened = show(SIZE);
            opened.letters("d");
            opened.resize(size.0, size.1);
            rest(&mut opened);
            opened.letters("no");
            opened.press(KeyCode::Enter);
            assert_eq!(commands(&opened), [], "{size:?}");
            opened.resize(SIZE.0, SIZE.1);
            rest(&mut opened);
            opened.press(KeyCode::Enter);
            assert_eq!(commands(&opened).len(), 1, "control: it is shown again");
        }
    }
}

/// A sentence of several rows is read beside what is written, wherever the keys are and whatever is open.
#[test]
fn a_notice_does_not_cover_what_is_written() {
    let long = "you are root: several protections do not bind root; a user of their own is safer; and the folder has an \
                AGENTS.md that is not read, since this folder is not trusted";
    let two = &long[..120];
    for size in [(80, 24), (60, 20)] {
        for (notice, opens) in [(two, ""), (long, ""), (two, "X"), (long, "X")] {
            for draft in ["", "half a sentence", &format!("{}end", "many words ".repeat(20))] {
                let mut show = at_rest(waits(shell), size, '3');
                show.press(KeyCode::Esc);
                show.letters(draft);
                show.chord(KeyCode::Char('3'), KeyModifiers::ALT);
                rest(&mut show);
                show.letters(opens);
                show.app.notice = Some(Notice {
                    text: notice.to_string(),
                    role: Role::Warning,
                    until_ms: u64::MAX,
                    lasts: Lasts::AWhile,
                });
                let frame = show.frame();
                let last = frame.lines().last().unwrap();
                let tail = draft.trim_end().rsplit(' ').next().unwrap();
                assert!(frame.contains("you are root") && last.contains(tail), "{size:?} {opens}\n{frame}");
                if notice == two && size.0 == 80 {
                    assert!(flat(&frame).contains(two.trim_end()), "{opens}\n{frame}");
                    let empty =
                        if opens.is_empty() { "the keys are in pane 3" } else { "the keys are in what is open" };
                    assert!(!draft.is_empty() || last.contains(empty), "{opens}\n{frame}");
                }
            }
        }
    }
}
