//! The operator's own file of standing rules, `rules.toml` beside tiller.toml: read strictly, changed by whole blocks so
//! that what people wrote beside them stays, replaced in one step under a lock. On floor 3 with the other files that
//! are ours and private. Whether a rule can be meant is `policy/rules.rs`.

use std::fs::DirBuilder;
use std::fs::File;
use std::fs::OpenOptions;
use std::fs::TryLockError;
use std::io;
use std::io::Read;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;
use std::time::Instant;

use serde::Deserialize;

use crate::domain::limits;
use crate::domain::rule::Profile;
use crate::domain::rule::Rule;
use crate::domain::rule::RuleDraft;
use crate::domain::rule::RuleEffect;
use crate::domain::rule::Token;
use crate::domain::rule::What;
use crate::domain::text::counted;
use crate::domain::time::Timestamp;
use crate::store::files;

/// The line that each rule begins with.
const HEADER: &str = "[[rule]]";
/// What a new file begins with.
const PREFACE: &str = "\
# Standing rules of tiller (docs/SAFETY.md). A rule that denies outranks one that asks, and that one outranks one that
# allows. `tiller rules` lists, explains and changes them; each line after a # stays as you write it.
";
/// Between two attempts at the lock.
const LOCK_STEP: Duration = Duration::from_millis(5);

/// What a file of rules is like at a moment: another stamp, another content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    inode: (u64, u64),
    length: u64,
    changed: (i64, i64),
    status: (i64, i64),
    access: (u32, u32),
}

/// What the file is like; nothing where there is none. Errors, in a sentence, when that can't be told.
pub fn stamp(path: &Path) -> Result<Option<Stamp>, String> {
    match std::fs::symlink_metadata(path) {
        Ok(facts) => Ok(Some(Stamp {
            inode: (facts.dev(), facts.ino()),
            length: facts.len(),
            changed: (facts.mtime(), facts.mtime_nsec()),
            status: (facts.ctime(), facts.ctime_nsec()),
            access: (facts.mode(), facts.uid()),
        })),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => Err(about(path, &error.to_string())),
    }
}

/// All rules of the file; none where there is no file. Errors, in a sentence, when it can't be read whole, or is not the
/// operator's alone.
pub fn read(path: &Path) -> Result<Vec<Rule>, String> {
    parse(&text(path)?).map_err(|why| about(path, &why))
}

/// Adds a rule, durably. One that says the same and never ends is left as it is, and given: whatever its id; nothing where
/// the rule is new. Errors, in a sentence, when its id is that of another rule, or it can't be written; then nothing
/// changed.
pub fn add(path: &Path, rule: &Rule) -> Result<Option<Rule>, String> {
    locked(path, |text| {
        let before = parse(text)?;
        if let Some(other) = before.iter().find(|one| one.id == rule.id && one.draft != rule.draft) {
            return Err(format!(
                "the id {} is that of another rule ({}); give that one another in an editor",
                rule.id, other.draft
            ));
        }
        let same = before.iter().find(|one| one.draft == rule.draft);
        if let Some(lasting) = same.filter(|one| one.expires_at.is_none()) {
            return Ok((None, Some(lasting.clone())));
        }
        if before.len() >= limits::RULES {
            return Err(format!("there are {} rules, and more are not looked at; remove some", before.len()));
        }
        let kept = same.map_or_else(|| Ok(text.to_string()), |same| without(text, &same.id))?;
        let lead = match kept.as_str() {
            "" => PREFACE.to_string(),
            some if some.ends_with('\n') => some.to_string(),
            some => format!("{some}\n"),
        };
        let expected =
            before.iter().filter(|one| same.is_none_or(|same| one.id != same.id)).chain([rule]).cloned().collect();
        Ok((Some((format!("{lead}\n{}", written(rule)), expected)), None))
    })
}

/// Takes the rule of this id away, durably, and gives it; nothing where there is none. Errors as `add`.
pub fn remove(path: &Path, id: &str) -> Result<Option<Rule>, String> {
    locked(path, |text| {
        let (gone, expected): (Vec<Rule>, Vec<Rule>) = parse(text)?.into_iter().partition(|one| one.id == id);
        match gone.into_iter().next() {
            Some(rule) => Ok((Some((without(text, id)?, expected)), Some(rule))),
            None => Ok((None, None)),
        }
    })
}

/// What is to be written, with the rules that must then be read of it; and what is given.
type Change<T> = (Option<(String, Vec<Rule>)>, T);

