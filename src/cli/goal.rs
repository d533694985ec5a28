//! A goal on the command line, and a line that is neither a command nor plainly a goal.

use clap::CommandFactory;

use crate::cli::Ask;
use crate::cli::GoalText;
use crate::cli::Line;
use crate::cli::Options;
use crate::cli::Output;
use crate::domain::terms::Goal;

/// The meaning of a line without a command.
pub(crate) fn bare(words: &[String], options: Options) -> Result<Ask, String> {
    let Some(first) = words.first() else {
        return match options.output {
            Output::Fitting => Ok(Ask::Open(options)),
            Output::Plain | Output::Json => {
                Err("--plain and --json need a goal; nothing was started; say what is to be reached".to_string())
            }
        };
    };
    if let Some(command) = near_command(first) {
        return Err(format!(
            "`{first}` is not a command; nothing was started; if you meant the command, type `tiller {command}`; if \
             it is your goal, type `tiller run {first}`"
        ));
    }
    if words.len() > 1 {
        return Err(format!(
            "the goal came as {} arguments; nothing was started; put it in quotes: tiller \"{} …\"",
            words.len(),
            first
        ));
    }
    start(first, options)
}

/// The command that a single word is nearly: one slip away, or two where the word is long enough that two slips
/// still leave most of it.
fn near_command(word: &str) -> Option<String> {
    if word.contains(char::is_whitespace) {
        return None;
    }
    let slips = if word.chars().count() >= 5 { 2 } else { 1 };
    Line::command()
        .get_subcommands()
        .map(|command| command.get_name())
        .chain(["help"])
        .map(|name| (strsim::osa_distance(&word.to_lowercase(), name), name))
        .filter(|(distance, _)| *distance <= slips)
        .min()
        .map(|(_, name)| name.to_string())
}

pub(crate) fn start(goal: &str, options: Options) -> Result<Ask, String> {
    let goal = match goal {
        "-" => GoalText::StandardInput,
        typed => GoalText::Typed(Goal::try_from(typed.to_string())?),
    };
    Ok(Ask::Start { goal, options })
}
