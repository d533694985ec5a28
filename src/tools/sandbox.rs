//! The box that commands run in (docs/SAFETY.md §7): what this machine has of it, and one box for one command.
//!
//! Full: bubblewrap gives namespaces, and inside of them our own program closes files with Landlock and calls to the
//! system with a filter. Partial: the last two only, or what `sandbox-exec` makes where that is. Which of them holds is not believed but tried (`probe.rs`). A box
//! that can't be made is a call that fails; nothing here ever runs a command without the box that was asked for.

#[cfg(target_os = "linux")]
mod cell;
#[cfg(target_os = "linux")]
mod fence;
#[cfg(target_os = "linux")]
mod filter;
#[cfg(target_os = "linux")]
mod marks;
pub mod probe;
pub mod seatbelt;
#[cfg(target_os = "linux")]
pub(crate) mod stage;
pub(crate) mod threshold;
pub(crate) mod trial;
pub(crate) mod watch;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;
use std::path::PathBuf;
#[cfg(target_os = "linux")]
use std::sync::atomic::AtomicU64;
#[cfg(target_os = "linux")]
use std::sync::atomic::Ordering;

#[cfg(target_os = "linux")]
use nix::errno::Errno;
#[cfg(target_os = "linux")]
use nix::sys::signal::kill;
#[cfg(target_os = "linux")]
use nix::unistd::Pid;
use serde::Deserialize;
use serde::Serialize;
use tempfile::TempDir;

use crate::domain::limits;
use crate::domain::sandbox::Level;
use crate::domain::sandbox::Manner;
use crate::tools::Scene;
use crate::tools::guard;
use crate::tools::names;
#[cfg(target_os = "linux")]
use crate::tools::sandbox::cell::Cell;
#[cfg(target_os = "linux")]
use crate::tools::sandbox::marks::Mark;
use crate::tools::sandbox::watch::Watched;

/// Where bubblewrap may be. It is looked for nowhere else: a search path or a workspace could hold another one.
const BWRAP: [&str; 2] = ["/usr/bin/bwrap", "/bin/bwrap"];
/// Where groups of processes are counted.
#[cfg(target_os = "linux")]
const GROUPS: [&str; 2] = ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"];
/// Numbers of the groups of this process.
#[cfg(target_os = "linux")]
static GROUP: AtomicU64 = AtomicU64::new(0);
/// How the names of our groups begin; the number of their process follows, and their own.
#[cfg(target_os = "linux")]
const GROUP_NAME: &str = "tiller-";

/// What a scene has of boxes. The usual one has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sandbox {
    /// How much they hold back.
    pub level: Level,
    /// How a full one is made.
    pub maker: Option<Maker>,
    /// The program that makes half ones, where our own does not: `sandbox-exec`.
    pub half: Option<PathBuf>,
    /// Folders that can be read besides the workspace.
    pub readable: Vec<PathBuf>,
    /// Folders that can be written as well.
    pub writable: Vec<PathBuf>,
    /// The operator's home.
    pub home: Option<PathBuf>,
}

/// The program that makes full boxes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Maker {
    /// Where it is.
    pub bwrap: PathBuf,
    /// Whether it can forbid boxes inside of boxes.
    pub forbids_nesting: bool,
}

impl Maker {
    /// Bubblewrap, where it belongs to the system.
    pub fn find() -> Option<Maker> {
        let path = BWRAP.map(PathBuf::from).into_iter().find(|path| is_of_the_system(path))?;
        Some(Maker { bwrap: path, forbids_nesting: true })
    }
}

/// Why bubblewrap is not used, with what would help: a sentence.
pub(crate) fn lack() -> String {
    let objections = BWRAP.iter().find_map(|path| objection(Path::new(path)));
    let missing = || format!("bubblewrap is not at {}; do: apt install bubblewrap", BWRAP.join(" or "));
    objections.map_or_else(missing, |why| format!("bubblewrap is not used: {why}"))
}

/// Whether a program is there, belongs to root, and nobody else can change it.
fn is_of_the_system(path: &Path) -> bool {
    path.is_file() && objection(path).is_none()
}

