//! Programs that run others, or whatever a repository says: a rule that leaves their words open would allow anything.
//! A notice and no wall: what is not named here is no safer for it.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::domain::interpreters::INTERPRETERS;

/// Options that a program to run stands behind, whatever the program that has them.
const BEFORE_A_PROGRAM: [&str; 8] = ["-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"];

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

    /// Whether any of its words can name a program that it gets and runs, here or elsewhere.
    pub fn takes_programs(self) -> bool {
        self.runs_arguments() || self == Kind::PackageManager
    }

    /// Whether any of its words can be a program to run.
    pub fn runs_arguments(self) -> bool {
        match self {
            Kind::Interpreter | Kind::Wrapper => true,
            Kind::PackageManager | Kind::BuildTool | Kind::Helper | Kind::WorkspaceFile => false,
        }
    }
}

/// Programs that run the command they are given.
const WRAPPERS: &str = "env xargs sudo doas su runuser pkexec nohup time timeout watch nice ionice chrt taskset setsid stdbuf unbuffer \
    script strace ltrace perf valgrind chroot unshare nsenter setpriv setarch linux bwrap firejail flock parallel \
    entr inotifywait systemd-run at batch crontab screen tmux faketime fakeroot proxychains numactl prlimit \
    catchsegv dbus-run-session xvfb-run direnv mise asdf ld ld.so coproc i386 x86_64 uname26 gosu su-exec sg \
    newgrp runcon dzdo pfexec chpst softlimit envdir envuidgid setuidgid setlock daemonize start-stop-daemon dtach \
    abduco tmate zellij byobu caffeinate cpulimit cgexec choom eatmydata fakechroot torsocks torify hyperfine rr \
    heaptrack gdbserver schroot systemd-nspawn systemd-inhibit machinectl run-parts watchexec chronic ifne pee sem \
    nq tsp ccache distcc sccache icecc wine mono box64 dbus-launch ssh-agent gpg-agent xinit startx cage sshpass \
    autossh pssh foreman honcho overmind dotenv doppler aws-vault chamber nodemon pm2 bear scan-build coverage \
    proot apptainer singularity toolbox distrobox lxc-execute lxc-attach runc crun timelimit tini dumb-init rlwrap \
    gtimeout gnice genv gxargs gstdbuf nvm rbenv pyenv capsh ssh mosh \
    socat docker docker-compose podman buildah nerdctl kubectl minikube vagrant \
    logsave ksu aa-exec cross-env concurrently pexec npm-run-all ip run0 sudo-rs calife systemd-cat \
    systemd-socket-activate systemd-vmspawn mpirun mpiexec orterun prterun prun srun sbatch salloc qsub qrsh bsub jsrun \
    aprun ibrun flux condor_run xterm uxterm lxterm koi8rxvt urxvt urxvtc rxvt xvt aterm eterm mlterm st stterm kitty \
    kitten foot footclient alacritty wezterm ghostty gnome-terminal kgx ptyxis konsole yakuake guake terminator \
    terminology tilix xfce4-terminal mate-terminal lxterminal qterminal sakura roxterm cool-retro-term \
    x-terminal-emulator ttyd gotty tabbed asciinema ttyrec reptyr dvtm mtm zrun ldd samply py-spy kcov uftrace nsys \
    ncu rocprof rocprofv3 likwid-perfctr gprofng operf ocount coz multitime poop bytehound nyc c8 gotestsum nodenv goenv \
    plenv phpenv jenv luaenv swiftenv rvm chruby-exec n nvs fvm rsh remsh dsh pdsh clush parallel-ssh et distrobox-enter \
    toolbx lxc incus multipass limactl lima ctr crictl arch-chroot artix-chroot nsjail minijail0 landrun gamemoderun \
    mangohud gamescope primusrun optirun prime-run vglrun umu-run proton uclampset coresched schedtool cset trickle tsocks \
    dockerize wait-for-it wait-for wait4x envchain envconsul etcdctl consul teller infisical dotenvx summon op with-contenv \
    s6-setuidgid s6-envdir s6-softlimit s6-applyuidgid retry viddy hwatch reflex gow modd onchange chokidar pueue detach \
    daemon forever xe rargs debugserver scriptlive faketty watchman-make nocache ts wsl salt salt-ssh salt-call";
/// Programs that fetch others.
const PACKAGE_MANAGERS: &str = "npm npx pnpm pnpx yarn bunx corepack pip pipx uv uvx poetry pdm hatch conda mamba gem bundle bundler composer \
    cpan cpanm luarocks apt apt-get aptitude dpkg dnf yum rpm zypper pacman yay apk emerge brew port snap flatpak \
    nix nix-shell nix-env nix-build guix cabal stack opam hex rustup nuget vcpkg conan ni nix-store \
    nix-instantiate rye pixi micromamba easy_install volta fnm sdk pkg xbps-install swupd paru microdnf alien choco \
    scoop winget pod carthage mint ghcup raco pub pipenv spack devbox devenv flox pkgx tea hermit proto aqua vfox \
    rpm-ostree tdnf";
