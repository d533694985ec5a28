//! The commands of any shell line, as well as they can be told without being the shell: for what denies, warns and
//! shows, never for what allows. One pass over the text, whatever it holds; a word that a shell would expand stays as it
//! is written, and what is substituted is `…` in its word and a command of its own.

use crate::domain::limits;

/// Programs, and words of the shell, that run a line which they are given as a word.
const RUN_A_LINE: [&str; 12] =
    ["sh", "bash", "dash", "zsh", "ksh", "fish", "eval", "ssh", "su", "watch", "parallel", "source"];
/// How deep lines for another shell are looked into.
const DEPTH: usize = 3;
/// Words of the shell's language that a command can stand behind.
const BEFORE_A_COMMAND: [&str; 10] = ["if", "then", "else", "elif", "while", "until", "do", "!", "{", "time"];

/// The commands in a line.
pub(crate) fn find(text: &str) -> Vec<Vec<String>> {
    with_inner(Scanner::new(text).scan())
}

/// Commands, and behind them those in lines that they give to another shell.
pub(crate) fn with_inner(mut found: Vec<Vec<String>>) -> Vec<Vec<String>> {
    let mut new = 0;
    for _ in 0..DEPTH {
        let lines: Vec<String> = found.iter().skip(new).flat_map(|argv| inner(argv)).collect();
        new = found.len();
        found.extend(lines.iter().flat_map(|line| Scanner::new(line).scan()));
    }
    found
}

