//! The walk of `list_dir` and `search_files`: what lies below a folder, in the order of the names. Every folder is opened
//! again from the root without following a link, and looked into as it was opened (docs/SAFETY.md, R25): one that is
//! exchanged for a link meanwhile leads nowhere. So are the files read that say what git ignores. No other file is
//! opened.

use std::ffi::OsStr;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::Gitignore;
use ignore::gitignore::GitignoreBuilder;
use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::AtFlags;
use nix::fcntl::readlinkat;
use nix::sys::stat::FileStat;
use nix::sys::stat::SFlag;
use nix::sys::stat::fstatat;

use crate::domain::limits;
use crate::domain::text::counted;
use crate::tools::Scene;
use crate::tools::place;
use crate::tools::place::OffLimits;

const GIT: &str = ".git";
const IGNORE_FILE: &str = ".gitignore";

/// What is done with names that `.gitignore` lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ignored {
    /// They are given like others.
    Listed,
    /// They are left out, and the inside of `.git` too.
    LeftOut,
}

/// What a walk came by.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// Where it is.
    pub(crate) path: PathBuf,
    /// What it is.
    pub(crate) what: What,
    /// How far below the root of the walk; the root is 0.
    depth: usize,
    rules: Option<Arc<Rules>>,
}

/// What something is; of a link, itself and not where it leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// A folder.
    Folder,
    /// A regular file of so many bytes.
    File(u64),
    /// A link, with what it says where that can be read.
    Link(Option<OsString>),
    /// A pipe, a socket, a device, or what may not be looked at.
    Other,
}

/// What the ignore files say, from the nearest folder up to the top of a repository.
#[derive(Debug)]
struct Rules {
    own: Gitignore,
    above: Option<Arc<Rules>>,
}

impl Rules {
    fn leave_out(&self, path: &Path, is_folder: bool) -> bool {
        match self.own.matched(path, is_folder) {
            Match::None => self.above.as_ref().is_some_and(|above| above.leave_out(path, is_folder)),
            found => found.is_ignore(),
        }
    }
}

/// An ignore file that is not obeyed: a link would tell where it leads, a pipe would never end.
struct Unsound;

/// A walk. Its items are what it comes by, the root first, and errors of folders that can't be looked into. What belongs
/// to tiller is left out, and folders of the system are given but not walked into.
pub(crate) struct Walk {
    ignored: Ignored,
    /// Whether ignore files are obeyed: not where one at the root or above it is unsound.
    obeys: bool,
    levels: usize,
    off_limits: OffLimits,
    /// Bytes that all ignore files may still have.
    room: u64,
    left_out: usize,
    /// What comes next, the last first.
    pending: Vec<Entry>,
    /// A folder that was given, and is looked into next.
    given: Option<Entry>,
}

impl Walk {
    /// A walk from `root`, given without links, down to so many levels below it.
    pub(crate) fn new(scene: &Scene, root: &Path, what: What, ignored: Ignored, levels: usize) -> Walk {
        let mut walk = Walk {
            ignored,
            obeys: ignored == Ignored::LeftOut,
            levels,
            off_limits: OffLimits::of(scene),
            room: limits::IGNORE_FILES_MAX_BYTES,
            left_out: 0,
            pending: Vec::new(),
            given: None,
        };
        let rules = walk.rules_above(root);
        walk.pending.push(Entry { path: root.to_path_buf(), what, depth: 0, rules });
        walk
    }

    /// What ignore files that are not obeyed did to the walk, where there were some.
    pub(crate) fn told(&self) -> Option<String> {
        if self.ignored == Ignored::LeftOut && !self.obeys {
            return Some("[no .gitignore is obeyed: one here or above is no plain file or too large]".to_string());
        }
        let folders = counted(self.left_out, "folder");
        (self.left_out > 0).then(|| format!("[{folders} left out, where .gitignore is no plain file or too large]"))
    }

    /// What the ignore files above the root say, from the top of its repository down.
    fn rules_above(&mut self, root: &Path) -> Option<Arc<Rules>> {
        let is_top = |folder: &Path| folder.join(GIT).symlink_metadata().is_ok();
        if !self.obeys || is_top(root) {
            return None;
        }
        let mut above: Vec<&Path> = Vec::new();
        for folder in root.ancestors().skip(1) {
            above.push(folder);
            if is_top(folder) {
                break;
            }
        }
        let mut rules = None;
        for folder in above.into_iter().rev() {
            let Ok(opened) = place::open_folder(folder) else { continue };
            match self.rules(&opened, folder, rules) {
                Ok(found) => rules = found,
                Err(Unsound) => {
                    self.obeys = false;
                    return None;
                }
            }
        }
        rules
    }

    /// What holds in a folder: what its own ignore file says, before what holds above.
    fn rules(
        &mut self,
        opened: &OwnedFd,
        folder: &Path,
        above: Option<Arc<Rules>>,
    ) -> Result<Option<Arc<Rules>>, Unsound> {
        let bytes = match place::read_at_most(opened, OsStr::new(IGNORE_FILE), limits::IGNORE_FILE_MAX_BYTES) {
            Ok((bytes, _)) => bytes,
            Err(Errno::ENOENT | Errno::EACCES) => return Ok(above),
            Err(_) => return Err(Unsound),
        };
        self.room = self.room.checked_sub(bytes.len() as u64).ok_or(Unsound)?;
        let mut builder = GitignoreBuilder::new(folder);
        for line in String::from_utf8_lossy(&bytes).trim_start_matches('\u{feff}').lines() {
            // A line that is no pattern says nothing, as for git.
            let _ = builder.add_line(None, line);
        }
        let own = builder.build().map_err(|_| Unsound)?;
        Ok(if own.is_empty() { above } else { Some(Arc::new(Rules { own, above })) })
    }