/// What speaks against a program that is there, with what would help: it, or its folder, is not root's alone.
fn objection(path: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    if !path.is_file() {
        return None;
    }
    [Some(path), path.parent()].into_iter().flatten().find_map(|one| {
        let Ok(seen) = one.metadata() else { return Some(format!("{} can't be looked at", one.display())) };
        match (seen.uid(), seen.mode() & 0o022) {
            (0, 0) => None,
            (0, _) => Some(format!("others than root can write {0}; do: chmod go-w {0}", one.display())),
            _ if is_in_a_user_namespace() => Some(format!(
                "whether {} belongs to root can't be told here, in a user namespace (another box or container) without \
                 the root of the system; do: start tiller outside of it",
                one.display()
            )),
            (owner, _) => {
                Some(format!("{0} belongs to the user {owner} and not to root; do: chown root {0}", one.display()))
            }
        }
    })
}

/// Whether users have other numbers here than in the system as a whole.
fn is_in_a_user_namespace() -> bool {
    let all = ["0", "0", "4294967295"];
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    !map.is_empty() && !map.split_whitespace().eq(all)
}

impl Sandbox {
    /// What a call is told to reach, in words.
    pub(crate) fn reach(&self, network: bool) -> String {
        let network = if network { "THE NETWORK IS OPEN, to servers of this machine too" } else { "no network" };
        match self.level {
            Level::Full => format!("runs in the box: can change all of the workspace, and nothing else; {network}"),
            Level::Partial => {
                let sees = if self.half.is_none() { "; it sees other processes" } else { "" };
                format!("runs in half a box: can change all of the workspace, and write nowhere else; {network}{sees}")
            }
            Level::None => "runs a program with your rights".to_string(),
        }
    }

    /// What a decision is bound to.
    pub(crate) fn binding(&self, network: bool) -> String {
        let network = if network { "network" } else { "no network" };
        let more = |word: &str, folders: &[PathBuf]| {
            folders.iter().map(|folder| format!(", {word} {}", folder.display())).collect::<String>()
        };
        let folders = more("reads", &self.readable) + &more("writes", &self.writable);
        match self.level {
            Level::None => "box=none".to_string(),
            level => format!("box={level}, {network}{folders}; read-only where the read-only table allows it"),
        }
    }
}

/// A further folder of the boxes, as the operator wrote it. Errors with a sentence when it would open too much.
pub fn folder(written: &str, home: Option<&Path>, off_limits: &[PathBuf]) -> Result<PathBuf, String> {
    let refuse = |why: &str| Err(format!("the folder {written} can't be opened to the box: {why}"));
    let path = match (written.strip_prefix("~/"), home) {
        (Some(below), Some(home)) => home.join(below),
        (Some(_), None) => return refuse("there is no home folder"),
        (None, _) => PathBuf::from(written),
    };
    if !path.is_absolute() {
        return refuse("write it from / or ~/ on");
    }
    let real = path.canonicalize().unwrap_or_else(|_| path.clone());
    let holds = |inner: &Path| [&path, &real].iter().any(|outer| inner.starts_with(outer));
    if home.is_some_and(|home| holds(home) || home.canonicalize().is_ok_and(|home| holds(&home)))
        || holds(Path::new("/usr"))
    {
        return refuse("it holds your whole home, or the system");
    }
    let is_ours = |own: &PathBuf| holds(own) || path.starts_with(own) || real.starts_with(own);
    if off_limits.iter().any(is_ours) {
        return refuse("it is, or holds, what tiller itself keeps");
    }
    let counted = |one: &Path| home.and_then(|home| one.strip_prefix(home).ok()).unwrap_or(one).to_path_buf();
    if let Some(reason) = names::sensitive(&counted(&path)).or_else(|| names::sensitive(&counted(&real))) {
        return refuse(reason);
    }
    if ["/proc", "/sys", "/dev", "/run", "/var/run"].iter().any(|system| real.starts_with(system)) {
        return refuse("it belongs to the system");
    }
    // Whoever can write a folder on the way could lead it elsewhere. Where the home itself lies is not theirs.
    let written_out = match (written.strip_prefix("~/"), home.and_then(|home| home.canonicalize().ok())) {
        (Some(below), Some(home)) => home.join(below),
        (Some(_) | None, _) => path.clone(),
    };
    if real != written_out.components().collect::<PathBuf>() {
        return refuse(&format!("a link is on the way; write {}", real.display()));
    }
    Ok(real)
}

