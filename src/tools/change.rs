//! The change of one file: shown as a diff, bound to what is there now, and made in one step or not at all
//! (docs/SAFETY.md, R16). What the file held is kept first, so that it can be put back. Used by `write_file`, `edit_file`
//! and `restore`; it never decides what the new content is.

use std::ffi::OsStr;
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use nix::errno::Errno;
use nix::fcntl::AtFlags;
use nix::fcntl::OFlag;
use nix::fcntl::openat;
use nix::fcntl::renameat;
use nix::sys::stat::FileStat;
use nix::sys::stat::Mode;
use nix::sys::stat::fchmod;
use nix::sys::stat::fstat;
use nix::sys::stat::mkdirat;
use nix::unistd::Gid;
use nix::unistd::Uid;
use nix::unistd::UnlinkatFlags;
use nix::unistd::fchown;
use nix::unistd::linkat;
use nix::unistd::unlinkat;

use crate::domain::limits;
use crate::domain::lookalike;
use crate::domain::text::counted;
use crate::domain::text::one_line;
use crate::domain::text::sha256_hex;
use crate::domain::tool::ErrorClass;
use crate::domain::tool::Facts;
use crate::domain::tool::FileWrite;
use crate::domain::tool::Grave;
use crate::domain::tool::OutcomeKind;
use crate::domain::tool::Problem;
use crate::domain::tool::ProblemKind;
use crate::tools::Executed;
use crate::tools::FileWork;
use crate::tools::OnCancel;
use crate::tools::Prepared;
use crate::tools::Scene;
use crate::tools::TITLE_MAX_CHARS;
use crate::tools::arguments::problem;
use crate::tools::diff;
use crate::tools::diff::Difference;
use crate::tools::gits;
use crate::tools::names;
use crate::tools::place;
use crate::tools::place::Kind;
use crate::tools::place::Place;
use crate::tools::preimage;
use crate::tools::read_file::text_of;
use crate::tools::read_file::too_large;

/// A file as it is before a change.
pub(crate) struct Before {
    /// Its content.
    pub(crate) bytes: Vec<u8>,
    stat: FileStat,
}

/// A change that can be made: everything it needs, bound to what was seen.
struct Plan {
    shown: String,
    name: OsString,
    /// The deepest folder on the way that exists, and which one it is.
    folder: PathBuf,
    folder_identity: String,
    /// Folders below it that are made first.
    missing: Vec<OsString>,
    before: Option<(String, Before)>,
    /// The folder in which the content before is kept.
    pre_images: Option<PathBuf>,
    /// The new content; nothing means that the file goes.
    after: Option<Vec<u8>>,
    after_hash: String,
    done: String,
}

/// The file at a place as it is now, or nothing. A folder, a file too large and one that can't be read are problems.
pub(crate) fn current(place: &Place) -> Result<Option<Before>, Problem> {
    match place.kind()? {
        Kind::Missing => return Ok(None),
        Kind::Folder => return Err(place::impossible(&place.shown, "is a folder")),
        Kind::File(size) if size > limits::FILE_MAX_BYTES => return Err(too_large(&place.shown, size)),
        Kind::File(_) => {}
    }
    match place::read_file(&place.path) {
        Ok((bytes, stat)) => Ok(Some(Before { bytes, stat })),
        Err(error) => Err(place::refused_by_system(&place.shown, error)),
    }
}

/// The change of the file at `place` to `after`. `done` is what the model is told when it is made.
pub(crate) fn prepare(
    scene: &Scene,
    place: &Place,
    before: Option<Before>,
    after: String,
    done: String,
) -> Result<Prepared, Problem> {
    let shown_change = Shown::of(place, before.as_ref().map(|before| before.bytes.as_slice()), &after);
    let plan = Plan::new(scene, place, before, Some(after.into_bytes()), done)?;
    let facts = facts(scene, place, &plan, shown_change);
    // How long it is follows from what the file holds. Elsewhere the toolbox says it.
    if facts.preview.len() > limits::PREVIEW_MAX_BYTES && !place.inside() {
        let why = "the change is too long for a person to read; make it in smaller steps";
        return Err(place::impossible(&place.shown, why));
    }
    let work = move |_: &_| make(&plan);
    Ok(Prepared { facts, action: FileWork::action(OnCancel::Wait, work) })
}

