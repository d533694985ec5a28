//! The conversation, as the model is told it and as the screen shows it.

use std::sync::Arc;

use rpds::VectorSync;
use serde::Deserialize;
use serde::Serialize;

use crate::domain::changes::changes_disowned;
use crate::domain::id::CallId;
use crate::domain::id::InterjectionId;
use crate::domain::id::ModelCallId;
use crate::domain::id::Seq;
use crate::domain::outline::Outline;
use crate::domain::pairing::Order;
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

/// A talk, with what is known of it as a whole kept as it grows. Cloning shares everything.
///
/// What was said before the base of what is sent is put away: of it only outlines are kept, so that a talk takes the
/// memory of what can still be sent, however long it is. What is known of the whole is known of the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transcript {
    outlines: VectorSync<Outline>,
    entries: VectorSync<Arc<Entry>>,
    bytes: usize,
    order: Order,
}

impl FromIterator<Arc<Entry>> for Transcript {
    fn from_iter<I: IntoIterator<Item = Arc<Entry>>>(entries: I) -> Self {
        let mut talk = Transcript::default();
        entries.into_iter().for_each(|entry| talk.push(entry));
        talk
    }
}

impl Transcript {
    /// What was put away, and what is whole behind it.
    pub(crate) fn of(outlines: VectorSync<Outline>, entries: Vec<Arc<Entry>>) -> Transcript {
        Transcript { outlines, ..entries.into_iter().collect() }
    }

    /// Puts away what was said up to the end of an iteration: its long texts are left to the records.
    pub(crate) fn put_away(&mut self, to: u32) {
        let mut outlines = self.outlines.clone();
        let mut rest = Vec::new();
        for entry in self.entries.iter() {
            match entry.iteration <= to {
                true => outlines.push_back_mut(Outline::put_away(entry)),
                false => rest.push(entry.clone()),
            }
        }
        *self = Transcript::of(outlines, rest);
    }

    /// What was put away, first to last.
    pub fn outlines(&self) -> &VectorSync<Outline> {
        &self.outlines
    }

    /// All that was said, first to last: of what was put away with nothing where a text was left out.
    pub fn all(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        self.outlines.iter().map(Outline::entry).chain(self.entries.iter().map(Arc::as_ref))
    }

    /// Adds an entry at the end.
    pub fn push(&mut self, entry: Arc<Entry>) {
        self.count(&entry);
        self.entries.push_back_mut(entry);
    }

    /// The entry at the end.
    pub fn last(&self) -> Option<&Arc<Entry>> {
        self.entries.last()
    }

    /// Adds a call to the reply that came last; gives the reply. Nothing happens when the last entry is no reply.
    pub fn add_use(&mut self, one: ToolUse) -> Option<&Arc<Entry>> {
        let mut entry = Entry::clone(self.entries.last()?);
        let Message::Assistant { uses, .. } = &mut entry.message else { return None };
        uses.push(one);
        self.grow_reply(Arc::new(entry));
        self.last()
    }

    /// Puts a reply in the place of the last entry: the same with one more call.
    pub(crate) fn grow_reply(&mut self, entry: Arc<Entry>) {
        if let Message::Assistant { uses, .. } = &entry.message {
            uses.last().into_iter().for_each(|one| self.order.take_use(one));
        }
        if let Some(place) = self.entries.len().checked_sub(1) {
            self.reword(place, entry);
        }
    }

    /// Puts an entry in the place of another that says the same in other words.
    pub(crate) fn reword(&mut self, place: usize, entry: Arc<Entry>) {
        let before = self.entries.get(place).map_or(0, |before| entry_bytes(before));
        self.bytes = self.bytes.saturating_sub(before).saturating_add(entry_bytes(&entry));
        self.entries.set_mut(place, entry);
    }

    /// Says of every change of a call that it was made elsewhere.
    pub(crate) fn disown(&mut self) {
        let reworded: Vec<(usize, Arc<Entry>)> =
            self.entries().enumerate().filter_map(|(place, entry)| Some((place, disowned(entry)?))).collect();
        reworded.into_iter().for_each(|(place, entry)| self.reword(place, entry));
        let away = self.outlines.iter().enumerate();
        let away: Vec<(usize, Outline)> = away.filter_map(|(place, one)| Some((place, one.disowned()?))).collect();
        away.into_iter().for_each(|(place, outline)| {
            self.outlines.set_mut(place, outline);
        });
    }

    /// Adds the result of a call behind those of the calls before it: whichever ended first, results stand in the
    /// order in which the reply asked for them (docs/ENGINE.md §4).
    pub fn push_result(&mut self, entry: Arc<Entry>) {
        self.count(&entry);
        place_result(&mut self.entries, entry);
    }

    fn count(&mut self, entry: &Entry) {
        self.bytes = self.bytes.saturating_add(entry_bytes(entry));
        self.order.take(entry);
    }

    /// The entries that are whole, first to last.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = &Arc<Entry>> + ExactSizeIterator {
        self.entries.iter()
    }

    /// Size of the entries that are whole, as they are sent, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether calls and results are in order.
    pub fn order(&self) -> &Order {
        &self.order
    }

    /// Whether the operator's words of this id are part of it.
    pub fn has_operator(&self, wanted: InterjectionId) -> bool {
        self.all().any(|entry| match &entry.message {
            Message::Operator { id, .. } => *id == wanted,
            Message::Assistant { .. } | Message::Engine { .. } | Message::ToolResult { .. } => false,
        })
    }

    /// How much was said, in entries.
    pub fn len(&self) -> usize {
        self.outlines.len() + self.entries.len()
    }

    /// Whether nothing was said yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The entry at a position, counted from 0; of what was put away with nothing where a text was left out.
    pub fn get(&self, index: usize) -> Option<&Entry> {
        match index.checked_sub(self.outlines.len()) {
            Some(place) => self.entries.get(place).map(Arc::as_ref),
            None => self.outlines.get(index).map(Outline::entry),
        }
    }
}

/// Adds the result of a call behind those of the calls before it.
fn place_result(list: &mut VectorSync<Arc<Entry>>, entry: Arc<Entry>) {
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

/// The same entry, where it says what the operator changed of a call and that was done elsewhere.
pub(crate) fn disowned(entry: &Entry) -> Option<Arc<Entry>> {
    let Message::ToolResult { text, .. } = &entry.message else { return None };
    let disowned = changes_disowned(text)?;
    let mut entry = entry.clone();
    if let Message::ToolResult { text, .. } = &mut entry.message {
        *text = disowned;
    }
    Some(Arc::new(entry))
}

/// Size of an entry as it is sent, in bytes.
pub fn entry_bytes(entry: &Entry) -> usize {
    // What the wire adds around a message: roles, ids, punctuation.
    const FRAME: usize = 24;
    FRAME
        + match &entry.message {
            Message::Operator { text, .. } | Message::Engine { text } | Message::ToolResult { text, .. } => text.len(),
            Message::Assistant { text, uses, .. } => {
                let uses: usize =
                    uses.iter().map(|one| one.tool.len() + one.arguments.len() + one.wire_id.len() + FRAME).sum();
                text.len() + uses
            }
        }
}
