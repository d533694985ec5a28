//! A journal looked at in a copy: what can be read of it, and what is wrong. The store itself is not opened, so nothing
//! of it changes, whatever its state.
//!
//! It must not mend anything: that is for `repair.rs`.

use std::fs::File;
use std::fs::Permissions;
use std::io;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;
use std::time::Instant;

use tempfile::TempDir;

use crate::domain::event::Record;
use crate::domain::id::RunId;
use crate::domain::id::Seq;
use crate::domain::limits;
use crate::store::Newer;
use crate::store::anchor;
use crate::store::anchor::Anchor;
use crate::store::before;
use crate::store::codec;
use crate::store::codec::Mark;
use crate::store::database::Database;
use crate::store::database::Fault;
use crate::store::database::guarded;
use crate::store::files;
use crate::store::owner;
use crate::store::trees::LOCK_PAUSE;
use crate::store::trees::Site;

/// What is wrong with a journal that has no anchor.
pub(crate) const NO_ANCHOR: &str = "its anchor is missing or can't be read, so nobody can tell how far it went";
/// Where Linux has a file system in memory; elsewhere there is none, and no copy is made there.
const MEMORY: &str = "/dev/shm";

/// What was found in a journal.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Survey {
    /// The records that can be read, from the first on without a gap, each proven to follow the one before it.
    pub records: Vec<Record>,
    /// The JSON of each of them, as it is stored.
    pub lines: Vec<String>,
    /// What is wrong, first things first; nothing when the journal is whole.
    pub flaws: Vec<Flaw>,
    /// What tells that a newer version wrote the rest.
    pub newer: Option<Newer>,
    /// Whether the run's own store holds less than another one that is kept beside it, from which all this is.
    pub is_elsewhere: bool,
}

/// Something that is wrong with a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// The first record that it is about; `Seq(0)` when it is about the whole journal.
    pub first: Seq,
    /// The last one.
    pub last: Seq,
    /// What is wrong, as the end of a sentence.
    pub why: String,
}

impl Flaw {
    /// The flaw as a sentence without its end.
    pub fn phrase(&self) -> String {
        match (self.first, self.last) {
            (Seq(0), _) => self.why.clone(),
            _ if self.why.starts_with("record ") => self.why.clone(),
            (first, last) if first == last => format!("record {first}: {}", self.why),
            (first, last) => format!("records {first} to {last}: {}", self.why),
        }
    }
}

impl Survey {
    /// The last position of which anything is known.
    pub(crate) fn reach(&self) -> Seq {
        let read = self.records.last().map_or(Seq(0), |record| record.seq);
        self.flaws.iter().map(|flaw| flaw.last).fold(read, Seq::max)
    }

    /// Whether every record that was ever acknowledged is there, as it was written.
    pub fn is_whole(&self) -> bool {
        self.flaws.is_empty() && self.newer.is_none()
    }

    fn add(&mut self, seq: Seq, why: impl Into<String>) {
        let why = why.into();
        match self.flaws.last_mut() {
            Some(flaw) if flaw.last.next() == seq && flaw.why == why && seq > Seq(1) => flaw.last = seq,
            Some(_) | None => self.flaws.push(Flaw { first: seq, last: seq, why }),
        }
    }

    /// Takes in a fault; says whether reading may go on behind it.
    fn take(&mut self, seq: Seq, fault: Fault) -> Result<(), Fault> {
        match fault {
            Fault::Damaged(why) => self.add(seq, why),
            Fault::TooNew(found) => self.newer = self.newer.or(Some(found)),
            Fault::Busy | Fault::Disk(_) => return Err(fault),
        }
        Ok(())
    }
}

/// Looks at the journal of a run that nobody holds, in a copy below `scratch`, or elsewhere where that can't be written.
/// Where another store of the run holds more of it than its own, because a repair was broken off say, it is read there.
pub(crate) fn survey(site: &Site, scratch: &Path) -> Result<Survey, Fault> {
    // Where there is no database to lock, an owner that had it open is found by the directory alone.
    let lock = if before::has_database(&site.store()) { owner::enter } else { owner::alone };
    let entered = patiently(|| lock(&site.dir))?;
    let marks = marks(site)?;
    drop(entered);
    survey_all(site, &marks, |store| copied_free(site, store, scratch))
}

