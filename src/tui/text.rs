//! Text in cells: width by grapheme clusters, wrapping, cutting. Takes sanitised text (`domain/visible.rs`) only.

use ratatui::text::Span as Piece;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::domain::money::MicroUsd;
use crate::domain::time::Span;
use crate::domain::time::human;
use crate::domain::visible::MARK_CLOSE;
use crate::domain::visible::MARK_OPEN;
use crate::tui::theme::Palette;
use crate::tui::theme::Role;

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

/// As `wrap`, in at most `most` rows; the last ends in an ellipsis where something is missing.
pub fn wrap_at_most(line: &str, width: usize, most: usize) -> Vec<String> {
    let mut rows = wrap(line, width);
    if rows.len() > most {
        rows.truncate(most);
        if let Some(last) = rows.last_mut() {
            *last = fit(&format!("{last} …"), width);
        }
    }
    rows
}

/// Text as spans, its markers set apart so that they are seen at once.
pub fn marked(text: &str, role: Role, palette: Palette) -> Vec<Piece<'static>> {
    let mut spans = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(MARK_OPEN) {
        let end = rest[start..].find(MARK_CLOSE).map_or(rest.len(), |place| start + place + MARK_CLOSE.len_utf8());
        if start > 0 {
            spans.push(Piece::styled(rest[..start].to_string(), palette.style(role)));
        }
        spans.push(Piece::styled(rest[start..end].to_string(), palette.style(Role::Marker)));
        rest = &rest[end..];
    }
    if !rest.is_empty() || spans.is_empty() {
        spans.push(Piece::styled(rest.to_string(), palette.style(role)));
    }
    spans
}

/// A number for people: `940`, `48k`, `1.2M`.
pub fn count(number: u64) -> String {
    match number {
        0..10_000 => number.to_string(),
        10_000..1_000_000 => format!("{}k", number / 1_000),
        1_000_000.. => format!("{}.{}M", number / 1_000_000, number / 100_000 % 10),
    }
}

/// Money for people: amounts below ten cents to the hundredth of a cent, because a cheap call costs less than one.
/// Rounded up.
pub fn dollars(amount: MicroUsd) -> String {
    match amount.0 {
        1..100_000 => format!("$0.{:04}", amount.0.div_ceil(100)),
        _ => amount.to_string(),
    }
}

/// Bytes for people: `940 B`, `12 KiB`, `3 MiB`.
pub fn size(bytes: u64) -> String {
    match bytes {
        0..1_024 => format!("{bytes} B"),
        1_024..1_048_576 => format!("{} KiB", bytes / 1_024),
        1_048_576.. => format!("{} MiB", bytes / 1_048_576),
    }
}

/// How long ago, for ages that are looked at and not counted: `under a minute`, `4 min`, `2 h 05`, `3 d`.
pub fn age(span: Span) -> String {
    let minutes = span.0 / 60_000;
    match minutes {
        0 => "under a minute".to_string(),
        1..60 => format!("{minutes} min"),
        60..1_440 => format!("{} h {:02}", minutes / 60, minutes % 60),
        _ => format!("{} d", minutes / 1_440),
    }
}

/// How long something has run: in whole seconds, because it is counted while one looks.
pub fn elapsed(span: Span) -> String {
    if span.0 < 1_000 { "0s".to_string() } else { human(span) }
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

    #[test]
    fn markers_stand_apart() {
        let spans = marked("ls ⟦ESC⟧[8m", Role::Text, Palette::Ansi);
        let texts: Vec<&str> = spans.iter().map(|span| span.content.as_ref()).collect();
        assert_eq!(texts, ["ls ", "⟦ESC⟧", "[8m"]);
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!([count(9_999), count(48_100), count(1_250_000)], ["9999", "48k", "1.2M"]);
        assert_eq!([age(Span(59_999)), age(Span(7_500_000)), elapsed(Span(500))], ["under a minute", "2 h 05", "0s"]);
        assert_eq!(
            [0, 1, 460, 99_999, 100_000].map(|amount| dollars(MicroUsd(amount))),
            ["$0.00", "$0.0001", "$0.0005", "$0.1000", "$0.10"]
        );
        assert_eq!([size(1_023), size(2_048), size(3 << 20)], ["1023 B", "2 KiB", "3 MiB"]);
    }
}
