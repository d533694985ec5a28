//! A disk that fails once while a process drives a run, and commands in other terminals that wait for their turn. After a
//! failed write the store is opened anew, and whoever waits may get in before that: what was recorded then, and was said
//! to be, must stay.

use std::fs;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;

use crate::chance::Chance;
use crate::kills::power::trace;
use crate::real::Stage;
use crate::real::ends;
use crate::real::said;
use crate::skip::skip;

/// Terminals in which something is said again and again.
const SPEAKERS: usize = 6;

/// A model that looks around for a while, and needs nobody's leave for it.
fn script() -> String {
    let looks = (0..8).map(|number| {
        let calls = format!("[{{ tool = \"list_dir\", args = {{ path = \"./{number}\" }} }}]");
        format!("[[step]]\nname = \"look {number}\"\ntext = \"one two three four\"\nchunk_ms = 20\ncalls = {calls}\n")
    });
    format!("title = \"looks\"\n{}", looks.collect::<String>())
}

/// Resumes a run under strace, which lets one sync of a file fail; the first is 1.
fn resume(stage: &Stage, id: &str, nth: u64) -> Child {
    let plain = stage.tiller(&["resume", id, "--json"]);
    let mut watched = Command::new("strace");
    let fails = format!("inject=fdatasync:error=EIO:when={nth}");
    watched.args(["-f", "-e", "trace=fdatasync", "-e", &fails, "-o"]).arg(stage.path("calls.txt"));
    watched.arg(plain.get_program()).args(plain.get_args()).env_clear();
    watched.envs(stage.environment()).current_dir(stage.path("work"));
    watched.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Plays one run. Gives whether the disk failed, and how much was recorded beside it.
fn play(seed: u64) -> (bool, usize) {
    let stage = Stage::new();
    let model = format!("scripted/{}", stage.write("script.toml", &script()).display());
    let mut first = stage.tiller(&["run", "look around", "--json", "--model", &model]);
    assert_eq!(said(first.env("TILLER_FAULT", "after:C3:1").spawn().unwrap()).code, -9);
    let id = stage.ids()[0].clone();
    let mut driver = resume(&stage, &id, 2 + Chance::new(seed).below(12));
    let (recorded, is_over) = (Mutex::new(Vec::new()), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for speaker in 0..SPEAKERS {
            let (recorded, is_over, stage, id) = (&recorded, &is_over, &stage, &id);
            scope.spawn(move || {
                for number in 0.. {
                    let words = format!("word-{speaker}-{number}-end");
                    if stage.ask(&["say", id, &words]).code == 0 {
                        recorded.lock().unwrap().push(words);
                    }
                    if is_over.load(Ordering::SeqCst) {
                        break;
                    }
                }
            });
        }
        ends(&mut driver);
        is_over.store(true, Ordering::SeqCst);
    });
    let recorded = recorded.into_inner().unwrap();
    let exported = stage.ask(&["export", &id]);
    exported.check(0, &[]);
    for words in &recorded {
        assert!(exported.out.contains(words), "seed {seed}: {words} was recorded, and is not there\n{exported}");
    }
    stage.ask(&["audit", &id, "--verify"]).check(0, &[]);
    let has_failed = fs::read_to_string(stage.path("calls.txt")).unwrap().contains("INJECTED");
    (has_failed, recorded.len())
}

#[test]
fn what_is_recorded_while_the_disk_of_another_fails_stays() {
    if let Some(why) = trace::unavailable() {
        return skip(&why);
    }
    let rounds = if std::env::var_os("TILLER_SLOW").is_some() { 60 } else { 6 };
    let played: Vec<(bool, usize)> = (0..rounds).map(play).collect();
    println!("{played:?}");
    assert!(played.iter().any(|(has_failed, recorded)| *has_failed && *recorded > 0), "{played:?}");
}
