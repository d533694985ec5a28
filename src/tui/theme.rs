//! Styles by role. Colours are the sixteen of the terminal, so they fit its own theme, and never carry a meaning
//! alone: every state has a mark or a word as well.

use std::ffi::OsStr;

use ratatui::style::Color;
use ratatui::style::Modifier;
use ratatui::style::Style;

/// Which styles a terminal is given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Palette {
    /// The terminal's own sixteen colours, on its own background.
    #[default]
    Ansi,
    /// No colour at all: weight, underline and reversal only.
    Monochrome,
}

impl Palette {
    /// The palette that `NO_COLOR` and `TERM` ask for.
    pub fn of(no_color: Option<&OsStr>, term: Option<&OsStr>) -> Palette {
        let is_off = no_color.is_some_and(|value| !value.is_empty()) || term.is_some_and(|term| term == "dumb");
        if is_off { Palette::Monochrome } else { Palette::Ansi }
    }

    /// The style of a role.
    pub fn style(self, role: Role) -> Style {
        let plain = Style::new();
        match self {
            Palette::Monochrome => plain.add_modifier(weight(role)),
            Palette::Ansi => match colour(role) {
                Some(colour) => plain.fg(colour).add_modifier(weight(role)),
                None => plain.add_modifier(weight(role)),
            },
        }
    }
}

/// A style, emphasised: without any colour, so that it is seen in both palettes, and on every role.
pub fn emphasised(style: Style) -> Style {
    style.remove_modifier(Modifier::DIM).add_modifier(Modifier::BOLD | Modifier::UNDERLINED)
}

/// What a piece of text is, to the eye.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Ordinary text.
    Text,
    /// Less important: details, ages, hints.
    Dim,
    /// Names and headings.
    Strong,
    /// The frame of a pane.
    Frame,
    /// The frame of the pane that has the keys.
    Focused,
    /// What the operator is asked for.
    Attention,
    /// It worked.
    Good,
    /// It failed.
    Bad,
    /// It nears a limit, or is in doubt.
    Warning,
    /// It is under way.
    Moving,
    /// What the operator said.
    Operator,
    /// An added line.
    Added,
    /// A removed line.
    Removed,
    /// The head of a part of a diff.
    Hunk,
    /// A marker of the sanitiser.
    Marker,
    /// A letter outside ASCII in what names something.
    Foreign,
    /// A key that works now.
    Key,
    /// The selected row.
    Selected,
    /// A label that must not be overlooked.
    Label,
    /// Code, and what stands for itself.
    Code,
    /// A word that is said with weight.
    Emphasis,
}

fn colour(role: Role) -> Option<Color> {
    match role {
        Role::Text | Role::Strong | Role::Selected | Role::Emphasis => None,
        Role::Dim | Role::Frame => Some(Color::DarkGray),
        Role::Focused | Role::Key | Role::Moving | Role::Hunk | Role::Code => Some(Color::Cyan),
        Role::Attention | Role::Warning | Role::Foreign => Some(Color::Yellow),
        Role::Good | Role::Added => Some(Color::Green),
        Role::Bad | Role::Removed => Some(Color::Red),
        Role::Operator => Some(Color::Blue),
        Role::Marker | Role::Label => Some(Color::Magenta),
    }
}

fn weight(role: Role) -> Modifier {
    match role {
        Role::Text
        | Role::Frame
        | Role::Good
        | Role::Bad
        | Role::Warning
        | Role::Moving
        | Role::Operator
        | Role::Added
        | Role::Hunk
        | Role::Code => Modifier::empty(),
        Role::Removed | Role::Dim => Modifier::DIM,
        Role::Strong | Role::Focused | Role::Attention | Role::Key => Modifier::BOLD,
        Role::Marker | Role::Label | Role::Selected => Modifier::REVERSED,
        Role::Foreign => Modifier::UNDERLINED,
        Role::Emphasis => Modifier::ITALIC,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_color_is_obeyed() {
        let read = |no_color: Option<&str>, term: &str| Palette::of(no_color.map(OsStr::new), Some(OsStr::new(term)));
        assert_eq!(read(None, "xterm"), Palette::Ansi);
        assert_eq!(read(Some(""), "xterm"), Palette::Ansi);
        assert_eq!(read(Some("1"), "xterm"), Palette::Monochrome);
        assert_eq!(read(None, "dumb"), Palette::Monochrome);
        assert_eq!(Palette::Monochrome.style(Role::Bad).fg, None);
    }
}
