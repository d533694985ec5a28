//! The text field: what the operator writes, and what they wrote before. Knows no keys but those that edit text.

use crossterm::event::KeyCode;
use crossterm::event::KeyEvent;
use crossterm::event::KeyModifiers;
use tui_textarea::CursorMove;
use tui_textarea::TextArea;

use crate::domain::cells::cells;
use crate::domain::cells::chop;
use crate::domain::limits;
use crate::domain::visible::transcript;

/// A text field.
#[derive(Clone, Debug, Default)]
pub struct Composer {
    area: TextArea<'static>,
    sent: Vec<String>,
    /// Which earlier draft is shown, and what was written before it was fetched.
    recalled: Option<(usize, String)>,
    /// Whether the text is a suggestion that nobody has touched yet.
    is_suggested: bool,
}

impl Composer {
    /// A text field with a draft and with what was sent before.
    pub fn new(draft: &str, sent: Vec<String>) -> Composer {
        let mut composer = Composer { sent, ..Composer::default() };
        composer.set(draft);
        composer
    }

    /// A text field with a suggestion in it: a character typed first, or a paste, replaces it; any other key keeps it.
    pub fn suggesting(text: &str) -> Composer {
        let mut composer = Composer::new(text, Vec::new());
        composer.is_suggested = !text.is_empty();
        composer
    }

    /// Whether what is written is a suggestion still.
    pub fn is_suggested(&self) -> bool {
        self.is_suggested
    }

    /// What is written.
    pub fn text(&self) -> String {
        self.area.lines().join("\n")
    }

    /// Whether nothing is written.
    pub fn is_empty(&self) -> bool {
        self.area.is_empty()
    }

    /// Puts what was sent earlier in front of what was sent since.
    pub fn remember(&mut self, earlier: Vec<String>) {
        let since = std::mem::replace(&mut self.sent, earlier);
        if let Some((place, _)) = &mut self.recalled {
            *place += self.sent.len();
        }
        self.sent.extend(since);
    }

    /// What was sent before, the newest last.
    pub fn sent(&self) -> &[String] {
        &self.sent
    }

    /// Replaces what is written.
    pub fn set(&mut self, text: &str) {
        self.area = TextArea::new(text.split('\n').map(str::to_string).collect());
        self.area.move_cursor(CursorMove::Bottom);
        self.area.move_cursor(CursorMove::End);
        self.recalled = None;
        self.is_suggested = false;
    }

    /// Takes what is written out of the field and remembers it.
    pub fn take(&mut self) -> String {
        let text = self.text();
        self.set("");
        if !text.trim().is_empty() && self.sent.last() != Some(&text) {
            self.sent.push(text.clone());
            let surplus = self.sent.len().saturating_sub(limits::DRAFTS_MAX);
            self.sent.drain(..surplus);
        }
        text
    }

    /// Takes a key that edits text. A text that is full takes no more.
    pub fn input(&mut self, key: KeyEvent) {
        let is_text = matches!(key.code, KeyCode::Char(_))
            && !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        if is_text {
            self.drop_suggestion();
        }
        self.is_suggested = false;
        let before = self.area.clone();
        self.area.input(key);
        if self.text().len() > limits::SAY_MAX_BYTES {
            self.area = before;
        }
    }

    fn drop_suggestion(&mut self) {
        if self.is_suggested {
            self.set("");
        }
    }

    /// Takes away what stands before the caret in its line.
    pub fn clear_line(&mut self) {
        self.is_suggested = false;
        if self.area.cursor().1 > 0 {
            self.area.delete_line_by_head();
        }
    }

    /// Puts in a line break.
    pub fn newline(&mut self) {
        self.area.insert_newline();
    }

    /// Puts in pasted text, as text. Whether it fitted.
    pub fn paste(&mut self, text: &str) -> bool {
        if self.text().len().saturating_add(text.len()) > limits::SAY_MAX_BYTES {
            return false;
        }
        self.drop_suggestion();
        self.area.insert_str(text.replace("\r\n", "\n").replace('\r', "\n"));
        true
    }

    /// As `paste`, into a field of one line.
    pub fn paste_line(&mut self, text: &str) -> bool {
        self.paste(&text.replace(['\r', '\n'], " "))
    }

    /// Up: within the text, or at its first line to what was sent before.
    pub fn earlier(&mut self) {
        if self.area.cursor().0 > 0 {
            return self.area.move_cursor(CursorMove::Up);
        }
        let (place, draft) = match self.recalled.take() {
            Some((place, draft)) => (place, draft),
            None => (self.sent.len(), self.text()),
        };
        let place = place.saturating_sub(1);
        let Some(text) = self.sent.get(place).cloned() else { return };
        self.set(&text);
        self.recalled = Some((place, draft));
    }

