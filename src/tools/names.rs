//! Names that deserve a second look: files that hold secrets, and files that something runs or obeys later
//! (docs/SAFETY.md §5). Compared by component, in lower case, at any depth. It knows names only and touches nothing.

use std::ffi::OsStr;
use std::path::Component;
use std::path::Path;
use std::path::PathBuf;

use crate::domain::guide;

/// How a name of a table is compared with a component of a path.
#[derive(Clone, Copy)]
enum Name {
    /// The whole component.
    Is(&'static str),
    /// The start of the component.
    Starts(&'static str),
    /// The end of the component.
    Ends(&'static str),
    /// The component and the one below it.
    Pair(&'static str, &'static str),
    /// The component and another one anywhere below it.
    Below(&'static str, &'static str),
}

/// What opens doors by itself: key material and stores of passwords. Sensitive as well, and grave.
const KEYS: &[(Name, &str)] = &[
    (Name::Ends(".pem"), "key material"),
    (Name::Ends(".key"), "key material"),
    (Name::Ends(".p12"), "key material"),
    (Name::Ends(".pfx"), "key material"),
    (Name::Ends(".p8"), "key material"),
    (Name::Ends(".ppk"), "key material"),
    (Name::Ends(".jks"), "key material"),
    (Name::Ends(".keystore"), "key material"),
    (Name::Ends(".kdbx"), "a password store"),
    (Name::Starts("id_rsa"), "a private key"),
    (Name::Starts("id_dsa"), "a private key"),
    (Name::Starts("id_ecdsa"), "a private key"),
    (Name::Starts("id_ed25519"), "a private key"),
    (Name::Is(".ssh"), "keys of ssh"),
    (Name::Is(".gnupg"), "keys of gpg"),
    (Name::Is(".password-store"), "a password store"),
];

/// What else may hold a secret, with the reason that the operator is shown.
const SENSITIVE: &[(Name, &str)] = &[
    (Name::Starts(".env"), "environment files hold keys"),
    (Name::Ends(".env"), "environment files hold keys"),
    (Name::Is("env.local"), "environment files hold keys"),
    (Name::Is(".dev.vars"), "environment files hold keys"),
    (Name::Ends(".tfstate"), "the state of terraform holds keys"),
    (Name::Ends(".tfvars"), "variables of terraform hold keys"),
    (Name::Is("kubeconfig"), "cluster credentials"),
    (Name::Is("service-account.json"), "cloud credentials"),
    (Name::Pair("gh", "hosts.yml"), "a token"),
    (Name::Is("rclone.conf"), "passwords of hosts"),
    (Name::Is(".aws"), "cloud credentials"),
    (Name::Is(".azure"), "cloud credentials"),
    (Name::Is("gcloud"), "cloud credentials"),
    (Name::Is(".kube"), "cluster credentials"),
    (Name::Is(".docker"), "registry credentials"),
    (Name::Is(".netrc"), "passwords of hosts"),
    (Name::Is("_netrc"), "passwords of hosts"),
    (Name::Is(".npmrc"), "registry tokens"),
    (Name::Is(".pypirc"), "registry tokens"),
    (Name::Is(".pgpass"), "database passwords"),
    (Name::Is(".my.cnf"), "database passwords"),
    (Name::Is(".htpasswd"), "passwords"),
    (Name::Is(".vault-token"), "a token"),
    (Name::Is(".git-credentials"), "passwords of git"),
    (Name::Is("credentials"), "credentials"),
    (Name::Is("credentials.json"), "credentials"),
    (Name::Is("credentials.toml"), "credentials"),
    (Name::Is("credentials.yml"), "credentials"),
    (Name::Is("credentials.yaml"), "credentials"),
    (Name::Is("secrets.json"), "secrets"),
    (Name::Is("secrets.toml"), "secrets"),
    (Name::Is("secrets.yml"), "secrets"),
    (Name::Is("secrets.yaml"), "secrets"),
    // That of a submodule lies deeper: .git/modules/<name>/config.
    (Name::Below(".git", "config"), "may hold tokens in addresses"),
    (Name::Below(".git", "config.worktree"), "may hold tokens in addresses"),
];

/// What runs or is obeyed without another question; no rule may cover a write to it.
const RUNS_UNASKED: &[(Name, &str)] = &[
    (Name::Pair(".git", "hooks"), "git runs its hooks"),
    (Name::Pair(".git", "config"), "git runs programs named in its configuration"),
    (Name::Pair(".git", "config.worktree"), "git runs programs named in its configuration"),
    (Name::Pair(".git", "commondir"), "git finds its configuration by it"),
    (Name::Pair(".git", "info"), "git obeys its attributes"),
    (Name::Pair(".git", "modules"), "git runs hooks of submodules"),
    (Name::Is(".gitattributes"), "git runs filters named in it"),
    (Name::Is(".gitmodules"), "git fetches what it names"),
    (Name::Is(".husky"), "git runs its hooks"),
    (Name::Is(".envrc"), "direnv runs it"),
    (Name::Is(".vscode"), "an editor runs its tasks"),
    (Name::Is(".idea"), "an editor runs its tasks"),
    (Name::Pair(".github", "workflows"), "GitHub runs it"),
    (Name::Pair(".github", "actions"), "GitHub runs it"),
    (Name::Is(".gitlab-ci.yml"), "GitLab runs it"),
    (Name::Is(".circleci"), "a build server runs it"),
    (Name::Is(".travis.yml"), "a build server runs it"),
    (Name::Is(".drone.yml"), "a build server runs it"),
    (Name::Is(".cirrus.yml"), "a build server runs it"),
    (Name::Is(".buildkite"), "a build server runs it"),
    (Name::Is(".woodpecker"), "a build server runs it"),
    (Name::Is(".woodpecker.yml"), "a build server runs it"),
    (Name::Is(".forgejo"), "a build server runs it"),
    (Name::Is(".gitea"), "a build server runs it"),
    (Name::Is("jenkinsfile"), "a build server runs it"),
    (Name::Is("azure-pipelines.yml"), "a build server runs it"),
    (Name::Is("bitbucket-pipelines.yml"), "a build server runs it"),
    (Name::Is("appveyor.yml"), "a build server runs it"),
    (Name::Is(".appveyor.yml"), "a build server runs it"),
    (Name::Is(".pre-commit-config.yaml"), "git runs its hooks"),
    (Name::Is("lefthook.yml"), "git runs its hooks"),
    (Name::Is("lefthook.yaml"), "git runs its hooks"),
    (Name::Is("lefthook.toml"), "git runs its hooks"),
    (Name::Is("lefthook-local.yml"), "git runs its hooks"),
    (Name::Is(".overcommit.yml"), "git runs its hooks"),
    (Name::Is(".lefthook.yml"), "git runs its hooks"),
    (Name::Is(".claude"), "an agent obeys it"),
    (Name::Is(".cursor"), "an agent obeys it"),
    (Name::Is(".gemini"), "an agent obeys it"),
    (Name::Is(".codex"), "an agent obeys it"),
    (Name::Is("opencode.json"), "an agent runs programs named in it"),
    (Name::Is(".mcp.json"), "an agent runs programs named in it"),
    (Name::Is(".zed"), "an editor runs its tasks"),
    (Name::Ends(".code-workspace"), "an editor runs its tasks"),
    (Name::Is(".lvimrc"), "an editor runs it"),
    (Name::Is(".gdbinit"), "a debugger runs it"),
    (Name::Is(".gdbearlyinit"), "a debugger runs it"),
    (Name::Is(".lldbinit"), "a debugger runs it"),
    (Name::Is(".pdbrc"), "a debugger runs it"),
    (Name::Is("mise.toml"), "every shell runs it"),
    (Name::Is(".mise.toml"), "every shell runs it"),
    (Name::Is(".devcontainer"), "an editor runs it"),
    (Name::Is(".devcontainer.json"), "an editor runs it"),
    (Name::Is(".exrc"), "an editor runs it"),
    (Name::Is(".nvim.lua"), "an editor runs it"),
    (Name::Is(".nvimrc"), "an editor runs it"),
    (Name::Is(".vimrc"), "an editor runs it"),
    (Name::Is(".dir-locals.el"), "an editor runs it"),
    (Name::Is(".dir-locals-2.el"), "an editor runs it"),
    (Name::Is(".ghci"), "an interpreter runs it"),
    (Name::Is(".irbrc"), "an interpreter runs it"),
    (Name::Is(".pryrc"), "an interpreter runs it"),
    (Name::Is(".iex.exs"), "an interpreter runs it"),
    (Name::Is(".rprofile"), "an interpreter runs it"),
    (Name::Pair(".hg", "hgrc"), "Mercurial runs programs named in it"),
    (Name::Is(".hgrc"), "Mercurial runs programs named in it"),
    (Name::Is(".gitconfig"), "git runs programs named in it"),
    (Name::Pair(".config", "git"), "git runs programs named in it"),
    (Name::Pair(".config", "fish"), "every shell runs it"),
    (Name::Pair(".config", "autostart"), "it is run at every login"),
    (Name::Pair("systemd", "user"), "it is run at every login"),
    (Name::Pair(".ssh", "authorized_keys"), "it lets others in"),
    (Name::Pair(".ssh", "config"), "ssh runs programs named in it"),
    (Name::Pair(".ssh", "rc"), "it is run at every login"),
    (Name::Is(".bash_aliases"), "every shell runs it"),
    (Name::Is(".bashrc"), "every shell runs it"),
    (Name::Is(".bash_profile"), "every shell runs it"),
    (Name::Is(".bash_login"), "every shell runs it"),
    (Name::Is(".bash_logout"), "every shell runs it"),
    (Name::Is(".profile"), "every shell runs it"),
    (Name::Is(".zshrc"), "every shell runs it"),
    (Name::Is(".zshenv"), "every shell runs it"),
    (Name::Is(".zprofile"), "every shell runs it"),
    (Name::Is(".zlogin"), "every shell runs it"),
    (Name::Is(".zlogout"), "every shell runs it"),
    (Name::Is(".cshrc"), "every shell runs it"),
    (Name::Is(".tcshrc"), "every shell runs it"),
    (Name::Is(".login"), "every shell runs it"),
    (Name::Is(".kshrc"), "every shell runs it"),
    (Name::Is(".xprofile"), "it is run at every login"),
    (Name::Is("config.fish"), "every shell runs it"),
    (Name::Is(".inputrc"), "every shell obeys it"),
];

/// What the next build or test runs: named to the operator, otherwise a write like any other.
const RUNS_AT_BUILD: &[(Name, &str)] = &[
    (Name::Is("makefile"), "the next build runs it"),
    (Name::Is("gnumakefile"), "the next build runs it"),
    (Name::Ends(".mk"), "the next build runs it"),
    (Name::Is("justfile"), "the next build runs it"),
    (Name::Is("rakefile"), "the next build runs it"),
    (Name::Is("build.rs"), "the next build runs it"),
    (Name::Is("cmakelists.txt"), "the next build runs it"),
    (Name::Is("build.gradle"), "the next build runs it"),
    (Name::Is("build.gradle.kts"), "the next build runs it"),
    (Name::Is("pom.xml"), "the next build obeys it"),
    (Name::Is("package.json"), "the next build runs its scripts"),
    (Name::Is("setup.py"), "the next build runs it"),
    (Name::Is("pyproject.toml"), "the next build obeys it"),
    (Name::Is("conftest.py"), "the next test runs it"),
    (Name::Is("noxfile.py"), "the next test runs it"),
    (Name::Is("tox.ini"), "the next test obeys it"),
    (Name::Is("dockerfile"), "the next build runs it"),
    (Name::Pair(".cargo", "config.toml"), "the next build runs programs named in it"),
    (Name::Pair(".cargo", "config"), "the next build runs programs named in it"),
    (Name::Is(".yarnrc.yml"), "the next build runs a program named in it"),
    (Name::Is(".pnpmfile.cjs"), "the next build runs it"),
];

/// How the name of a copy that is kept ends.
const COPIES: [&str; 5] = [".bak", ".old", ".orig", ".save", "~"];

/// Why a path of this name may hold a secret.
pub(crate) fn sensitive(path: &Path) -> Option<&'static str> {
    find(KEYS, &originals(path)).or_else(|| find(SENSITIVE, &originals(path)))
}

/// Why a path of this name may be key material.
pub(crate) fn key_material(path: &Path) -> Option<&'static str> {
    find(KEYS, &originals(path))
}

/// Why something runs or obeys a path of this name without another question.
pub(crate) fn runs_unasked(path: &Path) -> Option<&'static str> {
    find(RUNS_UNASKED, &parts(path))
}

