//! The law of the house: floors, bans, file headers, and sizes. It reads the sources as
//! tokens, so that neither comments nor strings can fool it, and prints the file and line of each violation.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::fs;
use std::path::Path;
use std::path::PathBuf;

/// What each folder may import besides its own files (docs/ARCHITECTURE.md, the floors).
const FLOORS: &[(&str, &[&str])] = &[
    ("domain", &[]),
    ("policy", &["domain"]),
    ("machine", &["domain", "policy"]),
    ("store", &["domain"]),
    ("model", &["domain"]),
    ("tools", &["domain"]),
    ("engine", &["domain", "policy", "machine", "store", "model", "tools"]),
    ("protocol", &["domain", "policy", "machine", "store", "model", "tools", "engine"]),
    ("tui", &["domain", "policy", "machine", "store", "model", "tools", "engine", "protocol"]),
    ("headless", &["domain", "policy", "machine", "store", "model", "tools", "engine", "protocol"]),
    ("sinks", &["domain", "policy", "machine", "store", "model", "tools", "engine", "protocol"]),
];

/// The roof: it knows everyone, and nobody knows it.
const ROOF: &[&str] = &[
    "main",
    "program",
    "lib",
    "cli",
    "config",
    "logging",
    "launch",
    "preflight",
    "rehearsal",
    "repository",
    "order",
    "held",
    "archive",
    "importing",
    "keeping",
    "telling",
    "boxes",
    "branch",
    "doctor",
    "rooms",
    "rules",
    "secrets",
];

/// The floors that do no input or output and know no clock, chance or environment.
const PURE: &[&str] = &["domain", "policy", "machine"];

/// Words that a pure floor may not contain, in its tests neither.
const BANNED_WORDS: &[&str] = &[
    "async",
    "await",
    "tokio",
    "sled",
    "reqwest",
    "SystemTime",
    "Instant",
    "rand",
    "getrandom",
    "HashMap",
    "f32",
    "f64",
];

/// The file of a pure floor that names every type of serde's model, to refuse them; it reckons with none.
const NAMES_ALL_TYPES: &str = "domain/tagged.rs";

/// Modules of `std` that a pure floor may not name.
const BANNED_STD: &[&str] = &["fs", "net", "process", "env", "thread"];

/// Crates that belong to a folder. Two speak HTTP: `model` to the provider, and `tools` to fetch; they share nothing. The
/// doctor reads the addresses of providers.
const CRATES_OF_A_FOLDER: &[(&str, &[&str])] = &[
    ("sled", &["store"]),
    ("ratatui", &["tui"]),
    ("pulldown_cmark", &["tui"]),
    ("crossterm", &["tui"]),
    ("tui_textarea", &["tui"]),
    ("reqwest", &["model", "tools", "doctor"]),
    ("landlock", &["tools"]),
    ("seccompiler", &["tools"]),
    ("idna", &["tools"]),
    ("encoding_rs", &["tools"]),
];

/// The only file that reads the clock of the wall, and what it would be read with.
const CLOCK: &str = "engine/clock.rs";
const CLOCKS: &[&str] = &["SystemTime", "Timestamp", "ZonedDateTime"];

/// The files through which text comes to a cell of the screen: there it passes the sanitiser's last look
/// (`visible::drawn`, R9). What is put into lines elsewhere are pieces of theirs.
const DRAWERS: &[&str] = &["tui/view.rs", "tui/text.rs"];
/// What would go by them: with these a text becomes cells.
const DRAWS_RAW: &[&str] = &["set_string", "set_stringn", "set_symbol", "set_char"];
/// What a line is made of, besides pieces that have been made already and have these names.
const PIECES: &[&str] = &["cut", "piece", "spans", "rule", "text"];

const LINES_MAX: usize = 600;

/// Files that may be longer than `LINES_MAX`, and why splitting them would make them harder to read.
const LONG_FILES: &[(&str, &str)] = &[];

