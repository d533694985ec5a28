//! Finds out by trying how much the boxes of this machine hold back. A trial is our own program in a box, which tries to
//! get out in every way that it can (`trial.rs`); and once without a box, where it must get out, or the trial shows
//! nothing.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::io::Read;
use std::net::TcpListener;
use std::net::UdpSocket;
#[cfg(target_os = "linux")]
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::MetadataExt;
#[cfg(target_os = "linux")]
use std::os::unix::net::SocketAddr;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::sync::mpsc::channel;
use std::time::Duration;

use serde::Deserialize;
use serde::Serialize;
use tempfile::TempDir;

use crate::domain::limits;
use crate::domain::sandbox::Level;
use crate::domain::sandbox::Manner;
use crate::domain::text::one_line;
use crate::tools::Scene;
use crate::tools::guard;
use crate::tools::sandbox;
use crate::tools::sandbox::Maker;
use crate::tools::sandbox::Room;
use crate::tools::sandbox::Sandbox;
use crate::tools::sandbox::seatbelt;
use crate::tools::sandbox::threshold;
use crate::tools::sandbox::trial;
use crate::tools::sandbox::trial::Target;
use crate::tools::sandbox::trial::Way;
use crate::tools::sandbox::watch::Watched;

/// What was found of this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// How much boxes hold back.
    pub level: Level,
    /// What makes full ones.
    pub maker: Option<Maker>,
    /// What makes half ones, where our own program does not.
    #[serde(default)]
    pub half: Option<PathBuf>,
    /// Why there is not more, and what would help: a sentence each.
    pub lacks: Vec<String>,
}

/// Switches of the kernel that keep users from making namespaces: where each is, what forbids them, and what allows
/// them.
const SWITCHES: [(&str, &str, &str); 3] = [
    ("user/max_user_namespaces", "0", "sysctl -w user.max_user_namespaces=15000"),
    ("kernel/unprivileged_userns_clone", "0", "sysctl -w kernel.unprivileged_userns_clone=1"),
    (
        "kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile for bwrap",
    ),
];

/// Everything that what was found depends on. Another start of the machine, another kernel, another bubblewrap, another
/// user or another tiller: it has to be found out again.
pub fn identity(program: &Path) -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_string();
    let seen = |path: &Path| {
        let print = |seen: fs::Metadata| format!("{}:{} {} {}", seen.dev(), seen.ino(), seen.len(), seen.ctime());
        format!("{} {}", path.display(), path.metadata().map(print).unwrap_or_default())
    };
    let mut parts = vec![
        read("/proc/sys/kernel/random/boot_id"),
        read("/proc/sys/kernel/osrelease"),
        read("/proc/self/attr/current"),
        nix::unistd::Uid::effective().to_string(),
        seen(program),
        Maker::find().map_or_else(sandbox::lack, |maker| seen(&maker.bwrap)),
        seatbelt::find().map(|path| seen(&path)).unwrap_or_default(),
    ];
    parts.extend(SWITCHES.map(|(name, ..)| read(&format!("/proc/sys/{name}"))));
    parts.join("\n")
}

