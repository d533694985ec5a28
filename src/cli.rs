//! The command line: what may be typed and what it means. It parses and does nothing; `main.rs` acts.
//!
//! A word that is no command is a goal. A single word that is nearly a command is neither: it is refused, and
//! both readings are named.

pub mod archive;
pub mod lineage;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use clap::CommandFactory;
use clap::Parser;
use clap::Subcommand;
use clap::ValueEnum;

use crate::cli::archive::Archive;
use crate::cli::lineage::Branch;
use crate::domain::approval::Decision;
use crate::domain::approval::Resolution;
use crate::domain::budget::Axis;
use crate::domain::budget::Limit;
use crate::domain::id::CallId;
use crate::domain::id::RUN_ID_ALPHABET;
use crate::domain::id::RUN_ID_LENGTH;
use crate::domain::terms::Goal;

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
    /// Do something with a journal as it lies on the disk.
    Archive(Archive),
    /// Go back in a run, or branch off from one.
    Branch(Branch),
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
    /// Shell lines that must exit with status 0; empty leaves those of the configuration.
    pub checks: Vec<String>,
    /// The folder it works in; nothing for the current one.
    pub workspace: Option<PathBuf>,
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
    /// Answer the question that waits.
    Answer(String),
    /// Say what became of a call.
    Resolve {
        /// The call.
        call: CallId,
        /// What is known.
        resolution: Resolution,
    },
    /// Say something to the agent.
    Say(String),
    /// Set a limit.
    Raise {
        /// On this axis.
        axis: Axis,
        /// The new limit.
        limit: Limit,
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
    let line = Line::try_parse_from(arguments).map_err(|error| {
        let text = error.render().to_string();
        if error.use_stderr() { Stop::Usage(text) } else { Stop::Shown(text) }
    })?;
    match line.word {
        Some(word) => word.ask(),
        None => bare(&line.goal, line.options.read()),
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
Exit status: 0 completed; 2 usage; 10 waits for approval; 11 budget; 12 stalled or not verified;
13 key, account, rights, model or price; 14 parked for another reason, or the disk is full;
20 failed, or damaged; 21 cancelled; 30 the run is held by another process.";

const RUN_EXAMPLES: &str = "\
Examples:
  tiller run \"make the tests pass\" --check \"cargo test\" --budget 2
  tiller run - --json < goal.txt
Without --plain or --json the screen opens where there is a terminal; elsewhere lines are printed.
A run that needs a decision and has no terminal is parked, and the command that decides is printed.";

const RAISE_HELP: &str = "\
AXIS and LIMIT:
  cost          dollars: 5, 0.50
  time          a time while running: 30m, 2h, 1h30m
  iterations, tool-calls, model-calls, tokens   a whole number
LIMIT is the new limit, not a difference; `unlimited` takes the limit away.
Example: tiller raise k7f cost 10 && tiller resume k7f";

const RESOLVE_HELP: &str = "\
Example: tiller resolve k7f c7 happened \"the mail was sent\"
`again` allows the call anew; everything else only tells the run what is so.";

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

#[derive(Args)]
struct OptionWords {
    #[command(flatten)]
    output: OutputWords,
    /// The model, as provider/model; wins over TILLER_MODEL and tiller.toml
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// What the run may cost, in dollars, or `unlimited`
    #[arg(long, value_name = "DOLLARS", value_parser = cost)]
    budget: Option<Limit>,
    /// How many iterations the run may take, or `unlimited`
    #[arg(long, value_name = "N", value_parser = iterations)]
    max_iterations: Option<Limit>,
    /// A shell line that must succeed before the goal counts as reached; may be given several times
    #[arg(long = "check", value_name = "CMD")]
    checks: Vec<String>,
    /// The folder to work in, instead of the current one
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
}

impl OptionWords {
    fn read(self) -> Options {
        Options {
            output: self.output.read(),
            model: self.model,
            budget: self.budget,
            iterations: self.max_iterations,
            checks: self.checks,
            workspace: self.workspace,
        }
    }
}

#[derive(Args)]
struct OutputWords {
    /// Print lines for people and screen readers instead of opening the screen
    #[arg(long, conflicts_with = "json")]
    plain: bool,
    /// Print the records, one JSON object a line, and nothing else
    #[arg(long)]
    json: bool,
}

impl OutputWords {
    fn read(&self) -> Output {
        match (self.plain, self.json) {
            (_, true) => Output::Json,
            (true, false) => Output::Plain,
            (false, false) => Output::Fitting,
        }
    }
}

#[derive(Args)]
struct FormWords {
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
}

impl FormWords {
    fn read(&self) -> Form {
        if self.json { Form::Json } else { Form::Text }
    }
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
        /// The beginning of its name; may be left out where only one run waits
        #[arg(value_parser = run_prefix)]
        run: Option<String>,
        /// The run that was touched last
        #[arg(long, conflicts_with = "run")]
        last: bool,
        #[command(flatten)]
        output: OutputWords,
    },
    /// List the runs
    Runs {
        #[command(flatten)]
        form: FormWords,
    },
    /// Show a run in full: its plan, its spend, and all of what waits for you
    Show {
        /// The beginning of its name
        #[arg(value_parser = run_prefix)]
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
    #[command(flatten)]
    Branch(Branch),
    #[command(flatten)]
    Archive(Archive),
    /// Allow a call of a parked run once, as it was shown
    #[command(after_help = "Example: tiller approve k7f c7 1a2b3c4d && tiller resume k7f")]
    Approve {
        #[command(flatten)]
        target: DecisionWords,
    },
    /// Deny a call of a parked run
    #[command(after_help = "Example: tiller deny k7f c7 1a2b3c4d \"use the test database\"")]
    Deny {
        #[command(flatten)]
        target: DecisionWords,
        /// Why, for the model
        #[arg(default_value = "", hide_default_value = true)]
        text: String,
    },
    /// Answer the question that a parked run waits for
    Answer {
        /// The beginning of its name
        #[arg(value_parser = run_prefix)]
        run: String,
        /// The answer
        text: String,
    },
    /// Say what became of a call whose outcome nobody knows
    #[command(after_help = RESOLVE_HELP)]
    Resolve {
        /// The beginning of its name
        #[arg(value_parser = run_prefix)]
        run: String,
        /// The call: c1, c2, …
        #[arg(value_parser = call)]
        call: CallId,
        /// What you know
        what: Known,
        /// What it gave, for the model; only with `happened`
        text: Option<String>,
    },
    /// Say something to the agent of a parked run; it is told when the run goes on
    Say {
        /// The beginning of its name
        #[arg(value_parser = run_prefix)]
        run: String,
        /// What is said
        text: String,
    },
    /// Set a limit of a parked run
    #[command(after_help = RAISE_HELP)]
    Raise {
        /// The beginning of its name
        #[arg(value_parser = run_prefix)]
        run: String,
        /// What is limited
        #[arg(value_parser = axis)]
        axis: Axis,
        /// The new limit
        limit: String,
    },
    /// End a run for good
    Cancel {
        /// The beginning of its name
        #[arg(value_parser = run_prefix)]
        run: String,
    },
}

#[derive(Args)]
struct DecisionWords {
    /// The beginning of the run's name
    #[arg(value_parser = run_prefix)]
    run: String,
    /// The call: c1, c2, …
    #[arg(value_parser = call)]
    call: CallId,
    /// The digest that was shown with it; the decision holds for exactly those bytes
    #[arg(value_parser = digest)]
    digest: String,
}

impl DecisionWords {
    fn ask(self, decision: Decision) -> Ask {
        let order = Order::Decide { call: self.call, digest: self.digest, decision };
        Ask::Order { run: self.run, order }
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum Known {
    /// It happened
    Happened,
    /// It did not happen
    Not,
    /// Run it again, which allows it anew
    Again,
    /// Go on without knowing
    Skip,
}

impl Word {
    fn ask(self) -> Result<Ask, String> {
        let order = |run: String, order: Order| Ask::Order { run, order };
        Ok(match self {
            Word::Run { goal, options } => start(&goal, options.read())?,
            Word::Resume { run, last, output } => {
                let named = run.map_or(Which::Only, Which::Named);
                Ask::Resume { which: if last { Which::Last } else { named }, output: output.read() }
            }
            Word::Runs { form } => Ask::Runs(form.read()),
            Word::Show { run, form } => Ask::Show { run, form: form.read() },
            Word::Rehearse { output, script } => Ask::Rehearse { script, output: output.read() },
            Word::Doctor => Ask::Doctor,
            Word::Archive(what) => Ask::Archive(what),
            Word::Branch(what) => Ask::Branch(what),
            Word::Approve { target } => target.ask(Decision::AllowOnce),
            Word::Deny { target, text } => target.ask(Decision::Deny(text)),
            Word::Answer { run, text } => order(run, Order::Answer(text)),
            Word::Resolve { run, call, what, text } => {
                order(run, Order::Resolve { call, resolution: resolution(what, text)? })
            }
            Word::Say { run, text } => order(run, Order::Say(text)),
            Word::Raise { run, axis, limit } => order(run, Order::Raise { axis, limit: axis.parse_limit(&limit)? }),
            Word::Cancel { run } => order(run, Order::Cancel),
        })
    }
}

fn resolution(what: Known, text: Option<String>) -> Result<Resolution, String> {
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

/// The meaning of a line without a command.
fn bare(words: &[String], options: Options) -> Result<Ask, String> {
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

fn start(goal: &str, options: Options) -> Result<Ask, String> {
    let goal = match goal {
        "-" => GoalText::StandardInput,
        typed => GoalText::Typed(Goal::try_from(typed.to_string())?),
    };
    Ok(Ask::Start { goal, options })
}

fn cost(text: &str) -> Result<Limit, String> {
    Axis::Cost.parse_limit(text)
}

fn iterations(text: &str) -> Result<Limit, String> {
    Axis::Loops.parse_limit(text)
}

fn axis(word: &str) -> Result<Axis, String> {
    Axis::parse(word).ok_or_else(|| format!("the axes are {}", Axis::ALL.map(Axis::word).join(", ")))
}

fn call(text: &str) -> Result<CallId, String> {
    CallId::parse(text).ok_or_else(|| "calls are named c1, c2, …; `tiller show RUN` lists those that wait".to_string())
}

fn digest(text: &str) -> Result<String, String> {
    let fits = (8..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if fits {
        Ok(text.to_lowercase())
    } else {
        Err("a digest is 8 to 64 of the characters 0-9 and a-f; `tiller show RUN` prints it beside the call"
            .to_string())
    }
}

pub(crate) fn run_prefix(text: &str) -> Result<String, String> {
    let text = text.to_lowercase();
    let fits = (1..=RUN_ID_LENGTH).contains(&text.len()) && text.bytes().all(|byte| RUN_ID_ALPHABET.contains(&byte));
    if fits { Ok(text) } else { Err("no run has a name like this; `tiller runs` lists them".to_string()) }
}
