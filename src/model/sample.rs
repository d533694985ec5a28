//! For the tests of this folder: a request like those that a run makes. It must not judge anything.

use std::sync::Arc;

use crate::domain::id::ModelCallId;
use crate::domain::id::Seq;
use crate::domain::message::Entry;
use crate::domain::message::Message;
use crate::domain::model::ModelRequest;
use crate::domain::model::Purpose;
use crate::domain::status::Phase;
use crate::domain::time::Timestamp;

/// A message of the first iteration.
pub(crate) fn entry(message: Message) -> Arc<Entry> {
    Arc::new(Entry { iteration: 1, at: Timestamp(0), seq: Seq(0), message })
}

/// A turn after this conversation, all of which is sent: no tools, at most 100 tokens.
pub(crate) fn request(entries: Vec<Arc<Entry>>) -> ModelRequest {
    ModelRequest {
        call: ModelCallId(7),
        attempt: 1,
        iteration: 1,
        phase: Phase::Pursue,
        purpose: Purpose::Turn,
        system: "be good".to_string(),
        talk: entries.iter().cloned().collect(),
        entries: entries.into_iter().collect(),
        closing: String::new(),
        offer: Arc::default(),
        max_output: 100,
        temperature_percent: None,
    }
}
