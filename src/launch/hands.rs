//! What the calls of a run act with and where: its tools, its folder, its box, and what no tool may touch. It starts
//! nothing.

use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use crate::boxes;
use crate::domain::id::RunId;
use crate::domain::sandbox::Level;
use crate::domain::tool::ToolSpec;
use crate::headless::exit::Obstacle;
use crate::launch::Ground;
use crate::launch::PRE_IMAGES;
use crate::rehearsal;
use crate::secrets;
use crate::tools::Scene;
use crate::tools::Toolbox;
use crate::tools::gits::own::Own;
use crate::tools::sandbox::Sandbox;
use crate::tools::web_fetch::WebFetch;

impl Ground {
    /// Whether this is the folder that a rehearsal has in its run's directory.
    pub(crate) fn works_at_home(&self, id: &RunId, workspace: &Path) -> bool {
        let own = rehearsal::workspace(&self.home.run_dir(id)).canonicalize();
        own.is_ok_and(|own| workspace.canonicalize().is_ok_and(|real| real == own))
    }

    /// The rehearsal whose own folder this is, if it is one: its calls may act there, where nobody else's may.
    pub fn rehearsal_in(&self, workspace: &Path) -> Option<RunId> {
        let run_dir = workspace.canonicalize().ok()?.parent()?.file_name()?.to_str()?.to_string();
        let id = RunId::try_from(run_dir).ok()?;
        self.works_at_home(&id, workspace).then_some(id)
    }

    /// The tools of a run, with those that the operator switched on, and how far a box confines its commands.
    pub fn tools(&self, id: Option<&RunId>, workspace: &Path) -> anyhow::Result<(Toolbox, Level)> {
        let scene = self.scene(id, workspace)?;
        let level = scene.sandbox.level;
        let mut tools = Toolbox::new(scene);
        if self.settings.web_fetch() {
            tools.add(Arc::new(WebFetch::new(self.settings.fetch_loopback())));
        }
        Ok((tools, level))
    }

    /// Where the calls of a run act, and where its files are put back. Nothing may touch what tiller itself keeps.
    pub fn scene(&self, id: Option<&RunId>, workspace: &Path) -> anyhow::Result<Scene> {
        let state = self.places.state.canonicalize().unwrap_or(self.places.state.clone());
        let config = self.places.config.parent().map(Path::to_path_buf).unwrap_or_default();
        // Only a rehearsal works inside its run's directory, which may even lie below that of the configuration. A
        // journal from elsewhere can name any folder of ours; there nothing may be touched at all.
        let mut off_limits = match id.filter(|id| self.works_at_home(id, workspace)) {
            Some(id) => {
                let run_dir = state.join("runs").join(id.as_str());
                vec![
                    state.join("log"),
                    run_dir.join("store"),
                    run_dir.join(PRE_IMAGES),
                    self.places.config.clone(),
                    self.places.rules(),
                ]
            }
            // Their folder may be a link, too.
            None => [state.clone()].into_iter().chain(config.canonicalize()).chain([config]).collect(),
        };
        // The configuration may be a link to a file elsewhere, as those who keep their settings under version control do.
        off_limits.extend(self.places.config.canonicalize());
        let program = std::env::current_exe().map_err(|error| {
            let why = format!("our own program can't be found ({error}), so no call could be guarded; try again");
            Obstacle::Stopped(why)
        })?;
        Ok(Scene {
            workspace: workspace.to_path_buf(),
            sandbox: boxes::sandbox(&self.settings, &state, &program, &off_limits)?,
            off_limits,
            pre_images: id.map(|id| state.join("runs").join(id.as_str()).join(PRE_IMAGES)),
            program,
            passed_variables: secrets::passed(&self.settings),
            git: Own::here(),
        })
    }
}

/// What the model is told of the tools, wherever they will act.
pub fn tool_specs() -> Vec<ToolSpec> {
    tools_anywhere().specs()
}

/// The tools, wherever they will act: to be asked about, not to be used.
pub fn tools_anywhere() -> Toolbox {
    let nowhere = Scene {
        workspace: PathBuf::new(),
        off_limits: Vec::new(),
        pre_images: None,
        program: PathBuf::new(),
        passed_variables: Vec::new(),
        sandbox: Sandbox::default(),
        git: Own::default(),
    };
    Toolbox::new(nowhere)
}
