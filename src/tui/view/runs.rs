//! The list of runs, drawn in an area of any size: the runs in rows, what there is to know of the selected one, and the
//! text field for a new goal.

use ratatui::Frame;
use ratatui::layout::Constraint;
use ratatui::layout::Layout;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Block;
use ratatui::widgets::Paragraph;

use crate::domain::budget::Limit;
use crate::domain::cells::cells;
use crate::domain::cells::fit_words;
use crate::domain::cells::pad;
use crate::domain::cells::wrap_at_most;
use crate::domain::limits;
use crate::domain::money::MicroUsd;
use crate::domain::status::ParkReason;
use crate::domain::status::Status;
use crate::domain::summary::Listed;
use crate::domain::summary::Summary;
use crate::domain::text::counted;
use crate::domain::visible::title;
use crate::tui::action::Action;
use crate::tui::app::View;
use crate::tui::keymap;
use crate::tui::keymap::Binding;
use crate::tui::keymap::place::Place;
use crate::tui::list::List;
use crate::tui::scroll::Anchor;
use crate::tui::scroll::Scroll;
use crate::tui::scroll::lay;
use crate::tui::text::age;
use crate::tui::text::dollars;
use crate::tui::theme::Role;
use crate::tui::view::cut;
use crate::tui::view::footer::Field;
use crate::tui::view::footer::draw_field;
use crate::tui::view::footer::draw_key_row;
use crate::tui::view::footer::labelled;
use crate::tui::view::header::mark;
use crate::tui::view::piece;
use crate::tui::view::popups::draw_help;
use crate::tui::view::two_sided;

/// Cells of a row up to the goal: the pointer, the mark and the name.
const NAME_CELLS: usize = 13;
/// Cells of the goal that the age and the money give way to, at least.
const GOAL_CELLS: usize = 12;
/// Cells of the status that the goal gives way to.
const STATE_CELLS: usize = 24;
/// Rows of a sentence about the selected run, at most.
const DETAIL_ROWS: usize = 6;
/// Cells of the age.
const AGE_CELLS: usize = 14;
/// Cells of the money.
const SPENT_CELLS: usize = 17;

/// Draws the list, and says where it stands.
pub fn draw(frame: &mut Frame<'_>, list: &List) -> Option<View> {
    let area = frame.area();
    let greeting_most = if area.height >= 16 { usize::from(area.height / 4) } else { 1 };
    let greeting = wrap_at_most(&title(&list.greeting, 600), usize::from(area.width).saturating_sub(2), greeting_most);
    let field_rows = u16::try_from(list.goal.rows(usize::from(area.width).saturating_sub(12)).0.len()).unwrap_or(1);
    let about = if area.height >= 16 { detail_lines(list, usize::from(area.width)) } else { Vec::new() };
    let (notice, role) = list.notice.clone().unwrap_or((String::new(), Role::Dim));
    let most = usize::from(area.height / 4).max(1);
    let notice = wrap_at_most(&notice, usize::from(area.width).saturating_sub(2), most);
    let [head, middle, detail, banner, field, keys] = Layout::vertical([
        Constraint::Length(1 + u16::try_from(greeting.len()).unwrap_or(1)),
        Constraint::Min(1),
        Constraint::Length(u16::try_from(about.len()).unwrap_or(0)),
        Constraint::Length(u16::try_from(notice.len()).unwrap_or(1).max(1)),
        Constraint::Length(field_rows.clamp(1, (area.height / 3).max(1))),
        Constraint::Length(1),
    ])
    .areas(area);
    draw_head(frame, head, list, greeting);
    let view = if list.listed.is_empty() { draw_empty(frame, middle, list) } else { draw_rows(frame, middle, list) };
    frame.render_widget(Paragraph::new(about), detail);
    let line =
        |row: String| Line::from(cut(vec![piece(format!(" {row}"), role, list.palette)], usize::from(area.width)));
    frame.render_widget(Paragraph::new(notice.into_iter().map(line).collect::<Vec<_>>()), banner);
    let has_keys = list.writes && list.help.is_none();
    let hint = if list.writes { "what is to be reached, in a sentence or two…" } else { "" };
    draw_field(frame, field, &list.goal, Field { prompt: " new goal › ", hint, has_keys, palette: list.palette });
    let mut named = labelled(&list.places(), &hidden(list));
    named.sort_by_key(|row| row.place == Place::Moving);
    draw_key_row(frame, keys, &named, list.palette);
    match list.help {
        Some(scroll) => {
            let area = Rect { height: area.height.saturating_sub(1), ..area };
            let rows: Vec<&Binding> = list.under_help().iter().flat_map(|place| keymap::rows(*place)).collect();
            Some(draw_help(frame, area, &rows, scroll, list.palette))
        }
        None => view,
    }
}

/// Keys that the last row does not name: they do nothing of use here.
fn hidden(list: &List) -> Vec<Action> {
    let help = if list.help.is_some() { Some(Action::Help) } else { None };
    let back = if list.closes() { None } else { Some(Action::Close) };
    // A goal that is half written is not left behind by a key.
    let leave = if list.goal.is_empty() { None } else { Some(Action::LeaveList) };
    [Action::Stop].into_iter().chain(help).chain(back).chain(leave).collect()
}

