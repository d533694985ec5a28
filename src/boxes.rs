//! The boxes of this machine: what was found out about them, kept until something that it depends on changes, and what
//! the operator wants of them. A level is never lowered in silence: what holds, and what would help, can be told.

use std::path::Path;
use std::path::PathBuf;

use serde::Deserialize;
use serde::Serialize;

use crate::config::Settings;
use crate::domain::sandbox::Level;
use crate::headless::exit::Obstacle;
use crate::store::files;
use crate::tools::sandbox;
use crate::tools::sandbox::Maker;
use crate::tools::sandbox::Sandbox;
use crate::tools::sandbox::probe;
use crate::tools::sandbox::probe::Found;
use crate::tools::sandbox::seatbelt;

/// Where what was found is kept, in the state directory.
const KEPT: &str = "sandbox.json";
/// What is read of it at most, in bytes.
const KEPT_MAX_BYTES: u64 = 64 * 1024;
/// What is said to root.
pub const ROOT: &str = "you are root: several protections do not bind root; a user of their own is safer";

#[derive(Serialize, Deserialize)]
struct Kept {
    identity: String,
    found: Found,
}

/// What is known of the boxes of this machine; tried where it is not known yet.
pub fn found(state: &Path, program: &Path) -> Found {
    let identity = probe::identity(program);
    let path = state.join(KEPT);
    let kept = files::read(&path, KEPT_MAX_BYTES).ok().and_then(|bytes| serde_json::from_slice::<Kept>(&bytes).ok());
    if let Some(kept) = kept.filter(|kept| kept.identity == identity) {
        return kept.found;
    }
    let found = probe::examine(program, Maker::find(), seatbelt::find());
    let kept = Kept { identity, found: found.clone() };
    let written =
        serde_json::to_vec(&kept).map_err(std::io::Error::other).and_then(|text| files::replace(&path, &text));
    if let Err(error) = written {
        tracing::warn!(%error, "what was found out about boxes can't be kept; it is found out again each time");
    }
    found
}

/// The boxes of a scene, as the operator wants them. Errors with a sentence when a folder of theirs would open too much.
pub fn sandbox(settings: &Settings, state: &Path, program: &Path, off_limits: &[PathBuf]) -> anyhow::Result<Sandbox> {
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    let all = |written: &[String]| -> anyhow::Result<Vec<PathBuf>> {
        let one = |text: &String| {
            sandbox::folder(text, home.as_deref(), off_limits)
                .map_err(|why| Obstacle::Stopped(format!("{why}; nothing was started; correct [sandbox]")).into())
        };
        written.iter().map(one).collect()
    };
    let (readable, writable) = settings.opened_folders();
    let (readable, writable) = (all(readable)?, all(writable)?);
    if !settings.has_sandbox() {
        return Ok(Sandbox::default());
    }
    let Found { level, maker, half, .. } = found(state, program);
    Ok(Sandbox { level, maker, half, readable, writable, home })
}

/// What the operator is told when a run is opened: that less holds than could, or that it holds less of them.
pub fn notice(settings: &Settings, level: Level) -> Option<String> {
    if !settings.has_sandbox() {
        return None;
    }
    let is_root = nix::unistd::Uid::effective().is_root();
    match (level, is_root) {
        (Level::Full, false) => None,
        (Level::Full, true) => Some(format!("sandbox full; {ROOT}")),
        (Level::Partial | Level::None, _) => {
            let root = if is_root { format!("; {ROOT}") } else { String::new() };
            Some(format!("sandbox {level}: `tiller doctor` says what is missing{root}"))
        }
    }
}

/// Folders below the home in which the operator's own tools lie, and what these need besides.
const TOOLS: [(&str, &[&str]); 10] = [
    (".cargo", &[".rustup"]),
    (".nvm", &[]),
    (".volta", &[]),
    (".bun", &[]),
    (".deno", &[]),
    (".pyenv", &[]),
    (".rbenv", &[]),
    (".sdkman", &[]),
    (".asdf", &[]),
    ("go", &[]),
];

