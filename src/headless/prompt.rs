//! What is asked of a person about a call, and what a typed line means as an answer. Pure: the run, the line and the
//! moments in, a command or a text out.
//!
//! A decision holds for the call that was printed, in full, before the line was typed: an early line decides nothing,
//! and a call that was printed only in part can't be allowed.

use std::time::Duration;
use std::time::Instant;

use crate::domain::approval::Decision;
use crate::domain::approval::Resolution;
use crate::domain::command::Command;
use crate::domain::command::Policy;
use crate::domain::id::CallId;
use crate::domain::limits;
use crate::domain::rule::RuleDraft;
use crate::domain::run::Run;
use crate::domain::run::Waits;
use crate::domain::saying;
use crate::domain::text::counted;
use crate::domain::tool::CallState;
use crate::domain::tool::Digest;
use crate::domain::tool::ToolCall;
use crate::domain::visible::approval_line;
use crate::headless::changed;
use crate::headless::orders;
use crate::headless::orders::question;
use crate::headless::text::block;
use crate::headless::text::exact_block;
use crate::headless::text::exact_diff;
use crate::headless::text::title;
use crate::policy::grave;
use crate::policy::offering;
use crate::policy::permission;

/// Something that a person was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    call: CallId,
    waits: Waits,
    digest: Option<Digest>,
    /// Why it is grave, where it is, and what is typed to let it run.
    grave: Option<(String, String)>,
    /// Whether leave for it can hold until the run ends.
    may_last: bool,
    /// The whole call, as it is decided about.
    whole: String,
    /// The standing rules that can be made of it: of its exact words, and with the last one open.
    rules: [Result<RuleDraft, String>; 2],
    /// What was not printed yet, in lines.
    unseen: usize,
    asked_at: Instant,
}

/// What a typed line means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// A command for the run.
    Command(Command),
    /// Two, the second once the first is accepted.
    Both(Command, Command),
    /// Nothing yet; this is said to the person.
    Reply(String),
    /// Nothing at all.
    Nothing,
}

impl Prompt {
    /// What the run waits for first, as a prompt with its text; nothing when it waits for nobody.
    pub fn of(run: &Run, now: Instant) -> Option<(Prompt, String)> {
        let (call, waits) = run.waiting().into_iter().next()?;
        let whole = whole(call, waits);
        let count = whole.lines().count();
        let unseen = count.saturating_sub(limits::PROMPT_LINES);
        let digest = call.digest();
        let mut text = head(run, call, waits);
        text.extend(whole.lines().take(limits::PROMPT_LINES).flat_map(|line| [line, "\n"]));
        if unseen > 0 {
            let more = counted(unseen, "more line");
            text += &format!("  … {more}; v shows all of it, and only then can it be allowed\n");
        }
        let rules = [false, true].map(|open| match waits {
            Waits::Decision => offering::offer(run, call, open),
            Waits::Outcome | Waits::Answer => Err("it does not wait for leave".to_string()),
        });
        text += &offered(run, &rules);
        let grave = grave::of(call).zip(grave::code(run, call));
        let may_last = permission::asked_each_time(run, call).is_none();
        let prompt = Prompt { call: call.id, waits, digest, grave, may_last, whole, rules, unseen, asked_at: now };
        text += &prompt.question_line();
        Some((prompt, text))
    }

    /// Whether this is what the run still waits for first, unchanged.
    pub fn holds(&self, run: &Run) -> bool {
        run.waiting()
            .first()
            .is_some_and(|(call, waits)| call.id == self.call && *waits == self.waits && call.digest() == self.digest)
    }

    /// The question in short, for below what was printed since it was asked.
    pub fn again_below(&self, run: &Run) -> String {
        let Some(call) = run.calls.get(&self.call) else { return String::new() };
        let head = head(run, call, self.waits);
        // Of a question its own first line says more than that there is one.
        let about = match self.waits {
            Waits::Decision | Waits::Outcome => None,
            Waits::Answer => self.whole.lines().next(),
        };
        let (lines, question) = (head.lines().take(1).chain(about), self.question_line());
        lines.chain([question.trim_end()]).map(|line| format!("{line}\n")).collect()
    }

