//! The screen: a journal in, text out; keys in, commands out; and what a terminal is left as.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod chance;

mod screens {
    mod dialogs;
    mod elsewhere;
    mod emphasis;
    mod focus;
    mod grave;
    mod keys;
    mod list;
    mod markdown;
    mod menu;
    mod moments;
    mod pty;
    mod put_away;
    mod reading;
    mod shown;
    mod sizes;
    mod states;
    mod steady;
    mod story;
    mod truths;
    mod typing;
    mod wording;
}
