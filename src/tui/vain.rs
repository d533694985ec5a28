//! Keys that can do nothing as the run stands. Help and footer leave them out, and whoever presses one is told why: what
//! a command would be refused for is asked of the machine, which is the only judge of it.

use crate::domain::approval::Decision;
use crate::domain::command::Cancel;
use crate::domain::command::Command;
use crate::domain::command::Pause;
use crate::domain::command::Refusal;
use crate::domain::id::CallId;
use crate::domain::id::ClientId;
use crate::domain::status::Status;
use crate::domain::time::Now;
use crate::domain::trust::Trust;
use crate::machine::Input;
use crate::machine::respond::respond;
use crate::policy::permission;
use crate::tui::action::Action;
use crate::tui::action::Choice;
use crate::tui::app::App;
use crate::tui::app::Focus;
use crate::tui::keymap;
use crate::tui::lineage::StepKind;
use crate::tui::lineage::ways_on;
use crate::tui::popup::Popup;
use crate::tui::waiting::Item;

/// What a key comes to, as far as that can be told before what it asks for is written.
enum Means {
    /// A command like this one.
    Command(Command),
    /// Something that only a run that has not ended takes.
    ALiveRun,
    /// A word on the claim that waits for one.
    WordOnClaim,
    /// A step out of the run as it stands.
    Step(StepKind),
    /// Words that were queued are taken back.
    Withdrawal,
    /// A standing rule of a call's words.
    Rule(CallId),
    /// Leave to run outside of the box.
    Unboxed(CallId),
    /// The whole of what the focused pane shows.
    View,
    /// Something of the screen.
    Screen,
}

impl App {
    /// Why a key can do nothing now, in a sentence; nothing when it can do something.
    pub(crate) fn in_vain(&self, action: Action) -> Option<String> {
        match self.means(action) {
            Means::Screen => None,
            Means::Step(kind) => self.no_step(kind).map(String::from),
            Means::View => {
                let is_above = matches!(self.popups.last(), None | Some(Popup::Menu(_)));
                let is_empty = self.focus == Focus::Activity && is_above && self.run.iteration.n == 0;
                is_empty.then(|| "nothing has happened yet".to_string())
            }
            Means::Rule(call) => self.no_rule(call),
            Means::Unboxed(id) => {
                let call = self.run.calls.get(&id)?;
                permission::can_leave_box(call).err().map(|why| self.too_wide(id, why))
            }
            _ if self.run.is_ended() => Some(self.ended()),
            Means::ALiveRun => None,
            Means::WordOnClaim => self.run.confirming().is_none().then(|| Refusal::NothingToConfirm.to_string()),
            Means::Withdrawal => self.last_queued().is_none().then(|| "nothing of yours waits to be told".to_string()),
            Means::Command(command) => {
                let now = Now { at: self.now.at, ..Now::default() };
                let input = Input::Command(command, ClientId("screen".to_string()));
                respond(&self.run, &input, now).err().map(|refusal| self.why_refused(&refusal))
            }
        }
    }

    /// Why something was refused, with the key that leads on where there is one.
    pub(crate) fn why_refused(&self, refusal: &Refusal) -> String {
        match refusal {
            Refusal::TooWide(call, why) => self.too_wide(*call, why),
            other => other.of(&self.run.id),
        }
    }

    /// That leave for a call is not to be had in this way, and the key by which it is.
    pub(crate) fn too_wide(&self, call: CallId, why: &str) -> String {
        let key = keymap::key_of(Action::Decide(Choice::AllowOnce));
        let code = if self.needs_code(call, Choice::AllowOnce) { ", by its code" } else { "" };
        format!("{why}; nothing was decided; {key} allows {call} once{code}")
    }

    /// That the run has ended, and the keys that lead on.
    fn ended(&self) -> String {
        let on = match &self.run.status {
            Status::Failed(_) | Status::Cancelled => ways_on(),
            Status::Completed(_) | Status::Queued | Status::Running | Status::Parked(_) => {
                format!("{} branches off from it", keymap::key_of(Action::AskFork))
            }
        };
        format!("the run has ended ({}); in a pane, {on}", self.run.status.phrase())
    }

