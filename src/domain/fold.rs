//! The one fold: what a record changes. A record that does not fit is `Broken`: a bug, or a damaged journal.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use rpds::VectorSync;

use crate::domain::approval::By;
use crate::domain::approval::Origin;
use crate::domain::approval::Resolution;
use crate::domain::budget::ReservationId;
use crate::domain::calls::Stage;
use crate::domain::command::Policy;
use crate::domain::context::Context;
use crate::domain::control;
use crate::domain::event::Event;
use crate::domain::event::Finding;
use crate::domain::event::Record;
use crate::domain::id::CallId;
use crate::domain::id::InterjectionId;
use crate::domain::id::ModelCallId;
use crate::domain::id::RunId;
use crate::domain::id::Seq;
use crate::domain::limits;
use crate::domain::message::Entry;
use crate::domain::message::Message;
use crate::domain::message::Transcript;
use crate::domain::model::Offer;
use crate::domain::model::Purpose;
use crate::domain::money::MicroUsd;
use crate::domain::plan::Plan;
use crate::domain::plan::TodoStatus;
use crate::domain::pool::Pool;
use crate::domain::pricing::Pricing;
use crate::domain::progress::Progress;
use crate::domain::run::Claim;
use crate::domain::run::ClaimStage;
use crate::domain::run::Closed;
use crate::domain::run::Estimate;
use crate::domain::run::Interjection;
use crate::domain::run::Iteration;
use crate::domain::run::NextIds;
use crate::domain::run::Run;
use crate::domain::run::Stall;
use crate::domain::status::Phase;
use crate::domain::status::Status;
use crate::domain::status::Warning;
use crate::domain::terms::Terms;
use crate::domain::tool::CallState;
use crate::domain::tool::Probe;

/// A record that does not fit the state before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Where.
    pub seq: Seq,
    /// Why, for the log.
    pub why: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "record {} does not fit: {}", self.seq, self.why)
    }
}

impl std::error::Error for Broken {}

impl Run {
    /// Folds a whole journal. Errors when it is empty or a record does not fit.
    pub fn fold(id: &RunId, records: &[Record]) -> Result<Run, Broken> {
        Run::fold_each(id, records, |_, _, _| {})
    }

    /// Folds a whole journal, and shows each record with the run that it led to and the length of the conversation
    /// before it. Errors when the journal is empty or a record does not fit.
    pub fn fold_each(id: &RunId, records: &[Record], each: impl FnMut(&Record, &Run, usize)) -> Result<Run, Broken> {
        let Some((first, rest)) = records.split_first() else {
            return Err(Broken { seq: Seq(1), why: "the journal is empty".to_string() });
        };
        Run::begin(id.clone(), first)?.fold_after(rest, each)
    }

    /// Goes on with the records after this state, and shows each as `fold_each` does. Errors when a record does not fit,
    /// or goes back to before this state.
    pub fn fold_after(self, rest: &[Record], mut each: impl FnMut(&Record, &Run, usize)) -> Result<Run, Broken> {
        let wanted: BTreeSet<Seq> = rest.iter().filter_map(|record| gone_back_to(&record.event)).collect();
        let mut folding = Folding::from(self, wanted);
        rest.iter().try_for_each(|record| folding.take(record, &mut each))?;
        Ok(folding.run)
    }

    /// The state after the first record, which must be `RunCreated`.
    pub fn begin(id: RunId, record: &Record) -> Result<Run, Broken> {
        let Event::RunCreated { terms } = &record.event else {
            return Err(Broken { seq: record.seq, why: "the first record is not RunCreated".to_string() });
        };
        if record.seq != Seq(1) {
            return Err(Broken { seq: record.seq, why: "the first record is not number 1".to_string() });
        }
        let plan = Plan::seed(terms.goal.as_str());
        Ok(Run {
            id,
            seq: record.seq,
            at: record.at,
            created: record.at,
            pool: Pool::new(terms.limits),
            terms: Arc::new(Terms::clone(terms)),
            offer: offer(terms),
            status: Status::Queued,
            status_since: record.at,
            owner: None,
            attempt: 1,
            lineage: None,
            brought: None,
            iteration: Iteration::new(0, Phase::Decompose, record, &plan, false),
            plan,
            transcript: Transcript::default(),
            context: Context::default(),
            decomposes: 0,
            history: VectorSync::new_sync(),
            model_call: None,
            calls: BTreeMap::new(),
            trust: terms.trust,
            trust_was_driven: false,
            granted_tools: BTreeSet::new(),
            progress: Progress::default(),
            retry_at: None,
            trouble: None,
            provider_waits: 0,
            lacks: Vec::new(),
            pricing: Pricing::of(terms.model.price),
            control: None,
            interjections: Vec::new(),
            verdict: None,
            stall: None,
            plan_news: Vec::new(),
            warnings: BTreeMap::new(),
            estimate: Estimate { input: 0, bytes: 0, factor_percent: limits::INPUT_FACTOR_PERCENT },
            next: NextIds { call: CallId(1), model_call: ModelCallId(1), interjection: InterjectionId(1) },
        })
    }

