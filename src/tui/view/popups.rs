//! What opens above the panes, drawn in a box of its own.

use ratatui::Frame;
use ratatui::layout::Constraint;
use ratatui::layout::Layout;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Block;
use ratatui::widgets::BorderType;
use ratatui::widgets::Clear;
use ratatui::widgets::Paragraph;

use crate::domain::budget::Axis;
use crate::domain::budget::Limit;
use crate::domain::cells::cells;
use crate::domain::cells::fit;
use crate::domain::cells::pad;
use crate::domain::cells::wrap;
use crate::domain::cells::wrap_at_most;
use crate::domain::limits;
use crate::domain::money::MicroUsd;
use crate::domain::plan::Todo;
use crate::domain::status::ParkReason;
use crate::domain::status::Status;
use crate::domain::text::counted;
use crate::domain::visible;
use crate::policy::spending::needed;
use crate::tui::action::Action;
use crate::tui::app::App;
use crate::tui::app::Seen;
use crate::tui::app::View;
use crate::tui::composer::Composer;
use crate::tui::keymap;
use crate::tui::keymap::Binding;
use crate::tui::popup::Asks;
use crate::tui::popup::Popup;
use crate::tui::popup::exact_dollars;
use crate::tui::scroll::Scroll;
use crate::tui::scroll::lay;
use crate::tui::text::dollars;
use crate::tui::theme::Palette;
use crate::tui::theme::Role;
use crate::tui::view::about;
use crate::tui::view::cut;
use crate::tui::view::footer::Field;
use crate::tui::view::footer::draw_field;
use crate::tui::view::leave;
use crate::tui::view::lineage;
use crate::tui::view::menu;
use crate::tui::view::piece;
use crate::tui::view::waiting::Keys;
use crate::tui::view::waiting::body_view;
use crate::tui::view::waiting::draw_code;
use crate::tui::view::waiting::draw_keys;
use crate::tui::view::waiting::shown;

/// Widest dialog, in cells.
const DIALOG_CELLS: u16 = 84;
/// What stands before the field of a dialog.
pub(crate) const PROMPT: &str = " › ";
/// Rows that a screen needs to show all limits while one is set.
const RAISE_ROWS: u16 = 15;
/// Rows of a todo in the dialog that changes the plan, at most.
const TODO_ROWS: usize = 4;
/// Rows of that dialog that are no todos: its frame, the field, what is wrong, and what its keys do.
const PLAN_ROWS_BESIDE: usize = 9;
/// Rows of a sentence in a dialog, at most.
const DIALOG_ROWS: usize = 5;

/// Draws the popup on top.
pub fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, seen: &mut Seen) {
    match app.popups.last() {
        Some(Popup::Help { places, scroll }) => {
            let rows = places.iter().flat_map(|place| keymap::rows(*place));
            let rows: Vec<&Binding> = rows.filter(|row| app.in_vain(row.action).is_none()).collect();
            seen.popup = Some(draw_help(frame, area, &rows, *scroll, app.palette));
        }
        Some(Popup::Whole { .. }) => draw_whole(frame, area, app, seen),
        Some(Popup::Words { asks: asks @ Asks::Edit(..), line }) => {
            seen.hidden_rows = leave::draw(frame, area, app, asks, line);
        }
        Some(Popup::Words { asks, line }) => draw_words(frame, area, app, asks, line),
        Some(Popup::Raise { axis, line }) => draw_raise(frame, area, app, *axis, line),
        Some(Popup::Cancel) => draw_cancel(frame, area, app),
        Some(Popup::Menu(open)) => seen.popup = Some(menu::draw(frame, area, app, open)),
        None => {}
    }
}

/// A box of at most this size in the middle of `area`; gives what is inside it.
pub(crate) fn frame_box(frame: &mut Frame<'_>, area: Rect, size: (u16, u16), title: &str, palette: Palette) -> Rect {
    let (width, height) = (size.0.min(area.width), size.1.min(area.height));
    let place = Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    frame.render_widget(Clear, place);
    let title = format!(" {} ", fit(title, usize::from(width).saturating_sub(6)));
    let block = Block::bordered()
        .border_type(BorderType::Thick)
        .border_style(palette.style(Role::Focused))
        .title(Line::from(piece(title, Role::Strong, palette)));
    let inner = block.inner(place);
    frame.render_widget(block, place);
    inner
}

