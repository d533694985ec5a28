//! The database of a run, opened past the store.

use std::path::Path;
use std::time::Duration;
use std::time::Instant;

/// Opens it as soon as its lock is free: sled lets go of what was just closed on a thread of its own, moments later.
pub(crate) fn database(store: &Path) -> sled::Db {
    let start = Instant::now();
    loop {
        match sled::open(store) {
            Err(sled::Error::Io(error))
                if error.to_string().contains("could not acquire lock")
                    && start.elapsed() < Duration::from_secs(60) =>
            {
                std::thread::sleep(Duration::from_millis(10));
            }
            opened => return opened.unwrap(),
        }
    }
}
