//! How much is taken in before a frame is drawn. A program that prints without end sends scraps faster than they can be
//! shown; a key that comes among them is taken before them (`sources.rs`) and is answered by the next frame.

use crate::protocol::client::Update;
use crate::tui::sources::Heard;

/// Messages that are taken in before a frame is drawn, at most.
const TAKEN: usize = 512;
/// Scraps of streamed text among them, at most.
const SCRAPS: usize = 32;

/// What was taken in since the last frame could be drawn.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    taken: usize,
    scraps: usize,
}

impl Turn {
    /// Counts a message that was taken in. Whether another may be, before a frame is drawn; `is_urgent` says that one is
    /// waited for already.
    pub(crate) fn goes_on_after(&mut self, is_scrap: bool, is_urgent: bool) -> bool {
        self.taken += 1;
        self.scraps += usize::from(is_scrap);
        // Keys that come together are one frame, but no scrap holds them up.
        let holds_up = is_scrap && is_urgent;
        !holds_up && self.taken < TAKEN && self.scraps < SCRAPS
    }
}

/// Whether this is only a scrap of streamed text.
pub(crate) fn is_scrap(heard: &Heard) -> bool {
    matches!(heard, Heard::Run(Update::Delta(_) | Update::Lost(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes in what has come, keys (`k`) before scraps (`s`) as `sources.rs` gives them, and draws a frame (`|`) whenever
    /// one is due at once: what happened, in order, and what is left.
    fn check(keys: usize, scraps: usize, expected: &str) {
        let (mut keys, mut scraps) = (keys, scraps);
        let mut seen = String::new();
        let mut turn = Turn::default();
        let mut is_urgent = false;
        while keys + scraps > 0 {
            let is_scrap = keys == 0;
            if is_scrap {
                scraps -= 1
            } else {
                keys -= 1
            };
            seen.push(if is_scrap { 's' } else { 'k' });
            is_urgent |= !is_scrap;
            if !turn.goes_on_after(is_scrap, is_urgent) {
                break;
            }
        }
        seen.push_str(if is_urgent { "|" } else { "" });
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_key_waits_for_no_more_than_one_scrap() {
        check(0, 2, "ss");
        check(1, 0, "k|");
        check(1, 100_000, "ks|");
        check(3, 100_000, "kkks|");
        check(0, 100_000, &"s".repeat(SCRAPS));
        check(100_000, 100_000, &format!("{}|", "k".repeat(TAKEN)));
    }
}
