//! Keys that work everywhere, on the screen of a run, in its composer, and wherever something moves.

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
        Place::Anywhere,
        &[key(KeyCode::Esc)],
        Action::Close,
        "back",
        "take away what was refused, else close what is open, else back to the composer, or from the list of runs to the \
         run it was opened from; never leaves, never decides",
    ),
    row(
        Place::Anywhere,
        &[control('c')],
        Action::Stop,
        "pause",
        "clear the draft; then: pause after the running call; again: stop the call now; twice within a second while the run is not running: leave",
    ),
    row(
        Place::Anywhere,
        &[key(KeyCode::F(1))],
        Action::Help,
        "help",
        "help for the place where you are; once more, or Esc: back there",
    ),
    row(Place::Anywhere, &[control('z')], Action::Suspend, "", "suspend to the shell; `fg` brings all back"),
    row(Place::Anywhere, &[control('l')], Action::Redraw, "", "draw everything anew"),
    row(Place::Screen, &[key(KeyCode::Tab)], Action::NextPane, "panes", "the next pane"),
    row(Place::Screen, &[key(KeyCode::BackTab)], Action::PreviousPane, "", "the pane before"),
    row(Place::Screen, &[alt(KeyCode::Char('1'))], Action::ShowPlan, "", "the plan"),
    row(Place::Screen, &[alt(KeyCode::Char('2'))], Action::ShowActivity, "", "the activity"),
    row(Place::Screen, &[alt(KeyCode::Char('3'))], Action::ShowWaiting, "", "what waits for you"),
    row(Place::Screen, &[alt(KeyCode::Char('4'))], Action::ShowSpend, "", "the spend"),
    row(Place::Screen, &[control('g')], Action::GoToWaiting, "", "go to what has waited longest"),
    row(Place::Screen, &[key(KeyCode::F(6))], Action::OpenRuns, "runs", "the list of runs"),
    row(
        Place::Screen,
        &[control('p')],
        Action::Menu,
        "menu",
        "the menu: all that can be asked for here, found by its words and done without its key; it decides about no call",
    ),
    row(
        Place::Screen,
        &[control('d')],
        Action::Leave,
        "leave",
        "leave, while the composer is empty: the run is parked, the command that resumes it is printed",
    ),
    row(
        Place::Screen,
        &[key(KeyCode::F(3))],
        Action::Withdraw,
        "take back",
        "take back what you queued last and the agent was not told yet",
    ),
    row(Place::Composer, &[key(KeyCode::Enter)], Action::Send, "send", "send; where a question waits: answer it"),
    row(
        Place::Composer,
        &[key(KeyCode::F(5))],
        Action::SendAndResume,
        "send, resume",
        "send, and resume the run if it is parked; with nothing written: resume it with what was queued",
    ),
    row(
        Place::Composer,
        &[key(KeyCode::F(2)), control('t')],
        Action::TurnPolicy,
        "when",
        "choose when the agent is told what you write: at the next iteration; now, with the rest of the calls not run; at once, ending what runs; when the run would end",
    ),
    row(
        Place::Composer,
        &[control('j'), shift(KeyCode::Enter), alt(KeyCode::Enter)],
        Action::Newline,
        "",
        "a line break",
    ),
    row(Place::Composer, &[control('u')], Action::ClearLine, "", "clear the line from its start to the caret"),
    row(Place::Composer, &[key(KeyCode::Up)], Action::Earlier, "", "at the first line: what you sent before"),
    row(Place::Composer, &[key(KeyCode::Down)], Action::Later, "", "at the last line: what you sent after that"),
    row(Place::Composer, &[letter('?')], Action::Help, "", "the same as F1, while the composer is empty"),
    row(
        Place::Moving,
        &[letter('j'), key(KeyCode::Down)],
        Action::Down,
        "",
        "down; among several waiting calls: the next",
    ),
    row(
        Place::Moving,
        &[letter('k'), key(KeyCode::Up)],
        Action::Up,
        "",
        "up; among several waiting calls: the one before",
    ),
    row(Place::Moving, &[key(KeyCode::PageDown)], Action::PageDown, "scroll", "a page down"),
    row(Place::Moving, &[key(KeyCode::PageUp)], Action::PageUp, "", "a page up"),
    row(Place::Moving, &[letter('g'), key(KeyCode::Home)], Action::Top, "", "to the start"),
    row(
        Place::Moving,
        &[letter('G'), key(KeyCode::End)],
        Action::Bottom,
        "end",
        "to the end; the activity follows again",
    ),
    row(Place::Moving, &[letter('?')], Action::Help, "", "the same as F1"),
];
