//! The one table of keys. Dispatch, footer, help and `docs/KEYS.md` are drawn from it; a key is written nowhere
//! else. Its rows are in the files of `keymap/`.
//!
//! What edits text (arrows, Home, End, deleting words) is the text field's own and not listed.

pub mod chord;
mod deciding;
mod dialogs;
mod panes;
pub mod place;
mod runs;
mod screen;

use crossterm::event::KeyCode;
use crossterm::event::KeyEvent;
use crossterm::event::KeyModifiers;

use crate::tui::action::Action;
use crate::tui::keymap::chord::Chord;
use crate::tui::keymap::place::Place;

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Binding {
    /// Where.
    pub place: Place,
    /// Which keys, the one to show first.
    pub keys: &'static [Chord],
    /// What it does.
    pub action: Action,
    /// One or two words for the footer; empty where the footer does not name it.
    pub label: &'static str,
    /// What it does, for help and documentation.
    pub help: &'static str,
}

const fn row(place: Place, keys: &'static [Chord], action: Action, label: &'static str, help: &'static str) -> Binding {
    Binding { place, keys, action, label, help }
}

/// Whether a key is a letter or another sign that is written.
pub(crate) fn is_letter(key: &KeyEvent) -> bool {
    matches!(key.code, KeyCode::Char(_)) && !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT)
}

/// The table.
const TABLE: [&[Binding]; 5] = [screen::ROWS, panes::ROWS, deciding::ROWS, dialogs::ROWS, runs::ROWS];

/// All rows.
pub fn table() -> impl Iterator<Item = &'static Binding> {
    TABLE.into_iter().flatten()
}

/// What a key does, asked place by place.
pub fn find(places: &[Place], event: &KeyEvent) -> Option<Action> {
    let chord = Chord::of(event);
    let at = |place: &Place| table().find(|row| row.place == *place && row.keys.contains(&chord));
    places.iter().find_map(at).map(|row| row.action)
}

/// The rows of a place.
pub fn rows(place: Place) -> impl Iterator<Item = &'static Binding> {
    table().filter(move |row| row.place == place)
}

/// The first key of an action, as the footer names it; empty when the table has none.
pub fn key_of(action: Action) -> String {
    let row = table().find(|row| row.action == action);
    row.and_then(|row| row.keys.first()).map(|chord| chord.short()).unwrap_or_default()
}

/// The first key of an action in a place, as the footer names it; empty when there is none.
pub fn key_in(place: Place, action: Action) -> String {
    let row = rows(place).find(|row| row.action == action);
    row.and_then(|row| row.keys.first()).map(|chord| chord.short()).unwrap_or_default()
}

