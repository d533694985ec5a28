//! The command line: what may be typed and what it means. It parses and does nothing; `program.rs` acts.
//!
//! Words that are no command are a goal. A single word that looks like a command is neither: it is refused, and both
//! readings are named.

pub mod archive;
pub mod lineage;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Parser;
use clap::Subcommand;
use clap::error::ContextKind;
use clap::error::ContextValue;
use clap::error::ErrorKind;

use crate::cli::archive::Archive;
use crate::cli::closing::ConfirmWords;
use crate::cli::closing::Grant;
use crate::cli::closing::OnClaim;
use crate::cli::deciding::AnswerWords;
use crate::cli::deciding::ApproveWords;
use crate::cli::deciding::DecisionWords;
use crate::cli::deciding::EditText;
use crate::cli::deciding::Known;
use crate::cli::lineage::Branch;
use crate::cli::options::FormWords;
use crate::cli::options::OptionWords;
use crate::cli::options::OutputWords;
use crate::cli::options::SecretWords;
use crate::cli::rules::RulesAsk;
use crate::cli::rules::RulesWords;
use crate::cli::trusting::Folders;
use crate::cli::trusting::TrustWords;
pub mod told;

use crate::cli::told::WhenTold;
use crate::cli::values::PriceWords;
use crate::domain::approval::Decision;
use crate::domain::approval::Resolution;
use crate::domain::budget::Axis;
use crate::domain::budget::Limit;
use crate::domain::budget::ReservationId;
use crate::domain::command::PlanEdit;
use crate::domain::command::Policy;
use crate::domain::deadline::Deadline;
use crate::domain::id::CallId;
use crate::domain::id::InterjectionId;
use crate::domain::money::MicroUsd;
use crate::domain::money::Price;
use crate::domain::terms::Check;
use crate::domain::terms::Goal;
use crate::domain::trust::Trust;
use crate::policy::plan_edit;

pub mod closing;
pub mod deciding;
pub mod goal;
mod options;
pub mod trusting;
pub mod rules;
pub mod values;

/// What was asked for on the command line.
#[derive(Clone, Debug, PartialEq)]
pub enum Ask {
    /// Open the screen: the runs, or the composer for a new goal.
    Open(Options),
    /// Start a run.
    Start {
        /// What is to be reached.
        goal: GoalText,
        /// How.
        options: Options,
    },
    /// Go on with a run.
    Resume {
        /// Which.
        which: Which,
        /// Whether a stalled run is granted new replans.
        grant: Grant,
        /// Variables that look secret and that commands may see.
        pass_secrets: Vec<String>,
        /// How it is shown.
        output: Output,
    },
    /// List the runs.
    Runs(Form),
    /// Show a run in full.
    Show {
        /// The beginning of its name.
        run: String,
        /// In which form.
        form: Form,
    },
    /// Rehearse with a scripted model.
    Rehearse {
        /// The script; nothing for the built-in one.
        script: Option<PathBuf>,
        /// How it is shown.
        output: Output,
    },
    /// Look at what a run needs, and say what is missing.
    Doctor,
    /// Look at standing rules, or change them.
    Rules(RulesAsk),
    /// Do something with a journal as it lies on the disk.
    Archive(Archive),
    /// Go back in a run, or branch off from one.
    Branch(Branch),
    /// Say which folders are trusted.
    Folders(Folders),
    /// Give an order to a run that no process holds.
    Order {
        /// The beginning of its name.
        run: String,
        /// The order.
        order: Order,
    },
}

/// Where the goal is.
#[derive(Clone, Debug, PartialEq)]
pub enum GoalText {
    /// On the command line.
    Typed(Goal),
    /// On standard input, to its end.
    StandardInput,
}

/// What a run is started with, as far as the command line says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// How it is shown.
    pub output: Output,
    /// The model, `provider/model`.
    pub model: Option<String>,
    /// The limit of cost, in micro-dollars.
    pub budget: Option<Limit>,
    /// The limit of iterations.
    pub iterations: Option<Limit>,
    /// Until when the run may work.
    pub deadline: Option<Deadline>,
    /// What must hold before a claim is believed; empty leaves the checks of the configuration.
    pub checks: Vec<Check>,
    /// The folder it works in; nothing for the current one.
    pub workspace: Option<PathBuf>,
    /// How much it does unasked.
    pub trust: Option<Trust>,
    /// Variables that look secret and that commands may see.
    pub pass_secrets: Vec<String>,
}

/// How a run is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Output {
    /// On the screen where there is a terminal, else as lines.
    #[default]
    Fitting,
    /// As lines for people.
    Plain,
    /// As one JSON object a line.
    Json,
}

/// The form of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// Which run to go on with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    /// The one that waits, if there is only one.
    Only,
    /// The one that was touched last.
    Last,
    /// The one whose name begins like this.
    Named(String),
}

