//! Orders to a run that no process holds: it is opened, the command is recorded, and it is left as it was otherwise.

use std::io::BufRead;
use std::io::IsTerminal;
use std::io::Read;
use std::io::Write;

use crate::cli::Order;
use crate::cli::closing::OnClaim;
use crate::cli::deciding::EditText;
use crate::domain::approval::Decision;
use crate::domain::approval::Resolution;
use crate::domain::budget::Axis;
use crate::domain::command::Cancel;
use crate::domain::command::Command;
use crate::domain::command::Refusal;
use crate::domain::control;
use crate::domain::event::OwnerMode;
use crate::domain::id::CallId;
use crate::domain::id::RunId;
use crate::domain::limits;
use crate::domain::money::MicroUsd;
use crate::domain::rule::RuleDraft;
use crate::domain::run::Run;
use crate::domain::time::Timestamp;
use crate::domain::tool::ToolCall;
use crate::engine::rulebook::Consulted;
use crate::headless::exit::Obstacle;
use crate::headless::lines::limit_phrase;
use crate::headless::lines::plan_lines;
use crate::headless::orders;
use crate::headless::text::title;
use crate::held;
use crate::held::Held;
use crate::launch::Ground;
use crate::launch::owner;
use crate::machine::Input;
use crate::machine::turn;
use crate::policy::grave;
use crate::policy::offering;

/// Longest line that is read as a code.
const CODE_LINE_BYTES: u64 = 256;

/// Records an order. Gives the run as it stands after it. Errors when the run is held, or refuses.
pub async fn carry_out(ground: &Ground, prefix: &str, order: Order) -> anyhow::Result<Run> {
    let id = ground.home.find(prefix)?;
    let (run, journal) = ground.take(&id).await?;
    let mut held = Held::new(ground, run, journal);
    let recorded = record(ground, &mut held, order).await;
    // Also where it is refused: a process that died may have left the ledger behind, and this run may have ended.
    let run = held.let_go().await;
    recorded.map(|()| run).map_err(|error| naming(error, &id))
}

/// What an order made of the run, before how the run is left.
pub fn recorded(run: &Run, order: &Order) -> String {
    let limit = |axis: Axis| {
        let used =
            if axis == Axis::Deadline { String::new() } else { format!(", {} used", axis.show(run.pool.used(axis))) };
        format!("the limit of {} is now {}{used}", axis.word(), limit_phrase(axis, run.pool.limits().on(axis)))
    };
    let tool = |call: &CallId| run.calls.get(call).map_or(String::new(), |call| title(&call.tool));
    let detail = match order {
        Order::Raise { axis, .. } => limit(*axis),
        Order::Deadline(_) => limit(Axis::Deadline),
        Order::Plan(_) => return format!("recorded\n{}", plan_lines(&run.plan)),
        Order::Price(Some(price)) => {
            format!("a million tokens cost {} in, {} out", MicroUsd(price.input), MicroUsd(price.output))
        }
        Order::Price(None) => "money is not counted in this run, tokens are".to_string(),
        Order::Correct { id, amount } => {
            let before =
                run.pool.charge(*id).map_or(String::new(), |charge| format!(", not {}", charge.amount.exact()));
            format!("{id} counts as {}{before}", amount.exact())
        }
        Order::Trust(trust) => format!("trust is now {trust}: {}", trust.meaning()),
        Order::Say { .. } => {
            let Some(id) = run.interjections.last().map(|said| said.id) else { return "recorded · ".to_string() };
            let short = run.id.short();
            return format!("recorded as {id}, and `tiller withdraw {short} {id}` takes it back until it is told · ");
        }
        Order::Decide { call, decision: Decision::AllowRun, .. } => {
            format!("{call} is allowed, and every call like it byte for byte, until the run ends")
        }
        Order::Decide { call, decision: Decision::AllowTool, .. } => {
            let tool = tool(call);
            format!("{call} is allowed, and every call of {tool} that need not be asked about, until the run ends")
        }
        Order::Rule { call, .. } => {
            return format!("{}{call} is allowed, and so is every call like it from now on · ", made(run, order));
        }
        Order::Decide { call, decision: Decision::Deny(_), .. } => {
            format!("{call} is denied, and every call like it byte for byte, until the run ends")
        }
        Order::Decide { call, decision: Decision::AllowUnboxed, .. } => {
            format!("{call} is allowed once, outside of the box, with your full rights")
        }
        Order::Answer { call, .. } => match answered(run, *call) {
            Some(call) => {
                format!("{} is answered: {}", call.id, title(&orders::question(call)))
            }
            None => return "recorded · ".to_string(),
        },
        Order::Cancel => format!("what was done stays as it is; `tiller show {}` lists it", run.id.short()),
        Order::Coded(_, order) => return recorded(run, order),
        Order::Decide { decision: Decision::AllowOnce | Decision::AllowRule(_) | Decision::Edit(_), .. }
        | Order::Edit { .. }
        | Order::AllowAll(_)
        | Order::Resolve { .. }
        | Order::Confirm(_)
        | Order::Accept
        | Order::Close
        | Order::Withdraw(_)
        | Order::Retry => return "recorded · ".to_string(),
    };
    format!("recorded: {detail} · ")
}

