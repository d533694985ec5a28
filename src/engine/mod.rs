//! Floor 4: the only place that owns tasks, time and order.

pub mod clock;
pub mod driver;
pub mod durable;
pub mod fault;
pub mod handle;
pub mod redaction;
pub mod purse;
pub mod rulebook;
pub mod tasks;
