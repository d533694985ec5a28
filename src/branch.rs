//! Going back in a run that no process holds, and branching off from one (docs/ENGINE.md §15).
//!
//! A fork reads its parent in a copy and writes only what is its own; it must not change the parent.

use crate::branch::restoring::Standing;
use crate::cli::Order;
use crate::cli::lineage::Branch;
use crate::domain::budget::Limit;
use crate::domain::event::OwnerMode;
use crate::domain::id::ClientId;
use crate::domain::id::RunId;
use crate::domain::id::Seq;
use crate::domain::lineage::Behind;
use crate::domain::lineage::behind;
use crate::domain::run::Run;
use crate::domain::terms::Goal;
use crate::domain::terms::Terms;
use crate::domain::time::Now;
use crate::engine::fault;
use crate::engine::fault::Side;
use crate::headless::deeds;
use crate::headless::exit;
use crate::headless::exit::Obstacle;
use crate::headless::output;
use crate::headless::restoring::offered;
use crate::held;
use crate::held::Held;
use crate::launch;
use crate::launch::Ground;
use crate::launch::owner;
use crate::machine::Input;
use crate::machine::lineage;
use crate::machine::lineage::Rewound;
use crate::machine::turn;
use crate::order;
use crate::rehearsal;
use crate::store::look::Survey;

pub mod restoring;

/// What branching off does, whoever asks for it.
pub const FORK_DOES: &str = "It begins with a copy of what came up to the end of that iteration. Its limits count anew, \
                             nothing is allowed in advance, and files are as they are now.";

/// Does it, and gives the exit status.
pub async fn carry_out(ground: &Ground, what: Branch) -> anyhow::Result<u8> {
    match what {
        Branch::Retry { run } => {
            let run = order::carry_out(ground, &run, Order::Retry).await?;
            output::put(&format!("recorded · attempt {} · {}", run.attempt, ground.parting(&run)));
        }
        Branch::Rewind { run, iteration, restore } => {
            let (mut standing, told) = rewind(ground, &run, iteration, &held::client()).await?;
            output::put(&told);
            let mut left = 0;
            if restore {
                // What becomes of each file is said below, once.
                output::put(&deeds::behind(&standing.behind.without_files()));
                left = restoring::carry_out(ground, &mut standing, &held::client()).await?;
            } else {
                output::put(&deeds::behind(&standing.behind));
                let (_, files) = restoring::look(ground, &standing)?;
                output::put(&offered(standing.held.run(), iteration, &files));
            }
            output::put(&ground.parting(&standing.held.let_go().await));
            return Ok(if left == 0 { 0 } else { exit::STOPPED });
        }
        Branch::Fork { run, iteration, goal } => {
            let (run, told) = fork(ground, &run, iteration, goal, &held::client())?;
            output::put(&format!("{told}{}", ground.parting(&run)));
        }
    }
    Ok(0)
}

/// Goes back to the end of an iteration. Gives the run, still held with what was not undone, and what is to be
/// told of it. Errors when it is held, or refuses.
pub async fn rewind<'a>(
    ground: &'a Ground,
    prefix: &str,
    iteration: u32,
    client: &ClientId,
) -> anyhow::Result<(Standing<'a>, String)> {
    let id = ground.home.find(prefix)?;
    let opened = ground.home.open(&id).await?;
    let mut records = opened.records;
    let stored = records.len();
    let run = launch::fold(&id, &records)?;
    let mut held = Held::new(ground, run.clone(), opened.journal);
    let taken = Input::Recovered { owner: owner(OwnerMode::Records), lacks: Vec::new() };
    let turned = turn(&run, &taken, ground.still(&run))?;
    records.extend(turned.records);
    let now = ground.still(&turned.run);
    let Rewound { run, records: written, behind } = lineage::rewind(&turned.run, &records, iteration, client, now)
        .map_err(|refusal| order::naming(refusal.into(), &id))?;
    records.extend(written);
    held.record(run, records.get(stored..).unwrap_or_default().to_vec()).await?;
    ground.home.keep_summary(held.run());
    let told = format!(
        "run {} is back at the end of iteration {iteration}; what came after it is hidden, not removed\n",
        id.short()
    );
    Ok((Standing { held, records, behind }, told))
}