/// Puts what the file at `place` held earlier in the place of what it holds now, `before`; without `after`, removes the
/// file. In the same way and with the same care as a call; only what it is now is replaced.
pub(crate) fn put_back(scene: &Scene, place: &Place, before: Before, after: Option<Vec<u8>>) -> Executed {
    match Plan::new(scene, place, Some(before), after, String::new()) {
        Ok(plan) => make(&plan),
        Err(problem) => Executed::failed(problem.text, problem.class),
    }
}

fn refuse(scene: &Scene, place: &Place, before: Option<&Before>, after: &[u8]) -> Result<(), Problem> {
    if after.len() as u64 > limits::FILE_MAX_BYTES {
        let why = format!("it would have {} bytes, and at most {} are written", after.len(), limits::FILE_MAX_BYTES);
        return Err(place::impossible(&place.shown, &why));
    }
    let Some(before) = before else { return Ok(()) };
    if place::identity(&scene.program).is_some_and(|program| place::identity(&place.path) == Some(program)) {
        let text = "This is tiller's own program, and it is refused to every tool. Nothing was done.";
        return Err(problem(ProblemKind::Refused, text));
    }
    if before.bytes == after {
        return Err(place::impossible(&place.shown, "it has exactly this content already"));
    }
    if before.stat.st_mode & 0o222 == 0 {
        let problem = place::impossible(&place.shown, "is write-protected");
        return Err(problem.of_class(Some(ErrorClass::Permission)));
    }
    Ok(())
}

/// The deepest folder above a place that exists, and the names below it that do not.
fn split(place: &Place) -> Result<(PathBuf, Vec<OsString>), Problem> {
    let mut missing = Vec::new();
    for folder in place.path.ancestors().skip(1) {
        if folder.is_dir() {
            missing.reverse();
            return Ok((folder.to_path_buf(), missing));
        }
        missing.push(folder.file_name().unwrap_or_default().to_os_string());
    }
    Err(place::not_there(&place.shown, "no such folder"))
}

/// A change as people see it.
struct Shown {
    added: u32,
    removed: u32,
    diff: String,
}

impl Shown {
    fn of(place: &Place, before: Option<&[u8]>, after: &str) -> Shown {
        let (old, old_name, note) = match before.map(|bytes| (bytes, text_of(bytes))) {
            None => ("", "/dev/null", String::new()),
            Some((_, Some(text))) => (text, place.shown.as_str(), String::new()),
            Some((bytes, None)) => {
                let (size, hash) = (counted(bytes.len(), "byte"), sha256_hex(bytes));
                let are = if bytes.len() == 1 { "is" } else { "are" };
                let note = format!("replaces {size} that {are} not text (SHA-256 {hash}): {}\n", place.shown);
                ("", place.shown.as_str(), note)
            }
        };
        let Difference { added, removed, text } = diff::compare(old, after);
        let names = if text.is_empty() { String::new() } else { format!("--- {old_name}\n+++ {}\n", place.shown) };
        Shown { added, removed, diff: note + &names + &text }
    }
}

