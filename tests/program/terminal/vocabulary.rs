//! All that tiller writes to a terminal: a small strict parser, which names what is no part of it.

use unicode_properties::GeneralCategoryGroup;
use unicode_properties::UnicodeGeneralCategory;

/// Sequences without parts that differ: screen, cursor, paste, focus, frames as a whole, keyboard, questions.
const WHOLE: [&str; 17] = [
    "[?1049h", "[?1049l", "[?25h", "[?25l", "[?2004h", "[?2004l", "[?1004h", "[?1004l", "[?2026h", "[?2026l", "[>3u",
    "[<1u", "[?u", "[c", "[2J", "[J", "[K",
];
/// Bells of a run that calls its operator: a few.
const BELLS: usize = 40;

/// What in these bytes is no part of tiller's vocabulary, each with what follows it.
pub(crate) fn foreign(bytes: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    let mut bells = 0;
    for chunk in bytes.utf8_chunks() {
        found.extend(chunk.invalid().iter().map(|byte| format!("byte {byte:02x}")));
        let mut rest = chunk.valid();
        let mut before = ' ';
        while let Some(one) = rest.chars().next() {
            let after = &rest[one.len_utf8()..];
            let known = match one {
                '\u{1b}' => sequence(after),
                '\u{7}' => {
                    bells += 1;
                    (bells <= BELLS).then_some(0)
                }
                '\r' | '\n' => Some(0),
                _ => is_drawn(one, before).then_some(0),
            };
            if known.is_none() {
                found.push(rest.chars().take(12).collect());
            }
            rest = &after[known.unwrap_or(0)..];
            before = one;
        }
    }
    found
}

/// The same for lines that are printed: no sequences and no bells at all.
pub(crate) fn foreign_in_lines(text: &str) -> Vec<String> {
    let mut before = ' ';
    let mut is_foreign = |one: char| one != '\n' && !is_drawn(one, std::mem::replace(&mut before, one));
    text.char_indices()
        .filter(|(_, one)| is_foreign(*one))
        .map(|(at, _)| text[at..].chars().take(12).collect())
        .collect()
}

/// How long a sequence of ours is, after its ESC.
fn sequence(rest: &str) -> Option<usize> {
    if let Some(whole) = WHOLE.iter().find(|whole| rest.starts_with(**whole)) {
        return Some(whole.len());
    }
    if let Some(numbers) = rest.strip_prefix('[') {
        let end = numbers.find(|one: char| !one.is_ascii_digit() && one != ';')?;
        let count = numbers[..end].split(';').filter(|number| !number.is_empty() && number.len() <= 4).count();
        let is_ours = matches!((&numbers[end..=end], count), ("m", 1..=5) | ("H", 2));
        return is_ours.then_some(1 + end + 1);
    }
    // The title of the window, and the word to the operator: both with our name.
    let ours = |text: &str| text.contains("tiller") && text.chars().all(|one| is_drawn(one, ' '));
    let text = rest.strip_prefix("]0;").or_else(|| rest.strip_prefix("]9;tiller: "))?;
    let start = rest.len() - text.len();
    let end = text.find('\u{7}')?;
    (ours(&text[..end]) || (rest.starts_with("]9;") && ours(&format!("tiller{}", &text[..end]))))
        .then_some(start + end + 1)
}

/// Whether it is drawn as itself; joiners and selectors are where pictures need them.
fn is_drawn(one: char, before: char) -> bool {
    match one.general_category_group() {
        GeneralCategoryGroup::Other => one == '\u{200d}' && !before.is_ascii(),
        GeneralCategoryGroup::Separator => one == ' ',
        GeneralCategoryGroup::Letter
        | GeneralCategoryGroup::Mark
        | GeneralCategoryGroup::Number
        | GeneralCategoryGroup::Punctuation
        | GeneralCategoryGroup::Symbol => true,
    }
}
