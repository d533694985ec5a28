//! One life: inputs, turns, and a process that may be killed at any boundary. After a kill only the journal and the
//! world remain.

use tiller::domain::command::Command;
use tiller::domain::event::Event;
use tiller::domain::event::Owner;
use tiller::domain::event::OwnerMode;
use tiller::domain::event::Record;
use tiller::domain::id::ClientId;
use tiller::domain::id::RunId;
use tiller::domain::id::Seq;
use tiller::domain::run::Run;
use tiller::domain::run::Waits;
use tiller::domain::snapshot::Snapshot;
use tiller::domain::status::Lack;
use tiller::domain::status::ParkReason;
use tiller::domain::status::Status;
use tiller::domain::time::Now;
use tiller::domain::time::Span;
use tiller::domain::time::Timestamp;
use tiller::machine::Input;
use tiller::machine::Outcome;
use tiller::machine::create;
use tiller::machine::effect::Effect;
use tiller::machine::turn;

use crate::chance::Chance;
use crate::simulation::checker;
use crate::simulation::checker::Checker;
use crate::simulation::client::Client;
use crate::simulation::flying::Flying;
use crate::simulation::flying::ended;
use crate::simulation::kind::Kind;
use crate::simulation::kind::terms;
use crate::simulation::operator::Operator;
use crate::simulation::sabotage;
use crate::simulation::sabotage::Sabotage;
use crate::simulation::speaker;
use crate::simulation::world::World;

/// When the process is killed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Crash {
    Never,
    /// At this boundary, once.
    At(u32),
    /// At any boundary, by chance.
    Often,
    /// Around the batches that leave something out or put a summary in its place: before and after, by chance.
    MakingRoom,
}

impl Crash {
    pub fn number(self) -> String {
        match self {
            Crash::Never => "-".to_string(),
            Crash::At(at) => at.to_string(),
            Crash::Often => "1000000".to_string(),
            Crash::MakingRoom => "1000001".to_string(),
        }
    }

    pub fn from_number(number: u32) -> Self {
        match number {
            1_000_000 => Crash::Often,
            1_000_001 => Crash::MakingRoom,
            at => Crash::At(at),
        }
    }
}

/// How much of a life there is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Length {
    Full,
    /// Few iterations and little patience: a life that can be played again for each of its boundaries.
    Short,
    /// Many iterations in a window that is too small for them: work is left out and summarised.
    Narrow,
}

impl Length {
    /// The length under the name that a command gives it.
    pub fn parse(text: &str) -> Length {
        match text {
            "short" => Length::Short,
            "narrow" => Length::Narrow,
            _ => Length::Full,
        }
    }

    pub fn word(self) -> &'static str {
        match self {
            Length::Full => "full",
            Length::Short => "short",
            Length::Narrow => "narrow",
        }
    }
}

/// How a life is cut.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// Iterations that it may have.
    pub loops: u64,
    /// How long the operator bears it.
    pub patience: u32,
    /// Boundaries at which no kill happens, whatever chance says.
    pub spared: Vec<u32>,
    /// Turns between two times at which the whole run is compared.
    pub check_every: u32,
    /// What sort of life it is cut from.
    pub length: Length,
}

impl Shape {
    pub fn of(length: Length) -> Shape {
        let (loops, patience) = match length {
            Length::Full => (14, 150),
            Length::Short => (2, 8),
            Length::Narrow => (14, 60),
        };
        Shape { loops, patience, spared: Vec::new(), check_every: CHECK_EVERY, length }
    }
}

/// What befell a life that no record tells of.
#[derive(Clone, Copy, Debug, Default)]
pub struct Befallen {
    pub killed_making_room: u32,
    pub refused_writes: u32,
}

/// How a life failed.
#[derive(Debug)]
pub struct Failure {
    pub why: String,
    /// The boundaries at which it was killed.
    pub killed_at: Vec<u32>,
    pub inputs: u32,
}

/// A run that never comes to its end within this many inputs is a loop.
const INPUTS_MAX: u32 = 4_000;
/// Turns between two times at which the whole run is compared, besides those after each kill and at the end: it costs
/// as much as the whole talk is long, and a run that differs once goes on to differ.
const CHECK_EVERY: u32 = 24;
/// Kills of one life, so that faults stop and it can end.
const KILLS_MAX: u32 = 12;
/// How often the operator takes an ended run up again.
const RETRIES_MAX: u32 = 2;

