//! Which level a machine has: tried, never believed.

use std::path::Path;
use std::path::PathBuf;

use tiller::domain::sandbox::Level;
use tiller::tools::sandbox::Maker;
use tiller::tools::sandbox::probe;

fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_tiller"))
}

#[test]
fn a_machine_with_bubblewrap_has_full_boxes() {
    let Some(maker) = Maker::find() else {
        return crate::skip::skip("bubblewrap is not installed");
    };
    let found = probe::examine(program(), Some(maker.clone()));
    assert_eq!((found.level, &found.maker), (Level::Full, &Some(maker)), "{:?}", found.lacks);
}

#[test]
fn a_machine_without_bubblewrap_has_half_a_box_and_says_what_is_missing() {
    let found = probe::examine(program(), None);
    assert_eq!(found.level, Level::Partial, "{:?}", found.lacks);
    assert!(found.lacks[0].ends_with("; do: apt install bubblewrap"), "{:?}", found.lacks);
}

#[test]
fn bubblewrap_that_makes_no_box_is_no_box() {
    let maker = Maker { bwrap: PathBuf::from("/bin/true"), forbids_nesting: true };
    let found = probe::examine(program(), Some(maker));
    assert_eq!(found.level, Level::Partial, "{:?}", found.lacks);
    assert!(found.lacks[0].starts_with("a full box does not hold: "), "{:?}", found.lacks);
}
