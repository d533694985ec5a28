//! The plan with its todos, and how much it moves.

use ratatui::Frame;
use ratatui::layout::Constraint;
use ratatui::layout::Layout;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use crate::domain::cells::cells;
use crate::domain::cells::wrap_at_most;
use crate::domain::limits;
use crate::domain::plan::PlanSource;
use crate::domain::plan::Todo;
use crate::domain::plan::TodoStatus;
use crate::domain::visible::title;
use crate::tui::app::App;
use crate::tui::app::Focus;
use crate::tui::app::View;
use crate::tui::scroll::Anchor;
use crate::tui::scroll::Scroll;
use crate::tui::scroll::lay;
use crate::tui::text::count;
use crate::tui::theme::Role;
use crate::tui::view::cut;
use crate::tui::view::pane;
use crate::tui::view::piece;

/// Bars of the little chart, from low to high.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Draws the pane.
pub fn draw(frame: &mut Frame<'_>, area: Rect, app: &App) -> Option<View> {
    let (done, all) = app.run.plan.score();
    let name = vec![
        piece("1 ", Role::Dim, app.palette),
        piece("Plan", Role::Strong, app.palette),
        piece(format!("  {done}/{all}"), Role::Text, app.palette),
    ];
    let inner = pane(frame, area, app, Focus::Plan, name, &revision(app));
    let progress = progress(app, usize::from(inner.width));
    let progress_rows = if inner.height > 8 { u16::try_from(progress.len()).unwrap_or(0) + 1 } else { 0 };
    let [todos, below] = Layout::vertical([Constraint::Min(1), Constraint::Length(progress_rows)]).areas(inner);
    let view = draw_todos(frame, todos, app);
    let rule = piece("─".repeat(usize::from(inner.width)), Role::Frame, app.palette);
    let rows: Vec<Line<'static>> = std::iter::once(Line::from(rule)).chain(progress).collect();
    frame.render_widget(Paragraph::new(rows), below);
    Some(view)
}

/// The plan in one row.
pub fn draw_strip(frame: &mut Frame<'_>, area: Rect, app: &App) {
    let (done, all) = app.run.plan.score();
    let current = app.run.plan.current().or_else(|| app.run.plan.open().next());
    let mut spans = vec![piece(format!(" plan {done}/{all} "), Role::Dim, app.palette)];
    if let Some(todo) = current {
        let (mark, role) = mark(todo.status);
        spans.push(piece(format!("{mark} {}", title(&todo.title, limits::TODO_TITLE_MAX_CHARS)), role, app.palette));
    }
    frame.render_widget(Paragraph::new(Line::from(cut(spans, usize::from(area.width)))), area);
}

fn revision(app: &App) -> String {
    let plan = &app.run.plan;
    match plan.source {
        PlanSource::Seed => "no plan yet".to_string(),
        PlanSource::Fallback => "no plan could be had".to_string(),
        PlanSource::Tool => format!("revision {}", plan.revision),
        PlanSource::Text => format!("revision {}, read from text", plan.revision),
    }
}

fn draw_todos(frame: &mut Frame<'_>, area: Rect, app: &App) -> View {
    let todos = &app.run.plan.todos;
    let height = usize::from(area.height);
    let scroll = app.plan_scroll.unwrap_or_else(|| {
        let current = todos.iter().position(|todo| todo.status == TodoStatus::InProgress).unwrap_or(0);
        Scroll { anchor: Anchor::At { block: current.saturating_sub(height / 3), row: 0 }, nudge: 0 }
    });
    let laid = lay(todos.len(), scroll, height, |place| {
        todos.get(place).map(|todo| rows(todo, app, usize::from(area.width))).unwrap_or_default()
    });
    let view = View { scroll: laid.scroll(), top: (laid.first, laid.row), height };
    frame.render_widget(Paragraph::new(laid.lines), area);
    view
}

fn mark(status: TodoStatus) -> (&'static str, Role) {
    match status {
        TodoStatus::Pending => ("○", Role::Text),
        TodoStatus::InProgress => ("▸", Role::Moving),
        TodoStatus::Done => ("✓", Role::Good),
        TodoStatus::Blocked => ("!", Role::Warning),
        TodoStatus::Dropped => ("–", Role::Dim),
    }
}

