//! What a sabotaged harness does to a batch before it is appended, and to a run that was just folded.

use tiller::domain::event::Event;
use tiller::domain::event::Record;
use tiller::domain::id::Seq;
use tiller::domain::money::MicroUsd;
use tiller::domain::run::Run;

use crate::simulation::life::Sabotage;

/// The batch as the sabotage has it, if it changes batches; numbered without a gap again.
pub fn rewrite(sabotage: Sabotage, records: &[Record]) -> Option<Vec<Record>> {
    let times: fn(&Event) -> usize = match sabotage {
        Sabotage::SettleTwice => |event| if matches!(event, Event::BudgetSettled { .. }) { 2 } else { 1 },
        Sabotage::NeverSettle => |event| usize::from(!matches!(event, Event::BudgetSettled { .. })),
        Sabotage::EndTwice => |event| if matches!(event, Event::ToolCallFinished { .. }) { 2 } else { 1 },
        Sabotage::Undercharge => |_| 1,
        _ => return None,
    };
    let first = records.first()?.seq.0;
    let mut rewritten: Vec<Record> =
        records.iter().flat_map(|record| std::iter::repeat_n(record.clone(), times(&record.event))).collect();
    let mut settled = None;
    for (record, seq) in rewritten.iter_mut().zip(first..) {
        record.seq = Seq(seq);
        if let Event::BudgetSettled { id, .. } = &mut record.event {
            if settled == Some(*id) {
                id.attempt += 1;
            }
            settled = Some(*id);
        }
        if let (Event::BudgetSettled { charge, .. }, Sabotage::Undercharge) = (&mut record.event, sabotage) {
            charge.amount = MicroUsd(0);
        }
    }
    Some(rewritten)
}

/// The run after a rewritten batch. The error is the fold's, which is one of those that must notice.
pub fn adopt(run: &Run, records: &[Record]) -> Result<Run, String> {
    let mut run = run.clone();
    for record in records {
        run.apply(record).map_err(|broken| broken.to_string())?;
    }
    Ok(run)
}

/// A new process does not know what the journal says.
pub fn forget(sabotage: Sabotage, run: &mut Run, snapshot: &Run) {
    match sabotage {
        Sabotage::ForgetDenials => run.progress.denied.clear(),
        Sabotage::ResetReplans => run.progress.replans = 0,
        Sabotage::PreferSnapshot => *run = snapshot.clone(),
        _ => {}
    }
}
