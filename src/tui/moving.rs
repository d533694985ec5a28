//! Where the operator looks: which pane has the keys, how far it is scrolled, and what is opened whole.

use std::sync::Arc;

use crate::domain::id::CallId;
use crate::domain::tool::CallState;
use crate::domain::tool::ToolCall;
use crate::tui::action::Action;
use crate::tui::app::App;
use crate::tui::app::Focus;
use crate::tui::app::View;
use crate::tui::keymap;
use crate::tui::notice::Lasts;
use crate::tui::popup::Popup;
use crate::tui::scroll::Anchor;
use crate::tui::scroll::Scroll;
use crate::tui::theme::Role;
use crate::tui::view::activity;
use crate::tui::waiting::whole;

/// Panes in the order in which Tab visits them.
pub(crate) const PANES: [Focus; 5] = [Focus::Composer, Focus::Waiting, Focus::Activity, Focus::Plan, Focus::Spend];

/// What is said of a claim that waits for the operator: it is no call, so it stands in no list.
pub(crate) const CLAIM_WAITS: &str = "the claim of being finished waits for your word: Y it is right, W it is not";

/// Where a view is moved to.
pub(crate) enum Move {
    By(isize),
    To(Scroll),
}

impl App {
    pub(crate) fn focus_by(&mut self, steps: usize) {
        let place = PANES.iter().position(|pane| *pane == self.focus).unwrap_or(0);
        self.show(PANES.iter().cycle().nth(place + steps).copied().unwrap_or(Focus::Composer));
    }

    /// Goes to a pane by a key of its own, which is no letter: whoever presses it means what comes next.
    pub(crate) fn show(&mut self, focus: Focus) {
        self.popups.clear();
        self.focus = focus;
        self.guard.trust_keys();
    }

    /// A call that the operator changed and of which it is not known yet whether it runs or is asked about once more.
    pub(crate) fn looked_at_again(&self) -> Option<CallId> {
        let is_on_its_way = |call: &&ToolCall| matches!(call.state, CallState::Proposed | CallState::Prepared);
        let is_leave = |call: &&ToolCall| call.edited.as_ref().is_some_and(|edited| edited.is_leave);
        self.run.calls.values().find(|call| is_on_its_way(call) && is_leave(call)).map(|call| call.id)
    }

    /// Whether keys that are on what waits stay there: something waits, or may at once.
    pub(crate) fn holds_keys(&self) -> bool {
        !self.run.waiting().is_empty() || self.looked_at_again().is_some()
    }

    /// Nothing waits any more: keys that were on it go to where they decide nothing, so that what comes next has to be
    /// gone to. Whether they did.
    pub(crate) fn give_keys_back(&mut self) -> bool {
        let is_there = self.focus == Focus::Waiting;
        if is_there {
            self.focus = Focus::Composer;
        }
        is_there
    }

    /// Says that they went back, after what was `done`. The records that said so may have brought what waits by now.
    pub(crate) fn say_keys_are_back(&mut self, done: &str) {
        let (why, lasts) = match self.waiting.is_empty() {
            true => ("nothing waits for you any more", Lasts::WhileNothingWaits),
            false => ("what waits now came after what you saw", Lasts::AWhile),
        };
        self.say_for(format!("{done}{why}: the keys are in the composer again"), Role::Dim, lasts);
    }

    /// The pane that has the keys, as it is called on the screen.
    pub(crate) fn pane(&self) -> &'static str {
        match self.focus {
            Focus::Composer => "the composer",
            Focus::Plan => "pane 1, Plan",
            Focus::Activity => "pane 2, Activity",
            Focus::Waiting => "pane 3, Waiting for you",
            Focus::Spend => "pane 4, Spend",
        }
    }

    /// The key that goes from a pane to the composer, and how often.
    pub(crate) fn way_back(&self) -> String {
        let often = if self.zoomed { " twice" } else { "" };
        format!("{}{often}", keymap::key_of(Action::Close))
    }

    pub(crate) fn go_to_waiting(&mut self) {
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

    pub(crate) fn close(&mut self) {
        if !self.popups.is_empty() {
            self.close_dialog();
        } else if self.zoomed {
            self.zoomed = false;
        } else {
            self.focus = Focus::Composer;
        }
    }

    pub(crate) fn step(&mut self, rows: isize) {
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

    pub(crate) fn scroll(&mut self, movement: impl FnOnce(Option<&View>) -> Move) {
        let seen = &self.seen;
        let (scroll, view) = match (self.popups.last_mut(), self.focus) {
            (Some(Popup::Help { scroll, .. } | Popup::Whole { scroll, .. }), _) => (scroll, &seen.popup),
            (Some(Popup::Menu(menu)), _) => {
                if let Move::By(rows) = movement(seen.popup.as_ref()) {
                    menu.step(rows);
                }
                return;
            }
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

    /// Opens the help for what is on top; where that is the help, goes back to what it was opened on.
    pub(crate) fn help(&mut self) {
        match self.popups.last() {
            Some(Popup::Help { .. }) => self.close_dialog(),
            Some(Popup::Whole { .. } | Popup::Words { .. } | Popup::Raise { .. } | Popup::Cancel | Popup::Menu(_))
            | None => {
                let over = self.notice.take().filter(|notice| notice.lasts == Lasts::WithDialog);
                self.open(Popup::Help { places: self.places(), scroll: Scroll::START });
                self.notice = over;
            }
        }
    }

    pub(crate) fn view(&mut self) {
        if self.focus == Focus::Activity && self.popups.is_empty() {
            let first = self.seen.activity.as_ref().map(|view| view.top.0);
            let (title, body) = activity::whole(self, first);
            let popup = Popup::Whole { title, call: None, body: Arc::new(body), scroll: Scroll::START };
            return self.open(popup);
        }
        let Some(item) = self.item().filter(|_| self.popups.is_empty()) else { return };
        let Some(call) = self.run.calls.get(&item.call) else { return };
        let title = format!("{} {}", item.tool, item.title);
        let body = Arc::new(whole(call, item.waits));
        let call = Some((item.call, item.digest.clone()));
        self.open(Popup::Whole { title, call, body, scroll: Scroll::START });
    }

    /// Closes the whole of a call that waits no more, or as another one: keys there would decide about what is not shown.
    pub(crate) fn close_changed(&mut self) {
        let waiting = &self.waiting;
        let mut gone = None;
        self.popups.retain(|popup| {
            let Popup::Whole { call: Some((call, digest)), .. } = popup else { return true };
            let is_same = waiting.iter().any(|item| item.call == *call && item.digest == *digest);
            gone = if is_same { gone } else { Some(*call) };
            is_same
        });
        if let Some(call) = gone.filter(|gone| self.waiting.iter().any(|item| item.call == *gone)) {
            self.body_scroll = Scroll::START;
            self.explain(format!("{call} became another call; look at it again"), Lasts::UntilKeyOrCall(call));
        }
    }
}

pub(crate) fn page(view: Option<&View>) -> isize {
    let height = view.map_or(1, |view| view.height);
    isize::try_from(height.saturating_sub(1).max(1)).unwrap_or(1)
}
