//! Snapshots: a shortcut for the fold and never a source. Whatever lies in the store, what a run opens to is what all
//! its records fold to.

use std::ffi::OsString;
use std::path::Path;
use std::path::PathBuf;

use tiller::domain::event::Event;
use tiller::domain::event::Record;
use tiller::domain::id::ClientId;
use tiller::domain::id::RunId;
use tiller::domain::id::Seq;
use tiller::domain::lineage;
use tiller::domain::run::Run;
use tiller::domain::snapshot::FOLD_VERSION;
use tiller::domain::snapshot::Snapshot;
use tiller::domain::status::Status;
use tiller::domain::text::sha256_hex;
use tiller::domain::time::Now;
use tiller::domain::time::Span;
use tiller::domain::time::Timestamp;
use tiller::machine;
use tiller::store::Journal;
use tiller::store::place::Home;

use crate::simulation::golden::all;
use crate::simulation::golden::golden;
use crate::simulation::golden::home;
use crate::simulation::golden::names;
use crate::simulation::life::Crash;
use crate::simulation::life::Length;
use crate::simulation::life::Life;
use crate::simulation::sabotage::Sabotage;

/// The run that a snapshot as it is stored gives, with its texts from these records.
fn restored(id: &RunId, stored: &str, records: &[Record]) -> Result<Run, String> {
    let snapshot: Snapshot = serde_json::from_str(stored).unwrap();
    snapshot.restore(id, |seq| records.get(usize::try_from(seq.0).unwrap() - 1).map(|record| record.event.clone()))
}

/// How many records there are from one rest that is folded to the next. Each is long, and the state before it is equal.
const RESTS: usize = 11;

/// At every record: the snapshot gives the run back; and with the rest of the records what all of them fold to. A rest
/// that goes back to before the snapshot is refused, and only such a one. Gives how often it was.
fn check(id: &RunId, records: &[Record]) -> usize {
    let whole = Run::fold(id, records).unwrap();
    let mut refused = 0;
    Run::fold_each(id, records, |record, run, _| {
        let at = usize::try_from(record.seq.0).unwrap();
        let stored = serde_json::to_string(&Snapshot::of(run)).unwrap();
        let back = restored(id, &stored, &records[..at]).unwrap();
        assert_eq!(back, *run, "at record {at}");
        if at % RESTS != 0 && at + RESTS < records.len() {
            return;
        }
        let earlier = |record: &Record| matches!(&record.event, Event::Rewound { to_seq, .. } if to_seq.0 < at as u64);
        match back.fold_after(&records[at..], |_, _, _| {}) {
            Ok(folded) => assert_eq!(folded, whole, "from record {at} on"),
            Err(broken) => {
                assert!(records[at..].iter().any(earlier), "at record {at}: {broken}");
                refused += 1;
            }
        }
    })
    .unwrap();
    refused
}

#[test]
fn a_snapshot_and_the_rest_is_the_whole_fold_at_every_record_of_the_golden_journals() {
    for name in names() {
        let (id, records) = golden(&name);
        assert_eq!(check(&id, &records), 0, "{name}");
    }
}

#[test]
fn and_at_every_record_of_simulated_lives() {
    for seed in 0..8 {
        let (length, crash) = if seed < 5 { (Length::Short, Crash::Often) } else { (Length::Full, Crash::Often) };
        let records = Life::new(seed, length, crash, Sabotage::None).chronicle().unwrap();
        assert_eq!(check(&RunId::from_entropy([7; 12]), &records), 0, "seed {seed}");
    }
}

/// A journal that goes back to the end of its first iteration.
fn rewound() -> (RunId, Vec<Record>) {
    let (id, mut records) = golden("1-first-life-4");
    let mut places = Vec::new();
    Run::fold_each(&id, &records, |record, run, _| {
        let may = matches!(run.status, Status::Parked(_) | Status::Failed(_) | Status::Cancelled);
        if may && run.check().is_ok() && !run.is_busy() {
            places.push(usize::try_from(record.seq.0).unwrap());
        }
    })
    .unwrap();
    records.truncate(*places.last().unwrap());
    let run = Run::fold(&id, &records).unwrap();
    let now = Now { at: Timestamp(run.at.0 + 1), active: Span(run.pool.used(tiller::domain::budget::Axis::Active)) };
    let (to, _) = lineage::boundaries(&records)[0];
    let back = machine::lineage::rewind(&run, &records, to, &ClientId("test".to_string()), now).unwrap();
    records.extend(back.records);
    (id, records)
}

#[test]
fn a_rewind_to_before_a_snapshot_needs_the_whole_journal() {
    let (id, records) = rewound();
    assert!(check(&id, &records) > 5);
}

