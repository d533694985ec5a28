//! Records of any size.
#![allow(missing_docs, clippy::unwrap_used)]

use tiller::domain::budget::Limits;
use tiller::domain::command::Policy;
use tiller::domain::event::Event;
use tiller::domain::event::Record;
use tiller::domain::id::ClientId;
use tiller::domain::id::InterjectionId;
use tiller::domain::id::RUN_ID_LENGTH;
use tiller::domain::id::RunId;
use tiller::domain::id::Seq;
use tiller::domain::model::Dialect;
use tiller::domain::model::ModelSpec;
use tiller::domain::terms::Goal;
use tiller::domain::terms::Terms;
use tiller::domain::time::Span;
use tiller::domain::time::Timestamp;
use tiller::domain::trust::Trust;

/// A run id that differs by number.
pub(crate) fn run_id(number: u8) -> RunId {
    RunId::from_entropy([number; RUN_ID_LENGTH])
}

pub(crate) fn record(seq: u64, event: Event) -> Record {
    Record { seq: Seq(seq), at: Timestamp(1_000_000 + seq), active: Span(seq), event }
}

/// The first record of a run.
pub(crate) fn created(goal: &str) -> Record {
    let model = ModelSpec {
        name: "test/model".to_string(),
        dialect: Dialect::Scripted,
        address: "script.json".to_string(),
        model: "model".to_string(),
        key_variable: None,
        window: 1_000,
        max_output: 100,
        most_output: None,
        price: None,
    };
    let terms = Terms {
        goal: Goal::try_from(goal.to_string()).unwrap(),
        workspace: "/work".to_string(),
        limits: Limits::default(),
        checks: Vec::new(),
        wrap_up: true,
        model,
        tools: Vec::new(),
        instructions: String::new(),
        rehearsal: false,
        trust: Trust::Ask,
        keep_full_trust: false,
    };
    record(1, Event::RunCreated { terms: Box::new(terms) })
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
