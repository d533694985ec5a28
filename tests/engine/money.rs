//! The money of one run among all of them.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use tiller::domain::approval::Decision;
use tiller::domain::budget::Axis;
use tiller::domain::budget::Basis;
use tiller::domain::budget::Limit;
use tiller::domain::budget::ReservationId;
use tiller::domain::command::Command;
use tiller::domain::command::Pause;
use tiller::domain::command::Refusal;
use tiller::domain::daily::Hold;
use tiller::domain::daily::Today;
use tiller::domain::event::Event;
use tiller::domain::event::Owner;
use tiller::domain::event::OwnerMode;
use tiller::domain::event::Record;
use tiller::domain::id::ClientId;
use tiller::domain::id::ModelCallId;
use tiller::domain::id::RunId;
use tiller::domain::id::Seq;
use tiller::domain::model::Dialect;
use tiller::domain::money::MicroUsd;
use tiller::domain::money::Price;
use tiller::domain::pool::Known;
use tiller::domain::run::Run;
use tiller::domain::status::ParkReason;
use tiller::domain::status::Status;
use tiller::domain::terms::Terms;
use tiller::domain::time::Now;
use tiller::domain::time::Span;
use tiller::domain::time::Timestamp;
use tiller::engine::clock::Clock;
use tiller::engine::driver;
use tiller::engine::driver::World;
use tiller::machine::create;
use tiller::machine::lineage;
use tiller::protocol::client::Client;
use tiller::protocol::client::Update;
use tiller::store::Journal;
use tiller::store::Reader;
use tiller::store::StoreError;
use tiller::store::ledger::Ledger;
use tiller::store::memory::MemoryJournal;
use tokio::time::Instant;

use crate::engine::stage::Lines;
use crate::engine::stage::Manner;
use crate::engine::stage::TestClock;
use crate::engine::stage::done;
use crate::engine::stage::finish;
use crate::engine::stage::is_parked;
use crate::engine::stage::open;
use crate::engine::stage::plan;
use crate::engine::stage::says;
use crate::engine::stage::stage_in;
use crate::engine::stage::staged;
use crate::engine::stage::terms;
use crate::engine::stage::world;

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
    let hold = Hold { id, at: Timestamp(1_000_000) };
    ledger.hold(&other, hold, MicroUsd(19_990_000)).unwrap().unwrap();
    let lines = vec![says("plan", &[plan()])];
    let with = ledger.clone();
    let stage = stage_in(lines, Manner::Ends, |_| {}, costs, |world| World { ledger: Some(with), ..world });
    let run = stage.until(|run| matches!(run.status, Status::Parked(ParkReason::DailyBudget { .. }))).await;
    assert_eq!((run.pool.reserved(), run.pool.used(Axis::ModelCalls)), (None, 0), "nothing was asked");
    assert!(!run.pool.is_exhausted(Axis::Cost), "the run's own pool is open");
    assert!(run.lacks[0].starts_with("all runs together have $0.01 left of $20.00 in 24 hours"), "{:?}", run.lacks);
    let mut room = Client::new(ClientId("room".to_string()), stage.driven.handle.clone(), run.seq);
    let told = tokio::time::timeout(Duration::from_secs(60), room.next()).await.expect("nothing is told");
    let today = Today { spent: MicroUsd(19_990_000), limit: DAILY };
    assert!(matches!(told, Update::Today(one) if one == today), "{told:?}");
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
    let hold = Hold { id: lost, at: Timestamp(999_999) };
    ledger.hold(&own, hold, MicroUsd(20_000_000)).unwrap().unwrap();
    let with = ledger.clone();
    let lines = vec![says("plan", &[plan()])];
    let stage = stage_in(lines, Manner::Ends, |_| {}, costs, |world| World { ledger: Some(with), ..world });
    stage.until(|run| !run.transcript.is_empty()).await;
}

/// A process dies while its model is asked, and the operator puts back the run as it was before: whatever the journal
/// does not know of any more may have been billed.
#[tokio::test(start_paused = true)]
async fn a_call_that_had_begun_when_its_journal_was_put_back_counts_at_its_worst() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::new(dir.path().to_path_buf(), Limit::Unlimited);
    let mut lost = MicroUsd(0);
    for life in 1..=3 {
        let with = ledger.clone();
        let wall = Arc::new(AtomicI64::new(life));
        let clock = Arc::new(Jumping { clock: TestClock(Instant::now()), wall });
        let world = |world| World { ledger: Some(with), clock, ..world };
        let stage = stage_in(Vec::new(), Manner::Ends, |_| {}, costs, world);
        let run = stage.until(|run| run.pool.reserved().is_some()).await;
        lost = lost.plus(run.pool.reserved().unwrap().amount);
        let begun = || std::fs::read_to_string(dir.path().join("ledger.jsonl")).unwrap().matches("begun").count();
        let patience = std::time::Instant::now() + Duration::from_secs(30);
        while i64::try_from(begun()).unwrap() < life {
            assert!(std::time::Instant::now() < patience, "the ledger is not told that the call begins");
            tokio::task::yield_now().await;
        }
        stage.driven.task.abort();
        let now = Timestamp(10_000_000_000);
        assert_eq!(ledger.spent(now).unwrap(), lost, "life {life}");
    }
}

