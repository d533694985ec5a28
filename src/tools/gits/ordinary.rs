//! Whether a repository is an ordinary one, and what it makes git read, show or start that no line names: by its own
//! configuration, by links among the files of git, by its submodules. What is not known to be harmless counts. No git is
//! started for it.

use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::Component;
use std::path::Path;
use std::path::PathBuf;

use nix::errno::Errno;

use crate::domain::limits;
use crate::domain::line::Named;
use crate::domain::text::one_line;
use crate::tools::Scene;
use crate::tools::gits::harmless;
use crate::tools::gits::inner;
use crate::tools::gits::settings;
use crate::tools::gits::settings::Setting;
use crate::tools::names;
use crate::tools::place;
use crate::tools::place::Kind;
use crate::tools::place::Place;
use crate::tools::touches::GIT_FOLDER;
use crate::tools::tracked;

/// Where a repository says how its submodules are looked into, at its top.
const MODULES: &str = ".gitmodules";
/// Settings by which git works elsewhere than in the repository, or all of it reads otherwise than it is read here: what
/// else there is to know about it is not known. Of others, by their sections.
const LEADS_ELSEWHERE: [&str; 2] = ["core.worktree", "extensions.objectformat"];
const INCLUDES: [&str; 2] = ["include.", "includeif."];
/// What the file begins with that stands in the place of a folder of git.
const POINTER: &[u8] = b"gitdir: ";
/// How much of a long path is said.
const SHOWN_CHARS: usize = 60;

/// Whether a `.git` is a folder that holds all of a repository.
pub(crate) fn is_ordinary(git: &Path) -> bool {
    let is_folder = |path: &Path| fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
    let is_file = |path: &Path| fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
    is_folder(git)
        && is_folder(&git.join("objects"))
        && is_folder(&git.join("refs"))
        && is_file(&git.join("HEAD"))
        && is_file(&git.join("config"))
        && !git.join("commondir").exists()
        && !git.join("objects/info/alternates").exists()
}

/// What there is to know about the ordinary repository whose top this is. Where it may lead elsewhere, only that.
pub(crate) fn named(scene: &Scene, top: &Path) -> Vec<Named> {
    let git = top.join(GIT_FOLDER);
    let tracked = tracked::read(&git);
    let contents = tracked.secret.map_or(Named::Repository, Named::Tracked);
    match configured(scene, top) {
        Obeyed::Elsewhere(why) => vec![Named::Obeys(why)],
        Obeyed::More(why) => vec![Named::Obeys(why), contents],
        Obeyed::Harmless => {
            let mut left = limits::NAMES_BELOW;
            let out = inner::leads_out(&git, &mut left)
                .or_else(|| entered(top, tracked.submodules.as_deref()))
                .or_else(|| tracked.submodules?.iter().find_map(|path| submodule(top, path, &mut left)));
            let out = out
                .map(|why| Named::Obeys(format!("the repository may make git show more than the line names: {why}")));
            out.into_iter().chain([contents]).collect()
        }
    }
}

/// What the configuration of a repository makes of it.
enum Obeyed {
    Harmless,
    More(String),
    Elsewhere(String),
}

/// What the repository's own configuration makes of it: its usual file, and that of this folder of work alone.
fn configured(scene: &Scene, top: &Path) -> Obeyed {
    for name in ["config", "config.worktree"] {
        let shown = format!("{GIT_FOLDER}/{name}");
        let bytes = match place::read_file(&top.join(&shown)) {
            Ok((bytes, _)) => bytes,
            Err(Errno::ENOENT) if name != "config" => continue,
            Err(_) => return unread(&shown),
        };
        let Some(settings) = settings::read(&bytes) else { return unread(&shown) };
        let elsewhere = settings.iter().map(|setting| setting.key.as_str()).find(|key| leads_elsewhere(key));
        if let Some(key) = elsewhere {
            return Obeyed::Elsewhere(said(key, "may lead to more than the line names"));
        }
        if let Some(key) = harmless::fault(&settings, &|path| is_ordinary_file(scene, top, path)) {
            return Obeyed::More(said(key, "may show more than the line names"));
        }
    }
    Obeyed::Harmless
}

