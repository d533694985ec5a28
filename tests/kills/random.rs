//! The real program on the real store, killed at random moments and at every labelled point, and compared with a world
//! that counts (docs/TESTING.md).
//!
//! `cargo test` plays a few lives. The slow suite: `TILLER_SLOW=1 cargo test --release --test kills random`. A failure
//! prints its seed, and the one command that plays that life again: times are measured by a clock, so it may take a few
//! tries, while points and choices are the same each time.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use crate::kills::checker;
use crate::kills::checker::Counted;
use crate::kills::checker::World;
use crate::kills::life::End;
use crate::kills::life::Life;
use crate::kills::life::Script;
use crate::kills::life::Tally;
use crate::kills::process::DRIVING;
use crate::kills::process::RECORDING;
use serde_json::Value;
use tiller::domain::event::Record;

/// Lives that are played at the same time.
const SIDE_BY_SIDE: u64 = 2;

fn from_env(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

fn play(seed: u64) -> Result<Tally, String> {
    let played = catch_unwind(AssertUnwindSafe(|| Life::new(seed).play()));
    let played = played.unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        Err(said.unwrap_or("the test broke down").to_string())
    });
    played.map_err(|why| {
        format!("seed {seed}: {why}\nplay it again: TILLER_SEED={seed} cargo test --test kills one_life")
    })
}

