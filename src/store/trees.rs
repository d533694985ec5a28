//! The journal of one run: taking it, appending, reading, and what a failed write leads to. Blocking; for the thread of
//! a store.
//!
//! It keeps what was acknowledged apart from what is merely stored: only the head decides. It must not call sled.

use std::fs::File;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;
use std::time::Instant;

use crate::domain::event::Owner;
use crate::domain::event::Record;
use crate::domain::id::RunId;
use crate::domain::id::Seq;
use crate::domain::limits;
use crate::domain::run::Run;
use crate::domain::time::Span;
use crate::domain::time::Timestamp;
use crate::store::StoreError;
use crate::store::anchor;
use crate::store::anchor::Anchor;
use crate::store::before;
use crate::store::before::Before;
use crate::store::cadence::Cadence;
use crate::store::codec;
use crate::store::codec::Encoded;
use crate::store::codec::Mark;
use crate::store::database::Database;
use crate::store::database::Fault;
use crate::store::database::guarded;
use crate::store::database::replaced;
use crate::store::files;
use crate::store::files::Identity;
use crate::store::look;
use crate::store::own;
use crate::store::owner;
use crate::store::snaps;
use crate::store::snaps::Shelf;

/// How long a busy lock is left alone before the next try.
pub(crate) const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// A run's directory and whose it is.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    /// The run.
    pub(crate) run: RunId,
    /// Its directory.
    pub(crate) dir: PathBuf,
    /// Who opens it.
    pub(crate) owner: Owner,
}

impl Site {
    /// Where its database is.
    pub(crate) fn store(&self) -> PathBuf {
        self.dir.join("store")
    }
}

/// What was read of a journal that was proven against its anchor, with the mark of its last record.
type Proven<T> = (T, Mark, Cadence);

/// How the name of a run's directory ends while it is made.
pub(crate) const NASCENT: &str = ".new";

/// The open journal of one run.
pub(crate) struct Trees {
    site: Site,
    /// Locked as long as this is open; never read.
    _entered: File,
    /// Nothing while the database could not be opened anew after a failed write.
    database: Option<Database>,
    /// The last acknowledged record.
    head: Mark,
    anchor: Anchor,
    /// Whether the anchor is still to be synced.
    sync_owed: bool,
    /// Which file sled's is.
    identity: Identity,
    /// Whether a write failed, so that the database must be opened anew before the next one.
    suspect: bool,
    /// The records of the last batch that failed: all that may be in the journal behind its head.
    failed: Vec<Mark>,
    /// Completed syncs of the store's file.
    syncs: u64,
    /// When the next snapshot is due.
    cadence: Cadence,
}

impl Trees {
    /// Makes a run's directory, with its first records in it, all durable. Afterwards it is opened like any other.
    /// The directory gets its name by rename at the very end, so a run is whole or is not there.
    pub(crate) fn create(site: &Site, records: &[Record]) -> Result<(), StoreError> {
        let created = records.first().map(|record| record.at).unwrap_or_default();
        Trees::create_stored(site, created, &codec::encode_batch(records, Mark::START)?)
    }

    /// The same, of records that are encoded already and follow each other.
    pub(crate) fn create_stored(site: &Site, created: Timestamp, batch: &[Encoded]) -> Result<(), StoreError> {
        let doing = format!("creating run {}", site.run);
        let Some(last) = batch.last() else {
            return Err(StoreError::Disk { doing, why: "a run begins with a record".to_string() });
        };
        let disk = |fault: Fault| explain(site, fault, &doing);
        if site.dir.exists() {
            return Err(disk(Fault::Disk("there is one of this name".to_string())));
        }
        let parent = site.dir.parent().unwrap_or(&site.dir);
        // A name of its own: what a killed process left must not be in the way of another attempt.
        let dir = files::create_dir_in(parent, site.run.as_str(), NASCENT).map_err(|error| disk(error.into()))?;
        let nascent = Site { dir, ..site.clone() };
        let made =
            fill(&nascent, created, batch, last.mark).and_then(|()| Ok(std::fs::rename(&nascent.dir, &site.dir)?));
        let (dir, fault) = match (made, files::sync_dir(parent)) {
            (Ok(()), Ok(())) => return Ok(()),
            (Ok(()), Err(error)) => (&site.dir, error.into()),
            (Err(fault), _) => (&nascent.dir, fault),
        };
        // Nobody was told of it yet. Under its first name, it is in nobody's way if it can't be removed.
        let _ = std::fs::remove_dir_all(dir);
        Err(disk(fault))
    }

