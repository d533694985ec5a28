//! Whether a box shows what it was to show. Bubblewrap finds folders by their names, and a command of another run can
//! exchange folders of the workspace meanwhile; so each is marked before, without following a link, and looked at from
//! within, before anything runs.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::path::PathBuf;

use rustix::fs::AtFlags;
use rustix::fs::CWD;
use rustix::fs::Mode;
use rustix::fs::OFlags;
use rustix::fs::ResolveFlags;
use rustix::fs::StatxFlags;
use rustix::io::Errno;
use serde::Deserialize;
use serde::Serialize;

use crate::domain::sandbox::Level;
use crate::tools::sandbox::cell::Cell;
use crate::tools::sandbox::cell::SHARED;

/// Why a box fails that is another one than was to be made.
const CHANGED: &str = "the workspace changed while its box was made; try again";
/// Why none can be made by a kernel that can't say where something is mounted.
const TOO_OLD: &str = "the kernel can't tell where folders are mounted; full boxes need Linux 5.8 or later";

/// Why none can be made where a folder on the way became a link.
const LINKED: &str =
    "or a folder above it, is not where it was: a link is there now; put it back, or start a run where it leads";

/// What a path led to, without a link in any part of it. A box that shows it shows the same numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mark {
    pub(crate) path: PathBuf,
    device: u64,
    inode: u64,
}

impl Mark {
    /// The mark of a folder that the box is about.
    pub(crate) fn of(path: PathBuf) -> Result<Mark, String> {
        match open(&path).and_then(|file| file.metadata()) {
            Ok(seen) => Ok(Mark { path, device: seen.dev(), inode: seen.ino() }),
            Err(error) if is(&error, Errno::LOOP) => Err(format!("{}, {LINKED}", path.display())),
            Err(error) => Err(why(&error)),
        }
    }

    /// Opens what was marked. Errors where anything else is there.
    pub(crate) fn open(&self) -> Result<File, String> {
        let seen = |file: File| Ok((file.metadata()?, file));
        let (seen, file) = open(&self.path).and_then(seen).map_err(|error| why(&error))?;
        match (seen.dev(), seen.ino()) == (self.device, self.inode) {
            true => Ok(file),
            false => Err(CHANGED.to_string()),
        }
    }
}

/// Opens a path without following a link in any part of it.
pub(crate) fn open(path: &Path) -> std::io::Result<File> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?))
}

/// Compares what this box shows with what was marked. Errors where it is anything else.
pub(crate) fn check(cell: &Cell) -> Result<(), String> {
    let ground = look(&cell.ground)?;
    if cell.level != Level::Full {
        return Ok(());
    }
    // Each of these is mounted by itself, and no other mount shows it.
    let mut known = BTreeSet::from([ground]);
    for mark in cell.held.iter().chain(&cell.kept).filter(|_| cell.is_writable) {
        if !known.insert(look(mark)?) {
            return Err(CHANGED.to_string());
        }
    }
    for mark in cell.readable.iter().chain(&cell.writable) {
        look(mark)?;
    }
    // What was to be mounted in one place may have landed in another: nothing is mounted but what was to be, and as often.
    let mut expected = cell.mounts();
    for (_, point) in mounts()? {
        let is_of_every_box = point == Path::new("/")
            || point.starts_with("/proc")
            || (point.starts_with("/dev") && point != Path::new(SHARED));
        match expected.get_mut(&point).filter(|left| **left > 0) {
            Some(left) => *left -= 1,
            None if is_of_every_box => {}
            None => return Err(CHANGED.to_string()),
        }
    }
    match cell.hidden.iter().all(|place| expected.get(place) == Some(&0)) {
        true => Ok(()),
        false => Err(CHANGED.to_string()),
    }
}

/// The number of the mount that shows what was marked.
fn look(mark: &Mark) -> Result<u64, String> {
    let file = mark.open()?;
    let mount = rustix::fs::statx(&file, "", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID);
    let mount = mount.map_err(|error| format!("where {} is mounted can't be told ({error})", mark.path.display()))?;
    number(mount.stx_mask, mount.stx_mnt_id)
}

/// The number of a mount, if the kernel said one.
fn number(said: u32, number: u64) -> Result<u64, String> {
    match StatxFlags::from_bits_retain(said).contains(StatxFlags::MNT_ID) {
        true => Ok(number),
        false => Err(TOO_OLD.to_string()),
    }
}

/// Why a path could not be opened: a kernel without the call for it never could.
fn why(error: &std::io::Error) -> String {
    if is(error, Errno::NOSYS) { TOO_OLD } else { CHANGED }.to_string()
}

fn is(error: &std::io::Error, one: Errno) -> bool {
    error.raw_os_error() == Some(one.raw_os_error())
}

/// Where something is mounted, as far as this process sees it.
pub(crate) fn mounts() -> Result<Vec<(u64, PathBuf)>, String> {
    let bytes = std::fs::read("/proc/self/mountinfo").map_err(|error| format!("mounts can't be told ({error})"))?;
    let line = |line: &[u8]| {
        let mut words = line.split(|byte| *byte == b' ');
        let number = std::str::from_utf8(words.next()?).ok()?.parse().ok()?;
        Some((number, unescaped(words.nth(3)?)))
    };
    Ok(bytes.split(|byte| *byte == b'\n').filter_map(line).collect())
}

/// Spaces and line breaks of a path are written there as a backslash and three digits.
fn unescaped(word: &[u8]) -> PathBuf {
    let mut bytes = Vec::new();
    let mut rest = word;
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|_| *first == b'\\').and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(3..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_does_not_tell_mounts_makes_no_box() {
        assert_eq!(number(StatxFlags::BASIC_STATS.bits(), 0), Err(TOO_OLD.to_string()));
        assert_eq!(number((StatxFlags::BASIC_STATS | StatxFlags::MNT_ID).bits(), 7), Ok(7));
        assert_eq!(why(&Errno::NOSYS.into()), TOO_OLD);
        assert_eq!(why(&Errno::LOOP.into()), CHANGED);
    }

    #[test]
    fn paths_of_mounts_are_read_as_they_are() {
        for (written, wanted) in [("/a", "/a"), ("/a\\040b\\134", "/a b\\"), ("/\\9", "/\\9"), ("/\\01", "/\\01")] {
            assert_eq!(unescaped(written.as_bytes()), PathBuf::from(wanted));
        }
    }
}