/// One box for one command. What it needed is taken away with it.
pub(crate) struct Room {
    words: Vec<OsString>,
    own: PathBuf,
    home: PathBuf,
    temporary: PathBuf,
    _folder: Option<TempDir>,
    _group: Option<Group>,
}

impl Room {
    /// Makes ready a box for a command; nothing where the scene has none, or the call was let out of it. `watched` is
    /// what must stay as it is. Errors with a sentence.
    pub(crate) fn of(scene: &Scene, manner: Manner, network: bool, watched: &Watched) -> Result<Option<Room>, String> {
        let is_writable = manner != Manner::Reading;
        if scene.sandbox.level == Level::None || manner == Manner::Unboxed {
            return Ok(None);
        }
        if let Some(why) = obstacle(scene, is_writable) {
            return Err(why);
        }
        match (&scene.sandbox.half, scene.sandbox.level) {
            (Some(maker), Level::Partial) => Room::behind_profile(maker, scene, is_writable, network, watched),
            (_, Level::Full | Level::Partial | Level::None) => Room::of_ours(scene, is_writable, network, watched),
        }
        .map(Some)
    }

    /// A box that `sandbox-exec` makes from a profile.
    fn behind_profile(
        maker: &Path,
        scene: &Scene,
        is_writable: bool,
        has_network: bool,
        watched: &Watched,
    ) -> Result<Room, String> {
        let failed = |error: std::io::Error| format!("it has no folder of its own ({error})");
        let folder = tempfile::tempdir().map_err(failed)?;
        let private = folder.path().canonicalize().map_err(failed)?;
        let profile = seatbelt::profile(&seatbelt::Plan {
            program: &scene.program.canonicalize().map_err(failed)?,
            workspace: &scene.workspace,
            is_writable,
            has_network,
            readable: &scene.sandbox.readable,
            writable: &scene.sandbox.writable,
            kept: &kept(scene, watched).into_iter().collect::<Vec<PathBuf>>(),
            private: &private,
        })?;
        let own = scene.program.clone().into_os_string();
        let maker = maker.to_path_buf().into_os_string();
        let words =
            vec![maker, "-p".into(), profile.into(), own, guard::WORD.into(), seatbelt::STAGE.into(), "--".into()];
        let (home, temporary) = (private.clone(), private);
        Ok(Room { words, own: scene.program.clone(), home, temporary, _folder: Some(folder), _group: None })
    }

    /// A box that our own program makes, alone or with bubblewrap.
    #[cfg(target_os = "linux")]
    fn of_ours(scene: &Scene, is_writable: bool, network: bool, watched: &Watched) -> Result<Room, String> {
        let sandbox = &scene.sandbox;
        let folder = match sandbox.level {
            Level::Full => None,
            Level::Partial | Level::None => {
                Some(tempfile::tempdir().map_err(|error| format!("it has no folder of its own ({error})"))?)
            }
        };
        let group = Group::new();
        let maker = match (&sandbox.maker, sandbox.level) {
            (Some(maker), _) => maker.clone(),
            (None, Level::Partial) => Maker { bwrap: PathBuf::new(), forbids_nesting: false },
            (None, _) => return Err("bubblewrap is not there any more".to_string()),
        };
        let private = folder.as_ref().map_or(PathBuf::from(cell::HOME), |folder| folder.path().to_path_buf());
        let temporary = if folder.is_some() { private.clone() } else { PathBuf::from(cell::TEMPORARY) };
        let shown: Vec<PathBuf> =
            cell::TOP.iter().chain(&cell::SETTINGS).chain(&cell::NETWORK_SETTINGS).map(PathBuf::from).collect();
        let opened = sandbox.readable.iter().chain(&sandbox.writable).chain([&scene.workspace]);
        let shown: Vec<PathBuf> = shown.into_iter().chain(opened.cloned()).collect();
        let is_in = |point: &Path| shown.iter().any(|folder| point.starts_with(folder));
        // A folder that is not there is none to open, and one of the workspace is part of it. None is mounted twice.
        let is_apart = |path: &&PathBuf| !path.starts_with(&scene.workspace) && path.symlink_metadata().is_ok();
        let there = |all: &[PathBuf]| all.iter().filter(is_apart).cloned().collect::<BTreeSet<PathBuf>>();
        let marked = |all: BTreeSet<PathBuf>| all.into_iter().map(Mark::of).collect::<Result<Vec<Mark>, String>>();
        let writable = there(&sandbox.writable);
        let readable = there(&sandbox.readable).difference(&writable).cloned().collect();
        let kept = kept(scene, watched);
        let held = held(scene, &kept);
        let cell = Cell {
            level: sandbox.level,
            bwrap: maker.bwrap,
            forbids_nesting: maker.forbids_nesting,
            program: scene.program.clone(),
            workspace: scene.workspace.clone(),
            is_writable,
            has_network: network,
            readable: marked(readable)?,
            writable: marked(writable)?,
            kept: marked(kept)?,
            held: marked(held)?,
            ground: Mark::of(scene.workspace.clone())?,
            mounted: marks::mounts()?.into_iter().map(|(_, point)| point).filter(|point| is_in(point)).collect(),
            hidden: hidden(scene, is_writable).into_iter().collect(),
            home: sandbox.home.clone(),
            private: private.clone(),
            group: group.as_ref().map(|group| group.0.clone()),
        };
        let text = serde_json::to_string(&cell).map_err(|error| error.to_string())?;
        if text.len() >= limits::CELL_BYTES {
            let why =
                "the paths of all that it shows are too long together to be handed over; open fewer folders to it";
            return Err(why.to_string());
        }
        let word = if sandbox.level == Level::Full { stage::ENTER } else { stage::CLOSE };
        let program = scene.program.clone().into_os_string();
        let words = vec![program, guard::WORD.into(), word.into(), text.into(), "--".into()];
        let own = if sandbox.level == Level::Full { PathBuf::from(cell::PROGRAM) } else { scene.program.clone() };
        Ok(Room { words, own, home: private, temporary, _folder: folder, _group: group })
    }

