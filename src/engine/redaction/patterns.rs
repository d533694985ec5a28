//! What looks like a secret although nobody knows it: keys of providers, bearer tokens, private keys, passwords in URLs.

use std::ops::Range;

/// How keys of providers begin.
const PREFIXES: &[&str] = &[
    "sk-",
    "sk_live_",
    "sk_test_",
    "rk_live_",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "AKIA",
    "AIza",
    "hf_",
    "gsk_",
    "xai-",
];
/// Whether a byte may stand in a key.
type Fits = fn(&u8) -> bool;

/// How keys begin that go on with letters and digits only, and which of these: with others it is a word such as
/// `npm_config_user_agent` or `ASIA-PACIFIC`.
const STRICT: &[(&str, usize, Fits)] = &[
    ("npm_", 30, u8::is_ascii_alphanumeric),
    ("hf_", 30, u8::is_ascii_alphanumeric),
    ("ASIA", 16, |byte| byte.is_ascii_uppercase() || byte.is_ascii_digit()),
];
/// How a JSON web token begins: `{"` in base64.
const WEB_TOKEN: &str = "eyJ";
/// Shortest part of a JSON web token, in bytes.
const PART_MIN_BYTES: usize = 10;
/// Shortest key or token, in bytes; shorter ones are words.
const TOKEN_MIN_BYTES: usize = 20;
const BEGIN: &str = "-----BEGIN ";
/// How the name ends that stands in the first line of a private key, also of PGP.
const PRIVATE: [&str; 2] = ["PRIVATE KEY", "PRIVATE KEY BLOCK"];
/// What the line ends with.
const BORDER: &str = "-----";
const END: &str = "-----END ";

/// What was found in a text: its kind, and where it stands.
pub fn find(text: &str) -> Vec<(&'static str, Range<usize>)> {
    let mut found = private_keys(text);
    found.extend(tokens(text));
    found.extend(url_passwords(text));
    found
}

/// Whether a private key has begun in a text and not ended, and where.
pub fn open_private_key(text: &str) -> Option<usize> {
    let start = text.rfind(BEGIN)?;
    let rest = text.get(start..)?;
    // Until its first line is whole it may become one.
    let may_be = is_private(rest) || !rest.contains('\n');
    (may_be && !rest.contains(END)).then_some(start)
}

fn private_keys(text: &str) -> Vec<(&'static str, Range<usize>)> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(start) = text.get(from..).and_then(|rest| rest.find(BEGIN)).map(|place| from + place) {
        let rest = text.get(start..).unwrap_or_default();
        if !is_private(rest) {
            from = start + BEGIN.len();
            continue;
        }
        // The end line, or the end of the text where it has none.
        let end = rest
            .find(END)
            .and_then(|place| Some(place + END.len() + rest.get(place + END.len()..)?.find(BORDER)? + BORDER.len()))
            .unwrap_or(rest.len());
        found.push(("private-key", start..start + end));
        from = start + end;
    }
    found
}

/// Whether the line that a text begins with is the first one of a private key. No more than that line is looked at.
fn is_private(text: &str) -> bool {
    let name = text.strip_prefix(BEGIN).unwrap_or_default();
    let (name, rest) = name.split_at(name.find(['-', '\n']).unwrap_or(name.len()));
    PRIVATE.iter().any(|end| name.ends_with(end)) && rest.starts_with(BORDER)
}

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}

/// Keys by their beginning, and what follows the word bearer.
fn tokens(text: &str) -> Vec<(&'static str, Range<usize>)> {
    let mut found = Vec::new();
    // Nearly every text has neither, and looking for that is much faster than looking at each word.
    let begins = STRICT.iter().map(|(prefix, _, _)| prefix).chain(PREFIXES).chain([&WEB_TOKEN]);
    let may_hold = begins.into_iter().any(|one| text.contains(one)) || text.to_ascii_lowercase().contains("bearer");
    if !may_hold {
        return found;
    }
    let bytes = text.as_bytes();
    let mut place = 0;
    while place < bytes.len() {
        let length = bytes.iter().skip(place).take_while(|byte| is_token_byte(**byte)).count();
        let token = text.get(place..place + length).unwrap_or_default();
        let has_digit = token.bytes().any(|byte| byte.is_ascii_digit());
        let is_key = length >= TOKEN_MIN_BYTES && has_digit && PREFIXES.iter().any(|prefix| token.starts_with(prefix));
        if is_key || is_strict(token) {
            found.push(("provider-key", place..place + length));
        } else if let Some(length) = web_token(bytes, place, length).filter(|_| token.starts_with(WEB_TOKEN)) {
            found.push(("web-token", place..place + length));
        } else if token.eq_ignore_ascii_case("bearer") {
            let blanks = blanks(bytes, place + length);
            let start = place + length + blanks;
            let is_bearer = |byte: &u8| is_token_byte(*byte) || b".~+/=".contains(byte);
            // Only behind blanks: else every word of `bearer.bearer.bearer` would be looked at up to the end.
            let end = start + bytes.iter().skip(start).take_while(|byte| blanks > 0 && is_bearer(byte)).count();
            if end - start >= TOKEN_MIN_BYTES {
                found.push(("bearer-token", start..end));
            }
        }
        place += length.max(1);
    }
    found
}

fn is_strict(token: &str) -> bool {
    STRICT.iter().any(|(prefix, least, fits)| {
        token.strip_prefix(prefix).is_some_and(|rest| rest.len() >= *least && rest.as_bytes().iter().all(fits))
    })
}

