//! Which words of the changed lines of a diff are the change: a line that was removed beside the one that came in its
//! place. Pure. It says where to emphasise, never what is shown: the text stays as the sanitiser wrote it (R10).

use std::collections::BTreeMap;
use std::ops::Range;

use imara_diff::Algorithm;
use imara_diff::Diff;
use imara_diff::InternedInput;
use unicode_segmentation::UnicodeSegmentation;

use crate::domain::visible::MARK_CLOSE;
use crate::domain::visible::MARK_OPEN;
use crate::tui::theme::Role;

/// The bytes of a text that are emphasised, in order.
pub type Emphasis = Vec<Range<usize>>;

/// Longest line that is compared word by word, in bytes.
const LINE_BYTES_MOST: usize = 2 * 1024;
/// Pairs of lines of one diff that are compared at most; the lines after them have no emphasis.
const PAIRS_MOST: usize = 200;
/// Bytes of such pairs at most, so that a call of many long lines does not hold up the screen.
const BYTES_MOST: usize = 64 * 1024;
/// Lines that may be passed over to find the one that came in a line's place.
const AHEAD_MOST: usize = 4;
/// Of so many letters of both lines, one of the removed line must be in a word that stayed (so two fifths of two lines of
/// one length); else they are two different lines, and emphasis of nearly all of both would tell nothing.
const ALIKE: usize = 5;

/// What is emphasised of each line, by its place among `lines`; a line without emphasis is not there.
/// `lines` are those of a unified diff, sanitised, each with its role.
pub fn words(lines: &[(&str, Role)]) -> BTreeMap<usize, Emphasis> {
    let mut found = BTreeMap::new();
    let mut left = Left { pairs: PAIRS_MOST, bytes: BYTES_MOST };
    let mut at = 0;
    while at < lines.len() && left.pairs > 0 {
        let removed = run(lines, at, Role::Removed);
        let is_note = |line: &&(&str, Role)| line.0.starts_with('\\');
        // That a line break is missing is told between the two.
        let notes = lines[removed.end..].iter().take_while(is_note).count();
        let added = run(lines, removed.end + notes, Role::Added);
        at = added.end.max(at + 1);
        pair(lines, removed, added, &mut left, &mut found);
    }
    found
}

/// How much may still be compared.
struct Left {
    pairs: usize,
    bytes: usize,
}

impl Left {
    /// Takes a pair of so many bytes; where that is too much, nothing is left.
    fn take(&mut self, bytes: usize) -> bool {
        let left = self.pairs.checked_sub(1).zip(self.bytes.checked_sub(bytes));
        (self.pairs, self.bytes) = left.unwrap_or_default();
        left.is_some()
    }
}

/// What of `part` is in `ranges`, counted from its first byte.
pub fn within(ranges: &[Range<usize>], part: Range<usize>) -> Emphasis {
    let clipped = |range: &Range<usize>| {
        let both = range.start.max(part.start)..range.end.min(part.end);
        (!both.is_empty()).then(|| both.start - part.start..both.end - part.start)
    };
    ranges.iter().filter_map(clipped).collect()
}

/// The lines of a role from `start` on.
fn run(lines: &[(&str, Role)], start: usize, role: Role) -> Range<usize> {
    start..start + lines[start..].iter().take_while(|line| line.1 == role).count()
}

/// Finds the pairs of lines that were removed and added at one place, in order; as many of either: each with its own.
fn pair(
    lines: &[(&str, Role)],
    removed: Range<usize>,
    added: Range<usize>,
    left: &mut Left,
    found: &mut BTreeMap<usize, Emphasis>,
) {
    let slack = removed.len().abs_diff(added.len());
    let mut passed = 0;
    for place in 0..removed.len().min(added.len()) {
        for more in passed..=slack.min(passed + AHEAD_MOST) {
            // The longer of the two has lines to pass over.
            let (in_removed, in_added) = if added.len() > removed.len() { (0, more) } else { (more, 0) };
            let (old, new) = (removed.start + place + in_removed, added.start + place + in_added);
            let (before, after) = (lines[old].0, lines[new].0);
            if before.len().max(after.len()) > LINE_BYTES_MOST {
                continue;
            }
            if !left.take(before.len() + after.len()) {
                return;
            }
            if let Some((in_old, in_new)) = compare(before, after) {
                let both = [(old, in_old), (new, in_new)];
                found.extend(both.into_iter().filter(|(_, ranges)| !ranges.is_empty()));
                passed = more;
                break;
            }
        }
    }
}

/// What two lines do not share, as bytes of either; nothing where they are two different lines.
fn compare(old: &str, new: &str) -> Option<(Emphasis, Emphasis)> {
    let (before, after) = (tokens(old), tokens(new));
    let mut input = InternedInput::default();
    input.update_before(before.iter().map(|range| &old[range.clone()]));
    input.update_after(after.iter().map(|range| &new[range.clone()]));
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_no_heuristic(&input);
    let (in_old, same) = changed(old, &before, |place| diff.is_removed(place));
    let (in_new, _) = changed(new, &after, |place| diff.is_added(place));
    let all = weight(old, &before) + weight(new, &after);
    (same * ALIKE >= all).then_some((in_old, in_new))
}

