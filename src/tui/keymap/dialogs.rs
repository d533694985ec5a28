//! Keys in what is open above the panes.

use crossterm::event::KeyCode;

use crate::tui::action::Action;
use crate::tui::keymap::Binding;
use crate::tui::keymap::chord::control;
use crate::tui::keymap::chord::key;
use crate::tui::keymap::chord::letter;
use crate::tui::keymap::place::Place;
use crate::tui::keymap::row;

/// The rows, place by place.
pub const ROWS: &[Binding] = &[
    row(Place::Words, &[key(KeyCode::Enter)], Action::Submit, "send", "send; the words may be left empty"),
    row(Place::Words, &[control('u')], Action::ClearLine, "", "clear the line from its start to the caret"),
    row(
        Place::Edit,
        &[key(KeyCode::Enter)],
        Action::Submit,
        "allows it so",
        "allow the call with these arguments, once",
    ),
    row(Place::Edit, &[control('u')], Action::ClearLine, "", "clear the line from its start to the caret"),
    row(
        Place::Entry,
        &[key(KeyCode::Enter)],
        Action::Submit,
        "takes it",
        "do with what is written what the dialog says in its last row",
    ),
    row(Place::Entry, &[control('u')], Action::ClearLine, "", "clear the line from its start to the caret"),
    row(Place::Raise, &[key(KeyCode::Down), key(KeyCode::Tab)], Action::NextAxis, "other limit", "the next limit"),
    row(Place::Raise, &[key(KeyCode::Up), key(KeyCode::BackTab)], Action::PreviousAxis, "", "the limit before"),
    row(Place::Raise, &[control('u')], Action::ClearLine, "", "clear the line from its start to the caret"),
    row(Place::Raise, &[key(KeyCode::Enter)], Action::Submit, "set", "set the limit"),
    row(
        Place::Cancel,
        &[letter('C')],
        Action::CancelGently,
        "cancel",
        "cancel; a running call with outside effects may finish first",
    ),
    row(Place::Cancel, &[letter('A')], Action::AcceptWork, "accept", "take the work of a parked run as it is"),
    row(Place::Cancel, &[letter('F')], Action::CloseFailed, "failed", "close a parked run as failed"),
    row(Place::Cancel, &[letter('K')], Action::CancelNow, "at once", "cancel and end what runs at once"),
    row(Place::Menu, &[key(KeyCode::Enter)], Action::Submit, "does it", "do what is chosen, as its key would"),
    row(Place::Menu, &[key(KeyCode::Down)], Action::Down, "next", "the next row"),
    row(Place::Menu, &[key(KeyCode::Up)], Action::Up, "", "the row before"),
    row(Place::Menu, &[key(KeyCode::PageDown)], Action::PageDown, "", "a page down"),
    row(Place::Menu, &[key(KeyCode::PageUp)], Action::PageUp, "", "a page up"),
    row(Place::Menu, &[control('u')], Action::ClearLine, "", "clear what is typed from its start to the caret"),
    row(Place::Menu, &[control('p')], Action::Close, "", "the same as Esc"),
];
