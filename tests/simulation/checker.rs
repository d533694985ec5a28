//! What must be so after every turn: the world and the journal compared.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use tiller::domain::approval::By;
use tiller::domain::approval::Decision;
use tiller::domain::approval::Resolution;
use tiller::domain::event::Event;
use tiller::domain::event::Record;
use tiller::domain::id::CallId;
use tiller::domain::id::InterjectionId;
use tiller::domain::id::RunId;
use tiller::domain::message::Message;
use tiller::domain::message::Transcript;
use tiller::domain::run::Run;
use tiller::domain::terms::Check;
use tiller::domain::tool::EffectClass;
use tiller::domain::tool::Probe;
use tiller::domain::trust::Trust;

use crate::simulation::flying::Flying;
use crate::simulation::flying::Work;
use crate::simulation::world::World;

/// A second reader of the journal: it folds what is new, and knows nothing of the run that lives.
pub struct Checker {
    folded: Run,
    read: usize,
    allowances: Allowances,
}

impl Checker {
    /// Reads a journal from its first record.
    pub fn new(id: &RunId, journal: &[Record]) -> Result<Checker, String> {
        let first = journal.first().ok_or("the journal is empty")?;
        let folded = Run::begin(id.clone(), first).map_err(|broken| broken.to_string())?;
        let mut allowances = Allowances::default();
        allowances.read(first);
        Ok(Checker { folded, read: 1, allowances })
    }

    /// Reads on, and compares what the world knows with what the journal says. After every turn: a bill that was above
    /// what the run knew is forgotten as soon as the next call is settled.
    pub fn look(&mut self, journal: &[Record], run: &Run, world: &World) -> Result<(), String> {
        for record in journal.get(self.read..).unwrap_or_default() {
            self.folded.apply(record).map_err(|broken| broken.to_string())?;
            self.allowances.read(record);
        }
        self.read = journal.len();
        let known = run.pool.spent().0 + run.pool.reserved().map_or(0, |held| held.amount.0);
        // Where the operator goes on without counting money, there is nothing to compare.
        if world.bill > known && run.terms.model.price.is_some() {
            return Err(format!("the provider is owed {} and the run knows of {known}", world.bill));
        }
        for (call, ran) in &world.executions {
            let may = self.allowances.allowed.get(call).copied().unwrap_or(0);
            if *ran > may {
                return Err(format!("{call} ran {ran} times and was allowed {may} times"));
            }
        }
        for (call, digest) in &world.executed {
            if !self.allowances.decided.get(call).is_some_and(|decided| decided.contains(&digest.0)) {
                return Err(format!("{call} ran, and what it was about by then was never decided about"));
            }
        }
        for (call, arguments) in &world.arguments {
            if !self.allowances.arguments.get(call).is_some_and(|versions| versions.contains(arguments)) {
                return Err(format!("{call} ran with arguments that are not what the operator made of them"));
            }
        }
        Ok(())
    }

    /// Compares the whole run with what the journal folds to.
    pub fn compare(&self, run: &Run) -> Result<(), String> {
        if self.folded != *run {
            let parts = differences(&self.folded, run).join(", ");
            return Err(format!("the fold of the journal differs from the live run at {}: {parts}", run.seq));
        }
        every_use_has_its_result(run)?;
        // Now and then, because it looks at the whole talk.
        if run.is_ended() || run.transcript.len().is_multiple_of(16) {
            sums_are_those_of_the_entries(run)?;
        }
        delivered_once(run)
    }
}

/// What the run says is in flight is what is in flight.
pub fn is_in_flight(run: &Run, flying: &[Flying]) -> Result<(), String> {
    let model = run.model_call.map(|call| Work::Model(call.id.call));
    // A judge is a model call, and the operator is asked: neither is work of a check.
    let is_work =
        |index: &usize| !matches!(run.terms.checks.get(*index), Some(Check::ModelJudge(_) | Check::OperatorConfirm(_)));
    let check = run.running_check().filter(is_work).map(Work::Check);
    let tools = run.running_calls().map(|call| Work::Tool(call.id));
    let said: Vec<Work> = model.into_iter().chain(tools).chain(check).collect();
    let mut is: Vec<Work> = flying.iter().filter_map(Flying::work).collect();
    is.sort();
    if said == is { Ok(()) } else { Err(format!("the run says that {said:?} is in flight, and {is:?} is")) }
}

/// How often each call may have run: once for each allow, for each operator's "run it again", and for each proof that
/// a write did not happen.
#[derive(Default)]
struct Allowances {
    allowed: BTreeMap<CallId, u32>,
    effects: BTreeMap<CallId, EffectClass>,
    granted_by_operator: bool,
    /// The arguments that each call may have run with: as it was asked for, or as the operator changed it.
    arguments: BTreeMap<CallId, BTreeSet<String>>,
    started: BTreeSet<CallId>,
    /// The digests that each call was decided about with.
    decided: BTreeMap<CallId, BTreeSet<String>>,
}

