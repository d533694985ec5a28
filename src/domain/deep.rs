//! Programs that show what lies below a folder down to its last file. One list for those who look what lies there, and for
//! those who judge a rule that leaves words of such a program open; what is not in it is no safer for it.

/// They search, compare or pack whole folders.
const DEEP: &str = "grep egrep fgrep rgrep zgrep zegrep zfgrep bzgrep xzgrep lzgrep zstdgrep pcregrep pcre2grep agrep sgrep hgrep \
    rg ack ag ugrep ug sift pt semgrep gitleaks trufflehog codespell diff diff3 sdiff colordiff icdiff diffoscope kdiff3 \
    meld rga ast-grep sg comby typos cspell detect-secrets git-secrets exiftool tar gtar bsdtar star pax cpio shar ar zip 7z 7za 7zr 7zz rar rsync scp";
/// Those that search the folder where they run if no other is named.
const HERE: &str = "rg rgrep rga ack ag ugrep ug sift pt hgrep semgrep gitleaks trufflehog codespell ast-grep sg comby typos cspell \
    detect-secrets git-secrets";
/// Those that do so if an option tells them to go down.
const HERE_IF_TOLD: &str = "grep egrep fgrep pcregrep pcre2grep";
/// Those that follow no link below a folder unless an option tells them to, with the letter and the word of that option.
const NO_LINKS: [(&str, char, &str); 4] =
    [("grep", 'R', "--de"), ("egrep", 'R', "--de"), ("fgrep", 'R', "--de"), ("rg", 'L', "--fo")];

/// Whether a program, by its name and whatever its path, shows all below a folder.
pub fn is_deep(program: &str) -> bool {
    has(DEEP, program)
}

/// Whether a command of these words searches the folder where it runs, if none of them names another: as far as that can
/// be told without its options.
pub fn searches_here(argv: &[String]) -> bool {
    let Some((program, words)) = argv.split_first() else { return false };
    let goes_down = |word: &String| is_option(word, &['r', 'R', 'd'], &["--r", "--d"]);
    has(HERE, program) || (has(HERE_IF_TOLD, program) && words.iter().any(goes_down))
}

/// Whether a command of these words may show what links below a folder lead to.
pub fn follows_links(argv: &[String]) -> bool {
    let Some((program, words)) = argv.split_first() else { return false };
    let listed = NO_LINKS.iter().find(|(name, ..)| *name == base(program));
    is_deep(program)
        && listed.is_none_or(|(_, letter, long)| words.iter().any(|word| is_option(word, &[*letter], &[*long])))
}

/// Whether a word may be an option with one of these letters, or one that begins so.
fn is_option(word: &str, letters: &[char], long: &[&str]) -> bool {
    match word.strip_prefix('-') {
        Some(rest) if rest.starts_with('-') => long.iter().any(|begin| word.starts_with(begin)),
        Some(rest) => rest.contains(letters),
        None => false,
    }
}

fn has(names: &str, program: &str) -> bool {
    names.split_whitespace().any(|name| name == base(program))
}

fn base(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}
