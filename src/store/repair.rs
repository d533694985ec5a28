//! Mending the store of a run that does not open: a copy without sled's own snapshots is read from its first byte.
//!
//! What was found is kept, always. The copy takes the store's place only when every record that was acknowledged is in
//! it; otherwise nothing changes, and what is lost is named record by record. It must not invent or drop a record. Where
//! the anchor is gone nobody can tell which records were acknowledged; then those that follow each other count.

use std::fs::File;
use std::io;
use std::path::Path;
use std::path::PathBuf;

use tempfile::TempDir;

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
use crate::store::trees::no_file;

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

/// What a search for the records of a damaged run found.
enum Found {
    /// A copy with all that was acknowledged.
    Whole(TempDir, Survey),
    /// There is no anchor; a copy that can take a new one.
    Anchorless(TempDir, Survey),
    /// Not all, and the most there is.
    Part(Survey),
}

/// Mends the store of a run that nobody holds.
pub(crate) fn repair(site: &Site) -> Result<Repair, Fault> {
    // Held to the end: a second repair must see what this one leaves, and nobody opens what is being put in place. The
    // lock on the store below is not enough, since it is on a file that a repair replaces.
    let _alone = look::patiently(|| owner::alone(&site.dir))?.ok_or_else(|| no_file(site))?;
    let store = site.store();
    let _held = match owner::look(&store) {
        Ok(Some(looking)) => Some(looking),
        Ok(None) => return Err(Fault::Busy),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error.into()),
    };
    let marks = look::marks(site)?;
    let found = look::survey_store(site, &marks, &site.dir)?;
    if found.is_whole() {
        return Ok(Repair::Sound(found));
    }
    let copied = |source: &Path| {
        files::check_space(&site.dir, before::size(source)?.saturating_add(limits::FREE_SPACE_MIN_BYTES))?;
        Ok(Some(before::copy(&site.dir, source)?))
    };
    match search(site, &marks, found, copied)? {
        Found::Whole(copy, survey) => Ok(Repair::Mended { survey, kept: put(site, copy)? }),
        Found::Anchorless(copy, survey) => anchor_anew(site, copy, survey),
        Found::Part(survey) => Ok(Repair::Lost(survey)),
    }
}

/// What a repair would put in the place of a store that nobody holds; nothing when it would not. `found` is what can be
/// read of the store itself.
pub(crate) fn outlook(site: &Site, scratch: &Path, found: Survey) -> Result<Option<Survey>, Fault> {
    let marks = look::marks(site)?;
    match search(site, &marks, found, |source| look::copied_free(site, source, scratch))? {
        Found::Whole(_, survey) | Found::Anchorless(_, survey) => Ok(Some(survey)),
        Found::Part(_) => Ok(None),
    }
}

fn search(
    site: &Site,
    marks: &[Mark],
    found: Survey,
    copied: impl Fn(&Path) -> Result<Option<TempDir>, Fault>,
) -> Result<Found, Fault> {
    let own = Some(site.store()).filter(|store| before::has_database(store));
    let sources: Vec<PathBuf> = own.into_iter().chain(before::others(&site.dir)?).collect();
    if marks.is_empty() {
        return search_anchorless(site, found, &sources, copied);
    }
    let mut best = found;
    for source in sources {
        let Some(copy) = copied(&source)? else { continue };
        let survey = read_anew(site, &copy, marks)?;
        if survey.is_whole() {
            return Ok(Found::Whole(copy, survey));
        }
        if survey.records.len() > best.records.len() {
            best = survey;
        }
    }
    Ok(Found::Part(best))
}

