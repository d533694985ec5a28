//! The real program on a disk that keeps only what was synced: cut off at any moment, every record that was printed is
//! in the journal, and every effect in the world was recorded before (docs/TESTING.md).
//!
//! strace watches the program and its children. From what they asked the system for, the files are made again as a
//! power cut at a chosen moment would leave them, and the real program opens them. Where strace is missing or may not
//! watch, this is skipped with a reason. More moments: `TILLER_SLOW=1 cargo test --test kills power`; another choice of
//! them: `TILLER_SEED=7`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::process::Stdio;

use crate::chance::Chance;
use crate::kills::checker;
use crate::kills::checker::Counted;
use crate::kills::checker::World;
use crate::kills::life::records;
use crate::kills::life::run_id;
use crate::kills::power::disk::Disk;
use crate::kills::power::disk::Unsynced;
use crate::kills::power::trace;
use crate::kills::power::trace::Asked;
use crate::kills::power::trace::Seen;
use crate::kills::provider::Provider;
use crate::kills::script;
use crate::real;
use crate::real::Stage;
use crate::skip::skip;
use serde_json::Value;
use tiller::domain::event::Record;
use tiller::domain::run::Run;

/// Tells the re-executed test where its store is, and whether it syncs.
const VARIABLE: &str = "TILLER_CONTROL_DIR";
const SYNCS: &str = "TILLER_CONTROL_SYNCS";

fn is_slow() -> bool {
    std::env::var_os("TILLER_SLOW").is_some()
}