/// What an operator can ask of a run that no process holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Decide about a call.
    Decide {
        /// The call.
        call: CallId,
        /// The digest as it was shown, 8 characters or more.
        digest: String,
        /// The decision.
        decision: Decision,
    },
    /// Allow a call with changed arguments.
    Edit {
        /// The call.
        call: CallId,
        /// The digest as it was shown, 8 characters or more.
        digest: String,
        /// The arguments.
        arguments: EditText,
    },
    /// Allow a call, and by a standing rule every one like it.
    Rule {
        /// The call.
        call: CallId,
        /// The digest as it was shown, 8 characters or more.
        digest: String,
        /// Whether its last word may be another.
        open: bool,
        /// Whether the rule holds in every folder.
        everywhere: bool,
    },
    /// Leave for a grave call, with the code that was typed.
    Coded(String, Box<Order>),
    /// Allow a list of calls, each with its digest as it was shown.
    AllowAll(Vec<(CallId, String)>),
    /// Say how much it does unasked.
    Trust(Trust),
    /// Answer a question.
    Answer {
        /// Its call; nothing for the only one that waits.
        call: Option<CallId>,
        /// The answer.
        text: String,
    },
    /// Say what became of a call.
    Resolve {
        /// The call.
        call: CallId,
        /// What is known.
        resolution: Resolution,
    },
    /// Say whether the claim is right, with words for the model.
    Confirm(OnClaim),
    /// Take the work as it is.
    Accept,
    /// Close the run as failed.
    Close,
    /// Say something to the agent.
    Say {
        /// What is said.
        text: String,
        /// When it is told.
        policy: Policy,
    },
    /// Take back what was said and is not told yet.
    Withdraw(InterjectionId),
    /// Set a limit.
    Raise {
        /// On this axis.
        axis: Axis,
        /// The new limit.
        limit: Limit,
    },
    /// Set the deadline.
    Deadline(Deadline),
    /// Change the plan.
    Plan(PlanEdit),
    /// Say what the model costs; nothing goes on without counting money.
    Price(Option<Price>),
    /// Say what a model call cost whose charge is in doubt.
    Correct {
        /// The call and its attempt.
        id: ReservationId,
        /// What it cost.
        amount: MicroUsd,
    },
    /// End the run.
    Cancel,
    /// Take it up again after it failed or was cancelled.
    Retry,
}

/// Why nothing is to be done: help was asked for, or what was typed can't be understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// A text that was asked for; it goes to standard output, and the exit status is 0.
    Shown(String),
    /// A usage error in words; it goes to standard error, and the exit status is 2.
    Usage(String),
}

/// Reads a command line, the program's name first. Errors with the text to print.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Ask, Stop> {
    let words: Vec<OsString> = arguments.into_iter().collect();
    let line = Line::try_parse_from(&words).map_err(|mut error| {
        if error.kind() == ErrorKind::UnknownArgument {
            if let Some(sentence) = values::negative(&words).or_else(|| goal::misspelt(&words)) {
                return Stop::Usage(format!("error: {sentence}\n"));
            }
            // That it could be passed as a value is true, and never what was meant.
            error.insert(ContextKind::Suggested, ContextValue::None);
        }
        let text = error.render().to_string();
        if error.use_stderr() {
            Stop::Usage(format!("{text}Nothing was started or changed.\n"))
        } else {
            Stop::Shown(text)
        }
    })?;
    match line.word {
        Some(word) => word.ask(),
        None => goal::bare(&line.goal, line.options.read()),
    }
    .map_err(|sentence| Stop::Usage(format!("error: {sentence}\n")))
}

const EXAMPLES: &str = "\
Examples:
  tiller                                  open the screen
  tiller \"make the tests pass\"            start a run on the screen
  tiller run \"make the tests pass\" --plain --budget 2 --check \"cargo test\"
  tiller run - --json < goal.txt          read the goal from standard input
  tiller resume --last                    go on where you were
  tiller show k7f                         see in full what waits
  tiller approve k7f c7 1a2b3c4d          allow the call c7 of run k7f, as shown

Run names may be cut to any beginning that fits one run only.
Exit status: 0 completed; 2 usage; 3 refused; 10 waits for approval; 11 budget; 12 stalled or not verified; \
13 key, account, rights, model or price; 14 parked for another reason, or the disk is full; \
20 failed, or damaged; 21 cancelled; 30 the run is held by another process.";

const RUN_EXAMPLES: &str = "\
Examples:
  tiller run \"make the tests pass\" --check \"cargo test\" --budget 2
  tiller run - --json < goal.txt
Without --plain or --json the screen opens where there is a terminal; elsewhere lines are printed. \
A run that needs a decision and has no terminal is parked, and the command that decides is printed.";

