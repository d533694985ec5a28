//! Snapshots of a folded run, as files in the run's directory: a line that says which fold made it, at which record, and
//! what the rest hashes to; the rest is its JSON, compressed (docs/JOURNAL.md, "Snapshots").
//!
//! They stand beside the store and not in it: so they are read while sled's files are copied and opened, and the store
//! does not grow by them. They may be lost at any time, so nothing here is synced. It must not know sled, and must not
//! believe a snapshot: whoever has the journal compares the record that it was made at.

use std::io;
use std::io::Read;
use std::path::Path;
use std::path::PathBuf;
use std::thread;
use std::thread::JoinHandle;

use lz4_flex::frame::FrameDecoder;
use serde::Deserialize;
use serde::Serialize;

use crate::domain::id::RunId;
use crate::domain::id::Seq;
use crate::domain::limits;
use crate::domain::run::Run;
use crate::domain::snapshot::FOLD_VERSION;
use crate::domain::snapshot::Snapshot;
use crate::store::before;
use crate::store::codec;
use crate::store::codec::Link;
use crate::store::codec::Mark;
use crate::store::files;
use crate::store::look::Survey;

/// How the names of the files begin; the position of the record follows.
const PREFIX: &str = "snapshot.";

#[derive(Serialize, Deserialize)]
struct Header {
    fold: u32,
    seq: Seq,
    record: String,
    hash: String,
    bytes: usize,
}

/// A snapshot that is whole.
pub(crate) struct Found {
    /// The record that it says it was made at.
    pub(crate) at: Mark,
    /// What it says.
    pub(crate) snapshot: Snapshot,
    /// Length of its file.
    pub(crate) bytes: usize,
}

/// Keeps the snapshot of a run whose last record is at `head`, and removes all but the one before it. Gives its length in
/// bytes. Errors when it has no JSON, is too long, or can't be written; why, as the end of a sentence.
pub(crate) fn keep(run_dir: &Path, run: &Run, head: Mark) -> Result<usize, String> {
    let bytes = encode(run, head)?;
    let path = run_dir.join(format!("{PREFIX}{}", head.seq));
    files::replace(&path, &bytes).and_then(|()| sweep(run_dir, head.seq)).map_err(|error| error.to_string())?;
    Ok(bytes.len())
}

