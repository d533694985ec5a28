//! Whether a conversation is in order: each call has exactly one result, right after the reply that asked for it, each
//! result has its call, and no two calls share an id (docs/ENGINE.md §14.3). Looked at before every request; it mends
//! nothing, because what is out of order here is a bug of the engine.

use std::collections::BTreeSet;

use crate::domain::id::CallId;
use crate::domain::message::Entry;
use crate::domain::message::Message;
use crate::domain::message::ToolUse;

/// What is out of order in a conversation that is about to be sent, in a sentence.
pub fn check<'a>(entries: impl Iterator<Item = &'a Entry>) -> Result<(), String> {
    let mut open = OpenCalls::default();
    for entry in entries {
        open.take(entry)?;
    }
    open.check_all_answered()
}

/// The calls of the last reply, and which of them still wait for their result.
#[derive(Default)]
pub struct OpenCalls<'a> {
    uses: &'a [ToolUse],
    waiting: Vec<CallId>,
    known: BTreeSet<CallId>,
    wire_ids: BTreeSet<&'a str>,
}

impl<'a> OpenCalls<'a> {
    /// Takes the next entry. Errors with what is out of order.
    pub fn take(&mut self, entry: &'a Entry) -> Result<(), String> {
        if let Message::ToolResult { call, .. } = &entry.message {
            let place = self.waiting.iter().position(|waiting| waiting == call);
            let place = place.ok_or_else(|| format!("the result of call {call} has no call, or is there twice"))?;
            self.waiting.remove(place);
            return Ok(());
        }
        self.check_all_answered()?;
        if let Message::Assistant { uses, .. } = &entry.message {
            for one in uses {
                if one.wire_id.is_empty() || !self.wire_ids.insert(&one.wire_id) {
                    return Err(format!("call {} has no id of its own on the wire", one.id));
                }
                if !self.known.insert(one.id) {
                    return Err(format!("call {} is there twice", one.id));
                }
            }
            self.uses = uses;
            self.waiting = uses.iter().map(|one| one.id).collect();
        }
        Ok(())
    }

    /// Errors when a call of the last reply has no result.
    pub fn check_all_answered(&self) -> Result<(), String> {
        match self.waiting.first() {
            Some(call) => Err(format!("call {call} has no result")),
            None => Ok(()),
        }
    }

    /// The id on the wire of a call of the last reply.
    pub fn wire_id(&self, call: CallId) -> &str {
        self.uses.iter().find(|one| one.id == call).map_or("", |one| &one.wire_id)
    }
}