fn seed() -> u64 {
    std::env::var("TILLER_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Whether a program can be watched here; says why, if not.
fn can_watch() -> bool {
    let why = trace::unavailable();
    if let Some(why) = &why {
        skip(why);
    }
    why.is_none()
}

/// Runs a command to its end and gives what was seen, with what it printed going to this file.
fn watch(command: &Command, out: &Path) -> Vec<Seen> {
    let log = out.with_extension("trace");
    let mut child = trace::watched(command, &log)
        .stdin(Stdio::null())
        .stdout(fs::File::create(out).unwrap())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut err = child.stderr.take().unwrap();
    let said = std::thread::spawn(move || std::io::read_to_string(&mut err).unwrap_or_default());
    let code = real::ends(&mut child);
    let said = said.join().unwrap();
    assert!([0, 10, 11, 12, 14].contains(&code), "{command:?} ended with {code}: {said}");
    let seen = trace::read(&log);
    fs::remove_file(log).unwrap();
    seen
}

/// Whole lines that were on their way out before a moment.
fn lines(seen: &[Seen], out: &Path) -> Vec<String> {
    let writes = seen.iter().filter_map(|one| match one {
        Seen::Enters(Asked::Write { path, bytes, .. }) if path == out => Some(bytes.as_slice()),
        Seen::Enters(_) | Seen::Exits(_) => None,
    });
    let text = writes.flatten().copied().collect();
    let text = String::from_utf8(text).unwrap();
    text.split_inclusive('\n').filter(|line| line.ends_with('\n')).map(|line| line.trim_end().to_string()).collect()
}

/// Moments of a trace: right after the things that matter, and others by chance.
fn moments(seen: &[Seen], out: &Path, chance: &mut Chance) -> Vec<usize> {
    let matters = |one: &Seen| match one {
        Seen::Enters(Asked::Write { path, .. }) => path == out || path.ends_with(script::TRACES),
        Seen::Exits(Asked::Sync { .. } | Asked::Rename { .. } | Asked::Exchange { .. }) => true,
        Seen::Enters(_) | Seen::Exits(_) => false,
    };
    let share = if is_slow() { 100 } else { 4 };
    let mut chosen: Vec<usize> =
        (0..seen.len()).filter(|at| matters(&seen[*at]) && chance.percent(share)).map(|at| at + 1).collect();
    chosen.extend((0..1 + share / 20).map(|_| usize::try_from(chance.below(seen.len() as u64 + 1)).unwrap()));
    chosen.push(seen.len());
    chosen.sort_unstable();
    chosen.dedup();
    chosen
}

/// A run in a world, watched from its first process to its last.
struct Watched {
    stage: Stage,
    out: std::path::PathBuf,
    /// What was acknowledged, and left in the world, by the processes before.
    acknowledged: BTreeMap<u64, Value>,
    marks: BTreeMap<String, u64>,
    orders: u64,
    /// Who sends bills, where the run spends real money; and what was owed before the process that is played.
    provider: Option<Provider>,
    owed: u64,
    chance: Chance,
    cuts: u64,
    /// Cuts at which bytes that were written are not on the disk.
    losing: u64,
}

impl Watched {
    fn new(seed: u64, spends: bool) -> Watched {
        let mut chance = Chance::new(seed);
        let stage = Stage::new();
        stage.write(&format!("work/{}", script::EDITED), "marks:\n");
        let steps = script::steps(&mut chance);
        stage.write("script.toml", &script::toml(&steps));
        let provider = spends.then(|| Provider::start(steps));
        if let Some(provider) = &provider {
            stage.write("config/tiller/tiller.toml", &provider.configuration());
        }
        let out = stage.path("out");
        let (acknowledged, marks) = (BTreeMap::new(), BTreeMap::new());
        Watched { stage, out, acknowledged, marks, orders: 0, provider, owed: 0, chance, cuts: 0, losing: 0 }
    }

    /// Plays the run to its end; after each process, the power is cut at moments of it.
    fn play(&mut self) {
        let scripted = format!("scripted/{}", self.stage.path("script.toml").display());
        let model = if self.provider.is_some() { "near/m" } else { &scripted };
        self.process(&["run", "leave marks", "--json", "--budget", "40", "--check", "true", "--model", model], false);
        let id = self.stage.ids()[0].clone();
        for _ in 0..30 {
            let shown = self.stage.show();
            if shown.pointer("/summary/status/completed").is_some() {
                return;
            }
            for one in shown["waiting"].as_array().unwrap() {
                match one["waits_for"].as_str().unwrap() {
                    "answer" => self.process(&["answer", &id, "yes"], true),
                    _ => {
                        let (call, digest) = (one["call"].as_str().unwrap(), one["digest"].as_str().unwrap());
                        self.process(&["approve", &id, call, digest], true);
                    }
                }
            }
            self.process(&["resume", &id, "--json"], false);
        }
        panic!("no end: {}", self.stage.show());
    }

    fn process(&mut self, words: &[&str], is_order: bool) {
        let before = Disk::of(&self.stage.path("state"));
        let seen = watch(&self.stage.tiller(words), &self.out);
        for at in moments(&seen, &self.out, &mut self.chance) {
            self.cut(&before, &seen[..at], words, is_order);
        }
        self.take(&seen, is_order);
    }

    /// What the world has of these calls on top of what it had.
    fn world(&self, seen: &[Seen], is_order: bool) -> World {
        let (mut acknowledged, mut marks) = (self.acknowledged.clone(), self.marks.clone());
        let printed = lines(seen, &self.out);
        let answered = u64::from(is_order && !printed.is_empty());
        if !is_order {
            for line in printed {
                let record: Value = serde_json::from_str(&line).unwrap();
                acknowledged.insert(record["seq"].as_u64().unwrap(), record);
            }
        }
        let work = self.stage.path("work");
        for one in seen {
            let Seen::Enters(Asked::Write { path, bytes, .. }) = one else { continue };
            let text = String::from_utf8_lossy(bytes);
            let words = text.split_whitespace().filter(|word| path.starts_with(&work) && checker::mark(word) == **word);
            for mark in words {
                let left = marks.entry(mark.to_string()).or_default();
                // Lines of traces are counted; a file that is written whole has marks of earlier writes in it.
                *left = if path.ends_with(script::TRACES) { *left + 1 } else { 1 };
            }
        }
        let orders = (self.orders + answered, self.orders + u64::from(is_order));
        World { acknowledged, orders, marks, owed: self.owed, ledger: None }
    }

    fn take(&mut self, seen: &[Seen], is_order: bool) {
        let world = self.world(seen, is_order);
        self.acknowledged = world.acknowledged;
        self.marks = world.marks;
        self.orders = world.orders.0;
        self.owed = self.provider.as_ref().map_or(0, Provider::owed);
    }

    /// The power is cut after these calls.
    fn cut(&mut self, before: &Disk, seen: &[Seen], words: &[&str], is_order: bool) {
        let mut disk = before.clone();
        for one in seen {
            disk.play(one).unwrap();
        }
        self.cuts += 1;
        let mut world = self.world(seen, is_order);
        let share = self.chance.below(100);
        // Where time is short, one of the two in turn.
        let ways: Vec<bool> = if is_slow() { vec![true, false] } else { vec![self.cuts % 2 == 1] };
        for loses_all in ways {
            let left = tempfile::tempdir().unwrap();
            let state = left.path().join("state");
            if loses_all {
                disk.leave(&state, Unsynced::Lost);
            } else {
                disk.leave(&state, Unsynced::Chance(&mut || self.chance.percent(share)));
            }
            self.losing += u64::from(loses_all && disk.has_unsynced());
            world.ledger = self.provider.as_ref().map(|_| Counted::AtLeast(checker::ledger(&state)));
            let held = self.opens(&state, &world);
            let what = format!("seed {}, {words:?}, cut after {} calls, all lost: {loses_all}", seed(), seen.len());
            assert!(held.is_ok(), "{what}: {}", held.unwrap_err());
        }
    }

    /// The real program opens what is left, and writes on.
    fn opens(&self, state: &Path, world: &World) -> Result<(), String> {
        let ask = |words: &[&str]| real::said(self.stage.tiller(words).env("XDG_STATE_HOME", state).spawn().unwrap());
        let runs = ask(&["runs", "--json"]);
        if runs.code != 0 || runs.out.contains("\"damaged\"") {
            return Err(format!("{runs}"));
        }
        let Some(line) = runs.out.lines().next() else {
            let is_clean = world.acknowledged.is_empty() && world.marks.is_empty();
            return if is_clean { Ok(()) } else { Err("the run is gone".to_string()) };
        };
        let listed: Value = serde_json::from_str(line).unwrap();
        let id = listed.pointer("/summary/id").unwrap().as_str().unwrap();
        let shown = ask(&["show", id, "--json"]);
        if shown.code != 0 {
            return Err(format!("{shown}"));
        }
        let records = records(state, id)?;
        let run = Run::fold(&run_id(id), &records).map_err(|broken| broken.to_string())?;
        checker::check(&records, &run, world)?;
        if run.is_ended() {
            return Ok(());
        }
        let cancelled = ask(&["cancel", id]);
        if cancelled.code != 0 || records_follow(&records, &self::records(state, id)?).is_err() {
            return Err(format!("it can't go on: {cancelled}"));
        }
        Ok(())
    }
}

fn records_follow(before: &[Record], after: &[Record]) -> Result<(), ()> {
    if after.starts_with(before) && after.len() > before.len() { Ok(()) } else { Err(()) }
}

/// Plays runs and cuts the power at moments of them.
fn check(spends: bool, seeds: u64) {
    if !can_watch() {
        return;
    }
    let (mut cuts, mut losing) = (0, 0);
    for seed in seed()..seed() + seeds {
        let mut watched = Watched::new(seed, spends);
        watched.play();
        cuts += watched.cuts;
        losing += watched.losing;
        assert_eq!(spends, watched.owed > 0, "seed {seed}");
    }
    println!("{cuts} cuts, at {losing} of them written bytes were lost");
    assert!(cuts > 15 && losing > 5, "{cuts} cuts and {losing}");
}

#[test]
fn a_power_cut_at_any_moment_loses_nothing_that_was_acknowledged() {
    check(false, if is_slow() { 3 } else { 1 });
}

/// What is set aside is in the ledger of all runs, durably, before it is in the run's journal.
#[test]
fn a_power_cut_at_any_moment_takes_no_bill_out_of_the_ledger() {
    check(true, 1);
}

/// Not a test by itself, and nothing without the variable: a store as a careless program has one.
#[test]
fn control() {
    let Ok(dir) = std::env::var(VARIABLE) else { return };
    let syncs = std::env::var_os(SYNCS).is_some();
    let db = sled::Config::new().path(&dir).flush_every_ms(None).open().unwrap();
    let file = fs::File::open(Path::new(&dir).join("db")).unwrap();
    for number in 0..30_u64 {
        db.insert(number.to_be_bytes(), vec![7; 300]).unwrap();
        db.flush().unwrap();
        if syncs {
            file.sync_data().unwrap();
        }
        println!("acknowledged {number}");
    }
    // The end of a process is no power cut: what sled writes as it closes is left out.
    std::process::exit(0);
}

/// How many acknowledged values of the control are gone after a cut at the last of them.
fn control_loses(syncs: bool) -> usize {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let out = dir.path().join("out");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "kills::power_loss::control", "--nocapture"]).env(VARIABLE, &store);
    if syncs {
        command.env(SYNCS, "yes");
    }
    let mut disk = Disk::of(&store);
    let seen = watch(&command, &out);
    let acknowledged = |seen: &[Seen]| lines(seen, &out).iter().filter(|line| line.starts_with("acknowledged")).count();
    let last = (0..seen.len()).find(|at| acknowledged(&seen[..*at]) == 30).unwrap();
    seen[..last].iter().for_each(|one| disk.play(one).unwrap());
    let left = dir.path().join("left");
    disk.leave(&left, Unsynced::Lost);
    let db = sled::Config::new().path(&left).flush_every_ms(None).open().unwrap();
    (0..30_u64).filter(|number| db.get(number.to_be_bytes()).unwrap().is_none()).count()
}

#[test]
fn the_disk_catches_a_store_that_does_not_sync() {
    if !can_watch() {
        return;
    }
    assert_eq!(control_loses(true), 0, "a store that syncs is accused");
    let lost = control_loses(false);
    println!("without the sync, {lost} of 30 acknowledged values are gone");
    assert!(lost > 20, "only {lost}");
}
