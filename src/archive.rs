//! Journals as they lie on the disk: exported, audited and mended; `importing` has the way back in. A journal is read in a copy, so nothing of the run changes.
//!
//! It must not drive a run, and must not record anything in a run that is there.

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::Context;

use crate::cli::Form;
use crate::cli::archive::Archive;
use crate::domain::id::RunId;
use crate::domain::run::Run;
use crate::domain::text::counted;
use crate::domain::visible::transcript;
use crate::headless::audit;
use crate::headless::audit::Payloads;
use crate::headless::exit;
use crate::headless::exit::Obstacle;
use crate::headless::output;
use crate::headless::show;
use crate::importing;
use crate::keeping;
use crate::launch::Ground;
use crate::store::look::Survey;
use crate::store::repair::Repair;
use crate::store::transfer;

/// Does it, and gives the exit status.
pub async fn carry_out(ground: &Ground, what: Archive) -> anyhow::Result<u8> {
    match what {
        Archive::Export { run, out } => export(ground, &run, out.as_deref()),
        Archive::Import { file, as_new, with_checks } => importing::import(ground, &file, as_new, with_checks),
        Archive::Audit { run, verify: true, .. } => verify(ground, &run),
        Archive::Audit { run, json, payloads, verify: false } => {
            let id = ground.home.find(&run)?;
            let (survey, holder) = ground.home.survey_now(&id)?;
            let lines = audit::audit(&survey.records, if payloads { Payloads::Shown } else { Payloads::Hashed });
            output::put(&match json {
                true => audit::json(&lines),
                false => audit::text(&lines) + &audit::total(&survey.records),
            });
            Ok(complain_of(&id, &survey, holder.as_deref()))
        }
        Archive::Remove { run, yes, damaged: false } => keeping::remove(ground, &run, yes).await,
        Archive::Remove { run, yes, damaged: true } => keeping::remove_damaged(ground, &run, yes).await,
        Archive::Repair { run } => mend(ground, &run),
    }
}

fn export(ground: &Ground, prefix: &str, out: Option<&Path>) -> anyhow::Result<u8> {
    let id = ground.home.find(prefix)?;
    let (survey, holder) = ground.home.survey_now(&id)?;
    if survey.lines.is_empty() {
        complain_of(&id, &survey, holder.as_deref());
        let why = format!("no record of run {id} can be read; nothing was written{}", hint(&id));
        return Err(Obstacle::Lost(why).into());
    }
    let text = transfer::write(&id, &survey.lines)?;
    match out {
        Some(path) => {
            let failed = || format!("{} can't be written; nothing was exported; name another file", path.display());
            let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
            if opened.as_ref().is_err_and(|error| error.kind() == ErrorKind::AlreadyExists) {
                let there = format!("{} is there already; nothing was exported; name a new file", path.display());
                return Err(Obstacle::Refused(there).into());
            }
            let mut file = opened.with_context(failed)?;
            let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
            if written.is_err() {
                // Half a journal must not be taken for one.
                let _ = std::fs::remove_file(path);
            }
            written.with_context(failed)?;
            output::put(&format!("{} of run {id} in {}\n", counted(survey.lines.len(), "record"), path.display()));
        }
        None => output::put(&text),
    }
    Ok(complain_of(&id, &survey, holder.as_deref()))
}

/// As `complain`, of a run that somebody may hold: what can't be read of that was being written while it was copied, and is
/// no damage. Says of a whole one that it is a copy.
fn complain_of(id: &RunId, survey: &Survey, holder: Option<&str>) -> u8 {
    let Some(holder) = holder else { return complain(id, survey) };
    let (read, short) = (survey.records.len(), id.short());
    let (rest, code) = match survey.is_whole() {
        true => (String::new(), 0),
        false => (", which was written to meanwhile, so its end is missing; try again".to_string(), exit::LOCKED),
    };
    output::put_aside(&format!(
        "tiller: run {short} is held by {holder}; this is a copy of this moment, up to record {read}{rest}\n"
    ));
    code
}

/// Says on standard error what could not be read. Gives the exit status.
fn complain(id: &RunId, survey: &Survey) -> u8 {
    if survey.is_whole() {
        return 0;
    }
    let flaws: String = survey.flaws.iter().map(|flaw| format!("  {}\n", flaw.phrase())).collect();
    let newer = survey.newer.map(|found| format!("  the rest {found}\n"));
    let read = survey.records.len();
    output::put_aside(&format!(
        "tiller: run {id} could be read up to record {read} only\n{flaws}{}",
        newer.unwrap_or_default()
    ));
    exit::FAILED
}

/// Shows what can be read of a run that can't be opened, from a copy, and says why it can't.
pub fn show_rest(ground: &Ground, id: &RunId, form: Form, why: &anyhow::Error) -> anyhow::Result<u8> {
    output::put_aside(&format!("tiller: {}\n", transcript(&format!("{why:#}"))));
    let survey = ground.home.survey(id)?;
    if let Ok(run) = Run::fold(id, &survey.records) {
        let mut further = ways_on(id, &survey);
        if survey.newer.is_none() {
            further.insert(0, format!("tiller repair {}   # tries to mend it", id.short()));
        }
        output::put(&match form {
            Form::Text => {
                let shown = show::rest(&run, &survey.records, &jiff::tz::TimeZone::system());
                format!("as it stood at record {}; only to look at\n{shown}{}", run.seq, typed(&further))
            }
            Form::Json => show::rest_json(&run, &further),
        });
    }
    Ok(exit::FAILED)
}