/// The same, of a run that the caller has alone.
pub(crate) fn survey_alone(site: &Site, scratch: &Path) -> Result<Survey, Fault> {
    survey_all(site, &marks(site)?, |store| copied_alone(store, scratch))
}

/// The same, of nothing but its own store.
pub(crate) fn survey_store(site: &Site, marks: &[Mark], scratch: &Path) -> Result<Survey, Fault> {
    survey_own(site, marks, &|store| copied_alone(store, scratch))
}

fn survey_all(
    site: &Site,
    marks: &[Mark],
    copied: impl Fn(&Path) -> Result<Option<TempDir>, Fault>,
) -> Result<Survey, Fault> {
    let mut best = survey_own(site, marks, &copied)?;
    if best.is_whole() || best.newer.is_some() {
        return Ok(best);
    }
    let first = best.flaws.first().cloned();
    for other in before::others(&site.dir)? {
        let Some(copy) = copied(&other)? else { continue };
        before::sweep_dispensable(copy.path())?;
        let mut survey = survey_at(copy.path(), &site.run, marks)?;
        if survey.records.len() <= best.records.len() {
            continue;
        }
        let name = other.file_name().unwrap_or_default().to_string_lossy();
        let from =
            Flaw { first: Seq(0), last: Seq(0), why: format!("what can be read is in `{name}`, beside its store") };
        survey.flaws.retain(|flaw| Some(flaw) != first.as_ref());
        survey.flaws.splice(0..0, first.iter().cloned().chain([from]));
        survey.is_elsewhere = true;
        best = survey;
    }
    Ok(best)
}

fn survey_own(
    site: &Site,
    marks: &[Mark],
    copied: &impl Fn(&Path) -> Result<Option<TempDir>, Fault>,
) -> Result<Survey, Fault> {
    let store = site.store();
    let Some(copy) = copied(&store)? else {
        if !site.dir.exists() {
            return Err(Fault::Damaged("it was removed meanwhile".to_string()));
        }
        let mut nothing = Survey::default();
        nothing.add(Seq(0), before::lack(&store).unwrap_or_else(|| before::MISSING.to_string()));
        return Ok(nothing);
    };
    before::sweep_half_made(copy.path())?;
    let mut found = survey_at(copy.path(), &site.run, marks)?;
    if !found.is_whole() && found.newer.is_none() {
        found = without_dispensable(site, marks, copied, found)?;
    }
    // It keeps the store from being opened, and is not in the copy.
    if let Some(why) = before::stranger(&store)? {
        found.flaws.insert(0, Flaw { first: Seq(0), last: Seq(0), why });
    }
    Ok(found)
}

/// What sled keeps to open faster may be what is damaged: the store is read once more without that, as a repair does.
fn without_dispensable(
    site: &Site,
    marks: &[Mark],
    copied: &impl Fn(&Path) -> Result<Option<TempDir>, Fault>,
    found: Survey,
) -> Result<Survey, Fault> {
    let Some(copy) = copied(&site.store())? else { return Ok(found) };
    before::sweep_dispensable(copy.path())?;
    let mut anew = survey_at(copy.path(), &site.run, marks)?;
    if anew.records.len() <= found.records.len() {
        return Ok(found);
    }
    if anew.flaws.is_empty() {
        anew.flaws = found.flaws;
    }
    Ok(anew)
}

/// Looks at the journal of a run that somebody holds, in a copy that was made while they may write. All that was
/// acknowledged before is in it, or it is not whole: then another copy may do.
pub(crate) fn survey_held(site: &Site, scratch: &Path) -> Result<Survey, Fault> {
    let marks = marks(site)?;
    let copy = copied(&site.store(), scratch)?;
    // They may name what is not in this copy.
    before::sweep_dispensable(copy.path())?;
    survey_at(copy.path(), &site.run, &marks)
}

