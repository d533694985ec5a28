//! The store on a disk: its contract, what a crash and damage leave of it, and how it is mended.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod homes;
mod skip;

mod store {
    mod beginning;
    mod contract;
    mod crash;
    mod damage;
    mod database;
    mod records;
    mod repair;
    mod small;
}
