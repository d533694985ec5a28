//! What happens to a test that can't be played on this machine: it passes and says why. With `TILLER_ALL=1` in the
//! environment it fails instead, so that a machine that must play everything is believed to have done so.
#![allow(clippy::panic, clippy::print_stdout)]

/// Notes that a test is not played, for this reason.
pub(crate) fn skip(why: &str) {
    let must_play = std::env::var_os("TILLER_ALL").is_some_and(|all| !all.is_empty());
    assert!(!must_play, "it can't be played here: {why}");
    println!("skipped: {why}");
}
