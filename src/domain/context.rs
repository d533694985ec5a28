//! What of the conversation is sent to the model: all of it since the base, with what was pruned left out. The base
//! moves when older iterations are summarised. Only the fold changes it; of what was before the base the transcript
//! keeps outlines.

use std::collections::BTreeMap;
use std::sync::Arc;

use rpds::RedBlackTreeSetSync;
use serde::Deserialize;
use serde::Serialize;

use crate::domain::budget::ReservationId;
use crate::domain::id::CallId;
use crate::domain::id::InterjectionId;
use crate::domain::id::Seq;
use crate::domain::limits;
use crate::domain::message::Entry;
use crate::domain::message::Message;
use crate::domain::message::ToolUse;
use crate::domain::message::Transcript;
use crate::domain::message::disowned;
use crate::domain::text::counted;
use crate::domain::text::head;
use crate::domain::text::short_hash;
use crate::domain::time::Timestamp;
use crate::domain::tool::OutcomeKind;

/// The conversation as it is sent. Cloning shares everything.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Context {
    /// What stands for the iterations before the base, then what was said since.
    #[serde(skip)]
    sent: Transcript,
    /// So many entries of it stand for the iterations before the base.
    #[serde(skip)]
    lead: usize,
    #[serde(with = "crate::domain::stored::listed")]
    elided: RedBlackTreeSetSync<CallId>,
    /// What stands for the iterations before the base.
    #[serde(with = "crate::domain::stored::maybe_shared")]
    pub compacted: Option<Arc<Compacted>>,
    /// The iteration that made the last summary; nothing when the next one need not keep a distance.
    pub compacted_at: Option<u32>,
    /// Summaries in a row that freed too little.
    pub poor: u32,
    /// Replies in a row that were no usable summary.
    pub rejected: u32,
    /// The model call for the summary that is due, and its attempts so far.
    pub asked: Option<ReservationId>,
    /// The provider refused a request for its size, and room is not made yet.
    pub demand: Option<Demand>,
    /// Iterations in which room was made because the provider had asked for it.
    pub rounds: Vec<u32>,
    /// The iteration in which a request was too large in bytes, and was made smaller.
    pub shrunk_at: Option<u32>,
    /// How often something was left out.
    pub revision: u32,
}

/// The provider refused a request for its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Demand {
    /// What was too much.
    pub of: Excess,
    /// Whether something was pruned for it already.
    pub pruned: bool,
}

/// What was too much of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Excess {
    /// Its tokens, for the model's window.
    Tokens,
    /// Its bytes, for the provider.
    Bytes,
}

/// What stands for iterations that are not sent any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compacted {
    /// The last of them.
    pub to: u32,
    /// The summary.
    pub text: String,
    /// What the operator said in them, oldest first, as far as it is kept word for word.
    #[serde(with = "crate::domain::stored::each_shared")]
    pub said: Vec<Arc<Entry>>,
    /// What they said before that.
    pub older: Vec<Reference>,
    /// Results of calls that were denied in them, oldest first.
    #[serde(with = "crate::domain::stored::each_shared")]
    pub denied: Vec<Arc<Entry>>,
}

/// Something that the operator said, by its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    /// Which interjection.
    pub id: InterjectionId,
    /// Its length in bytes.
    pub bytes: usize,
    /// What `read_ref` finds it by.
    pub hash: String,
}

/// What of a call is left out of the requests from now on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Elided {
    /// The call.
    pub call: CallId,
    /// What `read_ref` finds its result by, if that is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// What `read_ref` finds its arguments by, if they are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
}

/// Who wrote a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Author {
    /// The model.
    Model,
    /// The engine, because the model gave none that could be used.
    Engine,
}

/// The name of a text, by which `read_ref` finds it: a shortened hash.
pub fn reference(text: &str) -> String {
    short_hash(text.as_bytes())
}

