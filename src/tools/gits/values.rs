//! The values of a configuration of git that may name something that git runs or obeys, and the words in them. It reads as
//! loosely as it can: what is named too much is looked at once too often, and what is named too little runs. Names are
//! bytes, as they are on the disk.

use std::collections::BTreeSet;

use crate::domain::limits;

/// How keys end, in small letters, whose values name programs or folders of them.
const PROGRAMS: [&str; 21] = [
    "askpass",
    "clean",
    "cmd",
    "command",
    "driver",
    "editor",
    "external",
    "filter",
    "fsmonitor",
    "gitproxy",
    "helper",
    "hook",
    "httpd",
    "pack",
    "pager",
    "process",
    "program",
    "server",
    "smudge",
    "textconv",
    "tunnel",
];
/// How those end whose whole value is one path: more configuration, hooks, a template of repositories.
const PATHS: [&str; 3] = ["attributesfile", "path", "templatedir"];
/// Sections in which any key names a program, or a line for a shell.
const SECTIONS: [&str; 2] = ["[pager", "[alias"];
/// What may stand in front of a path that need not be there.
const OPTIONAL: &[u8] = b":(optional)";
/// How often what stands in quotes is read as a line of its own.
const DEPTH: usize = 3;

/// The words of a configuration that may name something, with their keys.
#[derive(Default)]
pub(crate) struct Said {
    /// By any way to take them apart, ...
    pub(crate) words: BTreeSet<(String, Vec<u8>)>,
    /// ... and those that count in the operator's own.
    pub(crate) plain: BTreeSet<(String, Vec<u8>)>,
    /// Whether the values are more than `limits::GIT_VALUE_BYTES`, and some of them are left out.
    pub(crate) is_cut: bool,
}

impl Said {
    /// Those of a configuration.
    pub(crate) fn of(bytes: &[u8]) -> Said {
        let mut said = Said::default();
        let mut bytes_left = limits::GIT_VALUE_BYTES;
        for value in of(bytes) {
            let Some(left) = bytes_left.checked_sub(value.text.len()) else {
                said.is_cut = true;
                continue;
            };
            bytes_left = left;
            let keyed = |words: BTreeSet<Vec<u8>>| words.into_iter().map(|word| (value.key.clone(), word));
            said.plain.extend(keyed(value.plain_words()));
            said.words.extend(keyed(value.words()));
        }
        said
    }
}

/// A value that may name something.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Value {
    /// Its key, in small letters.
    key: String,
    /// As it is written, quotes and all.
    text: Vec<u8>,
}

/// All such values of a configuration.
fn of(bytes: &[u8]) -> Vec<Value> {
    // A line that ends with a backslash goes on, but not if it is a comment.
    let joined = joined(bytes);
    let plain = if joined.len() == bytes.len() { &[] } else { bytes };
    of_lines(&joined).into_iter().chain(of_lines(plain)).collect()
}

fn joined(bytes: &[u8]) -> Vec<u8> {
    let mut all = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((first, after)) = rest.split_first() {
        let ends = [b"\\\r\n".as_slice(), b"\\\n"];
        match ends.iter().find_map(|end| rest.strip_prefix(*end)) {
            Some(after) => rest = after,
            None => {
                all.push(*first);
                rest = after;
            }
        }
    }
    all
}

fn of_lines(bytes: &[u8]) -> Vec<Value> {
    let mut all = Vec::new();
    let mut is_free = false;
    for line in bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes).split(|byte| *byte == b'\n') {
        let mut line = line.trim_ascii();
        while line.starts_with(b"[") {
            let (section, rest) = line.split_at(end_of_section(line));
            let section = section.to_ascii_lowercase();
            is_free = SECTIONS.iter().any(|start| section.starts_with(start.as_bytes()));
            line = rest.trim_ascii_start();
        }
        let Some(at) = line.iter().position(|byte| *byte == b'=') else { continue };
        let (before, text) = (line.get(..at).unwrap_or_default(), line.get(at + 1..).unwrap_or_default());
        let key = before.split(u8::is_ascii_whitespace).rfind(|word| !word.is_empty()).unwrap_or_default();
        let value = Value { key: String::from_utf8_lossy(key).to_ascii_lowercase(), text: text.trim_ascii().to_vec() };
        let is_known = PROGRAMS.iter().chain(&PATHS).any(|end| value.key.ends_with(end));
        // An alias, or what updates a submodule, is a line for a shell behind a mark.
        if is_known || is_free || value.whole().starts_with(b"!") {
            all.push(value);
        }
    }
    all
}

