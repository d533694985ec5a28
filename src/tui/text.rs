//! Text as the screen shows it: markers that stand apart, and numbers for people. Takes sanitised text
//! (`domain/visible.rs`) only.

use std::ops::Range;

use ratatui::text::Span as Piece;

use crate::domain::money::MicroUsd;
use crate::domain::text::of_kind;
use crate::domain::time::Span;
use crate::domain::time::human;
use crate::domain::visible::MARK_CLOSE;
use crate::domain::visible::MARK_OPEN;
use crate::domain::visible::drawn;
use crate::domain::visible::is_foreign;
use crate::tui::theme::Palette;
use crate::tui::theme::Role;
use crate::tui::theme::emphasised;

/// Text as spans, its markers set apart so that they are seen at once.
pub fn marked(text: &str, role: Role, palette: Palette) -> Vec<Piece<'static>> {
    let mut spans = Vec::new();
    let text = drawn(text.to_string());
    let mut rest = text.as_str();
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

/// As `marked`, for what names something: letters outside ASCII are underlined.
pub fn named(text: &str, role: Role, palette: Palette) -> Vec<Piece<'static>> {
    let split = |span: Piece<'static>| {
        let letters: Vec<char> = span.content.chars().collect();
        let same = |one: &char, next: &char| is_foreign(*one) == is_foreign(*next);
        let piece = |run: &[char]| {
            let foreign = run.first().is_some_and(|one| is_foreign(*one));
            let style = if foreign { palette.style(Role::Foreign) } else { span.style };
            Piece::styled(run.iter().collect::<String>(), style)
        };
        letters.chunk_by(same).map(piece).collect::<Vec<_>>()
    };
    marked(text, role, palette).into_iter().flat_map(split).collect()
}

/// As `marked`, and bytes of the text emphasised, marks among them too. The ranges are in order.
pub fn stressed(text: &str, ranges: &[Range<usize>], role: Role, palette: Palette) -> Vec<Piece<'static>> {
    let mut spans = Vec::new();
    let mut done = 0;
    for range in ranges {
        spans.extend(marked(&text[done..range.start], role, palette));
        let stress = |span: Piece<'static>| Piece { style: emphasised(span.style), ..span };
        spans.extend(marked(&text[range.clone()], role, palette).into_iter().map(stress));
        done = range.end;
    }
    spans.extend(marked(&text[done..], role, palette));
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

/// Tokens for people.
pub fn tokens(number: u64) -> String {
    format!("{} {}", count(number), of_kind(number == 1, "token"))
}

/// Money for people, as it is told everywhere.
pub fn dollars(amount: MicroUsd) -> String {
    amount.to_string()
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
            ["$0.00", "$0.0001", "$0.0005", "$0.10", "$0.10"]
        );
        assert_eq!([size(1_023), size(2_048), size(3 << 20)], ["1023 B", "2 KiB", "3 MiB"]);
    }
}