fn unread(shown: &str) -> Obeyed {
    Obeyed::Elsewhere(format!("the repository's own configuration, {shown}, can't be read whole, and may say anything"))
}

fn said(key: &str, what: &str) -> String {
    format!("the repository's own configuration says {}, which {what}", one_line(key, SHOWN_CHARS))
}

fn leads_elsewhere(key: &str) -> bool {
    LEADS_ELSEWHERE.contains(&key) || INCLUDES.iter().any(|section| key.starts_with(section))
}

/// Whether a value is the path of a file from the top that may be read unasked, without a link in it.
fn is_ordinary_file(scene: &Scene, top: &Path, path: &[u8]) -> bool {
    let is_plain = path.iter().all(|byte| byte.is_ascii_alphanumeric() || b"._-/".contains(byte));
    let path = top.join(OsStr::from_bytes(path));
    let found = path.to_str().filter(|_| is_plain).and_then(|path| Place::find(scene, path).ok());
    found.is_some_and(|place| {
        let is_there = place.within && place.path == path && place.path.starts_with(top);
        is_there && place.sensitive.is_none() && matches!(place.kind(), Ok(Kind::File(_) | Kind::Missing))
    })
}

/// Why git may look into submodules by their own configuration, if it may. Where the file is not there, git reads it from
/// what is tracked.
fn entered(top: &Path, submodules: Option<&[PathBuf]>) -> Option<String> {
    let bytes = match place::read_file(&top.join(MODULES)) {
        Ok((bytes, _)) => bytes,
        Err(Errno::ENOENT) => {
            let is_none = submodules.is_some_and(<[PathBuf]>::is_empty);
            return (!is_none).then(|| format!("it may have submodules, and there is no {MODULES}"));
        }
        Err(_) => return Some(format!("{MODULES} can't be read")),
    };
    match settings::read(&bytes) {
        None => Some(format!("{MODULES} can't be read whole")),
        Some(settings) => {
            let found = settings.iter().find(|setting| harmless::is_entered(setting));
            found.map(|Setting { key, .. }| format!("{MODULES} says {key}, by which it looks into submodules"))
        }
    }
}

/// Why what git reads of a submodule, its head and its branches, may lie elsewhere, if it may.
fn submodule(top: &Path, path: &Path, left: &mut usize) -> Option<String> {
    let shown = || one_line(&names::shown(path.as_os_str()), SHOWN_CHARS);
    let elsewhere = || Some(format!("the submodule {} leads elsewhere", shown()));
    let folder = top.join(path);
    let given = folder.join(GIT_FOLDER);
    if !path.components().all(|part| matches!(part, Component::Normal(_))) {
        return elsewhere();
    }
    // It was never fetched, or is no folder.
    let found = fs::symlink_metadata(&given).ok()?;
    let git = if found.is_dir() { Some(given.clone()) } else { pointed(&folder, &given) };
    let is_meant = |real: &Path| if found.is_dir() { real == given } else { real.starts_with(top.join(GIT_FOLDER)) };
    match git.map(|git| git.canonicalize()) {
        Some(Ok(real)) if is_meant(&real) => {
            inner::leads_out(&real, left).map(|why| format!("of the submodule {}, {why}", shown()))
        }
        // Git finds nothing there either.
        Some(Err(error)) if error.kind() == ErrorKind::NotFound => None,
        Some(Ok(_) | Err(_)) | None => elsewhere(),
    }
}

/// Where a file leads that stands in the place of a folder of git.
fn pointed(folder: &Path, file: &Path) -> Option<PathBuf> {
    let (bytes, _) = place::read_file(file).ok()?;
    let path = bytes.strip_prefix(POINTER)?.trim_ascii_end();
    Some(folder.join(OsStr::from_bytes(path)))
}
