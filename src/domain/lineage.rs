//! Going back and branching off: what a rewind hides and keeps, what a fork inherits (docs/ENGINE.md §15).
//!
//! A rewind removes no record. It takes the state that the journal folds to up to the end of an iteration, and puts
//! into it what can't be undone: money and counters, denials, ids that were given, what the operator said since.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use serde::Deserialize;
use serde::Serialize;

use crate::domain::approval::By;
use crate::domain::approval::Origin;
use crate::domain::event::ClaimVerdict;
use crate::domain::event::Event;
use crate::domain::event::Record;
use crate::domain::fold::Broken;
use crate::domain::id::CallId;
use crate::domain::id::InterjectionId;
use crate::domain::id::RunId;
use crate::domain::id::Seq;
use crate::domain::message::Message;
use crate::domain::model::Dialect;
use crate::domain::money::MicroUsd;
use crate::domain::money::Price;
use crate::domain::plan::Plan;
use crate::domain::plan::PlanSource;
use crate::domain::pool::Pool;
use crate::domain::pricing::Pricing;
use crate::domain::progress::Progress;
use crate::domain::run::ClaimStage;
use crate::domain::run::Run;
use crate::domain::sandbox::READING_RULE;
use crate::domain::status::ParkReason;
use crate::domain::status::Status;
use crate::domain::terms::Terms;
use crate::domain::tool::CallState;
use crate::domain::tool::EffectClass;
use crate::domain::tool::FileWrite;
use crate::domain::tool::OutcomeKind;
use crate::domain::trust::Trust;

/// Where a run branched off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lineage {
    /// The run that it branched off from.
    pub parent: RunId,
    /// The last record that it has from there.
    pub seq: Seq,
    /// The iteration that this record closed.
    pub iteration: u32,
    /// What that run, and those before it, had cost up to there. Not a part of what this run spent.
    pub cost: MicroUsd,
}

/// An iteration that is not closed, or not part of the visible history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotABoundary {
    /// What was asked for.
    pub asked: u32,
    /// The nearest iteration that would do; nothing when none is closed yet.
    pub nearest: Option<u32>,
    /// Where the run branched off, if what was asked for is before that.
    pub before: Option<(RunId, u32)>,
}

/// A call that may have changed something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deed {
    /// Which.
    pub call: CallId,
    /// The tool.
    pub tool: String,
    /// What it was about.
    pub title: String,
    /// How it ended; nothing when nobody knows.
    pub outcome: Option<OutcomeKind>,
    /// The file that it was to write, as it was last prepared before its last start.
    pub write: Option<FileWrite>,
}

/// What lies behind a point of a journal and is not undone by going back to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Behind {
    /// Calls that may have changed something, in the order of their starts.
    pub deeds: Vec<Deed>,
    /// What the operator said and the model was told, with its words.
    pub told: Vec<(InterjectionId, String)>,
}

impl Behind {
    /// The same without the calls that wrote a file, for when it is said of each file what becomes of it.
    pub fn without_files(&self) -> Behind {
        let deeds = self.deeds.iter().filter(|deed| deed.write.is_none()).cloned().collect();
        Behind { deeds, told: self.told.clone() }
    }
}

/// What is known of a call before it starts.
struct Proposed {
    tool: String,
    title: String,
    effect: EffectClass,
    write: Option<FileWrite>,
}

/// The closed iterations of the visible history, each with the record that closed it. A fork's own history begins with
/// the iteration after which it branched off, as the record of the fork left it: what is before is its parent's.
pub fn boundaries(records: &[Record]) -> Vec<(u32, Seq)> {
    let mut closed: Vec<(u32, Seq)> = Vec::new();
    for record in records {
        if let Event::IterationClosed { n, .. } = &record.event {
            closed.push((*n, record.seq));
        } else if let Event::Forked { iteration, .. } = &record.event {
            closed = vec![(*iteration, record.seq)];
        } else if let Event::Rewound { to_seq, .. } = &record.event {
            closed.retain(|(_, seq)| seq <= to_seq);
        }
    }
    closed
}

