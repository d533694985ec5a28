//! What waits for the operator, in full, with why it is asked. Untrusted text stands inside the numbered gutter; the
//! frame, the keys and the digest stand outside it, where no content can come.

use ratatui::Frame;
use ratatui::layout::Constraint;
use ratatui::layout::Layout;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::text::Span as Piece;
use ratatui::widgets::Paragraph;

use crate::domain::approval::Decision;
use crate::domain::cells::cells;
use crate::domain::cells::chop;
use crate::domain::cells::wrap;
use crate::domain::cells::wrap_at_most;
use crate::domain::command::OnCall;
use crate::domain::run::Waits;
use crate::domain::sandbox::Manner;
use crate::domain::text::counted;
use crate::domain::tool::Digest;
use crate::domain::visible::MARK_ON;
use crate::tui::action::Action;
use crate::tui::action::Choice;
use crate::tui::app::App;
use crate::tui::app::Focus;
use crate::tui::app::Seen;
use crate::tui::app::View;
use crate::tui::emphasis::Emphasis;
use crate::tui::emphasis::within;
use crate::tui::guard::Shown;
use crate::tui::keymap;
use crate::tui::keymap::Binding;
use crate::tui::keymap::place::Place;
use crate::tui::moving::CLAIM_WAITS;
use crate::tui::scroll::lay;
use crate::tui::text::age;
use crate::tui::text::marked;
use crate::tui::text::named;
use crate::tui::text::stressed;
use crate::tui::theme::Role;
use crate::tui::view::cut;
use crate::tui::view::pane;
use crate::tui::view::piece;
use crate::tui::view::two_sided;
use crate::tui::waiting::Body;
use crate::tui::waiting::BodyLine;
use crate::tui::waiting::Form;
use crate::tui::waiting::Item;
use crate::tui::waiting::grave_line;

/// Below this width the pane has a number for its name.
pub(crate) const NARROW: u16 = 40;
/// Below this width the length of a call is told in letters.
const SHORT: u16 = 56;
/// Rows of the list of waiting calls at most; the others are counted.
const LISTED: usize = 4;
/// Rows of a call that are shown before anything else of it.
const BODY_ROWS_LEAST: usize = 3;
/// Rows of a call that the pane asks room for at most.
const BODY_ROWS_WANTED: usize = 40;

/// Rows that the pane would like to have, its frame included, `most` at most.
pub fn rows_needed(app: &App, width: u16, most: u16) -> u16 {
    let Some(item) = app.item() else { return 3.min(most) };
    let inner = usize::from(width).saturating_sub(2);
    let mut body = 0;
    for line in &item.body.lines {
        body += body_rows(&item.body, line, inner, app).len();
        if body >= BODY_ROWS_WANTED {
            break;
        }
    }
    let why = why_rows(app, item, inner, usize::from(most), Told::InFull).len();
    let rows = list_rows(app) + head_lines(app, item, inner).len() + why + body + 1 + 2;
    u16::try_from(rows).unwrap_or(u16::MAX).min(most)
}

