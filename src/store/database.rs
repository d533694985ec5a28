//! sled, and nothing but sled: a database of three trees. Blocking; for the thread of a store.
//!
//! Nothing outside this file calls sled. What it must guard against, measured (docs/LIBRARIES.md):
//! * `flush` writes but does not fsync: the file is synced here after every flush.
//! * Pages over 128 KiB go to files that nobody syncs: no value is over `limits::VALUE_MAX_BYTES`.
//! * Damaged files make it panic, or forget records without a word: calls are guarded, and the anchor says how far the
//!   journal went.
//! * After a failed write every later one fails: `trees.rs` opens the database anew.

use std::fs::File;
use std::io::ErrorKind;
use std::iter::repeat;
use std::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::path::Path;
use std::path::PathBuf;

use sled::Batch;
use sled::Db;
use sled::IVec;
use sled::Transactional;
use sled::Tree;
use sled::transaction::TransactionError;
use sled::transaction::TransactionResult;

use crate::domain::event::Record;
use crate::domain::fold::Broken;
use crate::domain::id::RunId;
use crate::domain::id::Seq;
use crate::domain::limits;
use crate::domain::run::Run;
use crate::domain::text::counted;
use crate::domain::text::one_line;
use crate::domain::time::Timestamp;
use crate::store::Newer;
use crate::store::ahead;
use crate::store::before;
use crate::store::cadence::Cadence;
use crate::store::codec;
use crate::store::codec::Encoded;
use crate::store::codec::Form;
use crate::store::codec::Mark;
use crate::store::codec::Stub;
use crate::store::codec::Unfit;
use crate::store::files;
use crate::store::files::Identity;
use crate::store::snaps::Found;
use crate::store::snaps::Shelf;
use crate::store::values;
use crate::store::values::STORE_FORMAT;
use crate::store::values::Value;

/// What went wrong, before it is known how to say it.
#[derive(Debug)]
pub(crate) enum Fault {
    /// Somebody else holds the lock.
    Busy,
    /// The files are not what was written; why, as the end of a sentence.
    Damaged(String),
    /// The system refuses; what it said.
    Disk(String),
    /// A newer version wrote it.
    TooNew(Newer),
}

impl From<Unfit> for Fault {
    fn from(unfit: Unfit) -> Fault {
        match unfit {
            Unfit::Damaged(why) => Fault::Damaged(why),
            Unfit::TooNew(found) => Fault::TooNew(found),
        }
    }
}

impl From<std::io::Error> for Fault {
    fn from(error: std::io::Error) -> Fault {
        Fault::Disk(error.to_string())
    }
}

impl From<sled::Error> for Fault {
    fn from(error: sled::Error) -> Fault {
        match error {
            sled::Error::Io(error) if error.to_string().contains("could not acquire lock") => Fault::Busy,
            sled::Error::Io(error) => match error.kind() {
                // sled's words for bytes that make no sense, not the system's.
                ErrorKind::UnexpectedEof
                | ErrorKind::InvalidData
                | ErrorKind::InvalidInput
                | ErrorKind::Other
                // Something else stands in the place of one of its files.
                | ErrorKind::IsADirectory
                | ErrorKind::NotADirectory => {
                    Fault::Damaged(format!("its database can't be read ({error})"))
                }
                // sled repeats an earlier failure in its debug form.
                ErrorKind::StorageFull => Fault::Disk("no space is left on the disk".to_string()),
                _ => Fault::Disk(error.to_string()),
            },
            // Its own words for this are places in the file, which help nobody.
            sled::Error::Corruption { .. } => {
                Fault::Damaged("its database can't be read: bytes in it are not what was written".to_string())
            }
            sled::Error::CollectionNotFound(_) | sled::Error::Unsupported(_) | sled::Error::ReportableBug(_) => {
                let error = one_line(&error.to_string(), limits::TODO_TITLE_MAX_CHARS);
                Fault::Damaged(format!("its database can't be read ({error})"))
            }
        }
    }
}

/// sled's files, open.
pub(crate) struct Database {
    db: Db,
    meta: Tree,
    journal: Tree,
    blob: Tree,
    /// Our own handle to sled's file, to sync it. Not the one that is locked.
    file: File,
    /// Where that file is.
    path: PathBuf,
    /// Which one it is.
    identity: Identity,
}