/// The record that closed an iteration of the visible history.
#[allow(clippy::wildcard_enum_match_arm, reason = "it looks for one event; others, and those to come, do not matter")]
pub fn boundary(records: &[Record], asked: u32) -> Result<Seq, NotABoundary> {
    let closed = boundaries(records);
    match closed.iter().find(|(n, _)| *n == asked) {
        Some((_, seq)) => Ok(*seq),
        None => {
            let nearest = closed.iter().map(|(n, _)| *n).min_by_key(|n| n.abs_diff(asked));
            let forked = records.iter().rev().find_map(|record| match &record.event {
                Event::Forked { parent, iteration, .. } => Some((parent.clone(), *iteration)),
                _ => None,
            });
            Err(NotABoundary { asked, nearest, before: forked.filter(|(_, begins)| (1..*begins).contains(&asked)) })
        }
    }
}

/// The lines that were let happen only because they only read, so that they changed nothing.
pub fn readings(records: &[Record]) -> BTreeSet<CallId> {
    let mut readings = BTreeSet::new();
    let mut others = BTreeSet::new();
    for record in records {
        if let Event::ApprovalDecided { call, by, .. } = &record.event {
            let is_reading = matches!(by, By::Rule(rule) if rule == READING_RULE);
            if is_reading {
                readings.insert(*call)
            } else {
                others.insert(*call)
            };
        }
    }
    &readings - &others
}

/// What happened after a record and can't be taken back by hiding it.
#[allow(
    clippy::wildcard_enum_match_arm,
    reason = "it looks for a few events; others, and those to come, do not matter"
)]
pub fn behind(records: &[Record], seq: Seq) -> Behind {
    let readings = readings(records);
    let mut proposed: BTreeMap<CallId, Proposed> = BTreeMap::new();
    let mut said: BTreeMap<InterjectionId, &str> = BTreeMap::new();
    let mut behind = Behind::default();
    for record in records {
        let is_behind = record.seq > seq;
        match &record.event {
            Event::ToolCallProposed { call, tool, effect, .. } => {
                let (tool, title) = (tool.clone(), String::new());
                proposed.insert(*call, Proposed { tool, title, effect: *effect, write: None });
            }
            Event::ToolCallPrepared { call, facts } => {
                proposed.entry(*call).and_modify(|known| {
                    known.title = facts.title.clone();
                    known.write = facts.write.clone();
                });
            }
            Event::ToolCallStarted { call, .. } if is_behind && !readings.contains(call) => {
                let Some(Proposed { tool, title, effect, write }) = proposed.get(call) else { continue };
                if matches!(effect, EffectClass::Read | EffectClass::Control) {
                    continue;
                }
                match behind.deeds.iter_mut().find(|deed| deed.call == *call) {
                    Some(deed) => deed.write = write.clone(),
                    None => {
                        let (tool, title, write) = (tool.clone(), title.clone(), write.clone());
                        behind.deeds.push(Deed { call: *call, tool, title, outcome: None, write });
                    }
                }
            }
            Event::ToolCallFinished { call, outcome } => {
                let deed = behind.deeds.iter_mut().find(|deed| deed.call == *call);
                deed.into_iter().for_each(|deed| deed.outcome = Some(outcome.kind));
            }
            // What was written elsewhere is not taken back here, where nobody saw it.
            Event::Imported { .. } => behind.deeds.iter_mut().for_each(|deed| deed.write = None),
            Event::InterjectionQueued { id, text, .. } => {
                said.insert(*id, text);
            }
            Event::InterjectionDelivered { id } if is_behind => {
                behind.told.push((*id, said.get(id).map_or(String::new(), |text| (*text).to_string())));
            }
            _ => {}
        }
    }
    behind
}

/// The record since which a journal is driven here, where it was brought from elsewhere.
pub fn brought(records: &[Record]) -> Option<Seq> {
    let is_brought =
        |record: &&Record| matches!(record.event, Event::Imported { .. } | Event::Forked { brought: true, .. });
    records.iter().rfind(is_brought).map(|record| record.seq)
}

/// Where a record was written; `brought` is as above.
pub fn origin(brought: Option<Seq>, seq: Seq) -> Origin {
    if brought.is_some_and(|since| seq < since) { Origin::Elsewhere } else { Origin::Here }
}

/// What holds for a run that was brought from elsewhere, whatever its journal says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Here {
    /// What its model costs by the configuration of this place; nothing where that does not say.
    pub price: Option<Price>,
    /// Whether the operator has read its checks and takes them over. Else it has none.
    pub with_checks: bool,
}