fn draw_head(frame: &mut Frame<'_>, area: Rect, list: &List, greeting: Vec<String>) {
    let width = usize::from(area.width);
    let unfinished = list.listed.iter().filter(|one| match one {
        Listed::Run { summary, .. } => summary.is_open(),
        Listed::Damaged { .. } => false,
    });
    let count = format!("{}, {} unfinished ", counted(list.listed.len(), "run"), unfinished.count());
    let name = vec![piece(" tiller", Role::Strong, list.palette), piece("  runs", Role::Dim, list.palette)];
    let mut rows = vec![two_sided(name, vec![piece(count, Role::Dim, list.palette)], width)];
    let line = |row: String| Line::from(cut(vec![piece(format!(" {row}"), Role::Dim, list.palette)], width));
    rows.extend(greeting.into_iter().map(line));
    frame.render_widget(Paragraph::new(rows), area);
}

fn draw_empty(frame: &mut Frame<'_>, area: Rect, list: &List) -> Option<View> {
    let inner = framed(frame, area, list);
    let width = usize::from(inner.width);
    let texts = [
        ("", Role::Text),
        ("No run yet.", Role::Strong),
        ("", Role::Text),
        (
            "Write below what is to be reached and press Enter. The agent makes a plan and works on it alone.",
            Role::Text,
        ),
        ("", Role::Text),
        (
            "Whatever may change something waits on the screen for your word. All that happens is kept in a journal: \
             you can leave at any time, and so can the electricity; resuming goes on exactly there.",
            Role::Text,
        ),
    ];
    let rows = texts.iter().flat_map(|(text, role)| {
        let rows = wrap_at_most(text, width.saturating_sub(4).min(90), 6);
        rows.into_iter().map(|row| Line::from(cut(vec![piece(format!("  {row}"), *role, list.palette)], width)))
    });
    frame.render_widget(Paragraph::new(rows.collect::<Vec<_>>()), inner);
    None
}

fn framed(frame: &mut Frame<'_>, area: Rect, list: &List) -> Rect {
    let role = if list.writes { Role::Frame } else { Role::Focused };
    let block = Block::bordered().border_style(list.palette.style(role));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    inner
}

fn draw_rows(frame: &mut Frame<'_>, area: Rect, list: &List) -> Option<View> {
    let inner = framed(frame, area, list);
    let (width, height) = (usize::from(inner.width), usize::from(inner.height));
    let first = list.place().saturating_sub(height / 2);
    let scroll = Scroll { anchor: Anchor::At { block: first, row: 0 }, nudge: 0 };
    let columns = Columns::of(list, width);
    let laid = lay(list.listed.len(), scroll, height, |place| {
        list.listed.get(place).map(|one| vec![row(one, place == list.place(), list, &columns)]).unwrap_or_default()
    });
    let view = View { scroll: laid.scroll(), top: (laid.first, laid.row), height };
    frame.render_widget(Paragraph::new(laid.lines), inner);
    Some(view)
}

/// How wide the columns behind the goals are, the same in all rows, so that the goals are, too. The name and the status
/// stay; the money, then the age, then the goal give way to them.
struct Columns {
    width: usize,
    state: usize,
    has_age: bool,
    has_money: bool,
}

impl Columns {
    fn of(list: &List, width: usize) -> Columns {
        let widest = list.listed.iter().map(|one| cells(&state_of(one, list))).max().unwrap_or(0);
        // One long status of many does not take all of the goals.
        let most = width.saturating_sub(NAME_CELLS + 4);
        let fair = most.saturating_sub(width / 3).max(STATE_CELLS).min(most);
        let state = widest.min(fair);
        let goal = GOAL_CELLS.max(width / 5);
        let room = width.saturating_sub(NAME_CELLS + goal + 3 + state);
        let has_age = width >= 60 && room >= AGE_CELLS + 2;
        let room = room.saturating_sub(if has_age { AGE_CELLS + 2 } else { 0 });
        Columns { width, state, has_age, has_money: width >= 90 && room >= SPENT_CELLS + 2 }
    }
}

/// The status of a run in words; a damaged one has none.
fn state_of(listed: &Listed, list: &List) -> String {
    match listed {
        Listed::Run { summary, held_by } => {
            state(summary, &summary.status.as_held(held_by.is_some()), list.elsewhere(*held_by))
        }
        Listed::Damaged { .. } => String::new(),
    }
}