/// Why a write to a path of this name guides agents: those that work here later take it for their orders.
pub(crate) fn guides(path: &Path) -> Option<&'static str> {
    let lower = PathBuf::from(parts(path).join("/"));
    guide::NAMES.iter().any(|name| lower.ends_with(name.to_lowercase())).then_some("agents obey it")
}

/// Why a write to a path of this name is one to a repository of git: what lies in `.git`, or stands in its place, can lead
/// it to another configuration, and so to other programs.
pub(crate) fn in_repository(path: &Path) -> Option<&'static str> {
    find(&[(Name::Is(".git"), "git obeys what lies in a repository")], &parts(path))
}

/// Why tools that write ask each time about what a pattern of paths names, as far as its whole names tell.
pub(crate) fn asked_each_time(glob: &str) -> Option<&'static str> {
    let path = Path::new(glob);
    let holds_some = || {
        let folder = Path::new(glob.trim_end_matches(['*', '/'])).file_name()?.to_str()?;
        (glob.ends_with('*') && first_parts().any(|first| first == folder))
            .then_some("what is in it runs other programs")
    };
    sensitive(path).or_else(|| runs_unasked(path)).or_else(|| in_repository(path)).or_else(holds_some)
}

/// The first components of what runs unasked, as far as they are whole names.
pub(crate) fn first_parts() -> impl Iterator<Item = &'static str> {
    RUNS_UNASKED.iter().filter_map(|(name, _)| match name {
        Name::Is(first) | Name::Pair(first, _) => Some(*first),
        Name::Starts(_) | Name::Ends(_) | Name::Below(..) => None,
    })
}

