//! What stays of an entry of the conversation whose long texts are left to the records: what it is about, how it
//! ended, and for each text that is left out where it stands, how long it is, and the name that it was known by.
//!
//! So nothing that is empty is ever taken for a text. It must not read records itself.

use std::sync::Arc;

use serde::Deserialize;
use serde::Serialize;

use crate::domain::changes::tells_changes;
use crate::domain::context::reference;
use crate::domain::event::Event;
use crate::domain::id::Seq;
use crate::domain::limits;
use crate::domain::message::Entry;
use crate::domain::message::Message;
use crate::domain::message::disowned;
use crate::domain::tool::OutcomeKind;

/// Shorter texts stay: their place would be as long.
const TEXT_MIN_BYTES: usize = 64;

/// An entry of the conversation without its long texts. A long run has tens of thousands, so none has room to spare.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Stored")]
pub struct Outline {
    entry: Entry,
    #[serde(skip_serializing_if = "<[LeftOut]>::is_empty")]
    left_out: Box<[LeftOut]>,
}

/// An outline as it is read from a snapshot.
#[derive(Deserialize)]
struct Stored {
    entry: Entry,
    #[serde(default)]
    left_out: Vec<LeftOut>,
}

impl From<Stored> for Outline {
    fn from(stored: Stored) -> Outline {
        let Stored { mut entry, left_out } = stored;
        if let Message::Assistant { uses, .. } = &mut entry.message {
            uses.shrink_to_fit();
        }
        Outline { entry, left_out: left_out.into() }
    }
}

/// A text that was left out: which text of its entry, how long it is in bytes, and the name by which `read_ref` finds
/// it, where it may have been given one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct LeftOut(u32, u32, Option<u64>);

/// Where a text that was left out stands: the outline of its entry, and which text of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextPlace {
    outline: Outline,
    slot: usize,
}

impl Outline {
    /// What stays of an entry that is not sent any more. What the operator said stays whole, and so does why they
    /// denied a call: later summaries repeat both.
    pub fn put_away(entry: &Entry) -> Outline {
        let mut outline = Outline::leaving(entry, |_, _| !is_denial(&entry.message));
        for LeftOut(slot, bytes, name) in outline.left_out.iter_mut() {
            let text = texts(&entry.message).into_iter().nth(place(*slot));
            *name = text.filter(|_| place(*bytes) > limits::ELIDED_MIN_BYTES).and_then(|text| number(&reference(text)));
        }
        if let Message::Assistant { uses, .. } = &mut outline.entry.message {
            // It is sent no more, so nobody asks for it by this id.
            uses.iter_mut().for_each(|one| one.wire_id = String::new());
        }
        outline
    }

    /// An entry as it is sent, without the texts that are as they were said: of those a record has every word.
    pub(crate) fn of_sent(entry: &Entry, said: Option<&Arc<Entry>>) -> Outline {
        let original: Vec<&String> = said.map(|said| texts(&said.message)).unwrap_or_default();
        Outline::leaving(entry, |slot, text| original.get(slot) == Some(&text))
    }

    fn leaving(entry: &Entry, leaves: impl Fn(usize, &String) -> bool) -> Outline {
        let left_out: Box<[LeftOut]> = texts(&entry.message)
            .into_iter()
            .enumerate()
            .filter(|(slot, text)| text.len() >= TEXT_MIN_BYTES && leaves(*slot, text))
            // What was changed stands in front of such a result, and in no record.
            .filter(|(_, text)| !tells_changes(text))
            .filter_map(|(slot, text)| Some(LeftOut(slot.try_into().ok()?, text.len().try_into().ok()?, None)))
            .collect();
        let mut entry = entry.clone();
        let mut slots = texts_mut(&mut entry.message);
        for LeftOut(slot, ..) in &left_out {
            if let Some(text) = slots.get_mut(place(*slot)) {
                **text = String::new();
            }
        }
        Outline { entry, left_out }
    }

    /// The same outline, where it says what the operator changed of a call and that was done elsewhere. Such a text is
    /// never left out.
    pub(crate) fn disowned(&self) -> Option<Outline> {
        let entry = disowned(&self.entry)?;
        Some(Outline { entry: Entry::clone(&entry), left_out: self.left_out.clone() })
    }

    /// The entry, with nothing where a text was left out.
    pub fn entry(&self) -> &Entry {
        &self.entry
    }

    /// Whether a text of the entry was left out: 0 is that of a reply or a result, the others are the arguments of the
    /// calls of a reply, from 1.
    pub fn lacks(&self, slot: usize) -> bool {
        self.left_out.iter().any(|LeftOut(other, ..)| place(*other) == slot)
    }

    /// The records that have the texts, in their order.
    pub fn records(&self) -> impl Iterator<Item = Seq> {
        self.left_out.iter().map(|LeftOut(slot, ..)| seq_of(&self.entry, place(*slot)))
    }

    /// Where the text of this name stands, if it is one of those that were left out.
    pub fn find(&self, name: &str) -> Option<TextPlace> {
        let wanted = number(name)?;
        let LeftOut(slot, ..) = self.left_out.iter().find(|LeftOut(_, _, name)| *name == Some(wanted))?;
        Some(TextPlace { outline: self.clone(), slot: place(*slot) })
    }

