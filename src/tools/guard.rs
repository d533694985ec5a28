//! `tiller guard -- PROGRAM ARGUMENTS…`: runs one command and makes sure that nothing of it outlives the call or the
//! owner (docs/SAFETY.md, R38). `tiller guard --told BYTES -- PROGRAM ARGUMENTS…` hands the command so many bytes, the
//! first that come from the owner, as its input; otherwise it has none.
//!
//! The owner holds the other end of the guard's standard input. When that pipe closes, because the call is cancelled
//! or the owner died in any way, or when the command ends, the guard ends everything that descends from it, in
//! whatever session or group it hides: TERM, `limits::KILL_GRACE`, KILL. Only then does it leave, with the command's
//! status (128 and its number for a signal). It knows nothing of runs, writes no files, and is written without async
//! code and without unsafe code: what it can't do safely in one process, it does by starting itself a second time.

#[cfg(target_os = "linux")]
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::io::Read;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::ExitCode;
use std::process::Stdio;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::mpsc::SyncSender;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use nix::errno::Errno;
use nix::sys::resource::Resource;
use nix::sys::resource::setrlimit;
use nix::sys::signal::SigSet;
use nix::sys::signal::Signal;
use nix::sys::wait::WaitStatus;
use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use nix::unistd::setsid;

use crate::domain::limits;
use crate::domain::time::Span;
#[cfg(target_os = "linux")]
use crate::tools::family;
use crate::tools::pipeline;
use crate::tools::sandbox::seatbelt;
#[cfg(target_os = "linux")]
use crate::tools::sandbox::stage;
use crate::tools::sandbox::trial;

/// The first word of the command line that makes our program a guard.
pub const WORD: &str = "guard";
/// The word that makes the second start of our program become the command.
const BECOME: &str = "--become";
/// The word before the number of bytes that the command is told.
pub(crate) const TOLD: &str = "--told";
/// Status of a guard that could not do its work.
const BROKEN_STATUS: u8 = 125;
/// Status of a command that could not be started, as shells have it.
const NOT_FOUND_STATUS: u8 = 127;
/// What is added to the number of the signal that ended a command, as shells do.
const SIGNAL_BASE: i32 = 128;
/// Between two rounds of killing.
const KILL_EVERY: Duration = Duration::from_millis(20);
/// Everything is stopped so often before it is killed: what is stopped can't start anything new.
const STOP_ROUNDS: u32 = 3;
/// Pieces of news that can come at all: the owner is gone, the command ended, nothing is left.
const NEWS: usize = 3;

/// What a thread of the guard has seen.
enum News {
    /// The owner closed its end of the pipe, or died.
    OwnerGone,
    /// The command ended with this status.
    Ended(u8),
    /// No descendant is left.
    Empty,
}

/// Runs the guard. `arguments` are those after the word `guard`.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut arguments = arguments.into_iter();
    let first = arguments.next();
    let mut command: Vec<OsString> = arguments.collect();
    let watched = |command: &[OsString], told: Option<u64>| {
        watch(command, told).unwrap_or_else(|error| complain(BROKEN_STATUS, &error.to_string()))
    };
    let status = match first.as_ref().and_then(|word| word.to_str()) {
        Some("--") => watched(&command, None),
        Some(TOLD) if command.get(1).is_some_and(|word| word == "--") => {
            let told = command.drain(..2).next().and_then(|bytes| bytes.to_str()?.parse().ok());
            watched(&command, Some(told.unwrap_or(0)))
        }
        Some(BECOME) => become_command(&command),
        Some(pipeline::LINE) => pipeline::main(command.first().and_then(|json| json.to_str())),
        Some(seatbelt::STAGE) => complain(BROKEN_STATUS, &seatbelt::run(&command)),
        Some(trial::WORD) => match trial::run(&command) {
            Ok(()) => 0,
            Err(why) => complain(BROKEN_STATUS, &why),
        },
        #[cfg(target_os = "linux")]
        Some(word @ (stage::ENTER | stage::CLOSE)) => complain(BROKEN_STATUS, &stage::run(word, &command)),
        Some(_) | None => complain(BROKEN_STATUS, "it is started by tiller itself, as: tiller guard -- PROGRAM …"),
    };
    ExitCode::from(status)
}

fn complain(status: u8, why: &str) -> u8 {
    // On standard output, which is where the owner reads; when nobody reads, nobody needs it.
    let _ = writeln!(io::stdout(), "tiller guard: {why}; nothing was run");
    status
}

/// Starts the command, and waits until it or the owner ends and nothing is left of it.
fn watch(command: &[OsString], told: Option<u64>) -> io::Result<u8> {
    stand_alone()?;
    let told = told.map(hear).transpose()?;
    let child = start(command, told)?;
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap_or(i32::MAX));
    let (news, heard) = sync_channel(NEWS);
    let owner = news.clone();
    thread::spawn(move || watch_owner(&owner));
    thread::spawn(move || reap(pid, &news));
    let mut status = None;
    match heard.recv() {
        Ok(News::Ended(code)) => status = Some(code),
        Ok(News::OwnerGone | News::Empty) | Err(_) => {}
    }
    sweep(pid, &heard, &mut status);
    Ok(status.unwrap_or(BROKEN_STATUS))
}

/// A session of its own without a terminal, the parent of all orphans below it, deaf to what others send it.
fn stand_alone() -> io::Result<()> {
    setsid()?;
    #[cfg(target_os = "linux")]
    nix::sys::prctl::set_child_subreaper(true)?;
    // A command may have stopped its guard: the end of the owner wakes it, so that it sees the pipe close. Coming
    // early, when only the owner's thread ends, it does nothing.
    #[cfg(target_os = "linux")]
    nix::sys::prctl::set_pdeathsig(Signal::SIGCONT)?;
    setrlimit(Resource::RLIMIT_CORE, 0, 0)?;
    // Blocked in this thread, and so in the threads that it starts. Ignoring them would be inherited by the command
    // for good; a mask is inherited too, but our second start takes it off again.
    SigSet::all().thread_block()?;
    Ok(())
}

