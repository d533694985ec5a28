//! What a repository of git tracks, read from its index: sensitive names, since git shows contents of such files by lines
//! that do not name them, and submodules, which it looks into. An index that is not wholly understood counts as one that
//! tracks them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::path::PathBuf;

use nix::errno::Errno;

use crate::domain::limits;
use crate::tools::names;
use crate::tools::place;

/// What the index begins with.
const SIGNATURE: &[u8] = b"DIRC";
/// Where the flags of an entry are, behind times, numbers, size and a SHA-1; its name comes next.
const FLAGS_AT: usize = 60;
/// Where the mode of an entry is, of which the lower half says of what kind it is.
const MODE_AT: usize = 24;
/// The part of that half that is the kind, ...
const KIND: u16 = 0xF000;
/// ... and the kind that is a commit of another repository.
const SUBMODULE: u16 = 0xE000;
/// The version in which a name is said by how it differs from the one before it.
const SHORTENED: u32 = 4;
/// The flag that says that there are more flags.
const MORE_FLAGS: u16 = 0x4000;
/// The part of the flags that is the length of the name, or all ones where it is longer.
const LENGTH: u16 = 0x0FFF;
/// Entries are filled with NULs up to a multiple of this.
const STEP: usize = 8;
/// The sum at the end.
const SUM_BYTES: usize = 20;

/// What the index of a repository says.
pub(crate) struct Tracked {
    /// Why lines that show contents of the repository may show a secret; nothing where all that it tracks has names like
    /// any other.
    pub(crate) secret: Option<String>,
    /// The submodules in it, by their paths; nothing where that can't be told.
    pub(crate) submodules: Option<Vec<PathBuf>>,
}

/// What the repository of a `.git` tracks.
pub(crate) fn read(git: &Path) -> Tracked {
    let read = place::open_folder(git)
        .and_then(|folder| place::read_at_most(folder, OsStr::new("index"), limits::INDEX_MAX_BYTES));
    match read {
        // Nothing was ever added.
        Err(Errno::ENOENT) => Tracked { secret: None, submodules: Some(Vec::new()) },
        Err(_) => unknown("can't be read"),
        Ok((bytes, _)) => said(&bytes),
    }
}

fn unknown(why: &str) -> Tracked {
    Tracked { secret: Some(format!("what it tracks can't be told: its index {why}")), submodules: None }
}

fn said(index: &[u8]) -> Tracked {
    let (mut secret, mut submodules) = (None, Vec::new());
    let mut look = |name: &[u8], is_submodule: bool| {
        let path = Path::new(OsStr::from_bytes(name));
        if is_submodule {
            submodules.push(path.to_path_buf());
        }
        let why = || {
            let why = names::sensitive(path)?;
            Some(format!("it tracks {}, a sensitive name ({why})", names::shown(path.as_os_str())))
        };
        secret = secret.take().or_else(why);
    };
    match walk(index, &mut look) {
        Some(()) => Tracked { secret, submodules: Some(submodules) },
        None => unknown("is of a kind that is not understood"),
    }
}

/// Gives every name of an index to `look`, with whether it is a submodule. Nothing where the index is not understood:
/// another version, an extension that changes what the entries mean (a part of them elsewhere, whole folders in one), or
/// damage.
fn walk(index: &[u8], look: &mut dyn FnMut(&[u8], bool)) -> Option<()> {
    let rest = index.strip_prefix(SIGNATURE)?;
    let (version, rest) = number(rest)?;
    let (count, mut rest) = number(rest)?;
    if !(2..=SHORTENED).contains(&version) {
        return None;
    }
    let mut name = Vec::new();
    for _ in 0..count {
        let kind = u16::from_be_bytes([*rest.get(MODE_AT + 2)?, *rest.get(MODE_AT + 3)?]) & KIND;
        let flags = u16::from_be_bytes([*rest.get(FLAGS_AT)?, *rest.get(FLAGS_AT + 1)?]);
        let name_at = FLAGS_AT + if version > 2 && flags & MORE_FLAGS != 0 { 4 } else { 2 };
        let mut behind = rest.get(name_at..)?;
        let mut kept = 0;
        if version == SHORTENED {
            let (dropped, after) = shortened(behind)?;
            (kept, behind) = (name.len().checked_sub(dropped)?, after);
        }
        let length = behind.iter().position(|byte| *byte == 0)?;
        name.truncate(kept);
        name.extend(behind.get(..length)?);
        if usize::from(flags & LENGTH) != name.len().min(usize::from(LENGTH)) || name.is_empty() {
            return None;
        }
        look(&name, kind == SUBMODULE);
        rest = match version {
            SHORTENED => behind.get(length + 1..)?,
            _ => rest.get((name_at + length) / STEP * STEP + STEP..)?,
        };
    }
    while rest.len() > SUM_BYTES {
        let (kind, behind) = rest.split_at_checked(4)?;
        // One that must be understood is written in small letters.
        if !kind.first()?.is_ascii_uppercase() {
            return None;
        }
        let (size, behind) = number(behind)?;
        rest = behind.get(usize::try_from(size).ok()?..)?;
    }
    (rest.len() == SUM_BYTES).then_some(())
}

fn number(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = bytes.split_first_chunk::<4>()?;
    Some((u32::from_be_bytes(*number), rest))
}