    /// What a line means as an answer. `at` is when it was typed.
    pub fn read(&mut self, line: &str, at: Instant, now: Instant) -> Meaning {
        if at < self.asked_at + Duration::from_millis(limits::KEY_GUARD.0) {
            return self.again("that came too early to be an answer to this; nothing was decided");
        }
        match self.waits {
            Waits::Decision => self.read_decision(line.trim(), now),
            Waits::Outcome => self.read_outcome(line.trim(), now),
            Waits::Answer if line.trim().is_empty() => self.again("an empty line is no answer; nothing was sent"),
            Waits::Answer => Meaning::Command(Command::Answer { call: self.call, text: line.trim().to_string() }),
        }
    }

    fn read_decision(&mut self, line: &str, now: Instant) -> Meaning {
        let (word, words) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match (word, words.trim()) {
            ("r", "" | "here" | "open" | "open here" | "everywhere" | "open everywhere") if self.unseen > 0 => {
                self.again("look at the whole call first: v; nothing was decided")
            }
            ("y" | "a", _) if self.unseen > 0 && self.is_answer(words) => {
                self.again("look at the whole call first: v; nothing was decided")
            }
            ("y", words) if self.grave.is_some() => self.coded(words, self.decide(Decision::AllowOnce)),
            ("y", "") => self.decide(Decision::AllowOnce),
            ("a", "") => self.decide(Decision::AllowRun),
            ("r", "" | "here") => self.rule(false, false),
            ("r", "everywhere") => self.rule(false, true),
            ("r", "open" | "open here") => self.rule(true, false),
            ("r", "open everywhere") => self.rule(true, true),
            ("n", "") => self.decide(Decision::Deny(String::new())),
            ("d", "") => self.again("say why after the d; nothing was decided"),
            ("d", why) => self.decide(Decision::Deny(why.to_string())),
            ("v", "") => self.show(now),
            ("", _) | (_, "") => self.again("that is none of these; nothing was decided"),
            _ if saying::is_for_a_call(line) => self.again("that is none of these; nothing was decided"),
            _ => Meaning::Command(said(line)),
        }
    }

    fn read_outcome(&mut self, line: &str, now: Instant) -> Meaning {
        let (word, words) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let resolved = |resolution| Meaning::Command(Command::Resolve { call: self.call, resolution });
        match (word, words.trim()) {
            ("h", text) => resolved(Resolution::Happened(text.to_string())),
            ("n", "") => resolved(Resolution::NotHappened),
            ("r", _) if self.unseen > 0 && self.is_answer(words) => {
                self.again("look at the whole call first: v; nothing was decided")
            }
            ("r", words) if self.grave.is_some() => self.coded(words, resolved(Resolution::RunAgain)),
            ("r", "") => resolved(Resolution::RunAgain),
            ("s", "") => resolved(Resolution::Skip),
            ("v", "") => self.show(now),
            ("", _) | (_, "") => self.again("that is none of these; nothing was decided"),
            _ if saying::is_for_a_call(line) => self.again("that is none of these; nothing was decided"),
            _ => Meaning::Command(said(line)),
        }
    }

    fn decide(&self, decision: Decision) -> Meaning {
        match &self.digest {
            Some(digest) => Meaning::Command(Command::Decide { call: self.call, digest: digest.clone(), decision }),
            None => self.again("it is not known yet what the call would touch; nothing was decided"),
        }
    }

    fn rule(&self, open: bool, everywhere: bool) -> Meaning {
        match self.rules.get(usize::from(open)) {
            Some(Ok(draft)) => {
                let workspace = draft.workspace.clone().filter(|_| !everywhere);
                self.decide(Decision::AllowRule(RuleDraft { workspace, ..draft.clone() }))
            }
            Some(Err(why)) => {
                self.again(&format!("no such rule can be made of this call: {}; nothing was decided", title(why)))
            }
            None => self.again("no such rule can be made of this call; nothing was decided"),
        }
    }

    /// Whether what follows a letter makes an answer of it: nothing, or what may be a code.
    fn is_answer(&self, words: &str) -> bool {
        words.trim().is_empty() || self.grave.is_some()
    }

    /// Leave for a grave call, if its code was typed.
    fn coded(&self, words: &str, leave: Meaning) -> Meaning {
        let typed = words.trim().to_ascii_lowercase();
        match leave {
            Meaning::Command(leave) if self.grave.as_ref().is_some_and(|(_, code)| *code == typed) => {
                Meaning::Command(orders::coded(leave, typed))
            }
            Meaning::Command(_) => self.again("that is not its code; nothing was decided"),
            other => other,
        }
    }

