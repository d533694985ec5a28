//! What a key can ask for. Which key asks for which is in `keymap.rs`; what is done is in `act.rs`.

use crate::domain::sandbox::Manner;

/// What a key does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Focus the next pane.
    NextPane,
    /// Focus the pane before.
    PreviousPane,
    /// Focus the plan.
    ShowPlan,
    /// Focus the activity.
    ShowActivity,
    /// Focus what waits.
    ShowWaiting,
    /// Focus the spend.
    ShowSpend,
    /// Go to what has waited longest.
    GoToWaiting,
    /// Help for the place.
    Help,
    /// The menu of what can be asked for here.
    Menu,
    /// The list of runs.
    OpenRuns,
    /// Close what is open, else back to the composer.
    Close,
    /// Clear, pause, stop, leave.
    Stop,
    /// Leave the run parked.
    Leave,
    /// Suspend to the shell.
    Suspend,
    /// Draw everything anew.
    Redraw,
    /// Send what is written.
    Send,
    /// Send what is written, and let a parked run go on.
    SendAndResume,
    /// The next choice of when the agent is told.
    TurnPolicy,
    /// Take back what was queued last.
    Withdraw,
    /// A line break in what is written.
    Newline,
    /// Clear the line up to the caret.
    ClearLine,
    /// The draft before.
    Earlier,
    /// The draft after.
    Later,
    /// One down.
    Down,
    /// One up.
    Up,
    /// To the start.
    Top,
    /// To the end.
    Bottom,
    /// A page down.
    PageDown,
    /// A page up.
    PageUp,
    /// The focused pane alone.
    Zoom,
    /// Pause the run.
    Pause,
    /// Pause the run at the end of the iteration.
    PauseLater,
    /// Ask how much the run does unasked.
    AskTrust,
    /// Resume the run.
    Resume,
    /// Resume a stalled run and grant it new replans.
    GrantReplans,
    /// Ask for the iteration to go back to.
    AskBack,
    /// Ask for the iteration to branch off after.
    AskFork,
    /// Say that the claim is right.
    ConfirmClaim,
    /// Say that the claim is wrong, and why.
    RefuseClaim,
    /// Take the work as it is.
    AcceptWork,
    /// Close the run as failed.
    CloseFailed,
    /// Ask whether to cancel the run.
    AskCancel,
    /// Open the dialog that raises a limit.
    AskRaise,
    /// Write a change of the plan.
    AskPlan,
    /// The whole of it.
    View,
    /// Decide about the call that waits; the guard has the last word.
    Decide(Choice),
    /// Write the answer.
    WriteAnswer,
    /// Take what is written in a dialog.
    Submit,
    /// The next limit.
    NextAxis,
    /// The limit before.
    PreviousAxis,
    /// Cancel, with grace.
    CancelGently,
    /// Cancel at once.
    CancelNow,
    /// Open the selected run.
    OpenRun,
    /// Write a new goal.
    NewGoal,
    /// Leave the list.
    LeaveList,
}

/// What can be decided about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Allow once.
    AllowOnce,
    /// Allow identical calls in this run.
    AllowRun,
    /// Allow the tool in this run.
    AllowTool,
    /// Allow all of the list.
    AllowList,
    /// Allow, and make a standing rule of it.
    AllowRule,
    /// Allow once, outside of the box.
    AllowUnboxed,
    /// Change the arguments and allow.
    Edit,
    /// Deny.
    Deny,
    /// Deny with words.
    DenyWithWords,
    /// It happened.
    Happened,
    /// It did not happen.
    NotHappened,
    /// Run it again.
    RunAgain,
    /// Go on without knowing.
    Skip,
}

impl Action {
    /// Whether it opens a dialog, for which more is typed.
    pub fn opens_dialog(self) -> bool {
        match self {
            Action::Decide(choice) => choice.opens_dialog(),
            Action::AskTrust
            | Action::AskBack
            | Action::AskFork
            | Action::RefuseClaim
            | Action::AskCancel
            | Action::AskRaise
            | Action::AskPlan => true,
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
            | Action::Send
            | Action::SendAndResume
            | Action::TurnPolicy
            | Action::Withdraw
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
            | Action::Pause
            | Action::PauseLater
            | Action::Resume
            | Action::GrantReplans
            | Action::ConfirmClaim
            | Action::AcceptWork
            | Action::CloseFailed
            | Action::View
            | Action::WriteAnswer
            | Action::Submit
            | Action::NextAxis
            | Action::PreviousAxis
            | Action::CancelGently
            | Action::CancelNow
            | Action::OpenRun
            | Action::NewGoal
            | Action::LeaveList => false,
        }
    }

    /// Whether the letter that asks for it does more than move, so that it counts only if no other key comes with it.
    pub fn counts_alone(self) -> bool {
        let commands = matches!(self, Action::Pause | Action::PauseLater | Action::Resume | Action::GrantReplans);
        commands || self.settles() || self.opens_dialog()
    }

    /// Whether it settles something, so that what it is about must be on the screen.
    pub fn settles(self) -> bool {
        matches!(
            self,
            Action::Decide(_)
                | Action::Submit
                | Action::CancelGently
                | Action::CancelNow
                | Action::AcceptWork
                | Action::CloseFailed
                | Action::ConfirmClaim
        )
    }
}

impl Choice {
    /// In which manner a call then uses its box, as its code is made for it.
    pub fn manner(self) -> Manner {
        if self == Choice::AllowUnboxed { Manner::Unboxed } else { Manner::Usual }
    }

    /// Whether it opens a dialog first, and decides nothing by itself.
    pub fn opens_dialog(self) -> bool {
        match self {
            Choice::AllowRule | Choice::AllowUnboxed | Choice::Edit | Choice::DenyWithWords | Choice::Happened => true,
            Choice::AllowOnce
            | Choice::AllowRun
            | Choice::AllowTool
            | Choice::AllowList
            | Choice::Deny
            | Choice::NotHappened
            | Choice::RunAgain
            | Choice::Skip => false,
        }
    }

    /// Whether it lets something run, so that the whole of it must have been seen.
    pub fn lets_run(self) -> bool {
        match self {
            Choice::AllowOnce
            | Choice::AllowRun
            | Choice::AllowTool
            | Choice::AllowRule
            | Choice::AllowUnboxed
            | Choice::AllowList
            | Choice::Edit
            | Choice::RunAgain => true,
            Choice::Deny | Choice::DenyWithWords | Choice::Happened | Choice::NotHappened | Choice::Skip => false,
        }
    }
}
