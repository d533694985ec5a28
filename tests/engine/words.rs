//! What the operator says while the run works.

use std::sync::Mutex;
use std::time::Duration;

use serde_json::json;
use tiller::domain::command::Command;
use tiller::domain::command::Policy;
use tiller::domain::event::Record;
use tiller::domain::id::CallId;
use tiller::domain::message::Message;
use tiller::domain::run::Run;
use tiller::domain::status::ParkReason;

use crate::stage::Lines;
use crate::stage::Manner;
use crate::stage::done;
use crate::stage::finish;
use crate::stage::is_parked;
use crate::stage::plan;
use crate::stage::says;
use crate::stage::stage;
use crate::stage::staged;

/// Every event of a journal by its name.
fn names(records: &[Record]) -> Vec<&'static str> {
    records.iter().map(|record| record.event.name()).collect()
}

#[tokio::test(start_paused = true)]
async fn s_39_a_word_around_the_close_of_an_iteration_starts_one_next_iteration_and_is_told_once() {
    for turn in 0..1_000_u64 {
        let lines = vec![
            says("plan", &[plan()]),
            says("", &[("note", json!({"text": "on the way"}))]),
            says("", &[done(), finish()]),
            says("", &[finish()]),
        ];
        let model = Lines { lines: Mutex::new(lines.into()), takes_ms: 10 };
        let stage = staged(model, Manner::Ends, |_| {}, |_| {}, |world| world);
        // A millisecond before the reply that closes the first iteration, in the same one, and after it; and in each
        // of them at another point of the driver's turn.
        tokio::time::sleep(Duration::from_millis(9 + turn % 3)).await;
        for _ in 0..turn / 3 % 12 {
            tokio::task::yield_now().await;
        }
        let word = Command::Interject { text: "mind the gap".to_string(), policy: Policy::Next };
        stage.submit(word).await.unwrap();
        let run = stage.until(Run::is_ended).await;
        let records = stage.records().await;
        let names = names(&records);
        let count = |name: &str| names.iter().filter(|one| **one == name).count();
        assert_eq!(count("interjection_delivered"), 1);
        assert_eq!(count("iteration_started"), count("iteration_closed"));
        assert_eq!(count("iteration_started"), count("model_call_started"), "each iteration asks once: {names:?}");
        let place = names.iter().position(|name| *name == "interjection_delivered").unwrap();
        assert_eq!(names[place - 1], "iteration_started", "it comes with the start of an iteration");
        assert_eq!(run.transcript.entries().filter(|entry| is_word(&entry.message)).count(), 1);
    }
}

fn is_word(message: &Message) -> bool {
    matches!(message, Message::Operator { text, .. } if text == "mind the gap")
}

#[tokio::test(start_paused = true)]
async fn s_40_an_interrupt_ends_the_tool_that_runs_and_the_words_follow() {
    let batch = [("work", json!({"n": 1})), ("work", json!({"n": 2})), ("note", json!({"text": "three"}))];
    let lines = vec![says("plan", &[plan()]), says("", &batch), says("", &[done(), finish()])];
    let stage = stage(lines, Manner::Lasts, |_| {});
    let run = stage.until(|run| is_parked(run, &ParkReason::Approval)).await;
    stage.allow(&run).await;
    let run = stage.until(|run| run.running_calls().next().is_some()).await;
    assert!(run.waiting().iter().any(|(call, _)| call.id == CallId(3)), "the second waits for a decision");
    let word = Command::Interject { text: "mind the gap".to_string(), policy: Policy::Interrupt };
    stage.submit(word).await.unwrap();
    let run = stage.until(Run::is_ended).await;
    assert_eq!((run.status.word(), stage.executions()), ("completed", 1), "the second never ran");
    let talk: Vec<String> = run.transcript.entries().map(|entry| format!("{:?}", entry.message)).collect();
    let place = |part: &str| talk.iter().position(|line| line.contains(part)).unwrap_or_else(|| panic!("{talk:#?}"));
    assert!(place("ended in the middle") < place("mind the gap"));
    assert!(place("not run: operator steered") < place("mind the gap"));
}
