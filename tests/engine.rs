//! The driver under paused time: append, adopt, publish, start, and nothing in another order.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::result_large_err, clippy::indexing_slicing)]

mod chance;

mod engine {
    mod ends;
    mod money;
    mod ordinary;
    mod rooms;
    mod screen;
    mod soak;
    mod stage;
    mod trouble;
    mod words;
}
