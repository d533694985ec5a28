//! The mark that stands in the place of a secret: `[redacted:<kind>:<8 hex>]` (docs/ENGINE.md §11.4).

const OPENING: &str = "[redacted:";
/// Digits of the hash in a mark.
pub const HASH_CHARS: usize = 8;

/// The mark of a secret of this kind. `hash` is a keyed hash, so that equal secrets have equal marks and nothing can be
/// told from them.
pub fn mark(kind: &str, hash: &str) -> String {
    format!("{OPENING}{kind}:{hash}]")
}

/// Whether a text holds such a mark. A call that would put it back into the world would destroy the secret there.
pub fn holds_mark(text: &str) -> bool {
    text.match_indices(OPENING).any(|(start, _)| {
        let rest = text.get(start + OPENING.len()..).unwrap_or_default();
        let Some((inside, _)) = rest.split_once(']') else { return false };
        let Some((kind, hash)) = inside.rsplit_once(':') else { return false };
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        let is_hash = hash.len() == HASH_CHARS && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hash && !kind.is_empty() && kind.bytes().all(is_word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_known_again() {
        assert!(holds_mark(&format!("a {} b", mark("OPENAI_API_KEY", "0123abcd"))));
        for text in
            ["", "[redacted:", "[redacted:x]", "[redacted:x:123]", "[redacted::0123abcd]", "[redacted:a b:0123abcd]"]
        {
            assert!(!holds_mark(text), "{text}");
        }
    }
}