/// These keys, under the places where they work.
pub(crate) fn draw_help(
    frame: &mut Frame<'_>,
    area: Rect,
    rows: &[&Binding],
    scroll: Scroll,
    palette: Palette,
) -> View {
    let size = (area.width.saturating_sub(4).clamp(30, 92), area.height.saturating_sub(2));
    let inner = frame_box(frame, area, size, "Keys that work here · Esc closes", palette);
    let width = usize::from(inner.width);
    let column = if width >= 66 { 29 } else { 21 };
    let mut lines = Vec::new();
    for rows in rows.chunk_by(|one, next| one.place == next.place) {
        let place = rows.first().map(|row| row.place.phrase()).unwrap_or_default();
        if !lines.is_empty() {
            lines.push(Line::default());
        }
        let heading = wrap(place, width.saturating_sub(2)).into_iter();
        lines.extend(heading.map(|row| Line::from(piece(format!(" {row}"), Role::Strong, palette))));
        lines.extend(rows.iter().flat_map(|row| help_lines(row, (column, width), palette)));
    }
    let height = usize::from(inner.height);
    let laid = lay(lines.len(), scroll, height, |place| lines.get(place).cloned().into_iter().collect());
    let view = View { scroll: laid.scroll(), top: (laid.first, laid.row), height };
    frame.render_widget(Paragraph::new(laid.lines), inner);
    view
}

/// A key and what it does, in as many rows as that needs.
fn help_lines(row: &Binding, (column, width): (usize, usize), palette: Palette) -> Vec<Line<'static>> {
    let keys = row.keys.iter().map(|chord| chord.name()).collect::<Vec<_>>().join(" ");
    let line = |(place, text): (usize, String)| {
        let keys = if place == 0 { keys.as_str() } else { "" };
        let key = piece(format!("   {} ", pad(keys, column)), Role::Key, palette);
        Line::from(cut(vec![key, piece(text, Role::Text, palette)], width))
    };
    wrap(row.help, width.saturating_sub(column + 5)).into_iter().enumerate().map(line).collect()
}

fn draw_whole(frame: &mut Frame<'_>, area: Rect, app: &App, seen: &mut Seen) {
    let Some(Popup::Whole { title, call, body, scroll }) = app.popups.last() else { return };
    let item = app.item().filter(|item| Some((item.call, item.digest.clone())) == *call);
    let bytes = item.map_or(String::new(), |item| format!(" · {}", counted(item.extent.1, "byte")));
    let name = format!("{title} · {}{bytes}", counted(body.numbered(), "line"));
    let inner = frame_box(frame, area, (area.width, area.height), &name, app.palette);
    let [text, keys] =
        Layout::vertical([Constraint::Min(1), Constraint::Length(u16::from(item.is_some()))]).areas(inner);
    let (lines, view, at_end) = body_view(body, *scroll, text, app);
    frame.render_widget(Paragraph::new(lines), text);
    seen.popup = Some(view);
    if let Some(item) = item {
        seen.item = Some(shown(app, item, text, at_end));
        draw_keys(frame, keys, app, item, Keys { has_keys: true, at_end });
        draw_code(frame, area, app, item);
    }
}

