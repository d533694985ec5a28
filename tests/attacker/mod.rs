//! Somebody who changes what lies on the disk as fast as the system can, while a test does something else. Rounds are
//! counted, not timed.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use nix::fcntl::AT_FDCWD;
use nix::fcntl::RenameFlags;
use nix::fcntl::renameat2;

/// How many rounds are played: few, or many with `TILLER_SLOW=1`.
pub(crate) fn rounds(few: usize, many: usize) -> usize {
    if std::env::var_os("TILLER_SLOW").is_some() { many } else { few }
}

/// Lets two names change places in one step.
pub(crate) fn exchange(one: &Path, other: &Path) {
    renameat2(AT_FDCWD, one, AT_FDCWD, other, RenameFlags::RENAME_EXCHANGE).unwrap();
}

/// Somebody who does something again and again, until it is enough.
pub(crate) struct Attacker {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Attacker {
    pub(crate) fn who(does: impl Fn() + Send + 'static) -> Attacker {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !seen.load(Ordering::Relaxed) {
                does();
                std::thread::yield_now();
            }
        });
        Attacker { stop, thread }
    }

    pub(crate) fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
    }
}
