//! Rules about files that lie behind links, with real folders and the real tools.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use serde_json::json;
use tiller::domain::sandbox::Level;
use tiller::domain::tool::EffectClass;
use tiller::domain::tool::Facts;
use tiller::policy::permission;
use tiller::tools::Scene;
use tiller::tools::Toolbox;
use tiller::tools::sandbox::Sandbox;

use crate::rules::stage::NOW;
use crate::rules::stage::Stage;
use crate::rules::stage::call;
use crate::rules::stage::decision;
use crate::rules::stage::run;

/// What the gate says of a write to a path, by one rule. In the workspace are `docs`, `link` to it, `out` to a folder
/// outside, and `src`, in it a link to a file of `docs`.
fn said(effect: &str, glob: &str, path: &str) -> &'static str {
    let stage = Stage::new(&format!("[[rule]]\neffect = \"{effect}\"\npath = \"{glob}\"\n"));
    let root = stage.dir.path().canonicalize().unwrap();
    let workspace = root.join("ws");
    for folder in ["ws/docs", "ws/src", "outside"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    fs::write(workspace.join("docs/secret"), "x").unwrap();
    symlink("docs", workspace.join("link")).unwrap();
    symlink(root.join("outside"), workspace.join("out")).unwrap();
    symlink("../docs/secret", workspace.join("src/secret")).unwrap();
    let scene = Scene {
        workspace: workspace.clone(),
        off_limits: Vec::new(),
        pre_images: None,
        program: PathBuf::new(),
        passed_variables: Vec::new(),
        sandbox: Sandbox::default(),
        git: tiller::tools::gits::own::Own::default(),
    };
    let path = path.replace("WS", &workspace.display().to_string());
    let call = call("write_file", json!({ "path": path, "content": "y" }), EffectClass::WriteFile);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let facts = runtime.block_on(Toolbox::new(scene).prepare(&call));
    assert_eq!(facts.problem, None, "{path}");
    let facts = stage.book.about(&call, facts, workspace.to_str().unwrap(), NOW);
    let facts = Facts { level: Some(Level::Full), ..facts };
    decision(&permission::judge(&run(), &call, &facts, 0))
}

#[test]
fn a_rule_holds_for_a_file_by_both_its_names() {
    for (effect, glob, path, expected) in [
        ("deny", "docs/**", "docs/secret", "refuse"),
        ("deny", "docs/**", "link/secret", "refuse"),
        ("deny", "docs/**", "src/secret", "refuse"),
        ("deny", "docs/**", "WS/link/secret", "refuse"),
        ("deny", "link/**", "link/secret", "refuse"),
        ("deny", "link/**", "./src/../link//secret", "refuse"),
        ("deny", "link/**", "WS/link/new", "refuse"),
        ("deny", "src/**", "src/secret", "refuse"),
        ("deny", "out/**", "out/x", "refuse"),
        ("deny", "docs/**", "src/a", "ask"),
        ("allow", "docs/**", "docs/secret", "allow"),
        ("allow", "docs/**", "src/../docs/secret", "allow"),
        ("allow", "docs/**", "WS/docs/secret", "allow"),
        ("allow", "docs/**", "link/secret", "ask"),
        ("allow", "link/**", "link/secret", "ask"),
        ("allow", "src/**", "src/secret", "ask"),
        ("allow", "out/**", "out/x", "ask"),
    ] {
        assert_eq!(said(effect, glob, path), expected, "{effect} {glob}: {path}");
    }
}
