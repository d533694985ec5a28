//! File tools against somebody who changes folders and files as fast as the system can: nothing outside the workspace is
//! read or written without having been shown as outside, and no file is replaced that is not the one that was decided
//! about. A plain way of doing the same is raced against as well, and must lose: else the race was none.
//!
//! Rounds are counted, not timed. `TILLER_SLOW=1 cargo test --test trust races` plays ten thousand of each.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

use serde_json::Value;
use serde_json::json;
use tiller::domain::text::sha256_hex;
use tiller::domain::tool::OutcomeKind;
use tiller::tools::Executed;

use crate::attacker::Attacker;
use crate::attacker::exchange;
use crate::attacker::rounds;
use crate::trust::world::World;

/// Rounds of the slow suite.
const MANY: usize = 10_000;
/// Most tries of a plain way until it loses.
const TRIES: usize = 1_000_000;

/// How often each thing happened.
#[derive(Debug, Default)]
struct Tally {
    done: usize,
    drifted: usize,
    asked: usize,
}

/// Prepares and executes one call, unless it would be asked as one that leaves the workspace.
async fn round(world: &World, tool: &str, arguments: &Value, tally: &mut Tally) -> String {
    let call = world.call(tool, arguments).await;
    if !call.facts.as_ref().unwrap().inside {
        tally.asked += 1;
        return String::new();
    }
    match world.execute(&call).await {
        Executed::Ended(outcome) => {
            tally.done += usize::from(outcome.kind == OutcomeKind::Done);
            outcome.text
        }
        Executed::Drifted(text) => {
            tally.drifted += 1;
            text
        }
    }
}

#[tokio::test]
async fn a_race_for_the_folder_gains_nothing() {
    let world = World::new();
    world.write("ws/dir/file", "harmless");
    world.write("outside/file", "secret");
    symlink(world.at("outside"), world.at("ws/link")).unwrap();
    let (dir, link, path) = (world.at("ws/dir"), world.at("ws/link"), world.at("ws/dir/file"));
    let swapper = Attacker::who(move || exchange(&dir, &link));
    let (mut reads, mut searches, mut writes) = (Tally::default(), Tally::default(), Tally::default());
    for number in 0..rounds(1_600, MANY) {
        match number % 4 {
            0 => {
                let read = round(&world, "read_file", &json!({"path": "dir/file"}), &mut reads).await;
                assert!(!read.contains("secret"));
            }
            1 => {
                let search = round(&world, "search_files", &json!({"pattern": "secret"}), &mut searches).await;
                assert!(!search.contains(":secret"));
            }
            2 => {
                let content = json!({"path": "dir/file", "content": format!("harmless {number}")});
                round(&world, "write_file", &content, &mut writes).await;
            }
            _ => {
                let fresh = json!({"path": format!("dir/new/{number}"), "content": "x"});
                round(&world, "write_file", &fresh, &mut writes).await;
            }
        }
    }
    let outside = (world.read("outside/file"), fs::read_dir(world.at("outside")).unwrap().count());
    // Who looks where a path leads and then opens it by the same name is led astray.
    let inside = world.at("ws");
    let plain = || {
        let is_inside = path.canonicalize().is_ok_and(|real| real.starts_with(&inside));
        is_inside && fs::read_to_string(&path).is_ok_and(|text| text == "secret")
    };
    let astray = (0..TRIES).any(|_| plain());
    swapper.stop();
    assert_eq!(outside, ("secret".to_string(), 1));
    assert!(astray, "the plain way was never led astray");
    for (name, tally) in [("reads", &reads), ("writes", &writes)] {
        assert!(tally.done > 0 && tally.drifted > 0 && tally.asked > 0, "{name}: the race was not one: {tally:?}");
    }
}

/// Somebody who replaces a file once in each round, at any moment of it, and notes what they took out.
struct Rival {
    round: Arc<AtomicUsize>,
    attacker: Attacker,
    taken: Arc<std::sync::Mutex<Vec<String>>>,
}

impl Rival {
    fn of(target: PathBuf, spare: PathBuf, longest: usize) -> Rival {
        let (round, taken) = (Arc::new(AtomicUsize::new(0)), Arc::new(std::sync::Mutex::new(Vec::new())));
        let (seen, notes, put) = (Arc::clone(&round), Arc::clone(&taken), AtomicUsize::new(0));
        let attacker = Attacker::who(move || {
            let number = put.load(Ordering::Relaxed);
            if number >= seen.load(Ordering::Relaxed) {
                return;
            }
            // Any moment of a round: steps of a generator, which takes the same ones in each run.
            let wait = number.wrapping_mul(6_364_136_223_846_793_005).rotate_left(29) % longest;
            (0..wait).for_each(|_| std::hint::spin_loop());
            fs::write(&spare, format!("theirs {number}")).unwrap();
            exchange(&spare, &target);
            notes.lock().unwrap().push(fs::read_to_string(&spare).unwrap());
            put.store(number + 1, Ordering::Relaxed);
        });
        Rival { round, attacker, taken }
    }