fn verify(ground: &Ground, prefix: &str) -> anyhow::Result<u8> {
    let id = ground.home.find(prefix)?;
    let (survey, holder) = ground.home.survey_now(&id)?;
    if survey.is_whole() {
        let count = counted(survey.records.len(), "record");
        output::put(&format!("run {id}: {count}, each follows the one before it, none is missing at the end\n"));
    }
    // Whoever holds it may keep a snapshot of what is not in the copy yet.
    let liars = if survey.is_whole() && holder.is_none() { ground.home.liars(&id, &survey) } else { Vec::new() };
    if !liars.is_empty() {
        let places: Vec<String> = liars.iter().map(ToString::to_string).collect();
        output::put_aside(&format!(
            "tiller: what is kept of run {id} at record {} to open it faster says something else than its records; this \
             is a bug of tiller; the records are whole; delete the files `snapshot.*` in {} and the run is opened \
             from its records alone\n",
            places.join(" and "),
            ground.home.run_dir(&id).display(),
        ));
        return Ok(exit::FAILED);
    }
    Ok(complain_of(&id, &survey, holder.as_deref()))
}

fn mend(ground: &Ground, prefix: &str) -> anyhow::Result<u8> {
    let id = ground.home.find(prefix)?;
    // Asked before anything is mended, and only to tell.
    let listed = ground.home.listed_at(&id);
    match ground.home.repair(&id)? {
        Repair::Sound(survey) => {
            let count = counted(survey.records.len(), "record");
            output::put(&format!("run {id} is not damaged: all {count} are there; nothing was changed\n"));
            Ok(0)
        }
        Repair::Mended { survey, kept } => {
            let count = counted(survey.records.len(), "record");
            output::put(&format!(
                "run {id} is mended: all {count} are there; the damaged store is kept in {}\n",
                kept.display()
            ));
            Ok(0)
        }
        Repair::Anchored { survey, kept } => {
            let count = counted(survey.records.len(), "record");
            let last = survey.records.len();
            let known = listed.filter(|seq| survey.records.last().is_some_and(|last| last.seq < *seq));
            let more = match known {
                Some(seq) => format!("there were more: the list knew of record {seq}"),
                None => format!("whether more were written after record {last}, nobody can tell any more"),
            };
            output::put(&format!(
                "run {id} has a new anchor, because the old one was missing or could not be read; {count} are \
                 there, each follows the one before it; {more}; the store as it was is kept in {}\n",
                kept.display()
            ));
            Ok(0)
        }
        Repair::Lost(survey) => {
            let code = complain(&id, &survey);
            let mut further = ways_on(&id, &survey);
            if survey.newer.is_none_or(|found| !found.is_certain()) {
                further.push(format!("tiller remove {} --damaged   # gives it up: it goes for good", id.short()));
            }
            output::put_aside("nothing was changed, and no more can be mended; its files are kept as they are\n");
            output::put_aside(&typed(&further));
            Ok(code)
        }
    }
}

/// Whether there is still time for the operator to do something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// They are asked next.
    InTime,
    /// They have agreed already.
    TooLate,
}

/// Says on standard error what is wrong with a run and what goes with it, before it is removed. `restored` is what a repair
/// would make of it.
pub fn warn(id: &RunId, survey: &Survey, restored: Option<&Survey>, advice: Advice) {
    complain(id, survey);
    if let Some(restored) = restored {
        let count = counted(restored.records.len(), "record");
        output::put_aside(&format!("`tiller repair {}` would mend it, with {count}\n", id.short()));
    }
    let cost = Run::fold(id, &survey.records).map(|run| format!("; it had spent {}", run.pool.spent()));
    let lines = typed(&ways_on(id, survey));
    let can = match advice {
        _ if lines.is_empty() => "nothing of it can be saved\n",
        Advice::InTime => lines.as_str(),
        Advice::TooLate => "",
    };
    let cost = cost.unwrap_or_default();
    output::put_aside(&format!("all of it goes, with what is kept of its damaged store{cost}\n{can}"));
}

/// Lines to type, under their head; nothing where there are none.
fn typed(lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    lines.iter().fold("what helps, to type:\n".to_string(), |text, line| format!("{text}  {line}\n"))
}

/// What can still be done with a run of which records are lost, as lines to type.
fn ways_on(id: &RunId, survey: &Survey) -> Vec<String> {
    let short = id.short();
    let closed = Run::fold(id, &survey.records).ok().and_then(|run| run.history.last().map(|closed| closed.n));
    let fork = closed.map(|n| format!("tiller fork {short} {n}   # goes on from iteration {n} in a new run"));
    let export = (!survey.records.is_empty()).then(|| format!("tiller export {short}   # saves what can be read"));
    fork.into_iter().chain(export).collect()
}

fn hint(id: &RunId) -> String {
    format!("; `tiller repair {}` tries to mend it", id.short())
}
