//! Seeded lives of runs, in worlds where everything misbehaves, with the process killed at any boundary; and what
//! journals fold to, simulated ones and those that older versions wrote (docs/TESTING.md).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod chance;
mod real;

#[path = "real/allowing.rs"]
mod allowing;
#[path = "real/rehearsing.rs"]
mod rehearsing;
#[path = "real/showing.rs"]
mod showing;
#[path = "simulation/checker.rs"]
mod checker;
#[path = "simulation/client.rs"]
mod client;
#[path = "simulation/flying.rs"]
mod flying;
#[path = "simulation/golden.rs"]
mod golden;
#[path = "simulation/journals.rs"]
mod journals;
#[path = "simulation/kind.rs"]
mod kind;
#[path = "simulation/life.rs"]
mod life;
#[path = "simulation/lineage.rs"]
mod lineage;
#[path = "simulation/lives.rs"]
mod lives;
#[path = "simulation/making.rs"]
mod making;
#[path = "simulation/operator.rs"]
mod operator;
#[path = "simulation/sabotage.rs"]
mod sabotage;
#[path = "simulation/shrink.rs"]
mod shrink;
#[path = "simulation/snapshots.rs"]
mod snapshots;
#[path = "simulation/speaker.rs"]
mod speaker;
#[path = "simulation/world.rs"]
mod world;
