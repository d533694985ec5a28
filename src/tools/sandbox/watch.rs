//! Files that other programs run or obey by themselves: which of them are there, and which changed while a command ran.
//! The walk is bounded, watched and then nearest folders first, and follows no link but a watched one that stays inside.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::path::PathBuf;

use nix::dir::Dir;
use nix::dir::Type;
use nix::errno::Errno;
use nix::fcntl::AtFlags;
use nix::fcntl::readlinkat;
use nix::sys::stat::FileStat;
use nix::sys::stat::SFlag;
use nix::sys::stat::fstatat;
use tokio_util::sync::CancellationToken;

use crate::domain::guide;
use crate::domain::limits;
use crate::domain::text::sha256_hex;
use crate::tools::Scene;
use crate::tools::gits;
use crate::tools::gits::Look;
use crate::tools::names;
use crate::tools::place;

/// Entries that are read for each one that is looked at: plain files cost little, and must not hide the others.
const READ_FOR_EACH: usize = 5;
/// Of a repository, changed by git itself in its work, so that they are told and not kept.
const WORK_OF_GIT: [&str; 2] = ["rebase-merge/git-rebase-todo", "rebase-apply"];
/// Files by which git finds its configuration, wherever they lie.
const LEADS: [&str; 2] = ["commondir", "config.worktree"];
/// What makes a folder a repository, whatever its name is; and what git runs and obeys of it.
const REPOSITORY: [&str; 3] = ["HEAD", "objects", "refs"];
const OBEYED: [&str; 2] = ["config", "hooks"];
/// Folders that are made of what others wrote, and are many: they are gone through last.
const DEPENDENCIES: [&str; 12] = [
    "node_modules",
    "target",
    "vendor",
    "third_party",
    ".venv",
    "venv",
    "site-packages",
    "dist",
    "build",
    ".gradle",
    ".tox",
    "__pycache__",
];

/// The watched files of a workspace at one moment, by their path below it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Watched {
    files: BTreeMap<PathBuf, Print>,
    /// Folders that could not be read.
    unread: BTreeSet<PathBuf>,
    /// What was not looked at, nor anything below it.
    unseen: BTreeSet<PathBuf>,
    /// Folders of which not all was read.
    large: BTreeSet<PathBuf>,
    /// Whether git's configurations say more than was read.
    is_cut: bool,
    /// Whether it was ended before all was looked at.
    is_ended: bool,
    /// The outermost of them, files and folders.
    roots: Vec<PathBuf>,
}

/// What makes a file the same.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Print {
    /// Its mode and size.
    shape: String,
    /// Which file it is, and the moment of its last change, which can't be set by whoever changes it.
    moment: String,
    /// What is in it, or where it leads, as far as that was read.
    content: Option<String>,
    /// What a link leads to.
    target: Option<Box<Print>>,
}

impl Print {
    fn of(seen: &FileStat, content: Option<String>) -> Print {
        let shape = format!("{:o} {}", seen.st_mode, seen.st_size);
        let moment = format!("{} {}.{}", seen.st_ino, seen.st_ctime, seen.st_ctime_nsec);
        Print { shape, moment, content, target: None }
    }

    /// Whether it is the same as it was. Of two contents of which one was not read, nothing is known but the moment.
    fn is_same(&self, was: &Print) -> bool {
        let is_content = match (&self.content, &was.content) {
            (Some(is), Some(was)) => is == was,
            (Some(_) | None, _) => self.moment == was.moment,
        };
        let is_target = match (&self.target, &was.target) {
            (Some(is), Some(was)) => is.is_same(was),
            (is, was) => is.is_none() && was.is_none(),
        };
        self.shape == was.shape && is_content && is_target
    }
}

/// An entry of a folder: its path, what it is, and why it is looked at.
struct Entry {
    path: PathBuf,
    below: PathBuf,
    kind: Type,
    /// Kept and told.
    is_root: bool,
    /// Told only.
    is_told: bool,
}

impl Watched {
    /// Those that are there now, as far as they are found before it is to `end`.
    pub(crate) fn of(scene: &Scene, end: &CancellationToken) -> Watched {
        Watched::of_at_most(scene, limits::WATCHED_ENTRIES, end)
    }

