//! A terminal to run the program in: what it shows, what is typed, and what is left of it afterwards.

use std::io::Read;
use std::io::Write;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Instant;

use portable_pty::Child;
use portable_pty::CommandBuilder;
use portable_pty::MasterPty;
use portable_pty::PtyPair;
use portable_pty::PtySize;
use portable_pty::native_pty_system;

use crate::real::PATIENCE;
use crate::real::Stage;
use crate::real::until;

/// A terminal of the kind that answers questions, with one program in it.
pub(crate) struct Pty {
    pair: PtyPair,
    child: Option<Box<dyn Child + Send + Sync>>,
    seen: Arc<Mutex<Seen>>,
    keys: Arc<Mutex<Box<dyn Write + Send>>>,
    before: String,
}

struct Seen {
    screen: vt100::Parser,
    bytes: Vec<u8>,
    is_closed: bool,
}

impl Pty {
    /// Runs the program with these words.
    pub(crate) fn tiller(stage: &Stage, size: (u16, u16), words: &[&str]) -> Pty {
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_tiller"));
        command.args(words);
        Pty::start(stage, size, command)
    }

    /// Runs lines of a shell that controls jobs.
    pub(crate) fn shell(stage: &Stage, size: (u16, u16), lines: &str) -> Pty {
        let mut command = CommandBuilder::new("/bin/bash");
        command.args(["--norc", "--noprofile", "-c", lines]);
        command.env("TILLER", env!("CARGO_BIN_EXE_tiller"));
        Pty::start(stage, size, command)
    }

    fn start(stage: &Stage, (columns, rows): (u16, u16), mut command: CommandBuilder) -> Pty {
        let tiller = command.get_env("TILLER").map(ToOwned::to_owned);
        command.env_clear();
        if let Some(tiller) = tiller {
            command.env("TILLER", tiller);
        }
        for (name, value) in stage.environment() {
            command.env(name, value);
        }
        command.env("TERM", "xterm-256color");
        command.cwd(stage.path("work"));
        let pair = native_pty_system().openpty(size(columns, rows)).unwrap();
        let before = settings(pair.master.as_ref());
        let keys = Arc::new(Mutex::new(pair.master.take_writer().unwrap()));
        let seen = Arc::new(Mutex::new(Seen {
            screen: vt100::Parser::new(rows, columns, 0),
            bytes: Vec::new(),
            is_closed: false,
        }));
        read(pair.master.try_clone_reader().unwrap(), seen.clone(), keys.clone());
        let child = Some(pair.slave.spawn_command(command).unwrap());
        Pty { pair, child, seen, keys, before }
    }

    pub(crate) fn id(&self) -> i32 {
        self.child.as_ref().unwrap().process_id().unwrap() as i32
    }

    /// Closes the terminal under the program, which must write once more for that.
    pub(crate) fn close(mut self) -> Box<dyn Child + Send + Sync> {
        self.seen.lock().unwrap().is_closed = true;
        self.child.take().unwrap()
    }

