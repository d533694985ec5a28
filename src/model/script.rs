//! The script of a scripted model: its format, and the reading and checking of it before anything starts.
//! What the format means is written for people in `docs/SCRIPT.md`; a whole example stands there, and is read by a
//! test here. This file does not decide which step is due: `replay.rs` does.
//!
//! In short:
//!
//! ```toml
//! title = "a title"
//! chunk_ms = 20                 # wait between streamed words, for all steps
//! [price]                       # micro-dollars per million tokens
//! input = 3000000
//! output = 15000000
//! [[step]]                      # one reply; the first is where the script starts
//! name = "look"
//! text = "I'll look first."
//! calls = [ { tool = "read_file", args = { path = "check.sh" } } ]
//! [[step.next]]                 # the first that holds; else the next step of the file
//! when = { tool = "read_file", failed = true }
//! go = "look"
//! [[anywhere]]                  # looked at before a step's own `next`
//! when = { said = "*" }
//! go = "heard"
//! [[step]]
//! name = "heard"
//! back = true                   # a detour: afterwards the script goes on where it was
//! text = "I heard you."
//! ```

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::domain::limits::SCRIPT_MAX_BYTES;
use crate::domain::limits::SCRIPT_WAIT_MAX;
use crate::domain::model::FailureClass;
use crate::domain::model::StopReason;
use crate::domain::money::Price;
use crate::domain::money::Usage;
use crate::domain::status::Phase;
use crate::domain::time::Span;
use crate::model::ModelError;

/// A checked script: every name that it mentions exists.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    title: String,
    price: Price,
    steps: Vec<Step>,
    anywhere: Vec<Branch>,
    summary: Step,
    start: usize,
}

/// One reply of a script.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Its unique name.
    pub name: String,
    /// Its text.
    pub text: String,
    /// Its reasoning.
    pub reasoning: String,
    /// The calls it asks for.
    pub calls: Vec<StepCall>,
    /// Why it ends.
    pub stop: StopReason,
    /// What it reports as used.
    pub usage: StepUsage,
    /// Wait before the first word.
    pub first: Duration,
    /// Wait between two words.
    pub chunk: Duration,
    /// How its first attempts fail, one after the other.
    pub errors: Vec<StepError>,
    /// The text is repeated until it has so many bytes; 0 for once.
    pub repeat_text: usize,
    /// Whether it is a detour.
    pub back: bool,
    /// Where the script goes after it: the first branch that holds.
    pub next: Vec<Branch>,
}

/// A call that a step asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepCall {
    /// Name of the tool.
    pub tool: String,
    /// Arguments as they are sent, possibly broken on purpose.
    pub arguments: String,
}

/// What a step reports as used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepUsage {
    /// What its size suggests.
    Estimated,
    /// These figures.
    Given(Usage),
    /// Nothing, as some providers do.
    Silent,
}

/// How an attempt fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepError {
    /// Its class.
    pub class: FailureClass,
    /// What is said about it.
    pub text: String,
    /// How long the provider asks to wait.
    pub retry_after: Option<Span>,
    /// How many bytes come before it happens.
    pub after_bytes: usize,
}

/// Where to go, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// The condition.
    pub when: When,
    /// Position of the step to go to.
    pub go: usize,
}

/// A condition on what followed a step; all that is given must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct When {
    /// The phase of the request to be answered.
    pub phase: Option<Phase>,
    /// A result of this tool is there; the three conditions below are about results of this tool only.
    pub tool: Option<String>,
    /// A result is an error that is not a denial, or, with `false`, is no such error.
    pub failed: Option<bool>,
    /// A result is a denial, or, with `false`, is none.
    pub denied: Option<bool>,
    /// A result has this text in it; without the three conditions above, a line of the engine will do.
    pub contains: Option<String>,
    /// The operator said something with this text in it, in an interjection or an answer, in any case of letters;
    /// `*` for anything at all.
    pub said: Option<String>,
}

impl Script {
    /// Reads and checks the script at `path`.
    ///
    /// # Errors
    /// `ModelError::Script`, which names the step and what is wrong.
    pub fn load(path: impl AsRef<Path>) -> Result<Script, ModelError> {
        let path = path.as_ref();
        read(path)
            .and_then(|text| Script::parse(&text))
            .map_err(|problem| ModelError::Script { path: path.display().to_string(), problem })
    }

    /// What the script calls itself; empty when it has no title.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Its pretended price; nothing is paid to anyone.
    pub fn price(&self) -> Price {
        self.price
    }

    /// The steps, in the order of the file.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The branches that are looked at before a step's own.
    pub fn anywhere(&self) -> &[Branch] {
        &self.anywhere
    }

    /// What the model says when it is asked for a summary of the conversation.
    pub fn summary(&self) -> &Step {
        &self.summary
    }

