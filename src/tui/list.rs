//! The list of runs, and the text field for a new goal: what one sees where no run is open. `view/runs.rs` draws it.

use std::io;
use std::time::Duration;

use crossterm::event::Event;
use crossterm::event::KeyEvent;
use crossterm::event::KeyEventKind;

use crate::domain::id::RunId;
use crate::domain::limits;
use crate::domain::summary::Listed;
use crate::domain::terms::Goal;
use crate::domain::visible::title;
use crate::engine::clock::SystemClock;
use crate::tui::act::kept_by_draft;
use crate::tui::action::Action;
use crate::tui::app::Moment;
use crate::tui::app::View;
use crate::tui::composer::Composer;
use crate::tui::keymap;
use crate::tui::keymap::place::Place;
use crate::tui::moment;
use crate::tui::scroll::Scroll;
use crate::tui::sources::Heard;
use crate::tui::sources::Keys;
use crate::tui::sources::Signals;
use crate::tui::terminal::Screen;
use crate::tui::theme::Palette;
use crate::tui::theme::Role;
use crate::tui::view::runs;

/// What the operator chose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Open this run.
    Open(RunId),
    /// Start a run with this goal, which is a valid one.
    NewGoal(String),
    /// Leave.
    Leave,
}

/// How the list starts.
#[derive(Clone, Debug, Default)]
pub struct ListOptions {
    /// Which colours.
    pub palette: Palette,
    /// A goal that was being written.
    pub draft: String,
    /// Whether it goes on being written at once; else the list has the keys, where there is one.
    pub writes: bool,
    /// A sentence above the list, such as which model a new run would use, or what is missing for one.
    pub greeting: String,
    /// A sentence about what just happened, such as why a run could not be opened.
    pub notice: Option<String>,
    /// The id of this process: a run that it holds is not in another one.
    pub process: u32,
    /// The run that the list was opened from, which goes on behind it; nothing where there is none.
    pub behind: Option<RunId>,
    /// The run that is selected at first, such as one that could not be opened; else the first.
    pub selected: Option<RunId>,
}

/// Shows the list until the operator chooses. Gives the choice, and the goal that is half written then; `list` is asked
/// anew every few seconds.
pub async fn runs(
    list: impl Fn() -> Result<Vec<Listed>, String>,
    mut options: ListOptions,
) -> io::Result<(Choice, String)> {
    let mut screen = Screen::open()?;
    let mut signals = Signals::listen()?;
    let mut keys = Keys::listen();
    let clock = SystemClock::start();
    let first = list().unwrap_or_else(|why| {
        options.notice = Some(why);
        Vec::new()
    });
    let mut listed = List::new(first, moment(&clock), options);
    loop {
        screen.set_title("tiller".to_string())?;
        let mut seen = None;
        screen.draw(|frame| seen = runs::draw(frame, &listed))?;
        listed.seen = seen;
        let refresh = Duration::from_millis(limits::RUNS_REFRESH.0);
        let heard = tokio::select! {
            biased;
            heard = signals.next() => Some(heard),
            heard = keys.next() => Some(heard),
            () = tokio::time::sleep(refresh) => None,
        };
        listed.now = moment(&clock);
        let asked = match heard {
            Some(Heard::Terminal(Event::Key(key))) => listed.key(key),
            Some(Heard::Terminal(Event::Paste(text))) => {
                listed.paste(&text);
                Asked::Nothing
            }
            Some(Heard::Gone | Heard::End) => Asked::Choice(Choice::Leave),
            Some(Heard::Continued) => {
                screen.resume()?;
                Asked::Nothing
            }
            Some(Heard::Terminal(_) | Heard::Answer(..) | Heard::Past(_) | Heard::Read(..) | Heard::Run(_)) => {
                Asked::Nothing
            }
            None => {
                match list() {
                    Ok(newer) => listed.refresh(newer),
                    // What was there is still the best that is known.
                    Err(why) => listed.notice = Some((title(&why, limits::NOTE_MAX_BYTES), Role::Bad)),
                }
                Asked::Nothing
            }
        };
        match asked {
            Asked::Nothing => {}
            Asked::Suspend => screen.suspend()?,
            Asked::Redraw => screen.clear()?,
            Asked::Choice(choice) => return Ok((choice, listed.draft())),
        }
    }
}

/// What a key asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Nothing but another frame.
    Nothing,
    /// Suspend to the shell.
    Suspend,
    /// Draw everything anew.
    Redraw,
    /// The operator chose.
    Choice(Choice),
}

