//! The ledger of all runs: `ledger.jsonl` in the state directory, a line for each reservation and each settlement,
//! appended under an exclusive lock and synced (docs/ENGINE.md §8.5, docs/JOURNAL.md). It judges nothing: what the
//! lines mean is `domain/daily.rs`.
//!
//! A line is acknowledged when it is whole and synced. A last one that is torn was never acknowledged and is taken
//! away. The lock lies beside the ledger, because the ledger is replaced when old lines are left out. It holds how long
//! the ledger was, so that one that is shorter, or gone, or has other lines that can't be read or whose sum is wrong, is known to be damaged:
//! it is made anew from what is left of it and what the journals say (`recount.rs`).

use std::fs::File;
use std::fs::OpenOptions;
use std::fs::TryLockError;
use std::io;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use crate::domain::budget::Limit;
use crate::domain::daily::Daily;
use crate::domain::daily::Hold;
use crate::domain::daily::Line;
use crate::domain::daily::Refused;
use crate::domain::daily::What;
use crate::domain::id::RunId;
use crate::domain::limits;
use crate::domain::money::MicroUsd;
use crate::domain::pool::Known;
use crate::domain::text::counted;
use crate::domain::time::Timestamp;
use crate::store::StoreError;
use crate::store::files;
use crate::store::recount;
use crate::store::recount::Counted;
use crate::store::sums;

const LEDGER: &str = "ledger.jsonl";
const LOCK: &str = "ledger.lock";
/// The ledger as it was when it was found damaged.
const DAMAGED: &str = "ledger.damaged.jsonl";
/// What is wrong with one that is not there.
const MISSING: &str = "is missing";
/// Digits of the length in the lock's file: always as many, so that it is overwritten in one piece.
const LENGTH_DIGITS: usize = 20;
/// Between two attempts at the lock.
const LOCK_STEP: Duration = Duration::from_millis(5);

/// The ledger of a state directory, as one process sees it. Everything blocks for as long as the lock is held by
/// another, `limits::LOCK_PATIENCE` at most.
#[derive(Clone, Debug)]
pub struct Ledger {
    dir: PathBuf,
    limit: Limit,
}

/// What became of a ledger that was not as it was left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mended {
    /// What was wrong with it, as the end of a sentence; nothing when nothing was.
    pub flaw: Option<&'static str>,
    /// The lines that it has again from journals.
    pub regained: usize,
    /// The runs whose journals can't be read whole: what they cost in these 24 hours may be counted too low.
    pub unread: Vec<RunId>,
}

impl Mended {
    /// What somebody should know who relies on the ledger, as a sentence without its end; nothing where all is well.
    pub fn phrase(&self) -> Option<String> {
        // One that is missing where journals have nothing for it may never have been there.
        let anew = self.flaw.filter(|flaw| self.regained > 0 || *flaw != MISSING).map(|flaw| {
            let regained = counted(self.regained, "line");
            format!("the ledger of what all runs spent {flaw}; it was made anew, with {regained} from journals")
        });
        let unread = (!self.unread.is_empty()).then(|| {
            let runs: Vec<&str> = self.unread.iter().map(RunId::as_str).collect();
            format!(
                "the ledger was made anew without all that run {} spent, because its journal can't be read whole, so the \
                 24 hours may count too low; `tiller doctor` says what is wrong with it",
                runs.join(", run ")
            )
        });
        let all: Vec<String> = anew.into_iter().chain(unread).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}

/// The ledger while nobody else has it.
struct Locked<'a> {
    ledger: &'a Ledger,
    /// Held until this is dropped.
    lock: File,
    lines: Vec<Line>,
    /// Bytes of the ledger up to the end of its last whole line.
    length: u64,
    /// What must stand before a line that is added: a line break, where the last one has none.
    lead: &'static str,
    flaw: Option<&'static str>,
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

    /// Sets an amount aside, durably, or says why not. The same hold again changes nothing.
    pub fn hold(&self, run: &RunId, hold: Hold, amount: MicroUsd) -> Result<Result<(), Refused>, StoreError> {
        let now = hold.at;
        self.locked("reserving in the ledger", now, |locked| {
            let daily = locked.daily();
            if daily.knows(run, hold) {
                return Ok(Ok(()));
            }
            if let Err(refused) = daily.admits(amount, self.limit, now) {
                return Ok(Err(refused));
            }
            locked.compact(now)?;
            locked.add(&[Line::of(run, hold, What::Held(amount), now)])?;
            Ok(Ok(()))
        })
    }

