//! The roof: walks between the screens of this process, the list of runs and one run at a time. A run goes on behind
//! the list; it is left when another is opened, because one process drives one run.

use crate::branch;
use crate::cli::Options;
use crate::config::Resume;
use crate::domain::command::Command;
use crate::domain::id::ClientId;
use crate::domain::id::RunId;
use crate::domain::run::Run;
use crate::domain::status::ParkReason;
use crate::domain::status::Status;
use crate::domain::terms::Goal;
use crate::domain::terms::Terms;
use crate::headless::exit::Obstacle;
use crate::headless::exit::exit_code;
use crate::headless::output;
use crate::headless::show;
use crate::launch;
use crate::launch::Ground;
use crate::launch::Priceless;
use crate::launch::Seat;
use crate::store::sled::SledJournal;
use crate::tui;
use crate::tui::Exit;
use crate::tui::action::Action;
use crate::tui::app;
use crate::tui::app::Focus;
use crate::tui::keymap;
use crate::tui::lineage::Doubt;
use crate::tui::lineage::Step;
use crate::tui::lineage::StepKind;
use crate::tui::list;
use crate::tui::list::Choice;
use crate::tui::list::ListOptions;
use crate::tui::theme::Palette;

/// Opens the list of runs, and whatever is chosen there. Gives the exit status.
pub async fn browse(ground: &Ground, options: &Options) -> anyhow::Result<u8> {
    Rooms::new(ground, options.clone()).walk(None).await
}

/// Shows one run on the screen, and whatever is chosen after it. `first` is asked of the run at once.
pub async fn watch(ground: &Ground, seat: Seat, first: Option<Command>) -> anyhow::Result<u8> {
    if let Some(command) = first {
        // A refusal is no error here: the screen shows what the run waits for.
        let _ = seat.client().submit(command).await;
    }
    Rooms::new(ground, Options::default()).walk(Some(seat)).await
}

struct Rooms<'a> {
    ground: &'a Ground,
    options: Options,
    /// A goal that could not be started, or was half written when the list was left, so that it is not lost.
    draft: String,
    /// Whether it goes on being written when the list comes.
    writes: bool,
    /// Why something did not work, for the list.
    notice: Option<String>,
    /// The run that it did not work with, so that the next key in the list is about no other.
    meant: Option<RunId>,
    /// A step that waits for the operator's word in the next room.
    doubt: Option<Doubt>,
    /// A step that could not be looked into.
    again: Option<Step>,
    /// What is said first in the next room.
    said: Option<String>,
    /// Where the keys were when the room of the run was left, for when it is entered again.
    focus: Focus,
}

/// Where to go from the list.
enum Next {
    Same,
    /// A run that was taken from the store.
    Open(Box<(Run, SledJournal)>),
    /// A new one: its goal as it was typed, and its terms.
    Start(String, Box<Terms>),
    Leave,
}

