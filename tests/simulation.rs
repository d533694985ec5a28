//! Seeded lives of runs, in worlds where everything misbehaves, with the process killed at any boundary; and what
//! journals fold to, simulated ones and those that older versions wrote (docs/TESTING.md).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod chance;
mod real;

mod simulation {
    mod checker;
    mod golden;
    mod journals;
    mod kind;
    mod life;
    mod lineage;
    mod lives;
    mod operator;
    mod sabotage;
    mod shrink;
    mod snapshots;
    mod speaker;
    mod world;
    mod client;
    mod flying;
    mod making;
}
