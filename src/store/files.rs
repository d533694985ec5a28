//! Private files and directories: 0600 and 0700 under any umask, replaced by rename, read up to a bound.
//!
//! It must not know what is in them.

use std::fs::DirBuilder;
use std::fs::File;
use std::fs::OpenOptions;
use std::fs::Permissions;
use std::io;
use std::io::Read;
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use nix::fcntl::OFlag;
use tempfile::NamedTempFile;

use crate::store::StoreError;

pub(crate) const DIR_MODE: u32 = 0o700;
pub(crate) const FILE_MODE: u32 = 0o600;
/// How `replace` and others name a file before it has its name.
pub(crate) const TEMPORARY: &str = ".tmp";
/// After so long, what was not renamed or removed will not be. Copying the largest store takes minutes.
const LEFT_BEHIND: Duration = Duration::from_secs(3_600);

/// Makes a directory for its owner only. Errors when it exists.
pub(crate) fn create_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(DIR_MODE).create(path)?;
    // The umask may have taken away bits that the owner needs.
    std::fs::set_permissions(path, Permissions::from_mode(DIR_MODE))
}

/// Makes a directory for its owner only under a name that nobody else has: it begins and ends like this.
pub(crate) fn create_dir_in(parent: &Path, prefix: &str, suffix: &str) -> io::Result<PathBuf> {
    let made = tempfile::Builder::new().prefix(prefix).suffix(suffix).tempdir_in(parent)?.keep();
    std::fs::set_permissions(&made, Permissions::from_mode(DIR_MODE))?;
    Ok(made)
}

/// Makes a file for its owner only, open for reading and writing. Errors when it exists.
pub(crate) fn create_new(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(FILE_MODE).open(path)?;
    file.set_permissions(Permissions::from_mode(FILE_MODE))?;
    Ok(file)
}

/// Makes the files and folders in a directory their owner's only, where others made them under whatever umask.
pub(crate) fn keep_private(dir: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let (facts, path) = (entry.metadata()?, entry.path());
        let wanted = if facts.is_dir() { DIR_MODE } else { FILE_MODE };
        if facts.mode() & 0o077 != 0 && !facts.is_symlink() {
            std::fs::set_permissions(path, Permissions::from_mode(wanted))?;
        }
    }
    Ok(())
}

/// Replaces a file by rename, so that readers see all of the old or all of the new. Not synced: for files that can be
/// made anew.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    persist(write_beside(path, bytes)?, path)
}

/// The same, for what can't be made anew: after a power cut it is the old or the new, never empty.
pub(crate) fn replace_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let file = write_beside(path, bytes)?;
    file.as_file().sync_data()?;
    persist(file, path)
}

fn write_beside(path: &Path, bytes: &[u8]) -> io::Result<NamedTempFile> {
    let dir = path.parent().ok_or_else(|| io::Error::other("it has no directory"))?;
    let mut file = NamedTempFile::new_in(dir)?;
    file.as_file().set_permissions(Permissions::from_mode(FILE_MODE))?;
    file.write_all(bytes)?;
    Ok(file)
}

fn persist(file: NamedTempFile, path: &Path) -> io::Result<()> {
    file.persist(path).map(|_| ()).map_err(|error| named(path)(error.error))
}

/// Says of an error which file it is about.
pub(crate) fn named(path: &Path) -> impl Fn(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Opens a file that is added to, and makes it where there is none. Errors, with its name, when there is something else.
pub(crate) fn open_or_create(path: &Path, how: &mut OpenOptions) -> io::Result<File> {
    open_plain(path, how.create(true).mode(FILE_MODE)).map_err(named(path))
}

/// Removes what killed processes left in a directory: entries of these names that have not changed for
/// `LEFT_BEHIND`, longer than anyone works on one. What can't be looked at or removed stays.
pub(crate) fn sweep_old(dir: &Path, is_ours: impl Fn(&str) -> bool) -> io::Result<()> {
    // By the clock of the file system that the others were written to.
    let now = tempfile::tempfile_in(dir)?.metadata()?.modified()?;
    for entry in std::fs::read_dir(dir)?.filter_map(Result::ok) {
        let is_old = || now.duration_since(entry.metadata().ok()?.modified().ok()?).ok();
        if !entry.file_name().to_str().is_some_and(&is_ours) || is_old().is_none_or(|age| age < LEFT_BEHIND) {
            continue;
        }
        let path = entry.path();
        let removed = if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
        if let Err(error) = removed {
            tracing::warn!(path = %path.display(), %error, "what was left behind can't be removed");
        }
    }
    Ok(())
}

/// Reads a plain file of at most `most` bytes. Errors when it is longer, and as `open_plain`. What is too long by what the
/// system says is not read at all: a file can be called longer than a disk.
pub(crate) fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let too_long = || io::Error::new(io::ErrorKind::FileTooLarge, "it is longer than it can be");
    let file = open_plain(path, OpenOptions::new().read(true))?;
    if file.metadata()?.len() > most {
        return Err(too_long());
    }
    let mut bytes = Vec::new();
    let count = file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if u64::try_from(count).unwrap_or(u64::MAX) > most {
        return Err(too_long());
    }
    Ok(bytes)
}

