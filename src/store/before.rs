//! A store as it was before sled opened it.
//!
//! sled takes damage at the end of its file for a crash and overwrites it with zeroes as it opens. So its files are
//! copied first; the copy is thrown away when the journal proves whole and kept when it does not. It must not open
//! sled.

use std::fs::DirEntry;
use std::fs::File;
use std::fs::Metadata;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::path::PathBuf;

use tempfile::TempDir;

use crate::domain::limits;
use crate::domain::text::one_line;
use crate::store::files;

/// Where the files of a store that was found damaged are kept, in the run's directory.
pub(crate) const KEPT: &str = "store.damaged";
/// Where a repair makes the store that takes the place of the damaged one, in the run's directory.
pub(crate) const MENDED: &str = "store.mended";
/// sled's folder for values that are too long for its file. It stays empty: none of ours is.
const BLOBS: &str = "blobs";
/// The unit in which the system says how much of a file was written.
const BLOCK_BYTES: u64 = 512;
/// How the names of copies begin.
pub(crate) const PREFIX: &str = "store.before.";

/// What is wrong with a store whose database is not there.
pub(crate) const MISSING: &str = "the file of its database is missing";

/// What stands in a store and is not what sled makes there, in words; nothing when all is. sled would wait for a pipe
/// for ever, read a file of nothing for hours, and stumble over the rest. None of it is in a copy.
pub(crate) fn stranger(store_dir: &Path) -> io::Result<Option<String>> {
    strangers(store_dir, oversize)
}

/// The same, of a store that was looked at before it was copied: how much of a copy is on the disk, not every file system
/// says at once.
pub(crate) fn misplaced(store_dir: &Path) -> io::Result<Option<String>> {
    strangers(store_dir, |_| None)
}

fn strangers(store_dir: &Path, is_wrong: impl Fn(&Metadata) -> Option<String>) -> io::Result<Option<String>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(store_dir)? {
        let entry = entry?;
        let (facts, name) = (entry.metadata()?, entry.file_name().to_string_lossy().into_owned());
        let (fits, wanted) = if name == BLOBS { (facts.is_dir(), "folder") } else { (facts.is_file(), "file") };
        let why = if fits { is_wrong(&facts) } else { Some(format!("is not a {wanted}")) };
        let shown = one_line(&name, limits::TODO_TITLE_MAX_CHARS);
        found.extend(why.map(|why| format!("`{shown}` in its store {why}")));
    }
    Ok(found.into_iter().min())
}

/// Why there is no database in a store that may be read, as the end of a sentence; nothing when there is one.
pub(crate) fn lack(store_dir: &Path) -> Option<String> {
    match store_dir.symlink_metadata() {
        Ok(facts) if !facts.is_dir() => return Some(format!("its store is {}, not a folder", kind(&facts))),
        Ok(_) => {}
        Err(_) => return Some(MISSING.to_string()),
    }
    let Ok(facts) = store_dir.join("db").symlink_metadata() else { return Some(MISSING.to_string()) };
    match (facts.is_file(), oversize(&facts)) {
        (true, None) => None,
        (true, Some(why)) => Some(format!("the file of its database {why}")),
        (false, _) => Some(format!("the file of its database is {}", kind(&facts))),
    }
}

fn kind(facts: &Metadata) -> &'static str {
    match facts.file_type() {
        kind if kind.is_symlink() => "a link",
        kind if kind.is_dir() => "a folder",
        kind if kind.is_fifo() => "a pipe",
        kind if kind.is_file() => "a file",
        _ => "no file",
    }
}

/// Why a file has a length that sled never gave it, as the end of a sentence.
fn oversize(facts: &Metadata) -> Option<String> {
    let (bytes, stored) = (facts.len(), facts.blocks().saturating_mul(BLOCK_BYTES));
    let mib = bytes >> 20;
    if bytes > limits::STORE_MAX_BYTES {
        return Some(format!("has {mib} MiB, more than the {} MiB that one can have", limits::STORE_MAX_BYTES >> 20));
    }
    let is_hollow = bytes > limits::STORE_HOLLOW_BYTES && stored < bytes / limits::STORE_HOLLOW_SHARE;
    is_hollow.then(|| format!("calls itself {mib} MiB long, and only {} MiB of that were written", stored >> 20))
}

/// Whether a copy of a store takes this along.
fn is_copied(entry: &DirEntry) -> io::Result<bool> {
    let facts = entry.metadata()?;
    Ok(facts.is_file() && entry.file_name() != BLOBS && oversize(&facts).is_none())
}

/// Bytes of the files in a store, which is what a copy needs.
pub(crate) fn size(store_dir: &Path) -> io::Result<u64> {
    let mut size = 0_u64;
    for entry in std::fs::read_dir(store_dir)? {
        let entry = entry?;
        if is_copied(&entry)? {
            size = size.saturating_add(entry.metadata()?.len());
        }
    }
    Ok(size)
}

