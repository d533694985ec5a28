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
use crate::domain::outline::TextPlace;
use crate::domain::run::Run;
use crate::domain::text::counted;
use crate::domain::text::head;
use crate::domain::tool::CallState;
use crate::domain::tool::EffectClass;
use crate::domain::tool::ToolCall;
use crate::policy::claim;

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

/// What a reference comes to.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// This page.
    Page(String),
    /// The text was put away, and has to be read first.
    PutAway(TextPlace),
}

/// The page of a text of the run's own conversation that a reference names. The error is for the model.
pub fn read(run: &Run, asked: &ReadRef) -> Result<Found, String> {
    if let Some(text) = find(run, &asked.wanted) {
        return page(text, asked).map(Found::Page);
    }
    let outlines = || run.transcript.outlines().iter().rev();
    if let Some(place) = outlines().find_map(|outline| outline.find(&asked.wanted)) {
        return Ok(Found::PutAway(place));
    }
    let is_it = |text: &&String| reference(text) == asked.wanted;
    if let Some(text) = outlines().find_map(|outline| outline.kept().find(is_it)) {
        return page(text, asked).map(Found::Page);
    }
    let wanted = head(&asked.wanted, 64);
    Err(format!("there is no ref {wanted:?} in this conversation; refs are written as ref 0123456789abcdef"))
}

/// The calls whose references name what was put away, each with where the text stands.
pub fn to_read(run: &Run) -> impl Iterator<Item = (CallId, TextPlace)> {
    let asks = |call: &&ToolCall| call.state == CallState::Proposed && call.tool == control::READ_REF;
    run.ordered_calls().filter(asks).filter_map(|call| match read(run, &claim::read(&call.arguments).ok()?) {
        Ok(Found::PutAway(place)) => Some((call.id, place)),
        Ok(Found::Page(_)) | Err(_) => None,
    })
}

/// The page that is asked for of the text that the reference names. The error is for the model.
pub fn page(text: &str, asked: &ReadRef) -> Result<String, String> {
    let pages = pages(text);
    let number = asked.page.unwrap_or(1);
    let page = number.checked_sub(1).and_then(|place| pages.get(place));
    match (page, pages.len()) {
        (Some(page), 1) => Ok((*page).to_string()),
        (Some(page), all) => Ok(format!("[page {number} of {all}]\n{page}")),
        (None, all) => {
            Err(format!("ref {} has {}, from 1; there is no page {number}", asked.wanted, counted(all, "page")))
        }
    }
}

