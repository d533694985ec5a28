//! The files of the log: one a day, the newest few kept. All of it happens in the folder that was opened once, and on
//! files that were looked at when they were open: a link, a pipe or a file with a second name in their place is neither
//! followed, waited for nor changed, and what lies elsewhere is never removed.
//!
//! It must not know what is logged.

use std::fs::File;
use std::fs::OpenOptions;
use std::fs::Permissions;
use std::io;
use std::io::ErrorKind;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::stat::Mode;
use nix::unistd::UnlinkatFlags;

use crate::domain::limits;
use crate::engine::clock::Clock;
use crate::store::files;

/// How the name of a log file begins; its day in UTC follows.
const BEGIN: &str = "tiller.";
/// How it ends.
const END: &str = ".log";
/// A file is opened so that a pipe is not waited for and no link is followed.
const CAREFUL: OFlag = OFlag::O_NONBLOCK.union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);

/// The log file of this day, in its folder.
pub(super) struct Daily {
    folder: File,
    clock: Arc<dyn Clock>,
    day: String,
    file: File,
}

impl Daily {
    /// Opens the file of today in a folder, which is made if need be, and closed to others together with the log files in
    /// it. Removes all but the newest `limits::LOG_FILES`. Errors with the reason, as what stands in brackets.
    pub(super) fn open(folder: &Path, clock: Arc<dyn Clock>) -> Result<Daily, String> {
        let folder = own_folder(folder)?;
        let day = day_of(clock.as_ref());
        let file = own_file(&folder, &day)?;
        let daily = Daily { folder, clock, day, file };
        daily.tidy();
        Ok(daily)
    }

    /// Closes the log files of other days to others, and removes the oldest. What can't be looked at, and what is no log
    /// file of ours, stays as it is.
    fn tidy(&self) {
        let names = names(&self.folder).unwrap_or_default();
        let today = name_of(&self.day);
        let mut others: Vec<&String> = names.iter().filter(|name| is_log(name) && **name != today).collect();
        others.sort();
        let over = (others.len() + 1).saturating_sub(limits::LOG_FILES);
        for (number, name) in others.into_iter().enumerate() {
            let Ok(file) = opened(&self.folder, name, OFlag::O_RDONLY) else { continue };
            if number < over {
                // Only this name goes, whatever else it may be called.
                let _ = nix::unistd::unlinkat(&self.folder, name.as_str(), UnlinkatFlags::NoRemoveDir);
            } else {
                let _ = file.set_permissions(Permissions::from_mode(files::FILE_MODE));
            }
        }
    }
}

impl Write for Daily {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let day = day_of(self.clock.as_ref());
        if day != self.day {
            self.day = day;
            // Where the file of the new day can't be had, the log goes on in the one that is open.
            if let Ok(file) = own_file(&self.folder, &self.day) {
                self.file = file;
                self.tidy();
            }
        }
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn own_folder(path: &Path) -> Result<File, String> {
    match files::create_dir(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error.to_string()),
        Ok(()) | Err(_) => {}
    }
    let careful = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW;
    let folder = OpenOptions::new().read(true).custom_flags(careful.bits()).open(path);
    let folder = folder.map_err(|error| match Errno::try_from(error) {
        Ok(Errno::ELOOP | Errno::ENOTDIR) => "it is not a folder".to_string(),
        Ok(errno) => io::Error::from(errno).to_string(),
        Err(error) => error.to_string(),
    })?;
    let facts = folder.metadata().map_err(|error| error.to_string())?;
    is_own(facts.uid()).map_err(|why| format!("it {why}"))?;
    folder.set_permissions(Permissions::from_mode(files::DIR_MODE)).map_err(|error| error.to_string())?;
    Ok(folder)
}

fn own_file(folder: &File, day: &str) -> Result<File, String> {
    let name = name_of(day);
    let file = opened(folder, &name, OFlag::O_WRONLY | OFlag::O_APPEND | OFlag::O_CREAT)?;
    let closed = file.set_permissions(Permissions::from_mode(files::FILE_MODE));
    closed.map_err(|error| format!("{name} in it: {error}"))?;
    Ok(file)
}

/// A plain file of ours that has one name. Errors when it is anything else.
fn opened(folder: &File, name: &str, how: OFlag) -> Result<File, String> {
    let fail = |why: String| format!("{name} in it {why}");
    let opened = nix::fcntl::openat(folder, name, how | CAREFUL, Mode::S_IRUSR | Mode::S_IWUSR);
    let file = opened.map(File::from).map_err(|error| match error {
        // A link; a pipe that nobody reads; a folder.
        Errno::ELOOP | Errno::EMLINK | Errno::ENXIO | Errno::EISDIR => fail("is not a file".to_string()),
        error => fail(format!("can't be opened: {}", io::Error::from(error))),
    })?;
    let facts = file.metadata().map_err(|error| fail(format!("can't be looked at: {error}")))?;
    if !facts.is_file() {
        return Err(fail("is not a file".to_string()));
    }
    if facts.nlink() != 1 {
        return Err(fail("has another name elsewhere".to_string()));
    }
    is_own(facts.uid()).map_err(fail)?;
    Ok(file)
}

fn is_own(owner: u32) -> Result<(), String> {
    let user = nix::unistd::geteuid().as_raw();
    if owner == user { Ok(()) } else { Err(format!("belongs to user {owner} and not to you (user {user})")) }
}

fn names(folder: &File) -> nix::Result<Vec<String>> {
    let mut listing = Dir::openat(folder, ".", OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())?;
    let name = |entry: nix::Result<nix::dir::Entry>| entry.ok()?.file_name().to_str().ok().map(ToString::to_string);
    Ok(listing.iter().filter_map(name).collect())
}

/// The day of a clock in UTC: `2026-11-29`.
fn day_of(clock: &dyn Clock) -> String {
    let at = i64::try_from(clock.now().0).ok().and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
    at.unwrap_or_default().strftime("%Y-%m-%d").to_string()
}

fn name_of(day: &str) -> String {
    format!("{BEGIN}{day}{END}")
}

fn is_log(name: &str) -> bool {
    let day = name.strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(END));
    let is_digit = |(at, byte): (usize, u8)| if at == 4 || at == 7 { byte == b'-' } else { byte.is_ascii_digit() };
    day.is_some_and(|day| day.len() == 10 && day.bytes().enumerate().all(is_digit))
}
