//! The program: parse, gather, pick a room, set the exit status.

use std::io::IsTerminal;
use std::io::Read;
use std::process::ExitCode;
use std::string::FromUtf8Error;

use crate::archive;
use crate::branch;
use crate::cli;
use crate::cli::Ask;
use crate::cli::Form;
use crate::cli::GoalText;
use crate::cli::Options;
use crate::cli::Output;
use crate::cli::Stop;
use crate::cli::Which;
use crate::cli::closing::Grant;
use crate::config;
use crate::config::ConfigError;
use crate::config::Origin;
use crate::config::Places;
use crate::config::Settings;
use crate::doctor;
use crate::domain::command::Command;
use crate::domain::event::OwnerMode;
use crate::domain::event::Record;
use crate::domain::fold::Broken;
use crate::domain::id::RunId;
use crate::domain::run::Run;
use crate::domain::summary::Listed;
use crate::domain::terms::Goal;
use crate::domain::visible::transcript;
use crate::headless;
use crate::headless::Session;
use crate::headless::Style;
use crate::headless::exit;
use crate::headless::exit::Obstacle;
use crate::headless::output;
use crate::headless::show;
use crate::headless::show::Way;
use crate::headless::table;
use crate::keeping;
use crate::launch;
use crate::launch::Ground;
use crate::launch::Priceless;
use crate::launch::Seat;
use crate::launch::hands;
use crate::logging;
use crate::order;
use crate::rehearsal;
use crate::repository;
use crate::rooms;
use crate::rules;
use crate::secrets;
use crate::store::Journal;
use crate::store::StoreError;
use crate::tools::guard;
use crate::tools::orphans;
use crate::tui::terminal;
use anyhow::Context;
use tokio::task::JoinError;

/// What a command starts can't look into this process, which may hold a key; nor is it written down when it breaks.
fn hide_memory() {
    #[cfg(target_os = "linux")]
    if let Err(error) = nix::sys::prctl::set_dumpable(false) {
        tracing::warn!("other programs of yours can read the memory of this one: {error}");
    }
}

/// Does what the words of the command line ask for; the exit status of the process (docs/ENGINE.md §16.3). Called once.
pub fn run() -> ExitCode {
    if let Err(why) = secrets::shut() {
        output::put_aside(&format!("tiller: {why}\n"));
    }
    let mut words = std::env::args_os();
    let is_guard = words.nth(1).is_some_and(|word| word == guard::WORD);
    if is_guard {
        return guard::main(words);
    }
    terminal::hook_panics();
    hide_memory();
    orphans::adopt();
    match cli::parse(std::env::args_os()) {
        Err(Stop::Shown(text)) => {
            output::put(&text);
            ExitCode::from(if output::is_short() { exit::STOPPED } else { 0 })
        }
        Err(Stop::Usage(text)) => {
            output::put_aside(&text);
            ExitCode::from(exit::USAGE)
        }
        Ok(ask) => carry_out(ask),
    }
}

fn carry_out(ask: Ask) -> ExitCode {
    // Without a provider of encryption a client can't be built; it is set once, before any is.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let started = runtime.map_err(|error| {
        anyhow::Error::from(Obstacle::Stopped(format!("the program can't start its tasks ({error}); nothing was done")))
    });
    let result = started.and_then(|runtime| {
        let result = runtime.block_on(act(ask));
        // A read of the terminal may still wait for a key; it must not keep the program.
        runtime.shutdown_background();
        result
    });
    match result {
        // Whatever else there is to say was not said in full.
        Ok(_) if output::is_short() => ExitCode::from(exit::STOPPED),
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            output::put_aside(&format!("tiller: {}\n", transcript(&without_numbers(&format!("{error:#}")))));
            ExitCode::from(code_of(&error))
        }
    }
}

/// A message without the numbers that the system's words come with: they say nothing that the words do not.
fn without_numbers(message: &str) -> String {
    let mut parts = message.split(" (os error ");
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |text, part| match part.split_once(')') {
        Some((number, rest)) if number.bytes().all(|one| one.is_ascii_digit()) => text + rest,
        Some(_) | None => text + " (os error " + part,
    })
}

