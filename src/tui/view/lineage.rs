//! The dialogs that go back to an iteration or branch off after one.

use ratatui::Frame;
use ratatui::layout::Constraint;
use ratatui::layout::Layout;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use crate::domain::cells::wrap;
use crate::tui::action::Action;
use crate::tui::app::App;
use crate::tui::composer::Composer;
use crate::tui::keymap;
use crate::tui::lineage::Doubt;
use crate::tui::lineage::StepKind;
use crate::tui::theme::Role;
use crate::tui::view::cut;
use crate::tui::view::footer::Field;
use crate::tui::view::footer::draw_field;
use crate::tui::view::piece;
use crate::tui::view::popups::frame_box;
use crate::tui::view::popups::sentence;

/// Widest dialog, in cells.
const WIDTH: u16 = 84;
/// Rows besides the text: the frame, the field, what went wrong, and the keys.
const OTHER_ROWS: u16 = 5;

/// Draws the question for the iteration.
pub fn draw_iteration(frame: &mut Frame<'_>, area: Rect, app: &App, kind: StepKind, line: &Composer) {
    let told = match kind {
        StepKind::Back => "To the end of which iteration? What came after it is hidden, not removed.",
        StepKind::Fork => "After which iteration? A new run begins with a copy of what came up to its end.",
    };
    let does = "shows what that does not undo, before anything is done · Esc: nothing is changed";
    draw(frame, area, app, line, kind.title(), &[told.to_string()], ("number of the iteration…", does));
}

/// Draws what a step does and does not undo, and asks for the word.
pub fn draw_sure(frame: &mut Frame<'_>, area: Rect, app: &App, doubt: &Doubt, line: &Composer) {
    let title = format!("{} · iteration {}", doubt.step.kind.title(), doubt.step.iteration);
    draw(frame, area, app, line, &title, &doubt.told, ("type yes…", "does it · Esc: nothing is changed"));
}

fn draw(
    frame: &mut Frame<'_>,
    area: Rect,
    app: &App,
    line: &Composer,
    title: &str,
    told: &[String],
    (hint, does): (&'static str, &str),
) {
    let width = area.width.saturating_sub(4).min(WIDTH);
    let columns = usize::from(width).saturating_sub(4);
    let mut rows: Vec<String> = told.iter().flat_map(|text| wrap(text, columns)).collect();
    let room = usize::from(area.height.saturating_sub(OTHER_ROWS + 1));
    if rows.len() > room {
        let left = rows.len() - room.saturating_sub(1);
        rows.truncate(room.saturating_sub(1));
        rows.push(format!("… {left} more rows; `tiller audit {}` has all", app.run.id.short()));
    }
    let count = u16::try_from(rows.len()).unwrap_or(u16::MAX);
    let inner = frame_box(frame, area, (width, count.saturating_add(OTHER_ROWS)), title, app.palette);
    let [top, field, problem, keys] =
        Layout::vertical([Constraint::Max(count), Constraint::Length(1), Constraint::Length(1), Constraint::Length(1)])
            .areas(inner);
    let row = |row: String| Line::from(cut(vec![piece(format!(" {row}"), Role::Text, app.palette)], columns + 2));
    frame.render_widget(Paragraph::new(rows.into_iter().map(row).collect::<Vec<_>>()), top);
    draw_field(frame, field, line, Field { prompt: " › ", hint, has_keys: true, palette: app.palette });
    if let Some(notice) = &app.notice {
        let text = vec![piece(format!(" {}", notice.text), notice.role, app.palette)];
        frame.render_widget(Paragraph::new(Line::from(cut(text, columns + 2))), problem);
    }
    let text = format!("{} {does}", keymap::key_of(Action::Submit));
    frame.render_widget(Paragraph::new(sentence(&text, inner.width, app.palette)), keys);
}
