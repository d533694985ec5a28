//! Runs that have ended are removed after a time or on request, and no others (docs/ENGINE.md §10.5).

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::AtomicBool;

use crate::program::scripts::SHORT;
use crate::program::stage::files;
use crate::real::Stage;
use tiller::domain::budget::Limit;
use tiller::domain::event::OwnerMode;
use tiller::domain::id::RunId;
use tiller::domain::time::Timestamp;
use tiller::keeping;
use tiller::launch;
use tiller::policy::keeping::Keep;
use tiller::store::place::Home;

const DAY: u64 = 24 * 60 * 60 * 1_000;

/// A script that asks a question, so that its run is parked.
const ASKS: &str = r#"
[[step]]
name = "plan"
text = "a plan"
calls = [ { tool = "update_plan", args = { todos = [ { id = "a", title = "A" } ] } } ]
[[step]]
name = "ask"
calls = [ { tool = "ask_operator", args = { question = "which?" } } ]
"#;

/// Starts a run and gives its name.
fn begin(stage: &Stage, script: &str, code: i32) -> String {
    let before = stage.ids();
    stage.run(script).check(code, &[]);
    stage.ids().into_iter().find(|id| !before.contains(id)).unwrap()
}

fn home(stage: &Stage) -> Home {
    Home::new(stage.path("state/tiller"), launch::owner(OwnerMode::Records)).unwrap()
}

fn now() -> Timestamp {
    Timestamp(jiff::Timestamp::now().as_millisecond().try_into().unwrap())
}

fn tidy(home: &Home, keep: Keep, now: Timestamp) {
    keeping::tidy(home, keep, now, &AtomicBool::new(false), |_| Ok(()));
}

fn damage(stage: &Stage, id: &str) {
    fs::write(stage.run_dir(id).join("store/db"), b"nothing").unwrap();
}

/// The names of the runs in the file about removed ones.
fn lines(stage: &Stage) -> Vec<String> {
    let text = fs::read_to_string(stage.path("state/tiller/removed.jsonl")).unwrap_or_default();
    let id = |line: &str| -> String {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["goal"], "do it");
        line["id"].as_str().unwrap().to_string()
    };
    text.lines().map(id).collect()
}

