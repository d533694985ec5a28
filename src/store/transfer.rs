//! A journal as lines of text: the way out of any store, and back.
//!
//! The first line says what follows: which run, how many records, and the hash of the last. Each line after it is a
//! record, byte for byte as the hash chain covers it. Pure: text in, text out.

use serde::Deserialize;
use serde::Serialize;

use crate::domain::event::FORMAT_VERSION;
use crate::domain::event::Record;
use crate::domain::id::RunId;
use crate::domain::text::counted;
use crate::store::Newer;
use crate::store::StoreError;
use crate::store::codec;
use crate::store::codec::Encoded;
use crate::store::codec::Mark;
use crate::store::codec::Unfit;

/// What the first line of such a file says it is.
const KIND: &str = "tiller";

/// A journal that was read from lines, proven to be what was written.
#[derive(Debug)]
pub struct Carried {
    /// The run that it is of.
    pub run: RunId,
    /// Its records.
    pub records: Vec<Record>,
    /// The same, ready to be stored.
    pub(crate) encoded: Vec<Encoded>,
}

#[derive(Serialize, Deserialize)]
struct Header {
    journal: String,
    format: u32,
    run: String,
    records: usize,
    head: String,
}

impl Carried {
    /// Goes on with a record of this place's own.
    pub fn push(&mut self, record: Record) -> Result<(), StoreError> {
        let before = self.encoded.last().map_or(Mark::START, |one| one.mark);
        self.encoded.extend(codec::encode_batch(std::slice::from_ref(&record), before)?);
        self.records.push(record);
        Ok(())
    }
}

/// A journal as lines. `lines` are its records as they are stored, from the first on.
pub fn write(run: &RunId, lines: &[String]) -> Result<String, StoreError> {
    let header = Header {
        journal: KIND.to_string(),
        format: FORMAT_VERSION,
        run: run.to_string(),
        records: lines.len(),
        head: lines.last().map(|line| codec::hash(line.as_bytes())).unwrap_or_default(),
    };
    let unwritable = |error: serde_json::Error| StoreError::Disk {
        doing: format!("writing the journal of run {run} as lines"),
        why: error.to_string(),
    };
    let mut text = serde_json::to_string(&header).map_err(unwritable)?;
    for line in lines {
        text.push('\n');
        text.push_str(line);
    }
    text.push('\n');
    Ok(text)
}

/// Reads what `write` wrote. Errors with `Foreign` when it is not that, whole and unchanged, and with
/// `ForeignTooNew`.
pub fn read(text: &str) -> Result<Carried, StoreError> {
    let foreign = |why: String| StoreError::Foreign { why };
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let header: Header = serde_json::from_str(first)
        .ok()
        .filter(|header: &Header| header.journal == KIND)
        .ok_or_else(|| foreign("its first line is not that of an exported journal".to_string()))?;
    let run = RunId::try_from(header.run).map_err(foreign)?;
    if header.format > FORMAT_VERSION {
        return Err(StoreError::ForeignTooNew { found: Newer::Format(header.format) });
    }
    let mut mark = Mark::START;
    let (mut records, mut encoded) = (Vec::new(), Vec::new());
    for line in lines {
        let (record, next) = codec::parse(line.as_bytes(), mark).map_err(|unfit| match unfit {
            Unfit::Damaged(why) => foreign(why),
            Unfit::TooNew(found) => StoreError::ForeignTooNew { found },
        })?;
        encoded.push(codec::store(line.as_bytes().to_vec(), next.seq)?);
        records.push(record);
        mark = next;
    }
    if records.is_empty() || records.len() != header.records {
        return Err(foreign(format!("it should have {} and has {}", counted(header.records, "record"), records.len())));
    }
    if mark.link.whole() != header.head {
        return Err(foreign("its last record is not the one that was exported".to_string()));
    }
    Ok(Carried { run, records, encoded })
}
