//! Who looks at a run, and what happens while something streams.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use tiller::domain::command::Cancel;
use tiller::domain::command::Command;
use tiller::domain::event::Event;
use tiller::domain::id::ClientId;
use tiller::domain::id::Seq;
use tiller::domain::message::Message;
use tiller::domain::model::Delta;
use tiller::domain::model::DeltaSource;
use tiller::domain::model::ModelFailure;
use tiller::domain::model::ModelReply;
use tiller::domain::model::ModelRequest;
use tiller::domain::run::Run;
use tiller::domain::status::ParkReason;
use tiller::domain::summary::Listed;
use tiller::domain::summary::Summary;
use tiller::domain::time::Timestamp;
use tiller::engine::driver::World;
use tiller::headless::table;
use tiller::model::Model;
use tiller::protocol::client::Client;
use tiller::protocol::client::Update;
use tokio::sync::broadcast;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::engine::stage::Manner;
use crate::engine::stage::is_parked;
use crate::engine::stage::plan;
use crate::engine::stage::says;
use crate::engine::stage::stage;
use crate::engine::stage::stage_in;

/// A model whose reply comes in very many scraps, and all at once.
struct Torrent {
    scraps: usize,
}

#[async_trait]
impl Model for Torrent {
    async fn call(
        &self,
        request: ModelRequest,
        deltas: broadcast::Sender<Delta>,
        _cancel: CancellationToken,
    ) -> Result<ModelReply, ModelFailure> {
        let scraps: Vec<String> = (0..self.scraps).map(|number| format!("w{number} ")).collect();
        for text in &scraps {
            let _ = deltas.send(Delta { source: DeltaSource::Text(request.call), text: text.clone() });
        }
        says(&scraps.concat(), &[plan(), ("ask_operator", json!({"question": "and now?"}))])
    }
}

/// S-61: a room that sleeps through 50,000 scraps loses scraps, is told how many, and loses no record and no text.
#[tokio::test(start_paused = true)]
async fn s_61_a_room_that_lags_loses_no_record() {
    let furnish = |world: World| World { model: Arc::new(Torrent { scraps: 50_000 }), ..world };
    let stage = stage_in(Vec::new(), Manner::Ends, |_| {}, |_| {}, furnish);
    let mut room = Client::new(ClientId("room".to_string()), stage.driven.handle.clone(), Seq(0));
    let run = stage.until(|run| is_parked(run, &ParkReason::Question)).await;
    let (mut records, mut lost, mut heard) = (Vec::new(), 0, 0);
    while room.is_behind() || lost == 0 {
        match tokio::time::timeout(Duration::from_secs(60), room.next()).await.expect("nothing more came") {
            Update::Records(some) => records.extend(some),
            Update::Lost(count) => lost += count,
            Update::Today(_) => {}
            Update::Delta(_) => heard += 1,
            Update::Closed(why) => panic!("closed: {why:?}"),
        }
    }
    assert_eq!(records, stage.records().await, "every record, in order, once");
    assert!(lost > 40_000 && lost + heard <= 50_000, "{lost} lost, {heard} heard");
    let said = run.transcript.entries().find_map(|entry| match &entry.message {
        Message::Assistant { text, .. } => Some(text.clone()),
        _ => None,
    });
    let said = said.unwrap();
    assert!(said.starts_with("w0 w1 ") && said.trim_end().ends_with("w49999"), "{} bytes", said.len());
    assert_eq!(said.split_whitespace().count(), 50_000);
}

#[tokio::test(start_paused = true)]
async fn s_45_cancel_while_streaming() {
    let stage = stage(vec![says("plan", &[plan()])], Manner::Ends, |_| {});
    stage.until(|run| run.iteration.n == 2 && run.model_call.is_some()).await;
    let begun = Instant::now();
    stage.submit(Command::Cancel(Cancel::Graceful)).await.unwrap();
    let run = stage.until(Run::is_ended).await;
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    assert_eq!((run.status.word(), run.pool.reserved()), ("cancelled", None));
    assert!(run.pool.spent().0 > 110, "what came is charged: {}", run.pool.spent());
    let told = run.transcript.entries().any(|entry| format!("{entry:?}").contains("half a thought"));
    assert!(!told, "it is no part of the conversation");
    let kept = stage.records().await.iter().any(|record| {
        matches!(&record.event, Event::ModelCallFailed { failure, .. } if failure.received.text == "half a thought")
    });
    assert!(kept, "it is kept as a note");
}

/// Five hours of nothing: one run waits for its operator, one is in a call. Nothing is ended, nothing is written, and
/// the list says what each of them does.
#[tokio::test(start_paused = true)]
async fn s_43_what_takes_long_is_not_dead_and_what_waits_is_not_working() {
    let lines = || vec![says("plan", &[plan()]), says("", &[("work", json!({}))])];
    let waits = stage(lines(), Manner::Lasts, |_| {});
    let works = stage(lines(), Manner::Lasts, |_| {});
    let waiting = waits.until(|run| is_parked(run, &ParkReason::Approval)).await;
    let run = works.until(|run| is_parked(run, &ParkReason::Approval)).await;
    works.allow(&run).await;
    let working = works.until(|run| run.running_calls().next().is_some()).await;
    while works.executions() == 0 {
        tokio::task::yield_now().await;
    }
    tokio::time::sleep(Duration::from_secs(5 * 3_600)).await;
    assert_eq!((waits.run().await, works.run().await), (waiting.clone(), working.clone()), "nothing was written");
    assert_eq!((waits.driven.handle.halted(), works.driven.handle.halted()), (None, None));
    assert_eq!(works.executions(), 1, "the call runs on");
    let now = Timestamp(1_000_000 + 5 * 3_600_000);
    let listed = |run: &Run| Listed::Run { summary: Box::new(Summary::of(run)), held_by: Some(1) };
    let [one, two] = [&waiting, &working].map(|run| table::runs(&[listed(run)], now, None));
    assert!(one.contains("waiting for approval") && !one.contains("running"), "{one}");
    assert!(two.contains("running") && !two.contains("interrupted"), "{two}");
    assert!(one.contains("5 h ago") && two.contains("5 h ago"), "the last progress is as old as it is: {one}{two}");
    works.submit(Command::Cancel(Cancel::Now)).await.unwrap();
    works.until(Run::is_ended).await;
}