/// The state of the list.
pub struct List {
    /// The present.
    pub now: Moment,
    /// The colours.
    pub(crate) palette: Palette,
    /// The sentence above the list.
    pub(crate) greeting: String,
    process: u32,
    behind: Option<RunId>,
    /// The sentence below it.
    pub(crate) notice: Option<(String, Role)>,
    /// The runs, in the order in which they are shown.
    pub(crate) listed: Vec<Listed>,
    selected: Option<RunId>,
    /// Whether the text field has the keys.
    pub(crate) writes: bool,
    /// The text field.
    pub(crate) goal: Composer,
    /// How far the help is scrolled, while it is open.
    pub(crate) help: Option<Scroll>,
    last_stop_ms: Option<u64>,
    seen: Option<View>,
}

impl List {
    /// A list of these runs.
    pub fn new(listed: Vec<Listed>, now: Moment, options: ListOptions) -> List {
        let mut list = List {
            now,
            palette: options.palette,
            greeting: options.greeting,
            process: options.process,
            behind: options.behind,
            notice: options.notice.map(|text| (title(&text, limits::NOTE_MAX_BYTES), Role::Warning)),
            listed: Vec::new(),
            selected: options.selected,
            writes: listed.is_empty() || options.writes,
            goal: Composer::new(&options.draft, Vec::new()),
            help: None,
            last_stop_ms: None,
            seen: None,
        };
        list.refresh(listed);
        list
    }

    /// Takes a newer list: what can go on first, then the newest.
    pub fn refresh(&mut self, mut listed: Vec<Listed>) {
        listed.sort_by_key(|one| match one {
            Listed::Run { summary, .. } => (u8::from(!summary.is_open()), u64::MAX - summary.updated.0),
            Listed::Damaged { .. } => (2, 0),
        });
        self.listed = listed;
        let is_here = self.selected.as_ref().is_some_and(|id| self.listed.iter().any(|one| id_of(one) == id));
        if !is_here {
            self.selected = self.listed.first().map(|one| id_of(one).clone());
        }
    }

    /// What is being written.
    pub fn draft(&self) -> String {
        self.goal.text()
    }

    /// The places whose keys work now, the nearest first.
    pub(crate) fn places(&self) -> Vec<Place> {
        if self.help.is_some() { vec![Place::Moving, Place::Anywhere] } else { self.under_help() }
    }

    /// The places whose keys work while no help is open: what it is about.
    pub(crate) fn under_help(&self) -> Vec<Place> {
        match self.writes {
            true => vec![Place::Goal, Place::Anywhere],
            false => vec![Place::Runs, Place::Moving, Place::Anywhere],
        }
    }

    /// Takes pasted text.
    pub fn paste(&mut self, text: &str) {
        if self.writes && !self.goal.paste(text) {
            self.notice = Some(("that is too long; nothing was pasted".to_string(), Role::Bad));
        }
    }

    /// Takes a key.
    pub fn key(&mut self, key: KeyEvent) -> Asked {
        if key.kind == KeyEventKind::Release {
            return Asked::Nothing;
        }
        self.notice = None;
        // A goal that is half written is not left behind, also where the list has the keys.
        let leaves_nothing = !self.goal.is_empty();
        match keymap::find(&self.places(), &key).filter(|action| *action != Action::LeaveList || !leaves_nothing) {
            Some(action) => self.act(action),
            None => {
                let before = self.goal.text();
                if self.writes {
                    self.goal.input(key);
                }
                let leaves = keymap::find(&self.places(), &key) == Some(Action::LeaveList);
                if leaves && self.goal.text() == before {
                    let place = if self.writes { Place::Goal } else { Place::Runs };
                    let text = kept_by_draft(&keymap::key_in(place, Action::LeaveList));
                    self.notice = Some((text, Role::Warning));
                }
                Asked::Nothing
            }
        }
    }

    fn act(&mut self, action: Action) -> Asked {
        match action {
            Action::Send => return self.start(),
            Action::OpenRun => return self.open(),
            Action::LeaveList => return Asked::Choice(Choice::Leave),
            Action::Stop => return self.stop(),
            Action::Suspend => return Asked::Suspend,
            Action::Redraw => return Asked::Redraw,
            Action::Newline => self.goal.newline(),
            Action::ClearLine => self.goal.clear_line(),
            Action::NewGoal => self.writes = true,
            Action::Help => self.help = if self.help.is_some() { None } else { Some(Scroll::START) },
            Action::Close => return self.close(),
            Action::Down => self.step(1),
            Action::Up => self.step(-1),
            Action::PageDown => self.step(self.page()),
            Action::PageUp => self.step(-self.page()),
            Action::Top => self.step(isize::MIN),
            Action::Bottom => self.step(isize::MAX),
            Action::NextPane
            | Action::PreviousPane
            | Action::ShowPlan
            | Action::ShowActivity
            | Action::ShowWaiting
            | Action::ShowSpend
            | Action::GoToWaiting
            | Action::OpenRuns
            | Action::Menu
            | Action::Leave
            | Action::SendAndResume
            | Action::TurnPolicy
            | Action::Withdraw
            | Action::Earlier
            | Action::Later
            | Action::Zoom
            | Action::Pause
            | Action::PauseLater
            | Action::AskTrust
            | Action::Resume
            | Action::GrantReplans
            | Action::AskBack
            | Action::AskFork
            | Action::ConfirmClaim
            | Action::RefuseClaim
            | Action::AcceptWork
            | Action::CloseFailed
            | Action::AskCancel
            | Action::AskRaise
            | Action::AskPlan
            | Action::View
            | Action::Decide(_)
            | Action::WriteAnswer
            | Action::Submit
            | Action::NextAxis
            | Action::PreviousAxis
            | Action::CancelGently
            | Action::CancelNow => {}
        }
        Asked::Nothing
    }

