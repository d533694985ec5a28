//! The environment of a child: a list of what it gets, never what it does not get (docs/SAFETY.md, R26). Keys of
//! providers, sockets of agents and switches of loaders stay out because nobody names them.

use std::env;
use std::ffi::OsStr;
use std::ffi::OsString;
use std::path::Path;
use std::path::PathBuf;

use crate::domain::text::short_hash;
use crate::tools::Scene;

/// Where programs are looked for when the operator's own search path has nothing that can be used.
const PLAIN_PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";
/// What every child gets if the operator has it.
const PASSED: [&str; 5] = ["LANG", "TZ", "HOME", "USER", "TMPDIR"];
/// Starts of names that no child gets, even when the operator names them: they make programs load or run something,
/// or lead to agents, screens and buses that act for the operator.
const NEVER: &[&str] = &[
    // loaders and the C library
    "LD_",
    "DYLD_",
    "LIBPATH",
    "SHLIB_PATH",
    "GCONV_PATH",
    "GLIBC_TUNABLES",
    "MALLOC_",
    "LOCPATH",
    "NLSPATH",
    "HOSTALIASES",
    "RES_OPTIONS",
    // shells
    "BASH",
    "ENV",
    "SHELLOPTS",
    "IFS",
    "PS1",
    "PS2",
    "PS4",
    "PROMPT_COMMAND",
    "CDPATH",
    "GLOBIGNORE",
    "ZDOTDIR",
    "FPATH",
    "INPUTRC",
    "FCEDIT",
    "LESSOPEN",
    "LESSCLOSE",
    // interpreters
    "PYTHON",
    "PERL",
    "NODE_OPTIONS",
    "NODE_PATH",
    "RUBYOPT",
    "RUBYLIB",
    "JAVA_TOOL_OPTIONS",
    "_JAVA_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "LUA_",
    "R_PROFILE",
    "R_ENVIRON",
    "GUILE_",
    "ERL_",
    "ELIXIR_ERL_OPTIONS",
    "TCLLIBPATH",
    "JULIA_",
    "DOTNET_STARTUP_HOOKS",
    "CORECLR_",
    "AWKPATH",
    "AWKLIBPATH",
    // git
    "GIT_",
    // agents
    "SSH_",
    "GPG_",
    "GNUPGHOME",
    "PINENTRY_",
    "KRB5",
    // multiplexers, terminals, and editors that listen
    "TMUX",
    "STY",
    "SCREEN",
    "ZELLIJ",
    "KITTY_",
    "WEZTERM_",
    "ITERM_",
    "ALACRITTY_",
    "TERM",
    "WINDOWID",
    "VSCODE_",
    "NVIM",
    // displays
    "DISPLAY",
    "WAYLAND_",
    "XAUTHORITY",
    "SWAYSOCK",
    "I3SOCK",
    "HYPRLAND_",
    // buses and the session
    "DBUS_",
    "AT_SPI_",
    "XDG_RUNTIME_DIR",
    "XDG_SESSION_",
    "SESSION_MANAGER",
    "NOTIFY_SOCKET",
    "LISTEN_",
    "JOURNAL_STREAM",
];

/// The variables of a child, sorted by name.
pub(crate) fn for_child(scene: &Scene) -> Vec<(OsString, OsString)> {
    choose(scene, env::vars_os())
}

/// What a decision is bound to: which variables are passed, and the search path. The other values stay out of the
/// journal, even as a hash.
pub(crate) fn binding(variables: &[(OsString, OsString)]) -> String {
    let mut text = Vec::new();
    for (name, value) in variables {
        text.extend_from_slice(name.as_encoded_bytes());
        text.push(0);
        if name == "PATH" {
            text.extend_from_slice(value.as_encoded_bytes());
            text.push(0);
        }
    }
    format!("environment={}", short_hash(&text))
}

