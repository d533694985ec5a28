//! The beginning of a call in a dialog that is about it: whoever types its code, or says no to it, sees what it is. It stands
//! behind the same gutter as in its pane.

use ratatui::layout::Rect;
use ratatui::text::Line;

use crate::domain::id::CallId;
use crate::tui::action::Action;
use crate::tui::app::App;
use crate::tui::keymap;
use crate::tui::theme::Role;
use crate::tui::view::popups::dialog_width;
use crate::tui::view::popups::prose;
use crate::tui::view::waiting::body_rows;

/// Rows of it that all else in the dialog gives way to.
const ROWS: usize = 3;
/// Below this height it has one of those.
const LOW: u16 = 18;

/// Its first rows, as many as a dialog could show and one more; nothing where it waits no more.
pub(crate) fn lines(app: &App, call: CallId, area: Rect) -> Vec<Line<'static>> {
    let Some(item) = app.waiting.iter().find(|item| item.call == call) else { return Vec::new() };
    let width = usize::from(dialog_width(area)).saturating_sub(2);
    let rows = item.body.lines.iter().flat_map(|line| body_rows(&item.body, line, width, app));
    rows.take(usize::from(area.height) + 1).collect()
}

/// These rows where there is room for so many, and how the rest is seen.
pub(crate) fn fitted(mut rows: Vec<Line<'static>>, room: usize, area: Rect, app: &App) -> Vec<Line<'static>> {
    let least = if area.height < LOW { 1 } else { ROWS };
    if rows.len() > room.max(least) {
        let view = keymap::key_of(Action::View);
        let more = prose(&format!("… {view} shows it whole, after Esc"), Role::Text, area, app.palette);
        rows.truncate(room.saturating_sub(more.len()).max(least));
        rows.extend(more);
    }
    rows
}
