//! Conversations that must not be: nothing of them is sent, and the run fails closed (docs/ENGINE.md §14.3).

use std::sync::Arc;

use tiller::domain::id::CallId;
use tiller::domain::id::ModelCallId;
use tiller::domain::id::Seq;
use tiller::domain::message::Entry;
use tiller::domain::message::Message;
use tiller::domain::message::ToolUse;
use tiller::domain::status::Failure;
use tiller::domain::status::Phase;
use tiller::domain::status::Status;
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
