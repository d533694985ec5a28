//! Where a path leads: links followed, compared with the workspace component by component, never as text
//! (docs/SAFETY.md, R23 to R25). Everything is opened again from the root without following any link, so what was
//! judged and what is opened are the same place or nothing. It judges places; it does not read or change files.

use std::fs;
use std::fs::File;
use std::io::ErrorKind;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::fs::MetadataExt;
use std::path::Component;
use std::path::Path;
use std::path::PathBuf;

use nix::errno::Errno;
#[cfg(target_os = "linux")]
use nix::fcntl::AT_FDCWD;
use nix::fcntl::OFlag;
#[cfg(target_os = "linux")]
use nix::fcntl::OpenHow;
#[cfg(target_os = "linux")]
use nix::fcntl::ResolveFlag;
use nix::fcntl::openat;
#[cfg(target_os = "linux")]
use nix::fcntl::openat2;
use nix::sys::stat::FileStat;
use nix::sys::stat::Mode;
use nix::sys::stat::SFlag;
use nix::sys::stat::fstat;

use crate::domain::limits;
use crate::domain::text::one_line;
use crate::domain::tool::ErrorClass;
use crate::domain::tool::Facts;
use crate::domain::tool::Grave;
use crate::domain::tool::Problem;
use crate::domain::tool::ProblemKind;
use crate::tools::Scene;
use crate::tools::arguments::problem;
use crate::tools::names;

/// Folders of the system that are not files: reading or writing there acts on the machine.
const SYSTEM: [&str; 3] = ["/proc", "/sys", "/dev"];

/// A place that a call may touch.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// Absolute, without links: where it really is. Always UTF-8.
    pub(crate) path: PathBuf,
    /// For people and models: relative where it lies in the workspace, else absolute.
    pub(crate) shown: String,
    /// Whether it lies in the workspace.
    pub(crate) within: bool,
    /// Why its name may hold a secret.
    pub(crate) sensitive: Option<&'static str>,
    /// The part of the real path, and of the given one, whose names count: what lies below the workspace, or all.
    counted: [PathBuf; 2],
}

/// What is at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nothing.
    Missing,
    /// A regular file of so many bytes.
    File(u64),
    /// A folder.
    Folder,
}

impl Place {
    /// Finds where `given` leads. Refused: system folders, tiller's own folders, devices, pipes and sockets.
    pub(crate) fn find(scene: &Scene, given: &str) -> Result<Place, Problem> {
        if given.is_empty() || given.len() > limits::PATH_MAX_BYTES || given.contains('\0') {
            let text = format!("A path has 1 to {} bytes and no NUL. Nothing was done.", limits::PATH_MAX_BYTES);
            return Err(problem(ProblemKind::InvalidArguments, text));
        }
        let given = scene.workspace.join(given);
        refuse_system(&given)?;
        let path = resolve(&given)?;
        refuse_system(&path)?;
        refuse_off_limits(scene, &path)?;
        if path.to_str().is_none() {
            return Err(problem(
                ProblemKind::Impossible,
                "The path leads to a name that is not UTF-8. Nothing was done.",
            ));
        }
        let below = path.strip_prefix(&scene.workspace).ok();
        let shown = match below {
            Some(rest) if rest.as_os_str().is_empty() => ".".to_string(),
            Some(rest) => names::shown(rest.as_os_str()),
            None => names::shown(path.as_os_str()),
        };
        let within = below.is_some();
        // A workspace below a folder with such a name is the operator's choice; names count from there on.
        let counted = [&path, &given].map(|path| path.strip_prefix(&scene.workspace).unwrap_or(path).to_path_buf());
        let sensitive = counted.iter().find_map(|path| names::sensitive(path));
        Ok(Place { shown, within, sensitive, counted, path })
    }

