//! Whether arguments that the operator changed fit the tool, as far as its schema tells without looking at the world, and
//! whether the gate lets them be once somebody has looked.

use crate::domain::limits;
use crate::domain::run::Run;
use crate::domain::tool::Facts;
use crate::domain::tool::ToolCall;
use crate::policy::permission;
use crate::policy::permission::Judgement;
use crate::policy::reply;

/// Errors with a sentence for the operator when the arguments can't be those of the call's tool.
pub fn fit(run: &Run, call: &ToolCall, arguments: &str) -> Result<(), String> {
    if arguments.len() > limits::ARGUMENTS_MAX_BYTES {
        return Err(format!("they are longer than {} KiB", limits::ARGUMENTS_MAX_BYTES / 1024));
    }
    if arguments == call.arguments {
        return Err("they are those of the call already; allow it as it is".to_string());
    }
    reply::problem(run, &call.tool, arguments).map_or(Ok(()), |problem| Err(problem.text))
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
