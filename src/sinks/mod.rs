//! Floor 6: what happens in a run, told to a command of the operator's, at least once each, in order (docs/ENGINE.md
//! §11.2).
//!
//! It reads the records as a room does, from where it stopped, so the journal is its queue, and nobody waits for it. It
//! must not change the run, and holds nothing that keeps the engine alive.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::domain::event::Record;
use crate::domain::id::Seq;
use crate::domain::limits;
use crate::domain::run::Run;
use crate::domain::text::head;
use crate::domain::time::Span;
use crate::engine::handle::Handle;
use crate::engine::redaction::Redactor;
use crate::policy::notice;
use crate::policy::notice::Notice;
use crate::store::Reader;
use crate::tools::hook::Hook;

/// How long a sink is tried.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// The wait after the first failure; each further one is twice as long.
    pub first: Span,
    /// The longest wait.
    pub most: Span,
    /// So many failures in a row, and the sink is given up in this process.
    pub failures: u32,
}

impl Patience {
    /// Once only.
    pub const ONCE: Patience = Patience { first: Span(0), most: Span(0), failures: 1 };
}

impl Default for Patience {
    fn default() -> Self {
        Patience { first: limits::SINK_WAIT, most: limits::SINK_WAIT_MAX, failures: limits::SINK_FAILURES }
    }
}

/// A command that is told what happens, and where it reads of it.
pub struct Sink {
    /// The command.
    pub hook: Hook,
    /// How long it is tried.
    pub patience: Patience,
    /// What takes secrets out of what it is told.
    pub redactor: Arc<Redactor>,
    /// The last record that it was told of.
    pub told: Seq,
    /// Keeps that it was told of a record. Blocks.
    pub keep: Arc<dyn Fn(Seq) + Send + Sync>,
}

/// Where a run is read, without a hold on it.
struct Source {
    head: watch::Receiver<Seq>,
    run: watch::Receiver<Run>,
    reader: Arc<dyn Reader>,
}

/// A sink at work.
pub struct Telling {
    /// Ends when the engine has ended and all is told, or with the reason why the sink was given up; what it was not told
    /// then is told by the next process.
    pub task: JoinHandle<Result<(), String>>,
    /// Why it did not work the last time, while it is tried again.
    pub failure: watch::Receiver<Option<String>>,
}

/// Begins to tell.
pub fn start(sink: Sink, handle: &Handle) -> Telling {
    let source = Source { head: handle.head(), run: handle.run(), reader: handle.reader() };
    let (failing, failure) = watch::channel(None);
    Telling { task: tokio::spawn(deliver(sink, source, failing)), failure }
}

/// Tells what of these records was not told yet. Errors when the sink was given up; `run` is the run after them.
pub async fn tell(sink: &Sink, records: &[Record], run: &Run) -> Result<(), String> {
    let (failing, _) = watch::channel(None);
    for record in records.iter().filter(|record| record.seq > sink.told) {
        if let Some(line) = told(record, run, &sink.redactor) {
            hand_over(sink, record.seq, &line, &failing).await?;
        }
    }
    Ok(())
}

async fn deliver(sink: Sink, mut source: Source, failing: watch::Sender<Option<String>>) -> Result<(), String> {
    let mut seen = sink.told;
    loop {
        let head = *source.head.borrow_and_update();
        while seen < head {
            let some = source.reader.read(seen.next(), limits::RECORDS_PER_UPDATE).await.map_err(|e| e.to_string())?;
            let Some(last) = some.last().map(|record| record.seq) else { break };
            for record in &some {
                let told = told(record, &source.run.borrow(), &sink.redactor);
                let Some(line) = told else { continue };
                hand_over(&sink, record.seq, &line, &failing).await?;
            }
            seen = last;
        }
        if source.head.changed().await.is_err() && seen >= *source.head.borrow() {
            return Ok(());
        }
    }
}

/// Tells the line of a record, and keeps that it was told.
async fn hand_over(sink: &Sink, seq: Seq, line: &str, failing: &watch::Sender<Option<String>>) -> Result<(), String> {
    insist(sink, line, failing).await?;
    let keep = sink.keep.clone();
    // A cursor that could not be kept only means that it is told again.
    let _ = tokio::task::spawn_blocking(move || keep(seq)).await;
    Ok(())
}

/// Tells a line until it went well. Errors when it was tried in vain.
async fn insist(sink: &Sink, line: &str, failing: &watch::Sender<Option<String>>) -> Result<(), String> {
    let mut pause = sink.patience.first;
    let mut failures = 0;
    while let Err(why) = sink.hook.tell(line).await {
        failures += 1;
        if failures >= sink.patience.failures {
            return Err(why);
        }
        tracing::warn!(%why, "the command of notify.command failed; it is tried again");
        failing.send_replace(Some(why));
        sleep(Duration::from_millis(pause.0)).await;
        pause = Span(pause.0.saturating_mul(2).min(sink.patience.most.0));
    }
    failing.send_replace(None);
    Ok(())
}

/// What is told of a record, as a line of JSON; nothing of most.
fn told(record: &Record, run: &Run, redactor: &Redactor) -> Option<String> {
    let Notice { event, sentence, calls } = notice::of(record, run)?;
    let clean = |text: &str| redactor.cleaned(head(text, limits::NOTE_MAX_BYTES)).into_owned();
    let line = json!({
        "id": format!("{}:{}", run.id, record.seq),
        "run": run.id,
        "seq": record.seq,
        "at": record.at,
        "event": event,
        "calls": calls,
        "goal": clean(run.terms.goal.as_str()),
        "status": run.status.phrase(),
        "sentence": clean(&sentence),
    });
    Some(format!("{line}\n"))
}
