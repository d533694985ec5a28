//! Whether the model is asked once more where the work stands before the run parks at a limit (docs/ENGINE.md §4.2).

use crate::domain::budget::Axis;
use crate::domain::run::Run;
use crate::domain::status::Course;
use crate::domain::status::Phase;
use crate::policy::context;
use crate::policy::spending;

/// Whether a run that is about to park for this limit is wrapped up first: it is wanted, it was not done just now, and
/// time, tokens and money still cover one small call.
pub fn is_possible(run: &Run, axis: Axis) -> bool {
    let counts = match axis {
        Axis::Loops | Axis::ToolCalls | Axis::Tokens | Axis::Cost => true,
        Axis::Active | Axis::Deadline | Axis::ModelCalls => false,
    };
    if !counts || !run.terms.wrap_up || run.iteration.phase == Phase::WrapUp {
        return false;
    }
    let request = context::wrap_up(run);
    spending::refusal(run, &spending::worst_case(run, &request), request.max_output).is_none()
}

/// The limit that the run is being wrapped up for, where the last verdict said so and the limit still holds.
pub fn due(run: &Run) -> Option<Axis> {
    let Some(Course::WrapUp(axis)) = run.verdict.as_ref().map(|verdict| &verdict.action) else { return None };
    exhausted(run).contains(axis).then_some(*axis)
}

/// The limits that do not bear another turn after a wrap-up, the one that it was for first.
pub fn still_exhausted(run: &Run) -> Vec<Axis> {
    let mut axes = exhausted(run);
    if let Some(axis) = due(run) {
        axes.retain(|other| *other != axis);
        axes.insert(0, axis);
    }
    axes
}

/// The limits that do not bear another turn.
fn exhausted(run: &Run) -> Vec<Axis> {
    spending::exhausted(run, &spending::worst_case(run, &context::next_turn(run)))
}
