//! A run on a stage: inputs in words go in, what follows comes out in words. After every input the journal is folded
//! anew and must give the same run.

use tiller::domain::event::OwnerMode;
use tiller::domain::event::Record;
use tiller::domain::id::CallId;
use tiller::domain::id::RunId;
use tiller::domain::message::Message;
use tiller::domain::model::ModelRequest;
use tiller::domain::outline::TextPlace;
use tiller::domain::run::Run;
use tiller::domain::time::Now;
use tiller::domain::time::Span;
use tiller::domain::time::Timestamp;
use tiller::domain::tool::ToolCall;
use tiller::machine::Input;
use tiller::machine::create;
use tiller::machine::effect::Effect;
use tiller::machine::turn;
use tiller::policy::context;
use tiller::policy::ending;

use crate::machine::reading;
use crate::machine::telling;

pub struct Stage {
    pub run: Run,
    pub journal: Vec<Record>,
    pub now: Now,
    /// The calls of the last request to find out a reach.
    pub unprepared: Vec<ToolCall>,
    /// The call of the last request to read back a text, and where that stands.
    pub unread: Option<(CallId, TextPlace)>,
}

impl Stage {
    pub fn new(terms: &str) -> Stage {
        let now = Now { at: Timestamp(1_000), active: Span(0) };
        let first = create(reading::terms(terms), now);
        let run = Run::begin(RunId::from_entropy([7; 12]), &first).unwrap();
        Stage { run, journal: vec![first], now, unprepared: Vec::new(), unread: None }
    }

    /// One input, and what follows, a line for each record and each effect.
    pub fn take(&mut self, line: &str) -> Vec<String> {
        let named = line.replace('#', &self.run.iteration.n.to_string());
        let line = if line.starts_with("times ") { line } else { named.as_str() };
        match line.split_once(' ').unwrap_or((line, "")) {
            // Time passes: on the wall, and of the run.
            ("wall", ms) => self.now.at = Timestamp(self.now.at.0.saturating_add_signed(ms.parse().unwrap())),
            ("active", ms) => self.now.active = self.now.active.plus(Span(ms.parse().unwrap())),
            // The process dies: only the journal is left.
            ("crash", mode) => {
                self.run = Run::fold(&self.run.id, &self.journal).unwrap();
                self.unprepared = Vec::new();
                let mode = if mode == "records" { OwnerMode::Records } else { OwnerMode::Drives };
                return self.turn(&Input::Recovered { owner: reading::owner(mode), lacks: Vec::new() });
            }
            ("every", "command") => return self.every_command(),
            ("times", rest) => {
                let (count, inputs) = rest.split_once(' ').unwrap();
                let mut refused = Vec::new();
                for _ in 0..count.parse().unwrap() {
                    for one in inputs.split(" / ") {
                        refused.extend(self.take(one).into_iter().filter(|line| line.starts_with("refused")));
                    }
                }
                return refused;
            }
            _ => {
                let input = reading::input(self, line);
                return self.turn(&input);
            }
        }
        Vec::new()
    }

    fn turn(&mut self, input: &Input) -> Vec<String> {
        let turned = match turn(&self.run, input, self.now) {
            Ok(turned) => turned,
            Err(refusal) => return vec![format!("refused: {refusal}")],
        };
        let told = telling::turn(&turned);
        self.journal.extend(turned.records);
        self.run = turned.run;
        for effect in turned.effects {
            match effect {
                Effect::Prepare(calls) => self.unprepared = calls,
                Effect::ReadBack { call, place } => self.unread = Some((call, *place)),
                _ => {}
            }
        }
        let folded = Run::fold(&self.run.id, &self.journal).unwrap();
        assert_eq!(folded, self.run, "the fold differs from the live run");
        if told.is_empty() { vec!["nothing".to_string()] } else { told }
    }

    /// What each command would do here; those of one answer share a line. Nothing is done.
    fn every_command(&self) -> Vec<String> {
        let mut answers: Vec<(String, Vec<&str>)> = Vec::new();
        for line in reading::COMMANDS {
            let answer = match turn(&self.run, &reading::input(self, line), self.now) {
                Ok(turned) if turned.records.is_empty() => "nothing".to_string(),
                Ok(turned) => telling::turn(&turned).join(", "),
                Err(refusal) => format!("refused: {refusal}"),
            };
            match answers.iter_mut().find(|(known, _)| *known == answer) {
                Some((_, lines)) => lines.push(line),
                None => answers.push((answer, vec![line])),
            }
        }
        answers.into_iter().map(|(answer, lines)| format!("{}: {answer}", lines.join(" | "))).collect()
    }

    /// The request that is under way, or the one that would be made.
    fn request(&self) -> ModelRequest {
        context::in_flight(&self.run).unwrap_or_else(|| context::assemble(&self.run))
    }

    pub fn show(&self, question: &str) -> Vec<String> {
        let run = &self.run;
        match question {
            "plan" => vec![format!("revision {}, {:?}", run.plan.revision, run.plan.source), run.plan.listing()],
            "money" => vec![telling::money(run)],
            // What the system text says of the goal and the checks.
            "promises" => {
                let system = self.request().system;
                let promises = system.split_once("The goal:").unwrap().1;
                promises.lines().filter(|line| !line.is_empty()).map(|line| format!("| {line}")).collect()
            }
            "closing" => vec![self.request().closing],
            "temperature" => {
                let percent = context::in_flight(run).and_then(|request| request.temperature_percent);
                vec![percent.map_or("the provider's".to_string(), |percent| format!("{percent} hundredths"))]
            }
            "talk" => run.transcript.all().map(|entry| telling::message(&entry.message)).collect(),
            "request" => self.request().entries.entries().map(|entry| telling::message(&entry.message)).collect(),
            "opening" => match self.request().entries.get(0).map(|entry| &entry.message) {
                Some(Message::Engine { text }) => text.lines().map(|line| format!("| {line}")).collect(),
                _ => vec!["nothing stands for anything".to_string()],
            },
            "room" => {
                let room = &run.context;
                let counts = format!("{} poor, {} rejected, rounds {:?}", room.poor, room.rejected, room.rounds);
                vec![format!("{counts}, last summary in {:?}, demand {:?}", room.compacted_at, room.demand)]
            }
            // The last result, as the model is told it.
            "last" => {
                let told = run.transcript.entries().rev().find_map(|entry| match &entry.message {
                    Message::ToolResult { text, .. } => Some(text.clone()),
                    _ => None,
                });
                told.unwrap().lines().map(|line| format!("| {line}")).collect()
            }
            "uses" => vec![telling::uses(run)],
            "waiting" => run.waiting().iter().map(|(call, waits)| format!("{} {waits:?}", call.id)).collect(),
            "trust" => vec![run.trust.to_string()],
            "digests" => {
                let digest = |call: &ToolCall| call.digest().map_or("none".to_string(), |digest| digest.0);
                run.waiting().iter().map(|(call, _)| format!("{} {}", call.id, &digest(call)[..16])).collect()
            }
            "calls" => {
                run.calls.values().map(|call| format!("{} {} {:?}", call.id, call.arguments, call.edited)).collect()
            }
            "wakes" => vec![run.wakes_at().map_or("none".to_string(), |at| format!("at {}", at.0))],
            "status" => vec![run.status.phrase()],
            // All that was true when it stopped.
            "causes" => vec![ending::together(run).unwrap_or("nothing else".to_string())],
            "windows" => vec![telling::windows(run)],
            other => panic!("? {other}"),
        }
    }
}
