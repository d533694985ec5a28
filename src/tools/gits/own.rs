//! Where git finds what the operator configured for all repositories, told from the environment. It opens nothing.

use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::path::PathBuf;

/// The operator's own configuration of git. The usual one is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Own {
    /// The operator's home.
    pub home: Option<PathBuf>,
    /// Where git is installed: what `%(prefix)` stands for.
    pub prefixes: Vec<PathBuf>,
    /// The files that git reads in every repository, should they be there.
    pub files: Vec<PathBuf>,
}

impl Own {
    /// That of whoever started this process.
    pub fn here() -> Own {
        Own::of(|name| env::var_os(name).filter(|value| !value.is_empty()))
    }

    /// What git may read is named, also where a variable would keep it from that: the next shell may not have it.
    fn of(variable: impl Fn(&str) -> Option<OsString>) -> Own {
        let named = |name: &str| variable(name).and_then(|value| std::path::absolute(value).ok());
        let home = named("HOME");
        let folders: Vec<PathBuf> =
            named("XDG_CONFIG_HOME").into_iter().chain(home.as_ref().map(|home| home.join(".config"))).collect();
        let search = variable("PATH").unwrap_or_default();
        let gits = env::split_paths(&search).map(|folder| folder.join("git")).filter(|git| git.is_file());
        let of_git = |git: PathBuf| [git.canonicalize().ok(), Some(git)].into_iter().flatten();
        let prefix = |git: PathBuf| git.parent().and_then(Path::parent).map(Path::to_path_buf);
        let mut prefixes: Vec<PathBuf> = gits.flat_map(of_git).filter_map(prefix).collect();
        prefixes.dedup();
        let of_system = [PathBuf::from("/")].into_iter().chain(prefixes.iter().cloned()).map(|top| top.join("etc"));
        let of_system = of_system.flat_map(|etc| ["gitconfig", "gitattributes"].map(|name| etc.join(name)));
        let in_folders =
            folders.iter().flat_map(|folder| ["config", "attributes"].map(|name| folder.join("git").join(name)));
        let of_home = home.iter().map(|home| home.join(".gitconfig"));
        let files = ["GIT_CONFIG_SYSTEM", "GIT_CONFIG_GLOBAL"].into_iter().filter_map(named);
        let files = files.chain(of_system).chain(in_folders).chain(of_home).collect();
        Own { home, prefixes, files }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn all_that_git_may_read_is_named() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("sw/bin")).unwrap();
        std::fs::write(root.join("sw/bin/git"), "").unwrap();
        let own = Own::of(|name| {
            let value = match name {
                "HOME" => root.join("h").into_os_string(),
                "XDG_CONFIG_HOME" => root.join("x").into_os_string(),
                "GIT_CONFIG_GLOBAL" => root.join("g").into_os_string(),
                "PATH" => format!("{0}/none:{0}/sw/bin", root.display()).into(),
                _ => return None,
            };
            Some(value)
        });
        let files: Vec<String> =
            own.files.iter().map(|file| file.display().to_string().replace(root.to_str().unwrap(), "")).collect();
        assert_eq!(own.home, Some(root.join("h")));
        assert_eq!(own.prefixes, [root.join("sw")]);
        assert_eq!(
            files,
            [
                "/g",
                "/etc/gitconfig",
                "/etc/gitattributes",
                "/sw/etc/gitconfig",
                "/sw/etc/gitattributes",
                "/x/git/config",
                "/x/git/attributes",
                "/h/.config/git/config",
                "/h/.config/git/attributes",
                "/h/.gitconfig",
            ]
        );
        assert_eq!(Own::of(|_| None).files, [Path::new("/etc/gitconfig"), Path::new("/etc/gitattributes")]);
    }
}
