//! Names of things: runs, records, calls. Ids inside a run are counters of that run, so they can be folded.

use std::fmt;

use serde::Deserialize;
use serde::Serialize;

/// The alphabet of run ids: Crockford base32 in lower case (no i, l, o, u).
pub const RUN_ID_ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// Characters in a run id. Random, so that a short prefix tells runs apart (docs/ENGINE.md §1).
pub const RUN_ID_LENGTH: usize = 12;

/// One supervised attempt at a goal: 12 random characters of Crockford base32. Made by the roof, handed in here.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RunId(String);

impl RunId {
    /// A run id from 12 bytes of chance, of which five bits each are used.
    pub fn from_entropy(bytes: [u8; RUN_ID_LENGTH]) -> Self {
        RunId(bytes.iter().map(|byte| char::from(RUN_ID_ALPHABET[usize::from(byte % 32)])).collect())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first characters, enough for a person to tell runs apart.
    pub fn short(&self) -> &str {
        &self.0[..6]
    }
}

impl TryFrom<String> for RunId {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let fits = text.len() == RUN_ID_LENGTH && text.bytes().all(|byte| RUN_ID_ALPHABET.contains(&byte));
        if fits {
            Ok(RunId(text))
        } else {
            Err(format!(
                "{text:?} is not a run id: it needs {RUN_ID_LENGTH} characters of 0-9 and a-z without i, l, o, u"
            ))
        }
    }
}

impl From<RunId> for String {
    fn from(id: RunId) -> String {
        id.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// Position of a record in the journal, dense from 1. `Seq(0)` is "before the first record".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seq(pub u64);

impl Seq {
    /// The position after this one.
    pub fn next(self) -> Self {
        Seq(self.0.saturating_add(1))
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.0)
    }
}

macro_rules! counter {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// The id after this one.
            pub fn next(self) -> Self {
                $name(self.0.saturating_add(1))
            }

            /// Reads the id as it is printed; the prefix may be left out.
            pub fn parse(text: &str) -> Option<Self> {
                text.strip_prefix($prefix).unwrap_or(text).parse().ok().map($name)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(out, concat!($prefix, "{}"), self.0)
            }
        }
    };
}

counter!(
    /// One tool call of a run, `c1`, `c2`, …, given by the engine. The provider's own id is kept beside it.
    CallId, "c"
);
counter!(
    /// One model call of a run, `m1`, `m2`, …; it may have several attempts.
    ModelCallId, "m"
);
counter!(
    /// One thing that the operator said to the agent, `i1`, `i2`, ….
    InterjectionId, "i"
);

/// Who sent a command: the screen, the command line, a headless run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClientId(pub String);

impl fmt::Display for ClientId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_ids_are_checked() {
        let id = RunId::from_entropy([7; RUN_ID_LENGTH]);
        assert_eq!(RunId::try_from(id.to_string()), Ok(id));
        assert!(RunId::try_from("short".to_string()).is_err());
        assert!(RunId::try_from("iiiiiiiiiiii".to_string()).is_err());
    }

    #[test]
    fn call_ids_read_what_they_print() {
        assert_eq!(CallId::parse("c7"), Some(CallId(7)));
        assert_eq!(CallId::parse("7"), Some(CallId(7)));
        assert_eq!(CallId::parse("x7"), None);
        assert_eq!(CallId(7).to_string(), "c7");
    }
}