/// A journal in memory, and somebody who settles the run's hold in the ledger as soon as it is recorded the first time.
struct Robbed {
    journal: MemoryJournal,
    ledger: Option<Ledger>,
    run: RunId,
}

#[async_trait]
impl Journal for Robbed {
    async fn append(&mut self, records: Vec<Record>) -> Result<(), StoreError> {
        let reserves = records.iter().any(|record| matches!(record.event, Event::BudgetReserved { .. }));
        self.journal.append(records).await?;
        if let Some(ledger) = self.ledger.take_if(|_| reserves) {
            ledger.settle_lost(&self.run, |_| Known::Unknown, Timestamp(1_000_000)).unwrap();
        }
        Ok(())
    }

    fn reader(&self) -> Arc<dyn Reader> {
        self.journal.reader()
    }
}

/// What such a call costs could count nowhere, so it is not made: it costs nothing, and the next attempt holds anew.
#[tokio::test(start_paused = true)]
async fn a_call_whose_hold_the_ledger_has_lost_is_not_made() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::new(dir.path().to_path_buf(), DAILY);
    let (world, _) =
        world(Lines { lines: Mutex::new(vec![says("plan", &[plan()])].into()), takes_ms: 0 }, Manner::Ends);
    let mut terms = terms(world.tools.specs());
    costs(&mut terms);
    let first = create(terms, Now::default());
    let run = Run::begin(RunId::from_entropy([1; 12]), &first).unwrap();
    let journal = MemoryJournal::new(&[first]).unwrap();
    let journal = Robbed { journal, ledger: Some(ledger.clone()), run: run.id.clone() };
    let owner = Owner { pid: 1, host: "test".to_string(), version: "0".to_string(), mode: OwnerMode::Drives };
    let driven = driver::start(run, journal, World { ledger: Some(ledger.clone()), ..world }, owner);
    let mut client = Client::new(ClientId("test".to_string()), driven.handle.clone(), Seq(1));
    let mut records = Vec::new();
    while !records.iter().any(|record: &Record| matches!(record.event, Event::ModelCallFinished { .. })) {
        let told = tokio::time::timeout(Duration::from_secs(600), client.next()).await.expect("nothing is told");
        if let Update::Records(more) = told {
            records.extend(more);
        }
    }
    let failed: Vec<&Event> = records
        .iter()
        .map(|record| &record.event)
        .filter(|event| matches!(event, Event::ModelCallFailed { .. }))
        .collect();
    assert!(format!("{failed:?}").contains("does not know its reservation any more; the request was not sent"));
    let charges = records.iter().filter_map(|record| match &record.event {
        Event::BudgetSettled { charge, .. } => Some(charge.basis),
        _ => None,
    });
    assert_eq!(charges.collect::<Vec<_>>(), [Basis::NotAccepted, Basis::Reported]);
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

