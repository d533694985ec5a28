//! What may be written in `tiller.toml`: the one table of keys, and what is said about a key that is not in it.

use std::collections::BTreeSet;

use crate::config::models::SCRIPTED;
use crate::domain::budget::Axis;
use crate::domain::limits;
use crate::domain::text::one_line;

/// A key of `tiller.toml`.
pub struct Key {
    /// Its path; `NAME` stands for any name.
    pub path: &'static [&'static str],
    /// What it holds.
    pub holds: Holds,
    /// What is taken when it is not written, in words or as TOML.
    pub default: &'static str,
    /// What it does, in a sentence.
    pub does: &'static str,
}

/// What a key holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// `provider/model`.
    Model,
    /// Any text.
    Text,
    /// A list of checks.
    Checks,
    /// The name of an environment variable.
    Variable,
    /// A list of such names.
    Variables,
    /// A base URL.
    Address,
    /// A list of ports of this machine.
    Ports,
    /// A program and its arguments.
    Words,
    /// `ask` or `auto`.
    Resume,
    /// A trust mode.
    Trust,
    /// `auto` or `none`.
    Sandbox,
    /// A list of folders.
    Folders,
    /// `true` or `false`.
    Switch,
    /// A limit on an axis.
    Limit(Axis),
    /// A length of time after the start.
    Deadline,
    /// A limit on the cost of all runs.
    Daily,
    /// So many, or as many as there are.
    Count,
    /// A number of tokens.
    Tokens,
    /// Dollars per million tokens.
    Dollars,
}

impl Holds {
    /// What must be written, in words.
    pub fn form(self) -> &'static str {
        match self {
            Holds::Model => "a model in quotes, \"provider/model\"",
            Holds::Text => "a text in quotes",
            Holds::Checks => "a list of checks: shell lines and tables, [\"cargo test\", { file = \"dist/app\" }]",
            Holds::Variable => "the name of an environment variable in capitals, \"OPENAI_API_KEY\"",
            Holds::Variables => "a list of names of environment variables, [\"CARGO_HOME\"]",
            Holds::Address => "a base URL in quotes, \"https://host/v1\"",
            Holds::Ports => "a list of ports of this machine, [\"127.0.0.1:8080\"]",
            Holds::Words => "a list of a program and its arguments, [\"/usr/local/bin/tell-me\"]",
            Holds::Resume => "\"ask\" or \"auto\"",
            Holds::Trust => "\"plan\", \"ask\", \"auto_edit\" or \"full_trust\"",
            Holds::Sandbox => "\"auto\" or \"none\"",
            Holds::Folders => "a list of folders from / or ~/ on, [\"~/.cargo\"]",
            Holds::Switch => "true or false",
            Holds::Limit(Axis::Cost) | Holds::Daily => "dollars in quotes, \"5.00\", or \"unlimited\"",
            Holds::Limit(Axis::Active) => "a time in quotes, \"2h\" or \"30m\", or \"unlimited\"",
            Holds::Deadline | Holds::Limit(Axis::Deadline) => "a time in quotes, \"3h\" or \"90m\", or \"none\"",
            Holds::Limit(Axis::Loops | Axis::ModelCalls | Axis::ToolCalls | Axis::Tokens) | Holds::Count => {
                "a whole number from 1, or \"unlimited\""
            }
            Holds::Tokens => "a whole number from 1",
            Holds::Dollars => "dollars per million tokens in quotes, \"0.25\"",
        }
    }
}

/// Longest part of a path that is repeated in a sentence, in characters.
const SHOWN_MAX_CHARS: usize = 120;

/// Stands for any name in the path of a key.
pub const NAME: &str = "NAME";