/// Programs that run what files say.
const BUILD_TOOLS: &str = "make gmake bmake cmake ctest ninja meson bazel bazelisk buck gradle gradlew mvn mvnw ant sbt lein rake just \
    task tox nox invoke cargo rustc go dotnet msbuild xcodebuild mix rebar zig dune gulp grunt turbo nx lerna jest \
    vitest mocha pytest scons waf autoconf automake configure gcc g++ cc clang pre-commit ansible ansible-playbook \
    terraform packer helm act clang++ c++ cpp gfortran gccgo \
    gdc ldc2 dmd icc icx nvcc emcc em++ rustdoc mill pants please xmake premake qmake nmake tup redo b2 bjam samu \
    gn node-gyp earthly dagger pulumi terragrunt tofu puppet chef skaffold tilt vite webpack rollup parcel esbuild \
    karma cypress playwright rspec phpunit latexmk cookiecutter libtool autoreconf cargo-make \
    kind serverless sam cdk tsc ninja-build eslint prettier rubocop pylint flake8 mypy rust-analyzer lefthook husky \
    mkdocs sphinx-build flutter clang-tidy ld yosys c89 c99 snakemake fab doit mage \
    inv gotask debuild dpkg-buildpackage dpkg-source pdebuild sbuild pbuilder cowbuilder gbp dh debrelease dput rpmbuild \
    rpmspec mock makepkg makechrootpkg abuild checkinstall fpm nfpm mkosi debootstrap mmdebstrap flatpak-builder snapcraft \
    ebuild equivs-build dracut mkinitcpio update-initramfs goreman hivemind forego procodile process-compose supervisord \
    tmuxp tmuxinator teamocil air guard rush ginkgo trial nosetests nose2 stestr ava tap jasmine cucumber behave robot \
    lit llvm-lit codecept behat goreleaser melange ko  semantic-release vhs dbt airflow \
    ng vue react-scripts next nuxt astro wrangler vercel netlify firebase gitlab-runner drone woodpecker-cli \
    thor chef-client chef-solo kustomize lint-staged bower ember svelte-kit remix javac swc";
/// Programs with options or settings that run others.
const HELPERS: &str = "git hg svn jj gh glab scp sftp rsync find fd fdfind rg tar bsdtar zip unzip 7z cpio less more most \
    man info sort split dd install tcpdump nmap nc ncat netcat curl wget openssl gpg code mail sendmail \
    systemctl journalctl tiller ag ack ugrep bfs lftp rclone restic borg ansible-vault sops pass gopass ssh-keygen \
    ssh-add gzip xz zstd vimdiff ctags fzf sk mutt lynx w3m elinks xdg-open sensible-editor sensible-pager \
    logrotate tshark iptables ip6tables tc mount bat delta patch emacsclient protoc pandoc cscope convert magick \
    ffmpeg dmenu ug pcre2grep gtar star 7za 7zr 7zz sdiff diff3 apt-cache apt-config apt-mark apt-ftparchive apt-file \
    dpkg-deb dpkg-reconfigure dpkg-preconfigure debconf unattended-upgrade needrestart rpmkeys modprobe quilt vidir vipe \
    visudo vipw vigr sudoedit ftp telnet mailx s-nail vifm ranger nnn lf mc yazi rofi wofi fuzzel pprof \
    loginctl incrontab sshfs mpv vlc anacron cron gcore aws gcloud az";
/// Begins the name of every subcommand of cargo that is a program of its own.
const OF_CARGO: &str = "cargo-";
/// Begins the name of every program that runs others for another machine.
const FOR_ANOTHER_MACHINE: &str = "qemu-";
/// Words of a package manager behind which stands a program that it runs; and those that do nothing else.
const RUNNING: [&str; 20] = [
    "run",
    "exec",
    "x",
    "dlx",
    "runx",
    "shell",
    "develop",
    "env",
    "-c",
    "--command",
    "--run",
    "--call",
    "--",
    "npx",
    "pnpx",
    "bunx",
    "uvx",
    "nix-shell",
    "pipx",
    "corepack",
];
/// The same of some other programs.
const RUNNING_OF: [(&str, &str); 6] =
    [("cargo", "--"), ("just", "-c --command"), ("jj", "exec"), ("lerna", "exec"), ("nx", "exec"), ("tox", "exec")];