/// Tries what the boxes of this machine hold back. `program` is ours; `maker` would make full ones, and `half` half ones in
/// the place of our own.
pub fn examine(program: &Path, maker: Option<Maker>, half: Option<PathBuf>) -> Found {
    let mut lacks = Vec::new();
    let none = |lacks: Vec<String>| Found { level: Level::None, maker: None, half: None, lacks };
    let arena = match Arena::new(program).and_then(|arena| arena.is_open().map(|()| arena)) {
        Ok(arena) => arena,
        Err(why) => return none(vec![format!("nothing can be tried: {why}")]),
    };
    let box_of = |level: Level, maker: &Option<Maker>, half: &Option<PathBuf>| Sandbox {
        level,
        maker: maker.clone(),
        half: half.clone(),
        ..Sandbox::default()
    };
    if half.is_some() && maker.is_none() {
        return match arena.holds(box_of(Level::Partial, &None, &half)) {
            Ok(()) => Found { level: Level::Partial, maker: None, half, lacks },
            Err(why) => none(vec![format!("the box of sandbox-exec does not hold: {why}")]),
        };
    }
    match maker {
        None => lacks.push(sandbox::lack()),
        Some(maker) => {
            let plain = Maker { forbids_nesting: false, ..maker.clone() };
            let holds = |maker: Maker| arena.holds(box_of(Level::Full, &Some(maker.clone()), &None)).map(|()| maker);
            match holds(maker).or_else(|why| holds(plain).map_err(|_| why)) {
                Ok(maker) => return Found { level: Level::Full, maker: Some(maker), half: None, lacks },
                Err(why) => lacks.push(format!("a full box does not hold: {why}{}", remedy())),
            }
        }
    }
    match arena.holds(box_of(Level::Partial, &None, &None)) {
        Ok(()) => Found { level: Level::Partial, maker: None, half: None, lacks },
        Err(why) => {
            lacks.push(format!("half a box does not hold: {why}; it needs Linux 6.12 or later with lsm=landlock"));
            none(lacks)
        }
    }
}

/// What would let users make namespaces, where a switch forbids it.
fn remedy() -> String {
    let is_set = |name: &str, value: &str| {
        fs::read_to_string(format!("/proc/sys/{name}")).is_ok_and(|text| text.trim() == value)
    };
    let found = SWITCHES.iter().find(|(name, value, _)| is_set(name, value));
    found.map(|(_, _, what)| format!("; do: {what}")).unwrap_or_default()
}

/// A place for trials: a workspace, a folder outside, ears on every way out, and a process to be attacked.
struct Arena {
    folder: TempDir,
    scene: Scene,
    target: Target,
    mail: UdpSocket,
    victim: Child,
    _ears: (TcpListener, UnixListener, Option<UnixListener>),
}

impl Arena {
    fn new(program: &Path) -> Result<Arena, String> {
        Arena::build(program).map_err(|error| error.to_string())
    }

