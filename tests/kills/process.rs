//! One process of the real program, and the moment at which it is killed.

use std::io::BufRead;
use std::io::BufReader;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::process::Stdio;
use std::sync::mpsc;
use std::time::Duration;
use std::time::Instant;

use crate::chance::Chance;
use crate::real::PATIENCE;

/// The labelled points of a process that drives a run.
pub const DRIVING: [&str; 21] = [
    "before:C1",
    "after:C1",
    "before:C2",
    "after:C2",
    "before:C3",
    "after:C3",
    "before:C4",
    "after:C4",
    "before:C4b",
    "after:C4b",
    "before:C6",
    "after:C6",
    "before:C7",
    "after:C7",
    "before:C7b",
    "after:C7b",
    "before:C8",
    "after:C8",
    "tool:before",
    "tool:during",
    "tool:after",
];
/// Those of a process that records one command.
pub const RECORDING: [&str; 6] = ["before:C1", "after:C1", "before:C5", "after:C5", "before:C9", "after:C9"];

/// When a process is killed.
#[derive(Clone, Debug)]
pub enum Kill {
    Never,
    /// So long after so many lines.
    Lines(u64, Duration),
    /// So long after its start.
    Time(Duration),
    /// By itself, at a labelled point.
    Fault(String),
}

impl Kill {
    pub fn of_driver(chance: &mut Chance) -> Kill {
        match chance.below(10) {
            0..=3 => Kill::Lines(1 + chance.below(40), Duration::from_micros(chance.below(9_000))),
            4 => Kill::Time(Duration::from_micros(chance.below(60_000))),
            _ => {
                let point = chance.pick(&DRIVING);
                // Early points are passed once a process, others several times.
                let nth = if point.ends_with("C1") { 1 } else { 1 + chance.below(3) };
                Kill::Fault(format!("{point}:{nth}"))
            }
        }
    }

    pub fn of_order(chance: &mut Chance) -> Kill {
        match chance.below(10) {
            0..=5 => Kill::Never,
            6 => Kill::Time(Duration::from_micros(chance.below(40_000))),
            _ => Kill::Fault(format!("{}:1", chance.pick(&RECORDING))),
        }
    }
}

/// What became of a process.
#[derive(Debug)]
pub struct Ended {
    /// Its exit status; nothing when it was killed.
    pub code: Option<i32>,
    /// Whole lines that it printed.
    pub lines: Vec<String>,
    pub said: String,
}

impl Ended {
    pub fn was_killed(&self) -> bool {
        self.code.is_none()
    }
}

/// Runs a process to its end, which comes by itself or as planned. The error is of a process that hangs.
pub fn run(mut command: Command, kill: &Kill) -> Result<Ended, String> {
    if let Kill::Fault(point) = kill {
        command.env("TILLER_FAULT", point);
    }
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let born = Instant::now();
    let (sender, printed) = mpsc::channel();
    let out = child.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut reader = BufReader::new(out);
        let mut line = String::new();
        // A line that was cut short by the kill was not said.
        while reader.read_line(&mut line).is_ok_and(|bytes| bytes > 0) && line.ends_with('\n') {
            let _ = sender.send(line.trim_end().to_string());
            line.clear();
        }
    });
    let mut err = child.stderr.take().unwrap();
    let complaints = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = std::io::Read::read_to_end(&mut err, &mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    });
    let mut lines = Vec::new();
    let at = match kill {
        Kill::Never | Kill::Fault(_) => None,
        Kill::Time(delay) => Some(born + *delay),
        Kill::Lines(count, delay) => {
            lines.extend(printed.iter().take(usize::try_from(*count).unwrap()));
            Some(Instant::now() + *delay)
        }
    };
    if let Some(at) = at {
        // Shorter than the grain of a sleep.
        while Instant::now() < at {
            std::hint::spin_loop();
        }
        // It may have ended by itself.
        let _ = child.kill();
    }
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if born.elapsed() > PATIENCE => {
                let _ = child.kill();
                return Err(format!("a process hangs; planned was {kill:?}"));
            }
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    };
    reader.join().unwrap();
    lines.extend(printed.try_iter());
    let said = complaints.join().unwrap();
    if said.contains("panicked") || status.signal().is_some_and(|signal| signal != 9) {
        return Err(format!("a process broke down: {status}: {said}"));
    }
    Ok(Ended { code: status.code(), lines, said })
}
