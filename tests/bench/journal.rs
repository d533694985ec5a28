//! What the journal costs: a commit against the disk's own price, folding, opening, memory.
//!
//! `cargo bench --bench journal` runs it; `-- --iterations 1000` behind that measures a shorter run. Times differ
//! between machines, so a commit is compared with what the same disk asks for the same bytes in the same minute. Each
//! line ends with its target (docs/TESTING.md); the exit status is 1 when one is missed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod steady;

use std::alloc::System;
use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;
use std::time::Instant;

use stats_alloc::INSTRUMENTED_SYSTEM;
use stats_alloc::Region;
use stats_alloc::StatsAlloc;
use steady::Steady;
use steady::noise;
use tiller::domain::command::Policy;
use tiller::domain::event::Event;
use tiller::domain::event::Owner;
use tiller::domain::event::OwnerMode;
use tiller::domain::event::Record;
use tiller::domain::id::ClientId;
use tiller::domain::id::InterjectionId;
use tiller::domain::id::Seq;
use tiller::domain::message::entry_bytes;
use tiller::domain::run::Run;
use tiller::domain::snapshot::Snapshot;
use tiller::domain::time::Span;
use tiller::domain::time::Timestamp;
use tiller::store::Journal;
use tiller::store::place::Home;
use tokio::sync::mpsc;
use tokio::sync::oneshot;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Commits that are compared with the raw disk.
const COMMITS: u64 = 400;
/// Bytes of text in each of them.
const TEXT_BYTES: usize = 1_000;

/// What was measured, and whether every target was met.
struct Sheet {
    met: bool,
}

impl Sheet {
    fn line(&mut self, what: &str, measured: String, target: &str, met: bool) {
        self.met &= met;
        println!("{what:<52} {measured:<34} {target}{}", if met { "" } else { "  MISSED" });
    }
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let after = |name: &str| words.iter().position(|word| word == name).and_then(|at| words.get(at + 1));
    let iterations: usize = after("--iterations").and_then(|text| text.parse().ok()).unwrap_or(10_000);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut sheet = Sheet { met: true };
    for records in [1, 8] {
        runtime.block_on(commits(&mut sheet, records));
    }
    let batches = lives(&mut sheet, iterations);
    folds(&mut sheet, &batches.concat());
    let short = runtime.block_on(opens(&mut sheet, &batches, 1_000));
    let long = runtime.block_on(opens(&mut sheet, &batches, u32::MAX));
    grows(&mut sheet, &short, &long);
    if !sheet.met {
        std::process::exit(1);
    }
}

fn home(dir: &std::path::Path) -> Home {
    let owner = Owner { pid: 1, host: "bench".to_string(), version: "0".to_string(), mode: OwnerMode::Drives };
    Home::new(dir.join("state"), owner).unwrap()
}

/// A commit of so many records, and an append and a sync of the same bytes by hand, in turn: on a thread of its own, as
/// every store must be that blocks under an async program, and, only to compare, where it is asked for.
async fn commits(sheet: &mut Sheet, records: u64) {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let first = Steady::new().batches.concat();
    let mut journal = home(dir.path()).create(&steady::id(), &first).await.unwrap();
    let raw = |name: &str| File::create(dir.path().join(name)).unwrap();
    let (apart, mut here) = (Apart::start(raw("apart")), raw("here"));
    let (mut by_store, mut by_hand, mut at_once) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..COMMITS {
        let batch: Vec<Record> = (1..=records).map(|one| said(number * records + one, first.len() as u64)).collect();
        let mut lines = Vec::new();
        for record in &batch {
            serde_json::to_writer(&mut lines, record).unwrap();
            lines.push(b'\n');
        }
        let begun = Instant::now();
        journal.append(batch).await.unwrap();
        by_store.push(begun.elapsed());
        let begun = Instant::now();
        apart.append(lines.clone()).await;
        by_hand.push(begun.elapsed());
        let begun = Instant::now();
        append(&mut here, &lines);
        at_once.push(begun.elapsed());
    }
    let (store, hand, once) = (median(by_store), median(by_hand), median(at_once));
    let ratio = store.as_secs_f64() / hand.as_secs_f64();
    let measured = format!("{store:.2?} against {hand:.2?}: {ratio:.2}");
    let what = format!("a commit of {records} KB, against append and sync by hand");
    sheet.line(&what, measured, "at most 1.5", ratio <= 1.5);
    let ratio = store.as_secs_f64() / once.as_secs_f64();
    sheet.line("  and without the changes of threads by hand", format!("{once:.2?}: {ratio:.2}"), "", true);
}

