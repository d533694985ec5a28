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
use crate::domain::budget::Axis;
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
pub mod own;
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

impl Places {
    /// The file of the operator's standing rules, which need not exist.
    pub fn rules(&self) -> PathBuf {
        self.config.with_file_name("rules.toml")
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

/// What is set of a provider.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Provider {
    base_url: Option<String>,
    /// The variable that holds its key.
    key: Option<String>,
}

/// What is set of a model: sizes in tokens, prices in micro-dollars per million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sizes {
    window: Option<u64>,
    max_output: Option<u64>,
    input: Option<u64>,
    output: Option<u64>,
    cache_read: Option<u64>,
    cache_write: Option<u64>,
}

/// All that is set, merged: the command line above the environment above the file above what is built in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    model: Option<String>,
    limits: Limits,
    deadline: Deadline,
    daily: Limit,
    checks: Vec<Check>,
    confirm_finish: bool,
    wrap_up: bool,
    resume: Resume,
    trust: Trust,
    keep_full_trust: bool,
    instructions: String,
    pass_variables: Vec<String>,
    pass_secrets: Vec<String>,
    web_fetch: bool,
    fetch_loopback: Vec<String>,
    has_sandbox: bool,
    readable: Vec<String>,
    writable: Vec<String>,
    notify_command: Vec<String>,
    alerts: Alerts,
    keep: Keep,
    providers: BTreeMap<String, Provider>,
    models: BTreeMap<String, Sizes>,
    /// Where each key was written that was.
    origins: BTreeMap<Vec<String>, Origin>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            model: None,
            limits: Limits::default(),
            deadline: Deadline::None,
            daily: Limit::At(limits::DAILY_COST.0),
            checks: Vec::new(),
            confirm_finish: false,
            wrap_up: true,
            resume: Resume::Ask,
            trust: Trust::default(),
            keep_full_trust: false,
            instructions: String::new(),
            pass_variables: Vec::new(),
            pass_secrets: Vec::new(),
            web_fetch: false,
            fetch_loopback: Vec::new(),
            has_sandbox: true,
            readable: Vec::new(),
            writable: Vec::new(),
            notify_command: Vec::new(),
            alerts: Alerts::default(),
            keep: Keep::default(),
            providers: BTreeMap::new(),
            models: BTreeMap::new(),
            origins: BTreeMap::new(),
        }
    }
}

