//! What there is to say about an iteration, row by row: the model's words, its calls with their states and results,
//! notes about what happened in between. Knows no width.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::domain::control;
use crate::domain::id::CallId;
use crate::domain::limits;
use crate::domain::message::Message;
use crate::domain::message::ToolUse;
use crate::domain::model::Purpose;
use crate::domain::money::MicroUsd;
use crate::domain::run::ModelCall;
use crate::domain::run::Waits;
use crate::domain::status::Phase;
use crate::domain::text::counted;
use crate::domain::text::head;
use crate::domain::text::one_line;
use crate::domain::text::tail;
use crate::domain::time::Span;
use crate::domain::time::human;
use crate::domain::tool::CallState;
use crate::domain::tool::OutcomeKind;
use crate::domain::tool::ToolCall;
use crate::domain::visible::title;
use crate::domain::visible::transcript;
use crate::policy::decider;
use crate::tui::app::App;
use crate::tui::guide;
use crate::tui::markdown;
use crate::tui::markdown::Said;
use crate::tui::markdown::Strand;
use crate::tui::reread::told;
use crate::tui::standing;
use crate::tui::text::age;
use crate::tui::text::dollars;
use crate::tui::text::elapsed;
use crate::tui::text::size;
use crate::tui::text::tokens;
use crate::tui::theme::Role;

/// Lines of the model's words that are shown before they fold.
const SAID_LINES: usize = 24;
/// Of its last lines then.
const SAID_LAST: usize = 2;
/// Lines of streamed text that are shown: more than a pane is high.
const LIVE_LINES: usize = 60;
/// Lines of streamed reasoning that are shown.
const REASONING_LINES: usize = 3;
/// Longest text that is laid out of one thing while it is folded, in bytes.
const FOLDED_BYTES: usize = 16 * 1024;
/// The same of a text that streams, in bytes: it is laid out in every frame.
const LIVE_BYTES: usize = 6 * 1024;
/// The beginning of a line that is laid out where only one row of it can be seen, in bytes: more than any row shows.
const ROW_BYTES: usize = 2 * 1024;

/// How much is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Bodies fold to a few lines.
    Folded,
    /// Everything.
    Whole,
}

/// How a row is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// In one line; what does not fit is cut.
    Line,
    /// In as many lines as it needs.
    Prose,
}

/// A row.
#[derive(Clone, Debug)]
pub struct Row {
    /// Cells before the mark.
    pub indent: usize,
    /// The mark; possibly empty.
    pub mark: &'static str,
    /// How the mark is shown.
    pub mark_role: Role,
    /// The text, sanitised, without line breaks.
    pub text: String,
    /// How it is shown.
    pub role: Role,
    /// What stands at the right edge.
    pub right: String,
    /// How that is shown.
    pub right_role: Role,
    /// How it is laid out.
    pub form: Form,
    /// The pieces of the text, where they are not all shown alike; together they are the text.
    pub strands: Vec<Strand>,
    /// Cells by which what follows of it stands further to the right.
    pub hang: usize,
    /// Whether it is, or stands for, one of the texts that may be put away.
    pub is_text: bool,
}

/// What stands for a text that is not read.
const UNREAD: &str = "…";

impl Row {
    pub(crate) fn new(indent: usize, mark: &'static str, text: impl Into<String>, role: Role, form: Form) -> Row {
        let right = String::new();
        Row {
            indent,
            mark,
            mark_role: role,
            text: text.into(),
            role,
            right,
            right_role: Role::Dim,
            form,
            strands: Vec::new(),
            hang: 0,
            is_text: false,
        }
    }

    /// A row of what the model says.
    fn said(said: Said) -> Row {
        let text: String = said.strands.iter().map(|strand| strand.text.as_str()).collect();
        let form = if said.is_cut { Form::Line } else { Form::Prose };
        Row { strands: said.strands, hang: said.hang, ..Row::new(4, "", text, Role::Text, form).text() }
    }

    fn text(self) -> Row {
        Row { is_text: true, ..self }
    }

    fn unread(indent: usize) -> Row {
        Row::new(indent, "", UNREAD, Role::Dim, Form::Line).text()
    }

    /// The row as one text.
    pub fn plain(&self) -> String {
        let gap = if self.mark.is_empty() { "" } else { " " };
        let right = if self.right.is_empty() { String::new() } else { format!("  {}", self.right) };
        format!("{}{}{gap}{}{right}", " ".repeat(self.indent), self.mark, self.text)
    }
}

