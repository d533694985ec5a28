//! What opens above the panes: a stack of these. The top one gets the keys.

use std::sync::Arc;

use crate::domain::budget::Axis;
use crate::domain::budget::Limit;
use crate::domain::budget::Pool;
use crate::domain::id::CallId;
use crate::domain::money::MicroUsd;
use crate::domain::tool::Digest;
use crate::tui::composer::Composer;
use crate::tui::keymap::Place;
use crate::tui::scroll::Scroll;
use crate::tui::waiting::Body;

/// Something open above the panes.
#[derive(Clone, Debug)]
pub enum Popup {
    /// The keys that work where it was opened.
    Help {
        /// There.
        places: Vec<Place>,
        /// How far it is scrolled.
        scroll: Scroll,
    },
    /// The whole of a call or of an iteration.
    Whole {
        /// What it is, sanitised.
        title: String,
        /// The call, where it is one that waits.
        call: Option<CallId>,
        /// Its lines.
        body: Arc<Body>,
        /// How far it is scrolled.
        scroll: Scroll,
    },
    /// A line of words.
    Words {
        /// For what.
        asks: Asks,
        /// What is written.
        line: Composer,
    },
    /// The dialog that raises a limit.
    Raise {
        /// The limit chosen.
        axis: Axis,
        /// What is written.
        line: Composer,
        /// Why it was not taken.
        problem: Option<String>,
    },
    /// The question whether to cancel.
    Cancel,
}

/// What words are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asks {
    /// Why a call is denied.
    Deny(CallId, Digest),
    /// What came of a call.
    Happened(CallId),
}

/// A new limit as a person writes it. Money in dollars, time as `90m`, `2h` or `30s` (a bare number is minutes),
/// counts with `k` or `M`; `none` for no limit. Errors in a sentence.
pub fn parse_limit(axis: Axis, text: &str, pool: &Pool) -> Result<Limit, String> {
    let text = text.trim();
    if ["none", "unlimited", "no limit"].contains(&text) {
        return Ok(Limit::Unlimited);
    }
    let amount = match axis {
        Axis::Cost => MicroUsd::parse_dollars(text).map(|amount| amount.0),
        Axis::Active => parse_with_unit(text, &[("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("", 60_000)]),
        Axis::Loops | Axis::ModelCalls | Axis::ToolCalls | Axis::Tokens => {
            parse_with_unit(text, &[("k", 1_000), ("M", 1_000_000), ("", 1)])
        }
    };
    let example = match axis {
        Axis::Cost => "dollars, such as 7.50",
        Axis::Active => "a time, such as 90m or 3h",
        Axis::Loops | Axis::ModelCalls | Axis::ToolCalls | Axis::Tokens => "a number, such as 64 or 500k",
    };
    let Some(amount) = amount else {
        return Err(format!("that is not a limit; write {example}, or none"));
    };
    let used = pool.used(axis);
    if amount <= used {
        return Err(format!("{} are used already; the new limit must be more", axis.show(used)));
    }
    Ok(Limit::At(amount))
}

fn parse_with_unit(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.trim_end_matches(|one: char| one.is_ascii_alphabetic());
    let unit = &text[digits.len()..];
    let factor = units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor)?;
    digits.trim().parse::<u64>().ok()?.checked_mul(factor)
}

/// What the dialog proposes: twice the limit, as a person writes it; empty where there is none.
pub fn proposal(axis: Axis, pool: &Pool) -> String {
    let Limit::At(limit) = pool.limits().on(axis) else { return String::new() };
    let twice = limit.max(pool.used(axis)).saturating_mul(2);
    match axis {
        Axis::Cost if twice % 10_000 == 0 => format!("{}.{:02}", twice / 1_000_000, twice / 10_000 % 100),
        Axis::Cost => format!("{}.{:06}", twice / 1_000_000, twice % 1_000_000),
        Axis::Active => format!("{}m", twice.div_ceil(60_000)),
        Axis::Loops | Axis::ModelCalls | Axis::ToolCalls | Axis::Tokens => twice.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::budget::Limits;

    #[test]
    fn limits_are_read_as_people_write_them() {
        let mut pool = Pool::new(Limits::default());
        pool.count_loop();
        let read = |axis, text: &str| parse_limit(axis, text, &pool).ok();
        assert_eq!(read(Axis::Cost, "$7.50"), Some(Limit::At(7_500_000)));
        assert_eq!(read(Axis::Active, "90m"), Some(Limit::At(5_400_000)));
        assert_eq!(read(Axis::Active, " 3h "), Some(Limit::At(10_800_000)));
        assert_eq!(read(Axis::Active, "45"), Some(Limit::At(2_700_000)));
        assert_eq!(read(Axis::Tokens, "500k"), Some(Limit::At(500_000)));
        assert_eq!(read(Axis::Loops, "none"), Some(Limit::Unlimited));
        assert_eq!(read(Axis::Loops, "1"), None, "used already");
        assert_eq!(read(Axis::Loops, "99999999999999999999"), None);
        assert_eq!(read(Axis::Cost, "a lot"), None);
        assert_eq!(read(Axis::Tokens, "18446744073709551615k"), None);
    }

    #[test]
    fn twice_the_limit_is_proposed() {
        let pool = Pool::new(Limits::default());
        assert_eq!(proposal(Axis::Cost, &pool), "10.00");
        assert_eq!(proposal(Axis::Active, &pool), "240m");
        assert_eq!(proposal(Axis::Loops, &pool), "64");
        for axis in Axis::ALL {
            assert!(parse_limit(axis, &proposal(axis, &pool), &pool).is_ok());
        }
    }
}
