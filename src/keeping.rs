//! Runs that have ended, removed after a time or on request (docs/ENGINE.md §10.5).
//!
//! It must not touch a run that is held, nor, unless the operator says so of just this one, a run that has not ended or
//! is damaged.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::Duration;

use crate::archive;
use crate::archive::Advice;
use crate::domain::budget::Axis;
use crate::domain::budget::Limit;
use crate::domain::id::RunId;
use crate::domain::limits;
use crate::domain::run::Run;
use crate::domain::summary::Summary;
use crate::domain::text::counted;
use crate::domain::text::of_kind;
use crate::domain::time::Timestamp;
use crate::domain::visible::transcript;
use crate::headless::exit;
use crate::headless::exit::Obstacle;
use crate::headless::lines::limit_phrase;
use crate::headless::output;
use crate::launch::Ground;
use crate::policy::keeping;
use crate::policy::keeping::Ended;
use crate::policy::keeping::Keep;
use crate::rehearsal;
use crate::store::StoreError;
use crate::store::place::Home;
use crate::store::remove::Removal;
use crate::telling;

/// The removal in the background. Dropping it has it stop after the run that it is at, and waits a moment for that.
#[derive(Debug)]
pub struct Keeping {
    is_over: Arc<AtomicBool>,
    /// Nothing is ever sent: it closes when the thread ends.
    ended: mpsc::Receiver<()>,
}

impl Drop for Keeping {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        let _ = self.ended.recv_timeout(Duration::from_millis(limits::REMOVAL_PATIENCE.0));
    }
}

/// Removes what is not kept any more, on a thread of its own. Whenever the process ends, each run is whole or on its
/// way out.
pub fn begin(ground: &Ground) -> Keeping {
    let (own, now) = (ground.clone(), ground.clock.now());
    let runtime = tokio::runtime::Handle::current();
    let is_over = Arc::new(AtomicBool::new(false));
    let (alive, ended) = mpsc::channel();
    let told = is_over.clone();
    let work = move || {
        let tell = |id: &RunId| runtime.block_on(telling::tell_rest(&own, id));
        tidy(&own.home, own.settings.keep(), now, &told, tell);
        drop(alive);
    };
    if let Err(error) = std::thread::Builder::new().name("keeping".to_string()).spawn(work) {
        tracing::warn!(%error, "old runs are not removed this time");
    }
    Keeping { is_over, ended }
}

/// Removes what is not kept any more, until it `is_over`. What can't be removed is logged and stays, and so does a run
/// of which not all could be told that is due to be. Blocks.
pub fn tidy(
    home: &Home,
    keep: Keep,
    now: Timestamp,
    is_over: &AtomicBool,
    tell: impl Fn(&RunId) -> Result<(), String>,
) {
    if let Err(error) = home.sweep() {
        tracing::warn!(%error, "what is left of removed runs stays for now");
    }
    let due = match due(home, keep, now) {
        Ok(due) => due,
        Err(error) => return tracing::warn!(%error, "old runs are not removed this time"),
    };
    for id in due {
        if let Err(why) = tell(&id) {
            tracing::warn!(run = %id, why, "a run that had ended was not removed: not all of it is told yet");
            if is_over.load(Ordering::SeqCst) {
                return;
            }
            continue;
        }
        match home.remove(&id, Run::is_ended) {
            Ok(Removal::Done(_)) => {
                tracing::info!(run = %id, "a run that had ended was removed; it is not kept any more");
                // Not before, so that each start gets on by one run at least.
                if is_over.load(Ordering::SeqCst) {
                    return;
                }
            }
            Ok(Removal::Kept(_)) => tracing::info!(run = %id, "a run was not removed: it goes on"),
            Err(error) => tracing::warn!(run = %id, %error, "a run that had ended was not removed"),
        }
    }
}

/// The runs that the next start removes, oldest first.
fn due(home: &Home, keep: Keep, now: Timestamp) -> Result<Vec<RunId>, StoreError> {
    let ended = home.ended()?.into_iter().map(|(id, touched)| Ended { id, touched }).collect();
    Ok(keeping::due(ended, keep, now))
}

/// What is kept, and what would be removed next, in a sentence.
pub fn outlook(home: &Home, keep: Keep, now: Timestamp) -> Result<String, StoreError> {
    let rule = format!(
        "runs that have ended are kept for {} {} untouched, at most {} of them",
        limit_phrase(Axis::Loops, keep.days),
        of_kind(keep.days == Limit::At(1), "day"),
        limit_phrase(Axis::Loops, keep.runs)
    );
    let due = due(home, keep, now)?;
    let Some(first) = due.first() else { return Ok(format!("{rule}; none is due")) };
    let next = format!("the next start removes {} of them, {first} first", due.len());
    Ok(format!("{rule}; {next}; `tiller export` saves one, [keep] in tiller.toml keeps more"))
}

