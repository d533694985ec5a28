//! Files put back after a rewind, one by one: recorded, done, recorded (docs/ENGINE.md §15). What was done when the
//! process dies is found out by looking at the file, so the same command finishes what is left.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::path::Path;

use crate::domain::event::Record;
use crate::domain::id::ClientId;
use crate::domain::lineage::Behind;
use crate::domain::restoring::Restore;
use crate::domain::restoring::Way;
use crate::domain::run::Run;
use crate::headless::output;
use crate::headless::restoring::told;
use crate::held::Held;
use crate::launch::Ground;
use crate::machine::restoring;
use crate::policy::restoring::restores;
use crate::tools::Scene;
use crate::tools::restore;

/// A run that went back, and its journal.
pub struct Standing<'a> {
    /// The run.
    pub held: Held<'a>,
    /// Its records.
    pub records: Vec<Record>,
    /// What the calls after the place did.
    pub behind: Behind,
}

/// Where the files of a run are, and what can be done about each that was written after the place.
pub fn look(ground: &Ground, standing: &Standing<'_>) -> anyhow::Result<(Scene, Vec<Restore>)> {
    let (run, behind) = (standing.held.run(), &standing.behind);
    let scene = ground.scene(Some(&run.id), Path::new(&run.terms.workspace))?;
    let writes = || behind.deeds.iter().filter_map(|deed| deed.write.as_ref());
    let there: BTreeMap<_, _> =
        writes().map(|write| (write.path.clone(), restore::there(&scene, &write.path))).collect();
    let hashes = writes().filter_map(|write| write.before.clone());
    let kept: BTreeSet<String> = hashes.filter(|hash| restore::is_kept(&scene, hash)).collect();
    Ok((scene, restores(&behind.deeds, &there, &kept)))
}

/// Puts back what can be put back, and says of each what became of it. Gives how many files are not as
/// they were before the first of these calls.
pub async fn carry_out(ground: &Ground, standing: &mut Standing<'_>, client: &ClientId) -> anyhow::Result<usize> {
    let (scene, all) = look(ground, standing)?;
    let open = restoring::unfinished(&standing.records);
    let mut left: BTreeMap<&str, bool> = BTreeMap::new();
    for one in &all {
        let is_open = open.contains(&one.call);
        let failure = match &one.way {
            Way::PutBack | Way::Remove => {
                let mut run = standing.held.run().clone();
                let now = ground.still(&run);
                let record = restoring::start(&mut run, one, client, now)?;
                standing.append(run, record).await?;
                restore::put_back(&scene, &one.write).err()
            }
            Way::AsBefore | Way::Not(_) if !is_open => {
                left.insert(&one.write.path, one.way != Way::AsBefore);
                output::put(&told(one, &standing.held.run().terms.workspace, None));
                continue;
            }
            // It was being put back when the process died: now it shows whether it was.
            Way::AsBefore => None,
            Way::Not(why) => Some(why.clone()),
        };
        left.insert(&one.write.path, failure.is_some());
        let mut run = standing.held.run().clone();
        let now = ground.still(&run);
        let record = restoring::finish(&mut run, one, failure.clone(), now)?;
        standing.append(run, record).await?;
        output::put(&told(one, &standing.held.run().terms.workspace, failure.as_deref()));
    }
    Ok(left.values().filter(|is_left| **is_left).count())
}

impl Standing<'_> {
    async fn append(&mut self, run: Run, record: Record) -> anyhow::Result<()> {
        self.held.record(run, vec![record.clone()]).await?;
        self.records.push(record);
        Ok(())
    }
}
