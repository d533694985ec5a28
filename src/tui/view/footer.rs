//! The rows at the bottom: what the run wants or what just happened, the text field, and the keys that work here.

use ratatui::Frame;
use ratatui::layout::Position;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Clear;
use ratatui::widgets::Paragraph;

use crate::domain::cells::cells;
use crate::domain::cells::wrap_at_most;
use crate::domain::command::Policy;
use crate::domain::status::ParkReason;
use crate::domain::status::Status;
use crate::domain::terms::Check;
use crate::domain::text::one_line;
use crate::domain::visible::transcript;
use crate::tui::action::Action;
use crate::tui::app::App;
use crate::tui::app::Focus;
use crate::tui::composer::Composer;
use crate::tui::keymap;
use crate::tui::keymap::Binding;
use crate::tui::keymap::place::Place;
use crate::tui::notice::Lasts;
use crate::tui::popup::Popup;
use crate::tui::theme::Palette;
use crate::tui::theme::Role;
use crate::tui::view::LOW;
use crate::tui::view::cut;
use crate::tui::view::piece;
use crate::tui::view::zoom_changes;

/// Rows that the text field grows to.
const COMPOSER_ROWS: u16 = 6;
/// Longest part of a question that is shown there, in characters.
const QUESTION_MAX_CHARS: usize = 120;
/// Rows of the sentence above it, at most.
const BANNER_ROWS: usize = 3;

/// Rows that the text field needs.
pub fn composer_rows(app: &App, area: Rect) -> u16 {
    let width = usize::from(area.width).saturating_sub(cells(prompt(app)) + 1);
    let rows = app.composer.rows(width).0.len();
    u16::try_from(rows).unwrap_or(u16::MAX).clamp(1, COMPOSER_ROWS.min(area.height / 4).max(1))
}

/// Draws the sentence above the text field.
pub fn draw_banner(frame: &mut Frame<'_>, area: Rect, app: &App) {
    let most = rows_of_one(app, frame.area()).min(usize::from(area.height));
    let lines = banner_lines(app, usize::from(area.width), most);
    frame.render_widget(Paragraph::new(lines), area);
}

/// Rows that the sentence has, or the two where one of them calls the operator.
pub fn banner_rows(app: &App, screen: Rect) -> u16 {
    rows(&banner_lines(app, usize::from(screen.width), rows_of_one(app, screen)))
}

/// Rows that a sentence may have. That is one on a low screen, and while the keys are on what waits: that must not move,
/// because its keys rest when it does.
fn rows_of_one(app: &App, screen: Rect) -> usize {
    let is_decided = app.focus == Focus::Waiting && !app.waiting.is_empty();
    if screen.height < LOW || is_decided { 1 } else { BANNER_ROWS }
}

fn rows(lines: &[Line<'static>]) -> u16 {
    u16::try_from(lines.len()).unwrap_or(1)
}

/// Draws the sentence over the rows at the bottom where it has no row of its own to be read in whole: over the keys, and
/// over a text field in which nothing is written, which are not in use then, or under what is open and covers it. What is
/// written goes down to the last row, and the sentence is shortened where there is no room for both.
pub fn draw_banner_over(frame: &mut Frame<'_>, banner: Rect, app: &App) {
    let screen = frame.area();
    let width = usize::from(screen.width);
    // What needs the operator keeps its rows.
    let kept = rows(&calling(app).map_or(Vec::new(), |text| sentence(text, width, BANNER_ROWS, app.palette)));
    let below = screen.bottom().saturating_sub(banner.y.saturating_add(kept));
    let all = sentence(said(app), width, BANNER_ROWS.min(usize::from(below)), app.palette);
    // The last row is the text field's where something is written, or where the sentence has no use for it.
    let has_field = !matches!(app.popups.last(), Some(Popup::Whole { .. }));
    let spared = u16::from(has_field && (!app.composer.is_empty() || rows(&all) < below));
    let most = BANNER_ROWS.min(usize::from(below.saturating_sub(spared)));
    let lines = sentence(said(app), width, most, app.palette);
    let wanted = rows(&lines);
    let top = match app.popups.last() {
        // It shows what is to be said itself.
        Some(Popup::Words { .. } | Popup::Raise { .. } | Popup::Menu(_)) => return,
        // What the dialog below the help says stands there again when that is closed.
        Some(Popup::Help { .. }) if app.notice.as_ref().is_some_and(|notice| notice.lasts == Lasts::WithDialog) => {
            return;
        }
        Some(Popup::Help { .. } | Popup::Whole { .. } | Popup::Cancel) if app.notice.is_some() => {
            screen.bottom().saturating_sub(wanted + spared)
        }
        None if app.focus != Focus::Composer && kept + wanted > banner.height => banner.y + kept,
        Some(Popup::Help { .. } | Popup::Whole { .. } | Popup::Cancel) | None => return,
    };
    let area = Rect { x: screen.x, y: top, width: screen.width, height: wanted }.intersection(screen);
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(lines), area);
    let field = Rect { y: area.bottom(), height: screen.bottom().saturating_sub(area.bottom()), ..area };
    if spared > 0 {
        frame.render_widget(Clear, field);
        draw_composer(frame, field, app);
    }
}