    /// Takes in one record. Errors when it does not follow the last one or does not fit. A rewind does not: it needs
    /// what was before it (`Run::rewind`), and is written only when nobody else looks at the run.
    pub fn apply(&mut self, record: &Record) -> Result<(), Broken> {
        let broken = |why: String| Broken { seq: record.seq, why };
        if record.seq != self.seq.next() {
            return Err(broken(format!("it should be number {}", self.seq.next())));
        }
        if self.is_ended() && !self.may_follow_end(&record.event) {
            return Err(broken("the run has ended before".to_string()));
        }
        self.change(record).map_err(broken)?;
        self.pool.observe_time(record.at, record.active);
        self.seq = record.seq;
        self.at = record.at;
        Ok(())
    }

    /// What must hold between two groups of records (docs/ARCHITECTURE.md, invariants).
    pub fn check(&self) -> Result<(), Broken> {
        let broken = |why: &str| Err(Broken { seq: self.seq, why: why.to_string() });
        if self.pool.reserved().map(|held| held.id) != self.model_call.map(|call| call.id) {
            return broken("a reservation without its model call, or a model call without its reservation");
        }
        let at_rest = self.status.is_end() || matches!(self.status, Status::Parked(_));
        if at_rest && self.pool.reserved().is_some() {
            return broken("a run at rest holds a reservation");
        }
        if self.is_ended() && self.is_busy() {
            return broken("the run ended while something was under way");
        }
        if self.calls.values().any(|call| call.state == CallState::Running && call.allowed.is_none()) {
            return broken("a call runs that nobody allowed");
        }
        if self.plan.todos.iter().filter(|todo| todo.status == TodoStatus::InProgress).count() > 1 {
            return broken("more than one todo is in progress");
        }
        Ok(())
    }

