//! What keys do to the screen. Which key does what is the table's (`keymap.rs`); whether a deciding key counts is
//! the guard's (`guard.rs`).

use std::sync::Arc;

use crossterm::event::KeyCode;
use crossterm::event::KeyEvent;
use crossterm::event::KeyEventKind;

use crate::domain::budget::Axis;
use crate::domain::command::Cancel;
use crate::domain::command::Command;
use crate::domain::command::Control;
use crate::domain::command::Pause;
use crate::domain::command::Policy;
use crate::domain::limits;
use crate::domain::run::Waits;
use crate::domain::status::Status;
use crate::tui::action::Action;
use crate::tui::app::App;
use crate::tui::app::Focus;
use crate::tui::app::Out;
use crate::tui::app::View;
use crate::tui::composer::Composer;
use crate::tui::keymap;
use crate::tui::keymap::Place;
use crate::tui::lineage::StepKind;
use crate::tui::popup::Asks;
use crate::tui::popup::Popup;
use crate::tui::scroll::Anchor;
use crate::tui::scroll::Scroll;
use crate::tui::theme::Role;
use crate::tui::view::activity;
use crate::tui::waiting::whole;

/// Panes in the order in which Tab visits them.
const PANES: [Focus; 5] = [Focus::Composer, Focus::Waiting, Focus::Activity, Focus::Plan, Focus::Spend];

/// What is said of a claim that waits for the operator: it is no call, so it stands in no list.
pub(crate) const CLAIM_WAITS: &str = "the claim of being finished waits for your word: Y it is right, W it is not";

impl App {
    /// The places whose keys work now, the nearest first.
    pub fn places(&self) -> Vec<Place> {
        match self.popups.last() {
            Some(Popup::Help { .. } | Popup::Whole { call: None, .. }) => vec![Place::Moving, Place::Anywhere],
            Some(Popup::Whole { call: Some(_), .. }) => {
                self.item_place().into_iter().chain([Place::Moving, Place::Anywhere]).collect()
            }
            Some(Popup::Words { .. }) => vec![Place::Words, Place::Anywhere],
            Some(Popup::Raise { .. }) => vec![Place::Raise, Place::Anywhere],
            Some(Popup::Cancel) => vec![Place::Cancel, Place::Anywhere],
            None => self.pane_places(),
        }
    }

    fn pane_places(&self) -> Vec<Place> {
        let own = match self.focus {
            Focus::Composer => return vec![Place::Composer, Place::Screen, Place::Anywhere],
            Focus::Waiting => self.item_place(),
            Focus::Activity => Some(Place::Activity),
            Focus::Plan => Some(Place::Plan),
            Focus::Spend => None,
        };
        own.into_iter().chain([Place::Moving, Place::Pane, Place::Screen, Place::Anywhere]).collect()
    }

    fn item_place(&self) -> Option<Place> {
        self.item().map(|item| match item.waits {
            Waits::Decision => Place::Decision,
            Waits::Outcome => Place::Outcome,
            Waits::Answer => Place::Question,
        })
    }

    pub(crate) fn key(&mut self, key: KeyEvent) -> Vec<Out> {
        if key.kind == KeyEventKind::Release {
            return Vec::new();
        }
        let action = keymap::find(&self.places(), &key).filter(|action| !self.is_text(*action, &key));
        match action {
            Some(Action::Decide(choice)) => self.decide(choice, &key),
            Some(action) if key.kind == KeyEventKind::Repeat && !may_repeat(action) => Vec::new(),
            Some(action) => match self.in_vain(action) {
                None => self.carry_out(action),
                Some(why) => {
                    self.guard.disturb(self.now.ms);
                    self.say(why, Role::Warning);
                    Vec::new()
                }
            },
            None => {
                self.guard.disturb(self.now.ms);
                self.type_key(key);
                Vec::new()
            }
        }
    }

    /// What counts only after a rest looks for that itself; any other key disturbs it.
    fn carry_out(&mut self, action: Action) -> Vec<Out> {
        match action {
            Action::CancelGently => self.cancel(Cancel::Graceful),
            Action::CancelNow => self.cancel(Cancel::Now),
            Action::AcceptWork => self.end_run(Command::Accept),
            Action::CloseFailed => self.end_run(Command::Close),
            Action::ConfirmClaim => self.confirm_claim(),
            other => {
                self.guard.disturb(self.now.ms);
                self.act(other)
            }
        }
    }

    /// Whether a key of the table is only text here, because something is written already.
    fn is_text(&self, action: Action, key: &KeyEvent) -> bool {
        let is_writing = self.popups.is_empty() && self.focus == Focus::Composer && !self.composer.is_empty();
        let gives_way = action == Action::Leave || matches!(key.code, KeyCode::Char('?'));
        is_writing && gives_way
    }