    /// What is there now. Refused: whatever is neither a file nor a folder.
    pub(crate) fn kind(&self) -> Result<Kind, Problem> {
        let found = match fs::symlink_metadata(&self.path) {
            Ok(found) => found,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Kind::Missing),
            Err(error) => return Err(impossible(&self.shown, &reason(&error)).of_class(code(&error))),
        };
        let kind = found.file_type();
        if kind.is_file() {
            return Ok(Kind::File(found.len()));
        }
        if kind.is_dir() {
            return Ok(Kind::Folder);
        }
        let what = match (kind.is_fifo(), kind.is_socket(), kind.is_symlink()) {
            (true, _, _) => "a pipe",
            (_, true, _) => "a socket",
            (_, _, true) => "a link that changed just now",
            (false, false, false) => "a device",
        };
        let text = format!("{} is {what}; only regular files and folders can be used. Nothing was done.", self.shown);
        Err(problem(ProblemKind::Refused, text))
    }

    /// Whether no question is needed for where it is and how it is called.
    pub(crate) fn inside(&self) -> bool {
        self.within && self.sensitive.is_none()
    }

    /// What is grave about a call that touches it.
    pub(crate) fn grave(&self) -> Vec<Grave> {
        self.named(names::key_material).map(|_| Grave::Keys).into_iter().collect()
    }

    /// What there is to know of a call that does `verb` (`reads`, `lists`) and no more; its title and preview are its own.
    pub(crate) fn facts(&self, verb: &str) -> Facts {
        Facts {
            reach: self.reach(verb),
            inside: self.inside(),
            grave: self.grave(),
            binding: vec![self.binding()],
            ..Facts::default()
        }
    }

    /// What a call that does `verb` (`reads`, `writes`) reaches, in words.
    pub(crate) fn reach(&self, verb: &str) -> String {
        let place = match self.within {
            true => format!("{verb} in the workspace"),
            false => format!("{verb} outside the workspace: {}", self.shown),
        };
        match self.sensitive {
            Some(reason) => format!("{place}; sensitive name ({reason}): {}", self.shown),
            None => place,
        }
    }

    /// Asks `table` about the real name and about the given one.
    pub(crate) fn named(&self, table: fn(&Path) -> Option<&'static str>) -> Option<&'static str> {
        self.counted.iter().find_map(|path| table(path))
    }

    /// Where it is, as a line of a binding.
    pub(crate) fn binding(&self) -> String {
        format!("path={}", self.text())
    }

    /// Where it is, as text.
    pub(crate) fn text(&self) -> String {
        self.path.to_string_lossy().into_owned()
    }
}

/// A sentence about a place that can't be used.
pub(crate) fn impossible(shown: &str, why: &str) -> Problem {
    problem(ProblemKind::Impossible, format!("{}: {why}. Nothing was done.", one_line(shown, 200)))
}

/// A sentence about something that is not there.
pub(crate) fn not_there(shown: &str, why: &str) -> Problem {
    impossible(shown, why).of_class(Some(ErrorClass::NotFound))
}

/// A sentence about a place that the system refuses.
pub(crate) fn refused_by_system(shown: &str, error: Errno) -> Problem {
    impossible(shown, &error.desc().to_lowercase()).of_class(class(error))
}

/// The class of an error of the system, by its code.
pub(crate) fn class(error: Errno) -> Option<ErrorClass> {
    match error {
        Errno::EACCES | Errno::EPERM | Errno::EROFS => Some(ErrorClass::Permission),
        Errno::ENOENT => Some(ErrorClass::NotFound),
        Errno::ENOSYS | Errno::ENOTSUP | Errno::ENOEXEC => Some(ErrorClass::Capability),
        _ => None,
    }
}

/// The code of an error of the system, where it has one.
pub(crate) fn code(error: &std::io::Error) -> Option<ErrorClass> {
    error.raw_os_error().and_then(|code| class(Errno::from_raw(code)))
}

/// The identity of what is at `path`, links followed.
pub(crate) fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

/// An error of the system in a few words, without paths.
pub(crate) fn reason(error: &std::io::Error) -> String {
    match error.raw_os_error() {
        Some(code) => Errno::from_raw(code).desc().to_lowercase(),
        None => one_line(&error.to_string(), 100),
    }
}

/// Opens a folder, given without links, and follows none on the way.
pub(crate) fn open_folder(path: &Path) -> Result<OwnedFd, Errno> {
    // One call for the whole path: of the deepest folders there may be thousands.
    #[cfg(target_os = "linux")]
    if path.is_absolute() && !path.components().any(|part| part == Component::ParentDir) {
        let how = OpenHow::new().flags(folder_flags()).resolve(ResolveFlag::RESOLVE_NO_SYMLINKS);
        match openat2(AT_FDCWD, path, how) {
            // A kernel, or a box, without it.
            Err(Errno::ENOSYS) => {}
            // A link is no folder.
            Err(Errno::ELOOP) => return Err(Errno::ENOTDIR),
            opened => return opened,
        }
    }
    let mut folder = nix::fcntl::open("/", folder_flags(), Mode::empty())?;
    for part in path.components() {
        folder = match part {
            Component::RootDir => continue,
            Component::Normal(name) => openat(&folder, name, folder_flags(), Mode::empty())?,
            Component::Prefix(_) | Component::CurDir | Component::ParentDir => return Err(Errno::EINVAL),
        };
    }
    Ok(folder)
}

/// An opened folder once more, so that its names can be listed.
pub(crate) fn to_list(folder: &OwnedFd) -> Result<OwnedFd, Errno> {
    openat(folder, ".", OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())
}

/// How folders are opened on the way: as places to go on from, which needs no right to list them where the system
/// can do that.
pub(crate) fn folder_flags() -> OFlag {
    #[cfg(target_os = "linux")]
    let as_a_place = OFlag::O_PATH;
    #[cfg(not(target_os = "linux"))]
    let as_a_place = OFlag::O_RDONLY;
    as_a_place | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC
}