    /// Takes a run and reads its whole journal, proving the chain from first to last and the anchor.
    /// Waits for the lock for `patience`.
    pub(crate) fn open(site: Site, patience: Span) -> Result<(Trees, Vec<Record>), StoreError> {
        Trees::open_by(site, patience, |database, run, marks| {
            let (records, head) = database.prove(run, marks)?;
            Ok((records, head, Cadence::NONE))
        })
    }

    /// Takes a run and folds it, from its newest good snapshot on where there is one. The chain is proven from there.
    pub(crate) fn resume(site: Site, patience: Span) -> Result<(Trees, Run), StoreError> {
        let id = site.run.clone();
        let mut shelf = Shelf::of(&site.dir);
        let by = |database: &Database, run: &RunId, marks: &[Mark]| database.resume(run, marks, &mut shelf);
        let (trees, folded) = Trees::open_by(site, patience, by)?;
        let run = folded.map_err(|broken| StoreError::Unreadable { run: id, why: broken.to_string() })?;
        Ok((trees, run))
    }

    fn open_by<T>(
        site: Site,
        patience: Span,
        mut prove: impl FnMut(&Database, &RunId, &[Mark]) -> Result<Proven<T>, Fault>,
    ) -> Result<(Trees, T), StoreError> {
        if !site.dir.is_dir() {
            return Err(StoreError::NotFound(site.run.to_string()));
        }
        own::check_run(&site.dir)?;
        let doing = format!("opening run {}", site.run);
        let deadline = Instant::now() + Duration::from_millis(patience.0);
        loop {
            match take(&site, &mut prove) {
                Ok(taken) => return Ok(taken),
                Err((Fault::Busy, _)) if Instant::now() < deadline => std::thread::sleep(LOCK_PAUSE),
                Err((fault, kept)) => {
                    let error = explain(&site, fault, &doing);
                    return Err(match (error, kept) {
                        (StoreError::Damaged { run, why, path: _ }, Some(path)) => {
                            StoreError::Damaged { run, why, path }
                        }
                        (error, _) => error,
                    });
                }
            }
        }
    }

    /// Appends a batch. When it returns, all of it is durable; when it fails, none of it counts: what may have reached
    /// the disk is taken back before the next batch.
    pub(crate) fn append(&mut self, records: &[Record]) -> Result<(), StoreError> {
        let batch = codec::encode_batch(records, self.head)?;
        let Some(last) = batch.last() else { return Ok(()) };
        let doing = format!("writing record {} of run {}", last.mark.seq, self.site.run);
        let renewed = self.renew(&doing);
        renewed.map_err(|error| self.doubted(error))?;
        let Some(database) = &self.database else { return Err(self.doubted(self.explain(not_open(), &doing))) };
        if let Err(fault) = database.commit(&batch) {
            self.suspect = true;
            self.failed = batch.iter().map(|one| one.mark).collect();
            return Err(self.doubted(self.explain(fault, &doing)));
        }
        self.syncs += 1;
        self.head = last.mark;
        self.sync_owed |= anchor::needs_sync(records);
        let bytes = |one: &Encoded| one.value.len() + one.pieces.iter().map(Vec::len).sum::<usize>();
        self.cadence.take(records, batch.iter().map(bytes).sum());
        self.drop_anchor();
        Ok(())
    }

    /// Up to `most` acknowledged records from a position on. May fail after a write that failed: sled's tree can be
    /// left half split then, and it mends that as it reads.
    pub(crate) fn read(&self, from: Seq, most: usize) -> Result<Vec<Record>, StoreError> {
        let doing = format!("reading records of run {}", self.site.run);
        let Some(database) = &self.database else { return Err(self.explain(not_open(), &doing)) };
        let from = from.max(Seq(1));
        let wanted = self.head.seq.0.saturating_add(1).saturating_sub(from.0);
        let count = usize::try_from(wanted).unwrap_or(usize::MAX).min(most);
        if count == 0 {
            return Ok(Vec::new());
        }
        let read = guarded(|| database.mark(Seq(from.0 - 1)).and_then(|before| database.scan(before, count)));
        match read {
            Ok((records, _)) if records.len() == count => Ok(records),
            Ok(_) => Err(self.explain(Fault::Damaged(format!("records from {from} on are missing")), &doing)),
            Err(fault) => Err(self.explain(fault, &doing)),
        }
    }

