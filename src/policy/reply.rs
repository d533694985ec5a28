//! Whether a whole reply can be used, and what is asked of a call that can't be one (docs/ENGINE.md §14.1).

use serde_json::Value;

use crate::domain::control;
use crate::domain::mark::holds_mark;
use crate::domain::model::AskedCall;
use crate::domain::model::ModelReply;
use crate::domain::model::StopReason;
use crate::domain::plan::PlanSource;
use crate::domain::run::Run;
use crate::domain::status::Phase;
use crate::domain::text::one_line;
use crate::domain::tool::CallState;
use crate::domain::tool::EffectClass;
use crate::domain::tool::OutcomeKind;
use crate::domain::tool::Problem;
use crate::domain::tool::ProblemKind;
use crate::domain::tool::ToolCall;
use crate::policy::plan_text;
use crate::policy::planning;
use crate::policy::planning::Accepted;
use crate::policy::schema;

/// Why a reply is not used: it is asked for again. One that was cut off is asked for once more with room for twice as
/// much; if that is cut off too, its text is gone on from.
pub fn discarded(run: &Run, reply: &ModelReply) -> Option<String> {
    let says_nothing = reply.text.trim().is_empty();
    if run.iteration.phase == Phase::WrapUp {
        return says_nothing.then(|| "empty".to_string());
    }
    let is_used = match &reply.stop {
        StopReason::Length => !says_nothing && run.more_output().is_none(),
        StopReason::Refused => true,
        StopReason::End | StopReason::Calls | StopReason::Paused | StopReason::Other(_) => {
            !says_nothing || !reply.calls.is_empty()
        }
    };
    let why = match (&reply.stop, reply.calls.is_empty()) {
        _ if is_used => return None,
        (StopReason::Length, false) => "cut off in a call",
        (StopReason::Length, true) if says_nothing => "cut off before any text",
        (StopReason::Length, true) => "cut off",
        (StopReason::End | StopReason::Calls | StopReason::Paused | StopReason::Refused | StopReason::Other(_), _) => {
            "empty"
        }
    };
    Some(why.to_string())
}

/// The calls of a reply that count: none of one that was cut off, at its limit or by a filter, because the last may not
/// be whole.
pub fn calls(reply: &ModelReply) -> &[AskedCall] {
    let whole = !matches!(reply.stop, StopReason::Length | StopReason::Refused);
    let most = crate::domain::limits::CALLS_PER_REPLY.min(reply.calls.len());
    if whole { &reply.calls[..most] } else { &[] }
}

/// The plan that the text of the reply holds, where one is looked for: in `decompose` and `replan`, and where the text
/// announces it. A valid call in the same reply wins; what was cut off or refused is no plan (docs/ENGINE.md §6.5).
pub fn planned(run: &Run) -> Option<Accepted> {
    let reply = run.iteration.reply.as_ref().filter(|reply| !reply.is_cut && !reply.is_refusal)?;
    let is_asked = match run.iteration.phase {
        Phase::Decompose | Phase::Replan => true,
        Phase::Pursue => plan_text::is_announced(&reply.text),
        Phase::WrapUp => false,
    };
    let is_due = is_asked && run.iteration.is_open && !run.iteration.planned_in_text;
    if !is_due || run.ordered_calls().any(|call| !could_not_be_made(call)) {
        return None;
    }
    planning::propose(&run.plan, &plan_text::read(&reply.text)?, PlanSource::Text).ok()
}

fn could_not_be_made(call: &ToolCall) -> bool {
    let unmade = [ProblemKind::Malformed, ProblemKind::UnknownTool, ProblemKind::InvalidArguments];
    unmade.iter().any(|kind| call.state == CallState::Closed(OutcomeKind::NotRun(*kind)))
}

/// The arguments of a call. Some providers write nothing where a tool needs none.
pub fn arguments(asked: &AskedCall) -> &str {
    if asked.arguments.trim().is_empty() { "{}" } else { &asked.arguments }
}

/// The effect class of the tool of this name; nothing when there is no such tool.
pub fn effect(run: &Run, name: &str) -> Option<EffectClass> {
    run.offer.find(name).map(|tool| tool.effect)
}

/// Why a call can't be made, as far as its name and its arguments' form tell.
pub fn problem(run: &Run, name: &str, arguments: &str) -> Option<Problem> {
    if effect(run, name).is_none() {
        let text = format!(
            "there is no tool {:?}; the nearest are {}; nothing was run",
            one_line(name, 64),
            nearest(run, name)
        );
        return Some(Problem::new(ProblemKind::UnknownTool, text));
    }
    if run.progress.is_disabled(name) {
        let text = format!("the tool {name} broke too often and is not used any more in this run; nothing was run");
        return Some(Problem::new(ProblemKind::Impossible, text));
    }
    if holds_mark(arguments) && effect(run, name) != Some(EffectClass::Control) {
        let text =
            "secret_in_arguments: the arguments hold a secret, or the mark that stands for one; nothing was run; \
                    give the name of the environment variable instead of its value, and leave the lines with marks as \
                    they are"
                .to_string();
        return Some(Problem::new(ProblemKind::SecretInArguments, text));
    }
    match serde_json::from_str::<Value>(arguments) {
        Err(error) => {
            let around = around(arguments, &error);
            let text =
                format!("the arguments are not valid JSON ({error}); nothing was run; there you wrote: {around}");
            Some(Problem::new(ProblemKind::Malformed, text))
        }
        // The plan is read by its own rules, which know more habits than its schema; a claim when its turn comes, so
        // that the last one counts, whatever it says.
        Ok(_) if name == control::UPDATE_PLAN || name == control::FINISH => None,
        Ok(value) => misfit(run, name, &value).map(|text| Problem::new(ProblemKind::InvalidArguments, text)),
    }
}

