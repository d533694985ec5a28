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
use crate::domain::time::Timestamp;

/// What all runs together spent and hold in the last 24 hours, against what they may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Today {
    /// Spent and held.
    pub spent: MicroUsd,
    /// What they may.
    pub limit: Limit,
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
    /// So much was charged. The first one counts.
    Charged(MicroUsd),
    /// The operator says that it cost so much.
    Corrected(MicroUsd),
    /// The call was never made: the run's journal does not know it. Always zero.
    Released(MicroUsd),
    /// When the ledger was made anew, not all of the run's journal could be read. About no call of it, and always zero.
    Unread(MicroUsd),
}

impl Line {
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
    at: Timestamp,
    amount: MicroUsd,
    is_open: bool,
    /// What was charged under the same number before: a journal that was put back to an earlier state, by an import or
    /// from a backup, gives its numbers once more.
    before: MicroUsd,
}

impl Entry {
    fn total(&self) -> MicroUsd {
        self.before.plus(self.amount)
    }
}

/// What the lines of the ledger fold to.
#[derive(Clone, Debug, Default)]
pub struct Daily {
    entries: BTreeMap<(RunId, ReservationId), Entry>,
    unread: BTreeMap<RunId, Timestamp>,
}

impl Daily {
    /// Takes in a line.
    pub fn take(&mut self, line: &Line) {
        let key = (line.run.clone(), line.id());
        let known = self.entries.get(&key).copied();
        let before = known.map_or(MicroUsd(0), |known| known.before);
        let entry = |amount, is_open| Entry { at: line.at, amount, is_open, before };
        let next = match (line.what, known) {
            (What::Held(amount), Some(known)) if known.is_open => entry(amount.max(known.amount), true),
            (What::Held(amount), Some(known)) => Entry { before: known.total(), ..entry(amount, true) },
            (What::Held(amount), None) => entry(amount, true),
            // A charge whose reservation left the window counts all the same.
            (What::Charged(amount), None | Some(Entry { is_open: true, .. })) => entry(amount, false),
            (What::Charged(_), Some(known)) => known,
            (What::Corrected(amount), Some(known)) => Entry { amount, is_open: false, ..known },
            // What was charged elsewhere, or longer ago, was not charged now.
            (What::Corrected(_), None) => return,
            (What::Released(_), _) if before == MicroUsd(0) => {
                self.entries.remove(&key);
                return;
            }
            (What::Released(_), _) => entry(MicroUsd(0), false),
            (What::Unread(_), _) => {
                self.unread.insert(line.run.clone(), line.at);
                return;
            }
        };
        self.entries.insert(key, next);
    }

    /// Whether a line still counts.
    pub fn counts(line: &Line, now: Timestamp) -> bool {
        now.since(line.at) < limits::DAILY_WINDOW
    }

