//! The settings of a configuration of git, read letter by letter as git reads them, or not at all: what may happen
//! unasked is decided by them. `values.rs` reads as loosely as it can, and for the opposite: it must not miss anything.

const BOM: &[u8] = "\u{feff}".as_bytes();
/// What stands in a key in the place of a part in quotes, which may hold any sign.
const PART: &str = ".*.";

/// One setting.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Setting<'a> {
    /// Its section and its name, in small letters: `core.bare`; `remote.*.url` where something stands between them. It has
    /// letters, digits, `-`, `.` and that `*`, and no other signs.
    pub(crate) key: String,
    /// Its value, where there is one that means what is written: no quotes, no backslash.
    pub(crate) value: Option<&'a [u8]>,
}

/// All settings, in their order. Nothing where git would not understand it, or where it is written in a way that is not
/// read here: a NUL, a carriage return that ends no line.
pub(crate) fn read(bytes: &[u8]) -> Option<Vec<Setting<'_>>> {
    let mut rest = bytes.strip_prefix(BOM).unwrap_or(bytes);
    let is_odd = |(at, byte): (usize, &u8)| *byte == b'\r' && rest.get(at + 1) != Some(&b'\n');
    if rest.contains(&0) || rest.iter().enumerate().any(is_odd) {
        return None;
    }
    let (mut section, mut all) = (String::new(), Vec::new());
    while let Some((first, behind)) = rest.split_first() {
        match first {
            byte if is_blank(*byte) => rest = behind,
            b'#' | b';' => rest = behind_line(behind),
            b'[' => (section, rest) = header(behind)?,
            _ => {
                let (setting, after) = setting(&section, rest)?;
                all.push(setting);
                rest = after;
            }
        }
    }
    Some(all)
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

fn behind_line(rest: &[u8]) -> &[u8] {
    let end = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
    rest.get(end..).unwrap_or_default()
}

/// As many letters as a name has, in small letters, and what is behind them.
fn word<'a>(rest: &'a [u8], others: &[u8]) -> (String, &'a [u8]) {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-' || others.contains(byte);
    let (word, behind) = rest.split_at(rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len()));
    (String::from_utf8_lossy(word).to_ascii_lowercase(), behind)
}

/// The begin of the keys in a section, behind its first bracket: `[remote "o"]`, or as it was written once, `[remote.o]`.
fn header(rest: &[u8]) -> Option<(String, &[u8])> {
    let (name, rest) = word(rest, b".");
    if name.is_empty() {
        return None;
    }
    let (first, has_part) = name.split_once('.').map_or((name.as_str(), false), |(first, _)| (first, true));
    if let Some(behind) = rest.strip_prefix(b"]") {
        return Some((format!("{first}{}", if has_part { PART } else { "." }), behind));
    }
    // The line must not end before the bracket does.
    let blank = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let mut rest = rest.get(blank..).filter(|_| blank > 0)?.strip_prefix(b"\"")?;
    loop {
        rest = match rest {
            [b'"', b']', behind @ ..] => return Some((format!("{first}{PART}"), behind)),
            [b'\n' | b'"', ..] | [b'\\', b'\n', ..] => return None,
            [b'\\', _, behind @ ..] | [_, behind @ ..] => behind,
            [] => return None,
        };
    }
}

fn setting<'a>(section: &str, rest: &'a [u8]) -> Option<(Setting<'a>, &'a [u8])> {
    rest.first().filter(|byte| byte.is_ascii_alphabetic())?;
    let (name, rest) = word(rest, b"");
    let key = format!("{section}{name}");
    let rest = rest.get(rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count()..)?;
    match rest {
        [] | [b'\n', ..] | [b'\r', b'\n', ..] => Some((Setting { key, value: None }, rest)),
        [b'=', behind @ ..] => {
            let (value, rest) = value(behind)?;
            Some((Setting { key, value }, rest))
        }
        _ => None,
    }
}

