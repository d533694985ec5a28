//! The tools as the engine calls them, on real files and with a real shell.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod tools {
    mod checks;
    mod running;
    mod shell;
}