    fn question_line(&self) -> String {
        match (self.waits, &self.grave) {
            (Waits::Decision, Some((why, code))) => format!(
                "allow this grave call ({why})? type y and its code [y {code} once / n no / d WORDS no, because / v view]\n"
            ),
            (Waits::Outcome, Some((why, code))) => format!(
                "what became of this grave call ({why})? [h happened / n did not / r {code} run it again / s skip / v \
                 view]\n"
            ),
            (Waits::Decision, None) => {
                let lasting = if self.may_last { " / a for the run" } else { "" };
                format!("allow this call? [y once{lasting} / n no / d WORDS no, because / v view]\n")
            }
            (Waits::Outcome, None) => {
                "what became of it? [h happened / n did not / r run it again / s skip / v view]\n".to_string()
            }
            (Waits::Answer, _) => "your answer, in one line:\n".to_string(),
        }
    }

    fn show(&mut self, now: Instant) -> Meaning {
        self.unseen = 0;
        self.asked_at = now;
        Meaning::Reply(format!("{}{}", self.whole, self.question_line()))
    }

    fn again(&self, why: &str) -> Meaning {
        Meaning::Reply(format!("{why}\n{}", self.question_line()))
    }
}

/// What a line means while nothing is asked: words for the agent. What decides elsewhere is a late answer, not words.
pub fn read_unasked(line: &str, waits: Option<CallId>) -> Meaning {
    let line = line.trim();
    if line.is_empty() {
        return Meaning::Nothing;
    }
    if !saying::is_for_a_call(line) {
        return Meaning::Command(said(line));
    }
    let why = match waits {
        None => "nothing waits for a decision".to_string(),
        Some(call) => format!("{call} waits, but is not asked about at this moment"),
    };
    Meaning::Reply(format!("{why}; nothing was sent; to say just that to the agent, type: {} {line}\n", saying::SAY))
}

/// A line as words for the agent.
pub(crate) fn said(line: &str) -> Command {
    Command::Interject { text: saying::said(line).to_string(), policy: Policy::Next }
}

/// The whole of a call that waits, behind the gutter.
pub fn whole(call: &ToolCall, waits: Waits) -> String {
    let preview = call.facts.as_ref().map(|facts| facts.preview.as_str()).filter(|preview| !preview.is_empty());
    match waits {
        Waits::Answer => block(&question(call)),
        Waits::Decision | Waits::Outcome if call.shows_diff() => exact_diff(preview.unwrap_or(&call.arguments)),
        Waits::Decision | Waits::Outcome => exact_block(preview.unwrap_or(&call.arguments)),
    }
}

/// What stands above the whole of a call that waits.
pub fn head(run: &Run, call: &ToolCall, waits: Waits) -> String {
    let mark = match waits {
        Waits::Decision => "decision needed",
        Waits::Outcome => "outcome unknown",
        Waits::Answer => return format!("[question] {} asks\n", call.id),
    };
    let mut text = format!("[{mark}] {} {}: {}\n", call.id, title(&call.tool), title(&call.title()));
    text += &changed::line(run, call);
    if let CallState::Awaiting { why } = &call.state {
        text += &format!("  why it is asked: {}\n", title(why));
    }
    if let Some(facts) = &call.facts {
        text += &format!("  what it reaches: {}\n", title(&facts.reach));
        text.extend(facts.binding.iter().map(|bound| format!("  bound to: {}\n", approval_line(bound))));
    }
    if let Some(digest) = call.digest() {
        text += &format!("  digest: {}\n", digest.short());
    }
    if let (Some(why), Some(code)) = (grave::of(call), grave::code(run, call)) {
        text += &format!("  grave: {why}; it is allowed by typing its code: {code}\n");
    }
    text
}