/// Reads a regular file of at most `limits::FILE_MAX_BYTES`, by its name in an opened folder, never through a link.
/// `EFBIG` when it is larger, `EINVAL` when it is no regular file.
pub(crate) fn read_at(folder: impl AsFd, name: &std::ffi::OsStr) -> Result<(Vec<u8>, FileStat), Errno> {
    read_at_most(folder, name, limits::FILE_MAX_BYTES)
}

/// As `read_at`, with a bound of its own.
pub(crate) fn read_at_most(folder: impl AsFd, name: &std::ffi::OsStr, most: u64) -> Result<(Vec<u8>, FileStat), Errno> {
    // A pipe put in the place of the file must not make us wait, and a terminal must not become ours.
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
    let file = openat(folder, name, flags, Mode::empty())?;
    let stat = fstat(&file)?;
    if SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT != SFlag::S_IFREG {
        return Err(Errno::EINVAL);
    }
    if u64::try_from(stat.st_size).unwrap_or(u64::MAX) > most {
        return Err(Errno::EFBIG);
    }
    let mut bytes = Vec::new();
    let read = File::from(file).take(most + 1).read_to_end(&mut bytes);
    read.map_err(|error| error.raw_os_error().map_or(Errno::EIO, Errno::from_raw))?;
    match bytes.len() as u64 > most {
        true => Err(Errno::EFBIG),
        false => Ok((bytes, stat)),
    }
}

/// Reads a regular file by its path, given without links.
pub(crate) fn read_file(path: &Path) -> Result<(Vec<u8>, FileStat), Errno> {
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => read_at(open_folder(parent)?, name),
        (Some(_), None) | (None, _) => Err(Errno::EINVAL),
    }
}

/// Where `path` leads. What exists is resolved by the system; names below it that do not exist yet are kept.
fn resolve(path: &Path) -> Result<PathBuf, Problem> {
    let mut existing = path.to_path_buf();
    let mut missing = Vec::new();
    loop {
        let error = match fs::canonicalize(&existing) {
            Ok(found) => return Ok(missing.iter().rev().fold(found, |path, name| path.join(name))),
            Err(error) => error,
        };
        let shown = names::shown(existing.as_os_str());
        if error.kind() != ErrorKind::NotFound {
            return Err(impossible(&shown, &reason(&error)).of_class(code(&error)));
        }
        if fs::symlink_metadata(&existing).is_ok() {
            return Err(not_there(&shown, "the link leads to nothing"));
        }
        match (existing.file_name(), existing.parent()) {
            (Some(name), Some(parent)) => {
                missing.push(name.to_os_string());
                existing = parent.to_path_buf();
            }
            (None, _) | (_, None) => return Err(not_there(&shown, "no such folder")),
        }
    }
}

/// The folder of the system in which a path lies, if it does.
pub(crate) fn of_system(path: &Path) -> Option<&'static str> {
    SYSTEM.into_iter().find(|folder| path.starts_with(folder))
}

fn refuse_system(path: &Path) -> Result<(), Problem> {
    match of_system(path) {
        None => Ok(()),
        Some(folder) => {
            let text = format!("{folder} belongs to the system and is refused to every tool. Nothing was done.");
            Err(problem(ProblemKind::Refused, text))
        }
    }
}

/// The folders and files that no tool may touch: by their names, and by what they are, so that another name of the same
/// one does not help.
pub(crate) struct OffLimits(Vec<(PathBuf, Option<(u64, u64)>)>);

impl OffLimits {
    /// Where they are now.
    pub(crate) fn of(scene: &Scene) -> OffLimits {
        let real = scene.off_limits.iter().map(|place| resolve(place).unwrap_or_else(|_| place.clone()));
        OffLimits(real.map(|real| (real.clone(), identity(&real))).collect())
    }

    /// Whether one of them is just there.
    pub(crate) fn are_at(&self, path: &Path) -> bool {
        let found = identity(path);
        self.0.iter().any(|(real, same)| path == real || (same.is_some() && *same == found))
    }
}

