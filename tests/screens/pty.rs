//! The real program on a real pseudo-terminal: keys arrive, the run goes on, and the terminal is given back on every
//! way out.

use std::io::Read;
use std::io::Write;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;
use std::time::Instant;

use portable_pty::Child;
use portable_pty::CommandBuilder;
use portable_pty::MasterPty;
use portable_pty::PtySize;
use portable_pty::native_pty_system;
use tempfile::TempDir;

/// Longest wait for anything, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
const SIZE: PtySize = PtySize { rows: 30, cols: 110, pixel_width: 0, pixel_height: 0 };

/// A program on a pseudo-terminal.
struct Seat {
    child: Box<dyn Child + Send + Sync>,
    keys: Box<dyn Write + Send>,
    bytes: Arc<Mutex<Vec<u8>>>,
    _pty: Box<dyn MasterPty + Send>,
    _home: TempDir,
}

impl Seat {
    fn open(program: &str, arguments: &[&str]) -> Seat {
        let home = tempfile::tempdir().unwrap();
        let mut command = CommandBuilder::new(program);
        command.args(arguments);
        command.env_clear();
        let path = std::env::var("PATH").unwrap_or_default();
        for (name, value) in
            [("PATH", path.as_str()), ("TERM", "vt100"), ("LANG", "C.UTF-8"), ("TILLER_PTY_CHILD", "1")]
        {
            command.env(name, value);
        }
        for name in ["HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"] {
            // Apart from each other: what lies in the folder of the configuration is refused to tools.
            let folder = home.path().join(name);
            std::fs::create_dir(&folder).unwrap();
            command.env(name, folder);
        }
        command.cwd(home.path());
        let pair = native_pty_system().openpty(SIZE).unwrap();
        let child = pair.slave.spawn_command(command).unwrap();
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let (mut reader, kept) = (pair.master.try_clone_reader().unwrap(), bytes.clone());
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count) = reader.read(&mut buffer)
                && count > 0
            {
                kept.lock().unwrap().extend_from_slice(&buffer[..count]);
            }
        });
        let keys = pair.master.take_writer().unwrap();
        Seat { child, keys, bytes, _pty: pair.master, _home: home }
    }

    fn screen(&self) -> String {
        let mut parser = vt100::Parser::new(SIZE.rows, SIZE.cols, 0);
        parser.process(&self.bytes.lock().unwrap());
        parser.screen().contents()
    }

    fn wait_for(&self, what: &str) {
        let start = Instant::now();
        while !self.screen().contains(what) {
            assert!(start.elapsed() < PATIENCE, "no {what:?} in\n{}", self.screen());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for the end of the program, and gives all it wrote.
    fn end(mut self) -> String {
        let start = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            assert!(start.elapsed() < PATIENCE, "still there:\n{}", self.screen());
            std::thread::sleep(Duration::from_millis(20));
        }
        // The last bytes may still be on their way through the terminal.
        let mut before = 0;
        loop {
            std::thread::sleep(Duration::from_millis(50));
            let now = self.bytes.lock().unwrap().len();
            if now == before {
                return String::from_utf8_lossy(&self.bytes.lock().unwrap()).into_owned();
            }
            before = now;
        }
    }
}

/// The terminal was given back: paste and focus reports off, the alternate screen left, the cursor shown, in what was
/// written after the last frame.
fn check_restored(written: &str) {
    let tail = &written[written.rfind("\u{1b}[?1049l").expect("the alternate screen was not left")..];
    assert!(tail.contains("\u{1b}[?25h"), "the cursor is hidden: {tail:?}");
    for (on, off) in [("\u{1b}[?2004h", "\u{1b}[?2004l"), ("\u{1b}[?1004h", "\u{1b}[?1004l")] {
        assert!(written.rfind(on) < written.rfind(off), "{off:?} is missing");
    }
    assert!(!tail.contains("\u{1b}[?1049h"));
}

#[test]
fn a_rehearsal_is_steered_and_left() {
    let mut seat = Seat::open(env!("CARGO_BIN_EXE_tiller"), &["rehearse"]);
    seat.wait_for("the run waits: 1 thing needs you");
    seat.press("\u{7}");
    seat.wait_for("[a] this run");
    seat.press("a");
    // Nothing waited for a moment, so the keys are in the composer again.
    seat.wait_for("edit_file  lib/height.sh");
    seat.wait_for("say something to the agent");
    seat.press("\u{4}");
    let written = seat.end();
    check_restored(&written);
    assert!(written.contains("tiller resume"), "{written}");
}

#[test]
fn a_signal_parks_the_run_and_gives_the_terminal_back() {
    let seat = Seat::open(env!("CARGO_BIN_EXE_tiller"), &["rehearse"]);
    seat.wait_for("the run waits: 1 thing needs you");
    let pid = i32::try_from(seat.child.process_id().unwrap()).unwrap();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGTERM).unwrap();
    let written = seat.end();
    check_restored(&written);
    assert!(written.contains("tiller resume"), "{written}");
}

/// Not a test by itself: what the test below runs on its pseudo-terminal.
#[test]
fn child_that_panics() {
    if std::env::var_os("TILLER_PTY_CHILD").is_none() {
        return;
    }
    let _screen = tiller::tui::terminal::Screen::open().unwrap();
    panic!("on purpose");
}

#[test]
fn a_panic_gives_the_terminal_back_before_it_speaks() {
    let program = std::env::current_exe().unwrap();
    let arguments = ["screens::pty::child_that_panics", "--exact", "--nocapture"];
    let written = Seat::open(program.to_str().unwrap(), &arguments).end();
    check_restored(&written);
    let said = written.find("on purpose").expect("the panic says nothing");
    assert!(written.find("\u{1b}[?1049l").unwrap() < said);
}

/// Not a test by itself: what the test below runs on its pseudo-terminal.
#[test]
fn child_of_which_a_part_breaks_down() {
    if std::env::var_os("TILLER_PTY_CHILD").is_none() {
        return;
    }
    let mut screen = tiller::tui::terminal::Screen::open().unwrap();
    for name in ["sled-io-1", "tiller-store", "any other"] {
        let part = std::thread::Builder::new().name(name.to_string()).spawn(|| panic!("on purpose")).unwrap();
        part.join().unwrap_err();
    }
    screen.draw(|frame| frame.render_widget("still-here", frame.area())).unwrap();
}

#[test]
fn a_panic_that_somebody_catches_leaves_the_screen_alone() {
    let program = std::env::current_exe().unwrap();
    let arguments = ["screens::pty::child_of_which_a_part_breaks_down", "--exact", "--nocapture"];
    let written = Seat::open(program.to_str().unwrap(), &arguments).end();
    check_restored(&written);
    assert!(!written.contains("on purpose"), "{written}");
    assert!(written.find("still-here").unwrap() < written.find("\u{1b}[?1049l").unwrap(), "{written}");
}
