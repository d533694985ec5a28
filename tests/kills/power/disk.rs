//! The files below one folder as a power cut would leave them.
//!
//! The model: bytes and lengths survive if they were written before the entry of a sync of their file that has
//! returned. Of what was written after that, nothing survives, or, where chance is asked, any of it, in pieces of a
//! sector. Names survive at once, as on file systems that write names in order: what a rename needs of the bytes
//! behind it is therefore asked the hardest way.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::path::PathBuf;

use crate::kills::power::trace::Asked;
use crate::kills::power::trace::Seen;

/// What a disk writes whole or not at all, in bytes.
const SECTOR: usize = 512;

/// What becomes of bytes that were written and not synced.
pub enum Unsynced<'a> {
    /// They are lost.
    Lost,
    /// Each sector of each write survives when this says so.
    Chance(&'a mut dyn FnMut() -> bool),
}

#[derive(Clone)]
enum Change {
    Write { at: u64, bytes: Vec<u8> },
    Cut { length: u64 },
}

#[derive(Clone, Default)]
struct File {
    synced: Vec<u8>,
    /// What came after, in the order of exits.
    pending: Vec<Change>,
    /// How many of those each sync under way covers.
    syncing: Vec<usize>,
    length: u64,
}

/// A folder and all below it.
#[derive(Clone)]
pub struct Disk {
    root: PathBuf,
    files: Vec<File>,
    /// Which file a path names.
    names: BTreeMap<PathBuf, usize>,
    folders: Vec<PathBuf>,
    /// Where a descriptor stands.
    places: BTreeMap<(u32, usize), Option<u64>>,
}

impl Disk {
    /// What is there now, all of it durable.
    pub fn of(root: &Path) -> Disk {
        let mut disk = Disk {
            root: root.to_path_buf(),
            files: Vec::new(),
            names: BTreeMap::new(),
            folders: Vec::new(),
            places: BTreeMap::new(),
        };
        if root.exists() {
            disk.take(root);
        }
        disk
    }

    fn take(&mut self, folder: &Path) {
        self.folders.push(folder.to_path_buf());
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                self.take(&entry.path());
            } else if entry.file_type().unwrap().is_file() {
                let synced = fs::read(entry.path()).unwrap();
                let length = synced.len() as u64;
                self.names.insert(entry.path(), self.files.len());
                self.files.push(File { synced, length, ..File::default() });
            }
        }
    }

    /// Plays what was seen. Errors on what it can't play.
    pub fn play(&mut self, seen: &Seen) -> Result<(), String> {
        match seen {
            Seen::Enters(Asked::Sync { path }) => {
                if let Some(file) = self.file(path) {
                    let covers = file.pending.len();
                    file.syncing.push(covers);
                }
            }
            Seen::Enters(_) => {}
            Seen::Exits(asked) => self.done(asked)?,
        }
        Ok(())
    }

    fn done(&mut self, asked: &Asked) -> Result<(), String> {
        match asked {
            Asked::Open { path, fd, makes, empties, appends } => {
                self.open(path, *fd, (*makes, *empties, *appends));
            }
            Asked::Write { path, fd, at, bytes } => self.write(path, *fd, *at, bytes),
            Asked::Cut { path, length } => {
                if let Some(file) = self.file(path) {
                    file.pending.push(Change::Cut { length: *length });
                    file.length = *length;
                }
            }
            Asked::Sync { path } => {
                if let Some(file) = self.file(path) {
                    file.sync();
                }
            }
            Asked::Rename { from, to } => self.rename(from, to),
            Asked::Exchange { one, other } => {
                if let (Some(first), Some(second)) = (self.names.get(one).copied(), self.names.get(other).copied()) {
                    self.names.insert(one.clone(), second);
                    self.names.insert(other.clone(), first);
                }
            }
            Asked::Link { from, to } => {
                if let Some(file) = self.names.get(from).copied() {
                    self.names.insert(to.clone(), file);
                }
            }
            Asked::Remove { path } => {
                self.names.remove(path);
                self.folders.retain(|folder| folder != path);
            }
            Asked::MakeFolder { path } => {
                if path.starts_with(&self.root) {
                    self.folders.push(path.clone());
                }
            }
            // A copy of bytes by the system: to be lost, as all that was not synced.
            Asked::Other { call, .. } if call == "copy_file_range" || call == "sendfile" => {}
            Asked::Other { call, path } if path.starts_with(&self.root) => {
                return Err(format!("{call} of {} can't be played", path.display()));
            }
            Asked::Other { .. } => {}
        }
        Ok(())
    }

    fn open(&mut self, path: &Path, fd: u32, (makes, empties, appends): (bool, bool, bool)) {
        if !path.starts_with(&self.root) || self.folders.iter().any(|folder| folder == path) {
            return;
        }
        if makes && !self.names.contains_key(path) {
            self.names.insert(path.to_path_buf(), self.files.len());
            self.files.push(File::default());
        }
        let Some(number) = self.names.get(path).copied() else { return };
        if empties {
            self.files[number].pending.push(Change::Cut { length: 0 });
            self.files[number].length = 0;
        }
        self.places.insert((fd, number), (!appends).then_some(0));
    }

    fn write(&mut self, path: &Path, fd: u32, at: Option<u64>, bytes: &[u8]) {
        let Some(number) = self.names.get(path).copied() else { return };
        let file = &mut self.files[number];
        let at = at.unwrap_or_else(|| {
            let place = self.places.entry((fd, number)).or_insert(Some(0));
            let at = place.unwrap_or(file.length);
            *place = place.map(|_| at + bytes.len() as u64);
            at
        });
        file.length = file.length.max(at + bytes.len() as u64);
        file.pending.push(Change::Write { at, bytes: bytes.to_vec() });
    }

    fn rename(&mut self, from: &Path, to: &Path) {
        let moved = |path: &Path| {
            path.strip_prefix(from)
                .ok()
                .map(|rest| if rest.as_os_str().is_empty() { to.to_path_buf() } else { to.join(rest) })
        };
        let names = std::mem::take(&mut self.names);
        let kept = names.iter().filter(|(path, _)| moved(path).is_none() && path.as_path() != to);
        self.names = kept.map(|(path, file)| (path.clone(), *file)).collect();
        self.names.extend(names.iter().filter_map(|(path, file)| Some((moved(path)?, *file))));
        for folder in &mut self.folders {
            *folder = moved(folder).unwrap_or_else(|| folder.clone());
        }
    }

    fn file(&mut self, path: &Path) -> Option<&mut File> {
        self.names.get(path).map(|number| &mut self.files[*number])
    }

    /// Whether a power cut would lose bytes that were written.
    pub fn has_unsynced(&self) -> bool {
        self.names.values().any(|number| !self.files[*number].pending.is_empty())
    }

    /// Writes what a power cut leaves of it into a folder of another place.
    pub fn leave(&self, to: &Path, mut unsynced: Unsynced<'_>) {
        let place = |path: &Path| to.join(path.strip_prefix(&self.root).unwrap());
        for folder in &self.folders {
            fs::create_dir_all(place(folder)).unwrap();
            fs::set_permissions(place(folder), fs::Permissions::from_mode(0o700)).unwrap();
        }
        for (path, number) in &self.names {
            let file = &self.files[*number];
            let mut bytes = file.synced.clone();
            if let Unsynced::Chance(chance) = &mut unsynced {
                file.pending.iter().for_each(|change| change.happen(&mut bytes, &mut **chance));
            }
            fs::write(place(path), bytes).unwrap();
            fs::set_permissions(place(path), fs::Permissions::from_mode(0o600)).unwrap();
        }
    }
}

