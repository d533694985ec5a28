//! What a fetch is aimed at: a URL read once and strictly, and how it is shown. Pure: it looks nothing up.
//!
//! The URL that is sent is the parsed one; it stands in the preview as it goes out, and taken apart and decoded. What
//! two readers could take for two addresses is refused here.

use std::net::IpAddr;

use reqwest::Url;

use crate::domain::limits;
use crate::domain::lookalike;
use crate::domain::text::counted;
use crate::domain::tool::Problem;
use crate::domain::tool::ProblemKind;
use crate::tools::web_fetch::address;

/// What the host of a URL is called when it is this machine.
const LOCALHOST: &str = "localhost";

/// A URL that may be asked for.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// The URL as it is sent, without a fragment.
    pub(crate) url: Url,
    /// Its host, in ASCII and small letters; an address of version 6 in brackets.
    pub(crate) host: String,
    /// Its port.
    pub(crate) port: u16,
    /// The address, where the host is one.
    pub(crate) literal: Option<IpAddr>,
    /// Whether it is a port of this machine that the operator opened.
    pub(crate) is_opened: bool,
}

impl Target {
    /// Reads a URL. `opened` are ports of this machine, as `address::opened` gives them.
    pub(crate) fn read(text: &str, opened: &[String]) -> Result<Target, Problem> {
        check_text(text)?;
        let mut url = Url::parse(text).map_err(|error| {
            invalid(&format!("it is not a URL ({error})"), "write all of it, such as https://docs.rs/serde/")
        })?;
        if !url.username().is_empty() || url.password().is_some() || has_userinfo(text) {
            return Err(refused(
                "it holds a name or a password",
                "tiller sends none; leave out what stands before the @",
            ));
        }
        url.set_fragment(None);
        let (Some(host), Some(port)) = (url.host_str().map(str::to_string), url.port_or_known_default()) else {
            return Err(invalid("it has no host", "write all of it, such as https://docs.rs/serde/"));
        };
        if host.ends_with('.') {
            return Err(refused(
                "its host ends in a dot, which is another way to write the same host",
                "leave the dot out",
            ));
        }
        if port == 0 {
            return Err(refused("there is no port 0", "name another port"));
        }
        let literal = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().ok();
        let is_opened = opened.contains(&format!("{host}:{port}"));
        let target = Target { url, host, port, literal, is_opened };
        match target.closed() {
            Some(what) => Err(not_reached(&target.shown_host(), what)),
            None => Ok(target),
        }
    }