/// Removes the snapshots but for the newest. One of a later record is of a journal that a repair took back.
fn sweep(run_dir: &Path, newest: Seq) -> io::Result<()> {
    let (later, other): (Vec<_>, Vec<_>) = list(run_dir)?.into_iter().partition(|(seq, _)| *seq > newest);
    for (_, path) in later.into_iter().chain(other.into_iter().skip(limits::SNAPSHOTS_KEPT)) {
        // What can't be removed is in nobody's way.
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}

/// The snapshots that there are, newest first.
fn list(run_dir: &Path) -> io::Result<Vec<(Seq, PathBuf)>> {
    let names = before::names(run_dir)?.into_iter();
    let mut found: Vec<(Seq, PathBuf)> =
        names.filter_map(|name| Some((Seq(name.strip_prefix(PREFIX)?.parse().ok()?), run_dir.join(name)))).collect();
    found.sort_by(|one, other| other.cmp(one));
    Ok(found)
}

fn encode(run: &Run, head: Mark) -> Result<Vec<u8>, String> {
    let json = serde_json::to_vec(&Snapshot::of(run)).map_err(|error| error.to_string())?;
    if json.len() > limits::SNAPSHOT_MAX_BYTES {
        return Err(format!("it has {} bytes, which is too long", json.len()));
    }
    let packed = codec::pack(&json).map_err(|error| error.to_string())?;
    let header = Header {
        fold: FOLD_VERSION,
        seq: head.seq,
        record: head.link.whole(),
        hash: codec::hash(&packed),
        bytes: json.len(),
    };
    let mut bytes = serde_json::to_vec(&header).map_err(|error| error.to_string())?;
    bytes.push(b'\n');
    bytes.extend_from_slice(&packed);
    Ok(bytes)
}

/// Errors when the snapshot is not whole, or of another fold; why, as the end of a sentence.
fn decode(bytes: &[u8]) -> Result<Found, String> {
    let end = bytes.iter().position(|byte| *byte == b'\n').ok_or("its first line is missing")?;
    let (header, packed) = (bytes.get(..end).unwrap_or_default(), bytes.get(end + 1..).unwrap_or_default());
    let header: Header = serde_json::from_slice(header).map_err(|_| "its first line can't be read")?;
    if header.fold != FOLD_VERSION {
        return Err(format!("it is of version {} of the fold, not of {FOLD_VERSION}", header.fold));
    }
    if header.bytes > limits::SNAPSHOT_MAX_BYTES {
        return Err("it is too long".to_string());
    }
    let link = codec::unhex(&header.record).map(Link).ok_or("it names no record")?;
    if codec::hash(packed) != header.hash {
        return Err("it is not what was written".to_string());
    }
    let mut json = Vec::with_capacity(header.bytes);
    let most = u64::try_from(header.bytes).unwrap_or(u64::MAX);
    FrameDecoder::new(packed).take(most).read_to_end(&mut json).map_err(|_| "it can't be unpacked")?;
    let snapshot: Snapshot = serde_json::from_slice(&json).map_err(|_| "it can't be read")?;
    if snapshot.seq() != header.seq {
        return Err("it is of another record".to_string());
    }
    Ok(Found { at: Mark { seq: header.seq, link }, snapshot, bytes: bytes.len() })
}

fn read(path: &Path) -> Result<Found, String> {
    let most = u64::try_from(limits::SNAPSHOT_MAX_BYTES).unwrap_or(u64::MAX);
    decode(&files::read(path, most).map_err(|error| error.to_string())?)
}

/// The snapshots of a run that is being opened. The newest one is read on a thread of its own as soon as this is made.
pub(crate) struct Shelf {
    run_dir: PathBuf,
    early: Option<(PathBuf, JoinHandle<Result<Found, String>>)>,
}

impl Shelf {
    /// The snapshots in a run's directory. Whether the run may be opened need not be known yet.
    pub(crate) fn of(run_dir: &Path) -> Shelf {
        let newest = list(run_dir).unwrap_or_default().into_iter().next();
        let early = newest.and_then(|(_, path)| {
            let task = path.clone();
            let reading = thread::Builder::new().name("tiller-snapshot".to_string()).spawn(move || read(&task));
            Some((path, reading.ok()?))
        });
        Shelf { run_dir: run_dir.to_path_buf(), early }
    }

    /// The newest that are there now, newest first, each read when it is asked for. Errors as `decode`.
    pub(crate) fn newest_first(&mut self) -> impl Iterator<Item = (Seq, Result<Found, String>)> {
        let early = &mut self.early;
        let newest = list(&self.run_dir).unwrap_or_default().into_iter().take(limits::SNAPSHOTS_READ);
        newest.map(move |(seq, path)| {
            let found = match early.take_if(|(read, _)| *read == path) {
                Some((_, reading)) => reading.join().unwrap_or_else(|_| Err("reading it broke off".to_string())),
                None => read(&path),
            };
            (seq, found)
        })
    }
}

/// The positions of the snapshots that would be used and say something else than the records of a whole journal fold to.
pub(crate) fn liars(run_dir: &Path, run: &RunId, journal: &Survey) -> Vec<Seq> {
    let place = |seq: Seq| usize::try_from(seq.0).ok()?.checked_sub(1);
    let event = |seq: Seq| journal.records.get(place(seq)?).map(|record| record.event.clone());
    let lies = |found: Found| {
        let at = place(found.at.seq)?;
        if codec::mark(journal.lines.get(at)?.as_bytes(), found.at.seq) != found.at {
            return None;
        }
        let said = found.snapshot.restore(run, event).ok().filter(|said| said.check().is_ok())?;
        Some(Run::fold(run, journal.records.get(..=at)?).is_ok_and(|folded| folded != said))
    };
    let mut shelf = Shelf::of(run_dir);
    let lying = shelf.newest_first().filter_map(|(seq, found)| lies(found.ok()?)?.then_some(seq));
    lying.collect()
}
