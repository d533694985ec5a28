//! The ledger of all runs: `ledger.jsonl` in the state directory, a line for each reservation and each settlement,
//! appended under an exclusive lock and synced (docs/ENGINE.md §8.5, docs/JOURNAL.md). It judges nothing: what the
//! lines mean is `domain/daily.rs`.
//!
//! A line is acknowledged when it is whole and synced. One that can't be read was never acknowledged and is passed
//! over. The lock lies beside the ledger, because the ledger is replaced when old lines are left out.

use std::fs::File;
use std::fs::OpenOptions;
use std::fs::TryLockError;
use std::io;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::Duration;

use crate::domain::budget::Limit;
use crate::domain::budget::ReservationId;
use crate::domain::daily::Daily;
use crate::domain::daily::Line;
use crate::domain::daily::Refused;
use crate::domain::daily::What;
use crate::domain::id::RunId;
use crate::domain::limits;
use crate::domain::money::MicroUsd;
use crate::domain::time::Timestamp;
use crate::store::StoreError;
use crate::store::files;

const LEDGER: &str = "ledger.jsonl";
const LOCK: &str = "ledger.lock";
/// Between two attempts at the lock.
const LOCK_STEP: Duration = Duration::from_millis(5);

/// The ledger of a state directory, as one process sees it. Everything blocks for as long as the lock is held by
/// another, `limits::LOCK_PATIENCE` at most.
#[derive(Clone, Debug)]
pub struct Ledger {
    dir: PathBuf,
    limit: Limit,
}

/// The ledger while nobody else has it.
struct Locked<'a> {
    ledger: &'a Ledger,
    /// Held until this is dropped.
    _lock: File,
    lines: Vec<Line>,
    /// What must stand before a line that is added: a line break, where the last one was torn.
    lead: &'static str,
}

impl Ledger {
    /// The ledger of a state directory, which must exist; `limit` is what all runs may spend in 24 hours.
    pub fn new(state_dir: PathBuf, limit: Limit) -> Ledger {
        Ledger { dir: state_dir, limit }
    }

    /// The limit on all runs together.
    pub fn limit(&self) -> Limit {
        self.limit
    }

    /// Sets an amount aside, durably, or says why not. The same reservation again changes nothing.
    pub fn reserve(
        &self,
        run: &RunId,
        id: ReservationId,
        amount: MicroUsd,
        now: Timestamp,
    ) -> Result<Result<(), Refused>, StoreError> {
        self.locked("reserving in the ledger", |locked| {
            let daily = locked.daily();
            if daily.held(run, id).is_some_and(|held| held >= amount) {
                return Ok(Ok(()));
            }
            if let Err(refused) = daily.admits(amount, self.limit, now) {
                return Ok(Err(refused));
            }
            locked.compact(now)?;
            locked.add(&[line(run, id, What::Held(amount), now)])?;
            Ok(Ok(()))
        })
    }

    /// Whether an amount could be set aside now. Sets nothing aside.
    pub fn admits(&self, amount: MicroUsd, now: Timestamp) -> Result<Result<(), Refused>, StoreError> {
        self.locked("reading the ledger", |locked| Ok(locked.daily().admits(amount, self.limit, now)))
    }

    /// What all runs spent and hold in the last 24 hours.
    pub fn spent(&self, now: Timestamp) -> Result<MicroUsd, StoreError> {
        self.locked("reading the ledger", |locked| Ok(locked.daily().spent(now)))
    }

    /// Records what became of reservations. What was settled before stays as it is.
    pub fn settle(&self, run: &RunId, ends: &[(ReservationId, What)], now: Timestamp) -> Result<(), StoreError> {
        let lines: Vec<Line> = ends.iter().map(|(id, what)| line(run, *id, *what, now)).collect();
        self.locked("settling in the ledger", |locked| locked.add(&lines))
    }

    /// Makes up for what a process that died, or found the ledger held, could not tell: `fate` says what counts in the
    /// run's journal for a reservation, nothing where it is still held there.
    pub fn settle_lost(
        &self,
        run: &RunId,
        fate: impl Fn(ReservationId) -> Option<What>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.locked("settling in the ledger", |locked| {
            let behind = locked.daily().behind(run, fate);
            let lines: Vec<Line> = behind.into_iter().map(|(id, what)| line(run, id, what, now)).collect();
            locked.add(&lines)
        })
    }

