//! A record and the bytes it is stored as: JSON, the hash chain, and pieces for what is long.
//!
//! Pure: bytes in, bytes out. It must not know sled, files or clocks. Format: docs/JOURNAL.md, "On disk".

use std::io::Read;
use std::io::Write;

use lz4_flex::frame::FrameDecoder;
use lz4_flex::frame::FrameEncoder;
use serde::Deserialize;
use serde::Serialize;
use sha2::Digest;
use sha2::Sha256;

use crate::domain::event::Event;
use crate::domain::event::FORMAT_VERSION;
use crate::domain::event::Record;
use crate::domain::id::Seq;
use crate::domain::limits;
use crate::domain::text::hex;
use crate::domain::time::Span;
use crate::domain::time::Timestamp;
use crate::store::Newer;
use crate::store::StoreError;
use crate::store::upcast;

/// SHA-256 of a whole record as JSON. Its first half stands in the record after it as `prev`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link(pub(crate) [u8; 32]);

impl Link {
    /// What the first record follows.
    pub(crate) const NONE: Link = Link([0; 32]);

    fn of(json: &[u8]) -> Link {
        Link(Sha256::digest(json).into())
    }

    fn short(&self) -> String {
        hex(&self.0[..16])
    }

    /// The hash in hex.
    pub(crate) fn whole(&self) -> String {
        hex(&self.0)
    }
}

/// A position of the journal and what the record there must hash to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// The position.
    pub(crate) seq: Seq,
    /// The hash of the record there.
    pub(crate) link: Link,
}

impl Mark {
    /// Before the first record.
    pub(crate) const START: Mark = Mark { seq: Seq(0), link: Link::NONE };
}

/// Stored bytes that are not what this version wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unfit {
    /// They are damaged; why, as the end of a sentence.
    Damaged(String),
    /// They are of a newer version.
    TooNew(Newer),
}

/// A record, ready to be stored.
#[derive(Debug)]
pub(crate) struct Encoded {
    /// Its place and hash.
    pub(crate) mark: Mark,
    /// The line for the journal tree; shorter than `limits::VALUE_MAX_BYTES`.
    pub(crate) value: Vec<u8>,
    /// The record's JSON, compressed, cut to values for the blob tree; empty when it fits into `value`.
    pub(crate) pieces: Vec<Vec<u8>>,
}

/// What a value of the journal tree holds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// The record itself.
    Whole,
    /// The name of its pieces.
    Stub(Stub),
}

/// The name of a record's pieces.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stub {
    /// The record's hash, which is the first part of the keys of its pieces.
    pub(crate) link: Link,
    /// Length of its JSON, in bytes.
    pub(crate) bytes: usize,
    /// Length of its pieces together, in bytes.
    pub(crate) packed: usize,
}

impl Stub {
    /// How many pieces there are. At most 4,097: lengths were checked, and lz4 adds little to what it can't shorten.
    pub(crate) fn pieces(&self) -> usize {
        self.packed.div_ceil(limits::PIECE_BYTES)
    }
}

#[derive(Serialize)]
struct WholeOut<'a> {
    v: u32,
    seq: Seq,
    at: Timestamp,
    active: Span,
    prev: String,
    #[serde(with = "crate::domain::tagged")]
    event: &'a Event,
}

#[derive(Deserialize)]
struct WholeIn {
    v: u32,
    seq: Seq,
    at: Timestamp,
    active: Span,
    prev: String,
    #[serde(with = "crate::domain::tagged")]
    event: Event,
}

/// No stub is longer: five names, a hash and four numbers.
const STUB_MAX_BYTES: usize = 256;

#[derive(Serialize, Deserialize)]
struct StubJson {
    v: u32,
    seq: Seq,
    blob: String,
    bytes: usize,
    packed: usize,
}

/// The field that tells versions apart.
#[derive(Deserialize)]
struct Version {
    v: u32,
}

/// The fields that tell versions and forms apart.
#[derive(Deserialize)]
struct Head {
    v: u32,
    blob: Option<String>,
}