/// The exit status of an error (docs/ENGINE.md §16.3).
fn code_of(error: &anyhow::Error) -> u8 {
    let known = error
        .downcast_ref()
        .map(of_store)
        .or(error.downcast_ref().map(exit::obstacle_code))
        .or(error.downcast_ref().map(exit::refusal_code))
        .or(error.downcast_ref().map(exit::shown_code))
        .or(error.downcast_ref().map(exit::file_code))
        .or(error.downcast_ref::<Broken>().map(|_| exit::FAILED))
        .or(error.downcast_ref::<JoinError>().map(|_| exit::STOPPED))
        .or(error.downcast_ref().map(of_configuration));
    known.unwrap_or(exit::USAGE)
}

/// What is wrong on the command line is no fault of the configuration.
fn of_configuration(error: &ConfigError) -> u8 {
    match error.origin {
        Origin::Flag(_) => exit::USAGE,
        Origin::BuiltIn | Origin::File { .. } | Origin::Variable(_) | Origin::Chosen => exit::CONFIGURATION,
    }
}

fn of_store(error: &StoreError) -> u8 {
    match error {
        StoreError::Locked { .. } => exit::LOCKED,
        StoreError::Damaged { .. }
        | StoreError::TooNew { .. }
        | StoreError::ForeignTooNew { .. }
        | StoreError::Unreadable { .. } => exit::FAILED,
        StoreError::NotFound(_) | StoreError::Ambiguous { .. } | StoreError::Foreign { .. } => exit::USAGE,
        StoreError::Taken(_) => exit::REFUSED,
        StoreError::Disk { .. }
        | StoreError::Doubtful { .. }
        | StoreError::NotDense { .. }
        | StoreError::TooLong { .. }
        | StoreError::Closed(_)
        | StoreError::Exposed { .. } => exit::STOPPED,
    }
}

async fn act(ask: Ask) -> anyhow::Result<u8> {
    let places = Places::of_user().map_err(anyhow::Error::msg)?;
    let options = match &ask {
        Ask::Open(options) | Ask::Start { options, .. } => options.clone(),
        Ask::Resume { pass_secrets, .. } => Options { pass_secrets: pass_secrets.clone(), ..Options::default() },
        Ask::Runs(_)
        | Ask::Show { .. }
        | Ask::Rehearse { .. }
        | Ask::Doctor
        | Ask::Archive(_)
        | Ask::Branch(_)
        | Ask::Folders(_)
        | Ask::Rules(_)
        | Ask::Order { .. } => Options::default(),
    };
    let settings = settings(&places, &options);
    if ask == Ask::Doctor {
        let (text, is_whole) = doctor::report(&doctor::examine(&places, settings.as_ref()).await, terminal::columns());
        output::put(&text);
        return Ok(if is_whole { 0 } else { exit::CONFIGURATION });
    }
    let mode = match &ask {
        Ask::Order { .. }
        | Ask::Archive(_)
        | Ask::Branch(_)
        | Ask::Runs(_)
        | Ask::Show { .. }
        | Ask::Folders(_)
        | Ask::Rules(_) => OwnerMode::Records,
        Ask::Open(_) | Ask::Start { .. } | Ask::Resume { .. } | Ask::Rehearse { .. } | Ask::Doctor => OwnerMode::Drives,
    };
    // To look at a run, or to decide about one, no configuration is needed: a broken one must not stand in the way.
    let mut settings = if mode == OwnerMode::Records { settings.unwrap_or_default() } else { settings? };
    if matches!(ask, Ask::Start { .. }) {
        confirm_secrets(&mut settings)?;
    }
    let ground = Ground::new(places, settings, mode)?;
    let _log = log(&ground);
    match ask {
        Ask::Open(options) => {
            let _keeping = keeping::begin(&ground);
            open(&ground, &options).await
        }
        Ask::Start { goal, options } => {
            let is_watched = options.output != Output::Json && Style::fitting_lines() == Style::Asking;
            let priceless = if is_watched { Priceless::Asked } else { Priceless::Refused };
            let terms = ground.terms(read_goal(goal)?, options.workspace.as_deref(), priceless).await?;
            let seat = ground.start(launch::new_id()?, terms).await?;
            let _keeping = keeping::begin(&ground);
            watch(&ground, seat, options.output, None).await
        }
        Ask::Rehearse { script, output } => {
            let seat = rehearse(&ground, script.as_deref()).await?;
            let _keeping = keeping::begin(&ground);
            watch(&ground, seat, output, None).await
        }
        Ask::Resume { which, grant, pass_secrets: _, output } => {
            let id = pick(&ground, which)?;
            let seat = ground.open(&id).await?;
            // Not before this run is held: it may be one that is not kept any more.
            let _keeping = keeping::begin(&ground);
            let first = match grant {
                Grant::Nothing => Command::Resume,
                Grant::Replans => Command::GrantReplans,
            };
            watch(&ground, seat, output, Some(first)).await
        }
        Ask::Runs(form) => {
            let all = ground.home.list()?;
            output::put(&match form {
                Form::Text => table::runs(&all, ground.clock.now(), terminal::columns()),
                Form::Json => show::runs_json(&all),
            });
            Ok(0)
        }
        Ask::Show { run, form } => show_run(&ground, &run, form).await,
        Ask::Order { run, order } => {
            let run = order::carry_out(&ground, &run, order.clone()).await?;
            output::put(&format!("{}{}", order::recorded(&run, &order), ground.parting(&run)));
            Ok(0)
        }
        Ask::Branch(what) => branch::carry_out(&ground, what).await,
        Ask::Folders(what) => {
            output::put(&repository::carry_out(&ground, &what)?);
            Ok(0)
        }
        Ask::Rules(what) => rules::carry_out(&ground, what).await,
        Ask::Archive(what) => archive::carry_out(&ground, what).await,
        Ask::Doctor => Ok(0),
    }
}

