//! The roof: gathers what a run is started with, takes runs from the store, and starts to drive them.

use std::io::IsTerminal;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use async_trait::async_trait;
use nix::unistd::AccessFlags;
use tokio::sync::broadcast;
use tokio::sync::oneshot;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::boxes;
use crate::config::ConfigError;
use crate::config::Places;
use crate::config::Settings;
use crate::config::models::Known;
use crate::domain::budget::Axis;
use crate::domain::command::Refusal;
use crate::domain::daily::Today;
use crate::domain::event::Owner;
use crate::domain::event::OwnerMode;
use crate::domain::event::Record;
use crate::domain::id::ClientId;
use crate::domain::id::RUN_ID_LENGTH;
use crate::domain::id::RunId;
use crate::domain::id::Seq;
use crate::domain::limits;
use crate::domain::lineage;
use crate::domain::lineage::Behind;
use crate::domain::model::Delta;
use crate::domain::model::Dialect;
use crate::domain::model::FailureClass;
use crate::domain::model::ModelFailure;
use crate::domain::model::ModelReply;
use crate::domain::model::ModelRequest;
use crate::domain::model::ModelSpec;
use crate::domain::model::Received;
use crate::domain::money::Price;
use crate::domain::run::Run;
use crate::domain::sandbox::Level;
use crate::domain::summary::Summary;
use crate::domain::terms::Goal;
use crate::domain::terms::Terms;
use crate::domain::time::Now;
use crate::domain::time::Span;
use crate::engine::clock::Clock;
use crate::engine::clock::SystemClock;
use crate::engine::driver;
use crate::engine::driver::Driven;
use crate::engine::driver::World;
use crate::engine::redaction::Redactor;
use crate::engine::rulebook::Rulebook;
use crate::headless::exit::Obstacle;
use crate::headless::show;
use crate::headless::show::Way;
use crate::headless::text::title;
use crate::machine;
use crate::model;
use crate::model::Model;
use crate::model::ModelError;
use crate::model::prices;
use crate::model::script::Script;
use crate::preflight;
use crate::protocol::client::Client;
use crate::rehearsal;
use crate::repository;
use crate::secrets;
use crate::sinks;
use crate::sinks::Telling;
use crate::store::Reader;
use crate::store::ledger::Ledger;
use crate::store::place::Home;
use crate::store::sled::SledJournal;
use crate::telling;
use crate::tui::past::Past;
use crate::tui::past::Reading;

pub(crate) mod elsewhere;
pub mod hands;

/// The folder of a run that holds what files were before its calls.
const PRE_IMAGES: &str = "pre-images";

/// What every run of this process shares.
#[derive(Clone)]
pub struct Ground {
    /// Where things are kept.
    pub places: Places,
    /// The configuration.
    pub settings: Settings,
    /// The runs.
    pub home: Home,
    /// The clock.
    pub clock: Arc<dyn Clock>,
}

/// What becomes of a model of which nobody knows the price (docs/ENGINE.md §8.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priceless {
    /// The run is not started: nobody is there to choose.
    Refused,
    /// The run is parked before its first call, and the operator chooses.
    Asked,
}

/// A run that this process drives.
pub struct Seat {
    /// Its name.
    pub id: RunId,
    /// What was not as it was left when it was taken, in sentences. The operator is told once.
    pub notes: Vec<String>,
    /// How much the boxes of its commands hold back.
    pub level: Level,
    driven: Driven<SledJournal>,
    summaries: JoinHandle<()>,
    sink: Option<Telling>,
}

impl Ground {
    /// Takes the state directory for this process.
    pub fn new(places: Places, settings: Settings, mode: OwnerMode) -> anyhow::Result<Ground> {
        let home = Home::new(places.state.clone(), owner(mode))?;
        Ok(Ground { places, settings, home, clock: Arc::new(SystemClock::start()) })
    }

    /// The model by this name, or the configured one. Refused when nobody knows what it costs.
    pub fn model_spec(&self) -> anyhow::Result<ModelSpec> {
        self.spec(Priceless::Refused)
    }

