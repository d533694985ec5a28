//! Screens: a journal in, text out. `INSTA_UPDATE=always cargo test --test screens` writes the snapshots anew; each
//! must then be read by a person.

use crate::screens::story::Show;
use crate::screens::story::Story;
use crate::screens::story::terms;
use crossterm::event::KeyCode;
use crossterm::event::KeyModifiers;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use tiller::domain::approval::By;
use tiller::domain::approval::Decision;
use tiller::domain::budget::Axis;
use tiller::domain::budget::Basis;
use tiller::domain::budget::Limit;
use tiller::domain::command::Policy;
use tiller::domain::event::ClaimVerdict;
use tiller::domain::event::Event;
use tiller::domain::event::Finding;
use tiller::domain::id::ClientId;
use tiller::domain::id::InterjectionId;
use tiller::domain::id::RunId;
use tiller::domain::id::Seq;
use tiller::domain::model::Delta;
use tiller::domain::model::DeltaSource;
use tiller::domain::model::FailureClass;
use tiller::domain::model::ModelFailure;
use tiller::domain::model::Received;
use tiller::domain::money::MicroUsd;
use tiller::domain::money::Usage;
use tiller::domain::plan::TodoStatus;
use tiller::domain::status::Course;
use tiller::domain::status::Detector;
use tiller::domain::status::Finish;
use tiller::domain::status::Fired;
use tiller::domain::status::ParkReason;
use tiller::domain::status::Phase;
use tiller::domain::status::Status;
use tiller::domain::summary::Listed;
use tiller::domain::summary::Summary;
use tiller::domain::time::Span;
use tiller::domain::time::Timestamp;
use tiller::domain::tool::EffectClass;
use tiller::domain::tool::OutcomeKind;
use tiller::tui::app::Moment;
use tiller::tui::app::Msg;
use tiller::tui::list::List;
use tiller::tui::list::ListOptions;
use tiller::tui::past::Reading;
use tiller::tui::view::runs;

const GOAL: &str = "fix the failing parser tests";

/// One state at every size that has a layout of its own.
pub fn check(name: &str, later_ms: u64, story: impl Fn() -> Story, prepare: impl Fn(&mut Show)) {
    for size in [(120, 36), (80, 24), (50, 12), (30, 8)] {
        let mut show = Show::of(story(), size, later_ms);
        show.frame();
        prepare(&mut show);
        let text = show.frame();
        insta::assert_snapshot!(format!("{name}_{}x{}", size.0, size.1), text);
    }
}

/// The same at the two sizes that matter most.
fn check_large(name: &str, later_ms: u64, story: impl Fn() -> Story, prepare: impl Fn(&mut Show)) {
    for size in [(120, 36), (80, 24)] {
        let mut show = Show::of(story(), size, later_ms);
        show.frame();
        prepare(&mut show);
        let text = show.frame();
        insta::assert_snapshot!(format!("{name}_{}x{}", size.0, size.1), text);
    }
}

pub fn nothing(_: &mut Show) {}

fn go_to_waiting(show: &mut Show) {
    show.chord(KeyCode::Char('g'), KeyModifiers::CONTROL);
    let ms = show.ms;
    show.frame_at(ms + 10);
    show.frame_at(ms + 600);
}

#[test]
fn fresh_start() {
    check("fresh_start", 0, || Story::new(terms(GOAL)), nothing);
}

#[test]
fn decompose_streaming() {
    let story = || {
        let mut terms = terms(GOAL);
        terms.rehearsal = true;
        let mut story = Story::started(terms);
        story.ask(110_000);
        story
    };
    check("decompose_streaming", 12_000, story, |show| {
        let call = show.app.run.model_call.unwrap().id.call;
        for text in [
            "I'll look at the failing tests first. ",
            "The tokenizer computes its offset before the byte order mark ",
            "is skipped, so every\nposition after it is three bytes off.",
        ] {
            show.tell(Msg::Delta(Delta { source: DeltaSource::Text(call), text: text.to_string() }));
        }
    });
}

/// S-61 on the screen: what came too fast to be shown is said while the reply streams, also when it was lost before the
/// first scrap that came; and its record has the whole of it.
#[test]
fn s_61_the_screen_says_what_it_lost_and_the_record_has_all_of_it() {
    let mut story = Story::started(terms(GOAL));
    story.ask(110_000);
    let mut show = Show::of(story, (120, 36), 1_000);
    let call = show.app.run.model_call.unwrap().id.call;
    show.tell(Msg::Lost(48_976));
    show.tell(Msg::Delta(Delta { source: DeltaSource::Text(call), text: "w48976 w48977 ".to_string() }));
    show.tell(Msg::Lost(24));
    show.tell(Msg::Delta(Delta { source: DeltaSource::Text(call), text: "w49002".to_string() }));
    let text = show.frame();
    assert!(text.contains("49000 scraps not shown · 20 B"), "{text}");
    show.next(|story| story.reply("w0 w1 and so on to w49999", 3_100, 240));
    let text = show.frame();
    assert!(!text.contains("not shown") && text.contains("w0 w1 and so on to w49999"), "{text}");
}

