//! What the screen says where a run needs its operator for more than a call: money, time, a claim, a stall, trust. Each
//! snapshot was read once by a person.

use crossterm::event::KeyCode;
use crossterm::event::KeyModifiers;
use tiller::domain::budget::Axis;
use tiller::domain::budget::Basis;
use tiller::domain::budget::Charge;
use tiller::domain::budget::Limit;
use tiller::domain::command::Policy;
use tiller::domain::context::Author;
use tiller::domain::context::Elided;
use tiller::domain::daily::Today;
use tiller::domain::event::ClaimVerdict;
use tiller::domain::event::Event;
use tiller::domain::event::Finding;
use tiller::domain::id::ClientId;
use tiller::domain::id::InterjectionId;
use tiller::domain::model::Purpose;
use tiller::domain::money::MicroUsd;
use tiller::domain::money::Usage;
use tiller::domain::status::Course;
use tiller::domain::status::Detector;
use tiller::domain::status::Fired;
use tiller::domain::status::ParkReason;
use tiller::domain::status::Phase;
use tiller::domain::status::Status;
use tiller::domain::status::Warning;
use tiller::domain::summary::Summary;
use tiller::domain::terms::Check;
use tiller::domain::terms::Terms;
use tiller::domain::time::Span;
use tiller::domain::tool::EffectClass;
use tiller::domain::tool::ErrorClass;
use tiller::domain::trust::Trust;
use tiller::tui::app::Msg;

use crate::screens::story::Show;
use crate::screens::story::Story;
use crate::screens::story::terms;

const GOAL: &str = "fix the failing parser tests";

fn check(name: &str, later_ms: u64, story: impl Fn() -> Story, prepare: impl Fn(&mut Show)) {
    for size in [(120, 36), (80, 24)] {
        let mut show = Show::of(story(), size, later_ms);
        show.frame();
        prepare(&mut show);
        let text = show.frame();
        insta::assert_snapshot!(format!("{name}_{}x{}", size.0, size.1), text);
    }
}

fn to_pane(show: &mut Show, number: char) {
    show.chord(KeyCode::Char(number), KeyModifiers::ALT);
}

fn operator() -> ClientId {
    ClientId("screen".to_string())
}

fn with(change: impl Fn(&mut Terms)) -> Terms {
    let mut terms = terms(GOAL);
    change(&mut terms);
    terms
}

/// A run at work whose first reply of the iteration has come.
fn working(terms: Terms) -> Story {
    let mut story = Story::planned(terms);
    story.ask(9_000);
    story.reply("The offset is computed before the BOM is skipped; I'll move it.", 6_200, 310);
    story
}

fn parked(reason: ParkReason) -> Story {
    let mut story = working(terms(GOAL));
    let read = story.propose_read("src/lexer.rs");
    story.read(read, "1  use crate::token::Token;\n");
    story.close(Course::Park(reason.clone()), &[]);
    story.park(reason);
    story
}