/// Encodes a batch that follows `head`. Errors with `NotDense` or `TooLong`, or `Disk` if a record has no JSON.
pub(crate) fn encode_batch(records: &[Record], head: Mark) -> Result<Vec<Encoded>, StoreError> {
    let mut before = head;
    let mut batch = Vec::with_capacity(records.len());
    for record in records {
        if record.seq != before.seq.next() {
            return Err(StoreError::NotDense { found: record.seq, stored: before.seq });
        }
        let encoded = encode(record, before.link)?;
        before = encoded.mark;
        batch.push(encoded);
    }
    Ok(batch)
}

fn encode(record: &Record, prev: Link) -> Result<Encoded, StoreError> {
    let Record { seq, at, active, event } = record;
    let whole = WholeOut { v: FORMAT_VERSION, seq: *seq, at: *at, active: *active, prev: prev.short(), event };
    let unwritable = |why: String| StoreError::Disk { doing: format!("encoding record {seq}"), why };
    let json = serde_json::to_vec(&whole).map_err(|error| unwritable(error.to_string()))?;
    store(json, *seq)
}

/// A record's whole JSON, ready to be stored at its place. Errors with `TooLong`, or `Disk` if it can't be packed.
pub(crate) fn store(json: Vec<u8>, seq: Seq) -> Result<Encoded, StoreError> {
    let unwritable = |why: String| StoreError::Disk { doing: format!("encoding record {seq}"), why };
    if json.len() > limits::RECORD_MAX_BYTES {
        return Err(StoreError::TooLong { seq, bytes: json.len() });
    }
    let link = Link::of(&json);
    let mark = Mark { seq, link };
    // One byte less than a value has room for: the end of the line.
    if json.len() < limits::VALUE_MAX_BYTES {
        return Ok(Encoded { mark, value: json, pieces: Vec::new() });
    }
    let packed = pack(&json).map_err(|error| unwritable(error.to_string()))?;
    let stub = StubJson { v: FORMAT_VERSION, seq, blob: hex(&link.0), bytes: json.len(), packed: packed.len() };
    let value = serde_json::to_vec(&stub).map_err(|error| unwritable(error.to_string()))?;
    let pieces = packed.chunks(limits::PIECE_BYTES).map(<[u8]>::to_vec).collect();
    Ok(Encoded { mark, value, pieces })
}

/// The key of a piece: the record's hash, then the number of the piece, big endian.
pub(crate) fn piece_key(link: Link, number: usize) -> [u8; 34] {
    let mut key = [0; 34];
    key[..32].copy_from_slice(&link.0);
    // Lengths were checked on both ways, so a number above 65,535 can't come.
    key[32..].copy_from_slice(&u16::try_from(number).unwrap_or(u16::MAX).to_be_bytes());
    key
}

/// What a value of the journal tree at `seq` holds.
pub(crate) fn form(value: &[u8], seq: Seq) -> Result<Form, Unfit> {
    // Parsed once and not twice: most of what is read is whole, and says its version when it is parsed.
    if value.len() > STUB_MAX_BYTES {
        return Ok(Form::Whole);
    }
    let head: Head = read_json(value, seq)?;
    if head.v > FORMAT_VERSION {
        return Err(Unfit::TooNew(Newer::Format(head.v)));
    }
    if head.blob.is_none() {
        return Ok(Form::Whole);
    }
    let stub: StubJson = read_json(value, seq)?;
    let damaged = |why: &str| Unfit::Damaged(format!("record {seq} names its pieces wrongly: {why}"));
    let Some(link) = unhex(&stub.blob) else { return Err(damaged("that is no hash")) };
    if stub.seq != seq {
        return Err(damaged(&format!("they are of record {}", stub.seq)));
    }
    if stub.bytes > limits::RECORD_MAX_BYTES || stub.packed > 2 * limits::RECORD_MAX_BYTES {
        return Err(damaged("they are too long"));
    }
    Ok(Form::Stub(Stub { link: Link(link), bytes: stub.bytes, packed: stub.packed }))
}

