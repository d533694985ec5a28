//! The layout: which panes a terminal of this size shows, and where. Pure: it draws what `App` says and reports what
//! it showed. A pane draws inside its own rectangle only.

pub mod about;
pub mod activity;
pub mod footer;
pub mod header;
pub mod leave;
pub mod lineage;
pub mod menu;
pub mod plan;
pub mod popups;
pub mod runs;
pub mod spend;
pub mod waiting;

use ratatui::Frame;
use ratatui::layout::Alignment;
use ratatui::layout::Constraint;
use ratatui::layout::Layout;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::text::Span as Piece;
use ratatui::widgets::Block;
use ratatui::widgets::Paragraph;

use crate::domain::cells::cells;
use crate::domain::cells::fit;
use crate::domain::visible::drawn;
use crate::tui::app::App;
use crate::tui::app::Focus;
use crate::tui::app::Seen;
use crate::tui::theme::Palette;
use crate::tui::theme::Role;

/// Below this nothing is shown but what waits.
const TINY: (u16, u16) = (40, 10);
/// Below this nothing is shown but a word.
const LEAST: (u16, u16) = (20, 10);
/// Below this only the header, what waits and the composer are shown.
const SMALL: (u16, u16) = (60, 15);
/// Below this height every sentence has one row.
pub(crate) const LOW: u16 = 15;
/// From this on the panes stand side by side.
const WIDE: (u16, u16) = (100, 24);

/// How the screen is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Tiny,
    Small,
    Column,
    Wide,
}

fn shape(area: Rect) -> Shape {
    let is_below = |(width, height): (u16, u16)| area.width < width || area.height < height;
    if is_below(TINY) {
        Shape::Tiny
    } else if is_below(SMALL) {
        Shape::Small
    } else if is_below(WIDE) {
        Shape::Column
    } else {
        Shape::Wide
    }
}

/// Draws the screen, and says what it showed.
pub fn draw(frame: &mut Frame<'_>, app: &App) -> Seen {
    let area = frame.area();
    let shape = shape(area);
    if shape == Shape::Tiny {
        return draw_tiny(frame, area, app);
    }
    let composer_rows = footer::composer_rows(app, area);
    let strip_rows = u16::from(shape == Shape::Column);
    let [header, plan, spend, middle, banner, composer, keys] = Layout::vertical([
        Constraint::Length(header::rows_needed(app, area)),
        Constraint::Length(strip_rows),
        Constraint::Length(strip_rows),
        Constraint::Min(3),
        Constraint::Length(footer::banner_rows(app, area)),
        Constraint::Length(composer_rows),
        Constraint::Length(1),
    ])
    .areas(area);
    header::draw(frame, header, app);
    if shape == Shape::Column {
        plan::draw_strip(frame, plan, app);
        spend::draw_strip(frame, spend, app);
    }
    let mut seen = Seen::default();
    match shape {
        Shape::Tiny => {}
        Shape::Small => draw_small(frame, middle, app, &mut seen),
        Shape::Column => draw_column(frame, middle, app, &mut seen),
        Shape::Wide => draw_wide(frame, middle, app, &mut seen),
    }
    footer::draw_banner(frame, banner, app);
    footer::draw_composer(frame, composer, app);
    footer::draw_keys(frame, keys, app);
    if !app.popups.is_empty() {
        // What is covered can't be decided about.
        seen.item = None;
        popups::draw(frame, Rect { height: area.height.saturating_sub(1), ..area }, app, &mut seen);
    }
    footer::draw_banner_over(frame, banner, app);
    seen.claim = app.run.claim_digest().filter(|_| app.popups.is_empty());
    seen
}

/// Whether zooming the focused pane, or ending its zoom, changes what is drawn on a screen of this size.
pub(crate) fn zoom_changes(app: &App, screen: Rect) -> bool {
    match shape(screen) {
        Shape::Tiny | Shape::Small => false,
        Shape::Column => matches!(app.focus, Focus::Waiting | Focus::Activity) && !app.waiting.is_empty(),
        Shape::Wide => app.focus != Focus::Composer,
    }
}

/// What waits has the screen for itself where there is room for nothing else: a call can be read to its end and decided
/// about on any screen that shows its keys. Else a word.
fn draw_tiny(frame: &mut Frame<'_>, area: Rect, app: &App) -> Seen {
    let mut seen = Seen::default();
    if !app.waiting.is_empty() && area.width >= LEAST.0 && area.height >= LEAST.1 {
        let [middle, banner] =
            Layout::vertical([Constraint::Min(1), Constraint::Length(footer::banner_rows(app, area))]).areas(area);
        waiting::draw(frame, middle, app, &mut seen);
        footer::draw_banner(frame, banner, app);
        if !app.popups.is_empty() {
            seen.item = None;
            popups::draw(frame, middle, app, &mut seen);
        }
        return seen;
    }
    seen.is_too_small = true;
    let text = format!("too small: {}×{} needed", TINY.0, TINY.1);
    let middle = Rect { y: area.y + area.height / 2, height: area.height.min(1), ..area };
    let line = Line::raw(fit(&text, usize::from(area.width)));
    frame.render_widget(Paragraph::new(line).alignment(Alignment::Center), middle.intersection(area));
    seen
}

