//! What every journal promises, tried on the one in memory and on the one on disk; and what only the disk can.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::homes::home;
use crate::homes::owner;
use crate::homes::run_id;
use crate::store::beginning::created;
use crate::store::database::database;
use crate::store::records::noise;
use crate::store::records::said;
use crate::store::small::parked;
use crate::store::small::small_run;
use tiller::domain::event::Record;
use tiller::domain::id::Seq;
use tiller::domain::limits;
use tiller::domain::run::Run;
use tiller::domain::summary::Listed;
use tiller::domain::summary::Summary;
use tiller::store::Journal;
use tiller::store::Newer;
use tiller::store::StoreError;
use tiller::store::memory::MemoryJournal;
use tiller::store::place::Home;

/// Both journals, each holding one record; the directory lives as long as the second is used.
async fn journals() -> (tempfile::TempDir, Vec<Box<dyn Journal>>) {
    let dir = tempfile::tempdir().unwrap();
    let first = [created("the goal")];
    let disk = home(dir.path()).create(&run_id(1), &first).await.unwrap();
    let memory = MemoryJournal::new(&first).unwrap();
    (dir, vec![Box::new(memory), Box::new(disk)])
}

async fn all(journal: &dyn Journal) -> Vec<Record> {
    journal.reader().read(Seq(1), usize::MAX).await.unwrap()
}

#[tokio::test]
async fn what_is_appended_is_read() {
    let (_dir, journals) = journals().await;
    for mut journal in journals {
        let mut expected = vec![created("the goal")];
        for batch in [vec![said(2, "a")], vec![said(3, "é🦀\u{0}\u{7f}\\\""), parked(4)], vec![]] {
            expected.extend(batch.clone());
            journal.append(batch).await.unwrap();
            assert_eq!(all(journal.as_ref()).await, expected);
        }
        let reader = journal.reader();
        assert_eq!(reader.read(Seq(2), 2).await.unwrap(), expected[1..3]);
        assert_eq!(reader.read(Seq(4), 9).await.unwrap(), expected[3..]);
        assert_eq!(reader.read(Seq(0), 1).await.unwrap(), expected[..1]);
        assert_eq!(reader.read(Seq(5), 9).await.unwrap(), []);
        assert_eq!(reader.read(Seq(u64::MAX), usize::MAX).await.unwrap(), []);
        assert_eq!(reader.read(Seq(1), 0).await.unwrap(), []);
    }
}

#[tokio::test]
async fn gaps_and_repeats_are_refused_whole() {
    let (_dir, journals) = journals().await;
    for mut journal in journals {
        for batch in [vec![said(1, "a")], vec![said(3, "a")], vec![said(2, "a"), said(4, "b")], vec![said(0, "a")]] {
            let error = journal.append(batch).await.unwrap_err();
            assert!(matches!(error, StoreError::NotDense { .. }), "{error}");
        }
        assert_eq!(all(journal.as_ref()).await, [created("the goal")]);
        journal.append(vec![said(2, "b")]).await.unwrap();
    }
}

#[tokio::test]
async fn a_record_that_is_too_long_is_refused_whole() {
    let (_dir, journals) = journals().await;
    for mut journal in journals {
        let batch = vec![said(2, "a"), said(3, &"x".repeat(limits::RECORD_MAX_BYTES))];
        let error = journal.append(batch).await.unwrap_err();
        assert!(matches!(error, StoreError::TooLong { seq: Seq(3), .. }), "{error}");
        assert_eq!(all(journal.as_ref()).await.len(), 1);
    }
}

#[tokio::test]
async fn a_journal_in_memory_fails_when_told() {
    let mut journal = MemoryJournal::new(&[created("the goal")]).unwrap();
    journal.fail_append(2);
    journal.append(vec![said(2, "a")]).await.unwrap();
    let error = journal.append(vec![said(3, "b")]).await.unwrap_err();
    assert!(matches!(error, StoreError::Disk { .. }), "{error}");
    assert_eq!(all(&journal).await.len(), 2);
    journal.append(vec![said(3, "b")]).await.unwrap();
}

/// Values of every tree, and files that sled keeps for large pages.
fn longest_value(store: &Path) -> (usize, usize) {
    let db = database(store);
    let longest = |tree: &str| db.open_tree(tree).unwrap().iter().values().map(|value| value.unwrap().len()).max();
    let longest = ["meta", "journal", "blob"].into_iter().filter_map(longest).max().unwrap();
    (longest, std::fs::read_dir(store.join("blobs")).unwrap().count())
}

