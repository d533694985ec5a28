//! A home of the store in a temporary directory, and names for runs in it.

use std::path::Path;

use tiller::domain::event::Owner;
use tiller::domain::event::OwnerMode;
use tiller::domain::id::RUN_ID_LENGTH;
use tiller::domain::id::RunId;
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

/// A run id that differs by number.
pub(crate) fn run_id(number: u8) -> RunId {
    RunId::from_entropy([number; RUN_ID_LENGTH])
}
