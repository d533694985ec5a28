//! Where a run lies.

use std::path::PathBuf;

use crate::real::Stage;

impl Stage {
    pub(crate) fn run_dir(&self, id: &str) -> PathBuf {
        self.path("state/tiller/runs").join(id)
    }
}
