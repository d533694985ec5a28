//! Words of the command line that stand for something: how each is read, and the sentence when it can't be.

use std::ffi::OsString;

use clap::Args;

use crate::cli::Order;
use crate::domain::budget::Axis;
use crate::domain::budget::Limit;
use crate::domain::budget::ReservationId;
use crate::domain::deadline::Deadline;
use crate::domain::id::CallId;
use crate::domain::id::InterjectionId;
use crate::domain::id::RUN_ID_ALPHABET;
use crate::domain::id::RUN_ID_LENGTH;
use crate::domain::money::MicroUsd;
use crate::domain::money::Price;
use crate::domain::text::one_line;

/// What is said of `raise` below its words.
pub(crate) const RAISE_HELP: &str = "\
AXIS and LIMIT:
  cost          dollars: 5, 0.50
  time          a time while running: 30m, 2h, 1h30m
  deadline      a time from now: 90m; a moment: 2030-01-31T18:00:00Z; or none
  iterations, tool-calls, model-calls, tokens   a whole number
LIMIT is the new limit, not a difference; `unlimited` takes the limit away.
Example: tiller raise k7f cost 10 && tiller resume k7f";

/// What a model costs, where nobody knows.
#[derive(Args)]
pub(crate) struct PriceWords {
    /// The beginning of its name
    #[arg(value_parser = run_prefix)]
    pub(crate) run: String,
    /// A million tokens of input
    #[arg(value_parser = dollars, required_unless_present = "unpriced", requires = "output")]
    input: Option<MicroUsd>,
    /// A million tokens of output
    #[arg(value_parser = dollars)]
    output: Option<MicroUsd>,
    /// Go on without counting money; the limit of tokens still holds
    #[arg(long, conflicts_with = "input")]
    unpriced: bool,
}

impl PriceWords {
    /// The price that was told; nothing where money is not to be counted.
    pub(crate) fn price(&self) -> Option<Price> {
        let (input, output) = self.input.zip(self.output).filter(|_| !self.unpriced)?;
        Some(Price { input: input.0, cache_read: input.0, cache_write: input.0, output: output.0 })
    }
}

pub(crate) fn cost(text: &str) -> Result<Limit, String> {
    limit(Axis::Cost, text)
}

pub(crate) fn iterations(text: &str) -> Result<Limit, String> {
    limit(Axis::Loops, text)
}

pub(crate) fn deadline(text: &str) -> Result<Deadline, String> {
    not_negative("a deadline", text)?;
    Deadline::parse(text)
}

/// The order that sets a limit. Errors with a sentence.
pub(crate) fn raise(axis: Axis, text: &str) -> Result<Order, String> {
    let order = match axis {
        Axis::Deadline => deadline(text).map(Order::Deadline),
        Axis::Active | Axis::Loops | Axis::ModelCalls | Axis::ToolCalls | Axis::Tokens | Axis::Cost => {
            limit(axis, text).map(|limit| Order::Raise { axis, limit })
        }
    };
    order.map_err(|why| format!("{why}; the limit was not changed"))
}

/// A limit other than that of the deadline.
pub(crate) fn limit(axis: Axis, text: &str) -> Result<Limit, String> {
    not_negative(&format!("the limit of {}", axis.word()), text)?;
    axis.parse_limit(text)
}

fn not_negative(what: &str, text: &str) -> Result<(), String> {
    if is_negative(text) { Err(format!("{what} can't be negative")) } else { Ok(()) }
}

fn is_negative(text: &str) -> bool {
    let amount = text.trim().strip_prefix('-').map(|rest| rest.trim_start_matches(['$', '.']));
    amount.is_some_and(|rest| rest.starts_with(|one: char| one.is_ascii_digit()))
}

/// What is wrong with a line that has a negative amount where a word of its own is read as a flag; nothing where it has
/// none.
pub(crate) fn negative(words: &[OsString]) -> Option<String> {
    let texts: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let place = texts.iter().position(|word| is_negative(word))?;
    let amount = one_line(texts.get(place)?, 40);
    let flag = texts.get(place.checked_sub(1)?).filter(|before| before.starts_with("--") && before.len() > 2);
    Some(match flag {
        Some(flag) => format!("{} can't be negative, and `{amount}` is; nothing was done", one_line(flag, 40)),
        None => format!(
            "`{amount}` is negative, which no amount here can be; nothing was done; if it is meant as words, write `--` \
             before it"
        ),
    })
}

pub(crate) fn axis(word: &str) -> Result<Axis, String> {
    Axis::parse(word).ok_or_else(|| format!("the axes are {}", Axis::ALL.map(Axis::word).join(", ")))
}

pub(crate) fn call(text: &str) -> Result<CallId, String> {
    CallId::parse(text).ok_or_else(|| "calls are named c1, c2, …; `tiller show RUN` lists those that wait".to_string())
}

pub(crate) fn iteration(text: &str) -> Result<u32, String> {
    let number = text.strip_prefix('#').unwrap_or(text).parse();
    number.map_err(|_| "iterations are numbered 1, 2, …; `tiller show RUN` lists them".to_string())
}

pub(crate) fn reservation(text: &str) -> Result<ReservationId, String> {
    ReservationId::parse(text)
        .ok_or_else(|| "a model call is named m1.1, m2.1 …; `tiller show RUN` lists them".to_string())
}

pub(crate) fn dollars(text: &str) -> Result<MicroUsd, String> {
    MicroUsd::parse_dollars(text).ok_or_else(|| "write dollars, such as 0.02 or 1.50".to_string())
}

pub(crate) fn interjection(text: &str) -> Result<InterjectionId, String> {
    let id = InterjectionId::parse(text);
    id.ok_or_else(|| "what you said is named i1, i2, …; `tiller show RUN` lists what waits to be told".to_string())
}

pub(crate) fn digest(text: &str) -> Result<String, String> {
    let fits = (8..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if fits {
        Ok(text.to_lowercase())
    } else {
        Err("a digest is 8 to 64 of the characters 0-9 and a-f; `tiller show RUN` prints it beside the call"
            .to_string())
    }
}

pub(crate) fn run_prefix(text: &str) -> Result<String, String> {
    let text = text.to_lowercase();
    let fits = (1..=RUN_ID_LENGTH).contains(&text.len()) && text.bytes().all(|byte| RUN_ID_ALPHABET.contains(&byte));
    if fits { Ok(text) } else { Err("no run has a name like this; `tiller runs` lists them".to_string()) }
}