    fn of_at_most(scene: &Scene, mut left: usize, end: &CancellationToken) -> Watched {
        let workspace = scene.workspace.as_path();
        let mut git = Look::of(scene, end);
        let mut found = Watched::default();
        let mut read = left.saturating_mul(READ_FOR_EACH);
        let mut led_to = BTreeSet::new();
        let mut folders = VecDeque::from([(workspace.to_path_buf(), false)]);
        // Folders of dependencies wait until all others are done.
        let mut last = VecDeque::new();
        found.note_named(workspace, git.named_around(workspace), &mut folders, &mut led_to);
        while let Some((folder, is_watched)) = folders.pop_front().or_else(|| last.pop_front()) {
            if end.is_cancelled() {
                found.is_ended = true;
                found.unseen.insert(below(workspace, &folder));
                continue;
            }
            let entries = found.entries(workspace, &folder, is_watched, &mut read);
            // The repository around the workspace was looked at first.
            let is_repository = |entry: &Entry| [".git", "HEAD"].iter().any(|name| entry.path.ends_with(name));
            if folder != workspace && entries.iter().any(is_repository) {
                found.note_named(workspace, git.named_in(&folder), &mut folders, &mut led_to);
            }
            for Entry { path, below, kind, is_root, is_told } in entries {
                let is_watched = is_watched || is_root || is_told;
                let is_folder = kind == Type::Directory;
                if !is_folder && !is_watched {
                    continue;
                }
                if left == 0 {
                    found.unseen.insert(below);
                    continue;
                }
                left -= 1;
                if is_root && kind != Type::Symlink && found.roots.len() < limits::WATCHED_FILES {
                    found.roots.push(path.clone());
                }
                let is_dependency = DEPENDENCIES.iter().any(|name| path.ends_with(name));
                let further = if is_folder { Some(path) } else { found.note(workspace, &path, below) };
                match further {
                    // What a link leads to is gone through once.
                    Some(path) if is_folder || led_to.insert(path.clone()) => match is_watched {
                        true => folders.push_front((path, true)),
                        false if is_dependency => last.push_back((path, false)),
                        false => folders.push_back((path, false)),
                    },
                    Some(_) | None => {}
                }
            }
        }
        found.is_cut = git.is_cut;
        found
    }

    /// Notes what the configuration of git names, as far as it lies in the workspace; a folder once.
    fn note_named(
        &mut self,
        workspace: &Path,
        named: BTreeSet<PathBuf>,
        folders: &mut VecDeque<(PathBuf, bool)>,
        led_to: &mut BTreeSet<PathBuf>,
    ) {
        for path in named.into_iter().filter(|path| path.starts_with(workspace)) {
            match path.is_dir() {
                true if led_to.insert(path.clone()) => folders.push_front((path, true)),
                true => {}
                false if path.is_file() => {
                    self.note(workspace, &path, below(workspace, &path));
                }
                false => {}
            }
        }
    }

