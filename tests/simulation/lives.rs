//! The lives: all of them must end well.
//!
//! `cargo test` plays a few hundred seeds and every crash boundary of some short runs. A night of it:
//! `TILLER_SEEDS=200000 cargo test --release --test simulation`. A failure names its seed and crash; play it
//! alone with `TILLER_LENGTH=<length> TILLER_SEED=<seed> TILLER_CRASH=<crash> cargo test --test simulation one_life -- --nocapture`.

use std::collections::BTreeSet;

use tiller::domain::event::Record;

use crate::simulation::life::Befallen;
use crate::simulation::life::Crash;
use crate::simulation::life::Failure;
use crate::simulation::life::Length;
use crate::simulation::life::Life;
use crate::simulation::life::Shape;
use crate::simulation::sabotage::Sabotage;
use crate::simulation::shrink::shrink;

/// Plays one life to its end; how many boundaries it had. The error is the checker's, with what it takes to see it
/// again, and the smallest life that was found to fail as well.
fn play(seed: u64, length: Length, crash: Crash, sabotage: Sabotage) -> Result<u32, String> {
    Life::new(seed, length, crash, sabotage).play().map_err(|why| explained(seed, length, crash, sabotage, &why))
}

/// The same of a life whose journal is wanted.
fn tell(seed: u64, length: Length, crash: Crash) -> Result<(Vec<Record>, Befallen), String> {
    let told = Life::new(seed, length, crash, Sabotage::None).tell();
    told.map_err(|why| explained(seed, length, crash, Sabotage::None, &why))
}

fn explained(seed: u64, length: Length, crash: Crash, sabotage: Sabotage, why: &str) -> String {
    let smallest = shrink(seed, Shape::of(length), crash, sabotage).map_or(String::new(), |smallest| {
        let Failure { why, killed_at, inputs } = &smallest.failure;
        let command = smallest.command(crash);
        format!("\nthe smallest like it: {inputs} inputs, killed at {killed_at:?}: {why}\nplay it alone: {command}")
    });
    format!(
        "seed {seed}, {length:?}, {crash:?}, {sabotage:?}: {why}\nplay it alone: TILLER_LENGTH={} TILLER_SEED={seed} \
         TILLER_CRASH={} cargo test --test simulation one_life{smallest}",
        length.word(),
        crash.number()
    )
}

