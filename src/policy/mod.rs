//! Floor 1: judgements. Each reads a run and gives a verdict; none changes anything or knows a clock.

// A new event must make the compiler point at every place that has to think about it.
#![deny(clippy::wildcard_enum_match_arm)]

pub mod catastrophe;
pub mod charge;
pub mod claim;
pub mod compaction;
pub mod context;
pub mod deadline;
pub mod decider;
pub mod editing;
pub mod ending;
pub mod grave;
pub mod judge;
pub mod keeping;
pub mod naming;
pub mod noise;
pub mod offering;
pub mod permission;
pub mod notice;
pub mod plan_edit;
pub mod plan_items;
pub mod plan_text;
pub mod planning;
pub mod progress;
pub mod replan;
pub mod pruning;
pub mod reply;
pub mod restoring;
pub mod retry;
pub mod rules;
pub mod runners;
pub mod schema;
pub mod spending;
pub mod stall;
pub mod table;
pub mod undoing;
pub mod wrapping;
