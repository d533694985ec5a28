//! Programs that run others, or whatever a repository says: a rule that leaves their words open would allow anything.
//! A notice and no wall: what is not named here is no safer for it.

/// In which way a program runs others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It runs a language: a shell, an interpreter, an editor with commands.
    Interpreter,
    /// It runs the command that it is given.
    Wrapper,
    /// It fetches programs and runs them.
    PackageManager,
    /// It runs what files of the workspace say.
    BuildTool,
    /// It has options or settings that run commands.
    Helper,
    /// It is a file of the workspace, which the agent can change.
    WorkspaceFile,
}

impl Kind {
    /// In a few words, after "is".
    pub fn phrase(self) -> &'static str {
        match self {
            Kind::Interpreter => "an interpreter, which runs what its words say",
            Kind::Wrapper => "a program that runs the command it is given",
            Kind::PackageManager => "a package manager, which runs what it fetches",
            Kind::BuildTool => "a build tool, which runs what files say",
            Kind::Helper => "a program with options that run commands",
            Kind::WorkspaceFile => "named by a path, where the agent may put another",
        }
    }

    /// Whether any of its words can be a program to run.
    pub fn runs_arguments(self) -> bool {
        match self {
            Kind::Interpreter | Kind::Wrapper => true,
            Kind::PackageManager | Kind::BuildTool | Kind::Helper | Kind::WorkspaceFile => false,
        }
    }
}

const INTERPRETERS: &[&str] = &[
    "sh", "bash", "dash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh", "ash", "busybox", "rbash", "pwsh", "powershell",
    "python", "pypy", "ipython", "perl", "ruby", "irb", "node", "nodejs", "deno", "bun", "php", "lua", "luajit", "tclsh",
    "wish", "expect", "awk", "gawk", "mawk", "nawk", "sed", "gsed", "ed", "ex", "vi", "vim", "nvim", "view", "emacs",
    "guile", "scheme", "racket", "sbcl", "clisp", "ghci", "runghc", "runhaskell", "ocaml", "elixir", "iex", "erl",
    "escript", "julia", "r", "rscript", "octave", "groovy", "scala", "kotlin", "jshell", "java", "swift", "osascript",
    "source", ".", "eval", "exec", "builtin", "command", "trap", "jq", "bc", "dc", "m4", "gdb", "lldb", "sqlite",
    "psql", "mysql", "ts-node", "tsx", "nu", "xonsh",
];

const WRAPPERS: &[&str] = &[
    "env", "xargs", "sudo", "doas", "su", "runuser", "pkexec", "nohup", "time", "timeout", "watch", "nice", "ionice",
    "chrt", "taskset", "setsid", "stdbuf", "unbuffer", "script", "strace", "ltrace", "perf", "valgrind", "chroot",
    "unshare", "nsenter", "setpriv", "setarch", "linux", "bwrap", "firejail", "flock", "parallel", "entr", "inotifywait",
    "systemd-run", "at", "batch", "crontab", "screen", "tmux", "faketime", "fakeroot", "proxychains", "numactl",
    "prlimit", "catchsegv", "dbus-run-session", "xvfb-run", "direnv", "mise", "asdf", "ld", "ld.so",
];

const PACKAGE_MANAGERS: &[&str] = &[
    "npm", "npx", "pnpm", "pnpx", "yarn", "bunx", "corepack", "pip", "pipx", "uv", "uvx", "poetry", "pdm", "hatch", "conda",
    "mamba", "gem", "bundle", "bundler", "composer", "cpan", "cpanm", "luarocks", "apt", "apt-get", "aptitude", "dpkg",
    "dnf", "yum", "rpm", "zypper", "pacman", "yay", "apk", "emerge", "brew", "port", "snap", "flatpak", "nix",
    "nix-shell", "nix-env", "nix-build", "guix", "cabal", "stack", "opam", "hex", "rustup", "nuget", "vcpkg", "conan",
];

const BUILD_TOOLS: &[&str] = &[
    "make", "gmake", "bmake", "cmake", "ctest", "ninja", "meson", "bazel", "bazelisk", "buck", "gradle", "gradlew", "mvn",
    "mvnw", "ant", "sbt", "lein", "rake", "just", "task", "tox", "nox", "invoke", "cargo", "rustc", "go", "dotnet",
    "msbuild", "xcodebuild", "mix", "rebar", "zig", "dune", "gulp", "grunt", "turbo", "nx", "lerna", "jest", "vitest",
    "mocha", "pytest", "scons", "waf", "autoconf", "automake", "configure", "gcc", "g++", "cc", "clang", "pre-commit",
    "ansible", "ansible-playbook", "terraform", "packer", "vagrant", "docker", "docker-compose", "podman", "buildah",
    "kubectl", "helm", "act",
];

const HELPERS: &[&str] = &[
    "git", "hg", "svn", "jj", "gh", "glab", "ssh", "scp", "sftp", "rsync", "mosh", "find", "fd", "fdfind", "rg", "tar",
    "bsdtar", "zip", "unzip", "7z", "cpio", "less", "more", "most", "man", "info", "sort", "split", "dd", "install", "ip",
    "tcpdump", "nmap", "nc", "ncat", "netcat", "socat", "curl", "wget", "openssl", "gpg", "rlwrap", "code", "mail",
    "sendmail", "systemctl", "journalctl", "tiller",
];

/// Whether a program runs others, and how; by its name, whatever its path, letters and version.
pub fn kind(program: &str) -> Option<Kind> {
    let name = program.rsplit('/').next().unwrap_or(program).to_ascii_lowercase();
    let name = name.strip_suffix(".exe").unwrap_or(&name);
    let bare = name.trim_end_matches(|sign: char| sign.is_ascii_digit() || sign == '.' || sign == '-');
    let lists = [
        (INTERPRETERS, Kind::Interpreter),
        (WRAPPERS, Kind::Wrapper),
        (PACKAGE_MANAGERS, Kind::PackageManager),
        (BUILD_TOOLS, Kind::BuildTool),
        (HELPERS, Kind::Helper),
    ];
    let named = lists.into_iter().find(|(names, _)| names.contains(&name) || names.contains(&bare));
    let is_path = program.contains('/') && !program.starts_with('/');
    named.map(|(_, kind)| kind).or(is_path.then_some(Kind::WorkspaceFile))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_known_in_any_clothes() {
        let check = |program: &str, expected: Option<Kind>| assert_eq!(kind(program), expected, "{program}");
        check("python3.11", Some(Kind::Interpreter));
        check("/usr/bin/python3", Some(Kind::Interpreter));
        check("BASH", Some(Kind::Interpreter));
        check("node.exe", Some(Kind::Interpreter));
        check("7z", Some(Kind::Helper));
        check("clang-17", Some(Kind::BuildTool));
        check("./bin/ls", Some(Kind::WorkspaceFile));
        check("/bin/ls", None);
        check("ls", None);
        check("rustfmt", None);
    }
}
