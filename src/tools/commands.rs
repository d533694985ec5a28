//! The commands of any shell line, as well as they can be told without being the shell: for what denies, warns and
//! shows, never for what allows. One pass over the text, whatever it holds; a word that a shell would expand stays as it
//! is written, and what is substituted is `…` in its word and a command of its own.

use std::collections::BTreeSet;

use crate::domain::limits;
use crate::tools::carried;
use crate::tools::commands::scanner::Scanner;

mod scanner;

/// The short name of `source`, only where a program stands: elsewhere it is a folder.
const DOT: &str = ".";
/// Programs that print their words, which another one may run.
const PRINT: [&str; 2] = ["echo", "printf"];
/// How deep lines for another shell are looked into.
const DEPTH: usize = 3;
/// How much of such lines is read, as often as a line is long at most.
const INNER: usize = 4;

/// The commands in a line.
pub(crate) fn find(text: &str) -> Vec<Vec<String>> {
    with_inner(scan(text))
}

/// Commands, and behind them those in lines that they give to another shell.
pub(crate) fn with_inner(mut found: Vec<Vec<String>>) -> Vec<Vec<String>> {
    let (mut new, mut left, mut is_run) = (0, INNER * limits::COMMAND_MAX_BYTES, false);
    for _ in 0..DEPTH {
        // What is printed may go to a shell.
        is_run |= found.iter().skip(new).any(|argv| {
            argv.iter().any(|word| carried::runs_a_line(word)) || argv.first().is_some_and(|word| word == DOT)
        });
        let lines: Vec<String> = found.iter().skip(new).flat_map(|argv| inner(argv, is_run)).collect();
        new = found.len();
        for line in lines {
            let Some(rest) = left.checked_sub(line.len()) else { return found };
            left = rest;
            found.extend(scan(&line));
        }
    }
    found
}

/// The commands of a text, but not those that it gives to another shell. Where a text follows the line, it is read as
/// commands itself, since something may run it; and where it only looks as if one did, all is read as if none did.
fn scan(text: &str) -> Vec<Vec<String>> {
    let (mut found, documents) = Scanner::new(text, true).scan();
    if documents.is_empty() {
        return found;
    }
    let mut seen: BTreeSet<Vec<String>> = found.iter().cloned().collect();
    let bodies = documents.iter().flat_map(|body| Scanner::new(body, false).scan().0.into_iter().chain(expanded(body)));
    let more: Vec<Vec<String>> = bodies.chain(Scanner::new(text, false).scan().0).collect();
    found.extend(more.into_iter().filter(|argv| seen.insert(argv.clone())));
    found
}

/// The commands that a shell runs while it reads a text which is none of a line: those that are substituted.
fn expanded(text: &str) -> Vec<Vec<String>> {
    // Double quotes mean nothing there.
    Scanner::within_a_word(&text.replace('"', " ")).scan().0
}

