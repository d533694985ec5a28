//! The state directory and the runs in it: create, open, find, list; and the small files beside a store.
//!
//! `<state>/runs/<run id>/` holds `store/` (sled), `anchor`, snapshots, `owner.json`, `summary.json`, `draft.json` and
//! `sinks.json`. Directories are 0700, files 0600. This file must not call sled, and must not decide anything by a summary.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::path::PathBuf;

use crate::domain::event::Owner;
use crate::domain::event::Record;
use crate::domain::id::RunId;
use crate::domain::id::Seq;
use crate::domain::limits;
use crate::domain::run::Run;
use crate::domain::summary::Listed;
use crate::domain::summary::Summary;
use crate::domain::text::head;
use crate::domain::time::Span;
use crate::domain::time::Timestamp;
use crate::store::StoreError;
use crate::store::before;
use crate::store::codec;
use crate::store::codec::Mark;
use crate::store::files;
use crate::store::look;
use crate::store::look::Survey;
use crate::store::own;
use crate::store::owner;
use crate::store::remove;
use crate::store::remove::Removal;
use crate::store::repair;
use crate::store::repair::Repair;
use crate::store::sled::SledJournal;
use crate::store::sled::on_store_thread;
use crate::store::snaps;
use crate::store::transfer::Carried;
use crate::store::trees::NASCENT;
use crate::store::trees::Site;
use crate::store::trees::Trees;
use crate::store::trees::explain;

const SUMMARY: &str = "summary.json";
const DRAFT: &str = "draft.json";
const SINKS: &str = "sinks.json";

/// The state directory, and on whose behalf runs are opened. What is not `async` blocks: for as long as a few small
/// files take to read, but `list`, `latest`, `ended` and what says so for as long as whole stores take.
#[derive(Clone, Debug)]
pub struct Home {
    runs: PathBuf,
    owner: Owner,
}

/// A run that was opened.
#[derive(Debug)]
pub struct Opened {
    /// Its journal, for the one who drives it.
    pub journal: SledJournal,
    /// All its records, proven to be what was written.
    pub records: Vec<Record>,
}

impl Home {
    /// Takes a state directory, and makes it if need be. Errors with `Exposed` when it, or what lies in it, belongs to
    /// somebody else, is a link or is open to others, with `Disk` when it can't be made.
    pub fn new(state_dir: PathBuf, owner: Owner) -> Result<Home, StoreError> {
        let runs = state_dir.join("runs");
        make_dir(&state_dir)?;
        files::check_private(&state_dir)?;
        make_dir(&runs)?;
        own::check_within(&state_dir)?;
        Ok(Home { runs, owner })
    }

    /// Makes a run with its first records, durably, and takes it. Errors with `Disk` when there is too little space.
    pub async fn create(&self, id: &RunId, records: &[Record]) -> Result<SledJournal, StoreError> {
        files::check_space(&self.runs, limits::FREE_SPACE_MIN_BYTES)
            .map_err(|error| disk(format!("creating run {id}"), &error))?;
        SledJournal::create(self.site(id), records.to_vec()).await
    }

    /// Takes a run and reads its whole journal. Errors with `NotFound`, `Locked`, `Damaged`, `TooNew` or `Disk`.
    pub async fn open(&self, id: &RunId) -> Result<Opened, StoreError> {
        let (journal, records) = SledJournal::open(self.site(id)).await?;
        Ok(Opened { journal, records })
    }

    /// Takes a run and folds it, from its newest good snapshot on where there is one: the records before that are not
    /// proven (`survey` proves all). Errors as `open`, and with `Unreadable`.
    pub async fn resume(&self, id: &RunId) -> Result<(SledJournal, Run), StoreError> {
        SledJournal::resume(self.site(id)).await
    }

    /// Reads the journal of a run in a copy, as far as it can be read, and says what is wrong with it. The store is not
    /// opened and stays as it is. Errors with `NotFound`, `Locked` or `Disk`. Blocks.
    pub fn survey(&self, id: &RunId) -> Result<Survey, StoreError> {
        let site = self.known_site(id)?;
        let scratch = self.runs.parent().unwrap_or(&self.runs);
        self.sweep_leftovers(scratch, &site.dir);
        let looked = on_store_thread(|| look::survey(&site, scratch));
        let looked = looked.ok_or_else(|| StoreError::Closed(id.clone()))?;
        looked.map_err(|fault| explain(&site, fault, &format!("looking at run {id}")))
    }

