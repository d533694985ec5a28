//! Damaged files: never a panic, never a wrong record, never a journal that is silently shorter than its anchor; and
//! the files as they were found are kept.

use std::collections::BTreeMap;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Once;
use std::time::Duration;

use crate::homes::home;
use crate::homes::run_id;
use crate::store::database::database;
use crate::store::records::noise;
use crate::store::records::said;
use crate::store::small::small_run;
use tiller::domain::event::Record;
use tiller::domain::summary::Listed;
use tiller::store::Journal;
use tiller::store::StoreError;
use tiller::store::place::Home;
use tiller::store::repair::Repair;

/// Records of the sound run; the anchor names the last.
const COUNT: u64 = 38;
/// The last record of its first half, after which the anchor was synced.
const SYNCED: u64 = 31;

/// The panics of sled are expected here, and would drown what a failing test says.
pub(crate) fn quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if std::thread::current().name() != Some(tiller::store::sled::THREAD) {
                usual(panic);
            }
        }));
    });
}

/// A closed run in a home of its own, and all its records.
struct Sound {
    dir: tempfile::TempDir,
    records: Vec<Record>,
}

impl Sound {
    async fn new() -> Sound {
        quiet();
        let dir = tempfile::tempdir().unwrap();
        let mut records = small_run(SYNCED - 1, 600);
        records[7] = said(8, &noise(1, 50_000));
        let first = home(dir.path()).create(&run_id(1), &records[..1]).await.unwrap();
        first.close().await;
        let mut journal = home(dir.path()).open(&run_id(1)).await.unwrap().journal;
        for batch in records[1..].chunks(3) {
            journal.append(batch.to_vec()).await.unwrap();
        }
        for seq in SYNCED + 1..=COUNT {
            let record = said(seq, &noise(seq, if seq == SYNCED + 3 { 9_000 } else { 300 }));
            journal.append(vec![record.clone()]).await.unwrap();
            records.push(record);
        }
        journal.close().await;
        Sound { dir, records }
    }

    /// The same, gone on with until its file has many segments, most of which a snapshot of sled's lies behind.
    async fn long() -> Sound {
        let mut sound = Sound::new().await;
        for count in [300, 60] {
            let mut journal = home(sound.dir.path()).open(&run_id(1)).await.unwrap().journal;
            for _ in 0..count {
                let seq = sound.records.len() as u64 + 1;
                sound.records.push(said(seq, &noise(seq, 6_000)));
                journal.append(sound.records[sound.records.len() - 1..].to_vec()).await.unwrap();
            }
            journal.close().await;
        }
        sound
    }

    /// A home with a copy of the run in it, spoiled.
    fn spoiled(&self, spoil: impl FnOnce(&Path)) -> (tempfile::TempDir, Home) {
        let dir = tempfile::tempdir().unwrap();
        let copy = home(dir.path());
        copy_dir(&home(self.dir.path()).run_dir(&run_id(1)), &copy.run_dir(&run_id(1)));
        spoil(&copy.run_dir(&run_id(1)));
        (dir, copy)
    }