fn row(listed: &Listed, is_selected: bool, list: &List, columns: &Columns) -> Line<'static> {
    let width = columns.width;
    let pointer = if is_selected { "▸" } else { " " };
    let strong = if is_selected { Role::Strong } else { Role::Text };
    match listed {
        Listed::Damaged { id, why } => {
            let left = vec![
                piece(format!(" {pointer} ✗ "), Role::Bad, list.palette),
                piece(format!("{}  ", id.short()), Role::Dim, list.palette),
                piece(format!("damaged: {}", title(why, 300)), Role::Bad, list.palette),
            ];
            Line::from(cut(left, width))
        }
        Listed::Run { summary, held_by } => {
            let status = summary.status.as_held(held_by.is_some());
            let (mark, role) = mark(&status);
            let left = vec![
                piece(format!(" {pointer} "), strong, list.palette),
                piece(format!("{mark} "), role, list.palette),
                piece(format!("{}  ", summary.id.short()), Role::Dim, list.palette),
                piece(title(&summary.goal, limits::TODO_TITLE_MAX_CHARS), strong, list.palette),
            ];
            let state = pad(&fit_words(&state_of(listed, list), columns.state), columns.state);
            let mut right = vec![piece(format!("  {state}"), role, list.palette)];
            if columns.has_money {
                right.push(piece(format!("  {}", pad(&spent(summary), SPENT_CELLS)), Role::Dim, list.palette));
            }
            if columns.has_age {
                let old = age(list.now.at.since(summary.updated));
                right.push(piece(format!("  {}", pad(&old, AGE_CELLS)), Role::Dim, list.palette));
            }
            right.push(piece(" ", Role::Dim, list.palette));
            two_sided(left, right, width)
        }
    }
}

fn state(summary: &Summary, status: &Status, elsewhere: Option<u32>) -> String {
    let held = elsewhere.map(|pid| format!(" · in process {pid}")).unwrap_or_default();
    let waits = if summary.waiting > 1 { format!(" ({})", summary.waiting) } else { String::new() };
    let rehearsal = match (summary.rehearsal, summary.brought) {
        // Where it stood where it comes from leads nowhere here.
        (true, true) if !status.is_end() => return "imported rehearsal, can't go on".to_string(),
        (true, true) => "imported rehearsal · ",
        (true, false) => "rehearsal · ",
        (false, true) => "imported · ",
        (false, false) => "",
    };
    let phrase = match status {
        Status::Parked(reason) => reason.phrase_now(summary.things()),
        Status::Queued | Status::Running | Status::Completed(_) | Status::Failed(_) | Status::Cancelled => {
            status.phrase()
        }
    };
    format!("{rehearsal}{}{waits}{held}", fit_words(&phrase, 40))
}

fn spent(summary: &Summary) -> String {
    match summary.cost_limit {
        Limit::At(limit) => format!("{} of {}", dollars(summary.spent), MicroUsd(limit)),
        Limit::Unlimited => dollars(summary.spent),
    }
}

/// What there is to know of the selected run.
fn detail_lines(list: &List, width: usize) -> Vec<Line<'static>> {
    let rows: Vec<(String, Role)> = match list.listed.get(list.place()) {
        Some(Listed::Run { summary, held_by }) => {
            let next = match &summary.status.as_held(held_by.is_some()) {
                status if summary.rehearsal && summary.brought && !status.is_end() => {
                    "a rehearsal that was imported can't go on: its scratch folder did not come along; `tiller show` \
                     shows it"
                        .to_string()
                }
                Status::Parked(ParkReason::Interrupted) => {
                    let key = keymap::key_of(Action::Resume);
                    format!("the process that ran it is gone; opening it shows it; {key} resumes")
                }
                Status::Parked(reason) if reason.is_settled(summary.things()) => {
                    format!("opening it shows it; {} resumes", keymap::key_of(Action::Resume))
                }
                Status::Parked(reason) => reason.remedy().to_string(),
                Status::Running => match list.elsewhere(*held_by) {
                    Some(pid) => format!("it is under way in process {pid}"),
                    None => "it is under way here; opening it shows it".to_string(),
                },
                Status::Queued => "it has not begun; opening it begins it".to_string(),
                Status::Completed(_) | Status::Failed(_) | Status::Cancelled => {
                    "it has ended; opening it shows all of it".to_string()
                }
            };
            let count = usize::try_from(summary.iterations).unwrap_or(usize::MAX);
            // The row may have had no room for it.
            let held = list.elsewhere(*held_by).map(|pid| format!(" · in process {pid}")).unwrap_or_default();
            let counted = counted(count, "iteration");
            let where_to = format!("{}{held} · {counted} · {}", summary.id, title(&summary.workspace, 300));
            vec![
                (title(&summary.goal, limits::TODO_TITLE_MAX_CHARS), Role::Text),
                (next, Role::Text),
                (where_to, Role::Dim),
            ]
        }
        Some(Listed::Damaged { id, why }) => {
            let kept = "its files are kept as they are; the other runs are not concerned".to_string();
            vec![(format!("{id}"), Role::Dim), (title(why, 400), Role::Bad), (kept, Role::Text)]
        }
        None => Vec::new(),
    };
    let line = |text: String, role: Role| Line::from(cut(vec![piece(format!("  {text}"), role, list.palette)], width));
    let wrapped = |(text, role): (String, Role)| {
        let rows = wrap_at_most(&text, width.saturating_sub(3), DETAIL_ROWS);
        rows.into_iter().map(move |row| line(row, role))
    };
    rows.into_iter().flat_map(wrapped).collect()
}
