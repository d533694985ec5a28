//! What waits for the operator, made ready to be shown: sanitised once when it arrives, not in every frame.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::domain::id::CallId;
use crate::domain::limits;
use crate::domain::lookalike;
use crate::domain::run::Run;
use crate::domain::run::Waits;
use crate::domain::text::counted;
use crate::domain::time::Timestamp;
use crate::domain::tool::CallState;
use crate::domain::tool::Digest;
use crate::domain::tool::Edited;
use crate::domain::tool::EffectClass;
use crate::domain::tool::ToolCall;
use crate::domain::visible::MARK_LF;
use crate::domain::visible::MARK_NO_LF;
use crate::domain::visible::approval;
use crate::domain::visible::approval_line;
use crate::domain::visible::foreign_letters;
use crate::domain::visible::title;
use crate::domain::visible::transcript;
use crate::policy::decider;
use crate::policy::decider::changer;
use crate::policy::decider::whom;
use crate::policy::grave;
use crate::tui::action::Action;
use crate::tui::action::Choice;
use crate::tui::emphasis;
use crate::tui::emphasis::Emphasis;
use crate::tui::keymap;
use crate::tui::text::size;
use crate::tui::theme::Role;

/// Longest piece of one line that is laid out at once, in characters: a longer line goes on in further pieces.
const PIECE_CHARS: usize = 2_000;
/// Letters outside ASCII that are named below a call.
const FOREIGN_NAMED: usize = 3;

/// One thing that waits.
#[derive(Clone, Debug)]
pub struct Item {
    /// The call.
    pub call: CallId,
    /// What it waits for.
    pub waits: Waits,
    /// What a decision is bound to; a question has none.
    pub digest: Option<Digest>,
    /// The tool.
    pub tool: String,
    /// What the call is about, in a line.
    pub title: String,
    /// What it reaches.
    pub reach: String,
    /// Whether it would have the network.
    pub network: bool,
    /// Why it waits, as sentences.
    pub why: String,
    /// What to beware of; possibly empty.
    pub warning: String,
    /// How long what is decided about is, in lines and bytes.
    pub extent: (usize, usize),
    /// Why leave for it is typed, where it is grave.
    pub grave: Option<String>,
    /// What was changed of it, and by whom; empty where nobody did.
    pub changed: String,
    /// Whether the operator changed it, and it is asked about for what it became by that.
    pub is_changed: bool,
    /// Since when.
    pub since: Timestamp,
    /// The call itself.
    pub body: Arc<Body>,
}

/// Text with line numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Body {
    /// Its lines.
    pub lines: Vec<BodyLine>,
    /// How many of them, from the first, are what is decided about.
    pub decisive: usize,
    /// How rows are broken.
    pub form: Form,
    /// The largest number of a line; every row of a frame asks for it.
    largest: usize,
}

/// How the lines of a body are broken into rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// After so many cells, wherever that is: nothing is added or dropped.
    #[default]
    Exact,
    /// The same, and letters outside ASCII are underlined: it names programs, paths and hosts.
    Named,
    /// Between words.
    Prose,
}

/// A line of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyLine {
    /// Its number; none where a long line goes on, and in headings.
    pub number: Option<usize>,
    /// Its text, sanitised.
    pub text: String,
    /// Whether the line goes on in the next of them.
    pub goes_on: bool,
    /// How it is shown.
    pub role: Role,
    /// What of the text is emphasised: the words that a change is about.
    pub emphasis: Emphasis,
}

impl BodyLine {
    fn heading(text: String, role: Role) -> BodyLine {
        BodyLine { number: None, text, goes_on: false, role, emphasis: Emphasis::new() }
    }
}

impl Body {
    /// The digits that the largest line number needs.
    pub fn digits(&self) -> usize {
        self.largest.max(1).to_string().len()
    }

    /// How many numbered lines there are among those decided about.
    pub fn numbered(&self) -> usize {
        self.lines.iter().take(self.decisive).filter(|line| line.number.is_some()).count()
    }

    /// A body of ready rows, numbered.
    pub(crate) fn of_rows(rows: impl Iterator<Item = (String, Role)>) -> Body {
        let mut body = Body { form: Form::Prose, ..Body::default() };
        for (place, (text, role)) in rows.enumerate() {
            body.pieces(place + 1, &text, role, &[]);
        }
        body.decisive = body.lines.len();
        body
    }

    fn heading(&mut self, text: String) {
        if !self.lines.is_empty() {
            self.lines.push(BodyLine::heading(String::new(), Role::Dim));
        }
        self.lines.push(BodyLine::heading(text, Role::Strong));
    }

