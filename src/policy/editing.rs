//! Whether arguments that the operator changed fit the tool, as far as its schema tells without looking at the world, and
//! whether the gate lets them be once somebody has looked.

use serde_json::Value;

use crate::domain::limits;
use crate::domain::run::Run;
use crate::domain::text::one_line;
use crate::domain::tool::Facts;
use crate::domain::tool::ToolCall;
use crate::policy::permission;
use crate::policy::permission::Judgement;
use crate::policy::reply;

/// Longest text that is shown in the form in which it has to be written, in characters.
const WRITTEN_CHARS: usize = 120;

/// Errors with a sentence for the operator when the arguments can't be those of the call's tool.
pub fn fit(run: &Run, call: &ToolCall, arguments: &str) -> Result<(), String> {
    if arguments.len() > limits::ARGUMENTS_MAX_BYTES {
        return Err(format!("they are longer than {} KiB", limits::ARGUMENTS_MAX_BYTES / 1024));
    }
    if arguments == call.arguments {
        return Err("they are those of the call already; allow it as it is".to_string());
    }
    let is_object = arguments.trim_start().starts_with('{');
    let form = || form(run, &call.tool, arguments).filter(|_| !is_object);
    reply::problem(run, &call.tool, arguments).map_or(Ok(()), |problem| Err(form().unwrap_or(problem.text)))
}

/// How the arguments of a tool are written: an object with all that it needs, in which a tool that needs one text has what
/// was written in the place of it. Nothing for a tool that needs nothing.
fn form(run: &Run, tool: &str, written: &str) -> Option<String> {
    let schema = &run.offer.find(tool)?.schema;
    let needed: Vec<&str> = schema.get("required")?.as_array()?.iter().filter_map(Value::as_str).collect();
    let is_text = |name: &str| schema.pointer(&format!("/properties/{name}/type")) == Some(&Value::from("string"));
    let text = match needed.as_slice() {
        [] => return None,
        [one] if is_text(one) => Value::from(one_line(written, WRITTEN_CHARS)).to_string(),
        _ => "…".to_string(),
    };
    let members: Vec<String> = needed.iter().map(|name| format!("{}:{text}", Value::from(*name))).collect();
    Some(format!("the arguments of {tool} are an object in JSON; write it as {{{}}}", members.join(",")))
}

/// Why the gate would not let a call run as the operator changed it, by what it would touch then; nothing where it would
/// run, or be asked about.
pub fn refused(run: &Run, call: &ToolCall, facts: &Facts) -> Option<String> {
    match permission::judge(run, call, facts, permission::already_taken(run)) {
        Judgement::Deny { rule, text: _ } => Some(match facts.rule.as_ref().filter(|hit| hit.name() == rule) {
            Some(hit) => format!("the {rule} denies it: {}", hit.words),
            None => format!("{rule} denies it"),
        }),
        Judgement::NotRun(problem) => Some(problem.text.trim_end_matches('.').to_string()),
        Judgement::Allow(_) | Judgement::AllowByRule(_) | Judgement::AllowEdited(_) | Judgement::Ask(_) => None,
    }
}