    fn type_key(&mut self, key: KeyEvent) {
        match self.popups.last_mut() {
            Some(Popup::Words { line, .. } | Popup::Raise { line, .. }) => {
                // A field of one line takes every key that edits but the line breaks.
                let breaks = matches!(key.code, KeyCode::Enter | KeyCode::Char('\n' | '\r' | 'm'))
                    && (key.code == KeyCode::Enter || key.modifiers.contains(crossterm::event::KeyModifiers::CONTROL));
                if !breaks {
                    line.input(key);
                }
            }
            Some(Popup::Help { .. } | Popup::Whole { .. } | Popup::Cancel) => {}
            None if self.focus == Focus::Composer => self.write(|composer| composer.input(key)),
            None => {}
        }
    }

    fn clear_line(&mut self) {
        match self.popups.last_mut() {
            Some(Popup::Words { line, .. } | Popup::Raise { line, .. }) => line.clear_line(),
            Some(Popup::Help { .. } | Popup::Whole { .. } | Popup::Cancel) => {}
            None => self.write(Composer::clear_line),
        }
    }

    /// Changes the draft. A draft that is begun while a question waits is an answer; one that was begun before is
    /// what it was begun as.
    fn write(&mut self, change: impl FnOnce(&mut Composer)) {
        let was_empty = self.composer.is_empty();
        let question = self.open_question();
        change(&mut self.composer);
        if was_empty || self.composer.is_empty() {
            self.answering = question;
        }
    }

    pub(crate) fn paste(&mut self, text: &str) -> Vec<Out> {
        self.guard.disturb(self.now.ms);
        let mut fits = true;
        match self.popups.last_mut() {
            Some(Popup::Words { line, .. } | Popup::Raise { line, .. }) => fits = line.paste_line(text),
            Some(Popup::Help { .. } | Popup::Whole { .. } | Popup::Cancel) => {}
            None if self.focus == Focus::Composer => self.write(|composer| fits = composer.paste(text)),
            None => {
                self.say("pasted text goes into the composer only; nothing was taken (Esc goes there)", Role::Warning)
            }
        }
        if !fits {
            let most = limits::SAY_MAX_BYTES / 1024;
            self.say(
                format!("that is more than {most} KiB; nothing was pasted; put it in a file and name the file"),
                Role::Bad,
            );
        }
        Vec::new()
    }

    fn act(&mut self, action: Action) -> Vec<Out> {
        match action {
            Action::NextPane => self.focus_by(1),
            Action::PreviousPane => self.focus_by(PANES.len() - 1),
            Action::ShowPlan => self.show(Focus::Plan),
            Action::ShowActivity => self.show(Focus::Activity),
            Action::ShowWaiting => self.show(Focus::Waiting),
            Action::ShowSpend => self.show(Focus::Spend),
            Action::GoToWaiting => self.go_to_waiting(),
            Action::Help => self.popups.push(Popup::Help { places: self.places(), scroll: Scroll::START }),
            Action::OpenRuns => return vec![Out::OpenRuns],
            Action::Close => self.close(),
            Action::Stop => return self.stop(),
            Action::Leave => return self.leave(),
            Action::Suspend => return vec![Out::Suspend],
            Action::Redraw => return vec![Out::Redraw],
            Action::Send => return self.send(Sending::Alone),
            Action::SendAndResume => return self.send(Sending::AndResume),
            Action::TurnPolicy => self.turn_policy(),
            Action::Withdraw => return self.withdraw(),
            Action::Newline => self.write(Composer::newline),
            Action::ClearLine => self.clear_line(),
            Action::Earlier => self.write(Composer::earlier),
            Action::Later => self.write(Composer::later),
            Action::Down => self.step(1),
            Action::Up => self.step(-1),
            Action::PageDown => self.scroll(|view| Move::By(page(view))),
            Action::PageUp => self.scroll(|view| Move::By(-page(view))),
            Action::Top => self.scroll(|_| Move::To(Scroll::START)),
            Action::Bottom => self.scroll(|_| Move::To(Scroll::END)),
            Action::Zoom => self.zoomed = !self.zoomed,
            Action::Pause => return self.submit(Command::Pause(Pause::AfterTool), None),
            Action::PauseLater => return self.submit(Command::Pause(Pause::AfterIteration), None),
            Action::AskTrust => self.ask_trust(),
            Action::Resume => return self.resume(),
            Action::AskBack => self.ask_step(StepKind::Back),
            Action::AskFork => self.ask_step(StepKind::Fork),
            Action::GrantReplans => return self.submit(Command::GrantReplans, None),
            Action::RefuseClaim => {
                self.popups.push(Popup::Words { asks: Asks::WrongClaim, line: Composer::default() });
            }
            Action::AskCancel => self.popups.push(Popup::Cancel),
            Action::AskRaise => self.ask_raise(),
            Action::AskPlan => {
                self.popups.push(Popup::Words { asks: Asks::Plan, line: Composer::default() });
            }
            Action::View => self.view(),
            Action::WriteAnswer => self.show(Focus::Composer),
            Action::Submit => return self.submit_dialog(),
            Action::NextAxis => self.turn_axis(1),
            Action::PreviousAxis => self.turn_axis(Axis::ALL.len() - 1),
            Action::CancelGently
            | Action::CancelNow
            | Action::AcceptWork
            | Action::CloseFailed
            | Action::ConfirmClaim
            | Action::Decide(_)
            | Action::OpenRun
            | Action::NewGoal
            | Action::LeaveList => {}
        }
        Vec::new()
    }

