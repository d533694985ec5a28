//! What of git only reads. It obeys the configuration of the repository, so it is only let run in an ordinary one that
//! lies in the workspace, with the switches of `tools/pipeline.rs`, and never unconfined.

use crate::domain::line::Named;
use crate::policy::table::Entry;
use crate::policy::table::Operands;
use crate::policy::table::Words;

/// A format that makes git run the program that checks signatures.
const SIGNATURES: &str = "%G";

/// Options that show contents, or tell by what is shown whether a text is in them.
const CONTENTS: &[&str] =
    &["p", "u", "m", "c", "S", "G", "--patch", "--unified", "--cc", "--check", "--word-diff", "--function-context"];
/// Options that show something else in the place of contents.
const SUMMARIES: &[&str] = &[
    "s",
    "--no-patch",
    "--stat",
    "--shortstat",
    "--numstat",
    "--name-only",
    "--name-status",
    "--raw",
    "--summary",
    "--dirstat",
    "--quiet",
];

/// Options that stand for revisions: more than the operands are shown.
const REVISIONS: &[&str] = &["--all", "--branches", "--tags", "--remotes"];

const GIT: Entry = Entry {
    name: "",
    flags: "",
    valued: "",
    long: &[],
    long_valued: &[],
    long_maybe: &[],
    has_digits: false,
    operands: Operands::Revisions,
};

/// What commits, and differences between them, may be shown with.
const SHOWN: Entry = Entry {
    flags: "piswbuzmcRaEFPMC",
    valued: "nSG",
    long: &[
        "--oneline",
        "--shortstat",
        "--numstat",
        "--name-only",
        "--name-status",
        "--graph",
        "--all",
        "--no-decorate",
        "--merges",
        "--no-merges",
        "--first-parent",
        "--reverse",
        "--patch",
        "--no-patch",
        "--follow",
        "--abbrev-commit",
        "--no-abbrev-commit",
        "--date-order",
        "--topo-order",
        "--summary",
        "--full-history",
        "--left-right",
        "--branches",
        "--tags",
        "--remotes",
        "--no-color",
        "--raw",
        "--minimal",
        "--patience",
        "--histogram",
        "--ignore-all-space",
        "--ignore-space-change",
        "--ignore-blank-lines",
        "--check",
        "--text",
        "--cc",
        "--cached",
        "--staged",
        "--merge-base",
        "--exit-code",
        "--quiet",
        "--no-renames",
        "--no-ext-diff",
        "--no-textconv",
        "--function-context",
        "--pickaxe-regex",
    ],
    long_maybe: &[
        "--format",
        "--since",
        "--until",
        "--after",
        "--before",
        "--author",
        "--committer",
        "--grep",
        "--max-count",
        "--skip",
        "--date",
        "--diff-filter",
        "--unified",
        "--stat",
        "--decorate",
        "--color",
        "--abbrev",
        "--pretty",
        "--word-diff",
        "--find-renames",
        "--dirstat",
    ],
    has_digits: true,
    ..GIT
};

const SUBCOMMANDS: &[Entry] = &[
    Entry {
        name: "status",
        flags: "sbvz",
        long: &[
            "--short",
            "--branch",
            "--long",
            "--verbose",
            "--show-stash",
            "--ahead-behind",
            "--no-ahead-behind",
            "--renames",
            "--no-renames",
            "-uno",
            "-unormal",
            "-uall",
        ],
        long_maybe: &["--porcelain", "--untracked-files", "--ignored", "--column"],
        ..GIT
    },
    Entry { name: "log", ..SHOWN },
    Entry { name: "diff", ..SHOWN },
    Entry { name: "show", ..SHOWN },
    Entry {
        name: "branch",
        flags: "avr",
        long: &["--list", "--all", "--remotes", "--verbose", "--show-current", "--no-color"],
        long_maybe: &["--color", "--sort", "--format", "--contains", "--no-contains", "--merged", "--no-merged"],
        operands: Operands::Listed,
        ..GIT
    },
    Entry {
        name: "rev-parse",
        flags: "q",
        long: &[
            "--show-toplevel",
            "--git-dir",
            "--absolute-git-dir",
            "--is-inside-work-tree",
            "--is-bare-repository",
            "--verify",
            "--quiet",
            "--show-prefix",
            "--show-cdup",
            "--symbolic-full-name",
            "--all",
        ],
        long_maybe: &["--short", "--abbrev-ref"],
        ..GIT
    },
    Entry {
        name: "ls-files",
        flags: "comdsuktvz",
        long: &[
            "--cached",
            "--others",
            "--modified",
            "--deleted",
            "--stage",
            "--exclude-standard",
            "--full-name",
            "--error-unmatch",
            "--unmerged",
            "--killed",
            "--directory",
        ],
        ..GIT
    },
    Entry {
        name: "blame",
        flags: "lwsetnpcfbMC",
        valued: "L",
        long: &["--porcelain", "--line-porcelain"],
        long_maybe: &["--date", "--since"],
        ..GIT
    },
];