/// The words of a line, as bytes of it, without its sign: letters and digits, blanks, a mark, else a letter alone.
/// Clusters stay whole, so that nothing is drawn otherwise because it is emphasised.
fn tokens(line: &str) -> Vec<Range<usize>> {
    let mut tokens: Vec<(Range<usize>, Kind)> = Vec::new();
    for (place, one) in line.grapheme_indices(true).skip(1) {
        let end = place + one.len();
        match tokens.last_mut() {
            Some((range, kind)) if goes_on(*kind, &line[range.clone()], one) => range.end = end,
            Some(_) | None => tokens.push((place..end, kind(one))),
        }
    }
    tokens.into_iter().map(|(range, _)| range).collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Word,
    Blank,
    Mark,
    Other,
}

fn kind(cluster: &str) -> Kind {
    match cluster.chars().next() {
        Some(one) if one.is_alphanumeric() || one == '_' => Kind::Word,
        Some(' ') => Kind::Blank,
        Some(one) if one == MARK_OPEN => Kind::Mark,
        Some(_) | None => Kind::Other,
    }
}

fn goes_on(so_far: Kind, token: &str, next: &str) -> bool {
    match so_far {
        Kind::Word | Kind::Blank => so_far == kind(next),
        Kind::Mark => !token.ends_with(MARK_CLOSE),
        Kind::Other => false,
    }
}

/// The tokens that changed, neighbours as one, and how much of the others there is.
fn changed(line: &str, tokens: &[Range<usize>], is_changed: impl Fn(u32) -> bool) -> (Emphasis, usize) {
    let mut ranges = Emphasis::new();
    let mut same = 0;
    for (place, token) in (0..).zip(tokens) {
        match (is_changed(place), ranges.last_mut()) {
            (false, _) => same += weight(line, std::slice::from_ref(token)),
            (true, Some(last)) if last.end == token.start => last.end = token.end,
            (true, _) => ranges.push(token.clone()),
        }
    }
    (ranges, same)
}

/// The letters of tokens that are neither blank nor a mark: a mark is longer than what it stands for.
fn weight(line: &str, tokens: &[Range<usize>]) -> usize {
    let texts = tokens.iter().map(|token| &line[token.clone()]);
    texts.filter(|text| !text.starts_with([' ', MARK_OPEN])).map(|text| text.chars().count()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(line: &str) -> Role {
        match line.as_bytes().first() {
            Some(b'+') => Role::Added,
            Some(b'-') => Role::Removed,
            _ => Role::Text,
        }
    }

    /// The lines, with what is emphasised in `{}`.
    fn shown(text: &str) -> String {
        let lines: Vec<(&str, Role)> = text.split('|').map(|line| (line, role(line))).collect();
        let found = words(&lines);
        let mut out: Vec<String> = Vec::new();
        for (place, (line, _)) in lines.iter().enumerate() {
            let mut line = line.to_string();
            for range in found.get(&place).into_iter().flatten().rev() {
                line.insert(range.end, '}');
                line.insert(range.start, '{');
            }
            out.push(line);
        }
        out.join("|")
    }

    fn check(wanted: &str) {
        assert_eq!(shown(&wanted.replace(['{', '}'], "")), wanted);
    }

    #[test]
    fn changed_words_are_found() {
        check(" a|-let off = {pos};|+let off = {position};| b");
        check("-let off = pos;|+let off = pos{ + bom};");
        check("-a {bc} d{, e}|+a {bd} d");
        check("-{    }return x|+{        }return x");
        check("-the same{⟦3 blanks⟧}|+the same{⟦TAB⟧}");
        check("-größe = {größer}|+größe = {kleiner}");
        check("-name = {🇩🇪}|+name = {🇩🇰}");
        check("-last line|\\ No newline at end of file|+last line{⟦no LF⟧}");
    }

    #[test]
    fn a_line_is_told_from_one_that_came_beside_it() {
        check("-let off = pos;|+let bom = self.bom_length();|+let off = pos{ + bom};");
        check("-use std::fmt;|-let a = {one}(b);|+let a = {two}(b);");
        check("-let a = {1};|-let b = {2};|+let a = {3};|+let b = {4};");
        check("-one thing|+quite another");
        check("-alone| and|+alone, too");
        check("+only added|+and more");
        check("@@ -1 +1 @@|-|+x");
    }

    /// The sign is of the diff, not of the line.
    #[test]
    fn a_sign_is_no_word() {
        check("---{a}/name|+--{b}/name");
        check("-{-}name|+{+}name");
    }

    #[test]
    fn what_is_too_long_or_too_much_has_no_emphasis() {
        let long = "a ".repeat(LINE_BYTES_MOST / 2 - 1);
        assert!(shown(&format!("-{long}b|+{long}c")).contains("{b}"));
        assert!(!shown(&format!("-{long}bb|+{long}cc")).contains('{'));
        let pairs = "| -|-name {1} is|+name {2} is";
        let many = shown(&pairs.replace(['{', '}'], "").repeat(PAIRS_MOST + 50));
        assert_eq!(many.matches('{').count(), 2 * PAIRS_MOST);
        // A line that is far too long takes nothing from the others.
        let far = "a ".repeat(BYTES_MOST);
        assert!(shown(&format!("-{far}b|+{far}c| |-name a|+name b")).ends_with("-name {a}|+name {b}"));
        // Long lines use up sooner what may be compared.
        let text = "a ".repeat(LINE_BYTES_MOST / 2 - 4);
        let long = shown(&format!("| |-{text}1|+{text}2").repeat(PAIRS_MOST / 2));
        assert_eq!(long.matches('{').count(), 2 * (BYTES_MOST / (2 * LINE_BYTES_MOST)));
        // One line beside very many is not looked for among all of them.
        let many = format!("-name 1 is{}|+name 2 is", "|+quite another".repeat(AHEAD_MOST + 1));
        assert_eq!(shown(&many), many);
    }
}
