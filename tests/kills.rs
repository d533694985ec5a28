//! The real program on the real store, ended in the middle: by SIGKILL after each record, at labelled points and at
//! random moments, and by a power cut. What must be so afterwards is compared with a world that counts
//! (docs/TESTING.md).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod chance;
mod real;
mod skip;
mod wire;

mod kills {
    mod checker;
    mod every_record;
    mod failing_disk;
    mod life;
    mod points;
    mod power;
    mod power_loss;
    mod process;
    mod provider;
    mod put_back;
    mod random;
    mod script;
}