    /// Whether an amount could be set aside now. Sets nothing aside.
    pub fn admits(&self, amount: MicroUsd, now: Timestamp) -> Result<Result<(), Refused>, StoreError> {
        self.locked("reading the ledger", now, |locked| Ok(locked.daily().admits(amount, self.limit, now)))
    }

    /// What all runs spent and hold in the last 24 hours.
    pub fn spent(&self, now: Timestamp) -> Result<MicroUsd, StoreError> {
        self.locked("reading the ledger", now, |locked| Ok(locked.daily().spent(now)))
    }

    /// Records what becomes of holds. What was settled before stays as it is, and what was held elsewhere does not count
    /// here.
    pub fn note(&self, run: &RunId, ends: &[(Hold, What)], now: Timestamp) -> Result<(), StoreError> {
        self.locked("writing to the ledger", now, |locked| {
            let daily = locked.daily();
            let own = ends.iter().filter(|(hold, _)| daily.knows(run, *hold));
            let lines: Vec<Line> = own.map(|(hold, what)| Line::of(run, *hold, *what, now)).collect();
            locked.add(&lines)
        })
    }

    /// Records that the call of a hold is about to be made. False when the ledger does not know the hold any more: then
    /// what it costs would count nowhere.
    pub fn begin(&self, run: &RunId, hold: Hold, now: Timestamp) -> Result<bool, StoreError> {
        self.locked("writing to the ledger", now, |locked| {
            let Some(amount) = locked.daily().amount(run, hold) else { return Ok(false) };
            locked.add(&[Line::of(run, hold, What::Begun(amount), now)])?;
            Ok(true)
        })
    }

    /// Makes up for what a process that died, or found the ledger held, could not tell: `known` says what the run's
    /// journal knows of a hold.
    pub fn settle_lost(&self, run: &RunId, known: impl Fn(Hold) -> Known, now: Timestamp) -> Result<(), StoreError> {
        self.locked("settling in the ledger", now, |locked| {
            let behind = locked.daily().behind(run, known);
            let lines: Vec<Line> = behind.into_iter().map(|(hold, what)| Line::of(run, hold, what, now)).collect();
            locked.add(&lines)
        })
    }

    /// Makes a damaged ledger anew, and tries again to read what could not be read when it was. Blocks for as long as it
    /// takes to read the journals.
    pub fn mend(&self, now: Timestamp) -> Result<Mended, StoreError> {
        let disk = |error: io::Error| StoreError::Disk {
            doing: "making the ledger anew from the journals".to_string(),
            why: error.to_string(),
        };
        self.mended(now).map_err(disk)
    }

    fn mended(&self, now: Timestamp) -> io::Result<Mended> {
        let found = self.take()?;
        let runs = match found.flaw {
            Some(_) => recount::runs(&self.dir)?,
            None => found.daily().unread(now),
        };
        if found.flaw.is_none() && runs.is_empty() {
            return Ok(Mended::default());
        }
        // Not while it is locked: to read journals takes time. Whoever else comes meanwhile finds the same flaw.
        drop(found);
        let counted = recount::count(&self.dir, runs, now);
        let mut locked = self.take()?;
        let regained = locked.take_in(&counted, now)?;
        Ok(Mended { flaw: locked.flaw, regained, unread: locked.daily().unread(now) })
    }

    fn locked<T>(
        &self,
        doing: &str,
        now: Timestamp,
        work: impl FnOnce(&mut Locked<'_>) -> io::Result<T>,
    ) -> Result<T, StoreError> {
        let disk = |error: io::Error| StoreError::Disk { doing: doing.to_string(), why: error.to_string() };
        let mut locked = self.take().map_err(disk)?;
        if let Some(flaw) = locked.flaw {
            drop(locked);
            let mended = self.mended(now).map_err(disk)?;
            tracing::warn!(flaw, ?mended, "the ledger was damaged and was made anew");
            locked = self.take_sound().map_err(disk)?;
        }
        work(&mut locked).map_err(disk)
    }

    fn take(&self) -> io::Result<Locked<'_>> {
        let lock = self.lock()?;
        let mut locked = Locked { ledger: self, lock, lines: Vec::new(), length: 0, lead: "", flaw: None };
        locked.read()?;
        Ok(locked)
    }