fn draw_words(frame: &mut Frame<'_>, area: Rect, app: &App, asks: &Asks, line: &Composer) {
    let words = "sends, also without words · Esc: nothing is decided";
    let about = match asks {
        Asks::Deny(call, _) | Asks::Happened(call) => about::lines(app, *call, area),
        Asks::Code(..)
        | Asks::Edit(..)
        | Asks::Rule(..)
        | Asks::Trust
        | Asks::WrongClaim(_)
        | Asks::Price
        | Asks::Plan
        | Asks::Iteration(_)
        | Asks::Sure(_) => Vec::new(),
    };
    let (title, why, hint, does) = match asks {
        Asks::Deny(call, digest) => (
            format!("Deny {call} {}", digest.short()),
            "The call is not run. The model is told no, and these words:",
            "what to do instead…",
            words,
        ),
        Asks::Code(..) | Asks::Edit(..) | Asks::Trust | Asks::Rule(..) => {
            leave::draw(frame, area, app, asks, line);
            return;
        }
        Asks::Plan => return draw_plan_words(frame, area, app, line),
        Asks::Iteration(kind) => return lineage::draw_iteration(frame, area, app, *kind, line),
        Asks::Sure(doubt) => return lineage::draw_sure(frame, area, app, doubt, line),
        Asks::WrongClaim(_) => (
            "The claim is wrong".to_string(),
            "The model is told that you say no, and these words:",
            "what is missing…",
            words,
        ),
        Asks::Price => (
            "What does the model cost?".to_string(),
            "Dollars per million tokens in and out; or: unpriced, not to count money",
            "0.25 2.00",
            "sets the price and resumes · Esc: nothing is changed",
        ),
        Asks::Happened(call) => (
            format!("{call} happened"),
            "The model is told that it happened, and as its result these words:",
            "what came of it, as far as you know…",
            words,
        ),
    };
    let told = prose(why, Role::Dim, area, app.palette);
    let does = [format!("{} {does}", keymap::key_of(Action::Submit))];
    let dialog = Dialog { title, about, told, all: "show", prompt: PROMPT, field_rows: 2, hint, does: &does };
    draw_dialog(frame, area, app, line, dialog);
}

/// A dialog with a field.
pub(crate) struct Dialog<'a> {
    /// Its title.
    pub(crate) title: String,
    /// The beginning of the call that it is about, as much of it as there is room for; all else that is told gives way to
    /// its first rows.
    pub(crate) about: Vec<Line<'static>>,
    /// What is told above the field, as wide as `dialog_width` says.
    pub(crate) told: Vec<Line<'static>>,
    /// The command that tells all of it, where it does not fit.
    pub(crate) all: &'static str,
    /// What stands before the field.
    pub(crate) prompt: &'static str,
    /// Rows of the field where there is room.
    pub(crate) field_rows: u16,
    /// What stands in the field while it is empty.
    pub(crate) hint: &'static str,
    /// What its keys do, each in a sentence of its own.
    pub(crate) does: &'a [String],
}

/// The width of a dialog, its frame included.
pub(crate) fn dialog_width(area: Rect) -> u16 {
    area.width.saturating_sub(4).min(DIALOG_CELLS)
}

/// A text in rows of a dialog, none of it cut off.
pub(crate) fn prose(text: &str, role: Role, area: Rect, palette: Palette) -> Vec<Line<'static>> {
    let rows = wrap(text, usize::from(dialog_width(area)).saturating_sub(4));
    rows.into_iter().map(|row| Line::from(piece(format!(" {row}"), role, palette))).collect()
}

