//! What keys do in dialogs, and to a call, an outcome or a claim that waits. `act.rs` finds out which it is.

use crate::domain::approval::Decision;
use crate::domain::approval::Resolution;
use crate::domain::budget::Axis;
use crate::domain::command::Cancel;
use crate::domain::command::Command;
use crate::domain::id::CallId;
use crate::domain::limits;
use crate::domain::pricing;
use crate::domain::status::ParkReason;
use crate::domain::status::Status;
use crate::domain::text::counted;
use crate::domain::tool::Digest;
use crate::policy::plan_edit;
use crate::policy::spending::needed;
use crate::tui::action::Action;
use crate::tui::action::Choice;
use crate::tui::app::App;
use crate::tui::app::Out;
use crate::tui::composer::Composer;
use crate::tui::guard::Cut;
use crate::tui::guard::Held;
use crate::tui::keymap;
use crate::tui::keymap::chord::Chord;
use crate::tui::leave::trusted;
use crate::tui::lineage::sure;
use crate::tui::notice::Lasts;
use crate::tui::popup::Asks;
use crate::tui::popup::Popup;
use crate::tui::popup::new_limit;
use crate::tui::popup::proposal;
use crate::tui::theme::Role;
use crossterm::event::KeyEvent;
use crossterm::event::KeyEventKind;

/// What a dialog asks for, when what is written in it fits.
enum Requested {
    /// A command, and one that is sent when it was accepted.
    Command(Command, Option<Command>),
    /// A step out of the run as it stands.
    Step(Out),
}

/// Why what is written does not fit, and how that is shown.
pub(crate) type Unfit = (String, Role);

impl App {
    pub(crate) fn ask_raise(&mut self) {
        if self.run.status == Status::Parked(ParkReason::PriceUnknown) {
            return self.open(Popup::Words { asks: Asks::Price, line: Composer::default() });
        }
        let axis = match &self.run.status {
            Status::Parked(ParkReason::Budget(axis)) => *axis,
            Status::Parked(_)
            | Status::Queued
            | Status::Running
            | Status::Completed(_)
            | Status::Failed(_)
            | Status::Cancelled => Axis::Cost,
        };
        let line = Composer::suggesting(&proposal(axis, &self.run.pool, needed(&self.run, axis)));
        self.open(Popup::Raise { axis, line });
    }

    pub(crate) fn turn_axis(&mut self, steps: usize) {
        if let Some(Popup::Raise { axis, line }) = self.popups.last_mut() {
            let place = Axis::ALL.iter().position(|one| one == axis).unwrap_or(0);
            *axis = Axis::ALL.iter().cycle().nth(place + steps).copied().unwrap_or(Axis::Cost);
            *line = Composer::suggesting(&proposal(*axis, &self.run.pool, needed(&self.run, *axis)));
            self.notice = None;
        }
    }

    /// Sends what the dialog on top asks for. What does not fit is said, and it stays as it is.
    pub(crate) fn submit_dialog(&mut self) -> Vec<Out> {
        if self.typed_ms.is_some_and(|typed_ms| self.now.ms < typed_ms.saturating_add(limits::KEY_ALONE.0)) {
            let enter = keymap::key_of(Action::Submit);
            let why =
                format!("{enter} was dropped: it came together with other keys, as in pasted text; press it again");
            self.say_for(why, Role::Warning, Lasts::WithDialog);
            return Vec::new();
        }
        if let Some(unseen) = self.unseen() {
            self.say_for(unseen, Role::Warning, Lasts::WithDialog);
            return Vec::new();
        }
        let requested = match self.popups.last() {
            Some(Popup::Menu(_)) => return self.choose(),
            Some(Popup::Words { asks, line }) => self.requested(asks, line),
            Some(Popup::Raise { axis, line }) => self.new_limit(*axis, line),
            Some(Popup::Help { .. } | Popup::Whole { .. } | Popup::Cancel) | None => return Vec::new(),
        };
        match requested {
            Ok(Requested::Command(command, then)) => {
                self.guard.decided(self.now.ms);
                self.ask(command, then)
            }
            Ok(Requested::Step(out)) => vec![out],
            Err((why, role)) => {
                self.say_for(why, role, Lasts::WithDialog);
                Vec::new()
            }
        }
    }

