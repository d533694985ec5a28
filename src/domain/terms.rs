//! What a run was started with. Journaled in its first record, so a resume never depends on today's configuration.

use serde::Deserialize;
use serde::Serialize;

use crate::domain::budget::Limits;
use crate::domain::guide::Guide;
use crate::domain::limits;
use crate::domain::model::Dialect;
use crate::domain::model::ModelSpec;
use crate::domain::money::Price;
use crate::domain::tool::ToolSpec;
use crate::domain::trust::Trust;

/// The terms of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Terms {
    /// What is to be reached.
    pub goal: Goal,
    /// The folder the run works in: absolute, canonical, fixed for the life of the run.
    pub workspace: String,
    /// How much it may use.
    pub limits: Limits,
    /// What must hold before a claim of being finished is believed.
    pub checks: Vec<Check>,
    /// Whether the model is asked where the work stands before the run parks at a limit (docs/ENGINE.md §4.2).
    #[serde(default = "on")]
    pub wrap_up: bool,
    /// The model and its price.
    pub model: ModelSpec,
    /// The work tools it may use; control tools are always there.
    pub tools: Vec<ToolSpec>,
    /// The agent's part of the system text.
    pub instructions: String,
    /// What the repository says to agents, where the folder is trusted. No resume reads the file again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guide: Option<Guide>,
    /// Whether this is a rehearsal: a scripted model and pretended money in a scratch copy.
    #[serde(default)]
    pub rehearsal: bool,
    /// How much it does unasked, from its start on.
    #[serde(default, skip_serializing_if = "Trust::is_ask")]
    pub trust: Trust,
    /// Whether full trust holds when another process goes on with the run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep_full_trust: bool,
}

impl Terms {
    /// Whether the money is pretended: nobody is paid for what a scripted model spends at the price of its script.
    pub fn is_pretend(&self) -> bool {
        let is_priced = self.model.price.is_some_and(|price| price != Price::FREE);
        self.rehearsal || (self.model.dialect == Dialect::Scripted && is_priced)
    }
}

fn on() -> bool {
    true
}

/// A goal: 1 to `limits::GOAL_MAX_CHARS` characters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Goal(String);

impl Goal {
    /// The goal as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Goal {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let trimmed = text.trim();
        let length = trimmed.chars().count();
        if length == 0 {
            return Err("the goal is empty; nothing was started; say in a sentence what is to be reached".to_string());
        }
        if length > limits::GOAL_MAX_CHARS {
            return Err(format!(
                "the goal has {length} characters and may have {}; nothing was started; put the text in a file of the \
                 workspace and name the file in the goal",
                limits::GOAL_MAX_CHARS
            ));
        }
        Ok(Goal(trimmed.to_string()))
    }
}

impl From<Goal> for String {
    fn from(goal: Goal) -> String {
        goal.0
    }
}

/// A condition on the world (docs/ENGINE.md §7.6).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    /// A shell line that must exit with status 0. Written by the operator, so it needs no approval.
    Command(String),
    /// A path, seen from the workspace, where a file or a folder must be.
    FileExists(String),
    /// A file whose content must match a pattern.
    FileMatches {
        /// The file, seen from the workspace.
        path: String,
        /// A regular expression; it may match anywhere, `^` and `$` are those of lines.
        pattern: String,
    },
    /// A call of a tool that must end well. Written by the operator, so it needs no approval.
    Tool {
        /// The tool.
        name: String,
        /// Its arguments, as JSON.
        arguments: String,
    },
    /// A condition that a model judges.
    ModelJudge(String),
    /// A question to the operator; empty for the usual one.
    OperatorConfirm(String),
}

impl Check {
    /// The check in words.
    pub fn title(&self) -> String {
        match self {
            Check::Command(line) => line.clone(),
            Check::FileExists(path) => format!("there is {path}"),
            Check::FileMatches { path, pattern } => format!("{path} matches {pattern}"),
            Check::Tool { name, arguments } => format!("{name} {arguments}"),
            Check::ModelJudge(question) => format!("judged by the model: {question}"),
            Check::OperatorConfirm(_) => format!("asked of the operator: {}", self.question()),
        }
    }

    /// What the operator is asked, of a check that asks them.
    pub fn question(&self) -> &str {
        match self {
            Check::OperatorConfirm(question) if !question.is_empty() => question,
            Check::OperatorConfirm(_) => "Is the goal reached?",
            Check::Command(_)
            | Check::FileExists(_)
            | Check::FileMatches { .. }
            | Check::Tool { .. }
            | Check::ModelJudge(_) => "",
        }
    }

    /// The condition, as the model is told it.
    pub fn condition(&self) -> String {
        match self {
            Check::Command(line) => format!("`{line}` must exit with status 0"),
            Check::FileExists(path) => format!("`{path}` must be there"),
            Check::FileMatches { path, pattern } => format!("`{path}` must match the pattern `{pattern}`"),
            Check::Tool { name, arguments } => format!("the tool `{name}` with {arguments} must end well"),
            Check::ModelJudge(question) => format!("a judge must find that this holds: {question}"),
            Check::OperatorConfirm(_) => format!("the operator must say yes to: {}", self.question()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_have_a_length() {
        assert!(Goal::try_from("  ".to_string()).is_err());
        assert!(Goal::try_from("é".repeat(limits::GOAL_MAX_CHARS)).is_ok());
        assert!(Goal::try_from("é".repeat(limits::GOAL_MAX_CHARS + 1)).is_err());
        assert_eq!(Goal::try_from(" fix it \n".to_string()).map(String::from), Ok("fix it".to_string()));
    }
}
