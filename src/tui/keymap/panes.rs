//! Keys that work in panes.

use crate::tui::action::Action;
use crate::tui::keymap::Binding;
use crate::tui::keymap::chord::letter;
use crate::tui::keymap::place::Place;
use crate::tui::keymap::row;

/// The rows, place by place.
pub const ROWS: &[Binding] = &[
    row(Place::Pane, &[letter('z')], Action::Zoom, "zoom", "this pane alone, or all of them again"),
    row(
        Place::Pane,
        &[letter('+')],
        Action::AskRaise,
        "raise",
        "raise a limit; resumes the run if that is why it is parked",
    ),
    row(Place::Pane, &[letter('P')], Action::Pause, "pause", "pause the run after the running call"),
    row(Place::Pane, &[letter('I')], Action::PauseLater, "", "pause the run at the end of this iteration"),
    row(
        Place::Pane,
        &[letter('R')],
        Action::Resume,
        "resume",
        "resume the run; take up again one that failed or was cancelled",
    ),
    row(
        Place::Pane,
        &[letter('B')],
        Action::AskBack,
        "",
        "go back to the end of an iteration; shows first what that does not undo",
    ),
    row(
        Place::Pane,
        &[letter('F')],
        Action::AskFork,
        "",
        "branch off into a new run after an iteration; shows first what that does not undo",
    ),
    row(Place::Pane, &[letter('N')], Action::GrantReplans, "new replans", "resume a stalled run with new replans"),
    row(Place::Pane, &[letter('Y')], Action::ConfirmClaim, "claim right", "where a check asks you: yes"),
    row(Place::Pane, &[letter('W')], Action::RefuseClaim, "claim wrong", "where a check asks you: no, and why"),
    row(Place::Pane, &[letter('X')], Action::AskCancel, "cancel", "cancel the run; asks first"),
    row(Place::Pane, &[letter('T')], Action::AskTrust, "trust", "say how much the run does unasked; the word is typed"),
    row(Place::Plan, &[letter('e')], Action::AskPlan, "edit", "change the plan, in words; the agent is told"),
    row(
        Place::Activity,
        &[letter('v')],
        Action::View,
        "whole",
        "the whole of the iteration that the pane shows first, or last while it follows",
    ),
];
