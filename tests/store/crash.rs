//! A process that is killed while it appends, and a disk that is full: what was acknowledged is there, and what was
//! not is there whole or not at all.

use std::io::BufRead;
use std::io::BufReader;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::ChildStdout;
use std::process::Command;
use std::process::Stdio;

use crate::homes::home;
use crate::homes::run_id;
use crate::skip::skip;
use crate::store::beginning::created;
use crate::store::records::noise;
use crate::store::records::said;
use tiller::domain::event::Record;
use tiller::domain::id::Seq;
use tiller::store::Journal;
use tiller::store::StoreError;

/// Tells the re-executed test where to append.
const VARIABLE: &str = "STORE_CRASH_DIR";
/// Records in each batch of the child.
const BATCH: u64 = 3;

/// The batch that follows `seq`: one value mostly, often several, and now and then one with pieces.
fn batch(seq: u64) -> Vec<Record> {
    let bytes = |seq: u64| match (seq % 7, seq % 5) {
        (0, _) => 20_000,
        (_, 0) => 6_000,
        (_, _) => 300,
    };
    (seq + 1..=seq + BATCH).map(|seq| said(seq, &noise(seq, bytes(seq)))).collect()
}

/// Not a test by itself, and nothing without the variable: the child of the test below.
#[tokio::test]
async fn child() {
    let Ok(dir) = std::env::var(VARIABLE) else { return };
    println!("opening");
    let opened = home(Path::new(&dir)).open(&run_id(1)).await.unwrap();
    let (mut journal, mut seq) = (opened.journal, opened.records.len() as u64);
    loop {
        journal.append(batch(seq)).await.unwrap();
        seq += BATCH;
        println!("acknowledged {seq}");
    }
}

fn spawn(dir: &Path) -> (Child, BufReader<ChildStdout>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "store::crash::child", "--nocapture"])
        .env(VARIABLE, dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    (child, out)
}

/// The last record that a line of the child acknowledges.
fn acknowledged(line: &str) -> Option<u64> {
    line.strip_prefix("acknowledged ").and_then(|seq| seq.parse().ok())
}

#[tokio::test]
async fn kill_nine_loses_nothing_that_was_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    home(dir.path()).create(&run_id(1), &[created("the goal")]).await.unwrap().close().await;
    let mut last = 1;
    for round in 0..12 {
        let (mut child, out) = spawn(dir.path());
        // Some are killed while they open, some after a few batches, some after many.
        let mut left = [0, 1, 2, 9, 30][round % 5];
        for line in out.lines() {
            let line = line.unwrap();
            last = acknowledged(&line).unwrap_or(last);
            let told = line.ends_with("opening") || acknowledged(&line).is_some();
            if told && left == 0 {
                // What it has already written to the pipe is still read.
                child.kill().unwrap();
            }
            left -= i32::from(told);
        }
        child.wait().unwrap();
        let opened = home(dir.path()).open(&run_id(1)).await.unwrap();
        let count = opened.records.len() as u64;
        assert!(count >= last, "round {round}: {last} were acknowledged and {count} are there");
        assert_eq!((count - 1) % BATCH, 0, "round {round}: half a batch is there");
        let expected = (0..count / BATCH).flat_map(|number| batch(1 + number * BATCH));
        let expected: Vec<Record> = [created("the goal")].into_iter().chain(expected).collect();
        assert_eq!(opened.records, expected, "round {round}");
        opened.journal.close().await;
    }
    assert!(last > 100, "only {last} records were acknowledged");
    let left = std::fs::read_dir(home(dir.path()).run_dir(&run_id(1))).unwrap();
    let copies = left.filter(|entry| entry.as_ref().unwrap().file_name().to_str().unwrap().starts_with("store."));
    assert_eq!(copies.count(), 0, "copies of killed processes are swept away");
}

/// A small file system; unmounted when dropped.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(at: &Path) -> Option<SmallDisk> {
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=112m,mode=700", "none"]).arg(at).status();
        mounted.is_ok_and(|status| status.success()).then(|| SmallDisk(at.to_path_buf()))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[tokio::test]
async fn a_full_disk_stops_a_run_and_a_freed_one_lets_it_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let Some(_disk) = SmallDisk::mount(dir.path()) else {
        return skip("a small file system can't be mounted here (it takes root)");
    };
    let ballast = dir.path().join("ballast");
    std::fs::write(&ballast, vec![1; 72 << 20]).unwrap();
    let home = home(dir.path());
    let mut journal = home.create(&run_id(1), &[created("the goal")]).await.unwrap();
    let mut expected = vec![created("the goal")];
    let error = loop {
        let seq = expected.len() as u64 + 1;
        assert!(seq < 1_000, "the disk never fills");
        let record = said(seq, &noise(seq, 300_000));
        match journal.append(vec![record.clone(), said(seq + 1, "b")]).await {
            Ok(()) => expected.extend([record, said(seq + 1, "b")]),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, StoreError::Doubtful { .. }), "{error}");
    let next = said(expected.len() as u64 + 1, "another");
    let reader = journal.reader();
    for _ in 0..3 {
        let error = journal.append(vec![next.clone()]).await.unwrap_err();
        assert!(error.to_string().contains("it may be recorded all the same, and counts then"), "{error}");
        match reader.read(Seq(1), usize::MAX).await {
            Ok(records) => assert_eq!(records, expected),
            Err(error) => assert!(matches!(error, StoreError::Disk { .. }), "{error}"),
        }
    }
    let refused = home.create(&run_id(2), &[created("the goal")]).await.unwrap_err();
    assert!(refused.to_string().contains("MiB are free on the disk and 16 are needed"), "{refused}");
    std::fs::remove_file(&ballast).unwrap();
    journal.append(vec![next.clone()]).await.unwrap();
    expected.push(next);
    assert_eq!(reader.read(Seq(1), usize::MAX).await.unwrap(), expected);
    journal.close().await;
    assert_eq!(home.open(&run_id(1)).await.unwrap().records, expected);
}