    /// Position of the step that the script starts with.
    pub fn start(&self) -> usize {
        self.start
    }

    /// Position of the step that follows `position` in the file. Detours are skipped: only `anywhere` leads to them.
    pub fn following(&self, position: usize) -> Option<usize> {
        let later = self.steps.iter().enumerate().skip(position + 1);
        later.filter(|(_, step)| !step.back).map(|(position, _)| position).next()
    }

    /// Reads a script from its text. Errors with what is wrong, and in which step.
    pub fn parse(text: &str) -> Result<Script, String> {
        let written: Written = toml::from_str(text).map_err(|error| error.to_string())?;
        let file_chunk = wait("chunk_ms", written.chunk_ms.unwrap_or(0))?;
        let names = names(&written.step)?;
        let mut steps = Vec::new();
        for (table, name) in written.step.into_iter().zip(&names.in_order) {
            let step = step(table, file_chunk, &names).map_err(|problem| format!("step {name:?}: {problem}"))?;
            steps.push(step);
        }
        let anywhere = branches(written.anywhere, &names).map_err(|problem| format!("[[anywhere]]: {problem}"))?;
        check_detours(&steps)?;
        let start = steps.iter().position(|step| !step.back).ok_or("it has no step to start with")?;
        let price = written.price.map(Price::from).unwrap_or_default();
        let summary =
            summary(written.summary, file_chunk, &names).map_err(|problem| format!("[summary]: {problem}"))?;
        Ok(Script { title: written.title, price, steps, anywhere, summary, start })
    }
}

fn read(path: &Path) -> Result<String, String> {
    // A pipe in the place of a file would wait for a writer for ever.
    if !path.metadata().map_err(|error| error.to_string())?.is_file() {
        return Err("it is not a file".to_string());
    }
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut text = String::new();
    file.take(SCRIPT_MAX_BYTES + 1).read_to_string(&mut text).map_err(|error| error.to_string())?;
    if text.len() as u64 > SCRIPT_MAX_BYTES {
        return Err(format!("it is longer than {SCRIPT_MAX_BYTES} bytes"));
    }
    Ok(text)
}

/// The file as it is written. Steps stay tables at first, so that an error can name the step it is in.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    title: String,
    chunk_ms: Option<u64>,
    price: Option<WrittenPrice>,
    #[serde(default)]
    step: Vec<toml::Table>,
    #[serde(default)]
    anywhere: Vec<WrittenBranch>,
    summary: Option<toml::Table>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenPrice {
    input: u64,
    output: u64,
    cache_read: Option<u64>,
    cache_write: Option<u64>,
}