/// What a step does not undo, whoever asks for it; that there is nothing is said, too.
pub fn after_it(behind: &Behind) -> String {
    let text = deeds::behind(behind);
    if text.is_empty() { "Nothing that came after it changed anything.\n".to_string() } else { text }
}

/// That a place to branch off from may be in what is lost of a damaged run; nothing where nothing is lost.
fn lost(parent: &RunId, survey: &Survey) -> Option<anyhow::Error> {
    let short = parent.short();
    let why = match (survey.newer, survey.flaws.first()) {
        (Some(found), _) => format!("the rest {found}"),
        (None, Some(flaw)) => format!("{}; `tiller repair {short}` tries to mend it", flaw.phrase()),
        (None, None) => return None,
    };
    let read = survey.records.len();
    let read = if read == 0 {
        "no record of it can be read".to_string()
    } else {
        format!("it can be read up to record {read} only, and no such iteration ends there")
    };
    Some(Obstacle::Lost(format!("run {short} is damaged: {read}; nothing was branched off; {why}")).into())
}

/// Branches off after an iteration, the last closed one if none is named. Gives the new run, which nobody holds, and what
/// is to be told of it. Errors when the parent is held or can't be read.
pub fn fork(
    ground: &Ground,
    prefix: &str,
    asked: Option<u32>,
    goal: Option<Goal>,
    client: &ClientId,
) -> anyhow::Result<(Run, String)> {
    let parent = ground.home.find(prefix)?;
    let survey = ground.home.survey(&parent)?;
    let (beginning, iteration) = lineage::beginning(&survey.records, asked)
        .map_err(|refusal| lost(&parent, &survey).unwrap_or(refusal.into()))?;
    let after = behind(&survey.records, beginning.last().map_or(Seq(0), |record| record.seq));
    let lines = survey.lines.get(..beginning.len()).unwrap_or_default();
    let child = launch::new_id()?;
    let past = launch::fold(&child, beginning)?;
    let stands = launch::fold(&parent, &survey.records)?;
    let mut terms = Terms::clone(&past.terms);
    terms.goal = goal.unwrap_or(terms.goal);
    // Limits count anew: a deadline is as long after the start as the parent's was.
    if let Limit::At(at) = terms.limits.deadline {
        terms.limits.deadline = Limit::At(ground.clock.now().0.saturating_add(at.saturating_sub(past.created.0)));
    }
    let redactor = ground.redactor(terms.model.key_variable.as_deref())?;
    let mut terms = launch::clean(&redactor, terms)?;
    let (from, to) = (ground.home.run_dir(&parent), ground.home.run_dir(&child));
    if terms.rehearsal {
        if !rehearsal::workspace(&from).is_dir() {
            let gone = format!(
                "the scratch folder of run {}, {}, is gone; nothing was branched off; start another rehearsal",
                parent.short(),
                rehearsal::workspace(&from).display()
            );
            return Err(Obstacle::Stopped(gone).into());
        }
        rehearsal::move_in(&from, &to, &mut terms);
    }
    let is_rehearsal = terms.rehearsal;
    let now = Now { at: ground.clock.now(), ..Now::default() };
    let (run, record) = lineage::fork(past, &stands, iteration, terms, client, now)?;
    let own = std::slice::from_ref(&record);
    fault::batch(Side::Before, own);
    ground.home.branch(&run, lines, &record)?;
    fault::batch(Side::After, own);
    if is_rehearsal {
        rehearsal::copy(&from, &to).map_err(|error| Obstacle::Stopped(format!("{error:#}")))?;
    }
    let told = format!(
        "run {child} branches off from run {} after its iteration {iteration} (trust is {})\n{FORK_DOES}\n{}",
        parent.short(),
        run.trust,
        after_it(&after),
    );
    Ok((run, told))
}