/// The last component of the name of a program.
fn base(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// Lines that a command gives to another shell.
fn inner(argv: &[String]) -> Vec<String> {
    let Some(at) = argv.iter().position(|word| RUN_A_LINE.contains(&base(word))) else { return Vec::new() };
    let words = argv.get(at + 1..).unwrap_or_default();
    let mut lines: Vec<String> = words.iter().filter(|word| word.contains([' ', ';', '|', '&'])).cloned().collect();
    // Words that stand for themselves are a line, too: `eval rm -rf x`, `su -c id`.
    let rest: Vec<&str> = words.iter().map(String::as_str).skip_while(|word| word.starts_with('-')).collect();
    if !rest.is_empty() && lines.is_empty() {
        lines.push(rest.join(" "));
    }
    lines
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
    /// The next word is the target of a redirection.
    is_target: bool,
    /// What ends it; nothing for the line itself.
    closes: Option<char>,
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
    documents: Vec<Document>,
    /// Whether some command runs what it is told.
    has_shell: bool,
}

impl<'text> Scanner<'text> {
    fn new(text: &'text str) -> Self {
        let frames = vec![Frame::default()];
        Scanner { rest: text, frames, found: Vec::new(), documents: Vec::new(), has_shell: false }
    }

    fn scan(mut self) -> Vec<Vec<String>> {
        while let Some(letter) = self.rest.chars().next() {
            self.rest = self.rest.get(letter.len_utf8()..).unwrap_or_default();
            self.step(letter);
        }
        while let Some(mut frame) = self.frames.pop() {
            self.end_word(&mut frame);
            self.end_command(&mut frame);
        }
        self.found
    }

    fn step(&mut self, letter: char) {
        let Some(mut frame) = self.frames.pop() else { return };
        let opened = match letter {
            '\\' => {
                if let Some(next) = self.rest.chars().next() {
                    self.rest = self.rest.get(next.len_utf8()..).unwrap_or_default();
                    let is_kept = frame.is_quoted && !"$`\"\\\n".contains(next);
                    let word = frame.word.get_or_insert_default();
                    word.extend(is_kept.then_some(letter));
                    word.extend((next != '\n').then_some(next));
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
            '\'' => {
                let (raw, rest) = self.rest.split_once('\'').unwrap_or((self.rest, ""));
                frame.word.get_or_insert_default().push_str(raw);
                frame.was_quoted = true;
                self.rest = rest;
                None
            }
            ')' if frame.closes == Some(')') => return self.close(frame),
            '(' => Some(')'),
            '#' if frame.word.is_none() => {
                self.rest = self.rest.find('\n').and_then(|at| self.rest.get(at..)).unwrap_or_default();
                None
            }
            '>' | '<' => {
                self.redirect(letter, &mut frame);
                None
            }
            '\n' | ';' | '|' | '&' | ')' => {
                self.end_word(&mut frame);
                self.end_command(&mut frame);
                if letter == '\n' {
                    self.skip_documents();
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
            self.frames.push(Frame { closes: opened, ..Frame::default() });
        }
    }

    fn close(&mut self, mut frame: Frame) {
        self.end_word(&mut frame);
        self.end_command(&mut frame);
    }

    /// `<` or `>`: what follows is no word of the command.
    fn redirect(&mut self, letter: char, frame: &mut Frame) {
        match frame.word.as_deref() {
            Some(word) if !word.is_empty() && word.chars().all(|one| one.is_ascii_digit()) => frame.word = None,
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
        if letter == '<' && self.rest.starts_with('<') && !self.rest.starts_with("<<") {
            return self.document();
        }
        self.rest = self.rest.trim_start_matches(['<', '>', '|', '&']);
        frame.is_target = true;
    }

    /// The word that ends a text which follows the line.
    fn document(&mut self) {
        let rest = self.rest.trim_start_matches('<');
        let is_indented = rest.starts_with('-');
        let rest = rest.trim_start_matches('-').trim_start_matches([' ', '\t']);
        let length = rest.find([' ', '\t', '\n', ';', '|', '&', '<', '>', '(', ')']).unwrap_or(rest.len());
        let (end, rest) = rest.split_at_checked(length).unwrap_or((rest, ""));
        let end = end.chars().filter(|letter| !"'\"\\".contains(*letter)).collect();
        self.documents.push(Document { end, is_indented });
        self.rest = rest;
    }

    /// Passes over texts that follow the line, unless something in it may run them.
    fn skip_documents(&mut self) {
        for Document { end, is_indented } in std::mem::take(&mut self.documents) {
            while !self.has_shell && !self.rest.is_empty() {
                let (line, rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
                self.rest = rest;
                if end == if is_indented { line.trim_start_matches('\t') } else { line } {
                    break;
                }
            }
        }
    }

    fn end_word(&mut self, frame: &mut Frame) {
        let was_quoted = std::mem::take(&mut frame.was_quoted);
        let Some(word) = frame.word.take() else { return };
        if std::mem::take(&mut frame.is_target) {
            return;
        }
        let is_language = !was_quoted && BEFORE_A_COMMAND.contains(&word.as_str());
        // The body of a function.
        if word == "{" && !was_quoted {
            self.end_command(frame);
        }
        if frame.words.is_empty() && (is_language || is_assignment(&word)) {
            return;
        }
        self.has_shell |= RUN_A_LINE.contains(&base(&word));
        frame.words.push(word);
    }

    fn end_command(&mut self, frame: &mut Frame) {
        frame.is_target = false;
        let words = std::mem::take(&mut frame.words);
        if !words.is_empty() && self.found.len() < limits::COMMAND_MAX_BYTES {
            self.found.push(words);
        }
    }
}

/// Whether a word before a command sets a variable.
fn is_assignment(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else { return false };
    let name = name.trim_end_matches('+');
    !name.is_empty()
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        && !name.starts_with(|letter: char| letter.is_ascii_digit())
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
        check("if a; then b; else c; fi", &["a", "b", "c", "fi"]);
        check("A=1 B+=2 rm x", &["rm x"]);
        check("echo $(rm x) `rm y` \"$(rm z)\"", &["rm x", "rm y", "rm z", "echo … … …"]);
        check("cat <(rm x) > out 2>&1", &["rm x", "cat …"]);
        check("(cd a; rm b)", &["cd a", "rm b", "…"]);
        check("f() { rm x; }; f", &["f…", "rm x", "}", "f"]);
        check("'rm' \"-rf\" \\/ a\\ b $HOME ~", &["rm -rf / a b $HOME ~"]);
        check("x >a 2>>b <c y", &["x y"]);
        check("ls # rm x\nrm y", &["ls", "rm y"]);
        check("'if' x", &["if x"]);
    }

    #[test]
    fn lines_for_another_shell_are_looked_into() {
        check("bash -c 'rm x; ls'", &["bash -c rm x; ls", "rm x", "ls"]);
        check("sudo /bin/sh -c \"rm x\"", &["sudo /bin/sh -c rm x", "rm x"]);
        check("eval rm x", &["eval rm x", "rm x"]);
        check("bash <<X\nrm x\nX", &["bash", "rm x", "X"]);
        check("cat >f <<'X'\nrm x\nX\nls", &["cat", "ls"]);
        check("cat <<-X | wc\n\trm x\n\tX\nls", &["cat", "wc", "ls"]);
    }

    #[test]
    fn no_text_takes_long() {
        for piece in
            ["(", "$(", "a;", "<<A\n", "\"$(", "a|", "`", "<(", "'", "\\", "sh 'a ", "eval ", "\"", "$((", "<<<"]
        {
            let text = piece.repeat(limits::COMMAND_MAX_BYTES / piece.len());
            let found = find(&text);
            let bytes: usize = found.iter().flatten().map(String::len).sum();
            assert!(bytes <= (DEPTH + 2) * text.len() * 3, "{piece}: {bytes}");
        }
    }
}
