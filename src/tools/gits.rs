//! What git obeys besides the names that are always the same: files that a repository's configuration names, and folders
//! that git takes for a repository. It reads configuration as loosely as it can: what is named too much is looked at once
//! too often, and what is named too little runs.

use std::collections::BTreeSet;
use std::path::Component;
use std::path::Path;
use std::path::PathBuf;

use crate::domain::limits;
use crate::tools::place;

/// Keys, in small letters, whose values name programs, their folders, or more configuration.
const KEYS: [&str; 19] = [
    "askpass",
    "attributesfile",
    "clean",
    "cmd",
    "command",
    "driver",
    "editor",
    "external",
    "fsmonitor",
    "gitproxy",
    "helper",
    "hookspath",
    "pager",
    "path",
    "process",
    "program",
    "smudge",
    "sshcommand",
    "textconv",
];
/// What of a repository git obeys, or needs to take a folder for one.
const PARTS: [&str; 9] =
    ["commondir", "config", "config.worktree", "hooks", "info", "modules", "objects", "refs", "worktrees"];

/// All that the configurations of the repositories name in which something lies at `place`: real where it is there.
pub(crate) fn named_around(place: &Path) -> BTreeSet<PathBuf> {
    let configurations = place.ancestors().flat_map(|top| {
        let files =
            folders(top).into_iter().flat_map(|folder| ["config", "config.worktree"].map(|name| folder.join(name)));
        files.map(|file| (file, top.to_path_buf()))
    });
    configurations.flat_map(|(file, top)| named(&file, &top)).collect()
}

/// Where the configuration of the repository lies whose work is in `top`, if there is one: in its `.git`, or where that
/// file leads to.
fn folders(top: &Path) -> Vec<PathBuf> {
    let git = top.join(".git");
    let text = |path: &Path| place::read_file(path).ok().and_then(|(bytes, _)| String::from_utf8(bytes).ok());
    let Some(leads) = text(&git) else { return vec![git] };
    let own = top.join(leads.trim_start_matches("gitdir:").trim());
    let common = text(&own.join("commondir")).map(|path| own.join(path.trim()));
    common.into_iter().chain([own]).map(|path| real(&path)).collect()
}

/// What this configuration, and what it includes, names; `top` is the folder that it is about.
fn named(configuration: &Path, top: &Path) -> BTreeSet<PathBuf> {
    let (mut known, mut all) = (BTreeSet::new(), BTreeSet::new());
    let mut due = vec![configuration.to_path_buf()];
    while let Some(file) = due.pop() {
        if known.len() >= limits::GIT_CONFIGURATIONS || !known.insert(file.clone()) {
            continue;
        }
        let Ok((bytes, _)) = place::read_file(&file) else { continue };
        for (key, word) in words(&String::from_utf8_lossy(&bytes)) {
            let about = real(&top.join(&word));
            if key == "path" {
                let included = real(&file.parent().unwrap_or(top).join(&word));
                due.push(included.clone());
                all.insert(included);
            }
            all.insert(about);
        }
    }
    // A value that is the folder itself, or above it, names nothing in it.
    all.retain(|path| !top.starts_with(path));
    all
}

/// The words of all values that may name something, with their keys.
fn words(text: &str) -> Vec<(String, String)> {
    // A line that ends with a backslash goes on.
    let text = text.replace("\\\r\n", "").replace("\\\n", "");
    let mut all = Vec::new();
    // Pagers stand under the names of commands.
    let mut is_pager = false;
    for line in text.lines() {
        if line.trim_start().starts_with('[') {
            is_pager = line.trim_start().to_lowercase().starts_with("[pager");
        }
        let Some((before, value)) = line.split_once('=') else { continue };
        let key = before.rsplit(|one: char| one.is_whitespace() || one == ']').find(|word| !word.is_empty());
        let key = key.unwrap_or_default().to_lowercase();
        let value = value.trim();
        // An alias can have any name, and is a line for a shell behind a mark.
        let is_command = value.trim_start_matches('"').starts_with('!');
        if !KEYS.contains(&key.as_str()) && !is_command && !is_pager {
            continue;
        }
        let ends = |one: char| one.is_whitespace() || "\"'!;&|()<>=$`".contains(one);
        let pieces = value.split(ends).chain([value.trim_matches('"')]);
        all.extend(pieces.filter(|word| !word.is_empty()).map(|word| (key.clone(), word.to_string())));
    }
    all
}