fn working() -> Story {
    working_on(|_| ())
}

/// A run at work, whose reply asks for a read and for what `calls` proposes.
fn working_on<T>(calls: impl Fn(&mut Story) -> T) -> Story {
    working_with(calls).0
}

fn working_with<T>(calls: impl Fn(&mut Story) -> T) -> (Story, T) {
    let mut story = Story::planned(terms(GOAL));
    story.ask(9_000);
    story.reply(
        "The offset is computed before the BOM is skipped; I'll move it. Afterwards every position after the mark is \
         right, and the three failing tests should pass.",
        6_200,
        310,
    );
    let read = story.propose_read("src/lexer.rs");
    let called = calls(&mut story);
    story.read(read, "1  use crate::token::Token;\n2\n3  pub struct Lexer<'a> {\n4      text: &'a str,\n5      pos: usize,\n6  }\n7\n8  impl Lexer<'_> {\n9      fn next(&mut self) {}\n");
    (story, called)
}

#[test]
fn waiting_for_a_diff() {
    let story = || {
        let mut story = working_on(Story::diff_waits);
        story.park(ParkReason::Approval);
        story
    };
    check("waiting_diff", 41_000, story, nothing);
    check("waiting_diff_focused", 41_000, story, go_to_waiting);
    check_large("waiting_diff_sent", 41_000, story, |show| {
        go_to_waiting(show);
        show.letters("y");
    });
}

#[test]
fn waiting_for_a_command() {
    let story = || {
        let mut story = working_on(|story| {
            story.command_waits(
                "cargo test --workspace 2>&1 |\n  tee target/c\u{430}t.log\ngit push origin \u{202e}main",
            )
        });
        story.park(ParkReason::Approval);
        story
    };
    check("waiting_command", 300_000, story, go_to_waiting);
}

#[test]
fn several_waiting() {
    let story = || {
        let mut story = working_on(|story| {
            story.diff_waits();
            story.wait(65_000);
            story.command_waits("cargo test -p lexer");
            story.command_waits("cargo clippy");
        });
        story.park(ParkReason::Approval);
        story
    };
    check("several_waiting", 5_000, story, |show| {
        go_to_waiting(show);
        show.letters("j");
    });
}

#[test]
fn unknown_outcome() {
    let story = || {
        let (mut story, call) = working_with(|story| story.command_waits("git push origin main"));
        story.decide(call, Decision::AllowOnce, By::Operator(ClientId("operator".to_string())));
        story.start(call);
        story.wait(4_000);
        story.event(Event::Recovered { findings: vec![Finding::ToolCallLost(call)] });
        story.park(ParkReason::OutcomeUnknown);
        story
    };
    check("unknown_outcome", 120_000, story, go_to_waiting);
}

#[test]
fn question() {
    let story = || {
        let mut story = working_on(|story| {
            story.call(
            "ask_operator",
            r#"{"question":"The suite has two tests that need the network. Shall I leave them out,\nor is there a proxy I may use?"}"#,
            EffectClass::Control,
        )
        });
        story.park(ParkReason::Question);
        story
    };
    check("question", 5_000, story, |show| show.letters("leave them out"));
}

#[test]
fn parked_for_its_budget() {
    let story = || {
        let mut story = working();
        story.event(Event::BudgetRaised {
            axis: Axis::Cost,
            limit: Limit::At(3_000),
            by: ClientId("operator".to_string()),
        });
        story.close(
            Course::Park(ParkReason::Budget(Axis::Cost)),
            &[Fired::Budget(Axis::Cost), Fired::Stalled(Detector::Repeat)],
        );
        story.park(ParkReason::Budget(Axis::Cost));
        story
    };
    check("parked_budget", 3_600_000, story, nothing);
    check_large("raise_dialog", 3_600_000, story, |show| {
        show.press(KeyCode::Tab);
        show.letters("+");
    });
}