fn from_env(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// A life that was printed as failing: whole, or made smaller.
#[test]
fn one_life() {
    let seed = from_env("TILLER_SEED").unwrap_or(1);
    let length = Length::parse(&std::env::var("TILLER_LENGTH").unwrap_or_default());
    let crash = from_env("TILLER_CRASH").map_or(Crash::Never, |at| Crash::from_number(u32::try_from(at).unwrap()));
    if let Some(loops) = from_env("TILLER_LOOPS") {
        let spared = std::env::var("TILLER_SPARE").unwrap_or_default();
        let spared = spared.split(',').filter_map(|at| at.parse().ok()).collect();
        let patience = from_env("TILLER_PATIENCE").and_then(|patience| u32::try_from(patience).ok()).unwrap_or(150);
        let shape = Shape { loops, patience, spared, check_every: 1, length };
        let failure = Life::shaped(seed, shape, crash, Sabotage::None).failure();
        assert!(failure.is_none(), "{failure:?}");
    } else {
        play(seed, length, crash, Sabotage::None).unwrap();
    }
}

#[test]
fn lives_without_a_crash_end_well() {
    for seed in 0..from_env("TILLER_SEEDS").unwrap_or(80) {
        play(seed, Length::Full, Crash::Never, Sabotage::None).unwrap();
    }
}

/// Everything happens in some of them, too.
#[test]
fn lives_with_crashes_at_random_end_well() {
    let (mut seen, mut refused) = (BTreeSet::new(), 0);
    for seed in 0..from_env("TILLER_SEEDS").unwrap_or(160) {
        let (records, befallen) = tell(seed, Length::Full, Crash::Often).unwrap();
        seen.extend(records.iter().map(|record| record.event.name()));
        refused += befallen.refused_writes;
    }
    let missing: Vec<&str> = SOMEWHERE.into_iter().filter(|name| !seen.contains(name)).collect();
    assert!(missing.is_empty(), "no life has {missing:?}");
    println!("the disk refused {refused} batches");
    assert!(refused > 60, "the disk refused only {refused} batches");
}

/// Work is left out and summarised, and the process dies before and after it was recorded.
#[test]
fn lives_killed_while_room_is_made_end_well() {
    let (mut both, mut killed) = (0, 0);
    for seed in 0..from_env("TILLER_SEEDS").unwrap_or(60) {
        let (records, befallen) = tell(seed, Length::Narrow, Crash::MakingRoom).unwrap();
        let has = |name: &str| records.iter().any(|record| record.event.name() == name);
        both += u32::from(has("context_pruned") && has("context_compacted"));
        killed += befallen.killed_making_room;
    }
    println!("{both} lives both left out and summarised; {killed} kills around that");
    assert!(both >= 20 && killed > 100, "only {both} lives and {killed} kills");
}

#[test]
fn short_lives_survive_a_crash_at_every_boundary() {
    let mut boundaries = 0;
    for seed in 1_000..1_000 + from_env("TILLER_SEEDS").unwrap_or(6) {
        let count = play(seed, Length::Short, Crash::Never, Sabotage::None).unwrap();
        for at in 0..count {
            play(seed, Length::Short, Crash::At(at), Sabotage::None).unwrap();
        }
        boundaries += count;
    }
    println!("{boundaries} boundaries");
    assert!(boundaries > 500, "only {boundaries} boundaries: the lives are too short to prove anything");
}

/// Lives that failed once, each by a fault of its own.
#[test]
fn lives_that_failed_once_end_well() {
    // Room was demanded, and the run failed of something else before it was made: after a retry it was made for ever.
    play(1_350, Length::Short, Crash::At(56), Sabotage::None).unwrap();
}

/// What happens in some of the lives. Going back, branching off and correcting a charge is for the golden journals.
const SOMEWHERE: [&str; 44] = [
    "run_created",
    "owner_acquired",
    "status_changed",
    "control_requested",
    "recovered",
    "preflight_failed",
    "iteration_started",
    "interjection_queued",
    "interjection_delivered",
    "interjection_withdrawn",
    "budget_reserved",
    "budget_settled",
    "budget_raised",
    "price_chosen",
    "model_call_started",
    "model_call_finished",
    "model_call_failed",
    "context_pruned",
    "context_compacted",
    "retry_scheduled",
    "tool_call_proposed",
    "tool_call_prepared",
    "approval_requested",
    "approval_decided",
    "approval_invalidated",
    "trust_changed",
    "tool_call_started",
    "tool_call_finished",
    "tool_call_probed",
    "tool_outcome_resolved",
    "question_answered",
    "plan_updated",
    "done_claimed",
    "check_started",
    "acceptance_checked",
    "check_interrupted",
    "claim_judged",
    "confirmation_requested",
    "confirmation_given",
    "replans_granted",
    "progress_observed",
    "stall_detected",
    "warned",
    "iteration_closed",
];

/// Each sabotage is caught as what it is: a life that goes wrong in another way proves nothing.
#[test]
fn the_checker_bites() {
    for sabotage in Sabotage::ALL {
        let why = (0..400).find_map(|seed| Life::new(seed, Length::Full, Crash::Often, sabotage).play().err());
        let why = why.unwrap_or_else(|| panic!("{sabotage:?} was never caught"));
        println!("{sabotage:?}: {why}");
        assert!(why.contains(sabotage.caught_as()), "{sabotage:?} was caught as: {why}");
    }
}

#[test]
fn a_failing_life_is_made_smaller() {
    let (crash, sabotage, whole) = (Crash::Often, Sabotage::FreeInterruptedCalls, Shape::of(Length::Full));
    let fails = |seed: &u64| Life::shaped(*seed, whole.clone(), crash, sabotage).failure().is_some();
    let seed = (0..400).find(fails).unwrap();
    let first = Life::shaped(seed, whole.clone(), crash, sabotage).failure().unwrap();
    let smallest = shrink(seed, whole, crash, sabotage).unwrap();
    println!("{first:?}\n{smallest:?}\n{}", smallest.command(crash));
    assert!(smallest.failure.inputs <= first.inputs && smallest.failure.killed_at.len() <= first.killed_at.len());
    let again = Life::shaped(seed, smallest.shape.clone(), crash, sabotage).failure().unwrap();
    assert_eq!((again.why, again.inputs), (smallest.failure.why, smallest.failure.inputs));
}
