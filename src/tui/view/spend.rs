//! What the run has used of what it may use. An estimate says so, an unknown price is never a dollar, pretended
//! money is labelled.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::text::Span as Piece;
use ratatui::widgets::Paragraph;

use crate::domain::budget::Axis;
use crate::domain::budget::Limit;
use crate::domain::cells::cells;
use crate::domain::daily::Today;
use crate::domain::money::MicroUsd;
use crate::domain::money::Price;
use crate::domain::pricing::Pricing;
use crate::domain::text::counted;
use crate::domain::time::Span;
use crate::domain::time::Timestamp;
use crate::domain::time::human;
use crate::domain::visible::title;
use crate::tui::app::App;
use crate::tui::app::Focus;
use crate::tui::text::count;
use crate::tui::text::dollars;
use crate::tui::text::elapsed;
use crate::tui::theme::Role;
use crate::tui::view::cut;
use crate::tui::view::header::active;
use crate::tui::view::pane;
use crate::tui::view::piece;

/// From this share of a limit on, in percent, a warning is shown.
const WARN_PERCENT: u64 = 80;
/// Iterations that the forecast looks back on.
const FORECAST_WINDOW: usize = 5;

/// Rows that the pane needs, its frame included.
pub fn rows_needed(app: &App, width: u16) -> u16 {
    let rows = lines(app, usize::from(width).saturating_sub(2)).len() - unverified(app).len();
    u16::try_from(rows + 2).unwrap_or(u16::MAX)
}

/// Draws the pane.
pub fn draw(frame: &mut Frame<'_>, area: Rect, app: &App) {
    let name = vec![piece("4 ", Role::Dim, app.palette), piece("Spend", Role::Strong, app.palette)];
    let inner = pane(frame, area, app, Focus::Spend, name, &title(&app.run.terms.model.name, 40));
    frame.render_widget(Paragraph::new(lines(app, usize::from(inner.width))), inner);
}

/// The spend in one row.
pub fn draw_strip(frame: &mut Frame<'_>, area: Rect, app: &App) {
    let width = usize::from(area.width);
    let mut spans = vec![piece(" spend ", Role::Dim, app.palette)];
    spans.extend(money(app));
    if let Some(percent) = percent(app, Axis::Cost) {
        spans.push(piece(format!("  {}", gauge(percent, 10)), level(percent), app.palette));
        spans.push(piece(format!(" {percent}%"), level(percent), app.palette));
    }
    if let Some((last, left)) = forecast(app) {
        let left = left.map(|left| format!(" · {}", more(left))).unwrap_or_default();
        spans.push(piece(format!("  last +{}{left}", dollars(last)), Role::Dim, app.palette));
    }
    frame.render_widget(Paragraph::new(Line::from(cut(spans, width))), area);
}

fn lines(app: &App, width: usize) -> Vec<Line<'static>> {
    let dim = |text: String| vec![piece(text, Role::Dim, app.palette)];
    let mut rows: Vec<Vec<Piece<'static>>> = Vec::new();
    let mut first = vec![piece(" ", Role::Text, app.palette)];
    first.extend(money(app));
    if let Some(percent) = percent(app, Axis::Cost) {
        first.push(piece(format!("  {}{percent}%", warning(percent)), level(percent), app.palette));
        rows.push(first);
        rows.push(vec![piece(format!(" {}", gauge(percent, width.saturating_sub(2))), level(percent), app.palette)]);
    } else {
        rows.push(first);
    }
    if app.run.terms.is_pretend() {
        rows.push(vec![piece(" pretend money ", Role::Label, app.palette)]);
    }
    if let Some((last, left)) = forecast(app) {
        let last = format!(" last +{}", dollars(last));
        let left = left.map(more).unwrap_or_default();
        let both = if left.is_empty() { last.clone() } else { format!("{last} · {left}") };
        if cells(&both) <= width {
            rows.push(dim(both));
        } else {
            rows.extend([dim(last), dim(format!(" {left}"))]);
        }
    }
    if let Some(doubt) = doubts(app) {
        rows.push(vec![piece(doubt, Role::Warning, app.palette)]);
    }
    rows.push(dim(tokens(app)));
    rows.push(context(app, width));
    let shares: [&[Axis]; 4] = [&[Axis::Loops], &[Axis::ModelCalls, Axis::ToolCalls], &[Axis::Tokens], &[Axis::Active]];
    rows.extend(shares.into_iter().map(|axes| axes.iter().flat_map(|axis| share(app, *axis)).collect()));
    rows.extend(deadline(app).map(|piece| vec![piece]));
    rows.extend(today(app));
    rows.extend(unverified(app));
    rows.into_iter().map(|row| Line::from(cut(row, width))).collect()
}

