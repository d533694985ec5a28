//! Lines that a command which is no shell carries in its words, to be run by a shell or by itself: `git rebase -x LINE`. One
//! list of programs and words; what is not in it is no safer for it.

/// Programs, and the options whose value is a line. Long ones may be shortened, and may have their value behind a `=`.
const OPTIONS: [(&str, &str); 16] = [
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
];
const TAR: &str = "-I --use-compress-program --to-command --checkpoint-action -F --info-script --new-volume-script \
     --rsh-command --rmt-command";
/// Words of git behind which a line follows, word by word or in one.
const OF_GIT: [[&str; 2]; 2] = [["submodule", "foreach"], ["bisect", "run"]];

/// The lines that a command carries, as far as they are known.
pub(crate) fn lines(argv: &[String]) -> Vec<String> {
    let Some((program, words)) = argv.split_first() else { return Vec::new() };
    let program = program.rsplit('/').next().unwrap_or(program);
    let known = OPTIONS.iter().find(|(name, _)| *name == program);
    let Some((_, options)) = known else { return Vec::new() };
    let of_options = words.iter().enumerate().filter_map(|(at, word)| {
        let (option, value) = match word.split_once('=') {
            Some((option, value)) if word.starts_with("--") => (option, Some(value)),
            Some(_) | None => (word.as_str(), None),
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

/// Whether an option is one of these, or a beginning of a long one.
fn is_one_of(options: &str, option: &str) -> bool {
    let is_short_of = |name: &str| option.len() > 3 && option.starts_with("--") && name.starts_with(option);
    options.split_whitespace().any(|name| name == option || is_short_of(name))
}

/// The line in a value: `exec=LINE` of tar, `alias.x=!LINE` and `core.pager=LINE` of git, `shell LINE` of gdb.
fn bare(value: &str) -> &str {
    let value = match value.split_once('=') {
        Some((name, rest)) if !name.contains(char::is_whitespace) => rest,
        Some(_) | None => value,
    };
    let value = value.strip_prefix("shell ").unwrap_or(value);
    value.trim_start_matches('!')
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
        ] {
            assert_eq!(carried(line), "rm x", "{line}");
        }
        for line in ["git|commit|-m|rm x", "rg|-e|rm x", "rg|-x|rm x", "ls|--exec|rm x", "tar|-xf|rm x", "git"] {
            assert_eq!(carried(line), "", "{line}");
        }
    }
}