/// Reads the configuration file. Nothing when there is none; errors when it can't be read.
pub fn read_file(path: &Path) -> Result<Option<String>, ConfigError> {
    let fail = |problem: String| ConfigError { origin: Origin::File { path: path.to_path_buf(), line: None }, problem };
    // A pipe in the place of a file would wait for a writer for ever.
    if path.metadata().is_ok_and(|found| found.file_type().is_fifo()) {
        return Err(fail("it is a pipe; put a file in its place".to_string()));
    }
    own::check(path).map_err(fail)?;
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
            settings.set(path, value, origin)?;
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
                    let names: Vec<&str> = path.iter().map(String::as_str).collect();
                    self.set(&names, value, origin)?;
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
            self.set(&["model"], value, origin)?;
        }
        if let Some(limit) = options.budget {
            self.set(&["budget", "cost"], Value::Axis(Axis::Cost, limit), Origin::Flag("--budget"))?;
        }
        if let Some(limit) = options.iterations {
            self.set(&["budget", "iterations"], Value::Axis(Axis::Loops, limit), Origin::Flag("--max-iterations"))?;
        }
        if let Some(deadline) = options.deadline {
            self.set(&["budget", "deadline"], Value::Deadline(deadline), Origin::Flag("--deadline"))?;
        }
        if let Some(mode) = options.trust {
            self.set(&["run", "trust"], Value::Trust(mode), Origin::Flag("--trust"))?;
        }
        if !options.checks.is_empty() {
            let origin = Origin::Flag("--check");
            let value = checks::of(options.checks.clone())
                .map_err(|problem| ConfigError { origin: origin.clone(), problem })?;
            self.set(&["run", "checks"], value, origin)?;
        }
        options.pass_secrets.iter().for_each(|name| self.pass_secret(name));
        Ok(())
    }

    /// Puts a value where it belongs. Errors when it belongs nowhere, which is a key in the table that nothing reads.
    fn set(&mut self, path: &[&str], value: Value, origin: Origin) -> Result<(), ConfigError> {
        match (path, value) {
            (["model"], Value::Text(name)) => self.model = Some(name),
            (["budget", "daily"], Value::Limit(limit)) => self.daily = limit,
            (["budget", "deadline"], Value::Deadline(deadline)) => self.deadline = deadline,
            (["budget", _], Value::Axis(axis, limit)) => self.limits.set(axis, limit),
            (["run", "checks"], Value::Checks(checks)) => self.checks = checks,
            (["run", "confirm_finish"], Value::Switch(on)) => self.confirm_finish = on,
            (["run", "wrap_up"], Value::Switch(on)) => self.wrap_up = on,
            (["run", "resume"], Value::Resume(resume)) => self.resume = resume,
            (["run", "trust"], Value::Trust(trust)) => self.trust = trust,
            (["run", "keep_full_trust"], Value::Switch(on)) => self.keep_full_trust = on,
            (["run", "instructions"], Value::Text(text)) => self.instructions = text,
            (["run", "pass_variables"], Value::List(names)) => self.pass_variables = names,
            (["tools", "web_fetch"], Value::Switch(on)) => self.web_fetch = on,
            (["tools", "fetch_loopback"], Value::List(ports)) => self.fetch_loopback = ports,
            (["sandbox", "use"], Value::Switch(on)) => self.has_sandbox = on,
            (["sandbox", "readable"], Value::List(folders)) => self.readable = folders,
            (["sandbox", "writable"], Value::List(folders)) => self.writable = folders,
            (["notify", "command"], Value::List(words)) => self.notify_command = words,
            (["notify", "bell"], Value::Switch(on)) => self.alerts.bell = on,
            (["notify", "desktop"], Value::Switch(on)) => self.alerts.desktop = on,
            (["keep", "days"], Value::Limit(days)) => self.keep.days = days,
            (["keep", "runs"], Value::Limit(runs)) => self.keep.runs = runs,
            (["providers", name, "base_url"], Value::Text(url)) => self.provider(name).base_url = Some(url),
            (["providers", name, "key"], Value::Text(variable)) => self.provider(name).key = Some(variable),
            (["models", name, "window"], Value::Number(tokens)) => self.sizes(name).window = Some(tokens),
            (["models", name, "max_output"], Value::Number(tokens)) => self.sizes(name).max_output = Some(tokens),
            (["models", name, "price", "input"], Value::Number(price)) => self.sizes(name).input = Some(price),
            (["models", name, "price", "output"], Value::Number(price)) => self.sizes(name).output = Some(price),
            (["models", name, "price", "cache_read"], Value::Number(price)) => {
                self.sizes(name).cache_read = Some(price)
            }
            (["models", name, "price", "cache_write"], Value::Number(price)) => {
                self.sizes(name).cache_write = Some(price);
            }
            (path, _) => {
                let problem = format!("nothing reads {}; this is a bug in tiller", path.join("."));
                return Err(ConfigError { origin, problem });
            }
        }
        self.origins.insert(path.iter().map(ToString::to_string).collect(), origin);
        Ok(())
    }

    fn provider(&mut self, name: &str) -> &mut Provider {
        self.providers.entry(name.to_string()).or_default()
    }

    fn sizes(&mut self, name: &str) -> &mut Sizes {
        self.models.entry(name.to_string()).or_default()
    }

    /// Where a key was written.
    pub fn origin(&self, path: &[&str]) -> Origin {
        let path: Vec<String> = path.iter().map(ToString::to_string).collect();
        self.origins.get(&path).cloned().unwrap_or(Origin::BuiltIn)
    }

    /// The model to work with, as it was written.
    pub fn model(&self) -> Option<&str> {
        self.model.as_deref()
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
        self.limits
    }

    /// Until when a run may work, as it was written.
    pub fn deadline(&self) -> Deadline {
        self.deadline
    }

    /// What all runs together may cost in 24 hours.
    pub fn daily(&self) -> Limit {
        self.daily
    }

    /// The program that is told what happens, with its arguments; empty when there is none.
    pub fn notify_command(&self) -> &[String] {
        &self.notify_command
    }

    /// How the screen calls for the operator.
    pub fn alerts(&self) -> Alerts {
        self.alerts
    }

    /// How long, and how many, runs that have ended are kept.
    pub fn keep(&self) -> Keep {
        self.keep
    }

    /// The checks of a run; where there are none and it is wanted, one that asks the operator.
    pub fn checks(&self) -> Vec<Check> {
        match self.checks.is_empty() && self.confirm_finish {
            true => vec![Check::OperatorConfirm(String::new())],
            false => self.checks.clone(),
        }
    }

    /// Whether the model is asked where the work stands before a run parks at a limit.
    pub fn wrap_up(&self) -> bool {
        self.wrap_up
    }

    /// Whether a run that was cut off goes on by itself.
    pub fn resume(&self) -> Resume {
        self.resume
    }

    /// How much a run does unasked.
    pub fn trust(&self) -> Trust {
        self.trust
    }

    /// Whether full trust holds when another process goes on with the run.
    pub fn keep_full_trust(&self) -> bool {
        self.keep_full_trust
    }

    /// Whether runs have the tool that fetches from the internet.
    pub fn web_fetch(&self) -> bool {
        self.web_fetch
    }

    /// The ports of this machine that it may reach.
    pub fn fetch_loopback(&self) -> &[String] {
        &self.fetch_loopback
    }

    /// What the agent is told besides the goal.
    pub fn instructions(&self) -> &str {
        &self.instructions
    }

    /// The variables that hold keys of providers, as far as they are configured.
    pub fn key_variables(&self) -> impl Iterator<Item = &str> {
        self.providers.values().filter_map(|provider| provider.key.as_deref())
    }

    /// Whether commands run in a box, where there is one.
    pub fn has_sandbox(&self) -> bool {
        self.has_sandbox
    }

    /// Folders that can be read in the box, and those that can be written, as they were written.
    pub fn opened_folders(&self) -> (&[String], &[String]) {
        (&self.readable, &self.writable)
    }

    /// Environment variables that the agent's commands see besides those they always see, as they are configured. Those
    /// that look secret are passed only if they are also in `pass_secrets`.
    pub fn pass_variables(&self) -> &[String] {
        &self.pass_variables
    }

    /// Variables that look secret and that the operator lets commands see, as long as this process lives.
    pub fn pass_secrets(&self) -> &[String] {
        &self.pass_secrets
    }

    /// Lets commands see a variable that looks secret. No file can say this.
    pub fn pass_secret(&mut self, name: &str) {
        self.pass_secrets.push(name.to_string());
    }
}