    /// Whether something is open that Esc closes.
    pub(crate) fn closes(&self) -> bool {
        self.help.is_some() || self.behind.is_some() || (self.writes && !self.listed.is_empty())
    }

    /// Closes what is on top: the help, the text field, the list. Below the list is the run that it was opened from.
    fn close(&mut self) -> Asked {
        if self.help.take().is_some() {
            return Asked::Nothing;
        }
        if self.writes && !self.listed.is_empty() {
            self.writes = false;
            return Asked::Nothing;
        }
        if let Some(run) = &self.behind {
            return Asked::Choice(Choice::Open(run.clone()));
        }
        let clear = format!("{} clears the field, then ", keymap::key_of(Action::Stop));
        let clear = if self.writes && !self.goal.is_empty() { clear.as_str() } else { "" };
        let leave = keymap::key_in(if self.writes { Place::Goal } else { Place::Runs }, Action::LeaveList);
        self.notice =
            Some((format!("no run is behind this list to go back to; {clear}{leave} leaves tiller"), Role::Dim));
        Asked::Nothing
    }

    fn page(&self) -> isize {
        let height = self.seen.map_or(1, |view| view.height.saturating_sub(1).max(1));
        isize::try_from(height).unwrap_or(1)
    }

    fn step(&mut self, rows: isize) {
        if let Some(scroll) = &mut self.help {
            *scroll = self.seen.map_or(Scroll::START, |view| view.scroll).moved(rows.clamp(-9_999, 9_999));
            return;
        }
        let next = self.place().saturating_add_signed(rows).min(self.listed.len().saturating_sub(1));
        self.selected = self.listed.get(next).map(|one| id_of(one).clone());
    }

    /// The process that holds a run, if it is not this one.
    pub(crate) fn elsewhere(&self, held_by: Option<u32>) -> Option<u32> {
        held_by.filter(|pid| *pid != self.process)
    }

    /// Which of the runs is selected.
    pub(crate) fn place(&self) -> usize {
        let is_selected = |one: &Listed| Some(id_of(one)) == self.selected.as_ref();
        self.listed.iter().position(is_selected).unwrap_or(0)
    }

    fn start(&mut self) -> Asked {
        match Goal::try_from(self.goal.text()) {
            Ok(goal) => Asked::Choice(Choice::NewGoal(goal.into())),
            Err(why) => {
                self.notice = Some((why, Role::Bad));
                Asked::Nothing
            }
        }
    }

    fn open(&mut self) -> Asked {
        match self.listed.get(self.place()) {
            Some(Listed::Run { summary, .. }) => Asked::Choice(Choice::Open(summary.id.clone())),
            Some(Listed::Damaged { id, .. }) => {
                let text = format!("that run can't be read; `tiller repair {}` tries to mend it", id.short());
                self.notice = Some((text, Role::Bad));
                Asked::Nothing
            }
            None => Asked::Nothing,
        }
    }

    fn stop(&mut self) -> Asked {
        if !self.goal.is_empty() {
            self.goal.take();
            self.notice = Some(("what was written of a new goal is cleared".to_string(), Role::Dim));
            return Asked::Nothing;
        }
        let now_ms = self.now.ms;
        if self.last_stop_ms.is_some_and(|then| now_ms.saturating_sub(then) <= limits::LEAVE_TWICE.0) {
            return Asked::Choice(Choice::Leave);
        }
        self.last_stop_ms = Some(now_ms);
        let key = keymap::key_of(Action::Stop);
        self.notice = Some((format!("{key} once more within a second leaves"), Role::Dim));
        Asked::Nothing
    }
}

fn id_of(listed: &Listed) -> &RunId {
    match listed {
        Listed::Run { summary, .. } => &summary.id,
        Listed::Damaged { id, .. } => id,
    }
}
