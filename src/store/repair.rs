//! Mending the store of a run that does not open: a copy without sled's own snapshots is read from its first byte.
//!
//! What was found is kept, always. The copy takes the store's place only when every record that was acknowledged is in
//! it; otherwise nothing changes, and what is lost is named record by record. It must not invent or drop a record. Where
//! the anchor is gone nobody can tell which records were acknowledged; then those that follow each other count.

use std::fs::File;
use std::fs::TryLockError;
use std::io;
use std::path::Path;
use std::path::PathBuf;

use crate::domain::id::Seq;
use crate::domain::limits;
use crate::store::anchor;
use crate::store::anchor::Anchor;
use crate::store::before;
use crate::store::codec;
use crate::store::codec::Mark;
use crate::store::database::Fault;
use crate::store::files;
use crate::store::look;
use crate::store::look::Survey;
use crate::store::owner;
use crate::store::trees::Site;

/// Where the mended copy is made, in the run's directory.
const MENDED: &str = "store.mended";
/// How the names of anchors begin that can't be read and are kept.
const KEPT_ANCHOR: &str = "anchor.damaged";

/// What came of an attempt to mend a store.
#[derive(Clone, Debug, PartialEq)]
pub enum Repair {
    /// Nothing is wrong with it; nothing was changed.
    Sound(Survey),
    /// All of it is there again. What was found before is kept.
    Mended {
        /// What is there now.
        survey: Survey,
        /// Where the damaged store is kept.
        kept: PathBuf,
    },
    /// The anchor was gone, so nobody can tell whether there were more records than these, which follow each other; a
    /// new anchor names the last of them. What was found before is kept.
    Anchored {
        /// What is there now.
        survey: Survey,
        /// Where the store is kept as it was.
        kept: PathBuf,
    },
    /// Not all could be found; nothing was changed.
    Lost(Survey),
}

/// Mends the store of a run that nobody holds.
pub(crate) fn repair(site: &Site) -> Result<Repair, Fault> {
    // Held to the end: a second repair must see what this one leaves. The lock on the store below is not enough, since
    // it is on a file that a repair replaces.
    let _alone = alone(site)?;
    let store = site.store();
    // Held to the end: nobody opens what is being put in place.
    let _held = match owner::look(&store) {
        Ok(Some(looking)) => Some(looking),
        Ok(None) => return Err(Fault::Busy),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error.into()),
    };
    let marks = look::marks(site)?;
    let found = look::survey(site, &site.dir)?;
    if found.is_whole() {
        return Ok(Repair::Sound(found));
    }
    if marks.is_empty() {
        return anchor_anew(site, found);
    }
    let mut best = found;
    for source in sources(site)? {
        let (copy, survey) = read_anew(site, &source, &marks)?;
        if survey.is_whole() {
            let kept = put(site, copy)?;
            return Ok(Repair::Mended { survey, kept });
        }
        if survey.records.len() > best.records.len() {
            best = survey;
        }
    }
    Ok(Repair::Lost(best))
}

/// The lock of a repair: on the run's directory, which stays. Errors with `Busy` while another repair has it.
fn alone(site: &Site) -> Result<File, Fault> {
    let dir = File::open(&site.dir)?;
    match dir.try_lock() {
        Ok(()) => Ok(dir),
        Err(TryLockError::WouldBlock) => Err(Fault::Busy),
        Err(TryLockError::Error(error)) => Err(error.into()),
    }
}

/// Takes the longest of the stores in which each record follows the one before it, and anchors its last one. A batch
/// that was cut short is taken back, as after any crash. A store that ends where another one is known to go on is not
/// taken: there the records in between are lost, and not only the anchor.
fn anchor_anew(site: &Site, found: Survey) -> Result<Repair, Fault> {
    let mut reach = Seq(0);
    let mut best: Option<(tempfile::TempDir, Survey)> = None;
    for source in sources(site)? {
        let (copy, survey) = read_anew(site, &source, &[Mark::START])?;
        reach = reach.max(survey.reach());
        let is_longer = best.as_ref().is_none_or(|(_, other)| survey.records.len() > other.records.len());
        if survey.is_whole() && is_longer {
            best = Some((copy, survey));
        }
    }
    let Some((copy, survey)) = best.filter(|(_, survey)| survey.reach() >= reach) else {
        return Ok(Repair::Lost(found));
    };
    let Some((line, last)) = survey.lines.last().zip(survey.records.last()) else {
        return Ok(Repair::Lost(found));
    };
    let mark = codec::mark(line.as_bytes(), last.seq);
    let kept = put(site, copy)?;
    let path = site.dir.join(anchor::FILE);
    if path.symlink_metadata().is_ok() {
        std::fs::rename(&path, free(&site.dir, KEPT_ANCHOR)?)?;
    }
    Anchor::remake(&path, mark)?;
    files::sync_dir(&site.dir)?;
    Ok(Repair::Anchored { survey, kept })
}

/// The stores of the run that may hold its records: as it was before damage was found, and as it is.
fn sources(site: &Site) -> io::Result<Vec<PathBuf>> {
    let names = before::names(&site.dir)?;
    let mut sources: Vec<PathBuf> = names
        .iter()
        .filter(|name| name.as_str() == "store" || name.starts_with(before::KEPT) || *name == MENDED)
        .map(|name| site.dir.join(name))
        .filter(|path| path.join("db").is_file())
        .collect();
    sources.sort();
    Ok(sources)
}

/// Copies a store without what sled can do without, its snapshots and its settings, and reads the copy.
fn read_anew(site: &Site, source: &Path, marks: &[Mark]) -> Result<(tempfile::TempDir, Survey), Fault> {
    files::check_space(&site.dir, before::size(source)?.saturating_add(limits::FREE_SPACE_MIN_BYTES))?;
    let copy = before::copy(&site.dir, source)?;
    before::sweep_dispensable(copy.path())?;
    let survey = look::survey_at(copy.path(), &site.run, marks)?;
    Ok((copy, survey))
}

/// Puts a mended copy in the store's place. Killed in between, the run has no store but both copies, and the next
/// repair finds them.
fn put(site: &Site, copy: tempfile::TempDir) -> io::Result<PathBuf> {
    let (store, mended) = (site.store(), site.dir.join(MENDED));
    for name in before::names(copy.path())? {
        let path = copy.path().join(name);
        if path.is_file() {
            File::open(path)?.sync_all()?;
        }
    }
    files::sync_dir(copy.path())?;
    if mended.exists() {
        std::fs::remove_dir_all(&mended)?;
    }
    std::fs::rename(copy.keep(), &mended)?;
    let kept = free(&site.dir, before::KEPT)?;
    if store.exists() {
        std::fs::rename(&store, &kept)?;
    }
    std::fs::rename(&mended, &store)?;
    // Damage that is found from now on is another one: the name for a store as it was found is free again.
    let earlier = site.dir.join(before::KEPT);
    if earlier.exists() {
        std::fs::rename(&earlier, free(&site.dir, before::KEPT)?)?;
    }
    files::sync_dir(&site.dir)?;
    Ok(kept)
}

/// A name for a store, or an anchor, that is kept.
fn free(dir: &Path, name: &str) -> io::Result<PathBuf> {
    let mut names = (1..=limits::KEPT_STORES).map(|number| dir.join(format!("{name}.{number}")));
    names.find(|path| !path.exists()).ok_or_else(|| io::Error::other("too many damaged stores are kept already"))
}