impl<'a> Rooms<'a> {
    fn new(ground: &'a Ground, options: Options) -> Rooms<'a> {
        Rooms {
            ground,
            options,
            draft: String::new(),
            writes: false,
            notice: None,
            meant: None,
            doubt: None,
            again: None,
            said: None,
            focus: Focus::default(),
        }
    }

    async fn walk(mut self, mut seat: Option<Seat>) -> anyhow::Result<u8> {
        loop {
            if let Some(shown) = &mut seat {
                match self.show(shown).await {
                    Ok(Exit::Runs) => {}
                    Ok(Exit::Look(step)) => {
                        self.look(shown, step).await;
                        continue;
                    }
                    Ok(Exit::Do(step)) => {
                        self.focus = Focus::default();
                        let id = shown.id.clone();
                        leave(seat.take()).await;
                        let opened = self.take(&id, step).await;
                        seat = self.told(opened);
                        self.meant = seat.is_none().then_some(id);
                        if seat.is_some() {
                            continue;
                        }
                    }
                    Ok(Exit::Left(_) | Exit::Ended(_)) => return part(seat).await,
                    Err(error) => return fail(seat, error).await,
                }
            }
            match self.choose(seat.as_ref().map(|seat| &seat.id)).await {
                Err(error) => return fail(seat, error).await,
                Ok(Next::Same) => {}
                Ok(Next::Leave) => return part(seat).await,
                Ok(Next::Open(taken)) => {
                    self.focus = Focus::default();
                    leave(seat.take()).await;
                    let (run, journal) = *taken;
                    let id = run.id.clone();
                    let opened = self.ground.drive(run, journal);
                    seat = self.told(opened);
                    self.meant = seat.is_none().then_some(id);
                    self.go_on_by_itself(seat.as_ref()).await?;
                }
                Ok(Next::Start(text, terms)) => {
                    self.focus = Focus::default();
                    leave(seat.take()).await;
                    let started = self.start(*terms).await;
                    self.writes = started.is_err();
                    self.draft = if self.writes { text } else { String::new() };
                    seat = self.told(started);
                }
            }
        }
    }

    /// Finds out what a step would not undo, for the room to ask about it.
    async fn look(&mut self, seat: &Seat, step: Step) {
        let does = match step.kind {
            StepKind::Back => "What came after it is hidden, not removed. Money and counts stay.".to_string(),
            StepKind::Fork => format!("A new run, which works at once. {}", branch::FORK_DOES),
        };
        match seat.behind(step.iteration).await {
            Ok(behind) => {
                let told = branch::after_it(&behind).lines().map(String::from).chain([does]).collect();
                self.doubt = Some(Doubt { step, told });
            }
            Err(error) => {
                self.said = Some(format!("{error:#}"));
                self.again = Some(step);
            }
        }
    }

    /// Goes back in a run that nobody holds, or branches off from it, and opens what that leads to.
    async fn take(&mut self, id: &RunId, step: Step) -> anyhow::Result<Seat> {
        let by = ClientId("operator".to_string());
        let (id, told) = match step.kind {
            StepKind::Back => {
                let (standing, told) = branch::rewind(self.ground, id.as_str(), step.iteration, &by).await?;
                standing.held.let_go().await;
                (id.clone(), told)
            }
            StepKind::Fork => {
                let (run, told) = branch::fork(self.ground, id.as_str(), Some(step.iteration), None, &by)?;
                (run.id, told)
            }
        };
        let resume = format!("in a pane (Tab) {} resumes", keymap::key_of(Action::Resume));
        let way_on = (step.kind == StepKind::Back).then_some(resume);
        self.said =
            told.lines().next().map(|said| [said.to_string()].into_iter().chain(way_on).collect::<Vec<_>>().join("; "));
        self.ground.open(&id).await
    }

    /// A run that was cut off goes on at once, where the configuration says so.
    async fn go_on_by_itself(&self, seat: Option<&Seat>) -> anyhow::Result<()> {
        let Some(seat) = seat.filter(|_| self.ground.settings.resume() == Resume::Auto) else { return Ok(()) };
        let (run, client) = seat.look();
        // Its journal says "running" until the engine has found that the process before this one died.
        if matches!(run.status, Status::Running | Status::Parked(ParkReason::Interrupted)) {
            // A refusal is no error here: the screen shows what the run waits for.
            let _ = client.submit(Command::Resume).await;
        }
        Ok(())
    }

    fn told(&mut self, result: anyhow::Result<Seat>) -> Option<Seat> {
        self.notice = result.as_ref().err().map(|error| format!("{error:#}"));
        result.ok()
    }

    async fn show(&mut self, seat: &mut Seat) -> anyhow::Result<Exit> {
        let (run, client) = seat.look();
        let past = seat.past(run.seq);
        let home = self.ground.home.clone();
        let id = seat.id.clone();
        let options = app::Options {
            palette: palette(),
            draft: home.read_draft(&id),
            alerts: self.ground.settings.alerts(),
            level: seat.level,
            doubt: self.doubt.take(),
            again: self.again.take(),
            focus: self.focus,
            said: self.said.take().or_else(|| told_once(&mut seat.notes)),
        };
        let keep = move |draft: &str| {
            if let Err(error) = home.write_draft(&id, draft) {
                tracing::warn!(%error, "the draft could not be kept");
            }
        };
        let (exit, focus) = tui::run(client, run, options, past, keep).await.map_err(lost)?;
        self.focus = focus;
        Ok(exit)
    }

    /// Shows the list until something is chosen that can be done: whatever stands against it must not cost the run that
    /// goes on behind the list.
    async fn choose(&mut self, current: Option<&RunId>) -> anyhow::Result<Next> {
        loop {
            let home = self.ground.home.clone();
            let options = ListOptions {
                palette: palette(),
                draft: std::mem::take(&mut self.draft),
                writes: std::mem::take(&mut self.writes),
                greeting: self.greeting(),
                notice: self.notice.take(),
                process: std::process::id(),
                behind: current.cloned(),
                selected: self.meant.take(),
            };
            let list = move || home.list().map_err(|error| error.to_string());
            let (choice, draft) = list::runs(list, options).await.map_err(lost)?;
            self.draft = draft;
            let refused = match choice {
                Choice::Open(id) if current == Some(&id) => return Ok(Next::Same),
                Choice::Open(id) => match self.ground.take(&id).await {
                    Ok(taken) => return Ok(Next::Open(Box::new(taken))),
                    Err(error) => {
                        self.meant = Some(id);
                        error
                    }
                },
                Choice::NewGoal(text) => match self.terms(&text).await {
                    Ok(terms) => return Ok(Next::Start(text, Box::new(terms))),
                    Err(error) => {
                        self.writes = true;
                        error
                    }
                },
                Choice::Leave => return Ok(Next::Leave),
            };
            self.notice = Some(format!("{refused:#}"));
        }
    }

    /// What a new run would work with, or what is missing for one.
    fn greeting(&self) -> String {
        match self.ground.spec(Priceless::Asked) {
            Ok(spec) if spec.price.is_none() => {
                format!("a new run works with {}, and asks you first what that costs", spec.name)
            }
            Ok(spec) => format!("a new run works with {}", spec.name),
            Err(_) if self.ground.settings.model().is_none() => {
                "no model is chosen yet; a new run needs one, `tiller rehearse` does not".to_string()
            }
            Err(error) => format!("no new run can start: {error:#}; `tiller rehearse` needs no model"),
        }
    }

    async fn terms(&self, text: &str) -> anyhow::Result<Terms> {
        let goal = Goal::try_from(text.to_string()).map_err(anyhow::Error::msg)?;
        self.ground.terms(goal, self.options.workspace.as_deref(), Priceless::Asked).await
    }

    async fn start(&self, terms: Terms) -> anyhow::Result<Seat> {
        self.ground.start(launch::new_id()?, terms).await
    }
}

/// What is told of a run when its room opens first, and not again whenever the operator comes back to it.
fn told_once(notes: &mut Vec<String>) -> Option<String> {
    let notes = std::mem::take(notes);
    (!notes.is_empty()).then(|| notes.join("; "))
}

fn lost(error: std::io::Error) -> anyhow::Error {
    Obstacle::Stopped(format!("the screen is lost ({error}); what was recorded is kept; try again, or say --plain"))
        .into()
}

fn palette() -> Palette {
    Palette::of(std::env::var_os("NO_COLOR").as_deref(), std::env::var_os("TERM").as_deref())
}

async fn leave(seat: Option<Seat>) {
    if let Some(seat) = seat
        && let Err(error) = seat.leave().await
    {
        tracing::warn!(%error, "how the run was left can't be read");
    }
}

/// Lets go of the run after a screen broke down, so that it is parked and nothing of it goes on.
async fn fail(seat: Option<Seat>, error: anyhow::Error) -> anyhow::Result<u8> {
    leave(seat).await;
    Err(error)
}

/// Lets go of the run, if there is one, and says how it stands.
async fn part(seat: Option<Seat>) -> anyhow::Result<u8> {
    let Some(seat) = seat else { return Ok(0) };
    let run = seat.leave().await?;
    output::put(&show::parting(&run));
    Ok(exit_code(&run.status))
}