fn refuse_off_limits(scene: &Scene, path: &Path) -> Result<(), Problem> {
    let off_limits = OffLimits::of(scene);
    match path.ancestors().any(|upper| off_limits.are_at(upper)) {
        false => Ok(()),
        true => {
            let text = "This path belongs to tiller itself and is refused to every tool. Nothing was done.";
            Err(problem(ProblemKind::Refused, text))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::tools::stage::Stage;
    use std::os::unix::fs::symlink;

    fn check(stage: &Stage, given: &str) -> String {
        match Place::find(&stage.scene, given).and_then(|place| place.kind().map(|kind| (place, kind))) {
            Ok((place, kind)) => format!("{} {kind:?} inside={}", stage.neutral(&place.shown), place.inside()),
            Err(problem) => format!("{:?} {}", problem.kind, stage.neutral(&problem.text)),
        }
    }

    #[test]
    fn places_are_judged_by_where_they_lead() {
        let stage = Stage::new();
        stage.write("src/a.rs", "abc");
        stage.write("../outside/b.txt", "12345");
        stage.write("../ws-evil/c.txt", "1");
        let (ws, root) = (&stage.scene.workspace, stage.root());
        symlink("src", ws.join("in")).unwrap();
        symlink(root.join("outside"), ws.join("out")).unwrap();
        symlink("nowhere", ws.join("dangling")).unwrap();
        symlink("round", ws.join("round")).unwrap();
        symlink("src/a.rs", ws.join(".env")).unwrap();
        let absolute = ws.join("src/a.rs").display().to_string();
        for (given, wanted) in [
            ("src/a.rs", "src/a.rs File(3) inside=true"),
            ("./src/../src/a.rs", "src/a.rs File(3) inside=true"),
            (absolute.as_str(), "src/a.rs File(3) inside=true"),
            (".", ". Folder inside=true"),
            ("in/a.rs", "src/a.rs File(3) inside=true"),
            ("new/deep/x", "new/deep/x Missing inside=true"),
            ("out/b.txt", "ROOT/outside/b.txt File(5) inside=false"),
            ("out/new", "ROOT/outside/new Missing inside=false"),
            ("../outside/b.txt", "ROOT/outside/b.txt File(5) inside=false"),
            ("../ws-evil/c.txt", "ROOT/ws-evil/c.txt File(1) inside=false"),
            ("out/../ws/src/a.rs", "src/a.rs File(3) inside=true"),
            (".env", "src/a.rs File(3) inside=false"),
            ("sub/.ssh/x", "sub/.ssh/x Missing inside=false"),
            ("dangling", "Impossible ROOT/ws/dangling: the link leads to nothing. Nothing was done."),
            ("missing/../src/a.rs", "Impossible ROOT/ws/missing/..: no such folder. Nothing was done."),
            ("src/a.rs/x", "Impossible ROOT/ws/src/a.rs/x: not a directory. Nothing was done."),
        ] {
            assert_eq!(check(&stage, given), wanted, "{given}");
        }
        assert!(check(&stage, "round").starts_with("Impossible ROOT/ws/round: too many symbolic links"));
    }

    #[test]
    fn what_is_no_file_is_refused() {
        let stage = Stage::new();
        let ws = &stage.scene.workspace;
        nix::unistd::mkfifo(&ws.join("pipe"), Mode::S_IRWXU).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(ws.join("socket")).unwrap();
        symlink("/dev/zero", ws.join("zero")).unwrap();
        symlink("/proc/self/environ", ws.join("environ")).unwrap();
        symlink(stage.root().join("state"), ws.join("state")).unwrap();
        fs::create_dir(stage.root().join("state")).unwrap();
        for given in [
            "pipe",
            "socket",
            "zero",
            "environ",
            "state",
            "state/x",
            "../state/new/deep",
            "/dev/null",
            "/proc/1/mem",
            "/proc/../proc/self",
            "/sys",
            "//dev//tty",
            "/dev/../dev/null",
        ] {
            assert!(check(&stage, given).starts_with("Refused"), "{given}: {}", check(&stage, given));
        }
        for given in ["", "a\0b", "x".repeat(limits::PATH_MAX_BYTES + 1).as_str()] {
            assert!(check(&stage, given).starts_with("InvalidArguments"), "{given:?}");
        }
        let long_name = "n".repeat(300);
        assert!(check(&stage, &long_name).contains("name too long"), "{}", check(&stage, &long_name));
    }

    #[test]
    fn no_link_is_followed_when_a_place_is_opened() {
        let stage = Stage::new();
        stage.write("real/a", "1");
        let ws = &stage.scene.workspace;
        symlink("real", ws.join("link")).unwrap();
        symlink("real/a", ws.join("a")).unwrap();
        nix::unistd::mkfifo(&ws.join("pipe"), Mode::S_IRWXU).unwrap();
        assert_eq!(read_file(&ws.join("real/a")).unwrap().0, b"1");
        assert_eq!(read_file(&ws.join("link/a")).unwrap_err(), Errno::ENOTDIR);
        assert_eq!(read_file(&ws.join("a")).unwrap_err(), Errno::ELOOP);
        assert_eq!(read_file(&ws.join("pipe")).unwrap_err(), Errno::EINVAL);
        assert_eq!(read_file(&ws.join("real")).unwrap_err(), Errno::EINVAL);
        assert_eq!(read_file(&ws.join("real/../real/a")).unwrap_err(), Errno::EINVAL);
    }
}