    /// What makes it one that may not be reached, as far as it can be told without looking anything up.
    fn closed(&self) -> Option<&'static str> {
        let is_here = self.host == LOCALHOST || self.host.ends_with(".localhost");
        match self.literal {
            Some(address) => self.judge(address),
            None if is_here && !self.is_opened => Some("this machine"),
            None => None,
        }
    }

    /// What an address of it is that may not be reached. An opened port is one of this machine and nothing else.
    pub(crate) fn judge(&self, address: IpAddr) -> Option<&'static str> {
        match (self.is_opened, address::is_loopback(address)) {
            (true, true) => None,
            (true, false) => Some("not this machine, although the name is opened as a port of it"),
            (false, _) => address::closed(address),
        }
    }

    /// Whether another URL is at the same place: the same scheme, host and port.
    pub(crate) fn is_origin_of(&self, other: &Url) -> bool {
        other.scheme() == self.url.scheme()
            && other.host_str() == Some(self.host.as_str())
            && other.port_or_known_default() == Some(self.port)
    }

    /// The host as a standing rule has it: alone where it is asked by https at its usual port, else with the port.
    pub(crate) fn rule_host(&self) -> String {
        if self.is_usual() { self.host.clone() } else { format!("{}:{}", self.host, self.port) }
    }

    fn is_usual(&self) -> bool {
        self.url.scheme() == "https" && self.port == 443
    }

    /// What it reaches, in words.
    pub(crate) fn reach(&self) -> String {
        let port = if self.is_usual() { String::new() } else { format!(", port {}", self.port) };
        let plain = if self.url.scheme() == "http" { ", unencrypted" } else { "" };
        let here = if self.is_opened { " on this machine" } else { "" };
        format!("sends a request to {}{port}{plain}{here}", self.shown_host())
    }

    /// The host as it is sent; where that stands for other letters, those second, with what they are.
    pub(crate) fn shown_host(&self) -> String {
        let (letters, read) = idna::domain_to_unicode(&self.host);
        if letters == self.host {
            return self.host.clone();
        }
        if read.is_err() {
            return format!("{} (in letters that can't be shown)", self.host);
        }
        format!("{} (in letters: {letters}; {})", self.host, scripts(&letters))
    }

    /// The whole request as the operator is shown it. `written` are the bytes of the model.
    pub(crate) fn preview(&self, written: &str, headers: &[(&str, &str)]) -> String {
        let mut lines = vec![format!("GET {}", self.url), format!("host: {}", self.shown_host())];
        let usual = if self.is_usual() { "" } else { ", not the usual one" };
        lines.push(format!("port: {}{usual}", self.port));
        if self.url.scheme() == "http" {
            lines.push("http: unencrypted; others on the way can read and change it".to_string());
        }
        lines.push(format!("path, decoded: {}", decoded(self.url.path(), false)));
        if let Some(query) = self.url.query() {
            lines.push(format!("query, decoded, {}:", counted(query.len(), "byte")));
            for pair in query.split('&') {
                lines.push(match pair.split_once('=') {
                    Some((name, value)) => format!("    {} = {}", decoded(name, true), decoded(value, true)),
                    None => format!("    {}", decoded(pair, true)),
                });
            }
        }
        if written != self.url.as_str() {
            lines.push(format!("as it was written: {written:?}"));
        }
        let sent: Vec<String> = headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        lines.push(format!("sent with it: {}; no cookies, no keys, no referer", sent.join("; ")));
        lines.push(format!("addresses: {}", self.addresses()));
        lines.push(format!("redirects: {REDIRECTS}"));
        lines.join("\n")
    }

    /// Which addresses are connected to.
    pub(crate) fn addresses(&self) -> &'static str {
        if self.is_opened {
            "this machine only; you opened the port in tiller.toml"
        } else {
            "looked up once when it runs; refused if one of them is this machine, a private or a reserved address"
        }
    }
}

/// What is done about redirects.
pub(crate) const REDIRECTS: &str = "followed at the same scheme, host and port only, 5 at most";

/// How many bytes of a URL say something to the host: its path and its query.
pub(crate) fn query_bytes(url: &Url) -> u64 {
    (url.path().len() + url.query().map_or(0, |query| query.len() + 1)) as u64
}

/// What must be so before a text is parsed: parsers take out and turn around some signs, and two need not agree.
fn check_text(text: &str) -> Result<(), Problem> {
    if text.len() > limits::FETCH_URL_MAX_BYTES {
        let what = format!("it has {} bytes and may have {}", text.len(), limits::FETCH_URL_MAX_BYTES);
        return Err(refused(&what, "use a shorter one"));
    }
    if text.contains(|one: char| one.is_control() || one.is_whitespace() || one == '\\') {
        let what = "it holds a space, a control character or a backslash";
        return Err(refused(what, "write them as %20 and the like, if they belong to it"));
    }
    let Some((scheme, rest)) = text.split_once(':') else {
        return Err(invalid("it is not a whole URL", "write all of it, such as https://docs.rs/serde/"));
    };
    if !scheme.eq_ignore_ascii_case("https") && !scheme.eq_ignore_ascii_case("http") {
        return Err(refused("only https:// and http:// are fetched", "use another address"));
    }
    if !rest.starts_with("//") || rest.starts_with("///") {
        return Err(invalid("two slashes belong behind its scheme", "write it as https://host/path"));
    }
    Ok(())
}