/// How the operator's own tools would be found in the box, where the search path leads to some that are not in it.
pub fn advice(settings: &Settings, level: Level, config: &Path) -> Option<String> {
    if level == Level::None {
        return None;
    }
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute())?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let (readable, writable) = settings.opened_folders();
    let outside = outside(&home, &folders, &[readable, writable].concat());
    if outside.is_empty() {
        return None;
    }
    let all: Vec<String> = readable.iter().chain(&outside).map(|folder| format!("{folder:?}")).collect();
    let (all, config) = (all.join(", "), config.display());
    Some(format!("{} not in the box; to change that, write in {config}: sandbox.readable = [{all}]", are(&outside)))
}

fn are(folders: &[String]) -> String {
    format!("{} {}", folders.join(", "), if folders.len() == 1 { "is" } else { "are" })
}

/// Folders of tools below this home to which a search path leads, but for those that are opened, as one writes them.
fn outside(home: &Path, path: &[PathBuf], opened: &[String]) -> Vec<String> {
    let is_used = |name: &str| path.iter().any(|folder| folder.starts_with(home.join(name)));
    let used = TOOLS.iter().filter(|(name, _)| is_used(name));
    let all = used.flat_map(|(name, more)| [name].into_iter().chain(*more)).filter(|name| home.join(name).is_dir());
    let is_opened = |name: &&&str| {
        let real = home.join(name);
        let written =
            |folder: &String| folder.strip_prefix("~/").map_or(PathBuf::from(folder), |below| home.join(below));
        opened.iter().any(|folder| real.starts_with(written(folder)))
    };
    all.filter(|name| !is_opened(name)).map(|name| format!("~/{name}")).collect()
}

/// What holds here and what would help, in one text.
pub fn told(settings: &Settings, state: &Path, program: &Path) -> (Level, String) {
    let root = if nix::unistd::Uid::effective().is_root() { format!("; {ROOT}") } else { String::new() };
    if !settings.has_sandbox() {
        let text = "none, as you want it (sandbox.use): a command that you allow has your full rights";
        return (Level::None, format!("{text}{root}"));
    }
    let Found { level, half, lacks, .. } = found(state, program);
    let holds = match level {
        Level::Partial if half.is_some() => {
            "partial, by sandbox-exec: commands write in the workspace only and have no network, but they are not counted, \
             and the vendor of this system calls what holds them deprecated"
        }
        Level::Full => "full: commands see the workspace and the system's programs, no other process, and no network",
        Level::Partial => {
            "partial: commands write in the workspace only and have no network, but they see other processes, are not \
             counted, and can change the rights, owner and times of your files elsewhere"
        }
        Level::None => "none: a command that you allow has your full rights",
    };
    let lacks: String = lacks.iter().map(|lack| format!("; {lack}")).collect();
    (level, format!("{holds}{lacks}{root}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn tools_that_the_box_does_not_have_are_named() {
        let home = tempfile::tempdir().unwrap();
        for name in [".cargo/bin", ".rustup", ".nvm", "go/bin"] {
            std::fs::create_dir_all(home.path().join(name)).unwrap();
        }
        let check = |path: &[&str], opened: &[&str], wanted: &[&str]| {
            let path: Vec<PathBuf> = path.iter().map(|one| home.path().join(one)).collect();
            let opened: Vec<String> = opened.iter().map(ToString::to_string).collect();
            assert_eq!(outside(home.path(), &path, &opened), wanted);
        };
        check(&["/usr/bin", ".cargo/bin"], &[], &["~/.cargo", "~/.rustup"]);
        check(&["/usr/bin", ".cargo/bin", "go/bin"], &["~/.cargo", "~/go"], &["~/.rustup"]);
        check(&[".pyenv/shims", ".cargoes/bin"], &[], &[]);
        check(&[".nvm/versions/node/v1/bin"], &[&home.path().to_string_lossy()], &[]);
    }
}