/// What each step back hid that it did not undo: the iteration that it went back to, and the calls behind that. A call
/// is told once, of the first step that hid it.
pub fn hidden(records: &[Record]) -> Vec<(u32, Vec<Deed>)> {
    let mut told = BTreeSet::new();
    let mut steps = Vec::new();
    for (place, record) in records.iter().enumerate() {
        if let Event::Rewound { to, to_seq, .. } = &record.event {
            let mut deeds = behind(records.get(..place).unwrap_or_default(), *to_seq).deeds;
            deeds.retain(|deed| told.insert(deed.call));
            steps.push((*to, deeds));
        }
    }
    steps.retain(|(_, deeds)| !deeds.is_empty());
    steps
}

impl Run {
    /// Takes in a rewind. `past` is what the journal folds to up to the record that it goes back to. Errors when that
    /// is not the end of the iteration that the record names, or the run may not be rewound.
    pub fn rewind(&mut self, past: Option<&Run>, record: &Record) -> Result<(), Broken> {
        let broken = |why: &str| Broken { seq: record.seq, why: why.to_string() };
        let Event::Rewound { to, to_seq, .. } = &record.event else { return Err(broken("it is no rewind")) };
        if record.seq != self.seq.next() {
            return Err(broken("it does not follow the last record"));
        }
        match &self.status {
            Status::Parked(_) | Status::Failed(_) | Status::Cancelled => {}
            Status::Queued | Status::Running | Status::Completed(_) => {
                return Err(broken("a run can be rewound only when it is parked, failed or cancelled"));
            }
        }
        let is_visible = self.history.iter().any(|closed| closed.n == *to);
        let past =
            past.filter(|past| is_visible && past.seq == *to_seq && past.iteration.n == *to && !past.iteration.is_open);
        let past = past.ok_or_else(|| broken("it does not go back to the end of an iteration"))?.clone();
        let now = self.clone();
        *self = Run {
            seq: record.seq,
            terms: now.terms,
            at: record.at,
            status: Status::Parked(ParkReason::Paused),
            status_since: record.at,
            owner: now.owner,
            attempt: now.attempt,
            brought: now.brought,
            trust: now.trust,
            trust_was_driven: now.trust_was_driven,
            // What was granted then and taken back since stays taken back.
            granted_tools: past.granted_tools.intersection(&now.granted_tools).cloned().collect(),
            pool: now.pool,
            next: now.next,
            interjections: now.interjections,
            provider_waits: now.provider_waits,
            pricing: now.pricing,
            progress: Progress {
                denials: now.progress.denials,
                denied: now.progress.denied,
                denied_elsewhere: now.progress.denied_elsewhere,
                recoveries: now.progress.recoveries,
                // Only the operator's grant takes this count back (docs/ENGINE.md §7.5).
                replans: now.progress.replans,
                watched: now.progress.watched,
                granted: past.progress.granted.intersection(&now.progress.granted).cloned().collect(),
                ..past.progress
            },
            lacks: Vec::new(),
            control: None,
            retry_at: None,
            trouble: None,
            ..past
        };
        self.estimate.factor_percent = self.estimate.factor_percent.max(now.estimate.factor_percent);
        if now.brought.is_some_and(|since| *to_seq < since) {
            self.disown_calls();
        }
        self.pool.observe_time(record.at, record.active);
        Ok(())
    }

    /// Becomes a run of its own: the conversation, the plan and what was denied stay; everything that counts or grants
    /// starts anew.
    pub(crate) fn branch_off(&mut self, from: (&RunId, u32), terms: &Terms, record: &Record) -> Result<(), String> {
        let (parent, iteration) = from;
        if self.iteration.is_open || self.iteration.n != iteration {
            return Err(format!("iteration {iteration} is not the last one and closed"));
        }
        let earlier = self.lineage.as_ref().map_or(MicroUsd(0), |lineage| lineage.cost);
        let cost = earlier.plus(self.pool.spent());
        self.lineage = Some(Lineage { parent: parent.clone(), seq: self.seq, iteration, cost });
        let has_new_goal = terms.goal != self.terms.goal;
        self.terms = std::sync::Arc::new(terms.clone());
        // A price that the operator told is a fact; to go on without one was leave, which is not inherited.
        self.pricing = match (terms.model.price, self.pricing) {
            // What a journal from elsewhere says of prices is no fact.
            (price, _) if self.brought.is_some() => Pricing::of(price),
            (Some(price), _) | (None, Pricing::Known(price)) => Pricing::Known(price),
            (None, Pricing::Unknown | Pricing::Off) => Pricing::Unknown,
        };
        self.pool = Pool::new(terms.limits);
        self.pool.observe_time(record.at, record.active);
        self.created = record.at;
        self.status = Status::Queued;
        self.status_since = record.at;
        self.owner = None;
        self.attempt = 1;
        self.progress = Progress {
            denied: std::mem::take(&mut self.progress.denied),
            denied_elsewhere: std::mem::take(&mut self.progress.denied_elsewhere),
            seen: self.progress.seen.clone(),
            written: self.progress.written.clone(),
            passed: std::mem::take(&mut self.progress.passed),
            watched: std::mem::take(&mut self.progress.watched),
            ..Progress::default()
        };
        self.trust = terms.trust;
        self.trust_was_driven = false;
        self.granted_tools.clear();
        self.lacks.clear();
        self.plan_news.clear();
        self.interjections.clear();
        self.control = None;
        self.retry_at = None;
        self.trouble = None;
        self.provider_waits = 0;
        self.verdict = None;
        self.stall = None;
        self.warnings.clear();
        if self.plan.source == PlanSource::Seed {
            self.plan = Plan { revision: self.plan.revision, ..Plan::seed(terms.goal.as_str()) };
        }
        if has_new_goal {
            let text = format!("The operator branched off here, with another goal: {}", terms.goal.as_str());
            self.say(Message::Engine { text }, record);
        }
        Ok(())
    }