/// Plays lives until there were so many kills.
fn play_until(kills: u64, first_seed: u64) -> Tally {
    let (next, sum, failed) = (AtomicU64::new(first_seed), Mutex::new(Tally::default()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..SIDE_BY_SIDE {
            scope.spawn(|| {
                while sum.lock().unwrap().kills < kills && failed.lock().unwrap().is_empty() {
                    match play(next.fetch_add(1, Ordering::SeqCst)) {
                        Ok(tally) => sum.lock().unwrap().add(tally),
                        Err(why) => failed.lock().unwrap().push(why),
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
    let sum = sum.into_inner().unwrap();
    println!("{} lives: {sum:?}", next.into_inner() - first_seed);
    sum
}

#[test]
fn one_life() {
    if let Some(seed) = from_env("TILLER_SEED") {
        println!("{:?}", play(seed).unwrap_or_else(|why| panic!("{why}")));
    }
}

#[test]
fn kills_at_random_moments_and_at_labelled_points_lose_nothing() {
    let kills = if std::env::var_os("TILLER_SLOW").is_some() { 600 } else { 20 };
    let sum = play_until(kills, from_env("TILLER_FIRST_SEED").unwrap_or(0));
    assert!(sum.by_fault.values().sum::<u64>() * 4 > sum.kills, "too few kills at labelled points: {sum:?}");
    assert!(sum.verified > 0 && sum.served > 0, "no life was whole: {sum:?}");
    let missed: Vec<&&str> =
        DRIVING.iter().chain(&RECORDING).filter(|point| !sum.by_fault.contains_key(**point)).collect();
    assert!(missed.is_empty() || kills < 500, "no kill at {missed:?}");
}

/// One kill a life, at each labelled point in turn: the end is that of a life without any. By the script that has
/// something of everything, and by drawn ones, which do not pass every point. Where time is short, a third of the
/// points each, and the first passing.
#[test]
fn s_68_any_crash_same_end() {
    let is_slow = std::env::var_os("TILLER_SLOW").is_some();
    let seed = from_env("TILLER_SEED").unwrap_or(1);
    let (seeds, nths, step) = if is_slow { (seed..seed + 4, 1..=3, 1) } else { (seed..seed + 1, 1..=1, 3) };
    let points = nths.flat_map(|nth| DRIVING.iter().chain(&RECORDING[2..]).map(move |point| format!("{point}:{nth}")));
    let points: Vec<String> = points.collect();
    let mut plays: Vec<(Script, &String)> = points.iter().step_by(step).map(|point| (Script::Fixed, point)).collect();
    let mut wholes = vec![Life::plain(Script::Fixed, None).end().unwrap()];
    for (seed, number) in seeds.zip(1..) {
        wholes.push(Life::plain(Script::Drawn(seed), None).end().unwrap());
        plays.extend(points.iter().skip(number % step).step_by(step).map(|point| (Script::Drawn(seed), point)));
    }
    let whole = |script: Script| match script {
        Script::Fixed => &wholes[0],
        Script::Drawn(drawn) => &wholes[1 + usize::try_from(drawn - seed).unwrap()],
    };
    let (next, struck, failed) = (AtomicU64::new(0), AtomicU64::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..SIDE_BY_SIDE {
            scope.spawn(|| {
                while let Some((script, fault)) =
                    plays.get(usize::try_from(next.fetch_add(1, Ordering::SeqCst)).unwrap())
                {
                    let ended = Life::plain(*script, Some((*fault).clone())).end().and_then(|end| {
                        struck.fetch_add(end.kills, Ordering::SeqCst);
                        // Later passings are not reached by every process.
                        if end.kills == 0 && fault.ends_with(":1") && matches!(script, Script::Fixed) {
                            return Err("it never struck".to_string());
                        }
                        whole(*script).agrees(&end)
                    });
                    failed
                        .lock()
                        .unwrap()
                        .extend(ended.err().map(|why| format!("{script:?}, TILLER_FAULT={fault}: {why}")));
                }
            });
        }
    });
    let (failed, struck) = (failed.into_inner().unwrap(), struck.into_inner());
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
    println!("{struck} kills in {} lives", plays.len());
    assert!(struck * 2 > plays.len() as u64, "only {struck} of {} lives were killed", plays.len());
}

type Spoil<'a> = Box<dyn Fn(&mut World) + 'a>;

#[test]
fn the_checker_bites() {
    // A life with a provider.
    let end = (0..20).find_map(|seed| Life::new(seed).end().ok().filter(|end| end.world.owed > 0)).unwrap();
    let End { records, run, world, kills: _ } = end;
    assert_eq!(checker::check(&records, &run, &world), Ok(()));
    let (mark, left) = world.marks.iter().find(|(mark, _)| mark.starts_with('m')).unwrap();
    let more = left + records.len() as u64;
    let beyond = records.len() as u64 + 1;
    let spoiled: [(&str, Spoil<'_>); 8] = [
        ("was acknowledged as", Box::new(|world| world.acknowledged.extend([(3, Value::Null)]))),
        ("is None", Box::new(|world| world.acknowledged.extend([(beyond, Value::Null)]))),
        ("commands were answered", Box::new(|world| world.orders.0 += 100)),
        ("times and was allowed", Box::new(|world| world.marks.extend([(mark.clone(), more)]))),
        ("the journal does not have", Box::new(|world| world.marks.extend([("m77-7m".to_string(), 1)]))),
        ("the provider is owed", Box::new(|world| world.owed = run.pool.spent().0 + 1)),
        ("the ledger of all runs counts", Box::new(|world| world.ledger = Some(Counted::AtLeast(world.owed - 1)))),
        (
            "the ledger of all runs counts",
            Box::new(|world| world.ledger = Some(Counted::Exactly(run.pool.spent().0 + 1))),
        ),
    ];
    for (wanted, spoil) in spoiled {
        let mut world = world.clone();
        spoil(&mut world);
        let said = checker::check(&records, &run, &world).unwrap_err();
        assert!(said.contains(wanted), "{said}");
    }
    let twice: Vec<Record> = records.iter().flat_map(result_twice).collect();
    let said = checker::check(&twice, &run, &World { acknowledged: BTreeMap::new(), ..world.clone() }).unwrap_err();
    assert!(said.contains("has 2 results"), "{said}");
    let unstarted: Vec<Record> =
        records.iter().filter(|record| record.event.name() != "tool_call_started").cloned().collect();
    let said = checker::check(&unstarted, &run, &World { acknowledged: BTreeMap::new(), ..world }).unwrap_err();
    assert!(said.contains("was never started"), "{said}");
}

fn result_twice(record: &Record) -> Vec<Record> {
    let times = if record.event.name() == "tool_call_finished" { 2 } else { 1 };
    vec![record.clone(); times]
}
