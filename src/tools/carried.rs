//! Lines that a command carries in its words, to be run by a shell or by itself: `sh -c LINE`, `git rebase -x LINE`. Lists of
//! programs and words; what is not in them is no safer for it.

use std::collections::BTreeSet;
use std::sync::LazyLock;

/// Programs, and words of the shell, that run a line which they are given as a word, or read, or keep it to be run.
const RUN_A_LINE: &str = "sh bash dash zsh ksh mksh ash yash fish csh tcsh rbash busybox toybox nu xonsh elvish pwsh eval trap alias \
     source ssh su runuser env watch watchexec parallel script flock entr tmux screen expect unbuffer at batch crontab \
     hyperfine export declare typeset local readonly sg capsh xterm uxterm lxterm urxvt rxvt gnome-terminal konsole \
     xfce4-terminal mate-terminal lxterminal qterminal terminator tilix kitty wezterm alacritty st x-terminal-emulator \
     concurrently nodemon onchange chokidar reflex hwatch viddy bsub qsub salloc pdsh pssh clush dsh sops asciinema \
     parallel-ssh mosh tmuxp nq pueue";
/// Programs, and the options whose value is a line. Long ones may be shortened, and may have their value behind a `=`.
const OPTIONS: [(&str, &str); 34] = [
    (
        "git",
        "-x --exec --tree-filter --index-filter --msg-filter --env-filter --commit-filter --parent-filter --tag-name-filter \
         --setup --upload-pack --receive-pack --extcmd -c",
    ),
    ("tar", TAR),
    ("gtar", TAR),
    ("bsdtar", "--use-compress-program"),
    ("rg", "--pre --hostname-bin"),
    ("sort", "--compress-program"),
    ("rsync", "-e --rsh --rsync-path"),
    ("scp", "-S -D"),
    ("sftp", "-S -D"),
    ("nix-shell", "--run --command"),
    ("nix", "-c --command"),
    ("man", "-P --pager"),
    ("fzf", "--preview"),
    ("zip", "-TT --unzip-command"),
    ("gdb", "-ex --eval-command"),
    ("make", "--eval"),
    ("just", "-c --command"),
    ("split", "--filter"),
    ("sbatch", "--wrap"),
    ("ansible", "-a --args"),
    ("hg", "--config"),
    ("dpkg", "--pre-invoke --post-invoke"),
    ("apt", "-o --option"),
    ("apt-get", "-o --option"),
    ("aptitude", "-o"),
    ("vim", EDITOR),
    ("vi", EDITOR),
    ("rvim", EDITOR),
    ("gvim", EDITOR),
    ("view", EDITOR),
    ("nvim", EDITOR),
    ("ex", EDITOR),
    ("less", "+"),
    ("lldb", "-o --one-line -O --one-line-before-file"),
];
/// The line stands in the word itself behind a `+`.
const EDITOR: &str = "-c --cmd +";
const TAR: &str = "-I --use-compress-program --to-command --checkpoint-action -F --info-script --new-volume-script \
     --rsh-command --rmt-command";
/// Words of git behind which a line follows, word by word or in one.
const OF_GIT: [[&str; 2]; 2] = [["submodule", "foreach"], ["bisect", "run"]];

/// The lines that a command carries, as far as they are known.
pub(crate) fn lines(argv: &[String]) -> Vec<String> {
    let Some((program, words)) = argv.split_first() else { return Vec::new() };
    let program = base(program);
    let known = OPTIONS.iter().find(|(name, _)| *name == program);
    let Some((_, options)) = known else { return Vec::new() };
    let of_options = words.iter().enumerate().filter_map(|(at, word)| {
        let (option, value) = match (word.split_once('='), word.strip_prefix('+')) {
            (_, Some(value)) => ("+", Some(value)),
            (Some((option, value)), None) if word.starts_with("--") => (option, Some(value)),
            (Some(_) | None, None) => (word.as_str(), None),
        };
        let value = value.or_else(|| words.get(at + 1).map(String::as_str));
        value.filter(|_| is_one_of(options, option)).map(|value| bare(value).to_string())
    });
    let mut lines: Vec<String> = of_options.collect();
    if program == "git" {
        let behind = words.windows(2).position(|pair| OF_GIT.iter().any(|two| pair == two));
        let behind = behind.and_then(|at| words.get(at + 2..)).unwrap_or_default();
        let is_line = |word: &&String| !word.starts_with('-');
        lines
            .extend(behind.iter().position(|word| is_line(&word)).and_then(|at| behind.get(at..)).map(|l| l.join(" ")));
    }
    lines
}

/// The same, one by one: every word of a line is looked up.
static RUNNERS: LazyLock<BTreeSet<&str>> = LazyLock::new(|| RUN_A_LINE.split_whitespace().collect());

/// Whether a word is the name of a program that runs a line, of any version.
pub(crate) fn runs_a_line(word: &str) -> bool {
    let name = base(word);
    let bare = name.trim_end_matches(|sign: char| sign.is_ascii_digit() || sign == '.' || sign == '-');
    RUNNERS.contains(name) || (bare.len() < name.len() && RUNNERS.contains(bare))
}

/// The last component of the name of a program.
pub(crate) fn base(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// Whether an option is one of these, or a beginning of a long one.
fn is_one_of(options: &str, option: &str) -> bool {
    let is_short_of = |name: &str| option.len() > 3 && option.starts_with("--") && name.starts_with(option);
    options.split_whitespace().any(|name| name == option || is_short_of(name))
}

/// The line in a value: `exec=LINE` of tar, `alias.x=!LINE` and `core.pager=LINE` of git, `shell LINE` of gdb, `:!LINE` of vim.
fn bare(value: &str) -> &str {
    let value = match value.split_once('=') {
        Some((name, rest)) if !name.contains(char::is_whitespace) => rest,
        Some(_) | None => value,
    };
    let value = ["platform shell ", "shell "].iter().find_map(|word| value.strip_prefix(word)).unwrap_or(value);
    value.trim_start_matches([':', '!'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_command_carries_is_a_line() {
        let carried = |line: &str| {
            let argv: Vec<String> = line.split('|').map(String::from).collect();
            lines(&argv).join(" // ")
        };
        for line in [
            "git|rebase|-x|rm x|HEAD~3",
            "git|-C|sub|rebase|--exec=rm x",
            "git|-c|alias.z=!rm x|z",
            "git|-c|core.pager=rm x|log",
            "git|submodule|foreach|--recursive|rm x",
            "git|submodule|foreach|rm|x",
            "git|bisect|run|rm|x",
            "git|filter-branch|--tree-f|rm x|HEAD",
            "/bin/tar|-xf|a|--to-command=rm x",
            "tar|-cf|a|--checkpoint-action=exec=rm x",
            "tar|-I|rm x|-xf|a",
            "rg|--pre|rm x|y",
            "gdb|-ex|shell rm x",
            "nix-shell|-p|hello|--run|rm x",
            "split|--filter=rm x|y",
            "sbatch|--wrap=rm x",
            "vim|-es|-c|:!rm x",
            "less|+!rm x|y",
            "lldb|-o|platform shell rm x",
            "apt-get|-o|DPkg::Pre-Invoke::=rm x|install|y",
        ] {
            assert_eq!(carried(line), "rm x", "{line}");
        }
        for line in [
            "git|commit|-m|rm x",
            "rg|-e|rm x",
            "rg|-x|rm x",
            "ls|--exec|rm x",
            "tar|-xf|rm x",
            "git",
            "date|+rm x",
            "vim|rm x",
        ] {
            assert_eq!(carried(line), "", "{line}");
        }
    }
}