/// Asks about each variable that looks secret and is to be passed, where somebody is there to say yes. Errors, and nothing
/// is started, where nobody is or they do not.
fn confirm_secrets(settings: &mut Settings) -> Result<(), ConfigError> {
    let held = secrets::held_back(settings);
    let is_watched = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    for name in held.iter().filter(|_| is_watched) {
        output::put_aside(&format!("{name} looks secret. May the commands of this run see it? Type yes: "));
        let mut answer = String::new();
        // What can't be read is no yes.
        let _ = std::io::stdin().read_line(&mut answer);
        if answer.trim() == "yes" {
            settings.pass_secret(name);
        }
    }
    let held = secrets::held_back(settings);
    if held.is_empty() {
        return Ok(());
    }
    let problem = format!("{}, or take it out there", secrets::way_to_pass(&held));
    Err(ConfigError { origin: settings.origin(&["run", "pass_variables"]), problem })
}

fn settings(places: &Places, options: &Options) -> Result<Settings, ConfigError> {
    let text = config::read_file(&places.config)?;
    let file = text.as_deref().map(|text| (places.config.as_path(), text));
    // What is no text must not pass for nothing: a limit that is overlooked is none.
    let variable = |name: &str| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
    Settings::merge(file, &variable, options)
}

/// Starts the log. Without one the program still works; the person is told.
fn log(ground: &Ground) -> Option<logging::Log> {
    // What is not text is none of the levels, and that is told.
    let level = std::env::var_os(logging::VARIABLE).map(|level| level.to_string_lossy().into_owned());
    let started = ground.redactor(None).map_err(|error| error.to_string());
    match started
        .and_then(|redactor| logging::start(&ground.places.state, level.as_deref(), redactor, ground.clock.clone()))
    {
        Ok(log) => Some(log),
        Err(why) => {
            output::put_aside(&format!("tiller: {why}\n"));
            None
        }
    }
}

fn read_goal(goal: GoalText) -> anyhow::Result<Goal> {
    match goal {
        GoalText::Typed(goal) => Ok(goal),
        GoalText::StandardInput => {
            let mut bytes = Vec::new();
            std::io::stdin()
                .take(launch::GOAL_MAX_BYTES)
                .read_to_end(&mut bytes)
                .context("the goal can't be read from standard input; nothing was started; try again")?;
            let text = String::from_utf8(bytes)
                .or_else(cut_off)
                .context("the goal can't be read from standard input; nothing was started; it must be text in UTF-8")?;
            Goal::try_from(text).map_err(anyhow::Error::msg)
        }
    }
}

/// What was read of a text that is longer than a goal may be: its last character may be cut in two.
fn cut_off(error: FromUtf8Error) -> Result<String, FromUtf8Error> {
    let (whole, read) = (error.utf8_error(), error.as_bytes().len() as u64);
    if whole.error_len().is_some() || read < launch::GOAL_MAX_BYTES {
        return Err(error);
    }
    let mut bytes = error.into_bytes();
    bytes.truncate(whole.valid_up_to());
    String::from_utf8(bytes)
}

/// Opens the screen on the list of runs, or prints the list where there is no screen.
async fn open(ground: &Ground, options: &Options) -> anyhow::Result<u8> {
    if options.output == Output::Fitting && launch::has_screen() {
        return rooms::browse(ground, options).await;
    }
    output::put(&table::runs(&ground.home.list()?, ground.clock.now(), terminal::columns()));
    Ok(0)
}