    fn change(&mut self, record: &Record) -> Result<(), String> {
        match &record.event {
            Event::RunCreated { .. } => return Err("the run was created before".to_string()),
            Event::OwnerAcquired { owner } => {
                self.owner = Some(owner.clone());
                self.trust_was_driven |= self.is_driven();
            }
            Event::StatusChanged { status, by: _ } => self.change_status(status, record),
            Event::Rewound { .. } => return Err("a rewind needs what was before it".to_string()),
            Event::RestoreStarted { .. } | Event::RestoreFinished { .. } => self.may_restore()?,
            Event::Forked { parent, iteration, terms, brought, by: _ } => {
                if *brought {
                    self.disown(record.seq);
                }
                self.branch_off((parent, *iteration), terms, record)?;
            }
            Event::Imported { by: _, here } => self.take_in(here.as_ref(), record.seq),
            Event::ControlRequested { control, by: _ } => self.control = self.control.max(Some(*control)),
            Event::Recovered { findings } => self.recover(findings)?,
            Event::PreflightFailed { lacks } => self.lacks = lacks.clone(),
            Event::IterationStarted { n, phase } => self.start_iteration(*n, *phase, record)?,
            Event::InterjectionQueued { id, text, by: _, policy } => {
                self.next.interjection = id.next();
                let one = Interjection { id: *id, text: text.clone(), at: record.at, policy: *policy };
                self.interjections.push(one);
            }
            Event::InterjectionDelivered { id } => self.deliver(*id, record)?,
            Event::InterjectionWithdrawn { id, by: _ } => {
                self.take_interjection(*id)?;
            }
            Event::BudgetReserved { reservation } => self.pool.reserve(*reservation, record.at)?,
            Event::BudgetSettled { id, charge } => {
                if self.pool.charge(*id).is_none() {
                    self.pool.settle(*id, charge)?;
                    self.iteration.spent = self.iteration.spent.plus(charge.amount);
                    self.iteration.tokens = self.iteration.tokens.saturating_add(charge.usage.total());
                }
            }
            Event::BudgetRaised { axis, limit, by: _ } => {
                self.pool.raise(*axis, *limit);
                self.warnings.remove(&Warning::Budget(*axis));
            }
            Event::PriceChosen { price, by: _ } => self.choose_price(*price)?,
            Event::BudgetCorrected { id, amount, by: _ } => self.pool.correct(*id, *amount)?,
            Event::ModelCallStarted { call, attempt, digest: _, max_output, purpose } => {
                self.start_model_call(ReservationId { call: *call, attempt: *attempt }, *max_output, *purpose, record)?;
            }
            Event::ModelCallFinished { call, reply, discarded } => {
                let purpose = self.end_model_call(*call)?;
                // Requests of another shape say nothing about the next turn.
                if purpose == Purpose::Turn && self.iteration.phase != Phase::WrapUp {
                    self.learn(reply);
                    self.count_truncated(reply);
                }
                self.trouble = None;
                self.provider_waits = 0;
                match (purpose, discarded) {
                    (Purpose::Judge(_), _) => {}
                    (Purpose::Turn, None) => self.accept(*call, reply, record),
                    (Purpose::Turn, Some(_)) => self.discard(reply),
                    (Purpose::Summary, used) => self.end_summary(used.is_none()),
                }
            }
            Event::ModelCallFailed { call, failure } => {
                let purpose = self.end_model_call(*call)?;
                self.meet(purpose, failure);
            }
            Event::ContextPruned { refs } => self.context.elide(refs)?,
            Event::ContextCompacted { from: _, to, summary, author: _, before, after } => {
                self.compact(*to, summary, *before, *after)?;
            }
            Event::RetryScheduled { at, why: _ } => self.wait_for_retry(*at),
            Event::ToolCallProposed { call, wire_id, tool, arguments, effect } => {
                self.propose(*call, wire_id, tool, arguments, *effect, record)?;
            }
            Event::ToolCallPrepared { call, facts } => {
                self.call_in(*call, record, &[Stage::Proposed])?.state = CallState::Prepared;
                self.call_mut(*call)?.facts = Some(facts.as_ref().clone());
            }
            Event::ApprovalRequested { call, why, digest: _ } => {
                self.call_in(*call, record, &[Stage::Prepared])?.state = CallState::Awaiting { why: why.clone() };
                self.progress.ask(record.at);
            }
            Event::ApprovalDecided { call, digest, decision, by } => {
                let one = self.call_in(*call, record, &[Stage::Prepared, Stage::Awaiting])?;
                if one.digest().as_ref() != Some(digest) {
                    return Err(format!("{call} was decided about other bytes"));
                }
                self.decide(*call, decision, by)?;
            }
            Event::ApprovalInvalidated { call, why: _ } => {
                let one = self.call_in(*call, record, &[Stage::Awaiting, Stage::Approved, Stage::Running])?;
                one.unprepare();
            }
            Event::TrustChanged { trust, by: _ } => self.change_trust(*trust),
            Event::ToolCallStarted { call, attempt } => {
                let one = self.call_in(*call, record, &[Stage::Approved, Stage::Unknown])?;
                if one.allowed.is_none() || one.attempts + 1 != *attempt {
                    return Err(format!("{call} started without leave, or out of turn"));
                }
                one.state = CallState::Running;
                one.attempts = *attempt;
                self.pool.count_tool_call();
            }
            Event::ToolCallFinished { call, outcome } => self.finish_call(*call, outcome, record)?,
            Event::ToolCallProbed { call, probe } => {
                let one = self.call_in(*call, record, &[Stage::Unknown])?;
                one.state = match probe {
                    Probe::NotDone => CallState::Approved,
                    Probe::Done | Probe::Unknown => CallState::OutcomeUnknown { probed: true },
                };
            }
            Event::ToolOutcomeResolved { call, resolution, by } => {
                let one = self.call_in(*call, record, &[Stage::Unknown])?;
                match resolution {
                    Resolution::RunAgain => {
                        one.state = CallState::Approved;
                        one.allowed = Some(By::Operator(by.clone()));
                        one.origin = Origin::Here;
                        // That was for the one time that the operator typed it.
                        one.is_unboxed = false;
                    }
                    Resolution::Happened(_) | Resolution::NotHappened | Resolution::Skip => {}
                }
            }
            Event::QuestionAnswered { call, text: _, by: _ } => {
                self.call_in(*call, record, &[Stage::Proposed])?;
                self.reset_windows();
            }
            Event::PlanUpdated { plan, by, told } => self.change_plan(plan, by.is_some(), told)?,
            Event::DoneClaimed { call, summary } => {
                self.must_be_open("a claim")?;
                let claim = Claim { call: *call, summary: summary.clone(), stage: ClaimStage::Passed(0) };
                self.iteration.claim = Some(claim);
            }
            Event::CheckStarted { index } => self.start_check(*index)?,
            Event::CheckInterrupted { index } => self.lose_check(*index)?,
            Event::AcceptanceChecked { index, passed, detail } => self.end_check(*index, *passed, detail)?,
            Event::ClaimJudged { verdict, text } => self.judge_claim(*verdict, text, record)?,
            Event::ConfirmationRequested { index } => self.ask_to_confirm(*index)?,
            Event::ConfirmationGiven { index, confirmed, text, by: _ } => self.confirm(*index, *confirmed, text)?,
            Event::ReplansGranted { by: _ } => self.grant_replans()?,
            Event::ProgressObserved { observation } => {
                self.must_be_open("an observation")?;
                self.forget_stall_warnings();
                self.progress.take(observation);
                self.iteration.observation = Some(observation.as_ref().clone());
            }
            Event::StallDetected { detector, diagnosis } => {
                self.must_be_open("a stall")?;
                self.stall = Some(Stall { detector: *detector, diagnosis: diagnosis.clone() });
            }
            Event::Warned { what, text } => {
                if let Warning::Stall(_) = what {
                    self.must_be_open("a warning about a stall")?;
                }
                self.warnings.insert(*what, text.clone());
            }
            Event::IterationClosed { n, verdict } => {
                if *n != self.iteration.n || !self.iteration.is_open {
                    return Err(format!("iteration {n} is not open"));
                }
                self.close_iteration(record);
                self.verdict = Some(verdict.clone());
            }
        }
        Ok(())
    }