    /// Whether a line, drawn from a journal, says something that is not known yet.
    pub fn is_news(&self, line: &Line) -> bool {
        let known = self.entries.get(&(line.run.clone(), line.id()));
        match line.what {
            What::Held(_) => known.is_none(),
            What::Charged(_) => known.is_none_or(|known| known.is_open),
            What::Corrected(amount) => known.is_some_and(|known| known.is_open || known.amount != amount),
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
        self.live(now).fold(MicroUsd(0), |sum, entry| sum.plus(entry.total()))
    }

    /// Whether `amount` more fits under the limit.
    pub fn admits(&self, amount: MicroUsd, limit: Limit, now: Timestamp) -> Result<(), Refused> {
        let Limit::At(most) = limit else { return Ok(()) };
        let spent = self.spent(now);
        if limit.bears(spent.plus(amount).0) {
            return Ok(());
        }
        let left = MicroUsd(most).minus(spent);
        let mut leaving: Vec<Entry> = self.live(now).copied().collect();
        leaving.sort_by_key(|entry| entry.at);
        let mut stays = spent;
        let mut until = now.plus(limits::DAILY_WINDOW);
        for entry in leaving {
            stays = stays.minus(entry.total());
            if limit.bears(stays.plus(amount).0) {
                until = entry.at.plus(limits::DAILY_WINDOW);
                break;
            }
        }
        Err(Refused { left, until })
    }

    /// What a reservation of a run holds, while it is not settled.
    pub fn held(&self, run: &RunId, id: ReservationId) -> Option<MicroUsd> {
        self.entries.get(&(run.clone(), id)).filter(|entry| entry.is_open).map(|entry| entry.amount)
    }

    /// What the ledger has yet to learn of a run whose journal says `fate` of each reservation: how those that are open
    /// ended, and what those that are settled count as now.
    pub fn behind(&self, run: &RunId, fate: impl Fn(ReservationId) -> Option<What>) -> Vec<(ReservationId, What)> {
        let own = self.entries.iter().filter(|((one, _), _)| one == run);
        own.filter_map(|((_, id), entry)| match fate(*id)? {
            what if entry.is_open => Some((*id, what)),
            What::Charged(amount) if amount != entry.amount => Some((*id, What::Corrected(amount))),
            What::Held(_) | What::Charged(_) | What::Corrected(_) | What::Released(_) | What::Unread(_) => None,
        })
        .collect()
    }

    fn live(&self, now: Timestamp) -> impl Iterator<Item = &Entry> {
        self.entries.values().filter(move |entry| now.since(entry.at) < limits::DAILY_WINDOW)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::time::Span;

    const HOUR: u64 = 3_600_000;

    fn line(at: u64, run: u8, call: u32, what: What) -> Line {
        Line { at: Timestamp(at), run: RunId::from_entropy([run; 12]), call: ModelCallId(call), attempt: 1, what }
    }

    fn daily(lines: &[Line]) -> Daily {
        let mut daily = Daily::default();
        lines.iter().for_each(|line| daily.take(line));
        daily
    }

    #[test]
    fn what_is_charged_takes_the_place_of_what_is_held_and_only_once() {
        let held = What::Held(MicroUsd(200));
        let charged = |amount| What::Charged(MicroUsd(amount));
        let rows = [
            (vec![line(1, 1, 1, held)], 200),
            (vec![line(1, 1, 1, held), line(2, 1, 1, charged(10))], 10),
            (vec![line(1, 1, 1, held), line(2, 1, 1, charged(10)), line(3, 1, 1, charged(99))], 10),
            (vec![line(1, 1, 1, held), line(2, 1, 1, charged(300))], 300),
            (vec![line(1, 1, 1, held), line(2, 2, 1, held)], 400),
            (vec![line(1, 1, 1, held), line(2, 1, 1, What::Released(MicroUsd(0)))], 0),
            (vec![line(2, 1, 1, charged(10)), line(3, 1, 1, What::Corrected(MicroUsd(7)))], 7),
            (vec![line(3, 1, 1, What::Corrected(MicroUsd(7)))], 0),
            (vec![line(1, 1, 1, held), line(2, 1, 1, held)], 200),
            // The same number once more, after the journal was put back: it counts beside what was charged before.
            (vec![line(1, 1, 1, held), line(2, 1, 1, charged(10)), line(3, 1, 1, held)], 210),
            (vec![line(1, 1, 1, held), line(2, 1, 1, charged(10)), line(3, 1, 1, held), line(4, 1, 1, charged(7))], 17),
            (
                vec![
                    line(1, 1, 1, held),
                    line(2, 1, 1, charged(10)),
                    line(3, 1, 1, held),
                    line(4, 1, 1, What::Released(MicroUsd(0))),
                ],
                10,
            ),
        ];
        for (lines, spent) in rows {
            assert_eq!(daily(&lines).spent(Timestamp(5)), MicroUsd(spent), "{lines:?}");
        }
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
