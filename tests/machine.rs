//! Everything that is pure: what becomes of a run, told in stories, and the rules by which it is judged.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod machine {
    mod again;
    mod gate;
    mod orders;
    mod planning;
    mod planning_text;
    mod precedence;
    mod reading;
    mod sabotage;
    mod seeds;
    mod stage;
    mod stories;
    mod telling;
}
