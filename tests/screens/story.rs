//! Journals as a run would write them, told in a few words, and a screen that shows them. Every state of the screen
//! in these tests is folded from records; no field is poked.

use crossterm::event::KeyCode;
use crossterm::event::KeyEvent;
use crossterm::event::KeyEventKind;
use crossterm::event::KeyModifiers;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use tiller::domain::approval::By;
use tiller::domain::approval::Decision;
use tiller::domain::budget::Basis;
use tiller::domain::budget::Charge;
use tiller::domain::budget::Limits;
use tiller::domain::budget::Reservation;
use tiller::domain::budget::ReservationId;
use tiller::domain::command::Command;
use tiller::domain::event::Event;
use tiller::domain::event::Owner;
use tiller::domain::event::OwnerMode;
use tiller::domain::event::Record;
use tiller::domain::id::CallId;
use tiller::domain::id::RunId;
use tiller::domain::id::Seq;
use tiller::domain::limits;
use tiller::domain::model::Dialect;
use tiller::domain::model::ModelReply;
use tiller::domain::model::ModelSpec;
use tiller::domain::model::Purpose;
use tiller::domain::model::StopReason;
use tiller::domain::money::MicroUsd;
use tiller::domain::money::Price;
use tiller::domain::money::Usage;
use tiller::domain::plan::Plan;
use tiller::domain::plan::PlanSource;
use tiller::domain::plan::Todo;
use tiller::domain::plan::TodoId;
use tiller::domain::plan::TodoStatus;
use tiller::domain::progress::Observation;
use tiller::domain::run::Run;
use tiller::domain::status::Course;
use tiller::domain::status::Fired;
use tiller::domain::status::ParkReason;
use tiller::domain::status::Phase;
use tiller::domain::status::Status;
use tiller::domain::status::Verdict;
use tiller::domain::terms::Check;
use tiller::domain::terms::Goal;
use tiller::domain::terms::Terms;
use tiller::domain::time::Span;
use tiller::domain::time::Timestamp;
use tiller::domain::tool::EffectClass;
use tiller::domain::tool::Facts;
use tiller::domain::tool::FileWrite;
use tiller::domain::tool::Grave;
use tiller::domain::tool::OutcomeKind;
use tiller::domain::tool::ToolOutcome;
use tiller::domain::tool::ToolSpec;
use tiller::domain::trust::Trust;
use tiller::policy::permission::READS;
use tiller::tui::app::App;
use tiller::tui::app::Moment;
use tiller::tui::app::Msg;
use tiller::tui::app::Options;
use tiller::tui::app::Out;
use tiller::tui::app::Seen;
use tiller::tui::view;

/// When every story begins.
const START: Timestamp = Timestamp(1_700_000_000_000);

pub fn terms(goal: &str) -> Terms {
    Terms {
        goal: Goal::try_from(goal.to_string()).unwrap(),
        workspace: "/home/op/parser".to_string(),
        limits: Limits::default(),
        checks: vec![Check::Command("cargo test --workspace".to_string())],
        wrap_up: true,
        model: ModelSpec {
            name: "openai/gpt-4.1-mini".to_string(),
            dialect: Dialect::Openai,
            address: "https://api.openai.com/v1".to_string(),
            model: "gpt-4.1-mini".to_string(),
            key_variable: Some("OPENAI_API_KEY".to_string()),
            window: 200_000,
            max_output: 8_192,
            most_output: None,
            price: Some(Price { input: 400_000, cache_read: 100_000, cache_write: 400_000, output: 1_600_000 }),
        },
        tools: [
            ("edit_file", EffectClass::WriteFile),
            ("read_file", EffectClass::Read),
            ("shell", EffectClass::External),
        ]
        .map(|(name, effect)| ToolSpec {
            name: name.to_string(),
            description: String::new(),
            schema: serde_json::json!({"type": "object"}),
            effect,
            noise: tiller::domain::tool::Noise::default(),
        })
        .to_vec(),
        instructions: String::new(),
        guide: None,
        rehearsal: false,
        trust: Trust::Ask,
        keep_full_trust: false,
    }
}