/// The question that was answered: this one, or the one that was answered last.
fn answered(run: &Run, call: Option<CallId>) -> Option<&ToolCall> {
    let is_it = |one: &&ToolCall| one.tool == control::ASK_OPERATOR && one.is_closed();
    match call {
        Some(call) => run.calls.get(&call),
        None => run.ordered_calls().filter(is_it).max_by_key(|one| one.since),
    }
}

/// The rule that an order made, in a line of its own, and the line that takes it back.
fn made(run: &Run, order: &Order) -> String {
    let Order::Rule { call, open, everywhere, .. } = order else { return String::new() };
    let draft = run.calls.get(call).and_then(|call| offering::offer(run, call, *open).ok());
    draft.map_or(String::new(), |draft| {
        let workspace = draft.workspace.clone().filter(|_| !everywhere);
        let draft = RuleDraft { workspace, ..draft };
        let id = draft.id();
        format!("made rule {id}: {}\nto take it back: tiller rules remove {id}\nrecorded: ", title(&draft.to_string()))
    })
}

/// An error in which the lines to type name the run.
pub fn naming(error: anyhow::Error, id: &RunId) -> anyhow::Error {
    match error.downcast_ref::<Refusal>() {
        Some(
            refusal @ (Refusal::Ended(_) | Refusal::EndedUnsaid(_) | Refusal::NeedsCode(..) | Refusal::WrongCode(..)),
        ) => Obstacle::Refused(refusal.of(id)).into(),
        Some(_) | None => error,
    }
}

async fn record(ground: &Ground, held: &mut Held<'_>, order: Order) -> anyhow::Result<()> {
    let mut run = held.run().clone();
    let command = with_code(&run, command(&run, order, ground.clock.now())?)?;
    let redactor = ground.redactor(run.terms.model.key_variable.as_deref())?;
    let taken = Input::Recovered { owner: owner(OwnerMode::Records), lacks: Vec::new() };
    let given = Input::Command(command, held::client());
    let mut records = Vec::new();
    let rules = Consulted::new(Some(ground.rulebook()), &run.terms.workspace, ground.clock.clone());
    for input in [taken, given].map(|input| redactor.input(input)) {
        let turned = turn(&run, &input, ground.still(&run))?;
        rules.keep(&run, &input).await?;
        records.extend(turned.records);
        run = turned.run;
    }
    held.record(run, records).await
}

