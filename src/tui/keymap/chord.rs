//! A key with its modifiers: as terminals send it, and as it is named.

use crossterm::event::KeyCode;
use crossterm::event::KeyEvent;
use crossterm::event::KeyModifiers;

/// A key with its modifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chord {
    pub(super) code: KeyCode,
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

/// A key alone.
pub const fn key(code: KeyCode) -> Chord {
    Chord { code, modifiers: KeyModifiers::NONE }
}

/// A letter or another sign.
pub const fn letter(one: char) -> Chord {
    key(KeyCode::Char(one))
}

/// A letter with Ctrl.
pub const fn control(one: char) -> Chord {
    Chord { code: KeyCode::Char(one), modifiers: KeyModifiers::CONTROL }
}

/// A key with Alt.
pub const fn alt(code: KeyCode) -> Chord {
    Chord { code, modifiers: KeyModifiers::ALT }
}

/// A key with Shift.
pub const fn shift(code: KeyCode) -> Chord {
    Chord { code, modifiers: KeyModifiers::SHIFT }
}
