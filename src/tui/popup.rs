//! What opens above the panes: a stack of these. The top one gets the keys.

use std::sync::Arc;

use crate::domain::budget::Axis;
use crate::domain::budget::Limit;
use crate::domain::id::CallId;
use crate::domain::pool::Pool;
use crate::domain::time::Timestamp;
use crate::domain::tool::Digest;
use crate::tui::action::Choice;
use crate::tui::composer::Composer;
use crate::tui::keymap::place::Place;
use crate::tui::lineage::Doubt;
use crate::tui::lineage::StepKind;
use crate::tui::menu::Menu;
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
        /// The call, where it is one that waits, and its digest as it was then.
        call: Option<(CallId, Option<Digest>)>,
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
    },
    /// The question whether to cancel.
    Cancel,
    /// What can be asked for here, found by its words.
    Menu(Menu),
}

/// What words are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asks {
    /// Why a call is denied.
    Deny(CallId, Digest),
    /// The code that lets a grave call run, and how.
    Code(CallId, Digest, Choice),
    /// Other arguments for a call.
    Edit(CallId, Digest),
    /// How far a standing rule made of a call reaches.
    Rule(CallId, Digest),
    /// How much the run does unasked.
    Trust,
    /// What came of a call.
    Happened(CallId),
    /// What is wrong with a claim.
    WrongClaim(Digest),
    /// What the model costs.
    Price,
    /// A change of the plan.
    Plan,
    /// The iteration to go back to, or to branch off after.
    Iteration(StepKind),
    /// The word that has it done.
    Sure(Doubt),
}

impl Asks {
    /// Where its keys are.
    pub fn place(&self) -> Place {
        match self {
            Asks::Deny(..) | Asks::Happened(_) | Asks::WrongClaim(_) => Place::Words,
            Asks::Edit(..) => Place::Edit,
            Asks::Code(..)
            | Asks::Rule(..)
            | Asks::Trust
            | Asks::Price
            | Asks::Plan
            | Asks::Iteration(_)
            | Asks::Sure(_) => Place::Entry,
        }
    }
}

/// Reads a new limit, which must leave something to use. Errors in a sentence.
pub fn new_limit(axis: Axis, text: &str, pool: &Pool, now: Timestamp) -> Result<Limit, String> {
    let limit = axis.parse_limit_at(text, now)?;
    let used = pool.used(axis);
    match limit {
        Limit::At(amount) if axis != Axis::Deadline && amount <= used => {
            Err(format!("{} are used already; the new limit must be more", axis.show(used)))
        }
        Limit::At(_) | Limit::Unlimited => Ok(limit),
    }
}

/// What the dialog proposes: twice the limit, or `least` where that is more, as a person writes it; empty where there is
/// none.
pub fn proposal(axis: Axis, pool: &Pool, least: u64) -> String {
    // A time from now: a moment would have to be worked out.
    if axis == Axis::Deadline {
        return "1h".to_string();
    }
    let Limit::At(limit) = pool.limits().on(axis) else { return String::new() };
    let twice = limit.max(pool.used(axis)).saturating_mul(2).max(least);
    match axis {
        Axis::Cost => exact_dollars(twice),
        Axis::Active => format!("{}m", twice.div_ceil(60_000)),
        Axis::Deadline | Axis::Loops | Axis::ModelCalls | Axis::ToolCalls | Axis::Tokens => twice.to_string(),
    }
}

/// Micro-dollars as a person writes dollars, all of them.
pub fn exact_dollars(amount: u64) -> String {
    if amount.is_multiple_of(10_000) {
        return format!("{}.{:02}", amount / 1_000_000, amount / 10_000 % 100);
    }
    let exact = format!("{}.{:06}", amount / 1_000_000, amount % 1_000_000);
    exact.trim_end_matches('0').to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::budget::Limits;

    #[test]
    fn a_new_limit_must_leave_something() {
        let mut pool = Pool::new(Limits::default());
        pool.count_loop();
        let read = |axis, text: &str| new_limit(axis, text, &pool, Timestamp(5)).ok();
        assert_eq!(read(Axis::Cost, "$7.50"), Some(Limit::At(7_500_000)));
        assert_eq!(read(Axis::Loops, "unlimited"), Some(Limit::Unlimited));
        assert_eq!(read(Axis::Loops, "2"), Some(Limit::At(2)));
        assert_eq!(read(Axis::Loops, "1"), None, "used already");
        assert_eq!(read(Axis::Cost, "a lot"), None);
        assert_eq!(read(Axis::Deadline, "2s"), Some(Limit::At(2_005)));
        assert_eq!(read(Axis::Deadline, "none"), Some(Limit::Unlimited));
    }

    #[test]
    fn twice_the_limit_is_proposed() {
        let pool = Pool::new(Limits::default());
        assert_eq!(proposal(Axis::Cost, &pool, 7_000_000), "10.00");
        assert_eq!(proposal(Axis::Cost, &pool, 12_345_678), "12.345678", "twice would not do");
        assert_eq!(proposal(Axis::Active, &pool, 0), "240m");
        assert_eq!(proposal(Axis::Loops, &pool, 33), "64");
        for axis in Axis::ALL {
            assert!(new_limit(axis, &proposal(axis, &pool, 0), &pool, Timestamp(5)).is_ok());
        }
    }
}
