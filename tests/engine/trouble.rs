//! What breaks: what a run needs, the loop itself, the provider.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use tiller::domain::approval::Decision;
use tiller::domain::budget::Axis;
use tiller::domain::budget::Limit;
use tiller::domain::command::Cancel;
use tiller::domain::command::Command;
use tiller::domain::command::Policy;
use tiller::domain::command::Refusal;
use tiller::domain::event::Event;
use tiller::domain::event::Record;
use tiller::domain::id::CallId;
use tiller::domain::model::Delta;
use tiller::domain::model::FailureClass;
use tiller::domain::model::ModelFailure;
use tiller::domain::model::ModelReply;
use tiller::domain::model::ModelRequest;
use tiller::domain::model::Purpose;
use tiller::domain::money::MicroUsd;
use tiller::domain::run::Run;
use tiller::domain::status::Lack;
use tiller::domain::status::ParkReason;
use tiller::domain::status::Status;
use tiller::domain::summary::Summary;
use tiller::domain::terms::Check;
use tiller::domain::terms::Terms;
use tiller::domain::time::Span;
use tiller::domain::time::Timestamp;
use tiller::engine::clock::Clock;
use tiller::engine::driver::World;
use tiller::model::Model;
use tokio::sync::broadcast;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::engine::stage::Lines;
use crate::engine::stage::Manner;
use crate::engine::stage::TestClock;
use crate::engine::stage::done;
use crate::engine::stage::failure;
use crate::engine::stage::finish;
use crate::engine::stage::is_parked;
use crate::engine::stage::plan;
use crate::engine::stage::says;
use crate::engine::stage::stage;
use crate::engine::stage::stage_in;

#[tokio::test(start_paused = true)]
async fn s_50_a_resume_without_what_it_needs_asks_nobody() {
    let lacks = || vec![Lack { reason: ParkReason::Credentials, sentence: "set TEST_KEY".to_string() }];
    let preflight = Box::new(move |_: &Run| lacks());
    let stage = stage_in(vec![], Manner::Ends, |_| {}, |_| {}, |world| World { preflight, ..world });
    let run = stage.until(|run| is_parked(run, &ParkReason::Credentials)).await;
    assert_eq!((run.pool.used(Axis::ModelCalls), run.pool.used(Axis::Loops), run.pool.spent().0), (0, 0, 0));
    let refused = stage.submit(Command::Resume).await.unwrap_err().to_string();
    assert_eq!(refused, "the run can't go on yet: credentials; set TEST_KEY; then resume");
    assert_eq!(stage.run().await, run);
}

/// The list of runs is told whenever something begins or ceases to wait, also where the status stays as it is.
#[tokio::test(start_paused = true)]
async fn what_a_list_says_of_what_waits_is_true_after_each_decision() {
    let told = Arc::new(Mutex::new(None));
    let keep = told.clone();
    let on_change = Box::new(move |now: &Summary| *keep.lock().unwrap() = Some((now.waiting, now.cost_limit)));
    let two = [("work", json!({"n": 1})), ("work", json!({"n": 2}))];
    let lines = vec![says("plan", &[plan()]), says("", &two)];
    let stage = stage_in(lines, Manner::Ends, |_| {}, |_| {}, |world| World { on_change, ..world });
    let run = stage.until(|run| is_parked(run, &ParkReason::Approval)).await;
    let listed = || told.lock().unwrap().map(|(waiting, _)| waiting);
    assert_eq!((run.waiting_count(), listed()), (2, Some(2)));
    let (second, _) = run.waiting()[1];
    let (call, digest, decision) = (second.id, second.digest().unwrap(), Decision::Deny(String::new()));
    stage.submit(Command::Decide { call, digest, decision }).await.unwrap();
    let run = stage.run().await;
    assert!(is_parked(&run, &ParkReason::Approval), "the first waits still: {:?}", run.status);
    assert_eq!((run.waiting_count(), listed()), (1, Some(1)));
    let limit = Limit::At(9_000_000);
    stage.submit(Command::Raise { axis: Axis::Cost, limit }).await.unwrap();
    assert_eq!(*told.lock().unwrap(), Some((1, limit)));
}

/// Breaks the loop down whenever it begins to run, so many times.
fn breaks_down(times: u32) -> impl FnOnce(World) -> World {
    let left = AtomicU32::new(times);
    let on_change = Box::new(move |now: &Summary| {
        let breaks = now.status == Status::Running
            && left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
        assert!(!breaks, "the loop breaks down");
    });
    |world| World { on_change, ..world }
}

#[tokio::test(start_paused = true)]
async fn s_56_a_loop_that_breaks_down_once_starts_anew_from_the_journal() {
    let lines = vec![says("lost", &[]), says("plan", &[plan()]), says("", &[done(), finish()])];
    let stage = stage_in(lines, Manner::Ends, |_| {}, |_| {}, breaks_down(1));
    let run = stage.until(Run::is_ended).await;
    assert_eq!((run.status.word(), run.progress.recoveries), ("completed", 0));
    assert!(run.pool.unverified() > MicroUsd(0), "the call that was lost is charged in full");
}

