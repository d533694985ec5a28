//! The rehearsal: a scripted model drives the real engine, tools and approvals in a scratch copy of a small project,
//! so that a newcomer can press every key before spending a cent.

use std::fs;
use std::fs::DirBuilder;
use std::fs::OpenOptions;
use std::fs::Permissions;
use std::io;
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::path::PathBuf;

use anyhow::Context;
use serde::Deserialize;

use crate::domain::budget::Axis;
use crate::domain::budget::Limits;
use crate::domain::limits;
use crate::domain::model::Dialect;
use crate::domain::model::ModelSpec;
use crate::domain::terms::Check;
use crate::domain::terms::Goal;
use crate::domain::terms::Terms;
use crate::domain::tool::ToolSpec;
use crate::domain::trust::Trust;
use crate::model::script::Script;

const TERMS: &str = include_str!("../assets/demo/rehearsal.toml");
const SCRIPT: &str = include_str!("../assets/demo/script.toml");

/// The project, file by file.
const PROJECT: [(&str, &str); 10] = [
    ("README.md", include_str!("../assets/demo/project/README.md")),
    ("attic/soundings.txt", include_str!("../assets/demo/project/attic/soundings.txt")),
    ("attic/tide-1994.awk", include_str!("../assets/demo/project/attic/tide-1994.awk")),
    ("cases/day.txt", include_str!("../assets/demo/project/cases/day.txt")),
    ("cases/evening.txt", include_str!("../assets/demo/project/cases/evening.txt")),
    ("check.sh", include_str!("../assets/demo/project/check.sh")),
    ("lib/clock.sh", include_str!("../assets/demo/project/lib/clock.sh")),
    ("lib/height.sh", include_str!("../assets/demo/project/lib/height.sh")),
    ("tide.sh", include_str!("../assets/demo/project/tide.sh")),
    ("tides.txt", include_str!("../assets/demo/project/tides.txt")),
];

/// The name that the model of a rehearsal goes by.
const MODEL: &str = "scripted/rehearsal";
/// A window that is never the thing that ends a rehearsal, in tokens.
const WINDOW_TOKENS: u64 = 200_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asset {
    goal: String,
    checks: Vec<String>,
    budget: Budget,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Budget {
    cost: String,
    iterations: u64,
}

/// The folder that a rehearsal works in, inside its run's directory.
pub fn workspace(run_dir: &Path) -> PathBuf {
    run_dir.join("workspace")
}

/// The terms of a rehearsal in its run's directory. `script` is that of the operator; nothing means the built-in one.
pub fn terms(run_dir: &Path, script: Option<&Path>, tools: Vec<ToolSpec>) -> anyhow::Result<Terms> {
    let asset: Asset = toml::from_str(TERMS).context("the rehearsal's terms can't be read; this is a bug of tiller")?;
    let address = match script {
        Some(path) => path
            .canonicalize()
            .with_context(|| format!("the script {} can't be read; nothing was started", path.display()))?,
        None => run_dir.join("script.toml"),
    };
    let price = match script {
        Some(_) => Script::load(&address)?.price(),
        None => Script::parse(SCRIPT).map_err(anyhow::Error::msg)?.price(),
    };
    let mut all = Limits::default();
    all.set(Axis::Cost, Axis::Cost.parse_limit(&asset.budget.cost).map_err(anyhow::Error::msg)?);
    all.set(Axis::Loops, Axis::Loops.parse_limit(&asset.budget.iterations.to_string()).map_err(anyhow::Error::msg)?);
    Ok(Terms {
        goal: Goal::try_from(asset.goal).map_err(anyhow::Error::msg)?,
        workspace: workspace(run_dir).to_string_lossy().into_owned(),
        limits: all,
        checks: asset.checks.into_iter().map(Check::Command).collect(),
        wrap_up: true,
        model: ModelSpec {
            name: MODEL.to_string(),
            dialect: Dialect::Scripted,
            address: address.to_string_lossy().into_owned(),
            model: "rehearsal".to_string(),
            key_variable: None,
            window: WINDOW_TOKENS,
            max_output: limits::OUTPUT_TOKENS,
            most_output: None,
            price: Some(price),
        },
        tools,
        instructions: String::new(),
        guide: None,
        rehearsal: true,
        trust: Trust::Ask,
        keep_full_trust: false,
    })
}

/// Makes the terms of a rehearsal those of one in another run's directory.
pub fn move_in(from: &Path, to: &Path, terms: &mut Terms) {
    for place in [&mut terms.workspace, &mut terms.model.address] {
        if let Ok(rest) = Path::new(place.as_str()).strip_prefix(from) {
            *place = to.join(rest).to_string_lossy().into_owned();
        }
    }
}

/// Copies a rehearsal's scratch folder, as it is now, into another run's directory.
pub fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    let made = to.join("workspace.new");
    let fail = || format!("the scratch copy {} can't be written; the run will begin with a fresh one", made.display());
    let _ = fs::remove_dir_all(&made);
    copy_folder(&workspace(from), &made).with_context(fail)?;
    fs::rename(&made, workspace(to)).with_context(fail)
}

