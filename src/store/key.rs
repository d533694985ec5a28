//! The key of the hashes in the marks of secrets: random bytes in a private file of the state directory, made when it
//! is first needed. The same for every process, so that a call that was shown is the same call after a restart.

use std::fs::File;
use std::io;
use std::io::ErrorKind;
use std::io::Read;
use std::io::Seek;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::domain::text::hex;
use crate::store::StoreError;
use crate::store::files;

const NAME: &str = "redaction.key";
const BYTES: usize = 32;

/// The key in hexadecimal. Errors when the file can't be made or read. Blocks while another process makes it.
pub fn of(state: &Path) -> Result<String, StoreError> {
    let path = state.join(NAME);
    match files::read(&path, BYTES as u64) {
        Ok(bytes) if bytes.len() == BYTES => {
            files::check_private_file(&path)?;
            Ok(hex(&bytes))
        }
        Err(error) if error.kind() == ErrorKind::InvalidData => Err(disk(&path, &error)),
        // It is not there, or not whole: somebody may be making it.
        Ok(_) | Err(_) => make(state, &path).map_err(|error| disk(&path, &error)),
    }
}

/// Makes the key while nobody else does, unless somebody has: whoever comes second reads what the first one wrote. What
/// is given is on the disk, because journals will hold hashes by it.
fn make(state: &Path, path: &Path) -> io::Result<String> {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false).mode(files::FILE_MODE);
    let mut file = files::open_plain(path, &mut options)?;
    file.lock()?;
    let mut bytes = Vec::new();
    (&file).take(BYTES as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() == BYTES {
        return Ok(hex(&bytes));
    }
    let mut key = [0; BYTES];
    getrandom::fill(&mut key).map_err(io::Error::other)?;
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(&key)?;
    file.sync_all()?;
    files::sync_dir(state)?;
    Ok(hex(&key))
}

fn disk(path: &Path, error: &io::Error) -> StoreError {
    StoreError::Disk { doing: format!("making {}", path.display()), why: error.to_string() }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_key_is_made_once_and_again_when_it_is_not_whole() {
        let state = tempfile::tempdir().unwrap();
        let first = of(state.path()).unwrap();
        assert_eq!((first.len(), of(state.path()).unwrap()), (64, first.clone()));
        std::fs::write(state.path().join(NAME), "short").unwrap();
        assert_ne!(of(state.path()).unwrap(), first);
    }

    #[test]
    fn all_that_begin_together_have_the_same_key() {
        for _ in 0..50 {
            let state = tempfile::tempdir().unwrap();
            let start = std::sync::Barrier::new(8);
            let keys: Vec<String> = std::thread::scope(|scope| {
                let one = || {
                    start.wait();
                    of(state.path()).unwrap()
                };
                let all: Vec<_> = (0..8).map(|_| scope.spawn(one)).collect();
                all.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            assert!(keys.iter().all(|key| *key == of(state.path()).unwrap()), "{keys:?}");
        }
    }
}
