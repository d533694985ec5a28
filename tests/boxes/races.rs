//! Opened folders against somebody who exchanges them, or a folder above them, for a link as fast as the system can, while
//! boxes are made: no box opens what the link leads to. A plain way of opening the same is raced against as well, and must
//! lose: else the race was none. `TILLER_SLOW=1 cargo test --test boxes races` plays thousands of rounds.
#![cfg(target_env = "gnu")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::path::PathBuf;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

use landlock::ABI;
use landlock::Access;
use landlock::AccessFs;
use landlock::Ruleset;
use landlock::RulesetAttr;
use landlock::RulesetCreatedAttr;
use landlock::path_beneath_rules;
use tiller::domain::sandbox::Level;

use crate::attacker::Attacker;
use crate::attacker::exchange;
use crate::attacker::rounds;
use crate::boxes::stage::Bench;
use crate::boxes::stage::levels;

/// Most tries of the plain way until it loses.
const TRIES: usize = 100_000;

/// An opened folder, what nobody opened, and the two names that change places.
struct Ground {
    bench: Bench,
    opened: PathBuf,
    victim: PathBuf,
    folder: PathBuf,
    link: PathBuf,
}

impl Ground {
    fn new(level: Level, is_above: bool) -> Ground {
        let bench = Bench::new(level);
        let (shared, other) = (bench.outside.join("shared"), bench.outside.join("other"));
        let (opened, victim) = (shared.join("tmp/cache"), other.join("cache"));
        for (folder, key) in [(&opened, "mine"), (&victim, "GOT")] {
            fs::create_dir_all(folder).unwrap();
            fs::write(folder.join("key"), key).unwrap();
        }
        let (folder, leads_to) = if is_above { (shared.join("tmp"), other) } else { (opened.clone(), victim.clone()) };
        let link = shared.join("link");
        symlink(leads_to, &link).unwrap();
        Ground { bench, opened, victim, folder, link }
    }

    /// The link is there for a moment, and then the folder for a longer one, so that some boxes are made: steps of a
    /// generator, which takes the same ones in each run.
    fn attacker(&self) -> Attacker {
        let (folder, link, step) = (self.folder.clone(), self.link.clone(), AtomicUsize::new(1));
        Attacker::who(move || {
            let number = step.fetch_add(1, Ordering::Relaxed).wrapping_mul(6_364_136_223_846_793_005).rotate_left(29);
            exchange(&folder, &link);
            (0..number % 40_000).for_each(|_| std::hint::spin_loop());
            exchange(&folder, &link);
            (0..number % 120_000).for_each(|_| std::hint::spin_loop());
        })
    }
}

#[tokio::test]
async fn a_race_for_an_opened_folder_opens_nothing_else() {
    for level in levels("a race for an opened folder") {
        for (is_above, is_writable) in [(false, false), (false, true), (true, false), (true, true)] {
            let mut ground = Ground::new(level, is_above);
            match is_writable {
                true => ground.bench.scene.sandbox.writable.push(ground.opened.clone()),
                false => ground.bench.scene.sandbox.readable.push(ground.opened.clone()),
            }
            let (opened, victim) = (ground.opened.display(), ground.victim.display());
            let line = format!("cat {opened}/key {victim}/key; touch {opened}/made {victim}/made; echo end");
            let few = if level == Level::Partial { 60 } else { 30 };
            let (mut made, mut refused) = (0, 0);
            let attacker = ground.attacker();
            let mut outcomes = Vec::new();
            for _ in 0..rounds(few, 2_500) {
                let text = ground.bench.run(&line).await.text;
                match text.ends_with("end\n") {
                    true => made += 1,
                    false => refused += 1,
                }
                outcomes.push(text);
            }
            attacker.stop();
            for text in outcomes {
                let is_refusal = ["a link is there now", "changed while its box was made", "box could not be made"];
                let is_known = text.ends_with("end\n") || is_refusal.iter().any(|why| text.contains(why));
                assert!(is_known && !text.contains("GOT"), "{level}, above {is_above}: {text}");
            }
            assert!(!ground.victim.join("made").exists(), "{level}, above {is_above}: it was written to");
            assert!(made > 0 && refused > 0, "{level}, above {is_above}: no race: {made} made, {refused} refused");
        }
    }
}

/// Looks whether a folder is one, without a link on the way, and then lets this thread use what lies below it, by its name.
/// Whether that opened another.
fn plain(opened: &Path, victim: &Path) -> bool {
    if !opened.canonicalize().is_ok_and(|real| real == opened) {
        return false;
    }
    let all = AccessFs::from_all(ABI::V1);
    let rules = Ruleset::default().handle_access(all).unwrap().create().unwrap();
    rules.add_rules(path_beneath_rules([opened], all)).unwrap().restrict_self().unwrap();
    fs::read_to_string(victim.join("key")).is_ok_and(|text| text == "GOT")
}

#[test]
fn a_plain_way_to_open_a_folder_loses_the_race() {
    for is_above in [false, true] {
        let ground = Ground::new(Level::Partial, is_above);
        // At rest it opens the right one only.
        let play = || {
            let (opened, victim) = (ground.opened.clone(), ground.victim.clone());
            std::thread::spawn(move || plain(&opened, &victim)).join().unwrap()
        };
        assert!(!play(), "the plain way is wrong even at rest");
        let attacker = ground.attacker();
        let lost = (0..TRIES).any(|_| play());
        attacker.stop();
        assert!(lost, "above {is_above}: the plain way never lost, so this race shows nothing");
    }
}
