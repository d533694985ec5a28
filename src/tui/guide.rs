//! The guide of the repository as rows of the first iteration: which file it is, and, where everything is shown, all that
//! the model is told of it.

use crate::domain::guide::Guide;
use crate::domain::visible::transcript;
use crate::tui::rows::Detail;
use crate::tui::rows::Form;
use crate::tui::rows::Row;
use crate::tui::theme::Role;

/// The rows of a guide.
pub fn rows(guide: &Guide, detail: Detail) -> Vec<Row> {
    let title = format!("told as text of the repository: {}", guide.title());
    let mut rows = vec![Row::new(4, "·", transcript(&title), Role::Dim, Form::Prose)];
    if detail == Detail::Whole {
        let text = transcript(&guide.text);
        rows.extend(text.lines().map(|line| Row::new(6, "", format!("| {line}"), Role::Dim, Form::Prose)));
    }
    rows
}
