//! What one box is made of, and the command line of bubblewrap that makes it. It starts nothing.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;
use std::path::PathBuf;

use serde::Deserialize;
use serde::Serialize;

use crate::domain::limits;
use crate::domain::sandbox::Level;
use crate::tools::sandbox::marks::Mark;

/// Where our own program stands in a full box.
pub(crate) const PROGRAM: &str = "/.tiller";
/// The home of a full box: empty, and thrown away with it.
pub(crate) const HOME: &str = "/box";
/// Its folder for temporary files.
pub(crate) const TEMPORARY: &str = "/tmp";
/// Its folder for memory that programs share.
pub(crate) const SHARED: &str = "/dev/shm";
/// Folders at the top of the file system that lead into `/usr` where they are links, and are shown where they are not.
pub(crate) const TOP: [&str; 7] = ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr"];
/// What of `/etc` can be read: how programs are found, linked and started, and what time it is.
pub(crate) const SETTINGS: [&str; 8] = [
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/alternatives",
    "/etc/localtime",
    "/etc/timezone",
    "/etc/mime.types",
    "/etc/magic",
];
/// What of `/etc` can be read as well where the network is open.
pub(crate) const NETWORK_SETTINGS: [&str; 6] = [
    "/etc/resolv.conf",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/ca-certificates.conf",
    "/etc/pki",
    "/etc/services",
];

/// Files that only the box has.
pub(crate) const MADE: [&str; 4] = ["/etc/passwd", "/etc/group", "/etc/hosts", "/etc/nsswitch.conf"];

/// One box. It is handed from the owner to the stages that make it, as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cell {
    /// Full or partial.
    pub(crate) level: Level,
    /// Bubblewrap, for a full box.
    pub(crate) bwrap: PathBuf,
    /// Whether it can forbid further boxes inside.
    pub(crate) forbids_nesting: bool,
    /// Our own program, which closes the box from within.
    pub(crate) program: PathBuf,
    /// The folder of the run.
    pub(crate) workspace: PathBuf,
    /// Whether it can be written.
    pub(crate) is_writable: bool,
    /// Whether the network is open.
    pub(crate) has_network: bool,
    /// Further folders that can be read.
    pub(crate) readable: Vec<Mark>,
    /// Further folders that can be written.
    pub(crate) writable: Vec<Mark>,
    /// What other programs run or obey by themselves: it stays as it is.
    pub(crate) kept: Vec<Mark>,
    /// The folders above it: they can't be moved away and made anew.
    pub(crate) held: Vec<Mark>,
    /// The folder of the run, as it was found.
    pub(crate) ground: Mark,
    /// Where the machine has something mounted, below what the box shows of it; as often as it has.
    pub(crate) mounted: Vec<PathBuf>,
    /// Tiller's own places: they are not there.
    pub(crate) hidden: Vec<PathBuf>,
    /// The operator's home: folders below it that can be used are found from the home of the box.
    pub(crate) home: Option<PathBuf>,
    /// The home of the box.
    pub(crate) private: PathBuf,
    /// The group of processes that counts them, where there is one.
    pub(crate) group: Option<PathBuf>,
}

impl Cell {
    /// Where something is mounted in a full box, and how often.
    pub(crate) fn mounts(&self) -> BTreeMap<PathBuf, usize> {
        let settings = SETTINGS.iter().chain(&NETWORK_SETTINGS).chain(&MADE);
        let fixed = TOP.iter().chain(settings).chain(&[TEMPORARY, HOME, SHARED, PROGRAM]).map(PathBuf::from);
        let marks = self.readable.iter().chain(&self.writable);
        let kept = self.held.iter().chain(&self.kept).filter(|_| self.is_writable);
        let own = fixed.chain(marks.chain(kept).map(|mark| mark.path.clone()));
        let own: BTreeSet<PathBuf> = own.chain(self.hidden.iter().cloned()).chain([self.workspace.clone()]).collect();
        let mut mounts = BTreeMap::new();
        // What the machine has mounted comes along with each folder above it.
        for point in &self.mounted {
            let times = point.ancestors().skip(1).filter(|folder| own.contains(*folder)).count();
            *mounts.entry(point.clone()).or_default() += times;
        }
        for point in own {
            *mounts.entry(point).or_default() += 1;
        }
        mounts
    }

