//! Text in cells of a terminal: width by grapheme clusters, wrapping, cutting. Takes sanitised text (`visible.rs`) only.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Width of a text in cells, as ratatui draws it.
pub fn cells(text: &str) -> usize {
    text.graphemes(true).map(UnicodeWidthStr::width).sum()
}

/// `text` in at most `width` cells, with an ellipsis where it was cut.
pub fn fit(text: &str, width: usize) -> String {
    if cells(text) <= width {
        return text.to_string();
    }
    if width == 0 {
        return String::new();
    }
    let mut out = String::new();
    let mut used = 0;
    for one in text.graphemes(true) {
        used += one.width();
        if used + 1 > width {
            break;
        }
        out.push_str(one);
    }
    out.push('…');
    out
}

/// `text` cut or padded to exactly `width` cells.
pub fn pad(text: &str, width: usize) -> String {
    let mut out = fit(text, width);
    let missing = width.saturating_sub(cells(&out));
    out.extend(std::iter::repeat_n(' ', missing));
    out
}

/// A line cut into rows of at most `width` cells; nothing is added, dropped or moved. At least one row.
pub fn chop(line: &str, width: usize) -> Vec<&str> {
    let width = width.max(2);
    let mut rows = Vec::new();
    let (mut start, mut used) = (0, 0);
    for (place, one) in line.grapheme_indices(true) {
        let wide = one.width();
        if used + wide > width && place > start {
            rows.push(&line[start..place]);
            start = place;
            used = 0;
        }
        used += wide;
    }
    rows.push(&line[start..]);
    rows
}

/// A line cut into rows between its words; a word longer than a row is chopped. At least one row.
pub fn wrap(line: &str, width: usize) -> Vec<String> {
    let width = width.max(2);
    let mut rows = Vec::new();
    let mut row = String::new();
    let mut used = 0;
    for word in line.split_inclusive(' ') {
        let bare = cells(word.trim_end_matches(' '));
        if used + bare > width && used > 0 {
            rows.push(std::mem::take(&mut row));
            used = 0;
        }
        if bare > width {
            let mut pieces = chop(word, width);
            row = pieces.pop().unwrap_or_default().to_string();
            rows.extend(pieces.into_iter().map(str::to_string));
            used = cells(&row);
            continue;
        }
        row.push_str(word);
        used += cells(word);
    }
    rows.push(row);
    for row in &mut rows {
        let kept = row.trim_end_matches(' ').len();
        row.truncate(kept);
    }
    rows
}

/// As `wrap`, in at most `most` rows; the last ends in an ellipsis where something is missing, after a whole word.
pub fn wrap_at_most(line: &str, width: usize, most: usize) -> Vec<String> {
    let mut rows = wrap(line, width);
    if rows.len() > most {
        rows.truncate(most);
        if let Some(last) = rows.last_mut() {
            *last = fit_words(&format!("{last} …"), width);
        }
    }
    rows
}

/// As `fit`, for a sentence: it is cut after a whole word, unless there is none that fits.
pub fn fit_words(text: &str, width: usize) -> String {
    if cells(text) <= width {
        return text.to_string();
    }
    let mut kept = text.trim_end_matches(['…', ' ']);
    while cells(kept) + 2 > width {
        match kept.rfind(' ') {
            Some(place) => kept = kept.get(..place).unwrap_or_default().trim_end(),
            None => return fit(text, width),
        }
    }
    format!("{kept} …")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_text_fits_its_cells() {
        assert_eq!(
            (fit("日本語", 5), fit("日本語", 6), fit("日本語", 1)),
            ("日本…".into(), "日本語".into(), "…".into())
        );
        assert_eq!(pad("日本", 3), "日 ".replace("日 ", "日…"));
        assert_eq!(pad("a", 3), "a  ");
        assert_eq!(fit("abc", 0), "");
    }

    #[test]
    fn sentences_are_cut_after_whole_words() {
        assert_eq!(fit_words("one two three", 13), "one two three");
        assert_eq!(
            [12, 9, 8, 5].map(|width| fit_words("one two three", width)),
            ["one two …", "one two …", "one …", "one …"]
        );
        assert_eq!(fit_words("one two three", 3), "on…");
        assert_eq!(wrap_at_most("asked: no rule allows it", 12, 2), ["asked: no", "rule …"]);
    }

    #[test]
    fn chopping_keeps_every_byte() {
        let line = "  日本語 abc👩\u{200d}🚀e\u{301}";
        for width in 0..20 {
            let rows = chop(line, width);
            assert_eq!(rows.concat(), line);
            assert!(rows.iter().all(|row| cells(row) <= width.max(2)), "{width}: {rows:?}");
        }
        assert_eq!(chop("", 4), [""]);
    }

    #[test]
    fn wrapping_falls_between_words() {
        assert_eq!(wrap("the offset is computed", 10), ["the offset", "is", "computed"]);
        assert_eq!(wrap("  indented", 20), ["  indented"]);
        assert_eq!(wrap("abcdefghij kl", 4), ["abcd", "efgh", "ij", "kl"]);
        assert_eq!(wrap("", 4), [""]);
        for width in 0..9 {
            assert!(wrap("日本 語 abcdef", width).iter().all(|row| cells(row) <= width.max(2)));
        }
    }
}
