//! A page of HTML as text to read: no scripts, no styles, no tags; links and pictures are named and never fetched.
//!
//! It is a reader for hostile input and no browser: it goes over the text once, from the first byte to the last, and
//! builds no tree. Where a page is broken it may leave too much out, never run or look up anything.

/// Elements whose inside is no text to read.
const SKIPPED: &[&str] = &["script", "style", "template", "svg", "iframe", "object", "canvas"];
/// Elements that stand on lines of their own.
const BLOCKS: &[&str] = &[
    "address",
    "article",
    "aside",
    "blockquote",
    "body",
    "dd",
    "details",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "header",
    "html",
    "main",
    "nav",
    "ol",
    "option",
    "pre",
    "section",
    "select",
    "summary",
    "table",
    "textarea",
    "title",
    "tr",
    "ul",
];
/// Characters by their names, as far as they are common.
const NAMED: &[(&str, char)] = &[
    ("amp", '&'),
    ("apos", '\''),
    ("bull", '•'),
    ("copy", '©'),
    ("deg", '°'),
    ("euro", '€'),
    ("gt", '>'),
    ("hellip", '…'),
    ("laquo", '«'),
    ("larr", '←'),
    ("ldquo", '“'),
    ("le", '≤'),
    ("ge", '≥'),
    ("lsquo", '‘'),
    ("lt", '<'),
    ("mdash", '—'),
    ("middot", '·'),
    ("minus", '−'),
    ("nbsp", ' '),
    ("ndash", '–'),
    ("ne", '≠'),
    ("para", '¶'),
    ("quot", '"'),
    ("raquo", '»'),
    ("rarr", '→'),
    ("rdquo", '”'),
    ("reg", '®'),
    ("rsquo", '’'),
    ("sect", '§'),
    ("times", '×'),
    ("trade", '™'),
];
/// Longest name of a character, and longest number of one.
const NAME_MAX_BYTES: usize = 10;
/// Longest address of a link that is named.
const LINK_MAX_BYTES: usize = 300;

/// The text of a page.
pub(crate) fn to_text(html: &str) -> String {
    let mut page = Page::default();
    let mut rest = html;
    while let Some(place) = rest.find('<') {
        let (before, tag) = rest.split_at(place);
        page.text(before);
        rest = match Piece::read(tag) {
            Piece::Tag { tag, rest } => page.tag(&tag, rest),
            Piece::Nothing(rest) => rest,
            Piece::Sign(rest) => {
                page.text("<");
                rest
            }
        };
    }
    page.text(rest);
    page.out.trim_end().to_string()
}

/// What begins with a `<`, and what stands behind it.
enum Piece<'a> {
    Tag {
        tag: Tag<'a>,
        rest: &'a str,
    },
    /// A comment or a declaration.
    Nothing(&'a str),
    /// No tag but a sign.
    Sign(&'a str),
}

struct Tag<'a> {
    name: String,
    closes: bool,
    attributes: &'a str,
}

