//! The rows on top: what the run is for, where it stands, and what can be done about it.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::text::Span as Piece;
use ratatui::widgets::Paragraph;

use crate::domain::budget::Axis;
use crate::domain::cells::cells;
use crate::domain::cells::wrap_at_most;
use crate::domain::command::Control;
use crate::domain::command::Pause;
use crate::domain::limits;
use crate::domain::run::Run;
use crate::domain::sandbox::Level;
use crate::domain::status::Finish;
use crate::domain::status::ParkReason;
use crate::domain::status::Status;
use crate::domain::time::Span;
use crate::domain::trust::Trust;
use crate::domain::visible::title;
use crate::policy::spending;
use crate::tui::app::App;
use crate::tui::text::elapsed;
use crate::tui::theme::Role;
use crate::tui::view::LOW;
use crate::tui::view::piece;
use crate::tui::view::two_sided;

/// Rows of what can be done, at most.
const REMEDY_ROWS: usize = 3;

/// Draws the header.
pub fn draw(frame: &mut Frame<'_>, area: Rect, app: &App) {
    let most = usize::from(area.height.saturating_sub(2));
    frame.render_widget(Paragraph::new(lines(app, usize::from(area.width), most)), area);
}

/// Rows that the header needs. On a low screen it has two, and while something waits, whose pane says what to do.
pub fn rows_needed(app: &App, screen: Rect) -> u16 {
    if screen.height < LOW || !app.waiting.is_empty() {
        return 2;
    }
    u16::try_from(lines(app, usize::from(screen.width), REMEDY_ROWS).len()).unwrap_or(2)
}

/// What can be done stands beside the status where it has room, else in at most `most` rows of its own: half a
/// remedy is none.
fn lines(app: &App, width: usize, most: usize) -> Vec<Line<'static>> {
    let (mut status, pace, more) = (status(app), pace(app, width), more(app));
    let used: usize = status.iter().chain(&pace).map(|span| cells(&span.content)).sum();
    // That it is being stopped is said nowhere else for long; the start of that is better than nothing.
    let is_cut = most == 0 && app.run.is_running();
    let is_beside = is_cut || used + cells(&more) + 4 <= width;
    if is_beside && !more.is_empty() {
        status.push(piece(format!(" · {more}"), Role::Text, app.palette));
    }
    let mut rows = vec![two_sided(goal(app), labels(app, width), width), two_sided(status, pace, width)];
    if !is_beside && most > 0 {
        let below = wrap_at_most(&more, width.saturating_sub(4), most);
        rows.extend(below.into_iter().map(|row| Line::from(piece(format!("   {row}"), Role::Text, app.palette))));
    }
    rows
}

fn goal(app: &App) -> Vec<Piece<'static>> {
    let goal = title(app.run.terms.goal.as_str(), limits::TODO_TITLE_MAX_CHARS);
    vec![
        piece(" tiller ", Role::Strong, app.palette),
        piece(format!("{}  ", app.run.id.short()), Role::Dim, app.palette),
        piece(goal, Role::Text, app.palette),
    ]
}

fn labels(app: &App, width: usize) -> Vec<Piece<'static>> {
    let mut labels = Vec::new();
    if app.run.terms.rehearsal {
        let text = if width < 100 { " REHEARSAL " } else { " REHEARSAL, pretend money " };
        labels.push(piece(text, Role::Label, app.palette));
    }
    let trust = app.run.trust;
    let role = if trust > Trust::Ask { Role::Label } else { Role::Dim };
    labels.push(piece(format!(" trust {trust} "), role, app.palette));
    if width >= 60 {
        let role = if app.level == Level::Partial { Role::Warning } else { Role::Dim };
        labels.push(piece(format!("  sandbox {} ", app.level), role, app.palette));
    }
    labels
}

fn status(app: &App) -> Vec<Piece<'static>> {
    let (mark, role) = mark(&app.run.status);
    vec![piece(format!(" {mark} {}", phrase(&app.run)), role, app.palette)]
}

/// The mark of a status, and how it is shown.
pub(crate) fn mark(status: &Status) -> (&'static str, Role) {
    match status {
        Status::Queued => ("○", Role::Dim),
        Status::Running => ("▸", Role::Moving),
        Status::Parked(_) => ("‖", Role::Attention),
        Status::Completed(Finish::Verified) => ("✓", Role::Good),
        Status::Completed(Finish::AcceptedUnverified | Finish::AcceptedByOperator) => ("◆", Role::Attention),
        Status::Failed(_) => ("✗", Role::Bad),
        Status::Cancelled => ("–", Role::Dim),
    }
}

fn phrase(run: &Run) -> String {
    let phase = run.iteration.phase.word();
    match &run.status {
        Status::Running if run.iteration.is_open => format!("running: {phase}"),
        Status::Queued
        | Status::Running
        | Status::Parked(_)
        | Status::Completed(_)
        | Status::Failed(_)
        | Status::Cancelled => run.status.phrase_now(run.waiting_count()),
    }
}

/// What happens next, or what can be done.
fn more(app: &App) -> String {
    let stopping = match app.stopping().filter(|_| app.run.is_running()) {
        Some(Control::Pause(Pause::AfterIteration)) => "pausing at the end of this iteration",
        Some(Control::Pause(Pause::AfterTool)) => "pausing after the running call",
        Some(Control::Pause(Pause::Now)) => "stopping the running call",
        Some(Control::Leave) => "leaving",
        Some(Control::Cancel(_)) => "cancelling",
        None => "",
    };
    if !stopping.is_empty() {
        return stopping.to_string();
    }
    match &app.run.status {
        Status::Parked(ParkReason::RateLimited { until } | ParkReason::ProviderWait { until }) => {
            format!("tried again in {}; resume tries at once", elapsed(until.since(app.now.at)))
        }
        Status::Parked(_) => spending::remedy(&app.run).unwrap_or_default(),
        Status::Queued | Status::Running | Status::Completed(_) | Status::Failed(_) | Status::Cancelled => {
            String::new()
        }
    }
}

fn pace(app: &App, width: usize) -> Vec<Piece<'static>> {
    // Not every iteration counts towards the limit, so the number and what is left are told apart. Of an
    // ended run nothing is left to be used.
    let n = app.run.iteration.n;
    let left = match app.run.pool.limits().on(Axis::Loops).left(app.run.pool.used(Axis::Loops)) {
        Some(left) if !app.run.is_ended() => format!(", {left} left"),
        Some(_) | None => String::new(),
    };
    let active = elapsed(active(app));
    let text = match width {
        0..60 => format!("  {n} "),
        60..100 => format!("  iter {n}{left} · {active} "),
        _ => format!("  iteration {n}{left} · active {active} "),
    };
    vec![piece(text, Role::Dim, app.palette)]
}

/// Active time up to now.
pub(crate) fn active(app: &App) -> Span {
    let recorded = Span(app.run.pool.used(Axis::Active));
    let since = if app.run.is_running() { app.now.at.since(app.run.at) } else { Span(0) };
    Span(recorded.plus(since).0 / 1_000 * 1_000)
}