    /// Arguments, under a heading that says whose they are.
    fn arguments(&mut self, whose: &str, arguments: &str) {
        self.heading(format!("arguments as {whose}, {}", size(arguments.len() as u64)));
        self.exact(arguments, false);
    }

    /// Text in approval mode: a new number for each line break, so that a wrapped line can't pass for two.
    fn exact(&mut self, text: &str, is_diff: bool) {
        let shown = approval(text);
        let mut lines: Vec<String> = shown.split('\n').map(str::to_string).collect();
        let last = lines.len() - 1;
        for line in &mut lines[..last] {
            let kept = line.len() - MARK_LF.len();
            line.truncate(kept);
        }
        // Texts that differ in their last line break only must look different: a diff mostly has one, a command
        // mostly has none, and the other case is marked.
        let ends_in_break = last > 0 && lines[last].is_empty();
        if ends_in_break {
            lines.pop();
        }
        if let Some(line) = lines.last_mut().filter(|_| ends_in_break != is_diff) {
            line.push_str(if ends_in_break { MARK_LF } else { MARK_NO_LF });
        }
        let mut is_head = true;
        let role = |line: &String| {
            is_head &= !line.starts_with('@');
            match (is_diff, is_head) {
                (false, _) => Role::Text,
                (true, true) => Role::Hunk,
                (true, false) => diff_role(line),
            }
        };
        let roles: Vec<Role> = lines.iter().map(role).collect();
        let lines: Vec<(&str, Role)> = lines.iter().map(String::as_str).zip(roles).collect();
        let mut emphasis = if is_diff { emphasis::words(&lines) } else { BTreeMap::new() };
        for (place, (line, role)) in lines.into_iter().enumerate() {
            self.pieces(place + 1, line, role, &emphasis.remove(&place).unwrap_or_default());
        }
    }

    fn reading(&mut self, text: &str, role: Role) {
        for (place, line) in transcript(text).lines().enumerate() {
            self.pieces(place + 1, line, role, &[]);
        }
    }

    fn pieces(&mut self, number: usize, line: &str, role: Role, emphasised: &[Range<usize>]) {
        let mut rest = line;
        self.largest = self.largest.max(number);
        let mut number = Some(number);
        loop {
            let end = rest.char_indices().nth(PIECE_CHARS).map_or(rest.len(), |(place, _)| place);
            let text = rest[..end].to_string();
            let start = line.len() - rest.len();
            let emphasis = emphasis::within(emphasised, start..start + end);
            rest = &rest[end..];
            self.lines.push(BodyLine { number: number.take(), text, goes_on: !rest.is_empty(), role, emphasis });
            if rest.is_empty() {
                return;
            }
        }
    }
}

fn diff_role(line: &str) -> Role {
    match line.as_bytes().first() {
        Some(b'+') => Role::Added,
        Some(b'-') => Role::Removed,
        Some(b'@') => Role::Hunk,
        Some(_) | None => Role::Text,
    }
}

/// All that waits, in the model's order. What did not change since `before` is taken over as it is.
pub fn items(run: &Run, before: &[Item]) -> Vec<Item> {
    run.waiting().into_iter().map(|(call, waits)| item(call, waits, before)).collect()
}

fn item(call: &ToolCall, waits: Waits, before: &[Item]) -> Item {
    let digest = match waits {
        Waits::Decision | Waits::Outcome => call.digest(),
        Waits::Answer => None,
    };
    let known = before.iter().find(|one| one.call == call.id && one.waits == waits && one.digest == digest);
    let body = known.map_or_else(|| Arc::new(body(call, waits)), |one| one.body.clone());
    let extent = known.map_or_else(|| (body.numbered(), decided(call, waits).len()), |one| one.extent);
    Item {
        call: call.id,
        waits,
        digest,
        tool: title(&call.tool, 64),
        title: match waits {
            Waits::Decision | Waits::Outcome => title(&call.title(), limits::TODO_TITLE_MAX_CHARS),
            Waits::Answer => title(&question(call), limits::TODO_TITLE_MAX_CHARS),
        },
        reach: call.facts.as_ref().map(|facts| title(&facts.reach, 200)).unwrap_or_default(),
        network: call.facts.as_ref().is_some_and(|facts| facts.network),
        why: why(call, waits),
        warning: foreign(call),
        extent,
        grave: grave::of(call),
        changed: changed(call),
        is_changed: is_changed(call),
        since: call.since,
        body,
    }
}

