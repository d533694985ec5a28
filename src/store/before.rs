//! A store as it was before sled opened it.
//!
//! sled takes damage at the end of its file for a crash and overwrites it with zeroes as it opens. So its files are
//! copied first; the copy is thrown away when the journal proves whole and kept when it does not. It must not open
//! sled.

use std::fs::File;
use std::fs::Permissions;
use std::io;
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
/// How the names of copies begin.
pub(crate) const PREFIX: &str = "store.before.";

/// What stands in a store and is not what sled makes there, in words; nothing when all is. sled would wait for a pipe
/// for ever, and stumble over the rest. None of it is in a copy.
pub(crate) fn stranger(store_dir: &Path) -> io::Result<Option<String>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(store_dir)? {
        let entry = entry?;
        let (kind, name) = (entry.file_type()?, entry.file_name().to_string_lossy().into_owned());
        let (fits, wanted) = if name == BLOBS { (kind.is_dir(), "folder") } else { (kind.is_file(), "file") };
        if !fits {
            found.push(format!("`{}` in its store is not a {wanted}", one_line(&name, limits::TODO_TITLE_MAX_CHARS)));
        }
    }
    Ok(found.into_iter().min())
}

/// Bytes of the files in a store, which is what a copy needs.
pub(crate) fn size(store_dir: &Path) -> io::Result<u64> {
    let mut size = 0_u64;
    for entry in std::fs::read_dir(store_dir)? {
        size = size.saturating_add(entry?.metadata()?.len());
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
    store_dir.join("db").symlink_metadata().is_ok_and(|file| file.is_file())
}

/// Copies the files of a store into a new directory below `into`, which is deleted when it is dropped. What is no file, and
/// what stands in the place of sled's folder, is left out.
pub(crate) fn copy(into: &Path, store_dir: &Path) -> io::Result<TempDir> {
    let private = Permissions::from_mode(files::DIR_MODE);
    let copy = tempfile::Builder::new().prefix(PREFIX).permissions(private).tempdir_in(into)?;
    for entry in std::fs::read_dir(store_dir)? {
        let entry = entry?;
        if entry.file_type()?.is_file() && entry.file_name() != BLOBS {
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
