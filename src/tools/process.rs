//! Runs one shell line under a guard: its output as it comes, its end in whichever way. What it may run is decided
//! elsewhere; nothing is retried here. A command that is no shell line and of which no output is wanted is awaited by
//! the same rules.

use std::ffi::OsString;
use std::io;
use std::iter;
use std::path::Path;
use std::path::PathBuf;
use std::process::Stdio;

use nix::sys::signal::Signal;
use nix::sys::signal::kill;
use nix::unistd::Pid;
use tokio::io::AsyncReadExt;
use tokio::process::Child;
use tokio::process::ChildStdin;
use tokio::process::Command;
use tokio::time::Instant;
use tokio::time::sleep_until;
use tokio_util::sync::CancellationToken;

use crate::domain::limits;
use crate::domain::line::Plain;
use crate::domain::time::Span;
use crate::tools::Scene;
use crate::tools::guard;
use crate::tools::orphans;
use crate::tools::output::Output;
use crate::tools::pipeline;
use crate::tools::pipeline::Search;
use crate::tools::sandbox::Room;
use crate::tools::sandbox::threshold::Threshold;
use crate::tools::wait;

/// What is read at once, in bytes.
const READ_BYTES: usize = 8 * 1024;

/// A line to run.
pub(crate) struct Line<'call> {
    /// Where.
    pub(crate) scene: &'call Scene,
    /// By what.
    pub(crate) means: Means<'call>,
    /// With which variables, and no others.
    pub(crate) variables: Vec<(OsString, OsString)>,
    /// For how long.
    pub(crate) time_limit: Span,
    /// In which box, if in any.
    pub(crate) room: Option<Room>,
}

/// What runs a line.
pub(crate) enum Means<'call> {
    /// A shell, from the exact text.
    Shell(&'call Interpreter, &'call str),
    /// Our own program, from the words that were read; git in this repository.
    Words(&'call Plain, Search, Option<&'call Path>),
}

impl Means<'_> {
    /// The program and its arguments, for a command in this box.
    fn words(&self, scene: &Scene, room: Option<&Room>) -> Vec<OsString> {
        match self {
            Means::Shell(shell, text) => {
                let options = shell.options.iter().copied().chain(["-c", *text]);
                iter::once(shell.program.clone().into_os_string()).chain(options.map(OsString::from)).collect()
            }
            Means::Words(plain, search, repository) => {
                let own = room.map_or(scene.program.as_path(), Room::own_program);
                let words = pipeline::words(plain, *search, *repository);
                iter::once(own.as_os_str().to_os_string()).chain(words).collect()
            }
        }
    }
}

/// A shell and how it is kept from running anything but the line.
#[derive(Clone, Debug)]
pub(crate) struct Interpreter {
    /// The program.
    pub(crate) program: PathBuf,
    options: &'static [&'static str],
}

impl Interpreter {
    /// Bash where there is one, else the plain shell.
    pub(crate) fn find() -> Self {
        let bash = Path::new("/bin/bash");
        match bash.is_file() {
            true => Interpreter { program: bash.to_path_buf(), options: &["--noprofile", "--norc"] },
            false => Interpreter { program: PathBuf::from("/bin/sh"), options: &[] },
        }
    }

    /// The same shell, kept from running anything: it only reads the line. A line may switch the longer patterns of bash
    /// on before it uses them, so they are known from the start.
    pub(crate) fn reading() -> Self {
        let Interpreter { program, options } = Interpreter::find();
        match options.is_empty() {
            true => Interpreter { program, options: &["-n"] },
            false => Interpreter { program, options: &["--noprofile", "--norc", "-O", "extglob", "-n"] },
        }
    }
}

/// How a line ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// By itself, with this status; 128 and more may stand for a signal.
    Exited(i32),
    /// Ended by us: its time was up.
    TimedOut,
    /// Ended by us: the call was cancelled.
    Cancelled,
    /// Ended by us: it printed more than `limits::OUTPUT_MAX_BYTES`.
    Flooded,
    /// It never ran.
    NotStarted(String),
    /// Something else than tiller ended the guard.
    Lost(Left),
}

/// What a killed guard left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// Nothing that still runs.
    Nothing,
    /// Nobody knows.
    Unknown,
}

/// A command under its guard while it runs.
pub(crate) struct Running<'call> {
    child: Child,
    /// When this is dropped, the guard ends everything.
    leash: Option<ChildStdin>,
    ending: Option<Ending>,
    patience: Instant,
    cancel: &'call CancellationToken,
}