/// Folders and files; what else is there is left out.
fn copy_folder(from: &Path, to: &Path) -> std::io::Result<()> {
    DirBuilder::new().mode(0o700).create(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else if kind.is_file() {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// Writes a file for its owner only, under any umask.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(text.as_bytes())
}

/// Lays out the scratch copy and the script, unless they are there already: a resumed rehearsal keeps its files. That of
/// a fork which was killed before it had them is copied from the run's directory that it branched off from.
pub fn lay_out(run_dir: &Path, parent: Option<&Path>) -> anyhow::Result<()> {
    let script = run_dir.join("script.toml");
    if !script.exists() {
        // Renamed when it is whole, so that a short one is never taken for it.
        let made = run_dir.join("script.toml.new");
        let written = write_private(&made, SCRIPT).and_then(|()| fs::rename(&made, &script));
        written.context("the script of the rehearsal can't be written; nothing was run")?;
    }
    let goal = workspace(run_dir);
    if goal.exists() {
        return Ok(());
    }
    if let Some(parent) = parent.filter(|parent| workspace(parent).is_dir()) {
        return copy(parent, run_dir);
    }
    // Made beside it and renamed, so that a copy is there whole or not at all.
    let copy = run_dir.join("workspace.new");
    let _ = fs::remove_dir_all(&copy);
    let fail = || format!("the scratch copy {} can't be written; nothing was run", copy.display());
    for (name, text) in PROJECT {
        let path = copy.join(name);
        if let Some(folder) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder).with_context(fail)?;
        }
        fs::write(&path, text).with_context(fail)?;
    }
    fs::rename(&copy, &goal).with_context(fail)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn files_below(folder: &Path, below: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                files_below(&path, below, found);
            } else {
                found.push(path.strip_prefix(below).unwrap().to_string_lossy().into_owned());
            }
        }
    }

    #[test]
    fn the_program_holds_every_file_of_the_project() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/demo/project");
        let mut found = Vec::new();
        files_below(&folder, &folder, &mut found);
        found.sort();
        assert_eq!(found, PROJECT.map(|(name, _)| name.to_string()));
    }

    #[test]
    fn laying_out_twice_keeps_what_was_changed() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("script.toml.new"), "sho").unwrap();
        lay_out(dir.path(), None).unwrap();
        let script = dir.path().join("script.toml");
        assert_eq!(fs::read_to_string(&script).unwrap(), SCRIPT);
        assert_eq!(script.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let file = workspace(dir.path()).join("tide.sh");
        fs::write(&file, "changed").unwrap();
        lay_out(dir.path(), None).unwrap();
        assert_eq!(fs::read_to_string(file).unwrap(), "changed");
        // A fork of it that was killed before its files were copied.
        let child = tempfile::tempdir().unwrap();
        lay_out(child.path(), Some(dir.path())).unwrap();
        assert_eq!(fs::read_to_string(workspace(child.path()).join("tide.sh")).unwrap(), "changed");
    }
}
