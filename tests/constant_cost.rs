//! An iteration costs what is new in it, however long the run has been: bytes, commits and memory are
//! counted, not timed.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]

mod steady;

use std::alloc::System;

use stats_alloc::INSTRUMENTED_SYSTEM;
use stats_alloc::Region;
use stats_alloc::StatsAlloc;
use steady::Steady;
use tiller::store::Journal;
use tiller::store::memory::MemoryJournal;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Iterations that are looked at around each place, so that a snapshot now and then counts in both.
const AROUND: usize = 16;

/// Bytes and commits of so many iterations.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    bytes: usize,
    commits: usize,
    /// Bytes that the turns asked the allocator for: work, where no clock can be trusted.
    allocated: usize,
}

#[tokio::test]
async fn s_30_constant_cost() {
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
