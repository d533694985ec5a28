//! The only run of a stage, in full.
#![allow(clippy::unwrap_used)]

use serde_json::Value;

use crate::real::Stage;

impl Stage {
    /// The only run, in full.
    pub(crate) fn show(&self) -> Value {
        let ids = self.ids();
        assert_eq!(ids.len(), 1, "{ids:?}");
        let shown = self.ask(&["show", &ids[0], "--json"]);
        shown.check(0, &[]);
        serde_json::from_str(&shown.out).unwrap()
    }
}
