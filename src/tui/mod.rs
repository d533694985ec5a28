//! Floor 6: the screen. The loop here hears, updates and draws; it decides nothing. It talks to a run through
//! `protocol` only.

pub mod act;
pub mod action;
pub mod alone;
pub mod app;
pub mod chronicle;
pub mod composer;
pub mod dialogs;
pub mod emphasis;
pub mod guard;
pub mod guide;
pub mod keymap;
pub mod leave;
pub mod lineage;
pub mod list;
pub mod live;
pub mod markdown;
pub mod matching;
pub mod menu;
pub mod moving;
pub mod notice;
pub mod past;
pub mod popup;
pub mod reread;
pub mod rows;
pub mod scroll;
pub mod sending;
pub mod sources;
pub mod standing;
pub mod terminal;
pub mod text;
pub mod theme;
mod turn;
pub mod typing;
pub mod vain;
pub mod view;
pub mod waiting;
pub mod word;

use std::io;
use std::time::Duration;
use std::time::Instant;

use crossterm::event::Event;
use tokio::sync::oneshot;

use crate::domain::command::Command;
use crate::domain::limits;
use crate::domain::run::Run;
use crate::domain::status::Status;
use crate::engine::clock::Clock;
use crate::engine::clock::SystemClock;
use crate::protocol::client::Client;
use crate::protocol::client::Update;
use crate::tui::app::Alerts;
use crate::tui::app::App;
use crate::tui::app::Focus;
use crate::tui::app::Moment;
use crate::tui::app::Msg;
use crate::tui::app::Options;
use crate::tui::app::Out;
use crate::tui::app::Seen;
use crate::tui::lineage::Step;
use crate::tui::past::Past;
use crate::tui::sources::Heard;
use crate::tui::sources::Sources;
use crate::tui::terminal::Screen;
use crate::tui::turn::Turn;

/// A draft is kept at most this long after it was changed.
const DRAFT_KEPT: Duration = Duration::from_secs(1);

/// How a screen of a run was closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The operator left; the run stands like this and can be resumed.
    Left(Status),
    /// The operator left a run that has ended.
    Ended(Status),
    /// The operator wants the list of runs; the run was left as it is.
    Runs,
    /// The operator wants to go back or branch off, and must be shown first what that does not undo.
    Look(Step),
    /// They were, and said yes.
    Do(Step),
}

/// Shows a run until the operator leaves it, and says where the keys were then. `run` is its state at the record that `client` has seen last.
/// `past` comes when the records up to there are read; the screen does not wait for it. `keep_draft` is given what is
/// being written, to be kept where a crash does not lose it.
pub async fn run(
    client: Client,
    run: Run,
    options: Options,
    past: oneshot::Receiver<Past>,
    keep_draft: impl FnMut(&str),
) -> io::Result<(Exit, Focus)> {
    let mut screen = Screen::open()?;
    let sources = Sources::new(client, past)?;
    let clock = SystemClock::start();
    let alerts = options.alerts;
    let app = App::new(run, moment(&clock), options);
    Room {
        app,
        sources,
        clock,
        keep_draft,
        kept: (String::new(), Instant::now()),
        frame: None,
        alerts,
        is_in_front: None,
        leaving: None,
        is_blind: false,
    }
    .stay(&mut screen)
    .await
}

/// The present, by a clock that was started with the screen.
pub(crate) fn moment(clock: &SystemClock) -> Moment {
    Moment { ms: clock.mono().0, at: clock.now() }
}

/// A screen at work.
struct Room<Keep> {
    app: App,
    sources: Sources,
    clock: SystemClock,
    keep_draft: Keep,
    kept: (String, Instant),
    /// When the last frame was drawn; nothing while one must be.
    frame: Option<Instant>,
    /// How the operator is called.
    alerts: Alerts,
    /// Whether the window is in front; nothing where the terminal has not said.
    is_in_front: Option<bool>,
    leaving: Option<Leaving>,
    /// The terminal is gone: nothing is drawn any more.
    is_blind: bool,
}