    /// The same, and what becomes of it when nobody knows what it costs.
    pub fn spec(&self, priceless: Priceless) -> anyhow::Result<ModelSpec> {
        let name = self.settings.required_model()?;
        let mut spec = match priceless {
            Priceless::Refused => self.settings.priced_spec(name, &known)?,
            Priceless::Asked => self.settings.model_spec(name, &known)?,
        };
        if spec.dialect == Dialect::Scripted {
            let path = std::path::absolute(&spec.address)?;
            spec.price = Some(Script::load(&path)?.price());
            spec.address = path.to_string_lossy().into_owned();
        }
        Ok(spec)
    }

    /// What this place says a model costs; nothing where it knows none of this name at that address.
    pub fn price_here(&self, model: &ModelSpec) -> Option<Price> {
        let spec = self.settings.model_spec(&model.name, &known).ok()?;
        spec.price.filter(|_| spec.address == model.address)
    }

    /// The terms of a new run in this folder.
    /// Errors, too, when one of its checks can't be meant.
    pub async fn terms(&self, goal: Goal, workspace: Option<&Path>, priceless: Priceless) -> anyhow::Result<Terms> {
        let workspace = workspace_at(workspace.unwrap_or(Path::new(".")), &self.places)?;
        let spec = self.spec(priceless)?;
        let checks = self.settings.checks();
        let (tools, _) = self.tools(None, &workspace)?;
        if let Some(why) = preflight::pointless(&tools, &checks).await {
            let problem = self.redactor(spec.key_variable.as_deref())?.cleaned(&why).into_owned();
            return Err(ConfigError { origin: self.settings.origin(&["run", "checks"]), problem }.into());
        }
        let mut limits = self.settings.limits();
        let late = |problem| anyhow::anyhow!("{problem}; nothing was started; give a later --deadline");
        limits.deadline = self.settings.deadline().limit(self.clock.now()).map_err(late)?;
        Ok(Terms {
            goal,
            tools: tools.specs(),
            workspace: as_text(&workspace)?,
            limits,
            checks,
            wrap_up: self.settings.wrap_up(),
            model: spec,
            instructions: self.settings.instructions().to_string(),
            guide: repository::guide(&self.places.state, &workspace),
            rehearsal: false,
            trust: self.settings.trust(),
            keep_full_trust: self.settings.keep_full_trust(),
        })
    }

    /// What knows the secrets of this process, and of a run whose key is in the variable `more`.
    pub fn redactor(&self, more: Option<&str>) -> anyhow::Result<Arc<Redactor>> {
        Ok(secrets::redactor(&self.places.state, &self.settings, more)?)
    }

    /// Makes a new run, durably, and drives it.
    pub async fn start(&self, id: RunId, terms: Terms) -> anyhow::Result<Seat> {
        let redactor = self.redactor(terms.model.key_variable.as_deref())?;
        let terms = clean(&redactor, terms)?;
        let first = machine::create(terms, Now { at: self.clock.now(), ..Now::default() });
        let journal = self.home.create(&id, std::slice::from_ref(&first)).await?;
        let run = Run::begin(id, &first)?;
        self.home.keep_summary(&run);
        let told = repository::notes(self, &run.terms);
        let mut seat = self.drive(run, journal)?;
        seat.notes.extend(told);
        Ok(seat)
    }

    /// Takes a run from the store and drives it; it stays parked until it is told to resume.
    pub async fn open(&self, id: &RunId) -> anyhow::Result<Seat> {
        let (run, journal) = self.take(id).await?;
        self.drive(run, journal)
    }

    /// Takes a run from the store, to read it or to record a command.
    pub async fn take(&self, id: &RunId) -> anyhow::Result<(Run, SledJournal)> {
        let (journal, run) = self.home.resume(id).await?;
        Ok((run, journal))
    }