    /// Elsewhere it makes none.
    #[cfg(not(target_os = "linux"))]
    fn of_ours(_: &Scene, _: bool, _: bool, _: &Watched) -> Result<Room, String> {
        Err("this system has none that tiller could make".to_string())
    }

    /// The words that stand before the program of the command.
    pub(crate) fn words(&self) -> &[OsString] {
        &self.words
    }

    /// Where a command in the box finds our own program.
    pub(crate) fn own_program(&self) -> &Path {
        &self.own
    }

    /// The variables of a command, with the folders of the box in the place of the operator's.
    pub(crate) fn dress(&self, variables: &mut Vec<(OsString, OsString)>) {
        let own = [("HOME", &self.home), ("TMPDIR", &self.temporary)];
        variables.retain(|(name, _)| own.iter().all(|(own, _)| name != own));
        variables.extend(own.map(|(name, path)| (name.into(), path.clone().into_os_string())));
    }
}

/// What nothing in a box may change: what is watched, and our own program, should the run be about it. What a box hides is
/// not there to be kept, and what others wrote, and is many, is installed and removed as a whole: it is left alone.
fn kept(scene: &Scene, watched: &Watched) -> BTreeSet<PathBuf> {
    let hidden = hidden(scene, true);
    let is_left = |root: &PathBuf| {
        hidden.iter().any(|place| root.starts_with(place)) || watch::is_of_others(&scene.workspace, root)
    };
    let roots = watched.roots().into_iter().filter(|root| !is_left(root));
    let mut kept = nearest(roots.collect(), limits::WATCHED_FILES);
    let program = &scene.program;
    if program.starts_with(&scene.workspace) && kept.iter().all(|root| !program.starts_with(root)) {
        kept.insert(program.clone());
    }
    kept
}

/// All folders above what is kept: whoever could move one away would make anew what lies in it.
#[cfg(target_os = "linux")]
fn held(scene: &Scene, kept: &BTreeSet<PathBuf>) -> BTreeSet<PathBuf> {
    let workspace = scene.workspace.as_path();
    let is_inside = |folder: &&Path| folder.starts_with(workspace) && *folder != workspace;
    let above = kept.iter().flat_map(|path| path.ancestors().skip(1).take_while(is_inside));
    nearest(above.map(Path::to_path_buf).collect(), limits::HELD_FOLDERS)
}