/// Draws the pane, and says what it showed.
pub fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, seen: &mut Seen) {
    let count = app.run.waiting_count();
    let role = if count > 0 { Role::Attention } else { Role::Dim };
    let is_narrow = area.width < NARROW;
    let name = vec![
        piece("3 ", Role::Dim, app.palette),
        piece(if is_narrow { "" } else { "Waiting for you  " }, role, app.palette),
        piece(if is_narrow { format!("({count})") } else { count.to_string() }, role, app.palette),
    ];
    let right = app.item().map(|item| extent(item, area.width)).unwrap_or_default();
    let inner = pane(frame, area, app, Focus::Waiting, name, &right);
    let Some(item) = app.item() else {
        let nothing = || "nothing: what needs your decision comes here and waits as long as it must".to_string();
        let again = |call| format!("{call} is looked at again, as you changed it");
        let (text, role) = match app.run.confirming() {
            Some(_) => (CLAIM_WAITS.to_string(), Role::Attention),
            None => (app.looked_at_again().map_or_else(nothing, again), Role::Dim),
        };
        let rows = wrap_at_most(&text, usize::from(inner.width).saturating_sub(2), usize::from(inner.height).max(1));
        let lines = rows.into_iter().map(|row| Line::from(piece(format!(" {row}"), role, app.palette)));
        return frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), inner);
    };
    let width = usize::from(inner.width);
    let height = usize::from(inner.height);
    // The call itself comes first: where there is too little room, the list goes, then what the call reaches. The reason
    // is said in full wherever a row of the call stays beside it.
    let body_least = item.body.lines.len().min(BODY_ROWS_LEAST);
    let head = head_lines(app, item, width);
    let why = why_rows(app, item, width, height, Told::InFull);
    // The keys have a row as well.
    let beside = head.len() + 1;
    let listed = if list_rows(app) + why.len() + body_least + beside > height { 0 } else { list_rows(app) };
    // What the tool and the digest are, and a row of the call, are shown on any screen.
    let most = height.saturating_sub(listed + beside + 1);
    let is_tight = listed + why.len() + body_least + beside > height;
    let why = if is_tight { why_rows(app, item, width, most, Told::InShort) } else { why };
    let [list, top, reason, body, keys] = Layout::vertical([
        Constraint::Length(rows(listed)),
        Constraint::Length(rows(head.len())),
        Constraint::Length(rows(why.len())),
        Constraint::Min(1),
        Constraint::Length(1),
    ])
    .areas(inner);
    frame.render_widget(Paragraph::new(list_lines(app, item, width)), list);
    frame.render_widget(Paragraph::new(head), top);
    frame.render_widget(Paragraph::new(why), reason);
    let at_end = draw_body(frame, body, app, item, seen);
    let has_keys = app.focus == Focus::Waiting;
    if has_keys && body.height > 0 {
        seen.item = Some(shown(app, item, body, at_end));
    }
    draw_keys(frame, keys, app, item, Keys { has_keys, at_end });
    draw_code(frame, area, app, item);
}

/// How long the call is, for the frame of the pane.
fn extent(item: &Item, width: u16) -> String {
    let (lines, bytes) = item.extent;
    if width < SHORT {
        return format!("{lines}L {bytes}B");
    }
    format!("{} · {}", counted(lines, "line"), counted(bytes, "byte"))
}

/// Draws the code of a grave call into the frame below, where no content can come.
pub(crate) fn draw_code(frame: &mut Frame<'_>, area: Rect, app: &App, item: &Item) {
    let digest = item.digest.as_ref().filter(|_| item.grave.is_some());
    let text = digest.map(|digest| format!(" code {} ", digest.code(&app.run.id, Manner::Usual))).unwrap_or_default();
    let wide = u16::try_from(cells(&text)).unwrap_or(u16::MAX);
    if wide > 0 && wide + 2 <= area.width && area.height > 1 {
        let place = Rect { x: area.x + 1, y: area.bottom() - 1, width: wide, height: 1 };
        frame.render_widget(Paragraph::new(Line::from(piece(text, Role::Attention, app.palette))), place);
    }
}

/// What a frame tells the guard.
pub(crate) fn shown(app: &App, item: &Item, place: Rect, end: bool) -> Shown {
    Shown { call: item.call, digest: item.digest.clone(), place, end, armed: app.guard.is_armed() }
}

fn rows(count: usize) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}

fn list_rows(app: &App) -> usize {
    match app.waiting.len() {
        0 | 1 => 0,
        count => count.min(LISTED) + 1,
    }
}

fn list_lines(app: &App, selected: &Item, width: usize) -> Vec<Line<'static>> {
    let place = app.waiting.iter().position(|item| item.call == selected.call).unwrap_or(0);
    let first = (place + 1).saturating_sub(LISTED);
    let mut lines: Vec<Line<'static>> = Vec::new();
    for item in app.waiting.iter().skip(first).take(LISTED) {
        let is_selected = item.call == selected.call;
        let (mark, role) = if is_selected { ("▸", Role::Strong) } else { (" ", Role::Text) };
        let left = vec![piece(format!(" {mark} {}  {}", item.tool, item.title), role, app.palette)];
        let right = format!("{} · {} ", kind(app, item), age(app.now.at.since(item.since)));
        lines.push(two_sided(left, vec![piece(right, Role::Dim, app.palette)], width));
    }
    let hidden = app.waiting.len().saturating_sub(lines.len());
    let more = if hidden > 0 { format!("─ {hidden} more ") } else { String::new() };
    let rule = format!("{more}{}", "─".repeat(width.saturating_sub(more.chars().count())));
    lines.push(Line::from(piece(rule, Role::Frame, app.palette)));
    lines
}

/// What an item of the list waits for; of a call that waits for a decision, whether the list allows it.
fn kind(app: &App, item: &Item) -> &'static str {
    match item.waits {
        Waits::Decision if item.grave.is_some() => "grave",
        Waits::Decision if app.guard.was_read(item.call, item.digest.as_ref()) => "seen",
        Waits::Decision => "not seen",
        Waits::Outcome => "outcome unknown",
        Waits::Answer => "question",
    }
}

