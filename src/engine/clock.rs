//! The clock. Nobody else reads the time of day.

use std::time::Duration;
use std::time::SystemTime;
use std::time::UNIX_EPOCH;

use async_trait::async_trait;
use tokio::time::Instant;

use crate::domain::time::Span;
use crate::domain::time::Timestamp;

/// Reads the time and waits for it.
#[async_trait]
pub trait Clock: Send + Sync + 'static {
    /// The time of day.
    fn now(&self) -> Timestamp;
    /// Time since some start, by a clock that never goes back.
    fn mono(&self) -> Span;
    /// Returns when the time of day has reached `at`.
    async fn sleep_until(&self, at: Timestamp);
}

/// The clock of this machine.
pub struct SystemClock {
    started: Instant,
}

impl SystemClock {
    /// A clock that starts now.
    pub fn start() -> Self {
        SystemClock { started: Instant::now() }
    }
}

/// A sleep is cut into pieces of this length, so that a change of the time of day, or a machine that slept, is noticed.
const LONGEST_SLEEP: Duration = Duration::from_secs(30);

#[async_trait]
impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    fn mono(&self) -> Span {
        Span(u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    async fn sleep_until(&self, at: Timestamp) {
        loop {
            let left = at.since(self.now());
            if left == Span(0) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(left.0).min(LONGEST_SLEEP)).await;
        }
    }
}