fn command(run: &Run, order: Order, now: Timestamp) -> anyhow::Result<Command> {
    let fitting = |found: Result<Command, String>| found.map_err(|why| Obstacle::Refused(why).into());
    match order {
        Order::Decide { call, digest, decision } => fitting(orders::decide(run, call, &digest, decision)),
        Order::Edit { call, digest, arguments } => {
            let text = edit_text(arguments).map_err(anyhow::Error::msg)?;
            fitting(orders::decide(run, call, &digest, Decision::Edit(text)))
        }
        Order::Rule { call, digest, open, everywhere } => fitting(orders::rule(run, call, &digest, open, everywhere)),
        Order::Coded(code, order) => Ok(orders::coded(command(run, *order, now)?, code)),
        Order::AllowAll(calls) => fitting(orders::allow_all(run, &calls)),
        Order::Trust(trust) => Ok(Command::SetTrust(trust)),
        Order::Answer { call, text } => fitting(orders::answer(run, call, text)),
        Order::Resolve { call, resolution } => fitting(orders::resolve(run, call, resolution)),
        Order::Confirm(OnClaim { digest, confirmed, text }) => fitting(orders::confirm(run, &digest, confirmed, text)),
        Order::Accept => Ok(Command::Accept),
        Order::Close => Ok(Command::Close),
        Order::Say { text, policy } => Ok(Command::Interject { text, policy }),
        Order::Withdraw(id) => Ok(Command::Withdraw(id)),
        Order::Raise { axis, limit } => Ok(Command::Raise { axis, limit }),
        Order::Deadline(deadline) => {
            let late = |problem| anyhow::anyhow!("{problem}; the limit was not changed");
            let limit = deadline.limit(now).map_err(late)?;
            Ok(Command::Raise { axis: Axis::Deadline, limit })
        }
        Order::Retry => Ok(Command::Retry),
        Order::Plan(edit) => Ok(Command::EditPlan(edit)),
        Order::Price(price) => Ok(Command::Price { price }),
        Order::Correct { id, amount } => Ok(Command::Correct { id, amount }),
        Order::Cancel => Ok(Command::Cancel(Cancel::Now)),
    }
}

/// Leave for a grave call, with its code: asked for where a person sits at both ends. Elsewhere the run refuses it.
fn with_code(run: &Run, leave: Command) -> anyhow::Result<Command> {
    let call = match &leave {
        Command::Decide { call, decision: Decision::AllowOnce | Decision::AllowUnboxed, .. }
        | Command::Resolve { call, resolution: Resolution::RunAgain } => run.calls.get(call),
        _ => None,
    };
    let leaves_box = matches!(&leave, Command::Decide { decision: Decision::AllowUnboxed, .. });
    let asked = call.and_then(|call| {
        let (why, code) = if leaves_box {
            (grave::UNBOXED.to_string(), grave::code_unboxed(run, call)?)
        } else {
            (grave::of(call)?, grave::code(run, call)?)
        };
        Some((call.id, why, code))
    });
    let Some((call, why, code)) = asked.filter(|_| std::io::stdin().is_terminal() && std::io::stderr().is_terminal())
    else {
        return Ok(leave);
    };
    let mut out = std::io::stderr();
    write!(out, "{call} is grave: {why}.\nType {code} to allow it; anything else decides nothing: ")?;
    out.flush()?;
    let mut line = String::new();
    std::io::stdin().lock().take(CODE_LINE_BYTES).read_line(&mut line)?;
    Ok(orders::coded(leave, line.trim().to_string()))
}

/// Changed arguments, from where they are.
fn edit_text(arguments: EditText) -> Result<String, String> {
    let path = match arguments {
        EditText::Typed(text) => return Ok(text),
        EditText::File(path) => path,
    };
    let fail = |why: String| {
        format!("the changed arguments can't be read from {} ({why}); nothing was decided", path.display())
    };
    let found = path.metadata().map_err(|error| fail(error.to_string()))?;
    if !found.is_file() || found.len() > limits::ARGUMENTS_MAX_BYTES as u64 {
        return Err(fail("it is no file, or too long".to_string()));
    }
    let text = std::fs::read_to_string(&path).map_err(|error| fail(error.to_string()))?;
    Ok(text.trim().to_string())
}