/// The tool, what it is about, and the digest: side by side, where that is too narrow below one another.
fn head_lines(app: &App, item: &Item, width: usize) -> Vec<Line<'static>> {
    let mark = match item.waits {
        Waits::Decision => "‖",
        Waits::Outcome => "?",
        Waits::Answer => "›",
    };
    let mut left = vec![piece(format!(" {mark} {}", item.tool), Role::Attention, app.palette)];
    let is_named = item.waits != Waits::Answer;
    if is_named {
        left.push(piece("  ", Role::Text, app.palette));
        left.extend(named(&item.title, Role::Strong, app.palette));
    }
    let age = age(app.now.at.since(item.since));
    match item.digest.as_ref().map(Digest::short) {
        Some(digest) if width + 2 < usize::from(NARROW) => {
            let below = format!("   {} {digest}", item.call);
            let aged = format!("{below} {age}");
            let below = piece(if cells(&aged) <= width { aged } else { below }, Role::Dim, app.palette);
            vec![Line::from(cut(left, width)), Line::from(cut(vec![below], width))]
        }
        digest => {
            let right = format!("{age} · {} {} ", item.call, digest.unwrap_or_default());
            vec![two_sided(left, vec![piece(right, Role::Dim, app.palette)], width)]
        }
    }
}

/// The reason, as far as it is not said as what makes the call grave.
fn reason(item: &Item) -> &str {
    let changed = if item.is_changed { "as you changed it, " } else { "" };
    let is_said = |grave: &&String| item.why == format!("asked: {changed}{grave}");
    item.grave.as_ref().filter(is_said).map_or(item.why.as_str(), |_| "")
}

/// How much is told of why a call waits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    /// All of it.
    InFull,
    /// The reason in full, the rest as far as its last row goes.
    InShort,
}

/// That the call is grave, what else to beware of, why it is asked about, and what it reaches, in `most` rows at most.
fn why_rows(app: &App, item: &Item, width: usize, most: usize, told: Told) -> Vec<Line<'static>> {
    let room = width.saturating_sub(4);
    // The reason often says the reach already.
    let reach = if item.why.contains(&item.reach) { "" } else { item.reach.as_str() };
    // What the operator did not see yet when they changed it stands apart, as what is grave does.
    let (changed, reason) = if item.is_changed { (reason(item), "") } else { ("", reason(item)) };
    let all = [reason, reach].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ");
    let network = if item.network { "it would have the network" } else { "" };
    let parts = [
        (grave_line(item).unwrap_or_default(), Role::Bad, usize::MAX),
        (changed.to_string(), Role::Bad, usize::MAX),
        (network.to_string(), Role::Bad, usize::MAX),
        (item.changed.clone(), Role::Warning, 1),
        (item.warning.clone(), Role::Warning, 1),
        (all, Role::Dim, wrap(reason, room).len()),
    ];
    let mut rows: Vec<Line<'static>> = Vec::new();
    for (text, role, short) in parts.iter().filter(|(text, ..)| !text.is_empty()) {
        let left = most.saturating_sub(rows.len());
        let most = if told == Told::InShort { left.min(*short) } else { left };
        rows.extend(wrap_at_most(text, room, most).into_iter().map(|row| why_row(&row, *role, width, app)));
    }
    rows
}

fn why_row(row: &str, role: Role, width: usize, app: &App) -> Line<'static> {
    let mut spans = vec![piece("   ", Role::Text, app.palette)];
    spans.extend(marked(row, role, app.palette));
    Line::from(cut(spans, width))
}

fn draw_body(frame: &mut Frame<'_>, area: Rect, app: &App, item: &Item, seen: &mut Seen) -> bool {
    let (lines, view, at_end) = body_view(&item.body, app.body_scroll, area, app);
    frame.render_widget(Paragraph::new(lines), area);
    seen.body = Some(view);
    at_end
}

/// The visible rows of a body, where it stands, and whether the last line that is decided about is among them.
pub(crate) fn body_view(
    body: &Body,
    scroll: crate::tui::scroll::Scroll,
    area: Rect,
    app: &App,
) -> (Vec<Line<'static>>, View, bool) {
    let height = usize::from(area.height);
    let width = usize::from(area.width);
    let rows = |place: usize| body.lines.get(place).map(|line| body_rows(body, line, width, app)).unwrap_or_default();
    let laid = lay(body.lines.len(), scroll, height, rows);
    let view = View { scroll: laid.scroll(), top: (laid.first, laid.row), height };
    let mut reached = 0;
    let mut last = laid.first;
    while last < body.decisive && reached < height {
        reached += rows(last).len() - if last == laid.first { laid.row } else { 0 };
        last += 1;
    }
    let is_past = laid.first >= body.decisive;
    let at_end = is_past || (last >= body.decisive && reached <= height);
    (laid.lines, view, at_end && height > 0)
}