impl Database {
    /// Opens or makes sled's files. Errors with `Damaged` when something else stands between them.
    pub(crate) fn open(dir: &Path) -> Result<Database, Fault> {
        if let Some(why) = before::misplaced(dir)? {
            return Err(Fault::Damaged(why));
        }
        guarded(|| {
            let db = sled::Config::new()
                .path(dir)
                .cache_capacity(limits::STORE_CACHE_BYTES)
                .flush_every_ms(None) // We flush, and say when.
                .open()?;
            // sled makes its files as it opens, and no other later. That they can't be changed is no reason not to go on:
            // the directory is closed to others.
            if let Err(error) = files::keep_private(dir) {
                tracing::debug!(path = %dir.display(), %error, "sled's files are not its owner's only");
            }
            let meta = db.open_tree("meta")?;
            let journal = db.open_tree("journal")?;
            let blob = db.open_tree("blob")?;
            let path = dir.join("db");
            let file = File::open(&path)?;
            let identity = files::glance(&path)?.identity;
            Ok(Database { db, meta, journal, blob, file, path, identity })
        })
    }

    /// Lets go of sled's files, guarded: sled writes as it closes.
    pub(crate) fn close(self) {
        let _ = guarded(move || {
            drop(self);
            Ok(())
        });
    }

    /// Writes a batch and makes it durable: value by value where that is enough, since a transaction costs one more
    /// write, and a wait for it.
    pub(crate) fn commit(&self, batch: &[Encoded]) -> Result<(), Fault> {
        guarded(|| {
            match values::lay(batch) {
                Some(values) => {
                    for Value { first, bytes } in values {
                        self.journal.insert(first.0.to_be_bytes(), bytes)?;
                    }
                }
                None => self.transact(batch)?,
            }
            self.sync()
        })
    }

    /// Writes a batch in one transaction over both trees. sled writes the end of a transaction into the log before
    /// anything that comes after it, and as it recovers it drops a transaction whose end is missing, so a record never
    /// names pieces that are not there, and a batch is there whole or not at all.
    fn transact(&self, batch: &[Encoded]) -> Result<(), Fault> {
        let result: TransactionResult<(), ()> = (&self.journal, &self.blob).transaction(|(journal, blob)| {
            for Encoded { mark, value, pieces } in batch {
                for (number, piece) in pieces.iter().enumerate() {
                    blob.insert(&codec::piece_key(mark.link, number)[..], piece.as_slice())?;
                }
                journal.insert(&mark.seq.0.to_be_bytes(), value.as_slice())?;
            }
            Ok(())
        });
        match result {
            Ok(()) => Ok(()),
            Err(TransactionError::Storage(error)) => Err(error.into()),
            Err(TransactionError::Abort(())) => Err(Fault::Disk("sled gave the batch up".to_string())),
        }
    }

    /// Flushes sled and syncs its file. Errors when the file is no longer the run's, because somebody removed it: as
    /// long as ours is open, no other has its number.
    fn sync(&self) -> Result<(), Fault> {
        self.db.flush()?;
        self.file.sync_data()?;
        if files::glance(&self.path)?.identity != self.identity {
            return Err(replaced());
        }
        Ok(())
    }

    /// Which file sled's is.
    pub(crate) fn identity(&self) -> Identity {
        self.identity
    }

    /// Makes room in sled's file for the next commits, if it is due. For a moment in which nobody waits: a failure
    /// costs the next commits some time, and nothing else.
    pub(crate) fn make_room(&self) {
        if let Err(error) = ahead::fill(&self.path, self.identity) {
            tracing::debug!(path = %self.path.display(), %error, "no room was made ahead");
        }
    }

    pub(crate) fn write_meta(&self, run: &RunId, created: Timestamp) -> Result<(), Fault> {
        let mut batch = Batch::default();
        batch.insert("format", STORE_FORMAT.to_string().as_bytes());
        batch.insert("run", run.as_str().as_bytes());
        batch.insert("created", created.0.to_string().as_bytes());
        guarded(|| Ok(self.meta.apply_batch(batch)?))
    }

