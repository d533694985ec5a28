//! Reading back texts of the conversation that are left to the records. It holds one page of records at a time.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::domain::event::Event;
use crate::domain::event::Record;
use crate::domain::id::Seq;
use crate::domain::limits;
use crate::domain::message::Entry;
use crate::domain::outline::Outline;
use crate::domain::outline::TextPlace;
use crate::store::Reader;

/// The text at a place. Errors, as the end of a sentence, when it can't be read.
pub async fn text(reader: &dyn Reader, place: &TextPlace) -> Result<String, String> {
    let mut pages = Pages { reader, last: place.record(), page: Vec::new() };
    place.text(pages.event(place.record()).await?)
}

/// These entries with all their texts. Errors, as the end of a sentence, when one can't be read.
pub async fn whole(reader: &dyn Reader, outlines: &[Outline]) -> Result<Vec<Arc<Entry>>, String> {
    let last = outlines.iter().flat_map(Outline::records).max().unwrap_or_default();
    let mut pages = Pages { reader, last, page: Vec::new() };
    let mut entries = Vec::new();
    for outline in outlines {
        let mut events = BTreeMap::new();
        for seq in outline.records() {
            events.insert(seq, pages.event(seq).await?);
        }
        entries.push(outline.whole(|seq| events.remove(&seq))?);
    }
    Ok(entries)
}

/// A journal that is read more or less in order.
struct Pages<'a> {
    reader: &'a dyn Reader,
    /// No later record is asked for.
    last: Seq,
    page: Vec<Record>,
}

impl Pages<'_> {
    async fn event(&mut self, seq: Seq) -> Result<Event, String> {
        if self.find(seq).is_none() {
            let left = usize::try_from(self.last.0.saturating_sub(seq.0)).unwrap_or(usize::MAX).saturating_add(1);
            let most = left.min(limits::RECORDS_PER_UPDATE);
            self.page = self.reader.read(seq, most).await.map_err(|error| error.to_string())?;
        }
        self.find(seq).map(|record| record.event.clone()).ok_or_else(|| format!("record {seq} is missing"))
    }

    fn find(&self, seq: Seq) -> Option<&Record> {
        let first = self.page.first()?.seq;
        self.page.get(usize::try_from(seq.0.checked_sub(first.0)?).ok()?).filter(|record| record.seq == seq)
    }
}
