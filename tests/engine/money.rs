//! The money of one run among all of them.

use std::time::Duration;

use serde_json::json;
use tiller::domain::budget::Axis;
use tiller::domain::budget::Limit;
use tiller::domain::budget::ReservationId;
use tiller::domain::command::Command;
use tiller::domain::command::Refusal;
use tiller::domain::daily::What;
use tiller::domain::id::ModelCallId;
use tiller::domain::id::RunId;
use tiller::domain::model::Dialect;
use tiller::domain::money::MicroUsd;
use tiller::domain::money::Price;
use tiller::domain::run::Run;
use tiller::domain::status::ParkReason;
use tiller::domain::status::Status;
use tiller::domain::terms::Terms;
use tiller::domain::time::Timestamp;
use tiller::engine::driver::World;
use tiller::store::ledger::Ledger;

use crate::stage::Manner;
use crate::stage::done;
use crate::stage::finish;
use crate::stage::is_parked;
use crate::stage::plan;
use crate::stage::says;
use crate::stage::stage_in;

/// Real money, a dollar for a hundred thousand tokens: a call costs some cents at worst.
fn costs(terms: &mut Terms) {
    terms.model.dialect = Dialect::Openai;
    terms.model.price =
        Some(Price { input: 10_000_000, cache_read: 10_000_000, cache_write: 10_000_000, output: 10_000_000 });
}

const DAILY: Limit = Limit::At(20_000_000);

fn other_run() -> (RunId, ReservationId) {
    (RunId::from_entropy([2; 12]), ReservationId { call: ModelCallId(1), attempt: 1 })
}

#[tokio::test(start_paused = true)]
async fn s_22_the_daily_ceiling_parks_and_the_run_goes_on_when_the_window_rolls() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::new(dir.path().to_path_buf(), DAILY);
    let (other, id) = other_run();
    let spent = [(id, What::Charged(MicroUsd(19_990_000)))];
    ledger.settle(&other, &spent, Timestamp(1_000_000)).unwrap();
    let lines = vec![says("plan", &[plan()])];
    let with = ledger.clone();
    let stage = stage_in(lines, Manner::Ends, |_| {}, costs, |world| World { ledger: Some(with), ..world });
    let run = stage.until(|run| matches!(run.status, Status::Parked(ParkReason::DailyBudget { .. }))).await;
    assert_eq!((run.pool.reserved(), run.pool.used(Axis::ModelCalls)), (None, 0), "nothing was asked");
    assert!(!run.pool.is_exhausted(Axis::Cost), "the run's own pool is open");
    assert!(run.lacks[0].starts_with("all runs together have $0.01 left of $20.00 in 24 hours"), "{:?}", run.lacks);
    let refused = stage.submit(Command::Resume).await;
    assert!(matches!(refused, Err(Refusal::ReasonNotCleared { .. })), "{refused:?}");
    tokio::time::advance(Duration::from_secs(24 * 60 * 60)).await;
    stage.submit(Command::Resume).await.unwrap();
    stage.until(|run| !run.transcript.is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn what_a_turn_settles_makes_room_for_its_next_call() {
    let dir = tempfile::tempdir().unwrap();
    let lines = vec![says("plan", &[plan()]), says("", &[("work", json!({}))]), says("", &[done(), finish()])];
    // Room for one worst case and a half: the second fits only once the first is settled.
    let probe = stage_in(Vec::new(), Manner::Ends, |_| {}, costs, |world| world);
    let worst = probe.until(|run| run.pool.reserved().is_some()).await.pool.reserved().unwrap().amount.0;
    let ledger = Ledger::new(dir.path().to_path_buf(), Limit::At(worst + worst / 2));
    let with = ledger.clone();
    let stage = stage_in(lines, Manner::Ends, |_| {}, costs, |world| World { ledger: Some(with), ..world });
    let run = stage.until(|run| is_parked(run, &ParkReason::Approval)).await;
    stage.allow(&run).await;
    let run = stage.until(Run::is_ended).await;
    assert_eq!(run.status.word(), "completed");
    drop(stage.driven.handle);
    stage.driven.task.await.unwrap();
    assert_eq!(ledger.spent(Timestamp(1_000_000)).unwrap(), run.pool.spent(), "the ledger knows what the run spent");
}

#[tokio::test(start_paused = true)]
async fn a_reservation_that_the_journal_never_heard_of_is_released() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::new(dir.path().to_path_buf(), DAILY);
    let own = RunId::from_entropy([1; 12]);
    let lost = ReservationId { call: ModelCallId(1), attempt: 1 };
    ledger.reserve(&own, lost, MicroUsd(20_000_000), Timestamp(1_000_000)).unwrap().unwrap();
    let with = ledger.clone();
    let lines = vec![says("plan", &[plan()])];
    let stage = stage_in(lines, Manner::Ends, |_| {}, costs, |world| World { ledger: Some(with), ..world });
    stage.until(|run| !run.transcript.is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn pretended_money_does_not_touch_the_ledger() {
    let dir = tempfile::tempdir().unwrap();
    let with = Ledger::new(dir.path().to_path_buf(), Limit::At(1));
    let lines = vec![says("plan", &[plan()])];
    let stage = stage_in(lines, Manner::Ends, |_| {}, |_| {}, |world| World { ledger: Some(with), ..world });
    stage.until(|run| !run.transcript.is_empty()).await;
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}
