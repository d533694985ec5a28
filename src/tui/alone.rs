//! Letters that come together are words, whoever sends them: somebody who types on, or a terminal that does not mark what
//! is pasted. So a letter that does more than move is kept back for a moment, and counts once it came alone
//! (docs/SAFETY.md §9). What is at hand of the terminal is heard before time passes (`sources.rs`), so that no key is
//! overlooked that came with it.

use crossterm::event::KeyCode;
use crossterm::event::KeyEvent;
use crossterm::event::KeyEventKind;

use crate::domain::limits;
use crate::tui::action::Action;
use crate::tui::app::App;
use crate::tui::app::Msg;
use crate::tui::app::Out;
use crate::tui::guard::Cut;
use crate::tui::keymap::is_letter;

/// A letter that is to do something, as long as others may follow it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeptBack {
    key: KeyEvent,
    action: Action,
    due_ms: u64,
}

impl App {
    /// Keeps a key back that counts only alone, if it would count at all: what comes too early is told so at once, and
    /// must not ripen.
    pub(crate) fn keeps_back(&mut self, key: KeyEvent, action: Action) -> bool {
        let is_one = key.kind == KeyEventKind::Press && is_letter(&key) && action.counts_alone();
        let counts = is_one && !self.seen.is_too_small && self.in_vain(action).is_none() && self.is_at_rest_for(action);
        if counts {
            let due_ms = self.now.ms.saturating_add(limits::KEY_ALONE.0);
            self.kept_back = Some(KeptBack { key, action, due_ms });
        }
        counts
    }

    /// Something follows the key that is kept back, at once: it was a letter of words.
    pub(crate) fn drop_followed(&mut self) {
        let Some(KeptBack { key, .. }) = self.kept_back.take() else { return };
        let KeyCode::Char(letter) = key.code else { return };
        let cut = Cut::Together(letter);
        self.guard.cut_off(cut, self.now.ms);
        self.explain_dropped(cut, &key);
    }

    /// Lets the key count that is kept back, if its time has come and this is not what may have followed it. A frame
    /// says nothing of keys: they may have come while it was drawn.
    pub(crate) fn let_count(&mut self, msg: &Msg) -> Vec<Out> {
        let is_over = self.key_counts_in(self.now.ms) == Some(0);
        let may_follow = matches!(msg, Msg::Key(_) | Msg::Paste(_) | Msg::Continued | Msg::Drawn(_));
        let Some(kept) = self.kept_back.take_if(|_| is_over && !may_follow) else { return Vec::new() };
        self.is_urgent = true;
        self.obey(kept.action, &kept.key)
    }

    /// Milliseconds until the key counts that is kept back, if there is one and nothing follows.
    pub fn key_counts_in(&self, now_ms: u64) -> Option<u64> {
        self.kept_back.map(|kept| kept.due_ms.saturating_sub(now_ms))
    }
}
