//! The commands of any shell line, as well as they can be told without being the shell: for what denies, warns and
//! shows, never for what allows. One pass over the text, whatever it holds; a word that a shell would expand stays as it
//! is written, and what is substituted is `…` in its word and a command of its own.

use std::collections::BTreeSet;

use crate::domain::limits;
use crate::tools::carried;

/// The short name of `source`, only where a program stands: elsewhere it is a folder.
const DOT: &str = ".";
/// Programs that print their words, which another one may run.
const PRINT: [&str; 2] = ["echo", "printf"];
/// How deep lines for another shell are looked into.
const DEPTH: usize = 3;
/// How much of such lines is read, as often as a line is long at most.
const INNER: usize = 4;
/// Words of the shell's language that a command can stand behind.
const BEFORE_A_COMMAND: [&str; 15] =
    ["if", "then", "else", "elif", "fi", "while", "until", "do", "done", "esac", "!", "{", "}", "time", "coproc"];
/// What may stand between `time` and a command. No program is called so.
const NO_PROGRAM: [&str; 2] = ["-p", "--"];

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
    let text = text.replace('"', " ");
    let mut scanner = Scanner::new(&text, false);
    // All of it is one word, and that of no command.
    scanner.frames = vec![Frame { is_quoted: true, target: Target::File, ..Frame::default() }];
    scanner.scan().0
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

/// Where the next word goes to.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Target {
    /// To the command.
    #[default]
    Command,
    /// It names a file that something is redirected to or from.
    File,
    /// It is a text that the command reads.
    Text,
}

/// One command while it is read, in the line or in something that is substituted.
#[derive(Default)]
struct Frame {
    words: Vec<String>,
    word: Option<String>,
    /// Inside of double quotes.
    is_quoted: bool,
    /// Whether some of the word was quoted: then it is no word of the shell's language.
    was_quoted: bool,
    target: Target,
    /// What ends it; nothing for the line itself.
    closes: Option<char>,
    /// Whether it is in brackets that are no part of a word: then a command can follow.
    stands_alone: bool,
    /// How many `case` are open, in which a bracket closes a pattern.
    cases: usize,
}

/// A text that follows a line up to a word of its own.
struct Document {
    end: String,
    is_indented: bool,
}

struct Scanner<'text> {
    rest: &'text str,
    frames: Vec<Frame>,
    found: Vec<Vec<String>>,
    /// Whether texts may follow the line.
    has_documents: bool,
    awaited: Vec<Document>,
    /// The texts that commands read, and those that are kept.
    documents: Vec<String>,
}

impl<'text> Scanner<'text> {
    fn new(text: &'text str, has_documents: bool) -> Self {
        let frames = vec![Frame::default()];
        let (found, awaited, documents) = (Vec::new(), Vec::new(), Vec::new());
        Scanner { rest: text, frames, found, has_documents, awaited, documents }
    }

    /// The commands, and the texts that commands read.
    fn scan(mut self) -> (Vec<Vec<String>>, Vec<String>) {
        while let Some(letter) = self.rest.chars().next() {
            self.rest = self.rest.get(letter.len_utf8()..).unwrap_or_default();
            self.step(letter);
        }
        while let Some(mut frame) = self.frames.pop() {
            self.end_word(&mut frame);
            self.end_command(&mut frame);
        }
        (self.found, self.documents)
    }