/// How many blocks there are: one for each iteration, and one for where the run stands.
pub fn blocks(app: &App) -> usize {
    usize::try_from(app.run.iteration.n).unwrap_or(usize::MAX).saturating_add(1)
}

/// The rows of a block.
pub fn of(app: &App, block: usize, detail: Detail) -> Vec<Row> {
    match u32::try_from(block + 1) {
        Ok(n) if n <= app.run.iteration.n => iteration(app, n, detail),
        Ok(_) | Err(_) => standing::standing(app),
    }
}

fn iteration(app: &App, n: u32, detail: Detail) -> Vec<Row> {
    let told = told(&app.run, app.reread.of(n), n);
    let results: BTreeMap<CallId, Ended<'_>> = told
        .iter()
        .filter_map(|one| match one.message {
            Message::ToolResult { call, title, kind, text, bytes, took } => {
                let text = Some(text.as_str()).filter(|_| !one.lacks(0));
                Some((*call, Ended { title, kind: *kind, text, bytes: *bytes, took: *took }))
            }
            Message::Operator { .. } | Message::Engine { .. } | Message::Assistant { .. } => None,
        })
        .collect();
    let mut rows = vec![heading(app, n)];
    rows.extend(app.run.terms.guide.iter().filter(|_| n == 1).flat_map(|one| guide::rows(one, detail)));
    if let Some(Err(why)) = app.reread.of(n) {
        let text = format!("its texts can't be shown: {}", title(why, limits::NOTE_MAX_BYTES));
        rows.push(Row::new(4, "!", text, Role::Warning, Form::Prose).text());
    }
    let mut notes = app.chronicle.of(n).peekable();
    for one in &told {
        while let Some(note) = notes.next_if(|note| note.before <= one.place) {
            rows.extend(noted(note.mark, note.role, &note.text));
        }
        match one.message {
            Message::Operator { text, .. } => rows.extend(noted("›", Role::Operator, &transcript(text))),
            Message::Engine { text } => rows.extend(noted("·", Role::Dim, &transcript(text))),
            Message::Assistant { text, uses, .. } => {
                match one.lacks(0) {
                    true => rows.push(Row::unread(4)),
                    false => said(&mut rows, text, detail),
                }
                for (slot, asked) in (1..).zip(uses) {
                    let arguments = Some(asked.arguments.as_str()).filter(|_| !one.lacks(slot));
                    rows.extend(call(app, asked, arguments, results.get(&asked.id), detail));
                }
            }
            Message::ToolResult { .. } => {}
        }
    }
    for note in notes {
        rows.extend(noted(note.mark, note.role, &note.text));
    }
    if n == app.run.iteration.n && app.run.iteration.is_open {
        rows.extend(under_way(app));
    }
    rows.push(Row::new(0, "", "", Role::Text, Form::Line));
    rows
}

fn heading(app: &App, n: u32) -> Row {
    let run = &app.run;
    let closed = usize::try_from(n).ok().and_then(|n| run.history.get(n.checked_sub(1)?));
    let is_open = closed.is_none();
    let phase = closed.map_or(run.iteration.phase, |closed| closed.phase);
    let before = run.iteration.plan_before.current().filter(|_| is_open).map(|todo| todo.title.as_str());
    let todo = before.or_else(|| app.chronicle.todo(n));
    let text = match (phase, todo) {
        (Phase::Decompose, _) => "Make a plan".to_string(),
        (Phase::Replan, _) => "Change the plan".to_string(),
        (Phase::WrapUp, _) => "Say where the work stands".to_string(),
        (Phase::Pursue, Some(todo)) => title(todo, limits::TODO_TITLE_MAX_CHARS),
        (Phase::Pursue, None) => "Work on the plan".to_string(),
    };
    let (spent, sent) =
        closed.map_or((run.iteration.spent, run.iteration.tokens), |closed| (closed.spent, closed.tokens));
    let money = if spent > MicroUsd(0) { format!("{} · ", dollars(spent)) } else { String::new() };
    let used = if sent > 0 { format!("{money}{}", tokens(sent)) } else { String::new() };
    let moved = match closed {
        Some(closed) if closed.phase == Phase::Pursue && !closed.progress => "no progress",
        Some(_) | None => "",
    };
    let named = if phase == Phase::Pursue { "" } else { phase.word() };
    let (mark, role) = if is_open { ("▸", Role::Moving) } else { (" ", Role::Dim) };
    let mut row = Row::new(0, "", format!("{n:>3} {mark} {text}"), Role::Strong, Form::Line);
    let parts = [moved, named, used.as_str()];
    row.right = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ");
    row.right_role = if is_open { role } else { Role::Dim };
    row
}