/// A number as version 4 writes it: seven bits a byte, the highest first, each further byte standing for one more.
fn shortened(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut number = 0_usize;
    for (at, byte) in bytes.iter().enumerate() {
        number = number.checked_mul(128)?.checked_add(usize::from(byte & 127))?;
        if byte & 128 == 0 {
            return Some((number, bytes.get(at + 1..)?));
        }
        number = number.checked_add(1)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(name: &str, is_wide: bool) -> Vec<u8> {
        let flags = name.len().min(0xFFF) as u16 | if is_wide { MORE_FLAGS } else { 0 };
        [vec![7; FLAGS_AT], flags.to_be_bytes().to_vec(), vec![0; if is_wide { 2 } else { 0 }]].concat()
    }

    fn entry(name: &str, is_wide: bool) -> Vec<u8> {
        let mut bytes = head(name, is_wide);
        bytes.extend(name.bytes());
        bytes.resize(bytes.len() / STEP * STEP + STEP, 0);
        bytes
    }

    fn index(version: u8, entries: &[Vec<u8>], extension: &[u8]) -> Vec<u8> {
        let head = [SIGNATURE, &[0, 0, 0, version, 0, 0, 0, entries.len() as u8]].concat();
        [head, entries.concat(), extension.to_vec(), vec![9; SUM_BYTES]].concat()
    }

    fn check(index: &[u8], expected: &str) {
        let told = said(index).secret.unwrap_or_default();
        assert!(told.starts_with(expected) && told.is_empty() == expected.is_empty(), "{told}, not {expected}");
    }

    #[test]
    fn names_of_an_index_are_read_or_it_is_not_understood() {
        const UNKNOWN: &str = "what it tracks can't be told";
        let long = format!("{}/.env", "d".repeat(5_000));
        let plain = [entry("a", false), entry("src/long.rs", false), entry(&"n".repeat(5_000), false)];
        check(&index(2, &plain, b""), "");
        check(&index(2, &plain, b"TREE\0\0\0\x03abcEOIE\0\0\0\0"), "");
        check(&index(3, &[entry("a", true), entry("b", false)], b""), "");
        check(&index(2, &[entry("a", false), entry("conf/.ENV", false)], b""), "it tracks conf/.ENV, a sensitive name");
        check(&index(3, &[entry("a", true), entry("k.pem", true)], b""), "it tracks k.pem");
        check(&index(2, &[entry(&long, false)], b""), "it tracks ddd");
        check(&index(2, &plain, b"link\0\0\0\x03abc"), UNKNOWN);
        check(&index(2, &plain, b"sdir\0\0\0\0"), UNKNOWN);
        check(&index(2, &plain, b"TREE\0\0\x01\0abc"), UNKNOWN);
        check(&index(4, &plain, b""), UNKNOWN);
        check(&index(5, &plain, b""), UNKNOWN);
        check(&index(2, &[entry("a", true)], b""), UNKNOWN);
        check(b"", UNKNOWN);
        // Every length that is too short: told, and nothing breaks.
        let whole = index(2, &plain, b"");
        for length in 0..whole.len() {
            check(&whole[..length], UNKNOWN);
        }
    }

    /// One of version 4: so many bytes of the name before it go, and this comes behind what is left.
    fn short(name: &str, dropped: &[u8], end: &str, is_wide: bool) -> Vec<u8> {
        [head(name, is_wide), dropped.to_vec(), end.as_bytes().to_vec(), vec![0]].concat()
    }

    #[test]
    fn names_that_are_said_by_the_one_before_are_read() {
        const UNKNOWN: &str = "what it tracks can't be told";
        let long = "n".repeat(300);
        let plain = |last: Vec<u8>| {
            let first = [short("src/a.rs", &[0], "src/a.rs", false), short("src/b.rs", &[4], "b.rs", true)];
            // 300 is 128 and 172: the first byte stands for one more than it says.
            [first.to_vec(), vec![short(&long, &[8], &long, false), last]].concat()
        };
        check(&index(4, &plain(short("z", &[0x81, 0x2c], "z", false)), b"TREE\0\0\0\x03abc"), "");
        check(&index(4, &plain(short(".env", &[0x81, 0x2c], ".env", false)), b""), "it tracks .env");
        let kept = format!("{}.rs", "n".repeat(299));
        check(&index(4, &plain(short(&kept, &[1], ".rs", false)), b""), "");
        for (name, dropped) in [("z", vec![0x81, 0x2d]), ("z", vec![0]), ("z", vec![0xFF; 30])] {
            check(&index(4, &plain(short(name, &dropped, "z", false)), b""), UNKNOWN);
        }
        let whole = index(4, &plain(short("z", &[0x81, 0x2c], "z", false)), b"");
        for length in 0..whole.len() {
            check(&whole[..length], UNKNOWN);
        }
    }

    #[test]
    fn submodules_are_told_from_files() {
        let of_kind = |name: &str, kind: u8| {
            let mut bytes = entry(name, false);
            bytes[MODE_AT + 2] = kind;
            bytes
        };
        let index =
            index(2, &[of_kind("a", 0x81), of_kind("deep/s", 0xE0), of_kind("l", 0xA0), of_kind("s/.env", 0xE0)], b"");
        let tracked = said(&index);
        assert_eq!(tracked.submodules, Some(vec![PathBuf::from("deep/s"), PathBuf::from("s/.env")]));
        assert!(tracked.secret.is_some() && said(b"DIRC").submodules.is_none());
    }
}