/// What leaves something of the conversation out of the requests.
const MAKES_ROOM: [&str; 2] = ["context_pruned", "context_compacted"];

pub struct Life {
    journal: Vec<Record>,
    run: Run,
    world: World,
    operator: Operator,
    /// How often an end is not taken for one.
    retries: u32,
    chance: Chance,
    crash: Crash,
    sabotage: Sabotage,
    /// The run before the last turn, for a sabotage.
    snapshot: Run,
    /// What the newest snapshot was made of, and the record that it was made at.
    kept: Option<(Run, Record)>,
    in_flight: Vec<Flying>,
    client: Client,
    boundary: u32,
    kills: u32,
    shape: Shape,
    killed_at: Vec<u32>,
    killed_making_room: u32,
    refused_writes: u32,
    inputs: u32,
    at: u64,
    active: u64,
}

/// The process was killed.
struct Killed;

impl Life {
    pub fn new(seed: u64, length: Length, crash: Crash, sabotage: Sabotage) -> Self {
        Life::shaped(seed, Shape::of(length), crash, sabotage)
    }

    pub fn shaped(seed: u64, shape: Shape, crash: Crash, sabotage: Sabotage) -> Self {
        let id = RunId::from_entropy([7; 12]);
        let patience = shape.patience;
        let kind = Kind::of(seed, shape.length);
        let first = create(terms(shape.loops, &kind), Now::default());
        let run = Run::begin(id, &first).unwrap();
        Life {
            journal: vec![first],
            world: World {
                honours_stale: sabotage == Sabotage::HonourStale,
                ignores_edits: sabotage == Sabotage::IgnoreEdits,
                words: kind.words,
                ..World::default()
            },
            operator: Operator { patience },
            retries: RETRIES_MAX,
            chance: Chance::new(seed),
            crash,
            sabotage,
            snapshot: run.clone(),
            kept: None,
            in_flight: Vec::new(),
            client: Client::new(run.clone(), seed, sabotage == Sabotage::MissWhileAway),
            boundary: 0,
            kills: 0,
            shape,
            killed_at: Vec::new(),
            killed_making_room: 0,
            refused_writes: 0,
            inputs: 0,
            at: 1_000,
            active: 0,
            run,
        }
    }

    /// Plays to the end and says how many boundaries there were.
    pub fn play(mut self) -> Result<u32, String> {
        self.live()
    }

    /// Plays to the end and gives the journal.
    pub fn chronicle(self) -> Result<Vec<Record>, String> {
        self.tell().map(|(records, _)| records)
    }

    /// Plays to the end and gives the journal, and what befell it on the way.
    pub fn tell(mut self) -> Result<(Vec<Record>, Befallen), String> {
        self.live()?;
        let befallen = Befallen { killed_making_room: self.killed_making_room, refused_writes: self.refused_writes };
        Ok((self.journal, befallen))
    }

    /// Plays until something is wrong, if something is.
    pub fn failure(mut self) -> Option<Failure> {
        let why = self.live().err()?;
        Some(Failure { why, killed_at: self.killed_at, inputs: self.inputs })
    }

    fn live(&mut self) -> Result<u32, String> {
        let mut checker = Checker::new(&self.run.id, &self.journal)?;
        let mut input = Some(if self.chance.percent(8) { recovered_without_a_key() } else { recovered() });
        for turn in 0..INPUTS_MAX {
            self.inputs = turn + 1;
            let mut killed = false;
            let next = match input.take() {
                Some(input) => input,
                None if self.is_taken_up_again() => command(Command::Retry),
                None if self.run.is_ended() => {
                    checker.look(&self.journal, &self.run, &self.world)?;
                    checker.compare(&self.run)?;
                    self.client.compare(&self.journal, &self.run)?;
                    return self.fold().map(|_| self.boundary);
                }
                None if self.hangs() => {
                    return Err("it runs, nothing is under way, and it waits for nothing".to_string());
                }
                None => match self.next_input() {
                    Ok(input) => input,
                    Err(Killed) => {
                        killed = true;
                        self.resurrect()?
                    }
                },
            };
            if let Err(Killed) = self.take(next)? {
                killed = true;
                input = Some(self.resurrect()?);
            }
            // After a kill the journal is read anew, as by a new process.
            if killed {
                checker = Checker::new(&self.run.id, &self.journal)?;
            }
            checker.look(&self.journal, &self.run, &self.world)?;
            // What a killed process had under way is under way for its journal until the next one has taken the run.
            if !killed {
                checker::is_in_flight(&self.run, &self.in_flight)?;
            }
            if killed || turn % self.shape.check_every == 0 {
                checker.compare(&self.run)?;
                self.client.compare(&self.journal, &self.run)?;
            }
        }
        Err(format!("no end after {INPUTS_MAX} inputs: {}", self.run.status.phrase()))
    }