    /// What is in a folder, the watched first. What git stores is many, and is neither run nor obeyed. No folder takes more
    /// than half of what may still be `read`; of a larger one, what counts most is asked for by its name.
    fn entries(&mut self, workspace: &Path, folder: &Path, is_watched: bool, read: &mut usize) -> Vec<Entry> {
        let mut here = read.div_ceil(2);
        if here == 0 {
            self.unseen.insert(below(workspace, folder));
            return Vec::new();
        }
        let opened = place::open_folder(folder);
        let all = opened.as_ref().map_err(|error| *error).and_then(place::to_list).and_then(Dir::from_fd);
        let (opened, mut all) = match (opened, all) {
            (Ok(opened), Ok(all)) => (opened, all),
            (_, Err(Errno::ENOENT)) => return Vec::new(),
            (Ok(_) | Err(_), _) => {
                self.unread.insert(below(workspace, folder));
                return Vec::new();
            }
        };
        let kind_of = |name: &OsStr| seen(&opened, name).map(|seen| kind(&seen));
        let entry = |name: &OsStr, kind: Type| {
            let path = folder.join(name);
            let below = below(workspace, &path);
            let is_root = !is_watched && names::runs_unasked(&below).is_some();
            let is_told =
                told_names().any(|name| below.ends_with(name)) || (below.ends_with(".git") && kind != Type::Directory);
            Entry { path, below, kind, is_root, is_told }
        };
        let mut entries = Vec::new();
        for one in all.iter() {
            // It would be the same error for ever.
            let Ok(one) = one else {
                self.unread.insert(below(workspace, folder));
                break;
            };
            let name = OsStr::from_bytes(one.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            if here == 0 {
                self.large.insert(below(workspace, folder));
                let there = asked_names().into_iter().map(OsStr::new);
                let there: Vec<Entry> = there.filter_map(|name| Some(entry(name, kind_of(name)?))).collect();
                entries.retain(|one: &Entry| !there.iter().any(|other| other.path == one.path));
                entries.extend(there);
                break;
            }
            here -= 1;
            *read = read.saturating_sub(1);
            // Some file systems do not say it with the name.
            if let Some(kind) = one.file_type().or_else(|| kind_of(name)) {
                entries.push(entry(name, kind));
            }
        }
        let has = |name: &&str| entries.iter().any(|entry| entry.path.ends_with(name));
        if REPOSITORY.iter().all(has) {
            entries.retain(|entry| !entry.path.ends_with("objects"));
            for entry in &mut entries {
                entry.is_told |= OBEYED.iter().any(|name| entry.path.ends_with(name));
            }
        }
        entries.retain(|entry| !entry.below.ends_with(".git/objects"));
        entries.sort_by_key(|entry| !(entry.is_root || entry.is_told));
        entries
    }

    /// Notes a file. Where it is a link to a folder of the workspace, that is to be gone through as well.
    fn note(&mut self, workspace: &Path, path: &Path, below: PathBuf) -> Option<PathBuf> {
        let (folder, name) = opened(path)?;
        let stat = seen(&folder, name)?;
        let has_room = self.files.len() < limits::WATCHED_FILES;
        let known = |folder: &OwnedFd, name: &OsStr| if has_room { content(folder, name) } else { None };
        if kind(&stat) != Type::Symlink {
            self.files.insert(below, Print::of(&stat, known(&folder, name)));
            return None;
        }
        let leads_to = path.canonicalize().ok().filter(|target| target.starts_with(workspace));
        let target = leads_to.as_deref().and_then(opened);
        let target = target.and_then(|(folder, name)| Some((seen(&folder, name)?, folder, name)));
        let text = readlinkat(&folder, name).ok().map(|text| format!("{text:?}"));
        let file = target.as_ref().filter(|(stat, ..)| kind(stat) == Type::File);
        let inner = file.map(|(stat, folder, name)| Box::new(Print::of(stat, known(folder, name))));
        self.files.insert(below, Print { target: inner, ..Print::of(&stat, text) });
        let is_folder = target.is_some_and(|(stat, ..)| kind(&stat) == Type::Directory);
        leads_to.filter(|_| is_folder)
    }

    /// The outermost of them, to be kept as they are; the folders of git come in one row.
    pub(crate) fn roots(&self) -> Vec<PathBuf> {
        let mut roots = self.roots.clone();
        roots.sort();
        roots
    }

    /// What is other than it was before, in words: first what may hide more, then what was there before, then what is new,
    /// samples of hooks last. A list that is too long to be recorded ends with how many are missing.
    pub(crate) fn changes_since(&self, before: &Watched) -> Vec<String> {
        let names = before.files.keys().chain(self.files.keys().filter(|path| !before.files.contains_key(*path)));
        let is_asked = |folder: &Path, path: &Path| {
            let first = path.strip_prefix(folder).ok().and_then(|rest| rest.components().next());
            first.and_then(|first| first.as_os_str().to_str()).is_some_and(|first| asked_names().contains(first))
        };
        let is_seen = |path: &PathBuf, by: &Watched| {
            path.ancestors()
                .all(|above| !by.unseen.contains(above) && (!by.large.contains(above) || is_asked(above, path)))
        };
        let word = |path: &PathBuf| match (before.files.get(path), self.files.get(path)) {
            (None, Some(_)) => is_seen(path, before).then_some((2 + u8::from(is_sample(path)), "new")),
            (Some(_), None) => is_seen(path, self).then_some((1, "gone")),
            (Some(was), Some(is)) if !is.is_same(was) => Some((0, "changed")),
            (Some(_), Some(_)) | (None, None) => None,
        };
        let mut told: Vec<_> = names.filter_map(|path| Some((word(path)?, names::shown(path.as_os_str())))).collect();
        told.sort_by_key(|((rank, _), _)| *rank);
        // Told once: a folder that is that large is so at every call.
        let is_all = |one: &Watched| one.is_ended || (one.unseen.is_empty() && one.large.is_empty());
        let is_cut = !is_all(self) && is_all(before);
        let hidden = [
            (self.is_ended && !before.is_ended, "not all was looked at, it took too long or was cancelled"),
            (is_cut, "more entries than are looked at"),
            (self.is_cut && !before.is_cut, "more configuration of git than is read"),
        ];
        let hidden = hidden.into_iter().filter(|(is_so, _)| *is_so).map(|(_, text)| text.to_string());
        let unread = self.unread.difference(&before.unread);
        let unread = unread.map(|path| format!("can't be read: {}", names::shown(path.as_os_str())));
        let mut all: Vec<String> = hidden.chain(unread).collect();
        all.extend(told.into_iter().map(|((_, word), name)| format!("{name} ({word})")));
        let more = all.len().saturating_sub(limits::WATCHED_RECORDED);
        all.truncate(limits::WATCHED_RECORDED);
        if more > 0 {
            all.push(format!("{more} more"));
        }
        all
    }
}

/// Whether this is in a folder that is made of what others wrote, or is one.
pub(crate) fn is_of_others(workspace: &Path, folder: &Path) -> bool {
    below(workspace, folder).iter().any(|name| DEPENDENCIES.iter().any(|dependency| name == *dependency))
}

/// A hook that git brings along in each new repository and does not run.
fn is_sample(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "sample") && path.parent().is_some_and(|folder| folder.ends_with("hooks"))
}