    fn focus_by(&mut self, steps: usize) {
        let place = PANES.iter().position(|pane| *pane == self.focus).unwrap_or(0);
        self.focus = PANES.iter().cycle().nth(place + steps).copied().unwrap_or(Focus::Composer);
    }

    fn show(&mut self, focus: Focus) {
        self.popups.clear();
        self.focus = focus;
    }

    fn go_to_waiting(&mut self) {
        match self.waiting.iter().min_by_key(|item| (item.since, item.call)) {
            Some(item) => {
                if self.selected != Some(item.call) {
                    self.selected = Some(item.call);
                    self.body_scroll = Scroll::START;
                }
                self.show(Focus::Waiting);
            }
            None if self.run.confirming().is_some() => self.say(CLAIM_WAITS, Role::Attention),
            None => self.say("nothing waits for you", Role::Dim),
        }
    }

    fn close(&mut self) {
        if self.popups.pop().is_none() {
            if self.zoomed {
                self.zoomed = false;
            } else {
                self.focus = Focus::Composer;
            }
        }
    }

    /// The ladder of Ctrl-C: clear what is written; pause; stop; leave.
    fn stop(&mut self) -> Vec<Out> {
        if let Some(Popup::Words { .. } | Popup::Raise { .. }) = self.popups.last() {
            self.popups.pop();
            return Vec::new();
        }
        if !self.composer.is_empty() {
            self.composer.take();
            self.answering = None;
            self.say("draft cleared; ↑ brings it back", Role::Dim);
            return Vec::new();
        }
        let stopping = self.stopping();
        match (&self.run.status, stopping) {
            (Status::Running, None) => {
                let outs = self.submit(Command::Pause(Pause::AfterTool), None);
                self.say("pausing after the running call; once more stops it now", Role::Dim);
                outs
            }
            (Status::Running, Some(Control::Pause(Pause::AfterIteration))) => {
                let outs = self.submit(Command::Pause(Pause::AfterTool), None);
                self.say("pausing after the running call; once more stops it now", Role::Dim);
                outs
            }
            (Status::Running, Some(Control::Pause(Pause::AfterTool))) => {
                let outs = self.submit(Command::Pause(Pause::Now), None);
                self.say("stopping the running call", Role::Dim);
                outs
            }
            (Status::Running, Some(Control::Pause(Pause::Now) | Control::Leave | Control::Cancel(_)))
            | (Status::Queued | Status::Parked(_) | Status::Completed(_) | Status::Failed(_) | Status::Cancelled, _) => {
                self.stop_twice()
            }
        }
    }

    fn stop_twice(&mut self) -> Vec<Out> {
        let is_second = self.last_stop_ms.is_some_and(|then| self.now.ms.saturating_sub(then) <= limits::LEAVE_TWICE.0);
        if is_second {
            return self.leave();
        }
        self.last_stop_ms = Some(self.now.ms);
        let key = keymap::key_of(Action::Stop);
        self.say(format!("{key} once more within a second leaves"), Role::Dim);
        Vec::new()
    }

    fn leave(&mut self) -> Vec<Out> {
        self.leaving = true;
        vec![Out::Leave]
    }

    fn send(&mut self, how: Sending) -> Vec<Out> {
        if self.composer.text().trim().is_empty() {
            return Vec::new();
        }
        if let Some(call) = self.question() {
            let text = self.composer.take();
            return self.submit(Command::Answer { call, text }, None);
        }
        if self.answering.is_some_and(|call| !self.waiting.iter().any(|item| item.call == call)) {
            self.answering = None;
            self.say("that question waits no longer; Enter again says this to the agent", Role::Warning);
            return Vec::new();
        }
        let then = (self.is_parked() && how == Sending::AndResume).then_some(Command::Resume);
        let text = self.composer.take();
        let policy = std::mem::take(&mut self.policy);
        self.submit(Command::Interject { text, policy }, then)
    }

