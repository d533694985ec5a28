//! The roof: what must be so before a run starts, and at every resume (docs/ENGINE.md §14.2). It looks and starts
//! nothing; what is not looked at here is not said to be well.

use std::path::Path;

use nix::unistd::AccessFlags;

use crate::domain::limits;
use crate::domain::pricing::Pricing;
use crate::domain::run::Run;
use crate::domain::status::Lack;
use crate::domain::status::ParkReason;
use crate::domain::terms::Check;
use crate::model;
use crate::model::ModelError;
use crate::store::StoreError;
use crate::store::place::Home;
use crate::tools::Toolbox;

/// What stands against going on, first things first: the store, the key, the model and its price, the tools, the
/// checks, the folder. A goal that is too long can't be in a run at all.
pub fn problems(run: &Run, home: &Home, tools: &Toolbox) -> Vec<Lack> {
    let mut all = Vec::new();
    let not_ready = |sentence: String| Lack { reason: ParkReason::NotReady, sentence };
    let full = |error: StoreError| Lack { reason: ParkReason::Storage, sentence: error.to_string() };
    all.extend(home.has_room(&run.id).err().map(full));
    all.extend(model::open(&run.terms.model).err().map(unasked));
    all.extend((run.pricing == Pricing::Unknown).then(|| unpriced(run)));
    all.extend(tools.self_test().err().map(not_ready));
    all.extend(run.terms.checks.iter().filter_map(|check| broken(tools, check)).map(not_ready).next());
    let flags = AccessFlags::R_OK | AccessFlags::W_OK | AccessFlags::X_OK;
    if let Err(why) = nix::unistd::access(run.terms.workspace.as_str(), flags) {
        all.push(not_ready(format!("the folder {} can't be used ({})", run.terms.workspace, why.desc())));
    }
    let workspace = Path::new(run.terms.workspace.as_str());
    if let Some(other) = workspace.canonicalize().ok().filter(|real| real != workspace) {
        all.push(not_ready(format!(
            "the folder {} is not where it was: a link is on the way now, to {}; put it back, or start a run there",
            workspace.display(),
            other.display()
        )));
    }
    all
}

/// A model of which nobody knows the price.
fn unpriced(run: &Run) -> Lack {
    let (id, name) = (run.id.short(), &run.terms.model.name);
    let sentence = format!(
        "nobody knows what {name} costs; say it in dollars per million tokens, `tiller price {id} INPUT OUTPUT`, or go \
         on without counting money, `tiller price {id} --unpriced`; for other runs write models.\"{name}\".price in \
         tiller.toml"
    );
    Lack { reason: ParkReason::PriceUnknown, sentence }
}

/// A model that can't be asked.
fn unasked(error: ModelError) -> Lack {
    let reason = match error {
        ModelError::NoKey { .. } | ModelError::BadKey { .. } => ParkReason::Credentials,
        ModelError::Script { .. } | ModelError::Address { .. } | ModelError::Tls(_) => ParkReason::ModelConfig,
    };
    Lack { reason, sentence: error.to_string() }
}

/// Why a check can't be run at all, if it can't.
pub fn broken(tools: &Toolbox, check: &Check) -> Option<String> {
    match check {
        Check::Command(line) if line.trim().is_empty() => Some("a check is empty".to_string()),
        Check::Command(line) if line.contains('\0') || line.len() > limits::COMMAND_MAX_BYTES => {
            Some(format!("a check has a NUL, or more than {} bytes, which no shell takes", limits::COMMAND_MAX_BYTES))
        }
        // Each attempt at it would fail.
        Check::Command(_) => tools.box_obstacle(),
        Check::FileExists(_) | Check::FileMatches { .. } | Check::Tool { .. } => tools.can_check(check).err(),
        Check::ModelJudge(question) if question.trim().is_empty() => {
            Some("a check asks the model nothing; write what must hold".to_string())
        }
        Check::ModelJudge(_) | Check::OperatorConfirm(_) => None,
    }
}

