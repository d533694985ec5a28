//! What the tests of the store share: a home in a temporary directory.
#![allow(missing_docs, clippy::unwrap_used)]

use std::path::Path;
use tiller::domain::event::Owner;
use tiller::domain::event::OwnerMode;
use tiller::store::place::Home;

pub(crate) fn owner() -> Owner {
    Owner {
        pid: std::process::id(),
        host: "testhost".to_string(),
        version: "0.0.0".to_string(),
        mode: OwnerMode::Drives,
    }
}

/// A home in a directory that is private, as temporary directories are.
pub(crate) fn home(dir: &Path) -> Home {
    Home::new(dir.join("state"), owner()).unwrap()
}
