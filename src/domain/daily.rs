//! The pool above all runs: what they spent and hold together in the last 24 hours (docs/ENGINE.md §8.5). A run's own
//! pool is its child: what a run reserves is reserved here first, so many runs can't spend more than one may.
//!
//! Lines in, judgements out; who keeps the lines is the store's business.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::Serialize;

use crate::domain::budget::Limit;
use crate::domain::budget::ReservationId;
use crate::domain::id::ModelCallId;
use crate::domain::id::RunId;
use crate::domain::limits;
use crate::domain::money::MicroUsd;
use crate::domain::pool::Known;
use crate::domain::time::Timestamp;

/// What all runs together spent and hold in the last 24 hours, against what they may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Today {
    /// Spent and held.
    pub spent: MicroUsd,
    /// What they may.
    pub limit: Limit,
}

/// One hold of a reservation: its name, and when it was made, because a journal that is put back to an earlier state, by
/// an import or from a backup, gives its names once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hold {
    /// Its name in the run.
    pub id: ReservationId,
    /// When it was made.
    pub at: Timestamp,
}

/// One line of the ledger: what became of a reservation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// When.
    pub at: Timestamp,
    /// Of which run.
    pub run: RunId,
    /// Of which model call.
    pub call: ModelCallId,
    /// Which attempt.
    pub attempt: u32,
    /// When it had been held; nothing in the line that holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_at: Option<Timestamp>,
    /// What.
    #[serde(flatten)]
    pub what: What,
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// So much is set aside.
    Held(MicroUsd),
    /// The journal knows of it, and the call is about to be made: from here on it may cost, so much at worst.
    Begun(MicroUsd),
    /// So much was charged. The first one counts.
    Charged(MicroUsd),
    /// The operator says that it cost so much.
    Corrected(MicroUsd),
    /// The call was never made. Always zero.
    Released(MicroUsd),
    /// When the ledger was made anew, not all of the run's journal could be read. About no call of it, and always zero.
    Unread(MicroUsd),
}

impl Line {
    /// What becomes of a hold.
    pub fn of(run: &RunId, hold: Hold, what: What, at: Timestamp) -> Line {
        let held_at = Some(hold.at).filter(|_| !matches!(what, What::Held(_)));
        Line { at, run: run.clone(), call: hold.id.call, attempt: hold.id.attempt, held_at, what }
    }

    /// That a run's journal could not be read whole.
    pub fn unread(run: &RunId, at: Timestamp) -> Line {
        let what = What::Unread(MicroUsd(0));
        Line { at, run: run.clone(), call: ModelCallId(0), attempt: 0, held_at: None, what }
    }

    /// The reservation that it is about.
    pub fn id(&self) -> ReservationId {
        ReservationId { call: self.call, attempt: self.attempt }
    }
}

/// Why all runs together may not set so much aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// What is left.
    pub left: MicroUsd,
    /// When it fits, if nothing else is spent.
    pub until: Timestamp,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    amount: MicroUsd,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Held,
    Begun,
    Settled,
}

/// What the lines of the ledger fold to.
#[derive(Clone, Debug, Default)]
pub struct Daily {
    entries: BTreeMap<(RunId, Hold), Entry>,
    unread: BTreeMap<RunId, Timestamp>,
}

impl Daily {
    /// Takes in a line.
    pub fn take(&mut self, line: &Line) {
        let key = (line.run.clone(), self.hold(line));
        let known = self.entries.get(&key).copied();
        let is_open = known.is_some_and(|known| known.state != State::Settled);
        let settled = |amount| Entry { amount, state: State::Settled };
        let next = match (line.what, known) {
            (What::Held(amount), None) => Entry { amount, state: State::Held },
            (What::Begun(_), Some(known)) if is_open => Entry { state: State::Begun, ..known },
            // The line that held it was lost.
            (What::Begun(amount), None) => Entry { amount, state: State::Begun },
            // A charge whose hold was lost counts all the same.
            (What::Charged(amount), _) if is_open || known.is_none() => settled(amount),
            (What::Corrected(amount), _) => settled(amount),
            (What::Released(_), _) if is_open => {
                self.entries.remove(&key);
                return;
            }
            (What::Unread(_), _) => {
                self.unread.insert(line.run.clone(), line.at);
                return;
            }
            (What::Held(_) | What::Begun(_) | What::Charged(_) | What::Released(_), _) => return,
        };
        self.entries.insert(key, next);
    }

