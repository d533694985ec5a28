//! The key of the hashes in the marks of secrets: random bytes in a private file of the state directory, made when it
//! is first needed. The same for every process, so that a call that was shown is the same call after a restart.

use std::fmt::Write as _;
use std::io::ErrorKind;
use std::io::Write as _;
use std::path::Path;

use crate::store::StoreError;
use crate::store::files;

const NAME: &str = "redaction.key";
const BYTES: usize = 32;

/// The key in hexadecimal. Errors when the file can't be made, or holds something else.
pub fn of(state: &Path) -> Result<String, StoreError> {
    let path = state.join(NAME);
    let disk = |why: String| StoreError::Disk { doing: format!("making {}", path.display()), why };
    match files::create_new(&path) {
        Ok(mut file) => {
            let mut bytes = [0; BYTES];
            getrandom::fill(&mut bytes).map_err(|error| disk(error.to_string()))?;
            file.write_all(&bytes).map_err(|error| disk(error.to_string()))?;
            Ok(hex(&bytes))
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let bytes = files::read(&path, BYTES as u64).map_err(|error| disk(error.to_string()))?;
            match bytes.len() {
                BYTES => Ok(hex(&bytes)),
                // Another process is about to write it, or was killed before it did.
                _ => {
                    std::fs::remove_file(&path).map_err(|error| disk(error.to_string()))?;
                    of(state)
                }
            }
        }
        Err(error) => Err(disk(error.to_string())),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut all, byte| {
        let _ = write!(all, "{byte:02x}");
        all
    })
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
}
