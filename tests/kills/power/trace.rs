//! What a program and its children asked the system for, as strace saw it, one after another.
//!
//! strace stops each thread at the entry and at the exit of a call, so the order of its lines is an order in which
//! things were seen: what exited before another entered was done by then.

use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

/// What changes files, or makes them durable, or tells somebody.
const CALLS: &str = "openat,open,creat,write,writev,pwrite64,pwritev,pwritev2,lseek,ftruncate,truncate,fallocate,fsync,\
                     fdatasync,sync,syncfs,sync_file_range,rename,renameat,renameat2,link,linkat,unlink,unlinkat,mkdir,\
                     mkdirat,rmdir,copy_file_range,sendfile";

/// Why a program can't be watched here, if it can't.
pub fn unavailable() -> Option<String> {
    if !nix::unistd::Uid::effective().is_root() {
        return Some("tiller hides its memory, so only root can watch it".to_string());
    }
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let told = Command::new("strace")
        .args(["-f", "-y", "-xx", "--seccomp-bpf", "-e", "trace=fsync"])
        .arg("-o")
        .arg(&log)
        .arg("true")
        .output();
    match told {
        Ok(output) if output.status.success() && log.exists() => None,
        Ok(output) => Some(format!("strace can't watch here: {}", String::from_utf8_lossy(&output.stderr).trim())),
        Err(error) => Some(format!("strace can't be run: {error}")),
    }
}

/// The command, watched, with its trace in `log`.
pub fn watched(command: &Command, log: &Path) -> Command {
    let mut watched = Command::new("strace");
    watched.args(["-f", "-y", "-xx", "--seccomp-bpf", "-s", "33554432", "-e"]).arg(format!("trace={CALLS}"));
    watched.arg("-o").arg(log).arg("--").arg(command.get_program()).args(command.get_args()).env_clear();
    watched.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    if let Some(dir) = command.get_current_dir() {
        watched.current_dir(dir);
    }
    watched
}

/// A call at its entry, or at its successful exit.
#[derive(Clone, Debug, PartialEq)]
pub enum Seen {
    Enters(Asked),
    Exits(Asked),
}

/// What was asked for. Paths are whole; a file is named by the path that it had then.
#[derive(Clone, Debug, PartialEq)]
pub enum Asked {
    /// A file was opened: made if it was not there, emptied if so asked.
    Open {
        path: PathBuf,
        fd: u32,
        makes: bool,
        empties: bool,
        appends: bool,
    },
    /// Bytes at the place where this descriptor stands, or at an offset.
    Write {
        path: PathBuf,
        fd: u32,
        at: Option<u64>,
        bytes: Vec<u8>,
    },
    /// A length.
    Cut {
        path: PathBuf,
        length: u64,
    },
    /// All of the file's bytes, durable at the exit.
    Sync {
        path: PathBuf,
    },
    /// Two names of files change places.
    Exchange {
        one: PathBuf,
        other: PathBuf,
    },
    Rename {
        from: PathBuf,
        to: PathBuf,
    },
    Link {
        from: PathBuf,
        to: PathBuf,
    },
    Remove {
        path: PathBuf,
    },
    MakeFolder {
        path: PathBuf,
    },
    /// Something that the disk of these tests can't play; harmless as long as it is not about the store.
    Other {
        call: String,
        path: PathBuf,
    },
}

/// Reads a trace.
pub fn read(log: &Path) -> Vec<Seen> {
    let text = fs::read_to_string(log).unwrap();
    let mut seen = Vec::new();
    let mut begun: Vec<(&str, String)> = Vec::new();
    for line in text.lines() {
        let Some((thread, rest)) = line.split_once(' ') else { continue };
        let rest = rest.trim_start();
        if let Some(entered) = rest.strip_suffix(" <unfinished ...>") {
            seen.extend(parse(entered, None).map(Seen::Enters));
            begun.push((thread, entered.to_string()));
        } else if let Some(resumed) = rest.strip_prefix("<... ") {
            let Some(place) = begun.iter().rposition(|(one, _)| *one == thread) else { continue };
            let (_, entered) = begun.remove(place);
            let tail = resumed.split_once(" resumed>").map_or("", |(_, tail)| tail);
            seen.extend(parse(&format!("{entered}{tail}"), result(tail)).map(Seen::Exits));
        } else {
            seen.extend(parse(rest, None).map(Seen::Enters));
            seen.extend(parse(rest, result(rest)).map(Seen::Exits));
        }
    }
    seen
}

/// The result of a call that succeeded.
fn result(line: &str) -> Option<u64> {
    let text = line.rsplit_once(" = ")?.1;
    text.split(['<', ' ']).next()?.parse().ok()
}