/// The copy; nothing when an earlier one is kept, which is nearer to what was written. Dropping it deletes it.
#[derive(Debug)]
pub(crate) struct Before {
    copy: Option<TempDir>,
    kept: PathBuf,
}

impl Before {
    /// Copies the files of a store that nobody holds: `looking` is the proof. Takes sled's half-made snapshots out of
    /// the way, and makes durable what a killed process wrote and did not sync, so that sled's next snapshot can't
    /// name what a power cut would undo.
    pub(crate) fn take(run_dir: &Path, store_dir: &Path, looking: &File) -> io::Result<Before> {
        looking.sync_data()?;
        let kept = run_dir.join(KEPT);
        let copy = if files::is_there(&kept) { None } else { Some(copy(run_dir, store_dir)?) };
        sweep_half_made(store_dir)?;
        Ok(Before { copy, kept })
    }

    /// Throws the copy away, beside what follows: to free a long one takes longer than a frame. What a process that ends
    /// meanwhile leaves of it is removed when the run is opened next.
    pub(crate) fn discard(self) {
        // Where no thread can be started, it is thrown away here and now.
        let _ = std::thread::Builder::new().name("tiller-discard".to_string()).spawn(move || drop(self));
    }

    /// Keeps the copy, and says where it is.
    pub(crate) fn keep(self) -> PathBuf {
        let Some(copy) = self.copy else { return self.kept };
        match std::fs::rename(copy.path(), &self.kept) {
            Ok(()) => self.kept,
            Err(_) => copy.keep(),
        }
    }
}

/// Deletes copies that killed processes left. For the holder of the lock.
pub(crate) fn sweep(run_dir: &Path, own: &Before) -> io::Result<()> {
    for name in names(run_dir)? {
        let path = run_dir.join(&name);
        let is_own = own.copy.as_ref().is_some_and(|copy| copy.path() == path);
        if name.starts_with(PREFIX) && !is_own {
            // One that this process threw away may be vanishing at this very moment.
            let removed = match path.is_dir() && !path.is_symlink() {
                true => std::fs::remove_dir_all(&path),
                false => std::fs::remove_file(&path),
            };
            match removed {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(files::named(&path)(error)),
                Ok(()) | Err(_) => {}
            }
        }
    }
    Ok(())
}

/// Takes sled's half-made snapshots out of the way. A snapshot gets its name by rename when it is whole. One that was
/// never renamed is no snapshot, but sled would take it for one and refuse.
pub(crate) fn sweep_half_made(store_dir: &Path) -> io::Result<()> {
    for name in names(store_dir)? {
        let path = store_dir.join(&name);
        if name.starts_with("snap.") && name.ends_with(".generating") && path.symlink_metadata()?.is_file() {
            std::fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// Removes sled's own snapshots, from which it would start instead of reading its file from the first byte, and its
/// settings, which are always the usual ones.
pub(crate) fn sweep_dispensable(store_dir: &Path) -> io::Result<()> {
    for name in names(store_dir)?.iter().filter(|name| name.starts_with("snap.") || *name == "conf") {
        std::fs::remove_file(store_dir.join(name))?;
    }
    Ok(())
}

/// The stores of a run that may hold its records, beside the one that is opened: as they were found before a repair, and
/// the one that a repair was about to put in place.
pub(crate) fn others(run_dir: &Path) -> io::Result<Vec<PathBuf>> {
    let is_other = |name: &String| name.starts_with(KEPT) || name == MENDED;
    let mut others: Vec<PathBuf> =
        names(run_dir)?.into_iter().filter(is_other).map(|name| run_dir.join(name)).collect();
    others.retain(|path| has_database(path));
    others.sort();
    Ok(others)
}

/// Whether there is a store whose records may be read.
pub(crate) fn has_database(store_dir: &Path) -> bool {
    lack(store_dir).is_none()
}

/// Copies the files of a store into a new directory below `into`, which is deleted when it is dropped. What is no file, what stands
/// in the place of sled's folder, and what has a length that sled never gave it, is left out.
pub(crate) fn copy(into: &Path, store_dir: &Path) -> io::Result<TempDir> {
    let private = Permissions::from_mode(files::DIR_MODE);
    let copy = tempfile::Builder::new().prefix(PREFIX).permissions(private).tempdir_in(into)?;
    for entry in std::fs::read_dir(store_dir)? {
        let entry = entry?;
        if is_copied(&entry)? {
            std::fs::copy(entry.path(), copy.path().join(entry.file_name()))?;
        }
    }
    Ok(copy)
}

pub(crate) fn names(dir: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        names.extend(entry?.file_name().into_string().ok());
    }
    Ok(names)
}