fn banner_lines(app: &App, width: usize, most: usize) -> Vec<Line<'static>> {
    // What is open shows a notice itself, or has it below.
    let text = if app.popups.is_empty() { said(app) } else { standing(app) };
    let calling = calling(app).filter(|_| app.popups.is_empty());
    let first = calling.map_or(Vec::new(), |text| sentence(text, width, most, app.palette));
    first.into_iter().chain(sentence(text, width, most, app.palette)).collect()
}

fn sentence((text, role): (String, Role), width: usize, most: usize, palette: Palette) -> Vec<Line<'static>> {
    let rows = wrap_at_most(&text, width.saturating_sub(2), most.max(1));
    rows.into_iter().map(|row| Line::from(cut(vec![piece(format!(" {row}"), role, palette)], width))).collect()
}

/// What is to be said: what just happened, else how the run stands.
fn said(app: &App) -> (String, Role) {
    match &app.notice {
        Some(notice) if app.halted.is_none() && !app.leaving => (notice.text.clone(), notice.role),
        Some(_) | None => standing(app),
    }
}

/// What needs the operator, where something else is said as well: no notice takes its place.
fn calling(app: &App) -> Option<(String, Role)> {
    let is_noticed = app.notice.is_some() && app.halted.is_none() && !app.leaving;
    is_noticed.then(|| standing(app)).filter(|(_, role)| *role == Role::Attention)
}

/// What holds as long as the run stands as it does.
fn standing(app: &App) -> (String, Role) {
    if let Some(why) = &app.halted {
        return (format!("the run stopped: {why}"), Role::Bad);
    }
    if app.leaving {
        return ("leaving: what runs is being stopped; the run stays parked".to_string(), Role::Moving);
    }
    let unsent = app.waiting.iter().filter(|item| !app.is_sent(item.call)).count();
    let go = keymap::key_of(Action::GoToWaiting);
    let is_there = app.focus == Focus::Waiting;
    match (unsent, &app.run.status) {
        (1, _) if !is_there => (format!("the run waits: 1 thing needs you ({go})"), Role::Attention),
        (2.., _) if !is_there => (format!("the run waits: {unsent} things need you ({go})"), Role::Attention),
        (_, Status::Parked(ParkReason::Confirm)) => {
            let (yes, no) = (keymap::key_of(Action::ConfirmClaim), keymap::key_of(Action::RefuseClaim));
            let checks = &app.run.terms.checks;
            let question =
                app.run.confirming().and_then(|index| checks.get(index)).map(Check::question).unwrap_or_default();
            let question = one_line(&transcript(question), QUESTION_MAX_CHARS);
            (format!("{question} In a pane (Tab): {yes} yes, {no} no and why"), Role::Attention)
        }
        (0, Status::Parked(ParkReason::Stalled(_))) if app.run.needs_grant() => {
            let (grant, end) = (keymap::key_of(Action::GrantReplans), keymap::key_of(Action::AskCancel));
            let text = format!("all replans are used up; in a pane (Tab): {grant} grants new ones, {end} ends the run");
            (text, Role::Dim)
        }
        (_, Status::Parked(ParkReason::PriceUnknown)) => {
            let key = keymap::key_of(Action::AskRaise);
            (format!("in a pane (Tab): {key} sets what the model costs and goes on"), Role::Dim)
        }
        (_, Status::Parked(ParkReason::Budget(_))) => {
            let key = keymap::key_of(Action::AskRaise);
            (format!("in a pane (Tab): {key} raises the limit and goes on"), Role::Dim)
        }
        // What waits says so itself.
        (_, Status::Parked(ParkReason::Approval | ParkReason::OutcomeUnknown | ParkReason::Question)) => {
            (String::new(), Role::Dim)
        }
        (0, Status::Parked(_)) => {
            let key = keymap::key_of(Action::Resume);
            let send = keymap::key_of(Action::SendAndResume);
            let is_said = !app.run.interjections.is_empty();
            let text = match app.focus == Focus::Composer {
                true if is_said => format!("{send} resumes, and the agent is told what you wrote"),
                false if is_said => format!("{key} resumes, and the agent is told what you wrote"),
                true => format!("in a pane (Tab): {key} resumes; here: write, and {send} sends it and resumes"),
                false => format!("{key} resumes; in the composer: write, and {send} sends it and resumes"),
            };
            (text, Role::Dim)
        }
        (0, Status::Completed(_) | Status::Failed(_) | Status::Cancelled) => {
            let (runs, leave) = (keymap::key_of(Action::OpenRuns), keymap::key_of(Action::Leave));
            (format!("the run has ended: {runs} lists the runs, {leave} leaves"), Role::Dim)
        }
        _ => (String::new(), Role::Dim),
    }
}

