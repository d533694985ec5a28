//! The roof: the operator's command that is told what happens, for a run that is driven and for one that is removed
//! (docs/ENGINE.md §11.2).
//!
//! What it was told is kept beside the journal; where that can't be read, all is told again: twice is allowed, never not
//! at all.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::domain::id::RunId;
use crate::domain::id::Seq;
use crate::domain::limits;
use crate::domain::run::Run;
use crate::domain::status::Status;
use crate::domain::visible::transcript;
use crate::engine::redaction::Redactor;
use crate::headless::output;
use crate::launch::Ground;
use crate::sinks;
use crate::sinks::Patience;
use crate::sinks::Sink;
use crate::sinks::Telling;
use crate::tools::hook::Hook;

/// The name under which is kept what the operator's command was told.
const NAME: &str = "command";

/// The command for a run that is about to be driven, if there is one; and what the operator should know of it.
pub fn sink(ground: &Ground, run: &Run, redactor: &Arc<Redactor>) -> anyhow::Result<(Option<Sink>, Option<String>)> {
    if ground.settings.notify_command().is_empty() {
        return Ok((None, None));
    }
    let (told, note) = match read(ground, run) {
        Ok(Some(told)) => (told, None),
        Ok(None) if is_untouched(run) => (beginning(run), None),
        // It was driven before the command was named.
        Ok(None) => (run.seq, None),
        Err(why) => {
            let note = format!(
                "what the command of notify.command was told of run {} can't be read ({why}); it is told all of it \
                 again, so some of it twice",
                run.id
            );
            (beginning(run), Some(note))
        }
    };
    keep(ground, &run.id, told);
    let sink = Sink { patience: Patience::default(), ..made(ground, run, told, redactor.clone())? };
    Ok((Some(sink), note))
}

/// Records that a journal from elsewhere is old news here.
pub fn pass_over(ground: &Ground, run: &Run) {
    if !ground.settings.notify_command().is_empty() {
        keep(ground, &run.id, run.seq);
    }
}

/// Tells the command what it was not told yet of a run that nobody holds, because the run goes, which only one that has
/// ended does. Each line is tried once. Errors, in a sentence, when not all could be told.
pub async fn tell_rest(ground: &Ground, id: &RunId) -> Result<(), String> {
    if ground.settings.notify_command().is_empty() || !ground.home.run_dir(id).is_dir() {
        return Ok(());
    }
    let survey = ground.home.survey(id).map_err(|error| error.to_string())?;
    let run = Run::fold(id, &survey.records).map_err(|broken| broken.to_string())?;
    let told = match read(ground, &run) {
        _ if !run.is_ended() => return Ok(()),
        Ok(Some(told)) => told,
        Err(_) => beginning(&run),
        Ok(None) if is_untouched(&run) => beginning(&run),
        // It was driven before the command was named.
        Ok(None) => return Ok(()),
    };
    let redactor = ground.redactor(run.terms.model.key_variable.as_deref()).map_err(|error| format!("{error:#}"))?;
    let sink = made(ground, &run, told, redactor).map_err(|error| format!("{error:#}"))?;
    sinks::tell(&Sink { patience: Patience::ONCE, ..sink }, &survey.records, &run).await
}

/// Waits a moment until all is told that happened. What is not told then is told when the run is opened again.
pub async fn finish(mut telling: Telling) {
    let given_up = match tokio::time::timeout(Duration::from_millis(limits::SINK_PATIENCE.0), &mut telling.task).await {
        Ok(Ok(Ok(()))) => return,
        Ok(Ok(Err(why))) => why,
        Ok(Err(error)) => error.to_string(),
        Err(_) => {
            telling.task.abort();
            telling.failure.borrow().clone().unwrap_or("it takes too long".to_string())
        }
    };
    let given_up = transcript(&given_up);
    output::put_aside(&format!(
        "tiller: the command of notify.command was not told all that happened: {given_up}; the rest is told when the run \
         is opened again\n"
    ));
}

fn made(ground: &Ground, run: &Run, told: Seq, redactor: Arc<Redactor>) -> anyhow::Result<Sink> {
    let words = ground.settings.notify_command().to_vec();
    let scene = ground.scene(Some(&run.id), Path::new(&run.terms.workspace))?;
    let hook = Hook::new(words, scene, limits::SINK_TIMEOUT);
    let (own, id) = (ground.clone(), run.id.clone());
    let keep = move |seq| keep(&own, &id, seq);
    Ok(Sink { hook, patience: Patience::default(), redactor, told, keep: Arc::new(keep) })
}

/// What the command was told of a run; nothing where it never was. Errors, in the end of a sentence, when that can't be
/// read, or can't be so.
fn read(ground: &Ground, run: &Run) -> Result<Option<Seq>, String> {
    match ground.home.read_told(&run.id, NAME)? {
        Some(told) if told > run.seq => Err(format!("it names record {told}, and there are {}", run.seq)),
        told => Ok(told),
    }
}

/// Whether nobody has driven a run yet. Such a run that was never told of is told from its start, whatever was recorded
/// in it: who made it may have been killed before anything was told.
fn is_untouched(run: &Run) -> bool {
    run.status == Status::Queued || run.iteration.n == 0
}

/// The record before the first one that is a run's own.
fn beginning(run: &Run) -> Seq {
    run.lineage.as_ref().map_or(Seq(0), |lineage| lineage.seq)
}

fn keep(ground: &Ground, id: &RunId, told: Seq) {
    if let Err(error) = ground.home.write_told(id, NAME, told) {
        tracing::warn!(%error, "what was told is told again");
    }
}
