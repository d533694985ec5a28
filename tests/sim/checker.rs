//! What must be so after every turn: the world and the journal compared.

use std::collections::BTreeMap;

use tiller::domain::approval::By;
use tiller::domain::approval::Decision;
use tiller::domain::approval::Resolution;
use tiller::domain::event::Event;
use tiller::domain::event::Record;
use tiller::domain::id::CallId;
use tiller::domain::id::InterjectionId;
use tiller::domain::message::Message;
use tiller::domain::run::Run;
use tiller::domain::tool::EffectClass;
use tiller::domain::tool::Probe;

use crate::sim::world::World;

/// Compares; the error says what does not hold.
pub fn check(journal: &[Record], run: &Run, world: &World) -> Result<(), String> {
    let folded = Run::fold(&run.id, journal).map_err(|broken| broken.to_string())?;
    if folded != *run {
        return Err(format!("the fold of the journal differs from the live run at {}", run.seq));
    }
    let known = run.pool.spent().0 + run.pool.reserved().map_or(0, |held| held.amount.0);
    if world.bill > known {
        return Err(format!("the provider is owed {} and the run knows of {known}", world.bill));
    }
    let allowed = allowances(journal);
    for (call, ran) in &world.executions {
        let may = allowed.get(call).copied().unwrap_or(0);
        if *ran > may {
            return Err(format!("{call} ran {ran} times and was allowed {may} times"));
        }
    }
    every_use_has_its_result(run)?;
    delivered_once(run)
}

/// How often each call may have run: once for each allow, for each operator's "run it again", and for each proof that
/// a write did not happen.
fn allowances(journal: &[Record]) -> BTreeMap<CallId, u32> {
    let mut allowed = BTreeMap::new();
    let mut effects = BTreeMap::new();
    let mut granted_by_operator = false;
    for record in journal {
        match &record.event {
            Event::ToolCallProposed { call, effect, .. } => {
                effects.insert(*call, *effect);
            }
            Event::ApprovalDecided { call, decision: Decision::AllowOnce | Decision::AllowRun, by, .. } => {
                // A rule lets a call that changes the world run only on the strength of an operator's grant.
                granted_by_operator |= matches!(by, By::Operator(_));
                let counts = effects.get(call) == Some(&EffectClass::Read) || granted_by_operator;
                *allowed.entry(*call).or_insert(0) += u32::from(counts);
            }
            Event::ToolOutcomeResolved { call, resolution: Resolution::RunAgain, .. } => {
                *allowed.entry(*call).or_insert(0) += 1
            }
            Event::ToolCallProbed { call, probe: Probe::NotDone } => *allowed.entry(*call).or_insert(0) += 1,
            _ => {}
        }
    }
    allowed
}

/// Between two replies every call of the first has exactly one result.
fn every_use_has_its_result(run: &Run) -> Result<(), String> {
    let mut open: Vec<CallId> = Vec::new();
    for entry in run.transcript.entries() {
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

fn delivered_once(run: &Run) -> Result<(), String> {
    let mut seen: Vec<InterjectionId> = Vec::new();
    for entry in run.transcript.entries() {
        if let Message::Operator { id, .. } = &entry.message {
            if seen.contains(id) {
                return Err(format!("{id} was delivered twice"));
            }
            seen.push(*id);
        }
    }
    Ok(())
}
