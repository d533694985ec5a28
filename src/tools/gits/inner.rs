//! Whether what lies in a folder of git leads out of it. Git opens its own files whatever they are, and what it does not
//! understand in them it shows: so a link in the place of one of them shows what the link leads to.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::path::PathBuf;

use crate::domain::limits;
use crate::domain::text::one_line;
use crate::tools::names;
use crate::tools::place;

/// What is not gone through at the top: hooks do not run, and large files and submodules have a place of their own.
const PASSED_BY: [&str; 3] = ["hooks", "lfs", "modules"];
/// Where objects are, which are no text, in folders that begin their names; what lies beside these is gone through.
const OBJECTS: &str = "objects";
/// How long the names of such folders are.
const OBJECTS_BEGIN: usize = 2;
/// The file that says where the rest of a repository is, ...
const COMMON: &str = "commondir";
/// ... where those are that belong to further folders of work, ...
const WORKTREES: &str = "worktrees";
/// ... and what it says there: the folder of git itself.
const UP_TWICE: &[u8] = b"../..";
/// How much of a long path is said.
const SHOWN_CHARS: usize = 60;

/// Why not all that git may read in this folder of its own lies in it, if it does not. `left` names may be looked at.
pub(crate) fn leads_out(git: &Path, left: &mut usize) -> Option<String> {
    let mut folders = vec![git.to_path_buf()];
    while let Some(folder) = folders.pop() {
        match look(git, &folder, left) {
            Err(_) => return Some("what is in it can't be looked at".to_string()),
            Ok(Look::Fault(why)) => return Some(why),
            Ok(Look::Folders(inner)) => folders.extend(inner),
        }
    }
    None
}

/// What was found in one folder.
enum Look {
    Folders(Vec<PathBuf>),
    Fault(String),
}

fn look(git: &Path, folder: &Path, left: &mut usize) -> io::Result<Look> {
    let mut inner = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (name, kind, path) = (entry.file_name(), entry.file_type()?, entry.path());
        let Some(rest) = left.checked_sub(1) else {
            return Ok(Look::Fault(format!("it has more than {} names", limits::NAMES_BELOW)));
        };
        *left = rest;
        let below = path.strip_prefix(git).unwrap_or(&path);
        let is_passed_by = PASSED_BY.iter().any(|passed| below == Path::new(passed));
        let has_objects = below.parent() == Some(Path::new(OBJECTS)) && name.len() == OBJECTS_BEGIN;
        let shown = || one_line(&names::shown(below.as_os_str()), SHOWN_CHARS);
        if kind.is_symlink() && !is_passed_by {
            return Ok(Look::Fault(format!("its {} is a link", shown())));
        }
        // Objects are shared so by copies of a repository.
        if kind.is_file() && !below.starts_with(OBJECTS) && entry.metadata()?.nlink() > 1 {
            return Ok(Look::Fault(format!("its {} has another name, too", shown())));
        }
        if name == COMMON && !is_common(git, &path) {
            return Ok(Look::Fault(format!("its {} leads elsewhere", shown())));
        }
        if kind.is_dir() && !is_passed_by && !has_objects {
            inner.push(path);
        }
    }
    Ok(Look::Folders(inner))
}

/// Whether a file of that name is one that git asks for nothing (a branch may be called so), or says of a further folder
/// of work that all else lies in its repository.
fn is_common(git: &Path, path: &Path) -> bool {
    let folder = path.parent().unwrap_or(path);
    if folder.parent() == Some(&git.join(WORKTREES)) {
        return place::read_file(path).is_ok_and(|(bytes, _)| bytes.trim_ascii_end() == UP_TWICE);
    }
    folder != git
}
