//! A run removed for good: its last summary is kept in a line of a file, then its directory goes.
//!
//! It must not choose which: who calls says what must be so of the run, and it is asked while the run is held. A run that
//! is damaged goes only by a way of its own.

use std::fs::File;
use std::fs::OpenOptions;
use std::io;
use std::io::ErrorKind;
use std::io::Read;
use std::io::Seek;
use std::io::SeekFrom;
use std::io::Write;
use std::path::Path;

use crate::domain::fold::Broken;
use crate::domain::limits;
use crate::domain::run::Run;
use crate::domain::summary::Summary;
use crate::store::StoreError;
use crate::store::database::Fault;
use crate::store::files;
use crate::store::look;
use crate::store::owner;
use crate::store::trees::Site;
use crate::store::trees::explain;
use crate::store::trees::no_file;

/// The file with a line for each run that was removed, in the state directory.
const LINES: &str = "removed.jsonl";
/// The same, of before the file was full.
const OLD_LINES: &str = "removed.old.jsonl";
/// What the name of a directory ends with that is being removed. It names no run, so nobody lists or opens it.
const GOING: &str = "removed";

/// What became of a run that was to be removed.
#[derive(Clone, Debug, PartialEq)]
pub enum Removal {
    /// It is gone; this was its last summary, if one could be read.
    Done(Option<Box<Summary>>),
    /// It is not what may be removed, so it is there as it was.
    Kept(Box<Run>),
}

/// Removes a run that nobody holds, if it `may` be. The line of its summary is durable before its directory is
/// renamed, and that is durable before anything in it is deleted: whoever dies in between leaves the run whole, or a
/// directory that `sweep` deletes. A run that was whole when its remover died may have its line twice.
///
/// A full disk is what a removal is asked for, so none of this needs room there: the journal is read in a copy that may
/// lie elsewhere, the store is locked and not opened, and a line that does not fit is written when the files are gone.
pub(crate) fn remove(site: &Site, may: impl FnOnce(&Run) -> bool) -> Result<Removal, StoreError> {
    let doing = format!("removing run {}", site.run);
    let failed = |fault: Fault| explain(site, fault, &doing);
    let runs = site.dir.parent().unwrap_or(&site.dir);
    let state = runs.parent().unwrap_or(runs);
    let (_alone, taken) = alone(site).map_err(failed)?;
    if taken.is_none() {
        return Err(failed(no_file(site)));
    }
    let survey = look::survey_alone(site, state).map_err(failed)?;
    if let Some(flaw) = survey.flaws.first() {
        return Err(failed(Fault::Damaged(flaw.phrase())));
    }
    if let Some(found) = survey.newer {
        return Err(failed(Fault::TooNew(found)));
    }
    let unreadable = |broken: Broken| StoreError::Unreadable { run: site.run.clone(), why: broken.to_string() };
    let run = Run::fold(&site.run, &survey.records).map_err(unreadable)?;
    if !may(&run) {
        return Ok(Removal::Kept(Box::new(run)));
    }
    let summary = Box::new(Summary::of(&run));
    go(&site.dir, runs, state, Some(&summary)).map_err(|error| failed(error.into()))?;
    Ok(Removal::Done(Some(summary)))
}

/// Removes a run that nobody holds and that can't be read whole, whether it has ended or not; one that is whole is kept.
/// `listed` is what the list last knew of it, for its line: its records may say less. What a newer version wrote is no
/// damage.
pub(crate) fn remove_damaged(site: &Site, listed: Option<Summary>) -> Result<Removal, StoreError> {
    let doing = format!("removing run {}", site.run);
    let failed = |fault: Fault| explain(site, fault, &doing);
    let runs = site.dir.parent().unwrap_or(&site.dir);
    let state = runs.parent().unwrap_or(runs);
    let _alone = alone(site).map_err(failed)?;
    let survey = look::survey_alone(site, state).map_err(failed)?;
    if let Some(found) = survey.newer.filter(|found| found.is_certain()) {
        return Err(failed(Fault::TooNew(found)));
    }
    let run = match Run::fold(&site.run, &survey.records) {
        Ok(run) if survey.is_whole() => return Ok(Removal::Kept(Box::new(run))),
        folded => folded.ok(),
    };
    let read = run.map(|run| Summary::of(&run));
    let known = read.into_iter().chain(listed).max_by_key(|summary| summary.seq).map(Box::new);
    go(&site.dir, runs, state, known.as_deref()).map_err(|error| failed(error.into()))?;
    Ok(Removal::Done(known))
}

/// The locks of a run that nobody holds, for who removes it, to the end: nobody opens what goes. The second is on its
/// database, if it has one: an owner of an earlier version knows no other.
fn alone(site: &Site) -> Result<(File, Option<File>), Fault> {
    let alone = look::patiently(|| owner::alone(&site.dir))?.ok_or_else(|| no_file(site))?;
    Ok((alone, look::patiently(|| owner::take(&site.store()))?))
}

fn go(dir: &Path, runs: &Path, state: &Path, summary: Option<&Summary>) -> io::Result<()> {
    let gone = dir.with_extension(GOING);
    let noted = summary.map_or(Ok(()), |summary| note(state, summary));
    let is_full = |error: &io::Error| matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
    let is_owed = noted.as_ref().is_err_and(is_full);
    if !is_owed {
        noted?;
    }
    std::fs::rename(dir, &gone)?;
    // From here on the run is gone for everybody; what can't be deleted now is deleted by a later start.
    if let Err(error) = files::sync_dir(runs).and_then(|()| delete(&gone)) {
        tracing::warn!(dir = %gone.display(), %error, "a removed run could not be deleted at once");
    }
    if is_owed
        && let Some(summary) = summary
        && let Err(error) = note(state, summary)
    {
        tracing::warn!(run = %summary.id, %error, "no line about a removed run could be kept");
    }
    Ok(())
}

/// Deletes what removals that were cut off left. Another process may do the same.
pub(crate) fn sweep(runs: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(runs)? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == GOING) {
            delete(&path)?;
        }
    }
    Ok(())
}

fn delete(dir: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(dir) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Writes the line of a run, durably.
fn note(state: &Path, summary: &Summary) -> io::Result<()> {
    let path = state.join(LINES);
    if path.metadata().is_ok_and(|file| file.len() > limits::REMOVED_MAX_BYTES) {
        std::fs::rename(&path, state.join(OLD_LINES))?;
    }
    let mut file = files::open_or_create(&path, OpenOptions::new().read(true).append(true))?;
    let ended = if is_torn(&mut file)? { "\n" } else { "" };
    let line = format!("{ended}{}\n", serde_json::to_string(summary)?);
    file.write_all(line.as_bytes())?;
    file.sync_all()?;
    files::sync_dir(state)
}

/// Whether the last line was cut off, by a kill or a full disk: then the next one must not be glued to it.
fn is_torn(file: &mut File) -> io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(false);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_line_that_was_cut_off_is_noticed() {
        for (text, torn) in [("", false), ("{}\n", false), ("{}\n{\"id\"", true)] {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(text.as_bytes()).unwrap();
            assert_eq!(is_torn(&mut file).unwrap(), torn, "{text:?}");
        }
    }
}
