//! The one table of keys. Dispatch, footer, help and `docs/KEYS.md` are drawn from it; a key is written nowhere else.
//!
//! What edits text (arrows, Home, End, deleting words) is the text field's own and not listed.

use crossterm::event::KeyCode;
use crossterm::event::KeyEvent;
use crossterm::event::KeyModifiers;

use crate::tui::action::Action;
use crate::tui::action::Choice;

/// Where a key works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Everywhere.
    Anywhere,
    /// On the screen of a run, with nothing open above it.
    Screen,
    /// In the text field for the agent.
    Composer,
    /// Wherever something moves: panes, full views, help.
    Moving,
    /// In a pane of the run's screen.
    Pane,
    /// In the plan.
    Plan,
    /// In the activity.
    Activity,
    /// On a call that waits for a decision.
    Decision,
    /// On a call whose outcome is unknown.
    Outcome,
    /// On a question of the model.
    Question,
    /// In a line of words that is asked for.
    Words,
    /// In the changed arguments of a call.
    Edit,
    /// In a line that something is to be done with: a code, a mode, a price, a change, a number, a yes.
    Entry,
    /// In the dialog that raises a limit.
    Raise,
    /// In the dialog that cancels a run.
    Cancel,
    /// In the list of runs.
    Runs,
    /// In the text field of the list of runs.
    Goal,
}

impl Place {
    /// All places, in the order in which help and documentation name them.
    pub const ALL: [Place; 17] = [
        Place::Anywhere,
        Place::Screen,
        Place::Composer,
        Place::Moving,
        Place::Pane,
        Place::Plan,
        Place::Activity,
        Place::Decision,
        Place::Outcome,
        Place::Question,
        Place::Words,
        Place::Edit,
        Place::Entry,
        Place::Raise,
        Place::Cancel,
        Place::Runs,
        Place::Goal,
    ];

    /// The place in words.
    pub fn phrase(self) -> &'static str {
        match self {
            Place::Anywhere => "anywhere",
            Place::Screen => "on the screen of a run",
            Place::Composer => "in the composer",
            Place::Moving => "in lists and views",
            Place::Pane => "in any pane",
            Place::Plan => "in the plan",
            Place::Activity => "in the activity",
            Place::Decision => "on a call that waits for a decision",
            Place::Outcome => "on a call whose outcome is unknown",
            Place::Question => "on a question",
            Place::Words => "where words are asked for",
            Place::Edit => "changing the arguments of a call",
            Place::Entry => "where a code, a mode, a price, a change of the plan, an iteration or a yes is asked for",
            Place::Raise => "raising a limit",
            Place::Cancel => "cancelling a run",
            Place::Runs => "in the list of runs",
            Place::Goal => "writing a new goal",
        }
    }
}

/// A key with its modifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chord {
    code: KeyCode,
    modifiers: KeyModifiers,
}

impl Chord {
    /// The chord of a key event. Shift is part of the character already.
    pub fn of(key: &KeyEvent) -> Chord {
        let kept = key.modifiers & (KeyModifiers::CONTROL | KeyModifiers::ALT | KeyModifiers::SHIFT);
        let modifiers = match key.code {
            KeyCode::Char(_) | KeyCode::BackTab => kept - KeyModifiers::SHIFT,
            _ => kept,
        };
        Chord { code: key.code, modifiers }
    }

    /// The chord as documentation names it: `Ctrl-G`.
    pub fn name(self) -> String {
        self.write("Ctrl-")
    }

    /// The chord as the footer names it: `^G`.
    pub fn short(self) -> String {
        self.write("^")
    }

    fn write(self, control: &str) -> String {
        let key = match self.code {
            KeyCode::Char(one) if self.modifiers.is_empty() => one.to_string(),
            KeyCode::Char(one) => one.to_uppercase().to_string(),
            KeyCode::F(number) => format!("F{number}"),
            KeyCode::BackTab => "Shift-Tab".to_string(),
            KeyCode::PageUp => "PgUp".to_string(),
            KeyCode::PageDown => "PgDn".to_string(),
            KeyCode::Up => "↑".to_string(),
            KeyCode::Down => "↓".to_string(),
            other => other.to_string(),
        };
        let with = |modifier, word| if self.modifiers.contains(modifier) { word } else { "" };
        let control = with(KeyModifiers::CONTROL, control);
        format!("{control}{}{}{key}", with(KeyModifiers::ALT, "Alt-"), with(KeyModifiers::SHIFT, "Shift-"))
    }
}

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

const fn key(code: KeyCode) -> Chord {
    Chord { code, modifiers: KeyModifiers::NONE }
}

const fn letter(one: char) -> Chord {
    key(KeyCode::Char(one))
}

const fn control(one: char) -> Chord {
    Chord { code: KeyCode::Char(one), modifiers: KeyModifiers::CONTROL }
}

const fn alt(code: KeyCode) -> Chord {
    Chord { code, modifiers: KeyModifiers::ALT }
}

const fn shift(code: KeyCode) -> Chord {
    Chord { code, modifiers: KeyModifiers::SHIFT }
}

const fn row(place: Place, keys: &'static [Chord], action: Action, label: &'static str, help: &'static str) -> Binding {
    Binding { place, keys, action, label, help }
}

/// Whether a key is a letter or another sign that is written.
pub(crate) fn is_letter(key: &KeyEvent) -> bool {
    matches!(key.code, KeyCode::Char(_)) && !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT)
}

