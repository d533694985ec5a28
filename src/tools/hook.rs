//! The operator's own command that is told what happens: a line on its input, and nothing of it comes back but whether
//! it went well.
//!
//! It is named in the operator's configuration, so it runs unasked; it gets the environment of a tool, and a folder in
//! which nothing of the workspace can stand in for it.

use std::process::Stdio;

use nix::sys::signal::Signal;
use nix::sys::signal::killpg;
use nix::unistd::Pid;
use tokio::io::AsyncWriteExt;
use tokio::process::Child;
use tokio::process::Command;
use tokio::time::timeout;

use crate::domain::time::Span;
use crate::tools::Scene;
use crate::tools::environment;
use crate::tools::orphans;
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

    /// Starts the command, writes the line to its input, and waits for its end. Errors, in a sentence, when it can't be
    /// started, takes too long, or ends with another status than 0.
    pub async fn tell(&self, line: &str) -> Result<(), String> {
        let mut child = self.start()?;
        let group = Group(child.id());
        let ended = timeout(wait(self.time_limit), talk(&mut child, line)).await;
        drop(group);
        match ended {
            Ok(told) => told,
            Err(_) => {
                let _ = child.wait().await;
                Err(format!("it took longer than {} s and was ended", self.time_limit.0 / 1_000))
            }
        }
    }

    fn start(&self) -> Result<Child, String> {
        let (program, arguments) = self.words.split_first().ok_or("it has no words")?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .envs(environment::for_child(&self.scene))
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // It is no orphan, whatever happens to a guard.
        orphans::start_guard(&mut command).map_err(|error| format!("{program} can't be started ({error})"))
    }
}

async fn talk(child: &mut Child, line: &str) -> Result<(), String> {
    if let Some(mut input) = child.stdin.take() {
        // A command that does not read what it is told may still do its work.
        let _ = input.write_all(line.as_bytes()).await;
    }
    match child.wait().await {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("it ended with {status}")),
        Err(error) => Err(format!("nobody knows how it ended ({error})")),
    }
}

/// The processes of a command. Dropping it ends those that are left.
struct Group(Option<u32>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0.and_then(|id| i32::try_from(id).ok()) {
            let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::tools::stage::Stage;

    async fn check(line: &str, time_limit: Span) -> Result<(), String> {
        let stage = Stage::new();
        let words = ["/bin/sh", "-c", line].map(ToString::to_string).to_vec();
        Hook::new(words, stage.scene.clone(), time_limit).tell("{\"id\":1}\n").await
    }

    #[tokio::test]
    async fn a_command_is_told_and_its_status_counts() {
        let long = Span::seconds(20);
        assert_eq!(check("read line; test \"$line\" = '{\"id\":1}'", long).await, Ok(()));
        assert_eq!(check("exit 0", long).await, Ok(()), "it need not read");
        assert_eq!(check("exit 3", long).await.unwrap_err(), "it ended with exit status: 3");
        assert_eq!(check("test \"$PWD$TERM\" = /dumb && test -z \"$CARGO_MANIFEST_DIR\"", long).await, Ok(()));
        let late = check("sleep 30 & sleep 30", Span(200)).await.unwrap_err();
        assert_eq!(late, "it took longer than 0 s and was ended");
        let stage = Stage::new();
        let hook = Hook::new(vec!["/no/such/program".to_string()], stage.scene.clone(), long);
        assert!(hook.tell("x").await.unwrap_err().starts_with("/no/such/program can't be started"));
    }
}