/// Words of the shell that are no programs, so that only a shell can run them. `cd` is none of them: a plain line may begin
/// with it.
const OF_SHELL: &str = ". : alias bg bind break builtin caller command compgen complete compopt continue declare dirs disown \
    enable eval exec exit export fc fg getopts hash history jobs let local logout mapfile popd pushd read readarray readonly \
    return set shift shopt source suspend times trap type typeset ulimit umask unalias unset wait if then else elif fi \
    for while until do done case esac select function coproc { } ! [[ ((";
/// Programs that remove, move or replace what they are given, or take rights: one word more is another loss.
const RUINOUS: &str = "rm rmdir unlink mv cp ln install shred srm dd truncate tee chmod chown chgrp chattr setfacl git hg svn jj rsync rename \
    mkfs wipefs mkswap parted fdisk mount umount kill pkill killall find fd fdfind sed perl tar unzip crontab systemctl \
    docker podman kubectl helm terraform tofu trash trash-put trash-empty apt apt-get dnf yum pacman npm pip";
/// Endings of another build of the same program.
const BUILDS: &[&str] = &["-static", "-posix", "-win32", "-dbg", "-debug", "-nox", "-gtk", "-nightly"];
/// Programs that stand behind the name of the machine that they work for: `x86_64-linux-gnu-gcc`.
const FOR_MACHINES: &[&str] =
    &["gcc", "g++", "cc", "c++", "cpp", "clang", "clang++", "gfortran", "gdb", "ld", "perl", "python"];

/// Whether a program runs others, and how; by its name, whatever its path, letters, version, build and machine.
pub fn kind(program: &str) -> Option<Kind> {
    let name = program.rsplit('/').next().unwrap_or(program).to_ascii_lowercase();
    let is_path = program.contains('/') && !program.starts_with('/');
    names(&name).into_iter().find_map(listed).or(is_path.then_some(Kind::WorkspaceFile))
}

/// Whether a program removes, moves or replaces what it is given: a rule with a word open is not offered for it.
pub fn ruins(program: &str) -> bool {
    let name = program.rsplit('/').next().unwrap_or(program).to_ascii_lowercase();
    names(&name).into_iter().any(|name| name.starts_with("mkfs.") || has(RUINOUS, name))
}

/// Whether only a shell can run what this word says.
pub fn is_of_shell(word: &str) -> bool {
    has(OF_SHELL, word)
}

fn has(names: &str, name: &str) -> bool {
    names.split_whitespace().any(|one| one == name)
}

/// Whether the program at this place of a command is one that it runs, as far as that is seen: the first word is, any word of
/// what runs the command it is given may be, and a package manager runs what stands behind some of its words, as some others do.
pub fn runs(argv: &[String]) -> impl Iterator<Item = usize> + '_ {
    let program = argv.first().map_or("", String::as_str);
    let kind = kind(program);
    // What stands for a program can be any; and an option without its program is one of `time`.
    let is_any = program.starts_with(['$', '…', '-']) || kind.is_some_and(Kind::runs_arguments);
    let is_manager = kind == Some(Kind::PackageManager);
    let base = program.rsplit('/').next().unwrap_or(program);
    let own = RUNNING_OF.iter().find(|(name, _)| *name == base).map_or("", |(_, words)| words);
    let mut is_behind = false;
    let mut before = "";
    argv.iter().enumerate().filter_map(move |(place, word)| {
        let is_run = place == 0 || is_any || is_behind || BEFORE_A_PROGRAM.contains(&before);
        before = word;
        let name = if place == 0 { word.rsplit('/').next().unwrap_or(word) } else { word };
        is_behind |= (is_manager && RUNNING.contains(&name)) || has(own, name);
        is_run.then_some(place)
    })
}

/// The words of git from its command on: behind the options of git itself, some of which have a value in the next word.
pub fn git_command(words: &[String]) -> Option<&[String]> {
    let mut from = 0;
    loop {
        from += match words.get(from)?.as_str() {
            "-C" | "-c" | "--git-dir" | "--work-tree" | "--namespace" | "--config-env" | "--attr-source" => 2,
            option if option.starts_with('-') => 1,
            _ => return words.get(from..),
        };
    }
}

/// All programs of the lists. A name that is in several is of the first.
static LISTED: LazyLock<BTreeMap<&'static str, Kind>> = LazyLock::new(|| {
    let lists = [
        (HELPERS, Kind::Helper),
        (BUILD_TOOLS, Kind::BuildTool),
        (PACKAGE_MANAGERS, Kind::PackageManager),
        (WRAPPERS, Kind::Wrapper),
        (INTERPRETERS, Kind::Interpreter),
    ];
    lists.into_iter().flat_map(|(names, kind)| names.split_whitespace().map(move |name| (name, kind))).collect()
});

