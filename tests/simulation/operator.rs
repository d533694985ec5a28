//! An operator who approves, refuses, pauses, speaks, raises the budget and sometimes has enough.

use tiller::domain::approval::Decision;
use tiller::domain::approval::Resolution;
use tiller::domain::budget::Axis;
use tiller::domain::budget::Limit;
use tiller::domain::command::Cancel;
use tiller::domain::command::Command;
use tiller::domain::command::Pause;
use tiller::domain::command::Policy;
use tiller::domain::id::InterjectionId;
use tiller::domain::run::Run;
use tiller::domain::run::Waits;
use tiller::domain::status::ParkReason;
use tiller::domain::status::Status;
use tiller::domain::tool::Digest;
use tiller::domain::trust::Trust;
use tiller::policy::plan_edit;

use crate::chance::Chance;
use crate::simulation::speaker;

/// Changes of the plan, some of which do not fit.
const PLAN_EDITS: [&str; 9] = [
    "add mind the gap",
    "done t1",
    "drop t2",
    "open t1",
    "now t3",
    "edit t1 otherwise",
    "move t2 1",
    "move t1 7",
    "drop zz",
];

/// How much of a life the operator has patience for.
pub struct Operator {
    pub patience: u32,
}

impl Operator {
    /// Something said or done out of the blue, while the run runs.
    pub fn whim(&mut self, chance: &mut Chance) -> Option<Command> {
        match chance.below(120) {
            0 | 1 => Some(Command::Interject { text: "mind the tests".to_string(), policy: policy(chance) }),
            12 => Some(Command::Withdraw(InterjectionId(1 + u32::try_from(chance.below(4)).unwrap()))),
            2 => Some(Command::Pause(Pause::AfterTool)),
            3 => Some(Command::Pause(Pause::Now)),
            4 => Some(Command::Leave),
            5 if chance.percent(20) => Some(Command::Cancel(Cancel::Graceful)),
            6 => Some(Command::Raise { axis: Axis::Cost, limit: Limit::At(1) }),
            7 => Some(Command::Resume),
            8 | 9 => plan_edit::read(chance.pick(&PLAN_EDITS)).ok().map(Command::EditPlan),
            10 => Some(Command::SetTrust(chance.pick(&Trust::ALL))),
            11 => Some(Command::Pause(Pause::AfterIteration)),
            _ => None,
        }
    }

    /// What is done about a run that has come to rest.
    pub fn tend(&mut self, run: &Run, chance: &mut Chance) -> Command {
        if self.patience == 0 {
            return Command::Cancel(Cancel::Now);
        }
        self.patience -= 1;
        if let Some((call, waits)) = run.waiting().first() {
            let digest = call.digest().unwrap_or(Digest(String::new()));
            let id = call.id;
            return match waits {
                Waits::Decision if chance.percent(5) => {
                    Command::Decide { call: id, digest: Digest("stale".to_string()), decision: Decision::AllowOnce }
                }
                Waits::Decision if chance.percent(10) => Command::AllowAll { calls: vec![(id, digest)] },
                Waits::Decision if chance.percent(10) => {
                    // Fits every tool.
                    let (file, word) = (chance.below(3), if chance.percent(30) { "right" } else { "wrong" });
                    let arguments =
                        format!(r#"{{"path":"edited{file}","content":"{word} {file}","command":"do it otherwise"}}"#);
                    let decision = Decision::Edit(arguments);
                    Command::Decide { call: id, digest, decision }
                }
                Waits::Decision => Command::Decide { call: id, digest, decision: decision(chance) },
                Waits::Outcome => Command::Resolve { call: id, resolution: resolution(chance) },
                Waits::Answer => Command::Answer { call: id, text: "this one".to_string() },
            };
        }
        if let Some(claim) = run.claim_digest() {
            return Command::Confirm { claim, confirmed: chance.percent(80), text: "so I see it".to_string() };
        }
        match &run.status {
            Status::Parked(_) if chance.percent(2) => Command::Accept,
            Status::Parked(_) if chance.percent(2) => Command::Close,
            Status::Parked(ParkReason::Stalled(_)) if run.needs_grant() => Command::GrantReplans,
            Status::Parked(ParkReason::Budget(axis)) if chance.percent(50) => {
                Command::Raise { axis: *axis, limit: Limit::At(run.pool.used(*axis) + 40_000) }
            }
            Status::Parked(ParkReason::PriceUnknown) => {
                Command::Price { price: chance.percent(50).then_some(speaker::PRICE) }
            }
            Status::Parked(ParkReason::ContextExhausted) if chance.percent(50) => Command::Cancel(Cancel::Now),
            _ => Command::Resume,
        }
    }
}

fn policy(chance: &mut Chance) -> Policy {
    chance.pick(&Policy::ALL)
}

fn decision(chance: &mut Chance) -> Decision {
    match chance.below(10) {
        0..=6 => Decision::AllowOnce,
        7 if chance.percent(50) => Decision::AllowTool,
        7 => Decision::AllowRun,
        8 => Decision::Deny(String::new()),
        _ => Decision::Deny("not like this".to_string()),
    }
}

fn resolution(chance: &mut Chance) -> Resolution {
    match chance.below(4) {
        0 => Resolution::Happened("seen".to_string()),
        1 => Resolution::NotHappened,
        2 => Resolution::RunAgain,
        _ => Resolution::Skip,
    }
}
