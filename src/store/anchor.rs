//! The anchor: a small file beside the store that says how far the journal went.
//!
//! A damaged store can open with its newest records, or all of them, silently missing. The anchor is written by
//! other means and in another file, so a journal that ends before it is known to be damaged. It is written after each
//! commit, never before, so it can lag behind the journal but not run ahead of it; and it is synced where a loss would
//! weigh most, because a sync at each commit would double its cost. Two slots are overwritten in turn, so a write that
//! is cut short leaves the other one. It must not decide anything by itself.

use std::fs::File;
use std::fs::OpenOptions;
use std::io;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::Path;

use sha2::Digest;
use sha2::Sha256;

use crate::domain::event::Event;
use crate::domain::event::Record;
use crate::domain::id::Seq;
use crate::domain::status::Status;
use crate::store::codec::Link;
use crate::store::codec::Mark;
use crate::store::files;

/// The name of the file in a run's directory.
pub(crate) const FILE: &str = "anchor";

const MAGIC: &[u8; 8] = b"tilleran";
const SLOT_BYTES: usize = 64;
const CHECKED_BYTES: usize = 48;

/// The anchor of one run, open for writing.
#[derive(Debug)]
pub(crate) struct Anchor {
    file: File,
    /// The slot that is written next: 0 or 1.
    next: u8,
}

impl Anchor {
    /// Makes the file with its first mark, durably but for its name in the directory.
    pub(crate) fn create(path: &Path, mark: Mark) -> io::Result<Anchor> {
        let file = files::create_new(path)?;
        file.write_all_at(&[0; 2 * SLOT_BYTES], 0)?;
        file.write_all_at(&encode(mark), 0)?;
        file.sync_all()?;
        Ok(Anchor { file, next: 1 })
    }

    /// Opens the file, and gives the marks in it that are valid, newest first: at most two.
    pub(crate) fn open(path: &Path) -> io::Result<(Anchor, Vec<Mark>)> {
        let file = files::open_plain(path, OpenOptions::new().read(true).write(true))?;
        let mut bytes = Vec::new();
        (&file).take(2 * SLOT_BYTES as u64).read_to_end(&mut bytes)?;
        let first = bytes.get(..SLOT_BYTES).and_then(decode);
        let second = bytes.get(SLOT_BYTES..).and_then(decode);
        let newest_is_first = match (first, second) {
            (Some(one), Some(two)) => one.seq > two.seq,
            (Some(_), None) => true,
            (None, _) => false,
        };
        let mut marks: Vec<Mark> = [first, second].into_iter().flatten().collect();
        marks.sort_by_key(|mark| std::cmp::Reverse(mark.seq));
        Ok((Anchor { file, next: u8::from(newest_is_first) }, marks))
    }

    /// The marks in the file that are valid, newest first. Opens it for reading only.
    pub(crate) fn marks(path: &Path) -> io::Result<Vec<Mark>> {
        let mut bytes = Vec::new();
        let file = files::open_plain(path, OpenOptions::new().read(true))?;
        file.take(2 * SLOT_BYTES as u64).read_to_end(&mut bytes)?;
        let mut marks: Vec<Mark> = bytes.chunks(SLOT_BYTES).filter_map(decode).collect();
        marks.sort_by_key(|mark| std::cmp::Reverse(mark.seq));
        Ok(marks)
    }

    /// Makes the file anew with one mark, durably: for a run whose anchor is gone.
    pub(crate) fn remake(path: &Path, mark: Mark) -> io::Result<()> {
        let mut bytes = [0; 2 * SLOT_BYTES];
        bytes[..SLOT_BYTES].copy_from_slice(&encode(mark));
        files::replace_synced(path, &bytes)
    }

    /// Overwrites the older slot. Survives the process from now on, and a power cut after `sync`.
    pub(crate) fn write(&mut self, mark: Mark) -> io::Result<()> {
        self.file.write_all_at(&encode(mark), u64::from(self.next) * SLOT_BYTES as u64)?;
        self.next = 1 - self.next;
        Ok(())
    }

    /// Makes what was written durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

/// Whether the anchor is synced after this batch: it ends an iteration, or the run's being under way.
pub(crate) fn needs_sync(records: &[Record]) -> bool {
    records.iter().any(|record| {
        matches!(&record.event, Event::IterationClosed { .. })
            || matches!(&record.event, Event::StatusChanged { status, .. }
                if matches!(status, Status::Parked(_)) || status.is_end())
    })
}

/// A slot: magic (8 bytes), seq (8, big endian), hash of the record (32), first 16 bytes of SHA-256 over these.
fn encode(mark: Mark) -> [u8; SLOT_BYTES] {
    let mut slot = [0; SLOT_BYTES];
    slot[..8].copy_from_slice(MAGIC);
    slot[8..16].copy_from_slice(&mark.seq.0.to_be_bytes());
    slot[16..CHECKED_BYTES].copy_from_slice(&mark.link.0);
    let sum = Sha256::digest(&slot[..CHECKED_BYTES]);
    slot[CHECKED_BYTES..].copy_from_slice(&sum[..SLOT_BYTES - CHECKED_BYTES]);
    slot
}

fn decode(slot: &[u8]) -> Option<Mark> {
    let slot: &[u8; SLOT_BYTES] = slot.try_into().ok()?;
    let seq = u64::from_be_bytes(slot[8..16].try_into().ok()?);
    let link = slot[16..CHECKED_BYTES].try_into().ok()?;
    let mark = Mark { seq: Seq(seq), link: Link(link) };
    (encode(mark) == *slot).then_some(mark)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn mark(seq: u64) -> Mark {
        Mark { seq: Seq(seq), link: Link([u8::try_from(seq).unwrap(); 32]) }
    }

    /// Writes marks 1 to `count`, spoils a range of bytes, and gives the positions that are still known.
    fn check(count: u64, spoil: std::ops::Range<usize>) -> Vec<u64> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE);
        let mut anchor = Anchor::create(&path, mark(1)).unwrap();
        for seq in 2..=count {
            anchor.write(mark(seq)).unwrap();
        }
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[spoil].iter_mut().for_each(|byte| *byte ^= 1);
        std::fs::write(&path, bytes).unwrap();
        Anchor::open(&path).unwrap().1.iter().map(|mark| mark.seq.0).collect()
    }

    #[test]
    fn two_slots_are_kept_in_turn() {
        assert_eq!(check(1, 0..0), [1]);
        assert_eq!(check(2, 0..0), [2, 1]);
        assert_eq!(check(5, 0..0), [5, 4]);
    }

    #[test]
    fn a_spoiled_slot_leaves_the_other() {
        for byte in 0..SLOT_BYTES {
            assert_eq!(check(4, byte..byte + 1), [4]);
            assert_eq!(check(4, SLOT_BYTES + byte..SLOT_BYTES + byte + 1), [3]);
        }
        assert_eq!(check(4, 0..2 * SLOT_BYTES), [0_u64; 0]);
    }

    #[test]
    fn after_a_spoiled_slot_that_slot_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE);
        Anchor::create(&path, mark(1)).unwrap().write(mark(2)).unwrap();
        std::fs::File::options().write(true).open(&path).unwrap().set_len(SLOT_BYTES as u64 + 7).unwrap();
        let (mut anchor, marks) = Anchor::open(&path).unwrap();
        assert_eq!(marks, [mark(1)]);
        anchor.write(mark(3)).unwrap();
        assert_eq!(Anchor::open(&path).unwrap().1, [mark(3), mark(1)]);
    }
}
