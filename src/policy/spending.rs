//! What a request can cost at worst, and whether the budget bears it (docs/ENGINE.md §8.3).

use crate::domain::budget::Axis;
use crate::domain::budget::Limit;
use crate::domain::budget::Reservation;
use crate::domain::budget::ReservationId;
use crate::domain::deadline::distance;
use crate::domain::event::Event;
use crate::domain::model::ModelRequest;
use crate::domain::money::MicroUsd;
use crate::domain::money::tokens_of_bytes;
use crate::domain::pricing::Pricing;
use crate::domain::run::Run;
use crate::domain::status::ParkReason;
use crate::domain::status::Status;
use crate::domain::status::Warning;
use crate::domain::time::Timestamp;
use crate::policy::context;
use crate::policy::judge;

/// The worst case of a request.
pub fn worst_case(run: &Run, request: &ModelRequest) -> Reservation {
    let bytes = request.bytes();
    let input = estimate_input(run, bytes);
    let bound = input.saturating_mul(run.estimate.factor_percent).div_ceil(100);
    let price = run.pricing.price();
    Reservation {
        id: ReservationId { call: request.call, attempt: request.attempt },
        amount: price.worst(bound, request.max_output),
        tokens: bound.saturating_add(request.max_output),
        input,
        bytes,
    }
}

/// Why the request can't be made now, if it can't.
pub fn refusal(run: &Run, worst: &Reservation, max_output: u64) -> Option<ParkReason> {
    if run.pricing == Pricing::Unknown {
        return Some(ParkReason::PriceUnknown);
    }
    let exhausted =
        [Axis::Active, Axis::Deadline, Axis::ModelCalls].into_iter().find(|axis| run.pool.is_exhausted(*axis));
    if let Some(axis) = exhausted.or(run.pool.refuses(worst.amount, worst.tokens).next()) {
        return Some(ParkReason::Budget(axis));
    }
    let window = run.terms.model.window;
    (worst.input.saturating_add(max_output) > window).then_some(ParkReason::ContextExhausted)
}

/// The request that the run makes next, as far as it can be told: of a judge where a check waits for one.
pub fn due(run: &Run) -> ModelRequest {
    let is_answered = !run.iteration.is_open || run.iteration.reply.is_some();
    let turn = || if is_answered { context::next_turn(run) } else { context::assemble(run) };
    judge::due(run).unwrap_or_else(turn)
}

/// The least limit on an axis that bears one more iteration.
pub fn needed(run: &Run, axis: Axis) -> u64 {
    let used = run.pool.used(axis);
    let worst = worst_case(run, &due(run));
    match axis {
        Axis::Cost => used.saturating_add(worst.amount.0.max(1)),
        Axis::Tokens => used.saturating_add(worst.tokens.max(1)),
        // Whole minutes, as a person writes them.
        Axis::Active => (used / 60_000 + 1) * 60_000,
        Axis::Deadline | Axis::Loops | Axis::ModelCalls | Axis::ToolCalls => used.saturating_add(1),
    }
}

/// Whether the limit on an axis bears one more iteration: so it may where a run is parked for it and it was raised.
pub fn bears_more(run: &Run, axis: Axis) -> bool {
    run.pool.limits().on(axis).bears(needed(run, axis))
}

/// The line to type that raises a limit just enough.
pub fn raising(run: &Run, axis: Axis) -> String {
    if axis == Axis::Deadline {
        return format!("tiller raise {} deadline 1h", run.id.short());
    }
    let least = least(run, axis);
    format!("tiller raise {} {} {}", run.id.short(), axis.word(), least.trim_start_matches('$'))
}

/// The least limit that bears one more iteration, as a person writes it; of money, to the micro-dollar.
fn least(run: &Run, axis: Axis) -> String {
    let needed = needed(run, axis);
    if axis == Axis::Cost { MicroUsd(needed).exact() } else { axis.show(needed) }
}

