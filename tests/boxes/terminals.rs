//! The operator's terminal: nothing in a box can type into it, write to it, or press its keys in another way.

use std::process::Command;
use std::process::Stdio;

use portable_pty::PtySize;
use portable_pty::native_pty_system;

use crate::boxes::attacks::check;
use crate::boxes::attacks::perl;
use crate::boxes::stage::Bench;
use crate::boxes::stage::levels;
use tiller::domain::sandbox::Level;

#[tokio::test]
async fn nothing_is_typed_or_written_at_the_terminal_of_somebody_else() {
    let pair = native_pty_system().openpty(PtySize::default()).unwrap();
    let tty = pair.master.tty_name().unwrap();
    check("write to the terminal", |_| format!("printf '\\033]0;GOT\\007' > {} && echo GOT", tty.display())).await;
    let type_in =
        format!("open(T, \"+<\", \"{}\") or die; $y = \"y\"; ioctl(T, 0x5412, $y) and print \"GOT\"", tty.display());
    if nix::unistd::Uid::effective().is_root() {
        check("TIOCSTI", |_| perl(&type_in)).await;
    } else {
        crate::skip::skip("TIOCSTI at the terminal of somebody else: only root can, even without a box");
    }
    check("the terminal by the owner's number", |_| format!("head -c 0 /proc/{}/fd/1 && echo GOT", std::process::id()))
        .await;
    drop(pair);
}

/// A terminal of the command's own, made in the box, so that only the filter stands against typing.
#[tokio::test]
async fn typing_is_refused_even_at_a_terminal_of_its_own() {
    if std::fs::read_to_string("/proc/sys/dev/tty/legacy_tiocsti").is_ok_and(|text| text.trim() == "0") {
        return crate::skip::skip("the kernel refuses TIOCSTI to all");
    }
    let line = "script -qc \"perl -e '\\$y = qq(y); ioctl(STDIN, 0x5412, \\$y) and print qq(GOT) or print qq(refused)'\" /dev/null".to_string();
    let control = Bench::new(Level::None).run(&line).await;
    assert!(control.text.contains("GOT"), "{}", control.text);
    // A partial box has no terminals at all.
    for level in levels("typing at a terminal of its own") {
        let outcome = Bench::new(level).run(&line).await;
        let is_there = outcome.text.contains("refused");
        assert!(!outcome.text.contains("GOT") && is_there == (level == Level::Full), "{level}: {}", outcome.text);
    }
}

/// A multiplexer with a window, as the one that the operator sits in.
struct Multiplexer {
    folder: tempfile::TempDir,
}

impl Multiplexer {
    fn new() -> Option<Multiplexer> {
        let folder = tempfile::tempdir().unwrap();
        let one = Multiplexer { folder };
        let started = one.tmux(&["new-session", "-d", "-x", "80", "-y", "24", "cat"]);
        started.is_some().then_some(one)
    }

    fn socket(&self) -> String {
        self.folder.path().join("socket").display().to_string()
    }

    fn tmux(&self, words: &[&str]) -> Option<String> {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(self.socket()).args(words).env_remove("TMUX").stdin(Stdio::null());
        let output = command.output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

impl Drop for Multiplexer {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

#[tokio::test]
async fn no_key_is_pressed_through_a_multiplexer() {
    let Some(multiplexer) = Multiplexer::new() else { return crate::skip::skip("tmux is not installed") };
    let press = format!("tmux -S {} send-keys y && echo GOT", multiplexer.socket());
    check("tmux send-keys", |_| press.clone()).await;
    let shown = multiplexer.tmux(&["capture-pane", "-p"]).unwrap();
    assert_eq!(shown.trim(), "y", "the key of the control, and no other");
}

#[tokio::test]
async fn a_command_has_no_terminal_and_no_input() {
    for level in levels("no terminal") {
        let bench = Bench::new(level);
        let outcome =
            bench.run("cat; ( : < /dev/tty ) 2>/dev/null && echo GOT; ls -l /proc/self/fd/0 | grep -o '/dev.*'").await;
        assert_eq!(outcome.text, "exit status 0\n/dev/null\n", "{level}");
    }
}
