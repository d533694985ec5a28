//! The configuration: `tiller.toml`, the environment and the command line, merged into `Settings`.
//!
//! Text in, settings or a sentence out; it starts nothing. It never holds a key, only the name of the variable
//! that does, and never repeats a value that may be a key. `KEYS` is the one table of what may be written.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::path::PathBuf;

use etcetera::BaseStrategy;
use toml::de::DeTable;
use toml::de::DeValue;

use crate::cli::Options;
use crate::config::keys::Holds;
use crate::config::keys::KEYS;
use crate::config::keys::Place;
use crate::config::keys::VARIABLES;
use crate::config::keys::place;
use crate::config::keys::shown;
use crate::config::value::Value;
use crate::config::value::from_text;
use crate::config::value::from_toml;
use crate::domain::budget::Limit;
use crate::domain::budget::Limits;
use crate::domain::deadline::Deadline;
use crate::domain::limits;
use crate::domain::terms::Check;
use crate::domain::trust::Trust;
use crate::policy::keeping::Keep;
use crate::tui::app::Alerts;

pub(crate) mod checks;
pub mod keys;
pub mod models;
pub mod value;

/// Why the configuration can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{origin}: {problem}; nothing was started")]
pub struct ConfigError {
    /// Where it was written.
    pub origin: Origin,
    /// What is wrong and what to do, without the value where it may be a key.
    pub problem: String,
}

/// Where a value was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// In the program.
    BuiltIn,
    /// In a file.
    File {
        /// Its path.
        path: PathBuf,
        /// The line, from 1; nothing when it is the file as a whole.
        line: Option<usize>,
    },
    /// In a variable of the environment.
    Variable(&'static str),
    /// On the command line.
    Flag(&'static str),
    /// Chosen while tiller runs.
    Chosen,
}

impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::BuiltIn => out.write_str("the configuration"),
            Origin::File { path, line: Some(line) } => write!(out, "{}, line {line}", path.display()),
            Origin::File { path, line: None } => write!(out, "{}", path.display()),
            Origin::Variable(name) | Origin::Flag(name) => out.write_str(name),
            Origin::Chosen => out.write_str("the chosen model"),
        }
    }
}

/// Where things are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// The configuration file, which need not exist.
    pub config: PathBuf,
    /// The folder of journals and logs.
    pub state: PathBuf,
}

impl Places {
    /// The places of this user, by the XDG rules. Errors, in a sentence, when there is no home.
    pub fn of_user() -> Result<Places, String> {
        let none = || {
            "there is no home folder; nothing was started; set HOME, or XDG_CONFIG_HOME and XDG_STATE_HOME".to_string()
        };
        let strategy = etcetera::choose_base_strategy().map_err(|_| none())?;
        let state = strategy.state_dir().ok_or_else(none)?.join("tiller");
        Ok(Places { config: strategy.config_dir().join("tiller").join("tiller.toml"), state })
    }
}

/// Whether a run that was cut off goes on by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resume {
    /// The operator is asked.
    Ask,
    /// It goes on.
    Auto,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Setting {
    value: Value,
    origin: Origin,
}

/// All that is set, merged: the command line above the environment above the file above what is built in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    values: BTreeMap<Vec<String>, Setting>,
}

/// Reads the configuration file. Nothing when there is none; errors when it can't be read.
pub fn read_file(path: &Path) -> Result<Option<String>, ConfigError> {
    let fail = |problem: String| ConfigError { origin: Origin::File { path: path.to_path_buf(), line: None }, problem };
    // A pipe in the place of a file would wait for a writer for ever.
    if path.metadata().is_ok_and(|found| found.file_type().is_fifo()) {
        return Err(fail("it is a pipe; put a file in its place".to_string()));
    }
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(fail(format!("it can't be opened ({error}); correct its rights"))),
    };
    let mut text = String::new();
    file.take(limits::CONFIG_MAX_BYTES + 1)
        .read_to_string(&mut text)
        .map_err(|error| fail(format!("it can't be read ({error}); it must be a text file in UTF-8")))?;
    if text.len() as u64 > limits::CONFIG_MAX_BYTES {
        return Err(fail(format!("it is longer than {} bytes; shorten it", limits::CONFIG_MAX_BYTES)));
    }
    Ok(Some(text))
}

