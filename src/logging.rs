//! The log: one file a day under the state folder, never the screen. For finding out what went wrong; nothing
//! reads it to decide anything.
//!
//! Only tiller's own lines are logged below `warn`: at finer levels other crates write what they send and
//! receive, which may hold keys. Our own code logs no key, no goal and no text of a model or a tool.

use std::fs::DirBuilder;
use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use tracing_appender::non_blocking::NonBlockingBuilder;
use tracing_appender::non_blocking::WorkerGuard;
use tracing_appender::rolling::RollingFileAppender;
use tracing_appender::rolling::Rotation;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::domain::limits;
use crate::engine::redaction::Redactor;

/// The variable that sets the level.
pub const VARIABLE: &str = "TILLER_LOG";

/// The open log. What was logged is on its way to the file until this is dropped.
#[must_use]
pub struct Log {
    _writer: WorkerGuard,
}

/// Starts the log in `<state>/log`, at a level by name; nothing, or an empty name, means `info`. Errors with a
/// sentence, and then nothing is logged; the caller may go on.
pub fn start(state: &Path, level: Option<&str>, redactor: Arc<Redactor>) -> Result<Log, String> {
    let level = parse_level(level.unwrap_or_default())?;
    let folder = state.join("log");
    let fail = |why: String| format!("the log in {} can't be written ({why}); nothing is logged", folder.display());
    make_private(&folder).map_err(|error| fail(error.to_string()))?;
    let file = RollingFileAppender::builder()
        .rotation(Rotation::DAILY)
        .filename_prefix("tiller")
        .filename_suffix("log")
        .max_log_files(limits::LOG_FILES)
        .build(&folder)
        .map_err(|error| fail(error.to_string()))?;
    make_files_private(&folder).map_err(|error| fail(error.to_string()))?;
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
    file: RollingFileAppender,
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

/// Makes the folder for the owner alone, also where it was made otherwise before.
fn make_private(folder: &Path) -> std::io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    std::fs::set_permissions(folder, Permissions::from_mode(0o700))
}

/// The appender makes its files with the rights that the process gives to all files. The folder keeps others out;
/// this makes the files themselves the owner's too, those of other days included.
fn make_files_private(folder: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            std::fs::set_permissions(entry.path(), Permissions::from_mode(0o600))?;
        }
    }
    Ok(())
}
