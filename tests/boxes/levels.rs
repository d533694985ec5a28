//! Which level a machine has: tried, never believed.

use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use crate::boxes::stage::Bench;
use crate::boxes::stage::levels;
use crate::boxes::stage::no_full_box;
use crate::real::Said;
use crate::real::Stage;
use crate::real::said;
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
    let found = probe::examine(program(), Some(maker.clone()), None);
    assert_eq!((found.level, &found.maker), (Level::Full, &Some(maker)), "{:?}", found.lacks);
}

#[test]
fn a_machine_without_bubblewrap_has_half_a_box_and_says_what_is_missing() {
    let found = probe::examine(program(), None, None);
    assert_eq!(found.level, Level::Partial, "{:?}", found.lacks);
    assert!(found.lacks[0].ends_with("; do: apt install bubblewrap"), "{:?}", found.lacks);
}

#[test]
fn bubblewrap_that_makes_no_box_is_no_box() {
    let maker = Maker { bwrap: PathBuf::from("/bin/true"), forbids_nesting: true };
    let found = probe::examine(program(), Some(maker), None);
    assert_eq!(found.level, Level::Partial, "{:?}", found.lacks);
    assert!(found.lacks[0].starts_with("a full box does not hold: "), "{:?}", found.lacks);
}

/// It is said of half a box that it does not hold this back; where a kernel does, what is said has to change.
#[tokio::test]
async fn half_a_box_can_change_rights_and_times_outside() {
    use std::os::unix::fs::MetadataExt;
    for (level, wanted) in levels("rights outside").into_iter().map(|level| (level, level == Level::Partial)) {
        let bench = Bench::new(level);
        let secret = bench.outside.join("secret");
        bench.run(&format!("chmod 640 {0}; touch -d @1000 {0}", secret.display())).await;
        let seen = std::fs::metadata(&secret).unwrap();
        assert_eq!((seen.mode() & 0o777 == 0o640, seen.mtime() == 1000), (wanted, wanted), "{level}");
    }
}

