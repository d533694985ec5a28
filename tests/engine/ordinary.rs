//! The way of a run: to its end, through pauses, a failing disk, and being let go.

use std::sync::Mutex;
use std::time::Duration;

use serde_json::json;
use tiller::domain::approval::Decision;
use tiller::domain::command::Command;
use tiller::domain::command::Pause;
use tiller::domain::command::Refusal;
use tiller::domain::event::Event;
use tiller::domain::id::RunId;
use tiller::domain::id::Seq;
use tiller::domain::model::FailureClass;
use tiller::domain::run::Run;
use tiller::domain::status::ParkReason;
use tiller::domain::status::Status;
use tiller::domain::time::Span;
use tiller::domain::tool::OutcomeKind;
use tiller::store::memory::MemoryJournal;
use tokio::time::Instant;

use crate::engine::stage::Lines;
use crate::engine::stage::Manner;
use crate::engine::stage::done;
use crate::engine::stage::failure;
use crate::engine::stage::finish;
use crate::engine::stage::is_parked;
use crate::engine::stage::open;
use crate::engine::stage::plan;
use crate::engine::stage::says;
use crate::engine::stage::stage;
use crate::engine::stage::world;

#[tokio::test(start_paused = true)]
async fn a_run_goes_to_its_end() {
    let lines = vec![says("plan", &[plan()]), says("", &[("work", json!({}))]), says("", &[done(), finish()])];
    let stage = stage(lines, Manner::Ends, |_| {});
    let run = stage.until(|run| is_parked(run, &ParkReason::Approval)).await;
    assert_eq!(stage.executions(), 0, "nothing runs before it is allowed");
    stage.allow(&run).await;
    let run = stage.until(Run::is_ended).await;
    assert_eq!((run.status.word(), stage.executions()), ("completed", 1));
    assert_eq!(run.pool.spent().0, 3 * 110);
}

