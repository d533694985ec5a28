//! A whole run, as small as one can be.

use tiller::domain::event::Event;
use tiller::domain::event::Record;
use tiller::domain::status::ParkReason;
use tiller::domain::status::Status;

use crate::store::beginning::created;
use crate::store::records::noise;
use crate::store::records::record;
use crate::store::records::said;

/// A record after which the anchor is written.
pub(crate) fn parked(seq: u64) -> Record {
    record(seq, Event::StatusChanged { status: Status::Parked(ParkReason::Paused), by: None })
}

/// A whole small run: its creation, then `count` records, the last of which parks it.
pub(crate) fn small_run(count: u64, bytes: usize) -> Vec<Record> {
    let said = (2..=count).map(|seq| said(seq, &noise(seq, bytes)));
    [created("the goal")].into_iter().chain(said).chain([parked(count + 1)]).collect()
}