/// `docs/KEYS.md`.
pub fn document() -> String {
    let mut out = String::from(
        "# Keys\n\nWritten from the table in `src/tui/keymap.rs` (`UPDATE_DOCS=1 cargo test keys_are_documented`).\n\
         Deciding keys count only after the call has been still on the screen for half a second (0.8 seconds \
         after something was sent), and allowing only after its last line stood there for as long (docs/SAFETY.md §9).\n\n\
         A dialog stays open until its request is recorded; one that is refused keeps what was typed and says why. \
         After a dialog that takes letters, which are all but the help and the whole of something (`v`), the first key that \
         would decide about a call asks, whether or not any were typed: the same key, \
         pressed again, decides; so it does after letters that were dropped. One that only opens a field, as `y` does for a grave call, opens it at once. A key that \
         goes to the pane (Ctrl-G, Alt-3, Tab) makes the next one count at once. Letters that follow within half a second \
         on a dialog that closed by itself or did not open are dropped, and so is the key of a field, pressed once more.\n\n\
         A new approval never takes the keys. When the last call that waited is decided and nothing waits any more, they \
         are in the composer again, and the key that decided writes nothing there for 800 ms; Ctrl-G, Alt-3 or \
         Tab goes to what waits next. While several wait, they stay, and so they do while a call that you changed (`e`) is \
         looked at again, until it runs, or is asked about once more. While \
         they are in a pane, the row of the composer says in which, and that Esc comes back. A letter that means nothing \
         in a pane does nothing, and neither do those that follow it within half a second; why stays on the screen until \
         the next key.\n\n\
         The last row of the screen and the help (F1) name only keys that can do something as the run stands; any other \
         says why it does nothing.\n\n\
         The menu (Ctrl-P, with nothing open) has what the keys here ask for, and from the composer what those of any pane do, \
         as rows: words that are typed find them, also with letters left out, and Enter does the chosen one as its key would. \
         What can do nothing now stands there with the reason. What decides about a call or a claim is named and never \
         done from there: the menu covers it, and Enter decides nothing. The menu takes letters, so the first deciding key after it asks. In a text field, Ctrl-P is not \"up\".\n",
    );
    for place in Place::ALL {
        let mut heading = place.phrase().to_string();
        heading[..1].make_ascii_uppercase();
        out.push_str(&format!("\n## {heading}\n\n| key | does |\n|---|---|\n"));
        for row in rows(place) {
            let keys: Vec<String> = row.keys.iter().map(|chord| chord.name()).collect();
            out.push_str(&format!("| {} | {} |\n", keys.join(", "), row.help));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    /// Places that are asked one after the other for the same key.
    const TOGETHER: &[&[Place]] = &[
        &[Place::Composer, Place::Screen, Place::Anywhere],
        &[Place::Plan, Place::Moving, Place::Pane, Place::Screen, Place::Anywhere],
        &[Place::Activity, Place::Moving, Place::Pane, Place::Screen, Place::Anywhere],
        &[Place::Decision, Place::Moving, Place::Pane, Place::Screen, Place::Anywhere],
        &[Place::Outcome, Place::Moving, Place::Pane, Place::Screen, Place::Anywhere],
        &[Place::Question, Place::Moving, Place::Pane, Place::Screen, Place::Anywhere],
        &[Place::Words, Place::Anywhere],
        &[Place::Edit, Place::Anywhere],
        &[Place::Entry, Place::Anywhere],
        &[Place::Raise, Place::Anywhere],
        &[Place::Cancel, Place::Anywhere],
        &[Place::Menu, Place::Anywhere],
        &[Place::Runs, Place::Moving, Place::Anywhere],
        &[Place::Goal, Place::Anywhere],
    ];

    #[test]
    fn no_key_means_two_things() {
        for places in TOGETHER {
            let rows = table().filter(|row| places.contains(&row.place));
            let chords: Vec<Chord> = rows.flat_map(|row| row.keys.iter().copied()).collect();
            for (place, chord) in chords.iter().enumerate() {
                assert!(!chords[..place].contains(chord), "{} in {places:?}", chord.name());
            }
        }
    }

    #[test]
    fn enter_space_and_digits_decide_nothing() {
        let deciding = [Place::Decision, Place::Outcome, Place::Cancel];
        for row in table().filter(|row| deciding.contains(&row.place)) {
            for chord in row.keys {
                assert!(matches!(chord.code, KeyCode::Char(one) if one.is_ascii_alphabetic()), "{}", chord.name());
            }
        }
    }

    #[test]
    fn keys_are_found_as_terminals_send_them() {
        let send = |code, modifiers| find(TOGETHER[1], &KeyEvent::new(code, modifiers));
        assert_eq!(send(KeyCode::Char('P'), KeyModifiers::SHIFT), Some(Action::Pause));
        assert_eq!(send(KeyCode::Char('?'), KeyModifiers::SHIFT), Some(Action::Help));
        assert_eq!(send(KeyCode::BackTab, KeyModifiers::SHIFT), Some(Action::PreviousPane));
        assert_eq!(send(KeyCode::Char('1'), KeyModifiers::ALT), Some(Action::ShowPlan));
        assert_eq!(send(KeyCode::Char('p'), KeyModifiers::NONE), None);
        assert_eq!(send(KeyCode::Char('y'), KeyModifiers::CONTROL), None);
    }

    #[test]
    fn keys_are_documented() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/KEYS.md");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, document()).unwrap();
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), document(), "run with UPDATE_DOCS=1");
    }
}
