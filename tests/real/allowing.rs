//! All that waits, allowed.
#![allow(clippy::unwrap_used)]

use crate::real::Stage;

impl Stage {
    /// Allows all that waits in the only run, as it is shown.
    pub(crate) fn allow(&self) {
        let shown = self.show();
        for one in shown["waiting"].as_array().unwrap() {
            let id = shown.pointer("/summary/id").unwrap().as_str().unwrap();
            let allowed = self.ask(&["approve", id, one["call"].as_str().unwrap(), one["digest"].as_str().unwrap()]);
            allowed.check(0, &["recorded"]);
        }
    }
}
