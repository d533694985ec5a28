//! The driver under paused time: append, adopt, publish, start, and nothing in another order.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::result_large_err, clippy::indexing_slicing)]

mod chance;

#[path = "engine/ends.rs"]
mod ends;
#[path = "engine/money.rs"]
mod money;
#[path = "engine/ordinary.rs"]
mod ordinary;
#[path = "engine/rooms.rs"]
mod rooms;
#[path = "engine/screen.rs"]
mod screen;
#[path = "engine/soak.rs"]
mod soak;
#[path = "engine/stage.rs"]
mod stage;
#[path = "engine/trouble.rs"]
mod trouble;
#[path = "engine/words.rs"]
mod words;