/// How long a JSON web token is that begins with a part of this length: three parts with dots between them.
fn web_token(bytes: &[u8], start: usize, first: usize) -> Option<usize> {
    let part = |from: usize| {
        let is_after_dot = bytes.get(from) == Some(&b'.');
        let length = bytes.iter().skip(from + 1).take_while(|byte| is_token_byte(**byte)).count();
        (is_after_dot && length >= PART_MIN_BYTES).then_some(from + 1 + length)
    };
    let end = (first >= PART_MIN_BYTES).then_some(start + first).and_then(part).and_then(part)?;
    Some(end - start)
}

fn blanks(bytes: &[u8], from: usize) -> usize {
    bytes.iter().skip(from).take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

fn url_passwords(text: &str) -> Vec<(&'static str, Range<usize>)> {
    let mut found = Vec::new();
    for (place, sign) in text.match_indices("://") {
        let start = place + sign.len();
        let rest = text.get(start..).unwrap_or_default();
        let ends = |one: char| one.is_whitespace() || "/?#\"'<>`".contains(one);
        let authority = rest.split(ends).next().unwrap_or_default();
        let Some((user, _)) = authority.rsplit_once('@') else { continue };
        let Some((name, password)) = user.split_once(':') else { continue };
        // What stands for a password is none.
        let stands_for_one = password.is_empty() || password.starts_with(['$', '{', '[', '*']);
        if !stands_for_one {
            let from = start + name.len() + 1;
            found.push(("url-password", from..from + password.len()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(&str, &str)]) {
        let found: Vec<(&str, &str)> =
            find(text).into_iter().map(|(kind, range)| (kind, text.get(range).unwrap_or("?"))).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn what_looks_like_a_secret() {
        let key = "sk-proj-abcdefghijklmnop1234";
        check(&format!("key={key}, x"), &[("provider-key", key)]);
        let bearer = format!("{key}.");
        check(&format!("Authorization: Bearer {bearer}"), &[("bearer-token", &bearer), ("provider-key", key)]);
        check("authorization: bearer abc.def/ghi+jkl==mnopqrstuv", &[("bearer-token", "abc.def/ghi+jkl==mnopqrstuv")]);
        check("postgres://me:pa:ss@host/db http://host:80/a@b", &[("url-password", "pa:ss")]);
        check("https://me:$PASSWORD@host", &[]);
        check("a task-abcdefghijklmnopqrstu1 and sk-learn-is-a-python-library, bearer of news", &[]);
        check("-----BEGIN PUBLIC KEY-----\nabc\n-----END PUBLIC KEY-----", &[]);
        let block = "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----";
        check(&format!("x\n{block}\ny"), &[("private-key", block)]);
        check("x -----BEGIN PRIVATE KEY-----\nabc", &[("private-key", "-----BEGIN PRIVATE KEY-----\nabc")]);
        let block = "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nabc\n-----END PGP PRIVATE KEY BLOCK-----";
        check(&format!("x\n{block}\ny"), &[("private-key", block)]);
        check("-----BEGIN PGP PUBLIC KEY BLOCK-----\nabc\n-----END PGP PUBLIC KEY BLOCK-----", &[]);
        check("-----BEGIN X\nPRIVATE KEY-----\nabc -----BEGIN X-PRIVATE KEY-----", &[]);
        check("é-----BEGIN ", &[]);
    }

    #[test]
    fn keys_that_look_like_words_and_words_that_look_like_keys() {
        let rest = "abcdefghijklmnopqrstuvwxyzabcdefghij";
        for key in [
            "ASIAIOSFODNN7EXAMPLE",
            "AKIAIOSFODNN7EXAMPLE",
            &format!("npm_{rest}"),
            &format!("hf_{rest}"),
            "sk_live_abcdefghijkl1234",
            "rk_live_abcdefghijkl1234",
            "glpat-abcdefghijkl-1234",
            "xoxb-1234-abcdefghijklm",
            "xoxp-1234-abcdefghijklm",
        ] {
            check(&format!("a {key}, b"), &[("provider-key", key)]);
        }
        for word in [
            "ASIA-PACIFIC-REGION-2024",
            "ASIAN countries",
            "npm_config_user_agent_of_version_18_20_4",
            "npm_package_dependencies_react",
            "hf_hub_download",
        ] {
            check(word, &[]);
        }
    }

    /// A mebibyte of beginnings takes no time; where each was looked at to the end, it took minutes.
    #[test]
    fn beginnings_without_an_end_are_looked_at_once() {
        let begun = std::time::Instant::now();
        for piece in
            ["-----BEGIN ", "-----BEGIN A\n", "bearer.", "Bearer ", "eyJhbGciOiJI.", "sk-", "://", "://a:", "-----END "]
        {
            let text = piece.repeat((1 << 20) / piece.len());
            find(&text);
            open_private_key(&text);
        }
        assert!(begun.elapsed().as_secs() < 30, "{:?}", begun.elapsed());
    }

    #[test]
    fn web_tokens() {
        let token = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJlLW9mLWl0";
        check(&format!("token={token}"), &[("web-token", token)]);
        check(&format!("{token}."), &[("web-token", token)]);
        check("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0", &[]);
        check("eyJhbGciOiJIUzI1NiJ9.a.b and eyJ.class.getDeclaredMethods", &[]);
        check("heyJudeDontMakeIt.badTakeASadSong.andMakeItBetter", &[]);
        check("eyJhbGciOiJIUzI1NiJ9..eyJzdWIiOiIxIn0", &[]);
    }

    #[test]
    fn a_private_key_may_go_on() {
        assert_eq!(open_private_key("a -----BEGIN RSA PRI"), Some(2));
        assert_eq!(open_private_key("-----BEGIN PRIVATE KEY-----\nabc"), Some(0));
        assert_eq!(open_private_key("-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----"), None);
        assert_eq!(open_private_key("-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nabc"), Some(0));
        assert_eq!(open_private_key("-----BEGIN CERTIFICATE-----\nabc"), None);
    }
}