    fn locked<T>(&self, doing: &str, work: impl FnOnce(&mut Locked<'_>) -> io::Result<T>) -> Result<T, StoreError> {
        let disk = |error: io::Error| StoreError::Disk { doing: doing.to_string(), why: error.to_string() };
        let lock = self.lock().map_err(disk)?;
        let (lines, lead) = self.read().map_err(disk)?;
        work(&mut Locked { ledger: self, _lock: lock, lines, lead }).map_err(disk)
    }

    fn lock(&self) -> io::Result<File> {
        let path = self.dir.join(LOCK);
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(files::FILE_MODE).open(path)?;
        let mut waited = Duration::ZERO;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::Error(error)) => return Err(error),
                Err(TryLockError::WouldBlock) if waited.as_millis() >= u128::from(limits::LOCK_PATIENCE.0) => {
                    return Err(io::Error::new(io::ErrorKind::WouldBlock, "another process holds the ledger"));
                }
                Err(TryLockError::WouldBlock) => {}
            }
            std::thread::sleep(LOCK_STEP);
            waited += LOCK_STEP;
        }
    }

    fn read(&self) -> io::Result<(Vec<Line>, &'static str)> {
        let bytes = match files::read(&self.dir.join(LEDGER), limits::LEDGER_MAX_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Vec::new(), "")),
            Err(error) => return Err(error),
        };
        let lead = if bytes.last().is_none_or(|last| *last == b'\n') { "" } else { "\n" };
        let lines = bytes.split(|byte| *byte == b'\n').filter_map(|text| serde_json::from_slice(text).ok()).collect();
        Ok((lines, lead))
    }
}

impl Locked<'_> {
    fn daily(&self) -> Daily {
        let mut daily = Daily::default();
        self.lines.iter().for_each(|line| daily.take(line));
        daily
    }

    /// Appends lines and syncs them.
    fn add(&mut self, lines: &[Line]) -> io::Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        let path = self.ledger.dir.join(LEDGER);
        let is_new = !path.exists();
        let mut file = OpenOptions::new().append(true).create(true).mode(files::FILE_MODE).open(path)?;
        file.write_all(format!("{}{}", self.lead, written(lines)?).as_bytes())?;
        file.sync_data()?;
        if is_new {
            files::sync_dir(&self.ledger.dir)?;
        }
        self.lead = "";
        self.lines.extend_from_slice(lines);
        Ok(())
    }

    /// Leaves out what has left the window, by rename, once that is most of it.
    fn compact(&mut self, now: Timestamp) -> io::Result<()> {
        let live = self.lines.iter().filter(|line| Daily::counts(line, now)).count();
        let old = self.lines.len() - live;
        if old <= live.max(limits::LEDGER_SLACK_LINES) {
            return Ok(());
        }
        self.lines.retain(|line| Daily::counts(line, now));
        let mut file = tempfile::NamedTempFile::new_in(&self.ledger.dir)?;
        file.write_all(written(&self.lines)?.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(self.ledger.dir.join(LEDGER)).map_err(|error| error.error)?;
        self.lead = "";
        files::sync_dir(&self.ledger.dir)
    }
}

fn line(run: &RunId, id: ReservationId, what: What, at: Timestamp) -> Line {
    Line { at, run: run.clone(), call: id.call, attempt: id.attempt, what }
}