/// The JSON of a record from its pieces, put together.
pub(crate) fn unpack(stub: &Stub, packed: &[u8], seq: Seq) -> Result<Vec<u8>, Unfit> {
    let damaged = |why: &str| Unfit::Damaged(format!("the pieces of record {seq} are not what was written: {why}"));
    if packed.len() != stub.packed {
        return Err(damaged("their length differs"));
    }
    let mut json = Vec::with_capacity(stub.bytes);
    let most = u64::try_from(stub.bytes).unwrap_or(u64::MAX).saturating_add(1);
    FrameDecoder::new(packed).take(most).read_to_end(&mut json).map_err(|_| damaged("they can't be unpacked"))?;
    if json.len() != stub.bytes || Link::of(&json) != stub.link {
        return Err(damaged("their hash differs"));
    }
    Ok(json)
}

/// The record of whole JSON, which must follow `before`; and its mark.
pub(crate) fn parse(json: &[u8], before: Mark) -> Result<(Record, Mark), Unfit> {
    let seq = before.seq.next();
    let whole = read_whole(json, seq)?;
    if whole.seq != seq {
        return Err(Unfit::Damaged(format!("record {} stands in the place of record {seq}", whole.seq)));
    }
    if whole.prev != before.link.short() {
        return Err(Unfit::Damaged(format!("record {seq} does not follow the record before it: their hashes differ")));
    }
    let record = Record { seq, at: whole.at, active: whole.active, event: whole.event };
    Ok((record, mark(json, seq)))
}

/// What happened in a record, of whole JSON that is not compared with the record before it.
pub(crate) fn event(json: &[u8]) -> Result<Event, Unfit> {
    Ok(read_whole(json, Seq(0))?.event)
}

/// Reads a record of this version or of an older one.
fn read_whole(json: &[u8], seq: Seq) -> Result<WholeIn, Unfit> {
    let read = serde_json::from_slice::<WholeIn>(json);
    let version = match &read {
        Ok(whole) => whole.v,
        Err(_) => read_json::<Version>(json, seq)?.v,
    };
    if version > FORMAT_VERSION {
        return Err(Unfit::TooNew(Newer::Format(version)));
    }
    if version == FORMAT_VERSION {
        return read.map_err(|error| {
            // What this version has no name for was added by a later one, or by somebody's hand.
            let is_added = error.to_string().starts_with("unknown variant");
            if is_added { Unfit::TooNew(Newer::Word(seq)) } else { unreadable(&error, seq) }
        });
    }
    let raised = upcast::raise(read_json(json, seq)?, version, &upcast::STEPS);
    // By way of its text: to read a record from values as well would be built a second time, for every type within.
    raised
        .and_then(|record| serde_json::from_slice(record.to_string().as_bytes()).ok())
        .ok_or_else(|| Unfit::Damaged(format!("record {seq} is not of the format that it names ({version})")))
}

/// SHA-256 of a record's whole JSON, in hex.
pub(crate) fn hash(json: &[u8]) -> String {
    Link::of(json).whole()
}

/// The mark of whole JSON that stands at `seq`.
pub(crate) fn mark(json: &[u8], seq: Seq) -> Mark {
    Mark { seq, link: Link::of(json) }
}

fn read_json<'a, T: Deserialize<'a>>(bytes: &'a [u8], seq: Seq) -> Result<T, Unfit> {
    serde_json::from_slice(bytes).map_err(|error| unreadable(&error, seq))
}

/// The parser's own message may quote the record, so only its place is told.
fn unreadable(error: &serde_json::Error, seq: Seq) -> Unfit {
    Unfit::Damaged(format!("record {seq} can't be read (line {}, column {})", error.line(), error.column()))
}

/// Compresses, as pieces are.
pub(crate) fn pack(json: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = FrameEncoder::new(Vec::new());
    encoder.write_all(json)?;
    encoder.finish().map_err(std::io::Error::other)
}

