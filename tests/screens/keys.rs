//! What the operator presses, and what must come of it: the Approvals cases of the operator's list, and the ladder of
//! Ctrl-C. The clock is handed in.

use crossterm::event::KeyCode;
use crossterm::event::KeyEvent;
use crossterm::event::KeyModifiers;
use tiller::domain::approval::Decision;
use tiller::domain::approval::Resolution;
use tiller::domain::budget::Axis;
use tiller::domain::budget::Limit;
use tiller::domain::command::Cancel;
use tiller::domain::command::Command;
use tiller::domain::command::Pause;
use tiller::domain::command::PlanEdit;
use tiller::domain::command::Policy;
use tiller::domain::command::Refusal;
use tiller::domain::event::Event;
use tiller::domain::event::Finding;
use tiller::domain::id::CallId;
use tiller::domain::id::ClientId;
use tiller::domain::id::InterjectionId;
use tiller::domain::id::Seq;
use tiller::domain::plan::TodoId;
use tiller::domain::plan::TodoStatus;
use tiller::domain::status::Course;
use tiller::domain::status::Finish;
use tiller::domain::status::ParkReason;
use tiller::domain::status::Status;
use tiller::domain::tool::EffectClass;
use tiller::domain::trust::Trust;
use tiller::tui::app::App;
use tiller::tui::app::Focus;
use tiller::tui::app::Moment;
use tiller::tui::app::Msg;
use tiller::tui::app::Options;
use tiller::tui::app::Out;
use tiller::tui::app::Ticket;
use tiller::tui::lineage::Doubt;
use tiller::tui::lineage::Step;
use tiller::tui::lineage::StepKind;
use tiller::tui::notice::Lasts;
use tiller::tui::notice::Notice;
use tiller::tui::theme::Role;

use crate::screens::story::Show;
use crate::screens::story::Story;
use crate::screens::story::commands;
use crate::screens::story::flat;
use crate::screens::story::pursuing;

const SIZE: (u16, u16) = (80, 24);

fn with_diff() -> (Story, CallId) {
    let mut story = pursuing();
    let call = story.diff_waits();
    story.park(ParkReason::Approval);
    (story, call)
}

/// A screen with the first waiting call focused and drawn at 0 ms.
fn focused(story: Story) -> Show {
    let mut show = Show::of(story, SIZE, 0);
    show.frame_at(0);
    show.chord(KeyCode::Char('g'), KeyModifiers::CONTROL);
    show.frame_at(0);
    show
}

fn decided(show: &Show, call: CallId, decision: Decision) -> Command {
    let digest = show.story.run.calls[&call].digest().unwrap();
    Command::Decide { call, digest, decision }
}

#[test]
fn typing_goes_on_when_a_call_comes_to_wait() {
    let mut show = Show::of(pursuing(), SIZE, 0);
    show.letters("please ru");
    show.frame_at(100);
    show.next(|story| {
        story.diff_waits();
        story.park(ParkReason::Approval);
    });
    show.letters("n y");
    show.press(KeyCode::Enter);
    assert_eq!(commands(&show), [Command::Interject { text: "please run y".to_string(), policy: Policy::Next }]);
    assert_eq!(show.app.waiting.len(), 1);
}

#[test]
fn a_key_counts_after_half_a_second_of_rest() {
    let (story, call) = with_diff();
    let mut show = focused(story);
    show.ms = 100;
    show.letters("y");
    assert_eq!(commands(&show), []);
    assert!(show.frame().contains("came too early"));
    let mut asked = focused(with_diff().0);
    asked.ms = 100;
    asked.letters("yT");
    assert!(!asked.frame().contains("came too early"), "it is about another key than those of the dialog");
    show.frame_at(600);
    show.ms = 700;
    show.letters("y");
    assert_eq!(commands(&show), [decided(&show, call, Decision::AllowOnce)]);
}

#[test]
fn keys_pressed_before_the_first_frame_decide_nothing() {
    let (story, _) = with_diff();
    let mut show = Show::of(story, SIZE, 0);
    show.chord(KeyCode::Char('g'), KeyModifiers::CONTROL);
    show.letters("yanyd");
    show.ms = 5_000;
    show.letters("y");
    assert_eq!(commands(&show), []);
}