#[tokio::test]
async fn records_of_any_length_come_back_and_no_value_is_long() {
    let lengths = [
        0,
        1,
        3_900,
        3_950,
        4_000,
        4_096,
        4_097,
        7_000,
        7_168,
        32 << 10,
        128 << 10,
        1 << 20,
        2 << 20,
        limits::RECORD_MAX_BYTES - 400,
    ];
    let dir = tempfile::tempdir().unwrap();
    let home = home(dir.path());
    let mut journal = home.create(&run_id(1), &[created("é🦀")]).await.unwrap();
    let mut expected = vec![created("é🦀")];
    for (text, seq) in lengths.into_iter().flat_map(|length| [noise(7, length), "é".repeat(length / 2)]).zip(2..) {
        expected.push(said(seq, &text));
        journal.append(vec![said(seq, &text)]).await.unwrap();
    }
    assert_eq!(all(&journal).await, expected);
    journal.close().await;
    let opened = home.open(&run_id(1)).await.unwrap();
    assert_eq!(opened.records, expected);
    opened.journal.close().await;
    let (longest, large_pages) = longest_value(&home.run_dir(&run_id(1)).join("store"));
    assert!(longest <= limits::VALUE_MAX_BYTES, "{longest}");
    assert_eq!(large_pages, 0);
}

#[tokio::test]
async fn many_records_in_one_batch_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let home = home(dir.path());
    let records = small_run(400, 6_000);
    home.create(&run_id(1), &records[..1]).await.unwrap().close().await;
    let mut journal = home.open(&run_id(1)).await.unwrap().journal;
    journal.append(records[1..].to_vec()).await.unwrap();
    journal.close().await;
    let opened = home.open(&run_id(1)).await.unwrap();
    assert_eq!(opened.records, records);
    opened.journal.close().await;
    assert_eq!(longest_value(&home.run_dir(&run_id(1)).join("store")).1, 0);
}

/// What stands in the journal tree of a closed run: keys, lines of their values, and `+` where the batch goes on.
fn values(home: &Home) -> Vec<(u64, usize, bool)> {
    let db = database(&home.run_dir(&run_id(1)).join("store"));
    let tell = |(key, value): (sled::IVec, sled::IVec)| {
        let text = std::str::from_utf8(&value).unwrap();
        (u64::from_be_bytes(key.as_ref().try_into().unwrap()), text.lines().count(), text.ends_with('\n'))
    };
    db.open_tree("journal").unwrap().iter().map(|entry| tell(entry.unwrap())).collect()
}

fn batch(seqs: std::ops::RangeInclusive<u64>, bytes: usize) -> Vec<Record> {
    seqs.map(|seq| said(seq, &noise(seq, bytes))).collect()
}

#[tokio::test]
async fn a_short_batch_is_few_values_and_each_of_its_records_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let home = home(dir.path());
    let mut journal = home.create(&run_id(1), &[created("the goal")]).await.unwrap();
    let mut expected = vec![created("the goal")];
    for records in [batch(2..=3, 10), batch(4..=11, 1_000), batch(12..=12, 10), batch(13..=15, 6_000)] {
        expected.extend(records.clone());
        journal.append(records).await.unwrap();
    }
    for (from, most) in (1..=15).flat_map(|from| (0..=15).map(move |most| (from, most))) {
        let read = journal.reader().read(Seq(from as u64), most).await.unwrap();
        assert_eq!(read, expected[from - 1..expected.len().min(from - 1 + most)], "{most} from {from} on");
    }
    journal.close().await;
    let laid = [(1, 1, false), (2, 2, false), (4, 6, true), (10, 2, false), (12, 1, false)];
    let whole = [(13, 1, true), (14, 1, true), (15, 1, false)];
    assert_eq!(values(&home), [&laid[..], &whole[..]].concat());
    let survey = home.survey(&run_id(1)).unwrap();
    assert_eq!((survey.records, survey.flaws), (expected.clone(), vec![]));
    let carried = tiller::store::transfer::read(&tiller::store::transfer::write(&run_id(2), &survey.lines).unwrap());
    home.import(&run_id(2), &carried.unwrap()).unwrap();
    for id in [run_id(1), run_id(2)] {
        assert_eq!(home.open(&id).await.unwrap().records, expected);
    }
}

