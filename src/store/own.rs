//! Whether what lies in the state directory, and in the directory of a run, is this user's own: no link, nobody else's and
//! not for others to write. Asked before any of it is opened, of its names alone, so that nothing is followed, waited for or
//! changed (docs/SAFETY.md, R34).
//!
//! The state directory itself may be a link: then the operator said so. What a store holds inside is for `before.rs`: there a stranger is damage, which a repair mends.

use std::io;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::store::StoreError;
use crate::store::files;

/// The folder of the log. It is looked at by the log itself: that it can't be kept is no reason to stop.
const LOG: &str = "log";
/// The folders that are written to. What a repair kept is only read; in any other one a rehearsal works, which may give it
/// other rights.
const FOLDERS: [&str; 3] = ["runs", "store", "pre-images"];

/// Errors with `Exposed` when the directory of a run, or what lies in it, is not this user's own, or it is not there.
pub(crate) fn check_run(run_dir: &Path) -> Result<(), StoreError> {
    if run_dir.is_symlink() {
        return Err(link(run_dir));
    }
    files::check_private(run_dir)?;
    check_within(run_dir)
}

/// Errors with `Exposed` when something that lies in this directory is not this user's own.
pub(crate) fn check_within(dir: &Path) -> Result<(), StoreError> {
    let failed =
        |error: io::Error| StoreError::Disk { doing: format!("looking at {}", dir.display()), why: error.to_string() };
    for entry in std::fs::read_dir(dir).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let (path, name) = (entry.path(), entry.file_name());
        let facts = match entry.metadata() {
            // Replaced or removed in this moment.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            facts => facts.map_err(failed)?,
        };
        if name == LOG {
            continue;
        }
        if facts.is_symlink() {
            return Err(link(&path));
        }
        files::owned(&path, facts.uid())?;
        // That others might read a file is kept from them by its directory; who copies a run by hand often leaves it so.
        if facts.is_file() && facts.mode() & 0o022 != 0 {
            files::closed(&path, facts.mode(), files::FILE_MODE)?;
        } else if facts.is_dir() && FOLDERS.iter().any(|own| name == *own) {
            files::closed(&path, facts.mode(), files::DIR_MODE)?;
        }
    }
    Ok(())
}

fn link(path: &Path) -> StoreError {
    StoreError::Exposed {
        path: path.to_path_buf(),
        why: "is a link, which is not followed here".to_string(),
        fix: format!("run `rm {}`, and put there what it leads to, if that is yours", path.display()),
    }
}
