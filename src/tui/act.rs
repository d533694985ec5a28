//! What keys do to the screen. Which key does what is the table's (`keymap.rs`); whether a deciding key counts is
//! the guard's (`guard.rs`).

use crossterm::event::KeyCode;
use crossterm::event::KeyEvent;
use crossterm::event::KeyEventKind;

use crate::domain::budget::Axis;
use crate::domain::command::Cancel;
use crate::domain::command::Command;
use crate::domain::command::Pause;
use crate::domain::limits;
use crate::domain::run::Waits;
use crate::tui::action::Action;
use crate::tui::app::App;
use crate::tui::app::Focus;
use crate::tui::app::Out;
use crate::tui::composer::Composer;
use crate::tui::guard::Cut;
use crate::tui::keymap;
use crate::tui::keymap::chord::Chord;
use crate::tui::keymap::is_letter;
use crate::tui::keymap::place::Place;
use crate::tui::lineage::StepKind;
use crate::tui::moving::Move;
use crate::tui::moving::PANES;
use crate::tui::moving::page;
use crate::tui::notice::Lasts;
use crate::tui::notice::Notice;
use crate::tui::popup::Asks;
use crate::tui::popup::Popup;
use crate::tui::scroll::Scroll;
use crate::tui::sending::Sending;

impl App {
    /// The places whose keys work now, the nearest first.
    pub fn places(&self) -> Vec<Place> {
        match self.popups.last() {
            Some(Popup::Help { .. } | Popup::Whole { call: None, .. }) => vec![Place::Moving, Place::Anywhere],
            Some(Popup::Whole { call: Some(_), .. }) => {
                self.item_place().into_iter().chain([Place::Moving, Place::Anywhere]).collect()
            }
            Some(Popup::Words { asks, .. }) => vec![asks.place(), Place::Anywhere],
            Some(Popup::Raise { .. }) => vec![Place::Raise, Place::Anywhere],
            Some(Popup::Cancel) => vec![Place::Cancel, Place::Anywhere],
            Some(Popup::Menu(_)) => vec![Place::Menu, Place::Anywhere],
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
        let is_held = self.is_held_down(&key);
        let was_refused = self.notice.as_ref().is_some_and(Notice::refuses);
        if key.kind == KeyEventKind::Press && !is_held {
            self.forget_explained();
        }
        self.drop_followed();
        if is_held {
            self.guard.disturb(self.now.ms);
            return Vec::new();
        }
        if let Some(why) = self.comes_too_late(&key) {
            self.guard.disturb(self.now.ms);
            self.explain(why, Lasts::UntilKey);
            return Vec::new();
        }
        if let Some(cut) = self.guard.cut().filter(|cut| self.is_cut_off(*cut, &key)) {
            // Doubted anew: the operator may have gone to another pane meanwhile, and types words there as well.
            self.guard.cut_off(cut, self.now.ms);
            self.explain_dropped(cut, &key);
            return Vec::new();
        }
        self.guard.field_is_seen();
        self.pressed = if let KeyCode::Char(letter) = key.code { Some(letter) } else { None };
        let action = keymap::find(&self.places(), &key).filter(|action| !self.is_text(*action, &key));
        if !matches!(action, Some(Action::Decide(_))) {
            self.guard.interrupt();
        }
        match action {
            // What was typed next, believing a field to be there, would go to the agent.
            Some(Action::Close) if was_refused && !self.has_dialog() => {
                self.guard.disturb(self.now.ms);
                self.notice = None;
                Vec::new()
            }
            Some(action) if self.keeps_back(key, action) => Vec::new(),
            Some(action) => self.obey(action, &key),
            None => {
                self.guard.disturb(self.now.ms);
                if self.popups.is_empty() && self.focus != Focus::Composer {
                    self.is_no_key(&key);
                    return Vec::new();
                }
                let before = self.composer.text();
                self.type_key(key);
                let leaves = keymap::find(&self.places(), &key) == Some(Action::Leave);
                if leaves && self.composer.text() == before {
                    self.explain(kept_by_draft(&keymap::key_of(Action::Leave)), Lasts::UntilKey);
                }
                Vec::new()
            }
        }
    }

    /// Does what a key asks for, or says why not.
    pub(crate) fn obey(&mut self, action: Action, key: &KeyEvent) -> Vec<Out> {
        if self.seen.is_too_small && action.settles() {
            self.guard.disturb(self.now.ms);
            self.explain("nothing was decided: the screen was too small to show what it was about", Lasts::UntilKey);
            return Vec::new();
        }
        match (action, self.in_vain(action)) {
            (Action::Decide(choice), None) => self.decide(choice, key),
            (Action::ConfirmClaim, None) => self.confirm_claim(key),
            (action, _) if key.kind == KeyEventKind::Repeat && !may_repeat(action) => Vec::new(),
            (action, None) => self.carry_out(action),
            (action, Some(why)) => {
                self.guard.disturb(self.now.ms);
                if action.opens_dialog() {
                    self.guard.cut_off(Cut::NotOpened, self.now.ms);
                }
                self.explain(why, Lasts::UntilKeyOrStatus);
                Vec::new()
            }
        }
    }

    fn is_letter_for_a_pane(&self, key: &KeyEvent) -> bool {
        is_letter(key) && self.popups.is_empty() && self.focus != Focus::Composer
    }

    fn is_in_composer(&self) -> bool {
        self.popups.is_empty() && self.focus == Focus::Composer
    }

    /// Whether something is open that says itself what Esc does.
    fn has_dialog(&self) -> bool {
        matches!(
            self.popups.last(),
            Some(Popup::Words { .. } | Popup::Raise { .. } | Popup::Cancel | Popup::Help { .. } | Popup::Menu(_))
        )
    }

    /// Whether a key is among those that go nowhere for this reason.
    fn is_cut_off(&self, cut: Cut, key: &KeyEvent) -> bool {
        let has_field = matches!(self.popups.last(), Some(Popup::Words { .. } | Popup::Raise { .. } | Popup::Menu(_)));
        match cut {
            Cut::Closed | Cut::NotOpened | Cut::Words => self.is_letter_for_a_pane(key),
            Cut::Together(_) => {
                let is_part = is_letter(key) || keymap::find(&self.places(), key).is_none();
                is_part && !has_field && !self.is_in_composer()
            }
            Cut::Opened(letter) => has_field && key.code == KeyCode::Char(letter),
        }
    }

    /// A key that means nothing in the pane that has the keys. Whoever types words there is not heard letter by letter:
    /// some of them are keys.
    fn is_no_key(&mut self, key: &KeyEvent) {
        if self.is_letter_for_a_pane(key) {
            self.guard.cut_off(Cut::Words, self.now.ms);
        }
        self.explain_dropped(Cut::Words, key);
    }

    /// Why a key goes nowhere, and what to do.
    pub(crate) fn dropped(&self, cut: Cut, key: &KeyEvent) -> String {
        let name = Chord::of(key).name();
        match cut {
            Cut::Closed => format!("{name} was dropped: it came right after a dialog had closed; wait half a second"),
            Cut::NotOpened => {
                format!("{name} was dropped: it seems meant for a dialog that did not open; wait half a second")
            }
            Cut::Opened(_) => {
                format!("{name} was dropped: it had just opened this field; after half a second it is a letter")
            }
            Cut::Together(first) => {
                format!(
                    "{first} did nothing: other keys came right behind it, as in words; wait half a second, or {} goes to the \
                     composer",
                    self.way_back()
                )
            }
            Cut::Words if self.means_something(key) => {
                format!(
                    "{name} was dropped: it came right after letters that do nothing in {}; wait half a second, or {} goes \
                     to the composer",
                    self.pane(),
                    self.way_back()
                )
            }
            Cut::Words => {
                format!(
                    "{name} does nothing: the keys are in {}; {} goes to the composer",
                    self.pane(),
                    self.way_back()
                )
            }
        }
    }

    /// Whether a key would do something here, came it alone.
    fn means_something(&self, key: &KeyEvent) -> bool {
        keymap::find(&self.places(), key).is_some_and(|action| self.in_vain(action).is_none())
    }

    /// Whether this is the key that decided, held down still after the keys went back to the composer by themselves, or
    /// after the next question about a claim came.
    fn is_held_down(&mut self, key: &KeyEvent) -> bool {
        let held = self.decided_by.filter(|(code, until_ms)| *code == key.code && self.now.ms < *until_ms);
        let until_ms = self.now.ms.saturating_add(limits::KEY_GUARD_AFTER_DECISION.0);
        self.decided_by = held.map(|(code, _)| (code, until_ms));
        let confirms = || keymap::find(&self.places(), key) == Some(Action::ConfirmClaim);
        held.is_some() && (self.is_in_composer() || confirms())
    }

    /// Why the key that decided writes nothing when it is pressed once more, right after the keys went back to the composer
    /// by themselves. Any other key is the beginning of words, and ends that.
    fn comes_too_late(&self, key: &KeyEvent) -> Option<String> {
        let since_ms = self.now.ms.saturating_sub(self.emptied_ms?);
        let would_decide = matches!(keymap::find(&[Place::Decision, Place::Outcome], key), Some(Action::Decide(_)));
        let is_same = matches!(key.code, KeyCode::Char(letter) if self.pressed == Some(letter));
        let name = Chord::of(key).name();
        (self.is_in_composer() && would_decide && is_same && since_ms < limits::KEY_GUARD_AFTER_DECISION.0).then(|| {
            format!("{name} was dropped: nothing waits any more, and the keys are in the composer; press it again to write it")
        })
    }

    /// What counts only after a rest looks for that itself; any other key disturbs it.
    fn carry_out(&mut self, action: Action) -> Vec<Out> {
        match action {
            Action::CancelGently => self.cancel(Cancel::Graceful),
            Action::CancelNow => self.cancel(Cancel::Now),
            Action::AcceptWork => self.end_run(Command::Accept),
            Action::CloseFailed => self.end_run(Command::Close),
            other => {
                self.guard.disturb(self.now.ms);
                self.act(other)
            }
        }
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
            Action::Help => self.help(),
            Action::Menu => self.open_menu(),
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
            Action::Pause => return self.pause(Pause::AfterTool, ""),
            Action::PauseLater => return self.pause(Pause::AfterIteration, ""),
            Action::AskTrust => self.ask_trust(),
            Action::Resume => return self.resume(),
            Action::AskBack => self.ask_step(StepKind::Back),
            Action::AskFork => self.ask_step(StepKind::Fork),
            Action::GrantReplans => return self.submit(Command::GrantReplans, None),
            Action::RefuseClaim => self.refuse_claim(),
            Action::AskCancel => self.open(Popup::Cancel),
            Action::AskRaise => self.ask_raise(),
            Action::AskPlan => {
                self.open(Popup::Words { asks: Asks::Plan, line: Composer::default() });
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
}

/// Why a key that leaves does not do so now, and what does.
pub(crate) fn kept_by_draft(leave: &str) -> String {
    let clear = keymap::key_of(Action::Stop);
    format!("{leave} leaves only while nothing is written here: {clear} clears it, then {leave} leaves")
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
