//! What is written on the screen: letters and pasted text go to the dialog that is open, else to the composer, else
//! nowhere.

use crossterm::event::KeyCode;
use crossterm::event::KeyEvent;
use crossterm::event::KeyModifiers;

use crate::domain::limits;
use crate::tui::action::Action;
use crate::tui::app::App;
use crate::tui::app::Focus;
use crate::tui::app::Out;
use crate::tui::composer::Composer;
use crate::tui::notice::Lasts;
use crate::tui::popup::Asks;
use crate::tui::popup::Popup;
use crate::tui::theme::Role;

impl App {
    /// Whether a key of the table is only text here, because something is written already.
    pub(crate) fn is_text(&self, action: Action, key: &KeyEvent) -> bool {
        let is_writing = self.popups.is_empty() && self.focus == Focus::Composer && !self.composer.is_empty();
        let gives_way = action == Action::Leave || matches!(key.code, KeyCode::Char('?'));
        is_writing && gives_way
    }

    pub(crate) fn type_key(&mut self, key: KeyEvent) {
        self.typed_ms = Some(self.now.ms);
        // A field of one line takes every key that edits but the line breaks.
        let breaks = matches!(key.code, KeyCode::Enter | KeyCode::Char('\n' | '\r' | 'm'))
            && (key.code == KeyCode::Enter || key.modifiers.contains(KeyModifiers::CONTROL));
        match self.popups.last_mut() {
            Some(_) if breaks => {}
            Some(Popup::Words { line, .. } | Popup::Raise { line, .. }) => line.input(key),
            Some(Popup::Menu(menu)) => {
                menu.write(|line| line.input(key));
                self.notice = None;
            }
            Some(Popup::Help { .. } | Popup::Whole { .. } | Popup::Cancel) => {}
            None if self.focus == Focus::Composer => self.write(|composer| composer.input(key)),
            None => {}
        }
    }

    pub(crate) fn clear_line(&mut self) {
        match self.popups.last_mut() {
            Some(Popup::Words { line, .. } | Popup::Raise { line, .. }) => line.clear_line(),
            Some(Popup::Menu(menu)) => menu.write(Composer::clear_line),
            Some(Popup::Help { .. } | Popup::Whole { .. } | Popup::Cancel) => {}
            None => self.write(Composer::clear_line),
        }
    }

    /// Changes the draft. A draft that is begun while a question waits is an answer; one that was begun before is
    /// what it was begun as.
    pub(crate) fn write(&mut self, change: impl FnOnce(&mut Composer)) {
        let was_empty = self.composer.is_empty();
        let question = self.open_question();
        change(&mut self.composer);
        if was_empty || self.composer.is_empty() {
            self.answering = question;
        }
    }

    pub(crate) fn paste(&mut self, text: &str) -> Vec<Out> {
        self.drop_followed();
        self.guard.disturb(self.now.ms);
        let mut fits = true;
        match self.popups.last_mut() {
            Some(Popup::Words { asks: Asks::Code(..), .. }) => {
                self.say("a code is typed, not pasted; nothing was taken", Role::Warning);
            }
            Some(Popup::Words { line, .. } | Popup::Raise { line, .. }) => fits = line.paste_line(text),
            Some(Popup::Menu(menu)) => fits = menu.write(|line| line.paste_line(text)),
            Some(Popup::Help { .. } | Popup::Whole { .. } | Popup::Cancel) => {}
            None if self.focus == Focus::Composer => self.write(|composer| fits = composer.paste(text)),
            None => {
                let text = "pasted text goes into the composer only; nothing was taken (Esc goes there)";
                self.explain(text, Lasts::UntilKeyWithWay);
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
}