    fn is_parked(&self) -> bool {
        match &self.run.status {
            Status::Parked(_) => true,
            Status::Queued | Status::Running | Status::Completed(_) | Status::Failed(_) | Status::Cancelled => false,
        }
    }

    /// The next choice of when the agent is told what is being written.
    fn turn_policy(&mut self) {
        let place = Policy::ALL.iter().position(|one| *one == self.policy).unwrap_or(0);
        self.policy = Policy::ALL.iter().cycle().nth(place + 1).copied().unwrap_or_default();
        self.say(format!("what you write is {}", self.policy.phrase()), Role::Dim);
    }

    fn withdraw(&mut self) -> Vec<Out> {
        self.last_queued().map_or_else(Vec::new, |id| self.submit(Command::Withdraw(id), None))
    }

    fn step(&mut self, rows: isize) {
        let selects = self.popups.is_empty() && self.focus == Focus::Waiting && self.waiting.len() > 1;
        if !selects {
            return self.scroll(|_| Move::By(rows));
        }
        let place = self.waiting.iter().position(|item| Some(item.call) == self.selected).unwrap_or(0);
        let next = place.saturating_add_signed(rows).min(self.waiting.len() - 1);
        if next != place {
            self.selected = self.waiting.get(next).map(|item| item.call);
            self.body_scroll = Scroll::START;
        }
    }

    fn scroll(&mut self, movement: impl FnOnce(Option<&View>) -> Move) {
        let seen = &self.seen;
        let (scroll, view) = match (self.popups.last_mut(), self.focus) {
            (Some(Popup::Help { scroll, .. } | Popup::Whole { scroll, .. }), _) => (scroll, &seen.popup),
            (Some(Popup::Words { .. } | Popup::Raise { .. } | Popup::Cancel), _) => return,
            (None, Focus::Waiting) => (&mut self.body_scroll, &seen.body),
            (None, Focus::Activity) => (&mut self.activity_scroll, &seen.activity),
            (None, Focus::Plan) => {
                let shown = seen.plan.as_ref().map_or(Scroll::START, |view| view.scroll);
                (self.plan_scroll.get_or_insert(shown), &seen.plan)
            }
            (None, Focus::Composer | Focus::Spend) => return,
        };
        *scroll = match movement(view.as_ref()) {
            Move::To(place) => place,
            Move::By(rows) => {
                let from = match (scroll.anchor, view) {
                    // What follows may stand above the end; moving starts from what is seen.
                    (Anchor::End, Some(view)) if rows < 0 => {
                        Scroll { anchor: Anchor::At { block: view.top.0, row: view.top.1 }, nudge: scroll.nudge }
                    }
                    (Anchor::End | Anchor::At { .. }, _) => *scroll,
                };
                from.moved(rows)
            }
        };
    }

    fn view(&mut self) {
        if self.focus == Focus::Activity && self.popups.is_empty() {
            let first = self.seen.activity.as_ref().map(|view| view.top.0);
            let (title, body) = activity::whole(self, first);
            let popup = Popup::Whole { title, call: None, body: Arc::new(body), scroll: Scroll::START };
            return self.popups.push(popup);
        }
        let Some(item) = self.item().filter(|_| self.popups.is_empty()) else { return };
        let Some(call) = self.run.calls.get(&item.call) else { return };
        let title = format!("{} {}", item.tool, item.title);
        let body = Arc::new(whole(call, item.waits));
        self.popups.push(Popup::Whole { title, call: Some(item.call), body, scroll: Scroll::START });
    }
}

/// What sending what is written asks for.
#[derive(Clone, Copy, PartialEq)]
enum Sending {
    /// That it is queued.
    Alone,
    /// That a parked run goes on, too.
    AndResume,
}

/// Where a view is moved to.
enum Move {
    By(isize),
    To(Scroll),
}

fn page(view: Option<&View>) -> isize {
    let height = view.map_or(1, |view| view.height);
    isize::try_from(height.saturating_sub(1).max(1)).unwrap_or(1)
}

/// What a held key may go on doing.
fn may_repeat(action: Action) -> bool {
    matches!(
        action,
        Action::Down
            | Action::Up
            | Action::PageDown
            | Action::PageUp
            | Action::Earlier
            | Action::Later
            | Action::Newline
            | Action::NextAxis
            | Action::PreviousAxis
    )
}
