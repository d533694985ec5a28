//! The words of the command line that decide: about one call, about a list of calls, with changed arguments, and how
//! much a run does unasked.

use std::path::PathBuf;

use clap::Args;
use clap::ValueEnum;

use crate::cli::Ask;
use crate::cli::Order;
use crate::cli::values;
use crate::domain::approval::Decision;
use crate::domain::approval::Resolution;
use crate::domain::id::CallId;
use crate::domain::trust::Trust;

/// Where changed arguments are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditText {
    /// On the command line.
    Typed(String),
    /// In a file.
    File(PathBuf),
}

/// What is said of `approve` below its words.
pub(crate) const APPROVE_HELP: &str = "\
Examples:
  tiller approve k7f c7 1a2b3c4d && tiller resume k7f
  tiller approve k7f c7:1a2b3c4d c8:9f8e7d6c      all of the list, or none of it
  tiller approve k7f c7 1a2b3c4d --edit '{\"path\":\"src/b.rs\"}'
How far it reaches:
  without more  this call, once; on the screen y
  --for-run     every later call of this tool with the same arguments, byte for
                byte, and the same binding, until the run ends; on the screen a
  --rule        every later call of the same words, in this and all later runs
                in this folder, by a standing rule; with --open its last word
                may be any other that is no option; with --everywhere in all
                runs in every folder; on the screen r
  --tool        every later call of this tool, until the run ends, but never a
                shell line, nor what is asked about each time; on the screen t
  --unboxed     this call, once, outside of its box; on the screen O
A grave call (key material, files that other programs run by themselves) needs its code, and so does leaving the box. \
On a terminal it is asked for; `tiller show` names it:
  tiller approve k7f c7 1a2b3c4d --code CODE
  tiller approve k7f c7 1a2b3c4d --unboxed --code CODE
`tiller show` lists what is allowed for the run.";

/// What is said of `deny` below its words.
pub(crate) const DENY_HELP: &str = "\
Example: tiller deny k7f c7 1a2b3c4d \"use the test database\"
A denial holds until the run ends: the same call, byte for byte, is then denied without asking you. \
`tiller show` lists what is denied for the run.";

/// What is said of `answer` below its words.
pub(crate) const ANSWER_HELP: &str = "\
Example: tiller answer k7f c9 \"the second one\" && tiller resume k7f
Where just one question waits, CALL may be left out; what was answered is said.";

/// What is said of `trust` below its words.
pub(crate) const TRUST_HELP: &str = "\
Examples:
  tiller trust            shows the AGENTS.md of the current folder and asks;
                          then runs there are told it, as text of the
                          repository, and nothing else changes
  tiller trust DIR --yes  the same of another folder, without being asked
  tiller trust --list
  tiller trust k7f ask    how much the run k7f does unasked
MODE:
  plan        it reads inside the workspace; what would change anything is
              denied
  ask         it reads inside the workspace; you are asked about all else
  auto_edit   it also changes files of the workspace
  full_trust  you are asked only about sensitive names, what other programs
              run, places outside the workspace, and shell lines, where no full
              sandbox holds them
What waits for you already goes on waiting. A tighter mode takes back what was allowed and not used. \
Full trust ends when another process goes on with the run, unless run.keep_full_trust is set.";

/// What is said of `resolve` below its words.
pub(crate) const RESOLVE_HELP: &str = "\
Example: tiller resolve k7f c7 happened \"the mail was sent\"
`again` allows the call anew; everything else only tells the run what is so.";

#[derive(Args)]
pub(crate) struct AnswerWords {
    /// The beginning of the run's name
    #[arg(value_parser = values::run_prefix)]
    run: String,
    /// The call that asks: c1, c2, …, as `tiller show` has it
    #[arg(value_parser = values::call)]
    call: Option<CallId>,
    /// The answer
    text: String,
}

impl AnswerWords {
    pub(crate) fn ask(self) -> Ask {
        Ask::Order { run: self.run, order: Order::Answer { call: self.call, text: self.text } }
    }
}

#[derive(Args)]
pub(crate) struct DecisionWords {
    /// The beginning of the run's name
    #[arg(value_parser = values::run_prefix)]
    run: String,
    /// The call: c1, c2, …
    #[arg(value_parser = values::call)]
    call: CallId,
    /// The digest that was shown with it; the decision holds for exactly those bytes
    #[arg(value_parser = values::digest)]
    digest: String,
}

impl DecisionWords {
    pub(crate) fn ask(self, decision: Decision) -> Ask {
        let order = Order::Decide { call: self.call, digest: self.digest, decision };
        Ask::Order { run: self.run, order }
    }
}