/// Spent and limit, or why there is no such figure.
fn money(app: &App) -> Vec<Piece<'static>> {
    let pool = &app.run.pool;
    let spent = pool.spent();
    let mut spans = Vec::new();
    match app.run.pricing {
        Pricing::Unknown | Pricing::Off => {
            spans.push(piece("$? price unknown; tokens count", Role::Warning, app.palette))
        }
        Pricing::Known(price) if price == Price::FREE && spent == MicroUsd(0) => {
            spans.push(piece("free: this model costs nothing", Role::Text, app.palette));
        }
        Pricing::Known(_) => {
            spans.push(piece(dollars(spent), Role::Strong, app.palette));
            let (of, role) = match pool.limits().on(Axis::Cost) {
                Limit::At(limit) => (format!(" of {}", dollars(MicroUsd(limit))), Role::Text),
                Limit::Unlimited => (" of unlimited".to_string(), Role::Bad),
            };
            spans.push(piece(of, role, app.palette));
        }
    }
    spans
}

fn percent(app: &App, axis: Axis) -> Option<u64> {
    let pool = &app.run.pool;
    let is_free = app.run.pricing.price() == Price::FREE && pool.spent() == MicroUsd(0);
    match pool.limits().on(axis) {
        Limit::At(_) if axis == Axis::Cost && is_free => None,
        Limit::At(limit) => Some(of(used(app, axis), limit)),
        Limit::Unlimited => None,
    }
}

fn used(app: &App, axis: Axis) -> u64 {
    if axis == Axis::Active { active(app).0 } else { app.run.pool.used(axis) }
}

fn of(part: u64, whole: u64) -> u64 {
    let share = u128::from(part) * 100 / u128::from(whole.max(1));
    u64::try_from(share).unwrap_or(u64::MAX)
}

fn level(percent: u64) -> Role {
    match percent {
        0..WARN_PERCENT => Role::Good,
        WARN_PERCENT..100 => Role::Warning,
        100.. => Role::Bad,
    }
}

fn warning(percent: u64) -> &'static str {
    if percent >= WARN_PERCENT { "! " } else { "" }
}

fn gauge(percent: u64, width: usize) -> String {
    let percent = usize::try_from(percent.min(100)).unwrap_or(100);
    let filled = (width * percent).div_ceil(100).min(width);
    format!("{}{}", "█".repeat(filled), "░".repeat(width - filled))
}

/// What the last iteration cost, and how many more of that kind the limit bears, as long as more can come.
fn forecast(app: &App) -> Option<(MicroUsd, Option<u64>)> {
    let run = &app.run;
    let history = &run.history;
    let closed = (history.len().saturating_sub(FORECAST_WINDOW)..history.len()).filter_map(|place| history.get(place));
    let recent: Vec<u64> = closed.map(|one| one.spent.0).filter(|spent| *spent > 0).collect();
    let open = run.iteration.spent;
    let last = if run.iteration.is_open && open > MicroUsd(0) { open } else { MicroUsd(*recent.last()?) };
    let mean = recent.iter().sum::<u64>().checked_div(u64::try_from(recent.len()).ok()?);
    let left = run.pool.limits().on(Axis::Cost).left(run.pool.spent().0).filter(|_| !run.is_ended());
    Some((last, left.zip(mean).and_then(|(left, mean)| left.checked_div(mean))))
}

/// So many more of that kind, as far as the money goes: other limits may end the run before.
fn more(left: u64) -> String {
    match left {
        0 => "too little for more".to_string(),
        1..1_000 => format!("pays ~{}", counted(left, "iteration")),
        1_000.. => "enough for long".to_string(),
    }
}

/// The parts of the figure that nobody vouches for, and what is held at the moment.
fn doubts(app: &App) -> Option<String> {
    let pool = &app.run.pool;
    let mut parts = Vec::new();
    if pool.estimated() > MicroUsd(0) {
        parts.push(format!("est. {}", dollars(pool.estimated())));
    }
    if pool.unverified() > MicroUsd(0) {
        parts.push(format!("unverified {}", dollars(pool.unverified())));
    }
    if let Some(held) = pool.reserved().filter(|held| held.amount > MicroUsd(0)) {
        parts.push(format!("held {}", dollars(held.amount)));
    }
    (!parts.is_empty()).then(|| format!(" {}", parts.join(" · ")))
}