#[test]
fn retry_countdown() {
    let story = || {
        let mut story = Story::planned(terms(GOAL));
        story.ask(9_000);
        story.wait(1_000);
        let call = story.run.model_call.unwrap().id.call;
        let failure = ModelFailure {
            class: FailureClass::Overloaded,
            message: "the provider is overloaded (529)".to_string(),
            retry_after: None,
            received: Received { accepted: true, usage: None, bytes: 40, text: "I'll start with".to_string() },
        };
        story.event(Event::ModelCallFailed { call, failure: Box::new(failure) });
        story.settle(Usage { input: 3_000, output: 20, ..Usage::default() }, Basis::Estimated);
        let at = story.run.at.plus(Span(8_000));
        story.event(Event::RetryScheduled { at, why: "overloaded".to_string() });
        story
    };
    check("retry", 3_000, story, nothing);
}

#[test]
fn stall_and_replan() {
    let story = || {
        let propose = |story: &mut Story| [0, 1, 2].map(|_| story.command_waits("cargo test -p lexer"));
        let (mut story, calls) = working_with(propose);
        for call in calls {
            story.decide(call, Decision::AllowOnce, By::Operator(ClientId("operator".to_string())));
            story.start(call);
            story.finish(call, OutcomeKind::Failed, "running 3 tests\ntest bom ... FAILED\ntest crlf ... ok\ntest tabs ... ok\n\nfailures:\n    bom\n\ntest result: FAILED. 2 passed; 1 failed\nexit status 101", 3_100);
        }
        let diagnosis =
            "`shell cargo test -p lexer` gave the same result three times and nothing was changed in between";
        story.event(Event::StallDetected { detector: Detector::Repeat, diagnosis: diagnosis.to_string() });
        story.close(Course::Replan, &[Fired::Stalled(Detector::Repeat)]);
        story.iteration(Phase::Replan);
        story.ask(9_000);
        story
    };
    check_large("stall", 4_000, story, nothing);
}

fn finished() -> Story {
    let mut story = working();
    let call = story.call(
        "finish",
        r#"{"summary":"The offset is right now and the three tests pass."}"#,
        EffectClass::Control,
    );
    story.plan(&[("Reproduce the failure", TodoStatus::Done), ("Fix the tokenizer offset", TodoStatus::Done)]);
    let summary = "The offset is right now and the three tests pass.".to_string();
    story.event(Event::DoneClaimed { call: Some(call), summary });
    story.event(Event::CheckStarted { index: 0 });
    story
}

#[test]
fn a_check_runs() {
    check_large("check_runs", 7_000, finished, nothing);
}

#[test]
fn verified_end() {
    let story = || {
        let mut story = finished();
        story.wait(9_000);
        story.event(Event::AcceptanceChecked { index: 0, passed: true, detail: String::new() });
        story.event(Event::ClaimJudged { verdict: ClaimVerdict::Verified, text: "all checks passed".to_string() });
        let call = *story.run.iteration.calls.last().unwrap();
        story.finish(call, OutcomeKind::Done, "verified", 0);
        story.close(Course::Complete(Finish::Verified), &[Fired::Finish(Finish::Verified), Fired::Budget(Axis::Loops)]);
        story.event(Event::StatusChanged { status: Status::Completed(Finish::Verified), by: None });
        story
    };
    check("verified_end", 0, story, nothing);
}

#[test]
fn a_screen_that_comes_late_shows_what_went_by_once_it_is_read() {
    let size = (100, 60);
    let mut early = Show::of(finished(), size, 90_000);
    let mut late = Show::late(finished(), size, 90_000);
    let first = late.frame();
    assert_ne!(first, early.frame());
    let mut reading = Reading::new(&late.story.run.id);
    late.story.records.chunks(5).for_each(|page| reading.take(page));
    let past = reading.end().unwrap_or_else(|_| panic!("nothing is gone back to"));
    late.tell(Msg::Past(Box::new(past)));
    assert_eq!(late.frame(), early.frame());
}

#[test]
fn what_is_said_is_sent_and_then_queued() {
    check_large("said", 2_000, working, |show| {
        show.letters("also update the README");
        show.press(KeyCode::Enter);
        show.next(|story| {
            let text = "and keep the old name".to_string();
            story.event(Event::InterjectionQueued {
                id: InterjectionId(1),
                text,
                by: ClientId("operator".to_string()),
                policy: Policy::Next,
            });
        });
    });
}

#[test]
fn full_view() {
    let story = || {
        let mut story = working_on(Story::diff_waits);
        story.park(ParkReason::Approval);
        story
    };
    check_large("full_view", 41_000, story, |show| {
        go_to_waiting(show);
        show.letters("v");
    });
    check_large("full_view_of_an_iteration", 41_000, story, |show| {
        show.chord(KeyCode::Char('2'), KeyModifiers::ALT);
        show.letters("v");
    });
}