const PLAN_HELP: &str = "\
CHANGE:
  add TEXT             a new todo, after those that stand
  edit ID TEXT         another title
  done ID, open ID     it is done; it is not
  now ID               it is what is worked on
  block ID WHY         it can't go on
  drop ID WHY          it is not needed
  move ID POSITION     its place among those of its level, from 1
Example: tiller plan k7f add \"write the changelog\"";

/// An LLM agent works on its own, with your hand on the tiller: every step is journaled, nothing that matters
/// happens without your leave, and a killed run goes on where it was.
#[derive(Parser)]
#[command(
    name = "tiller",
    version,
    max_term_width = 100,
    args_conflicts_with_subcommands = true,
    after_help = EXAMPLES
)]
struct Line {
    #[command(subcommand)]
    word: Option<Word>,
    /// What is to be reached, as one argument; `-` reads it from standard input
    #[arg(value_name = "GOAL")]
    goal: Vec<String>,
    #[command(flatten)]
    options: OptionWords,
}

#[derive(Subcommand)]
enum Word {
    /// Start a run
    #[command(after_help = RUN_EXAMPLES)]
    Run {
        /// What is to be reached, as one argument; `-` reads it from standard input
        goal: String,
        #[command(flatten)]
        options: OptionWords,
    },
    /// Go on with a run that is parked or was interrupted
    Resume {
        /// The beginning of its name; may be left out where only one run can go on
        #[arg(value_parser = values::run_prefix)]
        run: Option<String>,
        /// The run that was touched last
        #[arg(long, conflicts_with = "run")]
        last: bool,
        /// Grant a stalled run all its replans again
        #[arg(long)]
        grant_replans: bool,
        #[command(flatten)]
        secrets: SecretWords,
        #[command(flatten)]
        output: OutputWords,
    },
    /// List the runs
    #[command(
        after_help = "On a terminal it is as wide as that is: a table where there is room, else a few lines for each \
                            run.\nInto a pipe or a file goes the table, one line for each run; programs read --json."
    )]
    Runs {
        #[command(flatten)]
        form: FormWords,
    },
    /// Show a run in full: its plan, its spend, and all of what waits for you
    Show {
        /// The beginning of its name
        #[arg(value_parser = values::run_prefix)]
        run: String,
        #[command(flatten)]
        form: FormWords,
    },
    /// Rehearse: a scripted model drives the real engine in a scratch folder, free of charge
    Rehearse {
        #[command(flatten)]
        output: OutputWords,
        /// A script of your own for the model
        #[arg(long, value_name = "FILE")]
        script: Option<PathBuf>,
    },
    /// Check what a run needs: configuration, keys, store, terminal
    Doctor,
    /// List, explain, make and remove standing rules; without more, list them
    #[command(after_help = rules::RULES_HELP)]
    Rules(RulesWords),
    #[command(flatten)]
    Branch(Branch),
    #[command(flatten)]
    Archive(Archive),
    /// Allow calls of a parked run, as they were shown
    #[command(after_help = deciding::APPROVE_HELP)]
    Approve {
        #[command(flatten)]
        target: ApproveWords,
    },
    /// Trust a folder, so that runs there are told its AGENTS.md; or say how much a parked run does unasked
    #[command(after_help = deciding::TRUST_HELP)]
    Trust {
        #[command(flatten)]
        words: TrustWords,
    },
    /// Deny a call of a parked run
    #[command(after_help = deciding::DENY_HELP)]
    Deny {
        #[command(flatten)]
        target: DecisionWords,
        /// Why, for the model
        #[arg(default_value = "", hide_default_value = true)]
        text: String,
    },
    /// Answer a question that a parked run waits for
    #[command(allow_missing_positional = true, after_help = deciding::ANSWER_HELP)]
    Answer(AnswerWords),
    /// Say what became of a call whose outcome nobody knows
    #[command(after_help = deciding::RESOLVE_HELP)]
    Resolve {
        /// The beginning of its name
        #[arg(value_parser = values::run_prefix)]
        run: String,
        /// The call: c1, c2, …
        #[arg(value_parser = values::call)]
        call: CallId,
        /// What you know
        what: Known,
        /// What it gave, for the model; only with `happened`
        text: Option<String>,
        /// The code of a grave call, as it is shown with it; only with `again`
        #[arg(long)]
        code: Option<String>,
    },
    /// Say whether the claim of being finished is right, where a check asks you
    #[command(after_help = closing::CONFIRM_HELP)]
    Confirm(ConfirmWords),
    /// Take the work of a parked run as it is: the run is completed
    Accept {
        /// The beginning of its name
        #[arg(value_parser = values::run_prefix)]
        run: String,
    },
    /// Close a parked run as failed
    Close {
        /// The beginning of its name
        #[arg(value_parser = values::run_prefix)]
        run: String,
    },
    /// Say something to the agent of a parked run; it is told when the run goes on
    Say {
        /// The beginning of its name
        #[arg(value_parser = values::run_prefix)]
        run: String,
        /// What is said
        text: String,
        #[command(flatten)]
        when: WhenTold,
    },
    /// Take back something that you said and the agent was not told yet
    #[command(after_help = "Example: tiller withdraw k7f i2; `tiller show k7f` lists what waits to be told")]
    Withdraw {
        /// The beginning of the run's name
        #[arg(value_parser = values::run_prefix)]
        run: String,
        /// What was said: i1, i2, …
        #[arg(value_parser = values::interjection)]
        id: InterjectionId,
    },
    /// Set a limit of a parked run
    #[command(after_help = values::RAISE_HELP)]
    Raise {
        /// The beginning of its name
        #[arg(value_parser = values::run_prefix)]
        run: String,
        /// What is limited
        #[arg(value_parser = values::axis)]
        axis: Axis,
        /// The new limit
        limit: String,
    },
    /// Show the plan of a run, or change that of a parked one; the agent is told
    #[command(after_help = PLAN_HELP)]
    Plan {
        /// The beginning of its name
        #[arg(value_parser = values::run_prefix)]
        run: String,
        /// The change; nothing shows the plan with all that waits
        #[arg(value_name = "CHANGE", trailing_var_arg = true)]
        words: Vec<String>,
    },
    /// Say what the model of a run costs where nobody knows, in dollars per million tokens
    #[command(after_help = "Example: tiller price k7f 0.25 2.00 && tiller resume k7f")]
    Price {
        #[command(flatten)]
        words: PriceWords,
    },
    /// Put the actual cost in the place of a charge that nobody could verify, once
    #[command(after_help = "Example: tiller correct k7f m3.1 0.02; `tiller show k7f` lists the charges in doubt")]
    Correct {
        /// The beginning of its name
        #[arg(value_parser = values::run_prefix)]
        run: String,
        /// The model call and its attempt, as shown: m3.1
        #[arg(value_parser = values::reservation)]
        call: ReservationId,
        /// What it cost, in dollars
        #[arg(value_parser = values::dollars)]
        amount: MicroUsd,
    },
    /// End a run for good
    Cancel {
        /// The beginning of its name
        #[arg(value_parser = values::run_prefix)]
        run: String,
    },
}

