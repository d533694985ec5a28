//! What the calls of a run came to, a line each: who decided about them, how they ended, where they ran. Pure.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use crate::domain::approval::Decision;
use crate::domain::event::Event;
use crate::domain::event::Record;
use crate::domain::id::CallId;
use crate::domain::limits;
use crate::domain::lineage;
use crate::domain::lineage::Behind;
use crate::domain::lineage::Deed;
use crate::domain::message::Message;
use crate::domain::run::Run;
use crate::domain::sandbox::Manner;
use crate::domain::sandbox::place;
use crate::domain::text::excerpt;
use crate::domain::text::one_line;
use crate::domain::tool::EffectClass;
use crate::domain::tool::Facts;
use crate::domain::tool::OutcomeKind;
use crate::headless::changed;
use crate::headless::text::block;
use crate::headless::text::sentence;
use crate::headless::text::title;
use crate::headless::text::words;
use crate::policy::decider;

/// Where each call that started a program ran last.
fn places(records: &[Record]) -> BTreeMap<CallId, String> {
    let mut facts: BTreeMap<CallId, &Facts> = BTreeMap::new();
    let mut manners: BTreeMap<CallId, Manner> = BTreeMap::new();
    let mut places = BTreeMap::new();
    for record in records {
        if let Event::ToolCallPrepared { call, facts: found } = &record.event {
            facts.insert(*call, found);
        } else if let Event::ApprovalDecided { call, decision, by, .. } = &record.event {
            manners.insert(*call, Manner::by(Some(by), *decision == Decision::AllowUnboxed));
        } else if let Event::ToolCallStarted { call, .. } = &record.event
            && let Some(found) = facts.get(call)
            && let Some(place) = place(found, manners.get(call).copied().unwrap_or_default())
        {
            places.insert(*call, place);
        }
    }
    places
}

/// How often each call was started: more than once where its process died within it, or it was drawn back.
fn starts(records: &[Record]) -> BTreeMap<CallId, u32> {
    let mut starts: BTreeMap<CallId, u32> = BTreeMap::new();
    for record in records {
        if let Event::ToolCallStarted { call, .. } = &record.event {
            *starts.entry(*call).or_default() += 1;
        }
    }
    starts
}

/// The arguments of each call as they stood last, and why it never ran, where it did not.
#[derive(Default)]
struct Asked<'a> {
    arguments: &'a str,
    unrun: String,
}

fn asked(records: &[Record]) -> BTreeMap<CallId, Asked<'_>> {
    let mut asked: BTreeMap<CallId, Asked<'_>> = BTreeMap::new();
    for record in records {
        if let Event::ToolCallProposed { call, arguments, .. }
        | Event::ApprovalDecided { call, decision: Decision::Edit(arguments), .. } = &record.event
        {
            asked.insert(*call, Asked { arguments, unrun: String::new() });
        } else if let Event::ToolCallFinished { call, outcome } = &record.event
            && matches!(outcome.kind, OutcomeKind::NotRun(_))
        {
            let why = sentence(&excerpt(&outcome.text, limits::LINES_EXCERPT_BYTES));
            asked.entry(*call).or_default().unrun = format!(": {why}");
        }
    }
    asked
}

impl Asked<'_> {
    /// What it was about: its title, or what its arguments say where they are the title, because nothing was found out.
    fn about(&self, name: &str) -> String {
        let is_title = one_line(self.arguments, usize::MAX).starts_with(name.trim_end_matches('…'));
        title(&words(self.arguments).filter(|_| is_title).unwrap_or_else(|| name.to_string()))
    }
}

/// What was done, or refused: every call that could change something, or was decided about, and has ended, and the last
/// claim. A line that was let happen because it only reads is none of them; the audit has it.
pub fn deeds(run: &Run, records: &[Record]) -> String {
    let (readings, places, whoms) = (lineage::readings(records), places(records), whoms(run, records));
    let (changed, asked, starts) = (changed::lines(run, records), asked(records), starts(records));
    let mut tools: BTreeMap<CallId, &str> = BTreeMap::new();
    let mut text = String::new();
    for entry in run.transcript.all() {
        match &entry.message {
            Message::Assistant { uses, .. } => tools.extend(uses.iter().map(|one| (one.id, one.tool.as_str()))),
            Message::ToolResult { call, title: about, kind, .. } => {
                let tool = tools.get(call).copied().unwrap_or_default();
                let effect = run.offer.find(tool).map(|one| one.effect);
                let who = whoms.get(call);
                let is_deed = !matches!(effect, None | Some(EffectClass::Read | EffectClass::Control));
                if (is_deed || who.is_some()) && !readings.contains(call) {
                    let place = places.get(call).map(|place| format!(", ran {place}")).unwrap_or_default();
                    let often = starts.get(call).filter(|often| **often > 1);
                    let often = often.map(|often| format!(", started {often} times")).unwrap_or_default();
                    let asked = asked.get(call);
                    let about = asked.map_or_else(|| title(about), |asked| asked.about(about));
                    let why = asked.map(|asked| asked.unrun.as_str()).unwrap_or_default();
                    text += &format!("  {call} {} {about}: {}{often}{place}{why}\n", title(tool), how(*kind, who));
                    text.extend(changed.get(call).map(String::as_str));
                }
            }
            Message::Operator { .. } | Message::Engine { .. } => {}
        }
    }
    if !text.is_empty() {
        text = format!("[deeds] calls that could change something, or were decided about\n{text}");
    }
    if let Some(claim) = &run.iteration.claim {
        text += &format!("[claim] says of its work\n{}", block(&claim.summary));
    }
    text
}

