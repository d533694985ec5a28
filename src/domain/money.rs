//! Money and tokens: integers only (docs/ENGINE.md §8.2). One dollar is 1,000,000 micro-dollars.

use std::fmt;

use serde::Deserialize;
use serde::Serialize;

/// An amount in micro-dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MicroUsd(pub u64);

impl MicroUsd {
    /// The sum, without overflow.
    pub fn plus(self, other: MicroUsd) -> Self {
        MicroUsd(self.0.saturating_add(other.0))
    }

    /// What is left after taking `other`, at least zero.
    pub fn minus(self, other: MicroUsd) -> Self {
        MicroUsd(self.0.saturating_sub(other.0))
    }

    /// Dollars to the last micro-dollar, with two decimals at least: for figures that are to sum up.
    pub fn exact(self) -> String {
        let digits = format!("{:06}", self.0 % 1_000_000);
        let (cents, rest) = digits.split_at(2);
        format!("${}.{cents}{}", self.0 / 1_000_000, rest.trim_end_matches('0'))
    }

    /// Reads dollars as a person writes them, `5`, `0.25`, `$1.50`. No floating point; at most six decimals.
    pub fn parse_dollars(text: &str) -> Option<Self> {
        let plain = text.trim().strip_prefix('$').unwrap_or(text.trim());
        let (whole, part) = plain.split_once('.').unwrap_or((plain, ""));
        let digits_only = whole.bytes().chain(part.bytes()).all(|byte| byte.is_ascii_digit());
        if !digits_only || whole.len() + part.len() == 0 || part.len() > 6 {
            return None;
        }
        let dollars: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        let micros: u64 = format!("{part:0<6}").parse().ok()?;
        dollars.checked_mul(1_000_000)?.checked_add(micros).map(MicroUsd)
    }
}

impl fmt::Display for MicroUsd {
    /// Dollars, rounded up: to the cent, and below ten cents to the hundredth of a cent, because a cheap call costs less
    /// than one. The same amount has the same digits wherever it is told (docs/ENGINE.md §8.2).
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (cents, hundredths) = (self.0.div_ceil(10_000), self.0.div_ceil(100));
        if self.0 < 100_000 && !hundredths.is_multiple_of(100) {
            return write!(out, "$0.{hundredths:04}");
        }
        write!(out, "${}.{:02}", cents / 100, cents % 100)
    }
}

/// What one model call used, in tokens, as the provider reported it or as it was estimated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Input that was neither read from nor written to a cache.
    pub input: u64,
    /// Input read from the provider's cache.
    #[serde(default)]
    pub cache_read: u64,
    /// Input written to the provider's cache.
    #[serde(default)]
    pub cache_write: u64,
    /// All output that is billed, reasoning included.
    pub output: u64,
    /// The part of `output` that was reasoning, where the provider says so.
    #[serde(default)]
    pub reasoning: u64,
}

impl Usage {
    /// What the token axis counts.
    pub fn total(&self) -> u64 {
        self.prompt().saturating_add(self.output)
    }

    /// All input, from wherever it came.
    pub fn prompt(&self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_write)
    }

    /// The sum of two usages.
    pub fn plus(&self, other: &Usage) -> Usage {
        Usage {
            input: self.input.saturating_add(other.input),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_write: self.cache_write.saturating_add(other.cache_write),
            output: self.output.saturating_add(other.output),
            reasoning: self.reasoning.saturating_add(other.reasoning),
        }
    }
}

/// Prices in micro-dollars per million tokens, one for each component.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Price {
    /// Uncached input.
    pub input: u64,
    /// Input read from a cache.
    pub cache_read: u64,
    /// Input written to a cache.
    pub cache_write: u64,
    /// Output.
    pub output: u64,
}

impl Price {
    /// A model that costs nothing, such as one on this machine.
    pub const FREE: Price = Price { input: 0, cache_read: 0, cache_write: 0, output: 0 };

    /// What a usage costs: each component rounded up by itself.
    pub fn cost(&self, usage: &Usage) -> MicroUsd {
        component(usage.input, self.input)
            .plus(component(usage.cache_read, self.cache_read))
            .plus(component(usage.cache_write, self.cache_write))
            .plus(component(usage.output, self.output))
    }

    /// In dollars per million tokens.
    pub fn phrase(&self) -> String {
        let all = [
            (self.input, "in"),
            (self.cache_read, "from a cache"),
            (self.cache_write, "to a cache"),
            (self.output, "out"),
        ];
        let said: Vec<String> = all.iter().map(|(price, way)| format!("{} {way}", MicroUsd(*price))).collect();
        format!("{} per million tokens", said.join(", "))
    }

    /// The most that so many tokens in and out can cost.
    pub fn worst(&self, input: u64, output: u64) -> MicroUsd {
        let dearest = self.input.max(self.cache_read).max(self.cache_write);
        component(input, dearest).plus(component(output, self.output))
    }
}

fn component(tokens: u64, per_million: u64) -> MicroUsd {
    let cost = (u128::from(tokens) * u128::from(per_million)).div_ceil(1_000_000);
    MicroUsd(u64::try_from(cost).unwrap_or(u64::MAX))
}

/// Tokens that so many bytes of text can be at most, by the rule of three bytes a token (docs/ENGINE.md §17).
pub fn tokens_of_bytes(bytes: u64) -> u64 {
    bytes.div_ceil(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dollars_are_read_exactly() {
        let read: Vec<Option<u64>> =
            ["5", "0.25", "$1.50", ".5", "0.000001", "0.0000001", "", "1.2.3", "-1", "1e3", "99999999999999999999"]
                .iter()
                .map(|text| MicroUsd::parse_dollars(text).map(|amount| amount.0))
                .collect();
        assert_eq!(
            read,
            [
                Some(5_000_000),
                Some(250_000),
                Some(1_500_000),
                Some(500_000),
                Some(1),
                None,
                None,
                None,
                None,
                None,
                None
            ]
        );
    }

    #[test]
    fn amounts_are_shown_rounded_up() {
        let shown =
            [0, 1, 460, 50_000, 60_600, 99_900, 99_901, 100_001, 5_000_000].map(|one| MicroUsd(one).to_string());
        let expected = ["$0.00", "$0.0001", "$0.0005", "$0.05", "$0.0606", "$0.0999", "$0.10", "$0.11", "$5.00"];
        assert_eq!(shown, expected);
        let exact = [0, 1, 4_200, 10_000, 5_000_000, 12_345_678, 1_100_000].map(|amount| MicroUsd(amount).exact());
        assert_eq!(exact, ["$0.00", "$0.000001", "$0.0042", "$0.01", "$5.00", "$12.345678", "$1.10"]);
    }

    #[test]
    fn each_component_rounds_up() {
        let price = Price { input: 3_000_000, cache_read: 300_000, cache_write: 3_750_000, output: 15_000_000 };
        let usage = Usage { input: 1_000, cache_read: 10_000, cache_write: 0, output: 500, reasoning: 0 };
        assert_eq!(price.cost(&usage), MicroUsd(3_000 + 3_000 + 7_500));
        assert_eq!(price.cost(&Usage { input: 1, ..Usage::default() }), MicroUsd(3));
        assert_eq!(Price { input: 1, ..Price::FREE }.cost(&Usage { input: 1, ..Usage::default() }), MicroUsd(1));
        assert_eq!(price.worst(1_000_000, 1_000_000), MicroUsd(3_750_000 + 15_000_000));
    }
}