    /// As `survey`, also of a run that somebody holds, who is named then: what was recorded up to this moment, as far as
    /// it can be read while it is written to. Errors as `survey`. Blocks.
    pub fn survey_now(&self, id: &RunId) -> Result<(Survey, Option<String>), StoreError> {
        let site = self.known_site(id)?;
        let scratch = self.runs.parent().unwrap_or(&self.runs);
        self.sweep_leftovers(scratch, &site.dir);
        let looked = on_store_thread(|| look::survey_now(&site, scratch));
        let looked = looked.ok_or_else(|| StoreError::Closed(id.clone()))?;
        let (survey, is_held) = looked.map_err(|fault| explain(&site, fault, &format!("looking at run {id}")))?;
        Ok((survey, is_held.then(|| owner::phrase(&site.dir))))
    }

    /// The records at which there are snapshots that say something else than a whole journal up to there: a bug. The
    /// journal is none the worse for it. Blocks.
    pub fn liars(&self, id: &RunId, journal: &Survey) -> Vec<Seq> {
        snaps::liars(&self.run_dir(id), id, journal)
    }

    /// Mends the store of a run, if everything that was acknowledged can be found in it. Errors with `NotFound`, `Locked`
    /// or `Disk`. Blocks.
    pub fn repair(&self, id: &RunId) -> Result<Repair, StoreError> {
        let site = self.known_site(id)?;
        let mended = on_store_thread(|| repair::repair(&site)).ok_or_else(|| StoreError::Closed(id.clone()))?;
        mended.map_err(|fault| explain(&site, fault, &format!("mending run {id}")))
    }

    /// What `repair` would put in the place of a damaged store; nothing when it would change nothing. `found` is a survey
    /// of the run that is not whole. Errors as `survey`. Blocks.
    pub fn outlook(&self, id: &RunId, found: &Survey) -> Result<Option<Survey>, StoreError> {
        let site = self.known_site(id)?;
        let scratch = self.runs.parent().unwrap_or(&self.runs);
        let searched = on_store_thread(|| repair::outlook(&site, scratch, found.clone()));
        let searched = searched.ok_or_else(|| StoreError::Closed(id.clone()))?;
        searched.map_err(|fault| explain(&site, fault, &format!("looking at run {id}")))
    }

    /// Makes a run of a journal that was read from lines. Errors with `Taken` when there is one of this name. Blocks.
    pub fn import(&self, id: &RunId, carried: &Carried) -> Result<Run, StoreError> {
        let site = self.site(id);
        if site.dir.exists() {
            return Err(StoreError::Taken(id.clone()));
        }
        let run = Run::fold(id, &carried.records).map_err(|broken| StoreError::Foreign { why: broken.to_string() })?;
        let made = on_store_thread(|| Trees::create_stored(&site, run.created, &carried.encoded));
        made.ok_or_else(|| StoreError::Closed(id.clone()))??;
        self.keep_summary(&run);
        Ok(run)
    }

    /// Makes a run whose journal begins with records of another one, as they are stored there, and goes on with one of
    /// its own. Errors with `Disk`. Blocks.
    pub fn branch(&self, run: &Run, beginning: &[String], record: &Record) -> Result<(), StoreError> {
        files::check_space(&self.runs, limits::FREE_SPACE_MIN_BYTES)
            .map_err(|error| disk(format!("creating run {}", run.id), &error))?;
        let mut batch = Vec::with_capacity(beginning.len() + 1);
        for (number, line) in (1..).zip(beginning) {
            batch.push(codec::store(line.clone().into_bytes(), Seq(number))?);
        }
        let before = batch.last().map_or(Mark::START, |one| one.mark);
        batch.extend(codec::encode_batch(std::slice::from_ref(record), before)?);
        let site = self.site(&run.id);
        let made = on_store_thread(|| Trees::create_stored(&site, run.created, &batch));
        made.ok_or_else(|| StoreError::Closed(run.id.clone()))??;
        self.keep_summary(run);
        Ok(())
    }

    /// Whether the disk has the room that a run needs to go on. Errors with `Disk` when it has not.
    pub fn has_room(&self, id: &RunId) -> Result<(), StoreError> {
        files::check_space(&self.run_dir(id), limits::FREE_SPACE_MIN_BYTES)
            .map_err(|error| disk(format!("going on with run {id}"), &error))
    }