fn draw_small(frame: &mut Frame<'_>, area: Rect, app: &App, seen: &mut Seen) {
    match app.waiting.is_empty() {
        true => activity::draw(frame, area, app, seen),
        false => waiting::draw(frame, area, app, seen),
    }
}

fn draw_column(frame: &mut Frame<'_>, area: Rect, app: &App, seen: &mut Seen) {
    match app.focus {
        Focus::Plan => seen.plan = plan::draw(frame, area, app),
        Focus::Spend => spend::draw(frame, area, app),
        Focus::Waiting | Focus::Activity if app.zoomed => draw_zoomed(frame, area, app, seen),
        Focus::Waiting => draw_work(frame, area, app, seen, area.height),
        Focus::Composer | Focus::Activity if app.waiting.is_empty() => activity::draw(frame, area, app, seen),
        Focus::Composer | Focus::Activity => draw_work(frame, area, app, seen, area.height.saturating_sub(6)),
    }
}

fn draw_wide(frame: &mut Frame<'_>, area: Rect, app: &App, seen: &mut Seen) {
    if app.zoomed && app.focus != Focus::Composer {
        return draw_zoomed(frame, area, app, seen);
    }
    let side = (area.width * 3 / 10).clamp(32, 46);
    let [left, right] = Layout::horizontal([Constraint::Length(side), Constraint::Min(20)]).areas(area);
    let spend_rows = spend::rows_needed(app, left.width);
    let [plan, spend] = Layout::vertical([Constraint::Min(5), Constraint::Length(spend_rows)]).areas(left);
    seen.plan = plan::draw(frame, plan, app);
    spend::draw(frame, spend, app);
    let share = if app.focus == Focus::Waiting { 4 } else { 3 };
    draw_work(frame, right, app, seen, right.height * (share - 1) / share);
}

fn draw_zoomed(frame: &mut Frame<'_>, area: Rect, app: &App, seen: &mut Seen) {
    match app.focus {
        Focus::Plan => seen.plan = plan::draw(frame, area, app),
        Focus::Activity | Focus::Composer => activity::draw(frame, area, app, seen),
        Focus::Waiting => waiting::draw(frame, area, app, seen),
        Focus::Spend => spend::draw(frame, area, app),
    }
}

/// The activity, and below it what waits, in at most `most` rows.
fn draw_work(frame: &mut Frame<'_>, area: Rect, app: &App, seen: &mut Seen, most: u16) {
    let wanted = waiting::rows_needed(app, area.width, most);
    // Fewer rows of activity than this show nothing; they go to what waits.
    let rows = if area.height - wanted < 5 { area.height } else { wanted };
    let [upper, lower] = Layout::vertical([Constraint::Min(0), Constraint::Length(rows)]).areas(area);
    if upper.height > 0 {
        activity::draw(frame, upper, app, seen);
    }
    waiting::draw(frame, lower, app, seen);
}

/// The frame of a pane, with its number, its name and a word on the right; gives what is inside it.
pub(crate) fn pane(
    frame: &mut Frame<'_>,
    area: Rect,
    app: &App,
    focus: Focus,
    title: Vec<Piece<'static>>,
    right: &str,
) -> Rect {
    let is_focused = app.focus == focus && app.popups.is_empty();
    let role = if is_focused { Role::Focused } else { Role::Frame };
    let mut spans = vec![Piece::raw(" ")];
    spans.extend(title);
    spans.push(Piece::raw(" "));
    let taken: usize = spans.iter().map(|span| cells(&span.content)).sum();
    let room = usize::from(area.width).saturating_sub(taken + 5);
    let mut block = Block::bordered().border_style(app.palette.style(role)).title(Line::from(spans));
    if is_focused {
        block = block.border_type(ratatui::widgets::BorderType::Thick);
    }
    if !right.is_empty() && room > 3 {
        let text = piece(format!(" {} ", fit(right, room)), Role::Dim, app.palette);
        block = block.title(Line::from(text).right_aligned());
    }
    let inner = block.inner(area);
    frame.render_widget(block, area);
    inner
}

/// A row with something on the left and something on the right; the left gives way.
pub(crate) fn two_sided(left: Vec<Piece<'static>>, right: Vec<Piece<'static>>, width: usize) -> Line<'static> {
    let right_cells: usize = right.iter().map(|span| cells(&span.content)).sum();
    let gap = usize::from(right_cells > 0);
    let room = width.saturating_sub(right_cells + gap);
    let mut spans = cut(left, room);
    let used: usize = spans.iter().map(|span| cells(&span.content)).sum();
    spans.push(Piece::raw(" ".repeat(width.saturating_sub(used + right_cells))));
    spans.extend(right);
    Line::from(cut(spans, width))
}

/// Spans in at most `width` cells.
pub(crate) fn cut(spans: Vec<Piece<'static>>, width: usize) -> Vec<Piece<'static>> {
    let mut left = width;
    let mut kept = Vec::with_capacity(spans.len());
    for span in spans {
        let wide = cells(&span.content);
        if wide <= left {
            left -= wide;
            kept.push(span);
            continue;
        }
        kept.push(Piece::styled(fit(&span.content, left), span.style));
        break;
    }
    kept
}

/// A piece of text in a role.
pub(crate) fn piece(text: impl Into<String>, role: Role, palette: Palette) -> Piece<'static> {
    Piece::styled(drawn(text.into()), palette.style(role))
}