fn written(lines: &[Line]) -> io::Result<String> {
    let mut text = String::new();
    for line in lines {
        text += &serde_json::to_string(line)?;
        text.push('\n');
    }
    Ok(text)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::sync::Barrier;

    use super::*;
    use crate::domain::id::ModelCallId;

    const NOW: Timestamp = Timestamp(1_000);
    const DOLLAR: u64 = 1_000_000;

    fn run(n: u8) -> RunId {
        RunId::from_entropy([n; 12])
    }

    fn id(call: u32) -> ReservationId {
        ReservationId { call: ModelCallId(call), attempt: 1 }
    }

    #[test]
    fn s_23_two_that_race_never_overbook() {
        let dir = tempfile::tempdir().unwrap();
        for round in 0..1_000_u32 {
            // $0.30 are left; both ask for $0.20.
            let ledger = Ledger::new(dir.path().to_path_buf(), Limit::At(300_000));
            let at = Timestamp(u64::from(round) * limits::DAILY_WINDOW.0);
            let start = Barrier::new(2);
            let race = |n: u8| {
                let (ledger, start) = (&ledger, &start);
                move || {
                    start.wait();
                    // A few spins more for one or the other: the order differs from round to round.
                    (0..(round * u32::from(n)) % 97).for_each(|_| std::hint::spin_loop());
                    ledger.reserve(&run(n), id(round + 1), MicroUsd(200_000), at).unwrap()
                }
            };
            let (one, two) = std::thread::scope(|scope| {
                let (one, two) = (scope.spawn(race(1)), scope.spawn(race(2)));
                (one.join().unwrap(), two.join().unwrap())
            });
            assert_eq!([one, two].iter().filter(|result| result.is_ok()).count(), 1, "round {round}");
            let refused = one.err().or(two.err()).unwrap();
            assert_eq!(refused.left, MicroUsd(100_000));
            assert_eq!(ledger.spent(at).unwrap(), MicroUsd(200_000));
        }
    }

    #[test]
    fn lines_are_what_the_pages_say_and_private() {
        let dir = tempfile::tempdir().unwrap();
        let ledger = Ledger::new(dir.path().to_path_buf(), Limit::At(DOLLAR));
        ledger.reserve(&run(1), id(1), MicroUsd(200), NOW).unwrap().unwrap();
        ledger.reserve(&run(1), id(1), MicroUsd(200), NOW).unwrap().unwrap();
        ledger.settle(&run(1), &[(id(1), What::Charged(MicroUsd(7)))], NOW).unwrap();
        let text = fs::read_to_string(dir.path().join(LEDGER)).unwrap();
        let own = run(1);
        let expected = format!(
            "{{\"at\":1000,\"run\":\"{own}\",\"call\":1,\"attempt\":1,\"held\":200}}\n\
             {{\"at\":1000,\"run\":\"{own}\",\"call\":1,\"attempt\":1,\"charged\":7}}\n"
        );
        assert_eq!(text, expected);
        for name in [LEDGER, LOCK] {
            let mode = fs::metadata(dir.path().join(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "{name}");
        }
    }

    #[test]
    fn a_torn_line_was_never_acknowledged() {
        let dir = tempfile::tempdir().unwrap();
        let ledger = Ledger::new(dir.path().to_path_buf(), Limit::At(DOLLAR));
        ledger.reserve(&run(1), id(1), MicroUsd(100), NOW).unwrap().unwrap();
        let path = dir.path().join(LEDGER);
        let whole = fs::read_to_string(&path).unwrap();
        for cut in 0..whole.len() {
            fs::write(&path, format!("{whole}{}", &whole.replace(":100", ":900")[..cut])).unwrap();
            ledger.reserve(&run(2), id(2), MicroUsd(30), NOW).unwrap().unwrap();
            let torn_counts = if cut + 1 == whole.len() { 800 } else { 0 };
            assert_eq!(ledger.spent(NOW).unwrap(), MicroUsd(130 + torn_counts), "cut at {cut}");
        }
    }

    #[test]
    fn what_a_dead_process_left_is_settled_by_its_run() {
        let dir = tempfile::tempdir().unwrap();
        let ledger = Ledger::new(dir.path().to_path_buf(), Limit::At(DOLLAR));
        for call in 1..=3 {
            ledger.reserve(&run(1), id(call), MicroUsd(100), NOW).unwrap().unwrap();
        }
        ledger.reserve(&run(2), id(1), MicroUsd(100), NOW).unwrap().unwrap();
        // The journal charged the first, still holds the second, and never heard of the third.
        let fate = |one: ReservationId| match one.call.0 {
            1 => Some(What::Charged(MicroUsd(9))),
            2 => None,
            _ => Some(What::Released(MicroUsd(0))),
        };
        ledger.settle_lost(&run(1), fate, NOW).unwrap();
        ledger.settle_lost(&run(1), fate, NOW).unwrap();
        assert_eq!(ledger.spent(NOW).unwrap(), MicroUsd(9 + 100 + 100));
        assert_eq!(fs::read_to_string(dir.path().join(LEDGER)).unwrap().lines().count(), 6);
        // The operator corrected the first; whoever recorded it died before the ledger learned of it.
        let corrected = |one: ReservationId| match one.call.0 {
            1 => Some(What::Charged(MicroUsd(4))),
            _ => fate(one),
        };
        ledger.settle_lost(&run(1), corrected, NOW).unwrap();
        ledger.settle_lost(&run(1), corrected, NOW).unwrap();
        assert_eq!(ledger.spent(NOW).unwrap(), MicroUsd(4 + 100 + 100));
        assert_eq!(fs::read_to_string(dir.path().join(LEDGER)).unwrap().lines().count(), 7);
    }

    #[test]
    fn old_lines_are_left_out_and_the_sum_stays() {
        let dir = tempfile::tempdir().unwrap();
        let ledger = Ledger::new(dir.path().to_path_buf(), Limit::Unlimited);
        let old = u32::try_from(limits::LEDGER_SLACK_LINES).unwrap() + 2;
        let lines: Vec<_> = (1..=old).map(|call| (id(call), What::Charged(MicroUsd(1)))).collect();
        ledger.settle(&run(1), &lines, Timestamp(0)).unwrap();
        let now = Timestamp(limits::DAILY_WINDOW.0);
        ledger.settle(&run(1), &[(id(9_999), What::Charged(MicroUsd(5)))], now).unwrap();
        ledger.reserve(&run(2), id(1), MicroUsd(3), now).unwrap().unwrap();
        assert_eq!(ledger.spent(now).unwrap(), MicroUsd(8));
        assert_eq!(fs::read_to_string(dir.path().join(LEDGER)).unwrap().lines().count(), 2);
    }

    #[test]
    fn a_ledger_that_somebody_keeps_is_not_waited_for_for_ever() {
        let dir = tempfile::tempdir().unwrap();
        let ledger = Ledger::new(dir.path().to_path_buf(), Limit::At(DOLLAR));
        let held = ledger.lock().unwrap();
        let error = ledger.reserve(&run(1), id(1), MicroUsd(1), NOW).unwrap_err().to_string();
        assert!(error.contains("another process holds the ledger"), "{error}");
        drop(held);
        ledger.reserve(&run(1), id(1), MicroUsd(1), NOW).unwrap().unwrap();
    }
}
