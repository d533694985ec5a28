//! Seeded lives of runs, in worlds where everything misbehaves, with the process killed at any boundary.
//!
//! `cargo test` plays a few hundred seeds and every crash boundary of some short runs. A night of it:
//! `TILLER_SEEDS=200000 cargo test --release --test simulation`. A failure names its seed and crash; play it alone
//! with `TILLER_SEED=<seed> TILLER_CRASH=<crash> cargo test --test simulation one_life -- --nocapture`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod sim;

use sim::life::Crash;
use sim::life::Life;
use sim::life::Sabotage;

/// Plays one life to its end. The error is the checker's, with the last records.
fn play(seed: u64, crash: Crash, sabotage: Sabotage) -> Result<u32, String> {
    Life::new(seed, crash, sabotage).play().map_err(|why| {
        format!(
            "seed {seed}, {crash:?}, {sabotage:?}: {why}\nplay it alone: TILLER_SEED={seed} TILLER_CRASH={} cargo test --test simulation one_life",
            crash.number()
        )
    })
}

fn from_env(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

#[test]
fn one_life() {
    let seed = from_env("TILLER_SEED").unwrap_or(1);
    let crash = from_env("TILLER_CRASH").map_or(Crash::Never, |at| Crash::from_number(u32::try_from(at).unwrap()));
    play(seed, crash, Sabotage::None).unwrap();
}

#[test]
fn lives_without_a_crash_end_well() {
    for seed in 0..from_env("TILLER_SEEDS").unwrap_or(300) {
        play(seed, Crash::Never, Sabotage::None).unwrap();
    }
}

#[test]
fn lives_with_crashes_at_random_end_well() {
    for seed in 0..from_env("TILLER_SEEDS").unwrap_or(400) {
        play(seed, Crash::Often, Sabotage::None).unwrap();
    }
}

#[test]
fn short_lives_survive_a_crash_at_every_boundary() {
    let mut boundaries = 0;
    for seed in 1_000..1_012 {
        let count = play(seed, Crash::Never, Sabotage::None).unwrap();
        for at in 0..count {
            play(seed, Crash::At(at), Sabotage::None).unwrap();
        }
        boundaries += count;
    }
    assert!(boundaries > 500, "only {boundaries} boundaries: the lives are too short to prove anything");
}

#[test]
fn the_checker_bites() {
    for sabotage in Sabotage::ALL {
        let caught = (0..400).find_map(|seed| play(seed, Crash::Often, sabotage).err());
        assert!(caught.is_some(), "{sabotage:?} was never caught");
    }
}
