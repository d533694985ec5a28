//! A model that plans, works, rambles, fails and over-asks, by chance.

use serde_json::json;
use tiller::domain::model::AskedCall;
use tiller::domain::model::FailureClass;
use tiller::domain::model::ModelFailure;
use tiller::domain::model::ModelReply;
use tiller::domain::model::ModelRequest;
use tiller::domain::model::Purpose;
use tiller::domain::model::Received;
use tiller::domain::model::StopReason;
use tiller::domain::money::Price;
use tiller::domain::money::Usage;
use tiller::domain::run::Run;
use tiller::domain::status::Phase;
use tiller::domain::time::Span;

use crate::chance::Chance;

/// A summary that can be used.
const SUMMARY: &str = "## Facts found\nf1 is right\n## Decisions and reasons\nnone\n## Files touched\nf1\n## Failed \
                       approaches\nnone\n## Next step\ngo on";

pub const PRICE: Price = Price { input: 1_000_000, cache_read: 100_000, cache_write: 1_250_000, output: 5_000_000 };

/// What the model answers, and what the provider bills for it.
pub fn speak(request: &ModelRequest, run: &Run, chance: &mut Chance) -> (Result<ModelReply, ModelFailure>, u64) {
    let input = run.pool.reserved().map_or(0, |held| held.input);
    let usage = Usage {
        input: input.saturating_sub(chance.below(input + 1) / 4),
        output: 20 + chance.below(300),
        ..Usage::default()
    };
    if chance.percent(8) {
        return fail(usage, chance);
    }
    let mut reply = reply(request, run, usage, chance);
    if let Purpose::Judge(_) = request.purpose {
        let holds = chance.percent(60);
        reply.text = if chance.percent(90) { json!({ "holds": holds }).to_string() } else { "hm".to_string() };
        reply.calls.clear();
    }
    if request.purpose == Purpose::Summary {
        reply.text = if chance.percent(80) { SUMMARY.to_string() } else { "all went well".to_string() };
        reply.calls.clear();
        reply.stop = StopReason::End;
    }
    let bill = PRICE.cost(&usage).0;
    (Ok(reply), bill)
}

fn fail(usage: Usage, chance: &mut Chance) -> (Result<ModelReply, ModelFailure>, u64) {
    let (class, accepted) = match chance.below(12) {
        9 => (FailureClass::Degenerate, true),
        10 => (FailureClass::TooLarge, false),
        11 => (FailureClass::Billing, false),
        0 => (FailureClass::RateLimited, false),
        1 => (FailureClass::Overloaded, false),
        2 => (FailureClass::Network, false),
        3 => (FailureClass::StreamBroken, true),
        4 => (FailureClass::StreamStalled, true),
        5 => (FailureClass::Auth, false),
        6 => (FailureClass::Unknown, true),
        7 => (FailureClass::ContextLength, false),
        _ => (FailureClass::Endless, true),
    };
    let reports = accepted && chance.percent(50);
    let received = Received {
        accepted,
        usage: reports.then_some(usage),
        bytes: if accepted { usage.output * 3 } else { 0 },
        text: String::new(),
    };
    let retry_after = chance.percent(20).then_some(Span::seconds(chance.below(2_000)));
    let bill = if accepted { PRICE.cost(&usage).0 } else { 0 };
    (Err(ModelFailure { class, message: format!("{class:?}"), retry_after, received }), bill)
}

fn reply(request: &ModelRequest, run: &Run, usage: Usage, chance: &mut Chance) -> ModelReply {
    let mut calls = match request.phase {
        Phase::Decompose | Phase::Replan if chance.percent(85) => vec![plan(run, chance)],
        Phase::Decompose | Phase::Replan | Phase::Pursue | Phase::WrapUp => Vec::new(),
    };
    for _ in 0..chance.below(4) {
        calls.push(work(run, chance));
    }
    let text =
        if calls.is_empty() && chance.percent(70) { format!("thinking {}", chance.below(3)) } else { String::new() };
    let stop = match (calls.is_empty(), chance.below(40)) {
        (_, 0) => StopReason::Length,
        (true, 1) => StopReason::Refused,
        (true, _) => StopReason::End,
        (false, _) => StopReason::Calls,
    };
    let usage = (!chance.percent(5)).then_some(usage);
    // Without a report the engine counts the bytes; the bill rests on the same.
    ModelReply { text, reasoning: String::new(), calls, opaque: Vec::new(), stop, usage, received_bytes: 900 }
}

fn asked(name: &str, arguments: String, chance: &mut Chance) -> AskedCall {
    let id = if chance.percent(20) { String::new() } else { format!("call_{}", chance.below(3)) };
    AskedCall { id, name: name.to_string(), arguments }
}

fn plan(run: &Run, chance: &mut Chance) -> AskedCall {
    let count = 1 + chance.below(3);
    let salt = run.iteration.n;
    let todos: Vec<_> = (0..count).map(|n| json!({"title": format!("todo {salt}.{n}"), "status": "pending"})).collect();
    asked("update_plan", json!({ "todos": todos }).to_string(), chance)
}

fn work(run: &Run, chance: &mut Chance) -> AskedCall {
    let file = format!("f{}", chance.below(3));
    match chance.below(14) {
        0..=2 => asked("read_file", json!({ "path": file }).to_string(), chance),
        3 => asked("read_file", json!({"path": "/etc/other"}).to_string(), chance),
        4 | 5 => {
            let content = if chance.percent(30) { "right".to_string() } else { format!("wrong {}", chance.below(9)) };
            asked("write_file", json!({ "path": file, "content": content }).to_string(), chance)
        }
        6 | 7 => {
            let fails = match chance.below(10) {
                0..=2 => "fail",
                3 => "hang",
                _ => "do",
            };
            asked("shell", json!({"command": format!("{fails} {}", chance.below(4))}).to_string(), chance)
        }
        8 => asked("note", json!({"text": "a finding"}).to_string(), chance),
        9 if chance.percent(40) => asked("ask_operator", json!({"question": "which?"}).to_string(), chance),
        10 if chance.percent(40) => asked("reed_file", "{}".to_string(), chance),
        11 if chance.percent(40) => asked("shell", "{\"command\": ".to_string(), chance),
        12 if chance.percent(60) => finish(run, chance),
        _ => settle_todos(run, chance),
    }
}

fn finish(run: &Run, chance: &mut Chance) -> AskedCall {
    let not_needed: Vec<_> = match chance.percent(70) {
        true => run.plan.open().map(|todo| json!({"id": todo.id.0, "reason": "not after all"})).collect(),
        false => Vec::new(),
    };
    asked("finish", json!({"summary": "done", "not_needed": not_needed}).to_string(), chance)
}

fn settle_todos(run: &Run, chance: &mut Chance) -> AskedCall {
    let todos: Vec<_> = run
        .plan
        .open()
        .take(1 + usize::try_from(chance.below(2)).unwrap())
        .map(|todo| json!({"id": todo.id.0, "title": todo.title, "status": "done"}))
        .collect();
    asked("update_plan", json!({"mode": "patch", "todos": todos}).to_string(), chance)
}
