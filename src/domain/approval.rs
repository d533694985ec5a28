//! Decisions about calls, and who made them. A rule is never taken for the operator.

use serde::Deserialize;
use serde::Serialize;

use crate::domain::id::ClientId;
use crate::domain::rule::RuleDraft;

/// Who decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// The person, through this client.
    Operator(ClientId),
    /// A rule of this name; built-in rules are named in `policy/permission.rs`.
    Rule(String),
}

/// Where a record was written. What one from elsewhere says of the operator, anybody can have written
/// (docs/JOURNAL.md, out and in).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Here.
    #[default]
    Here,
    /// Before the run was brought here.
    Elsewhere,
}

impl Origin {
    /// Whether it is here, for what is not written of most.
    pub fn is_here(&self) -> bool {
        *self == Origin::Here
    }
}

/// What is decided about a call (docs/ENGINE.md §9.3).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// This call may run.
    AllowOnce,
    /// This call, and any with the same tool and the same exact arguments until the run ends.
    AllowRun,
    /// This call, and every later one of the same tool until the run ends, except what is always asked about.
    AllowTool,
    /// This call, and from now on every one that this standing rule covers. The rule is kept before the decision counts.
    AllowRule(RuleDraft),
    /// This call may run, outside of the box, with the operator's full rights; no later one.
    AllowUnboxed,
    /// This call with these arguments in the place of the model's. It is looked at and judged anew.
    Edit(String),
    /// It may not; the text, possibly empty, reaches the model.
    Deny(String),
}

/// What the operator knows of a call whose outcome is unknown (docs/ENGINE.md §10.8).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resolution {
    /// It happened; the text is its result, possibly empty.
    Happened(String),
    /// It did not happen.
    NotHappened,
    /// Run it again; this is a new approval.
    RunAgain,
    /// Go on without knowing.
    Skip,
}
