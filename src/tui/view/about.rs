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

/// Rows of it where there is room.
const ROWS: usize = 3;
/// Below this height it has one.
const LOW: u16 = 18;

/// Its first rows, and how the rest is seen; nothing where it waits no more.
pub(crate) fn lines(app: &App, call: CallId, area: Rect) -> Vec<Line<'static>> {
    let Some(item) = app.waiting.iter().find(|item| item.call == call) else { return Vec::new() };
    let width = usize::from(dialog_width(area)).saturating_sub(2);
    let most = if area.height < LOW { 1 } else { ROWS };
    // One row more than is shown tells whether there are more.
    let rows = item.body.lines.iter().take(most + 1).flat_map(|line| body_rows(&item.body, line, width, app));
    let mut rows: Vec<Line<'static>> = rows.take(most + 1).collect();
    if rows.len() > most {
        rows.truncate(most);
        let view = keymap::key_of(Action::View);
        rows.extend(prose(&format!("… {view} shows it whole, after Esc"), Role::Text, area, app.palette));
    }
    rows
}
