//! Dialogs: what is typed for one goes nowhere else, what was refused stays where it was written, and all of it can be
//! read on a small screen.

use crossterm::event::KeyCode;
use crossterm::event::KeyEvent;
use crossterm::event::KeyModifiers;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use tiller::domain::approval::By;
use tiller::domain::approval::Decision;
use tiller::domain::budget::Axis;
use tiller::domain::budget::Limit;
use tiller::domain::command::Command;
use tiller::domain::command::Policy;
use tiller::domain::command::Refusal;
use tiller::domain::event::Event;
use tiller::domain::event::Finding;
use tiller::domain::id::CallId;
use tiller::domain::id::ClientId;
use tiller::domain::id::InterjectionId;
use tiller::domain::id::RunId;
use tiller::domain::id::Seq;
use tiller::domain::line::Joint;
use tiller::domain::line::Line;
use tiller::domain::line::Named;
use tiller::domain::line::Plain;
use tiller::domain::line::Segment;
use tiller::domain::line::Touch;
use tiller::domain::sandbox::Level;
use tiller::domain::status::Course;
use tiller::domain::status::ParkReason;
use tiller::domain::status::Status;
use tiller::domain::summary::Listed;
use tiller::domain::summary::Summary;
use tiller::domain::terms::Terms;
use tiller::domain::time::Now;
use tiller::domain::tool::EffectClass;
use tiller::domain::tool::Facts;
use tiller::domain::trust::Trust;
use tiller::machine::Input;
use tiller::machine::respond::respond;
use tiller::policy::spending::needed;
use tiller::tui::app::App;
use tiller::tui::app::Focus;
use tiller::tui::app::Moment;
use tiller::tui::app::Msg;
use tiller::tui::app::Options;
use tiller::tui::app::Ticket;
use tiller::tui::lineage::Step;
use tiller::tui::lineage::StepKind;
use tiller::tui::list::Asked;
use tiller::tui::list::Choice;
use tiller::tui::list::List;
use tiller::tui::list::ListOptions;
use tiller::tui::notice::Lasts;
use tiller::tui::notice::Notice;
use tiller::tui::past::Reading;
use tiller::tui::popup::Popup;
use tiller::tui::popup::exact_dollars;
use tiller::tui::theme::Role;
use tiller::tui::view::runs;

use crate::screens::story::Show;
use crate::screens::story::Story;
use crate::screens::story::at_rest;
use crate::screens::story::commands;
use crate::screens::story::flat;
use crate::screens::story::pursuing;
use crate::screens::story::rest;
use crate::screens::story::terms;
use crate::screens::story::text_of;

const SIZE: (u16, u16) = (80, 24);

fn parked(reason: ParkReason) -> Story {
    let mut story = pursuing();
    story.park(reason);
    story
}

fn with_diff() -> Story {
    let mut story = pursuing();
    story.diff_waits();
    story.park(ParkReason::Approval);
    story
}

fn with_lost_call() -> Story {
    let mut story = pursuing();
    let call = story.command_waits("git push");
    story.decide(call, Decision::AllowOnce, By::Operator(ClientId("s".to_string())));
    story.start(call);
    story.event(Event::Recovered { findings: vec![Finding::ToolCallLost(call)] });
    story.park(ParkReason::OutcomeUnknown);
    story
}

/// The text inside the box that is open, in one row.
fn boxed(frame: &str) -> String {
    let inside = |line: &'_ str| Some(line[line.find('┃')? + '┃'.len_utf8()..line.rfind('┃')?].to_string());
    let is_in = |line: &&str| line.find('┃') != line.rfind('┃');
    flat(&frame.lines().filter(is_in).filter_map(inside).collect::<Vec<_>>().join(" "))
}

/// A dialog, the keys that open it, what is typed in it, and where.
type Dialog = (fn() -> Story, char, &'static str, &'static str);

/// Every dialog that sends a request when Enter is pressed.
const DIALOGS: [Dialog; 7] = [
    (pursuing, '1', "e", "done t77"),
    (pursuing, '2', "T", "plan"),
    (pursuing, '2', "+", "7"),
    (|| parked(ParkReason::PriceUnknown), '2', "+", "0.25 2.00"),
    (with_diff, '3', "d", "use rg"),
    (with_diff, '3', "r", "here"),
    (with_lost_call, '3', "h", "it is there"),
];

