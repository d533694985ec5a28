//! Standing rules: what they cover and what not, and the file that they are kept in.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod chance;

mod rules {
    mod cases;
    mod chances;
    mod file;
    mod line;
    mod paths;
    mod spellings;
    mod stage;
}
