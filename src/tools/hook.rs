//! The operator's own command that is told what happens: a line on its input, and nothing of it comes back but whether
//! it went well.
//!
//! It is named in the operator's configuration, so it runs unasked; it gets the environment of a tool, and a folder in
//! which nothing of the workspace can stand in for it. It runs under a guard as a tool does, so nothing of it outlives
//! its end, its time or its owner.

use std::path::Path;
use std::process::Stdio;

use nix::unistd::AccessFlags;
use tokio::io::AsyncWriteExt;
use tokio::process::Child;
use tokio::process::Command;
use tokio::time::Instant;
use tokio::time::timeout_at;
use tokio_util::sync::CancellationToken;

use crate::domain::time::Span;
use crate::tools::Scene;
use crate::tools::environment;
use crate::tools::guard;
use crate::tools::orphans;
use crate::tools::process::Ending;
use crate::tools::process::Running;
use crate::tools::wait;

/// A command and how it is started.
pub struct Hook {
    words: Vec<String>,
    scene: Scene,
    time_limit: Span,
}

impl Hook {
    /// A hook of these words, the program first. `scene` says what must not choose the program, and what is passed on.
    pub fn new(words: Vec<String>, scene: Scene, time_limit: Span) -> Hook {
        Hook { words, scene, time_limit }
    }

    /// Starts the command, writes the line to its input, and waits until nothing of it is left. Errors, in a sentence,
    /// when it can't be started, takes too long, or ends with another status than 0. Dropping the future ends it.
    pub async fn tell(&self, line: &str) -> Result<(), String> {
        let until = Instant::now() + wait(self.time_limit);
        let mut child = self.start(line)?;
        let mut leash = child.stdin.take();
        if let Some(leash) = &mut leash {
            // A guard that does not hear it ends, and its status says so.
            let _ = timeout_at(until, leash.write_all(line.as_bytes())).await;
        }
        let cancel = CancellationToken::new();
        match Running::new(child, leash, until, &cancel).ended().await {
            Ending::Exited(0) => Ok(()),
            Ending::Exited(status) => Err(format!("it ended with exit status {status}")),
            Ending::TimedOut => Err(format!("it took longer than {} s and was ended", self.time_limit.0 / 1_000)),
            Ending::NotStarted(why) => Err(why),
            Ending::Cancelled | Ending::Flooded | Ending::Lost(_) => {
                Err("something ended its guard, and it with that; nobody knows how it ended".to_string())
            }
        }
    }

    fn start(&self, line: &str) -> Result<Child, String> {
        let (program, arguments) = self.words.split_first().ok_or("it has no words")?;
        let failed = |why: &str| format!("{program} can't be started ({why})");
        // The guard would start, and only its status would say that there is nothing to guard.
        nix::unistd::access(Path::new(program), AccessFlags::X_OK).map_err(|error| failed(error.desc()))?;
        let mut command = Command::new(&self.scene.program);
        command
            .args([guard::WORD, guard::TOLD, &line.len().to_string(), "--", program])
            .args(arguments)
            .env_clear()
            .envs(environment::for_child(&self.scene))
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        orphans::start_guard(&mut command).map_err(|error| format!("its guard can't be started ({error})"))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::tools::stage::Stage;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    /// A guard that hears nothing takes the time of the command once, not once to be told and once to end.
    #[tokio::test(start_paused = true)]
    async fn one_time_holds_for_telling_and_for_ending() {
        let mut stage = Stage::new();
        stage.write("deaf", "#!/bin/sh\nexec sleep 1000\n");
        stage.scene.program = stage.scene.workspace.join("deaf");
        fs::set_permissions(&stage.scene.program, fs::Permissions::from_mode(0o700)).unwrap();
        // Long, because until the killed guard is really gone the clock of this test runs on.
        let limit = Span::seconds(10_000_000);
        let hook = Hook::new(vec!["/bin/sh".to_string()], stage.scene.clone(), limit);
        let begun = Instant::now();
        let said = hook.tell(&"x".repeat(1 << 20)).await.unwrap_err();
        let took = begun.elapsed();
        assert!(wait(limit) <= took && took < wait(limit) * 3 / 2, "{took:?}: {said}");
    }
}
