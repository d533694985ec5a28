//! What a shell line takes away and nothing brings back: told first in the reason why it is asked about, so that
//! `rm -rf build` is not asked about as mildly as a test (docs/SAFETY.md §6). Judged on the words of every command that
//! can be seen, also behind a program that runs it. A notice and no wall: it lets nothing happen, and holds nothing up.

use crate::domain::line::Line;
use crate::domain::text::one_line;
use crate::policy::runners;

/// Names of what is deleted that are said; the others are counted.
const NAMED: usize = 3;
/// Longest of such a name, in characters.
const NAME_CHARS: usize = 40;

/// What a line takes away for good, after "it"; nothing where none of its commands is known to do so.
pub fn lost(line: &Line) -> Option<String> {
    let all = line.commands.iter().filter_map(|argv| of_command(argv));
    let mut told: Vec<String> = Vec::new();
    for one in all {
        if !told.contains(&one) {
            told.push(one);
        }
    }
    (!told.is_empty()).then(|| format!("{}, which can't be undone", told.join(" and ")))
}

/// What of a line only the shell can name once it runs it, after "it": whoever looks at it can't tell what that takes
/// away. Nothing where all of its programs are named.
pub fn unnamed(line: &Line) -> Option<String> {
    let is_unnamed = |argv: &&Vec<String>| argv.first().is_some_and(|program| program.contains(['$', '`']));
    let argv = line.commands.iter().find(is_unnamed)?;
    Some(format!("runs what only the shell can name: {}", one_line(&argv.join(" "), NAME_CHARS)))
}

/// What a command takes away, itself or by the one that it is given to run.
fn of_command(argv: &[String]) -> Option<String> {
    let (program, words) = argv.split_first()?;
    own(program, words).or_else(|| {
        let runs_others = runners::kind(program).is_some_and(|kind| kind.runs_arguments());
        let starts = (0..words.len()).filter(|_| runs_others);
        starts.filter_map(|from| words.get(from..)?.split_first()).find_map(|(program, words)| own(program, words))
    })
}

/// Whether `find` has a command run that takes away what it is given.
fn runs_loss(words: &[String]) -> bool {
    let is_exec = |word: &String| matches!(word.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir");
    words.iter().position(is_exec).is_some_and(|place| words.get(place + 1..).and_then(of_command).is_some())
}

fn own(program: &str, words: &[String]) -> Option<String> {
    match program.rsplit('/').next().unwrap_or(program) {
        "rm" | "rmdir" | "unlink" | "shred" | "srm" => Some(format!("deletes {}", named(&operands(words)))),
        "truncate" => Some(format!("cuts off {}", named(&operands(words)))),
        "find" if words.iter().any(|word| word == "-delete") || runs_loss(words) => {
            Some("deletes what find finds".to_string())
        }
        "tar" if words.iter().any(|word| word == "--remove-files") => Some("deletes what it packs".to_string()),
        "rsync" if words.iter().any(|word| word.starts_with("--del")) => {
            Some("deletes what is not where it copies from".to_string())
        }
        "git" => of_git(words),
        _ => None,
    }
}

/// What of git throws away what it does not keep.
fn of_git(words: &[String]) -> Option<String> {
    let (command, words) = runners::git_command(words)?.split_first()?;
    let words = Words(words);
    let forced = words.has('f', "--force");
    let told = match command.as_str() {
        // Whether it needs `-f` is a setting.
        "clean" if !words.has('n', "--dry-run") => "deletes the files that git does not know",
        "checkout" if words.has('B', "") => BRANCH_MOVED,
        "switch" if words.has('C', "--force-create") => BRANCH_MOVED,
        "branch" if words.has('M', "") || words.has('C', "") || (forced && words.has('m', "--move")) => BRANCH_MOVED,
        "reset" if words.long("--hard") || words.long("--merge") => UNCOMMITTED,
        "checkout" if forced || words.given("--") || words.given(".") || words.names_files() => UNCOMMITTED,
        "switch" if forced || words.long("--discard-changes") => UNCOMMITTED,
        "read-tree" if words.long("--reset") => UNCOMMITTED,
        "checkout-index" if forced => UNCOMMITTED,
        "worktree" | "submodule" if forced => UNCOMMITTED,
        "restore" if !words.has('S', "--staged") || words.has('W', "--worktree") => UNCOMMITTED,
        "rm" if !words.long("--cached") && !words.has('n', "--dry-run") => {
            return Some(format!("deletes {}", named(&operands(words.0))));
        }
        "stash" if words.given("drop") || words.given("clear") => "throws away changes that were put aside",
        "branch" if words.has('D', "") || (forced && words.has('d', "--delete")) => {
            "deletes a branch, also where it was not merged"
        }
        "update-ref" if words.has('d', "--stdin") => "deletes a branch, also where it was not merged",
        "tag" if words.has('d', "--delete") => "deletes a tag",
        "reflog" if words.given("expire") || words.given("delete") => FORGOTTEN,
        "gc" | "prune" if command == "prune" || words.long("--prune") => FORGOTTEN,
        "filter-branch" | "filter-repo" => "rewrites what was committed",
        "push"
            if words.has('d', "--delete") || words.long("--mirror") || words.long("--prune") || words.starts(':') =>
        {
            "deletes in the other repository"
        }
        "push" if forced || words.long("--force-with-lease") || words.starts('+') => {
            "overwrites what the other repository has"
        }
        _ => return None,
    };
    Some(told.to_string())
}

const UNCOMMITTED: &str = "throws away changes that were not committed";
const BRANCH_MOVED: &str = "makes a branch anew, whatever it led to";
const FORGOTTEN: &str = "throws away what git keeps of what was lost";

/// The words behind a command of git.
struct Words<'a>(&'a [String]);

