//! Orders to a run that no process holds: it is opened, the command is recorded, and it is left as it was otherwise.

use crate::cli::Order;
use crate::domain::command::Cancel;
use crate::domain::command::Command;
use crate::domain::event::OwnerMode;
use crate::domain::id::ClientId;
use crate::domain::run::Run;
use crate::domain::summary::Summary;
use crate::headless::orders;
use crate::launch::Ground;
use crate::launch::owner;
use crate::machine::Input;
use crate::machine::turn;
use crate::store::Journal;

/// Records an order. Gives the run as it stands after it. Errors when the run is held, or refuses.
pub async fn carry_out(ground: &Ground, prefix: &str, order: Order) -> anyhow::Result<Run> {
    let id = ground.home.find(prefix)?;
    let (mut run, mut journal) = ground.take(&id).await?;
    let command = command(&run, order).map_err(anyhow::Error::msg)?;
    let taken = Input::Recovered { owner: owner(OwnerMode::Records), problems: Vec::new() };
    let given = Input::Command(command, ClientId("command line".to_string()));
    let mut records = Vec::new();
    for input in [taken, given] {
        let turned = turn(&run, &input, ground.still(&run))?;
        records.extend(turned.records);
        run = turned.run;
    }
    journal.append(records).await?;
    ground.home.write_summary(&Summary::of(&run))?;
    journal.close().await;
    Ok(run)
}

fn command(run: &Run, order: Order) -> Result<Command, String> {
    match order {
        Order::Decide { call, digest, decision } => orders::decide(run, call, &digest, decision),
        Order::Answer(text) => orders::answer(run, text),
        Order::Resolve { call, resolution } => orders::resolve(run, call, resolution),
        Order::Say(text) => Ok(Command::Interject { text }),
        Order::Raise { axis, limit } => Ok(Command::Raise { axis, limit }),
        Order::Retry => Ok(Command::Retry),
        Order::Cancel => Ok(Command::Cancel(Cancel::Now)),
    }
}
