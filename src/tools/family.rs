//! The process table: who descends from whom, and a signal to all who do. It decides nothing.

use std::collections::BTreeSet;
use std::collections::HashMap;

use nix::sys::signal::Signal;
use nix::sys::signal::kill;
use nix::unistd::Pid;

/// Sends a signal to each of these. One that ended in the meantime is what we want.
pub(crate) fn signal_each(processes: &[Pid], signal: Signal) {
    for process in processes {
        let _ = kill(*process, signal);
    }
}

/// Every process below this one, children before their own children, without those of `spared` and what is below
/// them.
pub(crate) fn below(root: Pid, spared: &BTreeSet<Pid>) -> Vec<Pid> {
    let mut children = HashMap::<Pid, Vec<Pid>>::new();
    for (process, parent) in table() {
        children.entry(parent).or_default().push(process);
    }
    let mut found = Vec::new();
    let mut waiting = vec![root];
    while let Some(process) = waiting.pop() {
        for child in children.remove(&process).into_iter().flatten().filter(|child| !spared.contains(child)) {
            found.push(child);
            waiting.push(child);
        }
    }
    found
}

/// Every process with its parent.
fn table() -> Vec<(Pid, Pid)> {
    let mut table = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(process) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let process = Pid::from_raw(process);
        table.extend(parent_of(process).map(|parent| (process, parent)));
    }
    table
}

/// The parent of a process, where there is such a process.
pub(crate) fn parent_of(process: Pid) -> Option<Pid> {
    let stat = std::fs::read(format!("/proc/{process}/stat")).ok()?;
    parent(&stat).map(Pid::from_raw)
}

/// The parent in a line of the process table, `PID (NAME) STATE PARENT …`; the name may hold anything.
fn parent(stat: &[u8]) -> Option<i32> {
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(stat.get(end + 1..)?).ok()?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_is_found_whatever_a_program_is_called() {
        for (line, wanted) in [
            ("12 (sh) S 7 12 12 0", Some(7)),
            ("12 (a) S 9 (b) R 7 1", Some(7)),
            ("12 () \n) Z 1 0", Some(1)),
            ("12 (sh", None),
            ("12 (sh)", None),
            ("", None),
        ] {
            assert_eq!(parent(line.as_bytes()), wanted, "{line}");
        }
    }
}
