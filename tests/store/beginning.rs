//! How a run begins.

use tiller::domain::budget::Limits;
use tiller::domain::event::Event;
use tiller::domain::event::Record;
use tiller::domain::model::Dialect;
use tiller::domain::model::ModelSpec;
use tiller::domain::terms::Goal;
use tiller::domain::terms::Terms;
use tiller::domain::trust::Trust;

use crate::store::records::record;

/// The first record of a run.
pub(crate) fn created(goal: &str) -> Record {
    let model = ModelSpec {
        name: "test/model".to_string(),
        dialect: Dialect::Scripted,
        address: "script.json".to_string(),
        model: "model".to_string(),
        key_variable: None,
        window: 1_000,
        max_output: 100,
        most_output: None,
        price: None,
    };
    let terms = Terms {
        goal: Goal::try_from(goal.to_string()).unwrap(),
        workspace: "/work".to_string(),
        limits: Limits::default(),
        checks: Vec::new(),
        wrap_up: true,
        model,
        tools: Vec::new(),
        instructions: String::new(),
        guide: None,
        rehearsal: false,
        trust: Trust::Ask,
        keep_full_trust: false,
    };
    record(1, Event::RunCreated { terms: Box::new(terms) })
}
