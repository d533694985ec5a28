//! The rehearsal without its pauses.

use crate::real::Stage;

impl Stage {
    /// The rehearsal's own script without its pauses; its path.
    pub(crate) fn fast_rehearsal(&self) -> String {
        let script = include_str!("../../assets/demo/script.toml");
        let lines: Vec<&str> = script.lines().filter(|line| !line.starts_with("first_ms = ")).collect();
        let script =
            lines.join("\n").replace("chunk_ms = 22", "").replace("retry_after_ms = 400", "retry_after_ms = 1");
        self.write("fast.toml", &script).display().to_string()
    }
}