#[test]
fn the_texts_are_in_the_records_only() {
    let (id, records) = golden("1-first-rehearsal");
    let run = Run::fold(&id, &records).unwrap();
    let stored = serde_json::to_string(&Snapshot::of(&run)).unwrap();
    let texts = records.iter().filter_map(|record| match &record.event {
        Event::ToolCallFinished { outcome, .. } => Some(outcome.text.as_str()),
        _ => None,
    });
    let long: Vec<&str> = texts.filter(|text| text.len() > 200).collect();
    assert!(!long.is_empty());
    for text in long {
        let json = serde_json::to_string(text).unwrap();
        assert!(!stored.contains(json.trim_matches('"')), "{text}");
    }
    // Without the records there is no run, and with those of another call neither.
    assert!(restored(&id, &stored, &[]).unwrap_err().contains("does not have the text"));
    let mut others = records.clone();
    others.rotate_left(1);
    assert!(restored(&id, &stored, &others).unwrap_err().contains("does not have the text"));
    assert!(restored(&RunId::from_entropy([9; 12]), &stored, &records).unwrap_err().contains("it is of run"));
}

/// Where the folds of the golden journals are kept, as hashes, and the version that they belong to.
const FOLDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/folds.txt");

/// Records from one state that counts to the next.
const STATES: usize = 16;

/// A line for each golden journal: a hash of what snapshots of it say, now and then and at its end.
fn folds() -> String {
    let mut text = format!("fold {FOLD_VERSION}\n");
    for name in all() {
        let (id, records) = golden(&name);
        let mut all = String::new();
        Run::fold_each(&id, &records, |record, run, _| {
            let at = usize::try_from(record.seq.0).unwrap();
            if at.is_multiple_of(STATES) || at == records.len() {
                let mut snapshot = serde_json::to_value(Snapshot::of(run)).unwrap();
                order(&mut snapshot);
                all.push_str(&sha256_hex(snapshot.to_string().as_bytes()));
            }
        })
        .unwrap();
        text.push_str(&format!("{name} {}\n", sha256_hex(all.as_bytes())));
    }
    text
}

/// Puts every list of mere texts in order: sets are written as such lists, in any order.
fn order(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Array(items) => {
            items.iter_mut().for_each(order);
            if items.iter().all(serde_json::Value::is_string) {
                items.sort_by(|one, other| one.as_str().cmp(&other.as_str()));
            }
        }
        serde_json::Value::Object(fields) => fields.values_mut().for_each(order),
        _ => {}
    }
}

/// A snapshot of an older fold must not be taken for one of this: whoever changes what records fold to, or how it is
/// written, raises `FOLD_VERSION`.
#[test]
fn a_fold_that_changed_has_another_version() {
    let (kept, now) = (std::fs::read_to_string(FOLDS).unwrap_or_default(), folds());
    let same_version = kept.lines().next() == now.lines().next();
    // A journal that is new is no change; one that is gone is.
    let changed: Vec<&str> =
        kept.lines().filter(|line| !now.lines().any(|other| other == *line)).skip(usize::from(!same_version)).collect();
    assert!(
        !same_version || changed.is_empty(),
        "what journals fold to, or how a snapshot is written, is not what it was, and FOLD_VERSION is still \
         {FOLD_VERSION}: {changed:?}\nIf that is meant: raise FOLD_VERSION in src/domain/snapshot.rs by one, and then \
         TILLER_BLESS=1 cargo test --test simulation a_fold_that_changed\nIf not: it is a fault of the fold."
    );
    if std::env::var_os("TILLER_BLESS").is_some() {
        std::fs::write(FOLDS, now).unwrap();
        return;
    }
    assert_eq!(
        kept, now,
        "FOLD_VERSION was raised, or there is a new golden journal: \
         TILLER_BLESS=1 cargo test --test simulation a_fold_that_changed"
    );
}

/// A run in a store of its own, with two snapshots: at half of its records, and a few before its end.
struct Scene {
    _dir: tempfile::TempDir,
    home: Home,
    id: RunId,
    records: Vec<Record>,
    run: Run,
    places: [usize; 2],
}

