//! How long a key takes to its echo, in the real program in a real terminal, at rest and under floods (R37).
//!
//! `cargo bench --bench keys` runs it. A letter is typed into the composer, and the clock stops when the composer shows
//! it. Each line ends with its target (docs/TESTING.md); the exit status is 1 when one is missed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use std::fs;
use std::io::Read;
use std::io::Write;
use std::sync::mpsc;
use std::time::Duration;
use std::time::Instant;

use portable_pty::CommandBuilder;
use portable_pty::PtySize;
use portable_pty::native_pty_system;

/// Letters that are typed into each flood, and the pause between them. The first few are not counted: floods of chance
/// write as much themselves.
const LETTERS: usize = 106;
const FIRST: usize = 6;
const PAUSE: Duration = Duration::from_millis(40);
/// Within this a key is answered.
const TARGET: Duration = Duration::from_millis(100);
/// The longest that anything here may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// What goes on while keys are pressed.
const FLOODS: [(&str, Flood); 6] = [
    ("at rest", Flood::Command("sleep 9")),
    ("a line of 60 MB", Flood::Command("head -c 60000000 /dev/zero | tr '\\\\0' x; sleep 9")),
    ("60 MB of chance", Flood::Command("head -c 60000000 /dev/urandom; sleep 9")),
    ("lines without end", Flood::Command("timeout 9 yes 'some forty letters of a line of output'")),
    ("escapes without end", Flood::Command("timeout 9 yes $(printf '\\\\033[31mred\\\\033[0m\\\\r\\\\b')")),
    ("words of the model", Flood::Words),
];

#[derive(Clone, Copy)]
enum Flood {
    /// A command prints.
    Command(&'static str),
    /// The model talks as fast as it can.
    Words,
}

impl Flood {
    fn script(self) -> String {
        match self {
            Flood::Command(line) => format!(
                "[[step]]\nname = 'flood'\ntext = 'I go.'\ncalls = [{{ tool = 'shell', args = {{ command = \"{line}\" }} }}]\n"
            ),
            Flood::Words => {
                "[[step]]\nname = 'talk'\ntext = 'one two three. '\nrepeat_text = 400000\nchunk_ms = 1\n".into()
            }
        }
    }
}

/// The program in a terminal, and what a person would see there.
struct Screen {
    child: Box<dyn portable_pty::Child + Send + Sync>,
    keys: Box<dyn Write + Send>,
    written: mpsc::Receiver<Vec<u8>>,
    seen: vt100::Parser,
}

/// Wide enough for all letters in one line of the composer.
const ROWS: u16 = 36;
const COLS: u16 = 130;

impl Screen {
    fn open(dir: &std::path::Path, flood: Flood) -> Screen {
        for name in ["work", "state", "config"] {
            fs::create_dir(dir.join(name)).unwrap();
        }
        let script = dir.join("script.toml");
        fs::write(&script, flood.script()).unwrap();
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_tiller"));
        command.args(["--model", &format!("scripted/{}", script.display()), "stay awake"]);
        command.env_clear();
        for (name, value) in [("HOME", "."), ("XDG_STATE_HOME", "state"), ("XDG_CONFIG_HOME", "config")] {
            command.env(name, dir.join(value));
        }
        command.env("PATH", "/usr/bin:/bin");
        command.env("TERM", "xterm-256color");
        command.env("TILLER_SANDBOX", "none");
        command.cwd(dir.join("work"));
        let size = PtySize { rows: ROWS, cols: COLS, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).unwrap();
        let (keys, mut from) = (pair.master.take_writer().unwrap(), pair.master.try_clone_reader().unwrap());
        let (to, written) = mpsc::channel();
        let child = pair.slave.spawn_command(command).unwrap();
        std::thread::spawn(move || {
            // The terminal stays open as long as it is read.
            let _pair = pair;
            let mut part = [0; 65_536];
            while let Ok(count @ 1..) = from.read(&mut part) {
                if to.send(part[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Screen { child, keys, written, seen: vt100::Parser::new(ROWS, COLS, 0) }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Waits until this is seen; how long that took.
    fn wait(&mut self, text: &str) -> Duration {
        let start = Instant::now();
        while !self.seen.screen().contents().contains(text) {
            let part = PATIENCE.checked_sub(start.elapsed()).and_then(|left| self.written.recv_timeout(left).ok());
            let part = part.unwrap_or_else(|| panic!("`{text}` does not come:\n{}", self.seen.screen().contents()));
            self.seen.process(&part);
        }
        start.elapsed()
    }

    /// Lets time pass.
    fn rest(&mut self, time: Duration) {
        let start = Instant::now();
        while let Some(left) = time.checked_sub(start.elapsed()) {
            if let Ok(part) = self.written.recv_timeout(left) {
                self.seen.process(&part);
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The echoes of all letters, the quickest first.
fn echoes(flood: Flood) -> Vec<Duration> {
    let dir = tempfile::tempdir().unwrap();
    let mut screen = Screen::open(dir.path(), flood);
    if let Flood::Command(_) = flood {
        screen.wait("goes here");
        // The keys that decide need rest before them.
        screen.press("\x07");
        screen.rest(Duration::from_millis(1_000));
        screen.press("y");
        screen.wait("▸ running: ");
        screen.rest(Duration::from_millis(300));
        screen.press("\x1b");
    } else {
        screen.wait("one two");
    }
    screen.rest(Duration::from_millis(900));
    let mut typed = String::new();
    let echo = |at: usize| {
        screen.rest(PAUSE);
        let letter = char::from(b'A' + u8::try_from(at * 7 % 26).unwrap());
        typed.push(letter);
        screen.press(&letter.to_string());
        screen.wait(&typed)
    };
    let mut echoes = (0..LETTERS).map(echo).skip(FIRST).collect::<Vec<_>>();
    echoes.sort();
    echoes
}

fn main() {
    let mut met = true;
    for (name, flood) in FLOODS {
        let echoes = echoes(flood);
        let at = |percent: usize| echoes[(echoes.len() * percent / 100).min(echoes.len() - 1)];
        let holds = at(100) <= TARGET;
        met &= holds;
        println!(
            "{name:<24} median {:>6.1} ms   99 % {:>6.1} ms   all {:>6.1} ms   target {} ms{}",
            at(50).as_secs_f64() * 1_000.0,
            at(99).as_secs_f64() * 1_000.0,
            at(100).as_secs_f64() * 1_000.0,
            TARGET.as_millis(),
            if holds { "" } else { "  MISSED" }
        );
    }
    if !met {
        std::process::exit(1);
    }
}