#[derive(Args)]
pub(crate) struct ApproveWords {
    /// The beginning of the run's name
    #[arg(value_parser = values::run_prefix)]
    run: String,
    /// The call and its digest, as they were shown; or a list of calls, each as CALL:DIGEST
    #[arg(value_name = "CALL DIGEST | CALL:DIGEST", required = true)]
    calls: Vec<String>,
    /// Allow it with these arguments in the place of the model's: JSON, or a file that holds it
    #[arg(long, value_name = "FILE_OR_JSON", conflicts_with_all = ["for_run", "tool", "rule", "unboxed"])]
    edit: Option<String>,
    /// Allow it, and every later call with the same arguments and the same binding, until the run ends
    #[arg(long, conflicts_with_all = ["tool", "rule", "unboxed"])]
    for_run: bool,
    /// Allow it, and every later call of the same tool, until the run ends; what is always asked about is still asked
    #[arg(long, conflicts_with_all = ["rule", "unboxed"])]
    tool: bool,
    /// Allow it, and make a standing rule of its exact words in this folder
    #[arg(long, conflicts_with = "unboxed")]
    rule: bool,
    /// Its last word may be any other that is no option
    #[arg(long, requires = "rule")]
    open: bool,
    /// The rule holds in all runs in every folder
    #[arg(long, requires = "rule")]
    everywhere: bool,
    /// Allow it to run outside of the box, with your full rights, this once
    #[arg(long)]
    unboxed: bool,
    /// The code of a grave call, as it is shown with it; on a terminal it is asked for
    #[arg(long, conflicts_with_all = ["edit", "for_run", "tool", "rule"])]
    code: Option<String>,
}

impl ApproveWords {
    /// Errors with a sentence when the words do not name calls with their digests.
    pub(crate) fn ask(self) -> Result<Ask, String> {
        let order = match (self.pairs()?.as_slice(), &self.edit) {
            ([(call, digest)], Some(edit)) => {
                Order::Edit { call: *call, digest: digest.clone(), arguments: edit_text(edit) }
            }
            ([(call, digest)], None) if self.rule => {
                Order::Rule { call: *call, digest: digest.clone(), open: self.open, everywhere: self.everywhere }
            }
            ([(call, digest)], None) => {
                let wider = [
                    (self.for_run, Decision::AllowRun),
                    (self.tool, Decision::AllowTool),
                    (self.unboxed, Decision::AllowUnboxed),
                ];
                let chosen = wider.into_iter().find(|(is_chosen, _)| *is_chosen);
                let decision = chosen.map_or(Decision::AllowOnce, |(_, decision)| decision);
                coded(Order::Decide { call: *call, digest: digest.clone(), decision }, self.code.clone())
            }
            (_, _) if self.code.is_some() => {
                return Err("a code is for one call; nothing was decided; allow grave calls one by one".to_string());
            }
            (_, _) if self.edit.is_some() || self.for_run || self.tool || self.rule || self.unboxed => {
                let several = "--edit, --for-run, --rule, --tool and --unboxed are about one call; nothing was decided";
                return Err(several.to_string());
            }
            (pairs, _) => Order::AllowAll(pairs.to_vec()),
        };
        Ok(Ask::Order { run: self.run, order })
    }

    fn pairs(&self) -> Result<Vec<(CallId, String)>, String> {
        let undecided = |why: String| format!("{why}; nothing was decided");
        let pair = |call: &str, digest: &str| {
            let call = values::call(call).map_err(undecided)?;
            Ok((call, values::digest(digest).map_err(undecided)?))
        };
        match self.calls.as_slice() {
            [call, digest] if !call.contains(':') && !digest.contains(':') => Ok(vec![pair(call, digest)?]),
            calls => calls
                .iter()
                .map(|one| match one.split_once(':') {
                    Some((call, digest)) => pair(call, digest),
                    None => Err(format!(
                        "{one} is no CALL:DIGEST; nothing was decided; `tiller show RUN` prints the lines to type"
                    )),
                })
                .collect(),
        }
    }
}

fn edit_text(text: &str) -> EditText {
    match text.trim_start().starts_with('{') {
        true => EditText::Typed(text.to_string()),
        false => EditText::File(PathBuf::from(text)),
    }
}

/// The order with the code that was typed for it, if one was.
pub(crate) fn coded(order: Order, code: Option<String>) -> Order {
    match code {
        Some(code) => Order::Coded(code, Box::new(order)),
        None => order,
    }
}

/// What is known of a call whose outcome is unknown.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Known {
    /// It happened
    Happened,
    /// It did not happen
    Not,
    /// Run it again, which allows it anew
    Again,
    /// Go on without knowing
    Skip,
}

/// What became of a call, from its words.
pub(crate) fn resolution(what: Known, text: Option<String>) -> Result<Resolution, String> {
    match (what, text) {
        (Known::Happened, text) => Ok(Resolution::Happened(text.unwrap_or_default())),
        (Known::Not, None) => Ok(Resolution::NotHappened),
        (Known::Again, None) => Ok(Resolution::RunAgain),
        (Known::Skip, None) => Ok(Resolution::Skip),
        (Known::Not | Known::Again | Known::Skip, Some(_)) => {
            Err("only `happened` takes a text; nothing was sent; leave the text out, or use `tiller say`".to_string())
        }
    }
}

/// A mode by its word.
pub(crate) fn trust(text: &str) -> Result<Trust, String> {
    Trust::parse(text)
}