    /// Forgets whatever was allowed where the journal comes from. A call that has not run is looked at anew, and so is one
    /// that would be run again by itself; of any other that may have run, only the operator can say here what became of it.
    pub(crate) fn take_in(&mut self, here: Option<&Here>, seq: Seq) {
        self.disown(seq);
        if let Some(here) = here {
            self.settle_in(here);
        }
        self.trust = self.trust.min(Trust::Ask);
        self.trust_was_driven = false;
        self.granted_tools.clear();
        self.progress.granted.clear();
        std::sync::Arc::make_mut(&mut self.terms).keep_full_trust = false;
        for call in self.calls.values_mut() {
            match call.state {
                CallState::Proposed | CallState::Prepared | CallState::Awaiting { .. } | CallState::Approved => {
                    call.unprepare();
                }
                CallState::Running | CallState::OutcomeUnknown { .. } => {
                    call.state = CallState::OutcomeUnknown { probed: true };
                }
                CallState::Denied { .. } | CallState::Closed(_) => {}
            }
        }
        let again: Vec<CallId> =
            self.calls.values().filter(|call| self.settles_itself(call)).map(|call| call.id).collect();
        for call in self.calls.values_mut().filter(|call| again.contains(&call.id)) {
            call.unprepare();
        }
    }

    /// Takes the price and the checks of this place, and begins with the checks anew.
    fn settle_in(&mut self, here: &Here) {
        let terms = std::sync::Arc::make_mut(&mut self.terms);
        if terms.model.dialect != Dialect::Scripted {
            terms.model.price = here.price;
            self.pricing = Pricing::of(here.price);
        }
        if !here.with_checks {
            terms.checks.clear();
        }
        if let Some(claim) = &mut self.iteration.claim {
            claim.stage = match &claim.stage {
                // Its checks passed there, if they were run at all.
                ClaimStage::Judged(ClaimVerdict::Verified) => ClaimStage::Judged(ClaimVerdict::Unverified),
                ClaimStage::Judged(verdict) => ClaimStage::Judged(*verdict),
                ClaimStage::Passed(_)
                | ClaimStage::Checking(_)
                | ClaimStage::Asking(_)
                | ClaimStage::CheckFailed { .. } => ClaimStage::Passed(0),
            };
        }
        if self.status == Status::Parked(ParkReason::Confirm) {
            self.status = Status::Parked(ParkReason::Paused);
        }
    }

    /// Whether a record may follow the end of the run: a new owner, the operator's retry of a run that did not
    /// complete, a rewind of it, what a charge in doubt really was, or that it was brought here.
    pub(crate) fn may_follow_end(&self, event: &Event) -> bool {
        let is_reopened = matches!(self.status, Status::Failed(_) | Status::Cancelled);
        let takes_up = matches!(
            event,
            Event::StatusChanged { status: Status::Running | Status::Parked(ParkReason::Paused), by: Some(_) }
        );
        let changes_no_end =
            matches!(event, Event::OwnerAcquired { .. } | Event::Imported { .. } | Event::BudgetCorrected { .. });
        changes_no_end || (takes_up && is_reopened)
    }
}