impl<'a> Piece<'a> {
    fn read(text: &'a str) -> Piece<'a> {
        let after = |end: &str| text.split_once(end).map_or("", |(_, rest)| rest);
        if text.starts_with("<!--") {
            return Piece::Nothing(after("-->"));
        }
        let inside = text.get(1..).unwrap_or_default();
        if inside.starts_with(['!', '?']) {
            return Piece::Nothing(after(">"));
        }
        let (closes, named) = match inside.strip_prefix('/') {
            Some(named) => (true, named),
            None => (false, inside),
        };
        if !named.starts_with(|letter: char| letter.is_ascii_alphabetic()) {
            return Piece::Sign(inside);
        }
        let length = named.find(|one: char| one.is_ascii_whitespace() || one == '/' || one == '>');
        let (name, attributes) = named.split_at(length.unwrap_or(named.len()));
        let end = tag_end(attributes);
        let (attributes, rest) = attributes.split_at(end);
        let tag = Tag { name: name.to_ascii_lowercase(), closes, attributes };
        Piece::Tag { tag, rest: rest.strip_prefix('>').unwrap_or_default() }
    }
}

/// Where a tag ends: at the first `>` outside quotes, or with the text.
fn tag_end(attributes: &str) -> usize {
    let mut quote = None;
    let mut is_value = false;
    for (place, byte) in attributes.bytes().enumerate() {
        match (quote, byte) {
            (Some(open), _) if open == byte => quote = None,
            (Some(_), _) => {}
            (None, b'"' | b'\'') if is_value => quote = Some(byte),
            (None, b'>') => return place,
            (None, _) => {}
        }
        if !byte.is_ascii_whitespace() {
            is_value = byte == b'=';
        }
    }
    attributes.len()
}

impl Tag<'_> {
    /// The value of an attribute.
    fn attribute(&self, wanted: &str) -> Option<String> {
        let mut rest = self.attributes;
        while !rest.is_empty() {
            rest = rest.trim_start_matches(|one: char| one.is_ascii_whitespace() || one == '/' || one == '=');
            let end = rest.find(|one: char| one.is_ascii_whitespace() || one == '=' || one == '/');
            let (name, after) = rest.split_at(end.unwrap_or(rest.len()));
            let (value, after) = match after.trim_start().strip_prefix('=') {
                Some(value) => attribute_value(value.trim_start()),
                None => ("", after),
            };
            if name.eq_ignore_ascii_case(wanted) {
                return Some(unescaped(value));
            }
            rest = after;
        }
        None
    }
}

fn attribute_value(text: &str) -> (&str, &str) {
    let quote = text.chars().next().filter(|first| matches!(first, '"' | '\''));
    match quote {
        Some(quote) => text.get(1..).unwrap_or_default().split_once(quote).unwrap_or((text, "")),
        None => text.split_at(text.find(|one: char| one.is_ascii_whitespace()).unwrap_or(text.len())),
    }
}

/// The text being written.
#[derive(Default)]
struct Page {
    out: String,
    /// A space, or line breaks, that come before the next text.
    space: bool,
    breaks: usize,
    /// How deep it is in elements whose spaces count.
    kept: usize,
    /// Where the open link leads.
    link: Option<String>,
}

impl Page {
    fn text(&mut self, text: &str) {
        let text = unescaped(text);
        for one in text.chars() {
            match one {
                '\n' if self.kept > 0 => {
                    self.flush();
                    self.out.push('\n');
                }
                '\0' | '\r' => {}
                _ if one.is_whitespace() && self.kept == 0 => self.space = true,
                _ => {
                    self.flush();
                    self.out.push(one);
                }
            }
        }
    }

    /// Writes what comes before the next text.
    fn flush(&mut self) {
        if self.breaks > 0 && !self.out.is_empty() {
            let there = self.out.bytes().rev().take_while(|byte| *byte == b'\n').take(2).count();
            (there..self.breaks).for_each(|_| self.out.push('\n'));
        } else if self.space && !self.out.is_empty() && !self.out.ends_with(['\n', ' ']) {
            self.out.push(' ');
        }
        (self.breaks, self.space) = (0, false);
    }

    fn write(&mut self, mark: &str) {
        self.flush();
        self.out.push_str(mark);
    }

    fn break_line(&mut self, breaks: usize) {
        self.breaks = self.breaks.max(breaks);
    }

