//! What a model call is charged, for every way it can end (docs/ENGINE.md §8.3). Uncertainty is charged upward.

use crate::domain::budget::Basis;
use crate::domain::budget::Charge;
use crate::domain::budget::Reservation;
use crate::domain::model::ModelFailure;
use crate::domain::model::ModelReply;
use crate::domain::money::MicroUsd;
use crate::domain::money::Price;
use crate::domain::money::Usage;
use crate::domain::money::tokens_of_bytes;

/// The charge of a call that gave a whole reply: as reported, or estimated. What is counted is charged
/// in full, also above the reservation: uncertainty is charged upward (docs/ENGINE.md §8.3).
pub fn of_reply(reply: &ModelReply, held: &Reservation, price: &Price) -> Charge {
    if let Some(usage) = reply.usage {
        return Charge { amount: price.cost(&usage), usage, basis: Basis::Reported };
    }
    let usage = counted(held, reply.received_bytes);
    Charge { amount: price.cost(&usage), usage, basis: Basis::Estimated }
}

/// The charge of a call that gave no whole reply.
pub fn of_failure(failure: &ModelFailure, held: &Reservation, price: &Price) -> Charge {
    let received = &failure.received;
    if !received.accepted {
        return Charge { amount: MicroUsd(0), usage: Usage::default(), basis: Basis::NotAccepted };
    }
    let output = tokens_of_bytes(received.bytes);
    match received.usage {
        Some(reported) => {
            let usage = Usage { output: reported.output.max(output), ..reported };
            Charge { amount: price.cost(&usage), usage, basis: Basis::Partial }
        }
        None => {
            let usage = counted(held, received.bytes);
            Charge { amount: price.cost(&usage), usage, basis: Basis::Estimated }
        }
    }
}

/// The charge of a call whose process died: nobody knows, so all that was held.
pub fn of_crash(held: &Reservation) -> Charge {
    let usage = Usage { input: held.tokens, ..Usage::default() };
    Charge { amount: held.amount, usage, basis: Basis::Unverified }
}

fn counted(held: &Reservation, received_bytes: u64) -> Usage {
    Usage { input: held.input, output: tokens_of_bytes(received_bytes), ..Usage::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::budget::ReservationId;
    use crate::domain::id::ModelCallId;
    use crate::domain::model::FailureClass;
    use crate::domain::model::Received;
    use crate::domain::model::StopReason;

    const PRICE: Price = Price { input: 1_000_000, cache_read: 100_000, cache_write: 1_000_000, output: 10_000_000 };

    fn held() -> Reservation {
        let id = ReservationId { call: ModelCallId(1), attempt: 1 };
        Reservation { id, amount: MicroUsd(5_000), tokens: 900, input: 400, bytes: 1_200 }
    }

    fn failed(accepted: bool, usage: Option<Usage>, bytes: u64) -> Charge {
        let received = Received { accepted, usage, bytes, text: String::new() };
        let class = FailureClass::StreamBroken;
        of_failure(&ModelFailure { class, message: String::new(), retry_after: None, received }, &held(), &PRICE)
    }

    #[test]
    fn each_ending_has_its_charge() {
        let usage = Some(Usage { input: 100, output: 10, ..Usage::default() });
        let reply = |usage, received_bytes| {
            let stop = StopReason::End;
            let reply = ModelReply {
                text: String::new(),
                reasoning: String::new(),
                calls: vec![],
                opaque: Vec::new(),
                stop,
                usage,
                received_bytes,
            };
            of_reply(&reply, &held(), &PRICE)
        };
        let rows = [
            (reply(usage, 0), 200, Basis::Reported),
            (reply(None, 300), 1_400, Basis::Estimated),
            (reply(None, 300_000), 1_000_400, Basis::Estimated),
            (failed(false, None, 0), 0, Basis::NotAccepted),
            (failed(true, usage, 300), 1_100, Basis::Partial),
            (failed(true, None, 300), 1_400, Basis::Estimated),
            (of_crash(&held()), 5_000, Basis::Unverified),
        ];
        for (charge, amount, basis) in rows {
            assert_eq!((charge.amount, charge.basis), (MicroUsd(amount), basis));
        }
    }
}