/// As many of these as can be handed over to the stages of a box, those first that lie nearest to the top.
fn nearest(paths: BTreeSet<PathBuf>, most: usize) -> BTreeSet<PathBuf> {
    let mut paths: Vec<PathBuf> = paths.into_iter().collect();
    paths.sort_by_key(|path| path.components().count());
    let mut bytes_left = limits::KEPT_PATH_BYTES;
    // A name that is no text can't be written in JSON.
    let fits = |path: &PathBuf| {
        let left = serde_json::to_string(path).ok().and_then(|text| bytes_left.checked_sub(text.len()));
        bytes_left = left.unwrap_or(bytes_left);
        left.is_some()
    };
    paths.into_iter().filter(fits).take(most).collect()
}

/// Why no box can be made in this scene, if none can, and what to do: tiller's own places lie where no box of this level
/// could hide them.
pub(crate) fn obstacle(scene: &Scene, is_writable: bool) -> Option<String> {
    let sandbox = &scene.sandbox;
    if sandbox.level == Level::None {
        return None;
    }
    if scene.workspace == Path::new("/") {
        return Some("the workspace is all that there is; work in a folder".to_string());
    }
    let is_systems = ["/proc", "/sys", "/dev"].iter().any(|folder| scene.workspace.starts_with(folder));
    if is_systems || scene.workspace == Path::new("/etc") {
        return Some("the workspace belongs to the system, and a box has its own; work in another folder".to_string());
    }
    let hidden = hidden(scene, is_writable);
    if let (Level::Partial, Some(place)) = (sandbox.level, hidden.first()) {
        let place = place.display();
        return Some(format!("half a box can't leave out {place}, which is tiller's own; work in another folder"));
    }
    // What is hidden stays in its place; a folder above it could be moved away, and another put there.
    let is_open = |folder: &Path| sandbox.writable.iter().chain([&scene.workspace]).any(|open| open == folder);
    let movable = hidden.iter().find(|place| place.parent().is_some_and(|folder| !is_open(folder)));
    if let Some(place) = movable.filter(|_| is_writable) {
        let place = place.display();
        return Some(format!(
            "{place}, which is tiller's own, lies deep in what can be written; work in another folder"
        ));
    }
    // Whatever is put there to hide it would stay there, and tiller would find that in the place of its own.
    let place = hidden.iter().find(|place| place.symlink_metadata().is_err())?.display();
    let what = "which is tiller's own, is not there yet, and a command could make it";
    Some(format!("{place}, {what}; do: mkdir -m 700 {place}"))
}

/// Tiller's own places, as far as the box would show them, the outermost. What is not there yet must not be made either.
fn hidden(scene: &Scene, is_writable: bool) -> BTreeSet<PathBuf> {
    let sandbox = &scene.sandbox;
    let shown = |place: &PathBuf| {
        let written = sandbox.writable.iter().chain([&scene.workspace]).any(|folder| place.starts_with(folder));
        let read = sandbox.readable.iter().any(|folder| place.starts_with(folder));
        (written && (is_writable || place.exists())) || (read && place.exists())
    };
    let all: BTreeSet<&PathBuf> = scene.off_limits.iter().filter(|place| shown(place)).collect();
    let is_outermost = |place: &&&PathBuf| all.iter().all(|outer| outer == *place || !place.starts_with(outer));
    all.iter().filter(is_outermost).map(|place| (*place).clone()).collect()
}

/// A group of processes that is counted. Only root can make one; everybody else is bounded in another way.
struct Group(PathBuf);

#[cfg(target_os = "linux")]
impl Group {
    fn new() -> Option<Group> {
        if !nix::unistd::Uid::effective().is_root() {
            return None;
        }
        let number = GROUP.fetch_add(1, Ordering::Relaxed);
        if number == 0 {
            GROUPS.iter().for_each(|folder| tidy(Path::new(folder)));
        }
        let name = format!("{GROUP_NAME}{}-{number}", std::process::id());
        GROUPS.iter().find_map(|folder| Group::at(Path::new(folder).join(&name)))
    }

    fn at(path: PathBuf) -> Option<Group> {
        // One of this name was left by a process that had our number before.
        let _ = std::fs::remove_dir(&path);
        std::fs::create_dir(&path).ok()?;
        let group = Group(path);
        std::fs::write(group.0.join("pids.max"), limits::BOX_PROCESSES.to_string()).ok()?;
        Some(group)
    }
}

