//! A run of a script.

use crate::real::Said;
use crate::real::Stage;

impl Stage {
    /// Starts a run of this script, and prints lines.
    pub(crate) fn run(&self, script: &str) -> Said {
        self.ask(&["run", "do it", "--plain", "--model", &self.model(script)])
    }
}