/// All that may stand at the top of the repository, besides dot-files and what a build leaves.
const TOP: &[&str] = &["Cargo.toml", "Cargo.lock", "README.md", "src", "assets", "tests", "docs", "target"];

/// A breach of the law.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Violation {
    line: usize,
    what: String,
}

/// A token of Rust: a word, a number or a sign; `::` is one token. Comments and strings are none.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Token {
    text: String,
    line: usize,
    in_tests: bool,
}

/// The tokens of a source.
fn tokens(source: &str) -> Vec<Token> {
    let letters: Vec<char> = source.chars().collect();
    let mut found = Vec::new();
    let (mut at, mut line) = (0, 1);
    while at < letters.len() {
        let length = token_length(&letters[at..]);
        let piece = &letters[at..at + length];
        if is_code(piece) {
            let text: String = piece.iter().collect();
            let text = text.strip_prefix("r#").unwrap_or(&text).to_string();
            found.push(Token { text, line, in_tests: false });
        }
        line += piece.iter().filter(|letter| **letter == '\n').count();
        at += length;
    }
    mark_tests(&mut found);
    found
}

/// Whether a piece of source is code: not space, comment, string, character or lifetime.
fn is_code(piece: &[char]) -> bool {
    let is_comment = piece[0] == '/' && matches!(piece.get(1), Some('/' | '*'));
    !piece[0].is_whitespace() && piece[0] != '\'' && !is_comment && string_length(piece).is_none()
}

/// How many characters the first piece of a source has.
fn token_length(rest: &[char]) -> usize {
    let starts = |text: &str| text.chars().enumerate().all(|(place, letter)| rest.get(place) == Some(&letter));
    let until = |from: usize, end: &dyn Fn(usize) -> bool| (from..rest.len()).find(|at| end(*at)).unwrap_or(rest.len());
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    if starts("//") {
        return until(2, &|at| rest[at] == '\n');
    }
    if starts("/*") {
        return comment_length(rest);
    }
    if let Some(length) = string_length(rest) {
        return length;
    }
    match rest[0] {
        '\'' => quote_length(rest),
        '0'..='9' => {
            let whole = until(1, &|at| !is_word(rest[at]));
            let has_fraction = rest.get(whole) == Some(&'.') && rest.get(whole + 1).is_some_and(char::is_ascii_digit);
            if has_fraction { until(whole + 1, &|at| !is_word(rest[at])) } else { whole }
        }
        letter if is_word(letter) => {
            let raw = if starts("r#") { 2 } else { 1 };
            until(raw, &|at| !is_word(rest[at]))
        }
        letter if letter.is_whitespace() => until(1, &|at| !rest[at].is_whitespace()),
        ':' if starts("::") => 2,
        _ => 1,
    }
}