/// A claim that the next check is about.
fn claimed(checks: Vec<Check>) -> Story {
    let mut story = working(with(|terms| terms.checks = checks.clone()));
    let summary = "The offset is right now and the three tests pass.".to_string();
    let call = story.call("finish", &format!(r#"{{"summary":"{summary}"}}"#), EffectClass::Control);
    story.event(Event::DoneClaimed { call: Some(call), summary });
    story
}

#[test]
fn a_price_that_nobody_knows() {
    let unpriced = || {
        let mut story = Story::new(with(|terms| terms.model.price = None));
        story.running();
        story.iteration(Phase::Decompose);
        story.park(ParkReason::PriceUnknown);
        story
    };
    check("price_unknown", 5_000, unpriced, |_| ());
    check("price_dialog", 5_000, unpriced, |show| {
        to_pane(show, '4');
        show.letters("+0.40 cheap");
        show.press(KeyCode::Enter);
    });
    let uncounted = || {
        let mut story = unpriced();
        story.event(Event::PriceChosen { price: None, by: operator() });
        story.running();
        story.ask(0);
        story
    };
    check("price_off", 5_000, uncounted, |show| to_pane(show, '4'));
}

#[test]
fn reasons_to_be_parked() {
    check("parked_blocked", 60_000, || parked(ParkReason::Escalated(ErrorClass::Permission)), |_| ());
    let daily = || {
        let until = parked(ParkReason::Paused).run.at.plus(Span(7_500_000));
        let mut story = parked(ParkReason::DailyBudget { left: MicroUsd(20_000), until });
        let lack = "all runs together have $0.02 left of $20.00 in 24 hours, and the next model call may cost $0.05; \
                    wait, or raise budget.daily in tiller.toml";
        story.event(Event::PreflightFailed { lacks: vec![lack.to_string()] });
        story
    };
    let told = |show: &mut Show| {
        show.tell(Msg::Today(Today { spent: MicroUsd(19_980_000), limit: Limit::At(20_000_000) }));
        to_pane(show, '4');
    };
    check("parked_daily", 60_000, daily, told);
}

#[test]
fn a_deadline() {
    let story = |over| {
        let mut story = working(terms(GOAL));
        let at = Limit::At(story.run.created.0 + 3_600_000);
        story.event(Event::BudgetRaised { axis: Axis::Deadline, limit: at, by: operator() });
        if over {
            story.wait(3_600_000);
            story.close(Course::Park(ParkReason::Budget(Axis::Deadline)), &[Fired::Budget(Axis::Deadline)]);
            story.park(ParkReason::Budget(Axis::Deadline));
        } else {
            story.wait(3_000_000);
            let text = "the deadline is 2023-11-14T23:13:20Z (in 9m57s)".to_string();
            story.event(Event::Warned { what: Warning::Budget(Axis::Deadline), text });
        }
        story
    };
    check("deadline_near", 2_000, || story(false), |show| to_pane(show, '4'));
    check("parked_deadline", 60_000, || story(true), |show| to_pane(show, '4'));
    check(
        "deadline_dialog",
        60_000,
        || story(true),
        |show| {
            to_pane(show, '4');
            show.letters("+");
        },
    );
}

#[test]
fn a_stall_that_needs_a_grant() {
    let story = || {
        let mut story = working(terms(GOAL));
        for _ in 0..4 {
            let diagnosis = "`cargo test` gave the same result three times and nothing was changed in between";
            story.event(Event::StallDetected { detector: Detector::Repeat, diagnosis: diagnosis.to_string() });
            story.close(Course::Replan, &[Fired::Stalled(Detector::Repeat)]);
            story.iteration(Phase::Replan);
            story.ask(9_000);
            story.reply("I'll look at the tokenizer from the other end.", 6_200, 310);
        }
        let stalled = ParkReason::Stalled(Detector::Repeat);
        story.close(Course::Park(stalled.clone()), &[Fired::Stalled(Detector::Repeat)]);
        story.park(stalled);
        story
    };
    check("stalled_for_good", 60_000, story, |_| ());
    check("stalled_for_good_keys", 60_000, story, |show| to_pane(show, '2'));
    check("end_dialog", 60_000, story, |show| {
        to_pane(show, '2');
        show.letters("X");
    });
}

#[test]
fn a_claim_that_asks_the_operator() {
    let story = || {
        let mut story = claimed(vec![Check::OperatorConfirm("Does the release note read well?".to_string())]);
        story.event(Event::ConfirmationRequested { index: 0 });
        story.park(ParkReason::Confirm);
        story
    };
    check("confirm", 5_000, story, |_| ());
    check("confirm_keys", 5_000, story, |show| to_pane(show, '2'));
    assert_eq!(Summary::of(&story().run).waiting, 1, "a claim waits, too");
    let mut cancelled = story();
    cancelled.event(Event::StatusChanged { status: Status::Cancelled, by: None });
    assert_eq!(Summary::of(&cancelled.run).waiting, 0, "not of a run that has ended");
    check("confirm_no", 5_000, story, |show| {
        to_pane(show, '2');
        show.frame_at(5_600);
        show.letters("Wthe last line is a stub");
    });
}

#[test]
fn trust_modes() {
    let story = |trust| move || working(with(|terms| terms.trust = trust));
    for trust in [Trust::Plan, Trust::AutoEdit, Trust::FullTrust] {
        check(&format!("trust_{}", trust.word()), 1_000, story(trust), |_| ());
    }
    check("trust_dialog", 1_000, story(Trust::Ask), |show| {
        to_pane(show, '2');
        show.letters("Tauto");
        show.press(KeyCode::Enter);
    });
}

#[test]
fn arguments_are_edited() {
    let story = || {
        let mut story = working(terms(GOAL));
        story.diff_waits();
        story.park(ParkReason::Approval);
        story
    };
    check("edit_dialog", 0, story, |show| {
        show.chord(KeyCode::Char('g'), KeyModifiers::CONTROL);
        show.frame_at(10);
        show.frame_at(700);
        show.letters("e");
        show.chord(KeyCode::Char('u'), KeyModifiers::CONTROL);
        show.letters(r#"{"path":"#);
        show.press(KeyCode::Enter);
    });
}

#[test]
fn a_list_is_allowed() {
    let story = || {
        let mut story = working(terms(GOAL));
        story.diff_waits();
        story.command_waits("cargo test -p lexer");
        story.park(ParkReason::Approval);
        story
    };
    check("allow_list", 0, story, |show| {
        show.chord(KeyCode::Char('g'), KeyModifiers::CONTROL);
        show.frame_at(10);
        show.frame_at(700);
        show.letters("A");
    });
}

#[test]
fn words_that_wait() {
    let story = || {
        let mut story = working(terms(GOAL));
        for (n, (text, policy)) in [
            ("also update the README", Policy::Next),
            ("stop touching the lexer", Policy::SteerNow),
            ("the corpus lies in /srv/corpus", Policy::AfterDone),
        ]
        .into_iter()
        .enumerate()
        {
            let id = InterjectionId(n as u32 + 1);
            story.event(Event::InterjectionQueued { id, text: text.to_string(), by: operator(), policy });
        }
        story.event(Event::InterjectionWithdrawn { id: InterjectionId(1), by: operator() });
        story
    };
    check("words_wait", 1_000, story, |show| {
        show.letters("one more thing");
        show.press(KeyCode::F(2));
    });
}

fn asked_for(story: &mut Story, purpose: Purpose) {
    story.ask(4_000);
    if let Some(Event::ModelCallStarted { purpose: said, .. }) = story.records.last_mut().map(|one| &mut one.event) {
        *said = purpose;
    }
}

#[test]
fn calls_of_the_engine() {
    let summarises = || {
        let mut story = parked(ParkReason::Paused);
        story.running();
        story.iteration(Phase::Pursue);
        asked_for(&mut story, Purpose::Summary);
        story
    };
    check("summarising", 4_000, summarises, |_| ());
    let judges = || {
        let mut story = claimed(vec![Check::ModelJudge("Is every public item documented?".to_string())]);
        story.event(Event::CheckStarted { index: 0 });
        asked_for(&mut story, Purpose::Judge(0));
        story
    };
    check("judging", 4_000, judges, |_| ());
}

#[test]
fn the_plan_dialog() {
    check(
        "plan_dialog",
        0,
        || working(terms(GOAL)),
        |show| {
            to_pane(show, '1');
            show.letters("emark t2");
            show.press(KeyCode::Enter);
        },
    );
}

#[test]
fn notes_of_the_engine() {
    let story = || {
        let mut story = working(terms(GOAL));
        let read = story.propose_read("src/lexer.rs");
        story.read(read, "1  use crate::token::Token;\n");
        let text = "one more iteration without progress, and the plan is changed".to_string();
        story.event(Event::Warned { what: Warning::Stall(Detector::NoProgress), text });
        story.close(Course::Continue, &[]);
        let text = "$4.02 of $5.00 are used".to_string();
        story.event(Event::Warned { what: Warning::Budget(Axis::Cost), text });
        story.event(Event::ContextPruned {
            refs: vec![Elided { call: read, result: Some("a1b2c3d4e5f60718".to_string()), arguments: None }],
        });
        story.iteration(Phase::Pursue);
        story.event(Event::ContextCompacted {
            from: 1,
            to: 1,
            summary: "Facts found: the offset is three bytes off.\nNext step: move it.".to_string(),
            author: Author::Model,
            before: 9_000,
            after: 2_000,
        });
        story.ask(4_000);
        story
    };
    check("notes", 2_000, story, |_| ());
    let wrapped = || {
        let mut story = parked_for_wrap_up();
        story.iteration(Phase::WrapUp);
        story.ask(4_000);
        story.reply("Two of six todos are done. The offset is moved; the regression test is missing.", 3_000, 90);
        story.close(Course::Park(ParkReason::Budget(Axis::Loops)), &[Fired::Budget(Axis::Loops)]);
        story.park(ParkReason::Budget(Axis::Loops));
        story
    };
    check("wrapped_up", 60_000, wrapped, |_| ());
}

fn parked_for_wrap_up() -> Story {
    let mut story = working(with(|terms| terms.limits.loops = Limit::At(1)));
    let read = story.propose_read("src/lexer.rs");
    story.read(read, "1  use crate::token::Token;\n");
    story.close(Course::WrapUp(Axis::Loops), &[Fired::Budget(Axis::Loops)]);
    story
}

#[test]
fn charges_in_doubt() {
    let story = || {
        let mut story = working(with(|terms| terms.limits.tokens = Limit::Unlimited));
        for worst in [24_000, 51_000] {
            story.close(Course::Continue, &[]);
            story.iteration(Phase::Pursue);
            story.ask(worst);
            let held = *story.run.pool.reserved().unwrap();
            story.event(Event::Recovered { findings: vec![Finding::ModelCallLost(held.id.call)] });
            let charge = Charge { amount: held.amount, usage: Usage::default(), basis: Basis::Unverified };
            story.event(Event::BudgetSettled { id: held.id, charge });
            story.park(ParkReason::Interrupted);
            story.running();
            story.ask(9_000);
            story.reply("once more", 6_200, 310);
        }
        story
    };
    let told = |show: &mut Show| {
        show.tell(Msg::Today(Today { spent: MicroUsd(3_210_000), limit: Limit::At(20_000_000) }));
        to_pane(show, '4');
        show.letters("z");
    };
    check("doubts", 1_000, story, told);
    check("doubts_beside", 1_000, story, |show| {
        show.tell(Msg::Today(Today { spent: MicroUsd(3_210_000), limit: Limit::Unlimited }));
    });
}

#[test]
fn a_claim_is_rejected_and_the_work_accepted() {
    let story = || {
        let mut story = claimed(vec![Check::Command("cargo test --workspace".to_string())]);
        story.event(Event::CheckStarted { index: 0 });
        story.wait(3_000);
        let detail = "exit status 101\ntest bom ... FAILED".to_string();
        story.event(Event::AcceptanceChecked { index: 0, passed: false, detail: detail.clone() });
        story.event(Event::ClaimJudged { verdict: ClaimVerdict::Rejected, text: detail });
        let call = *story.run.iteration.calls.last().unwrap();
        story.finish(call, tiller::domain::tool::OutcomeKind::Failed, "the check failed", 0);
        story.close(Course::Park(ParkReason::Verification), &[Fired::Verification]);
        story.park(ParkReason::Verification);
        story
    };
    check("verification_failed", 5_000, story, |show| to_pane(show, '2'));
}
