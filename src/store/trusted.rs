//! Which folders the operator trusts: a private file of the state directory. Trust is of one folder, by its path without
//! links and by what it is on the disk, so that another folder put in its place is not trusted. It must not judge what
//! trust is good for.

use std::fs::File;
use std::fs::Metadata;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use serde::Deserialize;
use serde::Serialize;

use crate::domain::limits;
use crate::store::StoreError;
use crate::store::files;

const NAME: &str = "trusted.json";
/// Held while the list is read and written anew.
const LOCK: &str = "trusted.lock";

/// A folder that is trusted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trusted {
    /// Its path, without links.
    pub path: PathBuf,
    device: u64,
    inode: u64,
    /// When it was made, in nanoseconds since 1970, where the file system says: the number of a folder that was removed is
    /// given to the next. A list from before this was kept has none, and such a folder must be trusted again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    born: Option<u64>,
    /// SHA-256 of the guide that a run was told there last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guide: Option<String>,
}

/// What the list says of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nothing.
    Unknown,
    /// A folder of this path was trusted, and this is another one.
    Replaced,
    /// It is trusted.
    Trusted(Trusted),
}

/// All that are trusted, by path. Errors when the list can't be read, or when others could have written it.
pub fn all(state: &Path) -> Result<Vec<Trusted>, StoreError> {
    let path = state.join(NAME);
    match files::read(&path, limits::TRUSTED_MAX_BYTES) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(failed(&path, &error)),
        Ok(bytes) => {
            files::check_private_file(&path)?;
            serde_json::from_slice(&bytes).map_err(|error| {
                failed(&path, &io::Error::other(format!("it is no list of folders ({error}); remove it")))
            })
        }
    }
}

/// How a folder stands, given without links.
pub fn standing(state: &Path, folder: &Path) -> Result<Standing, StoreError> {
    let Some(found) = all(state)?.into_iter().find(|one| one.path == folder) else { return Ok(Standing::Unknown) };
    Ok(if is_same(&found) { Standing::Trusted(found) } else { Standing::Replaced })
}

/// Whether the folder that is there now is the one that was trusted.
pub fn is_same(trusted: &Trusted) -> bool {
    let found = trusted.path.symlink_metadata();
    let was = (trusted.device, trusted.inode, trusted.born);
    found.is_ok_and(|found| found.is_dir() && (found.dev(), found.ino(), born(&found)) == was)
}

fn born(found: &Metadata) -> Option<u64> {
    let since = found.created().ok()?.duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(since.as_nanos()).ok()
}

/// Trusts a folder, given without links.
pub fn add(state: &Path, folder: &Path) -> Result<(), StoreError> {
    let facts = folder.symlink_metadata().map_err(|error| failed(folder, &error))?;
    let (device, inode, born) = (facts.dev(), facts.ino(), born(&facts));
    let new = Trusted { path: folder.to_path_buf(), device, inode, born, guide: None };
    change(state, |all| {
        all.retain(|one| one.path != folder);
        all.push(new);
        all.sort_by(|one, other| one.path.cmp(&other.path));
    })
}

/// Trusts a folder no more. Whether it was.
pub fn remove(state: &Path, folder: &Path) -> Result<bool, StoreError> {
    let mut was_there = false;
    change(state, |all| {
        was_there = all.iter().any(|one| one.path == folder);
        all.retain(|one| one.path != folder);
    })?;
    Ok(was_there)
}

/// Keeps the hash of the guide that a run was told in a folder, if that is trusted still.
pub fn keep_guide(state: &Path, folder: &Path, hash: &str) -> Result<(), StoreError> {
    change(state, |all| {
        if let Some(one) = all.iter_mut().find(|one| one.path == folder) {
            one.guide = Some(hash.to_string());
        }
    })
}

fn change(state: &Path, edit: impl FnOnce(&mut Vec<Trusted>)) -> Result<(), StoreError> {
    let _lock = lock(state).map_err(|error| failed(&state.join(LOCK), &error))?;
    let mut list = all(state)?;
    let before = list.clone();
    edit(&mut list);
    if list == before {
        return Ok(());
    }
    let path = state.join(NAME);
    let text = serde_json::to_vec(&list).map_err(io::Error::other);
    text.and_then(|text| files::replace_synced(&path, &text)).map_err(|error| failed(&path, &error))
}

fn lock(state: &Path) -> io::Result<File> {
    let file = files::open_or_create(&state.join(LOCK), OpenOptions::new().write(true))?;
    file.lock()?;
    Ok(file)
}

