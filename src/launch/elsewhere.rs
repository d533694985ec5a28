//! How far a journal is believed that somebody else may have written: its tools are what this program knows them as, and a
//! run from elsewhere asks only a model that is set up here, in a folder that is not everything. It reads no journal and
//! drives nothing.

use std::path::Path;

use crate::config::keys::split_model;
use crate::domain::model::Dialect;
use crate::domain::run::Run;
use crate::headless::exit::Obstacle;
use crate::headless::text::title;
use crate::launch::Ground;
use crate::launch::hands::tools_anywhere;
use crate::tools::Toolbox;

impl Ground {
    /// Errors when this run is not to be driven, because of what its journal says of its tools or its model.
    pub(super) fn judge(&self, run: &Run, tools: &Toolbox) -> Result<(), Obstacle> {
        let unopened = |why: &str| format!("run {} was not opened: {why}; ", run.id);
        if let Some(name) = misnamed(run, tools) {
            let short = run.id.short();
            let look = format!("nothing was run; `tiller show {short}` still shows it");
            return Err(Obstacle::Lost(unopened(&unknown(&name)) + &look));
        }
        if let Some(why) = pretends(run).filter(|_| run.brought.is_some()) {
            return Err(Obstacle::Lost(unopened(why) + "nothing was sent"));
        }
        match self.stranger(run) {
            Some((why, way_on)) => Err(Obstacle::Refused(format!("{}nothing was sent; {way_on}", unopened(&why)))),
            None => Ok(()),
        }
    }

    /// Why this run would not be opened here, as `judge` finds it, and what to do; the end of a sentence.
    pub(super) fn mistrusted(&self, run: &Run) -> Option<String> {
        if let Some(name) = misnamed(run, &tools_anywhere()) {
            return Some(unknown(&name));
        }
        self.stranger(run).map(|(why, way_on)| format!("{why}; {way_on}"))
    }

    /// That a run from elsewhere asks at an address that nobody set up here, and what to do.
    fn stranger(&self, run: &Run) -> Option<(String, String)> {
        let model = &run.terms.model;
        let is_known = run.brought.is_none()
            || model.dialect == Dialect::Scripted
            || self.settings.is_set_up(&model.address, model.key_variable.as_deref());
        if is_known {
            return None;
        }
        let provider = split_model(&model.name).map_or("NAME", |(provider, _)| provider);
        let (key, how) = match &model.key_variable {
            Some(name) => (format!("the key in {}", title(name)), "base_url and key"),
            None => ("no key".to_string(), "base_url"),
        };
        let address = title(&model.address);
        Some((
            format!(
                "it was brought from elsewhere and asks at {address} with {key}, as no provider of this configuration does"
            ),
            format!(
                "to go on, set {how} of [providers.{}] so in tiller.toml, if you trust that address",
                title(provider)
            ),
        ))
    }
}

/// That a run from elsewhere names a folder in which it would read, unasked, more than one piece of work: all of this
/// machine, or all of the operator's. A folder that the operator names may be as wide as that; a journal is not their word.
pub(super) fn overreaches(run: &Run) -> Option<String> {
    let folder = Path::new(&run.terms.workspace).canonicalize().ok().filter(|_| run.brought.is_some())?;
    let home = std::env::home_dir().and_then(|home| home.canonicalize().ok());
    let is_wide = folder.parent().is_none() || home.is_some_and(|home| home.starts_with(&folder));
    let (shown, way_on) = (title(&run.terms.workspace), "`tiller run` in the folder that it is to work in");
    is_wide.then(|| {
        format!(
            "it was brought from elsewhere and would read without a question in {shown}, which is your home folder or one \
             that holds it; it can go on in no other; start a run of your own: {way_on}"
        )
    })
}

/// That a journal and this program do not mean the same by the name of a tool.
fn unknown(name: &str) -> String {
    format!(
        "its journal says of {} what this program does not know it as; it was made by another program or changed by hand",
        title(name)
    )
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