    /// The hold that a line is about. A line from before they named it is about the last one of the reservation.
    fn hold(&self, line: &Line) -> Hold {
        let (id, run) = (line.id(), &line.run);
        let at = match (line.what, line.held_at) {
            (What::Held(_), _) => line.at,
            (_, Some(at)) => at,
            (_, None) => {
                let all =
                    (run.clone(), Hold { id, at: Timestamp(0) })..=(run.clone(), Hold { id, at: Timestamp(u64::MAX) });
                self.entries.range(all).next_back().map_or(line.at, |((_, last), _)| last.at)
            }
        };
        Hold { id, at }
    }

    /// Whether a line still counts.
    pub fn counts(line: &Line, now: Timestamp) -> bool {
        now.since(line.at) < limits::DAILY_WINDOW
    }

    /// Whether a line, drawn from a journal, says something that is not known yet.
    pub fn is_news(&self, line: &Line) -> bool {
        let known = self.entries.get(&(line.run.clone(), self.hold(line)));
        match line.what {
            What::Held(_) => known.is_none(),
            What::Begun(_) => known.is_some_and(|known| known.state == State::Held),
            What::Charged(_) => known.is_some_and(|known| known.state != State::Settled),
            What::Corrected(amount) => known.is_some_and(|known| known.amount != amount),
            What::Released(_) => false,
            What::Unread(_) => !self.unread.contains_key(&line.run),
        }
    }

    /// The runs that could not be read when the ledger was made anew, in the last 24 hours.
    pub fn unread(&self, now: Timestamp) -> Vec<RunId> {
        let recent = self.unread.iter().filter(|(_, at)| now.since(**at) < limits::DAILY_WINDOW);
        recent.map(|(run, _)| run.clone()).collect()
    }

    /// What was spent and is held in the last 24 hours.
    pub fn spent(&self, now: Timestamp) -> MicroUsd {
        self.live(now).fold(MicroUsd(0), |sum, (_, amount)| sum.plus(amount))
    }

    /// Whether `amount` more fits under the limit.
    pub fn admits(&self, amount: MicroUsd, limit: Limit, now: Timestamp) -> Result<(), Refused> {
        let Limit::At(most) = limit else { return Ok(()) };
        let spent = self.spent(now);
        if limit.bears(spent.plus(amount).0) {
            return Ok(());
        }
        let left = MicroUsd(most).minus(spent);
        let mut leaving: Vec<(Timestamp, MicroUsd)> = self.live(now).collect();
        leaving.sort();
        let mut stays = spent;
        let mut until = now.plus(limits::DAILY_WINDOW);
        for (at, leaves) in leaving {
            stays = stays.minus(leaves);
            if limit.bears(stays.plus(amount).0) {
                until = at.plus(limits::DAILY_WINDOW);
                break;
            }
        }
        Err(Refused { left, until })
    }

    /// Whether a hold of a run is known.
    pub fn knows(&self, run: &RunId, hold: Hold) -> bool {
        self.amount(run, hold).is_some()
    }

    /// What counts for a hold of a run.
    pub fn amount(&self, run: &RunId, hold: Hold) -> Option<MicroUsd> {
        self.entries.get(&(run.clone(), hold)).map(|entry| entry.amount)
    }