impl From<WrittenPrice> for Price {
    /// A cache that has no price of its own costs what input costs.
    fn from(written: WrittenPrice) -> Price {
        Price {
            input: written.input,
            cache_read: written.cache_read.unwrap_or(written.input),
            cache_write: written.cache_write.unwrap_or(written.input),
            output: written.output,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenStep {
    name: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    reasoning: String,
    #[serde(default)]
    calls: Vec<WrittenCall>,
    stop: Option<WrittenStop>,
    usage: Option<WrittenUsage>,
    #[serde(default)]
    no_usage: bool,
    first_ms: Option<u64>,
    chunk_ms: Option<u64>,
    #[serde(default)]
    errors: Vec<WrittenError>,
    repeat_text: Option<usize>,
    #[serde(default)]
    back: bool,
    #[serde(default)]
    next: Vec<WrittenBranch>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenCall {
    tool: String,
    args: Option<toml::Table>,
    raw: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum WrittenStop {
    End,
    Calls,
    Length,
    Refused,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenUsage {
    input: u64,
    output: u64,
    #[serde(default)]
    cache_read: u64,
    #[serde(default)]
    cache_write: u64,
    #[serde(default)]
    reasoning: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenError {
    class: FailureClass,
    text: Option<String>,
    retry_after_ms: Option<u64>,
    #[serde(default)]
    after_bytes: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenBranch {
    #[serde(default)]
    when: When,
    go: String,
}

/// The names of all steps, and where they are.
struct Names {
    in_order: Vec<String>,
    positions: HashMap<String, usize>,
}

fn names(steps: &[toml::Table]) -> Result<Names, String> {
    let mut names = Names { in_order: Vec::new(), positions: HashMap::new() };
    for (position, table) in steps.iter().enumerate() {
        let number = position + 1;
        let name = table.get("name").and_then(toml::Value::as_str).unwrap_or_default();
        if name.is_empty() {
            return Err(format!("step {number} of the file has no name"));
        }
        if names.positions.insert(name.to_string(), position).is_some() {
            return Err(format!("step {name:?}: two steps have this name"));
        }
        names.in_order.push(name.to_string());
    }
    Ok(names)
}

fn step(table: toml::Table, file_chunk: Duration, names: &Names) -> Result<Step, String> {
    let written: WrittenStep = table.try_into().map_err(|error: toml::de::Error| error.message().to_string())?;
    let calls = written.calls.into_iter().map(call).collect::<Result<Vec<StepCall>, String>>()?;
    let usage = match (written.usage, written.no_usage) {
        (Some(_), true) => return Err("it has both `usage` and `no_usage`".to_string()),
        (Some(given), false) => StepUsage::Given(Usage {
            input: given.input,
            cache_read: given.cache_read,
            cache_write: given.cache_write,
            output: given.output,
            reasoning: given.reasoning,
        }),
        (None, true) => StepUsage::Silent,
        (None, false) => StepUsage::Estimated,
    };
    let repeat_text = written.repeat_text.unwrap_or(0);
    if repeat_text > 0 && written.text.is_empty() {
        return Err("`repeat_text` needs a `text` to repeat".to_string());
    }
    let stop = match written.stop {
        Some(WrittenStop::Calls) if calls.is_empty() => return Err("`stop = \"calls\"` needs calls".to_string()),
        Some(WrittenStop::Calls) => StopReason::Calls,
        Some(WrittenStop::Length) => StopReason::Length,
        Some(WrittenStop::Refused) => StopReason::Refused,
        Some(WrittenStop::End) => StopReason::End,
        None if calls.is_empty() => StopReason::End,
        None => StopReason::Calls,
    };
    Ok(Step {
        name: written.name,
        text: written.text,
        reasoning: written.reasoning,
        calls,
        stop,
        usage,
        first: wait("first_ms", written.first_ms.unwrap_or(0))?,
        chunk: written.chunk_ms.map_or(Ok(file_chunk), |ms| wait("chunk_ms", ms))?,
        errors: written.errors.into_iter().map(error).collect(),
        repeat_text,
        back: written.back,
        next: branches(written.next, names)?,
    })
}

/// What stands for a conversation when the script says nothing else.
const SUMMARY: &str = "Facts found: as the script goes.\nDecisions and reasons: none.\nFiles touched: as the plan says.\n\
                       Failed approaches: none.\nNext step: go on.";

/// The step that answers a request for a summary: a text, and how its attempts fail.
fn summary(written: Option<toml::Table>, file_chunk: Duration, names: &Names) -> Result<Step, String> {
    let mut table = written.unwrap_or_default();
    if let Some(key) = table
        .keys()
        .find(|key| !["text", "errors", "stop", "usage", "no_usage", "first_ms", "chunk_ms"].contains(&key.as_str()))
    {
        return Err(format!("it can't have {key:?}"));
    }
    table.entry("text").or_insert(toml::Value::String(SUMMARY.to_string()));
    table.insert("name".to_string(), toml::Value::String("summary".to_string()));
    step(table, file_chunk, names)
}

fn wait(key: &str, ms: u64) -> Result<Duration, String> {
    if ms > SCRIPT_WAIT_MAX.0 {
        return Err(format!("`{key} = {ms}` is more than {} milliseconds", SCRIPT_WAIT_MAX.0));
    }
    Ok(Duration::from_millis(ms))
}

fn call(written: WrittenCall) -> Result<StepCall, String> {
    let tool = written.tool;
    let arguments = match (written.args, written.raw) {
        (Some(_), Some(_)) => return Err(format!("the call of {tool:?} has both `args` and `raw`")),
        (None, Some(raw)) => raw,
        (args, None) => json(toml::Value::Table(args.unwrap_or_default())).to_string(),
    };
    Ok(StepCall { tool, arguments })
}

/// A TOML value as JSON. Dates, which JSON has not, become text; numbers that are none become null.
fn json(value: toml::Value) -> Value {
    match value {
        toml::Value::String(text) => Value::String(text),
        toml::Value::Integer(number) => Value::from(number),
        toml::Value::Float(number) => Value::from(number),
        toml::Value::Boolean(flag) => Value::Bool(flag),
        toml::Value::Datetime(date) => Value::String(date.to_string()),
        toml::Value::Array(items) => Value::Array(items.into_iter().map(json).collect()),
        toml::Value::Table(table) => Value::Object(table.into_iter().map(|(key, value)| (key, json(value))).collect()),
    }
}

fn error(written: WrittenError) -> StepError {
    StepError {
        class: written.class,
        text: written.text.unwrap_or_else(|| "the script says so".to_string()),
        retry_after: written.retry_after_ms.map(Span),
        after_bytes: written.after_bytes,
    }
}

fn branches(written: Vec<WrittenBranch>, names: &Names) -> Result<Vec<Branch>, String> {
    let branch = |branch: WrittenBranch| {
        let go = names.positions.get(&branch.go).copied();
        let go = go.ok_or_else(|| format!("it goes to {:?}, and there is no such step", branch.go))?;
        Ok(Branch { when: branch.when, go })
    };
    written.into_iter().map(branch).collect()
}

/// Only an interruption leads to a detour: from anywhere else there is no place to go back to.
fn check_detours(steps: &[Step]) -> Result<(), String> {
    for step in steps {
        let detour = step.next.iter().filter_map(|branch| steps.get(branch.go)).find(|target| target.back);
        if let Some(detour) = detour {
            let (name, target) = (&step.name, &detour.name);
            return Err(format!("step {name:?}: it goes to {target:?}, which only [[anywhere]] may do: it has `back`"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn check(text: &str, wrong: &str) {
        let problem = Script::parse(text).unwrap_err();
        assert!(problem.contains(wrong), "{problem:?} does not say {wrong:?}");
    }

    #[test]
    fn what_is_wrong_is_said_with_the_name_of_the_step() {
        check("", "no step to start with");
        check("[[step]]\nname = \"a\"\nback = true", "no step to start with");
        check("title = 3", "title");
        check("titel = \"x\"", "titel");
        check("[[step]]\ntext = \"x\"", "step 1 of the file has no name");
        check("[[step]]\nname = \"a\"\n[[step]]\nname = \"a\"", "step \"a\": two steps");
        check("[[step]]\nname = \"a\"\ntxt = \"x\"", "step \"a\": unknown field `txt`");
        check("[[step]]\nname = \"a\"\ntext = 3", "step \"a\": invalid type");
        check("[[step]]\nname = \"a\"\ncalls = [{ tool = \"t\", raw = \"\", args = {} }]", "both `args` and `raw`");
        check("[[step]]\nname = \"a\"\nno_usage = true\nusage = { input = 1, output = 1 }", "both `usage`");
        check("[[step]]\nname = \"a\"\nrepeat_text = 5", "needs a `text`");
        check("[[step]]\nname = \"a\"\nstop = \"calls\"", "needs calls");
        check("[[step]]\nname = \"a\"\nstop = \"never\"", "step \"a\": unknown variant `never`");
        check("[[step]]\nname = \"a\"\nfirst_ms = 600001", "step \"a\": `first_ms = 600001`");
        check("[[step]]\nname = \"a\"\nerrors = [{ class = \"tired\" }]", "step \"a\": unknown variant `tired`");
        check("[[step]]\nname = \"a\"\n[[step.next]]\ngo = \"b\"", "step \"a\": it goes to \"b\"");
        check("[[step]]\nname = \"a\"\n[[anywhere]]\ngo = \"b\"", "[[anywhere]]: it goes to \"b\"");
        check("[[step]]\nname = \"a\"\n[[step.next]]\ngo = \"a\"\nwhen = { sed = \"b\" }", "unknown field `sed`");
        check(
            "[[step]]\nname = \"a\"\n[[step.next]]\ngo = \"b\"\n[[step]]\nname = \"b\"\nback = true",
            "only [[anywhere]]",
        );
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let error = Script::load("/nowhere/at all.toml").unwrap_err().to_string();
        assert!(error.contains("/nowhere/at all.toml") && error.contains("nothing was started"), "{error}");
    }

    #[test]
    fn a_file_that_is_too_long_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(SCRIPT_MAX_BYTES + 1).unwrap();
        assert!(Script::load(file.path()).unwrap_err().to_string().contains("longer than"));
    }

    #[test]
    fn the_example_of_the_documentation_is_a_script() {
        let page = include_str!("../../docs/SCRIPT.md");
        let example = page.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
        let script = Script::parse(example).unwrap();
        assert_eq!(script.title(), "repair the parser");
        assert_eq!(script.price().cache_read, 300_000);
        assert_eq!(script.price().cache_write, 3_000_000);
        let look = &script.steps()[script.start()];
        assert_eq!(look.calls[0].arguments, r#"{"path":"check.sh"}"#);
        assert_eq!(look.calls[1].arguments, "{broken json");
        assert_eq!(look.errors[0].retry_after, Some(Span(50)));
        assert_eq!(look.chunk, Duration::from_millis(5));
        assert_eq!(script.anywhere()[0].when.said.as_deref(), Some("*"));
    }

    #[test]
    fn the_short_example_above_is_a_script() {
        let source = include_str!("script.rs");
        let lines = source.lines().skip_while(|line| *line != "//! ```toml").skip(1);
        let example: Vec<&str> =
            lines.take_while(|line| *line != "//! ```").map(|line| line.trim_start_matches("//! ")).collect();
        assert_eq!(Script::parse(&example.join("\n")).unwrap().steps().len(), 2);
    }
}
