//! A snapshot and the values that it is stored as, and when one is due. Pure; it must not know sled.
//!
//! The first value says which fold made it, at which record, and what its bytes hash to; the others are its JSON,
//! compressed and cut (docs/JOURNAL.md, "Snapshots").

use serde::Deserialize;
use serde::Serialize;

use crate::domain::event::Event;
use crate::domain::event::Record;
use crate::domain::id::Seq;
use crate::domain::limits;
use crate::domain::run::Run;
use crate::domain::snapshot::FOLD_VERSION;
use crate::domain::snapshot::Snapshot;
use crate::domain::status::ParkReason;
use crate::domain::status::Status;
use crate::store::codec;
use crate::store::codec::Link;
use crate::store::codec::Mark;
use crate::store::codec::Stub;

#[derive(Serialize, Deserialize)]
struct Header {
    fold: u32,
    seq: Seq,
    record: String,
    hash: String,
    bytes: usize,
    packed: usize,
}

/// The values of the snapshot of a run whose last record is at `head`. Errors when it has no JSON or is too long; why,
/// as the end of a sentence.
pub(crate) fn encode(run: &Run, head: Mark) -> Result<Vec<Vec<u8>>, String> {
    let json = serde_json::to_vec(&Snapshot::of(run)).map_err(|error| error.to_string())?;
    if json.len() > limits::SNAPSHOT_MAX_BYTES {
        return Err(format!("it has {} bytes, which is too long", json.len()));
    }
    let packed = codec::pack(&json).map_err(|error| error.to_string())?;
    let header = Header {
        fold: FOLD_VERSION,
        seq: head.seq,
        record: head.link.whole(),
        hash: codec::hash(&json),
        bytes: json.len(),
        packed: packed.len(),
    };
    let header = serde_json::to_vec(&header).map_err(|error| error.to_string())?;
    let pieces = packed.chunks(limits::PIECE_BYTES).map(<[u8]>::to_vec);
    Ok(std::iter::once(header).chain(pieces).collect())
}

/// The snapshot of these values, which must have been made at `at`. Errors when it is not whole, of another fold, or
/// not of this journal; why, as the end of a sentence.
pub(crate) fn decode(values: &[Vec<u8>], at: Mark) -> Result<Snapshot, String> {
    let (header, pieces) = values.split_first().ok_or("its first piece is missing")?;
    let header: Header = serde_json::from_slice(header).map_err(|_| "its first piece can't be read")?;
    if header.fold != FOLD_VERSION {
        return Err(format!("it is of version {} of the fold, not of {FOLD_VERSION}", header.fold));
    }
    if header.seq != at.seq || header.record != at.link.whole() {
        return Err("the record that it was made at is another one".to_string());
    }
    if header.bytes > limits::SNAPSHOT_MAX_BYTES {
        return Err("it is too long".to_string());
    }
    let link = codec::unhex(&header.hash).map(Link).ok_or("it names no hash")?;
    let stub = Stub { link, bytes: header.bytes, packed: header.packed };
    let json = codec::unpack(&stub, &pieces.concat(), at.seq).map_err(|_| "its pieces are not what was written")?;
    let snapshot: Snapshot = serde_json::from_slice(&json).map_err(|_| "it can't be read")?;
    if snapshot.seq() != at.seq {
        return Err("it is of another record".to_string());
    }
    Ok(snapshot)
}

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
