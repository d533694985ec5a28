//! Room ahead in sled's file, so that a commit only overwrites what is there.
//!
//! A file that grows has new blocks and a new length, and a sync has to commit these to the file system's own journal
//! before it returns. Where zeroes were written and synced before, it has not. sled does the same as it opens: it fills
//! the segment that it goes on in with zeroes (`advance_snapshot` in its `pagecache/snapshot.rs`). But it begins each
//! further segment at the end of the file. Here such a segment is filled up as soon as it was begun.
//!
//! Why this can't do harm:
//! * The file is opened for appending, so that the system itself puts the zeroes behind everything that is there,
//!   whatever sled writes in that moment. What sled writes later overwrites them.
//! * sled looks at the length of its file only as it opens. It then finds a segment with zeroes behind its last message:
//!   what it leaves there itself. A message or a segment's header of zeroes has no valid sum, and ends what is read as
//!   the end of the file would.
//! * sled cuts its file only where a segment begins, behind which nothing is in use. Cut before or after the zeroes
//!   were written, the file ends with zeroes at most.

use std::fs::OpenOptions;
use std::io;
use std::io::Write;
use std::path::Path;

use crate::domain::limits;
use crate::store::files;
use crate::store::files::Identity;

/// Length of sled's segments, which is sled's usual one.
const SEGMENT_BYTES: u64 = 512 * 1024;

/// Fills the last segment of a file up, durably, if it is the one that is meant. A full disk is left as it is.
pub(crate) fn fill(path: &Path, identity: Identity) -> io::Result<()> {
    let facts = files::glance(path)?;
    let begun = facts.bytes % SEGMENT_BYTES;
    if begun == 0 || facts.identity != identity {
        return Ok(());
    }
    files::check_space(path, limits::FREE_SPACE_MIN_BYTES)?;
    let mut file = OpenOptions::new().append(true).open(path)?;
    file.write_all(&vec![0; usize::try_from(SEGMENT_BYTES - begun).unwrap_or_default()])?;
    file.sync_data()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// The length that a file of so many bytes has afterwards; and its bytes are the same up to there, then zeroes.
    fn check(bytes: usize) -> u64 {
        let file = tempfile::NamedTempFile::new().unwrap();
        let before = vec![7; bytes];
        std::fs::write(file.path(), &before).unwrap();
        fill(file.path(), files::glance(file.path()).unwrap().identity).unwrap();
        let after = std::fs::read(file.path()).unwrap();
        assert_eq!(after[..bytes], before);
        assert!(after[bytes..].iter().all(|byte| *byte == 0));
        after.len() as u64
    }

    #[test]
    fn the_last_segment_is_filled_up() {
        assert_eq!(check(0), 0);
        assert_eq!(check(1), SEGMENT_BYTES);
        assert_eq!(check(512 * 1024 - 1), SEGMENT_BYTES);
        assert_eq!(check(512 * 1024), SEGMENT_BYTES);
        assert_eq!(check(512 * 1024 + 1), 2 * SEGMENT_BYTES);
    }

    #[test]
    fn another_file_is_left_alone() {
        let (ours, other) = (tempfile::NamedTempFile::new().unwrap(), tempfile::NamedTempFile::new().unwrap());
        std::fs::write(other.path(), "other").unwrap();
        fill(other.path(), files::glance(ours.path()).unwrap().identity).unwrap();
        assert_eq!(std::fs::read(other.path()).unwrap(), b"other");
    }
}
