//! Boxes: what a hostile command can do without one, and can't do in one. Every attack is tried both ways.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod attacker;
mod real;
mod skip;

mod boxes {
    mod attacks;
    mod cases;
    mod files;
    mod gits;
    mod holds;
    mod levels;
    mod mends;
    mod processes;
    mod races;
    mod stage;
    mod terminals;
    mod unasked;
    mod unseen;
}
