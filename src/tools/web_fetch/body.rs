//! From the bytes of an answer to text: which types are text, how they are written, and what is refused. Pure.

use encoding_rs::Encoding;
use encoding_rs::UTF_8;

use crate::tools::web_fetch::html;

/// In how many of its first bytes a page may say how it is written.
const META_BYTES: usize = 1_024;
/// Types of content that are text beside `text/…` and what ends in `+json`, `+xml` or `+yaml`.
const TEXTS: &[&str] = &[
    "application/ecmascript",
    "application/javascript",
    "application/json",
    "application/sql",
    "application/toml",
    "application/x-javascript",
    "application/x-ndjson",
    "application/x-sh",
    "application/x-yaml",
    "application/xml",
    "application/yaml",
];
const PAGES: &[&str] = &["text/html", "application/xhtml+xml"];

/// What an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A page of HTML.
    Page,
    /// Any other text.
    Text,
    /// It does not say.
    Unknown,
}

/// What an answer of this type is; nothing where it is no text.
pub(crate) fn kind(content_type: &str) -> Option<Kind> {
    let essence = essence(content_type);
    let is_text = essence.starts_with("text/")
        || TEXTS.contains(&essence.as_str())
        || ["+json", "+xml", "+yaml"].iter().any(|end| essence.ends_with(end));
    match essence.as_str() {
        "" => Some(Kind::Unknown),
        page if PAGES.contains(&page) => Some(Kind::Page),
        _ => is_text.then_some(Kind::Text),
    }
}

/// The type itself, without what is said about it.
pub(crate) fn essence(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// The text of an answer, and whether some bytes were none. Nothing when it is no text at all.
pub(crate) fn read(bytes: &[u8], kind: Kind, content_type: &str) -> Option<(String, bool)> {
    let named = label(content_type.split_once(';').map_or("", |(_, said)| said));
    let meta = || label(&String::from_utf8_lossy(bytes.get(..META_BYTES).unwrap_or(bytes)));
    let encoding = named.or_else(|| (kind != Kind::Text).then(meta).flatten()).unwrap_or(UTF_8);
    let (text, _, has_errors) = encoding.decode(bytes);
    if text.contains('\0') || (has_errors && kind == Kind::Unknown) {
        return None;
    }
    let is_page = match kind {
        Kind::Page => true,
        Kind::Text => false,
        Kind::Unknown => {
            let head: String = text.trim_start().chars().take(14).collect::<String>().to_ascii_lowercase();
            head.starts_with("<!doctype html") || head.starts_with("<html")
        }
    };
    Some((if is_page { html::to_text(&text) } else { text.into_owned() }, has_errors))
}

/// The encoding that is named behind the first `charset=`.
fn label(text: &str) -> Option<&'static Encoding> {
    let text = text.to_ascii_lowercase();
    let (_, named) = text.split_once("charset")?;
    let named = named.trim_start().strip_prefix('=')?.trim_start().trim_start_matches(['"', '\'']);
    let end = named.find(|one: char| !(one.is_ascii_alphanumeric() || matches!(one, '-' | '_' | ':' | '.')));
    Encoding::for_label(named.get(..end.unwrap_or(named.len()))?.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(content_type: &str, bytes: &[u8], wanted: &str) {
        let said = match kind(content_type) {
            None => "not text".to_string(),
            Some(kind) => match read(bytes, kind, content_type) {
                None => "not text inside".to_string(),
                Some((text, has_errors)) => format!("{text}{}", if has_errors { " !" } else { "" }),
            },
        };
        assert_eq!(said, wanted, "{content_type}");
    }

    #[test]
    fn texts_are_read_as_they_are_written() {
        check("text/html", b"<p>a</p>", "a");
        check("TEXT/HTML; charset=utf-8", "<p>é</p>".as_bytes(), "é");
        check("text/html; charset=\"iso-8859-1\"", b"<p>\xe9</p>", "é");
        check("text/html", b"<meta charset=windows-1251>\xe4\xe0", "да");
        check("text/html", b"<meta http-equiv=x content='text/html; charset=Shift_JIS'>\x83\x65", "テ");
        check("text/html", "\u{feff}<p>é".as_bytes(), "é");
        check("text/plain; charset=utf-16le", b"a\0b\0", "ab");
        check("text/plain", b"\xff\xfea\0b\0", "ab");
        check("text/plain", b"<p>a</p> charset=utf-16", "<p>a</p> charset=utf-16");
        check("text/plain; charset=nonsense", b"a", "a");
        check("text/plain", b"a\xffb", "a\u{fffd}b !");
        check("application/json", b"{}", "{}");
        check("application/ld+json;x=y", b"{}", "{}");
        check("image/svg+xml", b"<svg/>", "<svg/>");
        check("", b" <!DOCTYPE html><p>a", "a");
        check("", b"<html>a", "a");
        check("", b"a < b", "a < b");
    }

    #[test]
    fn what_is_no_text_is_refused() {
        for binary in ["image/png", "application/octet-stream", "application/pdf", "video/mp4", "nonsense", "a/b+zip"] {
            check(binary, b"a", "not text");
        }
        check("text/plain", b"a\0b", "not text inside");
        check("text/html", b"\x89PNG\r\n\x1a\n\0\0", "not text inside");
        check("", b"\xff\xd8\xff\xe0", "not text inside");
        check("text/plain; charset=utf-16", b"a\0\0\0", "not text inside");
    }
}
