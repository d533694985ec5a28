//! What a repository of git tracks that has a sensitive name, read from its index: git shows contents of such files by
//! lines that do not name them. An index that is not wholly understood counts as one that tracks them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::errno::Errno;

use crate::domain::limits;
use crate::tools::names;
use crate::tools::place;

/// What the index begins with.
const SIGNATURE: &[u8] = b"DIRC";
/// Where the flags of an entry are, behind times, numbers, size and a SHA-1; its name comes next.
const FLAGS_AT: usize = 60;
/// The flag that says that there are more flags.
const MORE_FLAGS: u16 = 0x4000;
/// The part of the flags that is the length of the name, or all ones where it is longer.
const LENGTH: u16 = 0x0FFF;
/// Entries are filled with NULs up to a multiple of this.
const STEP: usize = 8;
/// The sum at the end.
const SUM_BYTES: usize = 20;

/// Why lines that show contents of a repository may show a secret; nothing where all that its `.git` tracks has names
/// like any other.
pub(crate) fn secret(git: &Path) -> Option<String> {
    let read = place::open_folder(git)
        .and_then(|folder| place::read_at_most(folder, OsStr::new("index"), limits::INDEX_MAX_BYTES));
    match read {
        // Nothing was ever added.
        Err(Errno::ENOENT) => None,
        Err(_) => Some(unknown("can't be read")),
        Ok((bytes, _)) => secret_of(&bytes),
    }
}

fn unknown(why: &str) -> String {
    format!("what it tracks can't be told: its index {why}")
}

fn secret_of(index: &[u8]) -> Option<String> {
    let mut secret = None;
    let mut look = |name: &[u8]| {
        let path = Path::new(OsStr::from_bytes(name));
        let why = names::sensitive(path)?;
        secret = Some(format!("it tracks {}, a sensitive name ({why})", names::shown(path.as_os_str())));
        secret.is_some().then_some(())
    };
    match walk(index, &mut look) {
        Some(()) => secret,
        None => Some(unknown("is of a kind that is not understood")),
    }
}

/// Gives every name of an index to `look` until that has found something. Nothing where the index is not understood:
/// another version, an extension that changes what the entries mean (a part of them elsewhere, whole folders in one), or
/// damage.
fn walk(index: &[u8], look: &mut dyn FnMut(&[u8]) -> Option<()>) -> Option<()> {
    let rest = index.strip_prefix(SIGNATURE)?;
    let (version, rest) = number(rest)?;
    let (count, mut rest) = number(rest)?;
    if !matches!(version, 2 | 3) {
        return None;
    }
    for _ in 0..count {
        let flags = u16::from_be_bytes([*rest.get(FLAGS_AT)?, *rest.get(FLAGS_AT + 1)?]);
        let name_at = FLAGS_AT + if version == 3 && flags & MORE_FLAGS != 0 { 4 } else { 2 };
        let name = rest.get(name_at..)?;
        let length = name.iter().position(|byte| *byte == 0)?;
        if usize::from(flags & LENGTH) != length.min(usize::from(LENGTH)) || length == 0 {
            return None;
        }
        if look(name.get(..length)?).is_some() {
            return Some(());
        }
        rest = rest.get((name_at + length) / STEP * STEP + STEP..)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, is_wide: bool) -> Vec<u8> {
        let flags = name.len().min(0xFFF) as u16 | if is_wide { MORE_FLAGS } else { 0 };
        let mut bytes =
            [vec![7; FLAGS_AT], flags.to_be_bytes().to_vec(), vec![0; if is_wide { 2 } else { 0 }]].concat();
        bytes.extend(name.bytes());
        bytes.resize(bytes.len() / STEP * STEP + STEP, 0);
        bytes
    }

    fn index(version: u8, entries: &[Vec<u8>], extension: &[u8]) -> Vec<u8> {
        let head = [SIGNATURE, &[0, 0, 0, version, 0, 0, 0, entries.len() as u8]].concat();
        [head, entries.concat(), extension.to_vec(), vec![9; SUM_BYTES]].concat()
    }

    fn check(index: &[u8], expected: &str) {
        let told = secret_of(index).unwrap_or_default();
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
        check(&index(2, &[entry("a", true)], b""), UNKNOWN);
        check(b"", UNKNOWN);
        // Every length that is too short: told, and nothing breaks.
        let whole = index(2, &plain, b"");
        for length in 0..whole.len() {
            check(&whole[..length], UNKNOWN);
        }
    }
}
