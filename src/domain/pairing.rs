//! Whether a conversation is in order: each call has exactly one result, right after the reply that asked for it, each
//! result has its call, and no two calls share an id (docs/ENGINE.md §14.3). Looked at before every request; it mends
//! nothing, because what is out of order here is a bug of the engine.

use rpds::HashTrieSetSync;

use crate::domain::id::CallId;
use crate::domain::message::Entry;
use crate::domain::message::Message;
use crate::domain::message::ToolUse;

/// The order of a conversation, kept as it grows: asking for it does not walk what was said before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// Calls of the last reply that still wait for their result.
    waiting: Vec<CallId>,
    /// The last call. Ids grow, so one that does not is there twice.
    last: Option<CallId>,
    wire_ids: HashTrieSetSync<String>,
    /// The first thing that was out of order.
    fault: Option<String>,
}

impl Order {
    /// Takes the next entry.
    pub fn take(&mut self, entry: &Entry) {
        match &entry.message {
            Message::ToolResult { call, .. } => match self.waiting.iter().position(|waiting| waiting == call) {
                Some(place) => {
                    self.waiting.remove(place);
                }
                None => self.blame(format!("the result of call {call} has no call, or is there twice")),
            },
            Message::Operator { .. } | Message::Engine { .. } => self.expect_answers(),
            Message::Assistant { uses, .. } => {
                self.expect_answers();
                uses.iter().for_each(|one| self.take_use(one));
            }
        }
    }

    /// Takes a call that was added to the last entry.
    pub fn take_use(&mut self, one: &ToolUse) {
        if one.wire_id.is_empty() || self.wire_ids.contains(&one.wire_id) {
            self.blame(format!("call {} has no id of its own on the wire", one.id));
        }
        if self.last.is_some_and(|last| last >= one.id) {
            self.blame(format!("call {} is there twice", one.id));
        }
        self.wire_ids.insert_mut(one.wire_id.clone());
        self.last = self.last.max(Some(one.id));
        self.waiting.push(one.id);
    }

    /// What is out of order so far, in a sentence. A call that still waits for its result is not, yet.
    pub fn check(&self) -> Result<(), String> {
        self.fault.clone().map_or(Ok(()), Err)
    }

    /// What is out of order in a conversation that is about to be sent.
    pub fn check_whole(&self) -> Result<(), String> {
        self.check()?;
        self.waiting.first().map_or(Ok(()), |call| Err(unanswered(*call)))
    }

    /// Whether a call has this id on the wire.
    pub fn has_wire_id(&self, id: &str) -> bool {
        self.wire_ids.contains(id)
    }

    fn expect_answers(&mut self) {
        if let Some(call) = self.waiting.first() {
            self.blame(unanswered(*call));
        }
    }

    fn blame(&mut self, why: String) {
        self.fault.get_or_insert(why);
    }
}

fn unanswered(call: CallId) -> String {
    format!("call {call} has no result")
}