impl Allowances {
    fn read(&mut self, record: &Record) {
        if let Event::ApprovalDecided { call, digest, .. } = &record.event {
            self.decided.entry(*call).or_default().insert(digest.0.clone());
        }
        match &record.event {
            Event::RunCreated { terms, .. } => self.granted_by_operator |= terms.trust > Trust::Ask,
            Event::ToolCallProposed { call, effect, arguments, .. } => {
                self.effects.insert(*call, *effect);
                self.arguments.insert(*call, BTreeSet::from([arguments.clone()]));
            }
            Event::ToolCallStarted { call, .. } => {
                self.started.insert(*call);
            }
            Event::ApprovalDecided { call, decision: Decision::Edit(arguments), .. } => {
                let versions = self.arguments.entry(*call).or_default();
                if !self.started.contains(call) {
                    versions.clear();
                }
                versions.insert(arguments.clone());
            }
            Event::TrustChanged { trust, by: By::Operator(_) } => self.granted_by_operator |= *trust > Trust::Ask,
            Event::ApprovalDecided {
                call,
                decision:
                    Decision::AllowOnce
                    | Decision::AllowRun
                    | Decision::AllowTool
                    | Decision::AllowRule(_)
                    | Decision::AllowUnboxed,
                by,
                ..
            } => {
                // A rule lets a call that changes the world run only on the strength of an operator's grant.
                self.granted_by_operator |= matches!(by, By::Operator(_));
                let counts = self.effects.get(call) == Some(&EffectClass::Read) || self.granted_by_operator;
                *self.allowed.entry(*call).or_insert(0) += u32::from(counts);
            }
            Event::ToolOutcomeResolved { call, resolution: Resolution::RunAgain, .. }
            | Event::ToolCallProbed { call, probe: Probe::NotDone } => *self.allowed.entry(*call).or_insert(0) += 1,
            _ => {}
        }
    }
}

/// The parts of two runs that differ, by name.
fn differences(one: &Run, other: &Run) -> Vec<String> {
    let mut names = Vec::new();
    // The talk is stored beside the rest.
    if one.transcript != other.transcript {
        names.push("the talk".to_string());
    }
    let (one_seen, other_seen) = (&one.progress.seen, &other.progress.seen);
    let [one, other] = [one, other].map(|run| serde_json::to_value(run).unwrap());
    for (name, value) in one.as_object().unwrap() {
        match value.as_object() {
            Some(parts) => {
                let differ = parts.iter().filter(|(part, value)| other[name].get(part) != Some(*value));
                names.extend(differ.map(|(part, _)| format!("{name}.{part}")));
            }
            None if other[name] != *value => names.push(name.clone()),
            None => {}
        }
    }
    // It has no order, so it may be written in another one.
    if one_seen == other_seen {
        names.retain(|name| name != "progress.seen");
    }
    names
}

/// Between two replies every call of the first has exactly one result.
fn every_use_has_its_result(run: &Run) -> Result<(), String> {
    let mut open: Vec<CallId> = Vec::new();
    for entry in run.transcript.all() {
        match &entry.message {
            Message::Assistant { uses, .. } => {
                if !open.is_empty() {
                    return Err(format!("a reply came while {open:?} had no result"));
                }
                open = uses.iter().map(|one| one.id).collect();
            }
            Message::ToolResult { call, .. } => {
                let place = open.iter().position(|one| one == call).ok_or(format!("{call} has a result too many"))?;
                open.remove(place);
            }
            Message::Operator { .. } | Message::Engine { .. } => {}
        }
    }
    Ok(())
}

/// What a talk keeps of itself as it grows is what its entries say when they are looked at anew.
fn sums_are_those_of_the_entries(run: &Run) -> Result<(), String> {
    for talk in [&run.transcript, run.context.sent()] {
        let anew: Transcript = talk.entries().cloned().collect();
        if (talk.bytes(), talk.order()) != (anew.bytes(), anew.order()) {
            return Err(format!("size or order of the talk is not that of its entries at {}", run.seq));
        }
    }
    Ok(())
}

fn delivered_once(run: &Run) -> Result<(), String> {
    let mut seen: Vec<InterjectionId> = Vec::new();
    for entry in run.transcript.all() {
        if let Message::Operator { id, .. } = &entry.message {
            if seen.contains(id) {
                return Err(format!("{id} was delivered twice"));
            }
            seen.push(*id);
        }
    }
    Ok(())
}