/// Whether there is an `@` before the path, an empty name included, which a parser drops.
fn has_userinfo(text: &str) -> bool {
    let rest = text.split_once("//").map_or("", |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().is_some_and(|authority| authority.contains('@'))
}

/// What a part of a URL says, in quotes and with escapes, so that nothing in it looks like a line of its own.
fn decoded(part: &str, is_query: bool) -> String {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let escaped = after.get(..2).filter(|_| *first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = escaped.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        match escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(if is_query && *first == b'+' { b' ' } else { *first });
                rest = after;
            }
        }
    }
    match std::str::from_utf8(&bytes) {
        Ok(text) => format!("{text:?}"),
        Err(_) => format!("\"{}\", not text", bytes.escape_ascii()),
    }
}

/// Scripts that are written together in Japanese.
const JAPANESE: [&str; 3] = ["Han", "Hiragana", "Katakana"];

/// In which scripts a name is written, and whether a part of it mixes them.
fn scripts(name: &str) -> String {
    let of = |part: &str| {
        let mut found: Vec<&str> = part.chars().filter_map(script).collect();
        found.sort_unstable();
        found.dedup();
        found
    };
    let is_mixed = |found: &Vec<&str>| found.len() > 1 && !found.iter().all(|script| JAPANESE.contains(script));
    if let Some(mixed) = name.split('.').map(of).find(is_mixed) {
        return format!("it mixes letters: {}", mixed.join(" and "));
    }
    let foreign: Vec<&str> = of(name).into_iter().filter(|script| *script != "Latin").collect();
    if foreign.is_empty() { "Latin, beyond a to z".to_string() } else { foreign.join(" and ") }
}

fn script(letter: char) -> Option<&'static str> {
    let known = if letter.is_ascii() { Some("Latin") } else { lookalike::script(letter) };
    letter.is_alphabetic().then(|| known.unwrap_or("others"))
}

/// The sentence about a place that may not be reached.
pub(crate) fn not_reached(host: &str, what: &str) -> Problem {
    let text = format!(
        "{host} is {what}, and web_fetch reaches only the open internet. Nothing was sent; the operator can open a port \
         of this machine in tiller.toml (tools.fetch_loopback)."
    );
    Problem::new(ProblemKind::Refused, text)
}

fn refused(what: &str, remedy: &str) -> Problem {
    Problem::new(ProblemKind::Refused, format!("The URL is refused: {what}. Nothing was sent; {remedy}."))
}