#[tokio::test]
async fn a_batch_that_was_cut_short_is_taken_back_unless_it_was_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let home = home(dir.path());
    let mut journal = home.create(&run_id(1), &[created("the goal")]).await.unwrap();
    journal.append(batch(2..=4, 10)).await.unwrap();
    let anchor = home.run_dir(&run_id(1)).join("anchor");
    let before = std::fs::read(&anchor).unwrap();
    journal.append(batch(5..=20, 1_000)).await.unwrap();
    journal.close().await;
    let after = std::fs::read(&anchor).unwrap();
    let cut = |from: u64| {
        let db = database(&home.run_dir(&run_id(1)).join("store"));
        db.open_tree("journal").unwrap().remove(from.to_be_bytes()).unwrap().unwrap();
    };
    cut(17);
    assert_eq!(values(&home), [(1, 1, false), (2, 3, false), (5, 6, true), (11, 6, true)]);
    let survey = home.survey(&run_id(1)).unwrap();
    assert!(survey.flaws[0].why.contains("the journal ends before it"), "{:?}", survey.flaws);
    assert_eq!((survey.records.len(), survey.flaws[0].first, survey.flaws[0].last), (16, Seq(17), Seq(20)));
    std::fs::write(&anchor, &before).unwrap();
    let survey = home.survey(&run_id(1)).unwrap();
    assert_eq!((survey.records.len(), survey.flaws), (4, vec![]));
    std::fs::write(&anchor, &after).unwrap();
    let text = home.open(&run_id(1)).await.unwrap_err().to_string();
    assert!(text.contains("it ends with record 16, but record 20 was written"), "{text}");
    std::fs::write(&anchor, &before).unwrap();
    let opened = home.open(&run_id(1)).await.unwrap();
    assert_eq!(opened.records.len(), 4);
    let mut journal = opened.journal;
    journal.append(vec![said(5, "another")]).await.unwrap();
    journal.close().await;
    assert_eq!(values(&home), [(1, 1, false), (2, 3, false), (5, 1, false)]);
    assert_eq!(home.open(&run_id(1)).await.unwrap().records.last(), Some(&said(5, "another")));
}

#[tokio::test]
async fn sleds_file_is_filled_up_to_whole_segments() {
    let dir = tempfile::tempdir().unwrap();
    let home = home(dir.path());
    let mut journal = home.create(&run_id(1), &[created("the goal")]).await.unwrap();
    let mut lengths = std::collections::BTreeSet::new();
    let mut expected = vec![created("the goal")];
    while lengths.len() < 4 {
        let seq = expected.len() as u64 + 1;
        expected.push(said(seq, &noise(seq, 6_000)));
        journal.append(expected[expected.len() - 1..].to_vec()).await.unwrap();
        // It answers when it is done with what follows the append.
        journal.syncs().await.unwrap();
        lengths.insert(home.run_dir(&run_id(1)).join("store/db").metadata().unwrap().len());
    }
    assert!(lengths.iter().all(|length| length % (512 << 10) == 0), "{lengths:?}");
    journal.close().await;
    let opened = home.open(&run_id(1)).await.unwrap();
    assert_eq!(opened.records, expected);
    opened.journal.close().await;
    assert_eq!(longest_value(&home.run_dir(&run_id(1)).join("store")).1, 0);
}