    /// Takes in a tag; what is left behind it, and behind the element where its inside is skipped.
    fn tag<'a>(&mut self, tag: &Tag<'_>, rest: &'a str) -> &'a str {
        match (tag.name.as_str(), tag.closes) {
            (name, false) if SKIPPED.contains(&name) => return behind_element(name, rest),
            ("pre" | "textarea", closes) => {
                self.break_line(1);
                self.kept = if closes { self.kept.saturating_sub(1) } else { self.kept + 1 };
            }
            ("br", _) => self.break_line((self.breaks + 1).min(2)),
            ("p", _) => self.break_line(2),
            ("hr", _) => {
                self.break_line(1);
                self.write("---");
                self.break_line(1);
            }
            ("li", false) => {
                self.break_line(1);
                self.write("- ");
            }
            ("h1" | "h2" | "h3" | "h4" | "h5" | "h6", closes) => {
                self.break_line(2);
                if !closes {
                    let level = tag.name.bytes().last().map_or(1, |digit| usize::from(digit - b'0'));
                    self.write(&format!("{} ", "#".repeat(level)));
                }
            }
            ("td" | "th", false) if self.breaks == 0 && !self.out.is_empty() => self.write(" | "),
            ("a", closes) => {
                if let Some(link) = self.link.take() {
                    self.write(&format!(" ({link})"));
                }
                if !closes {
                    self.link = tag.attribute("href").filter(|link| is_named(link));
                }
            }
            ("img", false) => {
                if let Some(words) = tag.attribute("alt").filter(|words| !words.trim().is_empty()) {
                    self.write(&format!("[picture: {}]", words.trim()));
                }
            }
            (name, _) if BLOCKS.contains(&name) => self.break_line(1),
            _ => {}
        }
        rest
    }
}

/// Whether a link leads to another page, by an address that can be read.
fn is_named(link: &str) -> bool {
    let scheme = link.split(['/', '?', '#']).next().and_then(|head| head.split_once(':')).map(|(scheme, _)| scheme);
    let is_page =
        scheme.is_none_or(|scheme| scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("http"));
    let is_plain = !link.contains(|one: char| one.is_whitespace() || one.is_control());
    is_page && is_plain && !link.is_empty() && !link.starts_with('#') && link.len() <= LINK_MAX_BYTES
}

/// What stands behind the end of an element; nothing where it has none.
fn behind_element<'a>(name: &str, text: &'a str) -> &'a str {
    let mut rest = text;
    while let Some((_, after)) = rest.split_once("</") {
        if after.get(..name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name)) {
            return after.split_once('>').map_or("", |(_, rest)| rest);
        }
        rest = after;
    }
    ""
}

/// A text with its characters in the place of their names and numbers.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(place) = rest.find('&') {
        let (before, named) = rest.split_at(place);
        out.push_str(before);
        let named = named.get(1..).unwrap_or_default();
        let end = named.bytes().take(NAME_MAX_BYTES + 1).position(|byte| byte == b';');
        let found = end.and_then(|end| Some((character(named.get(..end)?)?, named.get(end + 1..)?)));
        rest = match found {
            Some((one, after)) => {
                out.push(one);
                after
            }
            None => {
                out.push('&');
                named
            }
        };
    }
    out + rest
}

