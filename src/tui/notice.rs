//! The sentence above the composer: what was just said, and for how long it is true. What it is about goes, and it goes
//! too: with the dialog it was said in or before, with the status it speaks of, with the call it speaks of.

use crossterm::event::KeyEvent;

use crate::domain::event::Event;
use crate::domain::event::Record;
use crate::domain::id::CallId;
use crate::domain::limits;
use crate::domain::visible::title;
use crate::tui::app::App;
use crate::tui::guard::Cut;
use crate::tui::popup::Popup;
use crate::tui::theme::Role;

/// How long a sentence above the composer lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lasts {
    /// For a while.
    AWhile,
    /// For a while, whatever the run does; what is said next of where the keys are stands behind it.
    AndNext,
    /// Until the next key, however long that takes: it explains one that did nothing.
    UntilKey,
    /// The same; it says that Esc goes to the composer, and so Esc does.
    UntilKeyWithWay,
    /// Until the next key, but only as long as the run has the status that it speaks of.
    UntilKeyOrStatus,
    /// The same, but only as long as this call waits: it is about a key for it.
    UntilKeyOrCall(CallId),
    /// Until the dialog that it is about is sent again or closed: it says what is wrong with what is written there.
    WithDialog,
    /// For a while, but only as long as nothing waits for the operator: it says so.
    WhileNothingWaits,
}

/// A sentence above the composer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// What it says.
    pub text: String,
    /// How it is shown.
    pub role: Role,
    /// Until when it is shown, in milliseconds since the screen was opened.
    pub until_ms: u64,
    /// What it lasts for beyond that.
    pub lasts: Lasts,
}

impl Notice {
    /// When it goes by itself, if it does.
    pub(crate) fn ends_ms(&self) -> Option<u64> {
        matches!(self.lasts, Lasts::AWhile | Lasts::AndNext | Lasts::WhileNothingWaits).then_some(self.until_ms)
    }

    /// Whether it says that something was not done, and not also what was, or a way to go.
    pub(crate) fn refuses(&self) -> bool {
        let is_more = matches!(self.lasts, Lasts::UntilKeyWithWay | Lasts::AndNext);
        matches!(self.role, Role::Warning | Role::Bad) && !is_more
    }
}

impl App {
    pub(crate) fn say(&mut self, text: impl Into<String>, role: Role) {
        self.say_for(text, role, Lasts::AWhile);
    }

    pub(crate) fn say_for(&mut self, text: impl Into<String>, role: Role, lasts: Lasts) {
        let until_ms = self.now.ms.saturating_add(limits::NOTICE.0);
        self.notice = Some(Notice { text: text.into(), role, until_ms, lasts });
    }

    /// Says what was done, which stays to be read also when the keys go elsewhere by themselves.
    pub(crate) fn tell_done(&mut self, text: String, role: Role) {
        self.say_for(text, role, Lasts::AndNext);
    }

    /// Says why a key did nothing. That stands until another is pressed, however long it takes to look up.
    pub(crate) fn explain(&mut self, text: impl Into<String>, lasts: Lasts) {
        self.say_for(text, Role::Warning, lasts);
    }

    /// Says why a key that reached nothing was dropped.
    pub(crate) fn explain_dropped(&mut self, cut: Cut, key: &KeyEvent) {
        let lasts = match cut {
            Cut::Together(_) | Cut::Words => Lasts::UntilKeyWithWay,
            Cut::Closed | Cut::NotOpened | Cut::Opened(_) => Lasts::UntilKey,
        };
        self.explain(self.dropped(cut, key), lasts);
    }

    /// Says of a call that comes back as the operator changed it why it is asked about once more.
    pub(crate) fn tell_changed(&mut self, records: &[Record]) {
        let asked = |record: &Record| match &record.event {
            Event::ApprovalRequested { call, why, .. } => Some((*call, title(why, limits::NOTE_MAX_BYTES))),
            _ => None,
        };
        let is_changed = |call: CallId| self.waiting.iter().any(|item| item.call == call && item.is_changed);
        let is_told = |call| self.notice.as_ref().is_some_and(|notice| notice.lasts == Lasts::UntilKeyOrCall(call));
        let mut found = records.iter().rev().filter_map(asked);
        if let Some((call, why)) = found.find(|(call, _)| is_changed(*call) && !is_told(*call)) {
            self.say_for(format!("{call} waits once more: {why}"), Role::Attention, Lasts::UntilKeyOrCall(call));
        }
    }

    /// Opens something above the panes. What was said before is about something else, and a dialog says under its field
    /// what is wrong with what it was sent.
    pub(crate) fn open(&mut self, popup: Popup) {
        self.notice = None;
        if matches!(popup, Popup::Words { .. } | Popup::Raise { .. }) {
            self.guard.opened(self.pressed, self.now.ms);
        }
        self.seen.popup = None;
        self.popups.push(popup);
    }

    /// A key is pressed: what was explained about one before is over. It does what that one did not, or has an
    /// explanation of its own.
    pub(crate) fn forget_explained(&mut self) {
        let now_ms = self.now.ms;
        let stays =
            |notice: &Notice| notice.lasts == Lasts::WithDialog || notice.ends_ms().is_some_and(|end| end > now_ms);
        self.notice = self.notice.take().filter(stays);
    }

    /// Time passed.
    pub(crate) fn forget_old(&mut self) {
        let now_ms = self.now.ms;
        self.notice = self.notice.take().filter(|notice| notice.ends_ms().is_none_or(|end| end > now_ms));
    }

    /// The run has another status: what was said about the one before is not true any more.
    pub(crate) fn forget_of_status(&mut self) {
        let stays = |notice: &Notice| {
            !matches!(notice.lasts, Lasts::AWhile | Lasts::UntilKeyOrStatus | Lasts::WhileNothingWaits)
        };
        self.notice = self.notice.take().filter(stays);
    }

    /// Other calls wait: what was said about a key for one that was decided is about nothing any more, and that nothing
    /// waits is not true any more.
    pub(crate) fn forget_of_calls(&mut self) {
        let waiting = &self.waiting;
        let stays = |notice: &Notice| match notice.lasts {
            Lasts::UntilKeyOrCall(call) => waiting.iter().any(|item| item.call == call),
            Lasts::WhileNothingWaits => waiting.is_empty(),
            Lasts::AWhile
            | Lasts::AndNext
            | Lasts::UntilKey
            | Lasts::UntilKeyWithWay
            | Lasts::WithDialog
            | Lasts::UntilKeyOrStatus => true,
        };
        self.notice = self.notice.take().filter(stays);
    }
}