#[tokio::test(start_paused = true)]
async fn a_rate_limit_is_waited_for_in_its_own_time() {
    let lines = vec![Err(failure(FailureClass::RateLimited, Some(Span::seconds(20)))), says("plan", &[plan()])];
    let stage = stage(lines, Manner::Ends, |_| {});
    let begun = Instant::now();
    let run = stage.until(|run| !run.transcript.is_empty()).await;
    assert!(begun.elapsed() >= Duration::from_secs(20), "{:?}", begun.elapsed());
    assert_eq!(run.pool.spent().0, 110, "the refused attempt costs nothing");
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_is_down_parks_the_run_and_it_goes_on_by_itself() {
    let mut lines: Vec<_> = (0..7).map(|_| Err(failure(FailureClass::Overloaded, None))).collect();
    lines.push(says("plan", &[plan()]));
    let stage = stage(lines, Manner::Ends, |_| {});
    let waits = |run: &Run| matches!(run.status, Status::Parked(ParkReason::ProviderWait { .. }));
    stage.until(waits).await;
    let begun = Instant::now();
    stage.until(|run| !run.transcript.is_empty()).await;
    assert!(begun.elapsed() >= Duration::from_secs(500), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn s_64_what_can_not_be_written_is_not_done_and_goes_on_later() {
    let lines = vec![says("plan", &[plan()]), says("", &[("work", json!({}))])];
    // The appends before it: the start, the first reply, the second, what the call would touch.
    let failing = |journal: &mut MemoryJournal| (5..=7).for_each(|n| journal.fail_append(n));
    let stage = stage(lines, Manner::Ends, failing);
    let run = stage.until(|run| is_parked(run, &ParkReason::Approval)).await;
    let (call, _) = *run.waiting().first().unwrap();
    let decide = Command::Decide { call: call.id, digest: call.digest().unwrap(), decision: Decision::AllowOnce };
    let answer = stage.submit(decide).await;
    assert!(matches!(answer, Err(Refusal::Storage(_))), "{answer:?}");
    assert_eq!(stage.executions(), 0, "an allowance that is not durable runs nothing");
    assert_eq!(stage.run().await, run, "on disk it is as it was");
    let said = stage.driven.handle.halted().unwrap();
    assert!(said.contains("nothing was recorded; see to that"), "{said}");
    assert_eq!(stage.submit(Command::Resume).await, Err(Refusal::Stopped(said)));
    // There is room again, and another process takes the run: the decision is given once more, and holds.
    let journal = MemoryJournal::new(&stage.records().await).unwrap();
    let model = Lines { lines: Mutex::new(vec![says("", &[done(), finish()])].into()), takes_ms: 0 };
    let (world, executions) = world(model, Manner::Ends);
    let stage = open(run, journal, world, executions);
    let run = stage.until(|run| is_parked(run, &ParkReason::Approval)).await;
    stage.allow(&run).await;
    let run = stage.until(Run::is_ended).await;
    assert_eq!((run.status.word(), stage.executions()), ("completed", 1));
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_recovers_within_moments_is_not_noticed() {
    let lines = vec![says("plan", &[plan()]), says("", &[("work", json!({}))]), says("", &[done(), finish()])];
    let stage = stage(lines, Manner::Ends, |journal| (5..=6).for_each(|n| journal.fail_append(n)));
    let run = stage.until(|run| is_parked(run, &ParkReason::Approval)).await;
    stage.allow(&run).await;
    stage.until(Run::is_ended).await;
    assert_eq!(stage.executions(), 1);
}

#[tokio::test(start_paused = true)]
async fn pausing_now_ends_the_tool_and_the_run_goes_on_later() {
    let lines = vec![says("plan", &[plan()]), says("", &[("work", json!({}))]), says("", &[done(), finish()])];
    let stage = stage(lines, Manner::Lasts, |_| {});
    let run = stage.until(|run| is_parked(run, &ParkReason::Approval)).await;
    stage.allow(&run).await;
    stage.until(|run| run.running_calls().next().is_some()).await;
    stage.submit(Command::Pause(Pause::Now)).await.unwrap();
    let run = stage.until(|run| is_parked(run, &ParkReason::Paused)).await;
    assert!(!run.is_busy());
    stage.submit(Command::Resume).await.unwrap();
    let run = stage.until(Run::is_ended).await;
    assert_eq!((run.status.word(), stage.executions()), ("completed", 1));
}

#[tokio::test(start_paused = true)]
async fn letting_go_ends_what_runs_and_records_it() {
    let lines = vec![says("plan", &[plan()]), says("", &[("work", json!({}))])];
    let stage = stage(lines, Manner::Lasts, |_| {});
    let run = stage.until(|run| is_parked(run, &ParkReason::Approval)).await;
    stage.allow(&run).await;
    stage.until(|run| run.running_calls().next().is_some()).await;
    let reader = stage.driven.handle.reader();
    drop(stage.driven.handle);
    stage.driven.task.await.unwrap();
    let records = reader.read(Seq(1), 10_000).await.unwrap();
    let run = Run::fold(&RunId::from_entropy([1; 12]), &records).unwrap();
    assert_eq!(run.status, Status::Parked(ParkReason::Shutdown));
    let ended = records.iter().any(|record| {
        matches!(&record.event, Event::ToolCallFinished { outcome, .. } if outcome.kind == OutcomeKind::Cancelled)
    });
    assert!(ended, "the call has its outcome");
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_panics_is_a_call_that_failed() {
    let lines = vec![says("plan", &[plan()]), says("", &[("work", json!({}))]), says("", &[done(), finish()])];
    let stage = stage(lines, Manner::Panics, |_| {});
    let run = stage.until(|run| is_parked(run, &ParkReason::Approval)).await;
    stage.allow(&run).await;
    let run = stage.until(Run::is_ended).await;
    assert_eq!(run.status.word(), "completed");
}