fn facts(scene: &Scene, place: &Place, plan: &Plan, change: Shown) -> Facts {
    let runs = place
        .named(names::runs_unasked)
        .or_else(|| place.named(names::in_repository))
        .or_else(|| place.named(names::guides))
        .or_else(|| gits::obeys(scene, &place.path));
    let mut reach = place.reach("writes");
    if let Some(why) = runs.or_else(|| place.named(names::runs_at_build)) {
        reach.push_str(&format!("; runs later: {why}"));
    }
    if let Some(other) = plan.lookalike() {
        reach.push_str(&format!("; its name looks like that of another file, {}", names::shown(&other)));
    }
    let links = plan.before.as_ref().map_or(1, |(_, before)| before.stat.st_nlink);
    if links > 1 {
        reach.push_str(&format!("; the file has {links} names, and only this one gets the new content"));
    }
    let mut preview = String::new();
    if !place.within {
        preview.push_str(&format!("file {}\n", place.text()));
    }
    // Which file comes first: there is no diff that says it, and the title has room for a part of a long path only.
    if plan.before.is_none() && plan.after.as_ref().is_some_and(Vec::is_empty) {
        preview.push_str(&format!("makes an empty file: {}\n", place.shown));
    }
    let mut folder = plan.folder.clone();
    for name in &plan.missing {
        folder.push(name);
        preview.push_str(&format!("makes folder {}\n", names::shown(folder.as_os_str())));
    }
    preview.push_str(&change.diff);
    let new = if plan.before.is_none() { " (new)" } else { "" };
    let before = plan.before.as_ref().map(|(hash, _)| hash.clone());
    let mode =
        plan.before.as_ref().map_or("new".to_string(), |(_, before)| format!("{:o}", before.stat.st_mode & 0o777));
    Facts {
        title: one_line(&format!("{}{new} +{} −{}", place.shown, change.added, change.removed), TITLE_MAX_CHARS),
        reach,
        inside: place.inside() && runs.is_none(),
        grave: place.grave().into_iter().chain(runs.map(|_| Grave::RunsLater)).collect(),
        preview,
        binding: vec![
            place.binding(),
            format!("folder={} {}", plan.folder.display(), plan.folder_identity),
            format!("content before={}", before.as_deref().unwrap_or("absent")),
            format!("content after={}", plan.after_hash),
            format!("mode={mode}"),
            format!("names={links}"),
        ],
        write: Some(FileWrite { path: place.text(), before, after: plan.after_hash.clone() }),
        ..Facts::default()
    }
}

const CHANGED: &str = "its content changed since it was decided";

