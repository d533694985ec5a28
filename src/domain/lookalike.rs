//! Letters that pass for others: what a letter outside ASCII looks like, and when two names look alike. A notice for a
//! person, never a boundary: what is not in the table may still mislead.

use unicode_normalization::UnicodeNormalization;

/// Letters outside ASCII that most fonts draw as an ASCII letter, by script.
const TABLE: &[(&str, &str)] = &[
    ("аеорсухіјѕԁԛԝһӏѵкАВЕКМНОРСТУХІЈЅԚԜ", "aeopcyxijsdqwhlvkABEKMHOPCTYXIJSQW"),
    ("αονρικυχγϲϳΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "aovpikuxycjABEZHIKMNOPTYX"),
    ("օոսհզցլ", "onuhqgl"),
    ("ıɑɡɩʏᴄᴏᴠᴡᴢ", "iagiycovwz"),
];

/// Scripts by where their letters begin and end, as far as a person may need the word.
const SCRIPTS: &[(u32, u32, &str)] = &[
    (0xaa, 0x24f, "Latin"),
    (0x250, 0x2af, "phonetic"),
    (0x370, 0x3ff, "Greek"),
    (0x400, 0x52f, "Cyrillic"),
    (0x530, 0x58f, "Armenian"),
    (0x590, 0x5ff, "Hebrew"),
    (0x600, 0x6ff, "Arabic"),
    (0x750, 0x77f, "Arabic"),
    (0x8a0, 0x8ff, "Arabic"),
    (0x900, 0x97f, "Devanagari"),
    (0xe00, 0xe7f, "Thai"),
    (0x10a0, 0x10ff, "Georgian"),
    (0x1100, 0x11ff, "Hangul"),
    (0x13a0, 0x13ff, "Cherokee"),
    (0x1c80, 0x1c8f, "Cyrillic"),
    (0x1c90, 0x1cbf, "Georgian"),
    (0x1d00, 0x1dbf, "phonetic"),
    (0x1e00, 0x1eff, "Latin"),
    (0x1f00, 0x1fff, "Greek"),
    (0x2100, 0x214f, "letterlike"),
    (0x2c60, 0x2c7f, "Latin"),
    (0x2c80, 0x2cff, "Coptic"),
    (0x2d00, 0x2d2f, "Georgian"),
    (0x2de0, 0x2dff, "Cyrillic"),
    (0x3040, 0x309f, "Hiragana"),
    (0x30a0, 0x30ff, "Katakana"),
    (0x3130, 0x318f, "Hangul"),
    (0x3400, 0x9fff, "Han"),
    (0xa640, 0xa69f, "Cyrillic"),
    (0xa720, 0xa7ff, "Latin"),
    (0xab30, 0xab6f, "Latin"),
    (0xab70, 0xabbf, "Cherokee"),
    (0xac00, 0xd7af, "Hangul"),
    (0xf900, 0xfaff, "Han"),
    (0xff21, 0xff5a, "fullwidth Latin"),
    (0x1d400, 0x1d7ff, "mathematical"),
    (0x20000, 0x323af, "Han"),
];

/// The script of a letter, in a word; nothing where it is not in the table.
pub fn script(one: char) -> Option<&'static str> {
    let code = u32::from(one);
    SCRIPTS.iter().find(|(first, last, _)| (*first..=*last).contains(&code)).map(|(_, _, word)| *word)
}

/// The ASCII letter that a letter outside ASCII looks like, where it looks like one.
pub fn looks_like(one: char) -> Option<char> {
    if one.is_ascii() {
        return None;
    }
    let of_table =
        |(letters, plain): &(&str, &str)| letters.chars().zip(plain.chars()).find(|(known, _)| *known == one);
    TABLE.iter().find_map(of_table).map(|(_, plain)| plain).or_else(|| of_compatibility(one))
}

/// The letter that Unicode itself takes it for: fullwidth, mathematical, letterlike.
fn of_compatibility(one: char) -> Option<char> {
    let mut forms = std::iter::once(one).nfkc();
    let first = forms.next().filter(char::is_ascii_alphanumeric)?;
    forms.next().is_none().then_some(first)
}

/// Whether two different names look the same.
pub fn are_alike(one: &str, other: &str) -> bool {
    let seen = |name: &str| name.chars().map(|one| looks_like(one).unwrap_or(one)).collect::<String>();
    one != other && seen(one) == seen(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(one: char, expected: Option<char>) {
        assert_eq!(looks_like(one), expected, "{one}");
    }

    #[test]
    fn letters_that_pass_for_others_are_known() {
        check('\u{430}', Some('a'));
        check('\u{3bf}', Some('o'));
        check('\u{ff41}', Some('a'));
        check('\u{1d41a}', Some('a'));
        check('é', None);
        check('日', None);
        check('a', None);
        for (letters, plain) in TABLE {
            assert_eq!(letters.chars().count(), plain.chars().count(), "{letters}");
        }
    }

    #[test]
    fn names_that_look_alike_are_told() {
        assert!(are_alike("src/m\u{430}in.rs", "src/main.rs"));
        assert!(!are_alike("main.rs", "main.rs") && !are_alike("main.rs", "mein.rs"));
    }

    #[test]
    fn scripts_are_in_order() {
        assert!(SCRIPTS.iter().all(|(first, last, _)| first <= last));
        assert!(SCRIPTS.is_sorted_by(|one, next| one.1 < next.0));
        assert_eq!([script('\u{430}'), script('日'), script('a')], [Some("Cyrillic"), Some("Han"), None]);
    }
}
