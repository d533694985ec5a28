//! Shell lines: how they are read, which run unasked, and that these do nothing but read.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![cfg(target_os = "linux")]

mod chance;

mod lines {
    mod cases;
    mod configured;
    mod history;
    mod mutations;
    mod options;
    mod price;
    mod running;
    mod stage;
}
