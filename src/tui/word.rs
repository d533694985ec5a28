//! The keys by which the operator says something of a run as a whole: it ends, or its claim is right. As with a cancel,
//! they count only after a rest.

use crossterm::event::KeyEvent;
use crossterm::event::KeyEventKind;

use crate::domain::command::Command;
use crate::domain::limits;
use crate::domain::tool::Digest;
use crate::tui::app::App;
use crate::tui::app::Out;
use crate::tui::composer::Composer;
use crate::tui::guard::Cut;
use crate::tui::notice::Lasts;
use crate::tui::popup::Asks;
use crate::tui::popup::Popup;

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

    /// The claim is right, where a check asks: the question that the last frame showed, at rest, because it lets the run
    /// go on to its end. One press is for one question, however long the key is held.
    pub(crate) fn confirm_claim(&mut self, key: &KeyEvent) -> Vec<Out> {
        let is_rested = self.guard.is_rested(self.now.ms);
        let Some(claim) = self.claim_seen().filter(|_| is_rested && key.kind == KeyEventKind::Press) else {
            self.guard.disturb(self.now.ms);
            let text = "too early: nothing was confirmed; wait half a second after the last key";
            self.explain(text, Lasts::UntilKey);
            return Vec::new();
        };
        self.guard.decided(self.now.ms);
        self.decided_by = Some((key.code, self.now.ms.saturating_add(limits::KEY_GUARD_AFTER_DECISION.0)));
        self.submit(Command::Confirm { claim, confirmed: true, text: String::new() }, None)
    }

    /// Opens the field for what is wrong with the claim that the last frame showed.
    pub(crate) fn refuse_claim(&mut self) {
        match self.claim_seen() {
            Some(claim) => self.open(Popup::Words { asks: Asks::WrongClaim(claim), line: Composer::default() }),
            None => {
                self.guard.cut_off(Cut::NotOpened, self.now.ms);
                self.explain("too early: nothing was said of the claim; look at it first", Lasts::UntilKey);
            }
        }
    }

    /// The question about the claim that waits, if the last frame showed it and no word on it is on its way.
    fn claim_seen(&self) -> Option<Digest> {
        let is_sent = |claim: &Digest| {
            self.sent.iter().any(|sent| matches!(&sent.command, Command::Confirm { claim: of, .. } if of == claim))
        };
        self.run.claim_digest().filter(|claim| self.seen.claim.as_ref() == Some(claim) && !is_sent(claim))
    }

    /// A question that is another than before has the place of what was said before.
    pub(crate) fn make_room_for_claim(&mut self, before: Option<&Digest>) {
        if self.run.claim_digest().filter(|claim| Some(claim) != before).is_some() {
            self.notice = None;
        }
    }
}
