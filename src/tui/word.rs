//! The keys by which the operator says something of a run as a whole: it ends, or its claim is right. As with a cancel,
//! they count only after a rest.

use crate::domain::command::Command;
use crate::tui::app::App;
use crate::tui::app::Out;
use crate::tui::notice::Lasts;

impl App {
    /// Ends a parked run by the operator's word; as a cancel, only after a rest.
    pub(crate) fn end_run(&mut self, command: Command) -> Vec<Out> {
        if !self.guard.is_rested(self.now.ms) {
            self.guard.disturb(self.now.ms);
            let text = "too early: nothing was ended; wait half a second after the last key";
            self.explain(text, Lasts::UntilKey);
            return Vec::new();
        }
        self.ask(command, None)
    }

    /// The claim is right, where a check asks; only after a rest, because it lets the run go on to its end.
    pub(crate) fn confirm_claim(&mut self) -> Vec<Out> {
        if !self.guard.is_rested(self.now.ms) {
            self.guard.disturb(self.now.ms);
            let text = "too early: nothing was confirmed; wait half a second after the last key";
            self.explain(text, Lasts::UntilKey);
            return Vec::new();
        }
        self.submit(Command::Confirm { confirmed: true, text: String::new() }, None)
    }
}
