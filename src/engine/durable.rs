//! Making records durable, for the driver and for a process that records a single command.

use std::time::Duration;

use crate::domain::event::Record;
use crate::domain::limits;
use crate::engine::fault;
use crate::engine::fault::Side;
use crate::store::Journal;
use crate::store::StoreError;

/// Makes the records durable. A failing disk is tried again for a moment: what a failed write left is taken back before
/// the next one. Errors with what the last one said; then they may be there, or not.
pub async fn append(journal: &mut impl Journal, records: &[Record]) -> Result<(), StoreError> {
    if records.is_empty() {
        return Ok(());
    }
    let mut failures = 0;
    loop {
        fault::batch(Side::Before, records);
        match journal.append(records.to_vec()).await {
            Ok(()) => {
                fault::batch(Side::After, records);
                return Ok(());
            }
            Err(error) => {
                failures += 1;
                tracing::warn!(%error, failures, "the journal could not be written");
                if failures >= limits::STORE_RETRIES {
                    return Err(error);
                }
                tokio::time::sleep(Duration::from_millis(limits::STORE_RETRY_WAIT.0)).await;
            }
        }
    }
}