/// Removes the groups that a killed process of ours left in this folder. One that holds processes can't be removed.
#[cfg(target_os = "linux")]
fn tidy(folder: &Path) {
    let is_left = |name: &str| {
        let numbers = name.strip_prefix(GROUP_NAME).and_then(|rest| rest.split_once('-'));
        let numbers = numbers.and_then(|(owner, own)| Some((owner.parse::<i32>().ok()?, own.parse::<u64>().ok()?)));
        numbers.is_some_and(|(owner, _)| owner > 0 && kill(Pid::from_raw(owner), None) == Err(Errno::ESRCH))
    };
    let entries = std::fs::read_dir(folder).into_iter().flatten().take(limits::GROUPS_SEEN).flatten();
    for entry in entries.filter(|entry| entry.file_name().to_str().is_some_and(is_left)) {
        let _ = std::fs::remove_dir(entry.path());
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // It is empty: the guard has left, and nothing of the command with it.
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn folders_that_would_open_too_much_are_refused() {
        let root = tempfile::tempdir().unwrap();
        let home = root.path().canonicalize().unwrap().join("op");
        let state = home.join(".local/state/tiller");
        for below in [".cargo", ".ssh", ".local/state/tiller"] {
            std::fs::create_dir_all(home.join(below)).unwrap();
        }
        std::os::unix::fs::symlink(home.join(".ssh"), home.join("innocent")).unwrap();
        std::os::unix::fs::symlink(home.join(".cargo"), home.join("led")).unwrap();
        for (written, wanted) in [
            ("~/.cargo", "HOME/.cargo"),
            ("/opt", "/opt"),
            ("~/led", "a link is on the way; write HOME/.cargo"),
            ("~/led/../.cargo", "a link is on the way; write HOME/.cargo"),
            ("/", "it holds your whole home, or the system"),
            ("~/", "it holds your whole home, or the system"),
            ("~/..", "it holds your whole home, or the system"),
            ("relative", "write it from / or ~/ on"),
            ("~/.ssh", "keys of ssh"),
            ("~/innocent", "keys of ssh"),
            ("~/.local", "it is, or holds, what tiller itself keeps"),
            ("~/.local/state/tiller/runs", "it is, or holds, what tiller itself keeps"),
            ("/proc/self", "it belongs to the system"),
        ] {
            let found = match folder(written, Some(&home), std::slice::from_ref(&state)) {
                Ok(path) => path.display().to_string().replace(home.to_str().unwrap(), "HOME"),
                Err(why) => why.split_once(": ").unwrap().1.replace(home.to_str().unwrap(), "HOME"),
            };
            assert_eq!(found, wanted, "{written}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn only_groups_of_processes_that_are_gone_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let mut gone = std::process::Command::new("true").spawn().unwrap();
        gone.wait().unwrap();
        let (gone, own) = (gone.id(), std::process::id());
        let left = format!("tiller-{gone}-0");
        let others = [
            format!("tiller-{own}-1"),
            format!("tiller-{gone}"),
            format!("tiller-{gone}-0-x"),
            format!("other-{gone}-0"),
            "tiller-x-0".to_string(),
            "tiller-0-0".to_string(),
            "tiller--1-0".to_string(),
        ];
        for name in others.iter().chain([&left]) {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        tidy(folder.path());
        assert!(!folder.path().join(left).exists());
        assert!(others.iter().all(|name| folder.path().join(name).is_dir()));
        tidy(&folder.path().join("not-there"));
    }

    #[test]
    fn a_program_that_is_not_roots_alone_is_not_used_and_it_is_said_why() {
        use std::os::unix::fs::PermissionsExt;
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("bwrap");
        assert!(objection(&path).is_none() && !is_of_the_system(&path));
        std::fs::write(&path, "").unwrap();
        let set = |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        set(0o755);
        if !nix::unistd::Uid::effective().is_root() {
            assert!(!is_of_the_system(&path));
            return;
        }
        assert!(is_of_the_system(&path));
        set(0o775);
        let place = path.display();
        assert_eq!(objection(&path), Some(format!("others than root can write {place}; do: chmod go-w {place}")));
        set(0o755);
        std::os::unix::fs::chown(root.path(), Some(65534), None).unwrap();
        let why = objection(&path).unwrap();
        assert!(!is_of_the_system(&path) && !why.contains("bwrap"), "{why}");
        assert!(is_in_a_user_namespace() || why.contains("belongs to the user 65534 and not to root; do: "), "{why}");
    }
}