async fn rehearse(ground: &Ground, script: Option<&std::path::Path>) -> anyhow::Result<Seat> {
    let id = launch::new_id()?;
    let run_dir = ground.home.run_dir(&id);
    let terms = rehearsal::terms(&run_dir, script, hands::tool_specs())?;
    ground.start(id, terms).await
}

/// Shows a run in the fitting room until it is left.
async fn watch(ground: &Ground, seat: Seat, output: Output, first: Option<Command>) -> anyhow::Result<u8> {
    let style = match output {
        Output::Fitting if launch::has_screen() => return rooms::watch(ground, seat, first).await,
        Output::Fitting | Output::Plain => Style::fitting_lines(),
        Output::Json => Style::Json,
    };
    let id = seat.id.clone();
    seat.notes.iter().for_each(|note| output::put_aside(&format!("tiller: {}\n", transcript(note))));
    // A new run is shown from its first record on, one that is resumed from where it stands.
    let session = match first {
        None => Session { client: seat.client(), id, run: None, style, first },
        Some(_) => {
            let (run, client) = seat.look();
            Session { client, id, run: Some(run), style, first }
        }
    };
    let shown = headless::run(session).await;
    let left = seat.leave().await;
    // What went wrong first says more than what went wrong because of it.
    shown?;
    Ok(exit::exit_code(&left?.status))
}

fn pick(ground: &Ground, which: Which) -> anyhow::Result<RunId> {
    match which {
        Which::Named(prefix) => Ok(ground.home.find(&prefix)?),
        Which::Last => {
            ground.home.latest()?.context("there is no run yet; start one with a goal, or `tiller rehearse`")
        }
        Which::Only => {
            let open = |one: &Listed| match one {
                Listed::Run { summary, .. } if summary.is_open() => Some(summary.id.clone()),
                Listed::Run { .. } | Listed::Damaged { .. } => None,
            };
            let mut unfinished: Vec<RunId> = ground.home.list()?.iter().filter_map(open).collect();
            match (unfinished.pop(), unfinished.len()) {
                (Some(id), 0) => Ok(id),
                (None, _) => anyhow::bail!("no run can go on; `tiller runs` lists them all"),
                (Some(_), others) => {
                    anyhow::bail!("{} runs can go on; name one, or say --last; `tiller runs` lists them", others + 1)
                }
            }
        }
    }
}

/// Prints a run in full; one that another process holds, from a copy of this moment.
async fn show_run(ground: &Ground, prefix: &str, form: Form) -> anyhow::Result<u8> {
    let id = ground.home.find(prefix)?;
    let (run, records, holder): (Run, Vec<Record>, Option<String>) = match ground.take(&id).await {
        Ok((run, journal)) => {
            let records = launch::whole(journal.reader().as_ref(), run.seq).await;
            journal.close().await;
            (run, records?, None)
        }
        Err(error) => match error.downcast_ref::<StoreError>() {
            Some(StoreError::Locked { .. }) => {
                let (survey, holder) = ground.home.survey_now(&id)?;
                match Run::fold(&id, &survey.records) {
                    Ok(run) => (run, survey.records, holder),
                    Err(_) => return Err(error),
                }
            }
            Some(StoreError::Damaged { .. } | StoreError::TooNew { .. }) => {
                return archive::show_rest(ground, &id, form, &error);
            }
            // Full, or only to be read: that keeps nobody from looking.
            Some(StoreError::Disk { why, .. }) => {
                let survey = ground.home.survey(&id)?;
                if !survey.is_whole() {
                    return archive::show_rest(ground, &id, form, &error);
                }
                output::put_aside(&format!(
                    "tiller: run {id} is shown from a copy, because it can't be opened where it lies ({}); until that is \
                     mended nothing can be recorded in it\n",
                    transcript(why)
                ));
                (launch::fold(&id, &survey.records)?, survey.records, None)
            }
            Some(_) | None => return Err(error),
        },
    };
    let today = ground.today(&run);
    let way = holder.map_or_else(|| ground.way(&run), Way::Held);
    output::put(&match form {
        Form::Text => show::run(&run, &records, today, &way, &jiff::tz::TimeZone::system()),
        Form::Json => show::run_json(&run, &records, today, &way),
    });
    Ok(0)
}
