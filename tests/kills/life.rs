//! One life of a run: processes of the real program, one after another, most of them killed, and an operator who looks
//! at the world between them and decides by command.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;
use tiller::domain::event::Event;
use tiller::domain::event::Owner;
use tiller::domain::event::OwnerMode;
use tiller::domain::event::Record;
use tiller::domain::id::CallId;
use tiller::domain::id::RunId;
use tiller::domain::message::Message;
use tiller::domain::run::Run;
use tiller::domain::tool::Probe;
use tiller::store::place::Home;

use crate::chance::Chance;
use crate::kills::checker;
use crate::kills::checker::Counted;
use crate::kills::checker::World;
use crate::kills::process;
use crate::kills::process::Kill;
use crate::kills::provider::Provider;
use crate::kills::script;
use crate::kills::script::Step;
use crate::real::Stage;

/// Kills of one life, so that it comes to its end.
const KILLS_MAX: u64 = 14;
/// A life that is not at its end after so many processes that drive it does not move.
const PROCESSES_MAX: usize = 60;

/// What a life came to.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub kills: u64,
    /// Those at a labelled point, by point.
    pub by_fault: BTreeMap<String, u64>,
    /// Times at which the run was opened again and compared with the world.
    pub checks: u64,
    pub verified: u64,
    pub served: u64,
}

impl Tally {
    pub fn add(&mut self, other: Tally) {
        self.kills += other.kills;
        for (point, count) in other.by_fault {
            *self.by_fault.entry(point).or_default() += count;
        }
        self.checks += other.checks;
        self.verified += other.verified;
        self.served += other.served;
    }
}

/// Journal and world at the end of a life.
pub struct End {
    pub records: Vec<Record>,
    pub run: Run,
    pub world: World,
    pub kills: u64,
}

impl End {
    /// All that must be the same however often the process was killed: the conversation but for results that somebody
    /// was asked about, the plan, what was done how often, and how it ended.
    fn told(&self, asked: &[CallId]) -> Vec<String> {
        let mut told = vec![format!("{:?}", self.run.status), format!("{:?}", self.world.marks)];
        told.extend(self.run.plan.todos.iter().map(|todo| format!("{} {:?}", todo.title, todo.status)));
        let mut results = Vec::new();
        for entry in self.run.transcript.all() {
            let line = match &entry.message {
                // Reads that run side by side end in any order.
                Message::ToolResult { call, .. } if asked.contains(call) => {
                    results.push((*call, format!("{call}: told otherwise")));
                    continue;
                }
                Message::ToolResult { call, kind, text, .. } => {
                    results.push((*call, format!("{call} {kind:?}: {text}")));
                    continue;
                }
                // Where a call was recorded depends on the kill.
                Message::Assistant { text, uses, .. } => uses.iter().fold(text.clone(), |told, one| {
                    format!("{told} {} {} {} {}", one.id, one.wire_id, one.tool, one.arguments)
                }),
                Message::Operator { text, .. } | Message::Engine { text } => text.clone(),
            };
            results.sort();
            told.extend(results.drain(..).map(|(_, line)| line));
            told.push(line);
        }
        results.sort();
        told.extend(results.into_iter().map(|(_, line)| line));
        told
    }

    /// Whether another end of the same life is the same; the first difference, if not.
    pub fn agrees(&self, other: &End) -> Result<(), String> {
        let otherwise: Vec<CallId> = other.records.iter().filter_map(told_otherwise).collect();
        let (ours, theirs) = (self.told(&otherwise), other.told(&otherwise));
        let differs = ours.iter().zip(&theirs).find(|(one, two)| one != two);
        match differs {
            Some((one, two)) => Err(format!("without a kill: {one}\nwith one:       {two}")),
            None if ours.len() != theirs.len() => Err(format!("{ours:?} and {theirs:?}")),
            None => Ok(()),
        }
    }
}

/// Calls whose result is another text after a kill: the operator said what became of them, or their file did.
fn told_otherwise(record: &Record) -> Option<CallId> {
    match &record.event {
        Event::ToolOutcomeResolved { call, .. } | Event::ToolCallProbed { call, probe: Probe::Done } => Some(*call),
        _ => None,
    }
}

/// How the operator is, and when processes are killed.
enum Mood {
    /// By chance.
    Whims,
    /// Allows all, tells the truth, and never says more than is asked. Processes meet this fault until one was killed.
    Plain(Option<String>),
}

/// What the model of a plain life says.
#[derive(Clone, Copy, Debug)]
pub enum Script {
    /// Something of everything.
    Fixed,
    /// By chance, from this seed.
    Drawn(u64),
}

pub struct Life {
    mood: Mood,
    chance: Chance,
    stage: Stage,
    provider: Option<Provider>,
    start: Vec<String>,
    acknowledged: BTreeMap<u64, Value>,
    orders: (u64, u64),
    tally: Tally,
    told: Vec<String>,
    /// Whether the last process that turned the loop ended by itself.
    ended: bool,
    /// The journal when it was looked at last.
    last: Option<(Vec<Record>, Run)>,
}