/// The newest text of this name among those that are whole: of a result, of arguments, of the operator.
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::collections::BTreeSet;
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::domain::id::ModelCallId;
    use crate::domain::id::Seq;
    use crate::domain::message::Entry;
    use crate::domain::status::Phase;
    use crate::domain::time::Span;
    use crate::domain::time::Timestamp;
    use crate::domain::tool::Noise;
    use crate::domain::tool::OutcomeKind;
    use crate::domain::tool::ToolSpec;

    /// A small generator with a seed: the same histories each time.
    struct Dice(u64);

    impl Dice {
        fn below(&mut self, most: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % most
        }
    }

    fn offer() -> Offer {
        let spec = |name: &str, effect| ToolSpec {
            name: name.to_string(),
            description: String::new(),
            schema: json!({}),
            effect,
            noise: Noise::default(),
        };
        Offer::new(vec![spec("read_file", EffectClass::Read), spec("note", EffectClass::Control)])
    }

    fn push(context: &mut Context, iteration: u32, message: Message) {
        context.push(&Arc::new(Entry { iteration, at: Timestamp(0), seq: Seq(0), message }));
    }

    /// So many iterations with up to three calls each, whose results and arguments are short, long, or none of both.
    fn history(dice: &mut Dice, iterations: u32) -> Context {
        let mut context = Context::default();
        let mut next = 1;
        for iteration in 1..=iterations {
            let count = u32::try_from(dice.below(4)).unwrap();
            let ids: Vec<CallId> = (next..next + count).map(CallId).collect();
            next += count;
            let uses = ids.iter().map(|id| ToolUse {
                id: *id,
                wire_id: id.to_string(),
                tool: if dice.below(4) == 0 { "note" } else { "read_file" }.to_string(),
                arguments: "a".repeat(if dice.below(8) == 0 { 3_000 } else { 20 }),
                seq: Seq(0),
            });
            let uses: Vec<ToolUse> = uses.collect();
            let (call, phase) = (ModelCallId(iteration), Phase::Pursue);
            push(&mut context, iteration, Message::Assistant { call, phase, text: String::new(), uses });
            for call in ids {
                let text = format!("{call} {}", "r".repeat(if dice.below(3) == 0 { 100 } else { 5_000 }));
                let (bytes, kind) = (text.len() as u64, OutcomeKind::Done);
                let result = Message::ToolResult { call, title: String::new(), kind, text, bytes, took: Span(1) };
                push(&mut context, iteration, result);
            }
        }
        context
    }

    /// Each call with its iteration, its tool and its result, in their order; a result without its call is a failure.
    fn pairs(context: &Context) -> Vec<(CallId, u32, String, String, String)> {
        let mut open: Vec<&ToolUse> = Vec::new();
        let mut pairs = Vec::new();
        for entry in context.entries() {
            match &entry.message {
                Message::Assistant { uses, .. } => {
                    assert!(open.is_empty(), "a call without its result");
                    open = uses.iter().collect();
                }
                Message::ToolResult { call, text, .. } => {
                    let one = open.remove(open.iter().position(|one| one.id == *call).unwrap());
                    pairs.push((*call, entry.iteration, one.tool.clone(), one.arguments.clone(), text.clone()));
                }
                Message::Operator { .. } | Message::Engine { .. } => {}
            }
        }
        assert!(open.is_empty(), "a call without its result");
        pairs
    }

    fn check(seed: u64) {
        let mut dice = Dice(seed);
        let iterations = 1 + u32::try_from(dice.below(20)).unwrap();
        let (offer, whole) = (offer(), history(&mut dice, iterations));
        let n = iterations + 1;
        let kept = if dice.below(2) == 0 { limits::PRUNE_AFTER } else { limits::ITERATIONS_KEPT };
        let mut context = whole.clone();
        let refs = candidates(&context, &offer, n, kept);
        context.elide(&refs).unwrap();
        let (before, after) = (pairs(&whole), pairs(&context));
        assert_eq!(before.len(), after.len(), "no pair is split, seed {seed}");
        assert_eq!(*context.sent(), context.entries().cloned().collect(), "sizes are kept, seed {seed}");
        let work: Vec<CallId> =
            before.iter().filter(|(_, _, tool, ..)| tool == "read_file").map(|(call, ..)| *call).collect();
        let last: BTreeSet<CallId> = work.iter().rev().take(limits::PAIRS_KEPT).copied().collect();
        for (was, is) in before.iter().zip(&after) {
            let (call, iteration, tool, arguments, text) = was;
            assert_eq!((call, iteration, tool), (&is.0, &is.1, &is.2), "seed {seed}");
            let must_stay = tool == "note" || last.contains(call) || n - iteration <= kept;
            let result_goes = !must_stay && text.len() > limits::ELIDED_MIN_BYTES;
            let arguments_go = !must_stay && arguments.len() > limits::ARGUMENTS_KEPT_BYTES;
            let hash = reference(text);
            let mark = format!("[result of {tool} elided, {} bytes, ref {hash}]", text.len());
            assert_eq!(&is.4, if result_goes { &mark } else { text }, "seed {seed}");
            assert_eq!(is.3 != *arguments, arguments_go, "seed {seed}");
            assert!(serde_json::from_str::<serde_json::Value>(&is.3).is_ok() || !arguments_go, "seed {seed}");
        }
        assert!(
            candidates(&context, &offer, n, kept).is_empty(),
            "what was left out is not left out again, seed {seed}"
        );
    }

    #[test]
    fn s_46_pruning_keeps_what_must_stay_and_splits_no_pair() {
        for seed in 0..10_000 {
            check(seed);
        }
    }

    #[test]
    fn pages_hold_all_of_a_text() {
        let text = "é".repeat(40_000);
        let pages = pages(&text);
        assert_eq!((pages.len(), pages.concat()), (3, text));
        assert_eq!(super::pages(""), [""]);
    }
}
