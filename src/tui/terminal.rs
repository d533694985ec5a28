//! The terminal itself: taken when a screen opens, given back on every way out, a panic included. Nothing here knows
//! what is drawn.

use std::io;
use std::io::BufWriter;
use std::io::IsTerminal;
use std::io::Stdout;
use std::io::Write;
use std::sync::Once;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;

use crossterm::cursor::Show;
use crossterm::event::DisableBracketedPaste;
use crossterm::event::DisableFocusChange;
use crossterm::event::EnableBracketedPaste;
use crossterm::event::EnableFocusChange;
use crossterm::event::KeyboardEnhancementFlags;
use crossterm::event::PopKeyboardEnhancementFlags;
use crossterm::event::PushKeyboardEnhancementFlags;
use crossterm::queue;
use crossterm::style::Print;
use crossterm::terminal::BeginSynchronizedUpdate;
use crossterm::terminal::EndSynchronizedUpdate;
use crossterm::terminal::EnterAlternateScreen;
use crossterm::terminal::LeaveAlternateScreen;
use crossterm::terminal::SetTitle;
use crossterm::terminal::disable_raw_mode;
use crossterm::terminal::enable_raw_mode;
use crossterm::terminal::size;
use crossterm::terminal::supports_keyboard_enhancement;
use nix::sys::signal::Signal;
use nix::sys::signal::raise;
use nix::sys::termios::FlushArg;
use nix::sys::termios::tcflush;
use ratatui::Frame;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Position;
use ratatui::layout::Rect;

use crate::domain::visible::drawn;
use crate::tui::app::Alerts;

/// A frame is collected and written at once; most are smaller than this.
const FRAME_BYTES: usize = 64 * 1024;
/// Terminals that do not answer the question for their keyboard, and would be waited for.
const SILENT_TERMINALS: [&str; 4] = ["", "dumb", "linux", "vt100"];

/// Whether the terminal is ours at the moment.
static TAKEN: AtomicBool = AtomicBool::new(false);
/// Whether the keyboard was asked to tell more.
static ENHANCED: AtomicBool = AtomicBool::new(false);
/// Whether the keyboard can tell more; known once it was asked.
static TELLS_MORE: OnceLock<bool> = OnceLock::new();
static HOOK: Once = Once::new();

/// How many cells wide the terminal is that standard output goes to; nothing where it goes elsewhere.
pub fn columns() -> Option<usize> {
    let size = io::stdout().is_terminal().then(size)?;
    size.ok().map(|(columns, _)| usize::from(columns)).filter(|columns| *columns > 0)
}

/// The terminal while a screen is open. Dropping it gives the terminal back.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<BufWriter<Line>>>,
    title: String,
}

/// The way to the terminal, which swallows what comes while the terminal is not ours. `ratatui` shows the cursor as it
/// is dropped, and panics where it can't say that this failed: the terminal may be gone.
struct Line(Stdout);

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if TAKEN.load(Ordering::SeqCst) { self.0.write(bytes) } else { Ok(bytes.len()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        if TAKEN.load(Ordering::SeqCst) { self.0.flush() } else { Ok(()) }
    }
}

impl Screen {
    /// Takes the terminal.
    pub fn open() -> io::Result<Screen> {
        hook_panics();
        let backend = CrosstermBackend::new(BufWriter::with_capacity(FRAME_BYTES, Line(io::stdout())));
        let mut screen = Screen { terminal: Terminal::new(backend)?, title: String::new() };
        screen.take()?;
        // The other screen may be in use already, as after a process that was killed, and hold what it showed.
        screen.clear()?;
        Ok(screen)
    }

    /// Draws a frame, which appears as a whole where the terminal can do that.
    pub fn draw(&mut self, render: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        queue!(self.terminal.backend_mut(), BeginSynchronizedUpdate)?;
        self.terminal.draw(render)?;
        queue!(self.terminal.backend_mut(), EndSynchronizedUpdate)?;
        self.terminal.backend_mut().flush()
    }