/// Every key that may be written. `docs/CONFIG.md` is drawn from it.
pub const KEYS: &[Key] = &[
    key(&["model"], Holds::Model, "none: it must be named", "The model to work with."),
    key(&["budget", "cost"], Holds::Limit(Axis::Cost), "\"5.00\"", "What a run may cost."),
    key(
        &["budget", "daily"],
        Holds::Daily,
        "\"20.00\"",
        "What all runs of this state directory together may cost in any 24 hours.",
    ),
    key(&["budget", "time"], Holds::Limit(Axis::Active), "\"2h\"", "How long it may be running; waiting is free."),
    key(
        &["budget", "deadline"],
        Holds::Deadline,
        "\"none\"",
        "How long after its start it parks, whether it was running or waited.",
    ),
    key(&["budget", "iterations"], Holds::Limit(Axis::Loops), "32", "How many iterations it may take."),
    key(&["budget", "tool_calls"], Holds::Limit(Axis::ToolCalls), "300", "How many tool calls it may start."),
    key(&["budget", "model_calls"], Holds::Limit(Axis::ModelCalls), "96", "How many times the model may be asked."),
    key(&["budget", "tokens"], Holds::Limit(Axis::Tokens), "2000000", "How many tokens it may use, in and out."),
    key(
        &["run", "wrap_up"],
        Holds::Switch,
        "true",
        "Whether the model is asked where the work stands before a run parks at a limit.",
    ),
    key(
        &["run", "confirm_finish"],
        Holds::Switch,
        "false",
        "Whether you are asked to confirm a claim of being finished, where there are no checks.",
    ),
    key(
        &["run", "checks"],
        Holds::Checks,
        "[]",
        "What must hold before the goal counts as reached, in this order. Yours, so it runs unasked. See below.",
    ),
    key(
        &["run", "resume"],
        Holds::Resume,
        "\"ask\"",
        "Whether a run that was cut off while running goes on by itself when it is opened from the list of runs, unless somebody must say what became of a call. (`tiller resume` goes on in any case.)",
    ),
    key(&["run", "trust"], Holds::Trust, "\"ask\"", "How much a run does unasked."),
    key(
        &["run", "keep_full_trust"],
        Holds::Switch,
        "false",
        "Whether full trust holds when another process goes on with the run.",
    ),
    key(&["run", "instructions"], Holds::Text, "\"\"", "What the agent is told besides the goal."),
    key(
        &["run", "pass_variables"],
        Holds::Variables,
        "[]",
        "Environment variables that the agent's commands see besides the few that they always see.",
    ),
    key(
        &["tools", "web_fetch"],
        Holds::Switch,
        "false",
        "Whether a run has the tool web_fetch, which fetches text from the internet. See docs/SAFETY.md, 11, R30.",
    ),
    key(
        &["tools", "fetch_loopback"],
        Holds::Ports,
        "[]",
        "Ports of this machine that web_fetch may reach, each as it stands in the URL. No other is.",
    ),
    key(
        &["sandbox", "use"],
        Holds::Sandbox,
        "\"auto\"",
        "Whether commands run in a box, as far as this machine has one. With \"none\" they have your full rights.",
    ),
    key(
        &["sandbox", "readable"],
        Holds::Folders,
        "[]",
        "Folders that can be read in the box besides the workspace and the programs of the system.",
    ),
    key(
        &["sandbox", "writable"],
        Holds::Folders,
        "[]",
        "Folders that can be written in the box besides the workspace.",
    ),
    key(
        &["notify", "bell"],
        Holds::Switch,
        "false",
        "Whether the screen rings the terminal's bell when the run calls for you and the window is not in front.",
    ),
    key(
        &["notify", "desktop"],
        Holds::Switch,
        "false",
        "Whether the screen has the terminal show a notification then (OSC 9); this works over ssh, too.",
    ),
    key(
        &["notify", "command"],
        Holds::Words,
        "[]",
        "A program that is told what happens, a line of JSON on its input each time. See docs/ENGINE.md, 11.2.",
    ),
    key(
        &["keep", "days"],
        Holds::Count,
        "90",
        "For how many days a run that has ended is kept after it was last touched. Then it is removed for good.",
    ),
    key(
        &["keep", "runs"],
        Holds::Count,
        "500",
        "How many runs that have ended are kept. Beyond, those that were not touched for longest are removed for good.",
    ),
    key(
        &["providers", NAME, "base_url"],
        Holds::Address,
        "that of the built-in provider",
        "Where the provider is. Plain http only on this machine.",
    ),
    key(
        &["providers", NAME, "key"],
        Holds::Variable,
        "that of the built-in provider",
        "The name of the variable that holds its key. Never the key.",
    ),
    key(&["models", NAME, "window"], Holds::Tokens, "as known, else 32768", "The context window of the model."),
    key(&["models", NAME, "max_output"], Holds::Tokens, "8192", "Output that is asked for at most."),
    key(&["models", NAME, "price", "input"], Holds::Dollars, "as known", "Price of input."),
    key(&["models", NAME, "price", "cache_read"], Holds::Dollars, "that of input", "Price of input read from a cache."),
    key(&["models", NAME, "price", "cache_write"], Holds::Dollars, "that of input", "Price of input put in a cache."),
    key(&["models", NAME, "price", "output"], Holds::Dollars, "as known", "Price of output, reasoning included."),
];

