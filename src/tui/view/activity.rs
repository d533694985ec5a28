//! The activity: iteration after iteration, with every call; only bodies fold. `rows.rs` says what there is to say
//! about an iteration; this file lays out what is visible of it.

use ratatui::Frame;
use ratatui::layout::Margin;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::text::Span as Piece;
use ratatui::widgets::Paragraph;

use crate::domain::cells::wrap;
use crate::tui::app::App;
use crate::tui::app::Focus;
use crate::tui::app::Seen;
use crate::tui::app::View;
use crate::tui::reread::Iterations;
use crate::tui::rows;
use crate::tui::rows::Detail;
use crate::tui::rows::Form;
use crate::tui::rows::Row;
use crate::tui::scroll::Anchor;
use crate::tui::scroll::Scroll;
use crate::tui::scroll::follow;
use crate::tui::scroll::lay;
use crate::tui::text::marked;
use crate::tui::theme::Palette;
use crate::tui::theme::Role;
use crate::tui::view::cut;
use crate::tui::view::pane;
use crate::tui::view::piece;
use crate::tui::view::two_sided;
use crate::tui::waiting::Body;

/// Draws the pane, and says where it stands.
pub fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, seen: &mut Seen) {
    let is_following = app.activity_scroll == Scroll::END;
    let right = if is_following { "" } else { "scrolled back · G follows" };
    let inside = area.inner(Margin::new(1, 1));
    let (width, height) = (usize::from(inside.width), usize::from(inside.height));
    let lines = |block: usize| lines_of(app, block, width);
    // Every iteration is a block, and what stands after the last is one more.
    let count = rows::blocks(app);
    let laid = match is_following && app.run.is_running() {
        true => follow(count, app.seen.activity.map(|view| view.top), height, lines),
        false => lay(count, app.activity_scroll, height, lines),
    };
    let view = View { scroll: laid.scroll(), top: (laid.first, laid.row), height };
    let mut name = vec![piece("2 ", Role::Dim, app.palette), piece("Activity", Role::Strong, app.palette)];
    if laid.row > 0 && laid.first + 1 < count {
        name.push(piece(format!("  from iteration {}", laid.first + 1), Role::Dim, app.palette));
    }
    let inner = pane(frame, area, app, Focus::Activity, name, right);
    frame.render_widget(Paragraph::new(laid.lines), inner);
    seen.activity = Some(view);
    let number = |block: usize| u32::try_from(block + 1).unwrap_or(u32::MAX).min(app.run.iteration.n);
    seen.iterations = Some(Iterations { first: number(laid.first), last: number(laid.last), width });
}

/// Of each row of a block, whether it is no text that was put away or is shown in its place: so many there always are.
pub(crate) fn firm_rows(app: &App, block: usize, width: usize) -> Vec<bool> {
    let lines = |row: &Row| std::iter::repeat_n(!row.is_text, lay_row(row, width, app.palette).len());
    rows::of(app, block, Detail::Folded).iter().flat_map(lines).collect()
}

/// The whole of the iteration that the pane shows first, or of the last one while it follows: a title, and all there
/// is to say.
pub fn whole(app: &App, first: Option<usize>) -> (String, Body) {
    let last = rows::blocks(app).saturating_sub(2);
    let block = match app.activity_scroll.anchor {
        Anchor::End => last,
        Anchor::At { .. } => first.unwrap_or(last).min(last),
    };
    let body = Body::of_rows(rows::of(app, block, Detail::Whole).iter().map(|row| (row.plain(), row.role)));
    (format!("Iteration {}", block + 1), body)
}

fn lines_of(app: &App, block: usize, width: usize) -> Vec<Line<'static>> {
    rows::of(app, block, Detail::Folded).iter().flat_map(|row| lay_row(row, width, app.palette)).collect()
}

fn lay_row(row: &Row, width: usize, palette: Palette) -> Vec<Line<'static>> {
    let lead = format!("{}{}", " ".repeat(row.indent), row.mark);
    let gap = if row.mark.is_empty() { "" } else { " " };
    let start = row.indent + if row.mark.is_empty() { 0 } else { 2 };
    let first = |text: &str| -> Vec<Piece<'static>> {
        let mut spans = vec![piece(format!("{lead}{gap}"), row.mark_role, palette)];
        spans.extend(pieces(row, 0, text, palette));
        spans
    };
    match row.form {
        Form::Line => {
            let right = if row.right.is_empty() { String::new() } else { format!("  {} ", row.right) };
            vec![two_sided(first(&row.text), vec![piece(right, row.right_role, palette)], width)]
        }
        Form::Prose => {
            let mut lines = Vec::new();
            let hang = start + row.hang;
            let mut from = 0;
            for text in wrap(&row.text, width.saturating_sub(hang + 1)) {
                // What was wrapped is the text but for blanks at the ends of its rows.
                from += row.text.get(from..).and_then(|rest| rest.find(&text)).unwrap_or_default();
                let spans = if lines.is_empty() {
                    first(&text)
                } else {
                    let mut spans = vec![piece(" ".repeat(hang), row.role, palette)];
                    spans.extend(pieces(row, from, &text, palette));
                    spans
                };
                from += text.len();
                lines.push(Line::from(cut(spans, width)));
            }
            lines
        }
    }
}

/// A part of the text of a row, which begins at this byte of it, piece by piece.
fn pieces(row: &Row, from: usize, text: &str, palette: Palette) -> Vec<Piece<'static>> {
    if row.strands.is_empty() {
        return marked(text, row.role, palette);
    }
    let to = from + text.len();
    let mut begin = 0;
    let mut pieces = Vec::new();
    for strand in &row.strands {
        let end = begin + strand.text.len();
        let (first, last) = (from.max(begin), to.min(end));
        if first < last {
            let part = strand.text.get(first - begin..last - begin).unwrap_or_default();
            pieces.extend(marked(part, strand.role, palette));
        }
        begin = end;
    }
    pieces
}
