//! Files that other programs run or obey by themselves: which of them are there, and which changed while a command ran.
//! The walk is bounded, watched and then nearest folders first, and follows no link but a watched one that stays inside.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::collections::VecDeque;
use std::fs::FileType;
use std::fs::Metadata;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::path::PathBuf;

use crate::domain::guide;
use crate::domain::limits;
use crate::domain::text::sha256_hex;
use crate::tools::Scene;
use crate::tools::gits;
use crate::tools::gits::Look;
use crate::tools::names;

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
    files: BTreeMap<PathBuf, String>,
    /// Folders that could not be read.
    unread: BTreeSet<PathBuf>,
    /// What was not looked at, nor anything below it.
    unseen: BTreeSet<PathBuf>,
    /// Folders of which not all was read.
    large: BTreeSet<PathBuf>,
    /// Whether git's configurations say more than was read.
    is_cut: bool,
    /// The outermost of them, files and folders.
    roots: Vec<PathBuf>,
}

/// An entry of a folder: its path, what it is, and why it is looked at.
struct Entry {
    path: PathBuf,
    below: PathBuf,
    kind: FileType,
    /// Kept and told.
    is_root: bool,
    /// Told only.
    is_told: bool,
}

impl Watched {
    /// Those that are there now.
    pub(crate) fn of(scene: &Scene) -> Watched {
        Watched::of_at_most(scene, limits::WATCHED_ENTRIES)
    }

