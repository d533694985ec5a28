//! What a folder, a file and another user can and can't do to a run: trust of repositories, secrets, rights, and files
//! that change while they are decided about. Each protection is tried next to a way that has none, which must be caught.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod attacker;
mod real;
mod skip;

mod trust {
    mod cases;
    mod permissions;
    mod races;
    mod repository;
    mod secrets;
    mod start;
    mod world;
}