/// What going back did not undo.
pub fn behind(behind: &Behind) -> String {
    let mut text: String = behind.deeds.iter().map(|deed| deed_line(deed, None)).collect();
    if !text.is_empty() {
        text = format!("[not undone] these happened after it\n{text}");
    }
    if !behind.told.is_empty() {
        text += "[not told again] what you had said after it; say again what still holds\n";
        let said = behind.told.iter().map(|(id, words)| format!("  {id} {}\n", title(words)));
        text.extend(said);
    }
    text
}

/// What was done before the run went back behind it: hidden from the model, and not undone.
pub fn hidden(run: &Run, records: &[Record]) -> String {
    let put_back: BTreeSet<CallId> = records.iter().filter_map(|record| put_back(&record.event)).collect();
    let (whoms, changed) = (whoms(run, records), changed::lines(run, records));
    let mut text = String::new();
    for (to, deeds) in lineage::hidden(records) {
        let is_restored = deeds.iter().any(|deed| put_back.contains(&deed.call));
        let undone = if is_restored { "nothing but the files that were put back" } else { "none of them" };
        text += &format!("[deeds] before it went back to the end of iteration {to}, which undid {undone}\n");
        for deed in &deeds {
            text += &deed_line(deed, whoms.get(&deed.call));
            text.extend(changed.get(&deed.call).map(String::as_str));
            if put_back.contains(&deed.call) {
                text += "    its file was put back\n";
            }
        }
    }
    text
}

/// The call whose file was put back by this event, if one was.
fn put_back(event: &Event) -> Option<CallId> {
    if let Event::RestoreFinished { call, failure: None, .. } = event { Some(*call) } else { None }
}

fn deed_line(deed: &Deed, who: Option<&String>) -> String {
    let ended = match deed.outcome {
        Some(kind) => how(kind, who),
        None => ["nobody knows how it ended"].into_iter().chain(who.map(String::as_str)).collect::<Vec<_>>().join(", "),
    };
    format!("  {} {} {}: {ended}\n", deed.call, title(&deed.tool), title(&deed.title))
}

/// How a call ended, and who had decided about it.
fn how(kind: OutcomeKind, who: Option<&String>) -> String {
    title(&decider::ended(kind, kind.word(), who.map(String::as_str)).join(", "))
}

/// Who decided about each call last.
fn whoms(run: &Run, records: &[Record]) -> BTreeMap<CallId, String> {
    let mut whoms = BTreeMap::new();
    let decided = |record: &Record| decider::of_event(&record.event, run.origin(record.seq));
    for (call, who) in records.iter().filter_map(decided) {
        match who {
            Some(who) => whoms.insert(call, who),
            None => whoms.remove(&call),
        };
    }
    whoms
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::domain::command::Command;
    use crate::headless::fixture::Desk;
    use crate::headless::fixture::asks_for;
    use crate::headless::fixture::finishes;
    use crate::headless::fixture::plans;

    fn told(tool: &str, decision: Decision) -> String {
        let mut desk = Desk::new(vec![plans(), asks_for(tool, "make"), finishes()]);
        desk.recover();
        let digest = desk.run.calls[&CallId(2)].digest().unwrap();
        desk.order(Command::Decide { call: CallId(2), digest, decision });
        let records = desk.records.lock().unwrap().clone();
        let shown = deeds(&desk.run, &records);
        shown.lines().find(|line| line.starts_with("  c2 ")).unwrap_or_default().to_string()
    }

    #[test]
    fn who_decided_stands_with_what_came_of_it() {
        let done = told("run_command", Decision::AllowOnce);
        assert!(done.starts_with("  c2 run_command make: done, allowed by you (test)"), "{done}");
        let denied = told("run_command", Decision::Deny("not now".to_string()));
        assert_eq!(denied, "  c2 run_command make: denied by you (test)");
    }
}
