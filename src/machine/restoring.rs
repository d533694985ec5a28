//! Putting files back, as records: one before it is tried, one when it has ended (docs/ENGINE.md §15). It looks at no
//! file: the roof puts them back in between.

use std::collections::BTreeMap;

use crate::domain::command::Refusal;
use crate::domain::event::Event;
use crate::domain::event::Record;
use crate::domain::fold::Broken;
use crate::domain::id::CallId;
use crate::domain::id::ClientId;
use crate::domain::restoring::Restore;
use crate::domain::run::Run;
use crate::domain::time::Now;
use crate::machine::fold_in;

/// A file is about to be put back. Refused while the run is not parked.
pub fn start(run: &mut Run, restore: &Restore, client: &ClientId, now: Now) -> Result<Record, Refusal> {
    let write = Box::new(restore.write.clone());
    record(run, Event::RestoreStarted { call: restore.call, write, by: client.clone() }, now)
}

/// It was put back, or why not.
pub fn finish(run: &mut Run, restore: &Restore, failure: Option<String>, now: Now) -> Result<Record, Refusal> {
    let path = restore.write.path.clone();
    record(run, Event::RestoreFinished { call: restore.call, path, failure }, now)
}

/// The calls whose files were about to be put back when the process died: nobody recorded what became of it.
pub fn unfinished(records: &[Record]) -> Vec<CallId> {
    let mut open = BTreeMap::new();
    for record in records {
        if let Event::RestoreStarted { call, .. } = &record.event {
            open.insert(*call, record.seq);
        }
        if let Event::RestoreFinished { call, .. } = &record.event {
            open.remove(call);
        }
    }
    open.into_keys().collect()
}

fn record(run: &mut Run, event: Event, now: Now) -> Result<Record, Refusal> {
    fold_in(run, event, now).map_err(|broken: Broken| Refusal::Broken(broken.to_string()))
}
