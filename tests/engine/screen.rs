//! S-59: a screen played by keys on a real driver and a real store. Every key that counts is one record, the early one
/// is none, and the run that is read from the disk again is the run that the screen had.
use std::sync::Mutex;
use std::time::Duration;

use crossterm::event::KeyCode;
use crossterm::event::KeyEvent;
use crossterm::event::KeyModifiers;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::json;
use tiller::domain::command::Command;
use tiller::domain::event::Event;
use tiller::domain::event::Owner;
use tiller::domain::event::OwnerMode;
use tiller::domain::event::Record;
use tiller::domain::id::ClientId;
use tiller::domain::id::RunId;
use tiller::domain::id::Seq;
use tiller::domain::run::Run;
use tiller::domain::status::ParkReason;
use tiller::domain::time::Now;
use tiller::domain::time::Timestamp;
use tiller::engine::driver;
use tiller::engine::driver::Driven;
use tiller::machine::create;
use tiller::protocol::client::Client;
use tiller::protocol::client::Update;
use tiller::store::place::Home;
use tiller::store::sled::SledJournal;
use tiller::tui::app::App;
use tiller::tui::app::Moment;
use tiller::tui::app::Msg;
use tiller::tui::app::Options;
use tiller::tui::app::Out;
use tiller::tui::app::Seen;
use tiller::tui::view;

use crate::engine::stage::Lines;
use crate::engine::stage::Manner;
use crate::engine::stage::is_parked;
use crate::engine::stage::plan;
use crate::engine::stage::says;
use crate::engine::stage::terms;
use crate::engine::stage::world;

/// A screen of a run that a driver drives, on a terminal that is none.
struct Show {
    app: App,
    terminal: Terminal<TestBackend>,
    client: Client,
    driven: Driven<SledJournal>,
    /// The clock of the screen is moved by hand.
    ms: u64,
    submitted: usize,
}

impl Show {
    /// A process takes a run and shows it.
    fn begin(run: Run, journal: SledJournal) -> Show {
        let lines = vec![says("plan", &[plan()]), says("", &[("work", json!({}))])];
        let (world, _) = world(Lines { lines: Mutex::new(lines.into()), takes_ms: 0 }, Manner::Lasts);
        let app = App::new(run.clone(), Moment::default(), Options::default());
        let seen = run.seq;
        let driven = driver::start(run, journal, world, owner());
        let client = Client::new(ClientId("screen".to_string()), driven.handle.clone(), seen);
        let terminal = Terminal::new(TestBackend::new(120, 36)).unwrap();
        Show { app, terminal, client, driven, ms: 0, submitted: 0 }
    }

    async fn tell(&mut self, msg: Msg) {
        let moment = Moment { ms: self.ms, at: Timestamp(1_000_000 + self.ms) };
        for out in self.app.update(msg, moment) {
            match out {
                Out::Submit(ticket, command) => {
                    self.submitted += 1;
                    let seq = self.client.submit(command).await.unwrap();
                    self.app.update(Msg::Accepted(ticket, seq), moment);
                }
                Out::Leave => drop(self.client.submit(Command::Leave).await.unwrap()),
                Out::Read(..) | Out::OpenRuns | Out::Look(_) | Out::Do(_) | Out::Suspend | Out::Redraw => {
                    panic!("{out:?}")
                }
            }
        }
    }

    /// A frame, so much later.
    async fn frame(&mut self, later_ms: u64) -> String {
        self.ms += later_ms;
        self.tell(Msg::Tick).await;
        let mut seen = Seen::default();
        self.terminal.draw(|frame| seen = view::draw(frame, &self.app)).unwrap();
        self.tell(Msg::Drawn(Box::new(seen))).await;
        self.terminal.backend().to_string()
    }

    /// A key, and the moment until it counts.
    async fn key(&mut self, code: KeyCode, modifiers: KeyModifiers) {
        self.tell(Msg::Key(KeyEvent::new(code, modifiers))).await;
        if let Some(counts_in_ms) = self.app.key_counts_in(self.ms) {
            self.ms += counts_in_ms;
            self.tell(Msg::Tick).await;
        }
    }

    async fn letters(&mut self, text: &str) {
        for one in text.chars() {
            self.key(KeyCode::Char(one), KeyModifiers::NONE).await;
        }
    }