/// Where arguments do not fit the schema of their tool, for the model.
pub fn misfit(run: &Run, name: &str, value: &Value) -> Option<String> {
    let misfit = schema::misfit(&run.offer.find(name)?.schema, value)?;
    Some(format!("the arguments do not fit {name}: {misfit}; nothing was run"))
}

/// What stands around the place of an error, which is marked.
fn around(arguments: &str, error: &serde_json::Error) -> String {
    const SIDE_CHARS: usize = 60;
    let lines_before: usize = arguments.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
    // What ends too early lacks what would stand behind its last character; else the column is that of the wrong one,
    // which is the line break before the line where it is zero.
    let place = if error.is_eof() { arguments.len() } else { (lines_before + error.column()).saturating_sub(1) };
    let (before, after) = arguments.split_at(arguments.floor_char_boundary(place));
    let skipped = before.chars().count().saturating_sub(SIDE_CHARS);
    let start: String = before.chars().skip(skipped).collect();
    let end: String = after.chars().take(SIDE_CHARS).collect();
    let dots = |is_cut: bool| if is_cut { "…" } else { "" };
    let rest = after.chars().nth(SIDE_CHARS).is_some();
    one_line(&format!("{}{start}⟨here⟩{end}{}", dots(skipped > 0), dots(rest)), 2 * SIDE_CHARS + 20)
}

/// The three names nearest to a wrong one: that of the tool which does what the name says elsewhere, then those that are
/// spelt most alike.
fn nearest(run: &Run, name: &str) -> String {
    let known = run.offer.tools().iter().map(|tool| tool.name.as_str());
    let wrong: String = name.chars().take(64).collect();
    let meant = meant(&wrong);
    let far = |one: &str| if meant == Some(one) { 0 } else { 1 + strsim::levenshtein(one, &wrong) };
    let mut ranked: Vec<(usize, &str)> = known.map(|one| (far(one), one)).collect();
    ranked.sort_unstable();
    ranked.into_iter().take(3).map(|(_, one)| one).collect::<Vec<_>>().join(", ")
}

/// What tools are called elsewhere that do what one of ours does.
const ELSEWHERE: [(&str, &str); 8] = [
    ("search_files", "grep rg ripgrep search find find_in_files codebase_search glob"),
    ("read_file", "cat read view open head tail open_file view_file"),
    ("list_dir", "ls dir tree list list_files list_directory"),
    ("edit_file", "edit sed patch apply_patch str_replace str_replace_editor replace multi_edit"),
    ("write_file", "write touch create create_file save save_file"),
    ("shell", "bash sh run exec execute terminal command run_command execute_command run_terminal_cmd"),
    ("web_fetch", "curl wget fetch browse http get_url fetch_url"),
    ("update_plan", "todo todos todo_write todowrite plan"),
];

/// The tool of ours that does what one of this name does: elsewhere, or in a shell.
fn meant(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    let is_in = |words: &str| words.split(' ').any(|word| word == name);
    ELSEWHERE.iter().find(|(_, words)| is_in(words)).map(|(tool, _)| *tool)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(arguments: &str, expected: &str) {
        let got = serde_json::from_str::<Value>(arguments).err().map(|error| around(arguments, &error));
        assert_eq!(got.as_deref(), Some(expected), "{arguments}");
    }

    #[test]
    fn what_a_tool_is_called_elsewhere_is_known() {
        for (name, tool) in
            [("grep", "search_files"), ("Bash", "shell"), ("str_replace", "edit_file"), ("cat", "read_file")]
        {
            assert_eq!(meant(name), Some(tool), "{name}");
        }
        assert_eq!(meant("frobnicate"), None);
    }

    #[test]
    fn the_place_of_an_error_is_shown_with_what_stands_around_it() {
        check("{\"a\":1 \"b\":2}", "{\"a\":1 ⟨here⟩\"b\":2}");
        check("", "⟨here⟩");
        check("{\n\"é\": nil}", "{ \"é\": n⟨here⟩il}");
        check("{\"a\":", "{\"a\":⟨here⟩");
        check("{\"a\": \"b\n", "{\"a\": \"b⟨here⟩");
        check("{\"a\": [1,\n", "{\"a\": [1, ⟨here⟩");
        check("{\"a\":1,}", "{\"a\":1,⟨here⟩}");
        check("{\"a\": \"\\q\"}", "{\"a\": \"\\⟨here⟩q\"}");
        let long = format!("{}x{}", "[1,".repeat(100), "]".repeat(100));
        check(&long, &format!("…{}⟨here⟩x{}…", "[1,".repeat(20), "]".repeat(59)));
    }
}
