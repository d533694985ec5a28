//! Time as numbers that are handed in. Nothing on the ground floors reads a clock.

use serde::Deserialize;
use serde::Serialize;

/// Wall-clock time in milliseconds since 1970. For people and for waits; never for ordering or limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// This time and a span after it.
    pub fn plus(self, span: Span) -> Self {
        Timestamp(self.0.saturating_add(span.0))
    }

    /// How long ago `earlier` was; zero when the clock went back.
    pub fn since(self, earlier: Timestamp) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

/// A length of time in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Span(pub u64);

impl Span {
    /// So many seconds.
    pub const fn seconds(seconds: u64) -> Self {
        Span(seconds * 1_000)
    }

    /// The sum, without overflow.
    pub fn plus(self, other: Span) -> Self {
        Span(self.0.saturating_add(other.0))
    }
}

/// The present, as the driver saw it when it took an input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Wall-clock time.
    pub at: Timestamp,
    /// How long the run has been `running` in all, by a monotonic clock (docs/ENGINE.md §8.1, active wall).
    pub active: Span,
}

/// A span as people read it: `940ms`, `12s`, `12m04s`, `3h05m`.
pub fn human(span: Span) -> String {
    let seconds = span.0 / 1_000;
    match (seconds, seconds / 60, seconds / 3_600) {
        (0, _, _) => format!("{}ms", span.0),
        (_, 0, _) => format!("{seconds}s"),
        (_, minutes, 0) => format!("{minutes}m{:02}s", seconds % 60),
        (_, minutes, hours) => format!("{hours}h{:02}m", minutes % 60),
    }
}

/// Reads a span as people write it: `90s`, `30m`, `2h`, `1h30m`. Units go from large to small, each at most once.
pub fn parse(text: &str) -> Option<Span> {
    let mut rest = text.trim();
    let mut total_ms: u64 = 0;
    for (unit, unit_ms) in [("h", 3_600_000), ("m", 60_000), ("s", 1_000)] {
        let digits = rest.len() - rest.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
        let (number, after) = rest.split_at(digits);
        let Some(after) = after.strip_prefix(unit) else { continue };
        let part_ms = number.parse::<u64>().ok()?.checked_mul(unit_ms)?;
        total_ms = total_ms.checked_add(part_ms)?;
        rest = after;
    }
    (rest.is_empty() && !text.trim().is_empty()).then_some(Span(total_ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_as_they_are_written() {
        let read: Vec<Option<u64>> = [
            "90s",
            "30m",
            "2h",
            "1h30m",
            " 1h05m09s ",
            "",
            "h",
            "5",
            "30m1h",
            "2h2h",
            "1.5h",
            "-1s",
            "99999999999999h",
        ]
        .iter()
        .map(|text| parse(text).map(|span| span.0 / 1_000))
        .collect();
        let some = [90, 1_800, 7_200, 5_400, 3_909].map(Some);
        assert_eq!((&read[..5], &read[5..]), (&some[..], &[None; 8][..]));
    }

    #[test]
    fn spans_read_well() {
        let texts: Vec<String> = [940, 12_000, 724_000, 11_100_000].map(|ms| human(Span(ms))).to_vec();
        assert_eq!(texts, ["940ms", "12s", "12m04s", "3h05m"]);
    }
}