impl Scene {
    async fn new(id: RunId, records: Vec<Record>) -> Scene {
        let dir = tempfile::tempdir().unwrap();
        let home = home(dir.path());
        let whole: Vec<usize> = {
            let mut whole = Vec::new();
            let mut note = |record: &Record, run: &Run, _| {
                if run.check().is_ok() {
                    whole.push(usize::try_from(record.seq.0).unwrap());
                }
            };
            Run::fold_each(&id, &records, &mut note).unwrap();
            whole
        };
        let places = [whole[whole.len() / 2], whole[whole.len() - 4]];
        let mut journal = home.create(&id, &records[..1]).await.unwrap();
        let mut from = 1;
        for upto in [places[0], places[1], records.len()] {
            journal.append(records[from..upto].to_vec()).await.unwrap();
            if upto < records.len() {
                journal.keep(Run::fold(&id, &records[..upto]).unwrap()).await;
            }
            from = upto;
        }
        journal.close().await;
        let run = Run::fold(&id, &records).unwrap();
        Scene { _dir: dir, home, id, records, run, places }
    }

    fn path(&self, place: usize) -> PathBuf {
        self.home.run_dir(&self.id).join(format!("snapshot.{place}"))
    }

    /// The positions of the snapshots that are there.
    fn kept(&self) -> Vec<usize> {
        let names = std::fs::read_dir(self.home.run_dir(&self.id)).unwrap().map(|entry| entry.unwrap().file_name());
        let place = |name: OsString| name.to_str()?.strip_prefix("snapshot.")?.parse().ok();
        let mut kept: Vec<usize> = names.filter_map(place).collect();
        kept.sort_unstable();
        kept
    }

    /// Opens the run: it must be what all records fold to.
    async fn check(&self, what: &str) {
        let (journal, run) = self.home.resume(&self.id).await.unwrap_or_else(|error| panic!("{what}: {error}"));
        journal.close().await;
        assert_eq!(run, self.run, "{what}");
        let opened = self.home.open(&self.id).await.unwrap();
        opened.journal.close().await;
        assert_eq!(opened.records, self.records, "{what}");
    }
}

async fn scene() -> Scene {
    let (id, records) = golden("1-first-life-70");
    Scene::new(id, records).await
}

#[tokio::test]
async fn snapshots_are_kept_and_can_all_be_deleted() {
    let scene = scene().await;
    assert_eq!(scene.kept(), scene.places);
    scene.check("with both").await;
    scene.places.iter().for_each(|place| std::fs::remove_file(scene.path(*place)).unwrap());
    scene.check("without any").await;
    assert!(scene.kept().is_empty());
}

#[tokio::test]
async fn the_newest_two_are_kept() {
    let scene = scene().await;
    let (mut journal, run) = scene.home.resume(&scene.id).await.unwrap();
    journal.keep(run).await;
    journal.close().await;
    assert_eq!(scene.kept(), [scene.places[1], scene.records.len()]);
    // One of a later record is of another journal, and would stand in the way of newer ones for ever.
    std::fs::copy(scene.path(scene.places[1]), scene.path(scene.records.len() + 9)).unwrap();
    let (mut journal, run) = scene.home.resume(&scene.id).await.unwrap();
    journal.keep(run).await;
    journal.close().await;
    assert_eq!(scene.kept(), [scene.places[1], scene.records.len()]);
    // One of a run as it was before its last records is no snapshot of this journal, and is not written.
    let (mut journal, _) = scene.home.resume(&scene.id).await.unwrap();
    journal.keep(Run::fold(&scene.id, &scene.records[..scene.places[0]]).unwrap()).await;
    journal.close().await;
    assert_eq!(scene.kept(), [scene.places[1], scene.records.len()]);
}

#[tokio::test]
async fn damaged_snapshots_are_not_used() {
    let scene = scene().await;
    for place in scene.places.into_iter().rev() {
        let path = scene.path(place);
        let whole = std::fs::read(&path).unwrap();
        for part in 0..40 {
            let mut spoiled = whole.clone();
            spoiled[whole.len() * part / 40] ^= 1;
            std::fs::write(&path, &spoiled).unwrap();
            scene.check(&format!("{part} fortieths of {place} spoiled")).await;
            std::fs::write(&path, &whole[..whole.len() * part / 40]).unwrap();
            scene.check(&format!("{place} cut after {part} fortieths")).await;
        }
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        scene.check(&format!("a folder in the place of {place}")).await;
    }
}

/// Puts other words into the first line of a snapshot.
fn reword(path: &Path, from: &str, to: &str) {
    let bytes = std::fs::read(path).unwrap();
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap();
    let line = std::str::from_utf8(&bytes[..end]).unwrap();
    assert!(line.contains(from), "{line}");
    std::fs::write(path, [line.replacen(from, to, 1).as_bytes(), &bytes[end..]].concat()).unwrap();
}