/// Where the rest of a line begins behind the name of a section, in which a part in quotes may hold any sign.
fn end_of_section(line: &[u8]) -> usize {
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, byte) in line.iter().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            b']' if !is_quoted => return at + 1,
            _ => {}
        }
    }
    // It has no end, and git would not read it.
    1
}

impl Value {
    /// Whether all of it is one path.
    fn is_path(&self) -> bool {
        PATHS.iter().any(|end| self.key.ends_with(end))
    }

    /// All of it, as git reads it: without its quotes and what is behind it.
    fn whole(&self) -> Vec<u8> {
        let mut all = Vec::new();
        let mut is_quoted = false;
        let mut bytes = self.text.iter();
        while let Some(byte) = bytes.next() {
            match byte {
                b'\\' => all.extend(bytes.next()),
                b'"' => is_quoted = !is_quoted,
                b'#' | b';' if !is_quoted => break,
                other => all.push(*other),
            }
        }
        let all = all.trim_ascii();
        all.strip_prefix(OPTIONAL).unwrap_or(all).to_vec()
    }

    /// What of it may be a path, and more than that: it, and its words by any way to take it apart.
    fn words(&self) -> BTreeSet<Vec<u8>> {
        let whole = self.whole();
        let mut all: BTreeSet<Vec<u8>> = self.text.split(is_end).map(<[u8]>::to_vec).collect();
        all.extend(self.text.split(|byte| b"\"'".contains(byte)).map(|part| part.trim_ascii().to_vec()));
        take_apart(&whole, DEPTH, &mut all);
        all.insert(whole);
        all.retain(|word| !word.is_empty());
        all
    }

    /// The words that can name something in the operator's own configuration, which nobody wrote to lead astray: of a path
    /// all of it, else what has a folder, or is handed to a program and looks like the name of a file. A program without a
    /// folder is looked for elsewhere.
    fn plain_words(&self) -> BTreeSet<Vec<u8>> {
        let whole = self.whole();
        if self.is_path() {
            return BTreeSet::from([whole]);
        }
        let program = whole.split(u8::is_ascii_whitespace).next().unwrap_or_default();
        let is_named = |word: &Vec<u8>| word.contains(&b'/') || (word.contains(&b'.') && word.as_slice() != program);
        self.words().into_iter().filter(is_named).collect()
    }
}

/// What ends a word, also within others.
fn is_end(byte: &u8) -> bool {
    byte.is_ascii_whitespace() || b"\"'!;&|()<>=`:,".contains(byte)
}

/// The words of a line as a shell takes it apart, and of each that is a line itself, such as what `sh -c` is handed.
fn take_apart(line: &[u8], depth: usize, all: &mut BTreeSet<Vec<u8>>) {
    for word in shell_words(line) {
        if depth > 0 && word.len() < line.len() && word.iter().any(is_end) {
            take_apart(&word, depth - 1, all);
        }
        // The path behind the letter of an option.
        all.extend(word.strip_prefix(b"-").and_then(|rest| rest.get(1..)).map(<[u8]>::to_vec));
        all.insert(word);
    }
}