    /// Now, for a run that nobody drives: its active time stands still.
    pub fn still(&self, run: &Run) -> Now {
        Now { at: self.clock.now(), active: Span(run.pool.used(Axis::Active)) }
    }

    /// What all runs together spent; nothing for a run that spends nothing real, or where the ledger can't be read.
    pub fn today(&self, run: &Run) -> Option<Today> {
        let ledger = Ledger::new(self.places.state.clone(), self.settings.daily());
        let spent = || ledger.spent(self.clock.now()).ok();
        (!run.is_free()).then(spent).flatten().map(|spent| Today { spent, limit: ledger.limit() })
    }

    /// The standing rules of the operator.
    pub fn rulebook(&self) -> Arc<Rulebook> {
        let user = nix::unistd::User::from_uid(nix::unistd::geteuid()).ok().flatten();
        Arc::new(Rulebook::new(self.places.rules(), user.map(|user| user.name).unwrap_or_default()))
    }

    /// Makes a ledger anew that was lost or damaged. Gives what the operator should know of it.
    pub fn mend_ledger(&self) -> Option<String> {
        let ledger = Ledger::new(self.places.state.clone(), self.settings.daily());
        match ledger.mend(self.clock.now()) {
            Ok(mended) => mended.phrase(),
            // Whatever needs the ledger says so itself.
            Err(error) => {
                tracing::warn!(%error, "the ledger could not be looked at");
                None
            }
        }
    }

    /// Drives a run that was taken. Errors when it can't be, and lets it go then.
    pub fn drive(&self, run: Run, journal: SledJournal) -> anyhow::Result<Seat> {
        let id = run.id.clone();
        let workspace = PathBuf::from(&run.terms.workspace);
        if let Some(why) = self.homeless(&run) {
            return Err(Obstacle::Stopped(format!("run {id} was not opened: {why}")).into());
        }
        if run.terms.rehearsal {
            let parent = run.lineage.as_ref().map(|lineage| self.home.run_dir(&lineage.parent));
            let laid_out = rehearsal::lay_out(&self.home.run_dir(&id), parent.as_deref());
            laid_out.map_err(|error| Obstacle::Stopped(format!("{error:#}")))?;
        }
        let model =
            model::open(&run.terms.model).unwrap_or_else(|_| Arc::new(Unready { spec: run.terms.model.clone() }));
        // A rehearsal's folder has to be there by now: it is what makes it one that may work among our own.
        let (tools, level) = self.tools(Some(&id), &workspace)?;
        self.judge(&run, &tools)?;
        let redactor = self.redactor(run.terms.model.key_variable.as_deref())?;
        let rules = self.rulebook();
        let noticed = rules.notices();
        let (summary, summaries) = self.keep_summaries(&run);
        let ledger = (!run.is_free()).then(|| self.mend_ledger()).flatten();
        let closed = tools.box_obstacle();
        let world = World {
            model,
            tools: tools.clone(),
            redactor,
            clock: self.clock.clone(),
            rules: Some(rules),
            ledger: Some(Ledger::new(self.places.state.clone(), self.settings.daily())),
            preflight: {
                let home = self.home.clone();
                Box::new(move |run| preflight::problems(run, &home, &tools))
            },
            on_change: Box::new(move |now| {
                summary.send_replace(now.clone());
            }),
        };
        let (sink, retold) = telling::sink(self, &run, &world.redactor)?;
        let held = secrets::held_back(&self.settings);
        let held = (!held.is_empty()).then(|| secrets::way_to_pass(&held));
        let box_note = boxes::notice(&self.settings, level);
        let notes = ledger.into_iter().chain(retold).chain(held).chain(noticed).chain(box_note).chain(closed).collect();
        let driven = driver::start(run, journal, world, owner(OwnerMode::Drives));
        let sink = sink.map(|sink| sinks::start(sink, &driven.handle));
        Ok(Seat { id, notes, level, driven, summaries, sink })
    }

