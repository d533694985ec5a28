//! What a change does to a text, line by line: a unified diff, as patch(1) and people read it. Pure. It must not know
//! files.

use std::fmt;

use imara_diff::Algorithm;
use imara_diff::Diff;
use imara_diff::InternedInput;
use imara_diff::Interner;
use imara_diff::Token;
use imara_diff::UnifiedDiffConfig;
use imara_diff::UnifiedDiffPrinter;

/// The difference of two texts.
pub(crate) struct Difference {
    /// Lines that are only in the new one.
    pub(crate) added: u32,
    /// Lines that are only in the old one.
    pub(crate) removed: u32,
    /// The diff, with three lines around each change and without the names of files; empty when nothing differs.
    pub(crate) text: String,
}

/// Compares two texts. The same texts always give the same diff: there is no deadline. The work is bounded by the
/// algorithm's heuristics and by the size of what a tool may write.
pub(crate) fn compare(old: &str, new: &str) -> Difference {
    let input = InternedInput::new(old, new);
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_lines(&input);
    let lines = Lines(&input.interner);
    let text = diff.unified_diff(&lines, UnifiedDiffConfig::default(), &input).to_string();
    Difference { added: diff.count_additions(), removed: diff.count_removals(), text }
}

struct Lines<'a>(&'a Interner<&'a str>);

impl Lines<'_> {
    /// A line with its sign. That a text does not end with a newline is a difference that must be seen.
    fn put(&self, mut out: impl fmt::Write, sign: char, token: Token) -> fmt::Result {
        let line = self.0[token];
        let end = if line.ends_with('\n') { "" } else { "\n\\ No newline at end of file\n" };
        write!(out, "{sign}{line}{end}")
    }
}

impl UnifiedDiffPrinter for Lines<'_> {
    fn display_header(
        &self,
        mut out: impl fmt::Write,
        start_before: u32,
        start_after: u32,
        len_before: u32,
        len_after: u32,
    ) -> fmt::Result {
        writeln!(out, "@@ -{} +{} @@", range(start_before, len_before), range(start_after, len_after))
    }

    fn display_context_token(&self, out: impl fmt::Write, token: Token) -> fmt::Result {
        self.put(out, ' ', token)
    }

    fn display_hunk(&self, mut out: impl fmt::Write, before: &[Token], after: &[Token]) -> fmt::Result {
        before.iter().try_for_each(|token| self.put(&mut out, '-', *token))?;
        after.iter().try_for_each(|token| self.put(&mut out, '+', *token))
    }
}

/// Lines `start`, counted from 0, and so many from there on, in the words of a unified diff: a range of no lines is
/// named by the line before it (POSIX, diff, "Diff -u Output Format").
fn range(start: u32, length: u32) -> String {
    match length {
        0 => format!("{start},0"),
        1 => format!("{}", start + 1),
        _ => format!("{},{length}", start + 1),
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;

    fn check(old: &str, new: &str, wanted: &str) {
        let found = compare(old, new);
        let mut text = format!("-{} +{}", found.removed, found.added);
        for line in found.text.lines() {
            let _ = write!(text, "|{line}");
        }
        assert_eq!(text, wanted);
    }

    #[test]
    fn changes_are_shown_with_what_is_around_them() {
        check("a\n", "a\n", "-0 +0");
        check("", "a\nb\n", "-0 +2|@@ -0,0 +1,2 @@|+a|+b");
        check("a\n", "", "-1 +0|@@ -1 +0,0 @@|-a");
        check("a\nb\nc\n", "a\nB\nc\n", "-1 +1|@@ -1,3 +1,3 @@| a|-b|+B| c");
        check(
            "1\n2\n3\n4\n5\n6\n7\n8\n9\n",
            "2\n3\n4\n5\n6\n7\n8\n8\n9\n",
            "-1 +1|@@ -1,4 +1,3 @@|-1| 2| 3| 4|@@ -6,4 +5,5 @@| 6| 7| 8|+8| 9",
        );
    }

    #[test]
    fn the_end_of_a_text_is_seen() {
        let mark = "\\ No newline at end of file";
        check("a\n", "a", &format!("-1 +1|@@ -1 +1 @@|-a|+a|{mark}"));
        check("a\nb", "A\nb", &format!("-1 +1|@@ -1,2 +1,2 @@|-a|+A| b|{mark}"));
        check("a\r\n", "a\n", "-1 +1|@@ -1 +1 @@|-a|+a");
        check("a\rb\n", "a\rc\n", "-1 +1|@@ -1 +1 @@|-a\rb|+a\rc");
    }
}