    /// Opens a spoiled copy, and says in a word what came of it.
    async fn check(&self, what: &str, spoil: impl FnOnce(&Path)) -> &'static str {
        let (_dir, home) = self.spoiled(spoil);
        let run_dir = home.run_dir(&run_id(1));
        let found = files(&run_dir.join("store"));
        let opened = tokio::time::timeout(Duration::from_secs(60), home.open(&run_id(1))).await;
        match opened.unwrap_or_else(|_| panic!("{what}: opening hangs")) {
            Ok(mut opened) => {
                assert_eq!(opened.records, self.records, "{what}");
                let next = said(self.records.len() as u64 + 1, "goes on");
                opened.journal.append(vec![next.clone()]).await.unwrap();
                opened.journal.close().await;
                assert_eq!(home.open(&run_id(1)).await.unwrap().records.last(), Some(&next));
                "whole"
            }
            Err(StoreError::Damaged { why, path, .. }) => {
                assert!(!why.is_empty() && !why.contains('\n'), "{what}: {why}");
                let kept = if path == run_dir { path.join("store") } else { path };
                // Not by `assert_eq`, which would print megabytes.
                assert!(files(&kept) == found, "{what}: the files were not kept ({why})");
                let again = home.open(&run_id(1)).await;
                assert!(matches!(again, Err(StoreError::Damaged { .. })), "{what}: damage went away by itself");
                drop(again);
                self.check_repair(what, &home).await
            }
            Err(error) => panic!("{what}: {error}"),
        }
    }

    /// Mends what is damaged, and says in words what came of it: all records are there again, or nothing has changed.
    async fn check_repair(&self, what: &str, home: &Home) -> &'static str {
        let run_dir = home.run_dir(&run_id(1));
        let found = (files(&run_dir), files(&run_dir.join("store")));
        match home.repair(&run_id(1)).unwrap_or_else(|error| panic!("{what}: {error}")) {
            Repair::Mended { survey, kept } => {
                assert!(survey.records == self.records, "{what}: mended, and not all is there");
                assert!(files(&kept) == found.1, "{what}: what was mended was not kept");
                assert!(
                    home.open(&run_id(1)).await.unwrap().records == self.records,
                    "{what}: mended, and does not open"
                );
                "damaged, mended"
            }
            // Without an anchor nobody knows how many there were.
            Repair::Anchored { survey, kept } => {
                assert!(files(&kept) == found.1, "{what}: what was mended was not kept");
                assert!(self.records.starts_with(&survey.records), "{what}: a record was made up");
                let opened = home.open(&run_id(1)).await.unwrap().records;
                assert!(!opened.is_empty() && opened == survey.records, "{what}: anchored, and does not open");
                "damaged, anchored"
            }
            Repair::Lost(survey) => {
                assert!(self.records.starts_with(&survey.records), "{what}: a record was made up");
                assert!(survey.records.len() < self.records.len(), "{what}: all is there, and called lost");
                assert!((files(&run_dir), files(&run_dir.join("store"))) == found, "{what}: something was changed");
                "damaged, lost"
            }
            Repair::Sound(_) => panic!("{what}: damaged when it is opened and sound when it is mended"),
        }
    }

    /// Like `check`, many times; how often each came of it.
    async fn tally(&self, what: &str, seeds: u64, spoil: impl Fn(&Path, u64)) -> BTreeMap<&'static str, u32> {
        let mut tally = BTreeMap::new();
        for seed in 0..seeds {
            *tally.entry(self.check(&format!("{what} {seed}"), |dir| spoil(dir, seed)).await).or_default() += 1;
        }
        println!("{what}: {tally:?}");
        tally
    }
}