/// A value to the end of its line, or of those that it goes on in; and what is behind it.
fn value(text: &[u8]) -> Option<(Option<&[u8]>, &[u8])> {
    let mut rest = text;
    let (mut is_quoted, mut is_plain) = (false, true);
    loop {
        rest = match rest {
            [] | [b'\n', ..] if is_quoted => return None,
            [] | [b'\n' | b'#' | b';', ..] if !is_quoted => break,
            [b'\\', b'\n' | b't' | b'b' | b'n' | b'\\' | b'"', behind @ ..] | [b'\\', b'\r', b'\n', behind @ ..] => {
                is_plain = false;
                behind
            }
            [b'\\', ..] => return None,
            [b'"', behind @ ..] => {
                (is_quoted, is_plain) = (!is_quoted, false);
                behind
            }
            [_, behind @ ..] => behind,
            [] => break,
        };
    }
    let written = text.get(..text.len() - rest.len())?.trim_ascii();
    Some((Some(written).filter(|_| is_plain), behind_line(rest)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use std::fmt::Write;
    use std::process::Command;

    use super::*;

    /// What stands in configurations, and what may not.
    const TEXTS: [&str; 56] = [
        "",
        "[core]\n\tbare = false\n",
        "\u{feff}[core]bare=false",
        "[core] bare = false # [diff]\n",
        "[core][diff] external = x",
        "[a] b=c\n[d] e=f",
        "[a]\r\nb = c\r\n",
        "[a]\nb = c\rd\n",
        "[a]\nb = c \\\n[diff] external = x\n",
        "[a]\nb = c \\\r\n[diff] external = x\r\n",
        "[a]\n# c \\\nb = d\n",
        "[a]\nb = c ; d \\\ne = f\n",
        "[a]\nb = \"c ; d \\\ne = f\"\n",
        "[a]\nb = \"c # d\ne = f\n",
        "[a]\nb = \"c\\\"d\" e\n",
        "[a]\nb = c\\d\n",
        "[a]\nb = c\\\\\nd = e\n",
        "[a]\nb = c\\",
        "[a]\nb = \\\n",
        "[a]\nb\n",
        "[a]\nb",
        "[a]\nb c\n",
        "[a]\nb ; c\n",
        "[a]\nb\t\t= c\n",
        "[a]\nb-9 = c\n",
        "[a]\nb_c = d\n",
        "[a]\n9b = c\n",
        "[a]\n-b = c\n",
        "b = c\n",
        "[]\nb = c\n",
        "[a\n]\nb = c\n",
        "[a ]\nb = c\n",
        "[a-9.B.c]\nD = e\n",
        "[a_b]\nc = d\n",
        "[a.]\nb = c\n",
        "[.a]\nb = c\n",
        "[a \"B.c\"]\nD = e\n",
        "[a.b \"c\"]\nd = e\n",
        "[a\t \"b\"]\nc = d\n",
        "[a\"b\"]\nc = d\n",
        "[a \"b\" ]\nc = d\n",
        "[a \"b\"c]\nd = e\n",
        "[a \"\"]\nb = c\n",
        "[a \"b\\\"]\nc = d\n\"]\ne = f\n",
        "[a \"b\\\\\"]\nc = d\n",
        "[a \"b\\x\"]\nc = d\n",
        "[a \"b\\\n\"]\nc = d\n",
        "[a \"b\n\"]\nc = d\n",
        "[a \"b]\nc = d\n\"]\ne = f\n",
        "[a \"b=]#;\"] c = d\n",
        "[a",
        "[a \"",
        "[a]\n] = b\n",
        "[a]\nb = c\u{b}d\u{c}\n",
        "[a]\n\u{c}b = c\n",
        "[é]\nb = c\n",
    ];

    /// The keys of a configuration by git itself; nothing where it does not take it.
    fn by_git(bytes: &[u8]) -> Option<Vec<String>> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config");
        std::fs::write(&file, bytes).unwrap();
        let mut git = Command::new("git");
        git.args(["config", "--no-includes", "--list", "--null", "--name-only", "--file"]).arg(file);
        let output = git.current_dir(folder.path()).output().unwrap();
        let names = output.stdout.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        let key = |name: &[u8]| {
            let name = String::from_utf8_lossy(name).into_owned();
            let Some((first, rest)) = name.split_once('.') else { return name };
            let (part, last) = rest.rsplit_once('.').map_or(("", rest), |(_, last)| ("*.", last));
            format!("{first}.{part}{last}")
        };
        output.status.success().then(|| names.map(key).collect())
    }

    fn keys(bytes: &[u8]) -> Option<Vec<String>> {
        Some(read(bytes)?.into_iter().map(|setting| setting.key).collect())
    }

    fn check(bytes: &[u8]) -> bool {
        let (found, wanted) = (keys(bytes), by_git(bytes));
        let is_same = found.is_none() || found == wanted;
        assert!(is_same, "{:?}: {found:?}, and git reads {wanted:?}", String::from_utf8_lossy(bytes));
        found.is_some()
    }

    /// What is read is what git reads: where they differ, something would happen unasked that nobody judged.
    #[test]
    fn git_reads_the_same_or_it_is_not_read() {
        let read = TEXTS.iter().filter(|text| check(text.as_bytes())).count();
        assert!(read > 25 && read < TEXTS.len() - 15, "the control: {read}");
        // Each short text beside each other one, so that what one leaves open meets what the next begins with.
        let mut joined = 0;
        for (at, first) in TEXTS.iter().enumerate().step_by(2) {
            let other = TEXTS.get((at * 7 + 3) % TEXTS.len()).unwrap();
            joined += usize::from(check(format!("{first}{other}").as_bytes()));
        }
        assert!(joined > 3, "the control: {joined}");
    }

    /// The same of bytes put into each place of a configuration.
    #[test]
    fn git_reads_the_same_after_any_change_of_one_byte() {
        let whole = b"[a \"b\\\"\"]\r\nc = \"d\\n\" e # f\n[g.h] i\nj=k\\\\\n";
        assert!(check(whole));
        let mut read = 0;
        for at in 0..whole.len() {
            let byte = b"\"\\\n\r][=#; .\0"[at % 12];
            let (before, behind) = whole.split_at(at);
            read += usize::from(check(&[before, &[byte], behind].concat()));
            read += usize::from(check(&[before, &behind[1..]].concat()));
        }
        assert!(read > 20, "the control: {read}");
    }

    #[test]
    fn values_are_given_where_they_are_what_is_written() {
        let mut told = String::new();
        for text in ["b = c d  # e", "b=\tc\r", "b = \"c\"", "b = c\\\\", "b", "b =", "b = c \\\n d"] {
            let bytes = format!("[a]\n{text}\n");
            let all = read(bytes.as_bytes()).unwrap();
            let value = all.first().unwrap().value.map(String::from_utf8_lossy);
            writeln!(told, "{value:?}").unwrap();
        }
        assert_eq!(told, "Some(\"c d\")\nSome(\"c\")\nNone\nNone\nNone\nSome(\"\")\nNone\n");
    }
}