fn prompt(app: &App) -> &'static str {
    if app.focus != Focus::Composer && !app.composer.is_empty() {
        return " Esc › ";
    }
    match (app.question(), app.policy) {
        (Some(_), _) => " answer › ",
        (None, Policy::Next) => " › ",
        (None, Policy::SteerNow) => " now › ",
        (None, Policy::Interrupt) => " interrupt › ",
        (None, Policy::AfterDone) => " at the end › ",
    }
}

/// Draws the text field and puts the terminal's cursor at its caret.
pub fn draw_composer(frame: &mut Frame<'_>, area: Rect, app: &App) {
    let has_keys = app.focus == Focus::Composer && app.popups.is_empty();
    let hint = if has_keys { invitation(app).to_string() } else { elsewhere(app) };
    draw_field(frame, area, &app.composer, Field { prompt: prompt(app), hint: &hint, has_keys, palette: app.palette });
}

fn invitation(app: &App) -> &'static str {
    match (&app.run.status, app.question()) {
        (_, Some(_)) => "write the answer…",
        (Status::Completed(_) | Status::Failed(_) | Status::Cancelled, None) => "",
        (Status::Queued | Status::Running | Status::Parked(_), None) => "say something to the agent…",
    }
}

/// What stands in the text field while letters do not go there: whoever types is not to find it out by what the letters do.
fn elsewhere(app: &App) -> String {
    match app.popups.is_empty() {
        true => format!("{} comes here; the keys are in {}", app.way_back(), app.pane()),
        false => format!("the keys are in what is open; {} closes it", keymap::key_of(Action::Close)),
    }
}

/// How a text field is drawn.
pub(crate) struct Field<'a> {
    /// What stands before it.
    pub(crate) prompt: &'a str,
    /// What stands in it while it is empty.
    pub(crate) hint: &'a str,
    /// Whether the caret is here.
    pub(crate) has_keys: bool,
    /// The colours.
    pub(crate) palette: Palette,
}

/// Draws a text field in an area of any size. Says how many of its rows had no room.
pub(crate) fn draw_field(frame: &mut Frame<'_>, area: Rect, text: &Composer, field: Field<'_>) -> usize {
    let lead = cells(field.prompt);
    let width = usize::from(area.width).saturating_sub(lead + 1);
    let (mut rows, row, column) = text.rows(width);
    let height = usize::from(area.height);
    if text.is_empty() {
        rows = wrap_at_most(field.hint, width, height.max(1));
    }
    let first = (row + 1).saturating_sub(height);
    let role = if field.has_keys { Role::Key } else { Role::Dim };
    let line = |(place, row): (usize, &String)| {
        let lead = if place == 0 { field.prompt.to_string() } else { " ".repeat(lead) };
        let body = match text.is_empty() {
            true => piece(row.clone(), Role::Dim, field.palette),
            false if text.is_suggested() => piece(row.clone(), Role::Dim, field.palette),
            false => piece(row.clone(), Role::Text, field.palette),
        };
        Line::from(cut(vec![piece(lead, role, field.palette), body], usize::from(area.width)))
    };
    let lines: Vec<Line<'static>> = rows.iter().enumerate().skip(first).take(height).map(line).collect();
    frame.render_widget(Paragraph::new(lines), area);
    let x = usize::from(area.x) + lead + column;
    let y = usize::from(area.y) + row - first;
    if let (true, Ok(x), Ok(y)) = (field.has_keys, u16::try_from(x), u16::try_from(y))
        && area.contains(Position { x, y })
    {
        frame.set_cursor_position(Position { x, y });
    }
    rows.len().saturating_sub(height)
}