/// A block comment, which may hold others.
fn comment_length(rest: &[char]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        match (rest[at], rest.get(at + 1)) {
            ('/', Some('*')) => (depth, at) = (depth + 1, at + 2),
            ('*', Some('/')) => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at.min(rest.len())
}

/// A string of any kind: plain, byte, C or raw.
fn string_length(rest: &[char]) -> Option<usize> {
    let letters = rest.iter().take_while(|letter| letter.is_ascii_lowercase()).count();
    let prefix: String = rest[..letters].iter().collect();
    let is_raw = matches!(prefix.as_str(), "r" | "br" | "cr");
    if !is_raw && !matches!(prefix.as_str(), "" | "b" | "c") {
        return None;
    }
    let hashes = if is_raw { rest[letters..].iter().take_while(|letter| **letter == '#').count() } else { 0 };
    let start = letters + hashes;
    if rest.get(start) != Some(&'"') {
        return None;
    }
    let mut at = start + 1;
    while at < rest.len() {
        let closes = rest[at] == '"' && (1..=hashes).all(|place| rest.get(at + place) == Some(&'#'));
        if closes {
            return Some(at + 1 + hashes);
        }
        at += if rest[at] == '\\' && !is_raw { 2 } else { 1 };
    }
    Some(rest.len())
}

/// A character, or a lifetime.
fn quote_length(rest: &[char]) -> usize {
    if rest.get(1) == Some(&'\\') {
        return (3..rest.len()).find(|at| rest[*at] == '\'').map_or(rest.len(), |at| at + 1);
    }
    if rest.get(2) == Some(&'\'') {
        return 3;
    }
    1 + rest[1..].iter().take_while(|letter| letter.is_alphanumeric() || **letter == '_').count()
}

/// Marks what stands in `mod tests { … }`.
fn mark_tests(tokens: &mut [Token]) {
    let mut at = 0;
    while at + 2 < tokens.len() {
        let opens = tokens[at].text == "mod" && tokens[at + 1].text == "tests" && tokens[at + 2].text == "{";
        if opens {
            let end = group_end(tokens, at + 2);
            tokens[at..end].iter_mut().for_each(|token| token.in_tests = true);
            at = end;
        } else {
            at += 1;
        }
    }
}

/// The place after the brace that closes the one at `open`.
fn group_end(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.text.as_str() {
            "{" => depth += 1,
            "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

/// All violations of a file. `path` is that under `src`.
fn check_source(path: &str, source: &str) -> Vec<Violation> {
    let tokens = tokens(source);
    let mut found = Vec::new();
    let folder = path.split('/').next().unwrap().trim_end_matches(".rs");
    if !source.starts_with("//!") {
        found.push(Violation { line: 1, what: "a file opens with `//!`, which says what it is for".to_string() });
    }
    check_length(path, source, &mut found);
    if floor(folder).is_none() {
        found.push(Violation { line: 1, what: format!("`{folder}` stands on no floor; add it to the table") });
    }
    for at in 0..tokens.len() {
        let mut add = |what: String| found.push(Violation { line: tokens[at].line, what });
        check_imports(folder, &tokens, at, &mut add);
        check_crates(path, folder, &tokens, at, &mut add);
        if folder == "tui" && !DRAWERS.contains(&path) && path != "tui/terminal.rs" {
            check_drawing(&tokens, at, &mut add);
        }
        let is_named_only = path == NAMES_ALL_TYPES && matches!(tokens[at].text.as_str(), "f32" | "f64");
        if PURE.contains(&folder) && !is_named_only {
            check_purity(&tokens, at, &mut add);
        }
    }
    found.sort_by_key(|violation| violation.line);
    found
}

fn floor(folder: &str) -> Option<&'static [&'static str]> {
    FLOORS.iter().find(|(name, _)| *name == folder).map(|(_, below)| *below).or(ROOF.contains(&folder).then_some(&[]))
}

fn check_length(path: &str, source: &str, found: &mut Vec<Violation>) {
    let lines = source.lines().count();
    let argued = LONG_FILES.iter().any(|(name, _)| *name == path);
    if lines > LINES_MAX && !argued {
        found.push(Violation { line: LINES_MAX + 1, what: format!("{lines} lines; split it, or argue in LONG_FILES") });
    }
    if lines <= LINES_MAX && argued {
        found.push(Violation { line: 1, what: "it is short enough; take it out of LONG_FILES".to_string() });
    }
}

/// The text of the token so many places further, or nothing.
fn next(tokens: &[Token], at: usize, further: usize) -> &str {
    tokens.get(at + further).map_or("", |token| token.text.as_str())
}

fn previous(tokens: &[Token], at: usize) -> &str {
    at.checked_sub(1).map_or("", |before| tokens[before].text.as_str())
}

fn check_imports(folder: &str, tokens: &[Token], at: usize, add: &mut dyn FnMut(String)) {
    let token = &tokens[at];
    let (one, two, three) = (next(tokens, at, 1), next(tokens, at, 2), next(tokens, at, 3));
    match token.text.as_str() {
        "crate" if one == "::" => check_floor(folder, two, add),
        "crate" if previous(tokens, at) == "use" || one == "as" => add("`use crate` names no file".to_string()),
        "super" if one == "::" && !token.in_tests => add("`super::` outside tests; write `crate::…`".to_string()),
        "self" if one == "::" && previous(tokens, at) == "use" => add("`use self::…`; write `crate::…`".to_string()),
        "extern" if one == "crate" => add("`extern crate` gives a second name to things".to_string()),
        "use" if previous(tokens, at) == "pub" || previous(tokens, at) == ")" => {
            add("a re-export; there is one way to name a thing".to_string());
        }
        "include" if one == "!" => add("`include!` brings in code that is not read here".to_string()),
        "path" if previous(tokens, at) == "[" && one == "=" => add("`#[path]` hides where code stands".to_string()),
        "::" if one == "*" && (two == ";" || two == "," || two == "}") && !token.in_tests => {
            add("a glob import outside tests".to_string());
        }
        "mod" if one == "tests" && two != "{" && !three.is_empty() => {
            add("tests stand in the file: `mod tests { … }`".into())
        }
        _ => {}
    }
}

fn check_floor(folder: &str, target: &str, add: &mut dyn FnMut(String)) {
    if target == "{" || target == "*" {
        return add("a brace or a star straight after `crate::`; one import a line".to_string());
    }
    let is_open = ROOF.contains(&folder) || folder == target;
    if !is_open && !floor(folder).is_some_and(|below| below.contains(&target)) {
        add(format!("`{folder}` may not import `{target}`: only downwards, never sideways"));
    }
}

fn check_crates(path: &str, folder: &str, tokens: &[Token], at: usize, add: &mut dyn FnMut(String)) {
    let token = tokens[at].text.as_str();
    let one = next(tokens, at, 1);
    let is_inner = previous(tokens, at) == "::" && at >= 2 && is_name(&tokens[at - 2].text);
    let is_crate = !is_inner && (one == "::" || (previous(tokens, at) == "use" && matches!(one, ";" | "as")));
    for (name, homes) in CRATES_OF_A_FOLDER {
        if token == *name && is_crate && !homes.contains(&folder) {
            add(format!("only `{}` knows the crate `{name}`", homes.join("`, `")));
        }
    }
    if reads_clock(tokens, at) && path != CLOCK {
        add(format!("only {CLOCK} reads the clock"));
    }
}

/// Text becomes cells in two files only.
fn check_drawing(tokens: &[Token], at: usize, add: &mut dyn FnMut(String)) {
    let token = &tokens[at];
    let (one, two, three, four) = (next(tokens, at, 1), next(tokens, at, 2), next(tokens, at, 3), next(tokens, at, 4));
    if token.in_tests {
        return;
    }
    let is_raw = matches!((token.text.as_str(), one, two), ("Piece" | "Line" | "Span", "::", "raw" | "styled"))
        || (DRAWS_RAW.contains(&token.text.as_str()) && one == "(")
        || (token.text == "text" && (one, two) == ("::", "Text"));
    let is_unknown = (token.text.as_str(), one, two, three) == ("Line", "::", "from", "(") && !PIECES.contains(&four);
    if is_raw || is_unknown {
        add(format!("text is drawn by `piece`, `marked`, `named` or `stressed` ({})", DRAWERS.join(", ")));
    }
}

fn reads_clock(tokens: &[Token], at: usize) -> bool {
    CLOCKS.contains(&tokens[at].text.as_str()) && next(tokens, at, 1) == "::" && next(tokens, at, 2) == "now"
}

fn is_name(text: &str) -> bool {
    text.chars().all(|letter| letter.is_alphanumeric() || letter == '_')
        && !matches!(text, "use" | "as" | "in" | "return" | "let" | "if" | "match" | "else" | "mut" | "ref" | "move")
}

fn check_purity(tokens: &[Token], at: usize, add: &mut dyn FnMut(String)) {
    let token = tokens[at].text.as_str();
    if BANNED_WORDS.contains(&token) {
        add(format!("`{token}` on a floor that is pure"));
    }
    let is_float = token.starts_with(|letter: char| letter.is_ascii_digit()) && token.contains('.');
    if is_float && previous(tokens, at) != "." {
        add(format!("the float {token} on a floor that is pure"));
    }
    if token != "std" || next(tokens, at, 1) != "::" {
        return;
    }
    if BANNED_STD.contains(&next(tokens, at, 2)) {
        add(format!("`std::{}` on a floor that is pure", next(tokens, at, 2)));
    }
    if next(tokens, at, 2) == "{" {
        let group = &tokens[at + 3..group_end(tokens, at + 2)];
        for word in group.iter().filter(|word| BANNED_STD.contains(&word.text.as_str())) {
            add(format!("`std::{}` on a floor that is pure", word.text));
        }
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All files of a kind under a folder, in order.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut found = Vec::new();
    for path in paths {
        if path.is_dir() {
            found.extend(files(&path, ending));
        } else if path.extension().is_some_and(|extension| extension == ending) {
            found.push(path);
        }
    }
    found
}

#[test]
fn the_sources_obey() {
    let sources = root().join("src");
    let mut violations = Vec::new();
    for path in files(&sources, "rs") {
        let name = path.strip_prefix(&sources).unwrap().to_string_lossy().into_owned();
        for violation in check_source(&name, &fs::read_to_string(&path).unwrap()) {
            violations.push(format!("src/{name}:{}: {}", violation.line, violation.what));
        }
    }
    for (name, _) in LONG_FILES {
        if !sources.join(name).exists() {
            violations.push(format!("tests/architecture.rs: src/{name} is not there, so it needs no exception"));
        }
    }
    assert!(violations.is_empty(), "{}", violations.join("\n"));
}

/// What a program of the tests does not use does not belong into it, and where a module stands is told by its name.
#[test]
fn nothing_is_allowed_to_be_dead_or_hidden() {
    let (dead, path) = (concat!("dead", "_code"), concat!("#[", "path"));
    let all = ["src", "tests"].into_iter().flat_map(|folder| files(&root().join(folder), "rs"));
    let is_bad = |file: &PathBuf| {
        let text = fs::read_to_string(file).unwrap();
        text.contains(dead) || text.lines().any(|line| line.trim_start().starts_with(path))
    };
    let bad: Vec<PathBuf> = all.filter(is_bad).collect();
    assert!(bad.is_empty(), "the lint is switched off, or a module's place is hidden, in {bad:?}");
}

#[test]
fn the_top_level_is_fixed() {
    let mut strangers = Vec::new();
    for entry in fs::read_dir(root()).unwrap() {
        let name = entry.unwrap().file_name().to_string_lossy().into_owned();
        if !name.starts_with('.') && !name.starts_with("LICENSE") && !TOP.contains(&name.as_str()) {
            strangers.push(name);
        }
    }
    assert!(strangers.is_empty(), "these do not belong at the top: {strangers:?}");
}

/// What the scanner says of a source, one violation a line.
fn check(path: &str, source: &str, expected: &[&str]) {
    let said: Vec<String> =
        check_source(path, source).iter().map(|one| format!("{}: {}", one.line, one.what)).collect();
    assert_eq!(said, expected, "for {path}:\n{source}");
}

#[test]
fn the_scanner_sees_imports() {
    let ok = "//! x\nuse crate::domain::run::Run;\nuse crate::policy::ending::x;\nuse std::fmt;\n";
    check("policy/a.rs", ok, &[]);
    check(
        "policy/a.rs",
        "//! x\nuse crate::machine::turn;\n",
        &["2: `policy` may not import `machine`: only downwards, never sideways"],
    );
    check(
        "store/sled.rs",
        "//! x\nfn a() { crate::policy::ending::x() }\n",
        &["2: `store` may not import `policy`: only downwards, never sideways"],
    );
    check(
        "model/a.rs",
        "//! x\nuse crate ::\n    tools :: Tool;\n",
        &["2: `model` may not import `tools`: only downwards, never sideways"],
    );
    check(
        "headless/a.rs",
        "//! x\nuse crate::tui::app::App;\nuse crate::r#config::Settings;\n",
        &[
            "2: `headless` may not import `tui`: only downwards, never sideways",
            "3: `headless` may not import `config`: only downwards, never sideways",
        ],
    );
    check("cli.rs", "//! x\nuse crate::tui::app::App;\n", &[]);
    check("config/keys.rs", "//! x\nuse crate::cli::Options;\n", &[]);
    check(
        "engine/a.rs",
        "//! x\nuse crate::{domain::run::Run, tui::app::App};\nuse crate::*;\n",
        &[
            "2: a brace or a star straight after `crate::`; one import a line",
            "3: a brace or a star straight after `crate::`; one import a line",
            "3: a glob import outside tests",
        ],
    );
    check(
        "engine/a.rs",
        "//! x\nuse crate as ours;\nextern crate std as other;\nuse self::b::C;\n",
        &[
            "2: `use crate` names no file",
            "3: `extern crate` gives a second name to things",
            "4: `use self::…`; write `crate::…`",
        ],
    );
    check(
        "engine/a.rs",
        "//! x\nuse super::b::C;\nuse crate::domain::run::*;\npub use crate::domain::run::Run;\n",
        &[
            "2: `super::` outside tests; write `crate::…`",
            "3: a glob import outside tests",
            "4: a re-export; there is one way to name a thing",
        ],
    );
    check(
        "engine/a.rs",
        "//! x\npub(crate) use std::fmt;\n#[path = \"b.rs\"]\nmod c;\ninclude!(\"d.rs\");\n",
        &[
            "2: a re-export; there is one way to name a thing",
            "3: `#[path]` hides where code stands",
            "5: `include!` brings in code that is not read here",
        ],
    );
    check("strange/a.rs", "//! x\n", &["1: `strange` stands on no floor; add it to the table"]);
}

#[test]
fn the_scanner_sees_bans() {
    check(
        "domain/a.rs",
        "//! x\nasync fn a(b: f64) { tokio::spawn(c) }\n",
        &[
            "2: `async` on a floor that is pure",
            "2: `f64` on a floor that is pure",
            "2: `tokio` on a floor that is pure",
        ],
    );
    check(
        "machine/a.rs",
        "//! x\nuse std::{fmt, io::Read, env};\nlet a = 1.5 + b.0.1 + (1..2).len();\n",
        &["2: `std::env` on a floor that is pure", "3: the float 1.5 on a floor that is pure"],
    );
    check(
        "policy/a.rs",
        "//! x\nfn a() { std::fs::read(b) }\nmod tests { use std::collections::HashMap; }\n",
        &["2: `std::fs` on a floor that is pure", "3: `HashMap` on a floor that is pure"],
    );
    check("policy/a.rs", "//! x\nlet version = env!(\"CARGO_PKG_VERSION\");\n", &[]);
    check("engine/a.rs", "//! x\nuse std::fs;\nasync fn a(b: f64) {}\n", &[]);
}

#[test]
fn the_scanner_sees_crates_and_clocks() {
    check(
        "engine/a.rs",
        "//! x\nuse crate::store::sled::SledJournal;\nuse sled::Db;\nlet a = ::sled::open(b);\n",
        &["3: only `store` knows the crate `sled`", "4: only `store` knows the crate `sled`"],
    );
    check("store/mod.rs", "//! x\npub mod sled;\nuse ::sled::Db;\n", &[]);
    check(
        "headless/a.rs",
        "//! x\nuse ratatui::Frame;\nuse crossterm as c;\n",
        &["2: only `tui` knows the crate `ratatui`", "3: only `tui` knows the crate `crossterm`"],
    );
    check(
        "tui/a.rs",
        "//! x\nuse ratatui::Frame;\nlet a = std::time::SystemTime::now();\n",
        &["3: only engine/clock.rs reads the clock"],
    );
    check("main.rs", "//! x\nlet a = jiff::Timestamp::now();\n", &["2: only engine/clock.rs reads the clock"]);
    check("engine/clock.rs", "//! x\nlet a = SystemTime::now();\n", &[]);
}

#[test]
fn the_scanner_sees_what_draws() {
    let raw = "text is drawn by `piece`, `marked`, `named` or `stressed` (tui/view.rs, tui/text.rs)";
    let lines = [
        "Piece::raw(a)",
        "Line::styled(a, b)",
        "Line::from(a.clone())",
        "buffer.set_string(a)",
        "Span::raw(a)",
        "ratatui::text::Text::raw(a)",
    ];
    for line in lines {
        check("tui/a.rs", &format!("//! x\nlet b = {line};\n"), &[&format!("2: {raw}")]);
        check("tui/text.rs", &format!("//! x\nlet b = {line};\n"), &[]);
    }
    check(
        "tui/a.rs",
        "//! x\nlet a = Line::from(cut(vec![piece(b, c, d)], 3));\nuse ratatui::text::Span as Piece;\n",
        &[],
    );
}

#[test]
fn the_scanner_is_not_fooled() {
    let hidden = "//! x\n// use crate::tui::a;\n/* use crate::tui::a; /* nested */ tokio */\nlet a = \"tokio\";\nlet b = \
                  r#\"say \"tokio\" async\"#;\nlet c = b\"sled::\\\" f64\";\nlet d = ('\"', '\\'', b'\"', 'x');\nfn \
                  e<'async_>(f: &'async_ str) {}\n";
    check("domain/a.rs", hidden, &[]);
    let after = |before: &str| format!("//! x\n{before}tokio;\n");
    for before in [
        "'\"'; ",
        "'\\''; ",
        "\"\\\\\"; ",
        "r\"\\\"; ",
        "r##\"\"#\"##; ",
        "/* \" */ ",
        "'\\u{22}'; ",
        "&'a ",
        "b'\\\"'; ",
    ] {
        check("domain/a.rs", &after(before), &["2: `tokio` on a floor that is pure"]);
    }
    check("domain/a.rs", "//! x\n\"a\nb\";\n/*\n*/ tokio;\n", &["5: `tokio` on a floor that is pure"]);
    for open in ["\"never closed", "/* never closed", "r#\"never closed\"", "'", "'\\", "b", "r#"] {
        let _ = check_source("domain/a.rs", &format!("//! x\n{open}"));
    }
}

#[test]
fn the_scanner_knows_tests_headers_and_sizes() {
    let tests = "//! x\nmod a { }\n#[cfg(test)]\nmod tests {\n    use super::*;\n    fn a() { if b { } }\n}\n";
    check("domain/a.rs", tests, &[]);
    check("domain/a.rs", &format!("{tests}use super::b;\n"), &["8: `super::` outside tests; write `crate::…`"]);
    check(
        "domain/a.rs",
        "//! x\n#[cfg(test)]\nmod tests;\nfn a() {}\n",
        &["3: tests stand in the file: `mod tests { … }`"],
    );
    check("domain/a.rs", "use std::fmt;\n", &["1: a file opens with `//!`, which says what it is for"]);
    check("domain/a.rs", &format!("//! x\n{}", "\n".repeat(599)), &[]);
    check(
        "domain/a.rs",
        &format!("//! x\n{}", "\n".repeat(600)),
        &["601: 601 lines; split it, or argue in LONG_FILES"],
    );
}
