//! S-60: who ended a run, and why, as the journal says it. A room that goes away ends nothing.

use serde_json::json;
use tiller::domain::budget::Axis;
use tiller::domain::budget::Limit;
use tiller::domain::command::Cancel;
use tiller::domain::command::Command;
use tiller::domain::event::Event;
use tiller::domain::event::Record;
use tiller::domain::id::ClientId;
use tiller::domain::id::Seq;
use tiller::domain::model::FailureClass;
use tiller::domain::run::Run;
use tiller::domain::status::Fired;
use tiller::domain::status::ParkReason;
use tiller::domain::status::Status;
use tiller::protocol::client::Client;

use crate::engine::stage::Manner;
use crate::engine::stage::Stage;
use crate::engine::stage::done;
use crate::engine::stage::failure;
use crate::engine::stage::finish;
use crate::engine::stage::is_parked;
use crate::engine::stage::plan;
use crate::engine::stage::says;
use crate::engine::stage::stage;
use crate::engine::stage::stage_in;

/// The chain of causes of a run's stops: what was asked for and by whom, what failed, what each iteration came to where
/// it did not go on, and each change of status after the start.
fn chain(records: &[Record]) -> Vec<String> {
    let told = |record: &Record| match &record.event {
        Event::ControlRequested { by, .. } => Some(format!("asked by {by}")),
        Event::ModelCallFailed { failure, .. } => Some(format!("failed {:?}", failure.class)),
        Event::IterationClosed { verdict, .. } if !verdict.fired.is_empty() => {
            Some(verdict.fired.iter().map(Fired::phrase).collect::<Vec<_>>().join(" and "))
        }
        Event::StatusChanged { status: Status::Running, by: None } => None,
        Event::StatusChanged { status, by: None } => Some(status.phrase()),
        Event::StatusChanged { status, by: Some(by) } => Some(format!("{} by {by}", status.phrase())),
        _ => None,
    };
    records.iter().filter_map(told).collect()
}

async fn check(stage: &Stage, expected: &[&str]) {
    assert_eq!(chain(&stage.records().await), expected);
}

fn room(stage: &Stage, name: &str) -> Client {
    Client::new(ClientId(name.to_string()), stage.driven.handle.clone(), Seq(0))
}

#[tokio::test(start_paused = true)]
async fn s_60_a_room_that_goes_away_ends_nothing() {
    let lines = vec![says("plan", &[plan()]), says("", &[("work", json!({}))]), says("", &[done(), finish()])];
    let stage = stage(lines, Manner::Ends, |_| {});
    let (mut one, other) = (room(&stage, "one"), room(&stage, "other"));
    one.next().await;
    drop(one);
    let run = stage.until(|run| is_parked(run, &ParkReason::Approval)).await;
    drop(other);
    stage.allow(&run).await;
    stage.until(Run::is_ended).await;
    check(
        &stage,
        &[
            "parked: waiting for approval",
            "running by test",
            "claimed, not verified",
            "completed: claimed, not verified",
        ],
    )
    .await;
}

/// The last room is gone: the run is left, by the engine itself, and nobody else is said to have ended it.
#[tokio::test(start_paused = true)]
async fn s_60_a_run_that_nobody_holds_is_left_and_not_ended() {
    let stage = stage(vec![says("plan", &[plan()])], Manner::Ends, |_| {});
    stage.until(|run| run.iteration.n == 2 && run.model_call.is_some()).await;
    let reader = stage.driven.handle.reader();
    drop(stage.driven.handle);
    stage.driven.task.await.unwrap();
    let records = reader.read(Seq(1), 10_000).await.unwrap();
    assert_eq!(chain(&records), ["asked by tiller", "failed Cancelled", "parked: left"]);
}

#[tokio::test(start_paused = true)]
async fn s_60_a_provider_that_closes_is_the_provider() {
    let broken = || Err(failure(FailureClass::StreamBroken, None));
    let stage = stage(vec![broken(), broken(), broken()], Manner::Ends, |_| {});
    drop(room(&stage, "gone"));
    stage.until(|run| matches!(run.status, Status::Parked(ParkReason::ProviderWait { .. }))).await;
    let failed = ["failed StreamBroken"; 3];
    check(&stage, &[&failed[..], &["parked: provider does not answer"]].concat()).await;
}

#[tokio::test(start_paused = true)]
async fn s_60_an_operator_who_cancels_is_named() {
    let stage = stage(vec![says("plan", &[plan()])], Manner::Ends, |_| {});
    let (first, second) = (room(&stage, "first"), room(&stage, "second"));
    stage.until(|run| run.iteration.n == 2 && run.model_call.is_some()).await;
    second.submit(Command::Cancel(Cancel::Graceful)).await.unwrap();
    let run = stage.until(Run::is_ended).await;
    // What comes after it changes nothing of it.
    first.submit(Command::Cancel(Cancel::Now)).await.unwrap_err();
    drop((first, second));
    assert_eq!(stage.run().await, run);
    check(&stage, &["asked by second", "failed Cancelled", "cancelled"]).await;
}

#[tokio::test(start_paused = true)]
async fn s_60_a_budget_is_named_with_all_that_was_reached() {
    let few = |terms: &mut tiller::domain::terms::Terms| {
        terms.limits.loops = Limit::At(1);
        terms.limits.set(Axis::ToolCalls, Limit::At(1));
    };
    let lines = vec![says("plan", &[plan()]), says("", &[("work", json!({}))])];
    let stage = stage_in(lines, Manner::Ends, |_| {}, few, |world| world);
    let run = stage.until(|run| is_parked(run, &ParkReason::Approval)).await;
    stage.allow(&run).await;
    stage.until(|run| is_parked(run, &ParkReason::Budget(Axis::Loops))).await;
    check(
        &stage,
        &[
            "parked: waiting for approval",
            "running by test",
            "budget (iterations) and budget (tool-calls)",
            "parked: budget (iterations)",
        ],
    )
    .await;
}
