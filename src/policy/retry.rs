//! What follows a failed model call: try again at a time, park, or give up (docs/ENGINE.md §14.1).

use crate::domain::limits;
use crate::domain::model::FailureClass;
use crate::domain::run::Run;
use crate::domain::run::Trouble;
use crate::domain::status::Failure;
use crate::domain::status::ParkReason;
use crate::domain::text::sha256_hex;
use crate::domain::time::Now;
use crate::domain::time::Span;
use crate::domain::time::Timestamp;

/// What follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Another attempt, not before this time.
    Retry(Timestamp),
    /// Stop with a reason.
    Park(ParkReason),
    /// The run can't go on.
    Fail(Failure),
}

/// What follows this trouble, given how often the iteration met one.
pub fn after(run: &Run, trouble: &Trouble, now: Now) -> Next {
    let asked = trouble.retry_after.unwrap_or_default();
    // Only what passes with time is waited for: an account that is empty is not filled by waiting.
    let passes = matches!(trouble.class, FailureClass::RateLimited | FailureClass::Overloaded);
    if passes && asked > limits::RETRY_AFTER_MAX {
        return Next::Park(ParkReason::RateLimited { until: now.at.plus(asked) });
    }
    if retries_left(run, trouble.class) {
        return Next::Retry(now.at.plus(backoff(run).max(asked)));
    }
    let provider_wait = ParkReason::ProviderWait { until: now.at.plus(limits::PROVIDER_WAIT) };
    match trouble.class {
        FailureClass::NoServer => Next::Park(ParkReason::NotReady),
        FailureClass::MissingCredentials | FailureClass::Auth => Next::Park(ParkReason::Credentials),
        FailureClass::Billing => Next::Park(ParkReason::Billing),
        FailureClass::Permission => Next::Park(ParkReason::Permission),
        // Some models take no temperature; then there was no other way to ask again.
        FailureClass::ModelConfig if run.iteration.degenerate > 0 => Next::Park(ParkReason::ModelOutput),
        FailureClass::ModelConfig => Next::Park(ParkReason::ModelConfig),
        FailureClass::ContextLength | FailureClass::TooLarge => Next::Park(ParkReason::ContextExhausted),
        FailureClass::BadRequest => Next::Fail(Failure::Protocol),
        FailureClass::Endless | FailureClass::Degenerate => Next::Park(ParkReason::ModelOutput),
        FailureClass::RateLimited
        | FailureClass::Overloaded
        | FailureClass::Network
        | FailureClass::StreamStalled
        | FailureClass::StreamBroken
        | FailureClass::Cancelled => Next::Park(provider_wait),
        FailureClass::Unknown => Next::Park(ParkReason::Unexplained),
    }
}

/// Whether a failed model call is tried again, given how often it failed in a row: the limits count attempts.
fn retries_left(run: &Run, class: FailureClass) -> bool {
    let most = match class {
        FailureClass::RateLimited => limits::RETRIES_RATE,
        FailureClass::Overloaded | FailureClass::Network => limits::RETRIES_OVERLOADED,
        FailureClass::StreamStalled | FailureClass::StreamBroken => limits::RETRIES_STREAM,
        FailureClass::NoServer => limits::RETRIES_NO_SERVER,
        FailureClass::Unknown | FailureClass::BadRequest => limits::RETRIES_ONCE,
        FailureClass::Degenerate => return run.iteration.degenerate <= limits::DEGENERATE_RETRIES,
        FailureClass::MissingCredentials
        | FailureClass::Auth
        | FailureClass::Billing
        | FailureClass::Permission
        | FailureClass::ModelConfig
        | FailureClass::ContextLength
        | FailureClass::TooLarge
        | FailureClass::Endless
        | FailureClass::Cancelled => 0,
    };
    run.iteration.failures < most
}

/// Anything up to a longest wait that is doubled each time, so that many runs do not knock at once. The chance is
/// drawn from the call's name: the ground floors know no other.
fn backoff(run: &Run) -> Span {
    let doublings = run.iteration.failures.saturating_sub(1).min(16);
    let whole = limits::BACKOFF_FIRST.0.saturating_mul(1 << doublings).min(limits::BACKOFF_MAX.0);
    let name = format!("{} {:?}", run.id, run.iteration.model_call);
    let draw = u64::from_str_radix(&sha256_hex(name.as_bytes())[..8], 16).unwrap_or(0);
    Span(draw % (whole + 1))
}
