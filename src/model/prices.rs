//! What known models cost and how long a text they take, from `assets/prices.toml`. A model that is not in the table
//! has no price: it is for the operator to give one. Nothing is guessed from a name that looks alike.

use serde::Deserialize;

use crate::domain::money::Price;
use crate::domain::time::Span;
use crate::domain::time::Timestamp;

const TABLE: &str = include_str!("../../assets/prices.toml");

/// What is known about a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriceEntry {
    /// Micro-dollars per million tokens.
    pub price: Price,
    /// Input that it takes at this price, in tokens.
    pub window: u64,
    /// Output that it gives at most, in tokens.
    pub max_output: u64,
}

/// The entry of a model, by its name on the wire; nothing when nobody knows.
pub fn lookup(model: &str) -> Option<PriceEntry> {
    // The table is part of the program and read by a test; it can't be broken at run time.
    let table: Table = toml::from_str(TABLE).ok()?;
    let row = table.model.into_iter().find(|row| row.names.iter().any(|name| name == model))?;
    Some(PriceEntry {
        price: Price {
            input: row.input,
            cache_read: row.cache_read,
            // These providers take nothing extra for filling their cache.
            cache_write: row.input,
            output: row.output,
        },
        window: row.window,
        max_output: row.max_output,
    })
}

/// The day on which the table was last compared with what is charged, as `2026-11-01`, and how long ago that is. Nothing
/// when the clock stands before it.
pub fn age(now: Timestamp) -> Option<(String, Span)> {
    let table: Table = toml::from_str(TABLE).ok()?;
    let day: jiff::civil::Date = table.as_of.parse().ok()?;
    let compared = jiff::tz::Offset::UTC.to_timestamp(day.at(0, 0, 0, 0)).ok()?;
    let compared = u64::try_from(compared.as_millisecond()).ok()?;
    (now.0 >= compared).then(|| (table.as_of, now.since(Timestamp(compared))))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    as_of: String,
    model: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    names: Vec<String>,
    input: u64,
    cache_read: u64,
    output: u64,
    window: u64,
    max_output: u64,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_table_is_sound() {
        let table: Table = toml::from_str(TABLE).unwrap();
        let mut seen = HashSet::new();
        for row in table.model {
            assert!(row.cache_read <= row.input && row.input < row.output, "{:?}", row.names);
            assert!(row.max_output < row.window, "{:?}", row.names);
            // Dollars for a million tokens, between a cent and a thousand.
            assert!((10_000..1_000_000_000).contains(&row.input), "{:?}", row.names);
            for name in row.names {
                assert!(seen.insert(name.clone()), "{name} is there twice");
            }
        }
    }

    #[test]
    fn the_table_has_an_age() {
        let day = 24 * 60 * 60 * 1_000;
        let first = Timestamp(20_758 * day);
        assert_eq!(age(first), Some(("2026-11-01".to_string(), Span(0))));
        assert_eq!(age(first.plus(Span(3 * day))).unwrap().1, Span(3 * day));
        assert_eq!(age(Timestamp(first.0 - 1)), None);
    }

    #[test]
    fn only_names_in_the_table_are_known() {
        let entry = lookup("gpt-4.1").unwrap();
        assert_eq!((entry.price.input, entry.price.cache_read, entry.price.output), (2_000_000, 500_000, 8_000_000));
        assert_eq!(lookup("gpt-4.1-2025-04-14"), Some(entry));
        assert_eq!(lookup("gpt-4o-2024-05-13"), None);
        assert_eq!(lookup(""), None);
    }
}