    /// An operator who does not let a failed or cancelled run rest.
    fn is_taken_up_again(&mut self) -> bool {
        let can_be = matches!(self.run.status, Status::Failed(_) | Status::Cancelled);
        let is = can_be && self.retries > 0 && self.chance.percent(25);
        self.retries -= u32::from(is);
        is
    }

    /// Whether only a word of the operator could move a run that does not wait for one.
    fn hangs(&self) -> bool {
        let is_sound = self.sabotage == Sabotage::None;
        let waits = !self.in_flight.is_empty() || self.run.wakes_at().is_some();
        is_sound && self.run.is_running() && self.run.is_driven() && !waits
    }

    /// One input, in the order of the driver: append, adopt, publish, start.
    fn take(&mut self, input: Input) -> Result<Result<(), Killed>, String> {
        self.pass_time();
        self.active += u64::from(self.run.is_running());
        let now = Now { at: Timestamp(self.at), active: Span(self.active) };
        let Ok(mut turned) = turn(&self.run, &input, now) else {
            return self.refused(&input, now);
        };
        if let Some(records) = sabotage::rewrite(self.sabotage, &turned.records) {
            turned.run = sabotage::adopt(&self.run, &records)?;
            turned.records = records;
        }
        self.snapshot = self.run.clone();
        if self.sabotage == Sabotage::StartBeforeAppend {
            self.in_flight.extend(turned.effects.iter().cloned().map(Flying::Asked));
            self.happen_all();
        }
        if self.sabotage == Sabotage::PublishBeforeAppend {
            self.client.hear(&turned.records)?;
        }
        let makes_room = turned.records.iter().any(|record| MAKES_ROOM.contains(&record.event.name()));
        if self.is_killed(makes_room) {
            return Ok(Err(Killed));
        }
        if self.crash == Crash::Often && self.kills < KILLS_MAX && self.chance.percent(1) {
            return Ok(Err(self.stop_in_order()));
        }
        let lost = self.sabotage == Sabotage::DropBatch && self.chance.percent(3);
        if !lost {
            self.journal.extend(turned.records.iter().cloned());
        }
        self.run = turned.run;
        let last = self.journal.last().filter(|last| last.seq == self.run.seq && self.inputs.is_multiple_of(7));
        if let Some(last) = last {
            self.kept = Some((self.run.clone(), last.clone()));
        }
        if self.is_killed(makes_room) {
            return Ok(Err(Killed));
        }
        if self.sabotage != Sabotage::PublishBeforeAppend {
            self.client.hear(&turned.records)?;
        }
        self.client.come_or_go(&self.journal)?;
        if self.sabotage != Sabotage::StartBeforeAppend {
            for effect in turned.effects {
                self.start(effect);
            }
        }
        if self.sabotage == Sabotage::DeliverTwice {
            self.deliver_twice(now);
        }
        if let (Sabotage::RunUnasked, Some((call, Waits::Decision))) = (self.sabotage, self.run.waiting().first()) {
            *self.world.executions.entry(call.id).or_default() += 1;
        }
        Ok(Ok(()))
    }

    /// A little time, and now and then the clock is set: back by half an hour, or a day on.
    fn pass_time(&mut self) {
        self.at += 1 + self.chance.below(400);
        match self.chance.below(400) {
            0 => self.at = self.at.saturating_sub(30 * 60_000),
            1 => self.at += 24 * 3_600_000,
            _ => {}
        }
    }

    /// A refusal must change nothing, and must not be a break.
    fn refused(&mut self, input: &Input, now: Now) -> Result<Result<(), Killed>, String> {
        match turn(&self.run, input, now) {
            Err(refusal @ tiller::domain::command::Refusal::Broken(_)) => Err(format!("{refusal} on {input:?}")),
            Err(_) | Ok(_) => Ok(Ok(())),
        }
    }

