//! Printing without ever holding up the run: a thread of its own writes, because a slow reader of a pipe can block
//! it for as long as it likes. A reader that has gone is told of, never a panic; a full disk changes the exit status.

use std::io::BufRead;
use std::io::ErrorKind;
use std::io::Read;
use std::io::Write;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;

use tokio::sync::mpsc;
use tokio::sync::oneshot;

use crate::domain::limits;

/// Longest answer to a question that is read.
const ANSWER_MAX_BYTES: u64 = 16;

/// Prints texts in order.
pub struct Printer {
    texts: mpsc::Sender<String>,
    done: oneshot::Receiver<()>,
}

impl Printer {
    /// A printer to `out`, flushed after each text.
    pub fn start(mut out: Box<dyn Write + Send>) -> Printer {
        let (texts, mut waiting) = mpsc::channel::<String>(limits::PRINTS);
        let (told, done) = oneshot::channel();
        std::thread::spawn(move || {
            while let Some(text) = waiting.blocking_recv() {
                if let Err(error) = out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
                    miss(&error);
                    // Dropping the receiver is how the other side learns of it.
                    return;
                }
            }
            // Nobody waits where the run was left in a hurry.
            let _ = told.send(());
        });
        Printer { texts, done }
    }

    /// Prints a text once there is room for it. Nothing happens when nobody reads any more.
    pub async fn print(&self, text: String) {
        if !text.is_empty() {
            // Whether somebody reads is told by `lost`, in one place.
            let _ = self.texts.send(text).await;
        }
    }

    /// Returns when nobody reads any more.
    pub async fn lost(&self) {
        self.texts.closed().await;
    }

    /// Returns when all is printed, or nobody reads any more.
    pub async fn finish(self) {
        drop(self.texts);
        // An error says that the thread ended early: nobody reads.
        let _ = self.done.await;
    }
}

/// Asks a question of the person at the terminal; only `yes`, or `y`, is yes.
pub fn is_agreed(question: &str) -> std::io::Result<bool> {
    put(question);
    let mut line = String::new();
    std::io::stdin().lock().take(ANSWER_MAX_BYTES).read_line(&mut line)?;
    Ok(matches!(line.trim(), "y" | "yes"))
}

/// Whether something could not be printed that somebody may wait for.
static IS_SHORT: AtomicBool = AtomicBool::new(false);

/// Whether what was printed is not all: the exit status says so, because what went to a file may be taken for whole.
pub fn is_short() -> bool {
    IS_SHORT.load(Ordering::Relaxed)
}

/// Takes note of a text that could not be printed, and says so once. A reader that has gone is no error: there is
/// nobody to tell.
fn miss(error: &std::io::Error) {
    if error.kind() != ErrorKind::BrokenPipe && !IS_SHORT.swap(true, Ordering::Relaxed) {
        put_aside(&format!(
            "tiller: the output can't be written ({error}); what was printed is not all; what was recorded is kept; \
             make room, or name another file\n"
        ));
    }
}

/// Prints a text to standard output at once.
pub fn put(text: &str) {
    let mut out = std::io::stdout().lock();
    if let Err(error) = out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        miss(&error);
    }
}

/// Prints a text to standard error at once.
pub fn put_aside(text: &str) {
    let mut out = std::io::stderr().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