/// The bytes of a hash in hex; nothing when it is none.
pub(crate) fn unhex(text: &str) -> Option<[u8; 32]> {
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; 32];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::domain::id::CallId;
    use crate::domain::status::Detector;
    use crate::domain::tool::Probe;

    fn record(seq: u64, text_bytes: usize) -> Record {
        let event = if text_bytes == 0 {
            Event::ToolCallProbed { call: CallId(7), probe: Probe::Unknown }
        } else {
            Event::StallDetected { detector: Detector::Repeat, diagnosis: "x".repeat(text_bytes) }
        };
        Record { seq: Seq(seq), at: Timestamp(12), active: Span(3), event }
    }

    /// The format itself: what stands here must be read for ever.
    #[test]
    fn the_stored_bytes_are_these() {
        let batch = encode_batch(&[record(1, 0), record(2, 0)], Mark::START).unwrap();
        let texts = batch.iter().map(|one| String::from_utf8(one.value.clone()).unwrap()).collect::<Vec<_>>();
        assert_eq!(
            texts,
            [
                r#"{"v":1,"seq":1,"at":12,"active":3,"prev":"00000000000000000000000000000000","event":{"type":"tool_call_probed","call":7,"probe":"unknown"}}"#,
                r#"{"v":1,"seq":2,"at":12,"active":3,"prev":"PREV","event":{"type":"tool_call_probed","call":7,"probe":"unknown"}}"#,
            ]
            .map(|text| text.replace("PREV", &hex(&batch[0].mark.link.0[..16])))
        );
        let long = encode_batch(&[record(1, 8_000)], Mark::START).unwrap();
        let stub = String::from_utf8(long[0].value.clone()).unwrap();
        let hash = hex(&long[0].mark.link.0);
        assert!(stub.starts_with(&format!(r#"{{"v":1,"seq":1,"blob":"{hash}","bytes":81"#)), "{stub}");
    }

    #[test]
    fn a_record_is_cut_where_a_value_is_full() {
        let overhead = encode(&record(1, 1), Link::NONE).unwrap().value.len() - 1;
        for (bytes, pieces) in [(limits::VALUE_MAX_BYTES - overhead - 1, 0), (limits::VALUE_MAX_BYTES - overhead, 1)] {
            let encoded = encode(&record(1, bytes), Link::NONE).unwrap();
            assert_eq!(encoded.pieces.len(), pieces);
            assert!(encoded.value.len() <= limits::VALUE_MAX_BYTES);
        }
    }

    /// What comes of a stub with these fields, by its first words.
    fn check(fields: &str) -> String {
        match form(format!("{{{fields}}}").as_bytes(), Seq(4)) {
            Ok(form) => format!("{form:?}"),
            Err(unfit) => format!("{unfit:?}"),
        }
    }

    #[test]
    fn stubs_are_not_believed() {
        let hash = "ab".repeat(32);
        assert!(check(&format!(r#""v":1,"seq":4,"blob":"{hash}","bytes":9,"packed":9"#)).starts_with("Stub"));
        assert_eq!(check(r#""v":2,"anything":[]"#), "TooNew(Format(2))");
        assert!(check(&format!(r#""v":1,"seq":5,"blob":"{hash}","bytes":9,"packed":9"#)).contains("of record 5"));
        assert!(check(r#""v":1,"seq":4,"blob":"abc","bytes":9,"packed":9"#).contains("no hash"));
        let huge = format!(r#""v":1,"seq":4,"blob":"{hash}","bytes":99999999999,"packed":9"#);
        assert!(check(&huge).contains("too long"));
        assert!(check(r#""v":-1"#).contains("can't be read"));
    }

    #[test]
    fn a_bomb_is_cut_short() {
        let packed = pack(&vec![b' '; 64 << 20]).unwrap();
        let stub = Stub { link: Link::NONE, bytes: 100, packed: packed.len() };
        let unfit = unpack(&stub, &packed, Seq(1)).unwrap_err();
        assert!(matches!(unfit, Unfit::Damaged(why) if why.contains("hash differs")));
    }
}