    /// Shows what comes until the run is as wanted.
    async fn until(&mut self, wanted: impl Fn(&Run) -> bool) {
        while !wanted(&self.app.run) {
            match tokio::time::timeout(Duration::from_secs(60), self.client.next())
                .await
                .expect("it never came to this")
            {
                Update::Records(records) => self.tell(Msg::Records(records)).await,
                Update::Delta(delta) => self.tell(Msg::Delta(delta)).await,
                Update::Lost(count) => self.tell(Msg::Lost(count)).await,
                Update::Today(today) => self.tell(Msg::Today(today)).await,
                Update::Closed(why) => panic!("closed: {why:?}"),
            }
        }
    }

    /// Goes away; the run that the screen had by then.
    async fn end(self) -> Run {
        let Show { app, client, driven, .. } = self;
        drop((client, driven.handle));
        driven.task.await.unwrap().close().await;
        app.run
    }
}

fn owner() -> Owner {
    Owner { pid: 1, host: "test".to_string(), version: "0".to_string(), mode: OwnerMode::Drives }
}

/// Every record that this client led to by itself, by name.
fn by_screen(records: &[Record]) -> Vec<&'static str> {
    let is_by = |record: &&Record| match &record.event {
        Event::ApprovalDecided { by, .. } => format!("{by:?}").contains("screen"),
        Event::InterjectionQueued { by, .. } | Event::BudgetRaised { by, .. } | Event::ControlRequested { by, .. } => {
            by.0 == "screen"
        }
        _ => false,
    };
    records.iter().filter(is_by).map(|record| record.event.name()).collect()
}

/// A run without what is another process's: who has it, and since when.
fn but_for_its_owner(run: &Run) -> serde_json::Value {
    let mut value = serde_json::to_value(run).unwrap();
    for field in ["/owner", "/seq", "/at", "/pool/latest"] {
        *value.pointer_mut(field).unwrap() = serde_json::Value::Null;
    }
    value
}

#[tokio::test]
async fn s_59_what_the_screen_had_is_what_the_disk_gives_back() {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::new(dir.path().join("state"), owner()).unwrap();
    let id = RunId::from_entropy([1; 12]);
    let tools = world(Lines { lines: Mutex::default(), takes_ms: 0 }, Manner::Lasts).0.tools.specs();
    let first = create(terms(tools), Now::default());
    let journal = home.create(&id, std::slice::from_ref(&first)).await.unwrap();
    let mut show = Show::begin(Run::begin(id.clone(), &first).unwrap(), journal);
    show.until(|run| is_parked(run, &ParkReason::Approval)).await;
    show.frame(0).await;
    show.key(KeyCode::Char('g'), KeyModifiers::CONTROL).await;
    show.frame(0).await;
    show.letters("y").await;
    assert_eq!(show.submitted, 0, "the early key is swallowed");
    show.frame(600).await;
    show.frame(600).await;
    show.letters("y").await;
    show.until(|run| run.running_calls().next().is_some()).await;
    show.frame(600).await;
    show.key(KeyCode::Esc, KeyModifiers::NONE).await;
    show.letters("mind the gap").await;
    show.key(KeyCode::Enter, KeyModifiers::NONE).await;
    show.key(KeyCode::Tab, KeyModifiers::NONE).await;
    show.letters("+7").await;
    show.frame(50).await;
    show.key(KeyCode::Enter, KeyModifiers::NONE).await;
    assert_eq!(show.submitted, 3);
    let text = show.frame(0).await;
    show.key(KeyCode::Esc, KeyModifiers::NONE).await;
    show.key(KeyCode::Char('d'), KeyModifiers::CONTROL).await;
    show.until(|run| is_parked(run, &ParkReason::Shutdown)).await;
    let before = show.end().await;
    let opened = home.open(&id).await.unwrap();
    opened.journal.close().await;
    let keys = ["approval_decided", "interjection_queued", "budget_raised", "control_requested"];
    assert_eq!(by_screen(&opened.records), keys, "each key that counts is a record: {text}");
    assert_eq!(Run::fold(&id, &opened.records).unwrap(), before, "by all records");
    let (journal, again) = home.resume(&id).await.unwrap();
    assert_eq!(again, before, "as a process takes it up, with its snapshot");
    // Another screen on another process: but for who has it, nothing is otherwise.
    let taken = again.seq;
    let mut show = Show::begin(again, journal);
    show.until(|run| run.seq > Seq(taken.0)).await;
    assert_eq!(but_for_its_owner(&show.app.run), but_for_its_owner(&before));
    let frame = show.frame(0).await;
    assert!(frame.contains("mind the gap") && frame.contains("parked"), "{frame}");
    show.end().await;
}
