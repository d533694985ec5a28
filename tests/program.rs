//! The real program, with everything around it as a user has it: commands, keys in a terminal, files, a store and
//! models that speak a script; and what it reads from its user, line by line.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod chance;
mod homes;
mod real;
mod skip;
mod wire;

mod program {
    mod approving;
    mod archive;
    mod bad_input;
    mod branch;
    mod cli;
    mod commands;
    mod config;
    mod elsewhere;
    mod fetching;
    mod headless;
    mod keeping;
    mod ledger;
    mod rehearsal_assets;
    mod restoring;
    mod rules;
    mod scripts;
    mod secrets;
    mod sinks;
    mod soak;
    mod stage;
    mod terminal;
}
