//! What a sabotaged harness does to a batch before it is appended, and to a run that was just folded.

use tiller::domain::event::Event;
use tiller::domain::event::Record;
use tiller::domain::id::Seq;
use tiller::domain::money::MicroUsd;
use tiller::domain::run::Run;

/// What the harness does wrong on purpose, to see the checker bite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sabotage {
    None,
    /// Work is started before its records are durable.
    StartBeforeAppend,
    /// After a crash, lost calls are run again as if that were nothing.
    RepeatDoubtfulByRule,
    /// After a crash, what was in flight is forgotten.
    ForgetRecovered,
    /// A batch is acknowledged and lost.
    DropBatch,
    /// After a crash, the call in flight is charged as nothing.
    FreeInterruptedCalls,
    /// An interjection is delivered once more.
    DeliverTwice,
    /// A reservation is settled twice, the second time under another name. Under its own it counts once.
    SettleTwice,
    /// A reservation is not settled.
    NeverSettle,
    /// A call gets two results.
    EndTwice,
    /// Less is charged than is owed.
    Undercharge,
    /// After a crash, denials are forgotten.
    ForgetDenials,
    /// After a crash, replans are counted from zero.
    ResetReplans,
    /// After a crash, an older snapshot of the run is believed rather than the journal.
    PreferSnapshot,
    /// A call runs although what it would touch is not what was decided about.
    HonourStale,
    /// A call that waits for a decision runs.
    RunUnasked,
    /// A call whose arguments the operator changed runs as the model asked for it.
    IgnoreEdits,
    /// What a durable record asks for is not started, now and then.
    ForgetWork,
    /// Records are shown before they are durable.
    PublishBeforeAppend,
    /// A client that comes back is not told what it missed.
    MissWhileAway,
}

impl Sabotage {
    pub const ALL: [Sabotage; 19] = [
        Sabotage::StartBeforeAppend,
        Sabotage::RepeatDoubtfulByRule,
        Sabotage::ForgetRecovered,
        Sabotage::DropBatch,
        Sabotage::FreeInterruptedCalls,
        Sabotage::DeliverTwice,
        Sabotage::SettleTwice,
        Sabotage::NeverSettle,
        Sabotage::EndTwice,
        Sabotage::Undercharge,
        Sabotage::ForgetDenials,
        Sabotage::ResetReplans,
        Sabotage::PreferSnapshot,
        Sabotage::HonourStale,
        Sabotage::RunUnasked,
        Sabotage::IgnoreEdits,
        Sabotage::ForgetWork,
        Sabotage::PublishBeforeAppend,
        Sabotage::MissWhileAway,
    ];

    /// What the checker, or the fold, must say of it.
    pub fn caught_as(self) -> &'static str {
        match self {
            Sabotage::None => "nothing is caught",
            Sabotage::StartBeforeAppend | Sabotage::HonourStale => "what it was about by then was never decided about",
            Sabotage::RepeatDoubtfulByRule => "ran 2 times and was allowed 1 times",
            Sabotage::ForgetRecovered => "is in flight, and [] is",
            Sabotage::DropBatch => "differs from the live run ",
            Sabotage::FreeInterruptedCalls | Sabotage::Undercharge => "the provider is owed ",
            Sabotage::DeliverTwice => ": the talk",
            Sabotage::SettleTwice => "for which nothing is reserved",
            Sabotage::NeverSettle => "a reservation for m2.1 while one for m1.1 is held",
            Sabotage::EndTwice => " ended before",
            Sabotage::ForgetDenials => "progress.denied",
            Sabotage::ResetReplans => "progress.replans",
            Sabotage::PreferSnapshot => "it should be number ",
            Sabotage::RunUnasked => "ran 1 times and was allowed 0 times",
            Sabotage::IgnoreEdits => "ran with arguments that are not what the operator made of them",
            Sabotage::ForgetWork => "] is in flight, and [] is",
            Sabotage::PublishBeforeAppend => "a client was shown record ",
            Sabotage::MissWhileAway => "a client can't go on: ",
        }
    }
}

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