    /// The run whose name begins like this. Errors with `NotFound` or `Ambiguous`.
    pub fn find(&self, prefix: &str) -> Result<RunId, StoreError> {
        let wanted = prefix.trim().to_ascii_lowercase();
        let fits = |id: &RunId| !wanted.is_empty() && id.as_str().starts_with(&wanted);
        let mut found: Vec<RunId> = self.ids()?.into_iter().filter(fits).collect();
        match (found.pop(), found.len()) {
            (None, _) => Err(StoreError::NotFound(head(prefix, 64).to_string())),
            (Some(id), 0) => Ok(id),
            (Some(_), others) => Err(StoreError::Ambiguous { prefix: head(prefix, 64).to_string(), count: others + 1 }),
        }
    }

    /// All runs, most recently updated first; those that can't be read come last. A summary that is missing, damaged, or
    /// older than the journal of a run that nobody holds is made anew from the journal; where an old one can't be, it is
    /// shown as it is.
    pub fn list(&self) -> Result<Vec<Listed>, StoreError> {
        let mut listed: Vec<Listed> = self.ids()?.iter().filter_map(|id| self.look(id)).collect();
        listed.sort_by_cached_key(|one| match one {
            Listed::Run { summary, .. } => (false, std::cmp::Reverse(summary.updated), summary.id.clone()),
            Listed::Damaged { id, .. } => (true, std::cmp::Reverse(Default::default()), id.clone()),
        });
        Ok(listed)
    }

    /// The most recently updated run that can still go on; if none can, the most recently updated one.
    pub fn latest(&self) -> Result<Option<RunId>, StoreError> {
        let mut newest = None;
        for one in self.list()? {
            match one {
                Listed::Run { summary, .. } if summary.is_open() => return Ok(Some(summary.id)),
                Listed::Run { summary, .. } => newest = newest.or(Some(summary.id)),
                Listed::Damaged { .. } => {}
            }
        }
        Ok(newest)
    }

    /// The runs that have ended and that nobody holds, and when each was touched last. As `list`.
    pub fn ended(&self) -> Result<Vec<(RunId, Timestamp)>, StoreError> {
        let ended = |one: Listed| match one {
            Listed::Run { summary, held_by: None } if summary.status.is_end() => Some(*summary),
            Listed::Run { .. } | Listed::Damaged { .. } => None,
        };
        // Opening a run, or importing one, changes its directory.
        let touched = |id: &RunId| self.run_dir(id).metadata()?.modified();
        let at = |id: &RunId| jiff::Timestamp::try_from(touched(id).ok()?).ok()?.as_millisecond().try_into().ok();
        let with_time = |summary: Summary| {
            let touched = at(&summary.id).map_or(summary.updated, |at| summary.updated.max(Timestamp(at)));
            (summary.id, touched)
        };
        Ok(self.list()?.into_iter().filter_map(ended).map(with_time).collect())
    }

    /// Removes a run that nobody holds, if it `may` be, asked while it is held. Errors with `NotFound`, `Locked`,
    /// `Damaged`, `TooNew` or `Disk`; then it is there as it was. Blocks.
    pub fn remove(&self, id: &RunId, may: impl FnOnce(&Run) -> bool + Send) -> Result<Removal, StoreError> {
        let site = self.known_site(id)?;
        on_store_thread(|| remove::remove(&site, may)).unwrap_or_else(|| Err(StoreError::Closed(id.clone())))
    }

    /// Removes a run that nobody holds and that can't be read whole. Errors with `NotFound`, `Locked`, `TooNew` or
    /// `Disk`; then it is there as it was. Blocks.
    pub fn remove_damaged(&self, id: &RunId) -> Result<Removal, StoreError> {
        let site = self.known_site(id)?;
        let listed = self.read_summary(id);
        on_store_thread(|| remove::remove_damaged(&site, listed)).unwrap_or_else(|| Err(StoreError::Closed(id.clone())))
    }

    /// Deletes what removals that were cut off left. Blocks.
    pub fn sweep(&self) -> Result<(), StoreError> {
        remove::sweep(&self.runs).map_err(|error| disk("deleting what is left of removed runs".to_string(), &error))
    }

