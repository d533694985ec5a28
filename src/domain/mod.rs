//! Floor 0: the nouns of tiller, and the one fold.
//!
//! Nothing here does input or output, knows a clock, chance or the environment, or can hold a secret.
//! `event.rs` is all that can happen; `run.rs` is the state that a journal of events folds to.

// A new event must make the compiler point at every place that has to think about it.
#![deny(clippy::wildcard_enum_match_arm)]

pub mod approval;
pub mod asking;
pub mod budget;
pub mod calls;
pub mod cells;
pub mod changes;
pub mod claims;
pub mod code;
pub mod command;
pub mod context;
pub mod control;
pub mod daily;
pub mod deadline;
pub mod deep;
pub mod event;
pub mod fold;
pub mod guide;
pub mod id;
pub mod interpreters;
pub mod leave;
pub mod limits;
pub mod line;
pub mod lineage;
pub mod lookalike;
pub mod mark;
pub mod message;
pub mod model;
pub mod money;
pub mod outline;
pub mod pairing;
pub mod plan;
pub mod planning;
pub mod pool;
pub mod pricing;
pub mod progress;
pub mod restoring;
pub mod rule;
pub mod run;
pub mod sandbox;
pub mod saying;
pub mod snapshot;
pub mod standing;
pub mod status;
mod stored;
pub mod summary;
pub(crate) mod tagged;
pub mod terms;
pub mod text;
pub mod time;
pub mod tool;
pub mod trust;
pub mod visible;
pub mod windows;