/// That a call is grave, why, and what lets it run; nothing where it is not.
pub(crate) fn grave_line(item: &Item) -> Option<String> {
    item.grave.as_ref().map(|grave| grave_words(grave, item.waits, item.is_changed))
}

fn grave_words(grave: &str, waits: Waits, is_changed: bool) -> String {
    let choice = if waits == Waits::Outcome { Choice::RunAgain } else { Choice::AllowOnce };
    let changed = if is_changed { " as you changed it" } else { "" };
    format!("grave{changed}: {grave}; {} opens a field for its code", keymap::key_of(Action::Decide(choice)))
}

/// Whether this is a call as the operator changed it that is asked about for what it became by that: the gate lets
/// happen what else they write.
pub(crate) fn is_changed(call: &ToolCall) -> bool {
    let is_asked = matches!(call.state, CallState::Awaiting { .. });
    is_asked && call.edited.as_ref().is_some_and(|edited| edited.is_leave)
}

/// What was changed of it, and by whom, in a line; nothing where nobody did.
fn changed(call: &ToolCall) -> String {
    let told = |edited: &Edited| decider::changed(&edited.original, &call.arguments, &changer(edited));
    call.edited.as_ref().map(|edited| title(&told(edited), limits::NOTE_MAX_BYTES)).unwrap_or_default()
}

fn why(call: &ToolCall, waits: Waits) -> String {
    match (&call.state, waits) {
        (CallState::Awaiting { why }, _) => format!("asked: {}", title(why, limits::NOTE_MAX_BYTES)),
        (CallState::OutcomeUnknown { probed }, _) => {
            let traces = if *probed { "; its traces do not tell" } else { "" };
            format!(
                "it was started (attempt {}) and the process that ran it is gone: it may or may not have \
                 happened{traces}",
                call.attempts
            )
        }
        (_, Waits::Answer) => "the model asks you; Enter in the composer answers".to_string(),
        (_, Waits::Decision | Waits::Outcome) => String::new(),
    }
}

/// Letters that could be taken for others, in what names a program, a path or a host.
fn foreign(call: &ToolCall) -> String {
    let title = call.facts.as_ref().map(|facts| facts.title.as_str()).unwrap_or_default();
    let texts = [call.tool.as_str(), if names(call) { preview(call) } else { title }];
    let mut found: Vec<String> = texts
        .iter()
        .flat_map(|text| foreign_letters(text, FOREIGN_NAMED + 1))
        .take(FOREIGN_NAMED + 1)
        .map(|(one, line, column)| letter(one, line, column))
        .collect();
    if found.len() > FOREIGN_NAMED {
        found.truncate(FOREIGN_NAMED);
        found.push("and more".to_string());
    }
    if found.is_empty() { String::new() } else { format!("! not ASCII: {}", found.join(", ")) }
}

/// Whether the whole call names programs, paths or hosts; of a change of a file only its title does.
fn names(call: &ToolCall) -> bool {
    match call.effect {
        EffectClass::External | EffectClass::Idempotent => {
            call.facts.as_ref().is_some_and(|facts| !facts.preview.is_empty())
        }
        EffectClass::Read | EffectClass::WriteFile | EffectClass::Control => false,
    }
}

/// What a letter outside ASCII is, and what it looks like.
fn letter(one: char, line: usize, column: usize) -> String {
    let case = if one.is_lowercase() {
        "small letter"
    } else if one.is_uppercase() {
        "capital letter"
    } else {
        "letter"
    };
    let kind = lookalike::script(one).map_or(case.to_string(), |script| format!("{script} {case}"));
    let alike = lookalike::looks_like(one).map_or(String::new(), |plain| format!(", like {plain}"));
    format!("{one} at {line}:{column} is U+{:04X} {kind}{alike}", u32::from(one))
}

/// The text that is decided about.
fn decided(call: &ToolCall, waits: Waits) -> &str {
    match waits {
        Waits::Answer => &call.arguments,
        Waits::Decision | Waits::Outcome => preview(call),
    }
}

fn body(call: &ToolCall, waits: Waits) -> Body {
    let mut body = Body::default();
    match waits {
        Waits::Answer => {
            body.form = Form::Prose;
            body.reading(&question(call), Role::Text);
        }
        Waits::Decision | Waits::Outcome => {
            body.exact(preview(call), call.shows_diff());
            if names(call) {
                body.form = Form::Named;
            }
        }
    }
    body.decisive = body.lines.len();
    body
}

fn preview(call: &ToolCall) -> &str {
    match &call.facts {
        Some(facts) if !facts.preview.is_empty() => &facts.preview,
        Some(_) | None => &call.arguments,
    }
}