    /// That not all of the changed arguments is on the screen, the first time that it is so for what is written: allowing
    /// is for what was seen.
    fn unseen(&mut self) -> Option<String> {
        let Some(Popup::Words { asks: Asks::Edit(..), line }) = self.popups.last() else { return None };
        let text = line.text();
        if self.seen.hidden_rows == 0 || self.asked_unseen.as_ref() == Some(&text) {
            return None;
        }
        self.asked_unseen = Some(text);
        let rows = counted(self.seen.hidden_rows, "row");
        let enter = keymap::key_of(Action::Submit);
        Some(format!("{rows} of it had no room on the screen: the arrows go there; {enter} again allows it as it is"))
    }

    fn requested(&self, asks: &Asks, line: &Composer) -> Result<Requested, Unfit> {
        let text = line.text().trim().to_string();
        let warned = |why| (why, Role::Warning);
        let command = match asks {
            Asks::Plan => Command::EditPlan(plan_edit::read(&text).map_err(warned)?),
            Asks::Edit(call, digest) => self.changed(*call, digest, text)?,
            Asks::Code(call, digest, choice) => self.coded(*call, digest, *choice, &text)?,
            Asks::Trust => trusted(&text)?,
            Asks::Rule(call, digest) => self.ruled(*call, digest, &text)?,
            Asks::Iteration(kind) => return self.step_to(*kind, &text).map(Requested::Step).map_err(warned),
            Asks::Sure(doubt) => return sure(doubt, &text).map(Requested::Step).map_err(warned),
            Asks::Price => {
                let price = pricing::parse(&text).map_err(warned)?;
                return Ok(Requested::Command(Command::Price { price }, Some(Command::Resume)));
            }
            Asks::Deny(call, digest) => {
                Command::Decide { call: *call, digest: digest.clone(), decision: Decision::Deny(text) }
            }
            Asks::WrongClaim(claim) => Command::Confirm { claim: claim.clone(), confirmed: false, text },
            Asks::Happened(call) => Command::Resolve { call: *call, resolution: Resolution::Happened(text) },
        };
        Ok(Requested::Command(command, None))
    }

    fn new_limit(&self, axis: Axis, line: &Composer) -> Result<Requested, Unfit> {
        let limit = new_limit(axis, &line.text(), &self.run.pool, self.now.at).map_err(|why| (why, Role::Bad))?;
        let is_why = self.run.status == Status::Parked(ParkReason::Budget(axis));
        Ok(Requested::Command(Command::Raise { axis, limit }, is_why.then_some(Command::Resume)))
    }

    /// Sends a request of the dialog on top, which stays open until the answer is there: a refusal is read where what
    /// was refused still stands, and what is typed meanwhile goes nowhere else.
    pub(crate) fn ask(&mut self, command: Command, then: Option<Command>) -> Vec<Out> {
        if self.asking.is_some() {
            self.say("that is sent already; its record has not come yet", Role::Dim);
            return Vec::new();
        }
        let outs = self.submit(command, then);
        self.asking = self.sent.last().map(|sent| sent.ticket);
        outs
    }

    /// Whether the dialog on top waits for the answer to what it sent.
    pub fn is_asking(&self) -> bool {
        self.asking.is_some()
    }

    /// The request of the dialog on top is recorded: it has done its work.
    pub(crate) fn answered(&mut self) {
        // Its help may be open above it.
        self.popups.retain(|popup| !matches!(popup, Popup::Help { .. }));
        self.close_dialog();
        self.guard.cut_off(Cut::Closed, self.now.ms);
    }

    /// Closes what is on top. After a dialog that letters were typed for, a deciding key asks once more.
    pub(crate) fn close_dialog(&mut self) {
        // What was said was about what was open, or about what the help is open over.
        let over = self.notice.take().filter(|notice| notice.lasts == Lasts::WithDialog);
        // Nor is what was seen of it where the one below stands.
        self.seen.popup = None;
        match self.popups.pop() {
            Some(Popup::Words { .. } | Popup::Raise { .. } | Popup::Cancel | Popup::Menu(_)) => {
                self.asking = None;
                self.guard.doubt();
            }
            Some(Popup::Help { .. }) => self.notice = over,
            Some(Popup::Whole { .. }) | None => {}
        }
    }

    pub(crate) fn cancel(&mut self, cancel: Cancel) -> Vec<Out> {
        if !self.guard.is_rested(self.now.ms) {
            self.guard.disturb(self.now.ms);
            let text = "too early: nothing was cancelled; wait half a second after the last key";
            self.explain(text, Lasts::UntilKey);
            return Vec::new();
        }
        self.ask(Command::Cancel(cancel), None)
    }

    fn checked(&self, choice: Choice, call: CallId, digest: Option<&Digest>) -> Result<(), Held> {
        if choice.lets_run() { self.guard.check_allowing(call, digest) } else { self.guard.check(call, digest) }
    }