    /// The disk refuses the batch: the process ends what is under way, records nothing of it, and stops.
    fn stop_in_order(&mut self) -> Killed {
        self.kills += 1;
        self.refused_writes += 1;
        self.in_flight.clear();
        Killed
    }

    fn start(&mut self, effect: Effect) {
        if let Effect::EndWork { .. } = effect {
            self.in_flight = std::mem::take(&mut self.in_flight).into_iter().map(ended).collect();
        } else if self.sabotage != Sabotage::ForgetWork || !self.chance.percent(5) {
            self.in_flight.push(Flying::Asked(effect));
        }
    }

    fn next_input(&mut self) -> Result<Input, Killed> {
        if self.chance.percent(2) && self.chance.percent(50) {
            // Somebody else meddles with the files.
            let meddled = format!("meddled {}", self.chance.below(5));
            self.world.files.insert(format!("f{}", self.chance.below(3)), meddled);
        }
        if let Some(whim) = self.operator.whim(&mut self.chance) {
            return Ok(command(whim));
        }
        if !self.in_flight.is_empty() {
            // Killed while it is under way: it may have happened by then, or not.
            if self.is_killed(false) {
                return Err(Killed);
            }
            let place = usize::try_from(self.chance.below(self.in_flight.len() as u64)).unwrap();
            let outcome = match self.in_flight.swap_remove(place) {
                Flying::Happened(outcome) => *outcome,
                Flying::Asked(effect) => {
                    let outcome = self.happen(effect);
                    // Killed between the effect and its record.
                    if self.is_killed(false) {
                        return Err(Killed);
                    }
                    outcome
                }
            };
            return Ok(Input::Outcome(outcome));
        }
        if let Some(wakes) = self.run.wakes_at().filter(|_| self.chance.percent(70)) {
            self.at = self.at.max(wakes.0);
            return Ok(Input::Tick);
        }
        Ok(command(self.operator.tend(&self.run, &mut self.chance)))
    }

    /// Lets a piece of work happen in the world.
    fn happen(&mut self, effect: Effect) -> Outcome {
        match effect {
            Effect::Prepare(calls) => {
                Outcome::Prepared(calls.iter().map(|call| (call.id, self.world.prepare(call))).collect())
            }
            Effect::CallModel(request) => {
                let (result, bill) = speaker::speak(&request, &self.run, &mut self.chance);
                self.world.bill += if let Ok(reply) = &result { self.bill_of(reply, bill) } else { bill };
                Outcome::Model { call: request.call, result: result.map(Box::new).map_err(Box::new) }
            }
            Effect::RunTool(permit) => self.world.execute(&permit),
            Effect::RunCheck { index, .. } => {
                let passed = self.world.is_right();
                Outcome::Check { index, passed, detail: format!("right: {passed}") }
            }
            Effect::Probe { call, facts } => Outcome::Probed { call, probe: self.world.probe(&facts) },
            Effect::ReadBack { call, place } => {
                let record = usize::try_from(place.record().0).ok().and_then(|seq| self.journal.get(seq - 1));
                let text = record.ok_or("it is missing".to_string()).and_then(|one| place.text(one.event.clone()));
                Outcome::ReadBack { call, text }
            }
            Effect::EndWork { .. } => unreachable!("ending is no work"),
        }
    }

    /// A reply without a report is owed what can be counted of it.
    fn bill_of(&self, reply: &tiller::domain::model::ModelReply, bill: u64) -> u64 {
        let held = self.run.pool.reserved();
        match (reply.usage, held) {
            (None, Some(held)) => bill.min(tiller::policy::charge::of_reply(reply, held, &speaker::PRICE).amount.0),
            _ => bill,
        }
    }

    fn happen_all(&mut self) {
        for flying in std::mem::take(&mut self.in_flight) {
            let outcome = match flying {
                Flying::Asked(Effect::EndWork { .. }) => continue,
                Flying::Asked(effect) => Box::new(self.happen(effect)),
                Flying::Happened(outcome) => outcome,
            };
            self.in_flight.push(Flying::Happened(outcome));
        }
    }