#[tokio::test]
async fn a_snapshot_of_another_fold_is_not_used() {
    let scene = scene().await;
    for place in scene.places {
        reword(&scene.path(place), &format!("\"fold\":{FOLD_VERSION}"), "\"fold\":0");
    }
    scene.check("another version of the fold").await;
}

#[tokio::test]
async fn a_snapshot_of_a_later_record_is_not_preferred_to_the_journal() {
    let scene = scene().await;
    let later = scene.records.len() + 1;
    let name = format!("\"seq\":{}", scene.places[1]);
    std::fs::copy(scene.path(scene.places[1]), scene.path(later)).unwrap();
    reword(&scene.path(later), &name, &format!("\"seq\":{later}"));
    scene.check("a snapshot from the future").await;
    // Moved to an earlier record, it is not that of this record either.
    let earlier = scene.places[1] - 1;
    std::fs::rename(scene.path(scene.places[1]), scene.path(earlier)).unwrap();
    reword(&scene.path(earlier), &name, &format!("\"seq\":{earlier}"));
    scene.check("a snapshot in the place of another").await;
}

#[tokio::test]
async fn a_snapshot_of_another_journal_is_not_used() {
    let scene = scene().await;
    // The same run by name and length, with other words in its first record: the same places, other hashes.
    let mut others = scene.records.clone();
    others[0].at = Timestamp(others[0].at.0 + 1);
    let other = Scene::new(scene.id.clone(), others).await;
    for place in scene.places {
        std::fs::copy(other.path(place), scene.path(place)).unwrap();
    }
    scene.check("snapshots of another journal").await;
    assert_ne!(other.run, scene.run);
}

/// The control: a snapshot that is whole, and of this journal, is what a run is opened from; so one that lies, with
/// every hash right, is believed. Only the whole fold tells, and `tiller audit --verify` makes it.
#[tokio::test]
async fn opening_rests_on_the_snapshot() {
    let scene = scene().await;
    lie(&scene);
    let (journal, run) = scene.home.resume(&scene.id).await.unwrap();
    journal.close().await;
    assert_ne!(run, scene.run);
    let survey = scene.home.survey(&scene.id).unwrap();
    assert!(survey.is_whole(), "the journal is not damaged by it: {:?}", survey.flaws);
    assert_eq!(scene.home.liars(&scene.id, &survey), [Seq(scene.places[1] as u64)]);
    let honest = self::scene().await;
    assert!(honest.home.liars(&honest.id, &honest.home.survey(&honest.id).unwrap()).is_empty());
}

/// Makes the newest snapshot say something else, with every hash right.
fn lie(scene: &Scene) {
    use std::io::Read;
    use std::io::Write;
    let path = scene.path(scene.places[1]);
    let bytes = std::fs::read(&path).unwrap();
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap();
    let mut json = String::new();
    lz4_flex::frame::FrameDecoder::new(&bytes[end + 1..]).read_to_string(&mut json).unwrap();
    let lied = json.replacen("\"recoveries\":", "\"recoveries\":1", 1);
    assert_ne!(json, lied);
    let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
    encoder.write_all(lied.as_bytes()).unwrap();
    let packed = encoder.finish().unwrap();
    let mut header: serde_json::Value = serde_json::from_slice(&bytes[..end]).unwrap();
    header["hash"] = tiller::domain::text::sha256_hex(&packed).into();
    header["bytes"] = lied.len().into();
    std::fs::write(&path, [header.to_string().as_bytes(), b"\n", &packed].concat()).unwrap();
}

#[tokio::test]
async fn a_rewound_run_opens_to_what_it_was_put_back_to() {
    let (id, records) = rewound();
    Scene::new(id, records).await.check("snapshots that the rewind goes back behind").await;
}

#[tokio::test]
async fn a_snapshot_is_due_at_rest_and_after_many_iterations() {
    let dir = tempfile::tempdir().unwrap();
    let home = home(dir.path());
    let (id, records) = golden("1-first-life-70");
    let mut journal = home.create(&id, &records[..1]).await.unwrap();
    let mut due = Vec::new();
    let mut run = Run::begin(id.clone(), &records[0]).unwrap();
    for record in &records[1..] {
        journal.append(vec![record.clone()]).await.unwrap();
        run.apply(record).unwrap();
        if journal.is_snapshot_due() {
            due.push(record.event.name());
            journal.keep(run.clone()).await;
            assert!(!journal.is_snapshot_due());
        }
    }
    journal.close().await;
    assert!(due.len() > 2, "{due:?}");
    // The first is due at once, because there is none; the others where the run rests or an iteration is closed.
    for name in &due[1..] {
        assert!(["status_changed", "iteration_closed"].contains(name), "{due:?}");
    }
    drop(dir);
}
