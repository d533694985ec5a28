//! Lines that a person types, read by a thread of its own, with the moment each came: a line that was typed before a
//! question was asked is no answer to it.

use std::io::BufRead;
use std::io::Read;
use std::time::Instant;

use tokio::sync::mpsc;

use crate::domain::limits;

/// A line that was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Typed {
    /// The line without its end.
    pub line: String,
    /// When it came, by a monotonic clock.
    pub at: Instant,
}

/// The lines of `input` as they come, until its end. A line is cut at `limits::SAY_MAX_BYTES` and one more, so that
/// it is seen to be too long; what follows counts as a line of its own.
pub fn typed(mut input: impl BufRead + Send + 'static) -> mpsc::Receiver<Typed> {
    let (lines, typed) = mpsc::channel(limits::TYPED_LINES);
    std::thread::spawn(move || {
        loop {
            let mut bytes = Vec::new();
            let most = limits::SAY_MAX_BYTES as u64 + 1;
            match input.by_ref().take(most).read_until(b'\n', &mut bytes) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            let line = String::from_utf8_lossy(&bytes).trim_end_matches(['\n', '\r']).to_string();
            if lines.blocking_send(Typed { line, at: Instant::now() }).is_err() {
                return;
            }
        }
    });
    typed
}
