//! The stages between a guard and a command in its box; each is our own program, started once more.
//!
//! `tiller guard --enter CELL -- PROGRAM …` becomes bubblewrap, which makes a full box and starts the next stage in it.
//! `tiller guard --close CELL -- PROGRAM …` closes the box from within and becomes the command. A partial box has this
//! stage only. What goes wrong here ends the call: nothing ever runs outside of a box that could not be made.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::fd::IntoRawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::sys::memfd::MFdFlags;
use nix::sys::memfd::memfd_create;
use nix::sys::resource::Resource;
use nix::sys::resource::setrlimit;
use nix::sys::signal::SigSet;
use nix::sys::signal::Signal;
use nix::unistd::Gid;
use nix::unistd::Uid;
use rustix::thread::CapabilitySet;
use rustix::thread::CapabilitySets;
use rustix::thread::set_capabilities;

use crate::domain::limits;
use crate::domain::sandbox::Level;
use crate::tools::guard;
use crate::tools::sandbox::cell;
use crate::tools::sandbox::cell::Cell;
use crate::tools::sandbox::fence;
use crate::tools::sandbox::filter;
use crate::tools::sandbox::marks;
use crate::tools::sandbox::threshold;

/// The word of the stage that makes a full box.
pub(crate) const ENTER: &str = "--enter";
/// The word of the stage that closes a box.
pub(crate) const CLOSE: &str = "--close";

/// A stage of our own program: `words` are those after its own word. Comes back only with what went wrong.
pub(crate) fn run(stage: &str, words: &[OsString]) -> String {
    let [cell, dashes, program, arguments @ ..] = words else { return "a stage lacks words".to_string() };
    let cell = cell.to_str().and_then(|text| serde_json::from_str::<Cell>(text).ok());
    let Some(cell) = cell.filter(|_| dashes == "--") else { return "a stage has other words".to_string() };
    let ready = match stage {
        ENTER => enter(&cell, program, arguments),
        _ => close(&cell).map(|()| {
            let mut command = Command::new(program);
            command.args(arguments);
            command
        }),
    };
    match ready {
        Ok(mut command) => {
            let error = command.exec();
            format!("{} can't be started ({error})", command.get_program().display())
        }
        Err(why) => why,
    }
}

fn enter(cell: &Cell, program: &OsString, arguments: &[OsString]) -> Result<Command, String> {
    join(cell)?;
    // Bubblewrap stays until the command has ended, so what is sent to all below the guard must not end it.
    let deaf: SigSet = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP].into_iter().collect();
    deaf.thread_block().map_err(|error| error.to_string())?;
    let inner = serde_json::to_string(cell).map_err(|error| error.to_string())?;
    let files = made_files(cell.has_network);
    let made: Result<Vec<(i32, &str)>, String> =
        files.iter().map(|(path, text)| Ok((memory_file(text)?, *path))).collect();
    let mut command = Command::new(&cell.bwrap);
    command.args(cell.words(&made?)).args([cell::PROGRAM, guard::WORD, CLOSE]).arg(inner).arg("--");
    command.arg(program).args(arguments);
    Ok(command)
}

/// Lets this process, and all that it starts, be counted.
fn join(cell: &Cell) -> Result<(), String> {
    let Some(group) = &cell.group else { return Ok(()) };
    std::fs::write(group.join("cgroup.procs"), std::process::id().to_string())
        .map_err(|error| format!("the group {} can't be joined ({error})", group.display()))
}

/// Files that only the box has: it knows one user, and itself. Names of hosts are asked for where there is a network.
fn made_files(has_network: bool) -> [(&'static str, String); 4] {
    let (user, group) = (Uid::current(), Gid::current());
    let hosts = if has_network { "files dns" } else { "files" };
    [
        ("/etc/passwd", format!("box:x:{user}:{group}:box:{}:/bin/sh\n", cell::HOME)),
        ("/etc/group", format!("box:x:{group}:\n")),
        ("/etc/hosts", "127.0.0.1 localhost box\n::1 localhost\n".to_string()),
        ("/etc/nsswitch.conf", format!("passwd: files\ngroup: files\nhosts: {hosts}\n")),
    ]
}

/// A file in memory that the next program inherits; its number.
fn memory_file(text: &str) -> Result<i32, String> {
    let made = memfd_create(c"box", MFdFlags::empty()).map_err(|error| error.to_string())?;
    let mut file = File::from(made);
    let written = file.write_all(text.as_bytes()).and_then(|()| std::io::Seek::rewind(&mut file));
    written.map_err(|error| error.to_string())?;
    Ok(file.into_raw_fd())
}

/// Closes the box around this process, and says so.
fn close(cell: &Cell) -> Result<(), String> {
    SigSet::all().thread_unblock().map_err(|error| error.to_string())?;
    bound(Resource::RLIMIT_CORE, 0)?;
    bound(Resource::RLIMIT_FSIZE, limits::BOX_FILE_BYTES)?;
    // A box of its own users counts its own processes; without one, all of the user's would be counted.
    match cell.level {
        Level::Full => bound(Resource::RLIMIT_NPROC, limits::BOX_PROCESSES)?,
        Level::Partial | Level::None => join(cell)?,
    }
    give_up_powers()?;
    fence::close(cell)?;
    // After the fence, which finds folders by their names as well.
    marks::check(cell)?;
    for program in filter::programs(cell.level, cell.has_network)? {
        seccompiler::apply_filter(&program)
            .map_err(|error| format!("the filter of system calls can't be set ({error})"))?;
    }
    let mut out = std::io::stdout();
    out.write_all(threshold::OPEN).and_then(|()| out.flush()).map_err(|error| error.to_string())
}

/// What root may do beyond others does not come along; in a full box it is gone already. Without new privileges, which
/// the filter sees to, no program gets it back.
fn give_up_powers() -> Result<(), String> {
    let none = CapabilitySet::empty();
    let none = CapabilitySets { effective: none, permitted: none, inheritable: none };
    set_capabilities(None, none).map_err(|error| format!("what root may do can't be given up ({error})"))
}

/// Bounds something for good, where it is not bounded more tightly already.
fn bound(what: Resource, most: u64) -> Result<(), String> {
    let (_, hard) = nix::sys::resource::getrlimit(what).map_err(|error| error.to_string())?;
    let most = most.min(hard);
    setrlimit(what, most, most).map_err(|error| error.to_string())
}