    fn of_at_most(scene: &Scene, mut left: usize) -> Watched {
        let workspace = scene.workspace.as_path();
        let mut git = Look::of(scene);
        let mut found = Watched::default();
        let mut read = left.saturating_mul(READ_FOR_EACH);
        let mut led_to = BTreeSet::new();
        let mut folders = VecDeque::from([(workspace.to_path_buf(), false)]);
        // Folders of dependencies wait until all others are done.
        let mut last = VecDeque::new();
        found.note_named(workspace, git.named_around(workspace), &mut folders, &mut led_to);
        while let Some((folder, is_watched)) = folders.pop_front().or_else(|| last.pop_front()) {
            let entries = found.entries(workspace, &folder, is_watched, &mut read);
            // The repository around the workspace was looked at first.
            let is_repository = |entry: &Entry| [".git", "HEAD"].iter().any(|name| entry.path.ends_with(name));
            if folder != workspace && entries.iter().any(is_repository) {
                found.note_named(workspace, git.named_in(&folder), &mut folders, &mut led_to);
            }
            for Entry { path, below, kind, is_root, is_told } in entries {
                let is_watched = is_watched || is_root || is_told;
                if !kind.is_dir() && !is_watched {
                    continue;
                }
                if left == 0 {
                    found.unseen.insert(below);
                    continue;
                }
                left -= 1;
                if is_root && !kind.is_symlink() && found.roots.len() < limits::WATCHED_FILES {
                    found.roots.push(path.clone());
                }
                let is_dependency = DEPENDENCIES.iter().any(|name| path.ends_with(name));
                let further = if kind.is_dir() { Some(path) } else { found.note(workspace, &path, below) };
                match further {
                    // What a link leads to is gone through once.
                    Some(path) if kind.is_dir() || led_to.insert(path.clone()) => match is_watched {
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
        let all = match std::fs::read_dir(folder) {
            Ok(all) => all,
            Err(error) if error.kind() == ErrorKind::NotFound => return Vec::new(),
            Err(_) => {
                self.unread.insert(below(workspace, folder));
                return Vec::new();
            }
        };
        let entry = |path: PathBuf, kind: FileType| {
            let below = below(workspace, &path);
            let is_root = !is_watched && names::runs_unasked(&below).is_some();
            let is_told = told_names().any(|name| below.ends_with(name)) || (below.ends_with(".git") && !kind.is_dir());
            Entry { path, below, kind, is_root, is_told }
        };
        let mut entries = Vec::new();
        for one in all.flatten() {
            if here == 0 {
                self.large.insert(below(workspace, folder));
                let asked = asked_names().into_iter().map(|name| folder.join(name));
                let there = asked.filter_map(|path| Some((path.symlink_metadata().ok()?.file_type(), path)));
                let there: Vec<Entry> = there.map(|(kind, path)| entry(path, kind)).collect();
                entries.retain(|one: &Entry| !there.iter().any(|other| other.path == one.path));
                entries.extend(there);
                break;
            }
            here -= 1;
            *read = read.saturating_sub(1);
            if let Ok(kind) = one.file_type() {
                entries.push(entry(one.path(), kind));
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
        let seen = path.symlink_metadata().ok()?;
        let is_small = |seen: &Metadata| seen.is_file() && seen.len() <= limits::WATCHED_BYTES;
        let has_room = self.files.len() < limits::WATCHED_FILES;
        let content = |path: &Path| std::fs::read(path).ok().map(|bytes| sha256_hex(&bytes));
        let (mut further, mut known) = (None, None);
        if seen.is_symlink() {
            let leads_to = path.canonicalize().ok().filter(|target| target.starts_with(workspace));
            let target = leads_to.as_ref().and_then(|target| target.metadata().ok());
            let inner = match (&leads_to, &target) {
                (Some(path), Some(target)) if target.is_file() => {
                    let content = if has_room && is_small(target) { content(path) } else { None };
                    print(target, content)
                }
                (Some(_), Some(_) | None) | (None, Some(_) | None) => String::new(),
            };
            known = std::fs::read_link(path).ok().map(|text| format!("{text:?} {inner}"));
            further = leads_to.filter(|_| target.is_some_and(|target| target.is_dir()));
        } else if has_room && is_small(&seen) {
            known = content(path);
        }
        self.files.insert(below, print(&seen, known));
        further
    }

    /// The outermost of them, to be kept as they are; the folders of git come in one row.
    pub(crate) fn roots(&self) -> Vec<PathBuf> {
        let mut roots = self.roots.clone();
        roots.sort();
        roots
    }

    /// What is other than it was before, in words.
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
            (None, Some(_)) => is_seen(path, before).then_some((0, "new")),
            (Some(_), None) => is_seen(path, self).then_some((2, "gone")),
            (Some(was), Some(is)) if was != is => Some((1, "changed")),
            (Some(_), Some(_)) | (None, None) => None,
        };
        let mut told: Vec<_> = names.filter_map(|path| Some((word(path)?, names::shown(path.as_os_str())))).collect();
        told.sort_by_key(|((rank, _), _)| *rank);
        // First what may hide more.
        // Told once: a folder that is that large is so at every call.
        let is_all = |one: &Watched| one.unseen.is_empty() && one.large.is_empty();
        let is_cut = !is_all(self) && is_all(before);
        let is_cut = is_cut.then(|| "more entries than are looked at".to_string());
        let is_more = (self.is_cut && !before.is_cut).then(|| "more configuration of git than is read".to_string());
        let unread = self.unread.difference(&before.unread);
        let unread = unread.map(|path| format!("can't be read: {}", names::shown(path.as_os_str())));
        let mut all: Vec<String> = is_cut.into_iter().chain(is_more).chain(unread).collect();
        all.extend(told.into_iter().map(|((_, word), name)| format!("{name} ({word})")));
        let more = all.len().saturating_sub(limits::WATCHED_NAMED);
        all.truncate(limits::WATCHED_NAMED);
        if more > 0 {
            all.push(format!("{more} more"));
        }
        all
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

/// What makes a file the same. The moment of its last change can't be set by whoever changes it.
fn print(seen: &Metadata, content: Option<String>) -> String {
    let content = content.unwrap_or_else(|| format!("{} {}.{}", seen.ino(), seen.ctime(), seen.ctime_nsec()));
    format!("{:o} {} {content}", seen.mode(), seen.len())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::tools::stage::Stage;

    #[test]
    fn what_changed_is_named_at_any_depth() {
        let stage = Stage::new();
        let at = &stage.scene.workspace;
        for path in [".git/config", ".git/hooks/a", "deep/er/.git/hooks/b", "deep/.envrc", "src/main.rs", ".git/HEAD"] {
            stage.write(path, "1");
        }
        let before = Watched::of(&stage.scene);
        let below: Vec<String> =
            before.roots().iter().map(|path| path.strip_prefix(at).unwrap().display().to_string()).collect();
        assert_eq!(below, [".git/config", ".git/hooks", "deep/.envrc", "deep/er/.git/hooks"]);
        assert_eq!(Watched::of(&stage.scene).changes_since(&before), Vec::<String>::new());
        stage.write("src/main.rs", "2");
        stage.write(".git/HEAD", "2");
        stage.write(".git/config", "2");
        stage.write("new/.git/hooks/post-checkout", "2");
        std::fs::remove_file(at.join("deep/.envrc")).unwrap();
        assert_eq!(
            Watched::of(&stage.scene).changes_since(&before),
            ["new/.git/hooks/post-checkout (new)", ".git/config (changed)", "deep/.envrc (gone)"]
        );
        for number in 0..20 {
            stage.write(&format!(".husky/{number:02}"), "1");
        }
        let all = Watched::of(&stage.scene).changes_since(&before);
        assert_eq!((all.len(), all.last().map(String::as_str)), (11, Some("13 more")));
    }

    #[test]
    fn a_folder_that_is_too_large_hides_nothing_that_counts() {
        let stage = Stage::new();
        let at = &stage.scene.workspace;
        for number in 0..200 {
            stage.write(&format!("{number}"), "");
        }
        stage.write(".git/hooks/pre-commit", "1");
        let few = || Watched::of_at_most(&stage.scene, 20);
        let before = few();
        assert_eq!(before.roots(), [at.join(".git/hooks")]);
        assert!(before.large.contains(Path::new("")), "{before:?}");
        stage.write(".git/hooks/pre-commit", "2");
        stage.write(".envrc", "1");
        stage.write("more", "1");
        assert_eq!(few().changes_since(&before), [".envrc (new)", ".git/hooks/pre-commit (changed)"]);
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
            let few = || Watched::of_at_most(&stage.scene, 60);
            let before = few();
            assert!(before.large.contains(Path::new(folder)), "{before:?}");
            for name in &made {
                stage.write(&format!("{folder}/{name}"), "1");
            }
            let wanted = format!("{folder}/{} (new)", made.last().unwrap());
            assert_eq!(few().changes_since(&before), [wanted], "{folder}: {made:?}");
        }
    }

    /// One huge configuration for many repositories is not read for each of them.
    #[test]
    fn many_repositories_with_one_configuration_are_bounded() {
        let stage = Stage::new();
        stage.write("big/config", "# x\n".repeat(250_000));
        for number in 0..400 {
            stage.write(&format!("r/{number}/.git"), "gitdir: ../../big");
        }
        let began = std::time::Instant::now();
        let watched = Watched::of(&stage.scene);
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
        let few = || Watched::of_at_most(&stage.scene, 40);
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
        let (all, few) = (Watched::of(&stage.scene), Watched::of_at_most(&stage.scene, 4));
        assert_eq!((few.unseen.len(), all.unseen.len()), (1, 0), "{few:?}");
        assert_eq!(all.changes_since(&few), Vec::<String>::new());
        let cut = "more entries than are looked at";
        assert_eq!(few.changes_since(&all), [cut]);
        stage.write(".envrc", "1");
        assert_eq!(Watched::of_at_most(&stage.scene, 5).changes_since(&few), [".envrc (new)"]);
    }
}