    fn recover(&mut self, findings: &[Finding]) -> Result<(), String> {
        for finding in findings {
            match finding {
                Finding::ModelCallLost(call) => {
                    self.end_model_call(*call)?;
                }
                Finding::ToolCallLost(call) => {
                    let one = self.call_mut(*call)?;
                    if one.state != CallState::Running {
                        return Err(format!("{call} was lost but did not run"));
                    }
                    one.state = CallState::OutcomeUnknown { probed: false };
                }
                Finding::CheckLost(index) => self.lose_check(*index)?,
            }
        }
        self.progress.recoveries += 1;
        Ok(())
    }

    /// Errors where what belongs to an iteration comes outside of one.
    fn must_be_open(&self, what: &str) -> Result<(), String> {
        if self.iteration.is_open { Ok(()) } else { Err(format!("{what}, and no iteration is open")) }
    }

    fn start_iteration(&mut self, n: u32, phase: Phase, record: &Record) -> Result<(), String> {
        if self.iteration.is_open || n != self.iteration.n + 1 {
            return Err(format!("iteration {n} after {}", self.iteration.n));
        }
        match phase {
            Phase::Decompose => self.decomposes += 1,
            Phase::WrapUp => {}
            Phase::Pursue | Phase::Replan => self.pool.count_loop(),
        }
        self.iteration = Iteration::new(n, phase, record, &self.plan, true);
        self.tell_plan_news(record);
        Ok(())
    }

    fn deliver(&mut self, id: InterjectionId, record: &Record) -> Result<(), String> {
        let one = self.take_interjection(id)?;
        self.say(Message::Operator { id, text: one.text }, record);
        self.iteration.interjected = true;
        self.reset_windows();
        self.progress.denials = 0;
        // The claims were about the work before this.
        if one.policy == Policy::AfterDone {
            self.progress.claims = 0;
        }
        Ok(())
    }

