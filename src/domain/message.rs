//! The conversation, as the model is told it and as the screen shows it.

use std::sync::Arc;

use rpds::VectorSync;
use serde::Deserialize;
use serde::Serialize;

use crate::domain::id::CallId;
use crate::domain::id::InterjectionId;
use crate::domain::id::ModelCallId;
use crate::domain::id::Seq;
use crate::domain::status::Phase;
use crate::domain::time::Span;
use crate::domain::time::Timestamp;
use crate::domain::tool::OutcomeKind;

/// One entry of the conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// The operator spoke during the run.
    Operator {
        /// Which interjection it was.
        id: InterjectionId,
        /// What was said.
        text: String,
    },
    /// The engine says something to the model: a nudge, a warning, the verdict on a claim.
    Engine {
        /// What it says.
        text: String,
    },
    /// The model's reply.
    Assistant {
        /// Which model call gave it.
        call: ModelCallId,
        /// What that iteration was for.
        phase: Phase,
        /// Its text, possibly empty.
        text: String,
        /// The calls it asked for, in its order.
        uses: Vec<ToolUse>,
    },
    /// The result of one of those calls.
    ToolResult {
        /// Which call.
        call: CallId,
        /// What the call was about.
        title: String,
        /// How it ended.
        kind: OutcomeKind,
        /// The result.
        text: String,
        /// Size of the whole result, in bytes.
        bytes: u64,
        /// How long the call ran.
        took: Span,
    },
}

/// A call as the model wrote it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolUse {
    /// The engine's id.
    pub id: CallId,
    /// The id on the wire: the provider's, or the engine's where the provider gave none or gave it twice.
    pub wire_id: String,
    /// Name of the tool.
    pub tool: String,
    /// Arguments, raw.
    pub arguments: String,
    /// The record that proposed it.
    pub seq: Seq,
}

/// An entry with its place: which iteration it belongs to and when it came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Number of the iteration; 0 before the first.
    pub iteration: u32,
    /// When it was recorded.
    pub at: Timestamp,
    /// The record that made it a part of the conversation.
    pub seq: Seq,
    /// What it is.
    pub message: Message,
}

/// The whole talk. Cloning shares everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transcript(VectorSync<Arc<Entry>>);

impl FromIterator<Arc<Entry>> for Transcript {
    fn from_iter<I: IntoIterator<Item = Arc<Entry>>>(entries: I) -> Self {
        Transcript(entries.into_iter().collect())
    }
}

impl Transcript {
    /// Adds an entry at the end.
    pub fn push(&mut self, entry: Arc<Entry>) {
        self.0.push_back_mut(entry);
    }

    /// The entry at the end.
    pub fn last(&self) -> Option<&Arc<Entry>> {
        self.0.last()
    }

    /// Adds a call to the reply that came last. Nothing happens when the last entry is no reply.
    pub fn add_use(&mut self, one: ToolUse) {
        let Some(last) = self.0.last() else { return };
        let mut entry = Entry::clone(last);
        if let Message::Assistant { uses, .. } = &mut entry.message {
            uses.push(one);
            self.0.set_mut(self.0.len() - 1, Arc::new(entry));
        }
    }

    /// Adds the result of a call behind those of the calls before it: whichever ended first, results stand in the
    /// order in which the reply asked for them (docs/ENGINE.md §4).
    pub fn push_result(&mut self, entry: Arc<Entry>) {
        place_result(&mut self.0, entry);
    }

    /// The entries, first to last.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = &Arc<Entry>> {
        self.0.iter()
    }

    /// Whether a call of the conversation has this id on the wire.
    pub fn has_wire_id(&self, id: &str) -> bool {
        self.entries().any(|entry| match &entry.message {
            Message::Assistant { uses, .. } => uses.iter().any(|one| one.wire_id == id),
            Message::Operator { .. } | Message::Engine { .. } | Message::ToolResult { .. } => false,
        })
    }

    /// Whether the operator's words of this id are part of it.
    pub fn has_operator(&self, wanted: InterjectionId) -> bool {
        self.entries().any(|entry| match &entry.message {
            Message::Operator { id, .. } => *id == wanted,
            Message::Assistant { .. } | Message::Engine { .. } | Message::ToolResult { .. } => false,
        })
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing was said yet.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The entry at a position, counted from 0.
    pub fn get(&self, index: usize) -> Option<&Arc<Entry>> {
        self.0.get(index)
    }
}

/// Adds the result of a call behind those of the calls before it.
pub(crate) fn place_result(list: &mut VectorSync<Arc<Entry>>, entry: Arc<Entry>) {
    let mut place = list.len();
    list.push_back_mut(entry.clone());
    let Message::ToolResult { call, .. } = &entry.message else { return };
    let is_later = |one: &Arc<Entry>| matches!(&one.message, Message::ToolResult { call: other, .. } if other > call);
    while let Some(before) = place.checked_sub(1).and_then(|place| list.get(place)).filter(|one| is_later(one)) {
        let before = before.clone();
        list.set_mut(place, before);
        place -= 1;
    }
    list.set_mut(place, entry);
}