/// The text of a question; the raw arguments where they are not what they should be.
pub fn question(call: &ToolCall) -> String {
    let parsed: Option<serde_json::Value> = serde_json::from_str(&call.arguments).ok();
    let text = parsed.as_ref().and_then(|value| value.get("question")).and_then(|value| value.as_str());
    text.unwrap_or(&call.arguments).to_string()
}

/// Everything there is about a call, what is decided about first.
pub fn whole(call: &ToolCall, waits: Waits) -> Body {
    let mut whole = body(call, waits);
    if let Some(grave) = grave::of(call) {
        whole.heading(grave_words(&grave, waits, is_changed(call)));
    }
    whole.heading(why(call, waits));
    if let Some(facts) = call.facts.as_ref().filter(|facts| !facts.reach.is_empty()) {
        whole.heading(format!("reaches: {}", title(&facts.reach, limits::NOTE_MAX_BYTES)));
    }
    match &call.edited {
        None => whole.arguments("the model wrote them", &call.arguments),
        Some(edited) => {
            whole.arguments(&format!("{} changed them", title(&changer(edited), 100)), &call.arguments);
            // What was changed elsewhere is only said to be the model's.
            let first = if edited.origin.is_here() { "the model wrote them" } else { "they were before that" };
            whole.arguments(first, &edited.original);
        }
    }
    if let Some(facts) = &call.facts {
        if !facts.binding.is_empty() {
            whole.heading("a decision is bound to all of this and to".to_string());
            for (place, line) in facts.binding.iter().enumerate() {
                whole.pieces(place + 1, &approval_line(line), Role::Text, &[]);
            }
        }
        if let Some(digest) = call.digest() {
            whole.heading(format!("digest {}", title(&digest.0, 80)));
        }
    }
    if let Some(by) = &call.allowed {
        let who = title(&whom(by, call.origin), 100);
        let times = counted(usize::try_from(call.attempts).unwrap_or(usize::MAX), "time");
        whole.heading(format!("allowed by {who}; started {times}"));
    }
    whole
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    fn check(text: &str, expected: &[(Option<usize>, &str)]) {
        let mut body = Body::default();
        body.exact(text, false);
        let found: Vec<(Option<usize>, &str)> =
            body.lines.iter().map(|line| (line.number, line.text.as_str())).collect();
        assert_eq!(found, expected, "{text:?}");
    }

    #[test]
    fn each_line_break_has_a_number() {
        check("a", &[(Some(1), "a")]);
        check("a\nb", &[(Some(1), "a"), (Some(2), "b")]);
        check("a\n", &[(Some(1), "a⟦LF⟧")]);
        check("a\n\n", &[(Some(1), "a"), (Some(2), "⟦LF⟧")]);
        check("", &[(Some(1), "")]);
        check("\n", &[(Some(1), "⟦LF⟧")]);
        let diff = |text: &str| {
            let mut body = Body::default();
            body.exact(text, true);
            body.lines.iter().map(|line| line.text.clone()).collect::<Vec<_>>()
        };
        let mut body = Body::default();
        body.exact(&"a\n".repeat(100), false);
        body.exact("b", false);
        assert_eq!(body.digits(), 3, "the last part is not the longest");
        assert_eq!((diff("+a\n"), diff("+a")), (vec!["+a".to_string()], vec!["+a⟦no LF⟧".to_string()]));
    }

    #[test]
    fn long_lines_go_on_without_a_number() {
        let mut body = Body::default();
        body.exact(&"é".repeat(PIECE_CHARS + 1), false);
        let lines: Vec<(Option<usize>, bool)> = body.lines.iter().map(|line| (line.number, line.goes_on)).collect();
        assert_eq!(lines, [(Some(1), true), (None, false)]);
        assert_eq!(body.lines[1].text, "é");
    }

    #[test]
    fn emphasis_goes_on_with_its_line() {
        let mut body = Body::default();
        let long = "a ".repeat(PIECE_CHARS / 2 - 2);
        body.exact(&format!("@@ -1 +1 @@\n-{long}before\n+{long}afterwards\n"), true);
        let words: Vec<&str> =
            body.lines.iter().flat_map(|line| line.emphasis.iter().map(|range| &line.text[range.clone()])).collect();
        assert_eq!(words, ["bef", "ore", "aft", "erwards"]);
        let mut body = Body::default();
        body.exact("@@ -1 +1 @@\n-name = a\n+name = b\n", false);
        assert!(body.lines.iter().all(|line| line.emphasis.is_empty()), "it is no diff");
    }
}