/// A run that works on its plan.
pub fn pursuing() -> Story {
    let mut story = Story::planned(terms("fix it"));
    story.ask(9_000);
    story.reply("on it", 6_000, 300);
    story
}

/// A journal being told.
pub struct Story {
    pub records: Vec<Record>,
    pub run: Run,
    now: Timestamp,
    active: Span,
    /// What the next call that is prepared is grave for.
    pub grave: Vec<Grave>,
}

impl Story {
    pub fn new(terms: Terms) -> Story {
        let event = Event::RunCreated { terms: Box::new(terms) };
        let first = Record { seq: Seq(1), at: START, active: Span(0), event };
        let id = RunId::try_from("k7f39x2m4q8a".to_string()).unwrap();
        let run = Run::begin(id, &first).unwrap();
        Story { records: vec![first], run, now: START, active: Span(0), grave: Vec::new() }
    }

    /// A run that makes its plan.
    pub fn started(terms: Terms) -> Story {
        let mut story = Story::new(terms);
        story.running();
        story.iteration(Phase::Decompose);
        story
    }

    /// A run in its second iteration, with a plan of six todos, of which the second is at hand.
    pub fn planned(terms: Terms) -> Story {
        let mut story = Story::started(terms);
        story.ask(4_000);
        story.reply("I'll reproduce the failure first, then look for the commit that broke it.", 3_100, 240);
        let call = story.call(
            "update_plan",
            r#"{"todos":[{},{},{},{},{},{}],"explanation":"six small steps"}"#,
            EffectClass::Control,
        );
        story.plan(&[
            ("Reproduce the failure", TodoStatus::Done),
            ("Fix the tokenizer offset", TodoStatus::InProgress),
            ("Add a regression test for input with a byte order mark", TodoStatus::Pending),
            ("Run the whole suite", TodoStatus::Pending),
            ("Bench on the large corpus", TodoStatus::Blocked),
            ("Rewrite the lexer", TodoStatus::Dropped),
        ]);
        story.finish(call, OutcomeKind::Done, "the plan has 6 todos", 0);
        story.close(Course::Continue, &[]);
        story.iteration(Phase::Pursue);
        story
    }

    pub fn event(&mut self, event: Event) {
        let record = Record { seq: self.run.seq.next(), at: self.now, active: self.active, event };
        self.run.apply(&record).unwrap();
        self.records.push(record);
    }

    pub fn wait(&mut self, ms: u64) {
        self.now = self.now.plus(Span(ms));
        if self.run.is_running() {
            self.active = self.active.plus(Span(ms));
        }
    }

    pub fn running(&mut self) {
        let owner =
            Owner { pid: 4242, host: "here".to_string(), version: "0.1.0".to_string(), mode: OwnerMode::Drives };
        self.event(Event::OwnerAcquired { owner });
        self.event(Event::StatusChanged { status: Status::Running, by: None });
    }

    pub fn park(&mut self, reason: ParkReason) {
        self.event(Event::StatusChanged { status: Status::Parked(reason), by: None });
    }

    pub fn iteration(&mut self, phase: Phase) {
        self.event(Event::IterationStarted { n: self.run.iteration.n + 1, phase });
    }

    pub fn plan(&mut self, todos: &[(&str, TodoStatus)]) {
        let todo = |(place, (title, status)): (usize, &(&str, TodoStatus))| Todo {
            id: TodoId(format!("t{}", place + 1)),
            title: title.to_string(),
            status: *status,
            acceptance: String::new(),
            note: if *status == TodoStatus::Blocked {
                "the corpus is not in this folder".to_string()
            } else {
                String::new()
            },
            parent: None,
            depends_on: Vec::new(),
        };
        let todos = todos.iter().enumerate().map(todo).collect();
        let plan = Plan { revision: self.run.plan.revision + 1, source: PlanSource::Tool, todos, next_number: 9 };
        self.event(Event::planned(plan));
    }

