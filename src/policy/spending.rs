//! What a request can cost at worst, and whether the budget bears it (docs/ENGINE.md §8.3).

use crate::domain::budget::Axis;
use crate::domain::budget::Limit;
use crate::domain::budget::Reservation;
use crate::domain::budget::ReservationId;
use crate::domain::deadline::distance;
use crate::domain::event::Event;
use crate::domain::model::ModelRequest;
use crate::domain::money::tokens_of_bytes;
use crate::domain::pricing::Pricing;
use crate::domain::run::Run;
use crate::domain::status::ParkReason;
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

/// The line to type that raises a limit just enough.
pub fn raising(run: &Run, axis: Axis) -> String {
    if axis == Axis::Deadline {
        return format!("tiller raise {} deadline 1h", run.id.short());
    }
    let least = axis.show(needed(run, axis));
    format!("tiller raise {} {} {}", run.id.short(), axis.word(), least.trim_start_matches('$'))
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