pub(super) fn judge(words: &Words<'_>) -> Result<(), String> {
    let Some((name, arguments)) = words.arguments.split_first() else {
        return Err("git without a subcommand is not listed".to_string());
    };
    let entry = SUBCOMMANDS.iter().find(|entry| entry.name == name);
    let entry = entry.ok_or_else(|| format!("git {name} is not listed as what only reads"))?;
    // git takes the value of `-U` only from the same word.
    let is_context = |word: &&String| {
        word.strip_prefix("-U")
            .is_some_and(|lines| !lines.is_empty() && lines.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let has_context = arguments.iter().any(|word| is_context(&word));
    let arguments: Vec<String> = arguments.iter().filter(|word| !is_context(word)).cloned().collect();
    let arguments = arguments.as_slice();
    if arguments.iter().any(|word| word.contains(SIGNATURES)) {
        return Err("git runs another program to check signatures".to_string());
    }
    let of_git = words.touches.iter().filter(|touch| touch.command == words.command && touch.word == "git");
    let (mut is_known, mut secret) = (false, None);
    for touch in of_git {
        match &touch.named {
            Named::Obeys(why) => return Err(why.clone()),
            Named::Repository => is_known = true,
            Named::Tracked(why) => (is_known, secret) = (true, Some(why)),
            Named::Missing | Named::File | Named::Folder { .. } => {}
            Named::Outside | Named::Sensitive(_) | Named::Refused => {}
        }
    }
    if !is_known {
        return Err("git would find no ordinary repository in the workspace".to_string());
    }
    let words = Words { name, arguments, command: words.command, touches: words.touches };
    revisions(&words)?;
    entry.judge(&words)?;
    match secret.filter(|_| shows_contents(entry, &words, has_context)) {
        Some(why) => Err(format!("git {name} may show contents of the repository, and {why}")),
        None => Ok(()),
    }
}

/// Whether a line may show what is in files that it does not name.
fn shows_contents(entry: &Entry, words: &Words<'_>, has_context: bool) -> bool {
    let Ok((options, operands)) = entry.sort(words) else { return true };
    let has = |listed: &[&str]| options.iter().any(|option| listed.contains(option));
    let has_paths = words.arguments.iter().any(|word| word == "--");
    match entry.name {
        "status" => has(&["v", "--verbose"]),
        "log" => has_context || has(CONTENTS),
        "diff" => has_context || has(CONTENTS) || !has(SUMMARIES),
        // A number may be that of a file, which is shown whatever the options. A path in a revision was looked at.
        "show" => has_paths || has(REVISIONS) || operands.is_empty() || !operands.iter().all(|word| is_one_path(word)),
        // One file, which was looked at, or no file.
        _ => false,
    }
}

/// Whether a word is `REVISION:PATH` and nothing else: a path in a revision, which was looked at, and no pattern.
fn is_one_path(word: &str) -> bool {
    let is_plain = |part: &str| {
        !part.is_empty() && part.chars().all(|one| one.is_ascii_alphanumeric() || "._/~^@+-".contains(one))
    };
    word.split_once(':').is_some_and(|(revision, path)| {
        is_plain(revision) && is_plain(path) && !path.ends_with('/') && !word.contains("..")
    })
}

/// Whether revisions and paths lead to nothing special, on the disk or by the name that they have in a revision. Values
/// of options are looked at as if they were operands: which options of git take the next word is not for us to know.
fn revisions(words: &Words<'_>) -> Result<(), String> {
    for word in words.arguments.iter().filter(|word| !word.starts_with('-')) {
        if word.starts_with(':') {
            return Err(format!("{word} is a pattern of git's own"));
        }
        // The text or the time of a revision may have a colon, too.
        let behind = word.match_indices(':').filter_map(|(at, _)| word.get(at + 1..)).filter(|path| !path.is_empty());
        std::iter::once(word.as_str()).chain(behind).try_for_each(|part| words.place(part))?;
    }
    Ok(())
}