    /// Whether the process dies at this boundary; `makes_room` says what lies on its other side.
    fn is_killed(&mut self, makes_room: bool) -> bool {
        self.boundary += 1;
        let killed = match self.crash {
            Crash::Never => false,
            Crash::At(at) => self.boundary - 1 == at,
            Crash::Often => self.chance.percent(6),
            Crash::MakingRoom => makes_room && self.chance.percent(50),
        };
        let killed = killed && self.kills < KILLS_MAX && !self.shape.spared.contains(&(self.boundary - 1));
        if killed {
            self.killed_at.push(self.boundary - 1);
            self.killed_making_room += u32::from(makes_room);
        }
        self.kills += u32::from(killed);
        killed
    }

    /// A new process: it has the journal and the world, and nothing else.
    fn resurrect(&mut self) -> Result<Input, String> {
        let lost: Vec<Flying> = std::mem::take(&mut self.in_flight);
        self.client.lose();
        // What was asked for may have happened before the end, or not.
        for flying in lost {
            if let Flying::Asked(effect @ (Effect::RunTool(_) | Effect::CallModel(_))) = flying
                && self.chance.percent(50)
            {
                let again = effect.clone();
                self.happen(effect);
                if self.sabotage == Sabotage::RepeatDoubtfulByRule && matches!(again, Effect::RunTool(_)) {
                    self.happen(again);
                }
            }
        }
        self.run = self.reopen()?;
        sabotage::forget(self.sabotage, &mut self.run, &self.snapshot);
        self.active = self.active.max(self.run.pool.used(tiller::domain::budget::Axis::Active));
        match self.sabotage {
            Sabotage::ForgetRecovered => Ok(Input::Tick),
            Sabotage::FreeInterruptedCalls => {
                self.free_interrupted();
                Ok(recovered())
            }
            _ => Ok(recovered()),
        }
    }

    /// What a new process finds: the newest snapshot, if it is of this journal, and the records after it.
    fn reopen(&self) -> Result<Run, String> {
        let Some((kept, last)) = &self.kept else { return self.fold() };
        let at = usize::try_from(last.seq.0).unwrap();
        if self.journal.get(at - 1) != Some(last) {
            return self.fold();
        }
        let stored = serde_json::to_string(&Snapshot::of(kept)).map_err(|error| error.to_string())?;
        let snapshot: Snapshot = serde_json::from_str(&stored).map_err(|error| error.to_string())?;
        let event = |seq: Seq| Some(self.journal.get(usize::try_from(seq.0).ok()?.checked_sub(1)?)?.event.clone());
        let run = snapshot.restore(&self.run.id, event)?;
        run.fold_after(&self.journal[at..], |_, _, _| {}).map_err(|broken| broken.to_string())
    }

    fn fold(&self) -> Result<Run, String> {
        Run::fold(&self.run.id, &self.journal).map_err(|broken| broken.to_string())
    }

    /// Sabotage: rewrites what was reserved for the call in flight to nothing.
    fn free_interrupted(&mut self) {
        for record in self.journal.iter_mut().rev().take(6) {
            if let Event::BudgetReserved { reservation } = &mut record.event {
                reservation.amount.0 = 0;
            }
        }
        self.run = Run::fold(&self.run.id, &self.journal).unwrap();
        self.client.begin_anew(&self.run);
    }

    fn deliver_twice(&mut self, now: Now) {
        let last = self.journal.iter().rev().take(8).find_map(|record| match &record.event {
            Event::InterjectionDelivered { id } => Some(*id),
            _ => None,
        });
        if let Some(id) = last {
            let again = self.run.transcript.entries().rev().find(|entry| {
                matches!(&entry.message, tiller::domain::message::Message::Operator { id: one, .. } if *one == id)
            });
            if let Some(entry) = again.cloned() {
                let again = tiller::domain::message::Entry { at: now.at, ..entry.as_ref().clone() };
                self.run.transcript.push(std::sync::Arc::new(again));
            }
        }
    }
}

fn command(command: Command) -> Input {
    Input::Command(command, ClientId("sim".to_string()))
}

fn recovered() -> Input {
    let owner = Owner { pid: 1, host: "sim".to_string(), version: "0".to_string(), mode: OwnerMode::Drives };
    Input::Recovered { owner, lacks: Vec::new() }
}

/// The process that takes the run does not have what it needs.
fn recovered_without_a_key() -> Input {
    let lack = Lack { reason: ParkReason::Credentials, sentence: "set SIM_KEY".to_string() };
    match recovered() {
        Input::Recovered { owner, .. } => Input::Recovered { owner, lacks: vec![lack] },
        other => other,
    }
}
