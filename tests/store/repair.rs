//! Journals looked at in a copy, proven, and mended: nothing that was found is ever lost by it.

use std::collections::BTreeMap;
use std::path::Path;
use std::path::PathBuf;

use crate::homes::home;
use crate::store::damage::quiet;
use crate::store::database::database;
use crate::store::records::noise;
use crate::store::records::said;
use tiller::domain::id::RunId;
use tiller::domain::id::Seq;
use tiller::domain::summary::Listed;
use tiller::store::Journal;
use tiller::store::Newer;
use tiller::store::StoreError;
use tiller::store::look::Survey;
use tiller::store::place::Home;
use tiller::store::remove::Removal;
use tiller::store::repair::Repair;
use tiller::store::transfer;
use tiller::store::transfer::Carried;

/// A whole rehearsal in a home of its own.
struct Scene {
    _dir: tempfile::TempDir,
    home: Home,
    id: RunId,
    carried: Carried,
}

impl Scene {
    async fn new() -> Scene {
        quiet();
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/journals/1-first-rehearsal.jsonl");
        let carried = transfer::read(&std::fs::read_to_string(golden).unwrap()).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let home = home(dir.path());
        // A value for each record, but for the last, which holds twelve.
        let (first, rest) = carried.records.split_at(1);
        let (each, last) = rest.split_at(rest.len() - 12);
        let mut journal = home.create(&carried.run, first).await.unwrap();
        for record in each {
            journal.append(vec![record.clone()]).await.unwrap();
        }
        journal.append(last.to_vec()).await.unwrap();
        journal.close().await;
        // Opened and closed, so that sled has a snapshot of its own.
        home.open(&carried.run).await.unwrap().journal.close().await;
        Scene { _dir: dir, home, id: carried.run.clone(), carried }
    }

    fn dir(&self) -> PathBuf {
        self.home.run_dir(&self.id)
    }

    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        // The copy that was made to open the run is thrown away beside what follows.
        let start = std::time::Instant::now();
        let is_copy = |entry: std::fs::DirEntry| entry.file_name().to_string_lossy().starts_with("store.before.");
        while std::fs::read_dir(self.dir()).unwrap().map(Result::unwrap).any(is_copy) {
            assert!(start.elapsed() < std::time::Duration::from_secs(60), "the copy is still there");
            std::thread::yield_now();
        }
        files(&self.dir())
    }

    /// Looks at the run, which must change nothing of it.
    fn survey(&self) -> Survey {
        let before = self.files();
        let survey = self.home.survey(&self.id).unwrap();
        assert_eq!(self.files(), before, "looking changed something");
        survey
    }

    /// What is wrong after a change of the journal tree through sled.
    fn flaws(&self, change: impl FnOnce(&sled::Tree)) -> Vec<String> {
        let db = database(&self.dir().join("store"));
        change(&db.open_tree("journal").unwrap());
        db.flush().unwrap();
        drop(db);
        self.survey().flaws.iter().map(|flaw| flaw.phrase()).collect()
    }

    fn snapshots(&self) -> Vec<PathBuf> {
        let all = self.files().into_keys();
        all.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("snap.")).collect()
    }
}

fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(files(&entry.path())),
            false => drop(found.insert(entry.path(), std::fs::read(entry.path()).unwrap())),
        }
    }
    found
}

fn key(seq: u64) -> [u8; 8] {
    seq.to_be_bytes()
}

#[tokio::test]
async fn a_whole_journal_has_no_flaws() {
    let scene = Scene::new().await;
    let survey = scene.survey();
    assert!(survey.is_whole(), "{:?}", survey.flaws);
    assert_eq!(survey.records, scene.carried.records);
    assert!(matches!(scene.home.repair(&scene.id).unwrap(), Repair::Sound(_)));
    let opened = scene.home.open(&scene.id).await.unwrap();
    assert!(matches!(scene.home.survey(&scene.id).unwrap_err(), StoreError::Locked { .. }));
    assert!(matches!(scene.home.repair(&scene.id).unwrap_err(), StoreError::Locked { .. }));
    opened.journal.close().await;
}

