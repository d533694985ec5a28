//! What the screen says of a run that was brought from elsewhere: whatever its journal says of the operator, nobody here
//! did.

use crossterm::event::KeyCode;
use crossterm::event::KeyModifiers;
use tiller::domain::approval::By;
use tiller::domain::approval::Decision;
use tiller::domain::event::Event;
use tiller::domain::id::CallId;
use tiller::domain::id::ClientId;
use tiller::domain::lineage::Here;
use tiller::domain::tool::OutcomeKind;
use tiller::domain::trust::Trust;
use tiller::tui::app::Msg;
use tiller::tui::past::Reading;

use crate::screens::story::Show;
use crate::screens::story::Story;
use crate::screens::story::flat;
use crate::screens::story::pursuing;
use crate::screens::story::rest;

const SIZE: (u16, u16) = (120, 60);

fn operator(client: &str) -> By {
    By::Operator(ClientId(client.to_string()))
}

/// Whatever can be said of the operator: a call that they allowed, one that a rule of theirs did, trust, and a call that
/// waits and that they changed.
fn told() -> (Story, CallId) {
    let mut story = pursuing();
    let bys = [
        operator("operator"),
        operator("x), allowed by you (command line"),
        By::Rule("standing rule r1a2b".to_string()),
        By::Rule("you".to_string()),
    ];
    // All that a reply asks for is asked for before any of it ends.
    let calls: Vec<(CallId, By)> = bys.into_iter().map(|by| (story.propose_read(".env"), by)).collect();
    let changed = story.command_waits("touch a");
    let done = story.command_waits("touch c");
    story.decide(done, Decision::Edit(r#"{"command":"touch d"}"#.to_string()), operator("operator"));
    story.prepare(done, "touch d", "runs a program", "touch d");
    story.decide(done, Decision::AllowOnce, operator("operator"));
    story.start(done);
    story.finish(done, OutcomeKind::Done, "made d", 0);
    for (call, by) in calls {
        story.decide(call, Decision::AllowOnce, by);
        story.start(call);
        story.finish(call, OutcomeKind::Done, "a\n", 0);
    }
    story.event(Event::TrustChanged { trust: Trust::AutoEdit, by: operator("command line") });
    story.event(Event::TrustChanged { trust: Trust::Ask, by: By::Rule("you".to_string()) });
    story.decide(changed, Decision::Edit(r#"{"command":"touch b"}"#.to_string()), operator("command line"));
    (story, changed)
}

fn asks(story: &mut Story, call: CallId) {
    story.prepare(call, "touch b", "runs a program", "touch b");
    story.request(call, "it runs a program and no rule allows that");
}

fn brought(story: &mut Story) {
    story.event(Event::Imported { by: ClientId("command line".to_string()), here: Some(Here::default()) });
}

/// A screen that read what went by.
fn read(story: Story) -> Show {
    let mut show = Show::late(story, SIZE, 90_000);
    let mut reading = Reading::new(&show.story.run.id);
    let past = loop {
        show.story.records.chunks(5).for_each(|page| reading.take(page));
        match reading.end() {
            Ok(past) => break past,
            Err(again) => reading = *again,
        }
    };
    show.tell(Msg::Past(Box::new(past)));
    show
}

/// What goes on, what waits, and all of what waits.
fn frames(show: &mut Show) -> String {
    show.frame();
    show.chord(KeyCode::Char('3'), KeyModifiers::ALT);
    let mut all = flat(&rest(show));
    show.letters("v");
    all += &flat(&show.frame());
    all
}

#[test]
fn nobody_elsewhere_is_you_on_the_screen() {
    let (mut story, call) = told();
    brought(&mut story);
    asks(&mut story, call);
    let frame = frames(&mut read(story));
    for wanted in [
        "done · allowed by somebody elsewhere · 2 B",
        "done · allowed by a rule elsewhere · 2 B",
        "somebody elsewhere set trust to auto_edit",
        "trust is ask (a rule elsewhere)",
        "c6 was changed by somebody elsewhere: command from \"touch a\" to \"touch b\"",
        " changed by somebody elsewhere: command from \"touch a\" to \"touch b\"",
        "arguments as somebody elsewhere changed them, 21 B",
        "arguments as they were before that, 21 B",
        "you brought this run from elsewhere",
        "somebody elsewhere changed the arguments of this call: command",
    ] {
        assert!(frame.contains(wanted), "{wanted}\n{frame}");
    }
    for wrong in ["by you", "your rule", "you set", "the operator changed", "the rule you", "command line"] {
        assert!(!frame.contains(wrong), "{wrong}\n{frame}");
    }
}

/// The same journal, written here.
#[test]
fn what_was_decided_here_is_still_yours() {
    let (mut story, call) = told();
    asks(&mut story, call);
    let frame = frames(&mut read(story));
    for wanted in [
        "done · allowed by you · 2 B",
        "done · allowed by your rule r1a2b · 2 B",
        "you set trust to auto_edit",
        "the operator changed the arguments of this call: command from",
        "c6 was changed by you: command",
        "arguments as you (command line) changed them, 21 B",
    ] {
        assert!(frame.contains(wanted), "{wanted}\n{frame}");
    }
    assert!(!frame.contains("elsewhere"), "{frame}");
}

/// What is decided after it was brought is the operator's own.
#[test]
fn what_is_decided_after_the_import_is_yours() {
    let (mut story, call) = told();
    brought(&mut story);
    asks(&mut story, call);
    story.decide(call, Decision::AllowOnce, operator("operator"));
    story.start(call);
    story.finish(call, OutcomeKind::Done, "a\n", 0);
    let frame = frames(&mut read(story));
    for wanted in ["done · allowed by you", "somebody elsewhere changed the arguments of this call: command"] {
        assert!(frame.contains(wanted), "{wanted}\n{frame}");
    }
    assert!(!frame.contains("the operator changed"), "{frame}");
}
