//! Sentences that must be true where they stand: what a list allowed, where a call ran and why unasked, what a line that
//! is a word of a decision comes to, why a run is parked, and what letters for a field that only just opened come to.

use crossterm::event::KeyCode;
use crossterm::event::KeyModifiers;
use tiller::domain::approval::By;
use tiller::domain::approval::Decision;
use tiller::domain::command::Command;
use tiller::domain::event::ClaimVerdict;
use tiller::domain::event::Event;
use tiller::domain::id::CallId;
use tiller::domain::id::ClientId;
use tiller::domain::sandbox::Level;
use tiller::domain::sandbox::READING_RULE;
use tiller::domain::status::Course;
use tiller::domain::status::Detector;
use tiller::domain::status::Finish;
use tiller::domain::status::Fired;
use tiller::domain::status::ParkReason;
use tiller::domain::status::Status;
use tiller::domain::terms::Check;
use tiller::domain::tool::EffectClass;
use tiller::domain::tool::Facts;
use tiller::domain::tool::OutcomeKind;
use tiller::tui::app::App;
use tiller::tui::app::Focus;
use tiller::tui::app::Moment;
use tiller::tui::app::Options;

use crate::screens::story::Show;
use crate::screens::story::Story;
use crate::screens::story::at_rest;
use crate::screens::story::commands;
use crate::screens::story::flat;
use crate::screens::story::pursuing;
use crate::screens::story::rest;
use crate::screens::story::terms;

const SIZES: [(u16, u16); 2] = [(80, 24), (120, 36)];

fn by_operator() -> By {
    By::Operator(ClientId("operator".to_string()))
}

fn waits(calls: &[fn(&mut Story) -> CallId]) -> (Story, Vec<CallId>) {
    let mut story = pursuing();
    let calls = calls.iter().map(|call| call(&mut story)).collect();
    story.park(ParkReason::Approval);
    (story, calls)
}

fn shell(story: &mut Story) -> CallId {
    story.command_waits("cargo test")
}

fn says(show: &mut Show, wanted: &str) {
    let frame = show.frame();
    assert!(flat(&frame).contains(wanted), "{wanted}\n{frame}");
}

#[test]
fn the_list_says_which_it_allows_and_then_which_it_allowed() {
    for size in SIZES {
        let (story, calls) = waits(&[Story::diff_waits, shell, |story| story.command_waits("cargo doc")]);
        let mut show = at_rest(story, size, '3');
        for _ in 0..2 {
            show.letters("j");
            rest(&mut show);
        }
        says(&mut show, "shell cargo test seen · under a minute");
        show.letters("A");
        says(&mut show, "3 allowed: c2, c3, c4");
        // The keys go back by themselves, and what was done is not forgotten over that.
        show.next(|story| {
            for call in &calls {
                story.decide(*call, Decision::AllowOnce, by_operator());
            }
            story.event(Event::StatusChanged { status: Status::Running, by: None });
        });
        assert_eq!(show.app.focus, Focus::Composer);
        says(&mut show, "3 allowed: c2, c3, c4; nothing waits for you any more");
    }
}

#[test]
fn the_key_of_the_list_says_how_many_it_allows() {
    let (story, _) = waits(&[shell, |story| story.command_waits("cargo doc")]);
    let mut show = at_rest(story, (120, 36), '3');
    says(&mut show, "[A] 1 seen");
    says(&mut show, "shell cargo doc not seen");
    show.letters("j");
    rest(&mut show);
    says(&mut show, "[A] 2 seen");
}