/// Draws a dialog. What went wrong with what was sent, and what the keys do, can always be read whole; what is told above
/// gives way to them.
/// Says how many rows of what is written had no room.
pub(crate) fn draw_dialog(frame: &mut Frame<'_>, area: Rect, app: &App, line: &Composer, dialog: Dialog<'_>) -> usize {
    let Dialog { title, about: mut lines, mut told, all, prompt, field_rows, hint, does } = dialog;
    let keys: Vec<Line<'static>> =
        does.iter().flat_map(|text| prose(text, Role::Dim, area, app.palette)).take(DIALOG_ROWS).collect();
    let mut problem: Vec<Line<'static>> =
        app.notice.iter().flat_map(|notice| prose(&notice.text, notice.role, area, app.palette)).collect();
    if app.is_asking() && problem.is_empty() {
        problem = prose("sent; its record has not come yet", Role::Moving, area, app.palette);
    }
    let count = |lines: &[Line<'static>]| u16::try_from(lines.len()).unwrap_or(u16::MAX);
    // The frame, the field, and a row of the call.
    let kept = 3 + usize::from(!lines.is_empty());
    problem.truncate(DIALOG_ROWS.min(usize::from(area.height).saturating_sub(keys.len() + kept)).max(1));
    let below = count(&keys).saturating_add(count(&problem).max(1)).saturating_add(2);
    let room = usize::from(area.height.saturating_sub(below.saturating_add(1)));
    let is_about_call = !lines.is_empty();
    // The call has what the rest leaves; where that is too little, the rest gives way.
    let beside = told.len() + usize::from(field_rows.saturating_sub(1));
    lines = about::fitted(lines, room.saturating_sub(beside), area, app);
    lines.truncate(room.max(1));
    let room = room.saturating_sub(lines.len());
    if told.len() > room {
        let left = told.len() - room.saturating_sub(1);
        told.truncate(room.saturating_sub(1));
        let more = format!("… {}; `tiller {all} {}` has all", counted(left, "more row"), app.run.id.short());
        let most = if is_about_call { room } else { usize::MAX };
        told.extend(prose(&more, Role::Text, area, app.palette).into_iter().take(most));
    }
    lines.extend(told);
    let height = count(&lines).saturating_add(field_rows).saturating_add(below);
    let inner = frame_box(frame, area, (dialog_width(area), height), &title, app.palette);
    let [top, field, middle, bottom] = Layout::vertical([
        Constraint::Max(count(&lines)),
        Constraint::Min(1),
        Constraint::Length(count(&problem).max(1)),
        Constraint::Length(count(&keys)),
    ])
    .areas(inner);
    frame.render_widget(Paragraph::new(lines), top);
    frame.render_widget(Paragraph::new(problem), middle);
    frame.render_widget(Paragraph::new(keys), bottom);
    draw_field(frame, field, line, Field { prompt, hint, has_keys: true, palette: app.palette })
}

/// The field for a change of the plan, under the todos with the names by which they are called there.
fn draw_plan_words(frame: &mut Frame<'_>, area: Rect, app: &App, line: &Composer) {
    let width = usize::from(dialog_width(area)).saturating_sub(3);
    let rows = |todo: &Todo, most: usize| {
        let indent = if todo.parent.is_some() { "  " } else { "" };
        let name = format!(" {indent}{}  ", visible::title(&todo.id.0, 32));
        let word = format!("{}  ", todo.status.word());
        let lead = cells(&name) + cells(&word);
        let text = visible::title(&todo.title, limits::TODO_TITLE_MAX_CHARS);
        let texts = wrap_at_most(&text, width.saturating_sub(lead), most).into_iter().enumerate();
        let line = |(place, text): (usize, String)| {
            let [name, word] =
                if place == 0 { [name.clone(), word.clone()] } else { [" ".repeat(lead), String::new()] };
            let text = piece(text, Role::Text, app.palette);
            let lead = [piece(name, Role::Strong, app.palette), piece(word, Role::Dim, app.palette)];
            Line::from(cut(lead.into_iter().chain([text]).collect(), width))
        };
        texts.map(line).collect::<Vec<_>>()
    };
    let todos = &app.run.plan.todos;
    // Whole titles where all of them have room; a todo that can't be seen is worse than one that is cut short.
    let whole: Vec<Line<'static>> = todos.iter().flat_map(|todo| rows(todo, TODO_ROWS)).collect();
    let has_room = whole.len() + PLAN_ROWS_BESIDE <= usize::from(area.height);
    let told = if has_room { whole } else { todos.iter().flat_map(|todo| rows(todo, 1)).collect() };
    let words = "add TEXT · edit ID TEXT · done ID · now ID · open ID · block ID WHY · drop ID WHY · move ID POSITION";
    let enter = keymap::key_of(Action::Submit);
    let keys = format!("{enter} changes it, and the agent is told · Esc: nothing is changed");
    // What is wrong with a change says the same.
    let does: Vec<String> = app.notice.is_none().then(|| words.to_string()).into_iter().chain([keys]).collect();
    let (title, hint) = ("Change the plan".to_string(), "add TEXT, or done t2, or drop t3 why…");
    let about = Vec::new();
    let dialog = Dialog { title, about, told, all: "show", prompt: PROMPT, field_rows: 1, hint, does: &does };
    draw_dialog(frame, area, app, line, dialog);
}

fn draw_raise(frame: &mut Frame<'_>, area: Rect, app: &App, axis: Axis, line: &Composer) {
    let pool = &app.run.pool;
    let is_why = |one: Axis| app.run.status == Status::Parked(ParkReason::Budget(one));
    let row = |one: &Axis| {
        let limit = match pool.limits().on(*one) {
            Limit::At(limit) => shown_on(*one, limit),
            Limit::Unlimited => "none".to_string(),
        };
        let (mark, role) = if *one == axis { ("▸", Role::Strong) } else { (" ", Role::Dim) };
        let why = if is_why(*one) { "  parked for this" } else { "" };
        let text = if *one == Axis::Deadline {
            format!(" {mark} {} {limit}", pad(one.word(), 12))
        } else {
            let used = shown_on(*one, pool.used(*one));
            format!(" {mark} {} {} of {}", pad(one.word(), 12), pad(&used, 8), pad(&limit, 8))
        };
        let spans = vec![piece(text, role, app.palette), piece(why, Role::Attention, app.palette)];
        Line::from(cut(spans, usize::from(dialog_width(area)).saturating_sub(2)))
    };
    // The one that is chosen is shown on any screen, the others where there is room for all of them.
    let is_shown = |one: &&Axis| area.height >= RAISE_ROWS || **one == axis;
    let told = Axis::ALL.iter().filter(is_shown).map(row).collect();
    let (key, other) = (keymap::key_of(Action::Submit), keymap::key_of(Action::NextAxis));
    let next = if is_why(axis) { format!("{key} sets it and resumes") } else { format!("{key} sets it") };
    let mut does = vec![format!("{next} · {other} another limit · Esc leaves it as it is")];
    if axis == Axis::Loops {
        does.insert(0, "planning and wrapping up do not count".to_string());
    }
    let least = needed(&app.run, axis);
    if axis != Axis::Deadline && pool.limits().on(axis).left(0).is_some_and(|limit| limit < least) {
        does.insert(0, format!("the least that lets it go on is {}", shown_least(axis, least)));
    }
    if line.is_suggested() {
        does.push("this is a suggestion: typing replaces it".to_string());
    }
    let dialog = Dialog {
        title: "Set a limit".to_string(),
        about: Vec::new(),
        told,
        all: "show",
        prompt: " new limit › ",
        field_rows: 1,
        hint: "",
        does: &does,
    };
    draw_dialog(frame, area, app, line, dialog);
}

/// A limit to be typed as it stands: no digit of it is rounded away.
fn shown_least(axis: Axis, amount: u64) -> String {
    if axis == Axis::Cost { exact_dollars(amount) } else { axis.show(amount) }
}

fn shown_on(axis: Axis, amount: u64) -> String {
    if axis == Axis::Cost { dollars(MicroUsd(amount)) } else { axis.show(amount) }
}

fn draw_cancel(frame: &mut Frame<'_>, area: Rect, app: &App) {
    let wide = area.width.saturating_sub(4).min(72);
    let width = usize::from(wide).saturating_sub(2);
    let (gently, now) = (keymap::key_of(Action::CancelGently), keymap::key_of(Action::CancelNow));
    let is_parked = matches!(app.run.status, Status::Parked(_));
    let (accept, failed) = (keymap::key_of(Action::AcceptWork), keymap::key_of(Action::CloseFailed));
    let (title, first) = match is_parked {
        true => ("End the run?", "The run ends. Parked as it is it costs nothing, and can wait."),
        false => ("Cancel the run?", "The run ends; to stop it for a while, pause it."),
    };
    let stays = format!(
        "What was done stays as it is in {}.",
        visible::title(&app.run.terms.workspace, limits::PATH_MAX_BYTES)
    );
    let mut texts = vec![
        (first, String::new()),
        (stays.as_str(), String::new()),
        ("", String::new()),
        ("cancel; a running call with outside effects may finish first (10 s)", gently),
        ("cancel and end what runs at once", now),
    ];
    if is_parked {
        texts.push(("take the work as it is: the run is completed", accept));
        texts.push(("close the run as failed", failed));
    }
    texts.push(("back; nothing is done", "Esc".to_string()));
    let mut lines = Vec::new();
    for (text, key) in texts {
        let column = if key.is_empty() { 1 } else { 7 };
        for (place, row) in wrap(text, width.saturating_sub(column + 1)).into_iter().enumerate() {
            let key = if place == 0 { key.as_str() } else { "" };
            let lead = if key.is_empty() { String::new() } else { format!("  {key}") };
            let lead = piece(pad(&lead, column), Role::Key, app.palette);
            lines.push(Line::from(cut(vec![lead, piece(row, Role::Text, app.palette)], width)));
        }
    }
    let high = u16::try_from(lines.len() + 2).unwrap_or(u16::MAX);
    let inner = frame_box(frame, area, (wide, high), title, app.palette);
    frame.render_widget(Paragraph::new(lines), inner);
}