/// The table.
pub const TABLE: &[Binding] = &[
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
        &[control('d')],
        Action::Leave,
        "leave",
        "leave, while the composer is empty: the run is parked, the command that resumes it is printed",
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
        Place::Screen,
        &[key(KeyCode::F(3))],
        Action::Withdraw,
        "take back",
        "take back what you queued last and the agent was not told yet",
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
    row(Place::Decision, &[letter('y')], Action::Decide(Choice::AllowOnce), "once", "allow this call, once"),
    row(
        Place::Decision,
        &[letter('a')],
        Action::Decide(Choice::AllowRun),
        "this run",
        "allow this call and any with the same tool and the same arguments until the run ends",
    ),
    row(
        Place::Decision,
        &[letter('n')],
        Action::Decide(Choice::Deny),
        "deny",
        "deny this call, and unasked any with the same tool and the same arguments until the run ends",
    ),
    row(
        Place::Decision,
        &[letter('d')],
        Action::Decide(Choice::DenyWithWords),
        "deny + why",
        "the same, with words that reach the model",
    ),
    row(Place::Decision, &[letter('v')], Action::View, "whole", "the whole call, with sizes and line numbers"),
    row(
        Place::Decision,
        &[letter('e')],
        Action::Decide(Choice::Edit),
        "edit",
        "change the arguments and allow it so, once",
    ),
    row(
        Place::Decision,
        &[letter('t')],
        Action::Decide(Choice::AllowTool),
        "tool",
        "allow this call and every other one of its tool, waiting or later, until the run ends, but what is always asked about",
    ),
    row(
        Place::Decision,
        &[letter('A')],
        Action::Decide(Choice::AllowList),
        "all seen",
        "allow all that the list marks as seen to its end; what is grave waits on",
    ),
    row(
        Place::Decision,
        &[letter('r')],
        Action::Decide(Choice::AllowRule),
        "rule",
        "allow this call, and by a standing rule every one of the same words, also in other runs; how far is typed",
    ),
    row(
        Place::Decision,
        &[letter('O')],
        Action::Decide(Choice::AllowUnboxed),
        "unboxed",
        "allow this call, once, to run outside of the box with your full rights; its code is typed",
    ),
    row(
        Place::Outcome,
        &[letter('h')],
        Action::Decide(Choice::Happened),
        "happened",
        "it happened; what came of it can be told",
    ),
    row(Place::Outcome, &[letter('u')], Action::Decide(Choice::NotHappened), "did not", "it did not happen"),
    row(
        Place::Outcome,
        &[letter('r')],
        Action::Decide(Choice::RunAgain),
        "rerun",
        "run it again, at once: this key is your leave; it asks anew only if what it would touch has changed",
    ),
    row(Place::Outcome, &[letter('s')], Action::Decide(Choice::Skip), "skip", "go on without knowing"),
    row(Place::Outcome, &[letter('v')], Action::View, "whole", "the whole call, with sizes and line numbers"),
    row(Place::Question, &[key(KeyCode::Enter)], Action::WriteAnswer, "answer", "write the answer in the composer"),
    row(Place::Question, &[letter('v')], Action::View, "whole", "the whole question"),
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

/// What a key does, asked place by place.
pub fn find(places: &[Place], event: &KeyEvent) -> Option<Action> {
    let chord = Chord::of(event);
    let at = |place: &Place| TABLE.iter().find(|row| row.place == *place && row.keys.contains(&chord));
    places.iter().find_map(at).map(|row| row.action)
}

/// The rows of a place.
pub fn rows(place: Place) -> impl Iterator<Item = &'static Binding> {
    TABLE.iter().filter(move |row| row.place == place)
}

/// The first key of an action, as the footer names it; empty when the table has none.
pub fn key_of(action: Action) -> String {
    let row = TABLE.iter().find(|row| row.action == action);
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
         Deciding keys count only after the call has been still on the screen for half a second, and allowing only \
         after its last line stood there for as long (docs/SAFETY.md §9).\n\n\
         A dialog stays open until its request is recorded; one that is refused keeps what was typed and says why. \
         After a dialog that takes letters, which are all but the help and the whole of something (`v`), the first key that \
         would decide about a call asks, whether or not any were typed: the same key, \
         pressed again, decides; so it does after letters that were dropped. One that only opens a field, as `y` does for a grave call, opens it at once. A key that \
         goes to the pane (Ctrl-G, Alt-3, Tab) makes the next one count at once. Letters that follow within half a second \
         on a dialog that closed by itself or did not open are dropped, and so is the key of a field, pressed once more.\n\n\
         A new approval never takes the keys. When the last call that waited is decided and nothing waits any more, they \
         are in the composer again, and the key that decided writes nothing there for 800 ms; Ctrl-G, Alt-3 or \
         Tab goes to what waits next. While several wait, they stay. While \
         they are in a pane, the row of the composer says in which, and that Esc comes back. A letter that means nothing \
         in a pane does nothing, and neither do those that follow it within half a second; why stays on the screen until \
         the next key.\n\n\
         The last row of the screen and the help (F1) name only keys that can do something as the run stands; any other \
         says why it does nothing.\n",
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
        &[Place::Runs, Place::Moving, Place::Anywhere],
        &[Place::Goal, Place::Anywhere],
    ];

    #[test]
    fn no_key_means_two_things() {
        for places in TOGETHER {
            let rows = TABLE.iter().filter(|row| places.contains(&row.place));
            let chords: Vec<Chord> = rows.flat_map(|row| row.keys.iter().copied()).collect();
            for (place, chord) in chords.iter().enumerate() {
                assert!(!chords[..place].contains(chord), "{} in {places:?}", chord.name());
            }
        }
    }

    #[test]
    fn enter_space_and_digits_decide_nothing() {
        let deciding = [Place::Decision, Place::Outcome, Place::Cancel];
        for row in TABLE.iter().filter(|row| deciding.contains(&row.place)) {
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