    /// Looks into a folder and puts what is in it before what comes next.
    fn enter(&mut self, folder: &Entry) -> Result<(), Errno> {
        let opened = place::open_folder(&folder.path)?;
        let mut names = names(&opened)?;
        let is_top = folder.depth > 0 && names.iter().any(|name| name == GIT);
        let mut rules = folder.rules.clone().filter(|_| !is_top);
        if self.obeys {
            match self.rules(&opened, &folder.path, rules.clone()) {
                Ok(found) => rules = found,
                Err(Unsound) if folder.depth == 0 => self.obeys = false,
                Err(Unsound) => {
                    self.left_out += 1;
                    return Ok(());
                }
            }
        }
        names.sort_unstable_by(|one, other| other.cmp(one));
        for name in names {
            let what = match fstatat(&opened, name.as_os_str(), AtFlags::AT_SYMLINK_NOFOLLOW) {
                Ok(stat) => what(&opened, &name, &stat),
                // Gone meanwhile.
                Err(Errno::ENOENT) => continue,
                Err(_) => What::Other,
            };
            let entry = Entry { path: folder.path.join(&name), what, depth: folder.depth + 1, rules: rules.clone() };
            if self.is_given(&entry, &name) {
                self.pending.push(entry);
            }
        }
        Ok(())
    }

    fn is_given(&self, entry: &Entry, name: &OsStr) -> bool {
        let is_folder = entry.what == What::Folder;
        let in_git = self.ignored == Ignored::LeftOut && is_folder && name == GIT;
        let rules = entry.rules.as_ref().filter(|_| self.obeys);
        let is_ignored = rules.is_some_and(|rules| rules.leave_out(&entry.path, is_folder));
        !in_git && !is_ignored && !self.off_limits.are_at(&entry.path)
    }
}

impl Iterator for Walk {
    type Item = Result<Entry, Errno>;

    fn next(&mut self) -> Option<Result<Entry, Errno>> {
        if let Some(folder) = self.given.take()
            && let Err(error) = self.enter(&folder)
        {
            return Some(Err(error));
        }
        let entry = self.pending.pop()?;
        let is_entered =
            entry.what == What::Folder && entry.depth < self.levels && place::of_system(&entry.path).is_none();
        self.given = is_entered.then(|| entry.clone());
        Some(Ok(entry))
    }
}

/// The names in an opened folder.
fn names(folder: &OwnedFd) -> Result<Vec<OsString>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::from_fd(place::to_list(folder)?)?.iter() {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name != "." && name != ".." {
            names.push(name.to_os_string());
        }
    }
    Ok(names)
}

fn what(folder: &OwnedFd, name: &OsStr, stat: &FileStat) -> What {
    match SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT {
        SFlag::S_IFDIR => What::Folder,
        SFlag::S_IFREG => What::File(u64::try_from(stat.st_size).unwrap_or(0)),
        SFlag::S_IFLNK => What::Link(readlinkat(folder, name).ok()),
        _ => What::Other,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::tools::stage::Stage;

    fn check(stage: &Stage, root: &str, ignored: Ignored, levels: usize, wanted: &str) {
        let root = stage.scene.workspace.join(root).canonicalize().unwrap();
        let walk = Walk::new(&stage.scene, &root, What::Folder, ignored, levels);
        let names: Vec<String> = walk
            .skip(1)
            .map(|entry| entry.unwrap().path.strip_prefix(&root).unwrap().display().to_string())
            .filter(|name| !name.contains(".git"))
            .collect();
        assert_eq!(names.join(" "), wanted, "{}", root.display());
    }

    /// The nearest file that says something of a name is right, and none beyond the top of a repository counts.
    #[test]
    fn what_is_ignored_is_told_as_git_tells_it() {
        let stage = Stage::new();
        stage.write(".gitignore", "\u{feff}*.log\n/only\nbuild/\n[broken\n");
        stage.write("a/.gitignore", "!keep.log\n# only\n");
        for name in ["only", "x.log", "build/y", "a/keep.log", "a/x.log", "a/only", "a/b/keep.log", "a/b/build"] {
            stage.write(name, "");
        }
        stage.write("own/.git/HEAD", "");
        stage.write("own/x.log", "");
        let left_out = "a a/b a/b/build a/b/keep.log a/keep.log a/only own own/x.log";
        check(&stage, ".", Ignored::LeftOut, usize::MAX, left_out);
        check(&stage, "a", Ignored::LeftOut, usize::MAX, "b b/build b/keep.log keep.log only");
        check(&stage, "own", Ignored::LeftOut, usize::MAX, "x.log");
        check(&stage, ".", Ignored::Listed, 1, "a build only own x.log");
        check(&stage, "a", Ignored::Listed, 2, "b b/build b/keep.log keep.log only x.log");
    }
}
