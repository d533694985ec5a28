//! Floor 4: the only place that owns tasks, time and order.

pub mod handle;
