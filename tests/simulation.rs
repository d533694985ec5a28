//! Seeded lives of runs, in worlds where everything misbehaves, with the process killed at any boundary.
//!
//! `cargo test` plays a few hundred seeds and every crash boundary of some short runs. A night of it:
//! `TILLER_SEEDS=200000 cargo test --release --test simulation`. A failure names its seed and crash; play it alone
//! with `TILLER_SEED=<seed> TILLER_CRASH=<crash> cargo test --test simulation one_life -- --nocapture`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod sim;

use sim::life::Crash;
use sim::life::Length;
use sim::life::Life;
use sim::life::Sabotage;

/// Plays one life to its end. The error is the checker's, with what it takes to see it again.
fn play(seed: u64, length: Length, crash: Crash, sabotage: Sabotage) -> Result<u32, String> {
    Life::new(seed, length, crash, sabotage).play().map_err(|why| {
        let short = if length == Length::Short { "TILLER_SHORT=1 " } else { "" };
        format!(
            "seed {seed}, {length:?}, {crash:?}, {sabotage:?}: {why}\nplay it alone: {short}TILLER_SEED={seed} TILLER_CRASH={} \
             cargo test --test simulation one_life",
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
    let length = if from_env("TILLER_SHORT").is_some() { Length::Short } else { Length::Full };
    let crash = from_env("TILLER_CRASH").map_or(Crash::Never, |at| Crash::from_number(u32::try_from(at).unwrap()));
    play(seed, length, crash, Sabotage::None).unwrap();
}

#[test]
fn lives_without_a_crash_end_well() {
    for seed in 0..from_env("TILLER_SEEDS").unwrap_or(200) {
        play(seed, Length::Full, Crash::Never, Sabotage::None).unwrap();
    }
}

#[test]
fn lives_with_crashes_at_random_end_well() {
    for seed in 0..from_env("TILLER_SEEDS").unwrap_or(300) {
        play(seed, Length::Full, Crash::Often, Sabotage::None).unwrap();
    }
}

#[test]
fn short_lives_survive_a_crash_at_every_boundary() {
    let mut boundaries = 0;
    for seed in 1_000..1_000 + from_env("TILLER_SEEDS").unwrap_or(10) {
        let count = play(seed, Length::Short, Crash::Never, Sabotage::None).unwrap();
        for at in 0..count {
            play(seed, Length::Short, Crash::At(at), Sabotage::None).unwrap();
        }
        boundaries += count;
    }
    println!("{boundaries} boundaries");
    assert!(boundaries > 500, "only {boundaries} boundaries: the lives are too short to prove anything");
}

#[test]
fn the_checker_bites() {
    for sabotage in Sabotage::ALL {
        let caught = (0..400).find_map(|seed| play(seed, Length::Full, Crash::Often, sabotage).err());
        assert!(caught.is_some(), "{sabotage:?} was never caught");
        println!("{}", caught.unwrap_or_default());
    }
}