/// A call as strace writes it. At its exit the result is known: what failed, or is not of interest, is nothing.
fn parse(line: &str, result: Option<u64>) -> Option<Asked> {
    let (name, rest) = line.split_once('(')?;
    let is_exit = line.contains(" = ");
    if is_exit && result.is_none() && line.rsplit_once(" = ")?.1.starts_with('-') {
        return None;
    }
    let words = arguments(rest);
    let (first, second) = (words.first()?, words.get(1).map_or("", String::as_str));
    let file = |word: &str| Some((descriptor(word)?, PathBuf::from(named(word)?)));
    let beside = |dir: &str, word: &str| Some(PathBuf::from(named(dir)?).join(text(word)?));
    match name {
        "openat" => {
            let flags = words.get(2)?;
            let fd = u32::try_from(result.unwrap_or(u64::from(u32::MAX))).ok()?;
            let (makes, empties, appends) =
                (flags.contains("O_CREAT"), flags.contains("O_TRUNC"), flags.contains("O_APPEND"));
            Some(Asked::Open { path: beside(first, second)?, fd, makes, empties, appends })
        }
        "write" | "pwrite64" => {
            let (fd, path) = file(first)?;
            let mut bytes = bytes(second)?;
            bytes.truncate(result.and_then(|written| usize::try_from(written).ok()).unwrap_or(usize::MAX));
            let at = if name == "write" { None } else { Some(words.get(3)?.parse().ok()?) };
            Some(Asked::Write { path, fd, at, bytes })
        }
        "ftruncate" => Some(Asked::Cut { path: file(first)?.1, length: second.parse().ok()? }),
        "fsync" | "fdatasync" => Some(Asked::Sync { path: file(first)?.1 }),
        "rename" => Some(Asked::Rename { from: text(first)?.into(), to: text(second)?.into() }),
        "renameat2" if words.last().is_some_and(|flags| flags.contains("RENAME_EXCHANGE")) => {
            Some(Asked::Exchange { one: beside(first, second)?, other: beside(words.get(2)?, words.get(3)?)? })
        }
        "renameat" | "renameat2" => {
            Some(Asked::Rename { from: beside(first, second)?, to: beside(words.get(2)?, words.get(3)?)? })
        }
        "linkat" => Some(Asked::Link { from: beside(first, second)?, to: beside(words.get(2)?, words.get(3)?)? }),
        "unlink" | "rmdir" => Some(Asked::Remove { path: text(first)?.into() }),
        "unlinkat" => Some(Asked::Remove { path: beside(first, second)? }),
        "mkdir" => Some(Asked::MakeFolder { path: text(first)?.into() }),
        "mkdirat" => Some(Asked::MakeFolder { path: beside(first, second)? }),
        // Starts bytes on their way and promises nothing; reads move nothing that matters here.
        "sync_file_range" | "lseek" => None,
        other => {
            let path = words.iter().rev().find_map(|word| named(word)).or_else(|| text(first)).unwrap_or_default();
            Some(Asked::Other { call: other.to_string(), path: path.into() })
        }
    }
}

/// The arguments of a call, cut at commas outside of quotes, brackets and names of descriptors.
fn arguments(rest: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let (mut is_quoted, mut depth) = (false, 0_u32);
    for letter in rest.chars() {
        match letter {
            '"' => is_quoted = !is_quoted,
            '<' | '[' | '{' if !is_quoted => depth += 1,
            '>' | ']' | '}' if !is_quoted => depth = depth.saturating_sub(1),
            ')' if !is_quoted && depth == 0 => break,
            ',' if !is_quoted && depth == 0 => {
                words.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(word) = words.last_mut() {
            word.push(letter);
        }
    }
    words.iter().map(|word| word.trim().to_string()).collect()
}

/// `12` of `12<path>`.
fn descriptor(word: &str) -> Option<u32> {
    word.split('<').next()?.parse().ok()
}

/// `path` of `12<path>`.
fn named(word: &str) -> Option<String> {
    let path = word.split_once('<')?.1.strip_suffix('>')?;
    String::from_utf8(unescape(path)).ok()
}

/// A quoted path.
fn text(word: &str) -> Option<String> {
    String::from_utf8(bytes(word)?).ok()
}

fn bytes(word: &str) -> Option<Vec<u8>> {
    Some(unescape(word.strip_prefix('"')?.strip_suffix('"')?))
}

/// Bytes that strace wrote as `\x41`; anything else stands for itself.
fn unescape(text: &str) -> Vec<u8> {
    let raw = text.as_bytes();
    let mut bytes = Vec::with_capacity(raw.len() / 4);
    let mut at = 0;
    while at < raw.len() {
        let code = raw.get(at + 2..at + 4).filter(|_| raw[at..].starts_with(b"\\x"));
        match code.and_then(|code| u8::from_str_radix(std::str::from_utf8(code).ok()?, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                at += 4;
            }
            None => {
                bytes.push(raw[at]);
                at += 1;
            }
        }
    }
    bytes
}

#[test]
fn a_trace_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let lines = [
        r#"7 openat(AT_FDCWD<\x2f\x61>, "\x62", O_RDWR|O_CREAT|O_CLOEXEC, 0666) = 5<\x2f\x61\x2f\x62>"#,
        r#"7 pwrite64(5<\x2f\x61\x2f\x62>, "\x01\x2c", 2, 40 <unfinished ...>"#,
        r#"8 fdatasync(6<\x2f\x61\x2f\x62>)          = 0"#,
        r#"7 <... pwrite64 resumed>)                  = 2"#,
        r#"8 mkdir("\x2f\x63", 0777) = -1 EEXIST (File exists)"#,
        r#"8 +++ exited with 0 +++"#,
    ];
    fs::write(&log, lines.join("\n")).unwrap();
    let path = || PathBuf::from("/a/b");
    let open = |fd| Asked::Open { path: path(), fd, makes: true, empties: false, appends: false };
    let write = || Asked::Write { path: path(), fd: 5, at: Some(40), bytes: vec![1, 44] };
    let expected = [
        Seen::Enters(open(u32::MAX)),
        Seen::Exits(open(5)),
        Seen::Enters(write()),
        Seen::Enters(Asked::Sync { path: path() }),
        Seen::Exits(Asked::Sync { path: path() }),
        Seen::Exits(write()),
    ];
    assert_eq!(read(&log), expected);
}
