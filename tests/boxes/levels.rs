//! Which level a machine has: tried, never believed.

use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use crate::boxes::stage::Bench;
use crate::boxes::stage::levels;
use crate::boxes::stage::no_full_box;
use tiller::domain::sandbox::Level;
use tiller::tools::sandbox::Maker;
use tiller::tools::sandbox::probe;

fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_tiller"))
}

#[test]
fn a_machine_with_bubblewrap_has_full_boxes() {
    let Some(maker) = Maker::find().filter(|_| no_full_box().is_none()) else {
        return crate::skip::skip(no_full_box().unwrap_or_default());
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

/// What the doctor says of boxes, started by these words.
fn doctor(before: &[&str]) -> Option<String> {
    let home = tempfile::tempdir().unwrap();
    let (first, rest) = before.split_first().unwrap();
    let output = Command::new(first)
        .args(rest)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", home.path())
        .env("TILLER", program())
        .current_dir(home.path())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().find(|line| line.contains(" sandbox ")).map(str::to_string)
}

#[test]
fn a_machine_that_forbids_namespaces_says_what_would_allow_them() {
    if let Some(why) = no_full_box() {
        return crate::skip::skip(why);
    }
    // In namespaces of its own the switch holds for the test only.
    let unshared = ["unshare", "--user", "--map-root-user", "sh", "-c"];
    let with = |line: &str| doctor(&[unshared.as_slice(), &[line]].concat());
    let Some(control) = with("\"$TILLER\" doctor") else {
        return crate::skip::skip("namespaces can't be made");
    };
    assert!(control.contains("full: commands see"), "{control}");
    let told = with("echo 0 > /proc/sys/user/max_user_namespaces; \"$TILLER\" doctor").unwrap();
    assert!(told.starts_with("PARTIAL  sandbox        partial: commands write in the workspace only"), "{told}");
    assert!(told.contains("; do: sysctl -w user.max_user_namespaces="), "{told}");
    assert!(told.contains("you are root"), "{told}");
}

/// Inside of a box there is no other: the filter refuses it.
#[tokio::test]
async fn a_box_in_a_box_is_no_full_one_and_says_so() {
    for level in levels("a box in a box") {
        let bench = Bench::new(level);
        let program = if level == Level::Full { "/.tiller" } else { env!("CARGO_BIN_EXE_tiller") };
        let outcome = bench.run(&format!("XDG_STATE_HOME=$TMPDIR/state {program} doctor | grep ' sandbox '")).await;
        assert!(!outcome.text.contains("full: commands see"), "{level}: {}", outcome.text);
        assert!(outcome.text.contains("PARTIAL  sandbox"), "{level}: {}", outcome.text);
    }
}
