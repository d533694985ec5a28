//! The dialogs that go back to an iteration or branch off after one.

use ratatui::Frame;
use ratatui::layout::Rect;

use crate::tui::action::Action;
use crate::tui::app::App;
use crate::tui::composer::Composer;
use crate::tui::keymap;
use crate::tui::lineage::Doubt;
use crate::tui::lineage::StepKind;
use crate::tui::theme::Role;
use crate::tui::view::popups::Dialog;
use crate::tui::view::popups::PROMPT;
use crate::tui::view::popups::draw_dialog;
use crate::tui::view::popups::prose;

/// Draws the question for the iteration.
pub fn draw_iteration(frame: &mut Frame<'_>, area: Rect, app: &App, kind: StepKind, line: &Composer) {
    let told = match kind {
        StepKind::Back => "To the end of which iteration? What came after it is hidden, not removed.",
        StepKind::Fork => "After which iteration? A new run begins with a copy of what came up to its end.",
    };
    let does = "shows what that does not undo, before anything is done · Esc: nothing is changed";
    draw(frame, area, app, line, kind.title(), &[told.to_string()], ("number of the iteration…", does));
}

/// Draws what a step does and does not undo, and asks for the word.
pub fn draw_sure(frame: &mut Frame<'_>, area: Rect, app: &App, doubt: &Doubt, line: &Composer) {
    let title = format!("{} · iteration {}", doubt.step.kind.title(), doubt.step.iteration);
    draw(frame, area, app, line, &title, &doubt.told, ("type yes…", "does it · Esc: nothing is changed"));
}

fn draw(
    frame: &mut Frame<'_>,
    area: Rect,
    app: &App,
    line: &Composer,
    title: &str,
    told: &[String],
    (hint, does): (&'static str, &str),
) {
    let told = told.iter().flat_map(|text| prose(text, Role::Text, area, app.palette)).collect();
    let does = [format!("{} {does}", keymap::key_of(Action::Submit))];
    let title = title.to_string();
    let dialog =
        Dialog { title, about: Vec::new(), told, all: "audit", prompt: PROMPT, field_rows: 1, hint, does: &does };
    draw_dialog(frame, area, app, line, dialog);
}