/// `tests/fixtures/stores/1-first` was written by the first format: a record by itself, a batch, one in pieces, and a
/// batch with such a one. It is never changed.
#[tokio::test]
async fn a_store_of_the_first_format_is_read_and_written_on() {
    let dir = tempfile::tempdir().unwrap();
    let home = home(dir.path());
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/stores/1-first");
    let run_dir = home.run_dir(&run_id(1));
    for made in [&run_dir, &run_dir.join("store")] {
        std::fs::create_dir(made).unwrap();
        std::fs::set_permissions(made, std::fs::Permissions::from_mode(0o700)).unwrap();
    }
    let names = std::fs::read_dir(fixture.join("store")).unwrap().map(|entry| entry.unwrap().file_name());
    for name in names.map(|name| Path::new("store").join(name)).chain(["anchor".into()]) {
        std::fs::copy(fixture.join(&name), run_dir.join(&name)).unwrap();
    }
    let mut expected = vec![created("the goal"), said(2, "one")];
    expected.extend(batch(3..=8, 700));
    expected.extend([said(9, &noise(9, 9_000)), said(10, "short"), said(11, &noise(11, 5_000))]);
    expected.extend([said(12, "short"), parked(13)]);
    let format = || {
        let db = database(&run_dir.join("store"));
        db.open_tree("meta").unwrap().get("format").unwrap().unwrap().to_vec()
    };
    let survey = home.survey(&run_id(1)).unwrap();
    assert_eq!((survey.records, survey.flaws), (expected.clone(), vec![]));
    assert_eq!(format(), b"1", "looking changes nothing");
    let mut journal = home.open(&run_id(1)).await.unwrap().journal;
    journal.append(batch(14..=20, 700)).await.unwrap();
    expected.extend(batch(14..=20, 700));
    journal.close().await;
    assert_eq!(format(), b"2");
    assert_eq!(home.open(&run_id(1)).await.unwrap().records, expected);
}

#[tokio::test]
async fn each_append_syncs() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = home(dir.path()).create(&run_id(1), &[created("the goal")]).await.unwrap();
    for seq in 2..6 {
        let before = journal.syncs().await.unwrap();
        journal.append(vec![said(seq, "a")]).await.unwrap();
        assert_eq!(journal.syncs().await.unwrap(), before + 1);
    }
}

#[tokio::test]
async fn a_held_run_is_locked_and_says_by_whom() {
    let dir = tempfile::tempdir().unwrap();
    let home = home(dir.path());
    let journal = home.create(&run_id(1), &[created("the goal")]).await.unwrap();
    let error = home.open(&run_id(1)).await.unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, StoreError::Locked { .. }), "{text}");
    assert!(text.contains(&format!("process {} on testhost since 2", std::process::id())), "{text}");
    std::fs::remove_file(home.run_dir(&run_id(1)).join("owner.json")).unwrap();
    let text = home.open(&run_id(1)).await.unwrap_err().to_string();
    assert!(text.contains("another process, which did not say who it is"), "{text}");
    drop(journal);
    home.open(&run_id(1)).await.unwrap();
}

#[tokio::test]
async fn readers_outlive_the_journal_but_read_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let journal = home(dir.path()).create(&run_id(1), &[created("the goal")]).await.unwrap();
    let reader = journal.reader();
    assert_eq!(reader.read(Seq(1), 9).await.unwrap().len(), 1);
    journal.close().await;
    let error = reader.read(Seq(1), 9).await.unwrap_err();
    assert!(matches!(error, StoreError::Closed(_)), "{error}");
}

#[tokio::test]
async fn runs_are_found_by_their_beginning() {
    let dir = tempfile::tempdir().unwrap();
    let home = home(dir.path());
    for number in [1, 2] {
        home.create(&run_id(number), &[created("the goal")]).await.unwrap().close().await;
    }
    let mut other = [1; 12];
    other[11] = 3;
    let other = tiller::domain::id::RunId::from_entropy(other);
    home.create(&other, &[created("the goal")]).await.unwrap().close().await;
    assert_eq!(home.find("2").unwrap(), run_id(2));
    assert_eq!(home.find(" 222222222222 ").unwrap(), run_id(2));
    assert_eq!(home.find(other.as_str()).unwrap(), other);
    assert!(matches!(home.find("1").unwrap_err(), StoreError::Ambiguous { count: 2, .. }));
    for wrong in ["3", "", "../x", "1111111111111"] {
        assert!(matches!(home.find(wrong).unwrap_err(), StoreError::NotFound(_)), "{wrong}");
    }
    assert!(matches!(home.open(&run_id(9)).await.unwrap_err(), StoreError::NotFound(_)));
    let again = home.create(&run_id(1), &[created("another")]).await.unwrap_err();
    assert!(matches!(again, StoreError::Disk { .. }), "{again}");
    assert_eq!(home.open(&run_id(1)).await.unwrap().records, [created("the goal")]);
}

fn summary_of(number: u8, records: &[Record]) -> Summary {
    Summary::of(&Run::fold(&run_id(number), records).unwrap())
}

fn listed(home: &Home) -> Vec<(String, Option<u32>)> {
    let name = |one| match one {
        Listed::Run { summary, held_by } => (summary.id.short().to_string(), held_by),
        Listed::Damaged { id, why } => (format!("{} damaged: {why}", id.short()), None),
    };
    home.list().unwrap().into_iter().map(name).collect()
}