#[test]
fn neither_enter_nor_space_nor_digits_nor_pastes_nor_held_keys_decide() {
    let (story, _) = with_diff();
    let mut show = focused(story);
    show.frame_at(600);
    show.press(KeyCode::Enter);
    show.letters(" 1");
    show.frame_at(1_200);
    show.tell(Msg::Paste("y\ny".to_string()));
    show.frame_at(1_800);
    show.frame_at(2_400);
    show.hold(KeyCode::Char('y'));
    assert_eq!(commands(&show), []);
}

#[test]
fn one_press_decides_about_one_call_and_the_next_must_rest_again() {
    let mut story = pursuing();
    let first = story.diff_waits();
    let second = story.command_waits("cargo test");
    story.park(ParkReason::Approval);
    let mut show = focused(story);
    show.frame_at(600);
    show.letters("yy");
    assert_eq!(commands(&show), [decided(&show, first, Decision::AllowOnce)]);
    let decision = decided(&show, first, Decision::AllowOnce);
    show.next(|story| {
        let Command::Decide { call, decision, .. } = decision else { return };
        story.decide(call, decision, tiller::domain::approval::By::Operator(tiller::domain::id::ClientId("s".into())));
    });
    show.frame_at(700);
    show.frame_at(1_300);
    show.letters("y");
    assert_eq!(commands(&show).len(), 1, "a held key repeats after 660 ms at most");
    show.frame_at(2_100);
    show.frame_at(2_101);
    show.letters("n");
    assert_eq!(commands(&show)[1], decided(&show, second, Decision::Deny(String::new())));
}

#[test]
fn a_call_that_comes_to_wait_does_not_replace_the_one_in_hand() {
    let (story, call) = with_diff();
    let mut show = focused(story);
    show.frame_at(600);
    show.next(|story| {
        story.command_waits("rm -rf build");
    });
    show.letters("y");
    assert_eq!(commands(&show), [decided(&show, call, Decision::AllowOnce)]);
}

#[test]
fn words_go_with_a_denial() {
    let (story, call) = with_diff();
    let mut show = focused(story);
    show.frame_at(600);
    show.letters("duse rg not grep");
    show.press(KeyCode::Enter);
    assert_eq!(commands(&show), [decided(&show, call, Decision::Deny("use rg not grep".to_string()))]);
}

#[test]
fn what_was_not_seen_to_its_end_is_not_allowed() {
    let mut story = pursuing();
    let lines: Vec<String> = (1..=400).map(|line| format!("echo {line}")).collect();
    let call = story.command_waits(&lines.join("\n"));
    story.park(ParkReason::Approval);
    let mut show = focused(story);
    show.frame_at(600);
    show.letters("a");
    assert!(show.frame().contains("the end of the call was not on the screen yet"));
    show.letters("v");
    assert!(!show.frame_at(700).contains("echo 400"));
    show.letters("g");
    for page in 0..40 {
        show.press(KeyCode::PageDown);
        show.frame_at(800 + page);
    }
    // An end that only flew by was not seen.
    show.press(KeyCode::Esc);
    show.frame_at(1_500);
    show.frame_at(1_501);
    show.letters("a");
    assert_eq!(commands(&show), []);
    show.letters("vG");
    show.frame_at(1_600);
    show.frame_at(2_101);
    show.press(KeyCode::Esc);
    show.frame_at(2_102);
    show.frame_at(2_700);
    show.frame_at(2_701);
    show.letters("a");
    assert_eq!(commands(&show), [decided(&show, call, Decision::AllowRun)]);
}

#[test]
fn hostile_arguments_stay_in_their_lines() {
    let hostile = format!("ls \u{202e}\u{200b}{}\u{1b}[2J\r\nsecond", "\t".repeat(50));
    let mut story = pursuing();
    story.command_waits(&hostile);
    story.park(ParkReason::Approval);
    let mut calm = pursuing();
    calm.command_waits(&"x".repeat(hostile.len()));
    calm.park(ParkReason::Approval);
    let text = focused(story).frame_at(10);
    for mark in ["⟦U+202E⟧", "⟦U+200B⟧", "⟦TAB⟧", "⟦ESC⟧[2J⟦CR⟧"] {
        assert!(text.contains(mark), "{mark} in\n{text}");
    }
    let body = text.split_once("1 │").unwrap().1;
    let order = ["⟦U+202E⟧", "⟦TAB⟧", "⟦ESC⟧", "second"].map(|part| body.find(part));
    assert!(order.is_sorted(), "{order:?}");
    let outside = |text: &str| text.lines().take(4).map(str::to_string).collect::<Vec<_>>();
    assert_eq!(outside(&text), outside(&focused(calm).frame_at(10)));
}

