//! Who holds a run: the lock, seen from outside, and `owner.json`, which says it in words.
//!
//! The lock alone decides; `owner.json` may be old or missing and is only ever shown. Since when is the file's own
//! time, because nothing in this folder reads the clock.

use std::fs::File;
use std::fs::OpenOptions;
use std::fs::TryLockError;
use std::io;
use std::io::ErrorKind;
use std::path::Path;

use crate::domain::event::Owner;
use crate::domain::limits;
use crate::domain::text::one_line;
use crate::store::files;

const FILE: &str = "owner.json";

/// Writes who took the run. Called after the lock is taken.
pub(crate) fn write(run_dir: &Path, owner: &Owner) -> io::Result<()> {
    let json = serde_json::to_vec(owner)?;
    files::replace(&run_dir.join(FILE), &json)
}

fn read(run_dir: &Path) -> Option<Owner> {
    let bytes = files::read(&run_dir.join(FILE), limits::SIDE_FILE_MAX_BYTES).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// The process that `owner.json` names; 0 where it is missing or damaged.
pub(crate) fn pid(run_dir: &Path) -> u32 {
    read(run_dir).map_or(0, |owner| owner.pid)
}

/// The holder in words: `process 4242 on box since 2026-11-29 16:08 UTC`.
pub(crate) fn phrase(run_dir: &Path) -> String {
    let Some(owner) = read(run_dir) else {
        return "another process, which did not say who it is".to_string();
    };
    let written = std::fs::metadata(run_dir.join(FILE)).and_then(|file| file.modified());
    let since = written
        .ok()
        .and_then(|since| jiff::Timestamp::try_from(since).ok())
        .map_or("an unknown time".to_string(), |since| since.strftime("%Y-%m-%d %H:%M UTC").to_string());
    format!("process {} on {} since {since}", owner.pid, one_line(&owner.host, 64))
}

/// A shared lock on a run's directory, unless somebody has the run alone. Whoever takes the run, or copies its files, has
/// it as long. Unlike the store's file the directory is the same one before and after a repair, and it is still there
/// when that file is gone: so a repair is waited for as any other owner is, and an owner is found whatever became of its
/// files. Errors with `NotFound` when the run was removed.
pub(crate) fn enter(run_dir: &Path) -> io::Result<Option<File>> {
    let dir = File::open(run_dir)?;
    let locked = dir.try_lock_shared();
    taken(dir, locked)
}

/// The lock of who mends or removes a run, if nobody else has it or looks at it. Errors as `enter`.
pub(crate) fn alone(run_dir: &Path) -> io::Result<Option<File>> {
    let dir = File::open(run_dir)?;
    let locked = dir.try_lock();
    taken(dir, locked)
}

/// A shared lock on a store's file, if nobody holds the store.
///
/// sled takes an exclusive flock on its `db` file. A shared one beside it is refused while a store is open, never
/// waits, changes nothing, and is gone when the handle is dropped; several lookers do not disturb each other. A store
/// that is opened in that moment finds itself refused and tries again (`limits::LOCK_PATIENCE`).
/// Errors with `NotFound` when there is no such file, whatever else there is in its place.
pub(crate) fn look(store_dir: &Path) -> io::Result<Option<File>> {
    let file = database_file(store_dir, File::options().read(true))?;
    let locked = file.try_lock_shared();
    taken(file, locked)
}

/// The lock of an owner, if nobody holds the store: for who does not open it, and wants nobody else to. Errors as `look`.
pub(crate) fn take(store_dir: &Path) -> io::Result<Option<File>> {
    let file = database_file(store_dir, File::options().read(true).write(true))?;
    let locked = file.try_lock();
    taken(file, locked)
}

fn taken(file: File, locked: Result<(), TryLockError>) -> io::Result<Option<File>> {
    match locked {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn database_file(store_dir: &Path, options: &mut OpenOptions) -> io::Result<File> {
    match files::open_plain(&store_dir.join("db"), options) {
        Err(error) if matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::NotADirectory) => {
            Err(io::Error::new(ErrorKind::NotFound, error.to_string()))
        }
        opened => opened,
    }
}