    /// What the ledger has yet to learn of a run from its journal: how the holds that are open ended, and what those that
    /// are settled count as now. What the journal does not know, and had begun, may have cost all that was set aside.
    pub fn behind(&self, run: &RunId, known: impl Fn(Hold) -> Known) -> Vec<(Hold, What)> {
        let own = self.entries.iter().filter(|((one, _), _)| one == run);
        let end = |hold: Hold, entry: &Entry| match (known(hold), entry.state) {
            (Known::Counted(amount), State::Held | State::Begun) => Some(What::Charged(amount)),
            (Known::Counted(amount), State::Settled) if amount != entry.amount => Some(What::Corrected(amount)),
            (Known::Unknown, State::Held) => Some(What::Released(MicroUsd(0))),
            (Known::Unknown, State::Begun) => Some(What::Charged(entry.amount)),
            (Known::Held | Known::Counted(_) | Known::Unknown, _) => None,
        };
        own.filter_map(|((_, hold), entry)| end(*hold, entry).map(|what| (*hold, what))).collect()
    }

    /// That each call whose hold is open had begun: for a ledger that may have lost that.
    pub fn begun(&self, now: Timestamp) -> Vec<Line> {
        let open = self.entries.iter().filter(|(_, entry)| entry.state == State::Held);
        open.map(|((run, hold), entry)| Line::of(run, *hold, What::Begun(entry.amount), now)).collect()
    }

