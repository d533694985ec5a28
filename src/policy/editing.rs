//! Whether arguments that the operator changed fit the tool, as far as its schema tells without looking at the world.

use crate::domain::limits;
use crate::domain::run::Run;
use crate::domain::tool::ToolCall;
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
