//! Floor 5: how a room talks to a run. A room sends commands and receives updates; it never touches the engine.

pub mod client;