/// The folder of a place, opened without following a link, and the name in it.
fn opened(path: &Path) -> Option<(OwnedFd, &OsStr)> {
    Some((place::open_folder(path.parent()?).ok()?, path.file_name()?))
}

/// What is there by this name, be it a link.
fn seen(folder: &OwnedFd, name: &OsStr) -> Option<FileStat> {
    fstatat(folder, name, AtFlags::AT_SYMLINK_NOFOLLOW).ok()
}

/// The hash of a file that is small enough; of nothing else, whatever came in its place meanwhile.
fn content(folder: &OwnedFd, name: &OsStr) -> Option<String> {
    place::read_at_most(folder, name, limits::WATCHED_BYTES).ok().map(|(bytes, _)| sha256_hex(&bytes))
}

/// Files and folders, links, and anything else.
fn kind(seen: &FileStat) -> Type {
    match SFlag::from_bits_truncate(seen.st_mode) & SFlag::S_IFMT {
        SFlag::S_IFDIR => Type::Directory,
        SFlag::S_IFLNK => Type::Symlink,
        SFlag::S_IFREG => Type::File,
        _ => Type::Fifo,
    }
}

/// Names that are told and not kept.
fn told_names() -> impl Iterator<Item = &'static str> {
    WORK_OF_GIT.into_iter().chain(LEADS).chain(guide::NAMES)
}

/// Names that are asked for in a folder that is too large to be read: they are watched, hold what is, or make the folder a
/// repository. The folder may itself be the first part of a watched name, or a `.git`.
fn asked_names() -> BTreeSet<&'static str> {
    names::parts_unasked()
        .chain(told_names().flat_map(|name| name.split('/')))
        .chain(REPOSITORY)
        .chain(gits::PARTS)
        .collect()
}