impl File {
    /// A sync returned: what was there at its entry is durable.
    fn sync(&mut self) {
        let covers = if self.syncing.is_empty() { 0 } else { self.syncing.remove(0) };
        for change in self.pending.drain(..covers) {
            change.happen(&mut self.synced, &mut || true);
        }
        for other in &mut self.syncing {
            *other = other.saturating_sub(covers);
        }
    }
}

impl Change {
    /// Happens to the bytes of a file, each sector of it when `survives` says so.
    fn happen(&self, file: &mut Vec<u8>, survives: &mut dyn FnMut() -> bool) {
        match self {
            Change::Cut { length } => {
                if survives() {
                    file.resize(usize::try_from(*length).unwrap(), 0);
                }
            }
            Change::Write { at, bytes } => {
                let at = usize::try_from(*at).unwrap();
                let mut from = 0;
                while from < bytes.len() {
                    let to = bytes.len().min((at + from) / SECTOR * SECTOR + SECTOR - at);
                    if survives() {
                        if file.len() < at + to {
                            file.resize(at + to, 0);
                        }
                        file[at + from..at + to].copy_from_slice(&bytes[from..to]);
                    }
                    from = to;
                }
            }
        }
    }
}

#[test]
fn only_what_was_synced_is_left() {
    let root = PathBuf::from("/nowhere");
    let path = root.join("a");
    let write = |at, text: &str| Asked::Write { path: path.clone(), fd: 3, at: Some(at), bytes: text.into() };
    let sync = || Asked::Sync { path: path.clone() };
    let open = Asked::Open { path: path.clone(), fd: 3, makes: true, empties: false, appends: false };
    let mut disk = Disk::of(&root);
    disk.folders.push(root.clone());
    for seen in [
        Seen::Exits(open),
        Seen::Exits(write(0, "one ")),
        Seen::Enters(sync()),
        Seen::Exits(write(4, "two ")),
        Seen::Exits(sync()),
        Seen::Exits(write(8, "three")),
        Seen::Exits(Asked::Rename { from: path.clone(), to: root.join("b") }),
    ] {
        disk.play(&seen).unwrap();
    }
    let dir = tempfile::tempdir().unwrap();
    disk.leave(&dir.path().join("lost"), Unsynced::Lost);
    assert_eq!(fs::read_to_string(dir.path().join("lost/b")).unwrap(), "one ");
    disk.leave(&dir.path().join("all"), Unsynced::Chance(&mut || true));
    assert_eq!(fs::read_to_string(dir.path().join("all/b")).unwrap(), "one two three");
    assert!(!dir.path().join("all/a").exists());
}