    /// Whether a snapshot is due.
    pub(crate) fn is_snapshot_due(&self) -> bool {
        self.cadence.is_due()
    }

    /// Keeps a snapshot of the run, if it is as the last acknowledged record left it. A failure is no more than one
    /// snapshot less.
    pub(crate) fn keep(&mut self, run: &Run) {
        if run.seq != self.head.seq || self.suspect {
            return;
        }
        let has_room = files::check_space(&self.site.dir, limits::FREE_SPACE_MIN_BYTES);
        let kept =
            has_room.map_err(|error| error.to_string()).and_then(|()| snaps::keep(&self.site.dir, run, self.head));
        let bytes = kept.unwrap_or_else(|why| {
            tracing::warn!(run = %self.site.run, why, "a snapshot could not be kept");
            0
        });
        self.cadence = Cadence::after(bytes);
    }

    /// Makes room for what is appended next, if it is due. For a moment in which nobody waits.
    pub(crate) fn make_room(&self) {
        if let Some(database) = self.database.as_ref().filter(|_| !self.suspect) {
            database.make_room();
        }
    }

    /// Completed syncs of the store's file.
    pub(crate) fn syncs(&self) -> u64 {
        self.syncs
    }

    /// Opens the database anew if a write failed, and takes back what was never acknowledged. While it is closed, another
    /// owner may open it: what that recorded stays, and this one is at its end.
    fn renew(&mut self, doing: &str) -> Result<(), StoreError> {
        if !self.suspect {
            return Ok(());
        }
        // While the disk is as full as it was, the old handle can at least still read.
        files::check_space(&self.site.dir, limits::FREE_SPACE_MIN_BYTES)
            .map_err(|error| self.explain(error.into(), doing))?;
        if let Some(old) = self.database.take() {
            old.close();
        }
        let store = self.site.store();
        if let Some(why) = before::lack(&store) {
            return Err(self.explain(Fault::Damaged(why), doing));
        }
        // Before sled opens what is there now: to open is to write.
        let found = files::glance(&store.join("db")).map_err(|error| self.explain(error.into(), doing))?;
        if found.identity != self.identity {
            return Err(self.explain(replaced(), doing));
        }
        let deadline = Instant::now() + Duration::from_millis(limits::LOCK_PATIENCE.0);
        let database = loop {
            match Database::open(&store) {
                Err(Fault::Busy) if Instant::now() < deadline => std::thread::sleep(LOCK_PAUSE),
                opened => break opened.map_err(|fault| self.explain(fault, doing))?,
            }
        };
        if database.identity() != self.identity {
            database.close();
            return Err(self.explain(replaced(), doing));
        }
        if let Err(fault) = database.cut(self.head, &self.failed) {
            database.close();
            return Err(self.explain(fault, doing));
        }
        self.database = Some(database);
        self.suspect = false;
        self.failed.clear();
        Ok(())
    }

    /// Writes the anchor. The records are durable by now, so a failure here only leaves the older anchor in force; it
    /// is made up for with the next batch.
    fn drop_anchor(&mut self) {
        let written = self.anchor.write(self.head);
        let dropped = written.and_then(|()| if self.sync_owed { self.anchor.sync() } else { Ok(()) });
        match dropped {
            Ok(()) => self.sync_owed = false,
            Err(error) => tracing::warn!(run = %self.site.run, %error, "the anchor could not be written this time"),
        }
    }

    fn explain(&self, fault: Fault, doing: &str) -> StoreError {
        explain(&self.site, fault, doing)
    }

    /// An error in the words for a batch that may have reached the disk, while there is one.
    fn doubted(&self, error: StoreError) -> StoreError {
        match error {
            StoreError::Disk { doing, why } if !self.failed.is_empty() => StoreError::Doubtful { doing, why },
            error => error,
        }
    }
}

impl Drop for Trees {
    fn drop(&mut self) {
        if let Some(database) = self.database.take() {
            database.close();
        }
    }
}

/// Makes the files of a run that is being created.
fn fill(site: &Site, created: Timestamp, batch: &[Encoded], mark: Mark) -> Result<(), Fault> {
    let store = site.store();
    files::create_dir(&store)?;
    let database = Database::open(&store)?;
    let filled = database
        .write_meta(&site.run, created)
        .and_then(|()| batch.chunks(limits::RECORDS_PER_COMMIT).try_for_each(|some| database.commit(some)));
    database.close();
    filled?;
    Anchor::create(&site.dir.join(anchor::FILE), mark)?;
    File::open(store.join("conf"))?.sync_all()?;
    files::sync_dir(&store)?;
    Ok(files::sync_dir(&site.dir)?)
}

