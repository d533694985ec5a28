//! Untrusted text in lines: every string that is not compiled in passes through here before it is printed.
//!
//! A text of several lines stands behind a gutter, so that nothing in it can pass for a line of tiller's own.

use jiff::tz::TimeZone;
use serde_json::Value;

use crate::domain::text::counted;
use crate::domain::time::Span;
use crate::domain::time::Timestamp;
use crate::domain::visible;

/// What stands before each line of an untrusted text.
const GUTTER: &str = "  | ";
/// Longest title in a line, in characters.
const TITLE_MAX_CHARS: usize = 120;
/// Longest beginning of a shell line, a path or an address that is told, in characters.
const WORDS_CHARS: usize = 80;

/// Untrusted text inside a line of ours: one line, cut where it is long.
pub fn title(text: &str) -> String {
    visible::title(text, TITLE_MAX_CHARS)
}

/// A sentence of ours that may hold untrusted text: one line, whole, since what helps stands at its end.
pub fn sentence(text: &str) -> String {
    visible::title(text, text.chars().count())
}

/// Untrusted text as lines behind the gutter, each with its line break; nothing for an empty text.
pub fn block(text: &str) -> String {
    behind_gutter(&visible::transcript(text))
}

/// As `block`, for text that is decided about: nothing is left out, and no two texts look alike.
pub fn exact_block(text: &str) -> String {
    exact_lines(text, ["", visible::MARK_LF])
}

/// The same of a diff, which mostly ends in a line break: there the other case is marked.
pub fn exact_diff(text: &str) -> String {
    exact_lines(text, [visible::MARK_NO_LF, ""])
}

/// Lines behind the gutter, and what stands at the end of the last one, without a line break and with one.
fn exact_lines(text: &str, ends: [&str; 2]) -> String {
    let shown = visible::approval(text);
    let line_end = format!("{}\n", visible::MARK_LF);
    // The gutter shows where a line ends, so the marks that say the same are not repeated; but one end of the last line is
    // marked, since nothing else shows whether it has one.
    let [open, ended] = ends;
    let (lines, last) = shown.strip_suffix(&line_end).map_or((shown.as_str(), open), |rest| (rest, ended));
    behind_gutter(&(lines.replace(&line_end, "\n") + last + "\n"))
}

/// Text that is run or obeyed, whole: behind a space in the line where it is plain, else as an `exact_block` below it.
pub fn whole(text: &str) -> String {
    match visible::approval(text) == text {
        true => format!(" {text}\n"),
        false => format!("\n{}", exact_block(text)),
    }
}

/// The beginning of the shell line, the path or the address in these arguments, with what was left out of it: enough to
/// know what a call is about; nothing where they have none. The journal has it without secrets; it is not sanitised.
pub fn words(arguments: &str) -> Option<String> {
    let arguments: Value = serde_json::from_str(arguments).ok()?;
    let told = ["command", "path", "url"].iter().find_map(|name| arguments.get(name)?.as_str());
    let told = told?.trim_end_matches('\n');
    let shown: String = told.lines().next().unwrap_or_default().chars().take(WORDS_CHARS).collect();
    let rest = told.len() - shown.len();
    Some(if rest == 0 { shown } else { format!("{shown} … {}", counted(rest, "more byte")) })
}

fn behind_gutter(text: &str) -> String {
    text.lines().map(|line| format!("{GUTTER}{line}").trim_end().to_string() + "\n").collect()
}

/// A time of day with its date, for people.
pub fn clock(at: Timestamp, zone: &TimeZone) -> String {
    let milliseconds = i64::try_from(at.0).unwrap_or(i64::MAX);
    match jiff::Timestamp::from_millisecond(milliseconds) {
        Ok(time) => time.to_zoned_datetime(zone.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string(),
        Err(_) => "an unknown time".to_string(),
    }
}

/// How long ago something was, in one unit.
pub fn ago(span: Span) -> String {
    let seconds = span.0 / 1_000;
    match (seconds, seconds / 60, seconds / 3_600, seconds / 86_400) {
        (0..10, ..) => "just now".to_string(),
        (_, 0, ..) => format!("{seconds} s ago"),
        (_, minutes, 0, _) => format!("{minutes} min ago"),
        (_, _, hours, 0) => format!("{hours} h ago"),
        (_, _, _, days) => format!("{days} d ago"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_passes_for_a_line_of_ours() {
        assert_eq!(block("a\n[parked] x\u{1b}[2J\r\n"), "  | a\n  | [parked] x⟦ESC⟧[2J\n");
        assert_eq!(block(""), "");
        assert_eq!(exact_block("a\nb\t\u{202e}c"), "  | a\n  | b⟦TAB⟧⟦U+202E⟧c\n");
        assert_eq!(exact_block("a\n\n"), "  | a\n  | ⟦LF⟧\n");
        assert_eq!(exact_block("a\n"), "  | a⟦LF⟧\n");
        assert_eq!(exact_block("a"), "  | a\n");
        let diffs = ["-a\n+b\n", "-a\n+b", "+b\n\n"].map(exact_diff);
        assert_eq!(diffs, ["  | -a\n  | +b\n", "  | -a\n  | +b⟦no LF⟧\n", "  | +b\n  |\n"]);
        assert_eq!(title("a\n[parked]"), "a [parked]");
        assert_eq!(whole("a b ".repeat(90).trim_end()), format!(" {}\n", "a b ".repeat(90).trim_end()));
        assert_eq!(whole("a\n[parked]"), "\n  | a\n  | [parked]\n");
        assert_eq!(whole("a             b"), "\n  | a⟦SP×13⟧b\n");
    }

    #[test]
    fn times_read_well() {
        let agos = [3, 40, 240, 7_500, 200_000].map(|seconds| ago(Span::seconds(seconds)));
        assert_eq!(agos, ["just now", "40 s ago", "4 min ago", "2 h ago", "2 d ago"]);
        assert_eq!(clock(Timestamp(1_700_000_000_000), &TimeZone::UTC), "2023-11-14 22:13:20");
        assert_eq!(clock(Timestamp(u64::MAX), &TimeZone::UTC), "an unknown time");
    }
}