    /// Takes what was just made anew. Errors when it is damaged still: money that can't be counted is not spent.
    fn take_sound(&self) -> io::Result<Locked<'_>> {
        let locked = self.take()?;
        match locked.flaw {
            None => Ok(locked),
            Some(flaw) => {
                let why = format!("{} {flaw}, though it was made anew", self.dir.join(LEDGER).display());
                Err(io::Error::new(io::ErrorKind::InvalidData, why))
            }
        }
    }

    fn lock(&self) -> io::Result<File> {
        let path = self.dir.join(LOCK);
        let file = files::open_or_create(&path, OpenOptions::new().read(true).write(true).truncate(false))?;
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
}

impl Locked<'_> {
    /// Reads the ledger, and finds what is wrong with it.
    fn read(&mut self) -> io::Result<()> {
        let known = self.known_length()?;
        let path = self.ledger.dir.join(LEDGER);
        let bytes = match files::read(&path, limits::LEDGER_MAX_BYTES) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            // So many lines are never written in a day; what is true among them the journals say.
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                self.flaw = Some("is longer than it can be");
                return Ok(());
            }
            Err(error) => return Err(files::named(&path)(error)),
            Ok(bytes) => Some(bytes),
        };
        let mut bad = None;
        let all = bytes.as_deref().unwrap_or_default();
        for text in all.split_inclusive(|byte| *byte == b'\n') {
            let is_whole = text.ends_with(b"\n");
            match sums::read(text) {
                Ok(line) => self.lines.push(line),
                // The end of one that was being written.
                Err(_) if !is_whole => break,
                Err(why) => bad = bad.or(Some(why)),
            }
            self.lead = if is_whole { "" } else { "\n" };
            self.length += text.len() as u64;
        }
        self.flaw = match (known, bytes) {
            _ if bad.is_some() => bad,
            // One that nobody ever wrote to is missing as well; then the journals have nothing for it.
            (None | Some(1..), None) => Some(MISSING),
            (None, Some(bytes)) if bytes.is_empty() => Some("is empty"),
            (None, Some(_)) => Some("has lost its length, so lines of it may be missing"),
            (Some(known), Some(_)) if self.length < known => Some("is shorter than it was"),
            (Some(_), _) => None,
        };
        Ok(())
    }

    /// How long the ledger was; nothing where nobody wrote that down.
    fn known_length(&self) -> io::Result<Option<u64>> {
        let mut digits = [0; LENGTH_DIGITS];
        match self.lock.read_exact_at(&mut digits, 0) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
            Ok(()) => Ok(std::str::from_utf8(&digits).ok().and_then(|digits| digits.parse().ok())),
        }
    }

    /// Writes down how long the ledger is. Never before it is so long.
    fn note_length(&self, length: u64) -> io::Result<()> {
        self.lock.write_all_at(format!("{length:0LENGTH_DIGITS$}\n").as_bytes(), 0)
    }

    /// Makes the ledger anew of what is left of it and what journals say. Gives how many lines it has from these.
    fn take_in(&mut self, counted: &Counted, now: Timestamp) -> io::Result<usize> {
        let is_read = |line: &Line| matches!(line.what, What::Unread(_)) && counted.read.contains(&line.run);
        let before = self.lines.len();
        self.lines.retain(|line| Daily::counts(line, now) && !is_read(line));
        let was_short = before != self.lines.len();
        let mut daily = self.daily();
        let unread = counted.unread.iter().map(|run| Line::unread(run, now));
        // Which calls had begun is not known any more, so each may have.
        let begun = if self.flaw.is_some() { daily.begun(now) } else { Vec::new() };
        self.lines.extend(begun.into_iter().inspect(|line| daily.take(line)));
        let known = self.lines.len();
        for line in counted.lines.iter().cloned().chain(unread) {
            if daily.is_news(&line) {
                daily.take(&line);
                self.lines.push(line);
            }
        }
        let gained = self.lines.iter().skip(known).filter(|line| !matches!(line.what, What::Unread(_))).count();
        if self.flaw.is_some() || was_short || self.lines.len() > known {
            self.rewrite()?;
        }
        Ok(gained)
    }

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
        let mut file = files::open_or_create(&path, OpenOptions::new().append(true))?;
        if file.metadata()?.len() > self.length {
            file.set_len(self.length)?;
        }
        let text = format!("{}{}", self.lead, sums::written(lines)?);
        file.write_all(text.as_bytes())?;
        file.sync_data()?;
        if is_new {
            files::sync_dir(&self.ledger.dir)?;
        }
        self.lead = "";
        self.length += text.len() as u64;
        self.lines.extend_from_slice(lines);
        // An older length only means that less is noticed.
        let _ = self.note_length(self.length);
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
        self.rewrite()
    }

    /// Replaces the ledger by its lines. One that was damaged is kept.
    fn rewrite(&mut self) -> io::Result<()> {
        let (dir, text) = (&self.ledger.dir, sums::written(&self.lines)?);
        let mut file = tempfile::NamedTempFile::new_in(dir)?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        let path = dir.join(LEDGER);
        if self.flaw.is_some() && path.exists() {
            self.keep_damaged(&path);
        }
        // Killed in between, it looks damaged, and is made anew once more.
        self.note_length(u64::MAX)?;
        file.persist(path).map_err(|error| error.error)?;
        files::sync_dir(dir)?;
        self.lead = "";
        self.length = text.len() as u64;
        self.note_length(self.length)
    }

    /// Keeps what is about to be replaced, as a second name of it, so that there is a ledger at every moment.
    fn keep_damaged(&self, path: &Path) {
        let kept = self.ledger.dir.join(DAMAGED);
        let _ = std::fs::remove_file(&kept);
        if let Err(error) = std::fs::hard_link(path, kept) {
            tracing::warn!(%error, "the damaged ledger could not be kept");
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::sync::Barrier;

    use super::*;
    use crate::domain::budget::ReservationId;
    use crate::domain::id::ModelCallId;
    use crate::domain::text::short_hash;

    const NOW: Timestamp = Timestamp(1_000);
    const DOLLAR: u64 = 1_000_000;

    fn run(n: u8) -> RunId {
        RunId::from_entropy([n; 12])
    }

    fn hold(call: u32, at: Timestamp) -> Hold {
        Hold { id: ReservationId { call: ModelCallId(call), attempt: 1 }, at }
    }

    fn holds(ledger: &Ledger, n: u8, call: u32, amount: u64, at: Timestamp) {
        ledger.hold(&run(n), hold(call, at), MicroUsd(amount)).unwrap().unwrap();
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
                    ledger.hold(&run(n), hold(round + 1, at), MicroUsd(200_000)).unwrap()
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
        holds(&ledger, 1, 1, 200, NOW);
        holds(&ledger, 1, 1, 200, NOW);
        assert!(ledger.begin(&run(1), hold(1, NOW), NOW).unwrap());
        ledger.note(&run(1), &[(hold(1, NOW), What::Charged(MicroUsd(7)))], NOW).unwrap();
        // What was held elsewhere is not paid here.
        ledger.note(&run(1), &[(hold(2, NOW), What::Charged(MicroUsd(7)))], NOW).unwrap();
        let text = fs::read_to_string(dir.path().join(LEDGER)).unwrap();
        let entry = |what: &str| {
            let fields = format!("{{\"at\":1000,\"run\":\"{}\",\"call\":1,\"attempt\":1,{what}", run(1));
            format!("{fields},\"sum\":\"{}\"}}\n", short_hash(fields.as_bytes()))
        };
        let begun = entry("\"held_at\":1000,\"begun\":200");
        let expected = entry("\"held\":200") + &begun + &entry("\"held_at\":1000,\"charged\":7");
        assert_eq!(text, expected);
        for name in [LEDGER, LOCK] {
            let mode = fs::metadata(dir.path().join(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "{name}");
        }
    }

    #[test]
    fn what_is_damaged_again_is_not_counted_on() {
        let dir = tempfile::tempdir().unwrap();
        let ledger = Ledger::new(dir.path().to_path_buf(), Limit::At(DOLLAR));
        holds(&ledger, 1, 1, 100, NOW);
        assert_eq!(ledger.take_sound().unwrap().lines.len(), 1);
        let file = File::options().write(true).open(dir.path().join(LEDGER)).unwrap();
        file.set_len(limits::LEDGER_MAX_BYTES + 1).unwrap();
        let why = ledger.take_sound().err().unwrap().to_string();
        assert!(why.ends_with("ledger.jsonl is longer than it can be, though it was made anew"), "{why}");
    }

    #[test]
    fn a_torn_line_was_never_acknowledged() {
        let dir = tempfile::tempdir().unwrap();
        let ledger = Ledger::new(dir.path().to_path_buf(), Limit::At(DOLLAR));
        holds(&ledger, 1, 1, 100, NOW);
        let path = dir.path().join(LEDGER);
        let whole = fs::read_to_string(&path).unwrap();
        let next =
            sums::written(&[Line::of(&run(1), hold(1, Timestamp(1_001)), What::Held(MicroUsd(900)), Timestamp(1_001))])
                .unwrap();
        for cut in 0..whole.len() {
            let torn_counts = if cut + 1 == whole.len() { 900 } else { 0 };
            fs::write(&path, format!("{whole}{}", &next[..cut])).unwrap();
            holds(&ledger, 2, 2, 30, NOW);
            assert_eq!(ledger.spent(NOW).unwrap(), MicroUsd(130 + torn_counts), "cut at {cut}");
        }
    }

    #[test]
    fn what_a_dead_process_left_is_settled_by_its_run() {
        let dir = tempfile::tempdir().unwrap();
        let ledger = Ledger::new(dir.path().to_path_buf(), Limit::At(DOLLAR));
        (1..=4).for_each(|call| holds(&ledger, 1, call, 100, NOW));
        holds(&ledger, 2, 1, 100, NOW);
        assert!(ledger.begin(&run(1), hold(4, NOW), NOW).unwrap());
        assert!(!ledger.begin(&run(1), hold(5, NOW), NOW).unwrap(), "nobody knows that one");
        // The journal charged the first, still holds the second, and never heard of the others, of which one had begun.
        let known = |one: Hold| match one.id.call.0 {
            1 => Known::Counted(MicroUsd(9)),
            2 => Known::Held,
            _ => Known::Unknown,
        };
        ledger.settle_lost(&run(1), known, NOW).unwrap();
        ledger.settle_lost(&run(1), known, NOW).unwrap();
        assert_eq!(ledger.spent(NOW).unwrap(), MicroUsd(9 + 100 + 100 + 100));
        assert_eq!(fs::read_to_string(dir.path().join(LEDGER)).unwrap().lines().count(), 9);
        // The operator corrected the first; whoever recorded it died before the ledger learned of it.
        let corrected = |one: Hold| match one.id.call.0 {
            1 => Known::Counted(MicroUsd(4)),
            _ => known(one),
        };
        ledger.settle_lost(&run(1), corrected, NOW).unwrap();
        ledger.settle_lost(&run(1), corrected, NOW).unwrap();
        assert_eq!(ledger.spent(NOW).unwrap(), MicroUsd(4 + 100 + 100 + 100));
        assert_eq!(fs::read_to_string(dir.path().join(LEDGER)).unwrap().lines().count(), 10);
    }

    #[test]
    fn old_lines_are_left_out_and_the_sum_stays() {
        let dir = tempfile::tempdir().unwrap();
        let ledger = Ledger::new(dir.path().to_path_buf(), Limit::Unlimited);
        let old = u32::try_from(limits::LEDGER_SLACK_LINES).unwrap() + 2;
        holds(&ledger, 1, 1, 1, Timestamp(0));
        let lines: Vec<_> = (1..=old).map(|_| (hold(1, Timestamp(0)), What::Charged(MicroUsd(1)))).collect();
        ledger.note(&run(1), &lines, Timestamp(0)).unwrap();
        let now = Timestamp(limits::DAILY_WINDOW.0);
        holds(&ledger, 1, 9_999, 5, now);
        holds(&ledger, 2, 1, 3, now);
        assert_eq!(ledger.spent(now).unwrap(), MicroUsd(8));
        assert_eq!(fs::read_to_string(dir.path().join(LEDGER)).unwrap().lines().count(), 2);
    }

    #[test]
    fn a_ledger_that_somebody_keeps_is_not_waited_for_for_ever() {
        let dir = tempfile::tempdir().unwrap();
        let ledger = Ledger::new(dir.path().to_path_buf(), Limit::At(DOLLAR));
        let held = ledger.lock().unwrap();
        let error = ledger.hold(&run(1), hold(1, NOW), MicroUsd(1)).unwrap_err().to_string();
        assert!(error.contains("another process holds the ledger"), "{error}");
        drop(held);
        holds(&ledger, 1, 1, 1, NOW);
    }
}