/// Takes the lock, opens and proves. On damage, also says where the files are as they were before.
fn take<T>(
    site: &Site,
    by: impl FnMut(&Database, &RunId, &[Mark]) -> Result<Proven<T>, Fault>,
) -> Result<(Trees, T), (Fault, Option<PathBuf>)> {
    let entered = enter(site).map_err(|fault| (fault, None))?;
    let before = prepare(site).map_err(|fault| (fault, None))?;
    let opened = Database::open(&site.store()).and_then(|database| {
        let proven = guarded(|| prove(site, &before, &database, by));
        match proven {
            Ok((found, anchor)) => Ok((database, found, anchor)),
            Err(fault) => {
                database.close();
                Err(fault)
            }
        }
    });
    match opened {
        Ok((database, (value, head, cadence), anchor)) => {
            before.discard();
            let site = site.clone();
            let (identity, database, failed) = (database.identity(), Some(database), Vec::new());
            let (sync_owed, suspect, syncs, _entered) = (false, false, 0, entered);
            let trees =
                Trees { site, _entered, database, head, anchor, sync_owed, identity, suspect, failed, syncs, cadence };
            Ok((trees, value))
        }
        Err(Fault::Damaged(why)) => Err((Fault::Damaged(why), Some(before.keep()))),
        Err(fault) => Err((fault, None)),
    }
}

/// Proves the journal of a database whose lock was just taken.
fn prove<T>(
    site: &Site,
    before: &Before,
    database: &Database,
    mut by: impl FnMut(&Database, &RunId, &[Mark]) -> Result<Proven<T>, Fault>,
) -> Result<(Proven<T>, Anchor), Fault> {
    owner::write(&site.dir, &site.owner)?;
    before::sweep(&site.dir, before)?;
    let (anchor, marks) = match Anchor::open(&site.dir.join(anchor::FILE)) {
        Ok(opened) => opened,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidData) => {
            return Err(Fault::Damaged(look::NO_ANCHOR.to_string()));
        }
        Err(error) => return Err(error.into()),
    };
    let found = by(database, &site.run, &marks)?;
    database.raise()?;
    Ok((found, anchor))
}

/// Keeps who mends or removes a run away from it, and the other way round.
fn enter(site: &Site) -> Result<File, Fault> {
    match owner::enter(&site.dir) {
        Ok(entered) => entered.ok_or(Fault::Busy),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(no_file(site)),
        Err(error) => Err(error.into()),
    }
}

/// Looks whether the store is there and free, and copies it before sled touches it.
fn prepare(site: &Site) -> Result<Before, Fault> {
    let store = site.store();
    let looking = match owner::look(&store) {
        Ok(Some(looking)) => looking,
        Ok(None) => return Err(Fault::Busy),
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(no_file(site)),
        Err(error) => return Err(error.into()),
    };
    if let Some(why) = before::lack(&store).or(before::stranger(&store)?) {
        return Err(Fault::Damaged(why));
    }
    files::check_space(&site.dir, before::size(&store)?.saturating_add(limits::FREE_SPACE_MIN_BYTES))?;
    Ok(Before::take(&site.dir, &store, &looking)?)
}

/// Asked before every opening: sled would make an empty database without a word.
pub(crate) fn no_file(site: &Site) -> Fault {
    // It may be there again by now.
    Fault::Damaged(before::lack(&site.store()).unwrap_or_else(|| before::MISSING.to_string()))
}

fn not_open() -> Fault {
    Fault::Disk("the store could not be opened again after a write that failed".to_string())
}

