//! What is known of the price of a run's model, and the part of the fold that is about it (docs/ENGINE.md §8.4).

use serde::Deserialize;
use serde::Serialize;

use crate::domain::money::MicroUsd;
use crate::domain::money::Price;
use crate::domain::run::Run;

/// What is known of a price.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pricing {
    /// It is this.
    Known(Price),
    /// Nobody knows, and nobody has chosen: the model is not asked.
    Unknown,
    /// Nobody knows, and the operator goes on without counting money. The tokens have a limit.
    Off,
}

impl Pricing {
    /// At the start: as the terms have it.
    pub fn of(price: Option<Price>) -> Self {
        price.map_or(Pricing::Unknown, Pricing::Known)
    }

    /// What is counted with. Nothing where nobody knows.
    pub fn price(self) -> Price {
        match self {
            Pricing::Known(price) => price,
            Pricing::Unknown | Pricing::Off => Price::FREE,
        }
    }
}

impl Run {
    /// Takes in the operator's choice: a price, or to go on without one.
    pub(crate) fn choose_price(&mut self, price: Option<Price>) -> Result<(), String> {
        if self.terms.model.price.is_some() {
            return Err("the price is part of the terms".to_string());
        }
        self.pricing = price.map_or(Pricing::Off, Pricing::Known);
        Ok(())
    }
}

/// Reads a price as a person writes it: dollars per million tokens of input and of output, `0.25 2.00`; or
/// `unpriced`, which is none. Errors with what is expected.
pub fn parse(text: &str) -> Result<Option<Price>, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let dollars = |word: &str| MicroUsd::parse_dollars(word).map(|amount| amount.0);
    match words.as_slice() {
        ["unpriced"] => Ok(None),
        [input, output] => match (dollars(input), dollars(output)) {
            (Some(input), Some(output)) => Ok(Some(Price { input, cache_read: input, cache_write: input, output })),
            (None, _) | (_, None) => Err(EXPECTED.to_string()),
        },
        _ => Err(EXPECTED.to_string()),
    }
}

const EXPECTED: &str = "give two prices, of input and of output, such as 0.25 2.00; or: unpriced";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_read_as_they_are_written() {
        let price = Price { input: 250_000, cache_read: 250_000, cache_write: 250_000, output: 2_000_000 };
        assert_eq!(parse(" 0.25  $2 "), Ok(Some(price)));
        assert_eq!(parse("unpriced"), Ok(None));
        for wrong in ["", "1", "1 x", "1 2 3", "-1 2"] {
            assert_eq!(parse(wrong), Err(EXPECTED.to_string()), "{wrong}");
        }
    }
}