/// The components of what runs unasked, as far as they are whole names, in the letters in which they are used.
pub(crate) fn parts_unasked() -> impl Iterator<Item = &'static str> {
    let parts = RUNS_UNASKED.iter().flat_map(|(name, _)| match name {
        Name::Is(only) => [Some(*only), None],
        Name::Pair(first, second) => [Some(*first), Some(*second)],
        Name::Starts(_) | Name::Ends(_) | Name::Below(..) => [None, None],
    });
    parts.flatten().chain(["Jenkinsfile", ".Rprofile"])
}

/// Why the next build or test runs or obeys a path of this name.
pub(crate) fn runs_at_build(path: &Path) -> Option<&'static str> {
    find(RUNS_AT_BUILD, &parts(path))
}

/// A file name as it may stand in a list: itself, or quoted and escaped where it has bytes or signs that could pass
/// for something else, such as a line break.
pub(crate) fn shown(name: &OsStr) -> String {
    match name.to_str() {
        Some(text) if !text.chars().any(char::is_control) => text.to_string(),
        Some(_) | None => format!("{name:?}"),
    }
}

/// The names of a path, in small letters.
fn parts(path: &Path) -> Vec<String> {
    let part = |part| match part {
        Component::Normal(name) => Some(std::ffi::OsStr::to_string_lossy(name).to_lowercase()),
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => None,
    };
    path.components().filter_map(part).collect()
}

