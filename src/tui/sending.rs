//! Telling the agent something, and the ladder of Ctrl-C from a draft to leaving.

use crate::domain::command::Command;
use crate::domain::command::Control;
use crate::domain::command::Pause;
use crate::domain::command::Policy;
use crate::domain::limits;
use crate::domain::run::Waits;
use crate::domain::saying;
use crate::domain::status::Status;
use crate::tui::action::Action;
use crate::tui::app::App;
use crate::tui::app::Focus;
use crate::tui::app::Out;
use crate::tui::keymap;
use crate::tui::notice::Lasts;
use crate::tui::popup::Popup;
use crate::tui::theme::Role;

/// What sending what is written asks for.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Sending {
    /// That it is queued.
    Alone,
    /// That a parked run goes on, too.
    AndResume,
}

impl App {
    /// The ladder of Ctrl-C: clear what is written; pause; stop; leave.
    pub(crate) fn stop(&mut self) -> Vec<Out> {
        if let Some(Popup::Words { .. } | Popup::Raise { .. } | Popup::Menu(_)) = self.popups.last() {
            self.close_dialog();
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
            (Status::Running, None) => self.pause(Pause::AfterTool, "; once more stops it now"),
            (Status::Running, Some(Control::Pause(Pause::AfterIteration))) => {
                self.pause(Pause::AfterTool, "; once more stops it now")
            }
            (Status::Running, Some(Control::Pause(Pause::AfterTool))) => self.pause(Pause::Now, ""),
            (Status::Running, Some(Control::Pause(Pause::Now) | Control::Leave | Control::Cancel(_)))
            | (Status::Queued | Status::Parked(_) | Status::Completed(_) | Status::Failed(_) | Status::Cancelled, _) => {
                self.stop_twice()
            }
        }
    }

    /// Asks for a pause, and names the key that goes on after it.
    pub(crate) fn pause(&mut self, pause: Pause, further: &str) -> Vec<Out> {
        let outs = self.submit(Command::Pause(pause), None);
        let what = match pause {
            Pause::AfterTool => "pausing after the running call",
            Pause::AfterIteration => "pausing at the end of this iteration",
            Pause::Now => "stopping the running call",
        };
        let place = if self.focus == Focus::Composer { "in a pane (Tab) " } else { "" };
        let resume = keymap::key_of(Action::Resume);
        self.say(format!("{what}{further}; when it is parked, {place}{resume} goes on"), Role::Dim);
        outs
    }

    pub(crate) fn stop_twice(&mut self) -> Vec<Out> {
        let is_second = self.last_stop_ms.is_some_and(|then| self.now.ms.saturating_sub(then) <= limits::LEAVE_TWICE.0);
        if is_second {
            return self.leave();
        }
        self.last_stop_ms = Some(self.now.ms);
        let key = keymap::key_of(Action::Stop);
        self.say(format!("{key} once more within a second leaves"), Role::Dim);
        Vec::new()
    }

    pub(crate) fn leave(&mut self) -> Vec<Out> {
        self.leaving = true;
        vec![Out::Leave]
    }

    /// A crash right after something was sent leaves it in the kept draft: it is not to be sent again by mistake.
    pub(crate) fn drop_said(&mut self, last: Option<String>) {
        if last.is_some_and(|last| last == self.composer.text().trim()) {
            self.composer.set("");
            self.answering = None;
            self.say("what stood here was sent already; ↑ brings it back", Role::Dim);
        }
    }

    pub(crate) fn send(&mut self, how: Sending) -> Vec<Out> {
        if self.composer.text().trim().is_empty() {
            // What was queued before is told with the next step.
            if how == Sending::AndResume && self.is_parked() && !self.run.interjections.is_empty() {
                return self.resume();
            }
            let what = if self.question().is_some() { "the answer" } else { "what the agent is to be told" };
            let key = keymap::key_of(Action::Send);
            let text = format!("nothing is written yet, so nothing was sent: type {what}, then {key}");
            self.explain(text, Lasts::UntilKey);
            return Vec::new();
        }
        if let Some(call) = self.question() {
            let text = self.composer.take();
            return self.submit(Command::Answer { call, text }, None);
        }
        if self.answering.is_some_and(|call| !self.waiting.iter().any(|item| item.call == call)) {
            self.answering = None;
            self.explain("that question waits no longer; Enter again says this to the agent", Lasts::UntilKey);
            return Vec::new();
        }
        let waits = self.waiting.iter().find(|item| item.waits != Waits::Answer && !self.is_sent(item.call));
        if let Some(item) = waits.filter(|_| saying::is_for_a_call(&self.composer.text())) {
            let (line, go) = (self.composer.text(), keymap::key_of(Action::GoToWaiting));
            let text = format!(
                "nothing was sent and nothing decided: {} waits, and {go} goes to it; to say just that to the agent, \
                 write: {} {}",
                item.call,
                saying::SAY,
                line.trim()
            );
            self.explain(text, Lasts::UntilKey);
            return Vec::new();
        }
        let then = (self.is_parked() && how == Sending::AndResume).then_some(Command::Resume);
        let text = saying::said(&self.composer.take()).to_string();
        let policy = std::mem::take(&mut self.policy);
        self.submit(Command::Interject { text, policy }, then)
    }

    pub(crate) fn is_parked(&self) -> bool {
        match &self.run.status {
            Status::Parked(_) => true,
            Status::Queued | Status::Running | Status::Completed(_) | Status::Failed(_) | Status::Cancelled => false,
        }
    }

    /// The next choice of when the agent is told what is being written.
    pub(crate) fn turn_policy(&mut self) {
        let place = Policy::ALL.iter().position(|one| *one == self.policy).unwrap_or(0);
        self.policy = Policy::ALL.iter().cycle().nth(place + 1).copied().unwrap_or_default();
        self.say(format!("what you write is {}", self.policy.phrase()), Role::Dim);
    }

    pub(crate) fn withdraw(&mut self) -> Vec<Out> {
        self.last_queued().map_or_else(Vec::new, |id| self.submit(Command::Withdraw(id), None))
    }
}