fn noted(mark: &'static str, role: Role, text: &str) -> Vec<Row> {
    let lines: Vec<&str> = text.lines().collect();
    let shown = fold(&lines, 6, 2);
    let row = |(place, line): (usize, String)| {
        let mark = if place == 0 { mark } else { " " };
        Row::new(4, mark, line, role, Form::Prose)
    };
    shown.into_iter().enumerate().map(row).collect()
}

fn said(rows: &mut Vec<Row>, text: &str, detail: Detail) {
    if detail == Detail::Whole {
        // As it was written, sign by sign.
        let shown = transcript(text.trim());
        rows.extend(shown.lines().map(|line| Row::new(4, "", line, Role::Text, Form::Prose).text()));
        return;
    }
    let mut said: Vec<Row> = markdown::rows(head(text.trim(), FOLDED_BYTES)).into_iter().map(Row::said).collect();
    let kept = SAID_LINES + SAID_LAST;
    if said.len() > kept + 1 {
        let more = format!("… {}", counted(said.len() - kept, "more line"));
        let last = said.split_off(said.len() - SAID_LAST);
        said.truncate(SAID_LINES);
        said.push(Row::new(4, "", more, Role::Text, Form::Prose).text());
        said.extend(last);
    }
    rows.extend(said);
}

/// The first and the last lines, and between them how many are hidden.
fn fold(lines: &[&str], first: usize, last: usize) -> Vec<String> {
    if lines.len() <= first + last + 1 {
        return lines.iter().map(|line| line.to_string()).collect();
    }
    let hidden = lines.len() - first - last;
    let shown = |line: &&str| line.to_string();
    let mut out: Vec<String> = lines.iter().take(first).map(shown).collect();
    out.push(format!("… {}", counted(hidden, "more line")));
    out.extend(lines.iter().skip(lines.len() - last).map(shown));
    out
}

/// The result of a call, as the conversation has it.
struct Ended<'a> {
    title: &'a str,
    kind: OutcomeKind,
    /// Nothing while it is not read.
    text: Option<&'a str>,
    bytes: u64,
    took: Span,
}

fn call(app: &App, one: &ToolUse, arguments: Option<&str>, result: Option<&Ended<'_>>, detail: Detail) -> Vec<Row> {
    let state = app.run.calls.get(&one.id);
    let (mark, role, right) = match (result, state) {
        (Some(ended), _) => outcome(app, one, ended),
        (None, Some(call)) => standing_of(app, call),
        (None, None) => ("·", Role::Dim, String::new()),
    };
    let about = match (result, state) {
        _ if control::is_control(&one.tool) => arguments.map_or(UNREAD.to_string(), |text| about_control(one, text)),
        (Some(ended), _) => ended.title.to_string(),
        (None, Some(call)) if call.facts.is_some() => call.title(),
        (None, Some(_) | None) => arguments.map_or(UNREAD.to_string(), head_of),
    };
    let text = format!("{}  {}", title(&one.tool, 64), title(&about, limits::TODO_TITLE_MAX_CHARS));
    let mut row = Row::new(4, mark, text, Role::Text, Form::Line);
    row.mark_role = role;
    row.right = right;
    row.right_role = role;
    let mut rows = vec![row];
    if detail == Detail::Whole {
        let ran = app.chronicle.ran(one.id).map(|place| format!("ran {place}"));
        rows.extend(ran.map(|text| Row::new(6, "", text, Role::Dim, Form::Line)));
        let arguments = arguments.map(transcript).unwrap_or(UNREAD.to_string());
        rows.extend(arguments.lines().map(|line| Row::new(6, "", line, Role::Dim, Form::Line)));
    }
    match result {
        Some(ended) => rows.extend(output(&one.tool, ended, detail)),
        None => rows.extend(live_output(app, one.id)),
    }
    rows
}

fn outcome(app: &App, one: &ToolUse, ended: &Ended<'_>) -> (&'static str, Role, String) {
    let (mark, role) = mark_of(ended.kind);
    let word = word_of(ended.kind);
    let parts = decider::ended(ended.kind, word, app.chronicle.decided(one.id));
    let mut parts: Vec<String> = parts.into_iter().map(String::from).collect();
    let took = Some(ended.took).filter(|took| *took > Span(0));
    parts.extend(took.map(human));
    if took.is_some() || (has_run(ended.kind) && !control::is_control(&one.tool)) {
        parts.push(size(ended.bytes));
    }
    (mark, role, parts.join(" · "))
}

