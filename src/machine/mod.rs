//! Floor 2: the loop, as pure functions. `respond` says what an input means, `advance` what comes next, `turn` puts
//! them together: one input, to rest (docs/ARCHITECTURE.md, the loop).

// A new event must make the compiler point at every place that has to think about it.
#![deny(clippy::wildcard_enum_match_arm)]

pub mod acceptance;
pub mod advance;
pub mod compaction;
pub mod deciding;
pub mod effect;
mod events;
pub mod lineage;
pub mod outcome;
pub mod respond;
pub mod restoring;
pub mod steer;
pub mod trusting;
pub(crate) mod word;

use crate::domain::command::Command;
use crate::domain::command::Refusal;
use crate::domain::event::Event;
use crate::domain::event::Owner;
use crate::domain::event::Record;
use crate::domain::fold::Broken;
use crate::domain::id::CallId;
use crate::domain::id::ClientId;
use crate::domain::id::ModelCallId;
use crate::domain::id::Seq;
use crate::domain::limits;
use crate::domain::model::ModelFailure;
use crate::domain::model::ModelReply;
use crate::domain::run::Run;
use crate::domain::status::Lack;
use crate::domain::terms::Terms;
use crate::domain::time::Now;
use crate::domain::tool::Facts;
use crate::domain::tool::Probe;
use crate::domain::tool::ToolOutcome;
use crate::machine::effect::Effect;

/// Anything the machine must answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// A process took the run; whatever the one before had under way is lost.
    Recovered {
        /// The process.
        owner: Owner,
        /// What stands against starting, first things first.
        lacks: Vec<Lack>,
    },
    /// The run is to go on, and something that it needs is not there (docs/ENGINE.md §14.2).
    Unready {
        /// What stands against it, first things first.
        lacks: Vec<Lack>,
        /// Who asked for the resume; nobody where a wait was over.
        by: Option<ClientId>,
    },
    /// The operator asks for something.
    Command(Command, ClientId),
    /// Something that was under way has ended.
    Outcome(Outcome),
    /// A time was reached.
    Tick,
}

/// How something that was under way has ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// A model call.
    Model {
        /// Which.
        call: ModelCallId,
        /// What came of it.
        result: Result<Box<ModelReply>, Box<ModelFailure>>,
    },
    /// What calls would touch.
    Prepared(Vec<(CallId, Facts)>),
    /// A tool call that ran.
    Tool {
        /// Which.
        call: CallId,
        /// How it ended.
        outcome: ToolOutcome,
    },
    /// A tool call that did not run, because it is not any more what was decided about.
    Drifted {
        /// Which.
        call: CallId,
        /// What changed.
        why: String,
    },
    /// A check.
    Check {
        /// Its number.
        index: usize,
        /// Whether it passed.
        passed: bool,
        /// What it said.
        detail: String,
    },
    /// A check that was ended before it could tell.
    CheckEnded {
        /// Its number.
        index: usize,
    },
    /// The traces of a call whose outcome is unknown.
    Probed {
        /// Which call.
        call: CallId,
        /// What they tell.
        probe: Probe,
    },
    /// A text of the conversation that was put away.
    ReadBack {
        /// The call that asked for it.
        call: CallId,
        /// The text, or why it can't be had, as the end of a sentence.
        text: Result<String, String>,
    },
}

/// What one input led to: the state after it, the records to write, the work to start once they are durable.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    /// The state after.
    pub run: Run,
    /// The records, in order.
    pub records: Vec<Record>,
    /// The work.
    pub effects: Vec<Effect>,
}

/// The first record of a new run.
pub fn create(terms: Terms, now: Now) -> Record {
    Record { seq: Seq(1), at: now.at, active: now.active, event: Event::RunCreated { terms: Box::new(terms) } }
}

/// What the pool above the run says to the next model call (docs/ENGINE.md §8.5).
#[derive(Clone, Copy, Debug)]
pub enum Above<'a> {
    /// It may be made.
    Bears,
    /// Not yet: what came before is to be made durable and settled first.
    Later,
    /// It may not.
    Refuses(&'a Lack),
}

/// One input, to rest. On a refusal nothing changed.
pub fn turn(run: &Run, input: &Input, now: Now) -> Result<Turn, Refusal> {
    turn_below(run, input, now, Above::Bears)
}

/// One input, to rest, under a pool above the run that may not bear the next model call.
pub fn turn_below(run: &Run, input: &Input, now: Now, above: Above<'_>) -> Result<Turn, Refusal> {
    let mut next = run.clone();
    let mut records = Vec::new();
    take(&mut next, respond::respond(run, input, now)?, now, &mut records)?;
    for _ in 0..limits::GROUPS_PER_TURN {
        let group = below(advance::advance(&next, now), above);
        if group.is_empty() {
            let mut effects: Vec<Effect> = Vec::new();
            for one in records.iter().flat_map(|record| effect::of(&next, record)) {
                // Calls that became void together are looked at together, once.
                if !effects.contains(&one) {
                    effects.push(one);
                }
            }
            return Ok(Turn { run: next, records, effects });
        }
        take(&mut next, group, now, &mut records)?;
    }
    Err(Refusal::Broken(format!("one input led to more than {} groups of events", limits::GROUPS_PER_TURN)))
}

/// The group as the pool above the run lets it be.
fn below(group: Vec<Event>, above: Above<'_>) -> Vec<Event> {
    let reserves = group.iter().any(|event| matches!(event, Event::BudgetReserved { .. }));
    match above {
        Above::Later if reserves => Vec::new(),
        Above::Refuses(lack) if reserves => respond::parked_for(std::slice::from_ref(lack)),
        Above::Bears | Above::Later | Above::Refuses(_) => group,
    }
}

/// Takes a group of events into the state, and checks what must hold after it.
fn take(run: &mut Run, group: Vec<Event>, now: Now, records: &mut Vec<Record>) -> Result<(), Refusal> {
    for event in group {
        records.push(fold_in(run, event, now)?);
    }
    Ok(run.check()?)
}

/// Numbers an event and folds it in.
pub fn fold_in(run: &mut Run, event: Event, now: Now) -> Result<Record, Broken> {
    let record = Record { seq: run.seq.next(), at: now.at, active: now.active, event };
    run.apply(&record)?;
    Ok(record)
}