/// Changes the file while nobody else does.
fn locked<T>(path: &Path, change: impl FnOnce(&str) -> Result<Change<T>, String>) -> Result<T, String> {
    let fail = |error: io::Error| about(path, &error.to_string());
    if let Some(dir) = path.parent() {
        DirBuilder::new().recursive(true).mode(files::DIR_MODE).create(dir).map_err(fail)?;
    }
    let _lock = lock(&path.with_extension("lock")).map_err(fail)?;
    let (wanted, given) = change(&text(path)?).map_err(|why| about(path, &why))?;
    let Some((wanted, expected)) = wanted else { return Ok(given) };
    // A form that people may write and that is changed here otherwise than meant must not be written.
    if parse(&wanted).as_ref() != Ok(&expected) || wanted.len() as u64 > limits::RULES_FILE_BYTES {
        return Err(about(path, "it is written in a way that can't be changed from here; change it in an editor"));
    }
    files::replace_synced(path, wanted.as_bytes()).map_err(fail)?;
    Ok(given)
}

fn lock(path: &Path) -> io::Result<File> {
    let file = files::open_or_create(path, OpenOptions::new().read(true).append(true))?;
    let begun = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if begun.elapsed() < Duration::from_millis(limits::LOCK_PATIENCE.0) => {
                std::thread::sleep(LOCK_STEP);
            }
            Err(TryLockError::WouldBlock) => return Err(io::Error::other("another process changes it for too long")),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// The text of the file, if it is the operator's alone; empty where there is none.
fn text(path: &Path) -> Result<String, String> {
    let file = match files::open_plain(path, OpenOptions::new().read(true)) {
        Ok(file) => file,
        Err(error) if is_missing(&error) => return Ok(String::new()),
        Err(error) => return Err(about(path, &error.to_string())),
    };
    let facts = file.metadata().map_err(|error| about(path, &error.to_string()))?;
    let shown = path.display();
    if facts.uid() != nix::unistd::geteuid().as_raw() {
        return Err(format!("{shown} belongs to another user; remove it, or make it yours with chown"));
    }
    if facts.mode() & 0o077 != 0 {
        let mode = facts.mode() & 0o777;
        return Err(format!(
            "{shown} is open to other users (mode {mode:o}); look at what it says, then: chmod 600 {shown}"
        ));
    }
    let mut bytes = Vec::new();
    let count = file.take(limits::RULES_FILE_BYTES + 1).read_to_end(&mut bytes);
    match count {
        Ok(count) if count as u64 > limits::RULES_FILE_BYTES => {
            Err(about(path, "it is longer than a file of rules can be"))
        }
        Ok(_) => String::from_utf8(bytes).map_err(|_| about(path, "it is not text in UTF-8")),
        Err(error) => Err(about(path, &error.to_string())),
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound)
}

fn about(path: &Path, why: &str) -> String {
    if why.starts_with(&path.display().to_string()) {
        return why.to_string();
    }
    // The name before the folder, and both behind what is wrong: where there is little room, the end is cut.
    let name = path.file_name().unwrap_or_default().display().to_string();
    format!("{name}: {why} ({})", path.display())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct All {
    #[serde(default)]
    rule: Vec<Block>,
}

/// A rule as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Block {
    id: Option<String>,
    effect: RuleEffect,
    argv: Option<Vec<Token>>,
    path: Option<String>,
    host: Option<String>,
    workspace: Option<String>,
    #[serde(default)]
    network: bool,
    #[serde(default)]
    profile: Profile,
    made_at: Option<toml::Value>,
    #[serde(default)]
    author: String,
    expires: Option<toml::Value>,
    #[serde(default)]
    note: String,
}

/// The rules in a text. Errors with why it can't be read.
fn parse(text: &str) -> Result<Vec<Rule>, String> {
    let all: All = toml::from_str(text).map_err(|error| {
        let line = error.span().map(|span| text.get(..span.start).unwrap_or_default().matches('\n').count() + 1);
        let place = line.map(|line| format!("line {line}: ")).unwrap_or_default();
        format!("{place}{}", error.message())
    })?;
    let mut rules: Vec<Rule> = Vec::new();
    for (place, block) in all.rule.into_iter().enumerate() {
        let rule = block.rule().map_err(|why| format!("rule {}: {why}", place + 1))?;
        if rules.iter().any(|before| before.id == rule.id) {
            return Err(format!("rule {}: there is one with the id {} before it", place + 1, rule.id));
        }
        rules.push(rule);
    }
    if rules.len() > limits::RULES {
        return Err(format!("there are {}, and at most {} are looked at", counted(rules.len(), "rule"), limits::RULES));
    }
    Ok(rules)
}

impl Block {
    fn rule(self) -> Result<Rule, String> {
        let what = match (self.argv, self.path, self.host) {
            (Some(argv), None, None) => What::Argv(argv),
            (None, Some(path), None) => What::Path(path),
            (None, None, Some(host)) => What::Host(host),
            _ => return Err("it must have exactly one of argv, path and host".to_string()),
        };
        if self.workspace.as_ref().is_some_and(|folder| !folder.starts_with('/')) {
            return Err("workspace is a whole path, from / on".to_string());
        }
        let workspace = self.workspace;
        let draft = RuleDraft { effect: self.effect, what, workspace, network: self.network, profile: self.profile };
        let id = self.id.unwrap_or_else(|| draft.id());
        if id.is_empty() || !id.bytes().all(|one| one.is_ascii_alphanumeric() || one == b'-' || one == b'_') {
            return Err("id is made of letters, digits, - and _".to_string());
        }
        let (made_at, expires_at) = (moment("made_at", self.made_at)?, moment("expires", self.expires)?);
        Ok(Rule { id, draft, made_at, author: self.author, expires_at, note: self.note })
    }
}

fn moment(name: &str, value: Option<toml::Value>) -> Result<Option<Timestamp>, String> {
    let text = match value {
        None => return Ok(None),
        Some(toml::Value::String(text)) => text,
        Some(other) => other.to_string(),
    };
    let read: Option<u64> =
        text.parse::<jiff::Timestamp>().ok().map(|time| time.as_millisecond().try_into().unwrap_or(0));
    read.map(Timestamp).map(Some).ok_or_else(|| format!("{name} is a moment as 2030-01-31T12:00:00Z"))
}

/// A rule as a block of the file.
fn written(rule: &Rule) -> String {
    let quoted = |text: &str| toml::Value::String(text.to_string()).to_string();
    let draft = &rule.draft;
    let mut lines = vec![
        HEADER.to_string(),
        format!("id = {}", quoted(&rule.id)),
        format!("effect = {}", quoted(draft.effect.word())),
    ];
    lines.push(match &draft.what {
        What::Argv(tokens) => {
            let words: Vec<String> = tokens
                .iter()
                .map(|token| match token {
                    Token::Word(word) => quoted(word),
                    any if *any == Token::REST => "{ any = \"rest\" }".to_string(),
                    Token::Any { .. } => "{ any = \"one\" }".to_string(),
                })
                .collect();
            format!("argv = [{}]", words.join(", "))
        }
        What::Path(glob) => format!("path = {}", quoted(glob)),
        What::Host(host) => format!("host = {}", quoted(host)),
    });
    lines.extend(draft.workspace.as_ref().map(|folder| format!("workspace = {}", quoted(folder))));
    lines.extend(draft.network.then(|| "network = true".to_string()));
    lines.extend((draft.profile == Profile::None).then(|| "profile = \"none\"".to_string()));
    let times = [("made_at", rule.made_at), ("expires", rule.expires_at)];
    lines.extend(times.into_iter().filter_map(|(name, at)| Some(format!("{name} = {}", quoted(&shown(at?))))));
    let texts = [("author", &rule.author), ("note", &rule.note)];
    lines.extend(
        texts.into_iter().filter(|(_, text)| !text.is_empty()).map(|(name, text)| format!("{name} = {}", quoted(text))),
    );
    lines.join("\n") + "\n"
}

/// A moment as the file has it.
pub fn shown(at: Timestamp) -> String {
    let millis = i64::try_from(at.0).unwrap_or(i64::MAX);
    jiff::Timestamp::from_millisecond(millis).map(|time| time.to_string()).unwrap_or_default()
}

/// The text without the block of a rule. Comments and empty lines after it stay: they may be about the next.
fn without(text: &str, id: &str) -> Result<String, String> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let starts: Vec<usize> =
        lines.iter().enumerate().filter(|(_, line)| line.trim() == HEADER).map(|(place, _)| place).collect();
    let index = parse(text)?.iter().position(|rule| rule.id == id);
    let start = index.and_then(|index| starts.get(index)).copied();
    let Some(start) = start else { return Err("it is written in a way that can't be changed from here".to_string()) };
    let after = starts.iter().copied().find(|next| *next > start).unwrap_or(lines.len());
    let is_beside = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#');
    let own = lines.get(start..after).unwrap_or_default();
    let length = own.iter().rposition(|line| !is_beside(line)).map_or(1, |last| last + 1);
    let kept = lines.iter().enumerate().filter(|(place, _)| *place < start || *place >= start + length);
    Ok(kept.map(|(_, line)| *line).collect())
}