/// Why a change was not made.
enum Stop {
    /// What is there is not what was seen.
    Drift(&'static str),
    /// The system refused.
    Error(&'static str, Errno),
}

fn failed(doing: &'static str) -> impl Fn(Errno) -> Stop {
    move |error| Stop::Error(doing, error)
}

fn make(plan: &Plan) -> Executed {
    match plan.make() {
        Ok(()) => Executed::ended(OutcomeKind::Done, plan.done.clone()),
        Err(Stop::Drift(what)) => Executed::Drifted(format!("{}: {what}. The file was not changed.", plan.shown)),
        Err(Stop::Error(doing, error)) => {
            let why = error.desc().to_lowercase();
            let text = format!("{}: {doing} failed: {why}. The file was not changed.", plan.shown);
            Executed::failed(text, place::class(error))
        }
    }
}

impl Plan {
    /// Another file of the folder whose name looks the same as that of a new one.
    fn lookalike(&self) -> Option<OsString> {
        let name = self.name.to_str().filter(|_| self.before.is_none() && self.missing.is_empty())?;
        let entries = std::fs::read_dir(&self.folder).ok()?.take(limits::NAMES_COMPARED).flatten();
        let mut names = entries.map(|entry| entry.file_name());
        names.find(|other| other.to_str().is_some_and(|other| lookalike::are_alike(name, other)))
    }

    fn new(
        scene: &Scene,
        place: &Place,
        before: Option<Before>,
        after: Option<Vec<u8>>,
        done: String,
    ) -> Result<Plan, Problem> {
        let content = after.as_deref().unwrap_or_default();
        if after.is_some() {
            refuse(scene, place, before.as_ref(), content)?;
        }
        let (folder, missing) = split(place)?;
        let opened = place::open_folder(&folder).and_then(fstat);
        let stat = opened.map_err(|error| place::refused_by_system(&place.shown, error))?;
        Ok(Plan {
            shown: place.shown.clone(),
            name: place.path.file_name().unwrap_or_default().to_os_string(),
            folder_identity: format!("{}:{}", stat.st_dev, stat.st_ino),
            folder,
            missing,
            before: before.map(|before| (sha256_hex(&before.bytes), before)),
            pre_images: scene.pre_images.clone(),
            after_hash: sha256_hex(content),
            after,
            done,
        })
    }

    fn make(&self) -> Result<(), Stop> {
        let folder = self.enter()?;
        self.keep()?;
        let Some(after) = &self.after else { return self.take_away(&folder) };
        // The name follows from the content, so that what a killed attempt left is found and removed by the next.
        let part = OsString::from(format!(".tiller-{}.part", &self.after_hash[..16]));
        let made = self.write_part(&folder, &part, after).and_then(|()| self.put(&folder, &part));
        if made.is_err() {
            let _ = unlinkat(&folder, part.as_os_str(), UnlinkatFlags::NoRemoveDir);
        }
        made?;
        // The change is visible from here on; that it is durable too is as much as the file system gives.
        let _ = sync_folder(&folder);
        Ok(())
    }

    /// Keeps what the file holds, durably: from then on it can be put back.
    fn keep(&self) -> Result<(), Stop> {
        let (Some((hash, before)), Some(folder)) = (&self.before, &self.pre_images) else { return Ok(()) };
        preimage::keep(folder, hash, &before.bytes).map_err(errno).map_err(failed("keeping what it held before"))
    }

    /// Removes the file, if it is still the one that was seen.
    fn take_away(&self, folder: &OwnedFd) -> Result<(), Stop> {
        self.still(folder)?;
        let gone = unlinkat(folder, self.name.as_os_str(), UnlinkatFlags::NoRemoveDir);
        gone.map_err(failed("removing it"))?;
        let _ = sync_folder(folder);
        Ok(())
    }

    /// Opens the folder of the file, without links, making the folders that are missing.
    fn enter(&self) -> Result<OwnedFd, Stop> {
        let mut folder = place::open_folder(&self.folder).map_err(|_| Stop::Drift("its folder changed"))?;
        let stat = fstat(&folder).map_err(failed("opening its folder"))?;
        if format!("{}:{}", stat.st_dev, stat.st_ino) != self.folder_identity {
            return Err(Stop::Drift("its folder is another one now"));
        }
        for name in &self.missing {
            match mkdirat(&folder, name.as_os_str(), Mode::from_bits_truncate(0o777)) {
                Ok(()) => {}
                Err(Errno::EEXIST) => return Err(Stop::Drift("a folder appeared that was not there")),
                Err(error) => return Err(Stop::Error("making a folder", error)),
            }
            let _ = sync_folder(&folder);
            folder = openat(&folder, name.as_os_str(), place::folder_flags(), Mode::empty())
                .map_err(|_| Stop::Drift("its folder changed"))?;
        }
        Ok(folder)
    }

    /// Writes the new content beside the file, with the file's owner and mode, and waits until it is on disk.
    fn write_part(&self, folder: &OwnedFd, part: &OsStr, after: &[u8]) -> Result<(), Stop> {
        let _ = unlinkat(folder, part, UnlinkatFlags::NoRemoveDir);
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let mode = if self.before.is_some() { 0o600 } else { 0o666 };
        let opened = openat(folder, part, flags, Mode::from_bits_truncate(mode)).map_err(failed("making a file"))?;
        let mut file = File::from(opened);
        file.write_all(after).map_err(errno).map_err(failed("writing"))?;
        if let Some((_, Before { stat: old, .. })) = &self.before {
            let new = fstat(&file).map_err(failed("writing"))?;
            if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid) {
                let (owner, group) = (Uid::from_raw(old.st_uid), Gid::from_raw(old.st_gid));
                fchown(&file, Some(owner), Some(group)).map_err(failed("keeping its owner"))?;
            }
            fchmod(&file, Mode::from_bits_truncate(old.st_mode & 0o777)).map_err(failed("keeping its mode"))?;
        }
        file.sync_all().map_err(errno).map_err(failed("writing"))
    }

    /// Whether what is there is what was seen.
    fn still(&self, folder: &OwnedFd) -> Result<(), Stop> {
        match hash_at(folder, self.name.as_os_str())?.as_deref() == self.before.as_ref().map(|(hash, _)| hash.as_str())
        {
            true => Ok(()),
            false => Err(Stop::Drift(CHANGED)),
        }
    }

    /// Exchanges the new content and the old, and looks at what it took out. Where somebody replaced the file after it was
    /// looked at last, theirs goes back, so that nothing is lost that was not seen.
    #[cfg(target_os = "linux")]
    fn exchange(&self, folder: &OwnedFd, part: &OsStr, before: &str) -> Result<(), Stop> {
        let name = self.name.as_os_str();
        let swap = || rustix::fs::renameat_with(folder, part, folder, name, rustix::fs::RenameFlags::EXCHANGE);
        match swap() {
            Ok(()) => {}
            // File systems that can't.
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS | rustix::io::Errno::OPNOTSUPP) => {
                return renameat(folder, part, folder, name).map_err(failed("replacing"));
            }
            Err(error) => return Err(Stop::Error("replacing", Errno::from_raw(error.raw_os_error()))),
        }
        let taken_out = || hash_at(folder, part).ok().flatten();
        if taken_out().as_deref() == Some(before) {
            let _ = unlinkat(folder, part, UnlinkatFlags::NoRemoveDir);
            return Ok(());
        }
        // What comes out now is ours, or something newer still, which then stays.
        let is_back = swap().is_ok() && (taken_out().as_deref() == Some(&self.after_hash) || swap().is_ok());
        Err(if is_back { Stop::Drift(CHANGED) } else { Stop::Error("putting back what was there", Errno::EIO) })
    }

