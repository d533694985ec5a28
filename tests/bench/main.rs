//! An iteration costs what is new in it, however long the run has been: bytes, commits and memory are
//! counted, not timed. What snapshots write is not: how often there is one and what it holds is the store's
//! (`tests/simulation/snapshots.rs`), and what an open run holds is counted here.
//!
//! A program of its own, because it counts what its whole process asks the allocator for.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]

mod steady;

use std::alloc::System;
use std::collections::BTreeSet;

use stats_alloc::INSTRUMENTED_SYSTEM;
use stats_alloc::Region;
use stats_alloc::StatsAlloc;
use steady::Steady;
use tiller::domain::snapshot::Snapshot;
use tiller::store::Journal;
use tiller::store::memory::MemoryJournal;
use tokio::sync::Mutex;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;
/// What is allocated is counted for the whole program, so one test at a time counts.
static ALONE: Mutex<()> = Mutex::const_new(());

/// Iterations that are looked at around each place, so that a long one, in which much is pruned, counts in both.
const AROUND: usize = 16;

/// Bytes and commits of so many iterations.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    bytes: usize,
    commits: usize,
    /// Bytes that the turns asked the allocator for: work, where no clock can be trusted.
    allocated: usize,
}

/// Window of a model that is summarised for every few dozen iterations.
const SMALL_WINDOW: u64 = 20_000;
/// What an open run holds for each iteration that was put away, in bytes: the outlines of a reply and a result, the
/// line of the closed iteration, the charge of its model call, and what the detectors have seen.
const PUT_AWAY_MAX_BYTES: usize = 1_024;
/// Records that opening reads right after a summary: the texts of the last iterations.
const READ_MAX: usize = 16;

/// An open run, and what it took to open it.
struct Opened {
    iterations: u32,
    held: usize,
    read: usize,
}

/// Opens a run that was just summarised from its snapshot, as the store does.
fn open(steady: &Steady) -> Opened {
    let records = steady.batches.concat();
    let stored = serde_json::to_vec(&Snapshot::of(&steady.run)).unwrap();
    let mut read = BTreeSet::new();
    let region = Region::new(ALLOCATOR);
    let snapshot: Snapshot = serde_json::from_slice(&stored).unwrap();
    let mut places = Vec::with_capacity(100);
    let run = snapshot
        .restore(&steady::id(), |seq| {
            places.push(seq);
            records.get(usize::try_from(seq.0).unwrap() - 1).map(|record| record.event.clone())
        })
        .unwrap();
    let change = region.change();
    read.extend(places);
    assert_eq!(run, steady.run);
    println!("{} iterations: {} bytes of snapshot", run.iteration.n, stored.len());
    Opened { iterations: run.iteration.n, held: change.bytes_allocated - change.bytes_deallocated, read: read.len() }
}

/// Goes on for at least so many iterations, until a summary was made.
fn iterate_to_summary(steady: &mut Steady, iterations: u32) {
    let base = |steady: &Steady| steady.run.context.compacted.as_ref().map(|compacted| compacted.to);
    while steady.run.iteration.n < iterations {
        steady.iterate();
    }
    let before = base(steady);
    while base(steady) == before {
        steady.iterate();
    }
}

#[test]
fn s_30_an_open_run_is_as_large_as_what_is_since_its_last_summary() {
    let _alone = ALONE.blocking_lock();
    let mut steady = Steady::with_window(SMALL_WINDOW);
    iterate_to_summary(&mut steady, 300);
    let early = open(&steady);
    iterate_to_summary(&mut steady, 3_000);
    let late = open(&steady);
    let more = (late.held - early.held) / usize::try_from(late.iterations - early.iterations).unwrap();
    println!(
        "an open run of {} iterations holds {} bytes, of {} {}: {more} more for each; read {} and {} records",
        early.iterations, early.held, late.iterations, late.held, early.read, late.read
    );
    assert!(late.iterations > 10 * early.iterations / 2 && more <= PUT_AWAY_MAX_BYTES, "{more} bytes an iteration");
    assert!(early.read <= READ_MAX && late.read <= READ_MAX, "{} and {} records", early.read, late.read);
}

#[tokio::test]
async fn s_30_constant_cost() {
    let _alone = ALONE.lock().await;
    let mut run = Steady::new();
    let mut journal = MemoryJournal::new(&[]).unwrap();
    let mut taken = 0;
    let mut costs = Vec::new();
    for _ in 0..1_000 + AROUND / 2 {
        let region = Region::new(ALLOCATOR);
        run.iterate();
        let mut cost = Cost { allocated: region.change().bytes_allocated, ..Cost::default() };
        for batch in &run.batches[taken..] {
            // What the store would refuse is refused here as well.
            journal.append(batch.clone()).await.unwrap();
            cost.bytes += batch.iter().map(|record| serde_json::to_vec(record).unwrap().len()).sum::<usize>();
            cost.commits += 1;
        }
        taken = run.batches.len();
        costs.push(cost);
    }
    let around = |n: usize| {
        costs[n - AROUND / 2..n + AROUND / 2].iter().fold(Cost::default(), |sum, cost| Cost {
            bytes: sum.bytes + cost.bytes,
            commits: sum.commits + cost.commits,
            allocated: sum.allocated + cost.allocated,
        })
    };
    let (early, late) = (around(10), around(1_000));
    println!("{AROUND} iterations around the 10th: {early:?}; around the 1,000th: {late:?}");
    assert!(late.bytes * 10 <= early.bytes * 11, "bytes grow: {early:?}, {late:?}");
    assert!(late.commits * 10 <= early.commits * 11, "commits grow: {early:?}, {late:?}");
    assert!(late.allocated <= early.allocated * 2, "turns get slower: {early:?}, {late:?}");
    assert!(early.bytes > AROUND * 2 * 1024, "too little is written to tell: {early:?}");
}