    fn build(program: &Path) -> io::Result<Arena> {
        let folder = tempfile::tempdir()?;
        let root = folder.path().canonicalize()?;
        let (workspace, outside) = (root.join("workspace"), root.join("outside"));
        fs::create_dir(&workspace)?;
        fs::create_dir(&outside)?;
        fs::write(workspace.join(trial::TEXT), trial::TEXT)?;
        fs::write(outside.join(trial::TEXT), trial::TEXT)?;
        std::os::unix::fs::symlink(&outside, workspace.join(trial::LINK))?;
        let name = root.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let (tcp, mail) = (TcpListener::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
        mail.set_nonblocking(true)?;
        let unix = UnixListener::bind(outside.join(trial::SOCKET))?;
        // Only Linux has sockets without a place.
        #[cfg(target_os = "linux")]
        let unnamed = Some(UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?);
        #[cfg(not(target_os = "linux"))]
        let unnamed = None;
        let mark = trial::mark(&name);
        let victim = Command::new("/bin/sh")
            .args(["-c", "read line", &mark])
            .env_clear()
            .env(trial::VARIABLE, &mark)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let target = Target {
            workspace: workspace.clone(),
            outside,
            name,
            tcp: tcp.local_addr()?.port(),
            udp: mail.local_addr()?.port(),
            victim: i32::try_from(victim.id()).unwrap_or(i32::MAX),
        };
        let scene = Scene {
            workspace,
            off_limits: Vec::new(),
            pre_images: None,
            program: program.to_path_buf(),
            passed_variables: Vec::new(),
            sandbox: Sandbox::default(),
            git: crate::tools::gits::own::Own::default(),
        };
        Ok(Arena { folder, scene, target, mail, victim, _ears: (tcp, unix, unnamed) })
    }

    /// Without a box every way out must be open.
    fn is_open(&self) -> Result<(), String> {
        let found = self.attempt(None, &self.scene.program)?;
        let closed: Vec<&str> = Way::CONTROLS.iter().filter(|way| !found.contains(way)).map(|way| way.word()).collect();
        match closed.is_empty() {
            true => Ok(()),
            false => Err(format!("without any box, it is not possible to {}", closed.join(", "))),
        }
    }

    /// Whether such boxes hold. Errors with what they let out, or what keeps them from being made.
    fn holds(&self, sandbox: Sandbox) -> Result<(), String> {
        let level = sandbox.level;
        let scene = Scene { sandbox, ..self.scene.clone() };
        for manner in [Manner::Usual, Manner::Reading] {
            let room = Room::of(&scene, manner, false, &Watched::default())?;
            let program = room.as_ref().map_or(scene.program.as_path(), Room::own_program);
            let found = self.attempt(room.as_ref(), program)?;
            let may = Way::open(manner);
            let shut: Vec<&str> = may.iter().filter(|way| !found.contains(way)).map(|way| way.word()).collect();
            if !shut.is_empty() {
                return Err(format!("in it, it is not possible to {}", shut.join(", ")));
            }
            let out: Vec<&str> = found.iter().filter(|way| !may.contains(way)).map(|way| way.word()).collect();
            let out: Vec<&str> = match level {
                Level::Full => out,
                Level::Partial | Level::None => out.into_iter().filter(|word| *word != Way::Sees.word()).collect(),
            };
            if !out.is_empty() {
                return Err(format!("out of it, it is possible to {}", out.join(", ")));
            }
        }
        Ok(())
    }

    /// One trial: what was possible.
    fn attempt(&self, room: Option<&Room>, program: &Path) -> Result<BTreeSet<Way>, String> {
        let target = serde_json::to_string(&self.target).map_err(|error| error.to_string())?;
        let mut variables = vec![("PATH".into(), "/usr/bin:/bin".into()), ("TMPDIR".into(), self.folder.path().into())];
        if let Some(room) = room {
            room.dress(&mut variables);
        }
        let said = run(&self.scene, room, program, &target, variables).map_err(|error| error.to_string())?;
        let told = match room {
            None => Some(said.as_slice()),
            Some(_) => said.strip_prefix(threshold::OPEN),
        };
        let found = told.and_then(|told| serde_json::from_slice::<BTreeSet<Way>>(told).ok());
        let mut found = found.ok_or_else(|| one_line(&String::from_utf8_lossy(&said), 300))?;
        // What was sent is nothing; what has come is.
        while self.mail.recv(&mut [0; 64]).is_ok() {
            found.insert(Way::Udp);
        }
        Ok(found)
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
    }
}

/// Runs a trial under a guard, as every command is run, and gives what it says.
fn run(
    scene: &Scene,
    room: Option<&Room>,
    program: &Path,
    target: &str,
    variables: Vec<(std::ffi::OsString, std::ffi::OsString)>,
) -> io::Result<Vec<u8>> {
    let mut child = Command::new(&scene.program)
        .args([guard::WORD, "--"])
        .args(room.iter().flat_map(|room| room.words()))
        .arg(program)
        .args([guard::WORD, trial::WORD, target])
        .env_clear()
        .envs(variables)
        .current_dir(&scene.workspace)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let leash = child.stdin.take();
    let (done, is_done) = channel::<()>();
    let watch = std::thread::spawn(move || {
        let _ = is_done.recv_timeout(Duration::from_millis(limits::SYNTAX_TIMEOUT.0));
        drop(leash);
    });
    let mut said = Vec::new();
    if let Some(out) = child.stdout.take() {
        out.take(limits::RESULT_MAX_BYTES as u64).read_to_end(&mut said)?;
    }
    drop(done);
    let _ = watch.join();
    child.wait()?;
    Ok(said)
}