    #[cfg(not(target_os = "linux"))]
    fn exchange(&self, folder: &OwnedFd, part: &OsStr, _: &str) -> Result<(), Stop> {
        renameat(folder, part, folder, self.name.as_os_str()).map_err(failed("replacing"))
    }

    /// Puts the new content in place, if the old one is still the one that was seen.
    fn put(&self, folder: &OwnedFd, part: &OsStr) -> Result<(), Stop> {
        let name = self.name.as_os_str();
        self.still(folder)?;
        if let Some((before, _)) = &self.before {
            return self.exchange(folder, part, before);
        }
        // A link is made only where nothing is: a file that appears in this moment is not lost.
        match linkat(folder, part, folder, name, AtFlags::empty()) {
            Ok(()) => {
                let _ = unlinkat(folder, part, UnlinkatFlags::NoRemoveDir);
                Ok(())
            }
            Err(Errno::EEXIST) => Err(Stop::Drift("a file appeared that was not there")),
            // File systems without hard links (FAT and some network shares).
            Err(Errno::EPERM | Errno::EOPNOTSUPP | Errno::ENOSYS) => {
                renameat(folder, part, folder, name).map_err(failed("replacing"))
            }
            Err(error) => Err(Stop::Error("putting it in place", error)),
        }
    }
}

/// The hash of a file; nothing where there is none.
fn hash_at(folder: &OwnedFd, name: &OsStr) -> Result<Option<String>, Stop> {
    match place::read_at(folder, name) {
        Ok((bytes, _)) => Ok(Some(sha256_hex(&bytes))),
        Err(Errno::ENOENT) => Ok(None),
        Err(_) => Err(Stop::Drift("it is no longer the file it was")),
    }
}

fn errno(error: std::io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
}

fn sync_folder(folder: &OwnedFd) -> Result<(), Errno> {
    place::to_list(folder).and_then(nix::unistd::fsync)
}