#[test]
fn what_was_refused_stays_in_its_dialog_with_the_reason() {
    for (story, pane, key, text) in DIALOGS {
        let mut show = at_rest(story(), SIZE, pane);
        show.letters(key);
        show.letters(text);
        show.press(KeyCode::Enter);
        assert_eq!((commands(&show).len(), show.app.popups.len()), (1, 1), "{key} {text}");
        // It is still under way: nothing goes twice, and nothing goes elsewhere.
        show.press(KeyCode::Enter);
        show.letters("RX");
        assert_eq!((commands(&show).len(), show.app.popups.len()), (1, 1), "{key} {text}");
        show.press(KeyCode::Backspace);
        show.press(KeyCode::Backspace);
        show.tell(Msg::Refused(Ticket(1), Refusal::TooMany));
        let frame = show.frame();
        assert!(boxed(&frame).contains(text), "{key}: {frame}");
        assert!(boxed(&frame).contains("nothing was sent"), "{key}: {frame}");
        // The next letters belong to it, too; it can be sent again, and closed.
        show.letters("RX");
        show.press(KeyCode::Backspace);
        show.press(KeyCode::Backspace);
        show.press(KeyCode::Enter);
        let sent = commands(&show);
        assert_eq!((sent.len(), show.app.popups.len()), (2, 1), "{key}");
        assert_eq!(sent[0], sent[1]);
        show.tell(Msg::Accepted(Ticket(2), Seq(9_999)));
        assert!(show.app.popups.is_empty(), "{key}");
    }
}