    pub(crate) fn type_in(&self, keys: &str) {
        let mut out = self.keys.lock().unwrap();
        out.write_all(keys.as_bytes()).unwrap();
        out.flush().unwrap();
    }

    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        // The other end of the line breaks down at sizes that it does not expect, and is spared them.
        if columns >= 20 && rows >= 5 {
            self.seen.lock().unwrap().screen.screen_mut().set_size(rows, columns);
        }
        self.pair.master.resize(size(columns, rows)).unwrap();
    }

    pub(crate) fn text(&self) -> String {
        self.seen.lock().unwrap().screen.screen().contents()
    }

    /// What a terminal full of `junk` would show that was on its other screen already, and so does not clean it.
    pub(crate) fn text_over(&self, junk: &str) -> String {
        let seen = self.seen.lock().unwrap();
        let (rows, columns) = seen.screen.screen().size();
        let mut screen = vt100::Parser::new(rows, columns, 0);
        screen.process(junk.repeat(usize::from(rows * columns) / junk.len()).as_bytes());
        let written = String::from_utf8_lossy(&seen.bytes).replace("\x1b[?1049h", "");
        screen.process(written.as_bytes());
        screen.screen().contents()
    }

    /// The cells of the screen, row by row.
    pub(crate) fn cells(&self) -> Vec<Vec<String>> {
        let seen = self.seen.lock().unwrap();
        let screen = seen.screen.screen();
        let (rows, columns) = screen.size();
        let cell = |row, column| screen.cell(row, column).unwrap().contents().to_string();
        (0..rows).map(|row| (0..columns).map(|column| cell(row, column)).collect()).collect()
    }

    /// All that the program has written.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.seen.lock().unwrap().bytes.clone()
    }

    /// How many bytes the program has written.
    pub(crate) fn written(&self) -> usize {
        self.seen.lock().unwrap().bytes.len()
    }

    /// Whether the program has written these bytes.
    pub(crate) fn has_written(&self, text: &str) -> bool {
        self.seen.lock().unwrap().bytes.windows(text.len()).any(|window| window == text.as_bytes())
    }

    /// Waits until the screen shows what is looked for.
    pub(crate) fn wait(&self, what: &str, is_there: impl Fn(&str) -> bool) {
        let start = Instant::now();
        while !is_there(&self.text()) {
            assert!(start.elapsed() < PATIENCE, "in vain: {what}; the screen is\n{}", self.text());
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }

    pub(crate) fn wait_for(&self, text: &str) {
        self.wait(text, |screen| screen.contains(text));
    }

    /// Waits for the end of the program; its exit status.
    pub(crate) fn end(&mut self) -> u32 {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.as_mut().unwrap().try_wait().unwrap() {
                break status;
            }
            assert!(start.elapsed() < PATIENCE, "it does not end; the screen is\n{}", self.text());
            std::thread::sleep(std::time::Duration::from_millis(10));
        };
        // What it wrote last may be on its way.
        let mut last = usize::MAX;
        until("its last words", || {
            let now = self.written();
            let is_still = std::mem::replace(&mut last, now) == now;
            std::thread::sleep(std::time::Duration::from_millis(40));
            is_still.then_some(())
        });
        status.exit_code()
    }

    /// Asserts that the terminal is as it was found.
    pub(crate) fn check_restored(&self) {
        let seen = self.seen.lock().unwrap();
        let screen = seen.screen.screen();
        assert!(!screen.alternate_screen(), "the alternate screen is still shown");
        assert!(!screen.hide_cursor(), "the cursor is hidden");
        assert!(!screen.bracketed_paste(), "bracketed paste is on");
        assert_eq!(screen.mouse_protocol_mode(), vt100::MouseProtocolMode::None);
        let text = String::from_utf8_lossy(&seen.bytes);
        let count = |sequence: &str| text.matches(sequence).count();
        assert_eq!(count("\x1b[?1049h"), count("\x1b[?1049l"), "alternate screen");
        assert_eq!(count("\x1b[?1004h"), count("\x1b[?1004l"), "focus");
        assert_eq!(count("\x1b[?2026h"), count("\x1b[?2026h").min(count("\x1b[?2026l")), "synchronised update");
        assert_eq!(count("\x1b[>3u"), count("\x1b[<1u"), "keyboard");
        drop(seen);
        assert_eq!(settings(self.pair.master.as_ref()), self.before, "the settings of the terminal");
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        // It has ended, unless the test failed.
        if let Some(child) = &mut self.child {
            let _ = child.kill();
        }
    }
}

fn size(cols: u16, rows: u16) -> PtySize {
    PtySize { rows, cols, pixel_width: 0, pixel_height: 0 }
}

fn settings(master: &dyn MasterPty) -> String {
    format!("{:?}", master.get_termios())
}

/// Takes in what the program writes, and answers what it asks of its terminal.
fn read(mut from: Box<dyn Read + Send>, seen: Arc<Mutex<Seen>>, keys: Arc<Mutex<Box<dyn Write + Send>>>) {
    std::thread::spawn(move || {
        let mut part = [0; 65_536];
        while let Ok(count @ 1..) = from.read(&mut part) {
            let bytes = &part[..count];
            let mut seen = seen.lock().unwrap();
            seen.screen.process(bytes);
            seen.bytes.extend_from_slice(bytes);
            if seen.is_closed {
                return;
            }
            drop(seen);
            if bytes.windows(3).any(|window| window == b"\x1b[c") {
                // It knows about keyboards, and is a VT220. Other questions it does not answer.
                let mut keys = keys.lock().unwrap();
                keys.write_all(b"\x1b[?0u\x1b[?62;c").unwrap();
                keys.flush().unwrap();
            }
        }
    });
}