/// Looks at the journal of a run, whoever holds it, and says whether somebody does: then it is a copy of this moment, and
/// the longest of several where none is whole, because it was written to while it was copied.
pub(crate) fn survey_now(site: &Site, scratch: &Path) -> Result<(Survey, bool), Fault> {
    let mut best: Option<Survey> = None;
    let mut failed = Fault::Busy;
    for _ in 0..limits::HELD_LOOKS {
        let is_held = matches!(owner::look(&site.store()), Ok(None));
        match if is_held { survey_held(site, scratch) } else { survey(site, scratch) } {
            Ok(survey) if survey.is_whole() || !is_held => return Ok((survey, is_held)),
            Ok(survey) => best = best.filter(|best| best.records.len() > survey.records.len()).or(Some(survey)),
            Err(fault) => failed = fault,
        }
    }
    best.map(|survey| (survey, true)).ok_or(failed)
}

/// A lock, as soon as nobody else has it in the way; nothing when what it is on is not there. Errors with `Busy`.
pub(crate) fn patiently(lock: impl Fn() -> io::Result<Option<File>>) -> Result<Option<File>, Fault> {
    // sled lets go of a store that was just closed on threads of its own.
    let deadline = Instant::now() + Duration::from_millis(limits::LOCK_PATIENCE.0);
    loop {
        match lock() {
            Ok(Some(locked)) => return Ok(Some(locked)),
            Ok(None) if Instant::now() < deadline => std::thread::sleep(LOCK_PAUSE),
            Ok(None) => return Err(Fault::Busy),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        }
    }
}

/// A copy of a store that nobody holds; nothing when it has no database. Nobody changes it while it is copied.
pub(crate) fn copied_free(site: &Site, store: &Path, scratch: &Path) -> Result<Option<TempDir>, Fault> {
    let _entered = patiently(|| owner::enter(&site.dir))?;
    let Some(_looking) = patiently(|| owner::look(store))? else { return Ok(None) };
    copied_alone(store, scratch)
}

/// The same, of a run that the caller has alone.
fn copied_alone(store: &Path, scratch: &Path) -> Result<Option<TempDir>, Fault> {
    before::has_database(store).then(|| copied(store, scratch)).transpose()
}

/// A copy of a store, for its owner alone: below `scratch`, or where that is full or can only be read, in the folder for
/// temporary files, or in memory. To look at a run, or to remove it, must not need room where there is none.
fn copied(store: &Path, scratch: &Path) -> Result<TempDir, Fault> {
    first_copy(store, [scratch, &std::env::temp_dir(), Path::new(MEMORY)])
}

fn first_copy(store: &Path, places: [&Path; 3]) -> Result<TempDir, Fault> {
    let bytes = before::size(store)?.saturating_add(limits::FREE_SPACE_MIN_BYTES);
    let mut refusals = Vec::new();
    for place in places {
        let copy = files::check_space(place, bytes).and_then(|()| before::copy(place, store));
        match copy.and_then(own) {
            Ok(copy) => {
                // What killed processes left there; if it can't be removed, it is in nobody's way.
                let _ = files::sweep_old(place, |name| name.starts_with(before::PREFIX));
                return Ok(copy);
            }
            Err(error) => refusals.push(format!("{}: {error}", place.display())),
        }
    }
    Err(Fault::Disk(format!("there is no place for a copy of its files ({})", refusals.join("; "))))
}

/// Makes the files of a copy writable for sled, which those of a store may not be.
fn own(copy: TempDir) -> io::Result<TempDir> {
    for name in before::names(copy.path())? {
        std::fs::set_permissions(copy.path().join(name), Permissions::from_mode(files::FILE_MODE))?;
    }
    Ok(copy)
}

/// The marks of the anchor, newest first; none when there is no anchor or it can't be read.
pub(crate) fn marks(site: &Site) -> Result<Vec<Mark>, Fault> {
    match Anchor::marks(&site.dir.join(anchor::FILE)) {
        Ok(marks) => Ok(marks),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidData) => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}

/// A sign that a run can't be opened, which shows without opening it; why, as the end of a sentence. A list looks for no
/// more, so a run without one may be damaged too.
pub(crate) fn sign(site: &Site) -> Option<String> {
    let strange = before::stranger(&site.store()).ok().flatten();
    let lost = || marks(site).is_ok_and(|marks| marks.is_empty()).then(|| NO_ANCHOR.to_string());
    before::lack(&site.store()).or(strange).or_else(lost)
}

