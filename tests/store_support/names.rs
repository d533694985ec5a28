//! Names of runs.

use tiller::domain::id::RUN_ID_LENGTH;
use tiller::domain::id::RunId;

/// A run id that differs by number.
pub(crate) fn run_id(number: u8) -> RunId {
    RunId::from_entropy([number; RUN_ID_LENGTH])
}