    /// Proves the format and the run.
    fn check_meta(&self, run: &RunId) -> Result<(), Fault> {
        let text = |key: &str| -> Result<String, Fault> {
            let value = self.meta.get(key)?.ok_or_else(|| Fault::Damaged(format!("its {key} is missing")))?;
            String::from_utf8(value.to_vec()).map_err(|_| Fault::Damaged(format!("its {key} can't be read")))
        };
        let format = text("format")?;
        match format.parse::<u32>() {
            Ok(found) if found > STORE_FORMAT => return Err(Fault::TooNew(Newer::Format(found))),
            Ok(_) => {}
            Err(_) => return Err(Fault::Damaged("its format can't be read".to_string())),
        }
        let named = text("run")?;
        if named != run.as_str() {
            return Err(Fault::Damaged(format!("it is the journal of another run ({})", one_line(&named, 24))));
        }
        Ok(())
    }

    /// Proves the format and the run, and takes back a batch that was cut short, unless it was anchored: then it was
    /// whole once, and what is left of it is damage. From here on a sound journal ends where a batch ends. Not guarded.
    pub(crate) fn take_back_torn(&self, run: &RunId, marks: &[Mark]) -> Result<(), Fault> {
        self.check_meta(run)?;
        let Some(anchored) = marks.first() else { return Ok(()) };
        // From its end on, so that what a kill leaves of it is still cut short.
        while let Some((key, value)) = self.journal.last()?
            && values::goes_on(&value)
            && position(&key)? > anchored.seq
        {
            self.journal.remove(key)?;
        }
        Ok(())
    }

    /// Says of a store of an older format that it may hold values of this one from now on. It reaches the disk before
    /// what is written next.
    pub(crate) fn raise(&self) -> Result<(), Fault> {
        let format = STORE_FORMAT.to_string();
        if self.meta.get("format")?.is_none_or(|found| found != format.as_bytes()) {
            self.meta.insert("format", format.as_bytes())?;
        }
        Ok(())
    }

    /// Reads up to `most` records after `before`, proving that each follows the one before it.
    pub(crate) fn scan(&self, before: Mark, most: usize) -> Result<(Vec<Record>, Mark), Fault> {
        let mut mark = before;
        let mut records = Vec::new();
        let start = self.holding(before.seq.next())?.map_or(before.seq.next(), |(first, _)| first);
        for entry in self.journal.range(start.0.to_be_bytes()..) {
            let (key, value) = entry?;
            for (seq, line) in (position(&key)?.0..).map(Seq).zip(values::lines(&value)) {
                if seq <= mark.seq {
                    continue;
                }
                if records.len() == most {
                    return Ok((records, mark));
                }
                if seq != mark.seq.next() {
                    return Err(Fault::Damaged(format!("record {} is missing", mark.seq.next())));
                }
                let (record, next) = codec::parse(&self.whole(line, seq)?, mark)?;
                records.push(record);
                mark = next;
            }
        }
        Ok((records, mark))
    }

    /// The last position at which something is stored. Not guarded.
    pub(crate) fn last(&self) -> Result<Seq, Fault> {
        let Some((key, value)) = self.journal.last()? else { return Ok(Seq(0)) };
        let behind_first = values::lines(&value).count().saturating_sub(1);
        Ok(Seq(position(&key)?.0.saturating_add(u64::try_from(behind_first).unwrap_or(u64::MAX))))
    }

    /// The value that holds a position, if one does, with the position of its first record.
    fn holding(&self, seq: Seq) -> Result<Option<(Seq, IVec)>, Fault> {
        let Some((key, value)) = self.journal.range(..=seq.0.to_be_bytes()).next_back().transpose()? else {
            return Ok(None);
        };
        let first = position(&key)?;
        let count = u64::try_from(values::lines(&value).count()).unwrap_or(u64::MAX);
        Ok((seq.0 - first.0 < count).then_some((first, value)))
    }

    /// The JSON of the record at a position; nothing when there is none. Not guarded.
    pub(crate) fn json(&self, seq: Seq) -> Result<Option<Vec<u8>>, Fault> {
        let Some((first, value)) = self.holding(seq)? else { return Ok(None) };
        let number = usize::try_from(seq.0 - first.0).unwrap_or(usize::MAX);
        values::lines(&value).nth(number).map(|line| self.whole(line, seq)).transpose()
    }

