//! What went by before the screen was there and the run does not keep, read page by page while the first frames are
//! shown: it never holds more than a page of records and the run that they fold to.

use std::collections::BTreeSet;
use std::collections::VecDeque;

use crate::domain::event::Event;
use crate::domain::event::Record;
use crate::domain::fold::Folding;
use crate::domain::fold::gone_back_to;
use crate::domain::id::InterjectionId;
use crate::domain::id::RunId;
use crate::domain::id::Seq;
use crate::domain::limits;
use crate::domain::lineage;
use crate::domain::run::Run;
use crate::tui::chronicle::Chronicle;

/// What the records say that went by before the screen was there, and the run does not keep: checks and stalls gone by,
/// and what the operator sent before.
#[derive(Clone, Debug, Default)]
pub struct Past {
    pub(crate) chronicle: Chronicle,
    pub(crate) said: VecDeque<String>,
    /// What was said last, unless it was taken back.
    pub(crate) last: Option<(Option<InterjectionId>, String)>,
}

impl Past {
    fn say(&mut self, id: Option<InterjectionId>, text: &str) {
        self.last = Some((id, text.to_string()));
        self.said.push_back(text.to_string());
        if self.said.len() > limits::DRAFTS_MAX {
            self.said.pop_front();
        }
    }
}

/// A journal that is being read from its first record on.
pub struct Reading {
    id: RunId,
    past: Past,
    fold: Fold,
    /// What was known of the whole journal when this began.
    known: Whole,
    /// What was met of that so far.
    met: Whole,
}

/// What must be known of a whole journal before its first record is told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Whole {
    /// The records that rewinds go back to.
    back: BTreeSet<Seq>,
    /// The record since which it is driven here, where it was brought from elsewhere.
    brought: Option<Seq>,
}

/// How far the records are folded.
enum Fold {
    Begins,
    Goes(Box<Folding>),
    /// A record did not fit. Who folded the journal to drive it says so elsewhere.
    Ended,
}

impl Reading {
    /// Nothing is read yet.
    pub fn new(id: &RunId) -> Reading {
        Reading::knowing(id.clone(), Whole::default())
    }

    fn knowing(id: RunId, known: Whole) -> Reading {
        Reading { id, past: Past::default(), fold: Fold::Begins, known, met: Whole::default() }
    }

    /// Takes in the next records.
    pub fn take(&mut self, records: &[Record]) {
        self.met.brought = lineage::brought(records).or(self.met.brought);
        for record in records {
            self.met.back.extend(gone_back_to(&record.event));
            if let Event::InterjectionQueued { id, text, .. } = &record.event {
                self.past.say(Some(*id), text);
            }
            if let Event::QuestionAnswered { text, .. } = &record.event {
                self.past.say(None, text);
            }
            if let Event::InterjectionWithdrawn { id, .. } = &record.event {
                self.past.last = self.past.last.take().filter(|(last, _)| *last != Some(*id));
            }
            self.fold(record);
        }
    }

    fn fold(&mut self, record: &Record) {
        let chronicle = &mut self.past.chronicle;
        let origin = lineage::origin(self.known.brought, record.seq);
        let goes_on = match &mut self.fold {
            Fold::Begins => {
                let begun = Run::begin(self.id.clone(), record);
                begun.map(|run| self.fold = Fold::Goes(Box::new(Folding::from(run, self.known.back.clone()))))
            }
            Fold::Goes(folding) => {
                folding.take(record, &mut |record, run, talk| chronicle.take(record, run, talk, origin))
            }
            Fold::Ended => Ok(()),
        };
        if goes_on.is_err() {
            self.fold = Fold::Ended;
        }
    }

    /// What all of it says; or, where it goes back to states that were not kept, or was brought from elsewhere, a reading
    /// that knows that and has to be given the whole journal again.
    pub fn end(self) -> Result<Past, Box<Reading>> {
        match self.met == self.known {
            true => Ok(self.past),
            false => Err(Box::new(Reading::knowing(self.id, self.met))),
        }
    }
}
