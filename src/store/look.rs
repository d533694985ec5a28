//! A journal looked at in a copy: what can be read of it, and what is wrong. The store itself is not opened, so nothing
//! of it changes, whatever its state.
//!
//! It must not mend anything: that is for `repair.rs`.

use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;
use std::time::Instant;

use tempfile::TempDir;

use crate::domain::event::Record;
use crate::domain::id::RunId;
use crate::domain::id::Seq;
use crate::domain::limits;
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

/// What was found in a journal.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Survey {
    /// The records that can be read, from the first on without a gap, each proven to follow the one before it.
    pub records: Vec<Record>,
    /// The JSON of each of them, as it is stored.
    pub lines: Vec<String>,
    /// What is wrong, first things first; nothing when the journal is whole.
    pub flaws: Vec<Flaw>,
    /// The format of the first record that a newer version wrote.
    pub newer: Option<u32>,
    /// The records at which there are snapshots that say something else than the records up to there: a bug. The
    /// journal is none the worse for it.
    pub liars: Vec<Seq>,
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

/// Looks at the journal of a run that nobody holds, in a copy below `scratch`.
pub(crate) fn survey(site: &Site, scratch: &Path) -> Result<Survey, Fault> {
    let marks = marks(site)?;
    let Some(copy) = copied(site, scratch)? else {
        let mut nothing = Survey::default();
        nothing.add(Seq(0), "the file of its database is missing");
        return Ok(nothing);
    };
    before::sweep_half_made(copy.path())?;
    let found = survey_at(copy.path(), &site.run, &marks)?;
    if found.is_whole() || found.newer.is_some() {
        return Ok(found);
    }
    // What sled keeps to open faster may be what is damaged: it is read once more without that, as a repair does.
    let Some(copy) = copied(site, scratch)? else { return Ok(found) };
    before::sweep_dispensable(copy.path())?;
    let mut anew = survey_at(copy.path(), &site.run, &marks)?;
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
    let store = site.store();
    files::check_space(scratch, before::size(&store)?.saturating_add(limits::FREE_SPACE_MIN_BYTES))?;
    let copy = before::copy(scratch, &store)?;
    // They may name what is not in this copy.
    before::sweep_dispensable(copy.path())?;
    survey_at(copy.path(), &site.run, &marks)
}

/// A copy of the store of a run that nobody holds; nothing when there is no store.
fn copied(site: &Site, scratch: &Path) -> Result<Option<TempDir>, Fault> {
    let store = site.store();
    // sled lets go of a store that was just closed on threads of its own.
    let deadline = Instant::now() + Duration::from_millis(limits::LOCK_PATIENCE.0);
    let _looking = loop {
        match owner::look(&store) {
            Ok(Some(looking)) => break looking,
            Ok(None) if Instant::now() < deadline => std::thread::sleep(LOCK_PAUSE),
            Ok(None) => return Err(Fault::Busy),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        }
    };
    files::check_space(scratch, before::size(&store)?.saturating_add(limits::FREE_SPACE_MIN_BYTES))?;
    Ok(Some(before::copy(scratch, &store)?))
}

/// The marks of the anchor, newest first; none when there is no anchor or it can't be read.
pub(crate) fn marks(site: &Site) -> Result<Vec<Mark>, Fault> {
    match Anchor::marks(&site.dir.join(anchor::FILE)) {
        Ok(marks) => Ok(marks),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidData) => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
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
    if let Err(fault) = guarded(|| database.settle(run, marks)) {
        survey.take(Seq(0), fault)?;
    }
    if marks.is_empty() {
        survey.add(Seq(0), "its anchor is missing or can't be read, so nobody can tell how far it went");
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
    if survey.is_whole() {
        survey.liars = guarded(|| database.liars(run, &survey.records)).unwrap_or_default();
    }
    Ok(())
}

fn missing(seq: Seq, stored: Seq) -> &'static str {
    if seq > stored { "missing: the journal ends before it, but it was written" } else { "missing" }
}