#[tokio::test]
async fn s_65_an_edited_record_breaks_the_link_after_it() {
    let scene = Scene::new().await;
    let flaws = scene.flaws(|journal| {
        let value = String::from_utf8(journal.get(key(9)).unwrap().unwrap().to_vec()).unwrap();
        let edited = value.replacen("\"at\":1", "\"at\":2", 1);
        assert_ne!(value, edited);
        journal.insert(key(9), edited.as_bytes()).unwrap();
    });
    assert_eq!(flaws[0], "record 10 does not follow the record before it: their hashes differ");
    assert_eq!(flaws[1], "records 11 to 330: it is there, but the one that it follows is not");
    assert_eq!(flaws.len(), 2);
}

#[tokio::test]
async fn s_65_a_removed_record_is_a_gap() {
    let scene = Scene::new().await;
    let flaws = scene.flaws(|journal| {
        journal.remove(key(20)).unwrap();
        journal.remove(key(21)).unwrap();
    });
    assert_eq!(
        flaws,
        ["records 20 to 21: missing", "records 22 to 330: it is there, but the one that it follows is not"]
    );
    assert_eq!(scene.survey().records.len(), 19);
}

#[tokio::test]
async fn s_65_a_cut_tail_is_noticed_by_the_anchor() {
    let scene = Scene::new().await;
    // The last value, which holds several records.
    let flaws = scene.flaws(|journal| drop(journal.pop_max().unwrap()));
    assert_eq!(flaws, ["records 319 to 330: missing: the journal ends before it, but it was written"]);
    // What can't be had from any copy is named, and nothing is changed.
    let before = scene.files();
    let Repair::Lost(survey) = scene.home.repair(&scene.id).unwrap() else { panic!("mended out of nothing") };
    assert_eq!((survey.records.len(), survey.flaws[0].first, survey.flaws[0].last), (318, Seq(319), Seq(330)));
    assert_eq!(scene.files(), before);
}

#[tokio::test]
async fn s_62_a_truncated_snapshot_of_sled_is_mended() {
    let scene = Scene::new().await;
    let snapshots = scene.snapshots();
    assert!(!snapshots.is_empty());
    for path in &snapshots {
        let length = std::fs::metadata(path).unwrap().len();
        std::fs::File::options().write(true).open(path).unwrap().set_len(length / 2).unwrap();
    }
    let found = files(&scene.dir().join("store"));
    assert!(!scene.survey().is_whole());
    assert!(matches!(scene.home.open(&scene.id).await.unwrap_err(), StoreError::Damaged { .. }));
    let Repair::Mended { survey, kept } = scene.home.repair(&scene.id).unwrap() else { panic!("not mended") };
    assert!(survey.is_whole());
    assert_eq!(survey.records, scene.carried.records);
    // What was found is kept, byte for byte: as it was before anything opened it.
    let names = std::fs::read_dir(scene.dir()).unwrap().map(|entry| entry.unwrap().path());
    let stores: Vec<_> = names.filter(|path| path.to_str().unwrap().contains("store.damaged")).collect();
    assert!(stores.contains(&kept));
    let same = |kept: &PathBuf| {
        let there = files(kept);
        found.iter().all(|(path, bytes)| there.get(&kept.join(path.file_name().unwrap())) == Some(bytes))
    };
    assert!(stores.iter().any(same), "the damaged store was not kept as it was");
    let opened = scene.home.open(&scene.id).await.unwrap();
    assert_eq!(opened.records, scene.carried.records);
    opened.journal.close().await;
    assert!(matches!(scene.home.repair(&scene.id).unwrap(), Repair::Sound(_)));
}

#[tokio::test]
async fn a_repair_that_was_killed_in_between_is_done_again() {
    let scene = Scene::new().await;
    let store = scene.dir().join("store");
    std::fs::rename(&store, scene.dir().join("store.mended")).unwrap();
    // All that a repair would put back is seen, and where it is; whoever removes the run is told.
    let survey = scene.survey();
    let flaws: Vec<String> = survey.flaws.iter().map(|flaw| flaw.phrase()).collect();
    assert_eq!(
        flaws,
        ["the file of its database is missing", "what can be read is in `store.mended`, beside its store"]
    );
    assert!(!survey.is_whole() && survey.records == scene.carried.records);
    let restored = scene.home.outlook(&scene.id, &survey).unwrap().unwrap();
    assert!(restored.is_whole() && restored.records == scene.carried.records);
    let Repair::Mended { survey, .. } = scene.home.repair(&scene.id).unwrap() else { panic!("not mended") };
    assert_eq!(survey.records, scene.carried.records);
    scene.home.open(&scene.id).await.unwrap().journal.close().await;
}

