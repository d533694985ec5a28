//! The second net under a command: what its guard leaves behind when something kills the guard itself. The owner is
//! the next reaper up, so such orphans become its children; they are no guards of ours, and are ended
//! (docs/SAFETY.md, R38).

use std::collections::BTreeSet;
use std::io;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::sys::wait::WaitPidFlag;
use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use tokio::process::Child;
use tokio::process::Command;
use tokio::time::Instant;
use tokio::time::sleep;

use crate::domain::limits;
use crate::tools::family;
use crate::tools::wait;

/// Between two rounds of killing.
const KILL_EVERY: Duration = Duration::from_millis(20);

/// The guards that this process started and that may still live. A guard is started and noted under one lock, so
/// that none is taken for an orphan.
static GUARDS: Mutex<BTreeSet<Pid>> = Mutex::new(BTreeSet::new());

/// Makes this process the parent of what a killed guard leaves. Without it, and elsewhere than on Linux, a killed
/// guard's orphans go to the system.
pub fn adopt() {
    #[cfg(target_os = "linux")]
    if let Err(error) = nix::sys::prctl::set_child_subreaper(true) {
        tracing::warn!("orphans of a killed guard will not be found: {error}");
    }
}

fn adopts() -> bool {
    #[cfg(target_os = "linux")]
    let adopts = nix::sys::prctl::get_child_subreaper().unwrap_or(false);
    #[cfg(not(target_os = "linux"))]
    let adopts = false;
    adopts
}

/// Starts a guard.
pub(crate) fn start_guard(command: &mut Command) -> io::Result<Child> {
    let mut guards = GUARDS.lock().unwrap_or_else(PoisonError::into_inner);
    let child = command.spawn()?;
    guards.extend(child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw));
    Ok(child)
}

/// Ends all orphans and gives whether none is left.
pub(crate) async fn end_all() -> bool {
    if !adopts() {
        return false;
    }
    let patience = Instant::now() + wait(limits::GUARD_KILL_PATIENCE);
    while end_once() > 0 {
        if Instant::now() > patience {
            return false;
        }
        sleep(KILL_EVERY).await;
    }
    true
}

/// Stops, kills and buries what can be found now, and gives how many processes that were.
fn end_once() -> usize {
    let orphans = orphans();
    for signal in [Signal::SIGSTOP, Signal::SIGKILL] {
        family::signal_each(&orphans, signal);
    }
    for orphan in &orphans {
        // It fails for all but our own children; the others become ours in a later round.
        let _ = waitpid(*orphan, Some(WaitPidFlag::WNOHANG));
    }
    orphans.len()
}

/// What is below us and below no guard of ours.
fn orphans() -> Vec<Pid> {
    let mut guards = GUARDS.lock().unwrap_or_else(PoisonError::into_inner);
    // The number of one that ended may come back as somebody else's.
    guards.retain(|guard| family::parent_of(*guard) == Some(Pid::this()));
    family::below(Pid::this(), &guards)
}
