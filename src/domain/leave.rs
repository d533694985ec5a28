//! How a call begins, and the part of the fold that is about leave: who allowed a call, what the operator changed of it,
//! and how much a run does unasked.

use crate::domain::approval::By;
use crate::domain::approval::Origin;
use crate::domain::changes::changes;
use crate::domain::id::CallId;
use crate::domain::id::Seq;
use crate::domain::lineage;
use crate::domain::run::Run;
use crate::domain::time::Timestamp;
use crate::domain::tool::CallState;
use crate::domain::tool::Edited;
use crate::domain::tool::EffectClass;
use crate::domain::tool::Facts;
use crate::domain::tool::ToolCall;
use crate::domain::trust::Trust;

impl Run {
    pub(crate) fn change_trust(&mut self, trust: Trust) {
        if trust < self.trust {
            let edited = self.calls.values_mut().filter_map(|call| call.edited.as_mut());
            edited.for_each(|edited| edited.is_leave = false);
        }
        self.trust = trust;
        self.trust_was_driven = self.is_driven();
    }

    /// Where a record of this run was written.
    pub fn origin(&self, seq: Seq) -> Origin {
        lineage::origin(self.brought, seq)
    }

    /// Takes nothing that was decided or changed before this record for the operator's own: it was written elsewhere.
    pub(crate) fn disown(&mut self, since: Seq) {
        self.brought = Some(since);
        self.progress.denied_elsewhere = self.progress.denied.keys().cloned().collect();
        self.disown_calls();
    }

    /// The same of what is known of single calls, and of what is said of them.
    pub(crate) fn disown_calls(&mut self) {
        for call in self.calls.values_mut() {
            call.origin = Origin::Elsewhere;
            if let Some(edited) = &mut call.edited {
                edited.origin = Origin::Elsewhere;
                edited.is_leave = false;
            }
        }
        self.transcript.disown();
        self.context.disown(self.created);
    }
}

/// Lines of a binding that say nothing but what the arguments say: whoever wrote these knows them.
const ARGUMENTS_ALONE: [&str; 3] = ["content after", "time limit", "url"];

impl Facts {
    /// All that a call reaches and that its arguments do not say alone, a line each as in its binding: where and on what
    /// it acts, in which state that is, places that are not plain, the host.
    pub fn reached(&self) -> Vec<String> {
        let bound = self.binding.iter().filter(|line| !ARGUMENTS_ALONE.contains(&name(line))).cloned();
        let special = self.touches.iter().filter(|touch| !touch.named.is_plain() || touch.runs_later);
        let places = special.map(|touch| format!("{}={:?}", touch.word, touch.named));
        let hosts = self.host.iter().map(|host| format!("host={host}"));
        bound.chain(places).chain(hosts).collect()
    }
}

impl Edited {
    /// The names of what the call reaches, as it was found by now, and what whoever changed it was not shown. A file that
    /// they named, of which nothing is there, had nothing to be shown.
    pub fn unseen(&self, found: &Facts) -> Vec<String> {
        let is_new = found.inside && found.write.as_ref().is_some_and(|write| write.before.is_none());
        if is_new && found.binding.iter().any(|line| line.starts_with("path=") && !self.shown.contains(line)) {
            return Vec::new();
        }
        let mut names: Vec<String> = found
            .reached()
            .iter()
            .filter(|line| !self.shown.contains(line))
            .map(|line| name(line).to_string())
            .collect();
        names.dedup();
        names
    }
}

fn name(line: &str) -> &str {
    line.split_once('=').map_or(line, |(name, _)| name)
}

impl ToolCall {
    /// A call as the model asks for it, of which nothing was found out or decided.
    pub fn proposed(
        id: CallId,
        wire_id: &str,
        tool: &str,
        arguments: &str,
        effect: EffectClass,
        since: Timestamp,
    ) -> ToolCall {
        ToolCall {
            id,
            wire_id: wire_id.to_string(),
            tool: tool.to_string(),
            arguments: arguments.to_string(),
            effect,
            state: CallState::Proposed,
            facts: None,
            allowed: None,
            edited: None,
            origin: Origin::Here,
            is_unboxed: false,
            error: None,
            attempts: 0,
            since,
        }
    }

    pub(crate) fn allow(&mut self, by: &By) {
        self.state = CallState::Approved;
        self.allowed = Some(by.clone());
        self.use_up_edit();
    }

    /// Takes other arguments in the place of its own. What it would touch has to be found out anew.
    pub(crate) fn edit(&mut self, arguments: &str, by: &By) -> Result<(), String> {
        let By::Operator(client) = by else { return Err(format!("a rule changed the arguments of {}", self.id)) };
        let (original, before) = match self.edited.take() {
            Some(edited) => (edited.original, edited.shown),
            None => (self.arguments.clone(), Vec::new()),
        };
        let shown = self.facts.as_ref().map_or(before, Facts::reached);
        self.arguments = arguments.to_string();
        self.unprepare();
        self.edited = Some(Edited { original, by: client.clone(), origin: Origin::Here, shown, is_leave: true });
        Ok(())
    }

    /// Nothing that was found out or decided about it holds any more.
    pub(crate) fn unprepare(&mut self) {
        self.state = CallState::Proposed;
        self.facts = None;
        self.allowed = None;
        self.origin = Origin::Here;
        self.is_unboxed = false;
        self.use_up_edit();
    }

    fn use_up_edit(&mut self) {
        if let Some(edited) = &mut self.edited {
            edited.is_leave = false;
        }
    }

    /// A result as the model is told it: what was changed of the call comes first (docs/ENGINE.md §9.3).
    pub(crate) fn told(&self, result: &str) -> String {
        match &self.edited {
            None => result.to_string(),
            Some(edited) => format!("{}\n{result}", changes(&edited.original, &self.arguments, edited.origin)),
        }
    }
}