/// The path without links where it is there, else without steps back.
fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| {
        path.components().fold(PathBuf::new(), |mut so_far, part| {
            match part {
                Component::ParentDir => {
                    so_far.pop();
                }
                Component::CurDir => {}
                Component::Prefix(_) | Component::RootDir | Component::Normal(_) => so_far.push(part),
            }
            so_far
        })
    })
}

/// Why git obeys what is written to this place in the workspace, if it does: its name is none that always means so.
pub(crate) fn obeys(workspace: &Path, place: &Path) -> Option<&'static str> {
    let below = place.strip_prefix(workspace).ok()?;
    let is = |part: &Path, name: &str| part.as_os_str().to_string_lossy().eq_ignore_ascii_case(name);
    let name = Path::new(place.file_name()?);
    if is(name, "HEAD") || is(name, "commondir") {
        return Some("git can take its folder for a repository");
    }
    let folders = below.ancestors().skip(1);
    let is_part = folders.into_iter().any(|folder| {
        let first = below.strip_prefix(folder).ok().and_then(|rest| rest.components().next());
        first.is_some_and(|first| PARTS.iter().any(|part| is(Path::new(first.as_os_str()), part)))
            && workspace.join(folder).join("HEAD").symlink_metadata().is_ok()
    });
    if is_part {
        return Some("git can take its folder for a repository, and obey it");
    }
    let is_named = named_around(place).iter().any(|named| place.starts_with(named));
    is_named.then_some("the configuration of git names it")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::tools::stage::Stage;

    #[test]
    fn what_configurations_name_is_found() {
        let stage = Stage::new();
        let top = &stage.scene.workspace;
        let config = "[core]\n\thooksPath = .githooks\n\tpager = less -R\n[include] path = ../team.inc\n\
                      [filter \"x\"]\n\tclean = sh -c \\\n \"tools/clean %f\"\n[alias]\n\tgo = !bin/go now\n\
                      [branch \"m\"]\n\tmerge = refs/heads/m\n[remote \"o\"]\n\turl = ../elsewhere\n[core]\n\teditor = .\n";
        stage.write(".git/config", config);
        stage.write("team.inc", "[diff \"y\"]\ntextconv=tools/show\n[include]\npath = deep/more.inc\n");
        stage.write("deep/more.inc", "[core]\nfsmonitor = ./watch.sh\n[include]\npath = ../team.inc\n");
        let named: Vec<String> = named_around(&top.join("src/main.rs"))
            .iter()
            .filter_map(|path| Some(path.strip_prefix(top).ok()?.display().to_string()))
            .filter(|path| path.contains(['.', '/']))
            .collect();
        let wanted = [".githooks", "bin/go", "deep/more.inc", "team.inc", "tools/clean", "tools/show", "watch.sh"]
            .map(String::from);
        let missing: Vec<&String> = wanted.iter().filter(|path| !named.contains(path)).collect();
        assert!(missing.is_empty(), "{missing:?} of {named:?}");
        assert!(!named.iter().any(|path| path.contains("refs") || path.contains("elsewhere")), "{named:?}");
    }

    #[test]
    fn what_git_obeys_is_found_by_more_than_its_name() {
        let stage = Stage::new();
        stage.write(".git/config", "[core]\nhooksPath = .githooks\n");
        stage.write("bare/HEAD", "");
        for (path, wanted) in [
            ("src/main.rs", false),
            ("src/HEAD", true),
            ("src/head", true),
            ("src/head.rs", false),
            ("src/commondir", true),
            ("src/config", false),
            ("bare/config", true),
            ("bare/hooks/x", true),
            ("bare/objects/x", true),
            ("bare/README", false),
            (".githooks/pre-commit", true),
            (".githooksx", false),
        ] {
            let said = obeys(&stage.scene.workspace, &stage.scene.workspace.join(path));
            assert_eq!(said.is_some(), wanted, "{path}: {said:?}");
        }
    }
}