    fn step(&mut self, letter: char) {
        let Some(mut frame) = self.frames.pop() else { return };
        let mut stands_alone = false;
        let opened = match letter {
            // The line goes on: no word begins or ends here.
            '\\' if self.rest.starts_with('\n') => {
                self.rest = self.rest.get(1..).unwrap_or_default();
                None
            }
            '\\' => {
                if let Some(next) = self.rest.chars().next() {
                    self.rest = self.rest.get(next.len_utf8()..).unwrap_or_default();
                    let is_kept = frame.is_quoted && !"$`\"\\".contains(next);
                    let word = frame.word.get_or_insert_default();
                    word.extend(is_kept.then_some(letter));
                    word.push(next);
                }
                None
            }
            '"' => {
                frame.is_quoted = !frame.is_quoted;
                frame.was_quoted = true;
                frame.word.get_or_insert_default();
                None
            }
            '`' if frame.closes == Some('`') => return self.close(frame),
            '`' => Some('`'),
            '$' if self.rest.starts_with('(') => {
                self.rest = self.rest.get(1..).unwrap_or_default();
                Some(')')
            }
            _ if frame.is_quoted => {
                frame.word.get_or_insert_default().push(letter);
                None
            }
            // Text in another language, which is itself.
            '$' if self.rest.starts_with('"') => None,
            '$' if self.rest.starts_with('\'') => {
                let (text, rest) = escaped(self.rest.get(1..).unwrap_or_default());
                frame.word.get_or_insert_default().push_str(&text);
                frame.was_quoted = true;
                self.rest = rest;
                None
            }
            '\'' => {
                let (raw, rest) = self.rest.split_once('\'').unwrap_or((self.rest, ""));
                frame.word.get_or_insert_default().push_str(raw);
                frame.was_quoted = true;
                self.rest = rest;
                None
            }
            '(' => {
                // Also behind the name of a function.
                stands_alone = frame.word.is_none() || self.rest.trim_start_matches([' ', '\t']).starts_with(')');
                Some(')')
            }
            '#' if frame.word.is_none() => {
                let is_in_backquotes = self.frames.iter().chain([&frame]).any(|frame| frame.closes == Some('`'));
                let is_end = |one: char| one == '\n' || (one == '`' && is_in_backquotes);
                self.rest = self.rest.find(is_end).and_then(|at| self.rest.get(at..)).unwrap_or_default();
                None
            }
            '>' | '<' => {
                self.redirect(letter, &mut frame);
                None
            }
            // Both streams go elsewhere, and the command goes on.
            '&' if self.rest.starts_with('>') => {
                self.end_word(&mut frame);
                self.redirect(letter, &mut frame);
                None
            }
            '\n' | ';' | '|' | '&' | ')' => {
                self.end_word(&mut frame);
                if letter == ')' && frame.closes == Some(')') && frame.cases == 0 {
                    return self.close(frame);
                }
                self.end_command(&mut frame);
                if letter == '\n' {
                    self.take_documents();
                }
                None
            }
            ' ' | '\t' => {
                self.end_word(&mut frame);
                None
            }
            _ => {
                frame.word.get_or_insert_default().push(letter);
                None
            }
        };
        if opened.is_some() {
            frame.word.get_or_insert_default().push('…');
        }
        self.frames.push(frame);
        if opened.is_some() {
            self.frames.push(Frame { closes: opened, stands_alone, ..Frame::default() });
        }
    }

    fn close(&mut self, mut frame: Frame) {
        self.end_word(&mut frame);
        self.end_command(&mut frame);
        if !frame.stands_alone {
            return;
        }
        if let Some(mut outer) = self.frames.pop() {
            self.end_word(&mut outer);
            self.end_command(&mut outer);
            self.frames.push(outer);
        }
    }

    /// `<`, `>` or `&>`: what follows is no word of the command.
    fn redirect(&mut self, letter: char, frame: &mut Frame) {
        match frame.word.as_deref() {
            Some(word) if is_channel(word) => frame.word = None,
            Some(_) | None => self.end_word(frame),
        }
        if let Some(rest) = self.rest.strip_prefix('(') {
            // What a process prints, or reads, by the name of a file.
            self.rest = rest;
            frame.word = Some("…".to_string());
            self.frames.push(std::mem::take(frame));
            *frame = Frame { closes: Some(')'), ..Frame::default() };
            return;
        }
        let is_document = letter == '<' && self.rest.starts_with('<');
        if let Some(rest) = self.rest.strip_prefix("<<").filter(|_| is_document) {
            self.rest = rest;
            frame.target = Target::Text;
        } else if is_document && self.has_documents {
            self.document();
        } else {
            self.rest = self.rest.trim_start_matches(['<', '>', '|', '&']);
            frame.target = Target::File;
        }
    }

    /// The word that ends a text which follows the line.
    fn document(&mut self) {
        let rest = self.rest.get(1..).unwrap_or_default();
        let is_indented = rest.starts_with('-');
        let rest = rest.strip_prefix('-').unwrap_or(rest).trim_start_matches([' ', '\t']);
        let (mut end, mut quote, mut length) = (String::new(), None, rest.len());
        let mut letters = rest.char_indices();
        while let Some((at, letter)) = letters.next() {
            match quote {
                Some(open) if open == letter => quote = None,
                None if matches!(letter, '"' | '\'') => quote = Some(letter),
                None if letter == '\\' => end.extend(letters.next().map(|(_, next)| next)),
                None if " \t\n;|&<>()".contains(letter) => {
                    length = at;
                    break;
                }
                Some(_) | None => end.push(letter),
            }
        }
        self.awaited.push(Document { end, is_indented });
        self.rest = rest.get(length..).unwrap_or_default();
    }

