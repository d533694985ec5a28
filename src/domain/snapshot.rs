//! A folded run as it is stored beside its journal: a shortcut for the fold, never a source (docs/ENGINE.md §10.5).
//!
//! It holds no long text of the conversation: each stands in a record, and the snapshot says in which. It must not
//! read records itself, and must not be believed without the record that it was made at.

use std::sync::Arc;

use serde::Deserialize;
use serde::Serialize;

use crate::domain::event::Event;
use crate::domain::fold;
use crate::domain::id::RunId;
use crate::domain::id::Seq;
use crate::domain::leave;
use crate::domain::message::Entry;
use crate::domain::message::Message;
use crate::domain::run::Run;

/// The version of the fold. Raised whenever a record comes to mean something else, or a field of `Run` changes its
/// meaning or its name: a snapshot of another version is not read.
pub const FOLD_VERSION: u32 = 1;

/// Shorter texts are kept in the snapshot: their place would be as long.
const TEXT_MIN_BYTES: usize = 64;

/// A folded run without the long texts of its conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    run: Run,
    talk: Vec<Told>,
    /// The first entry of the conversation that is sent.
    base: usize,
    /// What is sent otherwise than it was said, each with its place in the conversation.
    otherwise: Vec<(usize, Told)>,
}

/// An entry of the conversation. Of each text that is empty in it although it is not, its length stands beside it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Told {
    entry: Entry,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    out: Vec<Out>,
}

/// A text that was left out: which text of its entry, and how long it is in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Out(usize, usize);

impl Snapshot {
    /// The snapshot of a run.
    pub fn of(run: &Run) -> Snapshot {
        let talk = &run.transcript;
        let base = talk.len().saturating_sub(run.context.entries().count());
        let mut otherwise = Vec::new();
        for (place, sent) in (base..).zip(run.context.entries()) {
            let said = talk.get(place);
            if said.is_none_or(|said| !Arc::ptr_eq(said, sent) && said != sent) {
                otherwise.push((place, Told::of(sent, said)));
            }
        }
        let talk = talk.entries().map(|entry| Told::of(entry, Some(entry))).collect();
        Snapshot { run: run.clone(), talk, base, otherwise }
    }

    /// The record that it was made at.
    pub fn seq(&self) -> Seq {
        self.run.seq
    }

    /// The run, with the texts of its conversation as the records have them: `event` gives what happened at a position.
    /// Errors when it is another run, or the journal does not have the texts.
    pub fn restore(self, id: &RunId, mut event: impl FnMut(Seq) -> Option<Event>) -> Result<Run, String> {
        let Snapshot { mut run, talk, base, otherwise } = self;
        if run.id != *id {
            return Err(format!("it is of run {}", run.id));
        }
        let talk: Vec<Arc<Entry>> =
            talk.into_iter().map(|told| told.whole(&mut event)).collect::<Result<_, String>>()?;
        let mut sent: Vec<Arc<Entry>> = talk.get(base..).unwrap_or_default().to_vec();
        for (place, told) in otherwise {
            let whole = told.whole(&mut event)?;
            match place.checked_sub(base).and_then(|place| sent.get_mut(place)) {
                Some(one) => *one = whole,
                None => return Err(format!("entry {place} is not part of what is sent")),
            }
        }
        run.transcript = talk.into_iter().collect();
        run.context.put_back(sent.into_iter(), run.created);
        run.offer = fold::offer(&run.terms);
        Ok(run)
    }
}

impl Told {
    /// An entry without the texts that a record has: those that are as they were said.
    fn of(entry: &Entry, said: Option<&Arc<Entry>>) -> Told {
        let original: Vec<&String> = said.map(|said| texts(&said.message)).unwrap_or_default();
        let left: Vec<Out> = texts(&entry.message)
            .into_iter()
            .enumerate()
            .filter(|(slot, text)| text.len() >= TEXT_MIN_BYTES && original.get(*slot) == Some(text))
            // What the operator changed stands in front of such a result, and in no record.
            .filter(|(_, text)| !leave::tells_changes(text))
            .map(|(slot, text)| Out(slot, text.len()))
            .collect();
        let mut entry = entry.clone();
        let mut slots = texts_mut(&mut entry.message);
        for Out(slot, _) in &left {
            if let Some(text) = slots.get_mut(*slot) {
                text.clear();
            }
        }
        Told { entry, out: left }
    }

    fn whole(self, event: &mut impl FnMut(Seq) -> Option<Event>) -> Result<Arc<Entry>, String> {
        let Told { mut entry, out } = self;
        for Out(slot, bytes) in out {
            let seq = seq_of(&entry, slot);
            let text = event(seq).and_then(|event| text_in(event, &entry, slot)).filter(|text| text.len() == bytes);
            let text = text.ok_or_else(|| format!("record {seq} does not have the text that it names"))?;
            if let Some(place) = texts_mut(&mut entry.message).into_iter().nth(slot) {
                *place = text;
            }
        }
        Ok(Arc::new(entry))
    }
}

/// The texts of a message that a record has as they are: that of a reply and the arguments of its calls, or that of a
/// result. What the operator and the engine say is short.
fn texts(message: &Message) -> Vec<&String> {
    match message {
        Message::Assistant { text, uses, .. } => {
            std::iter::once(text).chain(uses.iter().map(|one| &one.arguments)).collect()
        }
        Message::ToolResult { text, .. } => vec![text],
        Message::Operator { .. } | Message::Engine { .. } => Vec::new(),
    }
}

fn texts_mut(message: &mut Message) -> Vec<&mut String> {
    match message {
        Message::Assistant { text, uses, .. } => {
            std::iter::once(text).chain(uses.iter_mut().map(|one| &mut one.arguments)).collect()
        }
        Message::ToolResult { text, .. } => vec![text],
        Message::Operator { .. } | Message::Engine { .. } => Vec::new(),
    }
}

/// The record that has a text of an entry.
fn seq_of(entry: &Entry, slot: usize) -> Seq {
    match (&entry.message, slot.checked_sub(1)) {
        (Message::Assistant { uses, .. }, Some(place)) => uses.get(place).map_or(entry.seq, |one| one.seq),
        (
            Message::Assistant { .. } | Message::ToolResult { .. } | Message::Operator { .. } | Message::Engine { .. },
            _,
        ) => entry.seq,
    }
}

/// The text that an event has for an entry, if it is about the same.
fn text_in(event: Event, entry: &Entry, slot: usize) -> Option<String> {
    match (&entry.message, event) {
        (Message::Assistant { call, .. }, Event::ModelCallFinished { call: of, reply, .. })
            if *call == of && slot == 0 =>
        {
            Some(reply.text)
        }
        (Message::Assistant { uses, .. }, Event::ToolCallProposed { call, arguments, .. }) => {
            uses.get(slot.checked_sub(1)?).filter(|one| one.id == call).map(|_| arguments)
        }
        (Message::ToolResult { call, .. }, Event::ToolCallFinished { call: of, outcome }) if *call == of => {
            Some(outcome.text)
        }
        (
            Message::Assistant { .. } | Message::ToolResult { .. } | Message::Operator { .. } | Message::Engine { .. },
            _,
        ) => None,
    }
}