    /// The arguments of bubblewrap up to the program. `made` are files that only the box has: number and path.
    pub(crate) fn words(&self, made: &[(i32, &str)]) -> Vec<OsString> {
        let mut words = Words::default();
        words.plain(&["--unshare-all", "--unshare-user", "--new-session", "--die-with-parent", "--cap-drop", "ALL"]);
        words.plain(if self.forbids_nesting { &["--disable-userns"] } else { &[] });
        words.plain(if self.has_network { &["--share-net"] } else { &[] });
        words.plain(&["--hostname", "box", "--proc", "/proc", "--dev", "/dev"]);
        for top in TOP.map(Path::new) {
            match std::fs::read_link(top) {
                Ok(target) => words.two("--symlink", &target, top),
                Err(_) => words.two("--ro-bind-try", top, top),
            }
        }
        let network: &[&str] = if self.has_network { &NETWORK_SETTINGS } else { &[] };
        for path in SETTINGS.iter().chain(network).map(Path::new) {
            words.two("--ro-bind-try", path, path);
        }
        for (number, path) in made {
            words.plain(&["--ro-bind-data", &number.to_string(), path]);
        }
        for folder in [TEMPORARY, HOME, SHARED] {
            words.plain(&["--size", &limits::BOX_FOLDER_BYTES.to_string(), "--tmpfs", folder]);
        }
        for Mark { path, .. } in &self.readable {
            words.two("--ro-bind", path, path);
        }
        for Mark { path, .. } in &self.writable {
            words.two(if self.is_writable { "--bind" } else { "--ro-bind" }, path, path);
        }
        words.two(if self.is_writable { "--bind" } else { "--ro-bind" }, &self.workspace, &self.workspace);
        self.keep(&mut words);
        for path in &self.hidden {
            match path.is_dir() {
                true => words.one("--tmpfs", path),
                false => words.two("--ro-bind", Path::new("/dev/null"), path),
            }
        }
        self.link_home(&mut words);
        words.two("--ro-bind", &self.program, Path::new(PROGRAM));
        words.plain(&["--remount-ro", "/"]);
        words.one("--chdir", &self.workspace);
        words.plain(&["--"]);
        words.0
    }

    /// What must stay as it is, and the folder that it lies in.
    fn keep(&self, words: &mut Words) {
        if self.is_writable {
            self.held.iter().for_each(|mark| words.two("--bind", &mark.path, &mark.path));
            self.kept.iter().for_each(|mark| words.two("--ro-bind", &mark.path, &mark.path));
        }
    }

    /// Programs look for their folders below the home, as `~/.cargo`.
    fn link_home(&self, words: &mut Words) {
        let all: Vec<&PathBuf> = self.readable.iter().chain(&self.writable).map(|mark| &mark.path).collect();
        let is_outermost = |path: &&&PathBuf| all.iter().all(|other| other == *path || !path.starts_with(other));
        for path in all.iter().filter(is_outermost) {
            if let Some(below) = self.home.as_ref().and_then(|home| path.strip_prefix(home).ok()) {
                words.two("--symlink", path, &Path::new(HOME).join(below));
            }
        }
    }
}

#[derive(Default)]
struct Words(Vec<OsString>);

impl Words {
    fn plain(&mut self, words: &[&str]) {
        self.0.extend(words.iter().map(OsString::from));
    }

    fn one(&mut self, option: &str, path: &Path) {
        self.0.extend([OsString::from(option), path.as_os_str().to_owned()]);
    }

    fn two(&mut self, option: &str, from: &Path, to: &Path) {
        self.one(option, from);
        self.0.push(to.as_os_str().to_owned());
    }
}
