//! Keys in the list of runs, and in the field for a new goal.

use crossterm::event::KeyCode;

use crate::tui::action::Action;
use crate::tui::keymap::Binding;
use crate::tui::keymap::chord::alt;
use crate::tui::keymap::chord::control;
use crate::tui::keymap::chord::key;
use crate::tui::keymap::chord::letter;
use crate::tui::keymap::chord::shift;
use crate::tui::keymap::place::Place;
use crate::tui::keymap::row;

/// The rows, place by place.
pub const ROWS: &[Binding] = &[
    row(
        Place::Runs,
        &[key(KeyCode::Enter)],
        Action::OpenRun,
        "open",
        "open the run; a goal that is half written stays",
    ),
    row(Place::Runs, &[letter('n')], Action::NewGoal, "new goal", "write the goal of a new run"),
    row(Place::Runs, &[letter('q'), control('d')], Action::LeaveList, "leave", "leave, while no goal is half written"),
    row(Place::Goal, &[key(KeyCode::Enter)], Action::Send, "start", "start a run with this goal"),
    row(Place::Goal, &[control('j'), shift(KeyCode::Enter), alt(KeyCode::Enter)], Action::Newline, "", "a line break"),
    row(Place::Goal, &[control('u')], Action::ClearLine, "", "clear the line from its start to the caret"),
    row(Place::Goal, &[control('d')], Action::LeaveList, "leave", "leave, while nothing is written"),
];