/// A line of a body: its number, a rule, its text. A row without a number goes on from the one above.
pub(crate) fn body_rows(body: &Body, line: &BodyLine, width: usize, app: &App) -> Vec<Line<'static>> {
    let digits = body.digits();
    let room = width.saturating_sub(digits + 4);
    let is_heading = line.number.is_none() && line.role == Role::Strong;
    let pieces = match body.form {
        Form::Exact | Form::Named => exact_rows(line, room),
        Form::Prose => wrap(&line.text, room).into_iter().map(|text| (text, Emphasis::new())).collect(),
    };
    let row = |(place, (text, emphasis)): (usize, (String, Emphasis))| {
        let number = line.number.filter(|_| place == 0).map(|number| number.to_string()).unwrap_or_default();
        let rule = if is_heading { ' ' } else { '│' };
        let mut spans: Vec<Piece<'static>> =
            vec![piece(format!(" {number:>digits$} {rule} "), Role::Frame, app.palette)];
        spans.extend(match body.form {
            Form::Named => named(&text, line.role, app.palette),
            Form::Exact | Form::Prose => stressed(&text, &emphasis, line.role, app.palette),
        });
        Line::from(cut(spans, width))
    };
    pieces.into_iter().enumerate().map(row).collect()
}

/// A line cut into rows, each with what of it is emphasised; a cell that is free where the line goes on is told from a
/// blank of the text.
fn exact_rows(line: &BodyLine, room: usize) -> Vec<(String, Emphasis)> {
    let mut start = 0;
    let cut = |row: &str| {
        let part = start..start + row.len();
        start = part.end;
        (row.to_string(), within(&line.emphasis, part))
    };
    let mut rows: Vec<_> = chop(&line.text, room).into_iter().map(cut).collect();
    let going_on = rows.len() - usize::from(!line.goes_on);
    for (row, _) in rows.iter_mut().take(going_on).filter(|(row, _)| cells(row) < room) {
        row.push(MARK_ON);
    }
    rows
}

/// How the keys of a call are drawn.
pub(crate) struct Keys {
    /// Whether they would reach it.
    pub(crate) has_keys: bool,
    /// Whether this frame shows its last line.
    pub(crate) at_end: bool,
}

/// Draws the keys that decide, and what stands against them: beside them, else on the frame below.
pub(crate) fn draw_keys(frame: &mut Frame<'_>, area: Rect, app: &App, item: &Item, keys: Keys) {
    let width = usize::from(area.width);
    let (line, hint) = keys_line(app, item, width, keys);
    frame.render_widget(Paragraph::new(line), area);
    let wide = u16::try_from(cells(&hint) + 2).unwrap_or(u16::MAX);
    if hint.is_empty() || wide > area.width {
        return;
    }
    let below = Rect { x: area.right() - wide, y: area.bottom(), width: wide, height: 1 };
    let text = piece(format!(" {hint} "), Role::Warning, app.palette);
    frame.render_widget(Paragraph::new(Line::from(text)), below.intersection(frame.area()));
}