    /// When what counts was set aside, and how much it is.
    fn live(&self, now: Timestamp) -> impl Iterator<Item = (Timestamp, MicroUsd)> {
        let counts = self.entries.iter().map(|((_, hold), entry)| (hold.at, entry.amount));
        counts.filter(move |(at, _)| now.since(*at) < limits::DAILY_WINDOW)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::time::Span;

    const HOUR: u64 = 3_600_000;

    fn hold(call: u32, at: u64) -> Hold {
        Hold { id: ReservationId { call: ModelCallId(call), attempt: 1 }, at: Timestamp(at) }
    }

    fn line(at: u64, run: u8, call: u32, what: What) -> Line {
        let of = Line::of(&RunId::from_entropy([run; 12]), hold(call, at), what, Timestamp(at));
        Line { held_at: None, ..of }
    }

    /// A line that names the hold of call 1 that was made then.
    fn ends(at: u64, held_at: u64, what: What) -> Line {
        Line { held_at: Some(Timestamp(held_at)), ..line(at, 1, 1, what) }
    }

    fn daily(lines: &[Line]) -> Daily {
        let mut daily = Daily::default();
        lines.iter().for_each(|line| daily.take(line));
        daily
    }

    #[test]
    fn what_is_charged_takes_the_place_of_what_is_held_and_only_once() {
        let held = |at| line(at, 1, 1, What::Held(MicroUsd(200)));
        let charged = |amount| What::Charged(MicroUsd(amount));
        let corrected = |amount| What::Corrected(MicroUsd(amount));
        let (begun, released) = (What::Begun(MicroUsd(0)), What::Released(MicroUsd(0)));
        let rows = [
            (vec![held(1)], 200),
            (vec![held(1), held(1)], 200),
            (vec![held(1), ends(1, 1, begun)], 200),
            (vec![held(1), ends(2, 1, charged(10))], 10),
            (vec![held(1), ends(2, 1, begun), ends(2, 1, charged(10))], 10),
            (vec![held(1), ends(2, 1, charged(10)), ends(3, 1, charged(99))], 10),
            (vec![held(1), ends(2, 1, charged(300))], 300),
            (vec![held(1), line(2, 2, 1, What::Held(MicroUsd(200)))], 400),
            (vec![held(1), ends(2, 1, released)], 0),
            (vec![held(1), ends(2, 1, charged(10)), ends(3, 1, corrected(7))], 7),
            (vec![held(1), ends(2, 1, charged(10)), ends(3, 1, begun), ends(3, 1, released)], 10),
            // The same number once more, after the journal was put back: it counts beside what was charged before.
            (vec![held(1), ends(2, 1, charged(10)), held(3)], 210),
            (vec![held(1), held(3), ends(4, 3, charged(7))], 207),
            (vec![held(1), held(3), ends(4, 3, charged(7)), ends(5, 1, charged(10))], 17),
            (vec![held(1), ends(2, 1, charged(10)), held(3), ends(4, 3, released)], 10),
            (vec![held(1), ends(2, 1, charged(10)), held(3), ends(4, 3, charged(7)), ends(5, 1, corrected(1))], 8),
            // A line whose hold was lost, and the hold again, from a journal.
            (vec![ends(2, 1, charged(10))], 10),
            (vec![ends(2, 1, charged(10)), held(1), ends(2, 1, charged(10))], 10),
            // Lines from before they named the hold.
            (vec![held(1), line(2, 1, 1, charged(10))], 10),
            (vec![held(1), line(2, 1, 1, charged(10)), held(3), line(4, 1, 1, charged(7))], 17),
            (vec![line(2, 1, 1, charged(10)), line(3, 1, 1, corrected(7))], 7),
        ];
        for (lines, spent) in rows {
            assert_eq!(daily(&lines).spent(Timestamp(5)), MicroUsd(spent), "{lines:?}");
        }
    }

    #[test]
    fn a_ledger_learns_what_became_of_each_hold_of_a_name() {
        let (held, begun) = (What::Held(MicroUsd(200)), What::Begun(MicroUsd(0)));
        let charged = |amount| What::Charged(MicroUsd(amount));
        let lines =
            [line(1, 1, 1, held), ends(2, 1, charged(10)), line(3, 1, 1, held), ends(3, 3, begun), line(5, 1, 1, held)];
        let own = RunId::from_entropy([1; 12]);
        let behind = |known: &dyn Fn(Hold) -> Known| daily(&lines).behind(&own, known);
        let released = What::Released(MicroUsd(0));
        // An older journal, which knows none of them: what had begun may have cost all of it.
        assert_eq!(behind(&|_| Known::Unknown), [(hold(1, 3), charged(200)), (hold(1, 5), released)]);
        // The journal of the second life: its charge is not taken for that of the first.
        let second = |one: Hold| if one.at == Timestamp(3) { Known::Counted(MicroUsd(7)) } else { Known::Unknown };
        assert_eq!(behind(&second), [(hold(1, 3), charged(7)), (hold(1, 5), released)]);
        let third = |one: Hold| if one.at == Timestamp(5) { Known::Held } else { Known::Unknown };
        assert_eq!(behind(&third), [(hold(1, 3), charged(200))]);
        let first = |one: Hold| if one.at == Timestamp(1) { Known::Counted(MicroUsd(4)) } else { Known::Unknown };
        let corrected = What::Corrected(MicroUsd(4));
        assert_eq!(behind(&first), [(hold(1, 1), corrected), (hold(1, 3), charged(200)), (hold(1, 5), released)]);
    }

    #[test]
    fn the_window_rolls() {
        let all = daily(&[
            line(0, 1, 1, What::Charged(MicroUsd(70))),
            line(HOUR, 2, 1, What::Charged(MicroUsd(20))),
            line(2 * HOUR, 3, 1, What::Held(MicroUsd(5))),
        ]);
        let limit = Limit::At(100);
        let now = Timestamp(3 * HOUR);
        assert_eq!(all.admits(MicroUsd(5), limit, now), Ok(()));
        let refused = |until| Err(Refused { left: MicroUsd(5), until: Timestamp(until) });
        assert_eq!(all.admits(MicroUsd(6), limit, now), refused(24 * HOUR));
        assert_eq!(all.admits(MicroUsd(90), limit, now), refused(25 * HOUR));
        assert_eq!(all.admits(MicroUsd(101), limit, now), refused(27 * HOUR), "it never fits");
        assert_eq!(all.admits(MicroUsd(75), limit, Timestamp(24 * HOUR)), Ok(()));
        assert_eq!(all.admits(MicroUsd(u64::MAX), Limit::Unlimited, now), Ok(()));
        // A run that is gone keeps its reservation until that leaves the window; a clock that went back keeps all.
        assert_eq!(all.spent(Timestamp(0).plus(Span(26 * HOUR - 1))), MicroUsd(5));
        assert_eq!(all.spent(Timestamp(26 * HOUR)), MicroUsd(0));
    }
}
