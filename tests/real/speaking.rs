//! A model that speaks a script.

use crate::real::Stage;

impl Stage {
    /// The name of the model that speaks this script.
    pub(crate) fn model(&self, script: &str) -> String {
        format!("scripted/{}", self.write("script.toml", script).display())
    }
}
