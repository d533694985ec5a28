//! What the operator allowed or denied until the run ends, told by what it is about. Pure.
//!
//! The run knows the calls by hashes only; what they are is read from its journal. It judges nothing.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::domain::approval::By;
use crate::domain::approval::Decision;
use crate::domain::event::Event;
use crate::domain::event::Record;
use crate::domain::id::CallId;
use crate::domain::run::Run;
use crate::domain::tool::Facts;
use crate::domain::tool::grant;
use crate::domain::tool::signature;
use crate::headless::text::title;

/// What holds until the run ends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Remembered {
    /// Tools of which every call is allowed, but those that are always asked about.
    pub tools: Vec<String>,
    /// Calls that are allowed whenever they are made again with the same arguments and the same binding.
    pub calls: Vec<Remark>,
    /// Calls that are denied whenever they are made again with the same arguments.
    pub denied: Vec<Remark>,
}

/// A call that was decided about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Remark {
    /// The tool.
    pub tool: String,
    /// What it is about, in a line.
    pub title: String,
    /// The exact arguments.
    pub arguments: String,
    /// What the operator said with it, possibly nothing.
    pub words: String,
}

/// What holds in this run, as its journal tells.
pub fn of(run: &Run, records: &[Record]) -> Remembered {
    let mut known: BTreeMap<CallId, (Remark, Option<Facts>)> = BTreeMap::new();
    let (mut calls, mut denied) = (BTreeMap::new(), BTreeMap::new());
    for record in records {
        if let Event::ToolCallProposed { call, tool, arguments, .. } = &record.event {
            let remark = Remark { tool: tool.clone(), arguments: arguments.clone(), ..Remark::default() };
            known.insert(*call, (remark, None));
        } else if let Event::ToolCallPrepared { call, facts } = &record.event {
            known.entry(*call).and_modify(|(_, last)| *last = Some(Facts::clone(facts)));
        } else if let Event::ApprovalDecided { call, decision, by: By::Operator(_), .. } = &record.event
            && let Some((remark, facts)) = known.get_mut(call)
        {
            let signed = signature(&remark.tool, &remark.arguments);
            let about = facts.as_ref().map(|facts| facts.title.clone()).unwrap_or_default();
            let told = |words: &str| Remark { title: about, words: words.to_string(), ..remark.clone() };
            match decision {
                Decision::AllowRun => {
                    calls.insert(grant(&signed, facts.as_ref()), told(""));
                }
                Decision::Deny(words) => {
                    denied.insert(signed, told(words));
                }
                Decision::Edit(arguments) => remark.arguments.clone_from(arguments),
                Decision::AllowOnce | Decision::AllowTool | Decision::AllowRule(_) | Decision::AllowUnboxed => {}
            }
        }
    }
    calls.retain(|grant, _| run.progress.granted.contains(grant));
    denied.retain(|signed, _| run.progress.denied.contains_key(signed));
    Remembered {
        tools: run.granted_tools.iter().cloned().collect(),
        calls: calls.into_values().collect(),
        denied: denied.into_values().collect(),
    }
}

/// The same as lines.
pub fn lines(all: &Remembered) -> String {
    let mut text = String::new();
    for tool in &all.tools {
        text += &format!("[allowed for this run] {}: all calls, but what is always asked about\n", title(tool));
    }
    for call in &all.calls {
        text += &format!("[allowed for this run] {}: this call exactly, as often as it is made\n", named(call));
    }
    for call in &all.denied {
        let words =
            if call.words.is_empty() { String::new() } else { format!("; you said \"{}\"", title(&call.words)) };
        text += &format!("[denied for this run] {}: identical calls are denied as well{words}\n", named(call));
    }
    text
}

fn named(call: &Remark) -> String {
    let about = if call.title.is_empty() { &call.arguments } else { &call.title };
    format!("{} {}", title(&call.tool), title(about))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::domain::command::Command;
    use crate::headless::fixture::Desk;
    use crate::headless::fixture::asks_for;
    use crate::headless::fixture::plans;

    fn told(decision: Decision) -> String {
        let mut desk = Desk::new(vec![plans(), asks_for("run_command", "make"), asks_for("run_command", "rm x")]);
        desk.recover();
        let digest = desk.run.calls[&CallId(2)].digest().unwrap();
        desk.order(Command::Decide { call: CallId(2), digest, decision });
        let records = desk.records.lock().unwrap().clone();
        lines(&of(&desk.run, &records))
    }

    #[test]
    fn what_holds_for_the_run_is_told_by_what_it_is_about() {
        assert_eq!(told(Decision::AllowOnce), "");
        assert_eq!(
            told(Decision::AllowRun),
            "[allowed for this run] run_command make: this call exactly, as often as it is made\n"
        );
        let words = "not\nnow".to_string();
        assert_eq!(
            told(Decision::Deny(words)),
            "[denied for this run] run_command make: identical calls are denied as well; you said \"not now\"\n"
        );
    }

    #[test]
    fn a_tool_that_was_allowed_is_told_with_what_it_does_not_cover() {
        let all = Remembered { tools: vec!["edit_file".to_string()], ..Remembered::default() };
        assert_eq!(lines(&all), "[allowed for this run] edit_file: all calls, but what is always asked about\n");
    }
}
