//! What the operator says while the run works.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use serde_json::json;
use tiller::domain::approval::By;
use tiller::domain::approval::Decision;
use tiller::domain::command::Command;
use tiller::domain::command::Policy;
use tiller::domain::command::Refusal;
use tiller::domain::event::Event;
use tiller::domain::id::CallId;
use tiller::domain::id::ClientId;
use tiller::domain::message::Message;
use tiller::domain::run::Run;
use tiller::domain::status::ParkReason;

use crate::chance::Chance;
use crate::engine::stage::Lines;
use crate::engine::stage::Manner;
use crate::engine::stage::done;
use crate::engine::stage::finish;
use crate::engine::stage::is_parked;
use crate::engine::stage::names;
use crate::engine::stage::plan;
use crate::engine::stage::says;
use crate::engine::stage::stage;
use crate::engine::stage::staged;

#[tokio::test(start_paused = true)]
async fn s_39_a_word_around_the_close_of_an_iteration_starts_one_next_iteration_and_is_told_once() {
    let mut orders = BTreeSet::new();
    for seed in 0..1_000 {
        let mut chance = Chance::new(seed);
        let lines = vec![
            says("plan", &[plan()]),
            says("", &[("note", json!({"text": "on the way"}))]),
            says("", &[done(), finish()]),
            says("", &[finish()]),
        ];
        let takes_ms = 2 + chance.below(30);
        let model = Lines { lines: Mutex::new(lines.into()), takes_ms };
        let stage = staged(model, Manner::Ends, |_| {}, |_| {}, |world| world);
        // A millisecond before the reply that closes the first iteration or the second, in the same one, and after it;
        // and in each of them at another point of the driver's turn.
        let close_ms = takes_ms * chance.pick(&[1, 2]);
        tokio::time::sleep(Duration::from_millis(close_ms - 1 + chance.below(3))).await;
        let yields = if chance.percent(70) { chance.below(12) } else { chance.below(100) };
        for _ in 0..yields {
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
        orders.insert(names.join(" "));
    }
    // A close and the next start are one turn: the word comes before both closes, between them, or after both.
    assert_eq!(orders.len(), 3, "{orders:#?}");
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

/// Two rooms decide at the same time, in many orders: one wins, and the other is told that it was decided.
#[tokio::test(start_paused = true)]
async fn s_35_of_two_who_decide_one_wins() {
    for round in 0..98_u64 {
        let lines = vec![says("plan", &[plan()]), says("", &[("work", json!({}))])];
        let stage = stage(lines, Manner::Lasts, |_| {});
        let run = stage.until(|run| is_parked(run, &ParkReason::Approval)).await;
        let (call, _) = *run.waiting().first().unwrap();
        let (id, digest) = (call.id, call.digest().unwrap());
        let decide = |client: &'static str, decision: Decision, yields: u64| {
            let (handle, digest) = (stage.driven.handle.clone(), digest.clone());
            async move {
                for _ in 0..yields {
                    tokio::task::yield_now().await;
                }
                handle.submit(Command::Decide { call: id, digest, decision }, ClientId(client.to_string())).await
            }
        };
        let (one, two) = tokio::join!(
            decide("one", Decision::AllowOnce, round % 7),
            decide("two", Decision::Deny("no".to_string()), round / 7 % 7)
        );
        let loser = match (one, two) {
            (Ok(_), Err(refusal)) | (Err(refusal), Ok(_)) => refusal,
            both => panic!("{both:?}"),
        };
        assert!(matches!(loser, Refusal::AlreadyDecided(_)), "{loser:?}");
        let records = stage.records().await;
        let decided = records.iter().filter(
            |record| matches!(&record.event, Event::ApprovalDecided { call, by: By::Operator(_), .. } if *call == id),
        );
        assert_eq!(decided.count(), 1, "{loser:?}");
    }
}

/// What the operator changes a call into is tried before it counts: where the gate would not let that run, nothing is
/// decided, and the same call can be changed further.
#[tokio::test(start_paused = true)]
async fn a_change_that_would_not_run_decides_nothing_and_can_be_changed_further() {
    let lines = vec![says("plan", &[plan()]), says("", &[("work", json!({"n": 1}))]), says("", &[done(), finish()])];
    let stage = stage(lines, Manner::Ends, |_| {});
    let run = stage.until(|run| is_parked(run, &ParkReason::Approval)).await;
    let (call, _) = run.waiting()[0];
    let edit = |n: u32| Command::Decide {
        call: call.id,
        digest: call.digest().unwrap(),
        decision: Decision::Edit(format!(r#"{{"n":{n}}}"#)),
    };
    let told =
        |why: &str| format!("as you changed it, it would not run: {why}; nothing was decided; change it further");
    for (n, why) in [(113, "the standing rule r113 denies it: work 113"), (114, "There is no 114. Nothing was done")] {
        let before = stage.records().await.len();
        let refusal = stage.submit(edit(n)).await.unwrap_err();
        assert_eq!(refusal.to_string(), told(why));
        assert_eq!(stage.records().await.len(), before, "nothing was recorded");
        assert_eq!(stage.run().await.waiting().len(), 1, "it waits on");
    }
    assert_eq!(stage.executions(), 0);
    stage.submit(edit(2)).await.unwrap();
    let run = stage.until(Run::is_ended).await;
    assert_eq!(stage.executions(), 1);
    assert!(run.waiting().is_empty());
}
