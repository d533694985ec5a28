//! Cases with right answers (`tests/fixtures/boxes.jsonl`), and the real program as a whole in its boxes.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Child;
use std::time::Duration;
use std::time::Instant;

use serde_json::Value;

use crate::boxes::stage::Bench;
use crate::boxes::stage::levels;
use crate::real::Stage;
use crate::real::said;
use crate::real::until;
use tiller::domain::sandbox::Level;
use tiller::domain::tool::OutcomeKind;
use tokio::time::timeout;

/// Where each case that is no command for the shell is tested.
const ELSEWHERE: [(&str, &str); 6] = [
    ("secrets-01", "boxes::cases::a_key_of_the_owner_is_not_in_a_box"),
    ("local-ipc-01", "boxes::cases::nothing_listens"),
    ("local-ipc-03", "boxes::files::no_decision_comes_from_a_box"),
    ("local-ipc-04", "boxes::terminals::no_key_is_pressed_through_a_multiplexer"),
    ("local-ipc-07", "boxes::attacks::no_other_process_is_reached"),
    ("process-kill-06", "boxes::cases::nothing_outlives_its_owner"),
];

fn cases() -> Vec<Value> {
    include_str!("../fixtures/boxes.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Processes that sleep for as long as no other does.
fn sleepers() -> usize {
    let sleeps = |entry: &fs::DirEntry| {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        line.starts_with(b"sleep\x004242")
    };
    fs::read_dir("/proc").unwrap().flatten().filter(sleeps).count()
}

#[tokio::test]
async fn each_case_has_its_right_answer() {
    for case in cases() {
        let id = case["id"].as_str().unwrap();
        let command = case.pointer("/input/command").and_then(Value::as_str);
        let is_cancelled = case.pointer("/input/then").and_then(Value::as_str) == Some("cancel after 1 s");
        let Some(command) = command.filter(|_| is_cancelled) else {
            assert!(ELSEWHERE.iter().any(|(known, _)| *known == id), "{id} is tested nowhere: {case}");
            continue;
        };
        for level in [Level::None].into_iter().chain(levels(id)) {
            let bench = Bench::new(level);
            let cancel = bench.reins.cancel.clone();
            // A line that does not wait for what it started ends by itself, and all that with it.
            let (outcome, asked) = tokio::join!(bench.run(command), async {
                let _ = timeout(Duration::from_secs(1), std::future::pending::<()>()).await;
                cancel.cancel();
                Instant::now()
            });
            assert!(matches!(outcome.kind, OutcomeKind::Cancelled | OutcomeKind::Done), "{id}, {level}");
            assert!(asked.elapsed() < Duration::from_secs(3), "{id}, {level}: {:?}", asked.elapsed());
            assert_eq!(sleepers(), 0, "{id}, {level}");
        }
    }
}

/// A script that runs one line.
fn script(line: &str) -> String {
    let line = serde_json::to_string(line).unwrap();
    format!(
        "[[step]]\nname = \"plan\"\ntext = \"a plan\"\ncalls = [ {{ tool = \"update_plan\", args = {{ todos = [ {{ id = \
         \"a\", title = \"A\", status = \"done\" }} ] }} }} ]\n[[step]]\nname = \"act\"\ncalls = [ {{ tool = \"shell\", \
         args = {{ command = {line} }} }} ]\n[[step]]\nname = \"claim\"\ntext = \"done\"\ncalls = [ {{ tool = \
         \"finish\", args = {{ summary = \"done\" }} }} ]\n"
    )
}

/// Starts a run of one line under full trust, in the boxes of this machine.
fn start(stage: &Stage, line: &str) -> Child {
    let model = format!("scripted/{}", stage.write("script.toml", &script(line)).display());
    let mut command = stage.tiller(&["run", "do it", "--plain", "--trust", "full_trust", "--model", &model]);
    command.env("TILLER_SANDBOX", "auto").env("SECRET_TOKEN", "sk-test-0123456789abcdef").spawn().unwrap()
}

fn has_full_boxes(test: &str) -> bool {
    let has = levels(test).contains(&Level::Full);
    if !has {
        crate::skip::skip(&format!("{test}: no full box"));
    }
    has
}

#[test]
fn a_key_of_the_owner_is_not_in_a_box() {
    if !has_full_boxes("a key of the owner") {
        return;
    }
    let stage = Stage::new();
    let said = said(start(
        &stage,
        "env; cat /proc/*/environ | tr '\\0' '\\n'; echo $HOME; ls -d /root /home; echo made > made",
    ));
    said.check(0, &["/box", "allowed by full trust"]);
    assert!(!said.out.contains("sk-test") && !said.out.contains("SECRET_TOKEN"), "{said}");
    assert_eq!(fs::read_to_string(stage.path("work/made")).unwrap(), "made\n");
    // What was found out of the machine is kept, for its owner only.
    let kept = stage.path("state/tiller/sandbox.json");
    assert_eq!(fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(fs::read_to_string(&kept).unwrap().contains(r#""level":"full""#));
    // It is believed as long as it is about this machine, and found out anew when it is not.
    let text = fs::read_to_string(&kept).unwrap();
    fs::write(&kept, text.replace(r#""level":"full""#, r#""level":"none""#)).unwrap();
    let doctor = |stage: &Stage| {
        let mut command = stage.tiller(&["doctor"]);
        crate::real::said(command.env("TILLER_SANDBOX", "auto").spawn().unwrap()).out
    };
    assert!(doctor(&stage).contains("sandbox        none: a command that you allow has your full rights"));
    fs::write(&kept, text.replace(r#""identity":""#, r#""identity":"another "#)).unwrap();
    assert!(doctor(&stage).contains("OK       sandbox        full: commands see the workspace"));
}

#[test]
fn nothing_outlives_its_owner() {
    if !has_full_boxes("nothing outlives its owner") {
        return;
    }
    let stage = Stage::new();
    let mut owner = start(&stage, "setsid sleep 31313 & trap '' TERM; sleep 31313; sleep 31313");
    let alive = || {
        let sleeps = |entry: &fs::DirEntry| {
            fs::read(entry.path().join("cmdline")).unwrap_or_default().starts_with(b"sleep\x0031313")
        };
        fs::read_dir("/proc").unwrap().flatten().filter(sleeps).count()
    };
    until("the command", || (alive() == 2).then_some(()));
    owner.kill().unwrap();
    owner.wait().unwrap();
    let begun = Instant::now();
    until("nothing is left", || (alive() == 0).then_some(()));
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
}

#[test]
fn nothing_listens() {
    let stage = Stage::new();
    let mut owner = start(&stage, "sleep 32323");
    let pid = owner.id();
    let sleeps = |entry: &fs::DirEntry| {
        fs::read(entry.path().join("cmdline")).unwrap_or_default().starts_with(b"sleep\x0032323")
    };
    if has_full_boxes("nothing listens") {
        until("the command", || fs::read_dir("/proc").unwrap().flatten().any(|entry| sleeps(&entry)).then_some(()));
    }
    let sockets = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    let sockets: Vec<String> = sockets
        .filter_map(|entry| {
            fs::read_link(entry.path()).ok()?.to_str()?.strip_prefix("socket:[")?.strip_suffix(']').map(String::from)
        })
        .collect();
    // State 0A is LISTEN; a bound port of UDP would have any state.
    for (table, state) in [("tcp", " 0A "), ("tcp6", " 0A "), ("udp", " "), ("udp6", " ")] {
        let text = fs::read_to_string(format!("/proc/net/{table}")).unwrap_or_default();
        let ours = text.lines().filter(|line| line.contains(state));
        let ours: Vec<&str> =
            ours.filter(|line| sockets.iter().any(|inode| line.contains(&format!(" {inode} ")))).collect();
        assert_eq!(ours, Vec::<&str>::new(), "{table}");
    }
    owner.kill().unwrap();
    owner.wait().unwrap();
}

#[test]
fn a_rehearsal_is_played_in_boxes() {
    let stage = Stage::new();
    let mut command = stage.tiller(&["rehearse", "--plain", "--script", &stage.fast_rehearsal()]);
    let said = said(command.env("TILLER_SANDBOX", "auto").spawn().unwrap());
    said.check(10, &["[parked]"]);
    assert!(!said.out.contains("box could not be made"), "{said}");
}
