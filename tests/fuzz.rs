//! What the fuzzers look for, without a fuzzer: all inputs of the corpus, those that once were a finding among them,
//! and `TILLER_FUZZ` (else 2,000) mutations of them for each target, the same on every machine. `tests/fuzz/` has the
//! targets and how libFuzzer plays them.
#![allow(clippy::unwrap_used, clippy::panic)]

mod chance;
mod fuzz {
    pub mod targets;
}

use std::fs;
use std::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::path::PathBuf;

use chance::Chance;
use fuzz::targets::TARGETS;
use fuzz::targets::Target;

/// Mutations of each target's inputs that are played unless `TILLER_FUZZ` says how many.
const MUTATIONS: u64 = 2_000;
/// Pieces that mean something to one of the readers.
const PIECES: [&str; 40] = [
    "\n",
    "\r",
    "\0",
    "\u{1b}[",
    "⟦",
    "⟧",
    "\u{202e}",
    "data: ",
    "\"",
    "\\",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "null",
    "-1",
    "18446744073709551616",
    "1e999",
    "\\ud800",
    "- [ ] ",
    "```",
    "💥",
    " && ",
    " || ",
    " | ",
    "; ",
    "$(",
    "`",
    "'",
    " >/dev/null",
    " 2>&1",
    " &",
    "{any:one}",
    "{any:rest}",
    "--",
    "=",
    "~",
    "*",
];

fn corpus(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus").join(target);
    let mut inputs: Vec<(String, Vec<u8>)> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read(&path).unwrap()))
        .collect();
    inputs.sort();
    assert!(!inputs.is_empty(), "{target} has no corpus");
    inputs
}

/// One input with a few changes.
fn mutated(chance: &mut Chance, inputs: &[(String, Vec<u8>)]) -> Vec<u8> {
    let pick = |chance: &mut Chance| inputs[chance.below(inputs.len() as u64) as usize].1.clone();
    let mut input = pick(chance);
    for _ in 0..=chance.below(4) {
        // What stands first decides much, and is short.
        let reach = if chance.percent(20) { input.len().min(40) } else { input.len() };
        let at = chance.below(reach as u64 + 1) as usize;
        let end = (at + chance.below(40) as usize).min(input.len());
        match chance.below(6) {
            0 => drop(input.splice(at..end, [])),
            1 => drop(input.splice(at..at, [chance.below(256) as u8])),
            2 => drop(input.splice(at..end, chance.pick(&PIECES).bytes())),
            3 => {
                let piece = input[at..end].to_vec();
                let to = chance.below(input.len() as u64 + 1) as usize;
                drop(input.splice(to..to, piece));
            }
            4 => {
                let other = pick(chance);
                let from = chance.below(other.len() as u64 + 1) as usize;
                input.truncate(at);
                input.extend_from_slice(&other[from..]);
            }
            _ => input.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << chance.below(8)),
        }
    }
    input
}

fn play((name, target): Target, input: &[u8], which: &str) {
    if catch_unwind(AssertUnwindSafe(|| target(input))).is_err() {
        let path = std::env::temp_dir().join(format!("tiller-fuzz-{name}-{}", std::process::id()));
        let _ = fs::write(&path, input);
        panic!("{name}, {which}: the input is in {}; keep it in tests/fuzz/corpus/{name}", path.display());
    }
}

fn check(name: &str) {
    let target = TARGETS.into_iter().find(|(known, _)| *known == name).unwrap();
    let inputs = corpus(name);
    for (file, input) in &inputs {
        play(target, input, file);
    }
    let mutations = std::env::var("TILLER_FUZZ").ok().map_or(MUTATIONS, |many| many.parse().unwrap());
    for seed in 0..mutations {
        play(target, &mutated(&mut Chance::new(seed), &inputs), &format!("seed {seed}"));
    }
}

#[test]
fn sse() {
    check("sse");
}

#[test]
fn stream() {
    check("stream");
}

#[test]
fn journal() {
    check("journal");
}

#[test]
fn plan() {
    check("plan");
}

#[test]
fn visible() {
    check("visible");
}

#[test]
fn line() {
    check("line");
}

#[test]
fn rule() {
    check("rule");
}
