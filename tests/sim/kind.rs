//! What sort of life a seed gives: how much room, whose money, how much trust.

use crate::sim::Chance;
use crate::sim::speaker;
use tiller::domain::budget::Limit;
use tiller::domain::budget::Limits;
use tiller::domain::model::Dialect;
use tiller::domain::model::ModelSpec;
use tiller::domain::terms::Check;
use tiller::domain::terms::Goal;
use tiller::domain::terms::Terms;
use tiller::domain::tool::EffectClass;
use tiller::domain::tool::Noise;
use tiller::domain::tool::ToolSpec;
use tiller::domain::trust::Trust;

/// What sort of life it is, by its seed.
pub struct Kind {
    /// A window so small that work is left out and summarised, and results that fill it.
    pub is_narrow: bool,
    /// Nobody knows what the model costs.
    pub is_priceless: bool,
    pub trust: Trust,
}

impl Kind {
    pub fn of(seed: u64) -> Kind {
        let mut chance = Chance::new(seed ^ 0xC0FFEE);
        let (is_narrow, is_priceless) = (chance.percent(30), chance.percent(15));
        let trust = if chance.percent(60) { Trust::Ask } else { Trust::ALL[chance.below(4) as usize] };
        Kind { is_narrow, is_priceless, trust }
    }
}

pub fn terms(loops: u64, kind: &Kind) -> Terms {
    let tool = |name: &str, effect| ToolSpec {
        name: name.to_string(),
        description: String::new(),
        schema: serde_json::Value::Null,
        effect,
        noise: Noise::default(),
    };
    let limits =
        Limits { cost: Limit::At(2_000_000), loops: Limit::At(loops), tool_calls: Limit::At(40), ..Limits::default() };
    Terms {
        goal: Goal::try_from("make it right".to_string()).unwrap(),
        workspace: "/w".to_string(),
        limits,
        checks: vec![
            Check::Command("is it right".to_string()),
            Check::ModelJudge("is it good".to_string()),
            Check::OperatorConfirm(String::new()),
        ],
        wrap_up: true,
        model: ModelSpec {
            name: "sim/sim".to_string(),
            dialect: Dialect::Scripted,
            address: String::new(),
            model: "sim".to_string(),
            key_variable: None,
            window: if kind.is_narrow { 9_000 } else { 200_000 },
            max_output: if kind.is_narrow { 1_000 } else { 2_000 },
            most_output: None,
            price: (!kind.is_priceless).then_some(speaker::PRICE),
        },
        tools: vec![
            tool("read_file", EffectClass::Read),
            tool("write_file", EffectClass::WriteFile),
            tool("shell", EffectClass::External),
        ],
        instructions: String::new(),
        rehearsal: false,
        trust: kind.trust,
        keep_full_trust: kind.trust == Trust::FullTrust,
    }
}