/// Runs a line and gives how it ended. Finished text goes to `show` at once, and all of it into `output`. Dropping
/// the future ends the line.
pub(crate) async fn run(
    mut line: Line<'_>,
    cancel: &CancellationToken,
    output: &mut Output,
    mut show: impl FnMut(&str) + Send,
) -> Ending {
    if let Some(room) = &line.room {
        room.dress(&mut line.variables);
    }
    let mut threshold = Threshold::of(line.room.as_ref());
    let mut child = match start(&line) {
        Ok(child) => child,
        Err(error) => return Ending::NotStarted(error.to_string()),
    };
    let leash = child.stdin.take();
    let Some(mut pipe) = child.stdout.take() else { return Ending::NotStarted("it has no output".to_string()) };
    let deadline = Instant::now() + wait(line.time_limit);
    let mut running = Running::new(child, leash, Instant::now() + wait(line.time_limit), cancel);
    let mut buffer = [0; READ_BYTES];
    let mut gone: Option<(Ending, Instant)> = None;
    let mut open = true;
    loop {
        let drained = gone.as_ref().map_or(deadline, |(_, until)| *until);
        tokio::select! {
            read = pipe.read(&mut buffer), if open => match read {
                Ok(count) if count > 0 => {
                    if output.received <= limits::OUTPUT_MAX_BYTES {
                        show(&output.feed(threshold.pass(buffer.get(..count).unwrap_or_default())));
                    } else {
                        running.end(Ending::Flooded);
                    }
                }
                Ok(_) | Err(_) => open = false,
            },
            ending = running.ended(), if gone.is_none() => {
                gone = Some((ending, Instant::now() + wait(limits::PIPE_PATIENCE)));
            }
            () = sleep_until(drained), if gone.is_some() => open = false,
        }
        if let Some((ending, _)) = &gone
            && !open
        {
            show(&output.finish());
            return threshold.judge(ending.clone());
        }
    }
}

impl<'call> Running<'call> {
    /// A guard that was started, what ends it when it is dropped, and for how long its command may run.
    pub(crate) fn new(
        child: Child,
        leash: Option<ChildStdin>,
        until: Instant,
        cancel: &'call CancellationToken,
    ) -> Running<'call> {
        Running { child, leash, ending: None, patience: until, cancel }
    }

    /// Waits until the guard has left, telling it to when the time is up or the call is cancelled.
    pub(crate) async fn ended(&mut self) -> Ending {
        loop {
            let may_end = self.leash.is_some();
            tokio::select! {
                status = self.child.wait() => return self.judge(status).await,
                () = self.cancel.cancelled(), if may_end => self.end(Ending::Cancelled),
                () = sleep_until(self.patience) => match may_end {
                    true => self.end(Ending::TimedOut),
                    false => self.give_up(),
                },
            }
        }
    }

    /// Lets go of the leash, once.
    fn end(&mut self, ending: Ending) {
        if self.leash.take().is_some() {
            self.ending = Some(ending);
            self.patience = Instant::now() + wait(limits::GUARD_PATIENCE);
            self.wake();
        }
    }

    /// A guard that something has stopped could not do its work.
    fn wake(&self) {
        if let Some(pid) = self.child.id().and_then(|pid| i32::try_from(pid).ok()) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGCONT);
        }
    }

    /// Kills a guard that can't do its work, as when the line stops it again and again; what it leaves is ours to end.
    fn give_up(&mut self) {
        let _ = self.child.start_kill();
        self.patience = Instant::now() + wait(limits::GUARD_PATIENCE);
    }

    async fn judge(&mut self, status: io::Result<std::process::ExitStatus>) -> Ending {
        if let Some(code) = status.ok().and_then(|status| status.code()) {
            return self.ending.take().unwrap_or(Ending::Exited(code));
        }
        let left = if orphans::end_all().await { Left::Nothing } else { Left::Unknown };
        match self.ending.take() {
            Some(ending) if left == Left::Nothing => ending,
            Some(_) | None => Ending::Lost(left),
        }
    }
}

fn start(line: &Line<'_>) -> io::Result<Child> {
    let mut command = Command::new(&line.scene.program);
    command
        .arg(guard::WORD)
        .arg("--")
        .args(line.room.iter().flat_map(Room::words))
        .args(line.means.words(line.scene, line.room.as_ref()))
        .current_dir(&line.scene.workspace)
        .env_clear()
        .envs(line.variables.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    orphans::start_guard(&mut command)
}