impl Context {
    /// What is sent since the base.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = &Arc<Entry>> {
        self.sent.entries().skip(self.lead)
    }

    /// All that is sent, shared.
    pub fn sent(&self) -> &Transcript {
        &self.sent
    }

    /// Whether something of this call is left out already.
    pub fn is_elided(&self, call: CallId) -> bool {
        self.elided.contains(&call)
    }

    /// Room was made as the provider demanded it.
    pub fn answer_demand(&mut self, iteration: u32) {
        match self.demand.take().map(|demand| demand.of) {
            Some(Excess::Tokens) => {
                self.rounds.retain(|round| round.saturating_add(limits::ROOM_WINDOW) > iteration);
                self.rounds.push(iteration);
            }
            Some(Excess::Bytes) => self.shrunk_at = Some(iteration),
            None => {}
        }
    }

    /// What kept room from being made is granted anew.
    pub fn grant(&mut self) {
        self.rounds.clear();
        self.shrunk_at = None;
        self.compacted_at = None;
        self.poor = 0;
        self.rejected = 0;
    }

    /// Adds what is said.
    pub fn push(&mut self, entry: &Arc<Entry>) {
        self.sent.push(inlined(entry));
    }

    /// Takes in what is sent since the base.
    pub(crate) fn put_back(&mut self, since: impl Iterator<Item = Arc<Entry>>, created: Timestamp) {
        let leading = self.compacted.as_ref().map(|compacted| leading(compacted, created)).unwrap_or_default();
        self.lead = leading.len();
        self.sent = leading.into_iter().chain(since).collect();
    }

    pub(crate) fn push_result(&mut self, entry: &Arc<Entry>) {
        self.sent.push_result(entry.clone());
    }

    pub(crate) fn grow_reply(&mut self, entry: &Arc<Entry>) {
        self.sent.grow_reply(entry.clone());
    }

    /// Says of every change of a call that it was made elsewhere.
    pub(crate) fn disown(&mut self, created: Timestamp) {
        self.sent.disown();
        let Some(compacted) = &mut self.compacted else { return };
        let denied = &mut Arc::make_mut(compacted).denied;
        denied.iter_mut().for_each(|entry| *entry = disowned(entry).unwrap_or_else(|| entry.clone()));
        let since: Vec<Arc<Entry>> = self.entries().cloned().collect();
        self.put_back(since.into_iter(), created);
    }

    /// Leaves out what the references name. Errors when a call has no result in what is sent.
    pub(crate) fn elide(&mut self, refs: &[Elided]) -> Result<(), String> {
        let by_call: BTreeMap<CallId, &Elided> = refs.iter().map(|one| (one.call, one)).collect();
        let mut tools: BTreeMap<CallId, String> = BTreeMap::new();
        let mut changed: Vec<(usize, Arc<Entry>)> = Vec::new();
        let mut found = 0;
        for (place, entry) in self.sent.entries().enumerate() {
            match &entry.message {
                Message::Assistant { uses, .. } if uses.iter().any(|one| by_call.contains_key(&one.id)) => {
                    tools.extend(uses.iter().map(|one| (one.id, one.tool.clone())));
                    let mut entry = Entry::clone(entry);
                    if let Message::Assistant { uses, .. } = &mut entry.message {
                        uses.iter_mut().for_each(|one| shorten(one, by_call.get(&one.id).copied()));
                    }
                    changed.push((place, Arc::new(entry)));
                }
                Message::ToolResult { call, .. } if by_call.contains_key(call) => {
                    found += 1;
                    let hash = by_call.get(call).and_then(|one| one.result.as_deref());
                    let tool = tools.get(call).map_or("a call", String::as_str);
                    changed.extend(hash.map(|hash| (place, without_result(entry, tool, hash))));
                }
                Message::Assistant { .. }
                | Message::ToolResult { .. }
                | Message::Operator { .. }
                | Message::Engine { .. } => {}
            }
        }
        if found != by_call.len() {
            return Err("a result is left out that is not there".to_string());
        }
        for (place, entry) in changed {
            self.sent.reword(place, entry);
        }
        by_call.keys().for_each(|call| self.elided.insert_mut(*call));
        self.revision += 1;
        if let Some(demand) = &mut self.demand {
            demand.pruned = true;
        }
        Ok(())
    }

    /// Moves the base behind iteration `to`; `summary` stands for what was before. What is known of calls before it is
    /// not needed any more.
    pub(crate) fn compact(&mut self, talk: &Transcript, summary: &str, to: u32, created: Timestamp) {
        let cut: Vec<&Entry> = talk.all().take_while(|entry| entry.iteration <= to).collect();
        let (said, older) = said(&cut);
        let compacted = Compacted { to, text: summary.to_string(), said, older, denied: denied(&cut) };
        let leading = leading(&compacted, created);
        let rest: Vec<Arc<Entry>> = self.entries().filter(|entry| entry.iteration > to).cloned().collect();
        let still = |one: &Arc<Entry>| match &one.message {
            Message::ToolResult { call, .. } => Some(*call).filter(|call| self.is_elided(*call)),
            Message::Assistant { .. } | Message::Operator { .. } | Message::Engine { .. } => None,
        };
        self.elided = rest.iter().filter_map(still).collect();
        self.lead = leading.len();
        self.sent = leading.into_iter().chain(rest).collect();
        self.compacted = Some(Arc::new(compacted));
        self.rejected = 0;
        self.asked = None;
        self.revision += 1;
    }
}

/// What is sent in the place of the iterations before the base.
fn leading(compacted: &Compacted, created: Timestamp) -> Vec<Arc<Entry>> {
    let message = Message::Engine { text: opening(compacted) };
    let first = Arc::new(Entry { iteration: compacted.to, at: created, seq: Seq(0), message });
    [first].into_iter().chain(compacted.said.iter().cloned()).collect()
}

