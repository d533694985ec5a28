//! The options of the command line: what a run is started with, and how it is shown.

use std::path::PathBuf;

use clap::Args;

use crate::cli::Form;
use crate::cli::Options;
use crate::cli::Output;
use crate::domain::budget::Limit;
use crate::domain::deadline::Deadline;
use crate::domain::terms::Check;
use crate::domain::trust::Trust;

#[derive(Args)]
pub(crate) struct OptionWords {
    #[command(flatten)]
    output: OutputWords,
    /// The model, as provider/model; wins over TILLER_MODEL and tiller.toml
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// What the run may cost, in dollars, or `unlimited`
    #[arg(long, value_name = "DOLLARS", value_parser = crate::cli::values::cost)]
    budget: Option<Limit>,
    /// How many iterations the run may take, or `unlimited`
    #[arg(long, value_name = "N", value_parser = crate::cli::values::iterations)]
    max_iterations: Option<Limit>,
    /// Until when the run may work: a time from now (2h), a moment (2030-01-31T18:00:00Z), or `none`
    #[arg(long, value_name = "TIME", value_parser = crate::cli::values::deadline)]
    deadline: Option<Deadline>,
    /// A shell line that must succeed before the goal counts as reached; may be given several times
    #[arg(long = "check", value_name = "CMD")]
    checks: Vec<String>,
    /// A file or folder that must be there before the goal counts as reached; may be given several times
    #[arg(long = "check-file", value_name = "PATH")]
    files: Vec<String>,
    /// A condition that the model must find true, in a call of its own; may be given several times
    #[arg(long = "check-judge", value_name = "QUESTION")]
    judged: Vec<String>,
    /// Ask you before the goal counts as reached
    #[arg(long = "check-confirm")]
    confirm: bool,
    /// The folder to work in, instead of the current one
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// How much the run does unasked: plan, ask, auto_edit or full_trust (`tiller trust --help` explains them)
    #[arg(long, value_name = "MODE", value_parser = crate::cli::deciding::trust)]
    trust: Option<Trust>,
    #[command(flatten)]
    secrets: SecretWords,
}

impl OptionWords {
    /// The checks, the cheapest first: what costs nothing is looked at before the model or you are asked.
    fn checks(&self) -> Vec<Check> {
        let files = self.files.iter().cloned().map(Check::FileExists);
        let commands = self.checks.iter().cloned().map(Check::Command);
        let judged = self.judged.iter().cloned().map(Check::ModelJudge);
        let confirm = self.confirm.then(|| Check::OperatorConfirm(String::new()));
        files.chain(commands).chain(judged).chain(confirm).collect()
    }

    pub(crate) fn read(self) -> Options {
        let checks = self.checks();
        Options {
            output: self.output.read(),
            model: self.model,
            budget: self.budget,
            iterations: self.max_iterations,
            deadline: self.deadline,
            checks,
            workspace: self.workspace,
            trust: self.trust,
            pass_secrets: self.secrets.pass_secrets,
        }
    }
}

#[derive(Args)]
pub(crate) struct SecretWords {
    /// A variable that looks secret and that the agent's commands see all the same, as long as this process drives the
    /// run; may be given several times
    #[arg(long = "pass-secret", value_name = "NAME")]
    pub(crate) pass_secrets: Vec<String>,
}

#[derive(Args)]
pub(crate) struct OutputWords {
    /// Print lines for people and screen readers instead of opening the screen
    #[arg(long, conflicts_with = "json")]
    plain: bool,
    /// Print the records, one JSON object a line, and nothing else
    #[arg(long)]
    json: bool,
}

impl OutputWords {
    pub(crate) fn read(&self) -> Output {
        match (self.plain, self.json) {
            (_, true) => Output::Json,
            (true, false) => Output::Plain,
            (false, false) => Output::Fitting,
        }
    }
}

#[derive(Args)]
pub(crate) struct FormWords {
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
}

impl FormWords {
    pub(crate) fn read(&self) -> Form {
        if self.json { Form::Json } else { Form::Text }
    }
}