    /// The last words about a run that nobody drives, as it can go on here.
    pub fn parting(&self, run: &Run) -> String {
        match self.way(run) {
            Way::Hindered(why) if !run.is_ended() => show::left(run) + &show::hindered(&why),
            Way::Free | Way::Hindered(_) | Way::Held(_) => show::parting(run),
        }
    }

    /// What stands against going on here with a run that nobody holds: for one that has ended, in a branch of it.
    pub fn way(&self, run: &Run) -> Way {
        let (is_ended, shown) = (run.is_ended(), title(&run.terms.workspace));
        match self.homeless(run) {
            None if is_ended => Way::Free,
            None => self.mistrusted(run).map_or(Way::Free, Way::Hindered),
            Some(why) if !is_ended => Way::Hindered(why),
            Some(_) if run.terms.rehearsal || Path::new(&run.terms.workspace).is_dir() => Way::Free,
            Some(_) => Way::Hindered(format!("its folder, {shown}, is not here: make that folder first")),
        }
    }

    /// Why a run can't be opened here for want of its folder, if it can't, and what to do; the end of a sentence.
    fn homeless(&self, run: &Run) -> Option<String> {
        let (workspace, short) = (Path::new(&run.terms.workspace), run.id.short());
        let look = format!("`tiller show {short}` and `tiller audit {short}` still show what it did");
        let (shown, is_here) = (title(&run.terms.workspace), workspace.is_dir());
        if run.terms.rehearsal {
            return self.unrehearsed(run).map(|why| {
                format!(
                    "the scratch folder of that rehearsal, {shown}, {why}; {look}; `tiller rehearse` starts another"
                )
            });
        }
        if is_here {
            let refused = not_ours(workspace, &self.places, "it can go on in no other").err();
            let refused = refused.filter(|_| !self.works_at_home(&run.id, workspace));
            let refused = refused.map(|why| why.to_string()).or_else(|| elsewhere::overreaches(run));
            return refused.map(|why| format!("{why}; {look}"));
        }
        Some(format!(
            "its folder, {shown}, is not here; put that folder there, with what it works on, and then type `tiller resume \
             {short}`; until then {look}"
        ))
    }

    /// What is wrong with the scratch folder of a rehearsal. One in its own run's directory is made where it is missing, but
    /// of a run that was brought: a fresh one has nothing of what its journal says was done in it (docs/SCRIPT.md).
    fn unrehearsed(&self, run: &Run) -> Option<&'static str> {
        let workspace = Path::new(&run.terms.workspace);
        let is_own = workspace == rehearsal::workspace(&self.home.run_dir(&run.id));
        match workspace.is_dir() {
            true if is_own || self.works_at_home(&run.id, workspace) => None,
            true => Some("is that of the run that it is a copy of"),
            false if is_own && run.brought.is_none() => None,
            false => Some("is not here, and a journal does not bring it along"),
        }
    }

    /// Writes the newest summary whenever there is one, off the engine's task.
    fn keep_summaries(&self, run: &Run) -> (watch::Sender<Summary>, JoinHandle<()>) {
        let (sender, mut newest) = watch::channel(Summary::of(run));
        let home = self.home.clone();
        let task = tokio::spawn(async move {
            let mut open = true;
            while open {
                open = newest.changed().await.is_ok();
                let (home, summary) = (home.clone(), newest.borrow_and_update().clone());
                let written = tokio::task::spawn_blocking(move || home.write_summary(&summary)).await;
                if let Ok(Err(error)) = written {
                    tracing::warn!(%error, "a summary could not be written; the list shows an older one");
                }
            }
        });
        (sender, task)
    }
}

impl Seat {
    /// A hold on the run that has seen nothing yet.
    pub fn client(&self) -> Client {
        Client::new(ClientId("operator".to_string()), self.driven.handle.clone(), Seq(0))
    }

    /// The run as it stands, and a hold on it from there on.
    pub fn look(&self) -> (Run, Client) {
        let run = self.driven.handle.run().borrow().clone();
        let client = self.client().from(run.seq);
        (run, client)
    }