/// A call that the operator's own rule denies as they changed it is changed further where it was written.
#[test]
fn a_change_that_is_refused_can_be_changed_further() {
    for size in [(120, 36), (80, 24)] {
        let mut show = at_rest(with_diff(), size, '3');
        show.letters("G");
        rest(&mut show);
        show.letters("e");
        rest(&mut show);
        show.chord(KeyCode::Char('u'), KeyModifiers::CONTROL);
        show.letters(r#"{"path":".env","old":"a","new":"b"}"#);
        show.press(KeyCode::Enter);
        let why = "the standing rule 1f2e denies it: the files .env";
        show.tell(Msg::Refused(Ticket(1), Refusal::EditRefused(why.to_string())));
        let frame = show.frame();
        assert!(boxed(&frame).contains(r#"{"path":".env","old":"a","new":"b"}"#), "{frame}");
        let told = format!("as you changed it, it would not run: {why}; nothing was decided; change it further");
        assert!(boxed(&frame).contains(&told), "{frame}");
        // However long that takes to think about, and whatever is looked up meanwhile.
        show.press(KeyCode::F(1));
        let help = show.frame_at(show.ms + 60_000);
        assert!(help.contains("Keys that work here") && !help.contains("it would not run"), "{help}");
        show.press(KeyCode::F(1));
        show.frame_at(show.ms + 60_000);
        assert!(boxed(&show.frame()).contains(&told), "{}", show.frame());
        show.press(KeyCode::Backspace);
        show.press(KeyCode::Backspace);
        show.letters(r#"c"}"#);
        show.press(KeyCode::Enter);
        let further = Decision::Edit(r#"{"path":".env","old":"a","new":"bc"}"#.to_string());
        assert!(matches!(&commands(&show)[1], Command::Decide { decision, .. } if *decision == further));
        show.tell(Msg::Accepted(Ticket(2), Seq(9_999)));
        assert!(show.app.popups.is_empty());
    }
}

#[test]
fn a_refused_end_of_the_run_stays_in_its_dialog() {
    for key in ["C", "K", "A", "F"] {
        let mut show = at_rest(parked(ParkReason::Paused), SIZE, '2');
        show.letters("X");
        rest(&mut show);
        show.letters(key);
        rest(&mut show);
        show.letters(key);
        assert_eq!((commands(&show).len(), show.app.popups.len()), (1, 1), "{key}");
        show.tell(Msg::Refused(Ticket(1), Refusal::TooMany));
        assert_eq!(flat(&show.frame()).matches("nothing was sent").count(), 1, "{}", show.frame());
        assert_eq!(show.app.popups.len(), 1);
    }
}

#[test]
fn a_dialog_that_is_closed_before_its_answer_says_it_later() {
    let mut show = at_rest(pursuing(), SIZE, '1');
    show.letters("edone t77");
    show.press(KeyCode::Enter);
    show.press(KeyCode::Esc);
    assert!(show.app.popups.is_empty());
    show.letters("+");
    show.tell(Msg::Refused(Ticket(1), Refusal::TooMany));
    assert_eq!(show.app.popups.len(), 1, "the answer to one dialog closes no other");
    assert!(show.frame().contains("nothing was sent"), "{}", show.frame());
}

#[test]
fn letters_typed_on_after_a_dialog_are_no_keys_of_a_pane() {
    let mut show = at_rest(parked(ParkReason::Paused), SIZE, '1');
    show.letters("edone t1");
    show.press(KeyCode::Enter);
    show.tell(Msg::Accepted(Ticket(1), Seq(9_999)));
    for one in ["R", "X", "T", "e"] {
        show.ms += 300;
        show.letters(one);
    }
    assert_eq!((commands(&show).len(), show.app.popups.len()), (1, 0));
    assert!(show.frame().contains("e was dropped"), "{}", show.frame());
    rest(&mut show);
    show.letters("R");
    assert_eq!(commands(&show).last(), Some(&Command::Resume));
    // A dialog that does not open takes nothing that was typed for it, either.
    let mut story = pursuing();
    story.close(Course::Continue, &[]);
    story.event(Event::StatusChanged { status: Status::Cancelled, by: None });
    let mut show = at_rest(story, SIZE, '1');
    show.letters("eRewrite it");
    assert_eq!((commands(&show), show.app.popups.len()), (Vec::new(), 0));
}

#[test]
fn after_a_dialog_a_key_decides_when_it_is_pressed_twice() {
    for close in [KeyCode::Esc, KeyCode::Enter] {
        let mut show = at_rest(with_diff(), SIZE, '3');
        // The one that is closed by its answer is about the run, so that the call goes on waiting.
        show.letters(if close == KeyCode::Esc { "d" } else { "Task" });
        show.press(close);
        show.tell(Msg::Accepted(Ticket(1), Seq(9_999)));
        assert_eq!(show.app.popups.len(), 0);
        let before = commands(&show).len();
        rest(&mut show);
        show.letters("a");
        assert!(flat(&show.frame()).contains("press a again, and it decides"), "{}", show.frame());
        rest(&mut show);
        show.letters("n");
        rest(&mut show);
        // Another key between the two begins anew.
        show.letters("j");
        rest(&mut show);
        show.letters("n");
        assert_eq!(commands(&show).len(), before);
        rest(&mut show);
        show.letters("n");
        let decision = Decision::Deny(String::new());
        assert!(matches!(commands(&show).last(), Some(Command::Decide { decision: one, .. }) if *one == decision));
        assert_eq!(commands(&show).len(), before + 1);
    }
}

#[test]
fn whoever_comes_to_the_pane_by_its_key_decides_at_once() {
    for (code, with) in [(KeyCode::Char('g'), KeyModifiers::CONTROL), (KeyCode::Char('3'), KeyModifiers::ALT)] {
        let mut show = at_rest(with_diff(), SIZE, '3');
        show.letters("d");
        show.press(KeyCode::Esc);
        show.chord(code, with);
        rest(&mut show);
        show.letters("y");
        assert_eq!(commands(&show).len(), 1);
    }
    // What was read whole was read: no letters are typed there.
    let mut show = at_rest(with_diff(), SIZE, '3');
    show.letters("v");
    rest(&mut show);
    show.press(KeyCode::Esc);
    rest(&mut show);
    show.letters("y");
    assert_eq!(commands(&show).len(), 1);
}

#[test]
fn a_room_that_is_entered_again_with_the_keys_on_what_waits_asks_once() {
    let story = with_diff();
    let options = Options { focus: Focus::Waiting, ..Options::default() };
    let mut show = Show::of(with_diff(), SIZE, 0);
    show.app = App::new(story.run.clone(), Moment { ms: 0, at: story.run.at }, options);
    rest(&mut show);
    show.letters("a");
    assert_eq!(commands(&show), []);
    rest(&mut show);
    show.letters("a");
    assert_eq!(commands(&show).len(), 1);
}

#[test]
fn a_step_that_could_not_be_looked_into_is_asked_for_again() {
    let story = pursuing();
    let again = Some(Step { kind: StepKind::Back, iteration: 1 });
    let said = Some("the journal can't be read".to_string());
    let mut show = Show::of(pursuing(), SIZE, 0);
    let options = Options { again, said, focus: Focus::Plan, ..Options::default() };
    show.app = App::new(story.run.clone(), Moment { ms: 0, at: story.run.at }, options);
    let frame = show.frame();
    assert!(boxed(&frame).contains("› 1") && boxed(&frame).contains("the journal can't be read"), "{frame}");
}

#[test]
fn enter_with_nothing_written_says_what_to_do() {
    let mut show = Show::of(pursuing(), SIZE, 0);
    show.press(KeyCode::Enter);
    assert!(flat(&show.frame()).contains("type what the agent is to be told, then Enter"), "{}", show.frame());
    show.next(|story| {
        story.call("ask_operator", r#"{"question":"which?"}"#, EffectClass::Control);
        story.park(ParkReason::Question);
    });
    show.press(KeyCode::Enter);
    assert!(flat(&show.frame()).contains("type the answer, then Enter"), "{}", show.frame());
    assert_eq!(commands(&show), []);
}

#[test]
fn the_number_of_an_iteration_and_the_count_for_the_limit_are_told_apart() {
    let mut show = at_rest(pursuing(), (120, 36), '4');
    let frame = show.frame();
    assert!(frame.contains("iteration 2, 31 left") && frame.contains("iterations counted 1/32"), "{frame}");
    show.letters("+");
    for _ in 0..4 {
        show.press(KeyCode::Up);
    }
    assert!(boxed(&show.frame()).contains("planning and wrapping up do not count"), "{}", show.frame());
}

/// Every dialog on every usual small screen: no row of it is cut off, what is said is there once, and its last row is.
#[test]
fn dialogs_fit_on_small_screens() {
    let claim = || {
        let mut story = pursuing();
        story.close(Course::Continue, &[]);
        story.park(ParkReason::Budget(Axis::Loops));
        story
    };
    let opened: [Dialog; 13] = [
        (pursuing, '1', "e", "Esc: nothing is changed"),
        (with_diff, '3', "e", "Esc: nothing is decided"),
        (with_diff, '3', "d", "Esc: nothing is decided"),
        (with_lost_call, '3', "h", "Esc: nothing is decided"),
        (pursuing, '2', "T", "Esc: nothing is changed"),
        (pursuing, '2', "+", "this is a suggestion: typing replaces it"),
        (claim, '2', "+", "this is a suggestion: typing replaces it"),
        (|| parked(ParkReason::PriceUnknown), '2', "+", "Esc: nothing is changed"),
        (claim, '2', "B", "Esc: nothing is changed"),
        (claim, '2', "F", "Esc: nothing is changed"),
        (claim, '2', "X", "Esc back; nothing is done"),
        (pursuing, '2', "X", "Esc back; nothing is done"),
        (pursuing, '2', "?", "Keys that work here"),
    ];
    let said = "the folder of the run is not here, so nothing was recorded; put it there and say it again";
    for size in [(80, 24), (60, 20), (60, 15)] {
        for (story, pane, keys, last) in opened {
            let mut show = at_rest(story(), size, pane);
            if pane == '3' {
                // A call is changed after its end was seen.
                show.letters("G");
                rest(&mut show);
            }
            show.letters(keys);
            let frame = show.frame();
            assert!(boxed(&frame).contains(last) || flat(&frame).contains(last), "{keys} {size:?}:\n{frame}");
            let is_cut = frame.contains("…┃") || frame.contains("… ┃");
            assert!(!is_cut || size.1 < 20, "{keys} {size:?}:\n{frame}");
            show.app.notice =
                Some(Notice { text: said.to_string(), role: Role::Warning, until_ms: 99_000, lasts: Lasts::AWhile });
            let frame = show.frame();
            let (within, all) = (boxed(&frame).matches(said).count(), flat(&frame).matches(said).count());
            assert!(within == 1 || all == 1, "{keys} {size:?}: {within} {all}\n{frame}");
            assert_eq!(flat(&frame).matches("the folder of the run").count(), 1, "{keys} {size:?}:\n{frame}");
        }
    }
}

/// A story, a pane and the keys that open something there.
type Opened = (fn() -> Story, char, &'static str);

/// What can be open, and what opens it.
const OPEN: [Opened; 9] = [
    (with_diff, '3', "v"),
    (pursuing, '2', "v"),
    (with_diff, '3', "d"),
    (with_diff, '3', "e"),
    (with_diff, '3', "r"),
    (pursuing, '2', "T"),
    (pursuing, '2', "+"),
    (pursuing, '1', "e"),
    (pursuing, '2', "X"),
];

/// The help is there wherever the keys are, and behind it all is as it was, whichever key closes it.
#[test]
fn help_opens_from_everywhere_and_goes_back_there() {
    let goes_back = |show: &mut Show, opens: KeyCode, closes: KeyCode, what: &str| {
        // The two rows on top have a clock.
        let below = |frame: String| frame.lines().skip(2).map(str::to_string).collect::<Vec<_>>();
        let before = below(rest(show));
        let open = show.app.popups.len();
        show.press(opens);
        let help = rest(show);
        assert!(help.contains("Keys that work here"), "{what}:\n{help}");
        show.press(closes);
        assert_eq!(show.app.popups.len(), open, "{what}");
        assert_eq!(below(rest(show)), before, "{what}");
    };
    for (story, pane, keys) in OPEN {
        let mut show = at_rest(story(), SIZE, pane);
        show.letters("G");
        rest(&mut show);
        show.letters(keys);
        show.press(KeyCode::Down);
        let is_written = matches!(show.app.popups.last(), Some(Popup::Words { .. } | Popup::Raise { .. }));
        goes_back(&mut show, KeyCode::F(1), KeyCode::F(1), keys);
        goes_back(&mut show, KeyCode::F(1), KeyCode::Esc, keys);
        if !is_written && keys != "X" {
            goes_back(&mut show, KeyCode::Char('?'), KeyCode::Char('?'), keys);
        }
        assert_eq!(commands(&show), []);
    }
    for pane in ['1', '2', '3', '4'] {
        let mut show = at_rest(with_diff(), SIZE, pane);
        goes_back(&mut show, KeyCode::F(1), KeyCode::F(1), "a pane");
        goes_back(&mut show, KeyCode::Char('?'), KeyCode::Esc, "a pane");
    }
    let mut show = Show::of(pursuing(), SIZE, 0);
    goes_back(&mut show, KeyCode::Char('?'), KeyCode::Char('?'), "the composer");
    show.letters("half a sentence?");
    goes_back(&mut show, KeyCode::F(1), KeyCode::F(1), "the composer");
    assert_eq!(show.app.draft(), "half a sentence?");
}

fn listed(list: &List) -> String {
    let mut terminal = Terminal::new(TestBackend::new(SIZE.0, SIZE.1)).unwrap();
    terminal
        .draw(|frame| {
            runs::draw(frame, list);
        })
        .unwrap();
    text_of(terminal.backend().buffer())
}

fn a_list(count: usize, behind: Option<RunId>) -> List {
    let run = Listed::Run { summary: Box::new(Summary::of(&pursuing().run)), held_by: None };
    List::new(vec![run; count], Moment::default(), ListOptions { behind, ..ListOptions::default() })
}

/// In the list Esc closes what is open above it, then the list, which leads back to the run it was opened from; where
/// there is none, that is said.
#[test]
fn esc_closes_the_list_of_runs_and_all_that_is_open_in_it() {
    let id = pursuing().run.id;
    let esc = |list: &mut List| list.key(KeyEvent::from(KeyCode::Esc));
    let mut list = a_list(1, Some(id.clone()));
    list.key(KeyEvent::from(KeyCode::Char('n')));
    list.key(KeyEvent::from(KeyCode::F(1)));
    assert!(listed(&list).contains("Keys that work here"));
    assert_eq!(esc(&mut list), Asked::Nothing);
    assert!(!listed(&list).contains("Keys that work here") && listed(&list).contains("what is to be reached"));
    assert_eq!(esc(&mut list), Asked::Nothing);
    assert!(
        !listed(&list).contains("what is to be reached") && listed(&list).contains("Esc back"),
        "{}",
        listed(&list)
    );
    assert_eq!(esc(&mut list), Asked::Choice(Choice::Open(id)));
    for (count, key) in [(1, "q leaves"), (0, "^D leaves")] {
        let mut list = a_list(count, None);
        assert!(!listed(&list).contains("Esc back"), "{}", listed(&list));
        assert_eq!(esc(&mut list), Asked::Nothing);
        let told = format!("no run is behind this list to go back to; {key} tiller");
        assert!(flat(&listed(&list)).contains(&told), "{}", listed(&list));
    }
}

/// What is missing for a new run is said with what can be done without it, which stands at its end.
#[test]
fn the_greeting_of_the_list_is_whole_on_small_screens() {
    let greeting = "the configuration: no model is named; write model = \"provider/model\" in tiller.toml, set TILLER_MODEL, \
                    or give --model; nothing was started; `tiller rehearse` needs no model";
    for size in [(80, 24), (60, 20)] {
        let options = ListOptions { greeting: greeting.to_string(), ..ListOptions::default() };
        let list = List::new(Vec::new(), Moment::default(), options);
        let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
        terminal
            .draw(|frame| {
                runs::draw(frame, &list);
            })
            .unwrap();
        let frame = text_of(terminal.backend().buffer());
        assert!(flat(&frame).contains(greeting), "{frame}");
    }
}

#[test]
fn what_keeps_a_key_from_deciding_is_said_on_any_screen() {
    let long = || {
        let mut story = pursuing();
        let lines: Vec<String> = (1..=60).map(|line| format!("echo {line}")).collect();
        story.command_waits(&lines.join("\n"));
        story.diff_waits();
        story.park(ParkReason::Approval);
        story
    };
    for size in [(120, 36), (80, 24), (60, 20)] {
        for keys in ["", "v"] {
            let mut show = at_rest(long(), size, '3');
            show.letters(keys);
            assert!(rest(&mut show).contains("G shows the end"), "{keys} {size:?}:\n{}", show.frame());
            show.letters("G");
            show.frame();
            assert!(show.frame().contains("hold still"), "{keys} {size:?}:\n{}", show.frame());
            let frame = rest(&mut show);
            assert!(frame.contains("[y] once") && !frame.contains("hold still"), "{frame}");
            let all = frame.contains("[A] 1 seen") || frame.contains("F1 more keys");
            assert!(all, "{keys} {size:?}:\n{frame}");
        }
    }
}

/// Words that are being written stay, whatever becomes of their call meanwhile.
#[test]
fn a_call_that_goes_leaves_the_words_for_it_open() {
    let mut show = at_rest(with_diff(), SIZE, '3');
    let call: CallId = show.app.waiting[0].call;
    show.letters("dno");
    show.next(|story| story.decide(call, Decision::AllowOnce, By::Operator(ClientId("other".to_string()))));
    show.letters("RX");
    assert_eq!((commands(&show), show.app.popups.len()), (Vec::new(), 1));
}

#[test]
fn the_last_row_and_the_help_of_a_dialog_say_what_enter_does_there() {
    let cases: [(Dialog, &str); 5] = [
        ((with_diff, '3', "e", "Enter allows it so  Esc back"), "allow the call with these arguments, once"),
        ((with_diff, '3', "d", "Enter send  Esc back"), "the words may be left empty"),
        ((pursuing, '2', "T", "Enter takes it  Esc back"), "what the dialog says in its last row"),
        ((pursuing, '1', "e", "Enter takes it  Esc back"), "what the dialog says in its last row"),
        ((pursuing, '2', "+", "Enter set  ↓ other limit"), "set the limit"),
    ];
    for ((story, pane, key, row), help) in cases {
        let mut show = at_rest(story(), SIZE, pane);
        show.letters(key);
        let frame = show.frame();
        assert!(frame.lines().last().unwrap().contains(row), "{key}: {frame}");
        show.press(KeyCode::F(1));
        assert!(boxed(&show.frame()).contains(help), "{key}: {}", show.frame());
        show.press(KeyCode::Esc);
        assert_eq!(show.app.popups.len(), 1, "{key}: the dialog is there still");
    }
}

/// The answer to a dialog closes it, also while its help is open above it.
#[test]
fn a_dialog_that_is_answered_under_its_help_is_closed() {
    let mut show = at_rest(pursuing(), SIZE, '2');
    show.letters("Tplan");
    show.press(KeyCode::Enter);
    show.press(KeyCode::F(1));
    show.press(KeyCode::Esc);
    assert!(show.app.is_asking(), "closing the help is no answer");
    show.press(KeyCode::F(1));
    show.tell(Msg::Accepted(Ticket(1), Seq(9_999)));
    assert!(show.app.popups.is_empty());
}

#[test]
fn help_says_what_the_keys_of_a_call_do() {
    let help = |story: fn() -> Story| {
        let mut show = at_rest(story(), (120, 60), '3');
        show.letters("?");
        boxed(&show.frame())
    };
    let lost = help(with_lost_call);
    assert!(lost.contains("run it again, at once: this key is your leave"), "{lost}");
    let waiting = help(with_diff);
    assert!(waiting.contains("deny this call, and unasked any with the same tool and the same arguments"), "{waiting}");
}

/// What is offered is the call's own words, with what it would have done before; how far it reaches is typed.
#[test]
fn a_rule_is_made_of_words_that_are_shown_and_typed() {
    let waits = |command: &str| {
        let mut story = pursuing();
        let words: Vec<String> = command.split(' ').map(str::to_string).collect();
        let segment = Segment { joint: Joint::First, argv: words.clone(), redirects: Vec::new() };
        let touch = |word: &String| Touch {
            command: 0,
            word: word.clone(),
            named: if word == ".env" { Named::Sensitive("it may hold keys".to_string()) } else { Named::Missing },
            is_foundation: false,
            runs_later: false,
        };
        let touches = words.iter().chain([&".".to_string()]).map(touch).collect();
        let line = Line { commands: vec![words], plain: Ok(Plain { segments: vec![segment] }) };
        let arguments = serde_json::json!({ "command": command }).to_string();
        let call = story.call("shell", &arguments, EffectClass::External);
        let facts = Facts {
            title: command.to_string(),
            preview: command.to_string(),
            line: Some(line),
            touches,
            network: command.starts_with("curl"),
            unconfined: command.starts_with("curl"),
            level: Some(Level::Full),
            ..Facts::default()
        };
        story.event(Event::ToolCallPrepared { call, facts: Box::new(facts) });
        story.request(call, "it can change anything that you can");
        story.park(ParkReason::Approval);
        at_rest(story, (100, 40), '3')
    };
    let mut show = waits("cargo test --lib one");
    show.letters("r");
    let text = boxed(&show.frame());
    assert!(text.contains("exactly: cargo test --lib one (in the box; 0 calls of this run so far)"), "{text}");
    assert!(text.contains("open: cargo test --lib {any:one} (in the box; "), "{text}");
    assert!(text.contains("here, everywhere, open here or open everywhere"), "{text}");
    for vain in ["", "y", "anywhere"] {
        show.letters(vain);
        show.press(KeyCode::Enter);
        assert_eq!(commands(&show), [], "{vain:?}");
        show.chord(KeyCode::Char('u'), KeyModifiers::CONTROL);
    }
    show.letters("open everywhere");
    show.press(KeyCode::Enter);
    let [Command::Decide { decision: Decision::AllowRule(draft), .. }] = &commands(&show)[..] else { panic!("none") };
    assert_eq!(draft.to_string(), "allow cargo test --lib {any:one}, in the box, everywhere");
    // Of what runs other programs, of what removes and of what has the network only the exact words.
    for (command, bounds) in
        [("sh check.sh", "in the box"), ("rm a", "in the box"), ("curl -sS x", "in the box, with the network")]
    {
        let mut show = waits(command);
        show.letters("r");
        let text = boxed(&show.frame());
        assert!(text.contains(&format!("exactly: {command} ({bounds}; ")), "{text}");
        assert!(!text.contains("open: ") && !text.contains("open here"), "{text}");
        assert!(text.contains("here or everywhere"), "{text}");
        show.letters("open here");
        show.press(KeyCode::Enter);
        assert_eq!(commands(&show), [], "{command}");
    }
    let mut show = waits("cat .env");
    show.letters("r");
    assert!(show.app.popups.is_empty(), "no rule for a sensitive name");
    assert!(
        flat(&show.frame()).contains("no rule can be made of this call: no rule allows what names .env"),
        "{}",
        show.frame()
    );
}

/// What the dialog says of the modes is what the machine makes of them.
#[test]
fn the_dialog_of_trust_says_what_becomes_of_what_waits_and_of_what_was_allowed() {
    let mut story = pursuing();
    let first = story.command_waits("cargo test");
    let by = || By::Operator(ClientId("s".to_string()));
    story.decide(first, Decision::AllowRun, by());
    let second = story.diff_waits();
    story.decide(second, Decision::AllowTool, by());
    let third = story.command_waits("git push");
    story.park(ParkReason::Approval);
    for trust in Trust::ALL {
        let input = Input::Command(Command::SetTrust(trust), ClientId("s".to_string()));
        let events = respond(&story.run, &input, Now::default()).unwrap();
        let is_void =
            events.iter().any(|event| matches!(event, Event::ApprovalInvalidated { call, .. } if *call == third));
        assert_eq!(is_void, trust == Trust::Plan, "{trust}");
    }
    let mut show = at_rest(story, (100, 40), '2');
    show.letters("T");
    let text = boxed(&show.frame());
    for part in [
        "With plan, what waits for you and would change anything is denied, and the run goes on",
        "with any other mode it goes on waiting",
        "a tighter mode does not take it back, but plan denies it",
        "· every call of edit_file",
        "· exactly this call: shell cargo test",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let mut show = at_rest(pursuing(), (100, 40), '2');
    show.letters("T");
    assert!(boxed(&show.frame()).contains("Beside the mode nothing is allowed"), "{}", show.frame());
}

#[test]
fn the_dialog_of_limits_says_the_least_that_helps() {
    let mut story = Story::planned(with_limit(10_500));
    story.ask(9_000);
    story.reply("on it", 6_000, 300);
    story.close(Course::Continue, &[]);
    story.park(ParkReason::Budget(Axis::Cost));
    let least = exact_dollars(needed(&story.run, Axis::Cost));
    let mut show = at_rest(story, SIZE, '2');
    show.letters("+");
    let text = boxed(&show.frame());
    assert!(text.contains(&format!("the least that lets it go on is {least}")), "{text}");
    // Where the limit bears the next call there is nothing to say.
    let mut show = at_rest(pursuing(), SIZE, '2');
    show.letters("+");
    assert!(!boxed(&show.frame()).contains("the least"), "{}", show.frame());
}

fn with_limit(micro: u64) -> Terms {
    let mut terms = terms("fix it");
    terms.limits.cost = Limit::At(micro);
    terms
}

/// A crash right after Enter leaves what was sent in the kept draft; it is not offered to be sent once more.
#[test]
fn what_was_sent_is_no_draft_when_the_run_is_opened_again() {
    let text = "mind the gap";
    let draft_after = |kept: &str, last: &[Event]| {
        let mut story = pursuing();
        last.iter().for_each(|event| story.event(event.clone()));
        let mut show = Show::late(pursuing(), SIZE, 0);
        let options = Options { draft: kept.to_string(), ..Options::default() };
        show.app = App::new(story.run.clone(), Moment { ms: 0, at: story.run.at }, options);
        let mut reading = Reading::new(&story.run.id);
        reading.take(&story.records);
        show.tell(Msg::Past(Box::new(reading.end().unwrap_or_else(|_| panic!("nothing is gone back to")))));
        show.app.draft()
    };
    let by = || ClientId("screen".to_string());
    let id = InterjectionId(1);
    let queued = Event::InterjectionQueued { id, text: text.to_string(), by: by(), policy: Policy::Next };
    assert_eq!(draft_after(text, std::slice::from_ref(&queued)), "");
    assert_eq!(draft_after("mind the other", std::slice::from_ref(&queued)), "mind the other");
    assert_eq!(draft_after(text, &[]), text, "it was not sent");
    let withdrawn = Event::InterjectionWithdrawn { id, by: by() };
    assert_eq!(draft_after(text, &[queued, withdrawn]), text, "it was taken back");
}

/// Which of what is open takes letters, so that the first key after it that would decide asks: docs/KEYS.md says all but the
/// help and the whole of a call, whether or not any were typed.
#[test]
fn after_what_takes_letters_the_first_key_asks_and_after_the_rest_it_decides() {
    for (opens, asks) in [("d", true), ("e", true), ("T", true), ("+", true), ("X", true), ("v", false), ("?", false)] {
        let mut show = at_rest(with_diff(), SIZE, '3');
        show.letters(opens);
        assert_eq!(show.app.popups.len(), 1, "{opens}");
        rest(&mut show);
        show.press(KeyCode::Esc);
        rest(&mut show);
        show.letters("y");
        let frame = flat(&show.frame());
        assert_eq!(frame.contains("press y again, and it decides"), asks, "{opens}: {frame}");
        assert_eq!(commands(&show).len(), usize::from(!asks), "{opens}");
    }
    // So does one after letters for a dialog that did not open.
    let mut show = at_rest(with_diff(), SIZE, '3');
    show.press(KeyCode::PageDown);
    show.letters("d");
    assert!(show.app.popups.is_empty());
    rest(&mut show);
    show.letters("y");
    assert!(flat(&show.frame()).contains("press y again, and it decides"), "{}", show.frame());
}