fn tokens(app: &App) -> String {
    let usage = app.run.pool.usage();
    let cache = of(usage.cache_read, usage.prompt());
    format!(" in {}  out {}  cache {cache}%", count(usage.prompt()), count(usage.output))
}

fn context(app: &App, width: usize) -> Vec<Piece<'static>> {
    let window = app.run.terms.model.window;
    let percent = of(app.run.estimate.input, window);
    let bar = gauge(percent, width.saturating_sub(30).clamp(4, 12));
    vec![
        piece(" context ", Role::Dim, app.palette),
        piece(bar, level(percent), app.palette),
        piece(format!(" {}{percent}% of {}", warning(percent), count(window)), Role::Dim, app.palette),
    ]
}

/// What all runs together spent in 24 hours, for a run that spends real money.
fn today(app: &App) -> Option<Vec<Piece<'static>>> {
    let Today { spent, limit } = app.today?;
    let text = match limit {
        Limit::At(most) => {
            let percent = of(spent.0, most);
            let text = format!(" {}all runs 24h: {} of {}", warning(percent), dollars(spent), dollars(MicroUsd(most)));
            let role = if percent >= WARN_PERCENT { level(percent) } else { Role::Dim };
            return Some(vec![piece(text, role, app.palette)]);
        }
        Limit::Unlimited => format!(" all runs 24h: {} of unlimited", dollars(spent)),
    };
    Some(vec![piece(text, Role::Bad, app.palette)])
}

/// The charges that nobody could verify, and the line that corrects one. Where there is no room, the pane alone
/// (zoom) has it.
fn unverified(app: &App) -> Vec<Vec<Piece<'static>>> {
    let doubtful = app.run.pool.doubtful();
    let mut rows: Vec<Vec<Piece<'static>>> = doubtful
        .map(|(id, amount)| vec![piece(format!(" unverified {id} {}", dollars(amount)), Role::Warning, app.palette)])
        .collect();
    if !rows.is_empty() {
        let text = format!(" tiller correct {} CALL DOLLARS", app.run.id.short());
        rows.push(vec![piece(text, Role::Dim, app.palette)]);
    }
    rows
}

/// How far away the deadline is, where there is one. It passes on also while the run waits.
fn deadline(app: &App) -> Option<Piece<'static>> {
    let Limit::At(at) = app.run.pool.limits().deadline else { return None };
    if app.run.is_ended() {
        return None;
    }
    let left = Timestamp(at).since(app.now.at);
    let percent = of(app.now.at.since(app.run.created).0, at.saturating_sub(app.run.created.0));
    let role = if percent >= WARN_PERCENT { level(percent) } else { Role::Dim };
    let text = match left {
        Span(0) => format!(" {}deadline past", warning(percent)),
        left => format!(" {}deadline in {}", warning(percent), human(left)),
    };
    Some(piece(text, role, app.palette))
}

fn share(app: &App, axis: Axis) -> Vec<Piece<'static>> {
    let show = |amount: u64| match axis {
        Axis::Tokens => count(amount),
        Axis::Active => elapsed(Span(amount)),
        Axis::Deadline | Axis::Loops | Axis::ModelCalls | Axis::ToolCalls | Axis::Cost => axis.show(amount),
    };
    let name = match axis {
        Axis::Active => "time",
        Axis::Deadline => "deadline",
        // Not those of planning and wrapping up: the header has the number of the open one.
        Axis::Loops => "iterations counted",
        Axis::ModelCalls => "model",
        Axis::ToolCalls => "tools",
        Axis::Tokens => "tokens",
        Axis::Cost => "cost",
    };
    let most = match app.run.pool.limits().on(axis) {
        Limit::At(limit) => show(limit),
        Limit::Unlimited => "unlimited".to_string(),
    };
    let percent = percent(app, axis).unwrap_or(0);
    let role = match app.run.pool.limits().on(axis) {
        Limit::Unlimited => Role::Bad,
        Limit::At(_) if percent >= WARN_PERCENT => level(percent),
        Limit::At(_) => Role::Dim,
    };
    vec![piece(format!(" {}{name} {}/{most} ", warning(percent), show(used(app, axis))), role, app.palette)]
}
