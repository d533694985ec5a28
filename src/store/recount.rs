//! The charges of the last 24 hours, counted anew from the journals, for a ledger that was lost (docs/JOURNAL.md, "The
//! ledger"). It looks at copies and changes nothing; what the lines mean is `domain/daily.rs`.

use std::collections::BTreeMap;
use std::io;
use std::io::ErrorKind;
use std::path::Path;
use std::time::UNIX_EPOCH;

use crate::domain::daily::Daily;
use crate::domain::daily::Hold;
use crate::domain::daily::Line;
use crate::domain::daily::What;
use crate::domain::event::Event;
use crate::domain::event::Owner;
use crate::domain::event::OwnerMode;
use crate::domain::event::Record;
use crate::domain::id::RunId;
use crate::domain::id::Seq;
use crate::domain::limits;
use crate::domain::model::Dialect;
use crate::domain::money::MicroUsd;
use crate::domain::run::Run;
use crate::domain::time::Timestamp;
use crate::store::anchor;
use crate::store::look;
use crate::store::look::Survey;
use crate::store::sled::on_store_thread;
use crate::store::trees::Site;

/// What journals say that was held, charged and corrected in the last 24 hours.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    /// As lines of the ledger.
    pub(crate) lines: Vec<Line>,
    /// The runs that were read whole.
    pub(crate) read: Vec<RunId>,
    /// The runs of which something may be missing.
    pub(crate) unread: Vec<RunId>,
}

/// The names of all runs of a state directory.
pub(crate) fn runs(state: &Path) -> io::Result<Vec<RunId>> {
    let entries = match std::fs::read_dir(state.join("runs")) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut ids = Vec::new();
    for entry in entries {
        ids.extend(entry?.file_name().into_string().ok().and_then(|name| RunId::try_from(name).ok()));
    }
    Ok(ids)
}

/// Reads the journals of these runs, of those that are held in a copy of this moment. Blocks for as long as that takes.
pub(crate) fn count(state: &Path, mut runs: Vec<RunId>, now: Timestamp) -> Counted {
    let mut counted = Counted::default();
    runs.sort();
    for id in runs {
        let owner = Owner { pid: 0, host: String::new(), version: String::new(), mode: OwnerMode::Records };
        let site = Site { run: id.clone(), dir: state.join("runs").join(id.as_str()), owner };
        if is_untouched(&site, now) {
            counted.read.push(id);
            continue;
        }
        let survey = read(&site, state);
        let run = survey.as_ref().and_then(|survey| Run::fold(&id, &survey.records).ok());
        let is_whole = run.is_some() && survey.as_ref().is_some_and(Survey::is_whole);
        if let (Some(run), Some(survey)) = (run, survey) {
            counted.lines.extend(lines(&run, &survey.records, now));
        }
        match is_whole {
            true => counted.read.push(id),
            false => counted.unread.push(id),
        }
    }
    counted
}

/// Whether nothing was written to a journal for so long that no charge in it counts.
fn is_untouched(site: &Site, now: Timestamp) -> bool {
    [site.store().join("db"), site.dir.join(anchor::FILE)].iter().all(|path| {
        let touched = path.metadata().and_then(|file| file.modified()).ok();
        let age = touched.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let at = age.and_then(|age| u64::try_from(age.as_millis()).ok()).map(Timestamp);
        at.is_some_and(|at| now.since(at) > limits::DAILY_WINDOW)
    })
}

/// What can be read of a journal, whoever holds it; nothing where the system refuses.
fn read(site: &Site, scratch: &Path) -> Option<Survey> {
    match on_store_thread(|| look::survey_now(site, scratch)) {
        Some(Ok((survey, _))) => Some(survey),
        Some(Err(fault)) => {
            tracing::warn!(run = %site.run, ?fault, "what a run cost can't be read");
            None
        }
        None => {
            tracing::warn!(run = %site.run, "what a run cost can't be read");
            None
        }
    }
}

/// What a journal says, but for what it has from elsewhere: that was charged there.
fn lines(run: &Run, records: &[Record], now: Timestamp) -> Vec<Line> {
    if run.terms.rehearsal || run.terms.model.dialect == Dialect::Scripted {
        return Vec::new();
    }
    let inherited = run.lineage.as_ref().map_or(Seq(0), |lineage| lineage.seq);
    let imported = records.iter().rfind(|record| matches!(record.event, Event::Imported { .. }));
    let foreign = inherited.max(imported.map_or(Seq(0), |record| record.seq));
    let mut made = BTreeMap::new();
    let mut all = Vec::new();
    for record in records.iter().filter(|record| record.seq > foreign) {
        let (id, what) = match &record.event {
            Event::BudgetReserved { reservation } => {
                made.insert(reservation.id, record.at);
                (reservation.id, What::Held(reservation.amount))
            }
            Event::BudgetSettled { id, charge } => (*id, What::Charged(charge.amount)),
            Event::BudgetCorrected { id, amount, .. } => (*id, What::Corrected(*amount)),
            _ => continue,
        };
        // What became here of a call that was made elsewhere is not paid here either.
        let Some(at) = made.get(&id).copied() else { continue };
        let hold = Hold { id, at };
        all.push(Line::of(&run.id, hold, what, record.at));
        if let What::Held(amount) = what {
            all.push(Line::of(&run.id, hold, What::Begun(amount), record.at));
        }
    }
    all.retain(|line| Daily::counts(line, now));
    // A model that costs nothing does not touch the ledger.
    let is_free = all.iter().all(|line| {
        matches!(line.what, What::Held(MicroUsd(0)) | What::Begun(MicroUsd(0)) | What::Charged(MicroUsd(0)))
    });
    if is_free { Vec::new() } else { all }
}