/// Draws the keys that work here, as many as the row takes.
pub fn draw_keys(frame: &mut Frame<'_>, area: Rect, app: &App) {
    let places = app.places();
    let mut rows = labelled(&places, &hidden(app, frame.area()));
    rows.sort_by_key(|row| rank(app, row));
    draw_key_row(frame, area, &rows, app.palette);
}

/// Keys that can do nothing, or nothing of use, as things stand.
fn hidden(app: &App, screen: Rect) -> Vec<Action> {
    let mut hidden: Vec<Action> =
        keymap::table().map(|row| row.action).filter(|action| app.in_vain(*action).is_some()).collect();
    // Ctrl-C pauses, too, and works everywhere.
    hidden.push(Action::Pause);
    if app.focus == Focus::Composer && app.popups.is_empty() {
        hidden.push(Action::Close);
    }
    if matches!(app.popups.last(), Some(Popup::Help { .. })) {
        hidden.push(Action::Help);
    }
    if !app.run.is_running() {
        hidden.push(Action::Stop);
    }
    if app.composer.is_empty() {
        hidden.push(Action::TurnPolicy);
    } else if app.focus == Focus::Composer {
        // What is written is not left behind by a key.
        hidden.push(Action::Leave);
    }
    let is_nothing = app.composer.is_empty() && app.run.interjections.is_empty();
    if is_nothing || app.in_vain(Action::Resume).is_some() {
        hidden.push(Action::SendAndResume);
    }
    if !app.run.needs_grant() {
        hidden.push(Action::GrantReplans);
    }
    if !zoom_changes(app, screen) {
        hidden.push(Action::Zoom);
    }
    hidden
}

/// What matters most comes first, because the row ends where it must: what the run needs, what is on the pane, what it
/// takes to find everything else or to leave, and only then the rest.
fn rank(app: &App, row: &Binding) -> u8 {
    let is_for_budget = matches!(app.run.status, Status::Parked(ParkReason::Budget(_) | ParkReason::PriceUnknown));
    let is_open = !app.popups.is_empty();
    match (row.action, row.place) {
        (Action::AskRaise, _) if is_for_budget => 0,
        // What is open is closed before anything else is done.
        (Action::Close, _) if is_open => 2,
        (Action::Stop, _) if is_open => 6,
        (Action::Resume | Action::GrantReplans | Action::ConfirmClaim | Action::RefuseClaim | Action::Stop, _) => 1,
        (Action::Send | Action::SendAndResume | Action::Submit, _) => 1,
        (Action::Help, _) => 3,
        (Action::Leave | Action::NextPane, _) => 4,
        (Action::AskRaise | Action::AskCancel, _) => 5,
        (Action::Zoom, _) => 9,
        // It has what the row has no room for, but takes no room from it.
        (Action::Menu, _) => 10,
        (_, Place::Pane | Place::Screen) => 6,
        (_, Place::Anywhere) => 7,
        (_, Place::Moving) => 8,
        _ => 2,
    }
}

/// The rows of these places that have a label and are not hidden.
pub(crate) fn labelled(places: &[Place], hidden: &[Action]) -> Vec<&'static Binding> {
    // What decides is shown with the call, where it can be seen whether it works.
    let is_elsewhere = |place: &Place| matches!(place, Place::Decision | Place::Outcome | Place::Question);
    let rows = places.iter().filter(|place| !is_elsewhere(place)).flat_map(|place| keymap::rows(*place));
    rows.filter(|row| !row.label.is_empty() && !hidden.contains(&row.action)).collect()
}

/// A row of keys, as far as there is room.
pub(crate) fn draw_key_row(frame: &mut Frame<'_>, area: Rect, rows: &[&Binding], palette: Palette) {
    let width = usize::from(area.width);
    let mut spans = vec![piece(" ", Role::Dim, palette)];
    let mut used = 1;
    for row in rows {
        let Some(chord) = row.keys.first() else { continue };
        let key = chord.short();
        // The two spaces between keys may hang over the edge.
        let wide = cells(&key) + cells(row.label) + 1;
        if used + wide > width {
            break;
        }
        used += wide + 2;
        spans.push(piece(key, Role::Key, palette));
        spans.push(piece(format!(" {}  ", row.label), Role::Dim, palette));
    }
    // Nothing but a trailing space can be too much.
    frame.render_widget(Paragraph::new(Line::from(spans)), area);
}