/// Reads what the command is told. Errors when the owner is gone before it has said all.
fn hear(bytes: u64) -> io::Result<Vec<u8>> {
    let mut told = Vec::new();
    io::stdin().lock().take(bytes).read_to_end(&mut told)?;
    match told.len() as u64 == bytes {
        true => Ok(told),
        false => Err(io::Error::other("its owner ended before it had said all")),
    }
}

fn start(command: &[OsString], told: Option<Vec<u8>>) -> io::Result<Child> {
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    let mut child = Command::new(own_program()?)
        .arg(WORD)
        .arg(BECOME)
        .args(command)
        .stdin(if told.is_some() { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::inherit())
        .stderr(Stdio::from(output))
        .spawn()?;
    if let (Some(told), Some(mut input)) = (told, child.stdin.take()) {
        // A command that does not read what it is told may still do its work.
        thread::spawn(move || drop(input.write_all(&told)));
    }
    Ok(child)
}

fn own_program() -> io::Result<PathBuf> {
    // This name leads to the running program even when its file was replaced meanwhile, as a build does.
    #[cfg(target_os = "linux")]
    let program = Ok(PathBuf::from("/proc/self/exe"));
    #[cfg(not(target_os = "linux"))]
    let program = std::env::current_exe();
    program
}

/// The second start: sets up what the command inherits, and becomes the command.
fn become_command(command: &[OsString]) -> u8 {
    let Some((program, arguments)) = command.split_first() else {
        return complain(BROKEN_STATUS, "no program was named");
    };
    let ready = setsid().and_then(|_| SigSet::all().thread_unblock());
    if let Err(error) = ready {
        return complain(BROKEN_STATUS, error.desc());
    }
    close_inherited();
    // Should someone kill the guard itself, at least the command goes with it.
    #[cfg(target_os = "linux")]
    if let Err(error) = nix::sys::prctl::set_pdeathsig(Signal::SIGKILL) {
        return complain(BROKEN_STATUS, error.desc());
    }
    let error = Command::new(program).args(arguments).exec();
    complain(NOT_FOUND_STATUS, &format!("{} can't be started: {error}", program.display()))
}

/// Closes what whoever started tiller left open: a command has its output and nothing else of ours.
#[cfg(target_os = "linux")]
fn close_inherited() {
    let open = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers: Vec<i32> = open.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for number in numbers.into_iter().filter(|number| *number > 2) {
        // The one that the list itself was read from is closed already.
        let _ = nix::unistd::close(number);
    }
}

/// Elsewhere there is no list of what is open.
#[cfg(not(target_os = "linux"))]
fn close_inherited() {}

/// Waits until the owner's end of the pipe is closed.
fn watch_owner(news: &SyncSender<News>) {
    let mut byte = [0];
    loop {
        match io::stdin().read(&mut byte) {
            Ok(1..) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => break,
        }
    }
    let _ = news.send(News::OwnerGone);
}

/// Takes note of every descendant that ends, until none is left. Orphans become our children, so "no child" means
/// "no descendant".
fn reap(command: Pid, news: &SyncSender<News>) {
    loop {
        match waitpid(None, None) {
            Ok(WaitStatus::Exited(pid, code)) if pid == command => {
                let _ = news.send(News::Ended(u8::try_from(code).unwrap_or(u8::MAX)));
            }
            Ok(WaitStatus::Signaled(pid, signal, _)) if pid == command => {
                let _ = news.send(News::Ended(u8::try_from(SIGNAL_BASE + signal as i32).unwrap_or(u8::MAX)));
            }
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => break,
        }
    }
    let _ = news.send(News::Empty);
}

/// Ends whatever is left: politely, then not.
fn sweep(command: Pid, heard: &Receiver<News>, status: &mut Option<u8>) {
    signal_all(command, Signal::SIGTERM);
    // What is stopped hears nothing before it goes on.
    signal_all(command, Signal::SIGCONT);
    if wait_until_empty(heard, after(limits::KILL_GRACE), status) {
        return;
    }
    let patience = after(limits::GUARD_KILL_PATIENCE);
    while Instant::now() < patience {
        for _ in 0..STOP_ROUNDS {
            signal_all(command, Signal::SIGSTOP);
        }
        signal_all(command, Signal::SIGKILL);
        if wait_until_empty(heard, Instant::now() + KILL_EVERY, status) {
            return;
        }
    }
}

fn after(span: Span) -> Instant {
    Instant::now() + Duration::from_millis(span.0)
}

fn wait_until_empty(heard: &Receiver<News>, deadline: Instant, status: &mut Option<u8>) -> bool {
    loop {
        match heard.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(News::Empty) | Err(RecvTimeoutError::Disconnected) => return true,
            Ok(News::Ended(code)) => *status = Some(code),
            Ok(News::OwnerGone) => {}
            Err(RecvTimeoutError::Timeout) => return false,
        }
    }
}

/// Sends a signal to every descendant.
#[cfg(target_os = "linux")]
fn signal_all(_command: Pid, signal: Signal) {
    family::signal_each(&family::below(Pid::this(), &BTreeSet::new()), signal);
}

/// Sends a signal to the command's group, which is as much as can be found here.
#[cfg(not(target_os = "linux"))]
fn signal_all(command: Pid, signal: Signal) {
    let _ = nix::sys::signal::kill(Pid::from_raw(-command.as_raw()), signal);
}
