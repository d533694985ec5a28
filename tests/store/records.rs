//! Records of any size.

use tiller::domain::command::Policy;
use tiller::domain::event::Event;
use tiller::domain::event::Record;
use tiller::domain::id::ClientId;
use tiller::domain::id::InterjectionId;
use tiller::domain::id::Seq;
use tiller::domain::time::Span;
use tiller::domain::time::Timestamp;

pub(crate) fn record(seq: u64, event: Event) -> Record {
    Record { seq: Seq(seq), at: Timestamp(1_000_000 + seq), active: Span(seq), event }
}

/// A record that carries a text.
pub(crate) fn said(seq: u64, text: &str) -> Record {
    let id = InterjectionId(u32::try_from(seq).unwrap());
    record(
        seq,
        Event::InterjectionQueued {
            id,
            text: text.to_string(),
            by: ClientId("test".to_string()),
            policy: Policy::Next,
        },
    )
}

/// Text of a length in bytes that does not compress: the digits of a small generator, seeded.
pub(crate) fn noise(seed: u64, bytes: usize) -> String {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut text = String::with_capacity(bytes);
    while text.len() < bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        // 64 printable characters that JSON does not escape.
        text.push(char::from(b'0' + u8::try_from(state >> 58).unwrap()).to_owned());
    }
    text.replace('\\', "~")
}