fn invalid(what: &str, remedy: &str) -> Problem {
    Problem::new(ProblemKind::InvalidArguments, format!("The URL can't be used: {what}. Nothing was sent; {remedy}."))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn check(url: &str, wanted: &str) {
        let said = match Target::read(url, &["127.0.0.1:8080".to_string(), "localhost:8080".to_string()]) {
            Ok(target) => format!("{} | {}", target.rule_host(), target.reach()),
            Err(problem) => format!("{:?}: {}", problem.kind, problem.text),
        };
        assert!(said.contains(wanted), "{url}\n  said {said}\n  not  {wanted}");
    }

    #[test]
    fn urls_that_may_be_asked_for() {
        check("https://docs.rs", "docs.rs | sends a request to docs.rs");
        check("HTTPS://DOCS.RS:443/x", "docs.rs | sends a request to docs.rs");
        check("https://docs.rs:8443/", "docs.rs:8443 | sends a request to docs.rs, port 8443");
        check("http://docs.rs/", "docs.rs:80 | sends a request to docs.rs, port 80, unencrypted");
        check("https://docs.rs/a@b", "docs.rs | ");
        check("https://docs.rs/?a=@", "docs.rs | ");
        check("https://ドメイン.example/", "(in letters: ドメイン.example; Katakana)");
        check("https://日本のドメイン.example/", "(in letters: 日本のドメイン.example; Han and Hiragana and Katakana)");
        check("https://\u{261}oogle.example/", "; it mixes letters: Latin and phonetic)");
        check("https://bücher.example/", "xn--bcher-kva.example (in letters: bücher.example; Latin, beyond a to z)");
        check("https://еxample.invalid/", "xn--xample-2of.invalid (in letters: еxample.invalid; it mixes letters: ");
        check("https://xn--xample-2of.invalid/", "(in letters: еxample.invalid; it mixes letters: Cyrillic and Latin)");
        check("https://аррӏе.com/", "xn--80ak6aa92e.com (in letters: аррӏе.com; Cyrillic)");
        check("https://93.184.216.34/", "93.184.216.34 | ");
        check("https://[2606:2800:220:1:248:1893:25c8:1946]/", "[2606:2800:220:1:248:1893:25c8:1946] | ");
        check(
            "http://127.0.0.1:8080/",
            "127.0.0.1:8080 | sends a request to 127.0.0.1, port 8080, unencrypted on this",
        );
        check("http://0x7f.1:8080/", "127.0.0.1:8080 | ");
        check("http://localhost:8080/", "localhost:8080 | ");
        check("https://ｄｏｃｓ。ｒｓ/", "docs.rs | ");
    }

    #[test]
    fn urls_that_are_refused() {
        let this = "is an address of this machine";
        for (url, wanted) in [
            ("ftp://docs.rs/", "only https:// and http://"),
            ("file:///etc/passwd", "only https:// and http://"),
            ("data:text/html,x", "only https:// and http://"),
            ("javascript:1", "only https:// and http://"),
            ("gopher://docs.rs/", "only https:// and http://"),
            ("docs.rs", "not a whole URL"),
            ("", "not a whole URL"),
            ("//docs.rs/", "not a whole URL"),
            ("https:docs.rs", "two slashes"),
            ("https:/docs.rs", "two slashes"),
            ("https:///docs.rs", "two slashes"),
            ("https:\\\\docs.rs", "backslash"),
            ("https://docs.rs\\@example.invalid/", "backslash"),
            ("https://docs.rs/a b", "a space"),
            ("https://docs.rs/\ta", "control character"),
            ("https://exa\nmple.invalid/", "control character"),
            ("https://docs.rs/\u{2028}", "a space"),
            ("https://docs.rs@example.invalid/", "a name or a password"),
            ("https://a:b@docs.rs/", "a name or a password"),
            ("https://@docs.rs/", "a name or a password"),
            ("https://:@docs.rs/", "a name or a password"),
            ("https://docs.rs%40example.invalid/", "not a URL"),
            ("https://", "not a URL"),
            ("https://docs.rs:99999/", "not a URL"),
            ("https://docs.rs:0/", "no port 0"),
            ("https://[::1%25eth0]/", "not a URL"),
            ("https://1.2.3.256/", "not a URL"),
            ("https://1.2.3.4.5/", "not a URL"),
            ("http://127.0.0.1/", this),
            ("http://127.0.0.1:8081/", this),
            ("http://2130706433/", this),
            ("http://0x7f000001/", this),
            ("http://017700000001/", this),
            ("http://0177.0.0.1/", this),
            ("http://127.1/", this),
            ("http://127.0.0.1./", this),
            ("http://１２７.0.0.1/", this),
            ("http://127。0。0。1/", this),
            ("http://[::1]/", this),
            ("http://[::ffff:127.0.0.1]/", this),
            ("http://[::ffff:7f00:1]/", this),
            ("http://[0:0:0:0:0:0:0:1]/", this),
            ("http://[64:ff9b::7f00:1]/", this),
            ("http://[2002:7f00:1::]/", this),
            ("http://0/", "an unspecified address"),
            ("http://[::]/", "an unspecified address"),
            ("http://localhost/", "is this machine"),
            ("http://LOCALHOST/", "is this machine"),
            ("http://localhost./", "ends in a dot"),
            ("http://localhost.:8080/", "ends in a dot"),
            ("https://docs.rs./", "ends in a dot"),
            ("https://docs.rs%2e/", "ends in a dot"),
            ("http://a.localhost:8080/", "is this machine"),
            ("http://169.254.169.254/latest/meta-data/", "metadata"),
            ("http://2852039166/", "metadata"),
            ("http://0xa9fea9fe/", "metadata"),
            ("http://[fd00:ec2::254]/", "a private address"),
            ("http://10.0.0.1/", "a private address"),
            ("http://192.168.1.1/", "a private address"),
            ("http://172.16.0.1:80/", "a private address"),
            ("http://100.64.0.1/", "a provider's network"),
            ("http://[fe80::1]/", "a link-local address"),
            ("http://224.0.0.1/", "a multicast address"),
            ("http://255.255.255.255/", "the broadcast address"),
            ("http://192.0.2.1/", "an address of documentation"),
        ] {
            check(url, wanted);
            assert!(Target::read(url, &[]).unwrap_err().text.contains("Nothing was sent; "), "{url}");
        }
        check(&format!("https://docs.rs/{}", "x".repeat(limits::FETCH_URL_MAX_BYTES)), "bytes and may have");
    }

    /// What stands before a host in a URL never makes it another host than the one that is shown.
    #[test]
    fn one_sign_more_never_hides_the_host() {
        let closed = ["http://127.0.0.1/x", "http://[::1]/x", "http://169.254.169.254/x", "http://localhost/x"];
        let signs =
            ["@", ":", "/", "\\", "%", "#", "?", ".", "\t", "\n", "\0", "\u{ad}", "\u{200b}", "0", "a", "[", "]"];
        let mut open = 0;
        for url in closed {
            for place in "http://".len()..url.len() {
                for sign in signs {
                    let changed = format!("{}{sign}{}", &url[..place], &url[place..]);
                    let Ok(target) = Target::read(&changed, &[]) else { continue };
                    open += 1;
                    // What is left are other names, which are shown, and looked up when it runs.
                    let again = Url::parse(target.url.as_str()).unwrap();
                    assert_eq!(again.host_str(), Some(target.host.as_str()), "{changed:?}");
                    let judged = target.literal.is_none_or(|address| address::closed(address).is_none());
                    assert!(judged && target.host != "localhost", "{changed:?}");
                }
            }
        }
        assert!(open > 10, "only {open} were open, so nothing was tried");
    }

    #[test]
    fn the_preview_says_what_goes_out() {
        let url = "https://docs.rs/a%20b/%0Ahost:%20good?d=c2VjcmV0&e=%41%zz+x&f&%FF=%22#part";
        let shown = Target::read(url, &[]).unwrap().preview(url, &[("user-agent", "tiller")]);
        assert_eq!(
            shown,
            "GET https://docs.rs/a%20b/%0Ahost:%20good?d=c2VjcmV0&e=%41%zz+x&f&%FF=%22\n\
             host: docs.rs\n\
             port: 443\n\
             path, decoded: \"/a b/\\nhost: good\"\n\
             query, decoded, 31 bytes:\n    \
                 \"d\" = \"c2VjcmV0\"\n    \
                 \"e\" = \"A%zz x\"\n    \
                 \"f\"\n    \
                 \"\\xff\", not text = \"\\\"\"\n\
             as it was written: \"https://docs.rs/a%20b/%0Ahost:%20good?d=c2VjcmV0&e=%41%zz+x&f&%FF=%22#part\"\n\
             sent with it: user-agent: tiller; no cookies, no keys, no referer\n\
             addresses: looked up once when it runs; refused if one of them is this machine, a private or a reserved \
             address\n\
             redirects: followed at the same scheme, host and port only, 5 at most"
        );
        let plain = "http://docs.rs:8000/";
        let shown = Target::read(plain, &[]).unwrap().preview(plain, &[]);
        assert!(shown.contains("port: 8000, not the usual one\nhttp: unencrypted; "), "{shown}");
        assert!(!shown.contains("written"), "{shown}");
    }
}
