//! A failing life made smaller: fewer kills, fewer iterations, less patience, as long as it still fails.

use crate::simulation::life::Crash;
use crate::simulation::life::Failure;
use crate::simulation::life::Life;
use crate::simulation::life::Shape;
use crate::simulation::sabotage::Sabotage;

/// Lives that are played in search of a smaller one.
const TRIES: u32 = 60;

/// A life that fails, and how it is played again.
#[derive(Debug)]
pub struct Smallest {
    pub seed: u64,
    pub shape: Shape,
    pub failure: Failure,
}

impl Smallest {
    /// The one command that plays it.
    pub fn command(&self, crash: Crash) -> String {
        let spared: Vec<String> = self.shape.spared.iter().map(u32::to_string).collect();
        format!(
            "TILLER_LENGTH={} TILLER_SEED={} TILLER_CRASH={} TILLER_LOOPS={} TILLER_PATIENCE={} TILLER_SPARE={} cargo test --test \
             simulation one_life",
            self.shape.length.word(),
            self.seed,
            crash.number(),
            self.shape.loops,
            self.shape.patience,
            if spared.is_empty() { "-".to_string() } else { spared.join(",") }
        )
    }
}

/// The smallest life found that fails as this one does, if it does.
pub fn shrink(seed: u64, shape: Shape, crash: Crash, sabotage: Sabotage) -> Option<Smallest> {
    let mut tries = 0;
    let mut fails = |shape: &Shape| {
        tries += 1;
        if tries > TRIES { None } else { Life::shaped(seed, shape.clone(), crash, sabotage).failure() }
    };
    // The checker looks after every input, so that it is known which one it was.
    let mut best = Shape { check_every: 1, ..shape };
    let mut failure = fails(&best)?;
    let mut keep = |shape: Shape, best: &mut Shape, failure: &mut Failure| {
        // Another cut may fail later than this one, which is no help.
        let (inputs, kills) = (failure.inputs, failure.killed_at.len());
        let found = fails(&shape).filter(|found| found.inputs <= inputs && found.killed_at.len() <= kills);
        let is_smaller = found.is_some();
        if let Some(found) = found {
            (*best, *failure) = (shape, found);
        }
        is_smaller
    };
    for loops in [1, 2, 4, 8].into_iter().filter(|loops| *loops < shape.loops) {
        if keep(Shape { loops, ..best.clone() }, &mut best, &mut failure) {
            break;
        }
    }
    for patience in [0, 2, 8, 32, 96].into_iter().filter(|patience| *patience < shape.patience) {
        if keep(Shape { patience, ..best.clone() }, &mut best, &mut failure) {
            break;
        }
    }
    // From the last kill back: what comes before a spared one stays as it was.
    for at in failure.killed_at.clone().into_iter().rev() {
        let mut spared = best.spared.clone();
        spared.push(at);
        keep(Shape { spared, ..best.clone() }, &mut best, &mut failure);
    }
    Some(Smallest { seed, shape: best, failure })
}