    /// Whether a key would count now, as far as that needs rest.
    pub(crate) fn is_at_rest_for(&self, action: Action) -> bool {
        match (action, self.item()) {
            (Action::Decide(choice), Some(item)) => self.checked(choice, item.call, item.digest.as_ref()).is_ok(),
            (action, _) => !action.settles() || self.guard.is_rested(self.now.ms),
        }
    }

    /// A key that decides: it counts only about the item that the last frame showed, at rest and armed.
    pub(crate) fn decide(&mut self, choice: Choice, key: &KeyEvent) -> Vec<Out> {
        let Some((call, digest)) = self.item().map(|item| (item.call, item.digest.clone())) else {
            return Vec::new();
        };
        if self.is_sent(call) {
            self.explain("that is sent already; its record has not come yet", Lasts::UntilKeyOrCall(call));
            return Vec::new();
        }
        let held = match key.kind {
            KeyEventKind::Press => self.checked(choice, call, digest.as_ref()),
            KeyEventKind::Repeat | KeyEventKind::Release => Err(Held::Early),
        };
        // What only opens a field decides nothing yet, so it need not be pressed again.
        let opens = choice.opens_dialog() || self.needs_code(call, choice);
        let held = held.and_then(|()| if opens { Ok(()) } else { self.guard.confirm(choice) });
        match (held, digest) {
            (Ok(()), Some(digest)) => {
                let until_ms = self.now.ms.saturating_add(limits::KEY_GUARD_AFTER_DECISION.0);
                self.decided_by = Some((key.code, until_ms));
                self.settle(choice, call, digest)
            }
            (Err(held), _) => {
                self.guard.disturb(self.now.ms);
                if opens {
                    self.guard.cut_off(Cut::NotOpened, self.now.ms);
                } else if held == Held::Early {
                    self.guard.early(choice);
                }
                self.hold(held, key, call);
                Vec::new()
            }
            (Ok(()), None) => Vec::new(),
        }
    }

    pub(crate) fn hold(&mut self, held: Held, key: &KeyEvent, call: CallId) {
        let name = Chord::of(key).name();
        let text = match held {
            Held::Early => {
                let rest = match self.guard.needs() == limits::KEY_GUARD {
                    true => "half a second",
                    false => "0.8 seconds, since something was just sent",
                };
                format!("{name} came too early and was dropped: the call must rest for {rest}")
            }
            Held::Unread => {
                let end = keymap::key_of(Action::Bottom);
                format!("{name} was dropped: the end of the call was not on the screen yet ({end} goes there)")
            }
            Held::Doubtful => {
                format!("{name} may not have been meant for this call: press {name} again, and it decides")
            }
        };
        self.explain(text, Lasts::UntilKeyOrCall(call));
    }

    pub(crate) fn settle(&mut self, choice: Choice, call: CallId, digest: Digest) -> Vec<Out> {
        // A field that only opens decides nothing: once it is closed again, the call rests as it did before.
        match choice.opens_dialog() || self.needs_code(call, choice) {
            true => self.guard.disturb(self.now.ms),
            false => self.guard.decided(self.now.ms),
        }
        let ask = |asks| Popup::Words { asks, line: Composer::default() };
        if self.needs_code(call, choice) {
            self.open(ask(Asks::Code(call, digest, choice)));
            return Vec::new();
        }
        let command = match choice {
            Choice::AllowOnce => Command::Decide { call, digest, decision: Decision::AllowOnce },
            Choice::AllowRun => Command::Decide { call, digest, decision: Decision::AllowRun },
            Choice::AllowTool => Command::Decide { call, digest, decision: Decision::AllowTool },
            Choice::AllowUnboxed => Command::Decide { call, digest, decision: Decision::AllowUnboxed },
            Choice::AllowList => return self.allow_list(),
            Choice::Edit => {
                self.ask_edit(call, digest);
                return Vec::new();
            }
            Choice::AllowRule => {
                self.ask_rule(call, digest);
                return Vec::new();
            }
            Choice::Deny => Command::Decide { call, digest, decision: Decision::Deny(String::new()) },
            Choice::DenyWithWords => {
                self.open(ask(Asks::Deny(call, digest)));
                return Vec::new();
            }
            Choice::Happened => {
                self.open(ask(Asks::Happened(call)));
                return Vec::new();
            }
            Choice::NotHappened => Command::Resolve { call, resolution: Resolution::NotHappened },
            Choice::RunAgain => Command::Resolve { call, resolution: Resolution::RunAgain },
            Choice::Skip => Command::Resolve { call, resolution: Resolution::Skip },
        };
        self.submit(command, None)
    }
}