/// What the next model call may need at worst, what is left, and the least limit that bears it, where a run is parked
/// because its limit does not, with the end of the sentence. Amounts that are compared are exact.
pub fn shortfall(run: &Run) -> Option<String> {
    let Status::Parked(ParkReason::Budget(axis)) = &run.status else { return None };
    let worst = worst_case(run, &due(run));
    if !run.pool.refuses(worst.amount, worst.tokens).any(|refused| refused == *axis) {
        return None;
    }
    let left = run.pool.limits().on(*axis).left(run.pool.used(*axis))?;
    let (most, left) = match axis {
        Axis::Cost => (format!("cost up to {}", worst.amount.exact()), MicroUsd(left).exact()),
        Axis::Tokens => (format!("use up to {} tokens", worst.tokens), left.to_string()),
        Axis::Active | Axis::Deadline | Axis::Loops | Axis::ModelCalls | Axis::ToolCalls => return None,
    };
    let (word, least) = (axis.word(), least(run, *axis));
    Some(format!("the next model call may {most}, {left} is left; raise {word} to {least} or more, then resume"))
}

/// What can be done about the reason for which the run is parked, in one line, with the figures that it rests on.
pub fn remedy(run: &Run) -> Option<String> {
    if let Status::Parked(ParkReason::Budget(axis)) = run.status
        && bears_more(run, axis)
    {
        return Some(format!("the limit of {} bears more now; resume goes on", axis.word()));
    }
    shortfall(run).or_else(|| run.remedy())
}

/// Every axis that does not bear another iteration, in the order of `Axis::ALL`. `worst` is that of its request.
pub fn exhausted(run: &Run, worst: &Reservation) -> Vec<Axis> {
    let refused: Vec<Axis> = run.pool.refuses(worst.amount, worst.tokens).collect();
    Axis::ALL.into_iter().filter(|axis| run.pool.is_exhausted(*axis) || refused.contains(axis)).collect()
}

/// How much is used of how much, where there is a limit. A deadline counts from the creation of the run.
pub fn share(run: &Run, axis: Axis) -> Option<(u64, u64)> {
    let Limit::At(most) = run.pool.limits().on(axis) else { return None };
    let from = if axis == Axis::Deadline { run.created.0 } else { 0 };
    Some((run.pool.used(axis).saturating_sub(from), most.saturating_sub(from)))
}

/// A limit of which four fifths are used, once for each axis and limit (docs/ENGINE.md §8.1).
pub fn warning(run: &Run) -> Option<Event> {
    let near = |axis: &Axis| match share(run, *axis) {
        Some((used, most)) => used >= most - most / 5 && !run.pool.is_exhausted(*axis),
        None => false,
    };
    let is_new = |axis: &Axis| !run.warnings.contains_key(&Warning::Budget(*axis));
    let axis = Axis::ALL.into_iter().filter(near).find(is_new)?;
    let Limit::At(most) = run.pool.limits().on(axis) else { return None };
    let text = match axis {
        Axis::Deadline => format!("the deadline is {}", distance(Timestamp(most), run.at)),
        Axis::Active | Axis::Loops | Axis::ModelCalls | Axis::ToolCalls | Axis::Tokens | Axis::Cost => {
            format!("{} of {} are used", axis.show(run.pool.used(axis)), axis.show(most))
        }
    };
    Some(Event::Warned { what: Warning::Budget(axis), text })
}

/// Input tokens of a request of so many bytes: the last report plus what was added since, or three bytes a token.
pub fn estimate_input(run: &Run, bytes: u64) -> u64 {
    match run.estimate.bytes {
        0 => tokens_of_bytes(bytes),
        // Where something was left out, what remains has its share.
        known if bytes < known => {
            u64::try_from((u128::from(run.estimate.input) * u128::from(bytes)).div_ceil(u128::from(known)))
                .unwrap_or(u64::MAX)
        }
        known => run.estimate.input.saturating_add(tokens_of_bytes(bytes - known)),
    }
}
