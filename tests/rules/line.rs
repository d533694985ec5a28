//! Lines as the program reads them.

use std::path::PathBuf;

use tiller::domain::line::Line;
use tiller::domain::tool::Facts;
use tiller::tools::Scene;
use tiller::tools::Toolbox;
use tiller::tools::sandbox::Sandbox;

use crate::rules::stage::shell;

/// Reads a line. Nothing of it is run.
pub(crate) fn read(text: &str) -> Line {
    let facts = facts(text);
    facts.line.unwrap_or_else(|| panic!("{text:?}: {:?}", facts.problem))
}

/// What is found out about a line.
pub(crate) fn facts(text: &str) -> Facts {
    let scene = Scene {
        workspace: std::env::temp_dir(),
        off_limits: Vec::new(),
        pre_images: None,
        program: PathBuf::new(),
        passed_variables: Vec::new(),
        sandbox: Sandbox::default(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(Toolbox::new(scene).prepare(&shell(text)))
}