#[tokio::test]
async fn s_63_a_record_of_a_newer_version_is_shown_up_to_there() {
    let scene = Scene::new().await;
    let flaws = scene.flaws(|journal| {
        journal.insert(key(330), br#"{"v":2,"seq":330,"new":"shape"}"#.as_slice()).unwrap();
    });
    assert_eq!(flaws, [] as [&str; 0]);
    let survey = scene.survey();
    assert_eq!((survey.newer, survey.records.len()), (Some(Newer::Format(2)), 329));
    let error = scene.home.open(&scene.id).await.unwrap_err();
    assert!(matches!(error, StoreError::TooNew { found: Newer::Format(2), .. }), "{error}");
}

/// A run whose anchor was spoiled is not opened; mended, it has all its records and a new anchor, and keeps the rest.
async fn check_anchor(spoil: impl FnOnce(&Path), why: &str) {
    let scene = Scene::new().await;
    let (anchor, store) = (scene.dir().join("anchor"), files(&scene.dir().join("store")));
    spoil(&anchor);
    let error = scene.home.open(&scene.id).await.unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
    assert!(error.to_string().contains(why), "{error}");
    let was_there = anchor.symlink_metadata().is_ok();
    let Repair::Anchored { survey, kept } = scene.home.repair(&scene.id).unwrap() else { panic!("not anchored") };
    assert_eq!(survey.records, scene.carried.records);
    assert_eq!(files(&kept).len(), store.len());
    assert_eq!(scene.dir().join("anchor.damaged.1").symlink_metadata().is_ok(), was_there, "not kept");
    assert!(scene.survey().is_whole());
    let opened = scene.home.open(&scene.id).await.unwrap();
    assert_eq!(opened.records, scene.carried.records);
    opened.journal.close().await;
    assert!(matches!(scene.home.repair(&scene.id).unwrap(), Repair::Sound(_)));
}

#[tokio::test]
async fn an_anchor_that_is_gone_is_made_anew() {
    let why = "its anchor is missing or can't be read";
    check_anchor(|anchor| std::fs::remove_file(anchor).unwrap(), why).await;
    check_anchor(|anchor| std::fs::write(anchor, "").unwrap(), why).await;
    check_anchor(|anchor| std::fs::write(anchor, [7; 128]).unwrap(), why).await;
    let folder = |anchor: &Path| {
        std::fs::remove_file(anchor).unwrap();
        std::fs::create_dir(anchor).unwrap();
    };
    check_anchor(folder, why).await;
}

/// A store that was kept holds all, and the one in its place nothing or less. What a repair can't mend it does not promise.
#[tokio::test]
async fn what_is_kept_beside_a_store_is_read_where_it_holds_more() {
    let scene = Scene::new().await;
    let (store, kept) = (scene.dir().join("store"), scene.dir().join("store.damaged.1"));
    copy_files(&store, &kept);
    std::fs::write(store.join("db"), "nothing").unwrap();
    let survey = scene.survey();
    assert!(survey.is_elsewhere && survey.records == scene.carried.records);
    assert!(scene.home.outlook(&scene.id, &survey).unwrap().is_some());
    std::fs::remove_file(scene.dir().join("anchor")).unwrap();
    let survey = scene.survey();
    assert!(survey.is_elsewhere && survey.records == scene.carried.records, "{:?}", survey.flaws);
    assert!(scene.home.outlook(&scene.id, &survey).unwrap().is_some());
    // What is kept is damaged too: more can be read there than in the store, and a repair does not help.
    let db = database(&kept);
    db.open_tree("journal").unwrap().remove(key(20)).unwrap();
    db.flush().unwrap();
    drop(db);
    let survey = scene.survey();
    assert!(survey.is_elsewhere && survey.records.len() == 19, "{:?}", survey.flaws);
    assert_eq!(scene.home.outlook(&scene.id, &survey).unwrap(), None);
    assert!(matches!(scene.home.repair(&scene.id).unwrap(), Repair::Lost(_)));
    assert!(matches!(scene.home.remove_damaged(&scene.id).unwrap(), Removal::Done(_)));
}

/// What is no file, or for sled's folder no folder, is damage with a name: nothing waits for it, and a repair takes only the
/// files along.
#[tokio::test]
async fn what_is_no_file_in_a_store_is_told_and_mended() {
    fn pipe(path: &Path) {
        nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    }
    fn folder(path: &Path) {
        std::fs::create_dir(path).unwrap();
    }
    fn astray(path: &Path) {
        std::os::unix::fs::symlink("/nonexistent/x", path).unwrap();
    }
    fn file(path: &Path) {
        std::fs::write(path, "").unwrap();
    }
    type Put = fn(&Path);
    let cases: [(&str, Put, &str); 8] = [
        ("conf", pipe, "file"),
        ("conf", folder, "file"),
        ("conf", astray, "file"),
        ("snap.FFFF", pipe, "file"),
        ("snap.FFFF", folder, "file"),
        ("snap.1.generating", folder, "file"),
        ("blobs", pipe, "folder"),
        ("blobs", file, "folder"),
    ];
    let scene = Scene::new().await;
    for (name, put, wanted) in cases {
        let (path, why) = (scene.dir().join("store").join(name), format!("`{name}` in its store is not a {wanted}"));
        match path.is_dir() {
            true => std::fs::remove_dir(&path).unwrap(),
            false => drop(std::fs::remove_file(&path)),
        }
        put(&path);
        let listed = scene.home.list().unwrap();
        assert!(matches!(&listed[..], [Listed::Damaged { why: told, .. }] if *told == why), "{listed:?}");
        let opened = tokio::time::timeout(std::time::Duration::from_secs(60), scene.home.open(&scene.id)).await;
        let error = opened.unwrap_or_else(|_| panic!("{why}: opening hangs")).unwrap_err();
        assert!(matches!(&error, StoreError::Damaged { .. }) && error.to_string().contains(&why), "{error}");
        let survey = scene.home.survey(&scene.id).unwrap();
        assert_eq!(survey.flaws[0].phrase(), why);
        assert_eq!(survey.records, scene.carried.records);
        let removed = scene.home.remove(&scene.id, |_| panic!("asked")).unwrap_err();
        assert!(matches!(removed, StoreError::Damaged { .. }), "{removed}");
        let Repair::Mended { kept, .. } = scene.home.repair(&scene.id).unwrap() else { panic!("{why}: not mended") };
        assert!(kept.join(name).symlink_metadata().is_ok(), "{why}: not kept");
        let opened = scene.home.open(&scene.id).await.unwrap();
        assert_eq!(opened.records, scene.carried.records);
        opened.journal.close().await;
        // It would be read in the place of the store.
        let kept = std::fs::read_dir(scene.dir()).unwrap().map(|entry| entry.unwrap().path());
        let kept = kept.filter(|path| path.to_str().unwrap().contains("store.damaged"));
        kept.for_each(|path| std::fs::remove_dir_all(path).unwrap());
    }
    std::fs::remove_file(scene.dir().join("store/conf")).unwrap();
    pipe(&scene.dir().join("store/conf"));
    assert!(matches!(scene.home.remove_damaged(&scene.id).unwrap(), Removal::Done(Some(_))));
    assert!(!scene.dir().exists());
}

/// Whatever stands where a repair puts its copies, and where the store was.
#[tokio::test]
async fn what_is_no_store_in_the_place_of_one_is_in_nobodys_way() {
    let scene = Scene::new().await;
    std::fs::rename(scene.dir().join("store"), scene.dir().join("store.damaged.7")).unwrap();
    for name in ["store", "store.damaged", "store.mended"] {
        nix::unistd::mkfifo(&scene.dir().join(name), nix::sys::stat::Mode::S_IRWXU).unwrap();
    }
    assert!(matches!(scene.home.open(&scene.id).await.unwrap_err(), StoreError::Damaged { .. }));
    assert_eq!(scene.home.survey(&scene.id).unwrap().records, scene.carried.records);
    let Repair::Mended { .. } = scene.home.repair(&scene.id).unwrap() else { panic!("not mended") };
    scene.home.open(&scene.id).await.unwrap().journal.close().await;
}

/// The moment in which a repair has the store under another name: it is waited for, as for any owner.
#[tokio::test]
async fn a_repair_is_waited_for() {
    let scene = Scene::new().await;
    let repairing = std::fs::File::open(scene.dir()).unwrap();
    repairing.lock().unwrap();
    std::fs::rename(scene.dir().join("store"), scene.dir().join("store.mended")).unwrap();
    let refused = |error: StoreError| assert!(matches!(error, StoreError::Locked { .. }), "{error}");
    refused(scene.home.open(&scene.id).await.unwrap_err());
    refused(scene.home.survey(&scene.id).unwrap_err());
    refused(scene.home.remove_damaged(&scene.id).unwrap_err());
    std::fs::rename(scene.dir().join("store.mended"), scene.dir().join("store")).unwrap();
    drop(repairing);
    scene.home.open(&scene.id).await.unwrap().journal.close().await;
}

/// An owner is found though the file that it locked has another name now.
#[tokio::test]
async fn a_run_whose_database_was_moved_away_is_held_as_before() {
    let scene = Scene::new().await;
    let mut opened = scene.home.open(&scene.id).await.unwrap();
    let (db, moved) = (scene.dir().join("store/db"), scene.dir().join("db"));
    std::fs::rename(&db, &moved).unwrap();
    let refused = |error: StoreError| assert!(matches!(error, StoreError::Locked { .. }), "{error}");
    refused(scene.home.remove_damaged(&scene.id).unwrap_err());
    refused(scene.home.remove(&scene.id, |_| true).unwrap_err());
    refused(scene.home.repair(&scene.id).unwrap_err());
    refused(scene.home.survey(&scene.id).unwrap_err());
    std::fs::rename(&moved, &db).unwrap();
    opened.journal.append(vec![said(331, "goes on")]).await.unwrap();
    opened.journal.close().await;
    assert_eq!(scene.home.open(&scene.id).await.unwrap().records.len(), 331);
}

fn copy_files(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for (path, bytes) in files(from) {
        std::fs::write(to.join(path.file_name().unwrap()), bytes).unwrap();
    }
}

#[tokio::test]
async fn two_repairs_take_turns() {
    let scene = Scene::new().await;
    std::fs::remove_file(scene.dir().join("anchor")).unwrap();
    let other = std::fs::File::open(scene.dir()).unwrap();
    other.lock().unwrap();
    let before = files(&scene.dir());
    assert!(matches!(scene.home.repair(&scene.id).unwrap_err(), StoreError::Locked { .. }));
    assert_eq!(files(&scene.dir()), before, "it changed something");
    drop(other);
    assert!(matches!(scene.home.repair(&scene.id).unwrap(), Repair::Anchored { .. }));
}

#[tokio::test]
async fn an_anchor_is_made_anew_where_snapshots_of_sled_are_damaged_too() {
    let spoil = |anchor: &Path| {
        std::fs::remove_file(anchor).unwrap();
        for (path, bytes) in files(&anchor.with_file_name("store")) {
            if path.file_name().unwrap().to_str().unwrap().starts_with("snap.") {
                std::fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
            }
        }
    };
    check_anchor(spoil, "its database can't be read").await;
}

#[tokio::test]
async fn without_an_anchor_a_gap_is_a_gap_and_half_a_batch_is_taken_back() {
    let scene = Scene::new().await;
    let spoil = |change: &dyn Fn(&sled::Tree)| {
        let _ = std::fs::remove_file(scene.dir().join("anchor"));
        scene.flaws(|journal| change(journal))
    };
    // A batch of two values, of which one was written.
    let mut journal = scene.home.open(&scene.id).await.unwrap().journal;
    journal.append([331, 332].map(|seq| said(seq, &noise(seq, 5_000))).to_vec()).await.unwrap();
    journal.close().await;
    let flaws = spoil(&|journal| drop(journal.pop_max().unwrap()));
    assert_eq!(flaws, ["its anchor is missing or can't be read, so nobody can tell how far it went"]);
    assert_eq!(scene.survey().records.len(), 331);
    let Repair::Anchored { survey, .. } = scene.home.repair(&scene.id).unwrap() else { panic!("not anchored") };
    assert_eq!(survey.records.len(), 330);
    let opened = scene.home.open(&scene.id).await.unwrap();
    assert_eq!(opened.records, scene.carried.records);
    opened.journal.close().await;
    spoil(&|journal| drop(journal.remove(key(20)).unwrap()));
    let kept: Vec<_> =
        files(&scene.dir()).into_keys().filter(|path| path.to_str().unwrap().contains("damaged")).collect();
    kept.into_iter().for_each(|path| std::fs::remove_file(path).unwrap());
    let before = scene.files();
    let Repair::Lost(survey) = scene.home.repair(&scene.id).unwrap() else { panic!("anchored over a gap") };
    assert_eq!(survey.records.len(), 19);
    assert_eq!(scene.files(), before);
}