    /// What a step back behind the end of an iteration would not undo. Errors when that is no place to go to.
    pub async fn behind(&self, iteration: u32) -> anyhow::Result<Behind> {
        let upto = self.driven.handle.run().borrow().seq;
        let records = whole(self.driven.handle.reader().as_ref(), upto).await?;
        let seq = lineage::boundary(&records, iteration).map_err(Refusal::NotABoundary)?;
        Ok(lineage::behind(&records, seq))
    }

    /// Begins to read what its records up to one say that went by, for a screen that does not wait for it.
    pub fn past(&self, upto: Seq) -> oneshot::Receiver<Past> {
        let (id, reader) = (self.id.clone(), self.driven.handle.reader());
        let (said, past) = oneshot::channel();
        tokio::spawn(async move {
            match read(reader.as_ref(), &id, upto).await {
                // The screen may be closed by now.
                Ok(past) => drop(said.send(past)),
                Err(error) => tracing::warn!(%error, "the screen is shown without what went by before"),
            }
        });
        past
    }

    /// Lets go of the run: what is under way is ended and recorded, and the store is free for others when this
    /// returns. Gives the run as it was left.
    pub async fn leave(self) -> anyhow::Result<Run> {
        let Seat { driven, summaries, sink, .. } = self;
        let Driven { handle, task } = driven;
        let run = handle.run();
        drop(handle);
        let broke = |_| Obstacle::Stopped("the engine broke down; resume the run, its journal is whole".to_string());
        let journal = task.await.map_err(broke)?;
        if let Some(sink) = sink {
            telling::finish(sink).await;
        }
        // It ends by itself once the engine is gone; a task that broke down has ended, too. The lock is kept until then:
        // whoever takes the run next writes newer summaries.
        let _ = summaries.await;
        journal.close().await;
        Ok(run.borrow().clone())
    }
}

/// Reads the records of an open journal up to one.
pub async fn whole(reader: &dyn Reader, upto: Seq) -> anyhow::Result<Vec<Record>> {
    let mut records: Vec<Record> = Vec::new();
    loop {
        let from = Seq(records.len() as u64).next();
        let some = if from > upto { Vec::new() } else { reader.read(from, limits::RECORDS_PER_UPDATE).await? };
        if some.is_empty() {
            records.retain(|record| record.seq <= upto);
            return Ok(records);
        }
        records.extend(some);
    }
}

/// Reads what the records of an open journal up to one say that went by, page by page.
async fn read(reader: &dyn Reader, id: &RunId, upto: Seq) -> anyhow::Result<Past> {
    let mut reading = Box::new(Reading::new(id));
    loop {
        let mut next = Seq(1);
        while next <= upto {
            let mut page = reader.read(next, limits::RECORDS_PER_UPDATE).await?;
            page.retain(|record| record.seq <= upto);
            let Some(last) = page.last() else { break };
            next = last.seq.next();
            let folded = tokio::task::spawn_blocking(move || {
                reading.take(&page);
                reading
            });
            reading = folded.await?;
        }
        reading = match reading.end() {
            Ok(past) => return Ok(past),
            // It goes back to states that the first reading did not know of.
            Err(again) => again,
        };
    }
}

/// The state that a journal folds to.
pub fn fold(id: &RunId, records: &[Record]) -> anyhow::Result<Run> {
    Run::fold(id, records)
        .with_context(|| format!("run {id} can't be read by this version of tiller; it was not opened"))
}

/// Terms without secrets. A check has to be run as it is, so one that holds a secret is refused.
pub fn clean(redactor: &Redactor, mut terms: Terms) -> anyhow::Result<Terms> {
    for check in &terms.checks {
        let written = serde_json::to_string(check)?;
        anyhow::ensure!(
            redactor.exact(&written) == written,
            "a check holds the value of a secret variable, which would be stored; nothing was started; name the \
             variable instead"
        );
    }
    let goal = redactor.cleaned(terms.goal.as_str()).into_owned();
    terms.goal = Goal::try_from(goal).map_err(anyhow::Error::msg)?;
    terms.instructions = redactor.cleaned(&terms.instructions).into_owned();
    if let Some(guide) = &mut terms.guide {
        guide.text = redactor.cleaned(&guide.text).into_owned();
    }
    Ok(terms)
}