#[tokio::test]
async fn lists_are_newest_first_and_summaries_are_made_anew() {
    let dir = tempfile::tempdir().unwrap();
    let home = home(dir.path());
    assert_eq!((listed(&home), home.latest().unwrap()), (vec![], None));
    let (short, long) = (small_run(2, 10), small_run(5, 10));
    home.create(&run_id(1), &long).await.unwrap().close().await;
    home.create(&run_id(2), &short).await.unwrap().close().await;
    home.create(&run_id(3), &short).await.unwrap().close().await;
    home.write_summary(&summary_of(2, &short)).unwrap();
    std::fs::write(home.run_dir(&run_id(3)).join("summary.json"), b"{\"id\":").unwrap();
    std::fs::write(home.run_dir(&run_id(3)).join("../unrelated"), b"").unwrap();
    std::fs::create_dir(home.run_dir(&run_id(4)).with_extension("new")).unwrap();
    let expected = [("111111", None), ("222222", None), ("333333", None)];
    let expected: Vec<_> = expected.into_iter().map(|(name, held)| (name.to_string(), held)).collect();
    assert_eq!(listed(&home), expected);
    for number in [1, 3] {
        let kept = std::fs::read(home.run_dir(&run_id(number)).join("summary.json")).unwrap();
        let records = if number == 1 { &long } else { &short };
        assert_eq!(serde_json::from_slice::<Summary>(&kept).unwrap(), summary_of(number, records));
    }
    assert_eq!(home.latest().unwrap(), Some(run_id(1)));
    assert!(home.open(&run_id(3)).await.is_ok(), "a list leaves no lock behind");
}

/// A process that was killed right after a commit leaves the summary of before.
#[tokio::test]
async fn a_list_shows_no_summary_that_is_older_than_its_journal() {
    let dir = tempfile::tempdir().unwrap();
    let home = home(dir.path());
    let (old, whole) = (summary_of(1, &small_run(2, 10)), summary_of(1, &small_run(5, 10)));
    let shown = |home: &Home| match home.list().unwrap().remove(0) {
        Listed::Run { summary, .. } => *summary,
        Listed::Damaged { why, .. } => panic!("{why}"),
    };
    let journal = home.create(&run_id(1), &small_run(5, 10)).await.unwrap();
    home.write_summary(&old).unwrap();
    assert_eq!(shown(&home), old, "whoever holds the run writes it");
    journal.close().await;
    assert_eq!(shown(&home), whole);
    let kept = std::fs::read(home.run_dir(&run_id(1)).join("summary.json")).unwrap();
    assert_eq!(serde_json::from_slice::<Summary>(&kept).unwrap(), whole);
    assert!(home.open(&run_id(1)).await.is_ok(), "a list leaves no lock behind");
}

/// Where the journal can't be looked at now, an older summary says more than nothing.
#[tokio::test]
async fn a_list_shows_an_older_summary_where_there_is_no_newer_one() {
    let dir = tempfile::tempdir().unwrap();
    let home = home(dir.path());
    home.create(&run_id(1), &small_run(5, 10)).await.unwrap().close().await;
    let old = summary_of(1, &small_run(2, 10));
    home.write_summary(&old).unwrap();
    // Somebody looks at it, so that nobody can open it.
    let _looking = {
        let file = std::fs::File::open(home.run_dir(&run_id(1)).join("store/db")).unwrap();
        file.try_lock_shared().unwrap();
        file
    };
    let listed = home.list().unwrap();
    assert!(matches!(&listed[..], [Listed::Run { summary, held_by: None }] if **summary == old), "{listed:?}");
}

#[tokio::test]
async fn a_list_shows_who_holds_a_run() {
    let dir = tempfile::tempdir().unwrap();
    let home = home(dir.path());
    let journal = home.create(&run_id(1), &[created("the goal")]).await.unwrap();
    assert_eq!(
        listed(&home),
        [("111111 damaged: another process holds it, and its summary can't be read now".to_string(), None)]
    );
    home.write_summary(&summary_of(1, &[created("the goal")])).unwrap();
    assert_eq!(listed(&home), [("111111".to_string(), Some(std::process::id()))]);
    journal.close().await;
    assert_eq!(listed(&home), [("111111".to_string(), None)]);
}