    /// Sets the window title; the text must be sanitised.
    pub fn set_title(&mut self, title: String) -> io::Result<()> {
        let title = drawn(title);
        if title != self.title {
            queue!(self.terminal.backend_mut(), SetTitle(&title))?;
            self.title = title;
        }
        Ok(())
    }

    /// Calls the operator, with the next frame; the text must be sanitised.
    pub fn call(&mut self, alerts: Alerts, text: &str) -> io::Result<()> {
        if alerts.bell {
            queue!(self.terminal.backend_mut(), Print('\x07'))?;
        }
        if alerts.desktop {
            let text = drawn(text.to_string());
            queue!(self.terminal.backend_mut(), Print(format!("\x1b]9;tiller: {text}\x07")))?;
        }
        Ok(())
    }

    /// Forgets what the terminal shows, so that the next frame is drawn in full.
    pub fn clear(&mut self) -> io::Result<()> {
        // Not `clear`, which asks the terminal where its cursor is, and fails where no answer comes in time.
        let size = self.terminal.size()?;
        self.terminal.resize(Rect::from((Position::ORIGIN, size)))
    }

    /// Gives the terminal to the shell, stops, and takes it back when the shell says so. What was typed meanwhile is
    /// dropped: it was not typed here.
    pub fn suspend(&mut self) -> io::Result<()> {
        restore();
        raise(Signal::SIGTSTP)?;
        self.resume()
    }

    /// Takes the terminal back after a stop.
    pub fn resume(&mut self) -> io::Result<()> {
        if !TAKEN.load(Ordering::SeqCst) {
            self.take()?;
        }
        enable_raw_mode()?;
        tcflush(io::stdin(), FlushArg::TCIFLUSH)?;
        self.clear()
    }

    fn take(&mut self) -> io::Result<()> {
        enable_raw_mode()?;
        TAKEN.store(true, Ordering::SeqCst);
        let backend = self.terminal.backend_mut();
        queue!(backend, EnterAlternateScreen, EnableBracketedPaste, EnableFocusChange)?;
        backend.flush()?;
        // Asked once, before anything else listens to the terminal and would take the answer.
        if *TELLS_MORE.get_or_init(keyboard_tells_more) {
            // Tells Shift-Enter from Enter, and a held key from a pressed one.
            let flags =
                KeyboardEnhancementFlags::DISAMBIGUATE_ESCAPE_CODES | KeyboardEnhancementFlags::REPORT_EVENT_TYPES;
            ENHANCED.store(true, Ordering::SeqCst);
            queue!(backend, PushKeyboardEnhancementFlags(flags))?;
            backend.flush()?;
        }
        self.title.clear();
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Gives the terminal back, once. Errors are of no use here: there may be no terminal any more.
fn restore() {
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    let mut out = io::stdout();
    let _ = queue!(out, EndSynchronizedUpdate);
    if ENHANCED.swap(false, Ordering::SeqCst) {
        let _ = queue!(out, PopKeyboardEnhancementFlags);
    }
    let _ = queue!(out, DisableFocusChange, DisableBracketedPaste, LeaveAlternateScreen, Show);
    let _ = out.flush();
    let _ = disable_raw_mode();
}

fn keyboard_tells_more() -> bool {
    let term = std::env::var("TERM").unwrap_or_default();
    !SILENT_TERMINALS.contains(&term.as_str()) && supports_keyboard_enhancement().unwrap_or(false)
}

/// Says what a panic means, for the whole program: it is called first on the thread that the screens run on. Nobody
/// fences that one: the terminal is given back and the panic is told. Every other thread and task is fenced by whoever
/// started it, who knows what to do and what to say; the log keeps what it was.
pub fn hook_panics() {
    HOOK.call_once(|| {
        let (own, before) = (std::thread::current().id(), std::panic::take_hook());
        std::panic::set_hook(Box::new(move |info| {
            if std::thread::current().id() == own {
                restore();
                before(info);
            } else {
                tracing::error!(panic = %info, "a part of the program broke down; whoever started it is told");
            }
        }));
    });
}
