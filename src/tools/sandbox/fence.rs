//! The fence around files: Landlock, which holds for a process and all that it starts. In a full box it is the second
//! layer; in a partial one it is the only one around files.

use std::fs::File;
use std::path::Path;
use std::path::PathBuf;

use landlock::ABI;
use landlock::Access;
use landlock::AccessFs;
use landlock::AccessNet;
use landlock::BitFlags;
use landlock::PathBeneath;
use landlock::Ruleset;
use landlock::RulesetAttr;
use landlock::RulesetCreatedAttr;
use landlock::RulesetError;
use landlock::RulesetStatus;
use landlock::Scope;
use landlock::path_beneath_rules;

use crate::domain::sandbox::Level;
use crate::tools::sandbox::cell;
use crate::tools::sandbox::cell::Cell;
use crate::tools::sandbox::marks::Mark;

/// The most that is asked for; what the kernel does not know is left out.
const NEWEST: ABI = ABI::V10;
/// Devices that any program may write.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Puts the fence around this process. Errors when it does not stand, and nothing else does.
pub(crate) fn close(cell: &Cell) -> Result<(), String> {
    // What the box is about is opened and compared, and let through as that: its name could lead elsewhere meanwhile.
    let opened = |marks: &[&Mark]| marks.iter().map(|mark| mark.open()).collect::<Result<Vec<File>, String>>();
    let read = opened(&cell.readable.iter().collect::<Vec<_>>())?;
    let written = opened(&cell.writable.iter().chain([&cell.ground]).collect::<Vec<_>>())?;
    match restrict(cell, read, written) {
        Ok(RulesetStatus::NotEnforced) if cell.level != Level::Full => Err("the kernel has no Landlock".to_string()),
        Ok(_) => Ok(()),
        Err(error) => Err(format!("the fence around files can't be put up ({error})")),
    }
}

fn restrict(cell: &Cell, read: Vec<File>, written: Vec<File>) -> Result<RulesetStatus, RulesetError> {
    let reading = AccessFs::from_read(NEWEST);
    // No device, and no socket of somebody else.
    let never = AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev | AccessFs::ResolveUnix;
    let writing = AccessFs::from_all(NEWEST) & !never;
    let given = if cell.is_writable { reading | writing } else { reading };
    let mut rules = Ruleset::default().handle_access(AccessFs::from_all(NEWEST))?.scope(Scope::from_all(NEWEST))?;
    // The network of a full box leads nowhere, and what is tested in it may talk to itself.
    if cell.level != Level::Full && !cell.has_network {
        rules = rules.handle_access(AccessNet::from_all(NEWEST))?;
    }
    let status = rules
        .create()?
        .add_rules(path_beneath_rules(readable(cell), reading))?
        .add_rules(path_beneath_rules(writable(cell), writing))?
        .add_rules(beneath(read, reading))?
        .add_rules(beneath(written, given))?
        .add_rules(path_beneath_rules(DEVICES, reading | AccessFs::WriteFile | AccessFs::Truncate))?
        .add_rules(path_beneath_rules(terminals(cell), reading | AccessFs::WriteFile | AccessFs::IoctlDev))?
        .restrict_self()?;
    Ok(status.ruleset)
}

/// Leave to use what lies below each of these.
fn beneath(
    files: Vec<File>,
    access: BitFlags<AccessFs>,
) -> impl Iterator<Item = Result<PathBeneath<File>, RulesetError>> {
    files.into_iter().map(move |file| Ok(PathBeneath::new(file, access)))
}

/// Those of a full box are its own; in a partial one they would be somebody else's.
fn terminals(cell: &Cell) -> &'static [&'static str] {
    match cell.level {
        Level::Full => &["/dev/pts", "/dev/tty"],
        Level::Partial | Level::None => &[],
    }
}

fn readable(cell: &Cell) -> Vec<PathBuf> {
    if cell.level == Level::Full {
        return vec![PathBuf::from("/")];
    }
    let network: &[&str] = if cell.has_network { &cell::NETWORK_SETTINGS } else { &[] };
    let own = ["/etc/passwd", "/etc/group", "/etc/hosts", "/etc/nsswitch.conf", "/proc"];
    let system = cell::TOP.iter().chain(&cell::SETTINGS).chain(network).chain(&own).map(PathBuf::from);
    system.chain([cell.program.clone()]).collect()
}

fn writable(cell: &Cell) -> Vec<PathBuf> {
    let mut folders = vec![cell.private.clone()];
    if cell.level == Level::Full {
        folders.extend([cell::TEMPORARY, cell::SHARED].map(PathBuf::from));
    }
    folders.retain(|folder: &PathBuf| Path::new(folder).is_absolute());
    folders
}
