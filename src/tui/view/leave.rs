//! The dialogs that let a grave call run, that change the arguments of a call, and how much a run does unasked.

use ratatui::Frame;
use ratatui::layout::Rect;

use crate::domain::cells::cells;
use crate::domain::id::CallId;
use crate::domain::limits;
use crate::domain::text::counted;
use crate::domain::trust::Trust;
use crate::domain::visible::title;
use crate::policy::grave;
use crate::policy::offering;
use crate::tui::action::Action;
use crate::tui::action::Choice;
use crate::tui::app::App;
use crate::tui::composer::Composer;
use crate::tui::keymap;
use crate::tui::popup::Asks;
use crate::tui::theme::Role;
use crate::tui::view::about;
use crate::tui::view::popups::Dialog;
use crate::tui::view::popups::PROMPT;
use crate::tui::view::popups::dialog_width;
use crate::tui::view::popups::draw_dialog;
use crate::tui::view::popups::prose;
use crate::tui::view::waiting::NARROW;

/// Rows that the field of changed arguments has where there is room, also while it needs fewer.
const FIELD_ROWS: u16 = 8;

/// Cells of a folder's name.
const TITLE_CELLS: usize = 200;

/// Draws the dialog.
pub fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, asks: &Asks, line: &Composer) -> usize {
    let (name, told, hint, rows, does) = match asks {
        Asks::Edit(call, digest) => (
            format!("Change {call} {} and allow it", digest.short()),
            vec![(
                "It runs once with these arguments, if the gate lets it; what is grave by that or can't be undone is asked \
                 about once more. The model is told what you changed."
                    .to_string(),
                Role::Text,
            )],
            "arguments as JSON…",
            edit_rows(area, line),
            "allows it so · Esc: nothing is decided",
        ),
        Asks::Rule(call, digest) => (
            format!("Allow {call} {} by a standing rule", digest.short()),
            offered(app, *call),
            offering::words([false, true].map(|open| app.drafted(*call, open))),
            1,
            "makes the rule and allows it · Esc: nothing is decided",
        ),
        Asks::Code(call, digest, choice) => {
            let item = app.waiting.iter().find(|item| item.call == *call);
            let grave = item.and_then(|item| item.grave.clone()).unwrap_or_default();
            let is_changed = item.is_some_and(|item| item.is_changed);
            let outside = (*choice == Choice::AllowUnboxed).then(|| grave::UNBOXED.to_string());
            let all = [Some(grave).filter(|grave| !grave.is_empty()), outside];
            let why = all.into_iter().flatten().collect::<Vec<_>>().join(", and ");
            (
                format!("type {} · {call} {}", digest.code(&app.run.id, choice.manner()), digest.short()),
                vec![
                    (format!("{} grave: {why}.", if is_changed { "As you changed it, this call is" } else { "This call is" }), Role::Warning),
                    (
                        format!(
                            "Type its code, {}, to let it run{}.",
                            digest.code(&app.run.id, choice.manner()),
                            once(*choice)
                        ),
                        Role::Text,
                    ),
                ],
                "four letters…",
                1,
                if area.width < NARROW { "lets it run" } else { "lets it run · Esc: nothing is decided" },
            )
        }
        Asks::Trust
        | Asks::Deny(..)
        | Asks::Happened(_)
        | Asks::Plan
        | Asks::Price
        | Asks::WrongClaim(_)
        | Asks::Iteration(_)
        | Asks::Sure(_) => (
            format!("Trust: {} now", app.run.trust),
            modes(app),
            "plan, ask, auto_edit or full_trust…",
            1,
            "sets it · Esc: nothing is changed",
        ),
    };
    let told = told.iter().flat_map(|(text, role)| prose(text, *role, area, app.palette)).collect();
    let does = [format!("{} {does}", keymap::key_of(Action::Submit))];
    let about = if let Asks::Code(call, ..) = asks { about::lines(app, *call, area) } else { Vec::new() };
    let dialog = Dialog { title: name, about, told, all: "audit", prompt: PROMPT, field_rows: rows, hint, does: &does };
    draw_dialog(frame, area, app, line, dialog)
}

/// Rows of the field of changed arguments: up to half of the screen, as many as they need.
fn edit_rows(area: Rect, line: &Composer) -> u16 {
    let width = usize::from(dialog_width(area)).saturating_sub(3 + cells(PROMPT));
    let needed = u16::try_from(line.rows(width).0.len()).unwrap_or(u16::MAX);
    needed.clamp(FIELD_ROWS, (area.height / 2).max(FIELD_ROWS))
}

/// The rules that can be made of a call, word by word, each with what it would have done so far.
fn offered(app: &App, call: CallId) -> Vec<(String, Role)> {
    let rule = |name: &str, open: bool| {
        let draft = app.drafted(call, open).ok()?;
        let before = counted(offering::met_before(&app.run, &draft.what), "call");
        let what = title(&draft.what.to_string(), limits::COMMAND_MAX_BYTES);
        let boxed = draft.bounds();
        Some((format!("{name}: {what} ({boxed}; {before} of this run so far)"), Role::Warning))
    };
    let told = "Calls that it covers happen unasked from now on. `tiller rules list` shows all rules.";
    let folder = format!("This folder is {}.", title(&app.run.terms.workspace, TITLE_CELLS));
    let open = rule("open", true);
    let meaning = open.is_some().then(|| offering::OPEN.to_string());
    let more = meaning.into_iter().chain([offering::REACH.to_string(), folder, told.to_string()]);
    let rows = [rule("exactly", false), open].into_iter().flatten();
    rows.chain(more.map(|text| (text, Role::Dim))).collect()
}

fn once(choice: Choice) -> &'static str {
    if choice == Choice::RunAgain { " again" } else { ", once" }
}

/// What each mode means, in plain words; the word is typed as it stands.
fn modes(app: &App) -> Vec<(String, Role)> {
    let mode = |trust: Trust| {
        let role = if trust > Trust::Ask { Role::Warning } else { Role::Text };
        (format!("{trust}: {}", trust.meaning()), role)
    };
    let mut told: Vec<(String, Role)> = Trust::ALL.into_iter().map(mode).collect();
    let waits = "With plan, what waits for you and would change anything is denied, and the run goes on; with any other \
                 mode it goes on waiting. A tighter mode takes back leave that a call was given and did not use yet.";
    told.push((waits.to_string(), Role::Dim));
    told.extend(granted(app));
    told
}

/// What is allowed until the run ends whatever the mode, because the operator said so of a call.
fn granted(app: &App) -> Vec<(String, Role)> {
    let run = &app.run;
    if run.granted_tools.is_empty() && run.progress.granted.is_empty() {
        return vec![("Beside the mode nothing is allowed until the run ends.".to_string(), Role::Dim)];
    }
    let head = "Allowed until the run ends; a tighter mode does not take it back, but plan denies it while it holds:";
    let tools = run.granted_tools.iter().map(|tool| format!("· every call of {}", title(tool, 64)));
    let known: Vec<&str> = app.chronicle.granted(run).collect();
    let others = run.progress.granted.len() - known.len();
    let exact = known.iter().map(|about| format!("· exactly this call: {about}"));
    let rest = (others > 0).then(|| format!("· {}, each exactly as it was", counted(others, "other call")));
    let rows = tools.chain(exact).chain(rest).map(|text| (text, Role::Warning));
    [(head.to_string(), Role::Dim)].into_iter().chain(rows).collect()
}