impl Word {
    fn ask(self) -> Result<Ask, String> {
        let order = |run: String, order: Order| Ask::Order { run, order };
        Ok(match self {
            Word::Run { goal, options } => goal::start(&goal, options.read())?,
            Word::Resume { run, last, grant_replans, secrets, output } => {
                let named = run.map_or(Which::Only, Which::Named);
                let grant = if grant_replans { Grant::Replans } else { Grant::Nothing };
                let which = if last { Which::Last } else { named };
                Ask::Resume { which, grant, pass_secrets: secrets.pass_secrets, output: output.read() }
            }
            Word::Runs { form } => Ask::Runs(form.read()),
            Word::Show { run, form } => Ask::Show { run, form: form.read() },
            Word::Rehearse { output, script } => Ask::Rehearse { script, output: output.read() },
            Word::Doctor => Ask::Doctor,
            Word::Archive(what) => Ask::Archive(what),
            Word::Branch(what) => Ask::Branch(what),
            Word::Rules(words) => Ask::Rules(words.ask()?),
            Word::Approve { target } => target.ask()?,
            Word::Trust { words } => words.ask()?,
            Word::Deny { target, text } => target.ask(Decision::Deny(text)),
            Word::Answer(words) => words.ask(),
            Word::Resolve { run, call, what, text, code } => {
                let told = Order::Resolve { call, resolution: deciding::resolution(what, text)? };
                order(run, deciding::coded(told, code))
            }
            Word::Confirm(words) => words.ask(),
            Word::Accept { run } => order(run, Order::Accept),
            Word::Close { run } => order(run, Order::Close),
            Word::Say { run, text, when } => order(run, Order::Say { text, policy: when.policy() }),
            Word::Withdraw { run, id } => order(run, Order::Withdraw(id)),
            Word::Raise { run, axis, limit } => order(run, values::raise(axis, &limit)?),
            Word::Plan { run, words } if words.is_empty() => Ask::Show { run, form: Form::Text },
            Word::Plan { run, words } => {
                let edit = plan_edit::read(&words.join(" ")).map_err(|how| format!("{how}; nothing was changed"))?;
                order(run, Order::Plan(edit))
            }
            Word::Price { words } => {
                let price = words.price();
                order(words.run, Order::Price(price))
            }
            Word::Correct { run, call, amount } => order(run, Order::Correct { id: call, amount }),
            Word::Cancel { run } => order(run, Order::Cancel),
        })
    }
}