impl Settings {
    /// Merges the file's text, if there is one, the environment and the command line. Errors at the first value
    /// that can't be meant, also where another stands above it.
    pub fn merge(
        file: Option<(&Path, &str)>,
        variable: &dyn Fn(&str) -> Option<String>,
        options: &Options,
    ) -> Result<Settings, ConfigError> {
        let mut settings = Settings::default();
        if let Some((path, text)) = file {
            settings.take_file(path, text)?;
        }
        for (name, path) in VARIABLES {
            let Some(text) = variable(name).filter(|text| !text.is_empty()) else { continue };
            let origin = Origin::Variable(name);
            let Some(key) = KEYS.iter().find(|key| key.path == *path) else { continue };
            let value =
                from_text(key.holds, &text).map_err(|problem| ConfigError { origin: origin.clone(), problem })?;
            settings.set(path, value, origin);
        }
        settings.take_options(options)?;
        Ok(settings)
    }

    fn take_file(&mut self, path: &Path, text: &str) -> Result<(), ConfigError> {
        let origin = |at: usize| {
            let line = text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1;
            Origin::File { path: path.to_path_buf(), line: Some(line) }
        };
        // The parser's own display shows the line, which may hold a key; its message does not.
        let table = DeTable::parse(text).map_err(|error| ConfigError {
            origin: origin(error.span().map_or(0, |span| span.start)),
            problem: format!("it is not TOML: {}", error.message()),
        })?;
        self.take_table(table.get_ref(), &mut Vec::new(), &origin)
    }

    fn take_table(
        &mut self,
        table: &DeTable<'_>,
        path: &mut Vec<String>,
        origin: &dyn Fn(usize) -> Origin,
    ) -> Result<(), ConfigError> {
        for (name, value) in table {
            path.push(name.get_ref().to_string());
            let fail = |problem| ConfigError { origin: origin(name.span().start), problem };
            match place(path).map_err(fail)? {
                Place::Table => {
                    let DeValue::Table(inner) = value.get_ref() else {
                        return Err(fail(format!("{} holds further keys; write [{}]", shown(path), shown(path))));
                    };
                    self.take_table(inner, path, origin)?;
                }
                Place::Key(key) => {
                    let origin = origin(name.span().start);
                    let value = from_toml(key.holds, value).map_err(|problem| ConfigError {
                        origin: origin.clone(),
                        problem: format!("{}: {problem}", shown(path)),
                    })?;
                    self.values.insert(path.clone(), Setting { value, origin });
                }
            }
            path.pop();
        }
        Ok(())
    }

    fn take_options(&mut self, options: &Options) -> Result<(), ConfigError> {
        if let Some(model) = &options.model {
            let origin = Origin::Flag("--model");
            let value =
                from_text(Holds::Model, model).map_err(|problem| ConfigError { origin: origin.clone(), problem })?;
            self.set(&["model"], value, origin);
        }
        if let Some(limit) = options.budget {
            self.set(&["budget", "cost"], Value::Limit(limit), Origin::Flag("--budget"));
        }
        if let Some(limit) = options.iterations {
            self.set(&["budget", "iterations"], Value::Limit(limit), Origin::Flag("--max-iterations"));
        }
        if let Some(deadline) = &options.deadline {
            self.set(&["budget", "deadline"], Value::Text(deadline.clone()), Origin::Flag("--deadline"));
        }
        if let Some(mode) = options.trust {
            self.set(&["run", "trust"], Value::Text(mode.word().to_string()), Origin::Flag("--trust"));
        }
        if !options.checks.is_empty() {
            let origin = Origin::Flag("--check");
            let value = checks::of(options.checks.clone())
                .map_err(|problem| ConfigError { origin: origin.clone(), problem })?;
            self.set(&["run", "checks"], value, origin);
        }
        Ok(())
    }

    fn set(&mut self, path: &[&str], value: Value, origin: Origin) {
        self.values.insert(path.iter().map(ToString::to_string).collect(), Setting { value, origin });
    }

    fn get(&self, path: &[&str]) -> Option<&Setting> {
        let path: Vec<String> = path.iter().map(ToString::to_string).collect();
        self.values.get(&path)
    }

    fn text(&self, path: &[&str]) -> Option<&str> {
        match &self.get(path)?.value {
            Value::Text(text) => Some(text),
            Value::List(_) | Value::Checks(_) | Value::Limit(_) | Value::Number(_) => None,
        }
    }

    fn list(&self, path: &[&str]) -> &[String] {
        match self.get(path).map(|setting| &setting.value) {
            Some(Value::List(list)) => list,
            Some(Value::Text(_) | Value::Checks(_) | Value::Limit(_) | Value::Number(_)) | None => &[],
        }
    }

    fn number(&self, path: &[&str]) -> Option<u64> {
        match self.get(path)?.value {
            Value::Number(number) => Some(number),
            Value::Text(_) | Value::List(_) | Value::Checks(_) | Value::Limit(_) => None,
        }
    }

    /// Where a key was written.
    pub fn origin(&self, path: &[&str]) -> Origin {
        self.get(path).map_or(Origin::BuiltIn, |setting| setting.origin.clone())
    }