    /// Down: within the text, or at its last line to what was sent after that, and back to the draft.
    pub fn later(&mut self) {
        if self.area.cursor().0 + 1 < self.area.lines().len() {
            return self.area.move_cursor(CursorMove::Down);
        }
        let Some((place, draft)) = self.recalled.take() else { return };
        match self.sent.get(place + 1).cloned() {
            Some(text) => {
                self.set(&text);
                self.recalled = Some((place + 1, draft));
            }
            None => self.set(&draft),
        }
    }

    /// The text as rows of at most `width` cells, and the row and cell of the caret.
    pub fn rows(&self, width: usize) -> (Vec<String>, usize, usize) {
        let cursor = self.area.cursor();
        let mut rows = Vec::new();
        let mut caret = (0, 0);
        for (number, line) in self.area.lines().iter().enumerate() {
            if number == cursor.0 {
                let before: String = line.chars().take(cursor.1).collect();
                let shown = transcript(&before);
                let pieces = chop(&shown, width);
                let last = pieces.last().map_or(0, |piece| cells(piece));
                let is_full = last >= width.max(2);
                let row = rows.len() + pieces.len() - usize::from(!is_full);
                caret = (row, if is_full { 0 } else { last });
            }
            rows.extend(chop(&transcript(line), width).into_iter().map(str::to_string));
        }
        if caret.0 >= rows.len() {
            rows.push(String::new());
        }
        (rows, caret.0, caret.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(text: &str) -> Composer {
        let mut composer = Composer::default();
        for one in text.chars() {
            composer.input(KeyEvent::from(KeyCode::Char(one)));
        }
        composer
    }

    #[test]
    fn what_was_sent_comes_back() {
        let mut composer = Composer::new("", vec!["one".to_string(), "two".to_string()]);
        composer.input(KeyEvent::from(KeyCode::Char('x')));
        composer.earlier();
        assert_eq!(composer.text(), "two");
        composer.earlier();
        composer.earlier();
        assert_eq!(composer.text(), "one");
        composer.later();
        composer.later();
        assert_eq!(composer.text(), "x");
        assert_eq!((composer.take(), composer.is_empty()), ("x".to_string(), true));
        assert_eq!(composer.sent(), ["one", "two", "x"]);
    }

    #[test]
    fn a_suggestion_gives_way_to_the_first_character_only() {
        let after = |keys: &[KeyCode]| {
            let mut composer = Composer::suggesting("64");
            for code in keys {
                composer.input(KeyEvent::from(*code));
            }
            composer.text()
        };
        assert_eq!(after(&[]), "64");
        assert_eq!(after(&[KeyCode::Char('4'), KeyCode::Char('0')]), "40");
        assert_eq!(after(&[KeyCode::Backspace, KeyCode::Char('0')]), "60");
        assert_eq!(after(&[KeyCode::Home, KeyCode::Char('1')]), "164");
        assert_eq!(after(&[KeyCode::Left, KeyCode::Char('1')]), "614");
        let mut pasted = Composer::suggesting("64");
        assert!(pasted.paste_line("7"));
        assert_eq!((pasted.text().as_str(), pasted.is_suggested()), ("7", false));
    }

    #[test]
    fn the_caret_stands_in_cells() {
        assert_eq!(typed("日本").rows(10), (vec!["日本".to_string()], 0, 4));
        assert_eq!(typed("abcd").rows(4), (vec!["abcd".to_string(), String::new()], 1, 0));
        assert_eq!(typed("abcde").rows(4), (vec!["abcd".to_string(), "e".to_string()], 1, 1));
        assert_eq!(typed("a\u{1b}").rows(20), (vec!["a⟦ESC⟧".to_string()], 0, 6));
        assert_eq!(typed("").rows(4), (vec![String::new()], 0, 0));
    }

    #[test]
    fn pasted_text_is_text_and_bounded() {
        let mut composer = Composer::default();
        assert!(composer.paste("a\r\nb\rc"));
        assert_eq!(composer.text(), "a\nb\nc");
        assert!(!composer.paste(&"x".repeat(limits::SAY_MAX_BYTES)));
        let mut line = Composer::default();
        assert!(line.paste_line("a\nb"));
        assert_eq!(line.text(), "a b");
    }
}