/// A fault, in the words of a store's error.
pub(crate) fn explain(site: &Site, fault: Fault, doing: &str) -> StoreError {
    let run = site.run.clone();
    match fault {
        // Somebody removed it while it was waited for, or read.
        Fault::Busy | Fault::Damaged(_) if !site.dir.exists() => StoreError::NotFound(run.to_string()),
        Fault::Busy => StoreError::Locked { run, holder: owner::phrase(&site.dir) },
        Fault::Damaged(why) => StoreError::Damaged { run, why, path: site.dir.clone() },
        Fault::Disk(why) => StoreError::Disk { doing: doing.to_string(), why },
        Fault::TooNew(found) => StoreError::TooNew { run, found },
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::domain::command::Policy;
    use crate::domain::event::Event;
    use crate::domain::event::OwnerMode;
    use crate::domain::id::ClientId;
    use crate::domain::id::InterjectionId;

    fn said(seq: u64, text: &str) -> Record {
        let (id, by) = (InterjectionId(u32::try_from(seq).unwrap()), ClientId("test".to_string()));
        let event = Event::InterjectionQueued { id, text: text.to_string(), by, policy: Policy::Next };
        Record { seq: Seq(seq), at: Timestamp(seq), active: Span(0), event }
    }

    /// A run with one record, and its owner, of whom the last write failed after it had reached the disk.
    fn failed(dir: &std::path::Path) -> (Site, Trees) {
        let owner = Owner { pid: 1, host: "test".to_string(), version: "0".to_string(), mode: OwnerMode::Records };
        let site = Site { run: RunId::from_entropy([1; 12]), dir: dir.join("run"), owner };
        Trees::create(&site, &[said(1, "first")]).unwrap();
        let (mut trees, _) = Trees::open(site.clone(), Span(0)).unwrap();
        let batch = codec::encode_batch(&[said(2, "mine")], trees.head).unwrap();
        trees.database.as_ref().unwrap().commit(&batch).unwrap();
        trees.failed = batch.iter().map(|one| one.mark).collect();
        trees.suspect = true;
        (site, trees)
    }

    fn texts(site: &Site) -> Vec<String> {
        let (_, records) = Trees::open(site.clone(), limits::LOCK_PATIENCE).unwrap();
        let text = |record: Record| match record.event {
            Event::InterjectionQueued { text, .. } => text,
            other => other.name().to_string(),
        };
        records.into_iter().map(text).collect()
    }

    #[test]
    fn what_failed_is_taken_back_and_written_again() {
        let dir = tempfile::tempdir().unwrap();
        let (site, mut trees) = failed(dir.path());
        trees.append(&[said(2, "again")]).unwrap();
        drop(trees);
        assert_eq!(texts(&site), ["first", "again"]);
    }

    /// The lock is free for a moment while the database is opened anew, and another process waits for it.
    #[test]
    fn what_another_owner_recorded_after_a_failure_stays() {
        for theirs in [vec![said(2, "theirs")], vec![said(2, "theirs"), said(3, "more")]] {
            let dir = tempfile::tempdir().unwrap();
            let (site, mut trees) = failed(dir.path());
            trees.database.take().unwrap().close();
            let (mut other, found) = Trees::open(site.clone(), limits::LOCK_PATIENCE).unwrap();
            assert_eq!(found.len(), 2, "what had reached the disk counts for who opens it next");
            let theirs: Vec<Record> =
                theirs.into_iter().map(|record| Record { seq: record.seq.next(), ..record }).collect();
            other.append(&theirs).unwrap();
            drop(other);
            for _ in 0..2 {
                let error = trees.append(&[said(2, "again")]).unwrap_err().to_string();
                assert!(error.contains("another process recorded 3 while the disk failed here"), "{error}");
            }
            let there = texts(&site);
            assert_eq!(there[..3], ["first", "mine", "theirs"]);
            assert_eq!(there.len(), 2 + theirs.len());
        }
    }

    /// Somebody puts a copy in the store's place, and another process records in it.
    #[test]
    fn what_was_put_in_the_place_of_a_store_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let (site, mut trees) = failed(dir.path());
        let (store, aside) = (site.store(), dir.path().join("aside"));
        std::fs::rename(&store, &aside).unwrap();
        files::create_dir(&store).unwrap();
        for name in before::names(&aside).unwrap() {
            if aside.join(&name).is_file() {
                std::fs::copy(aside.join(&name), store.join(&name)).unwrap();
            }
        }
        let (mut other, found) = Trees::open(site.clone(), limits::LOCK_PATIENCE).unwrap();
        other.append(&[said(found.len() as u64 + 1, "theirs")]).unwrap();
        drop(other);
        for _ in 0..2 {
            let error = trees.append(&[said(2, "again")]).unwrap_err().to_string();
            assert!(error.contains("its files were replaced while it was open"), "{error}");
        }
        assert_eq!(texts(&site), ["first", "mine", "theirs"]);
    }
}