/// Whether a call that ended so has a result of its own, and not only a sentence about why not.
fn has_run(kind: OutcomeKind) -> bool {
    match kind {
        OutcomeKind::Done | OutcomeKind::Failed | OutcomeKind::TimedOut => true,
        OutcomeKind::Cancelled | OutcomeKind::Denied | OutcomeKind::NotRun(_) | OutcomeKind::Unknown => false,
    }
}

fn word_of(kind: OutcomeKind) -> &'static str {
    match kind {
        OutcomeKind::Unknown => "outcome unknown, skipped",
        OutcomeKind::Done
        | OutcomeKind::Failed
        | OutcomeKind::TimedOut
        | OutcomeKind::Cancelled
        | OutcomeKind::Denied
        | OutcomeKind::NotRun(_) => kind.word(),
    }
}

fn mark_of(kind: OutcomeKind) -> (&'static str, Role) {
    match kind {
        OutcomeKind::Done => ("✓", Role::Good),
        OutcomeKind::Failed | OutcomeKind::TimedOut | OutcomeKind::NotRun(_) => ("✗", Role::Bad),
        OutcomeKind::Cancelled | OutcomeKind::Denied => ("–", Role::Warning),
        OutcomeKind::Unknown => ("?", Role::Warning),
    }
}

/// Where a call stands that has not ended.
fn standing_of(app: &App, call: &ToolCall) -> (&'static str, Role, String) {
    let for_long = app.now.at.since(call.since);
    let who = decider::of_call(call).map(|who| title(&who, limits::TODO_TITLE_MAX_CHARS));
    let beside = who.as_ref().map(|who| format!("{who} · ")).unwrap_or_default();
    match (&call.state, app.run.waits(call)) {
        (_, Some(_)) if app.is_sent(call.id) => ("‖", Role::Moving, "sent".to_string()),
        (_, Some(Waits::Decision)) => ("‖", Role::Attention, format!("waits for you · {}", age(for_long))),
        (_, Some(Waits::Outcome)) => ("?", Role::Attention, format!("outcome unknown · {}", age(for_long))),
        (_, Some(Waits::Answer)) => ("›", Role::Attention, format!("asks you · {}", age(for_long))),
        (CallState::Proposed, None) => ("·", Role::Dim, "looked at".to_string()),
        (CallState::Prepared, None) => ("·", Role::Dim, "judged".to_string()),
        (CallState::Awaiting { .. }, None) => ("‖", Role::Attention, "waits for you".to_string()),
        (CallState::Approved, None) => ("○", Role::Text, who.unwrap_or("allowed".to_string())),
        (CallState::Denied { .. }, None) => ("–", Role::Warning, who.unwrap_or("denied".to_string())),
        (CallState::Running, None) => ("▸", Role::Moving, format!("{beside}running {}", elapsed(for_long))),
        (CallState::OutcomeUnknown { .. }, None) => ("?", Role::Warning, "looked for its traces".to_string()),
        (CallState::Closed(kind), None) => {
            let (mark, role) = mark_of(*kind);
            (mark, role, word_of(*kind).to_string())
        }
    }
}

/// What a control call is about, in words rather than JSON.
fn about_control(one: &ToolUse, arguments: &str) -> String {
    // Longer arguments are cut rather than read in every frame.
    let is_short = arguments.len() <= FOLDED_BYTES;
    let value: Value = if is_short { serde_json::from_str(arguments).unwrap_or_default() } else { Value::Null };
    let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_string);
    let todos = value.get("todos").and_then(Value::as_array).map(|todos| counted(todos.len(), "todo"));
    let about = match one.tool.as_str() {
        control::UPDATE_PLAN => match (todos, text("explanation")) {
            (Some(todos), Some(why)) => Some(format!("{todos}: {why}")),
            (todos, why) => todos.or(why),
        },
        control::FINISH => text("summary"),
        control::ASK_OPERATOR => text("question"),
        control::NOTE => text("text"),
        control::READ_REF => text("ref"),
        _ => None,
    };
    about.unwrap_or_else(|| head_of(arguments))
}

/// The head of arguments that can be long.
fn head_of(arguments: &str) -> String {
    one_line(head(arguments, 1_024), 80)
}