/// Opens a plain file of ours. Errors with `InvalidData` when something else stands there: a pipe would wait for a writer
/// for ever, and a link may lead to one, or to anything.
pub(crate) fn open_plain(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let no_file = || io::Error::new(io::ErrorKind::InvalidData, "it is not a file");
    match std::fs::symlink_metadata(path) {
        Ok(facts) if !facts.is_file() => return Err(no_file()),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(_) | Err(_) => {}
    }
    // Looked at once more when it is open, which must not wait: it may have been replaced in between.
    let careful = OFlag::O_NONBLOCK | OFlag::O_NOFOLLOW;
    let file = options.custom_flags(careful.bits()).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(no_file()) }
}

/// Whether anything has this name, a link that leads nowhere as well.
pub(crate) fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Which file it is, as long as it is open somewhere: its device and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity(u64, u64);

/// What a file is, but for its times.
pub(crate) struct Glance {
    pub(crate) identity: Identity,
    /// Its length.
    pub(crate) bytes: u64,
}

/// Looks at a file without asking for its times. Linux notes that somebody knows them, and from then on each write
/// brings new ones, which the next sync has to write as well: asked after every sync, that costs half a sync more.
#[cfg(target_os = "linux")]
pub(crate) fn glance(path: &Path) -> io::Result<Glance> {
    let wanted = rustix::fs::StatxFlags::INO | rustix::fs::StatxFlags::SIZE;
    match rustix::fs::statx(rustix::fs::CWD, path, rustix::fs::AtFlags::empty(), wanted) {
        Ok(facts) => {
            let device = u64::from(facts.stx_dev_major) << 32 | u64::from(facts.stx_dev_minor);
            Ok(Glance { identity: Identity(device, facts.stx_ino), bytes: facts.stx_size })
        }
        // An old system, or a container that does not know the call.
        Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => look(path),
        Err(error) => Err(error.into()),
    }
}

/// Looks at a file.
#[cfg(not(target_os = "linux"))]
pub(crate) fn glance(path: &Path) -> io::Result<Glance> {
    look(path)
}

fn look(path: &Path) -> io::Result<Glance> {
    let facts = path.metadata()?;
    Ok(Glance { identity: Identity(facts.dev(), facts.ino()), bytes: facts.len() })
}