/// The rules that can be made of a call, each with what it would have done so far.
fn offered(run: &Run, rules: &[Result<RuleDraft, String>; 2]) -> String {
    let rule = |key: &str, draft: &RuleDraft| {
        let before = counted(offering::met_before(run, &draft.what), "call");
        let what = title(&draft.what.to_string());
        format!("  {key}: a standing rule for {what} ({}; {before} of this run so far)\n", draft.bounds())
    };
    let rows = ["r [here|everywhere]", "r open [here|everywhere]"].into_iter().zip(rules);
    let rows: String = rows.filter_map(|(key, draft)| draft.as_ref().ok().map(|draft| rule(key, draft))).collect();
    let open = if rules.iter().skip(1).any(Result::is_ok) { format!("; {}", offering::OPEN) } else { String::new() };
    if rows.is_empty() { rows } else { format!("{rows}     {}{open}\n", offering::REACH) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]

    use super::*;
    use crate::domain::sandbox::Manner;
    use crate::domain::tool::Grave;
    use crate::headless::fixture::Desk;
    use crate::headless::fixture::asks_for;
    use crate::headless::fixture::asks_operator;
    use crate::headless::fixture::plans;

    /// A run that waits, and what is asked about it.
    fn waiting(desk: Desk) -> (Run, Prompt, String, Instant) {
        let now = Instant::now();
        let (prompt, text) = Prompt::of(&desk.run, now).unwrap();
        (desk.run, prompt, text, now)
    }

    fn decision(command: &str) -> Desk {
        let mut desk = Desk::new(vec![plans(), asks_for("run_command", command)]);
        desk.recover();
        desk
    }

    fn question() -> Desk {
        let mut desk = Desk::new(vec![plans(), asks_operator("red\nor blue?")]);
        desk.recover();
        desk
    }

    fn lost() -> Desk {
        let mut desk = decision("send it");
        let digest = desk.run.calls[&CallId(2)].digest().unwrap();
        desk.order_and_die(Command::Decide { call: CallId(2), digest, decision: Decision::AllowOnce });
        desk.recover();
        desk
    }

    /// What lines mean, each typed late enough, as short words.
    fn check(desk: Desk, cases: &[(&str, &str)]) {
        let (_, prompt, _, now) = waiting(desk);
        let late = now + Duration::from_secs(1);
        for (line, expected) in cases {
            let (meaning, coded) = match prompt.clone().read(line, late, late) {
                Meaning::Command(Command::Coded { leave, .. }) => (Meaning::Command(*leave), " with its code"),
                other => (other, ""),
            };
            let meaning = match meaning {
                Meaning::Command(Command::Decide { call: CallId(2), decision, .. }) => format!("{decision:?}{coded}"),
                Meaning::Command(Command::Resolve { call: CallId(2), resolution }) => format!("{resolution:?}{coded}"),
                Meaning::Command(Command::Answer { call: CallId(2), text }) => format!("answer {text}"),
                Meaning::Command(Command::Interject { text, .. }) => format!("say {text}"),
                Meaning::Command(other) | Meaning::Both(other, _) => panic!("{other:?}"),
                Meaning::Reply(text) => text.lines().next().unwrap_or_default().to_string(),
                Meaning::Nothing => "nothing".to_string(),
            };
            assert_eq!(meaning, *expected, "for {line:?}");
        }
    }

    #[test]
    fn a_decision_is_one_letter() {
        let none = "that is none of these; nothing was decided";
        check(
            decision("make"),
            &[
                ("y", "AllowOnce"),
                (" a ", "AllowRun"),
                ("n", "Deny(\"\")"),
                ("d  use the test database", "Deny(\"use the test database\")"),
                ("d", "say why after the d; nothing was decided"),
                ("v", "  | $ make"),
                ("yes", none),
                ("Y", none),
                ("", none),
                ("yes please", "say yes please"),
            ],
        );
    }

    /// The same desk, where the call is grave, and its code.
    fn made_grave(mut desk: Desk) -> (Desk, String) {
        let call = desk.run.calls.get_mut(&CallId(2)).unwrap();
        call.facts.as_mut().unwrap().grave = vec![Grave::Keys];
        let code = call.digest().unwrap().code(&desk.run.id, Manner::Usual);
        (desk, code)
    }

    #[test]
    fn what_a_decision_is_bound_to_is_shown_whole_and_no_name_passes_for_another() {
        let shown = |name: &str| {
            let mut desk = decision("make");
            desk.run.calls.get_mut(&CallId(2)).unwrap().facts.as_mut().unwrap().binding = vec![format!("path={name}")];
            waiting(desk).2
        };
        let text = shown("/w/a\nAPPROVED by you");
        assert!(text.contains("  bound to: path=/w/a⟦LF⟧ APPROVED by you\n"), "{text}");
        assert!(shown("/w/a APPROVED by you").contains("  bound to: path=/w/a APPROVED by you\n"));
        let long = "n".repeat(300);
        assert!(shown(&long).contains(&format!("  bound to: path={long}\n")));
    }

    #[test]
    fn a_grave_call_needs_its_code() {
        let (desk, code) = made_grave(decision("make"));
        let (_, _, text, _) = waiting(made_grave(decision("make")).0);
        let told = format!("  grave: it reaches key material; it is allowed by typing its code: {code}\n");
        assert!(text.contains(&told), "{text}");
        let wrong = "that is not its code; nothing was decided";
        let (typed, shouted) = (format!("y {code}"), format!("y  {} ", code.to_uppercase()));
        check(
            desk,
            &[
                ("y", wrong),
                ("y wxyz", wrong),
                ("y please", wrong),
                ("n", "Deny(\"\")"),
                (&typed, "AllowOnce with its code"),
                (&shouted, "AllowOnce with its code"),
            ],
        );
        let (desk, code) = made_grave(lost());
        check(desk, &[("r", wrong), ("s", "Skip"), (&format!("r {code}"), "RunAgain with its code")]);
    }

    #[test]
    fn an_outcome_is_told() {
        check(
            lost(),
            &[
                ("h", "Happened(\"\")"),
                ("h it was sent", "Happened(\"it was sent\")"),
                ("n", "NotHappened"),
                ("r", "RunAgain"),
                ("s", "Skip"),
                ("v", "  | $ send it"),
                ("y", "that is none of these; nothing was decided"),
                ("wait a moment", "say wait a moment"),
            ],
        );
    }

    #[test]
    fn a_question_takes_any_line() {
        check(
            question(),
            &[(" y ", "answer y"), ("blue", "answer blue"), (" ", "an empty line is no answer; nothing was sent")],
        );
        let (_, _, text, _) = waiting(question());
        assert_eq!(text, "[question] c2 asks\n  | red\n  | or blue?\nyour answer, in one line:\n");
    }

    #[test]
    fn early_lines_decide_nothing() {
        let (_, mut prompt, _, now) = waiting(decision("make"));
        for early in [now, now + Duration::from_millis(499)] {
            let Meaning::Reply(text) = prompt.read("y", early, early) else { panic!("it was decided") };
            assert!(text.starts_with("that came too early"), "{text}");
        }
        assert!(matches!(prompt.read("y", now + Duration::from_millis(500), now), Meaning::Command(_)));
    }

    #[test]
    fn a_long_call_is_seen_in_full_before_it_is_allowed() {
        let (_, mut prompt, text, now) = waiting(decision(&"line\n".repeat(100)));
        assert!(text.contains("  … 60 more lines; v shows all of it, and only then can it be allowed\n"), "{text}");
        let late = now + Duration::from_secs(1);
        for line in ["y", "a"] {
            let Meaning::Reply(text) = prompt.read(line, late, late) else { panic!("it was decided") };
            assert!(text.starts_with("look at the whole call first: v; nothing was decided"), "{text}");
        }
        assert!(matches!(prompt.clone().read("n", late, late), Meaning::Command(_)));
        let Meaning::Reply(shown) = prompt.read("v", late, late) else { panic!("it was decided") };
        assert_eq!(shown.lines().count(), 101);
        assert!(matches!(prompt.read("y", late, late), Meaning::Reply(_)), "typed before it was shown");
        let later = late + Duration::from_secs(1);
        assert!(matches!(prompt.read("y", later, later), Meaning::Command(_)));
    }

    #[test]
    fn a_prompt_holds_for_its_call_only() {
        let (run, prompt, _, _) = waiting(decision("make"));
        assert!(prompt.holds(&run));
        assert!(!prompt.holds(&decision("make all").run), "other bytes");
        assert!(!prompt.holds(&question().run));
    }

    #[test]
    fn unasked_words_are_for_the_agent() {
        assert_eq!(read_unasked(" ", None), Meaning::Nothing);
        for line in ["y", "n", "a", "yes", "y jewd"] {
            for (waits, why) in [(None, "nothing waits for a decision"), (Some(CallId(3)), "c3 waits, but")] {
                let Meaning::Reply(told) = read_unasked(line, waits) else { panic!("{line} was sent") };
                assert!(told.starts_with(why), "{told}");
                assert!(told.contains(&format!("nothing was sent; to say just that to the agent, type: say {line}\n")));
            }
            let Meaning::Command(Command::Interject { text, .. }) = read_unasked(&format!("say {line}"), None) else {
                panic!("{line} was not sent")
            };
            assert_eq!(text, line);
        }
        assert_eq!(read_unasked("go on ", None), Meaning::Command(said("go on")));
    }
}