/// What the model is told of the iterations that are not sent.
fn opening(compacted: &Compacted) -> String {
    let mut parts = vec![format!(
        "Iterations 1 to {} are not repeated here. What was kept of them:\n\n{}",
        compacted.to, compacted.text
    )];
    let denied: Vec<String> = compacted
        .denied
        .iter()
        .filter_map(|entry| match &entry.message {
            Message::ToolResult { title, text, .. } => Some(format!("- {title}: {text}")),
            Message::Operator { .. } | Message::Engine { .. } | Message::Assistant { .. } => None,
        })
        .collect();
    if !denied.is_empty() {
        parts.push(format!("These calls were denied; do not try them again:\n{}", denied.join("\n")));
    }
    if !compacted.older.is_empty() {
        let older: Vec<String> =
            compacted.older.iter().map(|one| format!("- {}, {} bytes, ref {}", one.id, one.bytes, one.hash)).collect();
        parts.push(format!("The operator also said, earlier (read_ref returns it):\n{}", older.join("\n")));
    }
    if !compacted.said.is_empty() {
        parts.push("What the operator said in them follows, word for word.".to_string());
    }
    parts.join("\n\n")
}

/// The entry as it is sent: a long text of the operator is its beginning, and a reference to all of it.
fn inlined(entry: &Arc<Entry>) -> Arc<Entry> {
    match &entry.message {
        Message::Operator { text, .. } if text.chars().count() > limits::SAY_INLINE_CHARS => {
            let end = text.char_indices().nth(limits::SAY_INLINE_CHARS).map_or(text.len(), |(place, _)| place);
            beginning(entry, end)
        }
        Message::Operator { .. } | Message::Engine { .. } | Message::Assistant { .. } | Message::ToolResult { .. } => {
            entry.clone()
        }
    }
}

/// An entry of the operator, cut to so many bytes, with a reference to the whole.
fn beginning(entry: &Entry, bytes: usize) -> Arc<Entry> {
    let Message::Operator { id, text } = &entry.message else { return Arc::new(entry.clone()) };
    let kept = head(text, bytes);
    let (missing, hash) = (counted(text.len() - kept.len(), "byte"), reference(text));
    let text = format!("{kept}\n[… {missing} more; the whole of it has the ref {hash}]");
    Arc::new(Entry { message: Message::Operator { id: *id, text }, ..entry.clone() })
}

fn shorten(one: &mut ToolUse, elided: Option<&Elided>) {
    if let Some(hash) = elided.and_then(|elided| elided.arguments.as_deref()) {
        one.arguments = format!("{{\"elided\":\"{} bytes, ref {hash}\"}}", one.arguments.len());
    }
}

fn without_result(entry: &Arc<Entry>, tool: &str, hash: &str) -> Arc<Entry> {
    let mut entry = Entry::clone(entry);
    if let Message::ToolResult { text, .. } = &mut entry.message {
        *text = format!("[result of {tool} elided, {} bytes, ref {hash}]", text.len());
    }
    Arc::new(entry)
}

/// What the operator said: the newest word for word, as much as there is room for, the rest as references.
fn said(cut: &[&Entry]) -> (Vec<Arc<Entry>>, Vec<Reference>) {
    let (mut kept, mut older, mut room) = (Vec::new(), Vec::new(), limits::SAID_KEPT_BYTES);
    for entry in cut.iter().rev() {
        let Message::Operator { id, text } = &entry.message else { continue };
        match (text.len() <= room && older.is_empty(), kept.is_empty()) {
            (true, _) => {
                room -= text.len();
                kept.push(Arc::new(Entry::clone(entry)));
            }
            // The newest is never a mere name.
            (false, true) => {
                kept.push(beginning(entry, room));
                room = 0;
            }
            (false, false) => older.push(Reference { id: *id, bytes: text.len(), hash: reference(text) }),
        }
    }
    kept.reverse();
    older.reverse();
    (kept, older)
}

/// What was denied, the newest as much as there is room for; the same twice is once.
fn denied(cut: &[&Entry]) -> Vec<Arc<Entry>> {
    let (mut kept, mut room): (Vec<Arc<Entry>>, usize) = (Vec::new(), limits::DENIED_KEPT_BYTES);
    for entry in cut.iter().rev() {
        let Message::ToolResult { title, text, kind: OutcomeKind::Denied, .. } = &entry.message else { continue };
        let is_known = kept.iter().any(|one| {
            matches!(&one.message, Message::ToolResult { title: known, text: told, .. } if known == title && told == text)
        });
        let bytes = title.len() + text.len();
        if !is_known && bytes <= room {
            room -= bytes;
            kept.push(Arc::new(Entry::clone(entry)));
        }
    }
    kept.reverse();
    kept
}