/// Removes one run on request, after the operator said yes. Gives the exit status.
pub async fn remove(ground: &Ground, prefix: &str, is_agreed: bool) -> anyhow::Result<u8> {
    let id = ground.home.find(prefix)?;
    let scratch = scratch(ground, &id);
    if !is_agreed && !agrees(&id, &scratch)? {
        output::put_aside("nothing was removed\n");
        return Ok(exit::REFUSED);
    }
    let told = telling::tell_rest(ground, &id).await;
    let removed = ground.home.remove(&id, Run::is_ended).map_err(|error| match error {
        StoreError::Damaged { why, .. } => anyhow::Error::from(Obstacle::Lost(format!(
            "run {id} is damaged: {why}; it was not removed; `tiller repair {short}` tries to mend it, `tiller remove \
             {short} --damaged` removes it as it is",
            short = id.short()
        ))),
        error => error.into(),
    })?;
    match removed {
        Removal::Done(summary) => {
            gone(&id, summary.as_deref(), &scratch, told);
            Ok(0)
        }
        Removal::Kept(run) => Err(Obstacle::Refused(format!(
            "run {id} is {}; nothing was removed; end it first: tiller cancel {}",
            run.status.as_held(false).phrase(),
            id.short()
        ))
        .into()),
    }
}

/// Removes one damaged run on request, after the operator was told what is lost and said yes. Gives the exit status.
pub async fn remove_damaged(ground: &Ground, prefix: &str, is_agreed: bool) -> anyhow::Result<u8> {
    let id = ground.home.find(prefix)?;
    let survey = ground.home.survey(&id)?;
    let whole = || Obstacle::Refused(format!("run {id} is not damaged; nothing was removed; leave out --damaged"));
    if survey.is_whole() && Run::fold(&id, &survey.records).is_ok() {
        return Err(whole().into());
    }
    let restored = if survey.is_whole() { None } else { ground.home.outlook(&id, &survey)? };
    if let Some(restored) = restored.as_ref().filter(|_| survey.is_elsewhere) {
        return Err(Obstacle::Refused(format!(
            "run {id} can be mended: a repair of it was broken off, or its store got worse since, and {} are in what is \
             kept beside it; nothing was removed; type `tiller repair {short}` first, and then, if it is to go, `tiller \
             remove {short}`",
            counted(restored.records.len(), "record"),
            short = id.short()
        ))
        .into());
    }
    archive::warn(&id, &survey, restored.as_ref(), if is_agreed { Advice::TooLate } else { Advice::InTime });
    let scratch = scratch(ground, &id);
    if !is_agreed && !agrees(&id, &scratch)? {
        output::put_aside("nothing was removed\n");
        return Ok(exit::REFUSED);
    }
    let told = telling::tell_rest(ground, &id).await;
    match ground.home.remove_damaged(&id)? {
        Removal::Done(summary) => {
            gone(&id, summary.as_deref(), &scratch, told);
            Ok(0)
        }
        Removal::Kept(_) => Err(whole().into()),
    }
}

/// What else goes with a run: the scratch folder of a rehearsal, which lies in the run's directory; the end of a phrase.
/// Nothing for a run that worked elsewhere, where its files stay.
fn scratch(ground: &Ground, id: &RunId) -> String {
    let folder = rehearsal::workspace(&ground.home.run_dir(id));
    if !folder.is_dir() {
        return String::new();
    }
    format!(", and with its scratch folder {} and all the work in it", transcript(&folder.display().to_string()))
}

/// Says that a run is gone.
fn gone(id: &RunId, summary: Option<&Summary>, scratch: &str, told: Result<(), String>) {
    tracing::info!(run = %id, "a run was removed on request");
    if let Err(why) = told {
        let why = transcript(&why);
        output::put_aside(&format!(
            "tiller: the command of notify.command was not told all that happened in it: {why}\n"
        ));
    }
    let goal = summary.map(|summary| format!(": {}", transcript(&summary.goal))).unwrap_or_default();
    output::put(&format!("run {id} is removed{scratch}{goal}\n"));
}

/// Asks the person at the terminal. Errors where there is none.
fn agrees(id: &RunId, scratch: &str) -> anyhow::Result<bool> {
    anyhow::ensure!(
        std::io::stdin().is_terminal(),
        "nobody is here to be asked; run {id} was not removed; say --yes if it is to go for good{scratch}"
    );
    let question =
        format!("remove run {id} for good, with its journal and what is kept of files{scratch}? yes or no: ");
    Ok(output::is_agreed(&question)?)
}