fn choose(scene: &Scene, own: impl Iterator<Item = (OsString, OsString)>) -> Vec<(OsString, OsString)> {
    let mut path = OsString::new();
    let mut chosen = Vec::new();
    for (name, value) in own {
        if name == "PATH" {
            path = value;
        } else if is_passed(scene, &name) {
            chosen.push((name, value));
        }
    }
    chosen.push(("PATH".into(), search_path(&path, &scene.workspace)));
    chosen.push(("TERM".into(), "dumb".into()));
    chosen.sort();
    chosen
}

fn is_passed(scene: &Scene, name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    if PASSED.contains(&name) || name.starts_with("LC_") {
        return true;
    }
    let named = scene.passed_variables.iter().any(|passed| passed == name);
    named && !NEVER.iter().any(|start| name.to_ascii_uppercase().starts_with(start))
}

/// The operator's search path without what the workspace could have put there, and without relative parts.
fn search_path(own: &OsStr, workspace: &Path) -> OsString {
    let is_safe = |folder: &PathBuf| {
        let real = folder.canonicalize().unwrap_or_else(|_| folder.clone());
        folder.is_absolute() && !folder.starts_with(workspace) && !real.starts_with(workspace)
    };
    let safe: Vec<PathBuf> = env::split_paths(own).filter(is_safe).collect();
    match env::join_paths(&safe) {
        Ok(path) if !path.is_empty() => path,
        Ok(_) | Err(_) => PLAIN_PATH.into(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::tools::stage::Stage;

    fn check(stage: &Stage, own: &[(&str, &str)]) -> String {
        let own = own.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let chosen = choose(&stage.scene, own);
        let lines: Vec<String> =
            chosen.iter().map(|(name, value)| format!("{}={}", name.display(), value.display())).collect();
        stage.neutral(&lines.join(" "))
    }

    #[test]
    fn only_what_is_named_is_passed() {
        let mut stage = Stage::new();
        stage.scene.passed_variables =
            ["CARGO_HOME", "LD_PRELOAD", "git_dir", "SSH_AUTH_SOCK", "PATH", "TERM"].map(String::from).to_vec();
        let hostile: Vec<(String, String)> =
            (0..300).map(|number| (format!("KEY_{number}"), "secret".into())).collect();
        let mut own: Vec<(&str, &str)> = hostile.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        own.extend([
            ("OPENAI_API_KEY", "secret"),
            ("LD_PRELOAD", "/tmp/x.so"),
            ("GIT_DIR", "x"),
            ("git_dir", "x"),
            ("SSH_AUTH_SOCK", "x"),
            ("BASH_FUNC_ls%%", "() { id; }"),
            ("TERM", "xterm"),
            ("HOME", "/home/x"),
            ("LC_ALL", "C"),
            ("CARGO_HOME", "/c"),
            ("PATH", "/usr/bin"),
        ]);
        assert_eq!(check(&stage, &own), "CARGO_HOME=/c HOME=/home/x LC_ALL=C PATH=/usr/bin TERM=dumb");
    }

    #[test]
    fn programs_of_the_workspace_are_not_found_by_name() {
        let stage = Stage::new();
        stage.write("bin/ls", "");
        let workspace = stage.scene.workspace.display().to_string();
        let link = stage.root().join("link");
        std::os::unix::fs::symlink(stage.scene.workspace.join("bin"), &link).unwrap();
        let path = format!("{workspace}/bin:.::bin:{}:/usr/bin:{workspace}-not:/bin", link.display());
        assert_eq!(check(&stage, &[("PATH", &path)]), "PATH=/usr/bin:ROOT/ws-not:/bin TERM=dumb");
        assert_eq!(check(&stage, &[("PATH", "bin")]), format!("PATH={PLAIN_PATH} TERM=dumb"));
        assert_eq!(check(&stage, &[]), format!("PATH={PLAIN_PATH} TERM=dumb"));
    }

    #[test]
    fn the_binding_follows_the_search_path_and_the_names() {
        let bind = |name: &str, value: &str| binding(&[(name.into(), value.into())]);
        assert_ne!(bind("PATH", "/a"), bind("PATH", "/b"));
        assert_eq!(bind("TZ", "a"), bind("TZ", "b"));
        assert_ne!(bind("TZ", "a"), bind("LANG", "a"));
    }
}