#[test]
fn help_and_dialogs() {
    check_large("help", 0, working, |show| {
        show.letters("?");
    });
    check_large("cancel", 0, working, |show| {
        show.press(KeyCode::Tab);
        show.letters("X");
    });
    let story = || {
        let mut story = working_on(Story::diff_waits);
        story.park(ParkReason::Approval);
        story
    };
    check_large("deny_with_words", 0, story, |show| {
        go_to_waiting(show);
        show.letters("duse rg, not grep");
    });
    check_large("key_too_early", 0, story, |show| {
        show.chord(KeyCode::Char('g'), KeyModifiers::CONTROL);
        show.letters("y");
    });
    check_large("zoomed", 0, story, |show| {
        show.chord(KeyCode::Char('2'), KeyModifiers::ALT);
        show.letters("z");
    });
}

fn listed(id: &str, goal: &str, status: Status, ago_ms: u64, waiting: u32) -> Listed {
    let updated = Timestamp(1_700_000_000_000 - ago_ms);
    Listed::Run {
        summary: Box::new(Summary {
            id: RunId::try_from(id.to_string()).unwrap(),
            seq: Seq(9),
            goal: goal.to_string(),
            workspace: "/home/op/parser".to_string(),
            status,
            created: updated,
            updated,
            spent: MicroUsd(420_000),
            cost_limit: Limit::At(5_000_000),
            iterations: 7,
            waiting,
            rehearsal: false,
            pretend: false,
            brought: false,
        }),
        held_by: None,
    }
}

fn held(listed: Listed, pid: u32) -> Listed {
    match listed {
        Listed::Run { mut summary, .. } => {
            summary.rehearsal = true;
            Listed::Run { summary, held_by: Some(pid) }
        }
        Listed::Damaged { .. } => listed,
    }
}

fn check_list(name: &str, runs: &[Listed], prepare: impl Fn(&mut List)) {
    for size in [(120, 36), (80, 24), (50, 12), (30, 8)] {
        let now = Moment { ms: 0, at: Timestamp(1_700_000_000_000) };
        let greeting = "model openai/gpt-4.1-mini · workspace /home/op/parser".to_string();
        let options = ListOptions { greeting, process: 100, ..ListOptions::default() };
        let mut list = List::new(runs.to_vec(), now, options);
        prepare(&mut list);
        let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
        terminal
            .draw(|frame| {
                runs::draw(frame, &list);
            })
            .unwrap();
        insta::assert_snapshot!(
            format!("{name}_{}x{}", size.0, size.1),
            crate::screens::story::text_of(terminal.backend().buffer())
        );
    }
}

#[test]
fn runs_list() {
    let key = |code| crossterm::event::KeyEvent::from(code);
    check_list("runs_empty", &[], |list| {
        list.key(key(KeyCode::Enter));
    });
    let damaged = Listed::Damaged {
        id: RunId::try_from("zzzzzzzzzzzz".to_string()).unwrap(),
        why: "record 17 does not fit its hash".to_string(),
    };
    let runs = [
        listed("aaaaaaaaaaaa", "summarise the\u{1b}[2J changelog", Status::Completed(Finish::Verified), 90_000_000, 0),
        listed("k7f39x2m4q8a", GOAL, Status::Parked(ParkReason::Approval), 240_000, 2),
        damaged,
        listed("b4c5d6e7f8g9", "日本語の README を書く", Status::Parked(ParkReason::Budget(Axis::Cost)), 7_500_000, 0),
    ];
    check_list("runs_several", &runs, |list| {
        list.key(key(KeyCode::Down));
    });
    check_list("runs_damaged", &runs, |list| {
        list.key(key(KeyCode::Char('G')));
        list.key(key(KeyCode::Enter));
    });
}

#[test]
fn runs_held_and_not_held() {
    let runs = [
        listed("deadaaaaaaaa", GOAL, Status::Running, 60_000, 0),
        held(listed("herebbbbbbbb", GOAL, Status::Running, 120_000, 0), 100),
        held(listed("e1secccccccc", GOAL, Status::Parked(ParkReason::Approval), 240_000, 2), 1_234_567),
    ];
    check_list("runs_held", &runs, |_| ());
    check_list("runs_held_here", &runs, |list| {
        list.key(crossterm::event::KeyEvent::from(KeyCode::Down));
    });
}

#[test]
fn runs_imported() {
    let mut imported = listed("c0ffeeaaaaaa", GOAL, Status::Parked(ParkReason::Approval), 60_000, 0);
    if let Listed::Run { summary, .. } = &mut imported {
        (summary.rehearsal, summary.brought) = (true, true);
    }
    check_list("runs_imported", &[imported], |_| ());
}