impl Life {
    pub fn new(seed: u64) -> Life {
        let mut chance = Chance::new(seed);
        let steps = script::steps(&mut chance);
        let has_provider = chance.percent(50);
        Life::of(chance, steps, has_provider, Mood::Whims)
    }

    /// The same life each time, by this script, but for one kill at this fault.
    pub fn plain(script: Script, fault: Option<String>) -> Life {
        let steps = match script {
            Script::Fixed => script::fixed(),
            Script::Drawn(seed) => script::steps(&mut Chance::new(seed)),
        };
        Life::of(Chance::new(0), steps, false, Mood::Plain(fault))
    }

    fn of(chance: Chance, steps: Vec<Step>, has_provider: bool, mood: Mood) -> Life {
        let stage = Stage::new();
        stage.write(&format!("work/{}", script::EDITED), "marks:\n");
        let check = format!("echo checked >> checks.txt; test -f {}", script::EDITED);
        let mut start: Vec<String> =
            ["run", "leave marks", "--json", "--budget", "40", "--check", &check].map(String::from).to_vec();
        let provider = if has_provider {
            let provider = Provider::start(steps);
            stage.write("config/tiller/tiller.toml", &provider.configuration());
            Some(provider)
        } else {
            start.extend(["--model".to_string(), script::model(&stage, &script::toml(&steps))]);
            None
        };
        let (acknowledged, orders, told) = (BTreeMap::new(), (0, 0), Vec::new());
        let (tally, ended, last) = (Tally::default(), false, None);
        Life { mood, chance, stage, provider, start, acknowledged, orders, tally, told, ended, last }
    }

    /// Plays it to its end. The error says what did not hold, and how the life went until then.
    pub fn play(mut self) -> Result<Tally, String> {
        self.go().map_err(|why| format!("{why}\nthe life:\n  {}", self.told.join("\n  ")))?;
        Ok(self.tally)
    }

    /// Plays it, and gives journal and world as they are at its end, for a checker that must bite.
    pub fn end(mut self) -> Result<End, String> {
        self.go().map_err(|why| format!("{why}\nthe life:\n  {}", self.told.join("\n  ")))?;
        let (world, kills) = (self.world(), self.tally.kills);
        let (records, run) = self.last.ok_or("it was never looked at")?;
        Ok(End { records, run, world, kills })
    }

    fn go(&mut self) -> Result<(), String> {
        while self.stage.ids().is_empty() {
            if !self.acknowledged.is_empty() {
                return Err("records were acknowledged and there is no run".to_string());
            }
            let words = self.start.clone();
            self.drive(&words)?;
        }
        let id = self.stage.ids()[0].clone();
        for _ in 0..PROCESSES_MAX {
            let shown = self.look(&id)?;
            if let Some(finish) = shown.pointer("/summary/status/completed") {
                self.tally.verified += u64::from(finish == "verified");
                self.tally.served = self.provider.as_ref().map_or(0, Provider::served);
                return if self.marks().is_empty() && self.tally.verified == 0 {
                    Err(format!("nothing was done: {finish}"))
                } else {
                    Ok(())
                };
            }
            self.tend(&id, &shown)?;
            self.drive(&["resume".to_string(), id.clone(), "--json".to_string()])?;
        }
        Err(format!("no end after {PROCESSES_MAX} processes: {}", self.stage.show()["summary"]["status"]))
    }

    /// A process that turns the loop, until its end or its kill.
    fn drive(&mut self, words: &[String]) -> Result<(), String> {
        let kill = self.kill(Kill::of_driver);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let ended = process::run(self.stage.tiller(&words), &kill)?;
        self.told.push(format!("{} {kill:?}: {:?}, {} lines", words[0], ended.code, ended.lines.len()));
        self.count(&kill, ended.was_killed());
        self.ended = !ended.was_killed();
        for line in &ended.lines {
            let record: Value = serde_json::from_str(line).map_err(|error| format!("{error}: {line}"))?;
            let seq = record["seq"].as_u64().ok_or_else(|| format!("a line without a number: {line}"))?;
            if let Some(before) = self.acknowledged.insert(seq, record.clone())
                && before != record
            {
                return Err(format!("record {seq} was {before} and is {record}"));
            }
        }
        if matches!(ended.code, Some(2 | 20 | 30)) {
            return Err(format!("{words:?} ended with {:?}: {}", ended.code, ended.said));
        }
        Ok(())
    }

    fn kill(&mut self, by_chance: fn(&mut Chance) -> Kill) -> Kill {
        match &self.mood {
            Mood::Whims if self.tally.kills < KILLS_MAX => by_chance(&mut self.chance),
            Mood::Plain(Some(fault)) if self.tally.kills == 0 => Kill::Fault(fault.clone()),
            Mood::Whims | Mood::Plain(_) => Kill::Never,
        }
    }

