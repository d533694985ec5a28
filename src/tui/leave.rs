//! Keys that give leave in wider ways: for a list, with changed arguments, by trust. Whether a deciding key counts is the
//! guard's (`guard.rs`).

use crate::domain::approval::Decision;
use crate::domain::command::Command;
use crate::domain::id::CallId;
use crate::domain::limits;
use crate::domain::run::Waits;
use crate::domain::tool::Digest;
use crate::domain::trust::Trust;
use crate::policy::editing;
use crate::tui::app::App;
use crate::tui::app::Out;
use crate::tui::composer::Composer;
use crate::tui::popup::Asks;
use crate::tui::popup::Popup;
use crate::tui::theme::Role;

impl App {
    /// Allows every call that waits for a decision and was read to its end; the others wait on, and are counted.
    pub(crate) fn allow_list(&mut self) -> Vec<Out> {
        let waiting = self.waiting.iter().filter(|item| item.waits == Waits::Decision && !self.is_sent(item.call));
        let (read, unread): (Vec<_>, Vec<_>) =
            waiting.partition(|item| self.guard.was_read(item.call, item.digest.as_ref()));
        let calls: Vec<(CallId, Digest)> =
            read.iter().filter_map(|item| Some((item.call, item.digest.clone()?))).collect();
        let left = unread.len();
        let outs = self.submit(Command::AllowAll { calls }, None);
        if left > 0 {
            let text = format!("not read to their end, so they wait on: {left} of the list");
            self.say(text, Role::Warning);
        }
        outs
    }

    /// Opens the arguments of a call, to be changed.
    pub(crate) fn ask_edit(&mut self, call: CallId, digest: Digest) {
        let arguments = self.run.calls.get(&call).map(|call| call.arguments.clone()).unwrap_or_default();
        if arguments.len() > limits::SAY_MAX_BYTES {
            return self
                .say("the arguments are too long to be changed here; use `tiller approve --edit FILE`", Role::Bad);
        }
        let line = Composer::new(&arguments, Vec::new());
        self.popups.push(Popup::Words { asks: Asks::Edit(call, digest), line });
    }

    /// Takes changed arguments; the dialog stays open while they do not fit.
    pub(crate) fn submit_edit(&mut self, call: CallId, digest: Digest, line: Composer) -> Vec<Out> {
        let arguments = line.text().trim().to_string();
        let fits = match self.run.calls.get(&call) {
            Some(call) => editing::fit(&self.run, call, &arguments),
            None => Err("the call is gone".to_string()),
        };
        if let Err(why) = fits {
            self.popups.push(Popup::Words { asks: Asks::Edit(call, digest), line });
            self.say(format!("nothing was decided: {why}"), Role::Bad);
            return Vec::new();
        }
        self.guard.decided(self.now.ms);
        self.submit(Command::Decide { call, digest, decision: Decision::Edit(arguments) }, None)
    }

    /// Asks how much the run does unasked.
    pub(crate) fn ask_trust(&mut self) {
        self.popups.push(Popup::Words { asks: Asks::Trust, line: Composer::default() });
    }

    /// Takes a mode by its whole word, so that nothing is trusted by a slip of a key.
    pub(crate) fn submit_trust(&mut self, line: Composer) -> Vec<Out> {
        match Trust::parse(&line.text()) {
            Ok(trust) => self.submit(Command::SetTrust(trust), None),
            Err(why) => {
                self.popups.push(Popup::Words { asks: Asks::Trust, line });
                self.say(format!("nothing was changed: {why}"), Role::Bad);
                Vec::new()
            }
        }
    }
}
