//! The menu: what can be asked for where the operator is, found by its words. What is chosen is done as its key would do
//! it. What decides about a call is shown and never done from here: the menu covers what it would be about, and Enter
//! decides nothing (docs/SAFETY.md §9).

use crossterm::event::KeyCode;
use crossterm::event::KeyEvent;

use crate::tui::act::kept_by_draft;
use crate::tui::action::Action;
use crate::tui::app::App;
use crate::tui::app::Focus;
use crate::tui::app::Out;
use crate::tui::composer::Composer;
use crate::tui::guard::Cut;
use crate::tui::keymap;
use crate::tui::keymap::Binding;
use crate::tui::keymap::place::Place;
use crate::tui::matching::cost;
use crate::tui::notice::Lasts;
use crate::tui::popup::Popup;

/// The menu while it is open. Its rows change by what is typed only, so that Enter does what was seen to be chosen.
#[derive(Clone, Debug)]
pub struct Menu {
    /// What is typed.
    pub line: Composer,
    /// All rows of the table that it offers, those first that could do something when it was opened.
    all: Vec<&'static Binding>,
    /// Those that fit what is typed, the best first.
    pub found: Vec<&'static Binding>,
    /// Which of them is chosen.
    pub chosen: usize,
}

impl Menu {
    fn new(all: Vec<&'static Binding>) -> Menu {
        Menu { line: Composer::default(), found: all.clone(), all, chosen: 0 }
    }

    /// Changes what is typed, and looks for that. What the change says.
    pub(crate) fn write<T>(&mut self, change: impl FnOnce(&mut Composer) -> T) -> T {
        let before = self.line.text();
        let said = change(&mut self.line);
        let typed = self.line.text();
        if typed != before {
            let mut fitting: Vec<(usize, &'static Binding)> =
                self.all.iter().filter_map(|row| cost(&typed, &words(row)).map(|cost| (cost, *row))).collect();
            fitting.sort_by_key(|(cost, _)| *cost);
            self.found = fitting.into_iter().map(|(_, row)| row).collect();
            self.chosen = 0;
        }
        said
    }

    /// Goes so many rows down.
    pub(crate) fn step(&mut self, rows: isize) {
        self.chosen = self.chosen.saturating_add_signed(rows).min(self.found.len().saturating_sub(1));
    }

    /// The row that is chosen, if any fits.
    pub fn row(&self) -> Option<&'static Binding> {
        self.found.get(self.chosen).copied()
    }
}

/// By which words a row is found.
fn words(row: &Binding) -> String {
    let keys: Vec<String> = row.keys.iter().map(|chord| chord.name()).collect();
    format!("{} {} {}", row.label, row.help, keys.join(" "))
}

/// Whether an action is one for the hand only: it moves, it edits what is written, or it is about the menu itself.
fn is_for_the_hand(action: Action) -> bool {
    matches!(
        action,
        Action::Menu
            | Action::Close
            | Action::Down
            | Action::Up
            | Action::Top
            | Action::Bottom
            | Action::PageDown
            | Action::PageUp
            | Action::Newline
            | Action::ClearLine
            | Action::Earlier
            | Action::Later
    )
}

impl App {
    /// Opens the menu for the pane that has the keys.
    pub(crate) fn open_menu(&mut self) {
        let (can, can_not): (Vec<_>, Vec<_>) =
            self.offered().into_iter().partition(|row| self.why_not_chosen(row.action).is_none());
        self.open(Popup::Menu(Menu::new(can.into_iter().chain(can_not).collect())));
    }

    /// The rows that the menu offers here, each action once: those of the place, and those that are about the run whatever
    /// has the keys.
    fn offered(&self) -> Vec<&'static Binding> {
        let mut places = self.places();
        if self.focus == Focus::Composer {
            places.insert(0, Place::Pane);
        }
        if !places.contains(&Place::Plan) {
            places.insert(1, Place::Plan);
        }
        let is_zoom_of_nothing = |action| action == Action::Zoom && self.focus == Focus::Composer;
        let rows: Vec<&'static Binding> = places.iter().flat_map(|place| keymap::rows(*place)).collect();
        let is_last = |place: usize, row: &Binding| !rows.iter().skip(place + 1).any(|one| one.action == row.action);
        let offered = rows.iter().enumerate().filter(|(place, row)| {
            is_last(*place, row) && !is_for_the_hand(row.action) && !is_zoom_of_nothing(row.action)
        });
        offered.map(|(_, row)| *row).collect()
    }

    /// Why something can't be done from the menu now, in a sentence; nothing when it can.
    pub(crate) fn why_not_chosen(&self, action: Action) -> Option<String> {
        let is_kept = action == Action::Leave && self.focus == Focus::Composer && !self.composer.is_empty();
        let kept = || is_kept.then(|| kept_by_draft(&keymap::key_of(Action::Leave)));
        // A word on a claim is about the claim that the last frame showed, as a decision is about its call.
        let is_about_covered = action.settles() || action == Action::RefuseClaim;
        let covered = || {
            let why = "this is decided by its own key only, with what it is about on the screen";
            is_about_covered.then(|| why.to_string())
        };
        self.in_vain(action).or_else(kept).or_else(covered)
    }

    /// Does what is chosen, or says why not; the menu stays open then.
    pub(crate) fn choose(&mut self) -> Vec<Out> {
        let Some(Popup::Menu(menu)) = self.popups.last() else { return Vec::new() };
        let Some(row) = menu.row() else {
            self.explain("nothing is chosen: no key fits what is typed", Lasts::UntilKey);
            return Vec::new();
        };
        if let Some(why) = self.why_not_chosen(row.action) {
            self.explain(format!("nothing was done: {why}"), Lasts::UntilKey);
            return Vec::new();
        }
        self.close_dialog();
        let outs = self.obey(row.action, &KeyEvent::from(KeyCode::Enter));
        // What was typed on, for the menu, is not for the pane below, nor is the first key that would decide there.
        self.guard.cut_off(Cut::Closed, self.now.ms);
        outs
    }
}