impl Words<'_> {
    fn options(&self) -> impl Iterator<Item = &String> {
        self.0.iter().take_while(|word| *word != "--").filter(|word| word.starts_with('-'))
    }

    /// Whether an option is given by its letter, or by its long name or any beginning of it, as git takes it.
    fn has(&self, letter: char, long: &str) -> bool {
        self.long(long) || self.options().any(|word| !word.starts_with("--") && word.contains(letter))
    }

    fn long(&self, long: &str) -> bool {
        self.options().any(|word| {
            let name = word.split_once('=').map_or(word.as_str(), |(name, _)| name);
            name.len() > 2 && long.starts_with(name)
        })
    }

    fn given(&self, word: &str) -> bool {
        self.0.iter().any(|one| one == word)
    }

    fn starts(&self, sign: char) -> bool {
        self.0.iter().any(|one| one.starts_with(sign))
    }

    /// Whether a checkout is of files: behind the commit that they are taken from. One name alone may be a branch.
    fn names_files(&self) -> bool {
        !self.has('b', "--orphan") && operands(self.0).len() > 1
    }
}

/// The words of a command that are no options.
fn operands(words: &[String]) -> Vec<&String> {
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let before = words.iter().take(end).filter(|word| !word.starts_with('-'));
    before.chain(words.iter().skip(end + 1)).collect()
}