/// Tells a test that nothing of its process makes files private.
const BARE: &str = "STORE_CONTRACT_BARE";

#[tokio::test]
async fn drafts_are_kept_and_private() {
    if std::env::var_os(BARE).is_none() {
        // A umask is one for the whole process, so this test plays in one of its own.
        let play = "umask 0; exec \"$0\" --exact store::contract::drafts_are_kept_and_private";
        let program = std::env::current_exe().unwrap();
        let status = std::process::Command::new("sh").args(["-c", play]).arg(program).env(BARE, "yes").status();
        return assert!(status.unwrap().success());
    }
    let dir = tempfile::tempdir().unwrap();
    let home = home(dir.path());
    home.create(&run_id(1), &[created("the goal")]).await.unwrap().close().await;
    assert_eq!(home.read_draft(&run_id(1)), "");
    for text in ["do it\nlike é", &"\u{1}".repeat(limits::SAY_MAX_BYTES)] {
        home.write_draft(&run_id(1), text).unwrap();
        assert_eq!(home.read_draft(&run_id(1)), text);
    }
    let mode = |name: &str| home.run_dir(&run_id(1)).join(name).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(["draft.json", "owner.json", "anchor", "store", ""].map(mode), [0o600, 0o600, 0o600, 0o700, 0o700]);
    // Those that sled makes, also when a run is opened again, or was made by an earlier version.
    let store = home.run_dir(&run_id(1)).join("store");
    std::fs::set_permissions(store.join("conf"), std::fs::Permissions::from_mode(0o666)).unwrap();
    home.open(&run_id(1)).await.unwrap().journal.close().await;
    let mut kinds = std::collections::BTreeMap::new();
    for entry in std::fs::read_dir(&store).unwrap().map(Result::unwrap) {
        let kind = entry.file_name().to_string_lossy().split('.').next().unwrap().to_string();
        kinds.insert(kind, entry.metadata().unwrap().permissions().mode() & 0o777);
    }
    let wanted = [("blobs", 0o700), ("conf", 0o600), ("db", 0o600), ("snap", 0o600)];
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), wanted.map(|(kind, mode)| (kind.to_string(), mode)));
    home.write_draft(&run_id(1), "").unwrap();
    home.write_draft(&run_id(1), "").unwrap();
    assert_eq!(home.read_draft(&run_id(1)), "");
}

#[tokio::test]
async fn a_state_directory_that_others_can_enter_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    home(dir.path());
    for (name, mode) in [("state", 0o750), ("state/runs", 0o701)] {
        let path = dir.path().join(name);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let text = Home::new(dir.path().join("state"), owner()).unwrap_err().to_string();
        assert!(text.contains(&format!("is open to other users (mode {mode:o})")), "{text}");
        assert!(text.ends_with(&format!("run `chmod 700 {}`", path.display())), "{text}");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
    }
    if nix::unistd::geteuid().is_root() {
        let nobody = Some(nix::unistd::Uid::from_raw(65_534));
        nix::unistd::chown(&dir.path().join("state"), nobody, None).unwrap();
        let text = Home::new(dir.path().join("state"), owner()).unwrap_err().to_string();
        assert!(text.contains("belongs to user 65534 and not to you (user 0)"), "{text}");
    }
}

#[tokio::test]
async fn a_newer_format_is_not_opened() {
    let dir = tempfile::tempdir().unwrap();
    let home = home(dir.path());
    home.create(&run_id(1), &[created("the goal")]).await.unwrap().close().await;
    let db = database(&home.run_dir(&run_id(1)).join("store"));
    db.open_tree("meta").unwrap().insert("format", "3").unwrap();
    drop(db);
    let error = home.open(&run_id(1)).await.unwrap_err();
    assert!(matches!(error, StoreError::TooNew { found: Newer::Format(3), .. }), "{error}");
}

#[tokio::test]
async fn a_run_that_was_removed_while_open_acknowledges_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let home = home(dir.path());
    let mut journal = home.create(&run_id(1), &[created("the goal")]).await.unwrap();
    for gone in [home.run_dir(&run_id(1)).join("store"), home.run_dir(&run_id(1))] {
        std::fs::remove_dir_all(&gone).unwrap();
        for _ in 0..2 {
            assert!(journal.append(vec![said(2, "a")]).await.is_err());
        }
        assert!(!gone.exists());
    }
}