    fn begin(&self) {
        self.round.fetch_add(1, Ordering::Relaxed);
    }

    /// Ends, and gives the changes that replaced another text than the one they were decided about. `bound` has the text
    /// that each of ours was decided about.
    fn wronged(self, bound: &BTreeMap<String, String>) -> Vec<String> {
        self.attacker.stop();
        let mut before = "first".to_string();
        let mut wrong = Vec::new();
        for (number, taken) in self.taken.lock().unwrap().iter().enumerate() {
            // From what was taken out back to what had been put in: each of ours stands on what it was decided about.
            let (mut under, mut steps) = (taken.clone(), 0);
            while let Some(next) = bound.get(&under).filter(|_| under != before && steps < 1_000) {
                (under, steps) = (next.clone(), steps + 1);
            }
            if under != before {
                wrong.push(format!("{taken} replaced {before}"));
            }
            before = format!("theirs {number}");
        }
        wrong
    }
}

#[tokio::test]
async fn a_race_for_a_file_replaces_nothing_that_was_not_seen() {
    let world = World::new();
    world.write("ws/file", "first");
    let rival = Rival::of(world.at("ws/file"), world.at("spare"), 200_000);
    let (mut bound, mut drifted) = (BTreeMap::new(), 0);
    let mut known: BTreeMap<String, String> = BTreeMap::from([(sha256_hex(b"first"), "first".to_string())]);
    for number in 0..rounds(400, MANY) {
        rival.begin();
        let ours = format!("ours {number}");
        let call = world.call("write_file", &json!({ "path": "file", "content": ours })).await;
        known.insert(sha256_hex(ours.as_bytes()), ours.clone());
        known.insert(sha256_hex(format!("theirs {number}").as_bytes()), format!("theirs {number}"));
        let seen = call.facts.as_ref().unwrap().write.as_ref().and_then(|write| write.before.clone()).unwrap();
        match world.execute(&call).await {
            Executed::Ended(outcome) => {
                assert_eq!(outcome.kind, OutcomeKind::Done, "{outcome:?}");
                bound.insert(ours, known[&seen].clone());
            }
            Executed::Drifted(_) => drifted += 1,
        }
    }
    let done = bound.len();
    assert_eq!(rival.wronged(&bound), Vec::<String>::new());
    assert!(done > 0 && drifted > 0, "the race was not one: {done} done, {drifted} drifted");
    assert!(
        !fs::read_dir(world.at("ws")).unwrap().any(|one| one.unwrap().file_name().to_string_lossy().contains(".part"))
    );
}

#[test]
fn a_plain_replacement_loses_what_it_did_not_see() {
    let world = World::new();
    world.write("ws/file", "first");
    let (target, part) = (world.at("ws/file"), world.at("part"));
    let rival = Rival::of(target.clone(), world.at("spare"), 20_000);
    let mut bound = BTreeMap::new();
    for number in 0..20_000 {
        rival.begin();
        let (seen, ours) = (fs::read_to_string(&target).unwrap(), format!("ours {number}"));
        fs::write(&part, &ours).unwrap();
        fs::rename(&part, &target).unwrap();
        bound.insert(ours, seen);
    }
    assert!(!rival.wronged(&bound).is_empty(), "the plain way lost nothing");
}

/// A script that is changed between the decision and the start does not run, round after round; unchanged, it does.
#[tokio::test]
async fn a_script_that_changed_since_it_was_decided_does_not_run() {
    let world = World::new();
    for number in 0..rounds(30, MANY) {
        world.write("ws/build.sh", &format!("echo good {number}\n"));
        let call = world.call("shell", &json!({ "command": "sh ./build.sh" })).await;
        let is_changed = number % 3 != 0;
        match number % 3 {
            0 => {}
            1 => world.write("ws/build.sh", "touch MARK\n"),
            _ => {
                world.write("ws/evil.sh", "touch MARK\n");
                fs::remove_file(world.at("ws/build.sh")).unwrap();
                symlink("evil.sh", world.at("ws/build.sh")).unwrap();
            }
        }
        match world.execute(&call).await {
            Executed::Drifted(_) => assert!(is_changed),
            Executed::Ended(outcome) => {
                let is_good = !is_changed && outcome.text.contains(&format!("good {number}"));
                assert!(is_good, "{number}: {}", outcome.text);
            }
        }
        assert!(!world.at("ws/MARK").exists());
        fs::remove_file(world.at("ws/build.sh")).unwrap();
    }
}