/// How far leaving has come.
struct Leaving {
    until: Instant,
    is_answered: bool,
    way: Way,
}

/// Where leaving leads to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Out,
    List,
    Look(Step),
    Do(Step),
}

impl<Keep: FnMut(&str)> Room<Keep> {
    async fn stay(mut self, screen: &mut Screen) -> io::Result<(Exit, Focus)> {
        let mut is_changed = true;
        loop {
            if is_changed && self.is_due() {
                self.draw(screen)?;
                is_changed = false;
            }
            if let Some(exit) = self.has_left() {
                (self.keep_draft)(&self.app.draft());
                return Ok((exit, self.app.focus));
            }
            let wait = self.wait(is_changed);
            match tokio::time::timeout(wait, self.sources.next()).await {
                Ok(heard) => self.take_in(heard, screen).await?,
                Err(_) => self.tell(Msg::Tick, screen)?,
            }
            self.keep();
            is_changed = true;
        }
    }

    /// Takes in what came and what is at hand after it, as much as one frame may wait for.
    async fn take_in(&mut self, first: Heard, screen: &mut Screen) -> io::Result<()> {
        let mut turn = Turn::default();
        let mut next = Some(first);
        while let Some(heard) = next {
            let is_scrap = turn::is_scrap(&heard);
            self.hear(heard, screen)?;
            let goes_on = turn.goes_on_after(is_scrap, self.app.is_urgent);
            next = if goes_on { self.sources.at_hand().await } else { None };
        }
        Ok(())
    }

    /// Whether a frame may be drawn: at once for anything but streamed text.
    fn is_due(&self) -> bool {
        self.app.is_urgent || self.frame.is_none_or(|drawn| drawn.elapsed() >= frame_time())
    }

    fn draw(&mut self, screen: &mut Screen) -> io::Result<()> {
        if self.is_blind {
            self.app.is_urgent = false;
            return Ok(());
        }
        let mut seen = Seen::default();
        let call = self.app.call.take().filter(|_| self.is_in_front != Some(true));
        let is_drawn = screen
            .set_title(self.app.window_title())
            .and_then(|()| call.map_or(Ok(()), |text| screen.call(self.alerts, &text)))
            .and_then(|()| screen.draw(|frame| seen = view::draw(frame, &self.app)));
        match is_drawn {
            Ok(()) => {
                self.frame = Some(Instant::now());
                self.tell(Msg::Drawn(Box::new(seen)), screen)?;
            }
            Err(_) => self.lose_terminal(),
        }
        Ok(())
    }

    fn lose_terminal(&mut self) {
        self.is_blind = true;
        self.app.is_urgent = false;
        self.leave();
    }

    fn wait(&self, is_changed: bool) -> Duration {
        let wakes = Duration::from_millis(self.app.wakes_in());
        let frame = self.frame.map(|drawn| frame_time().saturating_sub(drawn.elapsed())).filter(|_| is_changed);
        let leaves = self.leaving.as_ref().map(|leaving| leaving.until.saturating_duration_since(Instant::now()));
        let keeps = (self.kept.0 != self.app.draft()).then(|| DRAFT_KEPT.saturating_sub(self.kept.1.elapsed()));
        [frame, leaves, keeps].into_iter().flatten().fold(wakes, Duration::min)
    }

    fn keep(&mut self) {
        let draft = self.app.draft();
        // What was sent is no draft any more, and must not be one after a crash.
        if draft != self.kept.0 && (draft.is_empty() || self.kept.1.elapsed() >= DRAFT_KEPT) {
            (self.keep_draft)(&draft);
            self.kept = (draft, Instant::now());
        }
    }