#[test]
fn unknown_outcomes_have_four_answers() {
    let answers = [
        ("u", Resolution::NotHappened),
        ("r", Resolution::RunAgain),
        ("s", Resolution::Skip),
        ("hit was pushed", Resolution::Happened("it was pushed".to_string())),
    ];
    for (keys, resolution) in answers {
        let mut story = pursuing();
        let call = story.command_waits("git push");
        let by = tiller::domain::approval::By::Operator(tiller::domain::id::ClientId("s".to_string()));
        story.decide(call, Decision::AllowOnce, by);
        story.start(call);
        story.event(Event::Recovered { findings: vec![Finding::ToolCallLost(call)] });
        story.park(ParkReason::OutcomeUnknown);
        let mut show = focused(story);
        show.letters("r");
        show.frame_at(10);
        show.frame_at(700);
        show.letters(keys);
        show.press(KeyCode::Enter);
        assert_eq!(commands(&show), [Command::Resolve { call, resolution }]);
    }
}

#[test]
fn a_question_is_answered_by_what_was_begun_as_an_answer() {
    let mut show = Show::of(pursuing(), SIZE, 0);
    show.letters("by the way");
    show.next(|story| {
        story.call("ask_operator", r#"{"question":"which?"}"#, EffectClass::Control);
        story.park(ParkReason::Question);
    });
    show.press(KeyCode::Enter);
    show.letters("the first");
    show.press(KeyCode::Enter);
    let call = show.app.waiting[0].call;
    let answer = Command::Answer { call, text: "the first".to_string() };
    assert_eq!(commands(&show), [Command::Interject { text: "by the way".to_string(), policy: Policy::Next }, answer]);
}

#[test]
fn a_refused_word_comes_back_into_the_composer() {
    let mut show = Show::of(pursuing(), SIZE, 0);
    show.letters("hello");
    show.press(KeyCode::Enter);
    assert!(show.app.draft().is_empty());
    show.tell(Msg::Refused(Ticket(1), Refusal::TooMany));
    assert_eq!(show.app.draft(), "hello");
    assert!(show.frame().contains("nothing was sent"));
}

#[test]
fn a_notice_goes_when_it_is_not_true_any_more() {
    let mut story = pursuing();
    story.park(ParkReason::Paused);
    let mut show = Show::of(story, SIZE, 0);
    show.press(KeyCode::Tab);
    let refused = |show: &mut Show, ticket| {
        show.letters("P");
        show.tell(Msg::Refused(Ticket(ticket), Refusal::NotRunning(show.app.run.status.clone())));
        assert!(show.frame().contains("the run is not running"));
    };
    refused(&mut show, 1);
    show.letters("R");
    assert!(!show.frame().contains("the run is not running"), "a newer command says otherwise");
    refused(&mut show, 3);
    show.next(|story| story.event(Event::StatusChanged { status: Status::Running, by: None }));
    assert!(!show.frame().contains("the run is not running"), "the status changed");
}

#[test]
fn control_c_clears_then_pauses_then_stops() {
    let mut show = Show::of(pursuing(), SIZE, 0);
    let stop = |show: &mut Show| show.chord(KeyCode::Char('c'), KeyModifiers::CONTROL);
    show.letters("draft");
    stop(&mut show);
    assert_eq!((show.app.draft().as_str(), commands(&show).len()), ("", 0));
    stop(&mut show);
    stop(&mut show);
    assert_eq!(commands(&show), [Command::Pause(Pause::AfterTool), Command::Pause(Pause::Now)]);
}

#[test]
fn control_c_twice_leaves_a_parked_run() {
    let (story, _) = with_diff();
    let mut show = Show::of(story, SIZE, 0);
    let stop = |show: &mut Show, ms| {
        show.ms = ms;
        show.chord(KeyCode::Char('c'), KeyModifiers::CONTROL);
    };
    stop(&mut show, 0);
    stop(&mut show, 1_500);
    assert_eq!(show.outs, []);
    stop(&mut show, 2_000);
    assert_eq!(show.outs, [Out::Leave]);
}

#[test]
fn control_d_leaves_only_with_an_empty_composer() {
    let mut show = Show::of(pursuing(), SIZE, 0);
    assert!(show.frame().contains("^D leave"), "{}", show.frame());
    show.letters("x");
    assert!(!show.frame().contains("^D leave"), "{}", show.frame());
    show.chord(KeyCode::Char('d'), KeyModifiers::CONTROL);
    assert_eq!(show.outs, []);
    let why = "^D leaves only while nothing is written here: ^C clears it, then ^D leaves";
    assert!(text_in(&show.frame(), ' ').contains(why), "{}", show.frame());
    // In front of a letter it takes that away, and needs no word.
    show.frame_at(60_000);
    show.press(KeyCode::Left);
    show.chord(KeyCode::Char('d'), KeyModifiers::CONTROL);
    assert_eq!((show.outs.len(), show.app.composer.text().as_str()), (0, ""));
    assert!(!show.frame().contains("leaves only"), "{}", show.frame());
    show.letters("y");
    show.press(KeyCode::Backspace);
    show.chord(KeyCode::Char('d'), KeyModifiers::CONTROL);
    assert_eq!(show.outs, [Out::Leave]);
}

#[test]
fn raising_the_limit_a_run_is_parked_for_resumes_it() {
    let mut story = pursuing();
    story.park(ParkReason::Budget(Axis::Cost));
    let mut show = Show::of(story, SIZE, 0);
    show.press(KeyCode::Tab);
    show.letters("+");
    show.press(KeyCode::Enter);
    let raise = Command::Raise { axis: Axis::Cost, limit: Limit::At(10_000_000) };
    assert_eq!(commands(&show), std::slice::from_ref(&raise));
    show.tell(Msg::Accepted(Ticket(1), Seq(999)));
    assert_eq!(commands(&show), [raise, Command::Resume]);
}

#[test]
fn the_plan_is_changed_in_words() {
    let mut show = Show::of(pursuing(), SIZE, 0);
    show.chord(KeyCode::Char('1'), KeyModifiers::ALT);
    show.letters("e");
    let drawn = show.frame();
    assert!(drawn.contains("Change the plan") && drawn.contains("t1  "), "{drawn}");
    show.letters("done");
    show.press(KeyCode::Enter);
    assert!(commands(&show).is_empty(), "no such change: the words stay");
    show.letters(" t1");
    show.press(KeyCode::Enter);
    let mark = PlanEdit::Mark { id: TodoId("t1".to_string()), status: TodoStatus::Done, note: String::new() };
    assert_eq!(commands(&show), [Command::EditPlan(mark)]);
}

#[test]
fn what_is_typed_replaces_the_limit_that_is_suggested() {
    let limit_after = |codes: &[KeyCode]| {
        let mut show = Show::of(pursuing(), SIZE, 0);
        show.press(KeyCode::Tab);
        show.letters("+");
        // From cost, the last limit, up to iterations, whose suggestion is 64.
        for _ in 0..4 {
            show.press(KeyCode::Up);
        }
        assert!(show.frame().contains("new limit › 64"));
        for code in codes {
            show.press(*code);
        }
        show.press(KeyCode::Enter);
        commands(&show)
    };
    let raise = |limit| [Command::Raise { axis: Axis::Loops, limit: Limit::At(limit) }];
    assert_eq!(limit_after(&[KeyCode::Char('4'), KeyCode::Char('0')]), raise(40));
    assert_eq!(limit_after(&[]), raise(64));
    assert_eq!(limit_after(&[KeyCode::Backspace, KeyCode::Char('5')]), raise(65));
    assert_eq!(limit_after(&[KeyCode::Home, KeyCode::Char('1')]), raise(164));
}

#[test]
fn control_u_clears_the_line_to_its_start() {
    let mut show = Show::of(pursuing(), SIZE, 0);
    let clear = |show: &mut Show| show.chord(KeyCode::Char('u'), KeyModifiers::CONTROL);
    show.letters("one");
    show.chord(KeyCode::Char('j'), KeyModifiers::CONTROL);
    show.letters("two three");
    show.press(KeyCode::Left);
    clear(&mut show);
    assert_eq!(show.app.draft(), "one\ne");
    show.chord(KeyCode::Char('c'), KeyModifiers::CONTROL);
    show.press(KeyCode::Tab);
    show.letters("+");
    clear(&mut show);
    show.letters("9");
    show.press(KeyCode::Enter);
    assert_eq!(commands(&show), [Command::Raise { axis: Axis::Cost, limit: Limit::At(9_000_000) }]);
}

#[test]
fn the_footer_of_a_pane_begins_with_what_fits_the_state() {
    let footer = |status: Status| {
        let mut story = pursuing();
        story.event(Event::StatusChanged { status, by: None });
        let mut show = Show::of(story, SIZE, 0);
        show.chord(KeyCode::Char('2'), KeyModifiers::ALT);
        show.frame().lines().last().unwrap().to_string()
    };
    let checks = [
        (Status::Running, " ^C pause  v whole  F1 help  Tab panes  ^D leave  + raise  X cancel  T trust"),
        (Status::Parked(ParkReason::Paused), " R resume  v whole  F1 help  Tab panes  ^D leave  + raise"),
        (Status::Parked(ParkReason::Budget(Axis::Cost)), " + raise  R resume  v whole  F1 help  Tab panes"),
        (Status::Cancelled, " R resume  v whole  F1 help  Tab panes  ^D leave  F6 runs  Esc back"),
        (Status::Completed(Finish::Verified), " v whole  F1 help  Tab panes  ^D leave  F6 runs  Esc back"),
    ];
    for (status, start) in checks {
        let text = footer(status.clone());
        assert!(text.starts_with(start), "{status:?}: {text}");
        assert!(!text.contains("zoom"), "{text}");
        assert_eq!(text.contains("pause"), status == Status::Running, "{text}");
    }
}

/// A run that ended so, with the activity focused.
fn ended(status: Status) -> Show {
    let mut story = pursuing();
    story.close(Course::Continue, &[]);
    story.event(Event::StatusChanged { status, by: None });
    let mut show = Show::of(story, (100, 60), 0);
    show.chord(KeyCode::Char('2'), KeyModifiers::ALT);
    show.frame_at(600);
    show
}

#[test]
fn a_key_that_can_do_nothing_says_why_and_is_not_offered() {
    let ways = "the run has ended (cancelled); in a pane, R takes it up again, B goes back, F branches off";
    let done = "the run has ended (completed: verified); in a pane, F branches off from it";
    let checks = [
        (Status::Cancelled, "PI+XTN", ways),
        (Status::Cancelled, "YW", ways),
        (Status::Completed(Finish::Verified), "PIR+XTNYW", done),
        (Status::Completed(Finish::Verified), "B", "a completed run is never opened again; branch off from it"),
        (Status::Parked(ParkReason::Paused), "P", "the run is not running: it is parked: paused"),
        (Status::Parked(ParkReason::Paused), "Y", "no check asks for your word"),
        (Status::Parked(ParkReason::Paused), "N", "the run is parked: paused, not stalled; nothing was granted"),
    ];
    for (status, keys, why) in checks {
        for key in keys.chars() {
            let mut show = ended(status.clone());
            show.letters(&key.to_string());
            let text = show.frame();
            assert!(text.contains(why), "{key}: {text}");
            assert_eq!((commands(&show), show.app.popups.len()), (Vec::new(), 0), "{key}");
            show.press(KeyCode::F(1));
            let help = show.frame();
            assert!(!help.contains(&format!("\u{2503}   {key}  ")), "{key}: {help}");
        }
    }
    // What is written stays where it is.
    let mut show = ended(Status::Cancelled);
    show.press(KeyCode::Esc);
    show.letters("go on");
    show.press(KeyCode::Enter);
    assert_eq!((commands(&show), show.app.composer.text()), (Vec::new(), "go on".to_string()));
    assert!(show.frame().contains(ways));
}

#[test]
fn cancelling_asks_and_needs_a_rest() {
    let mut show = Show::of(pursuing(), SIZE, 0);
    show.press(KeyCode::Tab);
    show.letters("XC");
    assert_eq!(commands(&show), []);
    show.frame_at(600);
    show.letters("C");
    assert_eq!(commands(&show), [Command::Cancel(Cancel::Graceful)]);
}

#[test]
fn an_idle_screen_rests_and_a_running_one_counts_seconds() {
    let (story, _) = with_diff();
    let mut show = Show::of(story, SIZE, 0);
    show.frame_at(1);
    assert_eq!(show.app.wakes_in(), 59_999);
    let mut show = Show::of(pursuing(), SIZE, 0);
    show.frame_at(1);
    assert!(show.app.wakes_in() <= 1_000);
}

#[test]
fn words_have_a_policy_and_are_taken_back() {
    let mut show = Show::of(pursuing(), SIZE, 0);
    show.letters("not like this");
    for expected in [" now › ", " interrupt › ", " at the end › ", " › ", " now › ", " interrupt › "] {
        show.press(KeyCode::F(2));
        assert!(show.frame().contains(expected), "{expected}\n{}", show.frame());
    }
    show.press(KeyCode::Enter);
    let id = InterjectionId(1);
    let text = "not like this".to_string();
    assert_eq!(commands(&show), [Command::Interject { text: text.clone(), policy: Policy::Interrupt }]);
    show.next(|story| {
        let by = ClientId("screen".to_string());
        story.event(Event::InterjectionQueued { id, text, by, policy: Policy::AfterDone });
    });
    assert!(show.frame().contains("queued i1: at its end"), "{}", show.frame());
    show.outs.clear();
    show.press(KeyCode::F(3));
    show.press(KeyCode::F(3));
    assert_eq!(commands(&show), [Command::Withdraw(id)], "once is enough");
    show.next(|story| {
        story.event(Event::InterjectionWithdrawn { id, by: ClientId("screen".to_string()) });
    });
    assert!(show.frame().contains("you took i1 back"), "{}", show.frame());
    show.letters("more");
    show.press(KeyCode::Enter);
    let more = Command::Interject { text: "more".to_string(), policy: Policy::Next };
    assert_eq!(commands(&show).last(), Some(&more), "the choice is for one message");
}

#[test]
fn one_key_queues_words_and_resumes_a_parked_run() {
    let mut show = Show::of(pursuing(), SIZE, 0);
    show.next(|story| story.park(ParkReason::Paused));
    show.letters("go on with b");
    assert!(show.frame().contains("F5 send, resume"), "{}", show.frame());
    show.press(KeyCode::F(5));
    let Some(Out::Submit(ticket, said)) = show.outs.first().cloned() else { panic!("nothing was sent") };
    assert_eq!(said, Command::Interject { text: "go on with b".to_string(), policy: Policy::Next });
    show.outs.clear();
    let seq = show.story.run.seq.next();
    show.tell(Msg::Accepted(ticket, seq));
    assert_eq!(commands(&show), [Command::Resume]);
}

#[test]
fn a_parked_run_goes_on_with_what_was_queued() {
    let mut show = Show::of(pursuing(), SIZE, 0);
    show.next(|story| story.park(ParkReason::Paused));
    show.press(KeyCode::F(5));
    assert_eq!(commands(&show), [], "nothing was written");
    let mut show = Show::of(pursuing(), SIZE, 0);
    show.next(|story| story.park(ParkReason::Paused));
    show.next(|story| {
        let (text, policy, by) = ("do b".to_string(), Policy::Next, ClientId("screen".to_string()));
        story.event(Event::InterjectionQueued { id: InterjectionId(1), text, policy, by });
    });
    assert!(show.frame().contains("F5 resumes, and the agent is told what you wrote"), "{}", show.frame());
    show.press(KeyCode::F(5));
    assert_eq!(commands(&show), [Command::Resume]);
}

#[test]
fn leave_for_the_tool_counts_like_leave_for_the_call() {
    let (story, call) = with_diff();
    let mut show = focused(story);
    show.letters("t");
    assert_eq!(commands(&show), [], "too early");
    show.frame_at(600);
    show.frame_at(1_200);
    show.letters("t");
    assert_eq!(commands(&show), [decided(&show, call, Decision::AllowTool)]);
}

#[test]
fn leave_that_a_call_can_not_be_given_is_not_offered() {
    let waiting = |wait: fn(&mut Story) -> CallId| {
        let mut story = pursuing();
        wait(&mut story);
        story.park(ParkReason::Approval);
        let mut show = focused(story);
        show.frame_at(600);
        show.frame_at(1_200);
        show
    };
    let (mut file, mut shell) = (waiting(Story::diff_waits), waiting(|story| story.command_waits("cargo test")));
    assert!(file.frame().contains("[t] tool") && file.frame().contains("[y] once"), "{}", file.frame());
    assert!(!shell.frame().contains(" tool ") && shell.frame().contains("[y] once"), "{}", shell.frame());
    shell.letters("t");
    assert_eq!(commands(&shell), []);
    assert!(
        text_in(&shell.frame(), ' ').contains("allowed exactly as it is, by a standing rule, or not at all"),
        "{}",
        shell.frame()
    );
    shell.press(KeyCode::F(1));
    assert!(!shell.frame().contains("every later one of its tool"), "{}", shell.frame());
}

/// What stands in the rows of a frame between the bars of a box, as one row.
fn text_in(frame: &str, bar: char) -> String {
    let inner = |line: &'_ str| match (line.find(bar), line.rfind(bar)) {
        (Some(first), Some(last)) if bar != ' ' && first < last => line[first + bar.len_utf8()..last].to_string(),
        _ if bar == ' ' => line.to_string(),
        _ => String::new(),
    };
    let rows: Vec<String> = frame.lines().map(inner).collect();
    rows.join(" ").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What a dialog says of its keys, and what is said while anything is open or has the keys, is never cut off.
#[test]
fn what_is_said_can_be_read_whole() {
    let said = "the run can't go on yet: the folder of it is not here, so nothing was recorded; put that folder there, with \
                what it works on in it, and say it again";
    for size in [(80, 24), (70, 20)] {
        for keys in ["", "d", "v", "?", "T", "B", "F", "X", "+"] {
            let mut show = focused(with_diff().0);
            show.resize(size.0, size.1);
            show.frame_at(600);
            show.frame_at(1_200);
            show.letters(keys);
            assert_eq!(show.app.popups.len(), keys.len(), "{keys}");
            let before = show.frame();
            let cut = before.lines().filter(|line| line.contains("…\u{2503}") || line.contains("… \u{2503}")).count();
            assert!(keys == "v" || cut == 0, "{keys}: {before}");
            show.app.notice =
                Some(Notice { text: said.to_string(), role: Role::Warning, until_ms: 99_000, lasts: Lasts::AWhile });
            let frame = show.frame();
            let bar = if matches!(keys, "d" | "T" | "B" | "F" | "+") { '\u{2503}' } else { ' ' };
            assert!(text_in(&frame, bar).contains(said), "{keys} {size:?}:\n{frame}");
        }
    }
}

/// A room that is entered again after a look at what a step would not undo has its keys where they were.
#[test]
fn a_dialog_gives_the_keys_back_to_where_they_were() {
    let step = Step { kind: StepKind::Back, iteration: 1 };
    let doubt = Some(Doubt { step, told: vec!["Nothing changed.".to_string()] });
    let options = Options { doubt, focus: Focus::Plan, ..Options::default() };
    let story = pursuing();
    let mut app = App::new(story.run.clone(), Moment { ms: 0, at: story.run.at }, options);
    app.update(Msg::Key(KeyCode::Esc.into()), Moment { ms: 600, at: story.run.at });
    assert_eq!((app.popups.len(), app.focus), (0, Focus::Plan));
}

#[test]
fn the_list_is_what_was_read_and_no_more() {
    let mut story = pursuing();
    let first = story.diff_waits();
    story.command_waits("cargo test");
    story.park(ParkReason::Approval);
    let mut show = focused(story);
    show.frame_at(600);
    show.ms = 700;
    show.letters("A");
    let digest = show.app.run.calls[&first].digest().unwrap();
    assert_eq!(commands(&show), [Command::AllowAll { calls: vec![(first, digest)] }]);
    assert!(show.frame().contains("1 allowed: c2; c3 has not been read to its end"));
}

#[test]
fn arguments_are_changed_in_a_dialog_that_says_what_does_not_fit() {
    let (story, call) = with_diff();
    let mut show = focused(story);
    show.frame_at(600);
    show.ms = 700;
    show.letters("e");
    assert!(show.frame().contains("and allow it"), "{}", show.frame());
    show.chord(KeyCode::Char('u'), KeyModifiers::CONTROL);
    show.letters("{\"path\":");
    show.press(KeyCode::Enter);
    assert_eq!(commands(&show), []);
    assert!(show.frame().contains("the arguments are not valid JSON"), "{}", show.frame());
    show.letters("\"b\",\"content\":\"c\"}");
    show.press(KeyCode::Enter);
    let arguments = "{\"path\":\"b\",\"content\":\"c\"}".to_string();
    assert_eq!(commands(&show), [decided(&show, call, Decision::Edit(arguments))]);
}

/// What a terminal pastes without marking it, or a program types, is sent by no line break of its own.
#[test]
fn enter_that_comes_with_other_keys_sends_nothing() {
    for key in ["e", "d"] {
        let mut show = focused(with_diff().0);
        show.frame_at(600);
        show.ms = 700;
        show.letters(key);
        show.ms += 600;
        show.burst("{\"path\":\"b\",\"content\":\"c\"}");
        show.tell(Msg::Key(KeyEvent::from(KeyCode::Enter)));
        assert_eq!((commands(&show).len(), show.app.popups.len()), (0, 1), "{key}");
        let told = "Enter was dropped: it came together with other keys, as in pasted text; press it again";
        assert!(flat(&show.frame()).contains(told), "{key}: {}", show.frame());
        // By hand it counts.
        show.press(KeyCode::Enter);
        assert!(!flat(&show.frame()).contains("it came together"), "{key}");
    }
}

/// Allowing is for what was seen: arguments that have no room whole are asked about, once for what is written.
#[test]
fn arguments_that_had_no_room_whole_are_asked_about_once() {
    let mut show = focused(with_diff().0);
    show.frame_at(600);
    show.ms = 700;
    show.letters("e");
    show.chord(KeyCode::Char('u'), KeyModifiers::CONTROL);
    let text = format!("{{\"path\":\"b\",\"content\":\"{}\"", "long ".repeat(900));
    show.tell(Msg::Paste(text.clone()));
    for written in ["}", " "] {
        show.letters(written);
        show.frame();
        show.press(KeyCode::Enter);
        assert_eq!(commands(&show), []);
        assert!(flat(&show.frame()).contains("rows of it had no room on the screen"), "{}", show.frame());
    }
    show.press(KeyCode::Enter);
    assert_eq!(commands(&show).len(), 1);
}

#[test]
fn trust_is_set_by_a_whole_word() {
    let mut show = Show::of(pursuing(), SIZE, 0);
    show.chord(KeyCode::Char('2'), KeyModifiers::ALT);
    show.letters("T");
    assert!(show.frame().contains("full_trust: you are asked only about"), "{}", show.frame());
    show.letters("full");
    show.press(KeyCode::Enter);
    assert_eq!(commands(&show), []);
    show.letters("_trust");
    show.press(KeyCode::Enter);
    assert_eq!(commands(&show), [Command::SetTrust(Trust::FullTrust)]);
}

#[test]
fn a_pause_that_is_pending_is_said_until_it_comes() {
    let mut show = Show::of(pursuing(), SIZE, 0);
    show.chord(KeyCode::Char('2'), KeyModifiers::ALT);
    show.letters("I");
    assert_eq!(commands(&show), [Command::Pause(Pause::AfterIteration)]);
    assert!(show.frame().contains("pausing at the end of this iteration"), "{}", show.frame());
}

/// Whoever pauses is told the key that goes on, as it works where they are.
#[test]
fn a_pause_names_the_key_that_goes_on() {
    let pauses: [(char, KeyCode, KeyModifiers, &str); 4] = [
        ('2', KeyCode::Char('P'), KeyModifiers::NONE, "pausing after the running call; when it is parked, R goes on"),
        (
            '2',
            KeyCode::Char('I'),
            KeyModifiers::NONE,
            "pausing at the end of this iteration; when it is parked, R goes on",
        ),
        (
            '2',
            KeyCode::Char('c'),
            KeyModifiers::CONTROL,
            "pausing after the running call; once more stops it now; when it is parked, R goes on",
        ),
        (
            ' ',
            KeyCode::Char('c'),
            KeyModifiers::CONTROL,
            "pausing after the running call; once more stops it now; when it is parked, in a pane (Tab) R goes on",
        ),
    ];
    for (pane, key, modifiers, told) in pauses {
        let mut show = Show::of(pursuing(), (120, 36), 0);
        show.frame_at(0);
        if pane != ' ' {
            show.chord(KeyCode::Char(pane), KeyModifiers::ALT);
        }
        show.frame_at(2_000);
        show.chord(key, modifiers);
        assert_eq!(commands(&show).len(), 1, "{told}");
        let frame = show.frame();
        assert!(frame.contains(told), "{told}\n{frame}");
    }
}
