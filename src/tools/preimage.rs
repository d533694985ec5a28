//! Pre-images: what files held before calls changed them, byte for byte, in the run's own directory
//! (docs/JOURNAL.md, "Pre-images"). Each is a file that is named by the SHA-256 of its content, so the record of a
//! call, which has that hash, leads to it. It must not say in any message what is in them.

use std::fs::DirBuilder;
use std::fs::File;
use std::fs::OpenOptions;
use std::fs::Permissions;
use std::io;
use std::io::ErrorKind;
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use nix::errno::Errno;

use crate::domain::text::sha256_hex;
use crate::tools::place;

/// Keeps a content under its hash. When it returns it is durable, and so is its name. Whatever a killed attempt left
/// is written over.
pub(crate) fn keep(folder: &Path, hash: &str, bytes: &[u8]) -> io::Result<()> {
    make_folder(folder)?;
    if take(folder, hash).is_none() {
        let part = folder.join(format!("{hash}.part"));
        match std::fs::remove_file(&part) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let written = write(&part, bytes).and_then(|()| std::fs::rename(&part, folder.join(hash)));
        if written.is_err() {
            let _ = std::fs::remove_file(&part);
        }
        written?;
    }
    // Also where the file was there: the process that made it may have died before this.
    File::open(folder)?.sync_all()
}

/// The content with this hash, if it is kept and is what it was.
pub(crate) fn take(folder: &Path, hash: &str) -> Option<Vec<u8>> {
    let is_hash = hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    let (bytes, _) = is_hash.then(|| place::read_file(&folder.join(hash)).ok())??;
    (sha256_hex(&bytes) == hash).then_some(bytes)
}

fn make_folder(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Ok(()) => {
            std::fs::set_permissions(folder, Permissions::from_mode(0o700))?;
            folder.parent().map_or(Ok(()), |above| File::open(above)?.sync_all())
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => check_own(folder),
        Err(error) => Err(error),
    }
}

/// Errors unless it is a folder of this user that nobody else can look into: what files held is not written where a link
/// leads to.
fn check_own(folder: &Path) -> io::Result<()> {
    let facts = folder.symlink_metadata()?;
    if !facts.is_dir() {
        return Err(Errno::ENOTDIR.into());
    }
    let is_own = facts.uid() == nix::unistd::geteuid().as_raw() && facts.mode() & 0o077 == 0;
    if is_own { Ok(()) } else { Err(Errno::EACCES.into()) }
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_is_kept_is_private_and_there_once() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().canonicalize().unwrap().join("kept");
        let bytes = b"\xff\0exact\r\n";
        let hash = sha256_hex(bytes);
        assert_eq!(take(&folder, &hash), None);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join(format!("{hash}.part")), "half").unwrap();
        fs::remove_dir_all(&folder).unwrap();
        for _ in 0..2 {
            keep(&folder, &hash, bytes).unwrap();
            assert_eq!(take(&folder, &hash).unwrap(), bytes);
        }
        let names: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, [hash.as_str()]);
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
        assert_eq!(fs::metadata(folder.join(&hash)).unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn what_a_killed_attempt_left_and_what_was_damaged_is_written_anew() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().canonicalize().unwrap();
        fs::set_permissions(&folder, Permissions::from_mode(0o700)).unwrap();
        let hash = sha256_hex(b"whole");
        fs::write(folder.join(format!("{hash}.part")), "wh").unwrap();
        fs::write(folder.join(&hash), "wrong").unwrap();
        assert_eq!(take(&folder, &hash), None);
        keep(&folder, &hash, b"whole").unwrap();
        assert_eq!(take(&folder, &hash).unwrap(), b"whole");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    }

    #[test]
    fn nothing_is_kept_where_a_link_leads_or_others_may_look() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, theirs) = (dir.path().join("kept"), dir.path().join("theirs"));
        fs::create_dir(&theirs).unwrap();
        fs::set_permissions(&theirs, Permissions::from_mode(0o700)).unwrap();
        symlink(&theirs, &folder).unwrap();
        let kept = |folder: &Path| keep(folder, &sha256_hex(b"x"), b"x").map_err(|error| error.kind());
        assert_eq!(kept(&folder), Err(ErrorKind::NotADirectory));
        assert_eq!(fs::read_dir(&theirs).unwrap().count(), 0);
        fs::set_permissions(&theirs, Permissions::from_mode(0o750)).unwrap();
        assert_eq!(kept(&theirs), Err(ErrorKind::PermissionDenied));
        assert_eq!(fs::read_dir(&theirs).unwrap().count(), 0);
    }

    #[test]
    fn only_a_hash_leads_to_a_file_and_no_link_does() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().canonicalize().unwrap();
        let hash = sha256_hex(b"x");
        fs::write(folder.join("file"), "x").unwrap();
        symlink(folder.join("file"), folder.join(&hash)).unwrap();
        for name in [hash.as_str(), "file", "", "../file"] {
            assert_eq!(take(&folder, name), None, "{name:?}");
        }
    }
}
