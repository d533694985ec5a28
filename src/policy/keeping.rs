//! Which of the runs that have ended are still kept (docs/ENGINE.md §10.5).

use crate::domain::budget::Limit;
use crate::domain::id::RunId;
use crate::domain::limits;
use crate::domain::time::Span;
use crate::domain::time::Timestamp;

/// How long, and how many, runs that have ended are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// So many days.
    pub days: Limit,
    /// So many runs.
    pub runs: Limit,
}

impl Default for Keep {
    fn default() -> Self {
        Keep { days: Limit::At(limits::KEPT_DAYS), runs: Limit::At(limits::KEPT_RUNS) }
    }
}

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// A run that has ended and that nobody holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its name.
    pub id: RunId,
    /// When it was touched last: its last record, or the last time that it was opened or imported.
    pub touched: Timestamp,
}

/// The runs that are not kept any more, oldest first: those untouched for longer than the days, and those beyond the
/// number of runs.
pub fn due(mut ended: Vec<Ended>, keep: Keep, now: Timestamp) -> Vec<RunId> {
    ended.sort_by(|one, other| (other.touched, &other.id).cmp(&(one.touched, &one.id)));
    let is_due = |(place, one): &(usize, Ended)| !keep.runs.bears(*place as u64 + 1) || is_old(one, keep, now);
    ended.into_iter().enumerate().filter(is_due).map(|(_, one)| one.id).rev().collect()
}

fn is_old(one: &Ended, keep: Keep, now: Timestamp) -> bool {
    match keep.days {
        Limit::At(days) => now.since(one.touched) > Span(days.saturating_mul(DAY_MS)),
        Limit::Unlimited => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::domain::id::RUN_ID_LENGTH;

    /// Runs that were touched on these days, named by their places; the places of those that are due on day 100.
    fn check(touched: &[u64], days: Limit, runs: Limit) -> Vec<usize> {
        let name = |place: usize| RunId::from_entropy([place as u8; RUN_ID_LENGTH]);
        let ended = |(place, day): (usize, &u64)| Ended { id: name(place), touched: Timestamp(day * DAY_MS) };
        let all: Vec<Ended> = touched.iter().enumerate().map(ended).collect();
        let due = due(all, Keep { days, runs }, Timestamp(100 * DAY_MS));
        due.iter().map(|id| (0..touched.len()).find(|place| name(*place) == *id).unwrap()).collect()
    }

    #[test]
    fn the_oldest_go_first() {
        assert_eq!(
            check(&[99, 9, 10, 3], Limit::At(90), Limit::At(500)),
            [3, 1],
            "90 days to the millisecond are kept"
        );
        assert_eq!(check(&[99, 9, 10, 3], Limit::Unlimited, Limit::At(2)), [3, 1]);
        assert_eq!(check(&[99, 9, 10, 3], Limit::At(1), Limit::At(1)), [3, 1, 2]);
        assert_eq!(check(&[99, 9, 10, 3], Limit::Unlimited, Limit::Unlimited), [0; 0]);
        assert_eq!(check(&[200], Limit::At(1), Limit::At(1)), [0; 0], "a clock that went back makes nothing old");
        assert_eq!(check(&[0], Limit::At(u64::MAX), Limit::At(1)), [0; 0]);
    }
}
