//! When a snapshot is due. Pure; it must not know what one looks like.

use crate::domain::event::Event;
use crate::domain::event::Record;
use crate::domain::limits;
use crate::domain::status::ParkReason;
use crate::domain::status::Status;

/// How much was recorded since the newest snapshot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cadence {
    iterations: u64,
    bytes: usize,
    /// A run rests, where the next process begins.
    rests: bool,
    /// Length of that snapshot, packed.
    last: usize,
}

impl Cadence {
    /// Where there is no snapshot: one is due with the next records.
    pub(crate) const NONE: Cadence =
        Cadence { iterations: limits::SNAPSHOT_ITERATIONS, bytes: 0, rests: false, last: 0 };

    /// Right after a snapshot of this length.
    pub(crate) fn after(last: usize) -> Cadence {
        Cadence { iterations: 0, bytes: 0, rests: false, last }
    }

    /// Takes in what was recorded; `bytes` are those that it takes in the store.
    pub(crate) fn take(&mut self, records: &[Record], bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
        for record in records {
            self.iterations += u64::from(matches!(&record.event, Event::IterationClosed { .. }));
            self.rests |= match &record.event {
                Event::StatusChanged { status: Status::Parked(ParkReason::Approval), .. } => false,
                Event::StatusChanged { status, .. } => matches!(status, Status::Parked(_)) || status.is_end(),
                Event::Rewound { .. } => true,
                _ => false,
            };
        }
    }

    /// Whether a snapshot is due. In between it waits until as much was recorded as the last one is long, so that
    /// snapshots never cost more than the records, however long the run is.
    pub(crate) fn is_due(&self) -> bool {
        let is_time = self.iterations >= limits::SNAPSHOT_ITERATIONS || self.bytes >= limits::SNAPSHOT_BYTES;
        self.rests || (is_time && self.bytes >= self.last)
    }
}
