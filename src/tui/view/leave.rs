//! The dialogs that change the arguments of a call, and how much a run does unasked.

use ratatui::Frame;
use ratatui::layout::Constraint;
use ratatui::layout::Layout;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use crate::domain::cells::wrap;
use crate::domain::cells::wrap_at_most;
use crate::domain::trust::Trust;
use crate::tui::action::Action;
use crate::tui::app::App;
use crate::tui::composer::Composer;
use crate::tui::keymap;
use crate::tui::popup::Asks;
use crate::tui::theme::Role;
use crate::tui::view::cut;
use crate::tui::view::footer::Field;
use crate::tui::view::footer::draw_field;
use crate::tui::view::piece;
use crate::tui::view::popups::frame_box;
use crate::tui::view::popups::sentence;

/// Widest dialog, in cells.
const WIDTH: u16 = 84;
/// Rows that the field of changed arguments has where there is room.
const FIELD_ROWS: u16 = 8;

/// Draws the dialog.
pub fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, asks: &Asks, line: &Composer) {
    let width = area.width.saturating_sub(4).min(WIDTH);
    let (title, told, hint, rows, does) = match asks {
        Asks::Edit(call, digest) => (
            format!("Change {call} {} and allow it", digest.short()),
            vec![(
                "It runs once with these arguments, if the gate lets it. The model is told what you changed."
                    .to_string(),
                Role::Text,
            )],
            "arguments as JSON…",
            FIELD_ROWS,
            "allows it so · Esc: nothing is decided",
        ),
        Asks::Trust
        | Asks::Deny(..)
        | Asks::Happened(_)
        | Asks::Plan
        | Asks::Price
        | Asks::WrongClaim
        | Asks::Iteration(_)
        | Asks::Sure(_) => (
            format!("Trust: {} now", app.run.trust),
            modes(),
            "plan, ask, auto_edit or full_trust…",
            1,
            "sets it · Esc: nothing is changed",
        ),
    };
    let text: Vec<Line<'static>> = told
        .iter()
        .flat_map(|(text, role)| wrap(text, usize::from(width).saturating_sub(4)).into_iter().map(|row| (row, *role)))
        .map(|(row, role)| Line::from(cut(vec![piece(format!(" {row}"), role, app.palette)], usize::from(width))))
        .collect();
    let text_rows = u16::try_from(text.len()).unwrap_or(u16::MAX);
    let height = text_rows.saturating_add(rows + 5).min(area.height);
    let inner = frame_box(frame, area, (width, height), &title, app.palette);
    let [top, field, problem, keys] = Layout::vertical([
        Constraint::Max(text_rows),
        Constraint::Min(1),
        Constraint::Length(2),
        Constraint::Length(1),
    ])
    .areas(inner);
    frame.render_widget(Paragraph::new(text), top);
    draw_field(frame, field, line, Field { prompt: " › ", hint, has_keys: true, palette: app.palette });
    if let Some(notice) = &app.notice {
        let told = wrap_at_most(&notice.text, usize::from(problem.width).saturating_sub(2), 2);
        let row = |row: String| Line::from(piece(format!(" {row}"), notice.role, app.palette));
        frame.render_widget(Paragraph::new(told.into_iter().map(row).collect::<Vec<_>>()), problem);
    }
    let text = format!("{} {does}", keymap::key_of(Action::Submit));
    frame.render_widget(Paragraph::new(sentence(&text, inner.width, app.palette)), keys);
}

/// What each mode means, in plain words; the word is typed as it stands.
fn modes() -> Vec<(String, Role)> {
    let mode = |trust: Trust| {
        let role = if trust > Trust::Ask { Role::Warning } else { Role::Text };
        (format!("{trust}: {}", trust.meaning()), role)
    };
    let mut told: Vec<(String, Role)> = Trust::ALL.into_iter().map(mode).collect();
    let waits = "What waits for you goes on waiting. A tighter mode takes back what was allowed and not used.";
    told.push((waits.to_string(), Role::Dim));
    told
}