fn output(tool: &str, ended: &Ended<'_>, detail: Detail) -> Vec<Row> {
    let kind = ended.kind;
    let says_nothing_new = detail == Detail::Folded && control::is_control(tool) && kind == OutcomeKind::Done;
    if says_nothing_new {
        return Vec::new();
    }
    let Some(text) = ended.text else { return vec![Row::unread(6)] };
    if text.trim().is_empty() {
        return Vec::new();
    }
    let role = if kind.is_error() { Role::Warning } else { Role::Dim };
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let lines = match (detail, kind.is_error()) {
        (Detail::Whole, _) => lines.into_iter().map(str::to_string).collect(),
        // What went wrong mostly stands at the end.
        (Detail::Folded, true) => fold(&lines, 1, limits::FOLD_LINES),
        (Detail::Folded, false) => fold(&lines, limits::FOLD_LINES - 1, 1),
    };
    let most = if detail == Detail::Folded { ROW_BYTES } else { usize::MAX };
    let row = |line: String| Row::new(6, "", transcript(head(&line, most)), role, Form::Line).text();
    lines.into_iter().map(row).collect()
}

fn live_output(app: &App, call: CallId) -> Vec<Row> {
    let Some(text) = app.live.tool(call) else { return Vec::new() };
    let lines: Vec<&str> = tail(text, FOLDED_BYTES).lines().collect();
    let last = lines.iter().skip(lines.len().saturating_sub(limits::FOLD_LINES));
    last.map(|line| Row::new(6, "", transcript(head(line, ROW_BYTES)), Role::Text, Form::Line)).collect()
}

/// What happens in the open iteration right now.
fn under_way(app: &App) -> Vec<Row> {
    let run = &app.run;
    let mut rows = Vec::new();
    if let Some(flying) = &run.model_call {
        rows.extend(streaming(app, flying));
    }
    if let (Some(at), Some(trouble)) = (run.retry_at, &run.trouble) {
        let attempt = run.iteration.failures + 1;
        let wait = elapsed(at.since(app.now.at));
        // The failure stands just above, unless the screen was opened after it.
        let is_told = app.chronicle.of(run.iteration.n).last().is_some();
        let why = if is_told { String::new() } else { format!(": {}", title(&trouble.message, 300)) };
        let text = format!("tried again in {wait} (attempt {attempt}){why}");
        rows.push(Row::new(4, "!", text, Role::Warning, Form::Prose));
    }
    if let Some(index) = run.running_check() {
        let check = run.terms.checks.get(index).map(|check| title(&check.title(), 200)).unwrap_or_default();
        let mut row = Row::new(
            4,
            "▸",
            format!("check {} of {}: {check}", index + 1, run.terms.checks.len()),
            Role::Moving,
            Form::Line,
        );
        row.right = format!("running {}", elapsed(app.now.at.since(run.at)));
        row.right_role = Role::Moving;
        rows.push(row);
    }
    rows
}

fn streaming(app: &App, flying: &ModelCall) -> Vec<Row> {
    let live = &app.live;
    let last = |text: &str, most: usize| -> Vec<String> {
        let shown = transcript(tail(text, LIVE_BYTES));
        let lines: Vec<&str> = shown.lines().collect();
        lines.iter().skip(lines.len().saturating_sub(most)).map(|line| line.to_string()).collect()
    };
    let mut rows = Vec::new();
    if live.text.is_empty() {
        let lines = last(&live.reasoning, REASONING_LINES);
        rows.extend(lines.into_iter().map(|line| Row::new(4, "", line, Role::Dim, Form::Prose)));
    }
    let said = markdown::rows(tail(&live.text, LIVE_BYTES));
    let hidden = said.len().saturating_sub(LIVE_LINES);
    rows.extend(said.into_iter().skip(hidden).map(Row::said));
    let bytes = live.text.len() + live.reasoning.len() + live.arguments_bytes;
    let what = match (flying.purpose, live.arguments_bytes > 0, live.text.is_empty(), live.reasoning.is_empty()) {
        (Purpose::Summary, ..) => "summarising the conversation",
        (Purpose::Judge(_), ..) => "the model judges a check",
        (Purpose::Turn, true, _, _) => "the model writes a call",
        (Purpose::Turn, false, false, _) => "the model answers",
        (Purpose::Turn, false, true, false) => "the model thinks",
        (Purpose::Turn, false, true, true) => "the model is asked",
    };
    let mut row = Row::new(4, "▸", what, Role::Moving, Form::Line);
    let so_far = if bytes > 0 { format!("{} · ", size(bytes as u64)) } else { String::new() };
    let attempt = if flying.id.attempt > 1 { format!(" · attempt {}", flying.id.attempt) } else { String::new() };
    // The text is whole in its record; here the rest of it comes too fast to be shown.
    let lost = if live.lost > 0 { format!("{} not shown · ", counted(live.lost, "scrap")) } else { String::new() };
    row.right = format!("{lost}{so_far}{}{attempt}", elapsed(app.now.at.since(flying.started)));
    row.right_role = Role::Moving;
    rows.push(row);
    rows
}