fn rows(todo: &Todo, app: &App, width: usize) -> Vec<Line<'static>> {
    let (mark, role) = mark(todo.status);
    let indent = if todo.parent.is_some() { "  " } else { "" };
    let text_role = match todo.status {
        TodoStatus::InProgress => Role::Strong,
        TodoStatus::Done | TodoStatus::Dropped => Role::Dim,
        TodoStatus::Pending | TodoStatus::Blocked => Role::Text,
    };
    let text = title(&todo.title, limits::TODO_TITLE_MAX_CHARS);
    let room = width.saturating_sub(indent.len() + 3);
    let most = match todo.status {
        TodoStatus::InProgress => 3,
        TodoStatus::Pending | TodoStatus::Blocked => 2,
        TodoStatus::Done | TodoStatus::Dropped => 1,
    };
    let pieces = wrap_at_most(&text, room, most);
    let mut lines = Vec::new();
    for (place, text) in pieces.into_iter().enumerate() {
        let lead = if place == 0 { format!(" {indent}{mark} ") } else { format!(" {indent}  ") };
        lines.push(Line::from(cut(vec![piece(lead, role, app.palette), piece(text, text_role, app.palette)], width)));
    }
    let explains = matches!(todo.status, TodoStatus::Blocked | TodoStatus::InProgress) && !todo.note.is_empty();
    if explains {
        let note =
            piece(format!("   {indent}{}", title(&todo.note, limits::TODO_NOTE_MAX_CHARS)), Role::Dim, app.palette);
        lines.push(Line::from(cut(vec![note], width)));
    }
    lines
}

/// How the run moves: what the detectors count, and the tokens of the last iterations.
fn progress(app: &App, width: usize) -> Vec<Line<'static>> {
    let seen = &app.run.progress;
    let limit = |name: &str, value: u32, most: u32| {
        let role = if value + 1 >= most && value > 0 { Role::Warning } else { Role::Dim };
        let mark = if role == Role::Warning { "!" } else { "" };
        piece(format!(" {mark}{name} {value}/{most} "), role, app.palette)
    };
    let mut counters =
        vec![limit("idle", seen.idle, limits::STALL_WINDOW), limit("replans", seen.replans, limits::REPLANS)];
    let repeats = seen.repeat.as_ref().map_or(0, |repeat| repeat.count);
    let others = [
        ("same call", if repeats > 1 { repeats } else { 0 }, limits::STALL_REPEATS),
        ("claims", seen.claims, limits::CLAIMS),
        ("denied", seen.denials, limits::DENIALS),
    ];
    counters
        .extend(others.iter().filter(|(_, value, _)| *value > 0).map(|(name, value, most)| limit(name, *value, *most)));
    let mut lines: Vec<Line<'static>> = Vec::new();
    for counter in counters {
        match lines.last_mut().filter(|line| line.width() + cells(&counter.content) <= width) {
            Some(line) => line.push_span(counter),
            None => lines.push(Line::from(cut(vec![counter], width))),
        }
    }
    let bars = bars(app, width.saturating_sub(24));
    if !bars.is_empty() {
        let text = vec![
            piece(format!(" {bars}"), Role::Moving, app.palette),
            piece(" tokens/iteration", Role::Dim, app.palette),
        ];
        lines.push(Line::from(cut(text, width)));
    }
    lines
}

fn bars(app: &App, most: usize) -> String {
    let history = &app.run.history;
    let shown = history.len().min(most.clamp(1, 24));
    let tokens: Vec<u64> =
        (history.len() - shown..history.len()).filter_map(|place| history.get(place)).map(|one| one.tokens).collect();
    let Some(highest) = tokens.iter().copied().max().filter(|highest| *highest > 0) else { return String::new() };
    let bar = |tokens: u64| {
        let height = usize::try_from(tokens.saturating_mul(7) / highest).unwrap_or(0);
        BARS.get(height).copied().unwrap_or('█')
    };
    let chart: String = tokens.iter().map(|tokens| bar(*tokens)).collect();
    format!("{chart} {}", tokens.last().map(|last| count(*last)).unwrap_or_default())
}