#[tokio::test(start_paused = true)]
async fn s_56_a_loop_that_breaks_down_twice_is_parked_and_waits_for_the_operator() {
    let lines = vec![says("lost", &[]), says("lost", &[]), says("lost", &[]), says("plan", &[plan()])];
    let stage = stage_in(lines, Manner::Ends, |_| {}, |_| {}, breaks_down(3));
    stage.until(|run| is_parked(run, &ParkReason::EnginePanic)).await;
    assert_eq!(stage.driven.handle.halted(), None);
    // The one who asks learns nothing, since the loop breaks down over it; the journal says what became of it.
    let _ = stage.submit(Command::Resume).await;
    stage.until(|run| is_parked(run, &ParkReason::EnginePanic) && run.pool.used(Axis::ModelCalls) == 3).await;
    stage.submit(Command::Resume).await.unwrap();
    stage.until(|run| !run.transcript.is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn s_44_what_a_leftover_task_comes_to_is_no_record() {
    let lines = vec![says("plan", &[plan()]), says("", &[("work", json!({}))])];
    let breaks = Arc::new(AtomicU32::new(0));
    let clock = Arc::new(Fragile { clock: TestClock(Instant::now()), breaks: breaks.clone() });
    let stage = stage_in(lines, Manner::Lasts, |_| {}, |_| {}, |world| World { clock, ..world });
    let run = stage.until(|run| is_parked(run, &ParkReason::Approval)).await;
    let (call, _) = *run.waiting().first().unwrap();
    stage.allow(&run).await;
    while stage.executions() == 0 {
        tokio::task::yield_now().await;
    }
    breaks.store(1, Ordering::SeqCst);
    // The loop breaks down over it, before it is a record.
    let said = stage.submit(Command::Interject { text: "hello".to_string(), policy: Policy::Next }).await;
    assert_eq!(said, Err(Refusal::Unanswered));
    stage.until(|run| is_parked(run, &ParkReason::OutcomeUnknown)).await;
    let ends = stage.records().await.iter().filter(|record| is_end_of(record, call.id)).count();
    assert_eq!((ends, stage.executions()), (0, 1), "it ran, nobody knows how far, and it is not said to have ended");
}

/// A clock that breaks down so many times.
struct Fragile {
    clock: TestClock,
    breaks: Arc<AtomicU32>,
}

#[async_trait]
impl Clock for Fragile {
    fn now(&self) -> Timestamp {
        let breaks = self.breaks.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
        assert!(!breaks, "the loop breaks down");
        self.clock.now()
    }

    fn mono(&self) -> Span {
        self.clock.mono()
    }

    async fn sleep_until(&self, at: Timestamp) {
        self.clock.sleep_until(at).await;
    }
}

fn is_end_of(record: &Record, id: CallId) -> bool {
    matches!(&record.event, Event::ToolCallFinished { call, .. } if *call == id)
}

#[tokio::test(start_paused = true)]
async fn a_long_wait_for_the_provider_is_not_active_time() {
    let waits = |seconds| Err(failure(FailureClass::RateLimited, Some(Span::seconds(seconds))));
    let lines = vec![waits(600), waits(50), says("plan", &[plan()])];
    let stage = stage(lines, Manner::Ends, |_| {});
    let run = stage.until(|run| !run.transcript.is_empty()).await;
    let active = run.pool.used(Axis::Active);
    assert!((50_000..60_000).contains(&active), "{active} ms");
}

#[tokio::test(start_paused = true)]
async fn s_52_a_cancel_during_a_wait_is_immediate() {
    let stage = stage(vec![Err(failure(FailureClass::RateLimited, Some(Span::seconds(600))))], Manner::Ends, |_| {});
    stage.until(|run| run.retry_at.is_some()).await;
    let begun = Instant::now();
    stage.submit(Command::Cancel(Cancel::Now)).await.unwrap();
    stage.until(|run| run.status == Status::Cancelled).await;
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
}

/// A model that answers as told, and never as a judge.
struct SilentJudge(Lines);

#[async_trait]
impl Model for SilentJudge {
    async fn call(
        &self,
        request: ModelRequest,
        deltas: broadcast::Sender<Delta>,
        cancel: CancellationToken,
    ) -> Result<ModelReply, ModelFailure> {
        if let Purpose::Judge(_) = request.purpose {
            cancel.cancelled().await;
            return Err(failure(FailureClass::Cancelled, None));
        }
        self.0.call(request, deltas, cancel).await
    }
}

#[tokio::test(start_paused = true)]
async fn s_15_a_judge_that_does_not_answer_in_time_counts_as_failed() {
    let claim = || says("", &[done(), finish()]);
    let lines = vec![says("plan", &[plan()]), claim(), claim(), claim()];
    let model = Arc::new(SilentJudge(Lines { lines: Mutex::new(lines.into()), takes_ms: 0 }));
    let judged = |terms: &mut Terms| terms.checks = vec![Check::ModelJudge("is it right?".to_string())];
    let stage = stage_in(vec![], Manner::Ends, |_| {}, judged, |world| World { model, ..world });
    let begun = Instant::now();
    let run = stage.until(|run| is_parked(run, &ParkReason::Verification)).await;
    let (least, most) = (Duration::from_secs(3 * 120), Duration::from_secs(3 * 120 + 5));
    assert!((least..most).contains(&begun.elapsed()), "{:?}", begun.elapsed());
    assert_eq!(run.pool.reserved(), None);
    let records = stage.records().await;
    let failed = records.iter().filter(|record| {
        matches!(&record.event, Event::AcceptanceChecked { passed: false, detail, .. } if detail.contains("2m00s"))
    });
    assert_eq!(failed.count(), 3);
}
