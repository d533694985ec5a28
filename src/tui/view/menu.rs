//! The menu, drawn: a field, the rows that fit what is typed, and the whole of what is to be said about the chosen one.

use ratatui::Frame;
use ratatui::layout::Constraint;
use ratatui::layout::Layout;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use crate::domain::cells::cells;
use crate::domain::cells::fit;
use crate::domain::cells::pad;
use crate::domain::cells::wrap_at_most;
use crate::domain::visible::transcript;
use crate::tui::app::App;
use crate::tui::app::View;
use crate::tui::keymap::Binding;
use crate::tui::menu::Menu;
use crate::tui::scroll::Scroll;
use crate::tui::theme::Role;
use crate::tui::view::footer::Field;
use crate::tui::view::footer::draw_field;
use crate::tui::view::piece;
use crate::tui::view::popups::PROMPT;
use crate::tui::view::popups::frame_box;
use crate::tui::view::two_sided;

/// Widest menu, in cells.
const WIDEST: u16 = 92;
/// Highest menu, in rows.
const HIGHEST: u16 = 26;
/// Rows of what is said about the chosen row, at most.
const ABOUT_ROWS: u16 = 4;

/// Draws the menu, and says how many rows it has room for.
pub fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, menu: &Menu) -> View {
    let size = (area.width.saturating_sub(4).clamp(30, WIDEST), area.height.saturating_sub(2).min(HIGHEST));
    let inner = frame_box(frame, area, size, "Menu · Enter does it · Esc closes", app.palette);
    let about_rows = ABOUT_ROWS.min(inner.height / 3);
    let [field, list, _, about] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(1),
        Constraint::Length(about_rows),
    ])
    .areas(inner);
    let hint = "type words of what you look for…";
    let _ = draw_field(frame, field, &menu.line, Field { prompt: PROMPT, hint, has_keys: true, palette: app.palette });
    let height = usize::from(list.height);
    // The chosen row in the middle, as far as the ends let it.
    let last = menu.found.len().saturating_sub(height);
    let first = menu.chosen.saturating_sub(height / 2).min(last);
    let width = usize::from(list.width);
    let rows = menu.found.iter().enumerate().skip(first).take(height);
    let lines: Vec<Line<'static>> = rows.map(|(place, row)| line(app, row, place == menu.chosen, width)).collect();
    frame.render_widget(Paragraph::new(lines), list);
    draw_about(frame, about, app, menu);
    View { scroll: Scroll::START, top: (first, 0), height }
}

/// A key and what it does, in one row; whether it can do nothing now is a word at its end.
fn line(app: &App, row: &Binding, is_chosen: bool, width: usize) -> Line<'static> {
    let can = app.why_not_chosen(row.action).is_none();
    let role = |role| match (is_chosen, can) {
        (true, _) => Role::Selected,
        (false, true) => role,
        (false, false) => Role::Dim,
    };
    let key = row.keys.first().map(|chord| chord.name()).unwrap_or_default();
    let mark = if is_chosen { "›" } else { " " };
    let end = if can { "" } else { "not now " };
    let lead = format!(" {mark} {} ", pad(&key, 9));
    let room = width.saturating_sub(cells(&lead) + cells(end) + usize::from(!can));
    let text = pad(&fit(row.help, room), room);
    two_sided(
        vec![piece(lead, role(Role::Key), app.palette), piece(text, role(Role::Text), app.palette)],
        vec![piece(end, role(Role::Dim), app.palette)],
        width,
    )
}

/// What was just said, else why the chosen row can do nothing, else the whole of what it does and where its keys do it.
fn draw_about(frame: &mut Frame<'_>, area: Rect, app: &App, menu: &Menu) {
    let (text, role) = match (&app.notice, menu.row()) {
        (Some(notice), _) => (notice.text.clone(), notice.role),
        (None, None) => ("no key that works here fits what is typed".to_string(), Role::Warning),
        (None, Some(row)) => match app.why_not_chosen(row.action) {
            Some(why) => (format!("not now: {why}"), Role::Warning),
            None => (told(row), Role::Text),
        },
    };
    let text = transcript(&text).replace('\n', " ");
    let rows = wrap_at_most(&text, usize::from(area.width).saturating_sub(2), usize::from(area.height).max(1));
    let lines: Vec<Line<'static>> =
        rows.into_iter().map(|row| Line::from(piece(format!(" {row}"), role, app.palette))).collect();
    frame.render_widget(Paragraph::new(lines), area);
}

fn told(row: &Binding) -> String {
    let keys: Vec<String> = row.keys.iter().map(|chord| chord.name()).collect();
    format!("{}, {}: {}", keys.join(" or "), row.place.phrase(), row.help)
}
