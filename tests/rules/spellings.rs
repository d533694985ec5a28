//! One command in all the spellings of a shell: a rule that denies finds it, and so does what looks for calls that
//! would take away what nobody means to lose.

use tiller::policy::catastrophe::catastrophe;

use crate::rules::line;
use crate::rules::stage::Stage;

const DENY: &str = "[[rule]]\neffect = \"deny\"\nargv = [\"rm\", \"-rf\", { any = \"rest\" }]\n";

/// Where CMD stands, a shell would run it.
const SPELLINGS: [&str; 158] = [
    "cd . && \\\n  CMD",
    "echo `# note`; CMD",
    "a[0]=x CMD",
    "CMD",
    "  CMD  ",
    "true; CMD",
    "true && CMD",
    "false || CMD",
    "true & CMD",
    "true\nCMD",
    "true | CMD",
    "true |& CMD",
    "# don't\nCMD",
    "A=1 B+=2 CMD",
    "A=(x y) CMD",
    "> out CMD",
    "2>&1 CMD",
    "/bin/CMD",
    "\\CMD",
    "(CMD)",
    "( true; CMD )",
    "{ CMD; }",
    "! CMD",
    "! { CMD; }",
    "time CMD",
    "time -p CMD",
    "time -f %e CMD",
    "git rebase -x 'CMD' HEAD",
    "git submodule foreach --recursive 'CMD'",
    "git bisect run CMD",
    "git -c alias.z='!CMD' z",
    "tar -xf a --to-command='CMD'",
    "rg --pre 'CMD' x",
    "nix-shell --run 'CMD'",
    "time -p -- CMD",
    "time { CMD; }",
    "coproc CMD",
    "coproc N { CMD; }",
    "if CMD; then true; fi",
    "if true; then CMD; fi",
    "if (true) then CMD; fi",
    "if ((1)) then CMD; fi",
    "if [[ a ]] then CMD; fi",
    "if { true; } then CMD; fi",
    "if false; then true; elif true; then CMD; else true; fi",
    "if false; then true; else CMD; fi",
    "while CMD; do true; done",
    "while true; do CMD; done",
    "until CMD; do true; done",
    "for x in a; do CMD; done",
    "for ((;;)) do CMD; done",
    "for x in a; { CMD; }",
    "select x in a; do CMD; done",
    "case a in a) CMD;; esac",
    "case a in (a) CMD;; esac",
    "case a in b) true;; a|c) CMD;; esac",
    "echo $(case a in a) CMD;; esac)",
    "echo $(case a in b) true;; a) CMD;; esac)",
    "f() { CMD; }; f",
    "f() (CMD); f",
    "f() while CMD; do true; done; f",
    "function f { CMD; }; f",
    "echo $(CMD)",
    "echo \"$(CMD)\"",
    "echo `CMD`",
    "echo \"`CMD`\"",
    "echo ${x:-$(CMD)}",
    "x=$(CMD)",
    "cat <(CMD)",
    "echo a > >(CMD)",
    "echo $((1 + $(CMD)))",
    "command CMD",
    "builtin command CMD",
    "exec CMD",
    "exec -a x CMD",
    "eval CMD",
    "eval 'CMD'",
    "eval \"true; CMD\"",
    "trap 'CMD' EXIT",
    "alias x='CMD'",
    "x='CMD'; $x",
    "export X='CMD'; $X",
    "nice -n 5 CMD",
    "env A=b CMD",
    "env -S 'CMD'",
    "sudo -u x CMD",
    "timeout 5 nohup CMD",
    "xargs CMD",
    "find . -exec CMD ;",
    "find . -name a -execdir sh -c 'CMD' \\;",
    "$SUDO CMD",
    "$(which env) CMD",
    "bash -c 'CMD'",
    "bash5 -c 'CMD'",
    "$SHELL -c 'CMD'",
    "sh -c \"bash -c 'CMD'\"",
    "flock f -c 'CMD'",
    "su - x -c 'CMD'",
    "sh <<E\nCMD\nE",
    "sh <<-E\n\tCMD\n\tE",
    "sh <<'E F'\nCMD\nE F",
    "cat <<\"E\" >x; sh x\nCMD\nE",
    "cat <<'E F'\ndon't\nE F\nCMD",
    "cat <<E\ndon't \"$(CMD)\nE",
    "cat <<A <<B\nx\nA\ny\nB\nCMD",
    "echo $((1<<E))\nCMD\nE",
    "bash <<< 'CMD'",
    "echo 'CMD' | sh",
    "echo $'\\'' ; CMD; echo '",
    "{fd}>y CMD",
    "env -S'CMD'",
    "env -iS'CMD' x",
    "su -c'CMD'",
    ". <(echo CMD)",
    ". <(printf 'CMD')",
    "ssh host CMD",
    "ssh -p 22 host CMD",
    "docker exec c CMD",
    "docker run --rm image CMD",
    "uv run CMD",
    "poetry run CMD",
    "pipenv run CMD",
    "npx CMD",
    "nix develop -c CMD",
    "run0 --user=x CMD",
    "xterm -e CMD",
    "xterm -T x -e 'CMD'",
    "sudo gnome-terminal -- bash -c 'CMD'",
    "konsole -e 'CMD'",
    "kitty CMD",
    "foot CMD",
    "wezterm start -- CMD",
    "mpirun -n 2 CMD",
    "mpiexec.hydra CMD",
    "srun -N1 --pty CMD",
    "sbatch --wrap='CMD'",
    "bsub 'CMD'",
    "torchrun --no-python CMD",
    "sg group -c 'CMD'",
    "sg group 'CMD'",
    "systemd-cat -t x CMD",
    "ip netns exec n CMD",
    "nix-shell -p p --run 'CMD'",
    "cargo run -q -- CMD",
    "capsh --drop=x -- -c 'CMD'",
    "just --command CMD",
    "jj util exec -- CMD",
    "git rebase --exec='CMD' HEAD",
    "git bisect run sh -c 'CMD'",
    "git submodule foreach CMD",
    "split --filter='CMD' x",
    "vim -es -c ':!CMD'",
    "vim '+!CMD' x",
    "apt-get -o DPkg::Pre-Invoke::='CMD' install x",
    "sops exec-env f 'CMD'",
    "concurrently 'CMD' ls",
    "distrobox enter x -- CMD",
    "ldd CMD",
];