#[test]
fn a_start_removes_what_is_beyond_the_number() {
    let stage = Stage::new();
    stage.write("config/tiller/tiller.toml", "[keep]\nruns = 2\n");
    let parked = begin(&stage, ASKS, 14);
    let oldest = begin(&stage, SHORT, 0);
    let other = begin(&stage, SHORT, 0);
    let told = stage.ask(&["doctor"]);
    told.check(13, &["OK       kept runs", "at most 2 of them; none is due"]);
    let newest = begin(&stage, SHORT, 0);
    stage.ask(&["doctor"]).check(13, &[&format!("{oldest} first")]);
    stage.ask(&["resume", &parked, "--plain"]).check(14, &[]);
    assert!(!stage.run_dir(&oldest).exists());
    let mut left = stage.ids();
    let mut expected = vec![parked, other, newest];
    left.sort();
    expected.sort();
    assert_eq!(left, expected);
    assert_eq!(lines(&stage), std::slice::from_ref(&oldest));
    let mode = fs::metadata(stage.path("state/tiller/removed.jsonl")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let logs = files(&stage.path("state/tiller/log"));
    assert!(logs.iter().any(|(_, bytes)| String::from_utf8_lossy(bytes).contains("it is not kept any more")));
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_has_ended_and_is_whole_and_free_goes() {
    let stage = Stage::new();
    let (parked, held) = (begin(&stage, ASKS, 14), begin(&stage, SHORT, 0));
    let (damaged, old) = (begin(&stage, SHORT, 0), begin(&stage, SHORT, 0));
    damage(&stage, &damaged);
    let before = files(&stage.run_dir(&damaged));
    let home = home(&stage);
    let open = home.open(&RunId::try_from(held.clone()).unwrap()).await.unwrap();
    let keep = Keep { days: Limit::At(90), runs: Limit::Unlimited };
    tidy(&home, keep, Timestamp(now().0 + 89 * DAY));
    assert_eq!(lines(&stage), [""; 0], "nothing is old yet");
    tidy(&home, Keep { days: Limit::Unlimited, ..keep }, Timestamp(now().0 + 1_000 * DAY));
    assert_eq!(lines(&stage), [""; 0], "no limit, nothing removed");
    tidy(&home, keep, Timestamp(now().0 + 91 * DAY));
    assert_eq!(lines(&stage), std::slice::from_ref(&old));
    assert!(!stage.run_dir(&old).exists());
    assert_eq!(files(&stage.run_dir(&damaged)), before, "a damaged run was touched");
    open.journal.close().await;
    for id in [&parked, &held] {
        stage.ask(&["audit", id, "--verify"]).check(0, &[]);
    }
}

#[test]
fn a_removal_that_was_cut_off_is_completed_or_never_was() {
    let stage = Stage::new();
    let (noted, renamed) = (begin(&stage, SHORT, 0), begin(&stage, SHORT, 0));
    let left = stage.run_dir(&renamed).with_extension("removed");
    fs::rename(stage.run_dir(&renamed), &left).unwrap();
    fs::remove_file(left.join("store/db")).unwrap();
    assert_eq!(stage.ids(), std::slice::from_ref(&noted), "what is on its way out is no run");
    let summary = fs::read_to_string(stage.run_dir(&noted).join("summary.json")).unwrap();
    fs::write(stage.path("state/tiller/removed.jsonl"), format!("{summary}\n")).unwrap();
    stage.ask(&["show", &noted]).check(0, &["[completed]"]);
    tidy(&home(&stage), Keep::default(), now());
    assert!(!left.exists());
    stage.ask(&["audit", &noted, "--verify"]).check(0, &[]);
    tidy(&home(&stage), Keep::default(), Timestamp(now().0 + 91 * DAY));
    assert!(!stage.run_dir(&noted).exists());
    assert_eq!(lines(&stage), [noted.clone(), noted]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_removed_on_request() {
    let stage = Stage::new();
    let (parked, ended) = (begin(&stage, ASKS, 14), begin(&stage, SHORT, 0));
    stage.ask(&["remove", &ended]).check(2, &["nobody is here to be asked", "was not removed; say --yes"]);
    let words = format!("nothing was removed; end it first: tiller cancel {}", &parked[..6]);
    stage.ask(&["remove", &parked, "--yes"]).check(3, &[&words]);
    stage.ask(&["remove", "zzz", "--yes"]).check(2, &["there is no run zzz"]);
    let home = home(&stage);
    let open = home.open(&RunId::try_from(ended.clone()).unwrap()).await.unwrap();
    stage.ask(&["remove", &ended, "--yes"]).check(30, &["is held by"]);
    open.journal.close().await;
    stage.ask(&["fork", &ended, "--goal", "and now"]).check(0, &[]);
    let fork = stage.ids().into_iter().find(|id| *id != parked && *id != ended).unwrap();
    stage.ask(&["remove", &ended, "--yes"]).check(0, &["is removed: do it"]);
    assert_eq!(lines(&stage), std::slice::from_ref(&ended));
    assert!(!stage.run_dir(&ended).exists());
    stage.ask(&["show", &ended]).check(2, &["there is no run"]);
    // A fork has its own copy of what it inherited.
    stage.ask(&["audit", &fork, "--verify"]).check(0, &[]);
    stage.ask(&["resume", &fork, "--plain"]).check(0, &["[completed]"]);
    damage(&stage, &fork);
    let short = &fork[..6];
    let ways =
        [format!("`tiller repair {short}` tries"), format!("`tiller remove {short} --damaged` removes it as it is")];
    stage.ask(&["remove", &fork, "--yes"]).check(20, &["is damaged", "it was not removed", &ways[0], &ways[1]]);
    assert!(stage.run_dir(&fork).is_dir());
}

/// The folder of a rehearsal is in its run's directory: whoever is asked is told that it goes.
#[test]
fn the_folder_of_a_rehearsal_is_named_before_it_goes() {
    let stage = Stage::new();
    let script = stage.fast_rehearsal();
    stage.ask(&["rehearse", "--plain", "--script", &script]).check(10, &[]);
    let id = stage.ids()[0].clone();
    stage.ask(&["cancel", &id]).check(0, &[]);
    let folder = stage.run_dir(&id).join("workspace");
    let goes = format!("and with its scratch folder {} and all the work in it", folder.display());
    stage.ask(&["remove", &id]).check(2, &["nobody is here to be asked", &goes]);
    assert!(folder.is_dir());
    stage.ask(&["remove", &id, "--yes"]).check(0, &[&format!("run {id} is removed, {goes}: ")]);
    // Another run's files lie elsewhere and stay.
    let other = begin(&stage, SHORT, 0);
    let removed = stage.ask(&["remove", &other, "--yes"]);
    assert!(!removed.out.contains("scratch"), "{removed}");
}

/// A run that can't be read can be given up, whether it had ended or not, and the last advice of a repair says how.
#[test]
fn a_damaged_run_is_removed_by_a_word_of_its_own() {
    let stage = Stage::new();
    let (parked, lost, gone, whole) =
        (begin(&stage, ASKS, 14), begin(&stage, SHORT, 0), begin(&stage, SHORT, 0), begin(&stage, SHORT, 0));
    stage.ask(&["remove", &whole, "--damaged", "--yes"]).check(3, &["is not damaged; nothing was removed"]);
    damage(&stage, &parked);
    damage(&stage, &lost);
    fs::remove_dir_all(stage.run_dir(&gone).join("store")).unwrap();
    // Nobody has found it yet, so the list tells what it knew; from then on it says so, and so does the screen's.
    stage.ask(&["show", &lost]).check(20, &["is damaged"]);
    let listed = stage.runs();
    let told = listed.iter().find(|one| one["damaged"] == lost.as_str());
    assert!(told.is_some_and(|one| one["why"].as_str().is_some_and(|why| !why.is_empty())), "{listed:?}");
    let line = format!("tiller remove {} --damaged   # gives it up", &lost[..6]);
    stage.ask(&["repair", &lost]).check(20, &["no more can be mended", "what helps, to type:", &line]);
    stage.ask(&["remove", &lost, "--damaged"]).check(2, &["could be read up to record 0 only", "nobody is here"]);
    assert!(stage.run_dir(&lost).is_dir());
    for id in [&lost, &parked, &gone] {
        let removed = stage.ask(&["remove", id, "--damaged", "--yes"]);
        removed.check(0, &["nothing of it can be saved", &format!("run {id} is removed: do it")]);
        assert!(!removed.err.contains("would mend it"), "{removed}");
        assert!(!stage.run_dir(id).exists());
    }
    assert_eq!(lines(&stage), [lost, parked, gone]);
    assert_eq!(stage.ids(), [whole]);
}

/// A repair that was killed between its two renames: what it would give back is shown, and not removed.
#[test]
fn what_a_repair_would_give_back_is_not_given_up() {
    let stage = Stage::new();
    let id = begin(&stage, ASKS, 14);
    let (dir, short) = (stage.run_dir(&id), &id[..6]);
    let exported = stage.ask(&["export", &id]);
    exported.check(0, &[]);
    fs::remove_file(dir.join("anchor")).unwrap();
    fs::create_dir(dir.join("store.damaged.1")).unwrap();
    fs::copy(dir.join("store/db"), dir.join("store.damaged.1/db")).unwrap();
    fs::rename(dir.join("store"), dir.join("store.mended")).unwrap();
    let lies = ["the file of its database is missing", "what can be read is in `store.", "beside its store"];
    let told = stage.ask(&["export", &id]);
    told.check(20, &lies);
    assert_eq!(told.out, exported.out);
    for words in [&["audit", &id, "--verify"][..], &["audit", &id], &["show", &id]] {
        stage.ask(words).check(20, &lies[..1]);
    }
    let first = format!("type `tiller repair {short}` first, and then, if it is to go, `tiller remove {short}`");
    for words in [&["remove", &id, "--damaged", "--yes"][..], &["remove", &id, "--damaged"]] {
        let refused = stage.ask(words);
        refused.check(3, &["can be mended: a repair of it was broken off", "nothing was removed", &first]);
        assert!(!refused.err.contains("all of it goes"), "{refused}");
    }
    stage.ask(&["repair", &id]).check(0, &["has a new anchor"]);
    assert_eq!(stage.ask(&["export", &id]).out, exported.out);
    stage.ask(&["cancel", &id]).check(0, &["is cancelled"]);
    stage.ask(&["remove", &id, "--yes"]).check(0, &["is removed"]);
}

/// What can still be saved is offered while there is time.
#[test]
fn advice_comes_before_the_question_and_not_after_the_answer() {
    let stage = Stage::new();
    let id = begin(&stage, ASKS, 14);
    fs::remove_file(stage.run_dir(&id).join("anchor")).unwrap();
    let advice = format!("tiller export {}   # saves what can be read", &id[..6]);
    let mends = format!("`tiller repair {}` would mend it, with ", &id[..6]);
    let asked = stage.ask(&["remove", &id, "--damaged"]);
    asked.check(2, &[&mends, "all of it goes", &advice, "nobody is here to be asked"]);
    let removed = stage.ask(&["remove", &id, "--damaged", "--yes"]);
    removed.check(0, &[&mends, "all of it goes", "is removed"]);
    assert!(!removed.err.contains("what helps"), "{removed}");
}