    /// The model to work with, as it was written.
    pub fn model(&self) -> Option<&str> {
        self.text(&["model"])
    }

    /// The model to work with. Errors when none is named.
    pub fn required_model(&self) -> Result<&str, ConfigError> {
        self.model().ok_or_else(|| ConfigError {
            origin: Origin::BuiltIn,
            problem: "no model is named; write model = \"provider/model\" in tiller.toml, set TILLER_MODEL, or give \
                      --model"
                .to_string(),
        })
    }

    /// The limits of a run.
    pub fn limits(&self) -> Limits {
        let mut all = Limits::default();
        for key in KEYS {
            if let (Holds::Limit(axis), Some(Setting { value: Value::Limit(limit), .. })) =
                (key.holds, self.get(key.path))
            {
                all.set(axis, *limit);
            }
        }
        all
    }

    /// Until when a run may work, as it was written.
    pub fn deadline(&self) -> Deadline {
        self.text(&["budget", "deadline"]).and_then(|text| Deadline::parse(text).ok()).unwrap_or(Deadline::None)
    }

    /// What all runs together may cost in 24 hours.
    pub fn daily(&self) -> Limit {
        match self.get(&["budget", "daily"]).map(|setting| &setting.value) {
            Some(Value::Limit(limit)) => *limit,
            Some(Value::Text(_) | Value::List(_) | Value::Number(_) | Value::Checks(_)) | None => {
                Limit::At(limits::DAILY_COST.0)
            }
        }
    }

    /// The program that is told what happens, with its arguments; empty when there is none.
    pub fn notify_command(&self) -> &[String] {
        self.list(&["notify", "command"])
    }

    /// How the screen calls for the operator.
    pub fn alerts(&self) -> Alerts {
        let is_on = |name: &str| self.text(&["notify", name]) == Some("true");
        Alerts { bell: is_on("bell"), desktop: is_on("desktop") }
    }

    /// How long, and how many, runs that have ended are kept.
    pub fn keep(&self) -> Keep {
        let limit = |name: &str| match self.get(&["keep", name]).map(|setting| &setting.value) {
            Some(Value::Limit(limit)) => Some(*limit),
            Some(Value::Text(_) | Value::List(_) | Value::Number(_) | Value::Checks(_)) | None => None,
        };
        let usual = Keep::default();
        Keep { days: limit("days").unwrap_or(usual.days), runs: limit("runs").unwrap_or(usual.runs) }
    }

    /// The checks of a run; where there are none and it is wanted, one that asks the operator.
    pub fn checks(&self) -> Vec<Check> {
        let written = match self.get(&["run", "checks"]).map(|setting| &setting.value) {
            Some(Value::Checks(checks)) => checks.clone(),
            Some(Value::Text(_) | Value::List(_) | Value::Limit(_) | Value::Number(_)) | None => Vec::new(),
        };
        let asks = written.is_empty() && self.text(&["run", "confirm_finish"]) == Some("true");
        if asks { vec![Check::OperatorConfirm(String::new())] } else { written }
    }

    /// Whether the model is asked where the work stands before a run parks at a limit.
    pub fn wrap_up(&self) -> bool {
        self.text(&["run", "wrap_up"]) != Some("false")
    }

    /// Whether a run that was cut off goes on by itself.
    pub fn resume(&self) -> Resume {
        match self.text(&["run", "resume"]) {
            Some("auto") => Resume::Auto,
            Some(_) | None => Resume::Ask,
        }
    }

    /// How much a run does unasked.
    pub fn trust(&self) -> Trust {
        self.text(&["run", "trust"]).and_then(|word| Trust::parse(word).ok()).unwrap_or_default()
    }

    /// Whether full trust holds when another process goes on with the run.
    pub fn keep_full_trust(&self) -> bool {
        self.text(&["run", "keep_full_trust"]) == Some("true")
    }

    /// What the agent is told besides the goal.
    pub fn instructions(&self) -> &str {
        self.text(&["run", "instructions"]).unwrap_or_default()
    }

    /// The variables that hold keys of providers, as far as they are configured.
    pub fn key_variables(&self) -> impl Iterator<Item = &str> {
        self.values.iter().filter_map(|(path, setting)| match (path.as_slice(), &setting.value) {
            ([providers, _, key], Value::Text(name)) if providers == "providers" && key == "key" => Some(name.as_str()),
            (_, Value::Text(_) | Value::List(_) | Value::Limit(_) | Value::Number(_) | Value::Checks(_)) => None,
        })
    }

    /// Environment variables that the agent's commands see besides those they always see.
    pub fn pass_variables(&self) -> &[String] {
        self.list(&["run", "pass_variables"])
    }
}