/// Looks for the longest of the stores in which each record follows the one before it. A batch that was cut short is
/// taken back, as after any crash. A store that ends where another one is known to go on is not taken: there the records
/// in between are lost, and not only the anchor.
fn search_anchorless(
    site: &Site,
    found: Survey,
    sources: &[PathBuf],
    copied: impl Fn(&Path) -> Result<Option<TempDir>, Fault>,
) -> Result<Found, Fault> {
    let mut reach = Seq(0);
    let mut best: Option<(TempDir, Survey)> = None;
    for source in sources {
        let Some(copy) = copied(source)? else { continue };
        let survey = read_anew(site, &copy, &[Mark::START])?;
        reach = reach.max(survey.reach());
        let is_longer = best.as_ref().is_none_or(|(_, other)| survey.records.len() > other.records.len());
        if survey.is_whole() && is_longer {
            best = Some((copy, survey));
        }
    }
    let fits = |(_, survey): &(TempDir, Survey)| survey.reach() >= reach && !survey.records.is_empty();
    Ok(best.filter(fits).map_or(Found::Part(found), |(copy, survey)| Found::Anchorless(copy, survey)))
}

/// Puts a copy in the store's place, and anchors its last record.
fn anchor_anew(site: &Site, copy: TempDir, survey: Survey) -> Result<Repair, Fault> {
    let last = survey.lines.last().zip(survey.records.last());
    let Some(mark) = last.map(|(line, last)| codec::mark(line.as_bytes(), last.seq)) else {
        return Ok(Repair::Lost(survey));
    };
    let kept = put(site, copy)?;
    let path = site.dir.join(anchor::FILE);
    if files::is_there(&path) {
        std::fs::rename(&path, free(&site.dir, KEPT_ANCHOR)?)?;
    }
    Anchor::remake(&path, mark)?;
    files::sync_dir(&site.dir)?;
    Ok(Repair::Anchored { survey, kept })
}

/// Reads a copy of a store without what sled can do without, its snapshots and its settings.
fn read_anew(site: &Site, copy: &TempDir, marks: &[Mark]) -> Result<Survey, Fault> {
    before::sweep_dispensable(copy.path())?;
    look::survey_at(copy.path(), &site.run, marks)
}

/// Puts a mended copy in the store's place. Killed in between, the run has no store but both copies, and the next
/// repair finds them.
fn put(site: &Site, copy: TempDir) -> io::Result<PathBuf> {
    let (store, mended) = (site.store(), site.dir.join(before::MENDED));
    for name in before::names(copy.path())? {
        let path = copy.path().join(name);
        if path.is_file() {
            File::open(path)?.sync_all()?;
        }
    }
    files::sync_dir(copy.path())?;
    // Not removed before the new one is in place: it may be the last that is good.
    let former = files::is_there(&mended).then(|| free(&site.dir, before::KEPT)).transpose()?;
    if let Some(former) = &former {
        std::fs::rename(&mended, former)?;
    }
    std::fs::rename(copy.keep(), &mended)?;
    let kept = free(&site.dir, before::KEPT)?;
    if files::is_there(&store) {
        std::fs::rename(&store, &kept)?;
    }
    std::fs::rename(&mended, &store)?;
    // Damage that is found from now on is another one: the name for a store as it was found is free again.
    let earlier = site.dir.join(before::KEPT);
    if files::is_there(&earlier) {
        std::fs::rename(&earlier, free(&site.dir, before::KEPT)?)?;
    }
    files::sync_dir(&site.dir)?;
    // What a repair that was killed left is a copy of what is still there. Anything else is kept.
    if let Some(former) = former.filter(|former| before::has_database(former)) {
        std::fs::remove_dir_all(former)?;
    }
    Ok(kept)
}

/// A name for a store, or an anchor, that is kept.
fn free(dir: &Path, name: &str) -> io::Result<PathBuf> {
    let mut names = (1..=limits::KEPT_STORES).map(|number| dir.join(format!("{name}.{number}")));
    names.find(|path| !files::is_there(path)).ok_or_else(|| {
        let why = format!("too many damaged stores are kept already; move some `{name}.N` out of {}", dir.display());
        io::Error::other(why)
    })
}
