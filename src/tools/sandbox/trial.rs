//! `tiller guard --try TARGET`: tries to get out of where it is, in every way that safe code can, and says which worked.
//! It does no harm where it gets out: what it touches was put there for it.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::net::UdpSocket;
#[cfg(target_os = "linux")]
use std::os::linux::net::SocketAddrExt;
#[cfg(target_os = "linux")]
use std::os::unix::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

#[cfg(target_os = "linux")]
use nix::sched::CloneFlags;
#[cfg(target_os = "linux")]
use nix::sched::unshare;
#[cfg(target_os = "linux")]
use nix::sys::ptrace;
use nix::sys::signal::kill;
#[cfg(target_os = "linux")]
use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use serde::Deserialize;
use serde::Serialize;

use crate::domain::sandbox::Manner;

/// The word of the trial.
pub(crate) const WORD: &str = "--try";
/// A file of the workspace, and what stands in it.
pub(crate) const TEXT: &str = "text";
/// A link of the workspace that leads out.
pub(crate) const LINK: &str = "link";
/// A socket outside.
pub(crate) const SOCKET: &str = "socket";
/// A variable of the process that is attacked.
pub(crate) const VARIABLE: &str = "TILLER_TRIAL";
/// Long enough for anything on this machine.
const PATIENCE: Duration = Duration::from_secs(1);

/// Where a trial finds what it attacks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Target {
    /// The folder that it may use.
    pub(crate) workspace: PathBuf,
    /// One that it may not.
    pub(crate) outside: PathBuf,
    /// A name that nobody else has.
    pub(crate) name: String,
    /// A port that listens.
    pub(crate) tcp: u16,
    /// A port that hears.
    pub(crate) udp: u16,
    /// A process.
    pub(crate) victim: i32,
}

/// How the process that is attacked is known. It is not written like that on the command line of a trial.
pub(crate) fn mark(name: &str) -> String {
    format!("victim-{name}")
}

/// Something that a trial could do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Way {
    Reads,
    Temporary,
    Writes,
    Outside,
    Link,
    Tcp,
    Udp,
    Unix,
    Abstract,
    Environment,
    Sees,
    Ptrace,
    Nests,
    Peeks,
    Signals,
}

impl Way {
    /// What must be possible without a box. That a process is traced, or made its own master, some systems forbid.
    pub(crate) const CONTROLS: &[Way] = &[
        Way::Reads,
        Way::Temporary,
        Way::Writes,
        Way::Outside,
        Way::Peeks,
        Way::Link,
        Way::Tcp,
        Way::Udp,
        Way::Unix,
        Way::Signals,
        #[cfg(target_os = "linux")]
        Way::Abstract,
        #[cfg(target_os = "linux")]
        Way::Environment,
        #[cfg(target_os = "linux")]
        Way::Sees,
    ];

    /// What must be possible in a box.
    pub(crate) fn open(manner: Manner) -> &'static [Way] {
        match manner {
            Manner::Reading => &[Way::Reads, Way::Temporary],
            Manner::Usual | Manner::Ruled | Manner::Unboxed => &[Way::Reads, Way::Temporary, Way::Writes],
        }
    }

    /// In words.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Way::Reads => "read the workspace",
            Way::Temporary => "write a temporary file",
            Way::Writes => "write the workspace",
            Way::Outside => "write outside",
            Way::Link => "write outside through a link",
            Way::Tcp => "connect to a port",
            Way::Udp => "send a datagram",
            Way::Unix => "reach a socket by its path",
            Way::Abstract => "reach a socket by its name",
            Way::Environment => "read the variables of another process",
            Way::Sees => "see other processes",
            Way::Ptrace => "trace another process",
            Way::Peeks => "read outside",
            Way::Signals => "signal another process",
            Way::Nests => "become the master of a box of its own",
        }
    }
}

/// Tries all, and says what worked. The error is why it could not try.
pub(crate) fn run(words: &[OsString]) -> Result<(), String> {
    let target = words.first().and_then(|word| word.to_str()?.parse::<serde_json::Value>().ok());
    let target: Target = target.and_then(|value| serde_json::from_value(value).ok()).ok_or("a trial has no target")?;
    let said = serde_json::to_string(&attempt(&target)).map_err(|error| error.to_string())?;
    let mut out = std::io::stdout();
    out.write_all(said.as_bytes()).and_then(|()| out.flush()).map_err(|error| error.to_string())
}

fn attempt(target: &Target) -> BTreeSet<Way> {
    let victim = Pid::from_raw(target.victim);
    let temporary = std::env::var_os("TMPDIR").map(PathBuf::from).unwrap_or_default();
    let has_text = |folder: &Path| fs::read(folder.join(TEXT)).is_ok_and(|bytes| bytes == TEXT.as_bytes());
    let ways: [(Way, &dyn Fn() -> bool); 14] = [
        (Way::Reads, &|| has_text(&target.workspace)),
        (Way::Peeks, &|| has_text(&target.outside)),
        (Way::Signals, &|| kill(victim, None).is_ok()),
        (Way::Temporary, &|| leaves(&temporary)),
        (Way::Writes, &|| leaves(&target.workspace)),
        (Way::Outside, &|| leaves(&target.outside)),
        (Way::Link, &|| leaves(&target.workspace.join(LINK))),
        (Way::Tcp, &|| TcpStream::connect_timeout(&([127, 0, 0, 1], target.tcp).into(), PATIENCE).is_ok()),
        (Way::Unix, &|| UnixStream::connect(target.outside.join(SOCKET)).is_ok()),
        (Way::Abstract, &|| reaches(&target.name)),
        (Way::Environment, &|| {
            let variables = fs::read(format!("/proc/{victim}/environ")).unwrap_or_default();
            String::from_utf8_lossy(&variables).contains(&mark(&target.name))
        }),
        (Way::Sees, &|| sees(&mark(&target.name))),
        (Way::Ptrace, &|| traces(victim)),
        // The last: it changes what this process is.
        (Way::Nests, &nests),
    ];
    send(target.udp);
    ways.into_iter().filter(|(_, tried)| tried()).map(|(way, _)| way).collect()
}

fn leaves(folder: &Path) -> bool {
    let path = folder.join(format!("left-{}", std::process::id()));
    fs::write(&path, "left").is_ok() && fs::remove_file(&path).is_ok()
}

/// Whether it comes is for its reader to say.
fn send(port: u16) {
    if let Ok(socket) = UdpSocket::bind("127.0.0.1:0") {
        let _ = socket.send_to(b"out", ("127.0.0.1", port));
    }
}

#[cfg(target_os = "linux")]
fn reaches(name: &str) -> bool {
    SocketAddr::from_abstract_name(name).and_then(|address| UnixStream::connect_addr(&address)).is_ok()
}

fn sees(mark: &str) -> bool {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut lines = processes.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines.any(|line| String::from_utf8_lossy(&line).contains(mark))
}

#[cfg(target_os = "linux")]
fn traces(victim: Pid) -> bool {
    if ptrace::attach(victim).is_err() {
        return false;
    }
    let _ = waitpid(victim, None);
    let _ = ptrace::detach(victim, None);
    true
}

#[cfg(target_os = "linux")]
fn nests() -> bool {
    unshare(CloneFlags::CLONE_NEWUSER).is_ok()
}

/// What other systems do not have, nobody can do there.
#[cfg(not(target_os = "linux"))]
fn reaches(_: &str) -> bool {
    false
}

#[cfg(not(target_os = "linux"))]
fn traces(_: Pid) -> bool {
    false
}

#[cfg(not(target_os = "linux"))]
fn nests() -> bool {
    false
}