/// What the table that is built in knows of a model.
fn known(name: &str) -> Option<Known> {
    let entry = prices::lookup(name)?;
    Some(Known { price: entry.price, window: entry.window, max_output: entry.max_output })
}

/// A name for a new run.
pub fn new_id() -> anyhow::Result<RunId> {
    let mut bytes = [0; RUN_ID_LENGTH];
    getrandom::fill(&mut bytes).map_err(|error| {
        Obstacle::Stopped(format!("the system gives no random numbers ({error}); nothing was started"))
    })?;
    Ok(RunId::from_entropy(bytes))
}

/// This process, as a run's owner.
pub fn owner(mode: OwnerMode) -> Owner {
    let host = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok()).unwrap_or_default();
    Owner { pid: std::process::id(), host, version: env!("CARGO_PKG_VERSION").to_string(), mode }
}

/// Whether a person sits at a terminal that can show the screen.
pub fn has_screen() -> bool {
    let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal() && !dumb
}

/// The folder of a run, made absolute and without links. It must exist, be a folder, and be writable.
fn workspace_at(path: &Path, places: &Places) -> anyhow::Result<PathBuf> {
    let shown = path.display();
    let folder =
        path.canonicalize().with_context(|| format!("the workspace {shown} can't be used; nothing was started"))?;
    anyhow::ensure!(folder.is_dir(), "the workspace {shown} is not a folder; nothing was started; name a folder");
    nix::unistd::access(&folder, AccessFlags::W_OK | AccessFlags::R_OK | AccessFlags::X_OK).with_context(|| {
        format!("the workspace {shown} can't be written; nothing was started; change its rights or name another")
    })?;
    not_ours(&folder, places, "nothing was started; name another folder")?;
    Ok(folder)
}

/// Refuses a folder that holds what tiller itself keeps.
fn not_ours(folder: &Path, places: &Places, what_to_do: &str) -> anyhow::Result<()> {
    let state = places.state.canonicalize().unwrap_or(places.state.clone());
    let real = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
    anyhow::ensure!(
        !real.starts_with(&state),
        "the workspace {} lies where tiller keeps its own files; {what_to_do}",
        folder.display()
    );
    Ok(())
}

fn as_text(path: &Path) -> anyhow::Result<String> {
    let text = path.to_str().with_context(|| {
        format!("the workspace {} has a name that is not UTF-8; nothing was started; rename it", path.display())
    })?;
    Ok(text.to_string())
}

/// Stands in for a model that can't be asked yet: it is opened anew at every call, and while it can't be, the call
/// says why and costs nothing.
struct Unready {
    spec: ModelSpec,
}

#[async_trait]
impl Model for Unready {
    async fn call(
        &self,
        request: ModelRequest,
        deltas: broadcast::Sender<Delta>,
        cancel: CancellationToken,
    ) -> Result<ModelReply, ModelFailure> {
        let error = match model::open(&self.spec) {
            Ok(model) => return model.call(request, deltas, cancel).await,
            Err(error) => error,
        };
        let class = match error {
            ModelError::NoKey { .. } | ModelError::BadKey { .. } => FailureClass::MissingCredentials,
            ModelError::Script { .. } | ModelError::Address { .. } | ModelError::Tls(_) => FailureClass::ModelConfig,
        };
        Err(ModelFailure { class, message: error.to_string(), retry_after: None, received: Received::default() })
    }
}

/// The longest goal that is read from standard input, in bytes: four a character, and one more to see that it is over.
pub const GOAL_MAX_BYTES: u64 = limits::GOAL_MAX_CHARS as u64 * 4 + 1;