    fn means(&self, action: Action) -> Means {
        match action {
            Action::Pause => Means::Command(Command::Pause(Pause::AfterTool)),
            Action::PauseLater => Means::Command(Command::Pause(Pause::AfterIteration)),
            Action::Resume => match &self.run.status {
                Status::Failed(_) | Status::Cancelled => Means::Screen,
                Status::Queued | Status::Running | Status::Parked(_) | Status::Completed(_) => {
                    Means::Command(Command::Resume)
                }
            },
            Action::GrantReplans => Means::Command(Command::GrantReplans),
            Action::ConfirmClaim | Action::RefuseClaim => Means::WordOnClaim,
            Action::AcceptWork => Means::Command(Command::Accept),
            Action::CloseFailed => Means::Command(Command::Close),
            Action::AskCancel | Action::CancelGently => Means::Command(Command::Cancel(Cancel::Graceful)),
            Action::CancelNow => Means::Command(Command::Cancel(Cancel::Now)),
            Action::AskTrust => Means::Command(Command::SetTrust(Trust::Plan)),
            Action::AskRaise | Action::AskPlan | Action::Send | Action::SendAndResume | Action::TurnPolicy => {
                Means::ALiveRun
            }
            Action::Withdraw => Means::Withdrawal,
            Action::Decide(Choice::AllowRule) => self.item().map_or(Means::Screen, |item| Means::Rule(item.call)),
            Action::Decide(Choice::AllowUnboxed) => self.item().map_or(Means::Screen, |item| Means::Unboxed(item.call)),
            Action::Decide(choice) => self.item().map_or(Means::Screen, |item| decides(choice, item)),
            Action::AskBack => Means::Step(StepKind::Back),
            Action::AskFork => Means::Step(StepKind::Fork),
            Action::View => Means::View,
            Action::NextPane
            | Action::PreviousPane
            | Action::ShowPlan
            | Action::ShowActivity
            | Action::ShowWaiting
            | Action::ShowSpend
            | Action::GoToWaiting
            | Action::Help
            | Action::Menu
            | Action::OpenRuns
            | Action::Close
            | Action::Stop
            | Action::Leave
            | Action::Suspend
            | Action::Redraw
            | Action::Newline
            | Action::ClearLine
            | Action::Earlier
            | Action::Later
            | Action::Down
            | Action::Up
            | Action::Top
            | Action::Bottom
            | Action::PageDown
            | Action::PageUp
            | Action::Zoom
            | Action::WriteAnswer
            | Action::Submit
            | Action::NextAxis
            | Action::PreviousAxis
            | Action::OpenRun
            | Action::NewGoal
            | Action::LeaveList => Means::Screen,
        }
    }

    /// Why the run can't be left for a step now.
    fn no_step(&self, kind: StepKind) -> Option<&'static str> {
        match (&self.run.status, kind) {
            (Status::Completed(_), StepKind::Back) => Some("a completed run is never opened again; branch off from it"),
            _ if self.run.history.is_empty() => Some("no iteration is closed yet, so there is nothing to go to"),
            (Status::Running | Status::Queued, _) => Some("the run works; pause it first"),
            (Status::Parked(_) | Status::Failed(_) | Status::Cancelled | Status::Completed(_), _) => None,
        }
    }
}

/// What a decision about a call comes to: leave that is wider than for this once is not to be had for every call.
fn decides(choice: Choice, item: &Item) -> Means {
    let Some(digest) = item.digest.clone() else { return Means::Screen };
    let decision = match choice {
        Choice::AllowRun => Decision::AllowRun,
        Choice::AllowTool => Decision::AllowTool,
        Choice::AllowOnce
        | Choice::AllowList
        | Choice::AllowRule
        | Choice::AllowUnboxed
        | Choice::Edit
        | Choice::Deny
        | Choice::DenyWithWords
        | Choice::Happened
        | Choice::NotHappened
        | Choice::RunAgain
        | Choice::Skip => return Means::Screen,
    };
    Means::Command(Command::Decide { call: item.call, digest, decision })
}