    fn hear(&mut self, heard: Heard, screen: &mut Screen) -> io::Result<()> {
        let msg = match heard {
            Heard::Terminal(Event::Key(key)) => Msg::Key(key),
            Heard::Terminal(Event::Paste(text)) => Msg::Paste(text),
            Heard::Terminal(Event::Resize(_, _)) => Msg::Resize,
            Heard::Terminal(Event::FocusGained) => {
                self.is_in_front = Some(true);
                Msg::Focus
            }
            Heard::Terminal(Event::FocusLost) => {
                self.is_in_front = Some(false);
                Msg::Focus
            }
            Heard::Terminal(Event::Mouse(_)) => Msg::Focus,
            Heard::Continued => {
                // A terminal that goes away continues the program, too, so that it hears of it.
                if screen.resume().is_err() {
                    self.lose_terminal();
                    return Ok(());
                }
                Msg::Continued
            }
            Heard::Gone => {
                self.lose_terminal();
                return Ok(());
            }
            Heard::End => {
                self.app.leaving = true;
                self.leave();
                return Ok(());
            }
            Heard::Answer(None, _) => {
                if let Some(leaving) = &mut self.leaving {
                    leaving.is_answered = true;
                }
                return Ok(());
            }
            Heard::Answer(Some(ticket), Ok(seq)) => Msg::Accepted(ticket, seq),
            Heard::Answer(Some(ticket), Err(refusal)) => Msg::Refused(ticket, refusal),
            Heard::Past(past) => Msg::Past(past),
            Heard::Read(iteration, read) => Msg::Read(iteration, read),
            Heard::Run(Update::Records(records)) => Msg::Records(records),
            Heard::Run(Update::Delta(delta)) => Msg::Delta(delta),
            Heard::Run(Update::Today(today)) => Msg::Today(today),
            Heard::Run(Update::Lost(count)) => Msg::Lost(count),
            Heard::Run(Update::Closed(why)) => {
                if let Some(leaving) = &mut self.leaving {
                    leaving.until = Instant::now();
                }
                Msg::Closed(why)
            }
        };
        self.tell(msg, screen)
    }

    fn tell(&mut self, msg: Msg, screen: &mut Screen) -> io::Result<()> {
        let now = moment(&self.clock);
        for out in self.app.update(msg, now) {
            match out {
                Out::Submit(ticket, command) => self.sources.submit(Some(ticket), command),
                Out::Read(iteration, outlines) => self.sources.read(iteration, outlines),
                Out::Leave => self.leave(),
                Out::OpenRuns => self.go(Way::List),
                Out::Look(step) => self.go(Way::Look(step)),
                Out::Do(step) => self.go(Way::Do(step)),
                Out::Suspend => {
                    screen.suspend()?;
                    let now = moment(&self.clock);
                    self.app.update(Msg::Continued, now);
                }
                Out::Redraw => screen.clear()?,
            }
        }
        Ok(())
    }

    /// Goes at once, and leaves the run as it is.
    fn go(&mut self, way: Way) {
        self.leaving = Some(Leaving { until: Instant::now(), is_answered: true, way });
    }

    /// Parks the run and goes; asked a second time, goes at once.
    fn leave(&mut self) {
        if let Some(leaving) = &mut self.leaving {
            leaving.until = Instant::now();
            return;
        }
        let patience = Duration::from_millis(limits::LEAVE_PATIENCE.0);
        let is_ended = self.app.run.is_ended();
        self.leaving = Some(Leaving { until: Instant::now() + patience, is_answered: is_ended, way: Way::Out });
        if !is_ended {
            self.sources.submit(None, Command::Leave);
        }
    }

    fn has_left(&self) -> Option<Exit> {
        let leaving = self.leaving.as_ref()?;
        let run = &self.app.run;
        let is_done = leaving.is_answered && !run.is_running();
        if !is_done && Instant::now() < leaving.until {
            return None;
        }
        Some(match leaving.way {
            Way::List => Exit::Runs,
            Way::Look(step) => Exit::Look(step),
            Way::Do(step) => Exit::Do(step),
            Way::Out if run.is_ended() => Exit::Ended(run.status.clone()),
            Way::Out => Exit::Left(run.status.clone()),
        })
    }
}

fn frame_time() -> Duration {
    Duration::from_millis(1_000 / limits::FRAMES_PER_SECOND)
}
