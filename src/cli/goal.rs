//! A goal on the command line, and a line that is neither a command nor plainly a goal.

use std::ffi::OsString;

use clap::CommandFactory;

use crate::cli::Ask;
use crate::cli::GoalText;
use crate::cli::Line;
use crate::cli::Options;
use crate::cli::Output;
use crate::domain::terms::Goal;

/// First letters of a word that are those of a command: one that goes on otherwise was meant for it, as `approvals` is.
const LIKE_CHARS: usize = 5;

/// The meaning of a line without a command.
pub(crate) fn bare(words: &[String], options: Options) -> Result<Ask, String> {
    let Some(first) = words.first().map(|word| word.trim()) else {
        return match options.output {
            Output::Fitting => Ok(Ask::Open(options)),
            Output::Plain | Output::Json => {
                Err("--plain and --json need a goal; nothing was started; say what is to be reached".to_string())
            }
        };
    };
    if let Some(sentence) = meant(first) {
        return Err(sentence);
    }
    if words.len() == 1 && looks_like_a_command(first) {
        return Err(format!(
            "`{first}` is not a command; nothing was started; `tiller --help` lists the commands; if it is your goal, \
             type `tiller run {first}`"
        ));
    }
    if words.len() > 1 {
        return Err(format!(
            "the goal came as {} arguments; nothing was started; put it in quotes: tiller \"{} …\"; if you meant a \
             command, `tiller --help` lists them",
            words.len(),
            first
        ));
    }
    start(first, options)
}

/// The sentence for a line whose first word is nearly a command and whose other words do not fit a goal; nothing where it
/// is a command, or like none.
pub(crate) fn misspelt(words: &[OsString]) -> Option<String> {
    let first = words.get(1)?.to_str()?;
    let is_command = Line::command().get_subcommands().any(|command| command.get_name() == first);
    if is_command { None } else { meant(first) }
}

/// What a word may have been meant for that is nearly a command, in a sentence without its end.
fn meant(first: &str) -> Option<String> {
    let near: Vec<String> = near_commands(first).iter().map(|command| format!("`tiller {command}`")).collect();
    (!near.is_empty()).then(|| {
        format!(
            "`{first}` is not a command; nothing was started; if you meant the command, type {}; if it is your goal, \
             type `tiller run {first}`",
            near.join(" or ")
        )
    })
}

/// Whether a goal is one word as commands are: hardly anybody says in one such word what is to be reached.
fn looks_like_a_command(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_alphabetic())
        && word.chars().all(|one| one.is_ascii_alphanumeric() || matches!(one, '-' | '_'))
}

/// The commands that a single word is nearly, the nearest alike near: one slip away, or two where the word is long enough
/// that two slips still leave most of it; or it is longer or shorter than the command and begins as that does.
fn near_commands(word: &str) -> Vec<String> {
    if word.contains(char::is_whitespace) {
        return Vec::new();
    }
    let begins = |name: &str| {
        let common = word.to_lowercase().chars().zip(name.chars()).take_while(|(one, other)| one == other).count();
        common >= LIKE_CHARS && common >= word.chars().count().min(name.len()) - 1
    };
    let slips = if word.chars().count() >= 5 { 2 } else { 1 };
    let line = Line::command();
    let names = line.get_subcommands().map(|command| command.get_name()).chain(["help"]);
    let near: Vec<(usize, &str)> = names
        .map(|name| (strsim::osa_distance(&word.to_lowercase(), name), name))
        .filter(|(distance, name)| *distance <= slips || begins(name))
        .collect();
    let least = near.iter().map(|(distance, _)| *distance).min();
    near.iter().filter(|(distance, _)| Some(*distance) == least).map(|(_, name)| (*name).to_string()).collect()
}

pub(crate) fn start(goal: &str, options: Options) -> Result<Ask, String> {
    let goal = match goal {
        "-" => GoalText::StandardInput,
        typed => GoalText::Typed(Goal::try_from(typed.to_string())?),
    };
    Ok(Ask::Start { goal, options })
}