/// A stand-in for `sandbox-exec`: a script that is handed `-p PROFILE PROGRAM …`.
fn stand_in(folder: &Path, text: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let path = folder.join("sandbox-exec");
    std::fs::write(&path, format!("#!/bin/sh\nprofile=$2; shift 2\n{text}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// One that obeys the part of a profile that says what can be written, by means of bubblewrap.
const OBEYS: &str = r#"
written() { printf '%s\n' "$profile" | sed -n "/^($1/,/))\$/s/^ *(subpath \"\(.*\)\").*/\1/p"; }
set -- -- "$@"
for path in $(written 'deny file-write\*'); do set -- --ro-bind "$path" "$path" "$@"; done
for path in $(written 'allow file-write\*'); do set -- --bind "$path" "$path" "$@"; done
for path in $(printf '%s\n' "$profile" | sed -n 's/^ *(subpath "\(\/tmp\/.*\)").*/\1/p'); do
    set -- --ro-bind "$path" "$path" "$@"
done
exec bwrap --unshare-all --unshare-user --disable-userns --ro-bind / / --dev /dev --proc /proc --tmpfs /tmp "$@"
"#;

#[test]
fn a_sandbox_exec_that_holds_nothing_back_is_no_box() {
    let folder = tempfile::tempdir().unwrap();
    for (text, why) in [
        ("exec \"$@\"", "the box of sandbox-exec does not hold: out of it, it is possible to write outside"),
        ("echo 'sandbox-exec: unbound variable: file-read'; exit 65", "does not hold: sandbox-exec: unbound variable"),
        ("exit 71", "the box of sandbox-exec does not hold: "),
    ] {
        let found = probe::examine(program(), None, Some(stand_in(folder.path(), text)));
        assert_eq!((found.level, &found.half), (Level::None, &None));
        assert!(found.lacks.len() == 1 && found.lacks[0].contains(why), "{:?}", found.lacks);
    }
}

#[tokio::test]
async fn a_sandbox_exec_that_obeys_its_profile_makes_half_boxes() {
    if let Some(why) = no_full_box() {
        return crate::skip::skip(why);
    }
    let folder = tempfile::tempdir().unwrap();
    let half = Some(stand_in(folder.path(), OBEYS));
    let found = probe::examine(program(), None, half.clone());
    assert_eq!((found.level, &found.half), (Level::Partial, &half), "{:?}", found.lacks);
    let mut bench = Bench::new(Level::Partial);
    bench.scene.sandbox.half = half;
    bench.write(".git/hooks/pre-commit", "1");
    let attack = "echo 2 > .git/hooks/pre-commit; echo 3 > made; echo 4 > ../outside/made; echo $HOME; echo end";
    let outcome = bench.run(attack).await;
    assert!(outcome.text.contains("end") && outcome.watched.is_empty(), "{}", outcome.text);
    assert!(bench.has("made") && !bench.outside.join("made").exists(), "{}", outcome.text);
    let outcome = bench.read("touch read").await;
    assert!(!bench.has("read"), "{}", outcome.text);
    // Once more without it.
    bench.run_unboxed(attack).await;
    assert!(bench.outside.join("made").exists());
    // A path that no profile can name is no box, and nothing is run.
    let odd = bench.scene.workspace.join("a\"b");
    std::fs::create_dir(&odd).unwrap();
    bench.scene.workspace = odd;
    let outcome = bench.run("touch made").await;
    assert!(outcome.text.contains("which a box here can't name") && !bench.has("made"), "{}", outcome.text);
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

/// In another box root has no number, or another one: that bubblewrap is root's can't be told, and it is not missing.
#[test]
fn in_another_box_the_reason_is_not_that_bubblewrap_is_missing() {
    if let Some(why) = no_full_box() {
        return crate::skip::skip(why);
    }
    let Some(told) = doctor(&["unshare", "--user", "--map-user=1000", "sh", "-c", "\"$TILLER\" doctor"]) else {
        return crate::skip::skip("namespaces can't be made");
    };
    assert!(told.starts_with("PARTIAL  sandbox "), "{told}");
    let wanted =
        "bubblewrap is not used: whether /usr/bin/bwrap belongs to root can't be told here, in a user namespace";
    assert!(told.contains(wanted) && told.contains("; do: start tiller outside of it"), "{told}");
    assert!(!told.contains("apt install"), "{told}");
}

/// A home that is the workspace, with tiller's own places deep in it: a command could move away a folder above them.
#[test]
fn a_workspace_in_which_no_box_can_be_made_is_told_before_the_first_call() {
    let mut stage = Stage::new();
    stage.boxes = "auto";
    stage.write("script.toml", "[[step]]\nname = \"s\"\ntext = \"No.\"\n");
    let tell = |words: &[&str], folder: &str| {
        let mut command = stage.tiller(words);
        command.env("XDG_STATE_HOME", stage.path(".local/state")).current_dir(stage.path(folder));
        said(command.spawn().unwrap())
    };
    let why = "no command that writes can run here, because its box can't be made";
    let line = |said: &Said| said.out.lines().find(|line| line.contains(" sandbox ")).unwrap_or_default().to_string();
    let (here, below) = (tell(&["doctor"], ""), tell(&["doctor"], "work"));
    assert!(line(&here).starts_with("PARTIAL") && line(&here).contains(why), "{here}");
    assert!(line(&here).contains("work in another folder"), "{here}");
    assert!(!below.out.contains(why), "{below}");
    let model = format!("scripted/{}", stage.path("script.toml").display());
    let run = ["run", "do it", "--plain", "--model", &model];
    let (started, elsewhere) = (tell(&run, ""), tell(&run, "work"));
    assert!(started.err.contains(why) && !elsewhere.err.contains(why), "{started}{elsewhere}");
    // Its check could never pass.
    let checked = tell(&[&run[..], &["--check", "true"]].concat(), "");
    checked.check(2, &[why]);
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