fn named(words: &[&String]) -> String {
    let mut names: Vec<String> = words.iter().take(NAMED).map(|word| one_line(word, NAME_CHARS)).collect();
    if words.len() > NAMED {
        names.push(format!("{} more", words.len() - NAMED));
    }
    if names.is_empty() { "what it is given".to_string() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(argv: &str, expected: &str) {
        let argv: Vec<String> = argv.split(' ').map(String::from).collect();
        let line = Line { commands: vec![argv], plain: Err(String::new()) };
        let found = lost(&line).unwrap_or_default();
        assert_eq!(found.strip_suffix(", which can't be undone").unwrap_or(&found), expected, "{line:?}");
    }

    #[test]
    fn what_deletes_says_what() {
        check("rm -rf build", "deletes build");
        check("/bin/rm -r a b c d e", "deletes a, b, c, 2 more");
        check("rm -- -f", "deletes -f");
        check("rmdir empty", "deletes empty");
        check("unlink a", "deletes a");
        check("shred -u key", "deletes key");
        check("truncate -s0 log", "cuts off log");
        check("sudo rm -rf build", "deletes build");
        check("xargs rm", "deletes what it is given");
        check("find . -name x -delete", "deletes what find finds");
        check("find . -name x -exec rm {} +", "deletes what find finds");
        check("tar cf t.tar --remove-files P", "deletes what it packs");
        check("rsync -a --delete d/ .", "deletes what is not where it copies from");
    }

    #[test]
    fn what_git_does_not_keep_is_told() {
        let thrown = "throws away changes that were not committed";
        check("git clean -fd", "deletes the files that git does not know");
        check("git -C sub clean --forc", "deletes the files that git does not know");
        check("git reset --hard HEAD~1", thrown);
        check("git -c a=b checkout -- src", thrown);
        check("git checkout .", thrown);
        check("git checkout -f main", thrown);
        check("git restore src", thrown);
        check("git restore --staged --worktree src", thrown);
        check("git switch --discard-changes main", thrown);
        check("git stash drop", "throws away changes that were put aside");
        check("git branch -D topic", "deletes a branch, also where it was not merged");
        check("git rm -r docs", "deletes docs");
        check("git push --force-with-lease", "overwrites what the other repository has");
        check("git push origin +main", "overwrites what the other repository has");
        for line in [
            "git reset --har",
            "git checkout HEAD P",
            "git switch --disc master",
            "git read-tree -u --reset HEAD",
            "git checkout-index -f -a",
            "git worktree remove --force d",
            "git submodule deinit -f d",
        ] {
            check(line, thrown);
        }
        check("git clean --fo", "deletes the files that git does not know");
        check("git -c clean.requireForce=false clean -d", "deletes the files that git does not know");
        for line in ["git push --mirror", "git push origin :main", "git push --delete o x", "git push -d o x"] {
            check(line, "deletes in the other repository");
        }
        check("git update-ref -d refs/heads/x", "deletes a branch, also where it was not merged");
        check("git branch -d -f x", "deletes a branch, also where it was not merged");
        for line in ["git branch -M x", "git checkout -B x", "git switch -C x", "git switch --force-c x"] {
            check(line, BRANCH_MOVED);
        }
        check("git tag -d x", "deletes a tag");
        for line in ["git reflog expire --expire=now --all", "git gc --prune=now", "git prune"] {
            check(line, FORGOTTEN);
        }
        check("git filter-branch", "rewrites what was committed");
    }

    #[test]
    fn what_can_be_undone_is_not_told() {
        for mild in [
            "sh check.sh",
            "echo rm build",
            "grep rm file",
            "cp a b",
            "git clean -n",
            "git clean -fn",
            "git reset HEAD a",
            "git checkout main",
            "git checkout -b topic",
            "git checkout -b topic origin/topic",
            "git tag v1",
            "git branch -m old new",
            "git update-ref refs/heads/x HEAD",
            "git reflog",
            "git gc",
            "git stash list",
            "git worktree add d",
            "git push -u origin topic",
            "tar cf t.tar P",
            "git restore --staged a",
            "git switch -c topic",
            "git stash",
            "git branch -d topic",
            "git rm --cached a",
            "git push",
            "git log -- clean -f",
            "git commit -m clean",
            "find . -name x",
        ] {
            check(mild, "");
        }
    }

    #[test]
    fn what_only_the_shell_can_name_is_told() {
        let told = |argv: &str| {
            let argv = argv.split(' ').map(String::from).collect();
            unnamed(&Line { commands: vec![vec!["true".to_string()], argv], plain: Err(String::new()) })
        };
        assert_eq!(told("$a P").as_deref(), Some("runs what only the shell can name: $a P"));
        assert_eq!(told("rm${IFS}P").as_deref(), Some("runs what only the shell can name: rm${IFS}P"));
        assert!(told("`echo rm` P").is_some());
        assert_eq!((told("rm $a"), told("echo `date`")), (None, None));
    }

    #[test]
    fn each_loss_of_a_line_is_told_once() {
        let words = |text: &str| text.split(' ').map(String::from).collect::<Vec<_>>();
        let commands = ["rm a", "make", "rm a", "git reset --hard"].map(words).to_vec();
        let told = lost(&Line { commands, plain: Err(String::new()) });
        let expected = "deletes a and throws away changes that were not committed, which can't be undone";
        assert_eq!(told.as_deref(), Some(expected));
    }
}