const fn key(path: &'static [&'static str], holds: Holds, default: &'static str, does: &'static str) -> Key {
    Key { path, holds, default, does }
}

/// Variables of the environment that stand above the file: the variable, and the key that it sets.
pub const VARIABLES: &[(&str, &[&str])] = &[
    ("TILLER_MODEL", &["model"]),
    ("TILLER_BUDGET", &["budget", "cost"]),
    ("TILLER_DAILY_BUDGET", &["budget", "daily"]),
    ("TILLER_MAX_ITERATIONS", &["budget", "iterations"]),
    ("TILLER_SANDBOX", &["sandbox", "use"]),
];

/// What stands at a path.
pub(crate) enum Place {
    /// Further keys.
    Table,
    /// A value.
    Key(&'static Key),
}

/// What stands at a path, by the table of keys. Errors with a sentence when nothing does.
pub(crate) fn place(path: &[String]) -> Result<Place, String> {
    let fits = |key: &&Key| {
        path.len() <= key.path.len() && key.path.iter().zip(path).all(|(known, name)| *known == NAME || known == name)
    };
    let Some(key) = KEYS.iter().find(fits) else { return Err(unknown(path)) };
    if path.len() == 2 {
        check_name(key.path, path)?;
    }
    Ok(if key.path.len() == path.len() { Place::Key(key) } else { Place::Table })
}

fn unknown(path: &[String]) -> String {
    let Some((name, parents)) = path.split_last() else { return "it is empty".to_string() };
    let siblings: BTreeSet<&str> = KEYS
        .iter()
        .filter(|key| key.path.len() >= path.len())
        .filter(|key| key.path.iter().zip(parents).all(|(known, name)| *known == NAME || known == name))
        .filter_map(|key| key.path.get(parents.len()).copied())
        .collect();
    let hint = match nearest(name, siblings.iter().copied()) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => format!("known here: {}", siblings.iter().copied().collect::<Vec<_>>().join(", ")),
    };
    let whole = shown(path);
    format!("unknown key {whole}; {hint}")
}

/// Names that an operator gives: of providers and of models.
fn check_name(pattern: &[&str], path: &[String]) -> Result<(), String> {
    let (Some(&table), Some(name)) = (pattern.first(), path.get(1)) else { return Ok(()) };
    match table {
        "models" => split_model(name).map(|_| ()),
        "providers" if name == SCRIPTED => Err("scripted takes a path, scripted/PATH, and has no settings".to_string()),
        "providers" if !is_plain_name(name) => {
            Err("the name of a provider may have only a-z, 0-9, - and _; write another".to_string())
        }
        _ => Ok(()),
    }
}

/// Whether a name of a provider needs no quotes.
pub(crate) fn is_plain_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_';
    !name.is_empty() && name.bytes().all(plain)
}

/// Provider and own name of a model. Errors with a sentence when it is no such name.
pub(crate) fn split_model(name: &str) -> Result<(&str, &str), String> {
    if name.len() > limits::PATH_MAX_BYTES || name.contains(char::is_control) {
        let most = limits::PATH_MAX_BYTES;
        return Err(format!("the name of a model has at most {most} bytes and no control characters"));
    }
    match name.split_once('/') {
        Some((provider, model)) if is_plain_name(provider) && !model.is_empty() => Ok((provider, model)),
        Some(_) | None => {
            Err("a model is named by its provider and its own name, such as \"openai/gpt-5-mini\"".to_string())
        }
    }
}

/// A path as TOML writes it.
pub(crate) fn shown(path: &[String]) -> String {
    let quoted = |name: &String| {
        let short = one_line(name, SHOWN_MAX_CHARS);
        if is_plain_name(name) { short } else { format!("{short:?}") }
    };
    path.iter().map(quoted).collect::<Vec<_>>().join(".")
}

/// The name that another is most probably a slip of.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|one| (strsim::osa_distance(name, one), one))
        .filter(|(distance, one)| *distance <= 2.max(one.len() / 3) && *distance < one.len())
        .min()
        .map(|(_, one)| one)
}