fn copy_dir(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    std::fs::set_permissions(to, from.metadata().unwrap().permissions()).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        // The copy that was made to open the run is thrown away beside what is copied here.
        if entry.file_name().to_string_lossy().starts_with("store.before.") {
            continue;
        }
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_dir(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Names and contents of a directory's files, but for sled's half-made snapshots, which are swept away.
fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = std::fs::read_dir(dir).unwrap().map(Result::unwrap);
    let plain = entries.filter(|entry| entry.file_type().unwrap().is_file());
    plain.map(|entry| (entry.file_name().into(), std::fs::read(entry.path()).unwrap())).collect()
}

fn edit(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = std::fs::read(path).unwrap();
    change(&mut bytes);
    std::fs::write(path, bytes).unwrap();
}

/// A number below `below` that a seed leads to.
fn chance(seed: u64, below: usize) -> usize {
    let mixed = (seed + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((mixed >> 17) % below as u64) as usize
}

/// The last byte of sled's file that is not zero: damage behind it would touch nothing.
fn written(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1
}

#[tokio::test]
async fn flipped_bits() {
    let sound = Sound::new().await;
    let tally = sound.tally("flip", 80, |dir, seed| {
        edit(&dir.join("store/db"), |bytes| {
            let at = chance(seed, written(bytes));
            bytes[at] ^= 1 << (seed % 8);
        });
    });
    assert!(tally.await.contains_key("damaged, lost"));
}

#[tokio::test]
async fn a_long_store_is_kept_whole() {
    let sound = Sound::long().await;
    let flipped = sound.tally("flip in a long one", 10, |dir, seed| {
        edit(&dir.join("store/db"), |bytes| {
            let at = chance(seed, written(bytes));
            bytes[at] ^= 1 << (seed % 8);
        });
    });
    assert!(flipped.await.contains_key("damaged, lost"));
    let zeroed = sound.tally("zeroed page in the end of a long one", 6, |dir, seed| {
        edit(&dir.join("store/db"), |bytes| {
            let page = (written(bytes) - chance(seed, 400_000)) / 4_096 * 4_096;
            bytes.iter_mut().skip(page).take(4_096).for_each(|byte| *byte = 0);
        });
    });
    assert!(zeroed.await.contains_key("damaged, lost"));
    let headers = sound.tally("header in a long one", 6, |dir, seed| {
        edit(&dir.join("store/db"), |bytes| {
            let segment = (seed as usize * bytes.len() / 6) >> 19 << 19;
            bytes[segment + 5] ^= 1;
        });
    });
    assert!(headers.await.contains_key("damaged, lost"));
}

#[tokio::test]
async fn zeroed_pages() {
    let sound = Sound::new().await;
    let tally = sound.tally("zeroed page", 40, |dir, seed| {
        edit(&dir.join("store/db"), |bytes| {
            let page = chance(seed, written(bytes)) / 4_096 * 4_096;
            bytes.iter_mut().skip(page).take(4_096).for_each(|byte| *byte = 0);
        });
    });
    assert!(tally.await.contains_key("damaged, lost"));
}

#[tokio::test]
async fn cut_files() {
    let sound = Sound::new().await;
    let tally = sound.tally("cut", 40, |dir, seed| {
        edit(&dir.join("store/db"), |bytes| bytes.truncate(chance(seed, written(bytes))));
    });
    assert!(tally.await.contains_key("damaged, lost"));
    sound
        .tally("cut tail", 40, |dir, seed| {
            edit(&dir.join("store/db"), |bytes| bytes.truncate(written(bytes) - chance(seed, 600)));
        })
        .await;
}

#[tokio::test]
async fn flipped_bits_beside_the_database() {
    let sound = Sound::new().await;
    for name in ["store/conf", "anchor", "owner.json"] {
        sound
            .tally(name, 20, |dir, seed| {
                edit(&dir.join(name), |bytes| {
                    let at = chance(seed, bytes.len());
                    bytes[at] ^= 1 << (seed % 8);
                });
            })
            .await;
    }
    let snapshot = |dir: &Path| {
        let mut names = std::fs::read_dir(dir.join("store")).unwrap().map(|entry| entry.unwrap().path());
        names.find(|path| path.file_name().unwrap().to_str().unwrap().starts_with("snap.")).unwrap()
    };
    let tally = sound.tally("snapshot", 20, |dir, seed| {
        edit(&snapshot(dir), |bytes| {
            let at = chance(seed, bytes.len());
            bytes[at] ^= 1 << (seed % 8);
        });
    });
    let tally = tally.await;
    assert!(tally.contains_key("damaged, mended") && !tally.contains_key("damaged, lost"), "{tally:?}");
}

#[tokio::test]
async fn missing_files() {
    let sound = Sound::new().await;
    let remove = |name: &'static str| move |dir: &Path| std::fs::remove_file(dir.join(name)).unwrap();
    assert_eq!(sound.check("no db", remove("store/db")).await, "damaged, lost");
    assert_eq!(sound.check("no anchor", remove("anchor")).await, "damaged, anchored");
    assert_eq!(sound.check("no conf", remove("store/conf")).await, "whole");
    assert_eq!(sound.check("no owner", remove("owner.json")).await, "whole");
    assert_eq!(sound.check("empty db", |dir| edit(&dir.join("store/db"), Vec::clear)).await, "damaged, lost");
    assert_eq!(sound.check("empty anchor", |dir| edit(&dir.join("anchor"), Vec::clear)).await, "damaged, anchored");
}

#[tokio::test]
async fn a_half_made_snapshot_is_swept_away() {
    let sound = Sound::new().await;
    let (_dir, home) = sound.spoiled(|dir| {
        std::fs::write(dir.join("store/snap.FFFFFFFFFFFFFFF0.generating"), b"half").unwrap();
    });
    assert_eq!(home.open(&run_id(1)).await.unwrap().records, sound.records);
}

#[tokio::test]
async fn a_journal_that_ends_before_its_anchor_says_so() {
    let sound = Sound::new().await;
    let (_dir, home) = sound.spoiled(|dir| {
        let db = database(&dir.join("store"));
        let journal = db.open_tree("journal").unwrap();
        journal.remove(COUNT.to_be_bytes()).unwrap();
    });
    let text = home.open(&run_id(1)).await.unwrap_err().to_string();
    assert!(text.contains("it ends with record 37, but record 38 was written"), "{text}");
    assert!(text.contains("store.damaged"), "{text}");
    let Listed::Damaged { why, .. } = &home.list().unwrap()[0] else { panic!("listed as sound") };
    assert!(why.contains("it ends with record 37"), "{why}");
}

/// Changes one stored value through sled, and gives what opening says.
async fn check_edit(sound: &Sound, tree: &str, key: &[u8], change: impl Fn(Vec<u8>) -> Option<Vec<u8>>) -> String {
    let (_dir, home) = sound.spoiled(|dir| {
        let db = database(&dir.join("store"));
        let tree = db.open_tree(tree).unwrap();
        let (key, value) = tree.scan_prefix(key).next().unwrap().unwrap();
        match change(value.to_vec()) {
            Some(value) => tree.insert(key, value).unwrap(),
            None => tree.remove(key).unwrap(),
        };
    });
    match home.open(&run_id(1)).await {
        Err(StoreError::Damaged { why, .. }) => why,
        other => panic!("{other:?}"),
    }
}

fn swap(from: &'static str, to: &'static str) -> impl Fn(Vec<u8>) -> Option<Vec<u8>> {
    move |value| {
        let text = String::from_utf8(value).unwrap();
        assert!(text.contains(from), "{text}");
        Some(text.replacen(from, to, 1).into_bytes())
    }
}

#[tokio::test]
async fn an_edited_record_breaks_the_chain() {
    let sound = Sound::new().await;
    let key = |seq: u64| seq.to_be_bytes();
    let hashes = |seq: u64| format!("record {seq} does not follow the record before it: their hashes differ");
    let edited = |seq: u64, from, to| {
        let (sound, key) = (&sound, key(seq));
        async move { check_edit(sound, "journal", &key, swap(from, to)).await }
    };
    assert_eq!(edited(5, "\"by\":\"test\"", "\"by\":\"hand\"").await, hashes(6));
    assert_eq!(edited(5, "\"at\":1000005", "\"at\":1000004").await, hashes(6));
    assert_eq!(edited(1, "the goal", "a change").await, hashes(2));
    assert_eq!(edited(5, "\"v\":1", "\"v\":0").await, "record 5 is not of the format that it names (0)");
    assert_eq!(edited(5, "\"seq\":5", "\"seq\":6").await, "record 6 stands in the place of record 5");
    assert_eq!(edited(5, "{", "").await, "record 5 can't be read (line 1, column 3)");
    assert_eq!(edited(8, "\"bytes\":5", "\"bytes\":6").await.split(':').nth(1), Some(" their hash differs"));
    assert!(edited(8, "\"blob\":\"", "\"blob\":\"x").await.contains("that is no hash"));
    assert_eq!(check_edit(&sound, "journal", &key(9), |_| None).await, "record 9 is missing");
    assert_eq!(check_edit(&sound, "meta", b"run", |_| None).await, "its run is missing");
    let other = check_edit(&sound, "meta", b"run", |_| Some(b"222222222222".to_vec())).await;
    assert_eq!(other, "it is the journal of another run (222222222222)");
    let piece = check_edit(&sound, "blob", b"", |mut value| {
        value[100] ^= 1;
        Some(value)
    });
    assert!(piece.await.contains("are not what was written"));
    assert!(check_edit(&sound, "blob", b"", |_| None).await.contains("is missing"));
}

#[tokio::test]
async fn an_edited_anchored_record_differs_from_its_anchor() {
    let sound = Sound::new().await;
    let (_dir, home) = sound.spoiled(|dir| {
        let db = database(&dir.join("store"));
        let journal = db.open_tree("journal").unwrap();
        let value = journal.get(COUNT.to_be_bytes()).unwrap().unwrap().to_vec();
        let value = swap("\"by\":\"test\"", "\"by\":\"hand\"")(value).unwrap();
        journal.insert(COUNT.to_be_bytes(), value).unwrap();
    });
    let text = home.open(&run_id(1)).await.unwrap_err().to_string();
    assert!(text.contains("record 38 is not the one that was written (its hash differs)"), "{text}");
}

#[tokio::test]
async fn an_anchor_may_lag_behind() {
    let dir = tempfile::tempdir().unwrap();
    let home = home(dir.path());
    let mut journal = home.create(&run_id(1), &small_run(3, 10)).await.unwrap();
    let anchor = home.run_dir(&run_id(1)).join("anchor");
    let old = std::fs::read(&anchor).unwrap();
    for seq in 5..9 {
        journal.append(vec![said(seq, "a")]).await.unwrap();
    }
    journal.close().await;
    assert_ne!(std::fs::read(&anchor).unwrap(), old);
    std::fs::write(&anchor, old).unwrap();
    assert_eq!(home.open(&run_id(1)).await.unwrap().records.len(), 8);
}

/// In a run that was made of many records at once, as by an import, a bad byte costs what follows it and not what was
/// written long before: sled drops a commit as a whole.
#[tokio::test]
async fn a_bad_byte_near_the_end_costs_an_imported_run_few_records() {
    quiet();
    let dir = tempfile::tempdir().unwrap();
    let records = small_run(400, 600);
    home(dir.path()).create(&run_id(1), &records).await.unwrap().close().await;
    let last = serde_json::to_string(&records[records.len() - 1].at).unwrap();
    let sound = Sound { dir, records };
    let (_dir, home) = sound.spoiled(|dir| {
        edit(&dir.join("store/db"), |bytes| {
            let name = format!("\"seq\":{},\"at\":{last}", sound.records.len());
            let at = bytes.windows(name.len()).rposition(|window| window == name.as_bytes()).unwrap();
            bytes[at] ^= 1;
        });
    });
    let kept = home.survey(&run_id(1)).unwrap().records.len();
    assert!(kept < sound.records.len() && kept + 16 >= sound.records.len(), "{kept} of {}", sound.records.len());
}
