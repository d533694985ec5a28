//! The real program on the real store, ended in the middle: by SIGKILL after each record, at labelled points and at
//! random moments, and by a power cut. What must be so afterwards is compared with a world that counts
//! (docs/TESTING.md).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod chance;
mod power;
mod real;
mod wire;

#[path = "real/rehearsing.rs"]
mod rehearsing;
#[path = "real/showing.rs"]
mod showing;
#[path = "real/speaking.rs"]
mod speaking;
#[path = "kills/checker.rs"]
mod checker;
#[path = "kills/every_record.rs"]
mod every_record;
#[path = "kills/life.rs"]
mod life;
#[path = "kills/points.rs"]
mod points;
#[path = "kills/power_loss.rs"]
mod power_loss;
#[path = "kills/process.rs"]
mod process;
#[path = "kills/provider.rs"]
mod provider;
#[path = "kills/random.rs"]
mod random;
#[path = "kills/script.rs"]
mod script;