/// A call that ran here, by this leave.
fn ran(level: Option<Level>, network: bool, decision: Decision, by: By) -> Story {
    let mut story = pursuing();
    let call = story.call("shell", r#"{"command":"ls -la"}"#, EffectClass::External);
    let facts = Facts { title: "ls -la".to_string(), level, network, ..Facts::default() };
    story.event(Event::ToolCallPrepared { call, facts: Box::new(facts) });
    story.decide(call, decision, by);
    story.start(call);
    story.finish(call, OutcomeKind::Done, "a\n", 65);
    story
}

#[test]
fn where_a_call_ran_can_be_read_afterwards() {
    let once = || (Decision::AllowOnce, by_operator());
    let full = Some(Level::Full);
    let cases = [
        (full, false, once(), Some("ran in the full box, no network")),
        (full, true, once(), Some("ran in the full box, network open")),
        (full, false, (Decision::AllowUnboxed, by_operator()), Some("ran outside of the box, by its code")),
        (
            full,
            false,
            (Decision::AllowOnce, By::Rule(READING_RULE.to_string())),
            Some("ran in the full box, nothing writable, no network"),
        ),
        (Some(Level::None), false, once(), Some("ran without a box, with all your rights")),
        (None, false, once(), None),
    ];
    for (level, network, (decision, by), wanted) in cases {
        let mut show = at_rest(ran(level, network, decision, by), (120, 36), '2');
        show.letters("v");
        let frame = flat(&show.frame());
        match wanted {
            Some(wanted) => assert!(frame.contains(wanted), "{wanted}\n{frame}"),
            None => assert!(!frame.contains(" ran "), "{frame}"),
        }
    }
}

#[test]
fn what_a_rule_of_the_gate_let_happen_says_why() {
    for (rule, wanted) in [
        ("read-only line", "done · allowed by the read-only table · 65ms"),
        ("trust mode auto_edit", "done · allowed by trust mode auto_edit · 65ms"),
        ("trust mode full_trust", "done · allowed by full trust · 65ms"),
        ("standing rule r1a2b", "done · allowed by your rule r1a2b · 65ms"),
        ("allowed for this run", "done · allowed by you, for this run · 65ms"),
        ("tool allowed for this run", "done · allowed by you, with its tool, for this run · 65ms"),
        ("reads inside the workspace", "done · 65ms"),
    ] {
        let story = ran(Some(Level::Full), false, Decision::AllowOnce, By::Rule(rule.to_string()));
        let mut show = at_rest(story, (120, 36), '2');
        says(&mut show, wanted);
    }
}

/// Who decided stands on the row of a call from the decision on to its end and behind it, however short it ran.
#[test]
fn who_decided_is_told_wherever_a_call_stands() {
    let operator = || By::Operator(ClientId("operator".to_string()));
    let rule = |name: &str| By::Rule(name.to_string());
    let row = |story: Story, wanted: &str| says(&mut at_rest(story, (120, 36), '2'), wanted);
    // A read that was asked about, and a fetch that was allowed for the run: both were over at once.
    for (by, wanted) in [
        (operator(), "done · allowed by you · 2 B"),
        (By::Operator(ClientId("command line".to_string())), "done · allowed by you (command line) · 2 B"),
        (rule("allowed for this run"), "done · allowed by you, for this run · 2 B"),
        (rule("standing rule r1a2b"), "done · allowed by your rule r1a2b · 2 B"),
    ] {
        let mut story = pursuing();
        let call = story.propose_read(".env");
        story.decide(call, Decision::AllowOnce, by);
        story.start(call);
        story.finish(call, OutcomeKind::Done, "a\n", 0);
        row(story, wanted);
    }
    // One that is denied while another one before it waits, and then is over.
    for (by, wanted) in [
        (operator(), "denied by you"),
        (rule("standing rule r1a2b"), "denied by your rule r1a2b"),
        (rule("denied before in this run"), "denied by you, before in this run"),
        (rule("trust mode plan"), "denied by trust mode plan"),
    ] {
        let mut story = pursuing();
        story.command_waits("cargo test");
        let call = story.propose_read(".env");
        story.decide(call, Decision::Deny(String::new()), by);
        let mut show = at_rest(story, (120, 36), '2');
        says(&mut show, wanted);
        show.next(|story| story.finish(call, OutcomeKind::Denied, "denied", 0));
        says(&mut show, wanted);
    }
    // One that may start, and one that runs.
    let mut story = pursuing();
    let call = story.propose_read(".env");
    story.decide(call, Decision::AllowOnce, operator());
    let mut show = at_rest(story, (120, 36), '2');
    says(&mut show, "allowed by you");
    show.next(|story| story.start(call));
    says(&mut show, "allowed by you · running");
    // What was decided does not hold any more.
    show.next(|story| {
        story.event(Event::ApprovalInvalidated { call, why: "it changed".to_string() });
        story.prepare(call, ".env", "reads a sensitive name", "read .env");
        story.finish(call, OutcomeKind::Cancelled, "", 0);
    });
    says(&mut show, "cancelled");
    assert!(!flat(&show.frame()).contains("allowed by you"), "{}", show.frame());
}

#[test]
fn a_word_of_a_decision_in_the_composer_is_not_sent_while_a_call_waits() {
    for word in ["y", "n", "a", "yes", "y jewd"] {
        let (story, _) = waits(&[shell]);
        let mut show = at_rest(story, (80, 24), '2');
        show.press(KeyCode::Esc);
        show.letters(word);
        show.press(KeyCode::Enter);
        assert_eq!(commands(&show), [], "{word}");
        says(&mut show, "nothing was sent and nothing decided: c2 waits, and ^G goes to it");
        says(&mut show, &format!("write: say {word}"));
        assert_eq!(show.app.draft(), word);
        show.chord(KeyCode::Char('u'), KeyModifiers::CONTROL);
        show.letters(&format!("say {word}"));
        show.press(KeyCode::Enter);
        let [Command::Interject { text, .. }] = &commands(&show)[..] else { panic!("{word} was not sent") };
        assert_eq!(text, word);
    }
    // Where nothing waits it is said as it stands.
    let mut show = at_rest(pursuing(), (80, 24), '2');
    show.press(KeyCode::Esc);
    show.letters("y");
    show.press(KeyCode::Enter);
    assert_eq!(commands(&show).len(), 1);
}

#[test]
fn a_call_that_is_looked_at_anew_says_why_and_nothing_that_is_not_so() {
    let (mut story, calls) = waits(&[shell]);
    story.event(Event::ApprovalInvalidated { call: calls[0], why: "trust was set to plan".to_string() });
    let mut show = at_rest(story, (80, 24), '2');
    says(&mut show, "c2 is looked at anew: trust was set to plan");
    assert!(!flat(&show.frame()).contains("has changed"), "{}", show.frame());
}

#[test]
fn the_reason_of_a_parked_run_comes_first_and_what_else_is_true_is_marked() {
    let parked = |reason: ParkReason, fired: Fired| {
        let mut story = pursuing();
        let diagnosis = "three iterations moved nothing".to_string();
        story.event(Event::StallDetected { detector: Detector::NoProgress, diagnosis });
        story.event(Event::DoneClaimed { call: None, summary: "done".to_string() });
        story.event(Event::ClaimJudged { verdict: ClaimVerdict::Rejected, text: "check 1 failed".to_string() });
        story.close(Course::Park(reason.clone()), &[fired]);
        story.park(reason);
        let frame = rest(&mut at_rest(story, (120, 36), '2'));
        let flat = flat(&frame);
        flat[flat.find("‖ parked: ").unwrap()..].to_string()
    };
    let text = parked(ParkReason::Verification, Fired::Verification);
    let [own, other] = ["the last claim was rejected: check 1 failed", "also true: stalled: three iterations moved"]
        .map(|part| text.find(part).unwrap_or_else(|| panic!("{part}\n{text}")));
    assert!(own < other, "{text}");
    let text = parked(ParkReason::Stalled(Detector::NoProgress), Fired::Stalled(Detector::NoProgress));
    assert!(text.contains("three iterations moved nothing") && !text.contains("also true"), "{text}");
}

#[test]
fn a_key_that_came_too_close_behind_a_wrong_one_is_not_said_to_do_nothing() {
    let (story, _) = waits(&[Story::diff_waits]);
    let mut show = at_rest(story, (80, 24), '3');
    show.letters("q");
    says(&mut show, "q does nothing: the keys are in pane 3");
    show.letters("e");
    says(&mut show, "e was dropped: it came right after letters that do nothing in pane 3");
    rest(&mut show);
    show.letters("e");
    assert_eq!(show.app.popups.len(), 1, "control: after a rest it does what the row says");
}

#[test]
fn a_key_that_opens_a_field_is_no_part_of_the_words_when_it_is_pressed_again() {
    for after_ms in [0, 120, 480] {
        let (story, _) = waits(&[shell]);
        let mut show = at_rest(story, (80, 24), '3');
        show.press(KeyCode::Char('d'));
        show.ms += after_ms;
        show.press(KeyCode::Char('d'));
        says(&mut show, "d was dropped: it had just opened this field; after half a second it is a letter");
        // Another letter shows that the field was seen; from there on all are words.
        show.letters("no, don't");
        show.press(KeyCode::Enter);
        let [Command::Decide { decision: Decision::Deny(words), .. }] = &commands(&show)[..] else { panic!() };
        assert_eq!(words, "no, don't");
    }
    // Control: after half a second all of it is words, also the letter of the key.
    let (story, _) = waits(&[shell]);
    let mut show = at_rest(story, (80, 24), '3');
    show.press(KeyCode::Char('d'));
    show.frame_at(show.ms + 500);
    show.letters("dno");
    show.press(KeyCode::Enter);
    let [Command::Decide { decision: Decision::Deny(words), .. }] = &commands(&show)[..] else { panic!() };
    assert_eq!(words, "dno");
}

#[test]
fn who_has_the_keys_in_the_composer_is_told_the_way_to_the_keys_of_a_pane() {
    let mut story = pursuing();
    story.event(Event::StatusChanged { status: Status::Cancelled, by: None });
    let mut show = at_rest(story, (120, 36), '2');
    says(&mut show, "parser R takes it up again");
    show.press(KeyCode::Esc);
    says(&mut show, "in a pane (Tab): R takes it up again");
}

/// What is said of keys and folders has a row of its own: what needs the operator stays where it is looked for.
#[test]
fn no_notice_covers_what_needs_the_operator() {
    let root = "tiller runs as root: nothing that an approved command does is held back by your account";
    for size in [(120, 36), (80, 24), (60, 15), (50, 12), (40, 10), (30, 10), (20, 10)] {
        let (story, _) = waits(&[|story| story.command_waits("cargo test")]);
        let waits = if size.0 < 40 { "the run waits:" } else { "the run waits: 1 thing needs you (^G)" };
        let mut show = Show::of(story, size, 0);
        let options = Options { said: Some(root.to_string()), ..Options::default() };
        show.app = App::new(show.story.run.clone(), Moment { ms: 0, at: show.story.run.at }, options);
        let frame = show.frame();
        assert!(frame.contains(waits) && frame.contains("tiller runs"), "{size:?}\n{frame}");
        // What a key is told in a pane, and in what is open over it.
        show.chord(KeyCode::Char('2'), KeyModifiers::ALT);
        rest(&mut show);
        show.letters("w");
        let frame = show.frame();
        assert!(frame.contains(waits), "{size:?}\n{frame}");
        assert!(frame.contains("w does") || flat(&frame).contains("w does nothing"), "{size:?}\n{frame}");
    }
    let mut terms = terms("fix it");
    terms.checks = vec![Check::OperatorConfirm("Does it float?".to_string())];
    for size in SIZES {
        let mut story = Story::planned(terms.clone());
        story.ask(9_000);
        story.reply("done", 6_000, 300);
        let call = story.call("finish", r#"{"summary":"it is done"}"#, EffectClass::Control);
        story.event(Event::DoneClaimed { call: Some(call), summary: "it is done".to_string() });
        story.event(Event::ConfirmationRequested { index: 0 });
        story.park(ParkReason::Confirm);
        let mut show = at_rest(story, size, '2');
        show.letters("w");
        let frame = show.frame();
        assert!(frame.contains("Does it float?") && frame.contains("w does nothing"), "{frame}");
        rest(&mut show);
        show.letters("X");
        show.letters("C");
        let frame = show.frame();
        assert!(frame.contains("Does it float?") && frame.contains("too early"), "{frame}");
    }
}

/// How a run ends, and what is said of where its work is.
type End = (fn(&mut Story), &'static str);

/// Where the work is, is said by its name, wherever a run ends.
#[test]
fn what_was_done_is_said_to_be_in_a_folder_by_name() {
    let ends: [End; 2] = [
        (
            |story| {
                let verified = Status::Completed(Finish::AcceptedByOperator);
                story.event(Event::StatusChanged { status: verified, by: Some(ClientId("op".to_string())) });
            },
            "what changed is in /home/op/parser: look at it before you keep it",
        ),
        (
            |story| {
                story.close(Course::Continue, &[]);
                story.event(Event::StatusChanged { status: Status::Cancelled, by: None });
            },
            "what was done stays in /home/op/parser",
        ),
    ];
    for size in SIZES {
        for (end, told) in ends {
            let mut story = pursuing();
            if told.starts_with("what changed") {
                story.park(ParkReason::Paused);
            }
            end(&mut story);
            let mut show = Show::of(story, size, 0);
            assert!(flat(&show.frame()).contains(told), "{}", show.frame());
        }
        let mut show = at_rest(pursuing(), size, '2');
        show.letters("X");
        let told = "What was done stays as it is in /home/op/parser.";
        assert!(flat(&show.frame()).contains(told), "{}", show.frame());
    }
}

/// A run that was over within a second took time all the same, and the screen and `tiller show` name the same one.
#[test]
fn how_long_a_fast_run_took_is_told_at_its_end() {
    for (took_ms, told) in [(389, " · 389ms"), (12_700, " · 12s")] {
        let mut story = Story::started(terms("fix it"));
        story.wait(took_ms);
        story.event(Event::StatusChanged { status: Status::Cancelled, by: None });
        let mut show = Show::of(story, (120, 36), 0);
        assert!(flat(&show.frame()).contains(told), "{told}\n{}", show.frame());
    }
}

/// Whoever writes the line alone is told how it is written, and one who began with an object where that is wrong.
#[test]
fn arguments_that_are_no_object_are_told_in_the_form_that_they_need() {
    let shell = r#"the arguments of shell are an object in JSON; write it as"#;
    let edit = r#"the arguments of edit_file are an object in JSON; write it as {"path":…,"old":…}"#.to_string();
    let text = serde_json::json!({"type": "string"});
    for (is_shell, typed, told) in [
        (true, "rm -rf attic", format!(r#"{shell} {{"command":"rm -rf attic"}}"#)),
        (true, r#"echo "a""#, format!(r#"{shell} {{"command":"echo \"a\""}}"#)),
        (true, r#"{"command":"a"#, "the arguments are not valid JSON".to_string()),
        (false, "b", edit.clone()),
        (false, "[1]", edit),
    ] {
        let mut terms = terms("fix it");
        terms.tools[0].schema["required"] = serde_json::json!(["path", "old"]);
        terms.tools[2].schema =
            serde_json::json!({"type": "object", "properties": {"command": text}, "required": ["command"]});
        let mut story = Story::planned(terms);
        story.ask(9_000);
        story.reply("on it", 6_000, 300);
        let _ = if is_shell { story.command_waits("cargo test") } else { story.diff_waits() };
        story.park(ParkReason::Approval);
        let mut show = at_rest(story, (120, 36), '3');
        show.letters("e");
        show.chord(KeyCode::Char('u'), KeyModifiers::CONTROL);
        rest(&mut show);
        show.letters(typed);
        show.press(KeyCode::Enter);
        assert_eq!(commands(&show), []);
        let said = show.app.notice.as_ref().map(|notice| notice.text.clone()).unwrap_or_default();
        assert!(said.starts_with(&format!("nothing was decided: {told}")), "{said}");
    }
}