/// Makes the names in a directory durable.
pub(crate) fn sync_dir(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Errors with `Exposed` unless the file belongs to this user and nobody else has access.
pub(crate) fn check_private_file(path: &Path) -> Result<(), StoreError> {
    let facts = path.symlink_metadata().map_err(|error| StoreError::Disk {
        doing: format!("looking at {}", path.display()),
        why: error.to_string(),
    })?;
    private(path, facts.uid(), facts.mode(), FILE_MODE)
}

/// Errors with `Exposed` unless the directory belongs to this user and nobody else has access (docs/SAFETY.md, R34).
pub(crate) fn check_private(path: &Path) -> Result<(), StoreError> {
    let exposed = |why: String, fix: String| StoreError::Exposed { path: path.to_path_buf(), why, fix };
    let unreadable = |why: String| exposed(why, "choose another state directory".to_string());
    let facts = path.metadata().map_err(|error| unreadable(format!("can't be looked at ({error})")))?;
    if !facts.is_dir() {
        return Err(unreadable("is not a directory".to_string()));
    }
    private(path, facts.uid(), facts.mode(), DIR_MODE)
}

fn private(path: &Path, owner: u32, mode: u32, wanted: u32) -> Result<(), StoreError> {
    owned(path, owner)?;
    closed(path, mode, wanted)
}

/// Errors with `Exposed` unless the owner of a file or directory is this user.
pub(crate) fn owned(path: &Path, owner: u32) -> Result<(), StoreError> {
    let user = nix::unistd::geteuid().as_raw();
    if owner == user {
        return Ok(());
    }
    Err(StoreError::Exposed {
        path: path.to_path_buf(),
        why: format!("belongs to user {owner} and not to you (user {user})"),
        fix: format!("run `chown -R {user} {}`, or choose another directory", path.display()),
    })
}

/// Errors with `Exposed` when others have access by this mode, and says which one is `wanted`.
pub(crate) fn closed(path: &Path, mode: u32, wanted: u32) -> Result<(), StoreError> {
    let mode = mode & 0o777;
    if mode & 0o077 == 0 {
        return Ok(());
    }
    Err(StoreError::Exposed {
        path: path.to_path_buf(),
        why: format!("is open to other users (mode {mode:o})"),
        fix: format!("run `chmod {wanted:o} {}`", path.display()),
    })
}

/// Errors when the file system of `path` has less than `least` bytes free, with a sentence that says so.
pub(crate) fn check_space(path: &Path, least: u64) -> io::Result<()> {
    let facts = nix::sys::statvfs::statvfs(path)?;
    // How wide these numbers are differs between systems.
    let free = u128::from(facts.blocks_available()) * u128::from(facts.fragment_size());
    if free < u128::from(least) {
        let why = format!("{} MiB are free on the disk and {} are needed", free >> 20, least.div_ceil(1 << 20));
        return Err(io::Error::new(io::ErrorKind::StorageFull, why));
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_is_removed_once_it_is_old() {
        let dir = tempfile::tempdir().unwrap();
        let long_ago = dir.path().metadata().unwrap().modified().unwrap() - 2 * LEFT_BEHIND;
        for name in ["store.before.a", "store", ".tmpA", ".tmpB"] {
            let path = dir.path().join(name);
            if name.starts_with("store") {
                std::fs::create_dir(&path).unwrap();
                std::fs::write(path.join("db"), "x").unwrap();
            } else {
                std::fs::write(&path, "x").unwrap();
            }
            if name != ".tmpB" {
                File::open(&path).unwrap().set_modified(long_ago).unwrap();
            }
        }
        sweep_old(dir.path(), |name| name.starts_with(TEMPORARY) || name.starts_with("store.before.")).unwrap();
        let mut left: Vec<_> = std::fs::read_dir(dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left, [".tmpB", "store"]);
    }

    #[test]
    fn only_a_plain_file_that_is_not_too_long_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::write(path("file"), "1234").unwrap();
        nix::unistd::mkfifo(&path("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        std::fs::create_dir(path("folder")).unwrap();
        for (name, to) in [("link", "file"), ("astray", "nowhere"), ("to_pipe", "pipe"), ("log", "/proc/kmsg")] {
            std::os::unix::fs::symlink(to, path(name)).unwrap();
        }
        std::fs::File::create(path("sparse")).unwrap().set_len(1 << 40).unwrap();
        let read = |name: &str, most: u64| read(&path(name), most).map_err(|error| error.kind());
        assert_eq!(read("file", 4), Ok(b"1234".to_vec()));
        assert_eq!(read("none", 4), Err(io::ErrorKind::NotFound));
        for name in ["file", "sparse"] {
            assert_eq!(read(name, 3), Err(io::ErrorKind::FileTooLarge), "{name}");
        }
        for name in ["pipe", "folder", "link", "astray", "to_pipe", "log"] {
            assert_eq!(read(name, 4), Err(io::ErrorKind::InvalidData), "{name}");
            let opened = open_plain(&path(name), OpenOptions::new().append(true).create(true));
            assert_eq!(opened.unwrap_err().kind(), io::ErrorKind::InvalidData, "{name}");
        }
        assert!(!path("nowhere").exists(), "made through a link");
    }
}
