//! What of old calls is left out of the requests, and giving it back when the model asks for it
//! (docs/ENGINE.md §13). It costs nothing, and a call never loses its result: only texts become shorter.

use serde::Deserialize;

use crate::domain::context::Context;
use crate::domain::context::Elided;
use crate::domain::context::reference;
use crate::domain::control;
use crate::domain::id::CallId;
use crate::domain::limits;
use crate::domain::message::Message;
use crate::domain::message::ToolUse;
use crate::domain::model::Offer;
use crate::domain::run::Run;
use crate::domain::text::head;
use crate::domain::tool::EffectClass;

/// What can be left out in iteration `n`, if all of the last `kept` iterations before it stays.
pub fn candidates(context: &Context, offer: &Offer, n: u32, kept: u32) -> Vec<Elided> {
    let mut uses: Vec<&ToolUse> = Vec::new();
    let mut results: Vec<(CallId, u32, &str)> = Vec::new();
    for entry in context.entries() {
        match &entry.message {
            Message::Assistant { uses: asked, .. } => uses.extend(asked),
            Message::ToolResult { call, text, .. } => results.push((*call, entry.iteration, text)),
            Message::Operator { .. } | Message::Engine { .. } => {}
        }
    }
    // The calls of a conversation have growing ids.
    let of = |call: CallId| uses.binary_search_by_key(&call, |one| one.id).ok().and_then(|place| uses.get(place));
    results.retain(|(call, ..)| of(*call).is_some_and(|one| is_prunable(offer, &one.tool)));
    let last = results.len().saturating_sub(limits::PAIRS_KEPT);
    let old = results
        .iter()
        .take(last)
        .filter(|(call, iteration, _)| n.saturating_sub(*iteration) > kept && !context.is_elided(*call));
    old.filter_map(|(call, _, text)| elided(of(*call)?, text)).collect()
}

/// Results of work tools, and what was given back once.
fn is_prunable(offer: &Offer, tool: &str) -> bool {
    let effect = offer.find(tool).map(|spec| spec.effect);
    tool == control::READ_REF || effect.is_some_and(|effect| effect != EffectClass::Control)
}

fn elided(one: &ToolUse, text: &str) -> Option<Elided> {
    let result = (text.len() > limits::ELIDED_MIN_BYTES).then(|| reference(text));
    let arguments = (one.arguments.len() > limits::ARGUMENTS_KEPT_BYTES).then(|| reference(&one.arguments));
    let leaves_out = result.is_some() || arguments.is_some();
    leaves_out.then_some(Elided { call: one.id, result, arguments })
}

/// Arguments of `read_ref`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadRef {
    /// The reference.
    #[serde(rename = "ref")]
    pub wanted: String,
    /// Which page, from 1.
    #[serde(default)]
    pub page: Option<usize>,
}

/// The page of a text of the run's own conversation that a reference names. The error is for the model.
pub fn read(run: &Run, asked: &ReadRef) -> Result<String, String> {
    let text = find(run, &asked.wanted).ok_or_else(|| {
        format!("there is no ref {:?} in this conversation; refs are written as ref 0123456789abcdef", {
            head(&asked.wanted, 64)
        })
    })?;
    let pages = pages(text);
    let number = asked.page.unwrap_or(1);
    let page = number.checked_sub(1).and_then(|place| pages.get(place));
    match (page, pages.len()) {
        (Some(page), 1) => Ok((*page).to_string()),
        (Some(page), all) => Ok(format!("[page {number} of {all}]\n{page}")),
        (None, all) => Err(format!("ref {} has {all} pages, from 1; there is no page {number}", asked.wanted)),
    }
}

/// The newest text of this name: of a result, of arguments, of the operator.
fn find<'a>(run: &'a Run, wanted: &str) -> Option<&'a str> {
    let is_it = |text: &&str| reference(text) == wanted;
    run.transcript.entries().rev().find_map(|entry| match &entry.message {
        Message::ToolResult { text, .. } | Message::Operator { text, .. } => Some(text.as_str()).filter(is_it),
        Message::Assistant { uses, .. } => uses.iter().map(|one| one.arguments.as_str()).find(is_it),
        Message::Engine { .. } => None,
    })
}

fn pages(text: &str) -> Vec<&str> {
    // A line above the page says which it is.
    const ROOM: usize = 64;
    let mut pages = Vec::new();
    let mut rest = text;
    while !rest.is_empty() || pages.is_empty() {
        let page = head(rest, limits::RESULT_MAX_BYTES - ROOM);
        pages.push(page);
        rest = &rest[page.len()..];
    }
    pages
}
