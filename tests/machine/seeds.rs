//! A batch over its cap, whatever comes to its end first.

use tiller::domain::id::CallId;
use tiller::domain::message::Message;
use tiller::domain::tool::OutcomeKind;

use crate::machine::stage::Stage;

/// The next number of a small generator of chance.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

/// Three calls are left and six are asked for: exactly the first three run, in whatever order they end, and the
/// results stand in the order of the reply.
#[test]
fn s_20_the_batch_over_the_cap_under_a_hundred_seeds() {
    for seed in 0..100_u64 {
        let mut chance = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut stage = Stage::new("tool-calls=3");
        for line in ["own", "reply todos a", "reply read a | read b | read c | read d | read e | read f"] {
            stage.take(line);
        }
        let told = stage.take("prepared");
        let count = |what: &str| told.iter().filter(|line| line.starts_with(what)).count();
        assert_eq!((count("started"), count("! run"), count("finished")), (3, 3, 3), "{told:?}");
        let mut running: Vec<CallId> = stage.run.running_calls().map(|call| call.id).collect();
        assert_eq!(running, [CallId(2), CallId(3), CallId(4)]);
        while !running.is_empty() {
            let place = usize::try_from(next(&mut chance)).unwrap() % running.len();
            let call = running.swap_remove(place);
            stage.take(&format!("done {call} text of {call}"));
        }
        let results: Vec<(CallId, bool)> =
            stage.run.transcript.entries().filter_map(|entry| result(&entry.message)).collect();
        let wanted: Vec<(CallId, bool)> = (2..=7).map(|id| (CallId(id), id <= 4)).collect();
        assert_eq!(results, wanted, "seed {seed}");
        assert_eq!(stage.run.status.phrase(), "parked: budget (tool-calls)");
    }
}

/// The call of a result of the second iteration, and whether it ran.
fn result(message: &Message) -> Option<(CallId, bool)> {
    match message {
        Message::ToolResult { call, kind, .. } if *call > CallId(1) => Some((*call, *kind == OutcomeKind::Done)),
        _ => None,
    }
}