fn character(name: &str) -> Option<char> {
    let Some(number) = name.strip_prefix('#') else {
        return NAMED.iter().find(|(known, _)| *known == name).map(|(_, one)| *one);
    };
    let number = match number.strip_prefix(['x', 'X']) {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => number.parse(),
    };
    Some(char::from_u32(number.ok()?).filter(|one| *one != '\0').unwrap_or(char::REPLACEMENT_CHARACTER))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(html: &str, wanted: &str) {
        assert_eq!(to_text(html), wanted, "{html}");
    }

    #[test]
    fn pages_are_read() {
        check(
            "<!doctype html><html><head><title>A &amp; B</title><style>p { color: red }</style>\n<script src=x>if (a < \
             b) { '</p>' }</script></head>\n<body class=\"a>b\"><h1>Head\n line</h1><p>One  <b>two</b>\nthree.</p>\
             <p>Four<br>five<br><br>six</p></body></html>",
            "A & B\n\n# Head line\n\nOne two three.\n\nFour\nfive\n\nsix",
        );
        check("<ul><li>a<li>b <i>c</i></ul>d", "- a\n- b c\nd");
        check("<table><tr><th>a</th><th>b</th></tr><tr><td>1<td>2</table>", "a | b\n1 | 2");
        check("x<pre>\n  a  b\n\n   c</pre>y", "x\n\n  a  b\n\n   c\ny");
        check("<a href='/x?a=1&amp;b=2'>link</a>, <a href=\"#top\">top</a>", "link (/x?a=1&b=2), top");
        check("<a href=https://a.example/>one<a href=b>two</a>", "one (https://a.example/)two (b)");
        check(
            "<a href=javascript:x>a</a><a href='JavaScript:x'>b</a><a href='data:,x'>c</a><a href='a b'>d</a>",
            "abcd",
        );
        check("<img src=https://a.example/?d=x alt=' a cat '><img src=y>", "[picture: a cat]");
        check(
            "a&#65;&#x42;&lt;b&gt;&nbsp;&unknown;&;&#0;&#xd800;&#99999999999;&amp",
            "aAB<b> &unknown;&;��&#99999999999;&amp",
        );
        check("1 < 2 <3 <> </> a<b", "1 < 2 <3 <> </> a");
        check("", "");
    }

    #[test]
    fn broken_pages_are_harmless() {
        check("a<!-- b", "a");
        check("a<!-- b > c --> d", "a d");
        check("a<script>b</scrip", "a");
        check("a<STYLE>b</Style >c", "ac");
        check("a<b title='>' c>d", "ad");
        check("a<b title='d", "a");
        check("a<svg><a href=x>b</a></svg>c", "ac");
        check("</pre></a></p>a", "a");
        check("a\0b\rc", "abc");
        for one in ["<", "</", "<!", "<!--", "<a", "<a ", "<a b", "<a b=", "<a b='", "&", "&#", "&#x", "<script", "<é>"]
        {
            let _ = to_text(one);
            let _ = to_text(&one.repeat(3));
        }
    }

    /// Whatever a page is put together from, it is read, and what a script says is no text.
    #[test]
    fn pages_of_any_pieces_are_read() {
        const PIECES: &[&str] = &[
            "<",
            ">",
            "</",
            "/>",
            "<!--",
            "-->",
            "<!",
            "<?",
            "\"",
            "'",
            "=",
            " ",
            "\n",
            "&",
            "&amp;",
            "&#x41;",
            "&#",
            ";",
            "a",
            "é",
            "💥",
            "\0",
            "<p>",
            "<a href=",
            "</a>",
            "<pre>",
            "</pre>",
            "<h1",
            "<td>",
            "<li>",
            "<br/>",
            "<img alt=",
            "<svg>",
            "</svg>",
            "<title>",
            "<script>HIDDEN</script>",
            "<style x='>'>HIDDEN</style >",
            "<SCRIPT>HIDDEN</Script>",
        ];
        let mut seed = 7_u32;
        let mut next = |most: usize| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 8) as usize % most
        };
        for _ in 0..20_000 {
            let length = next(24);
            let html: String = (0..length).filter_map(|_| PIECES.get(next(PIECES.len()))).copied().collect();
            let text = to_text(&html);
            assert!(text.len() <= 3 * html.len(), "{html:?}: {text:?}");
        }
        // Whatever stands before it, unless that leaves something open.
        for before in PIECES.iter().filter(|piece| **piece != "<svg>" && (piece.ends_with('>') || !piece.contains('<')))
        {
            for hidden in
                ["<script>HIDDEN</script>", "<style x='>'>HIDDEN</style >", "<SCRIPT a=\"\" b>HIDDEN</Script>"]
            {
                let text = to_text(&format!("{before}{hidden}shown"));
                assert!(!text.contains("HIDDEN") && text.ends_with("shown"), "{before}{hidden}: {text}");
            }
        }
    }

    /// However a page is built, the time to read it grows with its length only.
    #[test]
    fn large_pages_are_read_in_one_go() {
        for one in [
            "<",
            "<a ",
            "<a href='x'>",
            "<!--",
            "</script",
            "<script>",
            "<pre>",
            "<br>",
            "&",
            "&#x41;",
            "<td>",
            "<p>",
            "\n",
            "<a href=\"",
            "<svg></sv",
        ] {
            let text = one.repeat(300_000 / one.len());
            let read = to_text(&text);
            assert!(read.len() <= 3 * text.len(), "{one}: {} of {}", read.len(), text.len());
        }
    }
}
