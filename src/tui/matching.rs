//! How well what is typed fits a text: its words as parts of it, with letters left out. Pure.

/// Letters that are typed for each that may be skipped.
const TYPED_FOR_ONE: usize = 2;
/// What it costs that a part does not begin a word.
const INSIDE: usize = 8;
/// So many letters further into the text cost one.
const FURTHER: usize = 16;

/// What it costs to find all words of `typed` in `text`, whatever their case: less is better, and nothing typed costs
/// nothing. Nothing where a word of it is not there.
pub fn cost(typed: &str, text: &str) -> Option<usize> {
    let text: Vec<char> = text.chars().flat_map(char::to_lowercase).collect();
    let of_word = |word: &str| {
        let word: Vec<char> = word.chars().flat_map(char::to_lowercase).collect();
        (0..text.len()).filter_map(|start| cost_at(&word, &text, start)).min()
    };
    typed.split_whitespace().map(of_word).sum()
}

/// What it costs to find a word from this letter of the text on.
fn cost_at(word: &[char], text: &[char], start: usize) -> Option<usize> {
    let mut rest = text.iter().enumerate().skip(start);
    let mut end = start;
    for (place, letter) in word.iter().enumerate() {
        end = rest.find(|(_, one)| *one == letter)?.0;
        if place == 0 && end != start {
            return None;
        }
    }
    let skipped = (end + 1).checked_sub(start + word.len())?;
    let begins = start.checked_sub(1).and_then(|before| text.get(before)).is_none_or(|one| !one.is_alphanumeric());
    let inside = if begins { 0 } else { INSIDE };
    (skipped * TYPED_FOR_ONE <= word.len()).then_some(skipped * 4 + inside + start / FURTHER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_words_come_before_parts_and_parts_before_letters() {
        let texts = ["pause the run", "unpaused", "pa-us-es", "raise a limit"];
        let costs: Vec<Option<usize>> = texts.iter().map(|text| cost("pause", text)).collect();
        assert!(costs[0] < costs[1] && costs[1] < Some(99), "{costs:?}");
        assert!(costs[2] > costs[0] && costs[2].is_some(), "{costs:?}");
        assert_eq!(costs[3], None);
    }

    #[test]
    fn every_word_must_be_there_in_any_order_and_case() {
        assert!(cost("RUN pau", "Pause the run").is_some());
        assert_eq!(cost("run goat", "pause the run"), None);
        assert_eq!(cost("  ", "anything"), Some(0));
        assert_eq!(cost("a", ""), None);
    }

    #[test]
    fn letters_that_are_strewn_over_a_sentence_are_no_word() {
        assert_eq!(cost("trust", "the right answer, as the user said it"), None);
        assert_eq!(cost("limit", "claim right"), None);
        assert!(cost("trst", "trust").is_some());
        assert!(cost("größe", "GRÖSSE größe").is_some());
    }
}