fn shell_words(line: &[u8]) -> Vec<Vec<u8>> {
    let (mut words, mut word) = (Vec::new(), Vec::new());
    let mut quote = None;
    let mut bytes = line.iter();
    while let Some(byte) = bytes.next() {
        match (byte, quote) {
            (_, Some(end)) if *byte == end => quote = None,
            (b'\\', None | Some(b'"')) => word.extend(bytes.next()),
            (_, Some(_)) => word.push(*byte),
            (b'"' | b'\'', None) => quote = Some(*byte),
            (other, None) if is_end(other) => {
                words.push(std::mem::take(&mut word));
                // What a shell puts in the place of a command: the rest of the word follows it.
                word.extend(b")`".contains(other).then_some(b'$'));
            }
            (other, None) => word.push(*other),
        }
    }
    words.push(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let all = of(text.as_bytes());
        all.iter().flat_map(Value::words).map(|word| String::from_utf8_lossy(&word).into_owned()).collect()
    }

    #[test]
    fn words_are_found_however_they_are_written() {
        for (text, wanted) in [
            ("[core]\nhooksPath = .githooks", ".githooks"),
            ("\u{feff}[core]hooksPath=.githooks\r\n", ".githooks"),
            ("[a][core] hooksPath = .githooks", ".githooks"),
            ("[filter \"a=]b\\\"\"] clean = ./x", "./x"),
            ("[filter \"a=b\"]\nCLEAN = ./x %f", "./x"),
            ("# a = b \\\nhooksPath = .h", ".h"),
            ("hooksPath = .a\\\nb", ".ab"),
            ("hooksPath = .a\\\r\nb", ".ab"),
            ("hooksPath = \".a b\" # c", ".a b"),
            ("hooksPath = .a\" b\"c", ".a bc"),
            ("hooksPath = .a\\\\b", ".a\\b"),
            ("hooksPath = .a;b", ".a"),
            ("hooksPath = \".a;b\"", ".a;b"),
            ("hooksPath = :(optional)~/x", "~/x"),
            ("clean = sh -c \"./my tool\"", "./my tool"),
            ("clean = sh -c \\\"'./my tool' x\\\"", "./my tool"),
            ("clean = ./my\\\\ tool x", "./my tool"),
            ("clean = \"\\\"$HOME\\\"/bin/x\"", "$HOME/bin/x"),
            ("textconv = perl -Itools/lib x", "tools/lib"),
            ("sshCommand = PATH=./bin:$PATH ssh", "./bin"),
            ("[alias]\na = !./x", "./x"),
            ("[alias]\na = -c core.pager=./x log", "./x"),
            ("[submodule \"a\"]\nupdate = !./x", "./x"),
            ("[pager]\nlog = ./x", "./x"),
            ("program = $(git rev-parse --show-toplevel)/x", "$/x"),
            ("program = \"`git rev-parse --show-toplevel`/x\"", "$/x"),
            ("diffFilter = ./x", "./x"),
            ("packObjectsHook = ./x", "./x"),
            ("uploadpack = ./x", "./x"),
            ("templateDir = t", "t"),
        ] {
            assert!(words(text).contains(&wanted.to_string()), "{text:?}: no {wanted:?} in {:?}", words(text));
        }
        for text in [
            "[branch \"m\"]\nmerge = refs/heads/m",
            "[remote \"o\"]\nurl = ./x",
            "[core]\nhooksPath",
            "",
            "=",
            "[",
            "[\"\\",
        ] {
            assert_eq!(words(text), Vec::<String>::new(), "{text:?}");
        }
    }

    #[test]
    fn names_that_are_no_text_stay_as_they_are() {
        let values = of(b"[core]\nhooksPath = .g\xff\xfe\n");
        assert!(values.iter().any(|value| value.words().contains(b".g\xff\xfe".as_slice())), "{values:?}");
    }

    #[test]
    fn of_the_operators_own_only_what_can_name_a_file_counts() {
        let check = |text: &str, wanted: &[&str]| {
            let all = of(text.as_bytes());
            let found = all.iter().flat_map(Value::plain_words);
            let found: Vec<String> = found.map(|word| String::from_utf8_lossy(&word).into_owned()).collect();
            assert_eq!(found, wanted, "{text}");
        };
        check("hooksPath = .githooks", &[".githooks"]);
        check("templateDir = template", &["template"]);
        for text in [
            "editor = vim",
            "editor = code --wait",
            "pager = delta",
            "clean = git-lfs clean -- %f",
            "process = git-lfs filter-process",
            "helper = store",
            "fsmonitor = true",
            "[alias]\nlast = !git log -1",
            "program = gpg2.exe",
        ] {
            check(text, &[]);
        }
        let found = |text: &str| of(text.as_bytes()).iter().flat_map(Value::plain_words).collect::<Vec<_>>();
        for (text, wanted) in [("textconv = python3 show.py", "show.py"), ("editor = ./bin/edit", "./bin/edit")] {
            assert!(found(text).contains(&wanted.as_bytes().to_vec()), "{text}");
        }
    }
}