/// A fork of the tenth iteration and its parent go on at the same time: each is a run of its own with money of its own,
/// the parent is untouched by it, no leave goes over, and all of it counts in the daily pool.
#[tokio::test(start_paused = true)]
async fn s_66_the_daily_pool_sums_a_fork_and_its_parent() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::new(dir.path().to_path_buf(), DAILY);
    let works = |n: u64| says("", &[("work", json!({ "n": n })), todo(n)]);
    let mut lines = vec![says("plan", &[plan()])];
    lines.extend((2..=11).map(works));
    let rest = |n: u64| vec![works(n), says("", &[done(), finish()])];
    lines.extend(rest(12));
    let with = ledger.clone();
    let parent = stage_in(lines, Manner::Ends, |_| {}, costs, |world| World { ledger: Some(with), ..world });
    let run = parent.until(|run| is_parked(run, &ParkReason::Approval)).await;
    let (call, _) = *run.waiting().first().unwrap();
    let (call, digest) = (call.id, call.digest().unwrap());
    parent.submit(Command::Decide { call, digest, decision: Decision::AllowTool }).await.unwrap();
    parent.until(|run| run.iteration.n == 10).await;
    parent.submit(Command::Pause(Pause::AfterIteration)).await.unwrap();
    parent.until(|run| is_parked(run, &ParkReason::Paused)).await;
    let records = parent.records().await;
    let (beginning, n) = lineage::beginning(&records, Some(10)).unwrap();
    let id = RunId::from_entropy([2; 12]);
    let past = Run::fold(&id, beginning).unwrap();
    assert!(past.granted_tools.contains("work"), "there is a leave that could go over");
    let terms = Terms::clone(&past.terms);
    let client = ClientId("test".to_string());
    let stands = Run::fold(&parent.id, &records).unwrap();
    let (run, record) = lineage::fork(past, &stands, n, terms, &client, Now::default()).unwrap();
    let journal: Vec<Record> = beginning.iter().cloned().chain([record]).collect();
    let model = Lines { lines: Mutex::new(rest(11).into()), takes_ms: 0 };
    let (world, executions) = world(model, Manner::Ends);
    let world = World { ledger: Some(ledger.clone()), ..world };
    let child = open(run, MemoryJournal::new(&journal).unwrap(), world, executions);
    let asks = child.until(|run| is_parked(run, &ParkReason::Approval)).await;
    assert_eq!(child.executions(), 0, "the same tool is asked about again");
    assert_eq!(parent.records().await, records, "the parent is untouched");
    parent.submit(Command::Resume).await.unwrap();
    child.allow(&asks).await;
    let (ended, other) = tokio::join!(parent.until(Run::is_ended), child.until(Run::is_ended));
    assert_eq!((ended.status.word(), other.status.word()), ("completed", "completed"));
    assert_eq!((parent.executions(), child.executions()), (11, 1));
    assert_eq!(parent.records().await[..records.len()], records, "the parent only went on");
    for stage in [parent, child] {
        drop(stage.driven.handle);
        stage.driven.task.await.unwrap();
    }
    assert!(other.pool.spent() > MicroUsd(0) && other.pool.spent() < ended.pool.spent(), "the fork begins at nothing");
    assert_eq!(ledger.spent(Timestamp(1_000_000)).unwrap().0, ended.pool.spent().0 + other.pool.spent().0);
    // Both have a reservation of the same number, and nothing is booked under the name of the other: the key is that of
    // the run and the call.
    let booked = std::fs::read_to_string(dir.path().join("ledger.jsonl")).unwrap();
    assert!(booked.contains(&other.id.to_string()) && booked.contains(&ended.id.to_string()));
}

/// Another todo that is done, so that every iteration moves something.
fn todo(n: u64) -> (&'static str, serde_json::Value) {
    let todo = json!({"id": format!("t{n}"), "title": format!("step {n}"), "status": "done"});
    ("update_plan", json!({"mode": "patch", "todos": [todo]}))
}

/// Two gauges beside a clock that jumps: only what the run was active counts, and its rest does not.
#[tokio::test(start_paused = true)]
async fn s_09_active_time_is_neither_the_wall_nor_the_rest() {
    let wall = Arc::new(AtomicI64::new(0));
    let clock = Arc::new(Jumping { clock: TestClock(Instant::now()), wall: wall.clone() });
    let lines =
        vec![says("plan", &[plan()]), says("", &[("work", json!({}))]), says("on", &[("note", json!({"text": "x"}))])];
    let model = Lines { lines: Mutex::new(lines.into()), takes_ms: 25_000 };
    let limit = |terms: &mut Terms| terms.limits.active = Limit::At(60_000);
    let stage = staged(model, Manner::Ends, |_| {}, limit, |world| World { clock, ..world });
    wall.store(-34 * 60_000, Ordering::SeqCst);
    let run = stage.until(|run| is_parked(run, &ParkReason::Approval)).await;
    let active = run.pool.used(Axis::Active);
    assert!((50_000..51_000).contains(&active), "{active} ms");
    wall.store(24 * 3_600_000, Ordering::SeqCst);
    tokio::time::advance(Duration::from_secs(30)).await;
    stage.allow(&run).await;
    // Eighty seconds are over, and fifty of them count: the run goes on to its third call.
    let run = stage.until(|run| is_parked(run, &ParkReason::Budget(Axis::Active))).await;
    let active = run.pool.used(Axis::Active);
    assert!((75_000..76_000).contains(&active), "{active} ms");
    assert_eq!((run.pool.used(Axis::ModelCalls), stage.executions()), (3, 1));
}

/// A clock whose wall is moved by hand, while the time of the run goes on as ever.
struct Jumping {
    clock: TestClock,
    wall: Arc<AtomicI64>,
}

#[async_trait]
impl Clock for Jumping {
    fn now(&self) -> Timestamp {
        let noon = 10_000_000_000_u64 + self.clock.mono().0;
        Timestamp(noon.saturating_add_signed(self.wall.load(Ordering::SeqCst)))
    }

    fn mono(&self) -> Span {
        self.clock.mono()
    }

    async fn sleep_until(&self, at: Timestamp) {
        tokio::time::sleep(Duration::from_millis(at.since(self.now()).0)).await;
    }
}