    /// The mark of one stored record.
    pub(crate) fn mark(&self, seq: Seq) -> Result<Mark, Fault> {
        if seq == Seq(0) {
            return Ok(Mark::START);
        }
        let json = self.json(seq)?.ok_or_else(|| Fault::Damaged(format!("record {seq} is missing")))?;
        Ok(codec::mark(&json, seq))
    }

    /// The JSON of a record from its line, put together from its pieces if it has any.
    fn whole(&self, line: &[u8], seq: Seq) -> Result<Vec<u8>, Fault> {
        match codec::form(line, seq)? {
            Form::Whole => Ok(line.to_vec()),
            Form::Stub(stub) => Ok(codec::unpack(&stub, &self.pieces(&stub, seq)?, seq)?),
        }
    }

    fn pieces(&self, stub: &Stub, seq: Seq) -> Result<Vec<u8>, Fault> {
        let mut packed = Vec::with_capacity(stub.packed);
        for number in 0..stub.pieces() {
            let piece = self.blob.get(codec::piece_key(stub.link, number))?;
            let piece = piece.ok_or_else(|| Fault::Damaged(format!("piece {number} of record {seq} is missing")))?;
            packed.extend_from_slice(&piece);
        }
        Ok(packed)
    }

    /// Proves that the record at `head` is there, and removes what follows it, which must be of `failed`: a batch that was
    /// never acknowledged. Anything else was recorded by another owner, while the database was closed, and is not
    /// touched. No value is cut, because a value belongs to one batch, and `head` ends one.
    pub(crate) fn cut(&self, head: Mark, failed: &[Mark]) -> Result<(), Fault> {
        guarded(|| {
            if self.mark(head.seq)? != head {
                return Err(Fault::Damaged(format!("record {} is not what was acknowledged", head.seq)));
            }
            let last = self.last()?;
            for (seq, own) in (head.seq.next().0..=last.0).map(Seq).zip(failed.iter().map(Some).chain(repeat(None))) {
                if own != Some(&self.mark(seq)?) {
                    return Err(Fault::Disk(format!(
                        "another process recorded {seq} while the disk failed here; what it recorded stays"
                    )));
                }
            }
            let mut batch = Batch::default();
            for key in self.journal.range(head.seq.next().0.to_be_bytes()..).keys() {
                batch.remove(key?);
            }
            self.journal.apply_batch(batch)?;
            if self.last()? != head.seq {
                return Err(Fault::Damaged(format!("record {} does not end a batch", head.seq)));
            }
            Ok(())
        })
    }

    /// The run as a snapshot has it, with the texts of its conversation from the journal. Errors when the snapshot is not
    /// of this journal; why, as the end of a sentence. Not guarded.
    fn restore(&self, run: &RunId, found: Found) -> Result<Run, String> {
        if self.mark(found.at.seq).ok() != Some(found.at) {
            return Err("the record that it was made at is another one".to_string());
        }
        let mut walk = Walk { database: self, values: self.journal.iter(), held: None };
        let event = |seq| walk.json(seq).ok().flatten().and_then(|json| codec::event(&json).ok());
        let restored = found.snapshot.restore(run, event)?;
        restored.check().map_err(|broken| broken.to_string())?;
        Ok(restored)
    }

