//! A key decides only about what the screen showed: a question about a claim, the whole of a call, a call to its end.

use crossterm::event::KeyCode;
use crossterm::event::KeyModifiers;
use tiller::domain::approval::By;
use tiller::domain::approval::Decision;
use tiller::domain::command::Command;
use tiller::domain::event::Event;
use tiller::domain::id::ClientId;
use tiller::domain::status::ParkReason;
use tiller::domain::status::Status;
use tiller::domain::terms::Check;
use tiller::domain::tool::EffectClass;
use tiller::tui::app::Msg;

use crate::screens::story::Show;
use crate::screens::story::Story;
use crate::screens::story::commands;
use crate::screens::story::pursuing;
use crate::screens::story::rest;
use crate::screens::story::terms;

const SIZE: (u16, u16) = (80, 24);

/// A screen with a call that waits focused and at rest.
fn on_call(line: &str) -> Show {
    let mut story = pursuing();
    story.command_waits(line);
    story.park(ParkReason::Approval);
    let mut show = Show::of(story, SIZE, 0);
    show.frame_at(0);
    show.chord(KeyCode::Char('g'), KeyModifiers::CONTROL);
    rest(&mut show);
    show
}

/// Somebody else changes the call that waits, so that it waits as another one.
fn change(show: &mut Show, line: &str) {
    let call = show.story.run.waiting()[0].0.id;
    show.next(|story| {
        let changed = Decision::Edit(serde_json::json!({ "command": line }).to_string());
        story.decide(call, changed, By::Operator(ClientId("other".to_string())));
        story.prepare(call, line, "runs a program", line);
        story.request(call, "it runs a program and no rule allows that");
    });
}

#[test]
fn the_whole_of_a_call_that_became_another_is_closed() {
    let mut show = on_call("cargo test");
    // With another one that waits the keys stay where they are.
    show.next(|story| {
        story.command_waits("cargo doc");
    });
    rest(&mut show);
    show.letters("v");
    let whole = rest(&mut show);
    assert!(whole.contains("arguments as the model wrote them"), "{whole}");
    change(&mut show, "rm -rf build");
    let frame = rest(&mut show);
    assert!(!frame.contains("arguments as the model wrote them") && frame.contains("rm -rf build"), "{frame}");
    assert!(frame.contains("became another call"), "{frame}");
    show.letters("y");
    let digest = show.story.run.waiting()[0].0.digest().unwrap();
    let allowed = commands(&show);
    assert!(matches!(&allowed[..], [Command::Decide { digest: seen, .. }] if *seen == digest), "{allowed:?}");
}