fn append(file: &mut File, lines: &[u8]) {
    file.write_all(lines).unwrap();
    file.sync_data().unwrap();
}

/// A file that is appended to and synced by a thread of its own, which is asked and answers as that of a store.
struct Apart(mpsc::Sender<(Vec<u8>, oneshot::Sender<()>)>);

impl Apart {
    fn start(mut file: File) -> Apart {
        let (requests, mut inbox) = mpsc::channel::<(Vec<u8>, oneshot::Sender<()>)>(1);
        std::thread::spawn(move || {
            while let Some((lines, answer)) = inbox.blocking_recv() {
                append(&mut file, &lines);
                answer.send(()).unwrap();
            }
        });
        Apart(requests)
    }

    async fn append(&self, lines: Vec<u8>) {
        let (answer, wait) = oneshot::channel();
        self.0.send((lines, answer)).await.unwrap();
        wait.await.unwrap();
    }
}

/// A record with so many bytes of text, the `number`th after the first ones.
fn said(number: u64, before: u64) -> Record {
    let (id, by) = (InterjectionId(u32::try_from(number).unwrap()), ClientId("bench".to_string()));
    let event = Event::InterjectionQueued { id, text: noise(number, TEXT_BYTES), by, policy: Policy::Next };
    Record { seq: Seq(before + number), at: Timestamp(number), active: Span(0), event }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Turns a run through its iterations; what those around the 10th and the 1,000th cost in time.
fn lives(sheet: &mut Sheet, iterations: usize) -> Vec<Vec<Record>> {
    let mut run = Steady::new();
    let mut times = Vec::new();
    for _ in 0..iterations {
        let begun = Instant::now();
        run.iterate();
        times.push(begun.elapsed());
    }
    let around = |n: usize| median(times.iter().skip(n.saturating_sub(10)).take(20).copied().collect());
    let (early, last) = (around(10), around(iterations - 10));
    for (n, late) in [(1_000, around(1_000.min(iterations - 10))), (iterations, last)] {
        let ratio = late.as_secs_f64() / early.as_secs_f64();
        let what = format!("turns of iteration {n}, against those of the 10th");
        let target = if n == 1_000 { "at most 2" } else { "" };
        let measured = format!("{late:.2?} against {early:.2?}: {ratio:.2}");
        sheet.line(&what, measured, target, target.is_empty() || ratio <= 2.0);
    }
    let clone = measure(|| run.run.clone());
    sheet.line(
        "a clone of that run",
        format!("{:.2?}, {} KiB", clone.time, clone.allocated / 1024),
        "at most 64 KiB",
        clone.allocated <= 64 * 1024,
    );
    run.batches
}

struct Measured<T> {
    value: T,
    time: Duration,
    /// Bytes that were asked for, and those that are still held.
    allocated: usize,
    held: usize,
}

fn measure<T>(work: impl FnOnce() -> T) -> Measured<T> {
    let region = Region::new(ALLOCATOR);
    let begun = Instant::now();
    let value = work();
    let time = begun.elapsed();
    let change = region.change();
    let held = change.bytes_allocated.saturating_sub(change.bytes_deallocated);
    Measured { value, time, allocated: change.bytes_allocated, held }
}

fn folds(sheet: &mut Sheet, records: &[Record]) {
    let bytes: usize = records.iter().map(|record| serde_json::to_vec(record).unwrap().len()).sum();
    let folded = measure(|| Run::fold(&steady::id(), records).unwrap());
    let speed = records.len() as f64 / folded.time.as_secs_f64();
    let what = format!("folding {} records, {} MiB", records.len(), bytes >> 20);
    sheet.line(&what, format!("{speed:.0} a second"), "at least 200,000", speed >= 200_000.0);
    let share = folded.held as f64 / bytes as f64;
    let measured = format!("{} MiB, {share:.2} of the journal", folded.held >> 20);
    sheet.line("memory that an open run holds", measured, "at most 1.0 of the journal", share <= 1.0);
    drop(folded.value);
}

/// What an opened run holds.
struct Open {
    iterations: u32,
    /// All of it, in bytes.
    held: usize,
    /// The texts of the conversation since the base, which what is sent shares as far as it is the same.
    since: usize,
    entries: usize,
}

/// What an opened run holds beside the conversation since its base, and how that grows.
fn grows(sheet: &mut Sheet, short: &Open, long: &Open) {
    for open in [short, long] {
        let measured = format!("{} KiB, {} of it since the base", open.held >> 10, open.since >> 10);
        let what = format!("memory of it at {} iterations, {} entries whole", open.iterations, open.entries);
        sheet.line(&what, measured, "", true);
    }
    let index = |open: &Open| open.held.saturating_sub(open.since);
    let more = index(long).saturating_sub(index(short)) / usize::try_from(long.iterations - short.iterations).unwrap();
    sheet.line("what each further iteration adds to the rest", format!("{more} bytes"), "at most 1,024", more <= 1_024);
}

/// Bytes of the conversation since the base: what is whole, and what is sent otherwise than it was said.
fn since_base(run: &Run) -> usize {
    let mut bytes = run.transcript.bytes();
    for (said, sent) in run.transcript.entries().zip(run.context.entries()) {
        bytes += if Arc::ptr_eq(said, sent) { 0 } else { entry_bytes(sent) };
    }
    bytes
}

/// Opens a run of so many iterations: whole, and as a process does that goes on with it.
async fn opens(sheet: &mut Sheet, batches: &[Vec<Record>], iterations: u32) -> Open {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let home = home(dir.path());
    let mut journal = home.create(&steady::id(), &batches[0]).await.unwrap();
    let mut run = Run::begin(steady::id(), &batches[0][0]).unwrap();
    let mut snapshots = 0;
    // Written in larger batches than a life would: here it is about opening.
    for many in batches[1..].chunks(64) {
        if run.iteration.n >= iterations {
            break;
        }
        let records = many.concat();
        journal.append(records.clone()).await.unwrap();
        records.iter().for_each(|record| run.apply(record).unwrap());
        if journal.is_snapshot_due() {
            journal.keep(run.clone()).await;
            snapshots += 1;
        }
    }
    journal.close().await;
    let (mut whole, mut folded, mut resumed) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..3 {
        let begun = Instant::now();
        let opened = home.open(&steady::id()).await.unwrap();
        whole.push(begun.elapsed());
        let begun = Instant::now();
        Run::fold(&steady::id(), &opened.records).unwrap();
        folded.push(begun.elapsed());
        opened.journal.close().await;
        let begun = Instant::now();
        let (journal, again) = home.resume(&steady::id()).await.unwrap();
        resumed.push(begun.elapsed());
        assert_eq!(again, run);
        journal.close().await;
    }
    let stored = serde_json::to_vec(&Snapshot::of(&run)).unwrap();
    let events: Vec<Record> = batches.concat();
    let event = |seq: Seq| events.get(usize::try_from(seq.0).unwrap() - 1).map(|record| record.event.clone());
    let restored =
        measure(|| serde_json::from_slice::<Snapshot>(&stored).unwrap().restore(&steady::id(), event).unwrap());
    let held = restored.held;
    let what = format!("reading all of a run of {} iterations, and folding it", run.iteration.n);
    sheet.line(&what, format!("{:.0?} and {:.0?}", median(whole), median(folded)), "", true);
    let time = median(resumed);
    let what = format!("opening it, with {snapshots} snapshots made meanwhile");
    sheet.line(&what, format!("{time:.0?}"), "at most 300 ms", time <= Duration::from_millis(300));
    Open { iterations: run.iteration.n, held, since: since_base(&run), entries: run.transcript.entries().count() }
}