    /// The run, proven from its newest snapshot that is good: format, chain from there on, anchor. What is wrong with
    /// a snapshot only means that it is not used. Not guarded.
    pub(crate) fn resume(
        &self,
        run: &RunId,
        marks: &[Mark],
        shelf: &mut Shelf,
    ) -> Result<(Result<Run, Broken>, Mark, Cadence), Fault> {
        self.take_back_torn(run, marks)?;
        for (seq, found) in shelf.newest_first() {
            let used = found.and_then(|found| {
                let (at, bytes) = (found.at, found.bytes);
                let base = guarded(|| Ok(self.restore(run, found)));
                Ok((base.unwrap_or_else(|fault| Err(format!("{fault:?}")))?, at, bytes))
            });
            let (base, at, bytes) = match used {
                Ok(used) => used,
                Err(why) => {
                    tracing::warn!(%run, seq = seq.0, why, "a snapshot is not used");
                    continue;
                }
            };
            let (rest, head) = self.scan(at, usize::MAX)?;
            self.prove_anchor(head, marks)?;
            // A rewind to before the snapshot needs the records before it.
            if let Ok(folded) = base.fold_after(&rest, |_, _, _| {}) {
                let mut cadence = Cadence::after(bytes);
                cadence.take(&rest, 0);
                return Ok((Ok(folded), head, cadence));
            }
        }
        let (records, head) = self.prove(run, marks)?;
        Ok((Run::fold(run, &records), head, Cadence::NONE))
    }

    /// The whole journal, proven: format, run, chain and anchor. Not guarded: the caller does more under the same guard.
    pub(crate) fn prove(&self, run: &RunId, marks: &[Mark]) -> Result<(Vec<Record>, Mark), Fault> {
        self.take_back_torn(run, marks)?;
        let (records, head) = self.scan(Mark::START, usize::MAX)?;
        self.prove_anchor(head, marks)?;
        Ok((records, head))
    }

    /// Proves that a journal which ends at `head` goes as far as its anchor, and is the one that was anchored.
    fn prove_anchor(&self, head: Mark, marks: &[Mark]) -> Result<(), Fault> {
        let Some(newest) = marks.first() else {
            let why = format!("it has {}, but its anchor is missing or can't be read", counted(head.seq.0, "record"));
            return Err(Fault::Damaged(why));
        };
        if head.seq < newest.seq {
            let why = format!("it ends with record {}, but record {} was written", head.seq, newest.seq);
            return Err(Fault::Damaged(why));
        }
        for anchored in marks {
            if self.mark(anchored.seq)? != *anchored {
                let why = format!("record {} is not the one that was written (its hash differs)", anchored.seq);
                return Err(Fault::Damaged(why));
            }
        }
        Ok(())
    }
}

/// Reads records one by one whose positions mostly ascend, as those that a snapshot names. To go on from the last one is
/// far cheaper than to look each of them up.
struct Walk<'a> {
    database: &'a Database,
    /// The values behind the held one.
    values: sled::Iter,
    /// The value that was read last, with the position of its first record.
    held: Option<(Seq, IVec)>,
}

impl Walk<'_> {
    /// So many values are passed over before a record is looked up.
    const STEPS_MAX: usize = 16;

    /// The JSON of the record at a position; nothing when there is none. Not guarded.
    fn json(&mut self, seq: Seq) -> Result<Option<Vec<u8>>, Fault> {
        for _ in 0..Walk::STEPS_MAX {
            let Some((first, value)) = self.held.as_ref().filter(|(first, _)| *first <= seq) else { break };
            let number = usize::try_from(seq.0 - first.0).unwrap_or(usize::MAX);
            if let Some(line) = values::lines(value).nth(number) {
                return self.database.whole(line, seq).map(Some);
            }
            let Some((key, value)) = self.values.next().transpose()? else { return Ok(None) };
            self.held = Some((position(&key)?, value));
        }
        let Some((first, value)) = self.database.holding(seq)? else { return Ok(None) };
        self.values = self.database.journal.range(first.next().0.to_be_bytes()..);
        self.held = Some((first, value));
        self.json(seq)
    }
}

/// The position that is a key of the journal tree.
fn position(key: &[u8]) -> Result<Seq, Fault> {
    let bytes = key.try_into().map_err(|_| Fault::Damaged("a key of it is no position".to_string()))?;
    Ok(Seq(u64::from_be_bytes(bytes)))
}

/// What is open is no longer what stands under its name.
pub(crate) fn replaced() -> Fault {
    Fault::Disk("its files were replaced while it was open; what is there now was not touched".to_string())
}

/// Calls sled. A panic, which damaged files cause, becomes `Fault::Damaged`.
pub(crate) fn guarded<T>(call: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        let said = one_line(said.unwrap_or("without a word"), limits::TODO_TITLE_MAX_CHARS);
        Err(Fault::Damaged(format!("its database broke off ({said})")))
    })
}
