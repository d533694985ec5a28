//! Where the run stands, after its last iteration: what was said and not told yet, why it rests, how it ended. Knows no
//! width.

use crate::domain::budget::Axis;
use crate::domain::budget::Limit;
use crate::domain::command::Policy;
use crate::domain::limits;
use crate::domain::money::MicroUsd;
use crate::domain::status::Finish;
use crate::domain::status::ParkReason;
use crate::domain::status::Status;
use crate::domain::text::counted;
use crate::domain::time::Span;
use crate::domain::time::human;
use crate::domain::visible::title;
use crate::domain::visible::transcript;
use crate::policy::ending;
use crate::policy::spending;
use crate::tui::app::App;
use crate::tui::app::Focus;
use crate::tui::lineage;
use crate::tui::rows::Form;
use crate::tui::rows::Row;
use crate::tui::text::age;
use crate::tui::text::dollars;
use crate::tui::text::tokens;
use crate::tui::theme::Role;
use crate::tui::view::header;

/// Where the run stands, after the last iteration: what was said and not told yet, why it rests, how it ended.
pub(crate) fn standing(app: &App) -> Vec<Row> {
    let run = &app.run;
    let mut rows = Vec::new();
    for one in &run.interjections {
        let text = transcript(&one.text).lines().collect::<Vec<_>>().join(" ");
        let mut row = Row::new(4, "›", text, Role::Operator, Form::Line);
        let when = match one.policy {
            Policy::Next => "next",
            Policy::SteerNow => "now",
            Policy::Interrupt => "at once",
            Policy::AfterDone => "at its end",
        };
        row.right = format!("queued {}: {when}", one.id);
        rows.push(row);
    }
    for text in app.unsaid() {
        let text = transcript(text).lines().collect::<Vec<_>>().join(" ");
        let mut row = Row::new(4, "›", text, Role::Dim, Form::Line);
        row.right = "sent".to_string();
        rows.push(row);
    }
    match &run.status {
        Status::Queued => rows.push(Row::new(2, "○", "queued: the run has not begun", Role::Dim, Form::Prose)),
        Status::Running => {}
        // The pane of what waits says it all.
        Status::Parked(ParkReason::Approval | ParkReason::OutcomeUnknown | ParkReason::Question)
            if run.waiting_count() > 0 => {}
        Status::Parked(_) => rows.extend(parked(app)),
        Status::Completed(_) | Status::Failed(_) | Status::Cancelled => rows.extend(end(app)),
    }
    rows
}

fn parked(app: &App) -> Vec<Row> {
    let since = age(app.now.at.since(app.run.status_since));
    let mut first = Row::new(2, "‖", app.run.status.phrase_now(app.run.waiting_count()), Role::Attention, Form::Line);
    first.right = since;
    let mut rows =
        vec![first, Row::new(4, "", spending::remedy(&app.run).unwrap_or_default(), Role::Text, Form::Prose)];
    let (own, others) = diagnoses(app);
    let others = others.into_iter().map(|text| format!("also true: {text}"));
    rows.extend(own.into_iter().chain(others).map(|text| Row::new(4, "", text, Role::Dim, Form::Prose)));
    rows.extend(fired(app));
    rows
}

/// What is known of why the run is parked, and what else went wrong before, which is not why.
fn diagnoses(app: &App) -> (Vec<String>, Vec<String>) {
    let flat = |text: &str| transcript(text).replace('\n', " ");
    let run = &app.run;
    let stall = run.stall.as_ref().map(|stall| format!("stalled: {}", flat(&stall.diagnosis)));
    let trouble = run.trouble.as_ref().map(|trouble| flat(&trouble.message));
    match &run.status {
        Status::Parked(ParkReason::Stalled(_)) => {
            let own = run.stall.as_ref().map(|stall| flat(&stall.diagnosis));
            (own.into_iter().collect(), trouble.into_iter().collect())
        }
        Status::Parked(ParkReason::Verification) => {
            let own = app.chronicle.rejected().map(|why| format!("the last claim was rejected: {why}"));
            (own.into_iter().collect(), stall.into_iter().chain(trouble).collect())
        }
        Status::Parked(_)
        | Status::Queued
        | Status::Running
        | Status::Completed(_)
        | Status::Failed(_)
        | Status::Cancelled => (trouble.into_iter().collect(), stall.into_iter().collect()),
    }
}

/// All that was true when the run stopped, where there is more than its reason.
fn fired(app: &App) -> Option<Row> {
    let all = ending::together(&app.run)?;
    Some(Row::new(4, "", format!("true at the same time: {all}"), Role::Dim, Form::Prose))
}

fn end(app: &App) -> Vec<Row> {
    let run = &app.run;
    let (mark, role) = header::mark(&run.status);
    let mut rows = vec![Row::new(2, mark, run.status.phrase(), role, Form::Prose)];
    if let Some(claim) = &run.iteration.claim {
        let summary = transcript(&claim.summary);
        rows.extend(summary.lines().map(|line| Row::new(4, "", line, Role::Text, Form::Prose)));
    }
    let checks = match (&run.status, run.terms.checks.len()) {
        (Status::Completed(Finish::Verified), 1) => "the check passed · ".to_string(),
        (Status::Completed(Finish::Verified), count) => format!("all {count} checks passed · "),
        (Status::Completed(Finish::AcceptedUnverified), _) => "no check was run: look at it yourself · ".to_string(),
        (Status::Completed(Finish::AcceptedByOperator), _) => "you took the work as it is · ".to_string(),
        (Status::Queued | Status::Running | Status::Parked(_) | Status::Failed(_) | Status::Cancelled, _) => {
            String::new()
        }
    };
    let of = match run.pool.limits().on(Axis::Cost) {
        Limit::At(limit) => format!(" of {}", MicroUsd(limit)),
        Limit::Unlimited => String::new(),
    };
    let money = match (run.terms.model.price, run.terms.is_pretend()) {
        (None, _) => "price unknown".to_string(),
        (Some(_), true) => format!("{} of pretend money", dollars(run.pool.spent())),
        (Some(_), false) => format!("{}{of}", dollars(run.pool.spent())),
    };
    let sum = format!(
        "{checks}{} · {money} · {} · {}",
        counted(run.iteration.n, "iteration"),
        tokens(run.pool.used(Axis::Tokens)),
        // All of it is recorded by now, so that it is told as `tiller show` tells it.
        human(Span(run.pool.used(Axis::Active)))
    );
    rows.push(Row::new(4, "", sum, Role::Dim, Form::Prose));
    rows.extend(fired(app));
    let reached = if app.focus == Focus::Composer { "in a pane (Tab): " } else { "" };
    let folder = title(&run.terms.workspace, limits::PATH_MAX_BYTES);
    let stays = match &run.status {
        Status::Completed(_) => format!("what changed is in {folder}: look at it before you keep it"),
        Status::Failed(_) | Status::Cancelled | Status::Queued | Status::Running | Status::Parked(_) => {
            format!("what was done stays in {folder}")
        }
    };
    // A row of its own: the name of a folder may be long.
    let on =
        matches!(run.status, Status::Failed(_) | Status::Cancelled).then(|| format!("{reached}{}", lineage::ways_on()));
    let told = [stays].into_iter().chain(on);
    rows.extend(told.map(|text| Row::new(4, "", text, Role::Dim, Form::Prose)));
    rows
}