fn listed(name: &str) -> Option<Kind> {
    match name {
        _ if name.starts_with(OF_CARGO) => Some(Kind::BuildTool),
        _ if name.starts_with(FOR_ANOTHER_MACHINE) => Some(Kind::Wrapper),
        _ => LISTED.get(name).copied(),
    }
}

/// What a program may be called, without all that tells it from others of its kind: its own name first.
fn names(name: &str) -> Vec<&str> {
    // `vim.basic`, `busybox.static`, `node.exe`; `ld-linux-x86-64.so.2`
    let first = match name.starts_with("ld-") && name.contains(".so") {
        true => "ld.so",
        false => name.split('.').next().unwrap_or(name),
    };
    let build = BUILDS.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name);
    // `python3.13t`, `perl5.36-x86_64-linux-gnu`, `clang++-17`
    let unversioned = |name: &str| -> usize {
        let digits = name.find(|sign: char| sign.is_ascii_digit()).unwrap_or(name.len());
        name.get(..digits).unwrap_or(name).trim_end_matches(['-', '.', '_']).len()
    };
    let machine = build.match_indices('-').filter_map(|(at, _)| build.get(at + 1..)).find(|rest| {
        let bare = rest.get(..unversioned(rest)).unwrap_or(rest);
        FOR_MACHINES.contains(&bare)
    });
    let mut all = Vec::new();
    for name in [name, first, build].into_iter().chain(machine) {
        for name in [name, name.get(..unversioned(name)).unwrap_or(name)] {
            if !name.is_empty() && !all.contains(&name) {
                all.push(name);
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kind_of: Option<Kind>, programs: &str) {
        for program in programs.split_whitespace() {
            assert_eq!(kind(program), kind_of, "{program}");
        }
    }

    #[test]
    fn a_program_is_known_in_any_clothes() {
        check(
            Some(Kind::Interpreter),
            "python3.11 /usr/bin/python3 BASH node.exe python3.13t python3.11-dbg busybox.static bash-static pypy3 node22
            nodejs ruby3.1 perl5.36.0 perl5.36-x86_64-linux-gnu bash5 ksh93 gawk mawk mawk-1.3 tclsh8.6 lua5.4 php8.2
            deno bun gdb expect vim.basic emacs-nox x86_64-linux-gnu-gdb x86_64-linux-gnu-perl trap eval . jq",
        );
        check(
            Some(Kind::Wrapper),
            "strace script flock parallel entr watchexec unshare chroot setpriv systemd-run linux32 i386 x86_64 coproc
            env nice time ld-linux-x86-64.so.2 ld.so sudo.ws logsave ksu aa-exec qemu-x86_64 cross-env concurrently",
        );
        check(
            Some(Kind::Wrapper),
            "run0 mpirun mpiexec.hydra srun sbatch xterm kitty foot alacritty wezterm gnome-terminal konsole ldd systemd-cat sg
            ip st py-spy lxc samply nodenv pdsh",
        );
        check(
            Some(Kind::Interpreter),
            "torchrun accelerate es pdb pdb3 rvim gvim rust-gdb gdb-multiarch dlv jupyter bats uvicorn",
        );
        check(Some(Kind::BuildTool), "debuild rpmbuild dpkg-buildpackage makepkg robot javac");
        check(Some(Kind::Helper), "apt-cache modprobe visudo ftp gcloud");
        check(Some(Kind::PackageManager), "npx uvx pnpx npm.cmd pip3.11 nix-shell pipenv");
        check(
            Some(Kind::BuildTool),
            "clang++ clang-17 clang++-17 g++-12 gcc.real x86_64-linux-gnu-gcc x86_64-linux-gnu-gcc-12 arm-none-eabi-g++
            musl-gcc x86_64-w64-mingw32-gcc-posix go1.22 c++ cargo-clippy
            cargo-fmt /home/x/.cargo/bin/cargo-anything",
        );
        check(Some(Kind::BuildTool), "c89 c99 snakemake fab doit mage");
        check(Some(Kind::Interpreter), "tcc sash jrunscript");
        check(Some(Kind::Helper), "7z 7za git nc.openbsd gpg2 ug pcre2grep gtar sdiff");
        check(Some(Kind::WorkspaceFile), "./bin/ls bin/x");
        let ruinous = |programs: &str| programs.split_whitespace().all(ruins);
        assert!(ruinous("rm /bin/mv rmdir shred dd truncate chmod chown git cp mkfs.ext4 GIT"));
        assert!(!["cargo", "make", "ls", "rustfmt", "frob"].into_iter().any(ruins));
        check(None, "/bin/ls ls rustfmt sha256sum md5sum base64 git-lfs 2to3 frob frob-2.0 a-b-c -");
    }
}
