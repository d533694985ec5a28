//! Floor 1: judgements. Each reads a run and gives a verdict; none changes anything or knows a clock.

// A new event must make the compiler point at every place that has to think about it.
#![deny(clippy::wildcard_enum_match_arm)]

pub mod charge;
pub mod claim;
pub mod compaction;
pub mod context;
pub mod ending;
pub mod permission;
pub mod planning;
pub mod progress;
pub mod pruning;
pub mod reply;
pub mod retry;
pub mod spending;
