//! Files that other programs run or obey by themselves: which of them are there, and which changed while a command ran.
//! The walk is bounded, nearest folders first, and follows no link.

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::path::PathBuf;

use crate::domain::limits;
use crate::domain::text::sha256_hex;
use crate::tools::names;

/// The watched files of a workspace at one moment, by their path below it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Watched {
    files: BTreeMap<PathBuf, String>,
    /// How many folders deep all was seen; below that, something may be there that was not.
    depth: usize,
    /// The outermost of them, files and folders.
    roots: Vec<PathBuf>,
}

impl Watched {
    /// Those that are there now.
    pub(crate) fn of(workspace: &Path) -> Watched {
        Watched::of_at_most(workspace, limits::WATCHED_ENTRIES)
    }

    fn of_at_most(workspace: &Path, mut left: usize) -> Watched {
        let mut found = Watched { depth: usize::MAX, ..Watched::default() };
        let mut folders = VecDeque::from([(workspace.to_path_buf(), false)]);
        while let Some((folder, is_watched)) = folders.pop_front() {
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                left = left.saturating_sub(1);
                if left == 0 {
                    found.depth = folder.components().count() - workspace.components().count();
                    return found;
                }
                let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
                let below = path.strip_prefix(workspace).unwrap_or(&path).to_path_buf();
                let is_root = !is_watched && names::runs_unasked(&below).is_some();
                if is_root && !kind.is_symlink() && found.roots.len() < limits::WATCHED_FILES {
                    found.roots.push(path.clone());
                }
                // What git stores is many, and is neither run nor obeyed.
                if kind.is_dir() && below.ends_with(".git/objects") {
                    continue;
                }
                if kind.is_dir() {
                    folders.push_back((path, is_watched || is_root));
                } else if is_watched || is_root {
                    found.note(&path, below);
                }
            }
        }
        found
    }

    fn note(&mut self, path: &Path, below: PathBuf) {
        let Ok(seen) = path.symlink_metadata() else { return };
        let is_small =
            seen.is_file() && seen.len() <= limits::WATCHED_BYTES && self.files.len() < limits::WATCHED_FILES;
        let content = if is_small { std::fs::read(path).ok().map(|bytes| sha256_hex(&bytes)) } else { None };
        self.files.insert(below, print(&seen, content));
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
        let is_seen = |path: &PathBuf, by: &Watched| path.components().count() <= by.depth;
        let word = |path: &PathBuf| match (before.files.get(path), self.files.get(path)) {
            (None, Some(_)) => is_seen(path, before).then_some("new"),
            (Some(_), None) => is_seen(path, self).then_some("gone"),
            (Some(was), Some(is)) if was != is => Some("changed"),
            (Some(_), Some(_)) | (None, None) => None,
        };
        let mut all: Vec<String> =
            names.filter_map(|path| Some(format!("{} ({})", names::shown(path.as_os_str()), word(path)?))).collect();
        let more = all.len().saturating_sub(limits::WATCHED_NAMED);
        all.truncate(limits::WATCHED_NAMED);
        if more > 0 {
            all.push(format!("{more} more"));
        }
        all
    }
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
        let before = Watched::of(at);
        let below: Vec<String> =
            before.roots().iter().map(|path| path.strip_prefix(at).unwrap().display().to_string()).collect();
        assert_eq!(below, [".git/config", ".git/hooks", "deep/.envrc", "deep/er/.git/hooks"]);
        assert_eq!(Watched::of(at).changes_since(&before), Vec::<String>::new());
        stage.write("src/main.rs", "2");
        stage.write(".git/HEAD", "2");
        stage.write(".git/config", "2");
        stage.write("new/.git/hooks/post-checkout", "2");
        std::fs::remove_file(at.join("deep/.envrc")).unwrap();
        assert_eq!(
            Watched::of(at).changes_since(&before),
            [".git/config (changed)", "deep/.envrc (gone)", "new/.git/hooks/post-checkout (new)"]
        );
        for number in 0..20 {
            stage.write(&format!(".husky/{number:02}"), "1");
        }
        let all = Watched::of(at).changes_since(&before);
        assert_eq!((all.len(), all.last().map(String::as_str)), (11, Some("13 more")));
    }

    #[test]
    fn what_lies_too_deep_is_neither_new_nor_gone() {
        let stage = Stage::new();
        let at = &stage.scene.workspace;
        stage.write("a/b/c/.envrc", "1");
        stage.write(".husky/x", "1");
        let (all, few) = (Watched::of(at), Watched::of_at_most(at, 4));
        assert_eq!((few.depth, all.depth), (1, usize::MAX), "{few:?}");
        assert_eq!(all.changes_since(&few), Vec::<String>::new());
        assert_eq!(few.changes_since(&all), Vec::<String>::new());
        stage.write(".envrc", "1");
        assert_eq!(Watched::of_at_most(at, 5).changes_since(&few), [".envrc (new)"]);
    }
}