    /// Takes the texts that follow the line.
    fn take_documents(&mut self) {
        for Document { end, is_indented } in std::mem::take(&mut self.awaited) {
            let whole = self.rest;
            let mut length = 0;
            for line in whole.split_inclusive('\n') {
                let text = line.strip_suffix('\n').unwrap_or(line);
                self.rest = whole.get(length + line.len()..).unwrap_or_default();
                if end == if is_indented { text.trim_start_matches('\t') } else { text } {
                    break;
                }
                length += line.len();
            }
            self.documents.extend(whole.get(..length).map(String::from));
        }
    }

    fn end_word(&mut self, frame: &mut Frame) {
        let was_quoted = std::mem::take(&mut frame.was_quoted);
        let Some(word) = frame.word.take() else { return };
        match std::mem::take(&mut frame.target) {
            Target::Command => {}
            Target::File => return,
            Target::Text => return self.documents.push(word),
        }
        let is_language = |words: &[&str]| !was_quoted && words.contains(&word.as_str());
        // The body of a function.
        if is_language(&["{"]) {
            self.end_command(frame);
        }
        if frame.words.is_empty() {
            frame.cases = match was_quoted {
                false if word == "case" => frame.cases + 1,
                false if word == "esac" => frame.cases.saturating_sub(1),
                true | false => frame.cases,
            };
            if is_language(&BEFORE_A_COMMAND) || is_language(&NO_PROGRAM) {
                return;
            }
            if let Some(value) = assigned(&word) {
                // It may be run by its name.
                self.documents.extend(Some(value).filter(|value| value.contains(' ')).map(String::from));
                return;
            }
        }
        let is_test = is_language(&["]]"]);
        frame.words.push(word);
        if is_test {
            self.end_command(frame);
        }
    }

    fn end_command(&mut self, frame: &mut Frame) {
        frame.target = Target::Command;
        let words = std::mem::take(&mut frame.words);
        if !words.is_empty() && self.found.len() < limits::COMMAND_MAX_BYTES {
            self.found.push(words);
        }
    }
}

/// A part of a word as `$'…'` has it, up to its quote, and what is behind that.
fn escaped(text: &str) -> (String, &str) {
    let mut read = String::new();
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        rest = rest.get(letter.len_utf8()..).unwrap_or_default();
        match letter {
            '\'' => return (read, rest),
            '\\' => {
                let Some(next) = rest.chars().next() else { break };
                let (base, from, most) = match next {
                    'x' => (16, 1, 2),
                    'u' => (16, 1, 4),
                    'U' => (16, 1, 8),
                    '0'..='7' => (8, 0, 3),
                    _ => (10, 0, 0),
                };
                let behind = rest.get(from..).unwrap_or_default();
                let length = behind.chars().take(most).take_while(|digit| digit.is_digit(base)).count();
                let code = behind.get(..length).and_then(|code| u32::from_str_radix(code, base).ok());
                match code.and_then(char::from_u32) {
                    Some(meant) => {
                        read.push(meant);
                        rest = behind.get(length..).unwrap_or_default();
                    }
                    None => {
                        read.push(match next {
                            'n' => '\n',
                            't' | 'r' | 'v' | 'f' => ' ',
                            _ => next,
                        });
                        rest = rest.get(next.len_utf8()..).unwrap_or_default();
                    }
                }
            }
            _ => read.push(letter),
        }
    }
    (read, rest)
}

/// Whether a word right before `<` or `>` says which channel is redirected: a number, or a name for it, `{fd}>x`.
fn is_channel(word: &str) -> bool {
    let name = word.strip_prefix('{').and_then(|word| word.strip_suffix('}'));
    let is_name = |name: &str| name.chars().all(|one| one.is_ascii_alphanumeric() || one == '_');
    !word.is_empty() && (word.chars().all(|one| one.is_ascii_digit()) || name.is_some_and(is_name))
}

/// The value of a word before a command that sets a variable.
fn assigned(word: &str) -> Option<&str> {
    let (name, value) = word.split_once('=')?;
    let name = name.trim_end_matches('+');
    // An element of an array.
    let name = name.split_once('[').filter(|(_, index)| index.ends_with(']')).map_or(name, |(name, _)| name);
    let is_name = !name.is_empty()
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        && !name.starts_with(|letter: char| letter.is_ascii_digit());
    is_name.then_some(value)
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