    /// The directory of a run, whether there is one or not.
    pub fn run_dir(&self, id: &RunId) -> PathBuf {
        self.runs.join(id.as_str())
    }

    /// The last record that the list knows of, if it knows the run. Only to tell.
    pub fn listed_at(&self, id: &RunId) -> Option<Seq> {
        self.read_summary(id).map(|summary| summary.seq)
    }

    /// Replaces the summary of a run. For the process that holds it.
    pub fn write_summary(&self, summary: &Summary) -> Result<(), StoreError> {
        let json = serde_json::to_vec(summary).map_err(std::io::Error::from);
        json.and_then(|json| files::replace(&self.run_dir(&summary.id).join(SUMMARY), &json))
            .map_err(|error| disk(format!("writing the summary of run {}", summary.id), &error))
    }

    /// Replaces the summary of a run whose records are durable already. Where that fails, the list shows an older one
    /// until the next: that is for the log, because what was asked for was done.
    pub fn keep_summary(&self, run: &Run) {
        if let Err(error) = self.write_summary(&Summary::of(run)) {
            tracing::warn!(run = %run.id, %error, "a summary could not be kept; the list shows an older one");
        }
    }

    /// The text that was typed and not sent when a screen of this run was last left; empty if there is none.
    pub fn read_draft(&self, id: &RunId) -> String {
        let bytes = files::read(&self.run_dir(id).join(DRAFT), limits::SIDE_FILE_MAX_BYTES).unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    /// Keeps what is typed and not sent, up to `limits::SAY_MAX_BYTES`; an empty text removes it.
    pub fn write_draft(&self, id: &RunId, text: &str) -> Result<(), StoreError> {
        let path = self.run_dir(id).join(DRAFT);
        let written = if text.is_empty() {
            std::fs::remove_file(&path).or_else(|error| match error.kind() {
                ErrorKind::NotFound => Ok(()),
                _ => Err(error),
            })
        } else {
            let json = serde_json::to_vec(head(text, limits::SAY_MAX_BYTES)).map_err(std::io::Error::from);
            json.and_then(|json| files::replace(&path, &json))
        };
        written.map_err(|error| disk(format!("keeping the draft of run {id}"), &error))
    }

    /// The last record that a sink was told of; nothing when it was never told of this run. Errors, in the end of a
    /// sentence, when nobody can tell.
    pub fn read_told(&self, id: &RunId, sink: &str) -> Result<Option<Seq>, String> {
        let bytes = match files::read(&self.run_dir(id).join(SINKS), limits::SIDE_FILE_MAX_BYTES) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            bytes => bytes.map_err(|error| format!("{SINKS}: {error}"))?,
        };
        let told = serde_json::from_slice::<BTreeMap<String, Seq>>(&bytes);
        Ok(told.map_err(|_| format!("{SINKS} is damaged"))?.get(sink).copied())
    }

    /// Keeps the last record that a sink was told of.
    pub fn write_told(&self, id: &RunId, sink: &str, told: Seq) -> Result<(), StoreError> {
        let json = serde_json::to_vec(&BTreeMap::from([(sink, told)])).map_err(std::io::Error::from);
        json.and_then(|json| files::replace_synced(&self.run_dir(id).join(SINKS), &json))
            .map_err(|error| disk(format!("keeping what was told of run {id}"), &error))
    }

    /// Removes what killed processes left: copies that were looked into, files and runs that never got their names.
    fn sweep_leftovers(&self, state: &Path, run_dir: &Path) {
        let is_temporary = |name: &str| name.starts_with(files::TEMPORARY);
        let swept = files::sweep_old(state, |name| is_temporary(name) || name.starts_with(before::PREFIX))
            .and_then(|()| files::sweep_old(run_dir, is_temporary))
            .and_then(|()| files::sweep_old(&self.runs, |name| name.ends_with(NASCENT)));
        if let Err(error) = swept {
            tracing::warn!(%error, "what killed processes left can't be removed");
        }
    }

    fn site(&self, id: &RunId) -> Site {
        Site { run: id.clone(), dir: self.run_dir(id), owner: self.owner.clone() }
    }

    fn known_site(&self, id: &RunId) -> Result<Site, StoreError> {
        let site = self.site(id);
        if !site.dir.is_dir() {
            return Err(StoreError::NotFound(id.to_string()));
        }
        own::check_run(&site.dir)?;
        Ok(site)
    }