    /// A request goes out, at this worst case in micro-dollars.
    pub fn ask(&mut self, worst: u64) {
        let attempt = match self.run.iteration.model_call {
            Some(before) => before.attempt + 1,
            None => 1,
        };
        let call = self.run.iteration.model_call.map_or(self.run.next.model_call, |before| before.call);
        let id = ReservationId { call, attempt };
        let reservation = Reservation { id, amount: MicroUsd(worst), tokens: 9_000, input: 3_000, bytes: 9_000 };
        self.event(Event::BudgetReserved { reservation });
        self.event(Event::ModelCallStarted {
            call,
            attempt,
            digest: "0a1b".to_string(),
            max_output: 8_192,
            purpose: Purpose::Turn,
        });
    }

    pub fn reply(&mut self, text: &str, input: u64, output: u64) {
        self.wait(2_300);
        let usage = Usage { input: input / 4, cache_read: input - input / 4, output, ..Usage::default() };
        let id = self.run.model_call.unwrap().id;
        let reply = ModelReply {
            text: text.to_string(),
            reasoning: String::new(),
            calls: Vec::new(),
            opaque: Vec::new(),
            stop: StopReason::Calls,
            usage: Some(usage),
            received_bytes: 0,
        };
        self.event(Event::ModelCallFinished { call: id.call, reply: Box::new(reply), discarded: None });
        self.settle(usage, Basis::Reported);
    }

    pub fn settle(&mut self, usage: Usage, basis: Basis) {
        let id = self.run.pool.reserved().unwrap().id;
        let amount = self.run.terms.model.price.map(|price| price.cost(&usage)).unwrap_or_default();
        self.event(Event::BudgetSettled { id, charge: Charge { amount, usage, basis } });
    }

    pub fn call(&mut self, tool: &str, arguments: &str, effect: EffectClass) -> CallId {
        let call = self.run.next.call;
        let wire_id = format!("call_{call}");
        let (tool, arguments) = (tool.to_string(), arguments.to_string());
        self.event(Event::ToolCallProposed { call, wire_id, tool, arguments, effect });
        call
    }

    pub fn prepare(&mut self, call: CallId, title: &str, reach: &str, preview: &str) {
        let is_write = self.run.calls[&call].effect == EffectClass::WriteFile;
        let write =
            FileWrite { path: "/home/op/parser/src/lexer.rs".to_string(), before: None, after: "00".to_string() };
        let facts = Facts {
            unconfined: self.run.calls[&call].effect == EffectClass::External,
            title: title.to_string(),
            reach: reach.to_string(),
            inside: true,
            preview: preview.to_string(),
            binding: vec!["path=/home/op/parser/src/lexer.rs".to_string(), "before=9f2c".to_string()],
            write: is_write.then_some(write),
            grave: std::mem::take(&mut self.grave),
            ..Facts::default()
        };
        self.event(Event::ToolCallPrepared { call, facts: Box::new(facts) });
    }

    pub fn request(&mut self, call: CallId, why: &str) {
        let digest = self.run.calls[&call].digest().unwrap();
        self.event(Event::ApprovalRequested { call, why: why.to_string(), digest });
    }

    pub fn decide(&mut self, call: CallId, decision: Decision, by: By) {
        let digest = self.run.calls[&call].digest().unwrap();
        self.event(Event::ApprovalDecided { call, digest, decision, by });
    }

    pub fn start(&mut self, call: CallId) {
        if self.run.calls[&call].allowed.is_none() {
            self.decide(call, Decision::AllowOnce, By::Rule(READS.to_string()));
        }
        let attempt = self.run.calls[&call].attempts + 1;
        self.event(Event::ToolCallStarted { call, attempt });
    }

    pub fn finish(&mut self, call: CallId, kind: OutcomeKind, text: &str, took_ms: u64) {
        self.wait(took_ms);
        let outcome = ToolOutcome {
            kind,
            text: text.to_string(),
            bytes: text.len() as u64,
            took: Span(took_ms),
            class: None,
            watched: Vec::new(),
        };
        self.event(Event::ToolCallFinished { call, outcome });
    }