    /// Whether the operator follows a whim of this many percent.
    fn whim(&mut self, percent: u64) -> bool {
        matches!(self.mood, Mood::Whims) && self.chance.percent(percent)
    }

    fn count(&mut self, kill: &Kill, was_killed: bool) {
        self.tally.kills += u64::from(was_killed);
        if let (Kill::Fault(fault), true) = (kill, was_killed) {
            let point = fault.rsplit_once(':').unwrap().0;
            *self.tally.by_fault.entry(point.to_string()).or_default() += 1;
        }
    }

    /// Opens the run as the program and as the library does, and compares it with the world.
    fn look(&mut self, id: &str) -> Result<Value, String> {
        let shown = self.stage.ask(&["show", id, "--json"]);
        if shown.code != 0 {
            return Err(format!("the run can't be opened: {shown}"));
        }
        let records = records(&self.stage.path("state"), id)?;
        let run = Run::fold(&run_id(id), &records).map_err(|broken| broken.to_string())?;
        checker::check(&records, &run, &self.world())?;
        self.tally.checks += 1;
        self.last = Some((records, run));
        Ok(serde_json::from_str(&shown.out).unwrap())
    }

    fn world(&self) -> World {
        let owed = self.provider.as_ref().map_or(0, Provider::owed);
        let counted = checker::ledger(&self.stage.path("state"));
        let counted = if self.ended { Counted::Exactly(counted) } else { Counted::AtLeast(counted) };
        let ledger = self.provider.as_ref().map(|_| counted);
        World { acknowledged: self.acknowledged.clone(), orders: self.orders, marks: self.marks(), owed, ledger }
    }

    /// How often each mark is in the world.
    fn marks(&self) -> BTreeMap<String, u64> {
        let mut marks = BTreeMap::new();
        for name in [script::TRACES, script::EDITED] {
            let text = fs::read_to_string(self.stage.path("work").join(name)).unwrap_or_default();
            for word in text.split_whitespace().filter(|word| *word != "marks:") {
                *marks.entry(word.to_string()).or_default() += 1;
            }
        }
        for entry in fs::read_dir(self.stage.path("work")).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let mark = checker::mark(&name);
            if name == format!("{mark}.txt") {
                *marks.entry(mark).or_default() += 1;
            }
        }
        marks
    }

    /// Does what an operator may do about whatever waits.
    fn tend(&mut self, id: &str, shown: &Value) -> Result<(), String> {
        if self.whim(15) {
            let words = format!("words {}", self.chance.below(1_000));
            self.order(&["say", id, &words])?;
        }
        for one in shown["waiting"].as_array().unwrap() {
            let call = one["call"].as_str().unwrap();
            match one["waits_for"].as_str().unwrap() {
                "decision" if self.whim(8) => {
                    self.order(&["deny", id, call, one["digest"].as_str().unwrap(), "not this"])?;
                }
                "decision" => self.order(&["approve", id, call, one["digest"].as_str().unwrap()])?,
                "answer" => self.order(&["answer", id, "yes"])?,
                _ => {
                    let happened = self.marks().contains_key(&checker::mark(one["arguments"].as_str().unwrap()));
                    // Mostly what is so; now and then once more, or on without knowing.
                    let whim = if matches!(self.mood, Mood::Whims) { self.chance.below(10) } else { 5 };
                    let word = match (happened, whim) {
                        (true, 0..=6) => "happened",
                        (false, 0..=1) => "not",
                        (_, 9) => "skip",
                        _ => "again",
                    };
                    self.order(&["resolve", id, call, word])?;
                }
            }
        }
        Ok(())
    }

    /// A command in a process of its own, which may be killed as well.
    fn order(&mut self, words: &[&str]) -> Result<(), String> {
        let kill = self.kill(Kill::of_order);
        self.orders.1 += 1;
        let ended = process::run(self.stage.tiller(words), &kill)?;
        self.told.push(format!("{words:?} {kill:?}: {:?}", ended.code));
        self.count(&kill, ended.was_killed());
        match ended.code {
            Some(0) => self.orders.0 += 1,
            Some(code) => return Err(format!("{words:?} ended with {code}: {}", ended.said)),
            // Nobody was answered: it may be recorded or not.
            None => {}
        }
        Ok(())
    }
}

/// The journal of a run, as it is in this state directory.
pub fn records(state: &Path, id: &str) -> Result<Vec<Record>, String> {
    let owner = Owner { pid: 1, host: "test".to_string(), version: "0".to_string(), mode: OwnerMode::Records };
    let home = Home::new(state.join("tiller"), owner).map_err(|error| error.to_string())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let opened = home.open(&run_id(id)).await.map_err(|error| error.to_string())?;
        opened.journal.close().await;
        Ok(opened.records)
    })
}

pub fn run_id(id: &str) -> RunId {
    id.to_string().try_into().unwrap()
}