    /// The names of all runs. Other things in the directory are none: a run that is being made, say.
    fn ids(&self) -> Result<Vec<RunId>, StoreError> {
        let failed = |error: std::io::Error| disk(format!("listing the runs in {}", self.runs.display()), &error);
        let mut ids = Vec::new();
        for entry in std::fs::read_dir(&self.runs).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            ids.extend(name.into_string().ok().and_then(|name| RunId::try_from(name).ok()));
        }
        Ok(ids)
    }

    /// A run as a list shows it; nothing if it was removed meanwhile.
    fn look(&self, id: &RunId) -> Option<Listed> {
        let dir = self.run_dir(id);
        let damaged = |why: String| Some(Listed::Damaged { id: id.clone(), why });
        if let Err(error) = own::check_run(&dir) {
            return damaged(error.to_string()).filter(|_| files::is_there(&dir));
        }
        let store = dir.join("store");
        let held = match owner::look(&store) {
            Ok(free) => free.is_none(),
            Err(_) if !dir.exists() => return None,
            Err(_) if let Some(why) = before::lack(&store) => return damaged(why),
            Err(error) => return damaged(format!("the file of its database can't be opened ({error})")),
        };
        let held_by = held.then(|| owner::pid(&dir));
        if !held && let Some(why) = look::sign(&self.site(id)) {
            // Nothing shows of a run that was removed in this moment.
            return damaged(why).filter(|_| dir.exists());
        }
        // Where damage was found once, a summary may be older than that: whether the run opens is looked at anew.
        let kept = self.read_summary(id).filter(|_| held || !dir.join(before::KEPT).exists());
        // A process that was killed may have recorded more than it could still put into the summary.
        let is_newest = |kept: &&Summary| held || look::anchored(&self.site(id)).is_none_or(|last| last <= kept.seq);
        match (kept.as_ref().filter(is_newest), held) {
            (Some(summary), _) => Some(Listed::Run { summary: Box::new(summary.clone()), held_by }),
            (None, true) => damaged("another process holds it, and its summary can't be read now".to_string()),
            (None, false) => match self.rebuild(id) {
                Ok(summary) => Some(Listed::Run { summary: Box::new(summary), held_by }),
                Err(StoreError::NotFound(_)) => None,
                Err(StoreError::Damaged { why, .. }) => damaged(why),
                Err(_) if let Some(summary) = kept => Some(Listed::Run { summary: Box::new(summary), held_by }),
                Err(error @ StoreError::Disk { .. }) => match self.summary_of_copy(id) {
                    Some(summary) => Some(Listed::Run { summary: Box::new(summary), held_by }),
                    None => damaged(error.to_string()),
                },
                Err(error) => damaged(error.to_string()),
            },
        }
    }

    fn read_summary(&self, id: &RunId) -> Option<Summary> {
        let bytes = files::read(&self.run_dir(id).join(SUMMARY), limits::SIDE_FILE_MAX_BYTES).ok()?;
        serde_json::from_slice(&bytes).ok().filter(|summary: &Summary| summary.id == *id)
    }

    /// The summary of a run that can't be opened where it lies; nothing when its journal is not whole either.
    fn summary_of_copy(&self, id: &RunId) -> Option<Summary> {
        let survey = self.survey(id).ok().filter(Survey::is_whole)?;
        Some(Summary::of(&Run::fold(id, &survey.records).ok()?))
    }

    /// Makes a summary from the journal, and writes it.
    fn rebuild(&self, id: &RunId) -> Result<Summary, StoreError> {
        let site = self.site(id);
        let opened = on_store_thread(|| {
            // Kept open until the summary is written, so that no newer one is overwritten.
            let (trees, run) = Trees::resume(site, Span(0))?;
            self.keep_summary(&run);
            drop(trees);
            Ok(Summary::of(&run))
        });
        opened.unwrap_or_else(|| Err(StoreError::Closed(id.clone())))
    }
}

fn make_dir(dir: &Path) -> Result<(), StoreError> {
    let made = dir.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| files::create_dir(dir));
    match made {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            Err(disk(format!("making the directory {}", dir.display()), &error))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

fn disk(doing: String, error: &std::io::Error) -> StoreError {
    StoreError::Disk { doing, why: error.to_string() }
}