/// Why these checks can't be meant, if they can't: one that can't be run, or that could never hold. A run with it would
/// work to its end and not reach it, so it is not begun. What the shell is asked of them is not asked again at a resume.
pub async fn pointless(tools: &Toolbox, checks: &[Check]) -> Option<String> {
    for check in checks {
        let why = match broken(tools, check) {
            None => tools.never_holds(check).await,
            broken => broken,
        };
        if why.is_some() {
            return why;
        }
    }
    None
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::domain::budget::Limits;
    use crate::domain::event::Owner;
    use crate::domain::event::OwnerMode;
    use crate::domain::id::RunId;
    use crate::domain::model::Dialect;
    use crate::domain::model::ModelSpec;
    use crate::domain::money::Price;
    use crate::domain::terms::Goal;
    use crate::domain::terms::Terms;
    use crate::domain::time::Now;
    use crate::domain::trust::Trust;
    use crate::machine;
    use crate::tools::Scene;

    fn look(dir: &Path, change: impl FnOnce(&mut Terms), program: &str) -> Vec<String> {
        let owner = Owner { pid: 1, host: String::new(), version: String::new(), mode: OwnerMode::Drives };
        let home = Home::new(dir.join("state"), owner).unwrap();
        let mut terms = Terms {
            goal: Goal::try_from("look".to_string()).unwrap(),
            workspace: dir.to_string_lossy().into_owned(),
            limits: Limits::default(),
            checks: vec![Check::Command("true".to_string())],
            wrap_up: true,
            model: ModelSpec {
                name: "local/m".to_string(),
                dialect: Dialect::Openai,
                address: "http://127.0.0.1:1/v1".to_string(),
                model: "m".to_string(),
                key_variable: None,
                window: 1_000,
                max_output: 100,
                most_output: None,
                price: Some(Price::FREE),
            },
            tools: Vec::new(),
            instructions: String::new(),
            guide: None,
            rehearsal: false,
            trust: Trust::default(),
            keep_full_trust: false,
        };
        change(&mut terms);
        let first = machine::create(terms, Now::default());
        let run = Run::begin(RunId::from_entropy([1; 12]), &first).unwrap();
        std::fs::create_dir_all(home.run_dir(&run.id)).unwrap();
        let scene = Scene {
            workspace: dir.to_path_buf(),
            off_limits: Vec::new(),
            pre_images: None,
            program: program.into(),
            passed_variables: Vec::new(),
            sandbox: crate::tools::sandbox::Sandbox::default(),
            git: crate::tools::gits::own::Own::default(),
        };
        problems(&run, &home, &Toolbox::new(scene))
            .iter()
            .map(|lack| format!("{}: {}", lack.reason.phrase(), lack.sentence))
            .collect()
    }

    #[test]
    fn each_item_is_named_first_things_first() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let dir = tempfile::tempdir().unwrap();
        let (at, nothing) = (dir.path(), Vec::<String>::new());
        assert_eq!(look(at, |_| {}, "/bin/sh"), nothing);
        let no_key = |terms: &mut Terms| terms.model.key_variable = Some("TILLER_TEST_NO_SUCH_KEY".to_string());
        assert_eq!(
            look(at, no_key, "/bin/sh"),
            [
                "credentials: local/m needs a key: the variable TILLER_TEST_NO_SUCH_KEY is not set. Nothing was sent. Do: export \
             TILLER_TEST_NO_SUCH_KEY=…"
            ]
        );
        let bad_address = |terms: &mut Terms| terms.model.address = "http://elsewhere.example/v1".to_string();
        assert!(
            look(at, bad_address, "/bin/sh")[0]
                .starts_with("model configuration: the address of local/m can't be used")
        );
        assert_eq!(
            look(at, |_| {}, "/nowhere/tiller"),
            ["not ready: the program /nowhere/tiller, which guards every call, can't be started"]
        );
        let empty = |terms: &mut Terms| terms.checks.push(Check::Command(" ".to_string()));
        assert_eq!(look(at, empty, "/bin/sh"), ["not ready: a check is empty"]);
        let gone = |terms: &mut Terms| {
            no_key(terms);
            terms.workspace = "/nowhere".to_string();
        };
        let all = look(at, gone, "/bin/sh");
        assert!(all[0].starts_with("credentials: ") && all.len() == 2, "{all:?}");
        assert_eq!(all[1], "not ready: the folder /nowhere can't be used (No such file or directory)");
        let root = at.canonicalize().unwrap();
        std::fs::create_dir(root.join("moved")).unwrap();
        std::os::unix::fs::symlink("moved", root.join("linked")).unwrap();
        let linked = |terms: &mut Terms| terms.workspace = root.join("linked").display().to_string();
        let (from, to) = (root.join("linked").display().to_string(), root.join("moved").display().to_string());
        let sentence = format!("not ready: the folder {from} is not where it was: a link is on the way now, to {to};");
        let all = look(at, linked, "/bin/sh");
        assert!(all.iter().any(|said| said.starts_with(&sentence)), "{all:?}");
    }
}