    /// A read that is asked for.
    pub fn propose_read(&mut self, path: &str) -> CallId {
        let call = self.call("read_file", &format!(r#"{{"path":"{path}"}}"#), EffectClass::Read);
        self.prepare(call, path, "reads in the workspace", &format!("read {path}"));
        call
    }

    /// The read runs and ends.
    pub fn read(&mut self, call: CallId, text: &str) {
        self.start(call);
        self.finish(call, OutcomeKind::Done, text, 12);
    }

    pub fn close(&mut self, action: Course, fired: &[Fired]) {
        let observation = Observation { progress: true, ..Observation::default() };
        self.event(Event::ProgressObserved { observation: Box::new(observation) });
        let verdict = Verdict { action, fired: fired.to_vec() };
        self.event(Event::IterationClosed { n: self.run.iteration.n, verdict });
    }

    /// A diff that waits.
    pub fn diff_waits(&mut self) -> CallId {
        let arguments = r#"{"path":"src/lexer.rs","old":"let off = pos;","new":"let off = pos + bom;"}"#;
        let call = self.call("edit_file", arguments, EffectClass::WriteFile);
        let preview = "@@ -10,5 +10,6 @@\n fn start(&self) -> usize {\n     let pos = self.pos;\n-    let off = pos;\n+    let bom = self.bom_length();\n+    let off = pos + bom;\n     off\n }\n";
        self.prepare(call, "src/lexer.rs +2 −1", "writes in the workspace", preview);
        self.request(call, "it writes a file and no rule allows that");
        call
    }

    /// A command that waits.
    pub fn command_waits(&mut self, line: &str) -> CallId {
        let arguments = serde_json::json!({ "command": line }).to_string();
        let call = self.call("shell", &arguments, EffectClass::External);
        self.prepare(call, line.lines().next().unwrap_or(""), "runs a program", line);
        self.request(call, "it runs a program and no rule allows that");
        call
    }
}

/// A screen of a size, showing a story.
pub struct Show {
    pub app: App,
    pub story: Story,
    terminal: Terminal<TestBackend>,
    pub ms: u64,
    pub outs: Vec<Out>,
    /// Whether texts that were put away are not given back unless a test does it.
    pub holds_texts: bool,
}

impl Show {
    /// Shows a story from its first record on, `later_ms` after the last.
    pub fn of(story: Story, size: (u16, u16), later_ms: u64) -> Show {
        let id = story.run.id.clone();
        let run = Run::begin(id, &story.records[0]).unwrap();
        let moment = Moment { ms: 0, at: story.now };
        let app = App::new(run, moment, Options::default());
        let terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
        let mut show = Show { app, story, terminal, ms: later_ms, outs: Vec::new(), holds_texts: false };
        let rest = show.story.records[1..].to_vec();
        show.tell(Msg::Records(rest));
        show
    }

    /// Shows a story from where it stands; what went by before comes when it is asked for.
    pub fn late(story: Story, size: (u16, u16), later_ms: u64) -> Show {
        let moment = Moment { ms: 0, at: story.now };
        let app = App::new(story.run.clone(), moment, Options::default());
        let terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
        Show { app, story, terminal, ms: later_ms, outs: Vec::new(), holds_texts: false }
    }

    fn moment(&self) -> Moment {
        Moment { ms: self.ms, at: self.story.now.plus(Span(self.ms)) }
    }

    pub fn tell(&mut self, msg: Msg) {
        let moment = self.moment();
        let outs = self.app.update(msg, moment);
        self.outs.extend(outs);
    }

    /// Goes on with the story and tells the screen.
    pub fn next(&mut self, go_on: impl FnOnce(&mut Story)) {
        let told = self.story.records.len();
        go_on(&mut self.story);
        let records = self.story.records[told..].to_vec();
        self.tell(Msg::Records(records));
    }

    /// A key, and the moment until it counts.
    /// A key that is pressed by hand: what is typed is sent after a moment.
    pub fn press(&mut self, code: KeyCode) {
        if code == KeyCode::Enter {
            self.ms += limits::KEY_ALONE.0;
        }
        self.chord(code, KeyModifiers::NONE);
    }

    pub fn chord(&mut self, code: KeyCode, modifiers: KeyModifiers) {
        self.tell(Msg::Key(KeyEvent::new(code, modifiers)));
        if let Some(counts_in_ms) = self.app.key_counts_in(self.ms) {
            self.ms += counts_in_ms;
            self.tell(Msg::Tick);
        }
    }

    pub fn hold(&mut self, code: KeyCode) {
        let event = KeyEvent::new_with_kind(code, KeyModifiers::NONE, KeyEventKind::Repeat);
        self.tell(Msg::Key(event));
    }

    pub fn letters(&mut self, text: &str) {
        for one in text.chars() {
            self.press(KeyCode::Char(one));
        }
    }

    /// Letters that come together, as a terminal sends what is pasted and not marked.
    pub fn burst(&mut self, text: &str) {
        for one in text.chars() {
            self.tell(Msg::Key(KeyEvent::from(KeyCode::Char(one))));
        }
    }

    pub fn resize(&mut self, width: u16, height: u16) {
        self.terminal.backend_mut().resize(width, height);
        self.tell(Msg::Resize);
    }

    /// A frame at this time, as text without trailing spaces.
    pub fn frame_at(&mut self, ms: u64) -> String {
        self.ms = ms;
        self.tell(Msg::Tick);
        self.frame()
    }

    /// A frame now, with all texts that it asks for.
    pub fn frame(&mut self) -> String {
        self.frame_as(text_of)
    }

    /// A frame now, told in this way.
    pub fn frame_as(&mut self, told: impl Fn(&Buffer) -> String) -> String {
        loop {
            let mut seen = Seen::default();
            let drawn = self.terminal.draw(|frame| seen = view::draw(frame, &self.app)).unwrap();
            let text = told(drawn.buffer);
            self.tell(Msg::Drawn(Box::new(seen)));
            if self.holds_texts || !self.give_text() {
                return text;
            }
        }
    }

    /// Gives the texts that were asked for; whether there were any.
    pub fn give_text(&mut self) -> bool {
        let Some(place) = self.outs.iter().position(|out| matches!(out, Out::Read(..))) else { return false };
        let Out::Read(n, outlines) = self.outs.remove(place) else { return false };
        let record = |seq: Seq| self.story.records.get(usize::try_from(seq.0).unwrap() - 1);
        let whole = outlines.iter().map(|one| one.whole(|seq| record(seq).map(|record| record.event.clone())));
        let read = whole.collect();
        self.tell(Msg::Read(n, read));
        true
    }
}

/// A screen of this size with this pane focused, at rest.
pub fn at_rest(story: Story, size: (u16, u16), pane: char) -> Show {
    let mut show = Show::of(story, size, 0);
    show.frame_at(0);
    show.chord(KeyCode::Char(pane), KeyModifiers::ALT);
    rest(&mut show);
    show
}

/// Two frames with a rest between them: the second has keys that work.
pub fn rest(show: &mut Show) -> String {
    show.frame();
    show.frame_at(show.ms + 1_000);
    show.frame_at(show.ms + 1)
}

/// The commands that were sent.
pub fn commands(show: &Show) -> Vec<Command> {
    let command = |out: &Out| match out {
        Out::Submit(_, command) => Some(command.clone()),
        Out::Read(..) | Out::Leave | Out::OpenRuns | Out::Look(_) | Out::Do(_) | Out::Suspend | Out::Redraw => None,
    };
    show.outs.iter().filter_map(command).collect()
}

/// The text of a frame in one row, without frames of boxes.
pub fn flat(frame: &str) -> String {
    let text = frame.replace(['┃', '│', '━', '─'], " ");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What was drawn, as text. Not what the test's terminal holds: it takes no notice of letters of two cells.
pub fn text_of(buffer: &Buffer) -> String {
    let width = usize::from(buffer.area.width);
    let mut out = String::new();
    for row in buffer.content.chunks(width.max(1)) {
        let mut line = String::new();
        let mut skip = 0;
        for cell in row {
            if skip > 0 {
                skip -= 1;
                continue;
            }
            line.push_str(cell.symbol());
            skip = tiller::domain::cells::cells(cell.symbol()).saturating_sub(1);
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}
