//! Conversations that must not be: nothing of them is sent, and the run fails closed (docs/ENGINE.md §14.3). Records
//! in the wrong place: the fold refuses them.

use std::sync::Arc;

use tiller::domain::budget::Axis;
use tiller::domain::event::Event;
use tiller::domain::event::Finding;
use tiller::domain::event::Record;
use tiller::domain::id::CallId;
use tiller::domain::id::ClientId;
use tiller::domain::id::ModelCallId;
use tiller::domain::id::Seq;
use tiller::domain::message::Entry;
use tiller::domain::message::Message;
use tiller::domain::message::ToolUse;
use tiller::domain::status::Detector;
use tiller::domain::status::Failure;
use tiller::domain::status::Phase;
use tiller::domain::status::Status;
use tiller::domain::status::Warning;
use tiller::domain::time::Span;
use tiller::domain::time::Timestamp;
use tiller::domain::tool::OutcomeKind;
use tiller::machine::Turn;
use tiller::machine::effect::Effect;
use tiller::machine::turn;

use crate::machine::reading;
use crate::machine::stage::Stage;

fn result(call: u32) -> Message {
    let text = "text".to_string();
    Message::ToolResult {
        call: CallId(call),
        title: String::new(),
        kind: OutcomeKind::Done,
        text,
        bytes: 4,
        took: Span(0),
    }
}

fn asks(calls: &[(u32, &str)]) -> Message {
    let one = |(id, wire): &(u32, &str)| ToolUse {
        id: CallId(*id),
        wire_id: (*wire).to_string(),
        tool: "read_file".to_string(),
        arguments: "{}".to_string(),
        seq: Seq(0),
    };
    let uses = calls.iter().map(one).collect();
    Message::Assistant { call: ModelCallId(9), phase: Phase::Pursue, text: String::new(), uses }
}

/// A run whose conversation got these entries behind the engine's back, just before it asks its model.
fn check(sabotage: Vec<Message>, is_sent: bool) -> Turn {
    let mut stage = Stage::new("");
    for line in ["own", "reply todos a", "pause now", "fail cancelled"] {
        stage.take(line);
    }
    let mut run = stage.run.clone();
    for message in sabotage {
        let entry = Arc::new(Entry { iteration: 2, at: Timestamp(1), seq: Seq(0), message });
        run.transcript.push(entry.clone());
        run.context.push(&entry);
    }
    let turned = turn(&run, &reading::input(&stage, "resume"), stage.now).unwrap();
    let sent = turned.effects.iter().any(|effect| matches!(effect, Effect::CallModel(_)));
    assert_eq!(sent, is_sent, "{:?}", run.transcript);
    assert_eq!(matches!(turned.run.status, Status::Failed(Failure::OutOfOrder(_))), !is_sent);
    assert!(is_sent || turned.run.pool.reserved().is_none());
    turned
}

#[test]
fn a_conversation_out_of_order_is_not_sent() {
    check(vec![], true);
    check(vec![asks(&[(7, "x"), (8, "y")]), result(8), result(7)], true);
    check(vec![result(7)], false);
    check(vec![asks(&[(7, "x")])], false);
    check(vec![asks(&[(7, "x")]), result(7), result(7)], false);
    check(vec![asks(&[(7, "x")]), Message::Engine { text: "between".to_string() }, result(7)], false);
    check(vec![asks(&[(7, "x"), (8, "x")]), result(7), result(8)], false);
    check(vec![asks(&[(7, "")]), result(7)], false);
    check(vec![asks(&[(7, "x")]), result(7), asks(&[(7, "y")]), result(7)], false);
    check(vec![asks(&[(1, "y")]), result(1)], false);
}

/// The end says whose fault it is and what is wrong, and the journal has it.
#[test]
fn a_conversation_out_of_order_is_told_as_what_it_is() {
    let turned = check(vec![asks(&[(7, "x")]), result(7), result(7)], false);
    let said = "failed: the conversation is out of order, and was not sent; this is a bug of tiller: the result of \
                call c7 has no call, or is there twice";
    assert_eq!(turned.run.status.phrase(), said);
    let last = serde_json::to_value(turned.records.last().unwrap()).unwrap();
    let why = last
        .pointer("/event/status_changed/status/failed/out_of_order")
        .or(last.pointer("/event/status/failed/out_of_order"));
    assert_eq!(why.unwrap(), "the result of call c7 has no call, or is there twice", "{last}");
}

/// What the fold says to an event that comes after these inputs.
fn refused(inputs: &[&str], event: Event) -> String {
    let mut stage = Stage::new("checks=one;two");
    for line in inputs {
        stage.take(line);
    }
    let mut run = stage.run.clone();
    let record = Record { seq: run.seq.next(), at: run.at, active: Span(0), event };
    run.apply(&record).map_or_else(|broken| broken.why, |()| "taken in".to_string())
}

/// What belongs to an iteration, a check or a stalled run is refused anywhere else (docs/ARCHITECTURE.md, I9, I12, I14).
#[test]
fn a_record_in_the_wrong_place_does_not_fit() {
    let closed = &["own", "reply todos a", "pause iteration", "reply note a"];
    let checking = &["own", "reply todos a+", "reply finish all"];
    let seen = || Event::ProgressObserved { observation: Box::default() };
    let stall = || Event::StallDetected { detector: Detector::Repeat, diagnosis: String::new() };
    let warned = |what| Event::Warned { what, text: String::new() };
    let claimed = || Event::DoneClaimed { call: None, summary: String::new() };
    let lost = |index| Event::Recovered { findings: vec![Finding::CheckLost(index)] };
    let granted = || Event::ReplansGranted { by: ClientId("op".to_string()) };
    let table = [
        refused(closed, seen()),
        refused(closed, stall()),
        refused(closed, warned(Warning::Stall(Detector::Repeat))),
        refused(closed, warned(Warning::Budget(Axis::Cost))),
        refused(closed, claimed()),
        refused(closed, granted()),
        refused(checking, seen()),
        refused(checking, Event::CheckStarted { index: 0 }),
        refused(checking, Event::CheckInterrupted { index: 1 }),
        refused(checking, lost(1)),
        refused(checking, lost(0)),
        refused(&["own", "reply todos a+", "reply finish all", "check 0 ended"], Event::CheckStarted { index: 1 }),
    ];
    let told = [
        "an observation, and no iteration is open",
        "a stall, and no iteration is open",
        "a warning about a stall, and no iteration is open",
        "taken in",
        "a claim, and no iteration is open",
        "replans are granted to a run that is not stalled",
        "taken in",
        "check 0 is not due",
        "check 1 does not run",
        "check 1 does not run",
        "taken in",
        "check 1 is not due",
    ];
    assert_eq!(table, told);
}