/// How far the journal of a run went, as its anchor says; nothing where that can't be read. Opens no store.
pub(crate) fn anchored(site: &Site) -> Option<Seq> {
    marks(site).ok()?.first().map(|mark| mark.seq)
}

/// Reads a store that is this process's own, record by record.
pub(crate) fn survey_at(dir: &Path, run: &RunId, marks: &[Mark]) -> Result<Survey, Fault> {
    let mut survey = Survey::default();
    let database = match Database::open(dir) {
        Ok(database) => database,
        Err(fault) => {
            survey.take(Seq(0), fault)?;
            return Ok(survey);
        }
    };
    let read = read_all(&database, run, marks, &mut survey);
    database.close();
    read.map(|()| survey)
}

fn read_all(database: &Database, run: &RunId, marks: &[Mark], survey: &mut Survey) -> Result<(), Fault> {
    if let Err(fault) = guarded(|| database.take_back_torn(run, marks)) {
        survey.take(Seq(0), fault)?;
    }
    if marks.is_empty() {
        survey.add(Seq(0), NO_ANCHOR);
    }
    let anchored = marks.first().map_or(Seq(0), |mark| mark.seq);
    let stored = match guarded(|| database.last()) {
        Ok(last) => last,
        Err(fault) => {
            survey.take(Seq(0), fault)?;
            Seq(0)
        }
    };
    let mut mark = Mark::START;
    let mut hashes = Vec::new();
    let last = anchored.max(stored).0.min(limits::SURVEY_RECORDS);
    for seq in (1..=last).map(Seq) {
        let json = match guarded(|| database.json(seq)) {
            Ok(Some(json)) => json,
            Ok(None) => {
                survey.add(seq, missing(seq, stored));
                continue;
            }
            Err(fault) => {
                survey.take(seq, fault)?;
                continue;
            }
        };
        if mark.seq.next() != seq || survey.newer.is_some() {
            if survey.newer.is_none() {
                survey.add(seq, "it is there, but the one that it follows is not");
            }
            continue;
        }
        match codec::parse(&json, mark) {
            Ok((record, next)) => {
                hashes.push(next);
                survey.records.push(record);
                survey.lines.push(String::from_utf8_lossy(&json).into_owned());
                mark = next;
            }
            Err(unfit) => survey.take(seq, unfit.into())?,
        }
    }
    if anchored.max(stored).0 > last {
        survey.add(Seq(last + 1), format!("it and what follows were not looked at: more than {last} are not"));
    }
    for anchored in marks {
        let at = usize::try_from(anchored.seq.0).ok().and_then(|seq| hashes.get(seq.checked_sub(1)?));
        if at.is_some_and(|mark| mark != anchored) {
            survey.add(anchored.seq, "it is not the one that was written (its hash differs)");
        }
    }
    Ok(())
}

fn missing(seq: Seq, stored: Seq) -> &'static str {
    if seq > stored { "missing: the journal ends before it, but it was written" } else { "missing" }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]

    use super::*;

    #[test]
    fn a_copy_is_made_in_the_first_place_that_takes_it_and_for_its_owner_alone() {
        let dir = tempfile::tempdir().unwrap();
        let (store, gone, place) = (dir.path().join("store"), dir.path().join("gone"), dir.path().join("place"));
        std::fs::create_dir(&store).unwrap();
        std::fs::create_dir(&place).unwrap();
        std::fs::write(store.join("db"), "x").unwrap();
        std::fs::set_permissions(store.join("db"), Permissions::from_mode(0o444)).unwrap();
        let copy = first_copy(&store, [&gone, &place, &gone]).unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(copy.path()), mode(&copy.path().join("db"))), (0o700, 0o600));
        assert_eq!(copy.path().parent(), Some(place.as_path()));
        drop(copy);
        assert_eq!(std::fs::read_dir(&place).unwrap().count(), 0, "a copy was left");
        let Err(Fault::Disk(why)) = first_copy(&store, [&gone, &gone, &gone]) else { panic!("copied to nowhere") };
        assert!(why.starts_with("there is no place for a copy of its files (") && why.contains("gone: "), "{why}");
    }
}
