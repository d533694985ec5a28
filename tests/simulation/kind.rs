//! What sort of life a seed gives: how much room, whose money, how much trust.

use crate::chance::Chance;
use crate::simulation::life::Length;
use crate::simulation::speaker;
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
    pub window: u64,
    /// How long results are.
    pub words: usize,
    /// Nobody knows what the model costs.
    pub is_priceless: bool,
    pub trust: Trust,
}

impl Kind {
    pub fn of(seed: u64, length: Length) -> Kind {
        let mut chance = Chance::new(seed ^ 0xC0FFEE);
        let (is_narrow, is_priceless) = (chance.percent(30) || length == Length::Narrow, chance.percent(15));
        let window = match (length, is_narrow) {
            (Length::Narrow, _) => 12_000,
            (Length::Full | Length::Short, true) => 9_000,
            (Length::Full | Length::Short, false) => 200_000,
        };
        let trust = if chance.percent(60) { Trust::Ask } else { chance.pick(&Trust::ALL) };
        let words = match (length, is_narrow) {
            (Length::Narrow, _) => 1_200,
            (Length::Full | Length::Short, true) => 300,
            (Length::Full | Length::Short, false) => 0,
        };
        Kind { is_narrow, words, window, is_priceless, trust }
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
            window: kind.window,
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
        guide: None,
        rehearsal: false,
        trust: kind.trust,
        keep_full_trust: kind.trust == Trust::FullTrust,
    }
}
