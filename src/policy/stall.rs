//! Is the run stalled, or one short of it: the detectors, judged on the windows (docs/ENGINE.md §7.3, §7.4).

use crate::domain::limits;
use crate::domain::progress::CallResult;
use crate::domain::progress::Observation;
use crate::domain::progress::Progress;
use crate::domain::run::Run;
use crate::domain::status::Detector;
use crate::domain::status::Phase;
use crate::domain::tool::ErrorClass;
use crate::domain::windows;
use crate::domain::windows::Errors;
use crate::domain::windows::Poll;
use crate::domain::windows::Repeat;
use crate::domain::windows::Step;

/// Every detector that fires on the open iteration, each with its diagnosis, the most telling first. `after` are the
/// windows with the iteration taken in.
pub fn stalls(run: &Run, seen: &Observation, after: &Progress) -> Vec<(Detector, String)> {
    if run.iteration.phase == Phase::Replan {
        // Its record empties the windows, so only the replan itself is judged.
        let in_vain = !seen.movement.is_structural() && after.ineffective + 1 >= limits::REPLANS_INEFFECTIVE;
        let text = || format!("{} replans in a row left the plan as it was", after.ineffective.saturating_add(1));
        return in_vain.then(|| (Detector::NoProgress, text())).into_iter().collect();
    }
    let peaks = peaks(&run.progress, &seen.outcomes);
    let repeat = peaks.repeat.filter(|repeat| repeat.count >= limits::STALL_REPEATS).map(|repeat| {
        let text = format!("the same call gave the same result {} times in a row: {}", repeat.count, repeat.what.title);
        (Detector::Repeat, text)
    });
    let poll = peaks.poll.filter(|poll| poll.count >= limits::POLLS).map(|poll| {
        let text =
            format!("the same call was made {} times in a row, with changing results: {}", poll.count, poll.title);
        (Detector::Polling, text)
    });
    let cycle = cycle(&after.steps).filter(|_| !seen.outcomes.is_empty()).map(|round| {
        let titles: Vec<&str> = round.iter().map(|step| step.title.as_str()).collect();
        let text = format!(
            "the same {} iterations came {} times, one after the other, with the same results: {}",
            round.len(),
            limits::CYCLE_PERIODS,
            titles.join(", then ")
        );
        (Detector::Cycle, text)
    });
    let same_text = after.same_text.as_ref().filter(|same| same.count >= limits::SAME_TEXTS).map(|same| {
        let text = format!("the same text came {} times in a row, without a call", same.count);
        (Detector::SameText, text)
    });
    let idle = (after.idle >= limits::STALL_WINDOW).then(|| {
        let idle = after.idle;
        let text = format!("{idle} iterations in a row moved no todo forward, wrote nothing new and found nothing new");
        (Detector::NoProgress, text)
    });
    let unmoved = (after.unmoved >= limits::UNMOVED).then(|| {
        let text = format!("{} iterations in a row moved no todo and wrote nothing new", after.unmoved);
        (Detector::Unmoved, text)
    });
    [repeat, poll, cycle, same_text, idle, unmoved].into_iter().flatten().collect()
}

/// The class of error that blocks the run: it came too often in a row, by what the system said. Only the operator can
/// help, so no replan follows.
pub fn blocked(run: &Run, seen: &Observation) -> Option<ErrorClass> {
    peaks(&run.progress, &seen.outcomes)
        .errors
        .filter(|errors| errors.count >= limits::ERRORS_OF_A_CLASS)
        .map(|errors| errors.class)
}

/// The detectors that are one short of firing, each with the sentence that tells the model.
pub fn warnings(run: &Run, seen: &Observation, after: &Progress) -> Vec<(Detector, String)> {
    let peaks = peaks(&run.progress, &seen.outcomes);
    let repeat = peaks.repeat.filter(|repeat| repeat.count + 1 == limits::STALL_REPEATS).map(|repeat| {
        let text = format!(
            "You made the same call with the same result {} times in a row: {}. Do something else.",
            repeat.count, repeat.what.title
        );
        (Detector::Repeat, text)
    });
    let poll = peaks.poll.filter(|poll| poll.count + 1 == limits::POLLS).map(|poll| {
        let text = format!(
            "You made the same call {} times in a row: {}. Once more counts as a stall; do something else meanwhile.",
            poll.count, poll.title
        );
        (Detector::Polling, text)
    });
    let idle = (after.idle + 1 == limits::STALL_WINDOW)
        .then(|| (Detector::NoProgress, format!("The last {} iterations moved nothing forward.", after.idle)));
    let unmoved = (after.unmoved + 1 == limits::UNMOVED).then(|| {
        let text = format!("The last {} iterations moved no todo and wrote nothing new.", after.unmoved);
        (Detector::Unmoved, text)
    });
    let said = repeat.is_some();
    // The repeated call says more than the number of iterations.
    let idle = idle.filter(|_| !said);
    [repeat, poll, idle, unmoved].into_iter().flatten().collect()
}

/// The most that the rows of calls came to within an iteration.
struct Peaks {
    repeat: Option<Repeat>,
    poll: Option<Poll>,
    errors: Option<Errors>,
}

/// Nothing where the iteration made no work call: a row that only stands from before does not fire again.
fn peaks(before: &Progress, outcomes: &[CallResult]) -> Peaks {
    let mut peaks = Peaks { repeat: None, poll: None, errors: None };
    let (mut repeat, mut poll, mut errors) = (before.repeat.clone(), before.poll.clone(), before.errors);
    for outcome in outcomes {
        let (repeated, polled) = (windows::repeat(repeat, outcome), windows::poll(poll, outcome));
        errors = windows::errors(errors, outcome);
        let higher = |peak: Option<u32>, now: u32| peak.is_none_or(|peak| now > peak);
        if higher(peaks.repeat.as_ref().map(|peak| peak.count), repeated.count) {
            peaks.repeat = Some(repeated.clone());
        }
        if higher(peaks.poll.as_ref().map(|peak| peak.count), polled.count) {
            peaks.poll = Some(polled.clone());
        }
        if errors.is_some_and(|now| higher(peaks.errors.map(|peak| peak.count), now.count)) {
            peaks.errors = errors;
        }
        (repeat, poll) = (Some(repeated), Some(polled));
    }
    peaks
}

/// One round of the cycle that the last iterations went, the shortest first. Iterations that are all alike are no
/// cycle: that is for R and N to see.
fn cycle(steps: &[Step]) -> Option<&[Step]> {
    (2..=limits::CYCLE_PERIOD_MAX).find_map(|period| {
        let last = steps.get(steps.len().checked_sub(period * limits::CYCLE_PERIODS)?..)?;
        let (round, rest) = last.split_at_checked(period)?;
        let goes_round = rest.chunks(period).all(|chunk| same(chunk, round));
        let differs = round.iter().any(|step| round.first().is_some_and(|first| first.signature != step.signature));
        (goes_round && differs).then_some(round)
    })
}

fn same(one: &[Step], other: &[Step]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| one.signature == other.signature)
}