    fn take_interjection(&mut self, id: InterjectionId) -> Result<Interjection, String> {
        let place = self.interjections.iter().position(|one| one.id == id);
        place.map(|place| self.interjections.remove(place)).ok_or_else(|| format!("{id} does not wait"))
    }

    fn close_iteration(&mut self, record: &Record) {
        self.iteration.is_open = false;
        // A wait for the next attempt ends with what was to be tried again.
        self.retry_at = None;
        let seen = self.iteration.observation.clone().unwrap_or_default();
        // What was interrupted before its reply was no attempt at a plan, and no replan.
        if self.iteration.phase == Phase::Decompose && self.iteration.reply.is_none() {
            self.decomposes = self.decomposes.saturating_sub(1);
        }
        if self.iteration.phase == Phase::Replan && self.iteration.reply.is_some() {
            self.progress.replans += 1;
            self.progress.ineffective = if seen.movement.is_structural() { 0 } else { self.progress.ineffective + 1 };
            self.reset_windows();
            self.stall = None;
        }
        self.history.push_back_mut(Closed {
            n: self.iteration.n,
            phase: self.iteration.phase,
            at: record.at,
            spent: self.iteration.spent,
            tokens: self.iteration.tokens,
            calls: u32::try_from(self.iteration.calls.len()).unwrap_or(u32::MAX),
            progress: seen.progress,
        });
        self.calls.clear();
    }

    pub(crate) fn answer(&mut self, message: Message, record: &Record) {
        let entry = Arc::new(Entry { iteration: self.iteration.n, at: record.at, seq: record.seq, message });
        self.context.push_result(&entry);
        self.transcript.push_result(entry);
    }

    pub(crate) fn say(&mut self, message: Message, record: &Record) {
        let entry = Arc::new(Entry { iteration: self.iteration.n, at: record.at, seq: record.seq, message });
        self.context.push(&entry);
        self.transcript.push(entry);
    }
}

/// The record that a rewind goes back to.
pub fn gone_back_to(event: &Event) -> Option<Seq> {
    if let Event::Rewound { to_seq, .. } = event { Some(*to_seq) } else { None }
}

/// A fold that is given one record after the other, and keeps the states that later ones go back to.
pub struct Folding {
    run: Run,
    wanted: BTreeSet<Seq>,
    kept: BTreeMap<Seq, Run>,
}

impl Folding {
    /// Goes on from this state. `wanted` are the records that later ones go back to.
    pub fn from(run: Run, wanted: BTreeSet<Seq>) -> Folding {
        let mut folding = Folding { run, wanted, kept: BTreeMap::new() };
        folding.keep();
        folding
    }

    /// Takes in the next record, and shows it with the run that it led to and the length of the conversation before
    /// it. Errors when it does not fit, or goes back to a state that was not kept.
    pub fn take(&mut self, record: &Record, each: &mut impl FnMut(&Record, &Run, usize)) -> Result<(), Broken> {
        let talk = self.run.transcript.len();
        match gone_back_to(&record.event) {
            Some(to_seq) => self.run.rewind(self.kept.get(&to_seq), record)?,
            None => self.run.apply(record)?,
        }
        self.keep();
        each(record, &self.run, talk);
        Ok(())
    }

    fn keep(&mut self) {
        if self.wanted.contains(&self.run.seq) {
            self.kept.insert(self.run.seq, self.run.clone());
        }
    }
}

impl Iteration {
    fn new(n: u32, phase: Phase, record: &Record, plan: &Plan, is_open: bool) -> Iteration {
        Iteration {
            n,
            phase,
            is_open,
            started: record.at,
            plan_before: plan.clone(),
            model_call: None,
            failures: 0,
            discards: 0,
            max_output: None,
            degenerate: 0,
            pauses: 0,
            planned_in_text: false,
            reply: None,
            calls: Vec::new(),
            claim: None,
            passed: Vec::new(),
            interjected: false,
            observation: None,
            spent: MicroUsd(0),
            tokens: 0,
        }
    }
}

/// The tools of these terms and the control tools.
pub(crate) fn offer(terms: &Terms) -> Arc<Offer> {
    Arc::new(Offer::new(control::specs().iter().chain(&terms.tools).cloned().collect()))
}
