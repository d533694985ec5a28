//! The screen: a journal in, text out; keys in, commands out; and what a terminal is left as.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod screens {
    mod dialogs;
    mod focus;
    mod keys;
    mod moments;
    mod pty;
    mod put_away;
    mod sizes;
    mod states;
    mod story;
}
