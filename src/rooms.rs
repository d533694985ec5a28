//! The roof: walks between the screens of this process, the list of runs and one run at a time.

use crate::cli::Options;
use crate::domain::command::Command;
use crate::launch::Ground;
use crate::launch::Seat;

/// Opens the list of runs, and the run that is chosen there.
pub async fn browse(_ground: &Ground, _options: &Options) -> anyhow::Result<u8> {
    anyhow::bail!("the screen is not there yet")
}

/// Shows one run on the screen.
pub async fn watch(_ground: &Ground, _seat: Seat, _first: Option<Command>) -> anyhow::Result<u8> {
    anyhow::bail!("the screen is not there yet")
}
