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
        "git" => of_git(words),
        _ => None,
    }
}

/// What of git throws away what it does not keep.
fn of_git(words: &[String]) -> Option<String> {
    let (command, words) = runners::git_command(words)?.split_first()?;
    let has = |letter: char, long: &str| {
        // Git takes any beginning of a word that is not that of another.
        words.iter().take_while(|word| *word != "--").any(|word| match word.strip_prefix("--") {
            Some(rest) => rest.len() >= 3 && long.starts_with(word.as_str()),
            None => word.starts_with('-') && word.contains(letter),
        })
    };
    let given = |word: &str| words.iter().any(|one| one == word);
    let forced = has('f', "--force");
    let told = match command.as_str() {
        "clean" if forced && !has('n', "--dry-run") => "deletes the files that git does not know",
        "reset" if given("--hard") || given("--merge") => "throws away changes that were not committed",
        "checkout" if forced || given("--") || given(".") => "throws away changes that were not committed",
        "switch" if forced || given("--discard-changes") => "throws away changes that were not committed",
        "restore" if !given("--staged") && !given("-S") || given("--worktree") || given("-W") => {
            "throws away changes that were not committed"
        }
        "rm" if !given("--cached") && !has('n', "--dry-run") => {
            return Some(format!("deletes {}", named(&operands(words))));
        }
        "stash" if given("drop") || given("clear") => "throws away changes that were put aside",
        "branch" if given("-D") || (forced && has('d', "--delete")) => "deletes a branch, also where it was not merged",
        "push" if forced || words.iter().any(|word| word.starts_with('+') || word.starts_with("--force")) => {
            "overwrites what the other repository has"
        }
        _ => return None,
    };
    Some(told.to_string())
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
    fn each_loss_of_a_line_is_told_once() {
        let words = |text: &str| text.split(' ').map(String::from).collect::<Vec<_>>();
        let commands = ["rm a", "make", "rm a", "git reset --hard"].map(words).to_vec();
        let told = lost(&Line { commands, plain: Err(String::new()) });
        let expected = "deletes a and throws away changes that were not committed, which can't be undone";
        assert_eq!(told.as_deref(), Some(expected));
    }
}