/// A path, from the workspace on.
fn below(workspace: &Path, path: &Path) -> PathBuf {
    path.strip_prefix(workspace).unwrap_or(path).to_path_buf()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::tools::stage::Stage;

    fn all_of(stage: &Stage) -> Watched {
        Watched::of(&stage.scene, &CancellationToken::new())
    }

    fn few_of(stage: &Stage, most: usize) -> Watched {
        Watched::of_at_most(&stage.scene, most, &CancellationToken::new())
    }

    #[test]
    fn what_changed_is_named_at_any_depth() {
        let stage = Stage::new();
        let at = &stage.scene.workspace;
        for path in [".git/config", ".git/hooks/a", "deep/er/.git/hooks/b", "deep/.envrc", "src/main.rs", ".git/HEAD"] {
            stage.write(path, "1");
        }
        let before = all_of(&stage);
        let below: Vec<String> =
            before.roots().iter().map(|path| path.strip_prefix(at).unwrap().display().to_string()).collect();
        assert_eq!(below, [".git/config", ".git/hooks", "deep/.envrc", "deep/er/.git/hooks"]);
        assert_eq!(all_of(&stage).changes_since(&before), Vec::<String>::new());
        stage.write("src/main.rs", "2");
        stage.write(".git/HEAD", "2");
        stage.write(".git/config", "2");
        stage.write("new/.git/hooks/post-checkout", "2");
        std::fs::remove_file(at.join("deep/.envrc")).unwrap();
        assert_eq!(
            all_of(&stage).changes_since(&before),
            [".git/config (changed)", "deep/.envrc (gone)", "new/.git/hooks/post-checkout (new)"]
        );
        for number in 0..1_002 {
            stage.write(&format!(".husky/{number:02}"), "1");
        }
        let all = all_of(&stage).changes_since(&before);
        assert_eq!((all.len(), all.last().map(String::as_str)), (1_001, Some("5 more")));
    }

    #[test]
    fn a_folder_that_is_too_large_hides_nothing_that_counts() {
        let stage = Stage::new();
        let at = &stage.scene.workspace;
        for number in 0..200 {
            stage.write(&format!("{number}"), "");
        }
        stage.write(".git/hooks/pre-commit", "1");
        let few = || few_of(&stage, 20);
        let before = few();
        assert_eq!(before.roots(), [at.join(".git/hooks")]);
        assert!(before.large.contains(Path::new("")), "{before:?}");
        stage.write(".git/hooks/pre-commit", "2");
        stage.write(".envrc", "1");
        stage.write("more", "1");
        assert_eq!(few().changes_since(&before), [".git/hooks/pre-commit (changed)", ".envrc (new)"]);
    }

    #[test]
    fn a_folder_that_is_too_large_hides_no_repository() {
        for (folder, made) in [
            ("b", vec!["HEAD", "refs/x", "objects/x", "config"]),
            ("b", vec!["HEAD", "refs/x", "objects/x", "hooks/update"]),
            ("b", vec!["commondir"]),
            ("b", vec!["config.worktree"]),
            ("b", vec!["rebase-merge/git-rebase-todo"]),
            ("b", vec!["rebase-apply/x"]),
            ("b", vec!["AGENTS.md"]),
            ("b", vec!["Jenkinsfile"]),
            (".git", vec!["hooks/pre-commit"]),
            (".git", vec!["config"]),
            (".git", vec!["worktrees/x/commondir"]),
            (".git", vec!["modules/x/config"]),
            (".github", vec!["workflows/x.yml"]),
            (".github", vec!["copilot-instructions.md"]),
            (".config", vec!["git/config"]),
        ] {
            let stage = Stage::new();
            for number in 0..600 {
                stage.write(&format!("{folder}/{number}"), "");
            }
            let few = || few_of(&stage, 60);
            let before = few();
            assert!(before.large.contains(Path::new(folder)), "{before:?}");
            for name in &made {
                stage.write(&format!("{folder}/{name}"), "1");
            }
            let wanted = format!("{folder}/{} (new)", made.last().unwrap());
            assert_eq!(few().changes_since(&before), [wanted], "{folder}: {made:?}");
        }
    }

    /// One huge configuration for many repositories is not read for each of them; of many, not all are.
    #[test]
    fn many_repositories_with_large_configurations_are_bounded() {
        let stage = Stage::new();
        for number in 0..6 {
            stage.write(&format!("big{number}/config"), "# x\n".repeat(250_000));
        }
        let repositories = |count: usize| {
            (0..400).for_each(|number| {
                stage.write(&format!("r/{number}/.git"), format!("gitdir: ../../big{}", number % count));
            });
        };
        let began = std::time::Instant::now();
        repositories(1);
        assert!(!all_of(&stage).is_cut);
        repositories(6);
        let watched = all_of(&stage);
        assert!(watched.is_cut && watched.changes_since(&watched).is_empty());
        assert!(began.elapsed() < std::time::Duration::from_secs(20), "{:?}", began.elapsed());
        let more = "more configuration of git than is read";
        assert_eq!(watched.changes_since(&Watched { is_cut: false, ..watched.clone() }), [more]);
    }

    #[test]
    fn dependencies_are_gone_through_last() {
        let stage = Stage::new();
        for number in 0..200 {
            stage.write(&format!("node_modules/{number}/x"), "");
        }
        stage.write("src/deep/er/main.rs", "");
        let few = || few_of(&stage, 40);
        let before = few();
        assert!(!before.unseen.is_empty());
        stage.write("src/deep/er/.vscode/tasks.json", "1");
        assert_eq!(few().changes_since(&before), ["src/deep/er/.vscode/tasks.json (new)"]);
    }

    #[test]
    fn what_lies_too_deep_is_neither_new_nor_gone() {
        let stage = Stage::new();
        stage.write("a/b/c/.envrc", "1");
        stage.write(".husky/x", "1");
        let (all, few) = (all_of(&stage), few_of(&stage, 4));
        assert_eq!((few.unseen.len(), all.unseen.len()), (1, 0), "{few:?}");
        assert_eq!(all.changes_since(&few), Vec::<String>::new());
        let cut = "more entries than are looked at";
        assert_eq!(few.changes_since(&all), [cut]);
        stage.write(".envrc", "1");
        assert_eq!(few_of(&stage, 5).changes_since(&few), [".envrc (new)"]);
    }

    /// What came in the place of a file since it was looked at is neither followed nor waited for.
    #[test]
    fn only_a_small_file_is_read() {
        let stage = Stage::new();
        let at = &stage.scene.workspace;
        stage.write("file", "1");
        stage.write("large", "x".repeat(300 * 1024));
        std::os::unix::fs::symlink("file", at.join("link")).unwrap();
        nix::unistd::mkfifo(&at.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let folder = place::open_folder(at).unwrap();
        for (name, wanted) in [("file", true), ("large", false), ("link", false), ("pipe", false), ("none", false)] {
            assert_eq!(content(&folder, OsStr::new(name)).is_some(), wanted, "{name}");
        }
        std::fs::create_dir(at.join("folder")).unwrap();
        std::os::unix::fs::symlink("folder", at.join("led")).unwrap();
        stage.write("folder/.envrc", "1");
        let mut found = Watched::default();
        assert!(found.entries(at, &at.join("led"), false, &mut 9).is_empty() && found.unread.len() == 1);
        assert_eq!(found.entries(at, &at.join("folder"), false, &mut 9).len(), 1);
        assert!(found.note(at, &at.join("led/.envrc"), "x".into()).is_none() && found.files.is_empty());
    }

    /// A workspace that takes too long: what was not looked at is unknown, and told to be so.
    #[test]
    fn what_was_not_looked_at_in_time_is_neither_new_nor_gone() {
        let stage = Stage::new();
        stage.write(".git/config", "[core]\nhooksPath = .h\n");
        stage.write(".envrc", "1");
        let end = CancellationToken::new();
        end.cancel();
        let (all, ended) = (all_of(&stage), Watched::of(&stage.scene, &end));
        assert!(ended.is_ended && ended.files.is_empty() && ended.unseen.contains(Path::new("")), "{ended:?}");
        assert_eq!(all.changes_since(&ended), Vec::<String>::new());
        let why = "not all was looked at, it took too long or was cancelled";
        assert_eq!(ended.changes_since(&all), [why, "more configuration of git than is read"]);
        assert_eq!(ended.changes_since(&ended), Vec::<String>::new());
    }
}