    /// The texts that were not left out, and may have a name.
    pub fn kept(&self) -> impl Iterator<Item = &String> {
        let said = match &self.entry.message {
            Message::Operator { text, .. } => Some(text),
            Message::Engine { .. } | Message::Assistant { .. } | Message::ToolResult { .. } => None,
        };
        said.into_iter().chain(texts(&self.entry.message))
    }

    /// The whole entry: `event` gives what happened at a position. Errors, as the end of a sentence, when that is not
    /// what the texts were left to.
    pub fn whole(&self, mut event: impl FnMut(Seq) -> Option<Event>) -> Result<Arc<Entry>, String> {
        let mut entry = self.entry.clone();
        for LeftOut(slot, ..) in &self.left_out {
            let text = self.text(place(*slot), &mut event)?;
            if let Some(place) = texts_mut(&mut entry.message).into_iter().nth(place(*slot)) {
                *place = text;
            }
        }
        Ok(Arc::new(entry))
    }

    fn text(&self, slot: usize, event: &mut impl FnMut(Seq) -> Option<Event>) -> Result<String, String> {
        let seq = seq_of(&self.entry, slot);
        let bytes = self.left_out.iter().find(|LeftOut(other, ..)| place(*other) == slot).map(|out| place(out.1));
        let text = event(seq).and_then(|event| text_in(event, &self.entry, slot));
        text.filter(|text| Some(text.len()) == bytes)
            .ok_or_else(|| format!("record {seq} does not have the text that it names"))
    }
}

impl TextPlace {
    /// The record that has it.
    pub fn record(&self) -> Seq {
        seq_of(&self.outline.entry, self.slot)
    }

    /// The text, as this event has it. Errors, as the end of a sentence, when it is another event.
    pub fn text(&self, event: Event) -> Result<String, String> {
        let mut event = Some(event);
        self.outline.text(self.slot, &mut |_| event.take())
    }
}

fn is_denial(message: &Message) -> bool {
    matches!(message, Message::ToolResult { kind: OutcomeKind::Denied, .. })
}

fn place(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// A name as a number; nothing when no text has such a name.
fn number(name: &str) -> Option<u64> {
    u64::from_str_radix(name, 16).ok().filter(|number| format!("{number:016x}") == name)
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::domain::id::CallId;
    use crate::domain::id::InterjectionId;
    use crate::domain::time::Span;
    use crate::domain::time::Timestamp;
    use crate::domain::tool::ToolOutcome;

    fn result(kind: OutcomeKind, text: &str) -> Entry {
        let (call, title, bytes) = (CallId(4), "a file".to_string(), text.len() as u64);
        let message = Message::ToolResult { call, title, kind, text: text.to_string(), bytes, took: Span(1) };
        Entry { iteration: 2, at: Timestamp(1), seq: Seq(7), message }
    }

    #[test]
    fn what_was_put_away_says_of_a_change_from_elsewhere_that_it_is_one() {
        let more = format!(": path from 1 to 2\n{}", "long ".repeat(100));
        let told = |who: &str| format!("{who} changed the arguments of this call{more}");
        let outline = Outline::put_away(&result(OutcomeKind::Done, &told("the operator")));
        let disowned = outline.disowned().unwrap();
        assert_eq!(texts(&disowned.entry().message), [&told("somebody elsewhere")]);
        assert_eq!(
            (disowned.disowned(), Outline::put_away(&result(OutcomeKind::Done, &more)).disowned()),
            (None, None)
        );
    }

    #[test]
    fn a_text_that_is_left_out_is_found_by_its_name_and_read_back() {
        let text = "long ".repeat(100);
        let entry = result(OutcomeKind::Done, &text);
        let outline = Outline::put_away(&entry);
        assert!(outline.lacks(0) && !format!("{outline:?}").contains("long"));
        let place = outline.find(&reference(&text)).unwrap();
        assert_eq!((place.record(), outline.find(&reference("other"))), (Seq(7), None));
        let finished = |text: &str| Event::ToolCallFinished {
            call: CallId(4),
            outcome: ToolOutcome::not_run(OutcomeKind::Done, text.to_string()),
        };
        assert_eq!(place.text(finished(&text)), Ok(text.clone()));
        assert!(place.text(finished("short")).is_err());
        assert_eq!(outline.whole(|seq| (seq == Seq(7)).then(|| finished(&text))).unwrap().as_ref(), &entry);
        assert!(outline.whole(|_| None).is_err());
        let stored = serde_json::to_string(&outline).unwrap();
        assert_eq!(serde_json::from_str::<Outline>(&stored).unwrap(), outline);
    }

    #[test]
    fn what_the_operator_said_stays() {
        let words = "words ".repeat(100);
        let said = Message::Operator { id: InterjectionId(1), text: words.clone() };
        let said = Entry { message: said, ..result(OutcomeKind::Done, "") };
        for entry in [said, result(OutcomeKind::Denied, &words), result(OutcomeKind::Done, "short")] {
            let outline = Outline::put_away(&entry);
            assert_eq!((outline.entry(), outline.records().count()), (&entry, 0));
        }
    }
}