fn failed(path: &Path, error: &io::Error) -> StoreError {
    StoreError::Disk { doing: format!("looking up trust in {}", path.display()), why: error.to_string() }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn check(state: &Path, folder: &Path, wanted: &str) {
        let found = match standing(state, folder) {
            Ok(Standing::Unknown) => "unknown".to_string(),
            Ok(Standing::Replaced) => "replaced".to_string(),
            Ok(Standing::Trusted(one)) => format!("trusted {}", one.guide.unwrap_or_default()),
            Err(error) => error.to_string(),
        };
        assert!(found.contains(wanted), "{found}");
    }

    #[test]
    fn trust_is_of_one_folder_and_of_that_folder_only() {
        let dir = tempfile::tempdir().unwrap();
        let (state, folder) = (dir.path().join("state"), dir.path().join("a"));
        files::create_dir(&state).unwrap();
        std::fs::create_dir_all(folder.join("below")).unwrap();
        check(&state, &folder, "unknown");
        keep_guide(&state, &folder, "x").unwrap();
        check(&state, &folder, "unknown");
        add(&state, &folder).unwrap();
        keep_guide(&state, &folder, "1a2b").unwrap();
        check(&state, &folder, "trusted 1a2b");
        check(&state, &folder.join("below"), "unknown");
        check(&state, dir.path(), "unknown");
        // Kept, so that the new folder can't get its number on the disk.
        std::fs::rename(&folder, dir.path().join("old")).unwrap();
        check(&state, &folder, "replaced");
        std::fs::create_dir(&folder).unwrap();
        check(&state, &folder, "replaced");
        add(&state, &folder).unwrap();
        check(&state, &folder, "trusted ");
        assert_eq!((remove(&state, &folder).unwrap(), remove(&state, &folder).unwrap()), (true, false));
        check(&state, &folder, "unknown");
        for name in [NAME, LOCK] {
            assert_eq!(state.join(name).metadata().unwrap().permissions().mode() & 0o777, 0o600, "{name}");
        }
    }

    /// The number of a folder that was removed is given to the next one, sooner or later; here the list is written so.
    #[test]
    fn a_folder_that_got_the_number_of_another_is_not_trusted() {
        let dir = tempfile::tempdir().unwrap();
        let (state, folder) = (dir.path().join("state"), dir.path().join("a"));
        files::create_dir(&state).unwrap();
        std::fs::create_dir(&folder).unwrap();
        add(&state, &folder).unwrap();
        check(&state, &folder, "trusted ");
        let old = all(&state).unwrap().remove(0);
        if old.born.is_none() {
            return;
        }
        // Clocks of file systems are coarse.
        while born(&folder.symlink_metadata().unwrap()) == old.born {
            std::fs::remove_dir(&folder).unwrap();
            std::fs::create_dir(&folder).unwrap();
        }
        let found = folder.symlink_metadata().unwrap();
        let same = Trusted { device: found.dev(), inode: found.ino(), ..old };
        let write = |one: &Trusted| std::fs::write(state.join(NAME), serde_json::to_vec(&[one]).unwrap()).unwrap();
        write(&same);
        check(&state, &folder, "replaced");
        write(&Trusted { born: None, ..same.clone() });
        check(&state, &folder, "replaced");
        write(&Trusted { born: born(&found), ..same });
        check(&state, &folder, "trusted ");
    }

    #[test]
    fn a_list_that_others_could_have_written_trusts_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(NAME);
        add(dir.path(), dir.path()).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o620)).unwrap();
        check(dir.path(), dir.path(), "chmod 600");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::write(&path, "[{\"path\":\"/\",\"everything\":true}]").unwrap();
        check(dir.path(), Path::new("/"), "it is no list of folders");
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(dir.path().join("elsewhere"), &path).unwrap();
        check(dir.path(), dir.path(), "it is not a file");
    }

    #[test]
    fn those_who_trust_together_lose_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let folders: Vec<PathBuf> = (0..8).map(|number| dir.path().join(number.to_string())).collect();
        std::thread::scope(|scope| {
            for folder in &folders {
                std::fs::create_dir(folder).unwrap();
                scope.spawn(|| add(dir.path(), folder).unwrap());
            }
        });
        assert_eq!(all(dir.path()).unwrap().into_iter().map(|one| one.path).collect::<Vec<_>>(), folders);
    }
}