/// The same, where one is that of a copy the name of what was copied.
fn originals(path: &Path) -> Vec<String> {
    let original = |name: String| {
        let rest = COPIES.iter().find_map(|end| name.strip_suffix(end)).filter(|rest| !rest.is_empty());
        rest.map(String::from).unwrap_or(name)
    };
    parts(path).into_iter().map(original).collect()
}

fn find(table: &[(Name, &'static str)], parts: &[String]) -> Option<&'static str> {
    let fits = |name: &Name| match name {
        Name::Is(whole) => parts.iter().any(|part| part == whole),
        Name::Starts(start) => parts.iter().any(|part| part.starts_with(start)),
        Name::Ends(end) => parts.iter().any(|part| part.ends_with(end)),
        Name::Below(upper, lower) => {
            parts.iter().skip_while(|part| part.as_str() != *upper).skip(1).any(|part| part == lower)
        }
        Name::Pair(upper, lower) => parts.windows(2).any(|pair| matches!(pair, [a, b] if a == upper && b == lower)),
    };
    table.iter().find(|(name, _)| fits(name)).map(|(_, reason)| *reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str) -> String {
        let path = Path::new(path);
        [
            sensitive(path).map(|_| if key_material(path).is_some() { "key" } else { "secret" }),
            runs_unasked(path).map(|_| "unasked"),
            guides(path).map(|_| "guide"),
            runs_at_build(path).map(|_| "build"),
        ]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(" ")
    }

    #[test]
    fn names_are_known_at_any_depth_and_in_any_case() {
        for (path, wanted) in [
            ("src/main.rs", ""),
            ("environment.rs", ""),
            ("a/.env", "secret"),
            ("a/.ENV.local/x", "secret"),
            ("keys/Server.PEM", "key"),
            ("home/.ssh/known_hosts", "key"),
            ("id_ed25519.pub", "key"),
            ("credentials.rs", ""),
            (".aws/credentials", "secret"),
            ("vendor/x/.git/config", "secret unasked"),
            (".git/modules/deep/x/config", "secret unasked"),
            (".git/worktrees/x/config.worktree", "secret"),
            ("config/.git/HEAD", ""),
            (".Git/Hooks/pre-commit", "unasked"),
            (".github/workflows/ci.yml", "unasked"),
            (".github/README.md", ""),
            ("config", ""),
            ("prod.env", "secret"),
            ("Server.key.OLD", "key"),
            ("key.pem~", "key"),
            ("notes.bak", ""),
            ("infra/main.tfstate", "secret"),
            ("x.code-workspace", "unasked"),
            (".ssh/authorized_keys", "key unasked"),
            (".envrc", "secret unasked"),
            ("a/.dir-locals-2.el", "unasked"),
            ("sub/agents.md", "guide"),
            (".github/Copilot-instructions.md", "guide"),
            ("copilot-instructions.md", ""),
            ("my-AGENTS.md", ""),
            (".hg/hgrc", "unasked"),
            (".hg/dirstate", ""),
            (".lldbinit", "unasked"),
            (".appveyor.yml", "unasked"),
            (".cshrc", "unasked"),
            (".Rprofile", "unasked"),
            ("Makefile", "build"),
            ("sub/Build.rs", "build"),
        ] {
            assert_eq!(check(path), wanted, "{path}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn odd_names_are_escaped() {
        use std::os::unix::ffi::OsStrExt;
        assert_eq!(shown(OsStr::new("añb c")), "añb c");
        assert_eq!(shown(OsStr::new("a\nb")), "\"a\\nb\"");
        assert_eq!(shown(OsStr::from_bytes(b"a\xffb")), "\"a\\xFFb\"");
    }
}