#[test]
fn a_command_that_is_denied_is_found_in_every_spelling() {
    let stage = Stage::new(DENY);
    let played = |command: &str| {
        SPELLINGS.map(|spelling| spelling.replace("CMD", command)).map(|line| (stage.says(&line), line))
    };
    for (said, line) in played("rm -rf x") {
        assert_eq!(said, "refuse", "{line}");
    }
    for line in ["'r'\"m\" -rf x", "$'rm' -rf x", "r\\m $'\\x2drf' x", "$\"rm\" -rf x", "rm \\\n-rf x"] {
        assert_eq!(stage.says(line), "refuse", "{line}");
    }
    // The control: it is that command which is denied, and none of the spellings.
    for (said, line) in played("rm -r x") {
        assert_ne!(said, "refuse", "{line}");
    }
}

#[test]
fn what_nobody_means_to_lose_is_found_in_every_spelling() {
    let ruins = |command: &str, spelling: &str| {
        let facts = line::facts(&spelling.replace("CMD", command));
        catastrophe(&facts.line.unwrap(), &facts.touches).is_some()
    };
    for spelling in SPELLINGS {
        assert!(ruins("rm -rf /", spelling), "{spelling}");
        assert!(!ruins("rm -rf frob", spelling), "{spelling}");
    }
    // Also behind more words than are looked up.
    let many = format!("true {}; CMD", "a ".repeat(300));
    assert!(ruins("rm -rf /", &many));
}

#[test]
fn what_git_is_to_do_is_found_behind_its_own_options() {
    let stage = Stage::new("[[rule]]\neffect = \"deny\"\nargv = [\"git\", \"push\", { any = \"rest\" }]\n");
    for line in [
        "git push",
        "git -C . push",
        "git -c a=b --no-pager push",
        "sudo git --git-dir .git push x",
        "/usr/bin/git -P push",
    ] {
        assert_eq!(stage.says(line), "refuse", "{line}");
    }
    for line in ["git -C push status", "git status push", "git -C"] {
        assert_ne!(stage.says(line), "refuse", "{line}");
    }
}

#[test]
fn a_line_of_very_many_commands_is_compared_at_once() {
    let rules: String = (0..50).map(|one| DENY.replace("-rf", &format!("-{one}"))).collect();
    let stage = Stage::new(&rules);
    let begun = std::time::Instant::now();
    assert_eq!(stage.says(&"a;".repeat(65_000)), "ask");
    assert!(begun.elapsed().as_secs() < 60, "{:?}", begun.elapsed());
}

#[test]
fn words_that_are_only_said_are_no_commands() {
    let stage = Stage::new(DENY);
    for line in [
        "echo rm -rf x",
        "echo 'rm -rf x'",
        "grep 'rm -rf x' a",
        "git commit -m 'rm -rf x; no more'",
        "# rm -rf x",
        "rm -r -f x",
        "ls rm -rf",
        "cat rm -rf x",
        "npm install rm -rf x",
        "apt-get install rm -rf x",
    ] {
        assert_ne!(stage.says(line), "refuse", "{line}");
    }
}