/// The keys that decide, drawn as working only while they do, and what is to be said of them and had no room.
fn keys_line(app: &App, item: &Item, width: usize, keys: Keys) -> (Line<'static>, String) {
    if app.is_sent(item.call) {
        let text = format!(" sent: {}; waiting for its record", sent(app, item));
        return (Line::from(cut(vec![piece(text, Role::Moving, app.palette)], width)), String::new());
    }
    if !keys.has_keys {
        let key = keymap::key_of(Action::GoToWaiting);
        let text = format!(" {key} goes here");
        return (Line::from(cut(vec![piece(text, Role::Dim, app.palette)], width)), String::new());
    }
    let place = match item.waits {
        Waits::Decision => Place::Decision,
        Waits::Outcome => Place::Outcome,
        Waits::Answer => Place::Question,
    };
    let is_read = keys.at_end || app.guard.was_read(item.call, item.digest.as_ref());
    let mut spans = Vec::new();
    // Of one call alone the list says nothing that the call does not say.
    let is_of_use = |action| action != Action::Decide(Choice::AllowList) || app.waiting.len() > 1;
    let mut bindings: Vec<&Binding> =
        keymap::rows(place).filter(|row| app.in_vain(row.action).is_none() && is_of_use(row.action)).collect();
    if width + 2 < usize::from(NARROW) {
        // Where two keys have room, one of them says no.
        let is_plain = |action| matches!(action, Action::Decide(Choice::AllowOnce | Choice::Deny));
        bindings.sort_by_key(|row| !is_plain(row.action));
    }
    for row in bindings {
        let works = match row.action {
            Action::Decide(choice) => app.guard.is_armed() && (is_read || !choice.lets_run()),
            _ => true,
        };
        let name = row.keys.first().map(|chord| chord.short()).unwrap_or_default();
        let text = label(app, item, row, width);
        let (key, label) = match works {
            true => (
                piece(format!("[{name}]"), Role::Key, app.palette),
                piece(format!(" {text} "), Role::Text, app.palette),
            ),
            false => {
                (piece(format!(" {name} "), Role::Dim, app.palette), piece(format!(" {text} "), Role::Dim, app.palette))
            }
        };
        spans.extend([key, label]);
    }
    let right = match (item.waits, is_read, app.guard.is_armed()) {
        (Waits::Answer, _, _) => "",
        (Waits::Decision | Waits::Outcome, false, _) => "G shows the end ",
        (Waits::Decision | Waits::Outcome, true, false) => "hold still ",
        (Waits::Decision | Waits::Outcome, true, true) => "",
    };
    // A key that does not fit is left out whole, and the help has it; the hint gives way to all of them.
    let mut shown = vec![piece(" ", Role::Text, app.palette)];
    let mut used = 1;
    let mut is_whole = true;
    for pair in spans.chunks(2) {
        used += pair.iter().map(|span| cells(&span.content)).sum::<usize>();
        // The space behind it may hang over the edge.
        if used > width + 1 {
            is_whole = false;
            break;
        }
        shown.extend(pair.iter().cloned());
        if let Some(label) = shown.last_mut().filter(|_| used > width) {
            label.content = label.content.trim_end().to_string().into();
        }
    }
    if used + cells(right) <= width {
        return (two_sided(shown, vec![piece(right, Role::Warning, app.palette)], width), String::new());
    }
    let more = if is_whole { String::new() } else { format!("{} more keys", keymap::key_of(Action::Help)) };
    let hints = [right.trim_end().to_string(), more];
    let hint = hints.into_iter().filter(|hint| !hint.is_empty()).collect::<Vec<_>>().join(" · ");
    (Line::from(cut(shown, width)), hint)
}

/// What a key does to this very call.
fn label(app: &App, item: &Item, row: &Binding, width: usize) -> String {
    let is_grave = item.grave.is_some();
    match row.action {
        Action::Decide(Choice::AllowOnce) if is_grave && width + 2 < usize::from(NARROW) => "code".to_string(),
        Action::Decide(Choice::AllowOnce) if is_grave => "code…".to_string(),
        Action::Decide(Choice::RunAgain) if is_grave => "rerun, code…".to_string(),
        // What waits already goes with it.
        Action::Decide(Choice::AllowTool) => match app.of_its_tool(item.call) {
            0 => row.label.to_string(),
            others => format!("{} +{others}", row.label),
        },
        Action::Decide(Choice::AllowList) => {
            format!("{} seen", app.waiting.iter().filter(|item| app.is_of_list(item)).count())
        }
        _ => row.label.to_string(),
    }
}

fn sent(app: &App, item: &Item) -> &'static str {
    match app.sent.iter().find_map(|sent| sent.command.about(item.call)) {
        Some(OnCall::Decided(Decision::AllowOnce)) => "allow once",
        Some(OnCall::Decided(Decision::AllowRun)) => "allow for this run",
        Some(OnCall::Decided(Decision::AllowTool)) => "allow the tool for this run",
        Some(OnCall::Decided(Decision::AllowRule(_))) => "allow by a rule",
        Some(OnCall::Decided(Decision::AllowUnboxed)) => "allow once, outside of the box",
        Some(OnCall::Decided(Decision::Edit(_))) => "allow as you changed it",
        Some(OnCall::Decided(Decision::Deny(_))) => "deny",
        Some(OnCall::Listed) => "allow all of the list",
        Some(OnCall::Resolved) => "what became of it",
        Some(OnCall::Answered) => "your answer",
        None => "your word",
    }
}
