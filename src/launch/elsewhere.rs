//! How far a journal is believed that somebody else may have written: its tools are what this program knows them as, and a
//! run from elsewhere asks only a model that is set up here. It reads no journal and drives nothing.

use crate::config::keys::split_model;
use crate::domain::model::Dialect;
use crate::domain::model::ModelSpec;
use crate::domain::run::Run;
use crate::headless::exit::Obstacle;
use crate::headless::text::title;
use crate::launch::Ground;
use crate::tools::Toolbox;

impl Ground {
    /// Errors when this run is not to be driven, because of what its journal says of its tools or its model.
    pub(super) fn judge(&self, run: &Run, tools: &Toolbox) -> Result<(), Obstacle> {
        if let Some(name) = misnamed(run, tools) {
            return Err(Obstacle::Lost(format!(
                "run {} was not opened: its journal says of {} what this program does not know it as; it was made by \
                 another program or changed by hand; nothing was run; `tiller show {}` still shows it",
                run.id,
                title(&name),
                run.id.short()
            )));
        }
        if !run.brought {
            return Ok(());
        }
        if let Some(why) = pretends(run) {
            return Err(Obstacle::Lost(format!("run {} was not opened: {why}; nothing was sent", run.id)));
        }
        let model = &run.terms.model;
        let is_known = model.dialect == Dialect::Scripted
            || self.settings.is_set_up(&model.address, model.key_variable.as_deref());
        if is_known { Ok(()) } else { Err(Obstacle::Refused(stranger(run, model))) }
    }
}

/// Why a run is no rehearsal, although its journal says so.
pub fn pretends(run: &Run) -> Option<&'static str> {
    let is_real = run.terms.rehearsal && run.terms.model.dialect != Dialect::Scripted;
    is_real.then_some("it calls itself a rehearsal, and asks a model that is none")
}

/// The first tool that has another effect class in the journal than here. What this program has not can't be called.
fn misnamed(run: &Run, tools: &Toolbox) -> Option<String> {
    let ours = tools.specs();
    let is_other = |name: &str, effect| ours.iter().any(|own| own.name == name && own.effect != effect);
    let other = run.terms.tools.iter().find(|tool| is_other(&tool.name, tool.effect));
    other.map(|tool| tool.name.clone())
}

fn stranger(run: &Run, model: &ModelSpec) -> String {
    let provider = split_model(&model.name).map_or("NAME", |(provider, _)| provider);
    let (key, how) = match &model.key_variable {
        Some(name) => (format!("the key in {}", title(name)), "base_url and key"),
        None => ("no key".to_string(), "base_url"),
    };
    format!(
        "run {} was not opened: it was brought from elsewhere and asks at {} with {key}, as no provider of this \
         configuration does; nothing was sent; to go on, set {how} of [providers.{}] so in tiller.toml, if you trust that \
         address",
        run.id,
        title(&model.address),
        title(provider)
    )
}