/// Whose arguments these are: nobody is said to have written what somebody else did.
#[test]
fn the_whole_of_a_call_says_who_wrote_its_arguments() {
    let mut show = on_call("cargo test");
    change(&mut show, "rm -rf build");
    show.chord(KeyCode::Char('g'), KeyModifiers::CONTROL);
    rest(&mut show);
    show.letters("v");
    let whole = rest(&mut show);
    let (now, first) = (r#"1 │ {"command":"rm -rf build"}"#, r#"1 │ {"command":"cargo test"}"#);
    let told = ["arguments as you (other) changed them, 26 B", now, "arguments as the model wrote them, 24 B", first];
    let places: Vec<_> = told.iter().map(|text| whole.find(text)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}\n{whole}");
}

#[test]
fn the_whole_of_a_call_that_stays_as_it_is_stays_open() {
    let mut show = on_call("cargo test");
    show.letters("v");
    rest(&mut show);
    show.next(|story| {
        story.command_waits("cargo doc");
    });
    assert!(rest(&mut show).contains("arguments as the model wrote them"));
}

#[test]
fn a_call_is_changed_and_allowed_only_after_its_end_was_seen() {
    let lines: Vec<String> = (1..=400).map(|line| format!("echo {line}")).collect();
    let mut show = on_call(&lines.join("\n"));
    show.letters("e");
    let frame = show.frame();
    assert!(frame.contains("the end of the call was not on the screen yet"), "{frame}");
    show.letters(" ");
    show.press(KeyCode::Enter);
    assert_eq!(commands(&show), []);
    rest(&mut show);
    show.press(KeyCode::Char('G'));
    rest(&mut show);
    show.letters("e");
    assert!(show.frame().contains("and allow it"), "{}", show.frame());
}

/// A run that asks these about its claim, shown with the keys in a pane, before the first of them is asked.
fn claiming(questions: &[&str]) -> Show {
    let checks = questions.iter().map(|question| Check::OperatorConfirm(question.to_string()));
    let mut terms = terms("fix it");
    terms.checks = checks.collect();
    let mut story = Story::planned(terms);
    story.ask(9_000);
    story.reply("done", 6_000, 300);
    let call = story.call("finish", r#"{"summary":"it is done"}"#, EffectClass::Control);
    story.event(Event::DoneClaimed { call: Some(call), summary: "it is done".to_string() });
    let mut show = Show::of(story, SIZE, 0);
    show.frame_at(0);
    show.chord(KeyCode::Char('2'), KeyModifiers::ALT);
    rest(&mut show);
    show
}

fn ask(show: &mut Show, index: usize) {
    show.next(|story| {
        story.event(Event::ConfirmationRequested { index });
        story.park(ParkReason::Confirm);
    });
}

fn confirm(story: &mut Story, index: usize, confirmed: bool) {
    let by = ClientId("op".to_string());
    story.event(Event::ConfirmationGiven { index, confirmed, text: String::new(), by });
    story.event(Event::StatusChanged { status: Status::Running, by: None });
}

/// How often the claim was said to be right.
fn confirmed(show: &Show) -> usize {
    commands(show).iter().filter(|one| matches!(one, Command::Confirm { confirmed: true, .. })).count()
}

#[test]
fn a_question_about_a_claim_is_confirmed_after_it_was_shown_at_rest() {
    let mut show = claiming(&["Does it float?"]);
    ask(&mut show, 0);
    show.ms += 1;
    show.letters("Y");
    assert_eq!(confirmed(&show), 0, "no frame showed it");
    assert!(show.frame().contains("too early: nothing was confirmed"));
    show.frame_at(show.ms + 400);
    show.letters("Y");
    assert_eq!(confirmed(&show), 0, "it was not there for long enough");
    rest(&mut show);
    show.letters("Y");
    assert_eq!(confirmed(&show), 1);
}

#[test]
fn a_question_that_comes_while_the_key_is_kept_back_is_not_confirmed() {
    let mut show = claiming(&["Does it float?", "Does it shine?"]);
    ask(&mut show, 0);
    rest(&mut show);
    show.burst("Y");
    show.next(|story| confirm(story, 0, true));
    ask(&mut show, 1);
    show.ms += 100;
    show.tell(Msg::Tick);
    assert_eq!(confirmed(&show), 0);
}

#[test]
fn one_press_confirms_one_question_also_when_it_is_held() {
    let mut show = claiming(&["Does it float?", "Does it shine?"]);
    ask(&mut show, 0);
    rest(&mut show);
    show.letters("Y");
    assert_eq!(confirmed(&show), 1);
    show.letters("Y");
    assert_eq!(confirmed(&show), 1, "it is on its way");
    show.next(|story| confirm(story, 0, true));
    ask(&mut show, 1);
    assert!(show.frame().contains("Does it shine?"));
    // A terminal that tells no key held from one pressed again: the first repeat comes late.
    for after_ms in [600, 30, 30, 30] {
        show.frame_at(show.ms + after_ms);
        show.letters("Y");
        assert_eq!(confirmed(&show), 1, "held");
    }
    rest(&mut show);
    show.letters("Y");
    assert_eq!(confirmed(&show), 2);
}

#[test]
fn a_new_question_is_shown_in_the_place_of_what_was_said_before() {
    let mut show = claiming(&["Does it float?"]);
    show.letters("Y");
    assert!(show.frame().contains("no check asks for your word"));
    ask(&mut show, 0);
    assert!(show.frame().contains("Does it float?"));
}
