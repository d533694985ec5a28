//! The log: one file a day under the state folder, never the screen. For finding out what went wrong; nothing
//! reads it to decide anything.
//!
//! Only tiller's own lines are logged below `warn`: at finer levels other crates write what they send and
//! receive, which may hold keys. Our own code logs no key, no goal and no text of a model or a tool.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use tracing_appender::non_blocking::NonBlockingBuilder;
use tracing_appender::non_blocking::WorkerGuard;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::domain::limits;
use crate::engine::clock::Clock;
use crate::engine::redaction::Redactor;
use crate::logging::daily::Daily;

mod daily;

/// The variable that sets the level.
pub const VARIABLE: &str = "TILLER_LOG";

/// The open log. What was logged is on its way to the file until this is dropped.
#[must_use]
pub struct Log {
    _writer: WorkerGuard,
}

/// Starts the log in `<state>/log`, at a level by name; nothing, or an empty name, means `info`. A file is of the day that
/// the clock says. Errors with a sentence, and then nothing is logged; the caller may go on.
pub fn start(state: &Path, level: Option<&str>, redactor: Arc<Redactor>, clock: Arc<dyn Clock>) -> Result<Log, String> {
    let level = parse_level(level.unwrap_or_default())?;
    let folder = state.join("log");
    let fail = |why: String| format!("the log in {} can't be written ({why}); nothing is logged", folder.display());
    let file = Daily::open(&folder, clock).map_err(fail)?;
    let file = Clean { file, redactor };
    let (writer, guard) = NonBlockingBuilder::default().buffered_lines_limit(limits::LOG_LINES).finish(file);
    let others = level.min(LevelFilter::WARN);
    let filter = Targets::new().with_default(others).with_target("tiller", level);
    let lines = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(writer);
    tracing_subscriber::registry()
        .with(lines)
        .with(filter)
        .try_init()
        .map_err(|_| fail("a log was started before".to_string()))?;
    Ok(Log { _writer: guard })
}

/// A file whose lines come without secrets. A line comes in one piece.
struct Clean {
    file: Daily,
    redactor: Arc<Redactor>,
}

impl Write for Clean {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        self.file.write_all(self.redactor.cleaned(&String::from_utf8_lossy(line)).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

fn parse_level(name: &str) -> Result<LevelFilter, String> {
    match name {
        "" | "info" => Ok(LevelFilter::INFO),
        "off" => Ok(LevelFilter::OFF),
        "error" => Ok(LevelFilter::ERROR),
        "warn" => Ok(LevelFilter::WARN),
        "debug" => Ok(LevelFilter::DEBUG),
        "trace" => Ok(LevelFilter::TRACE),
        _ => Err(format!(
            "{VARIABLE} is none of off, error, warn, info, debug, trace; nothing is logged; set one of them"
        )),
    }
}
