//! The moment until which a run may work: as an operator writes it, and as it is shown (docs/ENGINE.md §8.1). It reads
//! no clock; the present is handed in.

use crate::domain::budget::Limit;
use crate::domain::budget::UNLIMITED;
use crate::domain::time::Span;
use crate::domain::time::Timestamp;
use crate::domain::time::human;
use crate::domain::time::parse;

/// The word for having no deadline.
pub const NONE: &str = "none";

/// A deadline as it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    /// At this time.
    At(Timestamp),
    /// So long from now.
    After(Span),
    /// There is none.
    None,
}

impl Deadline {
    /// Reads a length of time, an RFC 3339 time, or `none`. Errors, in a sentence without its end.
    pub fn parse(text: &str) -> Result<Deadline, String> {
        let text = text.trim();
        if [NONE, UNLIMITED].contains(&text) {
            return Ok(Deadline::None);
        }
        match (parse(text), text.parse::<jiff::Timestamp>()) {
            (Some(Span(0)), _) => {
                Err(format!("a deadline of zero would stop the run at once; write {NONE} to have none"))
            }
            (Some(span), _) => Ok(Deadline::After(span)),
            (None, Ok(at)) => match u64::try_from(at.as_millisecond()) {
                Ok(at) if at > 0 => Ok(Deadline::At(Timestamp(at))),
                Ok(_) | Err(_) => Err(format!("the deadline {text} is past")),
            },
            (None, Err(_)) => Err(format!(
                "a deadline must be a time from now such as 90m or 3h, a moment such as 2030-01-31T18:00:00Z, or {NONE}"
            )),
        }
    }

    /// The limit that it stands for now. Errors, in a sentence without its end, when it is past.
    pub fn limit(self, now: Timestamp) -> Result<Limit, String> {
        match self {
            Deadline::At(at) if at <= now => Err(format!("the deadline {} is past", moment(at))),
            Deadline::At(at) => Ok(Limit::At(at.0)),
            Deadline::After(span) => Ok(Limit::At(now.plus(span).0)),
            Deadline::None => Ok(Limit::Unlimited),
        }
    }
}

/// A moment, to the second, as it can be typed again: `2030-01-31T18:00:00Z`.
pub fn moment(at: Timestamp) -> String {
    let seconds = i64::try_from(at.0 / 1_000).ok().and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    seconds.map_or("never".to_string(), |at| at.to_string())
}

/// A deadline with how far away it is: `2030-01-31T18:00:00Z (in 2h05m)`.
pub fn distance(at: Timestamp, now: Timestamp) -> String {
    let far = if at > now { format!("in {}", human(at.since(now))) } else { "past".to_string() };
    format!("{} ({far})", moment(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_are_read_as_they_are_written() {
        let now = Timestamp(1_000_000);
        let read = |text: &str| Deadline::parse(text).and_then(|deadline| deadline.limit(now));
        assert_eq!(read("2h"), Ok(Limit::At(8_200_000)));
        assert_eq!(read("1970-01-01T00:20:00Z"), Ok(Limit::At(1_200_000)));
        assert_eq!(read("1970-01-01T02:20:00+02:00"), Ok(Limit::At(1_200_000)), "with its zone");
        assert_eq!(read(" none "), Ok(Limit::Unlimited));
        assert_eq!(read("1970-01-01T00:10:00Z"), Err("the deadline 1970-01-01T00:10:00Z is past".to_string()));
        for wrong in ["", "0h", "tomorrow", "2030-01-31", "-2h", "1960-01-01T00:00:00Z", "2030-01-31T18:00:00"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert_eq!(Deadline::parse(&moment(Timestamp(1_200_999))), Ok(Deadline::At(Timestamp(1_200_000))));
        assert_eq!(moment(Timestamp(u64::MAX)), "never");
    }
}