/// Lines that a command gives to another shell; or prints, where something may run them.
fn inner(argv: &[String], is_run: bool) -> Vec<String> {
    // What stands for a program may be a shell.
    let is_first =
        |word: &String| word == DOT || word.starts_with(['$', '…']) || (is_run && PRINT.contains(&carried::base(word)));
    let first = argv.first().filter(|word| is_first(word)).map(|_| 0);
    let Some(at) = argv.iter().position(|word| carried::runs_a_line(word)).or(first) else {
        return carried::lines(argv);
    };
    let words = argv.get(at + 1..).unwrap_or_default();
    let many = words.iter().filter(|word| word.contains([' ', '\t', '\n', ';', '|', '&']));
    // Also what a name is to stand for: `alias x='rm -rf y'`.
    let whole_and_value = many.flat_map(|word| [Some(word.as_str()), word.split_once('=').map(|(_, value)| value)]);
    // The line may stand in the word of its option: `su -c'rm x'`, `env -iS'rm x'`.
    let of_option = |word: &str| word.strip_prefix('-').filter(|word| !word.starts_with('-')).is_some();
    let behind = words
        .iter()
        .filter(|word| of_option(word))
        .filter_map(|word| word.split_once(['c', 'S', 'e']))
        .map(|(_, line)| line);
    let behind: Vec<&str> = behind.filter(|line| line.contains(' ')).collect();
    let mut lines: Vec<String> = whole_and_value.flatten().chain(behind).map(String::from).collect();
    // Words that stand for themselves are a line, too: `eval rm -rf x`, `su -c id`.
    let rest: Vec<&str> = words.iter().map(String::as_str).skip_while(|word| word.starts_with('-')).collect();
    if !rest.is_empty() && lines.is_empty() {
        lines.push(rest.join(" "));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let found: Vec<String> = find(text).iter().map(|argv| argv.join(" ")).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn commands_are_found_wherever_they_stand() {
        check("ls -la | wc -l", &["ls -la", "wc -l"]);
        check("a&&b||c;d&e\nf", &["a", "b", "c", "d", "e", "f"]);
        check("if a; then b; else c; fi", &["a", "b", "c"]);
        check("A=1 B+=2 rm x", &["rm x"]);
        check("echo $(rm x) `rm y` \"$(rm z)\"", &["rm x", "rm y", "rm z", "echo … … …"]);
        check("cat <(rm x) > out 2>&1", &["rm x", "cat …"]);
        check("(cd a; rm b)", &["cd a", "rm b", "…"]);
        check("f() { rm x; }; f", &["f…", "rm x", "f"]);
        check("'rm' \"-rf\" \\/ a\\ b $HOME ~", &["rm -rf / a b $HOME ~"]);
        check("x >a 2>>b <c y", &["x y"]);
        check("ls # rm x\nrm y", &["ls", "rm y"]);
        check("'if' x", &["if x"]);
        check("cd a && \\\n  rm -rf x", &["cd a", "rm -rf x"]);
        check("git \\\n\tpush \\\norigin ma\\\nin", &["git push origin main"]);
        check("echo \"a\\\nb\"", &["echo ab"]);
        check("rm &>log -rf x &>>log y", &["rm -rf x y"]);
        check("{fd}>y rm x", &["rm x"]);
        check("echo `# note`; rm -rf x", &["echo …", "rm -rf x"]);
        check("a[0]=x rm -rf y", &["rm -rf y"]);
    }

    #[test]
    fn lines_for_another_shell_are_looked_into() {
        check("bash -c 'rm x; ls'", &["bash -c rm x; ls", "rm x", "ls"]);
        check("sudo /bin/sh -c \"rm x\"", &["sudo /bin/sh -c rm x", "rm x"]);
        check("eval rm x", &["eval rm x", "rm x"]);
        check("echo 'rm x' | sh", &["echo rm x", "sh", "rm x"]);
    }

    #[test]
    fn texts_that_follow_a_line_are_read_as_commands() {
        check("bash <<X\nrm x\nX", &["bash", "rm x", "X"]);
        check("cat >f <<'X'\nrm x\nX\nls", &["cat", "ls", "rm x", "X"]);
        check("cat <<-X | wc\n\trm x\n\tX\nls", &["cat", "wc", "ls", "rm x", "X"]);
        check("cat <<'X Y'\ndon't\nX Y\nrm x", &["cat", "rm x", "dont\n", "dont\nX Y\nrm x"]);
        check("cat <<X\ndon't $(rm x)\nX", &["cat", "dont $(rm x)\n", "rm x", "dont $(rm x)\nX"]);
        check("cat <<< 'rm x'", &["cat", "rm x"]);
        // None: a number is moved.
        check("echo $((1<<X))\nrm x\nX", &["…", "echo …", "rm x", "X"]);
    }

    #[test]
    fn signs_that_stand_for_others_are_read() {
        check("$'rm' $'\\x2dr\\'' $\"x\" $'\\055f'", &["rm -r' x -f"]);
        check("echo $'\\'' ; rm x '", &["echo '", "rm x "]);
    }

    #[test]
    fn no_text_takes_long() {
        for piece in [
            "(",
            "$(",
            "a;",
            "<<A\n",
            "<<A\nA\n",
            "<<<a ",
            "$'",
            "sh <<A\n",
            "bash 'rm ",
            "\"$(",
            "a|",
            "`",
            "<(",
            "'",
            "\\",
            "sh 'a ",
            "eval ",
            "\"",
            "$((",
            "<<<",
        ] {
            let text = piece.repeat(limits::COMMAND_MAX_BYTES / piece.len());
            let found = find(&text);
            let bytes: usize = found.iter().flatten().map(String::len).sum();
            assert!(bytes <= (DEPTH + INNER) * text.len() * 4, "{piece}: {bytes}");
        }
    }
}
